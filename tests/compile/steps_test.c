// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The model of time, held against what was measured and against itself; and kernels of several
// launches: that they compute the same whatever sizes are known when they are compiled.
// Usage: steps_test MATMUL.tir DEQUANTIZED.tir WEIGHTS4.txt WEIGHTS8.txt PRODUCTS.txt...

#include <math.h>
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
#include "tir/runtime.h"

#define STR(text)   ((tir_str){text, sizeof(text) - 1})
#define COUNT(list) (sizeof(list) / sizeof *(list))

static const char *matmul_path, *dequantized_path, *weights_of_4, *weights_of_8;
static char **products; // paths, and NULL

enum { MOST_TEXT = 1 << 16 };

static tir_str read_into(char *text, const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(text, 1, MOST_TEXT, file);
    fclose(file);
    return (tir_str){text, size};
}

static tir_str read_file(const char *path)
{
    static char text[MOST_TEXT];
    return read_into(text, path);
}

// The one file that a kernel here imports, from beside it.
static int import(void *user, tir_str from, tir_str path, tir_str *name, tir_str *text)
{
    static char found[4096], bytes[MOST_TEXT];
    (void)user;
    while (from.len && from.ptr[from.len - 1] != '/')
        from.len--;
    snprintf(found, sizeof found, "%.*s%.*s", (int)from.len, from.ptr, (int)path.len, path.ptr);
    *name = (tir_str){found, strlen(found)};
    *text = read_into(bytes, found);
    return 1;
}

static tir_compilation *compile_as(tir_str name, tir_str source, const char *arch,
                                   const tir_setting *dims, size_t count)
{
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    tir_compilation *c = NULL;
    tir_error error;
    options.arch = (tir_str){arch, strlen(arch)};
    options.dims = dims;
    options.dim_count = count;
    options.import = import;
    if (tir_compile(name, source, &options, &c, &error))
        fail_msg("%s", c ? tir_compilation_diagnostics(c).ptr : error.message);
    return c;
}

static tir_compilation *compile(tir_str source, const char *arch, const tir_setting *dims,
                                size_t count)
{
    return compile_as(STR("test.tir"), source, arch, dims, count);
}

// ---- the model of time

static int64_t cost_of(const tir_formula *cost, const int64_t *dims)
{
    int64_t value;
    tir_error error;
    assert_true(cost->count > 0);
    assert_int_equal(tir_formula_eval(cost, dims, NULL, &value, &error), TIR_OK);
    return value;
}

// The configuration of the cheapest variant or sequence of those that `are_measured`, or of all.
static uint32_t cheapest(const tir_artifact_kernel *kernel, const int64_t *dims,
                         const bool *are_measured)
{
    int64_t best = INT64_MAX;
    uint32_t config = kernel->config_count;
    for (uint32_t i = 0; i < kernel->variant_count + kernel->sequence_count; i++) {
        bool is_variant = i < kernel->variant_count;
        const tir_artifact_sequence *sequence =
            is_variant ? NULL : &kernel->sequences[i - kernel->variant_count];
        int64_t cost = cost_of(is_variant ? &kernel->variants[i].cost : &sequence->cost, dims);
        const uint32_t its = is_variant ? kernel->variants[i].config : sequence->config;
        if (cost < best && (!are_measured || are_measured[its])) {
            best = cost;
            config = its;
        }
    }
    return config;
}

// To be freed.
static const tir_artifact_desc *artifact_of(tir_compilation *c)
{
    tir_str bytes = tir_compilation_output(c, TIR_OUTPUT_ARTIFACT);
    const tir_artifact_desc *desc;
    tir_error error;
    assert_int_equal(tir_artifact_decode(bytes.ptr, bytes.len, NULL, &desc, &error), TIR_OK);
    tir_compilation_destroy(c);
    return desc;
}

// The artifact of a file; to be freed.
static const tir_artifact_desc *describe_for(tir_str source, const char *arch)
{
    return artifact_of(compile(source, arch, NULL, 0));
}

