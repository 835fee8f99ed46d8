// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arguments: each is checked against its parameter and packed.
//
// One walk over the arguments does everything: it checks each against its parameter, learns the
// named dimensions, gathers the facts that variants rely on, and writes the parameter block. Then
// the conditions. All state is on the stack; text is made only for errors.

#include <math.h>
#include <string.h>

#include "dlpack.h"
#include "error.h"
#include "formula.h"
#include "packing.h"

#define REFUSE(p, ...) tir_error_set((p)->error, TIR_ERR_INVALID, __VA_ARGS__)

// ---- layout

static void place(struct launch_layout *layout, uint32_t *count, size_t *at, size_t size)
{
    *at = (*at + size - 1) / size * size;
    layout->at[(*count)++] = (uint16_t)*at;
    *at += size;
}

static void add_formula(struct launch_layout *layout, const tir_formula *formula)
{
    for (uint32_t i = 0; i < formula->count; i++)
        if (formula->ops[i].code == TIR_FORMULA_SCALAR)
            layout->decisive |= (uint64_t)1 << formula->ops[i].value;
}

static void add_formulas(struct launch_layout *layout, const tir_artifact_kernel *info)
{
    for (uint32_t i = 0; i < info->condition_count; i++)
        add_formula(layout, &info->conditions[i].holds);
    for (uint32_t i = 0; i < info->variant_count; i++) {
        const tir_artifact_variant *variant = &info->variants[i];
        add_formula(layout, &variant->when);
        add_formula(layout, &variant->cost);
        for (int axis = 0; axis < 3; axis++)
            add_formula(layout, &variant->grid[axis]);
    }
    for (uint32_t i = 0; i < info->sequence_count; i++) {
        const tir_artifact_sequence *sequence = &info->sequences[i];
        add_formula(layout, &sequence->cost);
        for (uint32_t s = 0; s < sequence->scratch_count; s++)
            for (uint32_t d = 0; d < sequence->scratch[s].rank; d++)
                add_formula(layout, &sequence->scratch[s].extents[d]);
    }
}

void tir_layout_init(struct launch_layout *layout, const tir_artifact_kernel *info,
                     const tir_allocator *allocator)
{
    uint32_t parts = 0, key = 1;
    uint32_t maps = 0; // of a variant, at most
    size_t at = 0, bytes = 0;
    add_formulas(layout, info);
    for (uint32_t i = 0; i < info->param_count; i++) {
        const tir_artifact_param *param = &info->params[i];
        const bool is_scalar = param->kind == TIR_PARAM_SCALAR;
        const uint32_t first = parts;
        place(layout, &parts, &at, is_scalar ? tir_element_bits(param->element) / 8 : 8);
        layout->param[i] = layout->at[first];
        for (uint32_t d = 0; d < param->rank; d++)
            place(layout, &parts, &at, 8);
        key += is_scalar ? layout->decisive >> i & 1 : 1 + 2 * param->rank;
        if (is_scalar)
            layout->scalars[layout->scalar_count++] = (uint8_t)i;
        else
            layout->tensors[layout->tensor_count++] =
                (struct tensor_place){(uint8_t)i, (uint8_t)param->rank, layout->param[i]};
        if (!is_scalar && param->direction != TIR_DIRECTION_IN)
            layout->outputs[layout->output_count++] = (uint8_t)i;
    }
    for (uint32_t i = 0; i < info->dim_count; i++)
        place(layout, &parts, &at, 8);
    bytes = at; // of a kernel of sequences alone
    for (uint32_t i = 0; i < info->variant_count; i++) {
        const tir_artifact_variant *variant = &info->variants[i];
        const size_t size = tir_artifact_param_bytes(info, variant);
        bytes = variant->is_open ? TIR_MAX_PARAM_BYTES : size > bytes ? size : bytes;
        const uint32_t own = variant->is_open ? TIR_MAX_MAPS : variant->map_count;
        maps = own > maps ? own : maps;
    }
    layout->part_count = parts;
    layout->has_plans = key <= TIR_PLAN_KEY_WORDS;
    if (layout->has_plans)
        tir_plans_init(&layout->plans, allocator, key, tir_packing_head_words(info),
                       (uint32_t)bytes, maps ? parts + maps + TIR_WATCHDOG_BYTES / 8 + 1 : 0);
}

