// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cvt to and from packed values, and cvt.pack of integers.
//
// A packed type has 2 or 4 elements, the first source in the highest bits; an element may lie in a
// slot wider than itself. Sources are one packed register, or a register for each element.
//
// .rs adds random bits to what is dropped, aligned at their tops, and rounds up on a carry. The
// manual leaves open how 16 bits serve two elements of a packed type of four: here both use all of
// them.

#include <math.h>
#include <stdalign.h>
#include <string.h>

#include "emu/lane/cvt.h"
#include "emu/lane/fp.h"
#include "emu/run/state.h"

static const struct packed {
    enum emu_type type, element;
    uint8_t count;
} packed_types[] = {
    {EMU_f16x2, EMU_f16, 2},   {EMU_bf16x2, EMU_bf16, 2},   {EMU_e4m3x2, EMU_e4m3, 2},
    {EMU_e5m2x2, EMU_e5m2, 2}, {EMU_e3m2x2, EMU_e3m2, 2},   {EMU_e2m3x2, EMU_e2m3, 2},
    {EMU_e2m1x2, EMU_e2m1, 2}, {EMU_ue8m0x2, EMU_ue8m0, 2}, {EMU_e4m3x4, EMU_e4m3, 4},
    {EMU_e5m2x4, EMU_e5m2, 4}, {EMU_e3m2x4, EMU_e3m2, 4},   {EMU_e2m3x4, EMU_e2m3, 4},
    {EMU_e2m1x4, EMU_e2m1, 4},
};

// The packed type, or a single float as a packed type of one.
static struct packed packed_of(enum emu_type type)
{
    for (size_t i = 0; i < sizeof packed_types / sizeof *packed_types; i++)
        if (packed_types[i].type == type)
            return packed_types[i];
    return (struct packed){type, type, 1};
}

// A power of two: the exponent of the magnitude, rounded towards zero or up.
static uint64_t to_scale(double x, bool up, bool satfinite)
{
    int exponent;
    if (x != x)
        return 0xff;
    const double mantissa = frexp(fabs(x), &exponent); // in [0.5, 1), or 0
    if (isinf(x))
        return satfinite ? 0xfe : 0xff;
    int biased = mantissa == 0 ? 0 : exponent - 1 + 127 + (up && mantissa > 0.5);
    biased = biased < 0 ? 0 : biased;
    return (uint64_t)(biased > 0xfe ? (satfinite ? 0xfe : 0xff) : biased);
}

static uint64_t narrow(const struct emu_insn *in, enum emu_type to, double x, uint64_t random)
{
    const bool satfinite = in->op & CVT_SATFINITE;
    if (to == EMU_ue8m0)
        return to_scale(x, in->round == EMU_RP, satfinite);
    if (in->flags & EMU_INSN_RELU)
        x = signbit(x) && x == x ? 0 : x;
    return emu_fp_from_f64_random(x, to, (enum emu_round)in->round, random, satfinite);
}

// The random bits of element k from the top, as a fraction of 2^64.
static uint64_t random_of(enum emu_type to, uint32_t bits, uint32_t k)
{
    const uint32_t upper = bits >> 16, lower = bits & 0xffff;
    switch (to) {
    case EMU_f16x2:
        return (uint64_t)((k ? lower : upper) & 0x1fff) << 51;
    case EMU_bf16x2:
        return (uint64_t)(k ? lower : upper) << 48;
    case EMU_e2m1x4:
        return k < 2 ? (uint64_t)((upper & 0xff00) | lower >> 8) << 48
                     : (uint64_t)(upper << 8 | (lower & 0xff)) << 48 & 0xffff000000000000u;
    default:
        return (uint64_t)(k < 2 ? upper : lower) << 48;
    }
}

static void store(struct emu_warp *w, const struct emu_insn *in, const uint64_t *v, uint32_t mask)
{
    alignas(16) uint32_t wide[EMU_WARP];
    alignas(16) uint16_t half[EMU_WARP];
    for (int i = 0; i < EMU_WARP; i++) {
        wide[i] = (uint32_t)v[i];
        half[i] = (uint16_t)v[i];
    }
    emu_commit(w, in->dst, in->width == 2 ? (const void *)half : wide, in->width, mask);
}

// type, type2: packed or single; list: the sources; src[3]: random bits
EMU_RUN(cvt_pack)
{
    const struct packed to = packed_of((enum emu_type)in->type);
    const struct packed from = packed_of((enum emu_type)in->type2);
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    const uint32_t *random = emu_at_ref(w, in->src[3]);
    const uint32_t slot = emu_types[to.type].bits / to.count;
    const uint32_t from_slot = emu_types[from.type].bits / from.count;
    const uint64_t cut = ((uint64_t)1 << from_slot) - 1;
    const bool plain = !(in->flags & EMU_INSN_FIX) && in->round == EMU_RN && from.count == 1;
    uint64_t out[EMU_WARP] = {0};
    for (uint32_t k = 0; k < to.count; k++) {
        const uint32_t at = (to.count - 1u - k) * slot, from_at = (from.count - 1u - k) * from_slot;
        const struct emu_arg *arg = from.count > 1 ? args : &args[k];
        if (plain && to.element == EMU_bf16) { // the most frequent one
            for (uint32_t i = 0; i < EMU_WARP; i++)
                out[i] |= (uint64_t)emu_f32_to_bf16(
                              emu_f32_of((uint32_t)emu_lane_value(w, arg->ref, arg->width, i)))
                          << at;
            continue;
        }
        for (uint32_t i = 0; i < EMU_WARP; i++) {
            const uint64_t raw =
                emu_lane_value(w, arg->ref, arg->width, i) >> (from.count > 1 ? from_at : 0) & cut;
            const double x = emu_fp_to_f64(raw, from.element);
            out[i] |= narrow(in, to.element, x, random_of(to.type, random[i], k)) << at;
        }
    }
    store(w, in, out, mask);
}

