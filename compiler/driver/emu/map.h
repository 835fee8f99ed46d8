// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor maps among the parameters of a PTX kernel.
#ifndef TIR_DRIVER_EMU_MAP_H
#define TIR_DRIVER_EMU_MAP_H

#include "driver/value/tensor.h"
#include "tir/tensor_map.h"

// "tmap:0:box=64x128:swizzle=128": a map of argument 0. Lists are in the order of its shape.
struct tir_emu_map {
    uint32_t of;
    tir_tensor_map map; // the modes that the word names
    uint32_t box_count, step_count;
    int64_t box[TIR_TENSOR_MAP_RANK], steps[TIR_TENSOR_MAP_RANK];
};

bool tir_emu_map_parse(const char *word, struct tir_emu_map *out, tir_error *error);
// The bytes of the map over a tensor whose first element is at `address`.
bool tir_emu_map_encode(const struct tir_emu_map *map, const char *word,
                        const struct tir_tensor *tensor, uint64_t address,
                        uint8_t bytes[TIR_TENSOR_MAP_BYTES], tir_error *error);

#endif
