// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// See solve.h: the search for numbers.

#include "pass/sync_check/solve.h"

#include <stdlib.h>

#include "base/base.h"
#include "pass/sync_check/lattice.h"

enum {
    MOST_NODES = 100,     // numbers that are tried
    ROUNDS = 4,           // in which products are related
    NEAR = 6,             // numbers that are tried on each side of the wanted one
    MOST_LOOKED_AT = 4096 // numbers on each side, if most of them cannot be factors
};

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

// False: the equations have no solution.
static bool solve_equations(struct search *s, struct lattice *l)
{
    struct sync_problem *q = s->q;
    *l = (struct lattice){.rows = q->count, .columns = q->count};
    l->steps = tir_arena_alloc_array(s->arena, q->count + 1, sizeof *l->steps);
    for (uint32_t i = 0; i < q->count; i++)
        l->steps[i][i] = 1;
    for (uint32_t r = 0; r < q->relation_count && !q->too_large; r++)
        if (q->relations[r].equal && !tir_sync_equate(q, l, &q->relations[r].form))
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
            if (!tir_sync_is_fixed(l, factor, l->columns))
                continue;
            struct sync_linear rest = tir_sync_single(p->unknown);
            if (tir_sync_is_fixed(l, other, l->columns)) { // of two numbers, however large they are
                rest.constant = -tir_sync_limited(x, tir_sync_at(q, other, l->at));
                s->partial |= llabs(rest.constant) >= SYNC_INFINITY;
            } else if (x < SYNC_LARGEST && x > -SYNC_LARGEST) {
                rest = tir_sync_add(q, &rest, other, -x);
            } else {
                continue;
            }
            if (!q->too_large && !tir_sync_equate(q, l, &rest))
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
    tir_sync_fix(s->q, &l, (x - l.at[i]) / l.steps[l.columns - 1][i]);
    b->low[i] = b->high[i] = x;
    b->open |= UINT64_C(1) << i;
    bool found = !s->q->too_large &&
                 tir_sync_propagate(s->q, b, s->q->relation_count, s->q->product_count) &&
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
        if (moves(l, product) || !tir_sync_is_fixed(l, factor, last))
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
        if (!by || !tir_sync_is_fixed(l, x, last) || !tir_sync_is_fixed(l, y, last))
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

// Narrows low .. high of the unknown that the last column moves to what inequalities leave. False:
// they leave nothing.
static bool narrow_last(const struct search *s, const struct lattice *l,
                        const struct sync_range *within, uint32_t i, int64_t *low, int64_t *high)
{
    int64_t step = l->steps[l->columns - 1][i], least, most, x;
    if (!tir_sync_project(s->q, l, within, &least, &most))
        return false;
    for (uint32_t end = 0; end < 2; end++) {
        int64_t steps = end ? most : least;
        if (steps == INT64_MIN || steps == INT64_MAX || !tir_mul_checked(steps, step, &x) ||
            !tir_add_checked(x, l->at[i], &x))
            continue;
        if ((step > 0) == end)
            *high = TIR_MIN(*high, x);
        else
            *low = TIR_MAX(*low, x);
    }
    return true;
}

// Narrows bounds to numbers that the lattice has: in 2 .. 63 there is no multiple of 64. False:
// nothing is left.
static bool narrow_to_lattice(const struct search *s, const struct lattice *l, struct sync_range *b)
{
    const struct sync_problem *q = s->q;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t changed = 0;
        for (uint32_t i = 0; i < q->count; i++) {
            int64_t low = b->low[i], high = b->high[i];
            uint64_t by = 0;
            for (uint32_t c = 0; c < l->columns && by != 1; c++)
                by = tir_gcd(by, (uint64_t)llabs(l->steps[c][i]));
            if (!by) {
                low = TIR_MAX(low, l->at[i]);
                high = TIR_MIN(high, l->at[i]);
            }
            if (by > 1 && low > -SYNC_INFINITY)
                low += floor_mod(l->at[i] - low, (int64_t)by);
            if (by > 1 && high < SYNC_INFINITY)
                high -= floor_mod(high - l->at[i], (int64_t)by);
            if (low > high)
                return false;
            changed |= (uint64_t)(low > b->low[i] || high < b->high[i]) << i;
            b->low[i] = low;
            b->high[i] = high;
        }
        if (!changed)
            break;
        b->open |= changed;
        if (!tir_sync_propagate(q, b, q->relation_count, q->product_count))
            return false;
    }
    return true;
}

static bool settle(struct search *s, const struct lattice *from, const struct sync_range *given,
                   int64_t *numbers)
{
    struct lattice l = *from;
    struct sync_range *within = tir_arena_copy(s->arena, given, sizeof *given);
    l.steps = tir_arena_copy(s->arena, from->steps, (from->columns + 1) * sizeof *l.steps);
    if (!use_products(s, &l) || !narrow_to_lattice(s, &l, within))
        return false;
    uint32_t i = next_unknown(s, &l, within);
    if (i == UINT32_MAX) {
        memcpy(numbers, l.at, s->q->count * sizeof *numbers);
        return holds(s, &l);
    }
    int64_t unit[SYNC_UNKNOWNS] = {0}, by;
    unit[i] = 1;
    tir_sync_gather(s->q, &l, unit, &by);
    if (!by)
        return false;
    by = by < 0 ? -by : by;
    // The numbers that it can be: low, low + by, ... high.
    int64_t low = within->low[i], high = within->high[i];
    if (!narrow_last(s, &l, within, i, &low, &high))
        return false;
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
        *p = tir_sync_product_of(q, &x, &y, unknown);
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
        if (!use_products(s, l) || !tir_sync_propagate(q, b, 0, 0))
            return false;
        tir_sync_share_factors(q, s->arena, l, b);
        for (uint32_t i = before; i < q->relation_count; i++)
            if (q->relations[i].equal && !tir_sync_equate(q, l, &q->relations[i].form))
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
    tir_sync_begin_range(q, &b, 0);
    bool found = false,
         open = tir_sync_propagate(q, &b, 0, 0) && solve_equations(&s, &l) && !q->too_large;
    if (open)
        factor_out(&s, &l, &b);
    open = open && relate_products(&s, &l, &b) && tir_sync_propagate(q, &b, 0, 0) &&
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
