// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Result types: one function per rule of ops.def, in a table.
//
// A rule looks at the operands, and at the stated type where the operands leave something open: the
// shape of a broadcast, or the layout of a load. A constant tile fits any layout, so a result whose
// operands are all constant takes the stated layout too.

#include "ir/infer.h"

typedef const struct tir_type *rule_fn(struct tir_query *q);

const struct tir_type *tir_infer_refuse(struct tir_query *q, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *q->why = tir_str_vformat(q->m->arena, format, args);
    va_end(args);
    return NULL;
}

// t, with the stated layout if that is all the two differ in.
static const struct tir_type *with_stated_layout(struct tir_query *q, const struct tir_type *t)
{
    return q->stated && tir_infer_same_but_layout(q->stated, t) ? q->stated : t;
}

// Tile t as the result of an operation on operand i, whose layout follows from the operand's.
static const struct tir_type *with_operand_layout(struct tir_query *q, uint32_t i,
                                                  const struct tir_type *t,
                                                  const struct tir_layout *layout)
{
    if (q->inst->operands[i]->kind == TIR_VALUE_CONST)
        return with_stated_layout(q, t);
    return tir_type_with_layout(q->m->types, t, layout);
}

bool tir_infer_axis(struct tir_query *q, uint32_t rank, uint32_t *axis)
{
    int64_t at = tir_attr_int(q->inst, TIR_ATTR_axis, -1);
    if (at < 0 || at >= rank) {
        tir_infer_refuse(q, "axis %lld does not exist in rank %u", (long long)at, rank);
        return false;
    }
    *axis = (uint32_t)at;
    return true;
}

// Slices.

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

// The slice the instruction names, as a tile or scalar without a layout.
static const struct tir_type *slice_of(struct tir_query *q)
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
    return tir_type_get(q->m->types, &t);
}

static bool mask_fits(struct tir_query *q, uint32_t operand, const struct tir_type *slice)
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

// Whether bar, unless it is absent, is a buffer of mbarriers.
static bool is_barrier(struct tir_query *q, const struct tir_value *bar)
{
    if (!bar || (bar->type->elem == TIR_MBARRIER && bar->type->space == TIR_SPACE_SHARED))
        return true;
    if (bar->type->elem == TIR_MBARRIER && bar->type->space == TIR_SPACE_CLUSTER) {
        tir_infer_refuse(q, "an mbarrier of another CTA is for tensor copies to shared memory; "
                            "`arrive` takes it by `cta = i`, `commit` by `ctas = mask`");
        return false;
    }
    tir_infer_refuse(q, "%s is not an mbarrier", tir_infer_text(q, bar->type));
    return false;
}

static bool is_phase(struct tir_query *q)
{
    if (tir_infer_operand(q, TIR_WAIT_PARITY) != tir_infer_scalar(q, TIR_I32)) {
        tir_infer_refuse(q, "the parity must be an i32");
        return false;
    }
    return is_barrier(q, q->inst->operands[TIR_BAR]);
}

// Whether the first operand is the response to a try_cancel: 16 bytes, or such parts and a place.
static bool is_response(struct tir_query *q)
{
    const struct tir_type *t = tir_infer_operand(q, TIR_CANCEL_RESPONSE);
    if (t->space == TIR_SPACE_SHARED && t->elem == TIR_U32 && t->rank &&
        t->shape[t->rank - 1] == 4 && (t->rank == 1 || q->inst->operands[TIR_CANCEL_AT]))
        return true;
    tir_infer_refuse(q, "a response is a shared u32[4], not %s", tir_infer_text(q, t));
    return false;
}

// Rules.

static const struct tir_type *rule_ring(struct tir_query *q)
{
    const struct tir_value *ring = q->inst->operands[0];
    if (!ring->def || ring->def->op != TIR_OP_RING || ring->index != 0)
        return tir_infer_refuse(q, "%s is not the first buffer of a ring",
                                tir_infer_text(q, ring->type));
    return q->inst->result_count && q->stated ? q->stated : tir_infer_nothing(q);
}

