// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arithmetic in the functions that math.c and math64.c emit.
#ifndef TIR_TARGET_NVPTX_MATH_H
#define TIR_TARGET_NVPTX_MATH_H

#include "target/nvptx/emit.h"

static inline V add(struct emit *e, V x, V y)
{
    return LLVMBuildFAdd(e->b, x, y, "");
}

static inline V sub(struct emit *e, V x, V y)
{
    return LLVMBuildFSub(e->b, x, y, "");
}

static inline V mul(struct emit *e, V x, V y)
{
    return LLVMBuildFMul(e->b, x, y, "");
}

static inline V fma_const(struct emit *e, V x, double y, V z)
{
    return tir_emit_fma(e, x, tir_emit_const(x, y), z);
}

#define polynomial(e, x, table) tir_emit_polynomial((e), (x), (table), TIR_COUNT_OF(table))

#endif
