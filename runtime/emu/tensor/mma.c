// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mma.sync: the product of matrices that the registers of a warp hold.
//
// Every shape but m8n8k4 of f16 spreads its matrices in one way. With g = lane / 4, t = lane % 4
// and e elements to a register:
//   A, register r:  row g + 8 (r % (m / 8)),  k = 4 e (r / (m / 8)) + e t + i
//   B, register r:  column g,                 k = 4 e r + e t + i
//   C, D, value v:  row g + 8 (v / 2),        column 2 t + v % 2
// So the 32 lanes of a register of A are, as they lie in memory, 8 rows of 4 e elements, those of B
// are 8 columns of as many, and two registers of C taken in turns are 8 rows of 8.
//
// A sparse A has half of its elements stored, spread like those of a dense A of k / 2.
//
// Products are exact in double. They are summed in double, in the order of k, C last, and rounded
// once to nearest even. Hardware keeps fewer bits while it sums and truncates some of them, so
// results differ from it in the last bits, as they do between generations of hardware. f64 is a
// chain of fused multiply-adds in the order of k.

#include "emu/tensor/mma.h"

#include <fenv.h>
#include <math.h>
#include <stdalign.h>
#include <string.h>

#include "emu/lane/fp.h"
#include "emu/run/run.h"
#include "emu/run/state.h"

enum { MAX_M = 16, MAX_K = 256, N = 8, SCALES = 4 };

const struct emu_mma_shape emu_mma_shapes[] = {
#define MMA(sparse, kind, m, k, a, c) \
    {"m" #m "n8k" #k, EMU_MMA_##sparse, EMU_MMA_##kind, m, EMU_##c, k, EMU_##a},
#include "emu/tensor/mma.def"
};
const uint32_t emu_mma_shape_count = sizeof emu_mma_shapes / sizeof *emu_mma_shapes;

struct product {
    const struct emu_mma_shape *s;
    const struct emu_arg *d, *a, *b, *c, *sparse, *scales;
    struct emu_element ea, eb;
    uint32_t stored; // elements of a row of A
    double left[MAX_M * MAX_K], right[MAX_K * N];
    double sum[MAX_M * N];
    uint16_t at[MAX_M * MAX_K / 2];
};

bool emu_whole_warp(struct emu_warp *w, uint32_t mask)
{
    if (!emu_path_gather(w, mask, EMU_FULL))
        return false;
    if (mask != EMU_FULL)
        emu_fault(w, emu_first_lane(mask), "warp instruction with lanes 0x%08x only", mask);
    return emu_path_meet(w, mask, EMU_FULL);
}

static void gather_a(const struct emu_warp *w, struct product *p)
{
    const uint32_t count = emu_element_count(p->ea), rows = p->s->m / 8u;
    for (uint32_t r = 0; r < rows * p->stored / count; r++)
        emu_register_decode(p->ea, emu_at_ref(w, p->a[r].ref),
                            p->left + r % rows * 8 * p->stored + r / rows * count, p->stored);
}

static void gather_b(const struct emu_warp *w, struct product *p)
{
    const uint32_t count = emu_element_count(p->eb);
    for (uint32_t r = 0; r < p->s->k / count; r++) {
        double values[8 * 128], *to = p->right + r * count * N;
        emu_elements_decode(p->eb, emu_at_ref(w, p->b[r].ref), 8 * count, values);
        for (uint32_t g = 0; g < 8; g++)
            for (uint32_t i = 0; i < count; i++)
                to[i * N + g] = values[g * count + i];
    }
}

// --- sparse A ---

static void place_a(struct emu_warp *w, const struct emu_insn *in, struct product *p)
{
    const uint32_t *lanes = emu_at_ref(w, p->sparse->ref);
    for (uint32_t row = 0; row < p->s->m; row++) {
        const uint64_t bits = emu_sparse_metadata(p->ea, lanes, p->s->k, (uint32_t)in->offset, row);
        if (!emu_sparse_positions(p->ea, bits, p->stored, in->op & EMU_MMA_ORDERED,
                                  p->at + row * p->stored))
            emu_fault(w, row % 8 * 4,
                      "sparse metadata 0x%llx of row %u names no two places of four",
                      (unsigned long long)bits, row);
    }
}

// --- scales ---

static uint32_t selector(struct emu_warp *w, const struct emu_arg *arg, uint32_t limit,
                         const char *what)
{
    const uint32_t value = *(const uint16_t *)emu_at_ref(w, arg->ref);
    if (value >= limit)
        emu_fault(w, 0, "the %s of a scale is %u", what, value);
    return value;
}

// scales: data, byte and thread of A, then of B
static void apply_scales(struct emu_warp *w, const struct emu_insn *in, struct product *p)
{
    const uint32_t chunks = in->width, length = p->s->k / chunks;
    const struct emu_element type = emu_element_packed((enum emu_type)in->space);
    double factor[SCALES];
    for (uint32_t side = 0; side < 2; side++) {
        const struct emu_arg *args = p->scales + 3 * side;
        const uint32_t *data = emu_at_ref(w, args[0].ref);
        const uint32_t byte = selector(w, &args[1], 4, "byte");
        const uint32_t thread = selector(w, &args[2], side ? 4 : 2, "thread");
        if (byte % chunks)
            emu_fault(w, 0, "the byte of a vector of %u scales is %u", chunks, byte);
        for (uint32_t row = 0; row < (side ? N : p->s->m); row++) {
            const uint32_t lane = row % 8 * 4 + (side ? thread : 2 * thread + row / 8);
            const uint32_t bits = data[lane] >> 8 * byte;
            emu_elements_decode(type, &bits, chunks, factor); // little endian
            for (uint32_t j = 0; j < (side ? p->s->k : p->stored); j++) {
                const uint32_t at = side || !p->sparse ? j : p->at[row * p->stored + j];
                double *value = side ? &p->right[j * N + row] : &p->left[row * p->stored + j];
                *value *= factor[at / length];
            }
        }
    }
}

// --- results ---

// Rows 8 h ... 8 h + 7 as registers of f32 or s32: lane i has two values next to each other.
static void finish_words(const struct emu_warp *w, const struct product *p, uint32_t h,
                         bool saturate, uint32_t (*out)[EMU_WARP])
{
    const double *sum = p->sum + h * 8 * N;
    for (uint32_t v = 0; v < 2; v++) {
        const uint32_t *c = emu_at_ref(w, p->c[2 * h + v].ref);
        for (uint32_t i = 0; i < EMU_WARP && p->s->c == EMU_f32; i++) {
            const float f = (float)(sum[2 * i + v] + emu_f32_of(c[i]));
            out[v][i] = f != f ? EMU_NAN_F32 : emu_f32_bits(f);
        }
        for (uint32_t i = 0; i < EMU_WARP && p->s->c == EMU_s32; i++)
            out[v][i] =
                (uint32_t)emu_matrix_finish(sum[2 * i + v], (int32_t)c[i], EMU_s32, saturate);
    }
}

static void finish_halves(const struct emu_warp *w, const struct product *p, uint32_t h,
                          uint32_t *out)
{
    const double *sum = p->sum + h * 8 * N;
    const uint32_t *c = emu_at_ref(w, p->c[h].ref);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        const uint64_t low =
            emu_matrix_finish(sum[2 * i], emu_matrix_c(c[i] & 0xffff, EMU_f16), EMU_f16, false);
        const uint64_t high =
            emu_matrix_finish(sum[2 * i + 1], emu_matrix_c(c[i] >> 16, EMU_f16), EMU_f16, false);
        out[i] = (uint32_t)(low | high << 16);
    }
}

