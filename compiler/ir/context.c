// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Setting up and tearing down what one compilation owns.

#include "ir/context.h"

static TIR_NORETURN void jump_out(void *user)
{
    struct tir_context *cx = user;
    longjmp(cx->out_of_memory, 1);
}

void tir_context_init(struct tir_context *cx, const tir_allocator *allocator)
{
    tir_arena_init(&cx->arena, allocator, jump_out, cx);
    tir_arena_init(&cx->scratch, allocator, jump_out, cx);
    cx->names = (struct tir_interner){.arena = &cx->arena};
    tir_source_map_init(&cx->sources, &cx->arena);
    tir_diags_init(&cx->diags, &cx->arena, &cx->sources);
    cx->types = tir_types_new(&cx->arena);
    cx->meter = NULL;
}

void tir_context_finish(struct tir_context *cx)
{
    tir_arena_finish(&cx->scratch);
    tir_arena_finish(&cx->arena);
}
