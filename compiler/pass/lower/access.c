// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, memory: loads, stores, atomics and copies of tiles as accesses of one thread.
//
// Global memory. The coordinate of register r along dimension t is
//     start[t] + thread part + constant of r,
// so the byte offset is one value for the thread, plus a stride times a constant for each dimension
// but the innermost, whose constant becomes the instruction's immediate. Out-of-range elements are
// switched off by a predicate per distinct constant; dimensions that cannot be out of range have
// none. In an aligned tensor, neighbouring registers along the innermost dimension move together,
// as many bytes at a time as it is aligned to: a vector is then wholly inside or wholly outside.
// Where the whole slice is known to be inside, its rows need only begin aligned.
//
// Shared and local memory are in walk.c.

#include "ir/walk.h"
#include "pass/layout/staging.h"
#include "pass/lower/lower.h"
#include "pass/receipt.h"
#include "pass/sync/crew.h"

enum { FEW_CONSTANTS = 64 }; // of a thread along a dimension: no more on warpgroups

struct side { // one dimension of the tensor
    int64_t box;
    uint32_t tile_dim;        // the tile's dimension (box != 0); of an index tile, its first
    struct tir_value *index;  // the index operand
    struct tir_value *stride; // bytes; NULL: contiguous, elements follow each other
    struct tir_value *whole;  // where the attribute wraps counts from; NULL: there is none
    int64_t stepped_to;       // the constant that `stepped` below has
    struct lower_bound bound; // in the index type; without a position for an index tile
};

struct global {
    struct lower *lo;
    const struct tir_inst *inst;
    struct tir_value *base;
    const struct tir_layout *layout; // of the accessed tile; NULL: a scalar
    enum tir_elem elem;
    uint32_t rank, bytes; // of the tensor; of an element
    struct side sides[TIR_MAX_RANK];
    struct lower_vector vector; // elements that move together
    bool is_askew;              // vectors of a row lie anywhere
    struct tir_value *past;     // elements from multiples of memory to them; NULL: other accesses
    const char *limit;          // why not more
    struct tir_value *at;       // bytes: the thread's part over all dimensions without index tiles
    // Copies in a pipelined loop live among many registers: each address is a step from the one
    // before instead of an offset of its own, which would be kept over the whole loop.
    bool by_steps;
    struct tir_value *stepped; // at, moved on to the constants of the element asked for last
};

static struct tir_value *extent_of(struct lower *lo, const struct tir_param *param, uint32_t t)
{
    const struct tir_param_dim *dim = &param->dims[t];
    return dim->dim >= 0 ? lo->f->dims[dim->dim].value : tir_const_index(lo->f, dim->constant);
}

// Elements that a thread has along a dimension of the tile.
static int64_t held_along(const struct tir_layout *l, uint32_t dim)
{
    int64_t held = 1;
    for (uint32_t i = l->first[dim]; i < l->first[dim + 1]; i++)
        held *= l->iters[i].axis == TIR_AXIS_REG ? l->iters[i].extent : 1;
    return held;
}

// To a multiple of a power of two.
static struct tir_value *rounded_up(struct lower *lo, struct tir_value *x, int64_t to)
{
    x = tir_binary(&lo->b, TIR_OP_ADD, x, tir_const_int(lo->f, x->type, to - 1));
    return tir_binary(&lo->b, TIR_OP_AND, x, tir_const_int(lo->f, x->type, -to));
}

static void set_side(struct global *g, const struct tir_param *param, uint32_t t)
{
    struct lower *lo = g->lo;
    struct side *s = &g->sides[t];
    s->box = tir_attr_find(g->inst, TIR_ATTR_box)->list[t];
    s->index = tir_ref_indices(g->inst)[t];
    s->tile_dim = tir_slice_dim(g->inst, t);
    struct tir_value *extent = extent_of(lo, param, t);
    s->bound.extent = tir_lower_cast(lo, &lo->b, extent, lo->index);
    bool contiguous = t + 1 == g->rank && tir_tensor_is_dense(lo->f, g->base);
    if (!contiguous) {
        struct tir_value *stride = tir_build1(&lo->b, TIR_OP_STRIDE, lo->i64, &g->base, 1);
        tir_set_int(lo->f, stride->def, TIR_ATTR_axis, t);
        stride = tir_lower_cast(lo, &lo->b, stride, lo->index);
        s->stride = tir_lower_mul_const(lo, &lo->b, stride, g->bytes);
    }
    if (s->box < 0)
        return;
    s->bound.checked = tir_lower_may_leave(lo, g->inst, s->index, extent, TIR_MAX(s->box, 1));
    struct tir_value *position = tir_lower_narrowed(lo, s->index, lo->index);
    if (t + 1 == g->rank && tir_attr_find(g->inst, TIR_ATTR_wraps))
        s->whole = rounded_up(lo, position, tir_attr_int(g->inst, TIR_ATTR_wraps, 1));
    if (s->box > 0 && g->layout) {
        struct tir_value *thread = tir_lower_coord(lo, g->layout, s->tile_dim);
        s->bound.is_long = held_along(g->layout, s->tile_dim) > FEW_CONSTANTS;
        position =
            tir_lower_add(lo, &lo->b, position, tir_lower_cast(lo, &lo->b, thread, lo->index));
    }
    s->bound.position = position;
}

