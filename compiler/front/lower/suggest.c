// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What would make types fit, after an error that says that they do not.
#include <ctype.h>

#include "front/lower/lower.h"

// Can an index follow the text as it stands? Names, calls and slices, without an operator outside
// of brackets.
static bool is_postfix(tir_str text)
{
    int depth = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        depth += (c == '(' || c == '[') - (c == ')' || c == ']');
        if (depth == 0 && c != ')' && c != ']' && c != '.' && c != '_' &&
            !isalnum((unsigned char)c))
            return false;
    }
    return true;
}

// f32(N) beside f32 values.
void lower_suggest_cast(struct lower *l, const struct unify *u, const struct val *vals,
                        uint32_t count)
{
    enum tir_elem to = TIR_NONE;
    for (uint32_t i = 0; i < count; i++)
        if (vals[i].kind == VAL_IR && tir_elem_is_float(vals[i].ir->type->elem))
            to = vals[i].ir->type->elem;
    for (uint32_t i = 0; i < count && u->exprs && to != TIR_NONE; i++) {
        const struct ast_expr *e = u->exprs[i];
        tir_str text = e ? tir_source_text(&l->cx->sources, e->span) : (tir_str){0};
        if (text.len && text.len < 80 && vals[i].kind == VAL_IR &&
            tir_elem_is_int(vals[i].ir->type->elem))
            tir_fix_at(
                &l->cx->diags, e->span,
                tir_str_format(l->arena, "%s(" STR_FMT ")", tir_elems[to].name, STR_ARG(text)).ptr,
                "converted");
    }
}

// Has `more` the shape of `less` without that dimension, which has size 1 or is to be repeated?
static bool is_axis_between(const struct tir_type *more, const struct tir_type *less, uint32_t axis,
                            bool repeated)
{
    bool same = repeated || more->shape[axis] == 1;
    for (uint32_t d = 0; d < less->rank; d++)
        same &= less->shape[d] == more->shape[d + (d >= axis)];
    return same;
}

// The text indexed by `word` at the axis, and by `:` at the others.
static const char *indexed_at(struct lower *l, tir_str text, uint32_t rank, uint32_t axis,
                              const char *word)
{
    struct tir_text fix;
    tir_text_init(&fix, l->arena, 0);
    tir_text_format(&fix, is_postfix(text) ? STR_FMT "[" : "(" STR_FMT ")[", STR_ARG(text));
    for (uint32_t d = 0; d < rank; d++)
        tir_text_format(&fix, "%s%s", d ? ", " : "", d == axis ? word : ":");
    tir_text_char(&fix, ']');
    return tir_text_str(&fix).ptr;
}

// A tile with an axis of size 1 too many, or with one too few.
void lower_suggest_axis(struct lower *l, struct tir_span span, const struct tir_type *from,
                        const struct tir_type *to)
{
    const bool drop = from->rank > to->rank;
    const struct tir_type *more = drop ? from : to, *less = drop ? to : from;
    tir_str text = tir_source_text(&l->cx->sources, span);
    if (more->rank != less->rank + 1 || less->rank == 0 || text.len == 0 || text.len > 80)
        return;
    for (uint32_t axis = 0; axis < more->rank; axis++)
        if (is_axis_between(more, less, axis, !drop))
            tir_fix_at(&l->cx->diags, span,
                       indexed_at(l, text, more->rank, axis, drop ? "0" : "None"),
                       drop ? "without the axis" : "repeated along a new axis");
}

// m[:, None] where that makes the shapes fit.
void lower_suggest_none(struct lower *l, const struct ast_expr *e, const struct tir_type *small,
                        const struct tir_type *large)
{
    if (!e || (e->kind != AST_NAME && e->kind != AST_INDEX && e->kind != AST_CALL) ||
        small->rank != 1 || large->rank != 2)
        return;
    bool rows = small->shape[0] == large->shape[0], cols = small->shape[0] == large->shape[1];
    tir_str text = tir_source_text(&l->cx->sources, e->span);
    if (text.len > 80)
        return;
    if (rows)
        tir_fix_at(&l->cx->diags, e->span,
                   tir_str_format(l->arena, STR_FMT "[:, None]", STR_ARG(text)).ptr,
                   "one value for each row");
    if (cols)
        tir_fix_at(&l->cx->diags, e->span,
                   tir_str_format(l->arena, STR_FMT "[None, :]", STR_ARG(text)).ptr,
                   "one value for each column");
}
