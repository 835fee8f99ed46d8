// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The configurations that tirc tune compares: those of the source, and with --try others.
#ifndef TIR_DRIVER_TUNE_CANDIDATES_H
#define TIR_DRIVER_TUNE_CANDIDATES_H

#include "driver/launch/session.h"

struct tir_candidate {
    tir_str name;          // what it binds: "BM=64, BN=128"
    tir_rt_module *module; // owned; NULL: that of the session
    tir_rt_kernel *kernel;
    const tir_artifact_kernel *info;
    uint32_t config; // in `info`
    // For the sizes at hand.
    bool fits;
    uint32_t variant;
    uint32_t launches; // of a turn
    double *turns;     // microseconds of a launch
    double time;       // their median; of an emulator, cycles
    // For all of them.
    uint32_t wins; // sizes for which it was the best, though the source does not have it
    double gain;   // the most that it was faster than what the source has: a quotient
};

struct tir_candidates {
    VEC(struct tir_candidate) all;
    uint32_t listed; // the first ones are the configurations of the source, in order
    uint32_t failed; // combinations of --try that do not compile or load
};

// The session's kernel is loaded. Each combination of --try is compiled for itself, with every
// configuration of the source that does not say otherwise.
bool tir_candidates_find(struct tir_session *s, struct tir_candidates *out);
void tir_candidates_release(struct tir_candidates *candidates);

#endif
