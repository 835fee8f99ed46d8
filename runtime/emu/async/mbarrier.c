// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mbarriers: init, arrive, expect_tx, complete_tx, test_wait, try_wait, and their decoder.

#include "emu/async/mbarrier.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emu/decode/decode.h"
#include "emu/run/schedule.h"
#include "emu/run/trace.h"

enum { OBJECT = 8, MAX_COUNT = (1 << 20) - 1 };

static struct emu_mbarrier *find(const struct emu_cta *cta, uint32_t offset)
{
    struct emu_mbarrier *b = cta->mbarriers;
    while (b && b->offset != offset)
        b = b->next;
    return b;
}

static struct emu_cta *place(struct emu_warp *w, uint32_t lane, enum emu_space space,
                             uint64_t address, uint32_t *offset)
{
    struct emu_cta *cta = emu_shared_at(w, lane, space, address, OBJECT, offset);
    if (address % OBJECT)
        emu_fault(w, lane, "misaligned mbarrier at 0x%" PRIx64, address);
    return cta;
}

struct emu_mbarrier *emu_mbarrier_at(struct emu_warp *w, uint32_t lane, enum emu_space space,
                                     uint64_t address)
{
    uint32_t offset;
    const struct emu_cta *cta = place(w, lane, space, address, &offset);
    struct emu_mbarrier *b = find(cta, offset);
    if (!b)
        emu_fault(w, lane, "mbarrier used before mbarrier.init: at 0x%" PRIx64, address);
    emu_sync_access(w, lane, &b->cta->race, b->offset, OBJECT, false);
    return b;
}

struct emu_mbarrier *emu_mbarrier_of_copy(struct emu_warp *w, uint32_t lane, enum emu_space space,
                                          uint64_t address)
{
    struct emu_mbarrier *b = emu_mbarrier_at(w, lane, space, address);
    const struct emu_agent *a = w->agent;
    if (!a || emu_view_clock(&w->launch->order, &a->view, EMU_FENCED_INIT, b->init_by.uid) >=
                  b->init_by.clock)
        return b;
    const uint32_t pc = (uint32_t)(w->in - w->launch->module->code.at);
    const struct emu_conflict missing = {
        .kind = EMU_CONFLICT_PROXY,
        .before = b->init_by,
        .now = {a->uid, a->clock, emu_record_what(pc, EMU_PROXY_ASYNC, 0, EMU_SCOPE_CTA),
                1u << lane},
        .before_writes = true,
        .now_writes = true,
        .map = &b->cta->race,
        .offset = b->offset,
        .size = OBJECT};
    emu_report_conflict(w->launch, &missing);
    return b;
}

void emu_mbarrier_describe(const struct emu_mbarrier *b, char *text, size_t size)
{
    snprintf(text, size,
             "mbarrier at 0x%x, phase %" PRIu64 " (parity %u): %u of %u arrivals and %" PRId64
             " bytes pending",
             emu_mbarrier_address(b), b->phase, (unsigned)(b->phase & 1), b->pending, b->expected,
             b->tx);
}

static void wake(struct emu_mbarrier *b)
{
    struct emu_cluster *cluster = b->cta->cluster;
    for (uint32_t c = 0; c < cluster->size; c++)
        for (uint32_t i = 0; i < cluster->launch->warps; i++) {
            struct emu_warp *w = &cluster->ctas[c].warps[i];
            for (uint32_t k = 0; k < w->path_count; k++)
                if (w->paths[k]->state == EMU_PATH_MBARRIER && w->paths[k]->mbarrier == b)
                    w->paths[k]->state = EMU_PATH_READY;
        }
}

// A phase is complete when nothing is pending any more.
static void settle(struct emu_mbarrier *b)
{
    b->cta->launch->events++;
    if (b->pending || b->tx)
        return;
    b->phase++;
    b->done_time = b->time;
    b->pending = b->expected;
    if (b->cta->warps->agent) {
        emu_view_join(&b->cta->launch->order, &b->done, &b->view);
        emu_view_clear(&b->view, &b->cta->cluster->domain);
    }
    wake(b);
}

static void bad(const struct emu_mbarrier *b, const struct emu_by *by, const char *what,
                const char *format, ...) TIR_PRINTF(4, 5);
static void bad(const struct emu_mbarrier *b, const struct emu_by *by, const char *what,
                const char *format, ...)
{
    char text[120];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    by->warp->in = by->in;
    emu_fault(by->warp, by->lane, "mbarrier %s at 0x%x: %s", what, emu_mbarrier_address(b), text);
}

// `by` has changed the barrier: when, for the timeline.
static void reach(struct emu_mbarrier *b, const struct emu_by *by)
{
    emu_trace_reach(&b->time, by->op ? by->op->end_time : by->warp->time);
}

