// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, shared and local memory: the place of each register.
//
// By bits, if the walk has addresses by them (walk_linear.c). Anything else, index tiles among it,
// goes the slow, general way: coordinates, then digits, then the swizzle, for every register. Where
// registers have not lasted (jobs.c), those share an address that lie as far apart in every thread,
// which is asked of each.

#include "pass/lower/walk.h"

// What part of a constant coordinate adds bytes to every address: whole steps of the outermost
// iterator, which no digit carries out of, and so many that the swizzle's pattern begins again.
static int64_t plain_part(const struct lower_walk *w, uint32_t d, int64_t constant, int64_t *bytes)
{
    const struct tir_layout *m = w->memory;
    if (m->first[d] == m->first[d + 1])
        return 0;
    const uint64_t unit = m->swizzle ? TIR_SWIZZLE_BYTES : 1;
    const uint64_t bits = (uint64_t)m->iters[m->first[d]].stride * w->bits;
    const uint64_t steps = 8 * unit / tir_gcd(8 * unit, bits);
    const int64_t step = tir_layout_weight(m, d, m->first[d]) * (int64_t)steps;
    *bytes += constant / step * (int64_t)(steps * bits / 8);
    return constant / step * step;
}

// Coordinates in the alloc, one by one.
static struct tir_value *general_at(struct lower *lo, struct tir_builder *b,
                                    const struct lower_walk *w, const int64_t tile[TIR_MAX_RANK],
                                    int64_t *offset)
{
    struct tir_value *coord[TIR_MAX_RANK] = {NULL};
    for (uint32_t d = 0; d < w->rank; d++) {
        const struct walk_dim *dim = &w->dims[d];
        int64_t constant = 0;
        if (dim->index) {
            struct tir_value *i = tir_lower_index_at(lo, dim->index, tile, (uint32_t)dim->tile_dim);
            coord[d] = tir_lower_narrowed(lo, i, lo->i32);
        } else if (dim->tile_dim >= 0 && w->layout) {
            coord[d] = tir_lower_coord(lo, w->layout, (uint32_t)dim->tile_dim);
            constant = tile[dim->tile_dim];
            if (tir_lower_walk_is_inside(w)) // so no address before the offset is below the buffer
                constant -= plain_part(w, d, constant, offset);
        }
        coord[d] = tir_lower_add(lo, b, coord[d], dim->start);
        if (constant)
            coord[d] = tir_lower_add(lo, b, coord[d], tir_lower_i32(lo, constant));
    }
    return tir_lower_walk_address(lo, b, w, coord);
}

static uint64_t register_byte(const struct lower_walk *w, uint32_t reg, uint32_t lane,
                              uint32_t warp)
{
    int64_t at[TIR_MAX_RANK];
    tir_lower_walk_coord(w, (struct tir_layout_at){{reg, lane, warp}}, at);
    return tir_lower_walk_byte(w, at);
}

// Does one register lie as many bytes behind another one in every thread?
static bool lies_behind(const struct lower *lo, const struct lower_walk *w, uint32_t first,
                        uint32_t reg, int64_t *bytes)
{
    *bytes = (int64_t)(register_byte(w, reg, 0, 0) - register_byte(w, first, 0, 0));
    for (uint32_t warp = 0; warp < lo->threads / 32; warp++)
        for (uint32_t lane = 0; lane < 32; lane++)
            if ((int64_t)(register_byte(w, reg, lane, warp) -
                          register_byte(w, first, lane, warp)) != *bytes)
                return false;
    return *bytes >= 0;
}

// Do threads and registers alone say where elements lie?
static bool is_fixed(const struct lower_walk *w)
{
    for (uint32_t d = 0; d < w->rank; d++)
        if (w->dims[d].index || w->dims[d].start)
            return false;
    return w->layout && tir_lower_walk_is_inside(w);
}

// Where registers have not lasted, the address of another register and an offset if there is one.
static struct tir_value *near_at(struct lower *lo, struct lower_walk *w, uint32_t reg,
                                 const int64_t tile[TIR_MAX_RANK], int64_t *offset)
{
    if (!lo->cx->attempt || !lo->cx->attempt->late || !is_fixed(w))
        return general_at(lo, &lo->b, w, tile, offset);
    vec_foreach(const struct walk_base, base, &w->bases)
        if (lies_behind(lo, w, base->reg, reg, offset)) {
            *offset += base->offset;
            return base->at;
        }
    *offset = 0;
    struct walk_base base = {.reg = reg, .at = general_at(lo, &lo->top, w, tile, offset)};
    base.offset = *offset;
    vec_push(lo->cx->scratch, &w->bases, base);
    return base.at;
}

