// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Graphs of an emulator: a list of calls, which a captured stream writes down.
//
// A launch of the graph makes the calls again, on the default stream, where each is done at once.
// Scratch memory is taken when it is captured and kept until the graph is destroyed, so that its
// address stays the one that the launches have.

#include "emu_graph.h"

#include <string.h>

#include "error.h"
#include "host.h"

enum node_kind { NODE_LAUNCH, NODE_COPY, NODE_FILL, NODE_MEMORY };

struct node {
    struct node *next;
    size_t bytes; // of this node, the parameters after it included
    enum node_kind kind;
    uint64_t dst, src, size;
    uint8_t value;
    void *module, *function;
    struct device_launch launch;
};

struct emu_graph {
    struct node *first, **last;
    pthread_mutex_t lock; // its launches run one after the other
};

// A stream has nothing to remember but what it captures; graph NULL: it does its work at once.
struct emu_stream {
    pthread_mutex_t lock; // guards the graph and its list, which several threads may add to
    struct emu_graph *graph;
};

tir_status tir_emu_stream_create(tir_rt_device *device, void **out, tir_error *error)
{
    struct emu_stream *stream = tir_host_alloc(device->allocator, sizeof *stream);
    if (!stream)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a stream");
    pthread_mutex_init(&stream->lock, NULL);
    *out = stream;
    return TIR_OK;
}

void tir_emu_stream_destroy(tir_rt_device *device, void *handle)
{
    struct emu_stream *stream = handle;
    pthread_mutex_destroy(&stream->lock);
    tir_host_free(device->allocator, stream, sizeof *stream);
}

tir_status tir_emu_capture_begin(tir_rt_device *device, void *handle, tir_error *error)
{
    struct emu_stream *stream = handle;
    struct emu_graph *graph = tir_host_alloc(device->allocator, sizeof *graph);
    if (!graph)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a graph");
    graph->last = &graph->first;
    pthread_mutex_init(&graph->lock, NULL);
    pthread_mutex_lock(&stream->lock);
    stream->graph = graph;
    pthread_mutex_unlock(&stream->lock);
    return TIR_OK;
}

tir_status tir_emu_capture_end(tir_rt_device *device, void *handle, void **graph, tir_error *error)
{
    struct emu_stream *stream = handle;
    (void)device;
    (void)error;
    pthread_mutex_lock(&stream->lock);
    *graph = stream->graph;
    stream->graph = NULL;
    pthread_mutex_unlock(&stream->lock);
    return TIR_OK;
}

static tir_status run(tir_rt_device *device, const struct node *node, tir_error *error)
{
    const struct device_ops *ops = device->ops;
    switch (node->kind) {
    case NODE_LAUNCH:
        return ops->launch(device, NULL, node->module, node->function, &node->launch, error);
    case NODE_COPY:
        return ops->copy(device, node->dst, node->src, node->size, NULL, error);
    case NODE_FILL:
        return ops->fill(device, node->dst, node->value, node->size, NULL, error);
    case NODE_MEMORY:
        break;
    }
    return TIR_OK;
}

tir_status tir_emu_graph_launch(tir_rt_device *device, void *handle, void *stream, tir_error *error)
{
    struct emu_graph *graph = handle;
    tir_status status = TIR_OK;
    (void)stream;
    pthread_mutex_lock(&graph->lock);
    for (const struct node *node = graph->first; node && !status; node = node->next)
        status = run(device, node, error);
    pthread_mutex_unlock(&graph->lock);
    return status;
}

void tir_emu_graph_destroy(tir_rt_device *device, void *handle)
{
    struct emu_graph *graph = handle;
    for (struct node *node = graph->first, *next; node; node = next) {
        next = node->next;
        if (node->kind == NODE_MEMORY)
            device->ops->free(device, node->dst);
        tir_host_free(device->allocator, node, node->bytes);
    }
    pthread_mutex_destroy(&graph->lock);
    tir_host_free(device->allocator, graph, sizeof *graph);
}

bool tir_emu_captures(void *handle)
{
    struct emu_stream *stream = handle;
    if (!stream)
        return false;
    pthread_mutex_lock(&stream->lock);
    const bool captures = stream->graph;
    pthread_mutex_unlock(&stream->lock);
    return captures;
}

// A copy of the node at the end of the list, with room for `more` bytes after it.
static tir_status append(tir_rt_device *device, struct emu_graph *graph, const struct node *node,
                         const void *params, size_t more, tir_error *error)
{
    struct node *copy = tir_host_alloc(device->allocator, sizeof *copy + more);
    if (!copy)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a graph");
    *copy = *node;
    copy->next = NULL;
    copy->bytes = sizeof *copy + more;
    if (more)
        copy->launch.params = memcpy(copy + 1, params, more);
    *graph->last = copy;
    graph->last = &copy->next;
    return TIR_OK;
}

// To the stream's graph, if it has one.
static bool add(tir_rt_device *device, struct emu_stream *stream, const struct node *node,
                const void *params, size_t more, tir_status *status, tir_error *error)
{
    *status = TIR_OK;
    if (!stream)
        return false;
    pthread_mutex_lock(&stream->lock);
    const bool captures = stream->graph;
    if (captures)
        *status = append(device, stream->graph, node, params, more, error);
    pthread_mutex_unlock(&stream->lock);
    return captures;
}

bool tir_emu_add_launch(tir_rt_device *device, void *stream, void *module, void *function,
                        const struct device_launch *launch, tir_status *status, tir_error *error)
{
    struct node node = {
        .kind = NODE_LAUNCH, .module = module, .function = function, .launch = *launch};
    node.launch.parts = NULL; // the driver's
    return add(device, stream, &node, launch->params, launch->params_size, status, error);
}

bool tir_emu_add_copy(tir_rt_device *device, void *stream, uint64_t dst, uint64_t src,
                      uint64_t size, tir_status *status, tir_error *error)
{
    const struct node node = {.kind = NODE_COPY, .dst = dst, .src = src, .size = size};
    return add(device, stream, &node, NULL, 0, status, error);
}

bool tir_emu_add_fill(tir_rt_device *device, void *stream, uint64_t dst, uint8_t value,
                      uint64_t size, tir_status *status, tir_error *error)
{
    const struct node node = {.kind = NODE_FILL, .dst = dst, .value = value, .size = size};
    return add(device, stream, &node, NULL, 0, status, error);
}

tir_status tir_emu_add_memory(tir_rt_device *device, void *stream, uint64_t size, uint64_t *out,
                              tir_error *error)
{
    struct node node = {.kind = NODE_MEMORY, .size = size};
    tir_status status = device->ops->alloc(device, size, &node.dst, error);
    if (status)
        return status;
    add(device, stream, &node, NULL, 0, &status, error);
    if (status)
        device->ops->free(device, node.dst);
    *out = node.dst;
    return status;
}
