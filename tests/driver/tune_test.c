// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What tirc tune reads and writes: sizes from words, lines into the text of a table.

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "arena.h"
#include "base/str.h"
#include "driver/tune/keep.h"
#include "driver/tune/sizes.h"
#include "driver/tune/tuned_file.h"

enum { MOST_WORDS = 8 };

static const tir_str dims[] = {{"M", 1}, {"K", 1}, {"N", 1}};
static const tir_artifact_fixed fixed[] = {{{"H", 1}, 64}};
static const tir_artifact_param params[] = {
    {.name = {"A", 1}, .kind = TIR_PARAM_TENSOR, .element = TIR_ELEMENT_F32},
    {.name = {"scale", 5}, .kind = TIR_PARAM_SCALAR, .element = TIR_ELEMENT_F32}};
static const tir_artifact_kernel kernel = {.name = {"gemm", 4},
                                           .dims = dims,
                                           .dim_count = 3,
                                           .params = params,
                                           .param_count = 2,
                                           .fixed = fixed,
                                           .fixed_count = 1};

// Splits words at spaces.
static bool parse_drawn(const char *line, const struct tir_draw *draw, struct tir_size_list *out,
                        tir_error *error)
{
    const char *words[MOST_WORDS];
    uint32_t count = 0;
    char *copy = tir_arena_copy(&arena, line, strlen(line) + 1);
    for (char *at = copy; *at;) {
        assert_true(count < MOST_WORDS);
        words[count++] = at;
        at += strcspn(at, " ");
        if (*at)
            *at++ = 0;
    }
    return tir_sizes_parse(&arena, &kernel, words, count, draw, out, error);
}

static bool parse(const char *line, struct tir_size_list *out, tir_error *error)
{
    static const struct tir_draw none = {0};
    return parse_drawn(line, &none, out, error);
}

// All sizes as "M.K.N M.K.N", then the other words.
static tir_str shown(const struct tir_size_list *list)
{
    struct tir_text text;
    tir_text_init(&text, &arena, 0);
    vec_foreach(const struct tir_sizes, it, &list->all)
        tir_text_format(&text, "%s%lld.%lld.%lld", text.len ? " " : "", (long long)it->dims[0],
                        (long long)it->dims[1], (long long)it->dims[2]);
    vec_foreach(const char *, word, &list->rest)
        tir_text_format(&text, " %s", *word);
    return tir_text_str(&text);
}

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *words, *sizes;
    } rows[] = {
        {"M=1 N=2 K=3", "1.3.2"},
        {"M=1,4 N=2,5 K=3", "1.3.2 1.3.5 4.3.2 4.3.5"},
        {"M=N=K=16,32", "16.16.16 32.32.32"},
        {"M=N=8 K=16..64", "8.16.8 8.32.8 8.64.8"},
        {"M=N=8 K=16..127", "8.16.8 8.32.8 8.64.8"},
        {"M=N=8 K=16..16,3", "8.16.8 8.3.8"},
        {"M=0,1..9 N=K=1", "0.1.1 1.1.1 2.1.1 4.1.1 8.1.1"},
        {"M=1 N=2 K=3 M=4 M=5,6", "1.3.2 4.3.2 5.3.2 6.3.2"},
        {"M=1 N=2 K=3 M=K=7 N=8", "1.3.2 7.7.8"},
        {"A=randn,pad=8 M=1 scale=2 N=2 K=3", "1.3.2 A=randn,pad=8 scale=2"},
        {"M=N=K=4611686018427387904..9223372036854775807",
         "4611686018427387904.4611686018427387904.4611686018427387904"},
    };
    for (size_t i = 0; i < TIR_COUNT_OF(rows); i++) {
        struct tir_size_list list;
        tir_error error;
        if (!parse(rows[i].words, &list, &error))
            fail_msg("%s: %s", rows[i].words, error.message);
        assert_string_equal(shown(&list).ptr, rows[i].sizes);
    }
}

