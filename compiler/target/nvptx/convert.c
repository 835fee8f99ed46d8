// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions LLVM has no types for: floats of 4 to 8 bits and tf32.
//
// sm_89 and later convert e4m3 and e5m2 by instruction, two at a time, and sm_100a and later the
// floats of 4 and 6 bits. Elsewhere the bits are made
// by integer arithmetic: rounding to nearest even is adding half of the last kept bit, less one
// when the kept part is even; numbers below the smallest normal one are rounded by adding a power
// of two whose last bit has the weight of their last bit.

#include "target/nvptx/emit.h"

#include <math.h>

static V i32_of(struct emit *e, V f32)
{
    return LLVMBuildBitCast(e->b, f32, e->ll->i32, "");
}

static V f32_of(struct emit *e, V i32)
{
    return LLVMBuildBitCast(e->b, i32, e->ll->f32, "");
}

static V and32(struct emit *e, V x, uint32_t mask)
{
    return LLVMBuildAnd(e->b, x, tir_emit_i32(e, mask), "");
}

static V add32(struct emit *e, V x, int64_t y)
{
    return LLVMBuildAdd(e->b, x, tir_emit_i32(e, y), "");
}

static V shr32(struct emit *e, V x, unsigned by)
{
    return LLVMBuildLShr(e->b, x, tir_emit_i32(e, by), "");
}

// bits + half a unit of bit `drop`, less one when that bit is 0: the low `drop` bits are then to be
// dropped.
static V round_even(struct emit *e, V bits, unsigned drop)
{
    V odd = and32(e, shr32(e, bits, drop), 1);
    return LLVMBuildAdd(e->b, add32(e, bits, (INT64_C(1) << (drop - 1)) - 1), odd, "");
}

struct small_float {
    unsigned width;      // bits, with the sign
    unsigned dropped;    // bits of an f32's mantissa that are lost
    unsigned bias_shift; // 127 - the exponent bias
    float least_normal, magic;
    unsigned max, nan;  // their bits; without a NaN: the largest number
    uint64_t converted; // the feature that has its conversions
    const char *to, *from;
};
static const struct small_float formats[TIR_ELEM_COUNT] = {
    [TIR_E2M1] = {4, 22, 126, 1, 0x1p22f, 0x7, 0x7, TIR_HAS_CVT_FP4,
                  "llvm.nvvm.ff.to.e2m1x2.rn.satfinite", "llvm.nvvm.e2m1x2.to.f16x2.rn"},
    [TIR_E3M2] = {6, 21, 124, 0x1p-2f, 0x1p19f, 0x1f, 0x1f, TIR_HAS_CVT_FP4,
                  "llvm.nvvm.ff.to.e3m2x2.rn.satfinite", "llvm.nvvm.e3m2x2.to.f16x2.rn"},
    [TIR_E2M3] = {6, 20, 126, 1, 0x1p20f, 0x1f, 0x1f, TIR_HAS_CVT_FP4,
                  "llvm.nvvm.ff.to.e2m3x2.rn.satfinite", "llvm.nvvm.e2m3x2.to.f16x2.rn"},
    [TIR_E4M3] = {8, 20, 120, 0x1p-6f, 0x1p14f, 0x7e, 0x7f, TIR_HAS_CVT_FP8,
                  "llvm.nvvm.ff.to.e4m3x2.rn", "llvm.nvvm.e4m3x2.to.f16x2.rn"},
    [TIR_E5M2] = {8, 21, 112, 0x1p-14f, 0x1p7f, 0x7b, 0x7f, TIR_HAS_CVT_FP8,
                  "llvm.nvvm.ff.to.e5m2x2.rn", "llvm.nvvm.e5m2x2.to.f16x2.rn"}};

static bool by_hardware(const struct emit *e, const struct small_float *t)
{
    return e->ll->target->features & t->converted;
}

