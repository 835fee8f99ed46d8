// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bounds: one test for neighbours that are inside or outside together, none where it is known.
//
//     let i: i32 = add(base, 3);          // 8 divides base
//     let p: bool = lt(i, N);             // and N
// becomes
//     let p: bool = lt(base, N);
//
// Where the bound is a multiple of a unit, an index rounded down to a multiple of it is on the same
// side of the bound. The elements of a vector then share one predicate, which cse sees. Indices are
// followed through sums and casts that are known not to wrap.
//
//     let i: i32 = add(lane, 32);         // laneid(), from 0 to 31
//     let p: bool = lt(i, 31);
// becomes false. An access whose test is known costs nothing or has no test.

#include "pass/clean/bounds.h"

#include "ir/walk.h"
#include "pass/pass.h"

#define LARGEST_UNIT 64
#define MOST_TERMS   64 // of a sum and the casts in it; longer ones stay as they are

struct bounds {
    struct tir_func *f;
    struct tir_ranges *ranges;
    struct tir_builder b;
    int64_t unit;
    uint32_t terms_left;
};

// An index as a multiple of the unit, between low and high, and a constant.
struct split {
    struct tir_value *base; // NULL: cannot be split
    int64_t low, high, rest;
};

static bool fits(const struct tir_type *t, int64_t low, int64_t high)
{
    uint32_t bits = tir_elems[t->elem].bits;
    bool sign = tir_elems[t->elem].kind == TIR_KIND_SIGNED;
    if (bits == 64)
        return sign || low >= 0;
    int64_t top = (INT64_C(1) << (bits - sign)) - 1;
    return low >= (sign ? -top - 1 : 0) && high <= top;
}

static struct split split(struct bounds *s, struct tir_value *x);

static struct split split_sum(struct bounds *s, const struct tir_inst *add)
{
    static const struct split none = {NULL, 0, 0, 0};
    struct split a = split(s, add->operands[0]), b = split(s, add->operands[1]);
    const struct tir_type *t = add->results[0]->type;
    int64_t low, high, zero;
    if (!a.base || !b.base || !tir_add_checked(a.low, b.low, &low) ||
        !tir_add_checked(a.high, b.high, &high) || !tir_add_checked(a.rest, b.rest, &a.rest) ||
        !fits(t, low, high) || !tir_add_checked(low, a.rest, &low) ||
        !tir_add_checked(high, a.rest, &high) || !fits(t, low, high))
        return none;
    a.low = low - a.rest;
    a.high = high - a.rest;
    if (tir_is_const_int(a.base, &zero) && zero == 0)
        a.base = b.base;
    else if (!tir_is_const_int(b.base, &zero) || zero != 0)
        a.base = tir_binary(&s->b, TIR_OP_ADD, a.base, b.base);
    return a;
}

static struct split split(struct bounds *s, struct tir_value *x)
{
    struct split none = {NULL, 0, 0, 0}, r = {.base = x};
    if (!s->terms_left)
        return none;
    s->terms_left--;
    tir_range_get(s->ranges, x, &r.low, &r.high);
    if (tir_is_const_int(x, &r.rest))
        return (struct split){tir_const_int(s->f, x->type, 0), 0, 0, r.rest};
    if (tir_range_divisor(s->ranges, x) % (uint64_t)s->unit == 0)
        return r;
    const struct tir_inst *def = x->kind == TIR_VALUE_RESULT ? x->def : NULL;
    if (!def || !tir_elem_is_int(x->type->elem))
        return none;
    if (def->op == TIR_OP_ADD)
        return split_sum(s, def);
    if (def->op != TIR_OP_CAST || !tir_elem_is_int(def->operands[0]->type->elem))
        return none;
    int64_t low, high;
    tir_range_get(s->ranges, def->operands[0], &low, &high);
    r = split(s, def->operands[0]);
    if (!r.base || !fits(x->type, low, high) || !fits(x->type, r.low, r.high))
        return none;
    r.base = tir_build1(&s->b, TIR_OP_CAST, x->type, &r.base, 1);
    return r;
}

// The test with its index rounded down to a multiple of the unit; false: there is nothing to round.
static bool round_down(struct bounds *s, struct tir_inst *test)
{
    s->terms_left = MOST_TERMS;
    struct split x = split(s, test->operands[0]);
    int64_t excess = x.rest % s->unit, low;
    if (!x.base || excess == 0)
        return false;
    int64_t multiple = x.rest - (excess < 0 ? excess + s->unit : excess);
    if (!tir_add_checked(x.low, multiple, &low) || !fits(x.base->type, low, x.high))
        return false;
    test->operands[0] = x.base;
    if (multiple)
        test->operands[0] =
            tir_binary(&s->b, TIR_OP_ADD, x.base, tir_const_int(s->f, x.base->type, multiple));
    return true;
}

static bool simplify(struct bounds *s, struct tir_inst *test)
{
    const struct tir_value *limit = test->operands[1];
    if (!tir_elem_is_int(limit->type->elem))
        return false;
    uint64_t divisor = tir_range_divisor(s->ranges, limit);
    s->b = tir_builder_before(s->f, test);
    for (s->unit = LARGEST_UNIT; divisor && s->unit > 1; s->unit /= 2)
        if (divisor % (uint64_t)s->unit == 0 && round_down(s, test))
            return true;
    return false;
}

int tir_bounds_answer(const struct tir_ranges *ranges, const struct tir_inst *test)
{
    int64_t low[2], high[2];
    for (uint32_t i = 0; i < 2; i++) {
        const enum tir_elem elem = test->operands[i]->type->elem;
        if (!tir_elem_is_int(elem))
            return -1;
        tir_range_get(ranges, test->operands[i], &low[i], &high[i]);
        if (low[i] < 0 && tir_elems[elem].kind == TIR_KIND_UNSIGNED)
            return -1; // of 64 bits, and perhaps above what an int64 holds
    }
    const bool below = high[0]<low[1], above = low[0]> high[1];
    const bool most = high[0] <= low[1], least = low[0] >= high[1];
    switch (test->op) {
    case TIR_OP_LT:
        return below ? 1 : least ? 0 : -1;
    case TIR_OP_LE:
        return most ? 1 : above ? 0 : -1;
    case TIR_OP_GT:
        return above ? 1 : most ? 0 : -1;
    case TIR_OP_GE:
        return least ? 1 : below ? 0 : -1;
    case TIR_OP_EQ:
    case TIR_OP_NE:
        return below || above ? test->op == TIR_OP_NE : -1;
    default:
        return -1;
    }
}

enum tir_change tir_pass_bounds(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct bounds s = {.f = f, .ranges = tir_ranges_new(cx->scratch, f)};
    struct tir_map known;
    tir_map_init(&known, cx->scratch);
    bool changed = false;
    tir_foreach_inst(inst, f) {
        const int is =
            tir_ops[inst->op].rule == TIR_RULE_COMPARE ? tir_bounds_answer(s.ranges, inst) : -1;
        if (is >= 0)
            tir_map_set(&known, tir_map_key(inst->results[0]), tir_const_bool(f, is));
        else if (inst->op == TIR_OP_LT || inst->op == TIR_OP_GE)
            changed |= simplify(&s, inst);
    }
    tir_replace_uses_map(f, &known);
    changed |= known.count > 0;
    return changed ? TIR_CHANGED : TIR_UNCHANGED;
}
