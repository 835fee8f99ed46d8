// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// licm: moves invariants out of loops.
//
// Innermost loops come first, so that a value can leave several. An instruction of a loop's own
// blocks moves in front of the loop when it is pure, or a load from an `in` tensor (nothing writes
// it, and slices never fault: what lies outside reads as the pad), and none of its operands is
// defined in the loop. A moved value stays in registers for as long as the loop runs, so tiles move
// only when they are small, never when they cost next to nothing to make again, and not out of a
// tiles loop, of which a CTA does one round, unless it is persistent.
//
//     for i: i64 in range(0, N, 1) {              let s: f32 = load(S[0]);
//         let s: f32 = load(S[0]);        ->      let t: f32 = exp(s);
//         let t: f32 = exp(s);                    for i: i64 in range(0, N, 1) {
//         store(Y[i], t);                             store(Y[i], t);
//     }                                           }
//
// Not done here: loads from memory that is written, instructions with blocks, branches.

#include "ir/walk.h"
#include "machine/budget.h"
#include "pass/pass.h"

struct licm {
    struct tir_func *f;
    bool changed;
};

static bool is_input(const struct tir_func *f, const struct tir_value *v)
{
    for (uint32_t i = 0; i < f->param_count; i++)
        if (f->params[i].value == v)
            return f->params[i].direction == TIR_IN;
    return false;
}

static bool is_cheap_tile(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_BROADCAST || inst->op == TIR_OP_IOTA || inst->op == TIR_OP_RESHAPE ||
           inst->op == TIR_OP_PERMUTE;
}

static bool may_move(const struct licm *l, const struct tir_inst *inst)
{
    bool pure = tir_has_trait(inst, TIR_PURE) && inst->op != TIR_OP_MMA;
    bool load = inst->op == TIR_OP_LOAD && is_input(l->f, tir_ref_base(inst));
    if (!(pure || load) || inst->region_count)
        return false;
    for (uint32_t i = 0; i < inst->result_count; i++) {
        const struct tir_type *t = inst->results[i]->type;
        if (tir_type_is_tile(t) &&
            (tir_type_count(t) > TIR_BUDGET_HOISTED_ELEMENTS || is_cheap_tile(inst)))
            return false;
    }
    return true;
}

static bool defined_inside(const struct tir_inst *loop, const struct tir_value *v)
{
    if (!v || v->kind == TIR_VALUE_CONST)
        return false;
    const struct tir_inst *from = v->kind == TIR_VALUE_ARG ? v->block->owner : v->def;
    for (; from; from = from->block->owner)
        if (from == loop)
            return v->kind == TIR_VALUE_ARG || v->def != loop;
    return false;
}

static bool gives_tile(const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (tir_type_is_tile(inst->results[i]->type))
            return true;
    return false;
}

// Does the loop's body run once, so that a tile in front of it would only live longer?
static bool runs_once(const struct tir_inst *loop) // a CTA has one tile, unless it persists
{
    return loop->op == TIR_OP_TILES && !tir_attr_int(loop, TIR_ATTR_persistent, 0);
}

static void hoist(struct licm *l, struct tir_inst *loop, struct tir_inst *inst)
{
    if (!may_move(l, inst) || (runs_once(loop) && gives_tile(inst)))
        return;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (defined_inside(loop, inst->operands[i]))
            return;
    tir_move_before(inst, loop);
    l->changed = true;
}

static void hoist_from(struct licm *l, struct tir_inst *loop)
{
    for (uint32_t r = 0; r < loop->region_count; r++)
        tir_foreach_inst_safe(inst, loop->regions[r])
            hoist(l, loop, inst);
}

static void visit_block(struct licm *l, struct tir_block *block)
{
    tir_foreach_inst_safe(inst, block) {
        for (uint32_t r = 0; r < inst->region_count; r++)
            visit_block(l, inst->regions[r]);
        if (tir_carries(inst))
            hoist_from(l, inst);
    }
}

enum tir_change tir_pass_licm(struct tir_func *f, struct tir_pass_cx *cx)
{
    (void)cx;
    struct licm l = {.f = f};
    visit_block(&l, f->body);
    return l.changed ? TIR_CHANGED : TIR_UNCHANGED;
}
