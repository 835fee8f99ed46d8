// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tirc: reads the command line, runs the command, ends with its exit status.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver/command/command.h"
#include "driver/command/tables.h"
#include "driver/file.h"
#include "driver/say.h"
#include "emu/decode/help.h"
#include "front/help.h"
#include "machine/help.h"
#include "pass/help.h"

static TIR_NORETURN void out_of_memory(void *user)
{
    (void)user;
    fputs("tirc: out of memory\n", stderr);
    exit(TIR_EXIT_USAGE);
}

static void version(struct tir_text *out)
{
    tir_text_add(out, STR("tirc " TIR_VERSION " (LLVM " TIR_LLVM_VERSION ")\n"));
}

static void help(struct tir_text *out)
{
    tir_options_help(TIR_COMMAND_NONE, out);
}

static void add_text(void *user, const char *text, size_t size)
{
    tir_text_add(user, (tir_str){text, size});
}

static void help_ptx(struct tir_text *out)
{
    emu_help_ptx(add_text, out);
}

// Prints what was asked for without a command.
static enum tir_exit about(struct tir_arena *arena, const struct tir_options *options)
{
    static const struct {
        enum tir_option option;
        void (*print)(struct tir_text *out);
    } pages[] = {
        {TIR_OPTION_HELP, help},
        {TIR_OPTION_VERSION, version},
        {TIR_OPTION_HELP_OPS, tir_help_ops},
        {TIR_OPTION_HELP_PASSES, tir_help_passes},
        {TIR_OPTION_HELP_TARGETS, tir_help_targets},
        {TIR_OPTION_HELP_DIAGNOSTICS, tir_tables_diagnostics},
        {TIR_OPTION_HELP_PTX, help_ptx},
        {TIR_OPTION_HELP_LIBRARY, tir_help_library},
        {TIR_OPTION_HELP_OPTIONS, tir_options_markdown},
    };
    for (size_t i = 0; i < TIR_COUNT_OF(pages); i++) {
        if (!options->given[pages[i].option])
            continue;
        struct tir_text text;
        tir_text_init(&text, arena, 0);
        pages[i].print(&text);
        tir_say_text(stdout, tir_text_str(&text));
        return TIR_EXIT_FINE;
    }
    fputs("tirc: a command is needed: "
#define COMMAND(id, name, ...) #name ", "
#define OPTION(...)
#include "driver/options.def"
          "or --help\n",
          stderr);
    return TIR_EXIT_USAGE;
}

typedef enum tir_exit command_fn(struct tir_arena *arena, const struct tir_options *options);

static command_fn *const commands[TIR_COMMAND_COUNT] = {
    [TIR_COMMAND_NONE] = about,
#define COMMAND(id, name, ...) [TIR_COMMAND_##id] = tir_command_##name,
#define OPTION(...)
#include "driver/options.def"
};

// Whether an output is a file that the command reads, and that would be lost.
static bool is_output_input(const struct tir_options *options, tir_error *error)
{
    const char *const outputs[] = {options->text[TIR_OPTION_OUTPUT], options->text[TIR_OPTION_SVG]};
    const char *const inputs[] = {options->args.len ? options->args.at[0] : NULL,
                                  options->text[TIR_OPTION_TUNED]};
    for (size_t o = 0; o < TIR_COUNT_OF(outputs); o++)
        for (size_t i = 0; i < TIR_COUNT_OF(inputs); i++)
            if (outputs[o] && inputs[i] && tir_file_same(outputs[o], inputs[i]))
                return !tir_fail(error, TIR_ERR_INVALID, "%s is what the output is made of",
                                 inputs[i]);
    return false;
}

static enum tir_exit dispatch(struct tir_arena *arena, const struct tir_options *options)
{
    tir_error error;
    if (options->given[TIR_OPTION_HELP] && options->command != TIR_COMMAND_NONE) {
        struct tir_text text;
        tir_text_init(&text, arena, 0);
        tir_options_help(options->command, &text);
        tir_say_text(stdout, tir_text_str(&text));
        return TIR_EXIT_FINE;
    }
    return is_output_input(options, &error) ? tir_command_fail(&error)
                                            : commands[options->command](arena, options);
}

int main(int argc, char **argv)
{
    struct tir_arena arena;
    signal(SIGXFSZ, SIG_IGN); // a file that grows too large is an error of the write
    tir_arena_init(&arena, NULL, out_of_memory, NULL);
    struct tir_options options;
    tir_error error;
    enum tir_exit status = tir_options_parse(&arena, argc, argv, &options, &error)
                               ? dispatch(&arena, &options)
                               : tir_command_fail(&error);
    if (!tir_stdout_finish(&error) && status == TIR_EXIT_FINE)
        status = tir_command_fail(&error);
    tir_arena_finish(&arena);
    return (int)status;
}
