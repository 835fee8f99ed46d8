// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Views, edit distance and interned names.

#include "unit.h"

#include <stdio.h>

static void views_compare_by_bytes(void **state)
{
    (void)state;
    assert_true(tir_str_equal(STR("abc"), tir_str_of("abc")));
    assert_false(tir_str_equal(STR("abc"), STR("abd")));
    assert_false(tir_str_equal(STR("abc"), STR("abcd")));
    assert_true(tir_str_equal((tir_str){0}, STR("")));
    assert_true(tir_str_is((tir_str){"kernel x", 6}, "kernel"));
    assert_false(tir_str_is(STR("a\0b"), "a"));
}

static void copies_are_terminated(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    tir_str copy = tir_str_copy(&arena, (tir_str){"abcdef", 3});
    assert_int_equal(copy.len, 3);
    assert_string_equal(copy.ptr, "abc");
    assert_string_equal(tir_str_copy(&arena, (tir_str){0}).ptr, "");
    assert_str(tir_str_format(&arena, "%d-" STR_FMT, 12, STR_ARG(copy)), "12-abc");
    tir_arena_finish(&arena);
}

static void distance_counts_edits(void **state)
{
    (void)state;
    assert_int_equal(tir_str_distance(STR("acc"), STR("acc"), 3), 0);
    assert_int_equal(tir_str_distance(STR("acc"), STR("ac"), 3), 1);
    assert_int_equal(tir_str_distance(STR("rowmax"), STR("rowmix"), 3), 1);
    assert_int_equal(tir_str_distance(STR("flaot"), STR("float"), 3), 1); // neighbours swapped
    assert_int_equal(tir_str_distance(STR("kitten"), STR("sitting"), 5), 3);
    assert_int_equal(tir_str_distance(STR(""), STR("abc"), 5), 3);
    assert_int_equal(tir_str_distance(STR("abc"), STR(""), 5), 3);
}

static void distance_gives_up_beyond_the_limit(void **state)
{
    (void)state;
    assert_int_equal(tir_str_distance(STR("kitten"), STR("sitting"), 2), 3);
    assert_int_equal(tir_str_distance(STR("a"), STR("abcdefgh"), 2), 3);
    char longer[200];
    memset(longer, 'a', sizeof longer);
    tir_str a = {longer, sizeof longer}, b = {longer, sizeof longer - 1};
    assert_int_equal(tir_str_distance(a, b, 2), 3);
    assert_int_equal(tir_str_distance(a, a, 2), 0);
}

static void equal_text_is_the_same_pointer(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    struct tir_interner names = {.arena = &arena};
    const char *first[1000];
    char buffer[32];
    for (int i = 0; i < 1000; i++) {
        int n = snprintf(buffer, sizeof buffer, "name%d", i);
        first[i] = tir_intern(&names, (tir_str){buffer, (size_t)n});
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(buffer, sizeof buffer, "name%d", i);
        assert_ptr_equal(tir_intern_cstr(&names, buffer), first[i]);
        assert_string_equal(first[i], buffer);
    }
    assert_int_equal(names.count, 1000);
    tir_arena_finish(&arena);
}

static void interned_text_may_hold_any_byte(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    struct tir_interner names = {.arena = &arena};
    const char *a = tir_intern(&names, STR("x\0a")), *b = tir_intern(&names, STR("x\0b"));
    assert_ptr_not_equal(a, b);
    assert_ptr_not_equal(a, tir_intern(&names, STR("x")));
    assert_ptr_equal(a, tir_intern(&names, STR("x\0a")));
    assert_ptr_equal(tir_intern(&names, (tir_str){0}), tir_intern_cstr(&names, ""));
    tir_arena_finish(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_compare_by_bytes),
        cmocka_unit_test(copies_are_terminated),
        cmocka_unit_test(distance_counts_edits),
        cmocka_unit_test(distance_gives_up_beyond_the_limit),
        cmocka_unit_test(equal_text_is_the_same_pointer),
        cmocka_unit_test(interned_text_may_hold_any_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
