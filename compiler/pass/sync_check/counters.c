// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on the counters of loops: which of them only count rounds. A carried value that each
// round changes in the same direction (m += 64; or m += 32, as an `if` decides) is a counter too.
//
// A counter in an index or a parity is part of the state, which then never recurs. A counter that
// is only compared with invariants of the loop (k + 256 < K: is there a slot to fill?) is not: the
// result changes once, a fixed number of rounds before the end, as in short loops, or at a fixed
// round (k < 640), beyond which the replay then goes. If a counter chooses among slots (k / 64 % 2)
// or rounds (k % 1024 != 77), its remainder is part of the state, and the replay goes on until the
// remainder recurs. A counter that is an index as it is, or with something added (s[a + k]), goes
// on to where the buffer ends: from there on nothing is accessed.

#include "pass/sync_check/sync_check.h"

enum { MOST_ROUNDS = 4096, MOST_PERIOD = 1 << 20, MOST_CYCLE = 1024, MOST_PLACES = 256 };

struct family { // the values that follow a loop's counter, up or down
    struct sync_program *p;
    const struct tir_inst *loop;
    int64_t carried; // which value; negative: the counter of a for
    bool has_sums;   // it is carried, and sums alone change it:
    struct sync_step step;
    int64_t period;    // what remainders say of the counter repeats after that; 0: there are none
    struct bitset has; // by value id
};

// Does v stay the same while the loop runs?
static bool is_invariant(const struct family *f, const struct tir_value *v)
{
    if (v->kind == TIR_VALUE_CONST || bitset_has(&f->p->fixed, v->id))
        return true;
    const struct tir_block *block = v->def ? v->def->block : v->block;
    for (; block->owner; block = block->owner->block)
        if (block->owner == f->loop)
            return false;
    return true;
}

static bool is_monotone(const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_ADD:
    case TIR_OP_SUB:
    case TIR_OP_MUL:
    case TIR_OP_MIN:
    case TIR_OP_MAX:
    case TIR_OP_CAST:
        return tir_type_is_scalar(inst->results[0]->type) &&
               tir_elem_is_int(inst->results[0]->type->elem);
    case TIR_OP_DIV:
    case TIR_OP_SHL:
    case TIR_OP_SHR:
        return inst->operands[1]->kind == TIR_VALUE_CONST;
    default:
        return false;
    }
}

static uint32_t lead_of(const struct tir_inst *loop)
{
    return loop->op == TIR_OP_FOR ? TIR_FOR_INIT : 0;
}

static uint32_t skip_of(const struct tir_inst *loop)
{
    return loop->op == TIR_OP_FOR;
}

static const struct tir_block *body_of(const struct tir_inst *loop)
{
    return loop->regions[loop->op == TIR_OP_WHILE];
}

// What makes the carried value that of the next round, if it is one operation in one direction.
static const struct tir_inst *operation_of(const struct family *f)
{
    const struct tir_block *body = body_of(f->loop);
    const struct tir_value *arg = body->args[skip_of(f->loop) + f->carried],
                           *next = tir_yield_of(body)->operands[f->carried];
    const struct tir_inst *step = next->def;
    if (!step || next->kind != TIR_VALUE_RESULT || !tir_type_is_scalar(next->type) ||
        !tir_elem_is_int(next->type->elem) || step->operand_count != 2 ||
        step->operands[0] != arg || !is_invariant(f, step->operands[1]))
        return NULL;
    bool steps = step->op == TIR_OP_ADD || step->op == TIR_OP_SUB;
    bool scales = step->op == TIR_OP_MUL || step->op == TIR_OP_DIV;
    return steps || (scales && step->operands[1]->kind == TIR_VALUE_CONST) ? step : NULL;
}

// Does each round change the counter, if at all, in the same direction?
static bool is_directed(struct family *f)
{
    f->has_sums = f->carried >= 0 && tir_sync_step(f->p, f->loop, (uint32_t)f->carried, &f->step) &&
                  f->step.directed;
    return f->carried < 0 || f->has_sums || operation_of(f);
}

