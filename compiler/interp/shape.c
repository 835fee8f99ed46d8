// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter on whole tiles: casts, shapes, reductions, scans and products.

#include "interp/state.h"

void tir_interp_cast(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_value *x = inst->operands[0], *result = tir_result(inst);
    const union tir_number *from = tir_interp_read(in, x);
    union tir_number *to = tir_interp_write(in, result);
    uint32_t count = count_of(in, result->type);
    for (uint32_t i = 0; i < count; i++)
        to[i] = tir_number_cast(result->type->elem, x->type->elem, from[i]);
}

void tir_interp_bitcast(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_value *x = inst->operands[0], *result = tir_result(inst);
    const union tir_number *from = tir_interp_read(in, x);
    union tir_number *to = tir_interp_write(in, result);
    uint32_t count = count_of(in, result->type);
    for (uint32_t i = 0; i < count; i++)
        to[i] = tir_number_decode(result->type->elem, tir_number_encode(x->type->elem, from[i]));
}

// Rows have whole bytes, so the elements of all rows follow each other.
void tir_interp_expand(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_value *x = inst->operands[0], *result = tir_result(inst);
    const enum tir_elem elem = result->type->elem;
    const union tir_number *from = tir_interp_read(in, x);
    union tir_number *to = tir_interp_write(in, result);
    const uint32_t bits = tir_elem_width(elem), count = count_of(in, result->type);
    for (uint32_t i = 0; i < count; i++)
        to[i] = tir_interp_packed(elem, i * bits % 8, from + i * bits / 8);
}

// to[i, j, ...] = from[i * stride[0] + j * stride[1] + ...], `to` row-major.
static void gather(union tir_number *to, const struct tir_type *type, const union tir_number *from,
                   const int64_t *stride)
{
    int64_t at[TIR_MAX_RANK] = {0}, offset = 0, count = tir_type_count(type);
    assert(type->rank > 0);
    uint32_t last = type->rank - 1;
    for (int64_t i = 0; i < count; i += type->shape[last]) {
        for (int64_t j = 0; j < type->shape[last]; j++)
            to[i + j] = from[offset + j * stride[last]];
        for (uint32_t d = last; d-- > 0;) {
            offset += stride[d];
            if (++at[d] < type->shape[d])
                break;
            offset -= stride[d] * type->shape[d];
            at[d] = 0;
        }
    }
}

// Strides of a dense row-major tile.
static void dense_strides(const struct tir_type *type, int64_t *stride)
{
    int64_t size = 1;
    for (uint32_t d = type->rank; d-- > 0; size *= type->shape[d])
        stride[d] = size;
}

void tir_interp_broadcast(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_value *x = inst->operands[0], *result = tir_result(inst);
    int64_t stride[TIR_MAX_RANK] = {0};
    if (x->type->rank == 0) {
        union tir_number value = tir_interp_uniform(in, inst, x);
        gather(tir_interp_write(in, result), result->type, &value, stride);
        return;
    }
    dense_strides(x->type, stride);
    for (uint32_t d = 0; d < x->type->rank; d++)
        if (x->type->shape[d] == 1)
            stride[d] = 0;
    gather(tir_interp_write(in, result), result->type, tir_interp_read(in, x), stride);
}

void tir_interp_reshape(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_value *x = inst->operands[0], *result = tir_result(inst);
    if (tir_type_is_buffer(x->type)) {
        tir_interp_reshape_buffer(in, inst);
        return;
    }
    const union tir_number *from = tir_interp_read(in, x);
    union tir_number *to = tir_interp_write(in, result);
    if (!x->type->rank && result->type->rank)
        to[0] = tir_interp_uniform(in, inst, x);
    else if (x->type->rank && !result->type->rank)
        for (uint32_t i = 0; i < in->lanes; i++)
            to[i] = from[0];
    else
        memcpy(to, from, count_of(in, result->type) * sizeof *to);
}

void tir_interp_convert_layout(struct interp *in, const struct tir_inst *inst)
{
    tir_interp_scribble(in, inst, inst->operands[1]);
    tir_interp_reshape(in, inst);
}

void tir_interp_permute(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_value *x = inst->operands[0], *result = tir_result(inst);
    if (tir_type_is_buffer(x->type)) {
        tir_interp_transpose(in, inst);
        return;
    }
    const int64_t *order = tir_attr_find(inst, TIR_ATTR_permutation)->list;
    int64_t dense[TIR_MAX_RANK], stride[TIR_MAX_RANK];
    dense_strides(x->type, dense);
    for (uint32_t d = 0; d < result->type->rank; d++)
        stride[d] = dense[order[d]];
    gather(tir_interp_write(in, result), result->type, tir_interp_read(in, x), stride);
}

