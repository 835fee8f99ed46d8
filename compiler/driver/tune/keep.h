// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which few of many configurations a kernel should have: tirc tune --keep.
#ifndef TIR_DRIVER_TUNE_KEEP_H
#define TIR_DRIVER_TUNE_KEEP_H

#include "driver/tune/candidates.h"

struct tir_keep_cell { // a candidate at some sizes
    double loss;       // logarithm of how many times as long as the best it takes there;
                       // INFINITY: it does not fit
    int64_t cost;      // what the model says; INT64_MAX: nothing
};

// Zeroed but for the first two members.
struct tir_keep {
    struct tir_arena *arena;
    uint32_t candidates;
    VEC(struct tir_keep_cell) cells; // of all candidates, for one size after the other
    VEC(uint32_t) kept;              // the best to have first
    double loss;                     // a launch takes so many times as long as the best of all
    uint32_t unfit;                  // sizes that none of them fits
};

// The candidates' times for these sizes. `scalars`: the integer arguments by parameter.
void tir_keep_add(struct tir_keep *keep, const struct tir_candidates *list, const int64_t *dims,
                  const int64_t *scalars);
// At most so many, each the one with which launches are fastest beside those before it. A launch
// takes what the model chooses among them, which need not be the fastest.
void tir_keep_choose(struct tir_keep *keep, uint32_t most);

#endif
