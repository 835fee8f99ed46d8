// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The page of the language: every block ```tir must compile without a diagnostic, and the page has
// each word of the front end's tables.
// Usage: docs_test PAGE (docs/diagnostics.md has a test of its own, with tirc)
#include <ctype.h>
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

static bool has_word(const char *page, const char *word)
{
    const size_t len = strlen(word);
    for (const char *at = page; (at = strstr(at, word)); at += len) {
        const bool begins = at == page || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (begins && !isalnum((unsigned char)at[len]) && at[len] != '_')
            return true;
    }
    return false;
}

static void look_up_words(const char *page)
{
    static const char *const words[] = {
#define BUILTIN(name, ...) #name,
#include "front/lower/builtin.def"
#define NAMED(name) #name,
#include "front/lower/builtin.def"
#define OPTION(statement, name, ...) #name,
#include "front/parse/option.def"
#define CLAUSE(name, ...) #name,
#include "front/parse/clause.def"
    };
    for (size_t i = 0; i < TIR_COUNT_OF(words); i++) {
        const bool ok = has_word(page, words[i]);
        if (!ok)
            printf("FAIL the page does not have the word `%s`\n", words[i]);
        passed += ok;
        failed += !ok;
    }
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    tir_str page = file_read(argv[1]);
    if (!page.ptr)
        return 2;
    run_programs(page.ptr);
    look_up_words(page.ptr);
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed;
}
