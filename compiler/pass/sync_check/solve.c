// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// See solve.h.

#include "pass/sync_check/solve.h"

#include <stdlib.h>

#include "base/base.h"
#include "pass/sync_check/lattice.h"

enum {
    MOST_NODES = 100,     // numbers that are tried
    ROUNDS = 4,           // in which products are related
    SWEEPS = 16,          // over the inequalities, to narrow bounds
    NEAR = 6,             // numbers that are tried on each side of the wanted one
    MOST_LOOKED_AT = 4096 // numbers on each side, if most of them cannot be factors
};

#define LARGEST      (INT64_C(1) << 20) // of a coefficient
#define LARGEST_STEP (INT64_C(1) << 26) // of the lattice: a product of several sizes
#define ALL_UNKNOWNS UINT64_MAX         // as bits; there are fewer

struct search {
    struct sync_problem *q;
    struct tir_arena *arena;
    uint32_t nodes;
    bool partial;       // numbers were left out
    bool factors_first; // unknowns that are factors get their numbers before the others
};

static int64_t floor_mod(int64_t a, int64_t b)
{
    return a - tir_sync_floor_div(a, b) * b;
}

void tir_sync_clear(struct sync_problem *q)
{
    q->count = q->relation_count = q->product_count = 0;
    q->range_count = q->range_relations = q->range_products = 0;
    q->too_large = q->is_empty = false;
}

uint32_t tir_sync_unknown(struct sync_problem *q, int64_t low, int64_t high, int64_t wanted)
{
    if (q->count == SYNC_UNKNOWNS) {
        q->too_large = true;
        return q->count - 1;
    }
    q->unknowns[q->count] = (struct sync_unknown){low, high, wanted};
    return q->count++;
}

struct sync_linear tir_sync_constant(int64_t x)
{
    return (struct sync_linear){.constant = x};
}

struct sync_linear tir_sync_single(uint32_t unknown)
{
    struct sync_linear form = {0};
    form.by[unknown] = 1;
    return form;
}

static int64_t checked(struct sync_problem *q, int64_t x, int64_t most)
{
    if (x > most || x < -most)
        q->too_large = true;
    return q->too_large ? 0 : x;
}

struct sync_linear tir_sync_add(struct sync_problem *q, const struct sync_linear *a,
                                const struct sync_linear *b, int64_t times)
{
    struct sync_linear sum = {0};
    times = checked(q, times, LARGEST);
    sum.constant =
        checked(q, a->constant + checked(q, b->constant, SYNC_INFINITY) * times, SYNC_INFINITY);
    for (uint32_t i = 0; i < q->count; i++)
        sum.by[i] = checked(q, a->by[i] + b->by[i] * times, LARGEST);
    return sum;
}

bool tir_sync_is_constant(const struct sync_problem *q, const struct sync_linear *a)
{
    for (uint32_t i = 0; i < q->count; i++)
        if (a->by[i])
            return false;
    return true;
}

// The unknowns of a form, as bits.
static uint64_t unknowns_of(const struct sync_problem *q, const struct sync_linear *form)
{
    uint64_t of = 0;
    for (uint32_t i = 0; i < q->count; i++)
        of |= (uint64_t)(form->by[i] != 0) << i;
    return of;
}

void tir_sync_relate(struct sync_problem *q, const struct sync_linear *form, bool equal)
{
    if (q->relation_count == SYNC_RELATIONS) {
        q->too_large = true;
        return;
    }
    q->relations[q->relation_count].form = *form;
    q->relations[q->relation_count].of = unknowns_of(q, form);
    q->relations[q->relation_count++].equal = equal;
}

int64_t tir_sync_at(const struct sync_problem *q, const struct sync_linear *form,
                    const int64_t *numbers)
{
    int64_t sum = form->constant;
    for (uint32_t i = 0; i < q->count; i++)
        sum += form->by[i] * numbers[i];
    return sum;
}

// The largest that by * x becomes within the bounds.
static int64_t largest(const struct sync_range *b, uint32_t i, int64_t by)
{
    int64_t x = by > 0 ? b->high[i] : b->low[i];
    return x >= SYNC_INFINITY || x <= -SYNC_INFINITY ? SYNC_INFINITY * LARGEST : by * x;
}

