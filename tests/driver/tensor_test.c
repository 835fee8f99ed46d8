// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Host tensors: strides, specifications and contents.

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "arena.h"
#include "driver/value/number.h"
#include "driver/value/tensor.h"

static struct tir_tensor_spec parse(const char *text)
{
    struct tir_tensor_spec spec;
    tir_error error;
    if (!tir_tensor_spec_parse(&arena, text, TIR_F32, &spec, &error))
        fail_msg("%s: %s", text, error.message);
    return spec;
}

static void test_specs(void **state)
{
    (void)state;
    struct tir_tensor_spec s = parse("randn");
    assert_true(s.fill == TIR_FILL_RANDN && s.a == 0 && s.b == 1);
    s = parse("rand:-2:3.5,pad=7,offset=1");
    assert_true(s.fill == TIR_FILL_RAND && s.a == -2 && s.b == 3.5 && s.pad == 7 && s.offset == 1);
    s = parse("randint:-3:0x10,save=out.npy");
    assert_true(s.fill == TIR_FILL_RANDINT && s.lo == -3 && s.hi == 16);
    assert_string_equal(s.save, "out.npy");
    s = parse("full:inf");
    assert_true(s.fill == TIR_FILL_CONSTANT && isinf(s.a));
    s = parse("@a=b.npy,strides=0x1");
    assert_true(s.fill == TIR_FILL_FILE && s.stride_count == 2 && s.strides[1] == 1);
    assert_string_equal(s.file, "a=b.npy");
    s = parse("pad=3");
    assert_true(s.fill == TIR_FILL_DEFAULT && s.pad == 3);
    s = parse("ones");
    assert_true(s.fill == TIR_FILL_CONSTANT && s.a == 1);
}

static void test_bad_specs(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",           "random",    "randn,rand",   "full",
        "full:",      "full:x",    "full:1:2",     "zeros:1",
        "randint",    "randint:1", "randint:2:1",  "randint:1:2:3",
        "rand:1:2:3", "@",         "pad=-1",       "pad=",
        "pad=x",      "strides=",  "strides=1x-1", "strides=1x1x1x1x1x1x1",
        "save=",      "colour=3",  "randn,,zeros", "rand:1:0",
        "rand:nan:1",
    };
    for (size_t i = 0; i < TIR_COUNT_OF(texts); i++) {
        struct tir_tensor_spec spec;
        tir_error error = {0};
        if (tir_tensor_spec_parse(&arena, texts[i], TIR_F32, &spec, &error))
            fail_msg("\"%s\" was accepted", texts[i]);
        assert_true(error.message[0]);
    }
}

static void test_what_is_needed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        enum tir_elem elem;
    } cases[] = {
        {"pad=-1", "pad=-1: a whole number from 0 is needed", TIR_F32},
        {"strides=", "strides=: elements from 0, one per dimension, with x between", TIR_F32},
        {"save=", "save=: the name of a file is needed", TIR_F32},
        {"rand:1:0", "rand: the range is empty", TIR_F32},
        {"randint:2:1", "randint: the range is empty", TIR_F32},
        {"full:1e39", "full: \"1e39\" is not a value of f32", TIR_F32},
        {"full:65520", "full: \"65520\" is not a value of f16", TIR_F16},
        {"full:1.5", "full: \"1.5\" is not a value of i32", TIR_I32},
        {"full:128", "full: \"128\" is not a value of i8", TIR_I8},
        {"full:-1", "full: \"-1\" is not a value of u64", TIR_U64},
        {"full:nan", "full: \"nan\" is not a value of i8", TIR_I8},
        {"full:2", "full: \"2\" is not a value of bool", TIR_BOOL},
        {"rand:0:1e39", "rand: \"1e39\" is not a value of f32", TIR_F32},
        {"randn:-1e39", "randn: \"-1e39\" is not a value of f32", TIR_F32},
        {"randint:0:65520", "randint: \"65520\" is not a value of f16", TIR_F16},
        {"randint:-1:1", "randint: \"-1\" is not a value of u8", TIR_U8},
    };
    for (size_t i = 0; i < TIR_COUNT_OF(cases); i++) {
        struct tir_tensor_spec spec;
        tir_error error = {0};
        assert_false(tir_tensor_spec_parse(&arena, cases[i].text, cases[i].elem, &spec, &error));
        assert_string_equal(error.message, cases[i].message);
    }
}

