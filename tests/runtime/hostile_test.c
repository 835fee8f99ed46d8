// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches of drawn arguments, of the sample and of the sample with damage: each works or is
// refused with a message, and a second one, of which a plan may know, ends as the first did. The
// sanitizers see the rest.
//
// Argument: rounds of random arguments; the seed is that of the test's name or the second argument.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rig.h"

static uint64_t seed = 20261129, rounds = 20000;

static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

#define PICK(array) ((array)[draw(COUNT(array))])

// ---- arguments

struct values {
    int64_t dims[TIR_MAX_DIMS]; // as most tensors have them
    int64_t shapes[TIR_MAX_PARAMS + 1][TIR_MAX_RANK + 2];
    int64_t strides[TIR_MAX_PARAMS + 1][TIR_MAX_RANK + 2];
    tir_rt_arg args[TIR_MAX_PARAMS + 1];
};

static const int64_t sizes[] = {0, 1, 2, 16, 64, 100, 128, 256, 512, 1000, 65536};
static const int64_t extremes[] = {
    INT64_MIN,          INT64_MIN + 1, -((int64_t)1 << 32), -1,        0,
    ((int64_t)1 << 30), INT32_MAX,     ((int64_t)1 << 31),  1LL << 32, ((int64_t)1 << 40),
    ((int64_t)1 << 60), INT64_MAX - 1, INT64_MAX,
};

static void draw_tensor(struct values *v, uint32_t i, const tir_artifact_param *param)
{
    static const uint64_t addresses[] = {0,
                                         1,
                                         8,
                                         1 << 16,
                                         (1ull << 57) - 16,
                                         1ull << 57,
                                         INT64_MAX,
                                         UINT64_MAX - 7,
                                         UINT64_MAX - 15};
    int64_t *shape = v->shapes[i], *strides = v->strides[i], stride = 1;
    for (uint32_t d = 0; d < TIR_MAX_RANK + 2; d++) {
        const tir_extent *extent = &param->extents[d < TIR_MAX_RANK ? d : 0];
        shape[d] = extent->dim == TIR_EXTENT_FIXED ? extent->fixed
                   : extent->dim < TIR_MAX_DIMS    ? v->dims[extent->dim]
                                                   : 1;
        if (!draw(40))
            shape[d] = PICK(extremes);
    }
    for (uint32_t d = param->rank; d-- > 0;) {
        strides[d] = draw(20) ? stride : draw(2) ? PICK(extremes) : PICK(sizes);
        stride = (int64_t)((uint64_t)stride * (uint64_t)shape[d] + (draw(10) ? 0 : 8));
    }
    const uint64_t data = draw(8) ? ((uint64_t)(i + 1) << 44) + 16 * draw(3) : PICK(addresses);
    const uint32_t rank = draw(50) ? param->rank : (uint32_t)draw(TIR_MAX_RANK + 3);
    const tir_element element =
        draw(50) ? param->element : (tir_element)(draw(TIR_ELEMENT_COUNT + 2) - 1);
    v->args[i] =
        tir_rt_arg_tensor(data, element, rank, draw(80) ? shape : NULL, draw(2) ? strides : NULL);
}

static void draw_scalar(tir_rt_arg *arg, const tir_artifact_param *param)
{
    static const double floats[] = {0, -0.0, 1.5, 1e308, -1e39, INFINITY, NAN, 1e-320};
    const tir_element element =
        draw(40) ? param->element : (tir_element)(draw(TIR_ELEMENT_COUNT + 2) - 1);
    *arg = tir_rt_arg_int(element, draw(2) ? PICK(sizes) : PICK(extremes));
    if (element == TIR_ELEMENT_F32 || element == TIR_ELEMENT_F64)
        arg->as.scalar.value.f = PICK(floats);
}

static uint32_t draw_args(struct values *v, const tir_artifact_kernel *info)
{
    for (uint32_t d = 0; d < TIR_MAX_DIMS; d++)
        v->dims[d] = draw(12) ? PICK(sizes) : PICK(extremes);
    for (uint32_t i = 0; i < info->param_count; i++) {
        const tir_artifact_param *param = &info->params[i];
        const bool as_scalar = (param->kind == TIR_PARAM_SCALAR) != !draw(100);
        if (as_scalar)
            draw_scalar(&v->args[i], param);
        else
            draw_tensor(v, i, param);
        if (!draw(200))
            v->args[i].kind = (tir_rt_arg_kind)(4 + draw(3));
    }
    v->args[info->param_count] = v->args[0];
    return draw(40) ? info->param_count : (uint32_t)draw(info->param_count + 2);
}

static tir_rt_launch_options draw_options(uint32_t variants, tir_rt_launch_report *report)
{
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    options.report = draw(2) ? report : NULL;
    if (!draw(3))
        options.variant = (int32_t)draw(variants + 4) - 2;
    if (!draw(20))
        options.variant = draw(2) ? INT32_MAX : INT32_MIN;
    options.overlap = (uint32_t)draw(2);
    options.scratch = draw(3) ? 0 : draw(4) ? 1ull << 50 : (1ull << 50) + 8;
    options.scratch_size = draw(2) ? UINT64_MAX : draw(1000);
    if (!draw(30))
        options.struct_size = draw(sizeof options + 16);
    return options;
}

