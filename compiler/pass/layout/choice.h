// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Masks and pads of loads, chosen where the tile is read.
#ifndef TIR_PASS_LAYOUT_CHOICE_H
#define TIR_PASS_LAYOUT_CHOICE_H

#include "ir/range.h"
#include "pass/pass.h"

// The pad, if it is not what copies fill with, and they can do without it.
struct tir_value *tir_removable_pad(const struct tir_inst *load);
// Chooses such a pad where the load's tile is read. The mask stays with the load.
void tir_choose_pad(struct tir_func *f, const struct tir_ranges *ranges, struct tir_inst *load);
// Chooses masks and pads of operands of products, where copies cannot carry them. True: something
// changed.
bool tir_choose_operands(struct tir_func *f, struct tir_pass_cx *cx);

#endif
