// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The language, from text to IR and back. Usage: lang_test FOLDER
//
// FOLDER/accept/*.tir must compile without a diagnostic, and printing the IR, reading that and
// printing again must give the same text. FOLDER/reject/*.tir must give exactly the diagnostics
// that their comments expect:
//     // expect-error@+1 {{E0201: part of the text}}    on the line after; @-1: the line before
//     // expect-error {{part of the text}}              on this line
//     // expect-error@nowhere {{...}}                   without a place
// FOLDER/warn/*.tir must compile, and give exactly the diagnostics expected in the same way.
// A comment `// -D NAME=VALUE` gives a meta, `// kernel NAME` selects a kernel.
// Every code that the front end reports must be expected somewhere.
#include <ctype.h>
#include <setjmp.h>

#include "files.h"
#include "front/front.h"

struct expectation {
    long line; // 0: nowhere
    char text[256];
    bool met;
};

struct test {
    const char *path;
    tir_str source;
    struct tir_binding metas[8];
    uint32_t meta_count;
    char kernel[64];
    struct expectation expected[64];
    size_t expected_count;
};

static int passed, failed;
static bool code_seen[TIR_DIAG_COUNT];

static void fail(const struct test *t, const char *what, const char *text)
{
    printf("FAIL %s: %s\n%s\n", t->path, what, text);
}

static tir_str word_after(const char *at)
{
    size_t n = 0;
    while (at[n] && !isspace((unsigned char)at[n]))
        n++;
    return (tir_str){at, n};
}

static void read_expectation(struct test *t, const char *at, long line)
{
    struct expectation *e = &t->expected[t->expected_count];
    e->line = line;
    if (strncmp(at, "@nowhere", 8) == 0)
        e->line = 0;
    else if (*at == '@')
        e->line += strtol(at + 1, NULL, 10);
    const char *open = strstr(at, "{{"), *close = open ? strstr(open, "}}") : NULL;
    if (!close || t->expected_count + 1 == TIR_COUNT_OF(t->expected))
        return;
    snprintf(e->text, sizeof(e->text), "%.*s", (int)(close - open - 2), open + 2);
    t->expected_count++;
}

static void read_comments(struct test *t)
{
    static const char error[] = "// expect-", meta[] = "// -D ", kernel[] = "// kernel ";
    long line = 1;
    for (const char *at = t->source.ptr; *at; at++) {
        line += *at == '\n';
        if (strncmp(at, error, sizeof(error) - 1) == 0) {
            read_expectation(
                t, at + sizeof(error) - 1 + strspn(at + sizeof(error) - 1, "errowaning"), line);
        } else if (strncmp(at, meta, sizeof(meta) - 1) == 0) {
            tir_str w = word_after(at + sizeof(meta) - 1);
            const char *equals = memchr(w.ptr, '=', w.len);
            size_t n = equals ? (size_t)(equals - w.ptr) : w.len;
            t->metas[t->meta_count++] =
                (struct tir_binding){{w.ptr, n}, {w.ptr + n + 1, w.len - n - 1}};
        } else if (strncmp(at, kernel, sizeof(kernel) - 1) == 0) {
            tir_str w = word_after(at + sizeof(kernel) - 1);
            snprintf(t->kernel, sizeof(t->kernel), "%.*s", (int)w.len, w.ptr);
        }
    }
}

// Files beside the test.
static bool import(void *user, tir_str from, tir_str path, tir_str *name, tir_str *text)
{
    (void)user;
    char full[1024];
    const char *slash = NULL;
    for (size_t i = 0; i < from.len; i++)
        slash = from.ptr[i] == '/' ? from.ptr + i : slash;
    snprintf(full, sizeof(full), "%.*s%.*s", slash ? (int)(slash + 1 - from.ptr) : 0, from.ptr,
             (int)path.len, path.ptr);
    *text = file_read(full);
    if (!text->ptr)
        return false;
    size_t size = strlen(full) + 1;
    *name = (tir_str){memcpy(malloc(size), full, size), size - 1};
    return true;
}

