// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expressions: names, literals, operators.
#include "front/lower/lower.h"
#include "front/parse/foreign.h"

static struct val lower_name(struct lower *l, const struct ast_expr *e)
{
    struct symbol *s = scope_find(l, e->name);
    if (s) {
        s->used = true;
        return s->val;
    }
    const struct fn_value *fn = lower_fn_value(l, e);
    if (fn)
        return (struct val){.kind = VAL_FN, .fn = fn};
    scope_unknown(l, e->span, e->name);
    return val_poison();
}

static struct val lower_int(struct lower *l, const struct ast_expr *e)
{
    if (e->number <= INT64_MAX)
        return val_int((int64_t)e->number);
    // No compile-time integer holds it, and one type has it.
    return val_ir(tir_const_int(l->f, tir_type_scalar(l->cx->types, TIR_U64), (int64_t)e->number));
}

static struct val lower_unary(struct lower *l, const struct ast_expr *e)
{
    // The one integer whose magnitude does not fit; no integer is below it.
    if (e->op == TIR_TOK_SUB && e->a->kind == AST_INT && e->a->number > INT64_MAX) {
        if (e->a->number == UINT64_C(1) << 63)
            return val_int(INT64_MIN);
        lower_error(l, e->span, TIR_E_OVERFLOW, "-%llu does not fit in i64",
                    (unsigned long long)e->a->number);
        return val_poison();
    }
    struct val a = lower_expr(l, e->a);
    if (val_is_constant(a))
        return const_unary(l, e->span, e->op, a);
    if (!convert_is_value(l, e->a->span, a))
        return val_poison();
    bool is_bool = a.ir->type->elem == TIR_BOOL;
    bool fits = e->op == TIR_TOK_SUB   ? !is_bool
                : e->op == TIR_TOK_NOT ? is_bool
                                       : tir_elem_is_int(a.ir->type->elem);
    if (!fits) {
        lower_error(l, e->span, TIR_E_TYPE, "%s does not apply to %s", tir_token_text(e->op),
                    lower_val_name(l, a));
        return val_poison();
    }
    return val_ir(tir_unary(&l->b, e->op == TIR_TOK_SUB ? TIR_OP_NEG : TIR_OP_NOT, a.ir));
}

static enum tir_op op_of(enum tir_token_kind token)
{
    switch (token) {
    case TIR_TOK_ADD:
    case TIR_TOK_ADD_TO:
        return TIR_OP_ADD;
    case TIR_TOK_SUB:
    case TIR_TOK_SUB_TO:
        return TIR_OP_SUB;
    case TIR_TOK_MUL:
    case TIR_TOK_MUL_TO:
        return TIR_OP_MUL;
    case TIR_TOK_DIV:
    case TIR_TOK_DIV_TO:
        return TIR_OP_DIV;
    case TIR_TOK_REM:
        return TIR_OP_REM;
    case TIR_TOK_SHL:
        return TIR_OP_SHL;
    case TIR_TOK_SHR:
        return TIR_OP_SHR;
    case TIR_TOK_AND:
    case TIR_TOK_AND_AND:
        return TIR_OP_AND;
    case TIR_TOK_OR:
    case TIR_TOK_OR_OR:
        return TIR_OP_OR;
    case TIR_TOK_XOR:
        return TIR_OP_XOR;
    case TIR_TOK_LT:
        return TIR_OP_LT;
    case TIR_TOK_LE:
        return TIR_OP_LE;
    case TIR_TOK_GT:
        return TIR_OP_GT;
    case TIR_TOK_GE:
        return TIR_OP_GE;
    case TIR_TOK_EQ:
        return TIR_OP_EQ;
    default:
        return TIR_OP_NE;
    }
}

bool lower_is_fresh_dot(struct lower *l, const struct ast_expr *e)
{
    if (!e || e->kind != AST_CALL || e->base->kind != AST_NAME)
        return false;
    const tir_str name = tir_str_of(e->base->name);
    return ((tir_op_by_name(name) == TIR_OP_DOT && e->args.len == 2) ||
            tir_str_is(name, "dot_scaled")) && // of the standard library
           !tir_map_get(&l->home->fns, tir_map_key(e->base->name));
}

