// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which constants are added last, so that sums of others do not wait in registers for a loop.
#ifndef TIR_PASS_OUTWARD_H
#define TIR_PASS_OUTWARD_H

#include "ir/ir.h"

// Of a lowered kernel. Returns whether anything changed.
bool tir_add_constants_last(struct tir_func *f, struct tir_arena *scratch);

#endif
