// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Simplifying one instruction: the rules of fold that need no more than its operands.
#ifndef TIR_PASS_CLEAN_SIMPLIFY_H
#define TIR_PASS_CLEAN_SIMPLIFY_H

#include "ir/ir.h"

// A value that equals the instruction's only result, which may be a constant, another value, or the
// result of instructions made at b. NULL: none. Operands may be put in another order, or dropped
// where they say nothing (a mask that is true); then *changed is set.
struct tir_value *tir_simplify(struct tir_builder *b, struct tir_inst *inst, bool *changed);

#endif
