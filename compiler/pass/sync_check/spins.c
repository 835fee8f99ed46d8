// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check before the replay: loops that wait for other threads by a flag in memory. The replay
// does not know when they end.

#include "pass/sync_check/sync_check.h"

bool tir_sync_is_scope_fence(const struct tir_inst *inst)
{
    enum tir_word of = tir_attr_word(inst, TIR_ATTR_of, TIR_WORD_NONE);
    return inst->op == TIR_OP_FENCE && (of == TIR_WORD_of_cta || of == TIR_WORD_of_cluster ||
                                        of == TIR_WORD_of_gpu || of == TIR_WORD_of_system);
}

static bool is_in_loop(const struct tir_inst *inst, const struct tir_inst *loop)
{
    while (inst && inst != loop)
        inst = inst->block->owner;
    return inst;
}

const struct tir_inst *tir_sync_find_spin(struct sync_program *p)
{
    bool fences = false;
    tir_foreach_inst(inst, p->f)
        fences |= tir_sync_is_scope_fence(inst);
    if (!fences)
        return NULL;
    tir_foreach_inst(loop, p->f) {
        if (loop->op != TIR_OP_WHILE)
            continue;
        struct bitset asks = tir_sync_slice(p, tir_yield_of(loop->regions[0])->operands, 1);
        tir_foreach_inst(inst, p->f)
            if (inst->op == TIR_OP_ATOMIC && tir_sync_is_shared(tir_ref_base(inst)) &&
                bitset_has(&asks, inst->results[0]->id) && is_in_loop(inst, loop))
                return loop;
    }
    return NULL;
}

// Does inst look, in each round of the loop, at one place of a tensor that the kernel writes?
static bool looks_again(const struct sync_program *p, const struct tir_inst *inst,
                        const struct tir_inst *loop)
{
    const struct tir_value *base = tir_ops[inst->op].has_ref ? tir_ref_base(inst) : NULL;
    if ((inst->op != TIR_OP_LOAD && inst->op != TIR_OP_ATOMIC) ||
        base->type->space != TIR_SPACE_GLOBAL || tir_is_only_read(p->f, base))
        return false;
    for (uint32_t d = 0; d < base->type->rank; d++) {
        const struct tir_value *at = tir_ref_indices(inst)[d];
        if (at->kind != TIR_VALUE_CONST && tir_is_made_in(loop, at))
            return false;
    }
    return true;
}

// Does a while loop nothing but ask for a flag in a tensor?
static bool only_asks(struct sync_program *p, const struct tir_inst *loop)
{
    struct bitset decide = tir_sync_slice(p, tir_yield_of(loop->regions[0])->operands, 1);
    bool asks = false;
    tir_foreach_inst(inst, p->f) {
        if (inst == loop || inst->op == TIR_OP_YIELD || !is_in_loop(inst, loop))
            continue;
        bool waits = inst->op == TIR_OP_LOAD || inst->op == TIR_OP_ATOMIC ||
                     inst->op == TIR_OP_FENCE || inst->op == TIR_OP_BAR_SYNC ||
                     inst->op == TIR_OP_ALLOC || inst->op == TIR_OP_IF;
        if (!waits && !tir_has_trait(inst, TIR_PURE))
            return false;
        asks |= looks_again(p, inst, loop) && bitset_has(&decide, inst->results[0]->id);
    }
    return asks;
}

// Loops that others end, by a flag in a tensor: the replay goes on after them.
void tir_sync_find_waits(struct sync_program *p)
{
    tir_foreach_inst(loop, p->f)
        if (loop->op == TIR_OP_WHILE && only_asks(p, loop))
            tir_sync_unchecked(p, loop, "it waits for another thread, and may never end");
}
