// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches: what reaches the driver, and every way in which arguments are refused.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "dlpack_abi.h"
#include "rig.h"

// The parameter block, byte for byte, and the shape of the launch.
static void test_what_the_driver_gets(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    tir_rt_launch_report report;
    rig_gemm_args(&g);
    rig_ok(rig, rig_launch(rig, &g, &report));
    struct {
        uint64_t a;
        int64_t a_strides[2];
        uint64_t b;
        int64_t b_strides[3];
        uint64_t d;
        int64_t d_strides[2];
        int32_t step;
        float scale;
        int64_t m, n, k;
    } want = {0x10000, {128, 1}, 0x100000000, {65536, 128, 1}, 0x100010000000, {512, 1}, 7, 0.5f,
              256,     512,      128};
    const struct fake_launch *last = &rig->fake->last;
    assert_memory_equal(last->params, &want, sizeof want);
    assert_int_equal(last->parts, 17); // addresses and strides, scalars, dimensions, maps
    assert_string_equal(last->function, "gemm_fast");
    assert_int_equal(last->grid[0], 4); // 2 x 2 tiles, fewer than 5 multiprocessors x 2
    assert_int_equal(last->cluster[0], 2);
    assert_int_equal(last->block[0], 256);
    assert_int_equal(last->shared_bytes, 98304);
    assert_null(last->stream);
    assert_int_equal(last->block[1] * last->block[2], 1);
    assert_int_equal(report.variant, VARIANT_FAST);
    assert_int_equal(report.launched, 1);
    assert_int_equal(report.grid[0], 4);
    assert_int_equal(rig->fake->max_dynamic_shared, 98304);
}

static void test_persistent_grid(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    rig_gemm_args(&g);
    g.a[0] = g.d[0] = 128 * 100;
    rig_ok(rig, rig_launch(rig, &g, NULL));
    assert_int_equal(rig->fake->last.grid[0], 10);
    g.a[0] = g.d[0] = 128; // one row of two tiles
    rig_ok(rig, rig_launch(rig, &g, NULL));
    assert_int_equal(rig->fake->last.grid[0], 2);
    g.b[1] = g.d[1] = 256; // one tile: a cluster of two all the same
    rig_ok(rig, rig_launch(rig, &g, NULL));
    assert_int_equal(rig->fake->last.grid[0], 2);
}

// ---- clusters

static void test_clusters(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    tir_rt_module *module;
    tir_artifact_variant variant = sample.kernels[0].variants[VARIANT_FAST];
    rig_gemm_args(&g);
    g.a[0] = g.d[0] = 128 * 100;
    // 5 multiprocessors x 2 CTAs are 5 clusters of 2, of which the device has room for 3.
    rig->fake->active_clusters = 3;
    tir_rt_kernel *k = rig_load_changed(rig, NULL, &variant, 1, &module);
    rig_ok(rig, tir_rt_launch(k, NULL, g.args, 5, NULL, &rig->error));
    assert_int_equal(rig->fake->last.grid[0], 6);
    tir_rt_module_destroy(module);
    // Across y: 2 clusters of 4 have 4 CTAs along x.
    variant.cluster[1] = 2;
    rig->fake->active_clusters = 64;
    k = rig_load_changed(rig, NULL, &variant, 1, &module);
    rig_ok(rig, tir_rt_launch(k, NULL, g.args, 5, NULL, &rig->error));
    assert_int_equal(rig->fake->last.grid[0], 4);
    assert_int_equal(rig->fake->last.grid[1], 2);
    assert_int_equal(rig->fake->last.cluster[1], 2);
    tir_rt_module_destroy(module);
    // A grid that is not persistent is what its formulas say.
    variant.cluster[1] = 1;
    variant.persistent = 0;
    k = rig_load_changed(rig, NULL, &variant, 1, &module);
    rig_ok(rig, tir_rt_launch(k, NULL, g.args, 5, NULL, &rig->error));
    assert_int_equal(rig->fake->last.grid[0], 200);
    rig_gemm_args(&g);
    g.a[0] = g.d[0] = 128;
    g.b[1] = g.d[1] = 256;
    rig_expect(rig, tir_rt_launch(k, NULL, g.args, 5, NULL, &rig->error), TIR_ERR_INVALID,
               "clusters of 2");
    tir_rt_module_destroy(module);
    variant.persistent = 1;
    rig->fake->active_clusters = 0;
    k = rig_load_changed(rig, NULL, &variant, 1, &module);
    rig_expect(rig, tir_rt_launch(k, NULL, g.args, 5, NULL, &rig->error), TIR_ERR_UNSUPPORTED,
               "gemm_fast: no cluster of 2 x 1 x 1 CTAs fits");
    tir_rt_module_destroy(module);
}

