// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shadow records and the comparison of an access with them.

#include "emu/check/race.h"

#include <string.h>

enum {
    PAGE_SHIFT = 10,
    PAGE = 1 << PAGE_SHIFT,
    COARSEST = 4, // shift of a granule
    MOST = 32
};

struct emu_granule {
    struct emu_record write; // the last plain one
    struct emu_record since; // a read or a strong write, or a list of them
};

// Accesses by agents that do not know each other.
struct many {
    uint16_t count;
    bool has_writes;
    uint8_t cap_class; // room for 4 << cap_class
    struct emu_record at[];
};

struct emu_race_block { // free memory
    struct emu_race_block *next;
};

// --- memory ---

static void *block_new(struct emu_race *race, struct emu_race_block **list, size_t size)
{
    struct emu_race_block *b = *list;
    if (!b)
        return emu_arena_alloc(race->arena, size);
    *list = b->next;
    return memset(b, 0, size);
}

static void block_free(struct emu_race_block **list, void *block)
{
    struct emu_race_block *b = block;
    b->next = *list;
    *list = b;
}

static size_t many_size(uint32_t cap_class)
{
    return sizeof(struct many) + ((size_t)4 << cap_class) * sizeof(struct emu_record);
}

static struct many *many_of(const struct emu_record *r)
{
    struct many *list;
    memcpy(&list, r, sizeof list); // over uid and clock
    return list;
}

static void set_many(struct emu_record *r, struct many *list)
{
    memcpy(r, &list, sizeof list);
    r->what = EMU_REC_MANY;
    r->lanes = 0;
}

static struct many *many_new(struct emu_race *race, uint32_t cap_class)
{
    struct many *list = block_new(race, &race->free_lists[cap_class], many_size(cap_class));
    list->cap_class = (uint8_t)cap_class;
    return list;
}

static void drop_many(struct emu_race *race, struct emu_record *r)
{
    if (r->what == EMU_REC_MANY) {
        struct many *list = many_of(r);
        block_free(&race->free_lists[list->cap_class], list);
    }
    *r = (struct emu_record){0};
}

static size_t page_bytes(uint32_t shift)
{
    return ((size_t)PAGE >> shift) * sizeof(struct emu_granule);
}

// Cuts a page's granules finer; every piece keeps the records.
static void refine(struct emu_race *race, struct emu_race_page *page, uint32_t shift)
{
    struct emu_granule *to = block_new(race, &race->free_pages[shift], page_bytes(shift));
    if (page->at) {
        const uint32_t pieces = 1u << (page->shift - shift);
        for (uint32_t i = 0; i < (uint32_t)PAGE >> page->shift; i++) {
            const struct emu_granule *from = &page->at[i];
            for (uint32_t k = 0; k < pieces; k++)
                to[i * pieces + k] = *from;
            for (uint32_t k = 1; from->since.what == EMU_REC_MANY && k < pieces; k++) {
                const struct many *old = many_of(&from->since);
                struct many *list = many_new(race, old->cap_class);
                memcpy(list, old, many_size(old->cap_class));
                set_many(&to[i * pieces + k].since, list);
            }
        }
        block_free(&race->free_pages[page->shift], page->at);
    }
    page->at = to;
    page->shift = shift;
}

static uint64_t page_count(const struct emu_race_map *map)
{
    return (map->size + PAGE - 1) >> PAGE_SHIFT;
}

static void map_start(struct emu_race *race, struct emu_race_map *map)
{
    map->pages = emu_arena_array(race->arena, page_count(map), sizeof *map->pages);
    if (map->is_global && !map->is_listed) {
        map->next = race->maps;
        map->is_listed = true;
        race->maps = map;
    }
}

void emu_race_forget(struct emu_race *race, struct emu_race_map *map)
{
    for (uint64_t i = 0; map->pages && i < page_count(map); i++) {
        struct emu_race_page *page = &map->pages[i];
        for (uint32_t k = 0; page->at && k < (uint32_t)PAGE >> page->shift; k++)
            drop_many(race, &page->at[k].since);
        if (page->at)
            block_free(&race->free_pages[page->shift], page->at);
        page->at = NULL;
    }
}

