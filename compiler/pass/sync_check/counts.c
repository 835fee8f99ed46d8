// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on what bounds of `for` loops are computed from. Values among these that come from
// data count: each stands for a number (value.c), a multiple of what it goes by.
//
//     for i in range(0, n, 64)            n goes by 64
//     for i in range(ceildiv(n, 64))      n goes by 64
//     for i in range(0, n * 64, 64)       n goes by 1
//
// Roles that load the same element must have the same number, so all that is loaded from a tensor
// goes by the most that any of it does.

#include "pass/sync_check/sync_check.h"

enum { MOST_UNIT = 1 << 20 };

static void go_by(struct sync_program *p, const struct tir_value *v, int64_t unit)
{
    if (v->kind != TIR_VALUE_CONST)
        p->units[v->id] = TIR_MAX(p->units[v->id], TIR_MIN(unit, (int64_t)MOST_UNIT));
}

// The constant by which a product or a quotient multiplies or divides; or 1.
static int64_t factor_of(const struct tir_inst *inst)
{
    int64_t by;
    if (inst->operand_count != 2 || !tir_is_const_int(inst->operands[1], &by))
        return 1;
    if (inst->op == TIR_OP_SHL || inst->op == TIR_OP_SHR)
        by = INT64_C(1) << TIR_MIN(TIR_MAX(by, 0), 20);
    return TIR_MIN(TIR_MAX(by, 1), (int64_t)MOST_UNIT);
}

// From a result to what it is computed from.
static void to_operands(struct sync_program *p, const struct tir_inst *inst)
{
    int64_t unit = p->units[inst->results[0]->id];
    if (!unit)
        return;
    if (inst->op == TIR_OP_LOAD) {
        go_by(p, tir_buffer_root(tir_ref_base(inst)), unit);
        return;
    }
    if (inst->op == TIR_OP_CEILDIV || inst->op == TIR_OP_DIV || inst->op == TIR_OP_SHR)
        unit *= factor_of(inst);
    else if (inst->op == TIR_OP_MUL || inst->op == TIR_OP_SHL)
        unit = TIR_MAX(unit / factor_of(inst), 1);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i]) // an optional one may be left out
            go_by(p, inst->operands[i], unit);
}

// From a tensor to what is loaded from it, and to the integers that this is.
static void to_results(struct sync_program *p, const struct tir_inst *inst)
{
    const struct tir_value *from = NULL;
    if (inst->op == TIR_OP_LOAD)
        from = tir_buffer_root(tir_ref_base(inst));
    else if (inst->op == TIR_OP_CAST || inst->op == TIR_OP_BITCAST)
        from = inst->operands[0];
    if (from && from->kind != TIR_VALUE_CONST)
        go_by(p, inst->results[0], p->units[from->id]);
}

// The tensor of a scalar load; NULL: it is none.
static const struct tir_value *tensor_of(const struct tir_inst *inst)
{
    const bool loads = inst->op == TIR_OP_LOAD && tir_type_is_scalar(inst->results[0]->type) &&
                       tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL;
    return loads ? tir_buffer_root(tir_ref_base(inst)) : NULL;
}

// What is loaded from a tensor of which bounds are computed counts wherever it is loaded: another
// role, or a branch around the loop, may only compare it, as in `if n > 0`.
static void count_alike(struct sync_program *p)
{
    struct bitset tensors = bitset_new(p->cx->scratch, p->f->value_count);
    tir_foreach_inst(inst, p->f) {
        const struct tir_value *tensor = tensor_of(inst);
        if (tensor && bitset_has(&p->counts, inst->results[0]->id))
            bitset_insert(&tensors, tensor->id);
    }
    tir_foreach_inst(inst, p->f) {
        const struct tir_value *tensor = tensor_of(inst);
        if (tensor && bitset_has(&tensors, tensor->id))
            bitset_insert(&p->counts, inst->results[0]->id);
    }
}

void tir_sync_find_counts(struct sync_program *p)
{
    VEC(struct tir_value *) bounds = {0};
    VEC(const struct tir_inst *) computed = {0};
    int64_t most = 1;
    p->units = arena_array(p->cx->scratch, int64_t, p->f->value_count + 1);
    tir_foreach_inst(inst, p->f) {
        if (inst->op == TIR_OP_LOAD || (tir_has_trait(inst, TIR_PURE) && inst->result_count == 1))
            vec_push(p->cx->scratch, &computed, inst);
        if (inst->op != TIR_OP_FOR || !bitset_has(&p->visited, inst->id))
            continue;
        int64_t step = 1;
        tir_is_const_int(inst->operands[TIR_FOR_STEP], &step);
        most = TIR_MAX(most, step);
        for (uint32_t i = TIR_FOR_BEGIN; i <= TIR_FOR_END; i++) {
            go_by(p, inst->operands[i], step);
            vec_push(p->cx->scratch, &bounds, inst->operands[i]);
        }
    }
    p->counts = tir_sync_slice(p, bounds.at, bounds.len);
    count_alike(p);
    for (uint32_t i = computed.len; i-- > 0;)
        to_operands(p, computed.at[i]);
    vec_foreach(const struct tir_inst *const, inst, &computed)
        to_results(p, *inst);
    for (uint32_t i = 0; i < p->f->value_count; i++)
        if (!p->units[i]) // bounds come from it some other way, if they do
            p->units[i] = most;
}
