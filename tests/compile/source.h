// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Files that a test compiles.
#ifndef TESTS_COMPILE_SOURCE_H
#define TESTS_COMPILE_SOURCE_H

#include "tir/compiler.h"

// The text of a file, until the next call. Fails the test if it cannot be read.
tir_str read_file(const char *path);
// For tir_compile_options.import: imports lie beside the file, whose path is import_user. The text
// is kept for 8 imports.
int import_beside(void *path, tir_str from, tir_str name, tir_str *found, tir_str *text);

#endif
