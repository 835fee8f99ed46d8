// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, shared and local memory: the address of each register of a tile in a buffer.
//
// When all sizes are powers of two, element coordinates and byte addresses are bit vectors, and the
// map between them (iterators and XOR swizzle alike) is linear over them:
//     address(thread ^ constant) = address(thread) ^ address(constant).
// So the thread's part is computed once; a register's constant splits into bits that the thread's
// part never has (they are added, as the instruction's immediate) and the few others (XORed).
// Indices that only choose a slot of a ring are a plain addition. Anything else goes the slow,
// general way: coordinates, then digits, then the swizzle, for every register.

#include "ir/walk.h"
#include "pass/lower_tile.h"
#include "pass/shared.h"

struct lower_walk {
    struct tir_value *base;                // alloc
    const struct tir_layout *memory;       // its layout
    const struct tir_layout *layout;       // of the tile; NULL: a scalar
    uint32_t bits;                         // of an element
    uint32_t rank;                         // of the alloc
    int32_t tile_dim[TIR_MAX_RANK];        // dimension of the tile that walks this one, or -1
    struct tir_value *start[TIR_MAX_RANK]; // i32; NULL: 0
    uint64_t start_divisor[TIR_MAX_RANK];  // what divides start
    bool linear;
    struct tir_value *thread; // linear: the thread's part, bytes
    struct tir_value *slot;   // linear: bytes added by indices that choose a slot
    uint64_t thread_bits;     // linear: bits the thread's part may have
    struct tir_value
        *split[64]; // linear: thread ^ (bits of the constant that overlap), by those bits
    uint64_t split_bits[64];
    uint32_t splits;
    struct lower_vector vector;
};

static bool all_pow2(const struct tir_layout *l)
{
    for (uint32_t i = 0; i < l->iter_count; i++)
        if (!tir_is_pow2(l->iters[i].extent) || !tir_is_pow2(l->iters[i].stride))
            return false;
    return true;
}

static uint64_t byte_of(const struct lower_walk *w, const int64_t coord[TIR_MAX_RANK])
{
    uint64_t element = tir_layout_find(w->memory, coord).at[TIR_AXIS_REG];
    return tir_layout_byte(w->memory, element, w->bits);
}

// The tile's coordinates at a position, as coordinates of the alloc (starts not added).
static void alloc_coord(const struct lower_walk *w, struct tir_layout_at at,
                        int64_t out[TIR_MAX_RANK])
{
    int64_t coord[TIR_MAX_RANK] = {0};
    if (w->layout)
        tir_layout_coord(w->layout, at, coord);
    for (uint32_t d = 0; d < w->rank; d++)
        out[d] = w->tile_dim[d] >= 0 ? coord[w->tile_dim[d]] : 0;
}

// Byte address of coordinates given as values; NULL entries are 0.
static struct tir_value *address(struct lower *lo, struct tir_builder *b,
                                 const struct lower_walk *w, struct tir_value *const *coord)
{
    const struct tir_layout *m = w->memory;
    struct tir_value *element = NULL;
    for (uint32_t d = 0; d < m->rank; d++) {
        if (!coord[d])
            continue;
        for (uint32_t i = m->first[d]; i < m->first[d + 1]; i++) {
            struct tir_value *digit =
                tir_lower_digit(lo, b, coord[d], (uint32_t)tir_layout_weight(m, d, i),
                                m->iters[i].extent, i == m->first[d]);
            element = tir_lower_add(lo, b, element,
                                    tir_lower_mul_const(lo, b, digit, m->iters[i].stride));
        }
    }
    struct tir_value *byte = element ? tir_lower_mul_const(lo, b, element, TIR_MAX(1, w->bits / 8))
                                     : tir_lower_i32(lo, 0);
    if (m->swizzle) {
        struct tir_value *row = tir_lower_digit(lo, b, byte, 128, m->swizzle / 16, false);
        row = tir_binary(b, TIR_OP_SHL, row, tir_lower_i32(lo, 4));
        byte = tir_binary(b, TIR_OP_XOR, byte, row);
    }
    return byte;
}

static uint32_t tile_extent(const struct lower_walk *w, uint32_t d)
{
    return w->tile_dim[d] >= 0 && w->layout ? (uint32_t)w->layout->shape[w->tile_dim[d]] : 1;
}

// A start that may be added to the address: its dimension is one iterator in memory, it is a
// multiple of the tile's extent, and so far apart that the swizzle's pattern is at its beginning
// again.
static bool chooses_slot(const struct lower_walk *w, uint32_t d)
{
    const struct tir_layout *m = w->memory;
    uint32_t extent = tile_extent(w, d);
    if (m->first[d + 1] - m->first[d] > 1 || w->start_divisor[d] % extent)
        return false;
    if (m->first[d + 1] == m->first[d])
        return true; // a dimension of size 1
    uint64_t step = (uint64_t)m->iters[m->first[d]].stride * extent * w->bits / 8;
    return !m->swizzle || step % 1024 == 0;
}

