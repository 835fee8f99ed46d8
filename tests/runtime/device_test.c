// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One device, for real: PTX written by hand, launched, and its results looked at. The device is the
// first argument; exit status 77 says that this machine does not have it.

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

#include "sample.h"
#include "tir/runtime.h"

// axpy(X: f32[n], Y: f32[n], Z: out f32[n], a: f32): Z = a * X + Y, in two variants. The first
// relies on unit strides.
// reverse(X: inout u32[n]) where n <= 16384: through dynamic shared memory beyond 48 KiB.
// poke(X: out u32[n], at: i64): X[at] = 7, unchecked.
static const char ptx[] =
    ".version 7.8\n"
    ".target sm_80\n"
    ".address_size 64\n"
    ".extern .shared .align 16 .b8 smem[];\n"
    "\n"
    ".visible .entry axpy_unit(\n"
    "    .param .u64 X, .param .u64 X0, .param .u64 Y, .param .u64 Y0, .param .u64 Z,\n"
    "    .param .u64 Z0, .param .f32 a, .param .u64 n)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %r<4>;\n"
    "    .reg .b64 %rd<8>;\n"
    "    .reg .f32 %f<4>;\n"
    "    mov.u32 %r0, %ctaid.x;\n"
    "    mov.u32 %r1, %ntid.x;\n"
    "    mov.u32 %r2, %tid.x;\n"
    "    mad.lo.s32 %r3, %r0, %r1, %r2;\n"
    "    cvt.s64.s32 %rd0, %r3;\n"
    "    ld.param.u64 %rd1, [n];\n"
    "    setp.ge.s64 %p, %rd0, %rd1;\n"
    "    @%p bra DONE;\n"
    "    shl.b64 %rd2, %rd0, 2;\n"
    "    ld.param.u64 %rd3, [X];\n"
    "    ld.param.u64 %rd4, [Y];\n"
    "    ld.param.u64 %rd5, [Z];\n"
    "    add.s64 %rd3, %rd3, %rd2;\n"
    "    add.s64 %rd4, %rd4, %rd2;\n"
    "    add.s64 %rd5, %rd5, %rd2;\n"
    "    ld.global.f32 %f0, [%rd3];\n"
    "    ld.global.f32 %f1, [%rd4];\n"
    "    ld.param.f32 %f2, [a];\n"
    "    fma.rn.f32 %f3, %f0, %f2, %f1;\n"
    "    st.global.f32 [%rd5], %f3;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n"
    "\n"
    ".visible .entry axpy_any(\n"
    "    .param .u64 X, .param .u64 X0, .param .u64 Y, .param .u64 Y0, .param .u64 Z,\n"
    "    .param .u64 Z0, .param .f32 a, .param .u64 n)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %r<4>;\n"
    "    .reg .b64 %rd<8>;\n"
    "    .reg .f32 %f<4>;\n"
    "    mov.u32 %r0, %ctaid.x;\n"
    "    mov.u32 %r1, %ntid.x;\n"
    "    mov.u32 %r2, %tid.x;\n"
    "    mad.lo.s32 %r3, %r0, %r1, %r2;\n"
    "    cvt.s64.s32 %rd0, %r3;\n"
    "    ld.param.u64 %rd1, [n];\n"
    "    setp.ge.s64 %p, %rd0, %rd1;\n"
    "    @%p bra DONE;\n"
    "    ld.param.u64 %rd3, [X];\n"
    "    ld.param.u64 %rd2, [X0];\n"
    "    mul.lo.s64 %rd2, %rd2, %rd0;\n"
    "    shl.b64 %rd2, %rd2, 2;\n"
    "    add.s64 %rd3, %rd3, %rd2;\n"
    "    ld.param.u64 %rd4, [Y];\n"
    "    ld.param.u64 %rd2, [Y0];\n"
    "    mul.lo.s64 %rd2, %rd2, %rd0;\n"
    "    shl.b64 %rd2, %rd2, 2;\n"
    "    add.s64 %rd4, %rd4, %rd2;\n"
    "    ld.param.u64 %rd5, [Z];\n"
    "    ld.param.u64 %rd2, [Z0];\n"
    "    mul.lo.s64 %rd2, %rd2, %rd0;\n"
    "    shl.b64 %rd2, %rd2, 2;\n"
    "    add.s64 %rd5, %rd5, %rd2;\n"
    "    ld.global.f32 %f0, [%rd3];\n"
    "    ld.global.f32 %f1, [%rd4];\n"
    "    ld.param.f32 %f2, [a];\n"
    "    fma.rn.f32 %f3, %f0, %f2, %f1;\n"
    "    st.global.f32 [%rd5], %f3;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n"
    "\n"
    ".visible .entry reverse(.param .u64 X, .param .u64 X0, .param .u64 n)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %r<6>;\n"
    "    .reg .b64 %rd<8>;\n"
    "    mov.u32 %r0, %tid.x;\n"
    "    mov.u32 %r1, %ntid.x;\n"
    "    ld.param.u64 %rd0, [X];\n"
    "    ld.param.u64 %rd1, [n];\n"
    "    mov.u64 %rd2, smem;\n"
    "    cvt.s64.s32 %rd3, %r0;\n"
    "    cvt.s64.s32 %rd4, %r1;\n"
    "LOAD:\n"
    "    setp.ge.s64 %p, %rd3, %rd1;\n"
    "    @%p bra LOADED;\n"
    "    shl.b64 %rd5, %rd3, 2;\n"
    "    add.s64 %rd6, %rd0, %rd5;\n"
    "    add.s64 %rd7, %rd2, %rd5;\n"
    "    ld.global.u32 %r2, [%rd6];\n"
    "    st.shared.u32 [%rd7], %r2;\n"
    "    add.s64 %rd3, %rd3, %rd4;\n"
    "    bra LOAD;\n"
    "LOADED:\n"
    "    bar.sync 0;\n"
    "    cvt.s64.s32 %rd3, %r0;\n"
    "STORE:\n"
    "    setp.ge.s64 %p, %rd3, %rd1;\n"
    "    @%p bra DONE;\n"
    "    sub.s64 %rd5, %rd1, %rd3;\n"
    "    shl.b64 %rd5, %rd5, 2;\n"
    "    add.s64 %rd7, %rd2, %rd5;\n"
    "    ld.shared.u32 %r2, [%rd7+-4];\n"
    "    shl.b64 %rd5, %rd3, 2;\n"
    "    add.s64 %rd6, %rd0, %rd5;\n"
    "    st.global.u32 [%rd6], %r2;\n"
    "    add.s64 %rd3, %rd3, %rd4;\n"
    "    bra STORE;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n"
    "\n"
    ".visible .entry poke(.param .u64 X, .param .u64 X0, .param .u64 at, .param .u64 n)\n"
    "{\n"
    "    .reg .b32 %r<1>;\n"
    "    .reg .b64 %rd<2>;\n"
    "    ld.param.u64 %rd0, [X];\n"
    "    ld.param.u64 %rd1, [at];\n"
    "    shl.b64 %rd1, %rd1, 2;\n"
    "    add.s64 %rd0, %rd0, %rd1;\n"
    "    mov.u32 %r0, 7;\n"
    "    st.global.u32 [%rd0], %r0;\n"
    "    ret;\n"
    "}\n";

