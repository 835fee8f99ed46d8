// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on stores to tensors by several CTAs of an explicit grid. Their order is not replayed.
// Where the number of a CTA decides neither where a store goes nor whether it is reached, all CTAs
// along an axis store to one place.
//
//     kernel k(...) grid(M / 64, N / 64)
//         Y[cta_id() * 64:+64, 0:+64] = x;     // the CTAs along axis 1 do
//
// What data decides is left to the program: the CTA that comes last adds up what others left.

#include "pass/sync_check/sync_check.h"

// Does it tell CTAs along the axis apart, or is it data?
static bool tells_apart(const struct sync_program *p, const struct tir_inst *inst, uint32_t axis)
{
    switch (inst->op) {
    case TIR_OP_CTA_ID:
    case TIR_OP_CLUSTER_ID:
    case TIR_OP_CTA_IN_CLUSTER:
        return tir_attr_int(inst, TIR_ATTR_axis, 0) == (int64_t)axis;
    case TIR_OP_CTA_RANK:
        return p->f->cluster[axis] > 1;
    case TIR_OP_LOAD:
    case TIR_OP_ATOMIC:
    case TIR_OP_FIRST_CTAID:
    case TIR_OP_IS_CANCELED:
    case TIR_OP_PTX:
        return true;
    default:
        return false;
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

static bool keeps_apart(struct sync_program *p, const struct bitset *slice, uint32_t axis)
{
    tir_foreach_inst(inst, p->f)
        for (uint32_t i = 0; i < inst->result_count; i++)
            if (bitset_has(slice, inst->results[i]->id) && tells_apart(p, inst, axis))
                return true;
    return false;
}

static bool stores(const struct tir_inst *inst)
{
    return (inst->op == TIR_OP_STORE ||
            (inst->op == TIR_OP_STORE_ASYNC && !tir_attr_find(inst, TIR_ATTR_kind))) &&
           tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL;
}

void tir_sync_find_stores_of_all(struct sync_program *p)
{
    int64_t ctas;
    tir_foreach_inst(inst, p->f) {
        if (!stores(inst))
            continue;
        const struct bitset slice = deciding(p, inst);
        for (uint32_t axis = 0; axis < p->f->grid_count; axis++) {
            const bool is_one =
                tir_is_const_int(tir_yield_of(p->f->host)->operands[axis], &ctas) && ctas == 1;
            if (is_one || keeps_apart(p, &slice, axis))
                continue;
            tir_sync_unchecked(
                p, inst,
                tir_str_format(p->cx->scratch,
                               "the order of CTAs: all of those along axis %u store here", axis)
                    .ptr);
            break;
        }
    }
}
