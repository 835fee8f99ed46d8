// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// split: loops are split where a condition changes.
//
//     let r: T = for t: i64 in range(0, last, 128) carry (acc: T = zero) {
//         ... s, from the keys at t ...
//         let k: i64[1, 128] = add(t, columns);                 // columns: 0 .. 127
//         let c: bool[64, 128] = le(k, add(q, rows));        // repeated along rows and columns
//         let s2: f32[64, 128] = where(c, s, f32[64, 128](-inf));
//         ...
//     }
// becomes
//     let rounds: i64 = ceildiv(max(last - 0, 0), 128);
//     let known: i64 = min(max(q - 127 + 128, 0) / 128, rounds);
//     let split: i64 = 0 + known * 128;
//     let r1: T = for t: i64 in range(0, split, 128) carry (acc: T = zero) {
//         ... s, used as s2 is ...
//     }
//     let r: T = for t: i64 in range(split, last, 128) carry (acc: T = r1) {
//         ... with the condition ...
//     }
//
// A comparison of integers is looked at if it decides about a tile: in a `where`, or as the mask
// of an access, through `and`, `or` and `not`. If its difference is linear in the loop's variable
// (linear.h), the elements' share lies in an interval, so there is a round up to which, or from
// which on, it holds for all elements. Conditions that hold at first (the diagonal, an edge) and
// those that hold at last (the far end of a window) give up to three loops: before, with all
// conditions; the middle, with none; after, without the second kind. Of two sides of a `where`
// the middle has the one that is computed. Rounds are counted, so each loop's variable keeps its
// divisor, and all loops together run the rounds of the first one, in order. What an interval is
// not known for is tested: large numbers, of which sums may wrap, run all rounds with all
// conditions.
//
// This comes after the roles are made: the role that copies has no masks, so its loop stays whole,
// and the slots of a ring are filled and emptied in the same order as before. It comes after
// schedule, too: each part goes on with what the one before has under way, so nothing drains
// between them. What schedule puts in front of the loop, the first round's, keeps its conditions.
//
// Not done here: kernels that are taken as written; steps that are not known; rounds in which a
// condition drops all there is; equality; masks that lowering makes of a slice's bounds.

#include "ir/crew.h"
#include "ir/follow.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "pass/layout/warpgroup.h"
#include "pass/receipt.h"
#include "pass/role/linear.h"
#include "pass/role/store_ring.h"
#include "pass/sync/barrier.h"

static const struct tir_pass_info clean_up[] = {
    {.name = "fold", .general = true, .run = tir_pass_fold},
    {.name = "dce", .general = true, .run = tir_pass_dce},
};

enum kind { FIRST, LAST, KINDS }; // a condition holds in the first rounds, or in the last

struct condition {
    struct tir_inst *inst; // a comparison
    bool wanted;           // what it is in the rounds that run without it
    enum kind kind;
    struct tir_linear excess; // it has its wanted value where this is at most 0
};

struct question {
    struct tir_value *v;
    bool wanted;
};

struct split {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_linears linears;
    struct tir_inst *loop;
    int64_t step;
    VEC(struct condition) conditions;
    bool has[KINDS];
    bool has_tensor_memory; // the kernel
};

// The conditions of a loop.

static bool is_infinite(const struct tir_value *v)
{
    return v->kind == TIR_VALUE_CONST && tir_elem_is_float(v->type->elem) &&
           (v->constant.f > 1e300 || v->constant.f < -1e300);
}

// Which side of a where the rounds without it should have: what is computed, and no infinity.
static bool wanted_side(const struct tir_inst *where)
{
    const struct tir_value *yes = where->operands[1], *no = where->operands[2];
    bool one_side = (yes->kind == TIR_VALUE_CONST) != (no->kind == TIR_VALUE_CONST);
    return one_side ? no->kind == TIR_VALUE_CONST : !is_infinite(yes);
}

