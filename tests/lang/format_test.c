// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The formatter. Usage: format_test GOLDEN FOLDER...
//
// Each GOLDEN/NAME.in formats to GOLDEN/NAME.tir. Each .tir file of the folders is formatted: doing
// that twice changes nothing, no comment or other token is lost, and it compiles to the same IR, or
// is refused as before. Long lists of every kind are formatted too, within the test's time limit.
#include <setjmp.h>

#include "files.h"
#include "front/front.h"

static int passed, failed;

static void show(struct tir_context *cx)
{
    struct tir_text text;
    tir_text_init(&text, &cx->arena, 0);
    tir_diags_render(&cx->diags, TIR_DIAG_TEXT, &text);
    printf("%s\n", text.ptr);
}

static bool format(struct tir_context *cx, const char *path, tir_str source, struct tir_text *out)
{
    tir_text_init(out, &cx->arena, 0);
    if (tir_front_format(cx, tir_str_of(path), source, out))
        return true;
    printf("FAIL %s does not parse\n", path);
    show(cx);
    return false;
}

// The text without white space.
static tir_str dense(struct tir_context *cx, tir_str s)
{
    struct tir_text text;
    tir_text_init(&text, &cx->arena, 0);
    for (size_t i = 0; i < s.len; i++)
        if (!strchr(" \n\t\r", s.ptr[i]))
            tir_text_char(&text, s.ptr[i]);
    return tir_text_str(&text);
}

// The IR, or nothing when it does not compile.
static tir_str meaning(struct tir_context *cx, tir_str name, tir_str source)
{
    struct tir_module *m;
    struct tir_text text;
    tir_text_init(&text, &cx->arena, 0);
    if (tir_front_module(cx, name, source, NULL, &m))
        tir_print_module(&text, m);
    return tir_text_str(&text);
}

// Formats it twice. Only white space changes.
static bool check_text(struct tir_context *cx, const char *path, tir_str source,
                       struct tir_text *formatted)
{
    struct tir_text once, twice;
    if (!format(cx, path, source, &once) || !format(cx, path, tir_text_str(&once), &twice))
        return false;
    if (strcmp(once.ptr, twice.ptr) != 0) {
        printf("FAIL %s: formatted once\n%s\nand twice\n%s\n", path, once.ptr, twice.ptr);
        return false;
    }
    if (!tir_str_equal(dense(cx, source), dense(cx, tir_text_str(&once)))) {
        printf("FAIL %s: formatting lost or moved something\n%s\n", path, once.ptr);
        return false;
    }
    *formatted = once;
    return true;
}

static bool check_file(struct tir_context *cx, const char *path)
{
    tir_str source = file_read(path);
    struct tir_text once;
    if (!check_text(cx, path, source, &once))
        return false;
    if (!tir_str_equal(meaning(cx, tir_str_of(path), source),
                       meaning(cx, STR("formatted.tir"), tir_text_str(&once)))) {
        printf("FAIL %s: formatting changed what it means\n", path);
        return false;
    }
    return true;
}

// A list of 50000 parts.
static bool check_long(struct tir_context *cx, const char *before, const char *part,
                       const char *after)
{
    struct tir_text source, formatted;
    tir_text_init(&source, &cx->arena, 0);
    tir_text_add(&source, tir_str_of(before));
    for (int i = 0; i < 50000; i++)
        tir_text_add(&source, tir_str_of(part));
    tir_text_add(&source, tir_str_of(after));
    return check_text(cx, before, tir_text_str(&source), &formatted);
}

static bool check_long_lists(struct tir_context *cx, const char *unused)
{
    static const char body[] = "fn f(A: f32) -> f32 { ";
    static const struct {
        const char *before, *part, *after;
    } lists[] = {
        {"kernel k(A: f32[N]", ", A: f32[N]", ") { }"},
        {"kernel k(A: f32[N]", ", // more\n A: f32[N]", ") { }"},
        {"kernel k<A = 1", ", A = 1", ">(A: f32[N]) { }"},
        {"kernel k(A: f32[N])", " config(A = 1)", " { }"},
        {"fn f(A: f32", ", A: f32", ") { }"},
        {"configs c { config(A = 1)", " config(A = 1)", " }"},
        {body, "let a: f32 = A[0:+1]; ", "return A; }"},
        {body, "let a = A; // more\n", "return A; }"},
        {body, "if A { let a: f32 = A[1 + 1 :+ 2]; } ", "return A; }"},
        {body, "if A { } let a: f32 = A ? A : A; ", "return A; }"},
        {"fn f(A: f32) -> f32 { return g(A[0:1]", ", A[0 : 1 + 1]", "); }"},
        {"fn f(A: f32) -> f32 { return (A", ", A ? A : A", ")[0]; }"},
        {"fn f(A: f32) -> f32 { if A { }", " /* more */", " return A; }"},
        {"import \"a\";", "\n\n\nimport \"a\";", ""},
    };
    (void)unused;
    bool ok = true;
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        ok &= check_long(cx, lists[i].before, lists[i].part, lists[i].after);
    return ok;
}

static bool check_golden(struct tir_context *cx, const char *path)
{
    char expected[1024];
    snprintf(expected, sizeof(expected), "%.*s.tir", (int)(strlen(path) - 3), path);
    tir_str want = file_read(expected);
    struct tir_text got;
    if (!want.ptr || !format(cx, path, file_read(path), &got))
        return false;
    if (strcmp(want.ptr, got.ptr) == 0)
        return true;
    printf("FAIL %s formats to\n%s", path, got.ptr);
    return false;
}

typedef bool check_fn(struct tir_context *cx, const char *path);

static bool run_one(const char *path, check_fn *check)
{
    static struct tir_context cx;
    static bool ok;
    ok = false;
    if (setjmp(cx.out_of_memory) == 0) {
        tir_context_init(&cx, NULL);
        ok = check(&cx, path);
    }
    tir_context_finish(&cx);
    return ok;
}

static void run_all(const char *folder, const char *suffix, check_fn *check)
{
    size_t count;
    char **paths = file_list(folder, suffix, &count);
    for (size_t i = 0; i < count; i++) {
        bool ok = run_one(paths[i], check);
        passed += ok;
        failed += !ok;
    }
    if (!count) {
        printf("FAIL %s holds no tests\n", folder);
        failed++;
    }
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    run_all(argv[1], ".in", check_golden);
    for (int i = 1; i < argc; i++)
        run_all(argv[i], ".tir", check_file);
    bool ok = run_one("", check_long_lists);
    passed += ok;
    failed += !ok;
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