void emu_mbarrier_arrive(struct emu_mbarrier *b, const struct emu_by *by, uint32_t count)
{
    if (count > b->pending)
        bad(b, by, "over-arrived", "%u arrive where %u of %u are pending", count, b->pending,
            b->expected);
    b->pending -= count;
    b->last_arrive = by->in;
    reach(b, by);
    settle(b);
}

static void transact(struct emu_mbarrier *b, const struct emu_by *by, int64_t bytes)
{
    b->tx += bytes;
    if (b->tx > MAX_COUNT || b->tx < -MAX_COUNT)
        bad(b, by, "bytes", "%" PRId64 " are announced or early; the limit is %d", b->tx,
            MAX_COUNT);
    reach(b, by);
}

void emu_mbarrier_expect(struct emu_mbarrier *b, const struct emu_by *by, uint32_t bytes)
{
    b->last_expect = by->in;
    transact(b, by, bytes);
    b->cta->launch->events++; // an expectation completes no phase
}

void emu_mbarrier_complete(struct emu_mbarrier *b, const struct emu_by *by, uint32_t bytes)
{
    b->last_complete = by->in;
    transact(b, by, -(int64_t)bytes);
    settle(b);
}

static void drop(struct emu_mbarrier **at)
{
    struct emu_mbarrier *b = *at;
    *at = b->next;
    emu_view_give(&b->cta->launch->order, &b->view);
    emu_view_give(&b->cta->launch->order, &b->done);
    emu_launch_free(b->cta->launch, b, sizeof *b);
}

bool emu_mbarrier_is(const struct emu_cluster *cluster, const struct emu_mbarrier *b)
{
    for (uint32_t i = 0; i < cluster->size; i++)
        for (const struct emu_mbarrier *m = cluster->ctas[i].mbarriers; m; m = m->next)
            if (m == b)
                return true;
    return false;
}

void emu_mbarriers_drop(struct emu_cta *cta)
{
    while (cta->mbarriers)
        drop(&cta->mbarriers);
}

// --- instructions ---

static void init(struct emu_warp *w, const struct emu_insn *in, uint32_t lane, uint64_t address,
                 uint32_t count)
{
    uint32_t offset;
    struct emu_cta *cta = place(w, lane, (enum emu_space)in->space, address, &offset);
    if (find(cta, offset))
        emu_fault(w, lane, "mbarrier initialised again: at 0x%" PRIx64 ", without mbarrier.inval",
                  address);
    if (count == 0 || count > MAX_COUNT)
        emu_fault(w, lane, "mbarrier of %u arrivals; 1 to %d are allowed", count, MAX_COUNT);
    struct emu_cell cell =
        emu_resolve(w, lane, (enum emu_space)in->space, address, OBJECT, EMU_STORE);
    struct emu_mbarrier *b = emu_launch_alloc(w->launch, NULL, 0, sizeof *b);
    *b = (struct emu_mbarrier){.next = cta->mbarriers,
                               .cta = cta,
                               .offset = offset,
                               .expected = count,
                               .pending = count,
                               .init = in};
    if (w->agent)
        b->init_by =
            (struct emu_record){w->agent->uid, w->agent->clock,
                                emu_record_what((uint32_t)(in - w->launch->module->code.at),
                                                EMU_PROXY_GENERIC, 0, EMU_SCOPE_CTA),
                                1u << lane};
    emu_view_take(&w->launch->order, &b->view, &cta->cluster->domain);
    emu_view_take(&w->launch->order, &b->done, &cta->cluster->domain);
    cta->mbarriers = b;
    memset(cell.bytes, 0xcd, OBJECT);
    memset(cell.shadow, EMU_MBARRIER, OBJECT);
}

// Nobody may need a barrier that ends: no operation that signals it later, no path that waits.
static void check_idle(struct emu_warp *w, uint32_t lane, const struct emu_mbarrier *b)
{
    const struct emu_cluster *cluster = b->cta->cluster;
    for (const struct emu_op *op = cluster->ops; op; op = op->next)
        for (uint32_t i = 0; i < op->barrier_count; i++)
            if (op->barriers[i] == b)
                emu_fault(w, lane, "mbarrier.inval at 0x%x: the %s of PTX line %u is to signal it",
                          emu_mbarrier_address(b), op->engine->name, op->in->line);
    for (uint32_t c = 0; c < cluster->size; c++)
        for (uint32_t i = 0; i < cluster->launch->warps; i++) {
            const struct emu_warp *other = &cluster->ctas[c].warps[i];
            for (uint32_t k = 0; k < other->path_count; k++)
                if (other->paths[k]->state == EMU_PATH_MBARRIER && other->paths[k]->mbarrier == b)
                    emu_fault(w, lane, "mbarrier.inval at 0x%x: warp %u of CTA %u waits for it",
                              emu_mbarrier_address(b), i, c);
        }
}

