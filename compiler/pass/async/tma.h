// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The abilities of the tensor copy engine, decided once for layout and async_copy.
#ifndef TIR_PASS_ASYNC_TMA_H
#define TIR_PASS_ASYNC_TMA_H

#include "ir/range.h"
#include "pass/pass.h"

// Why tensor copies cannot move the slice of a load, store or copy_async; NULL: they can.
const char *tir_tma_refusal(const struct tir_func *f, const struct tir_target *target,
                            const struct tir_ranges *ranges, const struct tir_inst *access);
// The same for where the slice begins alone.
const char *tir_tma_start_refusal(const struct tir_ranges *ranges, const struct tir_inst *access);
// Why the slice cannot have `maps` tensor maps, for boxes of as many sizes; NULL: it can.
const char *tir_tma_maps_refusal(const struct tir_func *f, const struct tir_inst *access,
                                 uint32_t maps);
// The memory of a buffer, or of a part of one, if it is row-major, swizzled or not. NULL: it has
// another layout, or is a part without whole rows.
const struct tir_layout *tir_plain_memory(struct tir_types *types, const struct tir_value *buffer);
// Why no tensor copies fill or empty `box` elements of row-major memory (0: a single index), of
// which neighbours are `strides` apart in the tensor (NULL: 1); NULL: they can.
const char *tir_tma_boxes_refusal(const struct tir_layout *memory, const int64_t *box,
                                  const int64_t *strides, enum tir_elem elem);
// Why no tensor copies fill a buffer, or part of one; NULL: they can.
const char *tir_tma_memory_refusal(struct tir_types *types, const struct tir_value *buffer,
                                   const int64_t *strides);
// The largest divisor of a side that a box can have.
int64_t tir_tma_divisor(int64_t n, int64_t most);
// The elements of a tile's dimension that one box takes: those consecutive in memory. `inner` is
// the innermost iterator of the dimension, `dense` the extent of the dimensions inside it.
int64_t tir_tma_side(struct tir_iter inner, int64_t size, int64_t dense, int64_t most);
// Whether elements outside the tensor read as zero, and nothing is masked.
bool tir_reads_zero_outside(const struct tir_inst *load);

#endif
