// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constants are added last.
//
// The elements of an iota are a number of the thread and a constant each, and a round adds its own
// number. What a thread adds to its number would leave the loop, a register for each element:
//
//     let a1: i32 = add(y, i32(1));                 for k: i32 in range(0, n, 64) {
//     let a2: i32 = add(y, i32(2));                     let z: i32 = add(k, y);
//     for k: i32 in range(0, n, 64) {         ->        let b1: i32 = add(z, i32(1));
//         let b1: i32 = add(k, a1);                     let b2: i32 = add(z, i32(2));
//         let b2: i32 = add(k, a2);                 }
//     }
//
// Integers wrap, so the sums are the same. The loop has one addition more, so a few stay.

#include "pass/clean/outward.h"

#include "base/vec.h"
#include "ir/walk.h"
#include "machine/budget.h"

// What `round` and `thread` are: of a sum in a loop that makes the first and not the second.
struct pair {
    struct tir_value *round, *thread;
    struct tir_value *sum; // NULL: not made yet
    uint32_t count;        // of constants
    struct pair *next;     // of the same `round`
};

struct outward {
    struct tir_func *f;
    struct tir_arena *scratch;
    struct pair **of; // by id of `round`
};

static const struct tir_inst *sum_with_constant(const struct tir_value *v)
{
    const bool is = v && v->kind == TIR_VALUE_RESULT && v->def->op == TIR_OP_ADD &&
                    v->def->operands[1]->kind == TIR_VALUE_CONST;
    return is ? v->def : NULL;
}

// Is there a loop around inst that makes `round`, and not `thread`?
static bool waits(const struct tir_inst *inst, const struct tir_value *round,
                  const struct tir_value *thread)
{
    for (const struct tir_inst *up = inst->block->owner; up; up = up->block->owner)
        if (tir_is_loop(up))
            return tir_is_made_in(up, round) && !tir_is_made_in(up, thread);
    return false;
}

// add(round, add(thread, constant)), either way round. Gives the inner sum.
static const struct tir_inst *inner_of(const struct tir_inst *inst, struct tir_value **round)
{
    if (inst->op != TIR_OP_ADD || inst->results[0]->type->elem != TIR_I32)
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        const struct tir_inst *inner = sum_with_constant(inst->operands[i]);
        *round = inst->operands[1 - i];
        if (inner && (*round)->kind != TIR_VALUE_CONST && inner->operands[0] != *round &&
            inner->operands[0]->kind != TIR_VALUE_CONST && waits(inst, *round, inner->operands[0]))
            return inner;
    }
    return NULL;
}

static struct pair *pair_of(struct outward *o, struct tir_value *round, struct tir_value *thread)
{
    struct pair *p = o->of[round->id];
    while (p && p->thread != thread)
        p = p->next;
    if (!p) {
        p = arena_new(o->scratch, struct pair);
        *p = (struct pair){.round = round, .thread = thread, .next = o->of[round->id]};
        o->of[round->id] = p;
    }
    return p;
}

// Where both are there: behind what makes the round's number.
static struct tir_value *sum_of(struct outward *o, struct pair *p)
{
    if (p->sum)
        return p->sum;
    struct tir_inst *before =
        p->round->kind == TIR_VALUE_ARG ? p->round->block->first : p->round->def->next;
    struct tir_builder b = tir_builder_before(o->f, before);
    p->sum = tir_binary(&b, TIR_OP_ADD, p->round, p->thread);
    return p->sum;
}

bool tir_add_constants_last(struct tir_func *f, struct tir_arena *scratch)
{
    struct outward o = {f, scratch, arena_array(scratch, struct pair *, f->value_count)};
    VEC(struct tir_inst *) sums = {0};
    struct tir_value *round;
    tir_foreach_inst(inst, f) {
        const struct tir_inst *inner = inner_of(inst, &round);
        if (!inner)
            continue;
        pair_of(&o, round, inner->operands[0])->count++;
        vec_push(scratch, &sums, inst);
    }
    bool changed = false;
    vec_foreach(struct tir_inst *, inst, &sums) {
        const struct tir_inst *inner = inner_of(*inst, &round);
        struct pair *p = pair_of(&o, round, inner->operands[0]);
        if (p->count < TIR_BUDGET_OUTWARD_SUMS)
            continue;
        struct tir_value *constant = inner->operands[1];
        (*inst)->operands[0] = sum_of(&o, p);
        (*inst)->operands[1] = constant;
        changed = true;
    }
    return changed;
}
