// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dimensions of the CTA's tile that a value depends on.
//
// Bits flow from operands to results, from initial and yielded values to carried values and results
// of branches, and from the control of loops and branches to both. They only grow, so walks over
// the kernel are repeated until nothing changes.

#include "pass/role/tile_flow.h"

#include "ir/effect.h"
#include "ir/walk.h"

#define UNKNOWN UINT32_MAX

struct flow {
    uint32_t *of;
    const struct tir_func *f;
    bool grown;
};

uint32_t tir_flow_of(const uint32_t *flow, const struct tir_value *v)
{
    return v && v->kind != TIR_VALUE_CONST ? flow[v->id] : 0;
}

static uint32_t of(const struct flow *w, const struct tir_value *v)
{
    return tir_flow_of(w->of, v);
}

static void add(struct flow *w, const struct tir_value *v, uint32_t bits)
{
    w->grown |= bits & ~w->of[v->id];
    w->of[v->id] |= bits;
}

static uint32_t of_operands(const uint32_t *flow, const struct tir_inst *inst, uint32_t count)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < count; i++)
        bits |= tir_flow_of(flow, inst->operands[i]);
    return bits;
}

static struct tir_value *yielded(const struct tir_inst *inst, uint32_t region, uint32_t i)
{
    const struct tir_inst *yield = tir_yield_of(inst->regions[region]);
    return yield && i < yield->operand_count ? yield->operands[i] : NULL;
}

// How often the loop runs, which way the branch goes.
static uint32_t control_of(const uint32_t *flow, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_FOR:
        return of_operands(flow, inst, TIR_FOR_INIT);
    case TIR_OP_IF:
        return of_operands(flow, inst, 1);
    case TIR_OP_WHILE:
        return tir_flow_of(flow, yielded(inst, 0, 0));
    case TIR_OP_TILES:
        return of_operands(flow, inst, tir_carried_at(inst));
    default:
        return 0;
    }
}

uint32_t tir_flow_of_control(const uint32_t *flow, const struct tir_inst *inst)
{
    uint32_t bits = 0;
    for (const struct tir_inst *up = inst->block->owner; up; up = up->block->owner)
        bits |= control_of(flow, up);
    return bits;
}

// A for or tiles loop, whose block has `lead` arguments before what is carried.
static void visit_loop(struct flow *w, const struct tir_inst *loop, uint32_t lead)
{
    const struct tir_block *body = loop->regions[0];
    uint32_t at = tir_carried_at(loop), control = control_of(w->of, loop);
    if (loop->op == TIR_OP_FOR)
        add(w, body->args[0],
            of(w, loop->operands[TIR_FOR_BEGIN]) | of(w, loop->operands[TIR_FOR_STEP]));
    for (uint32_t d = 0; loop->op == TIR_OP_TILES && d < lead; d++)
        add(w, body->args[d], control | 1u << d);
    for (uint32_t i = 0; i < loop->result_count; i++) {
        uint32_t bits = of(w, loop->operands[at + i]) | of(w, yielded(loop, 0, i)) | control;
        add(w, body->args[lead + i], bits);
        add(w, loop->results[i], bits);
    }
}

static void visit_while(struct flow *w, const struct tir_inst *loop)
{
    uint32_t control = control_of(w->of, loop);
    for (uint32_t i = 0; i < loop->result_count; i++) {
        uint32_t on = of(w, yielded(loop, 0, 1 + i)) | control;
        add(w, loop->regions[0]->args[i],
            of(w, loop->operands[i]) | of(w, yielded(loop, 1, i)) | control);
        add(w, loop->regions[1]->args[i], on);
        add(w, loop->results[i], on);
    }
}

static void visit_branch(struct flow *w, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++) {
        uint32_t bits = control_of(w->of, inst);
        for (uint32_t r = 0; r < inst->region_count; r++)
            bits |= of(w, yielded(inst, r, i));
        add(w, inst->results[i], bits);
    }
}

// Does the result depend on memory that the kernel writes, or on what is not known here?
static bool reads_memory(const struct flow *w, const struct tir_inst *inst)
{
    tir_foreach_effect(e, inst)
        if (e->access != TIR_ACCESS_WRITE && !tir_is_only_read(w->f, tir_effect_buffer(inst, e)))
            return true;
    return !tir_has_effects(inst->op) && !tir_has_trait(inst, TIR_PURE);
}

static void visit_plain(struct flow *w, const struct tir_inst *inst)
{
    bool names = inst->result_count && tir_type_is_buffer(inst->results[0]->type);
    uint32_t bits =
        !names && reads_memory(w, inst) ? UNKNOWN : of_operands(w->of, inst, inst->operand_count);
    for (uint32_t i = 0; i < inst->result_count; i++)
        add(w, inst->results[i], bits);
    for (uint32_t r = 0; r < inst->region_count; r++) // how a user's reduction combines
        for (uint32_t i = 0; i < inst->regions[r]->arg_count; i++)
            add(w, inst->regions[r]->args[i], UNKNOWN);
}

static void visit(struct flow *w, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_FOR:
        visit_loop(w, inst, 1);
        break;
    case TIR_OP_TILES:
        visit_loop(w, inst, tir_carried_at(inst));
        break;
    case TIR_OP_WHILE:
        visit_while(w, inst);
        break;
    case TIR_OP_IF:
    case TIR_OP_GET:
    case TIR_OP_PUT:
    case TIR_OP_ROLE:
        visit_branch(w, inst);
        break;
    default:
        visit_plain(w, inst);
        break;
    }
}

uint32_t *tir_tile_flow(struct tir_arena *arena, const struct tir_func *f)
{
    struct flow w = {.of = arena_array(arena, uint32_t, f->value_count), .f = f};
    do {
        w.grown = false;
        tir_foreach_inst(inst, f)
            visit(&w, inst);
    } while (w.grown);
    return w.of;
}
