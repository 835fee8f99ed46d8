// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles of different length: those with a loop whose bounds follow from the tile's start, directly
// as under a causal mask or by what is loaded there.
//
// Values that follow are found in program order, as operands and what loops begin with; what a loop
// hands to its next round is not looked at, since bounds do not come from there.

#include "ir/uneven.h"

#include "base/bitset.h"
#include "ir/walk.h"

struct uneven {
    struct bitset follow; // values that follow from the tile's start, by id
    bool differs;
};

static bool follows(const struct uneven *u, const struct tir_value *v)
{
    return v && bitset_has(&u->follow, v->id);
}

static void add(struct uneven *u, const struct tir_value *v)
{
    bitset_insert(&u->follow, v->id);
}

static void visit_loop(struct uneven *u, const struct tir_inst *inst)
{
    const uint32_t fixed = tir_fixed_count(inst);
    for (uint32_t i = 0; i < fixed; i++)
        u->differs |= follows(u, inst->operands[i]);
    for (uint32_t i = fixed; i < inst->operand_count; i++)
        if (follows(u, inst->operands[i]))
            for (uint32_t r = 0; r < inst->region_count; r++) {
                const struct tir_block *block = inst->regions[r];
                add(u, block->args[block->arg_count - inst->result_count + i - fixed]);
            }
}

static void visit(struct uneven *u, const struct tir_inst *inst)
{
    const struct tir_inst *owner = inst->block->owner;
    if (tir_is_loop(inst))
        visit_loop(u, inst);
    else if (inst->op == TIR_OP_YIELD && owner->op == TIR_OP_WHILE &&
             inst->block == owner->regions[0])
        u->differs |= follows(u, inst->operands[0]);
    else
        for (uint32_t i = 0; i < inst->operand_count; i++)
            for (uint32_t k = 0; follows(u, inst->operands[i]) && k < inst->result_count; k++)
                add(u, inst->results[k]);
}

bool tir_tiles_differ(const struct tir_func *f, struct tir_arena *scratch)
{
    struct uneven u = {.follow = bitset_new(scratch, f->value_count)};
    tir_foreach_inst(tiles, f) {
        if (tiles->op != TIR_OP_TILES)
            continue;
        for (uint32_t d = 0; d < tir_carried_at(tiles); d++)
            add(&u, tiles->regions[0]->args[d]);
        tir_foreach_inst_in(inst, tiles->regions[0])
            visit(&u, inst);
    }
    return u.differs;
}
