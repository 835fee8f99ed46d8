// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The escape point, the arena and the type table.

#include "emu/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct emu_type_info emu_types[EMU_TYPE_COUNT] = {
#define TYPE(name, bits, kind) {#name, bits, EMU_KIND_##kind},
#include "types.def"
};

enum emu_type emu_type_find(tir_str name)
{
    for (uint32_t i = 1; i < EMU_TYPE_COUNT; i++)
        if (emu_str_is(name, emu_types[i].name))
            return (enum emu_type)i;
    return EMU_none;
}

void emu_raise(struct emu_trap *trap, tir_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tir_error_vset(trap->error, status, format, args);
    va_end(args);
    for (char *c = trap->error->message; *c; c++) // names come from text of any bytes
        if ((unsigned char)*c > '~')
            *c = '?';
    longjmp(trap->env, 1);
}

void *emu_resize(const tir_allocator *allocator, void *ptr, size_t old_size, size_t new_size)
{
    if (allocator->resize)
        return allocator->resize(allocator->user, ptr, old_size, new_size);
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

struct emu_chunk {
    struct emu_chunk *next;
    size_t size, used; // bytes, this header included
    max_align_t start[];
};

void *emu_arena_alloc(struct emu_arena *arena, size_t size)
{
    const size_t least = 32768;
    if (size > SIZE_MAX / 2)
        emu_raise(arena->trap, TIR_ERR_NO_MEMORY, "out of memory");
    size = emu_align_up(size, sizeof(max_align_t));
    struct emu_chunk *c = arena->head;
    if (!c || c->size - c->used < size) {
        const size_t need = sizeof *c + (size > least ? size : least);
        c = emu_resize(&arena->allocator, NULL, 0, need);
        if (!c)
            emu_raise(arena->trap, TIR_ERR_NO_MEMORY, "out of memory");
        *c = (struct emu_chunk){.next = arena->head, .size = need, .used = sizeof *c};
        arena->head = c;
    }
    void *at = (char *)c + c->used;
    c->used += size;
    memset(at, 0, size);
    return at;
}

void *emu_arena_array(struct emu_arena *arena, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / 2 / size)
        emu_raise(arena->trap, TIR_ERR_NO_MEMORY, "out of memory");
    return emu_arena_alloc(arena, count * size);
}

void emu_arena_free(struct emu_arena *arena)
{
    while (arena->head) {
        struct emu_chunk *next = arena->head->next;
        emu_resize(&arena->allocator, arena->head, arena->head->size, 0);
        arena->head = next;
    }
}

void *emu_vec_room(struct emu_arena *arena, void *at, uint32_t len, uint32_t *cap, size_t size)
{
    if (len < *cap)
        return at;
    const uint32_t grown = *cap ? *cap * 2 : 8;
    if (grown < *cap)
        emu_raise(arena->trap, TIR_ERR_NO_MEMORY, "out of memory");
    void *to = emu_arena_array(arena, grown, size);
    if (len)
        memcpy(to, at, len * size);
    *cap = grown;
    return to;
}
