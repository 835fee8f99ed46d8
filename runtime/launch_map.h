// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor maps of a launch's arguments.
#ifndef TIR_RUNTIME_LAUNCH_MAP_H
#define TIR_RUNTIME_LAUNCH_MAP_H

#include "tir/artifact.h"
#include "tir/tensor_map.h"

// Writes the tensor map that the recipe asks for of this argument for `param`; strides are in
// elements, and no reach of the tensor overflows. TIR_ERR_INVALID: there is none, and why.
tir_status tir_launch_map(const tir_artifact_map *recipe, const tir_artifact_param *param,
                          uint64_t data, const int64_t *shape, const int64_t *strides,
                          uint8_t bytes[TIR_TENSOR_MAP_BYTES], tir_error *error);

#endif
