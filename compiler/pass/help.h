// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reference pages that are printed from the tables, as Markdown.
#ifndef TIR_PASS_HELP_H
#define TIR_PASS_HELP_H

#include "base/str.h"

void tir_help_ops(struct tir_text *out);    // tirc --help-ops
void tir_help_passes(struct tir_text *out); // tirc --help-passes

#endif
