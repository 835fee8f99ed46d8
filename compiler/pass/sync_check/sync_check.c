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
// of its arguments that give each loop 0, 1, ... S + 2 and 2 S to 2 S + 2 rounds (S: slots of the
// deepest ring) and each persistent CTA enough tiles to go round the ring as well. What lies
// between two accesses is known by clocks (sync_check.h), so one schedule finds every race, every
// missing proxy fence and every release that comes too early; mbarriers whose arrivals or bytes do
// not balance, and threads that wait for ever, are found as they happen.
//
// Branches on data are replayed not taken, taken and mixed. What is not modelled, or costs more
// than the work limit, is named in the receipt; it is never taken to be right.

#include "pass/sync_check/sync_check.h"

enum {
    WORK_LIMIT = 1000000, // of each CTA
    MIXED_SEEDS = 2,
    MOST_SHARES = 64
};

#define ALL UINT32_MAX

struct plan {
    struct sync_program p;
    int64_t *args;
    uint32_t replays;
    int64_t most;    // rounds
    int64_t longest; // rounds of an inner loop
    int64_t scale;   // of what decides about rounds
    uint32_t alone;  // the argument that decides about rounds, the others being small; or ALL
    bool decided;
    bool hurries, last;    // how a long loop is replayed
    bool watches, recurs;  // the state of a long loop
    struct sync_run state; // that all replays begin with, once it is made
};

// The host block, for the arguments as they are.
struct host {
    const struct tir_func *f;
    int64_t *at; // by value id
    struct bitset known;
};

static bool get(const struct host *h, const struct tir_value *v, int64_t *out)
{
    bool constant = v->kind == TIR_VALUE_CONST && !tir_elem_is_float(v->type->elem);
    *out = constant ? v->constant.i : h->at[v->id];
    return constant || bitset_has(&h->known, v->id);
}

static void compute(struct host *h, const struct tir_inst *inst)
{
    union tir_number in[3] = {{0}}, out;
    bool known = inst->operand_count > 0 && inst->operand_count <= 3;
    for (uint32_t i = 0; known && i < inst->operand_count; i++)
        known = get(h, inst->operands[i], &in[i].i);
    if (!known)
        return;
    enum tir_elem elem = inst->operands[inst->operand_count - 1]->type->elem;
    if (inst->op == TIR_OP_CAST)
        out = tir_number_cast(inst->results[0]->type->elem, elem, in[0]);
    else if (!tir_number_apply(inst->op, elem, in, &out))
        return;
    h->at[inst->results[0]->id] = out.i;
    bitset_insert(&h->known, inst->results[0]->id);
}

static struct host compute_host(const struct plan *s)
{
    const struct tir_func *f = s->p.f;
    struct host h = {f, arena_array(s->p.cx->scratch, int64_t, f->value_count),
                     bitset_new(s->p.cx->scratch, f->value_count)};
    for (uint32_t i = 0; i < f->body->arg_count; i++) {
        const struct tir_value *v = f->body->args[i];
        h.at[v->id] = s->args[i];
        if (tir_type_is_scalar(v->type) && !tir_elem_is_float(v->type->elem))
            bitset_insert(&h.known, v->id);
    }
    for (const struct tir_inst *inst = f->host->first; inst; inst = inst->next)
        if (inst->op != TIR_OP_YIELD)
            compute(&h, inst);
    return h;
}

static bool is_arg(const struct tir_value *v)
{
    return v->kind == TIR_VALUE_ARG;
}

// x * c == other: x follows, or else other is made a multiple. x % c == 0: so is x.
static bool repair_multiple(struct plan *s, const struct host *h, const struct tir_inst *product,
                            const struct tir_value *other)
{
    const struct tir_value *x = product->operands[0];
    int64_t c, value;
    if (!is_arg(x) || !get(h, product->operands[1], &c) || c <= 0 || !get(h, other, &value))
        return false;
    if (product->op == TIR_OP_REM) {
        s->args[x->index] = (int64_t)tir_align_up((uint64_t)s->args[x->index], (uint64_t)c);
        return value == 0;
    }
    if (value % c == 0)
        s->args[x->index] = value / c;
    else if (is_arg(other))
        s->args[other->index] = (int64_t)tir_align_up((uint64_t)value, (uint64_t)c);
    return value % c == 0 || is_arg(other);
}

