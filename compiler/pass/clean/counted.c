// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// counted: a while that counts becomes a for, and what counts beside a for follows from its index.
//
//     let s: T, i: i64 = while carry (a: T = init, k: i64 = 0) {
//         let c: bool = lt(k, K);
//         yield c;
//     } do {
//         let b: T = dot(... k ..., a);
//         let k_2: i64 = add(k, 64);
//         yield b, k_2;
//     }
//     store(Y[0], i);
// becomes
//     let s: T = for k: i64 in range(0, K, 64) carry (a: T = init) {
//         let b: T = dot(... k ..., a);
//         yield b;
//     }
//     let i: i64 = mul(ceildiv(K, 64), 64);        // with max(K, 0), unless K is known to be >= 0
//     store(Y[0], i);
// so that the passes for loops whose rounds are known (pipeline, async_dot, roles, ...) take it.
//
// The condition compares a carried integer, plus a constant, with a bound from outside of the loop
// by < <= > >=, or by != where no round steps over the bound. The integer steps by one amount in
// all rounds (step.c). Integers wrap, so a while may go on past the limit of its type; it is only
// rewritten where ranges prove that neither its counter nor what is compared can wrap. A counter
// that goes down becomes an index that goes up from 0.
//
// Then a carried integer whose step is a multiple of the index's becomes `init + (k - begin) * m`,
// and after the loop what the number of rounds says: it needs no register, and what it addresses
// is known ahead.
//
// A while with a product that stays has a line in the receipt with the reason. Left alone: a while
// that ends by a break too, whose rounds only the data knows.

#include "ir/number.h"
#include "ir/range.h"
#include "ir/walk.h"
#include "pass/clean/step.h"
#include "pass/receipt.h"

enum { MAX_POINTS = 8 }; // values between the counter and its comparison

struct range {
    int64_t low, high;
};

// How a while counts. A point is a value of the condition that follows from the counter.
struct count {
    struct tir_inst *loop;
    uint32_t slot;
    struct {
        const struct tir_type *type;
        int64_t offset; // to the counter
    } points[MAX_POINTS];
    uint32_t point_count;
    enum tir_op compare; // counter + offset of the last point, with the bound
    struct tir_value *bound;
    struct tir_step step;
    bool down;
    struct range step_range, end_range; // both of numbers; end: of the bound less the offset
};

struct counting {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_ranges *ranges; // NULL: the program has changed since
    bool changed;
};

static struct range range_of(struct counting *c, const struct tir_value *v)
{
    if (!c->ranges)
        c->ranges = tir_ranges_new(c->cx->scratch, c->f);
    struct range r;
    tir_range_get(c->ranges, v, &r.low, &r.high);
    return r;
}

static uint64_t divisor_of(struct counting *c, const struct tir_value *v)
{
    if (!c->ranges)
        c->ranges = tir_ranges_new(c->cx->scratch, c->f);
    return tir_range_divisor(c->ranges, v);
}

