// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's plan: a setting is made, asked for, and replayed with each way that data decides.

#include "pass/sync_check/plan.h"

enum {
    STEERED_SHARE = 8, // the part of all work that a setting that was asked for may take
};

// The first CTA, or cluster, as if it went through all tiles of the grid.
void tir_plan_take_first_cta(struct sync_plan *s)
{
    for (uint32_t i = 0; i < 3; i++) {
        s->setting.cta[i] = 0;
        s->setting.ctas[i] = TIR_MAX(s->p->f->cluster[i], 1);
    }
    memset(s->setting.tile, 0, sizeof s->setting.tile);
    s->setting.given_count = 0;
}

bool tir_plan_are_allowed(const struct sync_plan *s)
{
    return tir_sync_is_allowed(s->p, s->setting.args);
}

bool tir_plan_has_left(struct sync_plan *s)
{
    s->is_short |= s->steered >= PLAN_MOST_STEERED;
    return s->steered < PLAN_MOST_STEERED;
}

bool tir_plan_steer(struct sync_plan *s, const struct sync_goal *goals, uint32_t count,
                    enum sync_answer *answer)
{
    *answer = tir_sync_ask(s->p, goals, count, &s->setting);
    return *answer == SYNC_SOLVED && tir_plan_are_allowed(s);
}

int64_t tir_plan_long_rounds(const struct sync_plan *s)
{
    return s->p->threshold + 6 * s->p->depth + 4;
}

static void note(struct sync_plan *s, const struct sync_run *r)
{
    const struct sync_program *p = s->p;
    bool is_long = !p->has_data_loops || r->longest >= p->depth + 2;
    for (uint32_t i = 0; i <= s->came.bits / 64; i++) {
        p->came.words[i] |= s->came.words[i];
        p->came_long.words[i] |= is_long ? s->came.words[i] : 0;
        s->came.words[i] = 0;
    }
    s->decided = r->decided;
    s->drawn = TIR_MAX(s->drawn, r->drawn.count);
    s->ever_decided |= r->decided;
    s->draws_late |= r->draws_late;
    s->longest = TIR_MAX(s->longest, r->longest);
    s->recurs |= r->recurs;
    s->is_long = r->states.len > 0;
    s->stuck = r->stuck;
}

enum sync_outcome tir_plan_replay_once(struct sync_plan *s, uint32_t seed)
{
    struct tir_arena *arena = s->p->cx->scratch;
    for (;;) {
        if (!s->state.agents)
            tir_sync_set_up(&s->state);
        struct tir_arena_mark mark = tir_arena_mark(arena);
        const size_t bytes = s->p->f->inst_count * sizeof *s->p->rounds;
        const struct sync_rounds *rounds = tir_arena_copy(arena, s->p->rounds, bytes);
        struct sync_run r = s->state;
        r.setting = &s->setting;
        r.came = &s->came;
        r.most = (uint32_t)(s->watches ? s->wanted : s->p->depth + 2);
        r.seed = seed;
        tir_map_init(&r.drawn, arena);
        r.watches = s->watches;
        r.pace = s->pace;
        enum sync_outcome outcome = tir_sync_replay(&r);
        s->p->replays += outcome == SYNC_GOING || outcome == SYNC_FAILED;
        if (outcome != SYNC_GIVEN_UP)
            note(s, &r);
        else // nothing was looked at to its end
            memcpy(s->p->rounds, rounds, bytes);
        tir_arena_release(arena, mark);
        if (outcome != SYNC_AGAIN)
            return outcome;
        s->state.agents = NULL;
    }
}

uint32_t tir_plan_waves_of(const struct sync_plan *s, int64_t rounds)
{
    int64_t ring = 2 * s->p->depth + 2;
    int64_t more = rounds <= s->p->depth;
    return rounds ? (uint32_t)TIR_MAX(tir_ceil_div(ring, rounds) + more, 2) : 2;
}

bool tir_plan_has_pairs(const struct sync_plan *s, uint32_t seed)
{
    const uint32_t pair = seed < SYNC_PAIRED ? 0 : seed - SYNC_PAIRED;
    return pair < PLAN_MOST_PAIRED && s->drawn > 1u << pair / 2;
}

static enum sync_outcome replay_seeds(struct sync_plan *s)
{
    enum sync_outcome outcome = tir_plan_replay_once(s, 0);
    bool decided = s->decided;
    s->drawn = 0;
    for (uint32_t seed = 1; decided && seed < PLAN_SEEDS && outcome == SYNC_GOING; seed++)
        outcome = tir_plan_replay_once(s, seed);
    for (uint32_t k = SYNC_DENIED; decided && tir_plan_has_pairs(s, k) && outcome == SYNC_GOING;
         k++)
        outcome = tir_plan_replay_once(s, k);
    return outcome;
}

enum sync_outcome tir_plan_with_share(struct sync_plan *s,
                                      enum sync_outcome run(struct sync_plan *), uint32_t shares,
                                      bool *too_much)
{
    struct sync_program *p = s->p;
    uint64_t limit = p->work_limit, before = p->work;
    p->work_limit = TIR_MIN(before + limit / shares, limit);
    enum sync_outcome outcome = run(s);
    *too_much = outcome == SYNC_GIVEN_UP && p->work > p->work_limit;
    if (*too_much) {
        p->given_up += p->work - before;
        p->work = before;
    }
    p->work_limit = limit;
    return *too_much ? SYNC_GOING : outcome;
}

enum sync_outcome tir_plan_replay(struct sync_plan *s, int64_t rounds)
{
    bool too_much;
    enum sync_answer answer;
    s->setting.waves = tir_plan_waves_of(s, rounds);
    if (!tir_plan_are_allowed(s) && !tir_plan_steer(s, NULL, 0, &answer))
        return SYNC_GOING;
    enum sync_outcome outcome = tir_plan_with_share(s, replay_seeds, STEERED_SHARE, &too_much);
    s->steered += too_much ? STEERED_SHARE : 0;
    return outcome;
}

enum sync_outcome tir_plan_replay_steered(struct sync_plan *s)
{
    enum sync_outcome outcome = tir_plan_with_share(s, replay_seeds, STEERED_SHARE, &s->is_cut);
    s->steered += s->is_cut ? STEERED_SHARE : 1;
    tir_plan_take_first_cta(s);
    return outcome;
}

void tir_plan_set_args(struct sync_plan *s, int64_t rounds, int64_t waves)
{
    const struct sync_program *p = s->p;
    s->setting.given_count = 0;
    for (uint32_t i = 0; i < p->f->body->arg_count; i++) {
        int64_t granule = TIR_MAX(p->args[i].granule, 1);
        if (p->args[i].loops) {
            s->setting.args[i] = s->alone == PLAN_ALL || s->alone == i ? granule * rounds : 1;
        } else if (p->args[i].outer) {
            s->setting.args[i] = granule * waves;
            waves = 1; // of rows * columns one is enough
        } else {       // of a dimension each thread has elements
            int64_t least =
                i < p->f->param_count ? 0 : TIR_MAX(4 * (int64_t)p->threads, p->args[i].reach);
            s->setting.args[i] = TIR_MAX(granule * 4, tir_ceil_div(least, granule) * granule);
        }
    }
}

bool tir_plan_counts(const struct sync_plan *s, int64_t rounds)
{
    return rounds <= s->p->depth + 2 || rounds >= 2 * s->p->depth;
}
