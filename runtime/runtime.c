// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The runtime object: options, the driver library, and opening devices by name.

#include "runtime.h"

#include <stdbool.h>
#include <string.h>

#include "error.h"
#include "host.h"

// Takes over the caller's options, which may be of an older or a newer version of the struct.
static tir_status copy_options(tir_runtime *runtime, const tir_runtime_options *options,
                               tir_error *error)
{
    tir_runtime_options *own = &runtime->options;
    if (options->struct_size < offsetof(tir_runtime_options, emu_sm_count))
        return tir_error_set(error, TIR_ERR_INVALID,
                             "the runtime options have no proper struct_size");
    memcpy(own, options, options->struct_size < sizeof *own ? options->struct_size : sizeof *own);
    runtime->allocator = tir_host_allocator(&own->allocator);
    tir_status status = tir_emu_settings(runtime, error);
    if (status)
        return status;
    if (options->cuda_library) {
        size_t size = strlen(options->cuda_library) + 1;
        char *copy = tir_host_alloc(&runtime->allocator, size);
        if (!copy)
            return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a runtime");
        own->cuda_library = memcpy(copy, options->cuda_library, size);
    }
    return TIR_OK;
}

static void free_options(tir_runtime *runtime)
{
    const char *library = runtime->options.cuda_library;
    if (library)
        tir_host_free(&runtime->allocator, (void *)(uintptr_t)library, strlen(library) + 1);
}

TIR_API tir_status tir_runtime_create(const tir_runtime_options *options, tir_runtime **out,
                                      tir_error *error)
{
    tir_runtime first = {.options = TIR_RUNTIME_OPTIONS_INIT};
    first.allocator = tir_host_allocator(NULL);
    *out = NULL;
    tir_status status = options ? copy_options(&first, options, error) : TIR_OK;
    if (status)
        return status;
    tir_runtime *runtime = tir_host_alloc(&first.allocator, sizeof *runtime);
    if (!runtime) {
        free_options(&first);
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a runtime");
    }
    *runtime = first;
    int failed = pthread_mutex_init(&runtime->lock, NULL);
    if (failed) {
        free_options(&first);
        tir_host_free(&first.allocator, runtime, sizeof *runtime);
        return tir_error_set_native(error, TIR_ERR_NO_MEMORY, failed, "no lock for a runtime");
    }
    *out = runtime;
    return TIR_OK;
}

TIR_API void tir_runtime_destroy(tir_runtime *runtime)
{
    if (!runtime)
        return;
    tir_allocator allocator = runtime->allocator;
    if (runtime->cuda)
        tir_cuda_unload(runtime->cuda, &allocator);
    pthread_mutex_destroy(&runtime->lock);
    free_options(runtime);
    tir_host_free(&allocator, runtime, sizeof *runtime);
}

// The driver, opened on first use.
static tir_status driver(tir_runtime *runtime, const struct cuda_api **out, tir_error *error)
{
    tir_status status = TIR_OK;
    pthread_mutex_lock(&runtime->lock);
    if (!runtime->cuda)
        status = tir_cuda_load(runtime->options.cuda_library, &runtime->allocator, &runtime->cuda,
                               error);
    *out = runtime->cuda;
    pthread_mutex_unlock(&runtime->lock);
    return status;
}

// How many GPUs there are; a machine without a driver has none.
static tir_status gpu_count(tir_runtime *runtime, uint32_t *out, tir_error *error)
{
    const struct cuda_api *api;
    tir_error cause;
    *out = 0;
    tir_status status = driver(runtime, &api, &cause);
    if (!status)
        status = tir_cuda_count(api, out, &cause);
    if (status == TIR_ERR_NO_DRIVER)
        return TIR_OK;
    if (status && error)
        *error = cause;
    return status;
}

TIR_API tir_status tir_runtime_device_count(tir_runtime *runtime, uint32_t *out, tir_error *error)
{
    uint32_t gpus;
    tir_status status = gpu_count(runtime, &gpus, error);
    *out = status ? 0 : gpus + 1;
    return status;
}

TIR_API tir_status tir_runtime_device_info(tir_runtime *runtime, uint32_t index,
                                           tir_rt_device_info *out, tir_error *error)
{
    uint32_t gpus;
    *out = (tir_rt_device_info){0};
    tir_status status = gpu_count(runtime, &gpus, error);
    if (status)
        return status;
    if (index > gpus)
        return tir_error_set(error, TIR_ERR_INVALID, "there is no device %u, only %u", index,
                             gpus + 1);
    if (index < gpus)
        return tir_cuda_info(runtime->cuda, index, out, error);
    tir_emu_info(runtime, out);
    return TIR_OK;
}

static tir_status open_cuda(tir_runtime *runtime, uint32_t ordinal, tir_rt_device **out,
                            tir_error *error)
{
    const struct cuda_api *api;
    uint32_t count = 0;
    tir_status status = driver(runtime, &api, error);
    if (!status)
        status = tir_cuda_count(api, &count, error);
    if (status)
        return status;
    if (count == 0)
        return tir_error_set(error, TIR_ERR_NO_DRIVER, "the CUDA driver finds no GPU");
    if (ordinal >= count)
        return tir_error_set(error, TIR_ERR_INVALID, "there is no device cuda:%u, only %u GPU%s",
                             ordinal, count, count == 1 ? "" : "s");
    return tir_cuda_open(runtime, api, ordinal, out, error);
}

// "cuda:N": the N, of at most four digits.
static bool parse_ordinal(const char *spec, uint32_t *out)
{
    if (strncmp(spec, "cuda:", 5) != 0)
        return false;
    const char *digit = spec + 5;
    *out = 0;
    while (*digit >= '0' && *digit <= '9' && digit < spec + 9)
        *out = *out * 10 + (uint32_t)(*digit++ - '0');
    return digit > spec + 5 && !*digit;
}

TIR_API tir_status tir_rt_device_open(tir_runtime *runtime, const char *spec, tir_rt_device **out,
                                      tir_error *error)
{
    uint32_t ordinal = 0;
    *out = NULL;
    if (strcmp(spec, "emu") == 0)
        return tir_emu_open(runtime, out, error);
    if (strcmp(spec, "auto") == 0) {
        tir_status status = gpu_count(runtime, &ordinal, error);
        if (status)
            return status;
        return ordinal ? open_cuda(runtime, 0, out, error) : tir_emu_open(runtime, out, error);
    }
    if (strcmp(spec, "cuda") == 0 || parse_ordinal(spec, &ordinal))
        return open_cuda(runtime, ordinal, out, error);
    return tir_error_set(error, TIR_ERR_INVALID,
                         "'%.32s' is no device; devices are auto, cuda, cuda:N and emu", spec);
}

TIR_API tir_status tir_rt_device_adopt(tir_runtime *runtime, void *cu_context, tir_rt_device **out,
                                       tir_error *error)
{
    const struct cuda_api *api;
    *out = NULL;
    if (!cu_context)
        return tir_error_set(error, TIR_ERR_INVALID, "there is no context to adopt");
    tir_status status = driver(runtime, &api, error);
    return status ? status : tir_cuda_adopt(runtime, api, cu_context, out, error);
}
