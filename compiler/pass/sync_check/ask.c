// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on settings: arguments, a CTA and a tile that the kernel's conditions allow and that
// bring the replay somewhere, to a number of rounds of a loop or into a block.

#include "pass/sync_check/linear.h"

enum { // combinations of what is picked that are tried
    TRIES = 64,
    TRIES_BEFORE = 32,         // loosely, before these
    TRIES_OF_NEVER = 256,      // where only the last one says anything
    TRIES_OF_ALL = 20000,      // of one kernel
    NODES_OF_ALL = 10000,      // and numbers that the solver tries
    TRIES_OF_CONDITIONS = 2000 // of the kernel's conditions alone: without them nothing is replayed
};

enum { SMALL_FACTOR = 8 };

// Goals.

static struct sync_linear step_of(struct sync_ask *a, const struct tir_inst *loop)
{
    struct sync_linear step = tir_sync_linear(a, loop->operands[TIR_FOR_STEP]);
    if (!tir_sync_is_constant(a->q, &step)) { // the step of a loop is positive
        int64_t low, high;
        tir_sync_bounds(a->q, &step, &low, &high);
        a->partial |= low < 1;
        tir_sync_at_least(a, step, tir_sync_constant(1), 0);
    }
    return step;
}

static void demand_rounds(struct sync_ask *a, const struct tir_inst *loop, int64_t rounds,
                          bool exactly)
{
    if (loop->op == TIR_OP_FOR) {
        struct sync_linear end = tir_sync_linear(a, loop->operands[TIR_FOR_END]);
        struct sync_linear start = tir_sync_linear(a, loop->operands[TIR_FOR_BEGIN]);
        struct sync_linear way = tir_sync_add(a->q, &end, &start, -1);
        struct sync_linear none = tir_sync_constant(0), step = step_of(a, loop);
        if (rounds)
            tir_sync_at_least(a, way, tir_sync_add(a->q, &none, &step, rounds - 1), 1);
        if (exactly)
            tir_sync_at_least(a, tir_sync_add(a->q, &none, &step, rounds), way, 0);
        return;
    }
    struct tir_value *const *cond = &tir_yield_of(loop->regions[0])->operands[0];
    struct bitset which = tir_sync_slice(a->p, cond, 1);
    // m != M: where the two do not meet the loop does not end.
    exactly |= (*cond)->def && (*cond)->def->op == TIR_OP_NE;
    const struct tir_inst *around = a->following;
    for (int64_t round = TIR_MAX(rounds - 1, 0); round <= rounds; round++) {
        if (round == rounds && !exactly)
            break;
        tir_sync_follow(a, loop, round, &which);
        a->following = loop;
        tir_sync_demand(a, *cond, round < rounds);
        a->following = around;
    }
}

// A for runs the round that its counter is in, and maybe one more.
static void demand_round(struct sync_ask *a, const struct tir_inst *loop, bool goes_on)
{
    struct sync_linear at = tir_sync_linear(a, loop->regions[0]->args[0]);
    struct sync_linear step = step_of(a, loop);
    if (goes_on)
        tir_sync_at_least(a, tir_sync_linear(a, loop->operands[TIR_FOR_END]),
                          tir_sync_add(a->q, &at, &step, 1), 1);
}

static void demand_round_of_while(struct sync_ask *a, const struct tir_inst *loop, bool goes_on)
{
    tir_sync_demand(a, tir_yield_of(loop->regions[0])->operands[0], true);
    if (goes_on)
        tir_sync_demand_next(a, loop);
}

void tir_sync_demand_block(struct sync_ask *a, const struct tir_block *block, bool goes_on)
{
    for (const struct tir_inst *owner; (owner = block->owner); block = owner->block) {
        if (owner->op == TIR_OP_IF)
            tir_sync_demand(a, owner->operands[0], block == owner->regions[0]);
        else if (owner->op == TIR_OP_WHILE && block == owner->regions[1])
            demand_round_of_while(a, owner, goes_on);
        else if (owner->op == TIR_OP_FOR)
            demand_round(a, owner, goes_on);
        for (uint32_t i = 0;
             owner->op == TIR_OP_TILES && i < tir_attr_find(owner, TIR_ATTR_by)->list_count; i++)
            tir_sync_linear(a, block->args[i]);
        if (owner->op != TIR_OP_ROLE || !a->thread)
            continue;
        struct tir_crew crew = tir_crew_of(a->p->f, owner);
        struct sync_linear thread = tir_sync_single(a->thread - 1);
        tir_sync_at_least(a, thread, tir_sync_constant(crew.first * SYNC_LANES), 0);
        tir_sync_at_least(a, tir_sync_constant((crew.first + crew.warps) * SYNC_LANES), thread, 1);
    }
}

