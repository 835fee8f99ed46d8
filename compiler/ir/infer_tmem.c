// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Type rules of tensor memory: copies into it, and scales of products there.

#include "ir/infer.h"

// In shared memory, where 16 elements of 4 or 6 bits have 16 bytes.
static bool has_8bits(enum tir_elem e)
{
    return tir_elem_is_fp8(e) || tir_elem_is_narrow(e);
}

// Scales of a row of A or of a column of B: one for each block along K.
bool tir_infer_scales_fit(struct tir_query *q, const struct tir_type *a, const struct tir_type *b)
{
    const struct tir_value *sa = q->inst->operands[TIR_GEMM_SA];
    const struct tir_value *sb = q->inst->operands[TIR_GEMM_SB];
    if (!sa || !sb)
        return tir_infer_refuse(q, "scales of A and of B go together"), false;
    const struct tir_type *of_a = sa->type, *of_b = sb->type;
    if (!tir_tmem_is_scales(of_a) || !tir_tmem_is_scales(of_b) || of_a->rank != 2 ||
        of_b->rank != 2)
        return tir_infer_refuse(q,
                                "scales are matrices of ue8m0 or ue4m3 in tensor memory, not %s "
                                "and %s",
                                tir_infer_text(q, of_a), tir_infer_text(q, of_b)),
               false;
    const bool is_packed = a->elem == TIR_U8;
    const bool is_8bit = has_8bits(a->elem) && has_8bits(b->elem);
    if (of_a->elem != of_b->elem || (a->elem != b->elem && !is_8bit) ||
        !(is_packed || (is_8bit && of_a->elem == TIR_UE8M0)))
        return tir_infer_refuse(
                   q,
                   "no product has %s and %s with scales %s and %s: it is fp8, fp6 and "
                   "fp4 with ue8m0, or u8, which are two e2m1, with either",
                   tir_infer_text(q, a), tir_infer_text(q, b), tir_infer_text(q, of_a),
                   tir_infer_text(q, of_b)),
               false;
    const int64_t block = of_a->elem == TIR_UE4M3 ? 16 : 32;
    const int64_t k = a->shape[1] * (is_packed ? 2 : 1);
    // Each CTA of a pair has half of the columns of B, and the scales of all of them.
    const bool is_pair = tir_tmem_is_pair(q->inst->operands[TIR_DOT_ACC]);
    const int64_t columns = (is_pair ? 2 : 1) * b->shape[1];
    if (k % block || of_a->shape[0] != a->shape[0] || of_a->shape[1] != k / block ||
        of_b->shape[0] != k / block || of_b->shape[1] != columns)
        return tir_infer_refuse(q,
                                "the scales are %s and %s where [%lld, %lld] and [%lld, %lld] "
                                "are needed, one for %lld elements",
                                tir_infer_text(q, of_a), tir_infer_text(q, of_b),
                                (long long)a->shape[0], (long long)(k / block),
                                (long long)(k / block), (long long)columns, (long long)block),
               false;
    return true;
}