// Operands of a product in tensor memory, and the sums that they give.
static const struct tir_type *rule_gemm_tmem(struct tir_query *q)
{
    const struct tir_type *a = tir_infer_operand(q, TIR_DOT_A);
    const struct tir_type *b = tir_infer_operand(q, TIR_DOT_B);
    const struct tir_type *acc = tir_infer_operand(q, TIR_DOT_ACC);
    const struct tir_value *accumulate = q->inst->operands[TIR_GEMM_ACCUMULATE];
    if (a->rank != 2 || (a->space != TIR_SPACE_SHARED && a->space != TIR_SPACE_TMEM))
        return tir_infer_refuse(q, "%s is no matrix in shared or tensor memory",
                                tir_infer_text(q, a));
    if (b->rank != 2 || b->space != TIR_SPACE_SHARED)
        return tir_infer_refuse(q, "%s is no matrix in shared memory", tir_infer_text(q, b));
    if (acc->rank != 2 || acc->space != TIR_SPACE_TMEM)
        return tir_infer_refuse(q, "%s is no matrix in tensor memory", tir_infer_text(q, acc));
    const bool has_scales = q->inst->operands[TIR_GEMM_SA] || q->inst->operands[TIR_GEMM_SB];
    const enum tir_elem sums = has_scales || (tir_elem_is_fp8(a->elem) && tir_elem_is_fp8(b->elem))
                                   ? TIR_F32
                                   : tir_dot_elem(a->elem, b->elem, acc->elem);
    if (has_scales && !tir_infer_scales_fit(q, a, b))
        return NULL;
    if (a->shape[1] != b->shape[0] || sums == TIR_NONE)
        return tir_infer_refuse(q, "%s and %s do not multiply", tir_infer_text(q, a),
                                tir_infer_text(q, b));
    const int64_t ctas = tir_tmem_is_pair(q->inst->operands[TIR_DOT_ACC]) ? 2 : 1;
    if (acc->elem != sums || acc->shape[0] != a->shape[0] || acc->shape[1] != ctas * b->shape[1])
        return tir_infer_refuse(
            q, "the sums are %s where %s[%lld, %lld] is needed%s", tir_infer_text(q, acc),
            tir_elems[sums].name, (long long)a->shape[0], (long long)(ctas * b->shape[1]),
            ctas > 1 ? ": each CTA of the pair has half of the columns of B" : "");
    if (accumulate && accumulate->type != tir_infer_scalar(q, TIR_BOOL))
        return tir_infer_refuse(q, "accumulate must be a bool");
    return tir_infer_nothing(q);
}

static bool is_from_tensor(struct tir_query *q)
{
    if (tir_ref_base(q->inst)->type->space == TIR_SPACE_GLOBAL)
        return true;
    tir_infer_refuse(q, "what is copied to shared memory of the CTA is a part of a tensor; "
                        "`s[...] = load(t[...])` stores from one buffer to another");
    return false;
}

static bool is_remote_copy(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    if (tir_ref_base(inst)->type->space != TIR_SPACE_SHARED) {
        tir_infer_refuse(q, "what is copied to another CTA is a shared buffer; parts of tensors "
                            "come to several CTAs by `ctas = mask`");
        return false;
    }
    const bool bulk = tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_NONE) == TIR_WORD_engine_bulk;
    if (!bulk || !inst->operands[TIR_COPY_MBAR] || inst->operands[TIR_COPY_CTAS] ||
        inst->operands[TIR_COPY_PRED] || inst->operands[TIR_COPY_MASK]) {
        tir_infer_refuse(q, "a copy to another CTA has `mbar = ..., engine = bulk` and no mask");
        return false;
    }
    return true;
}

// What a copy completes its bytes at.
static bool is_copy_barrier(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    const bool is_load = inst->op == TIR_OP_TMA_LOAD;
    const struct tir_value *bar = inst->operands[is_load ? TIR_TMA_BAR : TIR_COPY_MBAR];
    if (!bar || bar->type->elem != TIR_MBARRIER || bar->type->space != TIR_SPACE_CLUSTER)
        return is_barrier(q, bar);
    if (is_load || (tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_NONE) == TIR_WORD_engine_tma &&
                    inst->operands[TIR_COPY_TO]->type->space == TIR_SPACE_SHARED))
        return true;
    tir_infer_refuse(q, "a copy that completes at an mbarrier of the other CTA of its pair is a "
                        "tensor copy to shared memory: `engine = tma`");
    return false;
}

