// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a compilation takes is bounded: programs whose values are used many times, whose functions
// and loops expand to much, or that are nested deeply. A walk over every path to a value, or a
// level of the caller's stack for each level of the source, would not get through these; what holds
// the time is the time limit of the test.

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tir/compiler.h"

static char text[1 << 17];
static size_t text_len;
static uint32_t output = 1u << TIR_OUTPUT_PTX; // 0: only the passes

static void put(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_len += (size_t)vsnprintf(text + text_len, sizeof(text) - text_len, format, args);
    va_end(args);
    assert_true(text_len < sizeof(text));
}

static void put_times(int count, const char *part)
{
    for (int i = 0; i < count; i++)
        put("%s", part);
}

// The program in `text`, which is then empty, gives this status. code: what the error says, or
// NULL. The steps that it took.
static uint64_t compiles(const char *arch, tir_status expected, const char *code)
{
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.arch = (tir_str){arch, strlen(arch)};
    options.outputs = output;
    tir_compilation *c;
    tir_error error;
    tir_status status =
        tir_compile((tir_str){"t.tir", 5}, (tir_str){text, text_len}, &options, &c, &error);
    const char *said = c ? tir_compilation_diagnostics(c).ptr : error.message;
    if (status != expected || (code && !strstr(said, code)))
        fail_msg("%s: %s\n%.300s\n%.300s", arch, tir_status_name(status), said, text);
    uint64_t steps = c ? tir_compilation_steps(c) : 0;
    tir_compilation_destroy(c);
    text_len = 0;
    return steps;
}

// One target of each kind: without and with tensor copies and products of warpgroups, and later.
static const char *const archs[] = {"sm_80", "sm_90a", "sm_100a", "sm_120a"};

static void values_used_many_times(void **state)
{
    (void)state;
    static const char *const rounds[] = {
        "v = v * v + v;",
        "v = sin(v) * cos(v);",
        "v = f32(u32(v) ^ (u32(v) << 13)); v = f32(u32(v) * 2654435761 + (u32(v) >> 17));",
        "let x2 = x * x; let y2 = y * y; v = where(x2 + y2 < 4.0, v + 1, v);"
        " let t = x2 - y2 + a; y = 2 * x * y + b; x = t;",
    };
    for (size_t r = 0; r < sizeof(rounds) / sizeof(rounds[0]); r++)
        for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
            put("kernel k(X: f32[N], Y: out f32[N]) { for n in tiles(N by 128) { let a = X[n:+128];"
                " let b = a + 1; var x = a; var y = b; var v = a;"
                " for i in range(1024, unroll) { %s } Y[n:+128] = v + x + y; } }",
                rounds[r]);
            compiles(archs[i], TIR_OK, NULL);
        }
}

static void values_used_far_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
        put("kernel k(X: f32[N], Y: out f32[N]) { for n in tiles(N by 128) { let t0 = X[n:+128];");
        for (int t = 1; t < 1024; t++)
            put(" let t%d = exp(t%d) + t%d;", t, t - 1, t < 7 ? 0 : t - 7);
        put(" Y[n:+128] = t1023; } }");
        compiles(archs[i], TIR_OK, NULL);
    }
}

// The PTX of the program in `text`, on the heap.
static char *ptx_of(const char *arch)
{
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.arch = (tir_str){arch, strlen(arch)};
    options.outputs = 1u << TIR_OUTPUT_PTX;
    tir_compilation *c;
    tir_error error;
    assert_int_equal(
        tir_compile((tir_str){"t.tir", 5}, (tir_str){text, text_len}, &options, &c, &error),
        TIR_OK);
    tir_str ptx = tir_compilation_output(c, TIR_OUTPUT_PTX);
    char *copy = calloc(1, ptx.len + 1);
    assert_non_null(copy);
    memcpy(copy, ptx.ptr, ptx.len);
    tir_compilation_destroy(c);
    text_len = 0;
    return copy;
}

