// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether elements of tensors share memory.
//
// Two elements overlap when the distance of their first bits is smaller than an element. Over all
// pairs of elements that distance is a constant and a sum of terms `step * z`, 0 <= z <= count, one
// for each dimension of either tensor, so the question is whether such a sum can fall into a small
// window. The largest step is tried first: what the others can add at most leaves it few values.
// In tensors, and in parts of a tensor, each step is larger than all smaller ones together, and one
// or two values are left; two halves of each row, say, are told apart in a handful of tries.

#include "overlap.h"

#include <stddef.h>

enum { MAX_TERMS = 2 * TIR_MAX_RANK, MOST_TRIES = 4096 };

struct term {
    int64_t step, count; // bits; both positive
};

struct sum {
    struct term terms[MAX_TERMS]; // by falling step
    uint32_t count;
    int64_t constant;
    bool too_large; // for 64 bits
};

static void add_constant(struct sum *sum, int64_t value)
{
    sum->too_large |= __builtin_add_overflow(sum->constant, value, &sum->constant);
}

// Terms of one step are one term.
static void add_term(struct sum *sum, int64_t step, int64_t count)
{
    uint32_t at = 0;
    while (at < sum->count && sum->terms[at].step > step)
        at++;
    if (at < sum->count && sum->terms[at].step == step) {
        sum->too_large |=
            __builtin_add_overflow(sum->terms[at].count, count, &sum->terms[at].count);
        return;
    }
    for (uint32_t i = sum->count++; i > at; i--)
        sum->terms[i] = sum->terms[i - 1];
    sum->terms[at] = (struct term){step, count};
}

static int64_t step_of(const struct footprint *f, uint32_t d)
{
    return f->strides[d] * (int64_t)f->bits;
}

static int64_t magnitude(int64_t value)
{
    return value < 0 ? -value : value;
}

// Adds what an element of `f` is away from element 0, or what element 0 is away from it.
static void add_tensor(struct sum *sum, const struct footprint *f, bool is_negated)
{
    for (uint32_t d = 0; d < f->rank; d++) {
        if (f->shape[d] <= 1 || !f->strides[d])
            continue;
        const int64_t step = step_of(f, d), count = f->shape[d] - 1;
        if ((step < 0) != is_negated) // z counts from the other end
            add_constant(sum, -magnitude(step) * count);
        add_term(sum, magnitude(step), count);
    }
}

struct search {
    const struct sum *sum;
    int64_t rest[MAX_TERMS + 1]; // what the terms from here on can add at most
    uint32_t tries;
};

// Whether the terms from `at` on can add up to something from `low` to `high`.
static bool reaches(struct search *s, uint32_t at, int64_t low, int64_t high)
{
    if (high < 0 || low > s->rest[at])
        return false;
    if (low <= 0 || high >= s->rest[at] || ++s->tries > MOST_TRIES)
        return true;
    const struct term *t = &s->sum->terms[at];
    const int64_t least = low - s->rest[at + 1]; // that the term must be
    int64_t z = least <= 0 ? 0 : (least - 1) / t->step + 1, most = high / t->step;
    most = most < t->count ? most : t->count;
    for (; z <= most; z++)
        if (reaches(s, at + 1, low - t->step * z, high - t->step * z))
            return true;
    return false;
}

static bool can_be(const struct sum *sum, int64_t low, int64_t high)
{
    struct search s = {.sum = sum};
    bool too_large = sum->too_large;
    for (uint32_t i = sum->count; i-- > 0;) {
        int64_t most;
        too_large |= __builtin_mul_overflow(sum->terms[i].step, sum->terms[i].count, &most) ||
                     __builtin_add_overflow(s.rest[i + 1], most, &s.rest[i]);
    }
    return too_large || __builtin_sub_overflow(low, sum->constant, &low) ||
           __builtin_sub_overflow(high, sum->constant, &high) || reaches(&s, 0, low, high);
}

struct reach tir_reach(uint64_t data, uint32_t bits, uint32_t rank, const int64_t *shape,
                       const int64_t *strides)
{
    int64_t low = 0, high = bits; // bits
    for (uint32_t d = 0; d < rank; d++) {
        if (shape[d] <= 1)
            continue;
        const int64_t way = strides[d] * (int64_t)bits * (shape[d] - 1);
        *(way < 0 ? &low : &high) += way;
    }
    const uint64_t below = ((uint64_t)-low + 7) / 8, above = ((uint64_t)high + 7) / 8;
    return (struct reach){below <= data ? data - below : 0,
                          above <= UINT64_MAX - data ? data + above : UINT64_MAX};
}

bool tir_footprints_overlap(const struct footprint *a, const struct footprint *b)
{
    struct sum sum = {.count = 0};
    sum.too_large = __builtin_mul_overflow((int64_t)(b->data - a->data), 8, &sum.constant);
    add_tensor(&sum, b, false);
    add_tensor(&sum, a, true);
    return can_be(&sum, 1 - (int64_t)b->bits, (int64_t)a->bits - 1);
}

// Whether each step is larger than what all smaller ones can add.
static bool is_nested(const struct sum *sum, uint32_t bits)
{
    int64_t reach = bits;
    for (uint32_t i = sum->count; i-- > 0;) {
        const struct term *t = &sum->terms[i];
        if (t->step < reach)
            return false;
        reach += t->step * t->count;
    }
    return true;
}

// Two elements differ in some dimension of `f`; let `last` be the last one, by at least 1.
static bool meets_along(const struct footprint *f, uint32_t last)
{
    struct sum sum = {.count = 0};
    const int64_t step = magnitude(step_of(f, last));
    add_constant(&sum, step);
    if (f->shape[last] > 2)
        add_term(&sum, step, f->shape[last] - 2);
    for (uint32_t d = 0; d < last; d++) {
        if (f->shape[d] <= 1)
            continue;
        const int64_t other = magnitude(step_of(f, d)), count = f->shape[d] - 1;
        add_constant(&sum, -other * count);
        add_term(&sum, other, 2 * count);
    }
    return can_be(&sum, 1 - (int64_t)f->bits, (int64_t)f->bits - 1);
}

bool tir_footprint_overlaps_itself(const struct footprint *f)
{
    struct sum sum = {.count = 0};
    bool is_plain = true; // a term of its own for each dimension
    for (uint32_t d = 0, terms = 0; d < f->rank; d++) {
        if (f->shape[d] <= 1)
            continue;
        if (!f->strides[d])
            return true;
        add_term(&sum, magnitude(step_of(f, d)), f->shape[d] - 1);
        is_plain &= sum.count == ++terms;
    }
    if (is_plain && is_nested(&sum, f->bits))
        return false;
    for (uint32_t d = 0; d < f->rank; d++)
        if (f->shape[d] > 1 && meets_along(f, d))
            return true;
    return false;
}