void tir_layout_finish(struct launch_layout *layout)
{
    if (layout->has_plans)
        tir_plans_finish(&layout->plans);
}

static void put(struct packing *p, const void *value, size_t size)
{
    uint8_t *at = p->block + p->kernel->layout->at[p->part_count];
    memcpy(at, value, size);
    p->parts[p->part_count++] = at;
}

static bool accepts(tir_element param, tir_element arg)
{
    return param == arg || (param == TIR_ELEMENT_TF32 && arg == TIR_ELEMENT_F32);
}

// ---- scalars

static bool fits_signed(int64_t value, uint32_t bits)
{
    return bits == 64 || (value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1));
}

static bool fits_unsigned(uint64_t value, uint32_t bits)
{
    return bits == 64 || value >> bits == 0;
}

// Checks a scalar and writes it into the block.
static tir_status pack_scalar(struct packing *p, uint32_t index, const tir_rt_arg *arg)
{
    const tir_artifact_param *param = &p->info->params[index];
    const tir_rt_scalar *scalar = &arg->as.scalar;
    uint32_t bits = tir_element_bits(param->element);
    if (arg->kind != TIR_RT_SCALAR)
        return REFUSE(p, "%.*s: a scalar is needed, not a tensor", TIR_STR(param->name));
    if (!accepts(param->element, scalar->element))
        return REFUSE(p, "%.*s: type must be %s, not %s", TIR_STR(param->name),
                      tir_element_name(param->element), tir_element_name(scalar->element));
    bool fits;
    float narrow = 0;
    const void *bytes = &scalar->value; // little endian: the low bytes come first
    if (param->element <= TIR_ELEMENT_I64) {
        fits = fits_signed(scalar->value.i, bits);
    } else if (param->element == TIR_ELEMENT_BOOL) {
        fits = scalar->value.i == 0 || scalar->value.i == 1;
    } else if (param->element == TIR_ELEMENT_F64) {
        fits = true;
    } else if (param->element == TIR_ELEMENT_F32 || param->element == TIR_ELEMENT_TF32) {
        narrow = (float)scalar->value.f;
        fits = !isinf(narrow) || isinf(scalar->value.f);
        bytes = &narrow;
    } else {
        fits = fits_unsigned(scalar->value.u, bits);
    }
    bool huge = param->element == TIR_ELEMENT_U64 && scalar->value.u > INT64_MAX;
    p->values[index] = huge ? INT64_MAX : scalar->value.i;
    if (!fits)
        return REFUSE(p, "%.*s: the value does not fit %s", TIR_STR(param->name),
                      tir_element_name(param->element));
    memcpy(p->block + p->kernel->layout->param[index], bytes, bits / 8);
    return TIR_OK;
}

// ---- tensors

static const tir_rt_tensor *refuse_argument(struct packing *p, const tir_artifact_param *param,
                                            const char *wrong)
{
    REFUSE(p, "%.*s: %s", TIR_STR(param->name), wrong);
    return NULL;
}

static const tir_rt_tensor *other_tensor(struct packing *p, const tir_artifact_param *param,
                                         const tir_rt_arg *arg, tir_rt_tensor *own)
{
    bool read_only;
    if (arg->kind == TIR_RT_SCALAR)
        return refuse_argument(p, param, "a tensor is needed, not a scalar");
    if (arg->kind != TIR_RT_DLPACK && arg->kind != TIR_RT_DLPACK_VERSIONED)
        return refuse_argument(p, param, "the argument is of no known kind");
    const char *wrong = tir_dlpack_view(p->device, arg, own, &read_only);
    if (!wrong && read_only && param->direction != TIR_DIRECTION_IN)
        wrong = "a read-only tensor cannot be an output";
    return wrong ? refuse_argument(p, param, wrong) : own;
}