void tir_interp_extract(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_value *x = inst->operands[0], *result = tir_result(inst);
    const int64_t *start = tir_attr_find(inst, TIR_ATTR_start)->list;
    int64_t stride[TIR_MAX_RANK], offset = 0;
    dense_strides(x->type, stride);
    for (uint32_t d = 0; d < x->type->rank; d++)
        offset += start[d] * stride[d];
    gather(tir_interp_write(in, result), result->type, tir_interp_read(in, x) + offset, stride);
}

void tir_interp_iota(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_value *result = tir_result(inst);
    const struct tir_type *type = result->type;
    int64_t axis = tir_attr_int(inst, TIR_ATTR_axis, 0), stride[TIR_MAX_RANK];
    dense_strides(type, stride);
    union tir_number *to = tir_interp_write(in, result);
    int64_t count = tir_type_count(type);
    for (int64_t i = 0; i < count; i++) {
        int64_t index = i / stride[axis] % type->shape[axis];
        if (tir_elem_is_float(type->elem))
            to[i].f = tir_number_round(type->elem, (double)index);
        else
            to[i].i = tir_number_wrap(type->elem, index);
    }
}

// How far the pixel is from the base pixel along dimension d of a tensor of rank `rank`.
static int64_t pixel_offset(struct interp *in, const struct tir_inst *inst, uint32_t rank,
                            uint32_t d)
{
    const uint32_t which = TIR_PIXEL_DIMS + 1 + d - rank; // the last one is dx
    const struct tir_value *by = d ? inst->operands[TIR_PIXEL_DZ + which] : NULL;
    const int64_t offset = by ? tir_interp_uniform(in, inst, by).i : 0;
    if (offset < 0 || offset > tir_most_pixel_offset(rank))
        tir_interp_fail(in, inst, TIR_ERR_INVALID,
                        "pixels are %lld from their base pixels; it is 0 to %lld for a tensor of "
                        "rank %u",
                        (long long)offset, (long long)tir_most_pixel_offset(rank), rank);
    return offset;
}

// Base pixels go row by row, image by image, from the first one on.
void tir_interp_pixel_index(struct interp *in, const struct tir_inst *inst)
{
    const struct buffer *of = tir_interp_buffer(in, inst, inst->operands[TIR_PIXEL_OF]);
    const struct tir_attr *low = tir_attr_find(inst, TIR_ATTR_low);
    const struct tir_attr *high = tir_attr_find(inst, TIR_ATTR_high);
    const struct tir_attr *strides = tir_attr_find(inst, TIR_ATTR_strides);
    const uint32_t axis = (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0);
    int64_t at[TIR_MAX_RANK], step[TIR_MAX_RANK], end[TIR_MAX_RANK], offset[TIR_MAX_RANK];
    for (uint32_t d = 0; d + 1 < of->rank; d++) {
        at[d] = tir_interp_uniform(in, inst, inst->operands[TIR_PIXEL_FIRST + d]).i;
        step[d] = strides ? strides->list[d] : 1;
        offset[d] = pixel_offset(in, inst, of->rank, d);
        end[d] = d ? of->shape[d] + high->list[d - 1] : INT64_MAX;
        const int64_t begin = d ? low->list[d - 1] : 0;
        if (!d && at[0] < 0)
            tir_interp_fail(in, inst, TIR_ERR_INVALID, "the first pixel is in image %lld",
                            (long long)at[0]);
        if (at[d] < begin || at[d] >= end[d] || (at[d] - begin) % step[d])
            tir_interp_fail(in, inst, TIR_ERR_INVALID,
                            "the first pixel is at %lld in dimension %u, where base pixels go from "
                            "%lld to %lld by %lld",
                            (long long)at[d], d, (long long)begin, (long long)end[d] - 1,
                            (long long)step[d]);
    }
    const struct tir_value *result = tir_result(inst);
    union tir_number *to = tir_interp_write(in, result);
    const int64_t count = tir_type_count(result->type);
    for (int64_t i = 0; i < count; i++) {
        to[i].i = at[axis] + offset[axis];
        uint32_t d = of->rank - 1;
        while (--d && (at[d] += step[d]) >= end[d])
            at[d] = low->list[d - 1];
        at[0] += d == 0;
    }
}

// A reduction or scan in progress: how two values combine.
struct combine {
    const struct tir_inst *inst;
    enum tir_elem elem;
    enum tir_word kind;
    enum tir_op op; // of the kinds that are an operation
};

static struct combine combine_of(const struct tir_inst *inst)
{
    const enum tir_word kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE);
    return (struct combine){.inst = inst,
                            .elem = inst->operands[0]->type->elem,
                            .kind = kind,
                            .op = tir_op_of_kind(kind)};
}