static const struct tir_type *rule_push(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    const struct tir_type *slice = slice_of(q), *value = tir_infer_operand(q, TIR_STORE_VALUE);
    if (!slice)
        return NULL;
    if (tir_ref_base(inst)->type->space != TIR_SPACE_CLUSTER || !inst->operands[TIR_PUSH_MBAR])
        return tir_infer_refuse(
            q,
            "a store with `mbar` is one to another CTA, `store(remote(s, cta)[i], x, mbar = b)`");
    const uint32_t bits = tir_elems[slice->elem].bits;
    if (!tir_type_is_scalar(slice) || (bits != 32 && bits != 64))
        return tir_infer_refuse(q,
                                "a store that an mbarrier hears of is of one element of 4 or 8 "
                                "bytes, not of %s",
                                tir_infer_text(q, slice));
    if (!tir_infer_same_but_layout(value, slice))
        return tir_infer_refuse(q, "%s stored to a slice %s", tir_infer_text(q, value),
                                tir_infer_text(q, slice));
    return is_barrier(q, inst->operands[TIR_PUSH_MBAR]) ? tir_infer_nothing(q) : NULL;
}

// A tensor copy makes elements of 4 or 6 bits of the bytes in which they are packed.
static bool copy_fits(const struct tir_inst *copy, const struct tir_type *from,
                      const struct tir_type *to)
{
    struct tir_type t = *to;
    const uint32_t bits = tir_copy_packed(copy), last = t.rank - 1;
    if (bits && t.rank && t.shape[last] * bits % 8 == 0 &&
        tir_attr_word(copy, TIR_ATTR_engine, TIR_WORD_NONE) == TIR_WORD_engine_tma) {
        t.elem = from->elem;
        t.shape[last] = t.shape[last] * bits / 8;
    }
    return t.elem == from->elem && tir_type_same_shape(&t, from);
}

