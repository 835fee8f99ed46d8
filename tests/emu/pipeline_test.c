// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole kernels for Hopper and Blackwell that LLVM emitted, as an expert writes them: TMA, rings of
// mbarriers, roles, wgmma or tcgen05, clusters with multicast. Their results are compared with sums
// in double precision, under several schedules and with every check on.
//
//   gemm_tma.ptx, gemm_cluster.ptx            128 x 256 x 64 tiles, two consumers, persistent
//   attention_lazy.ptx, attention_nomax.ptx   forward, 128 columns, any number of rows
//   attention_early.ptx                       wrong: it writes into registers that a wgmma reads
//   gemm_tcgen05.ptx                          128 x 256 x 64 tiles for Blackwell

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "rig.h"
#include "tir/tensor_map.h"

struct matrix {
    uint32_t rows, cols, batch;
    float *values; // what the bf16 elements are exactly
    uint64_t address;
};

static float from_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static uint16_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Normally distributed, nearly: the sum of eight uniform numbers.
static float normal(uint64_t *seed)
{
    float sum = 0;
    for (int i = 0; i < 8; i++)
        sum += (float)(rig_random(seed) >> 40) / (float)(1 << 24) - 0.5f;
    return sum * 1.2247f;
}

static struct matrix matrix(struct rig *r, uint32_t batch, uint32_t rows, uint32_t cols,
                            uint64_t *seed)
{
    const size_t count = (size_t)(batch ? batch : 1) * rows * cols;
    struct matrix m = {.rows = rows, .cols = cols, .batch = batch};
    uint16_t *bits = malloc(count * sizeof *bits);
    if (!seed) { // an output
        m.address = rig_buffer(r, NULL, count * sizeof *bits);
        free(bits);
        return m;
    }
    m.values = malloc(count * sizeof *m.values);
    for (size_t i = 0; i < count; i++) {
        bits[i] = to_bf16(normal(seed));
        m.values[i] = from_bf16(bits[i]);
    }
    m.address = rig_buffer(r, bits, count * sizeof *bits);
    free(bits);
    return m;
}

// The next parameter: a map of a matrix with boxes of 64 columns, swizzled.
static void param_map(struct rig *r, const struct matrix *m, uint32_t box_rows)
{
    const tir_tensor_map map = {.type = TIR_TENSOR_MAP_BF16,
                                .swizzle = TIR_TENSOR_MAP_SWIZZLE_128,
                                .rank = m->batch ? 3 : 2,
                                .address = m->address,
                                .dims = {m->cols, m->rows, m->batch},
                                .strides = {m->cols * 2, (uint64_t)m->cols * m->rows * 2},
                                .steps = {1, 1, 1},
                                .box = {64, box_rows, 1}};
    uint8_t bytes[TIR_TENSOR_MAP_BYTES];
    if (tir_tensor_map_encode(&map, bytes, &r->error))
        fail_msg("%s", r->error.message);
    r->params_size = (r->params_size + 63) / 64 * 64;
    memcpy(r->params + r->params_size, bytes, sizeof bytes);
    r->params_size += sizeof bytes;
}

static uint16_t *read_out(struct rig *r, const struct matrix *m, size_t count)
{
    uint16_t *out = malloc(count * sizeof *out);
    rig_read(r, out, m->address, count * sizeof *out);
    return out;
}

// --- products: D[m, n] = A[m, k] B[n, k]^T ---

static void check_product(struct rig *r, const struct matrix *a, const struct matrix *b,
                          const struct matrix *d)
{
    const uint32_t k = a->cols;
    uint16_t *out = read_out(r, d, (size_t)d->rows * d->cols);
    for (uint32_t i = 0; i < d->rows; i++)
        for (uint32_t j = 0; j < d->cols; j++) {
            double want = 0;
            for (uint32_t n = 0; n < k; n++)
                want += (double)a->values[i * (size_t)k + n] * b->values[j * (size_t)k + n];
            const double got = from_bf16(out[i * (size_t)d->cols + j]);
            if (!(fabs(got - want) <= 0.004 * fabs(want) + 2e-5 * sqrt(k)))
                fail_msg("D[%u, %u] of %u is %g, not %g", i, j, k, got, want);
        }
    free(out);
    free(a->values);
    free(b->values);
}

