// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What loops of products on warpgroups hold in registers for nothing.
#ifndef TIR_PASS_HELD_H
#define TIR_PASS_HELD_H

#include "ir/ir.h"

// Of a lowered kernel. Returns whether anything changed.
bool tir_hold_less(struct tir_func *f, struct tir_arena *scratch);

#endif
