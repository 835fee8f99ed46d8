// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How long a round of a chosen order takes on the card, played finer than orders are compared by
// (schedule_time.c):
//   - a scheduler serves the warpgroups in turns, a slice of an operation each. Its units do not
//     add up: special functions of one warpgroup hide nothing of another. A warp that has the
//     scheduler for itself waits for its own results, and takes longer (DELAY ALONE);
//   - a product with an operand in registers is awaited in its round;
//   - a slot of a ring is filled again when all warpgroups are done with it (DELAY REFILL);
//   - choices by masks, which the pass split takes out of most rounds, cost nothing.
// It is played once for a loop. No order is chosen by it, and the certificate's check does not read
// it.

#include "machine/cost.h"
#include "machine/work.h"
#include "pass/role/schedule.h"

enum {
    SETTLED = 6,  // the round from which on they are counted
    COUNTED = 12, // as many for rings of two, three, four and six slots
    ROUNDS = SETTLED + COUNTED,
    PLAYED = ROUNDS + 1, // so that others still share engines
    GROUPS = 4,
    SLICE = 64 // cycles
};

struct wait { // of an operation for a product of as many rounds before
    uint32_t op, product;
    int32_t rounds;
};

struct use {                   // of a ring, by a get
    uint32_t slots, gets, nth; // it has; in a round; which of them this one is
};

struct replay {
    const struct schedule *s;
    const struct schedule_order *order;
    uint32_t group_count;
    struct use *uses; // by op
    VEC(struct wait) waits;
    bool *is_awaited;          // by op: a product that reads registers
    int64_t tensor, scheduler; // when they are free
    struct {
        int64_t now, settled, ended;
        uint32_t round, at;
        int64_t left;  // cycles of the operation that is under way
        int64_t *done; // by round and op: when; 0: it has not run
    } groups[GROUPS];
};

static int64_t *done_at(const struct replay *p, uint32_t group, uint32_t round, uint32_t op)
{
    return &p->groups[group].done[round * p->s->ops.len + op];
}

static bool is_operand(const struct replay *p, const struct schedule_edge *e)
{
    return e->kind == TIR_NEED_VALUE && p->s->ops.at[e->later].is_product &&
           !p->s->ops.at[e->first].is_product && p->s->ops.at[e->first].words > 0;
}

// When the slot that a get takes is full. INT64_MAX: a warpgroup still reads what was in it.
static int64_t filled(const struct replay *p, uint32_t group, uint32_t op)
{
    const struct use *u = &p->uses[op];
    const uint32_t use = p->groups[group].round * u->gets + u->nth;
    if (!u->slots || use < u->slots)
        return 0;
    const uint32_t before = use - u->slots, nth = before % u->gets;
    int64_t free = 0;
    for (uint32_t other = 0; other < p->s->ops.len; other++)
        if (p->uses[other].slots && p->uses[other].nth == nth &&
            p->s->ops.at[other].inst->operands[0] == p->s->ops.at[op].inst->operands[0])
            for (uint32_t g = 0; g < p->group_count; g++) {
                const int64_t done = *done_at(p, g, before / u->gets, other);
                free = TIR_MAX(free, done ? done : INT64_MAX);
            }
    return free == INT64_MAX ? free : free + TIR_DELAY_REFILL;
}

// What an operation waits for: products whose results it takes.
static void find_waits(struct replay *p)
{
    vec_foreach(const struct schedule_edge, e, &p->s->edges) {
        const int32_t rounds =
            (int32_t)e->distance + p->order->stage[e->later] - p->order->stage[e->first];
        const bool both = p->s->ops.at[e->later].is_product;
        const bool takes = e->kind >= (both ? TIR_NEED_VALUE : TIR_NEED_SUM); // ORDER need
        if (p->s->ops.at[e->first].is_product && takes)
            vec_push(p->s->scratch, &p->waits, ((struct wait){e->later, e->first, rounds}));
        p->is_awaited[e->later] |= is_operand(p, e);
    }
}

static int64_t awaited(const struct replay *p, uint32_t group, uint32_t op)
{
    const int32_t round = (int32_t)p->groups[group].round;
    int64_t at = p->groups[group].now;
    vec_foreach(const struct wait, w, &p->waits)
        if (w->op == op && w->rounds <= round)
            at = TIR_MAX(at, *done_at(p, group, (uint32_t)(round - w->rounds), w->product));
    return at;
}

