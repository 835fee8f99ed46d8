// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor memory is stored in pieces where registers do not last.
//
// The registers of one instruction follow each other, and ptxas finds no 128 or 64 in a row between
// others that are live: it spilled 300 bytes where none with pieces of 32.
//
//     tmem_st(at, s0, ..., s63);    ->    tmem_st(at, s0, ..., s31);
//                                         let next: i32 = add(at, 32);
//                                         tmem_st(next, s32, ..., s63);
//
// Loads are cut where each piece needs only the registers that the one before it has freed
// (in_branches.c): elsewhere a loop of attention spilled 48 bytes then, and none without. Left
// alone are loads that reduce, what moves 16 lanes, and blocks beside which registers last: each
// piece waits for itself.

#include "pass/clean/pieces.h"

#include "base/vec.h"
#include "ir/live.h"
#include "ir/walk.h"
#include "machine/budget.h"

static uint32_t most_in(const struct tir_live *live, const struct tir_block *block)
{
    uint32_t most = 0;
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next)
        if (!inst->region_count)
            most = TIR_MAX(most, tir_live_most(live, inst));
    return most;
}

// Registers that inst moves by 32x32b; 0: it is another one.
static uint32_t words_of(const struct tir_inst *inst)
{
    if (tir_attr_find(inst, TIR_ATTR_row_bits) || tir_attr_find(inst, TIR_ATTR_kind))
        return 0;
    return inst->op == TIR_OP_TMEM_LD   ? inst->result_count
           : inst->op == TIR_OP_TMEM_ST ? inst->operand_count - 1
                                        : 0;
}

bool tir_cut_in_pieces(struct tir_func *f, struct tir_inst *inst, struct tir_map *pieces)
{
    const uint32_t words = words_of(inst);
    if (words <= TIR_BUDGET_PIECE_WORDS)
        return false;
    struct tir_builder b = tir_builder_before(f, inst);
    const bool loads = inst->op == TIR_OP_TMEM_LD;
    for (uint32_t done = 0; done < words; done += TIR_BUDGET_PIECE_WORDS) {
        const uint32_t n = TIR_MIN(words - done, TIR_BUDGET_PIECE_WORDS);
        struct tir_value *operands[1 + TIR_BUDGET_PIECE_WORDS] = {inst->operands[0]};
        const struct tir_type *types[TIR_BUDGET_PIECE_WORDS];
        if (done)
            operands[0] =
                tir_binary(&b, TIR_OP_ADD, operands[0], tir_const_int(f, operands[0]->type, done));
        for (uint32_t i = 0; i < n; i++)
            if (loads)
                types[i] = inst->results[done + i]->type;
            else
                operands[1 + i] = inst->operands[1 + done + i];
        struct tir_inst *piece =
            tir_build(&b, inst->op, operands, loads ? 1 : 1 + n, types, loads ? n : 0, 0);
        for (uint32_t i = 0; loads && i < n; i++) {
            piece->results[i]->name = inst->results[done + i]->name;
            tir_map_set(pieces, tir_map_key(inst->results[done + i]), piece->results[i]);
        }
    }
    tir_remove(inst);
    return true;
}

bool tir_store_in_pieces(struct tir_func *f, struct tir_arena *scratch)
{
    const struct tir_live *live = tir_live_new(scratch, f);
    VEC(struct tir_inst *) stores = {0};
    bool changed = false;
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_TMEM_ST && most_in(live, inst->block) > tir_live_limit(f, inst))
            vec_push(scratch, &stores, inst);
    vec_foreach(struct tir_inst *const, it, &stores)
        changed |= tir_cut_in_pieces(f, *it, NULL);
    return changed;
}
