// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches of sequences: the sample's relay, which copies by way of memory of its own, as it is and
// beside variants.

#include "rig.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static const tir_artifact_kernel *relay(void)
{
    return &sample.kernels[KERNEL_RELAY];
}

struct buffers {
    tir_rt_buffer *x, *y;
    int64_t shape[1];
    tir_rt_arg args[2];
    uint8_t bytes[1000], back[1000];
};

static void make_buffers(struct rig *rig, struct buffers *b, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++)
        b->bytes[i] = (uint8_t)(i * 7 + 1);
    memset(b->back, 0, sizeof b->back);
    b->shape[0] = size;
    rig_expect(rig, tir_rt_buffer_create(rig->device, size, &b->x, &rig->error), TIR_OK, "");
    rig_expect(rig, tir_rt_buffer_create(rig->device, size, &b->y, &rig->error), TIR_OK, "");
    if (size) {
        rig_expect(rig, tir_rt_buffer_write(b->x, 0, b->bytes, size, NULL, &rig->error), TIR_OK,
                   "");
        rig_expect(rig, tir_rt_buffer_write(b->y, 0, b->back, size, NULL, &rig->error), TIR_OK, "");
    }
    b->args[0] = tir_rt_arg_tensor(tir_rt_buffer_address(b->x), TIR_ELEMENT_U8, 1, b->shape, NULL);
    b->args[1] = tir_rt_arg_tensor(tir_rt_buffer_address(b->y), TIR_ELEMENT_U8, 1, b->shape, NULL);
}

static void free_buffers(struct buffers *b)
{
    tir_rt_buffer_destroy(b->x);
    tir_rt_buffer_destroy(b->y);
}

// The sample with another relay, loaded; *module is the caller's.
static tir_rt_kernel *load_relay(struct rig *rig, const tir_artifact_kernel *changed,
                                 tir_rt_module **module)
{
    tir_artifact_kernel kernels[4];
    tir_artifact_desc desc = sample;
    tir_rt_kernel *out;
    size_t size;
    memcpy(kernels, sample.kernels, sizeof kernels);
    kernels[KERNEL_RELAY] = *changed;
    desc.kernels = kernels;
    uint8_t *bytes = rig_artifact(&desc, &size);
    rig_expect(rig, tir_rt_module_load(rig->device, bytes, size, module, &rig->error), TIR_OK, "");
    free(bytes);
    rig_expect(rig, tir_rt_module_kernel(*module, TEXT("relay"), &out, &rig->error), TIR_OK, "");
    return out;
}

static tir_status launch(struct rig *rig, tir_rt_kernel *kernel, const struct buffers *b,
                         int32_t variant, tir_rt_launch_report *report)
{
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    options.variant = variant;
    options.report = report;
    return tir_rt_launch(kernel, NULL, b->args, 2, &options, &rig->error);
}

// Two launches, memory of the right size between them in the stream of the launch, and its end.
static void test_relay(void **state)
{
    struct rig *rig = *state;
    struct buffers b;
    tir_rt_launch_report report;
    tir_rt_stream *stream;
    tir_rt_kernel *kernel;
    make_buffers(rig, &b, 1000);
    rig_expect(rig, tir_rt_module_kernel(rig->module, TEXT("relay"), &kernel, &rig->error), TIR_OK,
               "");
    int memory = rig->fake->memory;
    rig_expect(rig, launch(rig, kernel, &b, -1, &report), TIR_OK, "");
    assert_int_equal(rig->fake->launches, 2);
    assert_int_equal(rig->fake->scratch_size, 1024);
    assert_int_equal(rig->fake->memory, memory);
    assert_int_equal(rig->fake->pools, 1);
    assert_true(rig->fake->pool_keeps == UINT64_MAX);
    assert_int_equal(report.variant, 0);
    assert_int_equal(report.launched, 1);
    assert_int_equal(report.grid[0], 32);
    rig_expect(rig, tir_rt_buffer_read(b.y, 0, b.back, 1000, NULL, &rig->error), TIR_OK, "");
    assert_memory_equal(b.bytes, b.back, 1000);
    rig_expect(rig, tir_rt_stream_create(rig->device, &stream, &rig->error), TIR_OK, "");
    rig_expect(rig, tir_rt_launch(kernel, stream, b.args, 2, NULL, &rig->error), TIR_OK, "");
    assert_non_null(rig->fake->scratch_stream);
    assert_ptr_equal(rig->fake->scratch_stream, rig->fake->last.stream);
    assert_int_equal(rig->fake->pools, 1); // the same
    tir_rt_stream_destroy(stream);
    tir_rt_usage usage;
    rig_expect(rig, tir_rt_kernel_usage(kernel, 0, &usage, &rig->error), TIR_OK, "");
    assert_int_equal(usage.registers, 128);
    rig_expect(rig, tir_rt_kernel_usage(kernel, 1, &usage, &rig->error), TIR_ERR_INVALID,
               "has no variant 1");
    free_buffers(&b);
}

