// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pixels in the order of images, as a load of a program has them:
//
//     let b: i64[128] = pixel_index(X, p, y, x, axis = 0, low = [-1, -1], high = [-1, -1], dx = s);
//     let i: i64[128] = pixel_index(X, p, y, x, axis = 1, ...);
//     let j: i64[128] = pixel_index(X, p, y, x, axis = 2, ...);
//     let a: bf16[128, 64] = load(X[b, i, j, c:+64]);
// A tensor copy counts them itself (PTX ISA, "im2col mode"):
//     copy_async(buf, X[p, y, x, c:+64], low = [-1, -1], high = [-1, -1], dx = s, engine = tma);
// Threads compute the numbers. Of base pixels, H by W of an image here, with number n:
//     let n = (p * H + y + 1) * W + x + 1 + iota(128);
//     let b = n / (H * W); let i = n / W % H - 1; let j = n % W - 1 + s;
// That is the one way in which pixels become rows by index: for cp.async, for registers, and on
// targets without tensor copies.

#include "pass/async/pixels.h"

#include "ir/walk.h"

static const struct tir_inst *index_of(const struct tir_value *v)
{
    while (v->def && v->def->op == TIR_OP_CONVERT_LAYOUT)
        v = v->def->operands[0];
    return v->def && v->def->op == TIR_OP_PIXEL_INDEX ? v->def : NULL;
}

// Are both of the same pixels, along whatever axis?
static bool is_same(const struct tir_inst *a, const struct tir_inst *b)
{
    return a->operand_count == b->operand_count &&
           !memcmp(a->operands, b->operands, a->operand_count * sizeof(*a->operands)) &&
           tir_same_list(a, b, TIR_ATTR_low) && tir_same_list(a, b, TIR_ATTR_high) &&
           tir_same_list(a, b, TIR_ATTR_strides);
}

const struct tir_inst *tir_pixels_of(const struct tir_inst *access)
{
    const struct tir_value *base = tir_ref_base(access);
    const uint32_t rank = base->type->rank;
    const struct tir_inst *first = rank < 3 ? NULL : index_of(tir_ref_indices(access)[0]);
    if (!first || first->operands[TIR_PIXEL_OF] != base)
        return NULL;
    for (uint32_t d = 0; d + 1 < rank; d++) {
        const struct tir_inst *index = index_of(tir_ref_indices(access)[d]);
        if (!index || tir_attr_int(index, TIR_ATTR_axis, -1) != d || !is_same(index, first))
            return NULL;
    }
    return tir_attr_find(access, TIR_ATTR_box)->list[rank - 1] > 0 ? first : NULL;
}

void tir_state_pixels(struct tir_func *f, struct tir_inst *copy)
{
    const struct tir_inst *pixels = tir_pixels_of(copy);
    const struct tir_type *i32 = tir_type_scalar(f->module->types, TIR_I32);
    const uint32_t rank = tir_ref_base(copy)->type->rank;
    struct tir_builder b = tir_builder_before(f, copy);
    int64_t box[TIR_MAX_RANK] = {0}, number;
    box[rank - 1] = tir_attr_find(copy, TIR_ATTR_box)->list[rank - 1];
    for (uint32_t d = 0; d + 1 < rank; d++)
        tir_ref_indices(copy)[d] = pixels->operands[TIR_PIXEL_FIRST + d];
    for (uint32_t i = 0; i < TIR_PIXEL_DIMS; i++) {
        struct tir_value *by = pixels->operands[TIR_PIXEL_DZ + i];
        if (by && tir_is_const_int(by, &number))
            by = number ? tir_const_i32(f, (int32_t)number) : NULL;
        else if (by)
            by = tir_build1(&b, TIR_OP_CAST, i32, &by, 1);
        copy->operands[TIR_COPY_DZ + i] = by;
    }
    tir_set_list(f, copy, TIR_ATTR_box, box, rank);
    tir_copy_attr(f, copy, pixels, TIR_ATTR_low);
    tir_copy_attr(f, copy, pixels, TIR_ATTR_high);
    tir_copy_attr(f, copy, pixels, TIR_ATTR_strides);
}

struct tir_value *tir_pixels_in_layout(struct tir_builder *b, struct tir_value *v,
                                       const struct tir_layout *l)
{
    struct tir_map none;
    tir_map_init(&none, b->f->module->arena);
    struct tir_value *y = tir_result(tir_clone_inst(b, v->def, &none));
    y->type = tir_type_with_layout(b->f->module->types, v->type, l);
    return y;
}

// Rows by index.

struct expansion {
    struct tir_func *f;
    struct tir_builder b;
    const struct tir_inst *index;          // the numbers are of its pixels; NULL: there are none
    struct tir_value *count[TIR_MAX_RANK]; // of base pixels along each dimension of images
    struct tir_value *numbers;             // a tile
};

static int64_t item(const struct expansion *e, enum tir_attr_key key, uint32_t at, int64_t absent)
{
    const struct tir_attr *list = tir_attr_find(e->index, key);
    return list ? list->list[at] : absent;
}

