// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// See ask.h: values as sums of unknowns. Unknowns are also quotients and remainders, the round of a
// loop, and the numbers of a tile, a CTA and a thread.

#include "pass/sync_check/linear.h"

enum {
    MOST_DEPTH = 100, // of what a value is computed from
    MOST_BITS = 4     // of a constant, that are looked at one by one
};

static int truth_of(struct sync_ask *a, const struct tir_value *cond);

static int truth_of_comparison(struct sync_ask *a, const struct tir_inst *inst)
{
    struct sync_linear x = tir_sync_linear(a, inst->operands[0]),
                       y = tir_sync_linear(a, inst->operands[1]), apart = plus(a, x, y, -1);
    int64_t low, high; // the comparison is one of apart and 0
    tir_sync_bounds(a->q, &apart, &low, &high);
    union tir_number at_low[2] = {{.i = low}}, at_high[2] = {{.i = high}}, first, second;
    bool is_equality = inst->op == TIR_OP_EQ || inst->op == TIR_OP_NE;
    if ((low < high && (is_equality || low <= -SYNC_INFINITY || high >= SYNC_INFINITY)) ||
        !tir_number_apply(inst->op, TIR_I64, at_low, &first) ||
        !tir_number_apply(inst->op, TIR_I64, at_high, &second))
        return -1;
    return first.i == second.i ? first.i != 0 : -1;
}

// Of two, by a third one that may not be known.
static int truth_of_one(struct sync_ask *a, int which, const struct tir_value *yes,
                        const struct tir_value *no)
{
    if (which >= 0)
        return truth_of(a, which ? yes : no);
    int x = truth_of(a, yes);
    return x < 0 || truth_of(a, no) != x ? -1 : x;
}

// Is cond true, 1, or false, 0? Negative: that depends.
static int truth_of(struct sync_ask *a, const struct tir_value *cond)
{
    const struct tir_inst *inst = cond->def;
    if (cond->kind == TIR_VALUE_CONST)
        return cond->constant.i != 0;
    if (cond->kind == TIR_VALUE_ARG) {
        int64_t low, high;
        struct sync_linear form = tir_sync_linear(a, cond);
        tir_sync_bounds(a->q, &form, &low, &high);
        return low == high ? low != 0 : -1;
    }
    switch (inst->op) {
    case TIR_OP_AND:
    case TIR_OP_OR: {
        int ends = inst->op == TIR_OP_OR, x = truth_of(a, inst->operands[0]);
        int y = x == ends ? ends : truth_of(a, inst->operands[1]);
        return y == ends ? ends : x < 0 || y < 0 ? -1 : !ends;
    }
    case TIR_OP_NOT: {
        int x = truth_of(a, inst->operands[0]);
        return x < 0 ? -1 : !x;
    }
    case TIR_OP_IF:
        return truth_of_one(a, truth_of(a, inst->operands[0]),
                            tir_yield_of(inst->regions[0])->operands[cond->index],
                            tir_yield_of(inst->regions[1])->operands[cond->index]);
    case TIR_OP_WHERE:
        return truth_of_one(a, truth_of(a, inst->operands[0]), inst->operands[1],
                            inst->operands[2]);
    default:
        break;
    }
    if (!tir_sync_is_comparison(inst) || inst->operands[0]->type->elem == TIR_BOOL)
        return -1;
    return truth_of_comparison(a, inst);
}

// Makes cond true or false, and says which.
static bool either(struct sync_ask *a, const struct tir_value *cond)
{
    int truth = truth_of(a, cond);
    if (truth >= 0)
        return truth;
    bool yes = !tir_sync_pick(a, 2);
    tir_sync_demand(a, cond, yes);
    return yes;
}

// The smaller or the larger one of two.
static struct sync_linear extreme_of(struct sync_ask *a, struct sync_linear x, struct sync_linear y,
                                     bool larger)
{
    struct sync_linear apart = plus(a, x, y, -1);
    int64_t low, high;
    tir_sync_bounds(a->q, &apart, &low, &high);
    if (low >= 0 || high <= 0)
        return (low >= 0) == larger ? x : y;
    if (tir_sync_pick(a, 2)) {
        struct sync_linear other = x;
        x = y;
        y = other;
    }
    tir_sync_at_least(a, larger ? x : y, larger ? y : x, 0);
    return x;
}

