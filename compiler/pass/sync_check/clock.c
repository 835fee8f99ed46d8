// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's clocks: the events that a thread knows, and how it learns of them.
//
// A release by all lanes of a warp passes on the events of each lane. A release by one lane passes
// on its own events and those that all lanes knew when they last met. A subset of lanes behaves
// like all: each lane knows its own events, and nothing of the others until they meet. An mbarrier
// knows the common events of lanes after each of them has arrived, possibly one after the other.
// Waits and finished products are events of the whole warp, so any lane's release passes them on.

#include "pass/sync_check/sync_check.h"

uint16_t tir_sync_strand(struct sync_run *r)
{
    if (r->strand_count == r->p->strands) {
        if (r->p->strands < SYNC_MOST_STRANDS) {
            r->p->strands *= 2;
            r->outcome = SYNC_AGAIN;
        } else {
            tir_sync_give_up(r, "threads, barriers and groups of copies to tell apart",
                             SYNC_MOST_STRANDS);
        }
        return 0;
    }
    return (uint16_t)r->strand_count++;
}

uint16_t tir_sync_use_strand(struct sync_run *r, uint16_t *strand)
{
    if (!*strand)
        *strand = tir_sync_strand(r);
    return *strand;
}

// In lines, for which clocks have room: a loop that compilers take several numbers at a time. As
// signed numbers, which all vector units compare: no strand has 2^31 events. The units that every
// x86-64 has know no maximum of them.
TIR_WIDER static void join(uint32_t *restrict into, const uint32_t *restrict from, uint32_t count)
{
    enum { LINE = 16 };
    static_assert(SYNC_STRANDS % LINE == 0, "clocks are whole lines");
    for (uint32_t i = 0; i < count; i += LINE, into += LINE, from += LINE)
        for (uint32_t k = 0; k < LINE; k++)
            into[k] = (uint32_t)TIR_MAX((int32_t)into[k], (int32_t)from[k]);
}

void tir_sync_join(const struct sync_run *r, struct sync_clock *into, const struct sync_clock *from)
{
    join(into->known, from->known, r->strand_count);
    for (uint32_t i = 0; i < r->p->memories; i++)
        join(into->fenced[i], from->fenced[i], r->strand_count);
}

struct sync_clock *tir_sync_clock(const struct sync_who *who)
{
    return &who->agent->threads[who->thread].clock;
}

static bool has_peers(const struct sync_agent *a)
{
    return a->warps > 1;
}

// Are all lanes of thread t among those of thread `among`?
static bool is_within(const struct sync_agent *a, uint32_t t, uint32_t among)
{
    const struct sync_thread *x = &a->threads[t], *y = &a->threads[among];
    if (t == among || !y->mask)
        return true;
    if (!x->mask || y->elected || x->elected)
        return false;
    for (uint32_t w = 0; w < a->warps; w++)
        if (x->mask[w] & ~y->mask[w])
            return false;
    return true;
}

static uint32_t lanes_of(const struct sync_thread *t, uint32_t warp)
{
    return t->mask ? t->mask[warp] : UINT32_MAX;
}

// Does each lane of t belong to x or to y?
static bool are_among(const struct sync_agent *a, const struct sync_thread *t,
                      const struct sync_thread *x, const struct sync_thread *y)
{
    for (uint32_t w = 0; w < a->warps; w++)
        if (lanes_of(t, w) & ~(lanes_of(x, w) | lanes_of(y, w)))
            return false;
    return !t->elected && !x->elected && !y->elected;
}

static void join_least(uint32_t *into, const uint32_t *x, const uint32_t *y, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        into[i] = TIR_MAX(into[i], TIR_MIN(x[i], y[i]));
}

static void join_common(const struct sync_run *r, struct sync_clock *into,
                        const struct sync_clock *x, const struct sync_clock *y)
{
    join_least(into->known, x->known, y->known, r->strand_count);
    for (uint32_t i = 0; i < r->p->memories; i++)
        join_least(into->fenced[i], x->fenced[i], y->fenced[i], r->strand_count);
}

// All lanes of two sets know the events that each of the two sets knows by itself.
static void join_parts(const struct sync_run *r, struct sync_agent *a, uint32_t thread)
{
    const struct sync_thread *x = &a->threads[thread];
    for (uint32_t t = 0; t < a->thread_count; t++) {
        struct sync_thread *of = &a->threads[t];
        for (uint32_t u = 1; u < a->thread_count && !is_within(a, t, thread); u++) {
            const struct sync_thread *y = &a->threads[u];
            if (u == t || !are_among(a, of, x, y))
                continue;
            join_common(r, &of->clock, &x->clock, &y->clock);
            if (has_peers(a))
                join_common(r, &of->peers, &x->peers, &y->peers);
        }
    }
}

