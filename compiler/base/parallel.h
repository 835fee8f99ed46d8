// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Work on several threads of the host.
#ifndef TIR_BASE_PARALLEL_H
#define TIR_BASE_PARALLEL_H

#include "base/base.h"

// Processors of the host that this thread may run on, 1 at least.
uint32_t tir_processors(void);

// Calls run(user, i) for each i below count: in order, on this thread and up to threads - 1 others,
// of which each takes the next i when it is done with one. Returns when all calls have. What they
// share is theirs to protect; none of them may jump out of run.
void tir_side_by_side(uint32_t threads, uint32_t count, void (*run)(void *user, uint32_t i),
                      void *user);

// run(user) on a thread of its own with a deep stack, while the caller's waits; on the caller's
// where none can be had. The back end, and the reading of nested source, take stack for each level.
void tir_with_deep_stack(void (*run)(void *user), void *user);

#endif
