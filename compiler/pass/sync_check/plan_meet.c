// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's plan for accesses that nothing orders and that met in no replay (meet.c): arguments
// are asked for with which two threads touch one element, in one round of the loops around both or
// in two. A replay then tells whether that is a conflict.

#include "pass/sync_check/plan.h"

enum {
    MOST_REPLAYS = 24, // of settings that are found
    MOST_ASKED = 256   // questions
};

struct meetings {
    struct sync_plan *s;
    const struct tir_inst *by[SYNC_SINGLE];
    uint32_t replays, asked;
    enum sync_outcome outcome;
};

// Replays arguments with which they meet, if some are found.
static enum sync_answer ask(struct meetings *m, struct sync_goal goal)
{
    enum sync_answer answer;
    struct sync_plan *s = m->s;
    if (m->replays >= MOST_REPLAYS || m->asked >= MOST_ASKED)
        return SYNC_UNSOLVED;
    m->asked++;
    tir_plan_set_args(s, s->p->depth, tir_plan_waves_of(s, s->p->depth));
    s->setting.waves = tir_plan_waves_of(s, s->p->depth);
    const bool found = tir_plan_steer(s, &goal, 1, &answer);
    if (found) {
        m->replays++;
        m->outcome = tir_plan_replay_steered(s);
    }
    tir_plan_take_first_cta(s);
    if (!found && answer != SYNC_NEVER)
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
    return m.outcome;
}
