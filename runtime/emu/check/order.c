// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Views and what joins them: barriers, fences, flags, asynchronous operations, lanes.

#include "emu/check/order.h"

#include <string.h>

enum {
    SLOTS = 256,    // operations of engines that a domain tells apart
    FAR_MAX = 4096, // agents of other domains in one view
    FIRST_UID = 1   // 0: no agent
};

static uint32_t max_of(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t span_of(const struct emu_domain *d)
{
    return d->fixed + SLOTS;
}

// --- views ---

static void *grow(struct emu_order *o, void *old, size_t used, size_t size)
{
    void *at = emu_arena_alloc(o->arena, size);
    if (used)
        memcpy(at, old, used);
    return at;
}

// Makes the dense part hold `count` agents.
static void room(struct emu_order *o, struct emu_view *v, uint32_t count)
{
    if (count <= v->count)
        return;
    if (count > v->cap) {
        const uint32_t cap = max_of(count + 8, 2 * v->cap);
        for (int p = 0; p < EMU_PLANES; p++)
            if (v->clock[p])
                v->clock[p] =
                    grow(o, v->clock[p], v->count * sizeof(uint32_t), cap * sizeof(uint32_t));
        v->cap = cap;
    }
    for (int p = 0; p < EMU_PLANES; p++)
        if (v->clock[p])
            memset(v->clock[p] + v->count, 0, (count - v->count) * sizeof(uint32_t));
    v->count = count;
}

static uint32_t *plane_of(struct emu_order *o, struct emu_view *v, int plane)
{
    if (!v->clock[plane])
        v->clock[plane] = emu_arena_alloc(o->arena, v->cap * sizeof(uint32_t));
    return v->clock[plane];
}

void emu_view_clear(struct emu_view *v, const struct emu_domain *home)
{
    v->base = home ? home->base : 0;
    v->count = 0;
    v->far_count = 0;
}

void emu_view_take(struct emu_order *o, struct emu_view *v, const struct emu_domain *home)
{
    *v = o->spare.len ? o->spare.at[--o->spare.len] : (struct emu_view){0};
    emu_view_clear(v, home);
}

void emu_view_give(struct emu_order *o, const struct emu_view *v)
{
    if (v->cap || v->far_cap)
        *emu_push(o->arena, &o->spare) = *v;
}

// The first entry at or after `uid`.
static uint32_t far_find(const struct emu_view *v, uint32_t uid)
{
    uint32_t low = 0, high = v->far_count;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (v->far[mid].uid < uid)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct emu_far *scratch(struct emu_order *o, int which, uint32_t count)
{
    if (count > o->scratch_cap[which]) {
        o->scratch_cap[which] = 2 * count;
        o->scratch[which] = emu_arena_array(o->arena, 2 * (size_t)count, sizeof(struct emu_far));
    }
    return o->scratch[which];
}

static void far_set(struct emu_order *o, struct emu_view *v, const struct emu_far *list,
                    uint32_t count)
{
    if (count > FAR_MAX) { // the older half becomes known to all
        const uint32_t drop = count - FAR_MAX / 2;
        o->floor = max_of(o->floor, list[drop].uid);
        list += drop;
        count -= drop;
    }
    if (count > v->far_cap) {
        v->far_cap = 2 * count;
        v->far = emu_arena_array(o->arena, v->far_cap, sizeof *v->far);
    }
    memcpy(v->far, list, count * sizeof *list);
    v->far_count = count;
}

// Merges a sorted list, none of it of the own domain, into the view's.
static void far_merge(struct emu_order *o, struct emu_view *v, const struct emu_far *list,
                      uint32_t count)
{
    struct emu_far *out = scratch(o, 0, v->far_count + count);
    uint32_t n = 0, i = 0, k = 0;
    while (i < v->far_count || k < count) {
        if (k == count || (i < v->far_count && v->far[i].uid < list[k].uid)) {
            out[n++] = v->far[i++];
            continue;
        }
        out[n] = list[k++];
        if (i < v->far_count && v->far[i].uid == out[n].uid) {
            for (int p = 0; p < EMU_PLANES; p++)
                out[n].clock[p] = max_of(out[n].clock[p], v->far[i].clock[p]);
            i++;
        }
        n++;
    }
    far_set(o, v, out, n);
}

// The dense part of a view as a list.
static uint32_t as_list(const struct emu_view *v, struct emu_far *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->count; i++) {
        if (!v->clock[EMU_KNOWN][i])
            continue;
        out[n].uid = v->base + i;
        for (int p = 0; p < EMU_PLANES; p++)
            out[n].clock[p] = v->clock[p] ? v->clock[p][i] : 0;
        n++;
    }
    return n;
}

static void raise_to(struct emu_order *o, struct emu_view *v, uint32_t index, int plane,
                     uint32_t clock)
{
    room(o, v, index + 1);
    uint32_t *at = &plane_of(o, v, plane)[index];
    *at = max_of(*at, clock);
}

// The far entries of `from`: those of to's domain go to its dense part.
static void join_far(struct emu_order *o, struct emu_view *to, const struct emu_view *from)
{
    const struct emu_domain_name *home = to->base ? emu_order_name(o, to->base) : NULL;
    uint32_t first = 0, last = 0;
    if (home) {
        first = far_find(from, home->base);
        last = far_find(from, home->base + home->agents);
        for (uint32_t i = first; i < last; i++)
            for (int p = 0; p < EMU_PLANES; p++)
                if (from->far[i].clock[p])
                    raise_to(o, to, from->far[i].uid - to->base, p, from->far[i].clock[p]);
    }
    if (first)
        far_merge(o, to, from->far, first);
    if (last < from->far_count)
        far_merge(o, to, from->far + last, from->far_count - last);
}

void emu_view_join(struct emu_order *o, struct emu_view *to, const struct emu_view *from)
{
    if (to->base == from->base && from->count) {
        room(o, to, from->count);
        for (int p = 0; p < EMU_PLANES; p++) {
            const uint32_t *b = from->clock[p];
            if (!b)
                continue;
            uint32_t *a = plane_of(o, to, p);
            for (uint32_t i = 0; i < from->count; i++)
                a[i] = max_of(a[i], b[i]);
        }
    } else if (from->count) {
        struct emu_far *list = scratch(o, 1, from->count);
        far_merge(o, to, list, as_list(from, list));
    }
    if (from->far_count)
        join_far(o, to, from);
}

static void learn(struct emu_order *o, struct emu_view *v, uint32_t uid, enum emu_plane plane,
                  uint32_t clock)
{
    const struct emu_domain_name *home = v->base ? emu_order_name(o, v->base) : NULL;
    if (home && uid - home->base < home->agents) {
        raise_to(o, v, uid - home->base, plane, clock);
    } else {
        struct emu_far one = {.uid = uid};
        one.clock[plane] = clock;
        far_merge(o, v, &one, 1);
    }
}

void emu_view_learn(struct emu_order *o, struct emu_view *v, uint32_t uid, uint32_t clock)
{
    learn(o, v, uid, EMU_KNOWN, clock);
}

void emu_view_learn_committed(struct emu_order *o, struct emu_view *v, uint32_t uid, uint32_t clock)
{
    learn(o, v, uid, EMU_KNOWN, clock);
    learn(o, v, uid, EMU_FENCED_BEFORE, clock);
}

uint32_t emu_view_clock(const struct emu_order *o, const struct emu_view *v, enum emu_plane plane,
                        uint32_t uid)
{
    const uint32_t index = uid - v->base;
    if (index < v->count)
        return v->clock[plane] ? v->clock[plane][index] : 0;
    if (uid < o->floor)
        return UINT32_MAX;
    const uint32_t at = far_find(v, uid);
    return at < v->far_count && v->far[at].uid == uid ? v->far[at].clock[plane] : 0;
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
    room(a->domain->order, v, index + 1);
    return &plane_of(a->domain->order, v, EMU_KNOWN)[index];
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
            clock = max_of(clock, a->lanes[i][lane]);
    return clock;
}

static void tell_lanes(const struct emu_agent *a, uint32_t *told)
{
    for (uint32_t i = 0; i < EMU_WARP; i++)
        told[i] = max_of(told[i], a->acting == EMU_FULL ? a->clock : known_of(a, i));
}

static struct emu_tells *tells_of(struct emu_agent *a)
{
    if (!a->tells)
        a->tells = emu_arena_array(a->domain->order->arena, 1, sizeof *a->tells);
    return a->tells;
}

// What the agent does from now on is not covered by what it has told so far. The last clock stays:
// a race may be missed then, after 4 billion steps.
static void tick(struct emu_agent *a)
{
    if (a->clock < UINT32_MAX)
        a->clock++;
    *own(a) = a->clock;
}

// What the acting lanes tell others.
static void join_known(struct emu_agent *a, struct emu_view *to)
{
    emu_view_join(a->domain->order, to, &a->view);
    if (a->fencers & a->acting)
        emu_view_join(a->domain->order, to, &a->fenced);
}

void emu_order_release(struct emu_agent *a, struct emu_view *to)
{
    join_known(a, to);
    tell_lanes(a, tells_of(a)->released);
    tick(a);
}

void emu_order_release_inits(struct emu_agent *a, struct emu_view *to)
{
    const uint32_t *from = a->view.clock[EMU_FENCED_INIT];
    if (!from || to->base != a->view.base)
        return;
    room(a->domain->order, to, a->view.count);
    uint32_t *into = plane_of(a->domain->order, to, EMU_FENCED_INIT);
    for (uint32_t i = 0; i < a->view.count; i++)
        into[i] = max_of(into[i], from[i]);
}

void emu_order_acquire(struct emu_agent *a, const struct emu_view *from)
{
    const uint32_t told = emu_view_clock(a->domain->order, from, EMU_KNOWN, a->uid);
    a->gathered = max_of(a->gathered, told);
    emu_view_join(a->domain->order, &a->view, from);
}

// --- fences ---

static void copy_plane(struct emu_order *o, struct emu_view *v, int to, int from)
{
    memcpy(plane_of(o, v, to), plane_of(o, v, from), v->count * sizeof(uint32_t));
    for (uint32_t i = 0; i < v->far_count; i++)
        v->far[i].clock[to] = v->far[i].clock[from];
}

// The same for all but agent `uid` itself.
static void hand_plane(struct emu_order *o, struct emu_view *v, uint32_t uid, int to)
{
    const uint32_t index = uid - v->base, before = plane_of(o, v, to)[index];
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
        tell_lanes(a, tells_of(a)->fenced_async);
    }
    if (which & EMU_FENCE_ASYNC_GLOBAL) {
        hand_plane(o, fenced, a->uid, EMU_HANDED_GLOBAL);
        tell_lanes(a, tells_of(a)->fenced_global);
    }
    tick(a);
}