static V small_by_bits(struct emit *e, const struct small_float *t, V x)
{
    V size = tir_emit_unary(e, "llvm.fabs", x), bits = i32_of(e, size);
    V rounded = shr32(e, add32(e, round_even(e, bits, t->dropped), -((int64_t)t->bias_shift << 23)),
                      t->dropped);
    V magic = tir_emit_const(x, t->magic);
    V tiny =
        LLVMBuildSub(e->b, i32_of(e, LLVMBuildFAdd(e->b, size, magic, "")), i32_of(e, magic), "");
    V is_tiny = tir_emit_fcmp(e, LLVMRealOLT, size, tir_emit_const(x, t->least_normal));
    V is_nan = tir_emit_fcmp(e, LLVMRealUNO, x, x);
    // Infinities and everything too large end up above max as unsigned numbers.
    V normal = tir_emit_binary(e, "llvm.umin", rounded, tir_emit_i32(e, t->max));
    V v = tir_emit_select(e, is_tiny, tiny, normal);
    V sign = and32(e, shr32(e, i32_of(e, x), 32 - t->width), 1u << (t->width - 1));
    v = LLVMBuildOr(e->b, v, sign, "");
    return tir_emit_select(e, is_nan, tir_emit_i32(e, t->nan), v);
}

// ue8m0: powers of two; rounds up. Zero and what is smaller than 2^-127 give 2^-127.
static V scale_by_bits(struct emit *e, V x)
{
    V bits = i32_of(e, x);
    V up = shr32(e, add32(e, bits, 0x7fffff), 23);
    up = tir_emit_binary(e, "llvm.umin", up, tir_emit_i32(e, 254));
    up = tir_emit_select(e, tir_emit_icmp(e, LLVMIntULE, bits, tir_emit_i32(e, 0x400000)),
                         tir_emit_i32(e, 0), up);
    V bad = tir_emit_fcmp(e, LLVMRealULT, x, tir_emit_const(x, 0)); // NaN too
    up = tir_emit_select(e, bad, tir_emit_i32(e, 0xff), up);
    V is_zero = tir_emit_fcmp(e, LLVMRealOEQ, x, tir_emit_const(x, 0)); // of either sign
    return tir_emit_select(e, is_zero, tir_emit_i32(e, 0), up);
}

V tir_emit_to_fp8(struct emit *e, V f32, enum tir_elem to)
{
    if (to == TIR_UE8M0)
        return LLVMBuildTrunc(e->b, scale_by_bits(e, f32), e->ll->i8, "");
    if (to == TIR_UE4M3) { // e4m3, and NaN for what is negative
        V v = tir_emit_to_fp8(e, f32, TIR_E4M3);
        V bad = tir_emit_fcmp(e, LLVMRealULT, f32, tir_emit_const(f32, 0));
        v = tir_emit_select(e, bad, LLVMConstInt(e->ll->i8, 0x7f, false), v);
        return LLVMBuildAnd(e->b, v, LLVMConstInt(e->ll->i8, 0x7f, false), "");
    }
    const struct small_float *t = &formats[to];
    V v;
    if (by_hardware(e, t))
        v = tir_llvm_call(e->ll, t->to, NULL, 0, (V[]){tir_emit_const(f32, 0), f32}, 2);
    else
        v = small_by_bits(e, t, f32);
    return LLVMBuildTrunc(e->b, v, e->ll->i8, "");
}

// What an instruction has just rounded to `t` beside a zero; NULL: v is no such thing.
static V rounded_beside_zero(V v, const struct small_float *t)
{
    V call = LLVMIsATruncInst(v) ? LLVMIsACallInst(LLVMGetOperand(v, 0)) : NULL;
    size_t length = 0;
    const char *name = call ? LLVMGetValueName2(LLVMGetCalledValue(call), &length) : "";
    bool same = length == strlen(t->to) && !memcmp(name, t->to, length);
    return same && LLVMIsNull(LLVMGetOperand(call, 0)) ? LLVMGetOperand(call, 1) : NULL;
}

V tir_emit_fp8_pair(struct emit *e, V low, V high)
{
    for (uint32_t i = TIR_E3M2; i <= TIR_E5M2; i++) { // two e2m1 make one byte
        V x = rounded_beside_zero(low, &formats[i]), y = rounded_beside_zero(high, &formats[i]);
        if (x && y)
            return tir_llvm_call(e->ll, formats[i].to, NULL, 0, (V[]){y, x}, 2);
    }
    return NULL;
}

