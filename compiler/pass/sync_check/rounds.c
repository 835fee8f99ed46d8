// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// See ask.h: what loops count and carry, as sums of unknowns: the round of a loop, or a tile of a
// tiles loop, is one.

#include "pass/sync_check/linear.h"

enum {
    MOST_ROUNDS = 64, // that are followed one by one
    FEW_ROUNDS = 8,   // that are picked from
};

static uint32_t lead_of(const struct tir_inst *loop) // operands before those that are carried
{
    return loop->op == TIR_OP_FOR     ? TIR_FOR_INIT
           : loop->op == TIR_OP_TILES ? tir_attr_find(loop, TIR_ATTR_by)->list_count
                                      : 0;
}

static uint32_t skip_of(const struct tir_inst *loop) // arguments before those that are carried
{
    return loop->op == TIR_OP_FOR ? 1 : lead_of(loop);
}

// There are more tiles than so many, along the first dimension that can have them.
static void have_tiles(struct sync_ask *a, const struct tir_inst *tiles, struct sync_linear more)
{
    const struct tir_attr *by = tir_attr_find(tiles, TIR_ATTR_by);
    a->partial = true;
    for (uint32_t d = 0; d < by->list_count; d++) {
        struct sync_linear extent = tir_sync_linear(a, tiles->operands[d]);
        bool stated = is_number(a, &extent);
        if (!stated)
            tir_sync_at_least(a, extent, plus(a, constant(0), more, by->list[d]), 1);
        more = stated ? more : constant(0);
    }
}

// The counter of a for in a round.
static struct sync_linear counter_of(struct sync_ask *a, const struct tir_inst *loop,
                                     struct sync_linear round)
{
    struct sync_linear step = tir_sync_linear(a, loop->operands[TIR_FOR_STEP]);
    return plus(a, tir_sync_linear(a, loop->operands[TIR_FOR_BEGIN]),
                tir_sync_times(a, round, step), 1);
}

// The round that a loop is in.
static struct sync_linear round_of(struct sync_ask *a, const struct tir_inst *loop)
{
    struct sync_following *r = &a->rounds[loop->id];
    if (!r->counted) {
        r->counted = true;
        r->unknown = tir_sync_unknown(a->q, 0, SYNC_INFINITY, 0);
        if (r->followed)
            tir_sync_equal(a, tir_sync_single(r->unknown), constant(r->at));
        struct sync_linear round = tir_sync_single(r->unknown);
        if (loop->op == TIR_OP_TILES)
            have_tiles(a, loop, plus(a, round, constant(1), 1));
        if (loop->op == TIR_OP_FOR)
            tir_sync_at_least(a, tir_sync_linear(a, loop->operands[TIR_FOR_END]),
                              counter_of(a, loop, round), 1);
    }
    return tir_sync_single(r->unknown);
}

static void forget(struct sync_ask *a, const struct tir_value *v)
{
    a->known[v->id].form = a->carried[v->id] = NULL;
}

void tir_sync_go_on(struct sync_ask *a, const struct tir_inst *loop)
{
    const struct sync_linear before = round_of(a, loop);
    a->rounds[loop->id] = (struct sync_following){.unknown = 0};
    for (uint32_t i = 0; i < loop->regions[0]->arg_count; i++)
        forget(a, loop->regions[0]->args[i]);
    tir_foreach_inst_in(inst, loop->regions[0]) {
        a->rounds[inst->id] = (struct sync_following){.unknown = 0};
        for (uint32_t i = 0; i < inst->result_count; i++)
            forget(a, inst->results[i]);
        for (uint32_t r = 0; r < inst->region_count; r++)
            for (uint32_t i = 0; i < inst->regions[r]->arg_count; i++)
                forget(a, inst->regions[r]->args[i]);
    }
    tir_sync_at_least(a, round_of(a, loop), before, 1);
}

static void set_carried(struct sync_ask *a, const struct tir_inst *loop, uint32_t i,
                        const struct sync_linear *form)
{
    for (uint32_t k = 0; k < loop->region_count; k++)
        a->carried[loop->regions[k]->args[skip_of(loop) + i]->id] = form;
}

static void forget_condition(struct sync_ask *a, const struct tir_inst *loop)
{
    for (uint32_t i = 0; i < loop->regions[0]->arg_count; i++)
        a->known[loop->regions[0]->args[i]->id].form = NULL;
    tir_foreach_inst_in(inst, loop->regions[0])
        for (uint32_t i = 0; i < inst->result_count; i++)
            a->known[inst->results[i]->id].form = NULL;
}

