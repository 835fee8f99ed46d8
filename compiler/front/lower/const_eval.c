// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compile-time arithmetic. Integers are exact: what does not fit in 64 bits is an error.
#include "front/lower/lower.h"

#include <math.h>

static struct val overflow(struct lower *l, struct tir_span span)
{
    lower_error(l, span, TIR_E_OVERFLOW, "this compile-time integer does not fit in 64 bits");
    return val_poison();
}

static struct val wrong(struct lower *l, struct tir_span span, enum tir_token_kind op, struct val a,
                        struct val b)
{
    lower_error(l, span, TIR_E_TYPE, "%s does not apply to %s and %s", tir_token_text(op),
                lower_val_name(l, a), lower_val_name(l, b));
    return val_poison();
}

struct val const_unary(struct lower *l, struct tir_span span, enum tir_token_kind op, struct val a)
{
    if (op == TIR_TOK_NOT && a.kind == VAL_BOOL)
        return val_bool(!a.truth);
    if (op == TIR_TOK_BIT_NOT && a.kind == VAL_INT)
        return val_int(~a.i);
    if (op == TIR_TOK_SUB && a.kind == VAL_FLOAT)
        return val_float(-a.f);
    if (op == TIR_TOK_SUB && a.kind == VAL_INT)
        return a.i == INT64_MIN ? overflow(l, span) : val_int(-a.i);
    lower_error(l, span, TIR_E_TYPE, "%s does not apply to %s", tir_token_text(op),
                lower_val_name(l, a));
    return val_poison();
}

static struct val divide(struct lower *l, struct tir_span span, enum tir_token_kind op, int64_t a,
                         int64_t b)
{
    if (b == 0) {
        lower_error(l, span, TIR_E_CONSTANT, "division by zero at compile time");
        return val_poison();
    }
    if (a == INT64_MIN && b == -1)
        return op == TIR_TOK_DIV ? overflow(l, span) : val_int(0);
    return val_int(op == TIR_TOK_DIV ? a / b : a % b);
}

static struct val shift(struct lower *l, struct tir_span span, enum tir_token_kind op, int64_t a,
                        int64_t b)
{
    int64_t scaled;
    if (b < 0 || b > 63) {
        lower_error(l, span, TIR_E_OVERFLOW, "a compile-time shift by %lld; 0 to 63 are possible",
                    (long long)b);
        return val_poison();
    }
    if (op == TIR_TOK_SHR)
        return val_int(a >> b);
    if (b == 63)
        return a ? overflow(l, span) : val_int(0);
    return tir_mul_checked(a, INT64_C(1) << b, &scaled) ? val_int(scaled) : overflow(l, span);
}

struct order { // of two numbers; with a NaN nothing holds
    bool less, equal, greater;
};

static struct val compare(struct lower *l, struct tir_span span, enum tir_token_kind op,
                          struct order is, struct val a, struct val b)
{
    switch (op) {
    case TIR_TOK_LT:
        return val_bool(is.less);
    case TIR_TOK_LE:
        return val_bool(is.less || is.equal);
    case TIR_TOK_GT:
        return val_bool(is.greater);
    case TIR_TOK_GE:
        return val_bool(is.greater || is.equal);
    case TIR_TOK_EQ:
        return val_bool(is.equal);
    case TIR_TOK_NE:
        return val_bool(!is.equal);
    default:
        return wrong(l, span, op, a, b);
    }
}

static struct val binary_ints(struct lower *l, struct tir_span span, enum tir_token_kind op,
                              int64_t a, int64_t b)
{
    int64_t r;
    switch (op) {
    case TIR_TOK_ADD:
        return tir_add_checked(a, b, &r) ? val_int(r) : overflow(l, span);
    case TIR_TOK_SUB:
        return tir_sub_checked(a, b, &r) ? val_int(r) : overflow(l, span);
    case TIR_TOK_MUL:
        return tir_mul_checked(a, b, &r) ? val_int(r) : overflow(l, span);
    case TIR_TOK_DIV:
    case TIR_TOK_REM:
        return divide(l, span, op, a, b);
    case TIR_TOK_SHL:
    case TIR_TOK_SHR:
        return shift(l, span, op, a, b);
    case TIR_TOK_AND:
        return val_int(a & b);
    case TIR_TOK_OR:
        return val_int(a | b);
    case TIR_TOK_XOR:
        return val_int(a ^ b);
    default:
        return compare(l, span, op, (struct order){a<b, a == b, a> b}, val_int(a), val_int(b));
    }
}

static struct val binary_floats(struct lower *l, struct tir_span span, enum tir_token_kind op,
                                double a, double b)
{
    switch (op) {
    case TIR_TOK_ADD:
        return val_float(a + b);
    case TIR_TOK_SUB:
        return val_float(a - b);
    case TIR_TOK_MUL:
        return val_float(a * b);
    case TIR_TOK_DIV:
        return val_float(a / b);
    case TIR_TOK_REM:
        return val_float(fmod(a, b));
    default:
        return compare(l, span, op, (struct order){a<b, a == b, a> b}, val_float(a), val_float(b));
    }
}

static struct val binary_bools(struct lower *l, struct tir_span span, enum tir_token_kind op,
                               bool a, bool b)
{
    switch (op) {
    case TIR_TOK_AND_AND:
    case TIR_TOK_AND:
        return val_bool(a && b);
    case TIR_TOK_OR_OR:
    case TIR_TOK_OR:
        return val_bool(a || b);
    case TIR_TOK_XOR:
    case TIR_TOK_NE:
        return val_bool(a != b);
    case TIR_TOK_EQ:
        return val_bool(a == b);
    default:
        return wrong(l, span, op, val_bool(a), val_bool(b));
    }
}

