// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expected diagnostics: what is met, what is missing, what nobody expected.

// cmocka.h wants these four before it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "driver/command/expect.h"

static TIR_NORETURN void no_memory(void *user)
{
    (void)user;
    fail_msg("out of memory");
    abort();
}

static void expect(const char *source, const char *diagnostics, const char *complaints)
{
    struct tir_arena arena;
    struct tir_text text;
    tir_arena_init(&arena, NULL, no_memory, NULL);
    tir_text_init(&text, &arena, 0);
    bool fine =
        tir_expect_check(&arena, STR("a.tir"), tir_str_of(source), tir_str_of(diagnostics), &text);
    assert_string_equal(text.len ? text.ptr : "", complaints);
    assert_int_equal(fine, !*complaints);
    tir_arena_finish(&arena);
}

static void test_met(void **state)
{
    (void)state;
    expect("x = 1; // expect-error {{E0101: unknown name}}\n",
           "a.tir:1:1: error[E0101]: unknown name x\n    1 | x = 1;\n      | ^\n", "");
    expect("\n// expect-error@-1 {{E0101}} expect-warning@+1 {{unused}}\n\n",
           "a.tir:3:1: warning[W0001]: unused name\na.tir:1:1: error[E0101]: unknown\n", "");
    // Two of one kind need two expectations; notes and remarks need none.
    expect("// expect-error {{a}} expect-error {{a}}",
           "a.tir:1:1: error[E0001]: a\na.tir:1:9: error[E0001]: a\nnote: a.tir:1:1: b\n"
           "a.tir:1:1: remark[R0001]: c\n",
           "");
    expect("", "", "");
}

static void test_unmet(void **state)
{
    (void)state;
    expect("// expect-error {{this}}\n", "", "a.tir:1: expected, but not reported: error: this\n");
    expect("// expect-error {{this}}\n", "a.tir:1:1: error[E0001]: that\n",
           "a.tir:1: expected, but not reported: error: this\n"
           "a.tir:1: reported, but not expected: error: E0001: that\n");
    expect("// expect-error {{this}}\n", "a.tir:2:1: error[E0001]: this\n",
           "a.tir:1: expected, but not reported: error: this\n"
           "a.tir:2: reported, but not expected: error: E0001: this\n");
    expect("// expect-warning {{this}}\n", "a.tir:1:1: error[E0001]: this\n",
           "a.tir:1: expected, but not reported: warning: this\n"
           "a.tir:1: reported, but not expected: error: E0001: this\n");
    expect("// expect-error {{this}}\n",
           "a.tir:1:1: error[E0001]: this\na.tir:1:1: error[E0001]: this\n",
           "a.tir:1: reported, but not expected: error: E0001: this\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_met),
        cmocka_unit_test(test_unmet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
