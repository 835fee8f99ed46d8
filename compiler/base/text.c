// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bounded string builder.

#include <stdio.h>

#include "base/str.h"
#include "base/unicode.h"

void tir_text_init(struct tir_text *text, struct tir_arena *arena, size_t max)
{
    *text = (struct tir_text){.arena = arena, .cap = 64, .max = max ? max : (size_t)1 << 30};
    text->ptr = tir_arena_alloc(arena, text->cap);
}

// Makes room for as many of `want` bytes, and the terminator, as the maximum allows.
static size_t make_room(struct tir_text *text, size_t want)
{
    size_t room = TIR_MIN(want, text->max - text->len);
    if (room < want)
        text->truncated = true;
    if (text->len + room >= text->cap) {
        size_t cap = TIR_MAX(text->cap * 2, text->len + room + 1);
        char *grown = tir_arena_alloc(text->arena, cap);
        memcpy(grown, text->ptr, text->len);
        text->ptr = grown;
        text->cap = cap;
    }
    return room;
}

void tir_text_add(struct tir_text *text, tir_str s)
{
    size_t room = make_room(text, s.len);
    if (room)
        memcpy(text->ptr + text->len, s.ptr, room);
    text->len += room;
    text->ptr[text->len] = '\0';
}

void tir_text_char(struct tir_text *text, char c)
{
    tir_text_add(text, (tir_str){&c, 1});
}

void tir_text_int(struct tir_text *text, int64_t value)
{
    char digits[20]; // of 2^63, and its sign
    char *end = digits + sizeof digits, *at = end;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        *--at = '-';
    tir_text_add(text, (tir_str){at, (size_t)(end - at)});
}

void tir_text_format(struct tir_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tir_text_vformat(text, format, args);
    va_end(args);
}

void tir_text_vformat(struct tir_text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(text->ptr + text->len, text->cap - text->len, format, args);
    assert(length >= 0);
    const bool fits = text->len + (size_t)length < text->cap;
    size_t room = make_room(text, (size_t)length);
    if (length > 0 && (!fits || room < (size_t)length))
        vsnprintf(text->ptr + text->len, room + 1, format, again);
    va_end(again);
    text->len += room;
    text->ptr[text->len] = '\0';
}

void tir_text_json(struct tir_text *text, tir_str s)
{
    tir_text_char(text, '"');
    for (size_t at = 0; at < s.len;) {
        size_t begin = at;
        uint32_t point = tir_utf8_next(s, &at);
        if (point == '"' || point == '\\')
            tir_text_format(text, "\\%c", (char)point);
        else if (point == '\n')
            tir_text_add(text, STR("\\n"));
        else if (point < 0x20 || point == 0x7f)
            tir_text_format(text, "\\u%04x", (unsigned)point);
        else if (point == TIR_REPLACEMENT)
            tir_text_add(text, STR("\\ufffd"));
        else
            tir_text_add(text, (tir_str){s.ptr + begin, at - begin});
    }
    tir_text_char(text, '"');
}

tir_str tir_text_str(const struct tir_text *text)
{
    return (tir_str){text->ptr, text->len};
}