// Memory that the caller has is taken where it is large enough, and then none is allocated.
static void test_given(void **state)
{
    struct rig *rig = *state;
    struct buffers b;
    tir_rt_buffer *own;
    tir_rt_kernel *kernel;
    make_buffers(rig, &b, 1000);
    rig_expect(rig, tir_rt_module_kernel(rig->module, TEXT("relay"), &kernel, &rig->error), TIR_OK,
               "");
    rig_expect(rig, tir_rt_buffer_create(rig->device, 4096, &own, &rig->error), TIR_OK, "");
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    options.scratch = (tir_rt_buffer_address(own) + 255) / 256 * 256;
    for (options.scratch_size = 1023; options.scratch_size < 1025; options.scratch_size++) {
        rig->fake->scratch_size = 0;
        rig_expect(rig, tir_rt_launch(kernel, NULL, b.args, 2, &options, &rig->error), TIR_OK, "");
        assert_int_equal(rig->fake->scratch_size, options.scratch_size < 1024 ? 1024 : 0);
        memset(b.back, 0xff, 1000);
        rig_expect(rig, tir_rt_buffer_read(b.y, 0, b.back, 1000, NULL, &rig->error), TIR_OK, "");
        assert_memory_equal(b.bytes, b.back, 1000);
        memset(b.bytes, (int)options.scratch_size, sizeof b.bytes);
        rig_expect(rig, tir_rt_buffer_write(b.x, 0, b.bytes, 1000, NULL, &rig->error), TIR_OK, "");
    }
    options.scratch += 128;
    rig_expect(rig, tir_rt_launch(kernel, NULL, b.args, 2, &options, &rig->error), TIR_ERR_INVALID,
               "the scratch memory does not begin at a multiple of 256 bytes");
    tir_rt_buffer_destroy(own);
    free_buffers(&b);
}

// A step after the first that waits by itself is launched early; the same kernel alone is not, nor
// one that does not wait.
static void test_early(void **state)
{
    struct rig *rig = *state;
    struct buffers b;
    tir_rt_kernel *relay, *step;
    make_buffers(rig, &b, 1000);
    rig_expect(rig, tir_rt_module_kernel(rig->module, TEXT("relay"), &relay, &rig->error), TIR_OK,
               "");
    rig_expect(rig, tir_rt_module_kernel(rig->module, TEXT("relay__step"), &step, &rig->error),
               TIR_OK, "");
    rig_expect(rig, launch(rig, relay, &b, -1, NULL), TIR_OK, "");
    assert_true(rig->fake->last.early);
    rig_expect(rig, launch(rig, step, &b, -1, NULL), TIR_OK, "");
    assert_false(rig->fake->last.early);
    tir_rt_launch_options overlap = TIR_RT_LAUNCH_OPTIONS_INIT; // the caller asks for it
    overlap.overlap = 1;
    rig_expect(rig, tir_rt_launch(step, NULL, b.args, 2, &overlap, &rig->error), TIR_OK, "");
    assert_true(rig->fake->last.early);
    free_buffers(&b);
}