static bool compile(struct tir_context *cx, const struct test *t, tir_str name, tir_str source,
                    bool with_metas, struct tir_module **m)
{
    struct tir_front_options o = {.import = import};
    if (with_metas) {
        o.metas = t->metas;
        o.meta_count = t->meta_count;
        o.kernel = t->kernel[0] ? t->kernel : NULL;
    }
    return tir_front_module(cx, name, source, &o, m);
}

static void show_diags(struct tir_context *cx)
{
    struct tir_text text;
    tir_text_init(&text, &cx->arena, 0);
    tir_diags_render(&cx->diags, TIR_DIAG_TEXT, &text);
    printf("%s\n", text.ptr);
}

// parse(print(m)) prints the same.
static bool round_trip(struct tir_context *cx, const struct test *t, const struct tir_module *m)
{
    struct tir_text first, second;
    struct tir_module *again;
    tir_text_init(&first, &cx->arena, 0);
    tir_text_init(&second, &cx->arena, 0);
    tir_print_module(&first, m);
    if (!compile(cx, t, STR("printed.tir"), tir_text_str(&first), false, &again)) {
        fail(t, "what was printed does not compile", first.ptr);
        show_diags(cx);
        return false;
    }
    tir_print_module(&second, again);
    if (tir_str_equal(tir_text_str(&first), tir_text_str(&second)))
        return true;
    fail(t, "printed first", first.ptr);
    fail(t, "printed again", second.ptr);
    return false;
}

static bool run_accept(struct tir_context *cx, struct test *t)
{
    struct tir_module *m;
    if (!compile(cx, t, tir_str_of(t->path), t->source, true, &m) || cx->diags.list.len) {
        fail(t, "should compile without a diagnostic", "");
        show_diags(cx);
        return false;
    }
    return round_trip(cx, t, m);
}

static bool meets(struct tir_context *cx, struct test *t, const struct tir_diag *d)
{
    struct tir_position at = tir_source_locate(&cx->sources, d->span.begin);
    long line = at.file ? at.line : 0;
    tir_str text =
        tir_str_format(&cx->arena, "%s: " STR_FMT, tir_diag_infos[d->code].code, STR_ARG(d->text));
    for (size_t i = 0; i < t->expected_count; i++) {
        struct expectation *e = &t->expected[i];
        if (e->met || e->line != line || !strstr(text.ptr, e->text))
            continue;
        e->met = code_seen[d->code] = true;
        return true;
    }
    return false;
}

static bool check_expected(struct tir_context *cx, struct test *t)
{
    bool ok = true;
    vec_foreach(struct tir_diag *, it, &cx->diags.list)
        if (!meets(cx, t, *it)) {
            fail(t, "not expected", (*it)->text.ptr);
            ok = false;
        }
    for (size_t i = 0; i < t->expected_count; i++)
        if (!t->expected[i].met) {
            printf("line %ld\n", t->expected[i].line);
            fail(t, "expected, but not reported", t->expected[i].text);
            ok = false;
        }
    if (!ok)
        show_diags(cx);
    return ok && t->expected_count > 0;
}

static bool run_reject(struct tir_context *cx, struct test *t)
{
    struct tir_module *m;
    bool ok = !compile(cx, t, tir_str_of(t->path), t->source, true, &m);
    if (!ok)
        fail(t, "should not compile", "");
    return check_expected(cx, t) && ok;
}

typedef bool run_fn(struct tir_context *cx, struct test *t);

// Nothing here changes between setjmp and a jump back to it.
static bool run_one(const char *path, run_fn *run)
{
    static struct test t;
    static struct tir_context cx;
    static bool ok;
    t = (struct test){.path = path, .source = file_read(path)};
    read_comments(&t);
    ok = false;
    if (setjmp(cx.out_of_memory) == 0) {
        tir_context_init(&cx, NULL);
        ok = run(&cx, &t);
    }
    tir_context_finish(&cx);
    return ok;
}

