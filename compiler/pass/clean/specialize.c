// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// specialize: bind known dimensions, then fold what follows from them.
//
// A dimension is known when the caller says so or when the kernel demands it (`where M == 512`).
// Its value becomes a constant everywhere, and its place in the shapes of the parameters says the
// number, so the launch still checks it. Conditions of the host block that are then true go; one
// that is false is an error, unless it only chooses the variant, which then is never chosen. A
// condition that stays holds whenever the kernel runs: the same expression in the body is true.
//
//     kernel k(A: f32[M, K]) where eq(M, 64) where eq(rem(K, 8), 0)
//     {
//         let a: i64 = mul(M, 2);
//         let r: i64 = rem(K, 8);
//         let c: bool = eq(r, 0);
//         if c { ... }
//     }
// becomes
//     kernel k(A: f32[64, K]) where eq(rem(K, 8), 0)
//     {
//         ...
//     }
//
// Not done here: scalar parameters, and what a condition implies beyond itself (ir/range.h).

#include "ir/follow.h"
#include "ir/walk.h"
#include "pass/pass.h"

static const struct tir_pass_info fold = {.name = "fold", .general = true, .run = tir_pass_fold};

bool tir_size_parse(tir_str s, int64_t *out)
{
    int64_t value = 0;
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] < '0' || s.ptr[i] > '9' || !tir_mul_checked(value, 10, &value) ||
            !tir_add_checked(value, s.ptr[i] - '0', &value))
            return false;
    *out = value;
    return s.len > 0;
}

static void bind(struct tir_func *f, uint32_t dim, int64_t size)
{
    struct tir_value *value = f->dims[dim].value;
    tir_replace_uses(f, value, tir_const_index(f, size));
    for (uint32_t p = 0; p < f->param_count; p++)
        for (uint32_t d = 0; d < f->params[p].value->type->rank; d++) {
            struct tir_param_dim *at = &f->params[p].dims[d];
            if (at->dim == (int32_t)dim)
                *at = (struct tir_param_dim){.dim = -1, .constant = size};
            else if (at->dim > (int32_t)dim)
                at->dim--;
        }
    f->dim_count--;
    for (uint32_t i = dim; i < f->dim_count; i++)
        f->dims[i] = f->dims[i + 1];
    f->body->arg_count--;
    for (uint32_t i = value->index; i < f->body->arg_count; i++) {
        f->body->args[i] = f->body->args[i + 1];
        f->body->args[i]->index = i;
    }
}

static uint32_t dim_called(const struct tir_func *f, tir_str name)
{
    uint32_t i = 0;
    while (i < f->dim_count && !tir_str_is(name, f->dims[i].name))
        i++;
    return i;
}

static enum tir_change bind_given(struct tir_func *f, struct tir_pass_cx *cx)
{
    enum tir_change change = TIR_UNCHANGED;
    for (uint32_t i = 0; i < cx->known_count; i++) {
        const struct tir_binding *b = &cx->known[i];
        uint32_t dim = dim_called(f, b->name);
        int64_t size;
        if (dim == f->dim_count)
            continue; // another kernel's
        if (!tir_size_parse(b->value, &size)) {
            tir_error_at(cx->diags, f->span, TIR_E_ARGUMENTS,
                         "dimension " STR_FMT " cannot be '" STR_FMT "'", STR_ARG(b->name),
                         STR_ARG(b->value));
            return TIR_FAILED;
        }
        bind(f, dim, size);
        change = TIR_CHANGED;
    }
    return change;
}

// The condition is eq(dim, constant), either way round.
static bool demands_size(const struct tir_func *f, const struct tir_value *condition, uint32_t *dim,
                         int64_t *size)
{
    if (condition->kind != TIR_VALUE_RESULT || condition->def->op != TIR_OP_EQ)
        return false;
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t i = 0; i < f->dim_count; i++)
            if (condition->def->operands[side] == f->dims[i].value &&
                tir_is_const_int(condition->def->operands[!side], size) && *size >= 0) {
                *dim = i;
                return true;
            }
    return false;
}

bool tir_demanded_size(const struct tir_func *f, const struct tir_value *dim, int64_t *size)
{
    const struct tir_inst *yield = tir_yield_of(f->host);
    uint32_t which;
    for (uint32_t i = tir_conditions_at(f); yield && i < yield->operand_count - f->when_count; i++)
        if (demands_size(f, yield->operands[i], &which, size) && f->dims[which].value == dim)
            return true;
    return false;
}

// What only chooses a variant says nothing of the others, and all have one signature.
static bool bind_demanded(struct tir_func *f)
{
    struct tir_inst *yield = tir_yield_of(f->host);
    bool changed = false;
    uint32_t dim;
    int64_t size;
    for (uint32_t i = tir_conditions_at(f); yield && i < yield->operand_count - f->when_count; i++)
        if (demands_size(f, yield->operands[i], &dim, &size)) {
            bind(f, dim, size);
            changed = true;
        }
    return changed;
}

// Drops the conditions that are true.
static enum tir_change settle_conditions(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct tir_inst *yield = tir_yield_of(f->host);
    uint32_t kept = tir_conditions_at(f);
    if (!yield)
        return TIR_UNCHANGED;
    const uint32_t whens = yield->operand_count - f->when_count;
    for (uint32_t i = kept; i < yield->operand_count; i++) {
        struct tir_value *v = yield->operands[i];
        bool is_true = v->kind == TIR_VALUE_CONST && v->constant.i;
        if (v->kind == TIR_VALUE_CONST && !is_true && i < whens) {
            tir_error_at(cx->diags, f->span, TIR_E_ARGUMENTS,
                         "condition %u of kernel %s does not hold for these dimensions",
                         i - tir_conditions_at(f) + 1, f->name);
            return TIR_FAILED;
        }
        if (!is_true)
            yield->operands[kept++] = v;
        else if (i >= whens)
            f->when_count--;
    }
    bool changed = kept != yield->operand_count;
    yield->operand_count = kept;
    return changed ? TIR_CHANGED : TIR_UNCHANGED;
}

static bool use_conditions(struct tir_func *f, struct tir_pass_cx *cx)
{
    const struct tir_inst *yield = tir_yield_of(f->host);
    bool changed = false;
    for (uint32_t c = tir_conditions_at(f); yield && c < yield->operand_count; c++) {
        if (yield->operands[c]->kind == TIR_VALUE_CONST)
            continue;
        tir_foreach_inst(inst, f) {
            for (uint32_t i = 0; i < inst->operand_count; i++) {
                struct tir_value *v = inst->operands[i];
                if (v && tir_same_value(cx->scratch, v, yield->operands[c])) {
                    inst->operands[i] = tir_const_bool(f, true);
                    changed = true;
                }
            }
        }
    }
    return changed;
}

enum tir_change tir_pass_specialize(struct tir_func *f, struct tir_pass_cx *cx)
{
    enum tir_change given = bind_given(f, cx);
    if (given == TIR_FAILED)
        return TIR_FAILED;
    bool changed = bind_demanded(f) | (given == TIR_CHANGED);
    enum tir_change folded = tir_run_pass(f, cx, &fold);
    if (folded == TIR_FAILED)
        return TIR_FAILED;
    enum tir_change settled = settle_conditions(f, cx);
    if (settled == TIR_FAILED)
        return TIR_FAILED;
    changed |= use_conditions(f, cx) | (folded == TIR_CHANGED) | (settled == TIR_CHANGED);
    return changed ? TIR_CHANGED : TIR_UNCHANGED;
}
