// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The front end makes `start + s * iota` of a slice with a stride, an index tile like any other.

#include "pass/async/stride.h"

#define DEPTH 8 // operations that are looked through

// v is linear in the number of the element, with factor *by; it is 0 for a scalar.
static bool factor_of(const struct tir_value *v, uint32_t depth, int64_t *by)
{
    int64_t a, b, factor;
    const struct tir_inst *def = v->def;
    *by = 0;
    if (v->kind == TIR_VALUE_CONST || !tir_type_is_tile(v->type))
        return true;
    if (!def || !depth || !tir_elem_is_int(v->type->elem))
        return false;
    switch (def->op) {
    case TIR_OP_IOTA:
        *by = 1;
        return true;
    case TIR_OP_CAST:
    case TIR_OP_BROADCAST:
    case TIR_OP_RESHAPE:
    case TIR_OP_CONVERT_LAYOUT:
        return factor_of(def->operands[0], depth - 1, by);
    case TIR_OP_ADD:
        return factor_of(def->operands[0], depth - 1, &a) &&
               factor_of(def->operands[1], depth - 1, &b) && tir_add_checked(a, b, by);
    case TIR_OP_MUL:
        for (uint32_t i = 0; i < 2; i++)
            if (tir_is_const_int(def->operands[1 - i], &factor))
                return factor_of(def->operands[i], depth - 1, &a) && tir_mul_checked(a, factor, by);
        return false;
    default:
        return false;
    }
}

int64_t tir_stride_of(const struct tir_value *index)
{
    int64_t by;
    return factor_of(index, DEPTH, &by) ? by : 0;
}

const char *tir_index_refusal(const struct tir_inst *slice, uint32_t d)
{
    return tir_stride_of(tir_ref_indices(slice)[d]) > 1 ? "its slice has a stride above 1"
                                                        : "an index tile names its elements";
}
