// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// IR text after every pass. Usage: roundtrip_test FOLDER...
//
// Every kernel of every .tir file in the folders is run through
// the pipeline up to each pass in turn. What is printed then must be read back, must be verified,
// and must print the same.
#include <setjmp.h>

#include "files.h"
#include "front/front.h"
#include "machine/target.h"

static int passed, failed;

static void show(struct tir_context *cx)
{
    struct tir_text text;
    tir_text_init(&text, &cx->arena, 0);
    tir_diags_render(&cx->diags, TIR_DIAG_TEXT, &text);
    printf("%s\n", text.ptr);
}

static bool front(struct tir_context *cx, const char *path, struct tir_module **m)
{
    return tir_front_module(cx, tir_str_of(path), file_read(path), NULL, m);
}

static void print_first_difference(const char *a, const char *b)
{
    size_t begin = 0, i = 0;
    for (; a[i] && a[i] == b[i]; i++)
        begin = a[i] == '\n' ? i + 1 : begin;
    printf("- %.*s\n+ %.*s\n", (int)strcspn(a + begin, "\n"), a + begin,
           (int)strcspn(b + begin, "\n"), b + begin);
}

static bool reads_back(struct tir_context *cx, const struct tir_module *m)
{
    struct tir_text first, second;
    struct tir_module *again;
    tir_text_init(&first, &cx->arena, 0);
    tir_text_init(&second, &cx->arena, 0);
    tir_print_module(&first, m);
    if (!tir_front_module(cx, STR("printed.tir"), tir_text_str(&first), NULL, &again)) {
        show(cx);
        return false;
    }
    tir_print_module(&second, again);
    if (strcmp(first.ptr, second.ptr) == 0)
        return true;
    print_first_difference(first.ptr, second.ptr);
    return false;
}

static bool check(struct tir_context *cx, const char *path, const char *pass)
{
    struct tir_module *m;
    if (!front(cx, path, &m)) {
        show(cx);
        return false;
    }
    struct tir_pass_cx pass_cx = {
        .scratch = &cx->scratch, .diags = &cx->diags, .arch = tir_target_find(STR("sm_90"))};
    struct tir_pass_options options = {.stop_after = tir_str_of(pass), .bisect = -1};
    vec_foreach(struct tir_func *, it, &m->funcs)
        if (!tir_run_passes(*it, &pass_cx, &options))
            return true; // refused: the passes' own tests are about that
    return reads_back(cx, m);
}

// Nothing here changes between setjmp and a jump back to it.
static bool run_one(const char *path, const char *pass)
{
    static struct tir_context cx;
    static bool ok;
    ok = false;
    if (setjmp(cx.out_of_memory) == 0) {
        tir_context_init(&cx, NULL);
        ok = check(&cx, path, pass);
    }
    tir_context_finish(&cx);
    if (!ok)
        printf("FAIL %s after %s\n", path, pass);
    return ok;
}

static void run_folder(const char *folder)
{
    size_t count;
    char **paths = file_list(folder, ".tir", &count);
    for (size_t i = 0; i < count; i++)
        for (uint32_t pass = 0; pass < tir_pipeline_count; pass++) {
            bool ok = run_one(paths[i], tir_passes[pass].name);
            passed += ok;
            failed += !ok;
        }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        run_folder(argv[i]);
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed;
}
