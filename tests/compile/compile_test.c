// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The public compiler API: options, outputs, diagnostics, running out of memory, and artifacts that
// compute the right thing on the emulator in every variant.

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "product.h"
#include "tir/compiler.h"
#include "tir/runtime.h"

#define STR(text) ((tir_str){text, sizeof(text) - 1})

// Y = a X + Y in tiles, with an edge, a condition and a meta parameter.
static const char axpy[] =
    "kernel axpy<B = 256>(X: f32[N], Y: inout f32[N], a: f32) where N % 2 == 0\n"
    "{\n"
    "    for i in tiles(N by B) {\n"
    "        Y[i:+B] = a * X[i:+B] + Y[i:+B];\n"
    "    }\n"
    "}\n";

static tir_compilation *compile(const char *source, const tir_compile_options *options,
                                tir_status expected)
{
    tir_compilation *c;
    tir_error error;
    tir_status status =
        tir_compile(STR("axpy.tir"), (tir_str){source, strlen(source)}, options, &c, &error);
    if (status != expected)
        fail_msg("%s: %s", tir_status_name(status),
                 c && status == TIR_ERR_DIAGNOSED ? tir_compilation_diagnostics(c).ptr
                                                  : error.message);
    return c;
}

static bool contains(tir_str text, const char *part)
{
    size_t len = strlen(part);
    for (size_t i = 0; i + len <= text.len; i++)
        if (!memcmp(text.ptr + i, part, len))
            return true;
    return false;
}

static void every_output_can_be_had(void **state)
{
    (void)state;
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.arch = STR("sm_90a");
    options.verify = 1;
    options.outputs = 1u << TIR_OUTPUT_ARTIFACT | 1u << TIR_OUTPUT_PTX | 1u << TIR_OUTPUT_LLVM |
                      1u << TIR_OUTPUT_IR | 1u << TIR_OUTPUT_HEADER;
    tir_compilation *c = compile(axpy, &options, TIR_OK);
    tir_str ptx = tir_compilation_output(c, TIR_OUTPUT_PTX);
    assert_true(contains(ptx, ".visible .entry axpy("));
    assert_true(contains(ptx, ".visible .entry axpy__edges("));
    assert_true(contains(ptx, ".visible .entry axpy__narrow("));
    assert_true(contains(ptx, ".visible .entry axpy__wide("));
    assert_true(contains(ptx, ".visible .entry axpy__any("));
    assert_true(
        contains(tir_compilation_output(c, TIR_OUTPUT_LLVM), "define ptx_kernel void @axpy"));
    assert_true(contains(tir_compilation_output(c, TIR_OUTPUT_IR), "form(lowered)"));
    tir_str header = tir_compilation_output(c, TIR_OUTPUT_HEADER);
    assert_true(contains(header, "static const unsigned char axpy_image[] = {"));
    assert_true(contains(header,
                         "tir_status axpy_launch(tir_rt_module *module, tir_rt_stream *stream,"
                         " uint64_t arg_X, uint64_t arg_Y, float arg_a, int64_t arg_N,"
                         " tir_error *error)"));
    assert_true(tir_compilation_output(c, TIR_OUTPUT_RECEIPT).len > 0);
    assert_int_equal(tir_compilation_output(c, TIR_OUTPUT_CUBIN).len, 0);
    assert_int_equal(tir_compilation_error_count(c), 0);
    size_t count;
    const tir_stage *stages = tir_compilation_stages(c, &count);
    assert_true(count >= 5);
    assert_string_equal(stages[0].name, "front");
    tir_compilation_destroy(c);
    tir_compilation_destroy(NULL);
}

static void equal_input_gives_equal_bytes(void **state)
{
    (void)state;
    tir_compilation *a = compile(axpy, NULL, TIR_OK), *b = compile(axpy, NULL, TIR_OK);
    tir_str x = tir_compilation_output(a, TIR_OUTPUT_ARTIFACT);
    tir_str y = tir_compilation_output(b, TIR_OUTPUT_ARTIFACT);
    assert_int_equal(x.len, y.len);
    assert_memory_equal(x.ptr, y.ptr, x.len);
    tir_compilation_destroy(a);
    tir_compilation_destroy(b);
}

