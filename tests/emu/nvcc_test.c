// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What nvcc makes of CUDA C (ptx/kernels.cu), against the same loops in C.

#include <math.h>
#include <stdlib.h>

#include "emu/lane/fp.h"
#include "rig.h"

static tir_status run(struct rig *r, const char *kernel, const uint32_t grid[2],
                      const uint32_t block[2])
{
    const struct emu_launch launch = {.grid = {grid[0], grid[1], 1},
                                      .block = {block[0], block[1], 1},
                                      .params = r->params,
                                      .params_size = r->params_size};
    r->params_size = 0;
    return emu_run(r->emu, r->module, kernel, &launch, &r->error);
}

static void must_run(struct rig *r, const char *kernel, uint32_t gx, uint32_t gy, uint32_t bx,
                     uint32_t by)
{
    const uint32_t grid[2] = {gx, gy}, block[2] = {bx, by};
    if (run(r, kernel, grid, block))
        fail_msg("%s: %s", kernel, r->error.message);
}

static void reduces(void **state)
{
    struct rig *r = *state;
    enum { N = 5000 };
    static float in[N];
    float out = 0;
    for (int i = 0; i < N; i++)
        in[i] = (float)(i % 13);
    float want = 0;
    for (int i = 0; i < N; i++)
        want += in[i];
    const uint64_t pi = rig_buffer(r, in, sizeof in), po = rig_buffer(r, &out, sizeof out);
    rig_param_u64(r, pi);
    rig_param_u64(r, po);
    rig_param_u32(r, N);
    must_run(r, "reduce", 5, 1, 256, 1);
    rig_read(r, &out, po, sizeof out);
    assert_float_equal(out, want, 0); // integers: exact in any order
}

static void multiplies(void **state)
{
    struct rig *r = *state;
    enum { N = 48 };
    static float a[N][N], b[N][N], c[N][N];
    for (int i = 0; i < N * N; i++) {
        a[i / N][i % N] = (float)(i * 7 % 11 - 5);
        b[i / N][i % N] = (float)(i * 5 % 9 - 4);
    }
    const uint64_t pa = rig_buffer(r, a, sizeof a), pb = rig_buffer(r, b, sizeof b);
    const uint64_t pc = rig_buffer(r, NULL, sizeof c);
    rig_param_u64(r, pa);
    rig_param_u64(r, pb);
    rig_param_u64(r, pc);
    rig_param_u32(r, N);
    must_run(r, "tiled", N / 16, N / 16, 16, 16);
    rig_read(r, c, pc, sizeof c);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float want = 0;
            for (int k = 0; k < N; k++)
                want += a[i][k] * b[k][j];
            assert_float_equal(c[i][j], want, 0);
        }
}

static int power(int a, int n)
{
    return n == 0 ? 1 : a * power(a, n - 1);
}

static void calls(void **state)
{
    struct rig *r = *state;
    static const int weights[4] = {3, 1, 4, 1};
    int out[96];
    const uint64_t po = rig_buffer(r, NULL, sizeof out);
    rig_param_u64(r, po);
    must_run(r, "calls", 1, 1, 96, 1);
    rig_read(r, out, po, sizeof out);
    for (int t = 0; t < 96; t++) {
        const int a = t % 5, b = t % 4;
        int v = t % 3 == 0 ? a + b : t % 3 == 1 ? a * b : power(a, b), local[8];
        const int changed[] = {v + 100, v - 7, v * 3, v ^ 0x55, -v, v * 4, v};
        v = changed[t % 7];
        for (int i = 0; i < 8; i++)
            local[(i * 3 + t) % 8] = i;
        assert_int_equal(out[t], v * 1000 + local[t % 8] * 10 + weights[t % 4]);
    }
}

