// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches like earlier ones: the driver gets what it would get from a kernel that has not been
// launched before, and what must be refused is refused.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "plan.h"
#include "rig.h"
#include "tir/tensor_map.h"

// What a launch came to.
struct outcome {
    tir_status status;
    char message[sizeof((tir_error *)NULL)->message];
    struct fake_launch launch;
    tir_rt_launch_report report;
    uint32_t launches;
};

static struct outcome try(struct rig *rig, tir_rt_kernel *kernel, const tir_rt_arg *args,
                          uint32_t count, int32_t variant)
{
    struct outcome o;
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    memset(&o, 0, sizeof o);
    options.variant = variant;
    options.report = &o.report;
    rig->error.message[0] = 0;
    memset(&rig->fake->last, 0, sizeof rig->fake->last);
    const uint32_t before = rig->fake->launches;
    o.status = tir_rt_launch(kernel, NULL, args, count, &options, &rig->error);
    if (o.status)
        memcpy(o.message, rig->error.message, sizeof o.message);
    o.launch = rig->fake->last;
    o.launches = rig->fake->launches - before;
    return o;
}

// Whether the parameters are the same: those of all variants, and tensor maps. What lies between
// them is nothing, and a watchdog's pages are the module's own.
static bool same_params(const tir_rt_kernel *kernel, uint32_t number, const struct fake_launch *a,
                        const struct fake_launch *b)
{
    const tir_artifact_kernel *info = tir_rt_kernel_describe(kernel);
    tir_artifact_variant variant = info->variants[number];
    variant.watchdog = 0;
    const size_t end = tir_artifact_param_bytes(info, &variant);
    const size_t maps = (size_t)variant.map_count * TIR_TENSOR_MAP_BYTES;
    variant.map_count = 0;
    const size_t base = tir_artifact_param_bytes(info, &variant);
    return memcmp(a->params, b->params, base) == 0 &&
           memcmp(a->params + end - maps, b->params + end - maps, maps) == 0;
}

static void expect_same(const tir_rt_kernel *kernel, const struct outcome *warm,
                        const struct outcome *cold, const char *what)
{
    if (warm->status != cold->status || strcmp(warm->message, cold->message) != 0)
        fail_msg("%s: %s '%s' and not %s '%s'", what, tir_status_name(warm->status), warm->message,
                 tir_status_name(cold->status), cold->message);
    if (warm->launches != cold->launches ||
        memcmp(&warm->report, &cold->report, sizeof warm->report) != 0)
        fail_msg("%s: another variant, grid or number of launches", what);
    const struct fake_launch *a = &warm->launch, *b = &cold->launch;
    if (warm->status || !warm->launches)
        return;
    if (strcmp(a->function, b->function) != 0 || memcmp(a->grid, b->grid, sizeof a->grid) != 0 ||
        memcmp(a->block, b->block, sizeof a->block) != 0 ||
        memcmp(a->cluster, b->cluster, sizeof a->cluster) != 0 ||
        a->shared_bytes != b->shared_bytes || a->params_size != b->params_size ||
        a->parts != b->parts)
        fail_msg("%s: another launch", what);
    if (!same_params(kernel, warm->report.variant, a, b))
        fail_msg("%s: other parameters", what);
}

// The launch twice on a kernel that has seen others, and once on one that has not.
static void compare(struct rig *rig, const char *name, const tir_rt_arg *args, uint32_t count,
                    int32_t variant, const char *what)
{
    const tir_str text = {name, strlen(name)};
    tir_rt_module *module;
    tir_rt_kernel *warm, *cold;
    size_t size;
    uint8_t *bytes = rig_artifact(&sample, &size);
    rig_ok(rig, tir_rt_module_load(rig->device, bytes, size, &module, &rig->error));
    rig_ok(rig, tir_rt_module_kernel(module, text, &cold, &rig->error));
    rig_ok(rig, tir_rt_module_kernel(rig->module, text, &warm, &rig->error));
    const struct outcome want = try(rig, cold, args, count, variant);
    for (int i = 0; i < 2; i++) {
        const struct outcome got = try(rig, warm, args, count, variant);
        expect_same(warm, &got, &want, what);
    }
    tir_rt_module_destroy(module);
    free(bytes);
}

