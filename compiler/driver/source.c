// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Source files from the file system.
#include "driver/source.h"

#include <stdlib.h>

#include "driver/file.h"

#define LIMIT ((size_t)16 << 20) // of the language

bool tir_source_read(struct tir_arena *arena, const char *path, tir_str *text, tir_error *error)
{
    FILE *file;
    char *bytes = NULL;
    size_t size = 0;
    if (!tir_file_open(path, &file, error))
        return false;
    // One more than the limit, of which the lexer speaks.
    const bool is_read = tir_file_append(file, path, LIMIT + 1, &bytes, &size, error);
    tir_file_close(file);
    const bool is_artifact = is_read && size >= 4 && !memcmp(bytes, "TIRA", 4);
    if (is_artifact)
        tir_fail(error, TIR_ERR_INVALID,
                 "%s is an artifact, not a source: programs load it (tir_rt_module_load), and tirc "
                 "explain prints its receipt",
                 path);
    else if (is_read)
        *text = tir_str_copy(arena, (tir_str){bytes, size});
    free(bytes);
    return is_read && !is_artifact;
}

struct tir_source_importer
tir_source_importer_of(struct tir_arena *arena, const struct tir_options *options, const char *path)
{
    const char *given = options->text[TIR_OPTION_IMPORT_ROOT], *slash = strrchr(path, '/');
    tir_str folder = {path, slash ? (size_t)(slash - path) + 1 : 0};
    const char *own = slash ? tir_str_copy(arena, folder).ptr : ".";
    return (struct tir_source_importer){arena, given ? given : own};
}

bool tir_source_import(void *user, tir_str from, tir_str path, tir_str *name, tir_str *text)
{
    const struct tir_source_importer *importer = user;
    tir_str folder = from;
    while (folder.len && folder.ptr[folder.len - 1] != '/')
        folder.len--;
    if (path.len && path.ptr[0] == '/')
        folder.len = 0;
    if (memchr(path.ptr, 0, path.len))
        return false;
    *name = tir_str_format(importer->arena, STR_FMT STR_FMT, STR_ARG(folder), STR_ARG(path));
    tir_error error;
    char *bytes;
    size_t size;
    bool done = tir_file_read_below(name->ptr, importer->root, LIMIT, &bytes, &size, &error);
    *text = done ? tir_str_copy(importer->arena, (tir_str){bytes, size})
                 : tir_str_copy(importer->arena, tir_str_of(error.message));
    free(done ? bytes : NULL);
    return done;
}

void tir_source_split(const char *pair, tir_str *name, tir_str *value)
{
    size_t len = strcspn(pair, "=");
    *name = (tir_str){pair, len};
    *value = tir_str_of(pair[len] ? pair + len + 1 : pair + len);
}