static void counts(void **state)
{
    struct rig *r = *state;
    enum { N = 3000 };
    static uint8_t in[N];
    uint32_t out[256] = {0}, want[256] = {0};
    for (int i = 0; i < N; i++) {
        in[i] = (uint8_t)(i * i % 251);
        want[in[i]]++;
    }
    const uint64_t pi = rig_buffer(r, in, sizeof in), po = rig_buffer(r, out, sizeof out);
    rig_param_u64(r, pi);
    rig_param_u64(r, po);
    rig_param_u32(r, N);
    must_run(r, "histogram", 1, 1, 128, 1);
    rig_read(r, out, po, sizeof out);
    assert_memory_equal(out, want, sizeof out);
}

static void halves(void **state)
{
    struct rig *r = *state;
    uint16_t h[64], b[64];
    float out[128];
    for (int i = 0; i < 64; i++) {
        h[i] = 0x3c00; // 1
        b[i] = 0x4040; // 3
    }
    const uint64_t ph = rig_buffer(r, h, sizeof h), pb = rig_buffer(r, b, sizeof b);
    const uint64_t po = rig_buffer(r, NULL, sizeof out);
    rig_param_u64(r, ph);
    rig_param_u64(r, pb);
    rig_param_u64(r, po);
    must_run(r, "halves", 1, 1, 32, 1);
    rig_read(r, out, po, sizeof out);
    for (int t = 0; t < 32; t++) {
        assert_float_equal(out[4 * t], 1.5f, 0);
        assert_float_equal(out[4 * t + 1], 1.5f, 0);
        assert_float_equal(out[4 * t + 2], 9, 0);
        assert_float_equal(out[4 * t + 3], 2.828125f, 0); // 2^1.5 in 11 bits
    }
}

static void multiplies_matrices(void **state)
{
    struct rig *r = *state;
    enum { N = 128 };
    static uint16_t a[N][N], b[N][N];
    static float c[N][N];
    static int ai[N][N], bi[N][N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            ai[i][j] = (i * 31 + j * 7) % 17 - 8;
            bi[i][j] = (i * 13 + j * 11) % 15 - 7;
            a[i][j] = emu_f32_to_bf16((float)ai[i][j]);
            b[i][j] = emu_f32_to_bf16((float)bi[i][j]);
        }
    const uint64_t pa = rig_buffer(r, a, sizeof a), pb = rig_buffer(r, b, sizeof b);
    const uint64_t pc = rig_buffer(r, NULL, sizeof c);
    rig_param_u64(r, pa);
    rig_param_u64(r, pb);
    rig_param_u64(r, pc);
    rig_param_u32(r, N);
    must_run(r, "gemm", N / 64, N / 64, 128, 1);
    rig_read(r, c, pc, sizeof c);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int want = 0;
            for (int k = 0; k < N; k++)
                want += ai[i][k] * bi[j][k];
            assert_float_equal(c[i][j], (float)want, 0);
        }
}

static void faults_name_the_source(void **state)
{
    struct rig *r = *state;
    float in[32] = {0};
    const uint64_t pi = rig_buffer(r, in, sizeof in), po = rig_buffer(r, NULL, sizeof in);
    const uint32_t grid[2] = {1, 1}, block[2] = {32, 1};
    rig_param_u64(r, pi);
    rig_param_u64(r, po);
    assert_int_equal(run(r, "too_far", grid, block), TIR_ERR_DEVICE);
    assert_message(r, "out-of-bounds global load of 4 bytes");
    assert_message(r, "(kernels.cu:");
    assert_message(r, "thread (31,0,0)");
}

static int open_module(void **state)
{
    struct rig *r = malloc(sizeof *r);
    rig_open(r);
    rig_load_file(r, "kernels.ptx");
    *state = r;
    return 0;
}

static int close_module(void **state)
{
    rig_close(*state);
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reduces),
        cmocka_unit_test(multiplies),
        cmocka_unit_test(calls),
        cmocka_unit_test(counts),
        cmocka_unit_test(halves),
        cmocka_unit_test(multiplies_matrices),
        cmocka_unit_test(faults_name_the_source),
    };
    return cmocka_run_group_tests(tests, open_module, close_module);
}
