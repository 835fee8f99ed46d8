// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions between the floating-point formats of PTX.

#include "emu/lane/fp.h"

#include <math.h>

enum special {
    SPECIAL_IEEE, // infinities and NaNs
    SPECIAL_NAN,  // e4m3: no infinity, all ones is the only NaN
    SPECIAL_NONE  // numbers only
};

struct format {
    int mantissa; // stored bits
    int exponent; // bits
    enum special special;
};

static const struct format formats[EMU_TYPE_COUNT] = {
    [EMU_f16] = {10, 5, SPECIAL_IEEE},  [EMU_bf16] = {7, 8, SPECIAL_IEEE},
    [EMU_tf32] = {10, 8, SPECIAL_IEEE}, [EMU_f32] = {23, 8, SPECIAL_IEEE},
    [EMU_f64] = {52, 11, SPECIAL_IEEE}, [EMU_e5m2] = {2, 5, SPECIAL_IEEE},
    [EMU_e4m3] = {3, 4, SPECIAL_NAN},   [EMU_e3m2] = {2, 3, SPECIAL_NONE},
    [EMU_e2m3] = {3, 2, SPECIAL_NONE},  [EMU_e2m1] = {1, 2, SPECIAL_NONE},
};

static uint64_t place(struct format f, enum emu_type type, bool negative, uint64_t magnitude)
{
    uint64_t bits = (uint64_t)negative << (f.mantissa + f.exponent) | magnitude;
    return type == EMU_tf32 ? bits << 13 : bits; // tf32 lies in the upper bits of a float
}

static uint64_t largest(struct format f)
{
    const uint64_t all = ((uint64_t)1 << (f.mantissa + f.exponent)) - 1;
    switch (f.special) {
    case SPECIAL_NAN:
        return all - 1;
    case SPECIAL_NONE:
        return all;
    case SPECIAL_IEEE:
        break;
    }
    return all - ((uint64_t)1 << f.mantissa);
}

static uint64_t overflow(struct format f, bool negative, enum emu_round round, bool satfinite)
{
    const bool towards_zero =
        round == EMU_RZ || (round == EMU_RM && !negative) || (round == EMU_RP && negative);
    if (towards_zero || satfinite || f.special == SPECIAL_NONE)
        return largest(f);
    return largest(f) + 1; // infinity; the NaN of a format without it
}

// Whether dropping `rest`, of which `half` would be exactly in the middle, rounds the magnitude up.
// `random` is what .rs adds to the dropped bits, as a fraction of 2^64.
static bool rounds_up(enum emu_round round, bool negative, bool odd, uint64_t rest, uint64_t half,
                      uint64_t random)
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
    case EMU_RS:
        while (!(half >> 63)) {
            half <<= 1;
            rest <<= 1;
        }
        return rest + random < random; // the carry
    case EMU_RN:
        break;
    }
    return rest > half || (rest == half && odd);
}

static uint64_t round_to(bool negative, uint64_t mantissa, int exponent, enum emu_type type,
                         enum emu_round round, uint64_t random, bool satfinite)
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
        half = (uint64_t)1 << 63;
    } else if (drop == 64) {
        kept = 0;
        rest = mantissa;
        half = (uint64_t)1 << 63;
    } else {
        kept = mantissa >> drop;
        rest = mantissa & (((uint64_t)1 << drop) - 1);
        half = (uint64_t)1 << (drop - 1);
    }
    kept += rounds_up(round, negative, kept & 1, rest, half, random);
    // The leading one carries into the exponent field: normal numbers start one exponent lower.
    const uint64_t magnitude =
        biased ? ((uint64_t)(unsigned)(biased - 1) << f.mantissa) + kept : kept;
    if (biased > 2 * bias + 2 || magnitude > largest(f))
        return place(f, type, negative, overflow(f, negative, round, satfinite));
    return place(f, type, negative, magnitude);
}

uint64_t emu_fp_round(bool negative, uint64_t mantissa, int exponent, enum emu_type type,
                      enum emu_round round, bool satfinite)
{
    return round_to(negative, mantissa, exponent, type, round, 0, satfinite);
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
    case EMU_e3m2:
    case EMU_e2m3:
    case EMU_e2m1:
        return largest(formats[type]);
    case EMU_f64:
        return (uint64_t)0x7fffffffffffffff;
    default:
        return EMU_NAN_F32;
    }
}

uint64_t emu_fp_from_f64(double x, enum emu_type type, enum emu_round round, bool satfinite)
{
    return emu_fp_from_f64_random(x, type, round, 0, satfinite);
}

uint64_t emu_fp_from_f64_random(double x, enum emu_type type, enum emu_round round, uint64_t random,
                                bool satfinite)
{
    const uint64_t bits = emu_f64_bits(x);
    const bool negative = bits >> 63;
    const int biased = (int)(bits >> 52 & 0x7ff);
    const uint64_t low = bits & (((uint64_t)1 << 52) - 1);
    if (biased == 0x7ff) {
        const struct format f = formats[type];
        if (low)
            return nan_of(type);
        if (satfinite || f.special == SPECIAL_NONE)
            return place(f, type, negative, largest(f));
        return place(f, type, negative, largest(f) + 1);
    }
    const uint64_t mantissa = biased ? low | (uint64_t)1 << 52 : low;
    return round_to(negative, mantissa, (biased ? biased : 1) - 1075, type, round, random,
                    satfinite);
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
    if (type == EMU_ue8m0)
        return bits == 0xff ? NAN : ldexp(1.0, (int)bits - 127);
    if (formats[type].special == SPECIAL_NONE) { // fewer than 8 bits, all of them numbers
        const struct format f = formats[type];
        const uint64_t magnitude = bits & largest(f);
        const int bias = (1 << (f.exponent - 1)) - 1, e = (int)(magnitude >> f.mantissa);
        const uint64_t fraction = magnitude & (((uint64_t)1 << f.mantissa) - 1);
        const double x = ldexp((double)(fraction + ((uint64_t)(e != 0) << f.mantissa)),
                               (e ? e : 1) - bias - f.mantissa);
        return bits > magnitude ? -x : x;
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
