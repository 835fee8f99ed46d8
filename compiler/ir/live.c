// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The registers of a lowered kernel.
//
// Instructions are numbered in the order of the text. A value is live from its own number to that
// of its last use, and in the whole of a loop that uses it and does not make it.

#include "ir/live.h"

#include "ir/crew.h"
#include "ir/walk.h"

struct tir_live {
    struct tir_order order;
    uint32_t *registers; // live at a number
};

static uint32_t made(const struct tir_live *l, const struct tir_value *v)
{
    if (v->kind != TIR_VALUE_ARG)
        return l->order.end[v->def->id];
    return v->block->owner ? l->order.begin[v->block->owner->id] : 0;
}

// The last number at which a use by inst needs v.
static uint32_t needed(const struct tir_live *l, const struct tir_value *v,
                       const struct tir_inst *inst)
{
    const struct tir_block *home = v->kind == TIR_VALUE_ARG ? v->block : v->def->block;
    uint32_t last = l->order.begin[inst->id];
    for (; inst->block != home; inst = inst->block->owner)
        if (tir_carries(inst->block->owner))
            last = l->order.end[inst->block->owner->id];
    return last;
}

uint32_t tir_live_registers(const struct tir_value *v)
{
    if (!tir_type_is_scalar(v->type) || v->type->elem == TIR_BOOL)
        return 0;
    return v->type->elem == TIR_F64 ? 2 : 1;
}

struct tir_live *tir_live_new(struct tir_arena *arena, const struct tir_func *f)
{
    struct tir_live *l = arena_array(arena, struct tir_live, 1);
    l->order = tir_order_of(arena, f);
    uint32_t *last = arena_array(arena, uint32_t, f->value_count);
    const struct tir_value **values = arena_array(arena, const struct tir_value *, f->value_count);
    tir_foreach_inst(inst, f)
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            const struct tir_value *v = inst->operands[i];
            if (!v || v->kind == TIR_VALUE_CONST)
                continue;
            values[v->id] = v;
            last[v->id] = TIR_MAX(last[v->id], needed(l, v, inst));
        }
    l->registers = arena_array(arena, uint32_t, l->order.count + 2);
    for (uint32_t i = 0; i < f->value_count; i++)
        if (values[i] && last[i] > made(l, values[i])) {
            l->registers[made(l, values[i]) + 1] += tir_live_registers(values[i]);
            l->registers[last[i] + 1] -= tir_live_registers(values[i]); // modulo 2^32
        }
    for (uint32_t i = 1; i <= l->order.count; i++)
        l->registers[i] += l->registers[i - 1];
    return l;
}

uint32_t tir_live_most(const struct tir_live *l, const struct tir_inst *inst)
{
    uint32_t most = 0;
    for (uint32_t i = l->order.begin[inst->id]; i <= l->order.end[inst->id]; i++)
        most = TIR_MAX(most, l->registers[i]);
    return most;
}

uint32_t tir_live_most_in(const struct tir_live *l, const struct tir_block *block)
{
    uint32_t most = 0;
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next)
        if (!inst->region_count)
            most = TIR_MAX(most, tir_live_most(l, inst));
    return most;
}

uint32_t tir_live_limit(const struct tir_func *f, const struct tir_inst *inst)
{
    for (const struct tir_inst *at = inst; at; at = at->block->owner)
        for (const struct tir_inst *before = at; before; before = before->prev)
            if (before->op == TIR_OP_SETMAXNREG)
                return (uint32_t)tir_attr_int(before, TIR_ATTR_regs, 0);
    return tir_launch_registers(f->threads);
}

static void find_fullest(const struct tir_live *l, const struct tir_func *f,
                         const struct tir_block *block, struct tir_fullest *fullest)
{
    const uint32_t limit = block->first ? tir_live_limit(f, block->first) : 0;
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        for (uint32_t r = 0; r < inst->region_count; r++)
            find_fullest(l, f, inst->regions[r], fullest);
        const uint32_t live = inst->region_count ? 0 : tir_live_most(l, inst);
        if (live &&
            (!fullest->at || (uint64_t)live * fullest->limit > (uint64_t)fullest->live * limit))
            *fullest = (struct tir_fullest){inst, live, limit};
    }
}

struct tir_fullest tir_live_fullest(struct tir_arena *arena, const struct tir_func *f)
{
    struct tir_fullest fullest = {.limit = 1};
    find_fullest(tir_live_new(arena, f), f, f->body, &fullest);
    return fullest;
}
