// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The video instructions: arithmetic on bytes and halfwords picked out of 32-bit registers.
//
// vadd and its relatives compute one number from a byte, a halfword or a word of each source; with
// a 2 or 4 at the end of the name they compute two halfwords or four bytes, each picked from both
// sources together. A result is saturated to the part of the destination it goes to, then merged
// into c or combined with it.

#include "emu/decode/decode.h"
#include "emu/run/state.h"

enum video_op { ADD, SUB, ABSDIFF, MIN, MAX, SHL, SHR, AVRG, SET, MAD };
enum video_second { MERGE, SUM, LEAST, GREATEST }; // MERGE: into c, under the mask

enum { // emu_insn.round
    A_SIGNED = 1 << 0,
    B_SIGNED = 1 << 1,
    D_SIGNED = 1 << 2,
    WRAP = 1 << 3,     // shifts
    PLUS_ONE = 1 << 4, // vmad.po
    MINUS_AB = 1 << 5, // vmad: the product is negated
    MINUS_C = 1 << 6
};

// A part of a register: its first bit and its width.
static uint32_t part_start(uint32_t part)
{
    return part & 31;
}

static uint32_t part_bits(uint32_t part)
{
    return part >> 5;
}

static int64_t pick(uint64_t x, uint32_t start, uint32_t bits, bool is_signed)
{
    const uint64_t low = x >> start & (((uint64_t)1 << bits) - 1);
    const uint64_t sign = (uint64_t)1 << (bits - 1);
    return is_signed ? (int64_t)((low ^ sign) - sign) : (int64_t)low;
}

static int64_t clamp(int64_t x, uint32_t bits, bool is_signed)
{
    const int64_t high = is_signed ? ((int64_t)1 << (bits - 1)) - 1 : ((int64_t)1 << bits) - 1;
    const int64_t low = is_signed ? -high - 1 : 0;
    return x < low ? low : x > high ? high : x;
}

static int64_t compare(uint32_t cmp, int64_t a, int64_t b)
{
    const bool results[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
    return results[cmp];
}

static int64_t compute(const struct emu_insn *in, int64_t a, int64_t b)
{
    switch ((enum video_op)in->op) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case ABSDIFF:
        return a < b ? b - a : a - b;
    case MIN:
        return a < b ? a : b;
    case MAX:
        return a > b ? a : b;
    case SHL:
        b = in->round & WRAP ? b & 31 : b > 32 ? 32 : b;
        return (int64_t)((uint64_t)a << b);
    case SHR:
        b = in->round & WRAP ? b & 31 : b > 32 ? 32 : b;
        return a >> b;
    case AVRG:
        return (a + b + (a + b >= 0)) >> 1;
    case SET:
        return compare(in->type2, a, b);
    case MAD:
        break;
    }
    return 0;
}

// Saturation is that of the code which drivers make of these instructions for sm_90; it is not
// always what the manual says. A sum or a difference too great for an unsigned word keeps its low
// bits: only what is below zero saturates. Of what a shift moves out of the word, two bits count.
static int64_t saturate(const struct emu_insn *in, int64_t x)
{
    const bool is_signed = in->round & D_SIGNED;
    if (in->op == SHL)
        x = (int64_t)((uint64_t)x << 30) >> 30;
    return is_signed || in->op == SHL ? clamp(x, 32, is_signed) : x < 0 ? 0 : x;
}

// A part saturates to its greatest value in both directions.
static int64_t saturate_part(int64_t x, uint32_t bits, bool is_signed)
{
    const int64_t high = ((int64_t)1 << (bits - is_signed)) - 1;
    return x < 0 || x > high ? high : x;
}

static bool is_shift(const struct emu_insn *in)
{
    return in->op == SHL || in->op == SHR;
}

// Whether the word that is compared with c is extended as a signed one even if c is not.
static bool is_word_signed(const struct emu_insn *in)
{
    return in->op == ADD || in->op == SUB || (is_shift(in) && in->flags & EMU_INSN_SAT);
}