// A value between that of a round and that of the next one.
static bool is_between(const struct family *f, const struct tir_value *v)
{
    return f->has_sums && v->kind != TIR_VALUE_CONST && bitset_has(&f->step.way, v->id);
}

// Does inst take one of the family, and else only what does not change?
static bool takes_one(const struct family *f, const struct tir_inst *inst)
{
    uint32_t of = 0;
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[i];
        bool member = v && v->kind != TIR_VALUE_CONST && bitset_has(&f->has, v->id);
        if (!member && (!v || !is_invariant(f, v)))
            return false;
        of += member;
    }
    return of == 1;
}

static bool is_needed(const struct sync_program *p, const struct tir_value *v)
{
    return !tir_type_is_tile(v->type) && bitset_has(&p->numbers, v->id);
}

// Whether operand i of inst decides anything, as a number.
static bool matters(const struct family *f, const struct tir_inst *inst, uint32_t i)
{
    const struct sync_program *p = f->p;
    switch (inst->op) {
    case TIR_OP_LOAD:
    case TIR_OP_STORE:
    case TIR_OP_ATOMIC:
        // A value loaded from a tensor is unknown, from any place.
        return tir_ref_base(inst)->type->space != TIR_SPACE_GLOBAL &&
               !tir_sync_reads_anywhere(p, inst);
    case TIR_OP_COPY_ASYNC:
        return i == TIR_COPY_TO || i == TIR_COPY_MBAR || i == TIR_COPY_CTAS ||
               tir_ref_base(inst)->type->space != TIR_SPACE_GLOBAL;
    case TIR_OP_STORE_ASYNC:
        return i == 0;
    case TIR_OP_YIELD: {
        const struct tir_inst *owner = inst->block->owner;
        if (owner == f->loop && inst->block == body_of(f->loop) && (int64_t)i == f->carried)
            return false;
        return !owner || owner->op != TIR_OP_IF ||
               (is_needed(p, owner->results[i]) && !is_between(f, owner->results[i]));
    }
    case TIR_OP_FOR:
        return i >= TIR_FOR_INIT || !bitset_has(&p->fixed_loops, inst->id);
    default:
        if (inst->region_count || !inst->result_count)
            return true;
        break;
    }
    for (uint32_t k = 0; k < inst->result_count; k++)
        if (is_needed(p, inst->results[k]) && !is_between(f, inst->results[k]))
            return true;
    return false;
}

// What inst gives where its operand of the family is *number. False: the other one is no constant.
static bool apply(const struct family *f, const struct tir_inst *inst, int64_t *number)
{
    union tir_number in[2] = {{.i = 0}, {.i = 0}}, out = {.i = *number};
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[i];
        bool is_const = v->kind == TIR_VALUE_CONST;
        if (!is_const && !bitset_has(&f->has, v->id))
            return false;
        in[i].i = is_const ? v->constant.i : *number;
    }
    if (inst->op != TIR_OP_CAST &&
        !tir_number_apply(inst->op, inst->results[0]->type->elem, in, &out))
        return false;
    *number = out.i;
    return true;
}

// The counter itself: of a while both blocks have it.
static bool is_seed(const struct family *f, const struct tir_value *v)
{
    uint32_t index = f->carried < 0 ? 0 : skip_of(f->loop) + (uint32_t)f->carried;
    for (uint32_t i = 0; i < f->loop->region_count; i++)
        if (v == f->loop->regions[i]->args[index])
            return true;
    return false;
}

// Is the change not the same in each round?
static bool is_uneven(const struct family *f)
{
    return f->has_sums && f->step.low != f->step.high && !operation_of(f);
}

// What it begins with, and by how much each round changes it. False: that depends on arguments, or
// it goes by no sums.
static bool course_of(const struct family *f, int64_t *begin, int64_t *low, int64_t *high)
{
    if (f->carried < 0) {
        bool known = tir_is_const_int(f->loop->operands[TIR_FOR_STEP], low);
        *high = *low;
        return known && tir_is_const_int(f->loop->operands[TIR_FOR_BEGIN], begin);
    }
    *low = f->step.low;
    *high = f->step.high;
    return f->has_sums && (*low == *high || is_uneven(f)) &&
           tir_is_const_int(f->loop->operands[lead_of(f->loop) + f->carried], begin);
}

