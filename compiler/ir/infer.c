// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Result types: one function per rule of ops.def, in a table.
//
// A rule looks at the operands, and at the stated type where the operands leave something open: the
// shape of a broadcast, or the layout of a load. A constant tile fits any layout, so a result whose
// operands are all constant takes the stated layout too.

#include "ir/infer.h"

typedef const struct tir_type *rule_fn(struct tir_query *q);

const struct tir_type *tir_infer_refuse(struct tir_query *q, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *q->why = tir_str_vformat(q->m->arena, format, args);
    va_end(args);
    return NULL;
}

const struct tir_type *tir_infer_stated_layout(struct tir_query *q, const struct tir_type *t)
{
    return q->stated && tir_infer_same_but_layout(q->stated, t) ? q->stated : t;
}

const struct tir_type *tir_infer_operand_layout(struct tir_query *q, uint32_t i,
                                                const struct tir_type *t,
                                                const struct tir_layout *layout)
{
    if (q->inst->operands[i]->kind == TIR_VALUE_CONST)
        return tir_infer_stated_layout(q, t);
    return tir_type_with_layout(q->m->types, t, layout);
}

bool tir_infer_axis(struct tir_query *q, uint32_t rank, uint32_t *axis)
{
    int64_t at = tir_attr_int(q->inst, TIR_ATTR_axis, -1);
    if (at < 0 || at >= rank) {
        tir_infer_refuse(q, "axis %lld does not exist in rank %u", (long long)at, rank);
        return false;
    }
    *axis = (uint32_t)at;
    return true;
}

// Rules.

static const struct tir_type *rule_same(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    const struct tir_value *lead = inst->operands[0];
    uint32_t count = inst->operand_count;
    for (uint32_t i = 1; i < count; i++)
        if (lead->kind == TIR_VALUE_CONST)
            lead = inst->operands[i];
    for (uint32_t i = 0; i < count; i++)
        if (!tir_value_fits(inst->operands[i], lead->type))
            return tir_infer_refuse(q, "operands are %s and %s",
                                    tir_infer_text(q, tir_infer_operand(q, 0)),
                                    tir_infer_text(q, tir_infer_operand(q, i ? i : 1)));
    return lead->kind == TIR_VALUE_CONST ? tir_infer_stated_layout(q, lead->type) : lead->type;
}

static const struct tir_type *rule_first(struct tir_query *q)
{
    if (!tir_type_is_scalar(tir_infer_operand(q, 0)) ||
        tir_infer_operand(q, 1) != tir_infer_scalar(q, TIR_I32))
        return tir_infer_refuse(q, "the value must be a scalar and the lane an i32");
    return tir_infer_operand(q, 0);
}

static const struct tir_type *rule_compare(struct tir_query *q)
{
    struct tir_query of_operands = *q;
    const struct tir_type *stated = q->stated;
    if (stated)
        of_operands.stated = tir_type_with_elem(q->m->types, stated, tir_infer_operand(q, 0)->elem);
    const struct tir_type *t = rule_same(&of_operands);
    return t ? tir_type_with_elem(q->m->types, t, TIR_BOOL) : NULL;
}

static const struct tir_type *rule_select(struct tir_query *q)
{
    struct tir_value *const *v = q->inst->operands;
    const struct tir_value *lead = v[1]->kind == TIR_VALUE_CONST ? v[2] : v[1];
    const struct tir_type *t = lead->type;
    if (lead->kind == TIR_VALUE_CONST) {
        t = v[0]->kind == TIR_VALUE_CONST
                ? tir_infer_stated_layout(q, t)
                : tir_type_with_layout(q->m->types, t, v[0]->type->layout);
    }
    if (!tir_value_fits(v[1], t) || !tir_value_fits(v[2], t))
        return tir_infer_refuse(q, "the choices are %s and %s", tir_infer_text(q, v[1]->type),
                                tir_infer_text(q, v[2]->type));
    if (!tir_value_fits(v[0], tir_type_with_elem(q->m->types, t, TIR_BOOL)))
        return tir_infer_refuse(q, "the condition is %s for %s", tir_infer_text(q, v[0]->type),
                                tir_infer_text(q, t));
    return t;
}

