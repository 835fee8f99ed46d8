// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products with scales: for which of them tensor cores have an instruction, and what the others
// are.
#ifndef TIR_PASS_LAYOUT_SCALE_H
#define TIR_PASS_LAYOUT_SCALE_H

#include "machine/product.h"

// The instruction for the product's factors and their scales. NULL: there is none, and why.
const struct tir_scaled *tir_scaled_of(const struct tir_inst *dot, const struct tir_target *target,
                                       const char **why);
#define TIR_SCALED_REFUSAL "dot: factors times scales in bf16, no block_scale: %s" // in the receipt
// Makes products of factors times scales, in bf16, of all that have scales, and elements in bytes
// of packed ones.
void tir_multiply_scales(struct tir_func *f);

#endif
