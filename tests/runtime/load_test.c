// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loading: a variant's code is assembled when something first needs it, and once.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "rig.h"

// The sample without its cubin.
static tir_artifact_desc ptx_only(void)
{
    tir_artifact_desc desc = sample;
    desc.cubin.len = desc.cubin_arch.len = 0;
    return desc;
}

// Loads this in the place of the rig's module.
static void load(struct rig *rig, const tir_artifact_desc *desc)
{
    size_t size;
    uint8_t *bytes = rig_artifact(desc, &size);
    tir_rt_module_destroy(rig->module);
    rig->module = NULL;
    rig->fake->assembled = rig->fake->cubins = 0;
    rig_ok(rig, tir_rt_module_load(rig->device, bytes, size, &rig->module, &rig->error));
    free(bytes);
    rig_ok(rig, tir_rt_module_kernel(rig->module, TEXT("gemm"), &rig->gemm, &rig->error));
    rig_ok(rig, tir_rt_module_kernel(rig->module, TEXT("copy"), &rig->copy, &rig->error));
}

static tir_status launch_variant(struct rig *rig, int32_t variant)
{
    struct gemm_args g;
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    rig_gemm_args(&g);
    options.variant = variant;
    return tir_rt_launch(rig->gemm, NULL, g.args, 5, &options, &rig->error);
}

static void test_first_launch(void **state)
{
    struct rig *rig = *state;
    const tir_artifact_desc desc = ptx_only();
    tir_rt_usage usage;
    load(rig, &desc);
    assert_int_equal(rig->fake->assembled, 0);
    rig_ok(rig, launch_variant(rig, -1));
    assert_int_equal(rig->fake->assembled, 1);
    assert_string_equal(rig->fake->last.function, "gemm_fast");
    assert_string_equal(rig->fake->assembled_last, ".version 7.8\n.target sm_80\n.address_size 64\n"
                                                   ".visible .entry gemm_fast()\n{ ret; }\n");
    rig_ok(rig, launch_variant(rig, -1));
    assert_int_equal(rig->fake->assembled, 1);
    rig_ok(rig, launch_variant(rig, VARIANT_ANY));
    assert_int_equal(rig->fake->assembled, 2);
    assert_non_null(strstr(rig->fake->assembled_last, "gemm_any"));
    assert_null(strstr(rig->fake->assembled_last, "gemm_fast"));
    rig_ok(rig, tir_rt_kernel_usage(rig->gemm, VARIANT_WIDE, &usage, &rig->error));
    rig_ok(rig, tir_rt_kernel_usage(rig->gemm, VARIANT_ANY, &usage, &rig->error));
    assert_int_equal(rig->fake->assembled, 3);
}

// An entry that is launched by its name is the variant's.
static void test_by_entry(void **state)
{
    struct rig *rig = *state;
    const tir_artifact_desc desc = ptx_only();
    tir_rt_ptx_launch launch = TIR_RT_PTX_LAUNCH_INIT;
    load(rig, &desc);
    rig_ok(rig, tir_rt_launch_ptx(rig->module, NULL, "gemm_any", &launch, &rig->error));
    rig_ok(rig, launch_variant(rig, VARIANT_ANY));
    assert_int_equal(rig->fake->assembled, 1);
    rig_expect(rig, tir_rt_launch_ptx(rig->module, NULL, "gemm", &launch, &rig->error), TIR_OK, "");
    assert_int_equal(rig->fake->assembled, 2); // no variant's: the whole
}

