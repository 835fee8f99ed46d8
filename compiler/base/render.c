// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Diagnostics as text with carets, or as one JSON object a line. The only place that prints them.
//
//     gemm.tir:14:9: error[E0301]: shared memory is over the limit of sm_90a
//        14 |     let a = A[m:+BM, k:+BK];
//           |         ^
//     note: gemm.tir:15:9: 98304 bytes here
//        15 |     let b = B[n:+BN, k:+BK];
//           |         ^
//     help: gemm.tir:14:46: use 2 stages: `stages = 2`
//
// Source text and names in messages may be hostile: control characters, direction overrides and
// malformed bytes come out as U+FFFD, and a long line is cut to a window around the caret.

#include "base/diag.h"
#include "base/unicode.h"

enum { TAB = 4, WINDOW = 100, BEFORE_CARET = 60 }; // columns

struct renderer {
    const struct tir_diags *diags;
    struct tir_text *out;
};

static const char *severity_name(enum tir_severity severity)
{
    static const char *const names[] = {"error", "warning", "remark"};
    return names[severity];
}

static void add_point(struct tir_text *out, tir_str s, size_t begin, size_t end, uint32_t point)
{
    if (point == TIR_REPLACEMENT || !tir_unicode_printable(point))
        tir_text_add(out, STR("\xef\xbf\xbd"));
    else
        tir_text_add(out, (tir_str){s.ptr + begin, end - begin});
}

void tir_text_message(struct tir_text *out, tir_str s)
{
    for (size_t at = 0; at < s.len;) {
        size_t begin = at;
        uint32_t point = tir_utf8_next(s, &at);
        if (point == '\n' || point == '\t')
            tir_text_char(out, ' ');
        else
            add_point(out, s, begin, at, point);
    }
}

static uint32_t width_at(uint32_t point, uint32_t column)
{
    if (point == '\t')
        return TAB - column % TAB;
    return tir_unicode_printable(point) ? tir_unicode_width(point) : 1;
}

// The byte where the printed window begins, so that `caret` is at most BEFORE_CARET characters in.
static size_t window_begin(tir_str line, size_t caret)
{
    size_t at = caret;
    for (uint32_t i = 0; at > 0 && i < BEFORE_CARET; i++) {
        at--;
        for (int k = 0; k < 3 && at > 0 && ((unsigned char)line.ptr[at] & 0xc0) == 0x80; k++)
            at--;
    }
    return at;
}

// One source line and, below it, a caret under `begin` and tildes up to `end` (bytes of the line).
static void add_line(struct tir_text *out, uint32_t number, tir_str line, size_t begin, size_t end)
{
    size_t at = line.len > WINDOW ? window_begin(line, begin) : 0;
    bool cut = at > 0;
    uint32_t column = 0, caret = 0, tail = 0;

    tir_text_format(out, "%5u | %s", (unsigned)number, cut ? "..." : "");
    while (at < line.len && column < WINDOW) {
        size_t from = at;
        uint32_t point = tir_utf8_next(line, &at), width = width_at(point, column);
        if (from <= begin)
            caret = column;
        if (from < end)
            tail = column + width;
        if (point == '\t')
            tir_text_format(out, "%*s", (int)width, "");
        else
            add_point(out, line, from, at, point);
        column += width;
    }
    if (begin >= line.len)
        caret = column;
    tir_text_format(out, "%s\n      | %*s^", at < line.len ? "..." : "", (int)caret + (cut ? 3 : 0),
                    "");
    for (uint32_t i = caret + 1; i < tail; i++)
        tir_text_char(out, '~');
    tir_text_char(out, '\n');
}

// "file:line:column: ", or nothing for nowhere.
static void add_place(struct tir_text *out, struct tir_position p)
{
    if (!p.file)
        return;
    tir_text_message(out, p.file->name);
    tir_text_format(out, ":%u:%u: ", (unsigned)p.line, (unsigned)p.column);
}

static void add_source(struct renderer *r, struct tir_span span, struct tir_position p)
{
    if (!p.file)
        return;
    size_t begin = TIR_MIN(p.column - 1, p.line_text.len);
    size_t length = span.end > span.begin ? span.end - span.begin : 0;
    add_line(r->out, p.line, p.line_text, begin, TIR_MIN(begin + length, p.line_text.len));
}