static const struct tir_type *rule_none(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    if (inst->op == TIR_OP_STORE) {
        const struct tir_type *slice = slice_of(q);
        if (!slice || !mask_fits(q, TIR_STORE_MASK, slice))
            return NULL;
        if (!tir_infer_same_but_layout(tir_infer_operand(q, TIR_STORE_VALUE), slice))
            return tir_infer_refuse(q, "%s stored to a slice %s",
                                    tir_infer_text(q, tir_infer_operand(q, TIR_STORE_VALUE)),
                                    tir_infer_text(q, slice));
    } else if (inst->op == TIR_OP_PUSH) {
        return rule_push(q);
    } else if (inst->op == TIR_OP_COPY_ASYNC) {
        const struct tir_type *slice = slice_of(q), *to = tir_infer_operand(q, 0);
        if (!slice || !mask_fits(q, TIR_COPY_MASK, slice))
            return NULL;
        const bool is_remote = to->space == TIR_SPACE_CLUSTER;
        if ((to->space != TIR_SPACE_SHARED && !is_remote) || !copy_fits(inst, slice, to))
            return tir_infer_refuse(q, "%s copied to %s", tir_infer_text(q, slice),
                                    tir_infer_text(q, to));
        if (!(is_remote ? is_remote_copy(q) : is_from_tensor(q)))
            return NULL;
        if (inst->operands[TIR_COPY_MASK] &&
            (inst->operands[TIR_COPY_MBAR] || tir_attr_find(inst, TIR_ATTR_engine)))
            return tir_infer_refuse(q, "a copy that an engine starts as a whole has no mask");
        return is_copy_barrier(q) ? tir_infer_nothing(q) : NULL;
    } else if (inst->op == TIR_OP_STORE_ASYNC) {
        const struct tir_type *slice = slice_of(q), *from = tir_infer_operand(q, 0);
        if (!slice)
            return NULL;
        if (from->space != TIR_SPACE_SHARED || from->elem != slice->elem ||
            !tir_type_same_shape(from, slice))
            return tir_infer_refuse(q, "%s copied to %s", tir_infer_text(q, from),
                                    tir_infer_text(q, slice));
    } else if (inst->op == TIR_OP_PREFETCH || inst->op == TIR_OP_TMA_PREFETCH ||
               inst->op == TIR_OP_TMA_LOAD || inst->op == TIR_OP_TMA_STORE) {
        const struct tir_type *slice = slice_of(q);
        if (slice && tir_ref_base(inst)->type->space != TIR_SPACE_GLOBAL)
            return tir_infer_refuse(q, "%s is not a part of a tensor", tir_infer_text(q, slice));
        if (inst->op == TIR_OP_TMA_LOAD && !is_copy_barrier(q))
            return NULL;
        return slice ? tir_infer_nothing(q) : NULL;
    } else if (inst->op == TIR_OP_MBARRIER_INIT || inst->op == TIR_OP_ARRIVE ||
               inst->op == TIR_OP_WAIT) {
        const bool fits =
            inst->op == TIR_OP_WAIT ? is_phase(q) : is_barrier(q, inst->operands[TIR_BAR]);
        return fits ? tir_infer_nothing(q) : NULL;
    } else if (inst->op == TIR_OP_TRY_CANCEL) {
        const bool fits = is_response(q) && is_barrier(q, inst->operands[TIR_CANCEL_BAR]);
        return fits ? tir_infer_nothing(q) : NULL;
    } else if (inst->op == TIR_OP_COMMIT) {
        if (inst->operands[TIR_COMMIT_CTAS] && tir_commits_copies(inst))
            return tir_infer_refuse(q, "copies by threads arrive in their own CTA: `ctas` is for "
                                       "products in tensor memory");
        return is_barrier(q, inst->operands[TIR_BAR]) ? tir_infer_nothing(q) : NULL;
    } else if (inst->op == TIR_OP_GEMM_TMEM) {
        return rule_gemm_tmem(q);
    } else if (inst->op == TIR_OP_TMEM_COPY) {
        return tir_infer_tmem_copy(q);
    } else if (inst->op == TIR_OP_BULK_LOAD || inst->op == TIR_OP_BULK_SEND ||
               inst->op == TIR_OP_ST_ASYNC) {
        return is_barrier(q, inst->operands[TIR_TMA_BAR]) ? tir_infer_nothing(q) : NULL;
    } else if (inst->op == TIR_OP_PUT) {
        return rule_ring(q);
    } else if (inst->op == TIR_OP_PRINT) {
        for (uint32_t i = 0; i < inst->operand_count; i++)
            if (!tir_type_is_scalar(inst->operands[i]->type))
                return tir_infer_refuse(q, "a line is made of scalars, not of %s",
                                        tir_infer_text(q, inst->operands[i]->type));
    } else if ((inst->op == TIR_OP_ASSUME || inst->op == TIR_OP_ASSERT) &&
               tir_infer_operand(q, 0) != tir_infer_scalar(q, TIR_BOOL)) {
        return tir_infer_refuse(q, "the condition must be a bool");
    }
    return tir_infer_nothing(q);
}

static const struct tir_type *rule_same(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    const struct tir_value *lead = inst->operands[0];
    uint32_t count = inst->operand_count;
    for (uint32_t i = 1; i < count; i++)
        if (lead->kind == TIR_VALUE_CONST)
            lead = inst->operands[i];
    for (uint32_t i = 0; i < count; i++)
        if (!tir_value_fits(inst->operands[i], lead->type))
            return tir_infer_refuse(q, "operands are %s and %s",
                                    tir_infer_text(q, tir_infer_operand(q, 0)),
                                    tir_infer_text(q, tir_infer_operand(q, i ? i : 1)));
    return lead->kind == TIR_VALUE_CONST ? with_stated_layout(q, lead->type) : lead->type;
}

static const struct tir_type *rule_first(struct tir_query *q)
{
    if (!tir_type_is_scalar(tir_infer_operand(q, 0)) ||
        tir_infer_operand(q, 1) != tir_infer_scalar(q, TIR_I32))
        return tir_infer_refuse(q, "the value must be a scalar and the lane an i32");
    return tir_infer_operand(q, 0);
}

