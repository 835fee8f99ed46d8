// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A GPU: its context, streams, events and memory.
//
// Every call needs the context current on its thread. Usually it is already, so that is asked first
// and costs a few nanoseconds; otherwise it is pushed for the duration of the call, which leaves
// the caller's own current context alone.

#include "cuda/cuda_device.h"

#include <stdio.h>
#include <string.h>

#include "error.h"
#include "host.h"
#include "runtime.h"

tir_status tir_cuda_enter(struct cuda_device *d, bool *pushed, tir_error *error)
{
    cu_context current = NULL;
    *pushed = false;
    tir_status status = CU_CALL(d->api, error, cuCtxGetCurrent, &current);
    if (status || current == d->context)
        return status;
    status = CU_CALL(d->api, error, cuCtxPushCurrent, d->context);
    *pushed = status == TIR_OK;
    return status;
}

void tir_cuda_leave(struct cuda_device *d, bool pushed)
{
    cu_context popped;
    if (pushed)
        d->api->cuCtxPopCurrent(&popped);
}

tir_status tir_cuda_relax(struct cuda_device *d, unsigned int *mode, tir_error *error)
{
    *mode = TIR_CU_STREAM_CAPTURE_MODE_RELAXED;
    if (!d->api->cuThreadExchangeStreamCaptureMode)
        return TIR_OK;
    return CU_CALL(d->api, error, cuThreadExchangeStreamCaptureMode, mode);
}

void tir_cuda_restore(struct cuda_device *d, unsigned int mode)
{
    if (d->api->cuThreadExchangeStreamCaptureMode)
        (void)d->api->cuThreadExchangeStreamCaptureMode(&mode);
}

static tir_status synchronize(tir_rt_device *device, tir_error *error)
{
    tir_status status;
    CU_CALL_IN(cuda_device_of(device), status, error, cuCtxSynchronize, );
    return status;
}

// Streams wait for the default stream and it for them, so that mixing them is safe.
static tir_status stream_create(tir_rt_device *device, void **out, tir_error *error)
{
    cu_stream stream = NULL;
    tir_status status;
    CU_CALL_IN(cuda_device_of(device), status, error, cuStreamCreate, &stream, 0);
    *out = stream;
    return status;
}

static void stream_destroy(tir_rt_device *device, void *stream)
{
    CU_RELEASE_IN(cuda_device_of(device), cuStreamDestroy, stream);
}

static tir_status stream_synchronize(tir_rt_device *device, void *stream, tir_error *error)
{
    tir_status status;
    CU_CALL_IN(cuda_device_of(device), status, error, cuStreamSynchronize, stream);
    return status;
}

static tir_status stream_done(tir_rt_device *device, void *stream, bool *done, tir_error *error)
{
    struct cuda_device *d = cuda_device_of(device);
    bool pushed;
    tir_status status = tir_cuda_enter(d, &pushed, error);
    if (status)
        return status;
    cu_result result = d->api->cuStreamQuery(stream);
    tir_cuda_leave(d, pushed);
    *done = result != TIR_CUDA_ERROR_NOT_READY;
    return *done ? tir_cuda_status(d->api, result, "cuStreamQuery", error) : TIR_OK;
}

static tir_status event_create(tir_rt_device *device, void **out, tir_error *error)
{
    cu_event event = NULL;
    tir_status status;
    CU_CALL_IN(cuda_device_of(device), status, error, cuEventCreate, &event, 0);
    *out = event;
    return status;
}

static void event_destroy(tir_rt_device *device, void *event)
{
    CU_RELEASE_IN(cuda_device_of(device), cuEventDestroy, event);
}

static tir_status event_record(tir_rt_device *device, void *event, void *stream, tir_error *error)
{
    tir_status status;
    CU_CALL_IN(cuda_device_of(device), status, error, cuEventRecord, event, stream);
    return status;
}

static tir_status event_elapsed(tir_rt_device *device, void *start, void *end, float *out,
                                tir_error *error)
{
    struct cuda_device *d = cuda_device_of(device);
    tir_status status;
    CU_CALL_IN(d, status, error, cuEventSynchronize, end);
    if (!status)
        CU_CALL_IN(d, status, error, cuEventElapsedTime, out, start, end);
    return status;
}

static tir_status mem_alloc(tir_rt_device *device, uint64_t size, uint64_t *out, tir_error *error)
{
    cu_deviceptr address = 0;
    tir_status status;
    CU_CALL_IN(cuda_device_of(device), status, error, cuMemAlloc, &address, size);
    *out = address;
    return status;
}

static void mem_free(tir_rt_device *device, uint64_t address)
{
    CU_RELEASE_IN(cuda_device_of(device), cuMemFree, address);
}

// Scratch memory comes from a pool of the device's own, which keeps what it was given once: taking
// some is then only a step of the stream, in a graph that is being captured too.

