// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vectors: pushing across growth, popping, iterating, the empty vector.

#include "unit.h"

#include "base/vec.h"

struct pair {
    int index;
    char pad[11];
};

static void pushes_survive_growth(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    VEC(struct pair) pairs = {0};
    for (int i = 0; i < 5000; i++) {
        struct pair pair = {.index = i, .pad = "abc"};
        vec_push(&arena, &pairs, pair);
        assert_int_equal(vec_last(&pairs).index, i);
    }
    assert_int_equal(pairs.len, 5000);
    int expected = 0;
    vec_foreach(struct pair, it, &pairs) {
        assert_int_equal(it->index, expected++);
        assert_string_equal(it->pad, "abc");
    }
    assert_int_equal(expected, 5000);
    tir_arena_finish(&arena);
}

static void pop_returns_the_last(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    VEC(int) stack = {0};
    for (int i = 0; i < 20; i++)
        vec_push(&arena, &stack, i * i);
    for (int i = 20; i-- > 0;)
        assert_int_equal(vec_pop(&stack), i * i);
    assert_int_equal(stack.len, 0);
    tir_arena_finish(&arena);
}

static void the_empty_vector_has_no_elements(void **state)
{
    (void)state;
    VEC(int) none = {0};
    vec_foreach(int, it, &none)
        fail();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pushes_survive_growth),
        cmocka_unit_test(pop_returns_the_last),
        cmocka_unit_test(the_empty_vector_has_no_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