static void wrong_source_is_diagnosed(void **state)
{
    (void)state;
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    tir_compilation *c =
        compile("kernel k(X: out f32[N]) { X[0] = y; }", &options, TIR_ERR_DIAGNOSED);
    assert_int_equal(tir_compilation_error_count(c), 1);
    assert_true(contains(tir_compilation_diagnostics(c), "E0101"));
    assert_int_equal(tir_compilation_output(c, TIR_OUTPUT_ARTIFACT).len, 0);
    tir_compilation_destroy(c);
    options.diagnostics = TIR_DIAGNOSTICS_JSON;
    c = compile("kernel k(X: out f32[N]) { X[0] = y; }", &options, TIR_ERR_DIAGNOSED);
    assert_true(contains(tir_compilation_diagnostics(c), "{\""));
    tir_compilation_destroy(c);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.arch = STR("sm_70");
    assert_null(compile(axpy, &options, TIR_ERR_INVALID));
    options.arch = STR("");
    options.stop_after = STR("nothing");
    assert_null(compile(axpy, &options, TIR_ERR_INVALID));
    options.stop_after = STR("layout");
    assert_null(compile(axpy, &options, TIR_ERR_INVALID)); // an artifact is asked for
    options.outputs = 1u << TIR_OUTPUT_COUNT;
    assert_null(compile(axpy, &options, TIR_ERR_INVALID));
    options.struct_size = 3;
    assert_null(compile(axpy, &options, TIR_ERR_INVALID));
    options = (tir_compile_options)TIR_COMPILE_OPTIONS_INIT;
    options.bisect = -2;
    assert_null(compile(axpy, &options, TIR_ERR_INVALID));
    options = (tir_compile_options)TIR_COMPILE_OPTIONS_INIT;
    options.diagnostics = (tir_diagnostics_format)(TIR_DIAGNOSTICS_JSON + 1);
    assert_null(compile(axpy, &options, TIR_ERR_INVALID));
    const tir_setting twice[] = {{STR("B"), STR("64")}, {STR("B"), STR("128")}};
    options = (tir_compile_options)TIR_COMPILE_OPTIONS_INIT;
    options.metas = twice;
    options.meta_count = 2;
    assert_null(compile(axpy, &options, TIR_ERR_INVALID));
    options = (tir_compile_options)TIR_COMPILE_OPTIONS_INIT;
    options.dims = twice;
    options.dim_count = 2;
    assert_null(compile(axpy, &options, TIR_ERR_INVALID));
    assert_string_equal(tir_compile_arch(0), "sm_80");
    assert_null(tir_compile_arch(100));
}

// Names in a message may be any bytes. A compilation without errors has no message.
static void an_error_is_one_line(void **state)
{
    (void)state;
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    tir_compilation *c;
    tir_error error = {TIR_ERR_INTERNAL, 7, "as it was"};
    const tir_str source = {axpy, strlen(axpy)};
    assert_int_equal(tir_compile(STR("axpy.tir"), source, &options, &c, &error), TIR_OK);
    tir_compilation_destroy(c);
    assert_int_equal(error.status, TIR_ERR_INTERNAL);
    assert_int_equal(error.native, 7);
    assert_string_equal(error.message, "as it was");
    options.arch = STR("sm\n\x1b");
    assert_int_equal(tir_compile(STR("axpy.tir"), source, &options, &c, &error), TIR_ERR_INVALID);
    assert_true(!strncmp(error.message, "unknown target sm  ;", 20));
}

