// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// By how much a loop changes a carried integer in each round.
#ifndef TIR_PASS_STEP_H
#define TIR_PASS_STEP_H

#include "ir/ir.h"

struct tir_step {
    struct tir_value *by; // a value from outside of the loop; NULL: the number alone
    bool is_sub;          // `by` is subtracted
    int64_t number;       // where `by` is NULL
};

// The step of carried value `slot` of a for or while, by additions and subtractions that are the
// same on all ways through a round. False: it is no integer of one step, or the step is 0.
bool tir_step_of(const struct tir_inst *loop, uint32_t slot, struct tir_step *out);

// Is v the same in all rounds of the loop?
bool tir_is_invariant(const struct tir_inst *loop, const struct tir_value *v);

#endif
