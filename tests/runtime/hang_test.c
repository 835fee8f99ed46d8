// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels that never end: who waits for what, in the names of the source.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

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

static void ok(const struct rig *rig, tir_status status)
{
    if (status)
        fail_msg("%s: %s", tir_status_name(status), rig->error.message);
}

// The artifact as a module of the device, with another variant.
static void load_module(struct rig *rig, const tir_artifact_variant *changed, tir_rt_kernel **out)
{
    tir_artifact_kernel one = kernel;
    tir_artifact_desc desc = artifact;
    size_t size;
    one.variants = changed;
    desc.kernels = &one;
    uint8_t *bytes = rig_artifact(&desc, &size);
    ok(rig, tir_rt_module_load(rig->device, bytes, size, &rig->module, &rig->error));
    ok(rig, tir_rt_module_kernel(rig->module, TEXT("hang"), out, &rig->error));
    free(bytes);
}

static tir_rt_kernel *load(struct rig *rig, const char *spec, const tir_artifact_variant *changed)
{
    tir_rt_kernel *out;
    rig->counting.countdown = -1;
    rig->fake = rig_fake(FAKE_CUDA);
    ok(rig, rig_runtime(rig, FAKE_CUDA));
    ok(rig, tir_rt_device_open(rig->runtime, spec, &rig->device, &rig->error));
    load_module(rig, changed, &out);
    return out;
}

static tir_status launch(struct rig *rig, tir_rt_kernel *hang, uint32_t timeout_ms)
{
    const int64_t n = 16;
    const tir_rt_arg arg = tir_rt_arg_tensor(0x100, TIR_ELEMENT_U32, 1, &n, NULL);
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    options.timeout_ms = timeout_ms;
    return tir_rt_launch(hang, NULL, &arg, 1, &options, &rig->error);
}

// The report; freed by the caller.
static char *report(struct rig *rig, uint32_t json)
{
    const size_t size = tir_rt_emu_findings(rig->device, json, NULL, 0) + 1;
    char *text = malloc(size);
    assert_int_equal(tir_rt_emu_findings(rig->device, json, text, size), size - 1);
    assert_int_equal(strlen(text), size - 1);
    return text;
}

// An emulator sees at once that nobody can go on.
static void test_emulator(void **state)
{
    struct rig rig = {0};
    (void)state;
    tir_rt_kernel *hang = load(&rig, "emu", &variant);
    assert_int_equal(launch(&rig, hang, 0), TIR_ERR_DEVICE);
    static const char *const parts[] = {
        "deadlock",   "warp 0 (load) full[1], mbarrier at 0x408, phase 0",
        "hang.tir:7", "warp 1 (math) empty, mbarrier at 0x410, phase 0 (parity 0): 3 of 3 arrivals",
        "hang.tir:9",
    };
    char *text = report(&rig, 0);
    for (size_t i = 0; i < COUNT(parts); i++)
        if (!strstr(text, parts[i]))
            fail_msg("'%s' does not say '%s'", text, parts[i]);
    free(text);
    rig_close(&rig);
}

// ---- the watchdog, with a driver on which the kernel seems to write what a kernel would write

struct record {
    uint32_t line, offset, parity, pending, turn, zero, claim, ms;
};

static uint64_t param(const struct rig *rig, int i)
{
    uint64_t words[6];
    memcpy(words, rig->fake->last.params, sizeof words);
    return words[i];
}

static struct record *page_of(const struct rig *rig)
{
    return (struct record *)(uintptr_t)param(rig, 3);
}

static void expect_text(struct rig *rig, uint32_t json, const char *want)
{
    char *text = report(rig, json);
    assert_string_equal(text, want);
    free(text);
}