static void finish(struct emu_warp *w, const struct emu_insn *in, const struct product *p)
{
    alignas(16) uint32_t out[4][EMU_WARP]; // before anything is written: D may be C in other order
    const uint32_t count = emu_mma_registers(p->s->m / 4u, emu_types[p->s->c].bits);
    for (uint32_t h = 0; h < p->s->m / 8u; h++)
        if (p->s->c == EMU_f16)
            finish_halves(w, p, h, out[h]);
        else
            finish_words(w, p, h, in->op & EMU_MMA_SATFINITE, out + 2 * h);
    for (uint32_t r = 0; r < count; r++)
        emu_commit(w, p->d[r].ref, out[r], 4, EMU_FULL);
}

static int host_rounding(uint8_t round)
{
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    return modes[round];
}

static void chains(struct emu_warp *w, const struct emu_insn *in, const struct product *p)
{
    alignas(16) double out[4][EMU_WARP];
    fesetround(host_rounding(in->round));
    for (uint32_t v = 0; v < p->s->m / 4u; v++) {
        const double *c = emu_at_ref(w, p->c[v].ref);
        for (uint32_t lane = 0; lane < EMU_WARP; lane++) {
            const double *row = p->left + (lane / 4 + v / 2 * 8) * p->s->k;
            const double *column = p->right + 2 * (lane % 4) + v % 2;
            double sum = c[lane];
            for (uint32_t k = 0; k < p->s->k; k++)
                sum = fma(row[k], column[k * N], sum);
            out[v][lane] = sum;
        }
    }
    fesetround(FE_TONEAREST);
    for (uint32_t v = 0; v < p->s->m / 4u; v++)
        emu_commit(w, p->d[v].ref, out[v], 8, EMU_FULL);
}

// A bit as 1 or -1: the product is 1 where two bits are equal, so their sum is k - 2 popc(xor).
static void signs(double *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        values[i] = 1 - 2 * values[i];
}

static void begin(const struct emu_warp *w, const struct emu_insn *in, struct product *p)
{
    const struct emu_mma_shape *s = &emu_mma_shapes[in->size];
    p->s = s;
    p->ea = emu_mma_element(s, (enum emu_type)in->type);
    p->eb = emu_mma_element(s, (enum emu_type)in->type2);
    p->stored = emu_mma_stored(s);
    const uint32_t cs = emu_mma_registers(s->m / 4u, emu_types[s->c].bits);
    p->d = &w->launch->module->args.at[in->list];
    p->a = p->d + cs;
    p->b = p->a + emu_mma_registers(s->m * p->stored / EMU_WARP, p->ea.bits);
    p->c = p->b + emu_mma_registers(s->k * N / EMU_WARP, p->eb.bits);
    p->sparse = s->sparse ? p->c + cs : NULL;
    p->scales = p->c + cs + s->sparse;
}

