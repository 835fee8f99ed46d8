// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Flags: strong accesses to memory, and what they tell to whom.

#include "emu/check/order_parts.h"

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
            f->told = emu_order_grow(o, f->told, f->told_count * sizeof *f->told,
                                     f->told_cap * sizeof *f->told);
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
    const uint32_t reach = emu_scope_index(scope);
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
        emu_order_tell_lanes(a, emu_order_tells(a)->released);
        emu_order_tick(a);
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
