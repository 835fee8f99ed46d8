// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's plan for accesses that nothing orders and that met in no replay (meet.c): arguments
// are asked for with which two threads touch one element, in one round of the loops around both or
// in two. A replay then tells whether that is a conflict.
//
//     if n == m { Y[t] = x; }
//     if n > 3 { bar_sync(); }            // left out where n == m <= 3
//     if L % 3 == 1 { Y[63 - t] = y; }
//
// Where a branch may leave out a barrier, it and the branches around two accesses are asked for
// together, also without such branches where arguments move the two, and so are those around two of
// which no replay came to both. Several branches between two accesses that may each leave out what
// orders them are asked for together, too.

#include "pass/sync_check/plan.h"

enum {
    MOST_REPLAYS = 24,  // of settings that are found
    MOST_ASKED = 256,   // questions
    MOST_LEFT_OUT = 64, // of them about barriers that are left out
    MOST_BRANCHES = 6   // that leave them out
};

struct meetings {
    struct sync_plan *s;
    struct sync_goal without[MOST_BRANCHES]; // of an `if` that leaves out a barrier
    uint32_t without_count;
    const uint32_t *positions; // in the text, by instruction id
    uint32_t replays, asked;
    bool is_short; // something was not asked, for want of questions
    enum sync_outcome outcome;
};

// Replays arguments with which they meet, if some are found.
static enum sync_answer ask(struct meetings *m, struct sync_goal goal)
{
    struct sync_goal goals[1 + MOST_BRANCHES] = {goal};
    enum sync_answer answer;
    struct sync_plan *s = m->s;
    if (m->replays >= MOST_REPLAYS || m->asked >= MOST_ASKED)
        return SYNC_UNSOLVED;
    m->asked++;
    memcpy(goals + 1, m->without, m->without_count * sizeof *goals);
    tir_plan_set_args(s, s->p->depth, tir_plan_waves_of(s, s->p->depth));
    s->setting.waves = tir_plan_waves_of(s, s->p->depth);
    const bool found = tir_plan_steer(s, goals, 1 + m->without_count, &answer);
    if (found) {
        m->replays++;
        m->outcome = tir_plan_replay_steered(s);
        answer = s->is_cut ? SYNC_UNSOLVED : answer;
    }
    tir_plan_take_first_cta(s);
    if (!found && answer != SYNC_NEVER && !m->without_count)
        answer = tir_sync_is_never(s->p, &goal, &s->setting) ? SYNC_NEVER : SYNC_UNSOLVED;
    return answer;
}

// With threads of two warps and of one, either of which has the lower number. False: whether these
// meet is not known.
static bool ask_for_threads(struct meetings *m, struct sync_goal goal, uint8_t pairs)
{
    bool known = true;
    for (uint32_t i = 0; i < SYNC_MEETINGS; i++) {
        goal.number = i;
        const bool in_a_warp = i >= SYNC_MEET_UP_IN_A_WARP;
        const bool is_mirrored = goal.spots[0] == goal.spots[1] && !goal.again && i % 2;
        if (!(pairs & (in_a_warp ? SYNC_IN_A_WARP : SYNC_OF_TWO_WARPS)) || is_mirrored ||
            m->outcome != SYNC_GOING)
            continue;
        const enum sync_answer answer = ask(m, goal);
        known &= answer != SYNC_UNSOLVED;
        if (answer == SYNC_SOLVED)
            break;
    }
    return known;
}

// With parts that have an element in common, and then with such as do not begin at one place: a
// tile that is there again may be the same threads' own.
static bool ask_for_parts(struct meetings *m, struct sync_goal goal)
{
    const struct sync_part *x = goal.spots[0]->part, *y = goal.spots[1]->part;
    goal.kind = SYNC_TOUCH;
    goal.number = 0;
    enum sync_answer answer = ask(m, goal);
    if (answer == SYNC_NEVER || x->vague || y->vague)
        return answer == SYNC_NEVER;
    bool known = answer != SYNC_UNSOLVED;
    for (uint32_t d = 0; d < x->root->type->rank; d++)
        for (uint32_t k = 1; k <= 2 && tir_sync_may_shift(x, y, d); k++) {
            goal.number = 2 * d + k;
            if (m->outcome == SYNC_GOING)
                known &= ask(m, goal) != SYNC_UNSOLVED;
        }
    return known;
}

