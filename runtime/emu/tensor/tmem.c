// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor memory: allocation, loads and stores by warps, waits.
//
// tcgen05.ld and tcgen05.st move their data at once; that they may do it later shows in the order
// of their accesses, and in the watch over the registers of a load (wgmma_watch.c). Products and
// copies are operations in flight (umma.c); words they will write are marked, so a load that does
// not wait for them is found.

#include "emu/tensor/tmem.h"

#include <stdalign.h>
#include <string.h>

#include "emu/run/run.h"
#include "emu/tensor/matrix.h"
#include "emu/tensor/umma.h"
#include "emu/tensor/wgmma.h"

struct emu_tmem *emu_tmem_of(struct emu_cta *cta)
{
    if (!cta->tmem) {
        cta->tmem = emu_launch_alloc(cta->launch, NULL, 0, sizeof *cta->tmem);
        memset(cta->tmem, 0, sizeof *cta->tmem);
        cta->tmem->race.size = sizeof cta->tmem->words;
        cta->tmem->race.is_tensor = true;
    }
    return cta->tmem;
}

void emu_tmem_start(struct emu_cta *cta)
{
    struct emu_tmem *t = cta->tmem;
    if (!t)
        return;
    t->is_relinquished = false;
    t->last = 0;
    t->cta_group = 0;
    t->turns = 0;
}

void emu_tmem_forget(struct emu_cta *cta)
{
    struct emu_tmem *t = cta->tmem;
    if (!t)
        return;
    emu_race_forget(&cta->launch->race, &t->race);
    emu_view_clear(&t->freed, &cta->cluster->domain);
}

void emu_tmem_free(struct emu_cta *cta)
{
    if (cta->tmem)
        emu_launch_free(cta->launch, cta->tmem, sizeof *cta->tmem);
    cta->tmem = NULL;
}

void emu_tmem_check(struct emu_warp *w, uint32_t lane, struct emu_cta *cta, uint32_t column)
{
    if (column >= EMU_TMEM_COLUMNS || !cta->tmem || !cta->tmem->owner[column / EMU_TMEM_UNIT])
        emu_fault(w, lane, "tensor memory not allocated: column %u", column);
}

void emu_tmem_exit(struct emu_warp *w)
{
    const struct emu_tmem *t = w->cta->tmem;
    for (uint32_t i = 0; t && i < EMU_TMEM_COLUMNS / EMU_TMEM_UNIT; i++)
        if (t->owner[i])
            emu_fault(w, 0, "tensor memory not freed: %u columns from %u when the CTA exits",
                      t->owner[i], i * EMU_TMEM_UNIT);
}

void emu_tmem_group(struct emu_warp *w, bool is_pair)
{
    struct emu_tmem *t = emu_tmem_of(w->cta);
    const uint8_t group = is_pair ? 2 : 1;
    if (t->cta_group && t->cta_group != group)
        emu_fault(w, 0, "tensor memory: cta_group::%u in a kernel that has used cta_group::%u",
                  group, t->cta_group);
    t->cta_group = group;
}

static void access_map(const struct emu_warp *w, const struct emu_who *who, uint32_t lanes,
                       uint32_t lane, uint32_t column, uint32_t count, bool is_store)
{
    const uint32_t pc = (uint32_t)(w->in - w->launch->module->code.at);
    emu_race_access(&w->launch->race, who, lanes, &w->cta->tmem->race,
                    emu_tmem_offset(lane, column), 4 * count, is_store,
                    emu_record_what(pc, EMU_PROXY_ASYNC, 0, EMU_SCOPE_CTA));
}

// --- allocation ---

static uint32_t uniform(struct emu_warp *w, uint32_t ref, const char *what)
{
    const uint32_t *v = emu_at_ref(w, ref);
    for (uint32_t i = 1; i < EMU_WARP; i++)
        if (v[i] != v[0])
            emu_fault(w, i, "the %s of a tcgen05 instruction is not the same in all lanes", what);
    return v[0];
}