static bool is_linear(const struct lower_walk *w)
{
    if (w->layout && !all_pow2(w->layout))
        return false;
    for (uint32_t d = 0; d < w->rank; d++) {
        const struct tir_layout *m = w->memory;
        if (tile_extent(w, d) != 1)
            for (uint32_t i = m->first[d]; i < m->first[d + 1]; i++)
                if (!tir_is_pow2(m->iters[i].extent) || !tir_is_pow2(m->iters[i].stride))
                    return false;
        if (w->start[d] && !chooses_slot(w, d))
            return false;
    }
    return true;
}

static void open_linear(struct lower *lo, struct lower_walk *w)
{
    struct tir_value *coord[TIR_MAX_RANK] = {NULL};
    for (uint32_t d = 0; d < w->rank; d++) {
        if (w->tile_dim[d] >= 0 && w->layout)
            coord[d] = tir_lower_coord(lo, w->layout, (uint32_t)w->tile_dim[d]);
        const struct tir_layout *m = w->memory;
        if (w->start[d] && m->first[d + 1] > m->first[d])
            w->slot = tir_lower_add(
                lo, &lo->b, w->slot,
                tir_lower_mul_const(lo, &lo->b, w->start[d],
                                    (int64_t)m->iters[m->first[d]].stride * w->bits / 8));
    }
    w->thread = address(lo, &lo->top, w, coord);
    if (!w->layout)
        return;
    for (uint32_t warp = 0; warp < lo->f->threads / 32; warp++)
        for (uint32_t lane = 0; lane < 32; lane++) {
            int64_t at[TIR_MAX_RANK];
            alloc_coord(w, (struct tir_layout_at){{0, lane, warp}}, at);
            w->thread_bits |= byte_of(w, at);
        }
}

// Registers that are neighbours in memory too: along the dimension whose innermost iterator is
// dense.
static struct lower_vector vector_of(const struct lower_walk *w)
{
    struct lower_vector alone = {1, 1};
    const struct tir_layout *m = w->memory, *l = w->layout;
    for (uint32_t d = 0; l && d < w->rank; d++) {
        if (m->first[d + 1] == m->first[d] || m->iters[m->first[d + 1] - 1].stride != 1)
            continue;
        if (w->tile_dim[d] < 0 || (w->start[d] && !w->linear))
            return alone;
        uint32_t t = (uint32_t)w->tile_dim[d];
        if (l->first[t + 1] == l->first[t])
            return alone;
        const struct tir_iter *inner = &l->iters[l->first[t + 1] - 1];
        if (inner->axis != TIR_AXIS_REG)
            return alone;
        uint32_t vector = TIR_MAX(1, 128 / w->bits);
        while (vector > 1 &&
               (inner->extent % vector || m->iters[m->first[d + 1] - 1].extent % vector))
            vector /= 2;
        return (struct lower_vector){vector, inner->stride};
    }
    return alone;
}

struct lower_walk *tir_lower_walk_new(struct lower *lo, struct tir_value *buffer,
                                      const struct tir_layout *l, struct tir_value *const *starts,
                                      const uint32_t *dims)
{
    struct lower_walk *w = arena_new(lo->cx->scratch, struct lower_walk);
    w->layout = l;
    w->bits = tir_elems[buffer->type->elem].bits;
    // In terms of `buffer` first, then through each view and permute down to the alloc.
    uint32_t rank = buffer->type->rank;
    for (uint32_t d = 0; d < TIR_MAX_RANK; d++)
        w->tile_dim[d] = -1;
    for (uint32_t d = 0; l && d < l->rank; d++)
        w->tile_dim[dims[d]] = (int32_t)d;
    for (uint32_t d = 0; starts && d < rank; d++) {
        int64_t c;
        if (!tir_is_const_int(starts[d], &c) || c != 0)
            w->start[d] = tir_lower_cast(lo, &lo->b, starts[d], lo->i32);
        w->start_divisor[d] = tir_range_divisor(lo->ranges, starts[d]);
    }
    while (buffer->def && buffer->def->op != TIR_OP_ALLOC) {
        struct tir_inst *inst = buffer->def;
        int32_t tile_dim[TIR_MAX_RANK];
        struct tir_value *start[TIR_MAX_RANK];
        uint64_t divisor[TIR_MAX_RANK];
        memcpy(divisor, w->start_divisor, sizeof(divisor));
        memcpy(tile_dim, w->tile_dim, sizeof(tile_dim));
        memcpy(start, w->start, sizeof(start));
        if (inst->op == TIR_OP_PERMUTE) {
            const struct tir_attr *order = tir_attr_find(inst, TIR_ATTR_permutation);
            for (uint32_t d = 0; d < order->list_count; d++) {
                w->tile_dim[order->list[d]] = tile_dim[d];
                w->start[order->list[d]] = start[d];
                w->start_divisor[order->list[d]] = divisor[d];
            }
            buffer = inst->operands[0];
            continue;
        }
        const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
        uint32_t inner = 0;
        for (uint32_t d = 0; d < box->list_count; d++) {
            struct tir_value *at = tir_lower_cast(lo, &lo->b, tir_ref_indices(inst)[d], lo->i32);
            int64_t c;
            if (tir_is_const_int(at, &c) && c == 0)
                at = NULL;
            w->tile_dim[d] = box->list[d] ? tile_dim[inner] : -1;
            uint64_t own = tir_range_divisor(lo->ranges, tir_ref_indices(inst)[d]);
            w->start[d] = box->list[d] ? tir_lower_add(lo, &lo->b, start[inner], at) : at;
            w->start_divisor[d] = box->list[d] ? tir_gcd(own, divisor[inner]) : own;
            inner += box->list[d] != 0;
        }
        buffer = tir_ref_base(inst);
    }
    w->base = buffer;
    w->rank = buffer->type->rank;
    w->memory = buffer->type->layout;
    w->linear = is_linear(w);
    if (w->linear)
        open_linear(lo, w);
    w->vector = vector_of(w);
    return w;
}