// For sm_90. tile(X: f32[n, 16], Y: out f32[n, 16]): Y = X by tensor copies of 8 rows.
// ranks(X: out u32[n]): X[i] = the rank of CTA i in its cluster of 2.
static const char hopper_ptx[] =
    ".version 8.0\n"
    ".target sm_90\n"
    ".address_size 64\n"
    ".visible .entry tile(\n"
    "    .param .u64 X, .param .u64 X0, .param .u64 X1, .param .u64 Y, .param .u64 Y0,\n"
    "    .param .u64 Y1, .param .u64 n, .param .align 64 .b8 map[128])\n"
    "{\n"
    "    .shared .align 128 .b8 rows[512];\n"
    "    .shared .align 8 .b64 full;\n"
    "    .reg .pred %p, %q;\n"
    "    .reg .b32 %r<8>;\n"
    "    .reg .b64 %rd<6>;\n"
    "    .reg .f32 %f;\n"
    "    mov.u32 %r0, %tid.x;\n"
    "    mov.u32 %r1, rows;\n"
    "    mov.u32 %r2, full;\n"
    "    mov.u32 %r3, %ctaid.x;\n"
    "    shl.b32 %r3, %r3, 3;\n"
    "    setp.ne.u32 %p, %r0, 0;\n"
    "    @%p bra READY;\n"
    "    mbarrier.init.shared::cta.b64 [%r2], 1;\n"
    "    fence.mbarrier_init.release.cluster;\n"
    "READY:\n"
    "    bar.sync 0;\n"
    "    @%p bra WAIT;\n"
    "    mov.b64 %rd0, map;\n"
    "    cvta.param.u64 %rd0, %rd0;\n"
    "    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;\n"
    "    mov.u32 %r4, 0;\n"
    "    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes\n"
    "        [%r1], [%rd0, {%r4, %r3}], [%r2];\n"
    "WAIT:\n"
    "    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r2], 0;\n"
    "    @!%q bra WAIT;\n"
    "    shr.u32 %r5, %r0, 4;\n"
    "    add.u32 %r5, %r5, %r3;\n"
    "    cvt.u64.u32 %rd1, %r5;\n"
    "    ld.param.u64 %rd2, [n];\n"
    "    setp.ge.u64 %p, %rd1, %rd2;\n"
    "    @%p bra DONE;\n"
    "    shl.b32 %r6, %r0, 2;\n"
    "    add.u32 %r6, %r6, %r1;\n"
    "    ld.shared.f32 %f, [%r6];\n"
    "    and.b32 %r7, %r0, 15;\n"
    "    cvt.u64.u32 %rd3, %r7;\n"
    "    ld.param.u64 %rd4, [Y0];\n"
    "    mad.lo.u64 %rd3, %rd1, %rd4, %rd3;\n"
    "    shl.b64 %rd3, %rd3, 2;\n"
    "    ld.param.u64 %rd5, [Y];\n"
    "    add.u64 %rd5, %rd5, %rd3;\n"
    "    st.global.f32 [%rd5], %f;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n"
    "\n"
    ".visible .entry ranks(.param .u64 X, .param .u64 X0, .param .u64 n)\n"
    "{\n"
    "    .reg .b32 %r<2>;\n"
    "    .reg .b64 %rd<2>;\n"
    "    ld.param.u64 %rd0, [X];\n"
    "    mov.u32 %r0, %ctaid.x;\n"
    "    mul.wide.u32 %rd1, %r0, 4;\n"
    "    add.u64 %rd0, %rd0, %rd1;\n"
    "    mov.u32 %r1, %cluster_ctarank;\n"
    "    st.global.u32 [%rd0], %r1;\n"
    "    ret;\n"
    "}\n";

