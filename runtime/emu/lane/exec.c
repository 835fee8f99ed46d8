// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Instructions whose lanes are independent.
//
// Results are computed for all lanes and written to those that are active, so the functions over 32
// lanes need no mask and the compiler turns their loops into vector code.

#include <fenv.h>
#include <stdalign.h>
#include <string.h>

#include "emu/lane/fp.h"
#include "emu/run/run.h"
#include "emu/run/state.h"

enum { WIDEST = 16 * EMU_WARP };

#define BLEND(T)                                \
    {                                           \
        T *d = to;                              \
        const T *v = value;                     \
        for (uint32_t i = 0; i < EMU_WARP; i++) \
            d[i] = mask >> i & 1 ? v[i] : d[i]; \
    }

void emu_commit(struct emu_warp *w, uint32_t ref, const void *value, uint32_t width, uint32_t mask)
{
    if (ref == EMU_NO_REF)
        return;
    void *to = emu_at_ref(w, ref);
    if (mask == EMU_FULL) {
        memcpy(to, value, (size_t)width * EMU_WARP);
        return;
    }
    switch (width) {
    case 2:
        BLEND(uint16_t)
        return;
    case 4:
        BLEND(uint32_t)
        return;
    case 8:
        BLEND(uint64_t)
        return;
    default:
        for (uint32_t i = 0; i < EMU_WARP; i++)
            if (mask >> i & 1)
                memcpy((uint8_t *)to + (size_t)i * width,
                       (const uint8_t *)value + (size_t)i * width, width);
    }
}

EMU_RUN(nop)
{
    (void)w;
    (void)in;
    (void)mask;
}

EMU_RUN(alu)
{
    alignas(16) uint8_t out[WIDEST];
    const void *s[4];
    for (int i = 0; i < 4; i++)
        s[i] = emu_at_ref(w, in->src[i]);
    in->alu(out, s);
    emu_commit(w, in->dst, out, in->width, mask);
}

// --- .ftz, .sat, .relu and rounding modes ---

static void flush(void *v, enum emu_type type)
{
    if (type == EMU_f32) {
        uint32_t *f = v;
        for (int i = 0; i < EMU_WARP; i++)
            f[i] = f[i] & 0x7f800000 ? f[i] : f[i] & 0x80000000;
    } else if (type == EMU_f32x2) {
        uint32_t *f = v;
        for (int i = 0; i < 2 * EMU_WARP; i++)
            f[i] = f[i] & 0x7f800000 ? f[i] : f[i] & 0x80000000;
    } else if (type == EMU_f16 || type == EMU_f16x2) {
        uint16_t *h = v;
        for (int i = 0; i < EMU_WARP * (type == EMU_f16x2 ? 2 : 1); i++)
            h[i] = h[i] & 0x7c00 ? h[i] : h[i] & 0x8000;
    }
}

static void saturate(void *v, enum emu_type type)
{
    if (type == EMU_f32) {
        float *f = v;
        for (int i = 0; i < EMU_WARP; i++)
            f[i] = f[i] > 1 ? 1 : f[i] > 0 ? f[i] : 0; // a NaN becomes 0
        return;
    }
    const bool bf = type == EMU_bf16 || type == EMU_bf16x2;
    const uint16_t one = bf ? 0x3f80 : 0x3c00, inf = bf ? 0x7f80 : 0x7c00;
    uint16_t *h = v;
    for (uint32_t i = 0; i < EMU_WARP * (emu_types[type].bits / 16u); i++)
        h[i] = h[i] > inf ? 0 : h[i] > one ? one : h[i]; // negative numbers and NaNs lie above inf
}

static void relu(void *v, enum emu_type type)
{
    const uint16_t inf = type == EMU_bf16 || type == EMU_bf16x2 ? 0x7f80 : 0x7c00;
    uint16_t *h = v;
    for (uint32_t i = 0; i < EMU_WARP * (emu_types[type].bits / 16u); i++)
        h[i] = (h[i] & 0x7fff) > inf ? EMU_NAN_F16 : h[i] & 0x8000 ? 0 : h[i];
}

static int host_rounding(uint8_t round)
{
    switch (round) {
    case EMU_RZ:
        return FE_TOWARDZERO;
    case EMU_RM:
        return FE_DOWNWARD;
    case EMU_RP:
        return FE_UPWARD;
    default:
        return FE_TONEAREST;
    }
}

