// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A runtime that was built without the emulator says so.

#include "error.h"
#include "runtime.h"

void tir_emu_info(const tir_runtime *runtime, tir_rt_device_info *out)
{
    (void)runtime;
    *out = (tir_rt_device_info){.kind = TIR_RT_EMU, .spec = "emu", .name = "no emulator"};
}

tir_status tir_emu_open(tir_runtime *runtime, tir_rt_device **out, tir_error *error)
{
    (void)runtime;
    (void)out;
    return tir_error_set(error, TIR_ERR_UNSUPPORTED, "this runtime has no emulator");
}
