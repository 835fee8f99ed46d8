// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Filling in an error.
#include "driver/fail.h"

#include <stdarg.h>
#include <stdio.h>

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
