// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which products are mma.sync, and which sums are widened for it.

#include "pass/layout/dot.h"

#include "ir/walk.h"
#include "machine/product.h"
#include "pass/layout/warpgroup.h"

struct tir_dot_plan tir_dot_plan(const struct tir_target *target, enum tir_elem a, enum tir_elem b,
                                 enum tir_elem acc, int64_t m, int64_t n, int64_t k)
{
    struct tir_dot_plan plan = {.chunk = TIR_MAX(1, 128 / tir_elems[a].bits)};
    if (a != b) {
        plan.refusal = "its operands have different element types";
        return plan;
    }
    const struct tir_product *product = tir_product_find(TIR_ENGINE_MMA, a, acc);
    if (!product)
        plan.refusal = "no mma instruction has these element types";
    else if (!(target->features & product->feature))
        plan.refusal = "the target has no mma for these element types";
    else if (m % TIR_MMA_ROWS || n % TIR_MMA_COLUMNS || k % product->depth)
        plan.refusal = "the tile is not a multiple of the mma shape";
    if (plan.refusal)
        return plan;
    plan.mma = true;
    plan.kind = product->kind;
    plan.depth = product->depth;
    return plan;
}

void tir_widen_dots(struct tir_func *f)
{
    tir_foreach_inst(inst, f) {
        struct tir_value *d = inst->op == TIR_OP_DOT ? inst->results[0] : NULL;
        if (!d || d->type->elem != TIR_F16 || tir_dot_on_warpgroups(inst))
            continue;
        const struct tir_type *halves = d->type;
        const struct tir_type *wide = tir_type_with_elem(f->module->types, halves, TIR_F32);
        struct tir_builder before = tir_builder_before(f, inst), after = before;
        after.before = inst->next;
        inst->operands[TIR_DOT_ACC] =
            tir_build1(&before, TIR_OP_CAST, wide, &inst->operands[TIR_DOT_ACC], 1);
        d->type = wide;
        struct tir_value *narrow = tir_build1(&after, TIR_OP_CAST, halves, &d, 1);
        tir_replace_uses(f, d, narrow);
        narrow->def->operands[0] = d;
    }
}
