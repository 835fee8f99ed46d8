// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The library as Markdown: the first comment of each file, then every function and list of
// configurations with the comment above it. A comment with a blank line after it is a paragraph.

#include "front/help.h"

#include "front/library.h"

struct page {
    const char *at;
    struct tir_text *out;
};

// The next line, without its end. False: there is none.
static bool next_line(struct page *p, tir_str *line)
{
    const char *end = strchr(p->at, '\n');
    if (!end)
        return false;
    *line = (tir_str){p->at, (size_t)(end - p->at)};
    p->at = end + 1;
    return true;
}

static bool begins(tir_str line, const char *with)
{
    const size_t length = strlen(with);
    return line.len >= length && !memcmp(line.ptr, with, length);
}

// A line of a comment, without its mark.
static tir_str uncommented(tir_str line)
{
    const size_t mark = TIR_MIN(line.len, 3);
    return (tir_str){line.ptr + mark, line.len - mark};
}

// Skips the licence, and prints the comment that the file begins with.
static void add_header(struct page *p)
{
    tir_str line;
    bool found = next_line(p, &line);
    while (found && (found = next_line(p, &line)) && begins(line, "//")) {
        const tir_str text = uncommented(line);
        tir_text_format(p->out, STR_FMT "\n", STR_ARG(text));
    }
    tir_text_add(p->out, STR("\n"));
}

// "fn f(x) -> f32" up to its block, which may begin on a later line, without breaks.
static void add_signature(struct page *p, tir_str line)
{
    bool more = true;
    tir_text_add(p->out, STR("- `"));
    for (bool first = true; more; first = false) {
        size_t length = 0, begin = 0;
        while (length < line.len && line.ptr[length] != '{')
            length++;
        more = length == line.len;
        while (length && line.ptr[length - 1] == ' ')
            length--;
        while (begin < length && line.ptr[begin] == ' ')
            begin++;
        tir_text_format(p->out, "%s%.*s", first || begin == length ? "" : " ",
                        (int)(length - begin), line.ptr + begin);
        more = more && next_line(p, &line);
    }
    tir_text_add(p->out, STR("`"));
}

// The lines of the comment from `begin` up to `end`.
static void add_comment(struct tir_text *out, const char *begin, const char *end,
                        const char *between)
{
    struct page p = {begin, out};
    tir_str line;
    for (const char *before = ""; p.at < end && next_line(&p, &line); before = between)
        tir_text_format(out, "%s" STR_FMT, before, STR_ARG(uncommented(line)));
}

static void add_file(const struct library_file *file, struct tir_text *out)
{
    struct page p = {file->text, out};
    const char *comment = NULL; // where the one above begins
    bool in_list = false;
    tir_str line;
    tir_text_format(out, "\n## `%s`\n\n", file->name);
    add_header(&p);
    while (next_line(&p, &line)) {
        const char *const end = line.ptr;
        if (begins(line, "//")) {
            comment = comment ? comment : end;
            continue;
        }
        if (begins(line, "fn ") || begins(line, "configs ")) {
            add_signature(&p, line);
            tir_text_add(out, comment ? STR(": ") : STR(""));
            add_comment(out, comment ? comment : end, end, " ");
            tir_text_add(out, STR("\n"));
            in_list = true;
        } else if (comment && !line.len) {
            tir_text_add(out, in_list ? STR("\n") : STR(""));
            add_comment(out, comment, end, "\n");
            tir_text_add(out, STR("\n\n"));
            in_list = false;
        }
        comment = NULL;
    }
}

void tir_help_library(struct tir_text *out)
{
    tir_text_add(out,
                 STR("# Library\n\nFiles that are part of the compiler. `tir/standard.tir` needs "
                     "no import. [The language](../language.md#libraries) has examples.\n"));
    for (const struct library_file *file = library_files; file->name; file++)
        add_file(file, out);
}
