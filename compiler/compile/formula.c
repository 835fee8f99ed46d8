// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A value of the host block as a formula of the artifact: an expression tree walked in postfix
// order.

#include "compile/formula.h"

struct formula {
    struct tir_context *cx;
    bool is_quiet;
    const struct tir_func *f;
    struct tir_span span;
    VEC(tir_formula_op) ops;
};

static void push(struct formula *formula, tir_formula_code code, int64_t value)
{
    vec_push(&formula->cx->arena, &formula->ops, ((tir_formula_op){code, value}));
}

static bool refuse(struct formula *formula, const char *what)
{
    if (!formula->is_quiet)
        tir_error_at(&formula->cx->diags, formula->span, TIR_E_GRID,
                     "a launch formula cannot hold %s", what);
    return false;
}

bool tir_compile_is_tile(const struct tir_value *v)
{
    const struct tir_inst *tiles = v->kind == TIR_VALUE_ARG ? v->block->owner : NULL;
    return tiles && tiles->op == TIR_OP_TILES && v->index < tir_carried_at(tiles);
}

static bool argument(struct formula *formula, const struct tir_value *v)
{
    const struct tir_func *f = formula->f;
    for (uint32_t i = 0; i < f->dim_count; i++)
        if (f->dims[i].value == v) {
            push(formula, TIR_FORMULA_DIM, i);
            return true;
        }
    for (uint32_t i = 0; i < f->param_count; i++)
        if (f->params[i].value == v && tir_type_is_scalar(v->type) &&
            !tir_elem_is_float(v->type->elem)) {
            push(formula, TIR_FORMULA_SCALAR, i);
            return true;
        }
    if (formula->is_quiet && tir_compile_is_tile(v)) {
        push(formula, TIR_FORMULA_CONST, 0);
        return true;
    }
    return refuse(formula, "a parameter that is no integer");
}

// The code of an operation that works on its operands as they are; COUNT: none.
static tir_formula_code code_of(const struct tir_inst *inst)
{
    bool logical = inst->results[0]->type->elem == TIR_BOOL;
    switch (inst->op) {
    case TIR_OP_ADD:
        return TIR_FORMULA_ADD;
    case TIR_OP_SUB:
    case TIR_OP_NEG: // of 0
        return TIR_FORMULA_SUB;
    case TIR_OP_MUL:
        return TIR_FORMULA_MUL;
    case TIR_OP_DIV:
        return TIR_FORMULA_DIV;
    case TIR_OP_REM:
        return TIR_FORMULA_MOD;
    case TIR_OP_CEILDIV:
        return TIR_FORMULA_CEILDIV;
    case TIR_OP_MIN:
        return TIR_FORMULA_MIN;
    case TIR_OP_MAX:
        return TIR_FORMULA_MAX;
    case TIR_OP_EQ:
        return TIR_FORMULA_EQ;
    case TIR_OP_NE:
        return TIR_FORMULA_NE;
    case TIR_OP_LT:
        return TIR_FORMULA_LT;
    case TIR_OP_LE:
        return TIR_FORMULA_LE;
    case TIR_OP_GT:
        return TIR_FORMULA_GT;
    case TIR_OP_GE:
        return TIR_FORMULA_GE;
    case TIR_OP_AND:
        return TIR_FORMULA_AND;
    case TIR_OP_OR:
        return logical ? TIR_FORMULA_OR : TIR_FORMULA_COUNT;
    case TIR_OP_XOR:
        return logical ? TIR_FORMULA_NE : TIR_FORMULA_COUNT;
    case TIR_OP_NOT:
        return logical ? TIR_FORMULA_NOT : TIR_FORMULA_COUNT;
    default:
        return TIR_FORMULA_COUNT;
    }
}

static void push_with(struct formula *formula, tir_formula_code code, int64_t constant)
{
    push(formula, TIR_FORMULA_CONST, constant);
    push(formula, code, 0);
}

