// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions with a function, of the first elements along their axis alone.
#ifndef TIR_PASS_LAYOUT_PARTIAL_H
#define TIR_PASS_LAYOUT_PARTIAL_H

#include "ir/ir.h"

// Whether the reduction can have one more tile.
bool tir_may_be_partial(const struct tir_inst *reduce);
// It leaves alone what lies outside of `inside`, a tile of bool of the operands' shape.
void tir_make_partial(struct tir_func *f, struct tir_inst *reduce, struct tir_value *inside);

#endif