static void inval(struct emu_warp *w, const struct emu_insn *in, uint32_t lane, uint64_t address)
{
    const struct emu_mbarrier *b = emu_mbarrier_at(w, lane, (enum emu_space)in->space, address);
    check_idle(w, lane, b);
    struct emu_mbarrier **at = &b->cta->mbarriers;
    while (*at != b)
        at = &(*at)->next;
    emu_sync_access(w, lane, &b->cta->race, b->offset, OBJECT, true);
    memset(b->cta->shared_shadow + b->offset, EMU_UNSET, OBJECT);
    drop(at);
}

// The state an arrive gives: the phase it counts for, and what was pending before.
static uint64_t state_of(const struct emu_mbarrier *b)
{
    return (b->phase & 0xffffffff) << 32 | b->pending;
}

static void arrive(struct emu_warp *w, const struct emu_insn *in, uint32_t lane,
                   struct emu_mbarrier *b, uint32_t value, uint32_t count)
{
    if ((in->op & 15) == EMU_MBARRIER_ARRIVE_DROP) {
        if (count > b->expected)
            emu_fault(w, lane, "mbarrier at 0x%x: %u are dropped of %u", emu_mbarrier_address(b),
                      count, b->expected);
        b->expected -= count;
    }
    const struct emu_by by = {w, in, lane, NULL};
    if (in->op & EMU_MBARRIER_EXPECTS)
        emu_mbarrier_expect(b, &by, value);
    if (in->op & EMU_MBARRIER_NO_COMPLETE && count >= b->pending)
        emu_fault(w, lane, "mbarrier at 0x%x: arrive.noComplete would complete the phase",
                  emu_mbarrier_address(b));
    if (w->agent && in->order & EMU_RELEASE) {
        w->agent->acting = 1u << lane;
        emu_order_release(w->agent, &b->view);
        w->agent->acting = EMU_FULL;
    }
    emu_mbarrier_arrive(b, &by, count);
}

// src[0] + offset: address; src[1]: count, bytes; src[2]: count of an arrive that expects; dst: the
// state; op: enum emu_mbarrier_op and flags
EMU_RUN(mbarrier)
{
    uint64_t address[EMU_WARP], state[EMU_WARP] = {0};
    const uint32_t *value = emu_at_ref(w, in->src[1]), *count = emu_at_ref(w, in->src[2]);
    emu_addresses(w, in, address);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        const enum emu_mbarrier_op op = in->op & 15;
        if (op == EMU_MBARRIER_INIT) {
            init(w, in, i, address[i], value[i]);
            continue;
        }
        if (op == EMU_MBARRIER_INVAL) {
            inval(w, in, i, address[i]);
            continue;
        }
        struct emu_mbarrier *b = emu_mbarrier_at(w, i, (enum emu_space)in->space, address[i]);
        const struct emu_by by = {w, in, i, NULL};
        state[i] = state_of(b);
        if (op == EMU_MBARRIER_EXPECT_TX)
            emu_mbarrier_expect(b, &by, value[i]);
        else if (op == EMU_MBARRIER_COMPLETE_TX)
            emu_mbarrier_complete(b, &by, value[i]);
        else
            arrive(w, in, i, b, value[i], in->op & EMU_MBARRIER_EXPECTS ? count[i] : value[i]);
    }
    emu_commit(w, in->dst, state, 8, mask);
}

// src[0] + offset: address; src[1]: state (64 bits) or parity (32); dst: predicate
EMU_RUN(mbarrier_wait)
{
    uint64_t address[EMU_WARP];
    uint32_t done = 0;
    uint64_t time = 0;
    const struct emu_mbarrier *missing = NULL;
    emu_addresses(w, in, address);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        const struct emu_mbarrier *b = emu_mbarrier_at(w, i, (enum emu_space)in->space, address[i]);
        const uint32_t parity = ((const uint32_t *)emu_at_ref(w, in->src[1]))[i] & 1;
        bool complete;
        if (in->op & EMU_MBARRIER_PARITY)
            complete = parity != (b->phase & 1);
        else
            complete =
                ((const uint64_t *)emu_at_ref(w, in->src[1]))[i] >> 32 != (b->phase & 0xffffffff);
        done |= (uint32_t)complete << i;
        if (complete && b->done_time > time)
            time = b->done_time;
        if (complete && w->agent && in->order & EMU_ACQUIRE)
            emu_order_acquire(w->agent, &b->done);
        if (complete) {
            w->passed = in->op & EMU_MBARRIER_PARITY && !b->phase ? in : NULL;
        } else {
            missing = b;
            w->path->parity = in->op & EMU_MBARRIER_PARITY ? parity : EMU_NO_REF;
        }
    }
    if (!done && in->op & EMU_MBARRIER_TRY && !w->path->is_late &&
        !emu_schedule_gives_up(w->launch)) {
        // No lane can go on: suspended until the phase is complete or the time is up.
        w->path->pc--;
        w->path->state = EMU_PATH_MBARRIER;
        w->path->mbarrier = missing;
        w->reschedule = true;
        return;
    }
    w->path->is_late = false;
    w->path->mbarrier = missing; // what it looks for, if this goes on for ever
    if (missing) {
        w->path->is_tired = true;
        w->yield = w->is_polling = true;
        emu_trace_poll(w);
    } else {
        emu_trace_wait(w, time, "mbarrier");
    }
    emu_commit_pred(w, in->dst, done, mask);
}

