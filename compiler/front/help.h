// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reference page of the library, as Markdown.
#ifndef TIR_FRONT_HELP_H
#define TIR_FRONT_HELP_H

#include "base/str.h"

void tir_help_library(struct tir_text *out); // tirc --help-library

#endif
