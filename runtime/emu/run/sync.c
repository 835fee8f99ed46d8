// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Barriers of a CTA and of a warp, and the instructions by which lanes exchange values.
//
// A barrier without a count waits for every thread of the CTA that has not exited, as hardware
// does: an exited warp no longer counts. With a count, each warp at an aligned barrier counts
// as 32.

#include <string.h>

#include "emu/check/undefined.h"
#include "emu/lane/fp.h"
#include "emu/run/run.h"
#include "emu/run/state.h"
#include "emu/run/trace.h"

static const uint32_t *lanes(const struct emu_warp *w, uint32_t ref)
{
    return emu_at_ref(w, ref);
}

// --- barriers of a CTA ---

static void release(struct emu_cta *cta, uint32_t id)
{
    struct emu_barrier *b = &cta->barriers[id];
    for (uint32_t i = 0; i < cta->launch->warps; i++) {
        struct emu_warp *w = &cta->warps[i];
        uint32_t mask = 0;
        for (uint32_t k = 0; k < w->path_count; k++) {
            struct emu_path *p = w->paths[k];
            if (p->state != EMU_PATH_BARRIER || p->barrier != id)
                continue;
            mask |= p->mask;
            const struct emu_insn *in = &cta->launch->module->code.at[p->pc - 1];
            uint8_t *saved = w->base[EMU_BASE_REG];
            w->base[EMU_BASE_REG] = p->frame->regs;
            const uint32_t op = in->op & 15;
            uint32_t popc[EMU_WARP];
            for (int j = 0; j < EMU_WARP; j++)
                popc[j] = b->popc;
            if (op == EMU_BAR_POPC)
                emu_commit(w, in->dst, popc, 4, p->mask);
            else if (op == EMU_BAR_AND || op == EMU_BAR_OR)
                emu_commit_pred(w, in->dst, (op == EMU_BAR_AND ? b->all : b->any) ? EMU_FULL : 0,
                                p->mask);
            w->base[EMU_BASE_REG] = saved;
            p->state = EMU_PATH_READY;
            emu_trace_wait(w, b->time, "barrier");
        }
        if (w->agent && mask) {
            emu_order_acquire(w->agent, &b->view);
            emu_order_lanes(w->agent, mask, w->alive);
        }
    }
    *b = (struct emu_barrier){.view = b->view};
    cta->launch->events++;
}

static void check_complete(struct emu_cta *cta, uint32_t id)
{
    const struct emu_barrier *b = &cta->barriers[id];
    const uint32_t expected = b->expected == EMU_NO_REF ? cta->alive : b->expected;
    if (b->expected && b->arrived >= expected)
        release(cta, id);
}

void emu_barrier_recheck(struct emu_cta *cta)
{
    for (uint32_t id = 0; id < EMU_BARRIERS; id++)
        if (cta->barriers[id].expected == EMU_NO_REF)
            check_complete(cta, id);
}