// Elements from a multiple of so many bytes, at most 16, to the start of the slice, of which the
// thread's vectors are whole vectors away. Rows that an index tile names all begin alike.
static struct tir_value *past_of(struct global *g, uint32_t multiple)
{
    struct lower *lo = g->lo;
    struct tir_value *past = tir_build1(&lo->b, TIR_OP_ASKEW, lo->i32, &g->base, 1);
    past = tir_lower_cast(lo, &lo->b, past, lo->index);
    const int64_t first[TIR_MAX_RANK] = {0};
    for (uint32_t t = 0; t < g->rank; t++) {
        const struct side *s = &g->sides[t];
        struct tir_value *part =
            s->box < 0 ? tir_lower_index_at(lo, s->index, first, s->tile_dim) : s->index;
        part = tir_lower_narrowed(lo, part, lo->index);
        if (t + 1 < g->rank) {
            struct tir_value *stride = tir_build1(&lo->b, TIR_OP_STRIDE, lo->i64, &g->base, 1);
            tir_set_int(lo->f, stride->def, TIR_ATTR_axis, t);
            part = tir_lower_mul(lo, &lo->b, part, tir_lower_cast(lo, &lo->b, stride, lo->index));
        }
        past = tir_lower_add(lo, &lo->b, past, part);
    }
    return tir_binary(&lo->b, TIR_OP_AND, past,
                      tir_const_int(lo->f, past->type, multiple / g->bytes - 1));
}

// How many registers move together.
static void set_vector(struct global *g)
{
    g->vector = (struct lower_vector){.count = 1};
    g->limit = "the elements of a thread are no neighbours";
    struct side *s = g->rank ? &g->sides[g->rank - 1] : NULL;
    uint32_t here = (uint32_t)tir_attr_int(g->inst, TIR_ATTR_aligned, 0);
    if (!s || s->box <= 0 || !g->layout)
        return;
    const bool may_be_cut = s->bound.checked;
    const uint32_t all = tir_tensor_alignment(g->lo->f, g->base);
    const uint32_t begins = tir_tensor_begin(g->lo->f, g->base);
    const uint32_t aligned = TIR_MAX(here, may_be_cut ? all : begins) / g->bytes;
    uint32_t vector = TIR_MAX(aligned, 16 / g->bytes);
    const struct tir_layout *l = g->layout;
    struct lower_vector run = tir_lower_neighbours(l, s->tile_dim, vector);
    if (run.count == 1) {
        g->limit = "a thread has no two neighbours";
        return;
    }
    const bool is_askew = tir_attr_find(g->inst, TIR_ATTR_askew);
    if ((is_askew || tir_attr_find(g->inst, TIR_ATTR_begins)) && run.count * g->bytes == 16) {
        g->limit = NULL;
        g->vector = run;
        g->is_askew = is_askew;
        g->past = past_of(g, is_askew ? 8 : 16);
        return;
    }
    g->limit = "its columns turn";
    if (s->whole)
        return;
    uint64_t divisor = tir_range_divisor(g->lo->ranges, s->index);
    // Alignment speaks of extents that are known at launch; a constant one is looked at here.
    const struct tir_param_dim *dim = &tir_param_of(g->lo->f, g->base)->dims[g->rank - 1];
    int64_t extent = dim->dim < 0 ? dim->constant : 0;
    for (; vector > 1; vector /= 2)
        if (vector > run.count)
            g->limit = "a thread has no more neighbours";
        else if (divisor % vector || extent % vector)
            g->limit = "a row may begin or end between them";
        else
            break;
    if (vector > 1 && aligned < vector) { // what is left, in this variant
        g->limit = begins > all ? "the tensor may end between them"
                                : "the alignment of the tensor is not known";
        vector = aligned;
    }
    run.count = vector;
    if (aligned > 1)
        g->vector = run;
}