// The result t put together with c.
static uint32_t combine(const struct emu_insn *in, int64_t t, uint32_t c)
{
    const uint32_t bits = (uint32_t)in->offset, start = in->space;
    const uint32_t ones = bits == 32 ? UINT32_MAX : ((uint32_t)1 << bits) - 1;
    const bool is_signed = in->round & (in->op == SET ? A_SIGNED : D_SIGNED);
    const int64_t z = pick(c, 0, 32, is_signed);
    if (is_word_signed(in) && in->size != MERGE)
        t = (int32_t)(uint32_t)t;
    const bool less = is_signed ? t < z : (uint64_t)t < (uint64_t)z;
    switch ((enum video_second)in->size) {
    case SUM:
        return (uint32_t)t + c;
    case LEAST:
        return less ? (uint32_t)t : c;
    case GREATEST:
        return less ? c : (uint32_t)t;
    case MERGE:
        break;
    }
    // The upper half of a register gets that of the result.
    const uint32_t from = bits == 16 ? start : 0;
    return (c & ~(ones << start)) | ((uint32_t)t >> from & ones) << start;
}

// target, list: parts of a and b; space, offset: the first bit and the width of the part of d;
// size: enum video_second
EMU_RUN(video)
{
    uint32_t out[EMU_WARP];
    const uint32_t *a = emu_at_ref(w, in->src[0]), *b = emu_at_ref(w, in->src[1]);
    const uint32_t *c = emu_at_ref(w, in->src[2]);
    const uint32_t bits = (uint32_t)in->offset;
    for (int i = 0; i < EMU_WARP; i++) {
        const int64_t x =
            pick(a[i], part_start(in->target), part_bits(in->target), in->round & A_SIGNED);
        const int64_t y =
            pick(b[i], part_start(in->list), part_bits(in->list), in->round & B_SIGNED);
        int64_t t = compute(in, x, y);
        if (in->flags & EMU_INSN_SAT)
            t = bits == 32 || is_shift(in) ? saturate(in, t)
                                           : saturate_part(t, bits, in->round & D_SIGNED);
        out[i] = combine(in, t, c[i]);
    }
    emu_commit(w, in->dst, out, 4, mask);
}

// a * b + c in 64 bits, shifted and saturated; space: the shift. A whole register counts as signed
// whatever its type is; the types say what a part, the shift and the saturation are.
EMU_RUN(video_mad)
{
    uint32_t out[EMU_WARP];
    const uint32_t *a = emu_at_ref(w, in->src[0]), *b = emu_at_ref(w, in->src[1]);
    const uint32_t *c = emu_at_ref(w, in->src[2]);
    const uint32_t flags = in->round;
    const bool is_signed = flags & (A_SIGNED | B_SIGNED | MINUS_AB | MINUS_C);
    for (int i = 0; i < EMU_WARP; i++) {
        const int64_t x =
            (int32_t)pick(a[i], part_start(in->target), part_bits(in->target), flags & A_SIGNED);
        const int64_t y =
            (int32_t)pick(b[i], part_start(in->list), part_bits(in->list), flags & B_SIGNED);
        const uint64_t ab = (uint64_t)(x * y), z = (uint64_t)(int32_t)c[i];
        uint64_t sum = (flags & MINUS_AB ? -ab : ab) + (flags & MINUS_C ? -z : z);
        sum += flags & PLUS_ONE ? 1 : 0;
        sum = is_signed ? (uint64_t)((int64_t)sum >> in->space) : sum >> in->space;
        if (in->flags & EMU_INSN_SAT)
            sum = (uint64_t)clamp((int64_t)sum, 32, is_signed);
        out[i] = (uint32_t)sum;
    }
    emu_commit(w, in->dst, out, 4, mask);
}

// count: 2 or 4 elements; target, list: which of the 8 bytes or 4 halfwords, a nibble each; space:
// which elements are written
EMU_RUN(video_simd)
{
    uint32_t out[EMU_WARP];
    const uint32_t *a = emu_at_ref(w, in->src[0]), *b = emu_at_ref(w, in->src[1]);
    const uint32_t *c = emu_at_ref(w, in->src[2]);
    const uint32_t n = in->count, bits = 32 / n, ones = ((uint32_t)1 << bits) - 1;
    for (int i = 0; i < EMU_WARP; i++) {
        const uint64_t both = (uint64_t)b[i] << 32 | a[i];
        out[i] = c[i];
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t at = in->target >> 4 * k & 7, bt = in->list >> 4 * k & 7;
            int64_t t = compute(in, pick(both, at * bits, bits, in->round & A_SIGNED),
                                pick(both, bt * bits, bits, in->round & B_SIGNED));
            if (in->flags & EMU_INSN_SAT)
                t = clamp(t, bits, in->round & D_SIGNED);
            if (!(in->space >> k & 1))
                continue;
            if (in->size == SUM)
                out[i] += (uint32_t)t;
            else
                out[i] = (out[i] & ~(ones << k * bits)) | ((uint32_t)t & ones) << k * bits;
        }
    }
    emu_commit(w, in->dst, out, 4, mask);
}

