// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bulk copies of plain bytes, and the groups and signals of all bulk copies.

#include "emu/async/bulk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "emu/async/cp_async.h"
#include "emu/run/run.h"
#include "emu/run/trace.h"

// --- operations ---

static bool is_shared(const struct emu_bulk *b, const uint8_t *at)
{
    const struct emu_cluster *cluster = b->op.warp->cta->cluster;
    for (uint32_t i = 0; i < cluster->size; i++)
        if (emu_op_is_of(&cluster->ctas[i], at))
            return true;
    return false;
}

static void convert(const struct emu_bulk *b, uint8_t *at, uint32_t size)
{
    for (uint32_t k = 0; k < size; k += 4) {
        uint32_t bits;
        memcpy(&bits, at + k, 4);
        bits = b->convert(bits);
        memcpy(at + k, &bits, 4);
    }
}

static void read_sources(struct emu_op *op)
{
    struct emu_bulk *b = (struct emu_bulk *)op;
    uint8_t *to = b->data;
    for (uint32_t i = 0; i < b->run_count; i++) {
        const struct emu_run *r = &b->runs[i];
        if (r->from && op->warp->launch->emu->options.check &&
            !emu_all_set(r->from_shadow, r->size))
            emu_op_fault(op, "uninitialised %s memory is read by a bulk copy",
                         is_shared(b, r->from) ? "shared" : "global");
        if (r->from) {
            memcpy(to, r->from, r->size);
            emu_op_access(op, r->from, r->size, EMU_LOAD, !b->barrier_count);
            if (b->convert)
                convert(b, to, r->size);
        } else {
            for (uint32_t k = 0; k < r->size; k += b->element)
                memcpy(to + k, &b->fill, b->element); // little endian
        }
        to += r->size;
    }
}

static void write_run(const struct emu_bulk *b, const struct emu_run *r, const uint8_t *from)
{
    if (!b->combine) {
        memcpy(r->to, from, r->size);
    } else {
        for (uint32_t k = 0; k < r->size; k += b->element) {
            uint64_t old = 0, value = 0;
            memcpy(&old, r->to + k, b->element);
            memcpy(&value, from + k, b->element);
            value = b->combine(old, value, 0);
            memcpy(r->to + k, &value, b->element);
        }
    }
    memset(r->to_shadow, EMU_SET, r->size);
}

static void finish(struct emu_op *op)
{
    struct emu_bulk *b = (struct emu_bulk *)op;
    const uint8_t *from = b->data;
    for (uint32_t i = 0; i < b->run_count; i++) {
        if (b->runs[i].to) {
            emu_op_access(op, b->runs[i].to, b->runs[i].size, b->combine ? EMU_ATOMIC : EMU_STORE,
                          !b->barrier_count);
            write_run(b, &b->runs[i], from);
        }
        from += b->runs[i].size;
    }
    const struct emu_by by = emu_by_op(op);
    for (uint32_t i = 0; i < b->barrier_count; i++) {
        emu_op_signal(op, &b->barriers[i]->view);
        emu_mbarrier_complete(b->barriers[i], &by, b->bytes);
    }
}

static void drop(struct emu_op *op)
{
    struct emu_bulk *b = (struct emu_bulk *)op;
    struct emu_grid *l = op->warp->launch;
    emu_launch_free(l, b->data, b->data_size);
    emu_launch_free(l, b->runs, b->run_cap * sizeof *b->runs);
}

static void describe(const struct emu_op *op, char *text, size_t size)
{
    const struct emu_bulk *b = (const struct emu_bulk *)op;
    if (b->barrier_count)
        emu_mbarrier_describe(b->barriers[0], text, size);
    else
        snprintf(text, size, "bulk group %u of its thread", op->group);
}

static bool touches(const struct emu_op *op, const struct emu_cta *cta)
{
    const struct emu_bulk *b = (const struct emu_bulk *)op;
    for (uint32_t i = 0; i < b->run_count; i++)
        if (emu_op_is_of(cta, b->runs[i].to) ||
            (!op->is_read && emu_op_is_of(cta, b->runs[i].from)))
            return true;
    return false;
}

