// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Built-ins that combine elements: reductions over one axis or all, scans, user-defined operations.
#include "front/lower/builtin.h"
#include "ir/walk.h"

// Of tiles of one shape.
static struct tir_inst *build_combine(struct lower *l, enum tir_op op, const struct val *tiles,
                                      uint32_t count, uint32_t axis, enum tir_word kind)
{
    const struct tir_type *types[TIR_MAX_COMBINED];
    struct tir_value *operands[TIR_REDUCE_SCRATCH + TIR_MAX_COMBINED];
    for (uint32_t i = 0; i < count; i++) {
        struct tir_type t = *tiles[i].ir->type;
        if (op == TIR_OP_REDUCE) {
            t.shape[axis] = 1;
            if (t.layout)
                t.layout = tir_layout_slice(l->cx->types, t.layout, axis);
        }
        types[i] = tir_type_get(l->cx->types, &t);
        operands[i ? TIR_REDUCE_SCRATCH + i : TIR_REDUCE_X] = tiles[i].ir;
    }
    operands[TIR_REDUCE_SCRATCH] = NULL; // the passes' own
    struct tir_inst *inst = tir_build(&l->b, op, operands, TIR_REDUCE_SCRATCH + count, types, count,
                                      kind == TIR_WORD_kind_user);
    tir_set_int(l->f, inst, TIR_ATTR_axis, axis);
    tir_set_word(l->f, inst, TIR_ATTR_kind, kind);
    return inst;
}

struct tir_value *builtin_reduce_axis(struct lower *l, enum tir_op op, struct tir_value *x,
                                      uint32_t axis, enum tir_word kind)
{
    return tir_result(build_combine(l, op, &(struct val){.kind = VAL_IR, .ir = x}, 1, axis, kind));
}

// The tile that is combined. NULL: reported.
static struct tir_value *lower_any_tile(struct lower *l, struct call *c)
{
    const struct ast_expr *e = call_arg(c, 0);
    struct val v = lower_expr(l, e);
    if (!convert_is_value(l, e->span, v))
        return NULL;
    if (v.kind == VAL_IR && v.ir->type->rank)
        return v.ir;
    lower_error(l, e->span, TIR_E_RANK, "`%s` combines the elements of a tile, not of %s", c->name,
                lower_val_name(l, v));
    return NULL;
}

// Of elements that the operation takes. A sum of bools counts those that are true. NULL: reported.
static struct tir_value *lower_tile(struct lower *l, struct call *c, enum tir_word kind)
{
    const struct ast_expr *e = call_arg(c, 0);
    struct tir_value *x = lower_any_tile(l, c);
    if (!x)
        return NULL;
    const bool logical = kind == TIR_WORD_kind_and || kind == TIR_WORD_kind_or;
    const bool bools = x->type->elem == TIR_BOOL;
    if (kind == TIR_WORD_kind_user || logical == bools)
        return x;
    if (kind == TIR_WORD_kind_sum && bools && !l->is_ir)
        return convert_cast(l, e->span, val_ir(x), TIR_I32);
    lower_error(l, e->span, TIR_E_TYPE, "`%s` takes %s, not %s", c->name,
                logical ? "bools" : "numbers", lower_val_name(l, val_ir(x)));
    return NULL;
}

// The axis that e says, from 0 on. False: reported.
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

bool builtin_axis_of(struct lower *l, const struct call *c, uint32_t at, const struct tir_type *t,
                     uint32_t *axis)
{
    const struct ast_expr *named = builtin_named(c, NAMED_axis), *placed = call_arg(c, at);
    *axis = 0;
    if (named && placed) {
        lower_error(l, named->span, TIR_E_ARGUMENTS, "`axis` is given twice");
        return false;
    }
    if (named || placed)
        return lower_axis(l, named ? named : placed, t, axis);
    if (t->rank > 1)
        lower_error(l, c->e->span, TIR_E_ARGUMENTS, "`%s` needs an axis for rank %u", c->name,
                    t->rank);
    return t->rank == 1;
}

struct tir_value *builtin_reduce_all(struct lower *l, struct tir_value *x, enum tir_word kind)
{
    for (uint32_t axis = x->type->rank; axis-- > 0;)
        if (x->type->shape[axis] > 1)
            x = builtin_reduce_axis(l, TIR_OP_REDUCE, x, axis, kind);
    return build_reshape(l, x, 0, NULL);
}

