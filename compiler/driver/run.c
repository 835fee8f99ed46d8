// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tirc run: compile, fill the inputs, launch, compare, time, print.
//
// The order matters: the device is opened first, since it decides what is compiled for; the
// artifact then says which values are needed. Outputs are copied before the launch, so that the
// reference starts from the same bytes, those of an inout tensor included. --explore does all of it
// once for each schedule, until one goes wrong.
#include <stdio.h>
#include <stdlib.h>

#include "tir/runtime.h"

#include "driver/bind.h"
#include "driver/command.h"
#include "driver/compile.h"
#include "driver/element.h"
#include "driver/emu_runtime.h"
#include "driver/result.h"
#include "driver/source.h"

struct run {
    struct tir_arena *arena;
    const struct tir_options *options;
    tir_error *error;
    const char *path;
    tir_str source;
    const char *schedule;          // of the emulator; NULL: the default
    struct tir_timeline *timeline; // or NULL
    const char *arch;
    tir_runtime *runtime;
    tir_rt_device *device;
    tir_rt_module *module;
    tir_rt_kernel *kernel;
    struct tir_bind bind;
    tir_rt_buffer *buffers[TIR_MAX_PARAMS];
    struct tir_tensor wants[TIR_MAX_PARAMS]; // what the reference gives, for outputs
    tir_rt_arg args[TIR_MAX_PARAMS];
    tir_rt_event *start, *end;
    struct tir_result result;
    bool is_stuck; // the device will not come back
};

// ---- device and kernel

static bool open_device(struct run *r)
{
    const char *spec = r->options->text[TIR_OPTION_DEVICE];
    FILE *log = r->options->given[TIR_OPTION_JSON] ? stderr : stdout;
    if (!tir_emu_runtime(r->options, r->schedule, log, r->timeline, &r->runtime, r->error) ||
        tir_rt_device_open(r->runtime, spec ? spec : "auto", &r->device, r->error))
        return false;
    static const enum tir_option emu_only[] = {TIR_OPTION_EMU_CHECK, TIR_OPTION_SCHEDULE,
                                               TIR_OPTION_EXPLORE, TIR_OPTION_THREADS};
    for (size_t i = 0; i < TIR_COUNT_OF(emu_only); i++)
        if (r->options->given[emu_only[i]] && tir_rt_device_describe(r->device)->kind != TIR_RT_EMU)
            return tir_fail(
                r->error, TIR_ERR_INVALID,
                "--emu-check, --schedule, --explore and --emu-threads need --device=emu");
    const char *arch = r->options->text[TIR_OPTION_ARCH];
    r->result.device = tir_rt_device_describe(r->device);
    r->arch = arch ? arch : tir_compile_arch_for(r->result.device->arch);
    return true;
}

static bool load(struct run *r)
{
    const bool is_emulator = r->result.device->kind == TIR_RT_EMU; // findings name source lines
    struct tir_compile_request request = {.arena = r->arena,
                                          .options = r->options,
                                          .path = r->path,
                                          .arch = r->arch,
                                          .outputs = 1u << TIR_OUTPUT_ARTIFACT,
                                          .line_info = is_emulator};
    request.log = r->options->given[TIR_OPTION_JSON] ? stderr : stdout;
    tir_compilation *compilation = NULL;
    if (!tir_source_read(r->arena, r->path, &r->source, r->error))
        return false;
    request.source = r->source;
    bool done = tir_compile_source(&request, &compilation, r->error);
    tir_str artifact =
        done ? tir_compilation_output(compilation, TIR_OUTPUT_ARTIFACT) : (tir_str){NULL, 0};
    done = done && !tir_rt_module_load(r->device, artifact.ptr, artifact.len, &r->module, r->error);
    tir_compilation_destroy(compilation);
    return done;
}

