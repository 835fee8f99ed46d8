// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Single and double precision over 32 lanes: the functions for alu_float.def.
//
// Every NaN that single precision produces is 0x7fffffff, as in hardware. Rounding modes other than
// to nearest are set in the host's environment around the call; compilers must not fold across it,
// which they cannot, since these functions are reached through pointers.

#include <math.h>

#include "emu/lane/alu.h"
#include "emu/lane/fp.h"

static inline float canon(float x)
{
    return x != x ? emu_f32_of(EMU_NAN_F32) : x;
}

static inline bool either_nan(float a, float b)
{
    return a != a || b != b;
}

// The smaller number; -0 is below +0, and a NaN loses against a number.
static inline float lesser(float a, float b)
{
    if (a != a || a == b)
        return a == b && signbit(a) ? a : b;
    return a < b || b != b ? a : b;
}

static inline float greater(float a, float b)
{
    if (a != a || a == b)
        return a == b && !signbit(a) ? a : b;
    return a > b || b != b ? a : b;
}

static inline double lesser64(double a, double b)
{
    if (a != a || a == b)
        return a == b && signbit(a) ? a : b;
    return a < b || b != b ? a : b;
}

static inline double greater64(double a, double b)
{
    if (a != a || a == b)
        return a == b && !signbit(a) ? a : b;
    return a > b || b != b ? a : b;
}

static inline float xorsign(float magnitude, float a, float b)
{
    return !!signbit(a) != !!signbit(b) ? -magnitude : magnitude;
}

// rcp.approx.ftz.f64 computes the upper half of its result only.
static inline double upper(double x)
{
    return emu_f64_of(emu_f64_bits(x) & 0xffffffff00000000u);
}

static inline float lo(uint64_t x)
{
    return emu_f32_of((uint32_t)x);
}

static inline float hi(uint64_t x)
{
    return emu_f32_of((uint32_t)(x >> 32));
}

static inline uint64_t both(float low, float high)
{
    return (uint64_t)emu_f32_bits(high) << 32 | emu_f32_bits(low);
}

// clang-format off
#define ALU1 EMU_ALU_FN1
#define ALU2 EMU_ALU_FN2
#define ALU3 EMU_ALU_FN3
#include "emu/lane/alu_float.def"

#define ALU1 EMU_ALU_ROW1
#define ALU2 EMU_ALU_ROW2
#define ALU3 EMU_ALU_ROW3
const struct emu_alu_row emu_alu_float_rows[] = {
#include "emu/lane/alu_float.def"
    {0}
};
// clang-format on