static bool is_slice(const struct tir_inst *inst)
{
    const struct tir_type *t = tir_ops[inst->op].has_ref ? tir_ref_base(inst)->type : NULL;
    return t && t->space != TIR_SPACE_GLOBAL && t->space != TIR_SPACE_LOCAL;
}

uint32_t tir_sync_slices(const struct tir_inst *inst, const struct tir_inst *out[SYNC_SLICES])
{
    uint32_t count = 0;
    if (is_slice(inst))
        out[count++] = inst;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        for (const struct tir_value *v = inst->operands[i];
             v && v->def && tir_type_is_buffer(v->type) && tir_viewed(v->def);
             v = tir_viewed(v->def))
            if (is_slice(v->def) && count < SYNC_SLICES)
                out[count++] = v->def;
    return count;
}

static void demand_inside(struct sync_ask *a, const struct tir_inst *slice)
{
    const struct tir_type *t = tir_ref_base(slice)->type;
    const struct tir_attr *box = tir_attr_find(slice, TIR_ATTR_box);
    for (uint32_t d = 0; d < t->rank; d++) {
        if (box->list[d] < 0)
            continue;
        struct sync_linear at = tir_sync_linear(a, tir_ref_indices(slice)[d]);
        tir_sync_at_least(a, at, tir_sync_constant(0), 0);
        tir_sync_at_least(a, tir_sync_constant(t->shape[d]), at, TIR_MAX(box->list[d], 1));
    }
}

void tir_sync_take_thread(struct sync_ask *a)
{
    for (uint32_t i = 0; a->thread && i < a->p->f->value_count; i++)
        if (a->known[i].of_thread)
            a->known[i].form = NULL;
    a->thread = 0;
}

static void demand_goal(struct sync_ask *a, const struct sync_goal *goal)
{
    const struct tir_inst *slices[SYNC_SLICES];
    switch (goal->kind) {
    case SYNC_ROUNDS:
    case SYNC_ROUNDS_OR_MORE:
        tir_sync_demand_block(a, goal->inst->block, goal->goes_on); // that it comes to the loop
        demand_rounds(a, goal->inst, goal->number, goal->kind == SYNC_ROUNDS);
        if (goal->again) {
            tir_sync_go_on(a, goal->again);
            tir_sync_demand_block(a, goal->inst->block, false);
            demand_rounds(a, goal->inst, goal->number, goal->kind == SYNC_ROUNDS);
        }
        return;
    case SYNC_CHOICE:
        tir_sync_demand(a, tir_sync_condition(goal->inst), goal->number == 0);
        return;
    case SYNC_BLOCK:
        tir_sync_demand(a, tir_sync_condition(goal->inst), goal->number == 0);
        tir_sync_demand_block(a, goal->inst->block, goal->goes_on);
        return;
    case SYNC_PLACE:
        for (uint32_t i = 0, n = tir_sync_slices(goal->inst, slices); i < n; i++)
            demand_inside(a, slices[i]);
        tir_sync_demand_block(a, goal->inst->block, goal->goes_on);
        return;
    case SYNC_MEET:
    case SYNC_TOUCH:
    case SYNC_SLOT:
        tir_sync_demand_meeting(a, goal);
        return;
    case SYNC_CTA:
        tir_sync_equal(a, tir_sync_cta(a, goal->axis), tir_sync_constant(goal->number));
        return;
    case SYNC_GRID:
        tir_sync_equal(a, tir_sync_ctas(a, goal->axis), tir_sync_constant(goal->number));
        return;
    }
}

// Whether there is nothing to choose from in what cond is made of.
static bool is_plain(const struct tir_value *v)
{
    const struct tir_inst *inst = v->def;
    if (v->kind != TIR_VALUE_RESULT)
        return true;
    bool divides = inst->op == TIR_OP_DIV || inst->op == TIR_OP_REM || inst->op == TIR_OP_CEILDIV;
    if ((divides && inst->operands[1]->kind != TIR_VALUE_CONST) || inst->op == TIR_OP_OR ||
        inst->op == TIR_OP_MIN || inst->op == TIR_OP_MAX)
        return false;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (!is_plain(inst->operands[i]))
            return false;
    return true;
}

