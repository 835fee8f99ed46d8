// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line as data, and its help.
#ifndef TIR_DRIVER_OPTIONS_H
#define TIR_DRIVER_OPTIONS_H

#include "base/str.h"
#include "base/vec.h"

enum tir_command {
    TIR_COMMAND_NONE,
#define COMMAND(id, ...) TIR_COMMAND_##id,
#define OPTION(...)
#include "driver/options.def"
    TIR_COMMAND_COUNT
};

enum tir_option {
#define COMMAND(...)
#define OPTION(id, ...) TIR_OPTION_##id,
#include "driver/options.def"
    TIR_OPTION_COUNT
};

struct tir_options {
    enum tir_command command;
    bool given[TIR_OPTION_COUNT];
    const char *text[TIR_OPTION_COUNT]; // the argument as given; NULL: none
    double number[TIR_OPTION_COUNT];    // RATIO; 0 where left out
    int64_t integer[TIR_OPTION_COUNT];  // INT
    VEC(const char *) defines;          // -D, in order
    VEC(const char *) dims;             // --dim, in order
    VEC(const char *) tries;            // --try, in order
    VEC(const char *) args;             // what is not an option, in order
};

// Reads the command line. False: *error says what is wrong with it. Strings stay in argv.
bool tir_options_parse(struct tir_arena *arena, int argc, char **argv, struct tir_options *out,
                       tir_error *error);

// --seed; 1 where it is left out.
uint64_t tir_options_seed(const struct tir_options *options);

// --help of tirc (TIR_COMMAND_NONE) or of a command.
void tir_options_help(enum tir_command command, struct tir_text *out);
// The reference page of all commands and options.
void tir_options_markdown(struct tir_text *out);

#endif
