// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The whole compiler on any bytes, down to PTX, with LLVM's verifier on: what the checks before
// LLVM let through, LLVM must take.

#include "fuzz.h"
#include "tir/compiler.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.outputs = 1u << TIR_OUTPUT_ARTIFACT | 1u << TIR_OUTPUT_PTX;
    options.verify = 1;
    tir_compilation *compilation;
    tir_error error;
    tir_str source = {(const char *)data, size};
    tir_status status =
        tir_compile((tir_str){"input.tir", 9}, source, &options, &compilation, &error);
    if (status != TIR_OK && status != TIR_ERR_DIAGNOSED)
        fprintf(stderr, "%s: %s\n", tir_status_name(status), error.message);
    FUZZ_CHECK(status == TIR_OK || status == TIR_ERR_DIAGNOSED);
    if (status == TIR_OK)
        FUZZ_CHECK(tir_compilation_output(compilation, TIR_OUTPUT_PTX).len);
    tir_compilation_destroy(compilation);
    return 0;
}