static const struct tir_type *rule_permute(struct tir_query *q)
{
    const struct tir_type *x = tir_infer_operand(q, 0);
    const struct tir_attr *order = tir_attr_find(q->inst, TIR_ATTR_permutation);
    if (!order || order->list_count != x->rank)
        return tir_infer_refuse(q, "the permutation does not fit %s", tir_infer_text(q, x));
    struct tir_type t = {.elem = x->elem, .space = x->space, .rank = x->rank};
    uint32_t seen = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
        int64_t from = order->list[d];
        if (from < 0 || from >= x->rank || (seen >> from & 1))
            return tir_infer_refuse(q, "not a permutation of %u dimensions", x->rank);
        seen |= 1u << from;
        t.shape[d] = x->shape[from];
    }
    const struct tir_layout *layout =
        x->layout ? tir_layout_permute(q->m->types, x->layout, order->list) : NULL;
    return tir_infer_operand_layout(q, 0, tir_type_get(q->m->types, &t), layout);
}

// The tiles that are combined together have one shape and one layout; a constant takes any.
static bool combines_together(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    const struct tir_type *x = tir_infer_operand(q, TIR_REDUCE_X);
    uint32_t count = tir_combined_count(inst);
    if (count != inst->result_count || count > TIR_MAX_COMBINED) {
        tir_infer_refuse(q, "%u results of %u tiles; at most %d tiles are combined together",
                         inst->result_count, count, TIR_MAX_COMBINED);
        return false;
    }
    const struct tir_type *first = NULL; // that is no constant
    for (uint32_t i = 0; i < count; i++) {
        const struct tir_value *v = inst->operands[tir_combined_at(inst, i)];
        const struct tir_type *t = v->type;
        const bool is_constant = v->kind == TIR_VALUE_CONST;
        first = first || is_constant ? first : t;
        if (!tir_type_is_tile(t) || !tir_type_same_shape(t, x) ||
            (!is_constant && t->layout != first->layout)) {
            tir_infer_refuse(q, "%s and %s are not combined together",
                             tir_infer_text(q, is_constant ? x : first), tir_infer_text(q, t));
            return false;
        }
    }
    if (count == 1 || tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE) == TIR_WORD_kind_user)
        return true;
    tir_infer_refuse(q, "several tiles are combined by a function");
    return false;
}

// Of reductions and scans.
static const struct tir_type *rule_combine(struct tir_query *q)
{
    uint32_t at = tir_combined_at(q->inst, q->result), axis;
    const struct tir_type *x = tir_infer_operand(q, at);
    if (!tir_infer_axis(q, tir_type_is_tile(x) ? x->rank : 0, &axis) || !combines_together(q))
        return NULL;
    if (q->inst->op == TIR_OP_SCAN)
        return tir_infer_operand_layout(q, at, tir_type_with_layout(q->m->types, x, NULL),
                                        x->layout);
    struct tir_type t = *x;
    t.layout = NULL;
    t.shape[axis] = 1;
    const struct tir_layout *layout =
        x->layout ? tir_layout_slice(q->m->types, x->layout, axis) : NULL;
    return tir_infer_operand_layout(q, at, tir_type_get(q->m->types, &t), layout);
}

enum tir_elem tir_dot_elem(enum tir_elem a, enum tir_elem b, enum tir_elem acc)
{
    bool fp8 = (a == TIR_E4M3 || a == TIR_E5M2) && (b == TIR_E4M3 || b == TIR_E5M2);
    bool int8 = (a == TIR_I8 || a == TIR_U8) && (b == TIR_I8 || b == TIR_U8);
    if (int8)
        return TIR_I32;
    if (!fp8 && (a != b || !tir_elem_is_float(a)))
        return TIR_NONE;
    if (acc == TIR_F16 && (fp8 || a == TIR_F16))
        return TIR_F16;
    return a == TIR_F64 ? TIR_F64 : TIR_F32;
}

