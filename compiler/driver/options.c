// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the command line by the rows of options.def, and prints them as help.
#include "driver/options.h"

#include <getopt.h>
#include <stdio.h>

#include "driver/fail.h"
#include "driver/value/number.h"

enum kind { FLAG, TEXT, CHOICE, WORD, INT, LIST, RATIO };

#define NONE    (1u << TIR_COMMAND_NONE)
#define BUILD   (1u << TIR_COMMAND_BUILD)
#define RUN     (1u << TIR_COMMAND_RUN)
#define CHECK   (1u << TIR_COMMAND_CHECK)
#define EMU     (1u << TIR_COMMAND_EMU)
#define TRACE   (1u << TIR_COMMAND_TRACE)
#define EXPLAIN (1u << TIR_COMMAND_EXPLAIN)
#define TUNE    (1u << TIR_COMMAND_TUNE)
#define FMT     (1u << TIR_COMMAND_FMT)

static const struct {
    const char *name;
    char letter;
    enum kind kind;
    const char *argument;
    uint32_t commands;
    const char *meaning;
} rows[TIR_OPTION_COUNT] = {
#define COMMAND(...)
#define OPTION(id, name, letter, kind, argument, commands, meaning) \
    {name, letter, kind, argument, commands, meaning},
#include "driver/options.def"
};

static const struct {
    const char *name, *arguments, *meaning;
} commands[TIR_COMMAND_COUNT] = {
    {"", "COMMAND ...", "a compiler for tile kernels on NVIDIA GPUs"},
#define COMMAND(id, name, arguments, meaning) {#name, arguments, meaning},
#define OPTION(...)
#include "driver/options.def"
};

static bool allowed(uint32_t row, enum tir_command command)
{
    return rows[row].commands & (1u << command);
}

// ---- parsing

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = words; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (!strncmp(at, word, len) && (at[len] == '|' || !at[len]))
            return len > 0;
    }
    return false;
}

struct texts {
    const char *const *at;
    uint32_t count;
};

// What has been given for an option that may be given several times, the last one included.
static struct texts push(struct tir_arena *arena, struct tir_options *out, uint32_t row,
                         const char *text)
{
    if (row == TIR_OPTION_DIM) {
        vec_push(arena, &out->dims, text);
        return (struct texts){out->dims.at, out->dims.len};
    }
    if (row == TIR_OPTION_TRY) {
        vec_push(arena, &out->tries, text);
        return (struct texts){out->tries.at, out->tries.len};
    }
    vec_push(arena, &out->defines, text);
    return (struct texts){out->defines.at, out->defines.len};
}

// Has another NAME=VALUE but the last of the list this one's name?
static bool is_named_before(struct texts texts, const char *text)
{
    const size_t name = strcspn(text, "=");
    for (uint32_t i = 0; i + 1 < texts.count; i++)
        if (strncmp(texts.at[i], text, name + 1) == 0)
            return true;
    return false;
}

static bool take_named(struct tir_arena *arena, struct tir_options *out, uint32_t row,
                       const char *text, tir_error *error)
{
    const char *name = rows[row].name;
    if (!strchr(text, '=') || text[0] == '=')
        return tir_fail(error, TIR_ERR_INVALID, "--%s %s: NAME=VALUE is needed", name, text);
    return !is_named_before(push(arena, out, row, text), text) ||
           tir_fail(error, TIR_ERR_INVALID, "--%s %.*s is given twice", name,
                    (int)strcspn(text, "="), text);
}

static bool take(struct tir_arena *arena, struct tir_options *out, uint32_t row, const char *text,
                 tir_error *error)
{
    const char *name = rows[row].name;
    out->given[row] = true;
    out->text[row] = text;
    switch (rows[row].kind) {
    case FLAG:
        return true;
    case TEXT: // one that is empty is a variable that the shell has not
        return *text || tir_fail(error, TIR_ERR_INVALID, "--%s= needs an argument", name);
    case WORD:
    case CHOICE:
        if ((!text && rows[row].kind == WORD) || has_word(rows[row].argument, text))
            return true;
        return tir_fail(error, TIR_ERR_INVALID, "--%s=%s: it is one of %s", name, text,
                        rows[row].argument);
    case INT:
        if (tir_parse_int(tir_str_of(text), &out->integer[row]) && out->integer[row] >= 0)
            return true;
        return tir_fail(error, TIR_ERR_INVALID, "--%s=%s: a whole number from 0 is needed", name,
                        text);
    case LIST:
        return take_named(arena, out, row, text, error);
    case RATIO:
        if (!text || (tir_parse_float(tir_str_of(text), &out->number[row]) &&
                      out->number[row] >= 0 && out->number[row] < 1e300))
            return true;
        return tir_fail(error, TIR_ERR_INVALID, "--%s=%s: a number from 0 is needed", name, text);
    }
    tir_unreachable();
}