static bool ask_for_meeting(struct meetings *m, const struct sync_goal *goal, uint8_t pairs)
{
    if (m->outcome != SYNC_GOING)
        return true;
    return goal->spots[0]->single && goal->spots[1]->single ? ask_for_threads(m, *goal, pairs)
                                                            : ask_for_parts(m, *goal);
}

static bool is_within(const struct tir_inst *loop, const struct tir_inst *inst)
{
    while (inst && inst != loop)
        inst = inst->block->owner;
    return inst;
}

// In another round of a loop around both.
static bool ask_for_rounds(struct meetings *m, const struct tir_inst *loop, struct sync_goal goal,
                           uint8_t pairs)
{
    const struct sync_spot *x = goal.spots[0];
    goal.again = loop;
    bool known = ask_for_meeting(m, &goal, pairs);
    if (x == goal.spots[1])
        return known;
    goal.spots[0] = goal.spots[1];
    goal.spots[1] = x;
    return ask_for_meeting(m, &goal, pairs) && known;
}

static struct sync_goal goal_of(const struct meetings *m, uint32_t x, uint32_t y)
{
    const struct sync_spot *spots = m->s->p->spots;
    return (struct sync_goal){.kind = SYNC_MEET, .spots = {&spots[x], &spots[y]}};
}

// False: whether two threads meet is not known.
static bool ask_for_pair(struct meetings *m, const struct sync_spot *x, const struct sync_spot *y,
                         struct sync_unordered pair)
{
    const struct sync_goal goal = {.kind = SYNC_MEET, .spots = {x, y}};
    bool known = true, any = false;
    for (const struct tir_inst *loop = x->by->block->owner; loop && pair.later;
         loop = loop->block->owner)
        if (loop->op == TIR_OP_FOR && is_within(loop, y->by)) {
            any = true;
            known &= ask_for_rounds(m, loop, goal, pair.later);
        }
    const uint8_t pairs = pair.now | (any ? 0 : pair.later);
    return (!pairs || ask_for_meeting(m, &goal, pairs) || tir_sync_are_alike(m->s->p, x, y)) &&
           known;
}

static void name_pair(const struct meetings *m, const struct tir_inst *x, const struct tir_inst *y)
{
    struct sync_program *p = m->s->p;
    tir_sync_unchecked(p, y,
                       tir_str_format(p->cx->scratch,
                                      "nothing orders it after %s of line %u, and whether two "
                                      "threads touch one element for other arguments is not known",
                                      tir_ops[x->op].name, tir_sync_line(p, x))
                           .ptr);
}

static void ask_for_pairs(struct meetings *m)
{
    const struct sync_program *p = m->s->p;
    for (uint32_t i = 0; i < p->spot_count; i++)
        for (uint32_t k = i; k < p->spot_count; k++) {
            const struct sync_unordered pair = *tir_sync_pair(p, i, k);
            if ((pair.now || pair.later) && m->outcome == SYNC_GOING &&
                !ask_for_pair(m, &p->spots[i], &p->spots[k], pair) && m->outcome == SYNC_GOING)
                name_pair(m, p->spots[i].by, p->spots[k].by);
        }
}

// What orders accesses that come before it and accesses that come after it.
static bool orders(const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_BAR_SYNC:
    case TIR_OP_WARP_SYNC:
    case TIR_OP_CLUSTER_WAIT:
    case TIR_OP_GRID_SYNC:
    case TIR_OP_FENCE:
    case TIR_OP_WAIT:
    case TIR_OP_WAIT_GROUP:
    case TIR_OP_AWAIT:
        return true;
    default:
        return false;
    }
}

