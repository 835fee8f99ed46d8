// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks beside code generation: whatever the number of processors, a compilation says and gives
// the same, also where a check refuses what has code, where code generation fails, where both do,
// and where the steps end.
// Usage: beside_test FILE...

#define _GNU_SOURCE // sched_setaffinity

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"
#include "tir/artifact.h"
#include "tir/compiler.h"

#define STR(s)   ((tir_str){s, sizeof(s) - 1})
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static char **files;
static int file_count;
static cpu_set_t all; // processors of this process

static void use_processors(int count)
{
    cpu_set_t some;
    CPU_ZERO(&some);
    for (int i = 0, taken = 0; i < CPU_SETSIZE && taken < count; i++)
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &some);
            taken++;
        }
    assert_int_equal(sched_setaffinity(0, sizeof some, &some), 0);
}

static int find_processors(void **state)
{
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    return 0;
}

static int use_all(void **state)
{
    (void)state;
    return sched_setaffinity(0, sizeof all, &all);
}

// What a compilation says and gives, all in one text.
struct outcome {
    tir_status status;
    char message[512];
    uint64_t steps;
    uint32_t errors, warnings;
    char *text;
    size_t len;
};

static void add(struct outcome *out, tir_str s)
{
    out->text = realloc(out->text, out->len + s.len + 2);
    assert_non_null(out->text);
    if (s.len)
        memcpy(out->text + out->len, s.ptr, s.len);
    out->len += s.len;
    out->text[out->len++] = '\f';
    out->text[out->len] = 0;
}

// reports: those outputs alone.
static void read_outcome(struct outcome *out, const tir_compilation *c, int reports)
{
    static const tir_output outputs[] = {TIR_OUTPUT_IR, TIR_OUTPUT_RECEIPT, TIR_OUTPUT_RECEIPT_JSON,
                                         TIR_OUTPUT_PTX, TIR_OUTPUT_ARTIFACT};
    out->steps = tir_compilation_steps(c);
    out->errors = tir_compilation_error_count(c);
    out->warnings = tir_compilation_warning_count(c);
    add(out, tir_compilation_diagnostics(c));
    for (size_t i = 0; i < (reports ? 3 : COUNT(outputs)); i++)
        add(out, tir_compilation_output(c, outputs[i]));
}

static const char *compiled_file; // NULL: a program without imports

static tir_compile_options every_output(const char *arch)
{
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.import = import_beside;
    options.import_user = (void *)(uintptr_t)compiled_file;
    options.arch = (tir_str){arch, strlen(arch)};
    options.outputs = 1u << TIR_OUTPUT_IR | 1u << TIR_OUTPUT_PTX | 1u << TIR_OUTPUT_ARTIFACT |
                      1u << TIR_OUTPUT_RECEIPT | 1u << TIR_OUTPUT_RECEIPT_JSON;
    return options;
}

// entry empty: of the whole file; else of that variant of an outline. In how many modules the
// kernels of a file are compiled, and so the order of their PTX, follows from the processors,
// except with line information.
static struct outcome compile(tir_str source, tir_compile_options options, tir_str entry)
{
    struct outcome out = {0};
    tir_compilation *outline = NULL, *c = NULL;
    tir_error error = {0};
    if (entry.len) {
        options.outputs |= 1u << TIR_OUTPUT_OUTLINE;
        out.status = tir_compile(STR("f.tir"), source, &options, &outline, &error);
        if (!out.status) // it has steps too
            out.status = tir_compile_variant(outline, entry, &c, &error);
    } else {
        out.status = tir_compile(STR("f.tir"), source, &options, &c, &error);
    }
    snprintf(out.message, sizeof out.message, "%s", error.message);
    if (c)
        read_outcome(&out, c, !entry.len && !options.line_info);
    if (c)
        tir_compilation_destroy(c);
    if (outline)
        tir_compilation_destroy(outline);
    return out;
}

