// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operands of products that are rounded on their way to shared memory.
#ifndef TIR_PASS_LAYOUT_ROUNDED_H
#define TIR_PASS_LAYOUT_ROUNDED_H

#include "pass/pass.h"

// Loads tf32 of f32 for products, where tensor copies can round.
void tir_round_operands(struct tir_func *f, struct tir_pass_cx *cx);
// The casts of those again whose products do not run on warpgroups after all.
void tir_unround_operands(struct tir_func *f);

#endif
