// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cvt: between any two types.
//
// All lanes go through one wide form: 64-bit integers, or doubles, which hold every narrower format
// exactly. So there is one function to widen each type and one to narrow to each, not one for every
// pair; each loop over the lanes stays inside its switch.

#include <math.h>
#include <stdalign.h>
#include <string.h>

#include "emu/lane/cvt.h"
#include "emu/lane/fp.h"
#include "emu/run/state.h"

union wide {
    uint64_t u[EMU_WARP];
    double f[EMU_WARP];
};

static bool is_float(enum emu_type type)
{
    return emu_types[type].kind == EMU_KIND_FLOAT;
}

static void load_ints(uint64_t *out, const void *from, uint32_t width, uint32_t bits,
                      bool is_signed)
{
    for (int i = 0; i < EMU_WARP; i++) {
        const uint64_t raw = width == 2   ? ((const uint16_t *)from)[i]
                             : width == 4 ? ((const uint32_t *)from)[i]
                                          : ((const uint64_t *)from)[i];
        const uint64_t cut = raw << (64 - bits);
        out[i] = is_signed ? (uint64_t)((int64_t)cut >> (64 - bits)) : cut >> (64 - bits);
    }
}

static void store_bits(void *to, const uint64_t *v, uint32_t width)
{
    for (int i = 0; i < EMU_WARP; i++)
        if (width == 2)
            ((uint16_t *)to)[i] = (uint16_t)v[i];
        else if (width == 4)
            ((uint32_t *)to)[i] = (uint32_t)v[i];
        else
            ((uint64_t *)to)[i] = v[i];
}

static void flush_inputs(uint64_t *v, enum emu_type type)
{
    if (type == EMU_f32)
        for (int i = 0; i < EMU_WARP; i++)
            v[i] = v[i] & 0x7f800000 ? v[i] : v[i] & 0x80000000;
}

static double to_integral(double x, enum emu_round round)
{
    switch (round) {
    case EMU_RZ:
        return trunc(x);
    case EMU_RM:
        return floor(x);
    case EMU_RP:
        return ceil(x);
    default:
        return rint(x); // the host rounds to nearest even
    }
}

// A double as an integer: clamped to the type, NaN as PTX says.
static uint64_t to_int(double x, enum emu_type type, enum emu_type from)
{
    const uint32_t bits = emu_types[type].bits;
    const bool is_signed = emu_types[type].kind == EMU_KIND_SINT;
    if (x != x)
        return from == EMU_f64 || bits == 64 ? (uint64_t)1 << (bits - 1) : 0;
    const double high = ldexp(1.0, (int)bits - (is_signed ? 1 : 0)), low = is_signed ? -high : 0;
    if (x >= high)
        return (is_signed ? (uint64_t)1 << (bits - 1) : bits == 64 ? 0 : (uint64_t)1 << bits) - 1;
    if (x < low)
        return is_signed ? UINT64_MAX << (bits - 1) : 0;
    return is_signed ? (uint64_t)(int64_t)x : (uint64_t)x;
}

static uint64_t clamp_int(uint64_t v, bool from_signed, enum emu_type type)
{
    const uint32_t bits = emu_types[type].bits;
    const bool is_signed = emu_types[type].kind == EMU_KIND_SINT;
    const uint64_t high = is_signed   ? ((uint64_t)1 << (bits - 1)) - 1
                          : bits < 64 ? ((uint64_t)1 << bits) - 1
                                      : UINT64_MAX;
    if (from_signed && (int64_t)v < 0) {
        if (!is_signed)
            return 0;
        const int64_t low = -(int64_t)high - 1;
        return (int64_t)v < low ? (uint64_t)low : v;
    }
    return v > high ? high : v;
}

