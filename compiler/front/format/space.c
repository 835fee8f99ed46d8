// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The formatter's first half: reads a file into tokens, matches brackets, and decides where spaces
// stand and lines may break. What a token means follows from its neighbours and the bracket it is
// in.
#include "front/format/format.h"

struct reader {
    struct tir_context *cx;
    format_tokens *tokens;
    VEC(uint32_t) open; // indices of the brackets around
};

static bool is(const struct format_token *t, const char *text)
{
    return tir_str_is(t->text, text);
}

static bool opens(enum tir_token_kind kind)
{
    return kind == TIR_TOK_LPAREN || kind == TIR_TOK_LBRACKET || kind == TIR_TOK_LBRACE;
}

static bool closes(enum tir_token_kind kind)
{
    return kind == TIR_TOK_RPAREN || kind == TIR_TOK_RBRACKET || kind == TIR_TOK_RBRACE;
}

static uint32_t count_newlines(const char *from, const char *to)
{
    uint32_t count = 0;
    for (; from < to; from++)
        count += *from == '\n';
    return count;
}

// Brackets.

// kernel NAME < and fn NAME <: the list of metas is a bracket too.
static bool begins_metas(const format_tokens *v, uint32_t i)
{
    return v->at[i].kind == TIR_TOK_LT && i >= 2 && v->at[i - 1].kind == TIR_TOK_NAME &&
           (v->at[i - 2].kind == TIR_TOK_KERNEL || v->at[i - 2].kind == TIR_TOK_FN);
}

static bool in_metas(const struct reader *r)
{
    return r->open.len && r->tokens->at[vec_last(&r->open)].kind == TIR_TOK_LT;
}

static void match_brackets(struct reader *r)
{
    uint16_t depth = 0;
    for (uint32_t i = 0; i < r->tokens->len; i++) {
        struct format_token *t = &r->tokens->at[i];
        bool close = closes(t->kind) || (t->kind == TIR_TOK_GT && in_metas(r));
        if (close && r->open.len) {
            uint32_t open = vec_pop(&r->open);
            r->tokens->at[open].match = i;
            t->match = open;
            depth = r->tokens->at[open].depth;
        }
        t->depth = depth;
        t->inside = r->open.len ? vec_last(&r->open) : UINT32_MAX;
        if (opens(t->kind) || begins_metas(r->tokens, i)) {
            vec_push(&r->cx->arena, &r->open, i);
            depth = t->kind == TIR_TOK_LBRACE ? 0 : depth + 1;
        }
    }
}

// Meanings.

// After this token an operator is unary.
static bool ends_operand(const struct format_token *t)
{
    switch (t->kind) {
    case TIR_TOK_NAME:
    case TIR_TOK_INT:
    case TIR_TOK_FLOAT:
    case TIR_TOK_STRING:
    case TIR_TOK_ELEM:
    case TIR_TOK_TRUE:
    case TIR_TOK_FALSE:
    case TIR_TOK_INF:
    case TIR_TOK_NAN:
    case TIR_TOK_NONE:
    case TIR_TOK_RPAREN:
    case TIR_TOK_RBRACKET:
        return true;
    default:
        return false;
    }
}

static bool is_operator(enum tir_token_kind kind)
{
    return kind >= TIR_TOK_ADD && kind <= TIR_TOK_OR_OR;
}

static bool is_binary(const format_tokens *v, uint32_t i)
{
    return is_operator(v->at[i].kind) && i > 0 && ends_operand(&v->at[i - 1]) && !v->at[i].match;
}

static bool is_unary(const format_tokens *v, uint32_t i)
{
    enum tir_token_kind k = v->at[i].kind;
    return k == TIR_TOK_NOT || k == TIR_TOK_BIT_NOT ||
           (k == TIR_TOK_SUB && !(i > 0 && ends_operand(&v->at[i - 1])));
}

