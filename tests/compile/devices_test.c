// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A host that compiles for the device it has, whichever that is: for every compute capability from
// 8.0, those of GPUs that do not exist among them, the target is the best one that runs there, the
// code takes no more shared memory than there is, and the driver loads it.

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"
#include "tir/compiler.h"

#define STR(text) ((tir_str){text, sizeof(text) - 1})

// A product whose stages take all the shared memory that there is.
static const char gemm[] = "kernel gemm(A: bf16[M, K], B: bf16[N, K], D: out f32[M, N])\n"
                           "{\n"
                           "    for (m, n) in tiles(M by 128, N by 128) {\n"
                           "        var acc: f32[128, 128] = 0;\n"
                           "        for k in range(0, K, 64, stages = 8) {\n"
                           "            acc += dot(A[m:+128, k:+64], B[n:+128, k:+64].T);\n"
                           "        }\n"
                           "        D[m:+128, n:+128] = acc;\n"
                           "    }\n"
                           "}\n";

// What NVIDIA documents of a capability, "Technical specifications per compute capability"; the
// targets follow from which PTX runs where.
static const struct gpu {
    int major, minor, max_shared;
    const char *target;
} gpus[] = {
    {8, 0, 166912, "sm_80"},    {8, 6, 101376, "sm_86"},    {8, 7, 166912, "sm_86"},
    {8, 9, 101376, "sm_89"},    {9, 0, 232448, "sm_90a"},   {10, 0, 232448, "sm_100a"},
    {10, 3, 232448, "sm_103a"}, {11, 0, 232448, "sm_110a"}, {12, 0, 101376, "sm_120a"},
    {12, 1, 101376, "sm_90"},   {13, 7, 65536, "sm_90"},    {20, 0, 49152, "sm_90"},
};

static void compile_and_load(struct rig *rig, const struct gpu *gpu)
{
    const tir_rt_device_info *device = tir_rt_device_describe(rig->device);
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.outputs |= 1u << TIR_OUTPUT_PTX;
    const char *arch = tir_compile_arch_for(device->arch);
    assert_string_equal(arch, gpu->target);
    options.arch = (tir_str){arch, strlen(arch)};
    options.max_shared = device->max_shared;
    tir_compilation *c;
    rig_expect(rig, tir_compile(STR("gemm.tir"), STR(gemm), &options, &c, &rig->error), TIR_OK, "");
    tir_str artifact = tir_compilation_output(c, TIR_OUTPUT_ARTIFACT);
    tir_status status =
        tir_rt_module_load(rig->device, artifact.ptr, artifact.len, &rig->module, &rig->error);
    rig_expect(rig, status, TIR_OK, "");
    bool is_hopper = gpu->major == 9;
    assert_int_equal(strstr(tir_compilation_output(c, TIR_OUTPUT_PTX).ptr, "wgmma") != NULL,
                     is_hopper);
    tir_compilation_destroy(c);
}

static void every_device_gets_code_that_it_runs(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(gpus); i++) {
        struct rig rig = {.fake = rig_fake(FAKE_CUDA), .counting.countdown = -1};
        rig.fake->major = gpus[i].major;
        rig.fake->minor = gpus[i].minor;
        rig.fake->max_shared = gpus[i].max_shared;
        rig_expect(&rig, rig_runtime(&rig, FAKE_CUDA), TIR_OK, "");
        tir_status status = tir_rt_device_open(rig.runtime, "cuda", &rig.device, &rig.error);
        rig_expect(&rig, status, TIR_OK, "");
        compile_and_load(&rig, &gpus[i]);
        rig_close(&rig);
    }
}

static void what_is_no_device_has_no_target(void **state)
{
    (void)state;
    static const char *const none[] = {"sm_75",  "sm_0",   "sm_",
                                       "sm_90a", "sm_9x",  "SM_90",
                                       "90",     "sm_-90", "sm_99999999999999999999"};
    for (size_t i = 0; i < COUNT(none); i++)
        assert_null(tir_compile_arch_for(none[i]));
    assert_string_equal(tir_compile_arch_for(""), "sm_80");
    assert_string_equal(tir_compile_arch_for(NULL), "sm_80");
}

// A device's own name is mostly no target; the message says which one is.
static void a_device_as_target_is_explained(void **state)
{
    (void)state;
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.arch = STR("sm_121");
    tir_compilation *c;
    tir_error error;
    assert_int_equal(tir_compile(STR("gemm.tir"), STR(gemm), &options, &c, &error),
                     TIR_ERR_INVALID);
    assert_string_equal(error.message, "unknown target sm_121; a GPU of that name runs sm_90");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_device_gets_code_that_it_runs),
        cmocka_unit_test(what_is_no_device_has_no_target),
        cmocka_unit_test(a_device_as_target_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