static const tir_str dims[] = {{"n", 1}};

#define VECTOR(letter, type, way)                                         \
    {                                                                     \
        .name = {letter, 1}, .element = type, .direction = way, .rank = 1 \
    }
static const tir_artifact_param axpy_params[] = {
    VECTOR("X", TIR_ELEMENT_F32, TIR_DIRECTION_IN),
    VECTOR("Y", TIR_ELEMENT_F32, TIR_DIRECTION_IN),
    VECTOR("Z", TIR_ELEMENT_F32, TIR_DIRECTION_OUT),
    {.name = {"a", 1}, .kind = TIR_PARAM_SCALAR, .element = TIR_ELEMENT_F32},
};
static const tir_artifact_param reverse_params[] = {
    VECTOR("X", TIR_ELEMENT_U32, TIR_DIRECTION_INOUT),
};
static const tir_artifact_param poke_params[] = {
    VECTOR("X", TIR_ELEMENT_U32, TIR_DIRECTION_OUT),
    {.name = {"at", 2}, .kind = TIR_PARAM_SCALAR, .element = TIR_ELEMENT_I64},
};

#define ONE    FORMULA(CONST(1))
#define BLOCKS FORMULA(DIM(0), CONST(128), DO(CEILDIV))
static const tir_artifact_variant axpy_variants[] = {
    {.entry = {"axpy_unit", 9},
     .facts = TIR_FACT_UNIT_INNER | TIR_FACT_INDEX32,
     .threads = 128,
     .grid = {BLOCKS, ONE, ONE}},
    {.entry = {"axpy_any", 8}, .threads = 128, .grid = {BLOCKS, ONE, ONE}},
};
static const tir_artifact_variant reverse_variants[] = {
    {.entry = {"reverse", 7}, .threads = 256, .dynamic_shared = 65536, .grid = {ONE, ONE, ONE}},
};
static const tir_artifact_variant poke_variants[] = {
    {.entry = {"poke", 4}, .threads = 1, .grid = {ONE, ONE, ONE}},
};
static const tir_artifact_condition reverse_conditions[] = {
    {FORMULA(DIM(0), CONST(16384), DO(LE)), {"n <= 16384", 10}},
};

#define KERNEL(text, parameters, forms)                                                  \
    .name = {text, sizeof text - 1}, .dims = dims, .dim_count = 1, .params = parameters, \
    .param_count = COUNT(parameters), .variants = forms, .variant_count = COUNT(forms)
static const tir_artifact_kernel kernels[] = {
    {KERNEL("axpy", axpy_params, axpy_variants)},
    {KERNEL("reverse", reverse_params, reverse_variants), .conditions = reverse_conditions,
     .condition_count = 1},
    {KERNEL("poke", poke_params, poke_variants)},
};
static const tir_artifact_desc artifact = {
    .target = {"sm_80", 5},
    .ptx = {ptx, sizeof ptx - 1},
    .kernels = kernels,
    .kernel_count = COUNT(kernels),
};

#define MATRIX(letter, way)                                                                        \
    {                                                                                              \
        .name = {letter, 1}, .element = TIR_ELEMENT_F32, .direction = way, .rank = 2, .extents = { \
            {.dim = 0},                                                                            \
            {.dim = TIR_EXTENT_FIXED, .fixed = 16}                                                 \
        }                                                                                          \
    }
static const tir_artifact_param tile_params[] = {MATRIX("X", TIR_DIRECTION_IN),
                                                 MATRIX("Y", TIR_DIRECTION_OUT)};