// A `?` at the same level, since the bracket, comma or statement began: this `:` is its other half.
static bool ends_choice(const format_tokens *v, uint32_t i)
{
    uint32_t pending = 0;
    while (i-- > 0) {
        const struct format_token *t = &v->at[i];
        if (closes(t->kind))
            i = t->match;
        else if (t->kind == TIR_TOK_QUESTION)
            return pending == 0;
        else if (t->kind == TIR_TOK_COLON)
            pending++;
        else if (t->kind == TIR_TOK_COMMA || t->kind == TIR_TOK_SEMI || t->match > i)
            return false;
    }
    return false;
}

static bool is_layout_bracket(const format_tokens *v, uint32_t open)
{
    return open != UINT32_MAX && v->at[open].kind == TIR_TOK_LBRACKET && open >= 2 &&
           ((is(&v->at[open - 1], "S") && v->at[open - 2].kind == TIR_TOK_IN) ||
            (is(&v->at[open - 1], "R") && v->at[open - 2].kind == TIR_TOK_ADD));
}

// A slice whose begin or size is a sum or product has spaces around its colon.
static bool is_wide_slice(const format_tokens *v, uint32_t open, uint32_t i)
{
    for (uint32_t j = i; j-- > open + 1;) {
        if (closes(v->at[j].kind))
            j = v->at[j].match;
        else if (v->at[j].kind == TIR_TOK_COMMA)
            break;
        else if (is_binary(v, j))
            return true;
    }
    for (uint32_t j = i + 1; j < v->at[open].match; j++) {
        if (opens(v->at[j].kind))
            j = v->at[j].match;
        else if (v->at[j].kind == TIR_TOK_COMMA)
            break;
        else if (is_binary(v, j))
            return true;
    }
    return false;
}

// How a `:` or `:+` stands: the spaces before and after it.
static void colon_spaces(const format_tokens *v, uint32_t i, bool *before, bool *after)
{
    uint32_t open = v->at[i].inside;
    *before = *after = true;
    if (is_layout_bracket(v, open) || ends_choice(v, i))
        return;
    if (open != UINT32_MAX && v->at[open].kind == TIR_TOK_LBRACKET) {
        *before = *after = is_wide_slice(v, open, i);
        if (v->at[i - 1].kind == TIR_TOK_COMMA) // a `:` alone, after a comma
            *before = true;
        return;
    }
    *before = false; // NAME: type
}

// Before a parenthesis: none where something is called.
static bool space_before_paren(const format_tokens *v, uint32_t i)
{
    const struct format_token *t = &v->at[i - 1];
    bool after_head =
        i >= 2 && (v->at[i - 2].kind == TIR_TOK_RPAREN || v->at[i - 2].kind == TIR_TOK_WHILE);
    if (t->kind == TIR_TOK_NAME && after_head && (is(t, "carry") || is(t, "with")))
        return true;
    if (t->kind == TIR_TOK_TILES)
        return i < 2 || v->at[i - 2].kind != TIR_TOK_IN;
    return !(ends_operand(t) || t->kind == TIR_TOK_FN || t->kind == TIR_TOK_SHARED ||
             t->kind == TIR_TOK_LOCAL || t->kind == TIR_TOK_TMEM || t->kind == TIR_TOK_LPAREN ||
             t->kind == TIR_TOK_LBRACKET || t->match);
}

// A space between tokens i - 1 and i.
static bool space_before(const format_tokens *v, uint32_t i)
{
    const struct format_token *a = &v->at[i - 1], *b = &v->at[i];
    bool before, after;
    if (b->kind == TIR_TOK_COLON || b->kind == TIR_TOK_TAKE) {
        colon_spaces(v, i, &before, &after);
        return before && a->kind != TIR_TOK_LBRACKET;
    }
    if (a->kind == TIR_TOK_COLON || a->kind == TIR_TOK_TAKE) {
        colon_spaces(v, i - 1, &before, &after);
        return after && b->kind != TIR_TOK_COMMA && b->kind != TIR_TOK_RBRACKET;
    }
    switch (b->kind) {
    case TIR_TOK_COMMA:
    case TIR_TOK_SEMI:
    case TIR_TOK_RPAREN:
    case TIR_TOK_RBRACKET:
    case TIR_TOK_DOT:
    case TIR_TOK_AT:
        return false;
    case TIR_TOK_LPAREN:
        if (!is_unary(v, i - 1))
            return space_before_paren(v, i);
        break;
    case TIR_TOK_LBRACKET:
        if (ends_operand(a))
            return false;
        break;
    default:
        break;
    }
    if (a->kind == TIR_TOK_LPAREN || a->kind == TIR_TOK_LBRACKET || a->kind == TIR_TOK_DOT ||
        a->kind == TIR_TOK_AT || is_unary(v, i - 1))
        return false;
    bool metas = (a->kind == TIR_TOK_LT && a->match) || (b->kind == TIR_TOK_LT && b->match) ||
                 (b->kind == TIR_TOK_GT && b->match);
    return !metas;
}

