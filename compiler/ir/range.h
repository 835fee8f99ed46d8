// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Known facts about integer values: an interval and a divisor. They are a snapshot of one function;
// values made later are unknown.
#ifndef TIR_IR_RANGE_H
#define TIR_IR_RANGE_H

#include "ir/ir.h"

struct tir_ranges;

struct tir_ranges *tir_ranges_new(struct tir_arena *arena, const struct tir_func *f);
// What is made in a branch of if x < c is made of an x below c, or of none: a role knows its warps.
struct tir_ranges *tir_ranges_in_branches(struct tir_arena *arena, const struct tir_func *f);
// Every value v takes (in any thread, any element of a tile) is in low .. high. Anything but an
// integer: the whole of int64.
void tir_range_get(const struct tir_ranges *ranges, const struct tir_value *v, int64_t *low,
                   int64_t *high);
// Does a sum or difference of integers stay within its type, whatever its operands are?
bool tir_range_is_exact(const struct tir_ranges *ranges, const struct tir_inst *sum);
// Is v never negative? Unlike the interval this takes sums and products of 64 bits not to overflow:
// it is for places in tensors.
bool tir_range_has_no_sign(const struct tir_ranges *ranges, const struct tir_value *v);
// A number that divides every value v takes; 0: v is always 0; 1: nothing is known.
uint64_t tir_range_divisor(const struct tir_ranges *ranges, const struct tir_value *v);

#endif