// Does inst decide by a tile of conditions? v: that tile.
static bool decides(const struct tir_inst *inst, struct question *about)
{
    const struct tir_op_info *op = &tir_ops[inst->op];
    *about = (struct question){NULL, true};
    if (inst->op == TIR_OP_WHERE) {
        *about = (struct question){inst->operands[0], wanted_side(inst)};
        return tir_type_is_tile(about->v->type) && inst->operands[1]->type->elem != TIR_BOOL;
    }
    uint32_t fixed = 0;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (op->operands[i].kind == TIR_OPERAND_REF || op->operands[i].kind == TIR_OPERAND_LIST)
            continue;
        struct tir_value *v = inst->operands[fixed++];
        if (op->operands[i].role == TIR_ROLE_MASK && v && tir_type_is_tile(v->type))
            about->v = v;
    }
    return about->v;
}

// a - b, or what else is at most 0 where the comparison has its wanted value.
static bool excess_of(struct split *s, const struct tir_inst *inst, bool wanted,
                      struct tir_linear *out)
{
    static const struct tir_linear one = {.low = 1, .high = 1, .least = 1, .most = 1}, zero = {0};
    struct tir_linear a, b, difference;
    s->linears.steps = 0;
    if (!tir_linear_of(&s->linears, inst->operands[0], &a) ||
        !tir_linear_of(&s->linears, inst->operands[1], &b))
        return false;
    bool less = inst->op == TIR_OP_LT || inst->op == TIR_OP_LE; // else the other way round
    bool strict = inst->op == TIR_OP_LT || inst->op == TIR_OP_GT;
    s->linears.refusal = "it may overflow";
    if (!tir_linear_add(&a, &b, -1, &difference) ||
        !tir_linear_add(strict ? &one : &zero, &difference, less ? 1 : -1, out))
        return false;
    if (wanted)
        return true;
    struct tir_linear holds = *out; // it is false where 1 - holds is at most 0
    return tir_linear_add(&one, &holds, -1, out);
}

// Is everything that the bounds are computed of far from overflow?
static bool is_bounded(const struct split *s, const struct tir_linear *excess)
{
    int64_t sum, stride, part;
    if (!tir_mul_checked(excess->by < 0 ? -excess->by : excess->by, s->step, &stride) ||
        !tir_add_checked(TIR_MAX(excess->high, -excess->low), stride, &sum))
        return false;
    for (uint32_t i = 0; i <= excess->term_count; i++) {
        bool is_begin = i == excess->term_count;
        const struct tir_value *v =
            is_begin ? s->loop->operands[TIR_FOR_BEGIN] : excess->terms[i].v;
        int64_t by = is_begin ? excess->by : excess->terms[i].by, low, high;
        tir_range_get(s->linears.ranges, v, &low, &high);
        int64_t limit = low == INT64_MIN ? INT64_MAX : TIR_MAX(high, -low);
        if (tir_linear_is_tested(&s->linears, v))
            limit = TIR_MIN(limit, tir_linear_limit(v->type));
        if (!tir_mul_checked(limit, by < 0 ? -by : by, &part) || !tir_add_checked(sum, part, &sum))
            return false;
    }
    return sum <= INT64_MAX / 2;
}

static enum tir_answer is_not_variable(void *user, struct tir_value *v)
{
    const struct split *s = user;
    if (v == s->loop->regions[0]->args[0])
        return TIR_NO;
    return v->def && tir_is_made_in(s->loop, v) ? TIR_IF_OPERANDS : TIR_YES;
}

// Is it the same in all rounds, or is that decided by more than the loop's variable?
static bool is_independent(struct split *s, struct tir_value *v)
{
    struct tir_follow follow;
    tir_follow_init(&follow, s->cx->scratch, is_not_variable, s);
    return tir_follows(&follow, v);
}

static void look_at_comparison(struct split *s, struct tir_inst *inst, bool wanted)
{
    vec_foreach(struct condition, it, &s->conditions)
        if (it->inst == inst)
            return;
    struct condition condition = {.inst = inst, .wanted = wanted};
    const uint32_t small = s->linears.small.len;
    bool is_linear = false;
    for (int spare = 0; spare < 2 && !is_linear; spare++) {
        s->linears.small.len = small;
        s->linears.spare = spare;
        is_linear = excess_of(s, inst, wanted, &condition.excess);
    }
    bool changes = is_linear ? condition.excess.by != 0 : !is_independent(s, inst->results[0]);
    const char *why = !is_linear ? s->linears.refusal
                      : !s->step ? "the loop's step is no known number above 0"
                      : !is_bounded(s, &condition.excess) ? "it may overflow"
                                                          : NULL;
    if (why || !changes)
        s->linears.small.len = small;
    if (!changes)
        return;
    if (why) {
        tir_receipt_refuse(s->cx, TIR_TOPIC_LOOP, TIR_WISH_NONE, inst->span,
                           "loop: not split where this condition changes, because %s", why);
        return;
    }
    condition.kind = condition.excess.by > 0 ? FIRST : LAST;
    s->has[condition.kind] = true;
    vec_push(s->cx->scratch, &s->conditions, condition);
}