static void test_watchdog(void **state)
{
    struct rig rig = {0};
    tir_artifact_variant watched = variant;
    (void)state;
    watched.watchdog = 1;
    watched.threads = 160;
    tir_rt_kernel *hang = load(&rig, "cuda", &watched);
    ok(&rig, launch(&rig, hang, 0));
    assert_int_equal(rig.fake->last.params_size, 48);
    assert_int_equal(param(&rig, 5), 10000000000);
    assert_int_equal(*(const uint32_t *)(uintptr_t)param(&rig, 4), 0);
    ok(&rig, launch(&rig, hang, 2500));
    assert_int_equal(param(&rig, 5), 2500000000);
    expect_text(&rig, 0, "");
    expect_text(&rig, 1, "[\n]\n");

    struct record *page = page_of(&rig);
    page[0] = (struct record){7, 8, 1, 1, 2, 0, 5, 2501};
    page[1] = (struct record){9, 16, 0, 3, 1, 0, 5, 2502};
    // Who asked first knows; one did not come to it.
    page[3] = (struct record){UINT32_MAX, 32, 0, 1, 4, 0, 5, 61000};
    page[4] = (struct record){UINT32_MAX, 32, 0, 2, 3, 0, 5, 61000};
    page[5] = (struct record){UINT32_MAX, 32, 0, 0, 0, 0, 5, 61000};
    rig.fake->sticky = TIR_CUDA_ERROR_LAUNCH_FAILED;
    assert_int_equal(tir_rt_device_synchronize(rig.device, &rig.error), TIR_ERR_DEVICE);
    assert_string_equal(rig.error.message,
                        "hang: kernel hang, CTA 4: warp 0 (load) at line 7 waits for full[1], "
                        "parity 1: 1 of 1 arrivals pending, for 2.501 s");
    // It is the first cause of whatever comes later.
    tir_rt_buffer *buffer;
    assert_int_equal(tir_rt_buffer_create(rig.device, 64, &buffer, &rig.error), TIR_ERR_DEVICE);
    assert_int_equal(rig.error.native, TIR_CUDA_ERROR_LAUNCH_FAILED);
    assert_memory_equal(rig.error.message, "hang: kernel hang", 17);
    expect_text(&rig, 0,
                "hang: kernel hang, CTA 4: warp 0 (load) at line 7 waits for full[1], parity 1: 1 "
                "of 1 arrivals pending, for 2.501 s\n"
                "  CTA 4: warp 1 (math) at line 9 waits for empty, parity 0: 3 of 3 arrivals "
                "pending, for 2.502 s\n"
                "  CTA 4: warps 3 to 5 wait for the mbarrier at byte 32, parity 0: 2 arrivals "
                "pending, for 61.000 s\n");
    rig_close(&rig);
}

static void test_watchdog_of_clusters(void **state)
{
    struct rig rig = {0};
    tir_artifact_variant watched = variant;
    (void)state;
    watched.watchdog = 1;
    watched.cluster[0] = 2;
    watched.cluster[1] = watched.cluster[2] = 1;
    watched.persistent = watched.ctas_per_sm = 1;
    tir_rt_kernel *hang = load(&rig, "cuda", &watched);
    ok(&rig, launch(&rig, hang, 1));
    page_of(&rig)[33] = (struct record){9, 16, 0, 3, 1, 0, 3, 12};
    rig.fake->sticky = TIR_CUDA_ERROR_LAUNCH_FAILED;
    assert_int_equal(tir_rt_device_synchronize(rig.device, &rig.error), TIR_ERR_DEVICE);
    expect_text(&rig, 0,
                "hang: kernel hang, cluster 2, its CTA 1: warp 1 (math) at line 9 waits for empty, "
                "parity 0: 3 of 3 arrivals pending, for 0.012 s\n");
    expect_text(&rig, 1,
                "[\n{\"kind\":\"HANG\",\"kernel\":\"hang\",\"entry\":\"hang\",\"waits\":["
                "{\"cluster\":2,\"rank\":1,\"warps\":[1,1],\"role\":\"math\",\"line\":9,"
                "\"mbarrier\":\"empty\",\"parity\":0,\"pending\":3,"
                "\"ms\":12}]}\n]\n");
    rig_close(&rig);
}

// Two kernels side by side: an element of the array for each.
static void test_two_watchdogs(void **state)
{
    static const char one[] =
        "{\"kind\":\"HANG\",\"kernel\":\"hang\",\"entry\":\"hang\",\"waits\":["
        "{\"cluster\":2,\"rank\":0,\"warps\":[1,1],\"role\":\"math\","
        "\"line\":9,\"mbarrier\":\"empty\",\"parity\":0,\"pending\":3,"
        "\"ms\":12}]}";
    struct rig rig = {0};
    tir_artifact_variant watched = variant;
    char want[2 * sizeof one + 16];
    (void)state;
    watched.watchdog = 1;
    tir_rt_kernel *hang = load(&rig, "cuda", &watched);
    ok(&rig, launch(&rig, hang, 1));
    page_of(&rig)[1] = (struct record){9, 16, 0, 3, 1, 0, 3, 12};
    tir_rt_module *first = rig.module;
    load_module(&rig, &watched, &hang);
    ok(&rig, launch(&rig, hang, 1));
    page_of(&rig)[1] = (struct record){9, 16, 0, 3, 1, 0, 3, 12};
    rig.fake->sticky = TIR_CUDA_ERROR_LAUNCH_FAILED;
    assert_int_equal(tir_rt_device_synchronize(rig.device, &rig.error), TIR_ERR_DEVICE);
    snprintf(want, sizeof want, "[\n%s,\n%s\n]\n", one, one);
    expect_text(&rig, 1, want);
    tir_rt_module_destroy(first);
    rig_close(&rig);
}

