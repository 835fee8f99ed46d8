// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Text that is counted beyond the end of its buffer.

#include "emu/text.h"

#include <stdarg.h>
#include <stdio.h>

void emu_put(struct emu_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const size_t room = t->len < t->size ? t->size - t->len : 0;
    const int n = vsnprintf(room ? t->at + t->len : NULL, room, format, args);
    va_end(args);
    t->len += n > 0 ? (size_t)n : 0;
}