static const tir_artifact_desc *describe(tir_str source)
{
    return describe_for(source, "sm_90a");
}

// The sizes of a kernel of products, with weights of few bits in groups or without, by name.
static void put_sizes(const tir_artifact_kernel *kernel, const int64_t *mnk, int64_t *dims)
{
    enum { GROUP = 128 };
    for (uint32_t i = 0; i < kernel->dim_count; i++) {
        assert_int_equal(kernel->dims[i].len, 1);
        switch (kernel->dims[i].ptr[0]) {
        case 'M':
            dims[i] = mnk[0];
            break;
        case 'N':
            dims[i] = mnk[1];
            break;
        case 'K':
            dims[i] = mnk[2];
            break;
        case 'J':
            dims[i] = mnk[2] / GROUP;
            break;
        default:
            assert_int_equal(kernel->dims[i].ptr[0], 'H');
            dims[i] = mnk[2] / 2;
        }
    }
}

// How many times as long the choice takes as the best configuration. A line of measurements has the
// sizes M, N and K and the time of each configuration, - where it does not fit or was not measured.
static double regret(const tir_artifact_kernel *kernel, char *line)
{
    enum { MOST_CONFIGS = 64 };
    int64_t mnk[3];
    double times[MOST_CONFIGS], best = INFINITY;
    bool are_measured[MOST_CONFIGS];
    char *at = line, *rest;
    for (int i = 0; i < 3; i++)
        mnk[i] = strtoll(at, &at, 10);
    assert_true(kernel->config_count <= MOST_CONFIGS);
    for (uint32_t i = 0; i < kernel->config_count; i++) {
        times[i] = strtod(at, &rest);
        are_measured[i] = rest != at;
        if (!are_measured[i]) { // a blank and -
            assert_int_equal(at[1], '-');
            rest = at + 2;
        } else if (times[i] < best) {
            best = times[i];
        }
        at = rest;
    }
    int64_t dims[TIR_MAX_DIMS];
    put_sizes(kernel, mnk, dims);
    const uint32_t choice = cheapest(kernel, dims, are_measured);
    assert_true(choice < kernel->config_count);
    return times[choice] / best;
}

static void judge(const tir_artifact_kernel *kernel, const char *path, double most)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[512];
    double sum = 0;
    int count = 0, poor = 0;
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        const double times = regret(kernel, line);
        sum += log(times);
        poor += times > 1.25;
        count++;
    }
    fclose(file);
    print_message("%d sizes: %.3f times as long as the best, %d above 1.25\n", count,
                  exp(sum / count), poor);
    assert_true(count >= 60);
    assert_true(exp(sum / count) < most);
    assert_true(poor * 50 < count);
}

// The model's choices, held against what was measured on its card, and on others of the target.
static void test_choices(void **state)
{
    (void)state;
    const tir_artifact_desc *desc = describe(read_file(matmul_path));
    for (char **path = products; *path; path++)
        judge(&desc->kernels[0], *path, path == products ? 1.02 : 1.03);
    tir_artifact_free(desc, NULL);
}

static const tir_artifact_kernel *kernel_named(const tir_artifact_desc *desc, tir_str name)
{
    for (uint32_t i = 0; i < desc->kernel_count; i++) {
        const tir_str its = desc->kernels[i].name;
        if (its.len == name.len && !memcmp(its.ptr, name.ptr, name.len))
            return &desc->kernels[i];
    }
    fail_msg("no kernel %s", name.ptr);
    return NULL;
}

// The same for weights that are converted beside the products.
static void test_weights(void **state)
{
    (void)state;
    const tir_str name = {dequantized_path, strlen(dequantized_path)};
    const tir_artifact_desc *desc =
        artifact_of(compile_as(name, read_file(dequantized_path), "sm_90a", NULL, 0));
    judge(kernel_named(desc, STR("int4_weights")), weights_of_4, 1.02);
    judge(kernel_named(desc, STR("int8_weights")), weights_of_8, 1.02);
    tir_artifact_free(desc, NULL);
}

