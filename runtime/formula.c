// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Formulas: the small stack machine that gives launch shapes and conditions.
//
// tir_formula_check proves once, when an artifact is encoded or decoded, that codes and indices are
// in range and that the stack neither under- nor overflows; evaluation then needs no such checks
// and looks only at arithmetic.

#include "formula.h"

#include <stdbool.h>

#include "error.h"

// How many values a code takes; each but SET leaves one.
static int operands_of(tir_formula_code code)
{
    if (code <= TIR_FORMULA_SCALAR || code == TIR_FORMULA_ALIGN || code == TIR_FORMULA_BEGIN ||
        code == TIR_FORMULA_GET)
        return 0;
    return code == TIR_FORMULA_NOT || code == TIR_FORMULA_SET ? 1 : 2;
}

// Checks the cell of a SET or GET, and notes in `set` those that are set.
static const char *check_cell(const tir_formula_op *op, uint32_t *set)
{
    if (op->code != TIR_FORMULA_SET && op->code != TIR_FORMULA_GET)
        return NULL;
    if (op->value < 0 || op->value >= TIR_MAX_CELLS)
        return "a formula names a cell that does not exist";
    if (op->code == TIR_FORMULA_GET && !(*set >> op->value & 1))
        return "a formula gets a cell before it is set";
    *set |= 1u << op->value;
    return NULL;
}

static const char *check_push(const tir_formula_op *op, const tir_artifact_kernel *kernel)
{
    switch (op->code) {
    case TIR_FORMULA_CONST:
        return NULL;
    case TIR_FORMULA_DIM:
        if (op->value < 0 || op->value >= kernel->dim_count)
            return "a formula names a dimension that does not exist";
        return NULL;
    case TIR_FORMULA_SCALAR:
        if (op->value < 0 || op->value >= kernel->param_count)
            return "a formula names a parameter that does not exist";
        if (kernel->params[op->value].kind != TIR_PARAM_SCALAR ||
            !tir_element_is_integer(kernel->params[op->value].element))
            return "a formula uses a parameter that is not an integer scalar";
        return NULL;
    case TIR_FORMULA_ALIGN:
    case TIR_FORMULA_BEGIN:
        if (op->value < 0 || op->value >= kernel->param_count)
            return "a formula names a parameter that does not exist";
        if (kernel->params[op->value].kind != TIR_PARAM_TENSOR)
            return "a formula asks for the alignment of a scalar";
        return NULL;
    case TIR_FORMULA_SET:
    case TIR_FORMULA_GET:
        return NULL; // check_cell
    default:
        return op->value ? "a formula operation has a stray value" : NULL;
    }
}

const char *tir_formula_check(const tir_formula *formula, const tir_artifact_kernel *kernel)
{
    int depth = 0;
    uint32_t set = 0; // cells, a bit each
    if (formula->count > TIR_MAX_FORMULA)
        return "a formula is too long";
    for (uint32_t i = 0; i < formula->count; i++) {
        const tir_formula_op *op = &formula->ops[i];
        if ((uint32_t)op->code >= TIR_FORMULA_COUNT)
            return "a formula has an unknown operation";
        const char *wrong = check_push(op, kernel);
        wrong = wrong ? wrong : check_cell(op, &set);
        if (wrong)
            return wrong;
        int takes = operands_of(op->code);
        if (depth < takes)
            return "a formula takes a value that is not there";
        depth += (op->code != TIR_FORMULA_SET) - takes;
        _Static_assert(TIR_MAX_STACK == 16, "the message has the number");
        if (depth > (int)TIR_MAX_STACK)
            return "more than 16 values of a formula wait for their operation";
    }
    if (formula->count && !depth)
        return "a formula leaves no value";
    return depth > 1 ? "a formula leaves more than one value" : NULL;
}

