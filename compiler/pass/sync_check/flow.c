// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's replay of blocks: branches, loops, roles and scopes, and which lanes are in them.
//
// If only some lanes of a warp take a branch, its block runs for them, then the other block for the
// rest. If only some warps of an agent take it, the agent is split: the replay starts anew with
// more agents.

#include "pass/sync_check/sync_check.h"

static struct sync_frame *push(struct sync_run *r, struct sync_agent *a,
                               const struct tir_inst *owner, const struct tir_block *block)
{
    if (a->depth == SYNC_DEPTH) {
        tir_sync_give_up(r, "blocks in each other", SYNC_DEPTH);
        return tir_sync_top(a);
    }
    struct sync_frame *f = &a->frames[a->depth++];
    *f = (struct sync_frame){.owner = owner,
                             .block = block,
                             .next = tir_sync_visited(r->p, block->first),
                             .start = ++r->starts};
    f->lanes = a->depth > 1 ? f[-1].lanes : (struct sync_lanes){.count = SYNC_LANES};
    return f;
}

static void set_slot(struct sync_agent *a, const struct tir_value *v, struct sync_value x)
{
    a->slots[v->id] = x;
}

// Several values change places at once.
static void carry(struct sync_run *r, struct sync_agent *a, struct tir_value *const *to,
                  struct tir_value *const *from, uint32_t count)
{
    struct sync_value few[16], *x = few;
    if (count > TIR_COUNT_OF(few))
        x = arena_array(r->arena, struct sync_value, count);
    for (uint32_t i = 0; i < count; i++) {
        x[i] = tir_sync_value(r, a, from[i]);
        if (x[i].kind == SYNC_BUFFER) // its place is used again
            x[i].buffer = tir_arena_copy(r->arena, x[i].buffer, sizeof *x[i].buffer);
    }
    for (uint32_t i = 0; i < count; i++)
        set_slot(a, to[i], x[i]);
}

// Branches.

// Runs one of an if's blocks, unless there is nothing in it.
static bool enter_branch(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst,
                         uint32_t region, const struct sync_lanes *lanes)
{
    const struct tir_block *block = inst->regions[region];
    if (lanes->count)
        bitset_insert(r->came, 2 * inst->id + region);
    if (!lanes->count || (!inst->result_count && !tir_sync_visited(r->p, block->first)))
        return false;
    push(r, a, inst, block)->lanes = *lanes;
    return true;
}

// Among which threads may a condition that is not known differ?
static void note_data(struct sync_run *r, const struct tir_inst *inst,
                      const struct sync_value *cond, struct sync_lanes *lanes)
{
    if (cond->kind != SYNC_SYMBOL)
        return;
    if (cond->varies >= SYNC_EVERY_LANE && !tir_sync_is_apart(r->p, inst, cond))
        tir_sync_unchecked(r->p, inst, "its condition depends on the data of each thread");
    if (cond->varies <= lanes->spread || lanes->spread == SYNC_EVERY_LANE)
        return;
    lanes->spread = cond->varies;
    lanes->data = inst;
}

static void branch(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst)
{
    struct sync_value cond = tir_sync_value(r, a, inst->operands[0]);
    struct sync_lanes within = tir_sync_top(a)->lanes;
    if (cond.kind != SYNC_EACH) {
        const bool both = tir_sync_is_apart(r->p, inst, &cond);
        note_data(r, inst, &cond, &within);
        const bool yes = both || tir_sync_decide(r, &cond, 2);
        if ((both || !yes) && enter_branch(r, a, inst, 1, &within))
            tir_sync_top(a)->is_other = both;
        if (yes)
            enter_branch(r, a, inst, 0, &within);
        return;
    }
    const struct sync_split *split = tir_sync_split(r, a, &within, &cond);
    if (r->outcome != SYNC_GOING)
        return;
    bool both = enter_branch(r, a, inst, 1, &split->no);
    if (both)
        tir_sync_top(a)->merges = split->yes.count;
    if (enter_branch(r, a, inst, 0, &split->yes))
        tir_sync_top(a)->lies_on = both;
}

