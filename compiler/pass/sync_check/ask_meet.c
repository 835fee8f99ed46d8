// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on settings in which two accesses meet: two threads name one element, or the parts of
// a buffer that two name have one in common.

#include "pass/sync_check/linear.h"

// How many elements a buffer has along dimension d.
static struct sync_linear extent_of(struct sync_ask *a, const struct tir_value *buffer, uint32_t d)
{
    const struct tir_func *f = a->p->f;
    const struct tir_param *param = tir_param_of(f, buffer);
    if (!param)
        return constant(buffer->type->shape[d]);
    return param->dims[d].dim < 0 ? constant(param->dims[d].constant)
                                  : tir_sync_linear(a, f->dims[param->dims[d].dim].value);
}

// Where thread by thread an element of a buffer is, in the buffer.
static void demand_element(struct sync_ask *a, const struct tir_inst *inst, struct sync_linear *at)
{
    const struct tir_value *base = tir_ref_base(inst);
    for (uint32_t d = 0; d < base->type->rank; d++) {
        const struct sync_linear extent = extent_of(a, base, d);
        at[d] = tir_sync_linear(a, tir_ref_indices(inst)[d]);
        tir_sync_at_least(a, at[d], constant(0), 0);
        tir_sync_at_least(a, extent, at[d], 1);
    }
}

// What two indices of inst divide by one number and take the rest of, as in Y[i / n, i % n]; NULL:
// there is none.
static const struct tir_value *divided_by(const struct tir_inst *inst, const struct tir_value **n)
{
    struct tir_value *const *indices = tir_ref_indices(inst);
    const uint32_t rank = tir_ref_base(inst)->type->rank;
    for (uint32_t i = 0; i < rank * rank; i++) {
        const struct tir_inst *x = indices[i / rank]->def, *y = indices[i % rank]->def;
        if (x && y && x->op == TIR_OP_DIV && y->op == TIR_OP_REM &&
            x->operands[0] == y->operands[0] && x->operands[1] == y->operands[1]) {
            *n = x->operands[1];
            return x->operands[0];
        }
    }
    return NULL;
}

// A thread of its own comes to inst. Gives the thread.
static struct sync_linear demand_access(struct sync_ask *a, const struct tir_inst *inst,
                                        struct sync_linear *at)
{
    tir_sync_take_thread(a);
    const struct sync_linear thread =
        tir_sync_along(a, &a->thread, 0, (int64_t)a->p->threads - 1, 0);
    demand_element(a, inst, at);
    tir_sync_demand_block(a, inst->block, false);
    return thread;
}

static void demand_single(struct sync_ask *a, const struct sync_goal *goal)
{
    struct sync_linear x[TIR_MAX_RANK], y[TIR_MAX_RANK], warps[2], whole = {0};
    const struct tir_value *n = NULL, *of_n = NULL, *of_x = divided_by(goal->spots[0]->by, &n),
                           *of_y = divided_by(goal->spots[1]->by, &of_n);
    const struct sync_linear first = demand_access(a, goal->spots[0]->by, x);
    if (of_x)
        whole = tir_sync_linear(a, of_x);
    if (goal->again)
        tir_sync_go_on(a, goal->again);
    const struct sync_linear second = demand_access(a, goal->spots[1]->by, y);
    if (of_x && of_y && n == of_n) // equal quotients and rests are of equal numbers
        tir_sync_equal(a, whole, tir_sync_linear(a, of_y));
    for (uint32_t d = 0; d < tir_ref_base(goal->spots[0]->by)->type->rank; d++)
        tir_sync_equal(a, x[d], y[d]);
    warps[0] = tir_sync_quotient_of(a, first, SYNC_LANES);
    warps[1] = tir_sync_quotient_of(a, second, SYNC_LANES);
    const bool down = goal->number % 2;
    if (goal->number < SYNC_MEET_UP_IN_A_WARP)
        tir_sync_at_least(a, warps[!down], warps[down], 1);
    else
        tir_sync_equal(a, warps[0], warps[1]);
    // How far apart they are shows most ways apart that divide by something.
    const struct sync_linear low = down ? second : first, high = down ? first : second;
    const int64_t most = goal->number < SYNC_MEET_UP_IN_A_WARP ? a->p->threads : SYNC_LANES;
    tir_sync_at_least(a, high, low, 1);
    tir_sync_at_least(a, plus(a, low, constant(most), 1), high, 1);
}

// Where along dimension d the part begins.
static struct sync_linear begin_of(struct sync_ask *a, const struct sync_part *part, uint32_t d)
{
    struct sync_linear sum = constant(0);
    for (uint32_t i = 0; i < part->count[d]; i++)
        sum = plus(a, sum, tir_sync_linear(a, part->at[d][i]), 1);
    return sum;
}

// Some thread comes to the access. Gives where its part begins, as far as it is known.
static struct sync_part demand_part(struct sync_ask *a, const struct sync_spot *spot,
                                    struct sync_linear *begin)
{
    const struct sync_part part = *spot->part;
    tir_sync_take_thread(a);
    tir_sync_along(a, &a->thread, 0, (int64_t)a->p->threads - 1, 0);
    for (uint32_t d = 0; d < part.root->type->rank && !part.vague; d++)
        begin[d] = begin_of(a, &part, d);
    tir_sync_demand_block(a, spot->by->block, false);
    return part;
}

