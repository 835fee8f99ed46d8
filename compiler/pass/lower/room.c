// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, bounds: how many elements are left of an extent from an index on, where the index is
// made of numbers that something bounds:
//
//     grid(N / 256)        cta_id * 256             256 elements are left of N
//     g in range(N / 64)   g * 64 + 32               32
//     i in range(N - 255)  i                        256
//
// Numbers are bounded by their loop, the grid or a condition around the access. The index is taken
// apart down to such a number, which is below a limit; the limit is compared with the extent.

#include "pass/lower/lower.h"

#define UNKNOWN INT64_MIN

enum { MOST_STEPS = 256 }; // of values looked at for one index

struct room {
    struct lower *lo;
    const struct tir_inst *inst; // the access
    const struct tir_value *extent;
    uint32_t steps;
};

static bool may_step(struct room *r)
{
    return r->steps && r->steps--;
}

static int64_t most_of(const struct room *r, const struct tir_value *v)
{
    int64_t low, high;
    tir_range_get(r->lo->ranges, v, &low, &high);
    return low < 0 ? UNKNOWN : high;
}

// Has it its mathematical value? What may wrap has the range of its type.
static bool is_exact(const struct room *r, const struct tir_value *v)
{
    const uint32_t bits = tir_elems[v->type->elem].bits;
    const int64_t most = most_of(r, v);
    return most != UNKNOWN && most < (bits == 64 ? INT64_MAX : bits == 32 ? INT32_MAX : 0);
}

// Is `whole` known to be at least `part` * n, by a condition of the kernel?
static bool is_stated(const struct room *r, const struct tir_value *part, int64_t n)
{
    const struct tir_func *f = r->lo->f;
    const struct tir_inst *yield = tir_yield_of(f->host);
    for (uint32_t i = tir_conditions_at(f); yield && i < yield->operand_count; i++) {
        const struct tir_inst *eq = yield->operands[i]->def;
        for (uint32_t side = 0; eq && eq->op == TIR_OP_EQ && side < 2; side++) {
            const struct tir_inst *mul = eq->operands[1 - side]->def;
            int64_t c;
            if (eq->operands[side] == r->extent && mul && mul->op == TIR_OP_MUL &&
                mul->operands[0] == part && tir_is_const_int(mul->operands[1], &c) && n <= c)
                return true;
        }
    }
    return false;
}

static int64_t left_below(struct room *r, struct tir_value *limit, int64_t scale);

// v < whole / n, rounded down or up: v * n + n - 1 < whole. Of the extent itself n are left.
static int64_t left_below_quotient(struct room *r, const struct tir_inst *def, int64_t n,
                                   int64_t scale)
{
    struct tir_value *whole = def->operands[0];
    const int64_t more = def->op == TIR_OP_CEILDIV ? n - 1 : tir_split_constant(&whole);
    const bool divides = tir_range_divisor(r->lo->ranges, r->extent) % (uint64_t)n == 0;
    if (whole == r->extent && n >= scale)
        return more >= 0 && more < n && (!more || divides) ? n : UNKNOWN;
    if (def->op == TIR_OP_CEILDIV || scale % n)
        return UNKNOWN;
    int64_t left = left_below(r, def->operands[0], scale / n);
    return left != UNKNOWN && tir_add_checked(left, (n - 1) * (scale / n), &left) ? left : UNKNOWN;
}

// 0 <= v < limit: how many elements are left from v * scale on?
static int64_t left_below(struct room *r, struct tir_value *limit, int64_t scale)
{
    const struct tir_inst *def = limit->def;
    int64_t n;
    if (!may_step(r))
        return UNKNOWN;
    if (limit == r->extent && scale == 1)
        return 1;
    if (is_stated(r, limit, scale))
        return scale;
    if (!def)
        return UNKNOWN;
    if (def->op == TIR_OP_CAST && is_exact(r, limit) && is_exact(r, def->operands[0]))
        return left_below(r, def->operands[0], scale);
    if (def->op == TIR_OP_MIN)
        return TIR_MAX(left_below(r, def->operands[0], scale),
                       left_below(r, def->operands[1], scale));
    if (def->op == TIR_OP_ADD || def->op == TIR_OP_SUB) {
        struct tir_value *rest = limit;
        n = tir_split_constant(&rest);
        return rest == r->extent && scale == 1 && n <= 0 && n > -(INT64_C(1) << 30) ? 1 - n
                                                                                    : UNKNOWN;
    }
    if ((def->op == TIR_OP_DIV || def->op == TIR_OP_CEILDIV) &&
        tir_is_const_int(def->operands[1], &n) && n > 0)
        return left_below_quotient(r, def, n, scale);
    return UNKNOWN;
}

static struct tir_value *grid_size(const struct room *r, const struct tir_inst *id)
{
    const struct tir_func *f = r->lo->f;
    const uint32_t axis = (uint32_t)tir_attr_int(id, TIR_ATTR_axis, 0);
    return axis < f->grid_count ? tir_yield_of(f->host)->operands[axis] : NULL;
}

