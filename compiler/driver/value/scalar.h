// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scalar arguments and single elements as text.
#ifndef TIR_DRIVER_VALUE_SCALAR_H
#define TIR_DRIVER_VALUE_SCALAR_H

#include "base/str.h"
#include "ir/type.h"

// A scalar in the forms that its users want it.
struct tir_scalar {
    enum tir_elem elem;
    int64_t i;     // bool and integers (u64: the same bits)
    double f;      // floats, rounded to the type
    uint64_t bits; // as in memory
};

// false, true, an integer or a number, as the type asks; it must fit.
bool tir_scalar_parse(enum tir_elem elem, tir_str text, struct tir_scalar *out, tir_error *error);
// The element at `at`.
struct tir_scalar tir_scalar_load(enum tir_elem elem, const uint8_t *at);
void tir_scalar_print(struct tir_text *out, const struct tir_scalar *scalar);

#endif