// An option that getopt does not know here: say where it belongs, or what it may have meant.
static bool unknown(const struct tir_options *options, const char *given, tir_error *error)
{
    tir_str name = tir_str_of(given + (given[0] == '-') + (given[0] == '-' && given[1] == '-'));
    const char *equals = memchr(name.ptr, '=', name.len);
    if (equals)
        name.len = (size_t)(equals - name.ptr);
    struct tir_nearest near = tir_nearest_to(name, 2);
    for (uint32_t row = 0; row < TIR_OPTION_COUNT; row++) {
        if (allowed(row, options->command))
            tir_nearest_try(&near, tir_str_of(rows[row].name));
        else if (tir_str_is(name, rows[row].name) && !(rows[row].commands & NONE))
            return tir_fail(error, TIR_ERR_INVALID, "tirc %s has no option --%s",
                            commands[options->command].name, rows[row].name);
    }
    if (near.name.ptr)
        return tir_fail(error, TIR_ERR_INVALID, "unknown option %s; did you mean --%s?", given,
                        near.name.ptr);
    return tir_fail(error, TIR_ERR_INVALID, "unknown option %s", given);
}

static bool no_such_command(const char *given, tir_error *error)
{
    struct tir_nearest near = tir_nearest_to(tir_str_of(given), 2);
    for (uint32_t i = 1; i < TIR_COMMAND_COUNT; i++)
        tir_nearest_try(&near, tir_str_of(commands[i].name));
    return tir_fail(error, TIR_ERR_INVALID, "no such command: %s" TIR_NEAREST_FMT, given,
                    TIR_NEAREST_ARG(near));
}

struct table { // getopt's view of the rows of one command
    struct option longs[TIR_OPTION_COUNT + 1];
    char letters[2 * TIR_OPTION_COUNT + 3];
};

static struct table table_of(enum tir_command command)
{
    struct table table = {0};
    uint32_t count = 0, letters = 0;
    table.letters[letters++] = ':';
    for (uint32_t row = 0; row < TIR_OPTION_COUNT; row++) {
        if (!allowed(row, command))
            continue;
        bool optional = rows[row].kind == RATIO || rows[row].kind == WORD;
        int argument = rows[row].kind == FLAG ? no_argument
                       : optional             ? optional_argument
                                              : required_argument;
        table.longs[count++] = (struct option){rows[row].name, argument, NULL, 256 + (int)row};
        if (rows[row].letter) {
            table.letters[letters++] = rows[row].letter;
            if (argument == required_argument)
                table.letters[letters++] = ':';
        }
    }
    return table;
}

static uint32_t row_of(int value)
{
    for (uint32_t row = 0; value < 256 && row < TIR_OPTION_COUNT; row++)
        if (rows[row].letter == value)
            return row;
    return (uint32_t)(value - 256);
}

bool tir_options_parse(struct tir_arena *arena, int argc, char **argv, struct tir_options *out,
                       tir_error *error)
{
    *out = (struct tir_options){.command = TIR_COMMAND_NONE};
    if (argc > 1 && argv[1][0] != '-') {
        for (uint32_t i = 1; i < TIR_COMMAND_COUNT; i++)
            if (!strcmp(argv[1], commands[i].name))
                out->command = (enum tir_command)i;
        if (out->command == TIR_COMMAND_NONE)
            return no_such_command(argv[1], error);
        argc--;
        argv++;
    }
    struct table table = table_of(out->command);
    opterr = 0;
    optind = 0; // glibc and musl: start anew
    int value;
    while ((value = getopt_long(argc, argv, table.letters, table.longs, NULL)) != -1) {
        if (value == ':')
            return tir_fail(error, TIR_ERR_INVALID, "%s needs an argument", argv[optind - 1]);
        if (value == '?' && optopt >= 256) // a flag with an argument
            return tir_fail(error, TIR_ERR_INVALID, "--%s takes no argument",
                            rows[row_of(optopt)].name);
        if (value == '?' && optopt)
            return tir_fail(error, TIR_ERR_INVALID, "unknown option -%c", optopt);
        if (value == '?')
            return unknown(out, argv[optind - 1], error);
        if (!take(arena, out, row_of(value), optarg, error))
            return false;
    }
    for (; optind < argc; optind++)
        vec_push(arena, &out->args, argv[optind]);
    return true;
}

// ---- help

// One option as it is written: "-D, --define=META=VALUE".
static tir_str spelling(struct tir_arena *arena, uint32_t row)
{
    const char *argument = rows[row].argument;
    char letter[8] = "";
    if (rows[row].letter)
        snprintf(letter, sizeof(letter), "-%c, ", rows[row].letter);
    switch (rows[row].kind) {
    case FLAG:
        return tir_str_format(arena, "%s--%s", letter, rows[row].name);
    case WORD:
    case RATIO:
        return tir_str_format(arena, "%s--%s[=%s]", letter, rows[row].name, argument);
    case LIST:
        if (rows[row].letter)
            return tir_str_format(arena, "-%c %s", rows[row].letter, argument);
        return tir_str_format(arena, "--%s %s", rows[row].name, argument);
    case TEXT:
    case CHOICE:
    case INT:
        return tir_str_format(arena, "%s--%s=%s", letter, rows[row].name, argument);
    }
    tir_unreachable();
}

