// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rounding, encoding, casts and elementwise arithmetic of every element type.

#include "unit.h"

#include "ir/number.h"

#include <math.h>
#include <stdlib.h>

static uint64_t seed = 1;

static uint64_t random_bits(void) // xorshift64
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static double float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return (double)x;
}

static void every_small_bit_pattern_survives(void **state)
{
    (void)state;
    for (uint32_t e = TIR_BOOL; e < TIR_MBARRIER; e++) {
        enum tir_elem elem = (enum tir_elem)e;
        uint32_t bits = tir_elem_width(e);
        if (bits > 16)
            continue;
        for (uint64_t pattern = 0; pattern < UINT64_C(1) << bits; pattern++) {
            union tir_number x = tir_number_decode(elem, pattern);
            uint64_t again = tir_number_encode(elem, x);
            if (elem == TIR_BOOL)
                assert_int_equal(again, pattern != 0);
            else
                assert_int_equal(again, pattern);
            if (tir_elem_is_float(elem) && !isnan(x.f) && !isinf(x.f))
                assert_true(tir_number_round(elem, x.f) == x.f);
        }
    }
}

static void f32_rounds_as_the_host_does(void **state)
{
    (void)state;
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = random_bits();
        double x;
        memcpy(&x, &bits, sizeof(x));
        if (i & 1) // near the range of f32, where subnormals and overflow are
            x = float_of((uint32_t)bits) * (1 + (double)(random_bits() % 1000) * 0x1p-30);
        double expected = (double)(float)x, got = tir_number_round(TIR_F32, x);
        assert_true(isnan(expected) ? isnan(got) : got == expected);
        float f = (float)x;
        uint32_t stored;
        memcpy(&stored, &f, sizeof(stored));
        if (!isnan(x)) {
            assert_int_equal(tir_number_encode(TIR_F32, (union tir_number){.f = got}), stored);
            assert_true(tir_number_decode(TIR_F32, stored).f == got);
        }
    }
}

static void ties_go_to_even_and_ranges_end(void **state)
{
    (void)state;
    static const struct {
        enum tir_elem elem;
        double from, to;
    } cases[] = {
        {TIR_F16, 2049, 2048},
        {TIR_F16, 2051, 2052},
        {TIR_F16, 65519, 65504},
        {TIR_F16, 65520, INFINITY},
        {TIR_F16, 0x1p-25, 0},
        {TIR_F16, 0x1.8p-25, 0x1p-24},
        {TIR_BF16, 257, 256},
        {TIR_BF16, 259, 260},
        {TIR_TF32, 2049, 2048},
        {TIR_E4M3, 448, 448},
        {TIR_E4M3, 465, 448},
        {TIR_E4M3, 1e9, 448},
        {TIR_E4M3, -INFINITY, -448},
        {TIR_E4M3, 17, 16},
        {TIR_E4M3, 0x1p-10, 0},
        {TIR_E5M2, 57344, 57344},
        {TIR_E5M2, 1e6, 57344},
        {TIR_E5M2, 9, 8},
        {TIR_E2M1, 5, 4},
        {TIR_E2M1, 100, 6},
        {TIR_E2M1, 0.25, 0},
        {TIR_UE8M0, 3, 4},
        {TIR_UE8M0, 4, 4},
        {TIR_UE8M0, 0, 0x1p-127},
        {TIR_F32, 0x1.000001p0, 1},
        {TIR_F32, 1e300, INFINITY},
        {TIR_F64, 0.1, 0.1},
    };
    for (size_t i = 0; i < TIR_COUNT_OF(cases); i++)
        assert_true(tir_number_round(cases[i].elem, cases[i].from) == cases[i].to);
    assert_true(isnan(tir_number_round(TIR_E4M3, (double)NAN)));
    assert_true(tir_number_round(TIR_E2M1, (double)NAN) == 6);
    assert_true(signbit(tir_number_round(TIR_F16, -0x1p-30)));
    assert_int_equal(tir_number_encode(TIR_E4M3, (union tir_number){.f = 448}), 0x7e);
    assert_int_equal(tir_number_encode(TIR_BF16, (union tir_number){.f = -2}), 0xc000);
}

