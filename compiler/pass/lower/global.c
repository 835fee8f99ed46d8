// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, memory: where a slice of a tensor is.
//
// The coordinate of register r along dimension t is
//     start[t] + thread part + constant of r,
// so the byte offset is one value for the thread, plus a stride times a constant for each dimension
// but the innermost, whose constant becomes the instruction's immediate. Out-of-range elements are
// switched off by a predicate per distinct constant; dimensions that cannot be out of range have
// none. In an aligned tensor, neighbouring registers along the innermost dimension move together,
// as many bytes at a time as it is aligned to: a vector is then wholly inside or wholly outside.
// Where the whole slice is known to be inside, its rows need only begin aligned.

#include "pass/lower/access.h"

enum { FEW_CONSTANTS = 64 }; // of a thread along a dimension: no more on warpgroups

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

static void set_side(struct lower_global *g, const struct tir_param *param, uint32_t t)
{
    struct lower *lo = g->lo;
    struct lower_side *s = &g->sides[t];
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
static struct tir_value *past_of(struct lower_global *g, uint32_t multiple)
{
    struct lower *lo = g->lo;
    struct tir_value *past = tir_build1(&lo->b, TIR_OP_ASKEW, lo->i32, &g->base, 1);
    past = tir_lower_cast(lo, &lo->b, past, lo->index);
    const int64_t first[TIR_MAX_RANK] = {0};
    for (uint32_t t = 0; t < g->rank; t++) {
        const struct lower_side *s = &g->sides[t];
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
static void set_vector(struct lower_global *g)
{
    g->vector = (struct lower_vector){.count = 1};
    g->limit = "the elements of a thread are no neighbours";
    struct lower_side *s = g->rank ? &g->sides[g->rank - 1] : NULL;
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

struct lower_global tir_lower_open_global(struct lower *lo, const struct tir_inst *inst,
                                          const struct tir_layout *layout)
{
    struct lower_global g = {.lo = lo, .inst = inst, .base = tir_ref_base(inst), .layout = layout};
    const struct tir_param *param = tir_param_of(lo->f, g.base);
    g.rank = g.base->type->rank;
    g.elem = g.base->type->elem;
    g.bytes = TIR_MAX(1, tir_elems[g.elem].bits / 8);
    for (uint32_t t = 0; t < g.rank; t++)
        set_side(&g, param, t);
    for (uint32_t t = 0; t < g.rank; t++) {
        struct lower_side *s = &g.sides[t];
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
static void step_to(struct lower_global *g, struct lower_side *s, int64_t constant)
{
    struct lower *lo = g->lo;
    int64_t step = constant - s->stepped_to;
    if (step)
        g->stepped =
            tir_lower_add(lo, &lo->b, g->stepped, tir_lower_mul_const(lo, &lo->b, s->stride, step));
    s->stepped_to = constant;
}

// Of an element of a slice that wraps: those in front of `whole` lie a slice further.
static void wrap(struct lower_global *g, const struct lower_side *s, int64_t constant,
                 struct lower_place *e)
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

struct lower_place tir_lower_element_at(struct lower_global *g, uint32_t reg)
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
        struct lower_side *s = &g->sides[t];
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