// The NaN that a NaN becomes, where hardware keeps what it held: bf16 to f32 moves the bits, f64 to
// f32 keeps the upper ones, f32 to tf32 with .rna cuts. Everything else gives the canonical NaN.
static uint64_t convert_nan(uint64_t bits, enum emu_type from, enum emu_type to,
                            enum emu_round round)
{
    if (from == EMU_bf16 && to == EMU_f32)
        return bits << 16;
    if (from == EMU_f64 && to == EMU_f32)
        return (bits >> 32 & 0x80000000) | 0x7fc00000 | (bits >> 29 & 0x3fffff);
    if (to == EMU_tf32)
        return (round == EMU_RNA ? bits : EMU_NAN_F32) & 0xffffe000;
    return emu_fp_from_f64(NAN, to, EMU_RN, false);
}

static void narrow_floats(union wide *v, const struct emu_insn *in, enum emu_type type)
{
    const bool satfinite = in->op & CVT_SATFINITE;
    const bool plain = !(in->flags & EMU_INSN_FIX) && in->round == EMU_RN;
    if (plain && type == EMU_bf16 && in->type2 == EMU_f32) { // the most frequent one
        for (int i = 0; i < EMU_WARP; i++)
            v->u[i] = emu_f32_to_bf16((float)v->f[i]);
        return;
    }
    for (int i = 0; i < EMU_WARP; i++) {
        double x = v->f[i];
        if (in->op & CVT_INTEGRAL)
            x = to_integral(x, (enum emu_round)in->round);
        if (in->flags & EMU_INSN_SAT)
            x = x > 1 ? 1 : x > 0 ? x : 0;
        if (in->flags & EMU_INSN_RELU)
            x = x < 0 || (x == 0 && signbit(x)) ? 0 : x;
        const enum emu_round round = in->op & CVT_INTEGRAL ? EMU_RN : (enum emu_round)in->round;
        v->u[i] = type == EMU_f64 ? emu_f64_bits(x) : emu_fp_from_f64(x, type, round, satfinite);
        if (in->flags & EMU_INSN_FTZ && type == EMU_f32 && !(v->u[i] & 0x7f800000))
            v->u[i] &= 0x80000000;
    }
}

static void int_to_float(union wide *v, const struct emu_insn *in, bool from_signed,
                         enum emu_type type)
{
    for (int i = 0; i < EMU_WARP; i++) {
        const bool negative = from_signed && (int64_t)v->u[i] < 0;
        const uint64_t magnitude = negative ? 0 - v->u[i] : v->u[i];
        v->u[i] = emu_fp_round(negative, magnitude, 0, type, (enum emu_round)in->round, false);
        if (in->flags & EMU_INSN_SAT) {
            const double x = emu_fp_to_f64(v->u[i], type);
            v->u[i] = emu_fp_from_f64(x > 1 ? 1 : x > 0 ? x : 0, type, EMU_RN, false);
        }
    }
}

EMU_RUN(cvt)
{
    const enum emu_type to = (enum emu_type)in->type, from = (enum emu_type)in->type2;
    const bool from_signed = emu_types[from].kind == EMU_KIND_SINT;
    const bool is_signed = emu_types[to].kind == EMU_KIND_SINT;
    union wide v;
    alignas(16) uint8_t out[8 * EMU_WARP];
    load_ints(v.u, emu_at_ref(w, in->src[0]), 1u << (in->op >> CVT_WIDTH_SHIFT),
              emu_types[from].bits, from_signed);
    if (is_float(from)) {
        if (in->flags & EMU_INSN_FTZ)
            flush_inputs(v.u, from);
        uint64_t bits[EMU_WARP];
        memcpy(bits, v.u, sizeof bits);
        for (int i = 0; i < EMU_WARP; i++)
            v.f[i] = emu_fp_to_f64(v.u[i], from);
        const union wide x = v;
        if (is_float(to)) {
            narrow_floats(&v, in, to);
            for (int i = 0; i < EMU_WARP; i++)
                if (x.f[i] != x.f[i] && !(in->flags & EMU_INSN_SAT))
                    v.u[i] = convert_nan(bits[i], from, to, (enum emu_round)in->round);
        } else {
            for (int i = 0; i < EMU_WARP; i++)
                v.u[i] = to_int(to_integral(v.f[i], (enum emu_round)in->round), to, from);
        }
    } else if (is_float(to)) {
        int_to_float(&v, in, from_signed, to);
    } else if (in->flags & EMU_INSN_SAT) {
        for (int i = 0; i < EMU_WARP; i++)
            v.u[i] = clamp_int(v.u[i], from_signed, to);
    }
    if (!is_float(to)) // a wider register is filled with the sign or with zeros
        load_ints(v.u, v.u, 8, emu_types[to].bits, is_signed);
    store_bits(out, v.u, in->width);
    emu_commit(w, in->dst, out, in->width, mask);
}

