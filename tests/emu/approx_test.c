// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Approximate instructions against long double, within the bounds that the PTX ISA states.
//
// The emulator may be closer to the exact result than a GPU, never farther away than PTX allows. A
// bound is stated with the section of the PTX ISA that has it. What is less than the smallest
// normal number is left to the tests of flushing.

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "rig.h"

enum { ROUNDS = 24, LANES = 32 };

enum format { F32, F16, BF16 };

enum measure { ULPS, RELATIVE, ABSOLUTE };

static long double exact_rcp(long double a, long double b)
{
    (void)b;
    return 1 / a;
}

static long double exact_rsqrt(long double a, long double b)
{
    (void)b;
    return 1 / sqrtl(a);
}

static long double exact_div(long double a, long double b)
{
    return a / b;
}

#define EXACT(name, call)                                         \
    static long double exact_##name(long double a, long double b) \
    {                                                             \
        (void)b;                                                  \
        return call(a);                                           \
    }
EXACT(sqrt, sqrtl)
EXACT(sin, sinl)
EXACT(cos, cosl)
EXACT(lg2, log2l)
EXACT(ex2, exp2l)
EXACT(tanh, tanhl)

// A bound is a number of units in the last place, or the logarithm of an error. The sources of a
// row lie between `from` and `to`, or between 2 to these powers.
static const struct row {
    const char *insn;
    enum format format;
    bool two; // sources
    long double (*exact)(long double a, long double b);
    enum measure measure;
    double bound;
    double from, to;
    bool by_exponent; // they are powers
    const char *section;
} rows[] = {
#define FLOATS "Floating Point Instructions: "
#define HALVES "Half Precision Floating Point Instructions: "
    {"div.approx.f32", F32, true, exact_div, ULPS, 2, -60, 60, true, FLOATS "div"},
    {"div.approx.ftz.f32", F32, true, exact_div, ULPS, 2, -60, 60, true, FLOATS "div"},
    {"div.full.f32", F32, true, exact_div, ULPS, 2, -62, 62, true, FLOATS "div"},
    {"div.full.ftz.f32", F32, true, exact_div, ULPS, 2, -62, 62, true, FLOATS "div"},
    {"rcp.approx.f32", F32, false, exact_rcp, ULPS, 1, -125, 125, true, FLOATS "rcp"},
    {"rcp.approx.ftz.f32", F32, false, exact_rcp, ULPS, 1, -125, 125, true, FLOATS "rcp"},
    {"sqrt.approx.f32", F32, false, exact_sqrt, RELATIVE, -23, -125, 127, true, FLOATS "sqrt"},
    {"sqrt.approx.ftz.f32", F32, false, exact_sqrt, RELATIVE, -23, -125, 127, true, FLOATS "sqrt"},
    {"rsqrt.approx.f32", F32, false, exact_rsqrt, RELATIVE, -22.9, -125, 127, true, FLOATS "rsqrt"},
    {"rsqrt.approx.ftz.f32", F32, false, exact_rsqrt, RELATIVE, -22.9, -125, 127, true,
     FLOATS "rsqrt"},
    {"sin.approx.f32", F32, false, exact_sin, ABSOLUTE, -20.5, -6.283, 6.283, false, FLOATS "sin"},
    {"sin.approx.f32", F32, false, exact_sin, ABSOLUTE, -14.7, -314, 314, false, FLOATS "sin"},
    {"sin.approx.ftz.f32", F32, false, exact_sin, ABSOLUTE, -20.5, -6.283, 6.283, false,
     FLOATS "sin"},
    {"cos.approx.f32", F32, false, exact_cos, ABSOLUTE, -20.5, -6.283, 6.283, false, FLOATS "cos"},
    {"cos.approx.f32", F32, false, exact_cos, ABSOLUTE, -14.7, -314, 314, false, FLOATS "cos"},
    {"cos.approx.ftz.f32", F32, false, exact_cos, ABSOLUTE, -20.5, -6.283, 6.283, false,
     FLOATS "cos"},
    {"lg2.approx.f32", F32, false, exact_lg2, ABSOLUTE, -22, 0.5, 2, false, FLOATS "lg2"},
    {"lg2.approx.f32", F32, false, exact_lg2, RELATIVE, -22, 1, 127, true, FLOATS "lg2"},
    {"lg2.approx.ftz.f32", F32, false, exact_lg2, RELATIVE, -22, -125, -1, true, FLOATS "lg2"},
    {"ex2.approx.f32", F32, false, exact_ex2, ULPS, 2, -125, 127, false, FLOATS "ex2"},
    {"ex2.approx.ftz.f32", F32, false, exact_ex2, ULPS, 2, -125, 127, false, FLOATS "ex2"},
    {"tanh.approx.f32", F32, false, exact_tanh, RELATIVE, -11, -8, 8, false, FLOATS "tanh"},
    {"tanh.approx.f32", F32, false, exact_tanh, RELATIVE, -11, -30, 6, true, FLOATS "tanh"},
    {"ex2.approx.f16", F16, false, exact_ex2, RELATIVE, -9.9, -13, 15, false, HALVES "ex2"},
    {"ex2.approx.ftz.bf16", BF16, false, exact_ex2, RELATIVE, -7, -125, 127, false, HALVES "ex2"},
    {"tanh.approx.f16", F16, false, exact_tanh, ABSOLUTE, -10.987, -6, 6, false, HALVES "tanh"},
    {"tanh.approx.bf16", BF16, false, exact_tanh, ABSOLUTE, -8, -6, 6, false, HALVES "tanh"},
};