struct val const_binary(struct lower *l, struct tir_span span, enum tir_token_kind op, struct val a,
                        struct val b)
{
    if (a.kind == VAL_INT && b.kind == VAL_INT)
        return binary_ints(l, span, op, a.i, b.i);
    if (a.kind == VAL_BOOL && b.kind == VAL_BOOL)
        return binary_bools(l, span, op, a.truth, b.truth);
    if (a.kind == VAL_BOOL || b.kind == VAL_BOOL)
        return wrong(l, span, op, a, b);
    return binary_floats(l, span, op, a.kind == VAL_INT ? (double)a.i : a.f,
                         b.kind == VAL_INT ? (double)b.i : b.f);
}

static struct val const_ceildiv(struct lower *l, struct tir_span span, int64_t a, int64_t b)
{
    if (a < 0 || b <= 0) {
        lower_error(l, span, TIR_E_CONSTANT, "ceildiv needs a >= 0 and b > 0, not %lld and %lld",
                    (long long)a, (long long)b);
        return val_poison();
    }
    return val_int(tir_ceil_div(a, b));
}

static double number(struct val v)
{
    return v.kind == VAL_INT ? (double)v.i : v.f;
}

bool const_call(struct lower *l, struct tir_span span, enum tir_op op, const struct val *args,
                uint32_t count, struct val *out)
{
    for (uint32_t i = 0; i < count; i++)
        if (args[i].kind != VAL_INT && args[i].kind != VAL_FLOAT)
            return false;
    bool ints = count == 2 && args[0].kind == VAL_INT && args[1].kind == VAL_INT;
    if (op == TIR_OP_CEILDIV && ints) {
        *out = const_ceildiv(l, span, args[0].i, args[1].i);
    } else if ((op == TIR_OP_MIN || op == TIR_OP_MAX) && ints) {
        *out = val_int(op == TIR_OP_MIN ? TIR_MIN(args[0].i, args[1].i)
                                        : TIR_MAX(args[0].i, args[1].i));
    } else if ((op == TIR_OP_MIN || op == TIR_OP_MAX) && count == 2) {
        double a = number(args[0]), b = number(args[1]);
        bool first = op == TIR_OP_MIN ? a < b : a > b;
        *out = val_float(isnan(a) || first ? a : b);
    } else if (op == TIR_OP_ABS && count == 1) {
        if (args[0].kind == VAL_INT)
            *out = args[0].i < 0 ? const_unary(l, span, TIR_TOK_SUB, args[0]) : args[0];
        else
            *out = val_float(fabs(args[0].f));
    } else {
        return false;
    }
    return true;
}

// A constant made by a call such as f32(0.5) is its number again.
static struct val as_number(struct lower *l, struct tir_span span, struct val v)
{
    if (v.kind != VAL_IR || v.ir->kind != TIR_VALUE_CONST || v.ir->type->rank)
        return v;
    if (tir_elem_is_float(v.ir->type->elem))
        return val_float(v.ir->constant.f);
    if (v.ir->type->elem == TIR_U64 && v.ir->constant.i < 0) {
        lower_error(l, span, TIR_E_OVERFLOW,
                    "%llu does not fit in a compile-time integer (64 bits, signed)",
                    (unsigned long long)v.ir->constant.i);
        return val_poison();
    }
    return v.ir->type->elem == TIR_BOOL ? val_bool(v.ir->constant.i) : val_int(v.ir->constant.i);
}

struct val const_typed(struct lower *l, const struct ast_binding *b, struct val v)
{
    enum tir_elem e;
    v = as_number(l, b->value->span, v);
    if (v.kind == VAL_POISON)
        return v;
    if (!val_is_constant(v) && v.kind != VAL_ELEM && (v.kind != VAL_LAYOUT || b->type)) {
        lower_error(l, b->value->span, TIR_E_CONSTANT, "a constant cannot be %s",
                    lower_val_name(l, v));
        lower_suggest_parameter(l, b->value->span, v);
        return val_poison();
    }
    if (!b->type)
        return v;
    if (!lower_elem(l, b->type, &e))
        return val_poison();
    if (v.kind == VAL_INT && tir_elem_is_float(e))
        v = val_float((double)v.i);
    bool fits = !b->type->dims.len && ((v.kind == VAL_INT && tir_elem_is_int(e)) ||
                                       (v.kind == VAL_FLOAT && tir_elem_is_float(e)) ||
                                       (v.kind == VAL_BOOL && e == TIR_BOOL));
    if (!fits)
        lower_error(l, b->value->span, TIR_E_CONVERSION, "%s does not become %s by itself",
                    lower_val_name(l, v), tir_elems[e].name);
    else if (v.kind == VAL_INT && !convert_int_fits(v.i, e))
        lower_error(l, b->value->span, TIR_E_OVERFLOW, "%lld does not fit in %s", (long long)v.i,
                    tir_elems[e].name);
    else
        return v;
    return val_poison();
}

bool const_int(struct lower *l, const struct ast_expr *e, const char *what, int64_t *out)
{
    struct val v = lower_expr(l, e);
    if (v.kind == VAL_INT) {
        *out = v.i;
        return true;
    }
    if (v.kind != VAL_POISON)
        lower_error(l, e->span, TIR_E_CONSTANT, "%s must be a compile-time integer, not %s", what,
                    lower_val_name(l, v));
    return false;
}

bool const_truth(struct lower *l, const struct ast_expr *e, const char *what, bool *out)
{
    struct val v = lower_expr(l, e);
    if (v.kind == VAL_BOOL) {
        *out = v.truth;
        return true;
    }
    if (v.kind != VAL_POISON)
        lower_error(l, e->span, TIR_E_CONSTANT, "%s must be known at compile time, not %s", what,
                    lower_val_name(l, v));
    return false;
}
