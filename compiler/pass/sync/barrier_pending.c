// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the barrier pass knows of the accesses made so far: what is pending, what two of them need
// between them, and what a wait, a fence or a barrier ends.

#include "pass/sync/barrier.h"
#include "pass/sync/shared.h"

#define MAX_AGE 7

bool tir_barrier_is_loop(const struct tir_inst *inst)
{
    return tir_is_loop(inst) ||
           (inst->op == TIR_OP_TILES && tir_attr_int(inst, TIR_ATTR_persistent, 0));
}

bool tir_barrier_is_older_than_role(const struct barriers *b, const struct range *p)
{
    return b->crew.role && !tir_is_inside(p->by, b->crew.role);
}

bool tir_barrier_is_made_in(const struct range *p, const struct tir_inst *loop)
{
    return tir_is_inside(p->at->block->owner, loop);
}

// Accesses.

static struct range range_in(const struct barriers *b, const struct tir_inst *by,
                             struct tir_value *root, struct tir_bytes part)
{
    struct range r = {.root = root, .by = by, .at = by, .end = 1, .age = -1};
    if (root->type->space == TIR_SPACE_GLOBAL) {
        r.tensor = root;
        r.by_hand = b->by_hand;
        return r;
    }
    int64_t offset = root->def ? tir_attr_int(root->def, TIR_ATTR_offset, 0) : 0;
    r.by_hand = root->def && tir_attr_int(root->def, TIR_ATTR_by_hand, 0);
    r.begin = offset + part.begin;
    r.end = offset + part.end;
    return r;
}

struct range tir_barrier_range_of(const struct barriers *b, const struct tir_inst *inst,
                                  struct tir_value *buffer, enum tir_access access)
{
    struct range r = range_in(b, inst, tir_buffer_root(buffer), tir_buffer_part(buffer));
    r.access = access;
    tir_barrier_find_slot(&r, buffer);
    return r;
}

struct range tir_barrier_range(const struct barriers *b, const struct tir_inst *inst,
                               const struct tir_effect *effect)
{
    struct tir_value *buffer = tir_effect_buffer(inst, effect);
    const bool is_slice = effect->operand == TIR_SLICE && buffer->type->space == TIR_SPACE_SHARED;
    struct range r = range_in(b, inst, tir_buffer_root(buffer),
                              is_slice ? tir_slice_part(inst) : tir_buffer_part(buffer));
    r.access = effect->access;
    r.in_flight = effect->done;
    r.async = effect->proxy == TIR_PROXY_ASYNC;
    tir_barrier_find_slot(&r, buffer);
    return r;
}

static bool overlap(const struct range *a, const struct range *b)
{
    return a->tensor == b->tensor && a->begin < b->end && b->begin < a->end;
}

// Atomics of one kind give the same result in any order, unless their old values are used.
static bool any_order(const struct barriers *b, const struct tir_inst *x, const struct tir_inst *y)
{
    enum tir_word kind = tir_attr_word(x, TIR_ATTR_kind, TIR_WORD_NONE);
    return kind == tir_attr_word(y, TIR_ATTR_kind, TIR_WORD_NONE) &&
           kind != TIR_WORD_kind_exchange && !b->uses[x->results[0]->id] &&
           !b->uses[y->results[0]->id];
}

static uint32_t needs_in_flight(const struct range *p, const struct range *r)
{
    const bool reads = p->access == TIR_ACCESS_READ && tir_dones[p->in_flight].reads;
    if (p->access == TIR_ACCESS_WRITE && r->access == TIR_ACCESS_WRITE &&
        p->in_flight == r->in_flight && tir_stores_in_any_order(p->by, r->by))
        return 0;
    return (reads ? NEED_READ : NEED_DONE) << p->in_flight | NEED_BARRIER;
}

// The fence that shows an ordinary write to an engine, and keeps it from overtaking a read.
static uint32_t fence_of(const struct range *p)
{
    return p->tensor ? NEED_FENCE_GLOBAL : NEED_FENCE_SHARED;
}

uint32_t tir_barrier_needs(const struct barriers *b, const struct range *p, const struct range *r)
{
    const bool is_older = tir_barrier_is_older_than_role(b, p);
    if (!overlap(p, r) || tir_barrier_other_slot(p, r) || tir_dones[p->in_flight].by_ring ||
        (p->access == TIR_ACCESS_READ && r->access == TIR_ACCESS_READ))
        return 0;
    if (p->by_hand && r->by_hand && p->root == r->root)
        return 0; // memory may have put other buffers in these bytes: that is not the program's
    if ((p->async || r->async) && p->root == r->root && !p->tensor && !is_older &&
        tir_map_get(&b->handed_over, tir_map_key(p->root)))
        return 0;
    if (p->in_flight != TIR_DONE_NOW)
        return needs_in_flight(p, r);
    if (!is_older && (tir_same_writers(b->ranges, p->copy ? p->copy : p->by, r->by) ||
                      tir_own_elements(b->ranges, p->by, r->by)))
        return 0;
    if (p->access == TIR_ACCESS_UPDATE && r->access == TIR_ACCESS_UPDATE &&
        any_order(b, p->by, r->by))
        return 0;
    if (r->async && !p->async && !p->fenced)
        return fence_of(p) | NEED_BARRIER;
    return p->synced ? 0 : NEED_BARRIER;
}

// States.

// The block of the role or scope around inst; NULL: there is none.
static const struct tir_block *crew_block(const struct tir_inst *inst)
{
    const struct tir_inst *owner = inst->block->owner;
    while (owner && owner->op != TIR_OP_ROLE && owner->op != TIR_OP_SCOPE)
        owner = owner->block->owner;
    return owner ? owner->regions[0] : NULL;
}