static struct global open_global(struct lower *lo, const struct tir_inst *inst,
                                 const struct tir_layout *layout)
{
    struct global g = {.lo = lo, .inst = inst, .base = tir_ref_base(inst), .layout = layout};
    const struct tir_param *param = tir_param_of(lo->f, g.base);
    g.rank = g.base->type->rank;
    g.elem = g.base->type->elem;
    g.bytes = TIR_MAX(1, tir_elems[g.elem].bits / 8);
    for (uint32_t t = 0; t < g.rank; t++)
        set_side(&g, param, t);
    for (uint32_t t = 0; t < g.rank; t++) {
        struct side *s = &g.sides[t];
        struct tir_value *position = s->bound.position;
        if (!position)
            continue;
        struct tir_value *part = s->stride ? tir_lower_mul(lo, &lo->b, position, s->stride)
                                           : tir_lower_mul_const(lo, &lo->b, position, g.bytes);
        g.at = tir_lower_add(lo, &lo->b, g.at, part);
    }
    if (!g.at)
        g.at = tir_const_int(lo->f, lo->index, 0);
    set_vector(&g);
    return g;
}

// Moves the access's stepped address along dimension s to `constant`.
static void step_to(struct global *g, struct side *s, int64_t constant)
{
    struct lower *lo = g->lo;
    int64_t step = constant - s->stepped_to;
    if (step)
        g->stepped =
            tir_lower_add(lo, &lo->b, g->stepped, tir_lower_mul_const(lo, &lo->b, s->stride, step));
    s->stepped_to = constant;
}

// Of an element of a slice that wraps: those in front of `whole` lie a slice further.
static void wrap(struct global *g, const struct side *s, int64_t constant, struct lower_place *e)
{
    struct lower *lo = g->lo;
    const struct tir_type *t = s->bound.position->type;
    struct tir_value *c = tir_const_int(lo->f, t, constant);
    c = tir_binary(&lo->b, TIR_OP_ADD, s->bound.position, c);
    struct tir_value *choice[] = {tir_binary(&lo->b, TIR_OP_LT, c, s->whole),
                                  tir_const_int(lo->f, t, s->box), tir_const_int(lo->f, t, 0)};
    struct tir_value *further = tir_build1(&lo->b, TIR_OP_WHERE, t, choice, 3);
    c = tir_binary(&lo->b, TIR_OP_ADD, c, further);
    e->pred = tir_lower_and(lo, e->pred, tir_lower_in_range(lo, c, s->bound.extent));
    further = s->stride ? tir_lower_mul(lo, &lo->b, further, s->stride)
                        : tir_lower_mul_const(lo, &lo->b, further, g->bytes);
    e->at = tir_lower_add(lo, &lo->b, e->at, further);
}

static struct lower_place element_at(struct global *g, uint32_t reg)
{
    struct lower *lo = g->lo;
    struct lower_place e = {.base = g->base,
                            .at = g->at,
                            .cache = tir_attr_word(g->inst, TIR_ATTR_cache, TIR_WORD_NONE)};
    struct tir_value *gathered = NULL; // bytes, by this element's own indices
    int64_t coord[TIR_MAX_RANK] = {0};
    if (g->layout)
        tir_layout_coord(g->layout, (struct tir_layout_at){{reg, 0, 0}}, coord);
    for (uint32_t t = 0; t < g->rank; t++) {
        struct side *s = &g->sides[t];
        if (s->box < 0) {
            struct tir_value *i = tir_lower_narrowed(
                lo, tir_lower_index_at(lo, s->index, coord, s->tile_dim), lo->index);
            e.pred = tir_lower_and(lo, e.pred, tir_lower_in_range(lo, i, s->bound.extent));
            struct tir_value *part = s->stride ? tir_lower_mul(lo, &lo->b, i, s->stride)
                                               : tir_lower_mul_const(lo, &lo->b, i, g->bytes);
            gathered = tir_lower_add(lo, &lo->b, gathered, part);
            continue;
        }
        int64_t c = s->box > 0 ? coord[s->tile_dim] : 0;
        if (!s->stride)
            e.offset += c * g->bytes;
        else if (g->by_steps)
            step_to(g, s, c);
        else if (c)
            e.at = tir_lower_add(lo, &lo->b, e.at, tir_lower_mul_const(lo, &lo->b, s->stride, c));
        if (!g->past && s->whole)
            wrap(g, s, c, &e);
        else if (!g->past || t + 1 < g->rank)
            e.pred = tir_lower_and(lo, e.pred, tir_lower_bound_at(lo, &s->bound, c));
    }
    e.at = tir_lower_add(lo, &lo->b, g->by_steps ? g->stepped : e.at, gathered);
    return e;
}

