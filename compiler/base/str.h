// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// String views, interning, and a bounded string builder.
#ifndef TIR_BASE_STR_H
#define TIR_BASE_STR_H

#include <stdarg.h>

#include "base/arena.h"

#define STR(literal) ((tir_str){("" literal), sizeof(literal) - 1})
#define STR_FMT      "%.*s" // with STR_ARG: printf a view
#define STR_ARG(s)   (int)(s).len, (s).ptr

static inline tir_str tir_str_of(const char *terminated)
{
    return (tir_str){terminated, strlen(terminated)};
}

static inline bool tir_str_equal(tir_str a, tir_str b)
{
    return a.len == b.len && (!a.len || memcmp(a.ptr, b.ptr, a.len) == 0);
}

// Tables of words are looked through with this, so most are told apart by the first character.
static inline bool tir_str_is(tir_str a, const char *terminated)
{
    return (!a.len || a.ptr[0] == terminated[0]) && tir_str_equal(a, tir_str_of(terminated));
}

tir_str tir_str_copy(struct tir_arena *arena, tir_str s); // the copy is terminated
tir_str tir_str_format(struct tir_arena *arena, const char *format, ...) TIR_PRINTF(2, 3);
tir_str tir_str_vformat(struct tir_arena *arena, const char *format, va_list args) TIR_PRINTF(2, 0);
// Edit distance, for "did you mean"; gives up beyond `limit` and returns limit + 1.
uint32_t tir_str_distance(tir_str a, tir_str b, uint32_t limit);

// The nearest of the names that were tried.
struct tir_nearest {
    tir_str wanted, name; // name.ptr NULL: none is near
    uint32_t distance;    // nearer than this
};
struct tir_nearest tir_nearest_to(tir_str wanted, uint32_t most); // most: distance of the farthest
void tir_nearest_try(struct tir_nearest *n, tir_str name);
// "; did you mean NAME?", or nothing.
#define TIR_NEAREST_FMT "%s" STR_FMT "%s"
#define TIR_NEAREST_ARG(n) \
    (n).name.ptr ? "; did you mean " : "", STR_ARG((n).name), (n).name.ptr ? "?" : ""

// Interned names: equal text is the same pointer, terminated.
struct tir_interner {
    struct tir_arena *arena;
    const char **slots; // open addressing
    uint32_t count, capacity;
};
const char *tir_intern(struct tir_interner *interner, tir_str s);
const char *tir_intern_cstr(struct tir_interner *interner, const char *terminated);

// A builder with a hard maximum; past it text is dropped and `truncated` is set.
struct tir_text {
    struct tir_arena *arena;
    char *ptr; // terminated
    size_t len, cap, max;
    bool truncated;
};
void tir_text_init(struct tir_text *text, struct tir_arena *arena, size_t max); // max 0: 1 GiB
void tir_text_add(struct tir_text *text, tir_str s);
void tir_text_char(struct tir_text *text, char c);
void tir_text_int(struct tir_text *text, int64_t value); // in decimal
void tir_text_format(struct tir_text *text, const char *format, ...) TIR_PRINTF(2, 3);
void tir_text_vformat(struct tir_text *text, const char *format, va_list args) TIR_PRINTF(2, 0);
void tir_text_json(struct tir_text *text, tir_str s); // quoted and escaped
tir_str tir_text_str(const struct tir_text *text);

#endif
