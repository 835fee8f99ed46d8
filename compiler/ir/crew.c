// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The warps that run an instruction: those of its role, or all of the CTA.

#include "ir/crew.h"

uint32_t tir_launch_registers(uint32_t threads)
{
    enum { MOST = 255 };
    return TIR_MIN(TIR_REGISTERS / TIR_MAX(threads, 1) / 8 * 8, MOST);
}

static const struct tir_inst *role_around(const struct tir_block *block)
{
    const struct tir_inst *owner = block->owner;
    while (owner && owner->op != TIR_OP_ROLE)
        owner = owner->block->owner;
    return owner;
}

// Where a role begins; next: the warp after the role before it, whose registers are regs.
static uint32_t first_warp(const struct tir_inst *role, uint32_t next, int64_t regs)
{
    int64_t warps = tir_attr_int(role, TIR_ATTR_warps, 1);
    bool joins = next % TIR_WARPGROUP && tir_attr_int(role, TIR_ATTR_regs, 0) == regs &&
                 next % TIR_WARPGROUP + warps <= TIR_WARPGROUP;
    if (!joins)
        next = (uint32_t)tir_align_up(next, TIR_WARPGROUP);
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
