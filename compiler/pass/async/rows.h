// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Computing a tile that goes to shared memory a few rows at a time; a part of chunk.
#ifndef TIR_PASS_ASYNC_ROWS_H
#define TIR_PASS_ASYNC_ROWS_H

#include "pass/pass.h"

// Makes a loop of the store, and of what its value is computed from, if threads would hold many
// registers of it. False: they would not, or the rows cannot be computed by themselves.
bool tir_rows_build(struct tir_func *f, struct tir_pass_cx *cx, struct tir_inst *store);

#endif
