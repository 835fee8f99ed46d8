// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A check of a variant (pass/passes.def) that is made beside what comes after it.
#ifndef TIR_COMPILE_CHECK_H
#define TIR_COMPILE_CHECK_H

#include "ir/context.h"
#include "pass/receipt.h"

struct tir_check {                    // zeroed at first
    const struct tir_pass_info *pass; // NULL: none was left
    struct tir_context cx;            // of a copy of the program
    struct tir_func *f;
    struct tir_receipt receipt;
    struct tir_pass_cx pass_cx; // of the passes that left it
    bool verify;
    struct tir_meter meter; // as it was there
    uint64_t steps;         // of it
    uint32_t records;       // that the receipt had there
    bool has_context, is_made, ok, no_memory;
};

// Leaves a check of f: copies what it reads. cx: of the passes, with meter and receipt.
void tir_check_leave(struct tir_check *check, const struct tir_func *f,
                     const struct tir_pass_info *pass, const struct tir_pass_cx *cx,
                     const struct tir_context *of, const tir_allocator *allocator, bool verify);
// Makes it, on any thread. ok: it passed and has no message.
void tir_check_make(struct tir_check *check);
// The steps that it took.
uint64_t tir_check_steps(const struct tir_check *check);
// Frees what there is, and is as zeroed.
void tir_check_finish(struct tir_check *check);

#endif
