// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the formatter's two halves: the tokens of a file, and the space between two of them.
#ifndef TIR_FRONT_FORMAT_FORMAT_H
#define TIR_FRONT_FORMAT_FORMAT_H

#include "front/parse/lex.h"

struct format_token {
    enum tir_token_kind kind;
    tir_str text;
    uint32_t newlines; // between the token before and this one
    uint32_t match;    // of an opening bracket: the index of the closing one
    uint32_t inside;   // the index of the innermost bracket around; UINT32_MAX: none
    uint16_t depth;    // brackets around, braces not counted; a bracket has the depth outside
    bool space;        // before it, on one line
    uint16_t rank;     // a line may end before it, and had better where this is less; 0: it may not
};

typedef VEC(struct format_token) format_tokens;

// Reads a file that parses. Sets everything in the tokens; the last one is TIR_TOK_EOF.
void format_read(struct tir_context *cx, const struct tir_source_file *file, format_tokens *out);

#endif
