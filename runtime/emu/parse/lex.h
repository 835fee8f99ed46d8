// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tokens of PTX.
#ifndef EMU_LEX_H
#define EMU_LEX_H

#include "tir/base.h"

enum emu_token_kind {
    EMU_TOK_END,
    EMU_TOK_BAD,    // a byte, number or comment that PTX does not have
    EMU_TOK_WORD,   // add  %r1  $L__BB0_1  _
    EMU_TOK_DOT,    // .f32  .shared::cta: the text without its first dot
    EMU_TOK_INT,    // 12  0x1fU  0b1  017
    EMU_TOK_F32,    // 0f3F800000: bits
    EMU_TOK_F64,    // 0d3FF0000000000000 or 1.5: bits of a double
    EMU_TOK_STRING, // the text between the quotes
    EMU_TOK_PUNCT   // one character
};

struct emu_token {
    enum emu_token_kind kind;
    char punct;
    uint32_t line; // from 1
    tir_str text;
    uint64_t bits;
};

struct emu_lexer {
    const char *cursor, *end; // *end is a NUL of the lexer's own
    uint32_t line;
};

struct emu_token emu_lex(struct emu_lexer *lexer);

#endif