static bool is_one_value(const struct sync_agent *a, const struct sync_value *x,
                         const struct sync_value *y)
{
    if (x->kind != y->kind || x->kind != SYNC_EACH)
        return x->kind == y->kind && x->number == y->number;
    return memcmp(x->each, y->each, a->warps * SYNC_LANES * sizeof *x->each) == 0;
}

static uint64_t key_of(const struct tir_inst *inst, const struct sync_value *v)
{
    return tir_sync_mix(v->kind, v->kind == SYNC_EACH ? inst->id : (uint64_t)v->number);
}

// What an if gives that each thread takes by its own data: the one or the other.
static struct sync_value either_of(struct sync_run *r, struct sync_agent *a,
                                   const struct tir_inst *inst, struct sync_value x,
                                   struct sync_value y)
{
    const bool are_numbers = x.kind == SYNC_INT || x.kind == SYNC_EACH || x.kind == SYNC_SYMBOL;
    if (!are_numbers || is_one_value(a, &x, &y))
        return y;
    const struct sync_value cond = tir_sync_value(r, a, inst->operands[0]);
    const uint64_t key = tir_sync_mix(key_of(inst, &x), key_of(inst, &y));
    return sync_symbol(tir_sync_mix(key, (uint64_t)cond.number), SYNC_EVERY_LANE);
}

static void end_branch(struct sync_run *r, struct sync_agent *a, const struct sync_frame *f)
{
    const struct tir_inst *yield = tir_yield_of(f->block);
    for (uint32_t i = 0; i < f->owner->result_count; i++) {
        const struct tir_value *to = f->owner->results[i];
        struct sync_value x = tir_sync_value(r, a, yield->operands[i]);
        if (f->merges)
            x = tir_sync_merged(r, a, &f->lanes, a->slots[to->id], x);
        else if (f->is_other)
            x = either_of(r, a, f->owner, a->slots[to->id], x);
        set_slot(a, to, x);
    }
}

// Loops.

static int64_t bound_of(struct sync_run *r, const struct sync_agent *a, const struct tir_value *v,
                        const struct tir_inst *inst)
{
    struct sync_value x = tir_sync_value(r, a, v);
    if (x.kind == SYNC_INT)
        return x.number;
    if (x.kind == SYNC_EACH || x.varies)
        tir_sync_unchecked(r->p, inst, "its bounds differ from thread to thread");
    return x.kind == SYNC_EACH ? x.each[0] : x.counts ? x.count : INT64_MIN;
}

// A loop has run, in a round of another.
static void note_around(struct sync_run *r, struct sync_agent *a, const struct tir_inst *loop)
{
    uint32_t depth = a->depth - 1;
    const struct sync_frame *around;
    do {
        around = &a->frames[--depth];
    } while (around->owner && !tir_is_loop(around->owner) && around->owner->op != TIR_OP_TILES);
    struct sync_ran *ran = &a->ran[loop->id];
    if (ran->start == around->start && ran->last == around->round)
        return;
    uint32_t count = ran->start == around->start ? ran->count + 1 : 1;
    *ran = (struct sync_ran){around->start, around->round, count};
    r->p->rounds[loop->id].around = TIR_MAX(r->p->rounds[loop->id].around, count);
}

// A loop has ended.
static void note_rounds(struct sync_run *r, struct sync_agent *a, const struct tir_inst *loop,
                        uint32_t rounds)
{
    struct sync_rounds *seen = &r->p->rounds[loop->id];
    seen->most = TIR_MAX(seen->most, rounds);
    seen->seen |= UINT64_C(1) << TIR_MIN(rounds, 63);
    if (bitset_has(&r->p->inner_loops, loop->id))
        r->longest = TIR_MAX(r->longest, (int64_t)rounds);
    if (rounds)
        note_around(r, a, loop);
}

