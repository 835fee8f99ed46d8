// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The front end on any bytes: a module or an error, and what is printed of a module reads back the
// same. What parses can be formatted, and formatting twice changes nothing.

#include "front/front.h"
#include "protect.h"

static void compile(struct tir_context *cx, struct tir_source_file *file)
{
    struct tir_module *m, *again;
    struct tir_text first, second;
    if (!tir_front_module(cx, file->name, file->text, NULL, &m)) {
        FUZZ_CHECK(cx->diags.error_count);
        return;
    }
    FUZZ_CHECK(!cx->diags.error_count);
    tir_text_init(&first, &cx->arena, 0);
    tir_text_init(&second, &cx->arena, 0);
    tir_print_module(&first, m);
    FUZZ_CHECK(tir_front_module(cx, STR("printed.tir"), tir_text_str(&first), NULL, &again));
    tir_print_module(&second, again);
    FUZZ_CHECK(tir_str_equal(tir_text_str(&first), tir_text_str(&second)));
}

static void format(struct tir_context *cx, struct tir_source_file *file)
{
    struct tir_text once, twice;
    tir_text_init(&once, &cx->arena, 0);
    tir_text_init(&twice, &cx->arena, 0);
    if (!tir_front_format(cx, file->name, file->text, &once))
        return;
    FUZZ_CHECK(tir_front_format(cx, STR("formatted.tir"), tir_text_str(&once), &twice));
    FUZZ_CHECK(tir_str_equal(tir_text_str(&once), tir_text_str(&twice)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_protect(data, size, compile);
    fuzz_protect(data, size, format);
    return 0;
}