// `text` from column 26 on, broken between words before column 80.
static void wrap(struct tir_text *out, const char *text)
{
    size_t column = 26;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column > 26 && column + 1 + word > 80) {
            tir_text_format(out, "\n%26s", "");
            column = 26;
        } else if (column > 26) {
            tir_text_char(out, ' ');
            column++;
        }
        tir_text_add(out, (tir_str){text, word});
        column += word;
        text += word + strspn(text + word, " ");
    }
    tir_text_char(out, '\n');
}

static void help_line(struct tir_text *out, tir_str left, const char *right)
{
    tir_text_format(out, "  " STR_FMT, STR_ARG(left));
    if (left.len + 2 >= 26)
        tir_text_format(out, "\n%26s", "");
    else
        tir_text_format(out, "%*s", (int)(26 - 2 - left.len), "");
    wrap(out, right);
}

uint64_t tir_options_seed(const struct tir_options *options)
{
    return options->given[TIR_OPTION_SEED] ? (uint64_t)options->integer[TIR_OPTION_SEED] : 1;
}

void tir_options_help(enum tir_command command, struct tir_text *out)
{
    bool top = command == TIR_COMMAND_NONE;
    tir_text_format(out, "usage: tirc %s%s%s\n%s\n\n", commands[command].name, top ? "" : " ",
                    commands[command].arguments, commands[command].meaning);
    for (uint32_t i = 1; top && i < TIR_COMMAND_COUNT; i++)
        help_line(out, tir_str_format(out->arena, "%s %s", commands[i].name, commands[i].arguments),
                  commands[i].meaning);
    tir_text_add(out, top ? STR("\n") : STR(""));
    for (uint32_t row = 0; row < TIR_OPTION_COUNT; row++)
        if (allowed(row, command))
            help_line(out, spelling(out->arena, row), rows[row].meaning);
    if (command == TIR_COMMAND_RUN)
        tir_text_add(out,
                     STR("\nNAME=VALUE gives a dimension (M=512), a scalar (scale=0.125) or a "
                         "tensor:\n  A=randn, rand[:LO:HI], randint:LO:HI, zeros, ones, arange, "
                         "full:X, @in.npy\n  A=randn,pad=3 (row stride), strides=520x1, "
                         "offset=1 (elements), save=FILE\n  D=@out.npy (an output)\n"));
    if (command == TIR_COMMAND_TUNE)
        tir_text_add(
            out, STR("\nSizes are one after the other (M=16,64), doubled (M=16..512) or the same "
                     "for\nseveral (M=N=K=4096); a name that comes again begins new ones, which "
                     "take over\nthe others. What follows from others may be left out, and X: "
                     "f32[2 * N] takes N.\nScalars and tensors are given as for tirc run.\n"));
    if (command == TIR_COMMAND_TRACE)
        tir_text_add(out,
                     STR("\nThe words after the file are those of tirc run, or of tirc emu for a "
                         "file of PTX.\n"));
    if (command == TIR_COMMAND_EMU)
        tir_text_add(out, STR("\nARG is one parameter of the kernel, in order:\n"
                              "  f32=1.5, i32=7, u64=0x10 and so on: a number of any type\n"
                              "  buf:bf16[256,64]=randn, the address of a buffer; contents as for "
                              "tirc run,\n  or none: uninitialised. At the end, ->out.npy is where "
                              "it is written\n"
                              "  tmap:0:box=64x128:swizzle=128, a tensor map of argument 0, the "
                              "first; also\n  step=1x2, interleave=16|32, fill=nan. mem:... is a "
                              "buffer as buf:..., but no parameter\n"));
    if (top)
        tir_text_add(out, STR("\ntirc COMMAND --help prints the options of a command.\n"));
    tir_text_add(out, STR("Exit status: 0 fine; 1 wrong result or device fault; 2 wrong usage or "
                          "source.\n"));
}

// `|` ends a cell of a Markdown table, so it is escaped.
static void cell(struct tir_text *out, tir_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '|')
            tir_text_char(out, '\\');
        tir_text_char(out, text.ptr[i]);
    }
}

void tir_options_markdown(struct tir_text *out)
{
    tir_text_add(out, STR("# Options of tirc\n\nPrinted by `tirc --help-options`.\n"));
    for (uint32_t command = 0; command < TIR_COMMAND_COUNT; command++) {
        const char *name = commands[command].name;
        tir_text_format(out,
                        "\n## tirc%s%s\n\n`tirc %s%s%s`: %s.\n\n| option | meaning |\n|---|---|\n",
                        *name ? " " : "", name, name, *name ? " " : "", commands[command].arguments,
                        commands[command].meaning);
        for (uint32_t row = 0; row < TIR_OPTION_COUNT; row++) {
            if (!allowed(row, (enum tir_command)command))
                continue;
            tir_text_char(out, '|');
            tir_text_add(out, STR(" `"));
            cell(out, spelling(out->arena, row));
            tir_text_add(out, STR("` | "));
            cell(out, tir_str_of(rows[row].meaning));
            tir_text_add(out, STR(" |\n"));
        }
    }
}