static struct tir_value *plus(struct expansion *e, struct tir_value *v, int64_t n)
{
    return n ? tir_binary(&e->b, TIR_OP_ADD, v, tir_const_index(e->f, n)) : v;
}

static struct tir_value *by(struct expansion *e, enum tir_op op, struct tir_value *v, int64_t n)
{
    return n == 1 ? v : tir_binary(&e->b, op, v, tir_const_index(e->f, n));
}

static struct tir_value *with_all(struct expansion *e, enum tir_op op, struct tir_value *tile,
                                  struct tir_value *v)
{
    return tir_binary(&e->b, op, tile, tir_build1(&e->b, TIR_OP_BROADCAST, tile->type, &v, 1));
}

// Base pixels along a dimension of images.
static struct tir_value *count_along(struct expansion *e, uint32_t d)
{
    const struct tir_param *param = tir_param_of(e->f, e->index->operands[TIR_PIXEL_OF]);
    const struct tir_param_dim *dim = &param->dims[d];
    struct tir_value *size =
        dim->dim < 0 ? tir_const_index(e->f, dim->constant) : e->f->dims[dim->dim].value;
    size = plus(e, size, item(e, TIR_ATTR_high, d - 1, 0) - item(e, TIR_ATTR_low, d - 1, 0));
    return by(e, TIR_OP_CEILDIV, size, item(e, TIR_ATTR_strides, d, 1));
}

// The first pixel's number along a dimension of images.
static struct tir_value *first_along(struct expansion *e, uint32_t d)
{
    struct tir_value *at =
        plus(e, e->index->operands[TIR_PIXEL_FIRST + d], -item(e, TIR_ATTR_low, d - 1, 0));
    return by(e, TIR_OP_DIV, at, item(e, TIR_ATTR_strides, d, 1));
}

static uint32_t rank_of(const struct expansion *e)
{
    return e->index->operands[TIR_PIXEL_OF]->type->rank;
}

static void build_numbers(struct expansion *e)
{
    struct tir_value *first = e->index->operands[TIR_PIXEL_FIRST];
    for (uint32_t d = 1; d + 1 < rank_of(e); d++) {
        e->count[d] = count_along(e, d);
        first = tir_binary(&e->b, TIR_OP_MUL, first, e->count[d]);
        first = tir_binary(&e->b, TIR_OP_ADD, first, first_along(e, d));
    }
    e->numbers = tir_build1(&e->b, TIR_OP_IOTA, e->index->results[0]->type, NULL, 0);
    tir_set_int(e->f, e->numbers->def, TIR_ATTR_axis, 0);
    e->numbers = with_all(e, TIR_OP_ADD, e->numbers, first);
}

static struct tir_value *build_index(struct expansion *e)
{
    const uint32_t axis = (uint32_t)tir_attr_int(e->index, TIR_ATTR_axis, 0), last = rank_of(e) - 1;
    struct tir_value *i = e->numbers, *rest = NULL; // base pixels of a step along the axis
    for (uint32_t d = axis + 1; d < last; d++)
        rest = rest ? tir_binary(&e->b, TIR_OP_MUL, rest, e->count[d]) : e->count[d];
    if (rest)
        i = with_all(e, TIR_OP_DIV, i, rest);
    if (!axis)
        return i;
    i = with_all(e, TIR_OP_REM, i, e->count[axis]);
    const int64_t step = item(e, TIR_ATTR_strides, axis, 1),
                  low = item(e, TIR_ATTR_low, axis - 1, 0);
    struct tir_value *begin = e->index->operands[TIR_PIXEL_DZ + TIR_PIXEL_DIMS + axis - last];
    begin = begin ? plus(e, begin, low) : tir_const_index(e->f, low);
    if (step != 1)
        i = with_all(e, TIR_OP_MUL, i, tir_const_index(e->f, step));
    return with_all(e, TIR_OP_ADD, i, begin);
}

// Does the index tile stand where the numbers of its pixels are at hand?
static bool has_numbers(const struct expansion *e, const struct tir_inst *index)
{
    return e->index && e->index->block == index->block && is_same(e->index, index) &&
           e->index->results[0]->type == index->results[0]->type;
}

bool tir_expand_pixels(struct tir_func *f, struct tir_arena *scratch)
{
    VEC(struct tir_inst *) all = {0};
    struct expansion e = {.f = f};
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_PIXEL_INDEX)
            vec_push(scratch, &all, inst);
    const uint32_t *uses = tir_count_uses(scratch, f);
    vec_foreach(struct tir_inst *, it, &all) {
        struct tir_value *old = tir_result(*it);
        if (!uses[old->id]) // a tensor copy counts itself
            continue;
        const bool is_there = has_numbers(&e, *it);
        e.b = tir_builder_before(f, *it);
        e.index = *it;
        if (!is_there)
            build_numbers(&e);
        struct tir_value *index = build_index(&e);
        index->name = old->name;
        tir_replace_uses(f, old, index);
    }
    vec_foreach(struct tir_inst *, it, &all)
        tir_remove(*it);
    return all.len;
}
