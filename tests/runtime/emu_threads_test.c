// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads that share the objects of an emulator: a stream that one of them captures while others
// use it, and one graph that all of them launch.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"
#include "tir/runtime.h"

enum { SIZE = 64, THREADS = 4, ROUNDS = 300, MEMORY = 1 << 20 };

// The sample's step: Y = X + 1. So its sequence, relay, is Y = X + 2.
static const char ptx[] = ".version 7.8\n"
                          ".target sm_80\n"
                          ".address_size 64\n"
                          ".visible .entry gemm_fast()\n{ ret; }\n"
                          ".visible .entry gemm_wide()\n{ ret; }\n"
                          ".visible .entry gemm_any()\n{ ret; }\n"
                          ".visible .entry copy(\n"
                          "    .param .u64 X, .param .u64 X0, .param .u64 Y, .param .u64 Y0,\n"
                          "    .param .u64 n)\n"
                          "{\n"
                          "    .reg .b32 %r<4>;\n"
                          "    .reg .b64 %rd<4>;\n"
                          "    .reg .b16 %h;\n"
                          "    mov.u32 %r0, %ctaid.x;\n"
                          "    mov.u32 %r1, %ntid.x;\n"
                          "    mov.u32 %r2, %tid.x;\n"
                          "    mad.lo.s32 %r3, %r0, %r1, %r2;\n"
                          "    cvt.s64.s32 %rd0, %r3;\n"
                          "    ld.param.u64 %rd1, [X];\n"
                          "    ld.param.u64 %rd2, [Y];\n"
                          "    add.s64 %rd1, %rd1, %rd0;\n"
                          "    add.s64 %rd2, %rd2, %rd0;\n"
                          "    ld.global.u8 %h, [%rd1];\n"
                          "    add.u16 %h, %h, 1;\n"
                          "    st.global.u8 [%rd2], %h;\n"
                          "    ret;\n"
                          "}\n";

struct rig {
    tir_runtime *runtime;
    tir_rt_device *device;
    tir_rt_module *module;
    tir_rt_kernel *relay;
    tir_rt_stream *stream;
    tir_rt_buffer *x, *y;
    tir_rt_graph *graph;
    atomic_int at_work, failures;
    tir_error error;
};

static void ok(const struct rig *rig, tir_status status)
{
    if (status)
        fail_msg("%s: %s", tir_status_name(status), rig->error.message);
}

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    tir_runtime_options options = TIR_RUNTIME_OPTIONS_INIT;
    tir_artifact_desc desc = sample;
    uint8_t *bytes;
    size_t size;
    desc.ptx = (tir_str){ptx, sizeof ptx - 1};
    options.emu_memory = MEMORY; // what is lost shows
    ok(rig, tir_artifact_encode(&desc, NULL, &bytes, &size, &rig->error));
    ok(rig, tir_runtime_create(&options, &rig->runtime, &rig->error));
    ok(rig, tir_rt_device_open(rig->runtime, "emu", &rig->device, &rig->error));
    ok(rig, tir_rt_module_load(rig->device, bytes, size, &rig->module, &rig->error));
    ok(rig, tir_rt_module_kernel(rig->module, TEXT("relay"), &rig->relay, &rig->error));
    ok(rig, tir_rt_stream_create(rig->device, &rig->stream, &rig->error));
    ok(rig, tir_rt_buffer_create(rig->device, SIZE, &rig->x, &rig->error));
    ok(rig, tir_rt_buffer_create(rig->device, SIZE, &rig->y, &rig->error));
    ok(rig, tir_rt_buffer_fill(rig->x, 0, 0, SIZE, NULL, &rig->error));
    ok(rig, tir_rt_buffer_fill(rig->y, 0, 0, SIZE, NULL, &rig->error));
    tir_artifact_bytes_free(bytes, size, NULL);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    tir_rt_graph_destroy(rig->graph);
    tir_rt_buffer_destroy(rig->x);
    tir_rt_buffer_destroy(rig->y);
    tir_rt_stream_destroy(rig->stream);
    tir_rt_module_destroy(rig->module);
    tir_rt_device_destroy(rig->device);
    tir_runtime_destroy(rig->runtime);
    free(rig);
    return 0;
}

static tir_status launch_relay(struct rig *rig, tir_error *error)
{
    const int64_t shape[] = {SIZE};
    const tir_rt_arg args[] = {
        tir_rt_arg_tensor(tir_rt_buffer_address(rig->x), TIR_ELEMENT_U8, 1, shape, NULL),
        tir_rt_arg_tensor(tir_rt_buffer_address(rig->y), TIR_ELEMENT_U8, 1, shape, NULL),
    };
    return tir_rt_launch(rig->relay, rig->stream, args, 2, NULL, error);
}

