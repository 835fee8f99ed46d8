// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of a PTX module that one of its entries needs: everything but the other entries.
//
//     .version 8.6                           .version 8.6
//     .extern .shared .b8 shared[];          .extern .shared .b8 shared[];
//     .visible .entry f() { ... }
//     .visible .entry g() { ... }            .visible .entry g() { ... }
//
// The text is read as statements at the level of the module: up to the end of the line for the
// directives that have no semicolon, else up to a semicolon or the end of a body in braces.
// Functions and variables stay whether the entry uses them or not, so nothing has to be known of
// the code. Debug sections and aliases name entries from outside, so a module that has some is not
// divided.

#include "ptx.h"

#include <string.h>

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%' || c == '.' || c == '@';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is(tir_str word, const char *text)
{
    return word.len == strlen(text) && memcmp(word.ptr, text, word.len) == 0;
}

static tir_str word_at(const char *at, const char *end)
{
    size_t len = 0;
    while (at + len < end && is_word(at[len]))
        len++;
    return (tir_str){at, len};
}

// After the comment or string that begins here; `at` itself where none does.
static const char *skip_opaque(const char *at, const char *end)
{
    if (*at == '"') {
        for (at++; at < end && *at != '"'; at++)
            at += *at == '\\' && at + 1 < end;
        return at < end ? at + 1 : end;
    }
    if (end - at < 2 || at[0] != '/')
        return at;
    if (at[1] == '/') {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        return line ? line : end; // the end of the line may end a statement
    }
    if (at[1] != '*')
        return at;
    for (at += 2; at < end; at++)
        if (at[0] == '*' && at + 1 < end && at[1] == '/')
            return at + 2;
    return end;
}

static const char *skip_blank(const char *at, const char *end)
{
    while (at < end) {
        if (is_space(*at))
            at++;
        else if (*at == '/' && skip_opaque(at, end) != at)
            at = skip_opaque(at, end);
        else
            break;
    }
    return at;
}

// After the brace that closes the one here. Nearly all of a module lies between braces, and a
// launch waits for it to be read, so this looks at the characters alone that are or hide a brace.
static const char *skip_braces(const char *at, const char *end)
{
    size_t depth = 0;
    while ((at += strcspn(at, "{}\"/")) < end) {
        const char *next = skip_opaque(at, end);
        if (next != at) {
            at = next;
            continue;
        }
        depth += *at == '{';
        if (*at++ == '}' && --depth == 0)
            return at;
    }
    return end;
}

static bool ends_with_line(tir_str word)
{
    static const char *const words[] = {".version", ".target", ".address_size", ".file", ".loc"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is(word, words[i]))
            return true;
    return word.len && word.ptr[0] == '@';
}

// The end of the statement that begins here, at its first word.
static const char *read_statement(const char *at, const char *end, struct tir_ptx_statement *s)
{
    const tir_str first = word_at(at, end);
    const bool is_line = ends_with_line(first);
    s->is_binding =
        is(first, ".section") || is(first, ".alias") || (first.len && *first.ptr == '@');
    while (at < end) {
        const char *next = skip_opaque(at, end);
        const tir_str word = word_at(at, end);
        if (next != at) {
            at = next;
        } else if (word.len) {
            at += word.len;
            if (is(word, ".entry"))
                s->entry = word_at(skip_blank(at, end), end);
        } else if (*at == ';' || (is_line && *at == '\n')) {
            return at + 1;
        } else if (*at == '{') {
            at = skip_braces(at, end);
            next = skip_blank(at, end);
            if (next < end && (*next == ';' || *next == ',')) // an initialiser
                continue;
            return at;
        } else {
            at++;
        }
    }
    return end;
}

bool tir_ptx_next(tir_str *rest, struct tir_ptx_statement *out)
{
    const char *end = rest->ptr + rest->len;
    if (!rest->len)
        return false;
    *out = (struct tir_ptx_statement){.text.ptr = rest->ptr};
    const char *at = read_statement(skip_blank(rest->ptr, end), end, out);
    out->text.len = (size_t)(at - rest->ptr);
    *rest = (tir_str){at, (size_t)(end - at)};
    return true;
}

bool tir_ptx_keep_entry(tir_str ptx, tir_str entry, char *out, size_t *size)
{
    struct tir_ptx_statement s;
    bool found = false;
    *size = 0;
    while (tir_ptx_next(&ptx, &s)) {
        const bool is_it = s.entry.len && s.entry.len == entry.len &&
                           memcmp(s.entry.ptr, entry.ptr, entry.len) == 0;
        if (s.is_binding)
            return false;
        found |= is_it;
        if (!s.entry.len || is_it) {
            memmove(out + *size, s.text.ptr, s.text.len);
            *size += s.text.len;
        }
    }
    out[*size] = 0;
    return found;
}