void emu_order_fence_tensor(struct emu_agent *a, bool after)
{
    copy_plane(a->domain->order, &a->view, after ? EMU_FENCED_TENSOR : EMU_FENCED_BEFORE,
               after ? EMU_FENCED_BEFORE : EMU_KNOWN);
}

static uint32_t scope_index(enum emu_scope scope)
{
    return scope < EMU_SCOPE_GPU ? scope : EMU_SCOPE_GPU;
}

void emu_order_fence_memory(struct emu_agent *a, uint32_t order, enum emu_scope scope)
{
    const uint32_t reach = scope_index(scope);
    for (uint32_t i = 0; order & EMU_ACQUIRE && i <= reach; i++) {
        if (!(a->has_pending >> i & 1))
            continue;
        emu_order_acquire(a, &a->pending[i]);
        emu_view_clear(&a->pending[i], a->domain);
        a->has_pending &= (uint8_t) ~(1u << i);
    }
    if (order & EMU_RELEASE) {
        emu_view_clear(&a->released[reach], a->domain);
        join_known(a, &a->released[reach]);
        a->has_released = (uint8_t)((a->has_released >> reach | 1u) << reach);
        tell_lanes(a, tells_of(a)->released);
        tick(a);
    }
}

// --- flags ---

static struct emu_flag *flag_slot(const struct emu_order *o, uint64_t address)
{
    uint32_t i = (uint32_t)(address * 0x9e3779b97f4a7c15u >> 32) & (o->flag_cap - 1);
    while (o->flags[i].is_set && o->flags[i].address != address)
        i = (i + 1) & (o->flag_cap - 1);
    return &o->flags[i];
}