// The module of the sample, with another way of its steps to wait.
static tir_rt_module *waiting(struct rig *rig, uint32_t waits)
{
    tir_artifact_kernel kernel = sample.kernels[KERNEL_STEP];
    tir_artifact_variant variant = kernel.variants[0];
    variant.waits = waits;
    kernel.variants = &variant;
    tir_artifact_kernel kernels[4];
    memcpy(kernels, sample.kernels, sizeof kernels);
    kernels[KERNEL_STEP] = kernel;
    tir_artifact_desc desc = sample;
    desc.kernels = kernels;
    size_t size;
    tir_rt_module *module;
    uint8_t *bytes = rig_artifact(&desc, &size);
    rig_expect(rig, tir_rt_module_load(rig->device, bytes, size, &module, &rig->error), TIR_OK, "");
    free(bytes);
    return module;
}

// A step that does not wait is never early. One that waits at its end is only behind a step: called
// by its name it might begin before what the caller wants to come first.
static void test_waits(void **state)
{
    struct rig *rig = *state;
    struct buffers b;
    make_buffers(rig, &b, 1000);
    static const struct {
        uint32_t waits;
        bool in_sequence, alone;
    } cases[] = {{TIR_WAITS_NOT, false, false},
                 {TIR_WAITS_FIRST, true, true},
                 {TIR_WAITS_LAST, true, false}};
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tir_rt_module *module = waiting(rig, cases[i].waits);
        tir_rt_kernel *relay, *step;
        rig_expect(rig, tir_rt_module_kernel(module, TEXT("relay"), &relay, &rig->error), TIR_OK,
                   "");
        rig_expect(rig, tir_rt_module_kernel(module, TEXT("relay__step"), &step, &rig->error),
                   TIR_OK, "");
        rig_expect(rig, launch(rig, relay, &b, -1, NULL), TIR_OK, "");
        assert_int_equal(rig->fake->last.early, cases[i].in_sequence);
        tir_rt_launch_options overlap = TIR_RT_LAUNCH_OPTIONS_INIT;
        overlap.overlap = 1;
        rig_expect(rig, tir_rt_launch(relay, NULL, b.args, 2, &overlap, &rig->error), TIR_OK, "");
        assert_int_equal(rig->fake->last.early, cases[i].in_sequence);
        rig_expect(rig, tir_rt_launch(step, NULL, b.args, 2, &overlap, &rig->error), TIR_OK, "");
        assert_int_equal(rig->fake->last.early, cases[i].alone);
        tir_rt_module_destroy(module);
    }
    free_buffers(&b);
}

// Drivers that cannot capture early launches, or cannot start any, launch each step as it comes.
static void test_old_drivers(void **state)
{
    static const struct {
        int version;
        const char *missing;
        bool early;
    } drivers[] = {{12030, NULL, true}, {12020, NULL, false}, {12080, "cuLaunchKernelEx", false}};
    struct rig *rig = *state;
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
        struct buffers b;
        tir_rt_kernel *kernel;
        rig_close(rig);
        rig->fake->version = drivers[i].version;
        rig->fake->missing = drivers[i].missing;
        rig->fake->launches = 0;
        rig_expect(rig, rig_open(rig), TIR_OK, "");
        make_buffers(rig, &b, 1000);
        rig_expect(rig, tir_rt_module_kernel(rig->module, TEXT("relay"), &kernel, &rig->error),
                   TIR_OK, "");
        rig_expect(rig, launch(rig, kernel, &b, -1, NULL), TIR_OK, "");
        assert_int_equal(rig->fake->launches, 2);
        assert_int_equal(rig->fake->last.early, drivers[i].early);
        free_buffers(&b);
    }
}

