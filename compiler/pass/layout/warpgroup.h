// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products on warpgroups (wgmma): whether a kernel's products run there, and on how many.
#ifndef TIR_PASS_LAYOUT_WARPGROUP_H
#define TIR_PASS_LAYOUT_WARPGROUP_H

#include "base/bitset.h"
#include "pass/pass.h"

// Marks the dots of f that run on warpgroups with the engine wgmma and chooses f's threads; the
// receipt says why the others do not. Before layouts exist.
void tir_plan_warpgroups(struct tir_func *f, struct tir_pass_cx *cx);
// Whether it would mark any.
bool tir_may_use_warpgroups(struct tir_func *f, struct tir_pass_cx *cx);
// Does the dot run on warpgroups?
bool tir_dot_on_warpgroups(const struct tir_inst *dot);
// Does any dot of f?
bool tir_has_warpgroup_dot(const struct tir_func *f);
bool tir_has_tensor_memory(const struct tir_func *f); // that it allocates
// The load of tile v, through transposes, if its value is loaded unchanged. NULL: it is computed.
struct tir_inst *tir_loaded_by(struct tir_value *v);
// The swizzle of x in shared memory, as the products that take it can start where they must: a
// warpgroup's columns of an operand begin where a swizzled row does.
uint32_t tir_dot_swizzle(const struct tir_func *f, const struct tir_value *x);
// Does operand a of a dot on warpgroups come from registers?
bool tir_a_in_registers(const struct tir_inst *dot);
// Is v computed from what products have given? Then no other role can compute it ahead.
bool tir_follows_from_products(struct tir_arena *scratch, const struct tir_func *f,
                               const struct tir_value *v);
// Results of dots, by id, whose A comes so, and leaves them for shared memory. Warpgroups that
// share rows of the sums take the same rows of A, of which each has computed a part: they send each
// other the rest through shared memory. It stays there where registers do not suffice for the
// copies of a round, and shared memory has room for it beside all other operands.
struct bitset tir_sent_operands(struct tir_arena *scratch, const struct tir_func *f,
                                const struct tir_target *target);

#endif
