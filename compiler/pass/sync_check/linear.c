// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// See ask.h: values as sums of unknowns. Unknowns are also quotients and remainders, the round of a
// loop, and the numbers of a tile, a CTA and a thread.

#include "pass/sync_check/ask.h"

enum {
    MOST_DEPTH = 100, // of what a value is computed from
    MOST_ROUNDS = 64, // that are followed one by one
    FEW_ROUNDS = 8,   // that are picked from
    FACTORS = 12,     // that are picked from
};

// One of `count`; in time all of them. What contradicts itself needs no more picks.
static uint32_t pick(struct sync_ask *a, uint32_t count)
{
    if (tir_sync_is_empty(a->q))
        return 0;
    if (a->pick_at == SYNC_PICKS) {
        a->partial = true;
        return 0;
    }
    if (a->pick_at == a->pick_count) {
        a->pick[a->pick_count] = 0;
        a->picks[a->pick_count++] = (uint8_t)count;
    }
    return a->pick[a->pick_at++];
}

bool tir_sync_next_picks(struct sync_ask *a)
{
    while (a->pick_count && ++a->pick[a->pick_count - 1] == a->picks[a->pick_count - 1])
        a->pick_count--;
    return a->pick_count > 0;
}

static struct sync_linear plus(struct sync_ask *a, struct sync_linear x, struct sync_linear y,
                               int64_t times)
{
    return tir_sync_add(a->q, &x, &y, times);
}

static struct sync_linear constant(int64_t x)
{
    return tir_sync_constant(x);
}

static struct sync_linear unknown(struct sync_ask *a, int64_t low, int64_t high, int64_t wanted)
{
    return tir_sync_single(tir_sync_unknown(a->q, low, high, wanted));
}

// x >= y + more
void tir_sync_at_least(struct sync_ask *a, struct sync_linear x, struct sync_linear y, int64_t more)
{
    struct sync_linear form = plus(a, plus(a, x, y, -1), constant(more), -1);
    tir_sync_relate(a->q, &form, false);
}

void tir_sync_equal(struct sync_ask *a, struct sync_linear x, struct sync_linear y)
{
    struct sync_linear form = plus(a, x, y, -1);
    tir_sync_relate(a->q, &form, true);
}

static bool is_number(const struct sync_ask *a, const struct sync_linear *x)
{
    return tir_sync_is_constant(a->q, x);
}

static int64_t wanted_of(const struct sync_ask *a, const struct sync_linear *x)
{
    int64_t wanted[SYNC_UNKNOWNS];
    for (uint32_t i = 0; i < a->q->count; i++)
        wanted[i] = a->q->unknowns[i].wanted;
    return tir_sync_at(a->q, x, wanted);
}

// What x may be: as it is wanted, or one of a few. It is that from here on.
int64_t tir_sync_number(struct sync_ask *a, struct sync_linear x)
{
    static const int64_t few[FACTORS - 3] = {1, 2, 4, 3, 8, 64, 7, 5, 6};
    if (is_number(a, &x))
        return x.constant;
    int64_t low, high, number = wanted_of(a, &x);
    tir_sync_bounds(a->q, &x, &low, &high);
    uint32_t which = low < high ? pick(a, FACTORS) : 0;
    if (which < 3)
        number = which ? (which == 1 ? low : high) : TIR_MAX(low, TIR_MIN(number, high));
    else
        number = few[which - 3];
    if (low >= high)
        return low;
    a->partial = true;
    tir_sync_equal(a, x, constant(number));
    return number;
}

static bool may_be_negative(struct sync_ask *a, const struct sync_linear *x)
{
    int64_t low, high;
    tir_sync_bounds(a->q, x, &low, &high);
    if (low >= 0)
        return false;
    bool may = x->constant < 0;
    for (uint32_t i = 0; i < a->q->count; i++)
        may |= x->by[i] < 0 || (x->by[i] && a->q->unknowns[i].low < 0);
    for (uint32_t i = 0; i < a->q->relation_count && may; i++) { // max(x, 0) says that x >= 0
        const struct sync_linear *form = &a->q->relations[i].form;
        may = x->constant < form->constant || memcmp(x->by, form->by, sizeof x->by) != 0;
    }
    return may;
}

