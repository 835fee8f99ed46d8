// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The formatter: the tokens of a file that parses, in canonical layout.
//
// A statement that was written on one line, and fits, stays on one line with its blocks. The blocks
// of any other statement are opened, one statement a line. Inside a statement the formatter chooses
// the line breaks: only where they are needed, at the outermost possible level. Comments keep their
// place, on their own line or after code. At most one blank line separates statements. The result
// depends only on the tokens, so formatting twice changes nothing.
#include "front/format/format.h"
#include "front/front.h"
#include "front/parse/parse.h"

enum { WIDTH = 100, INDENT = 4 };

struct line {
    uint32_t indent;
    tir_str code;    // may be empty: the line is its comment
    tir_str comment; // after the code
    bool blank_before;
};

struct formatter {
    struct tir_context *cx;
    format_tokens tokens;
    VEC(struct line) lines;
    bool fresh; // a block was just opened: no blank line before what follows
    bool lists; // in `configs NAME { ... }`, whose statements no semicolon ends
};

static struct format_token *token(struct formatter *f, uint32_t i)
{
    return &f->tokens.at[i];
}

static void add_line(struct formatter *f, uint32_t indent, tir_str code, bool blank)
{
    struct line line = {.indent = indent, .code = code};
    line.blank_before = blank && !f->fresh && f->lines.len;
    f->fresh = false;
    vec_push(&f->cx->arena, &f->lines, line);
}

static bool is_line_comment(const struct format_token *t)
{
    return t->kind == TIR_TOK_COMMENT && t->text.ptr[1] == '/';
}

// After the last line, if that has none yet.
static bool add_trailing(struct formatter *f, tir_str comment)
{
    if (!f->lines.len || vec_last(&f->lines).comment.len || !vec_last(&f->lines).code.len)
        return false;
    vec_last(&f->lines).comment = comment;
    return true;
}

// Whether tokens i..j are a line of so many columns; it is not where a comment ends the line.
static bool fits(struct formatter *f, uint32_t i, uint32_t j, uint32_t room)
{
    uint64_t width = 0;
    for (uint32_t k = i; k < j && width <= room; k++) {
        if (is_line_comment(token(f, k)) ||
            memchr(token(f, k)->text.ptr, '\n', token(f, k)->text.len))
            return false;
        width += token(f, k)->text.len + (k > i && token(f, k)->space);
    }
    return width <= room;
}

static tir_str text_of(struct formatter *f, uint32_t i, uint32_t j)
{
    struct tir_text text;
    tir_text_init(&text, &f->cx->arena, 0);
    for (uint32_t k = i; k < j; k++) {
        if (k > i && token(f, k)->space)
            tir_text_char(&text, ' ');
        tir_text_add(&text, token(f, k)->text);
    }
    return tir_text_str(&text);
}

// Where to end a line that begins at i: the last place that fits among those of the least rank.
static uint32_t break_at(struct formatter *f, uint32_t i, uint32_t j, uint32_t room)
{
    uint32_t best = 0, width = (uint32_t)TIR_MIN(token(f, i)->text.len, 100000u);
    for (uint32_t k = i + 1; k < j; k++) {
        const struct format_token *t = token(f, k);
        if (t->rank && (!best || (width <= room && t->rank <= token(f, best)->rank)))
            best = k;
        width += (uint32_t)TIR_MIN(t->text.len, 100000u) + t->space;
        if (width > room && best)
            break;
    }
    return best ? best : j;
}

// Tokens i..j as one line or more. blank: a blank line was written before.
static void emit(struct formatter *f, uint32_t i, uint32_t j, uint32_t indent, bool blank)
{
    uint32_t at = indent, end = i; // of what stands before the next comment
    while (i < j) {
        end = TIR_MAX(end, i);
        while (end < j && !is_line_comment(token(f, end)))
            end++;
        uint32_t stop = end;
        if (end > i) {
            uint32_t room = WIDTH > at ? WIDTH - at : 1;
            if (!fits(f, i, end, room))
                stop = break_at(f, i, end, room);
            add_line(f, at, text_of(f, i, stop), blank);
        }
        i = stop;
        if (i == end && i < j) { // a comment in the middle
            if (!add_trailing(f, token(f, i)->text))
                add_line(f, at, token(f, i)->text, false);
            i++;
        }
        at = indent + INDENT;
        blank = false;
    }
}

static void emit_statements(struct formatter *f, uint32_t i, uint32_t j, uint32_t indent);

static uint32_t past_comments(struct formatter *f, uint32_t i, uint32_t j)
{
    while (i < j && token(f, i)->kind == TIR_TOK_COMMENT)
        i++;
    return i;
}

// config(...) or config NAME.NAME, which begins at i
static uint32_t config_end(struct formatter *f, uint32_t i, uint32_t j)
{
    i = past_comments(f, i + 1, j);
    if (i < j && token(f, i)->kind == TIR_TOK_LPAREN)
        return token(f, i)->match + 1;
    for (uint32_t dot;
         (dot = past_comments(f, i + 1, j)) < j && token(f, dot)->kind == TIR_TOK_DOT;)
        i = past_comments(f, dot + 1, j);
    return TIR_MIN(i + 1, j);
}

