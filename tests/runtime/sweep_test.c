// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sweeps: one session with everything in it, in which every driver call, then every allocation,
// fails once. Each failure is a status; nothing leaks, nothing crashes. The session then goes on
// where it stopped, with the same objects: it works, or fails as the device did for good.

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
    tir_rt_device *adopted;
    tir_rt_stream *stream, *own;
    tir_rt_graph *graph;
    tir_rt_event *start, *end;
    tir_rt_buffer *x, *y, *scratch;
    tir_rt_module *ptx;
};

// What is not there yet.
static tir_status create(struct rig *rig, struct objects *o)
{
    static const char text[] = ".version 8.0\n.target sm_80\n.entry mine() { ret; }";
    tir_status status = TIR_OK;
#define MAKE(object, call) status = status || (object) ? status : (call)
    MAKE(o->stream, tir_rt_stream_create(rig->device, &o->stream, &rig->error));
    MAKE(o->own, tir_rt_stream_adopt(rig->device, o->stream, &o->own, &rig->error));
    MAKE(o->start, tir_rt_event_create(rig->device, &o->start, &rig->error));
    MAKE(o->end, tir_rt_event_create(rig->device, &o->end, &rig->error));
    MAKE(o->x, tir_rt_buffer_create(rig->device, 100, &o->x, &rig->error));
    MAKE(o->y, tir_rt_buffer_create(rig->device, 100, &o->y, &rig->error));
    MAKE(o->scratch, tir_rt_buffer_create(rig->device, 256, &o->scratch, &rig->error));
    MAKE(o->ptx, tir_rt_module_load_ptx(rig->device, (tir_str){text, sizeof text - 1}, &o->ptx,
                                        &rig->error));
    MAKE(o->adopted,
         tir_rt_device_adopt(rig->runtime, rig->fake->context, &o->adopted, &rig->error));
#undef MAKE
    return status;
}

static void destroy(struct objects *o)
{
    tir_rt_graph_destroy(o->graph);
    tir_rt_event_destroy(o->start);
    tir_rt_event_destroy(o->end);
    tir_rt_stream_destroy(o->own);
    tir_rt_stream_destroy(o->stream);
    tir_rt_buffer_destroy(o->x);
    tir_rt_buffer_destroy(o->y);
    tir_rt_buffer_destroy(o->scratch);
    tir_rt_module_destroy(o->ptx);
    tir_rt_device_destroy(o->adopted);
    *o = (struct objects){0};
}

static tir_status use(struct rig *rig, struct objects *o)
{
    uint8_t bytes[100], back[100];
    int64_t n = 100;
    float ms;
    uint32_t done;
    tir_rt_usage usage;
    size_t offset, size;
    tir_rt_kernel *relay = NULL;
    tir_rt_launch_options given = TIR_RT_LAUNCH_OPTIONS_INIT;
    const tir_rt_ptx_launch mine = TIR_RT_PTX_LAUNCH_INIT;
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
    given.scratch = tir_rt_buffer_address(o->scratch);
    given.scratch_size = 256;
    given.overlap = 1;
    STEP(tir_rt_launch(relay, o->own, args, 2, &given, &rig->error));
    const tir_rt_prepare ahead[] = {{relay, args, 2}, {rig->gemm, g.args, 5}};
    STEP(tir_rt_module_prepare(rig->module, ahead, 2, 1, &rig->error));
    STEP(tir_rt_launch_ptx(o->ptx, o->stream, "mine", &mine, &rig->error));
    STEP(tir_rt_ptx_param(o->ptx, "mine", 2, &offset, &size, &rig->error));
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
    STEP(tir_rt_device_synchronize(o->adopted, &rig->error));
#undef STEP
    if (!status)
        assert_memory_equal(bytes, back, 100);
    return status;
}

// All of the session that is not done yet.
static tir_status go_on(struct rig *rig, struct objects *o)
{
    tir_status status = rig_open(rig);
    if (!status)
        status = create(rig, o);
    return status ? status : use(rig, o);
}

// What a program does that wants to go on after a failure.
static void clean_up(struct objects *o)
{
    tir_rt_graph_destroy(o->graph);
    o->graph = NULL;
    if (o->stream && tir_rt_capture_end(o->stream, &o->graph, NULL) == TIR_OK)
        tir_rt_graph_destroy(o->graph);
    o->graph = NULL;
}