// dst; src: barrier, threads (when count is 1), predicate; round: the predicate is negated
EMU_RUN(bar)
{
    const bool aligned = in->op & EMU_BAR_ALIGNED;
    const uint32_t op = in->op & 15, lane = emu_first_lane(mask);
    if (aligned && !emu_path_meet(w, mask, EMU_FULL))
        return;
    const uint32_t id = lanes(w, in->src[0])[lane];
    const uint32_t count = in->count ? lanes(w, in->src[1])[lane] : 0;
    for (uint32_t i = 0; i < EMU_WARP; i++)
        if (mask >> i & 1 &&
            (lanes(w, in->src[0])[i] != id || (in->count && lanes(w, in->src[1])[i] != count)))
            emu_fault(w, i, "barrier: lanes of a warp name different barriers or counts");
    if (id >= EMU_BARRIERS)
        emu_fault(w, lane, "barrier %u does not exist; there are %d", id, EMU_BARRIERS);
    if (in->count && (count == 0 || count % EMU_WARP))
        emu_fault(w, lane, "barrier %u: count %u is not a multiple of the warp size", id, count);
    struct emu_barrier *b = &w->cta->barriers[id];
    const uint32_t expected = in->count ? count : EMU_NO_REF;
    if (b->expected && b->expected != expected)
        emu_fault(w, lane, "barrier %u: waits for different counts of threads", id);
    if (!b->expected) {
        *b = (struct emu_barrier){.expected = expected, .all = true, .view = b->view};
        emu_view_clear(&b->view, &w->cta->cluster->domain);
    }
    if (w->agent) {
        w->agent->acting = mask;
        emu_order_release(w->agent, &b->view);
        w->agent->acting = EMU_FULL;
    }
    w->launch->events++;
    emu_trace_reach(&b->time, w->time);
    b->arrived += aligned && in->count ? EMU_WARP : emu_popc(mask);
    if (in->count && b->arrived > expected)
        emu_fault(w, lane, "barrier %u: more threads arrive than the %u it waits for", id, count);
    if (op >= EMU_BAR_POPC) {
        const uint32_t p = *lanes(w, in->src[2]) ^ (in->round ? EMU_FULL : 0);
        b->popc += emu_popc(p & mask);
        b->all &= (p & mask) == mask;
        b->any |= (p & mask) != 0;
    }
    if (op != EMU_BAR_ARRIVE) {
        w->path->state = EMU_PATH_BARRIER;
        w->path->barrier = id;
        w->reschedule = true;
    }
    check_complete(w->cta, id);
}

// --- barriers of a cluster ---

void emu_cluster_barrier_recheck(struct emu_cluster *cluster)
{
    struct emu_grid *l = cluster->launch;
    const uint32_t warps = cluster->size * l->warps;
    if (!cluster->arrived)
        return;
    for (uint32_t i = 0; i < warps; i++) {
        const struct emu_warp *w = &cluster->ctas[i / l->warps].warps[i % l->warps];
        if (w->alive & ~w->cluster_arrived)
            return;
    }
    cluster->arrived = 0;
    cluster->done_time = cluster->arrived_time;
    cluster->launch->events++;
    for (uint32_t i = 0; i < warps; i++) {
        struct emu_warp *w = &cluster->ctas[i / l->warps].warps[i % l->warps];
        w->cluster_done |= w->cluster_arrived;
        w->cluster_arrived = 0;
        if (w->agent) {
            emu_view_clear(&w->cluster_view, &cluster->domain);
            emu_view_join(&l->order, &w->cluster_view, &cluster->view);
            emu_order_lanes(w->agent, w->alive, w->alive);
        }
        for (uint32_t k = 0; k < w->path_count; k++)
            if (w->paths[k]->state == EMU_PATH_CLUSTER)
                w->paths[k]->state = EMU_PATH_READY;
    }
}

// op: EMU_BAR_ALIGNED or 0
EMU_RUN(cluster_arrive)
{
    if (in->op & EMU_BAR_ALIGNED && !emu_path_meet(w, mask, EMU_FULL))
        return;
    const uint32_t again = mask & (w->cluster_arrived | w->cluster_done);
    if (again)
        emu_fault(w, emu_first_lane(again),
                  "barrier.cluster: arrives twice without barrier.cluster.wait");
    if (w->agent && !w->cta->cluster->arrived)
        emu_view_clear(&w->cta->cluster->view, &w->cta->cluster->domain);
    if (w->agent && in->order & EMU_RELEASE) {
        w->agent->acting = mask;
        emu_order_release(w->agent, &w->cta->cluster->view);
        w->agent->acting = EMU_FULL;
    } else if (w->agent) {
        emu_order_release_inits(w->agent, &w->cta->cluster->view);
    }
    w->cluster_arrived |= mask;
    w->cta->cluster->arrived += emu_popc(mask);
    emu_trace_reach(&w->cta->cluster->arrived_time, w->time);
    w->launch->events++;
    emu_cluster_barrier_recheck(w->cta->cluster);
}

