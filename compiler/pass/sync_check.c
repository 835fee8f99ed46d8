// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check: proves that what a kernel shares is ordered, from its text alone.
//
//     wait(view(full[s]), p);          // the copy's bytes are here
//     fence(of = wgmma);
//     let d: f32[128, 256] in WG = gemm_async(view(a[s, 0:+128, 0:+64]), bt, acc);
//     commit_group(engine = wgmma);
//     arrive(view(empty[s]));          // refused: the product may still read slot s
//
// The kernel is replayed: every warp is run, with integers computed and data unknown, for settings
// of its arguments that give each loop 0, 1, ... 2 S + 2 rounds (S: slots of the deepest ring) and
// each persistent CTA enough tiles to go round the ring as well. What lies between two accesses is
// known by clocks (sync_check.h), so one schedule finds every race, every missing proxy fence and
// every release that comes too early; mbarriers whose arrivals or bytes do not balance, and threads
// that wait for ever, are found as they happen.
//
// Branches on data are replayed not taken, taken and mixed. What is not modelled, or costs more
// than the work limit, is named in the receipt; it is never taken to be right.

#include "pass/sync_check.h"

enum { WORK_LIMIT = 1000000, MIXED_SEEDS = 2 };

struct plan {
    struct sync_program p;
    int64_t *args;
    uint32_t replays;
    int64_t most; // rounds
    bool decided;
};

// The host block, where it can be computed: whether the arguments may be as they are.
static bool is_allowed(const struct plan *s)
{
    const struct tir_func *f = s->p.f;
    const struct tir_inst *yield = tir_yield_of(f->host);
    int64_t *at = arena_array(s->p.cx->scratch, int64_t, f->value_count);
    struct bitset known = bitset_new(s->p.cx->scratch, f->value_count);
    for (uint32_t i = 0; i < f->body->arg_count; i++) {
        const struct tir_type *t = f->body->args[i]->type;
        at[f->body->args[i]->id] = s->args[i];
        if (tir_type_is_scalar(t) && !tir_elem_is_float(t->elem))
            bitset_insert(&known, f->body->args[i]->id);
    }
    for (const struct tir_inst *inst = f->host->first; inst && inst != yield; inst = inst->next) {
        union tir_number in[3] = {{0}}, out;
        bool computed = inst->operand_count > 0 && inst->operand_count <= 3;
        for (uint32_t i = 0; computed && i < inst->operand_count; i++) {
            const struct tir_value *v = inst->operands[i];
            bool constant = v->kind == TIR_VALUE_CONST && !tir_elem_is_float(v->type->elem);
            computed = constant || bitset_has(&known, v->id);
            in[i].i = constant ? v->constant.i : at[v->id];
        }
        if (!computed)
            continue;
        enum tir_elem elem = inst->operands[inst->operand_count - 1]->type->elem;
        if (inst->op == TIR_OP_CAST)
            out = tir_number_cast(inst->results[0]->type->elem, elem, in[0]);
        else if (!tir_number_apply(inst->op, elem, in, &out))
            continue;
        at[inst->results[0]->id] = out.i;
        bitset_insert(&known, inst->results[0]->id);
    }
    for (uint32_t i = f->grid_count; yield && i < yield->operand_count; i++) {
        const struct tir_value *v = yield->operands[i];
        if (v->kind == TIR_VALUE_CONST ? !v->constant.i : bitset_has(&known, v->id) && !at[v->id])
            return false;
    }
    return true;
}

static enum sync_outcome replay_once(struct plan *s, uint32_t waves, uint32_t seed)
{
    struct tir_arena *arena = s->p.cx->scratch;
    for (;;) {
        struct tir_arena_mark mark = tir_arena_mark(arena);
        struct sync_run r = {
            .p = &s->p, .arena = arena, .args = s->args, .waves = waves, .seed = seed};
        enum sync_outcome outcome = SYNC_GOING;
        if (is_allowed(s)) {
            outcome = tir_sync_replay(&r);
            s->replays++;
        }
        s->decided = r.decided;
        tir_arena_release(arena, mark);
        if (outcome != SYNC_SPLIT)
            return outcome;
    }
}

