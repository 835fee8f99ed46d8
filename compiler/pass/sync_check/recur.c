// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on loops that run longer than they are replayed.
//
// Whenever one agent reaches the head of a loop whose rounds depend on arguments, the whole state
// is hashed into one number: the place of every agent and the values that decide its way, barriers,
// groups in flight, and for each recorded access the clocks that know it. Later accesses are
// compared with nothing else, so a state that occurred before repeats for ever, for any number of
// rounds. A counter that decides something is part of the state, and keeps it from repeating.
//
// Accesses and barriers name few different events, and each has to be looked up in every clock. So
// the state is walked twice: to collect the events, and, once they are known, to hash it. Between
// the two each clock is read once.

#include "pass/sync_check/sync_check.h"

static uint64_t of_pointer(uint64_t h, const void *pointer)
{
    return tir_sync_mix(h, (uint64_t)(uintptr_t)pointer);
}

static bool is_data_loop(const struct sync_program *p, const struct tir_inst *owner)
{
    return owner && tir_is_loop(owner) && bitset_has(&p->data_loops, owner->id);
}

// How far the agent that is watched has come in its loop number `loop`, from outside.
static int64_t watched_at(const struct sync_run *r, uint32_t loop)
{
    for (uint32_t i = 0; i < r->watched->depth; i++)
        if (is_data_loop(r->p, r->watched->frames[i].owner) && !loop--)
            return r->watched->frames[i].at;
    return 0;
}

// Where in its period a counter is, of which remainders are taken.
static uint64_t in_period(const struct sync_program *p, uint32_t id, int64_t number)
{
    return p->periods[id] ? (uint64_t)(number % p->periods[id]) : 0;
}

// What a number in slot i says, if it decides anything.
static uint64_t of_number(const struct sync_program *p, uint32_t i, int64_t number)
{
    return bitset_has(&p->counters, i) ? in_period(p, i, number) : (uint64_t)number;
}

static uint64_t of_frames(const struct sync_run *r, const struct sync_agent *a, uint64_t h)
{
    for (uint32_t i = 0, loops = 0; i < a->depth; i++) {
        const struct sync_frame *f = &a->frames[i];
        uint32_t loop = loops;
        loops += is_data_loop(r->p, f->owner);
        h = of_pointer(of_pointer(h, f->block), f->next);
        h = tir_sync_mix(tir_sync_mix(h, f->lanes.thread),
                         f->lanes.mask ? f->lanes.mask[0] : UINT32_MAX);
        if (!f->owner || (f->owner->op != TIR_OP_FOR && f->owner->op != TIR_OP_TILES))
            continue;
        const struct tir_value *counter = f->block->args[0];
        bool counts =
            bitset_has(&r->p->numbers, counter->id) && !bitset_has(&r->p->counters, counter->id);
        if (counts || !is_data_loop(r->p, f->owner))
            h = tir_sync_mix(tir_sync_mix(h, (uint64_t)f->at), f->round);
        else if (bitset_has(&r->p->fixed_loops, f->owner->id))
            h = tir_sync_mix(tir_sync_mix(h, f->round), in_period(r->p, counter->id, f->at));
        else
            h = tir_sync_mix(tir_sync_mix(h, (uint64_t)(f->at - watched_at(r, loop))),
                             in_period(r->p, counter->id, f->at));
    }
    return h;
}

static uint64_t of_slots(const struct sync_run *r, const struct sync_agent *a, uint64_t h)
{
    for (uint32_t i = 0; i < r->p->f->value_count; i++) {
        const struct sync_value *v = &a->slots[i];
        if (v->kind == SYNC_TILE)
            h = tir_sync_mix(tir_sync_mix(h, v->group > a->wgmma_done
                                                 ? a->wgmma_closed - v->group + 2
                                                 : v->group > 0),
                             a->fence_time > v->made);
        else if (v->kind == SYNC_INT && bitset_has(&r->p->numbers, i))
            h = tir_sync_mix(h, of_number(r->p, i, v->number));
        else if (v->kind == SYNC_EACH && bitset_has(&r->p->numbers, i) &&
                 !bitset_has(&r->p->fixed, i))
            for (uint32_t k = 0; k < a->warps * SYNC_LANES; k++)
                h = tir_sync_mix(h, of_number(r->p, i, v->each[k]));
    }
    return h;
}

