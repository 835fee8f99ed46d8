// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole files in and out.
#ifndef TIR_DRIVER_FILE_H
#define TIR_DRIVER_FILE_H

#include "driver/fail.h"

// All of a file ("-": standard input), at most `limit` bytes. *out is from malloc, with a zero byte
// after the end.
bool tir_file_read(const char *path, size_t limit, char **out, size_t *size, tir_error *error);
// Writes a file ("-": standard output) whole or not at all: to a new file beside it, then renamed.
// What is no regular file (a device, a pipe) is written to as it is.
bool tir_file_write(const char *path, const void *bytes, size_t size, tir_error *error);
// Ends standard output: false if any of it could not be written.
bool tir_stdout_finish(tir_error *error);

#endif
