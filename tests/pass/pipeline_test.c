// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What every pass promises, on whole programs. Usage: pipeline_test ARCH FILE...
//
// Each kernel of each file goes through the pipeline one pass at a time, once with every fact about
// its arguments and once with none. After each pass the verifier must accept it, and its text must
// read back as the same text. Up to form `synced` the interpreter must give the same outputs as it
// gave before the first pass, on random inputs of awkward sizes. A pass that leaves the text as it
// was has changed nothing that is worth another run.
#include <setjmp.h>

#include "../lang/files.h"
#include "front/front.h"
#include "interp/interp.h"
#include "ir/context.h"
#include "ir/number.h"
#include "ir/walk.h"
#include "machine/target.h"
#include "pass/pass.h"

#define MAX_ARGS 16

struct test {
    const char *path;
    const struct tir_target *arch;
    struct tir_context cx;
    uint64_t seed;
};

// One set of arguments; the tensors' bytes lie in one arena.
struct args {
    struct tir_interp_arg at[MAX_ARGS];
    int64_t counts[MAX_ARGS];
    uint32_t count;
};

static int passed, failed;

static void complain(struct test *t, const char *what, tir_str text)
{
    struct tir_text diags;
    tir_text_init(&diags, &t->cx.arena, 0);
    tir_diags_render(&t->cx.diags, TIR_DIAG_TEXT, &diags);
    printf("FAIL %s: %s\n" STR_FMT "\n%s\n", t->path, what, STR_ARG(text),
           diags.ptr ? diags.ptr : "");
}

static tir_str text_of(struct test *t, const struct tir_func *f)
{
    struct tir_text text;
    tir_text_init(&text, &t->cx.arena, 0);
    tir_print_func(&text, f);
    return tir_text_str(&text);
}

// The text of a file, in the context's arena. NULL ptr: it cannot be read.
static tir_str read_source(struct test *t, const char *path)
{
    tir_str s = file_read(path);
    if (!s.ptr)
        return s;
    tir_str copy = tir_str_copy(&t->cx.arena, s);
    union {
        const char *from;
        char *owned;
    } text = {s.ptr};
    free(text.owned);
    return copy;
}

static bool import(void *user, tir_str from, tir_str path, tir_str *name, tir_str *text)
{
    struct test *t = user;
    size_t folder = from.len;
    while (folder && from.ptr[folder - 1] != '/')
        folder--;
    *name = tir_str_format(&t->cx.arena, "%.*s" STR_FMT, (int)folder, from.ptr, STR_ARG(path));
    *text = read_source(t, name->ptr);
    return text->ptr != NULL;
}

static struct tir_module *compile(struct test *t, tir_str name, tir_str source)
{
    struct tir_front_options o = {.import = import,
                                  .import_user = t,
                                  .shared_bytes = t->arch->shared_per_cta,
                                  .tensor_columns = tir_tensor_columns(t->arch)};
    struct tir_module *m;
    return tir_front_module(&t->cx, name, source, &o, &m) ? m : NULL;
}

static bool reads_back(struct test *t, tir_str first, const char *pass)
{
    struct tir_module *again = compile(t, STR("printed.tir"), first);
    if (!again || again->funcs.len != 1) {
        complain(t, "what was printed does not compile", tir_str_of(pass));
        printf(STR_FMT "\n", STR_ARG(first));
        return false;
    }
    tir_str second = text_of(t, again->funcs.at[0]);
    if (tir_str_equal(first, second))
        return true;
    complain(t, pass, STR("does not print the same again"));
    printf("first:\n" STR_FMT "\nagain:\n" STR_FMT "\n", STR_ARG(first), STR_ARG(second));
    return false;
}

// Inputs.

static uint64_t random_bits(struct test *t) // xorshift64
{
    t->seed ^= t->seed << 13;
    t->seed ^= t->seed >> 7;
    t->seed ^= t->seed << 17;
    return t->seed;
}

static void put(enum tir_elem elem, uint8_t *data, int64_t index, union tir_number x)
{
    uint64_t bits = tir_number_encode(elem, x);
    uint32_t bytes = tir_elems[elem].bits / 8;
    memcpy(data + index * bytes, &bits, bytes); // little-endian, as the device is
}

static union tir_number random_number(struct test *t, enum tir_elem elem)
{
    union tir_number x;
    double spread = (double)(random_bits(t) % 4001) / 1000 - 2;
    if (tir_elem_is_float(elem))
        x.f = tir_number_round(elem, spread);
    else
        x.i = tir_number_wrap(elem, elem == TIR_BOOL ? spread > 0 : (int64_t)(spread * 8));
    return x;
}

static int64_t size_of_dim(const struct tir_func *f, const struct tir_param_dim *dim)
{
    static const int64_t few[] = {67, 41, 35}, many[] = {2, 3, 67, 1, 70, 2, 5};
    if (dim->dim < 0)
        return dim->constant;
    return f->dim_count <= TIR_COUNT_OF(few) ? few[dim->dim] : many[dim->dim % 7];
}

static void make_args(struct test *t, const struct tir_func *f, struct args *args)
{
    args->count = f->param_count;
    for (uint32_t i = 0; i < f->param_count; i++) {
        const struct tir_type *type = f->params[i].value->type;
        struct tir_interp_arg *a = &args->at[i];
        *a = (struct tir_interp_arg){.elem = type->elem, .rank = type->rank};
        int64_t count = 1;
        for (uint32_t d = type->rank; d-- > 0;) {
            a->shape[d] = size_of_dim(f, &f->params[i].dims[d]);
            a->strides[d] = count;
            count *= a->shape[d];
        }
        args->counts[i] = count;
        a->data = arena_array(&t->cx.arena, uint64_t, (size_t)count);
        for (int64_t k = 0; k < count; k++)
            put(type->elem, a->data, k, random_number(t, type->elem));
    }
}

