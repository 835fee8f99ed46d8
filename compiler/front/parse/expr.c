// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expressions, by precedence climbing.
#include "front/parse/parse.h"

#include <math.h>

static struct ast_expr *new_expr(struct parser *p, enum ast_expr_kind kind, uint32_t begin)
{
    struct ast_expr *e = arena_new(&p->cx->arena, struct ast_expr);
    e->kind = kind;
    e->span = parse_since(p, begin);
    return e;
}

// Makes e at least one deeper than child; a tree that is too deep becomes an error.
static void deepen(struct parser *p, struct ast_expr *e, const struct ast_expr *child)
{
    if (!child || child->depth < e->depth)
        return;
    e->depth = (uint16_t)(child->depth + 1);
    if (e->depth <= TIR_MAX_NESTING || p->panic)
        return;
    tir_error_at(&p->cx->diags, e->span, TIR_E_NESTING,
                 "an expression with more than %d operations in a chain", TIR_MAX_NESTING);
    p->panic = true;
}

static struct ast_expr *parse_list(struct parser *p, enum tir_token_kind close, uint32_t begin)
{
    struct ast_expr *list = new_expr(p, AST_LIST, begin);
    while (!p->panic && p->now.kind != close) {
        struct ast_expr *item = parse_expr(p);
        vec_push(&p->cx->arena, &list->items, item);
        deepen(p, list, item);
        if (!parse_accept(p, TIR_TOK_COMMA))
            break;
    }
    parse_expect(p, close, "to end the list");
    list->span = parse_since(p, begin);
    return list;
}

struct ast_arg parse_arg(struct parser *p)
{
    struct ast_arg arg = {.span = p->now.span};
    if (p->now.kind == TIR_TOK_NAME && p->next.kind == TIR_TOK_ASSIGN) {
        arg.name = p->now.name;
        parse_step(p);
        parse_step(p);
        uint32_t begin = p->now.span.begin;
        if (parse_accept(p, TIR_TOK_LBRACKET)) {
            arg.value = parse_list(p, TIR_TOK_RBRACKET, begin);
            return arg;
        }
    }
    arg.value = parse_expr(p);
    return arg;
}

struct ast_expr *parse_parentheses(struct parser *p, uint32_t begin)
{
    parse_step(p);
    struct ast_expr *e = parse_expr(p);
    if (p->now.kind != TIR_TOK_COMMA) {
        parse_expect(p, TIR_TOK_RPAREN, "to close the parenthesis");
        e->span = parse_since(p, begin);
        return e;
    }
    parse_step(p);
    struct ast_expr *list = parse_list(p, TIR_TOK_RPAREN, begin);
    struct ast_expr *whole = new_expr(p, AST_LIST, begin);
    vec_push(&p->cx->arena, &whole->items, e);
    vec_foreach(struct ast_expr *, it, &list->items)
        vec_push(&p->cx->arena, &whole->items, *it);
    whole->depth = list->depth;
    deepen(p, whole, e);
    return whole;
}

static struct ast_expr *parse_primary(struct parser *p)
{
    uint32_t begin = p->now.span.begin;
    struct tir_token t = p->now;
    enum ast_expr_kind kind;
    switch (t.kind) {
    case TIR_TOK_INT:
        kind = AST_INT;
        break;
    case TIR_TOK_FLOAT:
    case TIR_TOK_INF:
    case TIR_TOK_NAN:
        kind = AST_FLOAT;
        break;
    case TIR_TOK_TRUE:
    case TIR_TOK_FALSE:
        kind = AST_BOOL;
        break;
    case TIR_TOK_NONE:
        kind = AST_NONE;
        break;
    case TIR_TOK_STRING:
        kind = AST_STRING;
        break;
    case TIR_TOK_NAME:
        kind = AST_NAME;
        break;
    case TIR_TOK_LPAREN:
        return parse_parentheses(p, begin);
    case TIR_TOK_ELEM:
    case TIR_TOK_SHARED:
    case TIR_TOK_LOCAL:
    case TIR_TOK_TMEM: {
        struct ast_type *type = parse_type(p);
        struct ast_expr *e = new_expr(p, AST_TYPE, begin);
        e->type = type;
        return e;
    }
    default:
        parse_unexpected(p, "an expression");
        return new_expr(p, AST_ERROR, begin);
    }
    parse_step(p);
    struct ast_expr *e = new_expr(p, kind, begin);
    if (kind == AST_INT)
        e->number = t.number;
    else if (kind == AST_FLOAT)
        e->real = t.kind == TIR_TOK_INF   ? (double)INFINITY
                  : t.kind == TIR_TOK_NAN ? (double)NAN
                                          : t.real;
    else if (kind == AST_BOOL)
        e->truth = t.kind == TIR_TOK_TRUE;
    else if (kind == AST_STRING)
        e->text = t.text;
    else if (kind == AST_NAME)
        e->name = t.name;
    return e;
}

