// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the compiler runs ptxas, with programs in its place: in hosts that ignore their children's
// ends or have closed their standard streams, and where it fails or stops in the middle.

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tir/artifact.h"
#include "tir/compiler.h"

#define STR(text) ((tir_str){text, sizeof(text) - 1})

enum { FILE_SIZE = 64 + 2 * 64 + 24, TABLE = 64, SECOND = TABLE + 64 };

static char folder[] = "/tmp/ptxasXXXXXX";
static char here[4096];

static void write_file(const char *name, const void *bytes, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

// A ptxas that reads all and then does `what`.
static void pretend(const char *what)
{
    char script[1024];
    int size =
        snprintf(script, sizeof script, "#!/bin/sh\ncat >/dev/null\ncd %s\n%s\n", folder, what);
    write_file("ptxas", script, (size_t)size);
}

// An ELF file of two sections, 24 bytes in the second one.
static void write_cubin(void)
{
    uint8_t file[FILE_SIZE] = "\177ELF\2\1";
    file[40] = TABLE;
    file[60] = 2;
    file[SECOND + 4] = 1;
    file[SECOND + 24] = FILE_SIZE - 24;
    file[SECOND + 32] = 24;
    write_file("cubin", file, sizeof file);
}

static tir_status assemble(char message[248])
{
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.outputs = 1u << TIR_OUTPUT_CUBIN;
    tir_compilation *c = NULL;
    tir_error error = {TIR_OK, 0, ""};
    tir_status status =
        tir_compile(STR("k.tir"),
                    STR("kernel k(Y: out f32[N]) { for i in tiles(N by 64) { Y[i:+64] = 1.0; } }"),
                    &options, &c, &error);
    if (status == TIR_OK)
        assert_int_equal(tir_compilation_output(c, TIR_OUTPUT_CUBIN).len, FILE_SIZE);
    snprintf(message, 248, "%s", error.message);
    tir_compilation_destroy(c);
    return status;
}

static void succeeds(void)
{
    char message[248];
    if (assemble(message))
        fail_msg("%s", message);
}

static void fails(const char *why)
{
    char message[248], expected[248];
    snprintf(expected, sizeof expected, "%s/ptxas: %s", folder, why);
    assert_int_equal(assemble(message), TIR_ERR_UNSUPPORTED);
    assert_string_equal(message, expected);
}

static void its_result_is_the_cubin(void **state)
{
    (void)state;
    pretend("cat cubin");
    succeeds();
}

static void its_failure_is_one_line(void **state)
{
    (void)state;
    pretend(
        "echo 'ptxas info : hello' >&2; printf 'ptxas fatal : \\033[31mred\\nmore\\n' >&2; exit 3");
    fails("ptxas fatal : \xef\xbf\xbd[31mred");
    pretend("printf 'ptxas info    : 0 bytes gmem\\n    8 bytes stack frame\\n' >&2");
    fails("no cubin came out, and no reason");
    pretend("cat cubin; exit 1");
    fails("no cubin came out, and no reason");
    pretend("kill -9 $$");
    fails("no cubin came out, and no reason");
}

static void half_a_cubin_is_none(void **state)
{
    (void)state;
    pretend("head -c 215 cubin");
    fails("no cubin came out, and no reason");
    pretend("head -c 100 cubin");
    fails("no cubin came out, and no reason");
    pretend("head -c 63 cubin");
    fails("no cubin came out, and no reason");
    pretend("exit 0");
    fails("no cubin came out, and no reason");
}

// A cubin beside the PTX in the artifact, for a GPU that runs the target's code.
static tir_status build(const char *arch, const char *cubin, tir_compilation **out,
                        tir_error *error)
{
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.arch = (tir_str){arch, strlen(arch)};
    options.cubin_arch = (tir_str){cubin, strlen(cubin)};
    return tir_compile(
        STR("k.tir"),
        STR("kernel k(Y: out f32[N]) { for i in tiles(N by 64) { Y[i:+64] = 1.0; } }"), &options,
        out, error);
}

// Of slow code: the receipt says it under the kernel, once for each code.
static void its_notes_are_in_the_receipt(void **state)
{
    (void)state;
    pretend("say() { echo \"ptxas info    : $*\" >&2; }\n"
            "say \"(C7514) Potential Performance Loss: products wait in the function 'k'\"\n"
            "say \"(C7517) a wait around line 5 in function 'k'\"\n"
            "say \"(C7517) a wait around line 7 in function 'k'\"\n"
            "say \"(C7512) few registers for the function 'k'\"\n"
            "say \"(C7519) a fence in function 'other'\"\n"
            "say \"(C7508) registers stay\"\n"
            "say \"(C7999) hello\"\n"
            "say \"Compiling entry function 'k' for 'sm_90a'\"\n"
            "say \"Used 12 registers\"\n"
            "cat cubin");
    tir_compilation *c;
    tir_error error;
    assert_int_equal(build("sm_90a", "sm_90a", &c, &error), TIR_OK);
    const tir_str text = tir_compilation_output(c, TIR_OUTPUT_RECEIPT);
    assert_non_null(strstr(text.ptr, "  12 registers, 0 bytes of stack, 0 bytes spilled\n"
                                     "  ptxas: C7514: products wait\n"
                                     "  ptxas: C7517: a wait around line 5\n"
                                     "  ptxas: C7512: few registers\n"
                                     "  ptxas: C7508: registers stay\n"));
    assert_null(strstr(text.ptr, "C7519"));
    assert_null(strstr(text.ptr, "C7999"));
    tir_compilation_destroy(c);
}

static void it_is_put_into_the_artifact(void **state)
{
    (void)state;
    static const char *const good[][2] = {
        {"sm_90a", "sm_90a"}, {"sm_80", "sm_80"}, {"sm_80", "sm_90"}, {"sm_80", "sm_90a"}};
    static const char *const bad[][2] = {
        {"sm_90a", "sm_100a"}, {"sm_90a", "sm_90"}, {"sm_90a", "sm_80"}, {"sm_90", "sm_80"}};
    tir_compilation *c;
    tir_error error;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const tir_artifact_desc *desc;
        char script[128];
        snprintf(script, sizeof script,
                 "case \" $* \" in *' -arch=%s '*) cat cubin;; *) echo \"error: $*\" >&2;; esac",
                 good[i][1]);
        pretend(script);
        if (build(good[i][0], good[i][1], &c, &error))
            fail_msg("%s", error.message);
        const tir_str bytes = tir_compilation_output(c, TIR_OUTPUT_ARTIFACT);
        assert_int_equal(tir_artifact_decode(bytes.ptr, bytes.len, NULL, &desc, &error), TIR_OK);
        assert_string_equal(desc->target.ptr, good[i][0]);
        assert_string_equal(desc->cubin_arch.ptr, good[i][1]);
        assert_int_equal(desc->cubin.len, FILE_SIZE);
        assert_true(desc->ptx.len > 0);
        tir_artifact_free(desc, NULL);
        tir_compilation_destroy(c);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char message[128];
        snprintf(message, sizeof message, "a cubin for %s cannot be made of code for %s", bad[i][1],
                 bad[i][0]);
        assert_int_equal(build(bad[i][0], bad[i][1], &c, &error), TIR_ERR_INVALID);
        assert_string_equal(error.message, message);
    }
    assert_int_equal(build("sm_80", "sm_81", &c, &error), TIR_ERR_INVALID);
    // It was asked for, so it is not left out.
    pretend("echo 'ptxas fatal : no' >&2; exit 1");
    assert_int_equal(build("sm_80", "sm_80", &c, &error), TIR_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "ptxas fatal : no"));
}