// Clusters that the device makes where it can, if the driver knows them: they divide the grid.
static void test_preferred_clusters(void **state)
{
    static const uint32_t none[3];
    struct rig *rig = *state;
    struct gemm_args g;
    tir_rt_module *module;
    tir_artifact_variant variant = sample.kernels[0].variants[VARIANT_FAST];
    variant.persistent = 0;
    variant.preferred[0] = 8;
    variant.preferred[1] = 2;
    variant.preferred[2] = 1;
    rig_gemm_args(&g);
    g.a[0] = g.d[0] = 128 * 100; // 200 x 1 CTAs
    tir_rt_kernel *k = rig_load_changed(rig, NULL, &variant, 1, &module);
    rig_expect(rig, tir_rt_launch(k, NULL, g.args, 5, NULL, &rig->error), TIR_ERR_INVALID,
               "a grid of 1 CTAs along y is not made of clusters of 2");
    tir_rt_module_destroy(module);
    variant.preferred[1] = 1;
    for (int version = 12080; version >= 12070; version -= 10) {
        rig_close(rig);
        rig->fake->version = version;
        rig_ok(rig, rig_open(rig));
        rig_gemm_args(&g);
        g.a[0] = g.d[0] = 128 * 100;
        k = rig_load_changed(rig, NULL, &variant, 1, &module);
        rig_ok(rig, tir_rt_launch(k, NULL, g.args, 5, NULL, &rig->error));
        const struct fake_launch *last = &rig->fake->last;
        assert_int_equal(last->cluster[0], 2);
        assert_memory_equal(last->preferred, version < 12080 ? none : variant.preferred,
                            sizeof none);
        tir_rt_module_destroy(module);
    }
}

// CTAs that wait for each other are launched together, or not at all.
static void test_cooperative(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    tir_rt_module *module;
    tir_artifact_variant variant = sample.kernels[0].variants[VARIANT_FAST];
    variant.persistent = 0;
    variant.cooperative = 1;
    rig_gemm_args(&g);
    g.a[0] = g.d[0] = 128 * 10;
    rig->fake->active_clusters = 10; // of 2 CTAs each
    tir_rt_kernel *k = rig_load_changed(rig, NULL, &variant, 1, &module);
    rig_ok(rig, tir_rt_launch(k, NULL, g.args, 5, NULL, &rig->error));
    assert_true(rig->fake->last.cooperative);
    assert_int_equal(rig->fake->last.grid[0], 20);
    assert_int_equal(rig->fake->last.cluster[0], 2);
    g.a[0] = g.d[0] = 128 * 11;
    rig_expect(rig, tir_rt_launch(k, NULL, g.args, 5, NULL, &rig->error), TIR_ERR_UNSUPPORTED,
               "its 22 x 1 x 1 CTAs wait for each other (grid_sync), but");
    tir_rt_module_destroy(module);
    // Without clusters: 5 multiprocessors of 2048 threads.
    memset(variant.cluster, 0, sizeof variant.cluster);
    k = rig_load_changed(rig, NULL, &variant, 1, &module);
    g.a[0] = g.d[0] = 128 * 20;
    rig_ok(rig, tir_rt_launch(k, NULL, g.args, 5, NULL, &rig->error));
    assert_true(rig->fake->last.cooperative);
    assert_int_equal(rig->fake->last.grid[0], 40);
    g.a[0] = g.d[0] = 128 * 21;
    rig_expect(rig, tir_rt_launch(k, NULL, g.args, 5, NULL, &rig->error), TIR_ERR_UNSUPPORTED,
               "runs 40 of them at a time");
    tir_rt_module_destroy(module);
    variant.cooperative = 0;
    k = rig_load_changed(rig, NULL, &variant, 1, &module);
    rig_ok(rig, tir_rt_launch(k, NULL, g.args, 5, NULL, &rig->error));
    assert_false(rig->fake->last.cooperative);
    tir_rt_module_destroy(module);
}

// A driver that does not count clusters: there is room for as many as for CTAs.
static void test_uncounted_clusters(void **state)
{
    struct rig rig = {.counting.countdown = -1, .fake = rig_fake(FAKE_CUDA)};
    struct gemm_args g;
    (void)state;
    rig.fake->missing = "cuOccupancyMaxActiveClusters";
    rig_ok(&rig, rig_open(&rig));
    rig_gemm_args(&g);
    g.a[0] = g.d[0] = 128 * 100;
    rig_ok(&rig, rig_launch(&rig, &g, NULL));
    assert_int_equal(rig.fake->last.grid[0], 10);
    rig_close(&rig);
}

