// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What equations leave of the unknowns of a problem (solve.h), for the parts of its solver.
#ifndef TIR_PASS_SYNC_CHECK_LATTICE_H
#define TIR_PASS_SYNC_CHECK_LATTICE_H

#include "pass/sync_check/solve.h"

// The numbers that satisfy the equations: `at` and whole multiples of `steps` columns more.
struct lattice {
    uint32_t rows, columns;
    int64_t at[SYNC_UNKNOWNS];
    int64_t (*steps)[SYNC_UNKNOWNS];
};

// By how much a step along a column changes the sum of by[i] * x[i].
static inline int64_t tir_sync_change(const struct lattice *l, const int64_t *by, uint32_t column)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < l->rows; i++)
        sum += by[i] * l->steps[column][i];
    return sum;
}

static inline int64_t tir_sync_floor_div(int64_t a, int64_t b) // b > 0
{
    return a / b - (a % b < 0);
}

// problem.c
#define SYNC_LARGEST (INT64_C(1) << 20) // of a coefficient
// x, or 0 and a problem that is too large.
int64_t tir_sync_checked(struct sync_problem *q, int64_t x, int64_t most);
// The unknowns of a form, as bits.
uint64_t tir_sync_unknowns_of(const struct sync_problem *q, const struct sync_linear *form);
struct sync_product tir_sync_product_of(const struct sync_problem *q, const struct sync_linear *x,
                                        const struct sync_linear *y, uint32_t unknown);

// narrow.c
// The bounds of the unknowns as they are given, from one of them on.
void tir_sync_begin_range(const struct sync_problem *q, struct sync_range *b, uint32_t from);
// Narrows bounds by all relations and products, again and again while they change. What has been
// used before narrows only by unknowns that have changed since: b->open, at first.
bool tir_sync_propagate(const struct sync_problem *q, struct sync_range *b, uint32_t used_relations,
                        uint32_t used_products);
int64_t tir_sync_limited(int64_t x, int64_t y); // their product, within the infinities
// Between which numbers a form is, within these bounds.
void tir_sync_bounds_within(const struct sync_problem *q, const struct sync_range *b,
                            const struct sync_linear *form, int64_t *low, int64_t *high);

// lattice.c
// Changes the steps, not what they reach, until one alone moves the sum of by[i] * x[i]: by *by_how
// much. That one is the last; 0: none does.
void tir_sync_gather(struct sync_problem *q, struct lattice *l, const int64_t *by, int64_t *by_how);
// Goes `times` steps of the last column, which is then used up.
void tir_sync_fix(struct sync_problem *q, struct lattice *l, int64_t times);
// Makes a form 0. False: it cannot be.
bool tir_sync_equate(struct sync_problem *q, struct lattice *l, const struct sync_linear *form);
// Is a form the same along the first `columns` columns?
bool tir_sync_is_fixed(const struct lattice *l, const struct sync_linear *form, uint32_t columns);

// factor.c: adds what products with a common factor say about each other.
void tir_sync_share_factors(struct sync_problem *q, struct tir_arena *arena,
                            const struct lattice *l, const struct sync_range *b);

// eliminate.c: do the inequalities leave no numbers, even such as are not whole? By Fourier and
// Motzkin.
bool tir_sync_contradict(const struct sync_problem *q, const struct lattice *l,
                         const struct sync_range *b);
// The steps along the last column, from *least to *most, for which the inequalities leave numbers,
// such as are not whole too. False: there are none.
bool tir_sync_project(const struct sync_problem *q, const struct lattice *l,
                      const struct sync_range *b, int64_t *least, int64_t *most);

#endif
