// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Row kernels on rows that begin anywhere.
#ifndef TIR_COMPILE_ASKEW_H
#define TIR_COMPILE_ASKEW_H

#include "ir/ir.h"

// A copy of f, whose tiles have whole rows of tensors, for rows that begin anywhere: they are moved
// in vectors all the same. NULL: f has tiles, or does with them, what there is no such copy for.
struct tir_func *tir_compile_askew(struct tir_func *f);

#endif
