// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Code that passes build for a crew: barriers, and code for each of its groups.

#include "pass/sync/crew.h"

void tir_build_barrier(struct tir_builder *b, enum tir_op op, uint32_t id, uint32_t warps)
{
    struct tir_inst *inst = tir_build(b, op, NULL, 0, NULL, 0, 0);
    if (!id)
        return;
    tir_set_int(b->f, inst, TIR_ATTR_id, id);
    tir_set_int(b->f, inst, TIR_ATTR_threads, warps * 32);
}

void tir_build_by_group(struct tir_builder b, const struct tir_crew *groups,
                        void (*build)(void *user, struct tir_builder *b, uint32_t group),
                        void *user)
{
    const struct tir_type *i32 = tir_type_scalar(b.f->module->types, TIR_I32);
    struct tir_value *warp =
        groups->groups > 1 ? tir_build1(&b, TIR_OP_WARPID, i32, NULL, 0) : NULL;
    for (uint32_t g = 0; g < groups->groups; g++) {
        struct tir_builder own = b;
        if (g + 1 < groups->groups) {
            const uint32_t end = groups->first + (g + 1) * groups->warps;
            struct tir_value *below =
                tir_binary(&b, TIR_OP_LT, warp, tir_const_i32(b.f, (int32_t)end));
            own = tir_build_if(&b, below);
            b = tir_builder_before(b.f, own.block->owner->regions[1]->first);
            b.span = own.span;
        }
        build(user, &own, g);
    }
}

// Each group of warps has a barrier of its own.
static void build_own(void *user, struct tir_builder *b, uint32_t group)
{
    const struct tir_crew *crew = user;
    tir_build_barrier(b, TIR_OP_BAR_SYNC, tir_crew_barrier(b->f, crew) - group, crew->warps);
}

void tir_build_crew_barrier(struct tir_builder *b, const struct tir_crew *crew)
{
    struct tir_crew own = *crew;
    if (!crew->scope)
        tir_build_barrier(b, TIR_OP_BAR_SYNC, tir_crew_barrier(b->f, crew), crew->warps);
    else if (crew->warps == 1)
        tir_build(b, TIR_OP_WARP_SYNC, NULL, 0, NULL, 0, 0);
    else
        tir_build_by_group(*b, crew, build_own, &own);
}

bool tir_is_crew_barrier(const struct tir_inst *inst, const struct tir_crew *crew)
{
    int64_t threads = tir_attr_int(inst, TIR_ATTR_threads, 0);
    if (inst->op == TIR_OP_WARP_SYNC)
        return crew->scope && crew->warps == 1;
    return inst->op == TIR_OP_BAR_SYNC && (threads == 0 || threads >= crew->warps * 32);
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