EMU_RUN(alu_fix)
{
    alignas(16) uint8_t out[WIDEST], flushed[4][WIDEST];
    const void *s[4];
    const enum emu_type type = (enum emu_type)in->type;
    for (int i = 0; i < 4; i++) {
        s[i] = emu_at_ref(w, in->src[i]);
        if (in->flags & EMU_INSN_FTZ && in->op >> i & 1) { // op: which sources are of this type
            memcpy(flushed[i], s[i], emu_type_size(type) * (size_t)EMU_WARP);
            flush(flushed[i], type);
            s[i] = flushed[i];
        }
    }
    if (in->round != EMU_RN)
        fesetround(host_rounding(in->round));
    in->alu(out, s);
    if (in->round != EMU_RN)
        fesetround(FE_TONEAREST);
    if (in->op & 1 << 4) { // the result is of this type too
        if (in->flags & EMU_INSN_FTZ)
            flush(out, type);
        if (in->flags & EMU_INSN_SAT)
            saturate(out, type);
        if (in->flags & EMU_INSN_RELU)
            relu(out, type);
    }
    emu_commit(w, in->dst, out, in->width, mask);
}

// dst | list: predicate, whether the result is not 0, combined with src[3]; target: the table
EMU_RUN(lop3)
{
    alignas(16) uint32_t out[EMU_WARP], table[EMU_WARP];
    const void *const s[4] = {emu_at_ref(w, in->src[0]), emu_at_ref(w, in->src[1]),
                              emu_at_ref(w, in->src[2]), table};
    const uint32_t c = *(const uint32_t *)emu_at_ref(w, in->src[3]);
    uint32_t p = 0;
    for (int i = 0; i < EMU_WARP; i++)
        table[i] = in->target;
    in->alu(out, s);
    for (int i = 0; i < EMU_WARP; i++)
        p |= (uint32_t)(out[i] != 0) << i;
    p = in->op == EMU_PRED_AND ? p & (in->round ? ~c : c) : p | (in->round ? ~c : c);
    emu_commit(w, in->dst, out, 4, mask);
    emu_commit_pred(w, in->list, p, mask);
}

// --- predicates ---

static uint32_t combine(uint32_t op, uint32_t a, uint32_t b)
{
    switch ((enum emu_pred_op)op) {
    case EMU_PRED_AND:
        return a & b;
    case EMU_PRED_OR:
        return a | b;
    case EMU_PRED_XOR:
        return a ^ b;
    case EMU_PRED_NOT:
        return ~a;
    case EMU_PRED_MOV:
        break;
    }
    return a;
}

static uint32_t compare(const struct emu_insn *in, const void *a, const void *b)
{
    alignas(16) uint8_t fa[8 * EMU_WARP], fb[8 * EMU_WARP];
    if (in->flags & EMU_INSN_FTZ) {
        const enum emu_type type = (enum emu_type)in->type;
        memcpy(fa, a, emu_type_size(type) * (size_t)EMU_WARP);
        memcpy(fb, b, emu_type_size(type) * (size_t)EMU_WARP);
        flush(fa, type);
        flush(fb, type);
        a = fa;
        b = fb;
    }
    return in->cmp(a, b);
}

static uint32_t read_pred(const struct emu_warp *w, uint32_t ref, bool negate)
{
    const uint32_t p = *(const uint32_t *)emu_at_ref(w, ref);
    return negate ? ~p : p;
}

static bool is_pair(enum emu_type type)
{
    return type == EMU_f16x2 || type == EMU_bf16x2;
}

// The comparison, of the lower halves where there are two, and that of the upper ones.
static uint32_t compare_upper(const struct emu_insn *in, const void *a, const void *b)
{
    uint32_t ha[EMU_WARP], hb[EMU_WARP];
    for (int i = 0; i < EMU_WARP; i++) {
        ha[i] = ((const uint32_t *)a)[i] >> 16;
        hb[i] = ((const uint32_t *)b)[i] >> 16;
    }
    return compare(in, ha, hb);
}

EMU_RUN(setp)
{
    const void *a = emu_at_ref(w, in->src[0]), *b = emu_at_ref(w, in->src[1]);
    uint32_t first = compare(in, a, b);
    uint32_t second = is_pair((enum emu_type)in->type) ? compare_upper(in, a, b) : ~first;
    if (in->op != EMU_PRED_MOV) {
        const uint32_t c = read_pred(w, in->src[2], in->round);
        first = combine(in->op, first, c);
        second = combine(in->op, second, c);
    }
    emu_commit_pred(w, in->dst, first, mask);
    emu_commit_pred(w, in->list, second, mask);
}

