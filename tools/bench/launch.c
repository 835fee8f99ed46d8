// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a checked launch costs over the bare driver call. Usage: launch [DRIVER_LIBRARY]
//
// Empty kernels with five tensors and two scalars, with and without a tensor map of each tensor,
// are launched through tir_rt_launch and through cuLaunchKernelEx, which gets its parameters as the
// runtime gives them: a block, or, with tensor maps, each of them. Each kernel has as many variants
// with a cost as that of a product, which the first launch on a shape chooses among. The addresses
// change from launch to launch. Turns of a thousand launches alternate; each waits for the device
// first and stops its clock before it waits again. Prints the medians over the turns, and of
// launches on shapes that are new.

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/cuda_abi.h"
#include "tir/runtime.h"
#include "tir/tensor_map.h"

enum {
    TURNS = 101,
    LAUNCHES = 1000,
    TENSORS = 5,
    VARIANTS = 14,
    PARAM_WORDS = TENSORS * 3 + 2 + 2,
    MAPS_AT = 192,
    NEW_SHAPES = 101, // fewer than the runtime remembers
};

static char ptx[8192]; // with both entries

static const tir_formula_op one[] = {{TIR_FORMULA_CONST, 1}};
// Tiles of the two dimensions by the multiprocessors, times what one takes.
static const tir_formula_op cost[] = {
    {TIR_FORMULA_DIM, 0},     {TIR_FORMULA_CONST, 128}, {TIR_FORMULA_CEILDIV, 0},
    {TIR_FORMULA_DIM, 1},     {TIR_FORMULA_CONST, 256}, {TIR_FORMULA_CEILDIV, 0},
    {TIR_FORMULA_MUL, 0},     {TIR_FORMULA_CONST, 132}, {TIR_FORMULA_CEILDIV, 0},
    {TIR_FORMULA_CONST, 900}, {TIR_FORMULA_MUL, 0},     {TIR_FORMULA_CONST, 5000},
    {TIR_FORMULA_ADD, 0},
};
static const tir_str dims[] = {{"M", 1}, {"N", 1}};
static const char *const names[] = {"A", "B", "C", "D", "E"};

static void check(tir_status status, const tir_error *error)
{
    if (status == TIR_OK)
        return;
    fprintf(stderr, "%s: %s\n", tir_status_name(status), error->message);
    exit(status == TIR_ERR_NO_DRIVER ? 77 : 1);
}

// The text up to `at`, with an entry after it that takes what a launch of the kernel gives.
static size_t add_entry(size_t at, const char *name, int maps)
{
    at += (size_t)snprintf(ptx + at, sizeof ptx - at, ".visible .entry %s(", name);
    for (int i = 0; i < PARAM_WORDS; i++)
        at += (size_t)snprintf(ptx + at, sizeof ptx - at, "%s\n.param .u64 p%d", i ? "," : "", i);
    for (int i = 0; i < maps; i++)
        at += (size_t)snprintf(ptx + at, sizeof ptx - at, ",\n.param .align 64 .b8 m%d[128]", i);
    return at + (size_t)snprintf(ptx + at, sizeof ptx - at, "\n)\n{\n    ret;\n}\n");
}

static void make_ptx(void)
{
    size_t at =
        (size_t)snprintf(ptx, sizeof ptx, ".version 7.8\n.target sm_80\n.address_size 64\n");
    at = add_entry(at, "empty", 0);
    add_entry(at, "maps", TENSORS);
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
    tir_artifact_variant variants[2][VARIANTS];
    tir_artifact_kernel kernels[2];
    for (int i = 0; i < 2; i++) {
        for (int v = 0; v < VARIANTS; v++)
            variants[i][v] = (tir_artifact_variant){.entry = {i ? "maps" : "empty", i ? 4 : 5},
                                                    .facts = TIR_FACT_INDEX32 | TIR_FACT_VECTOR16,
                                                    .cost = {cost, sizeof cost / sizeof *cost},
                                                    .threads = 32,
                                                    .grid = {{one, 1}, {one, 1}, {one, 1}},
                                                    .maps = maps,
                                                    .map_count = i ? TENSORS : 0};
        kernels[i] = (tir_artifact_kernel){.name = variants[i][0].entry,
                                           .dims = dims,
                                           .dim_count = 2,
                                           .params = params,
                                           .param_count = TENSORS + 2,
                                           .variants = variants[i],
                                           .variant_count = VARIANTS};
    }
    const tir_artifact_desc desc = {
        .target = {"sm_80", 5}, .ptx = {ptx, strlen(ptx)}, .kernels = kernels, .kernel_count = 2};
    uint8_t *bytes;
    tir_error error;
    check(tir_artifact_encode(&desc, NULL, &bytes, size, &error), &error);
    return bytes;
}

// The bare driver: its launch call, and the same kernels as its own functions.
struct bare {
    cu_result (*launch)(const struct cu_launch_config *, cu_function, void **, void **);
    cu_function empty, maps;
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
    lookup(library, "cuLaunchKernelEx", &bare->launch);
    if (retain(&context, 0) || push(context) || load(&module, ptx, 0, NULL, NULL) ||
        get(&bare->empty, module, "empty") || get(&bare->maps, module, "maps")) {
        fprintf(stderr, "the driver refuses the bare kernels\n");
        exit(1);
    }
}

static const struct cu_launch_config bare_config = {.grid = {1, 1, 1}, .block = {32, 1, 1}};

static double time_empty(const struct bare *bare)
{
    uint64_t params[PARAM_WORDS] = {0};
    size_t size = sizeof params;
    void *extra[] = {(void *)(uintptr_t)TIR_CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT, params,
                     (void *)(uintptr_t)TIR_CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT, &size, NULL};
    double start = now();
    for (int i = 0; i < LAUNCHES; i++)
        if (bare->launch(&bare_config, bare->empty, NULL, extra))
            exit(1);
    return (now() - start) / LAUNCHES;
}