// x + dot(a, b) is dot(a, b, x) when the types agree: the product, made for this expression alone,
// takes x as its accumulator.
static struct tir_value *accumulate(struct lower *l, struct tir_value *product, struct tir_value *x)
{
    struct tir_inst *dot = product->def;
    bool same = x->type->elem == product->type->elem && tir_type_is_tile(x->type) &&
                tir_type_same_shape(x->type, product->type);
    if (!dot || !same || dot->block != l->b.block)
        return NULL;
    if (dot->op != TIR_OP_DOT)
        return batch_accumulate(l, product, x);
    struct tir_value *operands[TIR_DOT_OPERANDS];
    memcpy(operands, dot->operands, sizeof operands);
    operands[TIR_DOT_ACC] = x;
    tir_remove(dot);
    return build_one(l, TIR_OP_DOT, x->type, operands, TIR_DOT_OPERANDS);
}

// Contraction: of a sum with a product in it, the product is not rounded by itself. Only what is
// written so counts, so that a name gives a rounded value.
static bool is_fresh_product(struct lower *l, const struct ast_expr *e, struct val v,
                             const struct tir_type *sum)
{
    enum tir_elem elem = sum->elem;
    bool fuses = elem == TIR_F16 || elem == TIR_BF16 || elem == TIR_F32 || elem == TIR_F64;
    bool written = e && e->kind == AST_BINARY && e->op == TIR_TOK_MUL && v.kind == VAL_IR;
    const struct tir_inst *mul =
        written && fuses && !l->is_ir && !l->rounds_products ? v.ir->def : NULL;
    return mul && mul->op == TIR_OP_MUL && v.ir->type->elem == elem && mul->block == l->b.block;
}

// v before convert_unify gave it a shape and a layout, which is `from` if that was an IR value of
// its element type. The operations for both go.
static struct tir_value *before_unify(struct tir_value *v, struct val from)
{
    while (from.kind == VAL_IR && v != from.ir && v->def &&
           (v->def->op == TIR_OP_BROADCAST || v->def->op == TIR_OP_CONVERT_LAYOUT)) {
        struct tir_inst *unified = v->def;
        v = unified->operands[0];
        tir_remove(unified);
    }
    return v;
}

// a * b + c, for the product that is in[of_product], and converted in vals. A difference negates
// the smaller factor or the other side, before they are repeated.
static struct tir_value *contract(struct lower *l, struct unify *u, enum tir_op op,
                                  const struct val *in, const struct val *vals, uint32_t of_product)
{
    struct tir_value *sum = before_unify(vals[of_product].ir, in[of_product]);
    struct tir_value *other = before_unify(vals[!of_product].ir, in[!of_product]);
    struct tir_value *parts[] = {sum->def->operands[0], sum->def->operands[1], other};
    tir_remove(sum->def);
    if (op == TIR_OP_SUB) {
        uint32_t factor = tir_type_count(parts[1]->type) < tir_type_count(parts[0]->type);
        uint32_t negated = of_product ? factor : 2; // c - a * b, a * b - c
        parts[negated] = tir_unary(&l->b, TIR_OP_NEG, parts[negated]);
    }
    struct val all[] = {val_ir(parts[0]), val_ir(parts[1]), val_ir(parts[2])};
    u->exprs = NULL;
    if (!convert_unify_shapes(l, u, all, 3))
        return NULL;
    struct tir_value *operands[] = {all[0].ir, all[1].ir, all[2].ir};
    return build_one(l, TIR_OP_FMA, all[2].ir->type, operands, 3);
}

static bool is_nan(struct val v)
{
    return v.kind == VAL_FLOAT && v.f != v.f;
}

