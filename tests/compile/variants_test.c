// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The variants of a matrix product: which one the runtime takes for which alignments, that each one
// that fits computes the product exactly, and how wide its copies are.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "product.h"
#include "tir/compiler.h"
#include "tir/runtime.h"

#define STR(text)   ((tir_str){text, sizeof(text) - 1})
#define COUNT(list) (sizeof(list) / sizeof *(list))

static const char gemm[] =
    "kernel gemm<T = bf16, ACC = f32>(A: T[M, K], B: T[N, K], D: out ACC[M, N])\n"
    "{\n"
    "    for (m, n) in tiles(M by 64, N by 64) {\n"
    "        var acc: ACC[64, 64] = 0;\n"
    "        for k in range(0, K, 64, stages = 3) {\n"
    "            acc += dot(A[m:+64, k:+64], B[n:+64, k:+64].T);\n"
    "        }\n"
    "        D[m:+64, n:+64] = acc;\n"
    "    }\n"
    "}\n";

enum variant { WHOLE, EDGES, WIDE, WORDS, ANY, VARIANTS };
static const char *const entries[VARIANTS] = {"gemm", "gemm__edges", "gemm__wide", "gemm__words",
                                              "gemm__any"};

enum { MARGIN = 64, LARGEST = 1 << 15 }; // elements
#define POISON 0.5f                      // no sum of whole numbers

struct tensor {                                      // as a launch sees it
    int64_t rows, columns, stride0, stride1, offset; // in elements
};

static tir_compilation *compile(const char *element, const char *sum, uint32_t outputs)
{
    const tir_setting metas[] = {{STR("T"), {element, strlen(element)}},
                                 {STR("ACC"), {sum, strlen(sum)}}};
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.metas = metas;
    options.meta_count = COUNT(metas);
    options.outputs = outputs;
    tir_compilation *c = NULL;
    tir_error error;
    if (tir_compile(STR("gemm.tir"), STR(gemm), &options, &c, &error))
        fail_msg("%s", c ? tir_compilation_diagnostics(c).ptr : error.message);
    return c;
}

static int set_up(void **state)
{
    static struct product rig;
    tir_error error;
    tir_compilation *c = compile("bf16", "f32", 1u << TIR_OUTPUT_ARTIFACT);
    tir_str artifact = tir_compilation_output(c, TIR_OUTPUT_ARTIFACT);
    product_open(&rig);
    ok(tir_rt_module_load(rig.device, artifact.ptr, artifact.len, &rig.module, &error), &error);
    product_kernel(&rig, STR("gemm"), LARGEST);
    tir_compilation_destroy(c);
    *state = &rig;
    return 0;
}

static int tear_down(void **state)
{
    product_close(*state);
    return 0;
}

static int64_t place(const struct tensor *t, int64_t row, int64_t column)
{
    return t->offset + row * t->stride0 + column * t->stride1;
}

// Small whole numbers, so that every sum is exact in any order; what is not part of the tensor is
// NaN in bf16.
static int number(int64_t row, int64_t column, int64_t seed)
{
    return (int)((row * 7 + column * 5 + seed) % 9) - 4;
}

static void fill(tir_rt_buffer *buffer, const struct tensor *t, int64_t seed)
{
    static uint16_t host[LARGEST];
    tir_error error;
    memset(host, 0xff, sizeof host);
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t c = 0; c < t->columns; c++) {
            float value = (float)number(r, c, seed);
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            host[place(t, r, c)] = (uint16_t)(bits >> 16);
        }
    ok(tir_rt_buffer_write(buffer, 0, host, sizeof host, NULL, &error), &error);
}

struct sample {
    const char *what;
    struct tensor a, b, d;
    enum variant expected;
};

static tir_rt_arg argument(tir_rt_buffer *buffer, tir_element element, const struct tensor *t)
{
    return tir_rt_arg_tensor(tir_rt_buffer_address(buffer) +
                                 (uint64_t)t->offset * (element == TIR_ELEMENT_F32 ? 4 : 2),
                             element, 2, &t->rows, &t->stride0);
}

