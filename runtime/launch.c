// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches: arguments are checked against the artifact, packed, and given to the device.
//
// One walk over the arguments does everything: it checks each against its parameter, learns the
// named dimensions, gathers the facts that variants rely on, and writes the parameter block. Then
// conditions, variant with its tensor maps, grid. All state is on the stack; text is made only for
// errors.

#include <math.h>
#include <string.h>

#include "artifact.h"
#include "error.h"
#include "launch_map.h"
#include "packing.h"
#include "view.h"

#define REFUSE(p, ...) tir_error_set((p)->error, TIR_ERR_INVALID, __VA_ARGS__)

static void put(struct packing *p, const void *value, size_t size)
{
    p->at = (p->at + size - 1) / size * size;
    memcpy(p->block + p->at, value, size);
    p->parts[p->part_count++] = p->block + p->at;
    p->at += size;
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
    put(p, bytes, bits / 8);
    return TIR_OK;
}

// ---- tensors

static tir_status view_of(struct packing *p, const tir_artifact_param *param, const tir_rt_arg *arg,
                          struct tensor_view *view)
{
    switch (arg->kind) {
    case TIR_RT_TENSOR:
        *view = (struct tensor_view){
            .data = arg->as.tensor.data,
            .element = arg->as.tensor.element,
            .rank = arg->as.tensor.rank,
            .shape = arg->as.tensor.shape,
            .strides = arg->as.tensor.strides,
        };
        return TIR_OK;
    case TIR_RT_DLPACK:
    case TIR_RT_DLPACK_VERSIONED: {
        const char *wrong = tir_dlpack_view(p->device, arg, view);
        return wrong ? REFUSE(p, "%.*s: %s", TIR_STR(param->name), wrong) : TIR_OK;
    }
    case TIR_RT_SCALAR:
        return REFUSE(p, "%.*s: a tensor is needed, not a scalar", TIR_STR(param->name));
    }
    return REFUSE(p, "%.*s: the argument is of no known kind", TIR_STR(param->name));
}

static tir_status check_type(struct packing *p, const tir_artifact_param *param,
                             const struct tensor_view *view)
{
    if (!accepts(param->element, view->element))
        return REFUSE(p, "%.*s: element type must be %s, not %s", TIR_STR(param->name),
                      tir_element_name(param->element), tir_element_name(view->element));
    if (view->rank != param->rank)
        return REFUSE(p, "%.*s: rank must be %u, not %u", TIR_STR(param->name), param->rank,
                      view->rank);
    if (view->rank && !view->shape)
        return REFUSE(p, "%.*s: the shape is NULL", TIR_STR(param->name));
    if (view->read_only && param->direction != TIR_DIRECTION_IN)
        return REFUSE(p, "%.*s: a read-only tensor cannot be an output", TIR_STR(param->name));
    return TIR_OK;
}

