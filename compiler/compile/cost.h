// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which configuration of a kernel suits a problem: a small model of time.
#ifndef TIR_COMPILE_COST_H
#define TIR_COMPILE_COST_H

#include "compile/request.h"
#include "ir/context.h"
#include "ir/ir.h"

// The modelled cycles of a launch of f, in form tile, as a formula.
tir_formula tir_compile_cost(struct tir_context *cx, const struct tir_request *request,
                             struct tir_func *f);

struct tir_choice {
    uint32_t best, next; // next: the cheapest of the others, `count` if there is none
    int64_t cost, next_cost;
};
// The cheapest of the `count` configurations of a kernel whose conditions hold for the dimensions
// known at compile time; best is `count` if these do not decide.
struct tir_choice tir_compile_cheapest(struct tir_context *cx, const struct tir_request *request,
                                       struct tir_func *const *configs, const tir_formula *costs,
                                       uint32_t count);

#endif
