// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// f16 and bf16 over 32 lanes: the functions for alu_half.def.
//
// Sums, differences and products are computed in single precision and rounded again: with 24 bits,
// at least twice the 11 or 8 of the result and two more, the second rounding never changes it.

#include <math.h>

#include "emu/lane/alu.h"
#include "emu/lane/fp.h"

static inline float widen(uint16_t h, bool is_bf16)
{
    return is_bf16 ? emu_bf16_to_f32(h) : emu_f16_to_f32(h);
}

static inline uint16_t narrow(float f, bool is_bf16)
{
    return is_bf16 ? emu_f32_to_bf16(f) : emu_f32_to_f16(f);
}

static inline bool is_nan(uint16_t h, bool is_bf16)
{
    return (h & 0x7fff) > (is_bf16 ? 0x7f80 : 0x7c00);
}

static inline uint16_t half_add(uint16_t a, uint16_t b, bool bf)
{
    return narrow(widen(a, bf) + widen(b, bf), bf);
}

static inline uint16_t half_sub(uint16_t a, uint16_t b, bool bf)
{
    return narrow(widen(a, bf) - widen(b, bf), bf);
}

static inline uint16_t half_mul(uint16_t a, uint16_t b, bool bf)
{
    return narrow(widen(a, bf) * widen(b, bf), bf);
}

static inline uint16_t half_fma(uint16_t a, uint16_t b, uint16_t c, bool bf)
{
    return emu_fma_narrow(widen(a, bf), widen(b, bf), widen(c, bf), bf ? EMU_bf16 : EMU_f16);
}

// The NaN that a tensor copy fills in outside of the tensor, of either sign.
static inline bool is_oob(uint16_t h)
{
    return (h & 0x7fff) == EMU_NAN_OOB;
}

// .oob: a factor from outside of the tensor makes the result zero.
static inline uint16_t half_fma_oob(uint16_t a, uint16_t b, uint16_t c, bool bf)
{
    return is_oob(a) || is_oob(b) ? 0 : half_fma(a, b, c, bf);
}

static inline uint16_t half_abs(uint16_t a, bool bf)
{
    return is_nan(a, bf) ? EMU_NAN_F16 : a & 0x7fff;
}

static inline uint16_t half_neg(uint16_t a, bool bf)
{
    return is_nan(a, bf) ? EMU_NAN_F16 : a ^ 0x8000;
}

// Sign and magnitude as a number that orders as the half does; -0 is below +0.
static inline int32_t order(uint16_t a)
{
    return a & 0x8000 ? -(int32_t)(a & 0x7fff) - 1 : a;
}

static inline uint16_t pick(uint16_t a, uint16_t b, bool want_min, bool bf)
{
    if (is_nan(a, bf))
        return is_nan(b, bf) ? EMU_NAN_F16 : b;
    if (is_nan(b, bf))
        return a;
    return (order(a) < order(b)) == want_min ? a : b;
}

static inline uint16_t half_min(uint16_t a, uint16_t b, bool bf)
{
    return pick(a, b, true, bf);
}

static inline uint16_t half_max(uint16_t a, uint16_t b, bool bf)
{
    return pick(a, b, false, bf);
}

static inline uint16_t half_min_nan(uint16_t a, uint16_t b, bool bf)
{
    return is_nan(a, bf) || is_nan(b, bf) ? EMU_NAN_F16 : pick(a, b, true, bf);
}

static inline uint16_t half_max_nan(uint16_t a, uint16_t b, bool bf)
{
    return is_nan(a, bf) || is_nan(b, bf) ? EMU_NAN_F16 : pick(a, b, false, bf);
}

static inline uint16_t xorsign(uint16_t magnitude, uint16_t a, uint16_t b, bool bf)
{
    return is_nan(magnitude, bf) ? EMU_NAN_F16 : magnitude | ((a ^ b) & 0x8000);
}

static inline uint16_t half_min_xorsign(uint16_t a, uint16_t b, bool bf)
{
    return xorsign(half_min(a & 0x7fff, b & 0x7fff, bf), a, b, bf);
}

static inline uint16_t half_max_xorsign(uint16_t a, uint16_t b, bool bf)
{
    return xorsign(half_max(a & 0x7fff, b & 0x7fff, bf), a, b, bf);
}

static inline uint16_t half_min_nan_xorsign(uint16_t a, uint16_t b, bool bf)
{
    return xorsign(half_min_nan(a & 0x7fff, b & 0x7fff, bf), a, b, bf);
}

