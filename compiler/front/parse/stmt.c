// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Statements and blocks.
#include "front/parse/parse.h"

static struct ast_stmt *new_stmt(struct parser *p, enum ast_stmt_kind kind)
{
    struct ast_stmt *s = arena_new(&p->cx->arena, struct ast_stmt);
    s->kind = kind;
    s->span = p->now.span;
    return s;
}

void parse_end(struct parser *p)
{
    parse_expect(p, TIR_TOK_SEMI, "after the statement");
}

// NAME, NAME = e, NAME(e): how a loop is compiled.
struct ast_arg parse_option(struct parser *p)
{
    struct ast_arg option = {.span = p->now.span};
    if (p->now.kind == TIR_TOK_NAME && p->next.kind == TIR_TOK_ASSIGN)
        return parse_arg(p);
    option.name = parse_name(p, &option.span, "an option of the loop");
    if (p->now.kind == TIR_TOK_LPAREN)
        option.value = parse_parentheses(p, p->now.span.begin);
    return option;
}

// May the name alone be an option?
static bool stands_alone(const char *name)
{
    enum { INT, COUNT, FLAG, OTHER };
    static const struct {
        const char *name;
        uint32_t value;
    } options[] = {
#define OPTION(statement, name, value, ...) {#name, value},
#include "front/parse/option.def"
    };
    for (uint32_t i = 0; i < TIR_COUNT_OF(options); i++)
        if (strcmp(options[i].name, name) == 0)
            return options[i].value == COUNT || options[i].value == FLAG;
    return false;
}

static bool at_option(const struct parser *p)
{
    if (p->now.kind != TIR_TOK_NAME)
        return false;
    if (p->next.kind == TIR_TOK_ASSIGN)
        return true;
    return stands_alone(p->now.name) &&
           (p->next.kind == TIR_TOK_COMMA || p->next.kind == TIR_TOK_RPAREN);
}

// carry (NAME: type = e, ...)
static void parse_carry(struct parser *p, struct ast_stmt *s)
{
    parse_step(p);
    s->explicit_carry = true;
    parse_expect(p, TIR_TOK_LPAREN, "after `carry`");
    parse_bindings(p, &s->carry, TIR_TOK_RPAREN);
}

// The options that IR text writes after the loop's head: stages(4) unroll(2).
void parse_trailing_options(struct parser *p, struct ast_stmt *s)
{
    while (!p->panic && p->now.kind == TIR_TOK_NAME) {
        struct ast_arg option = parse_option(p);
        vec_push(&p->cx->arena, &s->options, option);
    }
}

static void parse_range(struct parser *p, struct ast_stmt *s)
{
    if (!parse_at_word(p, "range")) {
        parse_unexpected(p, "`range(...)` or `tiles(...)`");
        return;
    }
    parse_step(p);
    parse_expect(p, TIR_TOK_LPAREN, "after `range`");
    while (!p->panic && p->now.kind != TIR_TOK_RPAREN) {
        if (at_option(p)) {
            struct ast_arg option = parse_option(p);
            vec_push(&p->cx->arena, &s->options, option);
        } else {
            struct ast_expr *e = parse_expr(p);
            vec_push(&p->cx->arena, &s->values, e);
        }
        if (!parse_accept(p, TIR_TOK_COMMA))
            break;
    }
    parse_expect(p, TIR_TOK_RPAREN, "after the range");
    if (parse_at_word(p, "carry"))
        parse_carry(p, s);
    parse_trailing_options(p, s);
}

// (M by BM, N by BN, order = grouped(8), persistent), from after the parenthesis
static void parse_extents(struct parser *p, struct ast_stmt *s)
{
    while (!p->panic && p->now.kind != TIR_TOK_RPAREN) {
        if (at_option(p)) {
            struct ast_arg option = parse_option(p);
            vec_push(&p->cx->arena, &s->options, option);
        } else {
            struct ast_extent extent = {.extent = parse_expr(p)};
            if (parse_at_word(p, "by")) {
                parse_step(p);
                extent.by = parse_expr(p);
            }
            vec_push(&p->cx->arena, &s->extents, extent);
        }
        if (!parse_accept(p, TIR_TOK_COMMA))
            break;
    }
    parse_expect(p, TIR_TOK_RPAREN, "after the extents");
}

// NAME, or (NAME, ...)
static void parse_loop_vars(struct parser *p, struct ast_stmt *s)
{
    if (parse_accept(p, TIR_TOK_LPAREN)) {
        parse_bindings(p, &s->vars, TIR_TOK_RPAREN);
        return;
    }
    struct ast_binding b = {0};
    b.name = parse_name(p, &b.span, "the loop's variable");
    if (parse_accept(p, TIR_TOK_COLON))
        b.type = parse_bare_type(p);
    vec_push(&p->cx->arena, &s->vars, b);
}