static tir_status make_pool(struct cuda_device *d, cu_pool *out, tir_error *error)
{
    const struct cuda_api *api = d->api;
    const struct cu_pool_props props = {
        .alloc_type = TIR_CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {TIR_CU_MEM_LOCATION_TYPE_DEVICE, d->device},
    };
    uint64_t keep = UINT64_MAX;
    if (!api->cuMemPoolCreate || !api->cuMemPoolDestroy || !api->cuMemPoolSetAttribute ||
        !api->cuMemAllocFromPoolAsync || !api->cuMemFreeAsync)
        return tir_error_set(error, TIR_ERR_UNSUPPORTED,
                             "this driver has no memory pools, which scratch tensors need");
    tir_status status = CU_CALL(api, error, cuMemPoolCreate, out, &props);
    if (!status)
        status = CU_CALL(api, error, cuMemPoolSetAttribute, *out,
                         TIR_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
    if (status && *out) {
        api->cuMemPoolDestroy(*out);
        *out = NULL;
    }
    return status;
}

static tir_status pool_of(struct cuda_device *d, cu_pool *out, tir_error *error)
{
    unsigned int mode;
    tir_status status = TIR_OK;
    pthread_mutex_lock(&d->pool_lock);
    if (!d->pool && !(status = tir_cuda_relax(d, &mode, error))) {
        status = make_pool(d, &d->pool, error);
        tir_cuda_restore(d, mode);
    }
    *out = d->pool;
    pthread_mutex_unlock(&d->pool_lock);
    return status;
}

static tir_status scratch_take(tir_rt_device *device, void *stream, uint64_t size, uint64_t *out,
                               tir_error *error)
{
    struct cuda_device *d = cuda_device_of(device);
    cu_deviceptr address = 0;
    cu_pool pool;
    tir_status status = pool_of(d, &pool, error);
    if (!status)
        CU_CALL_IN(d, status, error, cuMemAllocFromPoolAsync, &address, size, pool, stream);
    *out = address;
    return status;
}

static tir_status scratch_give(tir_rt_device *device, void *stream, uint64_t address,
                               tir_error *error)
{
    struct cuda_device *d = cuda_device_of(device);
    bool pushed;
    tir_status entered = tir_cuda_enter(d, &pushed, error);
    tir_status status = CU_CALL(d->api, entered ? NULL : error, cuMemFreeAsync, address, stream);
    tir_cuda_leave(d, pushed);
    return entered ? entered : status;
}

static tir_status mem_write(tir_rt_device *device, uint64_t dst, const void *src, uint64_t size,
                            void *stream, tir_error *error)
{
    struct cuda_device *d = cuda_device_of(device);
    tir_status status;
    CU_CALL_IN(d, status, error, cuMemcpyHtoDAsync, dst, src, size, stream);
    return status ? status : stream_synchronize(device, stream, error);
}

static tir_status mem_read(tir_rt_device *device, void *dst, uint64_t src, uint64_t size,
                           void *stream, tir_error *error)
{
    struct cuda_device *d = cuda_device_of(device);
    tir_status status;
    CU_CALL_IN(d, status, error, cuMemcpyDtoHAsync, dst, src, size, stream);
    return status ? status : stream_synchronize(device, stream, error);
}

static tir_status mem_copy(tir_rt_device *device, uint64_t dst, uint64_t src, uint64_t size,
                           void *stream, tir_error *error)
{
    tir_status status;
    CU_CALL_IN(cuda_device_of(device), status, error, cuMemcpyDtoDAsync, dst, src, size, stream);
    return status;
}

static tir_status mem_fill(tir_rt_device *device, uint64_t dst, uint8_t value, uint64_t size,
                           void *stream, tir_error *error)
{
    tir_status status;
    CU_CALL_IN(cuda_device_of(device), status, error, cuMemsetD8Async, dst, value, size, stream);
    return status;
}

// Pinned memory has one address for the host and the device.
static tir_status page_create(tir_rt_device *device, size_t size, struct device_page *out,
                              tir_error *error)
{
    tir_status status;
    CU_CALL_IN(cuda_device_of(device), status, error, cuMemAllocHost, &out->native, size);
    if (status)
        return status;
    memset(out->native, 0, size);
    out->address = (uintptr_t)out->native;
    return TIR_OK;
}

static void page_destroy(tir_rt_device *device, struct device_page *page)
{
    CU_RELEASE_IN(cuda_device_of(device), cuMemFreeHost, page->native);
}

static tir_status page_read(tir_rt_device *device, const struct device_page *page, size_t offset,
                            void *out, size_t size)
{
    (void)device;
    memcpy(out, (const char *)page->native + offset, size);
    return TIR_OK;
}

static void destroy(tir_rt_device *device)
{
    struct cuda_device *d = cuda_device_of(device);
    const tir_allocator *allocator = device->allocator;
    if (d->pool)
        CU_RELEASE_IN(d, cuMemPoolDestroy, d->pool);
    pthread_mutex_destroy(&d->pool_lock);
    if (d->owned)
        d->api->cuDevicePrimaryCtxRelease(d->device);
    tir_device_fini(device);
    tir_host_free(allocator, d, sizeof *d);
}

static const struct device_ops cuda_ops = {
    .destroy = destroy,
    .synchronize = synchronize,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_done = stream_done,
    .capture_begin = tir_cuda_capture_begin,
    .capture_end = tir_cuda_capture_end,
    .graph_launch = tir_cuda_graph_launch,
    .graph_destroy = tir_cuda_graph_destroy,
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
    .accepts = tir_cuda_accepts,
    .module_load = tir_cuda_module_load,
    .module_unload = tir_cuda_module_unload,
    .function = tir_cuda_function,
    .clusters = tir_cuda_clusters,
    .together = tir_cuda_together,
    .usage = tir_cuda_usage,
    .param = tir_cuda_param,
    .launch = tir_cuda_launch,
};

// ---- finding and opening GPUs

tir_status tir_cuda_count(const struct cuda_api *api, uint32_t *out, tir_error *error)
{
    int count = 0;
    tir_status status = CU_CALL(api, error, cuDeviceGetCount, &count);
    *out = status || count < 0 ? 0 : (uint32_t)count;
    return status;
}

static tir_status describe(const struct cuda_api *api, cu_device device, tir_rt_device_info *out,
                           tir_error *error)
{
    int major = 0, minor = 0, sms = 0, shared = 0, clock = 0;
    const struct {
        unsigned int attribute;
        int *value;
    } queries[] = {
        {TIR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
        {TIR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
        {TIR_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &sms},
        {TIR_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared},
        {TIR_CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &clock},
    };
    size_t memory = 0;
    *out = (tir_rt_device_info){.kind = TIR_RT_CUDA, .ordinal = device, .driver = api->version};
    tir_status status =
        CU_CALL(api, error, cuDeviceGetName, out->name, (int)sizeof out->name, device);
    if (!status)
        status = CU_CALL(api, error, cuDeviceTotalMem, &memory, device);
    for (size_t i = 0; i < sizeof queries / sizeof queries[0] && !status; i++)
        status = CU_CALL(api, error, cuDeviceGetAttribute, queries[i].value, queries[i].attribute,
                         device);
    snprintf(out->spec, sizeof out->spec, "cuda:%d", device);
    snprintf(out->arch, sizeof out->arch, "sm_%d%d", major, minor);
    out->sm_count = (uint32_t)sms;
    out->max_shared = (uint32_t)shared;
    out->clock_khz = (uint32_t)clock;
    out->memory = memory;
    return status;
}

tir_status tir_cuda_info(const struct cuda_api *api, uint32_t ordinal, tir_rt_device_info *out,
                         tir_error *error)
{
    cu_device device = 0;
    tir_status status = CU_CALL(api, error, cuDeviceGet, &device, (int)ordinal);
    return status ? status : describe(api, device, out, error);
}

static tir_status new_device(tir_runtime *runtime, const struct cuda_api *api,
                             struct cuda_device **out, tir_error *error)
{
    *out = tir_host_alloc(&runtime->allocator, sizeof **out);
    if (!*out)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a device");
    tir_device_init(&(*out)->base, runtime, &cuda_ops);
    pthread_mutex_init(&(*out)->pool_lock, NULL);
    (*out)->base.foreign_streams = true;
    (*out)->api = api;
    return TIR_OK;
}

// Hands the device out, or destroys it when making it has failed.
static tir_status finish(struct cuda_device *d, tir_status status, tir_rt_device **out,
                         tir_error *error)
{
    if (!status)
        status = describe(d->api, d->device, &d->base.info, error);
    if (status)
        destroy(&d->base);
    else
        *out = &d->base;
    return status;
}

tir_status tir_cuda_open(tir_runtime *runtime, const struct cuda_api *api, uint32_t ordinal,
                         tir_rt_device **out, tir_error *error)
{
    struct cuda_device *d;
    tir_status status = new_device(runtime, api, &d, error);
    if (status)
        return status;
    status = CU_CALL(api, error, cuDeviceGet, &d->device, (int)ordinal);
    if (!status)
        status = CU_CALL(api, error, cuDevicePrimaryCtxRetain, &d->context, d->device);
    d->owned = status == TIR_OK;
    return finish(d, status, out, error);
}

tir_status tir_cuda_adopt(tir_runtime *runtime, const struct cuda_api *api, void *context,
                          tir_rt_device **out, tir_error *error)
{
    struct cuda_device *d;
    tir_status status = new_device(runtime, api, &d, error);
    if (status)
        return status;
    d->context = context;
    CU_CALL_IN(d, status, error, cuCtxGetDevice, &d->device);
    return finish(d, status, out, error);
}
