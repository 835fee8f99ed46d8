// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The front end makes `start + s * iota` of a slice with a stride, an index tile like any other. A
// tensor map has strides, of up to 8 and not along the innermost dimension, so a tensor copy takes
// the start and the stride instead (CUDA driver API, cuTensorMapEncodeTiled, elementStrides).
//
// Tiles of 32 bits or more count: a sum of fewer could wrap to an element that is there.

#include "pass/async/stride.h"

#include "pass/async/pixels.h"

#define DEPTH 8 // operations that are looked through

static bool is_line(const struct tir_type *t)
{
    uint32_t sides = 0;
    for (uint32_t d = 0; d < t->rank; d++)
        sides += t->shape[d] > 1;
    return sides <= 1;
}

static bool is_wide(const struct tir_type *t)
{
    return tir_elems[t->elem].kind == TIR_KIND_SIGNED && tir_elems[t->elem].bits >= 32;
}

// v is linear in the number of the element, with factor *by; that is 0 for a scalar.
static bool factor_of(const struct tir_value *v, uint32_t depth, int64_t *by)
{
    int64_t a, b, factor;
    const struct tir_inst *def = v->def;
    *by = 0;
    if (v->kind == TIR_VALUE_CONST || !tir_type_is_tile(v->type))
        return true;
    if (!def || !depth || !is_line(v->type) || !is_wide(v->type))
        return false;
    switch (def->op) {
    case TIR_OP_IOTA:
        *by = v->type->shape[tir_attr_int(def, TIR_ATTR_axis, 0)] > 1;
        return true;
    case TIR_OP_CAST:
        return is_wide(def->operands[0]->type) &&
               tir_elems[def->operands[0]->type->elem].bits <= tir_elems[v->type->elem].bits &&
               factor_of(def->operands[0], depth - 1, by);
    case TIR_OP_BROADCAST:
    case TIR_OP_RESHAPE:
    case TIR_OP_CONVERT_LAYOUT:
        return factor_of(def->operands[0], depth - 1, by);
    case TIR_OP_ADD:
        return factor_of(def->operands[0], depth - 1, &a) &&
               factor_of(def->operands[1], depth - 1, &b) && tir_add_checked(a, b, by);
    case TIR_OP_MUL:
        for (uint32_t i = 0; i < 2; i++)
            if (tir_is_const_int(def->operands[1 - i], &factor))
                return factor_of(def->operands[i], depth - 1, &a) && tir_mul_checked(a, factor, by);
        return false;
    default:
        return false;
    }
}

// The element of such a tile whose number is 0.
static struct tir_value *start_of(struct tir_builder *b, struct tir_value *v)
{
    const struct tir_type *t = tir_type_scalar(b->f->module->types, v->type->elem);
    const struct tir_inst *def = v->def;
    if (!tir_type_is_tile(v->type))
        return v;
    if (v->kind == TIR_VALUE_CONST)
        return tir_const_element(b->f, v);
    if (def->op == TIR_OP_IOTA)
        return tir_const_int(b->f, t, 0);
    struct tir_value *x = start_of(b, def->operands[0]);
    if (def->op == TIR_OP_CAST)
        return tir_build1(b, TIR_OP_CAST, t, &x, 1);
    if (def->op != TIR_OP_ADD && def->op != TIR_OP_MUL)
        return x;
    struct tir_value *y = start_of(b, def->operands[1]);
    int64_t number;
    for (uint32_t i = 0; i < 2; i++) // 0 + y is y, and 0 * y is 0
        if (tir_is_const_int(i ? y : x, &number) && number == 0)
            return (def->op == TIR_OP_ADD) == (i == 0) ? y : x;
    return tir_binary(b, def->op, x, y);
}

// The distance between neighbours of an index tile that is a start and multiples of it, as the
// slice `i:+n:s` is. 0: it is not so.
static int64_t stride_of(const struct tir_value *index)
{
    int64_t by;
    return factor_of(index, DEPTH, &by) ? by : 0;
}

const char *tir_index_refusal(const struct tir_inst *slice, uint32_t d)
{
    const int64_t stride = stride_of(tir_ref_indices(slice)[d]);
    if (stride <= 1)
        return "an index tile names its elements";
    if (d + 1 == tir_ref_base(slice)->type->rank)
        return "its slice has a stride along the innermost dimension";
    return stride > TIR_MAX_STRIDE ? "its slice has a stride above 8"
                                   : "several index tiles name its elements";
}

// Do the index tiles of the slice each lie along a dimension of their own, in order, with no other
// dimension of the tile between them? Then it is the tile that boxes at the same places give.
static bool are_crossed(const struct tir_inst *slice)
{
    const struct tir_attr *box = tir_attr_find(slice, TIR_ATTR_box);
    uint32_t tiles = 0, seen = 0;
    bool ended = false;
    for (uint32_t d = 0; d < box->list_count; d++)
        tiles += box->list[d] < 0;
    for (uint32_t d = 0; d < box->list_count; d++) {
        ended |= seen && box->list[d] > 0;
        if (box->list[d] >= 0)
            continue;
        const struct tir_type *t = tir_ref_indices(slice)[d]->type;
        if (ended || t->rank != tiles || t->shape[seen++] != tir_type_count(t))
            return false;
    }
    return true;
}

bool tir_counts_along(const struct tir_inst *load, uint32_t d)
{
    const struct tir_value *index = tir_ref_indices(load)[d];
    const int64_t stride = stride_of(index);
    return load->op == TIR_OP_LOAD && tir_type_is_tile(index->type) && are_crossed(load) &&
           d + 1 < tir_ref_base(load)->type->rank && stride >= 1 && stride <= TIR_MAX_STRIDE;
}

void tir_strides_of(const struct tir_inst *slice, int64_t strides[TIR_MAX_RANK])
{
    const struct tir_attr *box = tir_attr_find(slice, TIR_ATTR_box);
    uint32_t dim = 0;
    if (tir_pixels_of(slice)) { // rows of the tile, whose steps are those of images
        strides[0] = strides[1] = 1;
        return;
    }
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d])
            strides[dim++] = tir_counts_along(slice, d) ? stride_of(tir_ref_indices(slice)[d])
                                                        : tir_slice_stride(slice, d);
}

void tir_state_strides(struct tir_func *f, struct tir_inst *copy)
{
    const struct tir_attr *old = tir_attr_find(copy, TIR_ATTR_box);
    if (tir_pixels_of(copy)) {
        tir_state_pixels(f, copy);
        return;
    }
    struct tir_builder b = tir_builder_before(f, copy);
    int64_t box[TIR_MAX_RANK], strides[TIR_MAX_RANK], most = 1;
    const uint32_t rank = old->list_count;
    memcpy(box, old->list, rank * sizeof(*box));
    for (uint32_t d = 0; d < rank; d++) {
        struct tir_value **index = &tir_ref_indices(copy)[d];
        strides[d] = box[d] < 0 ? stride_of(*index) : 1;
        most = TIR_MAX(most, strides[d]);
        if (box[d] >= 0)
            continue;
        box[d] = tir_type_count((*index)->type);
        *index = start_of(&b, *index);
    }
    tir_set_list(f, copy, TIR_ATTR_box, box, rank);
    if (most > 1)
        tir_set_list(f, copy, TIR_ATTR_strides, strides, rank);
}