static bool run_warn(struct tir_context *cx, struct test *t)
{
    struct tir_module *m;
    if (!compile(cx, t, tir_str_of(t->path), t->source, true, &m)) {
        fail(t, "should compile", "");
        show_diags(cx);
        return false;
    }
    return check_expected(cx, t);
}

static void run_all(const char *root, const char *kind, run_fn *run)
{
    char folder[1024];
    size_t count;
    snprintf(folder, sizeof(folder), "%s/%s", root, kind);
    char **paths = file_list(folder, ".tir", &count);
    for (size_t i = 0; i < count; i++) {
        bool ok = run_one(paths[i], run);
        passed += ok;
        failed += !ok;
    }
    if (!count) {
        printf("FAIL %s holds no tests\n", folder);
        failed++;
    }
}

// A file just above the limit, which is too large to keep beside the others.
static bool run_large(struct tir_context *cx, struct test *t)
{
    size_t size = (16u << 20) + 1;
    char *text = memset(malloc(size), ' ', size);
    struct tir_module *m;
    bool ok = !compile(cx, t, STR("large.tir"), (tir_str){text, size}, true, &m) &&
              cx->diags.list.len == 1 && cx->diags.list.at[0]->code == TIR_E_FILE_SIZE;
    free(text);
    code_seen[TIR_E_FILE_SIZE] |= ok;
    if (!ok)
        fail(t, "expected E0005 alone", "");
    return ok;
}

// Every file imports another one.
static bool import_next(void *user, tir_str from, tir_str path, tir_str *name, tir_str *text)
{
    static char names[128][8];
    int *count = user;
    (void)from;
    (void)path;
    snprintf(names[*count], sizeof(names[0]), "%d", *count);
    *name = tir_str_of(names[(*count)++]);
    *text = STR("import \"next\";\n");
    return *count < 128;
}

static bool run_many_files(struct tir_context *cx, struct test *t)
{
    int count = 0;
    struct tir_front_options o = {.import = import_next, .import_user = &count};
    struct tir_module *m;
    bool ok = !tir_front_module(cx, STR("first.tir"), STR("import \"next\";\n"), &o, &m) &&
              cx->diags.list.len == 1 && cx->diags.list.at[0]->code == TIR_E_FILE_SIZE &&
              count == 64;
    if (!ok)
        fail(t, "expected E0005 alone, at the 65th file", "");
    return ok;
}

// The codes that only passes report.
static bool is_of_passes(enum tir_diag_code code)
{
    static const enum tir_diag_code of_passes[] = {
        TIR_E_SHARED_LIMIT, TIR_E_UNSUPPORTED,    TIR_E_REGISTERS,   TIR_E_CODEGEN,
        TIR_E_REQUIRED,     TIR_E_SYNC_RACE,      TIR_E_SYNC_FENCE,  TIR_E_SYNC_DEADLOCK,
        TIR_E_SYNC_BARRIER, TIR_E_SYNC_REGISTERS, TIR_E_SYNC_CANCEL, TIR_E_TUNED,
        TIR_W_TUNED,        TIR_W_UNCHECKED};
    for (size_t i = 0; i < TIR_COUNT_OF(of_passes); i++)
        if (of_passes[i] == code)
            return true;
    return tir_diag_infos[code].severity == TIR_REMARK;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    run_all(argv[1], "accept", run_accept);
    run_all(argv[1], "reject", run_reject);
    run_all(argv[1], "warn", run_warn);
    run_fn *const synthetic[] = {run_large, run_many_files};
    for (size_t i = 0; i < TIR_COUNT_OF(synthetic); i++) {
        bool ok = run_one("/dev/null", synthetic[i]);
        passed += ok;
        failed += !ok;
    }
    for (int code = 0; code < TIR_DIAG_COUNT; code++)
        if (!code_seen[code] && !is_of_passes((enum tir_diag_code)code)) {
            printf("FAIL no test expects %s\n", tir_diag_infos[code].code);
            failed++;
        }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
