// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line: what is taken, what is refused, and that the manual page has every option.

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "arena.h"
#include "driver/file.h"
#include "driver/options.h"

// Splits a command line at its spaces.
static bool parse(const char *line, struct tir_options *out, tir_error *error)
{
    static char copy[256];
    char *argv[32] = {copy};
    int argc = 1;
    snprintf(copy, sizeof(copy), "tirc %s", line);
    for (char *at = copy; *at; at++)
        if (*at == ' ') {
            *at = 0;
            if (at[1])
                argv[argc++] = at + 1;
        }
    return tir_options_parse(&arena, argc, argv, out, error);
}

static struct tir_options sound(const char *line)
{
    struct tir_options options;
    tir_error error;
    if (!parse(line, &options, &error))
        fail_msg("%s: %s", line, error.message);
    return options;
}

static void test_accepted(void **state)
{
    (void)state;
    struct tir_options o = sound("");
    assert_true(o.command == TIR_COMMAND_NONE && !o.args.len);
    o = sound("build a.tir -o - --emit=ptx -D BM=64 -DBN=32 --arch sm_90a -g");
    assert_true(o.command == TIR_COMMAND_BUILD && o.args.len == 1 && o.defines.len == 2);
    assert_string_equal(o.args.at[0], "a.tir");
    assert_string_equal(o.text[TIR_OPTION_OUTPUT], "-");
    assert_string_equal(o.text[TIR_OPTION_ARCH], "sm_90a");
    assert_string_equal(o.defines.at[1], "BN=32");
    assert_true(o.given[TIR_OPTION_DEBUG] && !o.given[TIR_OPTION_KERNEL]);
    o = sound("run a.tir M=3 --check A=randn --time=5 scale=-1");
    assert_true(o.given[TIR_OPTION_COMPARE] && o.number[TIR_OPTION_COMPARE] == 0);
    assert_true(o.integer[TIR_OPTION_TIME] == 5 && o.args.len == 4);
    o = sound("run --check=1e-3 a.tir");
    assert_true(o.number[TIR_OPTION_COMPARE] == 1e-3);
    o = sound("build --receipt a.tir --require=tma,wgmma");
    assert_true(o.given[TIR_OPTION_RECEIPT] && !o.text[TIR_OPTION_RECEIPT] && o.args.len == 1);
    assert_string_equal(o.text[TIR_OPTION_REQUIRE], "tma,wgmma");
    o = sound("check --receipt=json a.tir");
    assert_string_equal(o.text[TIR_OPTION_RECEIPT], "json");
    o = sound("fmt --check -- -x.tir -");
    assert_true(o.given[TIR_OPTION_DRY] && !o.given[TIR_OPTION_COMPARE] && o.args.len == 2);
    o = sound("-h");
    assert_true(o.given[TIR_OPTION_HELP]);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"bild", "no such command: bild; did you mean build?"},
        {"qqqqqq", "no such command: qqqqqq"},
        {"build --emit=gold", "--emit=gold: it is one of artifact|ptx|cubin|llvm|tir|header"},
        {"build --emit=pt", "--emit=pt: it is one of artifact|ptx|cubin|llvm|tir|header"},
        {"build --device=emu", "tirc build has no option --device"},
        {"build --receipt=xml", "--receipt=xml: it is one of text|json"},
        {"build --receipt=", "--receipt=: it is one of text|json"},
        {"run --sede=3", "unknown option --sede=3; did you mean --seed?"},
        {"run --nonsense", "unknown option --nonsense"},
        {"run -q", "unknown option -q"},
        {"run --time=-1", "--time=-1: a whole number from 0 is needed"},
        {"run --time", "--time needs an argument"},
        {"run --check=x", "--check=x: a number from 0 is needed"},
        {"run -D BM", "--define BM: NAME=VALUE is needed"},
        {"run -D =3", "--define =3: NAME=VALUE is needed"},
        {"build --dim N=3 --dim NN=4 --dim N=4", "--dim N is given twice"},
        {"build -D BM=3 -D BMN=4 --define=BM=4", "--define BM is given twice"},
        {"tune --try BM=3 --try BM=4", "--try BM is given twice"},
        {"run --json=yes", "--json takes no argument"},
    };
    for (size_t i = 0; i < TIR_COUNT_OF(cases); i++) {
        struct tir_options options;
        tir_error error = {0};
        if (parse(cases[i].line, &options, &error))
            fail_msg("%s was accepted", cases[i].line);
        assert_string_equal(error.message, cases[i].message);
    }
}

// No option takes an empty argument.
static void test_empty(void **state)
{
    (void)state;
    enum { FLAG, TEXT, CHOICE, WORD, INT, LIST, RATIO };
    static const char *const commands[] = {
        [TIR_COMMAND_NONE] = "",
#define COMMAND(id, name, ...) [TIR_COMMAND_##id] = #name,
#define OPTION(...)
#include "driver/options.def"
    };
#define COMMANDS_OF(id) id = 1u << TIR_COMMAND_##id
    enum {
        COMMANDS_OF(NONE),
#define COMMAND(id, ...) COMMANDS_OF(id),
#define OPTION(...)
#include "driver/options.def"
    };
    static const struct {
        const char *name;
        int kind;
        uint32_t commands;
    } rows[] = {
#define COMMAND(...)
#define OPTION(id, name, letter, kind, argument, commands, meaning) {name, kind, commands},
#include "driver/options.def"
    };
    for (size_t i = 0; i < TIR_COUNT_OF(rows); i++)
        for (uint32_t c = 0; c < TIR_COMMAND_COUNT; c++) {
            char line[128];
            struct tir_options options;
            tir_error error = {0};
            snprintf(line, sizeof(line), "%s --%s=", commands[c], rows[i].name);
            if (rows[i].kind != FLAG && rows[i].commands >> c & 1 && parse(line, &options, &error))
                fail_msg("%s was accepted", line);
        }
}

// Every command and option is in the manual page.
static void test_manual(void **state)
{
    (void)state;
    char *page;
    size_t size;
    tir_error error;
    assert_true(tir_file_read(TIR_MANUAL, 1 << 20, &page, &size, &error));
    static const char *const commands[] = {
#define COMMAND(id, name, ...) ".It Cm " #name,
#define OPTION(...)
#include "driver/options.def"
    };
    for (size_t i = 0; i < TIR_COUNT_OF(commands); i++)
        if (!strstr(page, commands[i]))
            fail_msg("%s lacks %s", TIR_MANUAL, commands[i]);
    static const char *const names[] = {
#define COMMAND(...)
#define OPTION(id, name, ...) name,
#include "driver/options.def"
    };
    for (size_t i = 0; i < TIR_COUNT_OF(names); i++) {
        char item[128];
        size_t len = (size_t)snprintf(item, sizeof(item), "Fl -%s", names[i]);
        const char *at = strstr(page, item);
        while (at && at[len] != ' ' && at[len] != '\n') // the start of a longer name
            at = strstr(at + 1, item);
        if (!at)
            fail_msg("%s lacks --%s", TIR_MANUAL, names[i]);
    }
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_manual),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