uint32_t emu_race_core_op(struct emu_race *race, const struct emu_agent *warp, uint32_t accumulator)
{
    if (!race->core_ops)
        race->core_ops = emu_arena_array(race->arena, EMU_CORE_OPS, sizeof *race->core_ops);
    const uint32_t number = ++race->core_op_count;
    race->core_ops[number % EMU_CORE_OPS] =
        (struct emu_core_op){number, warp->uid, warp->clock, accumulator};
    return number;
}

void emu_race_end(struct emu_race *race)
{
    for (struct emu_race_map *map = race->maps; map; map = map->next) {
        map->pages = NULL;
        map->is_listed = false;
    }
    race->maps = NULL;
}

// --- comparing ---

struct access {
    struct emu_race *race;
    const struct emu_who *who;
    struct emu_record now;
    bool writes, is_again;
    const struct emu_race_map *map;
    uint64_t offset, size;
};

// Whether both are plain stores, the later one of what the earlier one left there.
static bool is_again(const struct access *a, const struct emu_record *before)
{
    const uint32_t plain = EMU_REC_WRITES | EMU_REC_STRONG | EMU_REC_ATOMIC | EMU_REC_PROXY;
    return a->is_again && (a->now.what & plain) == EMU_REC_WRITES &&
           (before->what & plain) == EMU_REC_WRITES && before->lanes;
}

static void report(const struct access *a, enum emu_conflict_kind kind,
                   const struct emu_record *before, bool before_writes)
{
    if (is_again(a, before))
        kind = EMU_CONFLICT_AGAIN;
    const struct emu_conflict conflict = {.kind = kind,
                                          .before = *before,
                                          .now = a->now,
                                          .before_writes = before_writes,
                                          .now_writes = a->writes,
                                          .map = a->map,
                                          .offset = a->offset,
                                          .size = (uint32_t)a->size};
    a->race->found(a->race->user, &conflict);
}

static uint32_t scope_of(uint32_t what)
{
    return (what & EMU_REC_SCOPE) >> EMU_REC_SCOPE_SHIFT;
}

// Both are strong, and their scopes include each other.
static bool are_strong(const struct emu_order *order, const struct emu_record *p,
                       const struct emu_record *r)
{
    if (!(p->what & r->what & EMU_REC_STRONG))
        return false;
    const uint32_t now = scope_of(p->what), then = scope_of(r->what);
    const uint32_t scope = now < then ? now : then;
    if (scope >= EMU_SCOPE_GPU)
        return true;
    const struct emu_domain_name *x = emu_order_name(order, p->uid);
    if (!x || r->uid - x->base >= x->agents)
        return false;
    return scope == EMU_SCOPE_CLUSTER ||
           (p->uid - x->base) / x->per_cta == (r->uid - x->base) / x->per_cta;
}

static bool both_strong(const struct access *a, const struct emu_record *r)
{
    return are_strong(a->who->order, &a->now, r);
}

static bool is_core(const struct emu_record *r)
{
    return (r->what & EMU_REC_PROXY) == EMU_PROXY_TENSOR;
}

// A load whose value a compare and exchange will test.
static bool is_guess(const struct access *a, const struct emu_record *r, bool writes)
{
    return (!a->writes && r->what & EMU_REC_CAS) || (!writes && a->now.what & EMU_REC_CAS);
}

static void check_lanes(const struct access *a, const struct emu_record *r, bool writes)
{
    const struct emu_agent *warp = a->who->warp;
    const uint32_t others = r->lanes & ~a->now.lanes;
    if (!a->race->check_lanes || !warp || !others || r->clock <= warp->gathered ||
        (a->now.what & r->what & EMU_REC_STRONG) || is_guess(a, r, writes))
        return;
    uint32_t lane = 0;
    while (!(a->now.lanes >> lane & 1))
        lane++;
    for (uint32_t i = 0; i < EMU_WARP; i++)
        if (others >> i & 1 && !emu_order_knows_lane(warp, lane, i, r->clock)) {
            struct emu_record one = *r;
            one.lanes = 1u << i;
            report(a, EMU_CONFLICT_LANES, &one, writes);
            return;
        }
}

// The first lane of a record whose access nobody who knew of it has told by its clock; EMU_WARP:
// none.
static uint32_t first_untold(const struct emu_record *r, const uint32_t *told)
{
    uint32_t lane = 0;
    while (lane < EMU_WARP && !(r->lanes >> lane & 1 && told[lane] < r->clock))
        lane++;
    return lane;
}