static bool pick_kernel(struct run *r)
{
    const tir_artifact_desc *desc = tir_rt_module_describe(r->module);
    const char *name = r->options->text[TIR_OPTION_KERNEL];
    if (!desc->kernel_count)
        return tir_fail(r->error, TIR_ERR_INVALID, "%s has no kernel", r->path);
    if (!name && desc->kernel_count > 1) {
        struct tir_text names;
        tir_text_init(&names, r->arena, 0);
        for (uint32_t i = 0; i < desc->kernel_count; i++)
            tir_text_format(&names, "%s%.*s", i ? ", " : "", (int)desc->kernels[i].name.len,
                            desc->kernels[i].name.ptr);
        return tir_fail(r->error, TIR_ERR_INVALID, "%s has several kernels: --kernel is one of %s",
                        r->path, names.ptr);
    }
    tir_str wanted = name ? tir_str_of(name) : desc->kernels[0].name;
    if (tir_rt_module_kernel(r->module, wanted, &r->kernel, r->error))
        return false;
    r->result.kernel = tir_rt_kernel_describe(r->kernel);
    r->result.arch = r->arch;
    return true;
}

// ---- arguments

static tir_rt_arg scalar_argument(const struct tir_bound *p)
{
    tir_rt_arg arg = {.kind = TIR_RT_SCALAR, .as.scalar.element = p->param->element};
    bool wide =
        p->scalar.elem == TIR_F32 || p->scalar.elem == TIR_TF32 || p->scalar.elem == TIR_F64;
    if (wide)
        arg.as.scalar.value.f = p->scalar.f;
    else if (tir_elem_is_float(p->scalar.elem))
        arg.as.scalar.value.u = p->scalar.bits;
    else
        arg.as.scalar.value.i = p->scalar.i; // unsigned: the same bits
    return arg;
}

static bool upload(struct run *r, uint32_t i)
{
    struct tir_bound *p = &r->bind.params[i];
    const struct tir_tensor *t = &p->tensor;
    bool output = tir_param_is_output(p->param);
    if (p->param->kind == TIR_PARAM_SCALAR) {
        r->args[i] = scalar_argument(p);
        return true;
    }
    if (output && !tir_tensor_clone(&r->wants[i], t, r->error))
        return false;
    if (tir_rt_buffer_create(r->device, t->size, &r->buffers[i], r->error) ||
        tir_rt_buffer_write(r->buffers[i], 0, t->bytes, t->size, NULL, r->error))
        return false;
    uint64_t base = tir_rt_buffer_address(r->buffers[i]);
    uint64_t skip = t->size ? (uint64_t)t->offset * tir_elem_size(t->elem) : 0;
    r->args[i] = tir_rt_arg_tensor(base + skip, p->param->element, t->rank, t->shape, t->strides);
    uint32_t times = p->param->direction == TIR_DIRECTION_INOUT ? 2 : 1;
    r->result.traffic += (uint64_t)t->count * tir_elem_size(t->elem) * times;
    if (output)
        r->result.outputs[r->result.output_count++].bound = p;
    return true;
}

static bool bind(struct run *r)
{
    const tir_artifact_kernel *kernel = r->result.kernel;
    uint64_t seed =
        r->options->given[TIR_OPTION_SEED] ? (uint64_t)r->options->integer[TIR_OPTION_SEED] : 1;
    if (!tir_bind_make(r->arena, kernel, r->path, r->options->args.at + 1, r->options->args.len - 1,
                       seed, &r->bind, r->error))
        return false;
    for (uint32_t i = 0; i < kernel->param_count; i++)
        if (!upload(r, i))
            return false;
    return true;
}

// ---- launching

static bool launch(struct run *r, tir_rt_launch_report *report)
{
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    options.report = report;
    options.timeout_ms =
        (uint32_t)TIR_MIN(r->options->integer[TIR_OPTION_TIMEOUT], UINT32_MAX / 1000) * 1000;
    return !tir_rt_launch(r->kernel, NULL, r->args, r->result.kernel->param_count, &options,
                          r->error);
}

