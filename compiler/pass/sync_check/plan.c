// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's plan: the settings that a kernel is replayed for, and the parts they do not reach.
//
// The first settings follow from the kernel's loops and tiles: 0, 1, ... rounds, and enough tiles
// to go round a ring. Further settings (ask.c) reach what those left out, one thing at a time: a
// number of rounds of a loop, whatever decides it, two rounds of a loop around another, a CTA that
// is not the first, a block that no replay has entered, an access that was outside of its buffer. A
// part without such settings stays unchecked, unless it can never run.

#include "ir/effect.h"
#include "ir/uneven.h"
#include "pass/sync_check/sync_check.h"

enum {
    SEEDS = 4,         // ways to take branches on data: not taken, taken, mixed
    MOST_PAIRED = 6,   // and further ones where there are several
    MORE_SEEDS = 12,   // if blocks after them were not entered
    MOST_LOOPS = 6,    // whose rounds are asked for together
    MOST_STEERED = 96, // replays of settings that were asked for
    STEERED_SHARE = 8, // the part of all work that one of them may take
    CYCLE_SHARE = 2,   // and that loops may take until remainders of their counters repeat
};

#define ALL UINT32_MAX

struct plan {
    struct sync_program *p;
    struct sync_setting setting;
    struct sync_run state; // that all replays begin with, once it is made
    uint32_t steered;
    uint32_t alone;  // the argument that decides about rounds, the others being small; or ALL
    int64_t longest; // rounds of an inner loop
    bool decided;    // some branch was on data
    uint32_t drawn;  // questions about data of one replay, at most
    bool ever_decided;
    bool hurries;                       // how a long loop is replayed
    bool watches, is_long, recurs;      // the state of a long loop
    bool stuck;                         // and cannot recur in the last replay
    struct bitset came;                 // what a replay came to
    struct bitset asked, dead;          // what none comes to, as far as asked; as in came
    VEC(const struct tir_inst *) loops; // whose rounds depend on the setting, or on data
};

// The first CTA, or cluster, as if it went through all tiles of the grid.
static void take_first_cta(struct plan *s)
{
    for (uint32_t i = 0; i < 3; i++) {
        s->setting.cta[i] = 0;
        s->setting.ctas[i] = TIR_MAX(s->p->f->cluster[i], 1);
    }
    memset(s->setting.tile, 0, sizeof s->setting.tile);
    s->setting.given_count = 0;
}

static bool are_allowed(const struct plan *s)
{
    return tir_sync_is_allowed(s->p, s->setting.args);
}

// Asks for a setting near to the present one. False: none was found.
static bool steer(struct plan *s, const struct sync_goal *goals, uint32_t count,
                  enum sync_answer *answer)
{
    *answer = tir_sync_ask(s->p, goals, count, &s->setting);
    return *answer == SYNC_SOLVED && are_allowed(s);
}

// Replays.

// Long enough for the roles to find their pace and for a ring to go round twice.
static int64_t long_rounds(const struct plan *s)
{
    return s->p->threshold + 6 * s->p->depth + 4;
}

static void note(struct plan *s, const struct sync_run *r)
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
    s->longest = TIR_MAX(s->longest, r->longest);
    s->recurs |= r->recurs;
    s->is_long = r->states.len > 0;
    s->stuck = r->stuck;
}