// Ceiling of a / b for any signs, given that a / b itself does not overflow.
static int64_t ceil_divide(int64_t a, int64_t b)
{
    int64_t quotient = a / b;
    return a % b != 0 && (a < 0) == (b < 0) ? quotient + 1 : quotient;
}

// The two-operand operations. false: overflow or division by zero.
static bool apply(tir_formula_code code, int64_t a, int64_t b, int64_t *out)
{
    switch (code) {
    case TIR_FORMULA_ADD:
        return !__builtin_add_overflow(a, b, out);
    case TIR_FORMULA_SUB:
        return !__builtin_sub_overflow(a, b, out);
    case TIR_FORMULA_MUL:
        return !__builtin_mul_overflow(a, b, out);
    case TIR_FORMULA_DIV:
    case TIR_FORMULA_MOD:
    case TIR_FORMULA_CEILDIV:
        if (b == 0 || (a == INT64_MIN && b == -1))
            return false;
        if (code == TIR_FORMULA_CEILDIV)
            *out = ceil_divide(a, b);
        else
            *out = code == TIR_FORMULA_DIV ? a / b : a % b;
        return true;
    case TIR_FORMULA_MIN:
        *out = a < b ? a : b;
        return true;
    case TIR_FORMULA_MAX:
        *out = a > b ? a : b;
        return true;
    case TIR_FORMULA_EQ:
        *out = a == b;
        return true;
    case TIR_FORMULA_NE:
        *out = a != b;
        return true;
    case TIR_FORMULA_LT:
        *out = a < b;
        return true;
    case TIR_FORMULA_LE:
        *out = a <= b;
        return true;
    case TIR_FORMULA_GT:
        *out = a > b;
        return true;
    case TIR_FORMULA_GE:
        *out = a >= b;
        return true;
    case TIR_FORMULA_AND:
        *out = a && b;
        return true;
    case TIR_FORMULA_OR:
        *out = a || b;
        return true;
    case TIR_FORMULA_CONST:
    case TIR_FORMULA_DIM:
    case TIR_FORMULA_SCALAR:
    case TIR_FORMULA_ALIGN:
    case TIR_FORMULA_BEGIN:
    case TIR_FORMULA_NOT:
    case TIR_FORMULA_SET:
    case TIR_FORMULA_GET:
    case TIR_FORMULA_COUNT:
        break;
    }
    return false;
}

TIR_API tir_status tir_formula_eval(const tir_formula *formula, const int64_t *dims,
                                    const int64_t *params, int64_t *out, tir_error *error)
{
    int64_t stack[TIR_MAX_STACK] = {0}, cells[TIR_MAX_CELLS] = {0};
    uint32_t top = 0;
    for (uint32_t i = 0; i < formula->count; i++) {
        const tir_formula_op *op = &formula->ops[i];
        switch (op->code) {
        case TIR_FORMULA_CONST:
            stack[top++] = op->value;
            break;
        case TIR_FORMULA_DIM:
            stack[top++] = dims[op->value];
            break;
        case TIR_FORMULA_SCALAR:
            stack[top++] = params[op->value];
            break;
        case TIR_FORMULA_ALIGN:
            stack[top++] = tir_align_of(params[op->value]);
            break;
        case TIR_FORMULA_BEGIN:
            stack[top++] = tir_begin_of(params[op->value]);
            break;
        case TIR_FORMULA_NOT:
            stack[top - 1] = !stack[top - 1];
            break;
        case TIR_FORMULA_SET:
            cells[op->value] = stack[--top];
            break;
        case TIR_FORMULA_GET:
            stack[top++] = cells[op->value];
            break;
        default: {
            int64_t b = stack[--top], a = stack[--top];
            if (!apply(op->code, a, b, &stack[top++]))
                return tir_error_set(error, TIR_ERR_INVALID,
                                     "a formula overflows or divides by zero: %lld and %lld",
                                     (long long)a, (long long)b);
            break;
        }
        }
    }
    *out = stack[0];
    return TIR_OK;
}
