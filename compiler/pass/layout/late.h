// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order of tiles beside products by mma.sync, where registers did not last.
#ifndef TIR_PASS_LAYOUT_LATE_H
#define TIR_PASS_LAYOUT_LATE_H

#include "pass/pass.h"

// Moves what makes a tile in front of what uses it first.
void tir_make_late(struct tir_func *f, struct tir_arena *scratch, enum tir_late late);

#endif