// The numbers of a type that ranges can speak of: of u64 the lower half.
static struct range limits(const struct tir_type *t)
{
    const uint32_t bits = tir_elems[t->elem].bits;
    const bool is_signed = tir_elems[t->elem].kind == TIR_KIND_SIGNED;
    if (bits == 64)
        return (struct range){is_signed ? INT64_MIN : 0, INT64_MAX};
    return (struct range){is_signed ? -(INT64_C(1) << (bits - 1)) : 0,
                          (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1};
}

// The number that a constant adds: of unsigned types, too, subtracting adds one below 0.
static int64_t added(const struct tir_type *t, int64_t n)
{
    const uint32_t bits = tir_elems[t->elem].bits;
    const uint64_t sign = UINT64_C(1) << (bits - 1);
    return bits == 64 ? n : (int64_t)((((uint64_t)n & (2 * sign - 1)) ^ sign) - sign);
}

static bool fits(struct range r, const struct tir_type *t)
{
    return r.low >= limits(t).low && r.high <= limits(t).high;
}

static bool shift(struct range *r, int64_t low, int64_t high)
{
    return tir_add_checked(r->low, low, &r->low) && tir_add_checked(r->high, high, &r->high);
}

// Follows v to a carried value of the loop.
static bool find_counter(struct count *n, const struct tir_value *v)
{
    int64_t offset = 0, number;
    for (n->point_count = 0; n->point_count < MAX_POINTS;) {
        n->points[n->point_count].type = v->type;
        n->points[n->point_count++].offset = offset; // from the first point to this one
        if (v->kind == TIR_VALUE_ARG && v->block == n->loop->regions[0]) {
            n->slot = v->index;
            for (uint32_t i = 0; i < n->point_count; i++) // from the counter, not from the end
                if (!tir_sub_checked(n->points[i].offset, offset, &n->points[i].offset))
                    return false;
            return tir_type_is_scalar(v->type) && tir_elem_is_int(v->type->elem);
        }
        const struct tir_inst *def = v->def;
        if (!def || !tir_is_inside(def, n->loop))
            return false;
        const bool is_sub = def->op == TIR_OP_SUB;
        if ((is_sub || def->op == TIR_OP_ADD) && tir_is_const_int(def->operands[1], &number)) {
            number = added(v->type, number);
            if (!(is_sub ? tir_add_checked : tir_sub_checked)(offset, number, &offset))
                return false;
        } else if (def->op != TIR_OP_CAST || !tir_elem_is_int(def->operands[0]->type->elem)) {
            return false;
        }
        v = def->operands[0];
    }
    return false;
}

static enum tir_op turned(enum tir_op compare)
{
    switch (compare) {
    case TIR_OP_LT:
        return TIR_OP_GT;
    case TIR_OP_LE:
        return TIR_OP_GE;
    case TIR_OP_GT:
        return TIR_OP_LT;
    case TIR_OP_GE:
        return TIR_OP_LE;
    default:
        return compare;
    }
}

// Reads the condition. The reason why it is none of a count; NULL: it is one.
static const char *read_condition(struct count *n)
{
    const struct tir_block *block = n->loop->regions[0];
    const struct tir_inst *test = tir_yield_of(block)->operands[0]->def;
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next)
        if (inst->op != TIR_OP_YIELD && tir_has_effect(inst))
            return "its condition does more than compare";
    if (test && (test->op == TIR_OP_AND || test->op == TIR_OP_OR || test->op == TIR_OP_IF))
        return "it may end by a break or a second condition";
    if (!test || !tir_is_inside(test, n->loop) || tir_ops[test->op].rule != TIR_RULE_COMPARE ||
        test->op == TIR_OP_EQ)
        return "its condition does not compare a counter with a bound";
    for (uint32_t side = 0; side < 2; side++)
        if (find_counter(n, test->operands[side])) {
            n->bound = test->operands[!side];
            n->compare = side ? turned(test->op) : test->op;
            return tir_is_invariant(n->loop, n->bound) ? NULL : "its bound may change in the loop";
        }
    return "its condition does not compare a counter with a bound";
}

// Reads the step, which must lead to the bound.
static const char *read_step(struct counting *c, struct count *n)
{
    if (!tir_step_of(n->loop, n->slot, &n->step))
        return "its counter does not step by one amount in all rounds";
    const int64_t number = added(n->loop->operands[n->slot]->type, n->step.number);
    struct range r = {number, number};
    if (n->step.by) {
        r = range_of(c, n->step.by);
        if (r.low == INT64_MIN)
            return "its step may be 0 or of either sign";
        if (n->step.is_sub)
            r = (struct range){-r.high, -r.low};
    }
    if (r.low == INT64_MIN || (r.low <= 0 && r.high >= 0))
        return "its step may be 0 or of either sign";
    n->down = r.high < 0;
    n->step_range = n->down ? (struct range){-r.high, -r.low} : r;
    if (n->compare != TIR_OP_NE && n->down != (n->compare == TIR_OP_GT || n->compare == TIR_OP_GE))
        return "its counter steps away from its bound";
    return NULL;
}

// A number that divides the counter in all rounds, the bound and the step.
static uint64_t common_divisor(struct counting *c, const struct count *n)
{
    const struct tir_value *init = n->loop->operands[n->slot];
    const int64_t offset = n->points[0].offset; // of the first point, which is compared
    uint64_t d = tir_gcd(divisor_of(c, init), divisor_of(c, n->bound));
    d = tir_gcd(d, offset < 0 ? 0 - (uint64_t)offset : (uint64_t)offset);
    return tir_gcd(d, n->step.by ? divisor_of(c, n->step.by) : (uint64_t)n->step_range.low);
}