// What v is in round n of such as have the least change, or the greatest. False: that depends on
// arguments.
static bool at_round(const struct family *f, const struct tir_value *v, int64_t n, bool greatest,
                     int64_t *out)
{
    VEC(const struct tir_inst *) way = {0}; // back to the counter: each takes one of the family
    int64_t begin, low, high;
    while (v->def && bitset_has(&f->has, v->id) && !is_between(f, v)) {
        const struct tir_inst *inst = v->def;
        vec_push(f->p->cx->scratch, &way, inst);
        for (uint32_t i = 0; i < inst->operand_count; i++)
            if (inst->operands[i]->kind != TIR_VALUE_CONST &&
                bitset_has(&f->has, inst->operands[i]->id))
                v = inst->operands[i];
    }
    if (v->kind == TIR_VALUE_CONST)
        *out = v->constant.i;
    else if (!(is_seed(f, v) || is_between(f, v)) || !course_of(f, &begin, &low, &high))
        return false;
    else
        *out = begin + n * (greatest ? high : low);
    while (way.len)
        if (!apply(f, vec_pop(&way), out))
            return false;
    return true;
}

static int sign_at(const struct family *f, const struct tir_inst *cmp, int64_t n, bool greatest,
                   bool *known)
{
    int64_t a, b;
    *known = at_round(f, cmp->operands[0], n, greatest, &a) &&
             at_round(f, cmp->operands[1], n, greatest, &b);
    return *known ? (a > b) - (a < b) : 0;
}

enum { NEVER = -1, TOO_FAR = -2 };

// Does the counter begin where one of a loop around it is?
static bool begins_in_loop(const struct family *f)
{
    const struct tir_value *begin =
        tir_sync_multiple(f->loop->operands[f->carried < 0 ? (int64_t)TIR_FOR_BEGIN
                                                           : lead_of(f->loop) + f->carried])
            .base;
    const struct tir_inst *owner = begin->kind == TIR_VALUE_ARG ? begin->block->owner : NULL;
    return owner && (owner->op == TIR_OP_FOR || owner->op == TIR_OP_WHILE);
}

// x < x + 64 says the same in each round.
static bool compares_itself(const struct tir_inst *cmp)
{
    struct sync_multiple x = tir_sync_multiple(cmp->operands[0]),
                         y = tir_sync_multiple(cmp->operands[1]);
    return x.base == y.base && x.scale == y.scale && x.base->kind != TIR_VALUE_CONST;
}

// The first round in which a comparison with a constant says something else than in the first one.
static int64_t turn_of(const struct family *f, const struct tir_inst *cmp, bool greatest)
{
    bool known;
    int64_t low = 0, high = MOST_ROUNDS;
    int first = sign_at(f, cmp, 0, greatest, &known);
    bool with_number =
        cmp->operands[0]->kind == TIR_VALUE_CONST || cmp->operands[1]->kind == TIR_VALUE_CONST;
    if (!known)
        return with_number && begins_in_loop(f) ? TOO_FAR : NEVER;
    if (sign_at(f, cmp, high, greatest, &known) == first)
        return sign_at(f, cmp, INT32_MAX, greatest, &known) == first ? NEVER : TOO_FAR;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        *(sign_at(f, cmp, middle, greatest, &known) == first ? &low : &high) = middle;
    }
    return high;
}

// The round in which a comparison first says something else is one to go beyond. False: it is too
// far away, or it never comes for some steps.
static bool note_threshold(const struct family *f, const struct tir_inst *cmp)
{
    int64_t late = turn_of(f, cmp, false), soon = is_uneven(f) ? turn_of(f, cmp, true) : late;
    if (late == TOO_FAR || soon == TOO_FAR || (late == NEVER) != (soon == NEVER))
        return false;
    f->p->threshold = TIR_MAX(f->p->threshold, TIR_MAX(late, soon) + is_uneven(f));
    return true;
}

