// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Text written into a buffer of fixed size, and counted beyond its end, as snprintf does.
#ifndef EMU_TEXT_H
#define EMU_TEXT_H

#include "emu/base.h"

struct emu_text {
    char *at; // may be NULL where size is 0
    size_t len, size;
};

void emu_put(struct emu_text *t, const char *format, ...) TIR_PRINTF(2, 3);

#endif