// The tensor that is the argument for a parameter; it may lie in `own`. NULL: there is none.
static const tir_rt_tensor *tensor_of(struct packing *p, const tir_artifact_param *param,
                                      const tir_rt_arg *arg, tir_rt_tensor *own)
{
    return arg->kind == TIR_RT_TENSOR ? &arg->as.tensor : other_tensor(p, param, arg, own);
}

static tir_status check_type(struct packing *p, const tir_artifact_param *param,
                             const tir_rt_tensor *tensor)
{
    if (!accepts(param->element, tensor->element))
        return REFUSE(p, "%.*s: element type must be %s, not %s", TIR_STR(param->name),
                      tir_element_name(param->element), tir_element_name(tensor->element));
    if (tensor->rank != param->rank)
        return REFUSE(p, "%.*s: rank must be %u, not %u", TIR_STR(param->name), param->rank,
                      tensor->rank);
    if (tensor->rank && !tensor->shape)
        return REFUSE(p, "%.*s: the shape is NULL", TIR_STR(param->name));
    return TIR_OK;
}

static tir_status learn_dims(struct packing *p, uint32_t index, const int64_t *shape)
{
    const tir_artifact_param *param = &p->info->params[index];
    for (uint32_t d = 0; d < param->rank; d++) {
        const tir_extent *extent = &param->extents[d];
        if (shape[d] < 0)
            return REFUSE(p, "%.*s: dimension %u is negative", TIR_STR(param->name), d);
        if (shape[d] > TIR_MAX_EXTENT)
            return REFUSE(p, "%.*s: dimension %u is %lld, more than 2^48", TIR_STR(param->name), d,
                          (long long)shape[d]);
        if (extent->dim == TIR_EXTENT_FIXED) {
            if (shape[d] != extent->fixed)
                return REFUSE(p, "%.*s: dimension %u must be %lld, not %lld", TIR_STR(param->name),
                              d, (long long)extent->fixed, (long long)shape[d]);
            continue;
        }
        struct origin *origin = &p->origins[extent->dim];
        if (!origin->known) {
            *origin = (struct origin){1, (uint8_t)index};
            p->dims[extent->dim] = shape[d];
        } else if (p->dims[extent->dim] != shape[d]) {
            return REFUSE(
                p, "dimension %.*s: %.*s has %lld, %.*s has %lld",
                TIR_STR(p->info->dims[extent->dim]), TIR_STR(p->info->params[origin->param].name),
                (long long)p->dims[extent->dim], TIR_STR(param->name), (long long)shape[d]);
        }
    }
    return TIR_OK;
}

// The strides of a contiguous tensor. false: it has more than 2^63 elements. Those of an empty one
// may be any.
static bool contiguous(const int64_t *shape, uint32_t rank, int64_t strides[TIR_MAX_RANK])
{
    bool too_large = false, empty = false;
    int64_t stride = 1;
    for (uint32_t d = rank; d-- > 0;) {
        strides[d] = stride;
        empty |= shape[d] == 0;
        if (shape[d] > 1 && __builtin_mul_overflow(stride, shape[d], &stride)) {
            too_large = true;
            stride = 1;
        }
    }
    return !too_large || empty;
}

// Bytes from the first to the last element; 0 for a tensor without elements, -1 for overflow.
static int64_t span_of(const int64_t *shape, const int64_t *strides, uint32_t rank, uint32_t bits)
{
    int64_t span = 1;
    for (uint32_t d = 0; d < rank; d++)
        if (shape[d] == 0)
            return 0;
    for (uint32_t d = 0; d < rank; d++) {
        int64_t reach;
        if (shape[d] > 1 &&
            (__builtin_mul_overflow(shape[d] - 1, strides[d], &reach) || reach == INT64_MIN ||
             __builtin_add_overflow(span, reach < 0 ? -reach : reach, &span)))
            return -1;
    }
    if (__builtin_mul_overflow(span, (int64_t)bits, &span))
        return -1;
    return span / 8 + (span % 8 != 0);
}

