// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the rows of alu_*.def become functions over 32 lanes and rows of a table.
//
// A row is ALU1..ALU4(name, result type, source types..., suffixes, expression over a, b, c, e).
// The types are PTX's; emu_c_<type> is the C type that holds one lane.
#ifndef EMU_ALU_H
#define EMU_ALU_H

#include "emu/decode/isa.h"

typedef uint8_t emu_c_b8;
typedef uint16_t emu_c_b16, emu_c_u16, emu_c_f16, emu_c_bf16;
typedef uint32_t emu_c_b32, emu_c_u32, emu_c_f16x2, emu_c_bf16x2, emu_c_u16x2, emu_c_s16x2;
typedef uint64_t emu_c_b64, emu_c_u64, emu_c_f32x2;
typedef int16_t emu_c_s16;
typedef int32_t emu_c_s32;
typedef int64_t emu_c_s64;
typedef float emu_c_f32;
typedef double emu_c_f64;

#define EMU_ALU_BEGIN(name, D)                                \
    static void name(void *restrict dv, const void *const *s) \
    {                                                         \
        emu_c_##D *restrict d = dv;
#define EMU_ALU_END(D, expr)  \
    d[i] = (emu_c_##D)(expr); \
    }                         \
    }
#define EMU_ALU_LANE(var, T, k) const emu_c_##T var = ((const emu_c_##T *)s[k])[i];

#define EMU_ALU_FN1(name, D, A, flags, expr) \
    EMU_ALU_BEGIN(name, D)                   \
    for (int i = 0; i < EMU_WARP; i++) {     \
        EMU_ALU_LANE(a, A, 0) EMU_ALU_END(D, expr)
#define EMU_ALU_FN2(name, D, A, B, flags, expr) \
    EMU_ALU_BEGIN(name, D)                      \
    for (int i = 0; i < EMU_WARP; i++) {        \
        EMU_ALU_LANE(a, A, 0) EMU_ALU_LANE(b, B, 1) EMU_ALU_END(D, expr)
#define EMU_ALU_FN3(name, D, A, B, C, flags, expr) \
    EMU_ALU_BEGIN(name, D)                         \
    for (int i = 0; i < EMU_WARP; i++) {           \
        EMU_ALU_LANE(a, A, 0) EMU_ALU_LANE(b, B, 1) EMU_ALU_LANE(c, C, 2) EMU_ALU_END(D, expr)
#define EMU_ALU_FN4(name, D, A, B, C, E, flags, expr) \
    EMU_ALU_BEGIN(name, D)                            \
    for (int i = 0; i < EMU_WARP; i++) {              \
        EMU_ALU_LANE(a, A, 0)                         \
        EMU_ALU_LANE(b, B, 1) EMU_ALU_LANE(c, C, 2) EMU_ALU_LANE(e, E, 3) EMU_ALU_END(D, expr)

#define EMU_ALU_ROW1(name, D, A, flags, expr)    {#name, name, EMU_##D, {EMU_##A}, flags},
#define EMU_ALU_ROW2(name, D, A, B, flags, expr) {#name, name, EMU_##D, {EMU_##A, EMU_##B}, flags},
#define EMU_ALU_ROW3(name, D, A, B, C, flags, expr) \
    {#name, name, EMU_##D, {EMU_##A, EMU_##B, EMU_##C}, flags},
#define EMU_ALU_ROW4(name, D, A, B, C, E, flags, expr) \
    {#name, name, EMU_##D, {EMU_##A, EMU_##B, EMU_##C, EMU_##E}, flags},

enum { R = EMU_ROW_R, F = EMU_ROW_F, S = EMU_ROW_S, L = EMU_ROW_L, M = EMU_ROW_M };

#endif
