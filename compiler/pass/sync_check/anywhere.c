// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on loads of a buffer of the compiler's at an index that counts.
//
//     for i in range(N) {
//         store(x[0:+256], v);
//         bar_sync();
//         let y = load(x[i]);      // taken to read all of x
//         bar_sync();
//     }
//
// With its index such a load would make each round another state, and the loop would be unchecked.
// A buffer that is stored to at places that are the same in each round has no slots that take
// turns, so the barriers around are those of the whole buffer. In one that the program orders the
// index counts.

#include "pass/sync_check/sync_check.h"

static bool is_fixed(const struct tir_inst *inst)
{
    for (uint32_t d = 0; d < tir_ref_base(inst)->type->rank; d++)
        if (tir_ref_indices(inst)[d]->kind != TIR_VALUE_CONST)
            return false;
    return true;
}

// Does inst do to the buffer no more than load from it or store to a fixed place?
static bool is_plain(const struct tir_inst *inst, const struct tir_value *buffer)
{
    return (inst->op == TIR_OP_LOAD || (inst->op == TIR_OP_STORE && is_fixed(inst))) &&
           tir_ref_base(inst) == buffer;
}

void tir_sync_find_anywhere(struct sync_program *p)
{
    p->anywhere = bitset_new(p->cx->scratch, p->f->value_count);
    tir_foreach_inst(inst, p->f)
        if (inst->op == TIR_OP_ALLOC && inst->results[0]->type->space == TIR_SPACE_SHARED &&
            !tir_attr_int(inst, TIR_ATTR_by_hand, 0))
            bitset_insert(&p->anywhere, inst->results[0]->id);
    tir_foreach_inst(inst, p->f)
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            const struct tir_value *v = inst->operands[i];
            if (v && v->kind == TIR_VALUE_RESULT && bitset_has(&p->anywhere, v->id) &&
                !is_plain(inst, v))
                bitset_remove(&p->anywhere, v->id);
        }
}

bool tir_sync_reads_anywhere(const struct sync_program *p, const struct tir_inst *inst)
{
    return inst->op == TIR_OP_LOAD && tir_ref_base(inst)->kind == TIR_VALUE_RESULT &&
           bitset_has(&p->anywhere, tir_ref_base(inst)->id) && !is_fixed(inst);
}