static struct sync_linear other_of(struct sync_ask *a, const struct tir_inst *inst)
{
    union tir_number in[3], out;
    if (!tir_has_trait(inst, TIR_PURE) || !inst->operand_count || inst->operand_count > 3)
        return tir_sync_anything(a, inst->results[0]);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (!is_integer(inst->operands[i]))
            return tir_sync_anything(a, inst->results[0]);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        in[i].i = tir_sync_number(a, tir_sync_linear(a, inst->operands[i]));
    if (!tir_number_apply(inst->op, inst->operands[inst->operand_count - 1]->type->elem, in, &out))
        return tir_sync_anything(a, inst->results[0]);
    return constant(out.i);
}

// What a cast to 8 or 16 bits keeps of x.
static struct sync_linear wrapped(struct sync_ask *a, const struct tir_value *to,
                                  struct sync_linear x)
{
    const struct tir_elem_info *elem = &tir_elems[to->type->elem];
    if (elem->bits >= 32)
        return x;
    const bool is_signed = elem->kind == TIR_KIND_SIGNED;
    const int64_t most = (INT64_C(1) << (elem->bits - is_signed)) - 1;
    const int64_t least = is_signed ? -most - 1 : 0;
    int64_t low, high;
    tir_sync_bounds(a->q, &x, &low, &high);
    if (low >= least && high <= most)
        return x;
    struct sync_linear rest = unknown(a, least, most, 0);
    struct sync_linear times = unknown(a, -SYNC_INFINITY, SYNC_INFINITY, 0);
    tir_sync_equal(a, x, plus(a, rest, times, INT64_C(1) << elem->bits));
    return rest;
}

// x & bits, x | bits or x ^ bits of a constant: what it does to each bit is added to x.
static struct sync_linear with_bits(struct sync_ask *a, enum tir_op op, struct sync_linear x,
                                    int64_t bits)
{
    struct sync_linear sum = op == TIR_OP_AND ? constant(0) : x;
    for (uint32_t i = 0; bits >> i; i++) {
        if (!(bits >> i & 1))
            continue;
        const int64_t worth = INT64_C(1) << i;
        const struct sync_linear above = tir_sync_shifted(a, x, worth, false);
        const struct sync_linear bit = tir_sync_shifted(a, above, 2, true);
        if (op == TIR_OP_AND)
            sum = plus(a, sum, bit, worth);
        else
            sum = plus(a, plus(a, sum, constant(1), worth), bit,
                       op == TIR_OP_XOR ? -2 * worth : -worth);
    }
    return sum;
}

static uint32_t count_bits(int64_t x)
{
    uint32_t count = 0;
    for (; x > 0; x &= x - 1)
        count++;
    return count;
}

