// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Agents and what orders them: barriers, fences, asynchronous operations, lanes.

#include "emu/check/order_parts.h"

#include <string.h>

enum {
    SLOTS = 256,  // operations of engines that a domain tells apart
    FIRST_UID = 1 // 0: no agent
};

static uint32_t span_of(const struct emu_domain *d)
{
    return d->fixed + SLOTS;
}

// --- agents ---

void emu_order_init(struct emu_order *o, struct emu_arena *arena)
{
    *o = (struct emu_order){.arena = arena, .next_uid = FIRST_UID, .floor = FIRST_UID};
}

bool emu_domain_start(struct emu_order *o, struct emu_domain *d, uint32_t ctas, uint32_t per_cta,
                      uint64_t serial)
{
    const uint32_t fixed = ctas * per_cta;
    if (o->next_uid > UINT32_MAX - fixed - SLOTS)
        return false;
    d->order = o;
    d->base = o->next_uid;
    d->fixed = fixed;
    d->per_cta = per_cta;
    d->slot_count = 0;
    d->next_slot = 0;
    o->next_uid += span_of(d);
    *emu_push(o->arena, &o->names) = (struct emu_domain_name){
        .base = d->base, .agents = span_of(d), .ctas = ctas, .per_cta = per_cta, .serial = serial};
    return true;
}

const struct emu_domain_name *emu_order_name(const struct emu_order *o, uint32_t uid)
{
    uint32_t low = 0, high = o->names.len; // the first domain after it
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (o->names.at[mid].base <= uid)
            low = mid + 1;
        else
            high = mid;
    }
    if (!low)
        return NULL;
    const struct emu_domain_name *name = &o->names.at[low - 1];
    return uid - name->base < name->agents ? name : NULL;
}

static uint32_t *own(struct emu_agent *a)
{
    struct emu_view *v = &a->view;
    const uint32_t index = a->uid - v->base;
    emu_view_room(a->domain->order, v, index + 1);
    return &emu_view_plane(a->domain->order, v, EMU_KNOWN)[index];
}

void emu_domain_warps(struct emu_order *o, const struct emu_agent *warps, uint32_t per_warp)
{
    struct emu_domain_name *name = &o->names.at[o->names.len - 1];
    name->warps = warps;
    name->per_warp = per_warp;
}

const struct emu_agent *emu_order_warp(const struct emu_order *o, uint32_t uid)
{
    const struct emu_domain_name *name = emu_order_name(o, uid);
    const uint32_t index = name && name->warps ? (uid - name->base) / name->per_warp : 0;
    if (!name || !name->warps || uid - name->base >= name->agents - SLOTS)
        return NULL;
    const struct emu_agent *a = &name->warps[index];
    return a->uid == uid ? a : NULL;
}

void emu_agent_start(struct emu_agent *a, struct emu_domain *d, uint32_t index)
{
    a->domain = d;
    a->uid = d->base + index;
    a->clock = 1;
    a->has_released = 0;
    a->has_pending = 0;
    a->busy = 0;
    a->gathered = 0;
    a->acting = EMU_FULL;
    a->fencers = 0;
    if (a->tells)
        memset(a->tells, 0, sizeof *a->tells);
    if (a->lanes)
        memset(a->lanes, 0, EMU_WARP * sizeof *a->lanes);
    emu_view_clear(&a->view, d);
    for (int i = 0; i < EMU_SCOPES; i++) {
        emu_view_clear(&a->released[i], d);
        emu_view_clear(&a->pending[i], d);
    }
    *own(a) = 1;
}

// Up to which clock the acting lanes know what a lane did.
static uint32_t known_of(const struct emu_agent *a, uint32_t lane)
{
    uint32_t clock = a->gathered;
    if (a->acting >> lane & 1)
        return a->clock;
    for (uint32_t i = 0; a->lanes && i < EMU_WARP; i++)
        if (a->acting >> i & 1)
            clock = emu_max(clock, a->lanes[i][lane]);
    return clock;
}

void emu_order_tell_lanes(const struct emu_agent *a, uint32_t *told)
{
    for (uint32_t i = 0; i < EMU_WARP; i++)
        told[i] = emu_max(told[i], a->acting == EMU_FULL ? a->clock : known_of(a, i));
}