// Changes an argument on one side of a comparison so that it holds.
static bool repair_side(struct plan *s, const struct host *h, const struct tir_inst *cond,
                        uint32_t side)
{
    const struct tir_value *v = cond->operands[side], *other = cond->operands[1 - side];
    enum tir_op op = cond->op;
    int64_t value;
    if (op == TIR_OP_EQ && v->def && (v->def->op == TIR_OP_MUL || v->def->op == TIR_OP_REM))
        return repair_multiple(s, h, v->def, other);
    if (!is_arg(v) || !get(h, other, &value))
        return false;
    bool below = op == (side == 0 ? TIR_OP_LT : TIR_OP_GT);
    bool above = op == (side == 0 ? TIR_OP_GT : TIR_OP_LT);
    s->args[v->index] = value - below + above;
    return op == TIR_OP_EQ || op == TIR_OP_LE || op == TIR_OP_GE || below || above;
}

static bool repair(struct plan *s, const struct host *h, const struct tir_value *v)
{
    const struct tir_inst *cond = v->def;
    int64_t x;
    if (!cond || cond->operand_count != 2)
        return false;
    if (cond->op == TIR_OP_AND)
        return repair(s, h, cond->operands[get(h, cond->operands[0], &x) && !x ? 0 : 1]);
    return repair_side(s, h, cond, 0) || repair_side(s, h, cond, 1);
}

// Changes arguments until the kernel's conditions hold, as far as that is easy. False: they do not.
static bool are_allowed(struct plan *s)
{
    const struct tir_inst *yield = tir_yield_of(s->p.f->host);
    for (uint32_t tries = 0; yield && tries < 8; tries++) {
        struct host h = compute_host(s);
        bool holds = true;
        for (uint32_t i = s->p.f->grid_count; holds && i < yield->operand_count; i++) {
            int64_t x;
            holds = !get(&h, yield->operands[i], &x) || x;
            if (!holds && !repair(s, &h, yield->operands[i]))
                return false;
        }
        if (holds)
            return true;
    }
    return !yield;
}

// Long enough for the roles to find their pace and for a ring to go round twice.
static int64_t long_rounds(const struct plan *s)
{
    return s->p.threshold + 6 * s->p.depth + 4;
}

static enum sync_outcome replay_once(struct plan *s, uint32_t waves, uint32_t seed)
{
    struct tir_arena *arena = s->p.cx->scratch;
    s->decided = false;
    if (!are_allowed(s))
        return SYNC_GOING;
    for (;;) {
        if (!s->state.agents)
            tir_sync_set_up(&s->state);
        struct tir_arena_mark mark = tir_arena_mark(arena);
        struct sync_run r = s->state;
        r.args = s->args;
        r.waves = waves;
        r.most = (uint32_t)(s->watches ? long_rounds(s) : s->p.depth + 2);
        r.seed = seed;
        r.watches = s->watches;
        r.hurries = s->hurries;
        r.last = s->last;
        enum sync_outcome outcome = tir_sync_replay(&r);
        s->replays += outcome != SYNC_AGAIN;
        s->decided = r.decided;
        s->longest = TIR_MAX(s->longest, r.longest);
        s->recurs |= r.recurs;
        tir_arena_release(arena, mark);
        if (outcome != SYNC_AGAIN)
            return outcome;
        s->state.agents = NULL;
    }
}

// So that a ring goes round twice in tiles of so many rounds, and one tile more where they are
// short.
static uint32_t waves_of(const struct plan *s, int64_t rounds)
{
    int64_t ring = 2 * s->p.depth + 2;
    int64_t more = rounds <= s->p.depth;
    return rounds ? (uint32_t)TIR_MAX(tir_ceil_div(ring, rounds) + more, 2) : 2;
}