static double time_maps(const struct bare *bare)
{
    static _Alignas(64) uint8_t block[4096];
    void *parts[PARAM_WORDS + TENSORS + 1];
    for (int i = 0; i < PARAM_WORDS; i++)
        parts[i] = block + i * 8;
    for (int i = 0; i < TENSORS; i++)
        parts[PARAM_WORDS + i] = block + MAPS_AT + i * TIR_TENSOR_MAP_BYTES;
    parts[PARAM_WORDS + TENSORS] = NULL;
    double start = now();
    for (int i = 0; i < LAUNCHES; i++)
        if (bare->launch(&bare_config, bare->maps, parts, NULL))
            exit(1);
    return (now() - start) / LAUNCHES;
}

// The arguments of launches on this many rows; `shape` must live as long.
static void make_args(tir_rt_arg args[TENSORS + 2], int64_t shape[2], int64_t rows)
{
    shape[0] = rows;
    shape[1] = 512;
    for (uint64_t i = 0; i < TENSORS; i++)
        args[i] = tir_rt_arg_tensor((i + 1) << 24, TIR_ELEMENT_BF16, 2, shape, NULL);
    args[TENSORS] = args[TENSORS + 1] = tir_rt_arg_int(TIR_ELEMENT_I64, 1);
}

static void launch(tir_rt_kernel *kernel, const tir_rt_arg *args)
{
    tir_error error;
    check(tir_rt_launch(kernel, NULL, args, TENSORS + 2, NULL, &error), &error);
}

static double time_checked(tir_rt_kernel *kernel)
{
    tir_rt_arg args[TENSORS + 2];
    int64_t shape[2];
    make_args(args, shape, 256);
    double start = now();
    for (uint64_t i = 0; i < LAUNCHES; i++) {
        for (uint64_t t = 0; t < TENSORS; t++)
            args[t].as.tensor.data = ((t + 1) << 24) + i * 256;
        args[TENSORS].as.scalar.value.u = i;
        launch(kernel, args);
    }
    return (now() - start) / LAUNCHES;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, by_value);
    return times[count / 2];
}

static void report(const char *what, double *bare, double *checked, double first)
{
    const double low = median(bare, TURNS), high = median(checked, TURNS);
    printf("%-16s cuLaunchKernelEx %5.0f ns, tir_rt_launch %5.0f ns, difference %4.0f ns; first "
           "on a shape %5.0f ns\n",
           what, low, high, high - low, first);
}

static double time_first(tir_rt_device *device, tir_rt_kernel *kernel)
{
    double times[NEW_SHAPES];
    tir_rt_arg args[TENSORS + 2];
    int64_t shape[2];
    tir_error error;
    for (int i = 0; i < NEW_SHAPES; i++) {
        make_args(args, shape, 1000 + i);
        check(tir_rt_device_synchronize(device, &error), &error);
        double start = now();
        launch(kernel, args);
        times[i] = now() - start;
    }
    return median(times, NEW_SHAPES);
}

static void run(tir_rt_device *device, const struct bare *bare, tir_rt_kernel *empty,
                tir_rt_kernel *maps)
{
    double empty_bare[TURNS], empty_checked[TURNS], maps_bare[TURNS], maps_checked[TURNS];
    tir_rt_arg args[TENSORS + 2];
    int64_t shape[2];
    tir_error error;
    make_args(args, shape, 256);
    launch(empty, args); // which loads the code
    launch(maps, args);
    for (int turn = 0; turn < TURNS; turn++) {
        check(tir_rt_device_synchronize(device, &error), &error);
        empty_bare[turn] = time_empty(bare);
        check(tir_rt_device_synchronize(device, &error), &error);
        empty_checked[turn] = time_checked(empty);
        check(tir_rt_device_synchronize(device, &error), &error);
        maps_bare[turn] = time_maps(bare);
        check(tir_rt_device_synchronize(device, &error), &error);
        maps_checked[turn] = time_checked(maps);
    }
    printf("%s\n", tir_rt_device_describe(device)->name);
    report("no tensor map:", empty_bare, empty_checked, time_first(device, empty));
    report("5 tensor maps:", maps_bare, maps_checked, time_first(device, maps));
}

int main(int argc, char **argv)
{
    tir_runtime_options options = TIR_RUNTIME_OPTIONS_INIT;
    tir_error error;
    tir_runtime *runtime;
    tir_rt_device *device;
    tir_rt_module *module;
    tir_rt_kernel *empty, *maps;
    struct bare bare;
    size_t size;
    options.cuda_library = argc > 1 ? argv[1] : "libcuda.so.1";
    make_ptx();
    uint8_t *bytes = make_artifact(&size);
    check(tir_runtime_create(&options, &runtime, &error), &error);
    check(tir_rt_device_open(runtime, "cuda", &device, &error), &error);
    check(tir_rt_module_load(device, bytes, size, &module, &error), &error);
    check(tir_rt_module_kernel(module, (tir_str){"empty", 5}, &empty, &error), &error);
    check(tir_rt_module_kernel(module, (tir_str){"maps", 4}, &maps, &error), &error);
    open_bare(options.cuda_library, &bare);
    run(device, &bare, empty, maps);
    check(tir_rt_device_synchronize(device, &error), &error);
    tir_artifact_bytes_free(bytes, size, NULL);
    tir_rt_module_destroy(module);
    tir_rt_device_destroy(device);
    tir_runtime_destroy(runtime);
    return 0;
}
