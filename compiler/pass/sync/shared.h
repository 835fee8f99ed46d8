// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which memory a value of buffer type stands for; shared by memory, barrier and lower_tile.
#ifndef TIR_PASS_SYNC_SHARED_H
#define TIR_PASS_SYNC_SHARED_H

#include "ir/ir.h"
#include "ir/layout_exchange.h"

// The bytes of its alloc that a buffer may touch, as far as constants say: begin .. end.
struct tir_bytes {
    int64_t begin, end;
};
struct tir_bytes tir_buffer_part(const struct tir_value *buffer);
struct tir_bytes tir_slice_part(const struct tir_inst *inst); // of the slice that inst names
// Does converting x to layout `to` need shared memory, because data changes warps?
bool tir_convert_needs_scratch(const struct tir_type *from, const struct tir_type *to);
// Can the lanes of each warp do it by shuffles?
bool tir_convert_exchanges(const struct tir_type *from, const struct tir_type *to,
                           struct tir_exchange *exchange);
// Do threads need old values of this atomic from other threads? Each element is done once, by one
// of the threads that hold it, and a scalar by one thread, unless the kernel uses single threads.
// used: whether the old values are used.
bool tir_atomic_shares(const struct tir_func *f, const struct tir_inst *atomic, bool used);
// How many warps hold parts of one result of a reduction or scan along axis; 1: no scratch needed.
uint32_t tir_warps_along(const struct tir_layout *l, uint32_t axis);
// The number of blocks along the axis that warps exchange if its order is kept; registers and lanes
// have combined each block. 1: no scratch needed.
uint32_t tir_combine_blocks(const struct tir_layout *l, uint32_t axis);

#endif