// A scalar access in tile code is done by one thread, unless it speaks of threads; a tile's by the
// owner of each element.
static struct tir_value *writer(struct lower *lo, const struct tir_inst *inst,
                                const struct tir_layout *l)
{
    if (l)
        return tir_lower_is_owner(lo, l);
    if (lo->by_thread || tir_attr_int(inst, TIR_ATTR_by_thread, 0))
        return NULL;
    return tir_binary(&lo->b, TIR_OP_EQ, tir_lower_tid(lo), tir_lower_i32(lo, 0));
}

static void set_cache(struct lower *lo, struct tir_inst *access, const struct lower_place *p)
{
    if (p->cache)
        tir_set_word(lo->f, access, TIR_ATTR_cache, p->cache);
}

void tir_lower_ld_vector(struct lower *lo, const struct lower_place *p, enum tir_elem elem,
                         uint32_t count, struct tir_value **out)
{
    bool is_bool = elem == TIR_BOOL; // a byte in memory
    const struct tir_type *types[16];
    for (uint32_t i = 0; i < count; i++)
        types[i] = tir_type_scalar(lo->types, is_bool ? TIR_U8 : elem);
    struct tir_value *operands[] = {p->base, p->at, p->pred};
    struct tir_inst *ld = tir_build(&lo->b, TIR_OP_LD, operands, 3, types, count, 0);
    tir_set_int(lo->f, ld, TIR_ATTR_width, count * TIR_MAX(1, tir_elems[elem].bits / 8));
    if (p->offset)
        tir_set_int(lo->f, ld, TIR_ATTR_offset, p->offset);
    set_cache(lo, ld, p);
    for (uint32_t i = 0; i < count; i++)
        out[i] = is_bool ? tir_binary(&lo->b, TIR_OP_NE, ld->results[i],
                                      tir_const_int(lo->f, types[i], 0))
                         : ld->results[i];
}

void tir_lower_st_vector(struct lower *lo, const struct lower_place *p, uint32_t count,
                         struct tir_value *const *values)
{
    struct tir_value *operands[3 + 16] = {p->base, p->at, p->pred};
    for (uint32_t i = 0; i < count; i++)
        operands[3 + i] =
            values[i]->type == lo->boolean
                ? tir_lower_cast(lo, &lo->b, values[i], tir_type_scalar(lo->types, TIR_U8))
                : values[i];
    struct tir_inst *st = tir_build(&lo->b, TIR_OP_ST, operands, 3 + count, NULL, 0, 0);
    tir_set_int(lo->f, st, TIR_ATTR_width,
                count * TIR_MAX(1, tir_elems[values[0]->type->elem].bits / 8));
    if (p->offset)
        tir_set_int(lo->f, st, TIR_ATTR_offset, p->offset);
    set_cache(lo, st, p);
}

// A load, store or atomic: where its elements are, wherever the buffer is.
struct access {
    const struct tir_layout *layout; // of the tile; NULL: a scalar
    uint32_t count;                  // registers of one thread
    struct lower_vector vector;      // that move together
    struct tir_value *mask;
    struct lower_walk *walk; // NULL: global memory
    struct global global;
};

// Of a row that begins and ends anywhere.
static bool is_of_row(const struct access *a)
{
    return !a->walk && a->global.past;
}

// Whether registers that move together are all in the mask or all outside: where the mask was
// repeated along their dimension they have one value of it.
static bool is_mask_of_vectors(struct lower *lo, const struct access *a)
{
    for (uint32_t r = 0; r < a->count; r++)
        for (uint32_t i = 1; i < a->vector.count && tir_lower_leads(a->vector, r); i++)
            if (tir_lower_register(lo, a->mask, r) !=
                tir_lower_register(lo, a->mask, tir_lower_together(a->vector, r, i)))
                return false;
    return true;
}

static void open_access(struct lower *lo, const struct tir_inst *inst, const struct tir_type *tile,
                        struct tir_value *mask, struct access *a)
{
    a->layout = tir_type_is_tile(tile) ? tile->layout : NULL;
    a->count = tir_lower_register_count(tile);
    a->mask = mask;
    a->walk = NULL;
    if (tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL) {
        a->global = open_global(lo, inst, a->layout);
        a->vector = a->global.vector;
    } else {
        a->walk = tir_lower_walk_slice(lo, inst, a->layout);
        a->vector = tir_lower_walk_vector(a->walk);
    }
    if (mask && tir_type_is_tile(mask->type) && !is_mask_of_vectors(lo, a)) {
        a->vector.count = 1;
        a->global.past = NULL;
        a->global.limit = "the mask may separate them";
    }
}