const struct tir_type *tir_infer_scaled_dot(struct tir_query *q)
{
    static const uint32_t places[] = {TIR_DOT_A, TIR_DOT_B, TIR_DOT_ACC, TIR_DOT_SA, TIR_DOT_SB};
    for (uint32_t i = 0; i < TIR_COUNT_OF(places); i++) {
        const struct tir_value *v = q->inst->operands[places[i]];
        if (!v)
            return tir_infer_refuse(q, "scales of the first and of the second factor go together");
        const bool may_be_shared = places[i] != TIR_DOT_ACC;
        const bool is_scales = places[i] == TIR_DOT_SA || places[i] == TIR_DOT_SB;
        if (!(v->type->rank == 2 || (is_scales && tir_scales_are_packed(v->type))) ||
            v->type->elem == TIR_BOOL ||
            (!tir_type_is_tile(v->type) && !(may_be_shared && v->type->space == TIR_SPACE_SHARED)))
            return tir_infer_refuse(q, "%s is no tile of rank 2", tir_infer_text(q, v->type));
    }
    const struct tir_type *a = tir_infer_operand(q, TIR_DOT_A),
                          *b = tir_infer_operand(q, TIR_DOT_B);
    const struct tir_type *sa = tir_infer_operand(q, TIR_DOT_SA),
                          *sb = tir_infer_operand(q, TIR_DOT_SB);
    const struct tir_type *acc = tir_infer_operand(q, TIR_DOT_ACC);
    if (!tir_elem_is_float(sa->elem) || !tir_elem_is_float(sb->elem))
        return tir_infer_refuse(q, "scales are floats, not %s and %s", tir_infer_text(q, sa),
                                tir_infer_text(q, sb));
    const int64_t k = tir_scaled_depth(a, 1);
    if (k != tir_scaled_depth(b, 0))
        return tir_infer_refuse(q, "%s and %s do not multiply: %lld elements along K, and %lld",
                                tir_infer_text(q, a), tir_infer_text(q, b), (long long)k,
                                (long long)tir_scaled_depth(b, 0));
    if (sb->rank == 2 && sb->shape[1] != b->shape[1] && sb->shape[0] == b->shape[1] &&
        k % sb->shape[1] == 0)
        return tir_infer_refuse(
            q, "the scales of the second are %s where [%lld, %lld] is needed: transpose them",
            tir_infer_text(q, sb), (long long)sb->shape[1], (long long)sb->shape[0]);
    if (tir_scales_rows(sa, 1) != a->shape[0] || k % tir_scales_count(sa, 1) ||
        tir_scales_rows(sb, 0) != b->shape[1] || k % tir_scales_count(sb, 0))
        return tir_infer_refuse(q,
                                "the scales are %s and %s for %s and %s: each row of the first has "
                                "scales for equal parts of its %lld elements, and each column of "
                                "the second",
                                tir_infer_text(q, sa), tir_infer_text(q, sb), tir_infer_text(q, a),
                                tir_infer_text(q, b), (long long)k);
    if (acc->elem != TIR_F32 || acc->shape[0] != a->shape[0] || acc->shape[1] != b->shape[1])
        return tir_infer_refuse(q, "the sum is %s where f32[%lld, %lld] is needed",
                                tir_infer_text(q, acc), (long long)a->shape[0],
                                (long long)b->shape[1]);
    return tir_type_with_layout(q->m->types, acc, NULL);
}

// Do the scales lie in shared memory as copies take them: in blocks of 128 rows and 4 scales, each
// [32, 16] for row % 32 and 4 * (row / 32) + scale? A dimension of one block may be left out.
static bool are_scale_blocks(const struct tir_type *from, const struct tir_type *to)
{
    const int64_t shape[] = {to->shape[0] / TIR_TMEM_LANES, to->shape[1] / TIR_TMEM_SCALES,
                             TIR_TMEM_SCALE_LANES,
                             TIR_TMEM_LANES / TIR_TMEM_SCALE_LANES * TIR_TMEM_SCALES};
    uint32_t left_out = 0;
    while (left_out < 2 && from->rank + left_out < TIR_COUNT_OF(shape) && shape[left_out] == 1)
        left_out++;
    if (!tir_tmem_is_scales(to) || to->shape[0] % TIR_TMEM_LANES ||
        to->shape[1] % TIR_TMEM_SCALES || from->rank + left_out != TIR_COUNT_OF(shape))
        return false;
    for (uint32_t d = 0; d < from->rank; d++)
        if (from->shape[d] != shape[left_out + d])
            return false;
    return true;
}

const struct tir_type *tir_infer_tmem_copy(struct tir_query *q)
{
    const struct tir_type *from = tir_infer_operand(q, TIR_TMEM_FROM);
    const struct tir_type *to = tir_infer_operand(q, TIR_TMEM_TO);
    if (to->rank != 2 || to->space != TIR_SPACE_TMEM)
        return tir_infer_refuse(q, "%s is no matrix in tensor memory", tir_infer_text(q, to));
    if (from->space != TIR_SPACE_SHARED)
        return tir_infer_refuse(q, "what is copied to tensor memory is a shared buffer, not %s",
                                tir_infer_text(q, from));
    if (from->elem != to->elem || (!tir_type_same_shape(from, to) && !are_scale_blocks(from, to)))
        return tir_infer_refuse(q, "%s copied to %s", tir_infer_text(q, from),
                                tir_infer_text(q, to));
    return tir_infer_nothing(q);
}
