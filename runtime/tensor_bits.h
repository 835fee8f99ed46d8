// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor maps field by field, without the rules between the fields: for instructions that change
// one field of a map that is not complete yet.
#ifndef TIR_RUNTIME_TENSOR_BITS_H
#define TIR_RUNTIME_TENSOR_BITS_H

#include "tir/tensor_map.h"

// Writes all bits of a map whose members fit their fields.
void tir_tensor_map_pack(const tir_tensor_map *map, uint8_t bytes[TIR_TENSOR_MAP_BYTES]);
// Reads the fields; those of no meaning for the kind and the rank too. 0 when they name a type or
// an interleave that does not exist, or a rank above 5.
int tir_tensor_map_unpack(const uint8_t bytes[TIR_TENSOR_MAP_BYTES], tir_tensor_map *out);
// The rules: what the encoder refuses.
tir_status tir_tensor_map_check(const tir_tensor_map *map, tir_error *error);

#endif
