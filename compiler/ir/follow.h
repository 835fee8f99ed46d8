// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Questions about all values that a value depends on.
//
// A value may be used many times, so a walk over operands that keeps no memory takes time that
// doubles with each step of `v = v * v`. Passes ask here instead: each value is visited once, on an
// explicit stack, so that neither time nor the caller's stack grows with the paths to it.
#ifndef TIR_IR_FOLLOW_H
#define TIR_IR_FOLLOW_H

#include "base/vec.h"
#include "ir/ir.h"

enum tir_answer { TIR_YES, TIR_NO, TIR_IF_OPERANDS }; // the last: yes, if all operands say yes

struct tir_follow {
    struct tir_arena *arena;
    enum tir_answer (*ask)(void *user, struct tir_value *v);
    // Called for a value whose operands all said yes, after them. May be NULL.
    void (*then)(void *user, struct tir_value *v);
    void *user;
    struct tir_map answers; // value -> answer
};

void tir_follow_init(struct tir_follow *follow, struct tir_arena *arena,
                     enum tir_answer (*ask)(void *user, struct tir_value *v), void *user);

// Is the answer for v yes? Answers are kept until the next init: the operands of values asked about
// must not change before that. An absent operand (NULL) says yes.
bool tir_follows(struct tir_follow *follow, struct tir_value *v);

// Are a and b the same computation: pure operations without attributes on the same values?
bool tir_same_value(struct tir_arena *scratch, struct tir_value *a, struct tir_value *b);

// Values that the runtime computes before a launch are written, and stored, as one expression.
#define TIR_MAX_EXPRESSION 1024
#define TIR_EXPRESSION_TOO_LONG \
    "the runtime computes this before a launch; it has more than %d numbers, names and operations"

// The length of v as one expression, in which a value used twice is written twice: its operations
// except casts, and their leaves. UINT32_MAX: that or more.
uint32_t tir_expression_size(struct tir_arena *scratch, struct tir_value *v);

#endif
