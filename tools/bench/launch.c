// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a checked launch costs over the bare driver call. Usage: launch [DRIVER_LIBRARY]
//
// The same empty kernel with five tensors and two scalars is launched through tir_rt_launch,
// through it with a tensor map of each tensor, and through cuLaunchKernel, in turns of a thousand;
// each turn waits for the device first and stops its clock before it waits again. Prints the
// medians over the turns.

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/cuda_abi.h"
#include "tir/runtime.h"

enum { TURNS = 101, LAUNCHES = 1000, TENSORS = 5, PARAM_WORDS = TENSORS * 3 + 2 + 2 };

static const char ptx[] = ".version 7.8\n.target sm_80\n.address_size 64\n"
                          ".visible .entry empty(.param .align 8 .b8 block[152])\n{\n    ret;\n}\n"
                          ".visible .entry maps(.param .align 64 .b8 block[832])\n{\n    ret;\n}\n";
static const tir_formula_op one[] = {{TIR_FORMULA_CONST, 1}};
static const tir_str dims[] = {{"M", 1}, {"N", 1}};
static const char *const names[] = {"A", "B", "C", "D", "E"};

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
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

// The artifact of the empty kernels: without maps, and with a map of each tensor.
static uint8_t *make_artifact(size_t *size)
{
    tir_artifact_param params[TENSORS + 2] = {{{0}}};
    for (int i = 0; i < TENSORS; i++)
        params[i] = (tir_artifact_param){.name = {names[i], 1},
                                         .element = TIR_ELEMENT_BF16,
                                         .rank = 2,
                                         .extents = {{.dim = 0}, {.dim = 1}}};
    params[TENSORS - 1].direction = TIR_DIRECTION_OUT;
    params[TENSORS] = (tir_artifact_param){
        .name = {"s", 1}, .kind = TIR_PARAM_SCALAR, .element = TIR_ELEMENT_I64};
    params[TENSORS + 1] = (tir_artifact_param){
        .name = {"t", 1}, .kind = TIR_PARAM_SCALAR, .element = TIR_ELEMENT_I64};
    tir_artifact_map maps[TENSORS];
    for (uint32_t i = 0; i < TENSORS; i++)
        maps[i] = (tir_artifact_map){.param = i, .swizzle = 128, .box = {128, 64}};
    tir_artifact_variant variants[2];
    variants[0] = (tir_artifact_variant){.entry = {"empty", 5},
                                         .facts = TIR_FACT_INDEX32 | TIR_FACT_VECTOR16,
                                         .threads = 32,
                                         .grid = {{one, 1}, {one, 1}, {one, 1}}};
    variants[1] = variants[0];
    variants[1].entry = (tir_str){"maps", 4};
    variants[1].maps = maps;
    variants[1].map_count = TENSORS;
    tir_artifact_kernel kernels[2];
    for (int i = 0; i < 2; i++)
        kernels[i] = (tir_artifact_kernel){.name = variants[i].entry,
                                           .dims = dims,
                                           .dim_count = 2,
                                           .params = params,
                                           .param_count = TENSORS + 2,
                                           .variants = &variants[i],
                                           .variant_count = 1};
    const tir_artifact_desc desc = {.target = {"sm_80", 5},
                                    .ptx = {ptx, sizeof ptx - 1},
                                    .kernels = kernels,
                                    .kernel_count = 2};
    uint8_t *bytes;
    tir_error error;
    check(tir_artifact_encode(&desc, NULL, &bytes, size, &error), &error);
    return bytes;
}

// The bare driver: its launch call, and the same kernel as its own function.
struct bare {
    cu_result (*launch)(cu_function, unsigned int, unsigned int, unsigned int, unsigned int,
                        unsigned int, unsigned int, unsigned int, cu_stream, void **, void **);
    cu_function function;
};

static void lookup(void *library, const char *symbol, void *out)
{
    void *address = dlsym(library, symbol);
    if (!address) {
        fprintf(stderr, "the driver has no %s\n", symbol);
        exit(1);
    }
    memcpy(out, &address, sizeof address);
}

