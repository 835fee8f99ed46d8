// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Types and layouts.
#include "front/parse/parse.h"

static enum ast_axis parse_axis(struct parser *p)
{
    static const char *const words[] = {
        [AST_AXIS_LANE] = "laneid",     [AST_AXIS_WARP] = "warpid",
        [AST_AXIS_WARPGROUP] = "wgid",  [AST_AXIS_THREAD_OF_WARPGROUP] = "tid_in_wg",
        [AST_AXIS_TMEM_LANE] = "TLane", [AST_AXIS_TMEM_COLUMN] = "TCol",
    };
    if (!parse_accept(p, TIR_TOK_AT))
        return AST_AXIS_NONE;
    for (int axis = AST_AXIS_NONE + 1; axis < (int)TIR_COUNT_OF(words); axis++)
        if (parse_at_word(p, words[axis])) {
            parse_step(p);
            return (enum ast_axis)axis;
        }
    parse_unexpected(p, "`laneid`, `warpid`, `wgid`, `tid_in_wg`, `TLane` or `TCol`");
    return AST_AXIS_NONE;
}

// One list of extents or strides: e, or (e, e, ...).
static uint32_t parse_iter_list(struct parser *p, ast_iters *iters, bool strides)
{
    uint32_t count = 0;
    bool many = parse_accept(p, TIR_TOK_LPAREN);
    do {
        if (many && p->now.kind == TIR_TOK_RPAREN)
            break;
        struct ast_expr *e = parse_additive(p);
        enum ast_axis axis = strides ? parse_axis(p) : AST_AXIS_NONE;
        if (p->panic)
            return 0;
        if (!strides)
            vec_push(&p->cx->arena, iters, ((struct ast_iter){.extent = e}));
        else if (count < iters->len)
            iters->at[count].stride = e, iters->at[count].axis = axis;
        count++;
    } while (many && parse_accept(p, TIR_TOK_COMMA));
    if (many)
        parse_expect(p, TIR_TOK_RPAREN, "to end the list");
    return count;
}

// [extents : strides], after S or R.
static void parse_iters(struct parser *p, ast_iters *iters)
{
    parse_step(p);
    parse_expect(p, TIR_TOK_LBRACKET, "in a layout");
    parse_iter_list(p, iters, false);
    parse_expect(p, TIR_TOK_COLON, "between the extents and the strides of a layout");
    struct tir_span span = p->now.span;
    uint32_t strides = parse_iter_list(p, iters, true);
    parse_expect(p, TIR_TOK_RBRACKET, "to end the layout");
    if (!p->panic && strides != iters->len) {
        p->panic = true;
        tir_error_at(&p->cx->diags, span, TIR_E_SYNTAX, "%u strides for %u extents", strides,
                     iters->len);
    }
}

// 64@TCol, behind the + of a layout.
static void parse_offset(struct parser *p, struct ast_layout *l)
{
    const struct tir_span span = p->now.span;
    l->offset = parse_additive(p);
    if (p->panic || parse_axis(p) == AST_AXIS_TMEM_COLUMN || p->panic)
        return;
    p->panic = true;
    tir_error_at(
        &p->cx->diags, span, TIR_E_SYNTAX,
        "behind `+` are replicas, `R[...]`, or columns of tensor memory, `64@TCol`: a tile "
        "lies in all warps of its CTA or role");
}

static void parse_swizzle(struct parser *p, struct ast_layout *l)
{
    parse_step(p);
    parse_expect(p, TIR_TOK_LPAREN, "after `swizzle`");
    l->swizzle = parse_expr(p);
    parse_expect(p, TIR_TOK_RPAREN, "after the swizzle's bytes");
}