// A cubin is loaded whole, and so is PTX that cannot be divided; each once.
static void test_whole(void **state)
{
    struct rig *rig = *state;
    tir_artifact_desc desc = ptx_only();
    load(rig, &sample);
    rig_ok(rig, rig_load_all(rig, rig->module));
    assert_int_equal(rig->fake->cubins, 1);
    assert_int_equal(rig->fake->assembled, 0);
    desc.ptx = TEXT(".version 7.8\n.target sm_80\n.entry gemm_fast() {}\n.entry gemm_wide() {}\n"
                    ".entry gemm_any() {}\n.entry copy() {}\n.section .debug_info { }\n");
    load(rig, &desc);
    rig_ok(rig, rig_load_all(rig, rig->module));
    assert_int_equal(rig->fake->assembled, 1);
    assert_string_equal(rig->fake->assembled_last, desc.ptx.ptr);
}

// A load reads neither the PTX nor the receipt: who needs them hears of damage.
static void test_damaged(void **state)
{
    struct rig *rig = *state;
    tir_artifact_desc desc = ptx_only();
    size_t size;
    uint8_t *bytes = rig_artifact(&desc, &size);
    load(rig, &desc);
    assert_int_equal(tir_rt_module_describe(rig->module)->ptx.len, 0);
    assert_string_equal(tir_rt_module_describe(rig->module)->receipt.ptr, desc.receipt.ptr);
    tir_rt_module_destroy(rig->module);

    uint64_t at[2]; // of the PTX and the receipt
    memcpy(&at[0], bytes + 24 + 24 * 2 + 8, 8);
    memcpy(&at[1], bytes + 24 + 24 * 4 + 8, 8);
    assert_memory_equal(bytes + at[0], ".version", 8);
    assert_memory_equal(bytes + at[1], "gemm", 4);
    bytes[at[0]] = bytes[at[1]] = 0;
    rig_ok(rig, tir_rt_module_load(rig->device, bytes, size, &rig->module, &rig->error));
    rig_ok(rig, tir_rt_module_kernel(rig->module, TEXT("gemm"), &rig->gemm, &rig->error));
    for (int i = 0; i < 2; i++) {
        rig_expect(rig, launch_variant(rig, VARIANT_FAST), TIR_ERR_INVALID,
                   "the artifact is damaged: a part of the PTX cannot be decompressed");
        assert_int_equal(tir_rt_module_describe(rig->module)->receipt.len, 0);
    }
    const tir_artifact_desc *whole;
    assert_int_equal(tir_artifact_decode(bytes, size, NULL, &whole, NULL), TIR_ERR_INVALID);
    free(bytes);
}

// The launch that needs the code hears why it cannot be loaded, each time; others do not.
static void test_refused(void **state)
{
    struct rig *rig = *state;
    const tir_artifact_desc desc = ptx_only();
    load(rig, &desc);
    rig_ok(rig, launch_variant(rig, VARIANT_ANY));
    rig->fake->jit_error = "ptxas application ptx input, line 7; error: bad";
    for (int i = 0; i < 2; i++) {
        rig_expect(rig, launch_variant(rig, VARIANT_FAST), TIR_ERR_UNSUPPORTED,
                   "gemm_fast: cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX");
        assert_non_null(strstr(rig->error.message, "line 7; error: bad"));
        assert_int_equal(rig->error.native, TIR_CUDA_ERROR_INVALID_PTX);
    }
    rig_ok(rig, launch_variant(rig, VARIANT_ANY));
    rig->fake->jit_error = NULL;
    rig_ok(rig, launch_variant(rig, VARIANT_FAST));
    assert_int_equal(rig->fake->assembled, 2);
}

// The sample's kernel of several steps, and what it takes.
struct relay {
    tir_rt_kernel *kernel;
    tir_rt_buffer *x, *y;
};

static void relay_open(struct rig *rig, struct relay *r)
{
    rig_ok(rig, tir_rt_module_kernel(rig->module, TEXT("relay"), &r->kernel, &rig->error));
    rig_ok(rig, tir_rt_buffer_create(rig->device, 64, &r->x, &rig->error));
    rig_ok(rig, tir_rt_buffer_create(rig->device, 64, &r->y, &rig->error));
}

