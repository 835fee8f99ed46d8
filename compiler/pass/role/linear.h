// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Integers as linear functions of a loop's variable, element by element.
#ifndef TIR_PASS_ROLE_LINEAR_H
#define TIR_PASS_ROLE_LINEAR_H

#include "base/vec.h"
#include "ir/ir.h"
#include "ir/range.h"

#define TIR_LINEAR_TERMS 8

struct tir_linear_term {
    struct tir_value *v; // a scalar from outside the loop
    int64_t by;
};

// by * (the loop's variable) + the terms + what the element adds, which is in low .. high.
struct tir_linear {
    int64_t by;
    struct tir_linear_term terms[TIR_LINEAR_TERMS];
    uint32_t term_count;
    int64_t low, high;
    int64_t least, most; // of the whole
};

// One loop, and the scalars that must be small for all linear functions asked about: in
// -2^k .. 2^k, with k at most 35, which leaves room for sums and multiples of them; and with 8 bits
// to spare in their type, where sums of all that they may be could wrap.
struct tir_linears {
    const struct tir_ranges *ranges;
    struct tir_inst *loop;
    struct tir_arena *arena;
    VEC(struct tir_value *) small;
    bool spare;          // they have bits to spare
    uint32_t steps;      // of one question
    const char *refusal; // why v is none
};

// Is v, in every element, a linear function that does not overflow? False: see `refusal`.
bool tir_linear_of(struct tir_linears *cx, struct tir_value *v, struct tir_linear *out);
// a + by * b. False: it has too many terms or does not fit.
bool tir_linear_add(const struct tir_linear *a, const struct tir_linear *b, int64_t by,
                    struct tir_linear *out);
// What a scalar is at most, either way, if it is small.
int64_t tir_linear_limit(const struct tir_type *t);
// Is it tested whether the scalar is small?
bool tir_linear_is_tested(const struct tir_linears *cx, const struct tir_value *v);

#endif
