// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts of memory under another element type and shape.
//
// The bytes of a buffer in the order of its elements are a sequence; the same sequence is cut into
// elements of another size and dealt out to another shape. With an iterator for the bytes of an
// element, a layout is a list of digits:
//
//     bf16[8, 64] in S[(8, 64) : (64, 1)]       bytes (8, 64, 2) : (128, 2, 1), which is (1024) : (1)
//     u32[8, 32]                                takes 4 of the last digit: (256, 4) : (4, 1)
//                                               and then 32 and 8: S[(8, 32) : (32, 1)]
#include "ir/layout.h"

struct digits { // in bytes, outermost first
    struct tir_iter at[TIR_MAX_ITERS + 1];
    uint32_t count;
};

// Puts a digit in front of those that are there, or makes it one with the first of them.
static bool put_in_front(struct digits *d, uint64_t extent, uint64_t stride)
{
    struct tir_iter *front = &d->at[0];
    if (extent == 1)
        return true;
    if (d->count && stride == (uint64_t)front->extent * front->stride) {
        front->extent *= (uint32_t)extent;
        return true;
    }
    if (d->count == TIR_COUNT_OF(d->at) || stride > UINT32_MAX)
        return false;
    memmove(front + 1, front, d->count++ * sizeof(*front));
    *front = (struct tir_iter){(uint32_t)extent, (uint32_t)stride, TIR_AXIS_REG};
    return true;
}

// Takes `size` from the last digits, and puts the digits that they are in front of `out`. False:
// a digit would be cut where no digit begins.
static bool take(struct digits *from, uint64_t size, struct digits *out)
{
    while (size > 1) {
        if (!from->count)
            return false;
        struct tir_iter *last = &from->at[from->count - 1];
        const uint64_t part = size < last->extent ? size : last->extent;
        if (size % part || last->extent % part || out->count == TIR_COUNT_OF(out->at))
            return false;
        memmove(out->at + 1, out->at, out->count++ * sizeof(*out->at));
        out->at[0] = (struct tir_iter){(uint32_t)part, last->stride, TIR_AXIS_REG};
        size /= part;
        last->extent /= (uint32_t)part;
        last->stride *= (uint32_t)part;
        from->count -= last->extent == 1;
    }
    return true;
}

const struct tir_layout *tir_layout_recast(struct tir_types *types, const struct tir_layout *l,
                                           uint32_t from_bytes, uint32_t rank, const int64_t *shape,
                                           uint32_t bytes)
{
    struct digits all = {.count = 0}, element = {.count = 0};
    bool ok = put_in_front(&all, from_bytes, 1);
    for (uint32_t i = l->iter_count; ok && i-- > 0;)
        ok = put_in_front(&all, l->iters[i].extent, (uint64_t)l->iters[i].stride * from_bytes);
    if (!ok || !take(&all, bytes, &element))
        return NULL;
    if (element.count > 1 || (element.count && element.at[0].stride != 1))
        return NULL;
    struct tir_layout out = {.rank = rank, .swizzle = l->swizzle};
    memcpy(out.shape, shape, rank * sizeof(*shape));
    struct digits dims[TIR_MAX_RANK];
    for (uint32_t d = rank; d-- > 0;) {
        dims[d].count = 0;
        if (!take(&all, (uint64_t)shape[d], &dims[d]))
            return NULL;
    }
    for (uint32_t d = 0; d < rank; d++) {
        out.first[d] = out.iter_count;
        for (uint32_t i = 0; i < dims[d].count; i++) {
            struct tir_iter it = dims[d].at[i];
            if (it.stride % bytes || out.iter_count == TIR_MAX_ITERS)
                return NULL;
            it.stride /= bytes;
            out.iters[out.iter_count++] = it;
        }
    }
    out.first[rank] = out.iter_count;
    return all.count ? NULL : tir_layout_get(types, &out);
}