// The least common multiple, of which 0 is taken as 1; 0: it is too large.
static int64_t common(int64_t x, int64_t y, int64_t most)
{
    x = TIR_MAX(x, 1);
    x = x / (int64_t)tir_gcd((uint64_t)x, (uint64_t)y) * y;
    return x <= most ? x : 0;
}

// The one of the family that inst takes.
static const struct tir_value *member_of(const struct family *f, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i] && inst->operands[i]->kind != TIR_VALUE_CONST &&
            bitset_has(&f->has, inst->operands[i]->id))
            return inst->operands[i];
    return NULL;
}

// The operation, with shifts and masks as what they do to numbers that are not negative; *by: its
// second operand, if that is a constant, or else -1.
static enum tir_op plain_op(const struct tir_inst *inst, int64_t *by)
{
    if (inst->operand_count < 2 || !inst->operands[1] || !tir_is_const_int(inst->operands[1], by)) {
        *by = -1;
        return inst->op;
    }
    bool shifts = inst->op == TIR_OP_SHL || inst->op == TIR_OP_SHR;
    if (inst->op == TIR_OP_AND && *by > 0 && *by < MOST_PERIOD && !(*by & (*by + 1))) {
        *by += 1;
        return TIR_OP_REM;
    }
    if (!shifts || *by < 0 || INT64_C(1) << TIR_MIN(*by, 62) > MOST_PERIOD)
        return inst->op;
    *by = INT64_C(1) << *by;
    return inst->op == TIR_OP_SHL ? TIR_OP_MUL : TIR_OP_DIV;
}

// Does the counter go by equal sums, and may it pass zero only where arguments decide?
static bool keeps_sign(const struct family *f)
{
    int64_t begin = 0, low = 0, high = 0;
    const struct tir_inst *next = f->carried < 0 || f->has_sums ? NULL : operation_of(f);
    if (is_uneven(f) || (next && next->op != TIR_OP_ADD && next->op != TIR_OP_SUB))
        return false;
    bool known = course_of(f, &begin, &low, &high);
    return !known || (begin >= 0 && low >= 0);
}

// x % m, where x is the counter, or comes from it by sums with and products with what stays the
// same and by quotients by constants: the counter goes by m times the quotients' divisors. What is
// added or taken away may not make it pass zero in a fixed round, where remainders change.
static bool note_remainder(struct family *f, const struct tir_inst *inst)
{
    int64_t period, by;
    const struct tir_value *v = inst->operands[0];
    if (plain_op(inst, &period) != TIR_OP_REM || period <= 0 || v != member_of(f, inst) ||
        !keeps_sign(f))
        return false;
    for (; !is_seed(f, v); v = member_of(f, v->def)) {
        const struct tir_inst *def = v->def;
        enum tir_op op = plain_op(def, &by);
        bool first = def->operands[0] == member_of(f, def);
        int64_t other = 0;
        tir_is_const_int(def->operands[first && def->operand_count > 1], &other);
        if (op == TIR_OP_DIV && first && by > 0 && by < MOST_PERIOD)
            period *= by;
        else if (other < 0 || (op == TIR_OP_SUB && other > 0) ||
                 (op != TIR_OP_CAST && op != TIR_OP_ADD && op != TIR_OP_SUB && op != TIR_OP_MUL))
            return false;
        if (period > MOST_PERIOD)
            return false;
    }
    f->period = common(f->period, period, MOST_PERIOD);
    return f->period;
}

// By how much the counter goes up in each round, at least; 0: that is not known.
static int64_t least_step(const struct family *f)
{
    int64_t step;
    if (f->carried >= 0)
        return f->has_sums && f->step.has_low ? f->step.low : 0;
    return tir_is_const_int(f->loop->operands[TIR_FOR_STEP], &step) ? step : 1;
}

static bool has_no_sign(const struct family *f, const struct tir_value *v)
{
    return tir_range_has_no_sign(f->p->ranges, v);
}

