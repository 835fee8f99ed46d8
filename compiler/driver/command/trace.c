// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tirc trace: one launch on the emulator, as run or emu do it, and its timeline as a file.
//
// The timeline is written when the launch goes wrong as well: it then shows what came before.
#include <inttypes.h>
#include <stdio.h>

#include "driver/command/command.h"
#include "driver/emu/timeline.h"
#include "driver/file.h"
#include "driver/say.h"

static bool ends_with(tir_str text, tir_str end)
{
    return text.len >= end.len && !memcmp(text.ptr + text.len - end.len, end.ptr, end.len);
}

// -o, or the file's name with another ending.
static bool place(struct tir_arena *arena, const struct tir_options *options, const char **out,
                  tir_error *error)
{
    tir_str stem = tir_str_of(options->args.at[0]);
    *out = options->text[TIR_OPTION_OUTPUT];
    if (*out)
        return true;
    if (tir_str_is(stem, "-"))
        return tir_fail(error, TIR_ERR_INVALID, "-o is needed when the source has no name");
    if (ends_with(stem, STR(".tir")) || ends_with(stem, STR(".ptx")))
        stem.len -= 4;
    *out = tir_str_format(arena, STR_FMT ".trace.json", STR_ARG(stem)).ptr;
    return true;
}

static void summarize(const struct tir_timeline *t, const char *out)
{
    const uint64_t all = t->run + t->waited;
    tir_say(stdout,
            "%s: %u CTAs, %u warps, %" PRIu64 " cycles of the model; warps wait for %.0f%% of them",
            out, t->ctas, t->warps, t->end, all ? 100.0 * (double)t->waited / (double)all : 0.0);
    if (t->dropped)
        tir_say(stdout, "%s: %" PRIu64 " slices are left out", out, t->dropped);
}

static bool trace(struct tir_arena *arena, const struct tir_options *options,
                  struct tir_timeline *timeline, tir_error *error)
{
    struct tir_options o = *options;
    struct tir_text text;
    tir_error failure;
    const char *out;
    if (!place(arena, options, &out, error))
        return false;
    const bool to_stdout = !strcmp(out, "-");
    o.text[TIR_OPTION_DEVICE] = "emu";
    o.given[TIR_OPTION_DEBUG] = true;     // slices are named after source lines
    o.given[TIR_OPTION_JSON] = to_stdout; // what the kernel prints must go elsewhere
    const bool is_ptx = ends_with(tir_str_of(options->args.at[0]), STR(".ptx"));
    const bool done = (is_ptx ? tir_emu_trace : tir_run_trace)(arena, &o, timeline, error);
    if (!done && !timeline->slices.len)
        return false;
    tir_text_init(&text, arena, 0);
    tir_timeline_json(timeline, &text);
    const bool written = tir_file_write(out, text.ptr, text.len, done ? error : &failure);
    if (!done || !written)
        return false;
    if (!to_stdout)
        summarize(timeline, out);
    return true;
}

enum tir_exit tir_command_trace(struct tir_arena *arena, const struct tir_options *options)
{
    tir_error error;
    struct tir_timeline timeline;
    if (!options->args.len) {
        fputs("tirc: trace needs a file; tirc trace --help says more\n", stderr);
        return TIR_EXIT_USAGE;
    }
    tir_timeline_init(&timeline, arena);
    return trace(arena, options, &timeline, &error) ? TIR_EXIT_FINE : tir_command_fail(&error);
}
