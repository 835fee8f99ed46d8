// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which tiles cp.async can copy, and how many bytes at a time (PTX ISA, "cp.async").
//
// cp.async moves 4, 8 or 16 bytes between addresses aligned to that size. Each thread names the
// addresses of what it moves, so rows may be anywhere: an index tile is an address for each row.
// Bytes beyond the source's size become zeros: with size 0 that is an element outside of the
// tensor or of a mask. So a mask must have one value for all elements that move together.

#include "pass/async/cp_async.h"

#include "ir/crew.h"
#include "ir/walk.h"
#include "pass/async/pixels.h"
#include "pass/async/stride.h"
#include "pass/layout/staging.h"

#include <math.h>

bool tir_is_fill(const struct tir_value *v)
{
    if (v->kind != TIR_VALUE_CONST)
        return false;
    return tir_elem_is_float(v->type->elem) ? v->constant.f == 0 && !signbit(v->constant.f)
                                            : v->constant.i == 0;
}

bool tir_copied_of(const struct tir_value *v, struct tir_copied *copied)
{
    *copied = (struct tir_copied){0};
    if (v->def && v->def->op == TIR_OP_WHERE && tir_is_fill(v->def->operands[2])) {
        copied->where = v->def;
        copied->masks[1] = v->def->operands[0];
        v = v->def->operands[1];
    }
    struct tir_inst *load = v->def;
    if (!load || load->op != TIR_OP_LOAD || !tir_type_is_tile(v->type) ||
        tir_attr_find(load, TIR_ATTR_wraps) || // its elements are not in order
        tir_ref_base(load)->type->space != TIR_SPACE_GLOBAL ||
        (copied->where && copied->where->block != load->block))
        return false;
    copied->slice = load;
    copied->masks[0] = load->operands[TIR_LOAD_MASK];
    return true;
}

// The most elements, up to `most` (a power of two), that can be copied at a time: the start along
// the contiguous dimension, the row's length and both tiles are multiples of them.
static uint32_t copy_elements(const struct tir_func *f, const struct tir_ranges *ranges,
                              const struct tir_inst *slice, const struct tir_type *buffer,
                              uint32_t most)
{
    uint32_t last = buffer->rank - 1, base_rank = tir_ref_base(slice)->type->rank;
    uint64_t multiple = tir_range_divisor(ranges, tir_ref_indices(slice)[base_rank - 1]);
    const struct tir_param_dim *dim = &tir_param_of(f, tir_ref_base(slice))->dims[base_rank - 1];
    int64_t extent = dim->dim < 0 ? dim->constant : 0; // others follow from the alignment
    const struct tir_layout *l = buffer->layout;       // a view may have none
    const struct tir_iter *iter =
        l && l->first[l->rank] > l->first[last] ? &l->iters[l->first[l->rank] - 1] : NULL;
    uint32_t inner = iter && iter->stride == 1 ? iter->extent : 1;
    while (most > 1 &&
           (extent % most || multiple % most || inner % most || buffer->shape[last] % most))
        most /= 2;
    return most;
}

// The width as far as masks do not matter.
static uint32_t slice_width(const struct tir_func *f, const struct tir_target *target,
                            const struct tir_ranges *ranges, const struct tir_inst *slice,
                            const struct tir_type *buffer, const char **why)
{
    uint32_t size = tir_elems[buffer->elem].bits / 8;
    if (!size) {
        *why = "its elements are smaller than a byte";
        return 0;
    }
    if (buffer->elem != tir_ref_base(slice)->type->elem) {
        *why = "only tensor copies round";
        return 0;
    }
    if (!(target->features & TIR_HAS_CP_ASYNC)) {
        *why = "the target has no cp.async";
        return 0;
    }
    uint32_t aligned = tir_tensor_alignment(f, tir_ref_base(slice)), width = size;
    const uint32_t last = tir_ref_base(slice)->type->rank - 1;
    const int64_t row = tir_attr_find(slice, TIR_ATTR_box)->list[last];
    const bool has_rows = tir_contiguous_dim(slice, buffer->rank) == buffer->rank - 1;
    if (has_rows && aligned > size)
        width = size * copy_elements(f, ranges, slice, buffer, aligned / size);
    // What no variant has comes before what this one does not know.
    const bool has_words =
        size >= 4 || (has_rows && copy_elements(f, ranges, slice, buffer, 4 / size) * size == 4);
    *why = row < 0      ? tir_index_refusal(slice, last)
           : row == 0   ? "its innermost dimension is a single element"
           : !has_words ? "its start or its length along the contiguous dimension is not known to "
                          "be a multiple of 4 bytes"
                        : "its rows are not known to be aligned to 4 bytes";
    return width >= 4 && width <= 16 ? width : 0;
}

