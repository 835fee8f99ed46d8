// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sequences: several launches for one kernel, with scratch memory between them.
//
// Everything is checked and packed before the first step goes to the device, so that a sequence
// either runs whole or not at all; if it does not fit, the launch takes another sequence or
// variant.

#include <string.h>

#include "error.h"
#include "packing.h"

struct run {
    const struct packing *whole;
    const tir_artifact_sequence *sequence;
    const tir_rt_arg *args;
    tir_error *error;
    int64_t shapes[TIR_MAX_SCRATCH][TIR_MAX_RANK];
    uint64_t offsets[TIR_MAX_SCRATCH], size; // bytes
    tir_rt_arg scratch[TIR_MAX_SCRATCH];
    struct packing steps[TIR_MAX_STEPS];
};

// The shape of a scratch tensor and its place after earlier ones.
static tir_status place(struct run *r, uint32_t index)
{
    const tir_artifact_scratch *scratch = &r->sequence->scratch[index];
    uint64_t bits = tir_element_bits(scratch->element), size;
    for (uint32_t d = 0; d < scratch->rank; d++) {
        int64_t *extent = &r->shapes[index][d];
        tir_status status = tir_formula_eval(&scratch->extents[d], r->whole->dims, r->whole->values,
                                             extent, r->error);
        if (status)
            return status;
        if (*extent < 0)
            return tir_error_set(r->error, TIR_ERR_INVALID,
                                 "%.*s: dimension %u of the scratch tensor is %lld",
                                 TIR_STR(scratch->name), d, (long long)*extent);
        if (__builtin_mul_overflow(bits, (uint64_t)*extent, &bits))
            bits = UINT64_MAX; // until an extent of 0 follows
    }
    size = bits / 8 + (bits % 8 != 0);
    r->offsets[index] = r->size;
    if (bits > INT64_MAX || __builtin_add_overflow(r->size, size, &r->size) || r->size > INT64_MAX)
        return tir_error_set(r->error, TIR_ERR_NO_MEMORY,
                             "%.*s: the scratch tensor has more than 2^63 bits",
                             TIR_STR(scratch->name));
    r->size = (r->size + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
    return TIR_OK;
}

static tir_status place_all(struct run *r, uint32_t index)
{
    tir_status status = TIR_OK;
    r->sequence = &r->whole->info->sequences[index];
    r->size = 0;
    for (uint32_t i = 0; i < r->sequence->scratch_count && !status; i++)
        status = place(r, i);
    return status;
}

static tir_status pack_step(struct run *r, uint32_t index)
{
    const tir_artifact_step *step = &r->sequence->steps[index];
    const uint32_t own = r->whole->info->param_count;
    tir_rt_arg args[TIR_MAX_PARAMS];
    for (uint32_t i = 0; i < step->arg_count; i++)
        args[i] = step->args[i] < own ? r->args[step->args[i]] : r->scratch[step->args[i] - own];
    struct packing *p = &r->steps[index];
    const tir_rt_kernel *kernel = &r->whole->kernel->all[step->kernel];
    if (tir_packing_recall(p, kernel, args, step->arg_count, -1, RECALL_STEP, r->error))
        return TIR_OK;
    tir_status status = tir_packing_fill(p, kernel, args, step->arg_count, r->error);
    return status ? status : tir_packing_find(p, -1, TIR_ANY_CONFIG);
}

static tir_status pack_steps(struct run *r, uint64_t memory)
{
    tir_status status = TIR_OK;
    for (uint32_t i = 0; i < r->sequence->step_count; i++)
        r->steps[i].plan = NULL;
    for (uint32_t i = 0; i < r->sequence->scratch_count; i++)
        r->scratch[i] = tir_rt_arg_tensor(memory + r->offsets[i], r->sequence->scratch[i].element,
                                          r->sequence->scratch[i].rank, r->shapes[i], NULL);
    for (uint32_t i = 0; i < r->sequence->step_count && !status; i++)
        status = pack_step(r, i);
    return status;
}

static void release_steps(struct run *r)
{
    for (uint32_t i = 0; i < r->sequence->step_count; i++)
        tir_packing_done(&r->steps[i]);
}

// The report is of the first step, but for whether anything was launched.
static tir_status launch_steps(struct run *r, void *stream, const tir_rt_launch_options *options,
                               tir_rt_launch_report *report)
{
    tir_status status = TIR_OK;
    enum launch_place place = LAUNCH_ALONE;
    for (uint32_t i = 0; i < r->sequence->step_count && !status; i++) {
        tir_rt_launch_report one = {0};
        status = tir_packing_launch(&r->steps[i], stream, options, &one, place);
        place = one.launched ? LAUNCH_NEXT : LAUNCH_LATER;
        if (i == 0)
            *report = one;
        report->launched |= one.launched;
        if (!status && options->step_reports && i < options->step_report_count)
            options->step_reports[i] = one;
    }
    return status;
}

// *done is false where the sequence does not fit; the status then says why.
static tir_status launch(struct run *r, uint32_t index, void *stream,
                         const tir_rt_launch_options *options, bool *done)
{
    tir_rt_device *device = r->whole->kernel->device;
    tir_rt_launch_report report;
    uint64_t memory = options->scratch;
    tir_status status = place_all(r, index);
    const bool takes = r->size && (!memory || options->scratch_size < r->size);
    if (!status && takes)
        status = device->ops->scratch_take(device, stream, r->size, &memory, r->error);
    if (status)
        return status;
    status = pack_steps(r, memory);
    *done = !status;
    for (uint32_t i = 0; i < r->sequence->step_count && !status; i++)
        status = tir_packing_choose(&r->steps[i], -1, TIR_ANY_CONFIG);
    if (!status)
        status = launch_steps(r, stream, options, &report);
    release_steps(r);
    if (takes) {
        tir_error *error = status ? NULL : r->error;
        tir_status given = device->ops->scratch_give(device, stream, memory, error);
        status = status ? status : given;
    }
    report.variant = r->whole->info->variant_count + index;
    report.tuned = r->whole->is_tuned;
    if (options->report && !status)
        *options->report = report;
    return status;
}

// The cheapest sequence that was not tried yet, of those below; sequence_count: none.
static tir_status cheapest(const struct packing *whole, uint32_t tried, uint32_t config,
                           int64_t below, uint32_t *out)
{
    const tir_artifact_kernel *info = whole->info;
    *out = info->sequence_count;
    for (uint32_t i = 0; i < info->sequence_count; i++) {
        const tir_artifact_sequence *sequence = &info->sequences[i];
        int64_t estimate = INT64_MAX - 1; // without one: the last resort
        tir_status status = TIR_OK;
        if (tried >> i & 1 || (config != TIR_ANY_CONFIG && sequence->config != config))
            continue;
        if (sequence->cost.count)
            status = tir_formula_eval(&sequence->cost, whole->dims, whole->values, &estimate,
                                      whole->error);
        if (status)
            return status;
        if (estimate >= below)
            continue;
        below = estimate;
        *out = i;
    }
    return TIR_OK;
}

tir_status tir_sequence_launch(struct packing *whole, const tir_rt_arg *args, void *stream,
                               const tir_rt_launch_options *options, uint32_t config, int64_t below,
                               bool *done)
{
    struct run r;
    tir_error later;                     // of sequences after the first that was tried
    tir_status status = TIR_ERR_INVALID; // of that one
    r.whole = whole;
    r.args = args;
    r.error = whole->error;
    *done = false;
    for (uint32_t tried = 0, i; !*done; tried |= 1u << i) {
        tir_status found = cheapest(whole, tried, config, below, &i);
        if (found || i == whole->info->sequence_count)
            return found ? found : status;
        tir_status one = launch(&r, i, stream, options, done);
        status = *done || !tried ? one : status;
        if (*done && one && tried && whole->error)
            *whole->error = later;
        if (*done)
            whole->variant = whole->info->variant_count + i;
        r.error = &later;
    }
    return status;
}

tir_status tir_sequence_launch_one(const struct packing *whole, const tir_rt_arg *args,
                                   void *stream, const tir_rt_launch_options *options,
                                   uint32_t index, bool *done)
{
    struct run r;
    *done = false;
    r.whole = whole;
    r.args = args;
    r.error = whole->error;
    return launch(&r, index, stream, options, done);
}

tir_status tir_sequence_steps(const struct packing *whole, const tir_rt_arg *args, uint32_t config,
                              int64_t below,
                              tir_status (*visit)(void *user, const tir_rt_kernel *kernel,
                                                  uint32_t variant, tir_error *error),
                              void *user, bool *done)
{
    const uint64_t anywhere = 1 << 20; // scratch memory that nothing touches
    struct run r;
    tir_status status = TIR_ERR_INVALID;
    r.whole = whole;
    r.args = args;
    r.error = whole->error;
    *done = false;
    for (uint32_t tried = 0, i; !*done; tried |= 1u << i) {
        tir_status found = cheapest(whole, tried, config, below, &i);
        if (found || i == whole->info->sequence_count)
            return found ? found : status;
        status = place_all(&r, i);
        if (status)
            continue;
        status = pack_steps(&r, anywhere);
        *done = !status;
        for (uint32_t s = 0; s < r.sequence->step_count && !status; s++)
            status = visit(user, r.steps[s].kernel, r.steps[s].variant, whole->error);
        release_steps(&r);
    }
    return status;
}
