// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by all devices: the first fault, streams, events and graphs.
//
// A public function calls tir_device_enter, then the device's own function with an error that is
// never NULL, then tir_device_leave. Faults are rare and tested often, so the flag is atomic and
// the message is under a lock.

#include "device.h"

#include <time.h>

#include "error.h"
#include "host.h"
#include "runtime.h"
#include "watchdog.h"

struct tir_rt_graph {
    tir_rt_device *device;
    void *native;
};

struct tir_rt_event {
    tir_rt_device *device;
    void *native;
    atomic_bool recorded;
};

void tir_device_init(tir_rt_device *device, tir_runtime *runtime, const struct device_ops *ops)
{
    device->ops = ops;
    device->runtime = runtime;
    device->allocator = &runtime->allocator;
    atomic_init(&device->faulted, false);
    atomic_init(&device->captures, 0);
    // A default mutex cannot fail to initialise on the systems this library runs on.
    pthread_mutex_init(&device->fault_lock, NULL);
}

void tir_device_fini(tir_rt_device *device)
{
    pthread_mutex_destroy(&device->fault_lock);
}

tir_status tir_device_enter(tir_rt_device *device, tir_error *error)
{
    if (!atomic_load_explicit(&device->faulted, memory_order_acquire))
        return TIR_OK;
    pthread_mutex_lock(&device->fault_lock);
    if (error)
        *error = device->fault;
    pthread_mutex_unlock(&device->fault_lock);
    return TIR_ERR_DEVICE;
}

tir_status tir_device_leave(tir_rt_device *device, tir_status status, tir_error *error)
{
    if (status != TIR_ERR_DEVICE)
        return status;
    tir_watchdog_explain(device, error);
    pthread_mutex_lock(&device->fault_lock);
    if (!atomic_load_explicit(&device->faulted, memory_order_relaxed)) {
        device->fault = *error;
        atomic_store_explicit(&device->faulted, true, memory_order_release);
    }
    pthread_mutex_unlock(&device->fault_lock);
    return status;
}

tir_status tir_device_stream(const tir_rt_device *device, const tir_rt_stream *stream,
                             void **native, tir_error *error)
{
    *native = stream ? stream->native : NULL;
    if (stream && stream->device != device)
        return tir_error_set(error, TIR_ERR_INVALID, "the stream belongs to another device");
    if (!stream && atomic_load(&device->captures))
        return tir_error_set(error, TIR_ERR_INVALID,
                             "the default stream waits for all others, and one is in capture");
    return TIR_OK;
}

tir_status tir_device_stream_now(const tir_rt_device *device, const tir_rt_stream *stream,
                                 void **native, tir_error *error)
{
    tir_status status = tir_device_stream(device, stream, native, error);
    if (!status && stream && atomic_load(&stream->capturing))
        return tir_error_set(error, TIR_ERR_INVALID,
                             "the stream is in capture, which takes launches, copies and fills");
    return status;
}

TIR_API void tir_rt_device_destroy(tir_rt_device *device)
{
    if (device)
        device->ops->destroy(device);
}

TIR_API const tir_rt_device_info *tir_rt_device_describe(const tir_rt_device *device)
{
    return &device->info;
}

TIR_API size_t tir_rt_emu_findings(tir_rt_device *device, uint32_t json, char *text, size_t size)
{
    if (device->info.kind == TIR_RT_EMU)
        return tir_emu_findings(device, json, text, size);
    return tir_watchdog_report(device, json, text, size);
}

TIR_API tir_status tir_rt_device_synchronize(tir_rt_device *device, tir_error *error)
{
    tir_error local;
    void *native;
    error = error ? error : &local;
    tir_status status = tir_device_enter(device, error);
    if (status || (status = tir_device_stream(device, NULL, &native, error)))
        return status;
    return tir_device_leave(device, device->ops->synchronize(device, error), error);
}

static tir_status new_stream(tir_rt_device *device, tir_rt_stream **out, tir_error *error)
{
    *out = tir_host_alloc(device->allocator, sizeof **out);
    if (!*out)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a stream");
    (*out)->device = device;
    atomic_init(&(*out)->capturing, false);
    pthread_mutex_init(&(*out)->steps, NULL);
    return TIR_OK;
}

