// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Outlines: they say of every variant what a whole artifact says, each variant's code is that of
// the whole, and a module that is opened with one compiles what its launches take.
// Usage: outline_test FILE...

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "product.h"
#include "source.h"
#include "tir/compiler.h"
#include "tir/runtime.h"

#define STR(s)   ((tir_str){s, sizeof(s) - 1})
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static char **files;
static int file_count;

static tir_compilation *compile(const char *name, tir_str source,
                                const tir_compile_options *options)
{
    tir_compilation *c = NULL;
    tir_error error;
    if (tir_compile((tir_str){name, strlen(name)}, source, options, &c, &error))
        fail_msg("%s: %s", name, c ? tir_compilation_diagnostics(c).ptr : error.message);
    return c;
}

static const tir_artifact_desc *decode(tir_str bytes)
{
    const tir_artifact_desc *desc;
    tir_error error;
    ok(tir_artifact_decode(bytes.ptr, bytes.len, NULL, &desc, &error), &error);
    return desc;
}

static void same_text(tir_str a, tir_str b)
{
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.ptr, b.ptr, a.len);
}

// ---- the outline and the whole

// Formulas with the same value for any dimensions, alignments and scalars; tried on a few.
static void same_formula(const tir_formula *a, const tir_formula *b)
{
    assert_int_equal(a->count > 0, b->count > 0);
    for (int64_t n = 0; n < 12 && a->count; n++) {
        int64_t dims[TIR_MAX_DIMS], params[TIR_MAX_PARAMS], x = 0, y = 0;
        for (int64_t i = 0; i < TIR_MAX_DIMS; i++)
            dims[i] = n < 6 ? 1 + n * 37 + i * 11 : 64 * (n + i);
        for (int64_t i = 0; i < TIR_MAX_PARAMS; i++)
            params[i] = (int64_t)1 << (n + i) % 5;
        const tir_status left = tir_formula_eval(a, dims, params, &x, NULL);
        assert_int_equal(left, tir_formula_eval(b, dims, params, &y, NULL));
        assert_true(left || x == y);
    }
}

static void same_interface(const tir_artifact_kernel *a, const tir_artifact_kernel *b)
{
    same_text(a->name, b->name);
    assert_int_equal(a->is_step, b->is_step);
    assert_int_equal(a->dim_count, b->dim_count);
    for (uint32_t i = 0; i < a->dim_count; i++)
        same_text(a->dims[i], b->dims[i]);
    assert_int_equal(a->param_count, b->param_count);
    for (uint32_t i = 0; i < a->param_count; i++) {
        same_text(a->params[i].name, b->params[i].name);
        assert_int_equal(a->params[i].kind, b->params[i].kind);
        assert_int_equal(a->params[i].element, b->params[i].element);
        assert_int_equal(a->params[i].direction, b->params[i].direction);
        assert_int_equal(a->params[i].rank, b->params[i].rank);
        assert_memory_equal(a->params[i].extents, b->params[i].extents,
                            sizeof a->params[i].extents);
    }
}

static void same_choice(const tir_artifact_kernel *a, const tir_artifact_kernel *b)
{
    assert_int_equal(a->condition_count, b->condition_count);
    for (uint32_t i = 0; i < a->condition_count; i++)
        same_formula(&a->conditions[i].holds, &b->conditions[i].holds);
    assert_int_equal(a->config_count, b->config_count);
    for (uint32_t i = 0; i < a->config_count; i++)
        same_text(a->configs[i], b->configs[i]);
    assert_int_equal(a->variant_count, b->variant_count);
    for (uint32_t v = 0; v < a->variant_count; v++) {
        same_text(a->variants[v].entry, b->variants[v].entry);
        assert_int_equal(a->variants[v].facts, b->variants[v].facts);
        assert_int_equal(a->variants[v].config, b->variants[v].config);
        same_formula(&a->variants[v].when, &b->variants[v].when);
        same_formula(&a->variants[v].cost, &b->variants[v].cost);
    }
    assert_int_equal(a->sequence_count, b->sequence_count);
    for (uint32_t i = 0; i < a->sequence_count; i++) {
        const tir_artifact_sequence *s = &a->sequences[i], *t = &b->sequences[i];
        same_formula(&s->cost, &t->cost);
        assert_int_equal(s->config, t->config);
        assert_int_equal(s->step_count, t->step_count);
        assert_int_equal(s->scratch_count, t->scratch_count);
        for (uint32_t k = 0; k < s->step_count; k++)
            assert_int_equal(s->steps[k].kernel, t->steps[k].kernel);
    }
}

