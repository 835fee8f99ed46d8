// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Several host threads for one launch.
//
// Worker i has the clusters i, i + N, i + 2N ...: the assignment is fixed and affects no result.
// Each worker has a separate launch, with its own trap, findings and caches. Workers share the
// memory of the device, in which independent clusters do not write to the same bytes. The caller's
// allocator is called by one worker at a time.
//
// After a fault in a cluster, later clusters need not run any more. Earlier ones must: one of them
// may fault too, and that fault is the one that a single thread would have met.

#include "emu/run/team.h"

#include <pthread.h>
#include <string.h>

#include "emu/async/tensor_copy.h"
#include "emu/run/launch.h"
#include "emu/run/run.h"

// The stack of a worker; the C library's default is small on some systems.
enum { STACK = 2 << 20 };

struct emu_team {
    pthread_mutex_t lock;    // guards the rest
    tir_allocator allocator; // the caller's
    uint64_t lowest_fault;   // a cluster
};

struct worker {
    struct emu_grid grid;
    struct emu_findings findings;
    tir_error error;
    tir_status status;
    pthread_t thread;
    bool is_started;
};

// --- independence ---

static bool is_independent(const struct emu_insn *in)
{
#define INDEPENDENT(name, condition) \
    if (in->run == emu_run_##name)   \
        return condition;
#include "emu/run/independent.def"
    return false;
}

bool emu_is_independent(const struct emu_grid *l)
{
    const struct emu_module *m = l->module;
    if (l->emu->options.check > EMU_CHECK_MEMORY || l->emu->options.trace)
        return false;
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        const struct emu_func *f = m->funcs.at[i];
        if (!f->is_reached)
            continue;
        if (!f->is_defined) // printf, malloc: what the CTAs share
            return false;
        for (uint32_t pc = f->entry; pc < f->end; pc++)
            if (!is_independent(&m->code.at[pc]))
                return false;
    }
    return true;
}

bool emu_cancels(const struct emu_grid *l)
{
    const struct emu_module *m = l->module;
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        const struct emu_func *f = m->funcs.at[i];
        for (uint32_t pc = f->entry; f->is_reached && f->is_defined && pc < f->end; pc++)
            if (m->code.at[pc].run == emu_run_try_cancel)
                return true;
    }
    return false;
}

// --- what the workers share ---

static void *resize_alone(void *user, void *ptr, size_t old_size, size_t new_size)
{
    struct emu_team *team = user;
    pthread_mutex_lock(&team->lock);
    void *p = emu_resize(&team->allocator, ptr, old_size, new_size);
    pthread_mutex_unlock(&team->lock);
    return p;
}

bool emu_team_is_over(struct emu_team *team, uint64_t cluster)
{
    pthread_mutex_lock(&team->lock);
    const bool is_over = team->lowest_fault < cluster;
    pthread_mutex_unlock(&team->lock);
    return is_over;
}

// --- workers ---

static void *work(void *user)
{
    struct worker *w = user;
    struct emu_team *team = w->grid.team;
    w->status = emu_grid_run(&w->grid);
    pthread_mutex_lock(&team->lock);
    if (w->status && w->grid.cluster_now < team->lowest_fault)
        team->lowest_fault = w->grid.cluster_now;
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

static void start(struct worker *w, const struct emu_grid *l, struct emu_team *team, uint32_t i,
                  uint32_t workers)
{
    *w = (struct worker){.grid = *l};
    w->grid.team = team;
    w->grid.next_cluster = i;
    w->grid.stride = workers;
    w->grid.trap.error = &w->error;
    w->grid.findings = &w->findings;
    w->findings.arena.allocator = l->emu->allocator;
    if (i == 0)
        return;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    w->is_started = pthread_create(&w->thread, &attributes, work, w) == 0;
    pthread_attr_destroy(&attributes);
}

// The launch takes over the fault of the lowest cluster, and what was found there.
static tir_status outcome(struct emu_grid *l, struct worker *all, uint32_t workers)
{
    struct worker *worst = NULL;
    for (uint32_t i = 0; i < workers; i++) {
        struct worker *w = &all[i];
        l->clock += w->grid.clock;
        if (w->status && (!worst || w->grid.cluster_now < worst->grid.cluster_now))
            worst = w;
    }
    for (uint32_t i = 0; i < workers; i++) {
        struct worker *w = &all[i];
        w->findings.arena.allocator = l->emu->allocator;
        if (w != worst)
            emu_arena_free(&w->findings.arena);
    }
    if (!worst)
        return TIR_OK;
    *l->findings = worst->findings;
    *l->trap.error = worst->error;
    return worst->status;
}

tir_status emu_team_run(struct emu_grid *l, uint32_t workers)
{
    struct emu *emu = l->emu;
    const size_t size = workers * sizeof(struct worker);
    struct emu_team team = {.allocator = emu->allocator, .lowest_fault = UINT64_MAX};
    struct worker *all = emu_resize(&emu->allocator, NULL, 0, size);
    if (!all)
        return tir_error_set(l->trap.error, TIR_ERR_NO_MEMORY, "out of memory");
    if (pthread_mutex_init(&team.lock, NULL)) {
        emu_resize(&emu->allocator, all, size, 0);
        return tir_error_set(l->trap.error, TIR_ERR_NO_MEMORY, "out of memory");
    }
    if (emu->allocator.resize)
        emu->allocator = (tir_allocator){resize_alone, &team};
    for (uint32_t i = 0; i < workers; i++)
        start(&all[i], l, &team, i, workers);
    for (uint32_t i = 0; i < workers; i++) // the share of a thread that could not be had, too
        if (!all[i].is_started)
            work(&all[i]);
    for (uint32_t i = 0; i < workers; i++)
        if (all[i].is_started)
            pthread_join(all[i].thread, NULL);
    emu->allocator = team.allocator;
    pthread_mutex_destroy(&team.lock);
    const tir_status status = outcome(l, all, workers);
    emu_resize(&emu->allocator, all, size, 0);
    return status;
}
