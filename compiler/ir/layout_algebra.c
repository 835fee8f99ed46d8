// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts made of layouts.
//
// compose   An element of the result is an element of a layout, of which a second layout says the
//           number, counted row by row. Its iterators pick digits of those numbers:
//
//               S[(8, 4, 2) : (4@laneid, 1@laneid, 1)]   numbers have digits of 8, 4 and 2
//               S[(8, 8) : (1, 8)]                       picks 2 and 4, then 8: rows are columns
//               S[(4, 2, 8) : (1@laneid, 1, 4@laneid)]
//
// reshape   The composition with rows of another shape.
// product   A layout of tiles that are each laid out as a second layout says. What the first has
//           along an axis counts in what the second has there.
// recast    A layout of memory as one of bytes, composed with one of elements of another size.

#include "ir/layout.h"

// The digits of the elements' numbers that `extent` steps of `stride` elements run through,
// outermost first. False: one would be cut, or they run out.
static bool pick(const struct tir_layout *of, uint64_t extent, uint64_t stride,
                 struct tir_iter *out, uint32_t *count)
{
    struct tir_iter inner_first[TIR_MAX_ITERS];
    uint64_t weight = 1;
    uint32_t n = 0;
    for (uint32_t i = of->iter_count; extent > 1 && i-- > 0;) {
        const struct tir_iter it = of->iters[i];
        const uint64_t span = weight * it.extent;
        if (stride < span) {
            const uint64_t start = stride / weight;
            if (!stride || stride % weight || it.extent % start || n == TIR_MAX_ITERS)
                return false;
            const uint64_t there = it.extent / start, taken = extent < there ? extent : there;
            if (extent % taken || there % taken)
                return false;
            inner_first[n++] =
                (struct tir_iter){(uint32_t)taken, it.stride * (uint32_t)start, it.axis};
            extent /= taken;
            stride = span;
        }
        weight = span;
    }
    if (extent > 1 || *count + n > TIR_MAX_ITERS)
        return false;
    while (n)
        out[(*count)++] = inner_first[--n];
    return true;
}

const struct tir_layout *tir_layout_compose(struct tir_types *types, const struct tir_layout *of,
                                            const struct tir_layout *by)
{
    struct tir_layout out = *of;
    if (!tir_layout_is_memory(by) || by->swizzle)
        return NULL;
    out.rank = by->rank;
    out.iter_count = 0;
    memcpy(out.shape, by->shape, sizeof out.shape);
    for (uint32_t d = 0; d < by->rank; d++) {
        out.first[d] = out.iter_count;
        for (uint32_t i = by->first[d]; i < by->first[d + 1]; i++)
            if (!pick(of, by->iters[i].extent, by->iters[i].stride, out.iters, &out.iter_count))
                return NULL;
    }
    out.first[by->rank] = out.iter_count;
    return tir_layout_get(types, &out);
}

const struct tir_layout *tir_layout_reshape(struct tir_types *types, const struct tir_layout *l,
                                            uint32_t rank, const int64_t *shape)
{
    int64_t all = 1, there = 1;
    for (uint32_t d = 0; d < l->rank; d++)
        all *= l->shape[d];
    for (uint32_t d = 0; d < rank; d++)
        there *= shape[d];
    const struct tir_layout *rows =
        all == there ? tir_layout_memory(types, rank, shape, 8, 0) : NULL;
    if (!rows)
        return NULL;
    // Digits of neighbours that count on are one, which may be cut elsewhere.
    l = tir_layout_from_iters(types, 1, &all, l->iters, l->iter_count, l->replicas,
                              l->replica_count, l->swizzle);
    return tir_layout_compose(types, l, rows);
}

const struct tir_layout *tir_layout_divide(struct tir_types *types, const struct tir_layout *l,
                                           const int64_t *tile)
{
    struct tir_layout by = {.rank = 2 * l->rank};
    uint32_t stride = 1;
    if (by.rank > TIR_MAX_RANK)
        return NULL;
    by.first[by.rank] = by.iter_count = by.rank;
    for (uint32_t d = l->rank; d-- > 0; stride *= (uint32_t)l->shape[d]) {
        if (tile[d] < 1 || l->shape[d] % tile[d])
            return NULL;
        const uint32_t size = (uint32_t)tile[d], tiles = (uint32_t)(l->shape[d] / tile[d]);
        by.shape[d] = tiles;
        by.shape[l->rank + d] = size;
        by.first[d] = d;
        by.first[l->rank + d] = l->rank + d;
        by.iters[d] = (struct tir_iter){tiles, stride * size, TIR_AXIS_REG};
        by.iters[l->rank + d] = (struct tir_iter){size, stride, TIR_AXIS_REG};
    }
    return tir_layout_compose(types, l, &by);
}

