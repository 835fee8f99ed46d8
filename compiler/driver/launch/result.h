// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The results of a run, as text or one JSON object.
#ifndef TIR_DRIVER_LAUNCH_RESULT_H
#define TIR_DRIVER_LAUNCH_RESULT_H

#include "tir/runtime.h"

#include "driver/launch/bind.h"
#include "driver/launch/reference.h"
#include "driver/launch/unwritten.h"

struct tir_result_output {
    const struct tir_bound *bound;
    struct tir_difference difference; // when checked
    struct tir_unwritten unwritten;   // when checked
    bool stray;                       // bytes between the elements were written
    bool wrong;
};

struct tir_result {
    const tir_rt_device_info *device;
    const tir_artifact_kernel *kernel;
    const char *arch; // what was compiled for
    tir_rt_launch_report report;
    tir_rt_launch_report steps[TIR_MAX_STEPS]; // of a sequence
    struct tir_result_output outputs[TIR_MAX_PARAMS];
    uint32_t output_count;
    bool checked;
    uint32_t launches; // timed; 0: none
    double median_us, min_us;
    uint64_t traffic; // bytes of all tensors: read once, written once
};

bool tir_result_passes(const struct tir_result *result);
void tir_result_text(const struct tir_result *result, struct tir_text *out);
void tir_result_json(const struct tir_result *result, struct tir_text *out);

#endif
