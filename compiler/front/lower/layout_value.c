// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts as compile-time values: a type with a layout where a value stands, and functions of them.
//
//     const ATOM = f32[16, 8] in S[(2, 8, 4, 2) : (2, 4@laneid, 1@laneid, 1)];
//     let x: f32[64, 8] in product(f32[4, 1] in S[(4) : (1@warpid)], ATOM) = X[m:+64, :];
//
// So functions of the program take and give them, and nothing of them is left in the IR.
#include "front/lower/builtin.h"

static struct val val_layout(const struct tir_layout *layout)
{
    return (struct val){.kind = VAL_LAYOUT, .layout = layout};
}

struct val lower_layout_value(struct lower *l, const struct ast_type *from)
{
    const struct tir_type *t = lower_type_and_layout(l, from);
    return t ? val_layout(t->layout) : val_poison();
}

static bool takes_layout(struct lower *l, const struct ast_expr *e, struct val v)
{
    if (v.kind != VAL_LAYOUT && v.kind != VAL_POISON)
        lower_error(l, e->span, TIR_E_TYPE, "expected a layout, not %s", lower_val_name(l, v));
    return v.kind == VAL_LAYOUT;
}

const struct tir_layout *lower_layout_of_value(struct lower *l, const struct ast_layout *from,
                                               const struct tir_type *t)
{
    const struct val v = lower_expr(l, from->value);
    if (!takes_layout(l, from->value, v))
        return NULL;
    bool fits = v.layout->rank == t->rank;
    for (uint32_t d = 0; fits && d < t->rank; d++)
        fits = v.layout->shape[d] == t->shape[d];
    if (fits)
        return v.layout;
    lower_error(l, from->span, TIR_E_TYPE, "%s is none of %s", lower_val_name(l, v),
                lower_type_name(l, t));
    return NULL;
}

// compose(of, by), product(outer, inner)
bool builtin_layouts(struct lower *l, struct call *c, int which, val_list *out)
{
    const struct ast_expr *ea = call_arg(c, 0), *eb = call_arg(c, 1);
    const struct val a = lower_expr(l, ea), b = lower_expr(l, eb);
    if (!takes_layout(l, ea, a) || !takes_layout(l, eb, b))
        return false;
    const struct tir_layout *made = which ? tir_layout_product(l->cx->types, a.layout, b.layout)
                                          : tir_layout_compose(l->cx->types, a.layout, b.layout);
    if (made)
        vec_push(l->arena, out, val_layout(made));
    else if (which)
        lower_error(l, c->e->span, TIR_E_TYPE,
                    "no product: the two have one rank, the outer one no swizzle, and together %d "
                    "iterators and 32 lanes at most",
                    TIR_MAX_ITERS);
    else
        lower_error(l, c->e->span, TIR_E_TYPE,
                    "no composition: the second one is of memory, and picks whole digits of the "
                    "first one's elements, which count row by row");
    return made;
}

// divide(layout, m, n, ...)
bool builtin_divide(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    const struct ast_expr *e = call_arg(c, 0);
    const struct val v = lower_expr(l, e);
    int64_t tile[TIR_MAX_RANK] = {0};
    if (!takes_layout(l, e, v))
        return false;
    if (c->positional != 1 + v.layout->rank) {
        lower_error(l, c->e->span, TIR_E_ARGUMENTS, "%u sizes of tiles for %u dimensions",
                    c->positional - 1, v.layout->rank);
        return false;
    }
    for (uint32_t d = 0; d < v.layout->rank; d++)
        if (!const_int(l, call_arg(c, 1 + d), "the size of a tile", &tile[d]))
            return false;
    const struct tir_layout *made = tir_layout_divide(l->cx->types, v.layout, tile);
    if (made)
        vec_push(l->arena, out, val_layout(made));
    else
        lower_error(l, c->e->span, TIR_E_TYPE,
                    "these tiles do not divide %s, into %d dimensions at most",
                    lower_val_name(l, v), TIR_MAX_RANK);
    return made;
}

// layout_of(x): what is stated for a buffer or tile
bool builtin_layout_of(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    const struct ast_expr *e = call_arg(c, 0);
    const struct val v = lower_part(l, e);
    const struct tir_layout *layout = v.kind == VAL_IR ? v.ir->type->layout : NULL;
    if (layout)
        vec_push(l->arena, out, val_layout(layout));
    else if (v.kind != VAL_POISON)
        lower_error(l, e->span, TIR_E_TYPE, "no layout is stated for %s", lower_val_name(l, v));
    return layout;
}

bool builtin_size_of_layout(struct lower *l, const struct call *c, const struct tir_layout *layout,
                            val_list *out)
{
    struct tir_type t = {.elem = TIR_F32, .rank = layout->rank};
    memcpy(t.shape, layout->shape, sizeof t.shape);
    uint32_t axis = 0;
    const bool given = call_arg(c, 1) || builtin_named(c, NAMED_axis);
    if (given && !builtin_axis_of(l, c, 1, &t, &axis))
        return false;
    vec_push(l->arena, out, val_int(layout->shape[axis]));
    return true;
}