static void passes_can_be_stopped_and_printed(void **state)
{
    (void)state;
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.outputs = 1u << TIR_OUTPUT_IR;
    options.stop_after = STR("layout");
    tir_compilation *c = compile(axpy, &options, TIR_OK);
    tir_str ir = tir_compilation_output(c, TIR_OUTPUT_IR);
    assert_true(contains(ir, "form(laid_out, after = layout)"));
    // What was printed is a program: it goes on from there.
    char *text = calloc(ir.len + 1, 1);
    assert_non_null(text);
    memcpy(text, ir.ptr, ir.len);
    tir_compilation_destroy(c);
    tir_compile_options rest = TIR_COMPILE_OPTIONS_INIT;
    rest.print_after = STR("lower_tile");
    rest.outputs = 1u << TIR_OUTPUT_PTX;
    c = compile(text, &rest, TIR_OK);
    free(text);
    assert_true(contains(tir_compilation_output(c, TIR_OUTPUT_PRINTED), "form(lowered)"));
    tir_str ptx = tir_compilation_output(c, TIR_OUTPUT_PTX);
    assert_true(contains(ptx, ".visible .entry axpy("));
    assert_false(contains(ptx, "axpy__wide")); // it came with its own facts
    tir_compilation_destroy(c);
}

static void what_is_required_is_an_error(void **state)
{
    (void)state;
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.outputs = 1u << TIR_OUTPUT_PTX | 1u << TIR_OUTPUT_RECEIPT_JSON;
    tir_compilation *c = compile(axpy, &options, TIR_OK);
    assert_true(contains(tir_compilation_output(c, TIR_OUTPUT_RECEIPT), "axpy__any:\n"));
    assert_true(
        contains(tir_compilation_output(c, TIR_OUTPUT_RECEIPT_JSON), "\"entry\":\"axpy__any\""));
    tir_compilation_destroy(c);
    options.outputs = 1u << TIR_OUTPUT_PTX;
    options.require = STR("wgmma,cluster");
    c = compile(axpy, &options, TIR_ERR_DIAGNOSED);
    assert_int_equal(tir_compilation_error_count(c), 2);
    assert_true(contains(tir_compilation_diagnostics(c), "E0307"));
    assert_int_equal(tir_compilation_output(c, TIR_OUTPUT_PTX).len, 0);
    assert_int_equal(tir_compilation_output(c, TIR_OUTPUT_RECEIPT_JSON).len, 0);
    tir_compilation_destroy(c);
    // A caller of an earlier version knows nothing of it.
    options.struct_size = offsetof(tir_compile_options, require);
    tir_compilation_destroy(compile(axpy, &options, TIR_OK));
    options.struct_size = sizeof(options);
    options.require = STR("wgmma cluster");
    assert_null(compile(axpy, &options, TIR_ERR_INVALID));
}

static int import_one(void *user, tir_str from, tir_str path, tir_str *name, tir_str *text)
{
    (void)from;
    if (!contains(path, "lib.tir"))
        return 0;
    ++*(int *)user;
    *name = STR("lib.tir");
    *text = STR("fn twice(x) { return x * 2.0; }\n");
    return 1;
}

static uint32_t count(tir_str text, const char *part)
{
    uint32_t n = 0;
    for (size_t i = 0; i + strlen(part) <= text.len; i++)
        n += !memcmp(text.ptr + i, part, strlen(part));
    return n;
}

// Passes run on many variants at a time; what they say comes in the order of the program, and of a
// kernel up to its first variant with an error.
static void variants_report_in_order(void **state)
{
    (void)state;
    static const char source[] =
        "kernel a(Y: out f32[N]) { for i in tiles(N by 65536) { shared s: f32[65536]; Y[i] = s[0]; } }\n"
        "kernel b(Y: out f32[N]) { for i in tiles(N by 64) { Y[i:+64] = zeros(f32, 64); } }\n"
        "kernel c(Y: out f32[N]) { for i in tiles(N by 65536) { shared s: f32[65537]; Y[i] = s[0]; } }\n";
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.print_after = STR("layout");
    for (int i = 0; i < 20; i++) {
        tir_compilation *c = compile(source, &options, TIR_ERR_DIAGNOSED);
        tir_str said = tir_compilation_diagnostics(c);
        assert_int_equal(tir_compilation_error_count(c), 2);
        assert_int_equal(count(said, "kernel a needs 262144 bytes"), 1);
        assert_int_equal(count(said, "kernel c needs 262148 bytes"), 1);
        assert_true(strstr(said.ptr, "kernel a") < strstr(said.ptr, "kernel c"));
        tir_str receipt = tir_compilation_output(c, TIR_OUTPUT_RECEIPT);
        assert_int_equal(count(receipt, "\nb"), 5);
        assert_int_equal(count(receipt, "\nc: where"), 1);
        assert_false(contains(receipt, "a__"));
        tir_str printed = tir_compilation_output(c, TIR_OUTPUT_PRINTED);
        assert_int_equal(count(printed, "// after layout"), 3);
        tir_compilation_destroy(c);
    }
}