// Elements that lie in a row in memory and that a warp moves with one instruction.
static int64_t row_of_warp(const struct access *a)
{
    const struct global *g = &a->global;
    const struct side *s = &g->sides[g->rank - 1];
    if (s->stride || s->box <= 0)
        return 1;
    const struct tir_layout *l = a->layout;
    int64_t row = 1, lanes = 1;
    for (uint32_t i = l->first[s->tile_dim + 1]; i-- > l->first[s->tile_dim];) {
        const struct tir_iter *iter = &l->iters[i];
        if (iter->axis == TIR_AXIS_REG && lanes == 1 && row < a->vector.count) {
            row *= TIR_MIN(iter->extent, a->vector.count / row);
            if (row == a->vector.count && iter->extent > row)
                break;
        } else if (iter->axis == TIR_AXIS_LANE) {
            row *= iter->extent;
            lanes *= iter->extent;
        } else if (iter->extent > 1) {
            break;
        }
    }
    return row;
}

// How wide a tile's accesses of global memory are, and why no wider.
static void tell_width(struct lower *lo, const struct tir_inst *inst, const struct access *a)
{
    if (a->walk || !a->layout || !a->global.rank)
        return;
    const struct global *g = &a->global;
    const char *what = inst->op == TIR_OP_LOAD ? "load" : "store";
    const char *name = g->base->name ? g->base->name : "a tensor";
    const uint32_t at_once = a->vector.count * g->bytes;
    const int64_t row = row_of_warp(a) * g->bytes;
    const char *limit =
        g->sides[g->rank - 1].stride ? "the innermost stride is not known to be 1" : g->limit;
    if (at_once < 16)
        tir_receipt_refuse(lo->cx, TIR_TOPIC_COPY, TIR_WISH_NONE, inst->span,
                           "%s of %s: %u bytes at once, because %s; %lld in a row for a warp", what,
                           name, at_once, limit, (long long)row);
    else
        tir_receipt_add(lo->cx, TIR_TOPIC_COPY, inst->span,
                        "%s of %s: %u bytes at once, %lld in a row for a warp", what, name, at_once,
                        (long long)row);
}

static struct lower_place place_of(struct lower *lo, struct access *a, uint32_t reg)
{
    struct lower_place p =
        a->walk ? tir_lower_walk_at(lo, a->walk, reg) : element_at(&a->global, reg);
    if (a->mask)
        p.pred = tir_lower_and(lo, p.pred, tir_lower_register(lo, a->mask, reg));
    return p;
}

// Rows that begin and end anywhere (askew.c).
static struct lower_row row_of(struct lower *lo, const struct access *a)
{
    const struct global *g = &a->global;
    const struct side *s = &g->sides[g->rank - 1];
    const struct lower_bound *bound = &s->bound;
    struct tir_value *zero = tir_const_int(lo->f, bound->position->type, 0);
    struct lower_row row = {.elem = g->elem, .is_askew = g->is_askew, .past = g->past};
    row.before = tir_binary(&lo->b, TIR_OP_SUB, s->whole ? s->whole : zero, bound->position);
    row.wraps = tir_attr_int(g->inst, TIR_ATTR_wraps, 0);
    row.columns = s->box;
    row.after = tir_binary(&lo->b, TIR_OP_SUB, bound->extent, bound->position);
    if (!g->is_askew)
        row.lies = tir_binary(&lo->b, TIR_OP_EQ, g->past, zero);
    return row;
}

static struct lower_piece *pieces_of(struct lower *lo, struct access *a, struct tir_value *owner,
                                     struct tir_value *stored)
{
    const struct global *g = &a->global;
    struct lower_piece *pieces = arena_array(lo->cx->scratch, struct lower_piece, a->count),
                       *p = pieces;
    for (uint32_t r = 0; r < a->count; r++) {
        if (!tir_lower_leads(a->vector, r))
            continue;
        int64_t coord[TIR_MAX_RANK];
        tir_layout_coord(a->layout, (struct tir_layout_at){{r, 0, 0}}, coord);
        p->column = coord[g->sides[g->rank - 1].tile_dim];
        p->place = place_of(lo, a, r);
        p->place.pred = tir_lower_and(lo, owner, p->place.pred);
        for (uint32_t i = 0; stored && i < a->vector.count; i++)
            p->elements[i] = tir_lower_register(lo, stored, tir_lower_together(a->vector, r, i));
        p++;
    }
    return pieces;
}

