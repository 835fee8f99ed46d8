// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// More values for loops to carry and for branches to give.
#ifndef TIR_IR_CARRY_H
#define TIR_IR_CARRY_H

#include "ir/ir.h"

// Makes the loop (for, while, tiles) carry one more value, `init` at first: gives what it is in the
// loop's body. The loop's last result is what it is after it; the body's yield must still be told.
struct tir_value *tir_carry_add(struct tir_func *f, struct tir_inst *loop, struct tir_value *init,
                                const char *name);
// One more result for a branch, whose blocks must each be told what to yield for it.
struct tir_value *tir_result_add(struct tir_func *f, struct tir_inst *inst,
                                 const struct tir_type *type, const char *name);
// The block yields v too.
void tir_yield_add(struct tir_func *f, struct tir_block *block, struct tir_value *v);

#endif
