// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's replay: runs every agent until it ends or must wait, and repeats this until no agent
// makes progress. Agents that are left then wait for ever. Blocks are in flow.c.

#include "pass/sync_check/sync_check.h"

// Invariants are computed once.
static void compute(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst)
{
    if (!bitset_has(&r->p->fixed, inst->results[0]->id) ||
        a->slots[inst->results[0]->id].kind == SYNC_UNSET)
        tir_sync_evaluate(r, a, inst);
}

static bool other(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    if (a->stage == 0 && r->p->has_wgmma) {
        a->now++;
        tir_sync_use_tiles(r, a, inst);
    }
    if (r->outcome != SYNC_GOING || !tir_sync_access_op(r, who, inst))
        return false;
    if (inst->result_count)
        compute(r, a, inst);
    return true;
}

// Instructions of wgmma that all lanes of a warp execute together (PTX ISA 9.7.15, .aligned).
static bool is_aligned(const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_COMMIT_GROUP:
    case TIR_OP_WAIT_GROUP:
        return tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_engine_cp_async) ==
               TIR_WORD_engine_wgmma;
    case TIR_OP_FENCE:
        return tir_attr_word(inst, TIR_ATTR_of, TIR_WORD_NONE) == TIR_WORD_of_wgmma;
    case TIR_OP_GEMM_ASYNC:
    case TIR_OP_AWAIT:
    case TIR_OP_SETMAXNREG:
        return true;
    default:
        return false;
    }
}

// False: the agent has to wait.
static bool execute(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst)
{
    struct sync_lanes *lanes = &tir_sync_top(a)->lanes;
    if (a->stage == 0)
        a->visits[inst->id]++;
    if (r->p->classes[inst->id] == SYNC_BLOCKS) {
        tir_sync_enter(r, a, inst);
        return true;
    }
    tir_sync_name_lanes(r, a, lanes, false);
    struct sync_who who = {a, lanes->thread, lanes->count, lanes->mask, lanes->data, lanes->spread};
    if ((lanes->mask || lanes->spread > SYNC_WARPS) && is_aligned(inst) &&
        !tir_sync_all_come(r, &who, inst, SYNC_WARPS))
        return true;
    switch ((enum sync_class)r->p->classes[inst->id]) {
    case SYNC_BARRIER:
        return tir_sync_barrier_op(r, &who, inst);
    case SYNC_GROUP:
        return tir_sync_group_op(r, &who, inst);
    case SYNC_PRODUCT:
        return tir_sync_access_op(r, &who, inst);
    case SYNC_WARP:
        if (tir_sync_all_come(r, &who, inst, SYNC_WARPS))
            compute(r, a, inst);
        return true;
    default:
        return other(r, &who, inst);
    }
}

// Which way a comparison went. What data decides may go both ways.
static void note_comparison(struct sync_run *r, const struct sync_agent *a,
                            const struct tir_inst *inst)
{
    if (!tir_sync_is_comparison(inst))
        return;
    const struct sync_value *v = &a->slots[inst->results[0]->id];
    for (uint32_t k = 0; k < 2; k++)
        if (v->kind != SYNC_INT || v->number == !k)
            bitset_insert(r->came, 2 * inst->id + k);
}

// Computes what only the agent itself sees, as far as it comes: what is next then.
static const struct tir_inst *run_silent(struct sync_run *r, struct sync_agent *a,
                                         const struct tir_inst *inst)
{
    const struct sync_program *p = r->p;
    for (; inst; inst = p->next[inst->id], r->p->work++) {
        switch ((enum sync_class)p->classes[inst->id]) {
        case SYNC_ARITHMETIC:
            if (!tir_sync_arithmetic(a, inst))
                tir_sync_evaluate(r, a, inst);
            note_comparison(r, a, inst);
            break;
        case SYNC_VIEW:
            if (!tir_sync_evaluate_view(r, a, inst))
                tir_sync_evaluate(r, a, inst);
            break;
        case SYNC_ONCE:
            if (a->slots[inst->results[0]->id].kind == SYNC_UNSET)
                tir_sync_evaluate(r, a, inst);
            note_comparison(r, a, inst);
            break;
        case SYNC_WARP:
            if (tir_sync_top(a)->lanes.mask || tir_sync_top(a)->lanes.spread > SYNC_WARPS)
                return inst;
            a->visits[inst->id]++;
            compute(r, a, inst);
            break;
        case SYNC_VALUE:
            a->visits[inst->id]++;
            tir_sync_evaluate(r, a, inst);
            break;
        default:
            return inst;
        }
    }
    return NULL;
}

