// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parser's helpers, and declarations: imports, constants, lists of configurations, functions,
// kernels.
#include "front/parse/parse.h"

#include "front/parse/foreign.h"

void parse_step(struct parser *p)
{
    p->previous = p->now;
    p->now = p->next;
    p->next = tir_lex(&p->lexer);
    if (p->now.kind == TIR_TOK_BAD) // the lexer has reported it
        p->panic = true;
}

bool parse_accept(struct parser *p, enum tir_token_kind kind)
{
    if (p->now.kind != kind)
        return false;
    parse_step(p);
    return true;
}

static bool is_direction(const struct tir_token *t)
{
    return t->kind == TIR_TOK_NAME && (!strcmp(t->name, "out") || !strcmp(t->name, "inout"));
}

// The name where the parser stopped, or the name before it, may be a word of another language;
// after an element type it is a declaration of C.
static void help_with_words(struct parser *p)
{
    struct tir_diags *diags = &p->cx->diags;
    const struct tir_token *before = &p->previous, *t = &p->now;
    const char *elem = before->kind == TIR_TOK_ELEM   ? tir_elems[before->elem].name
                       : before->kind == TIR_TOK_NAME ? tir_foreign_elem(before->name)
                                                      : NULL;
    if (is_direction(before))
        tir_note_at(diags, t->span, "it stands before the type: `%s: %s f32[M]`", t->name,
                    before->name);
    else if (elem)
        tir_note_at(diags, t->span, "`let %s = ...;` or `var %s: %s = ...;` declares it", t->name,
                    t->name, elem);
    else if (before->kind != TIR_TOK_NAME || !tir_foreign_help(diags, before->span, before->name))
        tir_foreign_help(diags, t->span, t->name);
}

// Does the token stand after another one on its line?
static bool follows_on_line(const struct parser *p)
{
    const struct tir_source_file *file = p->lexer.file;
    const uint32_t begin = p->previous.span.end, end = p->now.span.begin;
    return begin < end && begin >= file->base &&
           !memchr(file->text.ptr + (begin - file->base), '\n', end - begin);
}

static bool is_word(enum tir_token_kind kind)
{
    const char *text = tir_token_text(kind); // in quotes
    return text[0] == '`' && text[1] >= 'a' && text[1] <= 'z';
}

void parse_unexpected(struct parser *p, const char *wanted)
{
    if (p->panic)
        return;
    p->panic = true;
    struct tir_diags *diags = &p->cx->diags;
    struct tir_token t = p->now;
    if (t.kind == TIR_TOK_RESERVED)
        tir_error_at(diags, t.span, TIR_E_RESERVED, "`%s` is reserved for a later version", t.name);
    else if (t.kind == TIR_TOK_NAME)
        tir_error_at(diags, t.span, TIR_E_SYNTAX, "expected %s, found `%.64s`", wanted, t.name);
    else if (tir_foreign_operator(p->previous.kind, t.kind))
        tir_error_at(diags, t.span, TIR_E_SYNTAX, "%s",
                     tir_foreign_operator(p->previous.kind, t.kind));
    else
        tir_error_at(diags, t.span, TIR_E_SYNTAX, "expected %s, found %s%s", wanted,
                     tir_token_text(t.kind),
                     strstr(wanted, "name") && is_word(t.kind) ? ", a word of the language" : "");
    if (t.kind == TIR_TOK_NAME)
        help_with_words(p);
    if (tir_foreign_place(wanted, t.kind))
        tir_note_at(diags, t.span, "%s", tir_foreign_place(wanted, t.kind));
    if (t.kind == TIR_TOK_IF && follows_on_line(p))
        tir_foreign_help(diags, t.span, "if");
}

// `n // 2`: the rest of the line is a comment, and what it was to end is missing.
static void help_with_comment(struct parser *p)
{
    const struct tir_source_file *file = p->lexer.file;
    if (p->previous.span.end < file->base)
        return;
    uint32_t at = p->previous.span.end - file->base;
    while (file->text.ptr[at] == ' ')
        at++;
    if (strncmp(file->text.ptr + at, "//", 2) == 0)
        tir_note_at(&p->cx->diags, (struct tir_span){file->base + at, file->base + at + 2},
                    "a comment begins here; `/` divides");
}