// The positive numbers of each format in the order of their bits, as the OCP Microscaling Formats
// Specification 1.0 lists them: section 5.3.
static const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
static const double e3m2[] = {0,   0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375,
                              0.5, 0.625,  0.75,  0.875,  1,    1.25,   1.5,   1.75,
                              2,   2.5,    3,     3.5,    4,    5,      6,     7,
                              8,   10,     12,    14,     16,   20,     24,    28};
static const double e2m3[] = {
    0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1, 1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875,
    2, 2.25,  2.5,  2.75,  3,   3.25,  3.5,  3.75,  4, 4.5,   5,    5.5,   6,   6.5,   7,    7.5};

// Every pattern is its number, and what lies between two of them goes to the nearer one, halves to
// the even one.
static void check_format(enum tir_elem elem, const double *numbers, unsigned count)
{
    for (unsigned i = 0; i < 2 * count; i++) {
        const double sign = i < count ? 1 : -1, x = sign * numbers[i % count];
        const union tir_number n = tir_number_decode(elem, i);
        assert_true(n.f == x && !signbit(n.f) == (i < count));
        assert_int_equal(tir_number_encode(elem, n), i);
        assert_true(tir_number_round(elem, x) == x);
        if (i % count + 1 == count) {
            assert_true(tir_number_round(elem, 2 * x) == x);
            assert_true(tir_number_round(elem, sign * INFINITY) == x);
            continue;
        }
        const double next = sign * numbers[i % count + 1], half = (x + next) / 2;
        assert_true(tir_number_round(elem, half) == (i % 2 ? next : x));
        assert_true(tir_number_round(elem, half + (next - x) / 1024) == next);
        assert_true(tir_number_round(elem, half - (next - x) / 1024) == x);
    }
    assert_true(tir_number_round(elem, (double)NAN) == numbers[count - 1]);
}

static void formats_without_nan(void **state)
{
    (void)state;
    check_format(TIR_E2M1, e2m1, TIR_COUNT_OF(e2m1));
    check_format(TIR_E3M2, e3m2, TIR_COUNT_OF(e3m2));
    check_format(TIR_E2M3, e2m3, TIR_COUNT_OF(e2m3));
}

static void scales_without_sign(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 0x7f; i++) {
        const union tir_number n = tir_number_decode(TIR_UE4M3, i);
        assert_true(n.f == tir_number_decode(TIR_E4M3, i).f);
        assert_int_equal(tir_number_encode(TIR_UE4M3, n), i);
    }
    assert_true(isnan(tir_number_decode(TIR_UE4M3, 0x7f).f));
    assert_true(isnan(tir_number_round(TIR_UE4M3, -0x1p-60)));
    assert_true(tir_number_round(TIR_UE4M3, 1e9) == 448);
    assert_false(signbit(tir_number_round(TIR_UE4M3, -0.0)));
}

static int64_t cast_int(enum tir_elem to, double x)
{
    return tir_number_cast(to, TIR_F64, (union tir_number){.f = x}).i;
}

static double cast_float(enum tir_elem to, enum tir_elem from, int64_t x)
{
    return tir_number_cast(to, from, (union tir_number){.i = x}).f;
}

static void casts(void **state)
{
    (void)state;
    assert_int_equal(cast_int(TIR_I32, -2.9), -2);
    assert_int_equal(cast_int(TIR_I32, 1e10), INT32_MAX);
    assert_int_equal(cast_int(TIR_I8, -1e10), -128);
    assert_int_equal(cast_int(TIR_U8, -5), 0);
    assert_int_equal(cast_int(TIR_U8, 999), 255);
    assert_true(cast_int(TIR_I64, 1e30) == INT64_MAX && cast_int(TIR_I64, -1e30) == INT64_MIN);
    assert_true((uint64_t)cast_int(TIR_U64, 1e30) == UINT64_MAX);
    assert_true((uint64_t)cast_int(TIR_U64, 0x1p63) == UINT64_C(1) << 63);
    assert_int_equal(cast_int(TIR_I16, (double)NAN), 0);
    assert_int_equal(cast_int(TIR_BOOL, (double)NAN), 1);
    assert_int_equal(tir_number_cast(TIR_I8, TIR_I32, (union tir_number){.i = 200}).i, -56);
    assert_int_equal(tir_number_cast(TIR_U32, TIR_I32, (union tir_number){.i = -1}).i, UINT32_MAX);
    assert_true(cast_float(TIR_F64, TIR_U64, -1) == 0x1p64);
    assert_true(cast_float(TIR_F64, TIR_I64, -1) == -1);
    assert_true(cast_float(TIR_BF16, TIR_I32, 257) == 256);
    // Rounding to double first would make this a tie and lose the last bit.
    int64_t above_tie = (INT64_C(1) << 62) + (INT64_C(1) << 38) + 1;
    assert_true(cast_float(TIR_F32, TIR_I64, above_tie) == (double)(float)above_tie);
    assert_true((float)(double)above_tie != (float)above_tie);
    for (int i = 0; i < 100000; i++) {
        int64_t x = (int64_t)random_bits() >> random_bits() % 64;
        assert_true(cast_float(TIR_F32, TIR_I64, x) == (double)(float)x);
        assert_true(cast_float(TIR_F32, TIR_U64, x) == (double)(float)(uint64_t)x);
    }
}

