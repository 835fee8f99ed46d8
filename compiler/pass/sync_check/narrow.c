// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// See solve.h: bounds of unknowns, narrowed by inequalities and products.

#include "base/base.h"
#include "pass/sync_check/lattice.h"

enum { SWEEPS = 16 }; // over the inequalities, to narrow bounds

#define ALL_UNKNOWNS UINT64_MAX // as bits; there are fewer

// The largest that by * x becomes within the bounds.
static int64_t largest(const struct sync_range *b, uint32_t i, int64_t by)
{
    int64_t x = by > 0 ? b->high[i] : b->low[i];
    return x >= SYNC_INFINITY || x <= -SYNC_INFINITY ? SYNC_INFINITY * SYNC_LARGEST : by * x;
}

// Narrows bounds by `sign * form >= 0`, whose unknowns are `of`. False: nothing is left.
static bool narrow(const struct sync_linear *form, uint64_t of, int64_t sign, struct sync_range *b,
                   uint64_t *changed)
{
    const int64_t infinite = SYNC_INFINITY * SYNC_LARGEST;
    int64_t sum = sign * form->constant;
    uint32_t unbounded = 0;
    for (uint64_t left = of; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left);
        int64_t most = largest(b, i, sign * form->by[i]);
        unbounded += most == infinite;
        sum += most == infinite ? 0 : most;
    }
    if (!unbounded && sum < 0)
        return false;
    if (unbounded > 1)
        return true;
    for (uint64_t left = of; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left);
        int64_t by = sign * form->by[i], most = largest(b, i, by);
        if (unbounded > (most == infinite))
            continue;
        int64_t others = most == infinite ? sum : sum - most; // by * x >= -others
        int64_t low = by > 0 ? -tir_sync_floor_div(others, by) : b->low[i];
        int64_t high = by < 0 ? tir_sync_floor_div(others, -by) : b->high[i];
        *changed |= (uint64_t)(low > b->low[i] || high < b->high[i]) << i;
        b->low[i] = TIR_MAX(b->low[i], low);
        b->high[i] = TIR_MIN(b->high[i], high);
        if (b->low[i] > b->high[i])
            return false;
    }
    return true;
}

void tir_sync_bounds_within(const struct sync_problem *q, const struct sync_range *b,
                            const struct sync_linear *form, int64_t *low, int64_t *high)
{
    *low = *high = form->constant;
    for (uint32_t i = 0; i < q->count; i++) {
        int64_t most = form->by[i] ? largest(b, i, form->by[i]) : 0;
        int64_t least = form->by[i] ? -largest(b, i, -form->by[i]) : 0;
        *high = TIR_MIN(*high + TIR_MIN(most, SYNC_INFINITY), SYNC_INFINITY);
        *low = TIR_MAX(*low + TIR_MAX(least, -SYNC_INFINITY), -SYNC_INFINITY);
    }
}

int64_t tir_sync_limited(int64_t x, int64_t y)
{
    int64_t out;
    if (!tir_mul_checked(x, y, &out))
        out = (x < 0) == (y < 0) ? SYNC_INFINITY : -SYNC_INFINITY;
    return TIR_MAX(TIR_MIN(out, SYNC_INFINITY), -SYNC_INFINITY);
}

// Narrows a factor by low .. high of the product, if the other one is `least` to `most` and neither
// is negative.
static bool narrow_factor(const struct sync_linear *factor, uint64_t of, int64_t low, int64_t high,
                          int64_t least, int64_t most, struct sync_range *b, uint64_t *changed)
{
    struct sync_linear rest = *factor;
    rest.constant = factor->constant - (low > 0 ? (low - 1) / TIR_MAX(most, 1) + 1 : 0);
    if (!narrow(&rest, of, 1, b, changed))
        return false;
    least = TIR_MAX(least, low > 0);
    if (least < 1 || high >= SYNC_INFINITY)
        return true;
    rest.constant = factor->constant - high / least;
    return narrow(&rest, of, -1, b, changed);
}