// What divides whatever x may be, as long as it is small.
static int64_t divisor_of(const struct sync_ask *a, const struct sync_linear *x)
{
    uint64_t by = (uint64_t)(x->constant < 0 ? -x->constant : x->constant);
    for (uint32_t i = 0; i < a->q->count; i++)
        by = tir_gcd(by, (uint64_t)(x->by[i] < 0 ? -x->by[i] : x->by[i]));
    return by < 1 << 20 ? TIR_MAX((int64_t)by, 1) : 1;
}

static struct sync_linear divided(struct sync_linear x, int64_t by)
{
    if (by == 1)
        return x;
    x.constant /= by;
    for (uint32_t i = 0; i < SYNC_UNKNOWNS; i++)
        x.by[i] /= by;
    return x;
}

// x = by * quotient + rest
static void divide(struct sync_ask *a, struct sync_linear x, int64_t by,
                   struct sync_linear *quotient, struct sync_linear *rest)
{
    if (by <= 0) {
        a->q->too_large = true;
        *quotient = *rest = constant(0);
        return;
    }
    if (is_number(a, &x)) {
        *quotient = constant(x.constant / by);
        *rest = constant(x.constant % by);
        return;
    }
    a->partial |= may_be_negative(a, &x);
    int64_t wanted = TIR_MAX(wanted_of(a, &x), 0);
    *rest = unknown(a, 0, by - 1, wanted % by);
    *quotient = unknown(a, 0, SYNC_INFINITY, wanted / by);
    tir_sync_equal(a, x, plus(a, *rest, *quotient, by));
}

static struct sync_linear quotient_of(struct sync_ask *a, struct sync_linear x, int64_t by)
{
    struct sync_linear quotient, rest;
    divide(a, x, by, &quotient, &rest);
    return quotient;
}

static struct sync_linear rest_of(struct sync_ask *a, struct sync_linear x, int64_t by)
{
    struct sync_linear quotient, rest;
    divide(a, x, by, &quotient, &rest);
    return rest;
}

// The same of shifts and masks, which round down: the rest is not negative, whatever x is.
static struct sync_linear shifted(struct sync_ask *a, struct sync_linear x, int64_t by,
                                  bool is_rest)
{
    int64_t wanted = wanted_of(a, &x);
    if (!may_be_negative(a, &x))
        return is_rest ? rest_of(a, x, by) : quotient_of(a, x, by);
    struct sync_linear rest = unknown(a, 0, by - 1, wanted & (by - 1));
    struct sync_linear quotient = unknown(a, -SYNC_INFINITY, SYNC_INFINITY, wanted / by);
    tir_sync_equal(a, x, plus(a, rest, quotient, by));
    return is_rest ? rest : quotient;
}

// What divides both factors divides the product as well. Constants in the factors are multiplied
// out: (x + 4) * y and (x + 7) * y are of one product.
static struct sync_linear product_of(struct sync_ask *a, struct sync_linear x, struct sync_linear y)
{
    if (is_number(a, &x))
        return plus(a, constant(0), y, x.constant);
    if (is_number(a, &y))
        return plus(a, constant(0), x, y.constant);
    int64_t of_x = divisor_of(a, &x), of_y = divisor_of(a, &y);
    x = divided(x, of_x);
    y = divided(y, of_y);
    int64_t by_y = x.constant, by_x = y.constant;
    struct sync_linear rest = plus(a, constant(0), x, by_x);
    x.constant = y.constant = 0;
    rest = plus(a, rest, y, by_y);
    return plus(a, constant(0), plus(a, rest, tir_sync_product(a->q, &x, &y), 1), of_x * of_y);
}

// x = by * quotient + rest, by something unknown.
static void divide_by(struct sync_ask *a, struct sync_linear x, struct sync_linear by,
                      struct sync_linear *quotient, struct sync_linear *rest)
{
    if (is_number(a, &by)) {
        divide(a, x, by.constant, quotient, rest);
        return;
    }
    int64_t low, high;
    tir_sync_bounds(a->q, &by, &low, &high);
    if (low == 0 && pick(a, 2)) {
        tir_sync_equal(a, by, constant(0));
        *quotient = *rest = constant(0);
        return;
    }
    a->partial |= low < 0 || may_be_negative(a, &x);
    tir_sync_at_least(a, by, constant(1), 0);
    *quotient = unknown(a, 0, SYNC_INFINITY, 1);
    *rest = plus(a, x, product_of(a, by, *quotient), -1);
    tir_sync_at_least(a, *rest, constant(0), 0);
    tir_sync_at_least(a, by, *rest, 1);
}