static void same(const struct outcome *a, const struct outcome *b)
{
    assert_int_equal(a->status, b->status);
    assert_string_equal(a->message, b->message);
    assert_int_equal(a->errors, b->errors);
    assert_int_equal(a->warnings, b->warnings);
    assert_int_equal(a->steps, b->steps);
    assert_int_equal(a->len, b->len);
    if (a->len)
        assert_memory_equal(a->text, b->text, a->len);
}

// Compiles on one processor and on all. Returns what is the same.
static struct outcome both(tir_str source, tir_compile_options options, tir_str entry)
{
    use_processors(1);
    struct outcome one = compile(source, options, entry);
    use_all(NULL);
    struct outcome many = compile(source, options, entry);
    same(&one, &many);
    free(many.text);
    return one;
}

static tir_status agree(tir_str source, const char *arch, int line_info, tir_str entry)
{
    tir_compile_options options = every_output(arch);
    options.line_info = line_info;
    struct outcome out = both(source, options, entry);
    free(out.text);
    return out.status;
}

static tir_compilation *outline_of(tir_str source, const char *arch, const tir_artifact_desc **desc)
{
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.arch = (tir_str){arch, strlen(arch)};
    options.import = import_beside;
    options.import_user = (void *)(uintptr_t)compiled_file;
    options.outputs = 1u << TIR_OUTPUT_OUTLINE;
    tir_compilation *outline;
    tir_error error;
    assert_int_equal(tir_compile(STR("f.tir"), source, &options, &outline, &error), TIR_OK);
    const tir_str bytes = tir_compilation_output(outline, TIR_OUTPUT_OUTLINE);
    assert_int_equal(tir_artifact_decode(bytes.ptr, bytes.len, NULL, desc, &error), TIR_OK);
    return outline;
}

// Of each kernel the best variant and the last one.
static void variants_agree(tir_str source, const char *arch)
{
    const tir_artifact_desc *desc;
    tir_compilation *outline = outline_of(source, arch, &desc);
    for (uint32_t k = 0; k < desc->kernel_count; k++) {
        const tir_artifact_kernel *kernel = &desc->kernels[k];
        if (!kernel->variant_count)
            continue;
        const uint32_t last = kernel->variant_count - 1;
        assert_int_equal(agree(source, arch, 0, kernel->variants[0].entry), TIR_OK);
        if (last)
            assert_int_equal(agree(source, arch, 0, kernel->variants[last].entry), TIR_OK);
    }
    tir_artifact_free(desc, NULL);
    tir_compilation_destroy(outline);
}

static void files_are_the_same_on_any_number_of_processors(void **state)
{
    (void)state;
    static const char *const archs[] = {"sm_80", "sm_90a", "sm_100a"};
    for (int i = 0; i < file_count; i++) {
        const tir_str source = read_file(files[i]);
        compiled_file = files[i];
        int compiled = 0;
        for (size_t a = 0; a < COUNT(archs); a++) {
            const tir_status status = agree(source, archs[a], 0, (tir_str){NULL, 0});
            assert_int_equal(agree(source, archs[a], 1, (tir_str){NULL, 0}), status);
            compiled += status == TIR_OK; // some are for one target
            if (status == TIR_OK)
                variants_agree(source, archs[a]);
        }
        assert_true(compiled > 0);
    }
    compiled_file = NULL;
}

// ---- what is refused

#define RACE                                                                      \
    "kernel race(X: f32[N], Y: out f32[N]) grid(1) threads(128) where N >= 128\n" \
    "{ shared s: f32[128]; s[tid()] = X[tid()]; Y[tid()] = s[127 - tid()]; }\n"
#define SOUND                                                                      \
    "kernel sound(X: f32[N], Y: out f32[N]) grid(1) threads(128) where N >= 128\n" \
    "{ shared s: f32[128]; s[tid()] = X[tid()]; bar_sync(); Y[tid()] = s[127 - tid()]; }\n"
#define NO_CODE                                                         \
    "kernel no_code(Y: out i32[N]) grid(1) threads(32) where N >= 32\n" \
    "{ Y[tid()] = ptx(\"mov.u32 $0, $7;\", out = i32); }\n"
