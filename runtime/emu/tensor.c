// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix instructions of a warp: ldmatrix, stmatrix, movmatrix, mma.
//
// Every mma of the m16n8 and m8n8 families spreads its matrices in one way. With g = lane / 4,
// t = lane % 4 and e elements to a register:
//   A, register r:  row g + 8 (r % (m / 8)),  k = 4 e (r / (m / 8)) + e t + i
//   B, register r:  column g,                 k = 4 e r + e t + i
//   C, D, value v:  row g + 8 (v / 2),        column 2 t + v % 2
//
// Products of the narrow formats are exact in double. For f32 and f16 results they are summed in
// double, in the order of k, C last, and rounded once to nearest even. Hardware keeps fewer bits
// while it sums and truncates some of them, so results differ from it in the last bits, as they do
// between generations of hardware. f64 is a chain of fused multiply-adds in the order of k.

#include <math.h>
#include <stdalign.h>
#include <string.h>

#include "emu/decode.h"
#include "emu/fp.h"
#include "emu/state.h"

enum { MAX_M = 16, MAX_K = 32, N = 8, MMA_SATFINITE = 1 };

static const struct emu_arg *arguments(const struct emu_warp *w, const struct emu_insn *in)
{
    return &w->launch->module->args.at[in->list];
}

// --- ldmatrix and its relatives: 8 x 8 matrices of 16 bits, a row of 16 bytes at an address ---

enum { MATRIX_TRANS = 1 };

// Every lane of the warp must be there; false while some are still elsewhere.
static bool whole_warp(struct emu_warp *w, uint32_t mask)
{
    if (!emu_path_meet(w, mask, EMU_FULL))
        return false;
    if (mask != EMU_FULL)
        emu_fault(w, emu_first_lane(mask), "matrix instruction with lanes 0x%08x only", mask);
    return true;
}

// The row and column of the first of the two elements that a lane holds, and the step to the
// second.
static void position(uint32_t lane, bool trans, uint32_t *first, uint32_t *step)
{
    const uint32_t g = lane / 4, t = lane % 4;
    *first = trans ? 2 * t * 8 + g : g * 8 + 2 * t; // an index into the 64 elements
    *step = trans ? 8 : 1;
}

// src[0] + offset: addresses; list: registers
EMU_RUN(ldmatrix)
{
    uint64_t address[EMU_WARP];
    if (!whole_warp(w, mask))
        return;
    emu_addresses(w, in, address);
    const struct emu_arg *args = arguments(w, in);
    uint32_t out[4][EMU_WARP];
    for (uint32_t m = 0; m < in->count; m++) {
        uint16_t matrix[64];
        for (uint32_t row = 0; row < 8; row++) {
            const uint32_t lane = m * 8 + row;
            memcpy(
                matrix + row * 8,
                emu_resolve(w, lane, (enum emu_space)in->space, address[lane], 16, EMU_LOAD).bytes,
                16);
        }
        for (uint32_t i = 0; i < EMU_WARP; i++) {
            uint32_t first, step;
            position(i, in->op & MATRIX_TRANS, &first, &step);
            out[m][i] = matrix[first] | (uint32_t)matrix[first + step] << 16;
        }
    }
    for (uint32_t m = 0; m < in->count; m++)
        emu_commit(w, args[m].ref, out[m], 4, mask);
}

EMU_RUN(stmatrix)
{
    uint64_t address[EMU_WARP];
    if (!whole_warp(w, mask))
        return;
    emu_addresses(w, in, address);
    for (uint32_t m = 0; m < in->count; m++) {
        uint16_t matrix[64];
        const uint32_t *from = emu_at_ref(w, arguments(w, in)[m].ref);
        for (uint32_t i = 0; i < EMU_WARP; i++) {
            uint32_t first, step;
            position(i, in->op & MATRIX_TRANS, &first, &step);
            matrix[first] = (uint16_t)from[i];
            matrix[first + step] = (uint16_t)(from[i] >> 16);
        }
        for (uint32_t row = 0; row < 8; row++) {
            const uint32_t lane = m * 8 + row;
            const struct emu_cell cell =
                emu_resolve(w, lane, (enum emu_space)in->space, address[lane], 16, EMU_STORE);
            memcpy(cell.bytes, matrix + row * 8, 16);
            memset(cell.shadow, EMU_SET, 16);
        }
    }
}

