// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles that go to shared memory: operands of dot, copies.
#ifndef TIR_PASS_LAYOUT_STAGING_H
#define TIR_PASS_LAYOUT_STAGING_H

#include "machine/target.h"
#include "pass/pass.h"

// The dimension of a load's (or store's) tile that is contiguous in memory; rank: none.
uint32_t tir_contiguous_dim(const struct tir_inst *access, uint32_t rank);
// Replaces a copy_async by a load in layout l, which it gives, and a store. Index tiles and the
// mask stay as they are.
struct tir_inst *tir_stage_copy(struct tir_func *f, struct tir_inst *copy,
                                const struct tir_layout *l);
// Stores x to all of the buffer, and loads it again.
struct tir_value *tir_stage_through(struct tir_builder *b, struct tir_value *x,
                                    struct tir_value *buffer);
// Gives every dot operand that is a tile a shared buffer, filled right after the tile is made.
void tir_stage_dots(struct tir_func *f, struct tir_pass_cx *cx);
// Will operand i of the dot, A or B, lie in shared memory as it does in global memory?
bool tir_stages_straight(const struct tir_target *target, const struct tir_inst *dot, uint32_t i);
// Is the whole tile small enough to go through shared memory for the sake of a part?
bool tir_may_stage_extract(const struct tir_inst *extract);
// Replaces reshape by a buffer with the tile, which is loaded in its other shape.
void tir_stage_reshape(struct tir_func *f, struct tir_inst *reshape);
// Replaces extract by a buffer with the whole tile, from which the part is loaded.
void tir_stage_extract(struct tir_func *f, struct tir_inst *extract);

#endif
