// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operands that the role that fills slots turns, since wgmma takes elements of 8 and 32 bits with K
// contiguous alone.
//
//     let x: e4m3[128, 64] = load(ahead[0:+128, 0:+64]);
//     let y: e4m3[64, 128] = permute(x, permutation = [1, 0]);
//     store(slot[0:+64, 0:+128], y);
//
// In the layout that tir_turned_layout gives, the load is of ldmatrix.trans and the store of
// stmatrix (pass/lower/matrix.c): plain accesses would move bytes, or collide in banks. Words have
// squares of elements in each thread, as everywhere.
#ifndef TIR_PASS_LAYOUT_TURNED_H
#define TIR_PASS_LAYOUT_TURNED_H

#include "ir/ir.h"

// The layout over `warps` of v, which is stored as it is, or transposed. NULL: v is no tile of
// bytes that permutes and reshapes alone make of a load, the load's rows are not stored as columns,
// or warps do not share the blocks of 16 x 16 out.
const struct tir_layout *tir_turned_layout(struct tir_types *types, const struct tir_value *v,
                                           bool transposed, uint32_t warps);
// Does the role turn v, and no more than that? Then it takes few registers.
bool tir_is_turned(struct tir_types *types, struct tir_value *v, bool transposed, uint32_t warps);

#endif