// Each change takes the fast variant away.
static void test_variants(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    tir_rt_launch_report report;
    int64_t wide[2] = {136, 1}, odd[2] = {129, 1}, across[2] = {1, 256}, huge[2] = {1 << 23, 1};
#define CASE(change, picked)                       \
    do {                                           \
        rig_gemm_args(&g);                         \
        change;                                    \
        rig_ok(rig, rig_launch(rig, &g, &report)); \
        assert_int_equal(report.variant, picked);  \
    } while (0)
    CASE(g.args[PARAM_A].as.tensor.strides = wide, VARIANT_FAST);
    CASE(g.args[PARAM_A].as.tensor.strides = odd, VARIANT_WIDE);
    CASE(g.args[PARAM_A].as.tensor.strides = across, VARIANT_ANY);
    CASE(g.args[PARAM_A].as.tensor.data += 2, VARIANT_WIDE);
    CASE(g.a[1] = g.b[2] = 127, VARIANT_WIDE);
    CASE(g.a[1] = g.b[2] = 72, VARIANT_WIDE); // K % 64 != 0
    CASE(g.args[PARAM_A].as.tensor.strides = huge, VARIANT_WIDE);
    assert_int_equal(report.grid[1], 2);
    // An innermost extent of 1 counts as unit stride.
    CASE((g.args[PARAM_A].as.tensor.strides = across, g.a[1] = g.b[2] = 1), VARIANT_WIDE);
#undef CASE
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    options.report = &report;
    options.variant = VARIANT_ANY;
    rig_gemm_args(&g);
    rig_ok(rig, tir_rt_launch(rig->gemm, NULL, g.args, 5, &options, &rig->error));
    assert_int_equal(report.variant, VARIANT_ANY);
    g.args[PARAM_A].as.tensor.strides = odd;
    options.variant = VARIANT_FAST;
    rig_expect(rig, tir_rt_launch(rig->gemm, NULL, g.args, 5, &options, &rig->error),
               TIR_ERR_INVALID, "does not fit; a tensor is not aligned to 16 bytes");
    options.variant = 3;
    rig_expect(rig, tir_rt_launch(rig->gemm, NULL, g.args, 5, &options, &rig->error),
               TIR_ERR_INVALID, "no variant 3");
    options.variant = -2;
    rig_expect(rig, tir_rt_launch(rig->gemm, NULL, g.args, 5, &options, &rig->error),
               TIR_ERR_INVALID, "no variant -2");
    options.struct_size = 4;
    rig_expect(rig, tir_rt_launch(rig->gemm, NULL, g.args, 5, &options, &rig->error),
               TIR_ERR_INVALID, "struct_size");
}

// What was measured for a device and sizes wins, as long as it fits the other arguments.
static void test_tuned(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    tir_rt_launch_report report;
    int64_t across[2] = {1, 256};
#define CASE(change, picked, is_tuned)             \
    do {                                           \
        rig_gemm_args(&g);                         \
        g.a[1] = g.b[2] = 64;                      \
        change;                                    \
        rig_ok(rig, rig_launch(rig, &g, &report)); \
        assert_int_equal(report.variant, picked);  \
        assert_int_equal(report.tuned, is_tuned);  \
    } while (0)
    CASE((void)0, VARIANT_WIDE, 1);
    CASE((g.a[0] = g.d[0] = 16, g.a[1] = g.b[2] = 128), VARIANT_FAST, 1);
    CASE((g.b[1] = g.d[1] = 16, g.a[1] = g.b[2] = 4096), VARIANT_WIDE, 1);
    CASE(g.a[1] = g.b[2] = 128, VARIANT_FAST, 0);
    CASE(g.b[1] = g.d[1] = 256, VARIANT_FAST, 0);
    CASE(g.a[0] = g.d[0] = 512, VARIANT_FAST, 0);
    CASE(g.a[0] = g.d[0] = 8, VARIANT_FAST, 0);
    CASE(g.args[PARAM_A].as.tensor.strides = across, VARIANT_ANY, 0);
#undef CASE
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    options.report = &report;
    options.variant = VARIANT_ANY; // what the caller asks for wins
    rig_gemm_args(&g);
    g.a[1] = g.b[2] = 64;
    rig_ok(rig, tir_rt_launch(rig->gemm, NULL, g.args, 5, &options, &rig->error));
    assert_int_equal(report.variant, VARIANT_ANY);
    assert_int_equal(report.tuned, 0);
}