// In place these take 4.9, 4.7, 3.7 and 2.1 megabytes.
static void long_operations_are_called(void **state)
{
    (void)state;
    static const struct {
        const char *elem;
        int size;
        const char *round;
        int rounds;
    } rows[] = {
        {"f32", 128, "v = sin(v) * cos(v + 1);", 500},
        {"f32", 1024, "v = erf(v) + log(v);", 80},
        {"f64", 128, "v = exp(v) + pow(v, v);", 200},
        {"e4m3", 1024, "v = v * v + v;", 48},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t a = 0; a < sizeof(archs) / sizeof(archs[0]); a++) {
            put("kernel k(X: %s[N], Y: out %s[N]) { for n in tiles(N by %d) {"
                " var v = X[n:+%d]; for i in range(%d, unroll) { %s } Y[n:+%d] = v; } }",
                rows[i].elem, rows[i].elem, rows[i].size, rows[i].size, rows[i].rounds,
                rows[i].round, rows[i].size);
            char *ptx = ptx_of(archs[a]);
            size_t entries = 0;
            for (const char *at = ptx; (at = strstr(at, ".visible .entry ")) != NULL; at++)
                entries++;
            assert_true(entries > 0);
            size_t each = strlen(ptx) / entries;
            if (each >= 333333)
                fail_msg("%s, %s: %zu bytes an entry", rows[i].round, archs[a], each);
            free(ptx);
        }
}

// One function of each element costs no megabytes, and a call would be slower.
static void few_long_operations_stay_in_place(void **state)
{
    (void)state;
    for (size_t a = 0; a < sizeof(archs) / sizeof(archs[0]); a++) {
        put("kernel k(A: bf16[M, 64], B: bf16[N, 64], D: out bf16[M, N]) {"
            " for (m, n) in tiles(M by 128, N by 128) {"
            " D[m:+128, n:+128] = bf16(erf(dot(A[m:+128, :], B[n:+128, :].T))); } }");
        char *ptx = ptx_of(archs[a]);
        assert_null(strstr(ptx, ".func"));
        free(ptx);
    }
}

// Of the sums of a product, a chunk of columns at a time.
static void what_follows_a_product(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
        put("kernel k(A: bf16[M, 64], B: bf16[N, 64], D: out bf16[M, N]) {"
            " for (m, n) in tiles(M by 128, N by 128) {"
            " var s = dot(A[m:+128, :], B[n:+128, :].T);"
            " for i in range(100, unroll) { s = s * s + s; } D[m:+128, n:+128] = bf16(s); } }");
        compiles(archs[i], TIR_OK, NULL);
    }
}

// An index, a condition and a size that are each one of 2^40 paths.
static void indices_and_conditions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
        put("kernel k(X: f32[N], A: bf16[N, 64], B: bf16[64, 64], Y: out f32[N, 64]) {"
            " for n in tiles(N by 64) { var j = n; for i in range(40, unroll) { j = j + j; }"
            " var acc: f32[64, 64] = 0;"
            " for k in range(0, 64, 16) { var q = k; for i in range(40, unroll) { q = q + q; }"
            " acc += dot(A[j:+64, q:+16], B[q:+16, :]); } Y[j:+64, :] = acc; } }");
        compiles(archs[i], TIR_OK, NULL);
        put("kernel k(X: f32[128], Y: out f32[128]) grid(1) threads(128) { let p = tid() > 3;"
            " let q = X[0] > 1.0; let r = X[1] > 2.0; shared s: f32[128]; var j = p;"
            " for i in range(40, unroll) { j = (j & q) & (j & r); }"
            " if j { s[tid()] = 1.0; } bar_sync(); if j { Y[0] = s[0]; } }");
        compiles(archs[i], TIR_OK, NULL);
    }
}

static void sizes_before_a_launch(void **state)
{
    (void)state;
    const char *const uses[] = {
        "for n in tiles(a by 128) { Y[n:+128] = X[n:+128]; }",
        "scratch S: f32[a]; for n in tiles(N by 128) { S[n:+128] = X[n:+128]; }"
        " for n in tiles(N by 128) { Y[n:+128] = S[n:+128]; }",
    };
    for (int i = 0; i < 2; i++) {
        put("kernel k(X: f32[N], Y: out f32[N]) { var a = N;"
            " for i in range(40, unroll) { a = a * a + 1; } %s }",
            uses[i]);
        compiles("sm_80", TIR_ERR_DIAGNOSED, "E0207");
    }
    put("fn f(x) { var a = x; for i in range(40, unroll) { a = a * a + 1; } return a; }"
        "kernel k(X: f32[N], Y: out f32[N]) where f(N) % 2 == 0"
        " { for n in tiles(N by 128) { Y[n:+128] = X[n:+128]; } }");
    compiles("sm_80", TIR_ERR_DIAGNOSED, "E0207");
}