static void end_round(struct replay *p, uint32_t group)
{
    const uint32_t round = p->groups[group].round++;
    p->groups[group].at = 0;
    for (uint32_t op = 0; op < p->s->ops.len; op++)
        if (p->is_awaited[op])
            p->groups[group].now = TIR_MAX(p->groups[group].now, *done_at(p, group, round, op));
    if (round + 1 == SETTLED)
        p->groups[group].settled = p->groups[group].now;
    if (round + 1 == ROUNDS)
        p->groups[group].ended = p->groups[group].now;
}

// One slice of an operation, or a product.
static void step(struct replay *p, uint32_t group)
{
    const uint32_t at = p->groups[group].at, op = p->order->at[at];
    const struct schedule_op *o = &p->s->ops.at[op];
    int64_t *done = done_at(p, group, p->groups[group].round, op);
    if (!p->groups[group].left) {
        p->groups[group].now = TIR_MAX(awaited(p, group, op), filled(p, group, op)) +
                               (o->is_product ? TIR_DELAY_PRODUCT_START : 0);
        p->groups[group].left = o->is_product || o->is_seldom ? 0 : o->busy;
    }
    if (o->is_product) {
        p->tensor = TIR_MAX(p->tensor, p->groups[group].now) +
                    o->tensor * p->s->cost->products / p->s->cost->products_in_rounds;
        *done = p->tensor + TIR_DELAY_PRODUCT_END;
    } else {
        const int64_t slice = TIR_MIN(p->groups[group].left, SLICE);
        const int64_t start =
            slice ? TIR_MAX(p->scheduler, p->groups[group].now) : p->groups[group].now;
        p->scheduler = slice ? start + slice : p->scheduler;
        p->groups[group].now = start + slice * TIR_DELAY_ALONE / 100;
        p->groups[group].left -= slice;
        *done = TIR_MAX(p->groups[group].now, 1);
    }
    if (!p->groups[group].left && ++p->groups[group].at == p->s->ops.len)
        end_round(p, group);
}

static void find_rings(struct replay *p)
{
    for (uint32_t slot = 0; slot < p->s->ops.len; slot++) {
        const uint32_t op = p->order->at[slot];
        const struct tir_inst *inst = p->s->ops.at[op].inst;
        if (inst->op != TIR_OP_GET || !inst->operands[0]->def)
            continue;
        p->uses[op].slots = (uint32_t)tir_attr_int(inst->operands[0]->def, TIR_ATTR_stages, 0);
        for (uint32_t i = 0; i < p->s->ops.len; i++) {
            const uint32_t other = p->order->at[i];
            const struct tir_inst *get = p->s->ops.at[other].inst;
            const bool is_same = get->op == TIR_OP_GET && get->operands[0] == inst->operands[0];
            p->uses[op].gets += is_same;
            p->uses[op].nth += is_same && i < slot;
        }
    }
}

// The warpgroup that is furthest behind of those that do not wait for another one: there is one, as
// the one whose round is the first waits for none.
static uint32_t next_group(const struct replay *p)
{
    uint32_t next = p->group_count;
    for (uint32_t g = 0; g < p->group_count; g++) {
        if (p->groups[g].round == PLAYED ||
            (next < p->group_count && p->groups[g].now >= p->groups[next].now))
            continue;
        if (filled(p, g, p->order->at[p->groups[g].at]) < INT64_MAX)
            next = g;
    }
    return next;
}

static bool is_over(const struct replay *p)
{
    for (uint32_t g = 0; g < p->group_count; g++)
        if (p->groups[g].round < ROUNDS)
            return false;
    return true;
}

int64_t tir_schedule_replay(const struct schedule *s, const struct schedule_order *order)
{
    struct tir_arena_mark mark = tir_arena_mark(s->scratch);
    const uint32_t count = (uint32_t)s->ops.len;
    struct replay p = {.s = s, .order = order, .group_count = tir_schedule_groups(s)};
    p.uses = arena_array(s->scratch, struct use, count);
    p.is_awaited = arena_array(s->scratch, bool, count);
    for (uint32_t g = 0; g < p.group_count; g++)
        p.groups[g].done = arena_array(s->scratch, int64_t, (PLAYED + 1) * count);
    find_rings(&p);
    find_waits(&p);
    while (!is_over(&p))
        step(&p, next_group(&p));
    int64_t cycles = 0;
    for (uint32_t g = 0; g < p.group_count; g++)
        cycles = TIR_MAX(cycles, p.groups[g].ended - p.groups[g].settled);
    tir_arena_release(s->scratch, mark);
    return cycles / COUNTED;
}
