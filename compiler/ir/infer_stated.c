// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Result types that are stated: whether an operation can give them.

#include "ir/infer.h"

static const struct tir_type *stated_cast(struct tir_query *q)
{
    const struct tir_type *x = tir_infer_operand(q, 0), *t = q->stated;
    if (t->elem == TIR_MBARRIER)
        return tir_infer_refuse(q, "an mbarrier is no value");
    if (!tir_value_fits(q->inst->operands[0], tir_type_with_elem(q->m->types, t, x->elem)))
        return tir_infer_refuse(q, "%s is cast to %s", tir_infer_text(q, x), tir_infer_text(q, t));
    if (q->inst->op == TIR_OP_BITCAST && tir_elems[x->elem].bits != tir_elems[t->elem].bits)
        return tir_infer_refuse(q, "%s and %s have different widths", tir_infer_text(q, x),
                                tir_infer_text(q, t));
    return t;
}

static const struct tir_type *stated_expand(struct tir_query *q)
{
    const struct tir_type *x = tir_infer_operand(q, 0), *t = q->stated;
    if (!tir_type_is_tile(x) || !tir_type_is_tile(t) || x->rank != 2 || t->rank != 2 ||
        x->elem != TIR_U8 || !tir_elem_is_narrow(t->elem) || x->shape[0] != t->shape[0] ||
        8 * x->shape[1] != t->shape[1] * tir_elem_width(t->elem))
        return tir_infer_refuse(q, "%s has no packed elements of %s", tir_infer_text(q, x),
                                tir_infer_text(q, t));
    return t;
}

static const struct tir_type *stated_broadcast(struct tir_query *q)
{
    const struct tir_type *x = tir_infer_operand(q, 0), *t = q->stated;
    bool fits = tir_type_is_tile(t) && x->elem == t->elem && x->space == TIR_SPACE_VALUE &&
                (x->rank == 0 || x->rank == t->rank);
    for (uint32_t d = 0; fits && d < x->rank; d++)
        fits = x->shape[d] == 1 || x->shape[d] == t->shape[d];
    return fits ? t
                : tir_infer_refuse(q, "%s cannot be repeated as %s", tir_infer_text(q, x),
                                   tir_infer_text(q, t));
}

// The scratch of a conversion is as large as the tile, or smaller along one dimension.
static bool fits_scratch(struct tir_query *q, const struct tir_type *tile)
{
    const struct tir_value *scratch = q->inst->operands[TIR_REDUCE_SCRATCH];
    const struct tir_type *t = scratch ? scratch->type : NULL;
    if (!t)
        return true;
    bool fits = t->elem == tile->elem && t->rank == tile->rank;
    uint32_t smaller = 0;
    for (uint32_t d = 0; fits && d < t->rank; d++) {
        fits = t->shape[d] <= tile->shape[d];
        smaller += t->shape[d] < tile->shape[d];
    }
    if (!fits || smaller > 1)
        tir_infer_refuse(q, "%s cannot go through %s", tir_infer_text(q, tile),
                         tir_infer_text(q, t));
    return fits && smaller <= 1;
}

// A buffer is allocated, or a part that has all of the dimensions that it has at all: a slot.
static bool is_whole(const struct tir_value *buffer)
{
    const struct tir_inst *def = buffer->def;
    if (!def || def->op != TIR_OP_VIEW)
        return def && (tir_is_allocated(def) || def->op == TIR_OP_RING);
    const struct tir_attr *box = tir_attr_find(def, TIR_ATTR_box);
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d] && box->list[d] != tir_ref_base(def)->type->shape[d])
            return false;
    return is_whole(tir_ref_base(def));
}

