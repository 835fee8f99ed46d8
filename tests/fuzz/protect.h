// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs part of the compiler on one input, in a context of its own, and renders its diagnostics.
#ifndef TESTS_FUZZ_PROTECT_H
#define TESTS_FUZZ_PROTECT_H

#include "fuzz.h"
#include "ir/context.h"

typedef void (*fuzz_body)(struct tir_context *cx, struct tir_source_file *file);

static inline void fuzz_render(struct tir_context *cx, enum tir_diag_format format)
{
    struct tir_text out;
    tir_text_init(&out, &cx->arena, 0);
    tir_diags_render(&cx->diags, format, &out);
    FUZZ_CHECK(!out.truncated);
    FUZZ_CHECK(cx->diags.list.len == 0 || out.len > 0);
}

static inline void fuzz_protect(const uint8_t *data, size_t size, fuzz_body body)
{
    struct tir_context cx;
    if (setjmp(cx.out_of_memory)) {
        fprintf(stderr, "out of memory\n");
        abort();
    }
    tir_context_init(&cx, NULL);
    tir_str text = {(const char *)data, size};
    struct tir_source_file *file = tir_source_add(&cx.sources, STR("input.tir"), text);
    FUZZ_CHECK(file);
    body(&cx, file);
    fuzz_render(&cx, TIR_DIAG_TEXT);
    fuzz_render(&cx, TIR_DIAG_JSON);
    tir_context_finish(&cx);
}

#endif