// One instruction that others can see, or the end of a block: agents take turns, so that of two
// accesses that nothing orders the one that comes first in the text is mostly noted first. False:
// it has to wait.
static bool step(struct sync_run *r, struct sync_agent *a)
{
    const struct tir_inst *inst = run_silent(r, a, tir_sync_top(a)->next);
    tir_sync_top(a)->next = inst;
    if (++r->p->work > r->p->work_limit) {
        r->outcome = SYNC_GIVEN_UP;
        return true;
    }
    if (!inst) {
        tir_sync_end_block(r, a);
        if (!a->depth && r->outcome == SYNC_GOING) {
            tir_sync_leave(r, a);
            tir_sync_exit(r, a);
        }
        return true;
    }
    struct sync_frame *f = tir_sync_top(a);
    f->next = r->p->next[inst->id];
    a->stopped = NULL;
    if (execute(r, a, inst)) {
        a->stage = 0;
        return true;
    }
    f->next = inst;
    a->stopped = inst;
    a->stopped_at = r->phases;
    return false;
}

static const struct sync_mbarrier *waits_for(struct sync_run *r, const struct sync_agent *a)
{
    int64_t count;
    if (!a->stopped || a->stopped->op != TIR_OP_WAIT)
        return NULL;
    return tir_sync_mbarriers(r, a, a->stopped, a->stopped->operands[TIR_BAR], UINT32_MAX, &count);
}

static void report_wait(struct sync_run *r, const struct tir_inst *at,
                        const struct sync_mbarrier *m)
{
    const struct tir_inst *note = m->arrive ? m->arrive : m->init;
    if (m->bytes) {
        tir_sync_fail(r, TIR_E_SYNC_DEADLOCK, at, m->copy ? m->copy : note, "the last copy",
                      "this wait may never end: the copies of the phase bring %lld bytes %s than "
                      "line %u announces",
                      (long long)(m->bytes < 0 ? -m->bytes : m->bytes),
                      m->bytes < 0 ? "more" : "less", tir_sync_line(r->p, note));
        return;
    }
    tir_sync_fail(r, TIR_E_SYNC_DEADLOCK, at, note,
                  m->arrive ? "the last arrival" : "it is initialised here",
                  "this wait may never end: %lld of %lld arrivals have come in phase %u",
                  (long long)(m->count - m->pending), (long long)m->count, m->completed);
}

// Of the agents that are left: one whose mbarrier lacks bytes, or else lacks arrivals, or else any.
static void report_stopped(struct sync_run *r)
{
    const struct sync_agent *first = NULL, *other = NULL;
    int best = -1;
    for (uint32_t i = 0; i < r->agent_count; i++) {
        const struct sync_agent *a = &r->agents[i];
        const struct sync_mbarrier *m = waits_for(r, a);
        int score = m && m->bytes ? 2 : m ? 1 : 0;
        if (a->stopped && score > best) {
            best = score;
            first = a;
        }
    }
    for (uint32_t i = 0; i < r->agent_count; i++)
        if (r->agents[i].stopped && r->agents[i].stopped != first->stopped)
            other = &r->agents[i];
    const struct sync_mbarrier *m = waits_for(r, first);
    if (m) {
        report_wait(r, first->stopped, m);
        return;
    }
    tir_sync_fail(r, TIR_E_SYNC_DEADLOCK, first->stopped, other ? other->stopped : NULL,
                  "other threads wait here",
                  "this %s may never end: some of the threads it waits for do not come",
                  tir_ops[first->stopped->op].name);
}

// Lets each agent run that may, but for those that are further ahead. False: none has moved.
static bool run_all(struct sync_run *r, int64_t most_ahead)
{
    bool moved = false;
    for (uint32_t i = 0; i < r->agent_count && r->outcome == SYNC_GOING; i++) {
        struct sync_agent *a = &r->agents[i];
        if (!a->depth || (a->stopped && a->stopped_at == r->phases) ||
            (most_ahead < INT64_MAX && tir_sync_is_ahead(r, a, most_ahead)))
            continue;
        while (step(r, a)) {
            moved = true;
            if (r->pace != SYNC_HURRIED || !a->depth || r->outcome != SYNC_GOING || r->recurs)
                break;
        }
    }
    return moved;
}

// As run_all, for the pace of the replay. Those behind may wait for what one ahead is about to do.
static bool run_at_pace(struct sync_run *r)
{
    bool moved = false;
    for (int64_t most = 1; r->pace == SYNC_ABREAST && !moved && most <= 2 * r->p->depth; most++)
        moved = run_all(r, most);
    return moved || run_all(r, INT64_MAX);
}

enum sync_outcome tir_sync_replay(struct sync_run *r)
{
    tir_sync_reset(r);
    while (r->outcome == SYNC_GOING && !r->recurs && run_at_pace(r))
        continue;
    if (r->recurs) // from here on nothing is new
        return r->outcome;
    for (uint32_t i = 0; i < r->agent_count && r->outcome == SYNC_GOING; i++)
        if (r->agents[i].depth)
            report_stopped(r);
    if (r->outcome == SYNC_GOING)
        tir_sync_check_end(r);
    return r->outcome;
}