// The flag at an address; made where there is none and `make` is set, else NULL.
static struct emu_flag *flag_at(struct emu_order *o, uint64_t address, bool make)
{
    struct emu_flag *f = o->flag_cap ? flag_slot(o, address) : NULL;
    if ((f && f->is_set) || !make)
        return f && f->is_set ? f : NULL;
    if (2 * (o->flag_count + 1) > o->flag_cap) {
        const struct emu_flag *old = o->flags;
        const uint32_t count = o->flag_cap;
        o->flag_cap = count ? 2 * count : 64;
        o->flags = emu_arena_array(o->arena, o->flag_cap, sizeof *o->flags);
        for (uint32_t i = 0; i < count; i++)
            if (old[i].is_set)
                *flag_slot(o, old[i].address) = old[i];
        f = flag_slot(o, address);
    }
    *f = (struct emu_flag){.address = address, .is_set = true};
    o->flag_count++;
    return f;
}

static uint32_t cta_of(const struct emu_agent *a)
{
    return (a->uid - a->domain->base) / a->domain->per_cta;
}

// The release of the agent's CTA through the flag. Entries of clusters that are gone are used
// again.
static struct emu_told *told_by(struct emu_agent *a, struct emu_flag *f)
{
    struct emu_order *o = a->domain->order;
    struct emu_told *t = NULL, *gone = NULL;
    for (uint32_t i = 0; i < f->told_count && !t; i++) {
        struct emu_told *at = &f->told[i];
        if (at->domain->base != at->base)
            gone = at;
        else if (at->domain == a->domain && at->cta == cta_of(a))
            t = at;
    }
    if (t)
        return t;
    if (!gone) {
        if (f->told_count == f->told_cap) {
            f->told_cap = f->told_cap ? 2 * f->told_cap : 1;
            f->told =
                grow(o, f->told, f->told_count * sizeof *f->told, f->told_cap * sizeof *f->told);
        }
        gone = &f->told[f->told_count++];
        *gone = (struct emu_told){0};
    }
    gone->domain = a->domain;
    gone->base = a->domain->base;
    gone->cta = cta_of(a);
    for (int i = 0; i < EMU_SCOPE_GPU; i++)
        emu_view_clear(&gone->view[i], a->domain);
    return gone;
}