static void check_product(struct product *rig, const struct sample *s, const char *entry)
{
    static float host[LARGEST];
    tir_error error;
    ok(tir_rt_buffer_read(rig->d, 0, host, sizeof host, NULL, &error), &error);
    for (int64_t r = 0; r < s->d.rows; r++)
        for (int64_t c = 0; c < s->d.columns; c++) {
            int sum = 0;
            for (int64_t k = 0; k < s->a.columns; k++)
                sum += number(r, k, 1) * number(c, k, 2);
            float *found = &host[place(&s->d, r, c)];
            if (*found != (float)sum)
                fail_msg("%s, %s: D[%d, %d] is %g, not %d", s->what, entry, (int)r, (int)c,
                         (double)*found, sum);
            *found = POISON;
        }
    for (int i = 0; i < LARGEST; i++)
        if (host[i] != POISON)
            fail_msg("%s, %s: wrote outside D", s->what, entry);
}

static void run(struct product *rig, const struct sample *s)
{
    static float poison[LARGEST];
    for (int i = 0; i < LARGEST; i++)
        poison[i] = POISON;
    tir_error error;
    fill(rig->a, &s->a, 1);
    fill(rig->b, &s->b, 2);
    tir_rt_arg args[] = {argument(rig->a, TIR_ELEMENT_BF16, &s->a),
                         argument(rig->b, TIR_ELEMENT_BF16, &s->b),
                         argument(rig->d, TIR_ELEMENT_F32, &s->d)};
    tir_rt_launch_report report;
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    options.report = &report;
    for (int32_t variant = -1; variant < VARIANTS; variant++) {
        options.variant = variant;
        ok(tir_rt_buffer_write(rig->d, 0, poison, sizeof poison, NULL, &error), &error);
        tir_status status = tir_rt_launch(rig->kernel, NULL, args, 3, &options, &error);
        if (variant >= 0 && variant < (int32_t)s->expected) {
            assert_int_equal(status, TIR_ERR_INVALID);
            continue;
        }
        ok(status, &error);
        enum variant taken = variant < 0 ? s->expected : (enum variant)variant;
        if (report.variant != taken)
            fail_msg("%s: took %s, not %s", s->what, entries[report.variant], entries[taken]);
        check_product(rig, s, entries[taken]);
    }
}

#define DENSE(rows, columns)              \
    {                                     \
        rows, columns, columns, 1, MARGIN \
    }

static void the_alignment_of_each_tensor_chooses(void **state)
{
    static const struct sample samples[] = {
        {"whole tiles", DENSE(128, 64), DENSE(64, 64), DENSE(128, 64), WHOLE},
        {"rows of any number", DENSE(33, 128), DENSE(32, 128), DENSE(33, 32), EDGES},
        {"an output of odd width", DENSE(33, 40), DENSE(37, 40), DENSE(33, 37), EDGES},
        {"an output at an odd address", DENSE(64, 64), DENSE(64, 64), {64, 64, 64, 1, 65}, EDGES},
        {"an output with padded rows", DENSE(32, 64), DENSE(32, 64), {32, 32, 35, 1, 64}, EDGES},
        {"K of 8 mod 16", DENSE(31, 8), DENSE(5, 8), DENSE(31, 5), EDGES},
        {"even K", DENSE(65, 134), DENSE(37, 134), DENSE(65, 37), WORDS},
        {"K of 2", DENSE(33, 2), DENSE(32, 2), DENSE(33, 32), WORDS},
        {"A at 4 bytes", {32, 64, 64, 1, 66}, DENSE(32, 64), DENSE(32, 32), WORDS},
        {"B with rows of 132 bytes", DENSE(32, 64), {32, 64, 66, 1, 64}, DENSE(32, 32), WORDS},
        {"A at 2 bytes", {32, 64, 64, 1, 65}, DENSE(32, 64), DENSE(32, 32), ANY},
        {"B with rows of 134 bytes", DENSE(32, 64), {32, 64, 67, 1, 64}, DENSE(32, 32), ANY},
        {"odd K", DENSE(65, 133), DENSE(37, 133), DENSE(65, 37), ANY},
        {"K of 1", DENSE(3, 1), DENSE(2, 1), DENSE(3, 2), ANY},
        {"A turned", {32, 64, 1, 32, 64}, DENSE(32, 64), DENSE(32, 32), ANY},
        {"D turned", DENSE(32, 64), DENSE(32, 64), {32, 32, 1, 32, 64}, ANY},
    };
    for (size_t i = 0; i < COUNT(samples); i++)
        run(*state, &samples[i]);
}

