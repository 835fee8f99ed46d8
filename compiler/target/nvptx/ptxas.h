// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NVIDIA's assembler, where it is installed: PTX to a cubin, and what it reports on the way.
#ifndef TIR_TARGET_NVPTX_PTXAS_H
#define TIR_TARGET_NVPTX_PTXAS_H

#include "base/vec.h"
#include "machine/target.h"

struct tir_ptxas_kernel {
    tir_str name;
    uint32_t registers;
    uint32_t spill_bytes; // stores and loads together
    uint32_t stack_bytes;
    VEC(tir_str) notes; // why its code is slow, one for each code of messages: "C7514: ..."
};

struct tir_ptxas_result {
    bool ok;       // there is a cubin, and it is complete
    tir_str cubin; // on the arena, like everything here
    tir_str log;
    tir_str reason; // where not ok: why, one line of the log
    struct tir_ptxas_kernel *kernels;
    uint32_t kernel_count;
};

// The path of ptxas: in PATH, else in /usr/local/cuda/bin. NULL: not installed.
const char *tir_ptxas_find(struct tir_arena *arena);

// Runs it. False: it could not be started at all.
bool tir_ptxas_run(struct tir_arena *arena, const char *path, const struct tir_target *target,
                   tir_str ptx, struct tir_ptxas_result *result);

#endif
