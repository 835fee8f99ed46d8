// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Implicit conversions: literals take the type they are used at, elements widen, dimensions of size
// 1 and scalars repeat. Each inserts an instruction only where types differ, so IR text, whose
// types are exact, comes through unchanged.
#include "front/lower/lower.h"

#include <math.h>

#include "ir/number.h"

static const char *elem_name(enum tir_elem e)
{
    return tir_elems[e].name;
}

bool convert_widens(enum tir_elem from, enum tir_elem to)
{
    if (from == to)
        return true;
    const struct tir_elem_info *f = &tir_elems[from], *t = &tir_elems[to];
    if (f->kind == TIR_KIND_FLOAT)
        return (to == TIR_F32 && from != TIR_F64) || to == TIR_F64;
    if (f->kind == TIR_KIND_SIGNED)
        return t->kind == TIR_KIND_SIGNED && t->bits > f->bits;
    if (f->kind == TIR_KIND_UNSIGNED)
        return (t->kind == TIR_KIND_UNSIGNED || t->kind == TIR_KIND_SIGNED) && t->bits > f->bits;
    return false;
}

bool convert_is_value(struct lower *l, struct tir_span span, struct val v)
{
    if (val_is_constant(v) || (v.kind == VAL_IR && v.ir->type->space == TIR_SPACE_VALUE))
        return true;
    if (v.kind == VAL_IR && v.ir->type->elem == TIR_MBARRIER) {
        lower_error(l, span, TIR_E_ROLE, LOWER_NO_VALUE);
    } else if (v.kind == VAL_IR) {
        lower_error(l, span, TIR_E_TYPE, "this is %s; a slice such as [i] or [i:+n] reads it",
                    lower_val_name(l, v));
    } else if (v.kind == VAL_FN) {
        lower_error(l, span, TIR_E_NAME, "`%s` is a function, not a value", v.fn->name);
    } else if (v.kind != VAL_POISON) {
        lower_error(l, span, TIR_E_TYPE, "%s is not a value to compute with", lower_val_name(l, v));
    }
    return false;
}

struct tir_value *build_one(struct lower *l, enum tir_op op, const struct tir_type *type,
                            struct tir_value *const *operands, uint32_t count)
{
    return tir_build1(&l->b, op, type, operands, count);
}

// Compile-time values.

bool convert_int_fits(int64_t v, enum tir_elem e)
{
    uint32_t bits = tir_elems[e].bits;
    if (tir_elems[e].kind == TIR_KIND_UNSIGNED)
        return v >= 0 && (bits == 64 || v < INT64_C(1) << bits);
    return bits == 64 || (v >= -(INT64_C(1) << (bits - 1)) && v < INT64_C(1) << (bits - 1));
}

struct tir_value *convert_constant(struct lower *l, struct tir_span span, struct val v,
                                   const struct tir_type *type)
{
    enum tir_elem e = type->elem;
    if (v.kind == VAL_BOOL && e == TIR_BOOL)
        return tir_const_int(l->f, type, v.truth);
    if (v.kind == VAL_INT && tir_elem_is_int(e)) {
        if (convert_int_fits(v.i, e))
            return tir_const_int(l->f, type, v.i);
        lower_error(l, span, TIR_E_OVERFLOW, "%lld does not fit in %s", (long long)v.i,
                    elem_name(e));
        return NULL;
    }
    if (v.kind != VAL_BOOL && tir_elem_is_float(e)) {
        const double x = v.kind == VAL_INT ? (double)v.i : v.f;
        if (isinf(x) || !isinf(tir_number_round(e, x)))
            return tir_const_float(l->f, type, x);
        lower_error(l, span, TIR_E_OVERFLOW, "%g does not fit in %s; infinity is `inf`", x,
                    elem_name(e));
        return NULL;
    }
    lower_error(l, span, TIR_E_CONVERSION, "%s does not become %s by itself", lower_val_name(l, v),
                elem_name(e));
    return NULL;
}

// Choices among literals.

struct literal_choice {
    struct val a, b;
    uint32_t depth; // of choices in it
};

enum { MOST_CHOICES = 8 }; // in each other