static void parse_for(struct parser *p, struct ast_stmt *s)
{
    parse_step(p);
    parse_loop_vars(p, s);
    parse_expect(p, TIR_TOK_IN, "after the loop's variables");
    if (!p->panic && parse_accept(p, TIR_TOK_TILES)) {
        s->kind = AST_TILES;
        parse_expect(p, TIR_TOK_LPAREN, "after `tiles`");
        parse_extents(p, s);
    } else {
        parse_range(p, s);
    }
    s->head = parse_since(p, s->span.begin);
    s->body = parse_block(p);
}

// tiles (m, n) in (M by 128, N by 256) carry (x: T = e) order(grouped) group(8) persistent(1) { }
static void parse_tiles(struct parser *p, struct ast_stmt *s)
{
    parse_step(p);
    parse_loop_vars(p, s);
    parse_expect(p, TIR_TOK_IN, "after the loop's variables");
    parse_expect(p, TIR_TOK_LPAREN, "before the extents");
    parse_extents(p, s);
    if (parse_at_word(p, "carry"))
        parse_carry(p, s);
    parse_trailing_options(p, s);
    s->head = parse_since(p, s->span.begin);
    s->body = parse_block(p);
}

static void parse_while(struct parser *p, struct ast_stmt *s)
{
    parse_step(p);
    if (p->now.kind == TIR_TOK_LBRACE)
        s->explicit_carry = true;
    else if (parse_at_word(p, "carry") && p->next.kind == TIR_TOK_LPAREN)
        parse_carry(p, s);
    else
        s->value = parse_expr(p);
    s->head = parse_since(p, s->span.begin);
    s->body = parse_block(p);
    if (s->explicit_carry) {
        parse_expect(p, TIR_TOK_DO, "after the loop's condition");
        s->other = parse_block(p);
    }
}

static void parse_if(struct parser *p, struct ast_stmt *s)
{
    parse_step(p);
    s->value = parse_expr(p);
    s->head = parse_since(p, s->span.begin);
    s->body = parse_block(p);
    if (p->panic || !parse_accept(p, TIR_TOK_ELSE))
        return;
    if (p->now.kind != TIR_TOK_IF) {
        s->other = parse_block(p);
        return;
    }
    struct ast_block *block = arena_new(&p->cx->arena, struct ast_block);
    s->other = block;
    if (!parse_enter(p))
        return;
    struct ast_stmt *nested = new_stmt(p, AST_IF);
    parse_if(p, nested);
    nested->span = block->span = parse_since(p, nested->span.begin);
    vec_push(&p->cx->arena, &block->stmts, nested);
    parse_leave(p);
}

// A call with a block ends like a statement with a block.
static void parse_end_of_value(struct parser *p, const struct ast_stmt *s)
{
    if (s->value->kind != AST_CALL || !s->value->region || p->now.kind == TIR_TOK_SEMI)
        parse_end(p);
}

// A loop or branch. False: it is none, and nothing was read.
static bool parse_flow(struct parser *p, struct ast_stmt *s)
{
    switch (p->now.kind) {
    case TIR_TOK_FOR:
        s->kind = AST_FOR;
        parse_for(p, s);
        return true;
    case TIR_TOK_WHILE:
        s->kind = AST_WHILE;
        parse_while(p, s);
        return true;
    case TIR_TOK_TILES:
        s->kind = AST_TILES;
        parse_tiles(p, s);
        return true;
    case TIR_TOK_IF:
        s->kind = AST_IF;
        parse_if(p, s);
        return true;
    default:
        return false;
    }
}

static void parse_let(struct parser *p, struct ast_stmt *s)
{
    parse_step(p);
    do {
        struct ast_binding b = {0};
        b.name = parse_name(p, &b.span, "a name");
        bool colon = parse_accept(p, TIR_TOK_COLON);
        if (colon && s->kind == AST_VAR && parse_at_word(p, "stage") &&
            p->next.kind == TIR_TOK_LPAREN) {
            vec_push(&p->cx->arena, &s->names, b);
            parse_stage(p, s);
            return;
        }
        if (colon)
            b.type = parse_type(p);
        vec_push(&p->cx->arena, &s->names, b);
    } while (!p->panic && parse_accept(p, TIR_TOK_COMMA));
    parse_expect(p, TIR_TOK_ASSIGN, "and a value");
    if (s->kind == AST_LET && !p->panic) { // a loop or branch gives the names their values
        const uint32_t begin = s->span.begin;
        s->span = p->now.span;
        const bool flows = parse_flow(p, s);
        s->span.begin = begin;
        if (flows)
            return;
    }
    s->value = parse_expr(p);
    parse_end_of_value(p, s);
}