// The access is known by a release of its warp, but by one of lanes that did not know of it.
static bool check_told(const struct access *a, const struct emu_record *r, bool writes)
{
    const struct emu_agent *by =
        a->race->check_lanes && r->lanes ? emu_order_warp(a->who->order, r->uid) : NULL;
    const uint32_t lane = by && by->tells ? first_untold(r, by->tells->released) : EMU_WARP;
    if (lane == EMU_WARP || r->uid - a->who->own < a->who->own_end - a->who->own)
        return true;
    struct emu_record one = *r;
    one.lanes = 1u << lane;
    report(a, EMU_CONFLICT_ORDER, &one, writes);
    return false;
}

// The same for a proxy fence of the warp itself.
static void check_fenced(const struct access *a, const struct emu_record *r)
{
    const bool is_global = a->map->is_global, writes = r->what & EMU_REC_WRITES;
    const struct emu_agent *by =
        a->race->check_lanes && r->lanes ? emu_order_warp(a->who->order, r->uid) : NULL;
    if (!by || !by->tells ||
        emu_view_clock(a->who->order, a->who->view,
                       is_global ? EMU_HANDED_GLOBAL : EMU_HANDED_ASYNC, r->uid) >= r->clock)
        return;
    const uint32_t lane =
        first_untold(r, is_global ? by->tells->fenced_global : by->tells->fenced_async);
    if (lane == EMU_WARP)
        return;
    struct emu_record one = *r;
    one.lanes = 1u << lane;
    report(a, EMU_CONFLICT_PROXY, &one, writes);
}

// Known, but a generic access that another proxy needs a fence after: a write that it is to see, or
// a read of what it is to write.
static void check_proxy(const struct access *a, const struct emu_record *r)
{
    const uint32_t proxy = a->now.what & EMU_REC_PROXY;
    const bool writes = r->what & EMU_REC_WRITES;
    if (proxy == EMU_PROXY_GENERIC || r->what & EMU_REC_PROXY)
        return;
    const enum emu_plane plane = proxy == EMU_PROXY_MAP ? EMU_FENCED_MAP
                                 : a->map->is_global    ? EMU_FENCED_GLOBAL
                                                        : EMU_FENCED_ASYNC;
    if (emu_view_clock(a->who->order, a->who->view, plane, r->uid) < r->clock)
        report(a, EMU_CONFLICT_PROXY, r, writes);
    else if (proxy == EMU_PROXY_ASYNC)
        check_fenced(a, r);
}

// An access of tensor memory that is known without fences: both of them, if another warp loaded or
// stored; the one after, if the tensor core did, since its commit has the other in it. To free
// columns takes none.
static void check_fence(const struct access *a, const struct emu_record *r, bool writes)
{
    const bool frees = (a->now.lanes && !is_core(&a->now)) || (r->lanes && !is_core(r));
    const bool own = !is_core(r) && r->uid - a->who->own < a->who->own_end - a->who->own;
    if (!a->race->check_lanes || frees || own)
        return;
    if (emu_view_clock(a->who->order, a->who->view, EMU_FENCED_TENSOR, r->uid) < r->clock)
        report(a, EMU_CONFLICT_FENCE, r, writes);
}

static const struct emu_core_op *core_op_of(const struct emu_race *race, const struct emu_record *r)
{
    const struct emu_core_op *op = &race->core_ops[r->lanes % EMU_CORE_OPS];
    return op->number == r->lanes ? op : NULL;
}

// Two operations of the tensor core: a commit of the first was awaited, or the second follows it in
// the pipeline, whose order is that of issue.
static void check_core(const struct access *a, const struct emu_record *r, bool writes)
{
    const struct emu_order *order = a->who->order;
    const struct emu_core_op *now = core_op_of(a->race, &a->now), *then = core_op_of(a->race, r);
    if (!now || !then || now == then)
        return;
    const bool in_order =
        now->accumulator && (!then->accumulator || then->accumulator == now->accumulator);
    if (in_order && now->warp == then->warp)
        return;
    if (emu_view_clock(order, a->who->view, EMU_KNOWN, r->uid) >= r->clock)
        check_fence(a, r, writes);
    else if (!in_order)
        report(a, EMU_CONFLICT_CORE, r, writes);
    else if (emu_view_clock(order, a->who->view, EMU_KNOWN, then->warp) < then->clock)
        report(a, EMU_CONFLICT_ORDER, r, writes);
    else if (a->race->check_lanes &&
             emu_view_clock(order, a->who->view, EMU_FENCED_TENSOR, then->warp) < then->clock)
        report(a, EMU_CONFLICT_FENCE, r, writes);
}