// A daemon ignores SIGCHLD, so that no child leaves a status.
static void nobody_waits_for_children(void **state)
{
    (void)state;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGCHLD, &ignore, &before);
    pretend("cat cubin");
    succeeds();
    pretend("head -c 215 cubin; echo 'error: no space' >&2; exit 1");
    fails("error: no space");
    sigaction(SIGCHLD, &before, NULL);
}

// The signals of the host are not those of its children: one that is stopped by a pipe ends.
static void signals_are_not_inherited(void **state)
{
    (void)state;
    sigset_t all, before;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    sigaction(SIGPIPE, &ignore, &old);
    pretend("kill -PIPE $$; cat cubin");
    fails("no cubin came out, and no reason");
    sigaction(SIGPIPE, &old, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

// Its ends of the pipes have low numbers then.
static void the_standard_streams_are_closed(void **state)
{
    (void)state;
    pretend("cat cubin");
    for (int closed = 1; closed < 8; closed++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            char message[248];
            for (int fd = 0; fd < 3; fd++)
                if (closed >> fd & 1)
                    close(fd);
            _exit(assemble(message) == TIR_OK ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_result_is_the_cubin),
        cmocka_unit_test(its_failure_is_one_line),
        cmocka_unit_test(half_a_cubin_is_none),
        cmocka_unit_test(its_notes_are_in_the_receipt),
        cmocka_unit_test(it_is_put_into_the_artifact),
        cmocka_unit_test(nobody_waits_for_children),
        cmocka_unit_test(signals_are_not_inherited),
        cmocka_unit_test(the_standard_streams_are_closed),
    };
    if (!mkdtemp(folder))
        return 1;
    snprintf(here, sizeof here, "%s:%s", folder, getenv("PATH"));
    setenv("PATH", here, 1);
    write_cubin();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char path[128];
    static const char *const files[] = {"ptxas", "cubin"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
    return failed;
}
