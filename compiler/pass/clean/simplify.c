// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rules of fold that look at one instruction and its operands.
//
// Identities with a constant or with equal operands are rows of a table; every row holds for all
// values of the kinds it names, NaN, infinities and the sign of zero included (so x + 0.0 stays: it
// turns -0.0 into 0.0). Rules that make new instructions are functions after the tables.
// Commutative operations have their constant on the right first.

#include "pass/clean/simplify.h"

#include "ir/number.h"

#include <math.h>

enum {
    SIGNED = 1,
    UNSIGNED = 2,
    BOOLEAN = 4,
    FLOAT = 8,
    INT = SIGNED | UNSIGNED,
    BITS = INT | BOOLEAN
};

enum known { // a constant operand
    ZERO,    // of floats the positive one
    MINUS_ZERO,
    ONE,
    MINUS_ONE,
    ALL_ONES, // of bool: true
    LOWEST,   // of floats -inf
    HIGHEST
};

enum outcome { OTHER, NEGATED, INVERTED, THE_ZERO, THE_CONSTANT, THE_TRUE };

struct identity {
    enum tir_op op;
    uint32_t kinds; // of the operands
    enum known known;
    enum outcome outcome;
};

static const struct identity with_constant_right[] = {
    {TIR_OP_ADD, INT, ZERO, OTHER},         // add(x, 0) -> x
    {TIR_OP_ADD, FLOAT, MINUS_ZERO, OTHER}, // add(x, -0.0) -> x
    {TIR_OP_SUB, INT | FLOAT, ZERO, OTHER}, // sub(x, 0) -> x
    {TIR_OP_MUL, INT | FLOAT, ONE, OTHER},  // mul(x, 1) -> x
    {TIR_OP_MUL, SIGNED | FLOAT, MINUS_ONE, NEGATED},
    {TIR_OP_RESCALE, FLOAT, ONE, OTHER},   // rescale(x, 1) -> x
    {TIR_OP_MUL, INT, ZERO, THE_ZERO},     // mul(x, 0) -> 0
    {TIR_OP_DIV, INT | FLOAT, ONE, OTHER}, // div(x, 1) -> x
    {TIR_OP_DIV, SIGNED | FLOAT, MINUS_ONE, NEGATED},
    {TIR_OP_CEILDIV, INT, ONE, OTHER}, // ceildiv(x, 1) -> x
    {TIR_OP_REM, INT, ONE, THE_ZERO},  // rem(x, 1) -> 0
    {TIR_OP_REM, SIGNED, MINUS_ONE, THE_ZERO},
    {TIR_OP_AND, BITS, ZERO, THE_ZERO},  // and(x, 0) -> 0
    {TIR_OP_AND, BITS, ALL_ONES, OTHER}, // and(x, -1) -> x
    {TIR_OP_OR, BITS, ZERO, OTHER},      // or(x, 0) -> x
    {TIR_OP_OR, BITS, ALL_ONES, THE_CONSTANT},
    {TIR_OP_XOR, BITS, ZERO, OTHER},           // xor(x, 0) -> x
    {TIR_OP_XOR, BITS, ALL_ONES, INVERTED},    // xor(x, -1) -> not(x)
    {TIR_OP_SHL, INT, ZERO, OTHER},            // shl(x, 0) -> x
    {TIR_OP_SHR, INT, ZERO, OTHER},            // shr(x, 0) -> x
    {TIR_OP_MIN, INT | FLOAT, HIGHEST, OTHER}, // min(x, inf) -> x
    {TIR_OP_MAX, INT | FLOAT, LOWEST, OTHER},  // max(x, -inf) -> x
    {TIR_OP_MIN, INT, LOWEST, THE_CONSTANT},
    {TIR_OP_MAX, INT, HIGHEST, THE_CONSTANT},
    {TIR_OP_EQ, BOOLEAN, ALL_ONES, OTHER}, // eq(c, true) -> c
    {TIR_OP_EQ, BOOLEAN, ZERO, INVERTED},
    {TIR_OP_NE, BOOLEAN, ZERO, OTHER},
    {TIR_OP_NE, BOOLEAN, ALL_ONES, INVERTED},
    {TIR_OP_LT, UNSIGNED, ZERO, THE_ZERO}, // lt(u, 0) -> false
    {TIR_OP_GE, UNSIGNED, ZERO, THE_TRUE}, // ge(u, 0) -> true
    {TIR_OP_POW, FLOAT, ONE, OTHER},       // pow(x, 1) -> x
};