// Of x along the axis that c names, or over everything. NULL: reported.
static struct tir_value *combine_axes(struct lower *l, struct call *c, struct tir_value *x,
                                      enum tir_word kind)
{
    uint32_t axis;
    if (!builtin_named(c, NAMED_axis))
        return builtin_reduce_all(l, x, kind);
    if (!builtin_axis_of(l, c, 1, x->type, &axis))
        return NULL;
    return builtin_reduce_axis(l, TIR_OP_REDUCE, x, axis, kind);
}

bool builtin_all_axes(struct lower *l, struct call *c, int which, val_list *out)
{
    struct tir_value *x = lower_tile(l, c, (enum tir_word)which);
    if (x)
        x = combine_axes(l, c, x, (enum tir_word)which);
    if (x)
        vec_push(l->arena, out, val_ir(x));
    return x;
}

bool builtin_mean(struct lower *l, struct call *c, int which, val_list *out)
{
    struct tir_value *x = lower_any_tile(l, c);
    if (!x)
        return false;
    if (!tir_elem_is_float(x->type->elem)) {
        lower_error(l, call_arg(c, 0)->span, TIR_E_TYPE,
                    "`mean` takes floating-point numbers, not %s", lower_type_name(l, x->type));
        return false;
    }
    struct tir_value *sums = combine_axes(l, c, x, (enum tir_word)which);
    if (!sums)
        return false;
    const double times = (double)(tir_type_count(x->type) / tir_type_count(sums->type));
    sums = tir_binary(&l->b, TIR_OP_DIV, sums, tir_const_float(l->f, sums->type, times));
    vec_push(l->arena, out, val_ir(sums));
    return true;
}

bool builtin_row(struct lower *l, struct call *c, int which, val_list *out)
{
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
    const struct builtin *b = builtin_find(name);
    return b && b->handler == builtin_all_axes ? (enum tir_word)b->which : TIR_WORD_NONE;
}

// The results of the combining function, as elements of these types. False: reported.
static bool call_combining(struct lower *l, struct tir_span span, struct ast_fn *fn,
                           const val_list *args, const struct tir_type *const *types,
                           uint32_t count, struct tir_value **out)
{
    val_list results = {0};
    if (!lower_inline(l, span, fn, args, NULL, &results))
        return false;
    if (results.len != count) {
        lower_error(l, span, TIR_E_RETURN, "`%s` returns %u values where %u %s needed", fn->name,
                    results.len, count, count == 1 ? "is" : "are");
        return false;
    }
    for (uint32_t i = 0; i < count; i++)
        if (!(out[i] = convert_to(l, span, results.at[i], types[i])))
            return false;
    return true;
}

// Each thread combines elements of its own: a tile of them would hold other elements in each.
static bool check_elements(struct lower *l, const struct tir_block *block)
{
    tir_foreach_inst_in(inst, block) {
        if (!tir_has_tile(inst))
            continue;
        lower_error(l, inst->span, TIR_E_RANK,
                    "a combining function works on elements, not on tiles");
        return false;
    }
    return true;
}

bool lower_reduce_region(struct lower *l, struct tir_inst *inst, struct tir_span span,
                         struct ast_fn *fn, bool is_region)
{
    const struct tir_type *types[TIR_MAX_COMBINED];
    struct tir_value *combined[TIR_MAX_COMBINED] = {NULL};
    struct tir_block *block = inst->regions[0];
    struct tir_builder outer = l->b;
    struct loop *loop = l->loop;
    uint32_t count = inst->result_count;
    val_list args = {0};
    for (uint32_t i = 0; i < count; i++)
        types[i] = tir_type_scalar(l->cx->types, inst->results[i]->type->elem);
    if (fn->params.len != 2 * count) {
        lower_error(l, span, TIR_E_ARGUMENTS, "the combining function takes %u arguments%s, not %u",
                    2 * count,
                    count > 1 ? ", an element of each tile and then the next of each" : "",
                    fn->params.len);
        return false;
    }
    for (uint32_t i = 0; i < 2 * count; i++) {
        struct tir_value *arg =
            tir_block_add_arg(l->f, block, types[i % count], fn->params.at[i].name);
        vec_push(l->arena, &args, val_ir(arg));
    }
    l->b = tir_builder_at_end(l->f, block);
    l->b.span = span;
    l->loop = NULL;
    bool ok;
    if (is_region) {
        struct symbol *scope = scope_enter(l);
        for (uint32_t i = 0; i < 2 * count; i++)
            scope_declare(l, fn->params.at[i].name, fn->params.at[i].span, args.at[i]);
        ok = lower_yielding(l, fn->body, span, types, count, combined);
        scope_leave(l, scope);
    } else {
        ok = call_combining(l, span, fn, &args, types, count, combined);
    }
    if (ok)
        tir_build_yield(&l->b, combined, count);
    l->b = outer;
    l->loop = loop;
    return ok && check_elements(l, block);
}

