// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The registers of roles.

#include "machine/budget.h"

struct tir_role_registers tir_role_registers(uint32_t groups, enum tir_role_work work)
{
    static const struct {
        uint32_t groups;
        enum tir_role_work work;
        struct tir_role_registers registers;
    } rows[] = {
#define ROLE_REGISTERS(groups, work, load, math) {groups, TIR_ROLE_##work, {load, math}},
#include "machine/budget.def"
    };
    for (uint32_t i = 0; i < TIR_COUNT_OF(rows); i++)
        if (rows[i].groups == groups && rows[i].work == work)
            return rows[i].registers;
    return (struct tir_role_registers){0, 0};
}