static void free_stream(tir_rt_stream *stream)
{
    pthread_mutex_destroy(&stream->steps);
    tir_host_free(stream->device->allocator, stream, sizeof *stream);
}

TIR_API tir_status tir_rt_stream_create(tir_rt_device *device, tir_rt_stream **out,
                                        tir_error *error)
{
    tir_error local;
    tir_rt_stream *stream;
    error = error ? error : &local;
    *out = NULL;
    tir_status status = tir_device_enter(device, error);
    if (status || (status = new_stream(device, &stream, error)))
        return status;
    status = device->ops->stream_create(device, &stream->native, error);
    if (status)
        free_stream(stream);
    else
        *out = stream;
    return tir_device_leave(device, status, error);
}

TIR_API tir_status tir_rt_stream_adopt(tir_rt_device *device, void *cu_stream, tir_rt_stream **out,
                                       tir_error *error)
{
    *out = NULL;
    if (!device->foreign_streams)
        return tir_error_set(error, TIR_ERR_UNSUPPORTED, "device %s has no streams to adopt",
                             device->info.spec);
    tir_status status = tir_device_enter(device, error);
    if (status || (status = new_stream(device, out, error)))
        return status;
    (*out)->native = cu_stream;
    (*out)->adopted = true;
    return TIR_OK;
}

TIR_API void tir_rt_stream_destroy(tir_rt_stream *stream)
{
    if (!stream)
        return;
    if (atomic_load(&stream->capturing)) {
        tir_rt_graph *graph;
        if (tir_rt_capture_end(stream, &graph, NULL) == TIR_OK)
            tir_rt_graph_destroy(graph);
    }
    if (!stream->adopted)
        stream->device->ops->stream_destroy(stream->device, stream->native);
    free_stream(stream);
}