void tir_sync_demand_next(struct sync_ask *a, const struct tir_inst *loop)
{
    const struct tir_inst *yield = tir_yield_of(loop->regions[1]);
    const uint32_t count = loop->result_count;
    const struct sync_linear **next = arena_array(a->arena, const struct sync_linear *, count + 1);
    const struct sync_linear **now = arena_array(a->arena, const struct sync_linear *, count + 1);
    for (uint32_t i = 0; i < count; i++)
        if (is_integer(loop->regions[0]->args[i]))
            next[i] = kept(a, tir_sync_linear(a, yield->operands[i]));
    for (uint32_t i = 0; i < count; i++) {
        now[i] = a->carried[loop->regions[0]->args[i]->id];
        if (next[i])
            set_carried(a, loop, i, next[i]);
    }
    forget_condition(a, loop);
    tir_sync_demand(a, tir_yield_of(loop->regions[0])->operands[0], true);
    for (uint32_t i = 0; i < count; i++)
        set_carried(a, loop, i, now[i]);
    forget_condition(a, loop);
}

// By how much carried value i changes with each round. False: not by the same.
static bool step_of(struct sync_ask *a, const struct tir_inst *loop, uint32_t i,
                    struct sync_linear *step)
{
    const struct tir_block *body = loop->regions[loop->op == TIR_OP_WHILE];
    const struct tir_value *arg = body->args[skip_of(loop) + i],
                           *next = tir_yield_of(body)->operands[i], *by;
    *step = constant(0);
    if (next == arg)
        return true;
    if (!next->def || (next->def->op != TIR_OP_ADD && next->def->op != TIR_OP_SUB))
        return false;
    bool second = next->def->op == TIR_OP_ADD && next->def->operands[1] == arg;
    by = next->def->operands[!second];
    if (next->def->operands[second] != arg ||
        (by->kind != TIR_VALUE_CONST && tir_is_made_in(loop, by)))
        return false;
    *step = plus(a, constant(0), tir_sync_linear(a, by), next->def->op == TIR_OP_SUB ? -1 : 1);
    return true;
}

// Does the loop end at once if the value is false?
static bool must_be_true(const struct tir_value *cond, const struct tir_value *v)
{
    if (cond->kind == TIR_VALUE_RESULT && cond->def->op == TIR_OP_AND)
        return must_be_true(cond->def->operands[0], v) || must_be_true(cond->def->operands[1], v);
    return cond == v;
}

// Carried value i in the next round. One without which the loop would have ended is true as long as
// it goes on.
static const struct sync_linear *next_of(struct sync_ask *a, const struct tir_inst *loop,
                                         uint32_t i, bool goes_on)
{
    const struct tir_block *body = loop->regions[loop->op == TIR_OP_WHILE];
    const struct tir_value *next = tir_yield_of(body)->operands[i];
    if (!goes_on || loop->op != TIR_OP_WHILE ||
        !must_be_true(tir_yield_of(loop->regions[0])->operands[0], loop->regions[0]->args[i]))
        return kept(a, tir_sync_linear(a, next));
    tir_sync_demand(a, next, true);
    return kept(a, tir_sync_constant(1));
}

// Makes the carried values of `which` those at the head of a round, as far as the loop comes to it.
// Values computed from them are no longer known.
void tir_sync_follow(struct sync_ask *a, const struct tir_inst *loop, int64_t to,
                     const struct bitset *which)
{
    const struct tir_block *body = loop->regions[loop->op == TIR_OP_WHILE];
    const struct tir_inst *around = a->following;
    uint32_t skip = skip_of(loop), count = loop->result_count;
    const struct sync_linear **next = arena_array(a->arena, const struct sync_linear *, count + 1);
    bool steps = true;
    a->following = loop;
    for (uint32_t i = 0; i < count; i++) {
        struct sync_linear step;
        const struct tir_value *arg = body->args[skip + i];
        if (!is_integer(arg) || (which && !bitset_has(which, arg->id)))
            continue;
        next[i] = kept(a, tir_sync_linear(a, loop->operands[lead_of(loop) + i]));
        steps = steps && step_of(a, loop, i, &step);
    }
    for (int64_t round = 0; round <= to && !a->q->too_large; round++) {
        a->time++;
        for (uint32_t i = 0; i < count; i++)
            if (next[i])
                set_carried(a, loop, i, next[i]);
        for (uint32_t i = 0; i < count && round < to; i++) {
            struct sync_linear step;
            if (!next[i])
                continue;
            if (steps && step_of(a, loop, i, &step)) // at once
                next[i] = kept(a, plus(a, *next[i], step, to));
            else
                next[i] = next_of(a, loop, i, round + 1 < to);
        }
        if (steps && round < to)
            round = to - 1;
        a->q->too_large |= round > MOST_ROUNDS && !steps;
    }
    a->following = around;
}

struct sync_linear tir_sync_after_rounds(struct sync_ask *a, const struct tir_inst *loop,
                                         uint32_t i, struct sync_linear rounds)
{
    struct sync_step step;
    struct sync_linear at = tir_sync_anything(a, loop->results[i]);
    if (loop->op == TIR_OP_TILES || !tir_sync_step(a->p, loop, i, &step))
        return at;
    struct sync_linear begin = tir_sync_linear(a, loop->operands[lead_of(loop) + i]);
    if (step.has_low)
        tir_sync_at_least(a, at, plus(a, begin, rounds, step.low), 0);
    if (step.has_high)
        tir_sync_at_least(a, plus(a, begin, rounds, step.high), at, 0);
    return at;
}

