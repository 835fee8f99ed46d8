// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on barriers: mbarriers, named barriers, the cluster's barrier, fences.
//
// A copy's bytes arrive as soon as it is issued, since only the order of clocks counts. Two cases
// are errors of their own, because without them an enabled step stays enabled and one schedule
// stands for all. First: a phase that could complete again before a thread that waits for it has
// seen it. Second: an arrival at a named barrier, or at an mbarrier that a thread waits for, by a
// thread that does not know that the previous phase is complete, since it may be counted in that
// phase.

#include "pass/sync_check/sync_check.h"

static uint32_t named_id(const struct tir_inst *inst)
{
    return (uint32_t)tir_attr_int(inst, TIR_ATTR_id, 0);
}

// Do the agent's warps name mbarriers of their own, as a[warpid()] does? Then they are agents of
// their own from now on.
static bool splits_by_index(struct sync_run *r, const struct sync_agent *a,
                            const struct tir_value *bar)
{
    for (const struct tir_inst *view = bar->def; view && tir_type_is_buffer(bar->type);
         view = bar->def) {
        if (view->op == TIR_OP_ALLOC)
            return false;
        bar = view->op == TIR_OP_VIEW ? tir_ref_base(view) : view->operands[0];
        for (uint32_t d = 0; view->op == TIR_OP_VIEW && d < bar->type->rank; d++) {
            const struct sync_value v = tir_sync_value(r, a, tir_ref_indices(view)[d]);
            for (uint32_t w = 1; v.kind == SYNC_EACH && w < a->warps; w++)
                if (v.each[w * SYNC_LANES] != v.each[(w - 1) * SYNC_LANES]) {
                    tir_sync_split_agent(r, a, w);
                    return true;
                }
        }
    }
    return false;
}

struct sync_mbarrier *tir_sync_mbarriers(struct sync_run *r, const struct sync_agent *a,
                                         const struct tir_inst *inst, const struct tir_value *bar,
                                         uint32_t cta, int64_t *count)
{
    struct sync_value v = tir_sync_value(r, a, bar);
    if (v.kind == SYNC_BUFFER && !v.buffer->exact && splits_by_index(r, a, bar))
        return NULL;
    if (v.kind != SYNC_BUFFER || !v.buffer->exact || !r->p->roots.at[v.buffer->root].is_mbarrier) {
        tir_sync_end_at(r, inst, "which mbarrier it is depends on data");
        return NULL;
    }
    const struct sync_root *root = &r->p->roots.at[v.buffer->root];
    int64_t first = 0;
    *count = 1;
    for (uint32_t d = 0; d < root->alloc->type->rank; d++) {
        first = first * root->alloc->type->shape[d] + v.buffer->box.begin[d];
        *count *= v.buffer->box.size[d];
    }
    if (*count < 1) {
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, inst, NULL, NULL,
                      "there is no mbarrier at this index");
        return NULL;
    }
    if (cta >= r->p->ctas)
        cta = v.buffer->cta;
    return &r->mbarriers[cta * r->p->mbarrier_count + root->first_barrier + (uint32_t)first];
}

bool tir_sync_is_ready(struct sync_run *r, const struct sync_who *who,
                       const struct sync_mbarrier *m, const struct tir_inst *inst)
{
    const struct sync_clock *c = tir_sync_clock(who);
    if (!m->init)
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, inst, NULL, NULL,
                      "nothing has initialised this mbarrier: no mbarrier_init before it");
    else if (c->known[m->init_strand] < m->init_at &&
             (!m->told_at || c->known[m->told_strand] < m->told_at))
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, inst, m->init, "it is initialised here",
                      "this mbarrier may not be initialised yet: no barrier between them");
    else if ((inst->op == TIR_OP_COPY_ASYNC || inst->op == TIR_OP_TRY_CANCEL) && !m->init_fenced)
        tir_sync_fail(r, TIR_E_SYNC_FENCE, inst, m->init, "it is initialised here",
                      "the %s may not see this mbarrier initialised: no fence(of = "
                      "mbarrier_init) after mbarrier_init",
                      inst->op == TIR_OP_COPY_ASYNC ? "copy" : "request");
    return r->outcome == SYNC_GOING;
}

static void stamp(const struct sync_who *who, uint16_t *strand, uint32_t *at)
{
    const struct sync_agent *a = who->agent;
    *strand = a->threads[who->thread].data;
    *at = a->all.known[*strand];
}