static void open_bare(const char *path, struct bare *bare)
{
    cu_result (*retain)(cu_context *, cu_device), (*push)(cu_context);
    cu_result (*load)(cu_module *, const void *, unsigned int, unsigned int *, void **);
    cu_result (*get)(cu_function *, cu_module, const char *);
    cu_context context;
    cu_module module;
    void *library = dlopen(path, RTLD_NOW);
    lookup(library, "cuDevicePrimaryCtxRetain", &retain);
    lookup(library, "cuCtxPushCurrent_v2", &push);
    lookup(library, "cuModuleLoadDataEx", &load);
    lookup(library, "cuModuleGetFunction", &get);
    lookup(library, "cuLaunchKernel", &bare->launch);
    if (retain(&context, 0) || push(context) || load(&module, ptx, 0, NULL, NULL) ||
        get(&bare->function, module, "empty")) {
        fprintf(stderr, "the driver refuses the bare kernel\n");
        exit(1);
    }
}

static double time_bare(const struct bare *bare)
{
    uint64_t params[PARAM_WORDS] = {0};
    size_t size = sizeof params;
    void *extra[] = {(void *)(uintptr_t)TIR_CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT, params,
                     (void *)(uintptr_t)TIR_CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT, &size, NULL};
    double start = now();
    for (int i = 0; i < LAUNCHES; i++)
        if (bare->launch(bare->function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra))
            exit(1);
    return (now() - start) / LAUNCHES;
}

static double time_checked(tir_rt_kernel *kernel)
{
    const int64_t shape[] = {256, 512};
    tir_rt_arg args[TENSORS + 2];
    tir_error error;
    for (int i = 0; i < TENSORS; i++)
        args[i] = tir_rt_arg_tensor((uint64_t)(i + 1) << 20, TIR_ELEMENT_BF16, 2, shape, NULL);
    args[TENSORS] = args[TENSORS + 1] = tir_rt_arg_int(TIR_ELEMENT_I64, 1);
    double start = now();
    for (int i = 0; i < LAUNCHES; i++)
        check(tir_rt_launch(kernel, NULL, args, TENSORS + 2, NULL, &error), &error);
    return (now() - start) / LAUNCHES;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double times[TURNS])
{
    qsort(times, TURNS, sizeof *times, by_value);
    return times[TURNS / 2];
}

int main(int argc, char **argv)
{
    double bare_times[TURNS], checked_times[TURNS], maps_times[TURNS];
    tir_runtime_options options = TIR_RUNTIME_OPTIONS_INIT;
    tir_error error;
    tir_runtime *runtime;
    tir_rt_device *device;
    tir_rt_module *module;
    tir_rt_kernel *kernel, *maps;
    struct bare bare;
    size_t size;
    options.cuda_library = argc > 1 ? argv[1] : "libcuda.so.1";
    uint8_t *bytes = make_artifact(&size);
    check(tir_runtime_create(&options, &runtime, &error), &error);
    check(tir_rt_device_open(runtime, "cuda", &device, &error), &error);
    check(tir_rt_module_load(device, bytes, size, &module, &error), &error);
    check(tir_rt_module_kernel(module, (tir_str){"empty", 5}, &kernel, &error), &error);
    check(tir_rt_module_kernel(module, (tir_str){"maps", 4}, &maps, &error), &error);
    open_bare(options.cuda_library, &bare);
    for (int turn = 0; turn < TURNS; turn++) {
        check(tir_rt_device_synchronize(device, &error), &error);
        bare_times[turn] = time_bare(&bare);
        check(tir_rt_device_synchronize(device, &error), &error);
        checked_times[turn] = time_checked(kernel);
        check(tir_rt_device_synchronize(device, &error), &error);
        maps_times[turn] = time_checked(maps);
    }
    check(tir_rt_device_synchronize(device, &error), &error);
    const double low = median(bare_times), high = median(checked_times), most = median(maps_times);
    printf("%s: cuLaunchKernel %.0f ns, tir_rt_launch %.0f ns, difference %.0f ns; "
           "with %d tensor maps %.0f ns, difference %.0f ns\n",
           tir_rt_device_describe(device)->name, low, high, high - low, TENSORS, most, most - low);
    tir_artifact_bytes_free(bytes, size, NULL);
    tir_rt_module_destroy(module);
    tir_rt_device_destroy(device);
    tir_runtime_destroy(runtime);
    return 0;
}