static const struct identity with_constant_left[] = {
    {TIR_OP_SUB, INT, ZERO, NEGATED},         // sub(0, x) -> neg(x)
    {TIR_OP_SUB, FLOAT, MINUS_ZERO, NEGATED}, // sub(-0.0, x) -> neg(x)
    {TIR_OP_DIV, INT, ZERO, THE_ZERO},        // div(0, x) -> 0
    {TIR_OP_REM, INT, ZERO, THE_ZERO},        {TIR_OP_CEILDIV, INT, ZERO, THE_ZERO},
    {TIR_OP_SHL, INT, ZERO, THE_ZERO},        {TIR_OP_SHR, INT, ZERO, THE_ZERO},
};

static const struct identity with_itself[] = {
    // known is not looked at
    {TIR_OP_SUB, INT, ZERO, THE_ZERO}, // sub(x, x) -> 0
    {TIR_OP_XOR, BITS, ZERO, THE_ZERO},
    {TIR_OP_REM, INT, ZERO, THE_ZERO},
    {TIR_OP_AND, BITS, ZERO, OTHER}, // and(x, x) -> x
    {TIR_OP_OR, BITS, ZERO, OTHER},
    {TIR_OP_MIN, INT | FLOAT, ZERO, OTHER},
    {TIR_OP_MAX, INT | FLOAT, ZERO, OTHER},
    {TIR_OP_EQ, BITS, ZERO, THE_TRUE}, // eq(x, x) -> true, but for NaN
    {TIR_OP_LE, INT, ZERO, THE_TRUE},
    {TIR_OP_GE, INT, ZERO, THE_TRUE},
    {TIR_OP_NE, BITS, ZERO, THE_ZERO},
    {TIR_OP_LT, INT | FLOAT, ZERO, THE_ZERO}, // lt(x, x) -> false, with NaN too
    {TIR_OP_GT, INT | FLOAT, ZERO, THE_ZERO},
};

// Constants.

static bool is_const(const struct tir_value *v)
{
    assert(v);
    return v->kind == TIR_VALUE_CONST;
}

static uint32_t kind_of(const struct tir_value *v)
{
    static const uint32_t kinds[] = {[TIR_KIND_NONE] = 0,
                                     [TIR_KIND_BOOLEAN] = BOOLEAN,
                                     [TIR_KIND_SIGNED] = SIGNED,
                                     [TIR_KIND_UNSIGNED] = UNSIGNED,
                                     [TIR_KIND_FLOAT] = FLOAT};
    return kinds[tir_elems[v->type->elem].kind];
}

static int64_t extreme(enum tir_elem elem, bool highest) // of an integer type
{
    return tir_number_cast(elem, TIR_F64, (union tir_number){.f = highest ? INFINITY : -INFINITY})
        .i;
}

static bool is_known(const struct tir_value *v, enum known known)
{
    enum tir_elem elem = v->type->elem;
    bool is_float = tir_elem_is_float(elem);
    double f = v->constant.f;
    int64_t i = v->constant.i;
    switch (known) {
    case ZERO:
        return is_float ? f == 0 && !signbit(f) : i == 0;
    case MINUS_ZERO:
        return is_float && f == 0 && signbit(f);
    case ONE:
        return is_float ? f == 1 : i == 1;
    case MINUS_ONE:
        return is_float ? f == -1 : i == -1;
    case ALL_ONES:
        return !is_float && i == tir_number_wrap(elem, -1);
    case LOWEST:
        return is_float ? f == -INFINITY : i == extreme(elem, false);
    case HIGHEST:
        return is_float ? f == INFINITY : i == extreme(elem, true);
    }
    tir_unreachable();
}