static uint64_t of_agent(const struct sync_run *r, const struct sync_agent *a, uint64_t h)
{
    h = of_slots(r, a, of_frames(r, a, h));
    h = tir_sync_mix(tir_sync_mix(tir_sync_mix(h, a->stage), a->stopped != NULL),
                     a->wgmma_closed - a->wgmma_done);
    const uint32_t known = a->copies ? a->all.known[a->copies] : 0;
    h = tir_sync_mix(tir_sync_mix(h, a->copies ? a->copies_batch - known : 0),
                     a->wgmma_open != NULL);
    // Where commits cut groups: the batches that those in flight end with.
    for (uint32_t i = 0; a->copies_told && i < TIR_MIN(a->copies_closed, SYNC_COPIES); i++) {
        const uint32_t end = a->copies_ends[(a->copies_closed - i) % SYNC_COPIES];
        if (end <= known)
            break;
        h = tir_sync_mix(h, a->copies_batch - end + 1);
    }
    for (uint32_t t = 0; t < a->thread_count; t++)
        h = tir_sync_mix(tir_sync_mix(h, a->threads[t].bulk_closed - a->threads[t].bulk_done),
                         (a->threads[t].bulk_open != NULL) |
                             (uint64_t)(a->threads[t].core_open != NULL) << 1);
    return h;
}

// --- events ---

// An event, and who knows it: the sum of numbers that stand for the clocks that do.
struct event {
    uint16_t strand;
    uint32_t at;
    uint64_t known;
    uint32_t next; // of the strand, as `first`
};

struct of_strand { // its events
    uint16_t strand;
    uint32_t low, high; // their numbers
    uint32_t first;     // one of them, + 1
    uint64_t known;     // of clocks that know all of them
};

struct state {
    const struct sync_run *r;
    struct tir_map index; // of events, + 1, by strand and number
    VEC(struct event) events;
    VEC(struct of_strand) strands; // that have events
    uint16_t *by_strand;           // which of them it is, + 1; 0: it has none
    uint32_t with_records;         // the first ones, and maybe others
    uint64_t looked;               // times that a clock was asked for an event, or for a strand
};

// `at`: of its first event.
static struct of_strand *strand_of(struct state *s, uint16_t strand, uint32_t at)
{
    if (!s->by_strand[strand]) {
        const struct of_strand new = {.strand = strand, .low = at, .high = at};
        vec_push(s->r->arena, &s->strands, new);
        s->by_strand[strand] = (uint16_t)s->strands.len;
    }
    return &s->strands.at[s->by_strand[strand] - 1];
}

static uint64_t of_event(struct state *s, uint16_t strand, uint32_t at, uint64_t h)
{
    const uint64_t key = (uint64_t)strand << 32 | at;
    uintptr_t place = (uintptr_t)tir_map_get(&s->index, key);
    if (!place) {
        struct of_strand *all = strand_of(s, strand, at);
        const struct event new = {.strand = strand, .at = at, .next = all->first};
        all->low = TIR_MIN(all->low, at);
        all->high = TIR_MAX(all->high, at);
        vec_push(s->r->arena, &s->events, new);
        all->first = s->events.len;
        place = s->events.len;
        tir_map_set(&s->index, key, (void *)place); // NOLINT(performance-no-int-to-ptr)
    }
    return tir_sync_mix(h, s->events.at[place - 1].known +
                               s->strands.at[s->by_strand[strand] - 1].known);
}

// What a clock knows adds its number, which is another one for each clock.
static void look(struct state *s, uint32_t count, const uint32_t *clock, uint64_t number)
{
    const uint64_t mixed = tir_sync_mix(number, 1);
    s->looked += count;
    for (struct of_strand *all = s->strands.at; all < s->strands.at + count; all++) {
        const uint32_t known = clock[all->strand];
        if (known >= all->high) {
            all->known += mixed;
            continue;
        }
        for (uint32_t n = known >= all->low ? all->first : 0; n; s->looked++) {
            struct event *e = &s->events.at[n - 1];
            e->known += known >= e->at ? mixed : 0;
            n = e->next;
        }
    }
}

// Fences matter to accesses that are recorded alone: events of other strands are not asked for.
static void look_in_clock(struct state *s, const struct sync_clock *c, uint64_t number)
{
    look(s, s->strands.len, c->known, 2 * number);
    look(s, s->with_records, c->fenced[SYNC_OF_SHARED], 2 * number + 1);
}