// Captured, a sequence runs when the graph does, each time anew, on memory of the graph's own.
static void test_captured(void **state)
{
    struct rig *rig = *state;
    struct buffers b;
    tir_rt_stream *stream, *other;
    tir_rt_graph *graph;
    tir_rt_kernel *relay;
    make_buffers(rig, &b, 1000);
    const int memory = rig->fake->memory;
    rig_expect(rig, tir_rt_module_kernel(rig->module, TEXT("relay"), &relay, &rig->error), TIR_OK,
               "");
    rig_expect(rig, tir_rt_stream_create(rig->device, &stream, &rig->error), TIR_OK, "");
    rig_expect(rig, tir_rt_stream_create(rig->device, &other, &rig->error), TIR_OK, "");
    rig_expect(rig, tir_rt_capture_begin(stream, &rig->error), TIR_OK, "");
    rig_expect(rig, tir_rt_launch(relay, stream, b.args, 2, NULL, &rig->error), TIR_OK, "");
    assert_int_equal(rig->fake->launches, 0);
    rig_expect(rig, tir_rt_capture_end(stream, &graph, &rig->error), TIR_OK, "");
    assert_int_equal(rig->fake->memory, memory + 1);
    for (int round = 0; round < 3; round++) {
        memset(b.bytes, round, sizeof b.bytes);
        rig_expect(rig, tir_rt_buffer_write(b.x, 0, b.bytes, 1000, other, &rig->error), TIR_OK, "");
        rig_expect(rig, tir_rt_graph_launch(graph, other, &rig->error), TIR_OK, "");
        assert_int_equal(rig->fake->launches, 2 * (round + 1));
        rig_expect(rig, tir_rt_buffer_read(b.y, 0, b.back, 1000, other, &rig->error), TIR_OK, "");
        assert_memory_equal(b.bytes, b.back, 1000);
    }
    assert_true(rig->fake->last.early); // a step after the first, there too
    tir_rt_graph_destroy(graph);
    assert_int_equal(rig->fake->memory, memory);
    tir_rt_stream_destroy(stream);
    tir_rt_stream_destroy(other);
    free_buffers(&b);
}

struct waiting {
    struct rig *rig;
    tir_rt_stream *stream;
    tir_error error;
};

static void wait_for_stream(void *user)
{
    struct waiting *w = user;
    rig_expect(w->rig, tir_rt_stream_synchronize(w->stream, &w->rig->error), TIR_ERR_INVALID,
               "the stream is in capture");
}

// A call that waits is refused until the driver has ended the capture, which it would spoil.
static void test_end_of_capture(void **state)
{
    struct rig *rig = *state;
    struct waiting waiting = {.rig = rig};
    tir_rt_graph *graph;
    rig_expect(rig, tir_rt_stream_create(rig->device, &waiting.stream, &rig->error), TIR_OK, "");
    rig_expect(rig, tir_rt_capture_begin(waiting.stream, &rig->error), TIR_OK, "");
    rig->fake->at_end = wait_for_stream;
    rig->fake->at_end_user = &waiting;
    rig_expect(rig, tir_rt_capture_end(waiting.stream, &graph, &rig->error), TIR_OK, "");
    rig_expect(rig, tir_rt_stream_synchronize(waiting.stream, &rig->error), TIR_OK, "");
    tir_rt_graph_destroy(graph);
    tir_rt_stream_destroy(waiting.stream);
}

static void *wait_long(void *user)
{
    struct waiting *w = user;
    uint32_t done;
    (void)!tir_rt_stream_wait(w->rig->device, w->stream, 5000, &done, &w->error);
    return NULL;
}

// A wait that has begun before the capture asks the driver no more.
static void test_wait_before_capture(void **state)
{
    struct rig *rig = *state;
    struct waiting waiting = {.rig = rig};
    tir_rt_graph *graph;
    pthread_t thread;
    rig_expect(rig, tir_rt_stream_create(rig->device, &waiting.stream, &rig->error), TIR_OK, "");
    rig->fake->busy = INT_MAX;
    assert_int_equal(pthread_create(&thread, NULL, wait_long, &waiting), 0);
    while (rig->fake->busy == INT_MAX)
        sched_yield();
    rig_expect(rig, tir_rt_capture_begin(waiting.stream, &rig->error), TIR_OK, "");
    pthread_join(thread, NULL);
    rig->fake->busy = 0;
    assert_non_null(strstr(waiting.error.message, "the stream is in capture"));
    rig_expect(rig, tir_rt_capture_end(waiting.stream, &graph, &rig->error), TIR_OK, "");
    tir_rt_graph_destroy(graph);
    tir_rt_stream_destroy(waiting.stream);
}

