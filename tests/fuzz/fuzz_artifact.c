// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The artifact reader on any bytes. What it accepts must encode and decode to the same bytes again,
// and its formulas must evaluate to a value or an error.

#include "fuzz.h"

#include <string.h>

#include "tir/artifact.h"

static void evaluate(const tir_formula *formula)
{
    static const int64_t values[TIR_MAX_PARAMS] = {0, 1, -1, 7, INT64_MAX, INT64_MIN, 4096};
    int64_t out;
    (void)!tir_formula_eval(formula, values, values, &out, NULL);
}

static void check_kernel(const tir_artifact_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->condition_count; i++)
        evaluate(&kernel->conditions[i].holds);
    for (uint32_t i = 0; i < kernel->variant_count; i++) {
        const tir_artifact_variant *variant = &kernel->variants[i];
        FUZZ_CHECK(tir_artifact_param_bytes(kernel, variant) <= TIR_MAX_PARAM_BYTES);
        if (variant->when.count)
            evaluate(&variant->when);
        for (int axis = 0; axis < 3; axis++)
            evaluate(&variant->grid[axis]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const tir_artifact_desc *desc, *again;
    if (tir_artifact_decode(data, size, NULL, &desc, NULL) != TIR_OK) {
        FUZZ_CHECK(!desc);
        return 0;
    }
    for (uint32_t i = 0; i < desc->kernel_count; i++)
        check_kernel(&desc->kernels[i]);
    uint8_t *first, *second;
    size_t first_size, second_size;
    FUZZ_CHECK(tir_artifact_encode(desc, NULL, &first, &first_size, NULL) == TIR_OK);
    FUZZ_CHECK(tir_artifact_decode(first, first_size, NULL, &again, NULL) == TIR_OK);
    FUZZ_CHECK(tir_artifact_encode(again, NULL, &second, &second_size, NULL) == TIR_OK);
    FUZZ_CHECK(first_size == second_size && memcmp(first, second, first_size) == 0);
    tir_artifact_bytes_free(first, first_size, NULL);
    tir_artifact_bytes_free(second, second_size, NULL);
    tir_artifact_free(desc, NULL);
    tir_artifact_free(again, NULL);
    return 0;
}