static void test_same_as_the_first(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    static int64_t wide[2] = {1024, 1}, odd[2] = {129, 1}, back[2] = {-512, -1},
                   dense[2] = {128, 1};
#define SAME(change)                                  \
    do {                                              \
        rig_gemm_args(&g);                            \
        change;                                       \
        compare(rig, "gemm", g.args, 5, -1, #change); \
    } while (0)
    tir_rt_tensor *a = &g.args[PARAM_A].as.tensor, *b = &g.args[PARAM_B].as.tensor;
    tir_rt_tensor *d = &g.args[PARAM_D].as.tensor;
    SAME((void)0);
    // Addresses: of the same alignment, of others, and none.
    SAME(a->data += 4096);
    SAME((a->data += 16, b->data += 1 << 20, d->data += 256));
    SAME(a->data = 0x7ffff000000);
    SAME(a->data += 8);
    SAME(b->data += 2);
    SAME(d->data += 4);
    SAME(a->data += 1);
    SAME(a->data = 0);
    SAME(d->data = (uint64_t)1 << 57);
    SAME(a->data = UINT64_MAX - 15);
    SAME(a->data = 16);
    SAME(a->data = b->data);
    // Memory that is shared with the output, and that looks so.
    SAME(d->data = a->data);
    SAME(a->data = d->data);
    SAME(a->data = d->data + 256 * 512 * 4);
    SAME(a->data = d->data + 256 * 512 * 4 - 16);
    SAME((d->strides = wide, a->strides = wide, a->data = d->data + 512 * 4));
    // Shapes and strides.
    SAME(g.a[0] = g.d[0] = 128 * 100);
    SAME(g.a[0] = 255);
    SAME(g.a[1] = g.b[2] = 100);
    SAME(g.a[1] = g.b[2] = 64);
    SAME(g.a[1] = g.b[2] = 0);
    SAME(g.a[0] = g.d[0] = 0);
    SAME(a->strides = dense);
    SAME(a->strides = odd);
    SAME(a->strides = wide);
    SAME(d->strides = back);
    SAME(g.b[0] = 5);
    // Scalars: one that a condition asks for, one that nothing does.
    SAME(g.args[PARAM_STEP].as.scalar.value.i = 8);
    SAME(g.args[PARAM_STEP].as.scalar.value.i = 0);
    SAME(g.args[PARAM_STEP].as.scalar.value.i = (int64_t)1 << 40);
    SAME(g.args[PARAM_SCALE].as.scalar.value.f = 0.25);
    SAME(g.args[PARAM_SCALE].as.scalar.value.f = 1e300);
    // Types.
    SAME(g.args[PARAM_STEP].as.scalar.element = TIR_ELEMENT_I64);
    SAME(g.args[PARAM_STEP] = g.args[PARAM_A]);
    SAME(g.args[PARAM_A] = g.args[PARAM_STEP]);
    SAME(a->element = TIR_ELEMENT_F16);
    SAME(a->rank = 3);
    SAME(a->shape = NULL);
#undef SAME
    rig_gemm_args(&g);
    compare(rig, "gemm", g.args, 4, -1, "too few arguments");
    for (int32_t variant = 0; variant < 4; variant++)
        compare(rig, "gemm", g.args, 5, variant, "a given variant");
    compare(rig, "gemm", g.args, 5, -1, "the first again");
}

// The sample's gemm with a variant for tensors that are aligned to 32 bytes.
static void load_aligned(struct rig *rig, tir_rt_module **module, tir_rt_kernel **kernel)
{
    tir_artifact_desc desc = sample;
    tir_artifact_kernel kernels[KERNEL_STEP + 1];
    tir_artifact_variant variants[VARIANT_ANY + 1];
    memcpy(kernels, sample.kernels, sizeof kernels);
    memcpy(variants, kernels[KERNEL_GEMM].variants, sizeof variants);
    variants[VARIANT_FAST].when =
        (tir_formula)FORMULA({TIR_FORMULA_ALIGN, PARAM_A}, CONST(32), DO(GE));
    kernels[KERNEL_GEMM].variants = variants;
    desc.kernels = kernels;
    size_t size;
    uint8_t *bytes = rig_artifact(&desc, &size);
    rig_ok(rig, tir_rt_module_load(rig->device, bytes, size, module, &rig->error));
    rig_ok(rig, tir_rt_module_kernel(*module, TEXT("gemm"), kernel, &rig->error));
    free(bytes);
}

static void test_alignments(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    tir_rt_module *module;
    tir_rt_kernel *gemm;
    load_aligned(rig, &module, &gemm);
    rig_gemm_args(&g);
    for (int i = 0; i < 4; i++) {
        const struct outcome o = try(rig, gemm, g.args, 5, -1);
        assert_int_equal(o.status, TIR_OK);
        assert_int_equal(o.report.variant == VARIANT_FAST, i % 2 == 0);
        g.args[PARAM_A].as.tensor.data ^= 16;
    }
    tir_rt_module_destroy(module);
}

// More shapes than are remembered, again and again.
static void test_many_shapes(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    tir_rt_launch_report report;
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    options.report = &report;
    for (int round = 0; round < 3; round++)
        for (int64_t i = 1; i <= 3 * TIR_PLAN_SLOTS; i++) {
            rig_gemm_args(&g);
            g.a[0] = g.d[0] = i * 8;
            g.args[PARAM_A].as.tensor.data += (uint64_t)round << 16;
            rig_ok(rig, tir_rt_launch(rig->gemm, NULL, g.args, 5, &options, &rig->error));
            const int64_t tiles = (i * 8 + 127) / 128 * 2;
            assert_int_equal(report.grid[0], tiles < 10 ? tiles : 10);
            int64_t m;
            uint64_t data;
            memcpy(&m, rig->fake->last.params + 88, sizeof m);
            memcpy(&data, rig->fake->last.params, sizeof data);
            assert_int_equal(m, i * 8);
            assert_int_equal(data, g.args[PARAM_A].as.tensor.data);
        }
}

// What is remembered takes no memory but the first time.
static void test_allocates_nothing(void **state)
{
    struct rig *rig = *state;
    struct gemm_args g;
    rig_gemm_args(&g);
    rig_ok(rig, tir_rt_launch(rig->gemm, NULL, g.args, 5, NULL, &rig->error));
    const size_t live = rig->counting.live;
    rig->counting.countdown = 1; // the next allocation fails
    const int calls = rig->fake->calls;
    g.args[PARAM_A].as.tensor.data += 1 << 16;
    rig_ok(rig, tir_rt_launch(rig->gemm, NULL, g.args, 5, NULL, &rig->error));
    assert_int_equal(rig->counting.countdown, 1);
    assert_int_equal(rig->counting.live, live);
    assert_int_equal(rig->fake->calls, calls + 4); // context asked for, pushed, launch, popped
    rig->counting.countdown = -1;
}

struct worker {
    struct rig *rig;
    uint64_t a; // the address of A
    tir_status status;
};

static void *launch_a(void *user)
{
    struct worker *w = user;
    struct gemm_args g;
    rig_gemm_args(&g);
    g.args[PARAM_A].as.tensor.data = w->a;
    w->status = tir_rt_launch(w->rig->gemm, NULL, g.args, 5, NULL, NULL);
    return NULL;
}

// The address of A that the last launch had, in a parameter and in its tensor map.
static void expect_a(struct rig *rig, uint64_t a)
{
    const tir_artifact_kernel *info = tir_rt_kernel_describe(rig->gemm);
    const tir_artifact_variant *variant = &info->variants[VARIANT_FAST];
    const size_t maps = variant->map_count * (size_t)TIR_TENSOR_MAP_BYTES;
    const uint8_t *params = rig->fake->last.params;
    uint64_t found[2];
    memcpy(&found[0], params, sizeof a);
    memcpy(&found[1], params + tir_artifact_param_bytes(info, variant) - maps, sizeof a);
    assert_int_equal(found[0], a);
    assert_int_equal(found[1], a);
}

// While the driver has a launch, another thread launches the same with other addresses: it does not
// wait, nor change what the driver reads. Soon both find what was decided, and allocate nothing.
static void test_side_by_side(void **state)
{
    struct rig *rig = *state;
    const struct timespec pause = {0, 1000000};
    pthread_t thread;
    size_t live = 0;
    for (uint64_t round = 0; round < 4; round++) {
        struct worker one = {rig, (3 + round) << 24, TIR_ERR_INTERNAL}, other = one;
        other.a += 1 << 16;
        rig->fake->hold_launch = 1;
        assert_int_equal(pthread_create(&thread, NULL, launch_a, &one), 0);
        while (rig->fake->hold_launch != 2)
            nanosleep(&pause, NULL);
        launch_a(&other);
        expect_a(rig, other.a);
        rig->fake->hold_launch = 0;
        pthread_join(thread, NULL);
        expect_a(rig, one.a);
        assert_int_equal(one.status, TIR_OK);
        assert_int_equal(other.status, TIR_OK);
        if (round > 1)
            assert_int_equal(rig->counting.live, live);
        live = rig->counting.live;
    }
}

// A sequence that is remembered takes new memory each time, and another way where it gets none.
static void test_sequence(void **state)
{
    struct rig *rig = *state;
    uint8_t in[300], out[300];
    tir_rt_kernel *relay;
    tir_rt_buffer *x, *y;
    rig_ok(rig, tir_rt_module_kernel(rig->module, TEXT("relay"), &relay, &rig->error));
    rig_ok(rig, tir_rt_buffer_create(rig->device, 300, &x, &rig->error));
    rig_ok(rig, tir_rt_buffer_create(rig->device, 300, &y, &rig->error));
    for (int round = 0; round < 6; round++) {
        const int64_t n = round % 2 ? 300 : 100;
        tir_rt_launch_report report;
        tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
        options.report = &report;
        memset(in, 10 + round, sizeof in);
        rig_ok(rig, tir_rt_buffer_write(x, 0, in, 300, NULL, &rig->error));
        rig_ok(rig, tir_rt_buffer_fill(y, 0, 0, 300, NULL, &rig->error));
        const tir_rt_arg args[] = {
            tir_rt_arg_tensor(tir_rt_buffer_address(x), TIR_ELEMENT_U8, 1, &n, NULL),
            tir_rt_arg_tensor(tir_rt_buffer_address(y), TIR_ELEMENT_U8, 1, &n, NULL)};
        rig_ok(rig, tir_rt_launch(relay, NULL, args, 2, &options, &rig->error));
        rig_ok(rig, tir_rt_buffer_read(y, 0, out, 300, NULL, &rig->error));
        assert_memory_equal(in, out, (size_t)n);
        assert_int_equal(report.variant, 0); // it has no variants before its sequence
        assert_int_equal(report.launched, 1);
        assert_int_equal(rig->fake->scratch_size, (n + 255) / 256 * 256);
        // The same memory is refused, remembered or not.
        const tir_rt_arg same[] = {args[1], args[1]};
        rig_expect(rig, tir_rt_launch(relay, NULL, same, 2, NULL, &rig->error), TIR_ERR_INVALID,
                   "X and Y share memory");
    }
    tir_rt_buffer_destroy(x);
    tir_rt_buffer_destroy(y);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_same_as_the_first), TEST(test_alignments),   TEST(test_many_shapes),
        TEST(test_allocates_nothing), TEST(test_side_by_side), TEST(test_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
