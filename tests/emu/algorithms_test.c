// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CUDA C as nvcc compiles it, against the same in C: scans, sorts, sums, transposes
// (ptx/algorithms.cu), cooperative groups, barriers, pipelines and wmma (ptx/groups.cu), bulk
// copies and clusters through inline PTX (ptx/bulk.cu), barriers of the grid (ptx/grid.cu). All
// checks are on. tools/update-nvcc makes the PTX.

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/lane/fp.h"
#include "rig.h"

struct shape {
    uint32_t grid[2], block[2], shared;
    bool cooperative;
};

static void run(struct rig *r, const char *kernel, struct shape s)
{
    const struct emu_launch launch = {.grid = {s.grid[0], s.grid[1], 1},
                                      .block = {s.block[0], s.block[1], 1},
                                      .shared_bytes = s.shared,
                                      .params = r->params,
                                      .params_size = r->params_size,
                                      .cooperative = s.cooperative};
    r->params_size = 0;
    if (emu_run(r->emu, r->module, kernel, &launch, &r->error))
        fail_msg("%s: %s", kernel, r->error.message);
}

static void start(struct rig *r, const char *file)
{
    rig_open(r);
    rig_load_file(r, file);
}

static void scans(void **state)
{
    (void)state;
    enum { N = 3000, BLOCKS = 3 }; // 256 threads of 4 elements
    static uint32_t in[N], out[N];
    struct rig r;
    start(&r, "algorithms.ptx");
    uint64_t seed = 1;
    for (int i = 0; i < N; i++)
        in[i] = (uint32_t)rig_random(&seed);
    const uint32_t zero = 0;
    const uint64_t po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, rig_buffer(&r, in, sizeof in));
    rig_param_u64(&r, po);
    rig_param_u64(&r, rig_buffer(&r, &zero, 4));
    rig_param_u64(&r, rig_buffer(&r, &zero, 4));
    rig_param_u32(&r, N);
    run(&r, "scan", (struct shape){{BLOCKS, 1}, {256, 1}, 0});
    rig_read(&r, out, po, sizeof out);
    uint32_t sum = 0;
    for (int i = 0; i < N; i++) {
        assert_int_equal(out[i], sum);
        sum += in[i];
    }
    rig_close(&r);
}

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void sorts(void **state)
{
    (void)state;
    enum { THREADS = 128, N = 4 * THREADS };
    static uint32_t data[N], want[N];
    struct rig r;
    start(&r, "algorithms.ptx");
    uint64_t seed = 2;
    for (int i = 0; i < N; i++)
        want[i] = data[i] = (uint32_t)rig_random(&seed) >> (i % 3 * 12);
    qsort(want, N, sizeof *want, by_value);
    const uint64_t pd = rig_buffer(&r, data, sizeof data);
    rig_param_u64(&r, pd);
    run(&r, "radix_sort", (struct shape){{1, 1}, {THREADS, 1}, sizeof data});
    rig_read(&r, data, pd, sizeof data);
    assert_memory_equal(data, want, sizeof data);
    rig_close(&r);
}

static void counts(void **state)
{
    (void)state;
    enum { N = 5000 };
    static uint8_t in[N];
    uint32_t out[256] = {0}, want[256] = {0};
    struct rig r;
    start(&r, "algorithms.ptx");
    for (int i = 0; i < N; i++)
        want[in[i] = (uint8_t)(i * i % 253)]++;
    const uint64_t po = rig_buffer(&r, out, sizeof out);
    rig_param_u64(&r, rig_buffer(&r, in, sizeof in));
    rig_param_u64(&r, po);
    rig_param_u32(&r, N);
    run(&r, "histogram", (struct shape){{3, 1}, {128, 1}, 0});
    rig_read(&r, out, po, sizeof out);
    assert_memory_equal(out, want, sizeof out);
    rig_close(&r);
}

static void transposes(void **state)
{
    (void)state;
    enum { ROWS = 70, COLUMNS = 45 };
    static float in[ROWS][COLUMNS], out[COLUMNS][ROWS];
    struct rig r;
    start(&r, "algorithms.ptx");
    for (int i = 0; i < ROWS * COLUMNS; i++)
        in[i / COLUMNS][i % COLUMNS] = (float)i;
    const uint64_t po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, rig_buffer(&r, in, sizeof in));
    rig_param_u64(&r, po);
    rig_param_u32(&r, ROWS);
    rig_param_u32(&r, COLUMNS);
    run(&r, "transpose", (struct shape){{2, 3}, {32, 8}, 0});
    rig_read(&r, out, po, sizeof out);
    for (int i = 0; i < COLUMNS; i++)
        for (int j = 0; j < ROWS; j++)
            assert_float_equal(out[i][j], in[j][i], 0);
    rig_close(&r);
}

