// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The registers that tiles take, before layouts exist.
#ifndef TIR_PASS_LAYOUT_PRESSURE_H
#define TIR_PASS_LAYOUT_PRESSURE_H

#include "pass/pass.h"

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