static const struct tir_type *rule_dot(struct tir_query *q)
{
    const struct tir_type *a = tir_infer_operand(q, TIR_DOT_A),
                          *b = tir_infer_operand(q, TIR_DOT_B);
    const struct tir_type *acc = tir_infer_operand(q, TIR_DOT_ACC);
    const struct tir_type *both[] = {a, b};
    if (tir_is_scaled_dot(q->inst)) {
        const struct tir_type *sums = tir_infer_scaled_dot(q);
        return sums ? tir_infer_operand_layout(q, TIR_DOT_ACC, sums, acc->layout) : NULL;
    }
    for (uint32_t i = 0; i < 2; i++)
        if (both[i]->rank != 2 ||
            (both[i]->space != TIR_SPACE_VALUE && both[i]->space != TIR_SPACE_SHARED))
            return tir_infer_refuse(q, "%s is not a tile of rank 2", tir_infer_text(q, both[i]));
    if (a->shape[1] != b->shape[0])
        return tir_infer_refuse(q, "%s and %s do not multiply", tir_infer_text(q, a),
                                tir_infer_text(q, b));
    const struct tir_type *t = tir_type_tile(q->m->types, tir_dot_elem(a->elem, b->elem, acc->elem),
                                             2, (int64_t[]){a->shape[0], b->shape[1]});
    if (t->elem == TIR_NONE)
        return tir_infer_refuse(q, "%s and %s do not multiply", tir_infer_text(q, a),
                                tir_infer_text(q, b));
    if (!tir_infer_same_but_layout(acc, t))
        return tir_infer_refuse(q, "the sum is %s where %s is needed", tir_infer_text(q, acc),
                                tir_infer_text(q, t));
    return tir_infer_operand_layout(q, TIR_DOT_ACC, t, acc->layout);
}

static const struct tir_type *rule_i32(struct tir_query *q)
{
    int64_t axis = tir_attr_int(q->inst, TIR_ATTR_axis, 0);
    if (axis < 0 || axis > 2)
        return tir_infer_refuse(q, "a grid has axes 0 to 2");
    const bool of_tensor = q->inst->op == TIR_OP_ALIGNMENT || q->inst->op == TIR_OP_ASKEW;
    if (of_tensor && tir_infer_operand(q, 0)->space != TIR_SPACE_GLOBAL)
        return tir_infer_refuse(q, "%s is not a tensor",
                                tir_infer_text(q, tir_infer_operand(q, 0)));
    if (q->inst->op == TIR_OP_FIRST_CTAID && !tir_infer_response(q))
        return NULL;
    return tir_infer_scalar(q, TIR_I32);
}

// verify.c compares every carried and yielded value; here only the first result is asked for.
static const struct tir_type *rule_carried(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    uint32_t fixed = tir_carried_at(inst);
    if (inst->operand_count < fixed)
        return tir_infer_refuse(q, "%u operands for %u extents", inst->operand_count, fixed);
    for (uint32_t i = 0; i < fixed; i++)
        if (!tir_type_is_scalar(tir_infer_operand(q, i)) ||
            tir_infer_operand(q, i) != tir_infer_operand(q, 0) ||
            !tir_elem_is_int(tir_infer_operand(q, i)->elem))
            return tir_infer_refuse(q, "the bounds must be integers of one type");
    if (inst->operand_count == fixed)
        return tir_infer_nothing(q);
    const struct tir_value *init = inst->operands[fixed];
    return q->stated && tir_value_fits(init, q->stated) ? q->stated : init->type;
}

static const struct tir_type *rule_yielded(struct tir_query *q)
{
    if (tir_infer_operand(q, 0) != tir_infer_scalar(q, TIR_BOOL))
        return tir_infer_refuse(q, "the condition must be a bool");
    return q->stated ? q->stated : tir_infer_nothing(q);
}

static const struct tir_type *rule_bool(struct tir_query *q)
{
    if (q->inst->op == TIR_OP_TEST_WAIT && !tir_infer_phase(q))
        return NULL;
    if (q->inst->op == TIR_OP_IS_CANCELED && !tir_infer_response(q))
        return NULL;
    return tir_infer_scalar(q, TIR_BOOL);
}

// Before the rule: what every row asks of its operands.

static bool elem_in_class(enum tir_elem e, enum tir_elem_class elems)
{
    bool is_int = tir_elem_is_int(e), is_float = tir_elem_is_float(e);
    switch (elems) {
    case TIR_CLASS_ANY:
        return true;
    case TIR_CLASS_NUM:
        return is_int || is_float;
    case TIR_CLASS_FLOAT:
        return is_float;
    case TIR_CLASS_INT:
        return is_int;
    case TIR_CLASS_BITS:
        return is_int || e == TIR_BOOL;
    }
    tir_unreachable();
}

