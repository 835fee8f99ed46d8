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
// To the slot after this one, and the phase there.
void tir_slot_step(struct tir_builder *b, int64_t slots, struct tir_value **slot,
                   struct tir_value **phase);

#endif
