// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions that code generation expands, run on the emulator and compared with the C library
// in higher precision: the error bounds that math.c and math64.c state, and the edge cases.

#include "rig.h"

#include <math.h>

static double uniform(uint64_t *seed, double low, double high)
{
    return low + (high - low) * ((double)(next(seed) >> 11) * 0x1p-53);
}

static const double edges[] = {
    0.0,      -0.0,    INFINITY, -INFINITY, NAN,    1,         -1,       0x1p-126,   1e-40, -1e-40,
    0x1p-149, 0x1p127, 3.4e38,   -3.4e38,   0.5,    2,         -2,       8,          1024,  88.7228,
    88.73,    -87.3,   -103.9,   -104.5,    -150,   127.99,    128,      -126,       0.8,   0.95,
    4,        6,       1.41421,  0.70711,   1e5,    3.1415927, 1.5708,   0.78539819, 709.7, 709.79,
    -708.3,   -745.1,  -746,     1e-300,    1e-310, 1e300,     0.999999, 1.000001};

// The distance of got from right, in units of the last place of a float with `digits` digits.
static double ulps(double got, long double right, int digits, int min_exponent)
{
    if (isnan(right) || isnan(got))
        return isnan(right) && isnan(got) ? 0 : INFINITY;
    if (isinf(got) && (isinf(right) || fabsl(right) >= ldexpl(1, digits == 24 ? 128 : 1024)))
        return (got > 0) == (right > 0) ? 0 : INFINITY;
    if (isinf(right) || isinf(got))
        return INFINITY;
    int e = right == 0 ? min_exponent : TIR_MAX(ilogbl(right), min_exponent);
    return (double)(fabsl((long double)got - right) / ldexpl(1, e - digits + 1));
}

struct function {
    enum tir_op op;
    long double (*right)(long double x);
    double low, high; // the values tried
    double limit[2];  // ulp, f32 and f64
    double flush;     // f32 results below this may be 0
};

static long double rsqrtl(long double x)
{
    return 1 / sqrtl(x);
}

static const struct function functions[] = {
    {TIR_OP_EXP, expl, -110, 100, {2, 2}, 0x1p-126},
    {TIR_OP_EXP, expl, -1, 1, {2, 2}, 0},
    {TIR_OP_EXP2, exp2l, -150, 130, {2, 2}, 0x1p-126},
    {TIR_OP_LOG, logl, 0, 4, {2, 2}, 0},
    {TIR_OP_LOG, logl, 0, 1e30, {2, 2}, 0},
    {TIR_OP_LOG2, log2l, 0, 4, {3, 2}, 0},
    {TIR_OP_LOG2, log2l, 0.9, 1.1, {3, 2}, 0},
    {TIR_OP_SQRT, sqrtl, 0, 1e6, {0.5, 0.5}, 0},
    {TIR_OP_RSQRT, rsqrtl, 0, 1e6, {2, 2}, 0},
    {TIR_OP_SIN, sinl, -7, 7, {2, 2}, 0},
    {TIR_OP_SIN, sinl, -1e5, 1e5, {2, 2}, 0},
    {TIR_OP_COS, cosl, -7, 7, {2, 2}, 0},
    {TIR_OP_COS, cosl, -1e5, 1e5, {2, 2}, 0},
    {TIR_OP_TANH, tanhl, -1.2, 1.2, {3, 2}, 0},
    {TIR_OP_TANH, tanhl, -12, 12, {3, 2}, 0},
    {TIR_OP_TANH_APPROX, tanhl, -12, 12, {8192, 2}, 0},
    {TIR_OP_ERF, erfl, -1.3, 1.3, {3, 2}, 0},
    {TIR_OP_ERF, erfl, -6.5, 6.5, {3, 2}, 0},
};

static void check_f32(struct rig *r, const struct function *fn)
{
    static float x[COUNT], o[COUNT];
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < COUNT; i++)
        x[i] = i < (int)TIR_COUNT_OF(edges) ? (float)edges[i]
                                            : (float)uniform(&seed, fn->low, fn->high);
    run(r, "sm_80", fn->op, TIR_F32, x, NULL, NULL, TIR_F32, o);
    double worst = 0;
    for (int i = 0; i < COUNT; i++) {
        long double right = fn->right(x[i]);
        bool far = (fn->op == TIR_OP_SIN || fn->op == TIR_OP_COS) && fabsf(x[i]) > 1e5f;
        if (far || (fabsl(right) < fn->flush && o[i] == 0))
            continue;
        double error = ulps(o[i], right, 24, -126);
        worst = fmax(worst, error);
        if (!(error <= fn->limit[0]))
            fail_msg("%s(%a) = %a, not %La: %g ulp", tir_ops[fn->op].name, (double)x[i],
                     (double)o[i], right, error);
    }
    print_message("%s f32 in %g .. %g: %.2f ulp\n", tir_ops[fn->op].name, fn->low, fn->high, worst);
}

