// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How long a round of a scheduled loop takes: a few rounds of all warpgroups are played, on engines
// that they share.
//
// Each warpgroup issues its operations in order. A product keeps the tensor cores busy after those
// that were started before; its warpgroup goes on, and waits where the result is first used. Other
// operations keep the schedulers and the special function units busy, and their warpgroup. The
// warpgroup that is furthest behind goes first.

#include "machine/work.h"
#include "pass/role/schedule.h"

enum {
    ROUNDS = 12, // played
    SETTLED = 4, // from which on they are counted
    GROUPS = 4
};

struct play {
    const struct schedule *s;
    const struct schedule_order *order;
    int64_t tensor, issue, mufu; // when the engines are free
    struct {
        int64_t now, counted;
        uint32_t round, at;
        int64_t *ready; // by op: when its result of the last time is there
    } groups[GROUPS];
};

static int64_t after_operands(const struct play *p, uint32_t group, uint32_t op)
{
    int64_t at = p->groups[group].now;
    // A product that only adds to what another adds to follows it in the tensor cores' queue.
    vec_foreach(const struct schedule_edge, e, &p->s->edges)
        if (e->later == op && !(p->s->ops.at[op].is_product && p->s->ops.at[e->first].is_product))
            at = TIR_MAX(at, p->groups[group].ready[e->first]);
    return at;
}

static void run(struct play *p, uint32_t group)
{
    const uint32_t op = p->order->at[p->groups[group].at];
    const struct schedule_op *o = &p->s->ops.at[op];
    int64_t at = after_operands(p, group, op);
    if (o->is_product) {
        p->tensor = TIR_MAX(p->tensor, at + TIR_DELAY_PRODUCT_START) + o->tensor;
        p->groups[group].ready[op] = p->tensor + TIR_DELAY_PRODUCT_END;
        p->groups[group].now = at + TIR_DELAY_PRODUCT_START;
    } else {
        if (o->issue)
            at = TIR_MAX(at, p->issue);
        if (o->mufu)
            at = TIR_MAX(at, p->mufu);
        p->issue = o->issue ? at + o->issue : p->issue;
        p->mufu = o->mufu ? at + o->mufu : p->mufu;
        p->groups[group].now = at + TIR_MAX(o->issue, o->mufu);
        p->groups[group].ready[op] = p->groups[group].now;
    }
    if (++p->groups[group].at < p->s->ops.len)
        return;
    p->groups[group].at = 0;
    if (++p->groups[group].round == SETTLED)
        p->groups[group].counted = p->groups[group].now;
}

static int64_t play(const struct schedule *s, const struct schedule_order *order)
{
    struct play p = {.s = s, .order = order};
    const uint32_t groups = TIR_MIN(s->groups, GROUPS);
    for (uint32_t g = 0; g < groups; g++)
        p.groups[g].ready = arena_array(s->scratch, int64_t, s->ops.len);
    for (;;) {
        uint32_t next = 0;
        for (uint32_t g = 1; g < groups; g++)
            if (p.groups[g].now < p.groups[next].now)
                next = g;
        if (p.groups[next].round == ROUNDS)
            break;
        run(&p, next);
    }
    int64_t cycles = 0, tensor = 0;
    for (uint32_t g = 0; g < groups; g++)
        cycles = TIR_MAX(cycles, p.groups[g].now - p.groups[g].counted);
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

static void use(struct life *life, const struct schedule *s, const struct schedule_order *order,
                const uint32_t *place, const struct schedule_edge *e)
{
    const int32_t rounds = (int32_t)e->distance + order->stage[e->later] - order->stage[e->first];
    uint32_t until = place[e->later];
    // A product reads its operands until it is awaited: where its result is first used.
    if (s->ops.at[e->later].is_product && !e->is_sum) {
        uint32_t awaited = s->ops.len;
        vec_foreach(const struct schedule_edge, next, &s->edges)
            if (next->first == e->later && place[next->later] > until)
                awaited = TIR_MIN(awaited, place[next->later]);
        until = awaited < s->ops.len ? awaited : until;
    }
    if (rounds > 0) {
        life->wraps = true;
        life->last_next = TIR_MAX(life->last_next, until);
    } else {
        life->last = TIR_MAX(life->last, until);
    }
}

// The most registers that results take at a time. An operation may put its result where an operand
// was that is not used again.
static int64_t most_words(const struct schedule *s, const struct schedule_order *order)
{
    const uint32_t count = s->ops.len;
    uint32_t *place = arena_array(s->scratch, uint32_t, count);
    int64_t *live = arena_array(s->scratch, int64_t, count), most = 0;
    for (uint32_t i = 0; i < count; i++)
        place[order->at[i]] = i;
    for (uint32_t op = 0; op < count; op++) {
        struct life life = {.last = place[op]};
        vec_foreach(const struct schedule_edge, e, &s->edges)
            if (e->first == op)
                use(&life, s, order, place, e);
        for (uint32_t i = 0; i < count; i++)
            if ((i >= place[op] && (life.wraps || i < life.last || i == place[op])) ||
                (life.wraps && i < life.last_next))
                live[i] += s->ops.at[op].words;
    }
    for (uint32_t i = 0; i < count; i++)
        most = TIR_MAX(most, live[i]);
    return most;
}

void tir_schedule_time(const struct schedule *s, struct schedule_order *order)
{
    struct tir_arena_mark mark = tir_arena_mark(s->scratch);
    order->cycles = play(s, order);
    order->words = most_words(s, order);
    tir_arena_release(s->scratch, mark);
}