static const tir_artifact_map tile_map = {.param = 0, .box = {8, 16}};
static const tir_artifact_variant tile_variants[] = {
    {.entry = {"tile", 4},
     .threads = 128,
     .grid = {FORMULA(DIM(0), CONST(8), DO(CEILDIV)), ONE, ONE},
     .maps = &tile_map,
     .map_count = 1},
};
static const tir_artifact_variant ranks_variants[] = {
    {.entry = {"ranks", 5},
     .threads = 1,
     .cluster = {2, 1, 1},
     .grid = {FORMULA(DIM(0)), ONE, ONE}},
};
static const tir_artifact_kernel hopper_kernels[] = {
    {KERNEL("tile", tile_params, tile_variants)},
    {KERNEL("ranks", reverse_params, ranks_variants)},
};
static const tir_artifact_desc hopper_artifact = {
    .target = {"sm_90", 5},
    .ptx = {hopper_ptx, sizeof hopper_ptx - 1},
    .kernels = hopper_kernels,
    .kernel_count = COUNT(hopper_kernels),
};

static const char *spec; // of the device under test

struct rig {
    tir_runtime *runtime;
    tir_rt_device *device;
    tir_rt_module *module;
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
    uint8_t *bytes;
    size_t size;
    ok(rig, tir_artifact_encode(&artifact, NULL, &bytes, &size, &rig->error));
    ok(rig, tir_runtime_create(NULL, &rig->runtime, &rig->error));
    ok(rig, tir_rt_device_open(rig->runtime, spec, &rig->device, &rig->error));
    ok(rig, tir_rt_module_load(rig->device, bytes, size, &rig->module, &rig->error));
    tir_artifact_bytes_free(bytes, size, NULL);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    tir_rt_module_destroy(rig->module);
    tir_rt_device_destroy(rig->device);
    tir_runtime_destroy(rig->runtime);
    free(rig);
    return 0;
}

static tir_rt_kernel *kernel_of(struct rig *rig, tir_rt_module *module, tir_str name)
{
    tir_rt_kernel *out;
    ok(rig, tir_rt_module_kernel(module, name, &out, &rig->error));
    return out;
}

static tir_rt_kernel *kernel(struct rig *rig, tir_str name)
{
    return kernel_of(rig, rig->module, name);
}

static tir_rt_buffer *buffer(struct rig *rig, uint64_t size, const void *contents)
{
    tir_rt_buffer *out;
    ok(rig, tir_rt_buffer_create(rig->device, size, &out, &rig->error));
    if (contents)
        ok(rig, tir_rt_buffer_write(out, 0, contents, size, NULL, &rig->error));
    return out;
}

// Strides of 1, and of other sizes and signs; sizes around a block.
static void test_axpy(void **state)
{
    struct rig *rig = *state;
    enum { N = 1000 };
    static const struct {
        int64_t n, x, y;
        uint32_t variant;
    } cases[] = {{1, 1, 1, 0},   {127, 1, 1, 0}, {128, 1, 1, 0},  {129, 1, 1, 0},
                 {300, 3, 1, 1}, {300, 1, 0, 1}, {300, 2, -1, 1}, {0, 1, 1, 0}};
    float x[N], y[N], z[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i * 37 % 101) - 50;
        y[i] = (float)(i * 53 % 97) / 8;
    }
    tir_rt_buffer *bx = buffer(rig, sizeof x, x), *by = buffer(rig, sizeof y, y);
    tir_rt_buffer *bz = buffer(rig, sizeof z, NULL);
    tir_rt_stream *stream;
    ok(rig, tir_rt_stream_create(rig->device, &stream, &rig->error));
    for (size_t i = 0; i < COUNT(cases); i++) {
        const int64_t n = cases[i].n, sx = cases[i].x, sy = cases[i].y;
        const int64_t first_y = sy < 0 ? N - 1 : 0;
        tir_rt_launch_report report;
        tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
        options.report = &report;
        tir_rt_arg args[] = {
            tir_rt_arg_tensor(tir_rt_buffer_address(bx), TIR_ELEMENT_F32, 1, &n, &sx),
            tir_rt_arg_tensor(tir_rt_buffer_address(by) + (uint64_t)first_y * sizeof(float),
                              TIR_ELEMENT_F32, 1, &n, &sy),
            tir_rt_arg_tensor(tir_rt_buffer_address(bz), TIR_ELEMENT_F32, 1, &n, NULL),
            tir_rt_arg_float(TIR_ELEMENT_F32, 0.5),
        };
        ok(rig, tir_rt_buffer_fill(bz, 0, 0xff, sizeof z, stream, &rig->error));
        ok(rig, tir_rt_launch(kernel(rig, TEXT("axpy")), stream, args, 4, &options, &rig->error));
        ok(rig, tir_rt_buffer_read(bz, 0, z, sizeof z, stream, &rig->error));
        assert_int_equal(report.launched, n > 0);
        assert_int_equal(report.variant, cases[i].variant);
        for (int64_t j = 0; j < n; j++)
            assert_true(z[j] == 0.5f * x[j * sx] + y[first_y + j * sy]);
        uint32_t beyond;
        memcpy(&beyond, &z[n], sizeof beyond);
        assert_int_equal(beyond, UINT32_MAX);
    }
    tir_rt_stream_destroy(stream);
    tir_rt_buffer_destroy(bx);
    tir_rt_buffer_destroy(by);
    tir_rt_buffer_destroy(bz);
}