// Do p and r, which are alike but for what makes them, need the same in front of all that follows?
// Then one is enough: a program may have very many.
static bool same_makers(const struct barriers *b, const struct range *p, const struct range *r)
{
    if (p->at->block != r->at->block)
        return false;
    if (p->by == r->by)
        return true;
    if (p->in_flight != TIR_DONE_NOW || crew_block(p->by) != crew_block(r->by))
        return false;
    return (p->access == TIR_ACCESS_READ && tir_same_owners(b->ranges, p->by, r->by)) ||
           (p->access == TIR_ACCESS_WRITE && tir_same_writers(b->ranges, p->by, r->by)) ||
           (p->access == TIR_ACCESS_UPDATE && any_order(b, p->by, r->by));
}

// Does no need depend on which buffer it is, but only on its bytes?
static bool is_any_buffer(const struct barriers *b, const struct range *p)
{
    return !p->tensor && !p->by_hand && !p->stepper &&
           !tir_map_get(&b->handed_over, tir_map_key(p->root));
}

static bool same_buffer(const struct barriers *b, const struct range *p, const struct range *r)
{
    return p->root == r->root || (is_any_buffer(b, p) && is_any_buffer(b, r));
}

bool tir_barrier_add(struct barriers *b, struct state *s, struct range r)
{
    vec_foreach(struct range, p, &s->pending)
        if (p->access == r.access && p->in_flight == r.in_flight && p->tensor == r.tensor &&
            p->begin == r.begin && p->end == r.end && p->async == r.async &&
            p->synced == r.synced && p->copy == r.copy && p->fenced == r.fenced &&
            p->by_hand == r.by_hand && p->stepper == r.stepper && p->rounds == r.rounds &&
            same_buffer(b, p, &r) && same_makers(b, p, &r)) {
            bool younger = r.age < p->age;
            p->age = TIR_MIN(p->age, r.age);
            return younger;
        }
    vec_push(b->cx->scratch, &s->pending, r);
    return true;
}

bool tir_barrier_join(struct barriers *b, struct state *into, const struct state *from)
{
    bool grown = false;
    vec_foreach(const struct range, p, &from->pending)
        grown |= tir_barrier_add(b, into, *p);
    return grown;
}

struct state tir_barrier_copy_of(struct barriers *b, const struct state *s)
{
    struct state out = {{0}};
    vec_foreach(const struct range, p, &s->pending)
        vec_push(b->cx->scratch, &out.pending, *p);
    return out;
}

void tir_barrier_leave(struct barriers *b, struct state *s, const struct tir_inst *left)
{
    struct state inside = {{0}};
    uint32_t kept = 0;
    vec_foreach(struct range, p, &s->pending) {
        if (!tir_is_inside(p->at, left)) {
            s->pending.at[kept++] = *p;
            continue;
        }
        p->at = left;
        vec_push(b->cx->scratch, &inside.pending, *p);
    }
    s->pending.len = kept;
    tir_barrier_join(b, s, &inside);
}

// What ends them.

// Was p made in front of `place`, which we may be inside of by now, by threads that wait at a
// barrier there?
static bool is_behind(const struct barriers *b, const struct range *p, const struct tir_inst *place)
{
    if (tir_barrier_is_loop(place) && tir_barrier_is_made_in(p, place))
        return false;
    if (b->crew.scope && !tir_is_inside(p->by, b->crew.scope))
        return false;
    return !b->crew.role || (place == b->first_role) != tir_is_inside(p->by, b->crew.role);
}

void tir_barrier_fenced(const struct barriers *b, struct state *s, const struct tir_inst *place,
                        uint32_t need)
{
    vec_foreach(struct range, p, &s->pending)
        if (need & fence_of(p) && is_behind(b, p, place))
            p->fenced = true;
}

// Three kinds of accesses remain: those that follow it, those of engines in flight, and ordinary
// ones that an engine may not see or overtake.
void tir_barrier_met(const struct barriers *b, struct state *s, const struct tir_inst *place)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->pending.len; i++) {
        struct range *p = &s->pending.at[i];
        bool ordered = p->in_flight == TIR_DONE_NOW && is_behind(b, p, place);
        const bool later = p->access == TIR_ACCESS_READ ? b->engines_write : b->engines;
        bool unseen = later && !p->async && !p->fenced;
        if (ordered && !unseen)
            continue;
        p->synced |= ordered;
        s->pending.at[kept++] = *p;
    }
    s->pending.len = kept;
}

void tir_barrier_committed(struct state *s, enum tir_done done)
{
    vec_foreach(struct range, p, &s->pending)
        if (p->in_flight == done && !tir_dones[done].by_ring)
            p->age = TIR_MIN(p->age + 1, MAX_AGE);
}

void tir_barrier_finished(const struct barriers *b, struct state *s, const struct tir_inst *place,
                          enum tir_done done, bool reads, int64_t groups)
{
    vec_foreach(struct range, p, &s->pending)
        if (p->in_flight == done && (!reads || p->access == TIR_ACCESS_READ) && p->age >= groups &&
            is_behind(b, p, place))
            p->in_flight = TIR_DONE_NOW;
}

void tir_barrier_landed(struct state *s, const struct tir_inst *wait)
{
    vec_foreach(struct range, p, &s->pending)
        if (p->in_flight == TIR_DONE_CP_ASYNC) {
            p->in_flight = TIR_DONE_NOW;
            p->copy = p->by;
            p->by = p->at = wait;
        }
}