static void warn_nan(struct lower *l, const struct ast_expr *e, enum tir_token_kind op,
                     struct val a, struct val b)
{
    bool compares = op >= TIR_TOK_LT && op <= TIR_TOK_NE;
    if (compares && (is_nan(a) || is_nan(b)))
        tir_error_at(&l->cx->diags, e->span, TIR_W_NAN_COMPARE,
                     "a comparison with NaN is always %s; `x != x` asks whether x is NaN",
                     op == TIR_TOK_NE ? "true" : "false");
}

struct val lower_binary_vals(struct lower *l, const struct ast_expr *e, enum tir_token_kind token,
                             const struct ast_expr *ea, struct val a, const struct ast_expr *eb,
                             struct val b)
{
    if (a.kind == VAL_POISON || b.kind == VAL_POISON)
        return val_poison();
    warn_nan(l, e, token, a, b);
    const struct ast_expr *exprs[] = {ea, eb};
    if (val_is_constant(a) && val_is_constant(b)) {
        struct val v = const_binary(l, e->span, token, a, b);
        if (v.kind == VAL_POISON)
            lower_suggest_order(l, token, exprs);
        return v;
    }
    enum tir_op op = op_of(token);
    if (op == TIR_OP_ADD && a.kind == VAL_IR && b.kind == VAL_IR) {
        struct tir_value *sum = NULL;
        if (lower_is_fresh_dot(l, eb))
            sum = accumulate(l, b.ir, a.ir);
        else if (lower_is_fresh_dot(l, ea))
            sum = accumulate(l, a.ir, b.ir);
        if (sum)
            return val_ir(sum);
    }
    bool logical = token == TIR_TOK_AND_AND || token == TIR_TOK_OR_OR;
    struct unify u = {tir_token_text(token), e->span, tir_ops[op].elems, TIR_NONE, exprs};
    struct val vals[] = {a, b};
    if (!convert_unify(l, &u, vals, 2)) {
        lower_suggest_order(l, token, exprs);
        return val_poison();
    }
    if (logical && vals[0].ir->type->elem != TIR_BOOL) {
        lower_error(l, e->span, TIR_E_TYPE, "%s needs bools, not %s", u.what,
                    lower_val_name(l, vals[0]));
        return val_poison();
    }
    for (uint32_t i = 0; i < 2 && (op == TIR_OP_ADD || op == TIR_OP_SUB); i++) {
        const struct val in[] = {a, b};
        if (!is_fresh_product(l, exprs[i], in[i], vals[i].ir->type))
            continue;
        struct tir_value *sum = contract(l, &u, op, in, vals, i);
        return sum ? val_ir(sum) : val_poison();
    }
    return val_ir(tir_binary(&l->b, op, vals[0].ir, vals[1].ir));
}

// Is it the neutral element of && or ||, beside a bool of the launch? So passes find what a
// condition says of a launch where metas decide its other part.
static bool is_neutral(enum tir_token_kind op, struct val known, struct val other)
{
    return known.kind == VAL_BOOL && known.truth == (op == TIR_TOK_AND_AND) &&
           (op == TIR_TOK_AND_AND || op == TIR_TOK_OR_OR) && other.kind == VAL_IR &&
           other.ir->type->elem == TIR_BOOL;
}

static struct val lower_binary(struct lower *l, const struct ast_expr *e)
{
    struct val a = lower_expr(l, e->a);
    bool decided = a.kind == VAL_BOOL &&
                   ((e->op == TIR_TOK_AND_AND && !a.truth) || (e->op == TIR_TOK_OR_OR && a.truth));
    if (decided) {
        uses_of(l, e->b);
        return a;
    }
    struct val b = lower_expr(l, e->b);
    if (is_neutral(e->op, a, b) || is_neutral(e->op, b, a))
        return a.kind == VAL_BOOL ? b : a;
    const bool compares = e->op == TIR_TOK_EQ || e->op == TIR_TOK_NE;
    if (compares && a.kind == VAL_LAYOUT && b.kind == VAL_LAYOUT)
        return val_bool(tir_layout_is_same(a.layout, b.layout) == (e->op == TIR_TOK_EQ));
    if (compares && a.kind == VAL_ELEM && b.kind == VAL_ELEM)
        return val_bool((a.elem == b.elem) == (e->op == TIR_TOK_EQ));
    return lower_binary_vals(l, e, e->op, e->a, a, e->b, b);
}