static struct args copy_args(struct test *t, const struct args *args)
{
    struct args copy = *args;
    for (uint32_t i = 0; i < args->count; i++)
        copy.at[i].data = tir_arena_copy(&t->cx.arena, args->at[i].data,
                                         (size_t)args->counts[i] * sizeof(uint64_t));
    return copy;
}

static bool same_results(struct test *t, struct tir_func *f, const struct args *inputs,
                         const struct args *want, const char *pass)
{
    struct args got = copy_args(t, inputs);
    tir_error error;
    if (tir_interp_run(f, got.at, got.count, NULL, &error) != TIR_OK) {
        complain(t, pass, tir_str_of(error.message));
        return false;
    }
    for (uint32_t i = 0; i < got.count; i++) {
        struct tir_interp_diff diff;
        enum tir_elem elem = got.at[i].elem;
        if (got.at[i].rank &&
            !tir_interp_compare(elem, got.at[i].data, want->at[i].data, got.counts[i],
                                tir_interp_tolerance(elem), &diff)) {
            complain(t, pass,
                     tir_str_format(&t->cx.arena, "%s[%lld] is %g, was %g", f->params[i].name,
                                    (long long)diff.first, diff.got, diff.want));
            printf(STR_FMT "\n", STR_ARG(text_of(t, f)));
            return false;
        }
    }
    return true;
}

// The pipeline.

static bool can_interpret(const struct tir_func *f)
{
    for (uint32_t i = 0; i < f->param_count; i++)
        if (tir_elems[f->params[i].value->type->elem].bits < 8)
            return false;
    return f->param_count <= MAX_ARGS;
}

static bool run_kernel(struct test *t, struct tir_func *f)
{
    struct args inputs, want;
    tir_error error;
    bool interpret = can_interpret(f);
    tir_str last = STR("");
    if (interpret) {
        make_args(t, f, &inputs);
        want = copy_args(t, &inputs);
        // Programs may refuse these sizes; then only their text is looked at.
        interpret = tir_interp_run(f, want.at, want.count, NULL, &error) == TIR_OK;
    }
    for (uint32_t i = 0; i < tir_pipeline_count; i++) {
        if (f->form > tir_passes[i].in)
            continue;
        struct tir_pass_cx pass = {
            .scratch = &t->cx.scratch, .diags = &t->cx.diags, .target = t->arch};
        struct tir_pass_options options = {
            .run = tir_str_of(tir_passes[i].name), .bisect = -1, .verify = true};
        if (!tir_run_passes(f, &pass, &options)) {
            complain(t, tir_passes[i].name, STR("the pass failed"));
            printf(STR_FMT "\n", STR_ARG(text_of(t, f)));
            return false;
        }
        const tir_str text = text_of(t, f);
        if (tir_str_equal(text, last))
            continue;
        last = text;
        if (!reads_back(t, text, tir_passes[i].name))
            return false;
        if (interpret && f->form < TIR_FORM_LOWERED &&
            !same_results(t, f, &inputs, &want, tir_passes[i].name))
            return false;
    }
    return true;
}

static bool has_dot(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_DOT)
            return true;
    return false;
}

static void run_file(struct test *t)
{
    tir_str source = read_source(t, t->path);
    struct tir_module *m = source.ptr ? compile(t, tir_str_of(t->path), source) : NULL;
    if (!m) {
        complain(t, "does not compile", STR(""));
        failed++;
        return;
    }
    const uint32_t dense = TIR_FACT_INDEX32 | TIR_FACT_UNIT_INNER;
    const struct {
        uint32_t facts, aligned; // bytes that inputs are aligned to, which products ask for
    } facts[] = {{dense | TIR_FACT_VECTOR16, 0}, {dense, 16}, {dense, 4}, {0, 0}};
    for (uint32_t k = 0; k < m->funcs.len; k++)
        for (uint32_t i = 0; i < TIR_COUNT_OF(facts); i++) {
            if (facts[i].aligned && !has_dot(m->funcs.at[k]))
                continue;
            struct tir_func *f = tir_func_clone(m->funcs.at[k]);
            f->facts = facts[i].facts;
            for (uint32_t p = 0; p < f->param_count; p++)
                if (f->params[p].value->type->space == TIR_SPACE_GLOBAL &&
                    f->params[p].direction == TIR_IN)
                    f->params[p].aligned = facts[i].aligned;
            bool ok = run_kernel(t, f);
            passed += ok;
            failed += !ok;
        }
}

static void run_protected(const char *path, const struct tir_target *arch)
{
    static struct test t;
    t = (struct test){.path = path, .arch = arch, .seed = 88172645463325252u};
    if (setjmp(t.cx.out_of_memory) == 0) {
        tir_context_init(&t.cx, NULL);
        run_file(&t);
    } else {
        printf("FAIL %s: out of memory\n", path);
        failed++;
    }
    tir_context_finish(&t.cx);
}

int main(int argc, char **argv)
{
    const struct tir_target *arch = argc > 2 ? tir_target_find(tir_str_of(argv[1])) : NULL;
    if (!arch)
        return 2;
    for (int i = 2; i < argc; i++)
        run_protected(argv[i], arch);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
