// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What ptxas says of kernels with products on warpgroups: that it serialises them, waits more often
// than it is told to, or has too few registers.
#ifndef TESTS_RANDOM_NOTES_H
#define TESTS_RANDOM_NOTES_H

#include "target/nvptx/ptxas.h"

struct notes {
    uint32_t kernels; // that have such products
    uint32_t spilled; // bytes of local memory of one of them, the most
    tir_str note;     // one of them, C7519 only if there is no other, or ptxas's error; empty: none
    tir_str of;       // the kernel that has the note, or that spills most
};

// ptx: a module. False: ptxas is not installed.
bool notes_take(struct tir_arena *arena, const char *arch, tir_str ptx, struct notes *out);

#endif