static void imports_and_settings_reach_the_program(void **state)
{
    (void)state;
    static const char source[] =
        "import \"lib.tir\";\n"
        "kernel k<B = 64>(X: f32[N], Y: out f32[N])\n"
        "{ static_assert(B == 512, \"\"); for i in tiles(N by B) { Y[i:+B] = twice(X[i:+B]); } }\n";
    int imports = 0;
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    tir_setting meta = {STR("B"), STR("512")}, dim = {STR("N"), STR("4096")};
    options.outputs = 1u << TIR_OUTPUT_IR;
    options.metas = &meta;
    options.meta_count = 1;
    options.dims = &dim;
    options.dim_count = 1;
    options.import = import_one;
    options.import_user = &imports;
    tir_compilation *c = compile(source, &options, TIR_OK);
    assert_int_equal(imports, 1);
    tir_compilation_destroy(c);
    options.import = NULL;
    tir_compilation_destroy(compile(source, &options, TIR_ERR_DIAGNOSED));
}

// Programs in lowered form that are legal as text but that no machine can run.
static void what_no_machine_can_run_is_diagnosed(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "let a: f32, b: i32 = ld(X, i32(0), width = 8);",
        "let a: f32, b: f32 = ld(X, i32(0), width = 4);",
        "let a: f32 = ld(X, f32(0), width = 4);",
        "let a: f32 = ld(X, i32(0), width = 4, pred = i32(1));",
        "st(Y, i32(0), f32(1), i32(2), width = 8);",
        "st(Y, i32(0), width = 4);",
        "let s: shared f32[4] in row_major = alloc(offset = 1024); st(s, i32(0), f32(1), width = 4);",
        "let s: shared f32[4] in row_major = alloc(offset = -16); st(s, i32(0), f32(1), width = 4);",
        "let s: shared f32[4] in row_major = alloc(); st(s, i32(0), f32(1), width = 4);",
        "let l: local f32[1000000] = alloc(); st(l, i32(0), f32(1), width = 4);",
        "let a: u32 = ldmatrix(X, i32(0));",
        "cp_async(Y, i32(0), X, i32(0), width = 16);",
        "let l: local f32[4] = alloc(); let a: f32 = atom(l, i32(0), f32(1), kind = add);",
        "let a: f32 = atom(Y, i32(0), f32(1), kind = xor);",
        "let a: f64 = mma(f64(1), f64(2), f64(3), kind = f64, cols = 8, depth = 4);",
        "let a: f32 = mma(kind = bf16, cols = 8, depth = 16);",
        "let a: u16 = pack(true, false);",
        "let a: u32 = pack(u8(1), u8(2), u16(3));",
        "let a: e2m1 = cast(f32(tid()));",
        "let l: local f32[4] = alloc(); let a: i64 = stride(l, axis = 0);",
        "let a: i64 = stride(X, axis = 7);",
        "let a: i32 = cta_id(axis = 3);",
        "let a = ptx(\"mov.b32 $0, $5;\", out = i32);",
        "let a = ptx(\"mov.pred $0, 1;\", out = bool);",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
        char source[400];
        snprintf(source, sizeof(source),
                 "kernel k(X: f32[N], Y: inout f32[N]) grid(1) threads(32) form(lowered) "
                 "shared(1024)\n{\n    %s%s\n}\n",
                 bodies[i], strstr(bodies[i], "let a") ? " ptx(\"// $0\", a);" : "");
        tir_compilation *c;
        tir_error error;
        tir_status status =
            tir_compile(STR("k.tir"), (tir_str){source, strlen(source)}, NULL, &c, &error);
        if (status != TIR_ERR_DIAGNOSED)
            fail_msg("%s: %s", tir_status_name(status), bodies[i]);
        assert_true(tir_compilation_error_count(c) > 0);
        tir_compilation_destroy(c);
    }
}