// Masks.

#define MASK_DEPTH 8 // operations that are looked through

// v, of tiles with `rank` dimensions, is a start and the number of the element along the last one:
// what divides the start. 0: it is not so.
static uint64_t counts_from(const struct tir_ranges *ranges, const struct tir_value *v,
                            uint32_t rank, uint32_t depth)
{
    const struct tir_inst *def = v->def;
    if (!def || !depth || v->type->rank != rank || !tir_elem_is_int(v->type->elem))
        return 0;
    switch (def->op) {
    case TIR_OP_IOTA:
        return tir_attr_int(def, TIR_ATTR_axis, 0) + 1 == rank ? UINT64_C(1) << 32 : 0;
    case TIR_OP_CAST:
    case TIR_OP_BROADCAST:
        return counts_from(ranges, def->operands[0], rank, depth - 1);
    case TIR_OP_ADD:
        for (uint32_t i = 0; i < 2; i++) {
            const uint64_t start = counts_from(ranges, def->operands[i], rank, depth - 1);
            const uint64_t step = tir_range_divisor(ranges, def->operands[1 - i]);
            if (start)
                return tir_gcd(start, step);
        }
        return 0;
    default:
        return 0;
    }
}

static uint32_t same_elements(const struct tir_ranges *ranges, const struct tir_value *v,
                              uint32_t most, uint32_t depth);

// Of `x < end`: elements are below end together where the start of x and end are multiples of
// them.
static uint32_t same_below(const struct tir_ranges *ranges, const struct tir_value *x,
                           const struct tir_value *end, uint32_t most)
{
    const uint64_t start = counts_from(ranges, x, x->type->rank, MASK_DEPTH);
    if (!start || same_elements(ranges, end, most, MASK_DEPTH) < most)
        return 1;
    return (uint32_t)tir_gcd(tir_gcd(start, tir_range_divisor(ranges, end)), most);
}

// How many neighbours along the last dimension certainly have one value: a power of two, up to
// most.
static uint32_t same_elements(const struct tir_ranges *ranges, const struct tir_value *v,
                              uint32_t most, uint32_t depth)
{
    const struct tir_type *t = v->type;
    const struct tir_inst *def = v->def;
    if (v->kind == TIR_VALUE_CONST || !tir_type_is_tile(t) || t->shape[t->rank - 1] == 1)
        return most;
    if (!def || !depth)
        return 1;
    if (def->op == TIR_OP_IOTA)
        return tir_attr_int(def, TIR_ATTR_axis, 0) + 1 == t->rank ? 1 : most;
    if (def->op == TIR_OP_BROADCAST || def->op == TIR_OP_CONVERT_LAYOUT)
        return same_elements(ranges, def->operands[0], most, depth - 1);
    if (!tir_is_elementwise(def))
        return 1;
    uint32_t same = most;
    for (uint32_t i = 0; i < def->operand_count; i++)
        same = TIR_MIN(same, same_elements(ranges, def->operands[i], most, depth - 1));
    const bool is_below = def->op == TIR_OP_LT || def->op == TIR_OP_GE;
    const bool is_above = def->op == TIR_OP_GT || def->op == TIR_OP_LE;
    if (same == 1 && (is_below || is_above) && tir_elem_is_int(def->operands[0]->type->elem))
        same = same_below(ranges, def->operands[is_above], def->operands[!is_above], most);
    return same;
}

// Why the program may see another result than of its load; NULL: it cannot.
static const char *refuse_load(const struct tir_func *f, const struct tir_inst *load)
{
    const struct tir_value *pad = load->operands[TIR_LOAD_PAD];
    if (!tir_is_only_read(f, tir_ref_base(load)))
        return "the tensor is written too";
    return pad && !tir_is_fill(pad) ? "it has a pad other than 0" : NULL;
}

uint32_t tir_copy_width(const struct tir_func *f, const struct tir_target *target,
                        const struct tir_ranges *ranges, const struct tir_copied *copied,
                        const struct tir_type *buffer, const char **why)
{
    const struct tir_inst *slice = copied->slice;
    const char *refusal = slice->op == TIR_OP_LOAD ? refuse_load(f, slice) : NULL;
    if (refusal) {
        *why = refusal;
        return 0;
    }
    const uint32_t size = tir_elems[buffer->elem].bits / 8;
    uint32_t width = slice_width(f, target, ranges, slice, buffer, why);
    if (!width)
        return 0;
    for (uint32_t i = 0; i < TIR_COUNT_OF(copied->masks); i++)
        if (copied->masks[i])
            width = size * same_elements(ranges, copied->masks[i], width / size, MASK_DEPTH);
    *why = "its mask may change within 4 bytes";
    return width < 4 ? 0 : width;
}