// --- decoding ---

static const char *const seconds[] = {"add", "min", "max", NULL};
static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge", NULL};

static const struct {
    const char *name;
    enum video_op op;
} ops[] = {
    {"vadd", ADD}, {"vsub", SUB},   {"vabsdiff", ABSDIFF}, {"vmin", MIN}, {"vmax", MAX},
    {"vset", SET}, {"vavrg", AVRG}, {"vshl", SHL},         {"vshr", SHR}, {"vmad", MAD},
};

// `.b2` or `.h1`; nothing is the whole register.
static uint32_t take_part(struct emu_dec *d, struct emu_operand *o)
{
    const tir_str s = o->selector;
    uint32_t part = 32 << 5;
    if (s.len == 2 && s.ptr[0] == 'b' && s.ptr[1] >= '0' && s.ptr[1] <= '3')
        part = 8 << 5 | (uint32_t)(s.ptr[1] - '0') * 8;
    else if (s.len == 2 && s.ptr[0] == 'h' && (s.ptr[1] == '0' || s.ptr[1] == '1'))
        part = 16 << 5 | (uint32_t)(s.ptr[1] - '0') * 16;
    else if (s.len)
        emu_dec_bad(d, "'.%.*s' is no part of a register", (int)s.len, s.ptr);
    o->selector.len = 0;
    return part;
}

// `.b7310`, highest element first, as nibbles, lowest first.
static uint32_t take_elements(struct emu_dec *d, struct emu_operand *o, uint32_t n, uint32_t none)
{
    const tir_str s = o->selector;
    uint32_t out = 0;
    if (s.len == 0)
        return none;
    if (s.len != n + 1 || s.ptr[0] != (n == 2 ? 'h' : 'b'))
        emu_dec_bad(d, "'.%.*s' does not select %u elements", (int)s.len, s.ptr, n);
    for (uint32_t k = 0; k < n; k++) {
        const char c = s.ptr[n - k];
        if (c < '0' || c >= (n == 2 ? '4' : '8'))
            emu_dec_bad(d, "'.%.*s' selects elements that are not there", (int)s.len, s.ptr);
        out |= (uint32_t)(c - '0') << 4 * k;
    }
    o->selector.len = 0;
    return out;
}

static uint32_t take_mask(struct emu_dec *d, struct emu_operand *o, uint32_t n)
{
    const tir_str s = o->selector;
    uint32_t out = 0;
    if (s.len == 0)
        return (1u << n) - 1;
    for (size_t k = 1; k < s.len; k++)
        if (s.ptr[0] == (n == 2 ? 'h' : 'b') && s.ptr[k] >= '0' && s.ptr[k] < '0' + (char)n)
            out |= 1u << (s.ptr[k] - '0');
        else
            emu_dec_bad(d, "'.%.*s' is no mask", (int)s.len, s.ptr);
    o->selector.len = 0;
    return out;
}

static struct emu_operand *need(struct emu_dec *d)
{
    struct emu_operand *o = emu_dec_next(d);
    if (!o)
        emu_dec_bad(d, "too few operands");
    return o;
}

static bool take_sign(struct emu_dec *d)
{
    const enum emu_type type = emu_dec_type(d);
    if (type != EMU_u32 && type != EMU_s32)
        emu_dec_bad(d, "the types are .u32 and .s32");
    return type == EMU_s32;
}

