// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Built-ins that combine elements: reductions over one axis or all, scans, user-defined operations.
#include "front/lower/builtin.h"

static struct tir_inst *build_reduce(struct lower *l, enum tir_op op, struct tir_value *x,
                                     uint32_t axis, enum tir_word kind)
{
    struct tir_type t = *x->type;
    if (op == TIR_OP_REDUCE) {
        t.shape[axis] = 1;
        if (t.layout)
            t.layout = tir_layout_slice(l->cx->types, t.layout, axis);
    }
    const struct tir_type *type = tir_type_get(l->cx->types, &t);
    uint32_t fixed = tir_ops[op].fixed_count;
    struct tir_value *operands[2] = {x, NULL}; // the scratch buffer is the passes' own
    struct tir_inst *inst =
        tir_build(&l->b, op, operands, fixed, &type, 1, kind == TIR_WORD_kind_user);
    tir_set_int(l->f, inst, TIR_ATTR_axis, axis);
    tir_set_word(l->f, inst, TIR_ATTR_kind, kind);
    return inst;
}

struct tir_value *builtin_reduce_axis(struct lower *l, enum tir_op op, struct tir_value *x,
                                      uint32_t axis, enum tir_word kind)
{
    return tir_result(build_reduce(l, op, x, axis, kind));
}

// The tile that is combined, of elements the operation takes. NULL: reported.
static struct tir_value *lower_tile(struct lower *l, struct call *c, enum tir_word kind)
{
    const struct ast_expr *e = call_arg(c, 0);
    struct val v = lower_expr(l, e);
    if (!convert_is_value(l, e->span, v))
        return NULL;
    if (v.kind != VAL_IR || v.ir->type->rank == 0) {
        lower_error(l, e->span, TIR_E_RANK, "`%s` combines the elements of a tile, not of %s",
                    c->name, lower_val_name(l, v));
        return NULL;
    }
    bool logical = kind == TIR_WORD_kind_and || kind == TIR_WORD_kind_or;
    if (kind != TIR_WORD_kind_user && logical != (v.ir->type->elem == TIR_BOOL)) {
        lower_error(l, e->span, TIR_E_TYPE, "`%s` takes %s, not %s", c->name,
                    logical ? "bools" : "numbers", lower_val_name(l, v));
        return NULL;
    }
    return v.ir;
}

static bool lower_axis(struct lower *l, const struct ast_expr *e, const struct tir_type *t,
                       uint32_t *out)
{
    int64_t axis;
    if (!const_int(l, e, "the axis", &axis))
        return false;
    int64_t from_front = axis < 0 ? axis + t->rank : axis;
    if (from_front < 0 || from_front >= t->rank) {
        lower_error(l, e->span, TIR_E_AXIS, "%s has axes 0 to %u, not %lld", lower_type_name(l, t),
                    t->rank - 1, (long long)axis);
        return false;
    }
    *out = (uint32_t)from_front;
    return true;
}

bool builtin_all_axes(struct lower *l, struct call *c, int which, val_list *out)
{
    enum tir_word kind = (enum tir_word)which;
    static const char *const named[] = {"axis"};
    if (!call_check(l, c, 1, 1, named, 1))
        return false;
    struct tir_value *x = lower_tile(l, c, kind);
    const struct ast_arg *axis_arg = call_named(c, "axis");
    uint32_t axis;
    if (!x)
        return false;
    if (axis_arg) {
        if (!lower_axis(l, axis_arg->value, x->type, &axis))
            return false;
        x = builtin_reduce_axis(l, TIR_OP_REDUCE, x, axis, kind);
    } else {
        for (axis = x->type->rank; axis-- > 0;)
            if (x->type->shape[axis] > 1)
                x = builtin_reduce_axis(l, TIR_OP_REDUCE, x, axis, kind);
        x = build_reshape(l, x, 0, NULL);
    }
    vec_push(l->arena, out, val_ir(x));
    return true;
}

bool builtin_row(struct lower *l, struct call *c, int which, val_list *out)
{
    if (!call_check(l, c, 1, 1, NULL, 0))
        return false;
    struct tir_value *x = lower_tile(l, c, (enum tir_word)which);
    if (!x)
        return false;
    x = builtin_reduce_axis(l, TIR_OP_REDUCE, x, x->type->rank - 1, (enum tir_word)which);
    vec_push(l->arena, out, val_ir(x));
    return true;
}