static bool contains(tir_str s, tir_str part)
{
    for (size_t i = 0; i + part.len <= s.len; i++)
        if (memcmp(s.ptr + i, part.ptr, part.len) == 0)
            return true;
    return false;
}

static void text_note(struct renderer *r, const struct tir_diag_note *note)
{
    struct tir_position p = tir_source_locate(r->diags->sources, note->span.begin);
    tir_text_add(r->out, note->is_fix ? STR("help: ") : STR("note: "));
    add_place(r->out, p);
    tir_text_message(r->out, note->text);
    if (note->replacement.len && !contains(note->text, note->replacement)) {
        tir_text_add(r->out, STR(": `"));
        tir_text_message(r->out, note->replacement);
        tir_text_char(r->out, '`');
    }
    tir_text_char(r->out, '\n');
    if (!note->is_fix)
        add_source(r, note->span, p);
}

static void text_diag(struct renderer *r, const struct tir_diag *diag)
{
    const struct tir_diag_info *info = &tir_diag_infos[diag->code];
    struct tir_position p = tir_source_locate(r->diags->sources, diag->span.begin);
    add_place(r->out, p);
    tir_text_format(r->out, "%s[%s]: ", severity_name(info->severity), info->code);
    tir_text_message(r->out, diag->text);
    tir_text_char(r->out, '\n');
    add_source(r, diag->span, p);
    vec_foreach(struct tir_diag_note, note, &diag->notes)
        text_note(r, note);
}

static void text_dropped(struct renderer *r, uint32_t count, const char *what)
{
    uint32_t limit = r->diags->limit;
    if (count > limit)
        tir_text_format(r->out, "%u more %s%s not shown\n", (unsigned)(count - limit), what,
                        count - limit == 1 ? " is" : "s are");
}

void tir_json_place(struct tir_text *out, const struct tir_source_map *sources,
                    struct tir_span span)
{
    struct tir_position begin = tir_source_locate(sources, span.begin);
    if (!begin.file)
        return;
    struct tir_position end = tir_source_locate(sources, TIR_MAX(span.end, span.begin));
    if (end.file != begin.file)
        end = begin;
    tir_text_add(out, STR("\"file\":"));
    tir_text_json(out, begin.file->name);
    tir_text_format(out, ",\"line\":%u,\"column\":%u,\"end_line\":%u,\"end_column\":%u,",
                    (unsigned)begin.line, (unsigned)begin.column, (unsigned)end.line,
                    (unsigned)end.column);
}

static void json_note(struct renderer *r, const struct tir_diag_note *note)
{
    tir_text_format(r->out, "{\"kind\":\"%s\",", note->is_fix ? "help" : "note");
    tir_json_place(r->out, r->diags->sources, note->span);
    tir_text_add(r->out, STR("\"message\":"));
    tir_text_json(r->out, note->text);
    if (note->is_fix) {
        tir_text_add(r->out, STR(",\"replacement\":"));
        tir_text_json(r->out, note->replacement);
    }
    tir_text_char(r->out, '}');
}

static void json_diag(struct renderer *r, const struct tir_diag *diag)
{
    const struct tir_diag_info *info = &tir_diag_infos[diag->code];
    tir_text_format(r->out, "{\"severity\":\"%s\",\"code\":\"%s\",", severity_name(info->severity),
                    info->code);
    tir_json_place(r->out, r->diags->sources, diag->span);
    tir_text_add(r->out, STR("\"message\":"));
    tir_text_json(r->out, diag->text);
    tir_text_add(r->out, STR(",\"notes\":["));
    vec_foreach(struct tir_diag_note, note, &diag->notes) {
        if (note != diag->notes.at)
            tir_text_char(r->out, ',');
        json_note(r, note);
    }
    tir_text_add(r->out, STR("]}\n"));
}

void tir_diags_render(const struct tir_diags *diags, enum tir_diag_format format,
                      struct tir_text *out)
{
    struct renderer r = {diags, out};
    for (uint32_t i = 0; i < diags->list.len; i++) {
        if (format == TIR_DIAG_JSON)
            json_diag(&r, diags->list.at[i]);
        else
            text_diag(&r, diags->list.at[i]);
    }
    if (format == TIR_DIAG_JSON)
        return;
    text_dropped(&r, diags->error_count, "error");
    text_dropped(&r, diags->warning_count, "warning");
}