// The lanes for which a loop goes on; those that leave it keep the values that it carries. False:
// none goes on.
static bool narrow(struct sync_run *r, struct sync_agent *a, struct sync_frame *f,
                   const int64_t *goes_on, struct tir_value *const *carried)
{
    struct sync_lanes left = tir_sync_lanes_where(r, a, &f->lanes, goes_on, false);
    struct sync_lanes stay = tir_sync_lanes_where(r, a, &f->lanes, goes_on, true);
    for (uint32_t i = 0; i < f->owner->result_count && left.count; i++) {
        const struct tir_value *to = f->owner->results[i];
        struct sync_value x = tir_sync_value(r, a, carried[i]);
        set_slot(a, to, tir_sync_merged(r, a, &left, a->slots[to->id], x));
    }
    if (left.mask == f->lanes.mask && left.count)
        return false;
    f->lanes = stay;
    return r->outcome == SYNC_GOING;
}

// The next round of a loop whose bounds differ from thread to thread. False: none has any.
static bool next_of_each(struct sync_run *r, struct sync_agent *a, struct sync_frame *f)
{
    uint32_t count = a->warps * SYNC_LANES;
    int64_t *at = arena_array(r->arena, int64_t, count);
    int64_t *goes_on = arena_array(r->arena, int64_t, count);
    for (uint32_t i = 0; i < count; i++) {
        at[i] = f->begins[i] + f->round * f->step;
        goes_on[i] = at[i] < f->ends[i];
    }
    r->p->work += count;
    set_slot(a, f->block->args[0], tir_sync_each(a, at));
    return narrow(r, a, f, goes_on, f->block->args + 1);
}

static const int64_t *numbers_of(struct sync_run *r, const struct sync_agent *a,
                                 const struct sync_value *v)
{
    if (v->kind == SYNC_EACH)
        return v->each;
    int64_t *each = arena_array(r->arena, int64_t, a->warps * SYNC_LANES);
    for (uint32_t i = 0; i < a->warps * SYNC_LANES; i++)
        each[i] = v->number;
    return each;
}

// A loop whose bounds are numbers, but not the same in every thread. False: it is another one.
static bool start_for_each(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst)
{
    struct sync_value begin = tir_sync_value(r, a, inst->operands[TIR_FOR_BEGIN]);
    struct sync_value end = tir_sync_value(r, a, inst->operands[TIR_FOR_END]);
    struct sync_value step = tir_sync_value(r, a, inst->operands[TIR_FOR_STEP]);
    bool numbers = (begin.kind == SYNC_INT || begin.kind == SYNC_EACH) &&
                   (end.kind == SYNC_INT || end.kind == SYNC_EACH) && step.kind == SYNC_INT;
    if (!numbers || (begin.kind == SYNC_INT && end.kind == SYNC_INT))
        return false;
    const struct tir_block *body = inst->regions[0];
    carry(r, a, body->args + 1, inst->operands + TIR_FOR_INIT, inst->result_count);
    for (uint32_t i = 0; i < inst->result_count; i++)
        set_slot(a, inst->results[i], (struct sync_value){.kind = SYNC_UNSET});
    struct sync_frame *f = push(r, a, inst, body);
    f->begins = numbers_of(r, a, &begin);
    f->ends = numbers_of(r, a, &end);
    f->step = TIR_MAX(step.number, 1);
    if (!next_of_each(r, a, f)) {
        note_rounds(r, a, inst, 0);
        a->depth--;
    }
    return true;
}

static void start_for(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst)
{
    const struct tir_block *body = inst->regions[0];
    if (start_for_each(r, a, inst))
        return;
    int64_t at = bound_of(r, a, inst->operands[TIR_FOR_BEGIN], inst);
    int64_t end = bound_of(r, a, inst->operands[TIR_FOR_END], inst);
    int64_t step = TIR_MAX(bound_of(r, a, inst->operands[TIR_FOR_STEP], inst), 1);
    if (at == INT64_MIN || end == INT64_MIN) { // by data
        struct sync_value x = tir_sync_value(r, a, inst->operands[TIR_FOR_END]);
        at = 0;
        end = step * tir_sync_decide(r, &x, r->most + 1);
    }
    carry(r, a, body->args + 1, inst->operands + TIR_FOR_INIT, inst->result_count);
    if (at >= end) {
        note_rounds(r, a, inst, 0);
        carry(r, a, inst->results, body->args + 1, inst->result_count);
        return;
    }
    struct sync_frame *f = push(r, a, inst, body);
    f->at = at;
    f->end = end;
    f->step = step;
    set_slot(a, body->args[0], (struct sync_value){.kind = SYNC_INT, .number = at});
}

