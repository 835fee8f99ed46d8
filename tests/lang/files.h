// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reading test inputs: whole files, and the sorted names of a folder.
#ifndef TIR_TESTS_LANG_FILES_H
#define TIR_TESTS_LANG_FILES_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tir/base.h"

// NULL ptr: it cannot be read. The caller frees ptr, which is terminated.
static inline tir_str file_read(const char *path)
{
    FILE *f = fopen(path, "rb");
    tir_str s = {NULL, 0};
    if (!f)
        return s;
    size_t cap = 1 << 16;
    char *text = malloc(cap);
    size_t n;
    while (text && (n = fread(text + s.len, 1, cap - s.len - 1, f)) > 0) {
        s.len += n;
        if (s.len + 1 == cap) {
            cap *= 2;
            text = realloc(text, cap);
        }
    }
    fclose(f);
    if (text)
        text[s.len] = 0;
    s.ptr = text;
    return s;
}

static inline int file_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// The paths of the files in a folder that end in `suffix`, sorted. The caller frees nothing: tests
// are short.
static inline char **file_list(const char *folder, const char *suffix, size_t *count)
{
    char **paths = NULL;
    *count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        size_t length = strlen(e->d_name), tail = strlen(suffix);
        if (length < tail || strcmp(e->d_name + length - tail, suffix) != 0)
            continue;
        size_t size = strlen(folder) + length + 2;
        paths = realloc(paths, (*count + 1) * sizeof(*paths));
        paths[*count] = malloc(size);
        snprintf(paths[(*count)++], size, "%s/%s", folder, e->d_name);
    }
    if (dir)
        closedir(dir);
    if (paths)
        qsort(paths, *count, sizeof(*paths), file_order);
    return paths;
}

#endif