static bool is_integer(const struct tir_value *v)
{
    return tir_type_is_scalar(v->type) && !tir_elem_is_float(v->type->elem);
}

// Whatever its type can hold: what comes from data.
static struct sync_linear anything(struct sync_ask *a, const struct tir_value *v)
{
    const struct tir_elem_info *elem = &tir_elems[v->type->elem];
    if (v->type->elem == TIR_BOOL)
        return unknown(a, 0, 1, 0);
    if (!tir_elem_is_int(v->type->elem) || elem->bits > 32)
        return unknown(a, -SYNC_INFINITY, SYNC_INFINITY, 0);
    bool is_signed = elem->kind == TIR_KIND_SIGNED;
    int64_t high = (INT64_C(1) << (elem->bits - is_signed)) - 1;
    return unknown(a, is_signed ? -high - 1 : 0, high, 0);
}

// The grid.

static struct sync_linear along(struct sync_ask *a, uint32_t *which, int64_t low, int64_t high,
                                int64_t wanted)
{
    if (!*which)
        *which = 1 + tir_sync_unknown(a->q, low, high, wanted);
    return tir_sync_single(*which - 1);
}

struct sync_linear tir_sync_ctas(struct sync_ask *a, uint32_t axis)
{
    const struct tir_func *f = a->p->f;
    bool stated = f->grid_count > axis, made = a->ctas[axis];
    struct sync_linear ctas = along(a, &a->ctas[axis], 1, SYNC_INFINITY, a->wanted->ctas[axis]);
    if (stated && !made)
        tir_sync_equal(a, ctas, tir_sync_linear(a, tir_yield_of(f->host)->operands[axis]));
    else if (f->grid_count && !made)
        tir_sync_equal(a, ctas, constant(1));
    return ctas;
}

struct sync_linear tir_sync_cta(struct sync_ask *a, uint32_t axis)
{
    bool made = a->cta[axis];
    struct sync_linear cta = along(a, &a->cta[axis], 0, SYNC_INFINITY, a->wanted->cta[axis]);
    if (!made)
        tir_sync_at_least(a, tir_sync_ctas(a, axis), cta, 1);
    return cta;
}

// Of a special register.
static struct sync_linear place_of(struct sync_ask *a, const struct tir_inst *inst)
{
    uint32_t axis = (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0) % 3;
    int64_t share = TIR_MAX(a->p->f->cluster[axis], 1);
    switch (inst->op) {
    case TIR_OP_CTA_ID:
        return tir_sync_cta(a, axis);
    case TIR_OP_NUM_CTAS:
        return tir_sync_ctas(a, axis);
    case TIR_OP_CLUSTER_ID:
        return quotient_of(a, tir_sync_cta(a, axis), share);
    case TIR_OP_NUM_CLUSTERS:
        return quotient_of(a, tir_sync_ctas(a, axis), share);
    case TIR_OP_CTA_IN_CLUSTER:
        return rest_of(a, tir_sync_cta(a, axis), share);
    case TIR_OP_CTA_RANK:
        return unknown(a, 0, a->p->ctas - 1, 0);
    default:
        break;
    }
    if (!a->thread)
        a->thread = 1 + tir_sync_unknown(a->q, 0, a->p->threads - 1, 0);
    struct sync_linear thread = tir_sync_single(a->thread - 1);
    switch (inst->op) {
    case TIR_OP_LANEID:
        return rest_of(a, thread, SYNC_LANES);
    case TIR_OP_WARPID:
        return quotient_of(a, thread, SYNC_LANES);
    case TIR_OP_WGID:
        return quotient_of(a, thread, 4 * SYNC_LANES);
    case TIR_OP_TID_IN_WG:
        return rest_of(a, thread, 4 * SYNC_LANES);
    default:
        return thread;
    }
}

// Loops.

static uint32_t lead_of(const struct tir_inst *loop) // operands before those that are carried
{
    return loop->op == TIR_OP_FOR     ? TIR_FOR_INIT
           : loop->op == TIR_OP_TILES ? tir_attr_find(loop, TIR_ATTR_by)->list_count
                                      : 0;
}

static uint32_t skip_of(const struct tir_inst *loop) // arguments before those that are carried
{
    return loop->op == TIR_OP_FOR ? 1 : lead_of(loop);
}