// The end of the statement or declaration that begins at i.
static uint32_t statement_end(struct formatter *f, uint32_t i, uint32_t j)
{
    if (f->lists)
        return config_end(f, i, j);
    while (i < j) {
        enum tir_token_kind kind = token(f, i)->kind;
        if (kind == TIR_TOK_SEMI)
            return i + 1;
        if (kind == TIR_TOK_LPAREN || kind == TIR_TOK_LBRACKET) {
            i = token(f, i)->match;
        } else if (kind == TIR_TOK_LBRACE) {
            i = token(f, i)->match;
            enum tir_token_kind next = i + 1 < j ? token(f, i + 1)->kind : TIR_TOK_EOF;
            if (next == TIR_TOK_SEMI)
                return i + 2;
            if (next != TIR_TOK_ELSE && next != TIR_TOK_DO)
                return i + 1;
        }
        i++;
    }
    return j;
}

static bool stays_on_one_line(struct formatter *f, uint32_t i, uint32_t j, uint32_t indent)
{
    for (uint32_t k = i + 1; k < j; k++)
        if (token(f, k)->newlines)
            return false;
    return indent <= WIDTH && fits(f, i, j, WIDTH - indent);
}

static uint32_t next_brace(struct formatter *f, uint32_t i, uint32_t j)
{
    while (i < j && token(f, i)->kind != TIR_TOK_LBRACE)
        i++;
    return i;
}

static void emit_statement(struct formatter *f, uint32_t i, uint32_t j, uint32_t indent)
{
    bool blank = token(f, i)->newlines > 1;
    uint32_t open = next_brace(f, i, j);
    if (open == j || stays_on_one_line(f, i, j, indent)) {
        emit(f, i, j, indent, blank);
        return;
    }
    enum tir_token_kind first = token(f, i)->kind;
    bool declares = first == TIR_TOK_KERNEL || first == TIR_TOK_FN;
    bool is_list = !indent && tir_str_is(token(f, i)->text, "configs");
    for (;; open = next_brace(f, i, j)) {
        if (open == j) { // the tokens after the last block
            emit(f, i, j, indent, blank);
            return;
        }
        uint32_t close = token(f, open)->match;
        if (declares) { // its brace has a line of its own
            emit(f, i, open, indent, blank);
            emit(f, open, open + 1, indent, false);
        } else {
            emit(f, i, open + 1, indent, blank);
        }
        f->fresh = true;
        f->lists = is_list;
        emit_statements(f, open + 1, close, indent + INDENT);
        f->lists = false;
        f->fresh = true;
        blank = false;
        i = close;
        if (i + 1 == j) {
            emit(f, i, j, indent, false);
            return;
        }
    }
}

static void emit_statements(struct formatter *f, uint32_t i, uint32_t j, uint32_t indent)
{
    while (i < j) {
        const struct format_token *t = token(f, i);
        if (t->kind != TIR_TOK_COMMENT) {
            uint32_t end = statement_end(f, i, j);
            emit_statement(f, i, end, indent);
            i = end;
            continue;
        }
        if (t->newlines || !add_trailing(f, t->text))
            add_line(f, indent, t->text, t->newlines > 1);
        i++;
    }
}

// Comments after code on consecutive lines begin in one column, if all of them fit.
static void print_lines(struct formatter *f, struct tir_text *out)
{
    uint32_t run_end = 0;
    size_t column = 0;
    for (uint32_t i = 0; i < f->lines.len; i++) {
        const struct line *line = &f->lines.at[i];
        if (i >= run_end) {
            column = 0;
            bool fits = true;
            for (run_end = i; run_end < f->lines.len; run_end++) {
                const struct line *l = &f->lines.at[run_end];
                if (!l->comment.len || (run_end > i && l->blank_before))
                    break;
                column = TIR_MAX(column, l->indent + l->code.len);
            }
            for (uint32_t k = i; k < run_end; k++)
                fits &= column + 1 + f->lines.at[k].comment.len <= WIDTH;
            column = fits ? column : 0;
            run_end = TIR_MAX(run_end, i + 1);
        }
        if (line->blank_before)
            tir_text_char(out, '\n');
        for (uint32_t c = 0; c < line->indent; c++)
            tir_text_char(out, ' ');
        tir_text_add(out, line->code);
        for (size_t c = line->indent + line->code.len; line->comment.len && c < column; c++)
            tir_text_char(out, ' ');
        if (line->comment.len)
            tir_text_char(out, ' ');
        tir_text_add(out, line->comment);
        tir_text_char(out, '\n');
    }
}

bool tir_front_format(struct tir_context *cx, tir_str name, tir_str source, struct tir_text *out)
{
    uint32_t errors = cx->diags.error_count;
    struct tir_source_file *file = tir_source_add(&cx->sources, name, source);
    if (!file) {
        tir_error_at(&cx->diags, (struct tir_span){0, 0}, TIR_E_FILE_SIZE,
                     "all files together are larger than 1 GiB");
        return false;
    }
    if (!tir_parse(cx, file) || cx->diags.error_count != errors)
        return false;
    struct formatter f = {.cx = cx};
    format_read(cx, file, &f.tokens);
    emit_statements(&f, 0, f.tokens.len - 1, 0);
    print_lines(&f, out);
    return true;
}