// The text without the number of the function in its labels: "$L__BB3_1" as "$L__BB_1".
static char *without_numbers(tir_str ptx)
{
    char *out = malloc(ptx.len + 1), *at = out;
    for (size_t i = 0; i < ptx.len; i++) {
        *at++ = ptx.ptr[i];
        if (at - out < 5 || memcmp(at - 5, "L__BB", 5) != 0)
            continue;
        while (i + 1 < ptx.len && ptx.ptr[i + 1] >= '0' && ptx.ptr[i + 1] <= '9')
            i++;
    }
    *at = 0;
    return out;
}

// The whole PTX has the entry of the variant's.
static void has_entry(tir_str whole, tir_str part)
{
    char *text = without_numbers(part), *all = without_numbers(whole);
    const char *entry = strstr(text, ".visible .entry");
    assert_non_null(entry);
    assert_null(strstr(entry + 1, ".visible .entry"));
    assert_non_null(strstr(all, entry));
    free(text);
    free(all);
}

static void same_variant(tir_compilation *outline, tir_str ptx, const tir_artifact_kernel *kernel,
                         const tir_artifact_variant *want)
{
    tir_compilation *c;
    tir_error error;
    ok(tir_compile_variant(outline, want->entry, &c, &error), &error);
    const tir_artifact_desc *desc = decode(tir_compilation_output(c, TIR_OUTPUT_ARTIFACT));
    assert_int_equal(desc->kernel_count, 1);
    same_interface(&desc->kernels[0], kernel);
    assert_int_equal(desc->kernels[0].variant_count, 1);
    const tir_artifact_variant *got = desc->kernels[0].variants;
    same_text(got->entry, want->entry);
    assert_int_equal(got->facts, want->facts);
    assert_int_equal(got->threads, want->threads);
    assert_int_equal(got->dynamic_shared, want->dynamic_shared);
    assert_int_equal(got->persistent, want->persistent);
    assert_int_equal(got->map_count, want->map_count);
    assert_int_equal(got->is_open, 0);
    same_formula(&got->when, &want->when);
    for (int i = 0; i < 3; i++)
        same_formula(&got->grid[i], &want->grid[i]);
    has_entry(ptx, desc->ptx);
    tir_artifact_free(desc, NULL);
    tir_compilation_destroy(c);
}

static void compare(const char *path, tir_str source, tir_compile_options options)
{
    options.import = import_beside;
    options.import_user = (void *)(uintptr_t)path;
    tir_compilation *whole = compile(path, source, &options);
    options.outputs |= 1u << TIR_OUTPUT_OUTLINE;
    tir_compilation *outline = compile(path, source, &options);
    assert_int_equal(tir_compilation_output(outline, TIR_OUTPUT_ARTIFACT).len, 0);
    const tir_artifact_desc *a = decode(tir_compilation_output(outline, TIR_OUTPUT_OUTLINE));
    const tir_artifact_desc *b = decode(tir_compilation_output(whole, TIR_OUTPUT_ARTIFACT));
    assert_int_equal(a->ptx.len, 0);
    assert_int_equal(a->kernel_count, b->kernel_count);
    for (uint32_t i = 0; i < a->kernel_count; i++) {
        same_interface(&a->kernels[i], &b->kernels[i]);
        same_choice(&a->kernels[i], &b->kernels[i]);
        for (uint32_t v = 0; v < b->kernels[i].variant_count; v++) {
            assert_int_equal(a->kernels[i].variants[v].is_open, 1);
            same_variant(outline, b->ptx, &b->kernels[i], &b->kernels[i].variants[v]);
        }
    }
    tir_artifact_free(a, NULL);
    tir_artifact_free(b, NULL);
    tir_compilation_destroy(outline);
    tir_compilation_destroy(whole);
}

static void test_files(void **state)
{
    (void)state;
    for (int i = 0; i < file_count; i++) {
        tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
        options.arch = STR("sm_90a");
        compare(files[i], read_file(files[i]), options);
    }
}

static const char source[] = "kernel f<B = 64>(X: bf16[M, K], Y: bf16[K, N], D: out f32[M, N])\n"
                             "    where M > 0\n"
                             "    config(B = 64) config(B = 32)\n"
                             "{\n"
                             "    for (m, n) in tiles(M by B, N by B) {\n"
                             "        var acc: f32[B, B] = 0;\n"
                             "        for k in range(0, K, 32) {\n"
                             "            acc += dot(X[m:+B, k:+32], Y[k:+32, n:+B]);\n"
                             "        }\n"
                             "        D[m:+B, n:+B] = acc;\n"
                             "    }\n"
                             "}\n";

