// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles of rank 3 as the matrices that they consist of.
#ifndef TIR_PASS_ROLE_MATRICES_H
#define TIR_PASS_ROLE_MATRICES_H

#include "pass/pass.h"

// Loops carry the matrices of sums of rank 3, and what becomes of these is stored matrix by matrix.
// False: there were none.
bool tir_take_matrices_apart(struct tir_func *f, const struct tir_pass_cx *cx);

#endif
