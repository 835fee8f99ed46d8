// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches: variant with its tensor maps, grid, and what the device gets.

#include <string.h>

#include "artifact.h"
#include "error.h"
#include "launch_map.h"
#include "packing.h"

#define REFUSE(p, ...) tir_error_set((p)->error, TIR_ERR_INVALID, __VA_ARGS__)

// Writes the variant's tensor maps after the parameters that all variants have.
static tir_status pack_maps(struct packing *p, const tir_artifact_variant *variant,
                            tir_error *error)
{
    p->params_size = tir_artifact_param_bytes(p->info, variant);
    uint8_t *bytes = p->block + tir_packing_maps_at(p, variant);
    for (uint32_t i = 0; i < variant->map_count; i++, bytes += TIR_TENSOR_MAP_BYTES) {
        const tir_artifact_map *map = &variant->maps[i];
        const tir_artifact_param *param = &p->info->params[map->param];
        const struct footprint f = tir_packing_footprint(p, map->param);
        tir_status status = tir_launch_map(map, param, f.data, f.shape, f.strides, bytes, error);
        if (status)
            return status;
    }
    return TIR_OK;
}

// What is known of a variant: of an open one that is not ready, what the outline says.
static const tir_artifact_variant *known_of(const tir_rt_kernel *kernel, uint32_t variant)
{
    const struct loaded_function *f = &kernel->functions[variant];
    return atomic_load_explicit(&f->is_ready, memory_order_acquire)
               ? f->info
               : &kernel->info->variants[variant];
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
    if (!status && estimate < best)
        *cost = estimate;
    return status;
}

uint32_t tir_packing_config(const struct packing *p)
{
    const tir_artifact_tuned *tuned = p->kernel->tuned;
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
            (p->variant < end && !variant->cost.count) || p->misfits >> i & 1)
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
    if (p->variant < end)
        return TIR_OK;
    tir_error why = {0};
    for (uint32_t i = first; i < end && !why.message[0]; i++)
        (void)!pack_maps(p, known_of(p->kernel, i), &why);
    return REFUSE(p, "%.*s: %s%s%s%s%s%s", TIR_STR(p->info->name),
                  wanted < 0 ? "no variant fits these arguments" : "the variant does not fit",
                  p->facts & TIR_FACT_INDEX32 ? "" : "; a tensor exceeds 2 GiB",
                  p->facts & TIR_FACT_UNIT_INNER ? "" : "; an innermost stride is not 1",
                  p->facts & TIR_FACT_VECTOR16 ? "" : "; a tensor is not aligned to 16 bytes",
                  why.message[0] ? "; " : "", why.message);
}

static bool has_maps(struct packing *p)
{
    if (!pack_maps(p, known_of(p->kernel, p->variant), NULL))
        return true;
    p->misfits |= (uint64_t)1 << p->variant;
    return false;
}

tir_status tir_packing_find(struct packing *p, int32_t wanted, uint32_t config)
{
    tir_status status = tir_packing_pick(p, wanted, config);
    while (!status && !has_maps(p))
        status = tir_packing_pick(p, wanted, config);
    return status;
}

tir_status tir_packing_settle(struct packing *p, bool *fits)
{
    // Not to have code made that the arguments do not fit, where that is known.
    *fits = p->plan || has_maps(p);
    if (p->plan || !*fits)
        return TIR_OK;
    const tir_artifact_variant *known = &p->info->variants[p->variant];
    tir_status status = tir_function_ready(p->kernel, p->variant, p->error);
    if (!status && known->is_open)
        *fits = has_maps(p);
    return status;
}

tir_status tir_packing_choose(struct packing *p, int32_t wanted, uint32_t config)
{
    for (bool fits = p->plan; !fits;) {
        tir_status status = tir_packing_pick(p, wanted, config);
        if (!status)
            status = tir_packing_settle(p, &fits);
        if (status)
            return status;
    }
    return TIR_OK;
}

static int64_t round_up(int64_t size, uint32_t unit)
{
    return size > INT64_MAX - unit ? size : (size + unit - 1) / unit * unit;
}

// The CTAs of a cooperative variant wait for each other.
static tir_status check_together(struct packing *p, uint32_t most)
{
    const uint64_t ctas = (uint64_t)p->grid[0] * p->grid[1];
    if (!p->grid[2] || ctas <= most / p->grid[2])
        return TIR_OK;
    return tir_error_set(p->error, TIR_ERR_UNSUPPORTED,
                         "%.*s: its %u x %u x %u CTAs wait for each other (grid_sync), but %s runs "
                         "%u of them at a time",
                         TIR_STR(p->info->name), p->grid[0], p->grid[1], p->grid[2],
                         p->kernel->device->info.name, most);
}