static bool is_ordered(enum tir_op op)
{
    return op == TIR_OP_LT || op == TIR_OP_LE || op == TIR_OP_GT || op == TIR_OP_GE;
}

// Looks through what leads to a condition; each value is visited once.
static void look_at(struct split *s, struct question first, struct tir_map *seen)
{
    VEC(struct question) work = {0};
    vec_push(s->cx->scratch, &work, first);
    while (work.len) {
        struct question q = vec_pop(&work);
        struct tir_inst *inst = q.v->def;
        if (!inst || !tir_is_made_in(s->loop, q.v) || tir_map_get(seen, tir_map_key(q.v)))
            continue;
        tir_map_set(seen, tir_map_key(q.v), q.v);
        switch (inst->op) {
        case TIR_OP_BROADCAST:
        case TIR_OP_RESHAPE:
        case TIR_OP_PERMUTE:
        case TIR_OP_CONVERT_LAYOUT:
            vec_push(s->cx->scratch, &work, ((struct question){inst->operands[0], q.wanted}));
            break;
        case TIR_OP_NOT:
            vec_push(s->cx->scratch, &work, ((struct question){inst->operands[0], !q.wanted}));
            break;
        case TIR_OP_AND:
        case TIR_OP_OR:
            for (uint32_t i = 0; i < 2 && q.wanted == (inst->op == TIR_OP_AND); i++)
                vec_push(s->cx->scratch, &work, ((struct question){inst->operands[i], q.wanted}));
            break;
        default:
            if (is_ordered(inst->op) && tir_elem_is_int(inst->operands[0]->type->elem))
                look_at_comparison(s, inst, q.wanted);
            break;
        }
    }
}

static uint32_t find_conditions(struct split *s)
{
    struct tir_map seen;
    tir_map_init(&seen, s->cx->scratch);
    struct question about;
    uint32_t size = 0;
    tir_foreach_inst_in(inst, s->loop->regions[0]) {
        size++;
        if (decides(inst, &about))
            look_at(s, about, &seen);
    }
    return size;
}

// The bounds.

static struct tir_value *index_of(struct tir_builder *b, struct tir_value *v)
{
    const struct tir_type *t = tir_type_scalar(b->f->module->types, TIR_I64);
    return v->type == t ? v : tir_build1(b, TIR_OP_CAST, t, &v, 1);
}

static struct tir_value *with(struct tir_builder *b, enum tir_op op, struct tir_value *v,
                              int64_t number)
{
    return tir_binary(b, op, v, tir_const_index(b->f, number));
}

// excess in the first round, at most.
static struct tir_value *first_excess(struct split *s, struct tir_builder *b,
                                      const struct tir_linear *excess)
{
    struct tir_value *sum =
        with(b, TIR_OP_MUL, index_of(b, s->loop->operands[TIR_FOR_BEGIN]), excess->by);
    for (uint32_t i = 0; i < excess->term_count; i++) {
        struct tir_value *term = index_of(b, excess->terms[i].v);
        sum = tir_binary(b, TIR_OP_ADD, sum, with(b, TIR_OP_MUL, term, excess->terms[i].by));
    }
    return with(b, TIR_OP_ADD, sum, excess->high);
}