static void check_f64(struct rig *r, const struct function *fn)
{
    static double x[COUNT], o[COUNT];
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < COUNT; i++)
        x[i] = i < (int)TIR_COUNT_OF(edges) ? edges[i] : uniform(&seed, fn->low, fn->high);
    run(r, "sm_80", fn->op, TIR_F64, x, NULL, NULL, TIR_F64, o);
    double worst = 0;
    for (int i = 0; i < COUNT; i++) {
        long double right = fn->right(x[i]);
        bool far = (fn->op == TIR_OP_SIN || fn->op == TIR_OP_COS) && fabs(x[i]) > 1e9;
        if (far)
            continue;
        double error = ulps(o[i], right, 53, -1022);
        worst = fmax(worst, error);
        if (!(error <= fn->limit[1]))
            fail_msg("%s(%a) = %a, not %La: %g ulp", tir_ops[fn->op].name, x[i], o[i], right,
                     error);
    }
    print_message("%s f64 in %g .. %g: %.2f ulp\n", tir_ops[fn->op].name, fn->low, fn->high, worst);
}

static void functions_keep_their_error_bounds(void **state)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(functions); i++)
        check_f32(*state, &functions[i]);
}

static void functions_of_f64_keep_their_error_bounds(void **state)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(functions); i++)
        check_f64(*state, &functions[i]);
}

static void pow_is_right_for_f32(void **state)
{
    static float x[COUNT], y[COUNT], o[COUNT];
    static const float special[] = {0,   -0.0f,    1,         -1,    2,     -2,     3, 0.5f,  -3,
                                    NAN, INFINITY, -INFINITY, -0.5f, 1e30f, 1e-30f, 7, 1e-42f};
    const int n = TIR_COUNT_OF(special);
    uint64_t seed = 1234567;
    for (int i = 0; i < COUNT; i++) {
        x[i] = i < n * n ? special[i / n] : (float)exp(uniform(&seed, -20, 20));
        y[i] = i < n * n ? special[i % n] : (float)uniform(&seed, -8, 8);
    }
    run(*state, "sm_80", TIR_OP_POW, TIR_F32, x, y, NULL, TIR_F32, o);
    for (int i = 0; i < COUNT; i++) {
        long double right = powl(x[i], y[i]);
        if (!(ulps(o[i], right, 24, -126) <= 1))
            fail_msg("pow(%a, %a) = %a, not %La", (double)x[i], (double)y[i], (double)o[i], right);
        if (right == 0 && !signbit(right) != !signbit(o[i]))
            fail_msg("pow(%a, %a) is a zero of the wrong sign", (double)x[i], (double)y[i]);
    }
}

// 2^-22 is four units of the last place of a number just above a power of two.
static void div_approx_keeps_its_error_bound(void **state)
{
    static float x[COUNT], y[COUNT], o[COUNT];
    static const float special[] = {0,   -0.0f,    1,         -3,     0x1p-149f, 0x1p127f,
                                    NAN, INFINITY, -INFINITY, 1e-40f, -2e38f,    0x1.8p126f};
    const int n = TIR_COUNT_OF(special);
    uint64_t seed = 7654321;
    for (int i = 0; i < COUNT; i++) {
        x[i] = i < n * n ? special[i / n] : (float)exp(uniform(&seed, -80, 80));
        y[i] = i < n * n ? special[i % n] : (float)exp(uniform(&seed, -80, 80));
    }
    run(*state, "sm_80", TIR_OP_DIV_APPROX, TIR_F32, x, y, NULL, TIR_F32, o);
    for (int i = 0; i < COUNT; i++) {
        const long double right = (long double)x[i] / y[i];
        if (!(ulps(o[i], right, 24, -126) <= 4))
            fail_msg("%a / %a = %a, not %La", (double)x[i], (double)y[i], (double)o[i], right);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(div_approx_keeps_its_error_bound),
        cmocka_unit_test(functions_keep_their_error_bounds),
        cmocka_unit_test(functions_of_f64_keep_their_error_bounds),
        cmocka_unit_test(pow_is_right_for_f32),
    };
    return cmocka_run_group_tests_name("math", tests, start, finish);
}
