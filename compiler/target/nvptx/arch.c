// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of targets.

#include "target/nvptx/arch.h"

#define CP_ASYNC  TIR_ARCH_CP_ASYNC
#define MMA_F16   TIR_ARCH_MMA_F16
#define MMA_FP8   TIR_ARCH_MMA_FP8
#define CVT_FP8   TIR_ARCH_CVT_FP8
#define BF16_ATOM TIR_ARCH_BF16_ATOM
#define STMATRIX  TIR_ARCH_STMATRIX
#define CLUSTER   TIR_ARCH_CLUSTER
#define TMA       TIR_ARCH_TMA
#define WGMMA     TIR_ARCH_WGMMA
#define TCGEN05   TIR_ARCH_TCGEN05

const struct tir_arch tir_archs[] = {
#define ARCH(...) {__VA_ARGS__},
#include "target/nvptx/arch.def"
};
const uint32_t tir_arch_count = TIR_COUNT_OF(tir_archs);

const struct tir_arch *tir_arch_find(tir_str name)
{
    for (uint32_t i = 0; i < tir_arch_count; i++)
        if (tir_str_is(name, tir_archs[i].name))
            return &tir_archs[i];
    return NULL;
}
