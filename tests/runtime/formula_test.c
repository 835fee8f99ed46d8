// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Formulas: every operation, and arithmetic that does not fit.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <string.h>

#include "sample.h"

static tir_status eval2(tir_formula_code code, int64_t a, int64_t b, int64_t *out)
{
    const tir_formula_op ops[] = {DIM(0), SCALAR(1), {code, 0}};
    const int64_t dims[] = {a}, params[] = {0, b};
    tir_formula formula = {ops, 3};
    return tir_formula_eval(&formula, dims, params, out, NULL);
}

static void test_values(void **state)
{
    (void)state;
    static const struct {
        tir_formula_code code;
        int64_t a, b, result;
    } cases[] = {
        {TIR_FORMULA_ADD, 2, 3, 5},
        {TIR_FORMULA_SUB, 2, 3, -1},
        {TIR_FORMULA_MUL, -2, 3, -6},
        {TIR_FORMULA_DIV, -7, 2, -3},
        {TIR_FORMULA_MOD, -7, 2, -1},
        {TIR_FORMULA_CEILDIV, 7, 2, 4},
        {TIR_FORMULA_CEILDIV, 8, 2, 4},
        {TIR_FORMULA_CEILDIV, 0, 2, 0},
        {TIR_FORMULA_CEILDIV, -7, 2, -3},
        {TIR_FORMULA_CEILDIV, -7, -2, 4},
        {TIR_FORMULA_CEILDIV, INT64_MAX, 2, INT64_MAX / 2 + 1},
        {TIR_FORMULA_MIN, 4, 9, 4},
        {TIR_FORMULA_MAX, 4, 9, 9},
        {TIR_FORMULA_EQ, 4, 4, 1},
        {TIR_FORMULA_NE, 4, 4, 0},
        {TIR_FORMULA_LT, 4, 4, 0},
        {TIR_FORMULA_LE, 4, 4, 1},
        {TIR_FORMULA_GT, 5, 4, 1},
        {TIR_FORMULA_GE, 3, 4, 0},
        {TIR_FORMULA_AND, 3, 4, 1},
        {TIR_FORMULA_AND, 3, 0, 0},
        {TIR_FORMULA_OR, 0, 4, 1},
        {TIR_FORMULA_OR, 0, 0, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t result = 12345;
        assert_int_equal(eval2(cases[i].code, cases[i].a, cases[i].b, &result), TIR_OK);
        assert_true(result == cases[i].result);
    }
}

static void test_not(void **state)
{
    (void)state;
    const tir_formula_op ops[] = {CONST(7), DO(NOT), DO(NOT)};
    tir_formula formula = {ops, 3};
    int64_t result = 0;
    assert_int_equal(tir_formula_eval(&formula, NULL, NULL, &result, NULL), TIR_OK);
    assert_true(result == 1);
}

// A tensor's alignment stands where a scalar's value would.
static void test_align(void **state)
{
    (void)state;
    tir_formula_op ops[] = {{TIR_FORMULA_ALIGN, 1}, CONST(8), DO(GE)};
    tir_formula formula = {ops, 3};
    int64_t values[] = {0, TIR_ALIGNMENTS(16, 32)}, result = 0;
    assert_int_equal(tir_formula_eval(&formula, NULL, values, &result, NULL), TIR_OK);
    assert_true(result == 1);
    values[1] = TIR_ALIGNMENTS(4, 16);
    assert_int_equal(tir_formula_eval(&formula, NULL, values, &result, NULL), TIR_OK);
    assert_true(result == 0);
    ops[0].code = TIR_FORMULA_BEGIN;
    assert_int_equal(tir_formula_eval(&formula, NULL, values, &result, NULL), TIR_OK);
    assert_true(result == 1);
    values[1] = TIR_ALIGNMENTS(0, 0);
    assert_int_equal(tir_formula_eval(&formula, NULL, values, &result, NULL), TIR_OK);
    assert_true(result == 0);
}

// A cell holds a value beside the stack, until it is set again.
static void test_cells(void **state)
{
    (void)state;
    const tir_formula_op ops[] = {CONST(3),
                                  {TIR_FORMULA_SET, 1},
                                  CONST(7),
                                  {TIR_FORMULA_SET, 0},
                                  {TIR_FORMULA_GET, 0},
                                  {TIR_FORMULA_GET, 1},
                                  DO(SUB),
                                  {TIR_FORMULA_SET, 1},
                                  {TIR_FORMULA_GET, 1},
                                  {TIR_FORMULA_GET, 1},
                                  DO(MUL)};
    tir_formula formula = {ops, COUNT(ops)};
    int64_t result = 0;
    assert_int_equal(tir_formula_eval(&formula, NULL, NULL, &result, NULL), TIR_OK);
    assert_true(result == 16);
}

static void test_overflow(void **state)
{
    (void)state;
    static const struct {
        tir_formula_code code;
        int64_t a, b;
    } cases[] = {
        {TIR_FORMULA_ADD, INT64_MAX, 1},
        {TIR_FORMULA_SUB, INT64_MIN, 1},
        {TIR_FORMULA_MUL, INT64_MAX, 2},
        {TIR_FORMULA_DIV, 1, 0},
        {TIR_FORMULA_MOD, 1, 0},
        {TIR_FORMULA_CEILDIV, 1, 0},
        {TIR_FORMULA_DIV, INT64_MIN, -1},
        {TIR_FORMULA_MOD, INT64_MIN, -1},
        {TIR_FORMULA_CEILDIV, INT64_MIN, -1},
    };
    int64_t result;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(eval2(cases[i].code, cases[i].a, cases[i].b, &result), TIR_ERR_INVALID);
    const tir_formula_op ops[] = {CONST(5), CONST(0), DO(DIV)};
    tir_formula formula = {ops, 3};
    tir_error error;
    assert_int_equal(tir_formula_eval(&formula, NULL, NULL, &result, &error), TIR_ERR_INVALID);
    assert_non_null(strstr(error.message, "5 and 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),   cmocka_unit_test(test_not),
        cmocka_unit_test(test_align),    cmocka_unit_test(test_cells),
        cmocka_unit_test(test_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
