// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which products are mma.sync, and which sums are widened for it.

#include "pass/layout/dot.h"

#include "ir/walk.h"
#include "pass/layout/scale.h"
#include "pass/layout/warpgroup.h"

// Of a dot whose scales the pass `scale` has left to mma.sync.
static struct tir_dot_plan scaled_plan(const struct tir_target *target, const struct tir_inst *dot,
                                       struct tir_dot_plan plan)
{
    plan.scaled[0] = tir_scaled_of(dot, target, &plan.refusal);
    if (!plan.scaled[0])
        return plan;
    plan.scaled[1] = tir_scaled_find(TIR_ENGINE_MMA, dot->operands[TIR_DOT_B]->type->elem,
                                     plan.scaled[0]->scale);
    plan.mma = true;
    plan.kind = plan.scaled[0]->kind;
    plan.depth = (uint32_t)tir_scaled_block(plan.scaled[0]) * plan.scaled[0]->scales;
    return plan;
}

struct tir_dot_plan tir_dot_plan(const struct tir_target *target, const struct tir_inst *dot)
{
    const struct tir_type *a = dot->operands[TIR_DOT_A]->type, *b = dot->operands[TIR_DOT_B]->type;
    const struct tir_type *sums = dot->results[0]->type;
    struct tir_dot_plan plan = {.chunk = TIR_MAX(1, 128 / tir_elems[a->elem].bits)};
    if (tir_is_scaled_dot(dot))
        return scaled_plan(target, dot, plan);
    if (!tir_elems_multiply(a->elem, b->elem)) {
        plan.refusal = "its operands have different element types";
        return plan;
    }
    const struct tir_product *product =
        tir_product_find(TIR_ENGINE_MMA, a->elem, b->elem, sums->elem);
    if (!product)
        plan.refusal = "no mma instruction has these element types";
    else if (!(target->features & product->feature))
        plan.refusal = "the target has no mma for these element types";
    else if (sums->shape[0] % TIR_MMA_ROWS || sums->shape[1] % TIR_MMA_COLUMNS ||
             a->shape[1] % product->depth)
        plan.refusal = "the tile is not a multiple of the mma shape";
    if (plan.refusal)
        return plan;
    plan.mma = true;
    plan.kind = product->kind;
    plan.b_kind = tir_b_kind(a->elem, b->elem);
    plan.depth = product->depth;
    if (product->kind == TIR_WORD_kind_f64 && a->shape[1] % (2 * plan.depth) == 0)
        plan.depth *= 2; // of m16n8k16: lanes then load 16 bytes without conflicts
    plan.chunk = plan.depth / 2;
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
