// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Walking a kernel: every instruction in program order (an owner before what it contains).
#ifndef TIR_IR_WALK_H
#define TIR_IR_WALK_H

#include "ir/ir.h"

// tir_walk_next in general.
struct tir_inst *tir_walk_on(const struct tir_block *root, const struct tir_inst *inst);
// The instruction after `inst` in program order within `root`; NULL at the end. inst NULL: the
// first.
static inline struct tir_inst *tir_walk_next(const struct tir_block *root,
                                             const struct tir_inst *inst)
{
    return inst && !inst->region_count && inst->next ? inst->next : tir_walk_on(root, inst);
}
// As above, but does not enter inst's regions.
struct tir_inst *tir_walk_skip(const struct tir_block *root, const struct tir_inst *inst);
// The instruction after `inst` in program order among `root` and all that is inside of it; NULL at
// the end. inst NULL: root.
const struct tir_inst *tir_walk_within(const struct tir_inst *root, const struct tir_inst *inst);

#define tir_foreach_inst(inst, f)                                      \
    for (struct tir_inst *inst = tir_walk_next((f)->body, NULL); inst; \
         inst = tir_walk_next((f)->body, inst))
#define tir_foreach_inst_in(inst, root)                             \
    for (struct tir_inst *inst = tir_walk_next((root), NULL); inst; \
         inst = tir_walk_next((root), inst))
// An instruction and all that is inside of it.
#define tir_foreach_inst_within(inst, root)                                 \
    for (const struct tir_inst *inst = tir_walk_within((root), NULL); inst; \
         inst = tir_walk_within((root), inst))
// The instructions of one block; the current one may be removed.
#define tir_foreach_inst_safe(inst, block_)                                                \
    for (struct tir_inst *inst = (block_)->first, *next_ = inst ? inst->next : NULL; inst; \
         inst = next_, next_ = inst ? inst->next : NULL)

// Where instructions are in the text: their numbers, from 1 on, and the last ones inside, by id.
struct tir_order {
    uint32_t *begin, *end, count;
};
struct tir_order tir_order_of(struct tir_arena *arena, const struct tir_func *f);

// Is v an operand of inst, or of something inside of it?
bool tir_uses_value(const struct tir_inst *inst, const struct tir_value *v);
// How often each value is used, by value id (the array has f->value_count entries).
uint32_t *tir_count_uses(struct tir_arena *arena, const struct tir_func *f);
// Does the function allocate tensor memory for pairs of CTAs?
bool tir_has_pairs(const struct tir_func *f);

#endif
