// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parser: recursive descent, with precedence climbing for operators.
//
// After a syntax error the parser is in panic: it reports nothing more and every expectation fails
// silently, until the statement or declaration it was in ends (parse_recover). So one mistake gives
// one error, and the next statement is read afresh.
#ifndef TIR_FRONT_PARSE_PARSE_H
#define TIR_FRONT_PARSE_PARSE_H

#include "front/parse/ast.h"

struct parser {
    struct tir_context *cx;
    struct tir_lexer lexer;
    struct tir_token previous, now, next;
    uint32_t nesting;
    bool panic;
};

// Parses a file. NULL: it could not be read at all; check cx->diags.error_count otherwise.
struct ast_module *tir_parse(struct tir_context *cx, const struct tir_source_file *file);

void parse_step(struct parser *p);
bool parse_accept(struct parser *p, enum tir_token_kind kind);
bool parse_expect(struct parser *p, enum tir_token_kind kind, const char *where);
void parse_unexpected(struct parser *p, const char *wanted);
bool parse_at_word(const struct parser *p, const char *word); // a name that means something here
const char *parse_name(struct parser *p, struct tir_span *span, const char *what); // NULL: none
// Counts one level; false when there are too many (reported). Pair with parse_leave.
bool parse_enter(struct parser *p);
void parse_leave(struct parser *p);
struct tir_span parse_since(const struct parser *p, uint32_t begin);
// Leaves panic: skips to the end of the statement, or before the `}` that ends the block.
void parse_recover(struct parser *p);

struct ast_expr *parse_expr(struct parser *p);
struct ast_expr *parse_postfix(struct parser *p);  // without operators in front or between
struct ast_expr *parse_additive(struct parser *p); // without < and >, which end a list of metas
struct ast_arg parse_arg(struct parser *p);
// From an opening parenthesis on: what is in it, or with commas a list.
struct ast_expr *parse_parentheses(struct parser *p, uint32_t begin);
struct ast_type *parse_type(struct parser *p);
struct ast_type *parse_bare_type(struct parser *p); // without a layout: `in` may follow it
struct ast_block *parse_block(struct parser *p);
bool parse_at_declaration(const struct parser *p);
// Reports a function inside a block, and reads past it. False: none is here; at the begin of a line
// it is the next declaration, after a block that was never closed.
bool parse_nested_fn(struct parser *p);
// NAME, NAME = e, NAME(e); and, as IR text writes them after a head, any number of them.
struct ast_arg parse_option(struct parser *p);
void parse_trailing_options(struct parser *p, struct ast_stmt *s);
void parse_end(struct parser *p); // of a statement
// What has a name of its own at its begin (role.c). False: nothing of that is here.
bool parse_role_level(struct parser *p, struct ast_stmt *s);
void parse_stage(struct parser *p, struct ast_stmt *s); // from `stage` on
// NAME [: type] [= expr], up to `close`; values or types may be required or forbidden by the
// caller.
void parse_bindings(struct parser *p, ast_bindings *out, enum tir_token_kind close);

#endif