static tir_status shape_grid(struct packing *p, const tir_artifact_variant *variant, uint32_t most)
{
    static const int64_t limits[3] = {INT32_MAX, 65535, 65535};
    const uint32_t *cluster = variant->cluster;
    const uint32_t *whole = variant->preferred[0] ? variant->preferred : cluster;
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
        if (whole[i] && size % whole[i])
            return REFUSE(p, "%.*s: a grid of %lld CTAs along %c is not made of clusters of %u",
                          TIR_STR(p->info->name), (long long)size, "xyz"[i], whole[i]);
        p->grid[i] = (uint32_t)size;
    }
    return variant->cooperative ? check_together(p, most) : TIR_OK;
}

// Adds a variant's tensor maps and the words of its watchdog to the parameters. Without maps the
// block says all.
static void list_parts(struct packing *p, const tir_artifact_variant *variant)
{
    if (!variant->map_count)
        return;
    uint32_t words = variant->watchdog ? TIR_WATCHDOG_BYTES / sizeof(uint64_t) : 0;
    uint8_t *at = p->block + tir_packing_maps_at(p, variant);
    void **part = p->parts + p->part_count;
    for (uint32_t i = 0; i < variant->map_count; i++, at += TIR_TENSOR_MAP_BYTES)
        *part++ = at;
    for (uint32_t i = 0; i < words; i++, at += sizeof(uint64_t))
        *part++ = at;
    *part = NULL;
}

// May the device begin before the launch before it has ended?
static bool is_early(const tir_artifact_variant *variant, const tir_rt_launch_options *options,
                     enum launch_place place)
{
    return variant->waits == TIR_WAITS_LAST ? place == LAUNCH_NEXT
                                            : place != LAUNCH_ALONE || options->overlap;
}

static tir_status call_device(struct packing *p, void *stream, const tir_rt_launch_options *options,
                              enum launch_place place)
{
    const tir_rt_kernel *kernel = p->kernel;
    const struct loaded_function *function = &kernel->functions[p->variant];
    const tir_artifact_variant *variant = function->info;
    const struct device_launch launch = {
        .grid = {p->grid[0], p->grid[1], p->grid[2]},
        .block = {variant->threads, 1, 1},
        .cluster = {variant->cluster[0], variant->cluster[1], variant->cluster[2]},
        .preferred = {variant->preferred[0], variant->preferred[1], variant->preferred[2]},
        .cooperative = variant->cooperative,
        .dynamic_shared = variant->dynamic_shared,
        .variant = variant,
        .params = p->block,
        .params_size = p->params_size,
        .parts = variant->map_count ? p->parts : NULL,
        .follows = place != LAUNCH_ALONE,
        .early = is_early(variant, options, place),
    };
    if (variant->watchdog)
        tir_watchdog_params(function->watchdog, options->timeout_ms,
                            p->block + p->params_size - TIR_WATCHDOG_BYTES);
    return kernel->device->ops->launch(kernel->device, stream, function->module, function->native,
                                       &launch, p->error);
}

tir_status tir_packing_launch(struct packing *p, void *stream, const tir_rt_launch_options *options,
                              tir_rt_launch_report *report, enum launch_place place)
{
    const struct loaded_function *function = &p->kernel->functions[p->variant];
    const tir_artifact_variant *variant = function->info;
    tir_status status = p->plan ? TIR_OK : shape_grid(p, variant, function->most);
    if (status)
        return status;
    bool work =
        p->plan || (p->grid[0] && p->grid[1] && p->grid[2] && (p->has_work || !p->has_output));
    if (work && !p->plan) {
        list_parts(p, variant);
        tir_packing_remember(p);
    }
    if (work)
        status = call_device(p, stream, options, place);
    if (report && !status)
        *report = (tir_rt_launch_report){
            .variant = p->variant,
            .launched = work,
            .grid = {p->grid[0], p->grid[1], p->grid[2]},
            .threads = variant->threads,
            .dynamic_shared = variant->dynamic_shared,
            .tuned = p->is_tuned,
        };
    return status;
}

