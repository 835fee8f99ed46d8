// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of order.h share: view.c has views, flags.c flags, order.c agents, fences,
// asynchronous operations and lanes.
#ifndef EMU_ORDER_PARTS_H
#define EMU_ORDER_PARTS_H

#include "emu/check/order.h"

static inline uint32_t emu_max(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static inline uint32_t emu_scope_index(enum emu_scope scope)
{
    return scope < EMU_SCOPE_GPU ? scope : EMU_SCOPE_GPU;
}

// `used` of `size` bytes are those of `old`, the others 0.
void *emu_order_grow(struct emu_order *o, void *old, size_t used, size_t size);

void emu_view_widen(struct emu_order *o, struct emu_view *v, uint32_t count);
// Makes the dense part hold `count` agents.
static inline void emu_view_room(struct emu_order *o, struct emu_view *v, uint32_t count)
{
    if (count > v->count)
        emu_view_widen(o, v, count);
}

static inline uint32_t *emu_view_plane(struct emu_order *o, struct emu_view *v, int plane)
{
    if (!v->clock[plane])
        v->clock[plane] = emu_arena_alloc(o->arena, v->cap * sizeof(uint32_t));
    return v->clock[plane];
}

// What the acting lanes tell others.
void emu_order_join_known(struct emu_agent *a, struct emu_view *to);
struct emu_tells *emu_order_tells(struct emu_agent *a);
// told: of emu_order_tells, what the acting lanes tell by it.
void emu_order_tell_lanes(const struct emu_agent *a, uint32_t *told);
// What the agent does from now on is not covered by what it has told so far.
void emu_order_tick(struct emu_agent *a);

#endif