// There are more tiles than so many, along the first dimension that can have them.
static void have_tiles(struct sync_ask *a, const struct tir_inst *tiles, struct sync_linear more)
{
    const struct tir_attr *by = tir_attr_find(tiles, TIR_ATTR_by);
    a->partial = true;
    for (uint32_t d = 0; d < by->list_count; d++) {
        struct sync_linear extent = tir_sync_linear(a, tiles->operands[d]);
        bool stated = is_number(a, &extent);
        if (!stated)
            tir_sync_at_least(a, extent, plus(a, constant(0), more, by->list[d]), 1);
        more = stated ? more : constant(0);
    }
}

// The counter of a for in a round.
static struct sync_linear counter_of(struct sync_ask *a, const struct tir_inst *loop,
                                     struct sync_linear round)
{
    struct sync_linear step = tir_sync_linear(a, loop->operands[TIR_FOR_STEP]);
    return plus(a, tir_sync_linear(a, loop->operands[TIR_FOR_BEGIN]), product_of(a, round, step),
                1);
}

// The round that a loop is in.
static struct sync_linear round_of(struct sync_ask *a, const struct tir_inst *loop)
{
    struct sync_following *r = &a->rounds[loop->id];
    if (!r->counted) {
        r->counted = true;
        r->unknown = tir_sync_unknown(a->q, 0, SYNC_INFINITY, 0);
        if (r->followed)
            tir_sync_equal(a, tir_sync_single(r->unknown), constant(r->at));
        struct sync_linear round = tir_sync_single(r->unknown);
        if (loop->op == TIR_OP_TILES)
            have_tiles(a, loop, plus(a, round, constant(1), 1));
        if (loop->op == TIR_OP_FOR)
            tir_sync_at_least(a, tir_sync_linear(a, loop->operands[TIR_FOR_END]),
                              counter_of(a, loop, round), 1);
    }
    return tir_sync_single(r->unknown);
}

// By how much carried value i changes with each round. False: not by the same.
static bool step_of(struct sync_ask *a, const struct tir_inst *loop, uint32_t i,
                    struct sync_linear *step)
{
    const struct tir_block *body = loop->regions[loop->op == TIR_OP_WHILE];
    const struct tir_value *arg = body->args[skip_of(loop) + i],
                           *next = tir_yield_of(body)->operands[i], *by;
    *step = constant(0);
    if (next == arg)
        return true;
    if (!next->def || (next->def->op != TIR_OP_ADD && next->def->op != TIR_OP_SUB))
        return false;
    bool second = next->def->op == TIR_OP_ADD && next->def->operands[1] == arg;
    by = next->def->operands[!second];
    if (next->def->operands[second] != arg ||
        (by->kind != TIR_VALUE_CONST && tir_is_made_in(loop, by)))
        return false;
    *step = plus(a, constant(0), tir_sync_linear(a, by), next->def->op == TIR_OP_SUB ? -1 : 1);
    return true;
}

static void set_carried(struct sync_ask *a, const struct tir_inst *loop, uint32_t i,
                        const struct sync_linear *form)
{
    for (uint32_t k = 0; k < loop->region_count; k++)
        a->carried[loop->regions[k]->args[skip_of(loop) + i]->id] = form;
}

static const struct sync_linear *kept(struct sync_ask *a, struct sync_linear form)
{
    return tir_arena_copy(a->arena, &form, sizeof form);
}

// Makes the carried values of `which` those at the head of a round, as far as the loop comes to it.
// Values computed from them are no longer known.
void tir_sync_follow(struct sync_ask *a, const struct tir_inst *loop, int64_t to,
                     const struct bitset *which)
{
    const struct tir_block *body = loop->regions[loop->op == TIR_OP_WHILE];
    const struct tir_inst *around = a->following;
    uint32_t skip = skip_of(loop), count = loop->result_count;
    const struct sync_linear **next = arena_array(a->arena, const struct sync_linear *, count + 1);
    bool steps = true;
    a->following = loop;
    for (uint32_t i = 0; i < count; i++) {
        struct sync_linear step;
        const struct tir_value *arg = body->args[skip + i];
        if (!is_integer(arg) || (which && !bitset_has(which, arg->id)))
            continue;
        next[i] = kept(a, tir_sync_linear(a, loop->operands[lead_of(loop) + i]));
        steps = steps && step_of(a, loop, i, &step);
    }
    for (int64_t round = 0; round <= to && !a->q->too_large; round++) {
        a->time++;
        for (uint32_t i = 0; i < count; i++)
            if (next[i])
                set_carried(a, loop, i, next[i]);
        for (uint32_t i = 0; i < count && round < to; i++) {
            struct sync_linear step;
            if (!next[i])
                continue;
            if (steps && step_of(a, loop, i, &step)) // at once
                next[i] = kept(a, plus(a, *next[i], step, to));
            else
                next[i] = kept(a, tir_sync_linear(a, tir_yield_of(body)->operands[i]));
        }
        if (steps && round < to)
            round = to - 1;
        a->q->too_large |= round > MOST_ROUNDS && !steps;
    }
    a->following = around;
}