// x as x * scale + constant.
static int64_t take_apart(const struct room *r, const struct tir_value **x, int64_t *scale)
{
    int64_t constant = 0, c;
    *scale = 1;
    for (const struct tir_inst *def; (def = (*x)->def) && is_exact(r, *x); *x = def->operands[0]) {
        if (def->op == TIR_OP_CAST && is_exact(r, def->operands[0]))
            continue;
        if (def->op != TIR_OP_ADD && def->op != TIR_OP_MUL)
            break;
        int64_t *into = def->op == TIR_OP_ADD ? &c : scale, number;
        if (!tir_is_const_int(def->operands[1], &number) || number < 1 || number > INT32_MAX ||
            *scale > INT32_MAX || !tir_mul_checked(*scale, number, into))
            break;
        if (def->op == TIR_OP_ADD && !tir_add_checked(constant, c, &constant))
            break;
    }
    return constant;
}

// The condition is v * s + c < limit, or <= limit.
static int64_t left_if(struct room *r, const struct tir_value *cond, const struct tir_value *v,
                       int64_t scale)
{
    const struct tir_inst *def = cond->def;
    if (!may_step(r) || !def)
        return UNKNOWN;
    if (def->op == TIR_OP_AND)
        return TIR_MAX(left_if(r, def->operands[0], v, scale),
                       left_if(r, def->operands[1], v, scale));
    if (def->op != TIR_OP_LT && def->op != TIR_OP_LE)
        return UNKNOWN;
    const struct tir_value *x = def->operands[0];
    int64_t s, c = take_apart(r, &x, &s), more;
    c -= def->op == TIR_OP_LE;
    if (x != v)
        return UNKNOWN;
    if (def->operands[1] == r->extent && s >= scale)
        return c + 1;
    const int64_t left = s == 1 ? left_below(r, def->operands[1], scale) : UNKNOWN;
    return left != UNKNOWN && tir_mul_checked(c, scale, &more) && tir_add_checked(left, more, &more)
               ? more
               : UNKNOWN;
}

// By what bounds v itself.
static int64_t left_from(struct room *r, const struct tir_value *v, int64_t scale)
{
    int64_t left = UNKNOWN;
    const struct tir_inst *loop = v->block ? v->block->owner : NULL;
    struct tir_value *limit = tir_map_get(&r->lo->below, tir_map_key(v));
    if (v->def && v->def->op == TIR_OP_CTA_ID)
        limit = grid_size(r, v->def);
    else if (loop && loop->op == TIR_OP_FOR && v->kind == TIR_VALUE_ARG && v->index == 0)
        limit = loop->operands[TIR_FOR_END];
    if (limit)
        left = left_below(r, limit, scale);
    for (const struct tir_inst *at = r->inst; at; at = at->block->owner) {
        const struct tir_inst *owner = at->block->owner;
        if (owner && owner->op == TIR_OP_IF && owner->regions[0] == at->block)
            left = TIR_MAX(left, left_if(r, owner->operands[0], v, scale));
    }
    return left;
}

static int64_t left_after(struct room *r, const struct tir_value *v, int64_t scale);

// From (v + other) * scale on.
static int64_t left_beside(struct room *r, const struct tir_value *v, const struct tir_value *other,
                           int64_t scale)
{
    int64_t most = most_of(r, other), taken;
    if (most == UNKNOWN && !tir_is_const_int(other, &most))
        return UNKNOWN;
    const int64_t left = left_after(r, v, scale);
    if (left == UNKNOWN || !tir_mul_checked(most, scale, &taken) ||
        !tir_sub_checked(left, taken, &taken))
        return UNKNOWN;
    return taken;
}

// From v * scale on, for v of no number below 0.
static int64_t left_after(struct room *r, const struct tir_value *v, int64_t scale)
{
    const struct tir_inst *def = v->def;
    int64_t c, product;
    if (!may_step(r) || !is_exact(r, v))
        return UNKNOWN;
    int64_t left = left_from(r, v, scale);
    if (!def)
        return left;
    switch (def->op) {
    case TIR_OP_CAST:
        return is_exact(r, def->operands[0]) ? TIR_MAX(left, left_after(r, def->operands[0], scale))
                                             : left;
    case TIR_OP_MUL:
        if (tir_is_const_int(def->operands[1], &c) && c > 0 &&
            tir_mul_checked(scale, c, &product) && product <= INT32_MAX)
            left = TIR_MAX(left, left_after(r, def->operands[0], product));
        return left;
    case TIR_OP_ADD:
        left = TIR_MAX(left, left_beside(r, def->operands[0], def->operands[1], scale));
        return TIR_MAX(left, left_beside(r, def->operands[1], def->operands[0], scale));
    default:
        return left;
    }
}

bool tir_lower_has_room(struct lower *lo, const struct tir_inst *inst,
                        const struct tir_value *start, const struct tir_value *extent, int64_t n)
{
    struct room r = {lo, inst, extent, MOST_STEPS};
    return left_after(&r, start, 1) >= n;
}
