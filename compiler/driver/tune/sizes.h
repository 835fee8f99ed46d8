// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Several sizes of a kernel's dimensions, from words of the command line.
#ifndef TIR_DRIVER_TUNE_SIZES_H
#define TIR_DRIVER_TUNE_SIZES_H

#include "tir/artifact.h"

#include "base/vec.h"
#include "driver/fail.h"

// What words give, numbered: the kernel's dimensions, then its names that follow from them.
enum { TIR_MOST_SIZES = 2 * TIR_MAX_DIMS };

struct tir_sizes {
    int64_t values[TIR_MOST_SIZES];
    uint64_t given;             // 1 << number
    int64_t dims[TIR_MAX_DIMS]; // of all of the kernel's dimensions
};

struct tir_size_list {
    VEC(struct tir_sizes) all;
    VEC(const char *) rest; // the words that name no size
};

struct tir_draw {  // sizes at random
    int64_t count; // 0: every combination instead
    uint64_t seed;
};

// Words like "M=16,64" (one size after the other), "M=16..512" (doubled from 16 to at most 512) and
// "M=N=K=1024,4096" (the same size for each). The words up to the first dimension that was named
// before give every combination of what they list, the last one changing first; from there on a new
// group begins, which takes over the sizes that it does not name, where the last group had one.
// Other dimensions follow from these. Where sizes are drawn, each group gives so many: "16..512" is
// then a multiple of 16 up to 512, and every power of two is as likely as the next. False: *error.
bool tir_sizes_parse(struct tir_arena *arena, const tir_artifact_kernel *kernel,
                     const char *const *words, uint32_t count, const struct tir_draw *draw,
                     struct tir_size_list *out, tir_error *error);

// One of them as words like those of tirc run, with the rest.
const char *const *tir_sizes_words(struct tir_arena *arena, const tir_artifact_kernel *kernel,
                                   const struct tir_size_list *list, const struct tir_sizes *sizes,
                                   uint32_t *count);

#endif
