// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wmma.load, wmma.store and wmma.mma.

#include "emu/tensor/wmma.h"

#include <fenv.h>
#include <math.h>
#include <stdalign.h>
#include <string.h>

#include "emu/lane/fp.h"
#include "emu/run/run.h"
#include "emu/run/state.h"

const struct emu_wmma_shape emu_wmma_shapes[] = {
    {"m16n16k16", 16, 16, 16}, {"m8n32k16", 8, 32, 16}, {"m32n8k16", 32, 8, 16},
    {"m16n16k8", 16, 16, 8},   {"m8n8k4", 8, 8, 4},     {"m8n8k32", 8, 8, 32},
    {"m8n8k128", 8, 8, 128},   {NULL, 0, 0, 0},
};

struct emu_wmma_fragment emu_wmma_fragment_of(const struct emu_wmma_shape *s,
                                              enum emu_wmma_side side, enum emu_type type)
{
    struct emu_wmma_fragment f;
    const uint32_t bits = emu_types[type].bits;
    f.rows = side == EMU_WMMA_B ? s->n : s->m;
    f.columns = side == EMU_WMMA_C ? s->n : s->k;
    f.elements = side == EMU_WMMA_C ? 2 : bits == 64 ? 1 : 32 / bits;
    f.tiles = f.rows / 8 * (f.columns / (4 * f.elements));
    f.registers = side == EMU_WMMA_C ? f.tiles * (type == EMU_f16 ? 1 : 2) : f.tiles;
    if (side != EMU_WMMA_C && type == EMU_f16)
        f.registers = 8;
    return f;
}

// --- memory ---

struct access {
    const struct emu_wmma_fragment f;
    const struct emu_insn *in;
    enum emu_wmma_side side;
    uint32_t bits;
    bool by_rows; // the elements of a row of the fragment follow one another in memory
    uint64_t address[EMU_WARP];
    const uint32_t *stride;
    uint32_t default_stride;
};

static struct access access_of(struct emu_warp *w, const struct emu_insn *in)
{
    const struct emu_wmma_shape *s = &emu_wmma_shapes[in->size];
    const enum emu_wmma_side side = in->op & EMU_WMMA_SIDE;
    const struct emu_wmma_fragment f = emu_wmma_fragment_of(s, side, (enum emu_type)in->type);
    const bool by_rows = !(in->op & EMU_WMMA_COL) != (side == EMU_WMMA_B);
    struct access a = {.f = f,
                       .in = in,
                       .side = side,
                       .bits = emu_types[in->type].bits,
                       .by_rows = by_rows,
                       .stride = in->op & EMU_WMMA_STRIDE ? emu_at_ref(w, in->src[1]) : NULL,
                       .default_stride = by_rows ? f.columns : f.rows};
    emu_addresses(w, in, a.address);
    return a;
}

// The bytes of `count` elements that follow one another from element (row, column) of a lane.
static struct emu_cell cell(struct emu_warp *w, const struct access *a, uint32_t lane, uint32_t row,
                            uint32_t column, uint32_t count, enum emu_access kind)
{
    const uint64_t stride = a->stride ? a->stride[lane] : a->default_stride;
    const uint64_t at = a->by_rows ? row * stride + column : column * stride + row;
    return emu_resolve(w, lane, (enum emu_space)a->in->space, a->address[lane] + at * a->bits / 8,
                       a->bits * count / 8, kind);
}

// The place of a lane's first element of a tile.
static void place(const struct access *a, uint32_t tile, uint32_t lane, uint32_t *row,
                  uint32_t *column)
{
    const uint32_t down = a->f.rows / 8;
    *row = tile % down * 8 + lane / 4;
    *column = (tile / down * 4 + lane % 4) * a->f.elements;
}

// Where the value i of a tile goes: the register, and how far up in it.
static uint32_t register_of(const struct access *a, uint32_t tile, uint32_t i, uint32_t *shift)
{
    const bool split = a->side == EMU_WMMA_C && a->bits >= 32;
    *shift = split ? 0 : i * a->bits;
    return split ? 2 * tile + i : tile;
}

