// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is computed in the branches that give it sums.
#ifndef TIR_PASS_IN_BRANCHES_H
#define TIR_PASS_IN_BRANCHES_H

#include "ir/ir.h"

// Of a lowered kernel. Returns whether anything changed.
bool tir_compute_in_branches(struct tir_func *f, struct tir_arena *scratch);

#endif
