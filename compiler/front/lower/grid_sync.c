// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where grid_sync may stand: every CTA of the grid comes to it equally often. What the CTAs load is
// taken to be the same for all; what they compute from their own numbers is not.
#include "front/lower/lower.h"
#include "front/lower/varying.h"

static bool differs_by_cta(const struct varying *set, const struct tir_inst *inst)
{
    (void)set;
    return inst->op == TIR_OP_CTA_ID || inst->op == TIR_OP_CLUSTER_ID ||
           inst->op == TIR_OP_CTA_RANK || inst->op == TIR_OP_CTA_IN_CLUSTER;
}

static const struct tir_inst *inside(const struct tir_inst *inst)
{
    for (inst = inst->block->owner; inst; inst = inst->block->owner)
        if (inst->op == TIR_OP_ROLE || inst->op == TIR_OP_SCOPE || inst->op == TIR_OP_TILES)
            return inst;
    return NULL;
}

static bool check(struct lower *l, const struct varying *varying, const struct tir_inst *sync)
{
    const struct tir_inst *around = inside(sync);
    if (around)
        lower_error(l, sync->span, around->op == TIR_OP_TILES ? TIR_E_GRID : TIR_E_ROLE,
                    "`grid_sync` waits for every thread of the grid, so it stands outside %s",
                    around->op == TIR_OP_ROLE    ? "roles"
                    : around->op == TIR_OP_SCOPE ? "scopes"
                                                 : "tiles loops");
    else if (!l->f->grid_count)
        lower_error(l, sync->span, TIR_E_GRID,
                    "`grid_sync` waits for the CTAs of a kernel with `grid(...)`");
    else if (l->f->preferred[0])
        lower_error(
            l, sync->span, TIR_E_GRID,
            "`grid_sync` in a kernel with `preferred(...)`: how many clusters run at a time "
            "is known for one size alone");
    else if (varying_around(varying, sync))
        lower_error(l, sync->span, TIR_E_SYNC_DEADLOCK,
                    "not every CTA of the grid comes to this `grid_sync`: the %s around it depends "
                    "on the number of the CTA",
                    varying_around(varying, sync)->op == TIR_OP_IF ? "condition" : "loop");
    else
        return true;
    return false;
}

bool grid_sync_check(struct lower *l)
{
    struct varying varying = {.f = l->f, .begins = differs_by_cta};
    bool ok = true;
    tir_foreach_inst(inst, l->f) {
        if (inst->op != TIR_OP_GRID_SYNC)
            continue;
        if (!varying.values.words) {
            varying.values = bitset_new(l->arena, l->f->value_count);
            varying_find(&varying);
        }
        ok &= check(l, &varying, inst);
    }
    return ok;
}
