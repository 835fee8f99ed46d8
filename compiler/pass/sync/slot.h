// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Slots that threads hand to each other, each with mbarriers: its number and the phase of its
// mbarriers are values that loops carry.
#ifndef TIR_PASS_SYNC_SLOT_H
#define TIR_PASS_SYNC_SLOT_H

#include "ir/ir.h"

// One mbarrier for each slot, not initialised yet.
struct tir_value *tir_slot_mbarriers(struct tir_builder *b, int64_t slots, const char *name);
struct tir_value *tir_slot_mbarrier(struct tir_builder *b, struct tir_value *mbarriers,
                                    struct tir_value *slot);
void tir_slot_wait(struct tir_builder *b, struct tir_value *mbarriers, struct tir_value *slot,
                   struct tir_value *phase);
// The slot after this one; is v that, as it was built here?
struct tir_value *tir_slot_next(struct tir_builder *b, struct tir_value *slot, int64_t slots);
bool tir_slot_is_next(const struct tir_value *v, const struct tir_value *slot, int64_t slots);
// To the slot after this one, and the phase there.
void tir_slot_step(struct tir_builder *b, int64_t slots, struct tir_value **slot,
                   struct tir_value **phase);

#endif
