// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on tensors that all CTAs of a grid share: barriers of the grid cut the kernel into
// phases, and a tensor that each phase only reads or only writes is not read while others write it.
//
//     A[cta_id()] = x; grid_sync(); y = A[0];
//
// Where a copy engine reads it, or writes over it, a proxy fence stands after the ordinary write.

#include "pass/sync_check/sync_check.h"

// UNFENCED: an ordinary write without a proxy fence after it, in this phase or one before.
enum { READ = 1, WRITTEN = 2, BOTH = READ | WRITTEN, UNFENCED = 4 };

struct phases {
    const struct tir_value *tensor;
    bool mixed;                    // it is read and written in one phase
    const struct tir_inst *unseen; // a copy engine that may not see what was written; or NULL
};

static uint32_t access_of(const struct phases *p, const struct tir_inst *inst)
{
    if (!tir_ops[inst->op].has_ref || tir_ref_base(inst) != p->tensor)
        return 0;
    switch (inst->op) {
    case TIR_OP_LOAD:
    case TIR_OP_COPY_ASYNC:
        return READ;
    case TIR_OP_STORE:
        return WRITTEN | UNFENCED;
    case TIR_OP_STORE_ASYNC:
        return WRITTEN;
    default: // an atomic, or a copy of either direction
        return BOTH | UNFENCED;
    }
}

static bool is_by_engine(const struct tir_inst *inst)
{
    return (inst->op == TIR_OP_COPY_ASYNC && inst->operands[TIR_COPY_MBAR]) ||
           inst->op == TIR_OP_STORE_ASYNC;
}

static bool fences_tensors(const struct tir_inst *inst)
{
    enum tir_word of = tir_attr_word(inst, TIR_ATTR_of, TIR_WORD_NONE);
    return inst->op == TIR_OP_FENCE && (of == TIR_WORD_of_async || of == TIR_WORD_of_async_global);
}

// What was done since the last barrier of the grid, `before` the block and after it.
static uint32_t walk(struct phases *p, const struct tir_block *block, uint32_t before)
{
    uint32_t now = before;
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (inst->op == TIR_OP_GRID_SYNC)
            now &= UNFENCED;
        if (fences_tensors(inst))
            now &= ~(uint32_t)UNFENCED;
        uint32_t access = access_of(p, inst);
        if (access && now & UNFENCED && is_by_engine(inst))
            p->unseen = inst;
        now |= access;
        // Twice around a loop: what its end leaves comes before its start.
        for (uint32_t round = 0; inst->region_count && round < 2; round++) {
            uint32_t after = inst->op == TIR_OP_IF ? 0 : now;
            for (uint32_t i = 0; i < inst->region_count; i++)
                after |= walk(p, inst->regions[i], now);
            now = after;
            if (inst->op == TIR_OP_IF)
                break;
        }
        p->mixed |= (now & BOTH) == BOTH;
    }
    return now;
}

bool tir_sync_phases_keep_apart(struct sync_program *program, const struct tir_value *tensor)
{
    struct phases p = {.tensor = tensor};
    walk(&p, program->f->body, 0);
    if (!p.mixed && p.unseen)
        tir_sync_unchecked(program, p.unseen,
                           "it may not see what threads of other CTAs stored before: no "
                           "fence(async_global) after that");
    return !p.mixed;
}