// How many rounds a condition of the first kind holds for, and before which round one of the last
// kind need not hold: with stride = |by| * step, the first k with first + stride * k > 0, or with
// first - stride * k <= 0.
static struct tir_value *round_of(struct split *s, struct tir_builder *b,
                                  const struct condition *condition)
{
    const struct tir_linear *excess = &condition->excess;
    struct tir_value *first = first_excess(s, b, excess), *most;
    int64_t stride = s->step * (excess->by < 0 ? -excess->by : excess->by);
    if (condition->kind == FIRST)
        most = tir_binary(b, TIR_OP_SUB, tir_const_index(s->f, stride), first);
    else
        most = with(b, TIR_OP_ADD, first, stride - 1);
    return with(b, TIR_OP_DIV, with(b, TIR_OP_MAX, most, 0), stride);
}

// The round at which the loop is split for its conditions of one kind, at most `rounds`.
static struct tir_value *split_round(struct split *s, struct tir_builder *b, enum kind kind,
                                     struct tir_value *rounds)
{
    struct tir_value *at = NULL;
    vec_foreach(struct condition, it, &s->conditions)
        if (it->kind == kind) {
            struct tir_value *round = round_of(s, b, it);
            at = at ? tir_binary(b, kind == FIRST ? TIR_OP_MIN : TIR_OP_MAX, at, round) : round;
        }
    return at ? tir_binary(b, TIR_OP_MIN, at, rounds) : NULL;
}

// Are all scalars small that must be? NULL: they are known to be.
static struct tir_value *test_small(struct split *s, struct tir_builder *b)
{
    struct tir_value *all = NULL;
    vec_foreach(struct tir_value *, it, &s->linears.small) {
        int64_t limit = tir_linear_limit((*it)->type), low, high;
        tir_range_get(s->linears.ranges, *it, &low, &high);
        struct tir_value *tests[2] = {NULL, NULL}, *v = index_of(b, *it);
        if (low < -limit)
            tests[0] = with(b, TIR_OP_GE, v, -limit);
        if (high > limit)
            tests[1] = with(b, TIR_OP_LE, v, limit);
        for (uint32_t i = 0; i < 2; i++)
            if (tests[i])
                all = all ? tir_binary(b, TIR_OP_AND, all, tests[i]) : tests[i];
    }
    return all;
}

// The loop's variable in a round, or `otherwise` if not all numbers are small.
static struct tir_value *start_of(struct split *s, struct tir_builder *b, struct tir_value *round,
                                  struct tir_value *is_small, struct tir_value *otherwise)
{
    struct tir_value *begin = s->loop->operands[TIR_FOR_BEGIN];
    struct tir_value *start =
        tir_binary(b, TIR_OP_ADD, index_of(b, begin), with(b, TIR_OP_MUL, round, s->step));
    if (begin->type != start->type)
        start = tir_build1(b, TIR_OP_CAST, begin->type, &start, 1);
    return is_small ? tir_build1(b, TIR_OP_WHERE, begin->type,
                                 (struct tir_value *[]){is_small, start, otherwise}, 3)
                    : start;
}

// The loops.

// Makes a copy of a condition a comparison of 0 and 1, which fold computes.
static void know(struct split *s, const struct condition *condition, struct tir_inst *copy)
{
    bool less = copy->op == TIR_OP_LT || copy->op == TIR_OP_LE;
    int64_t left = less != condition->wanted;
    for (uint32_t i = 0; i < 2; i++)
        copy->operands[i] = tir_const_int(s->f, copy->operands[i]->type, i ? !left : left);
}

// A loop of few rounds has no use for a test of its factors, which takes registers. So it is of the
// rounds with conditions, and of those between two kinds, as of a window.
static void multiply_always(struct tir_block *block)
{
    for (struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (inst->op == TIR_OP_RESCALE)
            inst->op = TIR_OP_MUL;
        for (uint32_t r = 0; r < inst->region_count; r++)
            multiply_always(inst->regions[r]);
    }
}