// Does a CTA that takes over tiles get one for this round? The response says so. None gets one
// for ever.
static bool has_next(struct sync_run *r, struct sync_agent *a, const struct tir_inst *tiles)
{
    const struct tir_block *body = tiles->regions[0];
    const uint32_t next = tir_carried_at(tiles) + (uint32_t)tir_attr_int(tiles, TIR_ATTR_next, 0);
    struct sync_value x = tir_sync_value(r, a, body->args[next]);
    return x.kind == SYNC_INT ? x.number >= 0 : x.counts && x.count >= 0;
}

// The tile of a round into the arguments of the block; the CTAs of a cluster share it. False: there
// is none.
static bool set_tile(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst,
                     uint32_t round)
{
    const struct tir_block *body = inst->regions[0];
    const struct tir_attr *by = tir_attr_find(inst, TIR_ATTR_by);
    const struct sync_setting *s = r->setting;
    int64_t counts[TIR_MAX_RANK], first = 0, total = 1, stride = 1;
    bool stays = tir_attr_int(inst, TIR_ATTR_persistent, 0);
    for (uint32_t d = by->list_count; d-- > 0;) {
        struct sync_value extent = tir_sync_value(r, a, inst->operands[d]);
        counts[d] = extent.kind == SYNC_INT ? tir_ceil_div(extent.number, by->list[d]) : s->waves;
        if (counts[d] <= 0)
            return false;
        first += s->tile[d] % counts[d] * total;
        total *= counts[d];
    }
    // What comes before the tile may matter to it. The last one goes on with the first.
    bool before = first > 0 && stays && !s->is_column;
    if (s->is_column && by->list_count > 1)
        stride = counts[by->list_count - 1];
    // Behind the end of a column comes the next one: who takes over tiles takes each once.
    const int64_t walked = round * stride;
    int64_t index = walked % total + walked / total + (s->last ? total - 1 : first - before);
    for (uint32_t d = by->list_count; d-- > 0;) {
        int64_t at = index % counts[d] * by->list[d];
        set_slot(a, body->args[d], (struct sync_value){.kind = SYNC_INT, .number = at});
        index /= counts[d];
    }
    if (tir_attr_find(inst, TIR_ATTR_next))
        return round < total && has_next(r, a, inst);
    return walked < total && round < (stays ? s->waves + before : 1);
}

static void start_tiles(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst)
{
    const struct tir_block *body = inst->regions[0];
    uint32_t dims = tir_attr_find(inst, TIR_ATTR_by)->list_count;
    carry(r, a, body->args + dims, inst->operands + dims, inst->result_count);
    if (set_tile(r, a, inst, 0))
        push(r, a, inst, body);
    else
        carry(r, a, inst->results, body->args + dims, inst->result_count);
}

static void start_while(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst)
{
    const struct tir_block *test = inst->regions[0];
    carry(r, a, test->args, inst->operands, inst->result_count);
    for (uint32_t i = 0; i < inst->result_count; i++)
        set_slot(a, inst->results[i], (struct sync_value){.kind = SYNC_UNSET});
    push(r, a, inst, test);
}

// The lanes that are still in it leave a while.
static void leave_while(struct sync_run *r, struct sync_agent *a, const struct sync_frame *f)
{
    const struct tir_block *test = f->owner->regions[0];
    for (uint32_t i = 0; i < f->owner->result_count; i++) {
        const struct tir_value *to = f->owner->results[i];
        struct sync_value x = tir_sync_value(r, a, test->args[i]);
        bool merges = a->slots[to->id].kind != SYNC_UNSET;
        set_slot(a, to, merges ? tir_sync_merged(r, a, &f->lanes, a->slots[to->id], x) : x);
    }
}

