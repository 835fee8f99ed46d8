// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the parts of linear.c: what they make of sums, and the values that they leave to each
// other.
#ifndef TIR_PASS_SYNC_CHECK_LINEAR_H
#define TIR_PASS_SYNC_CHECK_LINEAR_H

#include "pass/sync_check/ask.h"

static inline struct sync_linear plus(struct sync_ask *a, struct sync_linear x,
                                      struct sync_linear y, int64_t times)
{
    return tir_sync_add(a->q, &x, &y, times);
}

static inline struct sync_linear constant(int64_t x)
{
    return tir_sync_constant(x);
}

static inline struct sync_linear unknown(struct sync_ask *a, int64_t low, int64_t high,
                                         int64_t wanted)
{
    return tir_sync_single(tir_sync_unknown(a->q, low, high, wanted));
}

static inline bool is_number(const struct sync_ask *a, const struct sync_linear *x)
{
    return tir_sync_is_constant(a->q, x);
}

static inline bool is_integer(const struct tir_value *v)
{
    return tir_type_is_scalar(v->type) && !tir_elem_is_float(v->type->elem);
}

static inline const struct sync_linear *kept(struct sync_ask *a, struct sync_linear form)
{
    return tir_arena_copy(a->arena, &form, sizeof form);
}

// sums.c
// One of `count`; in time all of them. What contradicts itself needs no more picks.
uint32_t tir_sync_pick(struct sync_ask *a, uint32_t count);
struct sync_linear tir_sync_quotient_of(struct sync_ask *a, struct sync_linear x, int64_t by);
struct sync_linear tir_sync_rest_of(struct sync_ask *a, struct sync_linear x, int64_t by);
// The same of shifts and masks, which round down: the rest is not negative, whatever x is.
struct sync_linear tir_sync_shifted(struct sync_ask *a, struct sync_linear x, int64_t by,
                                    bool is_rest);
struct sync_linear tir_sync_times(struct sync_ask *a, struct sync_linear x, struct sync_linear y);
// x = by * quotient + rest, by something unknown.
void tir_sync_divide_by(struct sync_ask *a, struct sync_linear x, struct sync_linear by,
                        struct sync_linear *quotient, struct sync_linear *rest);
// The quotient, rounded upwards.
struct sync_linear tir_sync_ceiling(struct sync_ask *a, struct sync_linear x,
                                    struct sync_linear by);
// Whatever its type can hold: what comes from data.
struct sync_linear tir_sync_anything(struct sync_ask *a, const struct tir_value *v);

// grid.c: a special register.
struct sync_linear tir_sync_place_of(struct sync_ask *a, const struct tir_inst *inst);
// A number that is made when it is first asked for: *which is its unknown, and 1 more.
struct sync_linear tir_sync_along(struct sync_ask *a, uint32_t *which, int64_t low, int64_t high,
                                  int64_t wanted);

// rounds.c: an argument of a block.
struct sync_linear tir_sync_argument_of(struct sync_ask *a, const struct tir_value *v);
// Carried value i after so many rounds: between what the least and the greatest steps give, if
// steps are known.
struct sync_linear tir_sync_after_rounds(struct sync_ask *a, const struct tir_inst *loop,
                                         uint32_t i, struct sync_linear rounds);
// How many rounds a loop has run when it has ended.
struct sync_linear tir_sync_rounds_of(struct sync_ask *a, const struct tir_inst *loop);

#endif