// Of the sequences whose configuration says so, the cost of the cheapest.
static int64_t cost_of_those(const tir_artifact_kernel *kernel, const char *binding,
                             const int64_t *dims)
{
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < kernel->sequence_count; i++) {
        const tir_artifact_sequence *s = &kernel->sequences[i];
        const int64_t cost = cost_of(&s->cost, dims);
        if (strstr(kernel->configs[s->config].ptr, binding) && cost < least)
            least = cost;
    }
    assert_true(least < INT64_MAX);
    return least;
}

// That of those that copy rows to aligned ones first.
static int64_t cost_of_copied(const tir_artifact_kernel *kernel, const int64_t *dims)
{
    return cost_of_those(kernel, "PAD=true", dims);
}

// A large product is worth a copy of its rows to aligned ones only where they are not aligned:
// operands that are copied by words cost more than that, and by elements most.
static void test_unaligned(void **state)
{
    (void)state;
    const tir_artifact_desc *desc = describe(read_file(matmul_path));
    const tir_artifact_kernel *kernel = &desc->kernels[0];
    const int64_t dims[] = {4097, 4099, 4097}, whole[] = {4097, 4096, 4097}; // M, K, N
    int64_t aligned = 0, words = 0, elements = 0;
    for (uint32_t i = 0; i < kernel->variant_count; i++) {
        const tir_artifact_variant *v = &kernel->variants[i];
        if (v->config != 0) // it takes what no other does
            continue;
        int64_t *cost = strstr(v->entry.ptr, "__words") ? &words
                        : strstr(v->entry.ptr, "__any") ? &elements
                                                        : &aligned;
        *cost = cost_of(&v->cost, cost == &aligned ? whole : dims);
    }
    const int64_t copied = cost_of_copied(kernel, dims);
    assert_true(0 < aligned && aligned < cost_of_copied(kernel, whole));
    assert_true(copied < words && words < elements);
    tir_artifact_free(desc, NULL);
}

// Rows of whole words are copied by threads where no element is copied often, and else to aligned
// rows first; rows of odd length always, since threads copy single elements of those.
static void test_words(void **state)
{
    (void)state;
    static const struct {
        int64_t dims[3]; // M, K, N
        bool are_words;
    } cases[] = {
        {{4000, 8002, 8}, true},     {{10, 6420, 5969}, true},    {{690, 3330, 16}, true},
        {{4000, 8003, 8}, false},    {{3000, 5001, 64}, false},   {{700, 4002, 700}, false},
        {{4100, 4100, 4100}, false}, {{2050, 2052, 2050}, false}, {{500, 502, 500}, false}};
    const tir_artifact_desc *desc = describe(read_file(matmul_path));
    const tir_artifact_kernel *kernel = &desc->kernels[0];
    for (size_t i = 0; i < COUNT(cases); i++) {
        const int64_t words = cost_of_those(kernel, "WORDS=true", cases[i].dims);
        assert_true((words < cost_of_copied(kernel, cases[i].dims)) == cases[i].are_words);
    }
    tir_artifact_free(desc, NULL);
}

// A product by 64 x 64: CTAs that leave or stay, with few stages or all that fit, and in clusters.
static const char waves[] =
    "kernel waves<STAY = false, STAGES = 2, CM = 1, CN = 1>(\n"
    "    A: bf16[M, K], B: bf16[N, K], D: out f32[M, N])\n"
    "    config(STAY = false) config(STAY = true) config(STAGES = 12)\n"
    "    config(STAY = true, CM = 2) config(STAY = true, CM = 2, CN = 2)\n"
    "{\n"
    "    for (m, n) in tiles(M by 64, N by 64, persistent = STAY, cluster = (CM, CN)) {\n"
    "        var acc: f32[64, 64] = 0;\n"
    "        for k in range(0, K, 64, stages = STAGES) {\n"
    "            acc += dot(A[m:+64, k:+64], B[n:+64, k:+64].T);\n"
    "        }\n"
    "        D[m:+64, n:+64] = acc;\n"
    "    }\n"
    "}\n";