static void check(const struct access *a, const struct emu_record *r)
{
    const struct emu_who *who = a->who;
    const bool writes = r->what & EMU_REC_WRITES;
    if (!r->uid || !(writes || a->writes))
        return;
    if (r->uid == a->now.uid && who->warp) {
        check_lanes(a, r, writes);
        check_proxy(a, r);
        return;
    }
    if (both_strong(a, r) || is_guess(a, r, writes))
        return;
    if (is_core(&a->now) && is_core(r))
        check_core(a, r, writes);
    else if (emu_view_clock(who->order, who->view, EMU_KNOWN, r->uid) < r->clock &&
             emu_view_clock(who->order, who->view, who->also, r->uid) < r->clock)
        report(a, EMU_CONFLICT_ORDER, r, writes);
    else if (a->map->is_tensor)
        check_fence(a, r, writes);
    else if (check_told(a, r, writes))
        check_proxy(a, r);
}

// Whether the warp itself has read the place strongly since a strong write of the list: that one
// comes before all that follows the read, as in observes(). Who waited for a flag resets it so.
static bool has_seen(const struct access *a, const struct many *list, uint32_t write)
{
    const struct emu_record *r = &list->at[write];
    if (!(r->what & EMU_REC_WRITES) || r->what & EMU_REC_CAS || !a->who->warp)
        return false;
    for (uint32_t i = write + 1; i < list->count; i++) {
        const struct emu_record *read = &list->at[i];
        if (read->uid == a->now.uid && are_strong(a->who->order, read, r) &&
            (read->what & EMU_REC_ATOMIC || !(read->what & EMU_REC_WRITES)))
            return true;
    }
    return false;
}

static void check_since(const struct access *a, const struct emu_record *since)
{
    if (since->what != EMU_REC_MANY) {
        check(a, since);
        return;
    }
    const struct many *list = many_of(since);
    for (uint32_t i = 0; (a->writes || list->has_writes) && i < list->count; i++)
        if (!has_seen(a, list, i))
            check(a, &list->at[i]);
}

// --- recording ---

static bool same_time(const struct access *a, const struct emu_record *r)
{
    return r->uid == a->now.uid && r->clock == a->now.clock;
}

// Whether the access is an atomic operation that finds what a recorded one left: with all that
// follows, it comes after that one, though perhaps not after what its thread did before (causality
// order by observation, in the manual's memory model). The last block resets a counter so, with a
// plain store.
static bool observes(const struct access *a, const struct emu_record *r)
{
    return a->now.what & r->what & EMU_REC_ATOMIC && !((a->now.what | r->what) & EMU_REC_CAS) &&
           both_strong(a, r) && scope_of(a->now.what) <= scope_of(r->what);
}

// Whether what conflicts with a record, and is not ordered with it, also shows by the access: it
// comes after the record and conflicts with as much.
static bool covers(const struct access *a, const struct emu_record *r)
{
    const uint32_t now = a->now.what, then = r->what;
    if ((then & EMU_REC_WRITES && !(now & EMU_REC_WRITES)) ||
        (now & EMU_REC_STRONG && !(then & EMU_REC_STRONG)))
        return false;
    return r->uid == a->now.uid || observes(a, r) ||
           emu_view_clock(a->who->order, a->who->view, EMU_KNOWN, r->uid) >= r->clock;
}

// Puts an access over a record that it covers, and keeps its lanes where no time has passed.
static void put(const struct access *a, struct emu_record *r)
{
    const uint32_t lanes = same_time(a, r) && !is_core(r) ? r->lanes : 0;
    *r = a->now;
    r->lanes |= lanes;
}