// The value that set writes for true, in each half if there are two.
static uint32_t yes_of(enum emu_type type)
{
    switch (type) {
    case EMU_f32:
        return 0x3f800000;
    case EMU_f16:
    case EMU_f16x2:
        return 0x3c00;
    case EMU_bf16:
    case EMU_bf16x2:
        return 0x3f80;
    default:
        return UINT32_MAX;
    }
}

EMU_RUN(set)
{
    const void *a = emu_at_ref(w, in->src[0]), *b = emu_at_ref(w, in->src[1]);
    const bool pair = is_pair((enum emu_type)in->type);
    const uint32_t yes = yes_of((enum emu_type)in->type2);
    uint32_t p = compare(in, a, b), upper = pair ? compare_upper(in, a, b) : 0;
    if (in->op != EMU_PRED_MOV) {
        const uint32_t c = read_pred(w, in->src[2], in->round);
        p = combine(in->op, p, c);
        upper = combine(in->op, upper, c);
    }
    alignas(16) uint32_t wide[EMU_WARP];
    alignas(16) uint16_t narrow[EMU_WARP];
    for (int i = 0; i < EMU_WARP; i++) {
        wide[i] = p >> i & 1 ? yes : 0;
        if (pair)
            wide[i] = (wide[i] & 0xffff) | (upper >> i & 1 ? yes << 16 : 0);
        narrow[i] = (uint16_t)wide[i];
    }
    emu_commit(w, in->dst, in->width == 2 ? (const void *)narrow : wide, in->width, mask);
}

#define SELECT(T)                                                      \
    {                                                                  \
        T *d = (T *)out;                                               \
        for (uint32_t i = 0; i < EMU_WARP; i++)                        \
            d[i] = p >> i & 1 ? ((const T *)a)[i] : ((const T *)b)[i]; \
    }

EMU_RUN(selp)
{
    alignas(16) uint64_t out[EMU_WARP];
    const void *a = emu_at_ref(w, in->src[0]), *b = emu_at_ref(w, in->src[1]);
    const uint32_t p = read_pred(w, in->src[2], in->round);
    if (in->width == 2)
        SELECT(uint16_t)
    else if (in->width == 4)
        SELECT(uint32_t)
    else
        SELECT(uint64_t)
    emu_commit(w, in->dst, out, in->width, mask);
}

EMU_RUN(pred)
{
    const uint32_t a = read_pred(w, in->src[0], in->round & 1);
    const uint32_t b = read_pred(w, in->src[1], in->round & 2);
    emu_commit_pred(w, in->dst, combine(in->op, a, b), mask);
}

// --- moves ---

EMU_RUN(mov)
{
    emu_commit(w, in->dst, emu_at_ref(w, in->src[0]), in->width, mask);
}

// list: for each element a destination and a source; all sources are read first
EMU_RUN(mov_vector)
{
    alignas(16) uint8_t values[4][WIDEST];
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    const uint32_t elements = in->count / 2u;
    for (uint32_t k = 0; k < elements; k++)
        memcpy(values[k], emu_at_ref(w, args[2 * k + 1].ref), (size_t)in->width * EMU_WARP);
    for (uint32_t k = 0; k < elements; k++)
        emu_commit(w, args[2 * k].ref, values[k], in->width, mask);
}

// Registers of a list, lowest bits first, as one value of up to 16 bytes a lane, and back.
EMU_RUN(pack)
{
    alignas(16) uint8_t out[WIDEST];
    uint32_t at = 0;
    for (uint32_t k = 0; k < in->count; k++) {
        const struct emu_arg *arg = &w->launch->module->args.at[in->list + k];
        const uint8_t *from = emu_at_ref(w, arg->ref);
        const uint32_t bytes = arg->size; // a part of 8 bits lives in a register of 16
        for (uint32_t i = 0; i < EMU_WARP; i++)
            memcpy(out + i * in->width + at, from + i * arg->width, bytes);
        at += bytes;
    }
    emu_commit(w, in->dst, out, in->width, mask);
}

EMU_RUN(unpack)
{
    alignas(16) uint8_t from[WIDEST]; // a copy: a part may be the source itself
    memcpy(from, emu_at_ref(w, in->src[0]), (size_t)in->width * EMU_WARP);
    uint32_t at = 0;
    for (uint32_t k = 0; k < in->count; k++) {
        alignas(16) uint8_t part[WIDEST] = {0};
        const struct emu_arg *arg = &w->launch->module->args.at[in->list + k];
        for (uint32_t i = 0; i < EMU_WARP; i++)
            memcpy(part + i * arg->width, from + i * in->width + at, arg->size);
        emu_commit(w, arg->ref, part, arg->width, mask);
        at += arg->size;
    }
}