static const struct tir_type *stated_reshape(struct tir_query *q)
{
    const struct tir_type *x = tir_infer_operand(q, 0), *t = q->stated;
    const bool is_buffer = x->space == TIR_SPACE_SHARED;
    if (x->elem != t->elem || x->space != t->space || x->elem == TIR_MBARRIER ||
        (x->space != TIR_SPACE_VALUE && !is_buffer) || tir_type_count(x) != tir_type_count(t))
        return tir_infer_refuse(q, "%s does not have the elements of %s", tir_infer_text(q, x),
                                tir_infer_text(q, t));
    if (is_buffer && !is_whole(q->inst->operands[0]))
        return tir_infer_refuse(q, "%s is a part of a buffer", tir_infer_text(q, x));
    return t;
}

static bool all_32_bits(const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (tir_elems[inst->results[i]->type->elem].bits != 32)
            return false;
    return true;
}

static uint64_t bits_of(struct tir_value *const *values, uint32_t count)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < count; i++)
        bits += tir_elems[values[i]->type->elem].bits;
    return bits;
}

static const struct tir_type *stated_machine(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    uint64_t bits = bits_of(inst->results, inst->result_count);
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (!tir_type_is_scalar(inst->results[i]->type))
            return tir_infer_refuse(q, "results must be scalars");
    switch (inst->op) {
    case TIR_OP_LD:
        if (bits != 8 * (uint64_t)tir_attr_int(inst, TIR_ATTR_width, 0))
            return tir_infer_refuse(q, "the results have %llu bits", (unsigned long long)bits);
        break;
    case TIR_OP_LDMATRIX:
        if (!tir_is_pow2(inst->result_count) || inst->result_count > 4 || !all_32_bits(inst))
            return tir_infer_refuse(q, "the results must be 1, 2 or 4 values of 32 bits");
        break;
    case TIR_OP_PACK:
    case TIR_OP_UNPACK:
        if (bits != bits_of(inst->operands, inst->operand_count))
            return tir_infer_refuse(q, "the parts and the whole differ in bits");
        break;
    default:
        break;
    }
    return q->stated;
}

static const struct tir_type *stated_extract(struct tir_query *q)
{
    const struct tir_type *x = tir_infer_operand(q, 0), *t = q->stated;
    const struct tir_attr *start = tir_attr_find(q->inst, TIR_ATTR_start);
    bool fits = tir_type_is_tile(t) && tir_type_is_tile(x) && x->elem == t->elem &&
                x->rank == t->rank && start && start->list_count == t->rank;
    for (uint32_t d = 0; fits && d < t->rank; d++)
        fits = start->list[d] >= 0 && start->list[d] <= x->shape[d] - t->shape[d];
    return fits ? t
                : tir_infer_refuse(q, "%s is no part of %s", tir_infer_text(q, t),
                                   tir_infer_text(q, x));
}

static bool are_i64(struct tir_value *const *v, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (v[i] && (!tir_type_is_scalar(v[i]->type) || v[i]->type->elem != TIR_I64))
            return false;
    return true;
}

static const struct tir_type *stated_pixels(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    const struct tir_type *of = tir_infer_operand(q, TIR_PIXEL_OF), *t = q->stated;
    const uint32_t count = inst->operand_count - TIR_PIXEL_FIRST;
    uint32_t axis;
    if (of->space != TIR_SPACE_GLOBAL ||
        !tir_corners_fit(of->rank, tir_attr_find(inst, TIR_ATTR_low),
                         tir_attr_find(inst, TIR_ATTR_high),
                         tir_attr_find(inst, TIR_ATTR_strides)) ||
        !tir_pixel_offsets_fit(of->rank, inst->operands + TIR_PIXEL_DZ))
        return tir_infer_refuse(q, "%s has no such pixels", tir_infer_text(q, of));
    if (count + 1 != of->rank || !are_i64(inst->operands + TIR_PIXEL_DZ, TIR_PIXEL_DIMS + count))
        return tir_infer_refuse(q,
                                "the first pixel has an i64 for each dimension of %s but the "
                                "last, and the distance is of i64",
                                tir_infer_text(q, of));
    if (!tir_type_is_tile(t) || t->rank != 1 || t->elem != TIR_I64)
        return tir_infer_refuse(q, "the indices of pixels are a tile of i64 of rank 1");
    return tir_infer_axis(q, count, &axis) ? t : NULL;
}