// The element that both have, along a dimension: x, or one of `size` from x on.
static void demand_in(struct sync_ask *a, struct sync_linear element, struct sync_linear x,
                      int64_t size)
{
    if (size < 0)
        return;
    tir_sync_at_least(a, element, x, 0);
    tir_sync_at_least(a, plus(a, x, constant(size), 1), element, 1);
}

static void demand_common(struct sync_ask *a, const struct tir_value *root, uint32_t d,
                          struct sync_linear x, int64_t size_x, struct sync_linear y,
                          int64_t size_y)
{
    struct sync_linear element;
    if (size_x == 1)
        element = x;
    else if (size_y == 1)
        element = y;
    else
        element = unknown(a, 0, SYNC_INFINITY, 0);
    tir_sync_at_least(a, element, constant(0), 0);
    tir_sync_at_least(a, extent_of(a, root, d), element, 1);
    if (size_x == 1 && size_y == 1) {
        tir_sync_equal(a, x, y);
        return;
    }
    if (size_x != 1)
        demand_in(a, element, x, size_x);
    if (size_x == 1 || size_y != 1)
        demand_in(a, element, y, size_y);
}

// From here on another CTA comes to something, of a cluster further on along an axis: of the values
// so far arguments alone are what they were.
static void take_other_cta(struct sync_ask *a, uint32_t axis)
{
    const struct tir_func *f = a->p->f;
    const int64_t share = TIR_MAX(f->cluster[axis], 1);
    const struct sync_linear first = tir_sync_quotient_of(a, tir_sync_cta(a, axis), share);
    memset(a->known, 0, f->value_count * sizeof *a->known);
    memset(a->carried, 0, f->value_count * sizeof *a->carried);
    memset(a->rounds, 0, f->inst_count * sizeof *a->rounds);
    memset(a->cta, 0, sizeof a->cta);
    tir_sync_at_least(a, tir_sync_quotient_of(a, tir_sync_cta(a, axis), share), first, 1);
}

// Barriers of the grid in a loop around both keep all CTAs in one round of it: its counter, if it
// is `which` of them.
static bool common_counter(struct sync_ask *a, const struct sync_goal *goal, uint32_t which,
                           struct sync_linear *out)
{
    const struct tir_inst *up = goal->spots[0]->by->block->owner;
    for (; up; up = up->block->owner) {
        const struct tir_inst *in = goal->spots[1]->by;
        while (in && in != up)
            in = in->block->owner;
        if (in && up->op == TIR_OP_FOR && tir_sync_meets_grid(up) && !which--) {
            *out = tir_sync_linear(a, up->regions[0]->args[0]);
            return true;
        }
    }
    return false;
}

static void take_second(struct sync_ask *a, const struct sync_goal *goal)
{
    struct sync_linear rounds[4], now;
    uint32_t count = 0;
    while (count < TIR_COUNT_OF(rounds) && common_counter(a, goal, count, &rounds[count]))
        count++;
    take_other_cta(a, goal->axis);
    for (uint32_t i = 0; i < count && common_counter(a, goal, i, &now); i++)
        tir_sync_equal(a, rounds[i], now);
}

static void demand_touching(struct sync_ask *a, const struct sync_goal *goal)
{
    struct sync_linear x[TIR_MAX_RANK], y[TIR_MAX_RANK];
    const struct sync_part first = demand_part(a, goal->spots[0], x);
    if (goal->again)
        tir_sync_go_on(a, goal->again);
    if (goal->by_two)
        take_second(a, goal);
    const struct sync_part second = demand_part(a, goal->spots[1], y);
    for (uint32_t d = 0; d < first.root->type->rank && !first.vague && !second.vague; d++) {
        const bool fixed = is_number(a, &x[d]) && is_number(a, &y[d]);
        if (!fixed || x[d].constant != y[d].constant)
            demand_common(a, first.root, d, x[d], first.size[d], y[d], second.size[d]);
        if (goal->number == 1 + 2 * (int64_t)d)
            tir_sync_at_least(a, x[d], y[d], 1);
        if (goal->number == 2 + 2 * (int64_t)d)
            tir_sync_at_least(a, y[d], x[d], 1);
    }
}

static void demand_slot(struct sync_ask *a, const struct sync_goal *goal)
{
    struct sync_linear begin[TIR_MAX_RANK];
    const struct tir_inst *owner = goal->spots[0]->by->block->owner;
    for (; owner; owner = owner->block->owner)
        if (owner->op == TIR_OP_FOR)
            tir_sync_equal(a, tir_sync_linear(a, owner->regions[0]->args[0]),
                           tir_sync_linear(a, owner->operands[TIR_FOR_BEGIN]));
    demand_part(a, goal->spots[0], begin);
    tir_sync_equal(a, goal->value ? tir_sync_linear(a, goal->value) : begin[goal->axis],
                   constant(goal->number));
}

void tir_sync_demand_meeting(struct sync_ask *a, const struct sync_goal *goal)
{
    if (goal->kind == SYNC_MEET)
        demand_single(a, goal);
    else if (goal->kind == SYNC_SLOT)
        demand_slot(a, goal);
    else
        demand_touching(a, goal);
}
