// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// See ask.h: operations on sums of unknowns. Those that give no sum make an unknown of their own,
// and relations that hold it to what it is.

#include "pass/sync_check/linear.h"

enum { FACTORS = 12 }; // that are picked from

uint32_t tir_sync_pick(struct sync_ask *a, uint32_t count)
{
    if (tir_sync_is_empty(a->q))
        return 0;
    if (a->pick_at == SYNC_PICKS) {
        a->partial = true;
        return 0;
    }
    if (a->pick_at == a->pick_count) {
        a->pick[a->pick_count] = 0;
        a->picks[a->pick_count++] = (uint8_t)count;
    }
    return a->pick[a->pick_at++];
}

bool tir_sync_next_picks(struct sync_ask *a)
{
    while (a->pick_count && ++a->pick[a->pick_count - 1] == a->picks[a->pick_count - 1])
        a->pick_count--;
    return a->pick_count > 0;
}

// x >= y + more
void tir_sync_at_least(struct sync_ask *a, struct sync_linear x, struct sync_linear y, int64_t more)
{
    struct sync_linear form = plus(a, plus(a, x, y, -1), constant(more), -1);
    tir_sync_relate(a->q, &form, false);
}

void tir_sync_equal(struct sync_ask *a, struct sync_linear x, struct sync_linear y)
{
    struct sync_linear form = plus(a, x, y, -1);
    tir_sync_relate(a->q, &form, true);
}

static int64_t wanted_of(const struct sync_ask *a, const struct sync_linear *x)
{
    int64_t wanted[SYNC_UNKNOWNS];
    for (uint32_t i = 0; i < a->q->count; i++)
        wanted[i] = a->q->unknowns[i].wanted;
    return tir_sync_at(a->q, x, wanted);
}

// What x may be: as it is wanted, or one of a few. It is that from here on.
int64_t tir_sync_number(struct sync_ask *a, struct sync_linear x)
{
    static const int64_t few[FACTORS - 3] = {1, 2, 4, 3, 8, 64, 7, 5, 6};
    if (is_number(a, &x))
        return x.constant;
    int64_t low, high, number = wanted_of(a, &x);
    tir_sync_bounds(a->q, &x, &low, &high);
    if (low < high && high - low < FACTORS) { // each of them
        const int64_t count = high - low + 1, first = TIR_MAX(low, TIR_MIN(number, high)) - low;
        number = low + (first + tir_sync_pick(a, (uint32_t)count)) % count;
        tir_sync_equal(a, x, constant(number));
        return number;
    }
    uint32_t which = low < high ? tir_sync_pick(a, FACTORS) : 0;
    if (which < 3)
        number = which ? (which == 1 ? low : high) : TIR_MAX(low, TIR_MIN(number, high));
    else
        number = few[which - 3];
    if (low >= high)
        return low;
    a->partial = true;
    tir_sync_equal(a, x, constant(number));
    return number;
}

static bool may_be_negative(struct sync_ask *a, const struct sync_linear *x)
{
    int64_t low, high;
    tir_sync_bounds(a->q, x, &low, &high);
    if (low >= 0)
        return false;
    bool may = x->constant < 0;
    for (uint32_t i = 0; i < a->q->count; i++)
        may |= x->by[i] < 0 || (x->by[i] && a->q->unknowns[i].low < 0);
    for (uint32_t i = 0; i < a->q->relation_count && may; i++) { // max(x, 0) says that x >= 0
        const struct sync_linear *form = &a->q->relations[i].form;
        may = x->constant < form->constant || memcmp(x->by, form->by, sizeof x->by) != 0;
    }
    return may;
}

// What divides whatever x may be, as long as it is small.
static int64_t divisor_of(const struct sync_ask *a, const struct sync_linear *x)
{
    uint64_t by = (uint64_t)(x->constant < 0 ? -x->constant : x->constant);
    for (uint32_t i = 0; i < a->q->count; i++)
        by = tir_gcd(by, (uint64_t)(x->by[i] < 0 ? -x->by[i] : x->by[i]));
    return by < 1 << 20 ? TIR_MAX((int64_t)by, 1) : 1;
}

static struct sync_linear divided(struct sync_linear x, int64_t by)
{
    if (by == 1)
        return x;
    x.constant /= by;
    for (uint32_t i = 0; i < SYNC_UNKNOWNS; i++)
        x.by[i] /= by;
    return x;
}

// Is x negative? Which it is is picked, where both may be.
static bool is_negative(struct sync_ask *a, struct sync_linear x)
{
    if (!may_be_negative(a, &x))
        return false;
    bool is = tir_sync_pick(a, 2);
    if (is)
        tir_sync_at_least(a, constant(-1), x, 0);
    else
        tir_sync_at_least(a, x, constant(0), 0);
    return is;
}

static struct sync_linear negative(struct sync_ask *a, struct sync_linear x, bool is)
{
    return is ? plus(a, constant(0), x, -1) : x;
}