// The user's function on a and b, which have an element of each tile: its region, run for one lane.
static void combine_user(struct interp *in, const struct tir_inst *inst, union tir_number *a,
                         const union tir_number *b)
{
    const struct tir_block *block = inst->regions[0];
    uint32_t count = inst->result_count;
    for (uint32_t i = 0; i < count; i++) {
        tir_interp_write(in, block->args[i])[0] = a[i];
        tir_interp_write(in, block->args[count + i])[0] = b[i];
    }
    tir_interp_block(in, block);
    for (uint32_t i = 0; i < count; i++)
        a[i] = tir_interp_read(in, tir_yield_of(block)->operands[i])[0];
}

// Sums and products of floats stay in double; the caller rounds.
static union tir_number combine(struct interp *in, const struct combine *c, union tir_number a,
                                union tir_number b)
{
    union tir_number pair[2] = {a, b}, out = {0};
    bool wide = tir_elem_is_float(c->elem);
    if (wide && c->kind == TIR_WORD_kind_sum)
        out.f = a.f + b.f;
    else if (wide && c->kind == TIR_WORD_kind_prod)
        out.f = a.f * b.f;
    else if (!tir_number_apply(c->op, c->elem, pair, &out))
        tir_interp_fail(in, c->inst, TIR_ERR_UNSUPPORTED, "'%s' of %s cannot be interpreted",
                        tir_words[c->kind].name, tir_elems[c->elem].name);
    return out;
}

static union tir_number rounded(enum tir_elem elem, union tir_number x)
{
    if (tir_elem_is_float(elem))
        x.f = tir_number_round(elem, x.f);
    return x;
}

// A line of each tile along the axis: where its first elements are, and where its results go.
struct lines {
    const union tir_number *from[TIR_MAX_COMBINED];
    union tir_number *to[TIR_MAX_COMBINED];
    int64_t length, step; // elements, and the distance between them
};

// `to` takes the running value (scan) or the last (reduce).
static void fold_line(struct interp *in, const struct combine *c, const struct lines *l,
                      int64_t from, int64_t to, bool scan)
{
    const struct tir_inst *inst = c->inst;
    union tir_number sum[TIR_MAX_COMBINED], next[TIR_MAX_COMBINED];
    uint32_t count = inst->result_count;
    for (uint32_t i = 0; i < count; i++)
        sum[i] = l->from[i][from];
    for (int64_t j = 0; j < l->length; j++) {
        for (uint32_t i = 0; i < count; i++)
            next[i] = l->from[i][from + j * l->step];
        if (j && c->kind == TIR_WORD_kind_user)
            combine_user(in, inst, sum, next);
        else if (j)
            sum[0] = combine(in, c, sum[0], next[0]);
        for (uint32_t i = 0; i < count && (scan || j + 1 == l->length); i++)
            l->to[i][scan ? to + j * l->step : to] = rounded(inst->results[i]->type->elem, sum[i]);
    }
}

static void fold_axis(struct interp *in, const struct tir_inst *inst, bool scan)
{
    const struct tir_type *x = inst->operands[TIR_REDUCE_X]->type;
    const struct combine c = combine_of(inst);
    uint32_t axis = (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0), lanes = in->lanes;
    int64_t stride[TIR_MAX_RANK];
    dense_strides(x, stride);
    struct lines l = {.length = x->shape[axis], .step = stride[axis]};
    int64_t inner = l.step, outer = tir_type_count(x) / (inner * l.length);
    for (uint32_t i = 0; i < inst->result_count; i++) {
        l.from[i] = tir_interp_read(in, inst->operands[tir_combined_at(inst, i)]);
        l.to[i] = tir_interp_write(in, inst->results[i]);
    }
    tir_interp_scribble(in, inst, inst->operands[TIR_REDUCE_SCRATCH]);
    in->lanes = in->active_count = 1; // the user's function works on single values
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++)
            fold_line(in, &c, &l, o * l.length * inner + i,
                      scan ? o * l.length * inner + i : o * inner + i, scan);
    in->lanes = in->active_count = lanes;
}

void tir_interp_reduce(struct interp *in, const struct tir_inst *inst)
{
    fold_axis(in, inst, false);
}

void tir_interp_scan(struct interp *in, const struct tir_inst *inst)
{
    fold_axis(in, inst, true);
}

// A matrix operand: the numbers of a tile, or those in a buffer.
static const union tir_number *matrix(struct interp *in, const struct tir_inst *inst,
                                      const struct tir_value *v)
{
    if (!tir_type_is_buffer(v->type))
        return tir_interp_read(in, v);
    size_t count = (size_t)tir_type_count(v->type);
    union tir_number *all = arena_array(&in->scratch, union tir_number, count);
    tir_interp_load_all(in, tir_interp_buffer(in, inst, v), all);
    return all;
}