// An output in the memory of an input is refused; beside it, and interleaved with it, it is taken.
static void test_outputs_are_apart(void **state)
{
    struct rig *rig = *state;
    enum { N = 300 };
    float x[2 * N], y[N];
    for (int i = 0; i < N; i++) {
        x[2 * i] = (float)i;
        x[2 * i + 1] = -1;
        y[i] = 7;
    }
    tir_rt_buffer *bx = buffer(rig, sizeof x, x), *by = buffer(rig, sizeof y, y);
    const int64_t n = N, every_other = 2;
    const uint64_t at = tir_rt_buffer_address(bx);
    tir_rt_arg args[] = {
        tir_rt_arg_tensor(at, TIR_ELEMENT_F32, 1, &n, &every_other),
        tir_rt_arg_tensor(tir_rt_buffer_address(by), TIR_ELEMENT_F32, 1, &n, NULL),
        tir_rt_arg_tensor(at, TIR_ELEMENT_F32, 1, &n, &every_other),
        tir_rt_arg_float(TIR_ELEMENT_F32, 0.5),
    };
    tir_rt_kernel *axpy = kernel(rig, TEXT("axpy"));
    assert_int_equal(tir_rt_launch(axpy, NULL, args, 4, NULL, &rig->error), TIR_ERR_INVALID);
    assert_non_null(strstr(rig->error.message, "share memory, and the kernel writes "));
    args[2].as.tensor.data = at + sizeof *x;
    ok(rig, tir_rt_launch(axpy, NULL, args, 4, NULL, &rig->error));
    ok(rig, tir_rt_buffer_read(bx, 0, x, sizeof x, NULL, &rig->error));
    for (int i = 0; i < N; i++)
        assert_true(x[2 * i] == (float)i && x[2 * i + 1] == 0.5f * (float)i + 7);
    tir_rt_buffer_destroy(bx);
    tir_rt_buffer_destroy(by);
}

static void test_large_shared_memory(void **state)
{
    struct rig *rig = *state;
    enum { N = 16384 };
    static uint32_t in[N], out[N];
    const int64_t n = N, more = N + 1;
    for (uint32_t i = 0; i < N; i++)
        in[i] = i * 2654435761u;
    tir_rt_buffer *x = buffer(rig, sizeof in, in);
    tir_rt_arg arg = tir_rt_arg_tensor(tir_rt_buffer_address(x), TIR_ELEMENT_U32, 1, &n, NULL);
    tir_rt_kernel *reverse = kernel(rig, TEXT("reverse"));
    ok(rig, tir_rt_launch(reverse, NULL, &arg, 1, NULL, &rig->error));
    ok(rig, tir_rt_buffer_read(x, 0, out, sizeof out, NULL, &rig->error));
    for (int i = 0; i < N; i++)
        assert_int_equal(out[i], in[N - 1 - i]);
    arg.as.tensor.shape = &more;
    assert_int_equal(tir_rt_launch(reverse, NULL, &arg, 1, NULL, &rig->error), TIR_ERR_INVALID);
    assert_string_equal(rig->error.message, "reverse needs n <= 16384");
    tir_rt_buffer_destroy(x);
}

static void test_copies_and_events(void **state)
{
    struct rig *rig = *state;
    uint8_t bytes[300], back[300];
    tir_rt_event *start, *end;
    float ms;
    for (int i = 0; i < 300; i++)
        bytes[i] = (uint8_t)(i * 3);
    tir_rt_buffer *a = buffer(rig, 300, bytes), *b = buffer(rig, 300, NULL);
    ok(rig, tir_rt_event_create(rig->device, &start, &rig->error));
    ok(rig, tir_rt_event_create(rig->device, &end, &rig->error));
    ok(rig, tir_rt_event_record(start, NULL, &rig->error));
    ok(rig, tir_rt_buffer_fill(b, 0, 0x5a, 300, NULL, &rig->error));
    ok(rig, tir_rt_buffer_copy(b, 7, a, 100, 150, NULL, &rig->error));
    ok(rig, tir_rt_event_record(end, NULL, &rig->error));
    ok(rig, tir_rt_event_elapsed(start, end, &ms, &rig->error));
    assert_true(ms >= 0 && ms < 60000);
    ok(rig, tir_rt_buffer_read(b, 0, back, 300, NULL, &rig->error));
    assert_int_equal(back[6], 0x5a);
    assert_memory_equal(back + 7, bytes + 100, 150);
    assert_int_equal(back[157], 0x5a);
    tir_rt_event_destroy(start);
    tir_rt_event_destroy(end);
    tir_rt_buffer_destroy(a);
    tir_rt_buffer_destroy(b);
}

