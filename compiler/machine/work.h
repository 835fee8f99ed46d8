// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How long engines are kept busy, from work.def.
#ifndef TIR_MACHINE_WORK_H
#define TIR_MACHINE_WORK_H

#include "ir/ir.h"

enum {
#define DELAY(id, cycles, ...) TIR_DELAY_##id = cycles,
#include "machine/work.def"
};

struct tir_work { // cycles for each register of the tile
    int64_t issue, mufu, half;
};
// Of an operation without a row too.
const struct tir_work *tir_work_of(enum tir_op op);

#endif
