// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles of different length.
#ifndef TIR_IR_UNEVEN_H
#define TIR_IR_UNEVEN_H

#include "ir/ir.h"

// Does the length of a tile depend on which one it is, in any role?
bool tir_tiles_differ(const struct tir_func *f, struct tir_arena *scratch);

#endif