EMU_RUN(cluster_wait)
{
    if (in->op & EMU_BAR_ALIGNED && !emu_path_meet(w, mask, EMU_FULL))
        return;
    const uint32_t never = mask & ~(w->cluster_arrived | w->cluster_done);
    if (never)
        emu_fault(w, emu_first_lane(never), "barrier.cluster: waits without having arrived");
    if (mask & w->cluster_arrived) {
        w->path->pc--;
        w->path->state = EMU_PATH_CLUSTER;
        w->reschedule = true;
        return;
    }
    w->cluster_done &= ~mask;
    if (w->agent && in->order & EMU_ACQUIRE)
        emu_order_acquire(w->agent, &w->cluster_view);
    emu_trace_wait(w, w->cta->cluster->done_time, "cluster barrier");
}

// --- inside a warp ---

// The lanes of `left` that name the same members as its first one.
static uint32_t first_group(const struct emu_warp *w, uint32_t ref, uint32_t left)
{
    const uint32_t members = lanes(w, ref)[emu_first_lane(left)];
    uint32_t group = 0;
    for (uint32_t i = 0; i < EMU_WARP; i++)
        group |= (uint32_t)(left >> i & 1 && lanes(w, ref)[i] == members) << i;
    return group;
}

#define DIFFERENT "lanes name different members: one of 0x%08x, and lane %u 0x%08x"

// Lanes that name the same members must be among them, and the lanes of `mask` that they name must
// name the same ones: they wait for those alone.
static void check_group(struct emu_warp *w, uint32_t ref, uint32_t group, uint32_t mask)
{
    const uint32_t *names = lanes(w, ref);
    const uint32_t members = names[emu_first_lane(group)], others = members & mask & ~group;
    if (group & ~members)
        emu_fault(w, emu_first_lane(group & ~members),
                  "a lane is not in its own member mask 0x%08x", members);
    if (others)
        emu_fault(w, emu_first_lane(group), DIFFERENT, members, emu_first_lane(others),
                  names[emu_first_lane(others)]);
}

// The member mask of a .sync instruction; false when lanes are missing and the path now waits.
static bool meet(struct emu_warp *w, uint32_t ref, uint32_t mask)
{
    uint32_t members = 0;
    for (uint32_t left = mask; left;) {
        const uint32_t group = first_group(w, ref, left);
        check_group(w, ref, group, mask);
        members |= lanes(w, ref)[emu_first_lane(group)];
        left &= ~group;
    }
    if (!emu_path_gather(w, mask, members))
        return false;
    emu_path_check_gone(w, members);
    for (uint32_t left = mask; left && w->agent;) {
        const uint32_t group = first_group(w, ref, left);
        emu_order_lanes(w->agent, group, w->alive);
        left &= ~group;
    }
    return true;
}

// Lanes that come together may name different members: each set of them computes by itself. All
// sets that came together wait until all of them are complete.
static void each_group(struct emu_warp *w, const struct emu_insn *in, uint32_t ref, uint32_t mask,
                       emu_run_fn run)
{
    if (!meet(w, ref, mask))
        return;
    for (uint32_t left = mask; left;) {
        const uint32_t group = first_group(w, ref, left);
        left &= ~group;
        run(w, in, group);
    }
}

// The lanes of another path that are named must name the same ones.
static void check_path(struct emu_warp *w, const struct emu_path *p, uint32_t ref, uint32_t members)
{
    uint8_t *saved = w->base[EMU_BASE_REG];
    w->base[EMU_BASE_REG] = p->frame->regs;
    for (uint32_t left = p->mask & members; left; left &= left - 1) {
        const uint32_t lane = emu_first_lane(left), other = lanes(w, ref)[lane];
        if (other != members)
            emu_fault(w, lane, DIFFERENT, members, lane, other);
    }
    w->base[EMU_BASE_REG] = saved;
}

