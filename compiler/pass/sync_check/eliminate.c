// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// See lattice.h: inequalities without whole numbers, by elimination of one column after the other.

#include "pass/sync_check/lattice.h"

#include <stdlib.h>

#include "base/base.h"

enum { MOST_ROWS = 96 }; // inequalities that are kept while unknowns are eliminated

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
    row.at = tir_sync_floor_div(row.at, (int64_t)common); // of whole numbers
    for (uint32_t i = 0; i < rows->count; i++)
        if (!memcmp(rows->all[i].by, row.by, sizeof row.by)) {
            rows->all[i].at = TIR_MIN(rows->all[i].at, row.at);
            return true;
        }
    if (rows->count < MOST_ROWS)
        rows->all[rows->count++] = row;
    return true;
}

static bool add_form(const struct sync_problem *q, const struct lattice *l,
                     const struct sync_linear *form, struct rows *rows)
{
    struct row row = {.at = tir_sync_at(q, form, l->at)};
    for (uint32_t c = 0; c < l->columns; c++)
        row.by[c] = tir_sync_change(l, form->by, c);
    return add_row(rows, row, l->columns);
}

static bool first_rows(const struct sync_problem *q, const struct lattice *l,
                       const struct sync_range *b, struct rows *rows)
{
    bool fine = true;
    for (uint32_t i = 0; i < q->relation_count && fine; i++)
        if (!q->relations[i].equal)
            fine = add_form(q, l, &q->relations[i].form, rows);
    for (uint32_t i = 0; i < q->count && fine; i++) {
        struct sync_linear low = tir_sync_single(i), high = {.constant = b->high[i]};
        low.constant = -b->low[i];
        high.by[i] = -1;
        if (b->low[i] > -SYNC_INFINITY)
            fine = add_form(q, l, &low, rows);
        if (b->high[i] < SYNC_INFINITY && fine)
            fine = add_form(q, l, &high, rows);
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

bool tir_sync_contradict(const struct sync_problem *q, struct tir_arena *arena,
                         const struct lattice *l, const struct sync_range *b)
{
    struct rows *rows = arena_new(arena, struct rows), *next = arena_new(arena, struct rows);
    bool fine = first_rows(q, l, b, rows);
    for (uint32_t c; fine && (c = next_column(rows, l->columns)) < l->columns;) {
        fine = eliminate(rows, c, l->columns, next);
        struct rows *done = rows;
        rows = next;
        next = done;
    }
    return !fine;
}