void tir_sync_acquire(const struct sync_run *r, const struct sync_who *who,
                      const struct sync_clock *from)
{
    struct sync_agent *a = who->agent;
    for (uint32_t t = 0; t < a->thread_count; t++) {
        if (!is_within(a, t, who->thread))
            continue;
        tir_sync_join(r, &a->threads[t].clock, from);
        if (has_peers(a))
            tir_sync_join(r, &a->threads[t].peers, from);
    }
    tir_sync_join(r, &a->all, from);
    if (has_peers(a))
        tir_sync_join(r, &a->all_peers, from);
    if (who->thread)
        join_parts(r, a, who->thread);
}

void tir_sync_learn(struct sync_agent *a, uint16_t strand, uint32_t at)
{
    if (!strand)
        return;
    for (uint32_t t = 0; t < a->thread_count; t++)
        a->threads[t].clock.known[strand] = TIR_MAX(a->threads[t].clock.known[strand], at);
    a->all.known[strand] = TIR_MAX(a->all.known[strand], at);
}

void tir_sync_learn_of_peers(struct sync_agent *a, uint16_t strand, uint32_t at)
{
    for (uint32_t t = 0; has_peers(a) && t < a->thread_count; t++)
        a->threads[t].peers.known[strand] = TIR_MAX(a->threads[t].peers.known[strand], at);
    if (has_peers(a))
        a->all_peers.known[strand] = TIR_MAX(a->all_peers.known[strand], at);
}

void tir_sync_pass(struct sync_agent *a)
{
    tir_sync_learn(a, a->events, a->all.known[a->events] + 1);
}

// Events after a release, or a fence, are later than the events that it covers.
static void step(struct sync_agent *a, uint32_t thread)
{
    struct sync_thread *t = &a->threads[thread];
    a->all.known[t->data]++;
    if (t->alone)
        t->clock.known[t->data]++;
}

// What the lanes of a thread did: its own clock lacks it, as none of them knows of the others.
static void join_own(const struct sync_run *r, struct sync_clock *into, const struct sync_agent *a,
                     uint32_t thread)
{
    uint16_t data = a->threads[thread].data;
    into->known[data] = TIR_MAX(into->known[data], a->all.known[data]);
    for (uint32_t i = 0; i < r->p->memories; i++)
        into->fenced[i][data] = TIR_MAX(into->fenced[i][data], a->all.fenced[i][data]);
}

void tir_sync_release(struct sync_run *r, const struct sync_who *who, struct sync_clock *into)
{
    struct sync_agent *a = who->agent;
    if (!who->thread)
        tir_sync_join(r, into, &a->all);
    for (uint32_t t = 0; t < a->thread_count; t++) {
        if (!is_within(a, t, who->thread))
            continue;
        if (who->thread) {
            tir_sync_join(r, into, &a->threads[t].clock);
            join_own(r, into, a, t);
        }
        step(a, t);
    }
}

static struct sync_share *share_of(struct sync_run *r, struct sync_mbarrier *m,
                                   const struct sync_agent *a, uint16_t data)
{
    vec_foreach(struct sync_share, it, &m->shares)
        if (it->agent == a && it->data == data)
            return it;
    uint32_t count = a->warps * SYNC_LANES;
    struct sync_share new = {a, data, arena_array(r->arena, uint32_t, count), {NULL}};
    for (uint32_t i = 0; i < r->p->memories; i++)
        new.fenced[i] = arena_array(r->arena, uint32_t, count);
    vec_push(r->arena, &m->shares, new);
    return &m->shares.at[m->shares.len - 1];
}

static uint32_t least_of(const uint32_t *share)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < SYNC_LANES; i++)
        least = TIR_MIN(least, share[i]);
    return least;
}

static void release_lanes(const struct sync_who *who, const struct sync_thread *t, uint32_t *share,
                          const uint32_t *all, uint32_t *arriving)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t w = 0; w < who->agent->warps; w++, share += SYNC_LANES) {
        const uint32_t lanes = lanes_of(t, w), tell = who->mask ? who->mask[w] : UINT32_MAX;
        for (uint32_t told = lanes & tell; told; told &= told - 1)
            share[__builtin_ctz(told)] = all[t->data];
        if (lanes == UINT32_MAX)
            least = TIR_MIN(least, least_of(share));
        else
            for (uint32_t of = lanes; of; of &= of - 1)
                least = TIR_MIN(least, share[__builtin_ctz(of)]);
    }
    arriving[t->data] = TIR_MAX(arriving[t->data], least);
}

