// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels whose sizes are multiples of their tiles.
#ifndef TIR_COMPILE_WHOLE_H
#define TIR_COMPILE_WHOLE_H

#include "ir/ir.h"

// Makes it a condition that f's sizes are multiples of its tiles (tir_func.when_count), so
// that it needs no tests for edges. If f walks no size in tiles it is left unchanged.
void tir_compile_whole_tiles(struct tir_func *f);
// Makes these values of the host block conditions that choose f.
void tir_compile_demand(struct tir_func *f, struct tir_value *const *conditions, uint32_t count);

#endif