struct lower_vector tir_lower_walk_vector(const struct lower_walk *walk)
{
    return walk->vector;
}

static struct lower_place linear_at(struct lower *lo, struct lower_walk *w, uint32_t reg)
{
    int64_t coord[TIR_MAX_RANK];
    alloc_coord(w, (struct tir_layout_at){{reg, 0, 0}}, coord);
    uint64_t constant = byte_of(w, coord), overlap = constant & w->thread_bits;
    struct tir_value *at = NULL;
    for (uint32_t i = 0; i < w->splits && !at; i++)
        if (w->split_bits[i] == overlap)
            at = w->split[i];
    if (!at) {
        at = w->thread;
        if (overlap)
            at = tir_binary(&lo->top, TIR_OP_XOR, at, tir_lower_i32(lo, (int64_t)overlap));
        at = tir_lower_add(lo, &lo->b, at, w->slot);
        if (w->splits < TIR_COUNT_OF(w->split)) {
            w->split_bits[w->splits] = overlap;
            w->split[w->splits++] = at;
        }
    }
    return (struct lower_place){w->base, at, (int64_t)(constant & ~w->thread_bits)};
}

struct lower_place tir_lower_walk_at(struct lower *lo, struct lower_walk *w, uint32_t reg)
{
    if (w->linear)
        return linear_at(lo, w, reg);
    int64_t constant[TIR_MAX_RANK];
    alloc_coord(w, (struct tir_layout_at){{reg, 0, 0}}, constant);
    struct tir_value *coord[TIR_MAX_RANK] = {NULL};
    for (uint32_t d = 0; d < w->rank; d++) {
        if (w->tile_dim[d] >= 0 && w->layout)
            coord[d] = tir_lower_coord(lo, w->layout, (uint32_t)w->tile_dim[d]);
        if (w->start[d])
            coord[d] = tir_lower_add(lo, &lo->b, coord[d], w->start[d]);
        if (constant[d])
            coord[d] = coord[d]
                           ? tir_lower_add(lo, &lo->b, coord[d], tir_lower_i32(lo, constant[d]))
                           : tir_lower_i32(lo, constant[d]);
    }
    return (struct lower_place){w->base, address(lo, &lo->b, w, coord), 0};
}

void tir_lower_read(struct lower *lo, struct lower_walk *walk, enum tir_elem elem, uint32_t count,
                    struct tir_value **out)
{
    struct lower_vector v = walk->vector;
    for (uint32_t r = 0; r < count; r++) {
        if (!tir_lower_leads(v, r))
            continue;
        struct lower_place p = tir_lower_walk_at(lo, walk, r);
        struct tir_value *values[16];
        tir_lower_ld_vector(lo, p.base, p.at, p.offset, NULL, elem, v.count, values);
        for (uint32_t i = 0; i < v.count; i++)
            out[r + i * v.stride] = values[i];
    }
}

void tir_lower_write(struct lower *lo, struct lower_walk *walk, struct tir_value *value,
                     uint32_t count, struct tir_value *mask, struct tir_value *pred)
{
    struct lower_vector v = mask ? (struct lower_vector){1, 1} : walk->vector;
    for (uint32_t r = 0; r < count; r++) {
        if (!tir_lower_leads(v, r))
            continue;
        struct lower_place p = tir_lower_walk_at(lo, walk, r);
        struct tir_value *values[16];
        for (uint32_t i = 0; i < v.count; i++)
            values[i] = tir_lower_register(lo, value, r + i * v.stride);
        struct tir_value *on =
            mask ? tir_lower_and(lo, pred, tir_lower_register(lo, mask, r)) : pred;
        tir_lower_st_vector(lo, p.base, p.at, p.offset, on, v.count, values);
    }
}
