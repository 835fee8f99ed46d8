// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Slices whose elements lie apart, and slices of sizes that are known at run time.
//
//     A[i:+32:2]          is A[i + 2 * iota(32)]: an index tile
//     A[i:+min(n, 32)]    is load(A[i:+32], mask = iota(32) < n): what is beyond reads as 0, and is
//                         not written
//
// Index tiles go together, element by element. So where several dimensions have a stride, or one
// has beside index tiles, all dimensions from the first to the last of these get tiles, each along
// a dimension of its own.
#include "front/lower/lower.h"

// The constant that the value is at most: of min(n, 32), also of min(min(n, 32), m). Of two, the
// second, whatever n happens to be. 0: none is known.
static int64_t upper_bound(const struct tir_value *v, uint32_t depth)
{
    int64_t known;
    if (tir_is_const_int(v, &known))
        return known;
    if (!v->def || v->def->op != TIR_OP_MIN || depth == 8)
        return 0;
    int64_t a = upper_bound(v->def->operands[0], depth + 1);
    int64_t b = upper_bound(v->def->operands[1], depth + 1);
    return b ? b : a;
}

bool lower_slice_size(struct lower *l, const struct ast_expr *e, struct slice *s, uint32_t d)
{
    struct val v = lower_expr(l, e);
    bool is_scalar = v.kind == VAL_IR && tir_type_is_scalar(v.ir->type) &&
                     v.ir->type->space == TIR_SPACE_VALUE && tir_elem_is_int(v.ir->type->elem);
    s->box[d] = v.kind == VAL_INT ? v.i : is_scalar ? upper_bound(v.ir, 0) : 0;
    s->limit[d] = is_scalar ? v.ir : NULL;
    if (v.kind == VAL_INT || s->box[d] > 0)
        return true;
    if (v.kind == VAL_POISON)
        return false;
    lower_error(l, e->span, TIR_E_CONSTANT,
                "the size of a slice must be a compile-time integer, not %s", lower_val_name(l, v));
    if (is_scalar)
        lower_note(l, e->span,
                   "`i:+min(n, 64)` takes n elements, at most 64: a tile of 64 whose rest is 0");
    return false;
}

bool lower_is_limited(const struct slice *s)
{
    for (uint32_t d = 0; d < TIR_MAX_RANK; d++)
        if (s->limit[d])
            return true;
    return false;
}

// The limit without bounds that a tile of `size` elements has anyway: of min(n, 64), n.
static struct tir_value *free_limit(struct tir_value *limit, int64_t size)
{
    int64_t bound;
    while (limit->def && limit->def->op == TIR_OP_MIN)
        if (tir_is_const_int(limit->def->operands[1], &bound) && bound >= size)
            limit = limit->def->operands[0];
        else if (tir_is_const_int(limit->def->operands[0], &bound) && bound >= size)
            limit = limit->def->operands[1];
        else
            break;
    return limit;
}