// After the colon of a slice. Other languages leave the end out.
static struct ast_expr *parse_slice_end(struct parser *p)
{
    const enum tir_token_kind at = p->now.kind;
    if (at == TIR_TOK_RBRACKET || at == TIR_TOK_COMMA || at == TIR_TOK_COLON)
        parse_unexpected(p, "the end of the slice");
    return parse_expr(p);
}

static struct ast_index parse_index(struct parser *p)
{
    struct ast_index index = {.kind = AST_ALL};
    uint32_t begin = p->now.span.begin;
    if (!parse_accept(p, TIR_TOK_COLON)) {
        index.first = parse_expr(p);
        index.kind = AST_ONE;
        if (parse_accept(p, TIR_TOK_TAKE)) {
            index.kind = AST_TAKE;
            index.second = parse_expr(p);
        } else if (parse_accept(p, TIR_TOK_COLON)) {
            index.kind = AST_RANGE;
            index.second = parse_slice_end(p);
        }
        if (index.second && parse_accept(p, TIR_TOK_COLON))
            index.stride = parse_expr(p);
    }
    index.span = parse_since(p, begin);
    return index;
}

static struct ast_expr *parse_indexing(struct parser *p, struct ast_expr *base)
{
    struct ast_expr *e = new_expr(p, AST_INDEX, base->span.begin);
    e->base = base;
    parse_step(p);
    do {
        struct ast_index index = parse_index(p);
        vec_push(&p->cx->arena, &e->indices, index);
        deepen(p, e, index.first);
        deepen(p, e, index.second);
        deepen(p, e, index.stride);
    } while (!p->panic && parse_accept(p, TIR_TOK_COMMA));
    parse_expect(p, TIR_TOK_RBRACKET, "after the indices");
    return e;
}

// `with (a: f32, b: f32) { ... }` after a reduction
static struct ast_fn *parse_region(struct parser *p)
{
    struct ast_fn *fn = arena_new(&p->cx->arena, struct ast_fn);
    fn->span = p->now.span;
    parse_step(p);
    parse_expect(p, TIR_TOK_LPAREN, "after `with`");
    parse_bindings(p, &fn->params, TIR_TOK_RPAREN);
    fn->body = parse_block(p);
    return fn;
}

static struct ast_expr *parse_call(struct parser *p, struct ast_expr *base)
{
    struct ast_expr *e = new_expr(p, AST_CALL, base->span.begin);
    e->base = base;
    parse_step(p);
    while (!p->panic && p->now.kind != TIR_TOK_RPAREN) {
        struct ast_arg arg = parse_arg(p);
        vec_push(&p->cx->arena, &e->args, arg);
        deepen(p, e, arg.value);
        if (!parse_accept(p, TIR_TOK_COMMA))
            break;
    }
    parse_expect(p, TIR_TOK_RPAREN, "after the arguments");
    if (parse_at_word(p, "with") && p->next.kind == TIR_TOK_LPAREN && !p->panic)
        e->region = parse_region(p);
    return e;
}