static void init(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    int64_t count;
    struct sync_mbarrier *m =
        tir_sync_mbarriers(r, who->agent, inst, inst->operands[TIR_BAR], UINT32_MAX, &count);
    int64_t arrivals = tir_attr_int(inst, TIR_ATTR_arrivals, 1);
    for (int64_t i = 0; m && i < count; i++, m++) {
        if (m->init || who->lanes * who->agent->warps > 1) {
            tir_sync_fail(r, TIR_E_SYNC_BARRIER, inst, m->init, "the first time",
                          "this mbarrier is initialised more than once");
            return;
        }
        m->init = inst;
        m->count = m->pending = arrivals;
        m->strand = tir_sync_strand(r);
        stamp(who, &m->init_strand, &m->init_at);
    }
}

// Threads that complete this phase must know which threads have seen the previous one.
static void check_overtaken(struct sync_run *r, const struct sync_mbarrier *m,
                            const struct tir_inst *by)
{
    for (uint32_t i = 0; i < r->agent_count; i++) {
        const struct sync_seen *seen = &m->seen[i];
        if (!seen->by || seen->phase + 1 != m->completed ||
            m->arriving.known[r->agents[i].events] >= seen->at)
            continue;
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, seen->by, by, "this completes the next phase",
                      "the mbarrier may complete its next phase before this wait has seen the one "
                      "it waits for: nothing tells line %u that the wait is over",
                      tir_sync_line(r->p, by));
        return;
    }
}

void tir_sync_complete(struct sync_run *r, struct sync_mbarrier *m, const struct tir_inst *by)
{
    if (m->pending || m->bytes)
        return;
    check_overtaken(r, m, by);
    tir_sync_join(r, &m->done, &m->arriving);
    m->completed++;
    r->phases++;
    m->done.known[m->strand] = m->completed;
    for (uint32_t i = 0; i < r->p->memories; i++)
        m->done.fenced[i][m->strand] = m->completed;
    m->pending = m->count;
}

// Whether the phase before is known to be complete: by a wait that has seen it, or as all its
// arrivals are known.
static bool knows_phase(const struct sync_run *r, const struct sync_who *who,
                        const struct sync_mbarrier *m)
{
    const struct sync_thread *t = &who->agent->threads[who->thread];
    bool arrivals = !m->copy; // bytes come when they do
    if (t->clock.known[m->strand] >= m->completed)
        return true;
    for (uint32_t i = 0; i < r->agent_count; i++) {
        const struct sync_agent *a = &r->agents[i];
        uint32_t known = t->clock.known[a->events];
        if (m->seen[i].by && m->seen[i].phase + 1 == m->completed && known >= m->seen[i].at)
            return true;
        if (a == who->agent && a->warps > 1) // of another one of its warps
            known = t->peers.known[a->events];
        arrivals &= known >= m->done.known[a->events];
    }
    return arrivals;
}

static void fail_early(struct sync_run *r, const struct sync_mbarrier *m,
                       const struct tir_inst *wait)
{
    tir_sync_fail(r, TIR_E_SYNC_BARRIER, m->early, wait, "this waits for the mbarrier",
                  "this may come to the mbarrier before its phase is complete, and be counted "
                  "there: nothing tells it that the phase is over");
}

// Who comes to an mbarrier must be counted in one phase, whatever the schedule. It matters if
// somebody has waited for the phase before, or waits from now on; what else is wrong then says
// more.
void tir_sync_note_early(struct sync_run *r, const struct sync_who *who, struct sync_mbarrier *m,
                         const struct tir_inst *inst)
{
    if (m->early || knows_phase(r, who, m))
        return;
    m->early = inst;
    for (uint32_t i = 0; i < r->agent_count; i++)
        if (m->seen[i].by && m->seen[i].phase + 1 == m->completed)
            m->early_for = m->seen[i].by;
}

bool tir_sync_count(struct sync_run *r, const struct sync_who *who, struct sync_mbarrier *m,
                    const struct tir_inst *inst, int64_t arrivals)
{
    tir_sync_note_early(r, who, m, inst);
    m->pending -= arrivals;
    if (m->pending < 0) {
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, inst, m->init, "it is initialised here",
                      "more arrivals than the %lld that the phase of this mbarrier takes",
                      (long long)m->count);
        return false;
    }
    m->arrive = inst;
    return true;
}

