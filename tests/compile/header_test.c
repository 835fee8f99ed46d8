// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C header of an artifact compiles, and its functions load and launch the kernels.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels.h"

struct rig {
    tir_runtime *runtime;
    tir_rt_device *device;
    tir_rt_module *module;
};

static void ok(tir_status status, const tir_error *error)
{
    if (status)
        fail_msg("%s", error->message);
}

static void start(struct rig *r)
{
    tir_error error;
    ok(tir_runtime_create(NULL, &r->runtime, &error), &error);
    ok(tir_rt_device_open(r->runtime, "emu", &r->device, &error), &error);
    ok(kernels_load(r->device, &r->module, &error), &error);
}

static void finish(struct rig *r)
{
    tir_rt_module_destroy(r->module);
    tir_rt_device_destroy(r->device);
    tir_runtime_destroy(r->runtime);
}

static tir_rt_buffer *upload(struct rig *r, const void *bytes, uint64_t size)
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
    struct rig r;
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
    finish(&r);
}

static void scalars_go_by_value(void **state)
{
    (void)state;
    int32_t y[16] = {0};
    struct rig r;
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
    finish(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_go_by_address_and_dimensions_by_name),
        cmocka_unit_test(scalars_go_by_value),
    };
    return cmocka_run_group_tests_name("header", tests, NULL, NULL);
}
