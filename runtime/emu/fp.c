// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions between the floating-point formats of PTX.

#include "emu/fp.h"

struct format {
    int mantissa; // stored bits
    int exponent; // bits
    bool finite;  // e4m3: no infinity, all ones is the only NaN
};

static const struct format formats[EMU_TYPE_COUNT] = {
    [EMU_f16] = {10, 5, false}, [EMU_bf16] = {7, 8, false},  [EMU_tf32] = {10, 8, false},
    [EMU_f32] = {23, 8, false}, [EMU_f64] = {52, 11, false}, [EMU_e5m2] = {2, 5, false},
    [EMU_e4m3] = {3, 4, true},
};

static uint64_t place(struct format f, enum emu_type type, bool negative, uint64_t magnitude)
{
    uint64_t bits = (uint64_t)negative << (f.mantissa + f.exponent) | magnitude;
    return type == EMU_tf32 ? bits << 13 : bits; // tf32 lies in the upper bits of a float
}

static uint64_t largest(struct format f)
{
    const uint64_t all = ((uint64_t)1 << (f.mantissa + f.exponent)) - 1;
    return f.finite ? all - 1 : all - ((uint64_t)1 << f.mantissa);
}

static uint64_t overflow(struct format f, bool negative, enum emu_round round, bool satfinite)
{
    const bool towards_zero =
        round == EMU_RZ || (round == EMU_RM && !negative) || (round == EMU_RP && negative);
    if (towards_zero || satfinite)
        return largest(f);
    return largest(f) + 1; // infinity; the NaN of a format without it
}

// Whether dropping `rest`, of which `half` would be exactly in the middle, rounds the magnitude up.
static bool rounds_up(enum emu_round round, bool negative, bool odd, uint64_t rest, uint64_t half)
{
    switch (round) {
    case EMU_RZ:
        return false;
    case EMU_RM:
        return negative && rest;
    case EMU_RP:
        return !negative && rest;
    case EMU_RNA:
        return rest >= half;
    case EMU_RN:
        break;
    }
    return rest > half || (rest == half && odd);
}

uint64_t emu_fp_round(bool negative, uint64_t mantissa, int exponent, enum emu_type type,
                      enum emu_round round, bool satfinite)
{
    const struct format f = formats[type];
    const int bias = (1 << (f.exponent - 1)) - 1;
    if (mantissa == 0)
        return place(f, type, negative, 0);
    for (int step = 32; step; step /= 2) // the value is 1.xxx * 2^(exponent + 63)
        if (!(mantissa >> (64 - step))) {
            mantissa <<= step;
            exponent -= step;
        }
    int biased = exponent + 63 + bias;
    int drop = 63 - f.mantissa;
    if (biased < 1) { // subnormal: fewer bits stay
        drop += 1 - biased;
        biased = 0;
    }
    uint64_t kept, rest, half;
    if (drop > 64) {
        kept = 0;
        rest = 1; // below half of the smallest
        half = 2;
    } else if (drop == 64) {
        kept = 0;
        rest = mantissa;
        half = (uint64_t)1 << 63;
    } else {
        kept = mantissa >> drop;
        rest = mantissa & (((uint64_t)1 << drop) - 1);
        half = (uint64_t)1 << (drop - 1);
    }
    kept += rounds_up(round, negative, kept & 1, rest, half);
    // The leading one carries into the exponent field: normal numbers start one exponent lower.
    const uint64_t magnitude =
        biased ? ((uint64_t)(unsigned)(biased - 1) << f.mantissa) + kept : kept;
    if (biased > 2 * bias + 2 || magnitude > largest(f))
        return place(f, type, negative, overflow(f, negative, round, satfinite));
    return place(f, type, negative, magnitude);
}

static uint64_t nan_of(enum emu_type type)
{
    switch (type) {
    case EMU_f16:
    case EMU_bf16:
        return EMU_NAN_F16;
    case EMU_e4m3:
    case EMU_e5m2:
        return 0x7f;
    case EMU_f64:
        return (uint64_t)0x7fffffffffffffff;
    default:
        return EMU_NAN_F32;
    }
}

uint64_t emu_fp_from_f64(double x, enum emu_type type, enum emu_round round, bool satfinite)
{
    const uint64_t bits = emu_f64_bits(x);
    const bool negative = bits >> 63;
    const int biased = (int)(bits >> 52 & 0x7ff);
    const uint64_t low = bits & (((uint64_t)1 << 52) - 1);
    if (biased == 0x7ff) {
        const struct format f = formats[type];
        if (low)
            return nan_of(type);
        if (satfinite)
            return place(f, type, negative, largest(f));
        return place(f, type, negative, largest(f) + 1);
    }
    const uint64_t mantissa = biased ? low | (uint64_t)1 << 52 : low;
    return emu_fp_round(negative, mantissa, (biased ? biased : 1) - 1075, type, round, satfinite);
}

double emu_fp_to_f64(uint64_t bits, enum emu_type type)
{
    if (type == EMU_f64)
        return emu_f64_of(bits);
    if (type == EMU_f16)
        return emu_f16_to_f32((uint16_t)bits);
    if (type == EMU_bf16)
        return emu_bf16_to_f32((uint16_t)bits);
    if (type == EMU_e5m2)
        return emu_f16_to_f32((uint16_t)(bits << 8));
    if (type == EMU_e4m3) {
        const uint32_t magnitude = (uint32_t)(bits & 0x7f) << 20;
        const float f =
            (bits & 0x7f) == 0x7f ? emu_f32_of(EMU_NAN_F32) : emu_f32_of(magnitude) * 0x1p120f;
        return bits & 0x80 ? -f : f;
    }
    return emu_f32_of((uint32_t)(type == EMU_tf32 ? bits & 0xffffe000 : bits));
}

// The product of two narrow numbers is exact in double. Their sum with c may not be: rounding it
// to odd keeps a second rounding from seeing a false tie.
uint16_t emu_fma_narrow(double a, double b, double c, enum emu_type type)
{
    const double p = a * b, s = p + c;
    uint64_t bits = emu_f64_bits(s);
    if (s - s == 0) { // finite
        const double back = s - p;
        const double error = (p - (s - back)) + (c - back);
        if (error != 0 && !(bits & 1))
            bits += (error > 0) == (s > 0) ? 1 : (uint64_t)-1;
    }
    return (uint16_t)emu_fp_from_f64(emu_f64_of(bits), type, EMU_RN, false);
}
