// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// See lattice.h: inequalities without whole numbers, by elimination of one column after the other.

#include "pass/sync_check/lattice.h"

#include <stdlib.h>

#include "base/base.h"

enum { MOST_ROWS = 96 }; // inequalities that are kept while unknowns are eliminated

// Inequalities, at + the sum of by[c] * (steps along column c) >= 0, that are left when columns are
// eliminated one by one. Of by[], as many are set as there are columns.
struct rows {
    uint32_t count, columns;
    struct row {
        int64_t at, by[SYNC_UNKNOWNS];
    } all[MOST_ROWS];
    uint64_t keys[MOST_ROWS]; // equal for equal by[], negative for opposite ones
};

static uint64_t key_of(const struct row *row, uint32_t columns)
{
    uint64_t key = 0;
    for (uint32_t c = 0; c < columns; c++)
        key = key * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)row->by[c];
    return key;
}

static bool are_opposite(const struct row *x, const struct row *y, uint32_t columns)
{
    for (uint32_t c = 0; c < columns; c++)
        if (x->by[c] != -y->by[c])
            return false;
    return true;
}

// False: at < 0 is left, and no column; or two say that a sum is at least 1 and at most 0. What is
// left out for want of room or bits shows less.
static bool add_row(struct rows *rows, struct row *row)
{
    const uint32_t columns = rows->columns;
    uint64_t common = 0;
    for (uint32_t c = 0; c < columns && common != 1; c++)
        common = tir_gcd(common, (uint64_t)llabs(row->by[c]));
    if (!common)
        return row->at >= 0;
    for (uint32_t c = 0; c < columns && common > 1; c++)
        row->by[c] /= (int64_t)common;
    row->at = tir_sync_floor_div(row->at, (int64_t)common); // of whole numbers
    const size_t size = columns * sizeof *row->by;
    const uint64_t key = key_of(row, columns);
    for (uint32_t i = 0; i < rows->count; i++)
        if (rows->keys[i] == 0 - key && rows->all[i].at + row->at < 0 &&
            are_opposite(&rows->all[i], row, columns))
            return false;
    for (uint32_t i = 0; i < rows->count; i++)
        if (rows->keys[i] == key && !memcmp(rows->all[i].by, row->by, size)) {
            rows->all[i].at = TIR_MIN(rows->all[i].at, row->at);
            return true;
        }
    if (rows->count == MOST_ROWS)
        return true;
    rows->keys[rows->count] = key;
    struct row *copy = &rows->all[rows->count++];
    copy->at = row->at;
    memcpy(copy->by, row->by, size);
    return true;
}

static bool add_form(const struct sync_problem *q, const struct lattice *l,
                     const struct sync_linear *form, struct rows *rows)
{
    struct row row;
    row.at = tir_sync_at(q, form, l->at);
    for (uint32_t c = 0; c < l->columns; c++)
        row.by[c] = tir_sync_change(l, form->by, c);
    return add_row(rows, &row);
}

// What divides all changes of a form: bounds of its unknowns do not know.
static uint64_t goes_by(const struct lattice *l, const struct sync_linear *form)
{
    uint64_t by = 0;
    for (uint32_t c = 0; c < l->columns && by != 1; c++)
        by = tir_gcd(by, (uint64_t)llabs(tir_sync_change(l, form->by, c)));
    return by;
}

// sign * (unknown i - bound) >= 0
static bool add_bound(const struct lattice *l, uint32_t i, int64_t sign, int64_t bound,
                      struct rows *rows)
{
    struct row row;
    row.at = sign * (l->at[i] - bound);
    for (uint32_t c = 0; c < l->columns; c++)
        row.by[c] = sign * l->steps[c][i];
    return add_row(rows, &row);
}