// The word for sum, prod, min, max, any, all; else NONE.
static enum tir_word kind_of(const char *name)
{
    if (strcmp(name, "any") == 0)
        return TIR_WORD_kind_or;
    if (strcmp(name, "all") == 0)
        return TIR_WORD_kind_and;
    static const char *const plain[] = {"sum", "prod", "min", "max"};
    for (uint32_t i = 0; i < TIR_COUNT_OF(plain); i++)
        if (strcmp(name, plain[i]) == 0)
            return tir_word_by_name(TIR_ATTR_kind, tir_str_of(name));
    return TIR_WORD_NONE;
}

bool lower_reduce_region(struct lower *l, struct tir_inst *inst, struct tir_span span,
                         struct ast_fn *fn, bool is_region)
{
    enum tir_elem elem = inst->operands[0]->type->elem;
    const struct tir_type *type = tir_type_scalar(l->cx->types, elem);
    struct tir_block *block = inst->regions[0];
    struct tir_builder outer = l->b;
    struct loop *loop = l->loop;
    val_list args = {0}, results = {0};
    if (fn->params.len != 2) {
        lower_error(l, span, TIR_E_ARGUMENTS, "the combining function takes 2 arguments, not %u",
                    fn->params.len);
        return false;
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct tir_value *arg = tir_block_add_arg(l->f, block, type, fn->params.at[i].name);
        vec_push(l->arena, &args, val_ir(arg));
    }
    l->b = tir_builder_at_end(l->f, block);
    l->b.span = span;
    l->loop = NULL;
    struct tir_value *combined = NULL;
    bool ok;
    if (is_region) {
        struct symbol *scope = scope_enter(l);
        for (uint32_t i = 0; i < 2; i++)
            scope_declare(l, fn->params.at[i].name, fn->params.at[i].span, args.at[i]);
        ok = lower_yielding(l, fn->body, span, &type, 1, &combined);
        scope_leave(l, scope);
    } else {
        ok = lower_inline(l, span, fn, &args, NULL, &results);
        if (ok && results.len != 1) {
            lower_error(l, span, TIR_E_RETURN, "`%s` returns %u values where one is needed",
                        fn->name, results.len);
            ok = false;
        }
        combined = ok ? convert_to(l, span, results.at[0], type) : NULL;
        ok = combined != NULL;
    }
    if (ok)
        tir_build_yield(&l->b, &combined, 1);
    l->b = outer;
    l->loop = loop;
    return ok;
}

bool builtin_reduce(struct lower *l, struct call *c, int which, val_list *out)
{
    static const char *const named[] = {"axis"};
    const struct ast_arg *axis_arg = call_named(c, "axis");
    const struct ast_expr *how = call_arg(c, 1);
    if (!call_check(l, c, 2, 2, named, 1))
        return false;
    if (!axis_arg || how->kind != AST_NAME) {
        lower_error(l, c->e->span, TIR_E_ARGUMENTS,
                    "`%s(x, axis = 0, f)` needs an axis and a function", c->name);
        return false;
    }
    struct ast_fn *fn = tir_map_get(&l->program->fns, tir_map_key(how->name));
    enum tir_word kind = fn ? TIR_WORD_kind_user : kind_of(how->name);
    if (kind == TIR_WORD_NONE) {
        scope_unknown_function(l, how->span, how->name);
        return false;
    }
    struct tir_value *x = lower_tile(l, c, kind);
    uint32_t axis;
    if (!x || !lower_axis(l, axis_arg->value, x->type, &axis))
        return false;
    struct tir_inst *inst = build_reduce(l, (enum tir_op)which, x, axis, kind);
    if (fn && !lower_reduce_region(l, inst, how->span, fn, false)) {
        tir_remove(inst);
        return false;
    }
    vec_push(l->arena, out, val_ir(tir_result(inst)));
    return true;
}

bool builtin_cumsum(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    static const char *const named[] = {"axis"};
    if (!call_check(l, c, 1, 2, named, 1))
        return false;
    const struct ast_arg *axis_arg = call_named(c, "axis");
    const struct ast_expr *e = axis_arg ? axis_arg->value : call_arg(c, 1);
    struct tir_value *x = lower_tile(l, c, TIR_WORD_kind_sum);
    uint32_t axis = 0;
    if (!x || (e && !lower_axis(l, e, x->type, &axis)))
        return false;
    if (!e && x->type->rank > 1) {
        lower_error(l, c->e->span, TIR_E_ARGUMENTS, "`cumsum` needs an axis for rank %u",
                    x->type->rank);
        return false;
    }
    x = builtin_reduce_axis(l, TIR_OP_SCAN, x, axis, TIR_WORD_kind_sum);
    vec_push(l->arena, out, val_ir(x));
    return true;
}
