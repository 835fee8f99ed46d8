// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of mma.sync shapes (PTX ISA, "Matrix multiply-accumulate operation using mma").

#include "pass/layout/dot.h"

#include "ir/walk.h"
#include "pass/layout/warpgroup.h"

static const struct mma_row {
    enum tir_elem elem, acc;
    enum tir_word kind;
    uint32_t depth;
    uint32_t feature;
} mma_rows[] = {
    {TIR_F16, TIR_F32, TIR_WORD_kind_f16, 16, TIR_HAS_MMA_F16},
    {TIR_BF16, TIR_F32, TIR_WORD_kind_bf16, 16, TIR_HAS_MMA_F16},
    {TIR_TF32, TIR_F32, TIR_WORD_kind_tf32, 8, TIR_HAS_MMA_F16},
    {TIR_I8, TIR_I32, TIR_WORD_kind_i8, 32, TIR_HAS_MMA_F16},
    {TIR_U8, TIR_I32, TIR_WORD_kind_u8, 32, TIR_HAS_MMA_F16},
    {TIR_E4M3, TIR_F32, TIR_WORD_kind_e4m3, 32, TIR_HAS_MMA_FP8},
    {TIR_E5M2, TIR_F32, TIR_WORD_kind_e5m2, 32, TIR_HAS_MMA_FP8},
};

struct tir_dot_plan tir_dot_plan(const struct tir_target *target, enum tir_elem a, enum tir_elem b,
                                 enum tir_elem acc, int64_t m, int64_t n, int64_t k)
{
    struct tir_dot_plan plan = {.chunk = TIR_MAX(1, 128 / tir_elems[a].bits)};
    if (a != b) {
        plan.refusal = "its operands have different element types";
        return plan;
    }
    plan.refusal = "no mma instruction has these element types";
    for (uint32_t i = 0; i < TIR_COUNT_OF(mma_rows); i++) {
        const struct mma_row *row = &mma_rows[i];
        if (row->elem != a || row->acc != acc)
            continue;
        plan.refusal = "the target has no mma for these element types";
        if (!(target->features & row->feature))
            break;
        plan.refusal = "the tile is not a multiple of the mma shape";
        if (m % 16 || n % 8 || k % row->depth)
            break;
        plan.refusal = NULL;
        plan.mma = true;
        plan.kind = row->kind;
        plan.depth = row->depth;
        break;
    }
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