// Carried value i after so many rounds: between what the least and the greatest steps give, if
// steps are known.
static struct sync_linear after_rounds(struct sync_ask *a, const struct tir_inst *loop, uint32_t i,
                                       struct sync_linear rounds)
{
    struct sync_step step;
    struct sync_linear at = anything(a, loop->results[i]);
    if (loop->op == TIR_OP_TILES || !tir_sync_step(a->p, loop, i, &step))
        return at;
    struct sync_linear begin = tir_sync_linear(a, loop->operands[lead_of(loop) + i]);
    if (step.has_low)
        tir_sync_at_least(a, at, plus(a, begin, rounds, step.low), 0);
    if (step.has_high)
        tir_sync_at_least(a, plus(a, begin, rounds, step.high), at, 0);
    return at;
}

// How many rounds a loop has run when it has ended.
static struct sync_linear rounds_of(struct sync_ask *a, const struct tir_inst *loop)
{
    struct sync_following *r = &a->rounds[loop->id];
    if (r->ended)
        return tir_sync_single(r->all);
    r->ended = true;
    r->all = tir_sync_unknown(a->q, 0, SYNC_INFINITY, 0);
    int64_t step, low, high;
    struct sync_linear rounds = tir_sync_single(r->all);
    if (loop->op != TIR_OP_FOR || !tir_is_const_int(loop->operands[TIR_FOR_STEP], &step) ||
        step < 1)
        return rounds;
    struct sync_linear end = tir_sync_linear(a, loop->operands[TIR_FOR_END]);
    struct sync_linear way = plus(a, end, tir_sync_linear(a, loop->operands[TIR_FOR_BEGIN]), -1);
    tir_sync_bounds(a->q, &way, &low, &high);
    tir_sync_at_least(a, plus(a, constant(0), rounds, step), way, 0);
    if (low >= 0)
        tir_sync_at_least(a, plus(a, way, constant(step), 1), plus(a, constant(0), rounds, step),
                          1);
    return rounds;
}

static struct sync_linear carried_of(struct sync_ask *a, const struct tir_value *v)
{
    const struct tir_inst *loop = v->block->owner;
    uint32_t i = v->index - skip_of(loop);
    struct sync_following *r = &a->rounds[loop->id];
    struct sync_linear step;
    if (a->carried[v->id])
        return *a->carried[v->id];
    if (step_of(a, loop, i, &step)) {
        struct sync_linear begin = tir_sync_linear(a, loop->operands[lead_of(loop) + i]);
        bool stays = is_number(a, &step) && !step.constant;
        return stays ? begin : plus(a, begin, product_of(a, round_of(a, loop), step), 1);
    }
    if (a->loose && v->block != loop->regions[0]) // what the condition was of
        return tir_sync_linear(a, loop->regions[0]->args[v->index]);
    a->follows = true;
    if (a->loose) {
        int64_t low, high;
        struct sync_linear round = round_of(a, loop);
        tir_sync_bounds(a->q, &round, &low, &high);
        return high ? after_rounds(a, loop, i, round)
                    : tir_sync_linear(a, loop->operands[lead_of(loop) + i]);
    }
    if (r->followed || loop->op == TIR_OP_TILES) // within itself
        return anything(a, v);
    r->followed = a->partial = true;
    r->at = pick(a, FEW_ROUNDS);
    if (r->counted)
        tir_sync_equal(a, tir_sync_single(r->unknown), constant(r->at));
    tir_sync_follow(a, loop, r->at, NULL);
    return a->carried[v->id] ? *a->carried[v->id] : anything(a, v);
}

