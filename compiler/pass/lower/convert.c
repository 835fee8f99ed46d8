// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, convert_layout: the same tile held by other registers, lanes or warps.
//
// When every thread already has its elements, registers are renamed. Otherwise the tile goes
// through the scratch buffer that memory placed: stores in the old layout, a barrier, loads in the
// new one.

#include "pass/lower/lower.h"

static struct lower_walk *walk(struct lower *lo, struct tir_value *scratch,
                               const struct tir_layout *l)
{
    uint32_t dims[TIR_MAX_RANK];
    for (uint32_t d = 0; d < l->rank; d++)
        dims[d] = d;
    return tir_lower_walk_new(lo, scratch, l, NULL, dims);
}

void tir_lower_convert(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *x = inst->operands[TIR_REDUCE_X], *result = inst->results[0];
    struct tir_value *scratch = inst->operands[TIR_REDUCE_SCRATCH];
    const struct tir_layout *from = x->type->layout, *to = result->type->layout;
    uint32_t count = tir_lower_register_count(result->type);
    struct tir_value **out = tir_lower_new_registers(lo, count);
    if (!scratch) {
        for (uint32_t r = 0; r < count; r++)
            out[r] = tir_lower_register(lo, x, from ? tir_lower_same_register(to, r, from) : 0);
        tir_lower_set_registers(lo, result, out);
        return;
    }
    struct lower_walk *write = walk(lo, scratch, from), *read = walk(lo, scratch, to);
    uint32_t written = tir_lower_register_count(x->type);
    struct tir_value **registers = tir_lower_new_registers(lo, written);
    for (uint32_t r = 0; r < written; r++)
        registers[r] = tir_lower_register(lo, x, r);
    tir_lower_write(lo, write, registers, written, tir_lower_is_owner(lo, from));
    tir_lower_barrier(lo);
    tir_lower_read(lo, read, result->type->elem, count, out);
    tir_lower_set_registers(lo, result, out);
}