static bool first_rows(const struct sync_problem *q, const struct lattice *l,
                       const struct sync_range *b, struct rows *rows)
{
    bool fine = true;
    int64_t low, high;
    for (uint32_t i = 0; i < q->relation_count && fine; i++) {
        if (q->relations[i].equal)
            continue;
        tir_sync_bounds_within(q, b, &q->relations[i].form, &low, &high);
        const bool is_said = low >= 0 && goes_by(l, &q->relations[i].form) <= 1; // by bounds
        fine = is_said || add_form(q, l, &q->relations[i].form, rows);
    }
    for (uint32_t i = 0; i < q->count && fine; i++) {
        if (b->low[i] > -SYNC_INFINITY)
            fine = add_bound(l, i, 1, b->low[i], rows);
        if (b->high[i] < SYNC_INFINITY && fine)
            fine = add_bound(l, i, -1, b->high[i], rows);
    }
    return fine;
}

// x where its column is positive and y where it is negative, each so often that none of it is left.
static bool combine(const struct row *x, const struct row *y, uint32_t column, uint32_t columns,
                    struct row *out)
{
    int64_t of_x = -y->by[column], of_y = x->by[column], a, b;
    for (uint32_t c = 0; c <= columns; c++) {
        bool last = c == columns;
        if (!tir_mul_checked(last ? x->at : x->by[c], of_x, &a) ||
            !tir_mul_checked(last ? y->at : y->by[c], of_y, &b) ||
            !tir_add_checked(a, b, last ? &out->at : &out->by[c]))
            return false;
    }
    return true;
}

static bool eliminate(struct rows *from, uint32_t column, struct rows *to)
{
    to->count = 0;
    for (uint32_t i = 0; i < from->count; i++)
        if (!from->all[i].by[column] && !add_row(to, &from->all[i]))
            return false;
    uint32_t down[MOST_ROWS], down_count = 0;
    for (uint32_t i = 0; i < from->count; i++)
        if (from->all[i].by[column] < 0)
            down[down_count++] = i;
    for (uint32_t i = 0; i < from->count; i++)
        for (uint32_t k = 0; k < down_count && from->all[i].by[column] > 0; k++) {
            struct row row;
            if (combine(&from->all[i], &from->all[down[k]], column, from->columns, &row) &&
                !add_row(to, &row))
                return false;
        }
    return true;
}

// The column, of the first ones, whose elimination gives the fewest rows; `columns`: none is left.
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

// Leaves the last columns, from one of them on, in one of both. NULL: the inequalities have no
// solution.
static const struct rows *eliminate_first(const struct sync_problem *q, const struct lattice *l,
                                          const struct sync_range *b, uint32_t columns,
                                          struct rows *both)
{
    struct rows *rows = &both[0], *next = &both[1];
    rows->count = next->count = 0;
    rows->columns = next->columns = l->columns;
    bool fine = first_rows(q, l, b, rows);
    for (uint32_t c; fine && (c = next_column(rows, columns)) < columns;) {
        fine = eliminate(rows, c, next);
        struct rows *done = rows;
        rows = next;
        next = done;
    }
    return fine ? rows : NULL;
}

bool tir_sync_contradict(const struct sync_problem *q, const struct lattice *l,
                         const struct sync_range *b)
{
    struct rows both[2];
    return !eliminate_first(q, l, b, l->columns, both);
}

bool tir_sync_project(const struct sync_problem *q, const struct lattice *l,
                      const struct sync_range *b, int64_t *least, int64_t *most)
{
    struct rows both[2];
    const uint32_t last = l->columns - 1;
    const struct rows *rows = eliminate_first(q, l, b, last, both);
    *least = INT64_MIN;
    *most = INT64_MAX;
    for (uint32_t i = 0; rows && i < rows->count; i++) { // at + by * steps >= 0
        int64_t at = rows->all[i].at, by = rows->all[i].by[last];
        if (by > 0)
            *least = TIR_MAX(*least, -tir_sync_floor_div(at, by));
        else
            *most = TIR_MIN(*most, tir_sync_floor_div(at, -by));
    }
    return rows && *least <= *most;
}
