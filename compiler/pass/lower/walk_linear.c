// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, shared and local memory: addresses by the bits of their coordinates.
//
// When all sizes are powers of two (but for the outermost of a dimension, above which there are no
// bits), element coordinates and byte addresses are bit vectors, and the map between them
// (iterators and XOR swizzle alike) is linear over them:
//     address(thread ^ constant) = address(thread) ^ address(constant).
// So the thread's part is computed once, with a swizzle from the bits of the thread's number; a
// register's constant splits into bits that the thread's part never has (they are added, as the
// instruction's immediate) and the few others (XORed).
// Indices that only choose a slot of a ring are a plain addition; others that are multiples of the
// tile's own extent have bits of their own and are XORed to the thread's part.

#include "pass/lower/walk.h"

// Are the bits of dimension d's coordinates bits of the position?
static bool is_bitwise(const struct tir_layout *l, uint32_t d)
{
    for (uint32_t i = l->first[d]; i < l->first[d + 1]; i++) {
        bool outermost = i == l->first[d] && l->iters[i].axis == TIR_AXIS_REG;
        if (!tir_is_pow2(l->iters[i].stride) || !(outermost || tir_is_pow2(l->iters[i].extent)))
            return false;
    }
    return true;
}

static uint32_t tile_extent(const struct lower_walk *w, uint32_t d)
{
    int32_t t = w->dims[d].tile_dim;
    return t >= 0 && w->layout ? (uint32_t)w->layout->shape[t] : 1;
}

// A start that may be added to the address: its dimension is one iterator in memory, it is a
// multiple of the tile's extent, and so far apart that the swizzle's pattern is at its beginning
// again.
static bool chooses_slot(const struct lower_walk *w, uint32_t d)
{
    const struct tir_layout *m = w->memory;
    uint32_t extent = tile_extent(w, d);
    if (m->first[d + 1] - m->first[d] > 1 || w->dims[d].divisor % extent)
        return false;
    if (m->first[d + 1] == m->first[d])
        return true; // a dimension of size 1
    uint64_t step = (uint64_t)m->iters[m->first[d]].stride * extent * w->bits / 8;
    return !m->swizzle || step % TIR_SWIZZLE_BYTES == 0;
}

// A start whose bits are none of the tile's own.
static bool is_apart(const struct lower_walk *w, uint32_t d)
{
    uint32_t extent = tile_extent(w, d);
    return w->layout && is_bitwise(w->memory, d) && tir_is_pow2(extent) &&
           w->dims[d].divisor % extent == 0;
}

bool tir_lower_walk_is_linear(const struct lower_walk *w)
{
    for (uint32_t d = 0; w->layout && d < w->layout->rank; d++)
        if (!is_bitwise(w->layout, d))
            return false;
    for (uint32_t d = 0; d < w->rank; d++)
        if (w->dims[d].index || (tile_extent(w, d) != 1 && !is_bitwise(w->memory, d)) ||
            (w->dims[d].start && !chooses_slot(w, d) && !is_apart(w, d)))
            return false;
    return true;
}

// Bits of the address that multiples of the tile's extent along dimension d may have.
static uint64_t apart_bits(const struct lower_walk *w, uint32_t d)
{
    uint64_t bits = 0;
    for (int64_t s = tile_extent(w, d); s < w->memory->shape[d]; s += tile_extent(w, d)) {
        int64_t at[TIR_MAX_RANK] = {0};
        at[d] = s;
        bits |= tir_lower_walk_byte(w, at);
    }
    return bits;
}

static uint64_t thread_byte(const struct lower_walk *w, uint32_t lane, uint32_t warp)
{
    int64_t at[TIR_MAX_RANK];
    tir_lower_walk_coord(w, (struct tir_layout_at){{0, lane, warp}}, at);
    return tir_lower_walk_byte(w, at);
}

// Bits of the lane or of the warp that all go as far up in the address.
struct field {
    enum tir_axis axis;
    int32_t up; // below 0: down
    uint32_t bits;
};

// Each bit of a thread's number is one of an element, and one more of the pattern of a swizzle.
enum { MOST_FIELDS = 2 * 16 };

static uint32_t axis_bits(const struct lower *lo, enum tir_axis axis)
{
    uint32_t bits = 0;
    while (axis == TIR_AXIS_LANE ? bits < 5 : 1u << bits < lo->threads / 32)
        bits++;
    return bits;
}

// The fields that the thread's part is the sum of, modulo 2 in each bit.
static uint32_t list_fields(const struct lower *lo, const struct lower_walk *w,
                            struct field fields[MOST_FIELDS])
{
    uint32_t count = 0;
    for (enum tir_axis axis = TIR_AXIS_LANE; axis <= TIR_AXIS_WARP; axis++)
        for (int32_t i = 0; i < (int32_t)axis_bits(lo, axis); i++) {
            const uint32_t lane = axis == TIR_AXIS_LANE ? 1u << i : 0;
            const uint64_t byte = thread_byte(w, lane, axis == TIR_AXIS_WARP ? 1u << i : 0);
            for (int32_t to = 0; byte >> to; to++) {
                if (!(byte >> to & 1))
                    continue;
                uint32_t f = 0;
                while (f < count && (fields[f].axis != axis || fields[f].up != to - i))
                    f++;
                assert(f < MOST_FIELDS);
                if (f == count)
                    fields[count++] = (struct field){axis, to - i, 0};
                fields[f].bits |= 1u << i;
            }
        }
    return count;
}

