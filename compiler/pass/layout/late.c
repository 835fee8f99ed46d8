// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// layout, the order of tiles: each is made in front of what uses it first.
//
//     let v: T = load(V[n:+64, 0:+64]);                let s: T = dot(q, k, zero);
//     let s: T = dot(q, k, zero);                      let p: U = cast(s);
//     let t: T = dot(k, q, zero);                ->    let v: T = load(V[n:+64, 0:+64]);
//     let p: U = cast(s);                              let o: T = dot(p, v, sums);
//     let o: T = dot(p, v, sums);                      let t: T = dot(k, q, zero);
//     let r: U = cast(t);                              let r: U = cast(t);
//
// So no thread holds t while it computes o, nor v while it computes s. A dot reads its factors in
// shared memory, which keeps them. What makes a tile smaller than those that end with it stays
// where they end. Loads are of tensors that the kernel does not write.
//
// Left alone: products on warpgroups, whose order the pass schedule finds, and blocks of many
// operations, since each looks through what follows it.

#include "pass/layout/late.h"

#include "base/bitset.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "pass/layout/warpgroup.h"

struct late {
    struct tir_func *f;
    struct bitset held; // values that something takes from registers, by id
};

static bool is_factor(const struct tir_inst *inst, uint32_t operand)
{
    return inst->op == TIR_OP_DOT && operand != TIR_DOT_ACC;
}

// Backwards, so that what follows from a value is known before it.
static void find_held(struct late *l, const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->last; inst; inst = inst->prev) {
        for (uint32_t r = 0; r < inst->region_count; r++)
            find_held(l, inst->regions[r]);
        if (inst->op == TIR_OP_PERMUTE && !bitset_has(&l->held, inst->results[0]->id))
            continue;
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            const struct tir_value *v = inst->operands[i];
            if (v && v->kind != TIR_VALUE_CONST && !is_factor(inst, i))
                bitset_insert(&l->held, v->id);
        }
    }
}

static bool uses(const struct tir_inst *inst, const struct tir_value *v)
{
    tir_foreach_inst_within(in, inst)
        if (tir_uses_value(in, v))
            return true;
    return false;
}

// The first one from inst on, in its block, that uses v; NULL: none does.
static struct tir_inst *first_user(struct tir_inst *inst, const struct tir_value *v)
{
    while (inst && !uses(inst, v))
        inst = inst->next;
    return inst;
}

// In registers, which conditions do not take.
static int64_t bits_of(const struct late *l, const struct tir_value *v)
{
    if (!tir_type_is_tile(v->type) || v->type->elem == TIR_BOOL || !bitset_has(&l->held, v->id))
        return 0;
    return tir_type_count(v->type) * tir_elems[v->type->elem].bits;
}

// Bits of the tiles that end with inst if `user` is the next to use its result.
static int64_t bits_ended(const struct late *l, const struct tir_inst *inst, struct tir_inst *user)
{
    int64_t bits = 0;
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[i];
        if (!v || !v->def || v->def->block != inst->block)
            continue; // it lives as long as the block
        if (!is_factor(inst, i) && !first_user(user, v))
            bits += bits_of(l, v);
    }
    return bits;
}

static bool may_move(const struct tir_func *f, const struct tir_inst *inst)
{
    if (inst->region_count || inst->result_count != 1 || !tir_type_is_tile(inst->results[0]->type))
        return false;
    if (inst->op == TIR_OP_LOAD)
        return tir_is_only_read(f, tir_ref_base(inst));
    return tir_has_trait(inst, TIR_PURE) && !tir_has_trait(inst, TIR_THREAD);
}

static uint32_t length_of(const struct tir_block *block)
{
    uint32_t length = 0;
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next)
        length++;
    return length;
}

// From the last one on, so that what uses a tile has its place before what makes it.
static void order(const struct late *l, struct tir_block *block)
{
    if (length_of(block) > TIR_BUDGET_LATE_OPERATIONS)
        return;
    for (struct tir_inst *inst = block->last, *before; inst; inst = before) {
        before = inst->prev;
        if (!may_move(l->f, inst))
            continue;
        struct tir_inst *user = first_user(inst->next, inst->results[0]);
        if (user && bits_of(l, inst->results[0]) >= bits_ended(l, inst, user))
            tir_move_before(inst, user);
    }
}

// Does a product in the block come before another one, after which something uses its result first?
// Sums that go on to the next round are used at the end of the block.
static bool has_early_product(const struct tir_block *block)
{
    if (length_of(block) > TIR_BUDGET_LATE_OPERATIONS)
        return false;
    for (struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (inst->op != TIR_OP_DOT)
            continue;
        const struct tir_inst *user = first_user(inst->next, inst->results[0]);
        for (const struct tir_inst *at = inst->next; user && user->next && at != user;
             at = at->next)
            if (at->op == TIR_OP_DOT)
                return true;
    }
    return false;
}

static bool has_early_products(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        for (uint32_t r = 0; r < inst->region_count; r++)
            if (has_early_product(inst->regions[r]))
                return true;
    return false;
}

void tir_make_late(struct tir_func *f, struct tir_arena *scratch, enum tir_late late)
{
    struct late l = {f, bitset_new(scratch, f->value_count)};
    if (tir_has_warpgroup_dot(f) || (late == TIR_LATE_PRODUCTS && !has_early_products(f)))
        return;
    find_held(&l, f->body);
    tir_foreach_inst(inst, f)
        for (uint32_t r = 0; r < inst->region_count; r++)
            order(&l, inst->regions[r]);
}
