// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions to and from packed values of 8 bits and fewer, against a search over all codes.
//
// No GPU at hand runs the formats of 6 and 4 bits, so the expected result is found here the long
// way: among all codes of a format, the one nearest to the input, even mantissa first.

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "rig.h"

enum { LANES = 32, ROUNDS = 24 };

struct format {
    const char *name; // of the packed type of two
    int exponent, mantissa;
    bool has_nan; // one code at the top
};

static const struct format formats[] = {
    {"e4m3x2", 4, 3, true},
    {"e3m2x2", 3, 2, false},
    {"e2m3x2", 2, 3, false},
    {"e2m1x2", 2, 1, false},
};

static void each(const char *body, uint64_t (*src)[4], uint32_t lanes, uint64_t *out)
{
    rig_each(body, (const uint64_t(*)[4])src, lanes, out);
}

static double value_of(const struct format *f, uint32_t code)
{
    const int bits = f->exponent + f->mantissa, bias = (1 << (f->exponent - 1)) - 1;
    const uint32_t magnitude = code & ((1u << bits) - 1);
    const int e = (int)(magnitude >> f->mantissa);
    const double m = magnitude & ((1u << f->mantissa) - 1);
    const double x =
        e ? ldexp(1 + m / (1 << f->mantissa), e - bias) : ldexp(m / (1 << f->mantissa), 1 - bias);
    return code >> bits ? -x : x;
}

static uint32_t largest(const struct format *f)
{
    return (1u << (f->exponent + f->mantissa)) - 1 - f->has_nan;
}

// The code of x, saturating.
static uint32_t nearest(const struct format *f, float x)
{
    const uint32_t sign = signbit(x) ? 1u << (f->exponent + f->mantissa) : 0;
    if (x != x)
        return f->has_nan ? largest(f) + 1 : largest(f);
    if (fabs((double)x) >= value_of(f, largest(f)))
        return largest(f) | sign;
    uint32_t best = 0;
    for (uint32_t code = 1; code <= largest(f); code++) {
        const double was = fabs(fabs((double)x) - value_of(f, best));
        const double is = fabs(fabs((double)x) - value_of(f, code));
        if (is < was || (is == was && code % 2 == 0))
            best = code;
    }
    return best | sign;
}

static float number(uint64_t *seed, const struct format *f, int i)
{
    static const float edges[] = {0,        -0.0f, 1,   -1,    0.25f,   1e-20f, 448,       464,
                                  INFINITY, -NAN,  NAN, 6,     -7.5f,   28,     -INFINITY, 0.125f,
                                  30,       480,   5,   1e20f, 0.0625f, 2.5f,   0.875f,    1.75f};
    const uint64_t r = rig_random(seed);
    if (i < (int)(sizeof edges / sizeof *edges))
        return edges[i];
    if (r % 3 == 0) { // half way between two codes, or nearly
        const uint32_t code = (uint32_t)(r >> 8) % largest(f);
        const double mid = (value_of(f, code) + value_of(f, code + 1)) / 2;
        return (float)(r >> 40 & 1 ? mid : mid * (1 + 1e-6 * ((double)(r >> 41 & 2) - 1)));
    }
    return (float)((double)(int64_t)r * 0x1p-63) * (float)(1 << (r & 9));
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

static void narrows(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        const struct format *f = &formats[k];
        const uint32_t slot = f->exponent + f->mantissa < 4 ? 4 : 8;
        char body[256];
        snprintf(
            body, sizeof body,
            "cvt.rn.satfinite.%s.f32 %%h4, %%f0, %%f1; cvt.rn.satfinite.relu.%s.f32 %%h5, %%f0,"
            "%%f1; mov.b32 %%b4, {%%h4, %%h5}; cvt.u64.u32 %%out, %%b4;",
            f->name, f->name);
        for (int round = 0; round < ROUNDS; round++) {
            uint64_t src[LANES][4] = {{0}}, out[LANES];
            float x[LANES][2];
            for (int i = 0; i < LANES; i++)
                for (int j = 0; j < 2; j++) {
                    x[i][j] = number(&seed, f, round ? LANES : (i + j * 7) % LANES);
                    src[i][j] = bits_of(x[i][j]);
                }
            each(body, src, LANES, out);
            for (int i = 0; i < LANES; i++) {
                uint32_t want[2] = {0, 0};
                for (int j = 0; j < 2; j++) {
                    const float y = x[i][j];
                    want[0] |= nearest(f, y) << (j ? 0 : slot);
                    want[1] |= nearest(f, y == y && signbit(y) ? 0 : y) << (j ? 0 : slot);
                }
                if (out[i] != (want[1] << 16 | want[0]))
                    fail_msg("%s of %g, %g: %llx, not %x %x", f->name, (double)x[i][0],
                             (double)x[i][1], (unsigned long long)out[i], want[1], want[0]);
            }
        }
    }
}

