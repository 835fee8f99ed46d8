// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operands that the role that fills slots turns, since wgmma takes elements of 8 and 32 bits with K
// contiguous alone.
//
//     let x: e4m3[128, 64] = load(ahead[0:+128, 0:+64]);
//     let y: e4m3[64, 128] = permute(x, permutation = [1, 0]);
//     store(slot[0:+64, 0:+128], y);
//
// In the layouts that tir_turned_of gives, the load is of ldmatrix.trans and the store of
// stmatrix (pass/lower/matrix.c): plain accesses would move bytes, or collide in banks. Words have
// squares of elements in each thread, as everywhere.
#ifndef TIR_PASS_LAYOUT_TURNED_H
#define TIR_PASS_LAYOUT_TURNED_H

#include "ir/ir.h"
#include "machine/budget.h"

// What warps turn: the layout of a tile, the load that it is renamed of, and the layout of that.
struct tir_turned {
    const struct tir_layout *layout;
    const struct tir_inst *load;
    const struct tir_layout *loaded;
};
// Of v over `warps`, which is stored as it is, or transposed. NULLs: v is no tile of bytes that
// permutes and reshapes alone make of a load, the load's rows are not stored as columns, or warps
// do not share the blocks of 16 x 16 out.
struct tir_turned tir_turned_of(struct tir_types *types, const struct tir_value *v, bool transposed,
                                uint32_t warps);
// Does a role turn v, and no more than that? Then it takes few registers.
bool tir_is_turned(struct tir_types *types, struct tir_value *v, bool transposed, uint32_t warps);

// What a role does that stores v beside products of `warps` warps. One warpgroup TURNS bytes beside
// warps that make factors in registers: a round is longer than it takes, and they need registers.
// Elsewhere products wait for it, so as many warps as multiply do (TURN_MANY).
enum tir_role_work tir_turning_work(const struct tir_func *f, struct tir_value *v, bool transposed,
                                    uint32_t warps);
// Gives v, which so many warps can turn, and what it is renamed of the layouts in which they do.
void tir_turn_with(struct tir_types *types, struct tir_value *v, uint32_t warps);

#endif
