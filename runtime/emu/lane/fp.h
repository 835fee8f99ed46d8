// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions between the floating-point formats of PTX, in integers: the host's rounding mode and
// its treatment of subnormals do not matter here.
#ifndef EMU_FP_H
#define EMU_FP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "emu/decode/program.h"

static const uint32_t EMU_NAN_F32 = 0x7fffffff;
static const uint16_t EMU_NAN_F16 = 0x7fff; // bf16 too
static const uint16_t EMU_NAN_OOB = 0x7ff7; // what tensor copies fill in, in every format

static inline float emu_f32_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t emu_f32_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline double emu_f64_of(uint64_t bits)
{
    double f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint64_t emu_f64_bits(double f)
{
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

// Every half is a float: move the fields, then scale by the difference of the biases.
static inline float emu_f16_to_f32(uint16_t h)
{
    const uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;
    const uint32_t scaled = emu_f32_bits(emu_f32_of(magnitude) * 0x1p112f);
    const uint32_t special = magnitude | 0x7f800000;
    return emu_f32_of(((h & 0x7c00) == 0x7c00 ? special : scaled) | (uint32_t)(h & 0x8000) << 16);
}

static inline float emu_bf16_to_f32(uint16_t h)
{
    return emu_f32_of((uint32_t)h << 16);
}

static inline uint16_t emu_f32_to_bf16(float f) // to nearest even
{
    const uint32_t bits = emu_f32_bits(f);
    const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? EMU_NAN_F16 : rounded >> 16);
}

// A finite value is mantissa * 2^exponent; rounds it to a type, and gives the type's bits.
uint64_t emu_fp_round(bool negative, uint64_t mantissa, int exponent, enum emu_type type,
                      enum emu_round round, bool satfinite);
// A double as any narrower format.
uint64_t emu_fp_from_f64(double x, enum emu_type type, enum emu_round round, bool satfinite);
// The same with the random bits of EMU_RS, as a fraction of 2^64.
uint64_t emu_fp_from_f64_random(double x, enum emu_type type, enum emu_round round, uint64_t random,
                                bool satfinite);
// Any format as a double, exactly.
double emu_fp_to_f64(uint64_t bits, enum emu_type type);

// a * b + c rounded once to f16 or bf16.
uint16_t emu_fma_narrow(double a, double b, double c, enum emu_type type);

static inline uint16_t emu_f32_to_f16(float f) // to nearest even
{
    return (uint16_t)emu_fp_from_f64(f, EMU_f16, EMU_RN, false);
}

#endif