// Narrows bounds by `sign * form >= 0`, whose unknowns are `of`. False: nothing is left.
static bool narrow(const struct sync_linear *form, uint64_t of, int64_t sign, struct sync_range *b,
                   uint64_t *changed)
{
    const int64_t infinite = SYNC_INFINITY * LARGEST;
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

// Within the infinities.
static int64_t times(int64_t x, int64_t y)
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
    struct sync_linear rest = {.constant = -times(other->constant, factor)};
    for (uint32_t i = 0; i < q->count; i++) {
        rest.by[i] = -times(other->by[i], factor);
        if (rest.by[i] > LARGEST || rest.by[i] < -LARGEST)
            return true;
    }
    rest.by[p->unknown] += 1;
    uint64_t of = unknowns_of(q, &rest);
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
        int64_t corner = times(i & 1 ? high[0] : low[0], i & 2 ? high[1] : low[1]);
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

// Narrows bounds by all relations and products, again and again while they change. What has been
// used before narrows only by unknowns that have changed since: b->open, at first.
static bool propagate(const struct sync_problem *q, struct sync_range *b, uint32_t used_relations,
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

// Changes the steps, not what they reach, until one alone moves the sum of by[i] * x[i]: by *by_how
// much. That one is the last; 0: none does.
static void gather(struct sync_problem *q, struct lattice *l, const int64_t *by, int64_t *by_how)
{
    int64_t moves[SYNC_UNKNOWNS];
    uint32_t first = UINT32_MAX;
    for (uint32_t c = 0; c < l->columns; c++)
        moves[c] = tir_sync_change(l, by, c);
    for (bool again = true; again && !q->too_large;) {
        again = false;
        first = UINT32_MAX;
        for (uint32_t c = 0; c < l->columns; c++)
            if (moves[c] && (first == UINT32_MAX || llabs(moves[c]) < llabs(moves[first])))
                first = c;
        for (uint32_t c = 0; first != UINT32_MAX && c < l->columns; c++) {
            int64_t times = c == first ? 0 : moves[c] / moves[first];
            if (!times)
                continue;
            times = checked(q, times, SYNC_INFINITY);
            for (uint32_t i = 0; i < l->rows; i++)
                l->steps[c][i] =
                    checked(q, l->steps[c][i] - times * l->steps[first][i], LARGEST_STEP);
            moves[c] -= times * moves[first];
            again |= moves[c] != 0;
        }
    }
    *by_how = first == UINT32_MAX || q->too_large ? 0 : moves[first];
    if (!*by_how)
        return;
    for (uint32_t i = 0; i < l->rows; i++) {
        int64_t step = l->steps[first][i];
        l->steps[first][i] = l->steps[l->columns - 1][i];
        l->steps[l->columns - 1][i] = step;
    }
}

// Goes `times` steps of the last column, which is then used up.
static void fix(struct sync_problem *q, struct lattice *l, int64_t times)
{
    l->columns--;
    if (times > SYNC_INFINITY || times < -SYNC_INFINITY)
        q->too_large = true;
    for (uint32_t i = 0; i < l->rows && !q->too_large; i++)
        l->at[i] = checked(q, l->at[i] + times * l->steps[l->columns][i], 2 * SYNC_INFINITY);
}

// Makes a form 0. False: it cannot be.
static bool equate(struct sync_problem *q, struct lattice *l, const struct sync_linear *form)
{
    int64_t off = tir_sync_at(q, form, l->at), by;
    gather(q, l, form->by, &by);
    if (by ? off % by : off)
        return q->too_large;
    if (by)
        fix(q, l, -off / by);
    return true;
}

// False: the equations have no solution.
static bool solve_equations(struct search *s, struct lattice *l)
{
    struct sync_problem *q = s->q;
    *l = (struct lattice){.rows = q->count, .columns = q->count};
    l->steps = tir_arena_alloc_array(s->arena, q->count + 1, sizeof *l->steps);
    for (uint32_t i = 0; i < q->count; i++)
        l->steps[i][i] = 1;
    for (uint32_t r = 0; r < q->relation_count && !q->too_large; r++)
        if (q->relations[r].equal && !equate(q, l, &q->relations[r].form))
            return false;
    return true;
}

// Is a form the same along the first `columns` columns?
static bool is_fixed(const struct lattice *l, const struct sync_linear *form, uint32_t columns)
{
    for (uint32_t c = 0; c < columns; c++)
        if (tir_sync_change(l, form->by, c))
            return false;
    return true;
}

// Products with a factor that is known are equations. False: they have no solution.
static bool use_products(struct search *s, struct lattice *l)
{
    struct sync_problem *q = s->q;
    uint32_t columns;
    do {
        columns = l->columns;
        for (uint32_t i = 0; i < 2 * q->product_count && !q->too_large; i++) {
            const struct sync_product *p = &q->products[i / 2];
            const struct sync_linear *factor = &p->factors[i % 2], *other = &p->factors[!(i % 2)];
            int64_t x = tir_sync_at(q, factor, l->at);
            if (!is_fixed(l, factor, l->columns))
                continue;
            struct sync_linear rest = tir_sync_single(p->unknown);
            if (is_fixed(l, other, l->columns)) { // of two numbers, however large they are
                rest.constant = -times(x, tir_sync_at(q, other, l->at));
                s->partial |= llabs(rest.constant) >= SYNC_INFINITY;
            } else if (x < LARGEST && x > -LARGEST) {
                rest = tir_sync_add(q, &rest, other, -x);
            } else {
                continue;
            }
            if (!q->too_large && !equate(q, l, &rest))
                return false;
        }
    } while (l->columns < columns && !q->too_large);
    return !q->too_large;
}

static bool moves(const struct lattice *l, uint32_t unknown)
{
    for (uint32_t c = 0; c < l->columns; c++)
        if (l->steps[c][unknown])
            return true;
    return false;
}

bool tir_sync_is_factor(const struct sync_problem *q, uint32_t unknown)
{
    for (uint32_t i = 0; i < q->product_count; i++)
        if (q->products[i].factors[0].by[unknown] || q->products[i].factors[1].by[unknown])
            return true;
    return false;
}

// How soon an unknown that is a factor gets its number: one that has to divide what is known first,
// then one that is not a product itself. 0: it is no factor.
static uint32_t urgency_of(const struct sync_problem *q, const struct lattice *l, uint32_t unknown)
{
    uint32_t divides = 0;
    bool is_product = false;
    for (uint32_t i = 0; i < q->product_count; i++) {
        const struct sync_product *p = &q->products[i];
        bool factor = p->factors[0].by[unknown] || p->factors[1].by[unknown];
        divides += factor && !moves(l, p->unknown);
        for (uint32_t c = 0; c < l->columns; c++)
            is_product |= l->steps[c][unknown] && l->steps[c][p->unknown];
    }
    return tir_sync_is_factor(q, unknown) ? 1 + !is_product + 2 * divides : 0;
}

// The unknown that is next: one of few numbers, or else the first.
static uint32_t next_unknown(struct search *s, const struct lattice *l, const struct sync_range *b)
{
    uint32_t best = UINT32_MAX, factor = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < s->q->count; i++) {
        if (!moves(l, i))
            continue;
        int64_t many = b->high[i] - b->low[i];
        if (best == UINT32_MAX || (many <= NEAR && many < b->high[best] - b->low[best]))
            best = i;
        uint32_t urgency = s->factors_first ? urgency_of(s->q, l, i) : 0;
        if (urgency > most) {
            most = urgency;
            factor = i;
        }
    }
    return factor != UINT32_MAX ? factor : best;
}

static bool holds(const struct search *s, const struct lattice *l)
{
    const struct sync_problem *q = s->q;
    for (uint32_t i = 0; i < q->relation_count; i++) {
        int64_t x = tir_sync_at(q, &q->relations[i].form, l->at);
        if (x < 0 || (x && q->relations[i].equal))
            return false;
    }
    for (uint32_t i = 0; i < q->count; i++)
        if (l->at[i] < q->unknowns[i].low || l->at[i] > q->unknowns[i].high)
            return false;
    for (uint32_t i = 0; i < q->product_count; i++) {
        const struct sync_product *p = &q->products[i];
        int64_t x;
        if (!tir_mul_checked(tir_sync_at(q, &p->factors[0], l->at),
                             tir_sync_at(q, &p->factors[1], l->at), &x) ||
            x != l->at[p->unknown])
            return false;
    }
    return true;
}

static bool settle(struct search *s, const struct lattice *from, const struct sync_range *within,
                   int64_t *numbers);

// Gives the unknown that the last column moves the number x.
static bool try_number(struct search *s, const struct lattice *from,
                       const struct sync_range *within, uint32_t i, int64_t x, int64_t *numbers)
{
    struct lattice l = *from;
    struct sync_range *b = tir_arena_copy(s->arena, within, sizeof *within);
    s->q->nodes++;
    if (++s->nodes > MOST_NODES) {
        s->partial = true;
        return false;
    }
    fix(s->q, &l, (x - l.at[i]) / l.steps[l.columns - 1][i]);
    b->low[i] = b->high[i] = x;
    b->open |= UINT64_C(1) << i;
    bool found = !s->q->too_large &&
                 propagate(s->q, b, s->q->relation_count, s->q->product_count) &&
                 settle(s, &l, b, numbers) && !s->q->too_large;
    s->partial |= s->q->too_large;
    s->q->too_large = false; // with this number
    return found;
}

// Can the unknown that the last column moves be x, for all that products say whose factors it
// decides: do they divide the product?
static bool may_divide(const struct search *s, const struct lattice *l, uint32_t i, int64_t x)
{
    const struct sync_problem *q = s->q;
    uint32_t last = l->columns - 1;
    for (uint32_t k = 0; k < 2 * q->product_count; k++) {
        const struct sync_linear *factor = &q->products[k / 2].factors[k % 2];
        uint32_t product = q->products[k / 2].unknown;
        if (moves(l, product) || !is_fixed(l, factor, last))
            continue;
        int64_t steps = (x - l->at[i]) / l->steps[last][i], by;
        if (!tir_mul_checked(tir_sync_change(l, factor->by, last), steps, &by) ||
            !tir_add_checked(by, tir_sync_at(q, factor, l->at), &by) ||
            (by ? l->at[product] % by : l->at[product]))
            return false;
    }
    return true;
}

// The numbers with which two factors are about equal: if they have a sum, their product is largest.
static bool try_equal_factors(struct search *s, const struct lattice *l,
                              const struct sync_range *within, uint32_t i, int64_t *numbers)
{
    const struct sync_problem *q = s->q;
    uint32_t last = l->columns - 1;
    for (uint32_t k = 0; k < q->product_count; k++) {
        const struct sync_linear *x = &q->products[k].factors[0], *y = &q->products[k].factors[1];
        int64_t apart = tir_sync_at(q, x, l->at) - tir_sync_at(q, y, l->at);
        int64_t by = tir_sync_change(l, y->by, last) - tir_sync_change(l, x->by, last);
        if (!by || !is_fixed(l, x, last) || !is_fixed(l, y, last))
            continue;
        int64_t number = l->at[i] + apart / by * l->steps[last][i];
        if (number > within->low[i] && number < within->high[i] &&
            try_number(s, l, within, i, number, numbers))
            return true;
    }
    return false;
}

// The numbers from low to high on both sides of `middle`, by steps of `by`: the nearest that it may
// be, then what is half, twice, a quarter ... of it, then the ends.
static bool try_around(struct search *s, const struct lattice *l, const struct sync_range *within,
                       uint32_t i, int64_t low, int64_t middle, int64_t high, int64_t by,
                       int64_t *numbers)
{
    int64_t next[2] = {middle + by, middle - by};
    uint32_t tried[2] = {0};
    bool any = true;
    for (uint32_t k = 0; any && k < MOST_LOOKED_AT; k++) {
        any = false;
        for (uint32_t down = 0; down < 2; down++) {
            int64_t x = next[down];
            if (tried[down] == NEAR || x < low || x > high)
                continue;
            any = true;
            next[down] += down ? -by : by;
            if (!may_divide(s, l, i, x))
                continue;
            tried[down]++;
            if (try_number(s, l, within, i, x, numbers))
                return true;
        }
    }
    bool more = next[0] <= high, less = next[1] >= low;
    s->partial |= more || less;
    for (int64_t times = 2; middle > 0 && (more || less) && times <= INT32_MAX / middle; times *= 2)
        for (uint32_t up = 0; up < 2; up++) {
            int64_t x = low + (up ? middle * times - low : middle / times - low) / by * by;
            if (x > low && x < high && may_divide(s, l, i, x) &&
                try_number(s, l, within, i, x, numbers))
                return true;
        }
    return (less && try_number(s, l, within, i, low, numbers)) ||
           (more && try_number(s, l, within, i, high, numbers)) ||
           try_equal_factors(s, l, within, i, numbers);
}

// Narrows low .. high of the unknown that the last column moves by the inequalities that no other
// column moves: exactly, where bounds of each unknown approach the limit in many small steps.
static void narrow_last(const struct search *s, const struct lattice *l, uint32_t i, int64_t *low,
                        int64_t *high)
{
    const struct sync_problem *q = s->q;
    uint32_t last = l->columns - 1;
    int64_t step = l->steps[last][i];
    for (uint32_t r = 0; r < q->relation_count; r++) {
        const struct sync_linear *form = &q->relations[r].form;
        int64_t by = tir_sync_change(l, form->by, last), at = tir_sync_at(q, form, l->at), most;
        if (!by || !is_fixed(l, form, last) || llabs(at) > SYNC_INFINITY ||
            llabs(by) > SYNC_INFINITY)
            continue;
        // at + by * t >= 0, and the unknown is l->at[i] + step * t
        if (!tir_mul_checked(tir_sync_floor_div(at, llabs(by)), step, &most))
            continue;
        if ((by > 0) == (step > 0)) // t >= -at / by
            *low = TIR_MAX(*low, l->at[i] + (by > 0 ? -most : most));
        else
            *high = TIR_MIN(*high, l->at[i] + (by > 0 ? -most : most));
    }
}

static bool settle(struct search *s, const struct lattice *from, const struct sync_range *within,
                   int64_t *numbers)
{
    struct lattice l = *from;
    l.steps = tir_arena_copy(s->arena, from->steps, (from->columns + 1) * sizeof *l.steps);
    if (!use_products(s, &l))
        return false;
    uint32_t i = next_unknown(s, &l, within);
    if (i == UINT32_MAX) {
        memcpy(numbers, l.at, s->q->count * sizeof *numbers);
        return holds(s, &l);
    }
    int64_t unit[SYNC_UNKNOWNS] = {0}, by;
    unit[i] = 1;
    gather(s->q, &l, unit, &by);
    if (!by)
        return false;
    by = by < 0 ? -by : by;
    // The numbers that it can be: low, low + by, ... high.
    int64_t low = within->low[i], high = within->high[i];
    narrow_last(s, &l, i, &low, &high);
    low += floor_mod(l.at[i] - low, by);
    high -= floor_mod(high - l.at[i], by);
    if (low > high)
        return false;
    int64_t wanted = TIR_MAX(low, TIR_MIN(high, s->q->unknowns[i].wanted));
    int64_t middle = low + (wanted - low + by / 2) / by * by;
    if (!middle && wanted > 0 && by <= high) // with a size of 0 nothing runs
        middle = by;
    return (may_divide(s, &l, i, middle) && try_number(s, &l, within, i, middle, numbers)) ||
           try_around(s, &l, within, i, low, middle, high, by, numbers);
}

static void begin(const struct sync_problem *q, struct sync_range *b, uint32_t from)
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
    begin(q, &q->range, q->range_count);
    if (q->range_relations < q->relation_count || q->range_products < q->product_count)
        q->is_empty |= !propagate(q, &q->range, q->range_relations, q->range_products);
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

static struct sync_product product_of(const struct sync_problem *q, const struct sync_linear *x,
                                      const struct sync_linear *y, uint32_t unknown)
{
    return (struct sync_product){{*x, *y}, {unknowns_of(q, x), unknowns_of(q, y)}, unknown};
}

struct sync_linear tir_sync_product(struct sync_problem *q, const struct sync_linear *x,
                                    const struct sync_linear *y)
{
    for (uint32_t i = 0; i < q->product_count; i++) {
        const struct sync_linear *of = q->products[i].factors;
        for (uint32_t k = 0; k < 2; k++)
            if (!memcmp(&of[k], x, sizeof *x) && !memcmp(&of[!k], y, sizeof *y))
                return tir_sync_single(q->products[i].unknown);
    }
    if (q->product_count == SYNC_PRODUCTS) {
        q->too_large = true;
        return tir_sync_constant(0);
    }
    uint32_t unknown = tir_sync_unknown(q, -SYNC_INFINITY, SYNC_INFINITY, 0);
    q->products[q->product_count++] = product_of(q, x, y, unknown);
    return tir_sync_single(unknown);
}

// Are all changes of the unknown `times` those of the form?
static bool goes_with(const struct lattice *l, uint32_t unknown, const struct sync_linear *form,
                      int64_t *times)
{
    bool moved = false;
    *times = 0;
    for (uint32_t c = 0; c < l->columns; c++) {
        int64_t by = tir_sync_change(l, form->by, c), of = l->steps[c][unknown];
        if (by && !moved)
            *times = of / by;
        moved |= by != 0;
        if (of != *times * by)
            return false;
    }
    return *times;
}

// A product that is `times` one of its factors and a number more, x * y == times * x + n, says that
// x * (y - times) == n: its factors divide n.
static void factor_out(struct search *s, struct lattice *l, struct sync_range *b)
{
    struct sync_problem *q = s->q;
    const struct sync_linear one = tir_sync_constant(1);
    int64_t times, low, high;
    for (uint32_t i = 0; i < 2 * q->product_count; i++) {
        struct sync_product *p = &q->products[i / 2];
        struct sync_linear x = p->factors[i % 2], y = p->factors[!(i % 2)];
        if (q->count == SYNC_UNKNOWNS || q->relation_count + 2 > SYNC_RELATIONS)
            return;
        if (!goes_with(l, p->unknown, &x, &times))
            continue;
        int64_t n = l->at[p->unknown] - times * tir_sync_at(q, &x, l->at);
        if (llabs(n) > SYNC_INFINITY)
            continue;
        y = tir_sync_add(q, &y, &one, -times);
        if (n < 0)
            y = tir_sync_add(q, &(struct sync_linear){0}, &y, -1);
        n = llabs(n);
        uint32_t unknown = tir_sync_unknown(q, n, n, n);
        l->rows = q->count;
        l->at[unknown] = b->low[unknown] = b->high[unknown] = n;
        *p = product_of(q, &x, &y, unknown);
        tir_sync_bounds_within(q, b, &x, &low, &high);
        if (!n || low < 0)
            continue;
        x = tir_sync_add(q, &x, &one, -1);
        y = tir_sync_add(q, &y, &one, -1);
        tir_sync_relate(q, &x, false); // neither is negative, as n is not
        tir_sync_relate(q, &y, false);
    }
}

// Products with common factors are related, as far as that leads. False: there is no solution.
static bool relate_products(struct search *s, struct lattice *l, struct sync_range *b)
{
    struct sync_problem *q = s->q;
    bool more = q->product_count > 0;
    for (uint32_t round = 0; more && round < ROUNDS; round++) {
        uint32_t before = q->relation_count;
        if (!use_products(s, l) || !propagate(q, b, 0, 0))
            return false;
        tir_sync_share_factors(q, s->arena, l, b);
        for (uint32_t i = before; i < q->relation_count; i++)
            if (q->relations[i].equal && !equate(q, l, &q->relations[i].form))
                return false;
        more = before < q->relation_count;
    }
    return true;
}

enum sync_answer tir_sync_solve(struct sync_problem *given, struct tir_arena *arena,
                                int64_t *numbers)
{
    struct tir_arena_mark mark = tir_arena_mark(arena);
    struct sync_problem *q =
        given->product_count ? tir_arena_copy(arena, given, sizeof *given) : given;
    struct search s = {.q = q, .arena = arena};
    struct lattice l;
    struct sync_range b;
    begin(q, &b, 0);
    bool found = false, open = propagate(q, &b, 0, 0) && solve_equations(&s, &l) && !q->too_large;
    if (open)
        factor_out(&s, &l, &b);
    open = open && relate_products(&s, &l, &b) && propagate(q, &b, 0, 0) &&
           !tir_sync_contradict(q, &l, &b);
    found = open && settle(&s, &l, &b, numbers) && !q->too_large;
    if (open && !found && s.partial && q->product_count && !q->too_large) {
        s.factors_first = true;
        s.nodes = 0;
        s.partial = false;
        found = settle(&s, &l, &b, numbers) && !q->too_large;
    }
    enum sync_answer answer = found                       ? SYNC_SOLVED
                              : s.partial || q->too_large ? SYNC_UNSOLVED
                                                          : SYNC_NEVER;
    given->nodes = q->nodes;
    tir_arena_release(arena, mark);
    return answer;
}
