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
// Integers wrap, so the sums are the same. The loop has one addition more, so a few stay. A number
// of 64 bits is that of a thread in 32 bits, cast, or is subtracted:
//
//     let a1: i64 = cast(add(y, i32(1)));       ->  let z: i64 = sub(k, cast(y));
//     let b1: i64 = sub(k, a1);                     let b1: i64 = sub(z, 1);
//
// Then y + 1 has to be known not to wrap.

#include "pass/clean/outward.h"

#include "base/vec.h"
#include "ir/range.h"
#include "ir/walk.h"
#include "machine/budget.h"

// What `round` and `thread` are: of a sum or difference in a loop that makes the first and not the
// second.
struct pair {
    enum tir_op op;
    struct tir_value *round, *thread;
    struct tir_value *sum; // NULL: not made yet
    uint32_t count;        // of constants
    struct pair *next;     // of the same `round`
};

struct outward {
    struct tir_func *f;
    struct tir_arena *scratch;
    struct tir_ranges *ranges;
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

// The sum with a constant that v is, or is a cast of that wraps as little.
static const struct tir_inst *sum_within(const struct outward *o, const struct tir_value *v)
{
    const bool is_cast = v && v->kind == TIR_VALUE_RESULT && v->def->op == TIR_OP_CAST;
    const struct tir_inst *sum = sum_with_constant(is_cast ? v->def->operands[0] : v);
    if (!is_cast || !sum || sum->results[0]->type->elem != TIR_I32)
        return is_cast ? NULL : sum;
    return tir_range_is_exact(o->ranges, sum) ? sum : NULL;
}

// add(round, add(thread, constant)), either way round, or sub. Gives the inner sum.
static const struct tir_inst *inner_of(const struct outward *o, const struct tir_inst *inst,
                                       struct tir_value **round)
{
    const enum tir_elem elem = inst->result_count ? inst->results[0]->type->elem : TIR_NONE;
    if ((inst->op != TIR_OP_ADD && inst->op != TIR_OP_SUB) || (elem != TIR_I32 && elem != TIR_I64))
        return NULL;
    for (uint32_t i = inst->op == TIR_OP_SUB; i < 2; i++) {
        const struct tir_inst *inner = sum_within(o, inst->operands[i]);
        *round = inst->operands[1 - i];
        if (inner && (*round)->kind != TIR_VALUE_CONST && inner->operands[0] != *round &&
            inner->operands[0]->kind != TIR_VALUE_CONST && waits(inst, *round, inner->operands[0]))
            return inner;
    }
    return NULL;
}

static struct pair *pair_of(struct outward *o, enum tir_op op, struct tir_value *round,
                            struct tir_value *thread)
{
    struct pair *p = o->of[round->id];
    while (p && (p->thread != thread || p->op != op))
        p = p->next;
    if (!p) {
        p = arena_new(o->scratch, struct pair);
        *p = (struct pair){.op = op, .round = round, .thread = thread, .next = o->of[round->id]};
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
    struct tir_value *thread = p->thread;
    if (thread->type != p->round->type)
        thread = tir_build1(&b, TIR_OP_CAST, p->round->type, &thread, 1);
    p->sum = tir_binary(&b, p->op, p->round, thread);
    return p->sum;
}

bool tir_add_constants_last(struct tir_func *f, struct tir_arena *scratch)
{
    struct outward o = {f, scratch, tir_ranges_new(scratch, f),
                        arena_array(scratch, struct pair *, f->value_count)};
    VEC(struct tir_inst *) sums = {0};
    struct tir_value *round;
    tir_foreach_inst(inst, f) {
        const struct tir_inst *inner = inner_of(&o, inst, &round);
        if (!inner)
            continue;
        pair_of(&o, inst->op, round, inner->operands[0])->count++;
        vec_push(scratch, &sums, inst);
    }
    bool changed = false;
    vec_foreach(struct tir_inst *, inst, &sums) {
        const struct tir_inst *inner = inner_of(&o, *inst, &round);
        struct pair *p = pair_of(&o, (*inst)->op, round, inner->operands[0]);
        if (p->count < TIR_BUDGET_OUTWARD_SUMS)
            continue;
        (*inst)->operands[0] = sum_of(&o, p);
        (*inst)->operands[1] = tir_const_as(f, round->type, inner->operands[1]);
        changed = true;
    }
    return changed;
}