// shared NAME: type;  local NAME: type;  tmem NAME: type cta_group(2);
static void parse_buffer(struct parser *p, struct ast_stmt *s)
{
    enum tir_space space = p->now.kind == TIR_TOK_SHARED  ? TIR_SPACE_SHARED
                           : p->now.kind == TIR_TOK_LOCAL ? TIR_SPACE_LOCAL
                                                          : TIR_SPACE_TMEM;
    parse_step(p);
    struct ast_binding b = {0};
    b.name = parse_name(p, &b.span, "the buffer's name");
    parse_expect(p, TIR_TOK_COLON, "and the buffer's type");
    b.type = parse_type(p);
    b.type->space = space;
    vec_push(&p->cx->arena, &s->names, b);
    if (space == TIR_SPACE_TMEM)
        parse_trailing_options(p, s);
    parse_end(p);
}

// scratch NAME: type;
static void parse_scratch(struct parser *p, struct ast_stmt *s)
{
    s->kind = AST_SCRATCH;
    parse_step(p);
    struct ast_binding b = {0};
    b.name = parse_name(p, &b.span, "the tensor's name");
    parse_expect(p, TIR_TOK_COLON, "and the tensor's type");
    b.type = parse_type(p);
    vec_push(&p->cx->arena, &s->names, b);
    parse_end(p);
}

static void parse_values(struct parser *p, struct ast_stmt *s)
{
    parse_step(p);
    if (p->now.kind != TIR_TOK_SEMI) {
        do {
            struct ast_expr *e = parse_expr(p);
            vec_push(&p->cx->arena, &s->values, e);
        } while (!p->panic && parse_accept(p, TIR_TOK_COMMA));
    }
    parse_end(p);
}

static void parse_simple(struct parser *p, struct ast_stmt *s)
{
    s->value = parse_expr(p);
    enum tir_token_kind op = p->now.kind;
    if (op == TIR_TOK_ASSIGN || op == TIR_TOK_ADD_TO || op == TIR_TOK_SUB_TO ||
        op == TIR_TOK_MUL_TO || op == TIR_TOK_DIV_TO) {
        s->kind = AST_ASSIGN;
        s->op = op;
        s->target = s->value;
        parse_step(p);
        s->value = parse_expr(p);
    }
    parse_end_of_value(p, s);
}

static struct ast_stmt *parse_stmt(struct parser *p)
{
    struct ast_stmt *s = new_stmt(p, AST_DO);
    switch (p->now.kind) {
    case TIR_TOK_LET:
    case TIR_TOK_VAR:
        s->kind = p->now.kind == TIR_TOK_LET ? AST_LET : AST_VAR;
        parse_let(p, s);
        break;
    case TIR_TOK_SHARED:
    case TIR_TOK_LOCAL:
    case TIR_TOK_TMEM:
        s->kind = AST_BUFFER;
        parse_buffer(p, s);
        break;
    case TIR_TOK_BREAK:
    case TIR_TOK_CONTINUE:
        s->kind = p->now.kind == TIR_TOK_BREAK ? AST_BREAK : AST_CONTINUE;
        parse_step(p);
        parse_end(p);
        break;
    case TIR_TOK_RETURN:
    case TIR_TOK_YIELD:
        s->kind = p->now.kind == TIR_TOK_RETURN ? AST_RETURN : AST_YIELD;
        parse_values(p, s);
        break;
    default:
        if (parse_at_word(p, "scratch") && p->next.kind == TIR_TOK_NAME)
            parse_scratch(p, s);
        else if (!parse_flow(p, s) && !parse_role_level(p, s))
            parse_simple(p, s);
    }
    s->span = parse_since(p, s->span.begin);
    return s;
}

struct ast_block *parse_block(struct parser *p)
{
    struct ast_block *block = arena_new(&p->cx->arena, struct ast_block);
    uint32_t begin = p->now.span.begin;
    const bool colon = p->now.kind == TIR_TOK_COLON && !p->panic;
    const bool opened = parse_expect(p, TIR_TOK_LBRACE, "to begin a block");
    if (colon)
        tir_note_at(&p->cx->diags, p->now.span, "a block is in braces, `{ ... }`");
    if (!opened || !parse_enter(p))
        return block;
    while (p->now.kind != TIR_TOK_RBRACE && p->now.kind != TIR_TOK_EOF && !p->panic) {
        if (parse_nested_fn(p))
            continue;
        if (parse_at_declaration(p))
            break; // the block was never closed
        struct ast_stmt *s = parse_stmt(p);
        if (p->panic)
            parse_recover(p);
        else
            vec_push(&p->cx->arena, &block->stmts, s);
    }
    parse_leave(p);
    parse_expect(p, TIR_TOK_RBRACE, "to end the block");
    block->span = parse_since(p, begin);
    return block;
}
