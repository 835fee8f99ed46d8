// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The .npy reader on any bytes. What it reads as a tensor is written and read back unchanged.

#include "driver/value/npy.h"
#include "fuzz.h"

#include <string.h>

enum { LARGEST = 1 << 16 }; // elements of a tensor worth reading

static bool is_small(const struct tir_npy *npy)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < npy->rank; i++) {
        FUZZ_CHECK(npy->shape[i] >= 0);
        if (npy->shape[i] > LARGEST || (count *= npy->shape[i] + 1) > LARGEST)
            return false;
    }
    return true;
}

static void read_back(struct tir_tensor *tensor)
{
    uint8_t *bytes;
    size_t size;
    struct tir_npy npy;
    struct tir_tensor again;
    tir_error error;
    FUZZ_CHECK(tir_npy_write(tensor, &bytes, &size, &error));
    FUZZ_CHECK(tir_npy_header("written", bytes, size, &npy, &error));
    FUZZ_CHECK(
        tir_tensor_make(&again, tensor->elem, tensor->rank, tensor->shape, NULL, 0, 0, &error));
    FUZZ_CHECK(tir_npy_read("written", bytes, size, &npy, &again, &error));
    FUZZ_CHECK(again.size == tensor->size && !memcmp(again.bytes, tensor->bytes, again.size));
    tir_tensor_free(&again);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tir_npy npy;
    tir_error error;
    if (!tir_npy_header("input", data, size, &npy, &error)) {
        FUZZ_CHECK(error.message[0]);
        return 0;
    }
    FUZZ_CHECK(npy.rank <= TIR_MAX_RANK && npy.data <= size);
    if (!is_small(&npy))
        return 0;
    for (enum tir_elem elem = 0; elem < TIR_ELEM_COUNT; elem++) {
        struct tir_tensor tensor;
        if (!tir_tensor_make(&tensor, elem, npy.rank, npy.shape, NULL, 0, 0, &error))
            continue;
        if (tir_npy_read("input", data, size, &npy, &tensor, &error))
            read_back(&tensor);
        tir_tensor_free(&tensor);
    }
    return 0;
}
