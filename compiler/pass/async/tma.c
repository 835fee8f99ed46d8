// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which slices tensor copies can move (PTX ISA, "Tensors"; CUDA driver API,
// cuTensorMapEncodeTiled).
//
// A tensor map holds address and strides as multiples of 16 bytes and counts in whole elements from
// a contiguous innermost dimension. A copy moves a box; its innermost start and size are multiples
// of 16 bytes too: an H200 faults on other starts, though ptxas takes them. Boxes larger than 256
// are split when they are lowered. Outside the tensor loads give zeros and stores are dropped.

#include "pass/async/tma.h"

#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/target.h"
#include "pass/async/pixels.h"
#include "pass/async/stride.h"
#include "tir/artifact.h"

bool tir_reads_zero_outside(const struct tir_inst *load)
{
    const struct tir_value *pad = load->operands[TIR_LOAD_PAD];
    if (load->operands[TIR_LOAD_MASK])
        return false;
    if (!pad)
        return true;
    if (pad->kind != TIR_VALUE_CONST)
        return false;
    return tir_elem_is_float(pad->type->elem) ? pad->constant.f == 0 : pad->constant.i == 0;
}

// The layout of such a buffer whose last `dims` dimensions are rows one after the other, as if all
// but the last were one; NULL: there is none.
static const struct tir_layout *in_rows(struct tir_types *types, const struct tir_type *t,
                                        uint32_t dims)
{
    int64_t shape[TIR_MAX_RANK], rows = 1;
    const uint32_t before = t->rank - dims;
    memcpy(shape, t->shape, sizeof shape);
    for (uint32_t d = before; d + 1 < t->rank; d++)
        rows *= t->shape[d];
    shape[before] = rows;
    shape[before + 1] = t->shape[t->rank - 1];
    const struct tir_layout *l =
        tir_layout_memory(types, before + 2, shape, tir_elems[t->elem].bits, t->layout->swizzle);
    return l ? tir_layout_reshape(types, l, t->rank, t->shape) : NULL;
}

const struct tir_layout *tir_plain_memory(struct tir_types *types, const struct tir_value *buffer)
{
    const struct tir_inst *view =
        buffer->def && buffer->def->op == TIR_OP_VIEW ? buffer->def : NULL;
    const struct tir_type *t = view ? tir_ref_base(view)->type : buffer->type;
    const struct tir_attr *box = view ? tir_attr_find(view, TIR_ATTR_box) : NULL;
    if (!t->layout || t->rank < 2 || (box && box->list[t->rank - 1] != t->shape[t->rank - 1]))
        return NULL;
    for (uint32_t dims = 2; dims <= t->rank; dims++)
        if (in_rows(types, t, dims) == t->layout)
            return t->layout;
    return NULL;
}

int64_t tir_tma_divisor(int64_t n, int64_t most)
{
    int64_t d = TIR_MIN(n, most);
    while (n % d)
        d--;
    return d;
}

int64_t tir_tma_side(struct tir_iter inner, int64_t size, int64_t dense, int64_t most)
{
    if (size == 1 || inner.stride != dense)
        return 1;
    return tir_tma_divisor((int64_t)tir_gcd((uint64_t)size, inner.extent), most);
}

static int64_t byte_along(const struct tir_layout *memory, uint32_t d, int64_t at, int64_t bits)
{
    int64_t byte = 0;
    for (uint32_t i = memory->first[d]; i < memory->first[d + 1]; i++)
        byte += at / tir_layout_weight(memory, d, i) % memory->iters[i].extent *
                memory->iters[i].stride * bits / 8;
    return byte;
}