static void tell(struct emu_order *o, struct emu_flag *f, struct emu_told *t, uint32_t reach,
                 const struct emu_view *what)
{
    for (uint32_t i = 0; i <= reach; i++)
        emu_view_join(o, i < EMU_SCOPE_GPU ? &t->view[i] : &f->view, what);
}

// The agent writes the flag. What was told by it before stays only where the write is atomic.
static void write_flag(struct emu_agent *a, struct emu_flag *f, bool keep, uint32_t order,
                       enum emu_scope scope)
{
    struct emu_order *o = a->domain->order;
    const uint32_t reach = scope_index(scope);
    if (!keep) {
        emu_view_clear(&f->view, NULL);
        for (uint32_t i = 0; i < f->told_count; i++)
            for (int k = 0; k < EMU_SCOPE_GPU; k++)
                emu_view_clear(&f->told[i].view[k], f->told[i].domain);
    }
    if (!(order & EMU_RELEASE) && !a->has_released)
        return;
    struct emu_told *t = told_by(a, f);
    if (order & EMU_RELEASE) {
        tell(o, f, t, reach, &a->view);
        if (a->fencers & a->acting)
            tell(o, f, t, reach, &a->fenced);
        tell_lanes(a, tells_of(a)->released);
        tick(a);
    }
    for (uint32_t i = 0; i < EMU_SCOPES && !(order & EMU_RELEASE); i++)
        if (a->has_released >> i & 1)
            tell(o, f, t, i < reach ? i : reach, &a->released[i]);
}

