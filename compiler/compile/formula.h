// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values of the host block as formulas of the artifact.
#ifndef TIR_COMPILE_FORMULA_H
#define TIR_COMPILE_FORMULA_H

#include "ir/context.h"
#include "ir/ir.h"

// The value of the host block as a formula. False: a diagnostic was reported.
bool tir_compile_formula(struct tir_context *cx, const struct tir_func *f,
                         const struct tir_value *v, struct tir_span span, tir_formula *out);
// Which tile it is, in a loop over tiles.
bool tir_compile_is_tile(const struct tir_value *v);
// A value as the first tile has it, for an estimate, on which no result depends. False: there is no
// such formula.
bool tir_compile_estimate(struct tir_context *cx, const struct tir_func *f,
                          const struct tir_value *v, tir_formula *out);

#endif
