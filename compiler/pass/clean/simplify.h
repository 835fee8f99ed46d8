// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Simplifying one instruction: the rules of fold that need no more than its operands.
#ifndef TIR_PASS_CLEAN_SIMPLIFY_H
#define TIR_PASS_CLEAN_SIMPLIFY_H

#include "ir/ir.h"

// A value equal to the instruction's only result: a constant, another value, or the result of
// instructions made at b. NULL: none. Operands may be reordered, or dropped if they have no effect
// (a mask that is true); then *changed is set.
struct tir_value *tir_simplify(struct tir_builder *b, struct tir_inst *inst, bool *changed);

#endif
