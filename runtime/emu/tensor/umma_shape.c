// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tcgen05.mma: what an instruction descriptor says, and which shapes and types there are.

#include "emu/tensor/umma.h"

static enum emu_type float8(uint32_t code)
{
    static const enum emu_type types[] = {EMU_e4m3, EMU_e5m2, EMU_none, EMU_e2m3,
                                          EMU_e3m2, EMU_e2m1, EMU_none, EMU_none};
    return types[code];
}

static enum emu_type type_of(uint32_t code, enum emu_umma_kind kind)
{
    switch (kind) {
    case EMU_UMMA_F16:
        return code == 0 ? EMU_f16 : code == 1 ? EMU_bf16 : EMU_none;
    case EMU_UMMA_TF32:
        return code == 2 ? EMU_tf32 : EMU_none;
    case EMU_UMMA_F8F6F4:
        return float8(code);
    case EMU_UMMA_I8:
        return code == 0 ? EMU_u8 : code == 1 ? EMU_s8 : EMU_none;
    case EMU_UMMA_MXF8F6F4:
        return float8(code);
    default:
        return code == 1 ? EMU_e2m1 : EMU_none;
    }
}

static enum emu_type result_of(uint32_t code, enum emu_umma_kind kind)
{
    if (kind == EMU_UMMA_I8)
        return code == 2 ? EMU_s32 : EMU_none;
    return code == 1 ? EMU_f32 : code == 0 && kind != EMU_UMMA_TF32 ? EMU_f16 : EMU_none;
}

// The kinds with scales: M is in units of 128, and D is f32. PTX has 128 rows of a pair, too, but
// says where scales are for 128 rows of a CTA alone; with 64 of them CUTLASS keeps the scales of B
// elsewhere (ScaleFactorDuplicated2by2).
static bool scaled_shape_of(uint32_t x, enum emu_umma_kind kind, bool pair,
                            struct emu_umma_shape *s)
{
    const bool is_8bit = kind == EMU_UMMA_MXF8F6F4;
    const uint8_t bits = is_8bit ? 8 : 4;
    const enum emu_type a = type_of(x >> 7 & 7, kind);
    const enum emu_type b = type_of(x >> 10 & (is_8bit ? 7 : 3), kind);
    *s = (struct emu_umma_shape){.m = (x >> 27 & 3) << 7,
                                 .n = (x >> 17 & 63) << 3,
                                 .k = 256u / bits,
                                 .a = {(uint8_t)a, bits, false},
                                 .b = {(uint8_t)b, bits, false},
                                 .d = EMU_f32,
                                 .negate_a = x >> 13 & 1,
                                 .negate_b = x >> 14 & 1,
                                 .trans_a = x >> 15 & 1,
                                 .trans_b = x >> 16 & 1,
                                 .scale = x >> 23 & 1 ? EMU_ue8m0 : EMU_ue4m3,
                                 .scale_a = x >> 29 & 3,
                                 .scale_b = x >> 4 & 3};
    const bool scale_ok = s->scale == EMU_ue8m0 || kind == EMU_UMMA_MXF4NVF4;
    const bool trans_ok = is_8bit || !(s->trans_a || s->trans_b || x >> 31);
    return a && b && scale_ok && trans_ok && s->m == (pair ? 256 : 128) && s->n &&
           s->n <= EMU_UMMA_MOST_N && s->n % (pair ? 16 : 8) == 0 && !(x >> 2 & 1) &&
           !(x & (1u << 3 | 1u << 6 | 7u << 24 | (is_8bit ? 1u << 31 : 1u << 12)));
}

bool emu_umma_shape_of(uint32_t x, enum emu_umma_kind kind, uint32_t op, struct emu_umma_shape *s)
{
    const bool pair = op & EMU_UMMA_PAIR, ws = op & EMU_UMMA_WS;
    if (kind >= EMU_UMMA_MXF8F6F4)
        return scaled_shape_of(x, kind, pair, s);
    const enum emu_type a = type_of(x >> 7 & 7, kind), b = type_of(x >> 10 & 7, kind);
    const uint8_t bits = kind == EMU_UMMA_F16 ? 16 : kind == EMU_UMMA_TF32 ? 32 : 8;
    *s = (struct emu_umma_shape){.m = (x >> 24 & 31) << 4,
                                 .n = (x >> 17 & 63) << 3,
                                 .k = 256u / bits,
                                 .a = {(uint8_t)a, bits, false},
                                 .b = {(uint8_t)b, bits, false},
                                 .d = result_of(x >> 4 & 3, kind),
                                 .negate_a = x >> 13 & 1,
                                 .negate_b = x >> 14 & 1,
                                 .trans_a = x >> 15 & 1,
                                 .trans_b = x >> 16 & 1,
                                 .saturate = x >> 3 & 1};
    const bool m_ok =
        pair ? s->m == 128 || s->m == 256 : s->m == 64 || s->m == 128 || (ws && s->m == 32);
    const uint32_t step = kind == EMU_UMMA_I8 && (s->n > 32 || pair) ? 16 : 8;
    const uint32_t reserved = 1u << 6 | 1u << 23 | 1u << 29 | (ws ? 0 : 3u << 30) |
                              (kind == EMU_UMMA_I8 ? 3u << 13 : 1u << 3);
    const bool n_ok = ws ? s->n == 64 || s->n == 128 || s->n == 256
                         : s->n && s->n <= EMU_UMMA_MOST_N && s->n % (pair ? 2 * step : step) == 0;
    return a && b && s->d && m_ok && n_ok && !(x >> 2 & 1) && !(x & reserved);
}
