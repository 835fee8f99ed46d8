// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the unit tests share: cmocka, an arena that must not run out, comparing views.
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

// cmocka.h wants these four before it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"

static inline void unit_out_of_memory(void *user)
{
    (void)user;
    fail_msg("%s", "out of memory");
}

static inline struct tir_arena unit_arena(void)
{
    struct tir_arena arena;
    tir_arena_init(&arena, NULL, unit_out_of_memory, NULL);
    return arena;
}

// The view has exactly this text; a failure prints both.
#define assert_str(actual, expected)                                          \
    do {                                                                      \
        struct tir_arena arena_ = unit_arena();                               \
        assert_string_equal(tir_str_copy(&arena_, (actual)).ptr, (expected)); \
        tir_arena_finish(&arena_);                                            \
    } while (0)

#endif
