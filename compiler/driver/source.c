// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Source files from the file system.
#include "driver/source.h"

#include <stdlib.h>

#include "driver/file.h"

#define LIMIT ((size_t)17 << 20) // a little more than the language allows, so that it can say so

bool tir_source_read(struct tir_arena *arena, const char *path, tir_str *text, tir_error *error)
{
    char *bytes;
    size_t size;
    if (!tir_file_read(path, LIMIT, &bytes, &size, error))
        return false;
    *text = tir_str_copy(arena, (tir_str){bytes, size});
    free(bytes);
    return true;
}

bool tir_source_import(void *user, tir_str from, tir_str path, tir_str *name, tir_str *text)
{
    struct tir_arena *arena = user;
    tir_str folder = from;
    while (folder.len && folder.ptr[folder.len - 1] != '/')
        folder.len--;
    if (path.len && path.ptr[0] == '/')
        folder.len = 0;
    if (memchr(path.ptr, 0, path.len))
        return false;
    *name = tir_str_format(arena, STR_FMT STR_FMT, STR_ARG(folder), STR_ARG(path));
    tir_error error;
    return tir_source_read(arena, name->ptr, text, &error);
}

void tir_source_split(const char *pair, tir_str *name, tir_str *value)
{
    size_t len = strcspn(pair, "=");
    *name = (tir_str){pair, len};
    *value = tir_str_of(pair[len] ? pair + len + 1 : pair + len);
}
