// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queue of operations that asynchronous engines have not finished.

#include "emu/async/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emu/run/schedule.h"
#include "emu/run/trace.h"

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
    *(op->prev ? &op->prev->next : &cluster->ops) = op;
    cluster->last_op = op;
    return op;
}

void emu_op_track(struct emu_op *op, uint32_t lanes, bool in_group)
{
    struct emu_agent *a = op->warp->agent;
    if (!a)
        return;
    a->acting = lanes;
    op->agent = emu_order_begin(a, !in_group);
    a->acting = EMU_FULL;
}

// The map that host memory of shared or global bytes belongs to.
static struct emu_race_map *map_of(const struct emu_op *op, const uint8_t *bytes, uint64_t *at)
{
    struct emu_grid *l = op->warp->launch;
    const struct emu_cluster *cluster = op->warp->cta->cluster;
    for (uint32_t i = 0; i < cluster->size; i++) {
        *at = (uint64_t)(bytes - cluster->ctas[i].shared);
        if (*at < l->shared_size)
            return &cluster->ctas[i].race;
    }
    for (uint32_t i = 0; i < l->emu->object_count; i++) {
        struct emu_object *o = l->emu->objects[i];
        *at = (uint64_t)(bytes - o->bytes);
        if (*at < o->size)
            return &o->race;
    }
    return NULL;
}

void emu_op_access_map(struct emu_op *op, struct emu_race_map *map, uint64_t at, uint32_t size,
                       enum emu_access access, enum emu_warp_agent which, enum emu_proxy proxy)
{
    const bool writes = access != EMU_LOAD, atomic = access == EMU_ATOMIC;
    if (!op->agent)
        return;
    struct emu_grid *l = op->warp->launch;
    const struct emu_who who = which ? emu_group_who(op->warp, &op->agent->view, which, op->group)
                                     : (struct emu_who){.order = &l->order,
                                                        .view = &op->agent->view,
                                                        .uid = op->agent->uid,
                                                        .clock = op->agent->clock};
    const uint32_t pc = (uint32_t)(op->in - l->module->code.at);
    const uint32_t lanes = proxy == EMU_PROXY_TENSOR ? op->core_op : 0;
    emu_race_access(&l->race, &who, lanes, map, at, size, writes,
                    emu_record_what(pc, proxy, atomic, EMU_SCOPE_GPU) |
                        (atomic ? EMU_REC_ATOMIC : 0));
}

void emu_op_access_as(struct emu_op *op, const uint8_t *bytes, uint32_t size,
                      enum emu_access access, enum emu_warp_agent which)
{
    uint64_t at;
    struct emu_race_map *map = op->agent ? map_of(op, bytes, &at) : NULL;
    if (map)
        emu_op_access_map(op, map, at, size, access, which,
                          op->is_generic ? EMU_PROXY_GENERIC : EMU_PROXY_ASYNC);
}

void emu_op_access(struct emu_op *op, const uint8_t *bytes, uint32_t size, enum emu_access access,
                   bool in_group)
{
    const enum emu_warp_agent group =
        access == EMU_LOAD ? EMU_AGENT_BULK_READ : EMU_AGENT_BULK_WRITE;
    emu_op_access_as(op, bytes, size, access, in_group ? group : EMU_AGENT_SELF);
}

void emu_op_release(const struct emu_op *op, enum emu_warp_agent which, struct emu_view *view)
{
    if (!op->agent)
        return;
    struct emu_order *order = op->agent->domain->order;
    emu_view_join(order, view, &op->agent->view);
    const uint32_t uid = op->warp->agent->uid + which;
    if (which == EMU_AGENT_UMMA)
        emu_view_learn_committed(order, view, uid, op->group + 1);
    else
        emu_view_learn(order, view, uid, op->group + 1);
}

void emu_op_signal(const struct emu_op *op, struct emu_view *view)
{
    if (op->agent)
        emu_order_complete(op->agent, view);
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
    if (op->agent)
        emu_order_end(op->agent);
    if (op->engine->drop)
        op->engine->drop(op);
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
