// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's plan for loops: few rounds, many until their state recurs, and a second time in the
// loop around them.

#include "ir/uneven.h"
#include "pass/sync_check/plan.h"

enum {
    CYCLE_SHARE = 2, // the part of all work until remainders of counters repeat
};

uint32_t tir_plan_most_rounds(const struct sync_plan *s, const struct tir_inst *loop)
{
    return s->p->rounds[loop->id].most;
}

// Has a loop run so often?
static bool has_run(const struct sync_plan *s, const struct tir_inst *loop, int64_t rounds)
{
    return s->p->rounds[loop->id].seen >> TIR_MIN(rounds, 63) & 1;
}

bool tir_plan_may_run(const struct sync_plan *s, const struct tir_inst *loop, int64_t rounds)
{
    struct sync_rounds *r = &s->p->rounds[loop->id];
    struct sync_goal goal = {.kind = SYNC_ROUNDS_OR_MORE, .inst = loop, .number = rounds};
    if (rounds > r->most && rounds > r->may && (!r->never || rounds < r->never)) {
        if (tir_sync_is_never(s->p, &goal, &s->setting))
            r->never = rounds;
        else
            r->may = rounds;
    }
    return !r->never || rounds < r->never;
}

// A loop that has not run as often as the others, by itself. Where arguments share its rounds
// (K / Z), one of them is wanted large and the others small.
static enum sync_outcome replay_loop(struct sync_plan *s, const struct tir_inst *loop,
                                     int64_t rounds)
{
    enum sync_outcome outcome = SYNC_GOING;
    enum sync_answer answer;
    struct sync_goal goal = {.kind = SYNC_ROUNDS, .inst = loop, .number = rounds};
    for (s->alone = PLAN_ALL; outcome == SYNC_GOING && !has_run(s, loop, rounds); s->alone++) {
        if (s->alone != PLAN_ALL && s->alone == s->p->f->body->arg_count)
            break;
        if (s->alone != PLAN_ALL && !s->p->args[s->alone].loops)
            continue;
        tir_plan_set_args(s, rounds, tir_plan_waves_of(s, rounds));
        if (s->alone != PLAN_ALL)
            outcome = tir_plan_replay(s, rounds);
        s->steered++;
        if (outcome != SYNC_GOING || has_run(s, loop, rounds))
            break;
        s->setting.waves = tir_plan_waves_of(s, rounds);
        const bool found = tir_plan_steer(s, &goal, 1, &answer);
        if (found)
            outcome = tir_plan_replay_steered(s);
        else if (answer == SYNC_NEVER)
            break;
        s->is_short |= found && s->is_cut && !has_run(s, loop, rounds);
    }
    s->alone = PLAN_ALL;
    return outcome;
}

// Do CTAs stay that go through tiles of different length, and may go through some of one length?
static bool has_columns(const struct sync_plan *s)
{
    tir_foreach_inst(inst, s->p->f)
        if (inst->op == TIR_OP_TILES && tir_attr_int(inst, TIR_ATTR_persistent, 0) &&
            tir_attr_find(inst, TIR_ATTR_by)->list_count > 1)
            return tir_tiles_differ(s->p->f, s->p->cx->scratch);
    return false;
}

// Tiles in a row that are all short: tiles side by side are longer and longer.
static enum sync_outcome replay_column(struct sync_plan *s, const struct tir_inst *loop)
{
    enum sync_outcome outcome = SYNC_GOING;
    enum sync_answer answer;
    for (int64_t n = 1; n <= s->p->depth && outcome == SYNC_GOING; n++) {
        struct sync_goal goal = {.kind = SYNC_ROUNDS, .inst = loop, .number = n};
        tir_plan_set_args(s, n, tir_plan_waves_of(s, n));
        s->setting.waves = tir_plan_waves_of(s, n);
        if (!tir_plan_may_run(s, loop, n) || !tir_plan_steer(s, &goal, 1, &answer))
            continue;
        s->setting.is_column = true;
        outcome = tir_plan_replay_steered(s);
        s->setting.is_column = false;
        s->is_short |= s->is_cut;
    }
    return outcome;
}

