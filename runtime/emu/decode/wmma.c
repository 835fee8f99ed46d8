// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decoders of wmma.

#include "emu/tensor/wmma.h"
#include "emu/decode/decode.h"

static const struct emu_wmma_shape *take_shape(struct emu_dec *d)
{
    for (const struct emu_wmma_shape *s = emu_wmma_shapes; s->name; s++)
        if (emu_dec_mod(d, s->name)) {
            d->in->size = (uint8_t)(s - emu_wmma_shapes);
            return s;
        }
    emu_dec_bad(d, "unknown shape");
}

// Which elements of A and B a shape has.
static bool fits(const struct emu_wmma_shape *s, enum emu_type type)
{
    switch (type) {
    case EMU_f16:
    case EMU_bf16:
    case EMU_s8:
    case EMU_u8:
        return s->k == 16;
    case EMU_tf32:
        return s->k == 8;
    case EMU_f64:
        return s->k == 4;
    case EMU_s4:
    case EMU_u4:
        return s->k == 32;
    case EMU_b1:
        return s->k == 128;
    default:
        return false;
    }
}

static enum emu_type register_type(enum emu_type type)
{
    return type == EMU_f64 ? EMU_b64 : EMU_b32;
}

static void take_fragment(struct emu_dec *d, const struct emu_wmma_shape *s,
                          enum emu_wmma_side side, enum emu_type type, bool is_dst)
{
    emu_dec_registers(d, emu_wmma_fragment_of(s, side, type).registers, register_type(type),
                      is_dst);
}

static void decode_access(struct emu_dec *d, bool is_load)
{
    static const char *const sides[] = {"a", "b", "c", NULL};
    static const char *const layouts[] = {"row", "col", NULL};
    struct emu_insn *in = d->in;
    const int side = is_load ? emu_dec_one_of(d, sides) : emu_dec_mod(d, "d") ? EMU_WMMA_C : -1;
    const int layout = emu_dec_one_of(d, layouts);
    if (side < 0 || layout < 0)
        emu_dec_bad(d, "which matrix or its layout is missing");
    const struct emu_wmma_shape *s = take_shape(d);
    const enum emu_space space = emu_dec_mod(d, "global") ? EMU_GLOBAL
                                 : emu_dec_mod(d, "shared") || emu_dec_mod(d, "shared::cta")
                                     ? EMU_SHARED
                                     : EMU_GENERIC;
    const enum emu_type type = emu_dec_type(d);
    const bool accumulates = type == EMU_f32 || type == EMU_s32 || type == EMU_f16;
    if (side == EMU_WMMA_C ? s->k == 4 ? type != EMU_f64 : !accumulates : !fits(s, type))
        emu_dec_bad(d, "the shape has no '.%s'", emu_types[type].name);
    if (side != EMU_WMMA_C && emu_types[type].bits < 8 && layout != side)
        emu_dec_bad(d, "elements below 8 bits need .row for a and .col for b");
    in->run = is_load ? emu_run_wmma_load : emu_run_wmma_store;
    in->type = (uint8_t)type;
    in->op = (uint8_t)(side | (layout ? EMU_WMMA_COL : 0));
    emu_dec_args_begin(d);
    if (is_load)
        take_fragment(d, s, (enum emu_wmma_side)side, type, true);
    emu_dec_memory(d, space);
    if (!is_load)
        take_fragment(d, s, EMU_WMMA_C, type, false);
    if (d->at < d->ast->operand_count) {
        in->src[1] = emu_dec_src(d, EMU_b32);
        in->op |= EMU_WMMA_STRIDE;
    }
}

static bool sums_in(enum emu_type a, enum emu_type type)
{
    switch (a) {
    case EMU_f16:
        return type == EMU_f16 || type == EMU_f32;
    case EMU_bf16:
    case EMU_tf32:
        return type == EMU_f32;
    case EMU_f64:
        return type == EMU_f64;
    default:
        return type == EMU_s32;
    }
}

static void decode_product(struct emu_dec *d)
{
    static const char *const layouts[] = {"row", "col", NULL};
    static const char *const bits[] = {"and", "xor", NULL};
    struct emu_insn *in = d->in;
    const struct emu_wmma_shape *s = take_shape(d);
    const bool is_bits = s->k == 128;
    const int op = is_bits ? emu_dec_one_of(d, bits) : 0;
    for (uint32_t i = 0; i < 2; i++) // the fragments do not depend on them
        if (emu_dec_one_of(d, layouts) < 0)
            emu_dec_bad(d, "a layout is missing");
    const enum emu_round round = emu_dec_round(d);
    const enum emu_type first = emu_dec_type(d), second = emu_dec_type(d);
    const enum emu_type third = emu_dec_type(d), last = emu_dec_type(d);
    const bool is_short = third == EMU_none; // f16: .dtype.ctype
    const enum emu_type a = is_short ? EMU_f16 : second, b = is_short ? EMU_f16 : third;
    const enum emu_type c = is_short ? second : last;
    if (!fits(s, a) || !fits(s, b) || !sums_in(a, c) || !sums_in(a, first) || op < 0 ||
        (is_bits && !emu_dec_mod(d, "popc")))
        emu_dec_bad(d, "unknown types");
    in->run = emu_run_wmma_mma;
    in->op = op ? EMU_WMMA_XOR : 0;
    in->op |= c == EMU_s32 && emu_dec_mod(d, "satfinite") ? EMU_WMMA_SATFINITE : 0;
    in->round = (uint8_t)round;
    in->type = (uint8_t)a;
    in->type2 = (uint8_t)b;
    in->width = (uint8_t)c;
    in->space = (uint8_t)first;
    emu_dec_args_begin(d);
    take_fragment(d, s, EMU_WMMA_C, first, true);
    take_fragment(d, s, EMU_WMMA_A, a, false);
    take_fragment(d, s, EMU_WMMA_B, b, false);
    take_fragment(d, s, EMU_WMMA_C, c, false);
}

void emu_decode_wmma(struct emu_dec *d)
{
    static const char *const must[] = {"sync", "aligned", NULL};
    emu_dec_need(d, must);
    d->in->flags |= EMU_INSN_SYNC;
    if (emu_dec_mod(d, "mma"))
        decode_product(d);
    else if (emu_dec_mod(d, "load"))
        decode_access(d, true);
    else if (emu_dec_mod(d, "store"))
        decode_access(d, false);
    else
        emu_dec_bad(d, "unknown instruction");
}