static struct tir_value *const_of(struct tir_func *f, const struct tir_type *type,
                                  union tir_number x)
{
    return tir_elem_is_float(type->elem) ? tir_const_float(f, type, x.f)
                                         : tir_const_int(f, type, x.i);
}

static struct tir_value *splat_as(struct tir_func *f, const struct tir_value *constant,
                                  const struct tir_type *type)
{
    return const_of(f, type, (union tir_number){.i = constant->constant.i});
}

static struct tir_value *fold_cast(struct tir_builder *b, const struct tir_inst *inst)
{
    const struct tir_value *x = inst->operands[0];
    const struct tir_type *to = tir_result(inst)->type;
    union tir_number in = {.i = x->constant.i};
    if (inst->op == TIR_OP_BITCAST)
        in = tir_number_decode(to->elem, tir_number_encode(x->type->elem, in));
    else
        in = tir_number_cast(to->elem, x->type->elem, in);
    if (inst->op == TIR_OP_BITCAST && tir_elem_is_float(to->elem) && isnan(in.f))
        return NULL; // a constant has no NaN but one
    return const_of(b->f, to, in);
}

// A reduction of n equal elements. Sums and products are exact but for one rounding at the end, as
// the interpreter's are.
static struct tir_value *fold_reduce(struct tir_builder *b, const struct tir_inst *inst)
{
    const struct tir_value *x = inst->operands[0];
    const struct tir_type *t = tir_result(inst)->type;
    enum tir_elem elem = t->elem;
    int64_t n = x->type->shape[tir_attr_int(inst, TIR_ATTR_axis, 0)];
    union tir_number one = {.i = x->constant.i}, r = one;
    enum tir_op op;
    switch (tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE)) {
    case TIR_WORD_kind_min:
    case TIR_WORD_kind_max:
    case TIR_WORD_kind_and:
    case TIR_WORD_kind_or:
    case TIR_WORD_kind_any:
    case TIR_WORD_kind_all:
        return splat_as(b->f, x, t);
    case TIR_WORD_kind_sum:
        op = TIR_OP_ADD;
        break;
    case TIR_WORD_kind_prod:
        op = TIR_OP_MUL;
        break;
    case TIR_WORD_kind_xor:
        op = TIR_OP_XOR;
        break;
    default:
        return NULL;
    }
    enum tir_elem wide = tir_elem_is_float(elem) ? TIR_F64 : elem;
    for (int64_t i = 1; i < n; i++)
        tir_number_apply(op, wide, (union tir_number[]){r, one}, &r);
    return const_of(b->f, t, r);
}

// Every operand is constant.
static struct tir_value *fold_constants(struct tir_builder *b, const struct tir_inst *inst)
{
    const struct tir_type *t = tir_result(inst)->type;
    assert(inst->operands[0]);
    switch (inst->op) {
    case TIR_OP_CAST:
    case TIR_OP_BITCAST:
        return fold_cast(b, inst);
    case TIR_OP_BROADCAST: // with a layout it is there to have one
        return t->layout ? NULL : splat_as(b->f, inst->operands[0], t);
    case TIR_OP_RESHAPE:
    case TIR_OP_PERMUTE:
    case TIR_OP_CONVERT_LAYOUT:
        return splat_as(b->f, inst->operands[0], t);
    case TIR_OP_REDUCE:
        return fold_reduce(b, inst);
    default:
        break;
    }
    union tir_number in[3], out;
    if (inst->operand_count == 0 || inst->operand_count > 3)
        return NULL;
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        if (!inst->operands[i])
            return NULL;
        in[i].i = inst->operands[i]->constant.i;
    }
    enum tir_elem elem = inst->operands[inst->operand_count - 1]->type->elem;
    return tir_number_apply(inst->op, elem, in, &out) ? const_of(b->f, t, out) : NULL;
}

// Identities.

