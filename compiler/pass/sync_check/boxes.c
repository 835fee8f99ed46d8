// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on boxes: the part of a buffer, in its dimensions, that an access touches.

#include "pass/sync_check/memory.h"

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

void tir_sync_view(const struct sync_agent *a, const struct tir_inst *inst,
                   const struct sync_buffer *of, struct sync_buffer *out)
{
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    struct tir_value *const *indices = tir_ref_indices(inst);
    *out = *of;
    out->rank = 0;
    for (uint32_t d = 0; d < of->rank; d++) {
        const struct tir_value *v = indices[d];
        bool constant = v->kind == TIR_VALUE_CONST;
        uint32_t to = of->dim[d];
        int64_t extent = of->box.size[to], size = box->list[d];
        if (of->reshaped) {
            const bool all = constant && !v->constant.i;
            out->exact &= all && size == tir_ref_base(inst)->type->shape[d];
        } else if (size < 0 || (!constant && a->slots[v->id].kind != SYNC_INT)) { // anywhere
            out->exact &= size < 0;
        } else {
            int64_t from = constant ? v->constant.i : a->slots[v->id].number;
            int64_t begin = clamp(from, 0, extent);
            out->box.begin[to] += begin; // what lies outside is dropped
            out->box.size[to] = clamp(from + TIR_MAX(size, 1), 0, extent) - begin;
        }
        if (size)
            out->dim[out->rank++] = (uint8_t)to;
    }
}

bool tir_sync_boxes_meet(const struct sync_box *a, const struct sync_box *b, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++)
        if (a->begin[d] >= b->begin[d] + b->size[d] || b->begin[d] >= a->begin[d] + a->size[d] ||
            a->size[d] <= 0 || b->size[d] <= 0)
            return false;
    return true;
}

bool tir_sync_is_empty_box(const struct sync_box *box, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++)
        if (box->size[d] <= 0)
            return true;
    return false;
}

bool tir_sync_box_covers(const struct sync_box *a, const struct sync_box *b, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++)
        if (b->begin[d] < a->begin[d] || b->begin[d] + b->size[d] > a->begin[d] + a->size[d])
            return false;
    return true;
}

void tir_sync_span(const struct sync_root *root, const struct sync_box *box, int64_t *begin,
                   int64_t *end)
{
    if (root->is_tmem) {
        tir_sync_columns(root, box, begin, end);
        return;
    }
    const struct tir_type *t = root->alloc->type;
    int64_t low = 0, high = 0, inner = 1;
    for (uint32_t d = t->rank; d-- > 0 && !t->layout;) {
        low += box->begin[d] * inner;
        high += (box->begin[d] + box->size[d] - 1) * inner;
        inner *= t->shape[d];
    }
    for (uint32_t d = 0; t->layout && d < t->rank; d++) {
        int64_t from = box->begin[d], to = from + box->size[d] - 1, weight = t->shape[d];
        for (uint32_t i = t->layout->first[d]; i < t->layout->first[d + 1]; i++) {
            const struct tir_iter *it = &t->layout->iters[i];
            weight /= it->extent;
            low += from / weight * it->stride;
            high += to / weight * it->stride;
            bool one = from / weight == to / weight;
            from = one ? from % weight : 0;
            to = one ? to % weight : weight - 1;
        }
    }
    int64_t bits = tir_elems[t->elem].bits, atom = t->layout ? t->layout->swizzle * 8 : 0;
    low = low * bits / 8;
    high = (high * bits + bits + 7) / 8;
    if (atom) {
        low = low / atom * atom;
        high = TIR_MIN(tir_ceil_div(high, atom) * atom, root->end - root->begin);
    }
    *begin = root->begin + low;
    *end = root->begin + high;
}