static void put_many(const struct access *a, struct emu_record *since)
{
    struct many *list = many_of(since);
    uint32_t i = 0;
    while (i < list->count && !covers(a, &list->at[i]))
        i++;
    if (i == list->count && list->count == MOST)
        i = a->now.uid % MOST;
    if (i == list->count && i == 4u << list->cap_class) {
        struct many *grown = many_new(a->race, list->cap_class + 1u);
        memcpy(grown->at, list->at, list->count * sizeof *list->at);
        grown->count = list->count;
        grown->has_writes = list->has_writes;
        block_free(&a->race->free_lists[list->cap_class], list);
        list = grown;
        set_many(since, list);
    }
    list->count += i == list->count;
    list->has_writes |= a->writes;
    put(a, &list->at[i]);
    const struct emu_record last = list->at[i]; // in the order of access, for has_seen()
    memmove(&list->at[i], &list->at[i + 1], (list->count - i - 1) * sizeof last);
    list->at[list->count - 1] = last;
}

static void record_since(const struct access *a, struct emu_record *since)
{
    if (since->what == EMU_REC_MANY) {
        put_many(a, since);
    } else if (!since->uid || covers(a, since)) {
        put(a, since);
    } else {
        struct many *list = many_new(a->race, 0);
        list->at[0] = *since;
        list->at[1] = a->now;
        list->count = 2;
        list->has_writes = a->writes || since->what & EMU_REC_WRITES;
        set_many(since, list);
    }
}

static void read_granule(const struct access *a, struct emu_granule *g)
{
    if (same_time(a, &g->since) && g->since.what == a->now.what) {
        g->since.lanes = is_core(&a->now) ? a->now.lanes : g->since.lanes | a->now.lanes;
        if (g->write.uid != a->now.uid || !a->race->check_lanes)
            return; // the write was looked at by the read before
    }
    check(a, &g->write);
    check_since(a, &g->since);
    record_since(a, &g->since);
}

static void strong_write_granule(const struct access *a, struct emu_granule *g)
{
    check(a, &g->write);
    check_since(a, &g->since);
    record_since(a, &g->since);
}

// True: another lane wrote here by this instruction.
static bool write_granule(const struct access *a, struct emu_granule *g)
{
    const bool again = same_time(a, &g->write) && g->write.what == a->now.what && a->who->warp;
    const bool twin = again && g->write.lanes & ~a->now.lanes;
    if (!twin)
        check(a, &g->write);
    check_since(a, &g->since);
    const uint32_t lanes = again ? g->write.lanes : 0;
    g->write = a->now;
    g->write.lanes |= lanes;
    drop_many(a->race, &g->since);
    return twin;
}

bool emu_race_access(struct emu_race *race, const struct emu_who *who, uint32_t lanes,
                     struct emu_race_map *map, uint64_t offset, uint64_t size, bool writes,
                     uint32_t what)
{
    what |= writes ? EMU_REC_WRITES : 0;
    struct access a = {.race = race,
                       .who = who,
                       .now = {.uid = who->uid,
                               .clock = who->clock,
                               .what = what & ~(uint32_t)EMU_REC_AGAIN,
                               .lanes = lanes},
                       .writes = writes,
                       .is_again = what & EMU_REC_AGAIN,
                       .map = map,
                       .offset = offset,
                       .size = size};
    bool twin = false;
    if (!map->pages)
        map_start(race, map);
    for (const uint64_t end = offset + size; offset < end;) {
        struct emu_race_page *page = &map->pages[offset >> PAGE_SHIFT];
        const uint64_t next = ((offset >> PAGE_SHIFT) + 1) << PAGE_SHIFT;
        const uint64_t stop = next < end ? next : end;
        if (!page->at || (offset | stop) & ((1u << page->shift) - 1)) {
            uint32_t shift = page->at ? page->shift : COARSEST;
            while ((offset | stop) & ((1u << shift) - 1))
                shift--;
            refine(race, page, shift);
        }
        for (; offset < stop; offset += (uint64_t)1 << page->shift) {
            struct emu_granule *g = &page->at[(offset & (PAGE - 1)) >> page->shift];
            if (!writes)
                read_granule(&a, g);
            else if (what & EMU_REC_STRONG)
                strong_write_granule(&a, g);
            else
                twin |= write_granule(&a, g);
        }
    }
    return twin;
}