static void sums_in_double(void **state)
{
    (void)state;
    enum { N = 4000, BLOCKS = 4, THREADS = 128 };
    static double a[N], b[N];
    double sums[BLOCKS * THREADS] = {0}, want = 0, out;
    struct rig r;
    start(&r, "algorithms.ptx");
    uint64_t seed = 3;
    for (int i = 0; i < N; i++) {
        a[i] = (double)(int64_t)rig_random(&seed) * 0x1p-60;
        b[i] = (double)(int64_t)rig_random(&seed) * 0x1p-61;
        sums[i % (BLOCKS * THREADS)] = fma(a[i], b[i], sums[i % (BLOCKS * THREADS)]);
    }
    for (int k = 0; k < BLOCKS; k++) { // the kernel's order, so every rounding is the same
        for (int d = THREADS / 2; d; d /= 2)
            for (int i = 0; i < d; i++)
                sums[k * THREADS + i] += sums[k * THREADS + i + d];
        want += sums[k * THREADS];
    }
    const uint32_t zero = 0;
    const uint64_t po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, rig_buffer(&r, a, sizeof a));
    rig_param_u64(&r, rig_buffer(&r, b, sizeof b));
    rig_param_u64(&r, rig_buffer(&r, NULL, BLOCKS * sizeof(double)));
    rig_param_u64(&r, po);
    rig_param_u64(&r, rig_buffer(&r, &zero, 4));
    rig_param_u32(&r, N);
    run(&r, "dot", (struct shape){{BLOCKS, 1}, {THREADS, 1}, 0});
    rig_read(&r, &out, po, sizeof out);
    assert_memory_equal(&out, &want, sizeof out);
    rig_close(&r);
}

static void near(double got, double want, double relative, const char *what)
{
    if (!(fabs(got - want) <= relative * fabs(want) + relative * 1e-3))
        fail_msg("%s: %.17g, not %.17g", what, got, want);
}

static void functions(void **state)
{
    (void)state;
    float in[32], out[32][12];
    double in64[32], out64[32][6];
    struct rig r;
    start(&r, "algorithms.ptx");
    for (int i = 0; i < 32; i++) {
        in[i] = (float)(i - 15) * 0.37f;
        in64[i] = (i - 13) * 0.811;
    }
    const uint64_t po = rig_buffer(&r, NULL, sizeof out), pd = rig_buffer(&r, NULL, sizeof out64);
    rig_param_u64(&r, rig_buffer(&r, in, sizeof in));
    rig_param_u64(&r, po);
    rig_param_u64(&r, rig_buffer(&r, in64, sizeof in64));
    rig_param_u64(&r, pd);
    run(&r, "functions", (struct shape){{1, 1}, {32, 1}, 0});
    rig_read(&r, out, po, sizeof out);
    rig_read(&r, out64, pd, sizeof out64);
    for (int i = 0; i < 32; i++) {
        const double x = (double)in[i], y = in64[i], m = fabs(x);
        const double want[12] = {
            sin(x),      cos(x), exp(x),  log(m + (double)1e-3f), pow(m, (double)1.7f),
            atan2(x, 2), erf(x), tanh(x), 1 / sqrt(m + 0.5),      fmod(x, 0.75),
            exp(x),      cbrt(x)};
        const double want64[6] = {sin(y),        exp(y),        log(fabs(y) + 1e-6),
                                  sqrt(fabs(y)), 1 / (y + 100), tgamma(fabs(y) + 0.5)};
        for (int k = 0; k < 12; k++)
            near((double)out[i][k], want[k], 1e-5, "a function in single precision");
        for (int k = 0; k < 6; k++)
            near(out64[i][k], want64[k], 1e-14, "a function in double precision");
    }
    rig_close(&r);
}

// The result of one half of a pair, in C.
static float half_of(uint32_t pair, int upper)
{
    return emu_f16_to_f32((uint16_t)(upper ? pair >> 16 : pair));
}

