// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sweeps: one session with everything in it, in which every driver call, then every allocation,
// fails once. Each failure is a status; nothing leaks, nothing crashes.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <string.h>

#include "rig.h"

struct objects {
    tir_rt_stream *stream;
    tir_rt_graph *graph;
    tir_rt_event *start, *end;
    tir_rt_buffer *x, *y;
};

static tir_status create(struct rig *rig, struct objects *o)
{
    tir_status status = tir_rt_stream_create(rig->device, &o->stream, &rig->error);
    if (!status)
        status = tir_rt_event_create(rig->device, &o->start, &rig->error);
    if (!status)
        status = tir_rt_event_create(rig->device, &o->end, &rig->error);
    if (!status)
        status = tir_rt_buffer_create(rig->device, 100, &o->x, &rig->error);
    if (!status)
        status = tir_rt_buffer_create(rig->device, 100, &o->y, &rig->error);
    return status;
}

static tir_status use(struct rig *rig, struct objects *o)
{
    uint8_t bytes[100], back[100];
    int64_t n = 100;
    float ms;
    uint32_t done;
    tir_rt_usage usage;
    tir_rt_kernel *relay = NULL;
    memset(bytes, 42, sizeof bytes);
    tir_rt_arg args[2] = {
        tir_rt_arg_tensor(tir_rt_buffer_address(o->x), TIR_ELEMENT_U8, 1, &n, NULL),
        tir_rt_arg_tensor(tir_rt_buffer_address(o->y), TIR_ELEMENT_U8, 1, &n, NULL),
    };
    struct gemm_args g;
    rig_gemm_args(&g);
    tir_status status = TIR_OK;
#define STEP(call) status = status ? status : (call)
    STEP(tir_rt_buffer_fill(o->y, 0, 1, 100, o->stream, &rig->error));
    STEP(tir_rt_buffer_write(o->x, 0, bytes, 100, o->stream, &rig->error));
    STEP(tir_rt_event_record(o->start, o->stream, &rig->error));
    STEP(tir_rt_launch(rig->copy, o->stream, args, 2, NULL, &rig->error));
    STEP(tir_rt_launch(rig->gemm, o->stream, g.args, 5, NULL, &rig->error));
    STEP(tir_rt_event_record(o->end, o->stream, &rig->error));
    STEP(tir_rt_buffer_read(o->y, 0, back, 100, o->stream, &rig->error));
    STEP(tir_rt_buffer_copy(o->x, 0, o->y, 0, 100, NULL, &rig->error));
    STEP(tir_rt_module_kernel(rig->module, TEXT("relay"), &relay, &rig->error));
    STEP(tir_rt_launch(relay, o->stream, args, 2, NULL, &rig->error));
    n = 64; // another shape: a launch that is remembered is decided again when it fails
    STEP(tir_rt_capture_begin(o->stream, &rig->error));
    STEP(tir_rt_buffer_fill(o->y, 0, 1, 100, o->stream, &rig->error));
    STEP(tir_rt_launch(relay, o->stream, args, 2, NULL, &rig->error));
    STEP(tir_rt_capture_end(o->stream, &o->graph, &rig->error));
    STEP(tir_rt_graph_launch(o->graph, o->stream, &rig->error));
    STEP(tir_rt_event_elapsed(o->start, o->end, &ms, &rig->error));
    STEP(tir_rt_kernel_usage(rig->gemm, 0, &usage, &rig->error));
    STEP(tir_rt_module_prepare(rig->module, NULL, 0, 1, &rig->error));
    STEP(tir_rt_stream_synchronize(o->stream, &rig->error));
    STEP(tir_rt_stream_wait(rig->device, o->stream, 1000, &done, &rig->error));
    STEP(tir_rt_device_synchronize(rig->device, &rig->error));
#undef STEP
    if (!status)
        assert_memory_equal(bytes, back, 100);
    return status;
}

// The session. Everything is freed whatever happened; `*used` is how many driver calls came before.
static tir_status session(struct rig *rig, int *used)
{
    struct objects o = {0};
    tir_status status = rig_open(rig);
    if (!status)
        status = create(rig, &o);
    if (!status)
        status = use(rig, &o);
    *used = rig->fake->calls;
    tir_rt_graph_destroy(o.graph);
    tir_rt_event_destroy(o.start);
    tir_rt_event_destroy(o.end);
    tir_rt_stream_destroy(o.stream);
    tir_rt_buffer_destroy(o.x);
    tir_rt_buffer_destroy(o.y);
    rig_close(rig);
    return status;
}

// The sample without its cubin, so that each variant is loaded by itself.
static tir_artifact_desc ptx_only(void)
{
    tir_artifact_desc desc = sample;
    desc.cubin.len = desc.cubin_arch.len = 0;
    return desc;
}

static void sweep_driver(const tir_artifact_desc *desc, cu_result failure, tir_status expected)
{
    int calls = 0, used;
    for (int n = 0; n <= calls; n++) { // round 0 fails nothing, and counts
        struct rig rig = {.fake = rig_fake(FAKE_CUDA), .counting.countdown = -1, .desc = desc};
        rig.fake->fail_at = n;
        rig.fake->fail_with = failure;
        tir_status status = session(&rig, &used);
        if (n == 0) {
            assert_int_equal(status, TIR_OK);
            calls = rig.fake->calls;
            continue;
        }
        if (status == TIR_OK) { // nobody hears of what frees or restores something
            if (!rig.fake->failed_release && n <= used)
                fail_msg("nobody heard of call %d of %d failing", n, calls);
            continue;
        }
        // Before a device is open, whatever fails is the driver's absence.
        assert_true(status == expected || (n <= 2 && status == TIR_ERR_NO_DRIVER));
        assert_int_equal(rig.error.status, status);
        assert_int_equal(rig.error.native, failure);
        // The driver's function, after the variant where it is one's code that is loaded.
        const char *message = rig.error.message, *name = strstr(message, ": cu");
        assert_true(strncmp(message, "cu", 2) == 0 || (name && (strncmp(message, "copy", 4) == 0 ||
                                                                strncmp(message, "gemm", 4) == 0)));
    }
    assert_true(calls > 100);
}

