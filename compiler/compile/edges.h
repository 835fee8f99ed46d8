// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementwise kernels on tensors of any length.
#ifndef TIR_COMPILE_EDGES_H
#define TIR_COMPILE_EDGES_H

#include "ir/ir.h"

// A copy of f, of which alignment is asked (tir_param.aligned), for tensors that only begin
// aligned and may end anywhere: its tiles are moved in vectors but for the last ones. NULL: f has
// tensors or accesses for which there is no such copy.
struct tir_func *tir_compile_edges(struct tir_func *f);

#endif
