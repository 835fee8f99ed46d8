// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Registers of a thread: the budget of each role, and the registers that tiles take.
#ifndef TIR_PASS_LAYOUT_BUDGET_H
#define TIR_PASS_LAYOUT_BUDGET_H

#include "pass/pass.h"

#define TIR_MOST_GROUPS 3 // warpgroups of products, in addition to a role that copies

// Of a thread of the role that fills slots, and of the role with the products; 0: as at launch.
struct tir_budget {
    uint32_t load, math;
};
// groups: warpgroups of products. computes: as many more compute the contents of slots.
struct tir_budget tir_budget_of(uint32_t groups, bool computes);

// Tiles in registers, before layouts exist.
struct tir_pressure;
struct tir_pressure *tir_pressure_new(struct tir_arena *arena, const struct tir_func *f);
// 32-bit registers of all threads together that hold tiles while the dot runs: its accumulator and
// the tiles that are used after it, without its operand A.
int64_t tir_pressure_at(const struct tir_pressure *p, const struct tir_inst *dot);
// Registers of one copy of its operand A; 0: it is not in registers.
int64_t tir_pressure_of_a(const struct tir_inst *dot);
// Is v needed in registers at all, or only in shared memory?
bool tir_pressure_needs(const struct tir_pressure *p, const struct tir_value *v);

#endif