static void test_empty(void **state)
{
    struct rig *rig = *state;
    struct buffers b;
    tir_rt_launch_report report;
    tir_rt_kernel *kernel;
    make_buffers(rig, &b, 0);
    rig_expect(rig, tir_rt_module_kernel(rig->module, TEXT("relay"), &kernel, &rig->error), TIR_OK,
               "");
    rig_expect(rig, launch(rig, kernel, &b, -1, &report), TIR_OK, "");
    assert_int_equal(report.launched, 0);
    assert_int_equal(rig->fake->launches, 0);
    assert_int_equal(rig->fake->pools, 0); // nothing asked for memory
    free_buffers(&b);
}

// A variant of cost 500 beside sequences of cost n and 2 n.
static void test_costs(void **state)
{
    struct rig *rig = *state;
    struct buffers b;
    tir_rt_launch_report report;
    tir_rt_module *module;
    tir_artifact_kernel kernel = *relay();
    tir_artifact_variant variant = sample.kernels[KERNEL_COPY].variants[0];
    tir_artifact_sequence sequences[2] = {kernel.sequences[0], kernel.sequences[0]};
    variant.cost = (tir_formula)FORMULA(CONST(500));
    sequences[0].cost = (tir_formula)FORMULA(DIM(0), CONST(2), DO(MUL));
    sequences[1].cost = (tir_formula)FORMULA(DIM(0));
    kernel.variants = &variant;
    kernel.variant_count = 1;
    kernel.sequences = sequences;
    kernel.sequence_count = 2;
    tir_rt_kernel *k = load_relay(rig, &kernel, &module);
    const struct {
        uint32_t size;
        int32_t wanted;
        uint32_t variant, launches;
    } cases[] = {{500, -1, 0, 1}, {499, -1, 2, 2}, {100, -1, 2, 2},
                 {100, 0, 0, 1},  {900, 1, 1, 2},  {900, 2, 2, 2}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        make_buffers(rig, &b, cases[i].size);
        rig->fake->launches = 0;
        rig_expect(rig, launch(rig, k, &b, cases[i].wanted, &report), TIR_OK, "");
        assert_int_equal(report.variant, cases[i].variant);
        assert_int_equal(rig->fake->launches, cases[i].launches);
        free_buffers(&b);
    }
    make_buffers(rig, &b, 10);
    rig_expect(rig, launch(rig, k, &b, 3, NULL), TIR_ERR_INVALID, "has no variant 3");
    free_buffers(&b);
    tir_rt_module_destroy(module);
}