static struct sync_linear computed_of(struct sync_ask *a, const struct tir_inst *inst)
{
    const struct tir_value *second = inst->operand_count > 1 ? inst->operands[1] : NULL;
    struct sync_linear x = tir_sync_linear(a, inst->operands[0]);
    int64_t c = second && second->kind == TIR_VALUE_CONST ? second->constant.i : -1;
    switch (inst->op) {
    case TIR_OP_ADD:
        return plus(a, x, tir_sync_linear(a, second), 1);
    case TIR_OP_SUB:
        return plus(a, x, tir_sync_linear(a, second), -1);
    case TIR_OP_NEG:
        return plus(a, constant(0), x, -1);
    case TIR_OP_CAST:
        return wrapped(a, inst->results[0], x);
    case TIR_OP_BITCAST:
        return x;
    case TIR_OP_MUL:
        return tir_sync_times(a, x, tir_sync_linear(a, second));
    case TIR_OP_MIN:
    case TIR_OP_MAX:
        return extreme_of(a, x, tir_sync_linear(a, second), inst->op == TIR_OP_MAX);
    case TIR_OP_ABS:
        return extreme_of(a, x, plus(a, constant(0), x, -1), true);
    case TIR_OP_CEILDIV:
        return tir_sync_ceiling(a, x, tir_sync_linear(a, second));
    case TIR_OP_DIV:
    case TIR_OP_REM: {
        struct sync_linear by = tir_sync_linear(a, second), quotient, rest;
        tir_sync_divide_by(a, x, by, &quotient, &rest);
        return inst->op == TIR_OP_REM ? rest : quotient;
    }
    case TIR_OP_SHL:
        if (c >= 0 && c < 20)
            return plus(a, constant(0), x, INT64_C(1) << c);
        break;
    case TIR_OP_SHR:
        if (c >= 0 && c < 20)
            return tir_sync_shifted(a, x, INT64_C(1) << c, false);
        break;
    case TIR_OP_AND:
        if (c > 0 && c < 1 << 20 && !(c & (c + 1)))
            return tir_sync_shifted(a, x, c + 1, true);
        if (c >= 0 && c < 1 << 20 && count_bits(c) <= MOST_BITS)
            return with_bits(a, inst->op, x, c);
        break;
    case TIR_OP_OR:
    case TIR_OP_XOR:
        if (c >= 0 && c < 1 << 20 && count_bits(c) <= MOST_BITS)
            return with_bits(a, inst->op, x, c);
        break;
    default:
        break;
    }
    return other_of(a, inst);
}

// Data that says how much there is, such as offsets of 64 bits: no more than an argument says.
static struct sync_linear count_of(struct sync_ask *a, const struct tir_value *v)
{
    const struct tir_elem_info *elem = &tir_elems[v->type->elem];
    if (elem->bits <= 32)
        return tir_sync_anything(a, v);
    return unknown(a, elem->kind == TIR_KIND_SIGNED ? -INT32_MAX : 0, INT32_MAX, 0);
}

static struct sync_linear result_of(struct sync_ask *a, const struct tir_value *v)
{
    const struct tir_inst *inst = v->def;
    switch (inst->op) {
    case TIR_OP_FOR:
    case TIR_OP_WHILE:
        return tir_sync_after_rounds(a, inst, v->index, tir_sync_rounds_of(a, inst));
    case TIR_OP_IF:
        return tir_sync_linear(
            a, tir_yield_of(inst->regions[!either(a, inst->operands[0])])->operands[v->index]);
    case TIR_OP_WHERE:
        return tir_sync_linear(a, inst->operands[either(a, inst->operands[0]) ? 1 : 2]);
    case TIR_OP_NUM_THREADS:
        return constant(a->p->threads);
    case TIR_OP_ALIGNMENT:
        return constant(16);
    case TIR_OP_CTA_ID:
    case TIR_OP_NUM_CTAS:
    case TIR_OP_CLUSTER_ID:
    case TIR_OP_NUM_CLUSTERS:
    case TIR_OP_CTA_IN_CLUSTER:
    case TIR_OP_CLUSTER_SIZE:
    case TIR_OP_CTA_RANK:
    case TIR_OP_TID:
    case TIR_OP_LANEID:
    case TIR_OP_WARPID:
    case TIR_OP_WGID:
    case TIR_OP_TID_IN_WG:
        return tir_sync_place_of(a, inst);
    default:
        break;
    }
    if (tir_sync_is_count(a->p, inst)) {
        struct sync_linear form = count_of(a, v);
        tir_sync_note_load(a, inst, form);
        return form;
    }
    const uint64_t key = tir_sync_rounded_key(a->p, v);
    if (key)
        return tir_sync_rounded(a, key, count_of(a, v));
    bool computes = tir_has_trait(inst, TIR_PURE) && inst->operand_count && !inst->region_count &&
                    is_integer(inst->operands[0]);
    return computes ? computed_of(a, inst) : tir_sync_anything(a, v);
}

static bool decides(const struct tir_inst *inst) // what a condition is made of
{
    bool logic = inst->op == TIR_OP_AND || inst->op == TIR_OP_OR || inst->op == TIR_OP_NOT ||
                 inst->op == TIR_OP_IF || inst->op == TIR_OP_WHERE;
    return logic || tir_sync_is_comparison(inst);
}

