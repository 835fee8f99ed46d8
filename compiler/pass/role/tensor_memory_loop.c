// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tensor_memory: the loop whose products are taken, and the branches and loops around it.
//
// Products without a loop are those of a loop with one round, which fold takes away again.

#include "pass/role/tensor_memory.h"

#include "ir/walk.h"

static bool has_dot(const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next)
        if (inst->op == TIR_OP_DOT)
            return true;
    return false;
}

static bool holds(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_IF || inst->op == TIR_OP_FOR;
}

// The block whose products come first: that of a loop, or with has_one_round any. Branches and
// other loops are looked into last. NULL: there is none.
static struct tir_block *block_of_product(struct tir_block *block, bool has_one_round)
{
    if (has_one_round && has_dot(block))
        return block;
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next)
        if (!has_one_round && inst->op == TIR_OP_FOR && has_dot(inst->regions[0]))
            return inst->regions[0];
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next)
        for (uint32_t i = 0; holds(inst) && i < inst->region_count; i++) {
            struct tir_block *in = block_of_product(inst->regions[i], has_one_round);
            if (in)
                return in;
        }
    return NULL;
}

// Is v used after the loop?
static bool is_used_after(const struct tir_inst *loop, const struct tir_value *v)
{
    for (const struct tir_inst *inst = loop->next; inst; inst = inst->next)
        if (tir_uses_value(inst, v))
            return true;
    return false;
}

static void replace_after(const struct tir_inst *loop, const struct tir_value *from,
                          struct tir_value *to)
{
    tir_foreach_inst_in(inst, loop->block)
        for (uint32_t i = 0; !tir_is_inside(inst, loop) && i < inst->operand_count; i++)
            if (inst->operands[i] == from)
                inst->operands[i] = to;
}

// Gives what the round made to what follows it. Sums that begin with 0 go on from the loop's.
static void carry_out(struct tir_func *f, struct tir_inst *loop, struct tir_value *const *values,
                      uint32_t count)
{
    struct tir_block *body = loop->regions[0];
    for (uint32_t i = 0; i < count; i++) {
        struct tir_value *arg = tir_block_add_arg(f, body, values[i]->type, NULL);
        struct tir_inst *def = values[i]->def;
        if (def->op == TIR_OP_DOT && tmem_is_zero(def->operands[TIR_DOT_ACC]))
            def->operands[TIR_DOT_ACC] = arg;
        replace_after(loop, values[i], loop->results[i]);
    }
    struct tir_builder b = tir_builder_at_end(f, body);
    tir_build_yield(&b, values, count);
}

static struct tir_inst *make_round(struct tmem_plan *p, struct tir_block *block)
{
    struct tir_inst *first = NULL, *last = NULL;
    for (struct tir_inst *inst = block->first; inst; inst = inst->next)
        if (inst->op == TIR_OP_DOT) {
            first = first ? first : inst;
            last = inst;
        }
    uint32_t most = 0, count = 0;
    for (const struct tir_inst *inst = first; inst != last->next; inst = inst->next)
        most += inst->result_count;
    struct tir_value **values = arena_array(p->cx->scratch, struct tir_value *, most);
    struct tir_value **operands =
        arena_array(p->cx->scratch, struct tir_value *, TIR_FOR_INIT + most);
    const struct tir_type **types = arena_array(p->cx->scratch, const struct tir_type *, most);
    for (const struct tir_inst *inst = first; inst != last->next; inst = inst->next)
        for (uint32_t i = 0; i < inst->result_count; i++)
            if (is_used_after(last, inst->results[i]))
                values[count++] = inst->results[i];
    operands[TIR_FOR_BEGIN] = tir_const_index(p->f, 0);
    operands[TIR_FOR_END] = operands[TIR_FOR_STEP] = tir_const_index(p->f, 1);
    for (uint32_t i = 0; i < count; i++) {
        types[i] = values[i]->type;
        operands[TIR_FOR_INIT + i] = tir_const_like(p->f, types[i], 0);
    }
    struct tir_builder b = tir_builder_before(p->f, first);
    struct tir_inst *loop =
        tir_build(&b, TIR_OP_FOR, operands, TIR_FOR_INIT + count, types, count, 1);
    struct tir_block *body = loop->regions[0];
    tir_block_add_arg(p->f, body, operands[TIR_FOR_BEGIN]->type, NULL);
    struct tir_builder in = tir_builder_at_end(p->f, body);
    struct tir_inst *end = tir_build_yield(&in, NULL, 0);
    while (loop->next != last)
        tir_move_before(loop->next, end);
    tir_move_before(last, end);
    tir_remove(end);
    carry_out(p->f, loop, values, count);
    return loop;
}

// Finds the loop and what is around it.
const char *tir_tmem_take_loop(struct tmem_plan *p)
{
    struct tir_block *const tile = p->tiles->regions[0];
    struct tir_block *block = block_of_product(tile, false);
    p->has_one_round = !block;
    if (p->has_one_round)
        block = block_of_product(tile, true);
    if (!block)
        return "it is in a loop that goes on while a condition holds";
    p->loop = p->has_one_round ? make_round(p, block) : block->owner;
    for (struct tir_inst *up = p->loop->block->owner; up != p->tiles; up = up->block->owner)
        if (p->holder_count++ == TMEM_HOLDERS)
            return "it is in more than 4 branches and loops";
    uint32_t at = p->holder_count;
    for (struct tir_inst *up = p->loop->block->owner; up != p->tiles; up = up->block->owner)
        p->holders[--at] = up;
    return NULL;
}