// A copy of the loop in front of it that ends at `end`, where the loop then begins. It runs
// without the conditions of all kinds, or with all of them.
static void part_before(struct split *s, struct tir_value *end, bool without)
{
    struct tir_func *f = s->f;
    struct tir_inst *loop = s->loop;
    struct tir_builder b = tir_builder_before(f, loop);
    const struct tir_type **types =
        arena_array(f->module->arena, const struct tir_type *, loop->result_count);
    for (uint32_t i = 0; i < loop->result_count; i++)
        types[i] = loop->results[i]->type;
    struct tir_inst *part = tir_build(&b, TIR_OP_FOR, loop->operands, loop->operand_count, types,
                                      loop->result_count, 1);
    part->attrs =
        tir_arena_copy(f->module->arena, loop->attrs, loop->attr_count * sizeof(*loop->attrs));
    part->attr_count = loop->attr_count;
    part->operands[TIR_FOR_END] = end;
    loop->operands[TIR_FOR_BEGIN] = end;
    struct tir_block *body = loop->regions[0];
    struct tir_map map;
    tir_map_init(&map, s->cx->scratch);
    for (uint32_t i = 0; i < body->arg_count; i++)
        tir_map_set(
            &map, tir_map_key(body->args[i]),
            tir_block_add_arg(f, part->regions[0], body->args[i]->type, body->args[i]->name));
    struct tir_builder in = tir_builder_at_end(f, part->regions[0]);
    tir_clone_into(&in, body, &map);
    const struct tir_inst *yield = tir_yield_of(body);
    struct tir_value **yields =
        arena_array(s->cx->scratch, struct tir_value *, yield->operand_count);
    for (uint32_t i = 0; i < yield->operand_count; i++) {
        struct tir_value *to = tir_map_get(&map, tir_map_key(yield->operands[i]));
        yields[i] = to ? to : yield->operands[i];
    }
    tir_build_yield(&in, yields, yield->operand_count);
    for (uint32_t i = 0; i < loop->result_count; i++) {
        part->results[i]->name = loop->results[i]->name;
        loop->operands[TIR_FOR_INIT + i] = part->results[i];
    }
    vec_foreach(struct condition, it, &s->conditions)
        if (without) {
            const struct tir_value *copy = tir_map_get(&map, tir_map_key(it->inst->results[0]));
            know(s, it, copy->def);
        }
}

static void make_parts(struct split *s)
{
    struct tir_builder b = tir_builder_before(s->f, s->loop);
    struct tir_value **bounds = s->loop->operands, *begin = bounds[TIR_FOR_BEGIN],
                     *end = bounds[TIR_FOR_END];
    struct tir_value *is_small = test_small(s, &b);
    struct tir_value *length = tir_binary(&b, TIR_OP_SUB, index_of(&b, end), index_of(&b, begin));
    struct tir_value *rounds = with(&b, TIR_OP_CEILDIV, with(&b, TIR_OP_MAX, length, 0), s->step);
    struct tir_value *first = split_round(s, &b, FIRST, rounds);
    struct tir_value *last = split_round(s, &b, LAST, rounds);
    if (first && last)
        first = tir_binary(&b, TIR_OP_MAX, first, last);
    struct tir_value *middle = last ? start_of(s, &b, last, is_small, end) : NULL;
    struct tir_value *after = first ? start_of(s, &b, first, is_small, last ? end : begin) : NULL;
    if (middle) {
        multiply_always(s->loop->regions[0]);
        part_before(s, middle, false);
    }
    if (after) {
        part_before(s, after, true);
        multiply_always(s->loop->regions[0]);
    }
    vec_foreach(struct condition, it, &s->conditions)
        if (it->kind == LAST)
            know(s, it, it->inst);
}

static void report(struct split *s)
{
    const char *where = s->has[FIRST] && s->has[LAST] ? "in the middle"
                        : s->has[FIRST]               ? "come first"
                                                      : "come last";
    vec_foreach(struct condition, it, &s->conditions)
        tir_receipt_add(s->cx, TIR_TOPIC_LOOP, it->inst->span,
                        "loop: split, the rounds without this condition %s%s",
                        s->has[FIRST] && s->has[LAST] ? "are " : "", where);
}

static bool is_short(const struct split *s)
{
    int64_t begin, end, length;
    return tir_is_const_int(s->loop->operands[TIR_FOR_BEGIN], &begin) &&
           tir_is_const_int(s->loop->operands[TIR_FOR_END], &end) &&
           tir_sub_checked(end, begin, &length) &&
           length <= (TIR_BUDGET_SPLIT_ROUNDS - 1) * s->step;
}

