// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's plan: the settings that a kernel is replayed for, and the parts they do not reach.
//
// The first settings follow from the kernel's loops and tiles: 0, 1, ... rounds, and enough tiles
// to go round a ring. Further settings (ask.c) reach what those left out, one thing at a time: a
// number of rounds of a loop, whatever decides it, two rounds of a loop around another, a CTA that
// is not the first, a block that no replay has entered, an access that was outside of its buffer. A
// part without such settings stays unchecked, unless it can never run.

#include "pass/sync_check/plan.h"

enum { LARGE = 8192 }; // of an extent: of three, elements can still be counted

static enum sync_outcome replay_up_to(struct sync_plan *s, int64_t most)
{
    enum sync_outcome outcome = SYNC_GOING;
    for (int64_t rounds = 0; rounds <= most && outcome == SYNC_GOING; rounds++) {
        if (!tir_plan_counts(s, rounds))
            continue;
        tir_plan_set_args(s, rounds, tir_plan_waves_of(s, rounds));
        outcome = tir_plan_replay(s, s->p->has_data_loops ? rounds : 1);
    }
    return outcome;
}

// Each of several arguments that decide about loops by itself, the others in the middle.
static enum sync_outcome replay_apart(struct sync_plan *s)
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
            tir_plan_set_args(s, p->depth, 2);
            s->setting.args[i] = some[k] * TIR_MAX(p->args[i].granule, 1);
            outcome = tir_plan_replay(s, TIR_MAX(some[k], 1));
        }
    }
    return outcome;
}

// One element more than whole rounds.
static enum sync_outcome replay_ragged(struct sync_plan *s)
{
    tir_plan_set_args(s, s->p->depth, tir_plan_waves_of(s, s->p->depth));
    for (uint32_t i = 0; i < s->p->f->body->arg_count; i++)
        s->setting.args[i] += s->p->args[i].loops;
    return tir_plan_replay(s, 2 * s->p->depth + 2); // with few tiles
}

static bool is_number(const struct sync_program *p, uint32_t arg)
{
    const struct tir_type *t = p->f->body->args[arg]->type;
    return tir_type_is_scalar(t) && tir_elem_is_int(t->elem);
}

// Numbers that only say where in a tensor something is, at its beginning, where most of them meet;
// and tensors so large that what threads of replays so far have touched is inside, and of single
// elements what they and rounds are further on by.
static enum sync_outcome replay_low(struct sync_plan *s)
{
    bool any = false;
    tir_plan_set_args(s, s->p->depth, tir_plan_waves_of(s, s->p->depth));
    for (uint32_t i = 0; i < s->p->f->body->arg_count; i++) {
        const bool is_extent = i >= s->p->f->param_count;
        if (s->p->args[i].loops || s->p->args[i].outer || (!is_extent && !is_number(s->p, i)))
            continue;
        const int64_t granule = TIR_MAX(s->p->args[i].granule, 1);
        if (!is_extent)
            s->setting.args[i] = 0;
        else if (s->p->has_single)
            s->setting.args[i] =
                TIR_MAX(s->setting.args[i], tir_ceil_div(LARGE, granule) * granule);
        any |= !is_extent || s->p->has_single || s->p->args[i].reach > 4 * (int64_t)s->p->threads;
    }
    return any ? tir_plan_replay(s, 2 * s->p->depth + 2) : SYNC_GOING; // with few tiles
}

// Does data decide what a CTA that stays does in a tile, or how often?
static bool has_data_in_tiles(const struct sync_plan *s)
{
    bool stays = false, decides = s->ever_decided;
    tir_foreach_inst(inst, s->p->f) {
        stays |= inst->op == TIR_OP_TILES && tir_attr_int(inst, TIR_ATTR_persistent, 0);
        decides |= tir_sync_is_count(s->p, inst);
    }
    return stays && decides;
}

// Then the sizes that tell how many tiles there are bound no loop in them, and so many tiles are
// asked for: what each of them leaves in a ring adds up.
static enum sync_outcome replay_tiles(struct sync_plan *s)
{
    const int64_t tiles = tir_plan_waves_of(s, 1);
    tir_plan_set_args(s, tiles, tiles);
    return tir_plan_replay(s, 1);
}