static enum sync_outcome replay(struct plan *s, int64_t rounds)
{
    int64_t ring = 2 * s->p.depth + 2;
    int64_t waves = rounds ? TIR_MAX(tir_ceil_div(ring, rounds) + 1, 2) : 2;
    enum sync_outcome outcome = replay_once(s, (uint32_t)waves, 0);
    bool decided = s->decided;
    for (uint32_t seed = 1; decided && seed <= MIXED_SEEDS + 1 && outcome == SYNC_GOING; seed++)
        outcome = replay_once(s, (uint32_t)waves, seed);
    s->most = TIR_MAX(s->most, rounds);
    return outcome;
}

static bool is_loop_arg(const struct plan *s, uint32_t i)
{
    return s->p.args[i].loops;
}

// Loops get `rounds` rounds, and all else room for several tiles.
static void set_args(struct plan *s, int64_t rounds)
{
    for (uint32_t i = 0; i < s->p.f->body->arg_count; i++) {
        int64_t granule = TIR_MAX(s->p.args[i].granule, 1);
        s->args[i] = granule * (is_loop_arg(s, i) ? rounds : 4);
    }
}

// Each of several arguments that decide about loops by itself, the others in the middle.
static enum sync_outcome replay_apart(struct plan *s)
{
    const int64_t some[] = {0, 1, s->p.depth + 1};
    uint32_t count = 0;
    enum sync_outcome outcome = SYNC_GOING;
    for (uint32_t i = 0; i < s->p.f->body->arg_count; i++)
        count += is_loop_arg(s, i);
    for (uint32_t i = 0; count > 1 && i < s->p.f->body->arg_count; i++)
        for (uint32_t k = 0; is_loop_arg(s, i) && k < TIR_COUNT_OF(some) && outcome == SYNC_GOING;
             k++) {
            set_args(s, s->p.depth);
            s->args[i] = some[k] * TIR_MAX(s->p.args[i].granule, 1);
            outcome = replay(s, TIR_MAX(some[k], 1));
        }
    return outcome;
}

// One element more than whole rounds.
static enum sync_outcome replay_ragged(struct plan *s)
{
    set_args(s, s->p.depth);
    for (uint32_t i = 0; i < s->p.f->body->arg_count; i++)
        s->args[i] += is_loop_arg(s, i);
    return replay(s, s->p.depth);
}

static enum sync_outcome replay_all(struct plan *s)
{
    int64_t most = s->p.has_data_loops ? 2 * s->p.depth + 2 : 0;
    enum sync_outcome outcome = SYNC_GOING;
    if (s->p.ctas > SYNC_CTAS)
        return SYNC_GIVEN_UP;
    for (int64_t rounds = 0; rounds <= most && outcome == SYNC_GOING; rounds++) {
        set_args(s, rounds);
        outcome = replay(s, s->p.has_data_loops ? rounds : 1);
    }
    if (outcome == SYNC_GOING && s->p.has_data_loops)
        outcome = replay_apart(s);
    if (outcome == SYNC_GOING && s->p.has_data_loops)
        outcome = replay_ragged(s);
    return outcome;
}

static void write_receipt(struct plan *s, enum sync_outcome outcome)
{
    struct sync_program *p = &s->p;
    if (!p->mbarrier_count && !p->role_count && !p->unchecked.len && outcome == SYNC_GOING)
        return;
    tir_receipt_add(p->cx, TIR_TOPIC_SYNC, p->f->span,
                    "sync: checked in %u replays, loops of up to %lld rounds", s->replays,
                    (long long)s->most);
    if (outcome == SYNC_GIVEN_UP && !p->unchecked.len)
        tir_receipt_add(p->cx, TIR_TOPIC_SYNC, p->f->span,
                        "sync: unchecked: the kernel takes more work than the limit");
    vec_foreach(const tir_str, line, &p->unchecked)
        tir_receipt_add(p->cx, TIR_TOPIC_SYNC, p->f->span, "sync: unchecked: " STR_FMT,
                        STR_ARG(*line));
}

enum tir_change tir_pass_sync_check(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct plan s = {.p = {.f = f, .cx = cx, .work_limit = WORK_LIMIT}};
    if (!tir_sync_prepare(&s.p)) {
        write_receipt(&s, SYNC_GOING);
        return TIR_UNCHANGED;
    }
    if (!tir_sync_limits(&s.p))
        return TIR_FAILED;
    s.args = arena_array(cx->scratch, int64_t, f->body->arg_count + 1);
    enum sync_outcome outcome = replay_all(&s);
    if (outcome == SYNC_FAILED)
        return TIR_FAILED;
    write_receipt(&s, outcome);
    return TIR_UNCHANGED;
}