bool parse_expect(struct parser *p, enum tir_token_kind kind, const char *where)
{
    if (p->panic)
        return false;
    if (parse_accept(p, kind))
        return true;
    parse_unexpected(p, tir_str_format(&p->cx->arena, "%s %s", tir_token_text(kind), where).ptr);
    if (kind == TIR_TOK_SEMI || kind == TIR_TOK_RPAREN || kind == TIR_TOK_RBRACKET)
        help_with_comment(p);
    return false;
}

bool parse_at_word(const struct parser *p, const char *word)
{
    return p->now.kind == TIR_TOK_NAME && strcmp(p->now.name, word) == 0;
}

const char *parse_name(struct parser *p, struct tir_span *span, const char *what)
{
    *span = p->now.span;
    if (p->panic || p->now.kind != TIR_TOK_NAME) {
        parse_unexpected(p, what);
        return NULL;
    }
    const char *name = p->now.name;
    parse_step(p);
    return name;
}

bool parse_enter(struct parser *p)
{
    if (p->nesting < TIR_MAX_NESTING) {
        p->nesting++;
        return true;
    }
    if (!p->panic)
        tir_error_at(&p->cx->diags, p->now.span, TIR_E_NESTING, "nested more than %d levels deep",
                     TIR_MAX_NESTING);
    p->panic = true;
    return false;
}

void parse_leave(struct parser *p)
{
    p->nesting--;
}

struct tir_span parse_since(const struct parser *p, uint32_t begin)
{
    return (struct tir_span){begin, TIR_MAX(begin, p->previous.span.end)};
}

bool parse_at_declaration(const struct parser *p)
{
    const enum tir_token_kind kind = p->now.kind;
    return kind == TIR_TOK_KERNEL || kind == TIR_TOK_FN || kind == TIR_TOK_IMPORT ||
           kind == TIR_TOK_CONST || (parse_at_word(p, "configs") && p->next.kind == TIR_TOK_NAME);
}

void parse_recover(struct parser *p)
{
    uint32_t depth = 0;
    for (; p->now.kind != TIR_TOK_EOF && !parse_at_declaration(p); parse_step(p)) {
        if (p->now.kind == TIR_TOK_LBRACE) {
            depth++;
        } else if (p->now.kind == TIR_TOK_RBRACE) {
            if (depth == 0)
                break;
            if (--depth == 0 && p->next.kind != TIR_TOK_ELSE) {
                parse_step(p);
                break;
            }
        } else if (p->now.kind == TIR_TOK_SEMI && depth == 0) {
            parse_step(p);
            break;
        }
    }
    p->panic = false;
}

void parse_bindings(struct parser *p, ast_bindings *out, enum tir_token_kind close)
{
    while (!p->panic && p->now.kind != close) {
        struct ast_binding b = {0};
        b.name = parse_name(p, &b.span, "a name");
        if (parse_accept(p, TIR_TOK_COLON))
            b.type = parse_type(p);
        if (parse_accept(p, TIR_TOK_ASSIGN))
            b.value = parse_expr(p);
        if (!p->panic)
            vec_push(&p->cx->arena, out, b);
        if (!parse_accept(p, TIR_TOK_COMMA))
            break;
    }
    parse_expect(p, close, "to end the list");
}

// < NAME [: kind] [= expr], ... >
static void parse_metas(struct parser *p, ast_bindings *out)
{
    if (!parse_accept(p, TIR_TOK_LT))
        return;
    do {
        struct ast_binding b = {0};
        b.name = parse_name(p, &b.span, "the name of a meta parameter");
        if (parse_accept(p, TIR_TOK_COLON))
            b.type = parse_type(p);
        if (parse_accept(p, TIR_TOK_ASSIGN))
            b.value = parse_additive(p);
        if (!p->panic)
            vec_push(&p->cx->arena, out, b);
    } while (parse_accept(p, TIR_TOK_COMMA));
    parse_expect(p, TIR_TOK_GT, "to end the meta parameters");
}

