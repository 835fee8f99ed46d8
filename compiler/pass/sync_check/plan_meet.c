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
// together, and so are those around two of which no replay came to both.

#include "pass/sync_check/plan.h"

enum {
    MOST_REPLAYS = 24, // of settings that are found
    MOST_ASKED = 256,  // questions
    MOST_LEFT_OUT = 64 // of them about barriers that are left out
};

struct meetings {
    struct sync_plan *s;
    const struct tir_inst *by[SYNC_SINGLE];
    const struct tir_inst *barrier; // the `if` that leaves one out in a block of this number; NULL
    uint32_t block;
    uint32_t replays, asked;
    enum sync_outcome outcome;
};

// Replays arguments with which they meet, if some are found.
static enum sync_answer ask(struct meetings *m, struct sync_goal goal)
{
    const struct sync_goal goals[] = {goal,
                                      {.kind = SYNC_BLOCK, .inst = m->barrier, .number = m->block}};
    enum sync_answer answer;
    struct sync_plan *s = m->s;
    if (m->replays >= MOST_REPLAYS || m->asked >= MOST_ASKED)
        return SYNC_UNSOLVED;
    m->asked++;
    tir_plan_set_args(s, s->p->depth, tir_plan_waves_of(s, s->p->depth));
    s->setting.waves = tir_plan_waves_of(s, s->p->depth);
    const bool found = tir_plan_steer(s, goals, m->barrier ? 2 : 1, &answer);
    if (found) {
        m->replays++;
        m->outcome = tir_plan_replay_steered(s);
    }
    tir_plan_take_first_cta(s);
    if (!found && answer != SYNC_NEVER && !m->barrier)
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
        const bool is_mirrored = goal.inst == goal.other && !goal.again && i % 2;
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
    const struct tir_inst *x = goal.inst;
    goal.again = loop;
    bool known = ask_for_threads(m, goal, pairs);
    if (x == goal.other)
        return known;
    goal.inst = goal.other;
    goal.other = x;
    return ask_for_threads(m, goal, pairs) && known;
}

// False: whether two threads meet is not known.
static bool ask_for_pair(struct meetings *m, const struct tir_inst *x, const struct tir_inst *y,
                         struct sync_unordered pair)
{
    const struct sync_goal goal = {.kind = SYNC_MEET, .inst = x, .other = y};
    bool known = true, any = false;
    for (const struct tir_inst *loop = x->block->owner; loop && pair.later;
         loop = loop->block->owner)
        if (loop->op == TIR_OP_FOR && is_within(loop, y)) {
            any = true;
            known &= ask_for_rounds(m, loop, goal, pair.later);
        }
    const uint8_t pairs = pair.now | (any ? 0 : pair.later);
    return (!pairs || ask_for_threads(m, goal, pairs) || tir_sync_are_alike(m->s->p, x, y)) &&
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

static bool has_barrier(const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (inst->op == TIR_OP_BAR_SYNC || inst->op == TIR_OP_WARP_SYNC)
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

static bool is_guarded(const struct tir_inst *inst)
{
    for (inst = inst->block->owner; inst; inst = inst->block->owner)
        if (inst->op == TIR_OP_IF)
            return true;
    return false;
}

// Is inst beside the `if`, in its block or deeper? In another `if`, in `guarded`?
static bool is_beside(const struct tir_inst *branch, const struct tir_inst *inst, bool *guarded)
{
    for (; inst && inst->block != branch->block; inst = inst->block->owner)
        *guarded |= inst->block->owner && inst->block->owner->op == TIR_OP_IF;
    return inst && inst != branch;
}

static bool may_conflict(const struct tir_inst *x, const struct tir_inst *y)
{
    const bool stores = x->op == TIR_OP_STORE || y->op == TIR_OP_STORE || x->op != y->op;
    return stores && tir_ref_base(x) == tir_ref_base(y);
}

// Of which no replay came to both, as other branches are around them.
static void ask_for_both(struct meetings *m)
{
    for (uint32_t i = 0; i < m->s->p->single_count; i++)
        for (uint32_t k = i + 1; k < m->s->p->single_count && m->outcome == SYNC_GOING; k++) {
            const struct sync_goal goal = {.kind = SYNC_MEET, .inst = m->by[i], .other = m->by[k]};
            if (!m->s->p->pairs[i][k].seen && may_conflict(goal.inst, goal.other) &&
                is_guarded(goal.inst) && is_guarded(goal.other) && m->asked < MOST_LEFT_OUT)
                ask_for_threads(m, goal, SYNC_ALL_PAIRS);
        }
}

static void ask_without_barrier(struct meetings *m, const struct tir_inst *branch, uint32_t block)
{
    m->barrier = branch;
    m->block = block;
    for (uint32_t i = 0; i < m->s->p->single_count; i++)
        for (uint32_t k = i; k < m->s->p->single_count && m->outcome == SYNC_GOING; k++) {
            const struct sync_goal goal = {.kind = SYNC_MEET, .inst = m->by[i], .other = m->by[k]};
            bool guarded = false;
            if (may_conflict(goal.inst, goal.other) && is_beside(branch, goal.inst, &guarded) &&
                is_beside(branch, goal.other, &guarded) && guarded && m->asked < MOST_LEFT_OUT)
                ask_for_threads(m, goal, SYNC_ALL_PAIRS);
        }
    m->barrier = NULL;
}

enum sync_outcome tir_plan_replay_meetings(struct sync_plan *s)
{
    struct sync_program *p = s->p;
    struct meetings m = {.s = s, .outcome = SYNC_GOING};
    tir_foreach_inst(inst, p->f)
        if (p->single[inst->id])
            m.by[p->single[inst->id] - 1] = inst;
    for (uint32_t i = 0; i < p->single_count; i++)
        for (uint32_t k = i; k < p->single_count; k++)
            if ((p->pairs[i][k].now || p->pairs[i][k].later) && m.outcome == SYNC_GOING &&
                !ask_for_pair(&m, m.by[i], m.by[k], p->pairs[i][k]) && m.outcome == SYNC_GOING)
                name_pair(&m, m.by[i], m.by[k]);
    uint32_t block;
    m.asked = m.replays = 0;
    ask_for_both(&m);
    m.asked = m.replays = 0;
    tir_foreach_inst(inst, p->f)
        if (p->single_count && m.outcome == SYNC_GOING && leaves_out(s, inst, &block))
            ask_without_barrier(&m, inst, block);
    return m.outcome;
}