static void line_information_names_the_source(void **state)
{
    (void)state;
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.line_info = 1;
    options.outputs = 1u << TIR_OUTPUT_PTX;
    tir_compilation *c = compile(axpy, &options, TIR_OK);
    tir_str ptx = tir_compilation_output(c, TIR_OUTPUT_PTX);
    assert_true(contains(ptx, ".file\t1 \"axpy.tir\""));
    assert_true(contains(ptx, ".loc\t1 4 ")); // the statement of the loop
    assert_false(contains(ptx, ", debug"));
    tir_compilation_destroy(c);
}

// What the launch of a kernel of roles must know, and what messages call them.
static void the_artifact_states_maps_and_names(void **state)
{
    static const char source[] =
        "kernel copies(A: bf16[M, 64], D: out bf16[M, 64]) threads(64) cluster(2, 1, 1)\n"
        "    form(synced) facts(index32, vector16) shared(8224)\n"
        "{\n"
        "    let a: shared bf16[1, 64, 64] in swizzle(128) = alloc(offset = 0);\n"
        "    let full: shared mbarrier[2] = alloc(offset = 8192);\n"
        "    let done: shared mbarrier = alloc(offset = 8216);\n"
        "    if eq(tid(), i32(0)) {\n"
        "        mbarrier_init(full, arrivals = 1);\n"
        "        mbarrier_init(done, arrivals = 2);\n"
        "        fence(of = mbarrier_init);\n"
        "    }\n"
        "    bar_sync();\n"
        "    role load warps(1) first(1) {\n"
        "        let slot: shared bf16[64, 64] = view(a[0, 0:+64, 0:+64]);\n"
        "        let f: shared mbarrier = view(full[1]);\n"
        "        if elect_sync() {\n"
        "            arrive(f, bytes = 8192);\n"
        "            copy_async(slot, A[0:+64, 0:+64], mbar = f, engine = tma);\n"
        "        }\n"
        "        wait(f, i32(0));\n"
        "    }\n"
        "}\n";
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    const tir_artifact_desc *desc;
    (void)state;
    options.arch = STR("sm_90a");
    for (options.watchdog = 0; options.watchdog < 2; options.watchdog++) {
        tir_compilation *c = compile(source, &options, TIR_OK);
        tir_str bytes = tir_compilation_output(c, TIR_OUTPUT_ARTIFACT);
        assert_int_equal(tir_artifact_decode(bytes.ptr, bytes.len, NULL, &desc, NULL), TIR_OK);
        tir_compilation_destroy(c);
        const tir_artifact_variant *v = &desc->kernels[0].variants[0];
        assert_int_equal(v->cluster[0], 2);
        assert_int_equal(v->grid[0].ops[0].value, 2); // without a tiles loop: one cluster
        assert_int_equal(v->grid[1].ops[0].value, 1);
        assert_int_equal(v->map_count, 1);
        assert_int_equal(v->maps[0].param, 0);
        assert_int_equal(v->maps[0].swizzle, 128);
        assert_int_equal(v->maps[0].box[0], 64);
        assert_int_equal(v->maps[0].box[1], 64);
        assert_int_equal(v->watchdog, options.watchdog);
        assert_int_equal(v->role_count, 1);
        assert_string_equal(v->roles[0].name.ptr, "load");
        assert_int_equal(v->roles[0].first, 1);
        assert_int_equal(v->roles[0].warps, 1);
        assert_int_equal(v->barrier_count, 2);
        assert_string_equal(v->barriers[0].name.ptr, "full");
        assert_int_equal(v->barriers[0].offset, 8192);
        assert_int_equal(v->barriers[0].count, 2);
        assert_int_equal(v->barriers[0].arrivals, 1);
        assert_string_equal(v->barriers[1].name.ptr, "done");
        assert_int_equal(v->barriers[1].arrivals, 2);
        tir_artifact_free(desc, NULL);
    }
}