// Of what a thread did the mbarrier knows as much as the one of its lanes that has told least.
static void release_share(struct sync_run *r, const struct sync_who *who, uint32_t thread,
                          struct sync_mbarrier *m)
{
    struct sync_agent *a = who->agent;
    const struct sync_thread *t = &a->threads[thread];
    struct sync_share *share = share_of(r, m, a, t->data);
    release_lanes(who, t, share->known, a->all.known, m->arriving.known);
    for (uint32_t i = 0; i < r->p->memories; i++)
        release_lanes(who, t, share->fenced[i], a->all.fenced[i], m->arriving.fenced[i]);
    step(a, thread);
    r->p->work += a->warps;
}

void tir_sync_release_shares(struct sync_run *r, const struct sync_who *who,
                             struct sync_mbarrier *m)
{
    const struct sync_agent *a = who->agent;
    for (uint32_t t = 0; t < a->thread_count && !a->threads[who->thread].elected; t++) {
        const struct sync_thread *other = &a->threads[t];
        bool any = false;
        for (uint32_t w = 0; w < a->warps; w++)
            any |= lanes_of(other, w) & lanes_of(&a->threads[who->thread], w);
        if (any && !other->elected && !is_within(a, t, who->thread))
            release_share(r, who, t, m);
    }
}

void tir_sync_warp(struct sync_run *r, struct sync_agent *a)
{
    for (uint32_t t = 0; t < a->thread_count; t++) {
        tir_sync_join(r, &a->threads[t].clock, &a->all);
        if (has_peers(a))
            tir_sync_join(r, &a->threads[t].peers, &a->all_peers);
    }
    for (uint32_t t = 0; t < a->thread_count; t++)
        step(a, t);
}

// Adds the knowledge of `c` to that of `all`, followed by a fence.
static void fence(const struct sync_run *r, enum sync_memory of, struct sync_clock *c,
                  struct sync_clock *all)
{
    memcpy(c->fenced[of], c->known, r->strand_count * sizeof *c->known);
    join(all->fenced[of], c->fenced[of], r->strand_count);
}

void tir_sync_fence(const struct sync_run *r, const struct sync_who *who, enum sync_memory of)
{
    struct sync_agent *a = who->agent;
    if (of >= r->p->memories)
        return;
    for (uint32_t t = 0; t < a->thread_count; t++) {
        if (!is_within(a, t, who->thread))
            continue;
        uint16_t data = a->threads[t].data;
        fence(r, of, &a->threads[t].clock, &a->all);
        a->all.fenced[of][data] = a->all.known[data];
        if (has_peers(a))
            fence(r, of, &a->threads[t].peers, &a->all_peers);
    }
    if (who->thread == 0)
        fence(r, of, &a->all, &a->all);
    if (who->thread == 0 && has_peers(a))
        fence(r, of, &a->all_peers, &a->all_peers);
    for (uint32_t t = 0; t < a->thread_count; t++)
        if (is_within(a, t, who->thread))
            step(a, t);
}

static bool is_thread(const struct sync_agent *a, const struct sync_thread *t, const uint32_t *mask,
                      bool elected)
{
    return t->elected == elected && !memcmp(t->mask, mask, a->warps * sizeof *mask);
}

uint32_t tir_sync_thread(struct sync_run *r, struct sync_agent *a, const uint32_t *mask,
                         bool elected)
{
    for (uint32_t t = 1; t < a->thread_count; t++)
        if (is_thread(a, &a->threads[t], mask, elected))
            return t;
    if (a->thread_count == SYNC_THREADS) {
        tir_sync_give_up(r, "sets of lanes of a warp that act by themselves", SYNC_THREADS - 1);
        return 0;
    }
    uint32_t new = a->thread_count++;
    struct sync_thread *t = &a->threads[new];
    *t = (struct sync_thread){
        .clock = t->clock, .peers = t->peers, .after = t->after, .mask = mask, .elected = elected};
    if (t->after)
        memcpy(t->after, a->threads[0].after, r->strand_count * sizeof *t->after);
    for (uint32_t of = 0; of < new; of++) {
        if (!is_within(a, new, of))
            continue;
        tir_sync_join(r, &t->clock, &a->threads[of].clock);
        if (has_peers(a))
            tir_sync_join(r, &t->peers, &a->threads[of].peers);
    }
    t->alone = !(mask[0] & (mask[0] - 1));
    t->data = tir_sync_strand(r);
    a->all.known[t->data] = 1;
    t->clock.known[t->data] = t->alone;
    return new;
}
