// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The configuration of least time, where the dimensions are known when the kernel is compiled.

#include "compile/cost.h"

#include "compile/formula.h"
#include "compile/known.h"

// The formula at the dimensions known at compile time. False: these do not decide.
static bool known_value(const struct tir_request *request, const struct tir_func *f,
                        const tir_formula *formula, int64_t *value)
{
    int64_t dims[TIR_MAX_DIMS] = {0}, params[TIR_MAX_PARAMS] = {0};
    for (uint32_t k = 0; k < formula->count; k++) {
        const tir_formula_op *op = &formula->ops[k];
        if (op->code == TIR_FORMULA_SCALAR || op->code == TIR_FORMULA_ALIGN ||
            op->code == TIR_FORMULA_BEGIN ||
            (op->code == TIR_FORMULA_DIM &&
             !tir_known_size(request, f, (uint32_t)op->value, &dims[op->value])))
            return false;
    }
    tir_error ignored;
    return formula->count && !tir_formula_eval(formula, dims, params, value, &ignored);
}

// Do the conditions of this configuration alone hold? False: the known dimensions do not decide.
static bool own_holds(struct tir_context *cx, const struct tir_request *request,
                      const struct tir_func *f, bool *holds)
{
    *holds = true;
    for (uint32_t i = 0; i < f->own_count; i++) {
        const struct tir_inst *yield = tir_yield_of(f->host);
        tir_formula formula;
        int64_t value;
        if (!tir_compile_estimate(cx, f, yield->operands[yield->operand_count - f->own_count + i],
                                  &formula) ||
            !known_value(request, f, &formula, &value))
            return false;
        *holds &= value != 0;
    }
    return true;
}

struct tir_choice tir_compile_cheapest(struct tir_context *cx, const struct tir_request *request,
                                       struct tir_func *const *configs, const tir_formula *costs,
                                       uint32_t count)
{
    const struct tir_choice none = {count, count, INT64_MAX, INT64_MAX};
    struct tir_choice found = none;
    if (!request->options.dim_count || configs[0]->dim_count > TIR_MAX_DIMS)
        return none;
    for (uint32_t i = 0; i < count; i++) {
        int64_t cost;
        bool holds;
        if (!known_value(request, configs[i], &costs[i], &cost) ||
            !own_holds(cx, request, configs[i], &holds))
            return none;
        if (holds && cost < found.cost)
            found = (struct tir_choice){i, found.best, cost, found.cost};
        else if (holds && cost < found.next_cost)
            found.next = i, found.next_cost = cost;
    }
    return found;
}
