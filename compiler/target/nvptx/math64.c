// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// f64 functions, and the f32 functions that are computed in f64: pow and the remainder.
//
// The methods are those of math.c with longer polynomials. Bounds in ulp of the result:
//     exp exp2 log log2 tanh erf 2, sin and cos 2 for |x| <= 10^9, rsqrt 2
//     pow of f64: relative error 2^-51 (1 + |y log2 x|)
// The remainder is exact.

#include "target/nvptx/math.h"

#include <math.h>

#define LN2       0x1.62e42fefa39efp-1
#define LN2_LOW   0x1.abc9e3b39803fp-56
#define LOG2E     0x1.71547652b82fep+0
#define LOG2E_LOW 0x1.777d0ffda0d24p-56

static V int64(const struct emit *e, int64_t value)
{
    return LLVMConstInt(e->ll->i64, (uint64_t)value, true);
}

static V bits_of(struct emit *e, V f64)
{
    return tir_emit_bits(e, f64, e->ll->i64);
}

static V is_nan_or_inf(struct emit *e, V x) // not |x| < infinity
{
    V size = tir_emit_unary(e, "llvm.fabs", x);
    return tir_emit_fcmp(e, LLVMRealUGE, size, tir_emit_const(x, INFINITY));
}

// x 2^k in two steps, so that neither factor overflows and a subnormal result rounds once.
static V scale(struct emit *e, V x, V k)
{
    V half = LLVMBuildAShr(e->b, k, int64(e, 1), ""), rest = LLVMBuildSub(e->b, k, half, "");
    V steps[] = {half, rest};
    for (int i = 0; i < 2; i++) {
        V biased = LLVMBuildAdd(e->b, steps[i], int64(e, 1023), "");
        V factor = LLVMBuildShl(e->b, biased, int64(e, 52), "");
        x = mul(e, x, tir_emit_bits(e, factor, e->ll->f64));
    }
    return x;
}

static V exp_reduced(struct emit *e, V r, V k) // 2^k exp(r), |r| <= ln 2 / 2
{
    // exp r = 1 + r + r^2 P(r)
    static const double table[] = {
        0x1.0000000000000p-1,  0x1.555555555555cp-3,  0x1.555555555555ep-5,  0x1.111111110ebbap-7,
        0x1.6c16c16c135e2p-10, 0x1.a01a01b3b81b6p-13, 0x1.a01a01b43dd99p-16, 0x1.71ddef9b72ab2p-19,
        0x1.27e4bf5dd5305p-22, 0x1.af6cbf5ad39b2p-26, 0x1.1f9daf66d0155p-29};
    V tail = tir_emit_fma(e, mul(e, r, r), polynomial(e, r, table), r);
    V whole = tir_llvm_call(e->ll, "llvm.nvvm.d2ll.rz", NULL, 0, &k, 1);
    return scale(e, add(e, tail, tir_emit_const(r, 1)), whole);
}

static V clamp(struct emit *e, V x, double low, double high) // NaN stays
{
    x = tir_emit_binary(e, "llvm.maximum", x, tir_emit_const(x, low));
    return tir_emit_binary(e, "llvm.minimum", x, tir_emit_const(x, high));
}

static V exp_(struct emit *e, V x)
{
    x = clamp(e, x, -750, 710);
    V k = tir_emit_unary(e, "llvm.roundeven", mul(e, x, tir_emit_const(x, LOG2E)));
    V r = fma_const(e, k, -LN2_LOW, fma_const(e, k, -LN2, x));
    return exp_reduced(e, r, k);
}

static V exp2_(struct emit *e, V x)
{
    x = clamp(e, x, -1080, 1025);
    V k = tir_emit_unary(e, "llvm.roundeven", x);
    return exp_reduced(e, mul(e, sub(e, x, k), tir_emit_const(x, LN2)), k);
}

