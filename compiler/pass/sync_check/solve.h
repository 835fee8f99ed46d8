// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole numbers that satisfy linear equations and inequalities, and products of them, near to
// wanted ones.
//
//     N == 2 * H && N == 64 * G && N >= 1000     N wanted 4     N = 1024, H = 512, G = 16
//     M == B * H && M >= 100 && H >= 30          M wanted 4     M = 100, H = 50, B = 2
//
// The equations are solved exactly: their solutions are a lattice, given by a point and steps.
// Along the steps, each unknown in turn gets the number nearest to the wanted one within its
// bounds, which the inequalities narrow. If that has no solution, the next number is tried. A
// product is an unknown, which becomes one more equation as soon as one of its factors is known.
// The factors of one that is a multiple of a factor and a number more divide the number.
#ifndef TIR_PASS_SYNC_CHECK_SOLVE_H
#define TIR_PASS_SYNC_CHECK_SOLVE_H

#include "base/arena.h"

enum { SYNC_UNKNOWNS = 48, SYNC_RELATIONS = 96, SYNC_PRODUCTS = 16 };

#define SYNC_INFINITY (INT64_C(1) << 36) // bounds from here on are none

struct sync_linear { // constant + the sum of by[i] * unknown i
    int64_t constant, by[SYNC_UNKNOWNS];
};

struct sync_unknown {
    int64_t low, high, wanted;
};

struct sync_range { // of each unknown
    int64_t low[SYNC_UNKNOWNS], high[SYNC_UNKNOWNS];
    uint64_t open; // unknowns by whose bounds others may still be narrowed, as bits
};

struct sync_problem {
    struct sync_unknown unknowns[SYNC_UNKNOWNS]; // what comes first is given its number first
    struct {
        struct sync_linear form;
        uint64_t of; // the unknowns in it, as bits
        bool equal;  // form == 0, or else form >= 0
    } relations[SYNC_RELATIONS];
    struct sync_product {
        struct sync_linear factors[2];
        uint64_t of[2]; // the unknowns in them, as bits
        uint32_t unknown;
    } products[SYNC_PRODUCTS];
    uint32_t count, relation_count, product_count;
    uint32_t nodes;          // numbers that were tried to solve it, or the problems before
    bool too_large;          // more unknowns or relations, or numbers, than are solved
    struct sync_range range; // of so many unknowns, narrowed by so many relations and products
    uint32_t range_count, range_relations, range_products;
    bool is_empty; // the range
};

enum sync_answer {
    SYNC_SOLVED,
    SYNC_NEVER, // there is no solution
    SYNC_UNSOLVED
};

// Forgets all unknowns and relations.
void tir_sync_clear(struct sync_problem *q);
// The unknown's index; of too many the last.
uint32_t tir_sync_unknown(struct sync_problem *q, int64_t low, int64_t high, int64_t wanted);
struct sync_linear tir_sync_constant(int64_t x);
struct sync_linear tir_sync_single(uint32_t unknown);
// a + b * times
struct sync_linear tir_sync_add(struct sync_problem *q, const struct sync_linear *a,
                                const struct sync_linear *b, int64_t times);
// The product of two forms of which neither is constant.
struct sync_linear tir_sync_product(struct sync_problem *q, const struct sync_linear *x,
                                    const struct sync_linear *y);
bool tir_sync_is_factor(const struct sync_problem *q, uint32_t unknown); // or part of one
bool tir_sync_is_constant(const struct sync_problem *q, const struct sync_linear *a);
void tir_sync_relate(struct sync_problem *q, const struct sync_linear *form, bool equal);
int64_t tir_sync_at(const struct sync_problem *q, const struct sync_linear *form,
                    const int64_t *numbers);

// Between which numbers a form is, by what bounds show.
void tir_sync_bounds(struct sync_problem *q, const struct sync_linear *form, int64_t *low,
                     int64_t *high);

// Do the bounds alone show that there is no solution?
bool tir_sync_is_empty(struct sync_problem *q);

// The numbers of all unknowns, if it is SOLVED.
enum sync_answer tir_sync_solve(struct sync_problem *q, struct tir_arena *arena, int64_t *numbers);

#endif