// A graph does what its stream got, with what memory holds at the time; nothing is done before.
static void test_graph(void **state)
{
    struct rig *rig = *state;
    enum { N = 100 };
    const int64_t n = N;
    float x[N], y[N];
    tir_rt_stream *stream;
    tir_rt_graph *graph;
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    tir_rt_buffer *bx = buffer(rig, sizeof x, x), *by = buffer(rig, sizeof y, x);
    tir_rt_buffer *bz = buffer(rig, sizeof y, x);
    const tir_rt_arg args[] = {
        tir_rt_arg_tensor(tir_rt_buffer_address(bx), TIR_ELEMENT_F32, 1, &n, NULL),
        tir_rt_arg_tensor(tir_rt_buffer_address(by), TIR_ELEMENT_F32, 1, &n, NULL),
        tir_rt_arg_tensor(tir_rt_buffer_address(bz), TIR_ELEMENT_F32, 1, &n, NULL),
        tir_rt_arg_float(TIR_ELEMENT_F32, 2),
    };
    ok(rig, tir_rt_stream_create(rig->device, &stream, &rig->error));
    ok(rig, tir_rt_capture_begin(stream, &rig->error));
    ok(rig, tir_rt_buffer_fill(bx, 0, 0, 4 * sizeof *x, stream, &rig->error));
    ok(rig, tir_rt_launch(kernel(rig, TEXT("axpy")), stream, args, 4, NULL, &rig->error));
    ok(rig, tir_rt_buffer_copy(by, 0, bz, 0, sizeof y, stream, &rig->error));
    ok(rig, tir_rt_capture_end(stream, &graph, &rig->error));
    ok(rig, tir_rt_buffer_read(by, 0, y, sizeof y, stream, &rig->error));
    assert_memory_equal(x, y, sizeof x);
    for (int round = 1; round <= 3; round++) {
        ok(rig, tir_rt_graph_launch(graph, round == 2 ? NULL : stream, &rig->error));
        ok(rig, tir_rt_buffer_read(by, 0, y, sizeof y, NULL, &rig->error));
        for (int i = 0; i < N; i++) // Y = Y + 2 X, and X begins with four zeros
            assert_true(y[i] == (float)(i * (1 + 2 * round * (i >= 4))));
    }
    tir_rt_graph_destroy(graph);
    tir_rt_stream_destroy(stream);
    tir_rt_buffer_destroy(bx);
    tir_rt_buffer_destroy(by);
    tir_rt_buffer_destroy(bz);
}

// What would wait for a stream in capture is refused, and the capture goes on.
static void test_capture_refuses(void **state)
{
    struct rig *rig = *state;
    static const char in_capture[] =
        "the stream is in capture, which takes launches, copies and fills";
    static const char by_default[] =
        "the default stream waits for all others, and one is in capture";
    uint8_t byte = 5;
    uint32_t done;
    tir_rt_stream *stream, *other;
    tir_rt_event *event;
    tir_rt_graph *graph, *none;
    tir_rt_buffer *x = buffer(rig, 1, &byte);
    ok(rig, tir_rt_stream_create(rig->device, &stream, &rig->error));
    ok(rig, tir_rt_stream_create(rig->device, &other, &rig->error));
    ok(rig, tir_rt_event_create(rig->device, &event, &rig->error));
#define REFUSED(call, text)                            \
    do {                                               \
        assert_int_equal(call, TIR_ERR_INVALID);       \
        assert_string_equal(rig->error.message, text); \
    } while (0)
    REFUSED(tir_rt_capture_end(stream, &none, &rig->error), "the stream is not in capture");
    ok(rig, tir_rt_capture_begin(stream, &rig->error));
    REFUSED(tir_rt_capture_begin(stream, &rig->error), "the stream is in capture already");
    REFUSED(tir_rt_buffer_write(x, 0, &byte, 1, stream, &rig->error), in_capture);
    REFUSED(tir_rt_buffer_read(x, 0, &byte, 1, stream, &rig->error), in_capture);
    REFUSED(tir_rt_event_record(event, stream, &rig->error), in_capture);
    REFUSED(tir_rt_stream_synchronize(stream, &rig->error), in_capture);
    REFUSED(tir_rt_stream_wait(rig->device, stream, 1, &done, &rig->error), in_capture);
    REFUSED(tir_rt_buffer_write(x, 0, &byte, 1, NULL, &rig->error), by_default);
    REFUSED(tir_rt_buffer_fill(x, 0, 1, 1, NULL, &rig->error), by_default);
    REFUSED(tir_rt_device_synchronize(rig->device, &rig->error), by_default);
#undef REFUSED
    ok(rig, tir_rt_buffer_write(x, 0, &byte, 1, other, &rig->error));
    ok(rig, tir_rt_buffer_fill(x, 0, 9, 1, stream, &rig->error));
    tir_rt_buffer *later = NULL; // memory is no work of a stream
    ok(rig, tir_rt_buffer_create(rig->device, 16, &later, &rig->error));
    ok(rig, tir_rt_capture_end(stream, &graph, &rig->error));
    ok(rig, tir_rt_graph_launch(graph, NULL, &rig->error));
    ok(rig, tir_rt_buffer_read(x, 0, &byte, 1, NULL, &rig->error));
    assert_int_equal(byte, 9);
    ok(rig, tir_rt_capture_begin(stream, &rig->error)); // dropped with its stream
    tir_rt_stream_destroy(stream);
    ok(rig, tir_rt_device_synchronize(rig->device, &rig->error));
    tir_rt_graph_destroy(graph);
    tir_rt_event_destroy(event);
    tir_rt_stream_destroy(other);
    tir_rt_buffer_destroy(later);
    tir_rt_buffer_destroy(x);
}

