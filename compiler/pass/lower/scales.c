// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile: scales of products in tensor memory, and how they come there.
//
// A column of a lane has four scales of a row (tir_tmem_is_scales), so a part may begin with any of
// the four, and that is its number in an instruction. tcgen05.cp.32x128b.warpx4 copies 32 rows of
// 16 bytes to the lanes of each warp: four columns, which are 128 rows and 4 scales.

#include "pass/lower/scales.h"

#include "ir/walk.h"
#include "pass/lower/descriptor.h"

// The index divided by `unit`, a power of two that divides it. NULL: it is not known to.
static struct tir_value *index_in(struct lower *lo, struct tir_value *index, int64_t unit)
{
    int64_t known;
    if (tir_is_const_int(index, &known))
        return known % unit ? NULL : tir_lower_i32(lo, known / unit);
    if (tir_range_divisor(lo->ranges, index) % (uint64_t)unit)
        return NULL;
    return tir_lower_digit(lo, &lo->b, tir_lower_cast(lo, &lo->b, index, lo->i32), (uint32_t)unit,
                           1, true);
}

static const char *step_into(struct lower *lo, const struct tir_inst *view, struct lower_scales *s)
{
    const struct tir_type *t = tir_ref_base(view)->type;
    struct tir_value *const *indices = tir_ref_indices(view);
    const struct tir_attr *box = tir_attr_find(view, TIR_ATTR_box);
    uint32_t kept = 0;
    for (uint32_t d = 0; d + 2 < t->rank; d++) {
        struct tir_value *index = tir_lower_cast(lo, &lo->b, indices[d], lo->i32);
        s->at =
            tir_lower_add(lo, &lo->b, s->at, tir_lower_mul_const(lo, &lo->b, index, s->columns[d]));
        if (box->list[d])
            s->columns[kept++] = s->columns[d];
    }
    struct tir_value *row = index_in(lo, indices[t->rank - 2], TIR_TMEM_SCALE_LANES);
    struct tir_value *word = index_in(lo, indices[t->rank - 1], TIR_TMEM_SCALES);
    int64_t first;
    if (!row)
        return "a part of scales does not begin with a multiple of 32 rows";
    if (!word && tir_is_const_int(indices[t->rank - 1], &first)) {
        s->id += (uint32_t)(first % TIR_TMEM_SCALES);
        word = tir_lower_i32(lo, first / TIR_TMEM_SCALES + s->id / TIR_TMEM_SCALES);
        s->id %= TIR_TMEM_SCALES;
    }
    if (!word)
        return "a part of scales begins at a number that is not known, and not known to be a "
               "multiple of 4";
    s->at = tir_lower_add(lo, &lo->b, s->at, row);
    s->at =
        tir_lower_add(lo, &lo->b, s->at, tir_lower_mul_const(lo, &lo->b, word, s->word_columns));
    return NULL;
}

const char *tir_lower_scales_find(struct lower *lo, struct tir_value *v, struct lower_scales *s)
{
    const struct tir_inst *def = v->def;
    if (def->op == TIR_OP_VIEW) {
        const char *why = tir_lower_scales_find(lo, tir_ref_base(def), s);
        return why ? why : step_into(lo, def, s);
    }
    if (def->op != TIR_OP_TMEM_BUFFER)
        return "scales in tensor memory are not transposed";
    const struct tir_type *t = v->type;
    *s = (struct lower_scales){
        .at = tir_lower_add(lo, &lo->b, def->operands[0],
                            tir_lower_i32(lo, tir_attr_int(def, TIR_ATTR_column, 0))),
        .word_columns = t->shape[t->rank - 2] / TIR_TMEM_SCALE_LANES};
    int64_t columns = s->word_columns * (t->shape[t->rank - 1] / TIR_TMEM_SCALES);
    for (uint32_t d = t->rank - 2; d-- > 0; columns *= t->shape[d])
        s->columns[d] = columns;
    return NULL;
}

void tir_lower_tmem_cp(struct lower *lo, struct tir_value *to, struct tir_value *from,
                       int64_t row_bits, int64_t rows)
{
    struct tir_value *operands[] = {[TIR_TCGEN05_CP_TO] = to, [TIR_TCGEN05_CP_FROM] = from};
    struct tir_inst *cp = tir_build(&lo->b, TIR_OP_TCGEN05_CP, operands, 2, NULL, 0, 0);
    tir_set_int(lo->f, cp, TIR_ATTR_row_bits, row_bits);
    if (rows != TIR_TMEM_LANES)
        tir_set_int(lo->f, cp, TIR_ATTR_rows, rows);
    tir_lower_set_group(lo, cp);
}