// About what one multiprocessor gets of the memory's bandwidth.
static uint64_t cycles(const struct emu_op *op)
{
    return ((const struct emu_bulk *)op)->data_size / 24 + 1;
}

static const struct emu_engine engine = {.name = "bulk copy",
                                         .unit = EMU_UNIT_BULK,
                                         .latency = 600,
                                         .cycles = cycles,
                                         .read = read_sources,
                                         .finish = finish,
                                         .drop = drop,
                                         .touches = touches,
                                         .describe = describe};

struct emu_bulk *emu_bulk_new(struct emu_warp *w, uint32_t lane)
{
    struct emu_bulk *b = emu_op_new(w, &engine, lane, sizeof *b);
    b->element = 1;
    return b;
}

void emu_bulk_run(struct emu_bulk *b, struct emu_run run)
{
    if (b->run_count == b->run_cap) {
        const uint32_t cap = b->run_cap ? b->run_cap * 2 : 4;
        b->runs = emu_launch_alloc(b->op.warp->launch, b->runs, b->run_cap * sizeof *b->runs,
                                   cap * sizeof *b->runs);
        b->run_cap = cap;
    }
    b->runs[b->run_count++] = run;
}

void emu_bulk_issue(struct emu_bulk *b)
{
    size_t size = 0;
    for (uint32_t i = 0; i < b->run_count; i++) {
        const struct emu_run *r = &b->runs[i];
        size += r->size;
        if (r->to && is_shared(b, r->to) && !b->combine)
            memset(r->to_shadow, EMU_IN_FLIGHT, r->size);
    }
    b->data = emu_launch_alloc(b->op.warp->launch, NULL, 0, size + 1);
    b->data_size = size + 1;
    b->op.group = b->op.warp->bulk_group[b->op.lane];
    b->op.barriers = b->barriers;
    b->op.barrier_count = b->barrier_count;
    emu_op_track(&b->op, 1u << b->op.lane, !b->barrier_count);
    emu_op_issued(&b->op);
}

// --- groups ---

EMU_RUN(bulk_commit)
{
    (void)in;
    for (uint32_t i = 0; i < EMU_WARP; i++)
        w->bulk_group[i] += mask >> i & 1;
}

// offset: how many of the newest groups may stay pending; op: 1 when reading is enough
EMU_RUN(bulk_wait)
{
    uint64_t time = 0;
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        const int64_t end = (int64_t)w->bulk_group[i] - in->offset;
        if (!(mask >> i & 1) || end <= 0)
            continue;
        emu_group_wait(w, EMU_AGENT_BULK_READ, (uint32_t)end);
        if (!in->op)
            emu_group_wait(w, EMU_AGENT_BULK_WRITE, (uint32_t)end);
    }
    for (struct emu_op *op = w->cta->cluster->ops, *next; op; op = next) {
        next = op->next;
        if (op->engine != &engine || op->warp != w || !(mask >> op->lane & 1) ||
            ((const struct emu_bulk *)op)->barrier_count ||
            op->group + (uint64_t)in->offset >= w->bulk_group[op->lane])
            continue;
        emu_trace_reach(&time, op->end_time);
        if (in->op)
            emu_op_read(op);
        else
            emu_op_finish(op);
    }
    emu_trace_wait(w, time, "bulk group");
}

// --- copies of plain bytes ---

// One side of a copy: a run of memory that lies in one object.
static void side(struct emu_warp *w, uint32_t lane, enum emu_space space, uint64_t address,
                 uint32_t size, bool is_write, struct emu_cell *out)
{
    if (space == EMU_GLOBAL) {
        *out = emu_global_range(w, lane, address, size, is_write);
        return;
    }
    uint32_t offset;
    struct emu_cta *cta = emu_shared_at(w, lane, space, address, size, &offset);
    *out = (struct emu_cell){cta->shared + offset, cta->shared_shadow + offset};
}

