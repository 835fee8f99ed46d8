// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "product.h"

void ok(tir_status status, const tir_error *error)
{
    if (status)
        fail_msg("%s: %s", tir_status_name(status), error->message);
}

void product_open(struct product *p)
{
    tir_error error;
    *p = (struct product){0};
    ok(tir_runtime_create(NULL, &p->runtime, &error), &error);
    ok(tir_rt_device_open(p->runtime, "emu", &p->device, &error), &error);
}

void product_kernel(struct product *p, tir_str name, uint64_t elements)
{
    tir_error error;
    ok(tir_rt_module_kernel(p->module, name, &p->kernel, &error), &error);
    ok(tir_rt_buffer_create(p->device, elements * 2, &p->a, &error), &error);
    ok(tir_rt_buffer_create(p->device, elements * 2, &p->b, &error), &error);
    ok(tir_rt_buffer_create(p->device, elements * 4, &p->d, &error), &error);
}

void product_close(struct product *p)
{
    tir_rt_buffer_destroy(p->a);
    tir_rt_buffer_destroy(p->b);
    tir_rt_buffer_destroy(p->d);
    tir_rt_module_destroy(p->module);
    tir_rt_device_destroy(p->device);
    tir_runtime_destroy(p->runtime);
}