// The byte of a scale in shared memory, from where its part starts. As in tensor memory, it has the
// shape [row / 128, scale / 4,] row % 32, 4 * (row / 32) + scale.
static int64_t scale_byte(const struct lower_part *part, bool as_blocks, uint32_t rank, int64_t row,
                          int64_t scale)
{
    int64_t coord[TIR_MAX_RANK] = {row, scale};
    const int64_t quarter = row % TIR_TMEM_LANES / TIR_TMEM_SCALE_LANES;
    const int64_t parts[] = {row / TIR_TMEM_LANES, scale / TIR_TMEM_SCALES,
                             row % TIR_TMEM_SCALE_LANES,
                             quarter * TIR_TMEM_SCALES + scale % TIR_TMEM_SCALES};
    if (as_blocks)
        memcpy(coord, parts + TIR_COUNT_OF(parts) - rank, rank * sizeof *coord);
    return tir_lower_part_byte(part, coord);
}

// Do the scales of a block lie as rows of 16 bytes, one for each lane, 8 of them together?
static bool is_scale_block(const struct lower_part *part, bool as_blocks, uint32_t rank,
                           int64_t row, int64_t scale, int64_t stride)
{
    const int64_t start = scale_byte(part, as_blocks, rank, row, scale);
    for (int64_t r = 0; r < TIR_TMEM_LANES; r++)
        for (int64_t s = 0; s < TIR_TMEM_SCALES; s++) {
            const int64_t lane = r % TIR_TMEM_SCALE_LANES;
            if (scale_byte(part, as_blocks, rank, row + r, scale + s) - start !=
                lane % 8 * 16 + lane / 8 * stride + r / TIR_TMEM_SCALE_LANES * TIR_TMEM_SCALES + s)
                return false;
        }
    return start % 16 == 0;
}

const char *tir_lower_scales_copy(struct lower *lo, struct tir_value *to, struct tir_value *from,
                                  uint32_t *count)
{
    struct lower_scales s;
    const int64_t rows = to->type->shape[0], scales = to->type->shape[1];
    const bool as_blocks = !tir_type_same_shape(from->type, to->type);
    const uint32_t rank = from->type->rank;
    struct lower_descriptor d = {.kind = LOWER_DESCRIPTOR_TCGEN05,
                                 .part = tir_lower_part_of(lo, from)};
    const char *why = tir_lower_scales_find(lo, to, &s);
    if (why)
        return why;
    if (rows % TIR_TMEM_LANES || scales % TIR_TMEM_SCALES || s.id)
        return "scales are copied in blocks of 128 rows and 4 scales";
    d.stride = scale_byte(&d.part, as_blocks, rank, 8, 0);
    bool fits = !d.part.memory->swizzle && tir_lower_part_divisor(&d.part) % 16 == 0 &&
                d.stride >= 0 && d.stride % 16 == 0;
    for (int64_t r = 0; fits && r < rows; r += TIR_TMEM_LANES)
        for (int64_t k = 0; fits && k < scales; k += TIR_TMEM_SCALES)
            fits = is_scale_block(&d.part, as_blocks, rank, r, k, d.stride);
    if (!fits)
        return "scales in shared memory do not lie as in tensor memory: of 128 rows and 4 scales, "
               "in S[(4, 32, 4) : (4, 16, 1)]";
    why = tir_lower_descriptor_build(lo, &d);
    if (why)
        return why;
    for (int64_t r = 0; r < rows; r += TIR_TMEM_LANES)
        for (int64_t k = 0; k < scales; k += TIR_TMEM_SCALES) {
            const int64_t at = r / TIR_TMEM_SCALE_LANES + k / TIR_TMEM_SCALES * s.word_columns;
            struct tir_value *by =
                tir_const_int(lo->f, lo->i64, scale_byte(&d.part, as_blocks, rank, r, k) / 16);
            tir_lower_tmem_cp(lo, tir_lower_add(lo, &lo->b, s.at, tir_lower_i32(lo, at)),
                              tir_lower_add(lo, &lo->b, d.start, by), 128, TIR_TMEM_SCALE_LANES);
        }
    *count = (uint32_t)(rows / TIR_TMEM_LANES * (scales / TIR_TMEM_SCALES));
    return NULL;
}