// x = by * quotient + rest, and the rest has the sign of x. Loosely it may have any.
static void divide(struct sync_ask *a, struct sync_linear x, int64_t by,
                   struct sync_linear *quotient, struct sync_linear *rest)
{
    if (by <= 0) {
        a->q->too_large = true;
        *quotient = *rest = constant(0);
        return;
    }
    if (is_number(a, &x)) {
        *quotient = constant(x.constant / by);
        *rest = constant(x.constant % by);
        return;
    }
    bool both = a->loose && may_be_negative(a, &x), below = !both && is_negative(a, x);
    x = negative(a, x, below);
    int64_t wanted = TIR_MAX(wanted_of(a, &x), 0);
    *rest = unknown(a, both ? 1 - by : 0, by - 1, wanted % by);
    *quotient = unknown(a, both ? -SYNC_INFINITY : 0, SYNC_INFINITY, wanted / by);
    tir_sync_equal(a, x, plus(a, *rest, *quotient, by));
    *rest = negative(a, *rest, below);
    *quotient = negative(a, *quotient, below);
}

struct sync_linear tir_sync_quotient_of(struct sync_ask *a, struct sync_linear x, int64_t by)
{
    struct sync_linear quotient, rest;
    divide(a, x, by, &quotient, &rest);
    return quotient;
}

struct sync_linear tir_sync_rest_of(struct sync_ask *a, struct sync_linear x, int64_t by)
{
    struct sync_linear quotient, rest;
    divide(a, x, by, &quotient, &rest);
    return rest;
}

struct sync_linear tir_sync_shifted(struct sync_ask *a, struct sync_linear x, int64_t by,
                                    bool is_rest)
{
    int64_t wanted = wanted_of(a, &x);
    if (!may_be_negative(a, &x))
        return is_rest ? tir_sync_rest_of(a, x, by) : tir_sync_quotient_of(a, x, by);
    struct sync_linear rest = unknown(a, 0, by - 1, wanted & (by - 1));
    struct sync_linear quotient = unknown(a, -SYNC_INFINITY, SYNC_INFINITY, wanted / by);
    tir_sync_equal(a, x, plus(a, rest, quotient, by));
    return is_rest ? rest : quotient;
}

// What divides both factors divides the product as well. Constants in the factors are multiplied
// out: (x + 4) * y and (x + 7) * y are of one product.
struct sync_linear tir_sync_times(struct sync_ask *a, struct sync_linear x, struct sync_linear y)
{
    if (is_number(a, &x))
        return plus(a, constant(0), y, x.constant);
    if (is_number(a, &y))
        return plus(a, constant(0), x, y.constant);
    int64_t of_x = divisor_of(a, &x), of_y = divisor_of(a, &y);
    x = divided(x, of_x);
    y = divided(y, of_y);
    int64_t by_y = x.constant, by_x = y.constant;
    struct sync_linear rest = plus(a, constant(0), x, by_x);
    x.constant = y.constant = 0;
    rest = plus(a, rest, y, by_y);
    return plus(a, constant(0), plus(a, rest, tir_sync_product(a->q, &x, &y), 1), of_x * of_y);
}

void tir_sync_divide_by(struct sync_ask *a, struct sync_linear x, struct sync_linear by,
                        struct sync_linear *quotient, struct sync_linear *rest)
{
    if (is_number(a, &by)) {
        divide(a, x, by.constant, quotient, rest);
        return;
    }
    int64_t low, high;
    tir_sync_bounds(a->q, &by, &low, &high);
    if (low <= 0 && high >= 0 && tir_sync_pick(a, 2)) {
        tir_sync_equal(a, by, constant(0));
        *quotient = *rest = constant(0);
        return;
    }
    bool by_below = low < 0 && is_negative(a, by), below = is_negative(a, x);
    x = negative(a, x, below);
    by = negative(a, by, by_below);
    tir_sync_at_least(a, by, constant(1), 0);
    *quotient = unknown(a, 0, SYNC_INFINITY, 1);
    *rest = plus(a, x, tir_sync_times(a, by, *quotient), -1);
    tir_sync_at_least(a, *rest, constant(0), 0);
    tir_sync_at_least(a, by, *rest, 1);
    *rest = negative(a, *rest, below);
    *quotient = negative(a, *quotient, below != by_below);
}

struct sync_linear tir_sync_ceiling(struct sync_ask *a, struct sync_linear x, struct sync_linear by)
{
    struct sync_linear less = plus(a, by, constant(1), -1), quotient, rest;
    int64_t low, high;
    tir_sync_bounds(a->q, &by, &low, &high);
    if (is_number(a, &by) && by.constant > 0)
        return tir_sync_shifted(a, plus(a, x, less, 1), by.constant, false);
    if (!is_negative(a, x)) { // else the quotient is rounded upwards as it is
        a->partial |= low < 0;
        tir_sync_at_least(a, by, constant(0), 0);
        x = plus(a, x, less, 1);
    }
    tir_sync_divide_by(a, x, by, &quotient, &rest);
    return quotient;
}

struct sync_linear tir_sync_anything(struct sync_ask *a, const struct tir_value *v)
{
    const struct tir_elem_info *elem = &tir_elems[v->type->elem];
    if (v->type->elem == TIR_BOOL)
        return unknown(a, 0, 1, 0);
    if (!tir_elem_is_int(v->type->elem) || elem->bits > 32)
        return unknown(a, -SYNC_INFINITY, SYNC_INFINITY, 0);
    bool is_signed = elem->kind == TIR_KIND_SIGNED;
    int64_t high = (INT64_C(1) << (elem->bits - is_signed)) - 1;
    return unknown(a, is_signed ? -high - 1 : 0, high, 0);
}
