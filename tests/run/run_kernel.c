// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the kernel of a .tir file through the interpreter, as written and after every pass that
// leaves it a tile program, and compares what comes out with what the file's comments say. usage:
// run_kernel FILE...
//
//     //: -D BLOCK=4              a meta
//     //: X f32[2, 3] = 1 2 3 4 5 6     contents before; without this line all bytes are 0xff
//     //: X f32[9, 9] = ramp 7    -3 -2 -1 0 1 2 3 -3 ..., as long as it takes
//     //: Y i32[2] -> 7 8         contents after; without: what the program as written gives
//     //: a f32 = 0.5             a scalar
//     //: fails: some text        the run must end with an error that has this text in it
//     //: refused: some text      the text where a device is to run it, if another
//     //: gpu: some text          the text of a GPU, if another; `hangs`: it is not to run there
//     //: prints: some text       a line that the run prints, in this order
//     //: unspecified             what a device computes: it must run, and is not compared
// Numbers after -> are exact, but for ~RTOL at the end of the line.

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "front/front.h"
#include "interp/interp.h"
#include "ir/number.h"
#include "machine/target.h"
#include "pass/pass.h"

struct tensor {
    tir_str name;
    struct tir_interp_arg arg;
    int64_t count;
    void *want; // encoded; NULL: not stated
    double rtol;
};

struct test {
    struct tir_context *cx;
    const char *file;
    VEC(struct tir_binding) metas;
    VEC(struct tensor) tensors;
    tir_str fails;
    struct tir_text prints; // what is to be printed
    uint32_t errors;
};

static void complain(struct test *t, const char *what, tir_str detail)
{
    fprintf(stderr, "%s: %s: " STR_FMT "\n", t->file, what, STR_ARG(detail));
    t->errors++;
}

// Reading the comments. `at` walks a terminated copy of the line.

static void skip_blanks(const char **at)
{
    while (**at == ' ')
        ++*at;
}

static bool accept(const char **at, const char *word)
{
    skip_blanks(at);
    size_t len = strlen(word);
    if (strncmp(*at, word, len))
        return false;
    *at += len;
    return true;
}

static tir_str word(const char **at)
{
    skip_blanks(at);
    const char *begin = *at;
    while (**at && !strchr(" [=-:", **at))
        ++*at;
    return (tir_str){begin, (size_t)(*at - begin)};
}

static enum tir_elem elem_named(tir_str name)
{
    for (uint32_t e = 1; e < TIR_ELEM_COUNT; e++)
        if (tir_str_is(name, tir_elems[e].name))
            return (enum tir_elem)e;
    return TIR_NONE;
}

static void *encode_ramp(struct test *t, const struct tensor *x, const char **at)
{
    uint32_t size = tir_elems[x->arg.elem].bits / 8;
    uint8_t *out = arena_array(&t->cx->arena, uint8_t, (size_t)x->count * size + 1);
    char *end;
    int64_t period = strtoll(*at, &end, 10);
    *at = end;
    for (int64_t i = 0; i < x->count; i++) {
        union tir_number n = {.i = i % TIR_MAX(period, 1) - period / 2};
        uint64_t bits = tir_number_encode(x->arg.elem, tir_number_cast(x->arg.elem, TIR_I64, n));
        memcpy(out + i * size, &bits, size);
    }
    return out;
}

static void *encode_numbers(struct test *t, const struct tensor *x, const char **at)
{
    uint32_t size = tir_elems[x->arg.elem].bits / 8;
    uint8_t *out = arena_array(&t->cx->arena, uint8_t, (size_t)x->count * size + 1);
    for (int64_t i = 0; i < x->count; i++) {
        char *end;
        bool is_float = tir_elem_is_float(x->arg.elem);
        union tir_number n = {0};
        if (is_float)
            n.f = tir_number_round(x->arg.elem, strtod(*at, &end));
        else
            n.i = (int64_t)strtoull(*at, &end, 0); // takes a minus sign too
        if (end == *at)
            complain(t, "a number is missing", x->name);
        *at = end;
        uint64_t bits = tir_number_encode(x->arg.elem, n);
        memcpy(out + i * size, &bits, size);
    }
    return out;
}