static void arrive_at(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst,
                      struct sync_mbarrier *m, bool remote, int64_t threads)
{
    int64_t bytes = tir_attr_int(inst, TIR_ATTR_bytes, 0);
    if (!tir_sync_is_ready(r, who, m, inst))
        return;
    m->bytes += threads * bytes;
    if (!tir_sync_count(r, who, m, inst, threads * tir_attr_int(inst, TIR_ATTR_count, 1)))
        return;
    if (bytes)
        m->expect = inst;
    if (remote)
        m->remote[who->agent->id] =
            (struct sync_seen){.by = inst, .at = who->agent->all.known[who->agent->events]};
    tir_sync_release(r, who, &m->arriving);
    tir_sync_release_shares(r, who, m);
    tir_sync_complete(r, m, inst);
}

// How many of the acting threads mean this CTA.
static int64_t threads_for(const struct sync_who *who, const struct sync_value *cta, uint32_t to)
{
    const struct sync_agent *a = who->agent;
    int64_t count = 0;
    if (cta->kind == SYNC_INT)
        return cta->number == (int64_t)to ? who->lanes * a->warps : 0;
    for (uint32_t i = 0; i < a->warps * SYNC_LANES; i++)
        if (!who->mask || who->mask[i / SYNC_LANES] >> i % SYNC_LANES & 1)
            count += cta->each[i] == (int64_t)to;
    return count;
}

static void arrive(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    const struct tir_value *bar = inst->operands[TIR_BAR];
    int64_t count;
    if (!inst->operands[TIR_ARRIVE_CTA]) {
        struct sync_mbarrier *m = tir_sync_mbarriers(r, who->agent, inst, bar, UINT32_MAX, &count);
        if (m)
            arrive_at(r, who, inst, m,
                      m < r->mbarriers + who->agent->cta * r->p->mbarrier_count ||
                          m >= r->mbarriers + (who->agent->cta + 1) * r->p->mbarrier_count,
                      who->lanes * who->agent->warps);
        tir_sync_pass(who->agent);
        return;
    }
    struct sync_value cta = tir_sync_value(r, who->agent, inst->operands[TIR_ARRIVE_CTA]);
    if (cta.kind != SYNC_INT && cta.kind != SYNC_EACH) {
        tir_sync_end_at(r, inst, "which CTA it arrives at depends on data");
        return;
    }
    for (uint32_t c = 0; c < r->p->ctas && r->outcome == SYNC_GOING; c++) {
        int64_t threads = threads_for(who, &cta, c);
        struct sync_mbarrier *m = tir_sync_mbarriers(r, who->agent, inst, bar, c, &count);
        if (m && threads)
            arrive_at(r, who, inst, m, c != who->agent->cta, threads);
    }
    tir_sync_pass(who->agent);
}

static bool wait(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    int64_t count;
    struct sync_mbarrier *m =
        tir_sync_mbarriers(r, a, inst, inst->operands[TIR_BAR], UINT32_MAX, &count);
    struct sync_value parity = tir_sync_value(r, a, inst->operands[TIR_WAIT_PARITY]);
    if (!m || !tir_sync_is_ready(r, who, m, inst))
        return true;
    int64_t wanted;
    if (parity.kind == SYNC_EACH && !tir_sync_equal_among(a, who->mask, &parity, &wanted)) {
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, inst, NULL, NULL,
                      "threads of one warp wait for phases of different parity here");
        return true;
    }
    if (!tir_sync_equal_among(a, who->mask, &parity, &wanted)) {
        tir_sync_end_at(r, inst, "the parity it waits for depends on data");
        return true;
    }
    if (((m->completed + 1) & 1) != (wanted & 1))
        return false;
    if (m->early)
        fail_early(r, m, inst);
    tir_sync_acquire(r, who, &m->done);
    // Of a new mbarrier it is the phase before the first, which is complete from the start.
    m->seen[a->id] = (struct sync_seen){inst, m->completed - 1, a->all.known[a->events]};
    return true;
}