static tir_status relay_launch(const struct relay *r, tir_error *error)
{
    const int64_t n = 64;
    const tir_rt_arg args[] = {
        tir_rt_arg_tensor(tir_rt_buffer_address(r->x), TIR_ELEMENT_U8, 1, &n, NULL),
        tir_rt_arg_tensor(tir_rt_buffer_address(r->y), TIR_ELEMENT_U8, 1, &n, NULL)};
    return tir_rt_launch(r->kernel, NULL, args, 2, NULL, error);
}

static void relay_close(struct relay *r)
{
    tir_rt_buffer_destroy(r->x);
    tir_rt_buffer_destroy(r->y);
}

// Steps of a sequence are loaded before the first of them runs, and a refusal is not taken for a
// sequence that does not fit.
static void test_refused_step(void **state)
{
    struct rig *rig = *state;
    const tir_artifact_desc desc = ptx_only();
    struct relay relay;
    load(rig, &desc);
    relay_open(rig, &relay);
    rig->fake->jit_error = "error: bad";
    rig_expect(rig, relay_launch(&relay, &rig->error), TIR_ERR_UNSUPPORTED,
               "copy: cuModuleLoadDataEx");
    assert_int_equal(rig->fake->launches, 0);
    rig->fake->jit_error = NULL;
    // Nothing of it is forbidden while a graph is being captured, not even the pool.
    rig->fake->capturing = 1;
    rig_ok(rig, relay_launch(&relay, &rig->error));
    assert_int_equal(rig->fake->launches, 2);
    rig->fake->capturing = 0;
    relay_close(&relay);
}

static void test_capture(void **state)
{
    struct rig *rig = *state;
    const tir_artifact_desc desc = ptx_only();
    tir_rt_buffer *buffer;
    load(rig, &desc);
    rig->fake->capturing = 1;
    rig_ok(rig, launch_variant(rig, VARIANT_FAST));
    rig_ok(rig, launch_variant(rig, VARIANT_ANY));
    // The thread's mode is as it was.
    rig_expect(rig, tir_rt_buffer_create(rig->device, 16, &buffer, &rig->error),
               TIR_ERR_UNSUPPORTED, "cuMemAlloc: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED");
    rig->fake->jit_error = "error: bad";
    assert_int_equal(launch_variant(rig, VARIANT_WIDE), TIR_ERR_UNSUPPORTED);
    rig_expect(rig, tir_rt_buffer_create(rig->device, 16, &buffer, &rig->error),
               TIR_ERR_UNSUPPORTED, "CAPTURE_UNSUPPORTED");
    rig->fake->jit_error = NULL;
    rig->fake->capturing = 0;
}

// ---- threads

enum { THREADS = 8 };

struct worker {
    struct rig *rig;
    int32_t variant;
    atomic_int *waiting;
    tir_status status;
};

static void *work(void *user)
{
    struct worker *w = user;
    struct gemm_args g;
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    rig_gemm_args(&g);
    options.variant = w->variant;
    atomic_fetch_add(w->waiting, 1);
    w->status = tir_rt_launch(w->rig->gemm, NULL, g.args, 5, &options, NULL);
    atomic_fetch_sub(w->waiting, 1);
    return NULL;
}

static void test_threads(void **state)
{
    struct rig *rig = *state;
    const tir_artifact_desc desc = ptx_only();
    const struct timespec pause = {0, 5000000};
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    atomic_int waiting = 0;
    rig->fake->fault_after = UINT32_MAX; // never; and nobody looks at the last launch
    load(rig, &desc);
    rig_ok(rig, launch_variant(rig, VARIANT_ANY));
    rig->fake->hold = 1;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){rig, VARIANT_FAST, &waiting, TIR_ERR_INTERNAL};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    while (waiting < THREADS)
        nanosleep(&pause, NULL);
    nanosleep(&pause, NULL);
    // While one of them loads, a variant that is loaded can be launched.
    rig_ok(rig, launch_variant(rig, VARIANT_ANY));
    assert_int_equal(waiting, THREADS);
    rig->fake->hold = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].status, TIR_OK);
    }
    assert_int_equal(rig->fake->assembled, 2);
    assert_int_equal(rig->fake->launches, THREADS + 2);
}