static inline uint16_t half_max_nan_xorsign(uint16_t a, uint16_t b, bool bf)
{
    return xorsign(half_max_nan(a & 0x7fff, b & 0x7fff, bf), a, b, bf);
}

static inline uint16_t half_ex2(uint16_t a, bool bf)
{
    return narrow(exp2f(widen(a, bf)), bf);
}

static inline uint16_t half_tanh(uint16_t a, bool bf)
{
    return narrow(tanhf(widen(a, bf)), bf);
}

// clang-format off
#define LOW(x)  ((uint16_t)(x))
#define HIGH(x) ((uint16_t)((x) >> 16))
#define PAIR(low, high) ((uint32_t)(high) << 16 | (low))

#define HALF1(op, flags, fn)                                                                       \
    EMU_ALU_FN1(op##_f16, f16, f16, flags, fn(a, false))                                           \
    EMU_ALU_FN1(op##_bf16, bf16, bf16, flags, fn(a, true))                                         \
    EMU_ALU_FN1(op##_f16x2, f16x2, f16x2, flags, PAIR(fn(LOW(a), false), fn(HIGH(a), false)))      \
    EMU_ALU_FN1(op##_bf16x2, bf16x2, bf16x2, flags, PAIR(fn(LOW(a), true), fn(HIGH(a), true)))
#define HALF2(op, flags, fn)                                                                       \
    EMU_ALU_FN2(op##_f16, f16, f16, f16, flags, fn(a, b, false))                                   \
    EMU_ALU_FN2(op##_bf16, bf16, bf16, bf16, flags, fn(a, b, true))                                \
    EMU_ALU_FN2(op##_f16x2, f16x2, f16x2, f16x2, flags,                                            \
                PAIR(fn(LOW(a), LOW(b), false), fn(HIGH(a), HIGH(b), false)))                      \
    EMU_ALU_FN2(op##_bf16x2, bf16x2, bf16x2, bf16x2, flags,                                        \
                PAIR(fn(LOW(a), LOW(b), true), fn(HIGH(a), HIGH(b), true)))
#define HALF3(op, flags, fn)                                                                       \
    EMU_ALU_FN3(op##_f16, f16, f16, f16, f16, flags, fn(a, b, c, false))                           \
    EMU_ALU_FN3(op##_bf16, bf16, bf16, bf16, bf16, flags, fn(a, b, c, true))                       \
    EMU_ALU_FN3(op##_f16x2, f16x2, f16x2, f16x2, f16x2, flags,                                     \
                PAIR(fn(LOW(a), LOW(b), LOW(c), false), fn(HIGH(a), HIGH(b), HIGH(c), false)))     \
    EMU_ALU_FN3(op##_bf16x2, bf16x2, bf16x2, bf16x2, bf16x2, flags,                                \
                PAIR(fn(LOW(a), LOW(b), LOW(c), true), fn(HIGH(a), HIGH(b), HIGH(c), true)))
#include "emu/lane/alu_half.def"

#define HALF1(op, flags, fn)                                                                       \
    EMU_ALU_ROW1(op##_f16, f16, f16, flags, 0)                                                     \
    EMU_ALU_ROW1(op##_bf16, bf16, bf16, flags, 0)                                                  \
    EMU_ALU_ROW1(op##_f16x2, f16x2, f16x2, flags, 0)                                               \
    EMU_ALU_ROW1(op##_bf16x2, bf16x2, bf16x2, flags, 0)
#define HALF2(op, flags, fn)                                                                       \
    EMU_ALU_ROW2(op##_f16, f16, f16, f16, flags, 0)                                                \
    EMU_ALU_ROW2(op##_bf16, bf16, bf16, bf16, flags, 0)                                            \
    EMU_ALU_ROW2(op##_f16x2, f16x2, f16x2, f16x2, flags, 0)                                        \
    EMU_ALU_ROW2(op##_bf16x2, bf16x2, bf16x2, bf16x2, flags, 0)
#define HALF3(op, flags, fn)                                                                       \
    EMU_ALU_ROW3(op##_f16, f16, f16, f16, f16, flags, 0)                                           \
    EMU_ALU_ROW3(op##_bf16, bf16, bf16, bf16, bf16, flags, 0)                                      \
    EMU_ALU_ROW3(op##_f16x2, f16x2, f16x2, f16x2, f16x2, flags, 0)                                 \
    EMU_ALU_ROW3(op##_bf16x2, bf16x2, bf16x2, bf16x2, bf16x2, flags, 0)
const struct emu_alu_row emu_alu_half_rows[] = {
#include "emu/lane/alu_half.def"
    {0}
};
// clang-format on