static void expansions(void **state)
{
    (void)state;
    put("kernel k(Y: out i32[4]) { for t in tiles(1) { for a in range(1000, unroll) {"
        " for b in range(1000, unroll) { for c in range(1000, unroll) { } } } Y[0] = 1; } }");
    compiles("sm_80", TIR_ERR_DIAGNOSED, "E0402");
    put("fn g_0(x) { return x; } ");
    for (int i = 1; i < 40; i++)
        put("fn g_%d(x) { return g_%d(g_%d(x)); } ", i, i - 1, i - 1);
    put("kernel k(Y: out i32[4]) { for t in tiles(1) { Y[0] = g_39(1); } }");
    compiles("sm_80", TIR_ERR_DIAGNOSED, "E0402");
}

static void nested_statements(void **state)
{
    (void)state;
    static const char *const heads[] = {"for i%d in range(2) {", "if n > %d {",
                                        "while j < %d { j = j + 1;"};
    enum { LEVELS = 60 };
    for (size_t h = 0; h < 3; h++)
        for (size_t i = 0; i < 2; i++) {
            put("kernel k(A: bf16[M, 64], B: bf16[64, 64], Y: out f32[M, 64]) {"
                " for n in tiles(M by 64) { var j = 0; var v: f32[64, 64] = 0;");
            for (int level = 0; level < LEVELS; level++)
                put(heads[h], level + 100);
            put("v += dot(A[n:+64, :], B[:, :]);");
            put_times(LEVELS, "}");
            put("Y[n:+64, :] = v; } }");
            compiles(archs[i], TIR_OK, NULL);
        }
}

// Each is compared with those before it that are different.
static void many_accesses(void **state)
{
    (void)state;
    static const char *const accesses[] = {"Y[i * 4 + j, n:+32] = X[i * 4 + j, n:+32] * 2;",
                                           "atomic_add(Y[i * 4 + j, n], 1.0);",
                                           "if n > i * 4 + j { Y[0, n:+32] = X[i, n:+32]; }"};
    output = 0; // LLVM has its own time with these
    for (size_t a = 0; a < sizeof(accesses) / sizeof(accesses[0]); a++) {
        uint64_t steps[2];
        for (int more = 0; more < 2; more++) {
            put("kernel k(X: f32[2000, N], Y: inout f32[2000, N]) { for n in tiles(N by 32) {"
                " for i in range(%d, unroll) { for j in range(4, unroll) { %s } } } }",
                more ? 500 : 100, accesses[a]);
            steps[more] = compiles("sm_80", TIR_OK, NULL);
        }
        assert_true(steps[1] < 6 * steps[0]);
    }
    output = 1u << TIR_OUTPUT_PTX;
}

// What the loops before one have done is told apart by what they did, and not by each of them.
static void loops_in_a_row(void **state)
{
    (void)state;
    static const char *const bodies[] = {"Y[n:+32] = Y[n:+32] * 2;", "v = v + sum(v);",
                                         "v = v * 2; if n > 5 { Y[n:+32] = v; }"};
    output = 0;
    for (size_t b = 0; b < sizeof(bodies) / sizeof(bodies[0]); b++) {
        uint64_t steps[2];
        for (int more = 0; more < 2; more++) {
            put("kernel k(Y: inout f32[N]) { for n in tiles(N by 32) { var v = Y[n:+32];");
            for (int i = 0; i < (more ? 1000 : 200); i++)
                put("for k in range(2) { %s } ", bodies[b]);
            put("Y[n:+32] = v; } }");
            steps[more] = compiles("sm_80", TIR_OK, NULL);
        }
        assert_true(steps[1] < 6 * steps[0]);
    }
    output = 1u << TIR_OUTPUT_PTX;
}

// As deep as the parser lets it be.
static void nested_expressions(const char *arch)
{
    put("kernel k(X: f32[N], Y: out f32[N]) { for n in tiles(N by 128) { Y[n:+128] = ");
    put_times(190, "exp(");
    put("X[n:+128]");
    put_times(190, ")");
    put("; } }");
    compiles(arch, TIR_OK, NULL);
}