static bool has_barrier(const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (orders(inst))
            return true;
        for (uint32_t i = 0; i < inst->region_count; i++)
            if (has_barrier(inst->regions[i]))
                return true;
    }
    return false;
}

// May a barrier be left out, in one block of the two, *block?
static bool leaves_out(const struct sync_plan *s, const struct tir_inst *inst, uint32_t *block)
{
    if (inst->op != TIR_OP_IF || !tir_plan_is_choice(s, inst) ||
        has_barrier(inst->regions[0]) == has_barrier(inst->regions[1]))
        return false;
    const struct bitset slice = tir_sync_slice(s->p, &inst->operands[0], 1);
    *block = has_barrier(inst->regions[0]);
    return tir_sync_is_open(s->p, &slice, true);
}

static bool is_guarded(const struct meetings *m, const struct sync_spot *spot)
{
    for (const struct tir_inst *inst = spot->by->block->owner; inst; inst = inst->block->owner)
        if (inst->op == TIR_OP_IF && (spot->single || tir_plan_is_open(m->s, inst)))
            return true;
    return false;
}

// Is the spot beside the `if`, in its block or deeper? In another `if` that settings, or for single
// elements threads, decide, in `guarded`?
static bool is_beside(const struct meetings *m, const struct tir_inst *branch,
                      const struct sync_spot *spot, bool *guarded)
{
    const struct tir_inst *inst = spot->by, *up;
    for (; inst && inst->block != branch->block; inst = up) {
        up = inst->block->owner;
        *guarded |= up && up->op == TIR_OP_IF && (spot->single || tir_plan_is_open(m->s, up));
    }
    return inst && inst != branch;
}

static bool may_conflict(const struct sync_spot *x, const struct sync_spot *y)
{
    const bool stores = x->access == SYNC_WRITE || x->access != y->access;
    return stores && tir_sync_may_share(x->part, y->part);
}

static bool has_left(struct meetings *m)
{
    const bool left = m->asked < MOST_LEFT_OUT && m->replays < MOST_REPLAYS;
    m->is_short |= !left;
    return left;
}

// Of which no replay came to both, as other branches are around them.
static void ask_for_both(struct meetings *m)
{
    const struct sync_program *p = m->s->p;
    for (uint32_t i = 0; i < p->spot_count; i++)
        for (uint32_t k = i + 1; k < p->spot_count && m->outcome == SYNC_GOING; k++) {
            const struct sync_goal goal = goal_of(m, i, k);
            if (!tir_sync_pair(p, i, k)->seen && may_conflict(goal.spots[0], goal.spots[1]) &&
                is_guarded(m, goal.spots[0]) && is_guarded(m, goal.spots[1]) && has_left(m))
                m->is_short |= !ask_for_meeting(m, &goal, SYNC_ALL_PAIRS);
        }
}

static void leave_out(struct meetings *m, const struct tir_inst *branch, uint32_t block)
{
    m->without[m->without_count++] =
        (struct sync_goal){.kind = SYNC_BLOCK, .inst = branch, .number = block};
}

static void ask_without_barrier(struct meetings *m, const struct tir_inst *branch, uint32_t block)
{
    const struct sync_program *p = m->s->p;
    leave_out(m, branch, block);
    for (uint32_t i = 0; i < p->spot_count; i++)
        for (uint32_t k = i; k < p->spot_count && m->outcome == SYNC_GOING; k++) {
            const struct sync_goal goal = goal_of(m, i, k);
            bool guarded = false;
            if (may_conflict(goal.spots[0], goal.spots[1]) &&
                is_beside(m, branch, goal.spots[0], &guarded) &&
                is_beside(m, branch, goal.spots[1], &guarded) &&
                (guarded || goal.spots[0]->moves || goal.spots[1]->moves) && has_left(m))
                m->is_short |= !ask_for_meeting(m, &goal, SYNC_ALL_PAIRS);
        }
    m->without_count = 0;
}

