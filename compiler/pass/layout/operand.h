// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From an operand of a product to the tile that is brought for it.
//
//     let x: bf16[8, 8, 64] = load(X[b, y:+8, x:+8, c:+64]);   // brought
//     let r: bf16[64, 64] = reshape(x);                        // not turned
//     let a: bf16[64, 64] = permute(r, permutation = [1, 0]);  // operand
#ifndef TIR_PASS_LAYOUT_OPERAND_H
#define TIR_PASS_LAYOUT_OPERAND_H

#include "ir/ir.h"

// What v, of rank 2, is a transpose of.
struct tir_value *tir_unturned(struct tir_value *v, bool *turned);
// What lies in memory for x, which is not turned: the tile that x has the rows of, if it is loaded
// from a tensor; else x.
struct tir_value *tir_brought(struct tir_value *x);
// The load that v has the elements of, in another order; NULL: there is none.
struct tir_inst *tir_reordered_load(const struct tir_value *v);
// The buffer in the shape of a tile.
struct tir_value *tir_reshaped_buffer(struct tir_builder *b, struct tir_value *buffer,
                                      const struct tir_type *tile);

#endif
