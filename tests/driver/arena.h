// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An arena for each test. Included after cmocka.h.
#ifndef TIR_TESTS_DRIVER_ARENA_H
#define TIR_TESTS_DRIVER_ARENA_H

#include <stdlib.h>

#include "base/arena.h"

static TIR_NORETURN void no_memory(void *user)
{
    (void)user;
    fail_msg("out of memory");
    abort();
}

static struct tir_arena arena;

static int set_up(void **state)
{
    (void)state;
    tir_arena_init(&arena, NULL, no_memory, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tir_arena_finish(&arena);
    return 0;
}

#endif
