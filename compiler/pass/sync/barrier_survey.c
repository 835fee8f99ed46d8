// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Facts about the whole kernel that the barrier pass collects before it compares accesses.

#include "pass/sync/barrier.h"

#include "base/bitset.h"
#include "ir/walk.h"

static bool touches_memory(const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (inst->op == TIR_OP_LOAD || inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC)
            return true;
        for (uint32_t r = 0; r < inst->region_count; r++)
            if (touches_memory(inst->regions[r]))
                return true;
    }
    return false;
}

static bool takes_one_of(const struct tir_inst *inst, const struct bitset *values)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i] && bitset_has(values, inst->operands[i]->id))
            return true;
    return false;
}

// Does v only choose the threads that arrive somewhere or start something? Then passes made it, or
// it has no influence on who orders accesses. Tests of v choose too; they come after it.
static bool only_chooses(const struct tir_func *f, struct tir_arena *scratch,
                         const struct tir_value *v)
{
    struct bitset choosers = bitset_new(scratch, f->value_count);
    bitset_insert(&choosers, v->id);
    tir_foreach_inst(inst, f) {
        if (inst->op == TIR_OP_ARRIVE || !takes_one_of(inst, &choosers))
            continue;
        bool is_test = tir_ops[inst->op].rule == TIR_RULE_COMPARE || inst->op == TIR_OP_AND;
        if (is_test)
            bitset_insert(&choosers, inst->results[0]->id);
        else if (inst->op != TIR_OP_IF || touches_memory(inst->regions[0]) ||
                 touches_memory(inst->regions[1]))
            return false;
    }
    return true;
}

static bool follows_init(const struct tir_inst *sync)
{
    const struct tir_inst *branch = sync->prev;
    if (!branch || branch->op != TIR_OP_IF)
        return false;
    for (const struct tir_inst *inst = branch->regions[0]->first; inst; inst = inst->next)
        if (inst->op == TIR_OP_MBARRIER_INIT || inst->op == TIR_OP_TMEM_ALLOC)
            return true;
    return false;
}

static bool is_fence_of(const struct tir_inst *inst, enum tir_word of)
{
    return inst && inst->op == TIR_OP_FENCE &&
           tir_attr_word(inst, TIR_ATTR_of, TIR_WORD_NONE) == of;
}

// Does the barrier hand sums in tensor memory from warp to warp, as `tensor_memory` lets it?
static bool hands_over_sums(const struct tir_inst *sync)
{
    return is_fence_of(sync->prev, TIR_WORD_of_before_thread_sync) &&
           is_fence_of(sync->next, TIR_WORD_of_after_thread_sync);
}

static bool speaks_of_threads(const struct tir_func *f, struct tir_arena *scratch,
                              const struct tir_inst *inst)
{
    if (inst->op == TIR_OP_BAR_SYNC)
        return !follows_init(inst) && !hands_over_sums(inst);
    if (!tir_has_trait(inst, TIR_THREAD) || inst->op == TIR_OP_WARP_SYNC)
        return false;
    return inst->result_count != 1 || !only_chooses(f, scratch, inst->results[0]);
}

bool tir_speaks_of_threads(const struct tir_func *f, struct tir_arena *scratch)
{
    tir_foreach_inst(inst, f)
        if (speaks_of_threads(f, scratch, inst))
            return true;
    return false;
}

void tir_find_handed_over(struct tir_func *f, struct tir_arena *scratch, struct tir_map *found)
{
    struct tir_map role_of; // buffer -> a role that uses it
    tir_map_init(&role_of, scratch);
    tir_map_init(found, scratch);
    tir_foreach_inst(inst, f) {
        if (tir_viewed(inst))
            continue;
        struct tir_inst *role = inst;
        while (role && role->op != TIR_OP_ROLE)
            role = role->block->owner;
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            struct tir_value *v = inst->operands[i];
            if (!v || v->type->space != TIR_SPACE_SHARED)
                continue;
            v = tir_buffer_root(v);
            struct tir_inst *other = tir_map_get(&role_of, tir_map_key(v));
            const bool filled = tir_done_of(inst) == TIR_DONE_BYTES && i == TIR_COPY_TO;
            if (filled || (role && other && other != role))
                tir_map_set(found, tir_map_key(v), v);
            if (role)
                tir_map_set(&role_of, tir_map_key(v), role);
        }
    }
}
