// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A GPU as a device of the runtime.
#ifndef TIR_RUNTIME_CUDA_DEVICE_H
#define TIR_RUNTIME_CUDA_DEVICE_H

#include "cuda/cuda_api.h"
#include "device.h"

struct cuda_device {
    tir_rt_device base;
    const struct cuda_api *api;
    cu_context context;
    cu_device device;
    bool owned; // whether the primary context was retained
    pthread_mutex_t pool_lock;
    cu_pool pool; // of scratch memory; NULL: nothing has asked for any yet
};

static inline struct cuda_device *cuda_device_of(tir_rt_device *device)
{
    return (struct cuda_device *)device;
}

// Makes the device's context current, and undoes it. `*pushed` carries whether there was need to.
// Undoing fails only when the context is gone, which the next call reports.
tir_status tir_cuda_enter(struct cuda_device *d, bool *pushed, tir_error *error);
void tir_cuda_leave(struct cuda_device *d, bool pushed);

// Sets `status` to that of one driver call, made in the device's context.
#define CU_CALL_IN(d, status, error, fn, ...)                       \
    do {                                                            \
        bool pushed;                                                \
        (status) = tir_cuda_enter((d), &pushed, (error));           \
        if (!(status)) {                                            \
            (status) = CU_CALL((d)->api, (error), fn, __VA_ARGS__); \
            tir_cuda_leave((d), pushed);                            \
        }                                                           \
    } while (0)

// Gives something back. There is nobody to tell of a failure, and the attempt is made even when the
// context cannot be made current.
#define CU_RELEASE_IN(d, fn, handle)              \
    do {                                          \
        bool pushed;                              \
        (void)tir_cuda_enter((d), &pushed, NULL); \
        (void)(d)->api->fn(handle);               \
        tir_cuda_leave((d), pushed);              \
    } while (0)

// What is loaded while a stream is being captured is no part of the graph: between these two calls
// the thread may make calls that capturing forbids. `*mode` carries what the thread had.
tir_status tir_cuda_relax(struct cuda_device *d, unsigned int *mode, tir_error *error);
void tir_cuda_restore(struct cuda_device *d, unsigned int mode);

// cuda_graph.c
tir_status tir_cuda_capture_begin(tir_rt_device *device, void *stream, tir_error *error);
tir_status tir_cuda_capture_end(tir_rt_device *device, void *stream, void **graph,
                                tir_error *error);
tir_status tir_cuda_graph_launch(tir_rt_device *device, void *graph, void *stream,
                                 tir_error *error);
void tir_cuda_graph_destroy(tir_rt_device *device, void *graph);

// cuda_image.c, in the device's context or not. The image is PTX text with a zero byte after it, or
// a cubin.
tir_status tir_cuda_load_image(struct cuda_device *d, const char *image, cu_module *out,
                               tir_error *error);

// cuda_module.c
tir_status tir_cuda_accepts(tir_rt_device *device, const tir_artifact_desc *desc, bool has_ptx,
                            bool *whole, tir_error *error);
tir_status tir_cuda_module_load(tir_rt_device *device, const tir_artifact_desc *desc, void **out,
                                tir_error *error);
void tir_cuda_module_unload(tir_rt_device *device, void *module);
tir_status tir_cuda_function(tir_rt_device *device, void *module,
                             const tir_artifact_variant *variant, void **out, tir_error *error);
tir_status tir_cuda_clusters(tir_rt_device *device, void *function,
                             const tir_artifact_variant *variant, uint32_t *out, tir_error *error);
tir_status tir_cuda_together(tir_rt_device *device, void *function,
                             const tir_artifact_variant *variant, uint32_t *out, tir_error *error);
tir_status tir_cuda_usage(tir_rt_device *device, void *module, void *function, tir_rt_usage *out,
                          tir_error *error);
tir_status tir_cuda_param(tir_rt_device *device, void *module, void *function, uint32_t index,
                          size_t *offset, size_t *size, tir_error *error);
tir_status tir_cuda_launch(tir_rt_device *device, void *stream, void *module, void *function,
                           const struct device_launch *launch, tir_error *error);

#endif
