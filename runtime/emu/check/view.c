// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Views: up to which clock each agent's accesses are known.

#include "emu/check/order_parts.h"

#include <string.h>

enum { FAR_MAX = 4096 }; // agents of other domains in one view

void *emu_order_grow(struct emu_order *o, void *old, size_t used, size_t size)
{
    void *at = emu_arena_alloc(o->arena, size);
    if (used)
        memcpy(at, old, used);
    return at;
}

void emu_view_widen(struct emu_order *o, struct emu_view *v, uint32_t count)
{
    if (count > v->cap) {
        const uint32_t cap = emu_max(count + 8, 2 * v->cap);
        for (int p = 0; p < EMU_PLANES; p++)
            if (v->clock[p])
                v->clock[p] = emu_order_grow(o, v->clock[p], v->count * sizeof(uint32_t),
                                             cap * sizeof(uint32_t));
        v->cap = cap;
    }
    for (int p = 0; p < EMU_PLANES; p++)
        if (v->clock[p])
            memset(v->clock[p] + v->count, 0, (count - v->count) * sizeof(uint32_t));
    v->count = count;
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
        o->floor = emu_max(o->floor, list[drop].uid);
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
                out[n].clock[p] = emu_max(out[n].clock[p], v->far[i].clock[p]);
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
    emu_view_room(o, v, index + 1);
    uint32_t *at = &emu_view_plane(o, v, plane)[index];
    *at = emu_max(*at, clock);
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
        emu_view_room(o, to, from->count);
        for (int p = 0; p < EMU_PLANES; p++) {
            const uint32_t *b = from->clock[p];
            if (!b)
                continue;
            uint32_t *a = emu_view_plane(o, to, p);
            for (uint32_t i = 0; i < from->count; i++)
                a[i] = emu_max(a[i], b[i]);
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