enum sync_outcome tir_plan_replay_short(struct sync_plan *s, int64_t most)
{
    enum sync_outcome outcome = SYNC_GOING;
    vec_foreach(const struct tir_inst *, loop, &s->loops) {
        for (int64_t n = 0; n <= most && bitset_has(&s->p->inner_loops, (*loop)->id); n++)
            if (outcome == SYNC_GOING && tir_plan_counts(s, n) && !has_run(s, *loop, n) &&
                tir_plan_may_run(s, *loop, n) && tir_plan_has_left(s))
                outcome = replay_loop(s, *loop, n);
        if (outcome == SYNC_GOING && bitset_has(&s->p->inner_loops, (*loop)->id) && has_columns(s))
            outcome = replay_column(s, *loop);
    }
    return outcome;
}

uint32_t tir_plan_long_goals(const struct sync_plan *s, int64_t rounds, struct sync_goal *goals)
{
    uint32_t count = 0;
    vec_foreach(const struct tir_inst *, loop, &s->loops)
        if (count < PLAN_MOST_LOOPS && bitset_has(&s->p->inner_loops, (*loop)->id) &&
            tir_plan_may_run(s, *loop, rounds))
            goals[count++] =
                (struct sync_goal){.kind = SYNC_ROUNDS_OR_MORE, .inst = *loop, .number = rounds};
    return count;
}

// A long loop, branches on data all going one way, until its state recurs. Taking turns the roles
// may need many rounds until they keep pace; when each goes as far as it gets, their pace may take
// many rounds to repeat; those that never wait for each other keep none, and are held abreast. And
// the last tile often has the most rounds, but not always.
static enum sync_outcome watch_seed(struct sync_plan *s, uint32_t seed, bool *decided,
                                    bool *is_long)
{
    static const struct {
        enum sync_pace pace;
        bool last;
    } ways[] = {{SYNC_IN_TURNS, true}, {SYNC_HURRIED, true}, {SYNC_IN_TURNS, false},
                {SYNC_HURRIED, false}, {SYNC_ABREAST, true}, {SYNC_ABREAST, false}};
    enum sync_outcome outcome = SYNC_GOING;
    s->recurs = *is_long = false;
    for (uint32_t i = 0; i < TIR_COUNT_OF(ways) && outcome == SYNC_GOING && !s->recurs; i++) {
        s->pace = ways[i].pace;
        if (s->pace != SYNC_IN_TURNS && s->stuck) // as it is at any pace
            continue;
        s->setting.last = ways[i].last;
        outcome = tir_plan_replay_once(s, seed);
        *decided |= s->decided;
        *is_long |= s->is_long;
    }
    return outcome;
}

// Does the state of a long loop recur, whichever way data decides? One way the loop may be short.
// Both ways it is behind `0 <= n && n < N`: then it must by all other answers by which it is long.
static enum sync_outcome watch(struct sync_plan *s)
{
    bool decided = false, is_long, any_long, recurs;
    s->watches = true;
    s->setting.waves = 1;
    s->drawn = 0;
    enum sync_outcome outcome = watch_seed(s, 0, &decided, &is_long);
    recurs = s->recurs;
    any_long = is_long;
    if (outcome == SYNC_GOING && decided && (recurs || !is_long)) {
        outcome = watch_seed(s, 1, &decided, &is_long);
        recurs = is_long ? s->recurs : recurs;
        any_long |= is_long;
    }
    const bool both_short = decided && !any_long;
    for (uint32_t seed = SYNC_DENIED; both_short && outcome == SYNC_GOING; seed++) {
        if (!tir_plan_has_pairs(s, seed))
            break;
        outcome = watch_seed(s, seed, &decided, &is_long);
        recurs = is_long ? s->recurs && (recurs || !any_long) : recurs;
        any_long |= is_long;
    }
    s->recurs = recurs;
    s->watches = s->setting.last = false;
    s->pace = SYNC_IN_TURNS;
    return outcome;
}

