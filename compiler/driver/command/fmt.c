// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tirc fmt: source in canonical style, in place, or from standard input to standard output.
#include <stdio.h>
#include <stdlib.h>

#include "driver/command/command.h"
#include "driver/file.h"
#include "driver/say.h"
#include "driver/source.h"
#include "front/front.h"

static enum tir_exit rewrite(const char *path, tir_str source, tir_str text, bool dry)
{
    bool same = tir_str_equal(source, text), standard = !strcmp(path, "-");
    tir_error error;
    if (dry) {
        if (!same)
            tir_say(stdout, "%s", path);
        return same ? TIR_EXIT_FINE : TIR_EXIT_WRONG;
    }
    if ((same && !standard) || tir_file_write(path, text.ptr, text.len, &error))
        return TIR_EXIT_FINE;
    return tir_command_fail(&error);
}

static enum tir_exit format(struct tir_context *cx, const char *path,
                            const struct tir_options *options)
{
    tir_str source, name = strcmp(path, "-") ? tir_str_of(path) : STR("<stdin>");
    tir_error error;
    if (!tir_source_read(&cx->arena, path, &source, &error))
        return tir_command_fail(&error);
    struct tir_text text;
    tir_text_init(&text, &cx->arena, 0);
    bool sound = tir_front_format(cx, name, source, &text);
    if (sound)
        return rewrite(path, source, tir_text_str(&text), options->given[TIR_OPTION_DRY]);
    struct tir_text rendered;
    const char *style = options->text[TIR_OPTION_DIAGNOSTICS];
    tir_text_init(&rendered, &cx->arena, 0);
    tir_diags_render(&cx->diags, style && !strcmp(style, "json") ? TIR_DIAG_JSON : TIR_DIAG_TEXT,
                     &rendered);
    tir_say_text(stderr, tir_text_str(&rendered));
    return TIR_EXIT_USAGE;
}

static enum tir_exit format_file(const char *path, const struct tir_options *options)
{
    struct tir_context *cx = calloc(1, sizeof(*cx));
    enum tir_exit status;
    if (!cx || setjmp(cx->out_of_memory)) {
        fputs("tirc: out of memory\n", stderr);
        status = TIR_EXIT_USAGE;
    } else {
        tir_context_init(cx, NULL);
        status = format(cx, path, options);
    }
    if (cx)
        tir_context_finish(cx);
    free(cx);
    return status;
}

enum tir_exit tir_command_fmt(struct tir_arena *arena, const struct tir_options *options)
{
    (void)arena;
    enum tir_exit worst = TIR_EXIT_FINE;
    if (!options->args.len) {
        fputs("tirc: fmt needs a file; - is standard input\n", stderr);
        return TIR_EXIT_USAGE;
    }
    for (uint32_t i = 0; i < options->args.len; i++) {
        enum tir_exit status = format_file(options->args.at[i], options);
        worst = TIR_MAX(worst, status);
    }
    return worst;
}
