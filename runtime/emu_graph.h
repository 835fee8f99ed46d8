// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Graphs of an emulator: a list of calls, which a captured stream writes down.
#ifndef TIR_RUNTIME_EMU_GRAPH_H
#define TIR_RUNTIME_EMU_GRAPH_H

#include "device.h"

struct emu_graph;

// A stream has nothing to remember but what it captures; NULL: it does its work at once.
struct emu_stream {
    pthread_mutex_t lock; // guards the list, which several threads may add to
    struct emu_graph *graph;
};

// The graph that the stream captures, or NULL.
static inline struct emu_graph *tir_emu_captured(const struct emu_stream *stream)
{
    return stream ? stream->graph : NULL;
}

tir_status tir_emu_stream_create(tir_rt_device *device, void **out, tir_error *error);
void tir_emu_stream_destroy(tir_rt_device *device, void *stream);
tir_status tir_emu_capture_begin(tir_rt_device *device, void *stream, tir_error *error);
tir_status tir_emu_capture_end(tir_rt_device *device, void *stream, void **graph, tir_error *error);
tir_status tir_emu_graph_launch(tir_rt_device *device, void *graph, void *stream, tir_error *error);
void tir_emu_graph_destroy(tir_rt_device *device, void *graph);

// One more call of the stream's graph. Memory that is taken belongs to the graph.
tir_status tir_emu_add_launch(tir_rt_device *device, struct emu_stream *stream, void *module,
                              void *function, const struct device_launch *launch, tir_error *error);
tir_status tir_emu_add_copy(tir_rt_device *device, struct emu_stream *stream, uint64_t dst,
                            uint64_t src, uint64_t size, tir_error *error);
tir_status tir_emu_add_fill(tir_rt_device *device, struct emu_stream *stream, uint64_t dst,
                            uint8_t value, uint64_t size, tir_error *error);
tir_status tir_emu_add_memory(tir_rt_device *device, struct emu_stream *stream, uint64_t size,
                              uint64_t *out, tir_error *error);

#endif
