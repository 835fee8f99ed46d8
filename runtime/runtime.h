// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The runtime object, and the interface of its two kinds of device.
#ifndef TIR_RUNTIME_RUNTIME_H
#define TIR_RUNTIME_RUNTIME_H

#include <pthread.h>

#include "tir/runtime.h"

struct cuda_api;

struct tir_runtime {
    tir_allocator allocator;
    tir_runtime_options options; // cuda_library points to a copy, other text is NULL
    uint32_t emu_policy;         // of emu_schedule
    uint64_t emu_seed;
    pthread_mutex_t lock;  // guards `cuda`
    struct cuda_api *cuda; // NULL until a call needs the driver
};

// cuda/cuda_api.c: opens a driver library, resolves its table and initialises it. Anything that
// keeps the driver from being used is TIR_ERR_NO_DRIVER.
tir_status tir_cuda_load(const char *library, const tir_allocator *allocator, struct cuda_api **out,
                         tir_error *error);
void tir_cuda_unload(struct cuda_api *api, const tir_allocator *allocator);

// cuda/cuda_device.c
tir_status tir_cuda_count(const struct cuda_api *api, uint32_t *out, tir_error *error);
tir_status tir_cuda_info(const struct cuda_api *api, uint32_t ordinal, tir_rt_device_info *out,
                         tir_error *error);
tir_status tir_cuda_open(tir_runtime *runtime, const struct cuda_api *api, uint32_t ordinal,
                         tir_rt_device **out, tir_error *error);
tir_status tir_cuda_adopt(tir_runtime *runtime, const struct cuda_api *api, void *context,
                          tir_rt_device **out, tir_error *error);

// emu_device.c
void tir_emu_info(const tir_runtime *runtime, tir_rt_device_info *out);
// Reads options.emu_schedule; TIR_ERR_INVALID when there is no such schedule or check level.
tir_status tir_emu_settings(tir_runtime *runtime, tir_error *error);
size_t tir_emu_findings(tir_rt_device *device, uint32_t json, char *text, size_t size);
tir_status tir_emu_open(tir_runtime *runtime, tir_rt_device **out, tir_error *error);

#endif
