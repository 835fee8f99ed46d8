// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a process waits for before its first launch. Usage:
//     first_launch [--prepare=THREADS] ARTIFACT KERNEL [NAME=SIZE ...]
//
// Loads an artifact on the first GPU, loads all its variants if that is asked for, and launches the
// kernel twice on tensors of these sizes; scalars are 1. Prints one line with the milliseconds of
// the load, of tir_rt_module_prepare, and of each launch up to its end. Opening the device is not
// counted. first_launch.py runs it with and without what the caches keep.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tir/runtime.h"

enum { LONGEST = 64 << 20 };

static void check(tir_status status, const tir_error *error)
{
    if (status == TIR_OK)
        return;
    fprintf(stderr, "%s: %s\n", tir_status_name(status), error->message);
    exit(status == TIR_ERR_NO_DRIVER ? 77 : 1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    void *bytes = malloc(LONGEST);
    if (!file || !bytes) {
        perror(path);
        exit(1);
    }
    *size = fread(bytes, 1, LONGEST, file);
    fclose(file);
    return bytes;
}

static int64_t size_of(tir_str name, char **sizes, int count)
{
    for (int i = 0; i < count; i++)
        if (strncmp(sizes[i], name.ptr, name.len) == 0 && sizes[i][name.len] == '=')
            return atoll(sizes[i] + name.len + 1);
    fprintf(stderr, "%.*s has no size\n", (int)name.len, name.ptr);
    exit(2);
}

// One argument for a parameter; `shape` has room for its dimensions.
static tir_rt_arg make_arg(tir_rt_device *device, const tir_artifact_kernel *kernel, uint32_t index,
                           const int64_t *dims, int64_t *shape)
{
    const tir_artifact_param *param = &kernel->params[index];
    uint64_t bytes = (tir_element_bits(param->element) + 7) / 8;
    tir_rt_buffer *buffer;
    tir_error error;
    const int is_real = param->element >= TIR_ELEMENT_TF32 && param->element <= TIR_ELEMENT_F64;
    if (param->kind == TIR_PARAM_SCALAR)
        return is_real ? tir_rt_arg_float(param->element, 1) : tir_rt_arg_int(param->element, 1);
    for (uint32_t d = 0; d < param->rank; d++) {
        const tir_extent *extent = &param->extents[d];
        shape[d] = extent->dim == TIR_EXTENT_FIXED ? extent->fixed : dims[extent->dim];
        bytes *= (uint64_t)shape[d];
    }
    check(tir_rt_buffer_create(device, bytes, &buffer, &error), &error); // until the process ends
    check(tir_rt_buffer_fill(buffer, 0, 0, bytes, NULL, &error), &error);
    return tir_rt_arg_tensor(tir_rt_buffer_address(buffer), param->element, param->rank, shape,
                             NULL);
}

static double launch(tir_rt_device *device, tir_rt_kernel *kernel, const tir_rt_arg *args,
                     uint32_t count)
{
    tir_error error;
    const double start = now();
    check(tir_rt_launch(kernel, NULL, args, count, NULL, &error), &error);
    check(tir_rt_device_synchronize(device, &error), &error);
    return now() - start;
}

static void measure(tir_rt_device *device, const char *path, const char *name, char **sizes,
                    int count, int threads)
{
    static int64_t shapes[TIR_MAX_PARAMS][TIR_MAX_RANK];
    int64_t dims[TIR_MAX_DIMS];
    tir_rt_arg args[TIR_MAX_PARAMS];
    tir_rt_module *module;
    tir_rt_kernel *kernel;
    tir_error error;
    size_t size;
    void *bytes = read_file(path, &size);
    double start = now();
    check(tir_rt_module_load(device, bytes, size, &module, &error), &error);
    check(tir_rt_module_kernel(module, (tir_str){name, strlen(name)}, &kernel, &error), &error);
    const double load = now() - start;
    const tir_artifact_kernel *info = tir_rt_kernel_describe(kernel);
    for (uint32_t i = 0; i < info->dim_count; i++)
        dims[i] = size_of(info->dims[i], sizes, count);
    for (uint32_t i = 0; i < info->param_count; i++)
        args[i] = make_arg(device, info, i, dims, shapes[i]);
    check(tir_rt_device_synchronize(device, &error), &error);
    start = now();
    if (threads >= 0)
        check(tir_rt_module_prepare(module, NULL, 0, (uint32_t)threads, &error), &error);
    const double prepare = now() - start;
    const double first = launch(device, kernel, args, info->param_count);
    const double second = launch(device, kernel, args, info->param_count);
    printf("load %.3f prepare %.3f first %.3f second %.3f\n", load, prepare, first, second);
    tir_rt_module_destroy(module);
    free(bytes);
}

int main(int argc, char **argv)
{
    tir_runtime *runtime;
    tir_rt_device *device;
    tir_error error;
    int threads = -1;
    if (argc > 1 && strncmp(argv[1], "--prepare=", 10) == 0) {
        threads = (int)strtol(argv[1] + 10, NULL, 10);
        argc--;
        argv++;
    }
    if (argc < 3) {
        fprintf(stderr,
                "usage: first_launch [--prepare=THREADS] ARTIFACT KERNEL [NAME=SIZE ...]\n");
        return 2;
    }
    check(tir_runtime_create(NULL, &runtime, &error), &error);
    check(tir_rt_device_open(runtime, "cuda", &device, &error), &error);
    measure(device, argv[1], argv[2], argv + 3, argc - 3, threads);
    return 0; // the driver frees the tensors with the process
}
