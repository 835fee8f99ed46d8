// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the tensor copy engine can do; decided here once, asked by layout and async_copy.
#ifndef TIR_PASS_TMA_H
#define TIR_PASS_TMA_H

#include "ir/range.h"
#include "pass/pass.h"

// Why the slice of a tensor that a load, store or copy_async names cannot be moved by tensor
// copies; NULL: it can.
const char *tir_tma_refusal(const struct tir_func *f, const struct tir_arch *arch,
                            const struct tir_ranges *ranges, const struct tir_inst *access);
// Whether what lies outside the tensor reads as zero, and nothing is masked.
bool tir_reads_zero_outside(const struct tir_inst *load);

#endif
