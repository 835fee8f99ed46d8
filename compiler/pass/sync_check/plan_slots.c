// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's plan for what arguments choose among a few: slots of buffers, mbarriers and their
// phases, and CTAs of a cluster. Each is asked for, in the first rounds, and replayed.
//
//     arrive(full[(r + n) % 4]);
//     wait(full[(r + 2 * n) % 4], m % 2);     // the same mbarrier for n = 4, the phase for m = 4

#include "pass/sync_check/plan.h"

enum {
    MOST_SLOTS = 16,   // of which each is asked for
    MOST_REPLAYS = 40, // of settings that are found
    MOST_ASKED = 256,  // questions
    MOST_TOGETHER = 7  // slots of different buffers
};

// One of a few numbers that arguments give: the index of a slot, a phase, or what a division leaves
// that says where something is, as (r + n) % 4 * 64.
struct slot {
    struct sync_goal goal; // with each number below `count`
    const struct tir_value *root;
    int64_t count;
};

struct slots {
    struct sync_plan *s;
    struct bitset seen, few; // values; those in which rests were found
    VEC(struct slot) found;
    uint32_t replays, asked;
    bool is_refused; // a question was
    enum sync_outcome outcome;
};

static void add(struct slots *s, struct sync_goal goal, int64_t count)
{
    const struct slot slot = {goal, goal.spots[0]->part->root, count};
    vec_push(s->s->p->cx->scratch, &s->found, slot);
}

// Do arguments decide about it, that decide about no loop?
static bool is_moved(const struct slots *s, const struct sync_part *part,
                     struct tir_value *const *at, uint32_t count)
{
    struct sync_part alone = {.root = part->root, .count = {count}};
    memcpy(alone.at[0], at, count * sizeof *at);
    return tir_sync_is_moved(s->s->p, &alone);
}

static int64_t count_of_rests(const struct tir_inst *inst)
{
    int64_t by;
    if ((inst->op != TIR_OP_REM && inst->op != TIR_OP_AND) ||
        !tir_is_const_int(inst->operands[1], &by))
        return 0;
    by += inst->op == TIR_OP_AND;
    return by > 1 && by <= MOST_SLOTS && (inst->op == TIR_OP_REM || tir_is_pow2((uint64_t)by)) ? by
                                                                                               : 0;
}

// Is it, or is it computed from, what a division by a small number leaves?
static bool add_rests(struct slots *s, const struct sync_spot *spot, struct tir_value *v)
{
    const struct tir_inst *inst = v->kind == TIR_VALUE_RESULT ? v->def : NULL;
    if (!inst || !tir_has_trait(inst, TIR_PURE) || inst->region_count)
        return false;
    if (!bitset_insert(&s->seen, v->id))
        return bitset_has(&s->few, v->id);
    const int64_t count = count_of_rests(inst);
    bool any = count && is_moved(s, spot->part, &v, 1);
    if (any)
        add(s, (struct sync_goal){.kind = SYNC_SLOT, .spots = {spot}, .value = v}, count);
    for (uint32_t i = 0; i < inst->operand_count && !count; i++)
        any |= inst->operands[i] && add_rests(s, spot, inst->operands[i]);
    if (any)
        bitset_insert(&s->few, v->id);
    return any;
}

static void refuse(const struct slots *s, const struct tir_inst *by)
{
    struct sync_program *p = s->s->p;
    tir_sync_unchecked(
        p, by,
        tir_str_format(p->cx->scratch, "arguments choose among more than %d slots", MOST_SLOTS)
            .ptr);
}

// --- parts of buffers ---

static bool is_same_sum(const struct sync_part *x, const struct sync_part *y, uint32_t d)
{
    return x->root == y->root && x->count[d] == y->count[d] &&
           !memcmp(x->at[d], y->at[d], x->count[d] * sizeof *x->at[d]);
}

static bool is_asked_before(const struct sync_program *p, uint32_t spot,
                            const struct sync_part *part, uint32_t d)
{
    for (uint32_t i = 0; i < spot; i++)
        if (p->spots[i].moves && is_same_sum(part, p->spots[i].part, d))
            return true;
    return false;
}