// A table for another card does not count, nor one for another number of multiprocessors.
static void test_tuned_elsewhere(void **state)
{
    struct rig *rig = *state;
    const struct {
        tir_str device;
        uint32_t multiprocessors, picked;
    } rows[] = {{TEXT("Fake GPU 0"), 5, VARIANT_WIDE},
                {TEXT("Fake GPU 0"), 6, VARIANT_FAST},
                {TEXT("Fake GPU"), 5, VARIANT_FAST},
                {TEXT("Fake GPU 0 PCIe"), 5, VARIANT_FAST}};
    for (uint32_t i = 0; i < COUNT(rows); i++) {
        struct gemm_args g;
        tir_artifact_tuned tuned = sample.kernels[0].tuned[1];
        tir_artifact_kernel kernel = sample.kernels[0];
        tuned.device = rows[i].device;
        tuned.multiprocessors = rows[i].multiprocessors;
        kernel.tuned = &tuned;
        kernel.tuned_count = 1;
        tir_rt_module *module;
        tir_rt_kernel *k = rig_load(rig, &kernel, &module);
        tir_rt_launch_report report;
        tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
        options.report = &report;
        rig_gemm_args(&g);
        g.a[1] = g.b[2] = 64;
        rig_ok(rig, tir_rt_launch(k, NULL, g.args, 5, &options, &rig->error));
        assert_int_equal(report.variant, rows[i].picked);
        tir_rt_module_destroy(module);
    }
}

// The limit of 32-bit indexing lies at 2^31 bytes.
static void test_index32_limit(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    tir_rt_launch_report report;
    int64_t strides[2] = {0, 1};
    rig_gemm_args(&g);
    g.args[PARAM_A].as.tensor.strides = strides;
    // The last row starts at 255 strides and is 128 elements of 2 bytes.
    strides[0] = (((int64_t)1 << 30) - 128) / 255 / 8 * 8;
    rig_ok(rig, rig_launch(rig, &g, &report));
    assert_int_equal(report.variant, VARIANT_FAST);
    strides[0] += 8;
    rig_ok(rig, rig_launch(rig, &g, &report));
    assert_int_equal(report.variant, VARIANT_WIDE);
    strides[0] = -strides[0]; // the magnitude counts
    rig_ok(rig, rig_launch(rig, &g, &report));
    assert_int_equal(report.variant, VARIANT_WIDE);
}

static void test_refusals(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    int64_t zero[2] = {0, 1}, far[2] = {INT64_MAX, 1}, low[2] = {INT64_MIN, 1};
#define CASE(change, part)                                                 \
    do {                                                                   \
        rig_gemm_args(&g);                                                 \
        change;                                                            \
        rig_expect(rig, rig_launch(rig, &g, NULL), TIR_ERR_INVALID, part); \
    } while (0)
    CASE(g.b[2] = 65, "dimension K: A has 128, B has 65");
    CASE(g.d[0] = 3, "dimension M: A has 256, D has 3");
    CASE(g.b[0] = 5, "B: dimension 0 must be 4, not 5");
    CASE(g.a[0] = -1, "A: dimension 0 is negative");
    CASE(g.args[PARAM_A].as.tensor.element = TIR_ELEMENT_F16,
         "A: element type must be bf16, not f16");
    CASE(g.args[PARAM_B].as.tensor.rank = 2, "B: rank must be 3, not 2");
    CASE(g.args[PARAM_A].as.tensor.shape = NULL, "A: the shape is NULL");
    CASE(g.args[PARAM_A].as.tensor.data = 0, "A: the data address is 0");
    CASE(g.args[PARAM_A].as.tensor.data = 0x10001, "0x10001 is not aligned to 2 bytes");
    CASE(g.args[PARAM_D].as.tensor.strides = zero, "D: an output cannot have stride 0");
    CASE(g.args[PARAM_A].as.tensor.strides = far, "A: the tensor spans");
    CASE(g.args[PARAM_A].as.tensor.strides = low, "A: the tensor spans");
    CASE((g.a[0] = g.d[0] = INT64_MAX), "A: the tensor has more than 2^63 elements");
    CASE((g.a[0] = g.d[0] = TIR_MAX_EXTENT + 1), "A: dimension 0 is 281474976710657, more than");
    CASE(g.args[PARAM_A] = g.args[PARAM_STEP], "A: a tensor is needed, not a scalar");
    CASE(g.args[PARAM_STEP] = g.args[PARAM_A], "step: a scalar is needed, not a tensor");
    CASE(g.args[PARAM_A].kind = (tir_rt_arg_kind)9, "A: the argument is of no known kind");
    CASE(g.args[PARAM_STEP].as.scalar.element = TIR_ELEMENT_I64, "step: type must be i32, not i64");
    CASE(g.args[PARAM_STEP].as.scalar.value.i = INT32_MAX + (int64_t)1, "step: the value does not");
    CASE(g.args[PARAM_SCALE].as.scalar.value.f = 1e300, "scale: the value does not fit f32");
    CASE(g.args[PARAM_STEP].as.scalar.value.i = 0, "gemm needs step > 0");
    CASE((g.args[PARAM_A].as.tensor.data += 2, g.b[1] = g.d[1] = 65536 * 256),
         "a grid of 65536 CTAs along y");
#undef CASE
    rig_gemm_args(&g);
    rig_expect(rig, tir_rt_launch(rig->gemm, NULL, g.args, 4, NULL, &rig->error), TIR_ERR_INVALID,
               "gemm needs 5 arguments, not 4");
    assert_int_equal(rig->fake->launches, 0);
    // An input may be broadcast, and infinity is a float.
    g.args[PARAM_A].as.tensor.strides = zero;
    g.args[PARAM_SCALE].as.scalar.value.f = (double)INFINITY;
    rig_ok(rig, rig_launch(rig, &g, NULL));
    assert_int_equal(rig->fake->launches, 1);
}

