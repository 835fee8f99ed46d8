// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A table of measured configurations of any bytes. The program is sound, so the table alone decides
// whether there are errors; what it says that the program has goes into an artifact that is read
// back.

#include "fuzz.h"
#include "tir/artifact.h"
#include "tir/compiler.h"

#include <string.h>

static const char program[] =
    "kernel f<T = 64, U: float = 1.0, E = f32>(X: E[M, N], Y: out E[M, N])\n"
    "    config(T = 64) config(T = 32, U = 2.5)\n"
    "{\n"
    "    for (m, n) in tiles(M by 1, N by T) { Y[m:+1, n:+T] = X[m:+1, n:+T]; }\n"
    "}\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const tir_setting known = {{"M", 1}, {"4", 1}}; // of every other input
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    tir_compilation *compilation;
    tir_error error;
    options.tuned = (tir_str){(const char *)data, size};
    options.tuned_name = (tir_str){"table", 5};
    options.dims = &known;
    options.dim_count = size % 2;
    tir_status status = tir_compile((tir_str){"f.tir", 5}, (tir_str){program, strlen(program)},
                                    &options, &compilation, &error);
    FUZZ_CHECK(status == TIR_OK || status == TIR_ERR_DIAGNOSED);
    FUZZ_CHECK((status == TIR_OK) == (tir_compilation_error_count(compilation) == 0));
    if (status == TIR_OK) {
        tir_str artifact = tir_compilation_output(compilation, TIR_OUTPUT_ARTIFACT);
        const tir_artifact_desc *desc;
        FUZZ_CHECK(!tir_artifact_decode(artifact.ptr, artifact.len, NULL, &desc, &error));
        FUZZ_CHECK(desc->kernels[0].config_count == 2);
        tir_artifact_free(desc, NULL);
    }
    tir_compilation_destroy(compilation);
    return 0;
}
