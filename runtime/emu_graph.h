// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Graphs of an emulator: a list of calls, which a captured stream writes down.
#ifndef TIR_RUNTIME_EMU_GRAPH_H
#define TIR_RUNTIME_EMU_GRAPH_H

#include "device.h"

struct emu_graph;

tir_status tir_emu_stream_create(tir_rt_device *device, void **out, tir_error *error);
void tir_emu_stream_destroy(tir_rt_device *device, void *stream);
tir_status tir_emu_capture_begin(tir_rt_device *device, void *stream, tir_error *error);
tir_status tir_emu_capture_end(tir_rt_device *device, void *stream, void **graph, tir_error *error);
tir_status tir_emu_graph_launch(tir_rt_device *device, void *graph, void *stream, tir_error *error);
void tir_emu_graph_destroy(tir_rt_device *device, void *graph);

// Whether the stream (NULL: the default one) is in capture. Another thread may change that at once,
// so only a sequence asks, which holds off the end of a capture.
bool tir_emu_captures(void *stream);

// Each is true if the stream is in capture: the call is written down, or *status says why not. Else
// it is to be made.
bool tir_emu_add_launch(tir_rt_device *device, void *stream, void *module, void *function,
                        const struct device_launch *launch, tir_status *status, tir_error *error);
bool tir_emu_add_copy(tir_rt_device *device, void *stream, uint64_t dst, uint64_t src,
                      uint64_t size, tir_status *status, tir_error *error);
bool tir_emu_add_fill(tir_rt_device *device, void *stream, uint64_t dst, uint8_t value,
                      uint64_t size, tir_status *status, tir_error *error);
// For a stream in capture: memory that belongs to its graph.
tir_status tir_emu_add_memory(tir_rt_device *device, void *stream, uint64_t size, uint64_t *out,
                              tir_error *error);

#endif
