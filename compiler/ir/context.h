// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Everything one compilation owns. Passed first, never global.
#ifndef TIR_IR_CONTEXT_H
#define TIR_IR_CONTEXT_H

#include <setjmp.h>

#include "base/diag.h"
#include "base/meter.h"
#include "ir/ir.h"

struct tir_context {
    struct tir_arena arena;   // lives until tir_context_finish
    struct tir_arena scratch; // released after each pass
    struct tir_interner names;
    struct tir_types *types;
    struct tir_source_map sources;
    struct tir_diags diags;
    struct tir_meter *meter; // NULL: steps are not counted
    jmp_buf out_of_memory;   // the API boundary
};

// Must be called where out_of_memory has been set by setjmp.
void tir_context_init(struct tir_context *cx, const tir_allocator *allocator);
void tir_context_finish(struct tir_context *cx);

#endif
