// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The usual set-up of a test: a runtime on the fake driver, and the sample loaded on it.

#include "rig.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct fake_cuda *rig_fake(const char *library)
{
    struct fake_cuda *(*get)(void);
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    void *symbol = dlsym(handle, "fake_cuda");
    assert_non_null(symbol);
    memcpy(&get, &symbol, sizeof get);
    struct fake_cuda *fake = get();
    memset(fake, 0, sizeof *fake);
    fake->device_count = 1;
    fake->major = 9;
    fake->max_shared = 232448;
    fake->version = 12080;
    fake->active_clusters = 64;
    return fake;
}

tir_status rig_runtime(struct rig *rig, const char *library)
{
    tir_runtime_options options = TIR_RUNTIME_OPTIONS_INIT;
    options.allocator = counting_allocator(&rig->counting);
    options.cuda_library = library;
    return tir_runtime_create(&options, &rig->runtime, &rig->error);
}

uint8_t *rig_artifact(const tir_artifact_desc *desc, size_t *size)
{
    uint8_t *bytes;
    tir_error error;
    if (tir_artifact_encode(desc, NULL, &bytes, size, &error))
        fail_msg("%s", error.message);
    return bytes;
}

tir_status rig_load_all(struct rig *rig, tir_rt_module *module)
{
    const tir_artifact_desc *desc = tir_rt_module_describe(module);
    tir_status status = TIR_OK;
    tir_rt_kernel *kernel;
    tir_rt_usage usage;
    for (uint32_t i = 0; i < desc->kernel_count && !status; i++) {
        status = tir_rt_module_kernel(module, desc->kernels[i].name, &kernel, &rig->error);
        for (uint32_t v = 0; v < desc->kernels[i].variant_count && !status; v++)
            status = tir_rt_kernel_usage(kernel, v, &usage, &rig->error);
    }
    return status;
}

tir_status rig_open(struct rig *rig)
{
    size_t size;
    uint8_t *bytes = rig_artifact(rig->desc ? rig->desc : &sample, &size);
    tir_status status = rig->runtime ? TIR_OK : rig_runtime(rig, FAKE_CUDA);
    if (!status && !rig->device)
        status = tir_rt_device_open(rig->runtime, "cuda", &rig->device, &rig->error);
    if (!status && !rig->module)
        status = tir_rt_module_load(rig->device, bytes, size, &rig->module, &rig->error);
    if (!status)
        status = tir_rt_module_kernel(rig->module, TEXT("gemm"), &rig->gemm, &rig->error);
    if (!status)
        status = tir_rt_module_kernel(rig->module, TEXT("copy"), &rig->copy, &rig->error);
    free(bytes);
    return status;
}

void rig_close(struct rig *rig)
{
    tir_rt_module_destroy(rig->module);
    tir_rt_device_destroy(rig->device);
    tir_runtime_destroy(rig->runtime);
    rig->module = NULL;
    rig->device = NULL;
    rig->runtime = NULL;
    assert_int_equal(rig->counting.live, 0);
    assert_int_equal(rig->fake->memory, 0);
    assert_int_equal(rig->fake->modules, 0);
    assert_int_equal(rig->fake->pools, 0);
    assert_int_equal(rig->fake->graphs, 0);
    assert_int_equal(rig->fake->streams, 0);
    assert_int_equal(rig->fake->events, 0);
}

int rig_setup(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    rig->fake = rig_fake(FAKE_CUDA);
    rig->counting.countdown = -1;
    *state = rig;
    if (rig_open(rig))
        fail_msg("%s", rig->error.message);
    return 0;
}

int rig_teardown(void **state)
{
    struct rig *rig = *state;
    rig_close(rig);
    assert_int_equal(rig->fake->contexts, 0);
    free(rig);
    return 0;
}

void rig_expect(struct rig *rig, tir_status status, tir_status expected, const char *part)
{
    if (status != expected)
        fail_msg("%s instead of %s: %s", tir_status_name(status), tir_status_name(expected),
                 status ? rig->error.message : "");
    if (!strstr(rig->error.message, part))
        fail_msg("'%s' does not say '%s'", rig->error.message, part);
}

void rig_ok(struct rig *rig, tir_status status)
{
    if (status)
        fail_msg("%s: %s", tir_status_name(status), rig->error.message);
}

tir_rt_kernel *rig_load(struct rig *rig, const tir_artifact_kernel *kernel, tir_rt_module **module)
{
    tir_artifact_desc desc = sample;
    tir_rt_kernel *out;
    size_t size;
    desc.kernels = kernel;
    desc.kernel_count = 1;
    uint8_t *bytes = rig_artifact(&desc, &size);
    tir_status status = tir_rt_module_load(rig->device, bytes, size, module, &rig->error);
    free(bytes);
    if (status)
        return NULL;
    rig_ok(rig, tir_rt_module_kernel(*module, kernel->name, &out, &rig->error));
    return out;
}

tir_rt_kernel *rig_load_changed(struct rig *rig, const tir_artifact_param *params,
                                const tir_artifact_variant *variants, uint32_t count,
                                tir_rt_module **module)
{
    tir_artifact_kernel kernel = sample.kernels[0];
    kernel.params = params ? params : kernel.params;
    kernel.variants = variants;
    kernel.variant_count = count;
    return rig_load(rig, &kernel, module);
}

tir_status rig_launch(struct rig *rig, const struct gemm_args *g, tir_rt_launch_report *report)
{
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    options.report = report;
    return tir_rt_launch(rig->gemm, NULL, g->args, 5, &options, &rig->error);
}

void rig_gemm_args(struct gemm_args *g)
{
    *g = (struct gemm_args){.a = {256, 128}, .b = {4, 512, 128}, .d = {256, 512}};
    g->args[PARAM_A] = tir_rt_arg_tensor(0x10000, TIR_ELEMENT_BF16, 2, g->a, NULL);
    g->args[PARAM_B] = tir_rt_arg_tensor(0x100000000, TIR_ELEMENT_BF16, 3, g->b, NULL);
    g->args[PARAM_D] = tir_rt_arg_tensor(0x100010000000, TIR_ELEMENT_F32, 2, g->d, NULL);
    g->args[PARAM_STEP] = tir_rt_arg_int(TIR_ELEMENT_I32, 7);
    g->args[PARAM_SCALE] = tir_rt_arg_float(TIR_ELEMENT_F32, 0.5);
}