// ---- ahead

static void test_prepare_all(void **state)
{
    struct rig *rig = *state;
    const tir_artifact_desc desc = ptx_only();
    load(rig, &desc);
    rig_ok(rig, tir_rt_module_prepare(rig->module, NULL, 0, 3, &rig->error));
    assert_int_equal(rig->fake->assembled, 5); // three of gemm, copy, and the step
    rig_ok(rig, tir_rt_module_prepare(rig->module, NULL, 0, 0, &rig->error));
    rig_ok(rig, rig_load_all(rig, rig->module));
    assert_int_equal(rig->fake->assembled, 5);
    load(rig, &sample);
    rig_ok(rig, tir_rt_module_prepare(rig->module, NULL, 0, 1, &rig->error));
    assert_int_equal(rig->fake->cubins, 1);
}

// Several are loaded at a time: with as many threads as variants all wait for the driver at once.
static void *prepare(void *user)
{
    struct worker *w = user;
    w->status = tir_rt_module_prepare(w->rig->module, NULL, 0, 5, NULL);
    return NULL;
}

static void test_prepare_side_by_side(void **state)
{
    struct rig *rig = *state;
    const tir_artifact_desc desc = ptx_only();
    const struct timespec pause = {0, 1000000};
    struct worker w = {.rig = rig};
    pthread_t thread;
    load(rig, &desc);
    rig->fake->hold = 1;
    assert_int_equal(pthread_create(&thread, NULL, prepare, &w), 0);
    while (rig->fake->holding < 5)
        nanosleep(&pause, NULL);
    rig->fake->hold = 0;
    pthread_join(thread, NULL);
    assert_int_equal(w.status, TIR_OK);
    assert_int_equal(rig->fake->assembled, 5);
}

static void test_prepare_launches(void **state)
{
    struct rig *rig = *state;
    const tir_artifact_desc desc = ptx_only();
    const int64_t n = 64;
    struct gemm_args fast, tuned, any;
    int64_t strides[2] = {1, 256};
    tir_rt_kernel *relay;
    load(rig, &desc);
    rig_ok(rig, tir_rt_module_kernel(rig->module, TEXT("relay"), &relay, &rig->error));
    rig_gemm_args(&fast);
    rig_gemm_args(&tuned);
    rig_gemm_args(&any);
    tuned.a[1] = tuned.b[2] = 64;
    any.args[PARAM_A].as.tensor.strides = strides;
    const tir_rt_arg copied[] = {tir_rt_arg_tensor(256, TIR_ELEMENT_U8, 1, &n, NULL),
                                 tir_rt_arg_tensor(512, TIR_ELEMENT_U8, 1, &n, NULL)};
    const tir_rt_prepare launches[] = {{rig->gemm, fast.args, 5},
                                       {rig->gemm, any.args, 5},
                                       {rig->gemm, fast.args, 5},
                                       {relay, copied, 2},
                                       {rig->gemm, tuned.args, 5}};
    rig_ok(rig, tir_rt_module_prepare(rig->module, launches, 1, 0, &rig->error));
    assert_int_equal(rig->fake->assembled, 1);
    assert_non_null(strstr(rig->fake->assembled_last, "gemm_fast"));
    rig_ok(rig, tir_rt_module_prepare(rig->module, launches, 3, 2, &rig->error));
    assert_int_equal(rig->fake->assembled, 2);
    assert_non_null(strstr(rig->fake->assembled_last, "gemm_any"));
    rig_ok(rig, tir_rt_module_prepare(rig->module, launches, 4, 2, &rig->error));
    assert_int_equal(rig->fake->assembled, 3); // both steps of relay are one kernel
    rig_ok(rig, tir_rt_module_prepare(rig->module, launches, 5, 2, &rig->error));
    assert_int_equal(rig->fake->assembled, 4); // what was measured to be the fastest
    assert_non_null(strstr(rig->fake->assembled_last, "gemm_wide"));
    // Nothing is left for the launches.
    assert_int_equal(rig->fake->launches, 0);
    for (int i = 0; i < 3; i++)
        rig_ok(rig, tir_rt_launch(rig->gemm, NULL, launches[(int[]){0, 1, 4}[i]].args, 5, NULL,
                                  &rig->error));
    assert_int_equal(rig->fake->assembled, 4);
}