// Proves that the counter ends at the bound without wrapping, and learns the range of the end.
static const char *prove(struct counting *c, struct count *n)
{
    static const char *const wraps = "its counter may pass the limit of its type";
    const struct range init = range_of(c, n->loop->operands[n->slot]);
    struct range end = range_of(c, n->bound);
    if (!fits(end, n->bound->type)) // of u64, as ranges know it
        return wraps;
    if (!shift(&end, -n->points[0].offset, -n->points[0].offset))
        return wraps;
    const uint64_t common = common_divisor(c, n);
    const bool is_ne = n->compare == TIR_OP_NE;
    if (is_ne && (n->step.by || common % (uint64_t)n->step_range.low ||
                  (n->down ? init.low < end.high : init.high > end.low)))
        return "its counter may step over its bound";
    n->end_range = end;
    // The last round's counter is this far from the bound, at least.
    const bool meets = n->compare == TIR_OP_LE || n->compare == TIR_OP_GE;
    const int64_t gap = meets ? 0 : (int64_t)TIR_MIN(common, (uint64_t)n->step_range.low);
    int64_t beyond = n->step_range.high - gap; // the bound, after the last round
    struct range all = init;                   // of the counter
    if (n->down) {
        if (!tir_sub_checked(end.low, beyond, &end.low))
            return wraps;
        all.low = TIR_MIN(all.low, end.low);
    } else {
        if (!tir_add_checked(end.high, beyond, &end.high))
            return wraps;
        all.high = TIR_MAX(all.high, end.high);
    }
    for (uint32_t i = 0; i < n->point_count; i++) {
        struct range at = all;
        if (!shift(&at, n->points[i].offset, n->points[i].offset) || !fits(at, n->points[i].type))
            return wraps;
    }
    return NULL;
}

// The end of the range: the first number that the counter does not have.
static const char *learn_end(struct counting *c, struct count *n)
{
    const struct tir_type *type = n->loop->operands[n->slot]->type;
    const struct range init = range_of(c, n->loop->operands[n->slot]);
    const int64_t more = n->compare == TIR_OP_LE ? 1 : n->compare == TIR_OP_GE ? -1 : 0;
    int64_t length;
    if (!shift(&n->end_range, more, more) || !fits(n->end_range, type) ||
        n->step_range.high > limits(type).high)
        return "its bound or its step may not fit the type of its counter";
    if (n->down && (!tir_sub_checked(init.high, TIR_MIN(init.low, n->end_range.low), &length) ||
                    length > limits(type).high))
        return "the length of its range may not fit the type of its counter";
    return NULL;
}

static const char *read_count(struct counting *c, struct count *n)
{
    const char *why = read_condition(n);
    why = why ? why : read_step(c, n);
    why = why ? why : prove(c, n);
    return why ? why : learn_end(c, n);
}

// Building.

static struct tir_value *with_number(struct tir_builder *b, enum tir_op op, struct tir_value *v,
                                     int64_t number)
{
    return number ? tir_binary(b, op, v, tir_const_int(b->f, v->type, number)) : v;
}

static struct tir_value *as_type(struct tir_builder *b, struct tir_value *v,
                                 const struct tir_type *type)
{
    return v->type == type ? v : tir_build1(b, TIR_OP_CAST, type, &v, 1);
}

// The first number that the counter does not have, in its type: the bound less the offset.
static struct tir_value *build_end(struct tir_builder *b, const struct count *n)
{
    int64_t add = -n->points[0].offset;
    add += n->compare == TIR_OP_LE ? 1 : n->compare == TIR_OP_GE ? -1 : 0;
    struct tir_value *end = as_type(b, n->bound, n->loop->operands[n->slot]->type);
    return with_number(b, TIR_OP_ADD, end, add); // wraps at most on its way to what fits
}

static struct tir_value *build_step(struct tir_builder *b, const struct count *n)
{
    const struct tir_type *type = n->loop->operands[n->slot]->type;
    if (!n->step.by)
        return tir_const_int(b->f, type, n->step_range.low);
    if (n->step.is_sub == n->down)
        return n->step.by;
    return tir_binary(b, TIR_OP_SUB, tir_const_int(b->f, type, 0), n->step.by);
}

