// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compiler up to LLVM on any bytes, through its public interface, with its own checks after
// every pass. The program after the last pass must read back as itself.

#include "fuzz.h"
#include "tir/compiler.h"

#include <string.h>

static tir_compilation *compile(tir_str source)
{
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.outputs = 1u << TIR_OUTPUT_IR;
    options.verify = 1;
    tir_compilation *compilation;
    tir_error error;
    tir_status status =
        tir_compile((tir_str){"input.tir", 9}, source, &options, &compilation, &error);
    if (status != TIR_OK && status != TIR_ERR_DIAGNOSED)
        fprintf(stderr, "%s: %s\n", tir_status_name(status), error.message);
    FUZZ_CHECK(status == TIR_OK || status == TIR_ERR_DIAGNOSED);
    FUZZ_CHECK((status == TIR_OK) == (tir_compilation_error_count(compilation) == 0));
    if (status == TIR_ERR_DIAGNOSED)
        FUZZ_CHECK(tir_compilation_diagnostics(compilation).len);
    return compilation;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tir_compilation *first = compile((tir_str){(const char *)data, size});
    if (tir_compilation_error_count(first) == 0) {
        tir_str ir = tir_compilation_output(first, TIR_OUTPUT_IR);
        tir_compilation *second = compile(ir);
        tir_str again = tir_compilation_output(second, TIR_OUTPUT_IR);
        FUZZ_CHECK(tir_compilation_error_count(second) == 0);
        FUZZ_CHECK(ir.len == again.len && memcmp(ir.ptr, again.ptr, ir.len) == 0);
        tir_compilation_destroy(second);
    }
    tir_compilation_destroy(first);
    return 0;
}
