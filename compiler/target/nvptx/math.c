// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// f32 functions that NVPTX has no instruction for, or only an inaccurate one.
//
// Each reduces its argument and evaluates a polynomial; the coefficients are minimax fits of the
// quoted expression over the reduced range, rounded to f32, with an error far below half a unit in
// the last place (ulp). What remains is rounding and the error of ex2.approx (2 ulp). Bounds, in
// ulp of the f32 result, as the tests check them with correctly rounded instructions:
//     exp 2, log 2, log2 3, tanh 3, erf 3, sin and cos 2 for |x| <= 100000, pow 1
// sin and cos of larger arguments reduce with the bits that f64 has; beyond 2^50 they are noise
// between -1 and 1. exp2 flushes results below 2^-126 to 0, and so does exp.

#include "target/nvptx/math.h"

#include <math.h>

static V scaled(struct emit *e, V x, double by)
{
    return mul(e, x, tir_emit_const(x, by));
}

static V absolute(struct emit *e, V x)
{
    return tir_emit_unary(e, "llvm.fabs", x);
}

V tir_emit_polynomial(struct emit *e, V x, const double *coefficients, uint32_t count)
{
    V sum = tir_emit_const(x, coefficients[count - 1]);
    for (uint32_t i = count - 1; i-- > 0;)
        sum = tir_emit_fma(e, sum, x, tir_emit_const(x, coefficients[i]));
    return sum;
}

static V exp2_(struct emit *e, V x)
{
    LLVMTypeRef f32 = e->ll->f32;
    return tir_llvm_call(e->ll, "llvm.nvvm.ex2.approx.ftz", &f32, 1, &x, 1);
}

// x log2(e) = high + low exactly enough; 2^high (1 + low ln 2). Large x is cut to what overflows
// anyway; where high is -infinity, low is +infinity or NaN, and the smaller of it and a constant is
// a number.
static V exp_(struct emit *e, V x)
{
    x = tir_emit_binary(e, "llvm.minimum", x, tir_emit_const(x, 200));
    V high = scaled(e, x, 0x1.715476p+0);
    V low = fma_const(e, x, 0x1.715476p+0, LLVMBuildFNeg(e->b, high, ""));
    low = fma_const(e, x, 0x1.4ae0cp-26, low);
    V factor = fma_const(e, low, 0x1.62e43p-1, tir_emit_const(x, 1));
    factor = tir_emit_binary(e, "llvm.minnum", factor, tir_emit_const(x, 1.5));
    return mul(e, exp2_(e, high), factor);
}

// x = 2^exponent (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); *log1p is log(1 + f).
static void split_log(struct emit *e, V x, V *exponent, V *log1p)
{
    // log(1 + f) = f - f^2 / 2 + f^3 P(f)
    static const double table[] = {0x1.555548p-2,  -0x1.000006p-2, 0x1.99a4b6p-3,
                                   -0x1.555c4ep-3, 0x1.23376ap-3,  -0x1.fc220ap-4,
                                   0x1.e6f052p-4,  -0x1.de3bdep-4, 0x1.14578p-4};
    LLVMTypeRef i32 = e->ll->i32;
    V tiny = tir_emit_fcmp(e, LLVMRealOLT, x, tir_emit_const(x, 0x1p-126));
    V normal = tir_emit_select(e, tiny, scaled(e, x, 0x1p23), x);
    V bits = tir_emit_bits(e, normal, i32);
    V above = LLVMBuildSub(e->b, bits, tir_emit_i32(e, 0x3f3504f3), ""); // sqrt(1/2)
    V power = LLVMBuildAnd(e->b, above, tir_emit_i32(e, INT32_C(-0x800000)), "");
    V mantissa = tir_emit_bits(e, LLVMBuildSub(e->b, bits, power, ""), e->ll->f32);
    V whole =
        LLVMBuildSIToFP(e->b, LLVMBuildAShr(e->b, power, tir_emit_i32(e, 23), ""), e->ll->f32, "");
    *exponent =
        add(e, whole, tir_emit_select(e, tiny, tir_emit_const(x, -23), tir_emit_const(x, 0)));
    V f = sub(e, mantissa, tir_emit_const(x, 1)), square = mul(e, f, f);
    V tail = fma_const(e, square, -0.5, mul(e, mul(e, square, f), polynomial(e, f, table)));
    *log1p = add(e, f, tail);
}

