// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checked arithmetic against 128-bit arithmetic, on values around every edge.

#include "unit.h"

__extension__ typedef __int128 wide;

static const int64_t edges[] = {
    INT64_MIN,  INT64_MIN + 1, INT64_MIN / 2,     -3037000500,   -2,        -1, 0, 1, 2, 3037000499,
    3037000500, INT64_MAX / 2, INT64_MAX / 2 + 1, INT64_MAX - 1, INT64_MAX,
};

static void check(bool (*op)(int64_t, int64_t, int64_t *), int64_t a, int64_t b, wide exact)
{
    int64_t out = 12345;
    bool fits = exact >= INT64_MIN && exact <= INT64_MAX;
    assert_int_equal(op(a, b, &out), fits);
    assert_true(out == (fits ? (int64_t)exact : 12345));
}

static void every_pair_of_edges(void **state)
{
    (void)state;
    for (size_t i = 0; i < TIR_COUNT_OF(edges); i++)
        for (size_t j = 0; j < TIR_COUNT_OF(edges); j++) {
            wide a = edges[i], b = edges[j];
            check(tir_add_checked, edges[i], edges[j], a + b);
            check(tir_sub_checked, edges[i], edges[j], a - b);
            check(tir_mul_checked, edges[i], edges[j], a * b);
        }
}

static void ceil_div_rounds_up(void **state)
{
    (void)state;
    assert_int_equal(tir_ceil_div(0, 4), 0);
    assert_int_equal(tir_ceil_div(1, 4), 1);
    assert_int_equal(tir_ceil_div(4, 4), 1);
    assert_int_equal(tir_ceil_div(5, 4), 2);
    assert_int_equal(tir_ceil_div(-5, 4), -1);
    assert_true(tir_ceil_div(INT64_MAX, 1) == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_edges),
        cmocka_unit_test(ceil_div_rounds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
