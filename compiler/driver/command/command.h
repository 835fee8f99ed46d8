// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The commands of tirc, one file each, and what they share.
#ifndef TIR_DRIVER_COMMAND_COMMAND_H
#define TIR_DRIVER_COMMAND_COMMAND_H

#include "driver/fail.h"
#include "driver/options.h"

enum tir_exit {
    TIR_EXIT_FINE = 0,
    TIR_EXIT_WRONG = 1, // a wrong result, a device fault, a file that would be reformatted
    TIR_EXIT_USAGE = 2  // wrong usage or source, a file that cannot be read or written
};

// Each runs one command and gives the exit status; it has printed why when that is not 0.
#define COMMAND(id, name, ...) \
    enum tir_exit tir_command_##name(struct tir_arena *arena, const struct tir_options *options);
#define OPTION(...)
#include "driver/options.def"

// One launch as run and emu do it, with a timeline of it and nothing printed.
struct tir_timeline;
bool tir_run_trace(struct tir_arena *arena, const struct tir_options *options,
                   struct tir_timeline *timeline, tir_error *error);
bool tir_emu_trace(struct tir_arena *arena, const struct tir_options *options,
                   struct tir_timeline *timeline, tir_error *error);

// Prints "tirc: ..." to standard error, unless diagnostics have said it already, and gives the exit
// status that the error calls for.
enum tir_exit tir_command_fail(const tir_error *error);

#endif