static bool same_tiles(const struct tir_inst *x, const struct tir_inst *y)
{
    const struct tir_attr *a = tir_attr_find(x, TIR_ATTR_by), *b = tir_attr_find(y, TIR_ATTR_by);
    return a->list_count == b->list_count &&
           !memcmp(a->list, b->list, a->list_count * sizeof *a->list);
}

// A coordinate of a tile. The tiles loops of roles go over the same ones.
static struct sync_linear coordinate_of(struct sync_ask *a, const struct tir_value *v)
{
    const struct tir_inst *tiles = v->block->owner;
    int64_t by = tir_attr_find(tiles, TIR_ATTR_by)->list[v->index];
    bool made = a->tile[v->index];
    if (!a->tiles)
        a->tiles = tiles;
    if (!same_tiles(a->tiles, tiles)) {
        a->partial = true;
        return constant(0);
    }
    int64_t extent = SYNC_INFINITY;
    tir_is_const_int(tiles->operands[v->index], &extent);
    struct sync_linear index = along(a, &a->tile[v->index], 0, tir_ceil_div(extent, by) - 1, 0);
    struct sync_linear at = plus(a, constant(0), index, by);
    if (!made)
        tir_sync_at_least(a, tir_sync_linear(a, tiles->operands[v->index]), at, 1);
    return at;
}

static struct sync_linear argument_of(struct sync_ask *a, const struct tir_value *v)
{
    const struct tir_inst *owner = v->block->owner;
    if (!owner)
        return a->arg[v->index] ? tir_sync_single(a->arg[v->index] - 1) : anything(a, v);
    if (owner->op == TIR_OP_TILES && v->index < skip_of(owner))
        return coordinate_of(a, v);
    if (owner->op != TIR_OP_FOR && owner->op != TIR_OP_TILES && owner->op != TIR_OP_WHILE)
        return anything(a, v);
    if (owner->op != TIR_OP_FOR || v->index)
        return carried_of(a, v);
    return counter_of(a, owner, round_of(a, owner));
}

// Operations.

// Is cond true, 1, or false, 0? Negative: that depends.
static int truth_of(struct sync_ask *a, const struct tir_value *cond)
{
    if (cond->kind == TIR_VALUE_CONST)
        return cond->constant.i != 0;
    const struct tir_inst *inst = cond->def;
    if (inst && inst->op == TIR_OP_AND) {
        int x = truth_of(a, inst->operands[0]), y = truth_of(a, inst->operands[1]);
        return x == 0 || y == 0 ? 0 : TIR_MIN(x, y);
    }
    if (!inst || !tir_sync_is_comparison(inst) || inst->operands[0]->type->elem == TIR_BOOL)
        return -1;
    struct sync_linear x = tir_sync_linear(a, inst->operands[0]),
                       y = tir_sync_linear(a, inst->operands[1]), apart = plus(a, x, y, -1);
    int64_t low, high; // the comparison is one of apart and 0
    tir_sync_bounds(a->q, &apart, &low, &high);
    union tir_number at_low[2] = {{.i = low}}, at_high[2] = {{.i = high}}, first, second;
    bool is_equality = inst->op == TIR_OP_EQ || inst->op == TIR_OP_NE;
    if ((low < high && (is_equality || low <= -SYNC_INFINITY || high >= SYNC_INFINITY)) ||
        !tir_number_apply(inst->op, TIR_I64, at_low, &first) ||
        !tir_number_apply(inst->op, TIR_I64, at_high, &second))
        return -1;
    return first.i == second.i ? first.i != 0 : -1;
}

// Makes cond true or false, and says which.
static bool either(struct sync_ask *a, const struct tir_value *cond)
{
    int truth = truth_of(a, cond);
    if (truth >= 0)
        return truth;
    bool yes = !pick(a, 2);
    tir_sync_demand(a, cond, yes);
    return yes;
}

// The smaller or the larger one of two.
static struct sync_linear extreme_of(struct sync_ask *a, struct sync_linear x, struct sync_linear y,
                                     bool larger)
{
    struct sync_linear apart = plus(a, x, y, -1);
    int64_t low, high;
    tir_sync_bounds(a->q, &apart, &low, &high);
    if (low >= 0 || high <= 0)
        return (low >= 0) == larger ? x : y;
    if (pick(a, 2)) {
        struct sync_linear other = x;
        x = y;
        y = other;
    }
    tir_sync_at_least(a, larger ? x : y, larger ? y : x, 0);
    return x;
}