enum sync_outcome tir_plan_replay_long(struct sync_plan *s)
{
    enum sync_outcome outcome = SYNC_GOING;
    enum sync_answer answer;
    struct sync_goal goals[PLAN_MOST_LOOPS];
    const int64_t rounds = s->wanted = tir_plan_long_rounds(s);
    for (s->alone = PLAN_ALL; outcome == SYNC_GOING && !s->recurs; s->alone++) {
        if (s->alone != PLAN_ALL && s->alone == (s->steered ? s->p->f->body->arg_count : 0))
            break;
        if (s->alone != PLAN_ALL && !s->p->args[s->alone].loops)
            continue;
        tir_plan_set_args(s, rounds, 1);
        if (tir_plan_are_allowed(s) || tir_plan_steer(s, NULL, 0, &answer))
            outcome = watch(s);
    }
    s->alone = PLAN_ALL;
    // Where no sizes are found for so many rounds, as many as some replay had.
    const int64_t tries[] = {rounds, TIR_MIN(s->longest, rounds - 1)};
    for (uint32_t i = 0; i < TIR_COUNT_OF(tries) && outcome == SYNC_GOING && !s->recurs; i++) {
        tir_plan_set_args(s, tries[i], 1);
        if (s->steered &&
            tir_plan_steer(s, goals, tir_plan_long_goals(s, tries[i], goals), &answer))
            outcome = watch(s);
    }
    return outcome;
}

enum {
    PACE = 8,         // times round a ring
    MOST_TILES = 1024 // of a CTA that goes through all of them
};

// Where remainders of counters decide, until they repeat; once before, so that all sets of lanes
// that they part are known. Elsewhere until the pace of the roles repeats, which may take several
// rounds of a ring, each of them begun at another slot.
enum sync_outcome tir_plan_replay_cycle(struct sync_plan *s)
{
    bool too_much;
    enum sync_answer answer;
    struct sync_goal goals[PLAN_MOST_LOOPS];
    int64_t cycle = s->p->cycle;
    if (cycle <= 1) // answers that end loops are drawn late, at no pace
        cycle = s->stuck || s->draws_late ? 0 : PACE * s->p->depth;
    if (s->recurs || !cycle)
        return SYNC_GOING;
    enum sync_outcome outcome = SYNC_GOING;
    for (int64_t times = 1; times <= 2 && outcome == SYNC_GOING && !s->recurs; times++) {
        int64_t rounds = tir_plan_long_rounds(s) + times * cycle;
        tir_plan_set_args(s, rounds, 1);
        s->wanted = rounds;
        if (tir_plan_steer(s, goals, tir_plan_long_goals(s, rounds, goals), &answer) ||
            tir_plan_are_allowed(s))
            outcome = tir_plan_with_share(s, watch, CYCLE_SHARE, &too_much);
        tir_plan_take_first_cta(s);
    }
    return outcome;
}

// A loop that can run a few rounds more than it did, and not so many that its state recurs.
enum sync_outcome tir_plan_replay_last_rounds(struct sync_plan *s)
{
    enum sync_outcome outcome = SYNC_GOING;
    vec_foreach(const struct tir_inst *, loop, &s->loops) {
        int64_t most = tir_plan_long_rounds(s), n = tir_plan_most_rounds(s, *loop) + 1;
        if (s->recurs || !bitset_has(&s->p->inner_loops, (*loop)->id) ||
            tir_plan_may_run(s, *loop, most))
            continue;
        for (; n < most && outcome == SYNC_GOING; n++)
            if (tir_plan_may_run(s, *loop, n) && tir_plan_has_left(s))
                outcome = replay_loop(s, *loop, n);
    }
    return outcome;
}

int64_t tir_plan_needed_rounds(const struct sync_plan *s)
{
    return s->p->depth + 2;
}

// Goes to what a loop is asked for, from such arguments as give so many rounds.
static enum sync_outcome replay_goal(struct sync_plan *s, const struct sync_goal *goal,
                                     int64_t rounds, uint32_t waves)
{
    enum sync_answer answer;
    tir_plan_set_args(s, rounds, tir_plan_waves_of(s, rounds));
    s->setting.waves = waves;
    s->steered++;
    bool found = tir_plan_steer(s, goal, 1, &answer);
    if (!found && goal->again && answer != SYNC_NEVER) { // it asks for much
        struct sync_goal less = *goal;
        less.again = NULL;
        found = tir_plan_steer(s, &less, 1, &answer);
    }
    return found ? tir_plan_replay_steered(s) : SYNC_GOING;
}

