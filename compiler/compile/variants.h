// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The variants of a kernel, which launches choose among by what their arguments are.
#ifndef TIR_COMPILE_VARIANTS_H
#define TIR_COMPILE_VARIANTS_H

#include "compile/code.h"
#include "compile/request.h"

// Adds f and its copies, each with the facts that it relies on, or f alone if variants
// make no sense. Of a configuration after the first it adds only the variants that a launch should
// choose among. cost: that of f, or none.
void tir_compile_variants(struct tir_context *cx, const struct tir_request *request,
                          struct tir_kernel_code *kernel, struct tir_func *f, tir_formula cost);
bool tir_compile_has_dot(const struct tir_func *f);
// The conditions of the variant, as a clause; empty: it takes any arguments.
void tir_compile_variant_describe(struct tir_text *out, const struct tir_func *f);

#endif
