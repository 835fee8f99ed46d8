// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, mbarriers: a view of one of an array becomes the array and a byte.
//
//     let f: shared mbarrier = view(full[s]);   arrive(f, bytes = 4096);
// becomes
//     arrive(full, mul(s, 8), bytes = 4096);
//
// and the preparation of an array becomes one for each of its barriers.

#include "ir/walk.h"
#include "pass/lower/lower.h"

void tir_lower_mbarrier(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *bar = inst->operands[TIR_BAR];
    struct lower_part part = tir_lower_part_of(lo, bar);
    struct tir_value *at =
        tir_lower_add(lo, &lo->b, tir_lower_part_start(lo, &part), inst->operands[TIR_BAR_AT]);
    int64_t constant = 0, offset = tir_attr_int(inst, TIR_ATTR_offset, 0);
    if (at && tir_is_const_int(at, &constant)) {
        offset += constant;
        at = NULL;
    }
    struct tir_value *operands[] = {part.base, at, NULL};
    uint32_t count = tir_fixed_count(inst);
    for (uint32_t i = TIR_ARRIVE_CTA; i < count; i++)
        operands[i] = inst->operands[i];
    int64_t coord[TIR_MAX_RANK] = {0};
    for (;;) {
        const struct tir_type *types[] = {inst->result_count ? inst->results[0]->type : NULL};
        struct tir_inst *one =
            tir_build(&lo->b, inst->op, operands, count, types, inst->result_count, 0);
        if (inst->result_count)
            tir_replace_uses(lo->f, inst->results[0], one->results[0]);
        for (uint32_t i = 0; i < inst->attr_count; i++)
            tir_set_int(lo->f, one, inst->attrs[i].key, inst->attrs[i].number);
        int64_t here = offset + tir_lower_part_byte(&part, coord);
        if (inst->op == TIR_OP_COMMIT && !tir_commits_copies(inst))
            tir_lower_set_group(lo, one);
        if (here || inst->op == TIR_OP_MBARRIER_INIT) // without: every barrier there is
            tir_set_int(lo->f, one, TIR_ATTR_offset, here);
        uint32_t d = bar->type->rank; // the next barrier of the array
        while (d > 0 && ++coord[d - 1] == bar->type->shape[d - 1])
            coord[--d] = 0;
        if (inst->op != TIR_OP_MBARRIER_INIT || d == 0)
            return;
    }
}
