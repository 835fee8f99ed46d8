// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Targets the compiler knows, from arch.def.
#ifndef TIR_TARGET_NVPTX_ARCH_H
#define TIR_TARGET_NVPTX_ARCH_H

#include "base/str.h"

enum tir_arch_feature {
    TIR_ARCH_CP_ASYNC = 1 << 0,
    TIR_ARCH_MMA_F16 = 1 << 1,
    TIR_ARCH_MMA_FP8 = 1 << 2,
    TIR_ARCH_CVT_FP8 = 1 << 3,
    TIR_ARCH_BF16_ATOM = 1 << 4,
    TIR_ARCH_STMATRIX = 1 << 5,
    TIR_ARCH_CLUSTER = 1 << 6,
    TIR_ARCH_TMA = 1 << 7,
    TIR_ARCH_WGMMA = 1 << 8,
    TIR_ARCH_TCGEN05 = 1 << 9
};

struct tir_arch {
    const char *name;          // "sm_90a"
    uint32_t number;           // 90
    const char *ptx;           // LLVM's feature, "ptx86"
    int64_t shared_per_cta;    // bytes, dynamic limit
    uint32_t registers_per_sm; // 32-bit
    int64_t shared_per_sm;
    uint32_t warps_per_sm;
    uint32_t multiprocessors; // of the largest card, which estimates of time assume
    uint32_t features;        // enum tir_arch_feature
};

extern const struct tir_arch tir_archs[];
extern const uint32_t tir_arch_count;
const struct tir_arch *tir_arch_find(tir_str name); // NULL: unknown
// The first target with one of the features, which some target has.
const char *tir_arch_first_with(uint32_t features);

// The best target whose code runs on a device of that compute capability, "sm_121" for 12.1. PTX of
// a target with an "a" runs on that capability alone, other PTX on later ones as well. NULL: none.
const struct tir_arch *tir_arch_for(tir_str device);

#endif
