// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arena: the only allocator below the API edge. Objects live until the arena, or the savepoint
// they were made after, is released. Running out of memory jumps to the API boundary
// (out_of_memory), so no caller ever sees NULL.
#ifndef TIR_BASE_ARENA_H
#define TIR_BASE_ARENA_H

#include "base/base.h"

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#ifndef ARENA_ASAN
#define ARENA_ASAN 0
#endif

enum { ARENA_ALIGNMENT = _Alignof(max_align_t) };

struct arena_chunk;

struct tir_arena {
    struct arena_chunk *chunk; // newest
    unsigned char *next;       // what is free in it,
    size_t left;               // and how many bytes: a multiple of the alignment
    tir_allocator allocator;
    void (*out_of_memory)(void *user); // must not return
    void *user;
};

struct tir_arena_mark {
    struct arena_chunk *chunk;
    size_t left;
};

// The C library gives what is free at the end of a heap back to the system, and the next
// compilation waits until the system has cleared those pages again: 500 of them for a product. From
// now on glibc keeps up to so many bytes of each heap, for the whole process.
void tir_keep_free_memory(size_t bytes);

// allocator NULL: the C library's.
void tir_arena_init(struct tir_arena *arena, const tir_allocator *allocator,
                    void (*out_of_memory)(void *user), void *user);
void tir_arena_finish(struct tir_arena *arena);
struct tir_arena_mark tir_arena_mark(const struct tir_arena *arena);
void tir_arena_release(struct tir_arena *arena, struct tir_arena_mark mark);

// Called when there is no memory: jumps to the API boundary.
TIR_NORETURN void tir_arena_give_up(struct tir_arena *arena);

// Not zeroed, from a chunk that may be new.
void *tir_arena_take_slowly(struct tir_arena *arena, size_t size);
// Inline: of what a compilation does beside LLVM, a tenth was to come here. A size of 0 is slow.
static inline void *tir_arena_take(struct tir_arena *arena, size_t size)
{
    if (ARENA_ASAN || size - 1 >= arena->left)
        return tir_arena_take_slowly(arena, size);
    const size_t need = (size_t)tir_align_up(size, ARENA_ALIGNMENT);
    unsigned char *ptr = arena->next;
    arena->next += need;
    arena->left -= need;
    return ptr;
}

// Zeroed memory aligned for any type. Under AddressSanitizer each object has a red zone.
static inline void *tir_arena_alloc(struct tir_arena *arena, size_t size)
{
    return memset(tir_arena_take(arena, size), 0, size);
}

// Inline, for a `size` that is known: the check for overflow is then no division.
static inline void *tir_arena_alloc_array(struct tir_arena *arena, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        tir_arena_give_up(arena);
    return tir_arena_alloc(arena, count * size);
}
void *tir_arena_copy(struct tir_arena *arena, const void *src, size_t size);

#define arena_new(arena, T)          ((T *)tir_arena_alloc((arena), sizeof(T)))
#define arena_array(arena, T, count) ((T *)tir_arena_alloc_array((arena), (count), sizeof(T)))

#endif
