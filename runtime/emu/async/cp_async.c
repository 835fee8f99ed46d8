// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cp.async: copies from global to shared memory that arrive when they are waited for.
//
// The source is read when the copy is issued, as hardware may; the bytes of the destination are
// marked as in flight until the copy is done. An instruction that reads or overwrites them before
// that reports it.

#include "emu/async/cp_async.h"

#include <stdio.h>
#include <string.h>

#include "emu/async/mbarrier.h"
#include "emu/async/op.h"
#include "emu/run/run.h"
#include "emu/run/trace.h"

struct copy {
    struct emu_op op;
    uint32_t mask; // lanes it is pending for
    uint32_t size;
    uint32_t dst[EMU_WARP];   // offset in shared memory
    uint32_t group[EMU_WARP]; // the lane's commit group it belongs to
    uint8_t data[EMU_WARP][16];
};

static void land(struct copy *c, uint32_t mask)
{
    const struct emu_cta *cta = c->op.warp->cta;
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(c->mask & mask & 1u << i))
            continue;
        memcpy(cta->shared + c->dst[i], c->data[i], c->size);
        memset(cta->shared_shadow + c->dst[i], EMU_SET, c->size);
    }
    c->mask &= ~mask;
}

static void copy_finish(struct emu_op *op)
{
    land((struct copy *)op, EMU_FULL);
}

static void copy_describe(const struct emu_op *op, char *text, size_t size)
{
    (void)op;
    snprintf(text, size, "its commit group");
}

static uint64_t copy_cycles(const struct emu_op *op)
{
    const struct copy *c = (const struct copy *)op;
    return emu_popc(c->mask) * (uint64_t)c->size / 24 + 1;
}

static const struct emu_engine copy_engine = {.name = "cp.async",
                                              .unit = EMU_UNIT_COPY,
                                              .latency = 500,
                                              .cycles = copy_cycles,
                                              .finish = copy_finish,
                                              .describe = copy_describe};

void emu_arg_addresses(struct emu_warp *w, const struct emu_arg *arg, uint64_t *out)
{
    const void *base = emu_at_ref(w, arg->ref);
    for (int i = 0; i < EMU_WARP; i++)
        out[i] = arg->width == 8 ? ((const uint64_t *)base)[i] + (uint64_t)(int32_t)arg->offset
                                 : (uint32_t)(((const uint32_t *)base)[i] + arg->offset);
}

// One lane's part of a copy reads or writes.
static void copy_access(struct emu_warp *w, uint32_t lane, const struct emu_cell *cell,
                        uint32_t size, bool writes)
{
    if (!w->agent)
        return;
    const struct emu_who who = emu_group_who(w, &w->agent->view, EMU_AGENT_COPY, w->group[lane]);
    const uint32_t pc = (uint32_t)(w->in - w->launch->module->code.at);
    emu_race_access(&w->launch->race, &who, 0, cell->map, cell->at, size, writes,
                    emu_record_what(pc, EMU_PROXY_GENERIC, 0, EMU_SCOPE_CTA));
}

// The lane has waited: to the others of its warp it is as if it had stored the bytes now.
static void copy_seen(const struct copy *c, uint32_t mask)
{
    const struct emu_warp *w = c->op.warp;
    if (!w->agent)
        return;
    const struct emu_who who = emu_who_agent(w->agent);
    const uint32_t pc = (uint32_t)(c->op.in - w->launch->module->code.at);
    for (uint32_t i = 0; i < EMU_WARP; i++)
        if (mask >> i & 1)
            emu_race_access(&w->launch->race, &who, 1u << i, &w->cta->race, c->dst[i], c->size,
                            true, emu_record_what(pc, EMU_PROXY_GENERIC, 0, EMU_SCOPE_CTA));
}

// src[0] + offset: shared address; list: global address; src[2]: bytes to read, when count is 1;
// src[3]: predicate under which nothing is read; size
EMU_RUN(cp_async)
{
    uint64_t address[EMU_WARP], from[EMU_WARP];
    const uint32_t size = in->size;
    const uint32_t *bytes = emu_at_ref(w, in->src[2]);
    const uint32_t ignore = *(const uint32_t *)emu_at_ref(w, in->src[3]);
    emu_addresses(w, in, address);
    emu_arg_addresses(w, &w->launch->module->args.at[in->list], from);
    struct copy *c = emu_op_new(w, &copy_engine, emu_first_lane(mask), sizeof *c);
    c->size = size;
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        const uint32_t want = in->count ? bytes[i] : size;
        if (want > size)
            emu_fault(w, i, "cp.async: source size %u is above %u", want, size);
        if (from[i] % size)
            emu_fault_access(w, i, "misaligned", "copy source", "global", from[i], size);
        const uint32_t read = ignore >> i & 1 ? 0 : want;
        const uint32_t step = read == size ? size : 1; // part of an access: byte by byte
        for (uint32_t k = 0; k < read; k += step) {
            const struct emu_cell cell = emu_locate(w, i, EMU_GLOBAL, from[i] + k, step, EMU_LOAD);
            memcpy(c->data[i] + k, cell.bytes, step);
            copy_access(w, i, &cell, step, false);
        }
        const struct emu_cell to =
            emu_locate(w, i, (enum emu_space)in->space, address[i], size, EMU_STORE);
        if (to.bytes < w->cta->shared || to.bytes >= w->cta->shared + w->launch->shared_size)
            emu_fault(w, i, "cp.async writes outside of shared memory");
        copy_access(w, i, &to, size, true);
        memset(to.shadow, EMU_IN_FLIGHT, size);
        c->dst[i] = (uint32_t)(to.bytes - w->cta->shared);
        c->group[i] = w->group[i];
    }
    c->mask = mask;
    c->op.group = w->group[c->op.lane] + 1;
    emu_op_issued(&c->op);
}

