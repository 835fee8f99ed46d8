// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tensor maps of a kernel: what its tensor copies need to know before a launch.
//
// A tensor copy names its tensor, the box it moves, the swizzle of shared memory and what becomes
// of its elements; the machine wants these in a map that the launch encodes. Copies that
// agree in all of them share a map. The maps stand in order of first use, and are the last
// parameters of the entry (nvptx.h).
#ifndef TIR_TARGET_NVPTX_TENSOR_MAPS_H
#define TIR_TARGET_NVPTX_TENSOR_MAPS_H

#include "ir/ir.h"

struct tir_tensor_map_use {
    uint32_t param;   // of the kernel: a tensor
    uint32_t rank;    // the tensor's, 1 to 5
    uint32_t swizzle; // bytes: 0, 32, 64 or 128
    uint32_t bits;    // of an element in shared memory (tir_artifact_map); 0: as in the tensor
    // Elements of each dimension of the tensor that one copy moves, outermost first; 1 for a single
    // index.
    int64_t box[TIR_MAX_RANK];
    int64_t stride[TIR_MAX_RANK]; // from one of these to the next
    // Of a copy of pixels: how many, and the corners of base pixels, outermost dimension first.
    uint32_t pixels; // 0: it copies a box
    int64_t low[TIR_PIXEL_DIMS], high[TIR_PIXEL_DIMS];
};

struct tir_tensor_maps {
    struct tir_tensor_map_use *at;
    uint32_t len;
};

// The distinct maps of a kernel in form lowered, on the arena.
struct tir_tensor_maps tir_tensor_maps(struct tir_arena *arena, const struct tir_func *f);
// The place of a tensor copy's map among them.
uint32_t tir_tensor_map_index(const struct tir_tensor_maps *maps, const struct tir_func *f,
                              const struct tir_inst *inst);

#endif