// list: registers; src[0] + offset: address; src[1]: stride; size: shape; type
EMU_RUN(wmma_load)
{
    alignas(16) uint64_t wide[16][EMU_WARP];
    alignas(16) uint32_t narrow[16][EMU_WARP];
    if (!emu_whole_warp(w, mask))
        return;
    const struct access a = access_of(w, in);
    const uint32_t step = a.bits < 8 ? 32 / a.bits : 1; // elements of an access
    memset(narrow, 0, sizeof narrow);
    for (uint32_t tile = 0; tile < a.f.tiles; tile++)
        for (uint32_t lane = 0; lane < EMU_WARP; lane++)
            for (uint32_t i = 0; i < a.f.elements; i += step) {
                uint32_t row, column, shift;
                uint64_t value = 0;
                place(&a, tile, lane, &row, &column);
                const struct emu_cell from = cell(w, &a, lane, row, column + i, step, EMU_LOAD);
                memcpy(&value, from.bytes, a.bits * step / 8); // little endian
                const uint32_t r = register_of(&a, tile, i, &shift);
                wide[r][lane] = value;
                narrow[r][lane] |= (uint32_t)value << shift;
            }
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    const uint32_t distinct = a.side == EMU_WMMA_C ? a.f.registers : a.f.tiles;
    for (uint32_t r = 0; r < a.f.registers; r++)
        emu_commit(w, args[r].ref, a.bits == 64 ? (void *)wide[r] : (void *)narrow[r % distinct],
                   a.bits == 64 ? 8 : 4, EMU_FULL);
}

EMU_RUN(wmma_store)
{
    if (!emu_whole_warp(w, mask))
        return;
    const struct access a = access_of(w, in);
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    for (uint32_t tile = 0; tile < a.f.tiles; tile++)
        for (uint32_t lane = 0; lane < EMU_WARP; lane++)
            for (uint32_t i = 0; i < a.f.elements; i++) {
                uint32_t row, column, shift;
                place(&a, tile, lane, &row, &column);
                const struct emu_cell to = cell(w, &a, lane, row, column + i, 1, EMU_STORE);
                const void *lanes = emu_at_ref(w, args[register_of(&a, tile, i, &shift)].ref);
                const uint64_t value = a.bits == 64 ? ((const uint64_t *)lanes)[lane]
                                                    : ((const uint32_t *)lanes)[lane] >> shift;
                memcpy(to.bytes, &value, a.bits / 8); // little endian
                memset(to.shadow, EMU_SET, a.bits / 8);
            }
}

// --- products ---

enum { MOST_A = 32 * 16, MOST_K = 128 };

struct product {
    const struct emu_wmma_shape *s;
    const struct emu_arg *d, *a, *b, *c;
    enum emu_type type_d, type_c;
    double left[8 * MOST_K > MOST_A ? 8 * MOST_K : MOST_A];
    double right[8 * MOST_K > MOST_A ? 8 * MOST_K : MOST_A]; // by rows of n, then of k
    double sum[16 * 16];
};

static void gather(const struct emu_warp *w, const struct emu_arg *args,
                   const struct emu_wmma_fragment *f, enum emu_type type, double *out)
{
    const struct emu_element e = emu_element_packed(type);
    const uint32_t down = f->rows / 8;
    for (uint32_t t = 0; t < f->tiles; t++)
        emu_register_decode(e, emu_at_ref(w, args[t].ref),
                            out + t % down * 8 * f->columns + t / down * emu_element_count(e),
                            f->columns);
}

static double value_of_c(const struct emu_warp *w, const struct product *p, uint32_t tile,
                         uint32_t i, uint32_t lane)
{
    const bool half = p->type_c == EMU_f16;
    const void *lanes = emu_at_ref(w, p->c[half ? tile : 2 * tile + i].ref);
    if (p->type_c == EMU_f64)
        return ((const double *)lanes)[lane];
    const uint32_t word = ((const uint32_t *)lanes)[lane];
    return emu_matrix_c(half ? word >> 16 * i & 0xffff : word, p->type_c);
}

