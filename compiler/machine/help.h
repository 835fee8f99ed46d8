// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reference page of targets and of what passes allow themselves, as Markdown.
#ifndef TIR_MACHINE_HELP_H
#define TIR_MACHINE_HELP_H

#include "base/str.h"

void tir_help_targets(struct tir_text *out); // tirc --help-targets

#endif