static uint32_t columns_of(struct emu_warp *w, uint32_t ref)
{
    const uint32_t n = uniform(w, ref, "number of columns");
    if (n < EMU_TMEM_UNIT || n > EMU_TMEM_COLUMNS || n & (n - 1))
        emu_fault(w, 0, "tensor memory is allocated in powers of two from 32 to 512, not %u", n);
    return n;
}

// The first free run that starts at a multiple of its length; the number of units when none is.
static uint32_t find_free(const struct emu_tmem *t, uint32_t units)
{
    const uint32_t all = EMU_TMEM_COLUMNS / EMU_TMEM_UNIT;
    for (uint32_t at = 0; at + units <= all; at += units) {
        uint32_t i = 0;
        while (i < units && !t->owner[at + i])
            i++;
        if (i == units)
            return at;
    }
    return all;
}

static void wait_again(struct emu_warp *w)
{
    w->path->pc--;
    w->yield = w->is_polling = true;
}

// Whether the peer has come to its part of an instruction of the pair, which blocks until then.
static bool peer_has_come(struct emu_warp *w, const struct emu_insn *in)
{
    if (!(in->op & EMU_UMMA_PAIR))
        return true;
    if ((w->cta->rank | 1u) >= w->cta->cluster->size)
        emu_fault(w, 0, "cta_group::2 in a CTA without a peer");
    const struct emu_tmem *peer = w->cta->cluster->ctas[w->cta->rank ^ 1].tmem;
    struct emu_tmem *t = emu_tmem_of(w->cta);
    if (!w->is_at_pair) {
        w->is_at_pair = true;
        t->turns++;
        w->launch->events++;
    }
    if (!peer || peer->turns < t->turns) {
        wait_again(w);
        return false;
    }
    return true;
}

// src[0] + offset: where the address goes; src[1]: columns. Waits until there are as many.
EMU_RUN(tmem_alloc)
{
    uint64_t address[EMU_WARP];
    if (!emu_whole_warp(w, mask))
        return;
    struct emu_tmem *t = emu_tmem_of(w->cta);
    emu_tmem_group(w, in->op & EMU_UMMA_PAIR);
    const uint32_t n = columns_of(w, in->src[1]), at = find_free(t, n / EMU_TMEM_UNIT);
    if (t->is_relinquished)
        emu_fault(w, 0, "tensor memory: tcgen05.alloc after relinquish_alloc_permit");
    if (t->last && n > t->last)
        emu_fault(w, 0, "tensor memory: %u columns after an allocation of %u: none may be larger",
                  n, t->last);
    if (!peer_has_come(w, in))
        return;
    if (at * EMU_TMEM_UNIT >= EMU_TMEM_COLUMNS) {
        wait_again(w);
        return;
    }
    w->is_at_pair = false;
    t->last = (uint16_t)n;
    for (uint32_t i = 0; i < n / EMU_TMEM_UNIT; i++)
        t->owner[at + i] = (uint16_t)n;
    t->starts[at] = true;
    if (w->agent)
        emu_order_acquire(w->agent, &t->freed);
    emu_addresses(w, in, address);
    const uint32_t value = at * EMU_TMEM_UNIT;
    const struct emu_cell to =
        emu_resolve(w, 0, (enum emu_space)in->space, address[0], sizeof value, EMU_STORE);
    memcpy(to.bytes, &value, sizeof value);
    memset(to.shadow, EMU_SET, sizeof value);
}

