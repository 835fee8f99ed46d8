// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// layout, buffers: a buffer without a stated layout is row-major, and a view has a part of its
// buffer's layout.

#include "ir/range.h"
#include "pass/layout/layout.h"

// The iterators of dimension d that a view keeps, innermost first; `box` elements of it, from a
// start that `divisor` divides (0: from 0). UINT32_MAX: the view has no layout of its own, because
// a digit of the start carries over to the next, breaks the pattern of the swizzle, or is not
// aligned to 16 bytes, which readers of layouts rely on.
static uint32_t viewed_iters(const struct tir_layout *l, uint32_t d, int64_t box, uint64_t divisor,
                             uint32_t bytes, struct tir_iter *kept)
{
    uint32_t count = 0;
    for (uint32_t i = l->first[d + 1]; i-- > l->first[d];) {
        struct tir_iter it = l->iters[i];
        uint64_t weight = (uint64_t)tir_layout_weight(l, d, i);
        int64_t take = TIR_MIN(box, (int64_t)it.extent);
        assert(take > 0);
        if (divisor % (weight * it.extent)) { // the start's digit is a multiple of step
            uint64_t step = divisor % weight ? 1 : tir_gcd(divisor / weight, it.extent);
            if ((uint64_t)take > TIR_MAX(step, 1) && i > l->first[d])
                return UINT32_MAX;
            if (step * it.stride * bytes % tir_layout_alignment(l))
                return UINT32_MAX;
        }
        if (box % take)
            return UINT32_MAX;
        box /= take;
        it.extent = (uint32_t)take;
        kept[count++] = it;
    }
    return box == 1 ? count : UINT32_MAX;
}

// A view's layout follows from its buffer's; NULL: it has none.
static const struct tir_layout *view_layout(struct solver *s, const struct tir_inst *view,
                                            const struct tir_ranges *ranges)
{
    const struct tir_type *base = tir_ref_base(view)->type;
    const struct tir_layout *l = base->layout;
    const struct tir_attr *box = tir_attr_find(view, TIR_ATTR_box);
    if (!l)
        return NULL;
    struct tir_layout out = {.swizzle = l->swizzle};
    for (uint32_t d = 0; d < l->rank; d++) {
        struct tir_iter kept[TIR_MAX_ITERS];
        uint64_t divisor = tir_range_divisor(ranges, tir_ref_indices(view)[d]);
        uint32_t count = viewed_iters(l, d, TIR_MAX(box->list[d], 1), divisor,
                                      TIR_MAX(1, tir_elems[base->elem].bits / 8), kept);
        if (count == UINT32_MAX)
            return NULL;
        if (!box->list[d])
            continue;
        out.shape[out.rank++] = box->list[d];
        while (count)
            out.iters[out.iter_count++] = kept[--count];
        out.first[out.rank] = out.iter_count;
    }
    return tir_layout_get(s->types, &out);
}

void tir_solver_give_buffers_layouts(struct solver *s)
{
    const struct tir_ranges *ranges = tir_ranges_new(s->cx->scratch, s->f);
    tir_foreach_inst(inst, s->f)
        for (uint32_t r = 0; r < inst->result_count; r++) {
            const struct tir_type *t = inst->results[r]->type;
            if (t->elem == TIR_MBARRIER)
                continue;
            if ((inst->op == TIR_OP_ALLOC || inst->op == TIR_OP_ALIAS || inst->op == TIR_OP_RING) &&
                !t->layout)
                inst->results[r]->type = tir_type_with_layout(
                    s->types, t,
                    tir_layout_memory(s->types, t->rank, t->shape, tir_elems[t->elem].bits, 0));
            if (inst->op == TIR_OP_VIEW && !t->layout)
                inst->results[r]->type =
                    tir_type_with_layout(s->types, t, view_layout(s, inst, ranges));
            if (inst->op == TIR_OP_REMOTE)
                inst->results[r]->type =
                    tir_type_with_layout(s->types, t, inst->operands[0]->type->layout);
            if (inst->op == TIR_OP_RESHAPE && tir_type_is_buffer(t) &&
                inst->operands[0]->type->layout)
                inst->results[r]->type = tir_type_with_layout(
                    s->types, t,
                    tir_layout_reshape(s->types, inst->operands[0]->type->layout, t->rank,
                                       t->shape));
            if (inst->op == TIR_OP_PERMUTE && tir_type_is_buffer(t) &&
                inst->operands[0]->type->layout)
                inst->results[r]->type = tir_type_with_layout(
                    s->types, t,
                    tir_layout_permute(s->types, inst->operands[0]->type->layout,
                                       tir_attr_find(inst, TIR_ATTR_permutation)->list));
        }
}