// (x, y, ...): tiles that are combined together, and scalars, which are repeated.
static bool lower_tuple(struct lower *l, struct call *c, struct val *tiles, uint32_t *count)
{
    const struct ast_expr *e = call_arg(c, 0);
    *count = e->items.len;
    if (*count < 2 || *count > TIR_MAX_COMBINED) {
        lower_error(l, e->span, TIR_E_ARGUMENTS, "`%s` combines 2 to %d values together, not %u",
                    c->name, TIR_MAX_COMBINED, *count);
        return false;
    }
    bool ok = true, any = false;
    for (uint32_t i = 0; i < *count; i++) {
        tiles[i] = lower_expr(l, e->items.at[i]);
        ok = ok && convert_is_value(l, e->items.at[i]->span, tiles[i]);
        tiles[i] = ok ? val_ir(convert_default(l, e->items.at[i]->span, tiles[i])) : val_poison();
        ok = ok && tiles[i].kind == VAL_IR;
        any |= ok && tiles[i].ir->type->rank;
    }
    if (ok && !any)
        lower_error(l, e->span, TIR_E_RANK, "`%s` combines the elements of tiles; none of these is",
                    c->name);
    struct unify u = {tir_str_format(l->arena, "`%s`", c->name).ptr, e->span, TIR_CLASS_ANY,
                      TIR_NONE, (const struct ast_expr *const *)e->items.at};
    return ok && any && convert_unify_shapes(l, &u, tiles, *count);
}

bool builtin_reduce(struct lower *l, struct call *c, int which, val_list *out)
{
    const struct ast_expr *what = call_arg(c, 0), *how = call_arg(c, 1);
    const struct fn_value *f = lower_fn_value(l, how);
    if (!builtin_named(c, NAMED_axis) || (how->kind != AST_NAME && !f)) {
        lower_error(l, c->e->span, TIR_E_ARGUMENTS,
                    "`%s(x, axis = 0, f)` needs an axis and a function", c->name);
        return false;
    }
    struct ast_fn *fn = f ? f->fn : NULL;
    enum tir_word kind = fn ? TIR_WORD_kind_user : f ? kind_of(f->name) : TIR_WORD_NONE;
    if (kind == TIR_WORD_NONE && f) {
        lower_error(l, how->span, TIR_E_ARGUMENTS,
                    "`%s` combines by a function of yours, or by `sum`, `prod`, `min`, `max`, "
                    "`any` or `all`, not by `%s`",
                    c->name, f->name);
        return false;
    }
    if (kind == TIR_WORD_NONE) {
        scope_unknown_function(l, l->home, how);
        return false;
    }
    struct val tiles[TIR_MAX_COMBINED];
    uint32_t count = 1, axis;
    if (what->kind == AST_LIST && !fn) {
        lower_error(l, how->span, TIR_E_ARGUMENTS,
                    "several values are combined by a function of yours, not by `%s`", how->name);
        return false;
    }
    if (what->kind == AST_LIST ? !lower_tuple(l, c, tiles, &count)
                               : (tiles[0] = val_ir(lower_tile(l, c, kind))).kind != VAL_IR)
        return false;
    if (!builtin_axis_of(l, c, 2, tiles[0].ir->type, &axis))
        return false;
    struct tir_inst *inst = build_combine(l, (enum tir_op)which, tiles, count, axis, kind);
    if (fn && !lower_reduce_region(l, inst, how->span, fn, false)) {
        tir_remove(inst);
        return false;
    }
    for (uint32_t i = 0; i < count; i++)
        vec_push(l->arena, out, val_ir(inst->results[i]));
    return true;
}

bool builtin_cumsum(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    struct tir_value *x = lower_tile(l, c, TIR_WORD_kind_sum);
    uint32_t axis;
    if (!x || !builtin_axis_of(l, c, 1, x->type, &axis))
        return false;
    x = builtin_reduce_axis(l, TIR_OP_SCAN, x, axis, TIR_WORD_kind_sum);
    vec_push(l->arena, out, val_ir(x));
    return true;
}