// With a factor that is known the product is a multiple of the other one.
static bool narrow_multiple(const struct sync_problem *q, const struct sync_product *p,
                            const struct sync_linear *other, int64_t factor, struct sync_range *b,
                            uint64_t *changed)
{
    struct sync_linear rest = {.constant = -tir_sync_limited(other->constant, factor)};
    for (uint32_t i = 0; i < q->count; i++) {
        rest.by[i] = -tir_sync_limited(other->by[i], factor);
        if (rest.by[i] > SYNC_LARGEST || rest.by[i] < -SYNC_LARGEST)
            return true;
    }
    rest.by[p->unknown] += 1;
    uint64_t of = tir_sync_unknowns_of(q, &rest);
    return narrow(&rest, of, 1, b, changed) && narrow(&rest, of, -1, b, changed);
}

static bool narrow_product(const struct sync_problem *q, const struct sync_product *p,
                           struct sync_range *b, uint64_t *changed)
{
    int64_t low[2], high[2], least = SYNC_INFINITY, most = -SYNC_INFINITY;
    struct sync_linear bound = tir_sync_single(p->unknown);
    const uint64_t of = UINT64_C(1) << p->unknown;
    for (uint32_t i = 0; i < 2; i++)
        tir_sync_bounds_within(q, b, &p->factors[i], &low[i], &high[i]);
    for (uint32_t i = 0; i < 4; i++) {
        int64_t corner = tir_sync_limited(i & 1 ? high[0] : low[0], i & 2 ? high[1] : low[1]);
        least = TIR_MIN(least, corner);
        most = TIR_MAX(most, corner);
    }
    bound.constant = -least;
    if (least > -SYNC_INFINITY && !narrow(&bound, of, 1, b, changed))
        return false;
    bound.constant = -most;
    if (most < SYNC_INFINITY && !narrow(&bound, of, -1, b, changed))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (low[i] == high[i] && !narrow_multiple(q, p, &p->factors[!i], low[i], b, changed))
            return false;
    for (uint32_t i = 0; i < 2 && low[0] >= 0 && low[1] >= 0; i++)
        if (!narrow_factor(&p->factors[i], p->of[i], b->low[p->unknown], b->high[p->unknown],
                           low[!i], high[!i], b, changed))
            return false;
    return true;
}

bool tir_sync_propagate(const struct sync_problem *q, struct sync_range *b, uint32_t used_relations,
                        uint32_t used_products)
{
    uint64_t before = b->open, now;
    b->open = ALL_UNKNOWNS; // where nothing is left
    for (uint32_t sweep = 0; !sweep || (before && sweep < SWEEPS); sweep++, before = now) {
        now = 0;
        for (uint32_t i = 0; i < q->relation_count; i++) {
            const struct sync_linear *form = &q->relations[i].form;
            uint64_t of = q->relations[i].of;
            if (i < used_relations && before != ALL_UNKNOWNS && !(of & (before | now)))
                continue;
            if (!narrow(form, of, 1, b, &now) ||
                (q->relations[i].equal && !narrow(form, of, -1, b, &now)))
                return false;
        }
        for (uint32_t i = 0; i < q->product_count; i++) {
            const struct sync_product *p = &q->products[i];
            uint64_t of = p->of[0] | p->of[1] | UINT64_C(1) << p->unknown;
            if (i < used_products && before != ALL_UNKNOWNS && !(of & (before | now)))
                continue;
            if (!narrow_product(q, p, b, &now))
                return false;
        }
        used_relations = q->relation_count;
        used_products = q->product_count;
    }
    b->open = before;
    return true;
}

void tir_sync_begin_range(const struct sync_problem *q, struct sync_range *b, uint32_t from)
{
    for (uint32_t i = from; i < q->count; i++) {
        b->low[i] = q->unknowns[i].low;
        b->high[i] = q->unknowns[i].high;
    }
    b->open = from ? b->open : ALL_UNKNOWNS;
}

// Relations only come to a problem, so what has been narrowed stays.
static const struct sync_range *range_of(struct sync_problem *q)
{
    tir_sync_begin_range(q, &q->range, q->range_count);
    if (q->range_relations < q->relation_count || q->range_products < q->product_count)
        q->is_empty |= !tir_sync_propagate(q, &q->range, q->range_relations, q->range_products);
    q->range_count = q->count;
    q->range_relations = q->relation_count;
    q->range_products = q->product_count;
    return &q->range;
}

void tir_sync_bounds(struct sync_problem *q, const struct sync_linear *form, int64_t *low,
                     int64_t *high)
{
    tir_sync_bounds_within(q, range_of(q), form, low, high);
}

bool tir_sync_is_empty(struct sync_problem *q)
{
    range_of(q);
    return q->is_empty;
}