static struct ast_param parse_param(struct parser *p)
{
    struct ast_param param = {0};
    param.name = parse_name(p, &param.span, "the name of a parameter");
    parse_expect(p, TIR_TOK_COLON, "and a type after the parameter's name");
    param.stated_direction = true;
    if (parse_accept(p, TIR_TOK_IN)) {
        param.direction = TIR_IN;
    } else if (parse_at_word(p, "out")) {
        param.direction = TIR_OUT;
        parse_step(p);
    } else if (parse_at_word(p, "inout")) {
        param.direction = TIR_INOUT;
        parse_step(p);
    } else {
        param.stated_direction = false;
    }
    param.type = parse_type(p);
    return param;
}

static enum ast_clause_kind clause_kind(const char *name)
{
    static const char *const names[] = {
#define CLAUSE(name, ...) #name,
#include "front/parse/clause.def"
    };
    uint32_t kind = 0;
    while (kind < AST_CLAUSE_COUNT && (!name || strcmp(names[kind], name) != 0))
        kind++;
    return (enum ast_clause_kind)kind;
}

static struct ast_clause parse_clause(struct parser *p)
{
    struct ast_clause clause = {.span = p->now.span};
    if (parse_at_word(p, "where")) {
        clause.kind = AST_CLAUSE_where;
        clause.name = p->now.name;
        parse_step(p);
        struct ast_arg arg = {.span = p->now.span};
        arg.value = parse_expr(p);
        vec_push(&p->cx->arena, &clause.args, arg);
        return clause;
    }
    if (parse_accept(p, TIR_TOK_SHARED))
        clause.name = tir_intern_cstr(&p->cx->names, "shared");
    else
        clause.name = parse_name(p, &clause.span, "`{` or a clause such as `where` or `grid(...)`");
    clause.kind = clause_kind(clause.name);
    if (clause.kind == AST_CLAUSE_config && p->now.kind == TIR_TOK_NAME) {
        clause.list = parse_postfix(p);
        return clause;
    }
    parse_expect(p, TIR_TOK_LPAREN, "after the clause's name");
    while (!p->panic && p->now.kind != TIR_TOK_RPAREN) {
        struct ast_arg arg = parse_arg(p);
        vec_push(&p->cx->arena, &clause.args, arg);
        if (!parse_accept(p, TIR_TOK_COMMA))
            break;
    }
    parse_expect(p, TIR_TOK_RPAREN, "to end the clause");
    return clause;
}

static struct ast_configs *parse_configs(struct parser *p)
{
    struct ast_configs *list = arena_new(&p->cx->arena, struct ast_configs);
    list->name = parse_name(p, &list->span, "the name of a list of configurations");
    parse_expect(p, TIR_TOK_LBRACE, "before the configurations");
    while (!p->panic && parse_at_word(p, "config")) {
        struct ast_clause clause = parse_clause(p);
        if (!p->panic)
            vec_push(&p->cx->arena, &list->clauses, clause);
    }
    if (!p->panic && !parse_accept(p, TIR_TOK_RBRACE))
        parse_unexpected(p, "`config`, or `}` to end the list");
    return list;
}

static struct ast_kernel *parse_kernel(struct parser *p)
{
    struct ast_kernel *k = arena_new(&p->cx->arena, struct ast_kernel);
    k->name = parse_name(p, &k->span, "the kernel's name");
    parse_metas(p, &k->metas);
    parse_expect(p, TIR_TOK_LPAREN, "before the parameters");
    while (!p->panic && p->now.kind != TIR_TOK_RPAREN) {
        struct ast_param param = parse_param(p);
        if (!p->panic)
            vec_push(&p->cx->arena, &k->params, param);
        if (!parse_accept(p, TIR_TOK_COMMA))
            break;
    }
    parse_expect(p, TIR_TOK_RPAREN, "after the parameters");
    while (!p->panic && p->now.kind != TIR_TOK_LBRACE) {
        struct ast_clause clause = parse_clause(p);
        if (!p->panic)
            vec_push(&p->cx->arena, &k->clauses, clause);
    }
    k->body = parse_block(p);
    return k;
}