// The kernel ended before anybody had asked.
static void test_unasked(void **state)
{
    struct rig rig = {0};
    tir_artifact_variant watched = variant;
    (void)state;
    watched.watchdog = 1;
    tir_rt_kernel *hang = load(&rig, "cuda", &watched);
    ok(&rig, launch(&rig, hang, 1));
    page_of(&rig)[1] = (struct record){9, 16, 0, 0, 0, 0, 1, 2500};
    page_of(&rig)[3] = (struct record){9, 32, 0, 0, 0, 0, 1, 2500};
    rig.fake->sticky = TIR_CUDA_ERROR_LAUNCH_FAILED;
    assert_int_equal(tir_rt_device_synchronize(rig.device, &rig.error), TIR_ERR_DEVICE);
    expect_text(&rig, 0,
                "hang: kernel hang, CTA 0: warp 1 (math) at line 9 waits for empty, parity 0: an "
                "unknown number of 3 arrivals pending, for 2.500 s\n"
                "  CTA 0: warp 3 at line 9 waits for the mbarrier at byte 32, parity 0: an unknown "
                "number of arrivals pending, for 2.500 s\n");
    char *json = report(&rig, 1);
    assert_non_null(strstr(json, "\"parity\":0,\"pending\":null,\"ms\":2500}"));
    free(json);
    rig_close(&rig);
}

// A fault that is none of a watchdog's keeps its message, and a short buffer its bounds.
static void test_other_faults(void **state)
{
    struct rig rig = {0};
    tir_artifact_variant watched = variant;
    char text[16];
    (void)state;
    watched.watchdog = 1;
    tir_rt_kernel *hang = load(&rig, "cuda", &watched);
    ok(&rig, launch(&rig, hang, 0));
    rig.fake->sticky = TIR_CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_int_equal(tir_rt_device_synchronize(rig.device, &rig.error), TIR_ERR_DEVICE);
    assert_memory_equal(rig.error.message, "cuCtxSynchronize", 16);
    expect_text(&rig, 0, "");
    page_of(&rig)[0] = (struct record){7, 8, 1, 1, 2, 0, 5, 2501};
    assert_true(tir_rt_emu_findings(rig.device, 0, text, sizeof text) > sizeof text);
    assert_string_equal(text, "hang: kernel ha");
    rig_close(&rig);
}

// A wait with a limit of its own.
static void test_wait(void **state)
{
    struct rig rig = {0};
    tir_rt_device *other;
    tir_rt_stream *stream;
    uint32_t done;
    (void)state;
    load(&rig, "cuda", &variant);
    rig.fake->busy = 3;
    ok(&rig, tir_rt_stream_wait(rig.device, NULL, 60000, &done, &rig.error));
    assert_int_equal(done, 1);
    assert_int_equal(rig.fake->busy, 0);
    rig.fake->busy = INT32_MAX;
    ok(&rig, tir_rt_stream_wait(rig.device, NULL, 2, &done, &rig.error));
    assert_int_equal(done, 0);
    rig.fake->busy = 0;
    ok(&rig, tir_rt_device_open(rig.runtime, "emu", &other, &rig.error));
    ok(&rig, tir_rt_stream_create(other, &stream, &rig.error));
    ok(&rig, tir_rt_stream_wait(other, stream, 0, &done, &rig.error));
    assert_int_equal(done, 1);
    rig_expect(&rig, tir_rt_stream_wait(rig.device, stream, 0, &done, &rig.error), TIR_ERR_INVALID,
               "another device");
    tir_rt_stream_destroy(stream);
    tir_rt_device_destroy(other);
    rig.fake->sticky = TIR_CUDA_ERROR_ILLEGAL_ADDRESS;
    rig_expect(&rig, tir_rt_stream_wait(rig.device, NULL, 0, &done, &rig.error), TIR_ERR_DEVICE,
               "cuStreamQuery: CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_int_equal(done, 0);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_emulator),
        cmocka_unit_test(test_watchdog),
        cmocka_unit_test(test_watchdog_of_clusters),
        cmocka_unit_test(test_two_watchdogs),
        cmocka_unit_test(test_unasked),
        cmocka_unit_test(test_other_faults),
        cmocka_unit_test(test_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
