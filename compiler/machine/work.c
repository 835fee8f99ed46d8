// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "machine/work.h"

const struct tir_work *tir_work_of(enum tir_op op)
{
    static const struct tir_work plain = {1, 0, 0}, works[TIR_OP_COUNT] = {
#define WORK(op, issue, mufu, half, ...) [TIR_OP_##op] = {issue, mufu, half},
#include "machine/work.def"
                                                    };
    static const bool has_row[TIR_OP_COUNT] = {
#define WORK(op, ...) [TIR_OP_##op] = true,
#include "machine/work.def"
    };
    return has_row[op] ? &works[op] : &plain;
}