// Puts the body of the while into a for, whose counter is still a carried value: replace_counter
// takes it out.
static struct tir_inst *make_for(struct counting *c, const struct count *n)
{
    struct tir_func *f = c->f;
    struct tir_inst *old = n->loop;
    struct tir_builder b = tir_builder_before(f, old);
    struct tir_value *init = old->operands[n->slot], *end = build_end(&b, n);
    const uint32_t count = old->result_count;
    struct tir_value **operands =
        arena_array(c->cx->scratch, struct tir_value *, TIR_FOR_INIT + count);
    const struct tir_type **types = arena_array(c->cx->scratch, const struct tir_type *, count + 1);
    operands[TIR_FOR_BEGIN] = n->down ? tir_const_int(f, init->type, 0) : init;
    if (n->down && n->end_range.high > range_of(c, init).low) // there may be no round
        end = tir_binary(&b, TIR_OP_MIN, init, end);
    operands[TIR_FOR_END] = n->down ? tir_binary(&b, TIR_OP_SUB, init, end) : end;
    operands[TIR_FOR_STEP] = build_step(&b, n);
    for (uint32_t i = 0; i < count; i++) {
        operands[TIR_FOR_INIT + i] = old->operands[i];
        types[i] = old->results[i]->type;
    }
    struct tir_inst *loop =
        tir_build(&b, TIR_OP_FOR, operands, TIR_FOR_INIT + count, types, count, 1);
    struct tir_block *from = old->regions[1], *body = loop->regions[0];
    struct tir_map map;
    tir_map_init(&map, c->cx->scratch);
    tir_block_add_arg(f, body, init->type, from->args[n->slot]->name);
    for (uint32_t i = 0; i < count; i++) {
        struct tir_value *arg = tir_block_add_arg(f, body, types[i], from->args[i]->name);
        tir_map_set(&map, tir_map_key(from->args[i]), arg);
        loop->results[i]->name = old->results[i]->name;
        tir_map_set(&map, tir_map_key(old->results[i]), loop->results[i]);
    }
    struct tir_inst *yield = tir_yield_of(from);
    struct tir_builder inside = tir_builder_at_end(f, body);
    struct tir_inst *last = tir_build_yield(&inside, yield->operands, yield->operand_count);
    while (from->first != yield)
        tir_move_before(from->first, last);
    tir_replace_uses_map(f, &map);
    tir_remove(old);
    c->ranges = NULL;
    c->changed = true;
    return loop;
}

// Counters beside the index.

static struct tir_value *number_like(struct tir_builder *b, const struct tir_type *t, int64_t n)
{
    return tir_const_int(b->f, t, tir_number_wrap(t->elem, n));
}

// What the index's distance from its begin is multiplied with to give the counter's from its own.
// NULL: the counter's step is no multiple of the loop's.
static struct tir_value *multiple(struct tir_builder *b, const struct tir_inst *loop,
                                  const struct tir_step *step, const struct tir_type *type)
{
    int64_t by = 0;
    if (tir_is_const_int(loop->operands[TIR_FOR_STEP], &by) && by <= 0)
        return NULL;
    if (!step->by)
        return by && step->number % by == 0 ? number_like(b, type, step->number / by) : NULL;
    if (step->by == loop->operands[TIR_FOR_STEP])
        return number_like(b, type, step->is_sub ? -1 : 1);
    if (by != 1)
        return NULL;
    return step->is_sub ? tir_binary(b, TIR_OP_SUB, number_like(b, type, 0), step->by) : step->by;
}

// init + (index - begin) * by, which is the index where the two count together.
static struct tir_value *counter_at(struct tir_builder *b, struct tir_value *init,
                                    struct tir_value *index, struct tir_value *begin,
                                    struct tir_value *by)
{
    int64_t number = 0;
    tir_is_const_int(by, &number);
    if (init == begin && number == 1)
        return index;
    struct tir_value *distance = as_type(b, tir_binary(b, TIR_OP_SUB, index, begin), init->type);
    if (number == -1)
        return tir_binary(b, TIR_OP_SUB, init, distance);
    return tir_binary(b, TIR_OP_ADD, init, tir_binary(b, TIR_OP_MUL, distance, by));
}