static double apply3(enum tir_op op, enum tir_elem elem, double a, double b, double c)
{
    union tir_number in[] = {{.f = a}, {.f = b}, {.f = c}}, out;
    assert_true(tir_number_apply(op, elem, in, &out));
    return out.f;
}

static int64_t apply_ints(enum tir_op op, enum tir_elem elem, int64_t a, int64_t b)
{
    union tir_number in[] = {{.i = a}, {.i = b}}, out;
    assert_true(tir_number_apply(op, elem, in, &out));
    return out.i;
}

static void f32_arithmetic_matches_the_host(void **state)
{
    (void)state;
    for (int i = 0; i < 100000; i++) {
        uint64_t r = random_bits(), s = random_bits();
        double a = float_of((uint32_t)r), b = float_of((uint32_t)(r >> 32)),
               c = float_of((uint32_t)s);
        if (i & 1) { // exponents close together, so that the sum cancels
            a = float_of(0x3f800000 | ((uint32_t)r & 0x7fffff));
            b = float_of(0x3f800000 | ((uint32_t)(r >> 32) & 0x7fffff));
            c = -float_of(0x3f800000 | ((uint32_t)s & 0x7fffff)) * ldexp(1, (int)(s >> 32) % 40);
        }
        float fa = (float)a, fb = (float)b, fc = (float)c;
        const double expected[] = {(double)(fa + fb), (double)(fa * fb), (double)(fa / fb),
                                   (double)fmaf(fa, fb, fc)};
        const enum tir_op ops[] = {TIR_OP_ADD, TIR_OP_MUL, TIR_OP_DIV, TIR_OP_FMA};
        for (int o = 0; o < 4; o++) {
            double got = apply3(ops[o], TIR_F32, a, b, c);
            assert_true(isnan(expected[o]) ? isnan(got) : got == expected[o]);
        }
    }
}

static void integer_arithmetic_wraps_and_never_traps(void **state)
{
    (void)state;
    assert_int_equal(apply_ints(TIR_OP_ADD, TIR_I8, 127, 1), -128);
    assert_int_equal(apply_ints(TIR_OP_MUL, TIR_U16, 65535, 65535), 1);
    assert_true(apply_ints(TIR_OP_MUL, TIR_I64, INT64_MAX, 2) == -2);
    assert_true(apply_ints(TIR_OP_DIV, TIR_I64, INT64_MIN, -1) == INT64_MIN);
    assert_int_equal(apply_ints(TIR_OP_REM, TIR_I64, INT64_MIN, -1), 0);
    assert_int_equal(apply_ints(TIR_OP_DIV, TIR_I32, 7, 0), 0);
    assert_int_equal(apply_ints(TIR_OP_DIV, TIR_I32, -7, 2), -3);
    assert_int_equal(apply_ints(TIR_OP_REM, TIR_I32, -7, 2), -1);
    assert_true((uint64_t)apply_ints(TIR_OP_DIV, TIR_U64, -1, 2) == UINT64_MAX / 2);
    assert_int_equal(apply_ints(TIR_OP_CEILDIV, TIR_I64, 65, 64), 2);
    assert_int_equal(apply_ints(TIR_OP_CEILDIV, TIR_I64, 64, 64), 1);
    assert_int_equal(apply_ints(TIR_OP_CEILDIV, TIR_I64, 0, 64), 0);
    assert_int_equal(apply_ints(TIR_OP_SHL, TIR_I32, 1, 32), 0);
    assert_int_equal(apply_ints(TIR_OP_SHL, TIR_I32, 1, 31), INT32_MIN);
    assert_int_equal(apply_ints(TIR_OP_SHR, TIR_I32, -8, 1), -4);
    assert_int_equal(apply_ints(TIR_OP_SHR, TIR_I32, -8, 99), -1);
    assert_int_equal(apply_ints(TIR_OP_SHR, TIR_U32, 8, 99), 0);
    assert_int_equal(apply_ints(TIR_OP_NOT, TIR_U8, 1, 0), 254);
    assert_int_equal(apply_ints(TIR_OP_NOT, TIR_BOOL, 1, 0), 0);
    assert_true(apply_ints(TIR_OP_MAX, TIR_U64, -1, 1) == -1);
    assert_int_equal(apply_ints(TIR_OP_LT, TIR_U64, -1, 1), 0);
    assert_int_equal(apply_ints(TIR_OP_LT, TIR_I64, -1, 1), 1);
}

