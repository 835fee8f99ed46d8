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

struct tir_inst *tir_walk_skip(const struct tir_block *root, const struct tir_inst *inst)
{
    for (;;) {
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
}

struct tir_inst *tir_walk_next(const struct tir_block *root, const struct tir_inst *inst)
{
    if (!inst)
        return root->first;
    struct tir_inst *inside = first_inside(inst, 0);
    return inside ? inside : tir_walk_skip(root, inst);
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