// Where the index would be in the round after the last.
static struct tir_value *index_after(struct counting *c, struct tir_builder *b,
                                     const struct tir_inst *loop)
{
    struct tir_value *const *at = loop->operands;
    struct tir_value *begin = at[TIR_FOR_BEGIN], *end = at[TIR_FOR_END], *step = at[TIR_FOR_STEP];
    int64_t number;
    const bool is_whole = tir_is_const_int(step, &number) &&
                          tir_gcd(divisor_of(c, begin), divisor_of(c, end)) % (uint64_t)number == 0;
    if (range_of(c, begin).high > range_of(c, end).low)
        end = tir_binary(b, TIR_OP_MAX, end, begin);
    if (is_whole)
        return end;
    struct tir_value *rounds =
        tir_binary(b, TIR_OP_CEILDIV, tir_binary(b, TIR_OP_SUB, end, begin), step);
    return tir_binary(b, TIR_OP_ADD, begin, tir_binary(b, TIR_OP_MUL, rounds, step));
}

// Can the index's distance from its begin be computed in its type, and that after the last round
// be extended to a counter of this type? In a type that is no wider it may wrap, as the counter.
static bool has_distance(struct counting *c, const struct tir_inst *loop,
                         const struct tir_type *counter)
{
    const struct tir_value *const begin = loop->operands[TIR_FOR_BEGIN];
    const struct range from = range_of(c, begin), to = range_of(c, loop->operands[TIR_FOR_END]);
    const struct range step = range_of(c, loop->operands[TIR_FOR_STEP]);
    const bool is_wider = tir_elems[counter->elem].bits > tir_elems[begin->type->elem].bits;
    int64_t length;
    return fits(from, begin->type) && fits(to, begin->type) &&
           tir_sub_checked(TIR_MAX(from.high, to.high), from.low, &length) &&
           (!is_wider || tir_add_checked(length, step.high - 1, &length)) &&
           length <= limits(begin->type).high;
}

// Replaces a counter in the body, and after the loop; dce removes it from what is carried.
static void replace_counter(struct counting *c, struct tir_inst *loop, uint32_t slot)
{
    struct tir_step step;
    struct tir_value *init = loop->operands[TIR_FOR_INIT + slot];
    if (!tir_step_of(loop, slot, &step) || !has_distance(c, loop, init->type))
        return;
    struct tir_value *begin = loop->operands[TIR_FOR_BEGIN];
    struct tir_block *body = loop->regions[0];
    struct tir_builder before = tir_builder_before(c->f, loop);
    struct tir_builder inside = tir_builder_before(c->f, body->first);
    struct tir_value *by = multiple(&before, loop, &step, init->type);
    if (!by)
        return;
    struct tir_value *after = counter_at(&before, init, index_after(c, &before, loop), begin, by);
    struct tir_value *now = counter_at(&inside, init, body->args[0], begin, by);
    tir_replace_uses(c->f, body->args[1 + slot], now);
    tir_replace_uses(c->f, loop->results[slot], after);
    c->ranges = NULL;
    c->changed = true;
}

// The pass.

static bool has_dot(const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (inst->op == TIR_OP_DOT)
            return true;
        for (uint32_t r = 0; r < inst->region_count && inst->op == TIR_OP_IF; r++)
            if (has_dot(inst->regions[r]))
                return true;
    }
    return false;
}

// The for that a while becomes, or the loop itself.
static struct tir_inst *as_for(struct counting *c, struct tir_inst *loop)
{
    struct count n = {.loop = loop};
    const char *why = read_count(c, &n);
    if (!why)
        return make_for(c, &n);
    if (has_dot(loop->regions[1]))
        tir_receipt_refuse(c->cx, TIR_TOPIC_LOOP, TIR_WISH_PIPELINE, loop->span,
                           "loop: no pipeline, because its rounds are not counted: %s", why);
    return loop;
}

enum tir_change tir_pass_counted(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct counting c = {.f = f, .cx = cx};
    tir_foreach_inst(inst, f) {
        if (inst->op == TIR_OP_WHILE)
            inst = as_for(&c, inst);
        for (uint32_t i = 0; inst->op == TIR_OP_FOR && i < inst->result_count; i++)
            replace_counter(&c, inst, i);
    }
    if (!c.changed)
        return TIR_UNCHANGED;
    return tir_pass_clean(f, cx) == TIR_FAILED ? TIR_FAILED : TIR_CHANGED;
}
