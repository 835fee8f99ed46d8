// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The CUDA device on a fake driver: opening, memory, modules, streams, faults, threads.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "rig.h"

// ---- finding and opening

static void test_devices(void **state)
{
    struct rig *rig = *state;
    uint32_t count;
    tir_rt_device_info info;
    rig->fake->device_count = 2;
    rig_ok(rig, tir_runtime_device_count(rig->runtime, &count, &rig->error));
    assert_int_equal(count, 3);
    rig_ok(rig, tir_runtime_device_info(rig->runtime, 1, &info, &rig->error));
    assert_int_equal(info.kind, TIR_RT_CUDA);
    assert_string_equal(info.spec, "cuda:1");
    assert_string_equal(info.name, "Fake GPU 1");
    assert_string_equal(info.arch, "sm_90");
    assert_int_equal(info.sm_count, 5);
    assert_int_equal(info.max_shared, 232448);
    assert_int_equal(info.memory, 1 << 30);
    assert_int_equal(info.driver, 12080);
    rig_ok(rig, tir_runtime_device_info(rig->runtime, 2, &info, &rig->error));
    assert_string_equal(info.spec, "emu");
    rig_expect(rig, tir_runtime_device_info(rig->runtime, 3, &info, &rig->error), TIR_ERR_INVALID,
               "no device 3, only 3");
}

static void test_specs(void **state)
{
    struct rig *rig = *state;
    static const char *const bad[] = {"",        "cuda:", "cuda:x",    "cuda:1x",
                                      "cuda:-1", "gpu",   "cuda:12345"};
    tir_rt_device *device;
    rig->fake->device_count = 2;
    for (size_t i = 0; i < COUNT(bad); i++) {
        rig_expect(rig, tir_rt_device_open(rig->runtime, bad[i], &device, &rig->error),
                   TIR_ERR_INVALID, "is no device");
        assert_null(device);
    }
    rig_expect(rig, tir_rt_device_open(rig->runtime, "cuda:2", &device, &rig->error),
               TIR_ERR_INVALID, "no device cuda:2, only 2 GPUs");
    rig_ok(rig, tir_rt_device_open(rig->runtime, "cuda:1", &device, &rig->error));
    assert_int_equal(tir_rt_device_describe(device)->ordinal, 1);
    tir_rt_device_destroy(device);
    rig_ok(rig, tir_rt_device_open(rig->runtime, "auto", &device, &rig->error));
    assert_string_equal(tir_rt_device_describe(device)->spec, "cuda:0");
    tir_rt_device_destroy(device);
    assert_int_equal(rig->fake->contexts, 1);
}

static void expect_no_driver(struct rig *rig, const char *library, const char *part)
{
    tir_rt_device *device;
    uint32_t count;
    rig_ok(rig, rig_runtime(rig, library));
    rig_expect(rig, tir_rt_device_open(rig->runtime, "cuda", &device, &rig->error),
               TIR_ERR_NO_DRIVER, part);
    assert_int_equal(rig->error.status, TIR_ERR_NO_DRIVER);
    // Only the emulator is left.
    rig_ok(rig, tir_runtime_device_count(rig->runtime, &count, &rig->error));
    assert_int_equal(count, 1);
    rig_ok(rig, tir_rt_device_open(rig->runtime, "auto", &device, &rig->error));
    assert_string_equal(tir_rt_device_describe(device)->spec, "emu");
    assert_string_equal(tir_rt_device_describe(device)->arch, "");
    tir_rt_stream *stream;
    rig_expect(rig, tir_rt_stream_adopt(device, NULL, &stream, &rig->error), TIR_ERR_UNSUPPORTED,
               "device emu has no streams to adopt");
    tir_rt_device_destroy(device);
    tir_runtime_destroy(rig->runtime);
    assert_int_equal(rig->counting.live, 0);
}