enum { LEAVES, STAYS, IS_DEEP, IN_TWOS, IN_FOURS, WAVES };

// The cycles of each configuration, by its first variant.
static void find_costs(const tir_artifact_kernel *kernel, const int64_t *dims, int64_t *costs)
{
    for (uint32_t i = kernel->variant_count; i-- > 0;)
        costs[kernel->variants[i].config] = cost_of(&kernel->variants[i].cost, dims);
}

// The cycles of each configuration for this many tiles, a multiple of twelve.
static void cost_of_waves(const char *arch, int64_t tiles, int64_t costs[WAVES])
{
    const tir_artifact_desc *desc = describe_for(STR(waves), arch);
    const tir_artifact_kernel *kernel = &desc->kernels[0];
    const int64_t dims[] = {tiles / 6 * 64, 4096, (int64_t)6 * 64}; // M, K, N
    find_costs(kernel, dims, costs);
    tir_artifact_free(desc, NULL);
}

static void test_waves(void **state)
{
    (void)state;
    enum { CTAS = 132, IN_GPCS = 120 };
    int64_t half[WAVES], one[WAVES], two[WAVES], three[WAVES], four[WAVES], fits[WAVES],
        more[WAVES];
    cost_of_waves("sm_90a", CTAS, one);
    cost_of_waves("sm_90a", 2 * (int64_t)CTAS, two);
    // CTAs that stay fill their pipelines once.
    assert_int_equal(one[STAYS], one[IS_DEEP]);
    assert_true(two[STAYS] < two[IS_DEEP]);
    // With few stages two CTAs share a multiprocessor, if there are two.
    assert_int_equal(one[LEAVES], one[IS_DEEP]);
    assert_true(two[LEAVES] < two[IS_DEEP] && two[LEAVES] > one[LEAVES]);
    // Three tiles for each multiprocessor are no four.
    cost_of_waves("sm_90a", 3 * (int64_t)CTAS, three);
    cost_of_waves("sm_90a", 4 * (int64_t)CTAS, four);
    assert_true(2 * (four[LEAVES] - three[LEAVES]) > three[LEAVES] - two[LEAVES]);
    // A cluster costs something, but asks the L2 cache for less where all multiprocessors do.
    cost_of_waves("sm_90a", IN_GPCS / 2, half);
    assert_true(half[IN_TWOS] > half[STAYS]);
    assert_true(one[IN_TWOS] < one[STAYS]);
    // Those of four leave multiprocessors idle.
    cost_of_waves("sm_90a", IN_GPCS, fits);
    cost_of_waves("sm_90a", IN_GPCS + 12, more);
    assert_true(more[IN_TWOS] < fits[IN_TWOS] * 1.1);
    assert_true(more[IN_FOURS] > fits[IN_FOURS] * 1.5);
    // Other targets have not been measured so.
    cost_of_waves("sm_80", 2 * (int64_t)CTAS, two);
    assert_int_equal(two[LEAVES], two[IS_DEEP]);
}

// Rows of a tile past the end of a tensor take longer than rows that are there: measured, tiles of
// 64 rows take 1.7 times as long for one row as for 64.
static void test_past(void **state)
{
    (void)state;
    const tir_artifact_desc *desc = describe(STR(waves));
    const tir_artifact_kernel *kernel = &desc->kernels[0];
    const int64_t whole[] = {64, 4096, 4096}, one[] = {1, 4096, 4096},
                  none[] = {0, 4096, 0}; // M, K, N
    for (uint32_t i = 0; i < kernel->variant_count; i++) {
        const tir_formula *cost = &kernel->variants[i].cost;
        if (kernel->variants[i].config == STAYS)
            assert_true(cost_of(cost, one) > cost_of(cost, whole) * 1.3);
        assert_true(cost_of(cost, none) >= 0);
    }
    tir_artifact_free(desc, NULL);
}

