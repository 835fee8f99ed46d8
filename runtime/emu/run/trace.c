// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The timeline: runs, waits and flights, handed out one by one.

#include "emu/run/trace.h"

#include <string.h>

#include "emu/run/run.h"

enum { DEFAULT_COST = 2 };

uint16_t emu_trace_cost(const struct emu_insn *in)
{
    static const struct {
        emu_run_fn run;
        uint16_t cycles;
    } rows[] = {
#define COST(name, cycles) {emu_run_##name, cycles},
#include "emu/run/costs.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].run == in->run)
            return rows[i].cycles;
    return DEFAULT_COST;
}

// The rest of an event: `e` says what it is, its stretch and its engine. It is of the instructions
// from `in` to `last`, which may be NULL when nothing ran.
static void emit(struct emu_warp *w, const struct emu_insn *in, const struct emu_insn *last,
                 struct emu_trace_event e)
{
    const struct emu_grid *l = w->launch;
    const char *file = NULL;
    if (e.end <= e.start)
        return;
    memcpy(e.cta, w->cta->id, sizeof e.cta);
    e.warp = w->index;
    if (in) {
        e.ptx_line = in->line;
        e.ptx_last = last->line;
        emu_source(l->module, in, &e.file, &e.source_line);
        emu_source(l->module, last, &file, &e.source_last);
    }
    if (!e.file || file != e.file)
        e.source_last = e.source_line;
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

// What it did since it last waited, or could have, is one run.
static void end_run(struct emu_warp *w, uint64_t end)
{
    emit(w, w->run_in, w->in,
         (struct emu_trace_event){
             .kind = EMU_TRACE_RUN, .name = "run", .start = w->run_from, .end = end});
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
    end_run(w, from);
    emit(
        w, w->in, w->in,
        (struct emu_trace_event){.kind = EMU_TRACE_WAIT, .name = what, .start = from, .end = time});
    w->time = w->run_from = time > from ? time : from;
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
    static const char *const units[EMU_UNITS] = {[EMU_UNIT_COPY] = "copy engine",
                                                 [EMU_UNIT_BULK] = "bulk engine",
                                                 [EMU_UNIT_MATRIX] = "tensor core"};
    struct emu_warp *w = op->warp;
    const struct emu_engine *engine = op->engine;
    if (!w->launch->is_traced)
        return;
    const uint64_t cycles = engine->cycles ? engine->cycles(op) : 1;
    uint64_t *free_at = &w->cta->engine_free[engine->unit];
    const uint64_t start = w->time > *free_at ? w->time : *free_at;
    *free_at = start + cycles;
    op->end_time = start + cycles + engine->latency;
    emit(w, op->in, op->in,
         (struct emu_trace_event){.kind = EMU_TRACE_FLIGHT,
                                  .name = engine->name,
                                  .engine = units[engine->unit],
                                  .group = engine->unit == EMU_UNIT_COPY ? op->group : 0,
                                  .start = w->time,
                                  .end = op->end_time});
}