static void load_row(struct lower *lo, struct access *a, struct tir_value *pad,
                     struct tir_value **out)
{
    struct lower_row row = row_of(lo, a);
    row.pad = pad ? tir_const_element(lo->f, pad) : NULL;
    struct lower_piece *pieces = pieces_of(lo, a, NULL, NULL), *p = pieces;
    tir_lower_load_row(lo, &row, pieces, a->count / a->vector.count);
    for (uint32_t r = 0; r < a->count; r++) {
        if (!tir_lower_leads(a->vector, r))
            continue;
        for (uint32_t i = 0; i < a->vector.count; i++)
            out[tir_lower_together(a->vector, r, i)] = p->elements[i];
        p++;
    }
}

void tir_lower_load(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *result = inst->results[0], *pad = inst->operands[TIR_LOAD_PAD];
    struct access a;
    open_access(lo, inst, result->type, inst->operands[TIR_LOAD_MASK], &a);
    tell_width(lo, inst, &a);
    struct tir_value **out = tir_lower_new_registers(lo, a.count);
    const bool is_row = is_of_row(&a);
    if (is_row)
        load_row(lo, &a, pad, out);
    for (uint32_t r = 0; !is_row && r < a.count; r++) {
        if (!tir_lower_leads(a.vector, r))
            continue;
        struct lower_place p = place_of(lo, &a, r);
        struct tir_value *values[16];
        tir_lower_ld_vector(lo, &p, tir_ref_base(inst)->type->elem, a.vector.count, values);
        for (uint32_t i = 0; i < a.vector.count; i++) {
            uint32_t at = tir_lower_together(a.vector, r, i);
            out[at] = values[i];
            if (!pad || !p.pred)
                continue;
            struct tir_value *choice[] = {p.pred, out[at], tir_lower_register(lo, pad, at)};
            out[at] = tir_build1(&lo->b, TIR_OP_WHERE, out[at]->type, choice, 3);
        }
    }
    if (tir_rounds(inst, result))
        for (uint32_t r = 0; r < a.count; r++)
            out[r] = tir_lower_cast(lo, &lo->b, out[r], tir_type_scalar(lo->types, TIR_TF32));
    tir_lower_set_registers(lo, result, out);
}

void tir_lower_store(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *v = inst->operands[TIR_STORE_VALUE];
    struct access a;
    open_access(lo, inst, v->type, inst->operands[TIR_STORE_MASK], &a);
    tell_width(lo, inst, &a);
    struct tir_value *owner =
        tir_ref_base(inst)->type->space == TIR_SPACE_LOCAL ? NULL : writer(lo, inst, a.layout);
    if (is_of_row(&a)) {
        const struct lower_row row = row_of(lo, &a);
        tir_lower_store_row(lo, &row, pieces_of(lo, &a, owner, v), a.count / a.vector.count);
        return;
    }
    for (uint32_t r = 0; r < a.count; r++) {
        if (!tir_lower_leads(a.vector, r))
            continue;
        struct lower_place p = place_of(lo, &a, r);
        p.pred = tir_lower_and(lo, owner, p.pred);
        struct tir_value *values[16];
        for (uint32_t i = 0; i < a.vector.count; i++)
            values[i] = tir_lower_register(lo, v, tir_lower_together(a.vector, r, i));
        tir_lower_st_vector(lo, &p, a.vector.count, values);
    }
}

static void set_words(struct lower *lo, struct tir_inst *atom, const struct tir_inst *inst,
                      const struct lower_place *p)
{
    static const enum tir_attr_key words[] = {TIR_ATTR_kind, TIR_ATTR_ordering, TIR_ATTR_scope};
    for (uint32_t i = 0; i < TIR_COUNT_OF(words); i++)
        if (tir_attr_find(inst, words[i]))
            tir_set_word(lo->f, atom, words[i], tir_attr_word(inst, words[i], TIR_WORD_NONE));
    if (p->offset)
        tir_set_int(lo->f, atom, TIR_ATTR_offset, p->offset);
}

static struct tir_value *build_atom(struct lower *lo, const struct tir_inst *inst,
                                    const struct lower_place *p, struct tir_value *value,
                                    struct tir_value *expected)
{
    struct tir_value *operands[] = {p->base, p->at, value, p->pred, expected};
    struct tir_value *old =
        tir_build1(&lo->b, TIR_OP_ATOM, value->type, operands, TIR_COUNT_OF(operands));
    set_words(lo, old->def, inst, p);
    return old;
}

