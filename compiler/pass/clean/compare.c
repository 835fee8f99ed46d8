// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// compare: numbers that differ by constants are compared by them.
//
//     let c1: i32 = add(column, i32(1));
//     let p0: bool = lt(row, column);
//     let p1: bool = lt(row, c1);              // and so on, for each column that a thread has
// becomes
//     let d: i32 = sub(row, column);
//     let p0: bool = lt(d, i32(0));
//     let p1: bool = lt(d, i32(1));
//
// A mask compares the rows of a thread with its columns, which are a number of the thread's and
// constants. In a loop each column has a register all the time; a constant is part of the
// instruction. So both sides are divided into a number and a constant, and comparisons of the same
// two numbers become comparisons of their difference.
//
// This is exact where neither a sum nor the difference wraps, which must follow from the ranges.
//
// Left alone are comparisons in different blocks, of fewer than LEAST constants, and those with a
// constant.

#include "base/map.h"
#include "ir/range.h"
#include "ir/walk.h"
#include "pass/pass.h"

enum { LEAST = 3, MOST_TERMS = 4, MOST_STEPS = 12 }; // constants; terms of a difference; its sums

struct difference {                      // of two sides, in one block
    struct tir_value *terms[MOST_TERMS]; // by their numbers
    int8_t signs[MOST_TERMS];
    uint32_t count;
    int64_t constant; // of the right side less the left one's
};

struct comparison {
    struct tir_inst *inst;
    int64_t constant; // what the difference is compared with
    struct comparison *next;
};

struct group { // comparisons of one difference
    struct difference of;
    struct comparison *first, *last;
    uint32_t constants; // different ones, if equal ones follow each other
};

struct compare {
    struct tir_func *f;
    struct tir_arena *scratch;
    const struct tir_ranges *ranges;
    uint32_t steps;
    bool changed;
};

static bool fits(const struct tir_type *t, int64_t low, int64_t high)
{
    return t->elem == TIR_I64 || (low >= INT32_MIN && high <= INT32_MAX);
}

static bool add_term(struct difference *d, struct tir_value *v, int8_t sign)
{
    uint32_t at = 0;
    while (at < d->count && d->terms[at]->id < v->id)
        at++;
    if (at < d->count && d->terms[at] == v) {
        d->signs[at] += sign;
        return d->signs[at] >= -1 && d->signs[at] <= 1;
    }
    if (d->count == MOST_TERMS)
        return false;
    for (uint32_t i = d->count++; i > at; i--) {
        d->terms[i] = d->terms[i - 1];
        d->signs[i] = d->signs[i - 1];
    }
    d->terms[at] = v;
    d->signs[at] = sign;
    return true;
}

// Adds the terms of v, or takes them away. False: there are too many.
static bool add_side(struct compare *c, struct difference *d, struct tir_value *v, int8_t sign)
{
    int64_t constant;
    if (tir_is_const_int(v, &constant)) // on the other side
        return (sign < 0 ? tir_add_checked : tir_sub_checked)(d->constant, constant, &d->constant);
    const struct tir_inst *sum = v->kind == TIR_VALUE_RESULT ? v->def : NULL;
    if (!sum || (sum->op != TIR_OP_ADD && sum->op != TIR_OP_SUB) || !c->steps ||
        !tir_range_is_exact(c->ranges, sum))
        return add_term(d, v, sign);
    c->steps--;
    return add_side(c, d, sum->operands[0], sign) &&
           add_side(c, d, sum->operands[1], sum->op == TIR_OP_ADD ? sign : -sign);
}

// Do the difference and the constant fit the type? A - B + (b - a), of sides A and B with constants
// a and b, is what is computed; what its parts are does not matter, where that fits.
static bool all_fits(const struct compare *c, const struct tir_inst *inst, int64_t constant)
{
    int64_t low[2], high[2], least, most;
    for (uint32_t i = 0; i < 2; i++)
        tir_range_get(c->ranges, inst->operands[i], &low[i], &high[i]);
    return tir_sub_checked(low[0], high[1], &least) && tir_sub_checked(high[0], low[1], &most) &&
           tir_add_checked(least, constant, &least) && tir_add_checked(most, constant, &most) &&
           fits(inst->operands[0]->type, least, most) &&
           fits(inst->operands[0]->type, constant, constant);
}

