// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Result types of what names a slice of a tensor or buffer: loads, atomics, views.

#include "ir/infer.h"

bool tir_index_shape(struct tir_value *const *indices, const int64_t *box, uint32_t count,
                     struct tir_type *shape)
{
    *shape = (struct tir_type){0};
    for (uint32_t i = 0; i < count; i++) {
        const struct tir_type *t = indices[i]->type;
        if (box[i] >= 0)
            continue;
        if (!shape->rank)
            *shape = *t;
        if (t->rank != shape->rank)
            return false;
        for (uint32_t d = 0; d < t->rank; d++) {
            if (shape->shape[d] == 1)
                shape->shape[d] = t->shape[d];
            else if (t->shape[d] != 1 && t->shape[d] != shape->shape[d])
                return false;
        }
    }
    return true;
}

uint32_t tir_slice_dim(const struct tir_inst *inst, uint32_t d)
{
    const int64_t *box = tir_attr_find(inst, TIR_ATTR_box)->list;
    struct tir_value *const *indices = tir_ref_indices(inst);
    uint32_t at = 0, first = 0;
    bool tiles = false;
    for (uint32_t i = 0; i < d; i++) {
        if (box[i] < 0 && !tiles) {
            tiles = true;
            first = at;
            at += indices[i]->type->rank;
        }
        at += box[i] > 0;
    }
    return box[d] < 0 && tiles ? first : at;
}

int64_t tir_slice_stride(const struct tir_inst *inst, uint32_t d)
{
    const struct tir_attr *strides = tir_attr_find(inst, TIR_ATTR_strides);
    return strides ? strides->list[d] : 1;
}

static bool is_index(struct tir_query *q, const struct tir_value *index, int64_t box)
{
    if (!index || index->type->space != TIR_SPACE_VALUE || !tir_elem_is_int(index->type->elem)) {
        tir_infer_refuse(q, "an index must be an integer");
        return false;
    }
    if (box >= 0 ? index->type->rank > 0 : index->type->rank == 0 || box != -1) {
        tir_infer_refuse(q, "an index and its box do not agree");
        return false;
    }
    return true;
}

static bool add_dimensions(struct tir_query *q, struct tir_type *t, const int64_t *sizes,
                           uint32_t count)
{
    if (t->rank + count > TIR_MAX_RANK) {
        tir_infer_refuse(q, "the slice has more than %d dimensions", TIR_MAX_RANK);
        return false;
    }
    memcpy(t->shape + t->rank, sizes, count * sizeof(*sizes));
    t->rank += count;
    return true;
}

const struct tir_type *tir_infer_slice(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    uint32_t fixed = tir_fixed_count(inst);
    if (inst->operand_count <= fixed || !inst->operands[fixed])
        return tir_infer_refuse(q, "the buffer is missing");
    const struct tir_type *base = tir_infer_operand(q, fixed);
    if (!tir_type_is_buffer(base))
        return tir_infer_refuse(q, "%s is not a buffer", tir_infer_text(q, base));
    if (base->elem == TIR_MBARRIER && inst->op != TIR_OP_VIEW)
        return tir_infer_refuse(q, "only operations on barriers may touch %s",
                                tir_infer_text(q, base));
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    uint32_t given = inst->operand_count - fixed - 1;
    if (given != base->rank || (box ? box->list_count : 0) != base->rank)
        return tir_infer_refuse(q, "%u indices for a buffer of rank %u", given, base->rank);
    struct tir_value *const *indices = inst->operands + fixed + 1;
    for (uint32_t d = 0; d < base->rank; d++)
        if (!is_index(q, indices[d], box->list[d]))
            return NULL;
    struct tir_type t = {.elem = base->elem}, tiles;
    if (base->rank && !tir_index_shape(indices, box->list, base->rank, &tiles))
        return tir_infer_refuse(q, "the index tiles do not fit together");
    bool placed = false;
    for (uint32_t d = 0; d < base->rank; d++) {
        bool first = box->list[d] < 0 && !placed;
        placed |= first;
        if (first ? !add_dimensions(q, &t, tiles.shape, tiles.rank)
                  : box->list[d] > 0 && !add_dimensions(q, &t, &box->list[d], 1))
            return NULL;
    }
    const struct tir_attr *wraps = tir_attr_find(inst, TIR_ATTR_wraps);
    const int64_t columns = base->rank ? box->list[base->rank - 1] : 0;
    if (wraps && (wraps->number < 1 || columns < 1 || columns % wraps->number ||
                  !tir_is_pow2((uint64_t)columns) || base->space != TIR_SPACE_GLOBAL))
        return tir_infer_refuse(q, "%lld columns of a tensor do not begin at a multiple of %lld",
                                (long long)columns, (long long)wraps->number);
    return tir_type_get(q->m->types, &t);
}

bool tir_infer_mask_fits(struct tir_query *q, uint32_t operand, const struct tir_type *slice)
{
    const struct tir_value *mask = q->inst->operands[operand];
    if (!mask)
        return true;
    const struct tir_type *t = mask->type;
    if (t->space != TIR_SPACE_VALUE || t->elem != TIR_BOOL ||
        (t->rank && !tir_type_same_shape(t, slice))) {
        tir_infer_refuse(q, "the mask is %s for a slice %s", tir_infer_text(q, t),
                         tir_infer_text(q, slice));
        return false;
    }
    return true;
}