static struct sync_linear other_of(struct sync_ask *a, const struct tir_inst *inst)
{
    union tir_number in[3], out;
    if (!tir_has_trait(inst, TIR_PURE) || !inst->operand_count || inst->operand_count > 3)
        return anything(a, inst->results[0]);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (!is_integer(inst->operands[i]))
            return anything(a, inst->results[0]);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        in[i].i = tir_sync_number(a, tir_sync_linear(a, inst->operands[i]));
    if (!tir_number_apply(inst->op, inst->operands[inst->operand_count - 1]->type->elem, in, &out))
        return anything(a, inst->results[0]);
    return constant(out.i);
}

// Does a cast to 8 or 16 bits keep less of x than it may be?
static bool may_wrap(struct sync_ask *a, const struct tir_value *to, const struct sync_linear *x)
{
    const struct tir_elem_info *elem = &tir_elems[to->type->elem];
    const bool is_signed = elem->kind == TIR_KIND_SIGNED;
    const int64_t most = (INT64_C(1) << (elem->bits - is_signed)) - 1;
    int64_t low, high;
    tir_sync_bounds(a->q, x, &low, &high);
    return elem->bits < 32 && (low < (is_signed ? -most - 1 : 0) || high > most);
}

static struct sync_linear computed_of(struct sync_ask *a, const struct tir_inst *inst)
{
    const struct tir_value *second = inst->operand_count > 1 ? inst->operands[1] : NULL;
    struct sync_linear x = tir_sync_linear(a, inst->operands[0]);
    int64_t c = second && second->kind == TIR_VALUE_CONST ? second->constant.i : -1;
    switch (inst->op) {
    case TIR_OP_ADD:
        return plus(a, x, tir_sync_linear(a, second), 1);
    case TIR_OP_SUB:
        return plus(a, x, tir_sync_linear(a, second), -1);
    case TIR_OP_NEG:
        return plus(a, constant(0), x, -1);
    case TIR_OP_CAST:
        a->partial |= may_wrap(a, inst->results[0], &x);
        return x;
    case TIR_OP_BITCAST:
        return x;
    case TIR_OP_MUL:
        return product_of(a, x, tir_sync_linear(a, second));
    case TIR_OP_MIN:
    case TIR_OP_MAX:
        return extreme_of(a, x, tir_sync_linear(a, second), inst->op == TIR_OP_MAX);
    case TIR_OP_CEILDIV:
    case TIR_OP_DIV:
    case TIR_OP_REM: {
        struct sync_linear by = tir_sync_linear(a, second), quotient, rest;
        if (inst->op == TIR_OP_CEILDIV)
            x = plus(a, plus(a, x, by, 1), constant(1), -1);
        divide_by(a, x, by, &quotient, &rest);
        return inst->op == TIR_OP_REM ? rest : quotient;
    }
    case TIR_OP_SHL:
        if (c >= 0 && c < 20)
            return plus(a, constant(0), x, INT64_C(1) << c);
        break;
    case TIR_OP_SHR:
        if (c >= 0 && c < 20)
            return shifted(a, x, INT64_C(1) << c, false);
        break;
    case TIR_OP_AND:
        if (c > 0 && c < 1 << 20 && !(c & (c + 1)))
            return shifted(a, x, c + 1, true);
        break;
    default:
        break;
    }
    return other_of(a, inst);
}

static struct sync_linear result_of(struct sync_ask *a, const struct tir_value *v)
{
    const struct tir_inst *inst = v->def;
    switch (inst->op) {
    case TIR_OP_FOR:
    case TIR_OP_WHILE:
        return after_rounds(a, inst, v->index, rounds_of(a, inst));
    case TIR_OP_IF:
        return tir_sync_linear(
            a, tir_yield_of(inst->regions[!either(a, inst->operands[0])])->operands[v->index]);
    case TIR_OP_WHERE:
        return tir_sync_linear(a, inst->operands[either(a, inst->operands[0]) ? 1 : 2]);
    case TIR_OP_NUM_THREADS:
        return constant(a->p->threads);
    case TIR_OP_ALIGNMENT:
        return constant(16);
    case TIR_OP_CTA_ID:
    case TIR_OP_NUM_CTAS:
    case TIR_OP_CLUSTER_ID:
    case TIR_OP_NUM_CLUSTERS:
    case TIR_OP_CTA_IN_CLUSTER:
    case TIR_OP_CTA_RANK:
    case TIR_OP_TID:
    case TIR_OP_LANEID:
    case TIR_OP_WARPID:
    case TIR_OP_WGID:
    case TIR_OP_TID_IN_WG:
        return place_of(a, inst);
    default:
        break;
    }
    if (tir_sync_is_count(a->p, inst)) {
        struct sync_linear form = anything(a, v);
        tir_sync_note_load(a, inst, form);
        return form;
    }
    bool computes = tir_has_trait(inst, TIR_PURE) && inst->operand_count && !inst->region_count &&
                    is_integer(inst->operands[0]);
    return computes ? computed_of(a, inst) : anything(a, v);
}

