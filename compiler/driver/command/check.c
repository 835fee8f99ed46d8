// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tirc check: diagnostics of whole files, nothing written. It makes all that build and run make, so
// what it accepts they take.
#include "driver/command/command.h"
#include "driver/command/expect.h"
#include "driver/compile.h"
#include "driver/say.h"
#include "driver/source.h"

static enum tir_exit expected(struct tir_arena *arena, const struct tir_compile_request *request,
                              const tir_compilation *compilation)
{
    struct tir_text text;
    tir_text_init(&text, arena, 0);
    if (tir_expect_check(arena, tir_str_of(request->path), request->source,
                         tir_compilation_diagnostics(compilation), &text))
        return TIR_EXIT_FINE;
    tir_say_text(stderr, tir_text_str(&text));
    return TIR_EXIT_WRONG;
}

static enum tir_exit check(struct tir_arena *arena, const struct tir_options *options,
                           const char *path)
{
    tir_error error = {.status = TIR_ERR_INVALID};
    struct tir_compile_request request = {.arena = arena,
                                          .options = options,
                                          .path = path,
                                          .outputs = 1u << TIR_OUTPUT_ARTIFACT,
                                          .log = stdout,
                                          .quiet = options->given[TIR_OPTION_EXPECT]};
    tir_compilation *compilation = NULL;
    enum tir_exit status = TIR_EXIT_FINE;
    bool done = tir_source_read(arena, path, &request.source, &error) &&
                tir_compile_source(&request, &compilation, &error);
    if (request.quiet && compilation)
        status = expected(arena, &request, compilation);
    else if (!done)
        status = tir_command_fail(&error);
    tir_compilation_destroy(compilation);
    return status;
}

enum tir_exit tir_command_check(struct tir_arena *arena, const struct tir_options *options)
{
    enum tir_exit worst = TIR_EXIT_FINE;
    if (!options->args.len) {
        fputs("tirc: check needs a file; - is standard input\n", stderr);
        return TIR_EXIT_USAGE;
    }
    for (uint32_t i = 0; i < options->args.len; i++) {
        enum tir_exit status = check(arena, options, options->args.at[i]);
        worst = TIR_MAX(worst, status);
    }
    return worst;
}
