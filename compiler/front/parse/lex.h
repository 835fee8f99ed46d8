// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lexer: one token at a time from a source file. Bad bytes are reported here, so the parser
// never sees them.
#ifndef TIR_FRONT_PARSE_LEX_H
#define TIR_FRONT_PARSE_LEX_H

#include "ir/context.h"

enum tir_token_kind {
#define TOKEN(id, text)   TIR_TOK_##id,
#define KEYWORD(id, text) TIR_TOK_##id,
#define PUNCT(id, text)   TIR_TOK_##id,
#include "front/parse/token.def"
    TIR_TOK_COUNT
};

struct tir_token {
    enum tir_token_kind kind;
    struct tir_span span;
    union {
        uint64_t number;    // INT
        double real;        // FLOAT
        const char *name;   // NAME, RESERVED: interned
        tir_str text;       // STRING: the bytes it stands for
        enum tir_elem elem; // ELEM
    };
};

struct tir_lexer {
    struct tir_context *cx;
    const struct tir_source_file *file;
    const char *at, *end; // *end is NUL
    bool keep_comments;
    bool muted; // for reading a text a second time: nothing is reported
};

#define TIR_MAX_FILE_BYTES (16u << 20)
#define TIR_MAX_NAME_BYTES 1024u

// Checks the file's size and encoding. False: a diagnostic says why and there are no tokens.
bool tir_lexer_init(struct tir_lexer *lexer, struct tir_context *cx,
                    const struct tir_source_file *file);
struct tir_token tir_lex(struct tir_lexer *lexer); // TIR_TOK_EOF for ever at the end
// How a message names a token of this kind: a word such as "a name", or the spelling in quotes.
const char *tir_token_text(enum tir_token_kind kind);

#endif
