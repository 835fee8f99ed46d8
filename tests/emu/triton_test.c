// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PTX that Triton makes (tools/triton_kernels.py), under every schedule and with every check on.

#include <math.h>
#include <stdlib.h>

#include "rig.h"

static const enum emu_policy policies[] = {EMU_LAZY, EMU_EAGER, EMU_RANDOM, EMU_ADVERSARIAL};

static float from_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

// Triton's kernels take two more pointers, to scratch memory that these do not use.
static tir_status try_run(struct rig *r, const char *kernel, uint32_t grid, uint32_t shared)
{
    rig_param_u64(r, 0);
    rig_param_u64(r, 0);
    r->shared_bytes = shared;
    return rig_try_run(r, kernel, grid, 128);
}

static void run(struct rig *r, const char *kernel, uint32_t grid, uint32_t shared)
{
    if (try_run(r, kernel, grid, shared))
        fail_msg("%s: %s", kernel, r->error.message);
}

static void softmax(void **state)
{
    enum { ROWS = 5, COLS = 777 };
    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        static float in[ROWS * COLS], out[ROWS * COLS];
        uint64_t seed = i;
        struct rig r;
        rig_open_with(&r, policies[i], i);
        rig_load_file(&r, "triton_softmax_90.ptx");
        for (int k = 0; k < ROWS * COLS; k++)
            in[k] = (float)(int32_t)rig_random(&seed) * 0x1p-29f;
        const uint64_t to = rig_buffer(&r, NULL, sizeof out), from = rig_buffer(&r, in, sizeof in);
        rig_param_u64(&r, to);
        rig_param_u64(&r, from);
        rig_param_u32(&r, COLS);
        run(&r, "softmax", ROWS, 16);
        rig_read(&r, out, to, sizeof out);
        for (int row = 0; row < ROWS; row++) {
            const float *x = in + row * COLS;
            double sum = 0, most = x[0];
            for (int c = 0; c < COLS; c++)
                most = fmax(most, x[c]);
            for (int c = 0; c < COLS; c++)
                sum += exp(x[c] - most);
            for (int c = 0; c < COLS; c++)
                assert_true(fabs(out[row * COLS + c] - exp(x[c] - most) / sum) < 1e-6);
        }
        rig_close(&r);
    }
}

// cp.async, ldmatrix and mma.sync for sm_80; cp.async and wgmma for sm_90.
static void product_of(const char *file, uint32_t shared, uint64_t i)
{
    enum { M = 160, N = 144, K = 208 };
    static uint16_t a[M * K], b[N * K], d[M * N];
    uint64_t seed = i;
    struct rig r;
    rig_open_with(&r, policies[i], i);
    rig_load_file(&r, file);
    for (int k = 0; k < M * K; k++)
        a[k] = (uint16_t)(0x3f00 | (rig_random(&seed) & 0x80ff)); // 0.5 to 2, of either sign
    for (int k = 0; k < N * K; k++)
        b[k] = (uint16_t)(0x3f00 | (rig_random(&seed) & 0x80ff));
    const uint64_t at_a = rig_buffer(&r, a, sizeof a), at_b = rig_buffer(&r, b, sizeof b),
                   at_d = rig_buffer(&r, NULL, sizeof d);
    rig_param_u64(&r, at_a);
    rig_param_u64(&r, at_b);
    rig_param_u64(&r, at_d);
    rig_param_u32(&r, M);
    rig_param_u32(&r, N);
    rig_param_u32(&r, K);
    r.grid_y = 2;
    run(&r, "product", 2, shared);
    rig_read(&r, d, at_d, sizeof d);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            double want = 0;
            for (int k = 0; k < K; k++)
                want += (double)from_bf16(a[m * K + k]) * from_bf16(b[n * K + k]);
            const double got = from_bf16(d[m * N + n]);
            if (!(fabs(got - want) <= 0.004 * fabs(want) + 1e-3))
                fail_msg("%s: D[%d, %d] is %g, not %g", file, m, n, got, want);
        }
    rig_close(&r);
}

static void products(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        product_of("triton_product_80.ptx", 65536, i);
        product_of("triton_product_90.ptx", 98304, i);
    }
}

static void scan(void **state)
{
    enum { N = 1024 };
    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        uint32_t in[N], out[N], sum = 0;
        uint64_t seed = i;
        struct rig r;
        rig_open_with(&r, policies[i], i);
        rig_load_file(&r, "triton_scan_80.ptx");
        for (int k = 0; k < N; k++)
            in[k] = (uint32_t)rig_random(&seed);
        const uint64_t to = rig_buffer(&r, NULL, sizeof out), from = rig_buffer(&r, in, sizeof in);
        rig_param_u64(&r, to);
        rig_param_u64(&r, from);
        run(&r, "scan", 1, 32);
        rig_read(&r, out, to, sizeof out);
        for (int k = 0; k < N; k++)
            assert_int_equal(out[k], sum += in[k]);
        rig_close(&r);
    }
}

static void histogram(void **state)
{
    enum { N = 5000, BINS = 64, BLOCK = 1024 };
    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        static uint32_t in[N];
        uint32_t want[BINS] = {0}, got[BINS] = {0};
        uint64_t seed = i;
        struct rig r;
        rig_open_with(&r, policies[i], i);
        rig_load_file(&r, "triton_histogram_80.ptx");
        for (int k = 0; k < N; k++)
            want[in[k] = (uint32_t)(rig_random(&seed) % BINS)]++;
        want[0] += (N + BLOCK - 1) / BLOCK * BLOCK - N; // lanes behind the end count as 0
        const uint64_t to = rig_buffer(&r, got, sizeof got), from = rig_buffer(&r, in, sizeof in);
        rig_param_u64(&r, to);
        rig_param_u64(&r, from);
        rig_param_u32(&r, N);
        // Two warps store one value to one place, with no order between them: a race to the letter
        // of the memory model, which changes nothing.
        run(&r, "histogram", (N + BLOCK - 1) / BLOCK, 256);
        uint32_t count;
        const struct emu_finding *f = emu_findings(r.emu, &count);
        assert_true(count > 0);
        for (uint32_t k = 0; k < count; k++)
            assert_int_equal(f[k].kind, EMU_F_AGAIN);
        rig_read(&r, got, to, sizeof got);
        assert_memory_equal(got, want, sizeof want);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax),
        cmocka_unit_test(products),
        cmocka_unit_test(scan),
        cmocka_unit_test(histogram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