// v for positive finite x; what log gives at 0, infinity, negative numbers and NaN.
V tir_emit_log_edges(struct emit *e, V x, V v)
{
    V positive = tir_emit_fcmp(e, LLVMRealOGT, x, tir_emit_const(x, 0));
    V finite = tir_emit_fcmp(e, LLVMRealOLT, x, tir_emit_const(x, INFINITY));
    V zero = tir_emit_fcmp(e, LLVMRealOEQ, x, tir_emit_const(x, 0));
    V bad = tir_emit_select(e, zero, tir_emit_const(x, -INFINITY), tir_emit_const(x, NAN));
    v = tir_emit_select(e, finite, v, x); // infinity
    return tir_emit_select(e, positive, v, bad);
}

static V log_(struct emit *e, V x)
{
    V exponent, log1p;
    split_log(e, x, &exponent, &log1p);
    V v = fma_const(e, exponent, 0x1.7f7d1cp-20, log1p); // ln 2 in two parts, the first of 15 bits
    v = fma_const(e, exponent, 0x1.62e4p-1, v);
    return tir_emit_log_edges(e, x, v);
}

static V log2_(struct emit *e, V x)
{
    V exponent, log1p;
    split_log(e, x, &exponent, &log1p);
    V v = scaled(e, log1p, 0x1.4ae0cp-26);
    v = add(e, fma_const(e, log1p, 0x1.715476p+0, v), exponent);
    return tir_emit_log_edges(e, x, v);
}

// x = quadrant pi / 2 + rest, |rest| <= pi / 4. pi / 2 in three parts: the first product is exact,
// and what the third leaves out is below 2^-77 quadrant.
static V reduce_angle(struct emit *e, V x, V *quadrant)
{
    V k = tir_emit_unary(e, "llvm.roundeven", scaled(e, x, 0x1.45f306dc9c883p-1));
    V minus = LLVMBuildFNeg(e->b, k, "");
    V rest = fma_const(e, minus, 0x1.921fb6p+0, x);
    rest = fma_const(e, minus, -0x1.777a5cp-25, rest);
    rest = fma_const(e, minus, -0x1.ee59dap-50, rest);
    *quadrant = tir_llvm_call(e->ll, "llvm.nvvm.f2i.rz", NULL, 0, &k, 1);
    return rest;
}

// The same in f64, for arguments that reduce_angle is too short for.
static V reduce_large_angle(struct emit *e, V x, V *quadrant)
{
    V wide = LLVMBuildFPExt(e->b, x, e->ll->f64, "");
    V k = tir_emit_unary(e, "llvm.roundeven", scaled(e, wide, 0x1.45f306dc9c883p-1));
    V minus = LLVMBuildFNeg(e->b, k, "");
    V rest = fma_const(e, minus, 0x1.921fb54442d18p+0, wide);
    rest = fma_const(e, minus, 0x1.1a62633145c07p-54, rest);
    V whole = tir_llvm_call(e->ll, "llvm.nvvm.d2ll.rz", NULL, 0, &k, 1);
    *quadrant = LLVMBuildTrunc(e->b, whole, e->ll->i32, "");
    V cut = LLVMBuildFPTrunc(e->b, rest, e->ll->f32, "");
    cut = tir_emit_binary(e, "llvm.minimum", cut, tir_emit_const(x, 0x1.921fb6p-1));
    return tir_emit_binary(e, "llvm.maximum", cut, tir_emit_const(x, -0x1.921fb6p-1));
}

static V sin_or_cos(struct emit *e, V x, bool cosine)
{
    // sin r = r + r^3 P(r^2), cos r = 1 - r^2 / 2 + r^4 Q(r^2)
    static const double p[] = {-0x1.555546p-3, 0x1.11076p-7, -0x1.994eb2p-13};
    static const double q[] = {0x1.55554ap-5, -0x1.6c0c8cp-10, 0x1.9a0264p-16};
    LLVMBasicBlockRef from = LLVMGetInsertBlock(e->b), large = tir_emit_block(e, "large_angle");
    LLVMBasicBlockRef join = tir_emit_block(e, "angle");
    V quadrants[2], rests[2];
    rests[0] = reduce_angle(e, x, &quadrants[0]);
    V is_large = tir_emit_fcmp(e, LLVMRealOGT, absolute(e, x), tir_emit_const(x, 100000));
    LLVMBuildCondBr(e->b, is_large, large, join);
    tir_emit_at(e, large);
    rests[1] = reduce_large_angle(e, x, &quadrants[1]);
    LLVMBuildBr(e->b, join);
    tir_emit_at(e, join);
    LLVMBasicBlockRef sources[] = {from, large};
    V rest = LLVMBuildPhi(e->b, e->ll->f32, ""), quadrant = LLVMBuildPhi(e->b, e->ll->i32, "");
    LLVMAddIncoming(rest, rests, sources, 2);
    LLVMAddIncoming(quadrant, quadrants, sources, 2);
    if (cosine)
        quadrant = LLVMBuildAdd(e->b, quadrant, tir_emit_i32(e, 1), "");
    V square = mul(e, rest, rest);
    V sine = tir_emit_fma(e, mul(e, square, rest), polynomial(e, square, p), rest);
    V one = fma_const(e, square, -0.5, tir_emit_const(x, 1));
    V cosine_v = tir_emit_fma(e, mul(e, square, square), polynomial(e, square, q), one);
    V odd = LLVMBuildTrunc(e->b, quadrant, e->ll->i1, "");
    V v = tir_emit_select(e, odd, cosine_v, sine);
    V second = LLVMBuildAnd(e->b, quadrant, tir_emit_i32(e, 2), "");
    V flip = LLVMBuildShl(e->b, second, tir_emit_i32(e, 30), "");
    v = tir_emit_bits(e, LLVMBuildXor(e->b, tir_emit_bits(e, v, e->ll->i32), flip, ""), e->ll->f32);
    // Infinity has no sine.
    V finite = tir_emit_fcmp(e, LLVMRealOLT, absolute(e, x), tir_emit_const(x, INFINITY));
    return tir_emit_select(e, finite, v, tir_emit_const(x, NAN));
}