// A sequence that does not fit, or gets no memory, leaves the launch to another; alone it is
// refused, and nothing has been launched.
static void test_misfits(void **state)
{
    struct rig *rig = *state;
    struct buffers b;
    tir_rt_launch_report report;
    tir_rt_module *module;
    tir_artifact_kernel kernel = *relay();
    tir_artifact_variant variant = sample.kernels[KERNEL_COPY].variants[0];
    tir_artifact_sequence sequence = kernel.sequences[0];
    tir_artifact_scratch scratch = sequence.scratch[0];
    variant.cost = (tir_formula)FORMULA(CONST(500));
    sequence.cost = (tir_formula)FORMULA(CONST(1));
    sequence.scratch = &scratch;
    kernel.sequences = &sequence;
    const struct {
        tir_formula extent;
        tir_status status;
        const char *message;
    } cases[] = {
        {FORMULA(DIM(0), CONST(11), DO(SUB)), TIR_ERR_INVALID, "dimension 0 of the scratch"},
        {FORMULA(DIM(0), CONST(1), DO(SUB)), TIR_ERR_INVALID, "dimension n"},
        {FORMULA(CONST(INT64_MAX)), TIR_ERR_NO_MEMORY, "more than 2^63 bits"},
        {FORMULA(CONST(INT64_MAX / 8)), TIR_ERR_NO_MEMORY, "OUT_OF_MEMORY"},
        {FORMULA(CONST(INT64_MAX), DIM(0), DO(MUL)), TIR_ERR_INVALID, "overflow"},
    };
    make_buffers(rig, &b, 10);
    for (size_t i = 0; i < COUNT(cases); i++) {
        scratch.extents[0] = cases[i].extent;
        kernel.variants = NULL;
        kernel.variant_count = 0;
        tir_rt_kernel *k = load_relay(rig, &kernel, &module);
        rig->fake->launches = 0;
        rig_expect(rig, launch(rig, k, &b, -1, NULL), cases[i].status, cases[i].message);
        assert_int_equal(rig->fake->launches, 0);
        tir_rt_module_destroy(module);
        kernel.variants = &variant;
        kernel.variant_count = 1;
        k = load_relay(rig, &kernel, &module);
        int memory = rig->fake->memory;
        rig_expect(rig, launch(rig, k, &b, -1, &report), TIR_OK, "");
        assert_int_equal(report.variant, 0);
        assert_int_equal(rig->fake->launches, 1);
        assert_int_equal(rig->fake->memory, memory);
        tir_rt_module_destroy(module);
    }
    free_buffers(&b);
}

// Behind one that does not fit: whichever call of the driver fails, the message is the status's.
static void test_failures(void **state)
{
    struct rig *rig = *state;
    struct buffers b;
    tir_rt_module *module;
    tir_artifact_kernel kernel = *relay();
    tir_artifact_sequence sequences[2] = {kernel.sequences[0], kernel.sequences[0]};
    tir_artifact_scratch scratch = sequences[0].scratch[0];
    scratch.extents[0] = (tir_formula)FORMULA(CONST(-1));
    sequences[0].scratch = &scratch;
    sequences[0].cost = (tir_formula)FORMULA(CONST(1));
    sequences[1].cost = (tir_formula)FORMULA(CONST(2));
    kernel.sequences = sequences;
    kernel.sequence_count = 2;
    tir_rt_kernel *k = load_relay(rig, &kernel, &module);
    make_buffers(rig, &b, 10);
    rig->fake->calls = 0;
    rig_expect(rig, launch(rig, k, &b, -1, NULL), TIR_OK, "");
    int launch_failed = 0;
    for (int call = 1, calls = rig->fake->calls; call <= calls; call++) {
        rig->fake->calls = 0;
        rig->fake->fail_at = call;
        rig->fake->fail_with = TIR_CUDA_ERROR_INVALID_VALUE;
        tir_status status = launch(rig, k, &b, -1, NULL);
        rig->fake->fail_at = 0;
        if (!status) // a call that gives something back
            continue;
        assert_int_equal(rig->error.status, status);
        launch_failed |= strstr(rig->error.message, "cuLaunchKernel") != NULL;
    }
    assert_true(launch_failed);
    free_buffers(&b);
    tir_rt_module_destroy(module);
}

static void test_no_pools(void **state)
{
    (void)state;
    struct rig rig = {.fake = rig_fake(FAKE_CUDA), .counting.countdown = -1};
    struct buffers b;
    tir_rt_kernel *kernel;
    rig.fake->missing = "cuMemAllocFromPoolAsync";
    assert_int_equal(rig_open(&rig), TIR_OK);
    make_buffers(&rig, &b, 10);
    rig_expect(&rig, tir_rt_module_kernel(rig.module, TEXT("relay"), &kernel, &rig.error), TIR_OK,
               "");
    rig_expect(&rig, launch(&rig, kernel, &b, -1, NULL), TIR_ERR_UNSUPPORTED, "no memory pools");
    free_buffers(&b);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_relay, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_given, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_early, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_waits, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_old_drivers, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_captured, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_end_of_capture, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_wait_before_capture, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_empty, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_costs, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_misfits, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_failures, rig_setup, rig_teardown),
        cmocka_unit_test(test_no_pools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