static const struct literal_choice *choice_of(const struct lower *l, struct val v)
{
    return v.kind == VAL_IR ? tir_map_get(&l->literals, tir_map_key(v.ir)) : NULL;
}

bool convert_is_literal(const struct lower *l, struct val v)
{
    return v.kind == VAL_INT || v.kind == VAL_FLOAT || choice_of(l, v);
}

void convert_note_literal(struct lower *l, const struct tir_value *where, struct val a,
                          struct val b)
{
    const struct literal_choice *in[] = {choice_of(l, a), choice_of(l, b)};
    uint32_t depth = 1 + TIR_MAX(in[0] ? in[0]->depth : 0, in[1] ? in[1]->depth : 0);
    if (!convert_is_literal(l, a) || !convert_is_literal(l, b) || depth > MOST_CHOICES)
        return;
    struct literal_choice *c = arena_new(l->arena, struct literal_choice);
    *c = (struct literal_choice){a, b, depth};
    tir_map_set(&l->literals, tir_map_key(where), c);
}

// The choice again, among values of the other type.
static struct tir_value *choose_again(struct lower *l, struct tir_span span, struct tir_value *v,
                                      const struct literal_choice *c, enum tir_elem elem)
{
    const struct tir_type *type = tir_type_with_elem(l->cx->types, v->type, elem);
    struct tir_value *a = convert_elem(l, span, c->a, elem);
    struct tir_value *b = a ? convert_elem(l, span, c->b, elem) : NULL;
    if (!b || !(a = convert_shape(l, span, a, type)) || !(b = convert_shape(l, span, b, type)))
        return NULL;
    struct tir_value *operands[] = {v->def->operands[0], a, b};
    return build_one(l, TIR_OP_WHERE, type, operands, 3);
}

struct tir_value *convert_default(struct lower *l, struct tir_span span, struct val v)
{
    if (v.kind == VAL_IR)
        return v.ir;
    if (!val_is_constant(v)) {
        convert_is_value(l, span, v);
        return NULL;
    }
    enum tir_elem e = v.kind == VAL_INT ? TIR_I64 : v.kind == VAL_FLOAT ? TIR_F32 : TIR_BOOL;
    return convert_constant(l, span, v, tir_type_scalar(l->cx->types, e));
}

// Elements.

struct tir_value *convert_elem(struct lower *l, struct tir_span span, struct val v,
                               enum tir_elem elem)
{
    if (!convert_is_value(l, span, v))
        return NULL;
    if (v.kind != VAL_IR)
        return convert_constant(l, span, v, tir_type_scalar(l->cx->types, elem));
    enum tir_elem from = v.ir->type->elem;
    if (from == elem)
        return v.ir;
    bool adapts = tir_elem_is_int(from) || !convert_widens(from, elem);
    if (adapts && elem != TIR_BOOL && choice_of(l, v))
        return choose_again(l, span, v.ir, choice_of(l, v), elem);
    if (!convert_widens(from, elem)) {
        lower_error(l, span, TIR_E_CONVERSION, "%s does not become %s by itself",
                    lower_val_name(l, v), elem_name(elem));
        tir_str text = tir_source_text(&l->cx->sources, span);
        if (text.len && text.len < 80 && elem != TIR_BOOL)
            tir_fix_at(
                &l->cx->diags, span,
                tir_str_format(l->arena, "%s(" STR_FMT ")", elem_name(elem), STR_ARG(text)).ptr,
                "say that precision or range may be lost");
        return NULL;
    }
    const struct tir_type *type = tir_type_with_elem(l->cx->types, v.ir->type, elem);
    return build_one(l, TIR_OP_CAST, type, &v.ir, 1);
}