// Is operand i of inst an index that is not negative and goes up with each round, so that it leaves
// a buffer on the chip for good? Then the replay goes beyond. It is taken not to wrap.
static bool note_leaving(const struct family *f, const struct tir_inst *inst, uint32_t i)
{
    const bool accesses =
        inst->op == TIR_OP_LOAD || inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC;
    const struct tir_value *v = inst->operands[i];
    const uint32_t begin =
        f->carried < 0 ? (uint32_t)TIR_FOR_BEGIN : lead_of(f->loop) + (uint32_t)f->carried;
    if (!accesses || !has_no_sign(f, f->loop->operands[begin]))
        return false;
    const struct tir_type *t = tir_ref_base(inst)->type;
    const int64_t d = (int64_t)i - (tir_ref_indices(inst) - inst->operands);
    if (d < 0 || d >= t->rank || t->shape[d] > MOST_PLACES || least_step(f) < 1)
        return false;
    for (; !is_seed(f, v); v = member_of(f, v->def)) {
        const struct tir_inst *def = v->def;
        const bool first = def->operands[0] == member_of(f, def);
        if (def->op != TIR_OP_CAST &&
            !(def->op == TIR_OP_ADD && has_no_sign(f, def->operands[first])))
            return false;
    }
    f->p->threshold = TIR_MAX(f->p->threshold, t->shape[d]);
    return true;
}

static bool only_compared(struct family *f)
{
    tir_foreach_inst(inst, f->p->f) {
        if (!f->p->classes[inst->id])
            continue;
        bool one = takes_one(f, inst);
        if (tir_sync_is_comparison(inst) && compares_itself(inst))
            continue;
        if (one && is_monotone(inst)) {
            bitset_insert(&f->has, inst->results[0]->id);
            continue;
        }
        if (one && note_remainder(f, inst))
            continue;
        if (one && tir_sync_is_comparison(inst)) {
            if (!note_threshold(f, inst))
                return false;
            continue;
        }
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            const struct tir_value *v = inst->operands[i];
            if (v && v->kind != TIR_VALUE_CONST && bitset_has(&f->has, v->id) &&
                matters(f, inst, i) && !note_leaving(f, inst, i))
                return false;
        }
    }
    return true;
}

// What divides the change in each round.
static uint64_t divisor_of(const struct family *f)
{
    if (f->has_sums && f->step.low == f->step.high)
        return (uint64_t)llabs(f->step.low);
    return tir_range_divisor(f->p->ranges, f->carried < 0 ? f->loop->operands[TIR_FOR_STEP]
                                                          : operation_of(f)->operands[1]);
}

static void find_family(struct sync_program *p, const struct tir_inst *loop, int64_t carried)
{
    struct family f = {.p = p,
                       .loop = loop,
                       .carried = carried,
                       .has = bitset_new(p->cx->scratch, p->f->value_count)};
    if (!is_directed(&f))
        return;
    uint32_t index = carried < 0 ? 0 : skip_of(loop) + (uint32_t)carried;
    for (uint32_t i = 0; i < loop->region_count; i++)
        bitset_insert(&f.has, loop->regions[i]->args[index]->id);
    for (uint32_t i = 0; f.has_sums && i < p->f->value_count / 64 + 1; i++)
        f.has.words[i] |= f.step.way.words[i];
    if (!only_compared(&f))
        return;
    for (uint32_t i = 0; i < p->counters.bits / 64 + 1; i++)
        p->counters.words[i] |= f.has.words[i];
    for (uint32_t i = 0; i < loop->region_count; i++)
        p->periods[loop->regions[i]->args[index]->id] = f.period;
    if (f.period) // in rounds
        f.period /= (int64_t)tir_gcd((uint64_t)f.period, divisor_of(&f));
    if (f.period && p->cycle)
        p->cycle = common(p->cycle, f.period, MOST_CYCLE);
}

void tir_sync_find_counters(struct sync_program *p)
{
    p->counters = bitset_new(p->cx->scratch, p->f->value_count);
    p->cycle = 1;
    p->periods = arena_array(p->cx->scratch, int64_t, p->f->value_count);
    tir_foreach_inst(inst, p->f) {
        if (!bitset_has(&p->data_loops, inst->id))
            continue;
        if (inst->op == TIR_OP_FOR)
            find_family(p, inst, -1);
        for (uint32_t i = 0; i < inst->result_count; i++)
            find_family(p, inst, i);
    }
}
