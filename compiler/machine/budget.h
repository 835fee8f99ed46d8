// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What passes allow themselves, from budget.def.
#ifndef TIR_MACHINE_BUDGET_H
#define TIR_MACHINE_BUDGET_H

#include "base/base.h"

enum {
#define BUDGET(id, value, ...) TIR_BUDGET_##id = value,
#include "machine/budget.def"
};

enum tir_basis { TIR_BASIS_DERIVED, TIR_BASIS_CHOSEN }; // of a row

// Registers of a thread; 0: as at launch.
struct tir_role_registers {
    uint32_t load, math; // of the role that fills slots, of the role with the products
};
// What the warps do that fill slots: as many warpgroups as multiply turn operands (TURN_MANY) or
// COMPUTE, two ISSUE_MANY products in tensor memory, two GATHER rows for these and issue them, or
// three (MANY), or four (MOST), else one does the rest.
enum tir_role_work {
    TIR_ROLE_COPIES,
    TIR_ROLE_TURNS,
    TIR_ROLE_TURN_MANY,
    TIR_ROLE_COMPUTES,
    TIR_ROLE_ISSUES,
    TIR_ROLE_ARRANGES,
    TIR_ROLE_ISSUE_MANY,
    TIR_ROLE_GATHERS,
    TIR_ROLE_GATHER_MANY,
    TIR_ROLE_GATHER_MOST
};
// groups: warpgroups of products.
struct tir_role_registers tir_role_registers(uint32_t groups, enum tir_role_work work);

#endif