// As the program calls it: cluster_sync() is an arrival and a wait in one place.
static const char *called(const struct tir_inst *inst)
{
    const struct tir_inst *other = inst->op == TIR_OP_CLUSTER_ARRIVE ? inst->next
                                   : inst->op == TIR_OP_CLUSTER_WAIT ? inst->prev
                                                                     : NULL;
    const bool is_pair = other && other->op != inst->op &&
                         (other->op == TIR_OP_CLUSTER_ARRIVE || other->op == TIR_OP_CLUSTER_WAIT) &&
                         !memcmp(&other->span, &inst->span, sizeof inst->span);
    return inst->op == TIR_OP_BAR_SYNC || inst->op == TIR_OP_BAR_ARRIVE ? "this barrier"
           : is_pair                                                    ? "cluster_sync"
                                                                        : tir_ops[inst->op].name;
}

bool tir_sync_all_come(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst,
                       enum sync_spread allowed)
{
    const char *what = called(inst);
    if (who->lanes != SYNC_LANES)
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, inst, NULL, NULL,
                      "only some lanes of a warp come to %s", what);
    else if (who->spread > allowed && (who->spread == SYNC_EVERY_LANE ||
                                       (who->spread == SYNC_WARPS && who->agent->warps > 1)))
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, inst, who->data, "this asks data",
                      "which %s come to %s depends on their data",
                      who->spread == SYNC_WARPS ? "warps" : "lanes of a warp", what);
    return r->outcome == SYNC_GOING;
}

static void complete_named(struct sync_run *r, struct sync_named *n)
{
    tir_sync_join(r, &n->done, &n->arriving);
    n->completed++;
    n->completes = n->last;
    if (n->strand)
        n->done.known[n->strand] = n->completed;
    r->phases++;
    n->arrived = 0;
    for (uint32_t i = 0; i < r->agent_count; i++)
        bitset_remove(&n->here, i);
}

static void come_to(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst,
                    struct sync_named *n, uint32_t expected)
{
    struct sync_agent *a = who->agent;
    bool quiet = inst->op == TIR_OP_CLUSTER_ARRIVE && tir_attr_int(inst, TIR_ATTR_relaxed, 0);
    if (!tir_sync_all_come(r, who, inst, SYNC_SAME))
        return;
    if (bitset_has(&n->here, a->id)) {
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, inst, n->last, "the last arrival before it",
                      "a warp comes to this barrier again before it is complete");
    } else if (n->arrived && n->expected != expected && inst->op != TIR_OP_CLUSTER_ARRIVE) {
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, inst, n->last, "the last arrival before it",
                      "threads come to this barrier with different counts");
    } else if (n->arrived + a->warps * SYNC_LANES > expected) {
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, inst, n->last, "the last arrival before it",
                      "more threads come to this barrier than the %u that it waits for", expected);
    } else if (n->strand && tir_sync_clock(who)->known[n->strand] < n->completed) {
        tir_sync_fail(
            r, TIR_E_SYNC_BARRIER, inst, n->completes, "the last arrival of that phase",
            "a warp may come to this barrier before its phase of line %u is complete, and "
            "be counted there: nothing tells it that the phase is over",
            tir_sync_line(r->p, n->completes));
    }
    if (r->outcome != SYNC_GOING)
        return;
    n->expected = expected;
    n->arrived += a->warps * SYNC_LANES;
    bitset_insert(&n->here, a->id);
    n->last = inst;
    if (quiet) { // that it has come is all that it tells, and what fences of mbarrier_init covered
        n->arriving.known[a->events] = a->all.known[a->events];
        n->arriving.known[a->inits] = TIR_MAX(n->arriving.known[a->inits], a->inits_fenced);
    } else
        tir_sync_release(r, who, &n->arriving);
    tir_sync_pass(a);
    if (n->arrived == expected)
        complete_named(r, n);
}

void tir_sync_exit(struct sync_run *r, const struct sync_agent *a)
{
    struct sync_named *n = r->named[0][SYNC_BARRIERS];
    r->threads_left -= a->warps * SYNC_LANES;
    if (!n)
        return;
    if (bitset_has(&n->here, a->id)) // it counts as one of those that have ended
        n->arrived -= a->warps * SYNC_LANES;
    if (n->arrived && n->arrived == r->threads_left)
        complete_named(r, n);
}

static bool meet(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst,
                 struct sync_named *n, uint32_t expected)
{
    struct sync_agent *a = who->agent;
    if (a->stage == 0) {
        uint32_t ticket = n->completed;
        come_to(r, who, inst, n, expected);
        if (r->outcome != SYNC_GOING)
            return true;
        a->ticket = ticket;
        a->stage = 1;
    }
    if (n->completed == a->ticket)
        return false;
    tir_sync_acquire(r, who, &n->done);
    return true;
}