// --- formats ---

static long double value_of(uint32_t bits, enum format format)
{
    float f;
    if (format == F16) {
        const long double fraction = bits & 0x3ff, exponent = bits >> 10 & 31;
        const long double v =
            exponent == 0 ? ldexpl(fraction, -24) : ldexpl(1024 + fraction, (int)exponent - 25);
        return bits & 0x8000 ? -v : v;
    }
    bits = format == BF16 ? bits << 16 : bits;
    memcpy(&f, &bits, sizeof f);
    return f;
}

// Some number of the format near `x`, which is normal in it.
static uint32_t bits_near(double x, enum format format)
{
    const float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (format == BF16)
        return bits >> 16;
    if (format == F32)
        return bits;
    const int exponent = (int)(bits >> 23 & 255) - 127 + 15;
    return exponent <= 0 ? bits >> 16 & 0x8000
                         : (bits >> 16 & 0x8000) | (uint32_t)exponent << 10 | (bits >> 13 & 0x3ff);
}

// --- measuring ---

static long double ulp_of(long double exact)
{
    int exponent;
    frexpl(exact, &exponent);
    return ldexpl(1, exponent - FLT_MANT_DIG);
}

// The error in units of the bound: at most 1 is right.
static long double error_of(const struct row *row, long double got, long double exact)
{
    const long double error = fabsl(got - exact);
    if (row->measure == ULPS)
        return error / ulp_of(exact) / row->bound;
    if (row->measure == RELATIVE)
        return exact == 0 ? error : error / fabsl(exact) / exp2l(row->bound);
    return error / exp2l(row->bound);
}

static double source(const struct row *row, uint64_t *seed)
{
    const double at = (double)(rig_random(seed) >> 11) / 9007199254740992.0;
    const double x = row->from + (row->to - row->from) * at;
    return row->by_exponent ? exp2(x) : x;
}

static void body_of(const struct row *row, char *body, size_t size)
{
    const bool wide = row->format == F32;
    const char *regs = wide ? "%f" : "%c", *bits = wide ? "32" : "16";
    snprintf(body, size, "%s %s2, %s0%s; %s cvt.u64.u%s %%out, %s;", row->insn, regs, regs,
             row->two ? ", %f1" : "", wide ? "mov.b32 %b2, %f2;" : "", bits, wide ? "%b2" : "%c2");
}

static void measure(const struct row *row)
{
    uint64_t seed = 1, sources[LANES][4], out[LANES];
    char body[256];
    body_of(row, body, sizeof body);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LANES; i++)
            for (int k = 0; k < 4; k++)
                sources[i][k] = bits_near(source(row, &seed), row->format);
        rig_each(body, (const uint64_t(*)[4])sources, LANES, out);
        for (int i = 0; i < LANES; i++) {
            const long double a = value_of((uint32_t)sources[i][0], row->format);
            const long double b = value_of((uint32_t)sources[i][1], row->format);
            const long double got = value_of((uint32_t)out[i], row->format);
            const long double error = error_of(row, got, row->exact(a, b));
            if (!(error <= 1))
                fail_msg("%s of %.9Lg, %.9Lg is %.9Lg, not %.9Lg: %.3Lg times the bound of '%s'",
                         row->insn, a, b, got, row->exact(a, b), error, row->section);
        }
    }
}

