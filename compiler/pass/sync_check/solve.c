// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// See solve.h.

#include "pass/sync_check/solve.h"

#include <stdlib.h>

#include "base/base.h"

enum {
    MOST_NODES = 400, // numbers that are tried
    SWEEPS = 16,      // over the inequalities, to narrow bounds
    NEAR = 6,         // numbers that are tried on each side of the wanted one
    MOST_ROWS = 96    // inequalities that are kept while unknowns are eliminated
};

#define LARGEST (INT64_C(1) << 20) // of a coefficient, and of a step of the lattice

// The numbers that satisfy the equations: `at` and whole multiples of `steps` columns more.
struct lattice {
    uint32_t rows, columns;
    int64_t at[SYNC_UNKNOWNS];
    int64_t (*steps)[SYNC_UNKNOWNS];
};

struct search {
    struct sync_problem *q;
    struct tir_arena *arena;
    uint32_t nodes;
    bool partial; // numbers were left out
};

static int64_t floor_div(int64_t a, int64_t b) // b > 0
{
    return a / b - (a % b < 0);
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    return a - floor_div(a, b) * b;
}

void tir_sync_clear(struct sync_problem *q)
{
    q->count = q->relation_count = q->range_count = q->range_relations = 0;
    q->too_large = false;
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

void tir_sync_relate(struct sync_problem *q, const struct sync_linear *form, bool equal)
{
    if (q->relation_count == SYNC_RELATIONS) {
        q->too_large = true;
        return;
    }
    q->relations[q->relation_count].form = *form;
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

// Narrows bounds by `sign * form >= 0`. False: nothing is left.
static bool narrow(const struct sync_problem *q, const struct sync_linear *form, int64_t sign,
                   struct sync_range *b, bool *changed)
{
    const int64_t infinite = SYNC_INFINITY * LARGEST;
    int64_t sum = sign * form->constant;
    uint32_t unbounded = 0;
    for (uint32_t i = 0; i < q->count; i++) {
        int64_t most = form->by[i] ? largest(b, i, sign * form->by[i]) : 0;
        unbounded += most == infinite;
        sum += most == infinite ? 0 : most;
    }
    if (!unbounded && sum < 0)
        return false;
    for (uint32_t i = 0; i < q->count; i++) {
        int64_t by = sign * form->by[i], most = by ? largest(b, i, by) : 0;
        if (!by || unbounded > (most == infinite))
            continue;
        int64_t others = most == infinite ? sum : sum - most; // by * x >= -others
        int64_t low = by > 0 ? -floor_div(others, by) : b->low[i];
        int64_t high = by < 0 ? floor_div(others, -by) : b->high[i];
        *changed |= low > b->low[i] || high < b->high[i];
        b->low[i] = TIR_MAX(b->low[i], low);
        b->high[i] = TIR_MIN(b->high[i], high);
        if (b->low[i] > b->high[i])
            return false;
    }
    return true;
}

static bool propagate(const struct sync_problem *q, struct sync_range *b)
{
    bool changed = true;
    for (uint32_t sweep = 0; changed && sweep < SWEEPS; sweep++) {
        changed = false;
        for (uint32_t i = 0; i < q->relation_count; i++)
            if (!narrow(q, &q->relations[i].form, 1, b, &changed) ||
                (q->relations[i].equal && !narrow(q, &q->relations[i].form, -1, b, &changed)))
                return false;
    }
    return true;
}

static int64_t product(const struct lattice *l, const int64_t *by, uint32_t column)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < l->rows; i++)
        sum += by[i] * l->steps[column][i];
    return sum;
}