EMU_RUN(movmatrix)
{
    uint16_t matrix[64];
    uint32_t out[EMU_WARP];
    if (!whole_warp(w, mask))
        return;
    const uint32_t *from = emu_at_ref(w, in->src[0]);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        uint32_t first, step;
        position(i, false, &first, &step);
        matrix[first] = (uint16_t)from[i];
        matrix[first + step] = (uint16_t)(from[i] >> 16);
    }
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        uint32_t first, step;
        position(i, true, &first, &step);
        out[i] = matrix[first] | (uint32_t)matrix[first + step] << 16;
    }
    emu_commit(w, in->dst, out, 4, mask);
}

// --- mma ---

struct shape {
    uint32_t m, k;
    enum emu_type a, b, c, d;
};

static struct shape shape_of(const struct emu_insn *in)
{
    return (struct shape){in->space,
                          in->size,
                          (enum emu_type)in->type,
                          (enum emu_type)in->type2,
                          (enum emu_type)in->round,
                          (enum emu_type)in->width};
}

static uint32_t per_register(enum emu_type type)
{
    return emu_types[type].bits == 64 ? 1 : 32 / emu_types[type].bits;
}

static double element(uint64_t bits, enum emu_type type)
{
    switch (type) {
    case EMU_bf16:
        return emu_bf16_to_f32((uint16_t)bits);
    case EMU_f16:
        return emu_f16_to_f32((uint16_t)bits);
    case EMU_s8:
        return (int8_t)bits;
    case EMU_u8:
        return (uint8_t)bits;
    default:
        return emu_fp_to_f64(bits, type);
    }
}

// Registers of A (rows = m / 8) or B (rows = 1) into a matrix of `k` elements a row.
static void gather(const struct emu_warp *w, const struct emu_arg *args, uint32_t rows, uint32_t k,
                   enum emu_type type, double (*out)[MAX_K])
{
    const uint32_t e = per_register(type), bits = emu_types[type].bits;
    const uint64_t cut = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    for (uint32_t r = 0; r < rows * k / (4 * e); r++) {
        const void *from = emu_at_ref(w, args[r].ref);
        for (uint32_t lane = 0; lane < EMU_WARP; lane++) {
            const uint32_t row = lane / 4 + 8 * (r % rows);
            const uint32_t at = 4 * e * (r / rows) + e * (lane % 4);
            const uint64_t value =
                bits == 64 ? ((const uint64_t *)from)[lane] : ((const uint32_t *)from)[lane];
            for (uint32_t i = 0; i < e; i++)
                out[row][at + i] = element(value >> i * bits & cut, type);
        }
    }
}

// The bits of value v of C or D in a lane; f16 values lie in pairs.
static uint64_t read_c(const struct emu_warp *w, const struct emu_arg *args, enum emu_type type,
                       uint32_t lane, uint32_t v)
{
    if (type == EMU_f64)
        return ((const uint64_t *)emu_at_ref(w, args[v].ref))[lane];
    if (type == EMU_f16)
        return ((const uint32_t *)emu_at_ref(w, args[v / 2].ref))[lane] >> 16 * (v % 2) & 0xffff;
    return ((const uint32_t *)emu_at_ref(w, args[v].ref))[lane];
}

// The sums of products, without C.
static void multiply(const struct shape *s, double (*a)[MAX_K], double (*b)[MAX_K],
                     double (*sum)[N])
{
    double across[MAX_K][N]; // B by rows, so that the innermost loop has no stride
    for (uint32_t k = 0; k < s->k; k++)
        for (uint32_t n = 0; n < N; n++)
            across[k][n] = b[n][k];
    for (uint32_t m = 0; m < s->m; m++) {
        double row[N] = {0};
        for (uint32_t k = 0; k < s->k; k++)
            for (uint32_t n = 0; n < N; n++)
                row[n] += a[m][k] * across[k][n];
        memcpy(sum[m], row, sizeof row);
    }
}