// The parenthesis before the parameters of kernel NAME<...>( or fn NAME(.
static bool begins_params(const format_tokens *v, uint32_t i)
{
    if (v->at[i].kind != TIR_TOK_LPAREN || i < 2)
        return false;
    uint32_t name =
        v->at[i - 1].kind == TIR_TOK_GT && v->at[i - 1].match ? v->at[i - 1].match - 1 : i - 1;
    return name > 0 && v->at[name].kind == TIR_TOK_NAME &&
           (v->at[name - 1].kind == TIR_TOK_KERNEL || v->at[name - 1].kind == TIR_TOK_FN);
}

enum { RANK_CLAUSE = 1, RANK_COMMA, RANK_VALUE, RANK_LOGIC, RANK_SUM, RANK_PRODUCT, RANKS };

static uint16_t rank_of(enum tir_token_kind operator)
{
    switch (operator) {
    case TIR_TOK_AND_AND:
    case TIR_TOK_OR_OR:
        return RANK_LOGIC;
    case TIR_TOK_MUL:
    case TIR_TOK_DIV:
    case TIR_TOK_REM:
        return RANK_PRODUCT;
    default:
        return RANK_SUM;
    }
}

// Outer levels first; in one level clauses and options, then commas, then the looser operators.
static uint16_t break_rank(const format_tokens *v, uint32_t i)
{
    const struct format_token *a = &v->at[i - 1], *b = &v->at[i];
    uint16_t rank = 0;
    if (begins_params(v, i - 1))
        return RANK_COMMA;
    if (!b->space)
        return 0;
    if (a->kind == TIR_TOK_COMMA)
        rank = RANK_COMMA;
    else if (is_binary(v, i))
        rank = rank_of(b->kind);
    else if (b->kind == TIR_TOK_QUESTION || (b->kind == TIR_TOK_COLON && ends_choice(v, i)))
        rank = RANK_LOGIC;
    else if (b->kind == TIR_TOK_NAME && (a->kind == TIR_TOK_RPAREN || is(b, "where") ||
                                         (is(b, "config") && a->kind == TIR_TOK_NAME)))
        rank = RANK_CLAUSE;
    else if (b->kind == TIR_TOK_NAME && a->kind == TIR_TOK_ASSIGN)
        rank = RANK_VALUE;
    return rank ? (uint16_t)(b->depth * RANKS + rank) : 0;
}

void format_read(struct tir_context *cx, const struct tir_source_file *file, format_tokens *out)
{
    struct tir_lexer lexer;
    if (!tir_lexer_init(&lexer, cx, file))
        return;
    lexer.keep_comments = true;
    lexer.muted = true;
    const char *end = lexer.at;
    struct tir_token token;
    do {
        token = tir_lex(&lexer);
        const char *begin = file->text.ptr + (token.span.begin - file->base);
        struct format_token t = {.kind = token.kind};
        t.text = (tir_str){begin, token.span.end - token.span.begin};
        while (t.kind == TIR_TOK_COMMENT && t.text.len &&
               strchr(" \t\r", t.text.ptr[t.text.len - 1]))
            t.text.len--;
        t.newlines = count_newlines(end, begin);
        end = begin + (token.span.end - token.span.begin);
        vec_push(&cx->arena, out, t);
    } while (token.kind != TIR_TOK_EOF);
    struct reader r = {.cx = cx, .tokens = out};
    match_brackets(&r);
    for (uint32_t i = 1; i < out->len; i++) {
        out->at[i].space = space_before(out, i);
        out->at[i].rank = break_rank(out, i);
    }
}