// The kernel writes D. Parts of one matrix are apart although their bounds are not.
static void test_shared_memory(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    int64_t halves[2] = {1024, 1}, every_other[2] = {1024, 2}; // of D
    int64_t other_halves[2] = {2048, 1},
            in_between[2] = {2048, 4}; // of A, whose elements are smaller
    int64_t diagonal[2] = {1, 1}, back[2] = {-512, -1};
    uint32_t launches = 0;
#define REFUSED(change, part)                                              \
    do {                                                                   \
        rig_gemm_args(&g);                                                 \
        change;                                                            \
        rig_expect(rig, rig_launch(rig, &g, NULL), TIR_ERR_INVALID, part); \
        assert_int_equal(rig->fake->launches, launches);                   \
    } while (0)
#define TAKEN(change)                                      \
    do {                                                   \
        rig_gemm_args(&g);                                 \
        change;                                            \
        rig_ok(rig, rig_launch(rig, &g, NULL));            \
        assert_int_equal(rig->fake->launches, ++launches); \
    } while (0)
    tir_rt_tensor *a = &g.args[PARAM_A].as.tensor, *b = &g.args[PARAM_B].as.tensor;
    tir_rt_tensor *d = &g.args[PARAM_D].as.tensor;
    const uint64_t a_bytes = 256 * 128 * 2, d_bytes = 256 * 512 * 4;
    REFUSED(d->data = a->data, "A and D share memory, and the kernel writes D");
    REFUSED(d->data = b->data + 512, "B and D share memory, and the kernel writes D");
    REFUSED(d->data = a->data + a_bytes - 4, "A and D share memory");
    REFUSED(a->data = d->data + d_bytes - 2, "A and D share memory");
    TAKEN(d->data = a->data + a_bytes);
    TAKEN(a->data = d->data + d_bytes);
    TAKEN(a->data = b->data); // both are read
    REFUSED(d->strides = diagonal, "D: elements of an output share memory");
    TAKEN((d->strides = halves, a->strides = other_halves, a->data = d->data + 512 * 4));
    REFUSED((d->strides = halves, a->strides = other_halves, a->data = d->data + 512 * 4 - 2),
            "A and D share memory");
    TAKEN((d->strides = every_other, a->strides = in_between, a->data = d->data + 4));
    REFUSED((d->strides = every_other, a->strides = in_between, a->data = d->data + 2),
            "A and D share memory");
    REFUSED((d->strides = back, a->data = d->data), "A and D share memory");
    TAKEN((d->strides = back, a->data = d->data + 16));
    // Without elements there is nothing to share.
    TAKEN((g.a[1] = g.b[2] = 0, a->data = b->data = d->data));
#undef REFUSED
#undef TAKEN
}

static void test_empty(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    tir_rt_launch_report report;
    rig_gemm_args(&g);
    g.a[0] = g.d[0] = 0;
    g.args[PARAM_A].as.tensor.data = g.args[PARAM_D].as.tensor.data = 0;
    rig_ok(rig, rig_launch(rig, &g, &report));
    assert_int_equal(report.launched, 0);
    assert_int_equal(rig->fake->launches, 0);
    // Empty does not mean unchecked.
    g.b[2] = 3;
    rig_expect(rig, rig_launch(rig, &g, NULL), TIR_ERR_INVALID, "dimension K");
    // With K = 0 there is an output to write.
    rig_gemm_args(&g);
    g.a[1] = g.b[2] = 0;
    g.args[PARAM_A].as.tensor.data = g.args[PARAM_B].as.tensor.data = 0;
    rig_ok(rig, rig_launch(rig, &g, &report));
    assert_int_equal(report.launched, 1);
}

// ---- DLPack

static struct dl_tensor dl_a(int64_t shape[2])
{
    return (struct dl_tensor){
        .data = (void *)(uintptr_t)0xff00,
        .device_type = DL_DEVICE_CUDA,
        .rank = 2,
        .type_code = DL_TYPE_BFLOAT,
        .type_bits = 16,
        .type_lanes = 1,
        .shape = shape,
        .byte_offset = 0x100,
    };
}