static void nan_and_zero_signs(void **state)
{
    (void)state;
    assert_true(isnan(apply3(TIR_OP_MIN, TIR_F32, (double)NAN, 1, 0)));
    assert_true(isnan(apply3(TIR_OP_MAX, TIR_F32, 1, (double)NAN, 0)));
    assert_true(signbit(apply3(TIR_OP_MIN, TIR_F32, 0, -0.0, 0)));
    assert_false(signbit(apply3(TIR_OP_MAX, TIR_F32, -0.0, 0, 0)));
    assert_true(apply3(TIR_OP_ROUND, TIR_F32, 2.5, 0, 0) == 2);
    union tir_number in[] = {{.f = (double)NAN}, {.f = (double)NAN}}, out;
    assert_true(tir_number_apply(TIR_OP_EQ, TIR_F32, in, &out) && out.i == 0);
    assert_true(tir_number_apply(TIR_OP_NE, TIR_F32, in, &out) && out.i == 1);
    assert_true(tir_number_apply(TIR_OP_GE, TIR_F32, in, &out) && out.i == 0);
    assert_false(tir_number_apply(TIR_OP_SCAN, TIR_F32, in, &out));
    assert_false(tir_number_apply(TIR_OP_LOAD, TIR_F32, in, &out));
}

static void text_is_shortest_and_comes_back(void **state)
{
    (void)state;
    static const struct {
        enum tir_elem elem;
        double x;
        const char *text;
    } cases[] = {
        {TIR_F32, 0.1, "0.1"},      {TIR_F64, 0.1, "0.1"},        {TIR_F32, -0.0, "-0.0"},
        {TIR_F32, INFINITY, "inf"}, {TIR_F32, -INFINITY, "-inf"}, {TIR_BF16, 0.1, "0.1"},
        {TIR_F32, 1e30, "1e+30"},   {TIR_F32, 128, "128"},        {TIR_F16, 65504, "65504"}};
    struct tir_arena arena = unit_arena();
    for (size_t i = 0; i < TIR_COUNT_OF(cases); i++) {
        struct tir_text text;
        tir_text_init(&text, &arena, 0);
        tir_number_print(&text, cases[i].elem,
                         (union tir_number){.f = tir_number_round(cases[i].elem, cases[i].x)});
        assert_str(tir_text_str(&text), cases[i].text);
    }
    for (int i = 0; i < 2000; i++) {
        double x = float_of((uint32_t)random_bits());
        struct tir_text text;
        tir_text_init(&text, &arena, 0);
        tir_number_print(&text, TIR_F32, (union tir_number){.f = x});
        double back = tir_number_round(TIR_F32, strtod(text.ptr, NULL));
        assert_true(isnan(x) ? isnan(back) : back == x);
    }
    tir_arena_finish(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_without_nan),
        cmocka_unit_test(scales_without_sign),
        cmocka_unit_test(every_small_bit_pattern_survives),
        cmocka_unit_test(f32_rounds_as_the_host_does),
        cmocka_unit_test(ties_go_to_even_and_ranges_end),
        cmocka_unit_test(casts),
        cmocka_unit_test(f32_arithmetic_matches_the_host),
        cmocka_unit_test(integer_arithmetic_wraps_and_never_traps),
        cmocka_unit_test(nan_and_zero_signs),
        cmocka_unit_test(text_is_shortest_and_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
