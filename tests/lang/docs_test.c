// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The programs in the pages of the language: every block ```tir must compile without a diagnostic.
// Usage: docs_test PAGE... (docs/diagnostics.md has a test of its own, with tirc)
#include <setjmp.h>

#include "files.h"
#include "front/front.h"

static int passed, failed;

static bool check(struct tir_context *cx, tir_str source)
{
    struct tir_front_options o = {0};
    struct tir_module *m;
    if (tir_front_module(cx, STR("example.tir"), source, &o, &m) && !cx->diags.list.len)
        return true;
    struct tir_text text;
    tir_text_init(&text, &cx->arena, 0);
    tir_diags_render(&cx->diags, TIR_DIAG_TEXT, &text);
    printf("%s\nFAIL an example of the page\n" STR_FMT, text.ptr, STR_ARG(source));
    return false;
}

// Nothing here changes between setjmp and a jump back to it.
static void run(tir_str source)
{
    static struct tir_context cx;
    static bool ok;
    ok = false;
    if (setjmp(cx.out_of_memory) == 0) {
        tir_context_init(&cx, NULL);
        ok = check(&cx, source);
    }
    tir_context_finish(&cx);
    passed += ok;
    failed += !ok;
}

static void run_programs(const char *page)
{
    static const char fence[] = "\n```tir\n";
    for (const char *at = page; (at = strstr(at, fence));) {
        at += sizeof(fence) - 1;
        const char *end = strstr(at, "\n```");
        if (!end) {
            printf("FAIL a block that is not closed: %.20s\n", at);
            failed++;
            return;
        }
        run((tir_str){at, (size_t)(end - at)});
        at = end + 4;
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        tir_str page = file_read(argv[i]);
        if (!page.ptr)
            return 2;
        run_programs(page.ptr);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed;
}
