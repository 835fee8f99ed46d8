// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Index tiles that count: every n-th element of a dimension.
#ifndef TIR_PASS_ASYNC_STRIDE_H
#define TIR_PASS_ASYNC_STRIDE_H

#include "ir/ir.h"

// Why no engine copies along dimension d of a slice, whose index is a tile.
const char *tir_index_refusal(const struct tir_inst *slice, uint32_t d);

// Does the index tile of dimension d of a load only count, so that a tensor copy can follow it?
bool tir_counts_along(const struct tir_inst *load, uint32_t d);
// The distance between neighbours of a slice along each dimension of its tile, in a tensor map.
void tir_strides_of(const struct tir_inst *slice, int64_t strides[TIR_MAX_RANK]);
// Replaces the index tiles of a tensor copy by where they start and the attribute strides, or by
// what it says of pixels.
void tir_state_strides(struct tir_func *f, struct tir_inst *copy);

#endif
