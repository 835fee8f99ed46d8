// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which numbers each role computes for itself.
#ifndef TIR_PASS_IN_ROLES_H
#define TIR_PASS_IN_ROLES_H

#include "ir/ir.h"

// Of a lowered kernel with roles that move registers. Returns whether anything changed.
bool tir_compute_in_roles(struct tir_func *f, struct tir_arena *scratch);

#endif
