// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tensor maps of a launch: what reaches the driver, and what keeps a variant from having them.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <string.h>

#include "rig.h"
#include "tir/tensor_map.h"

static void expect_map(const struct rig *rig, uint32_t index, const tir_tensor_map *want)
{
    tir_tensor_map got;
    tir_error error;
    if (tir_tensor_map_decode(rig->fake->last.params + 128 + index * TIR_TENSOR_MAP_BYTES, &got,
                              &error))
        fail_msg("map %u: %s", index, error.message);
    assert_memory_equal(&got, want, sizeof got);
}

static void test_maps(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    const int64_t padded[2] = {136, 1};
    tir_tensor_map a = {.type = TIR_TENSOR_MAP_BF16,
                        .swizzle = TIR_TENSOR_MAP_SWIZZLE_128,
                        .l2 = TIR_TENSOR_MAP_L2_256,
                        .rank = 2,
                        .address = 0x10000,
                        .dims = {128, 256},
                        .strides = {256},
                        .steps = {1, 1},
                        .box = {64, 128}};
    const tir_tensor_map b = {.type = TIR_TENSOR_MAP_BF16,
                              .l2 = TIR_TENSOR_MAP_L2_256,
                              .rank = 3,
                              .address = 0x100000000,
                              .dims = {128, 512, 4},
                              .strides = {256, 512 * 256},
                              .steps = {1, 1, 3},
                              .box = {8, 256, 3}};
    rig_gemm_args(&g);
    rig_ok(rig, rig_launch(rig, &g, NULL));
    expect_map(rig, 0, &a);
    expect_map(rig, 1, &b);
    // Nothing of an earlier launch stays.
    g.args[PARAM_A].as.tensor.strides = padded;
    g.args[PARAM_A].as.tensor.data = 0x40000;
    a.address = 0x40000;
    a.strides[0] = 272;
    a.l2 = TIR_TENSOR_MAP_L2_128; // pieces of 256 bytes would begin inside of rows
    rig_ok(rig, rig_launch(rig, &g, NULL));
    expect_map(rig, 0, &a);
    expect_map(rig, 1, &b);
    // The row of a single row has no neighbour, so its stride is any.
    const int64_t single[2] = {0, 1};
    g.a[0] = g.d[0] = 1;
    g.args[PARAM_A].as.tensor.strides = single;
    a.dims[1] = 1;
    a.strides[0] = 16;
    rig_ok(rig, rig_launch(rig, &g, NULL));
    expect_map(rig, 0, &a);
}

// Corners are outermost first, and a map has them from the innermost on.
static void test_pixel_map(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    tir_tensor_map map;
    tir_rt_module *module;
    tir_artifact_variant variant = sample.kernels[0].variants[VARIANT_FAST];
    tir_artifact_param params[5];
    int64_t shape[5] = {4, 8, 16, 32, 64};
    const tir_artifact_map recipe = {.param = PARAM_B,
                                     .swizzle = 128,
                                     .box = {1, 1, 1, 1, 64},
                                     .stride = {1, 1, 1, 2, 1},
                                     .pixels = 96,
                                     .low = {-1, -2, -3},
                                     .high = {3, 4, 5}};
    variant.facts = 0;
    variant.maps = &recipe;
    variant.map_count = 1;
    memcpy(params, sample.kernels[0].params, sizeof params);
    params[PARAM_B].rank = 5;
    for (uint32_t d = 0; d < 5; d++)
        params[PARAM_B].extents[d] = (tir_extent){.dim = TIR_EXTENT_FIXED, .fixed = shape[d]};
    rig_gemm_args(&g);
    g.args[PARAM_B] = tir_rt_arg_tensor(0x100000000, TIR_ELEMENT_BF16, 5, shape, NULL);
    tir_rt_kernel *k = rig_load_changed(rig, params, &variant, 1, &module);
    rig_ok(rig, tir_rt_launch(k, NULL, g.args, 5, NULL, &rig->error));
    rig_ok(rig, tir_tensor_map_decode(rig->fake->last.params + 128, &map, &rig->error));
    assert_int_equal(map.kind, TIR_TENSOR_MAP_IM2COL);
    assert_int_equal(map.channels, 64);
    assert_int_equal(map.pixels, 96);
    for (int32_t i = 0; i < 3; i++) {
        assert_int_equal(map.lower[i], i - 3);
        assert_int_equal(map.upper[i], 5 - i);
        assert_int_equal(map.steps[i], i == 1 ? 2 : 1);
    }
    tir_rt_module_destroy(module);
}

