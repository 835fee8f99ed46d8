// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The source map: a 32-bit location is an offset into all files laid end to end; file, line and
// column are computed only when a message is rendered.
#ifndef TIR_BASE_SOURCE_H
#define TIR_BASE_SOURCE_H

#include "base/str.h"
#include "base/vec.h"

// Half-open range of locations. {0, 0} is "nowhere" (generated code).
struct tir_span {
    uint32_t begin, end;
};

struct tir_source_file {
    tir_str name;        // as given
    tir_str text;        // owned copy, followed by a NUL (the lexer's sentinel)
    uint32_t base;       // location of the first byte; the first file starts at 1
    VEC(uint32_t) lines; // offsets of line starts
};

struct tir_source_map {
    struct tir_arena *arena;
    VEC(struct tir_source_file *) files;
    uint32_t next;
};

struct tir_position {
    const struct tir_source_file *file; // NULL: nowhere
    uint32_t line, column;              // from 1; column in bytes
    tir_str line_text;                  // without the newline
};

void tir_source_map_init(struct tir_source_map *map, struct tir_arena *arena);
// NULL when all files together would pass 1 GiB.
struct tir_source_file *tir_source_add(struct tir_source_map *map, tir_str name, tir_str text);
struct tir_position tir_source_locate(const struct tir_source_map *map, uint32_t location);
tir_str tir_source_text(const struct tir_source_map *map, struct tir_span span);

static inline struct tir_span tir_span_join(struct tir_span a, struct tir_span b)
{
    return (struct tir_span){a.begin, b.end};
}

#endif
