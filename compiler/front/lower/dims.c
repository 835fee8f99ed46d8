// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dimensions of parameters that are expressions of others: X: f32[2 * N + 1].
//
// Such a dimension has a size of its own, X_0, as one that is named has; that it is 2 * N + 1 is a
// condition of the kernel. If no parameter has the dimension N itself, N follows from X_0:
//     N = (X_0 - 1) / 2
// where the size is a * N + b, and a and b follow from names that are known. N is computed in the
// host block for the clauses, and in the body for everything else.
#include "front/lower/lower.h"

struct linear { // a * x + b
    struct val a, b;
};

struct unknown {      // the first name in an expression that means nothing yet
    const char *name; // NULL: there is none
    struct tir_span span;
    bool is_linear; // it is the only one, and stands in sums and products alone
};

static void find_unknown(struct lower *l, const struct ast_expr *e, bool is_linear,
                         struct unknown *out)
{
    switch (e->kind) {
    case AST_NAME:
        if (scope_find(l, e->name))
            return;
        if (!out->name)
            *out = (struct unknown){e->name, e->span, true};
        out->is_linear &= is_linear && out->name == e->name;
        return;
    case AST_UNARY:
        find_unknown(l, e->a, is_linear && e->op == TIR_TOK_SUB, out);
        return;
    case AST_BINARY:
        is_linear &= e->op == TIR_TOK_ADD || e->op == TIR_TOK_SUB || e->op == TIR_TOK_MUL;
        find_unknown(l, e->a, is_linear, out);
        find_unknown(l, e->b, is_linear, out);
        return;
    case AST_CHOOSE:
        find_unknown(l, e->a, false, out);
        find_unknown(l, e->b, false, out);
        find_unknown(l, e->c, false, out);
        return;
    case AST_CALL:
        vec_foreach(const struct ast_arg, it, &e->args)
            find_unknown(l, it->value, false, out);
        return;
    default:
        return;
    }
}

static struct unknown unknown_of(struct lower *l, const struct ast_expr *e)
{
    struct unknown u = {0};
    find_unknown(l, e, true, &u);
    return u;
}

static bool is_int(struct val v, int64_t i)
{
    return v.kind == VAL_INT && v.i == i;
}

static struct val combine(struct lower *l, const struct ast_expr *e, enum tir_token_kind op,
                          struct val a, struct val b)
{
    bool is_sum = op == TIR_TOK_ADD || op == TIR_TOK_SUB;
    if ((is_sum && is_int(b, 0)) || (!is_sum && is_int(b, 1)))
        return a;
    if ((op == TIR_TOK_ADD && is_int(a, 0)) || (op == TIR_TOK_MUL && is_int(a, 1)))
        return b;
    if (op == TIR_TOK_MUL && (is_int(a, 0) || is_int(b, 0)))
        return val_int(0);
    return lower_binary_vals(l, e, op, NULL, a, NULL, b);
}

// e, in which `name` stands as unknown_of demands, but for products of two of them.
static bool linear_in(struct lower *l, const struct ast_expr *e, const char *name,
                      struct linear *out)
{
    struct linear x, y;
    if (!unknown_of(l, e).name) {
        *out = (struct linear){val_int(0), lower_expr(l, e)};
        return true;
    }
    if (e->kind == AST_NAME) {
        *out = (struct linear){val_int(1), val_int(0)};
        return true;
    }
    if (e->kind == AST_UNARY) {
        x = (struct linear){val_int(0), val_int(0)};
        if (!linear_in(l, e->a, name, &y))
            return false;
    } else if (!linear_in(l, e->a, name, &x) || !linear_in(l, e->b, name, &y)) {
        return false;
    }
    if (e->op != TIR_TOK_MUL) {
        *out = (struct linear){combine(l, e, e->op, x.a, y.a), combine(l, e, e->op, x.b, y.b)};
        return true;
    }
    if (!is_int(x.a, 0) && !is_int(y.a, 0))
        return false;
    const struct linear *free = is_int(x.a, 0) ? &x : &y, *other = free == &x ? &y : &x;
    *out = (struct linear){combine(l, e, TIR_TOK_MUL, other->a, free->b),
                           combine(l, e, TIR_TOK_MUL, other->b, free->b)};
    return true;
}

const char *lower_solve(struct lower *l, const struct ast_expr *e, struct val size, struct val *out,
                        bool *is_multiple)
{
    struct unknown u = unknown_of(l, e);
    struct linear x;
    if (!u.name || !u.is_linear || !linear_in(l, e, u.name, &x) || is_int(x.a, 0))
        return NULL;
    *is_multiple = x.a.kind == VAL_INT && x.a.i > 0 && is_int(x.b, 0);
    struct val above = combine(l, e, TIR_TOK_SUB, size, x.b);
    *out = is_int(x.a, 1) ? above : lower_binary_vals(l, e, TIR_TOK_DIV, NULL, above, NULL, x.a);
    return u.name;
}

bool lower_is_sized(struct lower *l, const struct ast_expr *e)
{
    return unknown_of(l, e).name;
}

// ---- kernels

static struct val size_of(struct lower *l, const struct sized_dim *s)
{
    return val_ir(l->f->dims[s->dim].value);
}

static void demand(struct lower *l, const struct sized_dim *s, enum tir_op op, struct val a,
                   struct val b, value_list *conditions)
{
    const struct tir_type *index = tir_type_scalar(l->cx->types, TIR_I64);
    struct tir_value *x = convert_to(l, s->size->span, a, index);
    struct tir_value *y = convert_to(l, s->size->span, b, index);
    l->b.span = tir_span_join(s->param->span, s->param->type->span);
    if (conditions && x && y)
        vec_push(l->arena, conditions, tir_binary(&l->b, op, x, y));
}

// Declares the name that the size of the dimension gives. False: it gives none.
static bool solve(struct lower *l, const struct sized_dim *s, value_list *conditions)
{
    struct unknown u = unknown_of(l, s->size);
    struct val v;
    bool is_multiple;
    if (!lower_solve(l, s->size, size_of(l, s), &v, &is_multiple))
        return false;
    v = val_ir(convert_default(l, s->size->span, v));
    if (v.ir && v.ir->kind == TIR_VALUE_RESULT)
        v.ir->name = u.name; // for who launches it, too
    scope_declare(l, u.name, u.span, v);
    if (!is_multiple)
        demand(l, s, TIR_OP_GE, v, val_int(0), conditions);
    return true;
}

void lower_sized_dims(struct lower *l, value_list *conditions)
{
    uint32_t left = 0;
    vec_foreach(struct sized_dim, it, &l->sized)
        left += it->is_open = lower_is_sized(l, it->size);
    for (bool again = true; left && again;) {
        again = false;
        vec_foreach(struct sized_dim, it, &l->sized) {
            bool closed = it->is_open && (!lower_is_sized(l, it->size) || solve(l, it, conditions));
            it->is_open &= !closed;
            again |= closed;
            left -= closed;
        }
    }
    vec_foreach(const struct sized_dim, it, &l->sized) {
        if (it->is_open) {
            struct unknown u = unknown_of(l, it->size);
            lower_error(l, u.span, TIR_E_NAME,
                        "nothing says what `%.100s` is: a dimension does that is the name itself, "
                        "or a linear expression in which all other names are known",
                        u.name);
            return;
        }
        if (conditions)
            demand(l, it, TIR_OP_EQ, size_of(l, it), lower_expr(l, it->size), conditions);
    }
}