static void read_shape(struct tensor *x, const char **at)
{
    if (accept(at, "["))
        do {
            char *end;
            x->arg.shape[x->arg.rank++] = strtoll(*at, &end, 10);
            *at = end;
        } while (accept(at, ",") && x->arg.rank < TIR_MAX_RANK);
    accept(at, "]");
    x->count = 1;
    for (uint32_t d = x->arg.rank; d-- > 0; x->count *= x->arg.shape[d])
        x->arg.strides[d] = x->count;
}

static void read_tensor(struct test *t, const char *at)
{
    struct tensor x = {.name = word(&at)};
    x.arg.elem = elem_named(word(&at));
    if (x.arg.elem == TIR_NONE) {
        complain(t, "cannot read", tir_str_of(at));
        return;
    }
    read_shape(&x, &at);
    size_t bytes = (size_t)x.count * tir_elems[x.arg.elem].bits / 8;
    if (accept(&at, "=")) {
        x.arg.data = accept(&at, "ramp") ? encode_ramp(t, &x, &at) : encode_numbers(t, &x, &at);
    } else {
        x.arg.data = tir_arena_alloc(&t->cx->arena, bytes + 1);
        memset(x.arg.data, 0xff, bytes);
    }
    if (accept(&at, "->"))
        x.want = encode_numbers(t, &x, &at);
    if (accept(&at, "~"))
        x.rtol = strtod(at, NULL);
    vec_push(&t->cx->arena, &t->tensors, x);
}

static void read_line(struct test *t, const char *at)
{
    if (accept(&at, "-D")) {
        struct tir_binding b = {.name = word(&at)};
        accept(&at, "=");
        b.value = word(&at);
        vec_push(&t->cx->arena, &t->metas, b);
    } else if (accept(&at, "fails:")) {
        skip_blanks(&at);
        t->fails = tir_str_of(at);
    } else if (accept(&at, "prints: ")) {
        tir_text_format(&t->prints, "%s\n", at);
    } else if (!accept(&at, "unspecified") && !accept(&at, "refused:") && !accept(&at, "gpu:")) {
        read_tensor(t, at);
    }
}

static void read_comments(struct test *t, tir_str source)
{
    for (size_t i = 0, end; i < source.len; i = end + 1) {
        for (end = i; end < source.len && source.ptr[end] != '\n'; end++)
            continue;
        tir_str line = {source.ptr + i, end - i};
        if (line.len > 3 && !memcmp(line.ptr, "//:", 3))
            read_line(t, tir_str_copy(&t->cx->arena, (tir_str){line.ptr + 3, line.len - 3}).ptr);
    }
}

// Running.

static struct tir_interp_arg *bind(struct test *t, const struct tir_func *f)
{
    struct tir_interp_arg *args = arena_array(&t->cx->arena, struct tir_interp_arg, f->param_count);
    for (uint32_t i = 0; i < f->param_count; i++) {
        vec_foreach(struct tensor, x, &t->tensors)
            if (tir_str_is(x->name, f->params[i].name))
                args[i] = x->arg;
        if (!args[i].data)
            complain(t, "nothing is said about", tir_str_of(f->params[i].name));
        // A fresh copy, so that the function can be run again.
        size_t bytes = tir_elems[args[i].elem].bits / 8;
        for (uint32_t d = 0; d < args[i].rank; d++)
            bytes *= (size_t)args[i].shape[d];
        if (args[i].data)
            args[i].data = tir_arena_copy(&t->cx->arena, args[i].data, bytes);
    }
    return args;
}

static void compare(struct test *t, const char *when, const struct tir_func *f,
                    const struct tir_interp_arg *args)
{
    for (uint32_t i = 0; i < f->param_count; i++)
        vec_foreach(struct tensor, x, &t->tensors) {
            if (!x->want || !tir_str_is(x->name, f->params[i].name))
                continue;
            struct tir_interp_diff diff;
            if (tir_interp_compare(x->arg.elem, args[i].data, x->want, x->count, x->rtol, &diff))
                continue;
            complain(t, when,
                     tir_str_format(&t->cx->arena, STR_FMT " element %lld is %g, not %g",
                                    STR_ARG(x->name), (long long)diff.first, diff.got, diff.want));
        }
}

static void add_print(void *user, const char *text, size_t size)
{
    tir_text_add(user, (tir_str){text, size});
}