static void test_no_driver(void **state)
{
    (void)state;
    struct rig rig = {.fake = rig_fake(FAKE_CUDA), .counting.countdown = -1};
    expect_no_driver(&rig, "./there-is-no-such-library.so", "no CUDA driver: ./there-is-no");
    rig.fake->missing = "cuMemAlloc";
    expect_no_driver(&rig, FAKE_CUDA, "it has no cuMemAlloc_v2");
    rig.fake->missing = NULL;
    rig.fake->device_count = 0;
    expect_no_driver(&rig, FAKE_CUDA, "finds no GPU");
    rig.fake->device_count = 1;
    rig.fake->version = 11080;
    expect_no_driver(&rig, FAKE_CUDA, "it has no cuGetErrorName");
    rig.fake->version = 12080;
    rig.fake->calls = 0;
    rig.fake->fail_at = 1;
    rig.fake->fail_with = TIR_CUDA_ERROR_NO_DEVICE;
    struct rig *r = &rig;
    tir_rt_device *device;
    rig_ok(r, rig_runtime(r, FAKE_CUDA));
    rig_expect(r, tir_rt_device_open(r->runtime, "cuda", &device, &r->error), TIR_ERR_NO_DRIVER,
               "cuInit: CUDA_ERROR_NO_DEVICE: the fake driver was told to");
    assert_int_equal(r->error.native, 100);
    tir_runtime_destroy(r->runtime);
}

// A driver without cuGetProcAddress, by its exported names.
static void test_old_driver(void **state)
{
    (void)state;
    struct rig rig = {.fake = rig_fake(FAKE_OLD_CUDA), .counting.countdown = -1}, *r = &rig;
    tir_rt_buffer *buffer;
    uint32_t word = 0x12345678, back = 0;
    rig_ok(r, rig_runtime(r, FAKE_OLD_CUDA));
    rig_ok(r, tir_rt_device_open(r->runtime, "cuda", &r->device, &r->error));
    rig_ok(r, tir_rt_buffer_create(r->device, 4, &buffer, &r->error));
    rig_ok(r, tir_rt_buffer_write(buffer, 0, &word, 4, NULL, &r->error));
    rig_ok(r, tir_rt_buffer_read(buffer, 0, &back, 4, NULL, &r->error));
    assert_int_equal(back, word);
    tir_rt_buffer_destroy(buffer);
    rig_close(r);
}

// With no library named, libcuda.so.1 is what the loader finds; the test's environment makes that
// the fake one.
static void test_default_library(void **state)
{
    (void)state;
    struct rig rig = {.fake = rig_fake(FAKE_CUDA), .counting.countdown = -1}, *r = &rig;
    rig_ok(r, rig_runtime(r, NULL));
    rig_ok(r, tir_rt_device_open(r->runtime, "cuda", &r->device, &r->error));
    assert_string_equal(tir_rt_device_describe(r->device)->name, "Fake GPU 0");
    rig_close(r);
}

static void test_options(void **state)
{
    (void)state;
    tir_runtime *runtime;
    tir_error error;
    tir_runtime_options options = TIR_RUNTIME_OPTIONS_INIT;
    options.struct_size = 0;
    assert_int_equal(tir_runtime_create(&options, &runtime, &error), TIR_ERR_INVALID);
    assert_null(runtime);
    options.struct_size = sizeof options + 64; // a caller that is newer than the library
    assert_int_equal(tir_runtime_create(&options, &runtime, &error), TIR_OK);
    tir_runtime_destroy(runtime);
    assert_int_equal(tir_runtime_create(NULL, &runtime, NULL), TIR_OK);
    tir_runtime_destroy(runtime);
}

static void test_destroy_null(void **state)
{
    (void)state;
    tir_rt_event_destroy(NULL);
    tir_rt_stream_destroy(NULL);
    tir_rt_buffer_destroy(NULL);
    tir_rt_module_destroy(NULL);
    tir_rt_device_destroy(NULL);
    tir_runtime_destroy(NULL);
    tir_artifact_free(NULL, NULL);
    tir_artifact_bytes_free(NULL, 0, NULL);
}