static enum sync_outcome replay(struct plan *s, int64_t rounds)
{
    uint32_t waves = waves_of(s, rounds);
    enum sync_outcome outcome = replay_once(s, waves, 0);
    bool decided = s->decided;
    for (uint32_t seed = 1; decided && seed <= MIXED_SEEDS + 1 && outcome == SYNC_GOING; seed++)
        outcome = replay_once(s, waves, seed);
    s->most = TIR_MAX(s->most, rounds);
    return outcome;
}

// Loops get `rounds` rounds, those around them `waves`, and all else room for several tiles.
static void set_args(struct plan *s, int64_t rounds, int64_t waves)
{
    for (uint32_t i = 0; i < s->p.f->body->arg_count; i++) {
        int64_t granule = TIR_MAX(s->p.args[i].granule, 1);
        if (s->p.args[i].loops) {
            s->args[i] = s->alone == ALL || s->alone == i ? granule * rounds * s->scale : 1;
        } else if (s->p.args[i].outer) {
            s->args[i] = granule * waves;
            waves = 1; // of rows * columns one is enough
        } else {
            s->args[i] = granule * 4;
        }
    }
}

// Each of several arguments that decide about loops by itself, the others in the middle.
static enum sync_outcome replay_apart(struct plan *s)
{
    const int64_t some[] = {0, 1, s->p.depth + 1};
    uint32_t count = 0;
    enum sync_outcome outcome = SYNC_GOING;
    for (uint32_t i = 0; i < s->p.f->body->arg_count; i++)
        count += s->p.args[i].loops || s->p.args[i].outer;
    for (uint32_t i = 0; count > 1 && i < s->p.f->body->arg_count; i++) {
        if (!s->p.args[i].loops && !s->p.args[i].outer)
            continue;
        for (uint32_t k = 0; k < TIR_COUNT_OF(some) && outcome == SYNC_GOING; k++) {
            set_args(s, s->p.depth, 2);
            s->args[i] = some[k] * TIR_MAX(s->p.args[i].granule, 1);
            outcome = replay(s, TIR_MAX(some[k], 1));
        }
    }
    return outcome;
}

// One element more than whole rounds.
static enum sync_outcome replay_ragged(struct plan *s)
{
    set_args(s, s->p.depth, waves_of(s, s->p.depth));
    for (uint32_t i = 0; i < s->p.f->body->arg_count; i++)
        s->args[i] += s->p.args[i].loops;
    return replay(s, 2 * s->p.depth + 2); // with few tiles
}

// Does the state of a long loop recur? Taking turns the roles may need many rounds until they keep
// pace; when each goes as far as it gets, their pace may take many rounds to repeat. Branches on
// data may have to be taken. And the last tile often has the most rounds, but not always.
static enum sync_outcome replay_long(struct plan *s)
{
    enum sync_outcome outcome = SYNC_GOING;
    s->watches = true;
    set_args(s, long_rounds(s), 1);
    for (uint32_t way = 0; way < 8 && outcome == SYNC_GOING && !s->recurs; way++) {
        if (way & 2 && !s->decided)
            continue;
        s->hurries = way & 1;
        s->last = !(way & 4);
        outcome = replay_once(s, 1, way >> 1 & 1);
    }
    if (outcome == SYNC_GOING && !s->recurs && s->replays)
        tir_sync_unchecked_at(
            &s->p, s->p.f->span,
            tir_str_format(s->p.f->module->arena,
                           "loops of more than %lld rounds: no state was seen to recur",
                           (long long)s->most));
    return outcome;
}

static enum sync_outcome replay_up_to(struct plan *s, int64_t most)
{
    enum sync_outcome outcome = SYNC_GOING;
    for (int64_t rounds = 0; rounds <= most && outcome == SYNC_GOING; rounds++) {
        // A ring that has just been full, and one that is about to go round for the second time.
        if (rounds > s->p.depth + 2 && rounds < 2 * s->p.depth)
            continue;
        set_args(s, rounds, waves_of(s, rounds));
        outcome = replay(s, s->p.has_data_loops ? rounds : 1);
    }
    return outcome;
}

