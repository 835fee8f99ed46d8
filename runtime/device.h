// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The inside of a device: one table of functions, which CUDA and the emulator implement.
//
// The public functions check arguments, look for an earlier fault, call the table, and keep the
// first fault, so an implementation need not. It returns TIR_ERR_DEVICE only for faults after which
// the device cannot be used. Streams, events, modules and functions are opaque handles of the
// implementation; handle NULL is its default stream.
#ifndef TIR_RUNTIME_DEVICE_H
#define TIR_RUNTIME_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tir/runtime.h"

// A checked launch. The parameter block is laid out as tir/artifact.h says.
struct device_launch {
    uint32_t grid[3], block[3];
    uint32_t cluster[3], preferred[3]; // all 0: none
    bool cooperative;                  // all CTAs run together, or none
    uint32_t dynamic_shared;
    const tir_artifact_variant *variant; // NULL: of PTX without a description
    const void *params;
    size_t params_size;
    // The address of each parameter in `params`, in order, and NULL at the end; NULL: not known.
    // The place of tensor maps in a block depends on the target, so a driver gets every parameter.
    void **parts;
    bool follows; // a step after the first of one launch: the trace goes on
    bool early;   // a variant that waits may start before the launch before it has ended
};

// Zeroed memory of the host that the device can write to, and that survives a fault of the device.
struct device_page {
    uint64_t address; // of the device; 0: none
    void *native;
};

struct device_ops {
    void (*destroy)(tir_rt_device *device);
    tir_status (*synchronize)(tir_rt_device *device, tir_error *error);

    tir_status (*stream_create)(tir_rt_device *device, void **out, tir_error *error);
    void (*stream_destroy)(tir_rt_device *device, void *stream);
    tir_status (*stream_synchronize)(tir_rt_device *device, void *stream, tir_error *error);

    tir_status (*stream_done)(tir_rt_device *device, void *stream, bool *done, tir_error *error);

    // Between begin and end a stream only writes down what it gets. End ends that in any case.
    tir_status (*capture_begin)(tir_rt_device *device, void *stream, tir_error *error);
    tir_status (*capture_end)(tir_rt_device *device, void *stream, void **graph, tir_error *error);
    tir_status (*graph_launch)(tir_rt_device *device, void *graph, void *stream, tir_error *error);
    void (*graph_destroy)(tir_rt_device *device, void *graph);

    tir_status (*event_create)(tir_rt_device *device, void **out, tir_error *error);
    void (*event_destroy)(tir_rt_device *device, void *event);
    tir_status (*event_record)(tir_rt_device *device, void *event, void *stream, tir_error *error);
    tir_status (*event_elapsed)(tir_rt_device *device, void *start, void *end, float *out,
                                tir_error *error);

    tir_status (*alloc)(tir_rt_device *device, uint64_t size, uint64_t *out, tir_error *error);
    void (*free)(tir_rt_device *device, uint64_t address);
    // Take allocates memory, at a multiple of 256 bytes, for the work that the stream gets next;
    // give frees it after that work. size is not 0. Give is called even after an earlier error.
    tir_status (*scratch_take)(tir_rt_device *device, void *stream, uint64_t size, uint64_t *out,
                               tir_error *error);
    tir_status (*scratch_give)(tir_rt_device *device, void *stream, uint64_t address,
                               tir_error *error);
    tir_status (*write)(tir_rt_device *device, uint64_t dst, const void *src, uint64_t size,
                        void *stream, tir_error *error); // done when it returns
    tir_status (*read)(tir_rt_device *device, void *dst, uint64_t src, uint64_t size, void *stream,
                       tir_error *error); // done when it returns
    tir_status (*copy)(tir_rt_device *device, uint64_t dst, uint64_t src, uint64_t size,
                       void *stream, tir_error *error);
    tir_status (*fill)(tir_rt_device *device, uint64_t dst, uint8_t value, uint64_t size,
                       void *stream, tir_error *error);

    tir_status (*page_create)(tir_rt_device *device, size_t size, struct device_page *out,
                              tir_error *error);
    void (*page_destroy)(tir_rt_device *device, struct device_page *page);
    // After a fault too.
    tir_status (*page_read)(tir_rt_device *device, const struct device_page *page, size_t offset,
                            void *out, size_t size);

    // Whether the device can run the artifact, which may have PTX that `desc` does not; *whole: it
    // is loaded as a whole and not variant by variant.
    tir_status (*accepts)(tir_rt_device *device, const tir_artifact_desc *desc, bool has_ptx,
                          bool *whole, tir_error *error);
    // Loads the code of an artifact that the device accepts.
    tir_status (*module_load)(tir_rt_device *device, const tir_artifact_desc *desc, void **out,
                              tir_error *error);
    void (*module_unload)(tir_rt_device *device, void *module);
    // The function of a variant, made ready for its dynamic shared memory; lives as long as the
    // module.
    tir_status (*function)(tir_rt_device *device, void *module, const tir_artifact_variant *variant,
                           void **out, tir_error *error);
    // The number of clusters of a variant that run at a time. NULL: as many as CTAs fit.
    tir_status (*clusters)(tir_rt_device *device, void *function,
                           const tir_artifact_variant *variant, uint32_t *out, tir_error *error);
    // The number of CTAs of a cooperative variant that run at a time.
    tir_status (*together)(tir_rt_device *device, void *function,
                           const tir_artifact_variant *variant, uint32_t *out, tir_error *error);
    tir_status (*usage)(tir_rt_device *device, void *module, void *function, tir_rt_usage *out,
                        tir_error *error);
    // Where a parameter lies in the block.
    tir_status (*param)(tir_rt_device *device, void *module, void *function, uint32_t index,
                        size_t *offset, size_t *size, tir_error *error);
    tir_status (*launch)(tir_rt_device *device, void *stream, void *module, void *function,
                         const struct device_launch *launch, tir_error *error);
};

// The part that all devices have; an implementation's struct begins with it.
struct tir_rt_device {
    const struct device_ops *ops;
    tir_runtime *runtime;
    const tir_allocator *allocator; // the runtime's
    tir_rt_device_info info;
    bool foreign_streams; // whether a stream made elsewhere can be adopted
    atomic_uint captures; // streams in capture
    atomic_bool faulted;
    pthread_mutex_t fault_lock; // guards those below
    tir_error fault;
    struct watchdog *watchdogs;
};

struct tir_rt_stream {
    tir_rt_device *device;
    void *native;
    bool adopted;
    atomic_bool capturing;
    // Held by a launch that may have several steps, and by the begin and end of a capture: a graph
    // has all steps and their memory, or none.
    pthread_mutex_t steps;
};

// The start of an implementation's create function, and the end of its destroy function.
void tir_device_init(tir_rt_device *device, tir_runtime *runtime, const struct device_ops *ops);
void tir_device_fini(tir_rt_device *device);

// The first line of every call on a device: fails with the first cause if it has faulted.
tir_status tir_device_enter(tir_rt_device *device, tir_error *error);

// The last line: keeps the first fault. `error` holds the message of a failure, which becomes that
// of a kernel's watchdog if it is one.
tir_status tir_device_leave(tir_rt_device *device, tir_status status, tir_error *error);

// The stream's handle; refuses a stream of another device, and the default stream, which waits for
// all others, while one of them is in capture.
tir_status tir_device_stream(const tir_rt_device *device, const tir_rt_stream *stream,
                             void **native, tir_error *error);

// The same for a call that cannot be captured.
tir_status tir_device_stream_now(const tir_rt_device *device, const tir_rt_stream *stream,
                                 void **native, tir_error *error);

#endif
