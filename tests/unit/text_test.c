// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The string builder: growth, the hard maximum, JSON.

#include "unit.h"

#include <stdio.h>

static void grows_and_stays_terminated(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    struct tir_text text;
    tir_text_init(&text, &arena, 0);
    assert_str(tir_text_str(&text), "");
    for (int i = 0; i < 1000; i++) {
        tir_text_format(&text, "%03d", i);
        tir_text_char(&text, ',');
        assert_int_equal(strlen(text.ptr), text.len);
    }
    assert_int_equal(text.len, 4000);
    assert_memory_equal(text.ptr + 3992, "998,999,", 8);
    assert_false(text.truncated);
    tir_arena_finish(&arena);
}

static void one_format_may_be_longer_than_the_buffer(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    struct tir_text text;
    tir_text_init(&text, &arena, 0);
    tir_text_add(&text, STR("<"));
    tir_text_format(&text, "%0500d", 7);
    tir_text_add(&text, STR(">"));
    assert_int_equal(text.len, 502);
    assert_int_equal(text.ptr[0], '<');
    assert_memory_equal(text.ptr + 499, "07>", 4);
    tir_arena_finish(&arena);
}

static void integers_are_decimal(void **state)
{
    (void)state;
    static const int64_t values[] = {0, 7, 10, -1, -90, INT64_MAX, INT64_MIN};
    struct tir_arena arena = unit_arena();
    for (size_t i = 0; i < TIR_COUNT_OF(values); i++) {
        char expected[32];
        struct tir_text text;
        snprintf(expected, sizeof expected, "%lld", (long long)values[i]);
        tir_text_init(&text, &arena, 0);
        tir_text_int(&text, values[i]);
        assert_str(tir_text_str(&text), expected);
    }
    tir_arena_finish(&arena);
}

static void text_past_the_maximum_is_dropped(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    for (size_t max = 1; max < 200; max++) {
        struct tir_text text;
        tir_text_init(&text, &arena, max);
        for (int i = 0; i < 25; i++)
            i % 2 ? tir_text_add(&text, STR("abcdefgh")) : tir_text_format(&text, "%08d", i);
        assert_int_equal(text.len, max);
        assert_int_equal(strlen(text.ptr), max);
        assert_true(text.truncated);
    }
    struct tir_text exact;
    tir_text_init(&exact, &arena, 3);
    tir_text_format(&exact, "%s", "abc");
    assert_false(exact.truncated);
    assert_str(tir_text_str(&exact), "abc");
    tir_arena_finish(&arena);
}

static void check_json(tir_str s, const char *expected)
{
    struct tir_arena arena = unit_arena();
    struct tir_text text;
    tir_text_init(&text, &arena, 0);
    tir_text_json(&text, s);
    assert_str(tir_text_str(&text), expected);
    tir_arena_finish(&arena);
}

static void json_strings_are_escaped(void **state)
{
    (void)state;
    check_json(STR(""), "\"\"");
    check_json(STR("a \"b\" \\c/"), "\"a \\\"b\\\" \\\\c/\"");
    check_json(STR("line\nnext\ttab\0nul\x7f"), "\"line\\nnext\\u0009tab\\u0000nul\\u007f\"");
    check_json(STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
               "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    check_json(STR("\xff\xc3"), "\"\\ufffd\\ufffd\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_stays_terminated),
        cmocka_unit_test(integers_are_decimal),
        cmocka_unit_test(one_format_may_be_longer_than_the_buffer),
        cmocka_unit_test(text_past_the_maximum_is_dropped),
        cmocka_unit_test(json_strings_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