static struct tir_value *give(struct tir_builder *b, const struct tir_inst *inst,
                              enum outcome outcome, struct tir_value *other,
                              struct tir_value *constant)
{
    const struct tir_type *t = tir_result(inst)->type;
    switch (outcome) {
    case OTHER:
        return other;
    case NEGATED:
        return tir_build1(b, TIR_OP_NEG, t, &other, 1);
    case INVERTED:
        return tir_build1(b, TIR_OP_NOT, t, &other, 1);
    case THE_ZERO:
        return tir_const_int(b->f, t, 0);
    case THE_CONSTANT:
        return constant;
    case THE_TRUE:
        return tir_const_int(b->f, t, 1);
    }
    tir_unreachable();
}

static struct tir_value *identity(struct tir_builder *b, const struct tir_inst *inst)
{
    if (inst->operand_count != 2 || tir_ops[inst->op].operand_count != 2)
        return NULL;
    struct tir_value *x = inst->operands[0], *y = inst->operands[1];
    if (!x || !y)
        return NULL;
    const struct identity *rows = with_itself;
    size_t count = x == y ? TIR_COUNT_OF(with_itself) : 0;
    struct tir_value *constant = NULL, *other = x;
    if (is_const(y)) {
        rows = with_constant_right;
        count = TIR_COUNT_OF(with_constant_right);
        constant = y;
    } else if (is_const(x)) {
        rows = with_constant_left;
        count = TIR_COUNT_OF(with_constant_left);
        constant = x;
        other = y;
    }
    for (size_t i = 0; i < count; i++)
        if (rows[i].op == inst->op && (rows[i].kinds & kind_of(x)) &&
            (!constant || is_known(constant, rows[i].known)))
            return give(b, inst, rows[i].outcome, other, constant);
    return NULL;
}

// Arithmetic that makes new instructions.

static struct tir_inst *made_by(const struct tir_value *v, enum tir_op op)
{
    return v && v->kind == TIR_VALUE_RESULT && v->def->op == op ? v->def : NULL;
}

static struct tir_value *binary(struct tir_builder *b, enum tir_op op, const struct tir_type *t,
                                struct tir_value *x, struct tir_value *y)
{
    return tir_build1(b, op, t, (struct tir_value *[]){x, y}, 2);
}

// Integers, of which wrapping sums and products regroup freely.
static struct tir_value *regroup(struct tir_builder *b, const struct tir_inst *inst)
{
    struct tir_value *x = inst->operands[0], *y = inst->operands[1];
    const struct tir_type *t = tir_result(inst)->type;
    if (!(kind_of(x) & INT))
        return NULL;
    if (inst->op == TIR_OP_SUB && is_const(y)) { // sub(x, c) -> add(x, -c)
        uint64_t negated = -(uint64_t)y->constant.i;
        return binary(b, TIR_OP_ADD, t, x, tir_const_int(b->f, y->type, (int64_t)negated));
    }
    const struct tir_inst *inner = made_by(x, inst->op);
    bool sums = inst->op == TIR_OP_ADD || inst->op == TIR_OP_MUL;
    if (inner && sums && is_const(y) && is_const(inner->operands[1])) {
        // add(add(x, c), d) -> add(x, c + d)
        union tir_number in[] = {{.i = inner->operands[1]->constant.i}, {.i = y->constant.i}}, out;
        tir_number_apply(inst->op, t->elem, in, &out);
        return binary(b, inst->op, t, inner->operands[0], tir_const_int(b->f, t, out.i));
    }
    if (inst->op == TIR_OP_SUB && (inner = made_by(x, TIR_OP_ADD))) { // sub(add(x, y), x) -> y
        if (inner->operands[0] == y)
            return inner->operands[1];
        if (inner->operands[1] == y)
            return inner->operands[0];
    }
    if (inst->op == TIR_OP_ADD) { // add(sub(x, y), y) -> x, either way round
        if ((inner = made_by(x, TIR_OP_SUB)) && inner->operands[1] == y)
            return inner->operands[0];
        if ((inner = made_by(y, TIR_OP_SUB)) && inner->operands[1] == x)
            return inner->operands[0];
    }
    // rem(mul(x, c), d) -> 0 where the power of two d divides c, wrapped or not
    inner = made_by(x, TIR_OP_MUL);
    if (inst->op == TIR_OP_REM && inner && is_const(y) && is_const(inner->operands[1]) &&
        y->constant.i > 0 && tir_is_pow2((uint64_t)y->constant.i) &&
        inner->operands[1]->constant.i % y->constant.i == 0)
        return tir_const_int(b->f, t, 0);
    return NULL;
}