// Does it go on with the rounds of a loop?
static bool goes_round(struct sync_program *p, const struct sync_part *part, uint32_t d)
{
    const struct bitset slice =
        tir_sync_slice(p, (struct tir_value *const *)part->at[d], part->count[d]);
    tir_foreach_inst(inst, p->f)
        for (uint32_t i = 0; tir_is_loop(inst) && i < inst->regions[0]->arg_count; i++)
            if (bitset_has(&slice, inst->regions[0]->args[i]->id))
                return true;
    return false;
}

// Is it a sum of what arguments, and rounds, count? Then arguments move all that goes round alike.
static bool is_sum(const struct tir_value *v)
{
    const struct tir_inst *inst = v->kind == TIR_VALUE_RESULT ? v->def : NULL;
    const struct tir_inst *owner = inst || v->kind == TIR_VALUE_CONST ? NULL : v->block->owner;
    if (!inst)
        return !owner || (owner->op == TIR_OP_FOR && !v->index);
    if (inst->op != TIR_OP_ADD && inst->op != TIR_OP_SUB && inst->op != TIR_OP_CAST)
        return false;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (!is_sum(inst->operands[i]))
            return false;
    return true;
}

// Parts that are no slots of a ring are asked for where they meet (plan_meet.c).
static void find_in_part(struct slots *s, uint32_t i, uint32_t d)
{
    struct sync_program *p = s->s->p;
    const struct sync_spot *spot = &p->spots[i];
    const struct sync_part *part = spot->part;
    const int64_t count = part->size[d] == 1 ? part->root->type->shape[d] : 0;
    const bool moves = count && is_moved(s, part, part->at[d], part->count[d]);
    bool few = false, sums = true;
    if (count && count <= MOST_SLOTS) {
        if (moves && !is_asked_before(p, i, part, d))
            add(s, (struct sync_goal){.kind = SYNC_SLOT, .spots = {spot}, .axis = d}, count);
        return;
    }
    for (uint32_t k = 0; k < part->count[d]; k++) {
        few |= add_rests(s, spot, part->at[d][k]);
        sums &= is_sum(part->at[d][k]);
    }
    if (moves && !few && !sums && goes_round(p, part, d))
        refuse(s, spot->by);
}

static void find_parts(struct slots *s)
{
    const struct sync_program *p = s->s->p;
    for (uint32_t i = 0; i < p->spot_count; i++) {
        const struct sync_part *part = p->spots[i].part;
        const struct tir_type *t = part->root->type;
        if (part->vague || t->space == TIR_SPACE_GLOBAL || !tir_sync_is_moved(p, part))
            continue;
        for (uint32_t d = 0; d < t->rank; d++)
            find_in_part(s, i, d);
    }
}

// --- what synchronises ---

// A number below `count` that says which mbarrier it is, which phase, or of which CTAs.
static void find_number(struct slots *s, const struct tir_inst *by, struct tir_value *buffer,
                        struct tir_value *v, int64_t count)
{
    struct sync_part part = {.root = tir_buffer_root(buffer)};
    if (!v || v->kind == TIR_VALUE_CONST || !is_moved(s, &part, &v, 1))
        return;
    struct tir_arena *arena = s->s->p->cx->scratch;
    const struct sync_spot spot = {.by = by, .part = tir_arena_copy(arena, &part, sizeof part)};
    const struct sync_spot *kept = tir_arena_copy(arena, &spot, sizeof spot);
    const bool is_new = !bitset_has(&s->seen, v->id);
    if (add_rests(s, kept, v) || !is_new)
        return;
    bitset_insert(&s->seen, v->id);
    if (count <= MOST_SLOTS)
        add(s, (struct sync_goal){.kind = SYNC_SLOT, .spots = {kept}, .value = v}, count);
    else
        refuse(s, by);
}

