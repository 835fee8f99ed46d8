// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What operations without a result ask of their operands: stores, copies, mbarriers, products in
// tensor memory, rings.

#include "ir/infer.h"

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

bool tir_infer_phase(struct tir_query *q)
{
    if (tir_infer_operand(q, TIR_WAIT_PARITY) != tir_infer_scalar(q, TIR_I32)) {
        tir_infer_refuse(q, "the parity must be an i32");
        return false;
    }
    return is_barrier(q, q->inst->operands[TIR_BAR]);
}

bool tir_infer_response(struct tir_query *q)
{
    const struct tir_type *t = tir_infer_operand(q, TIR_CANCEL_RESPONSE);
    if (t->space == TIR_SPACE_SHARED && t->elem == TIR_U32 && t->rank &&
        t->shape[t->rank - 1] == 4 && (t->rank == 1 || q->inst->operands[TIR_CANCEL_AT]))
        return true;
    tir_infer_refuse(q, "a response is a shared u32[4], not %s", tir_infer_text(q, t));
    return false;
}

const struct tir_type *tir_infer_ring(struct tir_query *q)
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

static bool is_tensor_load(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_TMA_LOAD || inst->op == TIR_OP_TMA_GATHER ||
           inst->op == TIR_OP_TMA_PIXELS;
}