// ---- launches

struct outcome {
    tir_status status;
    tir_error error;
    tir_rt_launch_report report;
    struct fake_launch last;
};

static void run(struct rig *rig, tir_rt_kernel *kernel, const struct values *v, uint32_t count,
                tir_rt_launch_options options, struct outcome *out)
{
    memset(out, 0, sizeof *out);
    memset(&rig->fake->last, 0, sizeof rig->fake->last);
    if (options.report)
        options.report = &out->report;
    out->status = tir_rt_launch(kernel, NULL, v->args, count, &options, &out->error);
    out->last = rig->fake->last;
    if (out->status) {
        assert_int_equal(out->status, out->error.status);
        assert_true(out->error.message[0]);
        assert_true(out->status == TIR_ERR_INVALID || out->status == TIR_ERR_UNSUPPORTED ||
                    out->status == TIR_ERR_NO_MEMORY);
    }
}

static bool is_damaged; // the artifact

// A kernel, launched twice with the same drawn arguments. The fake device does not run `copy`.
static bool try_launch(struct rig *rig, tir_rt_kernel *kernel)
{
    static struct values v;
    static struct outcome first, second;
    const tir_artifact_kernel *info = tir_rt_kernel_describe(kernel);
    const uint32_t count = draw_args(&v, info);
    const tir_rt_launch_options options =
        draw_options(info->variant_count + info->sequence_count, &first.report);
    run(rig, kernel, &v, count, options, &first);
    run(rig, kernel, &v, count, options, &second);
    if (first.status != second.status || strcmp(first.error.message, second.error.message) != 0)
        fail_msg("'%s', and then '%s'", first.error.message, second.error.message);
    if (info->sequence_count) // its scratch memory may lie elsewhere
        first.last = second.last;
    if (is_damaged) // types change, and what lies between parameters is anything
        memcpy(first.last.params, second.last.params, sizeof first.last.params);
    if (memcmp(&first.report, &second.report, sizeof first.report) != 0 ||
        memcmp(&first.last, &second.last, sizeof first.last) != 0)
        fail_msg("the second launch of %.*s differs from the first", (int)info->name.len,
                 info->name.ptr);
    const tir_rt_prepare ahead = {kernel, v.args, count};
    (void)!tir_rt_module_prepare(rig->module, &ahead, 1, 1, &second.error);
    return !first.status;
}

static void test_arguments(void **state)
{
    struct rig *rig = *state;
    uint64_t good = 0;
    rig->fake->idle = 1;
    for (uint64_t i = 0; i < rounds; i++) {
        const tir_artifact_desc *desc = tir_rt_module_describe(rig->module);
        tir_rt_kernel *kernel;
        rig_ok(rig, tir_rt_module_kernel(rig->module, desc->kernels[draw(desc->kernel_count)].name,
                                         &kernel, &rig->error));
        good += try_launch(rig, kernel);
    }
    assert_in_range(good, rounds / 20, rounds / 2);
}

// ---- damage

static void use_module(struct rig *rig)
{
    const tir_artifact_desc *desc = tir_rt_module_describe(rig->module);
    tir_rt_kernel *kernel;
    tir_rt_usage usage;
    for (uint32_t i = 0; i < desc->kernel_count; i++) {
        rig_ok(rig, tir_rt_module_kernel(rig->module, desc->kernels[i].name, &kernel, &rig->error));
        for (int round = 0; round < 3; round++)
            try_launch(rig, kernel);
        for (uint32_t v = 0; v < desc->kernels[i].variant_count + 2; v++)
            (void)!tir_rt_kernel_usage(kernel, v, &usage, &rig->error);
    }
}

static uint32_t loaded;

static void try_bytes(struct rig *rig, const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1); // of this size, for the sanitizer
    memcpy(copy, bytes, size);
    tir_rt_module *own = rig->module;
    const tir_status status =
        tir_rt_module_load(rig->device, copy, size, &rig->module, &rig->error);
    free(copy);
    if (!status)
        use_module(rig);
    loaded += !status;
    tir_rt_module_destroy(rig->module);
    rig->module = own;
}

static void test_damage(void **state)
{
    struct rig *rig = *state;
    static const uint8_t flips[] = {0x01, 0x02, 0x80, 0xff};
    tir_artifact_desc desc = sample;
    size_t size;
    desc.cubin.len = desc.cubin_arch.len = 0; // no second copy of the same names
    uint8_t *bytes = rig_artifact(&desc, &size);
    rig->fake->idle = 1;
    is_damaged = true;
    for (size_t i = 0; i < size; i++)
        for (size_t flip = 0; flip < COUNT(flips); flip++) {
            bytes[i] ^= flips[flip];
            try_bytes(rig, bytes, size);
            bytes[i] ^= flips[flip];
        }
    for (size_t length = 0; length < size; length += 7)
        try_bytes(rig, bytes, length);
    assert_in_range(loaded, 100, 4 * size);
    free(bytes);
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : rounds;
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : seed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_arguments, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_damage, rig_setup, rig_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
