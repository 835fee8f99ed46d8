// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages of tirc.
#include "driver/say.h"

#include <stdarg.h>

#include "base/unicode.h"

static void print(FILE *file, tir_str text, const char *allowed)
{
    size_t begin = 0; // of what is fine and not written yet
    for (size_t at = 0; at < text.len;) {
        const size_t from = at;
        const uint32_t point = tir_utf8_next(text, &at);
        const bool is_fine = point < 0x80 && point && strchr(allowed, (int)point);
        if (is_fine || (point != TIR_REPLACEMENT && tir_unicode_printable(point)))
            continue;
        fwrite(text.ptr + begin, 1, from - begin, file);
        fputs("\xef\xbf\xbd", file);
        begin = at;
    }
    fwrite(text.ptr + begin, 1, text.len - begin, file);
}

void tir_say_text(FILE *file, tir_str text)
{
    print(file, text, "\n\t");
}

void tir_say(FILE *file, const char *format, ...)
{
    char line[4096];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (length > 0)
        print(file, (tir_str){line, TIR_MIN((size_t)length, sizeof(line) - 1)}, "");
    fputc('\n', file);
}