struct emu_tells *emu_order_tells(struct emu_agent *a)
{
    if (!a->tells)
        a->tells = emu_arena_array(a->domain->order->arena, 1, sizeof *a->tells);
    return a->tells;
}

// What the agent does from now on is not covered by what it has told so far. The last clock stays:
// a race may be missed then, after 4 billion steps.
void emu_order_tick(struct emu_agent *a)
{
    if (a->clock < UINT32_MAX)
        a->clock++;
    *own(a) = a->clock;
}

// What the acting lanes tell others.
void emu_order_join_known(struct emu_agent *a, struct emu_view *to)
{
    emu_view_join(a->domain->order, to, &a->view);
    if (a->fencers & a->acting)
        emu_view_join(a->domain->order, to, &a->fenced);
}

void emu_order_release(struct emu_agent *a, struct emu_view *to)
{
    emu_order_join_known(a, to);
    emu_order_tell_lanes(a, emu_order_tells(a)->released);
    emu_order_tick(a);
}

void emu_order_release_inits(struct emu_agent *a, struct emu_view *to)
{
    const uint32_t *from = a->view.clock[EMU_FENCED_INIT];
    if (!from || to->base != a->view.base)
        return;
    emu_view_room(a->domain->order, to, a->view.count);
    uint32_t *into = emu_view_plane(a->domain->order, to, EMU_FENCED_INIT);
    for (uint32_t i = 0; i < a->view.count; i++)
        into[i] = emu_max(into[i], from[i]);
}

void emu_order_acquire(struct emu_agent *a, const struct emu_view *from)
{
    const uint32_t told = emu_view_clock(a->domain->order, from, EMU_KNOWN, a->uid);
    a->gathered = emu_max(a->gathered, told);
    emu_view_join(a->domain->order, &a->view, from);
}

// --- fences ---

static void copy_plane(struct emu_order *o, struct emu_view *v, int to, int from)
{
    memcpy(emu_view_plane(o, v, to), emu_view_plane(o, v, from), v->count * sizeof(uint32_t));
    for (uint32_t i = 0; i < v->far_count; i++)
        v->far[i].clock[to] = v->far[i].clock[from];
}

// The same for all but agent `uid` itself.
static void hand_plane(struct emu_order *o, struct emu_view *v, uint32_t uid, int to)
{
    const uint32_t index = uid - v->base, before = emu_view_plane(o, v, to)[index];
    copy_plane(o, v, to, EMU_KNOWN);
    v->clock[to][index] = before;
}

// The view that a fence by the acting lanes changes: that of the warp, or of those that know of it.
static struct emu_view *fenced_by(struct emu_agent *a, uint32_t alive)
{
    struct emu_order *o = a->domain->order;
    if (!o->has_lanes || !(alive & ~a->acting))
        return &a->view;
    if (!a->fencers)
        emu_view_clear(&a->fenced, a->domain);
    emu_view_join(o, &a->fenced, &a->view);
    a->fencers |= a->acting;
    return &a->fenced;
}

void emu_order_fence(struct emu_agent *a, uint32_t which, uint32_t alive)
{
    struct emu_order *o = a->domain->order;
    const uint32_t by_lane = EMU_FENCE_ASYNC_SHARED | EMU_FENCE_ASYNC_GLOBAL;
    struct emu_view *fenced = which & by_lane ? fenced_by(a, alive) : &a->view;
    which |= which & EMU_FENCE_ASYNC_SHARED ? EMU_FENCE_INIT : 0;
    for (int p = EMU_KNOWN + 1; p < EMU_PLANES; p++)
        if (which >> p & 1)
            copy_plane(o, by_lane >> p & 1 ? fenced : &a->view, p, EMU_KNOWN);
    if (which & EMU_FENCE_ASYNC_SHARED) {
        hand_plane(o, fenced, a->uid, EMU_HANDED_ASYNC);
        emu_order_tell_lanes(a, emu_order_tells(a)->fenced_async);
    }
    if (which & EMU_FENCE_ASYNC_GLOBAL) {
        hand_plane(o, fenced, a->uid, EMU_HANDED_GLOBAL);
        emu_order_tell_lanes(a, emu_order_tells(a)->fenced_global);
    }
    emu_order_tick(a);
}

void emu_order_fence_tensor(struct emu_agent *a, bool after)
{
    copy_plane(a->domain->order, &a->view, after ? EMU_FENCED_TENSOR : EMU_FENCED_BEFORE,
               after ? EMU_FENCED_BEFORE : EMU_KNOWN);
}

