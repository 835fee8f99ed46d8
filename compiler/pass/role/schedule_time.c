// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How long a round of a scheduled loop takes: a few rounds of all warpgroups are played, on engines
// that they share.
//
// Each warpgroup issues its operations in order. A product keeps the tensor cores busy after those
// that were started before; its warpgroup goes on, and waits where the result is first used. Other
// operations keep the schedulers and the special function units busy, and their warpgroup. The
// warpgroup that is furthest behind goes first.

#include "machine/budget.h"
#include "machine/work.h"
#include "pass/role/schedule.h"

enum {
    SETTLED = 4,                               // the round from which on they are counted
    ROUNDS = SETTLED + TIR_CERTIFICATE_ROUNDS, // played
    GROUPS = 4
};

struct play {
    const struct schedule *s;
    const struct schedule_order *order;
    struct tir_run *runs; // NULL: not wanted
    uint32_t group_count;
    int64_t tensor, issue, mufu; // when the engines are free
    struct {
        int64_t now, settled, ended; // now; after the rounds not counted; after the last counted
        uint32_t round, at;
        int64_t *ready; // by op: when its result of the last time is there
    } groups[GROUPS];
};

static int64_t after_operands(const struct play *p, uint32_t group, uint32_t op)
{
    int64_t at = p->groups[group].now;
    // A product that only adds to what another adds to follows it in the tensor cores' queue.
    vec_foreach(const struct schedule_edge, e, &p->s->edges) {
        const bool both = p->s->ops.at[op].is_product && p->s->ops.at[e->first].is_product;
        if (e->later == op && e->kind >= (both ? TIR_NEED_VALUE : TIR_NEED_SUM)) // ORDER need
            at = TIR_MAX(at, p->groups[group].ready[e->first]);
    }
    return at;
}

static void record(const struct play *p, uint32_t group, struct tir_run run)
{
    const uint32_t round = p->groups[group].round;
    if (p->runs && round >= SETTLED && round < ROUNDS)
        p->runs[((round - SETTLED) * p->group_count + group) * p->s->ops.len +
                p->groups[group].at] = run;
}

static void run(struct play *p, uint32_t group)
{
    const uint32_t op = p->order->at[p->groups[group].at];
    const struct schedule_op *o = &p->s->ops.at[op];
    struct tir_run run = {.from = p->groups[group].now, .begin = after_operands(p, group, op)};
    if (o->is_product) {
        run.next = run.begin + TIR_DELAY_PRODUCT_START;
        run.start = TIR_MAX(p->tensor, run.next);
        run.end = p->tensor = run.start + o->tensor;
        run.ready = run.end + TIR_DELAY_PRODUCT_END;
    } else {
        run.start = run.begin;
        if (o->issue)
            run.start = TIR_MAX(run.start, p->issue);
        if (o->mufu)
            run.start = TIR_MAX(run.start, p->mufu);
        p->issue = o->issue ? run.start + o->issue : p->issue;
        p->mufu = o->mufu ? run.start + o->mufu : p->mufu;
        run.end = run.next = run.ready = run.start + TIR_MAX(o->issue, o->mufu);
    }
    record(p, group, run);
    p->groups[group].now = run.next;
    p->groups[group].ready[op] = run.ready;
    if (++p->groups[group].at < p->s->ops.len)
        return;
    p->groups[group].at = 0;
    const uint32_t round = ++p->groups[group].round;
    if (round == SETTLED)
        p->groups[group].settled = p->groups[group].now;
    if (round == ROUNDS)
        p->groups[group].ended = p->groups[group].now;
}

uint32_t tir_schedule_groups(const struct schedule *s)
{
    return TIR_MIN(s->groups, GROUPS);
}

static int64_t play(const struct schedule *s, const struct schedule_order *order,
                    struct tir_run *runs)
{
    const uint32_t groups = tir_schedule_groups(s);
    struct play p = {.s = s, .order = order, .runs = runs, .group_count = groups};
    for (uint32_t g = 0; g < groups; g++)
        p.groups[g].ready = arena_array(s->scratch, int64_t, s->ops.len);
    // Warpgroups that have run their rounds go on, so that the others still share engines.
    for (bool is_done = false; !is_done;) {
        uint32_t next = 0;
        is_done = true;
        for (uint32_t g = 0; g < groups; g++) {
            is_done &= p.groups[g].round >= ROUNDS;
            if (p.groups[g].now < p.groups[next].now)
                next = g;
        }
        if (!is_done)
            run(&p, next);
    }
    int64_t cycles = 0, tensor = 0;
    for (uint32_t g = 0; g < groups; g++)
        cycles = TIR_MAX(cycles, p.groups[g].ended - p.groups[g].settled);
    // Warpgroups that wait for nothing run ahead of the tensor cores, but not for ever.
    vec_foreach(const struct schedule_op, op, &s->ops)
        tensor += op->tensor * groups;
    return TIR_MAX(cycles / (ROUNDS - SETTLED), tensor);
}

// From where a result is made, how long it is kept.
struct life {
    uint32_t last, last_next; // places of its last use, in the round that makes it and in the next
    bool wraps;               // it is used there
};