static void test_known_sizes(void **state)
{
    (void)state;
    const tir_setting dims[] = {{STR("K"), STR("128")}};
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.dims = dims;
    options.dim_count = COUNT(dims);
    compare("./known.tir", STR(source), options);
}

// ---- what is refused

static void test_refusals(void **state)
{
    (void)state;
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    tir_compilation *whole = compile("f.tir", STR(source), &options), *outline, *c;
    tir_error error;
    assert_int_equal(tir_compile_variant(whole, STR("f"), &c, &error), TIR_ERR_INVALID);
    assert_string_equal(error.message, "the compilation is no outline");
    assert_null(c);
    tir_compilation_destroy(whole);
    options.outputs = 1u << TIR_OUTPUT_OUTLINE;
    outline = compile("f.tir", STR(source), &options);
    assert_int_equal(tir_compile_variant(outline, STR("f__"), &c, &error), TIR_ERR_INVALID);
    assert_string_equal(error.message, "the outline has no variant `f__`");
    // Without other outputs a variant is only checked.
    ok(tir_compile_variant(outline, STR("f"), &c, &error), &error);
    assert_int_equal(tir_compilation_output(c, TIR_OUTPUT_ARTIFACT).len, 0);
    assert_true(tir_compilation_output(c, TIR_OUTPUT_RECEIPT).len > 0);
    tir_compilation_destroy(c);
    tir_compilation_destroy(outline);
    options.stop_after = STR("layout");
    assert_int_equal(tir_compile(STR("f.tir"), STR(source), &options, &c, &error), TIR_ERR_INVALID);
    options.stop_after.len = 0;
    assert_int_equal(tir_compile(STR("f.tir"), STR("kernel f( {}"), &options, &outline, &error),
                     TIR_ERR_DIAGNOSED);
    assert_int_equal(tir_compile_variant(outline, STR("f"), &c, &error), TIR_ERR_INVALID);
    assert_string_equal(error.message, "the outline has errors");
    tir_compilation_destroy(outline);
}

// What only passes find is an error of the variant, with its place in the source. Wishes are for
// the best variant alone.
static void test_late_error(void **state)
{
    (void)state;
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    tir_compilation *outline, *whole, *c;
    tir_error error;
    options.require = STR("tma");
    assert_int_equal(tir_compile(STR("f.tir"), STR(source), &options, &whole, &error),
                     TIR_ERR_DIAGNOSED);
    options.outputs |= 1u << TIR_OUTPUT_OUTLINE;
    outline = compile("f.tir", STR(source), &options);
    assert_int_equal(tir_compile_variant(outline, STR("f"), &c, &error), TIR_ERR_DIAGNOSED);
    assert_true(tir_compilation_diagnostics(c).len > 0);
    same_text(tir_compilation_diagnostics(c), tir_compilation_diagnostics(whole));
    tir_compilation_destroy(c);
    ok(tir_compile_variant(outline, STR("f__any"), &c, &error), &error);
    tir_compilation_destroy(c);
    tir_compilation_destroy(outline);
    tir_compilation_destroy(whole);
}

// ---- memory

struct budget {
    long left, live;
};

