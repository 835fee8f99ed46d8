// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Words of other languages, which authors try (foreign.def).
#ifndef TIR_FRONT_PARSE_FOREIGN_H
#define TIR_FRONT_PARSE_FOREIGN_H

#include "front/parse/lex.h"

// Is it a word of another language?
bool tir_foreign_word(const char *word);
// After an error about the word at span: says what stands here for it. False: not such a word.
bool tir_foreign_help(struct tir_diags *diags, struct tir_span span, const char *word);
// The element type that an element type of another language is here. NULL: not such a word.
const char *tir_foreign_elem(const char *word);
// What to know where the parser wanted something else than the token. NULL: nothing.
const char *tir_foreign_place(const char *wanted, enum tir_token_kind token);
// What to write for an operator of another language, of which two tokens were read. NULL: none.
const char *tir_foreign_operator(enum tir_token_kind before, enum tir_token_kind token);

#endif