// How many neighbours one instruction adds to where they are; 1 for other atomics.
static struct lower_vector red_vector(struct lower *lo, const struct tir_inst *inst,
                                      const struct access *a)
{
    const struct lower_vector single = {.count = 1};
    const struct tir_value *base = tir_ref_base(inst);
    enum tir_elem elem = base->type->elem;
    bool adds = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE) == TIR_WORD_kind_add;
    if (!adds || a->walk || !a->layout || !tir_elem_is_float(elem) || tir_elems[elem].bits > 32)
        return single;
    struct lower_vector v = a->vector;
    const char *limit = a->global.limit;
    const bool is_asked = lo->uses[inst->results[0]->id];
    uint32_t most = is_asked ? 1 : tir_target_red(lo->cx->target, elem);
    if (v.count > most || most == 1) {
        v.count = most;
        limit = is_asked ? "the old values are used" : "the target adds no more at once";
    }
    const char *name = base->name ? base->name : "a tensor";
    if (v.count * tir_elems[elem].bits < 128)
        tir_receipt_refuse(lo->cx, TIR_TOPIC_COPY, TIR_WISH_NONE, inst->span,
                           "atomic add to %s: %u %s at once, because %s", name, v.count,
                           tir_elems[elem].name, limit);
    else
        tir_receipt_add(lo->cx, TIR_TOPIC_COPY, inst->span, "atomic add to %s: %u %s at once", name,
                        v.count, tir_elems[elem].name);
    return v;
}

static void build_red(struct lower *lo, const struct tir_inst *inst, const struct lower_place *p,
                      struct lower_vector vector, uint32_t reg)
{
    struct tir_value *operands[3 + 8] = {p->base, p->at, p->pred};
    struct tir_value *v = inst->operands[TIR_STORE_VALUE];
    for (uint32_t i = 0; i < vector.count; i++)
        operands[3 + i] = tir_lower_register(lo, v, tir_lower_together(vector, reg, i));
    struct tir_inst *red = tir_build(&lo->b, TIR_OP_RED, operands, 3 + vector.count, NULL, 0, 0);
    tir_set_int(lo->f, red, TIR_ATTR_width, vector.count * tir_elems[v->type->elem].bits / 8);
    set_words(lo, red, inst, p);
}

// Gives the old values from the threads that did the atomic to every thread with the element.
static void share_old(struct lower *lo, struct tir_value *scratch, const struct access *a,
                      struct tir_value *owner, struct tir_value **old)
{
    uint32_t dims[TIR_MAX_RANK];
    for (uint32_t d = 0; d < TIR_MAX_RANK; d++)
        dims[d] = d;
    struct lower_walk *w = tir_lower_walk_new(lo, scratch, a->layout, NULL, dims);
    tir_lower_write(lo, w, old, a->count, owner);
    tir_lower_barrier(lo);
    tir_lower_read(lo, w, scratch->type->elem, a->count, old);
}

void tir_lower_atomic(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *v = inst->operands[TIR_STORE_VALUE];
    struct tir_value *expected = inst->operands[TIR_ATOMIC_EXPECTED];
    struct access a;
    open_access(lo, inst, v->type, inst->operands[TIR_STORE_MASK], &a);
    tell_width(lo, inst, &a);
    struct tir_value *owner = writer(lo, inst, a.layout);
    struct tir_value **old = tir_lower_new_registers(lo, a.count);
    struct lower_vector vector = red_vector(lo, inst, &a);
    for (uint32_t r = 0; r < a.count; r++) {
        if (!tir_lower_leads(vector, r))
            continue;
        struct lower_place p = place_of(lo, &a, r);
        p.pred = tir_lower_and(lo, owner, p.pred);
        if (vector.count > 1)
            build_red(lo, inst, &p, vector, r);
        else
            old[r] = build_atom(lo, inst, &p, tir_lower_register(lo, v, r),
                                expected ? tir_lower_register(lo, expected, r) : NULL);
    }
    if (vector.count > 1) // nobody asks for what was there
        return;
    if (inst->operands[TIR_ATOMIC_SCRATCH])
        share_old(lo, inst->operands[TIR_ATOMIC_SCRATCH], &a, owner, old);
    tir_lower_set_registers(lo, inst->results[0], old);
}

// A line is printed once, as a scalar is stored once.
void tir_lower_print(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *owner = writer(lo, inst, NULL);
    struct tir_builder b = owner ? tir_build_if(&lo->b, owner) : lo->b;
    struct tir_map map;
    tir_map_init(&map, lo->cx->scratch);
    tir_clone_inst(&b, inst, &map);
}

// A copy from global to shared memory, `elements` at a time.
struct transfer {
    const struct tir_layout *layout;
    uint32_t elements;
    struct global from;
    struct lower_walk *to;
};