// The kernel's conditions: those that are plain first, since they say more about the others.
static void demand_condition(struct sync_ask *a, const struct tir_value *cond, bool plain)
{
    if (cond->kind == TIR_VALUE_RESULT && cond->def->op == TIR_OP_AND) {
        demand_condition(a, cond->def->operands[0], plain);
        demand_condition(a, cond->def->operands[1], plain);
    } else if (is_plain(cond) == plain) {
        tir_sync_demand(a, cond, true);
    }
}

// How much depends on it that an argument is near to the wanted number: rounds, if 2 or 1.
static uint32_t weight_of(const struct sync_ask *a, uint32_t i)
{
    return a->p->args[i].loops ? 2 : a->p->args[i].outer;
}

static void begin_argument(struct sync_ask *a, uint32_t i)
{
    const struct tir_value *v = a->p->f->body->args[i];
    enum tir_elem elem = v->type->elem;
    if (!tir_type_is_scalar(v->type) || tir_elem_is_float(elem))
        return;
    bool is_size = i >= a->p->f->param_count || tir_elems[elem].kind != TIR_KIND_SIGNED;
    int64_t most = elem == TIR_BOOL ? 1 : INT32_MAX;
    a->arg[i] = 1 + tir_sync_unknown(a->q, is_size ? 0 : -most, most, a->wanted->args[i]);
}

static void begin(struct sync_ask *a)
{
    const struct tir_func *f = a->p->f;
    const struct tir_inst *yield = tir_yield_of(f->host);
    tir_sync_clear(a->q);
    a->known = arena_array(a->arena, struct sync_known, f->value_count);
    a->carried = arena_array(a->arena, const struct sync_linear *, f->value_count);
    a->rounds = arena_array(a->arena, struct sync_following, f->inst_count);
    a->arg = arena_array(a->arena, uint32_t, f->body->arg_count + 1);
    memset(a->cta, 0, sizeof a->cta);
    memset(a->ctas, 0, sizeof a->ctas);
    memset(a->tile, 0, sizeof a->tile);
    a->tiles = a->following = NULL;
    a->thread = a->pick_at = a->depth = a->load_count = 0;
    a->time = 1;
    for (uint32_t which = 3; which-- > 0;)
        for (uint32_t i = 0; i < f->body->arg_count; i++)
            if (weight_of(a, i) == which)
                begin_argument(a, i);
    for (uint32_t plain = 2; plain-- > a->plain;)
        for (uint32_t i = f->grid_count + f->extent_count; yield && i < yield->operand_count; i++)
            demand_condition(a, yield->operands[i], plain);
}

// Sizes of which a product is a size are wanted small, as far as no rounds depend on them: else of
// four factors one had to be 0.
static void want_small_factors(struct sync_ask *a)
{
    for (uint32_t i = 0; i < a->p->f->body->arg_count; i++) {
        uint32_t unknown = a->arg[i] - 1;
        if (!a->arg[i] || weight_of(a, i) || !tir_sync_is_factor(a->q, unknown))
            continue;
        int64_t *wanted = &a->q->unknowns[unknown].wanted;
        *wanted = TIR_MIN(*wanted, SMALL_FACTOR);
    }
}

static void take(const struct sync_ask *a, const int64_t *numbers, struct sync_setting *out)
{
    const struct tir_func *f = a->p->f;
    for (uint32_t i = 0; i < f->body->arg_count; i++)
        if (a->arg[i])
            out->args[i] = numbers[a->arg[i] - 1];
    for (uint32_t i = 0; i < 3; i++) {
        out->cta[i] = a->cta[i] ? numbers[a->cta[i] - 1] : 0;
        out->ctas[i] = a->ctas[i] ? numbers[a->ctas[i] - 1] : out->ctas[i];
    }
    for (uint32_t d = 0; a->tiles && d < tir_attr_find(a->tiles, TIR_ATTR_by)->list_count; d++)
        out->tile[d] = a->tile[d] ? numbers[a->tile[d] - 1] : 0;
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_TILES && a->rounds[inst->id].counted)
            out->waves = TIR_MAX(out->waves, numbers[a->rounds[inst->id].unknown] + 2);
    tir_sync_take_loads(a, numbers, out);
}

