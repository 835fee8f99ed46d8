// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Comparisons over 32 lanes: the functions for compare.def.

#include <math.h>

#include "emu/lane/alu.h"
#include "emu/lane/fp.h"

// How one lane is stored, and what it is compared as.
typedef float stored_single, value_single;
typedef double stored_twofold, value_twofold;
typedef uint16_t stored_half, stored_brain;
typedef uint32_t stored_half_low, stored_brain_low;
typedef float value_half, value_brain, value_half_low, value_brain_low;
typedef int16_t stored_int16_t, value_int16_t;
typedef int32_t stored_int32_t, value_int32_t;
typedef int64_t stored_int64_t, value_int64_t;
typedef uint16_t stored_uint16_t, value_uint16_t;
typedef uint32_t stored_uint32_t, value_uint32_t;
typedef uint64_t stored_uint64_t, value_uint64_t;

#define LOAD_half(x)      emu_f16_to_f32(x)
#define LOAD_brain(x)     emu_bf16_to_f32(x)
#define LOAD_half_low(x)  emu_f16_to_f32((uint16_t)(x))
#define LOAD_brain_low(x) emu_bf16_to_f32((uint16_t)(x))
#define LOAD_single(x)    (x)
#define LOAD_twofold(x)   (x)
#define LOAD_int16_t(x)   (x)
#define LOAD_int32_t(x)   (x)
#define LOAD_int64_t(x)   (x)
#define LOAD_uint16_t(x)  (x)
#define LOAD_uint32_t(x)  (x)
#define LOAD_uint64_t(x)  (x)

// clang-format off
#define CMP(op, T, C, expr)                                                                        \
    static uint32_t op##_##T(const void *av, const void *bv)                                       \
    {                                                                                              \
        const stored_##C *as = av, *bs = bv;                                                       \
        uint32_t mask = 0;                                                                         \
        for (int i = 0; i < EMU_WARP; i++) {                                                       \
            const value_##C a = LOAD_##C(as[i]), b = LOAD_##C(bs[i]);                              \
            mask |= (uint32_t)((expr) ? 1 : 0) << i;                                               \
        }                                                                                          \
        return mask;                                                                               \
    }
#include "emu/lane/compare.def"

#define CMP(op, T, C, expr)                                                                        \
    {#op "_" #T, op##_##T, EMU_##T, EMU_##T == EMU_f32 || EMU_##T == EMU_f16 || EMU_##T == EMU_f16x2},
const struct emu_cmp_row emu_cmp_rows[] = {
#include "emu/lane/compare.def"
    {0}
};
// clang-format on
