// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The timeline: runs, waits and flights, handed out one by one.

#include "emu/trace.h"

#include "emu/run.h"

enum { DEFAULT_COST = 2 };

uint16_t emu_trace_cost(const struct emu_insn *in)
{
    static const struct {
        emu_run_fn run;
        uint16_t cycles;
    } rows[] = {
#define COST(name, cycles) {emu_run_##name, cycles},
#include "emu/costs.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].run == in->run)
            return rows[i].cycles;
    return DEFAULT_COST;
}

static void emit(struct emu_warp *w, const struct emu_insn *in, enum emu_trace_kind kind,
                 const char *name, uint64_t start, uint64_t end)
{
    const struct emu_grid *l = w->launch;
    struct emu_trace_event e = {.kind = kind,
                                .name = name,
                                .cta = {w->cta->id[0], w->cta->id[1], w->cta->id[2]},
                                .warp = w->index,
                                .ptx_line = in ? in->line : 0,
                                .start = start,
                                .end = end};
    if (in && in->loc)
        emu_source(l->module, in, &e.file, &e.source_line);
    if (end > start)
        l->emu->options.trace(l->emu->options.trace_user, &e);
}

// Clusters take turns on groups of multiprocessors, each as large as a cluster.
void emu_trace_cluster(struct emu_cluster *cluster)
{
    const struct emu_grid *l = cluster->launch;
    cluster->start_time = cluster->end_time = 0;
    if (!l->is_traced)
        return;
    uint32_t best = 0;
    for (uint32_t i = 1; i < l->sm_groups; i++)
        best = l->sm_time[i] < l->sm_time[best] ? i : best;
    cluster->sm_group = best;
    cluster->start_time = cluster->end_time = l->sm_time[best];
    l->sm_time[best] = UINT64_MAX; // taken
}

void emu_trace_retire(struct emu_cluster *cluster)
{
    if (cluster->launch->is_traced)
        cluster->launch->sm_time[cluster->sm_group] = cluster->end_time;
}

void emu_trace_start(struct emu_warp *w)
{
    w->time = w->run_from = w->cta->cluster->start_time;
    w->poll_from = 0;
    w->run_in = NULL;
}

// What it did since it last waited is one run.
static void end_run(struct emu_warp *w, uint64_t end)
{
    emit(w, w->run_in, EMU_TRACE_RUN, "run", w->run_from, end);
    w->run_in = NULL;
}

void emu_trace_poll(struct emu_warp *w)
{
    if (w->launch->is_traced && !w->poll_from)
        w->poll_from = w->time;
}

void emu_trace_wait(struct emu_warp *w, uint64_t time, const char *what)
{
    if (!w->launch->is_traced)
        return;
    const uint64_t from = w->poll_from ? w->poll_from : w->time;
    w->poll_from = 0;
    if (time <= from) {
        w->time = from;
        return;
    }
    end_run(w, from);
    emit(w, w->in, EMU_TRACE_WAIT, what, from, time);
    w->time = w->run_from = time;
}

void emu_trace_exit(struct emu_warp *w)
{
    if (!w->launch->is_traced)
        return;
    end_run(w, w->time);
    emu_trace_reach(&w->cta->cluster->end_time, w->time);
}

void emu_trace_issue(struct emu_op *op)
{
    struct emu_warp *w = op->warp;
    const struct emu_engine *engine = op->engine;
    if (!w->launch->is_traced)
        return;
    const uint64_t cycles = engine->cycles ? engine->cycles(op) : 1;
    uint64_t *free_at = &w->cta->engine_free[engine->unit];
    const uint64_t start = w->time > *free_at ? w->time : *free_at;
    *free_at = start + cycles;
    op->end_time = start + cycles + engine->latency;
    emit(w, op->in, EMU_TRACE_FLIGHT, engine->name, w->time, op->end_time);
}
