// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// clean, finish: the general clean-ups, in turn, until nothing changes.
//
// Each round can open the way for the next: a folded branch leaves dead values, a hoisted value is
// computed twice. The rounds are limited; at the limit the program is correct and only less clean.
//
//     let a: i64 = add(M, 0);                     let c: i64 = add(N, M);
//     for i: i64 in range(0, N, 1) {       ->     for i: i64 in range(0, N, 1) {
//         let b: i64 = add(N, M);                     store(Y[i], c);
//         let c: i64 = add(a, N);                 }
//         store(Y[i], c);
//     }

#include "pass/pass.h"

#define MAX_ROUNDS 8

// clang-format off
static const struct tir_pass_info general[] = {
#define CLEAN(id, meaning) {#id, true, TIR_FORM_TILE, TIR_FORM_TILE, tir_pass_##id, meaning},
#include "pass/passes.def"
};
// clang-format on

static enum tir_change run_general(struct tir_func *f, struct tir_pass_cx *cx)
{
    enum tir_change all = TIR_UNCHANGED;
    for (uint32_t round = 0; round < MAX_ROUNDS; round++) {
        bool changed = false;
        for (uint32_t i = 0; i < TIR_COUNT_OF(general); i++) {
            enum tir_change change = tir_run_pass(f, cx, &general[i]);
            if (change == TIR_FAILED)
                return TIR_FAILED;
            changed |= change == TIR_CHANGED;
        }
        if (!changed)
            break;
        all = TIR_CHANGED;
    }
    return all;
}

enum tir_change tir_pass_clean(struct tir_func *f, struct tir_pass_cx *cx)
{
    return run_general(f, cx);
}

enum tir_change tir_pass_finish(struct tir_func *f, struct tir_pass_cx *cx)
{
    return run_general(f, cx);
}