// Where arguments share the rounds, K / Z or K / 4, none became long: one of them alone, as large
// as it takes, does it.
static enum sync_outcome replay_alone(struct plan *s, int64_t most)
{
    enum sync_outcome outcome = SYNC_GOING;
    for (uint32_t i = 0; i < s->p.f->body->arg_count; i++) {
        int64_t before = 0;
        s->alone = i;
        for (s->scale = 1; s->p.args[i].loops && s->scale <= MOST_SHARES;) {
            s->longest = 0;
            set_args(s, most, waves_of(s, most));
            outcome = replay(s, most);
            if (outcome != SYNC_GOING || s->longest <= before)
                break;
            if (s->longest >= most)
                return replay_up_to(s, most - 1);
            before = s->longest;
            for (int64_t wanted = s->scale * tir_ceil_div(most, s->longest); s->scale < wanted;)
                s->scale *= 2; // so that parts are equal, which are often a power of two many
        }
    }
    s->alone = ALL;
    s->scale = 1;
    return outcome;
}

static enum sync_outcome replay_all(struct plan *s)
{
    int64_t most = s->p.has_data_loops ? 2 * s->p.depth + 2 : 0;
    if (s->p.ctas > SYNC_CTAS)
        return SYNC_GIVEN_UP;
    enum sync_outcome outcome = replay_up_to(s, most);
    if (outcome == SYNC_GOING && s->p.has_data_loops)
        outcome = replay_apart(s);
    if (outcome == SYNC_GOING && s->p.has_data_loops)
        outcome = replay_ragged(s);
    if (outcome == SYNC_GOING && s->longest < most)
        outcome = replay_alone(s, most);
    if (outcome == SYNC_GOING && s->p.has_data_loops)
        outcome = replay_long(s);
    if (!s->replays)
        tir_sync_unchecked_at(&s->p, s->p.f->span,
                              STR("no arguments were found that its conditions allow"));
    return outcome;
}

static void write_receipt(struct plan *s, enum sync_outcome outcome)
{
    struct sync_program *p = &s->p;
    tir_receipt_grant(p->cx, TIR_WISH_SYNC); // but for what is refused below
    if (!p->mbarrier_count && !p->role_count && !p->unchecked.len && outcome == SYNC_GOING)
        return;
    tir_receipt_add(p->cx, TIR_TOPIC_SYNC, p->f->span,
                    "sync: checked in %u replays, loops of up to %lld rounds%s", s->replays,
                    (long long)s->most, s->recurs ? " and, as the state recurs, of any more" : "");
    if (outcome == SYNC_GIVEN_UP && !p->unchecked.len)
        tir_sync_unchecked_at(p, p->f->span, STR("the kernel takes more work than the limit"));
    vec_foreach(const struct sync_unchecked, it, &p->unchecked)
        tir_receipt_refuse(p->cx, TIR_TOPIC_SYNC, TIR_WISH_SYNC, it->span,
                           "sync: unchecked: " STR_FMT, STR_ARG(it->text));
}

enum tir_change tir_pass_sync_check(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct plan s = {.p = {.f = f, .cx = cx}, .alone = ALL, .scale = 1};
    if (!tir_sync_prepare(&s.p)) {
        write_receipt(&s, SYNC_GOING);
        return TIR_UNCHANGED;
    }
    s.p.work_limit = WORK_LIMIT * TIR_MIN(s.p.ctas, (uint32_t)SYNC_CTAS);
    if (!tir_sync_limits(&s.p))
        return TIR_FAILED;
    s.args = arena_array(cx->scratch, int64_t, f->body->arg_count + 1);
    s.state = (struct sync_run){.p = &s.p, .arena = cx->scratch};
    enum sync_outcome outcome = replay_all(&s);
    if (outcome == SYNC_FAILED)
        return TIR_FAILED;
    write_receipt(&s, outcome);
    return TIR_UNCHANGED;
}
