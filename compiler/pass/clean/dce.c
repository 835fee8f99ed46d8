// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// dce: remove instructions that have no effect and whose results nothing live uses, and carried
// values that only feed themselves.
//
// Marks backwards from instructions with an effect, then sweeps. Each result of a loop or `if` is
// marked by itself: a live result makes its own yields and initial value live, not those of other
// results. A live instruction keeps the instructions around it. A loop without any live result or
// effect is removed as a whole.
//
//     let a: f32, b: f32 = for i: i64 in range(0, N, 1) carry (x: f32 = f32(0), y: f32 = f32(1)) {
//         let x2: f32 = add(x, s);
//         let y2: f32 = mul(y, s);
//         yield x2, y2;
//     }
//     store(Y[0], a);
// loses y, y2 and b.
//
// A shared buffer that is never read goes with its stores, until copies have engines: a copy that
// nobody reads is not waited for, and its memory would be used again while it is written.
//
// Not done here: stores that are overwritten.

#include "base/bitset.h"
#include "base/vec.h"
#include "ir/walk.h"
#include "pass/pass.h"

struct dce {
    struct tir_arena *arena;
    struct bitset values, insts;   // live, by id
    VEC(struct tir_value *) work;  // live, but what they need is not yet marked
    VEC(struct tir_inst *) stores; // that live if their buffer does
    bool before_engines;
    bool changed;
};

static void mark_value(struct dce *d, struct tir_value *v)
{
    if (v && v->kind != TIR_VALUE_CONST && bitset_insert(&d->values, v->id))
        vec_push(d->arena, &d->work, v);
}

static void mark_values(struct dce *d, struct tir_value *const *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        mark_value(d, values[i]);
}

// The values an instruction gives one by one: loops and branches.
static bool gives_slots(const struct tir_inst *inst)
{
    return tir_is_loop(inst) || inst->op == TIR_OP_IF;
}

static void mark_inst(struct dce *d, struct tir_inst *inst)
{
    for (; inst && bitset_insert(&d->insts, inst->id); inst = inst->block->owner) {
        uint32_t needed = gives_slots(inst) ? tir_fixed_count(inst) : inst->operand_count;
        mark_values(d, inst->operands, needed);
        if (gives_slots(inst) && inst->op != TIR_OP_WHILE)
            continue;
        // A user region's yield is the meaning of its owner; so is the condition of a while.
        for (uint32_t r = 0; r < TIR_MIN(inst->region_count, 1); r++) {
            struct tir_inst *yield = tir_yield_of(inst->regions[r]);
            if (yield)
                mark_values(d, yield->operands, yield->operand_count);
        }
    }
}

static void mark_yielded(struct dce *d, const struct tir_block *block, uint32_t slot)
{
    mark_value(d, tir_yield_of(block)->operands[slot]);
}

// Result `slot` of a loop or branch, or the argument that carries it, is wanted.
static void mark_slot(struct dce *d, struct tir_inst *inst, uint32_t slot)
{
    if (inst->op == TIR_OP_IF) {
        mark_yielded(d, inst->regions[0], slot);
        mark_yielded(d, inst->regions[1], slot);
        return;
    }
    mark_value(d, inst->operands[tir_fixed_count(inst) + slot]);
    mark_yielded(d, inst->regions[inst->op == TIR_OP_WHILE], slot);
}

static void mark_needs(struct dce *d, struct tir_value *v)
{
    if (v->kind == TIR_VALUE_RESULT) {
        mark_inst(d, v->def);
        if (gives_slots(v->def))
            mark_slot(d, v->def, v->index);
        return;
    }
    struct tir_inst *owner = v->block->owner;
    uint32_t lead = owner && owner->op == TIR_OP_FOR ? 1 : 0;
    if (owner && gives_slots(owner) && v->index >= lead)
        mark_slot(d, owner, v->index - lead);
}

// A store to a shared buffer of the kernel, which is for those who read the buffer.
static bool is_for_readers(const struct tir_inst *inst)
{
    const struct tir_inst *alloc = inst->op == TIR_OP_STORE ? tir_ref_base(inst)->def : NULL;
    return alloc && alloc->op == TIR_OP_ALLOC &&
           alloc->results[0]->type->space == TIR_SPACE_SHARED &&
           !tir_attr_int(alloc, TIR_ATTR_by_hand, 0);
}