static void commit_u64(struct emu_warp *w, const struct emu_insn *in, const uint64_t *v,
                       uint32_t mask)
{
    uint32_t narrow[EMU_WARP];
    if (in->width == 8) {
        emu_commit(w, in->dst, v, 8, mask);
        return;
    }
    for (int i = 0; i < EMU_WARP; i++)
        narrow[i] = (uint32_t)v[i];
    emu_commit(w, in->dst, narrow, 4, mask);
}

EMU_RUN(mov_local)
{
    uint64_t v[EMU_WARP];
    for (int i = 0; i < EMU_WARP; i++)
        v[i] = w->path->frame->local_base + (uint64_t)in->offset;
    commit_u64(w, in, v, mask);
}

EMU_RUN(add_const)
{
    uint64_t v[EMU_WARP];
    const void *s = emu_at_ref(w, in->src[0]);
    for (int i = 0; i < EMU_WARP; i++)
        v[i] = (in->width == 8 ? ((const uint64_t *)s)[i] : ((const uint32_t *)s)[i]) +
               (uint64_t)in->offset;
    commit_u64(w, in, v, mask);
}

EMU_RUN(isspacep)
{
    const uint8_t *at = emu_at_ref(w, in->src[0]);
    uint32_t p = 0;
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        uint64_t a = 0;
        memcpy(&a, at + i * in->width, in->width);
        const uint64_t window = a & EMU_WINDOW_MASK;
        const bool own = (a >> EMU_RANK_SHIFT & 0xff) == w->cta->rank;
        enum emu_space space = window == EMU_SHARED_WINDOW  ? EMU_SHARED_CLUSTER
                               : window == EMU_LOCAL_WINDOW ? EMU_LOCAL
                               : window == EMU_PARAM_WINDOW ? EMU_PARAM
                                                            : EMU_GLOBAL;
        if (in->space == EMU_SHARED && space == EMU_SHARED_CLUSTER && own)
            space = EMU_SHARED;
        p |= (uint32_t)(space == in->space) << i;
    }
    emu_commit_pred(w, in->dst, p, mask);
}

// Time is counted in instructions of the launch: the same in every run.
EMU_RUN(clock)
{
    const uint64_t now = w->launch->clock;
    const bool high = in->op == EMU_SREG_clock_hi || in->op == EMU_SREG_globaltimer_hi;
    uint64_t v[EMU_WARP];
    for (int i = 0; i < EMU_WARP; i++)
        v[i] = high ? now >> 32 : now;
    commit_u64(w, in, v, mask);
    w->reschedule = true; // so that what ran until here is counted before the next reading
}

// --- add.cc and its relatives: one carry bit a lane ---
//
// A difference is a + ~b + 1, as in hardware, and its carry is 0 where it borrows. nvcc's division
// of 128 bits adds the carry of a difference.

EMU_RUN(carry)
{
    uint64_t v[EMU_WARP];
    const uint32_t bits = in->width * 8u;
    const uint64_t ones = in->width == 8 ? UINT64_MAX : UINT32_MAX;
    uint32_t carry_out = 0;
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        uint64_t s[3];
        for (int k = 0; k < 3; k++) {
            const void *from = emu_at_ref(w, in->src[k]);
            s[k] = in->width == 8 ? ((const uint64_t *)from)[i] : ((const uint32_t *)from)[i];
        }
        const uint32_t op = in->op & 15;
        const uint64_t cc = in->op & EMU_CARRY_IN ? w->carry >> i & 1 : op == EMU_CARRY_SUB;
        uint64_t a = s[0], b = op == EMU_CARRY_SUB ? ~s[1] & ones : s[1];
        if (op == EMU_CARRY_MAD_LO || op == EMU_CARRY_MAD_HI) {
            const uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
            const uint64_t mid = ah * bl + (al * bl >> 32), low = al * bh + (uint32_t)mid;
            uint64_t high = bits == 64 ? ah * bh + (mid >> 32) + (low >> 32) : a * b >> 32;
            if (in->op & EMU_CARRY_SIGNED)
                high -= (a >> (bits - 1) & 1 ? b : 0) + (b >> (bits - 1) & 1 ? a : 0);
            a = (op == EMU_CARRY_MAD_LO ? a * b : high) & ones;
            b = s[2];
        }
        v[i] = (a + b + cc) & ones;
        carry_out |= (uint32_t)(v[i] < a || (cc && v[i] == a)) << i;
    }
    if (in->op & EMU_CARRY_OUT)
        w->carry = (w->carry & ~mask) | (carry_out & mask);
    commit_u64(w, in, v, mask);
}