// dst; src[0]: state
EMU_RUN(mbarrier_pending)
{
    const uint64_t *state = emu_at_ref(w, in->src[0]);
    uint32_t out[EMU_WARP];
    for (int i = 0; i < EMU_WARP; i++)
        out[i] = (uint32_t)state[i];
    emu_commit(w, in->dst, out, 4, mask);
}

// --- the decoder ---

static enum emu_space take_space(struct emu_dec *d)
{
    if (emu_dec_mod(d, "shared::cluster"))
        return EMU_SHARED_CLUSTER;
    return emu_dec_mod(d, "shared") || emu_dec_mod(d, "shared::cta") ? EMU_SHARED : EMU_GENERIC;
}

static void decode_wait(struct emu_dec *d, enum emu_space space)
{
    struct emu_insn *in = d->in;
    in->run = emu_run_mbarrier_wait;
    const bool parity = emu_dec_mod(d, "parity");
    in->op |= EMU_MBARRIER_WAIT | (parity ? EMU_MBARRIER_PARITY : 0);
    in->dst = emu_dec_dst(d, EMU_pred);
    emu_dec_memory(d, space);
    in->src[1] = emu_dec_src(d, parity ? EMU_b32 : EMU_b64);
    if (in->op & EMU_MBARRIER_TRY && d->at < d->ast->operand_count)
        emu_dec_src(d, EMU_b32); // how long to be suspended
}

static void decode_arrive(struct emu_dec *d, enum emu_space space)
{
    struct emu_insn *in = d->in;
    const uint32_t one = emu_dec_pool(d->ld, 1, 4);
    in->op |= emu_dec_mod(d, "expect_tx") ? EMU_MBARRIER_EXPECTS : 0;
    in->op |= emu_dec_mod(d, "noComplete") ? EMU_MBARRIER_NO_COMPLETE : 0;
    const struct emu_operand *first = &d->ast->operands[0];
    if (d->ast->operand_count && first->kind != EMU_OPD_MEM)
        in->dst = emu_dec_dst(d, EMU_b64);
    emu_dec_memory(d, space);
    in->src[1] = in->src[2] = one;
    if (d->at < d->ast->operand_count || in->op & EMU_MBARRIER_EXPECTS)
        in->src[1] = emu_dec_src(d, EMU_b32);
}

void emu_decode_mbarrier(struct emu_dec *d)
{
    static const char *const ops[] = {"init",          "inval",       "expect_tx", "complete_tx",
                                      "arrive",        "arrive_drop", "test_wait", "try_wait",
                                      "pending_count", NULL};
    struct emu_insn *in = d->in;
    // arrive.expect_tx has two names of operations; the first counts.
    int op = -1;
    for (int i = 0; ops[i] && op < 0; i++)
        if (d->ast->mod_count && emu_str_is(d->ast->mods[0], ops[i]))
            op = i;
    if (op < 0)
        emu_dec_bad(d, "unknown instruction");
    d->used |= 1;
    const enum emu_space space = take_space(d);
    const bool waits = op == 6 || op == 7;
    emu_dec_order(d, waits ? EMU_ACQUIRE : EMU_RELEASE, EMU_SCOPE_CTA);
    if (!emu_dec_mod(d, "b64"))
        emu_dec_bad(d, "'.b64' is missing");
    in->run = emu_run_mbarrier;
    if (op == 8) {
        in->run = emu_run_mbarrier_pending;
        in->dst = emu_dec_dst(d, EMU_b32);
        in->src[0] = emu_dec_src(d, EMU_b64);
    } else if (op >= 6) {
        in->op = op == 7 ? EMU_MBARRIER_TRY : 0;
        decode_wait(d, space);
    } else if (op >= EMU_MBARRIER_ARRIVE) {
        in->op = (uint8_t)op;
        decode_arrive(d, space);
    } else {
        in->op = (uint8_t)op;
        emu_dec_memory(d, space);
        if (op != EMU_MBARRIER_INVAL)
            in->src[1] = emu_dec_src(d, EMU_b32);
    }
}
