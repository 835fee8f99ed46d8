// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole files in and out.
#ifndef TIR_DRIVER_FILE_H
#define TIR_DRIVER_FILE_H

#include <stdio.h>

#include "driver/fail.h"

// All of a file ("-": standard input), at most `limit` bytes. *out is from malloc, with a zero byte
// after the end.
bool tir_file_read(const char *path, size_t limit, char **out, size_t *size, tir_error *error);
// The same of a regular file in `folder` or below it, wherever links lead. Never waits.
bool tir_file_read_below(const char *path, const char *folder, size_t limit, char **out,
                         size_t *size, tir_error *error);
// A file ("-": standard input) to be read in parts, with at most `most` bytes more in *out each
// time; *out (NULL before the first part) is from malloc and ends in a zero byte.
bool tir_file_open(const char *path, FILE **out, tir_error *error);
bool tir_file_append(FILE *file, const char *path, size_t most, char **out, size_t *size,
                     tir_error *error);
void tir_file_close(FILE *file);
// Writes a file ("-": standard output) whole or not at all: to a new file beside it, then renamed.
// A file that is not regular (a device, a pipe), and one without a name that a link in /proc leads
// to, is written to directly. A link to standard output stands for it.
bool tir_file_write(const char *path, const void *bytes, size_t size, tir_error *error);
// Waits for other programs that change a file in the folder of this one, and holds them off until
// the unlock: what is read and then written has lost nothing in between. Where the system has no
// such lock, or another program keeps it for two seconds, there is none, and the result is -1.
int tir_file_lock(const char *path);
void tir_file_unlock(int lock);
// Whether both paths lead to one regular file.
bool tir_file_same(const char *a, const char *b);
// Ends standard output: false if any of it could not be written.
bool tir_stdout_finish(tir_error *error);

#endif