// May a narrow number be large? Then the loop before the middle would be long for such numbers
// alone, which no replay of sync_check comes to. In 64 bits a large number is beyond all sizes.
static bool may_be_large(const struct split *s)
{
    vec_foreach(struct tir_value *, it, &s->linears.small)
        if (tir_elems[(*it)->type->elem].bits < 64)
            return true;
    return false;
}

// Roles that copy by threads leave the one that computes few registers.
static bool is_crowded(const struct split *s)
{
    const struct tir_inst *role = tir_crew_of(s->f, s->loop).role;
    return role && tir_attr_int(role, TIR_ATTR_regs, TIR_BUDGET_SPLIT_REGISTERS) <
                       TIR_BUDGET_SPLIT_REGISTERS;
}

static bool split_loop(struct split *s)
{
    uint32_t size = find_conditions(s);
    if (!s->conditions.len)
        return false;
    if (size > TIR_BUDGET_SPLIT_OPERATIONS) {
        tir_receipt_refuse(s->cx, TIR_TOPIC_LOOP, TIR_WISH_NONE, s->loop->span,
                           "loop: not split, because it has %u operations (at most %d)", size,
                           TIR_BUDGET_SPLIT_OPERATIONS);
        return false;
    }
    if (s->has[LAST] && may_be_large(s)) {
        tir_receipt_refuse(s->cx, TIR_TOPIC_LOOP, TIR_WISH_NONE, s->loop->span,
                           "loop: not split, because sums of its 32-bit numbers may overflow");
        return false;
    }
    if (s->has_tensor_memory && is_crowded(s)) {
        tir_receipt_refuse(s->cx, TIR_TOPIC_LOOP, TIR_WISH_NONE, s->loop->span,
                           "loop: not split, because its threads have fewer than %d registers",
                           TIR_BUDGET_SPLIT_REGISTERS);
        return false;
    }
    if (is_short(s)) {
        tir_receipt_refuse(s->cx, TIR_TOPIC_LOOP, TIR_WISH_NONE, s->loop->span,
                           "loop: not split, because it has fewer than %d rounds",
                           TIR_BUDGET_SPLIT_ROUNDS);
        return false;
    }
    report(s);
    make_parts(s);
    return true;
}

// 0: it is not known.
static int64_t step_of(const struct tir_inst *loop)
{
    int64_t step;
    bool known = tir_is_const_int(loop->operands[TIR_FOR_STEP], &step);
    return known && step > 0 && step <= INT32_MAX ? step : 0;
}

// Innermost first, so that the size of a loop is that of what it has become.
static void collect(struct tir_pass_cx *cx, struct tir_block *block, tir_inst_list *loops)
{
    for (struct tir_inst *inst = block->first; inst; inst = inst->next) {
        for (uint32_t r = 0; r < inst->region_count; r++)
            collect(cx, inst->regions[r], loops);
        if (inst->op == TIR_OP_FOR)
            vec_push(cx->scratch, loops, inst);
    }
}

enum tir_change tir_pass_split(struct tir_func *f, struct tir_pass_cx *cx)
{
    tir_inst_list loops = {0};
    bool changed = false;
    if (f->grid_count || tir_speaks_of_threads(f, cx->scratch))
        return TIR_UNCHANGED;
    collect(cx, f->body, &loops);
    const struct tir_ranges *ranges = tir_ranges_new(cx->scratch, f);
    const bool in_tensor_memory = tir_has_tensor_memory(f);
    vec_foreach(struct tir_inst *, it, &loops) {
        const struct tir_type *t = (*it)->operands[TIR_FOR_BEGIN]->type;
        struct split s = {.f = f,
                          .cx = cx,
                          .loop = *it,
                          .step = step_of(*it),
                          .has_tensor_memory = in_tensor_memory};
        if (tir_elems[t->elem].kind != TIR_KIND_SIGNED)
            continue;
        s.linears = (struct tir_linears){.ranges = ranges, .loop = *it, .arena = cx->scratch};
        changed |= split_loop(&s);
    }
    for (uint32_t i = 0; changed && i < TIR_COUNT_OF(clean_up); i++)
        if (tir_run_pass(f, cx, &clean_up[i]) == TIR_FAILED)
            return TIR_FAILED;
    return changed ? TIR_CHANGED : TIR_UNCHANGED;
}