static void test_wrong_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *words, *part;
    } rows[] = {
        {"M=1 N=2", "needs sizes for K"},
        {"M=1 M=2 N=3 K=4", "needs sizes for K"},
        {"", "needs sizes for M"},
        {"M= N=1 K=1", "M=: sizes are whole numbers"},
        {"M=1, N=1 K=1", "M=1,: sizes are whole numbers"},
        {"M=a N=1 K=1", "sizes are whole numbers"},
        {"M=-1 N=1 K=1", "sizes are whole numbers"},
        {"M=8..4 N=1 K=1", "sizes are whole numbers"},
        {"M=8... N=1 K=1", "sizes are whole numbers"},
        {"M=N", "sizes are whole numbers"},
        {"M=L=1 N=1 K=1", "gemm has no dimension L"},
        {"M=M=1 N=1 K=1", "M is there twice"},
        {"M=1 N=1 K=1 H=65", "H=65: gemm needs H == 64"},
        {"M=H=64..128 N=1 K=1", "M=H=64..128: gemm needs H == 64"},
        {"M=1..9000000000000000000 N=1..9000000000000000000 K=1..9000000000000000000",
         "more than 100000 sizes"},
    };
    for (size_t i = 0; i < TIR_COUNT_OF(rows); i++) {
        struct tir_size_list list;
        tir_error error;
        assert_false(parse(rows[i].words, &list, &error));
        if (!strstr(error.message, rows[i].part))
            fail_msg("%s: %s", rows[i].words, error.message);
    }
}

// Multiples of a range's first value, from every doubling of it, and single values.
static void test_drawn_sizes(void **state)
{
    (void)state;
    enum { COUNT = 200, OCTAVES = 6 };
    struct tir_size_list list, again, other;
    tir_error error;
    const struct tir_draw one = {COUNT, 1}, two = {COUNT, 2};
    const char *words = "M=24..1000 N=7,64..64 K=0";
    uint32_t octaves[OCTAVES] = {0}, sevens = 0;
    assert_true(parse_drawn(words, &one, &list, &error));
    assert_true(parse_drawn(words, &one, &again, &error));
    assert_true(parse_drawn(words, &two, &other, &error));
    assert_int_equal(list.all.len, COUNT);
    assert_string_equal(shown(&list).ptr, shown(&again).ptr);
    assert_string_not_equal(shown(&list).ptr, shown(&other).ptr);
    vec_foreach(const struct tir_sizes, it, &list.all) {
        const int64_t m = it->dims[0], k = it->dims[1], n = it->dims[2];
        assert_true(m >= 24 && m <= 1000 && m % 24 == 0 && k == 0 && (n == 7 || n == 64));
        octaves[63 - __builtin_clzll((unsigned long long)m / 24)]++;
        sevens += n == 7;
    }
    for (uint32_t i = 0; i < OCTAVES; i++) // 33 of each expected
        assert_in_range(octaves[i], 15, 60);
    assert_in_range(sevens, 60, 140);
    const struct tir_draw many = {200000, 1};
    assert_false(parse_drawn(words, &many, &list, &error));
    assert_non_null(strstr(error.message, "more than 100000 sizes"));
    assert_true(parse_drawn("M=1..9223372036854775807 N=0 K=0", &one, &list, &error));
    vec_foreach(const struct tir_sizes, it, &list.all)
        assert_true(it->dims[0] >= 1);
}

