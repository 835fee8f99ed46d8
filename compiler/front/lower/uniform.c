// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles and threads do not mix: a tile operation is done by the whole CTA together, so neither its
// operands nor whether it is reached may differ between threads; in a role, by its threads. And a
// kernel without a grid or roles has no threads to speak of.
//
// A role does a scalar store or atomic once. Where its operands differ between threads, or only
// some threads reach it, every thread that comes does its own:
//     store(Y[i], t);
// becomes, where i or t come from tid(),
//     store(Y[i], t, by_thread = 1);
//
// A value varies when it comes from the thread's number, from a thread's own memory, from an
// atomic of single threads, or from anything that varies; what a branch or loop gives varies with
// its condition too. Loops are walked until nothing new varies.
#include "base/bitset.h"
#include "front/lower/lower.h"
#include "ir/walk.h"

struct uniform {
    struct lower *l;
    struct bitset varying; // by value id
    bool changed;
    const struct tir_inst *reported; // the branch or loop that the last message was about
};

static bool varies(const struct uniform *u, const struct tir_value *v)
{
    return v && bitset_has(&u->varying, v->id);
}

static void mark(struct uniform *u, const struct tir_value *v)
{
    u->changed |= bitset_insert(&u->varying, v->id);
}

static void mark_if(struct uniform *u, const struct tir_value *v, bool condition)
{
    if (condition)
        mark(u, v);
}

// The values a block ends with make the results, and a loop's arguments, vary.
static void mark_carried(struct uniform *u, const struct tir_inst *inst,
                         const struct tir_block *block, const struct tir_inst *yield,
                         bool divergent)
{
    uint32_t first = block->arg_count - inst->result_count; // the index of a `for` comes before
    for (uint32_t i = 0; i < inst->result_count; i++) {
        const struct tir_value *init = inst->operands[tir_carried_at(inst) + i];
        bool v = divergent || varies(u, init) || (yield && varies(u, yield->operands[i])) ||
                 varies(u, block->args[first + i]);
        mark_if(u, block->args[first + i], v);
        mark_if(u, inst->results[i], v);
    }
}

static bool is_divergent(const struct uniform *u, const struct tir_inst *inst)
{
    const struct tir_inst *cond;
    switch (inst->op) {
    case TIR_OP_IF:
        return varies(u, inst->operands[0]);
    case TIR_OP_FOR:
        return varies(u, inst->operands[TIR_FOR_BEGIN]) || varies(u, inst->operands[TIR_FOR_END]) ||
               varies(u, inst->operands[TIR_FOR_STEP]);
    case TIR_OP_WHILE:
        cond = tir_yield_of(inst->regions[0]);
        return cond && varies(u, cond->operands[0]);
    default:
        return false;
    }
}

static void mark_flow(struct uniform *u, const struct tir_inst *inst)
{
    bool divergent = is_divergent(u, inst);
    const struct tir_inst *yield = tir_yield_of(inst->regions[inst->region_count - 1]);
    if (inst->op == TIR_OP_IF) {
        const struct tir_inst *then = tir_yield_of(inst->regions[0]);
        for (uint32_t i = 0; i < inst->result_count; i++)
            mark_if(u, inst->results[i],
                    divergent || varies(u, then->operands[i]) || varies(u, yield->operands[i]));
        return;
    }
    if (inst->op == TIR_OP_GET) {
        for (uint32_t i = 0; i < inst->result_count; i++)
            mark_if(u, inst->results[i], varies(u, yield->operands[i]));
        return;
    }
    for (uint32_t r = 0; r < inst->region_count; r++)
        mark_carried(u, inst, inst->regions[r], yield, divergent);
    if (inst->op == TIR_OP_FOR)
        mark_if(u, inst->regions[0]->args[0], divergent);
}

// The innermost branch or loop around that only some threads take; NULL: none.
static const struct tir_inst *divergent_around(const struct uniform *u, const struct tir_inst *inst)
{
    for (; inst; inst = inst->block->owner)
        if (inst->block->owner && is_divergent(u, inst->block->owner))
            return inst->block->owner;
    return NULL;
}

