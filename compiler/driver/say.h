// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What tirc says. File names, options and PTX may hold what a terminal obeys; none of it gets
// there.
#ifndef TIR_DRIVER_SAY_H
#define TIR_DRIVER_SAY_H

#include <stdio.h>

#include "base/str.h"

// Lines of text: what is neither printable nor a newline or tab comes out as U+FFFD.
void tir_say_text(FILE *file, tir_str text);

// One line of at most 4,095 bytes, whatever the arguments hold, and its end.
void tir_say(FILE *file, const char *format, ...) TIR_PRINTF(2, 3);

#endif
