// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts of tiles that loads of tensor memory give and stores take (PTX ISA, tcgen05, "Data
// Movement Shape").
//
// A warp reaches the 32 lanes of its place in its warpgroup. 32x32b moves all of them, a lane a
// thread. The other shapes move 16, a part of a lane a thread: of blocks of 64 rows that is what a
// warp has, and of the others it is done twice. The shape decides in which threads an element is;
// in which of their registers is the program's matter.

#include "ir/layout.h"

struct sharing { // of a tile among warpgroups (tir_layout_tmem)
    uint32_t groups_m, groups_n, blocks, halves;
    bool is_whole; // a block has all lanes
};

static bool share(const int64_t shape[2], uint32_t warps, bool is_pair, struct sharing *out)
{
    const uint32_t groups = warps / 4, rows = (uint32_t)tir_tmem_block(shape[0]);
    if (!groups || warps % 4 || !rows)
        return false;
    out->blocks = (uint32_t)shape[0] / rows;
    out->groups_m = (uint32_t)tir_gcd(groups, out->blocks);
    out->groups_n = groups / out->groups_m;
    out->halves = tir_tmem_folds(shape[0], is_pair) ? 2 : 1;
    out->is_whole = rows == TIR_TMEM_LANES || out->halves == 2;
    return true;
}

const struct tir_layout *tir_layout_tmem(struct tir_types *types, const int64_t shape[2],
                                         uint32_t warps, bool is_pair)
{
    struct sharing s;
    if (!share(shape, warps, is_pair, &s))
        return NULL;
    if (!s.is_whole)
        return shape[1] % (8 * s.groups_n)
                   ? NULL
                   : tir_layout_wgmma(types, shape, s.groups_m, s.groups_n, warps);
    if (shape[1] % (s.halves * s.groups_n))
        return NULL;
    const uint32_t columns = (uint32_t)shape[1] / (s.halves * s.groups_n);
    struct tir_layout l = {.rank = 2,
                           .shape = {shape[0], shape[1]},
                           .iter_count = 7,
                           .first = {0, 4, 7},
                           .iters = {{s.groups_m, 4, TIR_AXIS_WARP},
                                     {s.blocks / s.groups_m, columns, TIR_AXIS_REG},
                                     {4 / s.halves, 1, TIR_AXIS_WARP},
                                     {32, 1, TIR_AXIS_LANE},
                                     {s.halves, 2, TIR_AXIS_WARP},
                                     {s.groups_n, 4 * s.groups_m, TIR_AXIS_WARP},
                                     {columns, 1, TIR_AXIS_REG}}};
    return tir_layout_get(types, &l);
}

const struct tir_layout *tir_layout_tmem_mma(struct tir_types *types, const int64_t shape[2],
                                             uint32_t warps, bool is_pair)
{
    struct sharing s;
    if (!share(shape, warps, is_pair, &s) || s.halves > 1 || s.blocks > s.groups_m ||
        shape[1] % (8 * s.groups_n))
        return NULL;
    return tir_layout_mma(types, shape, 4 * s.groups_m, s.groups_n, true, warps);
}

static void add(struct tir_layout *l, uint32_t extent, uint32_t stride, enum tir_axis axis)
{
    l->iters[l->iter_count++] = (struct tir_iter){extent, stride, axis};
}