static void decode_mad(struct emu_dec *d)
{
    struct emu_insn *in = d->in;
    in->run = emu_run_video_mad;
    in->space = emu_dec_mod(d, "shr7") ? 7 : emu_dec_mod(d, "shr15") ? 15 : 0;
    in->round |= emu_dec_mod(d, "po") ? PLUS_ONE : 0;
    in->dst = emu_dec_dst(d, EMU_b32);
    struct emu_operand *a = need(d), *b = need(d), *c = need(d);
    in->round |= a->minus != b->minus ? MINUS_AB : 0;
    in->round |= c->minus ? MINUS_C : 0;
    const uint32_t signs = in->round & (MINUS_AB | MINUS_C | PLUS_ONE);
    if (signs & (signs - 1))
        emu_dec_bad(d, "only one of the product and c can be negated, and neither with .po");
    a->minus = b->minus = c->minus = false;
    in->target = take_part(d, a);
    in->list = take_part(d, b);
    in->src[0] = emu_dec_operand(d, a, EMU_b32);
    in->src[1] = emu_dec_operand(d, b, EMU_b32);
    in->src[2] = emu_dec_operand(d, c, EMU_b32);
}

static void decode_scalar(struct emu_dec *d)
{
    struct emu_insn *in = d->in;
    in->run = emu_run_video;
    const int second = emu_dec_one_of(d, seconds);
    struct emu_operand *to = need(d), *a = need(d), *b = need(d);
    const bool merged = to->selector.len > 0;
    if (merged && second >= 0)
        emu_dec_bad(d, "a part of the destination does not go with a second operation");
    in->size = second < 0 ? MERGE : (uint8_t)(SUM + second);
    const uint32_t part = take_part(d, to);
    in->space = (uint8_t)part_start(part);
    in->offset = part_bits(part);
    in->target = take_part(d, a);
    in->list = take_part(d, b);
    in->dst = emu_dec_dst_operand(d, to, EMU_b32);
    in->src[0] = emu_dec_operand(d, a, EMU_b32);
    in->src[1] = emu_dec_operand(d, b, EMU_b32);
    if (merged || second >= 0)
        in->src[2] = emu_dec_src(d, EMU_b32);
}

static void decode_simd(struct emu_dec *d, uint32_t n)
{
    struct emu_insn *in = d->in;
    in->run = emu_run_video_simd;
    in->count = (uint8_t)n;
    in->size = emu_dec_mod(d, "add") ? SUM : MERGE;
    struct emu_operand *to = need(d), *a = need(d), *b = need(d);
    in->space = (uint8_t)take_mask(d, to, n);
    in->target = take_elements(d, a, n, n == 2 ? 0x10 : 0x3210);
    in->list = take_elements(d, b, n, n == 2 ? 0x32 : 0x7654);
    in->dst = emu_dec_dst_operand(d, to, EMU_b32);
    in->src[0] = emu_dec_operand(d, a, EMU_b32);
    in->src[1] = emu_dec_operand(d, b, EMU_b32);
    in->src[2] = emu_dec_src(d, EMU_b32);
}

void emu_decode_video(struct emu_dec *d)
{
    struct emu_insn *in = d->in;
    tir_str name = d->ast->opcode;
    const char last = name.ptr[name.len - 1];
    const uint32_t n = last == '2' || last == '4' ? (uint32_t)(last - '0') : 1;
    name.len -= n > 1;
    size_t row = 0;
    while (!emu_str_is(name, ops[row].name)) // opcodes.def has no others
        row++;
    in->op = (uint8_t)ops[row].op;
    if (ops[row].op != SET)
        in->round |= take_sign(d) ? D_SIGNED : 0;
    in->round |= take_sign(d) ? A_SIGNED : 0;
    in->round |= take_sign(d) ? B_SIGNED : 0;
    in->flags |= emu_dec_mod(d, "sat") ? EMU_INSN_SAT : 0;
    if (ops[row].op == SET) {
        const int cmp = emu_dec_one_of(d, compares);
        if (cmp < 0)
            emu_dec_bad(d, "a comparison is missing");
        in->type2 = (uint8_t)cmp;
    }
    if (ops[row].op == SHL || ops[row].op == SHR) {
        in->round |= emu_dec_mod(d, "wrap") ? WRAP : 0;
        if (!(in->round & WRAP) && !emu_dec_mod(d, "clamp"))
            emu_dec_bad(d, "'.clamp' or '.wrap' is missing");
    }
    if (n > 1)
        decode_simd(d, n);
    else if (ops[row].op == MAD)
        decode_mad(d);
    else
        decode_scalar(d);
}
