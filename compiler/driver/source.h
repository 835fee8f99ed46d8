// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Source files from the file system, and what -D says about them.
#ifndef TIR_DRIVER_SOURCE_H
#define TIR_DRIVER_SOURCE_H

#include "driver/options.h"

// The text of a .tir file ("-": standard input), kept in the arena. Larger than the language allows
// is left to the compiler to refuse.
bool tir_source_read(struct tir_arena *arena, const char *path, tir_str *text, tir_error *error);

// Where imports of a program may lie.
struct tir_source_importer {
    struct tir_arena *arena; // that keeps the texts
    const char *root;        // a folder
};
// For the file `path` ("-": standard input): what --import-root says, or the file's own folder.
struct tir_source_importer tir_source_importer_of(struct tir_arena *arena,
                                                  const struct tir_options *options,
                                                  const char *path);

// The import callback of the compiler: `path` is relative to the folder of the file `from`, and
// must lead to a regular file in the root or below. user: a tir_source_importer.
bool tir_source_import(void *user, tir_str from, tir_str path, tir_str *name, tir_str *text);

// Cuts "NAME=VALUE" at the first "=".
void tir_source_split(const char *pair, tir_str *name, tir_str *value);

#endif
