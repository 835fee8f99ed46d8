// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The schedule: which warp runs, and when asynchronous operations execute.
//
//   lazy         warps in turn; an operation only if no warp can continue, one at a time
//   eager        warps in turn; an operation as soon as it is issued
//   random       a random warp for a random while, or a random operation
//   adversarial  the warp or operation with the highest random priority, with a few random changes
//                of priority: finds bugs that need few preemptions (Burckhardt et al., "A
//                randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010)
//
// All are deterministic functions of the seed. Clusters run one after another. A cluster that keeps
// running may be waiting for one that has not started, as in a grid-wide barrier. So after a while
// the next one starts too, until as many are resident as there are multiprocessors. Those of a
// cooperative launch all start at once. Where clusters take the place of others
// (clusterlaunchcontrol) there is no such patience: as many as can be resident are. Independent
// clusters (team.h) never run together, and each has its own schedule.
//
// A turn is a stall if no warp did more than test its wait, or if all repeat themselves (repeat.c).
// A stall lets an operation execute. Without an operation, the time limits of waits expire. If all
// warps repeat themselves even then, or if limits have often expired without progress, the launch
// is in a deadlock.

#include "emu/run/schedule.h"

#include <stdio.h>
#include <time.h>

#include "emu/async/op.h"
#include "emu/run/repeat.h"
#include "emu/run/team.h"
#include "emu/run/trace.h"

enum {
    PATIENCE = 8,         // turns without a finished cluster before another one joins
    SLICE = 16384,        // instructions of a warp in its turn
    SHORT_SLICE = 64,     // the longest of a random schedule
    OLD = 1 << 20,        // instructions after which an operation is not put off any more
    STALLS = 1024,        // before a deadlock is declared
    QUIET = 16,           // turns in which nothing happened, before repetition is tested
    LOOK = 8,             // turns between two looks then
    CHANGE_POINTS = 4096, // instructions between two changes of priorities, on average
    TOP = 1 << 30         // random priorities are above this, and lost ones below
};

static uint32_t next_random(struct emu_schedule *s)
{
    s->random += 0x9e3779b97f4a7c15; // splitmix64
    uint64_t z = s->random;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (uint32_t)(z >> 32);
}

void emu_schedule_issued(struct emu_op *op)
{
    struct emu_schedule *s = &op->warp->launch->schedule;
    op->priority = TOP + next_random(s) % TOP;
    if (s->policy == EMU_EAGER)
        emu_op_finish(op);
}

bool emu_schedule_gives_up(struct emu_grid *l)
{
    return l->schedule.policy >= EMU_RANDOM && next_random(&l->schedule) % 8 == 0;
}

void emu_schedule_warp(struct emu_warp *w)
{
    w->priority = TOP + next_random(&w->launch->schedule) % TOP;
}

// --- stalls ---

// Lets waits with a time limit give up for once. False when there is none.
static bool run_out(struct emu_grid *l)
{
    bool found = false;
    for (struct emu_cluster *cluster = l->resident; cluster; cluster = cluster->next)
        for (uint32_t i = 0; i < cluster->size * l->warps; i++) {
            struct emu_warp *w = &cluster->ctas[i / l->warps].warps[i % l->warps];
            for (uint32_t k = 0; k < w->path_count; k++) {
                struct emu_path *p = w->paths[k];
                if (p->state == EMU_PATH_MBARRIER) {
                    p->state = EMU_PATH_READY;
                    p->is_late = true;
                    found = true;
                }
                found |= p->state == EMU_PATH_READY; // it polls
            }
        }
    return found;
}

// The oldest operation of the first cluster that has one.
static struct emu_op *next_op(const struct emu_grid *l)
{
    for (const struct emu_cluster *cluster = l->resident; cluster; cluster = cluster->next)
        if (cluster->ops)
            return cluster->ops;
    return NULL;
}

