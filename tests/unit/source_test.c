// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The source map: every location of two files, line ends, spans, the size limit.

#include "unit.h"

#include "base/source.h"

static void check(struct tir_position p, const char *file, uint32_t line, uint32_t column,
                  const char *text)
{
    assert_non_null(p.file);
    assert_str(p.file->name, file);
    assert_int_equal(p.line, line);
    assert_int_equal(p.column, column);
    assert_str(p.line_text, text);
}

static void locations_become_lines_and_columns(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    struct tir_source_map map;
    tir_source_map_init(&map, &arena);
    const struct tir_source_file *a = tir_source_add(&map, STR("a.tir"), STR("one\r\n\nthree\n"));
    const struct tir_source_file *b = tir_source_add(&map, STR("b.tir"), STR("x"));
    assert_int_equal(a->base, 1);
    check(tir_source_locate(&map, a->base), "a.tir", 1, 1, "one");
    check(tir_source_locate(&map, a->base + 4), "a.tir", 1, 5, "one"); // the newline itself
    check(tir_source_locate(&map, a->base + 5), "a.tir", 2, 1, "");
    check(tir_source_locate(&map, a->base + 8), "a.tir", 3, 3, "three");
    check(tir_source_locate(&map, a->base + 12), "a.tir", 4, 1, ""); // the end of the file
    check(tir_source_locate(&map, b->base), "b.tir", 1, 1, "x");
    check(tir_source_locate(&map, b->base + 1), "b.tir", 1, 2, "x");
    assert_null(tir_source_locate(&map, 0).file);
    assert_null(tir_source_locate(&map, b->base + 2).file);
    tir_arena_finish(&arena);
}

static void files_are_copied_and_terminated(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    struct tir_source_map map;
    tir_source_map_init(&map, &arena);
    char text[] = "abc";
    const struct tir_source_file *file = tir_source_add(&map, STR("f"), tir_str_of(text));
    text[0] = 'X';
    assert_string_equal(file->text.ptr, "abc");
    tir_arena_finish(&arena);
}

static void spans_give_their_text(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    struct tir_source_map map;
    tir_source_map_init(&map, &arena);
    uint32_t base = tir_source_add(&map, STR("f"), STR("let x = 1;"))->base;
    struct tir_span let = {base, base + 3}, one = {base + 8, base + 9};
    assert_str(tir_source_text(&map, let), "let");
    assert_str(tir_source_text(&map, tir_span_join(let, one)), "let x = 1");
    assert_str(tir_source_text(&map, (struct tir_span){base + 9, base + 500}), ";");
    assert_int_equal(tir_source_text(&map, (struct tir_span){0, 0}).len, 0);
    assert_int_equal(tir_source_text(&map, (struct tir_span){base + 5, base + 2}).len, 0);
    tir_arena_finish(&arena);
}

static void too_much_source_is_refused(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    struct tir_source_map map;
    tir_source_map_init(&map, &arena);
    assert_null(tir_source_add(&map, STR("huge"), (tir_str){"", (size_t)1 << 30}));
    assert_null(tir_source_add(&map, STR("huge"), (tir_str){"", SIZE_MAX}));
    assert_non_null(tir_source_add(&map, STR("small"), STR("")));
    tir_arena_finish(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locations_become_lines_and_columns),
        cmocka_unit_test(files_are_copied_and_terminated),
        cmocka_unit_test(spans_give_their_text),
        cmocka_unit_test(too_much_source_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