static V tanh_(struct emit *e, V x)
{
    // tanh x = x + x^3 P(x^2) below 0.8, else 1 - 2 / (exp(2 x) + 1)
    static const double table[] = {-0x1.55553ep-2, 0x1.110b3cp-3,  -0x1.b92884p-5,
                                   0x1.5d072ap-6,  -0x1.e5976ep-8, 0x1.9f6e8ep-10};
    V size = absolute(e, x), square = mul(e, x, x);
    V small = tir_emit_fma(e, mul(e, square, x), polynomial(e, square, table), x);
    V grown = add(e, exp2_(e, scaled(e, size, 0x1.715476p+1)), tir_emit_const(x, 1));
    V part = tir_llvm_call(e->ll, "llvm.nvvm.rcp.approx.ftz.f", NULL, 0, &grown, 1);
    V large = fma_const(e, part, -2, tir_emit_const(x, 1));
    large = tir_emit_binary(e, "llvm.copysign", large, x);
    V is_large = tir_emit_fcmp(e, LLVMRealOGT, size, tir_emit_const(x, 0.8));
    return tir_emit_select(e, is_large, large, small);
}

static V erf_(struct emit *e, V x)
{
    // erf x = x P(x^2) below 0.95, else 1 - 2^Q(x); from 4 on it is 1
    static const double p[] = {0x1.20dd76p+0, -0x1.812742p-2,  0x1.ce2dcap-4, -0x1.b80962p-6,
                               0x1.549662p-8, -0x1.a88d82p-11, 0x1.574ebp-14};
    static const double q[] = {-0x1.0c8e5cp-12, -0x1.a082fap+0, -0x1.d69218p-1, -0x1.336462p-3,
                               0x1.07480ep-5,   -0x1.20e648p-8, 0x1.2a4918p-12};
    V size = absolute(e, x);
    V small = mul(e, x, polynomial(e, mul(e, x, x), p));
    V bounded = tir_emit_binary(e, "llvm.minimum", size, tir_emit_const(x, 4));
    V large = sub(e, tir_emit_const(x, 1), exp2_(e, polynomial(e, bounded, q)));
    large = tir_emit_binary(e, "llvm.copysign", large, x);
    V is_large = tir_emit_fcmp(e, LLVMRealOGT, size, tir_emit_const(x, 0.95));
    return tir_emit_select(e, is_large, large, small);
}

V tir_emit_math(struct emit *e, enum tir_op op, V x)
{
    if (LLVMTypeOf(x) == e->ll->f64)
        return tir_emit_math64(e, op, x);
    switch (op) {
    case TIR_OP_EXP2:
        return exp2_(e, x);
    case TIR_OP_EXP:
        return exp_(e, x);
    case TIR_OP_LOG:
        return log_(e, x);
    case TIR_OP_LOG2:
        return log2_(e, x);
    case TIR_OP_RSQRT:
        return tir_llvm_call(e->ll, "llvm.nvvm.rsqrt.approx.f", NULL, 0, &x, 1);
    case TIR_OP_SIN:
        return sin_or_cos(e, x, false);
    case TIR_OP_COS:
        return sin_or_cos(e, x, true);
    case TIR_OP_TANH:
        return tanh_(e, x);
    case TIR_OP_TANH_APPROX:
        return tir_llvm_asm(e->ll, e->ll->f32, STR("tanh.approx.f32 $0, $1;"), STR("=f,f"), 0, &x,
                            1);
    case TIR_OP_ERF:
        return erf_(e, x);
    default:
        return NULL;
    }
}