// src: address, columns
EMU_RUN(tmem_dealloc)
{
    if (!emu_whole_warp(w, mask))
        return;
    struct emu_tmem *t = emu_tmem_of(w->cta);
    emu_tmem_group(w, in->op & EMU_UMMA_PAIR);
    const uint32_t at = uniform(w, in->src[0], "address"), n = columns_of(w, in->src[1]);
    const uint32_t first = at / EMU_TMEM_UNIT;
    const struct emu_who who = w->agent ? emu_who_agent(w->agent) : (struct emu_who){0};
    if (at % EMU_TMEM_UNIT || at >= EMU_TMEM_COLUMNS || !t->starts[first] || t->owner[first] != n)
        emu_fault(w, 0, "tensor memory: no allocation of %u columns starts at 0x%x", n, at);
    if (!peer_has_come(w, in))
        return;
    w->is_at_pair = false;
    for (uint32_t lane = 0; lane < EMU_TMEM_LANES; lane++) {
        if (memchr(t->shadow[lane] + at, EMU_IN_FLIGHT, n))
            emu_fault(w, 0, "tensor memory freed too early: an operation in flight writes it");
        memset(t->shadow[lane] + at, EMU_UNSET, n);
        if (w->agent)
            access_map(w, &who, EMU_FULL, lane, at, n, true);
    }
    if (w->agent)
        emu_order_release(w->agent, &t->freed);
    memset(t->owner + first, 0, n / EMU_TMEM_UNIT * sizeof *t->owner);
    t->starts[first] = false;
    w->launch->events++;
}

EMU_RUN(tmem_relinquish)
{
    if (!emu_whole_warp(w, mask))
        return;
    emu_tmem_group(w, in->op & EMU_UMMA_PAIR);
    emu_tmem_of(w->cta)->is_relinquished = true;
}

// --- loads and stores ---

// The lane and column, from the instruction's address on, that register r of a thread holds.
// `split`: columns from the first half to the second of 16x32bx2.
static void place(uint32_t shape, uint32_t r, uint32_t thread, uint32_t split, uint32_t *lane,
                  uint32_t *column)
{
    switch (shape) {
    case EMU_TMEM_32X32B:
        *lane = thread;
        *column = r;
        return;
    case EMU_TMEM_16X64B:
        *lane = thread / 4 + thread % 2 * 8;
        *column = 2 * r + thread / 2 % 2;
        return;
    case EMU_TMEM_16X128B:
        *lane = thread / 4 + r % 2 * 8;
        *column = r / 2 * 4 + thread % 4;
        return;
    case EMU_TMEM_16X256B:
        *lane = thread / 4 + r / 2 % 2 * 8;
        *column = r / 4 * 8 + thread % 4 * 2 + r % 2;
        return;
    default: // 16x32bx2
        *lane = thread % 16;
        *column = r + thread / 16 * split;
    }
}

// One word of a warp's access, or a fault.
static uint32_t *word(struct emu_warp *w, uint32_t thread, uint32_t lane, uint32_t column,
                      bool is_store)
{
    struct emu_tmem *t = emu_tmem_of(w->cta);
    emu_tmem_check(w, thread, w->cta, column);
    if (lane / EMU_WARP != w->index % 4)
        emu_fault(w, thread, "tensor memory lane %u belongs to warp %u of a warpgroup, not to %u",
                  lane, lane / EMU_WARP, w->index % 4);
    uint8_t *shadow = &t->shadow[lane][column];
    if (w->launch->emu->options.check && *shadow == EMU_IN_FLIGHT)
        emu_fault(w, thread, "%s while a copy is in flight: tensor memory lane %u column %u",
                  is_store ? "overwritten" : "read", lane, column);
    if (w->launch->emu->options.check && *shadow == EMU_UNSET && !is_store)
        emu_fault(w, thread, "uninitialised tensor memory is read: lane %u column %u", lane,
                  column);
    if (is_store)
        *shadow = EMU_SET;
    return &t->words[lane][column];
}

// Lane and column of the access's start. Sixteen-lane shapes may start in the middle of a quarter.
static uint32_t start_of(struct emu_warp *w, const struct emu_insn *in)
{
    const uint32_t at = uniform(w, in->src[0], "address") + (uint32_t)in->offset;
    const uint32_t step = (in->op & EMU_TMEM_SHAPE) == EMU_TMEM_32X32B ? 32 : 16;
    if ((at >> 16) % step || at >> 16 >= EMU_TMEM_LANES)
        emu_fault(w, 0, "misaligned tensor memory address 0x%x: lanes start at multiples of %u", at,
                  step);
    return at;
}