// ---- memory, streams, events

static void test_buffers(void **state)
{
    struct rig *rig = *state;
    tir_rt_buffer *a, *b, *empty;
    uint8_t bytes[64], back[64];
    for (int i = 0; i < 64; i++)
        bytes[i] = (uint8_t)(i * 7);
    rig_ok(rig, tir_rt_buffer_create(rig->device, 64, &a, &rig->error));
    rig_ok(rig, tir_rt_buffer_create(rig->device, 64, &b, &rig->error));
    rig_ok(rig, tir_rt_buffer_create(rig->device, 0, &empty, &rig->error));
    assert_int_equal(tir_rt_buffer_size(a), 64);
    assert_true(tir_rt_buffer_address(a) % 256 == 0 && tir_rt_buffer_address(a));
    assert_int_equal(tir_rt_buffer_address(empty), 0);
    rig_ok(rig, tir_rt_buffer_write(a, 0, bytes, 64, NULL, &rig->error));
    rig_ok(rig, tir_rt_buffer_fill(b, 0, 0xee, 64, NULL, &rig->error));
    rig_ok(rig, tir_rt_buffer_copy(b, 8, a, 16, 40, NULL, &rig->error));
    rig_ok(rig, tir_rt_buffer_read(b, 0, back, 64, NULL, &rig->error));
    assert_int_equal(back[7], 0xee);
    assert_memory_equal(back + 8, bytes + 16, 40);
    assert_int_equal(back[48], 0xee);
    rig_ok(rig, tir_rt_buffer_read(empty, 0, back, 0, NULL, &rig->error));
    rig_ok(rig, tir_rt_buffer_fill(a, 64, 0, 0, NULL, &rig->error));

    const char *part = "do not lie in a buffer of 64 bytes";
    rig_expect(rig, tir_rt_buffer_write(a, 1, bytes, 64, NULL, &rig->error), TIR_ERR_INVALID, part);
    rig_expect(rig, tir_rt_buffer_read(a, 65, back, 0, NULL, &rig->error), TIR_ERR_INVALID, part);
    rig_expect(rig, tir_rt_buffer_fill(a, 8, 0, UINT64_MAX - 4, NULL, &rig->error), TIR_ERR_INVALID,
               part);
    rig_expect(rig, tir_rt_buffer_copy(b, 0, a, 60, 5, NULL, &rig->error), TIR_ERR_INVALID, part);
    rig_expect(rig, tir_rt_buffer_copy(b, 60, a, 0, 5, NULL, &rig->error), TIR_ERR_INVALID, part);
    tir_rt_buffer_destroy(a);
    tir_rt_buffer_destroy(b);
    tir_rt_buffer_destroy(empty);
}

static void test_streams_and_events(void **state)
{
    struct rig *rig = *state;
    tir_rt_stream *stream, *adopted;
    tir_rt_event *start, *end;
    float ms;
    struct gemm_args g;
    rig_gemm_args(&g);
    rig_ok(rig, tir_rt_stream_create(rig->device, &stream, &rig->error));
    rig_ok(rig, tir_rt_stream_adopt(rig->device, (void *)(uintptr_t)0x40, &adopted, &rig->error));
    rig_ok(rig, tir_rt_event_create(rig->device, &start, &rig->error));
    rig_ok(rig, tir_rt_event_create(rig->device, &end, &rig->error));
    rig_expect(rig, tir_rt_event_elapsed(start, end, &ms, &rig->error), TIR_ERR_INVALID,
               "has not been recorded");
    rig_ok(rig, tir_rt_event_record(start, stream, &rig->error));
    rig_ok(rig, tir_rt_launch(rig->gemm, stream, g.args, 5, NULL, &rig->error));
    assert_non_null(rig->fake->last.stream);
    rig_ok(rig, tir_rt_event_record(end, stream, &rig->error));
    rig_ok(rig, tir_rt_event_elapsed(start, end, &ms, &rig->error));
    assert_true(ms == 1.5f);
    rig_ok(rig, tir_rt_launch(rig->gemm, adopted, g.args, 5, NULL, &rig->error));
    assert_ptr_equal(rig->fake->last.stream, (void *)(uintptr_t)0x40);
    rig_ok(rig, tir_rt_stream_synchronize(stream, &rig->error));
    rig_ok(rig, tir_rt_device_synchronize(rig->device, &rig->error));
    tir_rt_event_destroy(start);
    tir_rt_event_destroy(end);
    tir_rt_stream_destroy(stream);
    tir_rt_stream_destroy(adopted); // not the driver's stream behind it
}

