// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values of the command line as the arguments of a kernel.

// cmocka.h wants these four before it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "arena.h"
#include "driver/launch/bind.h"

static struct tir_bind bind;

// gemm<BM>(A: bf16[M, K], B: f32[8, K], D: out f32[M, K], scale: f16, count: u64)
#define DIM(n) \
    {          \
        n, 0   \
    }
#define FIXED(n)            \
    {                       \
        TIR_EXTENT_FIXED, n \
    }
#define NAME(text)             \
    {                          \
        text, sizeof(text) - 1 \
    }
static const tir_str dims[] = {NAME("M"), NAME("K")};
static const tir_artifact_param params[] = {
    {NAME("A"), TIR_PARAM_TENSOR, TIR_ELEMENT_BF16, TIR_DIRECTION_IN, 2, {DIM(0), DIM(1)}},
    {NAME("B"), TIR_PARAM_TENSOR, TIR_ELEMENT_F32, TIR_DIRECTION_IN, 2, {FIXED(8), DIM(1)}},
    {NAME("D"), TIR_PARAM_TENSOR, TIR_ELEMENT_F32, TIR_DIRECTION_OUT, 2, {DIM(0), DIM(1)}},
    {NAME("scale"), TIR_PARAM_SCALAR, TIR_ELEMENT_F16, TIR_DIRECTION_IN, 0, {{0, 0}}},
    {NAME("count"), TIR_PARAM_SCALAR, TIR_ELEMENT_U64, TIR_DIRECTION_IN, 0, {{0, 0}}},
};
static const tir_artifact_meta metas[] = {{NAME("BM"), NAME("128")}};
static const tir_artifact_fixed fixed[] = {{NAME("B_0"), 8}};
static const tir_artifact_kernel kernel = {NAME("gemm"), dims, 2, params, 5, metas, 1, fixed, 1};

// The message for these words, "" when they are accepted; `bind` is then left for a look.
static const char *try_words(const char *const *words, uint32_t count)
{
    static tir_error error;
    error.message[0] = 0;
    if (tir_bind_make(&arena, &kernel, "f.tir", words, count, 1, &bind, &error))
        return "";
    tir_bind_release(&bind);
    return error.message;
}
#define WORDS(...)                                \
    try_words((const char *const[]){__VA_ARGS__}, \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void test_sound(void **state)
{
    (void)state;
    assert_string_equal(WORDS("M=3", "K=0x5", "scale=-0.1", "count=18446744073709551615",
                              "B=arange,pad=2", "A=full:2"),
                        "");
    assert_int_equal(bind.params[0].tensor.count, 15);
    assert_int_equal(bind.params[1].tensor.shape[0], 8);
    assert_int_equal(bind.params[1].tensor.strides[0], 7);
    for (uint64_t i = 0; i < bind.params[2].tensor.size; i++) // an output is poisoned
        assert_int_equal(bind.params[2].tensor.bytes[i], 0xFF);
    assert_int_equal(bind.params[3].scalar.bits, 0xAE66); // f16(-0.1)
    assert_true((uint64_t)bind.params[4].scalar.i == UINT64_MAX);
    tir_bind_release(&bind);
}

static void test_zero_dims(void **state)
{
    (void)state;
    assert_string_equal(WORDS("M=0", "K=0", "scale=1", "count=0"), "");
    assert_int_equal(bind.params[1].tensor.count, 0);
    tir_bind_release(&bind);
}

static void test_refused(void **state)
{
    (void)state;
    assert_string_equal(WORDS("M=3"), "gemm needs values for K, scale, count; for example: tirc "
                                      "run f.tir K=512 scale=1 count=1");
    assert_string_equal(WORDS("M=3", "M=3"), "M is given twice");
    assert_string_equal(WORDS("A=randn", "A=rand"), "A is given twice");
    assert_string_equal(WORDS("M=-1"), "M=-1: a dimension is a whole number from 0");
    assert_string_equal(WORDS("M=1.5"), "M=1.5: a dimension is a whole number from 0");
    assert_string_equal(WORDS("count=-1"), "count: \"-1\" is not a value of u64");
    assert_string_equal(WORDS("scale=big"), "scale: \"big\" is not a value of f16");
    assert_string_equal(WORDS("scale=70000"), "scale: \"70000\" is not a value of f16");
    assert_string_equal(WORDS("scale=-1e400"), "scale: \"-1e400\" is not a value of f16");
    assert_string_equal(WORDS("M=1", "K=1", "count=1", "scale=-inf"), "");
    tir_bind_release(&bind);
    assert_string_equal(WORDS("skale=1"),
                        "gemm has no dimension or parameter skale; did you mean scale?");
    assert_string_equal(WORDS("queue=1"),
                        "gemm has no dimension or parameter queue; its dimensions are M, K");
    assert_string_equal(WORDS("N=1"), // every name of one letter is near
                        "gemm has no dimension or parameter N; its dimensions are M, K");
    assert_string_equal(WORDS("B_0=9"), "B_0=9: gemm needs B_0 == 8");
    assert_string_equal(WORDS("B_0=eight"), "B_0=eight: gemm needs B_0 == 8");
    assert_string_equal(WORDS("BM=64"), "BM is a compile-time parameter: write -D BM=VALUE");
    assert_string_equal(WORDS("A"), "A: NAME=VALUE is needed");
    assert_string_equal(WORDS("=1"), "=1: NAME=VALUE is needed");
    assert_string_equal(WORDS("A=strides=1"), "A has 2 dimensions, but 1 strides");
    assert_string_equal(WORDS("M=2", "K=2", "scale=1", "count=1", "D=strides=0x1"),
                        "D: elements of an output overlap");
    assert_string_equal(
        WORDS("M=4611686018427387904", "K=4611686018427387904", "scale=1", "count=1"),
        "A: the tensor would be too large");
}

// Dimensions come from a file, and must agree with those that are stated.
static void test_files(void **state)
{
    (void)state;
    char path[] = "bind_test.XXXXXX", word[64];
    int fd = mkstemp(path);
    assert_true(fd >= 0 && !close(fd));
    struct tir_tensor t;
    struct tir_tensor_spec spec = {.fill = TIR_FILL_ARANGE};
    tir_error error;
    assert_true(tir_tensor_make(&t, TIR_BF16, 2, (int64_t[]){3, 5}, NULL, 0, 0, &error));
    tir_tensor_fill(&t, &spec, 0);
    assert_true(tir_npy_save(path, &t, &error));
    tir_tensor_free(&t);
    snprintf(word, sizeof(word), "A=@%s,pad=1", path);
    assert_string_equal(WORDS(word, "scale=1", "count=1"), "");
    assert_true(bind.dims[0] == 3 && bind.dims[1] == 5);
    assert_memory_equal(bind.params[0].tensor.bytes + 2 * 6, "\xa0\x40", 2); // [1, 0] is 5
    tir_bind_release(&bind);
    assert_non_null(strstr(WORDS(word, "K=4", "scale=1", "count=1"), "is 5, but K is 4"));
    snprintf(word, sizeof(word), "B=@%s", path);
    assert_non_null(
        strstr(WORDS(word, "M=1", "scale=1", "count=1"), "is 3, but the kernel's is 8"));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),
        cmocka_unit_test(test_zero_dims),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