static const struct tir_type *rule_compare(struct tir_query *q)
{
    struct tir_query of_operands = *q;
    const struct tir_type *stated = q->stated;
    if (stated)
        of_operands.stated = tir_type_with_elem(q->m->types, stated, tir_infer_operand(q, 0)->elem);
    const struct tir_type *t = rule_same(&of_operands);
    return t ? tir_type_with_elem(q->m->types, t, TIR_BOOL) : NULL;
}

static const struct tir_type *rule_select(struct tir_query *q)
{
    struct tir_value *const *v = q->inst->operands;
    const struct tir_value *lead = v[1]->kind == TIR_VALUE_CONST ? v[2] : v[1];
    const struct tir_type *t = lead->type;
    if (lead->kind == TIR_VALUE_CONST) {
        t = v[0]->kind == TIR_VALUE_CONST
                ? with_stated_layout(q, t)
                : tir_type_with_layout(q->m->types, t, v[0]->type->layout);
    }
    if (!tir_value_fits(v[1], t) || !tir_value_fits(v[2], t))
        return tir_infer_refuse(q, "the choices are %s and %s", tir_infer_text(q, v[1]->type),
                                tir_infer_text(q, v[2]->type));
    if (!tir_value_fits(v[0], tir_type_with_elem(q->m->types, t, TIR_BOOL)))
        return tir_infer_refuse(q, "the condition is %s for %s", tir_infer_text(q, v[0]->type),
                                tir_infer_text(q, t));
    return t;
}

static const struct tir_type *rule_permute(struct tir_query *q)
{
    const struct tir_type *x = tir_infer_operand(q, 0);
    const struct tir_attr *order = tir_attr_find(q->inst, TIR_ATTR_permutation);
    if (!order || order->list_count != x->rank)
        return tir_infer_refuse(q, "the permutation does not fit %s", tir_infer_text(q, x));
    struct tir_type t = {.elem = x->elem, .space = x->space, .rank = x->rank};
    uint32_t seen = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
        int64_t from = order->list[d];
        if (from < 0 || from >= x->rank || (seen >> from & 1))
            return tir_infer_refuse(q, "not a permutation of %u dimensions", x->rank);
        seen |= 1u << from;
        t.shape[d] = x->shape[from];
    }
    const struct tir_layout *layout =
        x->layout ? tir_layout_permute(q->m->types, x->layout, order->list) : NULL;
    return with_operand_layout(q, 0, tir_type_get(q->m->types, &t), layout);
}

// The tiles that are combined together have one shape and one layout.
static bool combines_together(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    const struct tir_type *x = tir_infer_operand(q, TIR_REDUCE_X);
    uint32_t count = tir_combined_count(inst);
    if (count != inst->result_count || count > TIR_MAX_COMBINED) {
        tir_infer_refuse(q, "%u results of %u tiles; at most %d tiles are combined together",
                         inst->result_count, count, TIR_MAX_COMBINED);
        return false;
    }
    for (uint32_t i = 1; i < count; i++) {
        const struct tir_value *v = inst->operands[tir_combined_at(inst, i)];
        const struct tir_type *t = v->type;
        if (!tir_type_is_tile(t) || !tir_type_same_shape(t, x) ||
            (v->kind != TIR_VALUE_CONST && t->layout != x->layout)) {
            tir_infer_refuse(q, "%s and %s are not combined together", tir_infer_text(q, x),
                             tir_infer_text(q, t));
            return false;
        }
    }
    if (count == 1 || tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE) == TIR_WORD_kind_user)
        return true;
    tir_infer_refuse(q, "several tiles are combined by a function");
    return false;
}

