// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Files that every program may import, without any of them on disk: compiler/front/library, under
// tir/.
#ifndef TIR_FRONT_LIBRARY_H
#define TIR_FRONT_LIBRARY_H

struct library_file {
    const char *name; // "tir/sched.tir"; NULL: the end
    const char *text;
};
extern const struct library_file library_files[];

#endif