static bool decides(const struct tir_inst *inst) // what a condition is made of
{
    bool logic = inst->op == TIR_OP_AND || inst->op == TIR_OP_OR || inst->op == TIR_OP_NOT ||
                 inst->op == TIR_OP_IF || inst->op == TIR_OP_WHERE;
    return logic || tir_sync_is_comparison(inst);
}

struct sync_linear tir_sync_linear(struct sync_ask *a, const struct tir_value *v)
{
    if (v->kind == TIR_VALUE_CONST)
        return is_integer(v) ? constant(v->constant.i) : anything(a, v);
    struct sync_known *known = &a->known[v->id];
    bool now = known->time == a->time || !a->following || !tir_is_made_in(a->following, v);
    if (known->form && now)
        return *known->form;
    struct sync_linear form;
    if (a->q->too_large || !is_integer(v) || ++a->depth > MOST_DEPTH) {
        a->q->too_large |= a->depth > MOST_DEPTH;
        return anything(a, v);
    }
    if (v->kind == TIR_VALUE_ARG)
        form = argument_of(a, v);
    else if (v->type->elem == TIR_BOOL && decides(v->def))
        form = constant(either(a, v));
    else
        form = result_of(a, v);
    a->depth--;
    *known = (struct sync_known){kept(a, form), a->time};
    return form;
}

static void compare(struct sync_ask *a, enum tir_op op, struct sync_linear x, struct sync_linear y)
{
    if (op == TIR_OP_NE)
        op = pick(a, 2) ? TIR_OP_LT : TIR_OP_GT;
    bool less = op == TIR_OP_LT || op == TIR_OP_LE;
    if (op == TIR_OP_EQ)
        tir_sync_equal(a, x, y);
    else
        tir_sync_at_least(a, less ? y : x, less ? x : y, op == TIR_OP_LT || op == TIR_OP_GT);
}

static enum tir_op opposite(enum tir_op op)
{
    static const enum tir_op pairs[][2] = {
        {TIR_OP_EQ, TIR_OP_NE}, {TIR_OP_LT, TIR_OP_GE}, {TIR_OP_LE, TIR_OP_GT}};
    for (uint32_t i = 0; i < TIR_COUNT_OF(pairs); i++)
        for (uint32_t k = 0; k < 2; k++)
            if (pairs[i][k] == op)
                return pairs[i][!k];
    return op;
}

void tir_sync_demand(struct sync_ask *a, const struct tir_value *cond, bool wanted)
{
    const struct tir_inst *inst = cond->def;
    if (cond->kind != TIR_VALUE_RESULT || !decides(inst)) {
        tir_sync_equal(a, tir_sync_linear(a, cond), constant(wanted));
        return;
    }
    switch (inst->op) {
    case TIR_OP_NOT:
        tir_sync_demand(a, inst->operands[0], !wanted);
        return;
    case TIR_OP_AND:
    case TIR_OP_OR:
        if ((inst->op == TIR_OP_AND) == wanted) {
            tir_sync_demand(a, inst->operands[0], wanted);
            tir_sync_demand(a, inst->operands[1], wanted);
        } else {
            tir_sync_demand(a, inst->operands[pick(a, 2)], wanted);
        }
        return;
    case TIR_OP_IF:
        tir_sync_demand(
            a, tir_yield_of(inst->regions[!either(a, inst->operands[0])])->operands[cond->index],
            wanted);
        return;
    case TIR_OP_WHERE:
        tir_sync_demand(a, inst->operands[either(a, inst->operands[0]) ? 1 : 2], wanted);
        return;
    default:
        compare(a, wanted ? inst->op : opposite(inst->op), tir_sync_linear(a, inst->operands[0]),
                tir_sync_linear(a, inst->operands[1]));
        return;
    }
}