struct ast_expr *parse_postfix(struct parser *p)
{
    struct ast_expr *e = parse_primary(p);
    while (!p->panic) {
        struct ast_expr *base = e;
        if (p->now.kind == TIR_TOK_LBRACKET) {
            e = parse_indexing(p, base);
        } else if (p->now.kind == TIR_TOK_LPAREN) {
            e = parse_call(p, base);
        } else if (parse_accept(p, TIR_TOK_DOT)) {
            struct tir_span span;
            const char *field = parse_name(p, &span, "`T`");
            e = new_expr(p, AST_FIELD, base->span.begin);
            e->base = base;
            e->field = field;
        } else {
            break;
        }
        e->span = parse_since(p, base->span.begin);
        deepen(p, e, base);
    }
    return e;
}

static struct ast_expr *parse_unary(struct parser *p)
{
    enum tir_token_kind op = p->now.kind;
    if (op != TIR_TOK_SUB && op != TIR_TOK_NOT && op != TIR_TOK_BIT_NOT)
        return parse_postfix(p);
    uint32_t begin = p->now.span.begin;
    if (!parse_enter(p))
        return new_expr(p, AST_ERROR, begin);
    parse_step(p);
    struct ast_expr *a = parse_unary(p);
    parse_leave(p);
    struct ast_expr *e = new_expr(p, AST_UNARY, begin);
    e->op = op;
    e->a = a;
    deepen(p, e, a);
    return e;
}

enum { LEVEL_ADD = 9 };

static int level_of(enum tir_token_kind op)
{
    switch (op) {
    case TIR_TOK_OR_OR:
        return 1;
    case TIR_TOK_AND_AND:
        return 2;
    case TIR_TOK_OR:
        return 3;
    case TIR_TOK_XOR:
        return 4;
    case TIR_TOK_AND:
        return 5;
    case TIR_TOK_EQ:
    case TIR_TOK_NE:
        return 6;
    case TIR_TOK_LT:
    case TIR_TOK_LE:
    case TIR_TOK_GT:
    case TIR_TOK_GE:
        return 7;
    case TIR_TOK_SHL:
    case TIR_TOK_SHR:
        return 8;
    case TIR_TOK_ADD:
    case TIR_TOK_SUB:
        return LEVEL_ADD;
    case TIR_TOK_MUL:
    case TIR_TOK_DIV:
    case TIR_TOK_REM:
        return LEVEL_ADD + 1;
    default:
        return 0;
    }
}

static struct ast_expr *parse_binary(struct parser *p, int lowest)
{
    struct ast_expr *a = parse_unary(p);
    for (;;) {
        enum tir_token_kind op = p->now.kind;
        int level = level_of(op);
        if (p->panic || level < lowest || level == 0)
            return a;
        parse_step(p);
        struct ast_expr *b = parse_binary(p, level + 1);
        struct ast_expr *e = new_expr(p, AST_BINARY, a->span.begin);
        e->op = op;
        e->a = a;
        e->b = b;
        deepen(p, e, a);
        deepen(p, e, b);
        a = e;
    }
}

static struct ast_expr *parse_choice(struct parser *p)
{
    struct ast_expr *c = parse_binary(p, 1);
    if (p->panic || !parse_accept(p, TIR_TOK_QUESTION))
        return c;
    struct ast_expr *a = parse_expr(p);
    parse_expect(p, TIR_TOK_COLON, "between the two sides of `?`");
    struct ast_expr *b = parse_expr(p);
    struct ast_expr *e = new_expr(p, AST_CHOOSE, c->span.begin);
    e->a = c;
    e->b = a;
    e->c = b;
    deepen(p, e, c);
    deepen(p, e, a);
    deepen(p, e, b);
    return e;
}

struct ast_expr *parse_expr(struct parser *p)
{
    uint32_t begin = p->now.span.begin;
    if (!parse_enter(p))
        return new_expr(p, AST_ERROR, begin);
    struct ast_expr *e = parse_choice(p);
    parse_leave(p);
    return e;
}

struct ast_expr *parse_additive(struct parser *p)
{
    uint32_t begin = p->now.span.begin;
    if (!parse_enter(p))
        return new_expr(p, AST_ERROR, begin);
    struct ast_expr *e = parse_binary(p, LEVEL_ADD);
    parse_leave(p);
    return e;
}
