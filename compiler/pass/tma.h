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
// The memory that a buffer, or part of one, lies in, when it is row-major, swizzled or not; NULL:
// it is laid out in another way, or a part that leaves out some of a row.
const struct tir_layout *tir_plain_memory(struct tir_types *types, const struct tir_value *buffer);
// Whether what lies outside the tensor reads as zero, and nothing is masked.
bool tir_reads_zero_outside(const struct tir_inst *load);

#endif