// The bytes of the largest power of two that divides all bits that are set.
static int64_t divisor_of(uint64_t bits)
{
    return (int64_t)((bits & (0 - bits)) / 8);
}

// TIR_ALIGNMENTS of a tensor.
static int64_t alignments_of(const tir_artifact_param *param, const tir_rt_tensor *view,
                             const int64_t *strides)
{
    uint64_t bits = tir_element_bits(view->element), begin = view->data * 8 | 256;
    if (view->rank == 0)
        return TIR_ALIGNMENTS(16, 16);
    uint32_t inner = view->rank - 1;
    if (strides[inner] != 1 && view->shape[inner] > 1)
        return TIR_ALIGNMENTS(0, 0);
    for (uint32_t d = 0; d < inner; d++) // of extent 1 too: rows past the end have addresses
        begin |= (uint64_t)strides[d] * bits;
    uint64_t all = begin;
    // A constant extent is known to the compiler, which has made of it what it can.
    if (param->extents[inner].dim != TIR_EXTENT_FIXED)
        all |= (uint64_t)view->shape[inner] * bits;
    return TIR_ALIGNMENTS(divisor_of(all), divisor_of(begin));
}

// The facts that hold for one tensor.
static uint32_t facts_of(const tir_rt_tensor *view, const int64_t *strides, int64_t span,
                         int64_t alignments)
{
    uint32_t facts = TIR_FACT_ALL, inner = view->rank - 1;
    if (span > INT32_MAX)
        facts &= ~(uint32_t)TIR_FACT_INDEX32;
    if (view->rank && strides[inner] != 1 && view->shape[inner] > 1)
        facts &= ~(uint32_t)TIR_FACT_UNIT_INNER;
    if (tir_align_of(alignments) < 16)
        facts &= ~(uint32_t)TIR_FACT_VECTOR16;
    return facts;
}

static tir_status check_memory(struct packing *p, const tir_artifact_param *param,
                               const tir_rt_tensor *view, const int64_t *strides, int64_t span)
{
    uint32_t align = tir_element_bits(view->element) / 8;
    if (span < 0)
        return REFUSE(p, "%.*s: the tensor spans more than 2^63 bits", TIR_STR(param->name));
    if (span == 0)
        return TIR_OK;
    if (!view->data)
        return REFUSE(p, "%.*s: the data address is 0", TIR_STR(param->name));
    if (align > 1 && view->data % align)
        return REFUSE(p, "%.*s: the data address 0x%llx is not aligned to %u bytes",
                      TIR_STR(param->name), (unsigned long long)view->data, align);
    for (uint32_t d = 0; d < view->rank && param->direction != TIR_DIRECTION_IN; d++)
        if (strides[d] == 0 && view->shape[d] > 1)
            return REFUSE(p, "%.*s: an output cannot have stride 0 in dimension %u",
                          TIR_STR(param->name), d);
    return TIR_OK;
}