// Changes the steps, not what they reach, until one alone moves the sum of by[i] * x[i]: by *by_how
// much. That one is the last; 0: none does.
static void gather(struct sync_problem *q, struct lattice *l, const int64_t *by, int64_t *by_how)
{
    int64_t moves[SYNC_UNKNOWNS];
    uint32_t first = UINT32_MAX;
    for (uint32_t c = 0; c < l->columns; c++)
        moves[c] = product(l, by, c);
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
            for (uint32_t i = 0; i < l->rows; i++)
                l->steps[c][i] = checked(q, l->steps[c][i] - times * l->steps[first][i], LARGEST);
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

// False: the equations have no solution.
static bool solve_equations(struct search *s, struct lattice *l)
{
    struct sync_problem *q = s->q;
    *l = (struct lattice){.rows = q->count, .columns = q->count};
    l->steps = tir_arena_alloc_array(s->arena, q->count + 1, sizeof *l->steps);
    for (uint32_t i = 0; i < q->count; i++)
        l->steps[i][i] = 1;
    for (uint32_t r = 0; r < q->relation_count && !q->too_large; r++) {
        if (!q->relations[r].equal)
            continue;
        const struct sync_linear *form = &q->relations[r].form;
        int64_t off = tir_sync_at(q, form, l->at), by;
        gather(q, l, form->by, &by);
        if (by ? off % by : off)
            return q->too_large;
        if (by)
            fix(q, l, -off / by);
    }
    return true;
}

// Inequalities, at + the sum of by[c] * (steps along column c) >= 0, that are left when columns are
// eliminated one by one.
struct rows {
    uint32_t count;
    struct row {
        int64_t at, by[SYNC_UNKNOWNS];
    } all[MOST_ROWS];
};

// False: at < 0 is left, and no column. What is left out for want of room or bits shows less.
static bool add_row(struct rows *rows, struct row row, uint32_t columns)
{
    uint64_t common = 0;
    for (uint32_t c = 0; c < columns; c++)
        common = tir_gcd(common, (uint64_t)llabs(row.by[c]));
    if (!common)
        return row.at >= 0;
    for (uint32_t c = 0; c < columns; c++)
        row.by[c] /= (int64_t)common;
    row.at = floor_div(row.at, (int64_t)common); // of whole numbers
    for (uint32_t i = 0; i < rows->count; i++)
        if (!memcmp(rows->all[i].by, row.by, sizeof row.by)) {
            rows->all[i].at = TIR_MIN(rows->all[i].at, row.at);
            return true;
        }
    if (rows->count < MOST_ROWS)
        rows->all[rows->count++] = row;
    return true;
}

static bool add_form(const struct search *s, const struct lattice *l,
                     const struct sync_linear *form, struct rows *rows)
{
    struct row row = {.at = tir_sync_at(s->q, form, l->at)};
    for (uint32_t c = 0; c < l->columns; c++)
        row.by[c] = product(l, form->by, c);
    return add_row(rows, row, l->columns);
}

static bool first_rows(const struct search *s, const struct lattice *l, const struct sync_range *b,
                       struct rows *rows)
{
    bool fine = true;
    for (uint32_t i = 0; i < s->q->relation_count && fine; i++)
        if (!s->q->relations[i].equal)
            fine = add_form(s, l, &s->q->relations[i].form, rows);
    for (uint32_t i = 0; i < s->q->count && fine; i++) {
        struct sync_linear low = tir_sync_single(i), high = {.constant = b->high[i]};
        low.constant = -b->low[i];
        high.by[i] = -1;
        if (b->low[i] > -SYNC_INFINITY)
            fine = add_form(s, l, &low, rows);
        if (b->high[i] < SYNC_INFINITY && fine)
            fine = add_form(s, l, &high, rows);
    }
    return fine;
}

// x where its column is positive and y where it is negative, each so often that none of it is left.
static bool combine(const struct row *x, const struct row *y, uint32_t column, struct row *out)
{
    int64_t of_x = -y->by[column], of_y = x->by[column], a, b;
    for (uint32_t c = 0; c <= SYNC_UNKNOWNS; c++) {
        bool last = c == SYNC_UNKNOWNS;
        if (!tir_mul_checked(last ? x->at : x->by[c], of_x, &a) ||
            !tir_mul_checked(last ? y->at : y->by[c], of_y, &b) ||
            !tir_add_checked(a, b, last ? &out->at : &out->by[c]))
            return false;
    }
    return true;
}

static bool eliminate(const struct rows *from, uint32_t column, uint32_t columns, struct rows *to)
{
    to->count = 0;
    for (uint32_t i = 0; i < from->count; i++)
        if (!from->all[i].by[column] && !add_row(to, from->all[i], columns))
            return false;
    for (uint32_t i = 0; i < from->count; i++)
        for (uint32_t k = 0; k < from->count && from->all[i].by[column] > 0; k++) {
            struct row row;
            if (from->all[k].by[column] < 0 &&
                combine(&from->all[i], &from->all[k], column, &row) && !add_row(to, row, columns))
                return false;
        }
    return true;
}

// The column whose elimination gives the fewest rows; `columns`: none is left.
static uint32_t next_column(const struct rows *rows, uint32_t columns)
{
    uint32_t best = columns, fewest = UINT32_MAX;
    for (uint32_t c = 0; c < columns; c++) {
        uint32_t up = 0, down = 0;
        for (uint32_t i = 0; i < rows->count; i++) {
            up += rows->all[i].by[c] > 0;
            down += rows->all[i].by[c] < 0;
        }
        if (up + down && up * down < fewest) {
            fewest = up * down;
            best = c;
        }
    }
    return best;
}

// Do the inequalities leave no numbers, even such as are not whole? By Fourier and Motzkin.
static bool contradict(struct search *s, const struct lattice *l, const struct sync_range *b)
{
    struct rows *rows = arena_new(s->arena, struct rows), *next = arena_new(s->arena, struct rows);
    bool fine = first_rows(s, l, b, rows);
    for (uint32_t c; fine && (c = next_column(rows, l->columns)) < l->columns;) {
        fine = eliminate(rows, c, l->columns, next);
        struct rows *done = rows;
        rows = next;
        next = done;
    }
    return !fine;
}

// The unknown that is next: one of few numbers, or else the first.
static uint32_t next_unknown(struct search *s, const struct lattice *l, const struct sync_range *b)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < s->q->count; i++) {
        bool moves = false;
        for (uint32_t c = 0; c < l->columns; c++)
            moves |= l->steps[c][i] != 0;
        if (!moves)
            continue;
        int64_t many = b->high[i] - b->low[i];
        if (best == UINT32_MAX || (many <= NEAR && many < b->high[best] - b->low[best]))
            best = i;
    }
    return best;
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
    if (++s->nodes > MOST_NODES) {
        s->partial = true;
        return false;
    }
    fix(s->q, &l, (x - l.at[i]) / l.steps[l.columns - 1][i]);
    b->low[i] = b->high[i] = x;
    return !s->q->too_large && propagate(s->q, b) && settle(s, &l, b, numbers);
}

