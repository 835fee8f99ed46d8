// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The source map. Each file takes one location more than it has bytes, so that its end is a
// location too and belongs to no other file.

#include "base/source.h"

enum { SOURCE_MAX = 1 << 30 };

void tir_source_map_init(struct tir_source_map *map, struct tir_arena *arena)
{
    *map = (struct tir_source_map){.arena = arena, .next = 1};
}

static void index_lines(struct tir_arena *arena, struct tir_source_file *file)
{
    vec_push(arena, &file->lines, 0);
    for (uint32_t i = 0; i < file->text.len; i++)
        if (file->text.ptr[i] == '\n')
            vec_push(arena, &file->lines, i + 1);
}

struct tir_source_file *tir_source_add(struct tir_source_map *map, tir_str name, tir_str text)
{
    if (text.len >= SOURCE_MAX - map->next)
        return NULL;
    struct tir_source_file *file = arena_new(map->arena, struct tir_source_file);
    file->name = tir_str_copy(map->arena, name);
    file->text = tir_str_copy(map->arena, text);
    file->base = map->next;
    map->next += (uint32_t)text.len + 1;
    index_lines(map->arena, file);
    vec_push(map->arena, &map->files, file);
    return file;
}

static const struct tir_source_file *find_file(const struct tir_source_map *map, uint32_t location)
{
    for (uint32_t i = map->files.len; i-- > 0;) {
        const struct tir_source_file *file = map->files.at[i];
        if (location >= file->base)
            return location - file->base <= file->text.len ? file : NULL;
    }
    return NULL;
}

struct tir_position tir_source_locate(const struct tir_source_map *map, uint32_t location)
{
    const struct tir_source_file *file = find_file(map, location);
    if (!file)
        return (struct tir_position){0};
    uint32_t offset = location - file->base;
    uint32_t low = 0, high = file->lines.len; // the line is in [low, high)
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (file->lines.at[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    uint32_t begin = file->lines.at[low], end = (uint32_t)file->text.len;
    if (low + 1 < file->lines.len)
        end = file->lines.at[low + 1] - 1;
    if (end > begin && file->text.ptr[end - 1] == '\r')
        end--;
    return (struct tir_position){.file = file,
                                 .line = low + 1,
                                 .column = offset - begin + 1,
                                 .line_text = {file->text.ptr + begin, end - begin}};
}

tir_str tir_source_text(const struct tir_source_map *map, struct tir_span span)
{
    const struct tir_source_file *file = find_file(map, span.begin);
    if (!file || span.end <= span.begin)
        return (tir_str){0};
    uint32_t begin = span.begin - file->base;
    size_t length = TIR_MIN((size_t)(span.end - span.begin), file->text.len - begin);
    return (tir_str){file->text.ptr + begin, length};
}
