// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// narrow: numbers of elements are compared in 32 bits.
//
//     let key: i64[128, 1] = add(broadcast(t), cast(rows));        // rows, columns: i32, 0 .. 127
//     let at: i64[1, 128] = add(broadcast(q), cast(columns));
//     let c: bool[128, 128] = lt(broadcast(key), broadcast(at));
// becomes
//     let d: i64 = sub(q, t);
//     let e: i32 = cast(min(max(d, -128), 128));
//     let x: i32[128, 1] = sub(rows, broadcast(e));
//     let c: bool[128, 128] = lt(broadcast(x), broadcast(columns));
//
// Masks compare positions, which are 64 bits wide, and two instructions with a carry made each
// element's, two more compared it. What differs from element to element is a few numbers below the
// extents of tiles. So both sides are divided into those and scalars; the scalars' difference is
// cut to outside of what the elements' can be, which changes no answer. It is cut to a multiple of
// UNIT, so that a multiple of 8 stays one: `bounds` then makes one test of a vector's eight.
// Elements of two shapes stay on two sides, the scalar on that of which a thread has fewer.
//
// This is exact if no sum wraps, before or after, which must follow from the ranges of the values:
// a dimension has at most 2^48 elements. It comes after `split`, which reads conditions as they
// were.
//
// Not done here: elements of three shapes; numbers of elements above 2^25; products of them;
// equality.

#include "ir/range.h"
#include "ir/walk.h"
#include "pass/pass.h"
#include "pass/receipt.h"

enum { MOST_TERMS = 8, MOST_STEPS = 64, UNIT = 64 };
#define MOST_OF_ELEMENTS (INT64_C(1) << 28)
#define MOST_OF_SCALARS  (INT64_C(1) << 62)

static const char may_wrap[] = "sums of its numbers may wrap";

struct term {
    struct tir_value *v; // a scalar, or a tile of few numbers
    int64_t by;          // 1 or -1
};

// The terms of one side less those of the other.
struct difference {
    struct tir_func *f;
    const struct tir_ranges *ranges;
    struct term scalars[MOST_TERMS], tiles[MOST_TERMS];
    uint32_t scalar_count, tile_count, steps;
    int64_t constant;
    int64_t low, high; // of the tiles' sum
    int64_t most;      // of the scalars' sum and its parts, either way
    const char *refusal;
};

static bool has_range(const struct difference *d, const struct tir_value *v, int64_t most,
                      int64_t *low, int64_t *high)
{
    tir_range_get(d->ranges, v, low, high);
    return *low >= -most && *high <= most;
}

static bool refuse(struct difference *d, const char *why)
{
    d->refusal = why;
    return false;
}

static bool add_scalar(struct difference *d, struct tir_value *v, int64_t by)
{
    int64_t low, high;
    if (d->scalar_count == MOST_TERMS || v->type->elem != TIR_I64)
        return false;
    if (!has_range(d, v, MOST_OF_SCALARS, &low, &high) ||
        !tir_add_checked(d->most, TIR_MAX(-low, high), &d->most) || d->most > MOST_OF_SCALARS)
        return refuse(d, may_wrap);
    d->scalars[d->scalar_count++] = (struct term){v, by};
    return true;
}

static bool add_constant(struct difference *d, int64_t value, int64_t by)
{
    if (value < -MOST_OF_SCALARS || value > MOST_OF_SCALARS)
        return refuse(d, may_wrap);
    d->most += value < 0 ? -value : value;
    d->constant += by * value;
    return d->most <= MOST_OF_SCALARS || refuse(d, may_wrap);
}

static bool add_tile(struct difference *d, struct tir_value *v, int64_t by)
{
    int64_t low, high;
    if (d->tile_count == MOST_TERMS || v->type->elem != TIR_I32 ||
        !has_range(d, v, MOST_OF_ELEMENTS / MOST_TERMS, &low, &high))
        return false;
    d->low += by > 0 ? low : -high;
    d->high += by > 0 ? high : -low;
    d->tiles[d->tile_count++] = (struct term){v, by};
    return true;
}

