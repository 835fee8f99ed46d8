// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Filling in a caller's tir_error.
#ifndef TIR_RUNTIME_ERROR_H
#define TIR_RUNTIME_ERROR_H

#include <stdarg.h>

#include "tir/base.h"

#if defined(__GNUC__)
#define TIR_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define TIR_PRINTF(at, first)
#endif

// Prints a tir_str with "%.*s".
#define TIR_STR(s) (int)(s).len, (s).ptr

// Writes status and message into `error`, if there is one, and returns `status`, so that a failure
// is one statement: `return tir_error_set(error, TIR_ERR_INVALID, ...)`.
tir_status tir_error_set(tir_error *error, tir_status status, const char *format, ...)
    TIR_PRINTF(3, 4);

tir_status tir_error_vset(tir_error *error, tir_status status, const char *format, va_list args)
    TIR_PRINTF(3, 0);

// The same with the number of the layer below: a CUresult or an errno.
tir_status tir_error_set_native(tir_error *error, tir_status status, int32_t native,
                                const char *format, ...) TIR_PRINTF(4, 5);

#endif