static float brain_of(uint32_t pair, int upper)
{
    return emu_bf16_to_f32((uint16_t)(upper ? pair >> 16 : pair));
}

static void halves(void **state)
{
    (void)state;
    uint32_t a[32], b[32], c[32], d[32], out[32][6], out16[32][4];
    struct rig r;
    start(&r, "algorithms.ptx");
    for (int i = 0; i < 32; i++) { // small numbers, whose results are exact or rounded once
        const float x = (float)(i - 9) * 0.25f, y = (float)(20 - i) * 0.5f + 0.25f;
        a[i] = (uint32_t)emu_f32_to_f16(y) << 16 | emu_f32_to_f16(x);
        b[i] = (uint32_t)emu_f32_to_f16(x + 1) << 16 | emu_f32_to_f16(y);
        c[i] = (uint32_t)emu_f32_to_bf16(y) << 16 | emu_f32_to_bf16(x);
        d[i] = (uint32_t)emu_f32_to_bf16(-x) << 16 | emu_f32_to_bf16(y);
    }
    const uint64_t po = rig_buffer(&r, NULL, sizeof out), p16 = rig_buffer(&r, NULL, sizeof out16);
    rig_param_u64(&r, rig_buffer(&r, a, sizeof a));
    rig_param_u64(&r, rig_buffer(&r, b, sizeof b));
    rig_param_u64(&r, po);
    rig_param_u64(&r, rig_buffer(&r, c, sizeof c));
    rig_param_u64(&r, rig_buffer(&r, d, sizeof d));
    rig_param_u64(&r, p16);
    run(&r, "halves", (struct shape){{1, 1}, {32, 1}, 0});
    rig_read(&r, out, po, sizeof out);
    rig_read(&r, out16, p16, sizeof out16);
    for (int i = 0; i < 32; i++)
        for (int u = 0; u < 2; u++) {
            const float x = half_of(a[i], u), y = half_of(b[i], u), z = x - y;
            assert_float_equal(half_of(out[i][0], u), emu_f16_to_f32(emu_f32_to_f16(x + y)), 0);
            assert_float_equal(half_of(out[i][1], u), emu_f16_to_f32(emu_f32_to_f16(x * y + x)), 0);
            assert_float_equal(half_of(out[i][2], u), x > y ? x : y, 0);
            assert_float_equal(half_of(out[i][3], u), z < 0 ? 0 : z > 1 ? 1 : z, 0);
            assert_float_equal(half_of(out[i][4], u), x >= y ? 1 : 0, 0);
            if (y != 0)
                assert_true(fabsf(half_of(out[i][5], u) - x / y) <= fabsf(x / y) * 0x1p-10f);
            const float v = brain_of(c[i], u), w = brain_of(d[i], u), f = v * w + v;
            assert_float_equal(brain_of(out16[i][0], u), emu_bf16_to_f32(emu_f32_to_bf16(v * w)),
                               0);
            assert_float_equal(brain_of(out16[i][1], u),
                               emu_bf16_to_f32(emu_f32_to_bf16(f > 0 ? f : 0)), 0);
            assert_float_equal(brain_of(out16[i][2], u), v < w ? v : w, 0);
            assert_float_equal(brain_of(out16[i][3], u), v, 0);
        }
    rig_close(&r);
}

static int16_t add_sat(int16_t a, int16_t b)
{
    const int sum = a + b;
    return (int16_t)(sum > INT16_MAX ? INT16_MAX : sum < INT16_MIN ? INT16_MIN : sum);
}

