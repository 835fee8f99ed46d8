// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The usual set-up of a test: a runtime on the fake driver, and the sample loaded on it.
#ifndef TESTS_RUNTIME_RIG_H
#define TESTS_RUNTIME_RIG_H

#include "alloc.h"
#include "fakecuda.h"
#include "sample.h"
#include "tir/runtime.h"

struct rig {
    struct counting counting;
    struct fake_cuda *fake;
    const tir_artifact_desc *desc; // what is loaded; NULL: the sample
    tir_runtime *runtime;
    tir_rt_device *device;
    tir_rt_module *module;
    tir_rt_kernel *gemm, *copy;
    tir_error error;
};

// The fake driver's state, set back to its beginning. `library` is FAKE_CUDA or FAKE_OLD_CUDA.
struct fake_cuda *rig_fake(const char *library);

// A runtime on a driver library whose memory `counting` watches.
tir_status rig_runtime(struct rig *rig, const char *library);

// All of a rig that is not there yet; each step that fails leaves the rest NULL. rig_close frees
// what there is and checks that neither the host's nor the driver's objects leak.
tir_status rig_open(struct rig *rig);
void rig_close(struct rig *rig);

// Loads the code of every variant of the module.
tir_status rig_load_all(struct rig *rig, tir_rt_module *module);

// The sample as bytes; freed by the caller with free().
uint8_t *rig_artifact(const tir_artifact_desc *desc, size_t *size);

// cmocka's set-up and tear-down of a test that gets a rig in *state.
int rig_setup(void **state);
int rig_teardown(void **state);

// Fails the test unless `status` is `expected` and the message has `part` in it.
void rig_expect(struct rig *rig, tir_status status, tir_status expected, const char *part);

// Fails the test on an error.
void rig_ok(struct rig *rig, tir_status status);

// The sample with this kernel alone, loaded; `*module` is the caller's. NULL: the device refused
// it.
tir_rt_kernel *rig_load(struct rig *rig, const tir_artifact_kernel *kernel, tir_rt_module **module);

// The same, of the sample's first kernel with other parameters (NULL: its own) and variants.
tir_rt_kernel *rig_load_changed(struct rig *rig, const tir_artifact_param *params,
                                const tir_artifact_variant *variants, uint32_t count,
                                tir_rt_module **module);

// Arguments that the sample's kernel accepts: M = 256, N = 512, K = 128, aligned and contiguous.
struct gemm_args {
    int64_t a[2], b[3], d[2];
    tir_rt_arg args[5];
};
void rig_gemm_args(struct gemm_args *g);
// Launches it with them; the report may be NULL.
tir_status rig_launch(struct rig *rig, const struct gemm_args *g, tir_rt_launch_report *report);

#endif