static V log_any(struct emit *e, V x, bool base2)
{
    // log(1 + f) = 2 s + s^3 P(s^2), s = f / (2 + f)
    static const double table[] = {0x1.5555555555555p-1, 0x1.9999999999dfep-2, 0x1.249249242b50fp-2,
                                   0x1.c71c7258eb413p-3, 0x1.745cde3b5fc19p-3, 0x1.3b20aa93d7fecp-3,
                                   0x1.0f5cdf3a60499p-3, 0x1.0f62477092ac6p-3};
    V tiny = tir_emit_fcmp(e, LLVMRealOLT, x, tir_emit_const(x, 0x1p-1022));
    V normal = tir_emit_select(e, tiny, mul(e, x, tir_emit_const(x, 0x1p54)), x);
    V bits = bits_of(e, normal);
    V above = LLVMBuildSub(e->b, bits, int64(e, INT64_C(0x3fe6a09e667f3bcd)), ""); // sqrt(1/2)
    V power = LLVMBuildAnd(e->b, above, int64(e, -(INT64_C(1) << 52)), "");
    V mantissa = tir_emit_bits(e, LLVMBuildSub(e->b, bits, power, ""), e->ll->f64);
    V whole = LLVMBuildAShr(e->b, power, int64(e, 52), "");
    whole = LLVMBuildSub(e->b, whole, tir_emit_select(e, tiny, int64(e, 54), int64(e, 0)), "");
    V k = LLVMBuildSIToFP(e->b, whole, e->ll->f64, "");
    V f = sub(e, mantissa, tir_emit_const(x, 1));
    V s = LLVMBuildFDiv(e->b, f, add(e, f, tir_emit_const(x, 2)), ""), z = mul(e, s, s);
    // f - (f^2/2 - s (f^2/2 + z P)): f is exact, the rest small
    V half = mul(e, mul(e, f, f), tir_emit_const(x, 0.5));
    V inner = mul(e, s, tir_emit_fma(e, z, polynomial(e, z, table), half));
    V v;
    if (base2) {
        V log1p = sub(e, f, sub(e, half, inner));
        v = add(e, fma_const(e, log1p, LOG2E, mul(e, log1p, tir_emit_const(x, LOG2E_LOW))), k);
    } else {
        V rest = sub(e, half, fma_const(e, k, LN2_LOW, inner));
        v = fma_const(e, k, LN2, sub(e, f, rest));
    }
    return tir_emit_log_edges(e, x, v);
}

static V sin_or_cos(struct emit *e, V x, bool cosine)
{
    static const double p[] = {-0x1.5555555555549p-3,  0x1.111111110f881p-7,
                               -0x1.a01a019c126bep-13, 0x1.71de357873aacp-19,
                               -0x1.ae5e66d3af4e7p-26, 0x1.5d932ecf2458cp-33};
    static const double q[] = {0x1.555555555554cp-5,  -0x1.6c16c16c15185p-10,
                               0x1.a01a019cb271ap-16, -0x1.27e4f80a77fd2p-22,
                               0x1.1ee9ec4899be1p-29, -0x1.8faecf8cb733ap-37};
    V k = tir_emit_unary(e, "llvm.roundeven", mul(e, x, tir_emit_const(x, 0x1.45f306dc9c883p-1)));
    V rest = fma_const(e, k, -0x1.921fb54442d18p+0, x);
    rest = fma_const(e, k, -0x1.1a62633145c07p-54, rest);
    rest = fma_const(e, k, 0x1.f1976b7ed8fbcp-110, rest);
    V quadrant = tir_llvm_call(e->ll, "llvm.nvvm.d2ll.rz", NULL, 0, &k, 1);
    if (cosine)
        quadrant = LLVMBuildAdd(e->b, quadrant, int64(e, 1), "");
    V square = mul(e, rest, rest);
    V sine = tir_emit_fma(e, mul(e, square, rest), polynomial(e, square, p), rest);
    V one = fma_const(e, square, -0.5, tir_emit_const(x, 1));
    V cosine_v = tir_emit_fma(e, mul(e, square, square), polynomial(e, square, q), one);
    V odd = LLVMBuildTrunc(e->b, quadrant, e->ll->i1, "");
    V v = tir_emit_select(e, odd, cosine_v, sine);
    V second = LLVMBuildAnd(e->b, quadrant, int64(e, 2), "");
    V flip = LLVMBuildShl(e->b, second, int64(e, 62), "");
    v = tir_emit_bits(e, LLVMBuildXor(e->b, bits_of(e, v), flip, ""), e->ll->f64);
    return tir_emit_select(e, is_nan_or_inf(e, x), tir_emit_const(x, NAN), v);
}

static V tanh_(struct emit *e, V x)
{
    // tanh x = x + x^3 P(x^2) below 0.6, else 1 - 2 / (exp(2 x) + 1)
    static const double table[] = {
        -0x1.5555555555554p-2,  0x1.1111111110edap-3,   -0x1.ba1ba1b9f6ef3p-5,
        0x1.664f487933d77p-6,   -0x1.226e33e894238p-7,  0x1.d6d387e099185p-9,
        -0x1.7d9e9e457ace5p-10, 0x1.3521441f0f277p-11,  -0x1.f2140f9e677b9p-13,
        0x1.83d97e436f531p-14,  -0x1.0561a65f1c76bp-15, 0x1.b3d7f15465cc2p-18};
    V size = tir_emit_unary(e, "llvm.fabs", x), square = mul(e, x, x), one = tir_emit_const(x, 1);
    V small = tir_emit_fma(e, mul(e, square, x), polynomial(e, square, table), x);
    V grown = add(e, exp_(e, add(e, size, size)), one);
    V large = sub(e, one, LLVMBuildFDiv(e->b, tir_emit_const(x, 2), grown, ""));
    large = tir_emit_binary(e, "llvm.copysign", large, x);
    V is_large = tir_emit_fcmp(e, LLVMRealOGT, size, tir_emit_const(x, 0.6));
    return tir_emit_select(e, is_large, large, small);
}

