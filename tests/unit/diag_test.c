// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Diagnostics as people and programs see them.

#include "unit.h"

#include "base/diag.h"

struct fixture {
    struct tir_arena arena;
    struct tir_source_map sources;
    struct tir_diags diags;
    struct tir_source_file *file;
};

static void setup(struct fixture *f, tir_str source)
{
    f->arena = unit_arena();
    tir_source_map_init(&f->sources, &f->arena);
    tir_diags_init(&f->diags, &f->arena, &f->sources);
    f->file = tir_source_add(&f->sources, STR("t.tir"), source);
}

// The span of the first occurrence of `text`.
static struct tir_span span_of(struct fixture *f, const char *text)
{
    const char *at = strstr(f->file->text.ptr, text);
    assert_non_null(at);
    uint32_t begin = f->file->base + (uint32_t)(at - f->file->text.ptr);
    return (struct tir_span){begin, begin + (uint32_t)strlen(text)};
}

static void check(struct fixture *f, enum tir_diag_format format, const char *expected)
{
    struct tir_text out;
    tir_text_init(&out, &f->arena, 0);
    tir_diags_render(&f->diags, format, &out);
    assert_str(tir_text_str(&out), expected);
    tir_arena_finish(&f->arena);
}

static void notes_and_fixes_follow_their_error(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, STR("let a = 1;\nlet b = a + m;\n"));
    tir_error_at(&f.diags, span_of(&f, "a + m"), TIR_E_SHAPE_MISMATCH, "cannot add %s and %s",
                 "f32[4]", "f32[8]");
    tir_note_at(&f.diags, span_of(&f, "1"), "f32[4] comes from here");
    tir_note_at(&f.diags, (struct tir_span){0}, "shapes must be equal");
    tir_fix_at(&f.diags, span_of(&f, "m"), "m[0:+4]", "take a part");
    tir_fix_at(&f.diags, span_of(&f, "m"), "n", "did you mean `n`?"); // says it already
    assert_int_equal(f.diags.error_count, 1);
    check(&f, TIR_DIAG_TEXT,
          "t.tir:2:9: error[E0201]: cannot add f32[4] and f32[8]\n"
          "    2 | let b = a + m;\n"
          "      |         ^~~~~\n"
          "note: t.tir:1:9: f32[4] comes from here\n"
          "    1 | let a = 1;\n"
          "      |         ^\n"
          "note: shapes must be equal\n"
          "help: t.tir:2:13: take a part: `m[0:+4]`\n"
          "help: t.tir:2:13: did you mean `n`?\n");
}

static void json_has_one_object_a_line(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, STR("let a = 1;\nlet b = \"q\";\n"));
    tir_error_at(&f.diags, span_of(&f, "\"q\""), TIR_E_TYPE, "not a \"number\"");
    tir_fix_at(&f.diags, span_of(&f, "\"q\""), "2", "use a number");
    tir_error_at(&f.diags, (struct tir_span){0}, TIR_W_UNUSED, "a is not used");
    check(&f, TIR_DIAG_JSON,
          "{\"severity\":\"error\",\"code\":\"E0103\",\"file\":\"t.tir\",\"line\":2,\"column\":9,"
          "\"end_line\":2,\"end_column\":12,\"message\":\"not a \\\"number\\\"\",\"notes\":["
          "{\"kind\":\"help\",\"file\":\"t.tir\",\"line\":2,\"column\":9,\"end_line\":2,"
          "\"end_column\":12,\"message\":\"use a number\",\"replacement\":\"2\"}]}\n"
          "{\"severity\":\"warning\",\"code\":\"W0001\",\"message\":\"a is not used\","
          "\"notes\":[]}\n");
}

static void tabs_and_wide_characters_keep_the_caret_in_place(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, STR("\ta\tbad // x\n\xe4\xb8\xad\xcc\x81 bad2\n"));
    tir_error_at(&f.diags, span_of(&f, "bad"), TIR_E_NAME, "no");
    tir_error_at(&f.diags, span_of(&f, "bad2"), TIR_E_NAME, "no");
    check(&f, TIR_DIAG_TEXT,
          "t.tir:1:4: error[E0101]: no\n"
          "    1 |     a   bad // x\n"
          "      |         ^~~\n"
          "t.tir:2:7: error[E0101]: no\n"
          "    2 | \xe4\xb8\xad\xcc\x81 bad2\n"
          "      |    ^~~~\n");
}

static void ends_of_lines_and_files_can_be_pointed_at(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, STR("let a = \nx"));
    uint32_t base = f.file->base;
    tir_error_at(&f.diags, (struct tir_span){base + 8, base + 9}, TIR_E_SYNTAX, "no value");
    tir_error_at(&f.diags, (struct tir_span){base + 10, base + 10}, TIR_E_SYNTAX, "no end");
    tir_error_at(&f.diags, (struct tir_span){base + 4, base + 10}, TIR_E_SYNTAX, "two lines");
    check(&f, TIR_DIAG_TEXT,
          "t.tir:1:9: error[E0003]: no value\n"
          "    1 | let a = \n"
          "      |         ^\n"
          "t.tir:2:2: error[E0003]: no end\n"
          "    2 | x\n"
          "      |  ^\n"
          "t.tir:1:5: error[E0003]: two lines\n"
          "    1 | let a = \n"
          "      |     ^~~~\n");
}