static void *limited(void *user, void *ptr, size_t old_size, size_t new_size)
{
    struct budget *budget = user;
    (void)old_size;
    if (new_size == 0) {
        budget->live -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    if (budget->left-- <= 0)
        return NULL;
    budget->live += ptr == NULL;
    return realloc(ptr, new_size);
}

static void test_no_memory(void **state)
{
    (void)state;
    static const char axpy[] = "kernel axpy(a: f32, X: f32[N], Y: inout f32[N])\n"
                               "{ for i in tiles(N by 256) { Y[i:+256] += a * X[i:+256]; } }\n";
    struct budget budget = {1L << 40, 0};
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    tir_compilation *outline, *c = NULL;
    tir_error error;
    options.allocator = (tir_allocator){limited, &budget};
    options.outputs |= 1u << TIR_OUTPUT_OUTLINE;
    outline = compile("axpy.tir", STR(axpy), &options);
    const long live = budget.live;
    long n = 0;
    for (; !c; n++) {
        budget.left = n;
        const tir_status status = tir_compile_variant(outline, STR("axpy"), &c, &error);
        if (!c) {
            assert_int_equal(status, TIR_ERR_NO_MEMORY);
            assert_int_equal(budget.live, live);
        }
        assert_true(n < 2000);
    }
    assert_true(n > 3);
    tir_compilation_destroy(c);
    assert_int_equal(budget.live, live);
    tir_compilation_destroy(outline);
    assert_int_equal(budget.live, 0);
}

// ---- with the runtime, on the emulator

struct host {
    tir_compilation *outline;
    atomic_int compiled;
    atomic_int fails; // 1: the next compilation does
    tir_status says;  // with this status and no message; TIR_OK: with a message
    pthread_mutex_t lock;
    char last[64]; // the entry that was compiled last
};

static tir_status make(void *user, tir_str entry, tir_rt_code *code, tir_error *error)
{
    struct host *host = user;
    tir_compilation *c;
    if (host->fails) {
        host->fails = 0;
        if (host->says)
            return host->says;
        *error = (tir_error){TIR_ERR_UNSUPPORTED, 0, "not now"};
        return TIR_ERR_UNSUPPORTED;
    }
    host->compiled++;
    pthread_mutex_lock(&host->lock);
    snprintf(host->last, sizeof host->last, "%.*s", (int)entry.len, entry.ptr);
    pthread_mutex_unlock(&host->lock);
    tir_status status = tir_compile_variant(host->outline, entry, &c, error);
    if (status)
        return status;
    const tir_str artifact = tir_compilation_output(c, TIR_OUTPUT_ARTIFACT);
    status = tir_rt_code_set(code, artifact.ptr, artifact.len, error);
    tir_compilation_destroy(c);
    return status;
}

enum { LARGEST = 4096 };

struct opened {
    struct product on;
    struct host host;
};

static int set_up(void **state)
{
    static struct opened rig;
    tir_error error;
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    memset(&rig, 0, sizeof rig);
    pthread_mutex_init(&rig.host.lock, NULL);
    options.outputs |= 1u << TIR_OUTPUT_OUTLINE;
    rig.host.outline = compile("f.tir", STR(source), &options);
    const tir_str bytes = tir_compilation_output(rig.host.outline, TIR_OUTPUT_OUTLINE);
    product_open(&rig.on);
    assert_int_equal(
        tir_rt_module_load(rig.on.device, bytes.ptr, bytes.len, &rig.on.module, &error),
        TIR_ERR_INVALID);
    ok(tir_rt_module_open(rig.on.device, bytes.ptr, bytes.len, make, &rig.host, &rig.on.module,
                          &error),
       &error);
    product_kernel(&rig.on, STR("f"), LARGEST);
    *state = &rig;
    return 0;
}

static int tear_down(void **state)
{
    struct opened *rig = *state;
    product_close(&rig->on);
    tir_compilation_destroy(rig->host.outline);
    return 0;
}

// D = A @ B of 1 and 2, in a square of n.
static tir_status launch(struct opened *rig, int64_t n, tir_error *error)
{
    uint16_t ones[LARGEST], twos[LARGEST];
    const int64_t shape[] = {n, n};
    for (int i = 0; i < LARGEST; i++) {
        ones[i] = 0x3f80; // of bf16
        twos[i] = 0x4000;
    }
    ok(tir_rt_buffer_write(rig->on.a, 0, ones, sizeof ones, NULL, error), error);
    ok(tir_rt_buffer_write(rig->on.b, 0, twos, sizeof twos, NULL, error), error);
    ok(tir_rt_buffer_fill(rig->on.d, 0, 0xff, LARGEST * 4, NULL, error), error);
    const tir_rt_arg args[] = {
        tir_rt_arg_tensor(tir_rt_buffer_address(rig->on.a), TIR_ELEMENT_BF16, 2, shape, NULL),
        tir_rt_arg_tensor(tir_rt_buffer_address(rig->on.b), TIR_ELEMENT_BF16, 2, shape, NULL),
        tir_rt_arg_tensor(tir_rt_buffer_address(rig->on.d), TIR_ELEMENT_F32, 2, shape, NULL)};
    return tir_rt_launch(rig->on.kernel, NULL, args, 3, NULL, error);
}

static void expect_product(struct opened *rig, int64_t n)
{
    float d[LARGEST];
    tir_error error;
    ok(tir_rt_buffer_read(rig->on.d, 0, d, sizeof d, NULL, &error), &error);
    for (int64_t i = 0; i < n * n; i++)
        assert_true(d[i] == (float)(2 * n));
}

static void test_launches(void **state)
{
    struct opened *rig = *state;
    tir_error error;
    assert_int_equal(rig->host.compiled, 0);
    ok(launch(rig, 64, &error), &error);
    expect_product(rig, 64);
    assert_int_equal(rig->host.compiled, 1);
    ok(launch(rig, 64, &error), &error);
    ok(launch(rig, 32, &error), &error);
    const int before = rig->host.compiled;
    ok(launch(rig, 64, &error), &error);
    assert_int_equal(rig->host.compiled, before);
    // Another alignment takes another variant.
    ok(launch(rig, 33, &error), &error);
    expect_product(rig, 33);
    assert_int_equal(rig->host.compiled, before + 1);
    assert_non_null(strstr(rig->host.last, "__any"));
}

// All variants ahead, side by side; then nothing is left for the launches.
static void test_prepare(void **state)
{
    struct opened *rig = *state;
    tir_error error;
    ok(tir_rt_module_prepare(rig->on.module, NULL, 0, 3, &error), &error);
    const int all = rig->host.compiled;
    assert_int_equal(all, (int)tir_rt_kernel_describe(rig->on.kernel)->variant_count);
    ok(launch(rig, 64, &error), &error);
    expect_product(rig, 64);
    ok(launch(rig, 33, &error), &error);
    expect_product(rig, 33);
    assert_int_equal(rig->host.compiled, all);
}

// What fails once is asked for again.
static void test_failure(void **state)
{
    struct opened *rig = *state;
    tir_error error;
    rig->host.fails = 1;
    assert_int_equal(launch(rig, 64, &error), TIR_ERR_UNSUPPORTED);
    assert_string_equal(error.message, "not now");
    ok(launch(rig, 64, &error), &error);
    expect_product(rig, 64);
    assert_int_equal(rig->host.compiled, 1);
}

// A failure that the program does not explain has a message, and a fault of another device is none
// of this one.
static void test_unexplained_failure(void **state)
{
    struct opened *rig = *state;
    static const struct {
        tir_status says, is;
        const char *message;
    } cases[] = {
        {TIR_ERR_STOPPED, TIR_ERR_STOPPED, "the program could not make its code (TIR_ERR_STOPPED)"},
        {TIR_ERR_DEVICE, TIR_ERR_INVALID, "the program could not make its code (TIR_ERR_DEVICE)"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        tir_error error = {0};
        rig->host.fails = 1;
        rig->host.says = cases[i].says;
        assert_int_equal(launch(rig, 64, &error), cases[i].is);
        assert_int_equal(error.status, cases[i].is);
        assert_non_null(strstr(error.message, cases[i].message));
    }
    tir_error error;
    ok(launch(rig, 64, &error), &error);
    expect_product(rig, 64);
}

static tir_status make_another(void *user, tir_str entry, tir_rt_code *code, tir_error *error)
{
    struct host *host = user;
    (void)entry;
    return host->fails ? TIR_OK : make(user, STR("f__any"), code, error);
}

static void test_wrong_code(void **state)
{
    struct opened *rig = *state;
    tir_error error;
    const tir_str bytes = tir_compilation_output(rig->host.outline, TIR_OUTPUT_OUTLINE);
    tir_rt_module_destroy(rig->on.module);
    ok(tir_rt_module_open(rig->on.device, bytes.ptr, bytes.len, make_another, &rig->host,
                          &rig->on.module, &error),
       &error);
    ok(tir_rt_module_kernel(rig->on.module, STR("f"), &rig->on.kernel, &error), &error);
    for (rig->host.fails = 0; rig->host.fails < 2; rig->host.fails++) {
        assert_int_equal(launch(rig, 64, &error), TIR_ERR_INVALID);
        assert_non_null(strstr(error.message, "what was compiled is not this variant"));
    }
    rig->host.fails = 0;
    ok(launch(rig, 33, &error), &error);
    expect_product(rig, 33);
}

// ---- threads

static void *compile_all(void *user)
{
    tir_compilation *outline = user;
    const tir_artifact_desc *desc = decode(tir_compilation_output(outline, TIR_OUTPUT_OUTLINE));
    for (uint32_t v = 0; v < desc->kernels[0].variant_count; v++) {
        tir_compilation *c;
        if (tir_compile_variant(outline, desc->kernels[0].variants[v].entry, &c, NULL))
            return user;
        tir_compilation_destroy(c);
    }
    tir_artifact_free(desc, NULL);
    return NULL;
}

static void test_threads(void **state)
{
    struct opened *rig = *state;
    pthread_t threads[3];
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, compile_all, rig->host.outline), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_known_sizes),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_late_error),
        cmocka_unit_test(test_no_memory),
        TEST(test_launches),
        TEST(test_prepare),
        TEST(test_failure),
        TEST(test_unexplained_failure),
        TEST(test_wrong_code),
        TEST(test_threads),
    };
    files = argv + 1;
    file_count = argc - 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