static enum sync_outcome replay_once(struct plan *s, uint32_t seed)
{
    struct tir_arena *arena = s->p->cx->scratch;
    for (;;) {
        if (!s->state.agents)
            tir_sync_set_up(&s->state);
        struct tir_arena_mark mark = tir_arena_mark(arena);
        struct sync_run r = s->state;
        r.setting = &s->setting;
        r.came = &s->came;
        r.most = (uint32_t)(s->watches ? long_rounds(s) : s->p->depth + 2);
        r.seed = seed;
        tir_map_init(&r.drawn, arena);
        r.watches = s->watches;
        r.hurries = s->hurries;
        enum sync_outcome outcome = tir_sync_replay(&r);
        s->p->replays += outcome == SYNC_GOING || outcome == SYNC_FAILED;
        if (outcome != SYNC_GIVEN_UP)
            note(s, &r);
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
    int64_t ring = 2 * s->p->depth + 2;
    int64_t more = rounds <= s->p->depth;
    return rounds ? (uint32_t)TIR_MAX(tir_ceil_div(ring, rounds) + more, 2) : 2;
}

static enum sync_outcome replay_seeds(struct plan *s)
{
    enum sync_outcome outcome = replay_once(s, 0);
    bool decided = s->decided;
    s->drawn = 0;
    for (uint32_t seed = 1; decided && seed < SEEDS && outcome == SYNC_GOING; seed++)
        outcome = replay_once(s, seed);
    for (uint32_t k = 0; decided && k < MOST_PAIRED && outcome == SYNC_GOING; k++)
        if (s->drawn > 1u << k / 2)
            outcome = replay_once(s, SYNC_PAIRED + k);
    return outcome;
}

// For the present arguments, or those next to them that the kernel's conditions allow.
static enum sync_outcome replay(struct plan *s, int64_t rounds)
{
    enum sync_answer answer;
    s->setting.waves = waves_of(s, rounds);
    return are_allowed(s) || steer(s, NULL, 0, &answer) ? replay_seeds(s) : SYNC_GOING;
}

// With one of `shares` of all work, beyond which it is given up: what was replayed counts.
static enum sync_outcome with_share(struct plan *s, enum sync_outcome run(struct plan *),
                                    uint32_t shares, bool *too_much)
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

// For settings that were asked for, which may ask for too much.
static enum sync_outcome replay_steered(struct plan *s)
{
    bool too_much;
    enum sync_outcome outcome = with_share(s, replay_seeds, STEERED_SHARE, &too_much);
    s->steered += too_much ? STEERED_SHARE : 1;
    take_first_cta(s);
    return outcome;
}

// Loops get `rounds` rounds, those around them `waves`, and all else room for several tiles.
static void set_args(struct plan *s, int64_t rounds, int64_t waves)
{
    const struct sync_program *p = s->p;
    s->setting.given_count = 0;
    for (uint32_t i = 0; i < p->f->body->arg_count; i++) {
        int64_t granule = TIR_MAX(p->args[i].granule, 1);
        if (p->args[i].loops) {
            s->setting.args[i] = s->alone == ALL || s->alone == i ? granule * rounds : 1;
        } else if (p->args[i].outer) {
            s->setting.args[i] = granule * waves;
            waves = 1; // of rows * columns one is enough
        } else {       // of a dimension each thread has elements
            int64_t least = i < p->f->param_count ? 0 : 4 * (int64_t)p->threads;
            s->setting.args[i] = TIR_MAX(granule * 4, tir_ceil_div(least, granule) * granule);
        }
    }
}

// Whether so many rounds are worth a replay: of a ring that fills, that has just been full, and
// that is about to go round for the second time.
static bool counts(const struct plan *s, int64_t rounds)
{
    return rounds <= s->p->depth + 2 || rounds >= 2 * s->p->depth;
}

static enum sync_outcome replay_up_to(struct plan *s, int64_t most)
{
    enum sync_outcome outcome = SYNC_GOING;
    for (int64_t rounds = 0; rounds <= most && outcome == SYNC_GOING; rounds++) {
        if (!counts(s, rounds))
            continue;
        set_args(s, rounds, waves_of(s, rounds));
        outcome = replay(s, s->p->has_data_loops ? rounds : 1);
    }
    return outcome;
}

// Each of several arguments that decide about loops by itself, the others in the middle.
static enum sync_outcome replay_apart(struct plan *s)
{
    const struct sync_program *p = s->p;
    const int64_t some[] = {0, 1, p->depth + 1};
    uint32_t count = 0;
    enum sync_outcome outcome = SYNC_GOING;
    for (uint32_t i = 0; i < p->f->body->arg_count; i++)
        count += p->args[i].loops || p->args[i].outer;
    for (uint32_t i = 0; count > 1 && i < p->f->body->arg_count; i++) {
        if (!p->args[i].loops && !p->args[i].outer)
            continue;
        for (uint32_t k = 0; k < TIR_COUNT_OF(some) && outcome == SYNC_GOING; k++) {
            set_args(s, p->depth, 2);
            s->setting.args[i] = some[k] * TIR_MAX(p->args[i].granule, 1);
            outcome = replay(s, TIR_MAX(some[k], 1));
        }
    }
    return outcome;
}

// One element more than whole rounds.
static enum sync_outcome replay_ragged(struct plan *s)
{
    set_args(s, s->p->depth, waves_of(s, s->p->depth));
    for (uint32_t i = 0; i < s->p->f->body->arg_count; i++)
        s->setting.args[i] += s->p->args[i].loops;
    return replay(s, 2 * s->p->depth + 2); // with few tiles
}

// Loops.

static uint32_t most_rounds(const struct plan *s, const struct tir_inst *loop)
{
    return s->p->rounds[loop->id].most;
}

// Has a loop run so often?
static bool has_run(const struct plan *s, const struct tir_inst *loop, int64_t rounds)
{
    return s->p->rounds[loop->id].seen >> TIR_MIN(rounds, 63) & 1;
}

// Can a loop run so often, or more, for all that is known? It is asked for more rounds than before.
static bool may_run(const struct plan *s, const struct tir_inst *loop, int64_t rounds)
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
static enum sync_outcome replay_loop(struct plan *s, const struct tir_inst *loop, int64_t rounds)
{
    enum sync_outcome outcome = SYNC_GOING;
    enum sync_answer answer;
    struct sync_goal goal = {.kind = SYNC_ROUNDS, .inst = loop, .number = rounds};
    for (s->alone = ALL; outcome == SYNC_GOING && !has_run(s, loop, rounds); s->alone++) {
        if (s->alone != ALL && s->alone == s->p->f->body->arg_count)
            break;
        if (s->alone != ALL && !s->p->args[s->alone].loops)
            continue;
        set_args(s, rounds, waves_of(s, rounds));
        if (s->alone != ALL)
            outcome = replay(s, rounds);
        s->steered++;
        if (outcome != SYNC_GOING || has_run(s, loop, rounds))
            break;
        s->setting.waves = waves_of(s, rounds);
        if (steer(s, &goal, 1, &answer))
            outcome = replay_steered(s);
        else if (answer == SYNC_NEVER)
            break;
    }
    s->alone = ALL;
    return outcome;
}

// Do CTAs stay that go through tiles of different length, and may go through some of one length?
static bool has_columns(const struct plan *s)
{
    tir_foreach_inst(inst, s->p->f)
        if (inst->op == TIR_OP_TILES && tir_attr_int(inst, TIR_ATTR_persistent, 0) &&
            tir_attr_find(inst, TIR_ATTR_by)->list_count > 1)
            return tir_tiles_differ(s->p->f, s->p->cx->scratch);
    return false;
}

// Tiles in a row that are all short: tiles side by side are longer and longer.
static enum sync_outcome replay_column(struct plan *s, const struct tir_inst *loop)
{
    enum sync_outcome outcome = SYNC_GOING;
    enum sync_answer answer;
    for (int64_t n = 1; n <= s->p->depth && outcome == SYNC_GOING; n++) {
        struct sync_goal goal = {.kind = SYNC_ROUNDS, .inst = loop, .number = n};
        set_args(s, n, waves_of(s, n));
        s->setting.waves = waves_of(s, n);
        if (!may_run(s, loop, n) || !steer(s, &goal, 1, &answer))
            continue;
        s->setting.is_column = true;
        outcome = replay_steered(s);
        s->setting.is_column = false;
    }
    return outcome;
}

static enum sync_outcome replay_short(struct plan *s, int64_t most)
{
    enum sync_outcome outcome = SYNC_GOING;
    vec_foreach(const struct tir_inst *, loop, &s->loops) {
        for (int64_t n = 0; n <= most && bitset_has(&s->p->inner_loops, (*loop)->id); n++)
            if (outcome == SYNC_GOING && counts(s, n) && !has_run(s, *loop, n) &&
                s->steered < MOST_STEERED && may_run(s, *loop, n))
                outcome = replay_loop(s, *loop, n);
        if (outcome == SYNC_GOING && bitset_has(&s->p->inner_loops, (*loop)->id) && has_columns(s))
            outcome = replay_column(s, *loop);
    }
    return outcome;
}

// The inner loops run so often, or more; goals that come with another one.
static uint32_t long_goals(const struct plan *s, int64_t rounds, struct sync_goal *goals)
{
    uint32_t count = 0;
    vec_foreach(const struct tir_inst *, loop, &s->loops)
        if (count < MOST_LOOPS && bitset_has(&s->p->inner_loops, (*loop)->id) &&
            may_run(s, *loop, rounds))
            goals[count++] =
                (struct sync_goal){.kind = SYNC_ROUNDS_OR_MORE, .inst = *loop, .number = rounds};
    return count;
}

// A long loop, branches on data all going one way, until its state recurs. Taking turns the roles
// may need many rounds until they keep pace; when each goes as far as it gets, their pace may take
// many rounds to repeat. And the last tile often has the most rounds, but not always.
static enum sync_outcome watch_seed(struct plan *s, uint32_t seed, bool *decided, bool *is_long)
{
    enum sync_outcome outcome = SYNC_GOING;
    s->recurs = *is_long = false;
    for (uint32_t way = 0; way < 4 && outcome == SYNC_GOING && !s->recurs; way++) {
        s->hurries = way & 1;
        if (s->hurries && s->stuck) // as it is at any pace
            continue;
        s->setting.last = !(way & 2);
        outcome = replay_once(s, seed);
        *decided |= s->decided;
        *is_long |= s->is_long;
    }
    return outcome;
}

// Does the state of a long loop recur, whichever way data decides? One way the loop may be short.
static enum sync_outcome watch(struct plan *s)
{
    bool decided = false, is_long, recurs = false;
    s->watches = true;
    s->setting.waves = 1;
    enum sync_outcome outcome = watch_seed(s, 0, &decided, &is_long);
    recurs = s->recurs;
    if (outcome == SYNC_GOING && decided && (recurs || !is_long)) {
        outcome = watch_seed(s, 1, &decided, &is_long);
        recurs = is_long ? s->recurs : recurs;
    }
    s->recurs = recurs;
    s->watches = s->hurries = s->setting.last = false;
    return outcome;
}

static enum sync_outcome replay_long(struct plan *s)
{
    enum sync_outcome outcome = SYNC_GOING;
    enum sync_answer answer;
    struct sync_goal goals[MOST_LOOPS];
    int64_t rounds = long_rounds(s);
    for (s->alone = ALL; outcome == SYNC_GOING && !s->recurs; s->alone++) {
        if (s->alone != ALL && s->alone == (s->steered ? s->p->f->body->arg_count : 0))
            break;
        if (s->alone != ALL && !s->p->args[s->alone].loops)
            continue;
        set_args(s, rounds, 1);
        if (are_allowed(s) || steer(s, NULL, 0, &answer))
            outcome = watch(s);
    }
    s->alone = ALL;
    // Where no sizes are found for so many rounds, as many as some replay had.
    const int64_t tries[] = {rounds, TIR_MIN(s->longest, rounds - 1)};
    for (uint32_t i = 0; i < TIR_COUNT_OF(tries) && outcome == SYNC_GOING && !s->recurs; i++) {
        set_args(s, tries[i], 1);
        if (s->steered && steer(s, goals, long_goals(s, tries[i], goals), &answer))
            outcome = watch(s);
    }
    return outcome;
}

enum { PACE = 8 }; // times round a ring

// Where remainders of counters decide, until they repeat; once before, so that all sets of lanes
// that they part are known. Elsewhere until the pace of the roles repeats, which may take several
// rounds of a ring, each of them begun at another slot.
static enum sync_outcome replay_cycle(struct plan *s)
{
    bool too_much;
    enum sync_answer answer;
    struct sync_goal goals[MOST_LOOPS];
    int64_t cycle = s->p->cycle;
    if (cycle <= 1) // data that decides has no pace
        cycle = s->stuck || s->ever_decided ? 0 : PACE * s->p->depth;
    if (s->recurs || !cycle)
        return SYNC_GOING;
    enum sync_outcome outcome = SYNC_GOING;
    for (int64_t times = 1; times <= 2 && outcome == SYNC_GOING && !s->recurs; times++) {
        int64_t rounds = long_rounds(s) + times * cycle;
        set_args(s, rounds, 1);
        if (steer(s, goals, long_goals(s, rounds, goals), &answer) || are_allowed(s))
            outcome = with_share(s, watch, CYCLE_SHARE, &too_much);
        take_first_cta(s);
    }
    return outcome;
}

// A loop that can run a few rounds more than it did, and not so many that its state recurs.
static enum sync_outcome replay_last_rounds(struct plan *s)
{
    enum sync_outcome outcome = SYNC_GOING;
    vec_foreach(const struct tir_inst *, loop, &s->loops) {
        int64_t most = long_rounds(s), n = most_rounds(s, *loop) + 1;
        if (s->recurs || !bitset_has(&s->p->inner_loops, (*loop)->id) || may_run(s, *loop, most))
            continue;
        for (; n < most && outcome == SYNC_GOING && s->steered < MOST_STEERED; n++)
            if (may_run(s, *loop, n))
                outcome = replay_loop(s, *loop, n);
    }
    return outcome;
}

// So many that a ring is full and goes round.
static int64_t needed_rounds(const struct plan *s)
{
    return s->p->depth + 2;
}

// Goes to what a loop is asked for, from such arguments as give so many rounds.
static enum sync_outcome replay_goal(struct plan *s, const struct sync_goal *goal)
{
    enum sync_answer answer;
    set_args(s, needed_rounds(s), waves_of(s, needed_rounds(s)));
    s->setting.waves = waves_of(s, needed_rounds(s));
    s->steered++;
    return steer(s, goal, 1, &answer) ? replay_steered(s) : SYNC_GOING;
}

// Loops that have run less often than that, whatever decides how often: to the most that they can.
static enum sync_outcome replay_few(struct plan *s)
{
    enum sync_outcome outcome = SYNC_GOING;
    vec_foreach(const struct tir_inst *, loop, &s->loops)
        for (int64_t n = needed_rounds(s); n > most_rounds(s, *loop); n--) {
            struct sync_goal goal = {.kind = SYNC_ROUNDS_OR_MORE, .inst = *loop, .number = n};
            if (outcome != SYNC_GOING || s->steered >= MOST_STEERED || !may_run(s, *loop, n))
                continue;
            outcome = replay_goal(s, &goal);
            if (outcome == SYNC_GOING && n > most_rounds(s, *loop))
                outcome = replay_loop(s, *loop, n);
        }
    return outcome;
}

// The loop, or the tiles of a CTA that stays, that another is in; or NULL.
static const struct tir_inst *loop_around(const struct tir_inst *loop)
{
    const struct tir_inst *up = loop->block->owner;
    while (up && !tir_is_loop(up) &&
           !(up->op == TIR_OP_TILES && tir_attr_int(up, TIR_ATTR_persistent, 0)))
        up = up->block->owner;
    return up;
}

// Another round of the loop around it, after one that it has run in: what stands between the two?
static struct sync_goal again(const struct tir_inst *loop)
{
    return (struct sync_goal){
        .kind = SYNC_ROUNDS_OR_MORE, .inst = loop, .number = 1, .goes_on = true};
}

// May there be one, and was there none?
static bool may_run_again(struct plan *s, const struct tir_inst *loop)
{
    struct sync_goal goal = again(loop);
    if (!loop_around(loop) || s->p->rounds[loop->id].around > 1)
        return false;
    if (bitset_insert(&s->asked, 2 * loop->id) && tir_sync_is_never(s->p, &goal, &s->setting))
        bitset_insert(&s->dead, 2 * loop->id);
    return !bitset_has(&s->dead, 2 * loop->id);
}

static enum sync_outcome replay_nested(struct plan *s)
{
    enum sync_outcome outcome = SYNC_GOING;
    vec_foreach(const struct tir_inst *, loop, &s->loops) {
        struct sync_goal goal = again(*loop);
        if (outcome == SYNC_GOING && s->steered < MOST_STEERED && may_run_again(s, *loop))
            outcome = replay_goal(s, &goal);
    }
    return outcome;
}

// Settings that are asked for.

// Takes the goal with long loops, or else without.
static bool steer_long(struct plan *s, const struct sync_goal *goals, uint32_t count, bool must,
                       enum sync_answer *answer)
{
    struct sync_goal all[MOST_LOOPS + 2];
    memcpy(all, goals, count * sizeof *goals);
    for (uint32_t i = 0; i < count; i++)
        all[i].goes_on = true;
    uint32_t more = long_goals(s, s->p->depth + 2, all + count);
    set_args(s, s->p->depth + 2, waves_of(s, s->p->depth + 2));
    s->setting.waves = waves_of(s, s->p->depth + 2);
    return steer(s, all, count + more, answer) || (!must && steer(s, goals, count, answer));
}

// CTAs that are not the first, of small grids and of the one that there is.
static enum sync_outcome replay_ctas(struct plan *s)
{
    static const struct {
        int64_t cta, ctas; // 0: as many as there are
    } some[] = {{0, 2}, {1, 2}, {1, 3}, {2, 3}, {1, 0}};
    enum sync_outcome outcome = SYNC_GOING;
    enum sync_answer answer;
    for (uint32_t axis = 0; axis < 3; axis++) {
        bool any = false;
        int64_t ctas = 1;
        for (uint32_t i = 0; i < TIR_COUNT_OF(some) && s->p->axes >> axis & 1; i++) {
            struct sync_goal goals[] = {
                {.kind = SYNC_CTA, .axis = axis, .number = some[i].cta},
                {.kind = SYNC_GRID, .axis = axis, .number = some[i].ctas},
            };
            if (outcome != SYNC_GOING || (any && !some[i].ctas) ||
                !steer_long(s, goals, some[i].ctas ? 2 : 1, false, &answer))
                continue;
            any = true;
            ctas = s->setting.ctas[axis];
            outcome = replay_steered(s);
        }
        if (outcome == SYNC_GOING && any) {
            int64_t last = ctas - 1; // of the grid of the last setting
            struct sync_goal goal = {.kind = SYNC_CTA, .axis = axis, .number = last};
            if (last > 2 && steer_long(s, &goal, 1, false, &answer))
                outcome = replay_steered(s);
        }
    }
    return outcome;
}

static bool came(const struct bitset *set, const struct tir_inst *branch, uint32_t block)
{
    return bitset_has(set, 2 * branch->id + block);
}

static bool is_choice(const struct plan *s, const struct tir_inst *inst)
{
    return bitset_has(&s->p->visited, inst->id) &&
           (inst->op == TIR_OP_IF ||
            (tir_sync_is_comparison(inst) && bitset_has(&s->p->needed, inst->results[0]->id)));
}

// Does a setting, or data, decide about the branch? Without that all there is has been replayed.
static bool is_open(const struct plan *s, const struct tir_inst *branch)
{
    struct tir_value *condition = tir_sync_condition(branch);
    struct bitset slice = tir_sync_slice(s->p, &condition, 1);
    return tir_sync_is_open(s->p, &slice, true);
}

// Whether what contains inst has been come to.
static bool is_reached(const struct plan *s, const struct tir_inst *inst)
{
    const struct tir_block *block = inst->block;
    for (const struct tir_inst *owner; (owner = block->owner); block = owner->block) {
        if (owner->op == TIR_OP_IF && !came(&s->p->came, owner, block == owner->regions[1]))
            return false;
        if (bitset_has(&s->p->data_loops, owner->id) && !most_rounds(s, owner))
            return false;
    }
    return true;
}

// Whether nothing can ever come to a block of an if, or make a comparison so.
static bool is_dead(struct plan *s, const struct tir_inst *inst, uint32_t block)
{
    struct sync_goal goals[] = {{.kind = SYNC_CHOICE, .inst = inst, .number = block},
                                {.kind = SYNC_BLOCK, .inst = inst, .number = block}};
    uint32_t bit = 2 * inst->id + block;
    if (bitset_insert(&s->asked, bit) && (tir_sync_is_never(s->p, &goals[0], &s->setting) ||
                                          tir_sync_is_never(s->p, &goals[1], &s->setting)))
        bitset_insert(&s->dead, bit);
    return bitset_has(&s->dead, bit);
}

// Goes to blocks that no replay has come to, and where comparisons go the other way: one side of
// `leader && m < M` may decide for some threads what the other one does for all. With `again` to
// those that none with long loops has.
static enum sync_outcome replay_blocks(struct plan *s, bool again)
{
    const struct sync_program *p = s->p;
    enum sync_outcome outcome = SYNC_GOING;
    enum sync_answer answer;
    tir_foreach_inst(inst, p->f) {
        if (!is_choice(s, inst))
            continue;
        for (uint32_t k = 0; k < 2 && outcome == SYNC_GOING && s->steered < MOST_STEERED; k++) {
            struct sync_goal goal = {.kind = SYNC_BLOCK, .inst = inst, .number = k};
            if (came(again ? &p->came_long : &p->came, inst, k) || !is_open(s, inst) ||
                is_dead(s, inst, k))
                continue;
            if (steer_long(s, &goal, 1, again, &answer))
                outcome = replay_steered(s);
        }
    }
    return outcome;
}

// Do arguments, or which CTA it is, decide where in buffers on the chip inst reads or writes?
static bool is_placed(const struct plan *s, const struct tir_inst *inst)
{
    const struct tir_inst *slices[SYNC_SLICES];
    struct tir_value *indices[SYNC_SLICES * TIR_MAX_RANK];
    uint32_t count = 0;
    if (!bitset_has(&s->p->visited, inst->id) || !tir_effect_after(inst, NULL))
        return false;
    for (uint32_t i = 0, n = tir_sync_slices(inst, slices); i < n; i++)
        for (uint32_t d = 0; d < tir_ref_base(slices[i])->type->rank; d++)
            indices[count++] = tir_ref_indices(slices[i])[d];
    struct bitset slice = tir_sync_slice(s->p, indices, count);
    return count && tir_sync_is_open(s->p, &slice, false);
}

// Goes to where accesses that have been outside of their buffers are inside.
static enum sync_outcome replay_places(struct plan *s)
{
    enum sync_outcome outcome = SYNC_GOING;
    enum sync_answer answer;
    tir_foreach_inst(inst, s->p->f) {
        struct sync_goal goal = {.kind = SYNC_PLACE, .inst = inst};
        if (outcome != SYNC_GOING || s->steered >= MOST_STEERED || came(&s->p->came, inst, 0) ||
            !is_placed(s, inst) || !is_reached(s, inst))
            continue;
        if (steer_long(s, &goal, 1, false, &answer))
            outcome = replay_steered(s);
        else if (answer == SYNC_NEVER)
            bitset_insert(&s->dead, 2 * inst->id);
    }
    return outcome;
}

static void name_places(struct plan *s)
{
    tir_foreach_inst(inst, s->p->f)
        if (!came(&s->p->came, inst, 0) && !bitset_has(&s->dead, 2 * inst->id) &&
            is_placed(s, inst) && is_reached(s, inst))
            tir_sync_unchecked_at(s->p, tir_sync_place(s->p, inst),
                                  STR("in no replay it is inside of its buffer"));
}

// The rest.

static bool is_whole(const struct plan *s)
{
    tir_foreach_inst(inst, s->p->f)
        if (is_choice(s, inst) && !(came(&s->p->came, inst, 0) && came(&s->p->came, inst, 1)) &&
            is_open(s, inst))
            return false;
    return true;
}

static enum sync_outcome replay_mixed(struct plan *s)
{
    enum sync_outcome outcome = SYNC_GOING;
    enum sync_answer answer;
    set_args(s, s->p->depth + 2, waves_of(s, s->p->depth + 2));
    s->setting.waves = waves_of(s, s->p->depth + 2);
    bool allowed = s->ever_decided && (are_allowed(s) || steer(s, NULL, 0, &answer));
    for (uint32_t seed = SEEDS; allowed && seed < MORE_SEEDS && outcome == SYNC_GOING; seed++) {
        if (is_whole(s))
            break;
        outcome = replay_once(s, seed);
    }
    return outcome;
}

static void name_block(struct plan *s, const struct tir_inst *inst, uint32_t block)
{
    const struct tir_inst *first = inst->regions[block]->first;
    bool empty = !first || first->op == TIR_OP_YIELD;
    tir_str text = empty ? STR("no replay goes by the block of this `if`")
                         : tir_str_format(s->p->f->module->arena,
                                          "no replay comes to this block of the `if` of line %u",
                                          tir_sync_line(s->p, inst));
    tir_sync_unchecked_at(s->p, tir_sync_place(s->p, empty ? inst : first), text);
}

static void name_blocks(struct plan *s)
{
    tir_foreach_inst(inst, s->p->f) {
        if (inst->op != TIR_OP_IF || !is_choice(s, inst) || !is_reached(s, inst))
            continue;
        for (uint32_t k = 0; k < 2; k++)
            if (!came(&s->p->came, inst, k) && is_open(s, inst) && !is_dead(s, inst, k))
                name_block(s, inst, k);
    }
}

static void name_loops(struct plan *s)
{
    vec_foreach(const struct tir_inst *, loop, &s->loops) {
        uint32_t most = most_rounds(s, *loop);
        bool recurs = s->recurs && s->p->rounds[(*loop)->id].recurs;
        if (!is_reached(s, *loop))
            continue;
        if (most < needed_rounds(s) && !recurs && may_run(s, *loop, most + 1))
            tir_sync_unchecked_at(
                s->p, (*loop)->span,
                tir_str_format(s->p->f->module->arena,
                               "no replay runs this loop for more than %u round%s", most,
                               most == 1 ? "" : "s"));
        else if (may_run_again(s, *loop))
            tir_sync_unchecked_at(
                s->p, (*loop)->span,
                STR("no replay runs this loop in two rounds of the one around it"));
    }
}

// The numbers that a loop carries, is not only counted by, and that never came back.
static tir_str what_goes_on(const struct plan *s, const struct tir_inst *loop)
{
    const struct tir_block *head = loop->regions[0]; // where its state is watched
    struct tir_text text;
    bool any = false;
    tir_text_init(&text, s->p->cx->scratch, 0);
    for (uint32_t i = 0; i < head->arg_count; i++) {
        const struct tir_value *v = head->args[i];
        if (!v->name || !bitset_has(&s->p->needed, v->id) || bitset_has(&s->p->counters, v->id) ||
            bitset_has(&s->p->returned, v->id) || !bitset_has(&s->p->went_on, v->id))
            continue;
        tir_text_format(&text, "%s%s", any ? ", " : "; ", v->name);
        any = true;
    }
    if (any)
        tir_text_format(&text, " had no number twice");
    return tir_text_str(&text);
}

// Loops that can run more rounds than they did, with a state that is new in each.
static void name_long_loops(struct plan *s)
{
    vec_foreach(const struct tir_inst *, loop, &s->loops) {
        uint32_t most = most_rounds(s, *loop);
        if (!bitset_has(&s->p->inner_loops, (*loop)->id) || !may_run(s, *loop, most + 1))
            continue;
        tir_sync_unchecked_at(s->p, (*loop)->span,
                              tir_str_format(s->p->f->module->arena,
                                             "more than %u rounds of this loop: no state was seen "
                                             "to recur" STR_FMT,
                                             most, STR_ARG(what_goes_on(s, *loop))));
    }
}

static void name_unchecked(struct plan *s)
{
    if (!s->p->replays) {
        tir_sync_unchecked_at(s->p, s->p->f->span,
                              STR("no arguments were found that its conditions allow"));
        return;
    }
    name_blocks(s);
    name_places(s);
    name_loops(s);
    if (s->p->has_data_loops && !s->recurs)
        name_long_loops(s);
}

static enum sync_outcome replay_all(struct plan *s)
{
    struct sync_program *p = s->p;
    int64_t most = p->has_data_loops ? 2 * p->depth + 2 : 0;
    enum sync_outcome outcome = replay_up_to(s, most);
    if (outcome == SYNC_GOING && p->has_data_loops)
        outcome = replay_apart(s);
    if (outcome == SYNC_GOING && p->has_data_loops)
        outcome = replay_ragged(s);
    if (outcome == SYNC_GOING && p->has_data_loops)
        outcome = replay_short(s, most);
    if (outcome == SYNC_GOING && p->axes)
        outcome = replay_ctas(s);
    if (outcome == SYNC_GOING && p->has_data_loops)
        outcome = replay_long(s);
    if (outcome == SYNC_GOING && p->has_data_loops)
        outcome = replay_cycle(s);
    if (outcome == SYNC_GOING && p->has_data_loops)
        outcome = replay_last_rounds(s);
    if (outcome == SYNC_GOING)
        outcome = replay_few(s);
    if (outcome == SYNC_GOING)
        outcome = replay_nested(s);
    if (outcome == SYNC_GOING)
        outcome = replay_blocks(s, false);
    if (outcome == SYNC_GOING && p->has_data_loops)
        outcome = replay_blocks(s, true);
    if (outcome == SYNC_GOING)
        outcome = replay_places(s);
    if (outcome == SYNC_GOING)
        outcome = replay_mixed(s);
    return outcome;
}

// Does something decide how often a loop runs?
static bool is_open_loop(struct sync_program *p, const struct tir_inst *inst)
{
    if (!tir_is_loop(inst) || !bitset_has(&p->visited, inst->id) || tir_sync_has_fixed_rounds(inst))
        return bitset_has(&p->data_loops, inst->id);
    uint32_t count;
    struct tir_value *const *bounds = tir_sync_bounds_of(inst, &count);
    struct bitset slice = tir_sync_slice(p, bounds, count);
    return tir_sync_is_open(p, &slice, true);
}

enum sync_outcome tir_sync_replay_all(struct sync_program *p)
{
    struct tir_arena *arena = p->cx->scratch;
    struct plan s = {.p = p, .state = {.p = p, .arena = arena}, .alone = ALL};
    s.setting.args = arena_array(arena, int64_t, p->f->body->arg_count + 1);
    take_first_cta(&s);
    s.came = bitset_new(arena, 2 * p->f->inst_count);
    s.asked = bitset_new(arena, 2 * p->f->inst_count);
    s.dead = bitset_new(arena, 2 * p->f->inst_count);
    tir_foreach_inst(inst, p->f)
        if (is_open_loop(p, inst))
            vec_push(arena, &s.loops, inst);
    enum sync_outcome outcome = p->ctas > SYNC_CTAS ? SYNC_GIVEN_UP : replay_all(&s);
    p->recurs = s.recurs;
    if (outcome == SYNC_GOING)
        name_unchecked(&s);
    if (outcome == SYNC_GIVEN_UP && (p->work > p->work_limit || !p->unchecked.len))
        tir_sync_unchecked_at(p, p->f->span, STR("the kernel takes more work than the limit"));
    return outcome;
}