// Formulas have 64 bits: what comes of narrower numbers wraps in their type, by two remainders, as
// that of a negative number is negative. A negative number is none of u64: the sum overflows.
static void wrap(struct formula *formula, enum tir_elem elem)
{
    const uint32_t bits = tir_elems[elem].bits;
    if (elem == TIR_U64 && !formula->is_quiet) {
        push_with(formula, TIR_FORMULA_ADD, INT64_MIN);
        push_with(formula, TIR_FORMULA_SUB, INT64_MIN);
    }
    if (elem == TIR_BOOL || bits >= 64 || formula->is_quiet)
        return;
    const int64_t count = INT64_C(1) << bits;
    const int64_t below = tir_elems[elem].kind == TIR_KIND_SIGNED ? count / 2 : 0;
    push_with(formula, TIR_FORMULA_MOD, count);
    push_with(formula, TIR_FORMULA_ADD, count + below);
    push_with(formula, TIR_FORMULA_MOD, count);
    if (below)
        push_with(formula, TIR_FORMULA_SUB, below);
}

static bool value(struct formula *formula, const struct tir_value *v);

// a << constant, and a >> constant: a / 2^constant rounded down, as -ceildiv(a, -2^constant).
static bool shift(struct formula *formula, const struct tir_inst *inst)
{
    int64_t by;
    if (!tir_is_const_int(inst->operands[1], &by) || by < 0 || by > 62)
        return refuse(formula, "a shift by a number that is not constant");
    if (!value(formula, inst->operands[0]))
        return false;
    if (inst->op == TIR_OP_SHL) {
        push_with(formula, TIR_FORMULA_MUL, INT64_C(1) << by);
        wrap(formula, inst->results[0]->type->elem);
        return true;
    }
    push_with(formula, TIR_FORMULA_CEILDIV, -(INT64_C(1) << by));
    push_with(formula, TIR_FORMULA_MUL, -1);
    return true;
}

// a & (2^n - 1), which a remainder of an unsigned number is folded to.
static bool mask(struct formula *formula, const struct tir_inst *inst)
{
    int64_t bits;
    const bool is_unsigned = tir_elems[inst->results[0]->type->elem].kind == TIR_KIND_UNSIGNED;
    if (!is_unsigned || !tir_is_const_int(inst->operands[1], &bits) || bits < 0 ||
        bits == INT64_MAX || !tir_is_pow2((uint64_t)bits + 1))
        return refuse(formula, "and");
    if (!value(formula, inst->operands[0]))
        return false;
    push_with(formula, TIR_FORMULA_MOD, bits + 1);
    return true;
}

// cond ? a : b as cond a + !cond b: a condition is 0 or 1.
static bool choice(struct formula *formula, const struct tir_inst *inst)
{
    for (uint32_t i = 1; i <= 2; i++) {
        if (!value(formula, inst->operands[0]))
            return false;
        if (i == 2)
            push(formula, TIR_FORMULA_NOT, 0);
        if (!value(formula, inst->operands[i]))
            return false;
        push(formula, TIR_FORMULA_MUL, 0);
    }
    push(formula, TIR_FORMULA_ADD, 0);
    return true;
}

// Does a type have all numbers of another one?
static bool holds(enum tir_elem type, enum tir_elem other)
{
    const bool is_signed = tir_elems[type].kind == TIR_KIND_SIGNED;
    if (is_signed == (tir_elems[other].kind == TIR_KIND_SIGNED))
        return tir_elems[type].bits >= tir_elems[other].bits;
    return is_signed && tir_elems[type].bits > tir_elems[other].bits;
}

static bool is_sum(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_ADD || inst->op == TIR_OP_SUB || inst->op == TIR_OP_NEG;
}

// Whether an operation may be the quotient of the smallest number by -1.
static bool may_divide_smallest(const struct tir_inst *inst)
{
    int64_t by;
    return inst->op == TIR_OP_DIV &&
           tir_elems[inst->results[0]->type->elem].kind == TIR_KIND_SIGNED &&
           (!tir_is_const_int(inst->operands[1], &by) || by == -1);
}