static const struct tir_type *stated_remote(struct tir_query *q)
{
    struct tir_type t = *tir_infer_operand(q, 0);
    if (t.space != TIR_SPACE_SHARED || tir_infer_operand(q, 1) != tir_infer_scalar(q, TIR_I32))
        return tir_infer_refuse(q, "a shared buffer and the i32 number of a CTA are needed");
    t.space = TIR_SPACE_CLUSTER;
    return tir_type_get(q->m->types, &t);
}

static const struct tir_type *stated_ring(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    int64_t stages = tir_attr_int(inst, TIR_ATTR_stages, 0);
    for (uint32_t i = 0; i < inst->result_count; i++) {
        const struct tir_type *t = inst->results[i]->type;
        if (t->space != TIR_SPACE_SHARED || !t->rank || t->shape[0] != stages)
            return tir_infer_refuse(q, "%s does not have %lld slots", tir_infer_text(q, t),
                                    (long long)stages);
    }
    return q->stated;
}

static const struct tir_type *stated_same(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    bool fits = inst->result_count == inst->operand_count;
    for (uint32_t i = 0; fits && i < inst->result_count; i++)
        fits = inst->results[i]->type == inst->operands[i]->type;
    return fits ? q->stated : tir_infer_refuse(q, "the values after it are not those before it");
}

static const struct tir_type *stated_vote(struct tir_query *q)
{
    bool ballot = tir_attr_word(q->inst, TIR_ATTR_kind, TIR_WORD_NONE) == TIR_WORD_kind_ballot;
    if (tir_infer_operand(q, 0) != tir_infer_scalar(q, TIR_BOOL))
        return tir_infer_refuse(q, "the vote must be a bool");
    return tir_infer_scalar(q, ballot ? TIR_U32 : TIR_BOOL);
}

// Blocks of 128 or 64 rows, columns of 32 bits: what is narrower lies side by side in a column.
static const struct tir_type *stated_tmem(struct tir_query *q)
{
    const struct tir_type *t = q->stated;
    const int64_t column = tir_attr_int(q->inst, TIR_ATTR_column, 0);
    const bool is_pair = tir_attr_find(q->inst, TIR_ATTR_cta_group);
    if (tir_infer_operand(q, 0) != tir_infer_scalar(q, TIR_I32))
        return tir_infer_refuse(q, "the base must be an i32");
    if (tir_tmem_is_scales(t) && t->rank >= 2 && !tir_tmem_columns(t, false))
        return tir_infer_refuse(q, "%s are no scales of 128 rows, 4 at a time, in %d columns",
                                tir_infer_text(q, t), TIR_TMEM_COLUMNS);
    if (t->space != TIR_SPACE_TMEM || t->rank < 2 || t->shape[t->rank - 2] < 1 ||
        !tir_tmem_block(t->shape[t->rank - 2]))
        return tir_infer_refuse(q, "%s does not have rows in blocks of 128 or 64 in tensor memory",
                                tir_infer_text(q, t));
    if (tir_attr_find(q->inst, TIR_ATTR_upper) &&
        (is_pair || t->shape[t->rank - 2] != TIR_TMEM_LANES / 2 || tir_tmem_is_scales(t)))
        return tir_infer_refuse(q, "%s does not have 64 rows, which leave half of the lanes free",
                                tir_infer_text(q, t));
    if (column < 0 || !tir_tmem_columns(t, is_pair) ||
        column + tir_tmem_columns(t, is_pair) > TIR_TMEM_COLUMNS)
        return tir_infer_refuse(q, "%s does not fit the %d columns of tensor memory",
                                tir_infer_text(q, t), TIR_TMEM_COLUMNS);
    return t;
}