// Unlike the others, lanes may be at different bar.warp.sync: the last to arrive releases them all.
static bool release_warp(struct emu_warp *w, uint32_t mask, uint32_t members)
{
    const struct emu_insn *code = w->launch->module->code.at;
    uint32_t there = mask;
    for (uint32_t i = 0; i < w->path_count; i++) {
        const struct emu_path *p = w->paths[i];
        if (p->state != EMU_PATH_MEET || code[p->pc].run != emu_run_bar_warp)
            continue;
        there |= p->mask;
        check_path(w, p, code[p->pc].src[0], members);
    }
    if (members & w->alive & ~there)
        return false;
    emu_path_check_gone(w, members);
    for (uint32_t i = 0; i < w->path_count; i++) {
        struct emu_path *p = w->paths[i];
        if (p->state == EMU_PATH_MEET && code[p->pc].run == emu_run_bar_warp && p->mask & members) {
            p->state = EMU_PATH_READY;
            p->meeting = NULL;
            p->pc++;
        }
    }
    w->reschedule = true;
    if (w->agent)
        emu_order_lanes(w->agent, there & members, w->alive);
    return true;
}

EMU_RUN(bar_warp)
{
    const uint32_t members = lanes(w, in->src[0])[emu_first_lane(mask)];
    if (w->path_count == 1 || !release_warp(w, mask, members))
        meet(w, in->src[0], mask);
}

// dst | list: predicate; src: value, lane or distance, clamp, member mask
EMU_RUN(shfl)
{
    uint32_t out[EMU_WARP], read[EMU_WARP], inside = 0;
    if (!meet(w, in->src[3], mask))
        return;
    const uint32_t *a = lanes(w, in->src[0]), *b = lanes(w, in->src[1]), *c = lanes(w, in->src[2]);
    const uint32_t *members = lanes(w, in->src[3]);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        const uint32_t by = b[i] & 31, clamp = c[i] & 31, segment = c[i] >> 8 & 31;
        const uint32_t low = i & segment, high = low | (clamp & ~segment);
        uint32_t from = i;
        bool ok = false;
        switch ((enum emu_shfl_op)in->op) {
        case EMU_SHFL_IDX:
            from = low | (by & ~segment);
            ok = from <= high;
            break;
        case EMU_SHFL_UP:
            from = i - by;
            ok = (int32_t)from >= (int32_t)high;
            break;
        case EMU_SHFL_DOWN:
            from = i + by;
            ok = from <= high;
            break;
        case EMU_SHFL_BFLY:
            from = i ^ by;
            ok = from <= high;
            break;
        }
        if (!ok)
            from = i;
        if (mask >> i & 1 && !(mask & members[i] & 1u << from))
            emu_fault(w, i, "shfl.sync reads lane %u, which does not take part", from);
        out[i] = a[from];
        read[i] = from;
        inside |= (uint32_t)ok << i;
    }
    if (w->undefined_count)
        emu_undefined_shuffled(w, in->dst, in->src[0], read, mask);
    emu_commit(w, in->dst, out, 4, mask);
    emu_commit_pred(w, in->list, inside, mask);
}

// dst; src: predicate, member mask; round: the predicate is negated
static void vote(struct emu_warp *w, const struct emu_insn *in, uint32_t mask)
{
    uint32_t out[EMU_WARP];
    const uint32_t p = (*lanes(w, in->src[0]) ^ (in->round ? EMU_FULL : 0)) & mask;
    bool yes = false;
    switch ((enum emu_vote_op)in->op) {
    case EMU_VOTE_ALL:
        yes = p == mask;
        break;
    case EMU_VOTE_ANY:
        yes = p != 0;
        break;
    case EMU_VOTE_UNI:
        yes = p == mask || p == 0;
        break;
    case EMU_VOTE_BALLOT:
        for (int i = 0; i < EMU_WARP; i++)
            out[i] = p;
        emu_commit(w, in->dst, out, 4, mask);
        return;
    }
    emu_commit_pred(w, in->dst, yes ? EMU_FULL : 0, mask);
}

EMU_RUN(vote)
{
    each_group(w, in, in->src[1], mask, vote);
}

