// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Diagnostics against what a source says it expects.
//
// Both sides become lists of (line, severity, text): the comments, and the heads of the rendered
// diagnostics, "NAME:LINE:COLUMN: severity[CODE]: message", whose text is "CODE: message". Each
// expectation takes the first diagnostic of its line that it fits.
#include "driver/command/expect.h"

#include "base/vec.h"
#include "driver/value/number.h"

struct item {
    int64_t line;
    tir_str severity, text;
    bool met;
};

typedef VEC(struct item) items;

static tir_str next_line(tir_str *rest)
{
    const char *end = memchr(rest->ptr, '\n', rest->len);
    tir_str line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t used = line.len + (end != NULL);
    *rest = (tir_str){rest->ptr + used, rest->len - used};
    return line;
}

// Cuts `part` off the front of *s.
static bool skip(tir_str *s, const char *part)
{
    size_t len = strlen(part);
    if (s->len < len || memcmp(s->ptr, part, len))
        return false;
    *s = (tir_str){s->ptr + len, s->len - len};
    return true;
}

static tir_str take_while(tir_str *s, const char *set)
{
    tir_str head = {s->ptr, 0};
    while (head.len < s->len && s->ptr[head.len] && strchr(set, s->ptr[head.len]))
        head.len++;
    *s = (tir_str){s->ptr + head.len, s->len - head.len};
    return head;
}

static bool find(tir_str *s, const char *part, tir_str *before)
{
    tir_str at = *s;
    for (; at.len; at.ptr++, at.len--) {
        *before = (tir_str){s->ptr, s->len - at.len};
        if (skip(&at, part)) {
            *s = at;
            return true;
        }
    }
    return false;
}

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define DIGITS  "0123456789"

// Every "expect-..." of one line.
static void expectations(struct tir_arena *arena, tir_str line, int64_t number, items *out)
{
    tir_str before;
    while (find(&line, "expect-", &before)) {
        struct item item = {.line = number, .severity = take_while(&line, LETTERS)};
        int64_t offset = 0;
        if (skip(&line, "@")) {
            skip(&line, "+");
            if (!tir_parse_int(take_while(&line, "-" DIGITS), &offset))
                continue;
        }
        take_while(&line, " ");
        if (skip(&line, "{{") && find(&line, "}}", &item.text)) {
            item.line += offset;
            vec_push(arena, out, item);
        }
    }
}

// The head of a diagnostic: "NAME:LINE:COLUMN: severity[CODE]: message".
static bool head(struct tir_arena *arena, tir_str line, tir_str name, struct item *out)
{
    if (line.len < name.len || memcmp(line.ptr, name.ptr, name.len))
        return false;
    line = (tir_str){line.ptr + name.len, line.len - name.len};
    tir_str column, code;
    *out = (struct item){.line = 0};
    if (!skip(&line, ":") || !tir_parse_int(take_while(&line, DIGITS), &out->line) ||
        !skip(&line, ":"))
        return false;
    column = take_while(&line, DIGITS);
    if (!column.len || !skip(&line, ": "))
        return false;
    out->severity = take_while(&line, LETTERS);
    if (!skip(&line, "[") || !find(&line, "]", &code))
        return false;
    out->text = tir_str_format(arena, STR_FMT STR_FMT, STR_ARG(code), STR_ARG(line));
    return true;
}

static bool contains(tir_str text, tir_str part)
{
    for (size_t at = 0; at + part.len <= text.len; at++)
        if (!memcmp(text.ptr + at, part.ptr, part.len))
            return true;
    return false;
}

static bool meet(items *got, const struct item *want)
{
    vec_foreach(struct item, it, got) {
        if (it->met || it->line != want->line || !tir_str_equal(it->severity, want->severity) ||
            !contains(it->text, want->text))
            continue;
        return it->met = true;
    }
    return false;
}

bool tir_expect_check(struct tir_arena *arena, tir_str name, tir_str source, tir_str diagnostics,
                      struct tir_text *out)
{
    items wanted = {0}, got = {0};
    bool fine = true;
    for (int64_t number = 1; source.len; number++)
        expectations(arena, next_line(&source), number, &wanted);
    while (diagnostics.len) {
        struct item item;
        if (head(arena, next_line(&diagnostics), name, &item))
            vec_push(arena, &got, item);
    }
    vec_foreach(struct item, it, &wanted) {
        if (meet(&got, it))
            continue;
        fine = false;
        tir_text_format(
            out, STR_FMT ":%lld: expected, but not reported: " STR_FMT ": " STR_FMT "\n",
            STR_ARG(name), (long long)it->line, STR_ARG(it->severity), STR_ARG(it->text));
    }
    vec_foreach(struct item, it, &got) {
        if (it->met || tir_str_is(it->severity, "remark"))
            continue;
        fine = false;
        tir_text_format(
            out, STR_FMT ":%lld: reported, but not expected: " STR_FMT ": " STR_FMT "\n",
            STR_ARG(name), (long long)it->line, STR_ARG(it->severity), STR_ARG(it->text));
    }
    return fine;
}
