// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tensor_memory: scalars that every role computes for itself.
//
// They say where operands are, how often the product's loop runs, and which branches are taken.
// They follow from the tile and the round by arithmetic and by loads from tensors that the kernel
// only reads; loops and branches that do nothing else are such scalars, too:
//     let e: i64 = for l: i64 in range(0, L) carry (s: i64 = 0) { ... load(C[l]) ... }

#include "pass/role/tensor_memory.h"

#include "ir/walk.h"

static bool is_scalar_arithmetic(const struct tir_inst *inst)
{
    return tir_has_trait(inst, TIR_PURE) && !tir_has_trait(inst, TIR_THREAD) &&
           !inst->region_count && inst->result_count == 1 &&
           tir_type_is_scalar(inst->results[0]->type);
}

// A scalar loaded from a tensor that the kernel does not write.
static bool is_scalar_load(const struct tmem_plan *p, const struct tir_inst *inst)
{
    return inst->op == TIR_OP_LOAD && tir_type_is_scalar(inst->results[0]->type) &&
           tir_is_only_read(p->f, tir_ref_base(inst));
}

bool tir_tmem_is_scalar(const struct tmem_plan *p, const struct tir_inst *inst)
{
    return is_scalar_arithmetic(inst) || is_scalar_load(p, inst);
}

static bool has_blocks(const struct tir_inst *inst)
{
    return tir_is_loop(inst) || inst->op == TIR_OP_IF;
}

// A loop or a branch that gives scalars, and does nothing but compute them.
static bool gives_scalars(const struct tmem_plan *p, const struct tir_inst *inst)
{
    if (!has_blocks(inst) || !inst->result_count)
        return false;
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (!tir_type_is_scalar(inst->results[i]->type))
            return false;
    tir_foreach_inst_within(in, inst)
        if (!has_blocks(in) && in->op != TIR_OP_YIELD && !tir_tmem_is_scalar(p, in))
            return false;
    return true;
}

bool tir_tmem_is_computable(const struct tmem_plan *p, const struct tir_value *v)
{
    return v->kind == TIR_VALUE_CONST || !tir_is_made_in(p->tiles, v) ||
           bitset_has(&p->computable, v->id);
}

// Does inst, with all that is inside of it, take nothing but what is computable?
static bool takes_computable(const struct tmem_plan *p, const struct tir_inst *inst)
{
    tir_foreach_inst_within(in, inst)
        for (uint32_t i = 0; i < in->operand_count; i++) {
            const struct tir_value *v = in->operands[i];
            if (v && !tir_tmem_is_computable(p, v) && !tir_is_made_in(inst, v))
                return false;
        }
    return true;
}

void tir_tmem_find_computable(struct tmem_plan *p)
{
    const struct tir_block *const tile = p->tiles->regions[0], *const round = p->loop->regions[0];
    const struct tir_block *blocks[TMEM_HOLDERS + 2] = {tile};
    uint32_t count = 1;
    for (uint32_t i = 0; i < p->holder_count; i++)
        blocks[count++] = tir_tmem_taken(p, i);
    blocks[count++] = round;
    p->computable = bitset_new(p->cx->scratch, p->f->value_count);
    p->ahead = bitset_new(p->cx->scratch, p->f->value_count);
    for (uint32_t a = 0; a < tile->arg_count; a++)
        bitset_insert(&p->computable, tile->args[a]->id);
    for (uint32_t b = 1; b < count; b++) // what a loop carries is not
        if (blocks[b]->owner->op == TIR_OP_FOR)
            bitset_insert(&p->computable, blocks[b]->args[0]->id);
    for (uint32_t b = 0; b < count; b++)
        for (const struct tir_inst *inst = blocks[b]->first; inst && !tir_is_inside(p->loop, inst);
             inst = inst->next)
            if ((tir_tmem_is_scalar(p, inst) || gives_scalars(p, inst)) &&
                takes_computable(p, inst))
                for (uint32_t i = 0; i < inst->result_count; i++)
                    bitset_insert(&p->computable, inst->results[i]->id);
}

// What the roles need that do not compute the rest.

static void want(const struct tmem_plan *p, struct bitset *wanted, const struct tir_value *v)
{
    if (!v || v->kind != TIR_VALUE_RESULT || !tir_is_made_in(p->tiles, v) ||
        !bitset_insert(wanted, v->id))
        return;
    tir_foreach_inst_within(in, v->def)
        for (uint32_t i = 0; i < in->operand_count; i++)
            want(p, wanted, in->operands[i]);
}

void tir_tmem_find_wanted(struct tmem_plan *p)
{
    p->wanted = bitset_new(p->cx->scratch, p->f->value_count);
    p->filled_from = bitset_new(p->cx->scratch, p->f->value_count);
    for (uint32_t i = 0; i < TIR_FOR_INIT; i++)
        want(p, &p->wanted, p->loop->operands[i]);
    for (uint32_t i = 0; i < p->holder_count; i++)
        for (uint32_t k = 0; k < tmem_decides(p->holders[i]); k++)
            want(p, &p->wanted, p->holders[i]->operands[k]);
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (!p->operands[i].is_computed)
            want(p, &p->filled_from, p->operands[i].tile);
}

// Arithmetic that a role does not need is dead code there; a loop that may not end is none.
bool tir_tmem_is_copied(const struct tmem_role *r, const struct tir_inst *inst)
{
    const struct tmem_plan *p = r->p;
    for (uint32_t i = 0; i < inst->result_count; i++) {
        const uint32_t id = inst->results[i]->id;
        const bool is_wanted = !inst->region_count || bitset_has(&p->wanted, id) ||
                               (r->fills && bitset_has(&p->filled_from, id));
        if (is_wanted && bitset_has(&p->computable, id))
            return true;
    }
    return false;
}