// dst | list: predicate; src: value, member mask; op: 1 for match.all; width
static void match(struct emu_warp *w, const struct emu_insn *in, uint32_t mask)
{
    uint32_t out[EMU_WARP] = {0}, all = 0;
    uint64_t v[EMU_WARP];
    for (int i = 0; i < EMU_WARP; i++)
        v[i] = in->width == 8 ? ((const uint64_t *)emu_at_ref(w, in->src[0]))[i]
                              : lanes(w, in->src[0])[i];
    for (uint32_t i = 0; i < EMU_WARP; i++)
        for (uint32_t k = 0; k < EMU_WARP; k++)
            out[i] |= (uint32_t)(mask >> k & 1 && v[k] == v[i]) << k;
    if (in->op)
        for (uint32_t i = 0; i < EMU_WARP; i++) {
            all |= (uint32_t)(out[i] == mask) << i;
            out[i] = out[i] == mask ? mask : 0;
        }
    emu_commit(w, in->dst, out, 4, mask);
    emu_commit_pred(w, in->list, all, mask);
}

EMU_RUN(match)
{
    each_group(w, in, in->src[1], mask, match);
}

// A float as an integer that orders as it does, -0 below +0.
static int64_t order_of(uint32_t bits)
{
    return bits >> 31 ? -(int64_t)(bits & 0x7fffffff) - 1 : (int64_t)bits;
}

static bool is_nan(uint32_t bits)
{
    return (bits & 0x7fffffff) > 0x7f800000;
}

// NaNs do not take part, or win (.NaN).
static uint32_t reduce_floats(bool is_min, uint32_t flags, uint32_t a, uint32_t b)
{
    const uint32_t keep = flags & EMU_REDUX_ABS ? 0x7fffffff : UINT32_MAX;
    a &= keep;
    b &= keep;
    if (is_nan(a) || is_nan(b))
        return flags & EMU_REDUX_NAN || (is_nan(a) && is_nan(b)) ? EMU_NAN_F32 : is_nan(a) ? b : a;
    return (order_of(a) < order_of(b)) == is_min ? a : b;
}

uint32_t emu_reduce(const struct emu_insn *in, enum emu_redux_op op, uint32_t a, uint32_t b)
{
    const bool less = in->type == EMU_s32 ? (int32_t)a < (int32_t)b : a < b;
    if (in->type == EMU_f32)
        return reduce_floats(op == EMU_REDUX_MIN, in->round, a, b);
    switch (op) {
    case EMU_REDUX_ADD:
        return a + b;
    case EMU_REDUX_MIN:
        return less ? a : b;
    case EMU_REDUX_MAX:
        return less ? b : a;
    case EMU_REDUX_AND:
        return a & b;
    case EMU_REDUX_OR:
        return a | b;
    case EMU_REDUX_XOR:
        break;
    }
    return a ^ b;
}

// dst; src: value, member mask; type
static void redux(struct emu_warp *w, const struct emu_insn *in, uint32_t mask)
{
    uint32_t out[EMU_WARP];
    const enum emu_redux_op op = (enum emu_redux_op)in->op;
    const uint32_t first = emu_first_lane(mask);
    uint32_t sum = lanes(w, in->src[0])[first];
    if (in->type == EMU_f32) // alone, it is made positive or the one NaN too
        sum = emu_reduce(in, op, sum, sum);
    for (uint32_t i = first + 1; i < EMU_WARP; i++)
        if (mask >> i & 1)
            sum = emu_reduce(in, op, sum, lanes(w, in->src[0])[i]);
    for (int i = 0; i < EMU_WARP; i++)
        out[i] = sum;
    emu_commit(w, in->dst, out, 4, mask);
}

EMU_RUN(redux)
{
    each_group(w, in, in->src[1], mask, redux);
}

EMU_RUN(activemask)
{
    uint32_t out[EMU_WARP];
    for (int i = 0; i < EMU_WARP; i++)
        out[i] = mask;
    emu_commit(w, in->dst, out, 4, mask);
}

// dst | list: predicate; src: member mask. The lowest member is elected.
static void elect(struct emu_warp *w, const struct emu_insn *in, uint32_t mask)
{
    uint32_t out[EMU_WARP];
    const uint32_t leader = emu_first_lane(mask);
    for (int i = 0; i < EMU_WARP; i++)
        out[i] = leader;
    emu_commit(w, in->dst, out, 4, mask);
    emu_commit_pred(w, in->list, 1u << leader, mask);
}

EMU_RUN(elect)
{
    each_group(w, in, in->src[0], mask, elect);
}