// The cheapest of a configuration's variants and sequences. *done is false where none fits.
static tir_status run_config(struct packing *p, const tir_rt_arg *args, void *stream,
                             const tir_rt_launch_options *options, uint32_t config, bool *done)
{
    for (bool fits = false; !fits;) {
        tir_status status = tir_packing_pick(p, options->variant, config);
        if (options->variant < 0 && p->info->sequence_count) {
            int64_t below = status ? INT64_MAX : p->cost;
            tir_status other = tir_sequence_launch(p, args, stream, options, config, below, done);
            if (*done && !other)
                tir_packing_remember(p);
            if (*done || status)
                return other;
        }
        *done = !status;
        if (!status)
            status = tir_packing_settle(p, &fits);
        if (status)
            return status;
    }
    return tir_packing_launch(p, stream, options, options->report, LAUNCH_ALONE);
}

// Decides anew. Of a sequence that has run the number is remembered.
static tir_status run(struct packing *p, const tir_rt_arg *args, void *stream,
                      const tir_rt_launch_options *options)
{
    const uint32_t variants = p->info->variant_count; // sequences are numbered after them
    bool done = false;
    if (options->variant >= 0 && (uint32_t)options->variant >= variants &&
        (uint32_t)options->variant - variants < p->info->sequence_count)
        return tir_sequence_launch_one(p, args, stream, options,
                                       (uint32_t)options->variant - variants, &done);
    uint32_t config = options->variant < 0 ? tir_packing_config(p) : TIR_ANY_CONFIG;
    p->is_tuned = config != TIR_ANY_CONFIG;
    tir_status status = run_config(p, args, stream, options, config, &done);
    if (!done && p->is_tuned) {
        p->is_tuned = false;
        status = run_config(p, args, stream, options, TIR_ANY_CONFIG, &done);
    }
    return status;
}

// What was decided before. *done is false where it cannot be had this time.
static tir_status run_again(struct packing *p, const tir_rt_arg *args, void *stream,
                            const tir_rt_launch_options *options, bool *done)
{
    *done = true;
    if (p->variant < p->info->variant_count)
        return tir_packing_launch(p, stream, options, options->report, LAUNCH_ALONE);
    return tir_sequence_launch_one(p, args, stream, options, p->variant - p->info->variant_count,
                                   done);
}

static tir_status launch(const tir_rt_kernel *kernel, void *stream, const tir_rt_arg *args,
                         uint32_t count, const tir_rt_launch_options *options, tir_error *error)
{
    struct packing p;
    bool done = false;
    tir_status status;
    if (tir_packing_recall(&p, kernel, args, count, options->variant, RECALL_LAUNCH, error)) {
        status = run_again(&p, args, stream, options, &done);
        tir_packing_done(&p);
        if (done)
            return status;
    }
    status = tir_packing_fill(&p, kernel, args, count, error);
    if (!status)
        status =
            tir_packing_overlap(&p); // steps of a sequence have the same tensors and fresh memory
    return status ? status : run(&p, args, stream, options);
}

TIR_API tir_status tir_rt_launch(tir_rt_kernel *kernel, tir_rt_stream *stream,
                                 const tir_rt_arg *args, uint32_t count,
                                 const tir_rt_launch_options *options, tir_error *error)
{
    tir_rt_launch_options own = TIR_RT_LAUNCH_OPTIONS_INIT;
    tir_error local, cause; // cause: also of what was tried before that which works
    void *native;
    error = error ? error : &local;
    cause.native = 0; // and no message; to clear all of it takes longer
    cause.message[0] = 0;
    if (options && options->struct_size < offsetof(tir_rt_launch_options, step_reports))
        return tir_error_set(error, TIR_ERR_INVALID,
                             "the launch options have no proper struct_size");
    if (options)
        memcpy(&own, options,
               options->struct_size < sizeof own ? options->struct_size : sizeof own);
    if (own.variant < -1)
        return tir_error_set(error, TIR_ERR_INVALID, "%.*s has no variant %d",
                             TIR_STR(kernel->info->name), own.variant);
    if (own.scratch % SCRATCH_ALIGN)
        return tir_error_set(error, TIR_ERR_INVALID,
                             "the scratch memory does not begin at a multiple of %d bytes",
                             SCRATCH_ALIGN);
    tir_status status = tir_device_enter(kernel->device, error);
    if (!status)
        status = tir_device_stream(kernel->device, stream, &native, error);
    if (status)
        return status;
    const bool has_steps = stream && kernel->info->sequence_count;
    if (has_steps)
        pthread_mutex_lock(&stream->steps);
    status = launch(kernel, native, args, count, &own, &cause);
    if (has_steps)
        pthread_mutex_unlock(&stream->steps);
    if (status)
        *error = cause;
    return tir_device_leave(kernel->device, status, error);
}
