// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, shared and local memory: from a tile's slice of a buffer down to the alloc.
//
// Views, permutes and reshapes only say how the dimensions of the alloc follow from those of the
// slice. What comes of it is a walk, which gives the address of each register (walk_at.c).
//
// A slice that a program names may lie outside of its buffer: each of the buffer's dimensions has a
// bound, checked unless the index is known to fit. What is made by passes (copies, operands of a
// dot, scratch) always fits.

#include "ir/walk.h"
#include "pass/lower/walk.h"

struct lower_vector tir_lower_neighbours(const struct tir_layout *l, uint32_t d, uint32_t most)
{
    struct lower_vector v = {.count = 1};
    uint32_t digits = 0;
    most = TIR_MIN(most, 1U << TIR_COUNT_OF(v.strides));
    for (uint32_t i = l->first[d + 1]; i-- > l->first[d] && l->iters[i].axis == TIR_AXIS_REG;) {
        int64_t left = l->iters[i].extent;
        for (int64_t stride = l->iters[i].stride; left % 2 == 0 && v.count < most; stride *= 2) {
            v.strides[digits++] = (uint32_t)stride;
            v.count *= 2;
            left /= 2;
        }
        if (left > 1)
            break;
    }
    return v;
}

// Registers that are neighbours in memory too: along the dimension whose innermost iterator is
// dense, as far as the other iterators keep them aligned.
static struct lower_vector vector_of(const struct lower_walk *w)
{
    const struct lower_vector alone = {.count = 1};
    const struct tir_layout *m = w->memory, *l = w->layout;
    for (uint32_t d = 0; l && d < w->rank; d++) {
        if (m->first[d + 1] == m->first[d] || m->iters[m->first[d + 1] - 1].stride != 1)
            continue;
        const struct walk_dim *dim = &w->dims[d];
        if (dim->tile_dim < 0 || dim->index)
            return alone;
        const uint32_t dense = m->first[d + 1] - 1;
        struct lower_vector v =
            tir_lower_neighbours(l, (uint32_t)dim->tile_dim, 128 / TIR_MAX(8, w->bits));
        while (v.count > 1 && (m->iters[dense].extent % v.count || dim->aligned % v.count ||
                               dim->divisor % v.count))
            v.count /= 2;
        for (uint32_t i = 0; i < m->iter_count; i++)
            while (i != dense && m->iters[i].stride % v.count)
                v.count /= 2;
        return v;
    }
    return alone;
}

static void set_start(struct lower *lo, struct walk_dim *dim, struct tir_value *start)
{
    int64_t c;
    if (!tir_is_const_int(start, &c) || c != 0)
        dim->start = tir_lower_cast(lo, &lo->b, start, lo->i32);
    dim->divisor = tir_range_divisor(lo->ranges, start);
}

// The storage layout of a buffer without a layout, such as one of mbarriers.
static const struct tir_layout *memory_of(struct lower *lo, const struct tir_type *t)
{
    return t->layout ? t->layout
                     : tir_layout_memory(lo->types, t->rank, t->shape, tir_elems[t->elem].bits, 0);
}

// A reshape is of what has whole dimensions. The alloc gets its dimensions in place of those, after
// the ones that views have taken a single index of.
static struct tir_value *walk_through_reshape(struct lower *lo, struct lower_walk *w,
                                              const struct tir_inst *reshape)
{
    const struct tir_type *t = reshape->results[0]->type;
    const struct tir_layout *own = memory_of(lo, t);
    struct tir_value *buffer = reshape->operands[0];
    for (; buffer->def->op == TIR_OP_VIEW; buffer = tir_ref_base(buffer->def)) {
        const struct tir_layout *of = memory_of(lo, tir_ref_base(buffer->def)->type);
        const struct tir_attr *box = tir_attr_find(buffer->def, TIR_ATTR_box);
        for (uint32_t d = box->list_count; d-- > 0;) {
            struct tir_value *index = tir_ref_indices(buffer->def)[d];
            if (box->list[d])
                continue;
            own = tir_layout_before(lo->types, of, d, own);
            memmove(w->dims + 1, w->dims, (own->rank - 1) * sizeof(*w->dims));
            w->dims[0] = (struct walk_dim){.tile_dim = -1};
            set_start(lo, &w->dims[0], index);
        }
    }
    w->memory = own;
    return buffer;
}

