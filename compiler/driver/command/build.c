// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tirc build: one output of the compiler into a file.
#include "driver/command/command.h"
#include "driver/compile.h"
#include "driver/file.h"
#include "driver/source.h"

static const struct {
    const char *name;
    tir_output output;
    const char *suffix; // of the default file; NULL: standard output
} emits[] = {
    {"artifact", TIR_OUTPUT_ARTIFACT, ".tira"},
    {"ptx", TIR_OUTPUT_PTX, NULL},
    {"cubin", TIR_OUTPUT_CUBIN, ".cubin"},
    {"llvm", TIR_OUTPUT_LLVM, NULL},
    {"tir", TIR_OUTPUT_IR, NULL},
    {"header", TIR_OUTPUT_HEADER, NULL},
};

// The row of --emit. A program that stops early is .tir and nothing else.
static bool choose(const struct tir_options *options, size_t *out, tir_error *error)
{
    const char *emit = options->text[TIR_OPTION_EMIT];
    bool part = options->given[TIR_OPTION_PASS] || options->given[TIR_OPTION_STOP];
    if (part && emit && strcmp(emit, "tir"))
        return tir_fail(error, TIR_ERR_INVALID, "--run and --stop-after give .tir, not --emit=%s",
                        emit);
    emit = emit ? emit : part ? "tir" : "artifact";
    if (options->given[TIR_OPTION_VARIANT] && strcmp(emit, "tir"))
        return tir_fail(error, TIR_ERR_INVALID, "--variant is for .tir, not --emit=%s", emit);
    if (options->given[TIR_OPTION_CUBIN] && strcmp(emit, "artifact") && strcmp(emit, "header"))
        return tir_fail(error, TIR_ERR_INVALID,
                        "--cubin is for an artifact or a header, not --emit=%s", emit);
    for (*out = 0; strcmp(emits[*out].name, emit);)
        ++*out;
    return true;
}

// Where to write: -o, or the source's name with another ending, or standard output.
static bool place(struct tir_arena *arena, const struct tir_options *options, const char *suffix,
                  const char **out, tir_error *error)
{
    const char *path = options->args.at[0];
    tir_str stem = tir_str_of(path);
    *out = options->text[TIR_OPTION_OUTPUT] ? options->text[TIR_OPTION_OUTPUT] : "-";
    if (options->given[TIR_OPTION_OUTPUT] || !suffix)
        return true;
    if (!strcmp(path, "-"))
        return tir_fail(error, TIR_ERR_INVALID, "-o is needed when the source has no name");
    if (stem.len > 4 && !strcmp(path + stem.len - 4, ".tir"))
        stem.len -= 4;
    *out = tir_str_format(arena, STR_FMT "%s", STR_ARG(stem), suffix).ptr;
    return true;
}

static bool build(struct tir_arena *arena, const struct tir_options *options,
                  tir_compilation **compilation, tir_error *error)
{
    struct tir_compile_request request = {.arena = arena, .options = options};
    size_t row = 0;
    const char *out;
    request.path = options->args.at[0];
    if (!choose(options, &row, error) || !place(arena, options, emits[row].suffix, &out, error) ||
        !tir_source_read(arena, request.path, &request.source, error))
        return false;
    request.outputs = 1u << emits[row].output;
    request.log = strcmp(out, "-") ? stdout : stderr;
    if (!tir_compile_source(&request, compilation, error))
        return false;
    tir_str bytes = tir_compilation_output(*compilation, emits[row].output);
    return tir_file_write(out, bytes.ptr, bytes.len, error);
}

enum tir_exit tir_command_build(struct tir_arena *arena, const struct tir_options *options)
{
    tir_error error = {.status = TIR_ERR_INVALID};
    tir_compilation *compilation = NULL;
    bool done = false;
    if (options->args.len == 1)
        done = build(arena, options, &compilation, &error);
    else
        tir_fail(&error, TIR_ERR_INVALID, "build needs one file; tirc build --help says more");
    tir_compilation_destroy(compilation);
    return done ? TIR_EXIT_FINE : tir_command_fail(&error);
}