// Of reductions and scans.
static const struct tir_type *rule_combine(struct tir_query *q)
{
    uint32_t at = tir_combined_at(q->inst, q->result), axis;
    const struct tir_type *x = tir_infer_operand(q, at);
    if (!tir_infer_axis(q, tir_type_is_tile(x) ? x->rank : 0, &axis) || !combines_together(q))
        return NULL;
    if (q->inst->op == TIR_OP_SCAN)
        return with_operand_layout(q, at, tir_type_with_layout(q->m->types, x, NULL), x->layout);
    struct tir_type t = *x;
    t.layout = NULL;
    t.shape[axis] = 1;
    const struct tir_layout *layout =
        x->layout ? tir_layout_slice(q->m->types, x->layout, axis) : NULL;
    return with_operand_layout(q, at, tir_type_get(q->m->types, &t), layout);
}

enum tir_elem tir_dot_elem(enum tir_elem a, enum tir_elem b, enum tir_elem acc)
{
    bool fp8 = (a == TIR_E4M3 || a == TIR_E5M2) && (b == TIR_E4M3 || b == TIR_E5M2);
    bool int8 = (a == TIR_I8 || a == TIR_U8) && (b == TIR_I8 || b == TIR_U8);
    if (int8)
        return TIR_I32;
    if (!fp8 && (a != b || !tir_elem_is_float(a)))
        return TIR_NONE;
    if (acc == TIR_F16 && (fp8 || a == TIR_F16))
        return TIR_F16;
    return a == TIR_F64 ? TIR_F64 : TIR_F32;
}

static const struct tir_type *rule_dot(struct tir_query *q)
{
    const struct tir_type *a = tir_infer_operand(q, TIR_DOT_A),
                          *b = tir_infer_operand(q, TIR_DOT_B);
    const struct tir_type *acc = tir_infer_operand(q, TIR_DOT_ACC);
    const struct tir_type *both[] = {a, b};
    if (tir_is_scaled_dot(q->inst)) {
        const struct tir_type *sums = tir_infer_scaled_dot(q);
        return sums ? with_operand_layout(q, TIR_DOT_ACC, sums, acc->layout) : NULL;
    }
    for (uint32_t i = 0; i < 2; i++)
        if (both[i]->rank != 2 ||
            (both[i]->space != TIR_SPACE_VALUE && both[i]->space != TIR_SPACE_SHARED))
            return tir_infer_refuse(q, "%s is not a tile of rank 2", tir_infer_text(q, both[i]));
    if (a->shape[1] != b->shape[0])
        return tir_infer_refuse(q, "%s and %s do not multiply", tir_infer_text(q, a),
                                tir_infer_text(q, b));
    const struct tir_type *t = tir_type_tile(q->m->types, tir_dot_elem(a->elem, b->elem, acc->elem),
                                             2, (int64_t[]){a->shape[0], b->shape[1]});
    if (t->elem == TIR_NONE)
        return tir_infer_refuse(q, "%s and %s do not multiply", tir_infer_text(q, a),
                                tir_infer_text(q, b));
    if (!tir_infer_same_but_layout(acc, t))
        return tir_infer_refuse(q, "the sum is %s where %s is needed", tir_infer_text(q, acc),
                                tir_infer_text(q, t));
    return with_operand_layout(q, TIR_DOT_ACC, t, acc->layout);
}