// Adds C and rounds, once.
static uint64_t finish(double sum, uint64_t c, const struct shape *s, bool saturate)
{
    if (s->d == EMU_s32) { // integers were exact
        sum += (int32_t)c;
        if (saturate)
            sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
        return (uint32_t)(int64_t)sum;
    }
    sum += emu_fp_to_f64(c, s->c);
    if (s->d == EMU_f16)
        return emu_fp_from_f64(sum, EMU_f16, EMU_RN, false);
    return sum != sum ? EMU_NAN_F32 : emu_f32_bits((float)sum);
}

static uint64_t chain(const double *a, const double *b, uint64_t c, uint32_t length)
{
    double sum = emu_f64_of(c);
    for (uint32_t k = 0; k < length; k++)
        sum = fma(a[k], b[k], sum);
    return emu_f64_bits(sum);
}

static uint32_t registers_of(enum emu_type type, uint32_t values)
{
    return type == EMU_f16 ? values / 2 : values;
}

// list: registers of D, A, B, C
EMU_RUN(mma)
{
    double a[MAX_M][MAX_K], b[N][MAX_K], sum[MAX_M][N];
    alignas(16) uint64_t wide[EMU_WARP];
    alignas(16) uint32_t narrow[EMU_WARP];
    uint64_t d[4][EMU_WARP];
    if (!whole_warp(w, mask))
        return;
    const struct shape s = shape_of(in);
    const uint32_t values = s.m / 4;
    const struct emu_arg *args_d = arguments(w, in), *args_a = args_d + registers_of(s.d, values);
    const struct emu_arg *args_b = args_a + s.m / 8 * s.k / (4 * per_register(s.a));
    const struct emu_arg *args_c = args_b + s.k / (4 * per_register(s.b));
    gather(w, args_a, s.m / 8, s.k, s.a, a);
    gather(w, args_b, 1, s.k, s.b, b);
    if (s.d != EMU_f64)
        multiply(&s, a, b, sum);
    for (uint32_t lane = 0; lane < EMU_WARP; lane++)
        for (uint32_t v = 0; v < values; v++) {
            const uint32_t row = lane / 4 + 8 * (v / 2), col = 2 * (lane % 4) + v % 2;
            const uint64_t c = read_c(w, args_c, s.c, lane, v);
            d[v][lane] = s.d == EMU_f64 ? chain(a[row], b[col], c, s.k)
                                        : finish(sum[row][col], c, &s, in->op & MMA_SATFINITE);
        }
    for (uint32_t r = 0; r < registers_of(s.d, values); r++) {
        for (uint32_t i = 0; i < EMU_WARP; i++) {
            wide[i] = d[r][i];
            narrow[i] = (uint32_t)(s.d == EMU_f16 ? d[2 * r][i] | d[2 * r + 1][i] << 16 : d[r][i]);
        }
        const bool is_wide = s.d == EMU_f64;
        emu_commit(w, args_d[r].ref, is_wide ? (const void *)wide : narrow, is_wide ? 8 : 4, mask);
    }
}

// --- decoding ---

static void need_mods(struct emu_dec *d, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (!emu_dec_mod(d, names[i]))
            emu_dec_bad(d, "'.%s' is missing", names[i]);
}

static void take_registers(struct emu_dec *d, uint32_t count, enum emu_type type, bool is_dst)
{
    const struct emu_operand *o = emu_dec_next(d);
    if (!o || (o->kind == EMU_OPD_VEC ? o->count != count : count != 1))
        emu_dec_bad(d, "operand %u is not %u registers", d->at, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct emu_operand *part = o->kind == EMU_OPD_VEC ? &o->list[i] : o;
        const uint32_t ref =
            is_dst ? emu_dec_dst_operand(d, part, type) : emu_dec_operand(d, part, type);
        emu_dec_arg(d)->ref = ref;
    }
}

