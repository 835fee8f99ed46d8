// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A range of independent work, on all cores.
#ifndef TIR_DRIVER_VALUE_PARALLEL_H
#define TIR_DRIVER_VALUE_PARALLEL_H

#include <stdint.h>

// Calls `run` for parts of [0, count) that do not overlap, at once where there are cores and the
// parts are worth a thread. Parts begin at multiples of 1024. Returns when all are done.
void tir_parallel(int64_t count, void (*run)(void *user, int64_t first, int64_t end), void *user);

#endif