// div(x, 2^k) -> mul(x, 2^-k): both round the same exact number.
static struct tir_value *float_division(struct tir_builder *b, const struct tir_inst *inst)
{
    const struct tir_value *y = inst->operands[1];
    enum tir_elem elem = y->type->elem;
    int e, limit = elem == TIR_F16 ? 14 : 100;
    bool wide = elem == TIR_F16 || elem == TIR_BF16 || elem == TIR_F32 || elem == TIR_F64;
    if (!is_const(y) || !wide || y->constant.f == 0 || !isfinite(y->constant.f) ||
        fabs(frexp(y->constant.f, &e)) != 0.5 || e > limit || e < -limit)
        return NULL;
    return binary(b, TIR_OP_MUL, tir_result(inst)->type, inst->operands[0],
                  tir_const_float(b->f, y->type, 1 / y->constant.f));
}

// Unsigned division by a power of two.
static struct tir_value *unsigned_division(struct tir_builder *b, const struct tir_inst *inst)
{
    const struct tir_value *y = inst->operands[1];
    if (!is_const(y) || !tir_is_pow2((uint64_t)y->constant.i))
        return NULL;
    int64_t shift = 0;
    while ((uint64_t)y->constant.i >> shift > 1)
        shift++;
    const struct tir_type *t = tir_result(inst)->type;
    if (inst->op == TIR_OP_DIV)
        return binary(b, TIR_OP_SHR, t, inst->operands[0], tir_const_int(b->f, y->type, shift));
    return binary(b, TIR_OP_AND, t, inst->operands[0],
                  tir_const_int(b->f, y->type, y->constant.i - 1));
}

static struct tir_value *division(struct tir_builder *b, const struct tir_inst *inst)
{
    uint32_t kind = kind_of(inst->operands[0]);
    if (kind == FLOAT && inst->op == TIR_OP_DIV)
        return float_division(b, inst);
    struct tir_value *r = inst->op == TIR_OP_REM ? regroup(b, inst) : NULL;
    return !r && kind == UNSIGNED ? unsigned_division(b, inst) : r;
}

static struct tir_value *negation(struct tir_builder *b, const struct tir_inst *inst)
{
    const struct tir_value *x = inst->operands[0];
    const struct tir_inst *inner = made_by(x, inst->op);
    if (inner) // neg(neg(x)) -> x
        return inner->operands[0];
    static const struct {
        enum tir_op op, inverse;
        bool floats; // also where one side may be NaN
    } inverses[] = {{TIR_OP_EQ, TIR_OP_NE, true},  {TIR_OP_NE, TIR_OP_EQ, true},
                    {TIR_OP_LT, TIR_OP_GE, false}, {TIR_OP_GE, TIR_OP_LT, false},
                    {TIR_OP_GT, TIR_OP_LE, false}, {TIR_OP_LE, TIR_OP_GT, false}};
    for (size_t i = 0; inst->op == TIR_OP_NOT && i < TIR_COUNT_OF(inverses); i++) {
        inner = made_by(x, inverses[i].op); // not(lt(a, b)) -> ge(a, b)
        if (inner && (inverses[i].floats || kind_of(inner->operands[0]) != FLOAT))
            return binary(b, inverses[i].inverse, x->type, inner->operands[0], inner->operands[1]);
    }
    return NULL;
}

static struct tir_value *absolute(struct tir_builder *b, const struct tir_inst *inst)
{
    struct tir_value *x = inst->operands[0];
    const struct tir_inst *inner = made_by(x, TIR_OP_NEG);
    if (kind_of(x) == UNSIGNED || made_by(x, TIR_OP_ABS)) // abs(abs(x)) -> abs(x)
        return x;
    return inner ? tir_build1(b, TIR_OP_ABS, x->type, inner->operands, 1) : NULL;
}