static void look_in_agent(struct state *s, const struct sync_agent *a, uint64_t number)
{
    look_in_clock(s, &a->all, number);
    if (a->warps > 1)
        look_in_clock(s, &a->all_peers, number + 1);
    for (uint32_t t = 0; t < a->thread_count; t++) {
        const struct sync_thread *thread = &a->threads[t];
        number += 3;
        look_in_clock(s, &thread->clock, number);
        if (a->warps > 1)
            look_in_clock(s, &thread->peers, number + 1);
        if (thread->after)
            look(s, s->with_records, thread->after, 2 * (number + 2));
    }
}

static void look_in_share(struct state *s, const struct sync_share *share, uint64_t number)
{
    const uint32_t count = share->agent->warps * SYNC_LANES;
    const uint16_t of = s->by_strand[share->data];
    for (uint32_t n = of ? s->strands.at[of - 1].first : 0; n; n = s->events.at[n - 1].next) {
        struct event *e = &s->events.at[n - 1];
        for (uint32_t i = 0; i < count; i++) {
            if (share->known[i] >= e->at)
                e->known += tir_sync_mix(number + i, 2);
            if (of <= s->with_records && share->fenced[SYNC_OF_SHARED][i] >= e->at)
                e->known += tir_sync_mix(number + i, 3);
        }
        s->looked += count;
    }
}

// Which of the clocks know the events.
static void look_around(struct state *s)
{
    enum { OF_ONE = 1 << 20 }; // numbers
    const struct sync_run *r = s->r;
    uint64_t number = OF_ONE;
    for (uint32_t i = 0; i < r->agent_count; i++, number += OF_ONE)
        look_in_agent(s, &r->agents[i], number);
    for (uint32_t i = 0; i < r->p->ctas * r->p->mbarrier_count; i++, number += OF_ONE) {
        const struct sync_mbarrier *m = &r->mbarriers[i];
        look_in_clock(s, &m->arriving, number);
        look_in_clock(s, &m->done, number + 1);
        vec_foreach(const struct sync_share, share, &m->shares)
            look_in_share(s, share, number + share->agent->id * SYNC_CTA_THREADS);
    }
    for (uint32_t c = 0; c < r->p->ctas; c++)
        for (uint32_t i = 0; i <= SYNC_GRID_BARRIER; i++, number += OF_ONE) {
            const struct sync_named *n = r->named[c][i];
            if (!n)
                continue;
            look_in_clock(s, &n->arriving, number);
            look_in_clock(s, &n->done, number + 1);
        }
}

// --- the state ---

static uint64_t of_barriers(struct state *s, uint64_t h)
{
    const struct sync_run *r = s->r;
    for (uint32_t i = 0; i < r->p->ctas * r->p->mbarrier_count; i++) {
        const struct sync_mbarrier *m = &r->mbarriers[i];
        h = tir_sync_mix(tir_sync_mix(tir_sync_mix(h, (uint64_t)m->pending), (uint64_t)m->bytes),
                         m->completed & 1);
        h = of_event(s, m->strand, m->completed,
                     tir_sync_mix(h, (m->early != NULL) + (m->early_for != NULL)));
        for (uint32_t k = 0; k < r->agent_count; k++) {
            uint16_t events = r->agents[k].events;
            if (m->seen[k].by) // a phase behind is all that it is asked for
                h = of_event(s, events, m->seen[k].at,
                             tir_sync_mix(h, TIR_MIN(m->completed - m->seen[k].phase, 3)));
            if (!m->copy && m->completed)
                h = of_event(s, events, m->done.known[events], h);
        }
    }
    for (uint32_t c = 0; c < r->p->ctas; c++)
        for (uint32_t i = 0; i <= SYNC_GRID_BARRIER; i++)
            if (r->named[c][i])
                h = of_event(s, r->named[c][i]->strand, r->named[c][i]->completed,
                             tir_sync_mix(tir_sync_mix(h, r->named[c][i]->arrived),
                                          r->named[c][i]->here.words[0]));
    return h;
}

// What requests for the work of other CTAs have come to.
static uint64_t of_requests(struct state *s, uint64_t h)
{
    const struct sync_run *r = s->r;
    for (uint32_t i = 0; i < r->agent_count; i++)
        if (r->agents[i].request)
            h = of_event(s, r->agents[i].events, r->agents[i].request_at, h);
    for (uint32_t c = 0; c < r->p->ctas; c++)
        h = tir_sync_mix(h, r->refused[c] != NULL);
    return h;
}