// The end of one of a while's two blocks.
static void end_while(struct sync_run *r, struct sync_agent *a, struct sync_frame *f)
{
    const struct tir_block *test = f->owner->regions[0], *body = f->owner->regions[1];
    const struct tir_inst *yield = tir_yield_of(f->block);
    uint32_t count = f->owner->result_count;
    if (f->block == body) {
        carry(r, a, test->args, yield->operands, count);
        f->block = test;
        f->next = tir_sync_visited(r->p, test->first);
        f->round++;
        tir_sync_watch(r, a, f);
        return;
    }
    struct sync_value go = tir_sync_value(r, a, yield->operands[0]);
    bool on = go.kind == SYNC_EACH ? narrow(r, a, f, go.each, test->args)
              : go.kind == SYNC_INT
                  ? go.number != 0
                  : f->round < (go.answered ? 8 : 1) * r->most && tir_sync_decide(r, &go, 2);
    if (!on && go.kind != SYNC_EACH)
        leave_while(r, a, f);
    if (!on) {
        note_rounds(r, a, f->owner, f->round);
        a->depth--;
        return;
    }
    note_data(r, f->owner, &go, &f->lanes);
    carry(r, a, body->args, test->args, count);
    f->block = body;
    f->next = tir_sync_visited(r->p, body->first);
}

// Whose block the agent runs now.
static void set_within(struct sync_run *r, struct sync_agent *a)
{
    const struct tir_block *block = a->depth ? tir_sync_top(a)->block : r->p->f->body;
    a->within = tir_crew_of_block(r->p->f, block);
    if (a->within.groups > 1)
        a->within.first += (a->first_warp - a->within.first) / a->within.warps * a->within.warps;
}

void tir_sync_end_block(struct sync_run *r, struct sync_agent *a)
{
    struct sync_frame *f = tir_sync_top(a);
    const struct tir_inst *owner = f->owner, *yield = tir_yield_of(f->block);
    uint32_t skip = 1;
    if (!owner || owner->op == TIR_OP_ROLE || owner->op == TIR_OP_SCOPE) {
        a->depth--;
        if (!owner || owner->op == TIR_OP_ROLE)
            a->role_id = 0;
        set_within(r, a);
        return;
    }
    if (owner->op == TIR_OP_IF) {
        end_branch(r, a, f);
        a->depth--;
        tir_sync_check_left(r, a);
        return;
    }
    if (owner->op == TIR_OP_WHILE) {
        end_while(r, a, f);
        return;
    }
    if (owner->op == TIR_OP_TILES)
        skip = tir_attr_find(owner, TIR_ATTR_by)->list_count;
    carry(r, a, f->block->args + skip, yield->operands, owner->result_count);
    f->round++;
    f->at += f->step;
    bool more = owner->op == TIR_OP_TILES ? set_tile(r, a, owner, f->round)
                : f->begins               ? next_of_each(r, a, f)
                                          : f->at < f->end;
    if (more) {
        if (owner->op == TIR_OP_FOR && !f->begins)
            set_slot(a, f->block->args[0], (struct sync_value){.kind = SYNC_INT, .number = f->at});
        f->next = tir_sync_visited(r->p, f->block->first);
        tir_sync_watch(r, a, f);
        return;
    }
    note_rounds(r, a, owner, f->round);
    if (!f->begins) // else each lane has what it left with
        carry(r, a, owner->results, f->block->args + skip, owner->result_count);
    a->depth--;
}

void tir_sync_enter(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_IF:
        branch(r, a, inst);
        break;
    case TIR_OP_FOR:
        start_for(r, a, inst);
        break;
    case TIR_OP_WHILE:
        start_while(r, a, inst);
        break;
    case TIR_OP_TILES:
        start_tiles(r, a, inst);
        break;
    case TIR_OP_ROLE:
        if (a->crew.role == inst) {
            a->role_id = a->crew.number + 1;
            if (tir_attr_find(inst, TIR_ATTR_regs))
                a->registers = inst;
            push(r, a, inst, inst->regions[0]);
            set_within(r, a);
        }
        break;
    case TIR_OP_SCOPE:
        push(r, a, inst, inst->regions[0]);
        set_within(r, a);
        break;
    default:
        break;
    }
}
