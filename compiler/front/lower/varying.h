// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which values may differ, given those that differ by themselves (varying.c).
#ifndef TIR_FRONT_LOWER_VARYING_H
#define TIR_FRONT_LOWER_VARYING_H

#include "base/bitset.h"
#include "ir/walk.h"

struct varying {
    const struct tir_func *f;
    // Does what inst gives vary, whatever its operands are?
    bool (*begins)(const struct varying *set, const struct tir_inst *inst);
    // Is what inst gives the same, whatever its operands are? NULL: of none.
    bool (*ends)(const struct varying *set, const struct tir_inst *inst);
    uint32_t threads; // between which values may differ: of groups of so many; 0: all of the crew
    struct bitset values; // by value id; those that vary at first are put in by the caller
    bool changed, again;  // varying_find's: something new varies; another walk may find more
};

void varying_find(struct varying *set);
bool varying_has(const struct varying *set, const struct tir_value *v);        // not of NULL
bool varying_operands(const struct varying *set, const struct tir_inst *inst); // of any of them
// The innermost branch or loop around inst whose condition varies; NULL: none.
const struct tir_inst *varying_around(const struct varying *set, const struct tir_inst *inst);

#endif
