// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor memory is stored and loaded in pieces where registers do not last.
//
// The registers of one instruction follow each other, and ptxas finds no 128 or 64 in a row between
// others that are live: it spilled 300 bytes where none with pieces of 32.
//
//     tmem_st(at, s0, ..., s63);    ->    tmem_st(at, s0, ..., s31);
//                                         let next: i32 = add(at, 32);
//                                         tmem_st(next, s32, ..., s63);
//
// Loads are cut, in pieces of 16, where each piece needs only the registers that the one before it
// has freed: what is loaded is added to what there was, in a loop or in a branch (in_branches.c).
// Elsewhere a loop of attention spilled 48 bytes then, and none without. Left alone are loads that
// reduce, what moves 16 lanes, and blocks beside which registers last: each piece waits for itself.

#include "pass/clean/pieces.h"

#include "base/vec.h"
#include "ir/live.h"
#include "ir/walk.h"
#include "machine/budget.h"

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
    const bool loads = inst->op == TIR_OP_TMEM_LD;
    const uint32_t most = loads ? TIR_BUDGET_PIECE_SUMS : TIR_BUDGET_PIECE_WORDS;
    if (words <= most)
        return false;
    struct tir_builder b = tir_builder_before(f, inst);
    for (uint32_t done = 0; done < words; done += most) {
        const uint32_t n = TIR_MIN(words - done, most);
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

// Is each number that it loads only added to what there was before it?
static bool is_added(const struct tir_inst *load, const uint32_t *uses,
                     struct tir_inst *const *user, const struct tir_order *order)
{
    for (uint32_t i = 0; i < load->result_count; i++) {
        const struct tir_value *v = load->results[i];
        const struct tir_inst *cast = user[v->id];
        if (uses[v->id] != 1 || cast->op != TIR_OP_BITCAST || uses[cast->results[0]->id] != 1)
            return false;
        const struct tir_inst *add = user[cast->results[0]->id];
        if (add->op != TIR_OP_ADD || add->block != load->block)
            return false;
        const struct tir_value *other = add->operands[add->operands[0] == cast->results[0]];
        if (other->kind == TIR_VALUE_RESULT &&
            order->begin[other->def->id] >= order->begin[load->id])
            return false;
    }
    return load->result_count;
}

bool tir_move_in_pieces(struct tir_func *f, struct tir_arena *scratch)
{
    const struct tir_live *live = tir_live_new(scratch, f);
    const struct tir_order order = tir_order_of(scratch, f);
    const uint32_t *uses = tir_count_uses(scratch, f);
    struct tir_inst **user = arena_array(scratch, struct tir_inst *, f->value_count);
    struct tir_map pieces;
    VEC(struct tir_inst *) moves = {0};
    bool changed = false;
    tir_map_init(&pieces, scratch);
    tir_foreach_inst(inst, f)
        for (uint32_t i = 0; i < inst->operand_count; i++)
            if (inst->operands[i])
                user[inst->operands[i]->id] = inst;
    tir_foreach_inst(inst, f) {
        const bool fits = inst->op == TIR_OP_TMEM_ST ||
                          (inst->op == TIR_OP_TMEM_LD && is_added(inst, uses, user, &order));
        if (fits && tir_live_most_in(live, inst->block) > tir_live_limit(f, inst))
            vec_push(scratch, &moves, inst);
    }
    vec_foreach(struct tir_inst *const, it, &moves)
        changed |= tir_cut_in_pieces(f, *it, &pieces);
    if (changed)
        tir_replace_uses_map(f, &pieces);
    return changed;
}