static struct tir_value *selection(struct tir_builder *b, const struct tir_inst *inst)
{
    struct tir_value *c = inst->operands[0], *x = inst->operands[1], *y = inst->operands[2];
    const struct tir_type *t = tir_result(inst)->type;
    if (x == y)
        return x;
    if (is_const(c)) // where(true, x, y) -> x
        return c->constant.i ? x : y;
    if (t->elem == TIR_BOOL && is_const(x) && is_const(y)) // where(c, true, false) -> c
        return x->constant.i ? c : tir_build1(b, TIR_OP_NOT, t, &c, 1);
    const struct tir_inst *inner = made_by(c, TIR_OP_NOT);
    if (inner) // where(not(c), x, y) -> where(c, y, x)
        return tir_build1(b, TIR_OP_WHERE, t, (struct tir_value *[]){inner->operands[0], y, x}, 3);
    return NULL;
}

// Casts.

// Whether every value of type `from` is one of type `to`.
static bool holds(enum tir_elem to, enum tir_elem from)
{
    const struct tir_elem_info *a = &tir_elems[from], *b = &tir_elems[to];
    if (from == to)
        return true;
    if (a->kind == TIR_KIND_BOOLEAN)
        return to != TIR_UE8M0;                               // which has no zero
    uint32_t digits = a->bits - (a->kind == TIR_KIND_SIGNED); // of an integer
    if (a->kind == TIR_KIND_FLOAT) {
        if (b->kind != TIR_KIND_FLOAT || from == TIR_UE8M0 || to == TIR_UE8M0)
            return false;
        bool wide_exponent =
            to == TIR_F64 ||
            ((to == TIR_F32 || to == TIR_TF32 || to == TIR_BF16) && from != TIR_F64);
        bool fp8_in_f16 = to == TIR_F16 && a->bits <= 8;
        return (wide_exponent || fp8_in_f16) && b->mantissa >= a->mantissa;
    }
    if (b->kind == TIR_KIND_FLOAT)
        return b->mantissa >= digits && b->bits >= 16 && (to != TIR_F16 || digits <= 11);
    if (a->kind == TIR_KIND_SIGNED)
        return b->kind == TIR_KIND_SIGNED && b->bits >= a->bits;
    return (b->kind == TIR_KIND_UNSIGNED && b->bits >= a->bits) ||
           (b->kind == TIR_KIND_SIGNED && b->bits > a->bits);
}

static struct tir_value *cast(struct tir_builder *b, const struct tir_inst *inst)
{
    struct tir_value *x = inst->operands[0];
    const struct tir_type *t = tir_result(inst)->type;
    if (x->type == t)
        return x;
    const struct tir_inst *inner = made_by(x, inst->op);
    if (!inner)
        return NULL;
    enum tir_elem from = inner->operands[0]->type->elem, via = x->type->elem, to = t->elem;
    if (inst->op == TIR_OP_CAST && from == to && to == TIR_E5M2)
        return NULL; // an infinity comes back as the largest number
    bool direct = inst->op == TIR_OP_BITCAST && tir_elem_width(via) >= tir_elem_width(from);
    if (inst->op == TIR_OP_CAST && holds(via, from)) // cast(cast(x: f16): f32): bf16
        direct = !(tir_elem_is_int(from) && tir_elem_is_float(via) && tir_elem_is_int(to)) ||
                 holds(to, from);
    else if (tir_elem_is_int(from) && tir_elem_is_int(via) && tir_elem_is_int(to)) // low bits
        direct |= tir_elems[to].bits <= tir_elems[via].bits;
    if (!direct)
        return NULL;
    return inner->operands[0]->type == t ? inner->operands[0]
                                         : tir_build1(b, inst->op, t, inner->operands, 1);
}

// Shapes.

static struct tir_value *reshape(struct tir_builder *b, const struct tir_inst *inst)
{
    struct tir_value *x = inst->operands[0];
    const struct tir_type *t = tir_result(inst)->type;
    const struct tir_inst *inner = made_by(x, inst->op);
    if (x->type == t)
        return x;
    if (!inner || t->layout || x->type->layout) // layouts say more than the shapes
        return NULL;
    if (inner->operands[0]->type == t)
        return inner->operands[0];
    return tir_build1(b, inst->op, t, inner->operands, 1);
}

