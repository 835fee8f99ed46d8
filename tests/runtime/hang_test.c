// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels that never end: who waits for what, in the names of the source.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdlib.h>
#include <string.h>

#include "sample.h"
#include "tir/runtime.h"

// hang(X: inout u32[n]): warp 0 waits for full[1], and warp 1 for empty. Nobody arrives.
static const char ptx[] = ".version 8.0\n"
                          ".target sm_90\n"
                          ".address_size 64\n"
                          ".extern .shared .align 16 .b8 smem[];\n"
                          ".visible .entry hang(.param .u64 X, .param .u64 X0, .param .u64 n)\n"
                          "{\n"
                          "    .reg .pred %p, %q;\n"
                          "    .reg .b32 %r<4>;\n"
                          "    .loc 1 3 1\n"
                          "    mov.u32 %r0, %tid.x;\n"
                          "    mov.u32 %r1, smem;\n"
                          "    setp.ne.u32 %p, %r0, 0;\n"
                          "    @%p bra READY;\n"
                          "    mbarrier.init.shared::cta.b64 [%r1], 1;\n"
                          "    mbarrier.init.shared::cta.b64 [%r1+8], 1;\n"
                          "    mbarrier.init.shared::cta.b64 [%r1+16], 3;\n"
                          "READY:\n"
                          "    bar.sync 0;\n"
                          "    setp.ge.u32 %p, %r0, 32;\n"
                          "    @%p bra SECOND;\n"
                          "FIRST:\n"
                          "    .loc 1 7 1\n"
                          "    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r1+8], 0;\n"
                          "    @!%q bra FIRST;\n"
                          "    ret;\n"
                          "SECOND:\n"
                          "    .loc 1 9 1\n"
                          "    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r1+16], 0;\n"
                          "    @!%q bra SECOND;\n"
                          "    ret;\n"
                          "}\n"
                          ".file 1 \"hang.tir\"\n";

#define ONE FORMULA(CONST(1))
static const tir_str dims[] = {{"n", 1}};
static const tir_artifact_param params[] = {
    {.name = {"X", 1}, .element = TIR_ELEMENT_U32, .direction = TIR_DIRECTION_INOUT, .rank = 1}};
static const tir_artifact_role roles[] = {{{"load", 4}, 0, 1}, {{"math", 4}, 1, 1}};
static const tir_artifact_barrier barriers[] = {
    {.name = {"full", 4}, .offset = 0, .count = 2, .arrivals = 1},
    {.name = {"empty", 5}, .offset = 16, .count = 1, .arrivals = 3}};
static const tir_artifact_variant variant = {.entry = {"hang", 4},
                                             .threads = 64,
                                             .dynamic_shared = 64,
                                             .grid = {ONE, ONE, ONE},
                                             .roles = roles,
                                             .role_count = COUNT(roles),
                                             .barriers = barriers,
                                             .barrier_count = COUNT(barriers)};
static const tir_artifact_kernel kernel = {.name = {"hang", 4},
                                           .dims = dims,
                                           .dim_count = 1,
                                           .params = params,
                                           .param_count = 1,
                                           .variants = &variant,
                                           .variant_count = 1};
static const tir_artifact_desc artifact = {
    .target = {"sm_90", 5}, .ptx = {ptx, sizeof ptx - 1}, .kernels = &kernel, .kernel_count = 1};

struct rig {
    tir_runtime *runtime;
    tir_rt_device *device;
    tir_rt_module *module;
    tir_rt_buffer *x;
    tir_error error;
};

static void ok(const struct rig *rig, tir_status status)
{
    if (status)
        fail_msg("%s: %s", tir_status_name(status), rig->error.message);
}

static void open_rig(struct rig *rig, const tir_artifact_desc *desc)
{
    uint8_t *bytes;
    size_t size;
    ok(rig, tir_artifact_encode(desc, NULL, &bytes, &size, &rig->error));
    ok(rig, tir_runtime_create(NULL, &rig->runtime, &rig->error));
    ok(rig, tir_rt_device_open(rig->runtime, "emu", &rig->device, &rig->error));
    ok(rig, tir_rt_module_load(rig->device, bytes, size, &rig->module, &rig->error));
    ok(rig, tir_rt_buffer_create(rig->device, 64, &rig->x, &rig->error));
    tir_artifact_bytes_free(bytes, size, NULL);
}

static void close_rig(struct rig *rig)
{
    tir_rt_buffer_destroy(rig->x);
    tir_rt_module_destroy(rig->module);
    tir_rt_device_destroy(rig->device);
    tir_runtime_destroy(rig->runtime);
}

// An emulator sees at once that nobody can go on.
static void test_emulator(void **state)
{
    struct rig rig = {0};
    tir_rt_kernel *hang;
    const int64_t n = 16;
    (void)state;
    open_rig(&rig, &artifact);
    ok(&rig, tir_rt_module_kernel(rig.module, TEXT("hang"), &hang, &rig.error));
    const tir_rt_arg arg =
        tir_rt_arg_tensor(tir_rt_buffer_address(rig.x), TIR_ELEMENT_U32, 1, &n, NULL);
    assert_int_equal(tir_rt_launch(hang, NULL, &arg, 1, NULL, &rig.error), TIR_ERR_DEVICE);
    const size_t size = tir_rt_emu_findings(rig.device, 0, NULL, 0) + 1;
    char *text = malloc(size);
    tir_rt_emu_findings(rig.device, 0, text, size);
    static const char *const parts[] = {
        "deadlock",   "warp 0 (load) full[1], mbarrier at 0x408, phase 0",
        "hang.tir:7", "warp 1 (math) empty, mbarrier at 0x410, phase 0 (parity 0): 3 of 3 arrivals",
        "hang.tir:9",
    };
    for (size_t i = 0; i < COUNT(parts); i++)
        if (!strstr(text, parts[i]))
            fail_msg("'%s' does not say '%s'", text, parts[i]);
    free(text);
    close_rig(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_emulator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
