// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is known of a test.
#ifndef TIR_PASS_BOUNDS_H
#define TIR_PASS_BOUNDS_H

#include "ir/range.h"

// 1 or 0: what the comparison of two integers gives, whatever they are; -1: that depends.
int tir_bounds_answer(const struct tir_ranges *ranges, const struct tir_inst *test);

#endif