static tir_status pack_tensor(struct packing *p, uint32_t index, const tir_rt_arg *arg)
{
    const tir_artifact_param *param = &p->info->params[index];
    tir_rt_tensor own;
    int64_t dense[TIR_MAX_RANK];
    const tir_rt_tensor *view = tensor_of(p, param, arg, &own);
    tir_status status = view ? check_type(p, param, view) : TIR_ERR_INVALID;
    if (!status && !view->strides && !contiguous(view->shape, view->rank, dense))
        status = REFUSE(p, "%.*s: the tensor has more than 2^63 elements", TIR_STR(param->name));
    if (!status)
        status = learn_dims(p, index, view->shape);
    if (status)
        return status;
    const int64_t *strides = view->strides ? view->strides : dense;
    int64_t span = span_of(view->shape, strides, view->rank, tir_element_bits(view->element));
    status = check_memory(p, param, view, strides, span);
    if (status)
        return status;
    p->values[index] = alignments_of(param, view, strides);
    p->facts &= facts_of(view, strides, span, p->values[index]);
    if (param->direction != TIR_DIRECTION_IN) {
        p->has_output = true;
        p->has_work |= span > 0;
    }
    p->reach[index] = (struct reach){0, 0};
    if (span)
        p->reach[index] = tir_reach(view->data, tir_element_bits(view->element), view->rank,
                                    view->shape, strides);
    put(p, &view->data, sizeof view->data);
    for (uint32_t d = 0; d < view->rank; d++)
        put(p, &strides[d], sizeof strides[d]);
    return TIR_OK;
}

static tir_status pack(struct packing *p, const tir_rt_arg *args, uint32_t count)
{
    const tir_artifact_kernel *info = p->info;
    if (count != info->param_count)
        return REFUSE(p, "%.*s needs %u arguments, not %u", TIR_STR(info->name), info->param_count,
                      count);
    for (uint32_t i = 0; i < count; i++) {
        bool scalar = info->params[i].kind == TIR_PARAM_SCALAR;
        tir_status status = scalar ? pack_scalar(p, i, &args[i]) : pack_tensor(p, i, &args[i]);
        if (status)
            return status;
        if (scalar) {
            p->parts[p->part_count++] = p->block + p->kernel->layout->param[i];
            p->reach[i] = (struct reach){0, 0};
        }
    }
    for (uint32_t i = 0; i < info->dim_count; i++) {
        if (p->dims[i] > (int64_t)1 << 30)
            p->facts &= ~(uint32_t)TIR_FACT_INDEX32;
        put(p, &p->dims[i], sizeof p->dims[i]);
    }
    return TIR_OK;
}

// ---- plans

static uint64_t *read_tensor(uint64_t *at, const tir_rt_tensor *tensor)
{
    enum { LOW_BITS = 5 }; // of addresses: no alignment above 32 bytes decides anything
    const bool has_strides = tensor->strides;
    *at++ = tensor->data % (1 << LOW_BITS) | (uint64_t)has_strides << LOW_BITS |
            (uint64_t)tensor->element << 32;
    for (uint32_t d = 0; d < tensor->rank; d++) {
        *at++ = (uint64_t)tensor->shape[d];
        if (has_strides)
            *at++ = (uint64_t)tensor->strides[d];
    }
    return at;
}

// A wrong type is not refused here: there is no plan with it.
bool tir_packing_key(struct packing *p, const tir_rt_arg *args, uint64_t data[TIR_MAX_PARAMS])
{
    enum { ADDRESS_BITS = 57 };
    const struct launch_layout *layout = p->kernel->layout;
    uint64_t *at = p->key + 1;
    for (uint32_t t = 0; t < layout->tensor_count; t++) {
        const uint32_t i = layout->tensors[t].param;
        tir_rt_tensor own;
        const tir_rt_tensor *tensor = tensor_of(p, &p->info->params[i], &args[i], &own);
        if (!tensor || tensor->rank != layout->tensors[t].rank ||
            (tensor->rank && !tensor->shape) || !tensor->data || tensor->data >> ADDRESS_BITS)
            return false;
        data[i] = tensor->data;
        at = read_tensor(at, tensor);
    }
    for (uint32_t s = 0; s < layout->scalar_count; s++) {
        const uint32_t i = layout->scalars[s];
        if (!(layout->decisive >> i & 1))
            continue;
        if (args[i].kind != TIR_RT_SCALAR)
            return false;
        *at++ = args[i].as.scalar.value.u;
    }
    p->key_words = (uint32_t)(at - p->key);
    return true;
}

