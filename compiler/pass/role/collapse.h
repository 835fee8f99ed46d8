// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Nests of loops with products, as one loop.
#ifndef TIR_PASS_ROLE_COLLAPSE_H
#define TIR_PASS_ROLE_COLLAPSE_H

#include "pass/pass.h"

// Makes one loop of each two of which the outer one does nothing but the inner one. True: something
// changed.
bool tir_collapse_loops(struct tir_func *f, struct tir_pass_cx *cx);

#endif