// A chain of integers that LLVM follows from its end, by a call for each.
static void long_chain(const char *arch)
{
    put("kernel k(X: i32[N], Y: out i32[N]) { for n in tiles(N) { var j = i64(X[n]);"
        " for i in range(1000, unroll) { for q in range(20, unroll) { j = j * 3 + n; } }"
        " Y[n] = i32(j); } }");
    compiles(arch, TIR_OK, NULL);
}

static void *on_small_stack(void *user)
{
    (void)user;
    nested_expressions("sm_90a");
    long_chain("sm_80");
    return NULL;
}

// With what the thread and this test take themselves.
static void the_stated_stack_is_enough(void **state)
{
    (void)state;
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, TIR_COMPILE_STACK), 0);
    assert_int_equal(pthread_create(&thread, &attr, on_small_stack, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
}

// What the program takes; with TIR_OK it is compiled to PTX.
static uint64_t steps_of(int rounds, const tir_compile_options *given, tir_status expected)
{
    put("kernel k(X: f32[N], Y: out f32[N]) { for n in tiles(N by 128) { var v = X[n:+128];"
        " for i in range(%d, unroll) { v = v * v + v; } Y[n:+128] = v; } }",
        rounds);
    tir_compilation *c;
    tir_error error;
    assert_int_equal(
        tir_compile((tir_str){"t.tir", 5}, (tir_str){text, text_len}, given, &c, &error), expected);
    uint64_t steps = c ? tir_compilation_steps(c) : 0;
    assert_true(expected != TIR_ERR_STOPPED || (!c && strstr(error.message, "steps")));
    tir_compilation_destroy(c);
    text_len = 0;
    return steps;
}

static void steps_are_counted(void **state)
{
    (void)state;
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    uint64_t one = steps_of(100, &options, TIR_OK), eight = steps_of(800, &options, TIR_OK);
    assert_true(one > 1000);
    assert_true(eight < 9 * one); // the time is linear
    assert_int_equal(steps_of(100, &options, TIR_OK), one);
    options.step_limit = one;
    assert_int_equal(steps_of(100, &options, TIR_OK), one);
    for (uint64_t limit = one - 1; limit > 0; limit = limit * 3 / 4) {
        options.step_limit = limit;
        steps_of(100, &options, TIR_ERR_STOPPED);
    }
}

static int stop_at(void *user)
{
    int *left = user;
    return --*left <= 0;
}

// At the first question, the second and so on, until it is not asked so often.
static void a_host_can_stop_it(void **state)
{
    (void)state;
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    int left, questions;
    options.cancel = stop_at;
    options.cancel_user = &left;
    left = INT32_MAX;
    steps_of(800, &options, TIR_OK);
    questions = INT32_MAX - left;
    assert_true(questions > 20);
    for (int at = 1; at <= questions; at += 1 + at / 8) {
        left = at;
        steps_of(800, &options, TIR_ERR_STOPPED);
    }
}

// Buffers that lie at the same bytes one after the other; the receipt had a line for each pair.
static void buffers_at_the_same_bytes(void **state)
{
    (void)state;
    for (size_t a = 0; a < sizeof(archs) / sizeof(archs[0]); a++) {
        put("kernel k(X: f32[N], Y: inout f32[N]) grid(1) threads(128) where N == 128 {");
        for (int i = 0; i < 800; i++)
            put("shared s%d: f32[128]; s%d[tid()] = X[tid()]; bar_sync(); Y[tid()] += s%d[127 - tid()];"
                " bar_sync();",
                i, i, i);
        put("}");
        compiles(archs[a], TIR_OK, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_operations_are_called),
        cmocka_unit_test(few_long_operations_stay_in_place),
        cmocka_unit_test(values_used_many_times),
        cmocka_unit_test(values_used_far_apart),
        cmocka_unit_test(what_follows_a_product),
        cmocka_unit_test(indices_and_conditions),
        cmocka_unit_test(sizes_before_a_launch),
        cmocka_unit_test(expansions),
        cmocka_unit_test(nested_statements),
        cmocka_unit_test(many_accesses),
        cmocka_unit_test(loops_in_a_row),
        cmocka_unit_test(buffers_at_the_same_bytes),
        cmocka_unit_test(the_stated_stack_is_enough),
        cmocka_unit_test(steps_are_counted),
        cmocka_unit_test(a_host_can_stop_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