bool tir_packing_args(struct packing *p, const tir_rt_arg *args, const uint64_t *data)
{
    const struct launch_layout *layout = p->kernel->layout;
    for (uint32_t t = 0; t < layout->tensor_count; t++) {
        const struct tensor_place place = layout->tensors[t];
        memcpy(p->block + place.at, &data[place.param], sizeof *data);
    }
    for (uint32_t s = 0; s < layout->scalar_count; s++)
        if (pack_scalar(p, layout->scalars[s], &args[layout->scalars[s]]))
            return false;
    return true;
}

// ---- memory

// The tensor as it was packed.
struct footprint tir_packing_footprint(const struct packing *p, uint32_t index)
{
    const tir_artifact_param *param = &p->info->params[index];
    struct footprint out = {.bits = tir_element_bits(param->element), .rank = param->rank};
    const uint8_t *at = p->block + p->kernel->layout->param[index];
    memcpy(&out.data, at, sizeof out.data);
    memcpy(out.strides, at + sizeof out.data, param->rank * sizeof *out.strides);
    for (uint32_t d = 0; d < param->rank; d++)
        out.shape[d] = param->extents[d].dim == TIR_EXTENT_FIXED ? param->extents[d].fixed
                                                                 : p->dims[param->extents[d].dim];
    return out;
}

static bool overlap(const struct packing *p, uint32_t i, uint32_t j)
{
    if (p->reach[i].end <= p->reach[j].low || p->reach[j].end <= p->reach[i].low)
        return false;
    const struct footprint a = tir_packing_footprint(p, i), b = tir_packing_footprint(p, j);
    return tir_footprints_overlap(&a, &b);
}

// The code takes each tensor that it writes to be apart from all others.
tir_status tir_packing_overlap(const struct packing *p)
{
    const tir_artifact_param *params = p->info->params;
    const struct launch_layout *layout = p->kernel->layout;
    for (uint32_t o = 0; o < layout->output_count; o++) {
        const uint32_t i = layout->outputs[o];
        const struct footprint f = tir_packing_footprint(p, i);
        if (p->reach[i].low < p->reach[i].end && tir_footprint_overlaps_itself(&f))
            return REFUSE(p, "%.*s: elements of an output share memory", TIR_STR(params[i].name));
        for (uint32_t j = 0; j < p->info->param_count; j++)
            if (params[j].kind == TIR_PARAM_TENSOR && j != i && overlap(p, i, j))
                return REFUSE(p, "%.*s and %.*s share memory, and the kernel writes %.*s",
                              TIR_STR(params[j].name), TIR_STR(params[i].name),
                              TIR_STR(params[i].name));
    }
    return TIR_OK;
}

static tir_status check_conditions(struct packing *p)
{
    for (uint32_t i = 0; i < p->info->condition_count; i++) {
        const tir_artifact_condition *condition = &p->info->conditions[i];
        int64_t holds;
        tir_status status =
            tir_formula_eval(&condition->holds, p->dims, p->values, &holds, p->error);
        if (status)
            return status;
        if (!holds)
            return REFUSE(p, "%.*s needs %.*s", TIR_STR(p->info->name), TIR_STR(condition->text));
    }
    return TIR_OK;
}

tir_status tir_packing_fill(struct packing *p, const tir_rt_kernel *kernel, const tir_rt_arg *args,
                            uint32_t count, tir_error *error)
{
    const uint32_t key_words = p->key_words; // tir_packing_recall has been here
    memset(p, 0, offsetof(struct packing, key));
    p->key_words = key_words;
    p->parts = p->own_parts;
    p->block = p->own_block;
    p->kernel = kernel;
    p->info = kernel->info;
    p->device = &kernel->device->info;
    p->error = error;
    p->facts = TIR_FACT_ALL;
    tir_status status = pack(p, args, count);
    return status ? status : check_conditions(p);
}