static void within_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        measure(&rows[i]);
}

// Both halves of a pair are computed, each as the single instruction does it.
static void pairs(void **state)
{
    static const char *const insns[] = {"ex2.approx.f16", "ex2.approx.ftz.bf16", "tanh.approx.f16",
                                        "tanh.approx.bf16"};
    uint64_t seed = 7;
    (void)state;
    for (int n = 0; n < 4; n++) {
        uint64_t sources[LANES][4], both[LANES], low[LANES], high[LANES];
        char body[256];
        for (int i = 0; i < LANES; i++)
            for (int k = 0; k < 4; k++)
                sources[i][k] = rig_random(&seed) & 0xbfffbfff; // no NaN
        snprintf(body, sizeof body, "%sx2 %%b1, %%b0; cvt.u64.u32 %%out, %%b1;", insns[n]);
        rig_each(body, (const uint64_t(*)[4])sources, LANES, both);
        snprintf(body, sizeof body, "%s %%c1, %%c0; cvt.u64.u16 %%out, %%c1;", insns[n]);
        rig_each(body, (const uint64_t(*)[4])sources, LANES, low);
        for (int i = 0; i < LANES; i++)
            sources[i][0] >>= 16;
        rig_each(body, (const uint64_t(*)[4])sources, LANES, high);
        for (int i = 0; i < LANES; i++)
            assert_int_equal(both[i], high[i] << 16 | low[i]);
    }
}

// Special sources, by the tables of the same sections.
static void specials(void **state)
{
    enum { ONE = 0x3f800000, INF = 0x7f800000, NAN32 = 0x7fffffff };
    static const struct {
        const char *insn;
        uint32_t a, want;
    } cases[] = {
        {"rcp.approx.f32", INF, 0},
        {"rcp.approx.f32", 0, INF},
        {"rcp.approx.f32", 0x80000000, 0xff800000},
        {"rcp.approx.f32", 0xff800000, 0x80000000},
        {"sqrt.approx.f32", INF, INF},
        {"sqrt.approx.f32", 0x80000000, 0x80000000},
        {"sqrt.approx.f32", 0xbf800000, NAN32},
        {"rsqrt.approx.f32", 0, INF},
        {"rsqrt.approx.f32", 0x80000000, 0xff800000},
        {"rsqrt.approx.f32", INF, 0},
        {"rsqrt.approx.f32", 0xbf800000, NAN32},
        {"sin.approx.f32", 0x80000000, 0x80000000},
        {"sin.approx.f32", INF, NAN32},
        {"cos.approx.f32", 0x80000000, ONE},
        {"cos.approx.f32", INF, NAN32},
        {"lg2.approx.f32", 0, 0xff800000},
        {"lg2.approx.f32", INF, INF},
        {"lg2.approx.f32", 0xbf800000, NAN32},
        {"ex2.approx.f32", 0xff800000, 0},
        {"ex2.approx.f32", 0x80000000, ONE},
        {"ex2.approx.f32", INF, INF},
        {"tanh.approx.f32", INF, ONE},
        {"tanh.approx.f32", 0xff800000, 0xbf800000},
        {"tanh.approx.f32", 0x80000000, 0x80000000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint64_t sources[1][4] = {{cases[i].a}};
        uint64_t out[1];
        char body[128];
        snprintf(body, sizeof body, "%s %%f1, %%f0; mov.b32 %%b1, %%f1; cvt.u64.u32 %%out, %%b1;",
                 cases[i].insn);
        rig_each(body, sources, 1, out);
        if (out[0] != cases[i].want)
            fail_msg("%s of 0x%08x is 0x%08x, not 0x%08x", cases[i].insn, cases[i].a,
                     (unsigned)out[0], cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_bounds),
        cmocka_unit_test(pairs),
        cmocka_unit_test(specials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
