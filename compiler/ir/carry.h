// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// More operands and results: values that loops carry, branches give and reductions combine.
#ifndef TIR_IR_CARRY_H
#define TIR_IR_CARRY_H

#include "ir/ir.h"

// Makes the loop (for, while, tiles) carry one more value, which starts as `init`. Gives its value
// in the loop's body; the loop's last result is its value after the loop. The caller must add it to
// the body's yield.
struct tir_value *tir_carry_add(struct tir_func *f, struct tir_inst *loop, struct tir_value *init,
                                const char *name);
// Adds v to the end of the operands, which are a list there.
void tir_operand_add(struct tir_func *f, struct tir_inst *inst, struct tir_value *v);
// Adds a result to a branch or reduction. The caller must add a value to the yield of each of its
// blocks.
struct tir_value *tir_result_add(struct tir_func *f, struct tir_inst *inst,
                                 const struct tir_type *type, const char *name);
// The block yields v too.
void tir_yield_add(struct tir_func *f, struct tir_block *block, struct tir_value *v);

#endif