// Has every thread its element of the register in the part that the walk is of?
static bool is_in_part(const struct lower_walk *w, const int64_t tile[TIR_MAX_RANK])
{
    const struct walk_part *p = &w->part;
    const int64_t first = tile[p->dim];
    return p->size && p->start <= first && first + p->reach < p->start + p->size;
}

static struct tir_value *inside(struct lower *lo, struct lower_walk *w,
                                const int64_t tile[TIR_MAX_RANK])
{
    struct tir_value *pred = NULL;
    if (is_in_part(w, tile))
        return NULL;
    for (uint32_t d = 0; d < w->slice_rank; d++) {
        struct slice_dim *s = &w->slice[d];
        struct tir_value *in = NULL;
        if (s->index && s->bound.checked) {
            struct tir_value *i = tir_lower_index_at(lo, s->index, tile, (uint32_t)s->tile_dim);
            in = tir_lower_in_range(lo, tir_lower_narrowed(lo, i, lo->i32), s->bound.extent);
        } else if (!s->index) {
            in = tir_lower_bound_at(lo, &s->bound, s->tile_dim >= 0 ? tile[s->tile_dim] : 0);
        }
        pred = tir_lower_and(lo, pred, in);
    }
    return pred;
}

static void tile_coord(const struct lower_walk *w, uint32_t reg, int64_t tile[TIR_MAX_RANK])
{
    memset(tile, 0, TIR_MAX_RANK * sizeof(*tile));
    if (w->layout)
        tir_layout_coord(w->layout, (struct tir_layout_at){{reg, 0, 0}}, tile);
}

bool tir_lower_walk_misses(const struct lower_walk *w, uint32_t reg)
{
    const struct walk_part *p = &w->part;
    int64_t tile[TIR_MAX_RANK];
    tile_coord(w, reg, tile);
    return p->size && (tile[p->dim] >= p->start + p->size || tile[p->dim] + p->reach < p->start);
}

struct tir_value *tir_lower_walk_pred(struct lower *lo, struct lower_walk *w, uint32_t reg)
{
    int64_t tile[TIR_MAX_RANK];
    tile_coord(w, reg, tile);
    return inside(lo, w, tile);
}

struct lower_place tir_lower_walk_at(struct lower *lo, struct lower_walk *w, uint32_t reg)
{
    int64_t tile[TIR_MAX_RANK];
    tile_coord(w, reg, tile);
    struct lower_place p = {.base = w->base, .pred = inside(lo, w, tile)};
    p.at = w->linear ? tir_lower_walk_linear_at(lo, w, reg, &p.offset)
                     : near_at(lo, w, reg, tile, &p.offset);
    return p;
}

void tir_lower_read(struct lower *lo, struct lower_walk *walk, enum tir_elem elem, uint32_t count,
                    struct tir_value **out)
{
    struct lower_vector v = walk->vector;
    for (uint32_t r = 0; r < count; r++) {
        if (!tir_lower_leads(v, r) || tir_lower_walk_misses(walk, r))
            continue;
        struct lower_place p = tir_lower_walk_at(lo, walk, r);
        struct tir_value *values[16];
        tir_lower_ld_vector(lo, &p, elem, v.count, values);
        for (uint32_t i = 0; i < v.count; i++)
            out[tir_lower_together(v, r, i)] = values[i];
    }
}

void tir_lower_write(struct lower *lo, struct lower_walk *walk, struct tir_value *const *registers,
                     uint32_t count, struct tir_value *pred)
{
    struct lower_vector v = walk->vector;
    for (uint32_t r = 0; r < count; r++) {
        if (!tir_lower_leads(v, r) || tir_lower_walk_misses(walk, r))
            continue;
        struct lower_place p = tir_lower_walk_at(lo, walk, r);
        p.pred = tir_lower_and(lo, p.pred, pred);
        struct tir_value *values[16];
        for (uint32_t i = 0; i < v.count; i++)
            values[i] = registers[tir_lower_together(v, r, i)];
        tir_lower_st_vector(lo, &p, v.count, values);
    }
}
