// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The entries of a PTX module, compared and asked.
#include "entries.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define LABEL "$L__BB" // then the number of the function

static bool begins(tir_str s, const char *with)
{
    return s.len >= strlen(with) && !memcmp(s.ptr, with, strlen(with));
}

static void skip(tir_str *s, size_t count)
{
    s->ptr += count;
    s->len -= count;
}

// The next character of code, white space as one blank; 0: at the end.
static char next(tir_str *s)
{
    bool is_apart = false;
    for (; s->len; is_apart = true) {
        const char *end = begins(*s, "//") ? memchr(s->ptr, '\n', s->len) : NULL;
        if (!end && !isspace((unsigned char)*s->ptr))
            break;
        skip(s, end ? (size_t)(end - s->ptr) : 1);
    }
    if (is_apart || !s->len)
        return s->len ? ' ' : '\0';
    bool is_label = begins(*s, LABEL);
    char c = *s->ptr;
    skip(s, is_label ? strlen(LABEL) : 1);
    while (is_label && s->len && isdigit((unsigned char)*s->ptr))
        skip(s, 1);
    return c;
}

// As far as the brace that ends the function.
static bool same_code(tir_str a, tir_str b)
{
    uint32_t depth = 0;
    for (;;) {
        char c = next(&a);
        if (c != next(&b))
            return false;
        depth += c == '{';
        if (!c || (c == '}' && --depth == 0))
            return true;
    }
}

// Moves behind the next `.entry NAME(`.
static bool next_entry(tir_str *s, tir_str *name)
{
    static const char word[] = ".entry ";
    for (; s->len; skip(s, 1)) {
        if (!begins(*s, word))
            continue;
        skip(s, strlen(word));
        const char *end = memchr(s->ptr, '(', s->len);
        if (!end)
            return false;
        *name = (tir_str){s->ptr, (size_t)(end - s->ptr)};
        skip(s, name->len);
        return true;
    }
    return false;
}

bool entries_have(tir_str ptx, tir_str name, const char *word)
{
    tir_str other = {NULL, 0}, rest = ptx;
    while (next_entry(&rest, &other) && !tir_str_equal(name, other))
        continue;
    if (!tir_str_equal(name, other))
        return false;
    const char *end = strstr(rest.ptr, ".entry "), *at = strstr(rest.ptr, word);
    return at && (!end || at < end);
}

tir_str entries_strange(tir_str part, tir_str whole)
{
    tir_str name, other;
    while (next_entry(&part, &name)) {
        tir_str rest = whole;
        bool found = false;
        while (!found && next_entry(&rest, &other))
            found = tir_str_equal(name, other);
        if (!found || !same_code(part, rest))
            return name;
    }
    return (tir_str){NULL, 0};
}