// mask, and before `limit` along the axis of the tile. That is repeated along the other axes last,
// so that it stays one condition for neighbours.
static struct tir_value *inside_limit(struct lower *l, const struct slice *s,
                                      struct tir_value *mask, struct tir_value *limit,
                                      uint32_t axis)
{
    limit = free_limit(limit, s->type->shape[axis]);
    const uint32_t rank = s->type->rank;
    int64_t shape[TIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        shape[d] = d == axis ? s->type->shape[d] : 1;
    const struct tir_type *type = tir_type_tile(l->cx->types, limit->type->elem, rank, shape);
    struct tir_value *inside =
        tir_binary(&l->b, TIR_OP_LT, build_iota(l, type, axis), build_splat(l, limit, type));
    if (!tir_type_same_shape(type, s->type))
        inside = build_splat(l, inside, tir_type_with_elem(l->cx->types, s->type, TIR_BOOL));
    if (mask && !mask->type->rank)
        mask = build_splat(l, mask, inside->type);
    if (!mask)
        return inside;
    inside = tir_in_layout(&l->b, inside, mask->type->layout);
    return tir_binary(&l->b, TIR_OP_AND, mask, inside);
}

struct tir_value *lower_limits(struct lower *l, const struct slice *s, struct tir_value *mask)
{
    for (uint32_t d = 0; d < s->base->type->rank; d++)
        if (s->limit[d])
            mask = inside_limit(l, s, mask, s->limit[d], s->axis[d]);
    return mask;
}

// begin + stride * (0, 1, ...), along dimension `axis` of rank `rank`.
static struct tir_value *build_steps(struct lower *l, struct tir_value *begin, int64_t stride,
                                     int64_t size, uint32_t rank, uint32_t axis)
{
    int64_t shape[TIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        shape[d] = d == axis ? size : 1;
    const struct tir_type *type = tir_type_tile(l->cx->types, begin->type->elem, rank, shape);
    struct tir_value *at =
        tir_binary(&l->b, TIR_OP_MUL, build_iota(l, type, axis),
                   build_splat(l, tir_const_int(l->f, begin->type, stride), type));
    return tir_binary(&l->b, TIR_OP_ADD, build_splat(l, begin, type), at);
}

// An index tile with its dimensions from `at` on among `rank`.
static struct tir_value *build_among(struct lower *l, struct tir_value *tile, uint32_t rank,
                                     uint32_t at)
{
    int64_t shape[TIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        shape[d] = d >= at && d < at + tile->type->rank ? tile->type->shape[d - at] : 1;
    return build_reshape(l, tile, rank, shape);
}

// The dimension of the result that each index gives, or the first of those that index tiles give
// together. Gives how many there are.
static uint32_t number_axes(struct slice *s, uint32_t given, uint32_t group)
{
    uint32_t rank = 0, first = 0;
    bool placed = false;
    for (uint32_t d = 0; d < given; d++) {
        if (s->box[d] < 0 && !placed) {
            placed = true;
            first = rank;
            rank += group;
        }
        s->axis[d] = s->box[d] < 0 ? first : rank;
        rank += s->box[d] > 0;
    }
    return rank;
}

// Tiles for the dimensions from first to last, in the order of the slice.
static void tile_between(struct lower *l, struct slice *s, uint32_t first, uint32_t last,
                         uint32_t rank)
{
    const uint32_t before = s->axis[first];
    for (uint32_t d = first; d <= last; d++) {
        const uint32_t axis = s->axis[d] - before;
        if (s->box[d] > 0)
            s->indices[d] = build_steps(l, s->indices[d], s->stride[d], s->box[d], rank, axis);
        else if (s->box[d] < 0)
            s->indices[d] = build_among(l, s->indices[d], rank, axis);
        s->box[d] = s->box[d] ? -1 : 0;
    }
}

bool lower_strides(struct lower *l, const struct ast_expr *e, struct slice *s, uint32_t given)
{
    uint32_t strided = 0, tiles = 0, first = given, last = 0;
    struct tir_type group;
    for (uint32_t d = 0; d < given; d++) {
        const bool apart = s->box[d] > 0 && s->stride[d] > 1, is_tile = s->box[d] < 0;
        strided += apart;
        tiles += is_tile;
        first = (apart || is_tile) && first == given ? d : first;
        last = apart || is_tile ? d : last;
    }
    if (!tir_index_shape(s->indices, s->box, given, &group))
        return true; // slice_shapes reports it
    uint32_t rank = number_axes(s, given, group.rank);
    if (!strided || rank > TIR_MAX_RANK)
        return true;
    if (strided == 1 && !tiles) {
        tile_between(l, s, first, last, 1);
        return true;
    }
    vec_foreach(const struct ast_index, it, &e->indices) {
        if (it->kind != AST_ONE || it->first->kind != AST_NONE)
            continue;
        lower_error(l, it->span, TIR_E_SLICE,
                    "`None` stands beside no more than one stride; index the result");
        return false;
    }
    for (uint32_t d = last + 1; d < given; d++)
        rank -= s->box[d] > 0;
    tile_between(l, s, first, last, rank - s->axis[first]);
    return true;
}