static void *compile_often(void *user)
{
    for (int i = 0; i < 3; i++) {
        tir_compilation *c;
        if (tir_compile(STR("axpy.tir"), STR(axpy), NULL, &c, NULL) != TIR_OK)
            return user; // not NULL
        tir_compilation_destroy(c);
    }
    return NULL;
}

static void threads_compile_at_the_same_time(void **state)
{
    (void)state;
    pthread_t threads[4];
    int failed = 1;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, compile_often, &failed), 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_null(result);
    }
}

static void names_of_entries_do_not_collide(void **state)
{
    (void)state;
    static const char source[] =
        "kernel k(Y: out f32[N]) { for i in tiles(N by 64) { Y[i:+64] = zeros(f32, 64); } }\n"
        "kernel k__wide(Y: out f32[N]) { for i in tiles(N by 64) { Y[i:+64] = zeros(f32, 64); } }\n";
    tir_compilation *c = compile(source, NULL, TIR_ERR_DIAGNOSED);
    assert_true(contains(tir_compilation_diagnostics(c), "E0102"));
    tir_compilation_destroy(c);
    static const char shared[] =
        "kernel tir_shared(Y: out f32[N]) grid(1) threads(32)\n"
        "{ shared s: f32[32]; s[tid()] = 1.0; bar_sync(); Y[tid()] = s[31 - tid()]; }\n";
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.outputs = 1u << TIR_OUTPUT_PTX;
    c = compile(shared, &options, TIR_OK);
    assert_true(contains(tir_compilation_output(c, TIR_OUTPUT_PTX), ".entry tir_shared("));
    tir_compilation_destroy(c);
}

// Running out of memory.

struct budget {
    long left;
    size_t live;
};