// A computed operand, whole or put together from two parts.
static const char parts[] =
    "kernel parts<WHOLE = false>(A: i8[M, K], B: bf16[N, K], D: out f32[M, N])\n"
    "    config(WHOLE = false) config(WHOLE = true)\n"
    "{\n"
    "    for (m, n) in tiles(M by 64, N by 64) {\n"
    "        var acc: f32[64, 64] = 0;\n"
    "        for k in range(0, K, 64) {\n"
    "            let b = B[n:+64, k:+64].T;\n"
    "            if WHOLE {\n"
    "                acc += dot(bf16(A[m:+64, k:+64]), b);\n"
    "            } else {\n"
    "                let first = reshape(bf16(A[m:+64, k:+32]), 64, 1, 32);\n"
    "                let second = reshape(bf16(A[m:+64, k + 32 :+ 32]), 64, 1, 32);\n"
    "                acc += dot(reshape(interleave(first, second, axis = 1), 64, 64), b);\n"
    "            }\n"
    "        }\n"
    "        D[m:+64, n:+64] = acc;\n"
    "    }\n"
    "}\n";

// To put parts together by place is no work.
static void test_by_place(void **state)
{
    (void)state;
    const tir_artifact_desc *desc = describe(STR(parts));
    const tir_artifact_kernel *kernel = &desc->kernels[0];
    const int64_t dims[] = {4096, 4096, 4096};
    int64_t costs[2] = {0};
    find_costs(kernel, dims, costs);
    assert_int_equal(costs[0], costs[1]);
    tir_artifact_free(desc, NULL);
}

// Weights of a byte that one product or two a round convert, or that are bf16 already.
static const char converted[] =
    "kernel converted<PARTS = 0>(A: i8[M, K], C: bf16[M, K], B: bf16[N, K], D: out f32[M, N])\n"
    "    config(PARTS = 0) config(PARTS = 1) config(PARTS = 2)\n"
    "{\n"
    "    for (m, n) in tiles(M by 128, N by 128, persistent) {\n"
    "        var acc: f32[128, 128] = 0;\n"
    "        for k in range(0, K, 128) {\n"
    "            if PARTS == 0 {\n"
    "                acc += dot(C[m:+128, k:+128], B[n:+128, k:+128].T);\n"
    "            } else if PARTS == 1 {\n"
    "                acc += dot(bf16(A[m:+128, k:+128]), B[n:+128, k:+128].T);\n"
    "            } else {\n"
    "                let next = k + 64;\n"
    "                let first = bf16(A[m:+128, k:+64]);\n"
    "                let second = bf16(A[m:+128, next:+64]);\n"
    "                acc += dot(first, B[n:+128, k:+64].T);\n"
    "                acc += dot(second, B[n:+128, next:+64].T);\n"
    "            }\n"
    "        }\n"
    "        D[m:+128, n:+128] = acc;\n"
    "    }\n"
    "}\n";

// What the second product of a round converts is hidden behind the first.
static void test_converted(void **state)
{
    (void)state;
    const tir_artifact_desc *desc = describe(STR(converted));
    const tir_artifact_kernel *kernel = &desc->kernels[0];
    const int64_t dims[] = {4096, 4096, 4096};
    int64_t costs[3] = {0};
    find_costs(kernel, dims, costs);
    assert_true(costs[0] < costs[2] && costs[2] < costs[1]);
    tir_artifact_free(desc, NULL);
}

// Small tiles by large ones, in clusters along either; the products are turned. Rows that do not
// begin at whole sectors make it a question of copies.
static const char turned[] =
    "kernel turned<CM = 1, CN = 1>(A: bf16[M, K], B: bf16[N, K], D: out f32[M, N])\n"
    "    config(CM = 2) config(CN = 2)\n"
    "{\n"
    "    for (m, n) in tiles(M by 32, N by 128, persistent, cluster = (CM, CN)) {\n"
    "        var acc: f32[128, 32] = 0;\n"
    "        for k in range(0, K, 64) { acc += dot(B[n:+128, k:+64], A[m:+32, k:+64].T); }\n"
    "        D[m:+32, n:+128] = acc.T;\n"
    "    }\n"
    "}\n";

