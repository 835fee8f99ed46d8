// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "rig.h"

void ok(tir_status status, const tir_error *error)
{
    if (status)
        fail_msg("%s: %s", tir_status_name(status), error->message);
}

void rig_open(struct rig *rig)
{
    tir_error error;
    *rig = (struct rig){0};
    ok(tir_runtime_create(NULL, &rig->runtime, &error), &error);
    ok(tir_rt_device_open(rig->runtime, "emu", &rig->device, &error), &error);
}

void rig_kernel(struct rig *rig, tir_str name, uint64_t elements)
{
    tir_error error;
    ok(tir_rt_module_kernel(rig->module, name, &rig->kernel, &error), &error);
    ok(tir_rt_buffer_create(rig->device, elements * 2, &rig->a, &error), &error);
    ok(tir_rt_buffer_create(rig->device, elements * 2, &rig->b, &error), &error);
    ok(tir_rt_buffer_create(rig->device, elements * 4, &rig->d, &error), &error);
}

void rig_close(struct rig *rig)
{
    tir_rt_buffer_destroy(rig->a);
    tir_rt_buffer_destroy(rig->b);
    tir_rt_buffer_destroy(rig->d);
    tir_rt_module_destroy(rig->module);
    tir_rt_device_destroy(rig->device);
    tir_runtime_destroy(rig->runtime);
}