bool tir_sync_role_barrier(struct sync_run *r, const struct sync_who *who,
                           const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    const struct tir_crew *crew = &a->within;
    if (crew->warps == 1) {
        tir_sync_warp(r, a);
        return true;
    }
    uint32_t id = a->role_id;
    if (crew->scope) {
        const struct tir_crew first = tir_crew_of(r->p->f, crew->scope);
        id = tir_crew_barrier(r->p->f, &first) - (crew->first - first.first) / crew->warps;
    }
    if (id >= SYNC_BARRIERS) {
        tir_sync_give_up(r, "named barriers", SYNC_BARRIERS);
        return true;
    }
    return meet(r, who, inst, tir_sync_named(r, a->cta, id), crew->warps * SYNC_LANES);
}

// A fence of mbarrier_init after those of a thread: `fence.mbarrier_init.release.cluster`, which a
// relaxed arrival at the cluster's barrier may follow.
static void fence_inits(struct sync_run *r, struct sync_agent *a, uint16_t strand)
{
    tir_sync_use_strand(r, &a->inits);
    a->inits_fenced++;
    for (uint32_t i = 0; i < r->p->ctas * r->p->mbarrier_count; i++) {
        struct sync_mbarrier *m = &r->mbarriers[i];
        if (!m->init || m->init_strand != strand)
            continue;
        m->init_fenced = true;
        m->told_strand = m->told_at ? m->told_strand : a->inits;
        m->told_at = m->told_at ? m->told_at : a->inits_fenced;
    }
}

static void fence(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    uint16_t strand = a->threads[who->thread].data;
    switch (tir_attr_word(inst, TIR_ATTR_of, TIR_WORD_NONE)) {
    case TIR_WORD_of_wgmma:
        a->fence_time = ++a->now;
        break;
    case TIR_WORD_of_before_thread_sync:
    case TIR_WORD_of_after_thread_sync:
        tir_sync_fence_tmem(r, who, inst);
        break;
    case TIR_WORD_of_async:
        tir_sync_fence(r, who, SYNC_OF_SHARED);
        tir_sync_fence(r, who, SYNC_OF_TENSORS);
        break;
    case TIR_WORD_of_async_shared:
        tir_sync_fence(r, who, SYNC_OF_SHARED);
        break;
    case TIR_WORD_of_async_global:
        tir_sync_fence(r, who, SYNC_OF_TENSORS);
        break;
    case TIR_WORD_of_mbarrier_init:
        fence_inits(r, a, strand);
        break;
    default: // of global memory, or between ordinary accesses, which barriers order
        break;
    }
}

static bool cluster(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    struct sync_named *n = tir_sync_named(r, 0, SYNC_BARRIERS);
    if (inst->op == TIR_OP_CLUSTER_ARRIVE) {
        a->cluster_ticket = n->completed + 1;
        come_to(r, who, inst, n, r->threads_left);
        return true;
    }
    if (!a->cluster_ticket) {
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, inst, NULL, NULL,
                      "cluster_wait without a cluster_arrive before it");
        return true;
    }
    if (n->completed < a->cluster_ticket)
        return false;
    tir_sync_acquire(r, who, &n->done);
    a->cluster_ticket = 0;
    return true;
}

bool tir_sync_barrier_op(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    uint32_t threads = (uint32_t)tir_attr_int(inst, TIR_ATTR_threads, r->p->threads);
    switch (inst->op) {
    case TIR_OP_MBARRIER_INIT:
        init(r, who, inst);
        return true;
    case TIR_OP_ARRIVE:
        arrive(r, who, inst);
        return true;
    case TIR_OP_COMMIT:
        if (tir_commits_copies(inst))
            tir_sync_commit_copies(r, who, inst);
        else
            tir_sync_commit(r, who, inst);
        return true;
    case TIR_OP_WAIT:
        return wait(r, who, inst);
    case TIR_OP_BAR_SYNC:
        return meet(r, who, inst, tir_sync_named(r, a->cta, named_id(inst)), threads);
    case TIR_OP_BAR_ARRIVE:
        come_to(r, who, inst, tir_sync_named(r, a->cta, named_id(inst)), threads);
        return true;
    case TIR_OP_WARP_SYNC:
        tir_sync_meet_lanes(r, who, inst);
        return true;
    case TIR_OP_CLUSTER_ARRIVE:
    case TIR_OP_CLUSTER_WAIT:
        return cluster(r, who, inst);
    case TIR_OP_GRID_SYNC: // of the CTAs that are replayed
        return meet(r, who, inst, tir_sync_named(r, 0, SYNC_GRID_BARRIER),
                    r->p->ctas * r->p->threads);
    case TIR_OP_FENCE:
        fence(r, who, inst);
        return true;
    case TIR_OP_SETMAXNREG:
        a->registers = inst;
        return true;
    default:
        return true;
    }
}

