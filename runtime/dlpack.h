// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// DLPack tensors as arguments.
#ifndef TIR_RUNTIME_DLPACK_H
#define TIR_RUNTIME_DLPACK_H

#include <stdbool.h>

#include "tir/runtime.h"

// A DLPack argument as a tensor in memory that the device can address. NULL, or what is wrong.
const char *tir_dlpack_view(const tir_rt_device_info *device, const tir_rt_arg *arg,
                            tir_rt_tensor *out, bool *read_only);

#endif