// The value that all bytes of the buffer have.
static uint8_t value_of(struct rig *rig, tir_rt_buffer *buffer)
{
    uint8_t bytes[SIZE];
    ok(rig, tir_rt_buffer_read(buffer, 0, bytes, SIZE, NULL, &rig->error));
    for (int i = 1; i < SIZE; i++)
        assert_int_equal(bytes[i], bytes[0]);
    return bytes[0];
}

static void run_threads(struct rig *rig, void *work(void *), void (*meanwhile)(struct rig *))
{
    pthread_t threads[THREADS];
    rig->at_work = THREADS;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, rig), 0);
    while (meanwhile && rig->at_work)
        meanwhile(rig);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(rig->failures, 0);
}

static void *use_stream(void *user)
{
    struct rig *rig = user;
    for (int i = 0; i < ROUNDS; i++) {
        rig->failures += launch_relay(rig, NULL) != TIR_OK;
        rig->failures += tir_rt_buffer_fill(rig->x, 0, 0, SIZE, rig->stream, NULL) != TIR_OK;
        rig->failures += tir_rt_buffer_copy(rig->x, 0, rig->x, 0, 1, rig->stream, NULL) != TIR_OK;
    }
    rig->at_work--;
    return NULL;
}

static void capture(struct rig *rig)
{
    tir_rt_graph *graph;
    ok(rig, tir_rt_capture_begin(rig->stream, &rig->error));
    ok(rig, tir_rt_capture_end(rig->stream, &graph, &rig->error));
    ok(rig, tir_rt_graph_launch(graph, NULL, &rig->error));
    tir_rt_graph_destroy(graph);
}

// The size of the largest buffer that there is memory for.
static uint64_t room(struct rig *rig)
{
    uint64_t most = 0;
    for (uint64_t step = MEMORY; step; step /= 2) {
        tir_rt_buffer *buffer;
        if (tir_rt_buffer_create(rig->device, most + step, &buffer, NULL))
            continue;
        tir_rt_buffer_destroy(buffer);
        most += step;
    }
    return most;
}

// A call of another thread is in the graph or done at once, a sequence with all of its steps and
// their memory.
static void test_capture(void **state)
{
    struct rig *rig = *state;
    const uint64_t before = room(rig);
    run_threads(rig, use_stream, capture);
    ok(rig, launch_relay(rig, &rig->error));
    assert_int_equal(value_of(rig, rig->y), 2);
    assert_int_equal(room(rig), before);
}

static void *launch_graph(void *user)
{
    struct rig *rig = user;
    for (int i = 0; i < ROUNDS; i++)
        rig->failures += tir_rt_graph_launch(rig->graph, NULL, NULL) != TIR_OK;
    return NULL;
}

// Launches of one graph run one after the other: each adds 2.
static void test_graph(void **state)
{
    struct rig *rig = *state;
    ok(rig, tir_rt_capture_begin(rig->stream, &rig->error));
    ok(rig, launch_relay(rig, &rig->error));
    ok(rig, tir_rt_buffer_copy(rig->x, 0, rig->y, 0, SIZE, rig->stream, &rig->error));
    ok(rig, tir_rt_capture_end(rig->stream, &rig->graph, &rig->error));
    run_threads(rig, launch_graph, NULL);
    assert_int_equal(value_of(rig, rig->x), 2 * THREADS * ROUNDS % 256);
}

// A graph does not need what the caller gave to its launches: the name, the block of parameters.
static void test_names(void **state)
{
    struct rig *rig = *state;
    char name[] = "copy";
    uint64_t params[] = {tir_rt_buffer_address(rig->x), 1, tir_rt_buffer_address(rig->y), 1, SIZE};
    tir_rt_ptx_launch launch = TIR_RT_PTX_LAUNCH_INIT;
    launch.block[0] = SIZE;
    launch.params = params;
    launch.params_size = sizeof params;
    ok(rig, tir_rt_capture_begin(rig->stream, &rig->error));
    ok(rig, tir_rt_launch_ptx(rig->module, rig->stream, name, &launch, &rig->error));
    ok(rig, tir_rt_capture_end(rig->stream, &rig->graph, &rig->error));
    memset(name, 'x', 4);
    memset(params, 0, sizeof params);
    ok(rig, tir_rt_graph_launch(rig->graph, NULL, &rig->error));
    assert_int_equal(value_of(rig, rig->y), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(test_capture), TEST(test_graph), TEST(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
