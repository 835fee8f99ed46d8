// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reference page of diagnostic codes, as Markdown.
#ifndef TIR_DRIVER_COMMAND_TABLES_H
#define TIR_DRIVER_COMMAND_TABLES_H

#include "base/str.h"

void tir_tables_diagnostics(struct tir_text *out);

#endif
