// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The PTX emulator as a device of the runtime.
//
// An emulator runs each call to completion, one at a time; a lock makes that safe from any thread.
// So a stream has nothing to remember but what it captures (emu_graph.c), and an event is a reading
// of the host's clock.

#include "device.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emu/emu.h"
#include "emu_graph.h"
#include "error.h"
#include "host.h"
#include "name.h"
#include "runtime.h"

enum { DEFAULT_SM_COUNT = 8 };
static const uint64_t default_memory = (uint64_t)8 << 30;

struct emu_device {
    tir_rt_device base;
    struct emu *emu;
    pthread_mutex_t lock; // guards those above and below
    uint64_t begin, end;  // cycles of the last launch in its trace
};

struct emu_event {
    struct timespec time;
};

static struct emu_device *of(tir_rt_device *device)
{
    return (struct emu_device *)device;
}

// Sets `status` to that of one call to the emulator, made alone.
#define EMU_CALL(e, status, call)         \
    do {                                  \
        pthread_mutex_lock(&(e)->lock);   \
        (status) = (call);                \
        pthread_mutex_unlock(&(e)->lock); \
    } while (0)

static tir_status synchronize(tir_rt_device *device, tir_error *error)
{
    (void)device;
    (void)error;
    return TIR_OK;
}

static tir_status stream_synchronize(tir_rt_device *device, void *stream, tir_error *error)
{
    (void)stream;
    return synchronize(device, error);
}

static tir_status stream_done(tir_rt_device *device, void *stream, bool *done, tir_error *error)
{
    *done = true;
    return stream_synchronize(device, stream, error);
}

static tir_status event_create(tir_rt_device *device, void **out, tir_error *error)
{
    *out = tir_host_alloc(device->allocator, sizeof(struct emu_event));
    return *out ? TIR_OK : tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for an event");
}

static void event_destroy(tir_rt_device *device, void *event)
{
    tir_host_free(device->allocator, event, sizeof(struct emu_event));
}

static tir_status event_record(tir_rt_device *device, void *event, void *stream, tir_error *error)
{
    (void)stream;
    (void)error;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct emu_device *e = of(device);
    pthread_mutex_lock(&e->lock);
    ((struct emu_event *)event)->time = now;
    pthread_mutex_unlock(&e->lock);
    return TIR_OK;
}

static tir_status event_elapsed(tir_rt_device *device, void *start, void *end, float *out,
                                tir_error *error)
{
    (void)error;
    struct emu_device *e = of(device);
    pthread_mutex_lock(&e->lock);
    struct timespec a = ((struct emu_event *)start)->time, b = ((struct emu_event *)end)->time;
    pthread_mutex_unlock(&e->lock);
    *out = (float)((double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) * 1e-6);
    return TIR_OK;
}

static tir_status mem_alloc(tir_rt_device *device, uint64_t size, uint64_t *out, tir_error *error)
{
    struct emu_device *e = of(device);
    tir_status status;
    EMU_CALL(e, status, emu_alloc(e->emu, size, out, error));
    return status;
}

static void mem_free(tir_rt_device *device, uint64_t address)
{
    struct emu_device *e = of(device);
    tir_status status;
    EMU_CALL(e, status, emu_free(e->emu, address, NULL));
    (void)status;
}

// A launch is done when it returns, so the streams do not matter but for what they capture.
static tir_status scratch_take(tir_rt_device *device, void *stream, uint64_t size, uint64_t *out,
                               tir_error *error)
{
    if (tir_emu_captures(stream))
        return tir_emu_add_memory(device, stream, size, out, error);
    return mem_alloc(device, size, out, error);
}

static tir_status scratch_give(tir_rt_device *device, void *stream, uint64_t address,
                               tir_error *error)
{
    (void)error;
    if (!tir_emu_captures(stream)) // else it is the graph's
        mem_free(device, address);
    return TIR_OK;
}