enum way { EXACTLY, LOOSELY, LOOSELY_AND_PLAINLY };

static enum sync_answer ask(struct sync_program *p, const struct sync_goal *goals, uint32_t count,
                            struct sync_setting *setting, enum way way, uint32_t most,
                            bool *follows)
{
    struct tir_arena *arena = p->cx->scratch;
    struct tir_arena_mark mark = tir_arena_mark(arena);
    struct sync_ask a = {.p = p,
                         .arena = arena,
                         .q = arena_new(arena, struct sync_problem),
                         .wanted = setting,
                         .loose = way != EXACTLY,
                         .plain = way == LOOSELY_AND_PLAINLY};
    bool never = true;
    enum sync_answer answer = SYNC_UNSOLVED;
    for (uint32_t tries = 0;
         tries < most && p->tries < TRIES_OF_ALL && p->nodes + a.q->nodes < NODES_OF_ALL;
         tries++, p->tries++) {
        int64_t numbers[SYNC_UNKNOWNS];
        struct tir_arena_mark inner = tir_arena_mark(arena);
        begin(&a);
        for (uint32_t i = 0; i < count; i++) {
            tir_sync_take_thread(&a);
            demand_goal(&a, &goals[i]);
        }
        want_small_factors(&a);
        bool contradicts = !a.q->too_large && tir_sync_is_empty(a.q);
        p->questions += !contradicts;
        answer = contradicts ? SYNC_NEVER : tir_sync_solve(a.q, arena, numbers);
        never &= answer == SYNC_NEVER;
        if (answer == SYNC_SOLVED)
            take(&a, numbers, setting);
        tir_arena_release(arena, inner);
        if (answer == SYNC_SOLVED)
            break;
        answer = SYNC_UNSOLVED;
        if (!tir_sync_next_picks(&a)) {
            answer = never && !a.partial ? SYNC_NEVER : SYNC_UNSOLVED;
            break;
        }
    }
    p->nodes += a.q->nodes;
    *follows = a.follows;
    tir_arena_release(arena, mark);
    return answer;
}

static bool has_choices(const struct sync_program *p)
{
    const struct tir_inst *yield = tir_yield_of(p->f->host);
    uint32_t first = p->f->grid_count + p->f->extent_count;
    for (uint32_t i = first; yield && i < yield->operand_count; i++)
        if (!is_plain(yield->operands[i]))
            return true;
    return false;
}

// Loosely a solution is none. What never happens without the conditions that leave a choice never
// happens, and most does not.
static bool is_never(struct sync_program *p, const struct sync_goal *goals, uint32_t count,
                     const struct sync_setting *near, enum way way, uint32_t most)
{
    struct sync_setting setting = *near;
    bool follows;
    setting.args = tir_arena_copy(p->cx->scratch, near->args,
                                  (p->f->body->arg_count + 1) * sizeof *near->args);
    return ask(p, goals, count, &setting, way, most, &follows) == SYNC_NEVER;
}

// What has no solution at first mostly has none at all, which a loose question shows at once, if it
// differs.
enum sync_answer tir_sync_ask(struct sync_program *p, const struct sync_goal *goals, uint32_t count,
                              struct sync_setting *setting)
{
    bool follows;
    if (!count)
        return ask(p, goals, count, setting, EXACTLY, TRIES_OF_CONDITIONS, &follows);
    enum sync_answer answer = ask(p, goals, count, setting, EXACTLY, 1, &follows);
    if (answer != SYNC_UNSOLVED)
        return answer;
    bool differs = follows || has_choices(p);
    return differs && is_never(p, goals, count, setting, LOOSELY_AND_PLAINLY, TRIES_BEFORE)
               ? SYNC_NEVER
               : ask(p, goals, count, setting, EXACTLY, TRIES, &follows);
}

bool tir_sync_is_never(struct sync_program *p, const struct sync_goal *goal,
                       const struct sync_setting *near)
{
    return is_never(p, goal, 1, near, LOOSELY_AND_PLAINLY, TRIES_OF_NEVER) ||
           (has_choices(p) && is_never(p, goal, 1, near, LOOSELY, TRIES_OF_NEVER));
}