static struct tir_value *permute(struct tir_builder *b, const struct tir_inst *inst)
{
    struct tir_value *x = inst->operands[0];
    const struct tir_attr *outer = tir_attr_find(inst, TIR_ATTR_permutation);
    const struct tir_inst *inner = made_by(x, TIR_OP_PERMUTE);
    int64_t order[TIR_MAX_RANK];
    for (uint32_t d = 0; d < outer->list_count; d++)
        order[d] = inner ? tir_attr_find(inner, TIR_ATTR_permutation)->list[outer->list[d]]
                         : outer->list[d];
    bool identity_order = true;
    for (uint32_t d = 0; d < outer->list_count; d++)
        identity_order &= order[d] == d;
    struct tir_value *from = inner ? inner->operands[0] : x;
    const struct tir_type *t = tir_result(inst)->type;
    if (identity_order && from->type == t)
        return from;
    if (!inner)
        return NULL;
    struct tir_value *r = tir_build1(b, TIR_OP_PERMUTE, t, &from, 1);
    tir_set_list(b->f, r->def, TIR_ATTR_permutation, order, outer->list_count);
    return r;
}

static struct tir_value *convert_layout(struct tir_builder *b, const struct tir_inst *inst)
{
    struct tir_value *x = inst->operands[0];
    const struct tir_type *t = tir_result(inst)->type;
    const struct tir_inst *inner = made_by(x, TIR_OP_CONVERT_LAYOUT);
    if (x->type == t)
        return x;
    if (!inner || inst->operands[1] || inner->operands[1]) // scratch is placed already
        return NULL;
    if (inner->operands[0]->type == t)
        return inner->operands[0];
    return tir_build1(b, TIR_OP_CONVERT_LAYOUT, t, (struct tir_value *[]){inner->operands[0], NULL},
                      2);
}

// The scalar that a tile repeats; NULL: it is no such tile.
static struct tir_value *repeated(struct tir_builder *b, struct tir_value *v)
{
    if (is_const(v))
        return splat_as(b->f, v, tir_type_scalar(b->f->module->types, v->type->elem));
    const struct tir_inst *broadcast = made_by(v, TIR_OP_BROADCAST);
    return broadcast && broadcast->operands[0]->type->rank == 0 ? broadcast->operands[0] : NULL;
}

// exp(broadcast(s)) -> broadcast(exp(s)), for any elementwise operation.
static struct tir_value *on_scalars(struct tir_builder *b, const struct tir_inst *inst)
{
    enum tir_rule rule = tir_ops[inst->op].rule;
    bool elementwise = rule == TIR_RULE_COMPARE || rule == TIR_RULE_SELECT ||
                       rule == TIR_RULE_SAME || inst->op == TIR_OP_CAST ||
                       inst->op == TIR_OP_BITCAST;
    const struct tir_type *t = tir_result(inst)->type;
    struct tir_value *scalars[3];
    if (!elementwise || !tir_type_is_tile(t) || b->f->form > tir_ops[TIR_OP_BROADCAST].last_form)
        return NULL;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (!(scalars[i] = repeated(b, inst->operands[i])))
            return NULL;
    const struct tir_type *scalar = tir_type_scalar(b->f->module->types, t->elem);
    struct tir_value *r = tir_build1(b, inst->op, scalar, scalars, inst->operand_count);
    return tir_build1(b, TIR_OP_BROADCAST, t, &r, 1);
}

// Memory.

// The pad of a load whose mask is never true.
static struct tir_value *load(struct tir_builder *b, const struct tir_inst *inst)
{
    const struct tir_value *mask = inst->operands[TIR_LOAD_MASK];
    const struct tir_value *pad = inst->operands[TIR_LOAD_PAD];
    const struct tir_type *t = tir_result(inst)->type;
    if (!mask || !is_const(mask) || mask->constant.i || (pad && !is_const(pad)))
        return NULL;
    return pad ? splat_as(b->f, pad, t) : const_of(b->f, t, (union tir_number){.i = 0});
}