// Does the branch stand between the two, or around the end of the loop that is around both?
static bool is_between(const struct meetings *m, const struct tir_inst *branch,
                       const struct sync_goal *goal)
{
    const uint32_t x = m->positions[goal->spots[0]->by->id],
                   y = m->positions[goal->spots[1]->by->id], at = m->positions[branch->id];
    return goal->again
               ? (at < TIR_MIN(x, y) || at > TIR_MAX(x, y)) && is_within(goal->again, branch)
               : at > TIR_MIN(x, y) && at < TIR_MAX(x, y);
}

// Several branches, each of which may leave out what orders the two. One by itself has been asked
// for, or replays took it.
static void ask_without_all(struct meetings *m, struct sync_goal goal)
{
    uint32_t block;
    bool guarded, fits = true;
    tir_foreach_inst(inst, m->s->p->f) {
        if (inst->op != TIR_OP_IF || !is_between(m, inst, &goal) ||
            !is_beside(m, inst, goal.spots[0], &guarded) ||
            !is_beside(m, inst, goal.spots[1], &guarded) || !leaves_out(m->s, inst, &block))
            continue;
        fits &= m->without_count < MOST_BRANCHES;
        if (fits)
            leave_out(m, inst, block);
    }
    if (!fits)
        m->is_short = true;
    else if (m->without_count > 1 && has_left(m))
        m->is_short |= !ask_for_meeting(m, &goal, SYNC_ALL_PAIRS);
    m->without_count = 0;
}

static void ask_without_several(struct meetings *m)
{
    const struct sync_program *p = m->s->p;
    for (uint32_t i = 0; i < p->spot_count; i++)
        for (uint32_t k = i; k < p->spot_count && m->outcome == SYNC_GOING; k++) {
            struct sync_goal goal = goal_of(m, i, k);
            const struct tir_inst *loop = goal.spots[0]->by->block->owner;
            if (!may_conflict(goal.spots[0], goal.spots[1]))
                continue;
            ask_without_all(m, goal);
            while (loop && (loop->op != TIR_OP_FOR || !is_within(loop, goal.spots[1]->by)))
                loop = loop->block->owner;
            goal.again = loop;
            if (loop && m->outcome == SYNC_GOING)
                ask_without_all(m, goal);
        }
}

static const uint32_t *positions_of(const struct sync_program *p)
{
    uint32_t *positions = arena_array(p->cx->scratch, uint32_t, p->f->inst_count), at = 0;
    tir_foreach_inst(inst, p->f)
        positions[inst->id] = ++at;
    return positions;
}

static uint32_t count_leaving_out(const struct sync_plan *s)
{
    uint32_t count = 0, block;
    tir_foreach_inst(inst, s->p->f)
        count += leaves_out(s, inst, &block);
    return count;
}

enum sync_outcome tir_plan_replay_meetings(struct sync_plan *s)
{
    struct sync_program *p = s->p;
    struct meetings m = {.s = s, .outcome = SYNC_GOING};
    if (!p->spot_count)
        return SYNC_GOING;
    m.positions = positions_of(p);
    ask_for_pairs(&m);
    uint32_t block;
    m.asked = m.replays = 0;
    ask_for_both(&m);
    m.asked = m.replays = 0;
    tir_foreach_inst(inst, p->f)
        if (m.outcome == SYNC_GOING && leaves_out(s, inst, &block))
            ask_without_barrier(&m, inst, block);
    m.asked = m.replays = 0;
    if (m.outcome == SYNC_GOING && count_leaving_out(s) > 1)
        ask_without_several(&m);
    if (m.outcome == SYNC_GOING && m.is_short)
        tir_sync_unchecked_at(p, p->f->span,
                              STR("branches on arguments leave out barriers between more pairs of "
                                  "accesses than are asked for"));
    return m.outcome;
}