// cvt.pack. type: of the parts; src: upper, lower, what fills the bits above
EMU_RUN(cvt_pack_int)
{
    const uint32_t bits = emu_types[in->type].bits;
    const bool is_signed = emu_types[in->type].kind == EMU_KIND_SINT;
    const int32_t high = (int32_t)(((uint32_t)1 << (bits - is_signed)) - 1);
    const int32_t low = is_signed ? -high - 1 : 0;
    const int32_t *a = emu_at_ref(w, in->src[0]), *b = emu_at_ref(w, in->src[1]);
    const uint32_t *c = emu_at_ref(w, in->src[2]), cut = ((uint32_t)1 << bits) - 1;
    uint64_t out[EMU_WARP];
    for (int i = 0; i < EMU_WARP; i++) {
        const uint32_t upper = (uint32_t)(a[i] < low ? low : a[i] > high ? high : a[i]) & cut;
        const uint32_t lower = (uint32_t)(b[i] < low ? low : b[i] > high ? high : b[i]) & cut;
        out[i] = (uint64_t)c[i] << 2 * bits | upper << bits | lower;
    }
    store(w, in, out, mask);
}

// --- decoding ---

static bool is_narrow(struct packed p) // of at most 8 bits
{
    return emu_types[p.element].bits <= 8;
}

static bool exists(struct packed to, struct packed from, enum emu_round round)
{
    if (round == EMU_RS)
        return from.type == EMU_f32 && to.element != EMU_ue8m0 && (to.count == 4 || !is_narrow(to));
    if (to.count != 2)
        return false;
    if (to.element == EMU_ue8m0)
        return (from.type == EMU_f32 || from.type == EMU_bf16x2) &&
               (round == EMU_RZ || round == EMU_RP);
    if (round != EMU_RN && (is_narrow(to) || round != EMU_RZ))
        return false;
    if (from.element == EMU_ue8m0)
        return to.type == EMU_bf16x2;
    if (is_narrow(from))
        return from.count == 2 && to.type == EMU_f16x2;
    return from.type == EMU_f32 ||
           (is_narrow(to) && (from.type == EMU_f16x2 || from.type == EMU_bf16x2));
}

void emu_cvt_packed(struct emu_dec *d, enum emu_type to_type, enum emu_type from_type)
{
    struct emu_insn *in = d->in;
    const struct packed to = packed_of(to_type), from = packed_of(from_type);
    uint32_t width;
    if (!exists(to, from, (enum emu_round)in->round) || in->flags & EMU_INSN_SAT)
        emu_dec_bad(d, "unknown conversion");
    in->run = emu_run_cvt_pack;
    in->type = (uint8_t)to_type;
    in->type2 = (uint8_t)from_type;
    in->width = (uint8_t)emu_reg_width(to_type);
    in->dst = emu_dec_dst(d, to_type);
    const struct emu_operand *list = NULL;
    if (to.count == 4) {
        const struct emu_operand *o = emu_dec_next(d);
        if (!o || o->kind != EMU_OPD_VEC || o->count != 4)
            emu_dec_bad(d, "{a, b, e, f} expected");
        list = o->list;
    }
    emu_dec_args_begin(d);
    for (uint32_t k = 0; k < (from.count > 1 ? 1u : to.count); k++) {
        const struct emu_operand *o = list ? &list[k] : emu_dec_next(d);
        const uint32_t ref = emu_cvt_source(d, o, from_type, &width);
        *emu_dec_arg(d) = (struct emu_arg){.ref = ref, .width = width};
    }
    if (in->round == EMU_RS)
        in->src[3] = emu_dec_src(d, EMU_b32);
}

void emu_cvt_pack_ints(struct emu_dec *d, enum emu_type to, enum emu_type from)
{
    struct emu_insn *in = d->in;
    const uint32_t bits = emu_types[to].bits, kind = emu_types[to].kind;
    const bool filled = emu_dec_mod(d, "b32");
    if (bits > 16 || (kind != EMU_KIND_UINT && kind != EMU_KIND_SINT) || from != EMU_s32 ||
        filled != (bits < 16) || !(in->flags & EMU_INSN_SAT))
        emu_dec_bad(d, "unknown conversion");
    in->run = emu_run_cvt_pack_int;
    in->type = (uint8_t)to;
    in->width = 4;
    in->dst = emu_dec_dst(d, EMU_b32);
    in->src[0] = emu_dec_src(d, EMU_b32);
    in->src[1] = emu_dec_src(d, EMU_b32);
    if (filled)
        in->src[2] = emu_dec_src(d, EMU_b32);
}