// Goes on after a failure that is over. A fault of the device stays what it was.
static void retry(struct rig *rig, struct objects *o, tir_status status)
{
    const tir_error first = rig->error;
    clean_up(o);
    const tir_status again = go_on(rig, o);
    if (again && (status != TIR_ERR_DEVICE || again != status ||
                  strcmp(rig->error.message, first.message) != 0))
        fail_msg("after '%s' a second attempt ends with '%s'", first.message, rig->error.message);
    rig->error = first;
}

// The session. Everything is freed whatever happened; `*used` is how many driver calls came before.
static tir_status session(struct rig *rig, int *used)
{
    struct objects o = {0};
    tir_status status = go_on(rig, &o);
    *used = rig->fake->calls;
    if (rig->fake->fail_on) {
        clean_up(&o);
        rig->fake->fail_at = 0;
    }
    if (status)
        retry(rig, &o, status);
    destroy(&o);
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

struct result {
    cu_result code;
    tir_status status;
    const char *name;
};
static const struct result results[] = {
#define X(name, value, status) {value, status, #name},
    CU_RESULTS(X)
#undef X
        {9999, TIR_ERR_UNSUPPORTED, "unknown CUDA error"}, // of a later driver
};

// The status of a call that failed at call `n`, with the driver's function and the result's name
// in its message.
static void check_failure(const struct rig *rig, tir_status status, const struct result *result,
                          int n)
{
    const char *message = rig->error.message, *name = strstr(message, ": cu");
    // Before a device is open, whatever fails is the driver's absence.
    if (status != result->status && (n > 2 || status != TIR_ERR_NO_DRIVER))
        fail_msg("call %d: %s: %s", n, tir_status_name(status), message);
    assert_int_equal(rig->error.status, status);
    assert_int_equal(rig->error.native, result->code);
    // The driver's function, after the variant where it is one's code that is loaded.
    assert_true(strncmp(message, "cu", 2) == 0 ||
                (name && (strncmp(message, "copy", 4) == 0 || strncmp(message, "gemm", 4) == 0)));
    assert_non_null(strstr(message, result->name));
}

// Whether earlier results stand for this one: the runtime looks at the status, and at the code only
// where another image may be of use.
static bool is_covered(size_t r)
{
    if (results[r].code == TIR_CUDA_ERROR_NO_BINARY_FOR_GPU || r == COUNT(results) - 1)
        return false;
    for (size_t i = 0; i < r; i++)
        if (results[i].status == results[r].status)
            return true;
    return false;
}

static int sweep_driver(const tir_artifact_desc *desc, const struct result *result, int on)
{
    int calls = 0, assembled = 0, used;
    for (int n = 0; n <= calls; n++) { // round 0 fails nothing, and counts
        struct rig rig = {.fake = rig_fake(FAKE_CUDA), .counting.countdown = -1, .desc = desc};
        rig.fake->fail_at = n;
        rig.fake->fail_with = result->code;
        rig.fake->fail_on = n ? on : 0;
        tir_status status = session(&rig, &used);
        if (n == 0) {
            assert_int_equal(status, TIR_OK);
            calls = rig.fake->calls;
            assembled = rig.fake->assembled;
        } else if (status) {
            check_failure(&rig, status, result, n);
        } else if (!rig.fake->failed_release && n <= used && rig.fake->assembled <= assembled) {
            // Nobody hears of what frees or restores something, nor of a cubin whose PTX works.
            fail_msg("nobody heard of call %d of %d failing", n, calls);
        }
    }
    return calls;
}

// One call fails, or all from one on.
static void test_driver_calls(void **state)
{
    (void)state;
    const tir_artifact_desc ptx = ptx_only(), *descs[] = {&sample, &ptx};
    for (size_t i = 0; i < COUNT(descs); i++)
        for (size_t r = 0; r < COUNT(results); r++)
            for (int on = 0; on < 2 && !is_covered(r); on++)
                assert_true(sweep_driver(descs[i], &results[r], on) > 150);
}

// Every result at one call, the first from `n` on that somebody hears of.
static void test_results(void **state)
{
    (void)state;
    int n = 60, used;
    for (size_t r = 0; r < COUNT(results); r++) {
        struct rig rig = {.fake = rig_fake(FAKE_CUDA), .counting.countdown = -1};
        rig.fake->fail_at = n;
        rig.fake->fail_with = results[r].code;
        const tir_status status = session(&rig, &used);
        if (!status && rig.fake->failed_release) {
            n++;
            r--;
            continue;
        }
        check_failure(&rig, status, &results[r], n);
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
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_emulator_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
