// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tirc explain: how loops with products were scheduled, as tables, and as a picture.
#include "driver/command/command.h"
#include "driver/compile.h"
#include "driver/file.h"
#include "driver/source.h"

static bool explain(struct tir_arena *arena, const struct tir_options *options,
                    tir_compilation **compilation, tir_error *error)
{
    struct tir_compile_request request = {.arena = arena,
                                          .options = options,
                                          .path = options->args.at[0],
                                          .outputs = 1u << TIR_OUTPUT_SCHEDULE |
                                                     1u << TIR_OUTPUT_SCHEDULE_SVG,
                                          .log = stderr};
    const char *svg = options->text[TIR_OPTION_SVG];
    if (!tir_source_read(arena, request.path, &request.source, error) ||
        !tir_compile_source(&request, compilation, error))
        return false;
    const tir_str picture = tir_compilation_output(*compilation, TIR_OUTPUT_SCHEDULE_SVG);
    const tir_str text = tir_compilation_output(*compilation, TIR_OUTPUT_SCHEDULE);
    if (svg && !tir_file_write(svg, picture.ptr, picture.len, error))
        return false;
    return (svg && !strcmp(svg, "-")) || tir_file_write("-", text.ptr, text.len, error);
}

enum tir_exit tir_command_explain(struct tir_arena *arena, const struct tir_options *options)
{
    tir_error error = {.status = TIR_ERR_INVALID};
    tir_compilation *compilation = NULL;
    bool done = false;
    if (options->args.len != 1)
        tir_fail(&error, TIR_ERR_INVALID, "explain needs one file; tirc explain --help says more");
    else if (!options->given[TIR_OPTION_SCHEDULES])
        tir_fail(&error, TIR_ERR_INVALID, "explain needs to know what: --schedule");
    else
        done = explain(arena, options, &compilation, &error);
    tir_compilation_destroy(compilation);
    return done ? TIR_EXIT_FINE : tir_command_fail(&error);
}
