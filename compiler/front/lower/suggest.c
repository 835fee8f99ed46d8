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
    if (more->rank != less->rank + 1 || (!drop && less->rank == 0) || text.len == 0 ||
        text.len > 80)
        return;
    for (uint32_t axis = 0; axis < more->rank; axis++)
        if (is_axis_between(more, less, axis, !drop))
            tir_fix_at(&l->cx->diags, span,
                       indexed_at(l, text, more->rank, axis, drop ? "0" : "None"),
                       drop ? "without the axis" : "repeated along a new axis");
}

static bool repeats_to(int64_t a, int64_t b)
{
    return a == b || a == 1 || b == 1;
}

// m[:, None] and m[None, :], as fixes where that makes the shapes fit, else as what they would be.
void lower_suggest_none(struct lower *l, const struct ast_expr *e, const struct tir_type *small,
                        const struct tir_type *large)
{
    static const char *const each[] = {"one value for each row", "one value for each column"};
    const tir_str text = e ? tir_source_text(&l->cx->sources, e->span) : STR("");
    if (!text.len || text.len > 80 || small->rank != 1 || large->rank != 2)
        return;
    const int64_t size = small->shape[0];
    const char *ways[2];
    bool fits = false;
    for (uint32_t axis = 0; axis < 2; axis++) {
        ways[axis] = indexed_at(l, text, 2, 1 - axis, "None");
        if (!repeats_to(size, large->shape[axis]))
            continue;
        tir_fix_at(&l->cx->diags, e->span, ways[axis], "%s", each[axis]);
        fits = true;
    }
    if (!fits)
        tir_note_at(&l->cx->diags, e->span,
                    "beside rank 2 it is `%s`, [%lld, 1], or `%s`, [1, %lld]", ways[0],
                    (long long)size, ways[1], (long long)size);
}

void lower_suggest_parameter(struct lower *l, struct tir_span span, struct val v)
{
    if (v.kind == VAL_FN)
        tir_note_at(&l->cx->diags, span,
                    "functions are passed as parameters of functions: `fn f(x, g = %s)`, called as "
                    "`f(x)` or `f(x, %s)`",
                    v.fn->name, v.fn->name);
}

// x.T, or x where that is turned already.
void lower_suggest_turned(struct lower *l, const struct ast_expr *e)
{
    const bool is_turned = e->kind == AST_FIELD && strcmp(e->field, "T") == 0;
    const tir_str text = tir_source_text(&l->cx->sources, is_turned ? e->base->span : e->span);
    if (!text.len || text.len > 80)
        return;
    const bool closed = is_turned || is_postfix(text);
    tir_fix_at(&l->cx->diags, e->span,
               tir_str_format(l->arena, "%s" STR_FMT "%s%s", closed ? "" : "(", STR_ARG(text),
                              closed ? "" : ")", is_turned ? "" : ".T")
                   .ptr,
               is_turned ? "the second as it is" : "transpose the second");
}

// In `x & 1 == 1` the comparison comes first, unlike in Python.
void lower_suggest_order(struct lower *l, enum tir_token_kind op, const struct ast_expr *const *e)
{
    if (op != TIR_TOK_AND && op != TIR_TOK_OR && op != TIR_TOK_XOR)
        return;
    for (uint32_t i = 0; i < 2; i++) {
        const bool compares =
            e[i] && e[i]->kind == AST_BINARY && e[i]->op >= TIR_TOK_LT && e[i]->op <= TIR_TOK_NE;
        if (compares && e[i]->span.begin == e[i]->a->span.begin) // else it is in parentheses
            lower_note(l, e[i]->span, "%s is computed before %s; parentheses say otherwise",
                       tir_token_text(e[i]->op), tir_token_text(op));
    }
}
