// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's plan for what the first settings left out: a CTA that is not the first, a block that
// no replay has entered, an access that was outside of its buffer.

#include "ir/effect.h"
#include "pass/sync_check/plan.h"

// Takes the goal with long loops, or else without.
static bool steer_long(struct sync_plan *s, const struct sync_goal *goals, uint32_t count,
                       bool must, enum sync_answer *answer)
{
    struct sync_goal all[PLAN_MOST_LOOPS + 2];
    memcpy(all, goals, count * sizeof *goals);
    for (uint32_t i = 0; i < count; i++)
        all[i].goes_on = true;
    uint32_t more = tir_plan_long_goals(s, s->p->depth + 2, all + count);
    tir_plan_set_args(s, s->p->depth + 2, tir_plan_waves_of(s, s->p->depth + 2));
    s->setting.waves = tir_plan_waves_of(s, s->p->depth + 2);
    return tir_plan_steer(s, all, count + more, answer) ||
           (!must && tir_plan_steer(s, goals, count, answer));
}

// CTAs that are not the first, of small grids and of the one that there is.
enum sync_outcome tir_plan_replay_ctas(struct sync_plan *s)
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
            outcome = tir_plan_replay_steered(s);
            s->is_short |= s->is_cut;
        }
        if (outcome == SYNC_GOING && any) {
            int64_t last = ctas - 1; // of the grid of the last setting
            struct sync_goal goal = {.kind = SYNC_CTA, .axis = axis, .number = last};
            if (last > 2 && steer_long(s, &goal, 1, false, &answer)) {
                outcome = tir_plan_replay_steered(s);
                s->is_short |= s->is_cut;
            }
        }
    }
    return outcome;
}

bool tir_plan_came(const struct bitset *set, const struct tir_inst *branch, uint32_t block)
{
    return bitset_has(set, 2 * branch->id + block);
}

bool tir_plan_is_choice(const struct sync_plan *s, const struct tir_inst *inst)
{
    return bitset_has(&s->p->visited, inst->id) &&
           (inst->op == TIR_OP_IF ||
            (tir_sync_is_comparison(inst) && bitset_has(&s->p->needed, inst->results[0]->id)));
}

bool tir_plan_is_open(const struct sync_plan *s, const struct tir_inst *branch)
{
    struct tir_value *condition = tir_sync_condition(branch);
    struct bitset slice = tir_sync_slice(s->p, &condition, 1);
    return tir_sync_is_open(s->p, &slice, true);
}

bool tir_plan_is_reached(const struct sync_plan *s, const struct tir_inst *inst)
{
    const struct tir_block *block = inst->block;
    for (const struct tir_inst *owner; (owner = block->owner); block = owner->block) {
        if (owner->op == TIR_OP_IF &&
            !tir_plan_came(&s->p->came, owner, block == owner->regions[1]))
            return false;
        if (bitset_has(&s->p->data_loops, owner->id) && !tir_plan_most_rounds(s, owner))
            return false;
    }
    return true;
}

bool tir_plan_is_dead(struct sync_plan *s, const struct tir_inst *inst, uint32_t block)
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
enum sync_outcome tir_plan_replay_blocks(struct sync_plan *s, bool again)
{
    const struct sync_program *p = s->p;
    enum sync_outcome outcome = SYNC_GOING;
    enum sync_answer answer;
    tir_foreach_inst(inst, p->f) {
        if (!tir_plan_is_choice(s, inst))
            continue;
        for (uint32_t k = 0; k < 2 && outcome == SYNC_GOING; k++) {
            struct sync_goal goal = {.kind = SYNC_BLOCK, .inst = inst, .number = k};
            if (tir_plan_came(again ? &p->came_long : &p->came, inst, k) ||
                !tir_plan_is_open(s, inst) || tir_plan_is_dead(s, inst, k) || !tir_plan_has_left(s))
                continue;
            if (steer_long(s, &goal, 1, again, &answer))
                outcome = tir_plan_replay_steered(s);
        }
    }
    return outcome;
}

bool tir_plan_is_placed(const struct sync_plan *s, const struct tir_inst *inst)
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
enum sync_outcome tir_plan_replay_places(struct sync_plan *s)
{
    enum sync_outcome outcome = SYNC_GOING;
    enum sync_answer answer;
    tir_foreach_inst(inst, s->p->f) {
        struct sync_goal goal = {.kind = SYNC_PLACE, .inst = inst};
        if (outcome != SYNC_GOING || tir_plan_came(&s->p->came, inst, 0) ||
            !tir_plan_is_placed(s, inst) || !tir_plan_is_reached(s, inst) || !tir_plan_has_left(s))
            continue;
        if (steer_long(s, &goal, 1, false, &answer))
            outcome = tir_plan_replay_steered(s);
        else if (answer == SYNC_NEVER)
            bitset_insert(&s->dead, 2 * inst->id);
    }
    return outcome;
}