// An iterator that counts in steps of what `inner` has along its axis.
static bool scale(struct tir_iter *it, const struct tir_layout *inner)
{
    const uint64_t stride = (uint64_t)it->stride * tir_layout_size(inner, it->axis);
    it->stride = (uint32_t)stride;
    return stride <= UINT32_MAX;
}

const struct tir_layout *tir_layout_product(struct tir_types *types, const struct tir_layout *outer,
                                            const struct tir_layout *inner)
{
    struct tir_layout out = {.rank = inner->rank, .swizzle = inner->swizzle};
    bool fits = outer->rank == inner->rank && !outer->swizzle &&
                outer->iter_count + inner->iter_count <= TIR_MAX_ITERS &&
                outer->replica_count + inner->replica_count <= TIR_MAX_ITERS;
    for (uint32_t d = 0; fits && d < inner->rank; d++) {
        out.shape[d] = outer->shape[d] * inner->shape[d];
        out.first[d] = out.iter_count;
        for (uint32_t i = outer->first[d]; i < outer->first[d + 1]; i++) {
            out.iters[out.iter_count] = outer->iters[i];
            fits = fits && scale(&out.iters[out.iter_count++], inner);
        }
        for (uint32_t i = inner->first[d]; i < inner->first[d + 1]; i++)
            out.iters[out.iter_count++] = inner->iters[i];
    }
    out.first[out.rank] = out.iter_count;
    for (uint32_t i = 0; fits && i < outer->replica_count; i++) {
        out.replicas[out.replica_count] = outer->replicas[i];
        fits = scale(&out.replicas[out.replica_count++], inner);
    }
    for (uint32_t i = 0; fits && i < inner->replica_count; i++)
        out.replicas[out.replica_count++] = inner->replicas[i];
    return fits ? tir_layout_get(types, &out) : NULL;
}

const struct tir_layout *tir_layout_recast(struct tir_types *types, const struct tir_layout *l,
                                           uint32_t from_bytes, uint32_t rank, const int64_t *shape,
                                           uint32_t bytes)
{
    struct tir_iter iters[TIR_MAX_ITERS + 1], element[TIR_MAX_ITERS];
    int64_t all = from_bytes;
    for (uint32_t i = 0; i < l->iter_count; i++) {
        iters[i] = l->iters[i];
        iters[i].stride *= from_bytes;
        all *= iters[i].extent;
    }
    iters[l->iter_count] = (struct tir_iter){from_bytes, 1, TIR_AXIS_REG};
    const struct tir_layout *of =
        l->iter_count < TIR_MAX_ITERS
            ? tir_layout_from_iters(types, 1, &all, iters, l->iter_count + 1, NULL, 0, 0)
            : NULL;
    uint32_t count = 0;
    if (!of || !pick(of, bytes, 1, element, &count) || count > 1 ||
        (count && element[0].stride != 1))
        return NULL;
    struct tir_layout out = {.rank = rank, .swizzle = l->swizzle};
    uint64_t step = bytes;
    for (uint32_t d = 0; d < rank; d++)
        step *= (uint64_t)shape[d];
    if (step != (uint64_t)all)
        return NULL;
    for (uint32_t d = 0; d < rank; d++) {
        out.shape[d] = shape[d];
        out.first[d] = out.iter_count;
        step /= (uint64_t)shape[d];
        if (!pick(of, (uint64_t)shape[d], step, out.iters, &out.iter_count))
            return NULL;
    }
    out.first[rank] = out.iter_count;
    for (uint32_t i = 0; i < out.iter_count; i++) {
        if (out.iters[i].stride % bytes)
            return NULL;
        out.iters[i].stride /= bytes;
    }
    return tir_layout_get(types, &out);
}

bool tir_layout_is_same(const struct tir_layout *a, const struct tir_layout *b)
{
    bool same = a->rank == b->rank && a->swizzle == b->swizzle &&
                a->replica_count == b->replica_count &&
                !memcmp(a->replicas, b->replicas, a->replica_count * sizeof *a->replicas);
    int64_t count = 1;
    for (uint32_t d = 0; same && d < a->rank; d++) {
        same = a->shape[d] == b->shape[d];
        count *= a->shape[d];
    }
    for (enum tir_axis axis = 0; same && axis < TIR_AXIS_COUNT; axis++)
        same = tir_layout_size(a, axis) == tir_layout_size(b, axis);
    for (int64_t i = 0; same && a != b && i < count; i++) {
        int64_t coord[TIR_MAX_RANK] = {0}, rest = i;
        for (uint32_t d = a->rank; d-- > 0; rest /= a->shape[d])
            coord[d] = rest % a->shape[d];
        const struct tir_layout_at x = tir_layout_find(a, coord), y = tir_layout_find(b, coord);
        same = !memcmp(&x, &y, sizeof x);
    }
    return same;
}