static void hostile_text_does_not_reach_the_terminal(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, STR("\x1b[2J bad \xff\n"));
    tir_error_at(&f.diags, span_of(&f, "bad"), TIR_E_NAME, "unknown %s", "\x1b[31m\nx");
    check(&f, TIR_DIAG_TEXT,
          "t.tir:1:6: error[E0101]: unknown \xef\xbf\xbd[31m x\n"
          "    1 | \xef\xbf\xbd[2J bad \xef\xbf\xbd\n"
          "      |      ^~~\n");
}

static void long_lines_are_cut_around_the_caret(void **state)
{
    (void)state;
    struct fixture f;
    char line[100001];
    memset(line, 'a', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    memcpy(line + 50000, "BAD", 3);
    setup(&f, tir_str_of(line));
    tir_error_at(&f.diags, span_of(&f, "BAD"), TIR_E_NAME, "no");
    check(&f, TIR_DIAG_TEXT,
          "t.tir:1:50001: error[E0101]: no\n"
          "    1 | ..."
          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaBAD"
          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\n"
          "      |    "
          "                                                            ^~~\n");
}

static void repeated_messages_and_those_past_the_limit_are_dropped(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, STR("x"));
    struct tir_span x = span_of(&f, "x");
    f.diags.limit = 2;
    tir_note_at(&f.diags, x, "a note of nothing");
    tir_error_at(&f.diags, x, TIR_E_NAME, "first");
    tir_error_at(&f.diags, x, TIR_E_NAME, "first");
    tir_note_at(&f.diags, x, "a note of what was dropped");
    tir_error_at(&f.diags, (struct tir_span){0}, TIR_E_NAME, "second");
    for (int i = 0; i < 3; i++)
        tir_error_at(&f.diags, x, TIR_E_NAME, "later %d", i);
    tir_fix_at(&f.diags, x, "y", "a fix of what was dropped");
    tir_error_at(&f.diags, (struct tir_span){0}, TIR_W_UNUSED, "a warning still comes");
    for (int i = 0; i < 3; i++)
        tir_error_at(&f.diags, (struct tir_span){0}, TIR_R_LOWERING, "remark %d", i);
    assert_int_equal(f.diags.error_count, 5);
    check(&f, TIR_DIAG_TEXT,
          "t.tir:1:1: error[E0101]: first\n"
          "    1 | x\n"
          "      | ^\n"
          "error[E0101]: second\n"
          "warning[W0001]: a warning still comes\n"
          "remark[R0001]: remark 0\n"
          "remark[R0001]: remark 1\n"
          "remark[R0001]: remark 2\n"
          "3 more errors are not shown\n");
}

// What a thread of its own reported reads as if it had been reported here.
static void what_others_reported_is_repeated(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, STR("x"));
    struct tir_span x = span_of(&f, "x");
    struct tir_diags others;
    tir_diags_init(&others, &f.arena, &f.sources);
    f.diags.limit = others.limit = 2;
    tir_error_at(&others, x, TIR_E_NAME, "both");
    tir_note_at(&others, x, "a note that is dropped with it");
    tir_error_at(&others, (struct tir_span){0}, TIR_E_NAME, "theirs");
    tir_note_at(&others, (struct tir_span){0}, "100%%");
    tir_fix_at(&others, x, "y", "call it y");
    tir_error_at(&others, x, TIR_E_NAME, "past the limit");
    tir_error_at(&others, (struct tir_span){0}, TIR_W_UNUSED, "theirs too");
    tir_error_at(&f.diags, x, TIR_E_NAME, "both");
    tir_diags_repeat(&f.diags, &others);
    assert_int_equal(f.diags.error_count, 3);
    assert_int_equal(f.diags.warning_count, 1);
    check(&f, TIR_DIAG_TEXT,
          "t.tir:1:1: error[E0101]: both\n"
          "    1 | x\n"
          "      | ^\n"
          "error[E0101]: theirs\n"
          "note: 100%\n"
          "help: t.tir:1:1: call it y\n"
          "warning[W0001]: theirs too\n"
          "1 more error is not shown\n");
}

// Codes are what people search for: they never change, and each letter has one severity.
static void codes_are_unique_and_match_their_severity(void **state)
{
    (void)state;
    static const char letters[] = {'E', 'W', 'R'};
    for (int i = 0; i < TIR_DIAG_COUNT; i++) {
        assert_int_equal(strlen(tir_diag_infos[i].code), 5);
        assert_int_equal(tir_diag_infos[i].code[0], letters[tir_diag_infos[i].severity]);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(tir_diag_infos[i].code, tir_diag_infos[j].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_and_fixes_follow_their_error),
        cmocka_unit_test(json_has_one_object_a_line),
        cmocka_unit_test(tabs_and_wide_characters_keep_the_caret_in_place),
        cmocka_unit_test(ends_of_lines_and_files_can_be_pointed_at),
        cmocka_unit_test(hostile_text_does_not_reach_the_terminal),
        cmocka_unit_test(long_lines_are_cut_around_the_caret),
        cmocka_unit_test(repeated_messages_and_those_past_the_limit_are_dropped),
        cmocka_unit_test(what_others_reported_is_repeated),
        cmocka_unit_test(codes_are_unique_and_match_their_severity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