static void test_objects_of_two_devices(void **state)
{
    struct rig *rig = *state;
    tir_rt_device *other;
    tir_rt_stream *stream;
    tir_rt_buffer *here, *there;
    struct gemm_args g;
    rig_gemm_args(&g);
    rig->fake->device_count = 2;
    rig_ok(rig, tir_rt_device_open(rig->runtime, "cuda:1", &other, &rig->error));
    rig_ok(rig, tir_rt_stream_create(other, &stream, &rig->error));
    rig_ok(rig, tir_rt_buffer_create(other, 8, &there, &rig->error));
    rig_ok(rig, tir_rt_buffer_create(rig->device, 8, &here, &rig->error));
    rig_expect(rig, tir_rt_launch(rig->gemm, stream, g.args, 5, NULL, &rig->error), TIR_ERR_INVALID,
               "stream belongs to another device");
    rig_expect(rig, tir_rt_buffer_fill(here, 0, 0, 8, stream, &rig->error), TIR_ERR_INVALID,
               "stream belongs to another device");
    rig_expect(rig, tir_rt_buffer_copy(here, 0, there, 0, 8, NULL, &rig->error), TIR_ERR_INVALID,
               "buffers belong to different devices");
    tir_rt_buffer_destroy(here);
    tir_rt_buffer_destroy(there);
    tir_rt_stream_destroy(stream);
    tir_rt_device_destroy(other);
}

// ---- living in somebody else's process

static void test_adopted_context(void **state)
{
    struct rig *rig = *state;
    tir_rt_device *owner, *device;
    tir_rt_buffer *buffer;
    rig->fake->device_count = 2;
    // The fake's context of device 1, made current here as a framework would have it.
    cu_result (*retain)(cu_context *, cu_device), (*push)(cu_context), (*current)(cu_context *),
        (*pop)(cu_context *);
    void *library = dlopen(FAKE_CUDA, RTLD_NOW);
#define LOOKUP(pointer, symbol)                       \
    do {                                              \
        void *address = dlsym(library, symbol);       \
        memcpy(&(pointer), &address, sizeof address); \
    } while (0)
    LOOKUP(retain, "cuDevicePrimaryCtxRetain");
    LOOKUP(push, "cuCtxPushCurrent_v2");
    LOOKUP(pop, "cuCtxPopCurrent_v2");
    LOOKUP(current, "cuCtxGetCurrent");
    cu_context context, now;
    rig_ok(rig, tir_rt_device_open(rig->runtime, "cuda:1", &owner, &rig->error));
    assert_int_equal(retain(&context, 1), 0);
    assert_int_equal(push(context), 0);
    rig_ok(rig, tir_rt_device_adopt(rig->runtime, context, &device, &rig->error));
    assert_string_equal(tir_rt_device_describe(device)->spec, "cuda:1");
    rig_ok(rig, tir_rt_buffer_create(device, 16, &buffer, &rig->error));
    // Work on another device leaves the caller's context current.
    rig_ok(rig, tir_rt_device_synchronize(rig->device, &rig->error));
    assert_int_equal(current(&now), 0);
    assert_ptr_equal(now, context);
    tir_rt_buffer_destroy(buffer);
    tir_rt_device_destroy(device);
    tir_rt_device_destroy(owner);
    assert_int_equal(rig->fake->contexts, 2); // the rig's and the caller's
    pop(&now);
    rig->fake->contexts--;
    rig_expect(rig, tir_rt_device_adopt(rig->runtime, NULL, &device, &rig->error), TIR_ERR_INVALID,
               "no context");
    dlclose(library);
}