struct sync_linear tir_sync_linear(struct sync_ask *a, const struct tir_value *v)
{
    if (v->kind == TIR_VALUE_CONST)
        return is_integer(v) ? constant(v->constant.i) : tir_sync_anything(a, v);
    struct sync_known *known = &a->known[v->id];
    bool now = known->time == a->time || !a->following || !tir_is_made_in(a->following, v);
    if (known->form && now) {
        a->of_thread |= known->of_thread;
        return *known->form;
    }
    struct sync_linear form;
    if (a->q->too_large || !is_integer(v) || ++a->depth > MOST_DEPTH) {
        a->q->too_large |= a->depth > MOST_DEPTH;
        return tir_sync_anything(a, v);
    }
    const bool of_thread = a->of_thread;
    a->of_thread = false;
    if (v->kind == TIR_VALUE_ARG)
        form = tir_sync_argument_of(a, v);
    else if (v->type->elem == TIR_BOOL && decides(v->def))
        form = constant(either(a, v));
    else
        form = result_of(a, v);
    a->depth--;
    *known = (struct sync_known){kept(a, form), a->time, a->of_thread};
    a->of_thread |= of_thread;
    return form;
}

static void compare(struct sync_ask *a, enum tir_op op, struct sync_linear x, struct sync_linear y)
{
    if (op == TIR_OP_NE)
        op = tir_sync_pick(a, 2) ? TIR_OP_LT : TIR_OP_GT;
    bool less = op == TIR_OP_LT || op == TIR_OP_LE;
    if (op == TIR_OP_EQ)
        tir_sync_equal(a, x, y);
    else
        tir_sync_at_least(a, less ? y : x, less ? x : y, op == TIR_OP_LT || op == TIR_OP_GT);
}

static enum tir_op opposite(enum tir_op op)
{
    static const enum tir_op pairs[][2] = {
        {TIR_OP_EQ, TIR_OP_NE}, {TIR_OP_LT, TIR_OP_GE}, {TIR_OP_LE, TIR_OP_GT}};
    for (uint32_t i = 0; i < TIR_COUNT_OF(pairs); i++)
        for (uint32_t k = 0; k < 2; k++)
            if (pairs[i][k] == op)
                return pairs[i][!k];
    return op;
}

// One of two, by a condition: what can never be as it is wanted is not it.
static void demand_one(struct sync_ask *a, const struct tir_value *which,
                       const struct tir_value *yes, const struct tir_value *no, bool wanted)
{
    const struct tir_value *of[] = {no, yes};
    for (uint32_t i = 0; i < 2 && truth_of(a, which) < 0; i++)
        if (truth_of(a, of[i]) == !wanted)
            tir_sync_demand(a, which, !i);
    tir_sync_demand(a, of[either(a, which)], wanted);
}

void tir_sync_demand(struct sync_ask *a, const struct tir_value *cond, bool wanted)
{
    const struct tir_inst *inst = cond->def;
    if (cond->kind != TIR_VALUE_RESULT || !decides(inst)) {
        tir_sync_equal(a, tir_sync_linear(a, cond), constant(wanted));
        return;
    }
    switch (inst->op) {
    case TIR_OP_NOT:
        tir_sync_demand(a, inst->operands[0], !wanted);
        return;
    case TIR_OP_AND:
    case TIR_OP_OR:
        if ((inst->op == TIR_OP_AND) == wanted) {
            tir_sync_demand(a, inst->operands[0], wanted);
            tir_sync_demand(a, inst->operands[1], wanted);
        } else {
            tir_sync_demand(a, inst->operands[tir_sync_pick(a, 2)], wanted);
        }
        return;
    case TIR_OP_IF:
        demand_one(a, inst->operands[0], tir_yield_of(inst->regions[0])->operands[cond->index],
                   tir_yield_of(inst->regions[1])->operands[cond->index], wanted);
        return;
    case TIR_OP_WHERE:
        demand_one(a, inst->operands[0], inst->operands[1], inst->operands[2], wanted);
        return;
    default:
        compare(a, wanted ? inst->op : opposite(inst->op), tir_sync_linear(a, inst->operands[0]),
                tir_sync_linear(a, inst->operands[1]));
        return;
    }
}