static struct tir_value *take_field(struct lower *lo, const struct field *f)
{
    struct tir_value *x = tir_lower_thread(lo, f->axis);
    if (f->bits != (1u << axis_bits(lo, f->axis)) - 1)
        x = tir_binary(&lo->top, TIR_OP_AND, x, tir_lower_i32(lo, f->bits));
    if (f->up)
        x = tir_binary(&lo->top, f->up > 0 ? TIR_OP_SHL : TIR_OP_SHR, x,
                       tir_lower_i32(lo, f->up > 0 ? f->up : -f->up));
    return x;
}

// The thread's part of the address from the bits of its number, without coordinates.
static struct tir_value *thread_part(struct lower *lo, const struct lower_walk *w)
{
    struct field fields[MOST_FIELDS];
    const uint32_t count = list_fields(lo, w, fields);
    struct tir_value *sum = tir_lower_i32(lo, 0);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t bits = fields[i].up > 0 ? (uint64_t)fields[i].bits << fields[i].up
                                               : fields[i].bits >> -fields[i].up;
        struct tir_value *field = take_field(lo, &fields[i]);
        sum =
            !seen ? field : tir_binary(&lo->top, seen & bits ? TIR_OP_XOR : TIR_OP_ADD, sum, field);
        seen |= bits;
    }
    return sum;
}

void tir_lower_walk_open_linear(struct lower *lo, struct lower_walk *w)
{
    struct tir_value *coord[TIR_MAX_RANK] = {NULL}, *apart[TIR_MAX_RANK] = {NULL};
    const struct tir_layout *m = w->memory;
    // Without a swizzle, and where threads copy tiles, addresses in global memory are of the same
    // coordinates.
    const bool by_bits = w->layout && m->swizzle && lo->swizzles_by_bits;
    for (uint32_t d = 0; d < w->rank; d++) {
        const struct walk_dim *dim = &w->dims[d];
        if (dim->tile_dim >= 0 && w->layout && !by_bits)
            coord[d] = tir_lower_coord(lo, w->layout, (uint32_t)dim->tile_dim);
        if (dim->start && !chooses_slot(w, d)) {
            apart[d] = dim->start;
            w->moves = true;
            w->thread_bits |= apart_bits(w, d);
        } else if (dim->start && m->first[d + 1] > m->first[d]) {
            w->slot = tir_lower_add(
                lo, &lo->b, w->slot,
                tir_lower_mul_const(lo, &lo->b, dim->start,
                                    (int64_t)m->iters[m->first[d]].stride * w->bits / 8));
        }
    }
    w->thread = by_bits ? thread_part(lo, w) : tir_lower_walk_address(lo, &lo->top, w, coord);
    if (w->moves)
        w->thread =
            tir_binary(&lo->b, TIR_OP_XOR, w->thread, tir_lower_walk_address(lo, &lo->b, w, apart));
    if (!w->layout)
        return;
    // The map is linear: a bit that some thread has, some lane of warp 0 or lane 0 of a warp has.
    for (uint32_t lane = 1; lane < 32; lane *= 2)
        w->thread_bits |= thread_byte(w, lane, 0);
    for (uint32_t warp = 1; warp < lo->threads / 32; warp++)
        w->thread_bits |= thread_byte(w, 0, warp);
}

struct tir_value *tir_lower_walk_linear_at(struct lower *lo, struct lower_walk *w, uint32_t reg,
                                           int64_t *offset)
{
    int64_t coord[TIR_MAX_RANK];
    tir_lower_walk_coord(w, (struct tir_layout_at){{reg, 0, 0}}, coord);
    uint64_t constant = tir_lower_walk_byte(w, coord), overlap = constant & w->thread_bits;
    struct tir_value *at = NULL;
    for (uint32_t i = 0; i < w->splits && !at; i++)
        if (w->split_bits[i] == overlap)
            at = w->split[i];
    if (!at) {
        at = w->thread;
        if (overlap)
            at = tir_binary(w->moves ? &lo->b : &lo->top, TIR_OP_XOR, at,
                            tir_lower_i32(lo, (int64_t)overlap));
        at = tir_lower_add(lo, &lo->b, at, w->slot);
        if (w->splits < TIR_COUNT_OF(w->split)) {
            w->split_bits[w->splits] = overlap;
            w->split[w->splits++] = at;
        }
    }
    *offset = (int64_t)(constant & ~w->thread_bits);
    return at;
}