static void test_dlpack(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g, plain;
    rig_gemm_args(&g);
    rig_gemm_args(&plain);
    struct dl_tensor tensor = dl_a(g.a);
    g.args[PARAM_A].kind = TIR_RT_DLPACK;
    g.args[PARAM_A].as.dlpack = &tensor;
    rig_ok(rig, rig_launch(rig, &plain, NULL));
    struct fake_launch want = rig->fake->last;
    rig_ok(rig, rig_launch(rig, &g, NULL));
    assert_memory_equal(want.params, rig->fake->last.params, want.params_size);
    tensor.device_type = DL_DEVICE_CUDA_MANAGED;
    rig_ok(rig, rig_launch(rig, &g, NULL));

    struct dl_managed_versioned managed = {.version_major = 1, .tensor = dl_a(g.a)};
    g.args[PARAM_A].kind = TIR_RT_DLPACK_VERSIONED;
    g.args[PARAM_A].as.dlpack = &managed;
    managed.flags = DL_FLAG_READ_ONLY;
    rig_ok(rig, rig_launch(rig, &g, NULL));
    assert_memory_equal(want.params, rig->fake->last.params, want.params_size);
    managed.version_major = 2;
    rig_expect(rig, rig_launch(rig, &g, NULL), TIR_ERR_INVALID,
               "A: the DLPack tensor is not of vers");
}

static void test_dlpack_refusals(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    struct dl_tensor tensor;
#define CASE(change, part)                                                 \
    do {                                                                   \
        rig_gemm_args(&g);                                                 \
        tensor = dl_a(g.a);                                                \
        g.args[PARAM_A].kind = TIR_RT_DLPACK;                              \
        g.args[PARAM_A].as.dlpack = &tensor;                               \
        change;                                                            \
        rig_expect(rig, rig_launch(rig, &g, NULL), TIR_ERR_INVALID, part); \
    } while (0)
    CASE(g.args[PARAM_A].as.dlpack = NULL, "A: the DLPack tensor is NULL");
    CASE(tensor.device_type = 1, "A: the DLPack tensor is not in memory of this device");
    CASE(tensor.device_type = DL_DEVICE_EXT_DEV, "not in memory of this device");
    CASE(tensor.device_id = 1, "not in memory of this device");
    CASE(tensor.type_code = 5, "an element type that tir does not know");
    CASE(tensor.type_lanes = 2, "an element type that tir does not know");
    CASE(tensor.type_bits = 32, "an element type that tir does not know");
    CASE(tensor.type_code = DL_TYPE_FLOAT, "A: element type must be bf16, not f16");
    CASE(tensor.rank = -1, "A: the DLPack tensor has a negative rank");
    CASE(tensor.rank = 3, "A: rank must be 2, not 3");
    CASE(tensor.byte_offset = 1, "not aligned");
    CASE(tensor.data = NULL, "A: the data address is 0");
#undef CASE
    rig_gemm_args(&g);
    struct dl_managed_versioned managed = {.version_major = 1, .tensor = dl_a(g.d)};
    managed.flags = DL_FLAG_READ_ONLY;
    managed.tensor.type_code = DL_TYPE_FLOAT;
    managed.tensor.type_bits = 32;
    g.args[PARAM_D].kind = TIR_RT_DLPACK_VERSIONED;
    g.args[PARAM_D].as.dlpack = &managed;
    rig_expect(rig, rig_launch(rig, &g, NULL), TIR_ERR_INVALID,
               "D: a read-only tensor cannot be an");
}

// ---- other parameter types