uint32_t tir_tile_copy_width(const struct tir_func *f, const struct tir_target *target,
                             const struct tir_ranges *ranges, const struct tir_value *tile,
                             const char **why)
{
    struct tir_copied copied;
    struct tir_type buffer = *tile->type;
    buffer.space = TIR_SPACE_SHARED;
    buffer.layout = tir_layout_memory(f->module->types, buffer.rank, buffer.shape,
                                      tir_elems[buffer.elem].bits, 0);
    *why = "it is computed";
    return tir_copied_of(tile, &copied) ? tir_copy_width(f, target, ranges, &copied, &buffer, why)
                                        : 0;
}

// Copies.

// The tile in the layout in which threads share the copy, where it is known first.
static struct tir_value *laid_out_for(struct tir_func *f, struct tir_inst *copy,
                                      struct tir_value *v, const struct tir_layout *l)
{
    if (!v || v->kind == TIR_VALUE_CONST || !tir_type_is_tile(v->type) || v->type->layout == l)
        return v;
    struct tir_builder b = tir_builder_before(f, copy);
    if (v->def)
        b = (struct tir_builder){f, v->def->block, v->def->next, copy->span};
    struct tir_value *operands[] = {v, NULL};
    if (v->def && v->def->op == TIR_OP_PIXEL_INDEX)
        return tir_pixels_in_layout(&b, v, l);
    const struct tir_type *type = tir_type_with_layout(f->module->types, v->type, l);
    struct tir_value *y = tir_build1(&b, TIR_OP_CONVERT_LAYOUT, type, operands, 2);
    y->name = v->name;
    return y;
}

void tir_lay_out_tiles(struct tir_func *f, struct tir_inst *access, uint32_t mask,
                       const struct tir_layout *l)
{
    const uint32_t first = tir_fixed_count(access) + 1;
    access->operands[mask] = laid_out_for(f, access, access->operands[mask], l);
    for (uint32_t d = 0; d < tir_ref_base(access)->type->rank; d++) {
        struct tir_value **index = &access->operands[first + d];
        const struct tir_type *t = (*index)->type;
        if (tir_type_is_tile(t))
            *index = laid_out_for(f, access, *index,
                                  tir_layout_of_index(f->module->types, t->rank, t->shape, l,
                                                      tir_slice_dim(access, d)));
    }
}

const struct tir_layout *tir_copy_layout(struct tir_func *f, const struct tir_inst *copy,
                                         uint32_t width)
{
    const struct tir_type *t = copy->operands[TIR_COPY_TO]->type;
    const uint32_t elements = width * 8 / tir_elems[t->elem].bits;
    return tir_layout_copy(f->module->types, t->rank, t->shape, TIR_MAX(1, elements),
                           tir_crew_of(f, copy).warps);
}

struct tir_inst *tir_copy_build(struct tir_func *f, const struct tir_copied *copied,
                                struct tir_inst *store)
{
    struct tir_inst *load = copied->slice;
    struct tir_builder b = tir_builder_before(f, store);
    uint32_t rank = tir_ref_base(load)->type->rank;
    struct tir_value *operands[TIR_COPY_FIXED + 1 + TIR_MAX_RANK] = {tir_ref_base(store)};
    operands[TIR_COPY_FIXED] = tir_ref_base(load);
    memcpy(operands + TIR_COPY_FIXED + 1, tir_ref_indices(load), rank * sizeof(*operands));
    struct tir_value *const *masks = copied->masks;
    operands[TIR_COPY_MASK] = masks[0] && masks[1] ? tir_binary(&b, TIR_OP_AND, masks[0], masks[1])
                              : masks[0]           ? masks[0]
                                                   : masks[1];
    struct tir_inst *copy =
        tir_build(&b, TIR_OP_COPY_ASYNC, operands, TIR_COPY_FIXED + 1 + rank, NULL, 0, 0);
    const struct tir_attr *box = tir_attr_find(load, TIR_ATTR_box);
    tir_set_list(f, copy, TIR_ATTR_box, box->list, box->list_count);
    tir_copy_attr(f, copy, load, TIR_ATTR_cache);
    copy->span = load->span;
    tir_remove(store);
    if (copied->where)
        tir_remove(copied->where);
    tir_remove(load);
    return copy;
}

void tir_copy_set_width(struct tir_func *f, struct tir_inst *copy, uint32_t width)
{
    tir_set_int(f, copy, TIR_ATTR_width, width);
    tir_lay_out_tiles(f, copy, TIR_COPY_MASK, tir_copy_layout(f, copy, width));
}
