// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Facts about buffers that several passes ask for.

#include "pass/sync/shared.h"

struct box { // part of a buffer, per dimension
    int64_t lo[TIR_MAX_RANK], n[TIR_MAX_RANK];
};

static struct box whole(const struct tir_type *t)
{
    struct box box = {{0}, {0}};
    memcpy(box.n, t->shape, t->rank * sizeof(*box.n));
    return box;
}

// The part of what `view` is a part of that part `of` of it is. What is not constant may be
// anywhere.
static struct box through_view(const struct tir_inst *view, const struct box *of)
{
    const struct tir_type *base = tir_ref_base(view)->type;
    const struct tir_attr *attr = tir_attr_find(view, TIR_ATTR_box);
    struct box out = whole(base);
    uint32_t dim = 0;
    for (uint32_t d = 0; d < base->rank; d++) {
        int64_t start;
        bool kept = attr->list[d] != 0;
        if (attr->list[d] >= 0 && tir_is_const_int(tir_ref_indices(view)[d], &start)) {
            out.lo[d] = kept ? start + of->lo[dim] : start;
            out.n[d] = kept ? of->n[dim] : 1;
        }
        dim += kept;
    }
    return out;
}

static struct box through_permute(const struct tir_inst *permute, const struct box *of)
{
    const struct tir_attr *order = tir_attr_find(permute, TIR_ATTR_permutation);
    struct box out = whole(permute->operands[0]->type);
    for (uint32_t d = 0; d < order->list_count; d++) {
        out.lo[order->list[d]] = of->lo[d];
        out.n[order->list[d]] = of->n[d];
    }
    return out;
}

// First and last element that coordinates lo .. lo + n of dimension d contribute.
static void span_of(const struct tir_layout *l, uint32_t d, int64_t lo, int64_t n, int64_t *first,
                    int64_t *last)
{
    *first = *last = 0;
    int64_t extent = 1;
    for (uint32_t i = l->first[d]; i < l->first[d + 1]; i++) {
        const struct tir_iter *it = &l->iters[i];
        extent *= it->extent;
        *last += it->axis == TIR_AXIS_REG ? (int64_t)(it->extent - 1) * it->stride : 0;
    }
    if (n == extent)
        return; // all of it
    *first = INT64_MAX;
    *last = 0;
    for (int64_t i = lo; i < lo + n; i++) {
        int64_t coord[TIR_MAX_RANK] = {0};
        coord[d] = i;
        int64_t at = tir_layout_find(l, coord).at[TIR_AXIS_REG];
        *first = TIR_MIN(*first, at);
        *last = TIR_MAX(*last, at);
    }
}

// The bytes of the alloc of `buffer` that part `box` of it may touch.
static struct tir_bytes bytes_of(const struct tir_value *buffer, struct box box)
{
    for (; buffer->def; buffer = tir_viewed(buffer->def)) {
        if (buffer->def->op == TIR_OP_VIEW)
            box = through_view(buffer->def, &box);
        else if (buffer->def->op == TIR_OP_PERMUTE)
            box = through_permute(buffer->def, &box);
        else if (buffer->def->op == TIR_OP_RESHAPE)
            box = whole(buffer->def->operands[0]->type);
        else
            break;
    }
    const struct tir_type *t = buffer->type;
    const int64_t start = tir_alias_offset(buffer);
    struct tir_bytes all = {start, start + tir_buffer_bytes(t)};
    if (!t->layout)
        return all;
    int64_t first = 0, last = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        int64_t low, high;
        if (box.lo[d] < 0 || box.n[d] < 1 || box.lo[d] + box.n[d] > t->shape[d])
            return all; // it reaches outside
        span_of(t->layout, d, box.lo[d], box.n[d], &low, &high);
        first += low;
        last += high;
    }
    // A swizzle moves elements within eight of its rows.
    uint64_t unit = t->layout->swizzle ? 8 * (uint64_t)t->layout->swizzle : 1;
    int64_t bits = tir_elems[t->elem].bits;
    uint64_t begin = (uint64_t)(first * bits / 8), end = (uint64_t)((last + 1) * bits + 7) / 8;
    begin -= begin % unit;
    return (struct tir_bytes){start + (int64_t)begin, start + (int64_t)tir_align_up(end, unit)};
}

struct tir_bytes tir_buffer_part(const struct tir_value *buffer)
{
    return bytes_of(buffer, whole(buffer->type));
}

struct tir_bytes tir_slice_part(const struct tir_inst *inst)
{
    const struct tir_attr *attr = tir_attr_find(inst, TIR_ATTR_box);
    struct box slice = {{0}, {0}};
    uint32_t rank = 0;
    for (uint32_t d = 0; d < attr->list_count; d++)
        if (attr->list[d] != 0)
            slice.n[rank++] = attr->list[d];
    return bytes_of(tir_ref_base(inst), through_view(inst, &slice));
}

bool tir_convert_needs_scratch(const struct tir_type *from, const struct tir_type *to)
{
    struct tir_exchange exchange;
    return !tir_layout_same_owner(from->layout, to->layout) &&
           !tir_convert_exchanges(from, to, &exchange);
}

bool tir_convert_exchanges(const struct tir_type *from, const struct tir_type *to,
                           struct tir_exchange *exchange)
{
    return tir_elems[from->elem].bits % 8 == 0 && from->elem != TIR_BOOL &&
           tir_layout_exchange(from->layout, to->layout, exchange);
}

bool tir_atomic_shares(const struct tir_func *f, const struct tir_inst *atomic, bool used)
{
    const struct tir_type *t = atomic->results[0]->type;
    return used &&
           (tir_type_is_tile(t) ? t->layout->replica_count > 0 : !tir_is_by_thread(f, atomic));
}

uint32_t tir_warps_along(const struct tir_layout *l, uint32_t axis)
{
    uint32_t warps = 1;
    for (uint32_t i = l->first[axis]; i < l->first[axis + 1]; i++)
        if (l->iters[i].axis == TIR_AXIS_WARP)
            warps *= l->iters[i].extent;
    return warps;
}

uint32_t tir_combine_blocks(const struct tir_layout *l, uint32_t axis)
{
    for (uint32_t i = l->first[axis + 1]; i-- > l->first[axis];)
        if (l->iters[i].axis == TIR_AXIS_WARP)
            return (uint32_t)(l->shape[axis] / tir_layout_weight(l, axis, i));
    return 1;
}
