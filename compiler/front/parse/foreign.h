// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Words of other languages, which authors try (foreign.def).
#ifndef TIR_FRONT_PARSE_FOREIGN_H
#define TIR_FRONT_PARSE_FOREIGN_H

#include "base/diag.h"

// After an error about the word at span: says what stands here for it. False: not such a word.
bool tir_foreign_help(struct tir_diags *diags, struct tir_span span, const char *word);

#endif