// The widest that the copy states and the addresses allow; 1 element where nothing is known.
static void open_transfer(struct lower *lo, const struct tir_inst *inst, struct transfer *t)
{
    struct tir_value *to = inst->operands[TIR_COPY_TO];
    uint32_t rank = to->type->rank, dims[TIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = d;
    uint32_t bytes = tir_elems[to->type->elem].bits / 8;
    uint32_t width = (uint32_t)tir_attr_int(inst, TIR_ATTR_width, 16);
    const uint32_t stated = TIR_MAX(1, width / bytes);
    const bool is_fixed = tir_takes_tiles(inst, TIR_COPY_MASK); // async_copy has laid out its tiles
    for (t->elements = stated;; t->elements /= 2) {
        t->layout = tir_layout_copy(lo->types, rank, to->type->shape,
                                    is_fixed ? stated : t->elements, lo->threads / 32);
        t->from = open_global(lo, inst, t->layout);
        t->to = tir_lower_walk_new(lo, to, t->layout, NULL, dims);
        if (t->elements == 1 || (t->from.vector.count % t->elements == 0 &&
                                 tir_lower_walk_vector(t->to).count % t->elements == 0))
            return;
    }
}

static void copy_elements(struct lower *lo, const struct tir_inst *inst, struct transfer *t,
                          uint32_t reg, enum tir_elem elem)
{
    uint32_t width = t->elements * tir_elems[elem].bits / 8;
    struct lower_place from = element_at(&t->from, reg), to = tir_lower_walk_at(lo, t->to, reg);
    from.pred = tir_lower_and(lo, from.pred, inst->operands[TIR_COPY_PRED]);
    if (inst->operands[TIR_COPY_MASK])
        from.pred = tir_lower_and(lo, from.pred,
                                  tir_lower_register(lo, inst->operands[TIR_COPY_MASK], reg));
    if (width < 4) { // less than cp.async moves
        struct tir_value *values[16];
        tir_lower_ld_vector(lo, &from, elem, t->elements, values);
        tir_lower_st_vector(lo, &to, t->elements, values);
        lo->copies_by_registers = true;
        return;
    }
    if (from.offset)
        from.at =
            tir_lower_add(lo, &lo->b, from.at, tir_const_int(lo->f, from.at->type, from.offset));
    struct tir_value *operands[] = {to.base, to.at, from.base, from.at, from.pred};
    struct tir_inst *copy = tir_build(&lo->b, TIR_OP_CP_ASYNC, operands, 5, NULL, 0, 0);
    tir_set_int(lo->f, copy, TIR_ATTR_width, width);
    set_cache(lo, copy, &from);
    if (to.offset)
        tir_set_int(lo->f, copy, TIR_ATTR_offset, to.offset);
}

void tir_lower_copy_async(struct lower *lo, struct tir_inst *inst)
{
    enum tir_elem elem = inst->operands[TIR_COPY_TO]->type->elem;
    struct transfer t;
    open_transfer(lo, inst, &t);
    t.from.by_steps = true;
    t.from.stepped = t.from.at;
    int64_t stated = tir_attr_int(inst, TIR_ATTR_width, 16);
    int64_t width = (int64_t)t.elements * tir_elems[elem].bits / 8;
    if (width < stated)
        tir_receipt_refuse(lo->cx, TIR_TOPIC_COPY, width < 4 ? TIR_WISH_ASYNC : TIR_WISH_NONE,
                           inst->span, "copy of %s: %lld bytes each%s, for want of alignment",
                           t.from.base->name ? t.from.base->name : "a tensor", (long long)width,
                           width < 4 ? ", through registers" : "");
    // Threads that would repeat what another one copies stay out; a false predicate would write
    // zeros.
    struct tir_value *owner = tir_lower_is_owner(lo, t.layout);
    struct tir_builder outside = lo->b;
    struct tir_inst *branch = NULL;
    if (owner) {
        branch = tir_build(&lo->b, TIR_OP_IF, &owner, 1, NULL, 0, 2);
        lo->b = tir_builder_at_end(lo->f, branch->regions[0]);
    }
    uint32_t count = tir_layout_size(t.layout, TIR_AXIS_REG);
    for (uint32_t r = 0; r < count; r += t.elements)
        copy_elements(lo, inst, &t, r, elem);
    for (uint32_t i = 0; branch && i < branch->region_count; i++) {
        struct tir_builder end = tir_builder_at_end(lo->f, branch->regions[i]);
        tir_build(&end, TIR_OP_YIELD, NULL, 0, NULL, 0, 0);
    }
    lo->b = outside;
}