// unawaited: where a product ends whose result nobody uses behind it; 0: where it starts.
static void use(struct life *life, const struct schedule *s, const struct schedule_order *order,
                const uint32_t *place, const struct schedule_edge *e, uint32_t unawaited)
{
    const int32_t rounds = (int32_t)e->distance + order->stage[e->later] - order->stage[e->first];
    uint32_t until = place[e->later];
    // A product reads its operands until it is awaited: where its result is first used.
    if (s->ops.at[e->later].is_product && e->kind == TIR_NEED_VALUE) {
        uint32_t awaited = s->ops.len;
        vec_foreach(const struct schedule_edge, next, &s->edges)
            if (next->first == e->later && next->kind != TIR_NEED_TURN &&
                place[next->later] > until)
                awaited = TIR_MIN(awaited, place[next->later]);
        until = awaited < s->ops.len ? awaited : TIR_MAX(until, unawaited);
    }
    if (rounds > 0) {
        life->wraps = true;
        life->last_next = TIR_MAX(life->last_next, until);
    } else {
        life->last = TIR_MAX(life->last, until);
    }
}

// Where the operations stand, by operation.
static uint32_t *places(const struct schedule *s, const struct schedule_order *order)
{
    uint32_t *place = arena_array(s->scratch, uint32_t, s->ops.len);
    for (uint32_t i = 0; i < s->ops.len; i++)
        place[order->at[i]] = i;
    return place;
}

// flies: a product reads its operands up to the end of the round if nobody awaits it before.
static struct life life_of(const struct schedule *s, const struct schedule_order *order,
                           const uint32_t *place, uint32_t op, bool flies)
{
    struct life life = {.last = place[op]};
    vec_foreach(const struct schedule_edge, e, &s->edges)
        if (e->first == op && e->kind != TIR_NEED_TURN)
            use(&life, s, order, place, e, flies ? s->ops.len : 0);
    return life;
}

// Is a result that is made at the place `at` in its registers at slot i?
static bool lives(const struct life *life, uint32_t at, uint32_t i)
{
    return (i >= at && (life->wraps || i < life->last || i == at)) ||
           (life->wraps && i < life->last_next);
}

// The registers that results take, by slot. An operation may put its result where an operand was
// that is not used again. flies: what a loop adds to stays in its registers, too.
static int64_t *live_words(const struct schedule *s, const struct schedule_order *order, bool flies)
{
    const uint32_t count = s->ops.len;
    const uint32_t *place = places(s, order);
    int64_t *live = arena_array(s->scratch, int64_t, count);
    for (uint32_t op = 0; op < count; op++) {
        const struct life life = life_of(s, order, place, op, flies);
        const bool is_kept = flies && s->ops.at[op].is_kept;
        for (uint32_t i = 0; i < count; i++)
            if (is_kept || lives(&life, place[op], i))
                live[i] += s->ops.at[op].words;
    }
    return live;
}

// The most registers that results take at a time, and the first slot where they do.
static int64_t most_words(const struct schedule *s, const struct schedule_order *order,
                          uint32_t *fullest)
{
    const uint32_t count = s->ops.len;
    const int64_t *live = live_words(s, order, false);
    *fullest = 0;
    for (uint32_t i = 0; i < count; i++)
        if (live[i] > live[*fullest])
            *fullest = i;
    return live[*fullest];
}

// Does a product take the result from registers?
static bool is_operand(const struct schedule *s, uint32_t op)
{
    vec_foreach(const struct schedule_edge, e, &s->edges)
        if (e->first == op && e->kind == TIR_NEED_VALUE && s->ops.at[e->later].is_product)
            return s->ops.at[op].words > 0;
    return false;
}

// Is an operand that is in registers made at slot i while a product reads one?
static bool makes_operand(const struct schedule *s, const struct schedule_order *order,
                          const uint32_t *place, uint32_t i)
{
    const uint32_t made = order->at[i];
    if (!is_operand(s, made))
        return false;
    for (uint32_t op = 0; op < s->ops.len; op++) {
        const struct life life = life_of(s, order, place, op, true);
        const bool is_read = op == made ? i < life.last_next : lives(&life, place[op], i);
        if (is_operand(s, op) && is_read)
            return true;
    }
    return false;
}

// Those that are taken where a product starts, and how many must be left beside them. Between
// products operations go element by element, so that what they give each other need not be there as
// a whole; but ptxas wants an operand in registers of its own, in rows of four.
static void hold(const struct schedule *s, struct schedule_order *order)
{
    const uint32_t *place = places(s, order);
    const int64_t *live = live_words(s, order, true);
    order->held = 0;
    order->beside = TIR_BUDGET_BESIDE_PRODUCTS;
    for (uint32_t i = 0; i < s->ops.len; i++) {
        if (s->ops.at[order->at[i]].is_product)
            order->held = TIR_MAX(order->held, live[i]);
        if (makes_operand(s, order, place, i))
            order->beside = TIR_BUDGET_BESIDE_OPERANDS;
    }
}

void tir_schedule_time(const struct schedule *s, struct schedule_order *order)
{
    struct tir_arena_mark mark = tir_arena_mark(s->scratch);
    uint32_t fullest;
    order->cycles = play(s, order, NULL);
    order->words = most_words(s, order, &fullest);
    hold(s, order);
    tir_arena_release(s->scratch, mark);
}

struct tir_run *tir_schedule_runs(const struct schedule *s, const struct schedule_order *order,
                                  struct tir_arena *arena)
{
    const uint32_t count = TIR_CERTIFICATE_ROUNDS * tir_schedule_groups(s) * s->ops.len;
    struct tir_run *runs = arena_array(arena, struct tir_run, count);
    play(s, order, runs);
    return runs;
}

uint32_t tir_schedule_fullest(const struct schedule *s, const struct schedule_order *order)
{
    uint32_t fullest;
    most_words(s, order, &fullest);
    return fullest;
}