// CTAs beside each other along M share tiles of B, whichever operand of the product these are.
static void test_shared_copies(void **state)
{
    (void)state;
    const tir_artifact_desc *desc = describe(STR(turned));
    const tir_artifact_kernel *kernel = &desc->kernels[0];
    const int64_t dims[] = {64, 4104, 4096}; // M, K, N
    int64_t costs[2] = {0};
    find_costs(kernel, dims, costs);
    assert_true(costs[0] < costs[1]);
    tir_artifact_free(desc, NULL);
}

// Kernels without a product: the narrowest tile that holds a row, since others move more bytes that
// lie past its end.
static const char narrow_rows[] =
    "kernel rows<R = 1, C = 4096>(X: bf16[M, N], Y: out bf16[M, N]) where N <= C\n"
    "    config(R = 1, C = 16384) config(R = 32, C = 128) config(R = 1, C = 4096)\n"
    "    config(R = 4, C = 1024) config(R = 8, C = 512)\n"
    "{\n"
    "    for m in tiles(M by R) {\n"
    "        let x = f32(X[m:+R, 0:+C]);\n"
    "        Y[m:+R, 0:+C] = bf16(x / rowsum(x));\n"
    "    }\n"
    "}\n";

static void test_rows(void **state)
{
    (void)state;
    static const int64_t columns[] = {16384, 128, 4096, 1024, 512};
    const tir_artifact_desc *desc = describe(STR(narrow_rows));
    const tir_artifact_kernel *kernel = &desc->kernels[0];
    assert_int_equal(kernel->config_count, COUNT(columns));
    for (int64_t n = 1; n <= 16384; n += 1 + n / 7) {
        const int64_t dims[] = {100000, n};
        int64_t best = INT64_MAX, chosen = 0, narrowest = INT64_MAX;
        for (uint32_t i = 0; i < kernel->variant_count; i++) {
            const tir_artifact_variant *variant = &kernel->variants[i];
            const int64_t cost = cost_of(&variant->cost, dims), wide = columns[variant->config];
            if (n > wide)
                continue; // its condition does not hold
            narrowest = wide < narrowest ? wide : narrowest;
            if (cost < best) {
                best = cost;
                chosen = wide;
            }
        }
        assert_int_equal(chosen, narrowest);
    }
    tir_artifact_free(desc, NULL);
}

// ---- what is computed

// Y[i] = the sum of the parts of row i of X, in two ways; the number of parts depends on the sizes.
static const char sums[] =
    "kernel sums<STEPS = 2>(X: f32[M, N], Y: out f32[M], q: i32)\n"
    "    config(STEPS = 1) config(STEPS = 2)\n"
    "{\n"
    "    if STEPS == 1 {\n"
    "        for m in tiles(M by 4) {\n"
    "            var s: f32[4] = 0;\n"
    "            for n in range(0, N, 32) { s += sum(X[m:+4, n:+32], axis = 1)[:, 0]; }\n"
    "            Y[m:+4] = s;\n"
    "        }\n"
    "    } else {\n"
    "        let parts = ceildiv(N, 32) * i64(q);\n"
    "        scratch P: f32[parts, M];\n"
    "        for (z, m) in tiles(parts, M by 4) {\n"
    "            P[z, m:+4] = sum(X[m:+4, z * 32 :+ 32], axis = 1)[:, 0];\n"
    "        }\n"
    "        for m in tiles(M by 4) {\n"
    "            var s: f32[4] = 0;\n"
    "            for z in range(parts) { s += P[z, m:+4]; }\n"
    "            Y[m:+4] = s;\n"
    "        }\n"
    "    }\n"
    "}\n";

enum { ROWS = 37, COLUMNS = 100 };