struct tir_value *convert_cast(struct lower *l, struct tir_span span, struct val v,
                               enum tir_elem elem)
{
    if (!convert_is_value(l, span, v))
        return NULL;
    const struct tir_type *scalar = tir_type_scalar(l->cx->types, elem);
    if (v.kind == VAL_FLOAT && !tir_elem_is_float(elem))
        v = val_ir(tir_const_float(l->f, tir_type_scalar(l->cx->types, TIR_F64), v.f));
    else if (v.kind == VAL_BOOL && elem != TIR_BOOL)
        v = val_int(v.truth);
    else if (v.kind == VAL_INT && elem == TIR_BOOL)
        v = val_bool(v.i != 0);
    if (v.kind != VAL_IR)
        return convert_constant(l, span, v, scalar);
    if (v.ir->type->elem == elem)
        return v.ir;
    return build_one(l, TIR_OP_CAST, tir_type_with_elem(l->cx->types, v.ir->type, elem), &v.ir, 1);
}

// Shapes.

static struct tir_value *constant_as(struct lower *l, struct tir_value *v,
                                     const struct tir_type *type)
{
    if (tir_elem_is_float(type->elem))
        return tir_const_float(l->f, type, v->constant.f);
    return tir_const_int(l->f, type, v->constant.i);
}

struct tir_value *build_iota(struct lower *l, const struct tir_type *type, uint32_t axis)
{
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_IOTA, NULL, 0, &type, 1, 0);
    tir_set_int(l->f, inst, TIR_ATTR_axis, axis);
    return tir_result(inst);
}

struct tir_value *build_splat(struct lower *l, struct tir_value *v, const struct tir_type *type)
{
    if (v->kind == TIR_VALUE_CONST)
        return constant_as(l, v, type);
    return build_one(l, TIR_OP_BROADCAST, type, &v, 1);
}

struct tir_value *build_reshape(struct lower *l, struct tir_value *v, uint32_t rank,
                                const int64_t *shape)
{
    const struct tir_type *type = tir_type_tile(l->cx->types, v->type->elem, rank, shape);
    if (tir_type_same_shape(type, v->type)) // whatever its layout
        return v;
    if (v->kind == TIR_VALUE_CONST)
        return constant_as(l, v, type);
    return build_one(l, TIR_OP_RESHAPE, type, &v, 1);
}

struct tir_value *build_transpose(struct lower *l, struct tir_value *v)
{
    return v->kind == TIR_VALUE_CONST ? constant_as(l, v, tir_type_transpose(l->cx->types, v->type))
                                      : tir_transpose(&l->b, v);
}

static bool repeats(const struct tir_type *from, const struct tir_type *to)
{
    if (from->rank == 0)
        return true;
    if (from->rank != to->rank)
        return false;
    for (uint32_t d = 0; d < to->rank; d++)
        if (from->shape[d] != to->shape[d] && from->shape[d] != 1)
            return false;
    return true;
}

// Operands come together in the layout of the first that has one.
static void unify_layouts(struct lower *l, struct val *vals, uint32_t count)
{
    const struct tir_layout *layout = NULL;
    for (uint32_t i = 0; i < count && !layout; i++)
        layout = vals[i].ir->type->layout;
    for (uint32_t i = 0; i < count; i++)
        vals[i].ir = tir_in_layout(&l->b, vals[i].ir, layout);
}

struct tir_value *convert_shape(struct lower *l, struct tir_span span, struct tir_value *v,
                                const struct tir_type *type)
{
    if (tir_type_same_shape(v->type, type))
        return tir_in_layout(&l->b, v, type->layout);
    if (!repeats(v->type, type)) {
        lower_error(l, span, TIR_E_SHAPE_MISMATCH, "%s does not fit where %s is needed",
                    lower_type_name(l, v->type), lower_type_name(l, type));
        lower_suggest_axis(l, span, v->type, type);
        return NULL;
    }
    struct tir_type t = *type;
    t.elem = v->type->elem;
    t.layout = NULL;
    return tir_in_layout(&l->b, build_splat(l, v, tir_type_get(l->cx->types, &t)), type->layout);
}

struct tir_value *convert_to(struct lower *l, struct tir_span span, struct val v,
                             const struct tir_type *type)
{
    if (val_is_constant(v))
        return convert_constant(l, span, v, type);
    if (v.kind == VAL_IR && v.ir->type == type)
        return v.ir; // a buffer may be passed on as it is
    if (v.kind == VAL_IR && type->space != TIR_SPACE_VALUE &&
        type == tir_type_with_layout(l->cx->types, v.ir->type, NULL))
        return v.ir; // in its layout
    struct tir_value *converted = convert_elem(l, span, v, type->elem);
    return converted ? convert_shape(l, span, converted, type) : NULL;
}

