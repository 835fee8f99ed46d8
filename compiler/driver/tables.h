// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reference pages made from the compiler's tables, as Markdown.
#ifndef TIR_DRIVER_TABLES_H
#define TIR_DRIVER_TABLES_H

#include "base/str.h"

void tir_tables_ops(struct tir_text *out);
void tir_tables_passes(struct tir_text *out);
void tir_tables_diagnostics(struct tir_text *out);

#endif
