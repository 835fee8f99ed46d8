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
// Of a loop around other loops, what only its own blocks use would take registers in all rounds of
// the others, to save a few instructions in each of its own. In a lowered kernel such integers stay
// where registers would not last for all of them, as the addresses of an epilogue:
//
//     while tiles {                               while tiles {
//         for k { s = mma(a, b, s); }      ->         for k { s = mma(a, b, s); }
//         let at = xor(shl(lane, 4), 64);             let at = xor(shl(lane, 4), 64);
//         st(buffer, at, s);                          st(buffer, at, s);
//     }                                           }
//
// So it is where idle conditions are more than a thread has predicates: ptxas keeps each of the
// others in a register, and spends more to bring it back.
//
// So it is beside sums that a loop takes from tensor memory between its own instructions. What
// would leave only to be added to a number of the round is added anew (outward.c).
//
// Not done here: loads from memory that is written, instructions with blocks, branches.

#include "base/bitset.h"
#include "ir/live.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "pass/clean/outward.h"
#include "pass/pass.h"

struct licm {
    struct tir_func *f;
    struct tir_arena *scratch;
    bool some_stay;              // values of the present loop do not leave it:
    struct bitset stays;         // by id
    const struct tir_live *live; // before anything left a loop around others; NULL: not asked yet
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
           inst->op == TIR_OP_PERMUTE || inst->op == TIR_OP_PIXEL_INDEX;
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
    return v && v->kind != TIR_VALUE_CONST && tir_is_made_in(loop, v);
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

// Which values stay.

static bool is_cheap(const struct tir_inst *inst)
{
    const enum tir_elem elem = inst->results[0]->type->elem;
    bool cheap = inst->result_count == 1 && tir_type_is_scalar(inst->results[0]->type) &&
                 (tir_elem_is_int(elem) || elem == TIR_BOOL) && inst->op != TIR_OP_DIV &&
                 inst->op != TIR_OP_REM;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        cheap &= !inst->operands[i] || !tir_elem_is_float(inst->operands[i]->type->elem);
    return cheap;
}

static void add_operands(struct bitset *to, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i])
            bitset_insert(to, inst->operands[i]->id);
}

// The values that are used in loops inside of the block. False: it has none.
static bool find_used_inside(const struct tir_block *block, struct bitset *used)
{
    bool any = false;
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (tir_carries(inst)) {
            tir_foreach_inst_within(in, inst)
                add_operands(used, in);
            any = true;
        }
        for (uint32_t r = 0; r < inst->region_count && !tir_carries(inst); r++)
            any |= find_used_inside(inst->regions[r], used);
    }
    return any;
}

// Of those that could leave, in the order of the text: the cheap ones that nothing needs in a loop
// inside, nor a value that leaves.
static void find_idle(const struct licm *l, const struct tir_inst *loop, struct bitset *used,
                      struct bitset *idle)
{
    struct bitset invariant = bitset_new(l->scratch, l->f->value_count);
    for (uint32_t r = 0; r < loop->region_count; r++) {
        for (const struct tir_inst *inst = loop->regions[r]->first; inst; inst = inst->next) {
            bool is = inst->result_count && may_move(l, inst);
            for (uint32_t i = 0; is && i < inst->operand_count; i++)
                is = !defined_inside(loop, inst->operands[i]) ||
                     bitset_has(&invariant, inst->operands[i]->id);
            if (is)
                bitset_insert(&invariant, inst->results[0]->id);
        }
        for (const struct tir_inst *inst = loop->regions[r]->last; inst; inst = inst->prev) {
            if (!inst->result_count || !bitset_has(&invariant, inst->results[0]->id))
                continue;
            if (is_cheap(inst) && !bitset_has(used, inst->results[0]->id))
                bitset_insert(idle, inst->results[0]->id);
            else
                add_operands(used, inst);
        }
    }
}

// What is added to it is part of the address in the instruction that uses it.
static const struct tir_value *base_of(const struct tir_value *v)
{
    while (v->kind == TIR_VALUE_RESULT && v->def->op == TIR_OP_ADD)
        if (v->def->operands[1]->kind == TIR_VALUE_CONST)
            v = v->def->operands[0];
        else if (v->def->operands[0]->kind == TIR_VALUE_CONST)
            v = v->def->operands[1];
        else
            break;
    return v;
}

