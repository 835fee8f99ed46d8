// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C header of an artifact compiles, and its functions load and launch the kernels.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels.h"
#include "product.h"

static void start(struct product *r)
{
    tir_error error;
    product_open(r);
    ok(kernels_load(r->device, &r->module, &error), &error);
}

static tir_rt_buffer *upload(struct product *r, const void *bytes, uint64_t size)
{
    tir_error error;
    tir_rt_buffer *buffer;
    ok(tir_rt_buffer_create(r->device, size, &buffer, &error), &error);
    ok(tir_rt_buffer_write(buffer, 0, bytes, size, NULL, &error), &error);
    return buffer;
}

static void tensors_go_by_address_and_dimensions_by_name(void **state)
{
    (void)state;
    enum { M = 5, N = 70 };
    static float x[M][N], y[M][N], rows[M];
    struct product r;
    start(&r);
    for (int m = 0; m < M; m++) {
        rows[m] = (float)m + 1;
        for (int n = 0; n < N; n++)
            x[m][n] = (float)n;
    }
    tir_rt_buffer *bx = upload(&r, x, sizeof(x)), *br = upload(&r, rows, sizeof(rows));
    tir_rt_buffer *by = upload(&r, y, sizeof(y));
    tir_error error;
    ok(scale_rows_launch(r.module, NULL, tir_rt_buffer_address(bx), tir_rt_buffer_address(br),
                         tir_rt_buffer_address(by), 0.5f, M, N, &error),
       &error);
    ok(tir_rt_buffer_read(by, 0, y, sizeof(y), NULL, &error), &error);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++)
            assert_true(y[m][n] == (float)n * (float)(m + 1) * 0.5f);
    tir_rt_buffer_destroy(bx);
    tir_rt_buffer_destroy(br);
    tir_rt_buffer_destroy(by);
    product_close(&r);
}

static void scalars_go_by_value(void **state)
{
    (void)state;
    int32_t y[16] = {0};
    struct product r;
    start(&r);
    tir_rt_buffer *by = upload(&r, y, sizeof(y));
    tir_error error;
    for (int twice = 0; twice < 2; twice++) {
        ok(fill_launch(r.module, NULL, tir_rt_buffer_address(by), -21, twice, &error), &error);
        ok(tir_rt_buffer_read(by, 0, y, sizeof(y), NULL, &error), &error);
        for (int i = 0; i < 16; i++)
            assert_int_equal(y[i], twice ? -42 : -21);
    }
    tir_rt_buffer_destroy(by);
    product_close(&r);
}

// Each type has its own way into the parameter block; the values tell them apart: all bits of the
// widest integers, fractions that only the wider floats have, bits of the floats that C has not.
static void scalars_of_every_type_arrive(void **state)
{
    (void)state;
    static const int64_t want_i[8] = {1,   -100,  -30000,    -2000000000, INT64_MIN + 7,
                                      200, 60000, 4000000000};
    static const uint64_t want_u[1] = {UINT64_MAX - 7};
    static const double want_f[8] = {-1.5, 3.0, -2.5, 0.375, 8.0, (double)0.1f, 0.1, 1.25};
    int64_t i[8] = {0};
    uint64_t u[1] = {0};
    double f[8] = {0};
    struct product r;
    start(&r);
    tir_rt_buffer *bi = upload(&r, i, sizeof(i)), *bu = upload(&r, u, sizeof(u));
    tir_rt_buffer *bf = upload(&r, f, sizeof(f));
    tir_error error;
    ok(scalars_launch(r.module, NULL, tir_rt_buffer_address(bi), tir_rt_buffer_address(bu),
                      tir_rt_buffer_address(bf), 1, -100, -30000, -2000000000, INT64_MIN + 7, 200,
                      60000, 4000000000, UINT64_MAX - 7, 0xbe00, 0x4040, 0xc2, 0x36, 130, 0.1f, 0.1,
                      1.25f, &error),
       &error);
    ok(tir_rt_buffer_read(bi, 0, i, sizeof(i), NULL, &error), &error);
    ok(tir_rt_buffer_read(bu, 0, u, sizeof(u), NULL, &error), &error);
    ok(tir_rt_buffer_read(bf, 0, f, sizeof(f), NULL, &error), &error);
    assert_memory_equal(i, want_i, sizeof(i));
    assert_memory_equal(u, want_u, sizeof(u));
    for (int at = 0; at < 8; at++)
        assert_true(f[at] == want_f[at]);
    tir_rt_buffer_destroy(bi);
    tir_rt_buffer_destroy(bu);
    tir_rt_buffer_destroy(bf);
    product_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_go_by_address_and_dimensions_by_name),
        cmocka_unit_test(scalars_go_by_value),
        cmocka_unit_test(scalars_of_every_type_arrive),
    };
    return cmocka_run_group_tests_name("header", tests, NULL, NULL);
}