// The same text without an artifact: the block of parameters is made here.
static void test_ptx(void **state)
{
    struct rig *rig = *state;
    tir_rt_module *module;
    tir_rt_buffer *x = buffer(rig, 64, NULL);
    const uint64_t params[] = {tir_rt_buffer_address(x), 1, 5, 16};
    uint32_t word = 0;
    ok(rig, tir_rt_module_load_ptx(rig->device, TEXT(ptx), &module, &rig->error));
    assert_int_equal(tir_rt_module_describe(module)->kernel_count, 0);
    assert_string_equal(tir_rt_module_describe(module)->target.ptr, "sm_80");
    tir_rt_ptx_launch launch = TIR_RT_PTX_LAUNCH_INIT;
    launch.params = params;
    launch.params_size = sizeof params;
    ok(rig, tir_rt_launch_ptx(module, NULL, "poke", &launch, &rig->error));
    ok(rig, tir_rt_buffer_read(x, 20, &word, 4, NULL, &rig->error));
    assert_int_equal(word, 7);
    assert_int_not_equal(tir_rt_launch_ptx(module, NULL, "peek", &launch, &rig->error), TIR_OK);
    launch.block[1] = 1025;
    assert_int_equal(tir_rt_launch_ptx(module, NULL, "poke", &launch, &rig->error),
                     TIR_ERR_INVALID);
    assert_string_equal(rig->error.message, "a CTA of 1 x 1025 x 1 threads");
    tir_rt_module_destroy(module);
    assert_int_equal(tir_rt_module_load_ptx(rig->device, TEXT("// .target sm_80\n.version 8.0\n"),
                                            &module, &rig->error),
                     TIR_ERR_INVALID);
    assert_null(module);
    assert_string_equal(rig->error.message, "the PTX says no .target");
    assert_int_not_equal(
        tir_rt_module_load_ptx(rig->device,
                               TEXT(".version 8.0\n.target sm_80\n.address_size 64\n"
                                    ".visible .entry f() { add.u99 %a, %b; }\n"),
                               &module, &rig->error),
        TIR_OK);
    assert_null(module);
    tir_rt_buffer_destroy(x);
}

// Tensor maps: rows that are not contiguous, and a last copy that reaches past the end.
static void check_tile(struct rig *rig, tir_rt_kernel *tile)
{
    enum { ROWS = 21, STRIDE = 20, COLUMNS = 16 };
    float x[ROWS * STRIDE], y[ROWS * COLUMNS];
    const int64_t shape[] = {ROWS, COLUMNS}, strides[] = {STRIDE, 1}, odd[] = {COLUMNS + 1, 1};
    for (int i = 0; i < ROWS * STRIDE; i++)
        x[i] = (float)i;
    tir_rt_buffer *bx = buffer(rig, sizeof x, x), *by = buffer(rig, sizeof y, NULL);
    tir_rt_arg args[] = {
        tir_rt_arg_tensor(tir_rt_buffer_address(bx), TIR_ELEMENT_F32, 2, shape, strides),
        tir_rt_arg_tensor(tir_rt_buffer_address(by), TIR_ELEMENT_F32, 2, shape, NULL),
    };
    ok(rig, tir_rt_launch(tile, NULL, args, 2, NULL, &rig->error));
    ok(rig, tir_rt_buffer_read(by, 0, y, sizeof y, NULL, &rig->error));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        assert_true(y[i] == x[i / COLUMNS * STRIDE + i % COLUMNS]);
    args[0].as.tensor.strides = odd;
    assert_int_equal(tir_rt_launch(tile, NULL, args, 2, NULL, &rig->error), TIR_ERR_INVALID);
    tir_rt_buffer_destroy(bx);
    tir_rt_buffer_destroy(by);
}