static void integers(void **state)
{
    (void)state;
    int64_t in[32], out[32][8];
    struct rig r;
    start(&r, "algorithms.ptx");
    uint64_t seed = 4;
    for (int i = 0; i < 32; i++)
        in[i] = (int64_t)rig_random(&seed) >> (i * 2 % 50);
    const uint64_t po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, rig_buffer(&r, in, sizeof in));
    rig_param_u64(&r, po);
    rig_param_u32(&r, (uint32_t)-7);
    run(&r, "integers", (struct shape){{1, 1}, {32, 1}, 0});
    rig_read(&r, out, po, sizeof out);
    for (int i = 0; i < 32; i++) {
        const uint64_t x = (uint64_t)in[i], y = (uint64_t)in[31 - i];
        const uint32_t low = (uint32_t)x, high = (uint32_t)(x >> 32);
        uint64_t reversed = 0;
        uint32_t dot = 7, bytes = 0, apart = 0;
        const int select[4] = {5, 1, 6, 3}; // 0x3615 from its lowest digit
        for (int k = 0; k < 64; k++)
            reversed |= (x >> k & 1) << (63 - k);
        for (int k = 0; k < 4; k++) {
            const uint8_t p = (uint8_t)(low >> 8 * k), q = (uint8_t)(high >> 8 * k);
            dot += (uint32_t)((int8_t)p * (int8_t)q);
            bytes |= (uint32_t)(x >> 8 * select[k] & 0xff) << 8 * k;
            apart |= (uint32_t)(p > q ? p - q : q - p) << 8 * k;
        }
        const uint32_t sums =
            (uint16_t)add_sat((int16_t)low, (int16_t)high) |
            (uint32_t)(uint16_t)add_sat((int16_t)(low >> 16), (int16_t)(high >> 16)) << 16;
        assert_int_equal(out[i][0], in[i] / -7);
        assert_int_equal(out[i][1], x % 1000007u);
        const uint64_t mid = (x >> 32) * (uint32_t)y + ((uint64_t)low * (uint32_t)y >> 32);
        const uint64_t carry = (uint64_t)low * (y >> 32) + (uint32_t)mid;
        assert_int_equal(out[i][2], (x >> 32) * (y >> 32) + (mid >> 32) + (carry >> 32));
        assert_int_equal(out[i][3], __builtin_popcountll(x) + 100 * (x ? __builtin_clzll(x) : 64) +
                                        10000 * __builtin_ffsll((long long)x));
        assert_int_equal(out[i][4], (int64_t)reversed);
        assert_int_equal(out[i][5], (int32_t)dot);
        assert_int_equal(out[i][6], bytes);
        assert_int_equal(out[i][7], (int64_t)((uint64_t)sums << 32 | apart));
    }
    rig_close(&r);
}

// --- bulk.cu ---

static void doubles(void **state)
{
    (void)state;
    enum { TILES = 5, N = TILES * 1024 };
    static float in[N], out[N];
    struct rig r;
    start(&r, "bulk.ptx");
    for (int i = 0; i < N; i++)
        in[i] = (float)i * 0.5f;
    const uint64_t po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, rig_buffer(&r, in, sizeof in));
    rig_param_u64(&r, po);
    rig_param_u32(&r, TILES);
    run(&r, "doubles", (struct shape){{1, 1}, {128, 1}, 0});
    rig_read(&r, out, po, sizeof out);
    for (int i = 0; i < N; i++)
        assert_float_equal(out[i], 2 * in[i], 0);
    rig_close(&r);
}

static void counts_in_a_cluster(void **state)
{
    (void)state;
    enum { N = 3000 };
    static uint8_t in[N];
    uint32_t out[256] = {0}, want[256] = {0};
    struct rig r;
    start(&r, "bulk.ptx");
    for (int i = 0; i < N; i++)
        want[in[i] = (uint8_t)(i * i % 251)]++;
    const uint64_t po = rig_buffer(&r, out, sizeof out);
    rig_param_u64(&r, rig_buffer(&r, in, sizeof in));
    rig_param_u64(&r, po);
    rig_param_u32(&r, N);
    run(&r, "cluster_histogram", (struct shape){{8, 1}, {64, 1}, 0});
    rig_read(&r, out, po, sizeof out);
    assert_memory_equal(out, want, sizeof out);
    rig_close(&r);
}

// --- groups.cu ---

