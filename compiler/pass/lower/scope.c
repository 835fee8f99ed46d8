// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, scopes: the block of each so many warps stands where the scope stood.
//
//     scope warps(1) {
//         let scratch: shared f32[16, 16] = alloc(offset = 0, apart = 1024);
//         A
//     }
// becomes, with the warp of a layout counted in its group,
//     let group: i32 = warpid();
//     let scratch: shared f32[16, 16] = alloc(mul(group, 1024), offset = 0);
//     A
//
// A scope stays until all is lowered: named barriers of a group are numbered among those of all
// scopes.

#include "pass/lower/lower.h"

#include "base/vec.h"
#include "ir/walk.h"
#include "pass/sync/crew.h"

// Buffers that each group has. Those of a scope inside have its groups.
static void place_buffers(struct lower *lo, const struct tir_inst *scope, struct tir_value *group)
{
    VEC(struct tir_inst *) allocs = {0};
    tir_foreach_inst_in(inst, scope->regions[0])
        if (inst->op == TIR_OP_ALLOC && tir_attr_find(inst, TIR_ATTR_apart) &&
            tir_crew_of(lo->f, inst).scope == scope)
            vec_push(lo->cx->scratch, &allocs, inst);
    vec_foreach(struct tir_inst *, it, &allocs) {
        struct tir_value *old = (*it)->results[0];
        const int64_t apart = tir_attr_int(*it, TIR_ATTR_apart, 0);
        struct tir_value *at = tir_lower_mul_const(lo, &lo->top, group, apart);
        struct tir_builder b = tir_builder_before(lo->f, *it);
        struct tir_value *own = tir_build1(&b, TIR_OP_ALLOC, old->type, &at, 1);
        tir_copy_attr(lo->f, own->def, *it, TIR_ATTR_offset);
        tir_copy_attr(lo->f, own->def, *it, TIR_ATTR_apart);
        own->name = old->name;
        tir_replace_uses(lo->f, old, own);
        tir_remove(*it);
    }
}

void tir_lower_scope(struct lower *lo, struct tir_inst *inst)
{
    const struct tir_crew crew = tir_crew_of(lo->f, inst);
    struct lower outer = *lo;
    struct tir_value *warp = tir_build1(&lo->top, TIR_OP_WARPID, lo->i32, NULL, 0);
    struct tir_value *tid = tir_build1(&lo->top, TIR_OP_TID, lo->i32, NULL, 0);
    // Groups begin with a multiple of so many warps, and count from the first of the role.
    struct tir_value *mask = tir_lower_i32(lo, crew.warps - 1);
    struct tir_value *in_role =
        crew.first ? tir_binary(&lo->top, TIR_OP_SUB, warp, tir_lower_i32(lo, crew.first)) : warp;
    place_buffers(lo, inst, tir_lower_digit(lo, &lo->top, in_role, crew.warps, crew.groups, true));
    lo->warp = crew.warps > 1 ? tir_binary(&lo->top, TIR_OP_AND, warp, mask) : tir_lower_i32(lo, 0);
    lo->tid = tir_binary(&lo->top, TIR_OP_AND, tid, tir_lower_i32(lo, 32 * crew.warps - 1));
    lo->threads = 32 * crew.warps;
    lo->scope = inst;
    tir_map_init(&lo->coords, lo->cx->scratch);
    tir_lower_block(lo, inst->regions[0]);
    lo->warp = outer.warp;
    lo->tid = outer.tid;
    lo->threads = outer.threads;
    lo->scope = outer.scope;
    lo->coords = outer.coords;
}

void tir_lower_end_scopes(struct lower *lo)
{
    VEC(struct tir_inst *) scopes = {0};
    tir_foreach_inst(inst, lo->f) {
        if (inst->op == TIR_OP_SCOPE)
            vec_push(lo->cx->scratch, &scopes, inst);
    }
    vec_foreach(struct tir_inst *, it, &scopes) {
        struct tir_block *block = (*it)->regions[0];
        tir_remove(tir_yield_of(block));
        while (block->first)
            tir_move_before(block->first, *it);
        tir_remove(*it);
    }
}