// The boxes are those of lower/tma.c.
const char *tir_tma_boxes_refusal(const struct tir_layout *memory, const int64_t *box,
                                  const int64_t *strides, enum tir_elem elem)
{
    const int64_t bits = TIR_MAX(8, tir_elems[elem].bits);
    int64_t dense = 1, copies = 1;
    for (uint32_t d = memory->rank; d-- > 0;) {
        if (box[d] <= 0)
            continue;
        const uint32_t end = memory->first[d + 1];
        const struct tir_iter inner =
            end > memory->first[d] ? memory->iters[end - 1] : (struct tir_iter){1, 1, TIR_AXIS_REG};
        const int64_t most = TIR_TMA_MAX_BOX / (strides ? strides[d] : 1);
        const int64_t side = tir_tma_side(inner, box[d], dense, most);
        const int64_t row = side * bits / 8;
        dense *= side;
        copies *= box[d] / side;
        if (copies > TIR_BUDGET_TILE_COPIES)
            return "its layout takes more than 64 copies";
        if (d + 1 == memory->rank && row % TIR_TMA_ROW_BYTES)
            return "the rows of its boxes are no multiple of 16 bytes";
        if (d + 1 == memory->rank && memory->swizzle && row > memory->swizzle)
            return "its rows are longer than the swizzle's";
        for (int64_t at = 0; at < box[d]; at += side)
            if (byte_along(memory, d, at, bits) % TIR_TMA_TENSOR_BYTES)
                return "a box of it begins at no multiple of 128 bytes";
    }
    return NULL;
}

const char *tir_tma_memory_refusal(struct tir_types *types, const struct tir_value *buffer,
                                   const int64_t *strides)
{
    const struct tir_layout *memory = tir_plain_memory(types, buffer);
    const struct tir_inst *view =
        buffer->def && buffer->def->op == TIR_OP_VIEW ? buffer->def : NULL;
    if (!memory)
        return "its buffer has a layout of its own";
    if (tir_alias_offset(view ? tir_ref_base(view) : buffer) % TIR_TMA_TENSOR_BYTES)
        return "it is an alias that begins at no multiple of 128 bytes";
    if (view && tir_type_bytes(buffer->type) % TIR_TMA_TENSOR_BYTES)
        return "its slots are no multiple of 128 bytes";
    return tir_tma_boxes_refusal(memory,
                                 view ? tir_attr_find(view, TIR_ATTR_box)->list : memory->shape,
                                 view ? NULL : strides, buffer->type->elem);
}

const char *tir_tma_start_refusal(const struct tir_ranges *ranges, const struct tir_inst *access)
{
    const struct tir_type *t = tir_ref_base(access)->type;
    const uint64_t start = tir_range_divisor(ranges, tir_ref_indices(access)[t->rank - 1]);
    return start * tir_elems[t->elem].bits % 128
               ? "its innermost start is not known to be a multiple of 16 bytes"
               : NULL;
}

static const char *refuse_box(const struct tir_inst *access)
{
    if (tir_attr_find(access, TIR_ATTR_wraps))
        return "its columns turn";
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    const struct tir_value *base = tir_ref_base(access);
    uint32_t last = base->type->rank - 1, bits = tir_elems[base->type->elem].bits;
    if (base->type->rank > TIR_TMA_MAX_RANK)
        return "a tensor map has 5 dimensions at most";
    const struct tir_inst *pixels = tir_pixels_of(access);
    if (pixels && pixels->results[0]->type->shape[0] > TIR_TMA_MAX_PIXELS)
        return "a tensor copy has 1024 pixels at most";
    for (uint32_t d = 0; d <= last && !pixels; d++)
        if (box->list[d] < 0 && !tir_counts_along(access, d))
            return tir_index_refusal(access, d);
    if (box->list[last] == 0)
        return "its innermost dimension is a single element";
    if (box->list[last] * bits % 128)
        return "its rows are not a multiple of 16 bytes";
    return NULL;
}

static bool is_tensor_copy(const struct tir_inst *inst)
{
    return (inst->op == TIR_OP_COPY_ASYNC || inst->op == TIR_OP_STORE_ASYNC) &&
           tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_NONE) == TIR_WORD_engine_tma;
}

