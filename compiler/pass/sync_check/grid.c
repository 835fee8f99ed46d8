// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// See ask.h: the numbers of a CTA, of a cluster and of a thread, as sums of unknowns.

#include "pass/sync_check/linear.h"

struct sync_linear tir_sync_along(struct sync_ask *a, uint32_t *which, int64_t low, int64_t high,
                                  int64_t wanted)
{
    if (!*which)
        *which = 1 + tir_sync_unknown(a->q, low, high, wanted);
    return tir_sync_single(*which - 1);
}

struct sync_linear tir_sync_ctas(struct sync_ask *a, uint32_t axis)
{
    const struct tir_func *f = a->p->f;
    bool stated = f->grid_count > axis, made = a->ctas[axis];
    struct sync_linear ctas =
        tir_sync_along(a, &a->ctas[axis], 1, SYNC_INFINITY, a->wanted->ctas[axis]);
    if (stated && !made)
        tir_sync_equal(a, ctas, tir_sync_linear(a, tir_yield_of(f->host)->operands[axis]));
    else if (f->grid_count && !made)
        tir_sync_equal(a, ctas, constant(1));
    return ctas;
}

struct sync_linear tir_sync_cta(struct sync_ask *a, uint32_t axis)
{
    bool made = a->cta[axis];
    struct sync_linear cta =
        tir_sync_along(a, &a->cta[axis], 0, SYNC_INFINITY, a->wanted->cta[axis]);
    if (!made)
        tir_sync_at_least(a, tir_sync_ctas(a, axis), cta, 1);
    return cta;
}

// The number of a CTA in its cluster.
static struct sync_linear rank_of(struct sync_ask *a)
{
    struct sync_linear rank = constant(0);
    for (uint32_t axis = 3; axis-- > 0;) {
        const int64_t share = TIR_MAX(a->p->f->cluster[axis], 1);
        rank = plus(a, constant(0), rank, share);
        if (share > 1)
            rank = plus(a, rank, tir_sync_rest_of(a, tir_sync_cta(a, axis), share), 1);
    }
    return rank;
}

// Of a special register.
struct sync_linear tir_sync_place_of(struct sync_ask *a, const struct tir_inst *inst)
{
    uint32_t axis = (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0) % 3;
    int64_t share = TIR_MAX(a->p->f->cluster[axis], 1);
    switch (inst->op) {
    case TIR_OP_CTA_ID:
        return tir_sync_cta(a, axis);
    case TIR_OP_NUM_CTAS:
        return tir_sync_ctas(a, axis);
    case TIR_OP_CLUSTER_ID:
        return tir_sync_quotient_of(a, tir_sync_cta(a, axis), share);
    case TIR_OP_NUM_CLUSTERS:
        return tir_sync_quotient_of(a, tir_sync_ctas(a, axis), share);
    case TIR_OP_CTA_IN_CLUSTER:
        return tir_sync_rest_of(a, tir_sync_cta(a, axis), share);
    case TIR_OP_CLUSTER_SIZE:
        return constant(share);
    case TIR_OP_CTA_RANK:
        return rank_of(a);
    default:
        break;
    }
    a->of_thread = true;
    if (!a->thread)
        a->thread = 1 + tir_sync_unknown(a->q, 0, a->p->threads - 1, 0);
    struct sync_linear thread = tir_sync_single(a->thread - 1);
    switch (inst->op) {
    case TIR_OP_LANEID:
        return tir_sync_rest_of(a, thread, SYNC_LANES);
    case TIR_OP_WARPID:
        return tir_sync_quotient_of(a, thread, SYNC_LANES);
    case TIR_OP_WGID:
        return tir_sync_quotient_of(a, thread, 4 * SYNC_LANES);
    case TIR_OP_TID_IN_WG:
        return tir_sync_rest_of(a, thread, 4 * SYNC_LANES);
    default:
        return thread;
    }
}