// Through views, permutes, reshapes and remotes down to the alloc; of another CTA's, the remote of
// the whole.
struct tir_value *tir_lower_walk_to_alloc(struct lower *lo, struct lower_walk *w,
                                          struct tir_value *buffer)
{
    struct tir_value *cta = NULL;
    w->memory = NULL;
    while (buffer->def && !tir_is_allocated(buffer->def)) {
        struct tir_inst *inst = buffer->def;
        struct walk_dim of[TIR_MAX_RANK];
        if (inst->op == TIR_OP_REMOTE) {
            cta = inst->operands[1];
            buffer = inst->operands[0];
            continue;
        }
        memcpy(of, w->dims, sizeof(of));
        if (inst->op == TIR_OP_PERMUTE) {
            const struct tir_attr *order = tir_attr_find(inst, TIR_ATTR_permutation);
            for (uint32_t d = 0; d < order->list_count; d++)
                w->dims[order->list[d]] = of[d];
            buffer = inst->operands[0];
            continue;
        }
        if (inst->op == TIR_OP_RESHAPE) {
            buffer = walk_through_reshape(lo, w, inst);
            break;
        }
        const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
        uint32_t inner = 0;
        for (uint32_t d = 0; d < box->list_count; d++) {
            struct tir_value *index = tir_ref_indices(inst)[d];
            struct tir_value *at = tir_lower_cast(lo, &lo->b, index, lo->i32);
            int64_t c;
            if (tir_is_const_int(at, &c) && c == 0)
                at = NULL;
            uint64_t divisor = tir_range_divisor(lo->ranges, index);
            if (!box->list[d]) {
                w->dims[d] = (struct walk_dim){.tile_dim = -1, .start = at, .divisor = divisor};
                continue;
            }
            w->dims[d] = of[inner++];
            w->dims[d].start = tir_lower_add(lo, &lo->b, w->dims[d].start, at);
            w->dims[d].divisor = tir_gcd(w->dims[d].divisor, divisor);
        }
        buffer = tir_ref_base(inst);
    }
    w->memory = w->memory ? w->memory : memory_of(lo, buffer->type);
    w->rank = w->memory->rank;
    return cta ? tir_lower_remote(lo, buffer, cta) : buffer;
}

struct tir_value *tir_lower_remote(struct lower *lo, struct tir_value *buffer,
                                   struct tir_value *cta)
{
    struct tir_type t = *buffer->type;
    t.space = TIR_SPACE_CLUSTER;
    return tir_build1(&lo->b, TIR_OP_REMOTE, tir_type_get(lo->types, &t),
                      (struct tir_value *[]){buffer, cta}, 2);
}

static void finish_walk(struct lower *lo, struct lower_walk *w, struct tir_value *buffer)
{
    w->base = tir_lower_walk_to_alloc(lo, w, buffer);
    w->linear = tir_lower_walk_is_linear(w);
    if (w->linear)
        tir_lower_walk_open_linear(lo, w);
    w->vector = vector_of(w);
}

struct lower_walk *tir_lower_walk_begin(struct lower *lo, const struct tir_value *buffer,
                                        const struct tir_layout *l)
{
    struct lower_walk *w = arena_new(lo->cx->scratch, struct lower_walk);
    w->layout = l;
    w->bits = tir_elems[buffer->type->elem].bits;
    for (uint32_t d = 0; d < TIR_MAX_RANK; d++)
        w->dims[d].tile_dim = -1;
    return w;
}

struct lower_walk *tir_lower_walk_new(struct lower *lo, struct tir_value *buffer,
                                      const struct tir_layout *l, struct tir_value *const *starts,
                                      const uint32_t *dims)
{
    struct lower_walk *w = tir_lower_walk_begin(lo, buffer, l);
    for (uint32_t d = 0; l && d < l->rank; d++)
        w->dims[dims[d]].tile_dim = (int32_t)d;
    for (uint32_t d = 0; starts && d < buffer->type->rank; d++)
        set_start(lo, &w->dims[d], starts[d]);
    finish_walk(lo, w, buffer);
    return w;
}