// Drops a mask or predicate that is always true.
static void drop_true_masks(struct tir_inst *inst, bool *changed)
{
    const struct tir_op_info *op = &tir_ops[inst->op];
    uint32_t fixed = 0;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        enum tir_operand_kind kind = op->operands[i].kind;
        if (kind == TIR_OPERAND_REF || kind == TIR_OPERAND_LIST)
            continue;
        struct tir_value *v = inst->operands[fixed++];
        enum tir_operand_role role = op->operands[i].role;
        if ((role == TIR_ROLE_MASK || role == TIR_ROLE_PRED) && v && is_const(v) &&
            v->type->elem == TIR_BOOL && v->constant.i) {
            inst->operands[fixed - 1] = NULL;
            *changed = true;
        }
    }
}

// A sum or a product alone, which round once too.
static struct tir_value *fused(struct tir_builder *b, const struct tir_inst *inst)
{
    struct tir_value *const *v = inst->operands;
    const struct tir_type *t = tir_result(inst)->type;
    if (is_const(v[2]) && is_known(v[2], MINUS_ZERO)) // fma(x, y, -0.0) -> mul(x, y)
        return binary(b, TIR_OP_MUL, t, v[0], v[1]);
    for (uint32_t i = 0; i < 2; i++) {
        if (is_const(v[i]) && is_known(v[i], ONE)) // fma(x, 1, z) -> add(x, z)
            return binary(b, TIR_OP_ADD, t, v[!i], v[2]);
        if (is_const(v[i]) && is_known(v[i], MINUS_ONE)) // fma(x, -1, z) -> sub(z, x)
            return binary(b, TIR_OP_SUB, t, v[2], v[!i]);
    }
    return NULL;
}

static struct tir_value *by_operation(struct tir_builder *b, const struct tir_inst *inst)
{
    const struct tir_type *t = tir_result(inst)->type;
    switch (inst->op) {
    case TIR_OP_ADD:
    case TIR_OP_SUB:
    case TIR_OP_MUL:
        return regroup(b, inst);
    case TIR_OP_DIV:
    case TIR_OP_REM:
        return division(b, inst);
    case TIR_OP_FMA:
        return fused(b, inst);
    case TIR_OP_NEG:
    case TIR_OP_NOT:
        return negation(b, inst);
    case TIR_OP_ABS:
        return absolute(b, inst);
    case TIR_OP_WHERE:
        return selection(b, inst);
    case TIR_OP_CAST:
    case TIR_OP_BITCAST:
        return cast(b, inst);
    case TIR_OP_BROADCAST:
    case TIR_OP_RESHAPE:
        return reshape(b, inst);
    case TIR_OP_PERMUTE:
        return permute(b, inst);
    case TIR_OP_CONVERT_LAYOUT:
        return convert_layout(b, inst);
    case TIR_OP_IOTA:
        return t->shape[tir_attr_int(inst, TIR_ATTR_axis, 0)] == 1 ? tir_const_int(b->f, t, 0)
                                                                   : NULL;
    case TIR_OP_LOAD:
        return load(b, inst);
    default:
        return NULL;
    }
}

struct tir_value *tir_simplify(struct tir_builder *b, struct tir_inst *inst, bool *changed)
{
    drop_true_masks(inst, changed);
    if (inst->result_count != 1 || !(tir_has_trait(inst, TIR_PURE) || inst->op == TIR_OP_LOAD))
        return NULL;
    bool all_const = inst->operand_count > 0;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        all_const &= !inst->operands[i] || is_const(inst->operands[i]);
    struct tir_value *r = all_const ? fold_constants(b, inst) : NULL;
    if (r)
        return r;
    struct tir_value **v = inst->operands;
    if (tir_has_trait(inst, TIR_COMMUTES) && is_const(v[0]) && !is_const(v[1])) {
        struct tir_value *left = v[0];
        v[0] = v[1];
        v[1] = left;
        *changed = true;
    }
    r = identity(b, inst);
    if (!r)
        r = by_operation(b, inst);
    return r ? r : on_scalars(b, inst);
}