static void tiles(void **state)
{
    (void)state;
    enum { N = 64 };
    int in[N], out[N][6];
    struct rig r;
    start(&r, "groups.ptx");
    for (int i = 0; i < N; i++)
        in[i] = i * 37 % 100;
    const uint64_t po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, rig_buffer(&r, in, sizeof in));
    rig_param_u64(&r, po);
    run(&r, "tiles", (struct shape){{1, 1}, {N, 1}, 0});
    rig_read(&r, out, po, sizeof out);
    for (int i = 0; i < N; i++) {
        const int first = i / 8 * 8;
        int sum = 0, most = 0, before = 0, any = 0, all = 1, active = 0, rank = 0;
        for (int k = 0; k < 8; k++) {
            const int x = in[first + k];
            sum += x;
            most = x > most ? x : most;
            before += first + k <= i ? x : 0;
            any |= x > 90;
            all &= x > 5;
        }
        for (int k = i / 32 * 32; k < i / 32 * 32 + 32; k++) {
            active += in[k] % 3 == 0;
            rank += k < i && in[k] % 3 == 0;
        }
        assert_int_equal(out[i][0], sum);
        assert_int_equal(out[i][1], most);
        assert_int_equal(out[i][2], before);
        assert_int_equal(out[i][3], any + 2 * all);
        assert_int_equal(out[i][4], in[first + 3] + 1000 * (i / 8));
        assert_int_equal(out[i][5], in[i] % 3 == 0 ? active * 100 + rank : 0);
    }
    rig_close(&r);
}

static void copies_together(void **state)
{
    (void)state;
    enum { N = 96, BLOCKS = 3 };
    int in[BLOCKS][N], out[BLOCKS][N];
    struct rig r;
    start(&r, "groups.ptx");
    for (int i = 0; i < BLOCKS * N; i++)
        in[i / N][i % N] = i * i;
    const uint64_t po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, rig_buffer(&r, in, sizeof in));
    rig_param_u64(&r, po);
    rig_param_u32(&r, N);
    run(&r, "collective_copy", (struct shape){{BLOCKS, 1}, {64, 1}, sizeof in[0]});
    rig_read(&r, out, po, sizeof out);
    for (int i = 0; i < BLOCKS; i++)
        for (int k = 0; k < N; k++)
            assert_int_equal(out[i][k], in[i][N - 1 - k]);
    rig_close(&r);
}

static void hands_over(void **state)
{
    (void)state;
    enum { ROUNDS = 7 };
    int in[ROUNDS][32], out[ROUNDS][32];
    struct rig r;
    start(&r, "groups.ptx");
    for (int i = 0; i < ROUNDS * 32; i++)
        in[i / 32][i % 32] = i - 50;
    const uint64_t po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, rig_buffer(&r, in, sizeof in));
    rig_param_u64(&r, po);
    rig_param_u32(&r, ROUNDS);
    run(&r, "produces", (struct shape){{1, 1}, {64, 1}, 0});
    rig_read(&r, out, po, sizeof out);
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < 32; k++)
            assert_int_equal(out[i][k], 3 * in[i][31 - k]);
    rig_close(&r);
}

static void pipelines(void **state)
{
    (void)state;
    enum { THREADS = 64, BATCHES = 5 };
    float in[BATCHES][THREADS], out[THREADS];
    int in4[BATCHES][64][4], out4[BATCHES][64][4];
    struct rig r;
    start(&r, "groups.ptx");
    for (int i = 0; i < BATCHES * THREADS; i++)
        in[i / THREADS][i % THREADS] = (float)(i * 3 % 17);
    for (int i = 0; i < BATCHES * 64 * 4; i++)
        in4[i / 256][i / 4 % 64][i % 4] = i;
    uint64_t po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, rig_buffer(&r, in, sizeof in));
    rig_param_u64(&r, po);
    rig_param_u32(&r, BATCHES);
    run(&r, "pipelined", (struct shape){{1, 1}, {THREADS, 1}, 2 * sizeof in[0]});
    rig_read(&r, out, po, sizeof out);
    for (int t = 0; t < THREADS; t++) {
        float sum = 0;
        for (int k = 0; k < BATCHES; k++)
            sum += in[k][(t + k) % THREADS];
        assert_float_equal(out[t], sum, 0);
    }
    po = rig_buffer(&r, NULL, sizeof out4);
    rig_param_u64(&r, rig_buffer(&r, in4, sizeof in4));
    rig_param_u64(&r, po);
    rig_param_u32(&r, BATCHES);
    run(&r, "own_pipeline", (struct shape){{1, 1}, {64, 1}, 0});
    rig_read(&r, out4, po, sizeof out4);
    for (int i = 0; i < BATCHES * 64 * 4; i++)
        assert_int_equal(out4[i / 256][i / 4 % 64][i % 4], in4[i / 256][i / 4 % 64][3 - i % 4]);
    rig_close(&r);
}