static void find_numbers(struct slots *s, const struct tir_inst *inst)
{
    const uint32_t ctas = s->s->p->ctas;
    struct tir_value *of = inst->operand_count ? inst->operands[0] : NULL;
    switch (inst->op) {
    case TIR_OP_WAIT:
    case TIR_OP_TEST_WAIT:
        find_number(s, inst, of, inst->operands[TIR_WAIT_PARITY], 2);
        return;
    case TIR_OP_ARRIVE:
        find_number(s, inst, of, inst->operands[TIR_ARRIVE_CTA], ctas);
        return;
    case TIR_OP_REMOTE:
        find_number(s, inst, of, inst->operands[1], ctas);
        return;
    case TIR_OP_COMMIT: // CTAs as the bits of a mask
        find_number(s, inst, of, inst->operands[TIR_COMMIT_CTAS], INT64_C(1) << ctas);
        return;
    case TIR_OP_COPY_ASYNC:
        find_number(s, inst, of, inst->operands[TIR_COPY_CTAS], INT64_C(1) << ctas);
        return;
    case TIR_OP_VIEW:
        of = tir_ref_base(inst);
        for (uint32_t d = 0; of->type->elem == TIR_MBARRIER && d < of->type->rank; d++)
            find_number(s, inst, of, tir_ref_indices(inst)[d], of->type->shape[d]);
        return;
    default:
        return;
    }
}

// --- questions ---

// False: no setting was found.
static bool ask(struct slots *s, const struct sync_goal *goals, uint32_t count)
{
    enum sync_answer answer;
    struct sync_plan *plan = s->s;
    if (s->replays >= MOST_REPLAYS || s->asked >= MOST_ASKED) {
        s->is_refused = true;
        return false;
    }
    s->asked++;
    tir_plan_set_args(plan, plan->p->depth, tir_plan_waves_of(plan, plan->p->depth));
    plan->setting.waves = tir_plan_waves_of(plan, plan->p->depth);
    const bool found = tir_plan_steer(plan, goals, count, &answer);
    if (found) {
        s->replays++;
        s->outcome = tir_plan_replay_steered(plan);
        s->is_refused |= plan->is_cut;
    }
    s->is_refused |= !found && count == 1 && answer == SYNC_UNSOLVED;
    tir_plan_take_first_cta(plan);
    return found;
}

// Those of different buffers at once, and one by one where not all can be.
static void ask_for_group(struct slots *s, const struct sync_goal *goals, uint32_t count)
{
    const bool all = ask(s, goals, count);
    for (uint32_t i = 0; i < count && !all && count > 1 && s->outcome == SYNC_GOING; i++)
        ask(s, &goals[i], 1);
}

// Of each buffer one that is not asked for yet, and for which there is such a number.
static void ask_for_number(struct slots *s, int64_t number)
{
    struct sync_program *p = s->s->p;
    bool *asked = arena_array(p->cx->scratch, bool, s->found.len + 1);
    for (uint32_t i = 0; i < s->found.len && s->outcome == SYNC_GOING; i++) {
        struct sync_goal goals[MOST_TOGETHER];
        uint32_t count = 0;
        if (asked[i])
            continue;
        struct bitset roots = bitset_new(p->cx->scratch, p->f->value_count);
        for (uint32_t k = i; k < s->found.len && count < MOST_TOGETHER; k++) {
            const struct slot *slot = &s->found.at[k];
            if (asked[k] || number >= slot->count || !bitset_insert(&roots, slot->root->id))
                continue;
            asked[k] = true;
            goals[count] = slot->goal;
            goals[count++].number = number;
        }
        if (count)
            ask_for_group(s, goals, count);
    }
}

// The rounds after the first may come to the slots in another way, as (r + n) % 4 and
// (r + 2 * n) % 4, which are one for 0 and 4.
enum sync_outcome tir_plan_replay_slots(struct sync_plan *plan)
{
    struct sync_program *p = plan->p;
    struct slots s = {.s = plan,
                      .seen = bitset_new(p->cx->scratch, p->f->value_count),
                      .few = bitset_new(p->cx->scratch, p->f->value_count),
                      .outcome = SYNC_GOING};
    find_parts(&s);
    tir_foreach_inst(inst, p->f)
        if (bitset_has(&p->visited, inst->id))
            find_numbers(&s, inst);
    for (int64_t number = 0; number < MOST_SLOTS; number++)
        ask_for_number(&s, number);
    if (s.outcome == SYNC_GOING && s.is_refused)
        tir_sync_unchecked_at(p, p->f->span,
                              STR("arguments decide about more places than are asked for"));
    return s.outcome;
}