// Loads a file without one of its lines.
static void load_without(struct rig *r, const char *name, const char *line)
{
    char path[512];
    static char text[1 << 18];
    snprintf(path, sizeof path, "%s/%s", PTX_DIR, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s", path);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    char *at = strstr(text, line);
    if (!at)
        fail_msg("%s has no '%s'", name, line);
    memset(at, ' ', strlen(line));
    rig_load(r, text);
}

struct product {
    const char *file, *kernel;
    uint32_t m, n, k, cluster, grid;
    enum emu_policy policy;
    uint64_t seed;
};

static void hopper_product(const struct product *p)
{
    uint64_t seed = p->seed + 1;
    struct rig r;
    rig_open_with(&r, p->policy, p->seed);
    rig_load_file(&r, p->file);
    const struct matrix a = matrix(&r, 0, p->m, p->k, &seed), b = matrix(&r, 0, p->n, p->k, &seed),
                        d = matrix(&r, 0, p->m, p->n, NULL);
    param_map(&r, &a, 128);
    param_map(&r, &b, p->cluster > 1 ? 128 : 256);
    param_map(&r, &d, 64);
    rig_param_u32(&r, p->m);
    rig_param_u32(&r, p->n);
    rig_param_u32(&r, p->k);
    r.shared_bytes = 229440;
    r.cluster = p->cluster;
    rig_run(&r, p->kernel, p->grid, 384);
    check_product(&r, &a, &b, &d);
    rig_close(&r);
}

static void products(void **state)
{
    static const struct product cases[] = {
        {"gemm_tma.ptx", "gemm", 256, 256, 256, 1, 2, EMU_LAZY, 0},
        {"gemm_tma.ptx", "gemm", 200, 264, 136, 1, 4, EMU_EAGER, 1},
        {"gemm_tma.ptx", "gemm", 384, 512, 64, 1, 2, EMU_RANDOM, 2},
        {"gemm_tma.ptx", "gemm", 128, 256, 520, 1, 1, EMU_ADVERSARIAL, 3},
        {"gemm_cluster.ptx", "gemm", 256, 256, 320, 2, 2, EMU_LAZY, 4},
        {"gemm_cluster.ptx", "gemm", 264, 520, 72, 2, 4, EMU_EAGER, 5},
        {"gemm_cluster.ptx", "gemm", 256, 256, 136, 2, 2, EMU_RANDOM, 6},
        {"gemm_cluster.ptx", "gemm", 256, 256, 200, 2, 2, EMU_ADVERSARIAL, 7},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        hopper_product(&cases[i]);
}

static void blackwell_product(void **state)
{
    static const enum emu_policy policies[] = {EMU_LAZY, EMU_EAGER, EMU_RANDOM, EMU_ADVERSARIAL};
    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        uint64_t seed = i + 1;
        struct rig r;
        rig_open_with(&r, policies[i], i);
        rig_load_file(&r, "gemm_tcgen05.ptx");
        const uint32_t n = 256, k = 64 * ((uint32_t)i + 3);
        const struct matrix a = matrix(&r, 0, 128, k, &seed), b = matrix(&r, 0, n, k, &seed),
                            d = matrix(&r, 0, 128, n, NULL);
        param_map(&r, &a, 128);
        param_map(&r, &b, 256);
        rig_param_u64(&r, d.address);
        rig_param_u32(&r, n);
        rig_param_u32(&r, k);
        r.shared_bytes = 196864;
        rig_run(&r, "gemm_tc", 1, 192);
        check_product(&r, &a, &b, &d);
        rig_close(&r);
    }
}

// A wait that is not repeated may end too early. What goes wrong then depends on the schedule: a
// stage is overwritten while it is read, or its barrier gets one arrival too many.
static bool one_wait_is_found(bool blackwell, uint64_t seed)
{
    struct rig r;
    rig_open_with(&r, EMU_RANDOM, seed);
    load_without(&r, blackwell ? "gemm_tcgen05.ptx" : "gemm_tma.ptx",
                 blackwell ? "@%p16 bra \t$L__BB0_12;" : "@%p19 bra \t$L__BB0_8;");
    const struct matrix a = matrix(&r, 0, 128, 512, &seed), b = matrix(&r, 0, 256, 512, &seed),
                        d = matrix(&r, 0, 128, 256, NULL);
    param_map(&r, &a, 128);
    param_map(&r, &b, 256);
    if (blackwell)
        rig_param_u64(&r, d.address);
    else
        param_map(&r, &d, 64);
    if (!blackwell)
        rig_param_u32(&r, 128);
    rig_param_u32(&r, 256);
    rig_param_u32(&r, 512);
    r.shared_bytes = blackwell ? 196864 : 229440;
    const tir_status status =
        rig_try_run(&r, blackwell ? "gemm_tc" : "gemm", 1, blackwell ? 192 : 384);
    free(a.values);
    free(b.values);
    rig_close(&r);
    return status != TIR_OK;
}

static void waits_are_needed(void **state)
{
    (void)state;
    for (int blackwell = 0; blackwell < 2; blackwell++) {
        int found = 0;
        for (uint64_t seed = 0; seed < 6; seed++)
            found += one_wait_is_found(blackwell, seed);
        assert_true(found > 0);
    }
}

// --- attention: O = softmax(Q K^T / sqrt(128)) V for each of a batch ---

enum { HEAD = 128, TILE = 128 };

struct inputs {
    struct matrix q, k, v, o;
};

static struct inputs attention_inputs(struct rig *r, uint32_t batch, uint32_t rows, uint64_t seed)
{
    struct inputs in;
    in.q = matrix(r, batch, rows, HEAD, &seed);
    in.k = matrix(r, batch, rows, HEAD, &seed);
    in.v = matrix(r, batch, rows, HEAD, &seed);
    in.o = matrix(r, batch, rows, HEAD, NULL);
    return in;
}

static void free_inputs(const struct inputs *in)
{
    free(in->q.values);
    free(in->k.values);
    free(in->v.values);
}

static void check_row(const struct inputs *in, const uint16_t *out, uint32_t b, uint32_t row)
{
    const uint32_t rows = in->q.rows;
    const float *q = in->q.values + ((size_t)b * rows + row) * HEAD;
    const float *k = in->k.values + (size_t)b * rows * HEAD;
    const float *v = in->v.values + (size_t)b * rows * HEAD;
    double *weight = malloc(rows * sizeof *weight), most = -INFINITY, sum = 0, squares = 0;
    for (uint32_t j = 0; j < rows; j++) {
        double s = 0;
        for (uint32_t c = 0; c < HEAD; c++)
            s += (double)q[c] * k[(size_t)j * HEAD + c];
        weight[j] = s / sqrt(HEAD);
        most = weight[j] > most ? weight[j] : most;
    }
    for (uint32_t j = 0; j < rows; j++) {
        weight[j] = exp(weight[j] - most);
        sum += weight[j];
        squares += weight[j] * weight[j];
    }
    for (uint32_t c = 0; c < HEAD; c++) {
        double want = 0;
        for (uint32_t j = 0; j < rows; j++)
            want += weight[j] / sum * v[(size_t)j * HEAD + c];
        const double got = from_bf16(out[((size_t)b * rows + row) * HEAD + c]);
        // The output is rounded, and so are the weights before the second product.
        if (!(fabs(got - want) <= 0.004 * fabs(want) + 0.012 * sqrt(squares) / sum + 1e-6))
            fail_msg("O[%u, %u, %u] of %u rows is %g, not %g", b, row, c, rows, got, want);
    }
    free(weight);
}

static void attention(const char *file, uint32_t batch, uint32_t rows, enum emu_policy policy)
{
    const uint32_t tiles = (rows + TILE - 1) / TILE;
    const float scale = 1.4426950408889634f / sqrtf(HEAD);
    struct rig r;
    rig_open_with(&r, policy, rows);
    rig_load_file(&r, file);
    struct inputs in = attention_inputs(&r, batch, rows, rows);
    param_map(&r, &in.q, 64);
    param_map(&r, &in.k, TILE);
    param_map(&r, &in.v, TILE);
    param_map(&r, &in.o, 64);
    rig_param_u32(&r, tiles);
    rig_param_u32(&r, rows);
    rig_param(&r, &scale, sizeof scale);
    rig_param_u32(&r, tiles);
    rig_param_u32(&r, tiles * batch);
    r.shared_bytes = 196704;
    rig_run(&r, "fa", 2, 384);
    uint16_t *out = read_out(&r, &in.o, (size_t)batch * rows * HEAD);
    for (uint32_t b = 0; b < batch; b++)
        for (uint32_t row = 0; row < rows; row++)
            check_row(&in, out, b, row);
    free(out);
    free_inputs(&in);
    rig_close(&r);
}

static void attentions(void **state)
{
    (void)state;
    attention("attention_lazy.ptx", 1, 256, EMU_LAZY);
    attention("attention_lazy.ptx", 2, 77, EMU_EAGER);
    attention("attention_lazy.ptx", 1, 129, EMU_RANDOM);
    attention("attention_nomax.ptx", 1, 256, EMU_LAZY);
    attention("attention_nomax.ptx", 2, 200, EMU_ADVERSARIAL);
}

// It packs the next P into the registers that the product in flight reads as its A operand. On
// hardware rows came out wrong wherever there was more than one block of keys.
static void overwritten_registers_are_found(void **state)
{
    const uint32_t rows = 256;
    const float scale = 1.4426950408889634f / sqrtf(HEAD);
    struct rig r;
    (void)state;
    rig_open(&r);
    rig_load_file(&r, "attention_early.ptx");
    struct inputs in = attention_inputs(&r, 1, rows, 1);
    param_map(&r, &in.q, TILE);
    param_map(&r, &in.k, TILE);
    param_map(&r, &in.v, TILE);
    rig_param_u64(&r, in.o.address);
    rig_param_u32(&r, rows / TILE);
    rig_param_u32(&r, rows);
    rig_param(&r, &scale, sizeof scale);
    r.shared_bytes = 128 * 256 + 4 * 128 * 256 + 128;
    assert_int_equal(rig_try_run(&r, "fa", rows / TILE, 384), TIR_ERR_DEVICE);
    assert_message(&r, "wgmma");
    assert_message(&r, "register");
    assert_message(&r, "PTX line");
    free_inputs(&in);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),          cmocka_unit_test(waits_are_needed),
        cmocka_unit_test(attentions),        cmocka_unit_test(overwritten_registers_are_found),
        cmocka_unit_test(blackwell_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
