// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts of the barrier pass.
#ifndef TIR_PASS_SYNC_BARRIER_H
#define TIR_PASS_SYNC_BARRIER_H

#include "ir/range.h"

// Does f order its own scalar accesses, because it uses single threads or barriers? Code that
// passes add to choose the thread that arrives at an mbarrier or starts a copy does not count.
bool tir_speaks_of_threads(const struct tir_func *f, struct tir_arena *scratch);
// Buffers that copies with mbarriers fill, or that two roles use: keys of `found`, which lives on
// scratch.
void tir_find_handed_over(struct tir_func *f, struct tir_arena *scratch, struct tir_map *found);

// Does each thread write in store y what it wrote in store x, as far as the two touch the same?
// x may be y, in a later round of a loop. False: they differ, or one is no store.
bool tir_same_writers(const struct tir_ranges *ranges, const struct tir_inst *x,
                      const struct tir_inst *y);
// May the engine end two store_async to one tensor in any order: do they combine alike, or go to
// different places? x may be y, in a later round of a loop.
bool tir_stores_in_any_order(const struct tir_inst *x, const struct tir_inst *y);

#endif