static void *limited(void *user, void *ptr, size_t old_size, size_t new_size)
{
    struct budget *budget = user;
    if (new_size == 0) {
        budget->live -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    (void)old_size;
    if (budget->left-- <= 0)
        return NULL;
    budget->live += ptr == NULL;
    return realloc(ptr, new_size);
}

// Once with one module, for LLVM's text, and once with one on each thread.
static void every_allocation_may_fail(void **state)
{
    const uint32_t *outputs = *state;
    for (long n = 0;; n++) {
        struct budget budget = {n, 0};
        tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
        options.allocator = (tir_allocator){limited, &budget};
        options.outputs |= *outputs;
        tir_compilation *c;
        tir_error error;
        tir_status status = tir_compile(STR("axpy.tir"), STR(axpy), &options, &c, &error);
        if (status == TIR_OK) {
            tir_compilation_destroy(c);
            assert_int_equal(budget.live, 0);
            assert_true(n > 3);
            return;
        }
        assert_int_equal(status, TIR_ERR_NO_MEMORY);
        assert_null(c);
        assert_int_equal(budget.live, 0);
        assert_true(n < 2000);
    }
}

// Running.

static void launch_variant(tir_rt_device *device, tir_rt_kernel *kernel, int64_t n, int32_t variant)
{
    tir_error error;
    tir_rt_buffer *x, *y;
    size_t size = (size_t)n * sizeof(float);
    float *host = calloc((size_t)n, sizeof(float));
    assert_non_null(host);
    ok(tir_rt_buffer_create(device, size, &x, &error), &error);
    ok(tir_rt_buffer_create(device, size, &y, &error), &error);
    for (int64_t i = 0; i < n; i++)
        host[i] = (float)i;
    ok(tir_rt_buffer_write(x, 0, host, size, NULL, &error), &error);
    ok(tir_rt_buffer_write(y, 0, host, size, NULL, &error), &error);
    tir_rt_arg args[] = {tir_rt_arg_tensor(tir_rt_buffer_address(x), TIR_ELEMENT_F32, 1, &n, NULL),
                         tir_rt_arg_tensor(tir_rt_buffer_address(y), TIR_ELEMENT_F32, 1, &n, NULL),
                         tir_rt_arg_float(TIR_ELEMENT_F32, 0.5)};
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    options.variant = variant;
    ok(tir_rt_launch(kernel, NULL, args, 3, &options, &error), &error);
    ok(tir_rt_buffer_read(y, 0, host, size, NULL, &error), &error);
    for (int64_t i = 0; i < n; i++)
        if (host[i] != 1.5f * (float)i)
            fail_msg("variant %d, N = %d: element %d is %g", variant, (int)n, (int)i,
                     (double)host[i]);
    tir_rt_buffer_destroy(x);
    tir_rt_buffer_destroy(y);
    free(host);
}

static void every_variant_computes_the_same(void **state)
{
    (void)state;
    tir_compilation *c = compile(axpy, NULL, TIR_OK);
    tir_str artifact = tir_compilation_output(c, TIR_OUTPUT_ARTIFACT);
    tir_runtime *runtime;
    tir_rt_device *device;
    tir_rt_module *module;
    tir_rt_kernel *kernel;
    tir_error error;
    ok(tir_runtime_create(NULL, &runtime, &error), &error);
    ok(tir_rt_device_open(runtime, "emu", &device, &error), &error);
    ok(tir_rt_module_load(device, artifact.ptr, artifact.len, &module, &error), &error);
    ok(tir_rt_module_kernel(module, STR("axpy"), &kernel, &error), &error);
    assert_int_equal(tir_rt_kernel_describe(kernel)->variant_count, 5);
    for (int32_t variant = 0; variant < 5; variant++) {
        launch_variant(device, kernel, 1024, variant);
        if (variant % 3) // __wide and the best want aligned rows
            launch_variant(device, kernel, 254, variant);
    }
    launch_variant(device, kernel, 1022, -1);
    // The where clause is checked at launch, and said in the message.
    int64_t odd = 3;
    tir_rt_arg args[] = {tir_rt_arg_tensor(256, TIR_ELEMENT_F32, 1, &odd, NULL),
                         tir_rt_arg_tensor(256, TIR_ELEMENT_F32, 1, &odd, NULL),
                         tir_rt_arg_float(TIR_ELEMENT_F32, 0)};
    assert_int_equal(tir_rt_launch(kernel, NULL, args, 3, NULL, &error), TIR_ERR_INVALID);
    assert_non_null(strstr(error.message, "N % 2 == 0"));
    tir_rt_module_destroy(module);
    tir_rt_device_destroy(device);
    tir_runtime_destroy(runtime);
    tir_compilation_destroy(c);
}

int main(void)
{
    static uint32_t llvm = 1u << TIR_OUTPUT_LLVM | 1u << TIR_OUTPUT_RECEIPT_JSON,
                    header = 1u << TIR_OUTPUT_HEADER;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_output_can_be_had),
        cmocka_unit_test(equal_input_gives_equal_bytes),
        cmocka_unit_test(wrong_source_is_diagnosed),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(an_error_is_one_line),
        cmocka_unit_test(passes_can_be_stopped_and_printed),
        cmocka_unit_test(what_is_required_is_an_error),
        cmocka_unit_test(variants_report_in_order),
        cmocka_unit_test(imports_and_settings_reach_the_program),
        cmocka_unit_test(what_no_machine_can_run_is_diagnosed),
        cmocka_unit_test(line_information_names_the_source),
        cmocka_unit_test(the_artifact_states_maps_and_names),
        cmocka_unit_test(threads_compile_at_the_same_time),
        cmocka_unit_test(names_of_entries_do_not_collide),
        cmocka_unit_test_prestate(every_allocation_may_fail, &llvm),
        cmocka_unit_test_prestate(every_allocation_may_fail, &header),
        cmocka_unit_test(every_variant_computes_the_same),
    };
    return cmocka_run_group_tests_name("compile", tests, NULL, NULL);
}