static tir_status mem_write(tir_rt_device *device, uint64_t dst, const void *src, uint64_t size,
                            void *stream, tir_error *error)
{
    (void)stream;
    struct emu_device *e = of(device);
    tir_status status;
    EMU_CALL(e, status, emu_write(e->emu, dst, src, size, error));
    return status;
}

static tir_status mem_read(tir_rt_device *device, void *dst, uint64_t src, uint64_t size,
                           void *stream, tir_error *error)
{
    (void)stream;
    struct emu_device *e = of(device);
    tir_status status;
    EMU_CALL(e, status, emu_read(e->emu, dst, src, size, error));
    return status;
}

static tir_status mem_copy(tir_rt_device *device, uint64_t dst, uint64_t src, uint64_t size,
                           void *stream, tir_error *error)
{
    struct emu_device *e = of(device);
    tir_status status;
    if (tir_emu_add_copy(device, stream, dst, src, size, &status, error))
        return status;
    EMU_CALL(e, status, emu_copy(e->emu, dst, src, size, error));
    return status;
}

static tir_status mem_fill(tir_rt_device *device, uint64_t dst, uint8_t value, uint64_t size,
                           void *stream, tir_error *error)
{
    struct emu_device *e = of(device);
    tir_status status;
    if (tir_emu_add_fill(device, stream, dst, value, size, &status, error))
        return status;
    EMU_CALL(e, status, emu_fill(e->emu, dst, value, size, error));
    return status;
}

static tir_status page_create(tir_rt_device *device, size_t size, struct device_page *out,
                              tir_error *error)
{
    tir_status status = mem_alloc(device, size, &out->address, error);
    return status ? status : mem_fill(device, out->address, 0, size, NULL, error);
}

static void page_destroy(tir_rt_device *device, struct device_page *page)
{
    mem_free(device, page->address);
}

static tir_status page_read(tir_rt_device *device, const struct device_page *page, size_t offset,
                            void *out, size_t size)
{
    return mem_read(device, out, page->address + offset, size, NULL, NULL);
}

// Findings name lines of the PTX, so it stays whole.
static tir_status accepts(tir_rt_device *device, const tir_artifact_desc *desc, bool has_ptx,
                          bool *whole, tir_error *error)
{
    (void)device;
    (void)desc;
    *whole = true;
    return has_ptx ? TIR_OK
                   : tir_error_set(error, TIR_ERR_UNSUPPORTED,
                                   "the artifact has a cubin only; the emulator runs PTX");
}

static tir_status module_load(tir_rt_device *device, const tir_artifact_desc *desc, void **out,
                              tir_error *error)
{
    struct emu_device *e = of(device);
    struct emu_module *module = NULL;
    tir_status status;
    EMU_CALL(e, status, emu_load(e->emu, desc->ptx, &module, error));
    *out = module;
    return status;
}

static void module_unload(tir_rt_device *device, void *module)
{
    struct emu_device *e = of(device);
    pthread_mutex_lock(&e->lock);
    emu_unload(e->emu, module);
    pthread_mutex_unlock(&e->lock);
}

// A function is its name, the one in the module: the caller's need not live so long.
static tir_status function(tir_rt_device *device, void *module, const tir_artifact_variant *variant,
                           void **out, tir_error *error)
{
    struct emu_device *e = of(device);
    struct emu_kernel_info info;
    tir_status status;
    EMU_CALL(e, status, emu_kernel_info(module, variant->entry.ptr, &info, error));
    *out = status ? NULL : (void *)(uintptr_t)info.name;
    return status;
}

static tir_status usage(tir_rt_device *device, void *module, void *name, tir_rt_usage *out,
                        tir_error *error)
{
    struct emu_device *e = of(device);
    struct emu_kernel_info info = {0};
    tir_status status;
    EMU_CALL(e, status, emu_kernel_info(module, name, &info, error));
    out->static_shared = info.static_shared_bytes;
    out->max_threads = info.max_threads ? info.max_threads : 1024;
    return status;
}