static struct ast_fn *parse_fn(struct parser *p)
{
    struct ast_fn *fn = arena_new(&p->cx->arena, struct ast_fn);
    fn->name = parse_name(p, &fn->span, "the function's name");
    parse_metas(p, &fn->metas);
    parse_expect(p, TIR_TOK_LPAREN, "before the parameters");
    parse_bindings(p, &fn->params, TIR_TOK_RPAREN);
    if (parse_accept(p, TIR_TOK_ARROW)) {
        do {
            struct ast_type *type = parse_type(p);
            vec_push(&p->cx->arena, &fn->results, type);
        } while (parse_accept(p, TIR_TOK_COMMA));
    }
    fn->body = parse_block(p);
    return fn;
}

bool parse_nested_fn(struct parser *p)
{
    const struct tir_source_file *file = p->lexer.file;
    const uint32_t at = p->now.span.begin - file->base;
    if (p->now.kind != TIR_TOK_FN || at == 0 || file->text.ptr[at - 1] == '\n')
        return false;
    if (!p->panic)
        tir_error_at(&p->cx->diags, p->now.span, TIR_E_SYNTAX,
                     "functions stand at the top level of a file, beside kernels");
    parse_step(p);
    parse_fn(p);
    if (p->panic)
        parse_recover(p);
    return true;
}

static void parse_const(struct parser *p, ast_bindings *consts)
{
    struct ast_binding b = {0};
    b.name = parse_name(p, &b.span, "the constant's name");
    if (parse_accept(p, TIR_TOK_COLON))
        b.type = parse_type(p);
    parse_expect(p, TIR_TOK_ASSIGN, "and the constant's value");
    b.value = parse_expr(p);
    parse_expect(p, TIR_TOK_SEMI, "after the constant");
    if (!p->panic)
        vec_push(&p->cx->arena, consts, b);
}

static void parse_import(struct parser *p, struct ast_module *m)
{
    struct ast_import import = {.path = p->now.text, .span = p->now.span};
    bool ok = parse_expect(p, TIR_TOK_STRING, "naming the imported file");
    if (ok && parse_at_word(p, "as")) {
        parse_step(p);
        import.name = parse_name(p, &import.name_span, "a name for the module");
    }
    if (ok && !p->panic)
        vec_push(&p->cx->arena, &m->imports, import);
    parse_expect(p, TIR_TOK_SEMI, "after the import");
}

static void parse_declaration(struct parser *p, struct ast_module *m)
{
    if (parse_accept(p, TIR_TOK_IMPORT)) {
        parse_import(p, m);
    } else if (parse_accept(p, TIR_TOK_CONST)) {
        parse_const(p, &m->consts);
    } else if (parse_accept(p, TIR_TOK_FN)) {
        struct ast_fn *fn = parse_fn(p);
        if (fn->name)
            vec_push(&p->cx->arena, &m->fns, fn);
    } else if (parse_accept(p, TIR_TOK_KERNEL)) {
        struct ast_kernel *kernel = parse_kernel(p);
        if (kernel->name)
            vec_push(&p->cx->arena, &m->kernels, kernel);
    } else if (parse_at_word(p, "configs")) {
        parse_step(p);
        struct ast_configs *list = parse_configs(p);
        if (list->name)
            vec_push(&p->cx->arena, &m->configs, list);
    } else {
        parse_unexpected(p, "`kernel`, `fn`, `const`, `configs` or `import`");
    }
    if (!p->panic)
        return;
    while (p->now.kind != TIR_TOK_EOF && !parse_at_declaration(p))
        parse_step(p);
    p->panic = false;
}

struct ast_module *tir_parse(struct tir_context *cx, const struct tir_source_file *file)
{
    struct parser p = {.cx = cx};
    if (!tir_lexer_init(&p.lexer, cx, file))
        return NULL;
    parse_step(&p);
    parse_step(&p);
    struct ast_module *m = arena_new(&cx->arena, struct ast_module);
    while (p.now.kind != TIR_TOK_EOF)
        parse_declaration(&p, m);
    return m;
}