// Acquires what was told to agents at `distance`, or leaves it to a fence of that scope.
static void hear(struct emu_agent *a, const struct emu_view *what, uint32_t order,
                 enum emu_scope distance)
{
    if (order & EMU_ACQUIRE) {
        emu_order_acquire(a, what);
        return;
    }
    emu_view_join(a->domain->order, &a->pending[distance], what);
    a->has_pending |= (uint8_t)(1u << distance);
}

static void read_flag(struct emu_agent *a, const struct emu_flag *f, uint32_t order,
                      enum emu_scope scope)
{
    for (uint32_t i = 0; i < f->told_count; i++) {
        const struct emu_told *t = &f->told[i];
        if (t->domain != a->domain || t->base != a->domain->base)
            continue;
        if (t->cta == cta_of(a))
            hear(a, &t->view[EMU_SCOPE_CTA], order, EMU_SCOPE_CTA);
        else if (scope >= EMU_SCOPE_CLUSTER)
            hear(a, &t->view[EMU_SCOPE_CLUSTER], order, EMU_SCOPE_CLUSTER);
    }
    if (scope >= EMU_SCOPE_GPU)
        hear(a, &f->view, order, EMU_SCOPE_GPU);
}

void emu_order_flag_store(struct emu_agent *a, uint64_t address, uint32_t order,
                          enum emu_scope scope)
{
    const bool tells = order & EMU_RELEASE || a->has_released;
    struct emu_flag *f = flag_at(a->domain->order, address, tells);
    if (f)
        write_flag(a, f, false, order, scope);
}

void emu_order_flag_load(struct emu_agent *a, uint64_t address, uint32_t order,
                         enum emu_scope scope)
{
    const struct emu_flag *f = flag_at(a->domain->order, address, false);
    if (f)
        read_flag(a, f, order, scope);
}

void emu_order_flag_atomic(struct emu_agent *a, uint64_t address, uint32_t order,
                           enum emu_scope scope)
{
    const bool tells = order & EMU_RELEASE || a->has_released;
    struct emu_flag *f = flag_at(a->domain->order, address, tells);
    if (!f)
        return;
    read_flag(a, f, order, scope);
    write_flag(a, f, true, order, scope);
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
    join_known(issuer, &slot->view);
    slot->clock = clock;
    slot->busy++;
    if (is_named)
        tick(slot);
    tell_lanes(issuer, tells_of(issuer)->released);
    tick(issuer);
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
        tick(a);
        return;
    }
    if (!a->lanes)
        a->lanes = emu_arena_array(a->domain->order->arena, EMU_WARP, sizeof *a->lanes);
    uint32_t row[EMU_WARP] = {0};
    for (uint32_t i = 0; i < EMU_WARP; i++)
        for (uint32_t k = 0; mask >> i & 1 && k < EMU_WARP; k++)
            row[k] = max_of(row[k], a->lanes[i][k]);
    for (uint32_t k = 0; k < EMU_WARP; k++)
        row[k] = mask >> k & 1 ? a->clock : row[k];
    for (uint32_t i = 0; i < EMU_WARP; i++)
        if (mask >> i & 1)
            memcpy(a->lanes[i], row, sizeof row);
    tick(a);
}