static void test_driver_calls(void **state)
{
    (void)state;
    const tir_artifact_desc ptx = ptx_only(), *descs[] = {&sample, &ptx};
    for (size_t i = 0; i < COUNT(descs); i++) {
        sweep_driver(descs[i], TIR_CUDA_ERROR_OUT_OF_MEMORY, TIR_ERR_NO_MEMORY);
        sweep_driver(descs[i], TIR_CUDA_ERROR_NOT_SUPPORTED, TIR_ERR_UNSUPPORTED);
        sweep_driver(descs[i], TIR_CUDA_ERROR_LAUNCH_FAILED, TIR_ERR_DEVICE);
    }
}

static void sweep_allocations(const tir_artifact_desc *desc)
{
    int used;
    for (int n = 1, left = 0; left <= 0; n++) { // until a session needs fewer than n
        struct rig rig = {.fake = rig_fake(FAKE_CUDA), .counting.countdown = n, .desc = desc};
        tir_status status = session(&rig, &used);
        left = rig.counting.countdown;
        assert_int_equal(rig.fake->contexts, 0);
        if (status) {
            assert_int_equal(status, TIR_ERR_NO_MEMORY);
            assert_int_equal(rig.error.status, TIR_ERR_NO_MEMORY);
        } else {
            assert_true(n > 20); // what a launch would remember is not missed
        }
        assert_true(n < 1000);
    }
}

static void test_allocations(void **state)
{
    (void)state;
    const tir_artifact_desc ptx = ptx_only();
    sweep_allocations(&sample);
    sweep_allocations(&ptx);
}

// A session on the emulator, whose own allocations count as well.
static tir_status emulate(struct rig *rig, const uint8_t *artifact, size_t size)
{
    tir_rt_buffer *buffer = NULL;
    tir_rt_event *event = NULL;
    tir_rt_stream *stream = NULL;
    tir_rt_graph *graph = NULL;
    int64_t n = 32;
    uint8_t bytes[64] = {0};
    tir_status status = rig_runtime(rig, NULL);
    if (!status)
        status = tir_rt_device_open(rig->runtime, "emu", &rig->device, &rig->error);
    if (!status)
        status = tir_rt_module_load(rig->device, artifact, size, &rig->module, &rig->error);
    if (!status)
        status = tir_rt_module_kernel(rig->module, TEXT("copy"), &rig->copy, &rig->error);
    if (!status)
        status = tir_rt_buffer_create(rig->device, 64, &buffer, &rig->error);
    if (!status)
        status = tir_rt_event_create(rig->device, &event, &rig->error);
    if (!status)
        status = tir_rt_buffer_write(buffer, 0, bytes, 64, NULL, &rig->error);
    if (!status) {
        const uint64_t at = tir_rt_buffer_address(buffer);
        const tir_rt_arg args[] = {tir_rt_arg_tensor(at, TIR_ELEMENT_U8, 1, &n, NULL),
                                   tir_rt_arg_tensor(at + 32, TIR_ELEMENT_U8, 1, &n, NULL)};
        status = tir_rt_launch(rig->copy, NULL, args, 2, NULL, &rig->error);
        if (!status)
            status = tir_rt_stream_create(rig->device, &stream, &rig->error);
        if (!status)
            status = tir_rt_capture_begin(stream, &rig->error);
        if (!status)
            status = tir_rt_launch(rig->copy, stream, args, 2, NULL, &rig->error);
        if (!status)
            status = tir_rt_capture_end(stream, &graph, &rig->error);
        if (!status)
            status = tir_rt_graph_launch(graph, stream, &rig->error);
    }
    tir_rt_graph_destroy(graph);
    tir_rt_stream_destroy(stream);
    tir_rt_event_destroy(event);
    tir_rt_buffer_destroy(buffer);
    rig_close(rig);
    return status;
}

static void test_emulator_allocations(void **state)
{
    (void)state;
    static const char ptx[] =
        ".version 7.8\n.target sm_80\n.address_size 64\n"
        ".visible .entry copy(.param .u64 X, .param .u64 X0, .param .u64 Y, .param .u64 Y0,\n"
        "    .param .u64 n)\n{\n"
        "    .reg .b64 %a;\n    .reg .b32 %v;\n    .shared .align 4 .b8 tile[64];\n"
        "    ld.param.u64 %a, [X];\n    ld.global.u8 %v, [%a];\n    st.shared.u32 [tile], %v;\n"
        "    bar.sync 0;\n    ret;\n}\n";
    tir_artifact_desc desc = sample;
    size_t size;
    desc.ptx = (tir_str){ptx, sizeof ptx - 1};
    desc.cubin.len = desc.cubin_arch.len = 0;
    desc.kernels = &sample.kernels[1];
    desc.kernel_count = 1;
    uint8_t *artifact = rig_artifact(&desc, &size);
    tir_status status = TIR_ERR_NO_MEMORY;
    for (int n = 1; status; n++) {
        struct rig rig = {.fake = rig_fake(FAKE_CUDA), .counting.countdown = n};
        status = emulate(&rig, artifact, size);
        if (status && status != TIR_ERR_NO_MEMORY)
            fail_msg("allocation %d: %s: %s", n, tir_status_name(status), rig.error.message);
        assert_true(n < 10000);
    }
    free(artifact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_driver_calls),
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_emulator_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
