// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which values may differ: between threads (uniform.c), or between tiles (slips.c).
//
// What is computed from a value that varies varies too, and what a branch or loop gives varies with
// its condition. A walk in program order knows all of it but what comes round a loop, and whether a
// `while` diverges; where these are news, there is one more walk.
#include "front/lower/varying.h"

bool varying_has(const struct varying *set, const struct tir_value *v)
{
    return v && bitset_has(&set->values, v->id);
}

bool varying_operands(const struct varying *set, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (varying_has(set, inst->operands[i]))
            return true;
    return false;
}

static void mark_if(struct varying *set, const struct tir_value *v, bool condition)
{
    if (condition)
        set->changed |= bitset_insert(&set->values, v->id);
}

// The values a block ends with make the results, and a loop's arguments, vary.
static void mark_carried(struct varying *set, const struct tir_inst *inst,
                         const struct tir_block *block, const struct tir_inst *yield,
                         bool divergent)
{
    uint32_t first = block->arg_count - inst->result_count; // the index of a `for` comes before
    for (uint32_t i = 0; i < inst->result_count; i++) {
        const struct tir_value *init = inst->operands[tir_carried_at(inst) + i];
        bool v = divergent || varying_has(set, init) ||
                 (yield && varying_has(set, yield->operands[i])) ||
                 varying_has(set, block->args[first + i]);
        mark_if(set, block->args[first + i], v);
        mark_if(set, inst->results[i], v);
    }
}

static bool is_divergent(const struct varying *set, const struct tir_inst *inst)
{
    const struct tir_inst *cond;
    switch (inst->op) {
    case TIR_OP_IF:
        return varying_has(set, inst->operands[0]);
    case TIR_OP_FOR:
        return varying_has(set, inst->operands[TIR_FOR_BEGIN]) ||
               varying_has(set, inst->operands[TIR_FOR_END]) ||
               varying_has(set, inst->operands[TIR_FOR_STEP]);
    case TIR_OP_WHILE:
        cond = tir_yield_of(inst->regions[0]);
        return cond && varying_has(set, cond->operands[0]);
    default:
        return false;
    }
}

static void mark_flow(struct varying *set, const struct tir_inst *inst)
{
    bool divergent = is_divergent(set, inst);
    const struct tir_inst *yield = tir_yield_of(inst->regions[inst->region_count - 1]);
    if (inst->op == TIR_OP_IF) {
        const struct tir_inst *then = tir_yield_of(inst->regions[0]);
        for (uint32_t i = 0; i < inst->result_count; i++)
            mark_if(set, inst->results[i],
                    divergent || varying_has(set, then->operands[i]) ||
                        varying_has(set, yield->operands[i]));
        return;
    }
    if (inst->op == TIR_OP_GET) {
        for (uint32_t i = 0; i < inst->result_count; i++)
            mark_if(set, inst->results[i], varying_has(set, yield->operands[i]));
        return;
    }
    for (uint32_t r = 0; r < inst->region_count; r++)
        mark_carried(set, inst, inst->regions[r], yield, divergent);
    if (inst->op == TIR_OP_FOR)
        mark_if(set, inst->regions[0]->args[0], divergent);
}

const struct tir_inst *varying_around(const struct varying *set, const struct tir_inst *inst)
{
    for (; inst; inst = inst->block->owner)
        if (inst->block->owner && is_divergent(set, inst->block->owner))
            return inst->block->owner;
    return NULL;
}

static void mark_plain(struct varying *set, const struct tir_inst *inst)
{
    const bool v = (varying_operands(set, inst) || set->begins(set, inst)) &&
                   !(set->ends && set->ends(set, inst));
    for (uint32_t i = 0; i < inst->result_count; i++)
        mark_if(set, inst->results[i], v);
}

static void find_in(struct varying *set, const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        const bool carries = tir_carries(inst);
        const bool flows = carries || inst->op == TIR_OP_IF || inst->op == TIR_OP_GET;
        if (carries)
            mark_flow(set, inst);
        if (!flows)
            mark_plain(set, inst);
        const bool diverged = is_divergent(set, inst);
        for (uint32_t r = 0; r < inst->region_count; r++)
            find_in(set, inst->regions[r]);
        if (!flows)
            continue;
        set->changed = false;
        mark_flow(set, inst);
        set->again |= carries && (set->changed || is_divergent(set, inst) != diverged);
    }
}

void varying_find(struct varying *set)
{
    do {
        set->again = false;
        find_in(set, set->f->body);
    } while (set->again);
}
