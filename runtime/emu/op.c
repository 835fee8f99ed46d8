// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queue of operations that asynchronous engines have not finished.

#include "emu/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emu/schedule.h"
#include "emu/trace.h"

void *emu_op_new(struct emu_warp *w, const struct emu_engine *engine, uint32_t lane, size_t size)
{
    struct emu_grid *l = w->launch;
    struct emu_cluster *cluster = w->cta->cluster;
    struct emu_op *op = emu_launch_alloc(l, NULL, 0, size);
    memset(op, 0, size);
    op->engine = engine;
    op->warp = w;
    op->in = w->in;
    op->size = size;
    op->born = l->clock;
    op->lane = lane;
    op->prev = cluster->last_op;
    if (op->engine->drop)
        op->engine->drop(op);
    *(op->prev ? &op->prev->next : &cluster->ops) = op;
    cluster->last_op = op;
    return op;
}

void emu_op_issued(struct emu_op *op)
{
    emu_trace_issue(op);
    emu_schedule_issued(op);
}

void emu_op_read(struct emu_op *op)
{
    if (op->is_read || !op->engine->read)
        return;
    op->is_read = true;
    op->engine->read(op);
}

static struct emu_op *before(const struct emu_op *op)
{
    for (struct emu_op *o = op->prev; o; o = o->prev)
        if (o->engine == op->engine && o->queue == op->queue)
            return o;
    return NULL;
}

void emu_op_finish(struct emu_op *op)
{
    if (op->engine->in_order)
        for (struct emu_op *first = before(op); first; first = before(op)) {
            while (before(first))
                first = before(first);
            emu_op_read(first);
            first->engine->finish(first);
            emu_op_free(first);
        }
    emu_op_read(op);
    op->engine->finish(op);
    emu_op_free(op);
}

void emu_op_free(struct emu_op *op)
{
    struct emu_cluster *cluster = op->warp->cta->cluster;
    *(op->prev ? &op->prev->next : &cluster->ops) = op->next;
    *(op->next ? &op->next->prev : &cluster->last_op) = op->prev;
    cluster->launch->events++;
    emu_launch_free(cluster->launch, op, op->size);
}

void emu_ops_drop(struct emu_cluster *cluster)
{
    while (cluster->ops)
        emu_op_free(cluster->ops);
}

void emu_op_fault(struct emu_op *op, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    op->warp->in = op->in;
    emu_fault(op->warp, op->lane, "%s", text);
}