static const struct tir_type *rule_load(struct tir_query *q)
{
    const struct tir_type *slice = slice_of(q);
    if (!slice || !mask_fits(q, TIR_LOAD_MASK, slice))
        return NULL;
    const struct tir_value *pad = q->inst->operands[TIR_LOAD_PAD];
    if (pad && pad->type != tir_infer_scalar(q, slice->elem))
        return tir_infer_refuse(q, "the pad is %s for %s", tir_infer_text(q, pad->type),
                                tir_infer_text(q, slice));
    return with_stated_layout(q, slice);
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

static const struct tir_type *rule_atomic(struct tir_query *q)
{
    const struct tir_type *slice = slice_of(q), *value = tir_infer_operand(q, TIR_STORE_VALUE);
    if (!slice || !mask_fits(q, TIR_STORE_MASK, slice) || !combines(q, slice->elem))
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
    return with_operand_layout(q, TIR_STORE_VALUE, slice, value->layout);
}

static const struct tir_type *rule_atom(struct tir_query *q)
{
    const struct tir_type *value = tir_infer_operand(q, 2);
    if (!tir_type_is_scalar(value) || value->elem != tir_infer_operand(q, 0)->elem)
        return tir_infer_refuse(q, "%s combined with %s", tir_infer_text(q, value),
                                tir_infer_text(q, tir_infer_operand(q, 0)));
    return combines(q, value->elem) && expects(q, 4, value) ? value : NULL;
}

static const struct tir_type *rule_view(struct tir_query *q)
{
    const struct tir_type *slice = slice_of(q);
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
    return with_stated_layout(q, tir_type_get(q->m->types, &t));
}

static const struct tir_type *rule_index(struct tir_query *q)
{
    const struct tir_type *of = tir_infer_operand(q, 0);
    uint32_t axis;
    if (of->space != TIR_SPACE_GLOBAL)
        return tir_infer_refuse(q, "%s is not a tensor", tir_infer_text(q, of));
    return tir_infer_axis(q, of->rank, &axis) ? tir_infer_scalar(q, TIR_I64) : NULL;
}

static const struct tir_type *rule_i32(struct tir_query *q)
{
    int64_t axis = tir_attr_int(q->inst, TIR_ATTR_axis, 0);
    if (axis < 0 || axis > 2)
        return tir_infer_refuse(q, "a grid has axes 0 to 2");
    if (q->inst->op == TIR_OP_ALIGNMENT && tir_infer_operand(q, 0)->space != TIR_SPACE_GLOBAL)
        return tir_infer_refuse(q, "%s is not a tensor",
                                tir_infer_text(q, tir_infer_operand(q, 0)));
    if (q->inst->op == TIR_OP_FIRST_CTAID && !is_response(q))
        return NULL;
    return tir_infer_scalar(q, TIR_I32);
}

// verify.c compares every carried and yielded value; here only the first result is asked for.
static const struct tir_type *rule_carried(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    uint32_t fixed = tir_carried_at(inst);
    if (inst->operand_count < fixed)
        return tir_infer_refuse(q, "%u operands for %u extents", inst->operand_count, fixed);
    for (uint32_t i = 0; i < fixed; i++)
        if (!tir_type_is_scalar(tir_infer_operand(q, i)) ||
            tir_infer_operand(q, i) != tir_infer_operand(q, 0) ||
            !tir_elem_is_int(tir_infer_operand(q, i)->elem))
            return tir_infer_refuse(q, "the bounds must be integers of one type");
    if (inst->operand_count == fixed)
        return tir_infer_nothing(q);
    const struct tir_value *init = inst->operands[fixed];
    return q->stated && tir_value_fits(init, q->stated) ? q->stated : init->type;
}

static const struct tir_type *rule_yielded(struct tir_query *q)
{
    if (tir_infer_operand(q, 0) != tir_infer_scalar(q, TIR_BOOL))
        return tir_infer_refuse(q, "the condition must be a bool");
    return q->stated ? q->stated : tir_infer_nothing(q);
}

static const struct tir_type *rule_bool(struct tir_query *q)
{
    if (q->inst->op == TIR_OP_TEST_WAIT && !is_phase(q))
        return NULL;
    if (q->inst->op == TIR_OP_IS_CANCELED && !is_response(q))
        return NULL;
    return tir_infer_scalar(q, TIR_BOOL);
}

// Before the rule: what every row asks of its operands.

static bool elem_in_class(enum tir_elem e, enum tir_elem_class elems)
{
    bool is_int = tir_elem_is_int(e), is_float = tir_elem_is_float(e);
    switch (elems) {
    case TIR_CLASS_ANY:
        return true;
    case TIR_CLASS_NUM:
        return is_int || is_float;
    case TIR_CLASS_FLOAT:
        return is_float;
    case TIR_CLASS_INT:
        return is_int;
    case TIR_CLASS_BITS:
        return is_int || e == TIR_BOOL;
    }
    tir_unreachable();
}

static bool operand_fits(struct tir_query *q, const struct tir_operand_info *info,
                         const struct tir_value *v)
{
    enum tir_op op = q->inst->op;
    bool may_be_buffer = op == TIR_OP_DOT || op == TIR_OP_COPY_ASYNC || op == TIR_OP_PERMUTE ||
                         op == TIR_OP_GEMM_ASYNC || op == TIR_OP_GEMM_TMEM ||
                         op == TIR_OP_TMEM_COPY || op == TIR_OP_STORE_ASYNC;
    bool is_mbar = info->role == TIR_ROLE_BARRIER;
    if (v && info->role == TIR_ROLE_SCRATCH)
        return v->type->space == TIR_SPACE_SHARED ||
               (tir_infer_refuse(q, "scratch must be shared"), false);
    if (!v) {
        if (info->kind != TIR_OPERAND_OPT)
            tir_infer_refuse(q, "operand %s is missing", info->name);
        return info->kind == TIR_OPERAND_OPT;
    }
    if (v->type->elem == TIR_MBARRIER && tir_has_trait(q->inst, TIR_READS) && !is_mbar) {
        tir_infer_refuse(q, "only operations on barriers may touch %s", tir_infer_text(q, v->type));
        return false;
    }
    if (v->type->elem == TIR_NONE ||
        (info->kind == TIR_OPERAND_BUF && !tir_type_is_buffer(v->type)) ||
        (info->kind != TIR_OPERAND_BUF && !may_be_buffer && !is_mbar &&
         tir_type_is_buffer(v->type))) {
        tir_infer_refuse(q, "operand %s cannot be %s", info->name, tir_infer_text(q, v->type));
        return false;
    }
    if (info->kind == TIR_OPERAND_IN && !elem_in_class(v->type->elem, tir_ops[op].elems)) {
        tir_infer_refuse(q, "operand %s cannot be %s", info->name, tir_infer_text(q, v->type));
        return false;
    }
    return true;
}

static bool operands_fit(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    const struct tir_op_info *op = &tir_ops[inst->op];
    uint32_t fixed = op->fixed_count, at = 0;
    if (inst->operand_count < fixed ||
        (inst->operand_count > fixed && !op->has_ref && !op->has_list)) {
        tir_infer_refuse(q, "%u operands", inst->operand_count);
        return false;
    }
    for (uint32_t i = 0; i < op->operand_count; i++)
        if (op->operands[i].kind != TIR_OPERAND_REF && op->operands[i].kind != TIR_OPERAND_LIST &&
            !operand_fits(q, &op->operands[i], inst->operands[at++]))
            return false;
    for (uint32_t i = fixed; i < inst->operand_count; i++)
        if (!inst->operands[i]) {
            tir_infer_refuse(q, "operand %u is missing", i);
            return false;
        }
    return true;
}

const struct tir_type *tir_infer(struct tir_module *m, const struct tir_inst *inst,
                                 const struct tir_type *stated, tir_str *why)
{
    return tir_infer_result(m, inst, 0, stated, why);
}

const struct tir_type *tir_infer_result(struct tir_module *m, const struct tir_inst *inst,
                                        uint32_t result, const struct tir_type *stated,
                                        tir_str *why)
{
    static rule_fn *const rules[] = {
        [TIR_RULE_NONE] = rule_none,       [TIR_RULE_SAME] = rule_same,
        [TIR_RULE_FIRST] = rule_first,     [TIR_RULE_COMPARE] = rule_compare,
        [TIR_RULE_SELECT] = rule_select,   [TIR_RULE_STATED] = tir_infer_stated,
        [TIR_RULE_PERMUTE] = rule_permute, [TIR_RULE_COMBINE] = rule_combine,
        [TIR_RULE_DOT] = rule_dot,         [TIR_RULE_LOAD] = rule_load,
        [TIR_RULE_ATOMIC] = rule_atomic,   [TIR_RULE_ATOM] = rule_atom,
        [TIR_RULE_VIEW] = rule_view,       [TIR_RULE_INDEX] = rule_index,
        [TIR_RULE_I32] = rule_i32,         [TIR_RULE_CARRIED] = rule_carried,
        [TIR_RULE_YIELDED] = rule_yielded, [TIR_RULE_RING] = rule_ring,
        [TIR_RULE_BOOL] = rule_bool,
    };
    struct tir_query q = {m, inst, stated, why, result};
    return operands_fit(&q) ? rules[tir_ops[inst->op].rule](&q) : NULL;
}