// cond ? a : b
static struct val choose(struct lower *l, const struct ast_expr *e, struct tir_value *cond,
                         struct val a, struct val b)
{
    struct val vals[] = {a, b};
    const struct ast_expr *exprs[] = {e->b, e->c};
    struct unify u = {"`?:`", e->span, TIR_CLASS_ANY, TIR_NONE, exprs};
    if (!convert_unify(l, &u, vals, 2))
        return val_poison();
    struct val all[] = {val_ir(cond), vals[0], vals[1]};
    u.exprs = NULL;
    if (!convert_unify_shapes(l, &u, all, 3))
        return val_poison();
    struct tir_value *operands[] = {all[0].ir, all[1].ir, all[2].ir};
    const struct tir_layout *layout = NULL; // a constant has none
    for (uint32_t i = 0; i < 3 && !layout; i++)
        layout = operands[i]->type->layout;
    const struct tir_type *type = tir_type_with_layout(l->cx->types, operands[1]->type, layout);
    struct tir_value *v = build_one(l, TIR_OP_WHERE, type, operands, 3);
    convert_note_literal(l, v, a, b);
    return val_ir(v);
}

static bool lower_choose(struct lower *l, const struct ast_expr *e, val_list *out)
{
    struct val c = lower_expr(l, e->a);
    val_list a = {0}, b = {0};
    if (c.kind == VAL_BOOL) {
        uses_of(l, c.truth ? e->c : e->b);
        return lower_values(l, c.truth ? e->b : e->c, NULL, 0, out);
    }
    bool ok = lower_values(l, e->b, NULL, 0, &a);
    ok &= lower_values(l, e->c, NULL, 0, &b);
    struct tir_value *cond = convert_elem(l, e->a->span, c, TIR_BOOL);
    if (ok && a.len != b.len) {
        lower_error(l, e->span, TIR_E_ARGUMENTS, "`?:` chooses between %u values and %u", a.len,
                    b.len);
        return false;
    }
    for (uint32_t i = 0; ok && cond && i < a.len; i++) {
        struct val v = choose(l, e, cond, a.at[i], b.at[i]);
        ok = v.kind != VAL_POISON;
        vec_push(l->arena, out, v);
    }
    return ok && cond;
}

bool lower_values(struct lower *l, const struct ast_expr *e, const struct tir_type *const *stated,
                  uint32_t stated_count, val_list *out)
{
    if (e->kind == AST_CALL)
        return lower_call(l, e, stated, stated_count, out);
    if (e->kind == AST_CHOOSE) {
        if (!lower_enter(l, e->span))
            return false;
        struct tir_span outer = l->b.span;
        l->b.span = e->span;
        bool ok = lower_choose(l, e, out);
        l->b.span = outer;
        lower_leave(l);
        return ok;
    }
    struct val v = lower_expr(l, e);
    vec_push(l->arena, out, v);
    return v.kind != VAL_POISON;
}

// x.NAME, of a module x.
static struct val lower_member(struct lower *l, const struct ast_expr *e, const struct module *m)
{
    struct symbol *s = tir_map_get(&m->globals, tir_map_key(e->field));
    const struct fn_value *fn = s ? NULL : lower_fn_value(l, e);
    if (s)
        return s->val;
    if (fn)
        return (struct val){.kind = VAL_FN, .fn = fn};
    lower_error(l, e->span, TIR_E_NAME, "the module `%s` has no `%.64s`", e->base->name, e->field);
    return val_poison();
}