static bool operand_fits(struct tir_query *q, const struct tir_operand_info *info,
                         const struct tir_value *v)
{
    enum tir_op op = q->inst->op;
    bool may_be_buffer = op == TIR_OP_DOT || op == TIR_OP_COPY_ASYNC || op == TIR_OP_PERMUTE ||
                         op == TIR_OP_RESHAPE || op == TIR_OP_GEMM_ASYNC ||
                         op == TIR_OP_GEMM_TMEM || op == TIR_OP_TMEM_COPY ||
                         op == TIR_OP_STORE_ASYNC;
    bool is_mbar = info->role == TIR_ROLE_BARRIER;
    if (v && info->role == TIR_ROLE_SCRATCH)
        return v->type->space == TIR_SPACE_SHARED ||
               (tir_infer_refuse(q, "scratch must be shared"), false);
    if (!v) {
        if (info->kind != TIR_OPERAND_OPT)
            tir_infer_refuse(q, "operand %s is missing", info->name);
        return info->kind == TIR_OPERAND_OPT;
    }
    if (v->type->elem == TIR_MBARRIER && tir_has_trait(q->inst, TIR_READS) && !is_mbar) {
        tir_infer_refuse(q, "only operations on barriers may touch %s", tir_infer_text(q, v->type));
        return false;
    }
    if (v->type->elem == TIR_NONE ||
        (info->kind == TIR_OPERAND_BUF && !tir_type_is_buffer(v->type)) ||
        (info->kind != TIR_OPERAND_BUF && !may_be_buffer && !is_mbar &&
         tir_type_is_buffer(v->type))) {
        tir_infer_refuse(q, "operand %s cannot be %s", info->name, tir_infer_text(q, v->type));
        return false;
    }
    if (info->kind == TIR_OPERAND_IN && !elem_in_class(v->type->elem, tir_ops[op].elems)) {
        tir_infer_refuse(q, "operand %s cannot be %s", info->name, tir_infer_text(q, v->type));
        return false;
    }
    return true;
}

static bool operands_fit(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    const struct tir_op_info *op = &tir_ops[inst->op];
    uint32_t fixed = op->fixed_count, at = 0;
    if (inst->operand_count < fixed ||
        (inst->operand_count > fixed && !op->has_ref && !op->has_list)) {
        tir_infer_refuse(q, "%u operands", inst->operand_count);
        return false;
    }
    for (uint32_t i = 0; i < op->operand_count; i++)
        if (op->operands[i].kind != TIR_OPERAND_REF && op->operands[i].kind != TIR_OPERAND_LIST &&
            !operand_fits(q, &op->operands[i], inst->operands[at++]))
            return false;
    for (uint32_t i = fixed; i < inst->operand_count; i++)
        if (!inst->operands[i]) {
            tir_infer_refuse(q, "operand %u is missing", i);
            return false;
        }
    return true;
}

const struct tir_type *tir_infer(struct tir_module *m, const struct tir_inst *inst,
                                 const struct tir_type *stated, tir_str *why)
{
    return tir_infer_result(m, inst, 0, stated, why);
}

const struct tir_type *tir_infer_result(struct tir_module *m, const struct tir_inst *inst,
                                        uint32_t result, const struct tir_type *stated,
                                        tir_str *why)
{
    static rule_fn *const rules[] = {
        [TIR_RULE_NONE] = tir_infer_none,
        [TIR_RULE_SAME] = rule_same,
        [TIR_RULE_FIRST] = rule_first,
        [TIR_RULE_COMPARE] = rule_compare,
        [TIR_RULE_SELECT] = rule_select,
        [TIR_RULE_STATED] = tir_infer_stated,
        [TIR_RULE_PERMUTE] = rule_permute,
        [TIR_RULE_COMBINE] = rule_combine,
        [TIR_RULE_DOT] = rule_dot,
        [TIR_RULE_LOAD] = tir_infer_load,
        [TIR_RULE_ATOMIC] = tir_infer_atomic,
        [TIR_RULE_ATOM] = tir_infer_atom,
        [TIR_RULE_VIEW] = tir_infer_view,
        [TIR_RULE_INDEX] = tir_infer_index,
        [TIR_RULE_I32] = rule_i32,
        [TIR_RULE_CARRIED] = rule_carried,
        [TIR_RULE_YIELDED] = rule_yielded,
        [TIR_RULE_RING] = tir_infer_ring,
        [TIR_RULE_BOOL] = rule_bool,
    };
    struct tir_query q = {m, inst, stated, why, result};
    return operands_fit(&q) ? rules[tir_ops[inst->op].rule](&q) : NULL;
}