static uint32_t matrix_mods(struct emu_dec *d)
{
    static const char *const must[] = {"sync", "aligned", "m8n8", "b16", NULL};
    static const char *const counts[] = {"x1", "x2", "x4", NULL};
    need_mods(d, must);
    const int count = emu_dec_one_of(d, counts);
    if (count < 0)
        emu_dec_bad(d, "'.x1', '.x2' or '.x4' is missing");
    d->in->op = emu_dec_mod(d, "trans") ? MATRIX_TRANS : 0;
    d->in->flags |= EMU_INSN_SYNC;
    return 1u << count;
}

static enum emu_space matrix_space(struct emu_dec *d)
{
    return emu_dec_mod(d, "shared") || emu_dec_mod(d, "shared::cta") ? EMU_SHARED : EMU_GENERIC;
}

void emu_decode_ldmatrix(struct emu_dec *d)
{
    const uint32_t count = matrix_mods(d);
    d->in->run = emu_run_ldmatrix;
    emu_dec_args_begin(d);
    take_registers(d, count, EMU_b32, true);
    emu_dec_memory(d, matrix_space(d));
}

void emu_decode_stmatrix(struct emu_dec *d)
{
    const uint32_t count = matrix_mods(d);
    d->in->run = emu_run_stmatrix;
    emu_dec_memory(d, matrix_space(d));
    emu_dec_args_begin(d);
    take_registers(d, count, EMU_b32, false);
}

void emu_decode_movmatrix(struct emu_dec *d)
{
    static const char *const must[] = {"sync", "aligned", "m8n8", "trans", "b16", NULL};
    need_mods(d, must);
    d->in->run = emu_run_movmatrix;
    d->in->flags |= EMU_INSN_SYNC;
    d->in->dst = emu_dec_dst(d, EMU_b32);
    d->in->src[0] = emu_dec_src(d, EMU_b32);
}

// The type whose row of the table an operand's type belongs to.
static enum emu_type family(enum emu_type type)
{
    return type == EMU_u8 ? EMU_s8 : type == EMU_e5m2 ? EMU_e4m3 : type;
}

static const struct {
    const char *name;
    uint8_t m, k, a, c;
} shapes[] = {
#define MMA(m, k, a, c) {"m" #m "n8k" #k, m, k, EMU_##a, EMU_##c},
#include "emu/mma.def"
};

static bool find_shape(struct emu_dec *d, struct shape *s)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (shapes[i].a == family(s->a) && shapes[i].a == family(s->b) && shapes[i].c == s->c &&
            shapes[i].c == s->d && emu_dec_mod(d, shapes[i].name)) {
            s->m = shapes[i].m;
            s->k = shapes[i].k;
            return true;
        }
    return false;
}

void emu_decode_mma(struct emu_dec *d)
{
    static const char *const must[] = {"sync", "aligned", "row", "col", NULL};
    struct emu_insn *in = d->in;
    struct shape s;
    need_mods(d, must);
    in->op = emu_dec_mod(d, "satfinite") ? MMA_SATFINITE : 0;
    s.d = emu_dec_type(d);
    s.a = emu_dec_type(d);
    s.b = emu_dec_type(d);
    s.c = emu_dec_type(d);
    if (!find_shape(d, &s) || (in->op && s.d != EMU_s32))
        emu_dec_bad(d, "unknown shape or types");
    in->run = emu_run_mma;
    in->flags |= EMU_INSN_SYNC;
    in->space = (uint8_t)s.m;
    in->size = (uint8_t)s.k;
    in->type = (uint8_t)s.a;
    in->type2 = (uint8_t)s.b;
    in->round = (uint8_t)s.c;
    in->width = (uint8_t)s.d;
    const enum emu_type reg = s.d == EMU_f64 ? EMU_b64 : EMU_b32;
    emu_dec_args_begin(d);
    take_registers(d, registers_of(s.d, s.m / 4), reg, true);
    take_registers(d, s.m / 8 * s.k / (4 * per_register(s.a)), reg, false);
    take_registers(d, s.k / (4 * per_register(s.b)), reg, false);
    take_registers(d, registers_of(s.c, s.m / 4), reg, false);
}