static V scale_from_bits(struct emit *e, V bits)
{
    V v = LLVMBuildShl(e->b, bits, tir_emit_i32(e, 23), "");
    V is_zero = tir_emit_icmp(e, LLVMIntEQ, bits, tir_emit_i32(e, 0));
    v = tir_emit_select(e, is_zero, tir_emit_i32(e, 0x400000), v);
    V is_nan = tir_emit_icmp(e, LLVMIntEQ, bits, tir_emit_i32(e, 0xff));
    return f32_of(e, tir_emit_select(e, is_nan, tir_emit_i32(e, 0x7fffffff), v));
}

// The formats are halves with other exponents, whose bias is 15.
static V small_from_bits(struct emit *e, V bits, enum tir_elem from)
{
    const struct small_float *t = &formats[from];
    const unsigned sign_bit = 1u << (t->width - 1);
    V sign = LLVMBuildShl(e->b, and32(e, bits, sign_bit), tir_emit_i32(e, 16 - t->width), "");
    V rest = LLVMBuildShl(e->b, and32(e, bits, sign_bit - 1), tir_emit_i32(e, t->dropped - 13), "");
    V half = LLVMBuildTrunc(e->b, LLVMBuildOr(e->b, sign, rest, ""), e->ll->i16, "");
    V v = LLVMBuildFPExt(e->b, LLVMBuildBitCast(e->b, half, e->ll->f16, ""), e->ll->f32, "");
    if (from == TIR_E5M2)
        return v;
    v = LLVMBuildFMul(e->b, v, tir_emit_const(v, ldexp(1, (int)t->bias_shift - 112)), "");
    if (t->nan == t->max)
        return v;
    V is_nan = tir_emit_icmp(e, LLVMIntEQ, and32(e, bits, sign_bit - 1), tir_emit_i32(e, t->nan));
    return tir_emit_select(e, is_nan, tir_emit_const(v, NAN), v);
}

V tir_emit_from_fp8(struct emit *e, V bits, enum tir_elem from)
{
    if (from == TIR_UE8M0)
        return scale_from_bits(e, LLVMBuildZExt(e->b, bits, e->ll->i32, ""));
    if (from == TIR_UE4M3) {
        bits = LLVMBuildAnd(e->b, bits, LLVMConstInt(e->ll->i8, 0x7f, false), "");
        from = TIR_E4M3;
    }
    const struct small_float *t = &formats[from];
    if (!by_hardware(e, t))
        return small_from_bits(e, LLVMBuildZExt(e->b, bits, e->ll->i32, ""), from);
    V pair = LLVMBuildZExt(e->b, bits, e->ll->i16, "");
    V halves = tir_llvm_call(e->ll, t->from, NULL, 0, &pair, 1);
    V half = LLVMBuildExtractElement(e->b, halves, tir_emit_i32(e, 0), "");
    return LLVMBuildFPExt(e->b, half, e->ll->f32, "");
}

V tir_emit_narrow_bits(struct emit *e, V bits, enum tir_elem elem)
{
    const uint32_t width = tir_elem_width(elem);
    if (width >= 8 || tir_elems[elem].bits > 8)
        return bits;
    return LLVMBuildAnd(e->b, bits, LLVMConstInt(e->ll->i8, (1u << width) - 1, false), "");
}

V tir_emit_to_tf32(struct emit *e, V f32)
{
    V bits = i32_of(e, f32);
    V rounded = and32(e, round_even(e, bits, 13), 0xffffe000);
    // Infinity and NaN keep their bits; rounding a NaN could carry into the sign.
    V size = tir_emit_unary(e, "llvm.fabs", f32);
    V is_finite = tir_emit_fcmp(e, LLVMRealOLT, size, tir_emit_const(f32, INFINITY));
    return tir_emit_select(e, is_finite, f32_of(e, rounded), f32);
}

V tir_emit_f32_to_odd(struct emit *e, V f64)
{
    V cut = tir_llvm_call(e->ll, "llvm.nvvm.d2f.rz", NULL, 0, &f64, 1);
    V back = LLVMBuildFPExt(e->b, cut, e->ll->f64, "");
    V inexact = tir_emit_fcmp(e, LLVMRealONE, back, f64);
    V odd = LLVMBuildOr(e->b, i32_of(e, cut), LLVMBuildZExt(e->b, inexact, e->ll->i32, ""), "");
    return f32_of(e, odd);
}
