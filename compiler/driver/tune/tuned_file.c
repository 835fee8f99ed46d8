// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Puts lines into the text of a table of measured configurations.
#include "driver/tune/tuned_file.h"

static bool starts_with(tir_str text, tir_str start)
{
    return text.len >= start.len && !memcmp(text.ptr, start.ptr, start.len);
}

// The end of the line that begins at `at`, after its newline.
static size_t end_of_line(tir_str table, size_t at)
{
    const char *newline = memchr(table.ptr + at, '\n', table.len - at);
    return newline ? (size_t)(newline - table.ptr) + 1 : table.len;
}

tir_str tir_tuned_file_put(struct tir_arena *arena, tir_str table, tir_str key, tir_str line)
{
    const tir_str place = tir_str_format(arena, STR_FMT " config(", STR_ARG(key));
    const char *sizes = memchr(key.ptr, '(', key.len);
    const tir_str kernel = {key.ptr, sizes ? (size_t)(sizes - key.ptr) + 1 : key.len};
    size_t from = table.len, to = table.len;
    for (size_t at = 0, end; at < table.len; at = end) {
        const tir_str here = {table.ptr + at, table.len - at};
        end = end_of_line(table, at);
        if (starts_with(here, kernel))
            from = to = end;
        if (starts_with(here, place)) {
            from = at;
            break;
        }
    }
    const bool joins = from > 0 && table.ptr[from - 1] != '\n';
    return tir_str_format(arena, STR_FMT "%s" STR_FMT "\n" STR_FMT, (int)from, table.ptr,
                          joins ? "\n" : "", STR_ARG(line), (int)(table.len - to), table.ptr + to);
}
