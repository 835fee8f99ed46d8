// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What programs mean: each is compiled and interpreted, and its outputs compared with the ones its
// comments state. Usage: meaning_test FOLDER, which holds .tir files with lines
//
//     // run NAME: x = 1 2 3, y = 0 0 0 gives y = 2 4 6
//
// A tensor of rank 2 has its rows separated by `;`. Every parameter is given, and every element of
// an output that is stated must be equal.
#include <math.h>
#include <setjmp.h>

#include "files.h"
#include "front/front.h"
#include "interp/interp.h"
#include "ir/number.h"

enum { MAX_ARGS = 8, MAX_ELEMENTS = 4096, MAX_LINE = 1024 };

struct tensor {
    double at[MAX_ELEMENTS];
    int64_t rows, columns; // columns -1: one dimension
};

struct case_ {
    struct tir_context cx;
    struct tir_func *f;
    uint64_t data[MAX_ARGS][MAX_ELEMENTS];
    struct tir_interp_arg args[MAX_ARGS];
    struct tensor tensor;
};

static int passed, failed;

// The numbers after `NAME = `, up to a comma or the end.
static bool read_tensor(const char *text, const char *name, struct tensor *t)
{
    size_t length = strlen(name), n = 0;
    const char *at = text;
    while ((at = strstr(at, name)) &&
           ((at != text && at[-1] != ' ') || strncmp(at + length, " = ", 3) != 0))
        at += length;
    if (!at)
        return false;
    t->rows = 1;
    t->columns = -1;
    for (at += length + 3; *at && *at != ',' && n < MAX_ELEMENTS;) {
        char *end;
        if (*at == ';') {
            t->columns = (int64_t)n / t->rows++;
            at++;
            continue;
        }
        t->at[n] = strtod(at, &end);
        if (end == at)
            break;
        n++;
        at = end;
        at += *at == ' ';
    }
    if (t->columns < 0)
        t->rows = (int64_t)n;
    return n > 0;
}

static double element(enum tir_elem elem, uint64_t bits)
{
    union tir_number x = tir_number_decode(elem, bits);
    return tir_elem_is_float(elem) ? x.f : (double)x.i;
}

static void put_element(void *data, int64_t i, enum tir_elem elem, double value)
{
    union tir_number x = {.i = (int64_t)value};
    if (tir_elem_is_float(elem))
        x.f = tir_number_round(elem, value);
    uint64_t bits = tir_number_encode(elem, x);
    size_t size = tir_elems[elem].bits / 8;
    memcpy((char *)data + (size_t)i * size, &bits, size);
}

static double get_element(const void *data, int64_t i, enum tir_elem elem)
{
    uint64_t bits = 0;
    size_t size = tir_elems[elem].bits / 8;
    memcpy(&bits, (const char *)data + (size_t)i * size, size);
    return element(elem, bits);
}

static bool give_arguments(struct case_ *c, const char *inputs)
{
    for (uint32_t p = 0; p < c->f->param_count; p++) {
        const struct tir_param *param = &c->f->params[p];
        const struct tir_type *type = param->value->type;
        struct tensor *t = &c->tensor;
        if (p == MAX_ARGS || !read_tensor(inputs, param->name, t)) {
            printf("no value for %s\n", param->name);
            return false;
        }
        struct tir_interp_arg *arg = &c->args[p];
        *arg = (struct tir_interp_arg){.elem = type->elem, .rank = type->rank, .data = c->data[p]};
        int64_t columns = t->columns < 0 ? 1 : t->columns;
        arg->shape[0] = t->rows;
        arg->shape[1] = columns;
        arg->strides[0] = type->rank == 2 ? columns : 1;
        arg->strides[1] = 1;
        for (int64_t i = 0; i < t->rows * columns; i++)
            put_element(c->data[p], i, type->elem, t->at[i]);
    }
    return true;
}

static bool compare_outputs(struct case_ *c, const char *outputs)
{
    bool ok = true, any = false;
    for (uint32_t p = 0; p < c->f->param_count; p++) {
        struct tensor *t = &c->tensor;
        if (!read_tensor(outputs, c->f->params[p].name, t))
            continue;
        any = true;
        int64_t count = t->rows * (t->columns < 0 ? 1 : t->columns);
        for (int64_t i = 0; i < count; i++) {
            double got = get_element(c->data[p], i, c->args[p].elem);
            if (got == t->at[i] || (isnan(got) && isnan(t->at[i])))
                continue;
            printf("%s[%lld] is %g, not %g\n", c->f->params[p].name, (long long)i, got, t->at[i]);
            ok = false;
        }
    }
    return ok && any;
}

static bool run_kernel(struct case_ *c, const char *path, tir_str source, const char *kernel,
                       const char *inputs, const char *outputs)
{
    struct tir_front_options o = {.kernel = kernel};
    struct tir_module *m;
    if (!tir_front_module(&c->cx, tir_str_of(path), source, &o, &m)) {
        struct tir_text text;
        tir_text_init(&text, &c->cx.arena, 0);
        tir_diags_render(&c->cx.diags, TIR_DIAG_TEXT, &text);
        printf("%s\n", text.ptr);
        return false;
    }
    c->f = m->funcs.at[0];
    tir_error error;
    if (!give_arguments(c, inputs))
        return false;
    if (tir_interp_run(c->f, c->args, c->f->param_count, NULL, &error) != TIR_OK) {
        printf("%s\n", error.message);
        return false;
    }
    return compare_outputs(c, outputs);
}

// One `// run` line; nothing here changes between setjmp and a jump back to it.
static bool run_line(const char *path, tir_str source, const char *line)
{
    static struct case_ c;
    static char text[MAX_LINE];
    static bool ok;
    ok = false;
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(line, "\n"), line);
    char *inputs = strchr(text, ':'), *outputs = strstr(text, " gives ");
    if (!inputs || !outputs) {
        printf("not a run line: %s\n", text);
        return false;
    }
    *inputs = *outputs = 0;
    if (setjmp(c.cx.out_of_memory) == 0) {
        tir_context_init(&c.cx, NULL);
        ok = run_kernel(&c, path, source, text, inputs + 1, outputs + 6);
    }
    tir_context_finish(&c.cx);
    if (!ok)
        printf("FAIL %s: %s:%s gives%s\n", path, text, inputs + 1, outputs + 6);
    return ok;
}

int main(int argc, char **argv)
{
    static const char mark[] = "// run ";
    size_t count = 0;
    char **paths = argc == 2 ? file_list(argv[1], ".tir", &count) : NULL;
    for (size_t i = 0; i < count; i++) {
        tir_str source = file_read(paths[i]);
        for (const char *at = source.ptr; (at = strstr(at, mark)); at++) {
            bool ok = run_line(paths[i], source, at + sizeof(mark) - 1);
            passed += ok;
            failed += !ok;
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed;
}