static void stalled(struct emu_grid *l)
{
    struct emu_schedule *s = &l->schedule;
    struct emu_op *op = next_op(l);
    if (op) {
        emu_op_finish(op);
        return;
    }
    if (!l->is_independent && l->next_cluster < l->cluster_count && s->patience) {
        s->patience = 0; // perhaps for a cluster that has not started
        return;
    }
    const bool for_ever = emu_all_repeat(l, true);
    if (!run_out(l) || for_ever || s->stalls++ > STALLS)
        emu_hang(l, EMU_F_DEADLOCK, emu_finding_prefix(EMU_F_DEADLOCK));
}

// Whether a warp made progress in a turn in which nothing happened.
static bool moved(struct emu_grid *l, bool progress)
{
    struct emu_schedule *s = &l->schedule;
    if (progress && (++s->quiet < QUIET || s->quiet % LOOK))
        return true;
    if (!progress && next_op(l))
        return false; // it will happen now, so what the warps do is of no interest
    emu_repeat_look(l);
    return progress && !emu_all_repeat(l, false);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void check_time(struct emu_grid *l)
{
    char text[64];
    if (!l->schedule.deadline || now() < l->schedule.deadline)
        return;
    snprintf(text, sizeof text, "%s of %u ms", emu_finding_prefix(EMU_F_TIME),
             l->emu->options.time_limit);
    emu_hang(l, EMU_F_TIME, text);
}

// --- policies: one turn each, true when something came of it ---

static bool run(struct emu_warp *w, uint64_t slice)
{
    return emu_warp_run(w, slice) != 0 && !w->is_polling;
}

static bool turn_of_all(struct emu_grid *l)
{
    bool progress = false;
    for (struct emu_cluster *cluster = l->resident; cluster; cluster = cluster->next) {
        for (uint32_t c = 0; c < cluster->size; c++)
            for (uint32_t i = 0; i < l->warps; i++)
                if (cluster->ctas[c].warps[i].alive)
                    progress |= run(&cluster->ctas[c].warps[i], SLICE);
        if (cluster->ops && l->clock - cluster->ops->born > OLD)
            emu_op_finish(cluster->ops);
    }
    return progress;
}

static struct emu_cluster *random_cluster(struct emu_grid *l)
{
    uint32_t count = 0;
    for (struct emu_cluster *cluster = l->resident; cluster; cluster = cluster->next)
        count++;
    uint32_t pick = next_random(&l->schedule) % count;
    struct emu_cluster *cluster = l->resident;
    while (pick--)
        cluster = cluster->next;
    return cluster;
}

// As many picks as there are agents make a turn.
static bool turn_of_random(struct emu_grid *l)
{
    struct emu_schedule *s = &l->schedule;
    bool progress = false;
    const uint32_t warps = l->warps * l->cluster_size;
    for (uint32_t n = 0; n < 2 * warps; n++) {
        struct emu_cluster *cluster = random_cluster(l);
        if (cluster->ops && next_random(s) % 8 == 0) {
            uint32_t skip = next_random(s) % 4;
            struct emu_op *op = cluster->ops;
            while (skip-- && op->next)
                op = op->next;
            emu_op_finish(op);
            progress = true;
        }
        const uint32_t i = next_random(s) % (cluster->size * l->warps);
        struct emu_warp *w = &cluster->ctas[i / l->warps].warps[i % l->warps];
        if (w->alive)
            progress |= run(w, 1 + next_random(s) % SHORT_SLICE);
    }
    // Nobody that was picked could go on: before that counts, everybody is asked.
    return progress || turn_of_all(l);
}

static bool can_run(const struct emu_warp *w)
{
    for (uint32_t k = 0; k < w->path_count; k++)
        if (w->paths[k]->state == EMU_PATH_READY)
            return true;
    return false;
}

static bool turn_of_highest(struct emu_grid *l)
{
    struct emu_schedule *s = &l->schedule;
    struct emu_warp *best = NULL;
    struct emu_op *op = NULL;
    for (struct emu_cluster *cluster = l->resident; cluster; cluster = cluster->next) {
        for (uint32_t i = 0; i < cluster->size * l->warps; i++) {
            struct emu_warp *w = &cluster->ctas[i / l->warps].warps[i % l->warps];
            if (can_run(w) && (!best || w->priority > best->priority))
                best = w;
        }
        for (struct emu_op *o = cluster->ops; o; o = o->next)
            if (!op || o->priority > op->priority)
                op = o;
    }
    if (op && (!best || op->priority > best->priority)) {
        emu_op_finish(op);
        return true;
    }
    if (!best)
        return false;
    const bool progress = run(best, CHANGE_POINTS);
    if (best->is_polling || next_random(s) % 2) { // it looks for others, or is preempted
        best->priority = s->next_lowest ? --s->next_lowest : 0;
        if (!s->next_lowest)
            s->next_lowest = TOP;
    }
    return progress || (best->is_polling && turn_of_all(l));
}

static bool (*const turns[])(struct emu_grid *l) = {
    [EMU_LAZY] = turn_of_all,
    [EMU_EAGER] = turn_of_all,
    [EMU_RANDOM] = turn_of_random,
    [EMU_ADVERSARIAL] = turn_of_highest,
};

// --- clusters come and go ---

static uint32_t retire(struct emu_grid *l)
{
    uint32_t resident = 0;
    for (struct emu_cluster **at = &l->resident; *at;) {
        struct emu_cluster *cluster = *at;
        if (cluster->alive) {
            resident++;
            at = &cluster->next;
            continue;
        }
        while (cluster->ops) // operations that were never awaited
            emu_op_finish(cluster->ops);
        emu_trace_retire(cluster);
        *at = cluster->next;
        cluster->next = l->free;
        l->free = cluster;
        l->events++;
        l->schedule.patience = PATIENCE;
    }
    return resident;
}

static void schedule_start(struct emu_grid *l)
{
    const struct emu_options *o = &l->emu->options;
    const uint64_t deadline = l->schedule.deadline;
    l->schedule = (struct emu_schedule){.policy = o->policy,
                                        .random = o->seed + (l->next_cluster << 32),
                                        .patience = PATIENCE,
                                        .deadline = deadline,
                                        .next_lowest = TOP};
}

static void start_all(struct emu_grid *l)
{
    while (l->next_cluster < l->cluster_count) {
        l->cluster_now = l->next_cluster;
        emu_cluster_start(l);
    }
}

// Starts the next cluster if it is time. False when the launch is over.
static bool start_next(struct emu_grid *l, uint32_t resident)
{
    const uint32_t sms = l->emu->options.sm_count;
    const uint32_t most = sms > l->cluster_size && !l->is_independent ? sms / l->cluster_size : 1;
    if (l->next_cluster >= l->cluster_count)
        return resident;
    if (l->is_cooperative) {
        start_all(l);
        return true;
    }
    if (resident && ((l->schedule.patience && !l->cancels) || resident >= most))
        return true;
    if (l->team && emu_team_is_over(l->team, l->next_cluster))
        return false;
    if (l->is_independent)
        schedule_start(l);
    l->schedule.patience = PATIENCE;
    l->cluster_now = l->next_cluster;
    emu_cluster_start(l);
    return true;
}

void emu_schedule_run(struct emu_grid *l)
{
    struct emu_schedule *s = &l->schedule;
    uint32_t resident = 0;
    const uint64_t limit = l->emu->options.time_limit;
    s->deadline = limit ? now() + limit * 1000000 : 0;
    schedule_start(l);
    while (start_next(l, resident)) {
        check_time(l); // here some CTA runs, whose place can be named
        const bool progress = turns[s->policy](l);
        if (l->events != s->events) {
            s->events = l->events;
            s->stalls = s->quiet = 0;
        } else if (!moved(l, progress)) {
            stalled(l);
        }
        s->patience -= s->patience > 0;
        resident = retire(l);
    }
}
