// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel of a module, as the launch path sees it.
#ifndef TIR_RUNTIME_MODULE_H
#define TIR_RUNTIME_MODULE_H

#include "device.h"

// A variant on the device, made ready by the first who needs it.
struct loaded_function {
    // What the artifact says of it; of an open variant, once it is ready, what comes with its code.
    const tir_artifact_variant *info;
    struct watchdog *watchdog; // or NULL
    void *module;              // the device's module that it is in
    void *native;              // the device's function
    uint32_t most;             // of a persistent variant: most CTAs along x
    atomic_bool is_ready;
    void *own; // the device's module of this variant alone; NULL: it is in the whole
    const tir_artifact_desc *code; // where `info` is, or NULL
    pthread_mutex_t lock;          // held while it is loaded
};

struct launch_layout;

struct tir_rt_kernel {
    tir_rt_module *module;
    tir_rt_device *device;
    const tir_artifact_kernel *info;
    struct loaded_function *functions; // one for each variant
    const tir_artifact_tuned *tuned;   // what was measured on such a device; or NULL
    struct launch_layout *layout;
    tir_rt_kernel *all; // the module's, by their number in the artifact
};

struct tir_rt_module {
    tir_rt_device *device;
    tir_rt_compile_fn compile; // of open variants
    void *compile_user;
    const tir_artifact_desc *desc; // of the artifact, without its PTX; or &ptx
    tir_artifact_desc ptx;
    char target[16];        // of PTX
    pthread_mutex_t lock;   // guards the two below and the receipt
    bool is_whole;          // the code is loaded as a whole
    void *whole;            // the device's module of all code; NULL: not loaded
    tir_rt_kernel *kernels; // desc->kernel_count
    struct launch_layout *layouts;
    struct loaded_function *functions; // of all variants of all kernels
    size_t function_count;
};

// function.c: loads the variant if it is not loaded yet. One thread loads it, others that need it
// wait; nobody else does.
tir_status tir_function_load(const tir_rt_kernel *kernel, uint32_t variant, tir_error *error);
void tir_function_release(tir_rt_module *module, struct loaded_function *function);
// All code of the module in one piece.
tir_status tir_module_load_whole(tir_rt_module *module, void **out, tir_error *error);

static inline tir_status tir_function_ready(const tir_rt_kernel *kernel, uint32_t variant,
                                            tir_error *error)
{
    if (atomic_load_explicit(&kernel->functions[variant].is_ready, memory_order_acquire))
        return TIR_OK;
    return tir_function_load(kernel, variant, error);
}

#endif
