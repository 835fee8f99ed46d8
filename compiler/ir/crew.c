// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The warps that run an instruction: those of its scope or role, or all of the CTA.

#include "ir/crew.h"

#include "ir/walk.h"

uint32_t tir_launch_registers(uint32_t threads)
{
    enum { MOST = 255 };
    return TIR_MIN(TIR_REGISTERS / TIR_MAX(threads, 1) / 8 * 8, MOST);
}

static const struct tir_inst *around(const struct tir_block *block, enum tir_op op)
{
    const struct tir_inst *owner = block->owner;
    while (owner && owner->op != op)
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

static struct tir_crew crew_of_role(const struct tir_func *f, const struct tir_inst *role)
{
    struct tir_crew crew = {.role = role, .warps = TIR_MAX(f->threads / 32, 1), .groups = 1};
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

struct tir_crew tir_crew_of_block(const struct tir_func *f, const struct tir_block *block)
{
    struct tir_crew crew = crew_of_role(f, around(block, TIR_OP_ROLE));
    crew.scope = around(block, TIR_OP_SCOPE);
    if (crew.scope) {
        const uint32_t warps = (uint32_t)tir_attr_int(crew.scope, TIR_ATTR_warps, 1);
        crew.groups = TIR_MAX(crew.warps / warps, 1);
        crew.warps = warps;
    }
    return crew;
}

struct tir_crew tir_crew_of(const struct tir_func *f, const struct tir_inst *inst)
{
    const bool owns = inst->op == TIR_OP_ROLE || inst->op == TIR_OP_SCOPE;
    return tir_crew_of_block(f, owns ? inst->regions[0] : inst->block);
}

// Those of roles begin with 1, those of scopes with the last one: a program that has barriers of
// its own mostly begins with 1. Scopes of a role with as many warps have the same groups.
uint32_t tir_crew_barrier(const struct tir_func *f, const struct tir_crew *crew)
{
    if (!crew->scope)
        return crew->role ? crew->number + 1 : 0;
    uint32_t taken = 0, sizes = 0; // sizes: of scopes of the role, which are powers of two, as bits
    const struct tir_inst *role = NULL;
    tir_foreach_inst(inst, f) {
        if (inst->op != TIR_OP_SCOPE)
            continue;
        const struct tir_crew other = tir_crew_of(f, inst);
        sizes = other.role == role ? sizes : 0;
        role = other.role;
        if (other.role == crew->role && other.warps == crew->warps)
            break;
        taken += other.warps > 1 && !(sizes & other.warps) ? other.groups : 0;
        sizes |= other.warps;
    }
    return taken < TIR_NAMED_BARRIERS ? TIR_NAMED_BARRIERS - 1 - taken : 0;
}

bool tir_crew_has_barrier(const struct tir_func *f, const struct tir_crew *crew)
{
    if (!crew->scope)
        return !crew->role || crew->number + 1 < TIR_NAMED_BARRIERS;
    uint32_t roles = 0;
    for (const struct tir_inst *inst = f->body->first; inst; inst = inst->next)
        roles += inst->op == TIR_OP_ROLE;
    return crew->warps == 1 || tir_crew_barrier(f, crew) >= roles + crew->groups;
}

struct tir_value *tir_build_is_leader(struct tir_builder *b, const struct tir_crew *crew)
{
    const struct tir_type *i32 = tir_type_scalar(b->f->module->types, TIR_I32);
    struct tir_value *tid = tir_build1(b, TIR_OP_TID, i32, NULL, 0);
    int32_t leader = (int32_t)crew->first * 32;
    if (crew->groups > 1) { // one in each, which begins with a multiple of so many threads
        tid = tir_binary(b, TIR_OP_AND, tid, tir_const_i32(b->f, (int32_t)crew->warps * 32 - 1));
        leader = 0;
    }
    return tir_binary(b, TIR_OP_EQ, tid, tir_const_i32(b->f, leader));
}
