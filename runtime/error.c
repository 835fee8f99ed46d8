// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Filling in a caller's tir_error.

#include "error.h"

#include <stdio.h>

static void fill(tir_error *error, tir_status status, int32_t native, const char *format,
                 va_list args) TIR_PRINTF(4, 0);

static void fill(tir_error *error, tir_status status, int32_t native, const char *format,
                 va_list args)
{
    if (!error)
        return;
    error->status = status;
    error->native = native;
    vsnprintf(error->message, sizeof error->message, format, args);
    // A message is one line; names in it may come from hostile bytes.
    for (char *c = error->message; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = ' ';
}

tir_status tir_error_set(tir_error *error, tir_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tir_error_vset(error, status, format, args);
    va_end(args);
    return status;
}

tir_status tir_error_vset(tir_error *error, tir_status status, const char *format, va_list args)
{
    fill(error, status, 0, format, args);
    return status;
}

tir_status tir_error_set_native(tir_error *error, tir_status status, int32_t native,
                                const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(error, status, native, format, args);
    va_end(args);
    return status;
}