// A kernel with one parameter of each kind of scalar, and tensors of odd sizes.
static void test_scalar_types(void **state)
{
    struct rig *rig = *state;
    static const tir_element types[] = {
        TIR_ELEMENT_I8,  TIR_ELEMENT_U16, TIR_ELEMENT_U64,  TIR_ELEMENT_BOOL,
        TIR_ELEMENT_F64, TIR_ELEMENT_F16, TIR_ELEMENT_TF32, TIR_ELEMENT_E4M3,
    };
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    tir_artifact_param params[9] = {{{0}}};
    tir_rt_arg args[9];
    for (int i = 0; i < 8; i++)
        params[i] = (tir_artifact_param){
            .name = {names[i], 1}, .kind = TIR_PARAM_SCALAR, .element = types[i]};
    params[8] = (tir_artifact_param){.name = {"X", 1}, .element = TIR_ELEMENT_E2M1, .rank = 1};
    const tir_str dims[] = {{"n", 1}};
    const tir_artifact_variant variants[] = {
        {.entry = {"gemm_any", 8},
         .facts = TIR_FACT_VECTOR16,
         .threads = 32,
         .grid = {FORMULA(SCALAR(2), CONST(3), DO(MIN)), FORMULA(CONST(1)), FORMULA(CONST(1))}}};
    const tir_artifact_kernel kernel = {.name = {"k", 1},
                                        .dims = dims,
                                        .dim_count = 1,
                                        .params = params,
                                        .param_count = 9,
                                        .variants = variants,
                                        .variant_count = 1};
    tir_rt_module *module;
    tir_rt_kernel *k = rig_load(rig, &kernel, &module);
    assert_non_null(k);
    args[0] = tir_rt_arg_int(TIR_ELEMENT_I8, -128);
    args[1] = tir_rt_arg_int(TIR_ELEMENT_U16, 65535);
    args[2] = tir_rt_arg_int(TIR_ELEMENT_U64, -1); // 2^64 - 1
    args[3] = tir_rt_arg_int(TIR_ELEMENT_BOOL, 1);
    args[4] = tir_rt_arg_float(TIR_ELEMENT_F64, 1e300);
    args[5] = tir_rt_arg_int(TIR_ELEMENT_F16, 0x3c00);
    args[6] = tir_rt_arg_float(TIR_ELEMENT_F32, 2.0);
    args[7] = tir_rt_arg_int(TIR_ELEMENT_E4M3, 0x38);
    const int64_t n = 64;
    args[8] = tir_rt_arg_tensor(0x10, TIR_ELEMENT_E2M1, 1, &n, NULL);
    rig_ok(rig, tir_rt_launch(k, NULL, args, 9, NULL, &rig->error));
    // i8 at 0, u16 at 2, u64 at 8, bool at 16, f64 at 24, f16 at 32, tf32 at 36, e4m3 at 40, X at
    // 48
    const uint8_t *got = rig->fake->last.params;
    static const uint8_t head[] = {0x80}, u16[] = {0xff, 0xff}, f16[] = {0, 0x3c}, e4m3[] = {0x38};
    const double f64 = 1e300;
    const float tf32 = 2.0f;
    const uint64_t tail[] = {0x10, 1, 64};
    assert_memory_equal(got, head, 1);
    assert_memory_equal(got + 2, u16, 2);
    assert_int_equal(got[16], 1);
    assert_memory_equal(got + 24, &f64, 8);
    assert_memory_equal(got + 32, f16, 2);
    assert_memory_equal(got + 36, &tf32, 4);
    assert_memory_equal(got + 40, e4m3, 1);
    assert_memory_equal(got + 48, tail, sizeof tail);
    assert_int_equal(rig->fake->last.params_size, 72);
    assert_int_equal(rig->fake->last.grid[0], 3); // 2^64 - 1 counts as a large value, not as -1
    const int64_t odd = 48;                       // 24 bytes: no multiple of 16
    args[8].as.tensor.shape = &odd;
    rig_expect(rig, tir_rt_launch(k, NULL, args, 9, NULL, &rig->error), TIR_ERR_INVALID,
               "no variant fits");
    args[3].as.scalar.value.i = 2;
    rig_expect(rig, tir_rt_launch(k, NULL, args, 9, NULL, &rig->error), TIR_ERR_INVALID,
               "d: the value does not fit bool");
    args[3].as.scalar.value.i = 0;
    args[0].as.scalar.value.i = 128;
    rig_expect(rig, tir_rt_launch(k, NULL, args, 9, NULL, &rig->error), TIR_ERR_INVALID,
               "a: the v");
    tir_rt_module_destroy(module);
}

// A kernel whose launches take variant 0 where that may run, and 1 elsewhere.
static tir_rt_kernel *load_fast_or_any(struct rig *rig, tir_artifact_kernel kernel,
                                       tir_artifact_variant fast, tir_rt_module **module)
{
    const tir_formula one = FORMULA(CONST(1));
    tir_artifact_variant variants[] = {fast, {.entry = {"gemm_any", 8}}};
    variants[0].entry = (tir_str){"gemm_fast", 9};
    for (uint32_t i = 0; i < 2; i++) {
        variants[i].threads = 32;
        for (uint32_t d = 0; d < 3; d++)
            variants[i].grid[d] = one;
    }
    kernel.name = (tir_str){"k", 1};
    kernel.variants = variants;
    kernel.variant_count = 2;
    return rig_load(rig, &kernel, module);
}