// What a copy completes its bytes at.
static bool is_copy_barrier(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    const bool is_load = is_tensor_load(inst);
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
    const struct tir_type *slice = tir_infer_slice(q),
                          *value = tir_infer_operand(q, TIR_STORE_VALUE);
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

// From low to high, outermost dimension first; a map has 16, 8 or 5 bits for each (CUDA driver API,
// cuTensorMapEncodeIm2col), and so has the copy, without a sign.
static const int64_t pixel_limits[] = {[3] = 1 << 15, [4] = 1 << 7, [5] = 1 << 4};

int64_t tir_most_pixel_offset(uint32_t rank)
{
    return 2 * pixel_limits[rank] - 1;
}

static bool is_corner(const struct tir_attr *corner, uint32_t rank)
{
    const int64_t limit = pixel_limits[rank];
    if (!corner || corner->list_count != rank - 2)
        return false;
    for (uint32_t i = 0; i < corner->list_count; i++)
        if (corner->list[i] < -limit || corner->list[i] >= limit)
            return false;
    return true;
}

static bool is_offset(const struct tir_value *by, bool has_dim, uint32_t rank)
{
    int64_t number;
    if (!by)
        return true;
    return has_dim && (!tir_is_const_int(by, &number) ||
                       (number >= 0 && number <= tir_most_pixel_offset(rank)));
}

static bool strides_fit(uint32_t rank, const struct tir_attr *strides)
{
    for (uint32_t d = 0; strides && d < strides->list_count; d++)
        if (strides->list[d] < 1 || strides->list[d] > TIR_MAX_STRIDE)
            return false;
    return !strides ||
           (strides->list_count == rank && strides->list[0] == 1 && strides->list[rank - 1] == 1);
}

bool tir_corners_fit(uint32_t rank, const struct tir_attr *low, const struct tir_attr *high,
                     const struct tir_attr *strides)
{
    return rank >= 3 && rank <= 2 + TIR_PIXEL_DIMS && is_corner(low, rank) &&
           is_corner(high, rank) && strides_fit(rank, strides);
}

bool tir_pixel_offsets_fit(uint32_t rank, struct tir_value *const *offsets)
{
    for (uint32_t i = 0; i < TIR_PIXEL_DIMS; i++)
        if (!is_offset(offsets[i], i + rank >= 2 + TIR_PIXEL_DIMS, rank))
            return false;
    return true;
}

bool tir_pixels_fit(const struct tir_inst *copy)
{
    const uint32_t rank = tir_ref_base(copy)->type->rank;
    const struct tir_attr *box = tir_attr_find(copy, TIR_ATTR_box);
    const bool is_copy = copy->op == TIR_OP_COPY_ASYNC;
    if (!tir_corners_fit(rank, tir_attr_find(copy, TIR_ATTR_low),
                         tir_attr_find(copy, TIR_ATTR_high), NULL) ||
        box->list[rank - 1] <= 0)
        return false;
    for (uint32_t d = 0; d + 1 < rank; d++)
        if (box->list[d])
            return false;
    return tir_pixel_offsets_fit(rank, copy->operands + (is_copy ? TIR_COPY_DZ : TIR_PIXELS_DZ));
}

static bool pixels_follow(struct tir_query *q)
{
    const struct tir_inst *copy = q->inst;
    const struct tir_type *to = copy->operands[TIR_COPY_TO]->type;
    bool shifts = false;
    for (uint32_t i = 0; i < TIR_PIXEL_DIMS; i++)
        shifts |= copy->operands[TIR_COPY_DZ + i] != NULL;
    if (!tir_copies_pixels(copy)) {
        if (shifts)
            tir_infer_refuse(q, "`dz`, `dy` and `dx` are for pixels, which have `low` and `high`");
        return !shifts;
    }
    if (to->rank != 2 || !tir_pixels_fit(copy) ||
        tir_attr_word(copy, TIR_ATTR_engine, TIR_WORD_NONE) != TIR_WORD_engine_tma) {
        tir_infer_refuse(q, "pixels are copied with `engine = tma` from a tensor of "
                            "rank 3 to 5 to a tile of rank 2, `X[b, y, x, c:+64]`; `low` and "
                            "`high` have a number for each dimension between the first and the "
                            "last, of 16, 8 or 5 bits, and so have `dz`, `dy`, `dx`, which are not "
                            "negative");
        return false;
    }
    return true;
}

// A tensor copy makes elements of 4 or 6 bits of the bytes in which they are packed, and rounds.
static bool copy_fits(const struct tir_inst *copy, const struct tir_type *from,
                      const struct tir_type *to)
{
    struct tir_type t = *to;
    const uint32_t bits = tir_copy_packed(copy), last = t.rank - 1;
    const bool by_tensor =
        tir_attr_word(copy, TIR_ATTR_engine, TIR_WORD_NONE) == TIR_WORD_engine_tma;
    if (by_tensor && tir_rounds(copy, copy->operands[TIR_COPY_TO]))
        t.elem = from->elem;
    if (tir_copies_pixels(copy) && t.rank == 2) { // as many pixels as it has rows
        t.rank = 1;
        t.shape[0] = t.shape[1];
        return t.elem == from->elem && from->rank == 1 && t.shape[0] == from->shape[0];
    }
    if (by_tensor && bits && t.rank && t.shape[last] * bits % 8 == 0) {
        t.elem = from->elem;
        t.shape[last] = t.shape[last] * bits / 8;
    }
    return t.elem == from->elem && tir_type_same_shape(&t, from);
}

// A tensor copy takes rows by their numbers, which the thread that starts it has in registers.
static bool rows_fit(struct tir_query *q)
{
    const struct tir_inst *copy = q->inst;
    const struct tir_value *rows = tir_copied_rows(copy), *base = tir_ref_base(copy);
    if (!rows)
        return true;
    const struct tir_attr *box = tir_attr_find(copy, TIR_ATTR_box);
    const bool by_tensor =
        tir_attr_word(copy, TIR_ATTR_engine, TIR_WORD_NONE) == TIR_WORD_engine_tma;
    if (!by_tensor || base->type->rank != 2 || rows != tir_ref_indices(copy)[0] ||
        rows->type->rank != 1 || box->list[1] <= 0 || rows->type->shape[0] % TIR_ROWS_AT_ONCE)
        tir_infer_refuse(q, "of copies by engines, tensor copies alone take an index tile: of 4 n "
                            "rows, for a tensor of rank 2, `A[I[i:+4], c:+64]`");
    else if (tir_copy_packed(copy))
        tir_infer_refuse(q, "rows by number have no elements of less than 8 bits");
    else if (!rows->def || rows->def->op != TIR_OP_LOAD ||
             tir_takes_tiles(rows->def, TIR_LOAD_MASK))
        tir_infer_refuse(q, "rows by number are loaded as they are from a tensor or a shared "
                            "buffer, `A[I[i:+4], c:+64]`: the thread that starts the copy does "
                            "so itself");
    else
        return true;
    return false;
}

const struct tir_type *tir_infer_none(struct tir_query *q)
{
    const struct tir_inst *inst = q->inst;
    if (inst->op == TIR_OP_STORE) {
        const struct tir_type *slice = tir_infer_slice(q);
        if (!slice || !tir_infer_mask_fits(q, TIR_STORE_MASK, slice))
            return NULL;
        if (!tir_infer_same_but_layout(tir_infer_operand(q, TIR_STORE_VALUE), slice))
            return tir_infer_refuse(q, "%s stored to a slice %s",
                                    tir_infer_text(q, tir_infer_operand(q, TIR_STORE_VALUE)),
                                    tir_infer_text(q, slice));
    } else if (inst->op == TIR_OP_PUSH) {
        return rule_push(q);
    } else if (inst->op == TIR_OP_COPY_ASYNC) {
        const struct tir_type *slice = tir_infer_slice(q), *to = tir_infer_operand(q, 0);
        if (!slice || !tir_infer_mask_fits(q, TIR_COPY_MASK, slice))
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
        return is_copy_barrier(q) && rows_fit(q) && pixels_follow(q) ? tir_infer_nothing(q) : NULL;
    } else if (inst->op == TIR_OP_STORE_ASYNC) {
        const struct tir_type *slice = tir_infer_slice(q), *from = tir_infer_operand(q, 0);
        if (!slice)
            return NULL;
        if (from->space != TIR_SPACE_SHARED || from->elem != slice->elem ||
            !tir_type_same_shape(from, slice))
            return tir_infer_refuse(q, "%s copied to %s", tir_infer_text(q, from),
                                    tir_infer_text(q, slice));
    } else if (inst->op == TIR_OP_PREFETCH || inst->op == TIR_OP_TMA_PREFETCH ||
               inst->op == TIR_OP_TMA_STORE || is_tensor_load(inst)) {
        const struct tir_type *slice = tir_infer_slice(q);
        if (slice && tir_ref_base(inst)->type->space != TIR_SPACE_GLOBAL)
            return tir_infer_refuse(q, "%s is not a part of a tensor", tir_infer_text(q, slice));
        if (is_tensor_load(inst) && !is_copy_barrier(q))
            return NULL;
        return slice ? tir_infer_nothing(q) : NULL;
    } else if (inst->op == TIR_OP_MBARRIER_INIT || inst->op == TIR_OP_ARRIVE ||
               inst->op == TIR_OP_WAIT) {
        const bool fits =
            inst->op == TIR_OP_WAIT ? tir_infer_phase(q) : is_barrier(q, inst->operands[TIR_BAR]);
        return fits ? tir_infer_nothing(q) : NULL;
    } else if (inst->op == TIR_OP_TRY_CANCEL) {
        const bool fits = tir_infer_response(q) && is_barrier(q, inst->operands[TIR_CANCEL_BAR]);
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
        return tir_infer_ring(q);
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