// Adds by * v. False: it is no sum of scalars and tiles of few numbers, or may wrap.
static bool add_value(struct difference *d, struct tir_value *v, int64_t by)
{
    int64_t low, high;
    if (d->steps++ == MOST_STEPS)
        return false;
    if (v->kind == TIR_VALUE_CONST)
        return add_constant(d, v->constant.i, by);
    if (!tir_type_is_tile(v->type))
        return add_scalar(d, v, by);
    const struct tir_inst *def = v->def;
    if (!def)
        return false;
    if (!has_range(d, v, MOST_OF_SCALARS, &low, &high)) // else a sum might have wrapped
        return refuse(d, may_wrap);
    switch (def->op) {
    case TIR_OP_BROADCAST:
        return add_value(d, def->operands[0], by);
    case TIR_OP_ADD:
        return add_value(d, def->operands[0], by) && add_value(d, def->operands[1], by);
    case TIR_OP_SUB:
        return add_value(d, def->operands[0], by) && add_value(d, def->operands[1], -by);
    case TIR_OP_NEG:
        return add_value(d, def->operands[0], -by);
    case TIR_OP_CAST:
        return add_tile(d, def->operands[0], by);
    default:
        return false;
    }
}

static const struct tir_type *with_elem(const struct tir_func *f, const struct tir_type *type,
                                        enum tir_elem elem)
{
    struct tir_type t = *type;
    t.elem = elem;
    return tir_type_get(f->module->types, &t);
}

static bool has_scalar(const struct difference *d, int64_t by)
{
    for (uint32_t i = 0; i < d->scalar_count; i++)
        if (d->scalars[i].by == by)
            return true;
    return false;
}

// The next multiple of UNIT, further down or up.
static int64_t outwards(int64_t x, int64_t by)
{
    return by * tir_ceil_div(by * x, UNIT) * UNIT;
}

// The scalars' sum, negated, cut to outside of the tiles'.
static struct tir_value *build_bound(const struct difference *d, struct tir_builder *b)
{
    const struct tir_type *wide = tir_type_scalar(d->f->module->types, TIR_I64);
    struct tir_value *sum = NULL;
    if (d->constant || !has_scalar(d, -1))
        sum = tir_const_int(d->f, wide, -d->constant);
    for (int64_t by = -1; by <= 1; by += 2)
        for (uint32_t i = 0; i < d->scalar_count; i++)
            if (d->scalars[i].by == by)
                sum = !sum ? d->scalars[i].v
                           : tir_binary(b, by < 0 ? TIR_OP_ADD : TIR_OP_SUB, sum, d->scalars[i].v);
    sum = tir_binary(b, TIR_OP_MAX, sum, tir_const_int(d->f, wide, outwards(d->low - 1, -1)));
    sum = tir_binary(b, TIR_OP_MIN, sum, tir_const_int(d->f, wide, outwards(d->high + 1, 1)));
    return tir_build1(b, TIR_OP_CAST, tir_type_scalar(d->f->module->types, TIR_I32), &sum, 1);
}

// The sum of the tiles of one type, `by` times; less the scalar, if there is one.
static struct tir_value *build_sum(const struct difference *d, struct tir_builder *b,
                                   const struct tir_type *type, int64_t by, struct tir_value *less)
{
    struct tir_value *sum = NULL;
    for (uint32_t pass = 0; pass < 2; pass++) // first what is added
        for (uint32_t i = 0; i < d->tile_count; i++) {
            const bool is_added = d->tiles[i].by == by;
            if (d->tiles[i].v->type != type || is_added == pass)
                continue;
            sum = sum        ? tir_binary(b, is_added ? TIR_OP_ADD : TIR_OP_SUB, sum, d->tiles[i].v)
                  : is_added ? d->tiles[i].v
                             : tir_build1(b, TIR_OP_NEG, type, &d->tiles[i].v, 1);
        }
    if (!less)
        return sum;
    return tir_binary(b, TIR_OP_SUB, sum, tir_build1(b, TIR_OP_BROADCAST, type, &less, 1));
}

static struct tir_value *spread(struct tir_builder *b, struct tir_value *v,
                                const struct tir_type *type)
{
    return v->type == type ? v : tir_build1(b, TIR_OP_BROADCAST, type, &v, 1);
}

static int64_t registers(const struct tir_type *t)
{
    return t->layout ? tir_layout_size(t->layout, TIR_AXIS_REG) : tir_type_count(t);
}

