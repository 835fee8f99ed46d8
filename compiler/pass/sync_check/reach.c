// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on how far kernels by hand reach into tensors. What lies outside of one is dropped, so
// extents that arguments give are at least so large that what a replay has seen is inside.
//
//     A[r * 4096:+64] = x;          // M = 16448 for a loop of five rounds

#include "pass/sync_check/access.h"

static int64_t end_of(const struct sync_who *who, const struct sync_value *index, int64_t size)
{
    int64_t most = index->kind == SYNC_INT ? index->number : -1;
    for (uint32_t i = 0; index->kind == SYNC_EACH && i < who->agent->warps * SYNC_LANES; i++)
        if (!who->mask || who->mask[i / SYNC_LANES] >> i % SYNC_LANES & 1)
            most = TIR_MAX(most, index->each[i]);
    return TIR_MIN(most, INT32_MAX - TIR_MAX(size, 1)) + TIR_MAX(size, 1);
}

void tir_sync_note_reach(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst)
{
    const struct tir_func *f = r->p->f;
    const struct tir_param *param = tir_param_of(f, tir_ref_base(inst));
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    for (uint32_t d = 0; f->grid_count && param && d < box->list_count; d++) {
        if (param->dims[d].dim < 0 || box->list[d] < 0)
            continue;
        const struct sync_value index = tir_sync_value(r, who->agent, tir_ref_indices(inst)[d]);
        int64_t *reach = &r->p->args[f->dims[param->dims[d].dim].value->index].reach;
        *reach = TIR_MAX(*reach, end_of(who, &index, box->list[d]));
    }
}