static tir_status param(tir_rt_device *device, void *module, void *name, uint32_t index,
                        size_t *offset, size_t *size, tir_error *error)
{
    struct emu_device *e = of(device);
    tir_status status;
    EMU_CALL(e, status, emu_kernel_param(module, name, index, offset, size, error));
    return status;
}

static void name_warp(const void *user, uint32_t warp, char *text, size_t size)
{
    const tir_artifact_role *role = tir_name_role(user, warp);
    if (role)
        snprintf(text, size, "%.*s", TIR_STR(role->name));
}

static void name_shared(const void *user, uint32_t offset, char *text, size_t size)
{
    uint32_t index;
    const tir_artifact_barrier *barrier = tir_name_barrier(user, offset, &index);
    if (barrier && barrier->count == 1)
        snprintf(text, size, "%.*s", TIR_STR(barrier->name));
    else if (barrier)
        snprintf(text, size, "%.*s[%u]", TIR_STR(barrier->name), index);
}

static tir_status together(tir_rt_device *device, void *function,
                           const tir_artifact_variant *variant, uint32_t *out, tir_error *error)
{
    (void)device;
    (void)function;
    (void)variant;
    (void)error;
    *out = EMU_TOGETHER;
    return TIR_OK;
}

static tir_status launch(tir_rt_device *device, void *stream, void *module, void *name,
                         const struct device_launch *launch, tir_error *error)
{
    tir_status status;
    if (tir_emu_add_launch(device, stream, module, name, launch, &status, error))
        return status;
    struct emu_device *e = of(device);
    const struct emu_names names = {name_warp, name_shared, launch->variant};
    struct emu_launch call = {
        .names = launch->variant ? &names : NULL,
        .shared_bytes = launch->dynamic_shared,
        .params = launch->params,
        .params_size = launch->params_size,
    };
    call.cooperative = launch->cooperative;
    memcpy(call.grid, launch->grid, sizeof call.grid);
    memcpy(call.block, launch->block, sizeof call.block);
    memcpy(call.cluster, launch->cluster, sizeof call.cluster);
    memcpy(call.preferred, launch->preferred, sizeof call.preferred);
    pthread_mutex_lock(&e->lock);
    e->begin = e->end = launch->follows ? e->end : 0;
    status = emu_run(e->emu, module, name, &call, error);
    pthread_mutex_unlock(&e->lock);
    return status;
}

static void destroy(tir_rt_device *device)
{
    struct emu_device *e = of(device);
    const tir_allocator *allocator = device->allocator;
    emu_destroy(e->emu);
    pthread_mutex_destroy(&e->lock);
    tir_device_fini(device);
    tir_host_free(allocator, e, sizeof *e);
}

static const struct device_ops emu_ops = {
    .destroy = destroy,
    .synchronize = synchronize,
    .stream_create = tir_emu_stream_create,
    .stream_destroy = tir_emu_stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_done = stream_done,
    .capture_begin = tir_emu_capture_begin,
    .capture_end = tir_emu_capture_end,
    .graph_launch = tir_emu_graph_launch,
    .graph_destroy = tir_emu_graph_destroy,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_elapsed = event_elapsed,
    .alloc = mem_alloc,
    .free = mem_free,
    .scratch_take = scratch_take,
    .scratch_give = scratch_give,
    .write = mem_write,
    .read = mem_read,
    .copy = mem_copy,
    .fill = mem_fill,
    .page_create = page_create,
    .page_destroy = page_destroy,
    .page_read = page_read,
    .accepts = accepts,
    .module_load = module_load,
    .module_unload = module_unload,
    .function = function,
    .together = together,
    .usage = usage,
    .param = param,
    .launch = launch,
};

size_t tir_emu_findings(tir_rt_device *device, uint32_t json, char *text, size_t size)
{
    struct emu_device *e = of(device);
    pthread_mutex_lock(&e->lock);
    const size_t length =
        json ? emu_findings_json(e->emu, text, size) : emu_findings_text(e->emu, text, size);
    pthread_mutex_unlock(&e->lock);
    return length;
}