// A tensor that spans 2 GiB or more needs 64-bit offsets, and is copied as widely as a small one.
// Its memory is not looked at: a grid of size 0 launches nothing.
static void large_tensors_take_wide_offsets(void **state)
{
    struct product *rig = *state;
    struct tensor a = DENSE(0, 64), b = DENSE(64, 64), d = DENSE(0, 64);
    tir_rt_arg args[] = {argument(rig->a, TIR_ELEMENT_BF16, &a),
                         argument(rig->b, TIR_ELEMENT_BF16, &b),
                         argument(rig->d, TIR_ELEMENT_F32, &d)};
    tir_rt_launch_report report;
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    options.report = &report;
    tir_error error;
    ok(tir_rt_launch(rig->kernel, NULL, args, 3, &options, &error), &error);
    assert_int_equal(report.variant, WHOLE);
    b.stride0 = INT64_C(1) << 30;
    ok(tir_rt_launch(rig->kernel, NULL, args, 3, &options, &error), &error);
    assert_int_equal(report.variant, WIDE);
    assert_false(report.launched);
    b.stride0 += 1;
    ok(tir_rt_launch(rig->kernel, NULL, args, 3, &options, &error), &error);
    assert_int_equal(report.variant, ANY);
}

// The text of one entry.
static tir_str entry_text(tir_str ptx, const char *entry)
{
    char head[64];
    snprintf(head, sizeof head, ".entry %s(", entry);
    const char *begin = strstr(ptx.ptr, head);
    assert_non_null(begin);
    const char *end = strstr(begin + 1, ".entry ");
    return (tir_str){begin, end ? (size_t)(end - begin) : strlen(begin)};
}

static uint32_t count_copies(tir_str text, uint32_t width)
{
    static const char copy[] = "cp.async.c";
    uint32_t found = 0;
    for (size_t i = 0; i + sizeof copy <= text.len; i++) {
        if (memcmp(text.ptr + i, copy, sizeof copy - 1) != 0 || text.ptr[i + sizeof copy] == 'o')
            continue; // cp.async.commit_group
        unsigned bytes;
        const char *size = strstr(strchr(text.ptr + i, ']') + 1, "], ");
        found += sscanf(size, "], %u", &bytes) == 1 && bytes == width;
    }
    return found;
}

static void copies_are_as_wide_as_the_alignment(void **state)
{
    (void)state;
    static const struct {
        const char *element, *sum;
        uint32_t width[VARIANTS]; // 0: no copies
    } cases[] = {
        {"bf16", "f32", {16, 16, 16, 4, 0}},
        {"i8", "i32", {16, 16, 16, 4, 0}},
        {"f32", "f32", {16, 16, 16, 4, 4}},
        {"f64", "f64", {16, 16, 16, 8, 8}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        tir_compilation *c = compile(cases[i].element, cases[i].sum, 1u << TIR_OUTPUT_PTX);
        tir_str ptx = tir_compilation_output(c, TIR_OUTPUT_PTX);
        for (uint32_t v = 0; v < VARIANTS; v++)
            for (uint32_t width = 4; width <= 16; width *= 2) {
                uint32_t found = count_copies(entry_text(ptx, entries[v]), width);
                if ((found > 0) != (width == cases[i].width[v]))
                    fail_msg("%s of %s: %u copies of %u bytes", entries[v], cases[i].element, found,
                             width);
            }
        tir_compilation_destroy(c);
    }
}

// A kernel of one configuration has nothing to choose from, so it says a cost if it is asked to.
static void costs_are_there_where_they_are_wanted(void **state)
{
    (void)state;
    for (uint32_t wanted = 0; wanted < 2; wanted++) {
        tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
        tir_compilation *c = NULL;
        const tir_artifact_desc *desc;
        tir_error error;
        options.costs = wanted;
        ok(tir_compile(STR("gemm.tir"), STR(gemm), &options, &c, &error), &error);
        const tir_str artifact = tir_compilation_output(c, TIR_OUTPUT_ARTIFACT);
        ok(tir_artifact_decode(artifact.ptr, artifact.len, NULL, &desc, &error), &error);
        assert_int_equal(desc->kernels[0].variant_count, VARIANTS);
        for (uint32_t v = 0; v < VARIANTS; v++)
            assert_int_equal(desc->kernels[0].variants[v].cost.count > 0, wanted);
        tir_artifact_free(desc, NULL);
        tir_compilation_destroy(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_are_there_where_they_are_wanted),
        cmocka_unit_test(the_alignment_of_each_tensor_chooses),
        cmocka_unit_test(large_tensors_take_wide_offsets),
        cmocka_unit_test(copies_are_as_wide_as_the_alignment),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
