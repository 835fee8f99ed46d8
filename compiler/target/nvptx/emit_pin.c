// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arithmetic that stands before a wait for products is done before it.
//
// A schedule puts a softmax between the start of a product and the wait for it, so that both run at
// once. ptxas orders a block as it likes, and moves a wait in front of arithmetic that needs
// nothing of what is awaited. It moves no wait over a store. So what the arithmetic ends in is
// stored to shared memory in front of the wait, under a condition that never holds:
//
//     fma.rn.f32 %sum, %l, %factor, %part;
//     @%never st.volatile.shared.b32 [%multiprocessor], %sum;
//     wgmma.wait_group.sync.aligned 0;
//
// (ptxas 13.0 for sm_90a: without it the wait of attention's second product stood in front of all
// exponentials.) Such stores are one branch that is never taken. Where little is computed beside
// the product it is slower: the slot of its operand is free later (decision 34).

#include "base/bitset.h"
#include "machine/budget.h"
#include "target/nvptx/emit.h"

enum { MOST_ENDS = 64 }; // of the work; others may stay behind the wait

// No multiprocessor has this number.
static void build_never(struct emit *e)
{
    LLVMBasicBlockRef here = tir_emit_at_entry(e);
    e->multiprocessor =
        tir_llvm_asm(e->ll, e->ll->i32, STR("mov.u32 $0, %smid;"), STR("=r"), 0, NULL, 0);
    e->never = LLVMBuildICmp(e->b, LLVMIntEQ, e->multiprocessor,
                             LLVMConstInt(e->ll->i32, UINT32_MAX, false), "");
    tir_emit_at(e, here);
}

static bool is_work(const struct tir_inst *inst)
{
    return tir_has_trait(inst, TIR_PURE) && inst->result_count == 1 && !inst->region_count;
}

void tir_emit_pins(struct emit *e, const struct tir_inst *wait)
{
    if (!tir_attr_int(wait, TIR_ATTR_late, 0))
        return;
    struct bitset needed = bitset_new(e->arena, e->f->value_count);
    const struct tir_value *ends[MOST_ENDS];
    uint32_t work = 0, count = 0;
    for (const struct tir_inst *inst = wait->prev; inst; inst = inst->prev) {
        if (inst->op == TIR_OP_WGMMA || inst->op == TIR_OP_AWAIT || inst->region_count)
            break;
        for (uint32_t i = 0; i < inst->operand_count; i++)
            if (inst->operands[i])
                bitset_insert(&needed, inst->operands[i]->id);
        if (!is_work(inst) || inst->results[0]->type->elem != TIR_F32)
            continue;
        const struct tir_value *v = inst->results[0];
        work++;
        if (count < MOST_ENDS && e->uses[v->id] && !bitset_has(&needed, v->id))
            ends[count++] = v;
    }
    if (work < TIR_BUDGET_LATE_INSTRUCTIONS)
        return;
    if (!e->never)
        build_never(e);
    for (uint32_t i = count; i-- > 0;) {
        V args[] = {e->never, e->multiprocessor, tir_emit_value(e, ends[i])};
        tir_llvm_asm(e->ll, LLVMVoidTypeInContext(e->ll->context),
                     STR("@$0 st.volatile.shared.b32 [$1], $2;"), STR("b,r,f,~{memory}"),
                     TIR_ASM_EFFECT, args, TIR_COUNT_OF(args));
    }
}