// With --timeout, a kernel that hangs where no watchdog looks is left alone, somewhat later.
static bool wait_for_end(struct run *r)
{
    enum { MOST_S = 1000000, GRACE_MS = 2000 };
    const int64_t limit = TIR_MIN(r->options->integer[TIR_OPTION_TIMEOUT], MOST_S);
    uint32_t done;
    if (!limit)
        return !tir_rt_device_synchronize(r->device, r->error);
    if (tir_rt_stream_wait(r->device, NULL, (uint32_t)limit * 1250 + GRACE_MS, &done, r->error))
        return false;
    r->is_stuck = !done;
    return done || tir_fail(r->error, TIR_ERR_DEVICE,
                            "the kernel has not ended, and no wait for an mbarrier says why");
}

static bool launch_and_read(struct run *r)
{
    if (!launch(r, &r->result.report) || !wait_for_end(r))
        return false;
    for (uint32_t i = 0; i < r->result.kernel->param_count; i++) {
        struct tir_bound *p = &r->bind.params[i];
        if (tir_param_is_output(p->param) &&
            tir_rt_buffer_read(r->buffers[i], 0, p->tensor.bytes, p->tensor.size, NULL, r->error))
            return false;
    }
    return true;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool measure(struct run *r)
{
    int64_t count = r->options->integer[TIR_OPTION_TIME];
    int64_t warm_up = r->result.device->kind == TIR_RT_EMU ? 0 : TIR_MIN(count, 5);
    if (count > 1000000)
        return tir_fail(r->error, TIR_ERR_INVALID, "--time=%lld: at most 1000000 launches",
                        (long long)count);
    double *times = arena_array(r->arena, double, count);
    if (tir_rt_event_create(r->device, &r->start, r->error) ||
        tir_rt_event_create(r->device, &r->end, r->error))
        return false;
    for (int64_t i = -warm_up; i < count; i++) {
        tir_rt_launch_report report;
        float milliseconds;
        if (tir_rt_event_record(r->start, NULL, r->error) || !launch(r, &report) ||
            tir_rt_event_record(r->end, NULL, r->error) ||
            tir_rt_event_elapsed(r->start, r->end, &milliseconds, r->error))
            return false;
        if (i >= 0)
            times[i] = (double)milliseconds * 1e3;
    }
    qsort(times, (size_t)count, sizeof(*times), by_size);
    r->result.launches = (uint32_t)count;
    r->result.min_us = times[0];
    r->result.median_us = (times[(count - 1) / 2] + times[count / 2]) / 2;
    return true;
}

// ---- checking

// Whether bytes that belong to no element were changed: they held 0xFF.
static bool strayed(const struct tir_tensor *t)
{
    uint32_t size = tir_elem_size(t->elem);
    if (t->size == (uint64_t)t->count * size)
        return false;
    struct tir_tensor copy;
    tir_error error;
    if (!tir_tensor_clone(&copy, t, &error))
        return false;
    struct tir_cursor c = tir_cursor_first(&copy);
    for (int64_t i = 0; i < copy.count; i++, tir_cursor_next(&c))
        memset(c.at, 0xFF, size);
    uint64_t at = 0;
    while (at < copy.size && copy.bytes[at] == 0xFF)
        at++;
    bool found = at < copy.size;
    tir_tensor_free(&copy);
    return found;
}

static bool check(struct run *r)
{
    const tir_artifact_kernel *kernel = r->result.kernel;
    const char *rtol = r->options->text[TIR_OPTION_COMPARE];
    struct tir_reference_arg args[TIR_MAX_PARAMS];
    for (uint32_t i = 0; i < kernel->param_count; i++) {
        struct tir_bound *p = &r->bind.params[i];
        bool tensor = p->param->kind == TIR_PARAM_TENSOR;
        args[i].elem = tir_elem_of_element(p->param->element);
        args[i].tensor = !tensor ? NULL : tir_param_is_output(p->param) ? &r->wants[i] : &p->tensor;
        args[i].bits = p->scalar.bits;
    }
    const char *name = tir_str_copy(r->arena, kernel->name).ptr;
    if (!tir_reference_run(tir_str_of(r->path), r->source, r->options, name, args,
                           kernel->param_count, r->error))
        return false;
    r->result.checked = true;
    for (uint32_t i = 0; i < r->result.output_count; i++) {
        struct tir_result_output *o = &r->result.outputs[i];
        const struct tir_tensor *got = &o->bound->tensor;
        if (!tir_reference_compare(got, &r->wants[o->bound - r->bind.params],
                                   rtol ? r->options->number[TIR_OPTION_COMPARE] : -1,
                                   &o->difference, r->error))
            return false;
        o->stray = strayed(got);
        o->wrong = o->stray || o->difference.mismatches > 0;
    }
    return true;
}

// ---- all of it

static bool save(struct run *r)
{
    for (uint32_t i = 0; i < r->result.kernel->param_count; i++)
        if (r->bind.params[i].spec.save &&
            !tir_npy_save(r->bind.params[i].spec.save, &r->bind.params[i].tensor, r->error))
            return false;
    return true;
}

static bool run(struct run *r)
{
    return open_device(r) && load(r) && pick_kernel(r) && bind(r) && launch_and_read(r) &&
           (!r->options->given[TIR_OPTION_COMPARE] || check(r)) &&
           (r->options->integer[TIR_OPTION_TIME] == 0 || measure(r)) && save(r);
}

static void release(struct run *r)
{
    tir_rt_event_destroy(r->start);
    tir_rt_event_destroy(r->end);
    for (uint32_t i = 0; i < TIR_MAX_PARAMS; i++) {
        tir_rt_buffer_destroy(r->buffers[i]);
        tir_tensor_free(&r->wants[i]);
    }
    tir_bind_release(&r->bind);
    tir_rt_module_destroy(r->module);
    tir_rt_device_destroy(r->device);
    tir_runtime_destroy(r->runtime);
}

// One round; the caller releases it.
static bool begin_and_run(struct run *r, struct tir_arena *arena, const struct tir_options *options,
                          uint32_t round, tir_error *error)
{
    *r = (struct run){.arena = arena,
                      .options = options,
                      .error = error,
                      .path = options->args.at[0],
                      .schedule = tir_emu_schedule(arena, options, round)};
    return run(r);
}

bool tir_run_trace(struct tir_arena *arena, const struct tir_options *options,
                   struct tir_timeline *timeline, tir_error *error)
{
    struct run *r = arena_new(arena, struct run);
    *r = (struct run){.arena = arena,
                      .options = options,
                      .error = error,
                      .path = options->args.at[0],
                      .schedule = options->text[TIR_OPTION_SCHEDULE],
                      .timeline = timeline};
    const bool done = run(r);
    release(r);
    return done;
}

enum tir_exit tir_command_run(struct tir_arena *arena, const struct tir_options *options)
{
    tir_error error;
    if (!options->args.len) {
        fputs("tirc: run needs a file; tirc run --help says more\n", stderr);
        return TIR_EXIT_USAGE;
    }
    struct run *r = arena_new(arena, struct run);
    uint32_t round = 0, rounds = tir_emu_rounds(options);
    bool done = begin_and_run(r, arena, options, round, &error);
    while (done && tir_result_passes(&r->result) && ++round < rounds) {
        release(r);
        done = begin_and_run(r, arena, options, round, &error);
    }
    enum tir_exit status = TIR_EXIT_FINE;
    if (done) {
        struct tir_text text;
        tir_text_init(&text, arena, 0);
        (options->given[TIR_OPTION_JSON] ? tir_result_json : tir_result_text)(&r->result, &text);
        fwrite(text.ptr, 1, text.len, stdout);
        if (!tir_result_passes(&r->result))
            status = TIR_EXIT_WRONG;
    } else {
        status = tir_emu_complain(arena, r->device, &error);
        if (r->is_stuck) { // nothing of the device can be freed
            fflush(stdout);
            _Exit((int)status);
        }
    }
    if (status == TIR_EXIT_WRONG && options->given[TIR_OPTION_EXPLORE])
        fprintf(stderr, "tirc: in round %u of %u; --schedule=%s replays it\n", round + 1, rounds,
                r->schedule ? r->schedule : "lazy");
    release(r);
    return status;
}