// --- decoding ---

uint32_t emu_cvt_source(struct emu_dec *d, const struct emu_operand *o, enum emu_type type,
                        uint32_t *width)
{
    if (!o)
        emu_dec_bad(d, "too few operands");
    const uint32_t least = emu_reg_width(type);
    const enum emu_type as = o->kind == EMU_OPD_REG || o->kind == EMU_OPD_SREG ? o->type : type;
    *width = emu_reg_width(as);
    if (*width < least || *width > 8)
        emu_dec_bad(d, "the source register is narrower than '.%s'", emu_types[type].name);
    return emu_dec_operand(d, o, as);
}

static void set_width(struct emu_insn *in, uint32_t width)
{
    in->op |= (uint8_t)((width == 2 ? 1 : width == 4 ? 2 : 3) << CVT_WIDTH_SHIFT);
}

// A type that a single value can have: floats of 8 bits and fewer come packed only.
static bool is_single(enum emu_type type)
{
    const uint32_t bits = emu_types[type].bits, kind = emu_types[type].kind;
    return (kind == EMU_KIND_FLOAT && bits >= 16) ||
           ((kind == EMU_KIND_UINT || kind == EMU_KIND_SINT) && bits >= 8 && type != EMU_u16x2 &&
            type != EMU_s16x2);
}

void emu_decode_cvt(struct emu_dec *d)
{
    static const char *const integral[] = {"rni", "rzi", "rmi", "rpi", NULL};
    struct emu_insn *in = d->in;
    const int whole = emu_dec_one_of(d, integral);
    in->round = whole >= 0 ? (uint8_t)whole : (uint8_t)emu_dec_round(d);
    in->flags |= emu_dec_mod(d, "ftz") ? EMU_INSN_FTZ : 0;
    in->flags |= emu_dec_mod(d, "sat") ? EMU_INSN_SAT : 0;
    in->flags |= emu_dec_mod(d, "relu") ? EMU_INSN_RELU : 0;
    in->op |= emu_dec_mod(d, "satfinite") ? CVT_SATFINITE : 0;
    const bool pack = emu_dec_mod(d, "pack");
    const enum emu_type to = emu_dec_type(d), from = emu_dec_type(d);
    if (from == EMU_none || to == EMU_none)
        emu_dec_bad(d, "two types expected");
    if (pack) {
        emu_cvt_pack_ints(d, to, from);
        return;
    }
    if (emu_types[to].kind == EMU_KIND_PACKED || emu_types[from].kind == EMU_KIND_PACKED) {
        emu_cvt_packed(d, to, from);
        return;
    }
    if (!is_single(to) || !is_single(from) || in->round == EMU_RS ||
        (is_float(from) && is_float(to) && from != to && whole >= 0 && to != EMU_f32))
        emu_dec_bad(d, "unknown conversion");
    in->op |= whole >= 0 && is_float(to) ? CVT_INTEGRAL : 0;
    uint32_t width;
    const struct emu_operand *o = emu_dec_next(d);
    if (!o || o->kind != EMU_OPD_REG || emu_reg_width(o->type) < emu_reg_width(to))
        emu_dec_bad(d, "the destination is not a register of '.%s' or wider", emu_types[to].name);
    in->run = emu_run_cvt;
    in->type = (uint8_t)to;
    in->type2 = (uint8_t)from;
    in->dst = emu_dec_dst_operand(d, o, o->type);
    in->width = (uint8_t)emu_reg_width(o->type);
    in->src[0] = emu_cvt_source(d, emu_dec_next(d), from, &width);
    set_width(in, width);
}
