// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many registers the scalars of a lowered kernel take, as far as that can be told before ptxas
// orders its instructions: the values that are live where each instruction stands.
#ifndef TIR_IR_LIVE_H
#define TIR_IR_LIVE_H

#include "ir/ir.h"

struct tir_live;
struct tir_live *tir_live_new(struct tir_arena *arena, const struct tir_func *f);
// The most 32-bit registers of a thread at a time in the blocks of inst.
uint32_t tir_live_most(const struct tir_live *l, const struct tir_inst *inst);
// The most while an instruction of the block runs that has no blocks itself.
uint32_t tir_live_most_in(const struct tir_live *l, const struct tir_block *block);
// Of one value. A condition is in a predicate, and an index of 64 bits mostly in 32 of them.
uint32_t tir_live_registers(const struct tir_value *v);
// What a thread has where inst stands: what its role asks for, else as at launch.
uint32_t tir_live_limit(const struct tir_func *f, const struct tir_inst *inst);
// The instruction where most is live of what a thread has there. NULL: nothing takes a register.
struct tir_fullest {
    const struct tir_inst *at;
    uint32_t live, limit;
};
struct tir_fullest tir_live_fullest(struct tir_arena *arena, const struct tir_func *f);

#endif