// Each element type becomes one of the maps'.
static void test_map_types(void **state)
{
    static const struct {
        tir_element element;
        tir_tensor_map_type type;
    } types[] = {
        {TIR_ELEMENT_I8, TIR_TENSOR_MAP_U8},     {TIR_ELEMENT_BOOL, TIR_TENSOR_MAP_U8},
        {TIR_ELEMENT_E4M3, TIR_TENSOR_MAP_U8},   {TIR_ELEMENT_UE8M0, TIR_TENSOR_MAP_U8},
        {TIR_ELEMENT_I16, TIR_TENSOR_MAP_U16},   {TIR_ELEMENT_F16, TIR_TENSOR_MAP_F16},
        {TIR_ELEMENT_BF16, TIR_TENSOR_MAP_BF16}, {TIR_ELEMENT_I32, TIR_TENSOR_MAP_S32},
        {TIR_ELEMENT_U32, TIR_TENSOR_MAP_U32},   {TIR_ELEMENT_F32, TIR_TENSOR_MAP_F32},
        {TIR_ELEMENT_TF32, TIR_TENSOR_MAP_F32},  {TIR_ELEMENT_I64, TIR_TENSOR_MAP_S64},
        {TIR_ELEMENT_F64, TIR_TENSOR_MAP_F64},
    };
    struct rig *rig = *state;
    tir_artifact_variant variant = sample.kernels[0].variants[VARIANT_FAST];
    tir_artifact_map recipe = {.param = PARAM_A, .swizzle = 64, .box = {1}};
    tir_artifact_param params[5];
    struct gemm_args g;
    tir_tensor_map map;
    tir_rt_module *module;
    variant.facts = 0;
    variant.maps = &recipe;
    variant.map_count = 1;
    memcpy(params, sample.kernels[0].params, sizeof params);
    for (size_t i = 0; i < COUNT(types); i++) {
        recipe.box[1] = 16 / (tir_element_bits(types[i].element) / 8);
        params[PARAM_A].element = types[i].element;
        rig_gemm_args(&g);
        g.args[PARAM_A].as.tensor.element = types[i].element;
        tir_rt_kernel *k = rig_load_changed(rig, params, &variant, 1, &module);
        rig_ok(rig, tir_rt_launch(k, NULL, g.args, 5, NULL, &rig->error));
        rig_ok(rig, tir_tensor_map_decode(rig->fake->last.params + 128, &map, &rig->error));
        assert_int_equal(map.type, types[i].type);
        assert_int_equal(map.swizzle, TIR_TENSOR_MAP_SWIZZLE_64);
        assert_int_equal(map.strides[0], 128 * tir_element_bits(types[i].element) / 8);
        tir_rt_module_destroy(module);
    }
}

// What takes a variant with maps away, though it states no facts.
static void test_no_map(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    tir_rt_launch_report report;
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    tir_artifact_variant variants[2] = {sample.kernels[0].variants[VARIANT_FAST],
                                        sample.kernels[0].variants[VARIANT_ANY]};
    tir_rt_module *module;
    int64_t odd[2] = {129, 1}, across[2] = {1, 256}, back[2] = {-128, 1}, broadcast[2] = {0, 1};
    int64_t far[2] = {(int64_t)1 << 39, 1};
    variants[0].facts = 0;
    variants[0].when.count = 0;
    tir_rt_kernel *k = rig_load_changed(rig, NULL, variants, 2, &module);
    options.report = &report;
#define CASE(change, message)                                                                      \
    do {                                                                                           \
        rig_gemm_args(&g);                                                                         \
        change;                                                                                    \
        options.variant = -1;                                                                      \
        rig_ok(rig, tir_rt_launch(k, NULL, g.args, 5, &options, &rig->error));                     \
        assert_int_equal(report.variant, 1);                                                       \
        assert_int_equal(rig->fake->last.params_size, 112);                                        \
        options.variant = 0;                                                                       \
        rig_expect(rig, tir_rt_launch(k, NULL, g.args, 5, &options, &rig->error), TIR_ERR_INVALID, \
                   message);                                                                       \
    } while (0)
    CASE((g.a[1] = g.b[2] = 0), "A: dimension 1 is 0");
    CASE(g.args[PARAM_A].as.tensor.data += 8, "A: the address is no multiple of 16");
    CASE(g.args[PARAM_A].as.tensor.strides = odd, "A: the stride of dimension 0 is not positive");
    CASE(g.args[PARAM_A].as.tensor.strides = back, "A: the stride of dimension 0 is not positive");
    CASE(g.args[PARAM_A].as.tensor.strides = broadcast, "A: the stride of dimension 0");
    CASE(g.args[PARAM_A].as.tensor.strides = across, "A: the stride of dimension 1 is not 1");
    CASE(g.args[PARAM_A].as.tensor.strides = far, "A: the tensor map's strides[0]");
    CASE(g.args[PARAM_B].as.tensor.data += 2, "B: the address is no multiple of 16");
#undef CASE
    tir_rt_module_destroy(module);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_maps),
        TEST(test_pixel_map),
        TEST(test_map_types),
        TEST(test_no_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