static void mark_roots(struct dce *d, const struct tir_block *root)
{
    const uint32_t effects = TIR_WRITES | TIR_ASYNC | TIR_SYNC;
    tir_foreach_inst_in(inst, root)
        if (d->before_engines && is_for_readers(inst))
            vec_push(d->arena, &d->stores, inst);
        else if ((tir_has_trait(inst, effects) && inst->op != TIR_OP_ALLOC &&
                  inst->op != TIR_OP_TILES) ||
                 inst->op == TIR_OP_WHILE)
            mark_inst(d, inst);
    struct tir_inst *yield = tir_yield_of(root); // the host block's
    if (yield)
        mark_inst(d, yield);
}

// Whether slot i of a live loop or branch is wanted by anything but itself.
static bool slot_lives(const struct dce *d, const struct tir_inst *inst, uint32_t slot)
{
    if (bitset_has(&d->values, inst->results[slot]->id))
        return true;
    if (inst->op == TIR_OP_IF)
        return false;
    uint32_t lead = inst->op == TIR_OP_FOR ? 1 : 0;
    for (uint32_t r = 0; r < inst->region_count; r++)
        if (bitset_has(&d->values, inst->regions[r]->args[lead + slot]->id))
            return true;
    return false;
}

// Keeps, of `count` values from `first` on, those whose slot lives.
static uint32_t keep(struct tir_value **values, uint32_t first, uint32_t count, const bool *lives)
{
    uint32_t kept = first;
    for (uint32_t i = 0; i < count; i++)
        if (lives[i])
            values[kept++] = values[first + i];
    return kept;
}

static void drop_slots(struct dce *d, struct tir_inst *inst)
{
    uint32_t count = inst->result_count, dead = 0;
    bool *lives = arena_array(d->arena, bool, count);
    for (uint32_t i = 0; i < count; i++) {
        lives[i] = slot_lives(d, inst, i);
        dead += !lives[i];
    }
    if (!dead)
        return;
    d->changed = true;
    bool carries = inst->op != TIR_OP_IF;
    uint32_t lead = inst->op == TIR_OP_FOR ? 1 : 0;
    for (uint32_t r = 0; r < inst->region_count; r++) {
        struct tir_block *block = inst->regions[r];
        struct tir_inst *yield = tir_yield_of(block);
        if (carries)
            block->arg_count = keep(block->args, lead, count, lives);
        for (uint32_t i = lead; i < block->arg_count; i++)
            block->args[i]->index = i;
        if (!(inst->op == TIR_OP_WHILE && r == 0))
            yield->operand_count = keep(yield->operands, 0, count, lives);
    }
    if (carries)
        inst->operand_count = keep(inst->operands, tir_fixed_count(inst), count, lives);
    inst->result_count = keep(inst->results, 0, count, lives);
    for (uint32_t i = 0; i < inst->result_count; i++)
        inst->results[i]->index = i;
}

static void sweep(struct dce *d, struct tir_block *block)
{
    tir_foreach_inst_safe(inst, block) {
        if (inst->op == TIR_OP_YIELD)
            continue;
        if (!bitset_has(&d->insts, inst->id)) {
            tir_remove(inst);
            d->changed = true;
            continue;
        }
        if (gives_slots(inst))
            drop_slots(d, inst);
        for (uint32_t r = 0; r < inst->region_count; r++)
            sweep(d, inst->regions[r]);
    }
}

// Stores live where their buffer does, which what they store may need in turn.
static void mark_all_needs(struct dce *d)
{
    uint32_t waiting = d->stores.len + 1;
    while (d->stores.len < waiting) {
        waiting = d->stores.len;
        while (d->work.len)
            mark_needs(d, vec_pop(&d->work));
        uint32_t left = 0;
        for (uint32_t i = 0; i < waiting; i++) {
            struct tir_inst *store = d->stores.at[i];
            if (bitset_has(&d->values, tir_ref_base(store)->id))
                mark_inst(d, store);
            else
                d->stores.at[left++] = store;
        }
        d->stores.len = left;
    }
}

enum tir_change tir_pass_dce(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct dce d = {.arena = cx->scratch,
                    .values = bitset_new(cx->scratch, f->value_count),
                    .insts = bitset_new(cx->scratch, f->inst_count),
                    .before_engines = f->form < TIR_FORM_ASYNC};
    mark_roots(&d, f->body);
    mark_roots(&d, f->host);
    mark_all_needs(&d);
    sweep(&d, f->body);
    sweep(&d, f->host);
    return d.changed ? TIR_CHANGED : TIR_UNCHANGED;
}