// What idle values would take in the loops inside: those that others than these use.
struct taken {
    uint32_t registers, predicates;
};

static struct taken taken_by_idle(const struct licm *l, const struct tir_inst *loop,
                                  const struct bitset *idle)
{
    struct bitset counted = bitset_new(l->scratch, l->f->value_count);
    struct taken taken = {0};
    tir_foreach_inst_within(inst, loop) {
        if (inst->result_count && bitset_has(idle, inst->results[0]->id))
            continue;
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            const struct tir_value *v = inst->operands[i];
            if (!v || !bitset_has(idle, v->id))
                continue;
            v = base_of(v);
            if (v->kind == TIR_VALUE_CONST || !bitset_insert(&counted, v->id))
                continue;
            taken.registers += tir_live_registers(v);
            taken.predicates += v->type->elem == TIR_BOOL;
        }
    }
    return taken;
}

// Does the block load sums from tensor memory, which are then in registers?
static bool loads_sums(const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (inst->op == TIR_OP_TMEM_LD)
            return true;
        for (uint32_t r = 0; r < inst->region_count; r++)
            if (!tir_carries(inst) && loads_sums(inst->regions[r]))
                return true;
    }
    return false;
}

// The most registers that are live in loops inside of the block, or with the sums that it loads.
static uint32_t most_inside(const struct tir_live *live, const struct tir_block *block)
{
    uint32_t most = 0;
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (tir_carries(inst))
            most = TIR_MAX(most, tir_live_most(live, inst));
        if (inst->op == TIR_OP_TMEM_LD)
            most = TIR_MAX(most, tir_live_most(live, inst->next));
        for (uint32_t r = 0; r < inst->region_count && !tir_carries(inst); r++)
            most = TIR_MAX(most, most_inside(live, inst->regions[r]));
    }
    return most;
}

// True: there are some.
static bool find_stays(struct licm *l, const struct tir_inst *loop)
{
    if (l->f->form != TIR_FORM_LOWERED)
        return false;
    struct bitset used = bitset_new(l->scratch, l->f->value_count);
    bool any = false;
    for (uint32_t r = 0; r < loop->region_count; r++) {
        any |= find_used_inside(loop->regions[r], &used);
        any |= loads_sums(loop->regions[r]);
    }
    if (!any)
        return false;
    l->stays = bitset_new(l->scratch, l->f->value_count);
    find_idle(l, loop, &used, &l->stays);
    const struct taken more = taken_by_idle(l, loop, &l->stays);
    if (more.predicates > TIR_BUDGET_PREDICATES)
        return true;
    if (!more.registers)
        return false;
    l->live = l->live ? l->live : tir_live_new(l->scratch, l->f);
    uint32_t most = 0;
    for (uint32_t r = 0; r < loop->region_count; r++)
        most = TIR_MAX(most, most_inside(l->live, loop->regions[r]));
    const uint32_t limit = tir_live_limit(l->f, loop);
    return most + more.registers > limit + limit * TIR_BUDGET_OVERCOUNT / 100;
}

static void hoist(struct licm *l, struct tir_inst *loop, struct tir_inst *inst)
{
    if (!may_move(l, inst) || (runs_once(loop) && gives_tile(inst)))
        return;
    if (l->some_stay && inst->result_count && bitset_has(&l->stays, inst->results[0]->id))
        return;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (defined_inside(loop, inst->operands[i]))
            return;
    tir_move_before(inst, loop);
    l->changed = true;
}

static void hoist_from(struct licm *l, struct tir_inst *loop)
{
    l->some_stay = find_stays(l, loop);
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
    struct licm l = {.f = f, .scratch = cx->scratch};
    if (f->form == TIR_FORM_LOWERED)
        l.changed = tir_add_constants_last(f, cx->scratch);
    visit_block(&l, f->body);
    return l.changed ? TIR_CHANGED : TIR_UNCHANGED;
}