static void finish(struct emu_warp *w, const struct emu_insn *in, const struct product *p)
{
    alignas(16) uint32_t out[16][EMU_WARP];
    const struct emu_wmma_fragment f = emu_wmma_fragment_of(p->s, EMU_WMMA_C, p->type_d);
    const uint32_t down = f.rows / 8;
    const bool half = p->type_d == EMU_f16;
    memset(out, 0, sizeof out);
    for (uint32_t tile = 0; tile < f.tiles; tile++)
        for (uint32_t lane = 0; lane < EMU_WARP; lane++)
            for (uint32_t i = 0; i < 2; i++) {
                const uint32_t row = tile % down * 8 + lane / 4;
                const uint32_t column = tile / down * 8 + lane % 4 * 2 + i;
                const uint64_t bits = emu_matrix_finish(p->sum[row * p->s->n + column],
                                                        value_of_c(w, p, tile, i, lane), p->type_d,
                                                        in->op & EMU_WMMA_SATFINITE);
                out[half ? tile : 2 * tile + i][lane] |= (uint32_t)bits << (half ? 16 * i : 0);
            }
    for (uint32_t r = 0; r < f.registers; r++)
        emu_commit(w, p->d[r].ref, out[r], 4, EMU_FULL);
}

// m8n8k4 of f64: fused multiply-adds in the order of k.
static void chains(struct emu_warp *w, const struct emu_insn *in, const struct product *p)
{
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    alignas(16) double out[2][EMU_WARP];
    fesetround(modes[in->round]);
    for (uint32_t lane = 0; lane < EMU_WARP; lane++)
        for (uint32_t i = 0; i < 2; i++) {
            double sum = value_of_c(w, p, 0, i, lane);
            for (uint32_t k = 0; k < p->s->k; k++)
                sum = fma(p->left[lane / 4 * p->s->k + k],
                          p->right[(lane % 4 * 2 + i) * p->s->k + k], sum);
            out[i][lane] = sum;
        }
    fesetround(FE_TONEAREST);
    for (uint32_t i = 0; i < 2; i++)
        emu_commit(w, p->d[i].ref, out[i], 8, EMU_FULL);
}

static void multiply(struct product *p, bool xor_bits)
{
    double across[sizeof p->right / sizeof *p->right]; // B by rows of k
    const uint32_t m = p->s->m, n = p->s->n, k = p->s->k;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < k; j++)
            across[j * n + i] = xor_bits ? 1 - 2 * p->right[i * k + j] : p->right[i * k + j];
    for (uint32_t i = 0; i < m * k && xor_bits; i++)
        p->left[i] = 1 - 2 * p->left[i];
    emu_matrix_multiply(m, n, k, p->left, NULL, across, p->sum);
    for (uint32_t i = 0; i < m * n && xor_bits; i++) // equal bits count 1, others -1
        p->sum[i] = (k - p->sum[i]) / 2;
}

// list: registers of D, A, B, C; size: shape; type, type2, width, space: of A, B, C, D
EMU_RUN(wmma_mma)
{
    struct product p;
    if (!emu_whole_warp(w, mask))
        return;
    p.s = &emu_wmma_shapes[in->size];
    p.type_c = (enum emu_type)in->width;
    p.type_d = (enum emu_type)in->space;
    const enum emu_type type_a = (enum emu_type)in->type, type_b = (enum emu_type)in->type2;
    const struct emu_wmma_fragment a = emu_wmma_fragment_of(p.s, EMU_WMMA_A, type_a);
    const struct emu_wmma_fragment b = emu_wmma_fragment_of(p.s, EMU_WMMA_B, type_b);
    p.d = &w->launch->module->args.at[in->list];
    p.a = p.d + emu_wmma_fragment_of(p.s, EMU_WMMA_C, p.type_d).registers;
    p.b = p.a + a.registers;
    p.c = p.b + b.registers;
    gather(w, p.a, &a, type_a, p.left);
    gather(w, p.b, &b, type_b, p.right);
    if (p.type_d == EMU_f64) {
        chains(w, in, &p);
        return;
    }
    multiply(&p, in->op & EMU_WMMA_XOR);
    finish(w, in, &p);
}
