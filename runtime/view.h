// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tensor argument, wherever it came from.
#ifndef TIR_RUNTIME_VIEW_H
#define TIR_RUNTIME_VIEW_H

#include <stdbool.h>

#include "tir/runtime.h"

struct tensor_view {
    uint64_t data;
    tir_element element;
    uint32_t rank;
    bool read_only;
    const int64_t *shape;
    const int64_t *strides; // NULL: contiguous
};

// The view of a DLPack argument in memory that the device can address. NULL, or what is wrong.
const char *tir_dlpack_view(const tir_rt_device_info *device, const tir_rt_arg *arg,
                            struct tensor_view *out);

#endif
