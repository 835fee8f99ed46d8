// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the registers of products on warpgroups may be copied, and by whom.
//
// LLVM does not know that the registers of a product in flight are written, or read, until a wait:
// it may copy them, or give them to other values that are dead by then. So an accumulator that is
// still needed afterwards is copied, and A in registers is moved, in front of a fence in the same
// piece. What loops and branches give may share registers with other values that they give: as an
// accumulator it is moved in front of the fence, and what they give of a product is moved by its
// wait. Only sums that a loop carries, and nothing but products adds to, stay where they are. Where
// two begin with equal values, ptxas copies one of them where they are made: what is made in front
// of a wait is moved behind it.
#ifndef TIR_TARGET_NVPTX_WGMMA_SUMS_H
#define TIR_TARGET_NVPTX_WGMMA_SUMS_H

#include "base/bitset.h"
#include "target/nvptx/emit.h"

struct tir_wgmma { // one operation
    const struct tir_inst *inst;
    struct tir_value **registers;
    uint32_t steps, sums; // instructions; accumulators
    uint32_t a_count;     // registers of A in all steps
    uint32_t kept;        // accumulators that come in: all or none
};

struct tir_wgmma tir_wgmma_of(const struct tir_inst *inst);

// What stands in front of products for the accumulators that they add to: nothing, where they are
// in flight, or only products have written them since they were numbers; a fence; moves and a
// fence, for what loops and branches give, which LLVM may put into one register with other values
// that they give, and for numbers, for what is needed again and for what was made in front of a
// wait, which ptxas may copy. If a wait moves a sum back to where a loop carries it, LLVM may copy
// it wherever something adds to it: then it is moved, too, unless there is one such place, in front
// of a fence.
enum tir_wgmma_opening { TIR_WGMMA_BEGINS, TIR_WGMMA_FENCES, TIR_WGMMA_MOVES };

// last: of the products in one piece, of which p is the first.
enum tir_wgmma_opening tir_wgmma_opening(struct emit *e, const struct tir_wgmma *p,
                                         const struct tir_inst *last);
// The values that the instructions in regions behind inst, and loops as they begin, give on.
struct bitset tir_wgmma_given_behind(struct emit *e, const struct tir_inst *inst);
// Is v, which has been awaited, moved by its wait? given: behind that.
bool tir_wgmma_moves_on(struct emit *e, const struct bitset *given, const struct tir_value *v);
// What LLVM and ptxas take v to be: a pack of the halves of a word is the word. *again: is v, or
// what it is made of, used more than once?
const struct tir_value *tir_wgmma_register_of(const struct emit *e, const struct tir_value *v,
                                              bool *again);
// Does an operation `op` make v, or what a loop or a branch may give as it?
bool tir_wgmma_is_made_by(struct emit *e, const struct tir_value *v, enum tir_op op);

#endif
