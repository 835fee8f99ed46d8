// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The two ways in which copies run ahead; parts of the pipeline pass.
#ifndef TIR_PASS_ASYNC_PIPELINE_H
#define TIR_PASS_ASYNC_PIPELINE_H

#include "ir/follow.h"
#include "pass/pass.h"

// Bytes of one slot of a buffer that exists once per stage.
int64_t tir_slot_bytes(const struct tir_type *t);
// The same buffer with `stages` slots in front.
const struct tir_type *tir_slots_type(struct tir_func *f, const struct tir_type *t, int64_t stages);
// Slot number `slot` of `slots`, as a buffer of type t.
struct tir_value *tir_build_slot(struct tir_builder *b, struct tir_value *slots,
                                 struct tir_value *slot, const struct tir_type *t);
// The argument of the block of a put or get: the number of its slot.
struct tir_value *tir_add_slot_arg(struct tir_func *f, struct tir_inst *owner);

// Bytes that operations of the loop with this block may need as scratch: two at a time.
int64_t tir_loop_scratch(const struct tir_func *f, const struct tir_block *body);
// Which values can be computed ahead of their iteration: from the loop variable, from outside of
// the loop's block `body` and from tensors that nothing writes, by pure means.
void tir_runs_ahead_init(struct tir_follow *ahead, struct tir_arena *arena,
                         const struct tir_func *f, struct tir_block *body);

// pipeline_ring.c: whether a buffer that `fill`, a copy or store, fills can become slots of a ring:
// it is made in the same block, nothing else writes it, and it is only read after `fill`.
bool tir_can_be_slots(const struct tir_func *f, const struct tir_inst *fill,
                      const struct tir_value *buffer);
// Tensor copies. True: something changed.
bool tir_pipeline_rings(struct tir_func *f, struct tir_pass_cx *cx);

#endif
