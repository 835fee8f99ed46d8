// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Filling in an error, and printing it.
#include "driver/fail.h"

#include <stdarg.h>
#include <stdio.h>

#include "driver/command/command.h"
#include "driver/say.h"

bool tir_fail(tir_error *error, tir_status status, const char *format, ...)
{
    error->status = status;
    error->native = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(error->message, sizeof(error->message), format, args);
    va_end(args);
    return false;
}

enum tir_exit tir_command_fail(const tir_error *error)
{
    if (error->status != TIR_ERR_DIAGNOSED)
        tir_say(stderr, "tirc: %s", error->message);
    return error->status == TIR_ERR_DEVICE ? TIR_EXIT_WRONG : TIR_EXIT_USAGE;
}