static struct ast_layout *parse_layout(struct parser *p)
{
    struct ast_layout *l = arena_new(&p->cx->arena, struct ast_layout);
    uint32_t begin = p->now.span.begin;
    if (parse_at_word(p, "row_major")) {
        parse_step(p);
        l->kind = AST_LAYOUT_ROW_MAJOR;
    } else if (parse_at_word(p, "fragment")) {
        parse_step(p);
        parse_expect(p, TIR_TOK_LPAREN, "after `fragment`");
        if (!p->panic && !parse_at_word(p, "wgmma"))
            parse_unexpected(p, "`wgmma`");
        parse_step(p);
        parse_expect(p, TIR_TOK_RPAREN, "after the fragment's instruction");
        l->kind = AST_LAYOUT_FRAGMENT;
    } else if (parse_at_word(p, "swizzle")) {
        parse_swizzle(p, l);
        l->kind = AST_LAYOUT_SWIZZLE;
    } else if (parse_at_word(p, "S")) {
        parse_iters(p, &l->iters);
        if (!p->panic && parse_accept(p, TIR_TOK_ADD)) {
            if (parse_at_word(p, "R"))
                parse_iters(p, &l->replicas);
            else
                parse_offset(p, l);
        }
        if (!p->panic && parse_at_word(p, "swizzle"))
            parse_swizzle(p, l);
    } else if (!p->panic && p->now.kind == TIR_TOK_NAME) {
        l->kind = AST_LAYOUT_VALUE;
        l->value = parse_postfix(p);
    } else {
        parse_unexpected(p, "a layout: `S[...]`, `swizzle(...)`, `row_major`, `fragment(wgmma)` or "
                            "a name or call that gives one");
    }
    l->span = parse_since(p, begin);
    return l;
}

// fn(f32, i32) -> f32
static struct ast_signature *parse_signature(struct parser *p)
{
    struct ast_signature *s = arena_new(&p->cx->arena, struct ast_signature);
    parse_step(p);
    parse_expect(p, TIR_TOK_LPAREN, "after `fn`");
    while (!p->panic && p->now.kind != TIR_TOK_RPAREN) {
        struct ast_type *t = parse_bare_type(p);
        vec_push(&p->cx->arena, &s->params, t);
        if (!parse_accept(p, TIR_TOK_COMMA))
            break;
    }
    parse_expect(p, TIR_TOK_RPAREN, "after the types of the parameters");
    if (!p->panic && parse_accept(p, TIR_TOK_ARROW)) {
        struct ast_type *t = parse_bare_type(p);
        vec_push(&p->cx->arena, &s->results, t);
    }
    return s;
}

struct ast_type *parse_bare_type(struct parser *p)
{
    struct ast_type *t = arena_new(&p->cx->arena, struct ast_type);
    uint32_t begin = p->now.span.begin;
    if (!p->panic && p->now.kind == TIR_TOK_FN && parse_enter(p)) {
        t->fn = parse_signature(p);
        t->span = parse_since(p, begin);
        parse_leave(p);
        return t;
    }
    if (parse_accept(p, TIR_TOK_SHARED))
        t->space = TIR_SPACE_SHARED;
    else if (parse_accept(p, TIR_TOK_LOCAL))
        t->space = TIR_SPACE_LOCAL;
    else if (parse_accept(p, TIR_TOK_TMEM))
        t->space = TIR_SPACE_TMEM;
    else if (parse_at_word(p, "cluster") &&
             (p->next.kind == TIR_TOK_ELEM || p->next.kind == TIR_TOK_NAME)) {
        parse_step(p);
        t->space = TIR_SPACE_CLUSTER;
    }
    if (p->panic || (p->now.kind != TIR_TOK_ELEM && p->now.kind != TIR_TOK_NAME)) {
        parse_unexpected(p, "a type");
        return t;
    }
    if (p->now.kind == TIR_TOK_ELEM)
        t->elem = p->now.elem;
    else
        t->name = p->now.name;
    parse_step(p);
    if (parse_accept(p, TIR_TOK_LBRACKET)) {
        do {
            struct ast_expr *dim = parse_expr(p);
            vec_push(&p->cx->arena, &t->dims, dim);
        } while (!p->panic && parse_accept(p, TIR_TOK_COMMA));
        parse_expect(p, TIR_TOK_RBRACKET, "after the type's sizes");
    }
    t->span = parse_since(p, begin);
    return t;
}

struct ast_type *parse_type(struct parser *p)
{
    struct ast_type *t = parse_bare_type(p);
    if (!p->panic && parse_accept(p, TIR_TOK_IN)) {
        t->layout = parse_layout(p);
        t->span = parse_since(p, t->span.begin);
    }
    return t;
}