// list: registers of D, A, B, C, then metadata, then what scales; offset: which lanes have
// metadata; width: how many scales for k; space: their type; size: the shape; type, type2: of A and
// B
EMU_RUN(mma)
{
    struct product p;
    if (!emu_whole_warp(w, mask))
        return;
    begin(w, in, &p);
    gather_a(w, &p);
    gather_b(w, &p);
    if (p.sparse)
        place_a(w, in, &p);
    if (in->width)
        apply_scales(w, in, &p);
    if (p.s->c == EMU_f64) {
        chains(w, in, &p);
        return;
    }
    if (in->op & EMU_MMA_XOR) {
        signs(p.left, p.s->m * p.s->k);
        signs(p.right, p.s->k * N);
    }
    emu_matrix_multiply(p.s->m, N, p.stored, p.left, p.sparse ? p.at : NULL, p.right, p.sum);
    for (uint32_t i = 0; i < p.s->m * N && in->op & EMU_MMA_XOR; i++)
        p.sum[i] = (p.s->k - p.sum[i]) / 2;
    finish(w, in, &p);
}

// --- m8n8k4 of f16: four products, each by four lanes and the four 16 further ---

// The place of value i of C or D.
static uint32_t quad_place(uint32_t lane, uint32_t i, enum emu_type type)
{
    const uint32_t row = type == EMU_f16 ? lane % 4 : lane % 2 + (i & 2);
    const uint32_t column = type == EMU_f16 ? i : (i & 4) + (lane & 2) + i % 2;
    return (row + lane / 16 * 4) * 8 + column;
}

static void quad_gather(const struct emu_warp *w, const struct emu_arg *args, uint32_t quad,
                        bool along_k, double *out, uint32_t k_step, uint32_t step)
{
    const struct emu_element f16 = emu_element_packed(EMU_f16);
    for (uint32_t n = 0; n < 8; n++) {
        const uint32_t lane = quad * 4 + n % 4 + n / 4 * 16;
        double value[4];
        for (uint32_t r = 0; r < 2; r++)
            emu_elements_decode(f16, (const uint32_t *)emu_at_ref(w, args[r].ref) + lane, 2,
                                value + 2 * r);
        for (uint32_t i = 0; i < 4; i++)
            if (along_k)
                out[n * step + i * k_step] = value[i];
            else
                out[(n / 4 * 4 + i) * step + n % 4 * k_step] = value[i];
    }
}

// list: registers of D, A, B, C; type, type2: of D and C
EMU_RUN(mma_quads)
{
    const enum emu_type type_d = (enum emu_type)in->type, type_c = (enum emu_type)in->type2;
    alignas(16) uint32_t out[8][EMU_WARP];
    if (!emu_whole_warp(w, mask))
        return;
    const struct emu_arg *d = &w->launch->module->args.at[in->list];
    const uint32_t count = emu_mma_registers(8, emu_types[type_d].bits);
    const struct emu_arg *a = d + count, *b = a + 2, *c = b + 2;
    for (uint32_t quad = 0; quad < 4; quad++) {
        double left[8 * 4], right[4 * 8], sum[64], results[64];
        quad_gather(w, a, quad, !(in->op & EMU_MMA_A_BY_COLUMNS), left, 1, 4);
        quad_gather(w, b, quad, !(in->op & EMU_MMA_B_BY_ROWS), right, 8, 1);
        emu_matrix_multiply(8, 8, 4, left, NULL, right, sum);
        for (uint32_t n = 0; n < 8; n++)
            for (uint32_t i = 0; i < 8; i++) {
                const uint32_t lane = quad * 4 + n % 4 + n / 4 * 16;
                const bool half = type_c == EMU_f16;
                const uint32_t *from = emu_at_ref(w, c[half ? i / 2 : i].ref);
                const uint32_t bits = half ? from[lane] >> i % 2 * 16 & 0xffff : from[lane];
                results[quad_place(lane, i, type_c)] = emu_matrix_c(bits, type_c);
            }
        for (uint32_t n = 0; n < 8; n++)
            for (uint32_t i = 0; i < 8; i++) {
                const uint32_t lane = quad * 4 + n % 4 + n / 4 * 16;
                const uint32_t at = quad_place(lane, i, type_d);
                const uint32_t bits =
                    (uint32_t)emu_matrix_finish(sum[at], results[at], type_d, false);
                if (type_d == EMU_f32)
                    out[i][lane] = bits;
                else
                    out[i / 2][lane] = i % 2 ? out[i / 2][lane] | bits << 16 : bits;
            }
    }
    for (uint32_t r = 0; r < count; r++)
        emu_commit(w, d[r].ref, out[r], 4, EMU_FULL);
}
