// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on stores to tensors by several CTAs of an explicit grid. Their order is not replayed.
// Where a store goes, and whether it is reached, has to be decided by the number of a CTA, or of a
// cluster and of a CTA in it; else several CTAs along an axis store to one place.
//
//     kernel k(...) grid(M / 64, N / 64) cluster(2)
//         Y[cta_id() * 64:+64, 0:+64] = x;     // the CTAs along axis 1 do
//         Z[cluster_id(), 0:+64] = y;          // and so do the two of a cluster
//
// What data decides is left to the program: the CTA that comes last adds up what others left.

#include "pass/sync_check/sync_check.h"

enum { CLUSTERS = 1, CTAS_OF_ONE = 2, ALL = CLUSTERS | CTAS_OF_ONE };

// What of an axis it tells apart; all, if it is data.
static uint32_t told_apart(const struct tir_inst *inst, uint32_t axis)
{
    switch (inst->op) {
    case TIR_OP_CTA_ID:
        return tir_attr_int(inst, TIR_ATTR_axis, 0) == (int64_t)axis ? ALL : 0;
    case TIR_OP_CLUSTER_ID:
        return tir_attr_int(inst, TIR_ATTR_axis, 0) == (int64_t)axis ? CLUSTERS : 0;
    case TIR_OP_CTA_IN_CLUSTER:
        return tir_attr_int(inst, TIR_ATTR_axis, 0) == (int64_t)axis ? CTAS_OF_ONE : 0;
    case TIR_OP_CTA_RANK:
        return CTAS_OF_ONE;
    case TIR_OP_LOAD:
    case TIR_OP_ATOMIC:
    case TIR_OP_FIRST_CTAID:
    case TIR_OP_IS_CANCELED:
    case TIR_OP_PTX:
        return ALL;
    default:
        return 0;
    }
}

// The values that say where and whether it stores.
static struct bitset deciding(struct sync_program *p, const struct tir_inst *store)
{
    VEC(struct tir_value *) values = {0};
    struct tir_arena *arena = p->cx->scratch;
    uint32_t count;
    for (uint32_t d = 0; d < tir_ref_base(store)->type->rank; d++)
        vec_push(arena, &values, tir_ref_indices(store)[d]);
    if (store->op == TIR_OP_STORE && store->operands[TIR_STORE_MASK])
        vec_push(arena, &values, store->operands[TIR_STORE_MASK]);
    for (const struct tir_inst *up = store->block->owner; up; up = up->block->owner) {
        struct tir_value *const *bounds = tir_sync_bounds_of(up, &count);
        for (uint32_t i = 0; i < count; i++)
            vec_push(arena, &values, bounds[i]);
    }
    return tir_sync_slice(p, values.at, values.len);
}

// What of an axis there is more than one of. A grid that arguments give counts as larger.
static uint32_t several(const struct sync_program *p, uint32_t axis)
{
    int64_t ctas;
    const int64_t of_one = TIR_MAX(p->f->cluster[axis], 1);
    const bool is_one =
        tir_is_const_int(tir_yield_of(p->f->host)->operands[axis], &ctas) && ctas <= of_one;
    return (is_one ? 0 : CLUSTERS) | (of_one > 1 ? CTAS_OF_ONE : 0);
}

static bool keeps_apart(struct sync_program *p, const struct bitset *slice, uint32_t axis)
{
    uint32_t apart = ~several(p, axis);
    tir_foreach_inst(inst, p->f)
        for (uint32_t i = 0; i < inst->result_count; i++)
            if (bitset_has(slice, inst->results[i]->id))
                apart |= told_apart(inst, axis);
    return (apart & ALL) == ALL;
}

static bool stores(const struct tir_inst *inst)
{
    return (inst->op == TIR_OP_STORE ||
            (inst->op == TIR_OP_STORE_ASYNC && !tir_attr_find(inst, TIR_ATTR_kind))) &&
           tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL;
}

void tir_sync_find_stores_of_all(struct sync_program *p)
{
    tir_foreach_inst(inst, p->f) {
        if (!stores(inst))
            continue;
        const struct bitset slice = deciding(p, inst);
        for (uint32_t axis = 0; axis < p->f->grid_count; axis++) {
            if (keeps_apart(p, &slice, axis))
                continue;
            tir_sync_unchecked(p, inst,
                               tir_str_format(p->cx->scratch,
                                              "the order of CTAs: several along axis %u store here",
                                              axis)
                                   .ptr);
            break;
        }
    }
}