struct sync_linear tir_sync_rounds_of(struct sync_ask *a, const struct tir_inst *loop)
{
    struct sync_following *r = &a->rounds[loop->id];
    if (r->ended)
        return tir_sync_single(r->all);
    r->ended = true;
    r->all = tir_sync_unknown(a->q, 0, SYNC_INFINITY, 0);
    int64_t step, low, high;
    struct sync_linear rounds = tir_sync_single(r->all);
    if (loop->op != TIR_OP_FOR || !tir_is_const_int(loop->operands[TIR_FOR_STEP], &step) ||
        step < 1)
        return rounds;
    struct sync_linear end = tir_sync_linear(a, loop->operands[TIR_FOR_END]);
    struct sync_linear way = plus(a, end, tir_sync_linear(a, loop->operands[TIR_FOR_BEGIN]), -1);
    tir_sync_bounds(a->q, &way, &low, &high);
    tir_sync_at_least(a, plus(a, constant(0), rounds, step), way, 0);
    if (low >= 0)
        tir_sync_at_least(a, plus(a, way, constant(step), 1), plus(a, constant(0), rounds, step),
                          1);
    return rounds;
}

static struct sync_linear carried_of(struct sync_ask *a, const struct tir_value *v)
{
    const struct tir_inst *loop = v->block->owner;
    uint32_t i = v->index - skip_of(loop);
    struct sync_following *r = &a->rounds[loop->id];
    struct sync_linear step;
    if (a->carried[v->id])
        return *a->carried[v->id];
    if (step_of(a, loop, i, &step)) {
        struct sync_linear begin = tir_sync_linear(a, loop->operands[lead_of(loop) + i]);
        bool stays = is_number(a, &step) && !step.constant;
        return stays ? begin : plus(a, begin, tir_sync_times(a, round_of(a, loop), step), 1);
    }
    if (a->loose && v->block != loop->regions[0]) // what the condition was of
        return tir_sync_linear(a, loop->regions[0]->args[v->index]);
    a->follows = true;
    if (a->loose) {
        int64_t low, high;
        struct sync_linear round = round_of(a, loop);
        tir_sync_bounds(a->q, &round, &low, &high);
        return high ? tir_sync_after_rounds(a, loop, i, round)
                    : tir_sync_linear(a, loop->operands[lead_of(loop) + i]);
    }
    if (r->followed || loop->op == TIR_OP_TILES) // within itself
        return tir_sync_anything(a, v);
    r->followed = a->partial = true;
    r->at = tir_sync_pick(a, FEW_ROUNDS);
    if (r->counted)
        tir_sync_equal(a, tir_sync_single(r->unknown), constant(r->at));
    tir_sync_follow(a, loop, r->at, NULL);
    return a->carried[v->id] ? *a->carried[v->id] : tir_sync_anything(a, v);
}

static bool same_tiles(const struct tir_inst *x, const struct tir_inst *y)
{
    const struct tir_attr *a = tir_attr_find(x, TIR_ATTR_by), *b = tir_attr_find(y, TIR_ATTR_by);
    return a->list_count == b->list_count &&
           !memcmp(a->list, b->list, a->list_count * sizeof *a->list);
}

// A coordinate of a tile. The tiles loops of roles go over the same ones.
static struct sync_linear coordinate_of(struct sync_ask *a, const struct tir_value *v)
{
    const struct tir_inst *tiles = v->block->owner;
    int64_t by = tir_attr_find(tiles, TIR_ATTR_by)->list[v->index];
    bool made = a->tile[v->index];
    if (!a->tiles)
        a->tiles = tiles;
    if (!same_tiles(a->tiles, tiles)) {
        a->partial = true;
        return constant(0);
    }
    int64_t extent = SYNC_INFINITY;
    tir_is_const_int(tiles->operands[v->index], &extent);
    struct sync_linear index =
        tir_sync_along(a, &a->tile[v->index], 0, tir_ceil_div(extent, by) - 1, 0);
    struct sync_linear at = plus(a, constant(0), index, by);
    if (!made)
        tir_sync_at_least(a, tir_sync_linear(a, tiles->operands[v->index]), at, 1);
    return at;
}

struct sync_linear tir_sync_argument_of(struct sync_ask *a, const struct tir_value *v)
{
    const struct tir_inst *owner = v->block->owner;
    if (!owner)
        return a->arg[v->index] ? tir_sync_single(a->arg[v->index] - 1) : tir_sync_anything(a, v);
    if (owner->op == TIR_OP_TILES && v->index < skip_of(owner))
        return coordinate_of(a, v);
    if (owner->op != TIR_OP_FOR && owner->op != TIR_OP_TILES && owner->op != TIR_OP_WHILE)
        return tir_sync_anything(a, v);
    if (owner->op != TIR_OP_FOR || v->index)
        return carried_of(a, v);
    return counter_of(a, owner, round_of(a, owner));
}