void tir_emu_info(const tir_runtime *runtime, tir_rt_device_info *out)
{
    const tir_runtime_options *options = &runtime->options;
    *out = (tir_rt_device_info){
        .kind = TIR_RT_EMU,
        .spec = "emu",
        .name = "PTX emulator",
        .sm_count = options->emu_sm_count ? options->emu_sm_count : DEFAULT_SM_COUNT,
        .memory = options->emu_memory ? options->emu_memory : default_memory,
    };
}

tir_status tir_emu_settings(tir_runtime *runtime, tir_error *error)
{
    const char *schedule = runtime->options.emu_schedule;
    enum emu_policy policy = EMU_LAZY;
    if (schedule && !emu_policy_parse(schedule, &policy, &runtime->emu_seed))
        return tir_error_set(
            error, TIR_ERR_INVALID,
            "schedule '%.40s' is none of eager, lazy, adversarial[:SEED], random:SEED", schedule);
    if (runtime->options.emu_check > TIR_RT_EMU_CHECK_FULL)
        return tir_error_set(error, TIR_ERR_INVALID, "there is no check level %u",
                             runtime->options.emu_check);
    runtime->emu_policy = policy;
    runtime->options.emu_schedule = NULL;
    return TIR_OK;
}

static enum emu_check check_level(const tir_runtime_options *options)
{
    if (options->emu_unchecked || options->emu_check == TIR_RT_EMU_CHECK_OFF)
        return EMU_CHECK_OFF;
    return options->emu_check == TIR_RT_EMU_CHECK_DEFAULT
               ? EMU_CHECK_MEMORY
               : (enum emu_check)(options->emu_check - TIR_RT_EMU_CHECK_OFF);
}

// Hands an event of the emulator on as one of the runtime.
static void trace(void *user, const struct emu_trace_event *e)
{
    struct emu_device *device = user;
    const tir_runtime_options *options = &device->base.runtime->options;
    tir_rt_trace_event event = {
        .kind = (tir_rt_trace_kind)e->kind,
        .name = e->name,
        .engine = e->engine,
        .warp = e->warp,
        .group = e->group,
        .ptx_line = e->ptx_line,
        .ptx_last = e->ptx_last,
        .file = e->file,
        .source_line = e->source_line,
        .source_last = e->source_last,
        .start = device->begin + e->start,
        .end = device->begin + e->end,
    };
    device->end = event.end > device->end ? event.end : device->end;
    memcpy(event.cta, e->cta, sizeof event.cta);
    options->emu_trace(options->emu_trace_user, &event);
}

static uint32_t threads(const tir_runtime_options *options)
{
    if (options->emu_threads)
        return options->emu_threads;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 1 && cores < INT32_MAX ? (uint32_t)cores : 1;
}

tir_status tir_emu_open(tir_runtime *runtime, tir_rt_device **out, tir_error *error)
{
    struct emu_device *e = tir_host_alloc(&runtime->allocator, sizeof *e);
    if (!e)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a device");
    tir_device_init(&e->base, runtime, &emu_ops);
    pthread_mutex_init(&e->lock, NULL);
    tir_emu_info(runtime, &e->base.info);
    struct emu_options options = {
        .allocator = runtime->options.allocator,
        .threads = threads(&runtime->options),
        .sm_count = e->base.info.sm_count,
        .memory_limit = e->base.info.memory,
        .check = check_level(&runtime->options),
        .policy = (enum emu_policy)runtime->emu_policy,
        .seed = runtime->emu_seed,
        .step_limit = runtime->options.emu_steps,
        .time_limit = runtime->options.emu_timeout_ms,
        .print = runtime->options.emu_print,
        .print_user = runtime->options.emu_print_user,
        .trace = runtime->options.emu_trace ? trace : NULL,
        .trace_user = e,
    };
    tir_status status = emu_create(&options, &e->emu, error);
    if (status)
        destroy(&e->base);
    else
        *out = &e->base;
    return status;
}
