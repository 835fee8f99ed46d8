// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel D = A @ B on the emulator, with a buffer for each matrix.
#ifndef TESTS_COMPILE_PRODUCT_H
#define TESTS_COMPILE_PRODUCT_H

#include "tir/runtime.h"

struct product {
    tir_runtime *runtime;
    tir_rt_device *device;
    tir_rt_module *module; // loaded by the test
    tir_rt_kernel *kernel;
    tir_rt_buffer *a, *b, *d;
};

// Fails the test unless the call went well.
void ok(tir_status status, const tir_error *error);

void product_open(struct product *p); // the emulator
// The kernel of the module. elements: of A and B, in bf16, and of D, in f32.
void product_kernel(struct product *p, tir_str name, uint64_t elements);
void product_close(struct product *p);

#endif