static tir_status learn_dims(struct packing *p, uint32_t index, const int64_t *shape)
{
    const tir_artifact_param *param = &p->info->params[index];
    for (uint32_t d = 0; d < param->rank; d++) {
        const tir_extent *extent = &param->extents[d];
        if (shape[d] < 0)
            return REFUSE(p, "%.*s: dimension %u is negative", TIR_STR(param->name), d);
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

// The strides of a contiguous tensor. false: it has more than 2^63 elements.
static bool contiguous(const int64_t *shape, uint32_t rank, int64_t strides[TIR_MAX_RANK])
{
    int64_t stride = 1;
    for (uint32_t d = rank; d-- > 0;) {
        strides[d] = stride;
        if (shape[d] > 1 && __builtin_mul_overflow(stride, shape[d], &stride))
            return false;
    }
    return true;
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

// The value of TIR_FORMULA_ALIGN for a tensor.
static int64_t alignment_of(const tir_artifact_param *param, const struct tensor_view *view,
                            const int64_t *strides)
{
    uint64_t bits = tir_element_bits(view->element), all = view->data * 8 | 128;
    if (view->rank == 0)
        return 16;
    uint32_t inner = view->rank - 1;
    if (strides[inner] != 1 && view->shape[inner] > 1)
        return 0;
    // A constant extent is known to the compiler, which has made of it what it can.
    if (param->extents[inner].dim != TIR_EXTENT_FIXED)
        all |= (uint64_t)view->shape[inner] * bits;
    for (uint32_t d = 0; d < inner; d++) // of extent 1 too: rows past the end have addresses
        all |= (uint64_t)strides[d] * bits;
    return (int64_t)((all & (0 - all)) / 8); // the lowest bit divides all
}

// The facts that hold for one tensor.
static uint32_t facts_of(const struct tensor_view *view, const int64_t *strides, int64_t span,
                         int64_t alignment)
{
    uint32_t facts = TIR_FACT_ALL, inner = view->rank - 1;
    if (span > INT32_MAX)
        facts &= ~(uint32_t)TIR_FACT_INDEX32;
    if (view->rank && strides[inner] != 1 && view->shape[inner] > 1)
        facts &= ~(uint32_t)TIR_FACT_UNIT_INNER;
    if (alignment < 16)
        facts &= ~(uint32_t)TIR_FACT_VECTOR16;
    return facts;
}

static tir_status check_memory(struct packing *p, const tir_artifact_param *param,
                               const struct tensor_view *view, const int64_t *strides, int64_t span)
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
    struct tensor_view view;
    int64_t dense[TIR_MAX_RANK];
    tir_status status = view_of(p, param, arg, &view);
    if (!status)
        status = check_type(p, param, &view);
    if (!status)
        status = learn_dims(p, index, view.shape);
    if (status)
        return status;
    const int64_t *strides = view.strides;
    if (!strides) {
        if (!contiguous(view.shape, view.rank, dense))
            return REFUSE(p, "%.*s: the tensor has more than 2^63 elements", TIR_STR(param->name));
        strides = dense;
    }
    int64_t span = span_of(view.shape, strides, view.rank, tir_element_bits(view.element));
    status = check_memory(p, param, &view, strides, span);
    if (status)
        return status;
    p->values[index] = alignment_of(param, &view, strides);
    p->facts &= facts_of(&view, strides, span, p->values[index]);
    if (param->direction != TIR_DIRECTION_IN) {
        p->has_output = true;
        p->has_work |= span > 0;
    }
    p->reach[index] = (struct reach){0, 0};
    if (span)
        p->reach[index] =
            tir_reach(view.data, tir_element_bits(view.element), view.rank, view.shape, strides);
    put(p, &view.data, sizeof view.data);
    p->tensors[index] = (uint16_t)(p->at - sizeof view.data);
    for (uint32_t d = 0; d < view.rank; d++)
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
    }
    for (uint32_t i = 0; i < info->dim_count; i++) {
        if (p->dims[i] > (int64_t)1 << 30)
            p->facts &= ~(uint32_t)TIR_FACT_INDEX32;
        put(p, &p->dims[i], sizeof p->dims[i]);
    }
    return TIR_OK;
}

// ---- memory

// The tensor as it was packed.
static struct footprint footprint_of(const struct packing *p, uint32_t index)
{
    const tir_artifact_param *param = &p->info->params[index];
    struct footprint out = {.bits = tir_element_bits(param->element), .rank = param->rank};
    const uint8_t *at = p->block + p->tensors[index];
    memcpy(&out.data, at, sizeof out.data);
    memcpy(out.strides, at + sizeof out.data, param->rank * sizeof *out.strides);
    for (uint32_t d = 0; d < param->rank; d++)
        out.shape[d] = param->extents[d].dim == TIR_EXTENT_FIXED ? param->extents[d].fixed
                                                                 : p->dims[param->extents[d].dim];
    return out;
}

static bool is_written(const struct packing *p, uint32_t param)
{
    return p->info->params[param].direction != TIR_DIRECTION_IN;
}

static bool overlap(const struct packing *p, uint32_t i, uint32_t j)
{
    if (p->reach[i].end <= p->reach[j].low || p->reach[j].end <= p->reach[i].low)
        return false;
    const struct footprint a = footprint_of(p, i), b = footprint_of(p, j);
    return tir_footprints_overlap(&a, &b);
}

// The code takes each tensor that it writes to be apart from all others.
static tir_status check_overlap(struct packing *p)
{
    const tir_artifact_param *params = p->info->params;
    for (uint32_t i = 0; i < p->info->param_count; i++) {
        if (params[i].kind == TIR_PARAM_SCALAR || !is_written(p, i))
            continue;
        const struct footprint f = footprint_of(p, i);
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

// ---- what to launch

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
    memset(p, 0, offsetof(struct packing, block));
    p->kernel = kernel;
    p->info = kernel->info;
    p->device = &kernel->device->info;
    p->error = error;
    p->facts = TIR_FACT_ALL;
    tir_status status = pack(p, args, count);
    return status ? status : check_conditions(p);
}

// Writes the variant's tensor maps after the parameters that all variants have. `p->at` stays.
static tir_status pack_maps(struct packing *p, const tir_artifact_variant *variant,
                            tir_error *error)
{
    size_t behind = variant->watchdog ? TIR_WATCHDOG_BYTES : 0;
    uint8_t *end = p->block + tir_artifact_param_bytes(p->info, variant) - behind;
    uint8_t *bytes = end - (size_t)variant->map_count * TIR_TENSOR_MAP_BYTES;
    for (uint32_t i = 0; i < variant->map_count; i++, bytes += TIR_TENSOR_MAP_BYTES) {
        const tir_artifact_map *map = &variant->maps[i];
        const tir_artifact_param *param = &p->info->params[map->param];
        const struct footprint f = footprint_of(p, map->param);
        tir_status status = tir_launch_map(map, param, f.data, f.shape, f.strides, bytes, error);
        if (status)
            return status;
    }
    return TIR_OK;
}

// The cost of a variant; -1: it does not fit, or is not cheaper than `best`.
static tir_status variant_cost(struct packing *p, const tir_artifact_variant *variant, int64_t best,
                               int64_t *cost)
{
    int64_t when = 1;
    tir_status status = TIR_OK;
    *cost = -1;
    if (variant->facts & ~p->facts)
        return TIR_OK;
    if (variant->when.count)
        status = tir_formula_eval(&variant->when, p->dims, p->values, &when, p->error);
    if (status || !when)
        return status;
    int64_t estimate = 0;
    if (variant->cost.count)
        status = tir_formula_eval(&variant->cost, p->dims, p->values, &estimate, p->error);
    estimate = estimate < 0 ? 0 : estimate;
    if (!status && estimate < best && (!variant->map_count || !pack_maps(p, variant, NULL)))
        *cost = estimate;
    return status;
}

// The configuration that was measured to be the fastest for these sizes.
static uint32_t tuned_config(const struct packing *p, const tir_artifact_tuned *tuned)
{
    uint32_t first = 0, end = tuned ? tuned->choice_count : 0;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        int order = tir_choice_compare(&tuned->choices[middle], p->dims);
        if (order == 0)
            return tuned->choices[middle].config;
        if (order < 0)
            first = middle + 1;
        else
            end = middle;
    }
    return TIR_ANY_CONFIG;
}

// The variant of the configuration that a launch takes; `end`: none fits.
static tir_status cheapest_variant(struct packing *p, uint32_t first, uint32_t end, uint32_t config)
{
    int64_t best = INT64_MAX;
    p->variant = end;
    p->cost = 0;
    for (uint32_t i = first; i < end; i++) {
        const tir_artifact_variant *variant = &p->info->variants[i];
        int64_t cost;
        if ((config != TIR_ANY_CONFIG && variant->config != config) ||
            (p->variant < end && !variant->cost.count))
            continue;
        tir_status status = variant_cost(p, variant, best, &cost);
        if (status)
            return status;
        if (cost < 0)
            continue;
        best = p->cost = cost;
        p->variant = i;
        if (!variant->cost.count)
            return TIR_OK;
    }
    return TIR_OK;
}

tir_status tir_packing_pick(struct packing *p, int32_t wanted, uint32_t config)
{
    uint32_t first = wanted < 0 ? 0 : (uint32_t)wanted;
    uint32_t end = wanted < 0 ? p->info->variant_count : first + 1;
    if (end > p->info->variant_count)
        return REFUSE(p, "%.*s has no variant %u", TIR_STR(p->info->name), first);
    tir_status status = cheapest_variant(p, first, end, config);
    if (status)
        return status;
    if (p->variant < end) // again: the maps of variants that were tried later may lie there
        return pack_maps(p, &p->info->variants[p->variant], p->error);
    tir_error why = {0};
    for (uint32_t i = first; i < end && !why.message[0]; i++)
        (void)!pack_maps(p, &p->info->variants[i], &why);
    return REFUSE(p, "%.*s: %s%s%s%s%s%s", TIR_STR(p->info->name),
                  wanted < 0 ? "no variant fits these arguments" : "the variant does not fit",
                  p->facts & TIR_FACT_INDEX32 ? "" : "; a tensor exceeds 2 GiB",
                  p->facts & TIR_FACT_UNIT_INNER ? "" : "; an innermost stride is not 1",
                  p->facts & TIR_FACT_VECTOR16 ? "" : "; a tensor is not aligned to 16 bytes",
                  why.message[0] ? "; " : "", why.message);
}

static int64_t round_up(int64_t size, uint32_t unit)
{
    return size > INT64_MAX - unit ? size : (size + unit - 1) / unit * unit;
}

static tir_status shape_grid(struct packing *p, const tir_artifact_variant *variant, uint32_t most,
                             uint32_t grid[3])
{
    static const int64_t limits[3] = {INT32_MAX, 65535, 65535};
    const uint32_t *cluster = variant->cluster;
    for (int i = 0; i < 3; i++) {
        int64_t size;
        tir_status status =
            tir_formula_eval(&variant->grid[i], p->dims, p->values, &size, p->error);
        if (status)
            return status;
        if (variant->persistent && cluster[i])
            size = round_up(size, cluster[i]);
        if (variant->persistent && i == 0)
            size = size < most ? size : most;
        if (size < 0 || size > limits[i])
            return REFUSE(p, "%.*s: a grid of %lld CTAs along %c is not within 0 to %lld",
                          TIR_STR(p->info->name), (long long)size, "xyz"[i], (long long)limits[i]);
        if (cluster[i] && size % cluster[i])
            return REFUSE(p, "%.*s: a grid of %lld CTAs along %c is not made of clusters of %u",
                          TIR_STR(p->info->name), (long long)size, "xyz"[i], cluster[i]);
        grid[i] = (uint32_t)size;
    }
    return TIR_OK;
}

// The kernel's parameters with its tensor maps and the words of its watchdog; NULL: it has no maps,
// and the block says all.
static void **list_parts(struct packing *p, const tir_artifact_variant *variant)
{
    if (!variant->map_count)
        return NULL;
    uint32_t words = variant->watchdog ? TIR_WATCHDOG_BYTES / sizeof(uint64_t) : 0;
    uint8_t *end = p->block + tir_artifact_param_bytes(p->info, variant);
    uint8_t *at =
        end - words * sizeof(uint64_t) - (size_t)variant->map_count * TIR_TENSOR_MAP_BYTES;
    void **part = p->parts + p->part_count;
    for (uint32_t i = 0; i < variant->map_count; i++, at += TIR_TENSOR_MAP_BYTES)
        *part++ = at;
    for (uint32_t i = 0; i < words; i++, at += sizeof(uint64_t))
        *part++ = at;
    *part = NULL;
    return p->parts;
}

tir_status tir_packing_launch(struct packing *p, void *stream, const tir_rt_launch_options *options,
                              tir_rt_launch_report *report, bool follows)
{
    struct device_launch launch = {.params = p->block, .follows = follows};
    const tir_rt_kernel *kernel = p->kernel;
    const tir_artifact_variant *variant = &p->info->variants[p->variant];
    const struct loaded_function *function = &kernel->functions[p->variant];
    tir_status status = tir_function_ready(kernel, p->variant, p->error);
    if (!status)
        status = shape_grid(p, variant, function->most, launch.grid);
    if (status)
        return status;
    bool work =
        launch.grid[0] && launch.grid[1] && launch.grid[2] && (p->has_work || !p->has_output);
    if (work) {
        launch.block[0] = variant->threads;
        launch.block[1] = launch.block[2] = 1;
        launch.dynamic_shared = variant->dynamic_shared;
        launch.variant = variant;
        launch.params_size = tir_artifact_param_bytes(p->info, variant);
        launch.parts = list_parts(p, variant);
        memcpy(launch.cluster, variant->cluster, sizeof launch.cluster);
        if (variant->watchdog)
            tir_watchdog_params(function->watchdog, options->timeout_ms,
                                p->block + launch.params_size - TIR_WATCHDOG_BYTES);
        status = kernel->device->ops->launch(kernel->device, stream, function->module,
                                             function->native, &launch, p->error);
    }
    if (report && !status)
        *report = (tir_rt_launch_report){
            .variant = p->variant,
            .launched = work,
            .grid = {launch.grid[0], launch.grid[1], launch.grid[2]},
            .threads = variant->threads,
            .dynamic_shared = variant->dynamic_shared,
        };
    return status;
}

// The cheapest of a configuration's variants and sequences. *done is false where none fits.
static tir_status run_config(struct packing *p, const tir_rt_arg *args, void *stream,
                             const tir_rt_launch_options *options, uint32_t config, bool *done)
{
    tir_status status = tir_packing_pick(p, options->variant, config);
    if (options->variant < 0 && p->info->sequence_count) {
        int64_t below = status ? INT64_MAX : p->cost;
        tir_status other = tir_sequence_launch(p, args, stream, options, config, below, done);
        if (*done || status)
            return other;
    }
    *done = !status;
    return status ? status : tir_packing_launch(p, stream, options, options->report, false);
}

static tir_status run(struct packing *p, const tir_rt_arg *args, void *stream,
                      const tir_rt_launch_options *options)
{
    const uint32_t variants = p->info->variant_count; // sequences are numbered after them
    if (options->variant >= 0 && (uint32_t)options->variant >= variants &&
        (uint32_t)options->variant - variants < p->info->sequence_count)
        return tir_sequence_launch_one(p, args, stream, options,
                                       (uint32_t)options->variant - variants);
    uint32_t config = options->variant < 0 ? tuned_config(p, p->kernel->tuned) : TIR_ANY_CONFIG;
    bool done = false;
    tir_status status = run_config(p, args, stream, options, config, &done);
    if (done && !status && options->report)
        options->report->tuned = config != TIR_ANY_CONFIG;
    if (!done && config != TIR_ANY_CONFIG)
        status = run_config(p, args, stream, options, TIR_ANY_CONFIG, &done);
    return status;
}

TIR_API tir_status tir_rt_launch(tir_rt_kernel *kernel, tir_rt_stream *stream,
                                 const tir_rt_arg *args, uint32_t count,
                                 const tir_rt_launch_options *options, tir_error *error)
{
    static const tir_rt_launch_options plain = TIR_RT_LAUNCH_OPTIONS_INIT;
    tir_error local;
    void *native;
    error = error ? error : &local;
    if (options && options->struct_size < sizeof *options)
        return tir_error_set(error, TIR_ERR_INVALID,
                             "the launch options have no proper struct_size");
    tir_status status = tir_device_enter(kernel->device, error);
    if (!status)
        status = tir_device_stream(kernel->device, stream, &native, error);
    if (status)
        return status;
    struct packing p;
    tir_error cause = {0}; // also of what was tried before that which works
    status = tir_packing_fill(&p, kernel, args, count, &cause);
    if (!status)
        status = check_overlap(&p); // steps of a sequence have the same tensors and fresh memory
    if (!status)
        status = run(&p, args, native, options ? options : &plain);
    if (status)
        *error = cause;
    return tir_device_leave(kernel->device, status, error);
}
