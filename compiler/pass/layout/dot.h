// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The machine instruction for a dot; shared by the layout pass, which lays out its operands, and
// lower_tile, which emits it.
#ifndef TIR_PASS_LAYOUT_DOT_H
#define TIR_PASS_LAYOUT_DOT_H

#include "ir/ir.h"
#include "machine/product.h"

struct tir_dot_plan {
    bool mma;                           // mma.sync; else fused multiply-adds on plain registers
    enum tir_word kind, b_kind;         // element kind of the mma; of B, if it is another one
    uint32_t depth;                     // K of one instruction
    uint32_t chunk;                     // half of it: 16 bytes of a row, but for f64
    const struct tir_scaled *scaled[2]; // of a and b, for a dot with scales; else NULL
    const char *refusal;                // why not mma, for the receipt
};

struct tir_dot_plan tir_dot_plan(const struct tir_target *target, const struct tir_inst *dot);

// An f16 accumulator that is not on warpgroups is computed as f32 and rounded.
void tir_widen_dots(struct tir_func *f);

#endif