// The numbers of a factor whose scales are one for each part of K, along `axis`: what bf16 holds of
// their products.
static const union tir_number *scaled(struct interp *in, const struct tir_inst *inst,
                                      const struct tir_value *v, const struct tir_value *scales,
                                      uint32_t axis)
{
    const struct tir_type *t = v->type, *of = scales->type;
    const union tir_number *x = matrix(in, inst, v), *s = matrix(in, inst, scales);
    const int64_t depth = tir_scaled_depth(t, axis), packed = depth / t->shape[axis];
    const int64_t block = depth / tir_scales_count(of, axis);
    int64_t shape[2] = {t->shape[0], t->shape[1]};
    shape[axis] = depth;
    union tir_number *all =
        arena_array(&in->scratch, union tir_number, (size_t)(shape[0] * shape[1]));
    for (int64_t i = 0; i < shape[0] * shape[1]; i++) {
        int64_t at[2] = {i / shape[1], i % shape[1]}, scale[2] = {at[0], at[1]};
        const int64_t half = at[axis] % packed;
        at[axis] /= packed;
        scale[axis] /= block;
        union tir_number e = x[at[0] * t->shape[1] + at[1]];
        if (packed > 1)
            e = tir_number_decode(TIR_E2M1, (uint64_t)e.i >> 4 * half & 15);
        const double f = tir_elem_is_float(t->elem) || packed > 1 ? e.f : (double)e.i;
        const double by =
            s[tir_scales_are_packed(of) ? tir_packed_scale(of, at[1 - axis], scale[axis])
                                        : scale[0] * of->shape[1] + scale[1]]
                .f;
        all[i].f = tir_number_round(TIR_BF16,
                                    tir_number_round(TIR_F32, tir_number_round(TIR_F32, f) *
                                                                  tir_number_round(TIR_F32, by)));
    }
    return all;
}

// Four products at a time: the sums in c are then loaded and stored a quarter as often.
static void dot_floats(double *restrict c, const double *restrict a, const union tir_number *b,
                       int64_t depth, int64_t cols)
{
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
        const union tir_number *b0 = b + k * cols, *b1 = b0 + cols, *b2 = b1 + cols,
                               *b3 = b2 + cols;
        for (int64_t j = 0; j < cols; j++)
            c[j] +=
                (a[k] * b0[j].f + a[k + 1] * b1[j].f) + (a[k + 2] * b2[j].f + a[k + 3] * b3[j].f);
    }
    for (; k < depth; k++)
        for (int64_t j = 0; j < cols; j++)
            c[j] += a[k] * b[k * cols + j].f;
}

static void dot_ints(union tir_number *restrict c, const union tir_number *a,
                     const union tir_number *b, int64_t depth, int64_t cols)
{
    for (int64_t k = 0; k < depth; k++)
        for (int64_t j = 0; j < cols; j++)
            c[j].i = (int64_t)((uint64_t)c[j].i + (uint64_t)a[k].i * (uint64_t)b[k * cols + j].i);
}

void tir_interp_dot(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_value *a = inst->operands[TIR_DOT_A], *b = inst->operands[TIR_DOT_B];
    const struct tir_type *type = tir_result(inst)->type;
    const bool has_scales = tir_is_scaled_dot(inst);
    int64_t rows = type->shape[0], cols = type->shape[1];
    int64_t depth = has_scales ? tir_scaled_depth(a->type, 1) : a->type->shape[1];
    bool floats = tir_elem_is_float(type->elem);
    const union tir_number *x = has_scales ? scaled(in, inst, a, inst->operands[TIR_DOT_SA], 1)
                                           : matrix(in, inst, a),
                           *y = has_scales ? scaled(in, inst, b, inst->operands[TIR_DOT_SB], 0)
                                           : matrix(in, inst, b);
    const union tir_number *acc = tir_interp_read(in, inst->operands[TIR_DOT_ACC]);
    union tir_number *to = tir_interp_write(in, tir_result(inst));
    double *row = arena_array(&in->scratch, double, (size_t)cols);
    double *left = arena_array(&in->scratch, double, (size_t)depth);
    for (int64_t i = 0; i < rows; i++, x += depth, to += cols, acc += cols) {
        memcpy(to, acc, (size_t)cols * sizeof *to);
        for (int64_t k = 0; floats && k < depth; k++)
            left[k] = x[k].f;
        for (int64_t j = 0; floats && j < cols; j++)
            row[j] = acc[j].f;
        if (floats)
            dot_floats(row, left, y, depth, cols);
        else
            dot_ints(to, x, y, depth, cols);
        for (int64_t j = 0; j < cols; j++)
            if (floats)
                to[j].f = tir_number_round(type->elem, row[j]);
            else
                to[j].i = tir_number_wrap(type->elem, to[j].i);
    }
}