// When a CTA ends, a thread of it must know of all copies to its shared memory.
static void check_mbarrier(struct sync_run *r, const struct sync_mbarrier *m,
                           const struct sync_clock *end)
{
    if (m->bytes) {
        const struct tir_inst *at = m->copy ? m->copy : m->expect;
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, at, m->expect == at ? m->init : m->expect,
                      "the bytes are announced here",
                      m->bytes > 0 ? "the copies bring %lld bytes less than is announced"
                                   : "the copies bring %lld bytes more than is announced",
                      (long long)(m->bytes > 0 ? m->bytes : -m->bytes));
        return;
    }
    if (m->early_for) {
        fail_early(r, m, m->early_for);
        return;
    }
    const bool is_ring = m->init && tir_attr_int(m->init, TIR_ATTR_awaited, 0);
    const bool copies = m->copy && end->known[m->strand] < m->copy_phase;
    if (is_ring && (copies || end->known[m->strand] < m->completed)) {
        tir_sync_fail(r, TIR_E_SYNC_RACE, copies ? m->copy : m->arrive, m->init, "the ring is here",
                      "a slot is put here that no get takes before the CTA ends");
        return;
    }
    if (copies) {
        tir_sync_fail(r, TIR_E_SYNC_RACE, m->copy, NULL, NULL,
                      "the kernel may end while this copy is in flight: no wait for its mbarrier");
        return;
    }
    for (uint32_t i = 0; i < r->agent_count; i++)
        if (m->remote[i].by && end->known[r->agents[i].events] < m->remote[i].at) {
            tir_sync_fail(r, TIR_E_SYNC_RACE, m->remote[i].by, NULL, NULL,
                          "the CTA that this arrives at may have ended: it waits neither for the "
                          "mbarrier nor for the cluster");
            return;
        }
}

void tir_sync_check_end(struct sync_run *r)
{
    for (uint32_t c = 0; c < r->p->ctas && tir_sync_registers(r, c); c++) {
        struct sync_clock clock = tir_sync_new_clock(r), *end = &clock;
        for (uint32_t i = 0; i < r->agent_count; i++)
            if (r->agents[i].cta == c || r->p->has_pairs)
                tir_sync_join(r, end, &r->agents[i].all);
        for (uint32_t i = 0; i < r->p->mbarrier_count && r->outcome == SYNC_GOING; i++)
            check_mbarrier(r, &r->mbarriers[c * r->p->mbarrier_count + i], end);
        for (uint32_t i = 0; i < r->agent_count && r->outcome == SYNC_GOING; i++) {
            const struct sync_agent *a = &r->agents[i];
            if (a->cta == c && a->copies_told && end->known[a->copies] < a->copies_group)
                tir_sync_fail(r, TIR_E_SYNC_RACE, a->copies_last, NULL, NULL,
                              "the kernel may end while this copy is in flight: no wait_group, and "
                              "no wait for an mbarrier, after it");
        }
        if (r->outcome == SYNC_GOING)
            tir_sync_check_core(r, c, end);
        vec_foreach(const struct sync_far, far, &r->far)
            if (far->cta == c && end->known[far->strand] < far->at)
                tir_sync_fail(r, TIR_E_SYNC_RACE, far->by, NULL, NULL,
                              far->by->op == TIR_OP_COPY_ASYNC
                                  ? "the CTA may end while %s still reads its shared memory: "
                                    "nothing tells it that the bytes have arrived"
                                  : "the CTA whose shared memory %s reaches may have ended: it "
                                    "waits neither for an mbarrier nor for the cluster after it",
                              tir_ops[far->by->op].name);
    }
}