// An operation of code_of() before it wraps. A sum of sums wraps once: p - q + r of u64 may be a
// number though p - q is negative.
static bool unwrapped(struct formula *formula, const struct tir_inst *inst)
{
    const tir_formula_code code = code_of(inst);
    if (code == TIR_FORMULA_COUNT)
        return refuse(formula, tir_ops[inst->op].name);
    if (inst->op == TIR_OP_NEG)
        push(formula, TIR_FORMULA_CONST, 0);
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[i];
        if (v->kind == TIR_VALUE_CONST && (is_sum(inst) || inst->op == TIR_OP_MUL))
            push(formula, TIR_FORMULA_CONST, v->constant.i); // p - 5 of u64 is p + (2^64 - 5)
        else if (!(v->def && is_sum(v->def) && is_sum(inst) ? unwrapped(formula, v->def)
                                                            : value(formula, v)))
            return false;
    }
    push(formula, code, 0);
    return true;
}

static bool operation(struct formula *formula, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_SHL:
    case TIR_OP_SHR:
        return shift(formula, inst);
    case TIR_OP_WHERE:
        return choice(formula, inst);
    case TIR_OP_AND:
        if (inst->results[0]->type->elem == TIR_BOOL)
            break;
        return mask(formula, inst);
    case TIR_OP_CAST: // between integers
        if (tir_elem_is_float(inst->operands[0]->type->elem) ||
            tir_elem_is_float(inst->results[0]->type->elem))
            return refuse(formula, "floats");
        if (!value(formula, inst->operands[0]))
            return false;
        if (inst->results[0]->type->elem == TIR_BOOL)
            push_with(formula, TIR_FORMULA_NE, 0);
        else if (!holds(inst->results[0]->type->elem, inst->operands[0]->type->elem))
            wrap(formula, inst->results[0]->type->elem);
        return true;
    case TIR_OP_CTA_RANK: // of the first CTA, as of the first tile
        if (!formula->is_quiet)
            break;
        push(formula, TIR_FORMULA_CONST, 0);
        return true;
    default:
        break;
    }
    if (!unwrapped(formula, inst))
        return false;
    if (is_sum(inst) || inst->op == TIR_OP_MUL || may_divide_smallest(inst))
        wrap(formula, inst->results[0]->type->elem);
    return true;
}

static bool is_short(struct formula *formula)
{
    static_assert(TIR_MAX_FORMULA == 512, "the message has the number");
    return formula->ops.len <= TIR_MAX_FORMULA ||
           refuse(formula, "more than 512 numbers, names and operations");
}

static bool value(struct formula *formula, const struct tir_value *v)
{
    if (!is_short(formula))
        return false;
    if (tir_elem_is_float(v->type->elem))
        return refuse(formula, "floats");
    if (v->kind == TIR_VALUE_CONST) {
        const bool is_huge = v->type->elem == TIR_U64 && v->constant.i < 0;
        push(formula, TIR_FORMULA_CONST, is_huge ? INT64_MAX : v->constant.i); // as of parameters
        return true;
    }
    return v->kind == TIR_VALUE_ARG ? argument(formula, v) : operation(formula, v->def);
}

static bool make(struct formula *formula, const struct tir_value *v, tir_formula *out)
{
    if (!value(formula, v) || !is_short(formula))
        return false;
    *out = (tir_formula){formula->ops.at, formula->ops.len};
    return true;
}

bool tir_compile_formula(struct tir_context *cx, const struct tir_func *f,
                         const struct tir_value *v, struct tir_span span, tir_formula *out)
{
    struct formula formula = {.cx = cx, .f = f, .span = span};
    return make(&formula, v, out);
}

bool tir_compile_estimate(struct tir_context *cx, const struct tir_func *f,
                          const struct tir_value *v, tir_formula *out)
{
    struct formula formula = {.cx = cx, .is_quiet = true, .f = f};
    return make(&formula, v, out);
}