static bool is_whole(const struct sync_plan *s)
{
    tir_foreach_inst(inst, s->p->f)
        if (tir_plan_is_choice(s, inst) &&
            !(tir_plan_came(&s->p->came, inst, 0) && tir_plan_came(&s->p->came, inst, 1)) &&
            tir_plan_is_open(s, inst))
            return false;
    return true;
}

static enum sync_outcome replay_mixed(struct sync_plan *s)
{
    enum sync_outcome outcome = SYNC_GOING;
    enum sync_answer answer;
    tir_plan_set_args(s, s->p->depth + 2, tir_plan_waves_of(s, s->p->depth + 2));
    s->setting.waves = tir_plan_waves_of(s, s->p->depth + 2);
    bool allowed =
        s->ever_decided && (tir_plan_are_allowed(s) || tir_plan_steer(s, NULL, 0, &answer));
    for (uint32_t seed = PLAN_SEEDS; allowed && seed < PLAN_MORE_SEEDS && outcome == SYNC_GOING;
         seed++) {
        if (is_whole(s))
            break;
        outcome = tir_plan_replay_once(s, seed);
    }
    return outcome;
}

static enum sync_outcome replay_all(struct sync_plan *s)
{
    struct sync_program *p = s->p;
    int64_t most = p->has_data_loops ? 2 * p->depth + 2 : 0;
    enum sync_outcome outcome = replay_up_to(s, most);
    if (outcome == SYNC_GOING && p->has_data_loops)
        outcome = replay_apart(s);
    if (outcome == SYNC_GOING && p->has_data_loops)
        outcome = replay_ragged(s);
    if (outcome == SYNC_GOING)
        outcome = replay_low(s);
    if (outcome == SYNC_GOING && has_data_in_tiles(s))
        outcome = replay_tiles(s);
    if (outcome == SYNC_GOING && p->has_data_loops)
        outcome = tir_plan_replay_short(s, most);
    if (outcome == SYNC_GOING && p->axes)
        outcome = tir_plan_replay_ctas(s);
    if (outcome == SYNC_GOING && p->has_data_loops)
        outcome = tir_plan_replay_long(s);
    if (outcome == SYNC_GOING && p->has_data_loops)
        outcome = tir_plan_replay_cycle(s);
    if (outcome == SYNC_GOING && p->has_data_loops)
        outcome = tir_plan_replay_last_rounds(s);
    if (outcome == SYNC_GOING)
        outcome = tir_plan_replay_few(s);
    if (outcome == SYNC_GOING)
        outcome = tir_plan_replay_nested(s);
    if (outcome == SYNC_GOING)
        outcome = tir_plan_replay_blocks(s, false);
    if (outcome == SYNC_GOING && p->has_data_loops)
        outcome = tir_plan_replay_blocks(s, true);
    if (outcome == SYNC_GOING)
        outcome = tir_plan_replay_places(s);
    if (outcome == SYNC_GOING)
        outcome = tir_plan_replay_slots(s);
    if (outcome == SYNC_GOING)
        outcome = tir_plan_replay_meetings(s);
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
    struct sync_plan s = {.p = p, .state = {.p = p, .arena = arena}, .alone = PLAN_ALL};
    s.setting.args = arena_array(arena, int64_t, p->f->body->arg_count + 1);
    tir_plan_take_first_cta(&s);
    s.came = bitset_new(arena, 2 * p->f->inst_count);
    s.asked = bitset_new(arena, 2 * p->f->inst_count);
    s.dead = bitset_new(arena, 2 * p->f->inst_count);
    tir_foreach_inst(inst, p->f)
        if (is_open_loop(p, inst))
            vec_push(arena, &s.loops, inst);
    if (p->ctas > SYNC_CTAS)
        tir_sync_give_up(&s.state, "CTAs in a cluster", SYNC_CTAS);
    enum sync_outcome outcome = s.state.outcome == SYNC_GOING ? replay_all(&s) : s.state.outcome;
    p->recurs = s.recurs;
    if (outcome == SYNC_GOING)
        tir_plan_name_unchecked(&s);
    if (outcome == SYNC_GIVEN_UP && p->work > p->work_limit)
        tir_sync_unchecked_at(p, p->f->span, STR("the kernel takes more work than the limit"));
    return outcome;
}
