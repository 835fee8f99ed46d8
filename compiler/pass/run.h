// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The runner's state for one function.
#ifndef TIR_PASS_RUN_H
#define TIR_PASS_RUN_H

#include "pass/pass.h"

#define TIR_MAX_TIMED 32

struct tir_runner {
    const struct tir_pass_options *options;
    int64_t changes_left; // of general passes; -1: no limit
    struct {
        const char *name;
        int64_t nanoseconds; // with the passes it ran
        uint32_t runs;
    } timed[TIR_MAX_TIMED];
    uint32_t timed_count;
};

#endif
