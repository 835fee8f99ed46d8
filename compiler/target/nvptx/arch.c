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

// "sm_121": 121; 0: not such a name.
static uint32_t capability_of(tir_str device)
{
    uint32_t number = 0;
    if (device.len < 4 || device.len > 8 || memcmp(device.ptr, "sm_", 3) != 0)
        return 0;
    for (size_t i = 3; i < device.len; i++) {
        if (device.ptr[i] < '0' || device.ptr[i] > '9')
            return 0;
        number = number * 10 + (uint32_t)(device.ptr[i] - '0');
    }
    return number;
}

const struct tir_arch *tir_arch_for(tir_str device)
{
    const uint32_t capability = capability_of(device);
    const struct tir_arch *best = NULL;
    for (uint32_t i = 0; i < tir_arch_count; i++) {
        const struct tir_arch *arch = &tir_archs[i];
        bool exact = arch->name[strlen(arch->name) - 1] == 'a';
        if (exact ? arch->number == capability : arch->number <= capability)
            best = arch;
    }
    return best;
}

const char *tir_arch_first_with(uint32_t features)
{
    const struct tir_arch *arch = tir_archs;
    while (!(arch->features & features))
        arch++;
    return arch->name;
}