// Numbers at the limits of types, and those that casts round.
static void test_what_fits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum tir_elem elem;
    } cases[] = {
        {"full:3.4e38", TIR_F32},     {"full:inf", TIR_F16},     {"full:65519", TIR_F16},
        {"full:-128", TIR_I8},        {"full:1e2", TIR_I8},      {"full:1", TIR_BOOL},
        {"full:1000", TIR_E2M1},      {"rand:0.5:1000", TIR_I8}, {"randint:-128:127", TIR_I8},
        {"randint:0:65519", TIR_F16}, {"full:1.8e19", TIR_U64},  {"ones", TIR_BOOL},
    };
    for (size_t i = 0; i < TIR_COUNT_OF(cases); i++) {
        struct tir_tensor_spec spec;
        tir_error error = {0};
        if (!tir_tensor_spec_parse(&arena, cases[i].text, cases[i].elem, &spec, &error))
            fail_msg("%s", error.message);
    }
}

// Sizes beside a 0 may be any.
static void test_empty(void **state)
{
    (void)state;
    const int64_t large = INT64_C(1) << 40;
    const int64_t shapes[][3] = {{large, large, 0}, {large, 0, large}, {0, large, large}};
    for (size_t i = 0; i < TIR_COUNT_OF(shapes); i++) {
        tir_error error = {0};
        struct tir_tensor t;
        if (!tir_tensor_make(&t, TIR_F32, 3, shapes[i], NULL, 0, 0, &error))
            fail_msg("%s", error.message);
        assert_int_equal(t.count, 0);
        tir_tensor_free(&t);
    }
}

static void test_strides(void **state)
{
    (void)state;
    tir_error error;
    struct tir_tensor t;
    assert_true(tir_tensor_make(&t, TIR_F32, 3, (int64_t[]){2, 3, 5}, NULL, 2, 4, &error));
    assert_true(t.strides[2] == 1 && t.strides[1] == 7 && t.strides[0] == 21);
    assert_int_equal(t.count, 30);
    assert_int_equal(t.size, (4 + 21 + 14 + 4 + 1) * 4);
    struct tir_cursor c = tir_cursor_first(&t);
    for (int64_t i = 0; i < t.count; i++, tir_cursor_next(&c)) {
        int64_t at = 4 + i / 15 * 21 + i / 5 % 3 * 7 + i % 5;
        assert_int_equal(c.at - t.bytes, at * 4);
    }
    tir_tensor_free(&t);

    assert_true(tir_tensor_make(&t, TIR_F32, 2, (int64_t[]){1000, 0}, NULL, 2, 4, &error));
    assert_true(t.count == 0 && t.size == 0);
    tir_tensor_free(&t);
    assert_true(tir_tensor_make(&t, TIR_I8, 0, NULL, NULL, 0, 0, &error));
    assert_true(t.count == 1 && t.size == 1);
    tir_tensor_free(&t);
}

static void test_too_large(void **state)
{
    (void)state;
    tir_error error;
    struct tir_tensor t;
    const int64_t big = INT64_C(1) << 40;
    assert_false(tir_tensor_make(&t, TIR_F32, 2, (int64_t[]){big, big}, NULL, 0, 0, &error));
    assert_false(tir_tensor_make(&t, TIR_F32, 1, (int64_t[]){INT64_MAX}, NULL, 0, 0, &error));
    assert_false(tir_tensor_make(&t, TIR_F32, 2, (int64_t[]){2, 2}, NULL, INT64_MAX, 0, &error));
    assert_false(tir_tensor_make(&t, TIR_F32, 2, (int64_t[]){2, 2}, NULL, 0, INT64_MAX, &error));
    assert_false(tir_tensor_make(&t, TIR_F32, 2, (int64_t[]){3, 2}, (int64_t[]){INT64_MAX / 2, 1},
                                 0, 0, &error));
    assert_false(tir_tensor_make(&t, TIR_E2M1, 1, (int64_t[]){2}, NULL, 0, 0, &error));
}