static bool settle(struct search *s, const struct lattice *from, const struct sync_range *within,
                   int64_t *numbers)
{
    uint32_t i = next_unknown(s, from, within);
    if (i == UINT32_MAX) {
        memcpy(numbers, from->at, s->q->count * sizeof *numbers);
        return holds(s, from);
    }
    struct lattice l = *from;
    l.steps = tir_arena_copy(s->arena, from->steps, (from->columns + 1) * sizeof *l.steps);
    int64_t unit[SYNC_UNKNOWNS] = {0}, by;
    unit[i] = 1;
    gather(s->q, &l, unit, &by);
    if (!by)
        return false;
    by = by < 0 ? -by : by;
    // The numbers that it can be: low, low + by, ... high.
    int64_t low = within->low[i] + floor_mod(l.at[i] - within->low[i], by);
    int64_t high = within->high[i] - floor_mod(within->high[i] - l.at[i], by);
    if (low > high)
        return false;
    int64_t wanted = TIR_MAX(low, TIR_MIN(high, s->q->unknowns[i].wanted));
    int64_t middle = low + (wanted - low + by / 2) / by * by;
    if (try_number(s, &l, within, i, middle, numbers))
        return true;
    for (int64_t k = 1; k <= NEAR; k++)
        if ((middle + k * by <= high && try_number(s, &l, within, i, middle + k * by, numbers)) ||
            (middle - k * by >= low && try_number(s, &l, within, i, middle - k * by, numbers)))
            return true;
    bool more = middle + NEAR * by<high, less = middle - NEAR * by> low;
    s->partial |= more || less;
    return (less && try_number(s, &l, within, i, low, numbers)) ||
           (more && try_number(s, &l, within, i, high, numbers));
}

static void begin(const struct sync_problem *q, struct sync_range *b, uint32_t from)
{
    for (uint32_t i = from; i < q->count; i++) {
        b->low[i] = q->unknowns[i].low;
        b->high[i] = q->unknowns[i].high;
    }
}

// Relations only come to a problem, so what has been narrowed stays.
static const struct sync_range *range_of(struct sync_problem *q)
{
    begin(q, &q->range, q->range_count);
    if (q->range_relations < q->relation_count)
        propagate(q, &q->range);
    q->range_count = q->count;
    q->range_relations = q->relation_count;
    return &q->range;
}

void tir_sync_bounds(struct sync_problem *q, const struct sync_linear *form, int64_t *low,
                     int64_t *high)
{
    const struct sync_range *b = range_of(q);
    *low = *high = form->constant;
    for (uint32_t i = 0; i < q->count; i++) {
        int64_t most = form->by[i] ? largest(b, i, form->by[i]) : 0;
        int64_t least = form->by[i] ? -largest(b, i, -form->by[i]) : 0;
        *high = TIR_MIN(*high + TIR_MIN(most, SYNC_INFINITY), SYNC_INFINITY);
        *low = TIR_MAX(*low + TIR_MAX(least, -SYNC_INFINITY), -SYNC_INFINITY);
    }
}

enum sync_answer tir_sync_solve(struct sync_problem *q, struct tir_arena *arena, int64_t *numbers)
{
    struct search s = {.q = q, .arena = arena};
    struct lattice l;
    struct sync_range b;
    begin(q, &b, 0);
    if (q->too_large)
        return SYNC_UNSOLVED;
    struct tir_arena_mark mark = tir_arena_mark(arena);
    bool found = propagate(q, &b) && solve_equations(&s, &l) && !q->too_large &&
                 !contradict(&s, &l, &b) && settle(&s, &l, &b, numbers) && !q->too_large;
    tir_arena_release(arena, mark);
    return found ? SYNC_SOLVED : s.partial || q->too_large ? SYNC_UNSOLVED : SYNC_NEVER;
}
