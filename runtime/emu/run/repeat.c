// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Warps that only repeat themselves.
//
// A warp that has run and returned to the same place with the same registers and local memory,
// while nothing has happened in the launch, repeats for ever: other memory is unchanged too.
// Reading the clock makes registers differ, so a loop that waits for a time does not count.
//
// The hash of a state is compared with a kept one, which is replaced after 1, 2, 4, 8 ... tests
// (Brent's way to find a cycle), so a cycle of any length is found.

#include "emu/run/repeat.h"

#include <string.h>

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 29;
}

// `size` is a multiple of 8.
static uint64_t mix_bytes(uint64_t hash, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        hash = mix(hash, word);
    }
    return hash;
}

static uint64_t state_of(const struct emu_warp *w)
{
    uint64_t sum = w->carry;
    for (uint32_t i = 0; i < w->path_count; i++) { // in any order
        const struct emu_path *p = w->paths[i];
        uint64_t hash = mix((uint64_t)p->pc << 32 | p->mask, p->state * 2u + p->is_late);
        for (const struct emu_frame *f = p->frame; f; f = f->parent) {
            hash = mix_bytes(hash, f->regs, f->func->reg_bytes & ~(size_t)7);
            hash = mix_bytes(hash, f->local, (size_t)f->func->local_bytes * EMU_WARP);
        }
        sum += hash;
    }
    return sum;
}

static void look(struct emu_warp *w)
{
    struct emu_repeat *r = &w->repeat;
    const uint64_t state = state_of(w);
    if (r->events == w->launch->events && r->is_set) {
        r->looks++;
        r->found |= state == r->state && w->steps != r->steps;
        if (r->looks < r->most)
            return;
    } else {
        r->most = 0;
        r->found = false;
    }
    r->is_set = true;
    r->events = w->launch->events;
    r->state = state;
    r->steps = w->steps;
    r->looks = 0;
    r->most = r->most ? 2 * r->most : 1;
}

// Whether one of its paths can go on, or could when a time limit runs out.
static bool can_move(const struct emu_warp *w, bool late)
{
    for (uint32_t k = 0; k < w->path_count; k++)
        if (w->paths[k]->state == EMU_PATH_READY ||
            (late && w->paths[k]->state == EMU_PATH_MBARRIER))
            return true;
    return false;
}

void emu_repeat_look(struct emu_grid *l)
{
    for (struct emu_cluster *cluster = l->resident; cluster; cluster = cluster->next)
        for (uint32_t i = 0; i < cluster->size * l->warps; i++) {
            struct emu_warp *w = &cluster->ctas[i / l->warps].warps[i % l->warps];
            if (can_move(w, true))
                look(w);
        }
}

bool emu_all_repeat(const struct emu_grid *l, bool late)
{
    for (const struct emu_cluster *cluster = l->resident; cluster; cluster = cluster->next)
        for (uint32_t i = 0; i < cluster->size * l->warps; i++) {
            const struct emu_warp *w = &cluster->ctas[i / l->warps].warps[i % l->warps];
            if (can_move(w, late) && !(w->repeat.found && w->repeat.events == l->events))
                return false;
        }
    return true;
}