void emu_order_fence_memory(struct emu_agent *a, uint32_t order, enum emu_scope scope)
{
    const uint32_t reach = emu_scope_index(scope);
    for (uint32_t i = 0; order & EMU_ACQUIRE && i <= reach; i++) {
        if (!(a->has_pending >> i & 1))
            continue;
        emu_order_acquire(a, &a->pending[i]);
        emu_view_clear(&a->pending[i], a->domain);
        a->has_pending &= (uint8_t) ~(1u << i);
    }
    if (order & EMU_RELEASE) {
        emu_view_clear(&a->released[reach], a->domain);
        emu_order_join_known(a, &a->released[reach]);
        a->has_released = (uint8_t)((a->has_released >> reach | 1u) << reach);
        emu_order_tell_lanes(a, emu_order_tells(a)->released);
        emu_order_tick(a);
    }
}

// --- asynchronous operations ---

// A slot that no operation uses; `known`: and whose last one the issuer knows.
static struct emu_agent *free_slot(const struct emu_agent *issuer, bool known)
{
    const struct emu_domain *d = issuer->domain;
    for (uint32_t i = 0; i < d->slot_count; i++) {
        struct emu_agent *s = &d->slots[(d->next_slot + i) % d->slot_count];
        if (!s->busy &&
            (!known || emu_view_clock(d->order, &issuer->view, EMU_KNOWN, s->uid) >= s->clock))
            return s;
    }
    return NULL;
}

struct emu_agent *emu_order_begin(struct emu_agent *issuer, bool is_named)
{
    struct emu_domain *d = issuer->domain;
    struct emu_order *o = d->order;
    if (!d->slots)
        d->slots = emu_arena_array(o->arena, SLOTS, sizeof *d->slots);
    struct emu_agent *slot = free_slot(issuer, is_named);
    if (!slot && d->slot_count < SLOTS) {
        slot = &d->slots[d->slot_count];
        emu_agent_start(slot, d, d->fixed + d->slot_count++);
        slot->clock = 0;
    }
    if (!slot) // two operations have one name: the second hides the first
        slot = free_slot(issuer, false);
    if (!slot) // and each knows what the issuer of the other knew
        slot = &d->slots[d->next_slot % SLOTS];
    d->next_slot = (uint32_t)(slot - d->slots) + 1;
    const uint32_t clock = slot->clock;
    if (!slot->busy)
        emu_view_clear(&slot->view, d);
    emu_order_join_known(issuer, &slot->view);
    slot->clock = clock;
    slot->busy++;
    if (is_named)
        emu_order_tick(slot);
    emu_order_tell_lanes(issuer, emu_order_tells(issuer)->released);
    emu_order_tick(issuer);
    return slot;
}

void emu_order_complete(struct emu_agent *slot, struct emu_view *to)
{
    emu_view_learn(slot->domain->order, to, slot->uid, slot->clock);
}

void emu_order_end(struct emu_agent *slot)
{
    slot->busy--;
}

// --- lanes ---

void emu_order_lanes(struct emu_agent *a, uint32_t mask, uint32_t alive)
{
    a->fencers |= a->fencers & mask ? mask : 0;
    if (a->fencers && !(alive & ~a->fencers)) {
        emu_view_join(a->domain->order, &a->view, &a->fenced);
        a->fencers = 0;
    }
    if ((mask & alive) == alive) {
        a->gathered = a->clock;
        emu_order_tick(a);
        return;
    }
    if (!a->lanes)
        a->lanes = emu_arena_array(a->domain->order->arena, EMU_WARP, sizeof *a->lanes);
    uint32_t row[EMU_WARP] = {0};
    for (uint32_t i = 0; i < EMU_WARP; i++)
        for (uint32_t k = 0; mask >> i & 1 && k < EMU_WARP; k++)
            row[k] = emu_max(row[k], a->lanes[i][k]);
    for (uint32_t k = 0; k < EMU_WARP; k++)
        row[k] = mask >> k & 1 ? a->clock : row[k];
    for (uint32_t i = 0; i < EMU_WARP; i++)
        if (mask >> i & 1)
            memcpy(a->lanes[i], row, sizeof row);
    emu_order_tick(a);
}
