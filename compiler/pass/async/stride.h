// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Index tiles that count: every n-th element of a dimension.
#ifndef TIR_PASS_ASYNC_STRIDE_H
#define TIR_PASS_ASYNC_STRIDE_H

#include "ir/ir.h"

// The distance between neighbours of an index tile that is a start and multiples of it, as the
// slice `i:+n:s` is. 0: it is not so.
int64_t tir_stride_of(const struct tir_value *index);

// Why no engine copies along dimension d of a slice, whose index is a tile.
const char *tir_index_refusal(const struct tir_inst *slice, uint32_t d);

#endif
