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

// Between which numbers a form is, within these bounds.
void tir_sync_bounds_within(const struct sync_problem *q, const struct sync_range *b,
                            const struct sync_linear *form, int64_t *low, int64_t *high);

// Adds what products with a common factor say about each other.
void tir_sync_share_factors(struct sync_problem *q, struct tir_arena *arena,
                            const struct lattice *l, const struct sync_range *b);

// Do the inequalities leave no numbers, even such as are not whole? By Fourier and Motzkin.
bool tir_sync_contradict(const struct sync_problem *q, const struct lattice *l,
                         const struct sync_range *b);

#endif
