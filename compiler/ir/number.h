// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers as the element types hold them, and the elementwise operations on them: the one
// definition that constant folding, the interpreter and tests share.
//
// Integers and bool travel as int64_t, sign- or zero-extended from their width (u64: the same
// bits). Floats of every type travel as a double that the type can hold exactly; a NaN keeps its
// bits.
#ifndef TIR_IR_NUMBER_H
#define TIR_IR_NUMBER_H

#include "ir/ir.h"

union tir_number {
    int64_t i; // bool, integers
    double f;  // floats
};

// The NaN that is computed: without a sign, all other bits set.
double tir_number_nan(void);
// x as the nearest value of a float type, ties to even. Floats of at most 8 bits saturate at their
// largest finite value, infinity included; e2m1, e3m2 and e2m3 have no NaN and give that value for
// it. ue4m3 is e4m3 without a sign: it gives NaN for negative x.
// ue8m0 holds powers of two from 2^-127 to 2^127: it rounds up, and gives NaN for NaN and negative
// x.
double tir_number_round(enum tir_elem elem, double x);
// The low bits of x, extended again; bool: x != 0.
int64_t tir_number_wrap(enum tir_elem elem, int64_t x);

// The bits in memory, in the low tir_elems[elem].bits bits, and back.
uint64_t tir_number_encode(enum tir_elem elem, union tir_number x);
union tir_number tir_number_decode(enum tir_elem elem, uint64_t bits);

// The cast operation.
union tir_number tir_number_cast(enum tir_elem to, enum tir_elem from, union tir_number x);

// One elementwise operation: the operands have type elem (where: in[0] is the condition), so does
// the result except for comparisons, which give a bool. False: op is not elementwise, or it is cast
// or bitcast, which have calls of their own.
bool tir_number_apply(enum tir_op op, enum tir_elem elem, const union tir_number *in,
                      union tir_number *out);

// Shortest decimal text that rounds to x in the type: "0.1", "-0.0", "1e+30", "inf", "nan".
void tir_number_print(struct tir_text *out, enum tir_elem elem, union tir_number x);

#endif