// Where the words of a lane are in registers of 32 bits: r, as the instruction lists them. p:
// elements of a word. NULL: the shape does not divide the tile.
static const struct tir_layout *shaped(struct tir_types *types, const struct tir_type *tile,
                                       const struct sharing *s, uint32_t row_bits, uint32_t split)
{
    const uint32_t p = 32 / tir_elems[tile->elem].bits, parts = s->halves * s->groups_n * p;
    const uint32_t twice = row_bits && s->is_whole ? 2 : 1; // 16 lanes at a time
    const uint32_t words = (uint32_t)tile->shape[1] / parts;
    const uint32_t unit = !row_bits ? 1 : row_bits == 32 ? 2 * split : row_bits / 32;
    if (tile->shape[1] % parts || !unit || words % unit || (!row_bits && !s->is_whole))
        return NULL;
    const uint32_t each = (row_bits ? words / 2 : words) * p; // registers of a thread
    struct tir_layout l = {.rank = 2, .shape = {tile->shape[0], tile->shape[1]}};
    add(&l, s->groups_m, 4, TIR_AXIS_WARP);
    add(&l, s->blocks / s->groups_m, twice * each, TIR_AXIS_REG);
    add(&l, 4 / s->halves, 1, TIR_AXIS_WARP);
    add(&l, twice, each, TIR_AXIS_REG);
    if (row_bits == 64)
        add(&l, 2, 1, TIR_AXIS_LANE);
    else if (row_bits > 64)
        add(&l, 2, row_bits / 128 * p, TIR_AXIS_REG);
    if (row_bits > 32)
        add(&l, 8, 4, TIR_AXIS_LANE);
    else
        add(&l, row_bits ? 16 : 32, 1, TIR_AXIS_LANE);
    l.first[1] = l.iter_count;
    add(&l, s->halves, 2, TIR_AXIS_WARP);
    add(&l, s->groups_n, 4 * s->groups_m, TIR_AXIS_WARP);
    add(&l, words / unit, (row_bits ? unit / 2 : 1) * p, TIR_AXIS_REG);
    if (row_bits == 32)
        add(&l, 2, 16, TIR_AXIS_LANE);
    else if (row_bits == 64)
        add(&l, 2, 2, TIR_AXIS_LANE);
    else if (row_bits)
        add(&l, 4, 1, TIR_AXIS_LANE);
    if (row_bits == 32 || row_bits == 256)
        add(&l, row_bits == 32 ? split : 2, p, TIR_AXIS_REG);
    add(&l, p, 1, TIR_AXIS_REG);
    l.first[2] = l.iter_count;
    return tir_layout_get(types, &l);
}

// Are elements in the same threads, whatever their registers?
static bool same_threads(const struct tir_layout *a, const struct tir_layout *b)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < b->iter_count; i++)
        left += b->iters[i].axis != TIR_AXIS_REG;
    for (uint32_t d = 0; d < a->rank; d++)
        for (uint32_t i = a->first[d]; i < a->first[d + 1]; i++) {
            const struct tir_iter *x = &a->iters[i];
            bool found = x->axis == TIR_AXIS_REG;
            for (uint32_t k = b->first[d]; !found && k < b->first[d + 1]; k++) {
                const struct tir_iter *y = &b->iters[k];
                found = x->axis == y->axis && x->extent == y->extent && x->stride == y->stride &&
                        tir_layout_weight(a, d, i) == tir_layout_weight(b, d, k);
                left -= found;
            }
            if (!found)
                return false;
        }
    return !left && !a->replica_count && !b->replica_count;
}

// Words from what the first half of a warp has to what the second has, were it 16x32bx2; 0: it is
// not.
static uint32_t split_of(const struct tir_layout *l, uint32_t bits)
{
    for (uint32_t i = l->first[1]; i < l->first[2]; i++)
        if (l->iters[i].axis == TIR_AXIS_LANE && l->iters[i].stride == 16)
            return (uint32_t)tir_layout_weight(l, 1, i) * bits / 32;
    return 0;
}

bool tir_tmem_shape_of(struct tir_types *types, const struct tir_type *tile,
                       const struct tir_layout *l, uint32_t warps, bool is_pair,
                       struct tir_tmem_shape *out)
{
    static const uint32_t widths[] = {0, 256, 128, 64, 32};
    const uint32_t bits = tir_elems[tile->elem].bits;
    struct sharing s;
    if (bits < 8 || bits > 32 || l->rank != 2 || !share(tile->shape, warps, is_pair, &s) ||
        (!s.is_whole && bits != 32))
        return false;
    for (uint32_t i = 0; i < TIR_COUNT_OF(widths); i++) {
        const uint32_t split = widths[i] == 32 ? split_of(l, bits) : 0;
        const struct tir_layout *natural = shaped(types, tile, &s, widths[i], split);
        if (!natural || !same_threads(natural, l))
            continue;
        *out = (struct tir_tmem_shape){widths[i], split, natural};
        return true;
    }
    return false;
}