TIR_API tir_status tir_rt_stream_synchronize(tir_rt_stream *stream, tir_error *error)
{
    tir_error local;
    tir_rt_device *device = stream->device;
    void *native;
    error = error ? error : &local;
    tir_status status = tir_device_enter(device, error);
    if (status || (status = tir_device_stream_now(device, stream, &native, error)))
        return status;
    status = device->ops->stream_synchronize(device, native, error);
    return tir_device_leave(device, status, error);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

TIR_API tir_status tir_rt_stream_wait(tir_rt_device *device, tir_rt_stream *stream,
                                      uint32_t timeout_ms, uint32_t *done, tir_error *error)
{
    static const struct timespec pause = {0, 200000};
    const int64_t end = now_ms() + timeout_ms;
    tir_error local;
    void *native;
    bool is_done = false;
    error = error ? error : &local;
    *done = 0;
    tir_status status = tir_device_enter(device, error);
    if (status)
        return status;
    // Each time anew: to ask for a stream that another thread captures meanwhile ends the capture.
    while (!(status = tir_device_stream_now(device, stream, &native, error)) &&
           !(status = device->ops->stream_done(device, native, &is_done, error)) && !is_done &&
           now_ms() < end)
        nanosleep(&pause, NULL);
    *done = !status && is_done;
    return tir_device_leave(device, status, error);
}

TIR_API tir_status tir_rt_event_create(tir_rt_device *device, tir_rt_event **out, tir_error *error)
{
    tir_error local;
    error = error ? error : &local;
    *out = NULL;
    tir_status status = tir_device_enter(device, error);
    if (status)
        return status;
    tir_rt_event *event = tir_host_alloc(device->allocator, sizeof *event);
    if (!event)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for an event");
    event->device = device;
    atomic_init(&event->recorded, false);
    status = device->ops->event_create(device, &event->native, error);
    if (status)
        tir_host_free(device->allocator, event, sizeof *event);
    else
        *out = event;
    return tir_device_leave(device, status, error);
}

TIR_API void tir_rt_event_destroy(tir_rt_event *event)
{
    if (!event)
        return;
    event->device->ops->event_destroy(event->device, event->native);
    tir_host_free(event->device->allocator, event, sizeof *event);
}

TIR_API tir_status tir_rt_event_record(tir_rt_event *event, tir_rt_stream *stream, tir_error *error)
{
    tir_error local;
    tir_rt_device *device = event->device;
    void *native;
    error = error ? error : &local;
    tir_status status = tir_device_enter(device, error);
    if (status || (status = tir_device_stream_now(device, stream, &native, error)))
        return status;
    status = device->ops->event_record(device, event->native, native, error);
    if (!status)
        atomic_store(&event->recorded, true);
    return tir_device_leave(device, status, error);
}

TIR_API tir_status tir_rt_event_elapsed(tir_rt_event *start, tir_rt_event *end, float *out,
                                        tir_error *error)
{
    tir_error local;
    tir_rt_device *device = start->device;
    error = error ? error : &local;
    *out = 0;
    tir_status status = tir_device_enter(device, error);
    if (status)
        return status;
    if (end->device != device)
        return tir_error_set(error, TIR_ERR_INVALID, "the two events belong to different devices");
    if (!atomic_load(&start->recorded) || !atomic_load(&end->recorded))
        return tir_error_set(error, TIR_ERR_INVALID, "an event has not been recorded");
    status = device->ops->event_elapsed(device, start->native, end->native, out, error);
    return tir_device_leave(device, status, error);
}

static tir_status begin_capture(tir_rt_stream *stream, tir_error *error)
{
    tir_rt_device *device = stream->device;
    if (atomic_exchange(&stream->capturing, true))
        return tir_error_set(error, TIR_ERR_INVALID, "the stream is in capture already");
    atomic_fetch_add(&device->captures, 1);
    tir_status status = device->ops->capture_begin(device, stream->native, error);
    if (status) {
        atomic_store(&stream->capturing, false);
        atomic_fetch_sub(&device->captures, 1);
    }
    return status;
}

TIR_API tir_status tir_rt_capture_begin(tir_rt_stream *stream, tir_error *error)
{
    tir_error local;
    tir_rt_device *device = stream->device;
    error = error ? error : &local;
    tir_status status = tir_device_enter(device, error);
    if (status)
        return status;
    pthread_mutex_lock(&stream->steps);
    status = begin_capture(stream, error);
    pthread_mutex_unlock(&stream->steps);
    return tir_device_leave(device, status, error);
}

static tir_status end_capture(tir_rt_stream *stream, tir_rt_graph **out, tir_error *error)
{
    tir_rt_device *device = stream->device;
    void *native = NULL;
    if (!atomic_load(&stream->capturing))
        return tir_error_set(error, TIR_ERR_INVALID, "the stream is not in capture");
    tir_status status = device->ops->capture_end(device, stream->native, &native, error);
    atomic_store(&stream->capturing, false); // only now, so that no call that waits spoils the end
    atomic_fetch_sub(&device->captures, 1);
    tir_rt_graph *graph = status ? NULL : tir_host_alloc(device->allocator, sizeof *graph);
    if (!status && !graph) {
        device->ops->graph_destroy(device, native);
        status = tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a graph");
    }
    if (graph)
        *graph = (tir_rt_graph){device, native};
    *out = graph;
    return status;
}

// The capture ends even on a device with a fault, and without memory for its graph.
TIR_API tir_status tir_rt_capture_end(tir_rt_stream *stream, tir_rt_graph **out, tir_error *error)
{
    tir_error local;
    error = error ? error : &local;
    *out = NULL;
    pthread_mutex_lock(&stream->steps);
    tir_status status = end_capture(stream, out, error);
    pthread_mutex_unlock(&stream->steps);
    const tir_status fault = tir_device_enter(stream->device, error);
    if (!fault)
        return tir_device_leave(stream->device, status, error);
    tir_rt_graph_destroy(*out);
    *out = NULL;
    return fault;
}

TIR_API tir_status tir_rt_graph_launch(tir_rt_graph *graph, tir_rt_stream *stream, tir_error *error)
{
    tir_error local;
    tir_rt_device *device = graph->device;
    void *native;
    error = error ? error : &local;
    tir_status status = tir_device_enter(device, error);
    if (status || (status = tir_device_stream_now(device, stream, &native, error)))
        return status;
    status = device->ops->graph_launch(device, graph->native, native, error);
    return tir_device_leave(device, status, error);
}

TIR_API void tir_rt_graph_destroy(tir_rt_graph *graph)
{
    if (!graph)
        return;
    graph->device->ops->graph_destroy(graph->device, graph->native);
    tir_host_free(graph->device->allocator, graph, sizeof *graph);
}