#define RACE_WITHOUT_CODE                                                         \
    "kernel both(X: f32[N], Y: out f32[N]) grid(1) threads(128) where N >= 128\n" \
    "{ shared s: f32[128]; s[tid()] = X[tid()]; Y[tid()] = s[127 - tid()];\n"     \
    "  Y[tid()] = ptx(\"mov.f32 $0, $7;\", out = f32); }\n"
#define TILES                                   \
    "kernel tiles_(X: f32[N], Y: out f32[N])\n" \
    "{ for i in tiles(N by 256) { Y[i:+256] = X[i:+256] + 1; } }\n"

// entry: of one variant, whose check is beside code generation where there are two processors; of
// all of a file where there are more.
static void refused(tir_str source, tir_str entry, const char *has, const char *has_not)
{
    struct outcome out = both(source, every_output("sm_90a"), entry);
    assert_int_equal(out.status, TIR_ERR_DIAGNOSED);
    if (!strstr(out.text, has))
        fail_msg("no %s in %s", has, out.text);
    if (has_not && strstr(out.text, has_not))
        fail_msg("%s in %s", has_not, out.text);
    free(out.text);
}

#define WHOLE ((tir_str){NULL, 0})

static void a_check_refuses_what_has_code(void **state)
{
    (void)state;
    refused(STR(RACE), STR("race"), "E0411", NULL);
    refused(STR(RACE), STR("race__any"), "E0411", NULL);
    refused(STR(RACE), WHOLE, "E0411", NULL);
    refused(STR(SOUND RACE TILES), WHOLE, "E0411", NULL);
    refused(STR(RACE TILES SOUND), WHOLE, "E0411", NULL);
}

static void code_generation_fails_beside_a_check(void **state)
{
    (void)state;
    refused(STR(NO_CODE), STR("no_code"), "ptx needs text", NULL);
    refused(STR(SOUND NO_CODE TILES), WHOLE, "ptx needs text", NULL);
}

// The check comes first, and nothing is said of code.
static void both_fail(void **state)
{
    (void)state;
    refused(STR(RACE_WITHOUT_CODE), STR("both"), "E0411", "ptx needs text");
    refused(STR(NO_CODE RACE), WHOLE, "E0411", "ptx needs text");
    refused(STR(SOUND RACE_WITHOUT_CODE TILES), WHOLE, "E0411", "ptx needs text");
}

// ---- steps

static void stops_alike(tir_str source, tir_str entry)
{
    tir_compile_options options = every_output("sm_90a");
    struct outcome whole = both(source, options, entry);
    const uint64_t steps = whole.steps;
    free(whole.text);
    unsigned stopped = 0;
    for (uint64_t part = 1; part <= 24; part++) {
        options.step_limit = part == 24 ? steps - 1 : 1 + steps * part / 24;
        struct outcome out = both(source, options, entry);
        stopped += out.status == TIR_ERR_STOPPED;
        free(out.text);
    }
    assert_true(stopped > 0);
    options.step_limit = steps;
    struct outcome out = both(source, options, entry);
    assert_int_equal(out.status, whole.status);
    free(out.text);
}

static void a_limit_of_steps_says_the_same(void **state)
{
    (void)state;
    stops_alike(STR(SOUND), STR("sound"));
    stops_alike(STR(TILES), STR("tiles_"));
    stops_alike(STR(RACE), STR("race"));
    stops_alike(STR(NO_CODE), STR("no_code"));
    stops_alike(STR(SOUND RACE TILES), WHOLE);
}

#define TEST(name) cmocka_unit_test_teardown(name, use_all)

int main(int argc, char **argv)
{
    files = argv + 1;
    file_count = argc - 1;
    const struct CMUnitTest tests[] = {
        TEST(files_are_the_same_on_any_number_of_processors),
        TEST(a_check_refuses_what_has_code),
        TEST(code_generation_fails_beside_a_check),
        TEST(both_fail),
        TEST(a_limit_of_steps_says_the_same),
    };
    return cmocka_run_group_tests(tests, find_processors, NULL);
}
