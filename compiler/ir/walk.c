// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Program order, and use counts.

#include "ir/walk.h"

// The first instruction of inst's regions from `region` on.
static struct tir_inst *first_inside(const struct tir_inst *inst, uint32_t region)
{
    for (; region < inst->region_count; region++)
        if (inst->regions[region]->first)
            return inst->regions[region]->first;
    return NULL;
}

// What follows inst and all that is inside of it; NULL: the end of block `root`, or of what is
// inside of `top`.
static struct tir_inst *after(const struct tir_block *root, const struct tir_inst *top,
                              const struct tir_inst *inst)
{
    while (inst != top) {
        if (inst->next)
            return inst->next;
        const struct tir_block *block = inst->block;
        if (block == root)
            return NULL;
        inst = block->owner;
        uint32_t region = 0;
        while (inst->regions[region] != block)
            region++;
        struct tir_inst *next = first_inside(inst, region + 1);
        if (next)
            return next;
    }
    return NULL;
}

struct tir_inst *tir_walk_skip(const struct tir_block *root, const struct tir_inst *inst)
{
    return after(root, NULL, inst);
}

struct tir_inst *tir_walk_on(const struct tir_block *root, const struct tir_inst *inst)
{
    if (!inst)
        return root->first;
    struct tir_inst *inside = first_inside(inst, 0);
    return inside ? inside : tir_walk_skip(root, inst);
}

const struct tir_inst *tir_walk_within(const struct tir_inst *root, const struct tir_inst *inst)
{
    if (!inst)
        return root;
    const struct tir_inst *inside = first_inside(inst, 0);
    return inside ? inside : after(NULL, root, inst);
}

bool tir_uses_value(const struct tir_inst *inst, const struct tir_value *v)
{
    tir_foreach_inst_within(in, inst)
        for (uint32_t i = 0; i < in->operand_count; i++)
            if (in->operands[i] == v)
                return true;
    return false;
}

uint32_t *tir_count_uses(struct tir_arena *arena, const struct tir_func *f)
{
    uint32_t *uses = arena_array(arena, uint32_t, f->value_count);
    const struct tir_block *const roots[] = {f->body, f->host};
    for (uint32_t r = 0; r < TIR_COUNT_OF(roots); r++)
        tir_foreach_inst_in(inst, roots[r]) {
            for (uint32_t i = 0; i < inst->operand_count; i++)
                if (inst->operands[i])
                    uses[inst->operands[i]->id]++;
        }
    return uses;
}

bool tir_has_pairs(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_TMEM_ALLOC && tir_attr_find(inst, TIR_ATTR_cta_group))
            return true;
    return false;
}

static void number(struct tir_order *o, const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        o->begin[inst->id] = ++o->count;
        for (uint32_t r = 0; r < inst->region_count; r++)
            number(o, inst->regions[r]);
        o->end[inst->id] = o->count;
    }
}

struct tir_order tir_order_of(struct tir_arena *arena, const struct tir_func *f)
{
    struct tir_order o = {.begin = arena_array(arena, uint32_t, f->inst_count),
                          .end = arena_array(arena, uint32_t, f->inst_count)};
    number(&o, f->body);
    return o;
}