// The bytes of an allocated buffer under another type, which its author may read and write.
static const struct tir_type *stated_alias(struct tir_query *q)
{
    const struct tir_type *t = q->stated, *of = tir_infer_operand(q, 0);
    const struct tir_inst *alloc = q->inst->operands[0]->def;
    const int64_t offset = tir_attr_int(q->inst, TIR_ATTR_offset, 0);
    if (!alloc || alloc->op != TIR_OP_ALLOC || of->elem == TIR_MBARRIER ||
        t->elem == TIR_MBARRIER || t->space != of->space || !t->rank)
        return tir_infer_refuse(q, "%s cannot be %s", tir_infer_text(q, of), tir_infer_text(q, t));
    const uint32_t alignment = t->layout ? tir_layout_alignment(t->layout) : 16;
    if (offset < 0 || offset % alignment)
        return tir_infer_refuse(q, "%s begins at a multiple of %u bytes, not at %lld",
                                tir_infer_text(q, t), alignment, (long long)offset);
    // The copies of threads follow each other.
    const bool whole = !offset && tir_buffer_bytes(t) == tir_buffer_bytes(of);
    if (offset > tir_buffer_bytes(of) - tir_buffer_bytes(t) ||
        (t->space == TIR_SPACE_LOCAL && !whole))
        return tir_infer_refuse(q, "%s from byte %lld on does not fit into %s",
                                tir_infer_text(q, t), (long long)offset, tir_infer_text(q, of));
    return t;
}

const struct tir_type *tir_infer_stated(struct tir_query *q)
{
    const struct tir_type *t = q->stated;
    uint32_t axis;
    if (q->inst->op == TIR_OP_VOTE)
        return stated_vote(q);
    if (q->inst->result_count == 0 && tir_ops[q->inst->op].result_count == TIR_MANY && !t)
        return tir_infer_nothing(q);
    if (q->inst->op == TIR_OP_REMOTE)
        return stated_remote(q);
    if (!t)
        return tir_infer_refuse(q, "the result type must be stated");
    switch (q->inst->op) {
    case TIR_OP_CAST:
    case TIR_OP_BITCAST:
        return stated_cast(q);
    case TIR_OP_EXPAND:
        return stated_expand(q);
    case TIR_OP_BROADCAST:
        return stated_broadcast(q);
    case TIR_OP_RESHAPE:
        return stated_reshape(q);
    case TIR_OP_IOTA:
        if (!tir_type_is_tile(t) || !tir_elem_is_int(t->elem))
            return tir_infer_refuse(q, "indices must be a tile of integers");
        return tir_infer_axis(q, t->rank, &axis) ? t : NULL;
    case TIR_OP_PIXEL_INDEX:
        return stated_pixels(q);
    case TIR_OP_CONVERT_LAYOUT:
        if (!t->layout || !tir_infer_same_but_layout(tir_infer_operand(q, 0), t))
            return tir_infer_refuse(q, "%s cannot become %s",
                                    tir_infer_text(q, tir_infer_operand(q, 0)),
                                    tir_infer_text(q, t));
        return fits_scratch(q, t) ? t : NULL;
    case TIR_OP_EXTRACT:
        return stated_extract(q);
    case TIR_OP_RING:
        return stated_ring(q);
    case TIR_OP_AWAIT:
    case TIR_OP_WGMMA_FENCE:
        return stated_same(q);
    case TIR_OP_TMEM_BUFFER:
        return stated_tmem(q);
    case TIR_OP_ALIAS:
        return stated_alias(q);
    case TIR_OP_ALLOC:
        if (t->space != TIR_SPACE_SHARED && t->space != TIR_SPACE_LOCAL)
            return tir_infer_refuse(q, "a buffer must be shared or local");
        return t;
    default:
        return stated_machine(q);
    }
}
