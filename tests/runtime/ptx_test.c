// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One entry of a PTX module: what is kept of the text, whatever stands in it.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdlib.h>
#include <string.h>

#include "ptx.h"

// The module with entry `name` alone; NULL: it cannot be had. Freed by the caller.
static char *keep(const char *ptx, const char *name)
{
    size_t len = strlen(ptx), size;
    char *text = malloc(len + 1); // not a byte more, for the sanitizer
    char *out = malloc(len + 1);
    memcpy(text, ptx, len + 1);
    bool kept = tir_ptx_keep_entry((tir_str){text, len}, (tir_str){name, strlen(name)}, out, &size);
    free(text);
    if (!kept) {
        free(out);
        return NULL;
    }
    assert_int_equal(size, strlen(out));
    return out;
}

static void expect(const char *ptx, const char *name, const char *want)
{
    char *out = keep(ptx, name);
    if (!out)
        fail_msg("%s: nothing is kept", name);
    assert_string_equal(out, want);
    free(out);
}

#define HEAD ".version 8.6\n.target sm_90a\n.address_size 64\n"

static void test_entries(void **state)
{
    (void)state;
    const char *ptx = HEAD ".extern .shared .align 1024 .b8 tir$shared[];\n"
                           "\n.visible .entry f(\n.param .u64 f_param_0\n)\n.reqntid 384, 1, 1\n"
                           "{\n.reg .b32 %r<2>;\nL1:\n{ mov.u32 %r1, 0; }\nbra L1;\n}\n"
                           ".visible .entry f__2(.param .u64 f_param_0) { ret; }\n";
    expect(ptx, "f__2",
           HEAD ".extern .shared .align 1024 .b8 tir$shared[];"
                "\n.visible .entry f__2(.param .u64 f_param_0) { ret; }\n");
    expect(ptx, "f",
           HEAD ".extern .shared .align 1024 .b8 tir$shared[];\n"
                "\n.visible .entry f(\n.param .u64 f_param_0\n)\n.reqntid 384, 1, 1\n"
                "{\n.reg .b32 %r<2>;\nL1:\n{ mov.u32 %r1, 0; }\nbra L1;\n}\n");
    assert_null(keep(ptx, "f__"));
    assert_null(keep(ptx, ""));
    assert_null(keep("", "f"));
    assert_null(keep(HEAD, "f"));
}

// Variables, functions and declarations stay, wherever they stand.
static void test_module_scope(void **state)
{
    (void)state;
#define TABLE    ".global .align 4 .u32 table[3] = {1, 2, 3}, more[1] = {4};\n"
#define FUNCTION ".func (.param .b32 r) help(.param .b32 x) { .reg .b32 %a; ret; }\n"
    expect(HEAD TABLE ".entry g() { ret; }\n" FUNCTION
                      ".extern .func help2 ();\n.entry f() { call help; ret; }\n",
           "f", HEAD TABLE FUNCTION ".extern .func help2 ();\n.entry f() { call help; ret; }\n");
#undef TABLE
#undef FUNCTION
}

// Braces, semicolons and names in comments and strings are none.
static void test_opaque(void **state)
{
    (void)state;
    expect(HEAD "// .entry f() {\n.entry g() { /* } */ // }\n ret; }\n.entry f() { ret; }", "f",
           HEAD "\n.entry f() { ret; }");
    expect(".file 1 \"a{;\\\"b.tir\"\n.entry g() { .pragma \"}\"; ret; }\n.entry /* a */ f() {}",
           "f", ".file 1 \"a{;\\\"b.tir\"\n\n.entry /* a */ f() {}");
}

// A line directive takes nothing of the next line along.
static void test_lines(void **state)
{
    (void)state;
    expect(".version 8.0 // ;\n.entry g() { ret; } .entry f() { ret; }", "f",
           ".version 8.0 // ;\n .entry f() { ret; }");
}

static void test_indivisible(void **state)
{
    (void)state;
    assert_null(keep(HEAD ".entry g() {}\n.entry f() {}\n.section .debug_info { .b64 g }", "f"));
    assert_null(keep(HEAD ".func g() {}\n.alias h, g;\n.entry f() {}", "f"));
    assert_null(keep(HEAD ".entry f() {}\n@@DWARF .section .debug_info\n", "f"));
}

// Text that ends anywhere is read to its end and no further.
static void test_prefixes(void **state)
{
    (void)state;
    const char *ptx = ".version 8.0\n/* a */ .file 1 \"x\"\n.global .u32 t[1] = {1};\n"
                      ".entry g() { // b\n { } }\n.visible .entry f(.param .u64 p) { ret; }\n";
    for (size_t len = 0; len <= strlen(ptx); len++) {
        char *prefix = strndup(ptx, len);
        free(keep(prefix, "f"));
        free(prefix);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),     cmocka_unit_test(test_module_scope),
        cmocka_unit_test(test_opaque),      cmocka_unit_test(test_lines),
        cmocka_unit_test(test_indivisible), cmocka_unit_test(test_prefixes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