const struct tir_type *tir_infer_load(struct tir_query *q)
{
    const struct tir_type *slice = tir_infer_slice(q);
    if (!slice || !tir_infer_mask_fits(q, TIR_LOAD_MASK, slice))
        return NULL;
    const struct tir_value *pad = q->inst->operands[TIR_LOAD_PAD];
    if (pad && pad->type != tir_infer_scalar(q, slice->elem))
        return tir_infer_refuse(q, "the pad is %s for %s", tir_infer_text(q, pad->type),
                                tir_infer_text(q, slice));
    const struct tir_type *base = tir_ref_base(q->inst)->type;
    if (q->stated && q->stated->elem == TIR_TF32 && slice->elem == TIR_F32 && slice->rank &&
        base->space == TIR_SPACE_GLOBAL) // rounded
        slice = tir_type_with_elem(q->m->types, slice, TIR_TF32);
    return tir_infer_stated_layout(q, slice);
}

static bool combines(struct tir_query *q, enum tir_elem elem)
{
    enum tir_word kind = tir_attr_word(q->inst, TIR_ATTR_kind, TIR_WORD_NONE);
    bool bitwise = kind == TIR_WORD_kind_and || kind == TIR_WORD_kind_or ||
                   kind == TIR_WORD_kind_xor || kind == TIR_WORD_kind_cas;
    if (!bitwise || !tir_elem_is_float(elem))
        return true;
    tir_infer_refuse(q, "an atomic `%s` takes integers, not %s", tir_words[kind].name,
                     tir_elems[elem].name);
    return false;
}

// Only a compare-and-swap has a value that is expected.
static bool expects(struct tir_query *q, uint32_t at, const struct tir_type *type)
{
    const struct tir_value *expected = q->inst->operands[at];
    bool is_cas = tir_attr_word(q->inst, TIR_ATTR_kind, TIR_WORD_NONE) == TIR_WORD_kind_cas;
    if (is_cas == (expected != NULL) &&
        (!expected || tir_infer_same_but_layout(expected->type, type)))
        return true;
    tir_infer_refuse(q, "`kind = cas` and `expected`, which is %s, go together",
                     tir_infer_text(q, type));
    return false;
}

const struct tir_type *tir_infer_atomic(struct tir_query *q)
{
    const struct tir_type *slice = tir_infer_slice(q),
                          *value = tir_infer_operand(q, TIR_STORE_VALUE);
    if (!slice || !tir_infer_mask_fits(q, TIR_STORE_MASK, slice) || !combines(q, slice->elem))
        return NULL;
    if (tir_ref_base(q->inst)->type->space == TIR_SPACE_LOCAL)
        return tir_infer_refuse(q, "an atomic on a local buffer, which no other thread can see");
    if (tir_ref_base(q->inst)->type->space == TIR_SPACE_TMEM)
        return tir_infer_refuse(q, "an atomic on tensor memory, which has none");
    if (!tir_infer_same_but_layout(value, slice))
        return tir_infer_refuse(q, "%s combined with a slice %s", tir_infer_text(q, value),
                                tir_infer_text(q, slice));
    if (!expects(q, TIR_ATOMIC_EXPECTED, slice))
        return NULL;
    return tir_infer_operand_layout(q, TIR_STORE_VALUE, slice, value->layout);
}

const struct tir_type *tir_infer_atom(struct tir_query *q)
{
    const struct tir_type *value = tir_infer_operand(q, 2);
    if (!tir_type_is_scalar(value) || value->elem != tir_infer_operand(q, 0)->elem)
        return tir_infer_refuse(q, "%s combined with %s", tir_infer_text(q, value),
                                tir_infer_text(q, tir_infer_operand(q, 0)));
    return combines(q, value->elem) && expects(q, 4, value) ? value : NULL;
}

const struct tir_type *tir_infer_view(struct tir_query *q)
{
    const struct tir_type *slice = tir_infer_slice(q);
    if (!slice)
        return NULL;
    const struct tir_type *base = tir_infer_operand(q, 0);
    const struct tir_attr *box = tir_attr_find(q->inst, TIR_ATTR_box);
    for (uint32_t d = 0; d < base->rank; d++)
        if (box->list[d] < 0)
            return tir_infer_refuse(q, "a view has no index tiles");
    if (base->space == TIR_SPACE_GLOBAL)
        return tir_infer_refuse(
            q, "a view is of a shared or local buffer, or of one in tensor memory");
    struct tir_type t = *slice;
    t.space = base->space;
    return tir_infer_stated_layout(q, tir_type_get(q->m->types, &t));
}

const struct tir_type *tir_infer_index(struct tir_query *q)
{
    const struct tir_type *of = tir_infer_operand(q, 0);
    uint32_t axis;
    if (of->space != TIR_SPACE_GLOBAL)
        return tir_infer_refuse(q, "%s is not a tensor", tir_infer_text(q, of));
    return tir_infer_axis(q, of->rank, &axis) ? tir_infer_scalar(q, TIR_I64) : NULL;
}
