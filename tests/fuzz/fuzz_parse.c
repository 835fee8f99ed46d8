// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parser on any bytes. No module means that there is an error.

#include "front/parse/parse.h"
#include "protect.h"

static void parse(struct tir_context *cx, struct tir_source_file *file)
{
    FUZZ_CHECK(tir_parse(cx, file) || cx->diags.error_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_protect(data, size, parse);
    return 0;
}