// Operands of one operation.

static const char *class_name(enum tir_elem_class c)
{
    static const char *const names[] = {"values", "numbers", "floating-point numbers", "integers",
                                        "integers or bools"};
    return names[c];
}

static bool in_class(enum tir_elem e, enum tir_elem_class c)
{
    switch (c) {
    case TIR_CLASS_ANY:
        return true;
    case TIR_CLASS_NUM:
        return e != TIR_BOOL;
    case TIR_CLASS_FLOAT:
        return tir_elem_is_float(e);
    case TIR_CLASS_INT:
        return tir_elem_is_int(e);
    case TIR_CLASS_BITS:
        return tir_elem_is_int(e) || e == TIR_BOOL;
    }
    tir_unreachable();
}

// Compile-time operands alone: the hint, or what a literal is by default.
static enum tir_elem literal_elem(const struct unify *u, const struct val *vals, uint32_t count)
{
    if (u->hint != TIR_NONE)
        return u->hint;
    enum tir_elem e = u->elems == TIR_CLASS_FLOAT ? TIR_F32 : TIR_I64;
    for (uint32_t i = 0; i < count; i++)
        if (vals[i].kind != VAL_INT)
            e = vals[i].kind == VAL_FLOAT ? TIR_F32 : TIR_BOOL;
    return e;
}

static void note_operands(struct lower *l, const struct unify *u, const struct val *vals,
                          uint32_t count)
{
    for (uint32_t i = 0; u->exprs && i < count; i++)
        lower_note_operand(l, u->exprs[i], vals[i]);
}

// The type that all become, those apart that take any: with `literals`, choices among floats have
// their own. False: *e and *other do not come together.
static bool widest_elem(struct lower *l, const struct val *vals, uint32_t count, bool literals,
                        enum tir_elem *e, enum tir_elem *other)
{
    *e = TIR_NONE;
    for (uint32_t i = 0; i < count; i++) {
        if (vals[i].kind != VAL_IR)
            continue;
        enum tir_elem own = vals[i].ir->type->elem;
        if (choice_of(l, vals[i]) && (!literals || tir_elem_is_int(own)))
            continue;
        *other = own;
        if (*e == TIR_NONE || convert_widens(*e, own))
            *e = own;
        else if (!convert_widens(own, *e))
            return false;
    }
    return true;
}

// Choices among literals alone: what literals are by default.
static enum tir_elem default_elem(const struct lower *l, const struct val *vals, uint32_t count)
{
    enum tir_elem e = TIR_NONE;
    for (uint32_t i = 0; i < count; i++)
        if (choice_of(l, vals[i]) && (e == TIR_NONE || tir_elem_is_float(vals[i].ir->type->elem)))
            e = vals[i].ir->type->elem;
    return e;
}

// Is one of the operands `a < b`?
static bool has_comparison(const struct unify *u, uint32_t count)
{
    for (uint32_t i = 0; u->exprs && i < count; i++)
        if (u->exprs[i]->kind == AST_BINARY &&
            (u->exprs[i]->op == TIR_TOK_LT || u->exprs[i]->op == TIR_TOK_LE ||
             u->exprs[i]->op == TIR_TOK_GT || u->exprs[i]->op == TIR_TOK_GE))
            return true;
    return false;
}

static bool common_elem(struct lower *l, const struct unify *u, const struct val *vals,
                        uint32_t count, enum tir_elem *out)
{
    enum tir_elem e, other;
    if (!widest_elem(l, vals, count, true, &e, &other) &&
        !widest_elem(l, vals, count, false, &e, &other)) {
        lower_error(l, u->span, TIR_E_CONVERSION,
                    "%s on %s and %s: neither becomes the other by itself", u->what, elem_name(e),
                    elem_name(other));
        note_operands(l, u, vals, count);
        lower_suggest_cast(l, u, vals, count);
        return false;
    }
    if (e == TIR_NONE)
        e = default_elem(l, vals, count);
    *out = e == TIR_NONE ? literal_elem(u, vals, count) : e;
    if (in_class(*out, u->elems))
        return true;
    lower_error(l, u->span, TIR_E_TYPE, "%s needs %s, not %s", u->what, class_name(u->elems),
                elem_name(*out));
    note_operands(l, u, vals, count);
    if (*out == TIR_BOOL && (u->what[1] == '<' || u->what[1] == '>') && has_comparison(u, count))
        lower_note(l, u->span, "two comparisons are `a < b && b < c`");
    return false;
}