static void test_contents(void **state)
{
    (void)state;
    tir_error error;
    struct tir_tensor t, padded;
    struct tir_tensor_spec spec = parse("randn");
    assert_true(tir_tensor_make(&t, TIR_F32, 2, (int64_t[]){5, 7}, NULL, 0, 0, &error));
    assert_true(tir_tensor_make(&padded, TIR_F32, 2, (int64_t[]){5, 7}, NULL, 3, 1, &error));
    tir_tensor_fill(&t, &spec, 3);
    tir_tensor_fill(&padded, &spec, 3);
    struct tir_cursor a = tir_cursor_first(&t), b = tir_cursor_first(&padded);
    for (int64_t i = 0; i < t.count; i++, tir_cursor_next(&a), tir_cursor_next(&b))
        assert_memory_equal(a.at, b.at, 4);
    // Gaps keep their pattern.
    for (int i = 0; i < 4; i++)
        assert_int_equal(padded.bytes[i], 0xFF);
    assert_int_equal(padded.bytes[4 * (1 + 7)], 0xFF);
    tir_tensor_free(&t);
    tir_tensor_free(&padded);

    assert_true(tir_tensor_make(&t, TIR_BF16, 1, (int64_t[]){3}, NULL, 0, 0, &error));
    spec = parse("full:-1.5");
    tir_tensor_fill(&t, &spec, 0);
    assert_memory_equal(t.bytes, "\xc0\xbf\xc0\xbf\xc0\xbf", 6);
    tir_tensor_free(&t);
    assert_true(tir_tensor_make(&t, TIR_I16, 1, (int64_t[]){3}, NULL, 0, 0, &error));
    spec = parse("arange");
    tir_tensor_fill(&t, &spec, 0);
    assert_memory_equal(t.bytes, "\0\0\1\0\2\0", 6);
    tir_tensor_free(&t);
}

// Integers from few are looked up where there are many elements: a tensor begins as a small one.
static void test_few_integers(void **state)
{
    (void)state;
    enum { SMALL = 200, LARGE = 70000 };
    static const char *const specs[] = {
        "randint:-3:3",
        "randint:5:5",
        "randint:0:255",
        "randint:-128:128",
        "randint:9223372036854775800:9223372036854775807",
    };
    static const enum tir_elem elems[] = {TIR_BOOL, TIR_I8,  TIR_U16,  TIR_I64, TIR_E4M3,
                                          TIR_E5M2, TIR_F16, TIR_BF16, TIR_F32, TIR_F64};
    for (size_t i = 0; i < TIR_COUNT_OF(specs) * TIR_COUNT_OF(elems); i++) {
        const enum tir_elem elem = elems[i % TIR_COUNT_OF(elems)];
        const struct tir_tensor_spec spec = parse(specs[i / TIR_COUNT_OF(elems)]);
        struct tir_tensor small, large;
        tir_error error;
        assert_true(tir_tensor_make(&small, elem, 1, (int64_t[]){SMALL}, NULL, 0, 0, &error));
        assert_true(tir_tensor_make(&large, elem, 1, (int64_t[]){LARGE}, NULL, 0, 0, &error));
        tir_tensor_fill(&small, &spec, i);
        tir_tensor_fill(&large, &spec, i);
        assert_memory_equal(small.bytes, large.bytes, SMALL * tir_elem_size(elem));
        tir_tensor_free(&small);
        tir_tensor_free(&large);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    int64_t i;
    uint64_t u;
    double f;
    assert_true(tir_parse_int(STR("-9223372036854775808"), &i) && i == INT64_MIN);
    assert_true(tir_parse_int(STR("9223372036854775807"), &i) && i == INT64_MAX);
    assert_true(tir_parse_int(STR("0x7f"), &i) && i == 127);
    assert_true(tir_parse_uint(STR("18446744073709551615"), &u) && u == UINT64_MAX);
    assert_true(tir_parse_float(STR("-1e-3"), &f) && f == -1e-3);
    static const char *const bad[] = {"",   "-",  "--1", "+1", " 1", "1 ", "9223372036854775808",
                                      "0x", "1x", "1.0"};
    for (size_t n = 0; n < TIR_COUNT_OF(bad); n++)
        if (tir_parse_int(tir_str_of(bad[n]), &i))
            fail_msg("\"%s\" was accepted", bad[n]);
    assert_false(tir_parse_float(STR(""), &f));
    assert_false(tir_parse_float(STR("1.0q"), &f));
    assert_false(tir_parse_float(STR(" 1"), &f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_specs),          cmocka_unit_test(test_bad_specs),
        cmocka_unit_test(test_what_is_needed), cmocka_unit_test(test_what_fits),
        cmocka_unit_test(test_empty),          cmocka_unit_test(test_strides),
        cmocka_unit_test(test_too_large),      cmocka_unit_test(test_contents),
        cmocka_unit_test(test_numbers),        cmocka_unit_test(test_few_integers),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
