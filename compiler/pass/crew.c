// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who runs an instruction: the warps of its role, or all of the CTA.

#include "pass/crew.h"

#define WARPGROUP 4 // warps

static const struct tir_inst *role_around(const struct tir_block *block)
{
    const struct tir_inst *owner = block->owner;
    while (owner && owner->op != TIR_OP_ROLE)
        owner = owner->block->owner;
    return owner;
}

static uint32_t first_warp(const struct tir_inst *role, uint32_t next, int64_t last_regs)
{
    int64_t regs = tir_attr_int(role, TIR_ATTR_regs, 0),
            warps = tir_attr_int(role, TIR_ATTR_warps, 1);
    bool fits = regs == last_regs && next % WARPGROUP + warps <= WARPGROUP;
    if (regs && !fits)
        next = (uint32_t)tir_align_up(next, WARPGROUP);
    return (uint32_t)tir_attr_int(role, TIR_ATTR_first, next);
}

struct tir_crew tir_crew_of_block(const struct tir_func *f, const struct tir_block *block)
{
    const struct tir_inst *role = role_around(block);
    struct tir_crew crew = {.role = role, .warps = TIR_MAX(f->threads / 32, 1)};
    if (!role)
        return crew;
    uint32_t next = 0;
    int64_t regs = 0;
    for (const struct tir_inst *inst = f->body->first; inst; inst = inst->next) {
        if (inst->op != TIR_OP_ROLE)
            continue;
        crew.first = first_warp(inst, next, regs);
        crew.warps = (uint32_t)tir_attr_int(inst, TIR_ATTR_warps, 1);
        if (inst == role)
            break;
        next = crew.first + crew.warps;
        regs = tir_attr_int(inst, TIR_ATTR_regs, 0);
        crew.number++;
    }
    return crew;
}

struct tir_crew tir_crew_of(const struct tir_func *f, const struct tir_inst *inst)
{
    return tir_crew_of_block(f, inst->op == TIR_OP_ROLE ? inst->regions[0] : inst->block);
}

void tir_build_crew_barrier(struct tir_builder *b, const struct tir_crew *crew)
{
    struct tir_inst *sync = tir_build(b, TIR_OP_BAR_SYNC, NULL, 0, NULL, 0, 0);
    if (!crew->role)
        return;
    tir_set_int(b->f, sync, TIR_ATTR_id, crew->number + 1);
    tir_set_int(b->f, sync, TIR_ATTR_threads, crew->warps * 32);
}

bool tir_is_crew_barrier(const struct tir_inst *inst, const struct tir_crew *crew)
{
    int64_t threads = tir_attr_int(inst, TIR_ATTR_threads, 0);
    return inst->op == TIR_OP_BAR_SYNC && (threads == 0 || threads >= crew->warps * 32);
}

struct tir_value *tir_build_is_leader(struct tir_builder *b, const struct tir_crew *crew)
{
    const struct tir_type *i32 = tir_type_scalar(b->f->module->types, TIR_I32);
    struct tir_value *tid = tir_build1(b, TIR_OP_TID, i32, NULL, 0);
    return tir_binary(b, TIR_OP_EQ, tid, tir_const_i32(b->f, (int32_t)crew->first * 32));
}

struct tir_builder tir_build_if(struct tir_builder *b, struct tir_value *cond)
{
    struct tir_inst *inst = tir_build(b, TIR_OP_IF, &cond, 1, NULL, 0, 2);
    for (uint32_t r = 0; r < 2; r++) {
        struct tir_builder end = tir_builder_at_end(b->f, inst->regions[r]);
        tir_build_yield(&end, NULL, 0);
    }
    struct tir_builder in = tir_builder_before(b->f, inst->regions[0]->first);
    in.span = b->span;
    return in;
}