static void multiplies(void **state)
{
    (void)state;
    enum { N = 64 };
    static uint16_t a[N][N], b[N][N];
    static float c[N][N];
    struct rig r;
    start(&r, "groups.ptx");
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            a[i][k] = emu_f32_to_f16((float)((i * 7 + k * 3) % 9 - 4));
            b[i][k] = emu_f32_to_f16((float)((i * 5 + k) % 7 - 3));
        }
    const uint64_t po = rig_buffer(&r, NULL, sizeof c);
    rig_param_u64(&r, rig_buffer(&r, a, sizeof a));
    rig_param_u64(&r, rig_buffer(&r, b, sizeof b));
    rig_param_u64(&r, po);
    rig_param_u32(&r, N);
    run(&r, "wmma_product", (struct shape){{2, 4}, {32, 2}, 0});
    rig_read(&r, c, po, sizeof c);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int want = 0;
            for (int k = 0; k < N; k++)
                want += ((i * 7 + k * 3) % 9 - 4) * ((j * 5 + k) % 7 - 3);
            assert_float_equal(c[i][j], (float)want * 0.5f, 0);
        }
    rig_close(&r);
}

// --- grid.cu ---

// More CTAs than there are multiprocessors, under schedules that differ.
static void meets_in_the_grid(void **state)
{
    (void)state;
    enum { CTAS = 20, THREADS = 64, ROUNDS = 5 };
    static const enum emu_policy policies[] = {EMU_LAZY, EMU_EAGER, EMU_RANDOM, EMU_ADVERSARIAL};
    static uint32_t out[CTAS * THREADS];
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
        struct rig r;
        rig_open_with(&r, policies[p], p);
        rig_load_file(&r, "grid.ptx");
        const uint64_t po = rig_buffer(&r, NULL, sizeof out);
        rig_param_u64(&r, rig_buffer(&r, NULL, CTAS * sizeof(uint32_t)));
        rig_param_u64(&r, po);
        rig_param_u32(&r, ROUNDS);
        run(&r, "meet", (struct shape){{CTAS, 1}, {THREADS, 1}, 0, true});
        rig_read(&r, out, po, sizeof out);
        for (int i = 0; i < CTAS * THREADS; i++)
            assert_int_equal(out[i], CTAS * (CTAS - 1) / 2 * (ROUNDS * (ROUNDS + 1) / 2));
        rig_close(&r);
    }
}

// Without a cooperative launch there is no workspace, and cooperative groups trap.
static void meets_in_no_grid(void **state)
{
    (void)state;
    struct rig r;
    start(&r, "grid.ptx");
    rig_param_u64(&r, rig_buffer(&r, NULL, 4));
    rig_param_u64(&r, rig_buffer(&r, NULL, 128));
    rig_param_u32(&r, 1);
    assert_int_equal(rig_try_run(&r, "meet", 1, 32), TIR_ERR_DEVICE);
    assert_message(&r, "trap");
    rig_close(&r);
}

static void too_many_to_meet(void **state)
{
    (void)state;
    struct rig r;
    start(&r, "grid.ptx");
    rig_param_u64(&r, rig_buffer(&r, NULL, 4 * (EMU_TOGETHER + 1)));
    rig_param_u64(&r, 0);
    rig_param_u32(&r, 0);
    const struct emu_launch launch = {.grid = {EMU_TOGETHER + 1, 1, 1},
                                      .block = {32, 1, 1},
                                      .params = r.params,
                                      .params_size = r.params_size,
                                      .cooperative = true};
    assert_int_equal(emu_run(r.emu, r.module, "meet", &launch, &r.error), TIR_ERR_UNSUPPORTED);
    assert_message(&r, "a cooperative launch of 1025 CTAs; 1024 run together here");
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scans),
        cmocka_unit_test(sorts),
        cmocka_unit_test(counts),
        cmocka_unit_test(transposes),
        cmocka_unit_test(functions),
        cmocka_unit_test(sums_in_double),
        cmocka_unit_test(halves),
        cmocka_unit_test(integers),
        cmocka_unit_test(tiles),
        cmocka_unit_test(copies_together),
        cmocka_unit_test(hands_over),
        cmocka_unit_test(pipelines),
        cmocka_unit_test(multiplies),
        cmocka_unit_test(doubles),
        cmocka_unit_test(counts_in_a_cluster),
        cmocka_unit_test(meets_in_the_grid),
        cmocka_unit_test(meets_in_no_grid),
        cmocka_unit_test(too_many_to_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