// The destination and the barrier have one place in every CTA of the mask.
static void multicast(struct emu_bulk *b, struct emu_cell to, struct emu_cell from, uint32_t size,
                      uint32_t ctas)
{
    struct emu_warp *w = b->op.warp;
    struct emu_cluster *cluster = w->cta->cluster;
    uint32_t rank = 0;
    while (!emu_op_is_of(&cluster->ctas[rank], to.bytes))
        rank++;
    const size_t at = (size_t)(to.bytes - cluster->ctas[rank].shared);
    if (ctas >> w->cta->cluster->size)
        emu_fault(w, b->op.lane, "multicast to CTAs 0x%x of a cluster of %u", ctas,
                  w->cta->cluster->size);
    const uint32_t offset = b->barriers[0]->offset;
    b->barrier_count = 0;
    for (uint32_t i = 0; i < w->cta->cluster->size; i++) {
        if (!(ctas >> i & 1))
            continue;
        struct emu_cta *cta = &cluster->ctas[i];
        emu_bulk_run(b, (struct emu_run){cta->shared + at, cta->shared_shadow + at, from.bytes,
                                         from.shadow, size});
        b->barriers[b->barrier_count++] = emu_mbarrier_of_copy(
            w, b->op.lane, EMU_SHARED_CLUSTER, offset + EMU_SHARED_START + emu_rank_bits(i));
    }
}

// Bit i of the mask says whether byte i of each 16 is copied: a run for each bytes in a row.
static void masked(struct emu_bulk *b, struct emu_cell to, struct emu_cell from, uint32_t size,
                   uint16_t bytes)
{
    for (uint32_t at = 0, end; at < size; at = end) {
        const bool copied = bytes >> at % 16 & 1;
        for (end = at + 1; end < size && (bytes >> end % 16 & 1) == copied; end++)
            ;
        if (copied)
            emu_bulk_run(b, (struct emu_run){to.bytes + at, to.shadow + at, from.bytes + at,
                                             from.shadow + at, end - at});
    }
}

// list: destination, source, bytes, and, or EMU_NO_REF: barrier, mask of CTAs, mask of bytes;
// space: of the destination; type2: of the source; atom: a reduction; size: its element
EMU_RUN(bulk_copy)
{
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    uint64_t to[EMU_WARP], from[EMU_WARP], barrier[EMU_WARP];
    const uint32_t *bytes = emu_at_ref(w, args[2].ref);
    emu_arg_addresses(w, &args[0], to);
    emu_arg_addresses(w, &args[1], from);
    if (args[3].ref != EMU_NO_REF)
        emu_arg_addresses(w, &args[3], barrier);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        struct emu_cell a, c;
        if (!(mask >> i & 1))
            continue;
        if (to[i] % 16 || from[i] % 16 || bytes[i] % 16)
            emu_fault(w, i, "misaligned bulk copy of %u bytes from 0x%" PRIx64 " to 0x%" PRIx64,
                      bytes[i], from[i], to[i]);
        if (bytes[i] == 0)
            continue;
        struct emu_bulk *b = emu_bulk_new(w, i);
        b->combine = in->atom;
        b->element = in->atom ? in->size : 1;
        b->bytes = bytes[i];
        side(w, i, (enum emu_space)in->space, to[i], bytes[i], true, &a);
        side(w, i, (enum emu_space)in->type2, from[i], bytes[i], false, &c);
        if (args[3].ref != EMU_NO_REF) {
            b->barriers[0] = emu_mbarrier_of_copy(w, i, EMU_SHARED_CLUSTER, barrier[i]);
            b->barrier_count = 1;
        }
        if (args[4].ref != EMU_NO_REF)
            multicast(b, a, c, bytes[i], ((const uint16_t *)emu_at_ref(w, args[4].ref))[i]);
        else if (args[5].ref != EMU_NO_REF)
            masked(b, a, c, bytes[i], ((const uint16_t *)emu_at_ref(w, args[5].ref))[i]);
        else
            emu_bulk_run(b, (struct emu_run){a.bytes, a.shadow, c.bytes, c.shadow, bytes[i]});
        emu_bulk_issue(b);
    }
}
