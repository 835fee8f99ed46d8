// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the lanes of each warp exchange a tile, so that it has another layout.
#ifndef TIR_IR_LAYOUT_EXCHANGE_H
#define TIR_IR_LAYOUT_EXCHANGE_H

#include "ir/layout.h"

#define TIR_EXCHANGE_SWAPS 3 // at most: each doubles the registers that are chosen among
#define TIR_LANE_BITS      5

// Strides, of registers or lanes. A coordinate's digit is a register or a lane in each of the two
// layouts. As many digits are lanes in both or in neither, the others come in pairs: one that
// leaves the registers for the lanes, and one that comes for it.
struct tir_exchange {
    struct {
        uint32_t extent, from, to;
    } kept[2 * TIR_MAX_ITERS]; // registers in both; those with the smallest strides first
    uint32_t kept_count;
    struct {
        uint32_t from, to;
    } lanes[TIR_LANE_BITS]; // lanes in both, of extent 2
    uint32_t lane_count;
    struct {
        uint32_t from_register, to_lane; // of one digit of extent 2
        uint32_t from_lane, to_register; // of another
    } swaps[TIR_EXCHANGE_SWAPS];
    uint32_t swap_count;
};

// False: elements change warps, or lanes have copies, or too much would be exchanged.
bool tir_layout_exchange(const struct tir_layout *from, const struct tir_layout *to,
                         struct tir_exchange *exchange);

// Does each element stay in its thread, perhaps in another register?
bool tir_layout_keeps_threads(const struct tir_layout *from, const struct tir_layout *to);

#endif