static void check_ranks(struct rig *rig, tir_rt_kernel *ranks)
{
    uint32_t words[6];
    const int64_t n = 6;
    tir_rt_buffer *x = buffer(rig, sizeof words, NULL);
    tir_rt_arg arg = tir_rt_arg_tensor(tir_rt_buffer_address(x), TIR_ELEMENT_U32, 1, &n, NULL);
    ok(rig, tir_rt_buffer_fill(x, 0, 0xff, sizeof words, NULL, &rig->error));
    ok(rig, tir_rt_launch(ranks, NULL, &arg, 1, NULL, &rig->error));
    ok(rig, tir_rt_buffer_read(x, 0, words, sizeof words, NULL, &rig->error));
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(words[i], i % 2);
    tir_rt_buffer_destroy(x);
}

static void test_hopper(void **state)
{
    struct rig *rig = *state;
    const char *arch = tir_rt_device_describe(rig->device)->arch;
    uint8_t *bytes;
    size_t size;
    tir_rt_module *module;
    if (*arch && strtol(arch + 3, NULL, 10) < 90)
        skip();
    ok(rig, tir_artifact_encode(&hopper_artifact, NULL, &bytes, &size, &rig->error));
    ok(rig, tir_rt_module_load(rig->device, bytes, size, &module, &rig->error));
    tir_artifact_bytes_free(bytes, size, NULL);
    check_tile(rig, kernel_of(rig, module, TEXT("tile")));
    check_ranks(rig, kernel_of(rig, module, TEXT("ranks")));
    tir_rt_module_destroy(module);
}

// Last, since a GPU's primary context does not recover from it within the process.
static void test_fault(void **state)
{
    struct rig *rig = *state;
    tir_rt_buffer *x = buffer(rig, 64, NULL), *other;
    const int64_t n = 16;
    tir_rt_arg args[] = {
        tir_rt_arg_tensor(tir_rt_buffer_address(x), TIR_ELEMENT_U32, 1, &n, NULL),
        tir_rt_arg_int(TIR_ELEMENT_I64, 3),
    };
    tir_rt_kernel *poke = kernel(rig, TEXT("poke"));
    uint32_t word = 0;
    ok(rig, tir_rt_launch(poke, NULL, args, 2, NULL, &rig->error));
    ok(rig, tir_rt_buffer_read(x, 12, &word, 4, NULL, &rig->error));
    assert_int_equal(word, 7);
    tir_rt_stream *stream, *captured;
    tir_rt_graph *graph;
    ok(rig, tir_rt_stream_create(rig->device, &stream, &rig->error));
    ok(rig, tir_rt_stream_create(rig->device, &captured, &rig->error));
    ok(rig, tir_rt_capture_begin(captured, &rig->error));
    args[1].as.scalar.value.i = (int64_t)1 << 45;
    tir_status status = tir_rt_launch(poke, stream, args, 2, NULL, &rig->error);
    if (!status)
        status = tir_rt_stream_synchronize(stream, &rig->error);
    assert_int_equal(status, TIR_ERR_DEVICE);
    const tir_error first = rig->error;
    assert_true(first.message[0]);
    status = tir_rt_buffer_create(rig->device, 64, &other, &rig->error);
    assert_int_equal(status, TIR_ERR_DEVICE);
    assert_null(other);
    assert_string_equal(rig->error.message, first.message);
    assert_int_equal(tir_rt_capture_end(captured, &graph, &rig->error), TIR_ERR_DEVICE);
    assert_null(graph);
    assert_string_equal(rig->error.message, first.message);
    tir_rt_stream_destroy(captured);
    tir_rt_stream_destroy(stream);
    tir_rt_buffer_destroy(x);
}

// Whether the device is there at all.
static tir_status probe(tir_error *error)
{
    tir_runtime *runtime;
    tir_rt_device *device = NULL;
    tir_status status = tir_runtime_create(NULL, &runtime, error);
    if (!status)
        status = tir_rt_device_open(runtime, spec, &device, error);
    if (!status)
        printf("%s: %s %s\n", spec, tir_rt_device_describe(device)->name,
               tir_rt_device_describe(device)->arch);
    tir_rt_device_destroy(device);
    tir_runtime_destroy(runtime);
    return status;
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_axpy),
        TEST(test_outputs_are_apart),
        TEST(test_large_shared_memory),
        TEST(test_copies_and_events),
        TEST(test_graph),
        TEST(test_capture_refuses),
        TEST(test_ptx),
        TEST(test_hopper),
        TEST(test_fault),
    };
    tir_error error;
    spec = argc > 1 ? argv[1] : "emu";
    tir_status status = probe(&error);
    if (status)
        fprintf(stderr, "%s\n", error.message);
    if (status == TIR_ERR_NO_DRIVER)
        return 77;
    return status ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