static void interpret(struct test *t, const char *when, struct tir_func *f)
{
    tir_error error = {0};
    struct tir_interp_arg *args = bind(t, f);
    if (t->errors)
        return;
    struct tir_text printed;
    tir_text_init(&printed, &t->cx->arena, 0);
    struct tir_interp_options options = {
        .step_limit = 10000000, .print = add_print, .print_user = &printed};
    tir_status status = tir_interp_run(f, args, f->param_count, &options, &error);
    if (!tir_str_equal(tir_text_str(&printed), tir_text_str(&t->prints)))
        complain(t, when, tir_str_format(&t->cx->arena, "this was printed:\n%s", printed.ptr));
    if (t->fails.ptr) {
        if (status == TIR_OK || !strstr(error.message, t->fails.ptr))
            complain(t, when,
                     tir_str_format(&t->cx->arena, "no error with \"%s\", but \"%s\"", t->fails.ptr,
                                    error.message));
    } else if (status != TIR_OK) {
        complain(t, when, tir_str_of(error.message));
    } else {
        compare(t, when, f, args);
    }
}

static void complain_diagnostics(struct test *t, const char *what)
{
    struct tir_text text;
    tir_text_init(&text, &t->cx->arena, 0);
    tir_diags_render(&t->cx->diags, TIR_DIAG_TEXT, &text);
    complain(t, what, tir_text_str(&text));
}

// A pass may change everything but the meaning, whatever it may rely on. aligned: the bytes that
// tensors that are read are aligned to.
static void interpret_after_passes(struct test *t, struct tir_func *f, uint32_t facts,
                                   uint32_t aligned)
{
    struct tir_pass_cx cx = {.scratch = &t->cx->scratch,
                             .diags = &t->cx->diags,
                             .target = tir_target_find(STR("sm_80"))};
    f->facts = facts;
    for (uint32_t i = 0; i < f->param_count; i++)
        if (f->params[i].value->type->space == TIR_SPACE_GLOBAL && f->params[i].direction == TIR_IN)
            f->params[i].aligned = aligned;
    for (uint32_t i = 0; i < tir_pipeline_count && !t->errors; i++) {
        if (tir_passes[i].out == TIR_FORM_LOWERED)
            break;
        struct tir_pass_options options = {
            .run = tir_str_of(tir_passes[i].name), .bisect = -1, .verify = true};
        if (tir_run_passes(f, &cx, &options))
            interpret(t, tir_passes[i].name, f);
        else
            complain_diagnostics(t, tir_passes[i].name);
    }
}

static void run_module(struct test *t, tir_str source)
{
    struct tir_front_options front = {.metas = t->metas.at, .meta_count = t->metas.len};
    struct tir_module *m;
    bool ok = tir_front_module(t->cx, tir_str_of(t->file), source, &front, &m);
    if (!ok || m->funcs.len != 1) {
        complain_diagnostics(t, "does not give one kernel");
        return;
    }
    interpret(t, "as written", m->funcs.at[0]);
    const uint32_t dense = TIR_FACT_INDEX32 | TIR_FACT_UNIT_INNER;
    interpret_after_passes(t, tir_func_clone(m->funcs.at[0]), 0, 0);
    interpret_after_passes(t, tir_func_clone(m->funcs.at[0]), dense, 4);
    interpret_after_passes(t, m->funcs.at[0], dense | TIR_FACT_VECTOR16, 0);
}

static tir_str read_file(struct tir_context *cx, const char *path)
{
    static char bytes[1 << 16];
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(2);
    }
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return tir_str_copy(&cx->arena, (tir_str){bytes, size});
}

static uint32_t run_file(struct tir_context *cx, const char *path)
{
    if (setjmp(cx->out_of_memory)) {
        fprintf(stderr, "%s: out of memory\n", path);
        return 1;
    }
    tir_context_init(cx, NULL);
    struct test t = {.cx = cx, .file = path};
    tir_text_init(&t.prints, &cx->arena, 0);
    tir_str source = read_file(cx, path);
    read_comments(&t, source);
    if (!t.errors)
        run_module(&t, source);
    return t.errors;
}

int main(int argc, char **argv)
{
    static struct tir_context cx;
    uint32_t failed = 0;
    for (int i = 1; i < argc; i++) {
        failed += run_file(&cx, argv[i]) > 0;
        tir_context_finish(&cx);
    }
    printf("%d passed, %u failed\n", argc - 1 - (int)failed, failed);
    return failed > 0;
}
