// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A loaded kernel, as the launch path sees it.
#ifndef TIR_RUNTIME_MODULE_H
#define TIR_RUNTIME_MODULE_H

#include "device.h"

struct loaded_function {
    void *native;              // the device's function
    struct watchdog *watchdog; // or NULL
    uint32_t most;             // of a persistent variant: most CTAs along x
};

struct tir_rt_kernel {
    tir_rt_device *device;
    void *native; // the device's module
    const tir_artifact_kernel *info;
    struct loaded_function *functions; // one for each variant
    const tir_artifact_tuned *tuned;   // what was measured on such a device; or NULL
    tir_rt_kernel *all;                // the module's, by their number in the artifact
};

#endif