// The types of the tiles, first that of which a thread has fewer. False: there are more than two.
static bool find_types(struct difference *d, const struct tir_type *types[2])
{
    types[0] = types[1] = NULL;
    for (uint32_t i = 0; i < d->tile_count; i++) {
        const struct tir_type *t = d->tiles[i].v->type;
        if (!types[0] || types[0] == t)
            types[0] = t;
        else if (!types[1] || types[1] == t)
            types[1] = t;
        else
            return refuse(d, "its numbers have more than two shapes");
    }
    const struct tir_type *first = types[0];
    if (types[1] && registers(types[1]) < registers(first)) {
        types[0] = types[1];
        types[1] = first;
    }
    return first;
}

static bool is_comparison(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_LT || inst->op == TIR_OP_LE || inst->op == TIR_OP_GT ||
           inst->op == TIR_OP_GE;
}

static bool is_added(const struct difference *d, const struct tir_type *type)
{
    for (uint32_t i = 0; i < d->tile_count; i++)
        if (d->tiles[i].v->type == type && d->tiles[i].by > 0)
            return true;
    return false;
}

// The negated difference, which compares with 0 the other way round.
static enum tir_op negate(struct difference *d, enum tir_op op)
{
    for (uint32_t i = 0; i < d->scalar_count; i++)
        d->scalars[i].by = -d->scalars[i].by;
    for (uint32_t i = 0; i < d->tile_count; i++)
        d->tiles[i].by = -d->tiles[i].by;
    d->constant = -d->constant;
    const int64_t low = d->low;
    d->low = -d->high;
    d->high = -low;
    return op == TIR_OP_LT   ? TIR_OP_GT
           : op == TIR_OP_LE ? TIR_OP_GE
           : op == TIR_OP_GT ? TIR_OP_LT
                             : TIR_OP_LE;
}

// `answers`: result of a comparison -> what it is replaced by.
static bool narrow(struct difference *d, struct tir_inst *inst, struct tir_map *answers)
{
    const struct tir_type *types[2], *result = inst->results[0]->type;
    if (!add_value(d, inst->operands[0], 1) || !add_value(d, inst->operands[1], -1) ||
        !find_types(d, types))
        return false;
    const enum tir_op op = is_added(d, types[0]) ? inst->op : negate(d, inst->op);
    struct tir_builder b = tir_builder_before(d->f, inst);
    struct tir_value *bound = build_bound(d, &b), *x, *y;
    if (types[1]) {
        const struct tir_type *both = with_elem(d->f, result, TIR_I32);
        x = spread(&b, build_sum(d, &b, types[0], 1, bound), both);
        y = spread(&b, build_sum(d, &b, types[1], -1, NULL), both);
    } else {
        x = build_sum(d, &b, types[0], 1, NULL);
        y = tir_build1(&b, TIR_OP_BROADCAST, types[0], &bound, 1);
    }
    struct tir_value *answer = tir_binary(&b, op, x, y);
    tir_map_set(answers, tir_map_key(inst->results[0]), spread(&b, answer, result));
    tir_remove(inst);
    return true;
}

enum tir_change tir_pass_narrow(struct tir_func *f, struct tir_pass_cx *cx)
{
    VEC(struct tir_inst *) comparisons = {0};
    tir_foreach_inst(inst, f)
        if (is_comparison(inst) && tir_type_is_tile(inst->results[0]->type) &&
            inst->operands[0]->type->elem == TIR_I64)
            vec_push(cx->scratch, &comparisons, inst);
    if (!comparisons.len)
        return TIR_UNCHANGED;
    const struct tir_ranges *ranges = tir_ranges_new(cx->scratch, f);
    struct tir_map answers;
    tir_map_init(&answers, cx->scratch);
    for (uint32_t i = 0; i < comparisons.len; i++) {
        struct difference d = {.f = f, .ranges = ranges};
        const struct tir_span span = comparisons.at[i]->span;
        if (!narrow(&d, comparisons.at[i], &answers) && d.refusal && d.tile_count)
            tir_receipt_refuse(cx, TIR_TOPIC_COMPARISON, TIR_WISH_NONE, span,
                               "comparison: in 64 bits, because %s", d.refusal);
    }
    if (!answers.count)
        return TIR_UNCHANGED;
    tir_replace_uses_map(f, &answers);
    tir_pass_dce(f, cx);
    return TIR_CHANGED;
}