// The rows of an access: each is one run of columns, or two.
static void order_access(struct emu_warp *w, const struct emu_insn *in, uint32_t at, bool is_store)
{
    static const uint8_t rows[] = {32, 16, 16, 16, 16}, words[] = {1, 2, 2, 2, 1};
    const uint32_t shape = in->op & EMU_TMEM_SHAPE, runs = shape == EMU_TMEM_16X32BX2 ? 2 : 1;
    const uint32_t wide = in->op & EMU_TMEM_PACKED ? 2 : 1;
    if (!w->agent)
        return;
    const struct emu_who who =
        emu_group_who(w, &w->agent->view, is_store ? EMU_AGENT_TMEM_STORE : EMU_AGENT_TMEM_LOAD,
                      w->tmem_group[is_store]);
    for (uint32_t row = 0; row < rows[shape]; row++)
        for (uint32_t i = 0; i < runs; i++)
            access_map(w, &who, 0, (at >> 16) + row,
                       (at & 0xffff) + i * wide * (uint32_t)in->target,
                       in->count * words[shape] * wide, is_store);
}

static void access(struct emu_warp *w, const struct emu_insn *in, uint32_t (*values)[EMU_WARP],
                   bool is_store)
{
    const uint32_t at = start_of(w, in), shape = in->op & EMU_TMEM_SHAPE;
    const bool packed = in->op & EMU_TMEM_PACKED;
    for (uint32_t r = 0; r < in->count; r++)
        for (uint32_t i = 0; i < EMU_WARP; i++) {
            uint32_t lane, column;
            place(shape, r, i, (uint32_t)in->target, &lane, &column);
            lane += at >> 16;
            for (uint32_t half = 0; half < (packed ? 2u : 1u); half++) {
                const uint32_t c = (at & 0xffff) + (packed ? 2 * column + half : column);
                uint32_t *cell = word(w, i, lane, c, is_store);
                if (is_store)
                    *cell = packed ? values[r][i] >> 16 * half & 0xffff : values[r][i];
                else
                    values[r][i] =
                        packed ? (half ? values[r][i] | *cell << 16 : *cell & 0xffff) : *cell;
            }
        }
    order_access(w, in, at, is_store);
}

// dst: the least or the greatest of what each thread loads.
static void reduce(struct emu_warp *w, const struct emu_insn *in, uint32_t (*values)[EMU_WARP])
{
    const enum emu_redux_op op = in->op & EMU_TMEM_MIN ? EMU_REDUX_MIN : EMU_REDUX_MAX;
    uint32_t out[EMU_WARP];
    memcpy(out, values[0], sizeof out);
    for (uint32_t r = 1; r < in->count; r++)
        for (uint32_t i = 0; i < EMU_WARP; i++)
            out[i] = emu_reduce(in, op, out[i], values[r][i]);
    emu_commit(w, in->dst, out, 4, EMU_FULL);
}

// list: registers; src[0] + offset: address; op: shape and reduction; target: split
EMU_RUN(tmem_load)
{
    alignas(16) uint32_t values[128][EMU_WARP];
    if (!emu_whole_warp(w, mask))
        return;
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    access(w, in, values, false);
    for (uint32_t r = 0; r < in->count; r++)
        emu_commit(w, args[r].ref, values[r], 4, EMU_FULL);
    if (in->op & (EMU_TMEM_MIN | EMU_TMEM_MAX))
        reduce(w, in, values);
    if (w->launch->emu->options.check)
        emu_watch_load(w, in);
}

EMU_RUN(tmem_store)
{
    uint32_t values[128][EMU_WARP];
    if (!emu_whole_warp(w, mask))
        return;
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    for (uint32_t r = 0; r < in->count; r++)
        memcpy(values[r], emu_at_ref(w, args[r].ref), sizeof values[r]);
    access(w, in, values, true);
}

// op: for stores
EMU_RUN(tmem_wait)
{
    if (!emu_whole_warp(w, mask))
        return;
    const uint32_t end = ++w->tmem_group[in->op];
    emu_group_wait(w, in->op ? EMU_AGENT_TMEM_STORE : EMU_AGENT_TMEM_LOAD, end);
}

EMU_RUN(tmem_fence)
{
    (void)mask;
    if (w->agent)
        emu_order_fence_tensor(w->agent, in->op);
}