static V erf_(struct emit *e, V x)
{
    // erf x = x P(x^2) below 1, else 1 - exp(Q(x)); from 6 on it is 1
    static const double p[] = {
        0x1.20dd750429b6dp+0,   -0x1.812746b0379e7p-2,  0x1.ce2f21a042bddp-4,
        -0x1.b82ce3128899bp-6,  0x1.565bcd0e64ab6p-8,   -0x1.c02db3fed8f41p-11,
        0x1.f9a326bfb6c4ep-14,  -0x1.f4d255e13f57cp-17, 0x1.b9e64d07555c7p-20,
        -0x1.5f6d6b4cbc05bp-23, 0x1.fc4116d03d92ep-27,  -0x1.4e55cb4d61da5p-30,
        0x1.7ecbf018a8343p-34,  -0x1.2928e09621fb0p-38};
    static const double q[] = {
        -0x1.139176744c31dp-21, -0x1.20dd1e2e33c8bp+0,  -0x1.45f635b86c715p-1,
        -0x1.a4ab268a99477p-4,  0x1.371993c1580efp-6,   0x1.b1a3c79b4c136p-12,
        -0x1.f70b4c228643cp-10, 0x1.954dca5c16a61p-11,  -0x1.1e645d4adc427p-13,
        -0x1.477c4c232e0e6p-16, 0x1.7a047bc15aef0p-16,  -0x1.1fd7ba7bde17dp-17,
        0x1.1bd49a7642f3bp-19,  -0x1.8ccc5e6edc0b1p-22, 0x1.8a8ac020a8303p-25,
        -0x1.0b4dbe2504323p-28, 0x1.bc3fa0e47ebfbp-33,  -0x1.565368fe0b08ep-38};
    V size = tir_emit_unary(e, "llvm.fabs", x);
    V small = mul(e, x, polynomial(e, mul(e, x, x), p));
    V bounded = tir_emit_binary(e, "llvm.minimum", size, tir_emit_const(x, 6));
    V large = sub(e, tir_emit_const(x, 1), exp_(e, polynomial(e, bounded, q)));
    large = tir_emit_binary(e, "llvm.copysign", large, x);
    V is_large = tir_emit_fcmp(e, LLVMRealOGT, size, tir_emit_const(x, 1));
    return tir_emit_select(e, is_large, large, small);
}

V tir_emit_math64(struct emit *e, enum tir_op op, V x)
{
    switch (op) {
    case TIR_OP_EXP:
        return exp_(e, x);
    case TIR_OP_EXP2:
        return exp2_(e, x);
    case TIR_OP_LOG:
        return log_any(e, x, false);
    case TIR_OP_LOG2:
        return log_any(e, x, true);
    case TIR_OP_RSQRT:
        return LLVMBuildFDiv(e->b, tir_emit_const(x, 1), tir_emit_unary(e, "llvm.sqrt", x), "");
    case TIR_OP_SIN:
        return sin_or_cos(e, x, false);
    case TIR_OP_COS:
        return sin_or_cos(e, x, true);
    case TIR_OP_TANH:
    case TIR_OP_TANH_APPROX:
        return tanh_(e, x);
    case TIR_OP_ERF:
        return erf_(e, x);
    default:
        return NULL;
    }
}

// |x|^y by 2^(y log2 |x|); the sign, and NaN for finite x < 0, follow from whether y is an odd
// integer.
V tir_emit_pow(struct emit *e, V x, V y)
{
    LLVMTypeRef type = LLVMTypeOf(x), f64 = e->ll->f64;
    bool widen = type != f64;
    if (widen) {
        x = LLVMBuildFPExt(e->b, x, f64, "");
        y = LLVMBuildFPExt(e->b, y, f64, "");
    }
    V zero = tir_emit_const(x, 0), half = mul(e, y, tir_emit_const(y, 0.5));
    V log = log_any(e, tir_emit_unary(e, "llvm.fabs", x), true);
    // 1^y and x^0 are 1 whatever the other is.
    V is_one = LLVMBuildOr(e->b, tir_emit_fcmp(e, LLVMRealOEQ, log, zero),
                           tir_emit_fcmp(e, LLVMRealOEQ, y, zero), "");
    V v = exp2_(e, tir_emit_select(e, is_one, zero, mul(e, y, log)));
    V whole = tir_emit_fcmp(e, LLVMRealOEQ, tir_emit_unary(e, "llvm.trunc", y), y);
    V even = tir_emit_fcmp(e, LLVMRealOEQ, tir_emit_unary(e, "llvm.trunc", half), half);
    V odd = LLVMBuildAnd(e->b, whole, LLVMBuildNot(e->b, even, ""), "");
    v = tir_emit_select(e, odd, tir_emit_binary(e, "llvm.copysign", v, x), v);
    V negative = LLVMBuildAnd(e->b, tir_emit_fcmp(e, LLVMRealOLT, x, zero),
                              tir_emit_fcmp(e, LLVMRealUNE, x, tir_emit_const(x, -INFINITY)), "");
    V bad = LLVMBuildAnd(e->b, negative, LLVMBuildNot(e->b, whole, ""), "");
    v = tir_emit_select(e, bad, tir_emit_const(v, NAN), v);
    return widen ? LLVMBuildFPTrunc(e->b, v, type, "") : v;
}

