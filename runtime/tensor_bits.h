// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor maps field by field, for instructions that change a map that is not complete yet.
#ifndef TIR_RUNTIME_TENSOR_BITS_H
#define TIR_RUNTIME_TENSOR_BITS_H

#include <string.h>

#include "tir/tensor_map.h"

// The fields that tensormap.replace can write.
enum tir_map_field {
    TIR_MAP_ADDRESS,
    TIR_MAP_RANK,
    TIR_MAP_BOX,
    TIR_MAP_DIM,
    TIR_MAP_STRIDE,
    TIR_MAP_STEP,
    TIR_MAP_TYPE,
    TIR_MAP_INTERLEAVE,
    TIR_MAP_SWIZZLE,
    TIR_MAP_ATOMICITY, // pieces of 16 bytes are all there is: the bits stay 0
    TIR_MAP_FILL
};

// Writes one field as its member of tir_tensor_map has it, which must fit, and no other bit: the
// code that ptxas makes of tensormap.replace does the same. `index`: the dimension.
void tir_tensor_map_set(uint8_t bytes[TIR_TENSOR_MAP_BYTES], enum tir_map_field field,
                        uint32_t index, uint64_t value);
// The same for the address of a map that was encoded, in whose word no other bits are set.
static inline void tir_tensor_map_move(uint8_t bytes[TIR_TENSOR_MAP_BYTES], uint64_t address)
{
    memcpy(bytes, &address, sizeof address);
}
// Whether it is one of im2col.
int tir_tensor_map_is_im2col(const uint8_t bytes[TIR_TENSOR_MAP_BYTES]);
// The same as tir_tensor_map_decode for maps that instructions have made. Those never write what
// the driver works out from other fields, nor clear the dimensions above a rank that they lower.
tir_status tir_tensor_map_read(const uint8_t bytes[TIR_TENSOR_MAP_BYTES], tir_tensor_map *out,
                               tir_error *error);

#endif