static struct val lower_field(struct lower *l, const struct ast_expr *e)
{
    struct symbol *stage = lower_stage_of(l, e);
    if (stage)
        return lower_stage_field(l, e, stage);
    if (e->base->kind == AST_NAME && !scope_find(l, e->base->name)) {
        scope_unknown_prefix(l, e);
        return val_poison();
    }
    struct val base = lower_expr(l, e->base);
    if (base.kind == VAL_POISON)
        return base;
    if (base.kind == VAL_MODULE)
        return lower_member(l, e, base.module);
    if (strcmp(e->field, "T") != 0) {
        lower_error(l, e->span, TIR_E_NAME, "unknown field `%.64s`; `.T` is the transpose",
                    e->field);
        tir_foreign_help(&l->cx->diags, e->span, e->field);
        return val_poison();
    }
    bool is_buffer = base.kind == VAL_IR && (base.ir->type->space == TIR_SPACE_SHARED ||
                                             base.ir->type->space == TIR_SPACE_TMEM);
    if (!is_buffer && !convert_is_value(l, e->base->span, base))
        return val_poison();
    if (base.kind != VAL_IR || base.ir->type->rank < 2) {
        lower_error(l, e->span, TIR_E_RANK, "`.T` swaps the last two dimensions; %s has fewer",
                    lower_val_name(l, base));
        return val_poison();
    }
    return val_ir(build_transpose(l, base.ir));
}

// Of a call or a choice.
static struct val lower_one_value(struct lower *l, const struct ast_expr *e)
{
    val_list results = {0};
    if (e->kind == AST_CALL ? !lower_call(l, e, NULL, 0, &results) : !lower_choose(l, e, &results))
        return val_poison();
    if (results.len == 1)
        return results.at[0];
    if (results.len == 0)
        return (struct val){VAL_VOID, {0}};
    lower_error(l, e->span, TIR_E_ARGUMENTS, "this %s gives %u values where one is needed",
                e->kind == AST_CALL ? "call" : "choice", results.len);
    return val_poison();
}

static struct val lower_type_value(struct lower *l, const struct ast_expr *e)
{
    struct val v = {.kind = VAL_ELEM};
    if (e->type->layout)
        return lower_layout_value(l, e->type);
    if (e->type->dims.len || e->type->space != TIR_SPACE_VALUE) {
        lower_error(l, e->span, TIR_E_TYPE, "a type stands here where a value is needed");
        return val_poison();
    }
    return lower_elem(l, e->type, &v.elem) ? v : val_poison();
}

static struct val lower_kind(struct lower *l, const struct ast_expr *e)
{
    switch (e->kind) {
    case AST_ERROR:
        return val_poison();
    case AST_INT:
        return lower_int(l, e);
    case AST_FLOAT:
        return val_float(e->real);
    case AST_BOOL:
        return val_bool(e->truth);
    case AST_STRING:
        return (struct val){.kind = VAL_TEXT, .text = e->text};
    case AST_NAME:
        return lower_name(l, e);
    case AST_TYPE:
        return lower_type_value(l, e);
    case AST_UNARY:
        return lower_unary(l, e);
    case AST_BINARY:
        return lower_binary(l, e);
    case AST_CHOOSE:
    case AST_CALL:
        return lower_one_value(l, e);
    case AST_INDEX:
        return lower_index(l, e);
    case AST_FIELD:
        return lower_field(l, e);
    case AST_NONE:
        lower_error(l, e->span, TIR_E_TYPE, "`None` only stands for a new dimension in an index");
        lower_note(l, e->span, "what is left out has its default: `sum(x)` is over everything");
        return val_poison();
    case AST_LIST:
        lower_error(l, e->span, TIR_E_TYPE, "a list is not a value");
        lower_note(
            l, e->span,
            "sizes are arguments, `zeros(f32, 64, 64)`; several axes are reduced one after the other");
        return val_poison();
    }
    tir_unreachable();
}

struct val lower_expr(struct lower *l, const struct ast_expr *e)
{
    if (!lower_enter(l, e->span))
        return val_poison();
    struct tir_span outer = l->b.span;
    l->b.span = e->span;
    struct val v = lower_kind(l, e);
    l->b.span = outer;
    lower_leave(l);
    return v;
}