static void mark_inst(struct uniform *u, const struct tir_inst *inst)
{
    if (inst->op == TIR_OP_IF || inst->op == TIR_OP_GET ||
        tir_ops[inst->op].rule == TIR_RULE_CARRIED) {
        mark_flow(u, inst);
        return;
    }
    bool v = tir_has_trait(inst, TIR_THREAD) ||
             (inst->op == TIR_OP_ATOMIC && (u->l->f->grid_count || divergent_around(u, inst))) ||
             (inst->op == TIR_OP_LOAD && tir_ref_base(inst)->type->space == TIR_SPACE_LOCAL);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        v |= varies(u, inst->operands[i]);
    for (uint32_t i = 0; i < inst->result_count; i++)
        mark_if(u, inst->results[i], v);
}

static bool is_tile(const struct tir_value *v)
{
    return v && tir_type_is_tile(v->type);
}

static bool is_tile_op(const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (is_tile(inst->operands[i]))
            return true;
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (is_tile(inst->results[i]))
            return true;
    bool together = inst->op == TIR_OP_COPY_ASYNC && !inst->operands[TIR_COPY_MBAR];
    return together || inst->op == TIR_OP_PUT || inst->op == TIR_OP_GET;
}

static bool check_inst(struct uniform *u, const struct tir_inst *inst)
{
    bool is_slot = inst->op == TIR_OP_PUT || inst->op == TIR_OP_GET;
    if (inst->region_count && !is_slot && inst->op != TIR_OP_REDUCE && inst->op != TIR_OP_SCAN)
        return true; // what it carries comes from an operation that is checked itself
    if (inst->op == TIR_OP_YIELD || !is_tile_op(inst))
        return true;
    bool varying = false;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        varying |= varies(u, inst->operands[i]) && !is_tile(inst->operands[i]);
    const struct tir_inst *around = varying ? NULL : divergent_around(u, inst);
    if (!varying && (!around || around == u->reported))
        return true;
    if (around)
        u->reported = around;
    lower_error(u->l, inst->span, TIR_E_THREAD_TILE,
                varying   ? "`%s` on a tile, with an operand that differs between threads"
                : is_slot ? "`%s` where not every thread of the role comes"
                          : "`%s` on a tile, where not every thread comes",
                tir_ops[inst->op].name);
    return false;
}

static bool has_varying_operand(const struct uniform *u, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (varies(u, inst->operands[i]))
            return true;
    return false;
}

static void mark_by_thread(const struct uniform *u, struct tir_inst *inst)
{
    bool is_once =
        inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC || inst->op == TIR_OP_PRINT;
    if (is_once && !is_tile_op(inst) && (has_varying_operand(u, inst) || divergent_around(u, inst)))
        tir_set_int(u->l->f, inst, TIR_ATTR_by_thread, 1);
}

static bool check_no_threads(struct lower *l)
{
    tir_foreach_inst(inst, l->f)
        if (tir_has_trait(inst, TIR_THREAD)) {
            lower_error(
                l, inst->span, TIR_E_THREAD_TILE,
                "`%s` is about single threads; only a kernel with `grid(...)` or roles speaks of "
                "them",
                tir_ops[inst->op].name);
            return false;
        }
    return true;
}

bool uniform_check(struct lower *l)
{
    if (!l->f->grid_count && !l->roles.len)
        return check_no_threads(l);
    struct uniform u = {
        .l = l, .varying = bitset_new(l->arena, l->f->value_count), .changed = true};
    while (u.changed) {
        u.changed = false;
        tir_foreach_inst(inst, l->f)
            mark_inst(&u, inst);
    }
    bool ok = true;
    tir_foreach_inst(inst, l->f) {
        ok &= check_inst(&u, inst);
        if (!l->f->grid_count)
            mark_by_thread(&u, inst);
    }
    return ok;
}
