// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tirc explain: how loops with products were scheduled, as tables, and as a picture; and what an
// artifact's receipt says.
#include <stdlib.h>

#include "driver/command/command.h"
#include "driver/compile.h"
#include "driver/file.h"
#include "driver/source.h"
#include "tir/artifact.h"

enum { MOST_BYTES = 1 << 30 };

static bool is_same(tir_str a, tir_str b)
{
    return a.len == b.len && !memcmp(a.ptr, b.ptr, a.len);
}

// Is the name that of the kernel, of a variant, of a sequence of launches, or of one of its steps?
static bool has_entry(const tir_artifact_desc *desc, const tir_artifact_kernel *kernel,
                      tir_str name)
{
    bool has = is_same(kernel->name, name);
    for (size_t i = 0; i < kernel->variant_count; i++)
        has |= is_same(kernel->variants[i].entry, name);
    for (size_t i = 0; i < kernel->sequence_count; i++) {
        const tir_artifact_sequence *sequence = &kernel->sequences[i];
        has |= is_same(sequence->name, name);
        for (size_t j = 0; j < sequence->step_count; j++) // which has no sequences
            has |= has_entry(desc, &desc->kernels[sequence->steps[j].kernel], name);
    }
    return has;
}

// Prints the parts of the receipt that are the kernel's: a line that is not indented names the
// entry of the part that it begins.
static bool print_part(const tir_artifact_desc *desc, const tir_artifact_kernel *kernel,
                       tir_error *error)
{
    const tir_str receipt = desc->receipt;
    bool is_wanted = false, ok = true;
    for (size_t at = 0, next; ok && at < receipt.len; at = next) {
        const char *line = receipt.ptr + at, *end = memchr(line, '\n', receipt.len - at);
        next = end ? (size_t)(end - receipt.ptr) + 1 : receipt.len;
        const char *colon = memchr(line, ':', next - at);
        if (*line != ' ')
            is_wanted = colon && has_entry(desc, kernel, (tir_str){line, (size_t)(colon - line)});
        ok = !is_wanted || tir_file_write("-", line, next - at, error);
    }
    return ok;
}

// The receipt, or what it says of the kernel that is asked for.
static bool print_receipt(const tir_artifact_desc *desc, const char *path, const char *wanted,
                          tir_error *error)
{
    if (!wanted)
        return tir_file_write("-", desc->receipt.ptr, desc->receipt.len, error);
    for (size_t i = 0; i < desc->kernel_count; i++)
        if (is_same(desc->kernels[i].name, (tir_str){wanted, strlen(wanted)}))
            return print_part(desc, &desc->kernels[i], error);
    return tir_fail(error, TIR_ERR_INVALID, "%s has no kernel %s", path, wanted);
}

// Prints the receipt if the file is an artifact. False: an error.
static bool explain_artifact(const char *path, const char *wanted, bool *is_artifact,
                             tir_error *error)
{
    const tir_artifact_desc *desc = NULL;
    char *bytes = NULL;
    size_t size;
    bool ok = tir_file_read(path, MOST_BYTES, &bytes, &size, error);
    *is_artifact = ok && size >= 4 && !memcmp(bytes, "TIRA", 4);
    if (*is_artifact)
        ok = !tir_artifact_decode(bytes, size, NULL, &desc, error) &&
             print_receipt(desc, path, wanted, error);
    tir_artifact_free(desc, NULL);
    free(bytes);
    return ok;
}

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
    const bool is_file = options->args.len == 1 && strcmp(options->args.at[0], "-") != 0;
    bool done = false, is_artifact = false;
    if (options->args.len != 1)
        tir_fail(&error, TIR_ERR_INVALID, "explain needs one file; tirc explain --help says more");
    else if (is_file && !explain_artifact(options->args.at[0], options->text[TIR_OPTION_KERNEL],
                                          &is_artifact, &error))
        done = false;
    else if (is_artifact)
        done = true;
    else if (!options->given[TIR_OPTION_SCHEDULES])
        tir_fail(&error, TIR_ERR_INVALID, "explain needs to know what: --schedule, or an artifact");
    else
        done = explain(arena, options, &compilation, &error);
    tir_compilation_destroy(compilation);
    return done ? TIR_EXIT_FINE : tir_command_fail(&error);
}