// The model takes the second where M is small, and the third where there is nothing else. So the
// first two are kept: the third, which is the fastest once, would not be launched beside them.
static void test_kept(void **state)
{
    (void)state;
    static const tir_formula_op costs[] = {
        {TIR_FORMULA_CONST, 10}, {TIR_FORMULA_DIM, 0}, {TIR_FORMULA_CONST, 100}};
    static const int64_t sizes[][TIR_MAX_DIMS] = {{1}, {100}};
    static const double times[][3] = {{10, 5, 4}, {10, 19, 0}}; // 0: does not fit
    tir_artifact_variant variants[3] = {0};
    tir_artifact_kernel info = {.variants = variants, .variant_count = 3};
    struct tir_candidates list = {0};
    for (uint32_t i = 0; i < 3; i++) {
        variants[i].cost = (tir_formula){&costs[i], 1};
        vec_push(&arena, &list.all, ((struct tir_candidate){.info = &info, .variant = i}));
    }
    for (uint32_t most = 1; most <= 3; most++) {
        struct tir_keep keep = {.arena = &arena};
        for (uint32_t s = 0; s < 2; s++) {
            for (uint32_t i = 0; i < 3; i++) {
                list.all.at[i].fits = times[s][i] > 0;
                list.all.at[i].time = times[s][i];
            }
            tir_keep_add(&keep, &list, sizes[s], NULL);
        }
        tir_keep_choose(&keep, most);
        assert_int_equal(keep.kept.len, most == 1 ? 1 : 2);
        assert_int_equal(keep.kept.at[0], 1);
        assert_int_equal(keep.kept.at[keep.kept.len - 1], most == 1 ? 1 : 0);
        assert_true(fabs(keep.loss - (most == 1 ? 1.5411 : 1.1180)) < 1e-3);
        assert_int_equal(keep.unfit, 0);
    }
}

// Nothing fits some sizes: they count as far too slow, and are told.
static void test_kept_without_fit(void **state)
{
    (void)state;
    tir_artifact_variant variants[1] = {0};
    tir_artifact_kernel info = {.variants = variants, .variant_count = 1};
    struct tir_candidates list = {0};
    struct tir_keep keep = {.arena = &arena};
    static const int64_t sizes[TIR_MAX_DIMS] = {1};
    vec_push(&arena, &list.all, ((struct tir_candidate){.info = &info, .time = 1}));
    tir_keep_choose(&keep, 2);
    assert_int_equal(keep.kept.len, 0);
    tir_keep_add(&keep, &list, sizes, NULL);
    list.all.at[0].fits = true;
    tir_keep_add(&keep, &list, sizes, NULL);
    tir_keep_choose(&keep, 2);
    assert_int_equal(keep.kept.len, 1);
    assert_int_equal(keep.unfit, 1);
    assert_true(keep.loss == 1);
}

static void put(tir_str *table, const char *key, const char *rest)
{
    tir_str line = tir_str_format(&arena, "%s config(%s", key, rest);
    *table = tir_tuned_file_put(&arena, *table, tir_str_of(key), line);
}

static void test_lines(void **state)
{
    (void)state;
    tir_str table = STR("// head\n");
    put(&table, "\"d\" 1 sm_80 f(M=1)", "A)");
    put(&table, "\"d\" 1 sm_80 g(M=1)", "A)");
    put(&table, "\"d\" 1 sm_80 f(M=12)", "A)");
    put(&table, "\"d\" 1 sm_80 f<T=1>(M=1)", "A)");
    put(&table, "\"d\" 1 sm_80 f(M=1)", "B) // new");
    assert_string_equal(table.ptr, "// head\n"
                                   "\"d\" 1 sm_80 f(M=1) config(B) // new\n"
                                   "\"d\" 1 sm_80 f(M=12) config(A)\n"
                                   "\"d\" 1 sm_80 g(M=1) config(A)\n"
                                   "\"d\" 1 sm_80 f<T=1>(M=1) config(A)\n");
    table = STR("no newline");
    put(&table, "\"d\" 1 sm_80 f(M=1)", "A)");
    assert_string_equal(table.ptr, "no newline\n\"d\" 1 sm_80 f(M=1) config(A)\n");
    table = STR("\"d\" 1 sm_80 f(M=1) config(A)");
    put(&table, "\"d\" 1 sm_80 f(M=1)", "B)");
    assert_string_equal(table.ptr, "\"d\" 1 sm_80 f(M=1) config(B)\n");
    table = STR("");
    put(&table, "\"d\" 1 sm_80 f(M=1)", "A)");
    assert_string_equal(table.ptr, "\"d\" 1 sm_80 f(M=1) config(A)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_wrong_sizes),
        cmocka_unit_test(test_drawn_sizes),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_kept_without_fit),
        cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