static uint64_t of_records(struct state *s)
{
    const struct sync_run *r = s->r;
    uint64_t sum = 0; // whatever their order
    for (uint32_t i = 0; i < r->p->ctas * r->p->roots.len; i++) {
        if (r->p->roots.at[i % r->p->roots.len].is_tensor)
            continue;
        vec_foreach(const struct sync_record, record, &r->shadows[i].records) {
            uint64_t h =
                tir_sync_mix(of_pointer(i, record->by), record->access | record->async << 2);
            for (uint32_t d = 0; d < TIR_MAX_RANK; d++)
                h = tir_sync_mix(tir_sync_mix(h, (uint64_t)record->box.begin[d]),
                                 (uint64_t)record->box.size[d]);
            h = tir_sync_mix(tir_sync_mix(h, record->strand), record->same);
            h = of_event(s, record->strand, record->at, h);
            sum += record->told ? of_event(s, r->agents[record->agent].events, record->told, h) : h;
        }
    }
    return sum;
}

static uint64_t of_all(struct state *s)
{
    const struct sync_run *r = s->r;
    uint64_t h = of_records(s);
    s->with_records = TIR_MIN(s->with_records, s->strands.len);
    for (uint32_t i = 0; i < r->agent_count; i++)
        h = of_agent(r, &r->agents[i], tir_sync_mix(h, i));
    return of_requests(s, of_barriers(s, h));
}

static uint64_t of_state(const struct sync_run *r)
{
    struct tir_arena_mark mark = tir_arena_mark(r->arena);
    struct state s = {.r = r,
                      .by_strand = arena_array(r->arena, uint16_t, r->p->strands),
                      .with_records = UINT32_MAX};
    tir_map_init(&s.index, r->arena);
    of_all(&s);
    look_around(&s);
    const uint64_t h = of_all(&s);
    r->p->looked += s.looked;
    tir_arena_release(r->arena, mark);
    return h;
}

// --- recurrence ---

// Numbers that a loop carries and that come back, as those of a slot do, say where in its state a
// loop is. What never comes back keeps the state from recurring. Each is compared with that of a
// round before, the last one that is a power of 2 (Brent's way to find cycles).
static void note_return(struct sync_run *r, const struct sync_agent *a, const struct sync_frame *f)
{
    struct sync_program *p = r->p;
    if (!r->heads)
        r->heads = arena_array(r->arena, struct sync_head, p->f->value_count);
    for (uint32_t i = 0; i < f->block->arg_count; i++) {
        uint32_t id = f->block->args[i]->id;
        const struct sync_value *now = &a->slots[id];
        struct sync_head *then = &r->heads[id];
        bool returns = then->round && f->round > then->round && now->number == then->number;
        if (now->kind != SYNC_INT || returns) {
            bitset_insert(&p->returned, id);
        } else if (f->round > 2 * p->threshold + 3 * p->depth && !bitset_has(&p->returned, id)) {
            bitset_insert(&p->went_on, id);
            r->stuck |= bitset_has(&p->numbers, id) && !bitset_has(&p->counters, id);
        }
        if (f->round >= 2 * then->round)
            *then = (struct sync_head){f->round, now->number};
    }
}

static void note_recurrence(struct sync_run *r, const struct sync_agent *a)
{
    for (uint32_t i = 0; i < a->depth; i++)
        if (is_data_loop(r->p, a->frames[i].owner))
            r->p->rounds[a->frames[i].owner->id].recurs = true;
}

void tir_sync_watch(struct sync_run *r, const struct sync_agent *a, const struct sync_frame *f)
{
    if (!r->watches || r->recurs || !is_data_loop(r->p, f->owner))
        return;
    note_return(r, a, f);
    if (!r->watched)
        r->watched = a;
    if (r->watched != a || f->round < r->p->threshold + r->p->depth) // still filling the ring
        return;
    const uint64_t h = of_state(r);
    vec_foreach(const uint64_t, old, &r->states)
        r->recurs |= *old == h;
    for (uint32_t i = 0; r->recurs && i < r->agent_count; i++)
        note_recurrence(r, &r->agents[i]);
    vec_push(r->arena, &r->states, h);
    r->p->work += 100;
}