// The constant innermost extent of a tensor is the compiler's business: it does not keep a launch
// from the variant with the fact, where a named one does.
static void test_constant_extents(void **state)
{
    struct rig *rig = *state;
    const tir_str dims[] = {{"n", 1}};
    const tir_artifact_param params[] = {
        {.name = {"X", 1}, .element = TIR_ELEMENT_F32, .rank = 1, .extents = {{.dim = 0}}},
        {.name = {"Y", 1},
         .element = TIR_ELEMENT_F32,
         .rank = 1,
         .extents = {{.dim = TIR_EXTENT_FIXED, .fixed = 5}}},
    };
    const tir_artifact_kernel kernel = {
        .dims = dims, .dim_count = 1, .params = params, .param_count = 2};
    const tir_artifact_variant fast = {.facts = TIR_FACT_VECTOR16};
    tir_rt_module *module;
    tir_rt_kernel *k = load_fast_or_any(rig, kernel, fast, &module);
    assert_non_null(k);
    tir_rt_launch_report report;
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    options.report = &report;
    for (int64_t n = 4; n <= 5; n++) {
        const int64_t fixed = 5;
        const tir_rt_arg args[] = {tir_rt_arg_tensor(0x100, TIR_ELEMENT_F32, 1, &n, NULL),
                                   tir_rt_arg_tensor(0x200, TIR_ELEMENT_F32, 1, &fixed, NULL)};
        rig_ok(rig, tir_rt_launch(k, NULL, args, 2, &options, &rig->error));
        assert_int_equal(report.variant, n == 4 ? 0 : 1);
    }
    tir_rt_module_destroy(module);
}

// Sizes beside a 0 may be any.
static void test_large_and_empty(void **state)
{
    struct rig *rig = *state;
    const tir_str dims[] = {{"a", 1}, {"b", 1}, {"c", 1}};
    const tir_artifact_param params[] = {{.name = {"X", 1},
                                          .element = TIR_ELEMENT_F32,
                                          .rank = 3,
                                          .extents = {{.dim = 0}, {.dim = 1}, {.dim = 2}}}};
    const tir_artifact_kernel kernel = {
        .dims = dims, .dim_count = 3, .params = params, .param_count = 1};
    tir_rt_module *module;
    tir_rt_kernel *k = load_fast_or_any(rig, kernel, (tir_artifact_variant){.facts = 0}, &module);
    assert_non_null(k);
    for (uint32_t empty = 0; empty < 3; empty++) {
        int64_t shape[] = {INT64_C(1) << 40, INT64_C(1) << 40, INT64_C(1) << 40};
        shape[empty] = 0;
        const tir_rt_arg arg = tir_rt_arg_tensor(0x100, TIR_ELEMENT_F32, 3, shape, NULL);
        rig_ok(rig, tir_rt_launch(k, NULL, &arg, 1, NULL, &rig->error));
    }
    tir_rt_module_destroy(module);
}

// BEGIN asks for where rows begin, whatever their length.
static void test_beginnings(void **state)
{
    struct rig *rig = *state;
    const tir_str dims[] = {{"m", 1}, {"n", 1}};
    const tir_artifact_param params[] = {{.name = {"X", 1},
                                          .element = TIR_ELEMENT_F32,
                                          .rank = 2,
                                          .extents = {{.dim = 0}, {.dim = 1}}}};
    const tir_artifact_kernel kernel = {
        .dims = dims, .dim_count = 2, .params = params, .param_count = 1};
    const tir_artifact_variant fast = {.when = FORMULA({TIR_FORMULA_BEGIN, 0}, CONST(16), DO(GE))};
    tir_rt_module *module;
    tir_rt_kernel *k = load_fast_or_any(rig, kernel, fast, &module);
    assert_non_null(k);
    tir_rt_launch_report report;
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    options.report = &report;
    static const struct {
        uint64_t data;
        int64_t strides[2];
        uint32_t variant;
    } cases[] = {{0x100, {8, 1}, 0}, {0x110, {8, 1}, 0}, {0x104, {8, 1}, 1},
                 {0x108, {8, 1}, 1}, {0x100, {5, 1}, 1}, {0x100, {12, 2}, 1}};
    const int64_t shape[] = {3, 5};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const tir_rt_arg arg =
            tir_rt_arg_tensor(cases[i].data, TIR_ELEMENT_F32, 2, shape, cases[i].strides);
        rig_ok(rig, tir_rt_launch(k, NULL, &arg, 1, &options, &rig->error));
        assert_int_equal(report.variant, cases[i].variant);
    }
    tir_rt_module_destroy(module);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_what_the_driver_gets),
        TEST(test_persistent_grid),
        TEST(test_clusters),
        TEST(test_preferred_clusters),
        TEST(test_cooperative),
        cmocka_unit_test(test_uncounted_clusters),
        TEST(test_variants),
        TEST(test_tuned),
        TEST(test_tuned_elsewhere),
        TEST(test_constant_extents),
        TEST(test_large_and_empty),
        TEST(test_beginnings),
        TEST(test_index32_limit),
        TEST(test_refusals),
        TEST(test_shared_memory),
        TEST(test_empty),
        TEST(test_dlpack),
        TEST(test_dlpack_refusals),
        TEST(test_scalar_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