// Finishes what a warp's lanes have pending: all, or what is at least `behind` groups old. `waits`:
// the lanes go on with that. Gives when the last of it was complete.
static uint64_t copies_land(struct emu_warp *w, uint32_t mask, uint32_t behind, bool all,
                            bool waits)
{
    uint64_t time = 0;
    for (struct emu_op *op = w->cta->cluster->ops, *next; op; op = next) {
        next = op->next;
        if (op->engine != &copy_engine || op->warp != w)
            continue;
        struct copy *c = (struct copy *)op;
        uint32_t due = 0;
        for (uint32_t i = 0; i < EMU_WARP; i++)
            if (c->mask & mask & 1u << i && (all || c->group[i] + behind < w->group[i]))
                due |= 1u << i;
        if (due)
            emu_trace_reach(&time, op->end_time);
        land(c, due);
        if (waits)
            copy_seen(c, due);
        if (!c->mask)
            emu_op_free(op);
    }
    return time;
}

EMU_RUN(cp_commit)
{
    (void)in;
    for (uint32_t i = 0; i < EMU_WARP; i++)
        w->group[i] += mask >> i & 1;
}

// offset: how many of the newest groups may stay pending; op: 1 for wait_all
EMU_RUN(cp_wait)
{
    const uint32_t behind = (uint32_t)in->offset;
    for (uint32_t i = 0; i < EMU_WARP; i++)
        if (mask >> i & 1 && (in->op || w->group[i] > behind))
            emu_group_wait(w, EMU_AGENT_COPY, in->op ? w->group[i] + 1 : w->group[i] - behind);
    emu_trace_wait(w, copies_land(w, mask, behind, in->op, true), "cp.async");
}

// --- cp.async.mbarrier.arrive: an arrival once the thread's copies before it are done ---

struct arrival {
    struct emu_op op;
    struct emu_mbarrier *barrier[EMU_WARP];
    uint32_t mask;
    uint32_t group[EMU_WARP]; // that the lane's copies before it belong to, at most
};

static void arrival_finish(struct emu_op *op)
{
    struct arrival *a = (struct arrival *)op;
    emu_trace_reach(&op->end_time, copies_land(op->warp, a->mask, 0, true, false));
    struct emu_by by = emu_by_op(op);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(a->mask >> i & 1))
            continue;
        if (op->warp->agent)
            emu_view_learn(&op->warp->launch->order, &a->barrier[i]->view,
                           op->warp->agent->uid + EMU_AGENT_COPY, a->group[i] + 1);
        by.lane = i;
        emu_mbarrier_arrive(a->barrier[i], &by, 1);
    }
}

static void arrival_describe(const struct emu_op *op, char *text, size_t size)
{
    const struct arrival *a = (const struct arrival *)op;
    emu_mbarrier_describe(a->barrier[op->lane], text, size);
}

static const struct emu_engine arrival_engine = {
    .name = "cp.async.mbarrier.arrive", .finish = arrival_finish, .describe = arrival_describe};

// Lanes whose copies an arrival on an mbarrier is going to tell of.
static uint32_t lanes_that_arrive(const struct emu_warp *w)
{
    uint32_t lanes = 0;
    for (const struct emu_op *op = w->cta->cluster->ops; op; op = op->next)
        if (op->engine == &arrival_engine && op->warp == w)
            lanes |= ((const struct arrival *)op)->mask;
    return lanes;
}

void emu_copies_exit(struct emu_warp *w, uint32_t mask)
{
    const uint32_t quiet = mask & ~lanes_that_arrive(w);
    for (const struct emu_op *op = w->cta->cluster->ops; op; op = op->next)
        if (op->engine == &copy_engine && op->warp == w && ((const struct copy *)op)->mask & quiet)
            emu_op_left(op);
    copies_land(w, mask, 0, true, false);
}

// src[0] + offset: address; op: 1 for .noinc
EMU_RUN(cp_mbarrier_arrive)
{
    uint64_t address[EMU_WARP];
    emu_addresses(w, in, address);
    struct arrival *a = emu_op_new(w, &arrival_engine, emu_first_lane(mask), sizeof *a);
    a->mask = mask;
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        a->group[i] = w->group[i];
        a->barrier[i] = emu_mbarrier_at(w, i, (enum emu_space)in->space, address[i]);
        if (!in->op)
            a->barrier[i]->pending++; // the arrival to come is one more than was expected
    }
    a->op.barriers = a->barrier;
    a->op.barrier_count = EMU_WARP;
    emu_op_issued(&a->op);
}