static bool has_same_strides(const struct tir_inst *a, const struct tir_inst *b)
{
    for (uint32_t d = 0; d < tir_ref_base(a)->type->rank; d++)
        if (tir_slice_stride(a, d) != tir_slice_stride(b, d))
            return false;
    return true;
}

// As many pixels, from the same corners.
static bool has_same_pixels(const struct tir_inst *a, const struct tir_inst *b)
{
    const bool both = a->op == TIR_OP_COPY_ASYNC && tir_copies_pixels(a) &&
                      b->op == TIR_OP_COPY_ASYNC && tir_copies_pixels(b);
    return !both ||
           (tir_same_list(a, b, TIR_ATTR_low) && tir_same_list(a, b, TIR_ATTR_high) &&
            a->operands[TIR_COPY_TO]->type->shape[0] == b->operands[TIR_COPY_TO]->type->shape[0]);
}

// Would both take the same map? Their swizzles follow from their boxes.
static bool shares_map(const struct tir_inst *a, const struct tir_inst *b)
{
    return tir_ref_base(a) == tir_ref_base(b) && tir_same_list(a, b, TIR_ATTR_box) &&
           has_same_strides(a, b) && has_same_pixels(a, b);
}

// Tensor maps of f if the copy joins those that there are.
static uint32_t count_maps(const struct tir_func *f, const struct tir_inst *access)
{
    const struct tir_inst *found[TIR_MAX_MAPS] = {access};
    uint32_t count = 1;
    tir_foreach_inst(inst, f) {
        uint32_t i = 0;
        while (is_tensor_copy(inst) && i < count && !shares_map(found[i], inst))
            i++;
        if (!is_tensor_copy(inst) || i < count)
            continue;
        if (count == TIR_MAX_MAPS)
            return count + 1;
        found[count++] = inst;
    }
    return count;
}

const char *tir_tma_maps_refusal(const struct tir_func *f, const struct tir_inst *access,
                                 uint32_t maps)
{
    return count_maps(f, access) + maps - 1 > TIR_MAX_MAPS
               ? "the kernel has as many tensor maps as there can be"
               : NULL;
}

// A tensor copy to a tensor begins inside of it in every dimension: an H200 faults on others. One
// from a tensor may begin before it.
static const char *refuse_begin(const struct tir_ranges *ranges, const struct tir_inst *store)
{
    for (uint32_t d = 0; d < tir_ref_base(store)->type->rank; d++)
        if (!tir_range_has_no_sign(ranges, tir_ref_indices(store)[d]))
            return "it may begin before the tensor";
    return NULL;
}

const char *tir_tma_refusal(const struct tir_func *f, const struct tir_target *target,
                            const struct tir_ranges *ranges, const struct tir_inst *access)
{
    const struct tir_param *param = tir_param_of(f, tir_ref_base(access));
    if (!(target->features & TIR_HAS_TMA))
        return "the target has no tensor copies";
    if (!param)
        return "it is not a tensor";
    if (!param->value->type->rank)
        return "the tensor has no dimensions";
    if (access->op == TIR_OP_STORE || access->op == TIR_OP_ATOMIC) {
        if (access->operands[TIR_STORE_MASK])
            return "it has a mask";
    } else if (param->direction != TIR_IN) {
        return "the tensor is written too";
    } else if (access->op == TIR_OP_LOAD ? !tir_reads_zero_outside(access)
                                         : access->operands[TIR_COPY_MASK] != NULL) {
        return "it has a mask or a pad other than 0";
    }
    // What no variant has comes before what this one does not know.
    const char *no_box = refuse_box(access);
    if (no_box)
        return no_box;
    if (tir_tensor_alignment(f, param->value) < 16)
        return "the tensor is not known to be aligned to 16 bytes";
    const bool stores = access->op == TIR_OP_STORE || access->op == TIR_OP_ATOMIC;
    const char *no_begin = stores ? refuse_begin(ranges, access) : NULL;
    const char *no_map = no_begin ? no_begin : tir_tma_maps_refusal(f, access, 1);
    return no_map ? no_map : tir_tma_start_refusal(ranges, access);
}