static bool shapes_differ(struct lower *l, const struct unify *u, const struct val *vals,
                          uint32_t count, uint32_t i, uint32_t j)
{
    const struct tir_type *a = vals[i].ir->type, *b = vals[j].ir->type;
    lower_error(l, u->span, TIR_E_SHAPE_MISMATCH, "%s on %s and %s", u->what, lower_type_name(l, a),
                lower_type_name(l, b));
    note_operands(l, u, vals, count);
    if (u->exprs && a->rank < b->rank)
        lower_suggest_none(l, u->exprs[i], a, b);
    else if (u->exprs && b->rank < a->rank)
        lower_suggest_none(l, u->exprs[j], b, a);
    return false;
}

// The shape all operands repeat to.
static bool common_shape(struct lower *l, const struct unify *u, const struct val *vals,
                         uint32_t count, struct tir_type *shape)
{
    uint32_t lead = count; // the first tile
    *shape = (struct tir_type){0};
    for (uint32_t i = 0; i < count; i++) {
        if (vals[i].kind != VAL_IR || vals[i].ir->type->rank == 0)
            continue;
        const struct tir_type *t = vals[i].ir->type;
        if (lead == count) {
            lead = i;
            shape->rank = t->rank;
            memcpy(shape->shape, t->shape, sizeof(shape->shape));
            continue;
        }
        if (t->rank != shape->rank)
            return shapes_differ(l, u, vals, count, lead, i);
        for (uint32_t d = 0; d < t->rank; d++) {
            if (shape->shape[d] == 1)
                shape->shape[d] = t->shape[d];
            else if (t->shape[d] != 1 && t->shape[d] != shape->shape[d])
                return shapes_differ(l, u, vals, count, lead, i);
        }
    }
    return true;
}

bool convert_unify_elems(struct lower *l, const struct unify *u, struct val *vals, uint32_t count)
{
    enum tir_elem elem;
    if (!common_elem(l, u, vals, count, &elem))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if ((vals[i] = val_ir(convert_elem(l, u->span, vals[i], elem))).kind != VAL_IR)
            return false;
    return true;
}

bool convert_unify_shapes(struct lower *l, const struct unify *u, struct val *vals, uint32_t count)
{
    struct tir_type shape;
    if (!common_shape(l, u, vals, count, &shape) || !lower_tile_fits(l, u->span, &shape))
        return false;
    for (uint32_t i = 0; i < count; i++)
        vals[i] = val_ir(convert_shape(l, u->span, vals[i].ir, &shape));
    unify_layouts(l, vals, count);
    return true;
}

bool convert_unify(struct lower *l, const struct unify *u, struct val *vals, uint32_t count)
{
    bool poison = false;
    for (uint32_t i = 0; i < count; i++)
        if (!convert_is_value(l, u->exprs && u->exprs[i] ? u->exprs[i]->span : u->span, vals[i]))
            poison = true;
    enum tir_elem elem;
    struct tir_type shape;
    if (poison || !common_elem(l, u, vals, count, &elem) ||
        !common_shape(l, u, vals, count, &shape))
        return false;
    shape.elem = elem;
    const struct tir_type *type = tir_type_get(l->cx->types, &shape);
    if (!lower_tile_fits(l, u->span, type))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        struct tir_span span = u->exprs && u->exprs[i] ? u->exprs[i]->span : u->span;
        vals[i] = val_ir(convert_to(l, span, vals[i], type));
        if (vals[i].kind == VAL_POISON)
            return false;
    }
    unify_layouts(l, vals, count);
    return true;
}
