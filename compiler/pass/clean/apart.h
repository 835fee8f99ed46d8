// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads that ptxas moves no further ahead, where registers might not last.
#ifndef TIR_PASS_APART_H
#define TIR_PASS_APART_H

#include "ir/ir.h"
#include "machine/target.h"

// Of a lowered kernel. ordered: blocks whose loads are where they are used, and of tensors that the
// kernel writes. Returns whether anything changed.
bool tir_keep_apart(struct tir_func *f, const struct tir_target *target,
                    struct tir_block *const *ordered, uint32_t ordered_count,
                    struct tir_arena *scratch);

#endif