// Loops that have run less often than that, whatever decides how often: to the most that they can.
enum sync_outcome tir_plan_replay_few(struct sync_plan *s)
{
    const int64_t needed = tir_plan_needed_rounds(s);
    enum sync_outcome outcome = SYNC_GOING;
    vec_foreach(const struct tir_inst *, loop, &s->loops)
        for (int64_t n = needed; n > tir_plan_most_rounds(s, *loop); n--) {
            struct sync_goal goal = {.kind = SYNC_ROUNDS_OR_MORE, .inst = *loop, .number = n};
            if (outcome != SYNC_GOING || !tir_plan_may_run(s, *loop, n) || !tir_plan_has_left(s))
                continue;
            outcome = replay_goal(s, &goal, needed, tir_plan_waves_of(s, needed));
            if (outcome == SYNC_GOING && n > tir_plan_most_rounds(s, *loop))
                outcome = replay_loop(s, *loop, n);
        }
    return outcome;
}

// May a CTA that stays have several of these tiles? Of `tiles(1)` there is one.
static bool has_next_tile(const struct tir_inst *inst)
{
    if (inst->op != TIR_OP_TILES || !tir_attr_int(inst, TIR_ATTR_persistent, 0))
        return false;
    const struct tir_attr *by = tir_attr_find(inst, TIR_ATTR_by);
    for (uint32_t i = 0; i < by->list_count; i++) {
        int64_t extent;
        if (!tir_is_const_int(inst->operands[i], &extent) || extent > by->list[i])
            return true;
    }
    return false;
}

// The loop, or the tiles of a CTA that stays, that another is in; or NULL.
static const struct tir_inst *loop_around(const struct tir_inst *loop)
{
    const struct tir_inst *up = loop->block->owner;
    while (up && !tir_is_loop(up) && !has_next_tile(up))
        up = up->block->owner;
    return up;
}

// Two rounds of the loop around it in which it runs: what stands between the two? Of others than a
// for one, and another round.
static struct sync_goal again(const struct tir_inst *loop)
{
    const struct tir_inst *around = loop_around(loop);
    const bool counts = around && around->op == TIR_OP_FOR;
    return (struct sync_goal){.kind = SYNC_ROUNDS_OR_MORE,
                              .inst = loop,
                              .number = 1,
                              .goes_on = true,
                              .again = counts ? around : NULL};
}

static bool is_never_again(struct sync_plan *s, const struct tir_inst *loop)
{
    struct sync_goal goal = again(loop);
    if (bitset_insert(&s->asked, 2 * loop->id) && tir_sync_is_never(s->p, &goal, &s->setting))
        bitset_insert(&s->dead, 2 * loop->id);
    return bitset_has(&s->dead, 2 * loop->id);
}

// May there be one, and was there none?
bool tir_plan_may_run_again(struct sync_plan *s, const struct tir_inst *loop)
{
    return loop_around(loop) && s->p->rounds[loop->id].around <= 1 && !is_never_again(s, loop);
}

// Where a condition on the tile decides (`n <= m`), few tiles in a row may have the loop, so a ring
// that they share does not come round: then those below each other, and all of a small grid.
static enum sync_outcome replay_tiles_apart(struct sync_plan *s, const struct tir_inst *loop)
{
    const struct {
        bool is_column;
        uint32_t waves;
    } ways[] = {{true, tir_plan_waves_of(s, 1)}, {false, MOST_TILES}};
    enum sync_outcome outcome = SYNC_GOING;
    struct sync_goal goal = again(loop);
    const struct tir_inst *around = loop_around(loop);
    for (uint32_t i = 0; i < TIR_COUNT_OF(ways) && outcome == SYNC_GOING; i++) {
        if (!around || around->op != TIR_OP_TILES || s->p->rounds[loop->id].around > s->p->depth ||
            is_never_again(s, loop) || !tir_plan_has_left(s))
            break;
        s->setting.is_column = ways[i].is_column;
        outcome = replay_goal(s, &goal, 1, ways[i].waves);
        s->setting.is_column = false;
    }
    return outcome;
}

enum sync_outcome tir_plan_replay_nested(struct sync_plan *s)
{
    const int64_t needed = tir_plan_needed_rounds(s);
    enum sync_outcome outcome = SYNC_GOING;
    vec_foreach(const struct tir_inst *, loop, &s->loops) {
        struct sync_goal goal = again(*loop);
        if (outcome == SYNC_GOING && tir_plan_may_run_again(s, *loop) && tir_plan_has_left(s))
            outcome = replay_goal(s, &goal, needed, tir_plan_waves_of(s, needed));
        if (outcome == SYNC_GOING)
            outcome = replay_tiles_apart(s, *loop);
    }
    return outcome;
}
