// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on what a CTA carries from one of its tiles to the next. Which tiles a CTA has depends
// on the grid, so a tensor should not depend on these values. The replay cannot tell; this can.
//
//     for n in tiles(N by 64) { t += sum(x); D[n:+64] = x + t; }            // unchecked
//     for n in tiles(N by 64) { t += sum(x); } atomic_add(S[0], t);         // sums what CTAs have
//
// The slot and the phase of a ring are carried as well. They say where in shared memory data is,
// and not what it is, so an index of a shared buffer does not count.

#include "pass/sync_check/sync_check.h"

struct carried {
    struct tir_func *f;
    struct bitset values; // that depend on the tiles before; of a buffer, its contents do
    bool changed;
};

static bool depends(const struct carried *c, const struct tir_value *v)
{
    return v && bitset_has(&c->values, v->id);
}

static void add(struct carried *c, const struct tir_value *v)
{
    c->changed |= bitset_insert(&c->values, v->id);
}

static void join(struct carried *c, const struct tir_value *to, const struct tir_value *from)
{
    if (depends(c, from))
        add(c, to);
}

static bool is_in_tensor(const struct tir_value *buffer)
{
    return buffer->type->space == TIR_SPACE_GLOBAL;
}

// Does what the operation reads or is told depend on the tiles before?
static bool operands_depend(const struct carried *c, const struct tir_inst *inst)
{
    uint32_t count = inst->operand_count;
    if (tir_ops[inst->op].has_ref && !is_in_tensor(tir_ref_base(inst)))
        count = tir_fixed_count(inst) + 1;
    for (uint32_t i = 0; i < count; i++)
        if (depends(c, inst->operands[i]))
            return true;
    return false;
}

static void into_buffer(struct carried *c, struct tir_value *buffer)
{
    if (!is_in_tensor(buffer))
        add(c, tir_buffer_root(buffer));
}

// Do the tiles before decide whether, or how often, the operation runs its blocks?
static bool decides(const struct carried *c, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_IF:
        return depends(c, inst->operands[0]);
    case TIR_OP_FOR:
        return depends(c, inst->operands[TIR_FOR_BEGIN]) ||
               depends(c, inst->operands[TIR_FOR_END]) || depends(c, inst->operands[TIR_FOR_STEP]);
    case TIR_OP_WHILE:
        return depends(c, tir_yield_of(inst->regions[0])->operands[0]);
    default:
        return false;
    }
}

static bool has_one_tile(const struct tir_inst *tiles)
{
    const struct tir_attr *by = tir_attr_find(tiles, TIR_ATTR_by);
    int64_t extent;
    for (uint32_t d = 0; d < by->list_count; d++)
        if (!tir_is_const_int(tiles->operands[d], &extent) || extent > by->list[d])
            return false;
    return true;
}

static void through_loop(struct carried *c, const struct tir_inst *loop)
{
    uint32_t init = tir_carried_at(loop);
    const struct tir_block *body = loop->regions[loop->region_count - 1];
    const struct tir_inst *yield = tir_yield_of(body);
    bool all = loop->op == TIR_OP_TILES ? !has_one_tile(loop) : decides(c, loop);
    for (uint32_t i = 0; i < loop->result_count; i++) {
        if (all)
            add(c, loop->results[i]);
        join(c, loop->results[i], loop->operands[init + i]);
        join(c, loop->results[i], yield->operands[i]);
        for (uint32_t r = 0; r < loop->region_count; r++) {
            const struct tir_block *block = loop->regions[r];
            join(c, block->args[block->arg_count - loop->result_count + i], loop->results[i]);
        }
    }
}

static void through_branch(struct carried *c, const struct tir_inst *branch)
{
    for (uint32_t i = 0; i < branch->result_count; i++) {
        if (decides(c, branch))
            add(c, branch->results[i]);
        for (uint32_t r = 0; r < branch->region_count; r++)
            join(c, branch->results[i], tir_yield_of(branch->regions[r])->operands[i]);
    }
}

static void through(struct carried *c, const struct tir_inst *inst)
{
    if (tir_carries(inst)) {
        through_loop(c, inst);
    } else if (inst->op == TIR_OP_IF) {
        through_branch(c, inst);
    } else if (operands_depend(c, inst)) {
        for (uint32_t i = 0; i < inst->result_count; i++)
            add(c, inst->results[i]);
        if (inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC || inst->op == TIR_OP_PUSH)
            into_buffer(c, tir_ref_base(inst));
        else if (inst->op == TIR_OP_COPY_ASYNC)
            into_buffer(c, inst->operands[TIR_COPY_TO]);
    }
}

static bool is_decided(const struct carried *c, const struct tir_inst *inst)
{
    while ((inst = inst->block->owner))
        if (decides(c, inst))
            return true;
    return false;
}

void tir_sync_find_carried(struct sync_program *p)
{
    struct carried c = {.f = p->f, .values = bitset_new(p->cx->scratch, p->f->value_count)};
    do {
        c.changed = false;
        tir_foreach_inst(inst, p->f)
            through(&c, inst);
    } while (c.changed);
    tir_foreach_inst(inst, p->f)
        if ((inst->op == TIR_OP_STORE || inst->op == TIR_OP_STORE_ASYNC) &&
            is_in_tensor(tir_ref_base(inst)) && (operands_depend(&c, inst) || is_decided(&c, inst)))
            tir_sync_unchecked(p, inst, "what is stored depends on which tiles its CTA did before");
}
