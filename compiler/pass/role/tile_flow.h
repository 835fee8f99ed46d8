// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dimensions of the CTA's tile that a value depends on: CTAs whose tiles differ only in other
// dimensions have the same value.
#ifndef TIR_PASS_ROLE_TILE_FLOW_H
#define TIR_PASS_ROLE_TILE_FLOW_H

#include "ir/ir.h"

// By value id: bit d for dimension d of the tiles loop's start; all bits if the value may differ
// between CTAs for another reason, as values from shared memory may. The array lives in `arena`.
uint32_t *tir_tile_flow(struct tir_arena *arena, const struct tir_func *f);
// The same of one value of the array, of a constant, or of NULL.
uint32_t tir_flow_of(const uint32_t *flow, const struct tir_value *v);
// The dimensions that decide how often inst runs, by the loops and branches around it.
uint32_t tir_flow_of_control(const uint32_t *flow, const struct tir_inst *inst);

#endif