static int64_t reach_of(const struct tir_layout *l, uint32_t dim)
{
    int64_t reach = 0;
    for (uint32_t i = l->first[dim]; i < l->first[dim + 1]; i++)
        if (l->iters[i].axis != TIR_AXIS_REG)
            reach += (l->iters[i].extent - 1) * tir_layout_weight(l, dim, i);
    return reach;
}

struct lower_walk *tir_lower_walk_part(struct lower *lo, struct tir_value *buffer,
                                       const struct tir_layout *l, uint32_t dim, int64_t start)
{
    struct lower_walk *w = tir_lower_walk_begin(lo, buffer, l);
    const int64_t size = buffer->type->shape[dim];
    w->part = (struct walk_part){dim, start, size, reach_of(l, dim)};
    struct tir_value *back = start ? tir_lower_i32(lo, -start) : NULL;
    w->slice_rank = l->rank;
    for (uint32_t d = 0; d < l->rank; d++)
        w->slice[d].tile_dim = w->dims[d].tile_dim = (int32_t)d;
    w->dims[dim].start = back;
    w->dims[dim].divisor = w->dims[dim].aligned = (uint32_t)size;
    struct tir_value *position = tir_lower_add(lo, &lo->b, tir_lower_coord(lo, l, dim), back);
    w->slice[dim].bound =
        (struct lower_bound){.position = position ? position : tir_lower_i32(lo, 0),
                             .extent = tir_lower_i32(lo, size),
                             .checked = true};
    finish_walk(lo, w, buffer);
    return w;
}

// Where the index of dimension d of the slice may leave the buffer.
static void set_bound(struct lower *lo, const struct tir_inst *inst, const struct lower_walk *w,
                      uint32_t d, int64_t box, struct slice_dim *s, struct walk_dim *dim)
{
    struct tir_value *start = tir_ref_indices(inst)[d];
    int64_t size = tir_ref_base(inst)->type->shape[d];
    s->bound.extent = tir_lower_i32(lo, size);
    if (box < 0) {
        int64_t low, high;
        tir_range_get(lo->ranges, start, &low, &high);
        s->bound.checked = low < 0 || high >= size;
        return;
    }
    s->bound.checked =
        tir_lower_may_leave(lo, inst, start, tir_const_index(lo->f, size), TIR_MAX(box, 1));
    if (!s->bound.checked)
        return;
    dim->aligned = (uint32_t)tir_gcd((uint64_t)size, dim->divisor);
    s->bound.position = tir_lower_narrowed(lo, start, lo->i32);
    if (box > 0 && w->layout)
        s->bound.position = tir_lower_add(lo, &lo->b, s->bound.position,
                                          tir_lower_coord(lo, w->layout, (uint32_t)s->tile_dim));
}

struct lower_walk *tir_lower_walk_slice(struct lower *lo, const struct tir_inst *inst,
                                        const struct tir_layout *l)
{
    struct tir_value *buffer = tir_ref_base(inst);
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    struct lower_walk *w = tir_lower_walk_begin(lo, buffer, l);
    w->slice_rank = buffer->type->rank;
    for (uint32_t d = 0; d < w->slice_rank; d++) {
        struct tir_value *index = tir_ref_indices(inst)[d];
        struct walk_dim *dim = &w->dims[d];
        if (box->list[d])
            dim->tile_dim = (int32_t)tir_slice_dim(inst, d);
        if (box->list[d] < 0)
            dim->index = index;
        else
            set_start(lo, dim, index);
        w->slice[d].tile_dim = dim->tile_dim;
        w->slice[d].index = dim->index;
        set_bound(lo, inst, w, d, box->list[d], &w->slice[d], dim);
    }
    finish_walk(lo, w, buffer);
    return w;
}

struct lower_vector tir_lower_walk_vector(const struct lower_walk *walk)
{
    return walk->vector;
}

bool tir_lower_walk_is_inside(const struct lower_walk *walk)
{
    for (uint32_t d = 0; d < walk->slice_rank; d++)
        if (walk->slice[d].bound.checked)
            return false;
    return true;
}