// Every code, through f16x2.
static void widens(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        const struct format *f = &formats[k];
        const uint32_t slot = f->exponent + f->mantissa < 4 ? 4 : 8;
        const uint32_t codes = 2u << (f->exponent + f->mantissa);
        char body[256];
        snprintf(body, sizeof body,
                 "cvt.rn.f16x2.%s %%b4, %%h0; mov.b32 {%%h4, %%h5}, %%b4; cvt.f32.f16 %%f4, %%h4;"
                 "cvt.f32.f16 %%f5, %%h5; mov.b32 %%b5, %%f4; mov.b32 %%b6, %%f5;"
                 "mov.b64 %%out, {%%b5, %%b6};",
                 f->name);
        for (uint32_t first = 0; first < codes; first += LANES) {
            uint64_t src[LANES][4] = {{0}}, out[LANES];
            for (uint32_t i = 0; i < LANES; i++)
                src[i][0] = ((first + i) % codes) << slot | (codes - 1 - (first + i) % codes);
            each(body, src, LANES, out);
            for (uint32_t i = 0; i < LANES; i++)
                for (int j = 0; j < 2; j++) {
                    const uint32_t code = (uint32_t)(src[i][0] >> (j ? slot : 0)) & (codes - 1);
                    const uint32_t got = (uint32_t)(out[i] >> 32 * j);
                    if (f->has_nan && (code & (codes / 2 - 1)) == codes / 2 - 1)
                        assert_true((got & 0x7fffffff) > 0x7f800000);
                    else
                        assert_int_equal(got, bits_of((float)value_of(f, code)));
                }
        }
    }
}

// Powers of two: rounded towards zero and up, and back.
static void scales(void **state)
{
    (void)state;
    static const struct {
        uint32_t from;
        uint8_t down, up, down_finite;
    } rows[] = {
        {0x3f800000, 127, 127, 127},
        {0x3f800001, 127, 128, 127},
        {0xbfffffff, 127, 128, 127},
        {0x40000000, 128, 128, 128},
        {0, 0, 0, 0},
        {0x00000001, 0, 0, 0},
        {0x00400000, 0, 0, 0},
        {0x00400001, 0, 1, 0},
        {0x00800000, 1, 1, 1},
        {0x7f000000, 254, 254, 254},
        {0x7f7fffff, 254, 255, 254},
        {0x7f800000, 255, 255, 254},
        {0x7fc00000, 255, 255, 255},
        {0x00200000, 0, 0, 0},
    };
    uint64_t src[LANES][4] = {{0}}, out[LANES];
    enum { N = sizeof rows / sizeof *rows };
    for (int i = 0; i < N; i++)
        src[i][0] = src[i][1] = rows[i].from;
    each("cvt.rz.ue8m0x2.f32 %h4, %f0, %f1; cvt.rp.ue8m0x2.f32 %h5, %f0, %f1;"
         "cvt.rz.satfinite.ue8m0x2.f32 %h6, %f0, %f1; mov.b64 %out, {%h4, %h5, %h6, %h6};",
         src, N, out);
    for (int i = 0; i < N; i++) {
        assert_int_equal(out[i] & 0xffff, rows[i].down * 0x101);
        assert_int_equal(out[i] >> 16 & 0xffff, rows[i].up * 0x101);
        assert_int_equal(out[i] >> 32 & 0xffff, rows[i].down_finite * 0x101);
    }
    src[0][0] = 0x00ff;
    src[1][0] = 0x7f80;
    each("cvt.rn.bf16x2.ue8m0x2 %b4, %h0; cvt.u64.u32 %out, %b4;", src, 2, out);
    assert_int_equal(out[0], 0x00407fff);
    assert_int_equal(out[1], 0x3f804000);
}

// Random bits decide: as many of 2^13 (2^16) random numbers round up as the dropped part is large.
static void rounds_at_random(void **state)
{
    (void)state;
    uint64_t src[LANES][4] = {{0}}, out[LANES];
    for (int i = 0; i < LANES; i++) {
        src[i][0] = 0x3f800000 + 0x0c00; // 1 + 3/8 of f16's last bit
        src[i][1] = 0xbf804000;          // 1 + 1/2 of bf16's
        src[i][2] = (uint64_t)i << 24 | (uint64_t)i << 11;
    }
    each("cvt.rs.f16x2.f32 %b4, %f0, %f0, %b2; cvt.rs.bf16x2.f32 %b5, %f1, %f1, %b2;"
         "mov.b64 %out, {%b4, %b5};",
         src, LANES, out);
    for (int i = 0; i < LANES; i++) {
        const uint32_t upper = (uint32_t)(src[i][2] >> 16), lower = (uint32_t)src[i][2] & 0xffff;
        assert_int_equal(out[i] & 0xffff, 0x3c00 + ((lower & 0x1fff) + 0x0c00 >= 0x2000));
        assert_int_equal(out[i] >> 16 & 0xffff, 0x3c00 + ((upper & 0x1fff) + 0x0c00 >= 0x2000));
        assert_int_equal(out[i] >> 32 & 0xffff, 0xbf80 + (lower + 0x4000 >= 0x10000));
        assert_int_equal(out[i] >> 48, 0xbf80 + (upper + 0x4000 >= 0x10000));
    }
    // Without random bits nothing is rounded up; with all of them everything inexact is.
    for (int i = 0; i < LANES; i++) {
        src[i][0] = bits_of(1.0625f);
        src[i][1] = bits_of(-3.3f);
        src[i][2] = i % 2 ? 0xffffffff : 0;
    }
    each("cvt.rs.satfinite.e4m3x4.f32 %b4, {%f0, %f1, %f0, %f1}, %b2;"
         "cvt.rs.satfinite.e2m1x4.f32 %h4, {%f0, %f1, %f1, %f0}, %b2; cvt.u32.u16 %b5, %h4;"
         "mov.b64 %out, {%b4, %b5};",
         src, LANES, out);
    for (int i = 0; i < LANES; i++) {
        assert_int_equal(out[i] & 0xffffffff, i % 2 ? 0x39c639c6 : 0x38c538c5);
        assert_int_equal(out[i] >> 32, i % 2 ? 0x3ee3 : 0x2dd2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrows),
        cmocka_unit_test(widens),
        cmocka_unit_test(scales),
        cmocka_unit_test(rounds_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