static bool is_looked_at(const struct tir_inst *inst)
{
    if (tir_ops[inst->op].rule != TIR_RULE_COMPARE)
        return false;
    const struct tir_value *a = inst->operands[0], *b = inst->operands[1];
    return a->kind != TIR_VALUE_CONST && b->kind != TIR_VALUE_CONST &&
           tir_type_is_scalar(a->type) && (a->type->elem == TIR_I32 || a->type->elem == TIR_I64);
}

static bool divide(struct compare *c, const struct tir_inst *inst, struct difference *d)
{
    *d = (struct difference){0};
    c->steps = MOST_STEPS;
    if (!add_side(c, d, inst->operands[0], 1) || !add_side(c, d, inst->operands[1], -1))
        return false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < d->count; i++)
        if (d->signs[i]) {
            d->terms[kept] = d->terms[i];
            d->signs[kept++] = d->signs[i];
        }
    d->count = kept;
    return kept > 1 && all_fits(c, inst, d->constant);
}

static bool is_same(const struct difference *a, const struct difference *b)
{
    return a->count == b->count && !memcmp(a->terms, b->terms, a->count * sizeof(*a->terms)) &&
           !memcmp(a->signs, b->signs, a->count * sizeof(*a->signs));
}

static uint64_t key_of(const struct difference *d)
{
    uint32_t ids[MOST_TERMS];
    for (uint32_t i = 0; i < d->count; i++)
        ids[i] = d->terms[i]->id;
    return tir_hash_bytes(d->signs, d->count * sizeof(*d->signs),
                          tir_hash_bytes(ids, d->count * sizeof(*ids), 0));
}

static void collect(struct compare *c, struct tir_map *groups, struct tir_inst *inst)
{
    struct difference d;
    if (!divide(c, inst, &d))
        return;
    struct group *group = tir_map_get(groups, key_of(&d));
    if (!group) {
        group = arena_new(c->scratch, struct group);
        *group = (struct group){.of = d};
        tir_map_set(groups, key_of(&d), group);
    }
    if (!is_same(&group->of, &d))
        return;
    struct comparison *comparison = arena_new(c->scratch, struct comparison);
    *comparison = (struct comparison){.inst = inst, .constant = d.constant};
    group->constants += !group->last || group->last->constant != d.constant;
    *(group->last ? &group->last->next : &group->first) = comparison;
    group->last = comparison;
}

// The terms that are added come first.
static struct tir_value *difference_of(struct compare *c, const struct group *group)
{
    struct tir_builder b = tir_builder_before(c->f, group->first->inst);
    const struct difference *d = &group->of;
    struct tir_value *sum = NULL;
    for (int8_t sign = 1; sign >= -1; sign -= 2)
        for (uint32_t i = 0; i < d->count; i++)
            if (d->signs[i] == sign)
                sum = sum ? tir_binary(&b, sign > 0 ? TIR_OP_ADD : TIR_OP_SUB, sum, d->terms[i])
                      : sign > 0
                          ? d->terms[i]
                          : tir_binary(&b, TIR_OP_SUB, tir_const_int(c->f, d->terms[i]->type, 0),
                                       d->terms[i]);
    return sum;
}

static void rewrite(struct compare *c, const struct group *group)
{
    struct tir_value *difference = difference_of(c, group);
    for (const struct comparison *at = group->first; at; at = at->next) {
        at->inst->operands[0] = difference;
        at->inst->operands[1] = tir_const_int(c->f, difference->type, at->constant);
    }
    c->changed = true;
}

static void visit(struct compare *c, struct tir_block *block)
{
    struct tir_map groups;
    tir_map_init(&groups, c->scratch);
    tir_foreach_inst_safe(inst, block) {
        if (is_looked_at(inst))
            collect(c, &groups, inst);
        for (uint32_t r = 0; r < inst->region_count; r++)
            visit(c, inst->regions[r]);
    }
    for (uint32_t i = 0; i < groups.count; i++) {
        const struct group *group = groups.entries[i].value;
        if (group->constants >= LEAST)
            rewrite(c, group);
    }
}

enum tir_change tir_pass_compare(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct compare c = {.f = f, .scratch = cx->scratch, .ranges = tir_ranges_new(cx->scratch, f)};
    visit(&c, f->body);
    if (!c.changed)
        return TIR_UNCHANGED;
    tir_pass_cse(f, cx); // rows and columns whose constants differ alike have one comparison
    tir_pass_dce(f, cx); // sums that were only compared
    return TIR_CHANGED;
}