// Each variant and sequence that fits, and the one that is picked.
static void run_sums(const tir_setting *dims, size_t count)
{
    static float x[ROWS * COLUMNS], y[ROWS];
    static const int64_t shape[] = {ROWS, COLUMNS};
    tir_compilation *c = compile(STR(sums), "sm_80", dims, count);
    tir_str artifact = tir_compilation_output(c, TIR_OUTPUT_ARTIFACT);
    tir_runtime *runtime;
    tir_rt_device *device;
    tir_rt_module *module;
    tir_rt_kernel *kernel;
    tir_rt_buffer *bx, *by;
    tir_error e;
    assert_int_equal(tir_runtime_create(NULL, &runtime, &e), TIR_OK);
    assert_int_equal(tir_rt_device_open(runtime, "emu", &device, &e), TIR_OK);
    assert_int_equal(tir_rt_module_load(device, artifact.ptr, artifact.len, &module, &e), TIR_OK);
    assert_int_equal(tir_rt_module_kernel(module, STR("sums"), &kernel, &e), TIR_OK);
    assert_int_equal(tir_rt_buffer_create(device, sizeof x, &bx, &e), TIR_OK);
    assert_int_equal(tir_rt_buffer_create(device, sizeof y, &by, &e), TIR_OK);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)(i % 17 - 8);
    assert_int_equal(tir_rt_buffer_write(bx, 0, x, sizeof x, NULL, &e), TIR_OK);
    tir_rt_arg args[] = {
        tir_rt_arg_tensor(tir_rt_buffer_address(bx), TIR_ELEMENT_F32, 2, shape, NULL),
        tir_rt_arg_tensor(tir_rt_buffer_address(by), TIR_ELEMENT_F32, 1, shape, NULL),
        tir_rt_arg_int(TIR_ELEMENT_I32, 1)};
    const tir_artifact_kernel *info = tir_rt_kernel_describe(kernel);
    uint32_t launched = 0, steps = 0;
    for (int32_t v = -1; v < (int32_t)(info->variant_count + info->sequence_count); v++) {
        tir_rt_launch_report report;
        tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
        options.variant = v;
        options.report = &report;
        memset(y, 0xff, sizeof y);
        assert_int_equal(tir_rt_buffer_write(by, 0, y, sizeof y, NULL, &e), TIR_OK);
        tir_status status = tir_rt_launch(kernel, NULL, args, COUNT(args), &options, &e);
        if (status == TIR_ERR_INVALID && v >= 0)
            continue; // a variant for other alignments
        if (status)
            fail_msg("variant %d: %s", v, e.message);
        launched++;
        steps += report.variant >= info->variant_count;
        assert_int_equal(tir_rt_buffer_read(by, 0, y, sizeof y, NULL, &e), TIR_OK);
        for (int r = 0; r < ROWS; r++) {
            float sum = 0;
            for (int k = 0; k < COLUMNS; k++)
                sum += x[r * COLUMNS + k];
            assert_true(y[r] == sum);
        }
    }
    assert_true(launched > 1);
    assert_true(count == 2 || steps > 0);
    tir_rt_buffer_destroy(bx);
    tir_rt_buffer_destroy(by);
    tir_rt_module_destroy(module);
    tir_rt_device_destroy(device);
    tir_runtime_destroy(runtime);
    tir_compilation_destroy(c);
}

static void test_sizes(void **state)
{
    (void)state;
    const tir_setting rows = {STR("M"), STR("37")}, columns = {STR("N"), STR("100")};
    const tir_setting both[] = {rows, columns};
    run_sums(NULL, 0);
    run_sums(&rows, 1);
    run_sums(&columns, 1);
    run_sums(both, 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices),       cmocka_unit_test(test_weights),
        cmocka_unit_test(test_unaligned),     cmocka_unit_test(test_waves),
        cmocka_unit_test(test_past),          cmocka_unit_test(test_by_place),
        cmocka_unit_test(test_shared_copies), cmocka_unit_test(test_converted),
        cmocka_unit_test(test_rows),          cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_words),
    };
    if (argc < 6) {
        fprintf(stderr, "steps_test: five files are needed\n");
        return 2;
    }
    matmul_path = argv[1];
    dequantized_path = argv[2];
    weights_of_4 = argv[3];
    weights_of_8 = argv[4];
    products = argv + 5;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