// d as normal 2^-64 where it is small; *exponent: the biased one of d, below 1 for a subnormal d.
static V normalize(struct emit *e, V d, V *small, V *exponent)
{
    *small = tir_emit_fcmp(e, LLVMRealOLT, d, tir_emit_const(d, 0x1p-1000));
    V v = tir_emit_select(e, *small, mul(e, d, tir_emit_const(d, 0x1p64)), d);
    V field = LLVMBuildLShr(e->b, bits_of(e, v), int64(e, 52), "");
    V less = LLVMBuildSub(e->b, field, int64(e, 64), "");
    *exponent = tir_emit_select(e, *small, less, field);
    return v;
}

// One step of long division: r less a multiple of d 2^shift, at most 50 bits of the quotient.
static V remainder_step(struct emit *e, V r, V d)
{
    V r_exponent, d_exponent, r_small, d_small;
    normalize(e, r, &r_small, &r_exponent);
    V v = normalize(e, d, &d_small, &d_exponent);
    V shift = LLVMBuildSub(e->b, LLVMBuildSub(e->b, r_exponent, d_exponent, ""), int64(e, 50), "");
    shift = tir_emit_binary(e, "llvm.smax", shift, int64(e, 0));
    V back = LLVMBuildSub(e->b, shift, int64(e, 64), "");
    V by = scale(e, v, tir_emit_select(e, d_small, back, shift));
    V quotient = tir_emit_unary(e, "llvm.trunc", LLVMBuildFDiv(e->b, r, by, ""));
    V rest = tir_emit_fma(e, LLVMBuildFNeg(e->b, quotient, ""), by, r);
    V negative = tir_emit_fcmp(e, LLVMRealOLT, rest, tir_emit_const(rest, 0)); // rounded up
    return tir_emit_select(e, negative, add(e, rest, by), rest);
}

// Long division in f64, where every step is exact.
V tir_emit_remainder(struct emit *e, V x, V y)
{
    LLVMTypeRef type = LLVMTypeOf(x), f64 = e->ll->f64;
    V size = tir_emit_unary(e, "llvm.fabs", x), d = tir_emit_unary(e, "llvm.fabs", y);
    if (type != f64) {
        size = LLVMBuildFPExt(e->b, size, f64, "");
        d = LLVMBuildFPExt(e->b, d, f64, "");
    }
    V valid = LLVMBuildAnd(e->b, tir_emit_fcmp(e, LLVMRealOGT, d, tir_emit_const(d, 0)),
                           tir_emit_fcmp(e, LLVMRealOLT, size, tir_emit_const(size, INFINITY)), "");
    size = tir_emit_select(e, valid, size, tir_emit_const(size, -1)); // below d: no step
    LLVMBasicBlockRef from = LLVMGetInsertBlock(e->b), top = tir_emit_block(e, "remainder");
    LLVMBasicBlockRef step = tir_emit_block(e, "remainder_step");
    LLVMBasicBlockRef done = tir_emit_block(e, "remainder_done");
    LLVMBuildBr(e->b, top);
    tir_emit_at(e, top);
    V r = LLVMBuildPhi(e->b, f64, "");
    LLVMBuildCondBr(e->b, tir_emit_fcmp(e, LLVMRealOGE, r, d), step, done);
    tir_emit_at(e, step);
    V next = remainder_step(e, r, d);
    LLVMBuildBr(e->b, top);
    LLVMAddIncoming(r, (V[]){size, next}, (LLVMBasicBlockRef[]){from, step}, 2);
    tir_emit_at(e, done);
    V v = type == f64 ? r : LLVMBuildFPTrunc(e->b, r, type, "");
    v = tir_emit_binary(e, "llvm.copysign", v, x);
    return tir_emit_select(e, valid, v, tir_emit_const(x, NAN));
}
