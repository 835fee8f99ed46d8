// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The programs in the pages of the language. Usage: docs_test diagnostics.md PAGE...
//
// In every page, a block ```tir must compile. In the first,
// a block ```tir wrong CODE must give that code first, and nothing of another code; a block
// ```tir right CODE must compile without a diagnostic. Every diagnostic of the front end has both,
// but for those that cannot be shown in a text.
#include <setjmp.h>

#include "files.h"
#include "front/front.h"

static int passed, failed;
static bool has_wrong[TIR_DIAG_COUNT], has_right[TIR_DIAG_COUNT];

static int code_of(const char *name)
{
    for (int i = 0; i < TIR_DIAG_COUNT; i++)
        if (strncmp(tir_diag_infos[i].code, name, 5) == 0)
            return i;
    return TIR_DIAG_COUNT;
}

static bool import(void *user, tir_str from, tir_str path, tir_str *name, tir_str *text)
{
    static const char twice[] = "fn twice(v) { return v * 2; }\n";
    (void)user;
    (void)from;
    *name = path;
    *text = (tir_str){twice, sizeof(twice) - 1};
    return path.len == strlen("twice.tir") && memcmp(path.ptr, "twice.tir", path.len) == 0;
}

// code TIR_DIAG_COUNT: the source must compile.
static bool check(struct tir_context *cx, tir_str source, bool wrong, int code)
{
    static char kernel[64];
    struct tir_front_options o = {.import = import};
    struct tir_module *m;
    if (sscanf(source.ptr, "// kernel %63s", kernel) == 1)
        o.kernel = kernel;
    bool compiles = tir_front_module(cx, STR("example.tir"), source, &o, &m);
    bool is_error = wrong && tir_diag_infos[code].severity == TIR_ERROR;
    bool ok = wrong ? compiles == !is_error && cx->diags.list.len : compiles && !cx->diags.list.len;
    vec_foreach(struct tir_diag *, it, &cx->diags.list)
        ok &= (int)(*it)->code == code;
    if (!ok) {
        struct tir_text text;
        tir_text_init(&text, &cx->arena, 0);
        tir_diags_render(&cx->diags, TIR_DIAG_TEXT, &text);
        printf("%s\n", text.ptr);
    }
    return ok;
}

// Nothing here changes between setjmp and a jump back to it.
static void run(tir_str source, bool wrong, int code)
{
    static struct tir_context cx;
    static bool ok;
    ok = false;
    if (setjmp(cx.out_of_memory) == 0) {
        tir_context_init(&cx, NULL);
        ok = check(&cx, source, wrong, code);
    }
    tir_context_finish(&cx);
    passed += ok;
    failed += !ok;
    if (!ok)
        printf("FAIL the %s example of %s\n%.*s\n", wrong ? "wrong" : "right",
               code < TIR_DIAG_COUNT ? tir_diag_infos[code].code : "the page", (int)source.len,
               source.ptr);
}

static void run_diagnostics(const char *page)
{
    static const char fence[] = "\n```tir ";
    for (const char *at = page; (at = strstr(at, fence));) {
        at += sizeof(fence) - 1;
        bool wrong = strncmp(at, "wrong ", 6) == 0;
        int code = code_of(at + 6);
        const char *begin = strchr(at, '\n'), *end = begin ? strstr(begin, "\n```") : NULL;
        if (!end || code == TIR_DIAG_COUNT) {
            printf("FAIL a block that is not closed, or of an unknown code: %.20s\n", at);
            failed++;
            return;
        }
        *(wrong ? &has_wrong[code] : &has_right[code]) = true;
        run((tir_str){begin + 1, (size_t)(end - begin)}, wrong, code);
        at = end + 4;
    }
}

static void run_programs(const char *page)
{
    static const char fence[] = "\n```tir\n";
    for (const char *at = page; (at = strstr(at, fence));) {
        at += sizeof(fence) - 1;
        const char *end = strstr(at, "\n```");
        if (!end)
            return;
        run((tir_str){at, (size_t)(end - at)}, false, TIR_DIAG_COUNT);
        at = end + 4;
    }
}

// What passes report, and what a page of text cannot show.
static bool needs_none(enum tir_diag_code code)
{
    static const enum tir_diag_code none[] = {TIR_E_FILE_SIZE,    TIR_E_UTF8,
                                              TIR_E_SHARED_LIMIT, TIR_E_UNSUPPORTED,
                                              TIR_E_REGISTERS,    TIR_E_CODEGEN};
    for (size_t i = 0; i < TIR_COUNT_OF(none); i++)
        if (none[i] == code)
            return true;
    return tir_diag_infos[code].severity == TIR_REMARK;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        tir_str page = file_read(argv[i]);
        if (!page.ptr)
            return 2;
        if (i == 1)
            run_diagnostics(page.ptr);
        run_programs(page.ptr);
    }
    for (int code = 0; code < TIR_DIAG_COUNT; code++)
        if ((!has_wrong[code] || !has_right[code]) && !needs_none((enum tir_diag_code)code)) {
            printf("FAIL %s lacks an example\n", tir_diag_infos[code].code);
            failed++;
        }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