static void test_prepare_refusals(void **state)
{
    struct rig *rig = *state;
    const tir_artifact_desc desc = ptx_only();
    struct gemm_args g;
    size_t size;
    tir_rt_module *other;
    uint8_t *bytes = rig_artifact(&desc, &size);
    load(rig, &desc);
    rig_gemm_args(&g);
    g.a[1] = 100;
    const tir_rt_prepare wrong = {rig->gemm, g.args, 5};
    rig_expect(rig, tir_rt_module_prepare(rig->module, &wrong, 1, 0, &rig->error), TIR_ERR_INVALID,
               "dimension K: A has 100, B has 128");
    rig_ok(rig, tir_rt_module_load(rig->device, bytes, size, &other, &rig->error));
    rig_expect(rig, tir_rt_module_prepare(other, &wrong, 1, 0, &rig->error), TIR_ERR_INVALID,
               "another module");
    tir_rt_module_destroy(other);
    free(bytes);
    rig->fake->jit_error = "error: bad";
    rig_expect(rig, tir_rt_module_prepare(rig->module, NULL, 0, 2, &rig->error),
               TIR_ERR_UNSUPPORTED, "gemm_fast: cuModuleLoadDataEx");
    rig->fake->jit_error = NULL;
    rig_ok(rig, tir_rt_module_prepare(rig->module, NULL, 0, 2, &rig->error));
}

// ---- errors

// A call that succeeds does not touch the caller's error, whatever it tried on the way.
static void test_untouched_error(void **state)
{
    struct rig *rig = *state;
    struct relay relay;
    tir_rt_device *device;
    uint32_t count;
    tir_error error, before;
    memset(&before, 0x5a, sizeof before);
    error = before;
    relay_open(rig, &relay);
    assert_int_equal(relay_launch(&relay, &error), TIR_OK);
    assert_memory_equal(&error, &before, sizeof error); // no variant fits, but the sequence does
    relay_close(&relay);
    // A cubin that is refused leaves the PTX.
    size_t size;
    tir_rt_module *module;
    uint8_t *bytes = rig_artifact(&sample, &size);
    rig->fake->refuse_cubin = 1;
    assert_int_equal(tir_rt_module_load(rig->device, bytes, size, &module, &error), TIR_OK);
    assert_memory_equal(&error, &before, sizeof error);
    tir_rt_module_destroy(module);
    free(bytes);
    // Without a GPU there is the emulator.
    struct rig other = {.fake = rig->fake, .counting.countdown = -1};
    rig_ok(&other, rig_runtime(&other, "./there-is-no-such-library.so"));
    assert_int_equal(tir_runtime_device_count(other.runtime, &count, &error), TIR_OK);
    assert_int_equal(tir_rt_device_open(other.runtime, "auto", &device, &error), TIR_OK);
    assert_memory_equal(&error, &before, sizeof error);
    tir_rt_device_destroy(device);
    tir_runtime_destroy(other.runtime);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_first_launch),
        TEST(test_by_entry),
        TEST(test_whole),
        TEST(test_damaged),
        TEST(test_refused),
        TEST(test_refused_step),
        TEST(test_capture),
        TEST(test_threads),
        TEST(test_prepare_all),
        TEST(test_prepare_side_by_side),
        TEST(test_prepare_launches),
        TEST(test_prepare_refusals),
        TEST(test_untouched_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
