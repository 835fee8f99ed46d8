// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Statements of the role and explicit levels. Their words are names elsewhere; what follows them
// tells.
#include "front/parse/parse.h"

// role NAME warps(1) regs(40) { ... }, put NAME { ... }, get NAME lag(1) { ... }
static void parse_named_block(struct parser *p, struct ast_stmt *s, enum ast_stmt_kind kind)
{
    s->kind = kind;
    parse_step(p);
    s->name = parse_name(p, &s->name_span, "a name");
    parse_trailing_options(p, s);
    s->head = parse_since(p, s->span.begin);
    s->body = parse_block(p);
}

// scope warps(1) { ... }
static void parse_scope(struct parser *p, struct ast_stmt *s)
{
    s->kind = AST_SCOPE;
    parse_step(p);
    parse_trailing_options(p, s);
    s->head = parse_since(p, s->span.begin);
    s->body = parse_block(p);
}

// ring NAME[e] { NAME: type; ... }
static void parse_ring(struct parser *p, struct ast_stmt *s)
{
    s->kind = AST_RING;
    parse_step(p);
    s->name = parse_name(p, &s->name_span, "the ring's name");
    parse_expect(p, TIR_TOK_LBRACKET, "and the ring's number of slots");
    s->value = parse_expr(p);
    parse_expect(p, TIR_TOK_RBRACKET, "after the number of slots");
    s->head = parse_since(p, s->span.begin);
    parse_expect(p, TIR_TOK_LBRACE, "before the ring's buffers");
    while (!p->panic && p->now.kind != TIR_TOK_RBRACE) {
        struct ast_binding b = {0};
        b.name = parse_name(p, &b.span, "the name of a buffer");
        parse_expect(p, TIR_TOK_COLON, "and the buffer's type");
        b.type = parse_type(p);
        parse_expect(p, TIR_TOK_SEMI, "after the buffer");
        vec_push(&p->cx->arena, &s->names, b);
    }
    parse_expect(p, TIR_TOK_RBRACE, "after the ring's buffers");
}

// mbarrier NAME[e] arrivals(n);
static void parse_mbarrier(struct parser *p, struct ast_stmt *s)
{
    struct ast_binding b = {0};
    s->kind = AST_MBARRIER;
    parse_step(p);
    b.name = parse_name(p, &b.span, "the mbarrier's name");
    if (parse_accept(p, TIR_TOK_LBRACKET)) {
        s->value = parse_expr(p);
        parse_expect(p, TIR_TOK_RBRACKET, "after the number of mbarriers");
    }
    vec_push(&p->cx->arena, &s->names, b);
    parse_trailing_options(p, s);
    s->head = parse_since(p, s->span.begin);
    parse_end(p);
}

void parse_stage(struct parser *p, struct ast_stmt *s)
{
    s->kind = AST_STAGE;
    parse_step(p);
    parse_expect(p, TIR_TOK_LPAREN, "after `stage`");
    s->value = parse_expr(p);
    while (!p->panic && parse_accept(p, TIR_TOK_COMMA)) {
        struct ast_arg option = parse_option(p);
        vec_push(&p->cx->arena, &s->options, option);
    }
    parse_expect(p, TIR_TOK_RPAREN, "after the stage's arguments");
    s->head = parse_since(p, s->span.begin);
    parse_end(p);
}

bool parse_role_level(struct parser *p, struct ast_stmt *s)
{
    bool names = p->next.kind == TIR_TOK_NAME;
    if (names && parse_at_word(p, "role"))
        parse_named_block(p, s, AST_ROLE);
    else if (names && parse_at_word(p, "scope"))
        parse_scope(p, s);
    else if (names && parse_at_word(p, "put"))
        parse_named_block(p, s, AST_PUT);
    else if (names && parse_at_word(p, "get"))
        parse_named_block(p, s, AST_GET);
    else if (names && parse_at_word(p, "ring"))
        parse_ring(p, s);
    else if (names && p->now.kind == TIR_TOK_ELEM && p->now.elem == TIR_MBARRIER)
        parse_mbarrier(p, s);
    else
        return false;
    return true;
}