// ---- modules

static tir_status load(struct rig *rig, const tir_artifact_desc *desc)
{
    size_t size;
    tir_rt_module *module;
    uint8_t *bytes = rig_artifact(desc, &size);
    tir_status status = tir_rt_module_load(rig->device, bytes, size, &module, &rig->error);
    free(bytes);
    if (!status)
        status = rig_load_all(rig, module);
    tir_rt_module_destroy(module);
    return status;
}

// Opens the device again, as another model of GPU.
static void change_gpu(struct rig *rig, int major, int minor)
{
    tir_rt_module_destroy(rig->module);
    rig->module = NULL;
    tir_rt_device_destroy(rig->device);
    rig->fake->major = major;
    rig->fake->minor = minor;
    rig_ok(rig, tir_rt_device_open(rig->runtime, "cuda", &rig->device, &rig->error));
    rig->fake->cubins = 0;
}

static void test_images(void **state)
{
    struct rig *rig = *state;
    static const struct {
        const char *target, *cubin_arch;
        int major, minor;
        const char *wrong; // NULL: it loads
        int cubins;        // whether the cubin was loaded
    } cases[] = {
        {"sm_80", "sm_90", 9, 0, NULL, 1},
        {"sm_80", "sm_90", 8, 0, NULL, 0},
        {"sm_80", "sm_90", 10, 0, NULL, 0},
        {"sm_80", "sm_80", 8, 6, NULL, 1},
        {"sm_86", "sm_86", 8, 0, "is for sm_86, the device is sm_80 (Fake GPU 0)", 0},
        {"sm_90a", "sm_90a", 9, 0, NULL, 1},
        {"sm_90a", "sm_90a", 10, 0, "is for sm_90a, the device is sm_100", 0},
        {"sm_100f", "", 10, 3, NULL, 0},
        {"sm_100f", "", 12, 0, "is for sm_100f, the device is sm_120", 0},
        {"sm_90", "", 8, 9, "is for sm_90, the device is sm_89", 0},
        {"ptx", "", 9, 0, "is for ptx", 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        tir_artifact_desc desc = sample;
        desc.target = (tir_str){cases[i].target, strlen(cases[i].target)};
        desc.cubin_arch = (tir_str){cases[i].cubin_arch, strlen(cases[i].cubin_arch)};
        if (!desc.cubin_arch.len)
            desc.cubin.len = 0;
        change_gpu(rig, cases[i].major, cases[i].minor);
        tir_status status = load(rig, &desc);
        rig_expect(rig, status, cases[i].wrong ? TIR_ERR_UNSUPPORTED : TIR_OK,
                   cases[i].wrong ? cases[i].wrong : "");
        assert_int_equal(rig->fake->cubins, cases[i].cubins);
    }
}

static void test_refused_code(void **state)
{
    struct rig *rig = *state;
    tir_artifact_desc ptx_only = sample;
    ptx_only.cubin.len = ptx_only.cubin_arch.len = 0;
    rig->fake->jit_error =
        "info : compiling\nptxas application ptx input, line 7; error: bad\nmore";
    rig_expect(rig, load(rig, &ptx_only), TIR_ERR_UNSUPPORTED,
               "gemm_fast: cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX");
    assert_non_null(
        strstr(rig->error.message, ": ptxas application ptx input, line 7; error: bad"));
    assert_null(strstr(rig->error.message, "more"));
    rig->fake->jit_error = "error: \033[31mno\r such\x7fopcode";
    rig_expect(rig, load(rig, &ptx_only), TIR_ERR_UNSUPPORTED, "error:  [31mno  such opcode");
    // A cubin that is refused leaves the PTX, and a cubin that works does without it.
    rig_ok(rig, load(rig, &sample));
    rig->fake->refuse_cubin = 1;
    rig_expect(rig, load(rig, &sample), TIR_ERR_UNSUPPORTED, "INVALID_PTX");
    rig->fake->jit_error = NULL;
    rig_ok(rig, load(rig, &sample));
    // An entry that the code lacks.
    ptx_only.ptx = TEXT(".version 7.8\n.visible .entry gemm_fast()\n{ ret; }\n");
    rig_expect(rig, load(rig, &ptx_only), TIR_ERR_INVALID,
               "gemm_wide: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND");
}

static void test_limits_of_the_gpu(void **state)
{
    struct rig *rig = *state;
    rig->fake->max_shared = 65536;
    change_gpu(rig, 9, 0);
    rig_expect(rig, load(rig, &sample), TIR_ERR_UNSUPPORTED,
               "gemm_fast needs 99328 bytes of shared memory, Fake GPU 0 has 65536");
    tir_rt_device_destroy(rig->device);
    tir_runtime_destroy(rig->runtime);
    rig->fake->max_shared = 232448;
    rig->fake->missing = "cuLaunchKernelEx";
    rig_ok(rig, rig_runtime(rig, FAKE_CUDA));
    rig_ok(rig, tir_rt_device_open(rig->runtime, "cuda", &rig->device, &rig->error));
    rig_expect(rig, load(rig, &sample), TIR_ERR_UNSUPPORTED, "gemm_fast uses clusters");
}

static void test_reflection(void **state)
{
    struct rig *rig = *state;
    tir_rt_kernel *kernel;
    tir_rt_usage usage;
    rig_expect(rig, tir_rt_module_kernel(rig->module, TEXT("gem"), &kernel, &rig->error),
               TIR_ERR_INVALID, "no kernel 'gem'; there are: gemm copy");
    assert_null(kernel);
    assert_int_equal(tir_rt_module_describe(rig->module)->kernel_count, 4);
    assert_int_equal(tir_rt_kernel_describe(rig->gemm)->param_count, 5);
    rig_ok(rig, tir_rt_kernel_usage(rig->gemm, 1, &usage, &rig->error));
    assert_int_equal(usage.registers, 128);
    assert_int_equal(usage.local_bytes, TIR_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    rig_expect(rig, tir_rt_kernel_usage(rig->gemm, 3, &usage, &rig->error), TIR_ERR_INVALID,
               "gemm has no variant 3");
    uint8_t junk[64] = "TIRA";
    tir_rt_module *module;
    rig_expect(rig, tir_rt_module_load(rig->device, junk, 64, &module, &rig->error),
               TIR_ERR_UNSUPPORTED, "version 0");
    rig_expect(rig, tir_rt_module_load(rig->device, "ELF", 3, &module, &rig->error),
               TIR_ERR_INVALID, "not an artifact");
}

// ---- faults

static void test_sticky_fault(void **state)
{
    struct rig *rig = *state;
    tir_rt_buffer *buffer;
    tir_rt_event *event;
    tir_rt_device *other;
    struct gemm_args g;
    uint8_t byte = 0;
    const char *first = "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS";
    rig_gemm_args(&g);
    rig_ok(rig, tir_rt_buffer_create(rig->device, 16, &buffer, &rig->error));
    rig_ok(rig, tir_rt_event_create(rig->device, &event, &rig->error));
    rig->fake->fault_after = 1;
    rig_ok(rig, tir_rt_launch(rig->gemm, NULL, g.args, 5, NULL, &rig->error));
    rig_expect(rig, tir_rt_device_synchronize(rig->device, NULL), TIR_ERR_DEVICE, "");
    int calls = rig->fake->calls;
#define EXPECT_FAULT(call)                            \
    do {                                              \
        rig->error = (tir_error){0};                  \
        rig_expect(rig, call, TIR_ERR_DEVICE, first); \
        assert_int_equal(rig->error.native, 700);     \
    } while (0)
    EXPECT_FAULT(tir_rt_device_synchronize(rig->device, &rig->error));
    EXPECT_FAULT(tir_rt_launch(rig->gemm, NULL, g.args, 5, NULL, &rig->error));
    EXPECT_FAULT(tir_rt_buffer_write(buffer, 0, &byte, 1, NULL, &rig->error));
    EXPECT_FAULT(tir_rt_buffer_read(buffer, 0, &byte, 1, NULL, &rig->error));
    EXPECT_FAULT(tir_rt_event_record(event, NULL, &rig->error));
    assert_int_equal(rig->fake->calls, calls); // the driver is not asked again
    // Another device is not concerned.
    rig->fake->sticky = 0;
    rig->fake->device_count = 2;
    rig_ok(rig, tir_rt_device_open(rig->runtime, "cuda:1", &other, &rig->error));
    rig_ok(rig, tir_rt_device_synchronize(other, &rig->error));
    tir_rt_device_destroy(other);
    tir_rt_event_destroy(event);
    tir_rt_buffer_destroy(buffer);
}

static void test_failures_that_pass(void **state)
{
    struct rig *rig = *state;
    tir_rt_buffer *buffer;
    rig->fake->calls = 0;
    rig->fake->fail_at = 3; // after asking for and pushing the context
    rig->fake->fail_with = TIR_CUDA_ERROR_OUT_OF_MEMORY;
    rig_expect(rig, tir_rt_buffer_create(rig->device, 16, &buffer, &rig->error), TIR_ERR_NO_MEMORY,
               "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY");
    assert_null(buffer);
    rig->fake->fail_at = 0;
    rig_ok(rig, tir_rt_buffer_create(rig->device, 16, &buffer, &rig->error));
    tir_rt_buffer_destroy(buffer);
}

// ---- PTX of any origin

static void test_ptx(void **state)
{
    struct rig *rig = *state;
    tir_rt_module *module;
    static const char text[] = ".version 8.0\n  .target sm_90, debug\n.entry mine() { ret; }";
    const uint32_t params[] = {1, 2, 3};
    rig_ok(rig, tir_rt_module_load_ptx(rig->device, (tir_str){text, sizeof text - 1}, &module,
                                       &rig->error));
    assert_string_equal(tir_rt_module_describe(module)->target.ptr, "sm_90");
    tir_rt_ptx_launch launch = TIR_RT_PTX_LAUNCH_INIT;
    launch = (tir_rt_ptx_launch){sizeof launch, {8, 4, 2}, {32, 2, 3},   {4, 2, 1},
                                 100000,        params,    sizeof params};
    rig_ok(rig, tir_rt_launch_ptx(module, NULL, "mine", &launch, &rig->error));
    const struct fake_launch *last = &rig->fake->last;
    assert_string_equal(last->function, "mine");
    assert_memory_equal(last->grid, launch.grid, sizeof launch.grid);
    assert_memory_equal(last->block, launch.block, sizeof launch.block);
    assert_memory_equal(last->cluster, launch.cluster, sizeof launch.cluster);
    assert_int_equal(last->shared_bytes, 100000);
    assert_int_equal(rig->fake->max_dynamic_shared, 100000);
    assert_int_equal(last->params_size, sizeof params);
    assert_memory_equal(last->params, params, sizeof params);
    size_t offset, size;
    rig_ok(rig, tir_rt_ptx_param(module, "mine", 2, &offset, &size, &rig->error));
    assert_int_equal(offset, 128);
    assert_int_equal(size, 128);
    rig_expect(rig, tir_rt_ptx_param(module, "mine", 3, &offset, &size, &rig->error),
               TIR_ERR_INVALID, "cuFuncGetParamInfo");
    launch.cluster[2] = 0;
    rig_expect(rig, tir_rt_launch_ptx(module, NULL, "mine", &launch, &rig->error), TIR_ERR_INVALID,
               "not made of clusters of 4 x 2 x 0");
    launch.cluster[0] = launch.cluster[1] = launch.grid[2] = 0;
    rig_expect(rig, tir_rt_launch_ptx(module, NULL, "mine", &launch, &rig->error), TIR_ERR_INVALID,
               "a grid of 8 x 4 x 0 CTAs");
    launch.struct_size = 8;
    rig_expect(rig, tir_rt_launch_ptx(module, NULL, "mine", &launch, &rig->error), TIR_ERR_INVALID,
               "struct_size");
    tir_rt_module_destroy(module);
    static const char newer[] = ".target sm_100a\n";
    rig_expect(rig,
               tir_rt_module_load_ptx(rig->device, (tir_str){newer, sizeof newer - 1}, &module,
                                      &rig->error),
               TIR_ERR_UNSUPPORTED, "is for sm_100a, the device is sm_90");
    assert_null(module);
    rig->fake->jit_error = "line 1: error : no such opcode";
    rig_expect(
        rig,
        tir_rt_module_load_ptx(rig->device, (tir_str){text, sizeof text - 1}, &module, &rig->error),
        TIR_ERR_UNSUPPORTED, "no such opcode");
    assert_null(module);
}

// ---- threads

enum { THREADS = 4, ROUNDS = 200 };

struct worker {
    struct rig *rig;
    uint8_t seed;
    bool good;
};

static void *work(void *user)
{
    struct worker *w = user;
    tir_rt_buffer *x, *y;
    tir_rt_stream *stream;
    uint8_t bytes[256], back[256];
    if (tir_rt_buffer_create(w->rig->device, 256, &x, NULL) ||
        tir_rt_buffer_create(w->rig->device, 256, &y, NULL) ||
        tir_rt_stream_create(w->rig->device, &stream, NULL))
        return NULL;
    w->good = true;
    for (int round = 0; round < ROUNDS && w->good; round++) {
        int64_t n = 1 + round % 8; // as in launches of other threads, some at the same time
        memset(bytes, w->seed + round, sizeof bytes);
        tir_rt_arg args[2] = {
            tir_rt_arg_tensor(tir_rt_buffer_address(x), TIR_ELEMENT_U8, 1, &n, NULL),
            tir_rt_arg_tensor(tir_rt_buffer_address(y), TIR_ELEMENT_U8, 1, &n, NULL),
        };
        w->good = !tir_rt_buffer_write(x, 0, bytes, 256, stream, NULL) &&
                  !tir_rt_launch(w->rig->copy, stream, args, 2, NULL, NULL) &&
                  !tir_rt_buffer_read(y, 0, back, 256, stream, NULL) &&
                  memcmp(bytes, back, (size_t)n) == 0;
    }
    tir_rt_stream_destroy(stream);
    tir_rt_buffer_destroy(x);
    tir_rt_buffer_destroy(y);
    return NULL;
}

static void test_threads(void **state)
{
    struct rig *rig = *state;
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    rig->fake->fault_after = UINT32_MAX; // never; and nobody looks at the last launch
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.rig = rig, .seed = (uint8_t)(i * 50)};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(workers[i].good);
    }
    assert_int_equal(rig->fake->launches, THREADS * ROUNDS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_devices),
        TEST(test_specs),
        cmocka_unit_test(test_no_driver),
        cmocka_unit_test(test_old_driver),
        cmocka_unit_test(test_default_library),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_destroy_null),
        TEST(test_buffers),
        TEST(test_streams_and_events),
        TEST(test_objects_of_two_devices),
        TEST(test_adopted_context),
        TEST(test_images),
        TEST(test_refused_code),
        TEST(test_limits_of_the_gpu),
        TEST(test_reflection),
        TEST(test_sticky_fault),
        TEST(test_failures_that_pass),
        TEST(test_ptx),
        TEST(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
