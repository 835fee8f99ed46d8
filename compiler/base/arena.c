// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bump arena.
//
// A chunk is one block from the caller's allocator; chunks form a list, newest first:
//
//     | header | object | red zone | object | red zone | ... free ... |
//                                                       next         next + left
//
// Objects too large for the current chunk open a new one; what is left of the old one stays unused.
// A savepoint is a chunk and its fill; releasing it frees the newer chunks. Under AddressSanitizer
// all of a chunk but its objects is poisoned, so overruns and uses after release are found as on
// the heap.

#include "base/arena.h"

#include <stdlib.h>

#if ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(ptr, size)   __asan_poison_memory_region((ptr), (size))
#define UNPOISON(ptr, size) __asan_unpoison_memory_region((ptr), (size))
enum { RED_ZONE = 32 };
#else
#define POISON(ptr, size)   ((void)(ptr), (void)(size))
#define UNPOISON(ptr, size) ((void)(ptr), (void)(size))
enum { RED_ZONE = 0 };
#endif

enum { CHUNK_MIN = 64 << 10, CHUNK_MAX = 1 << 20 };

struct arena_chunk {
    struct arena_chunk *older;
    size_t size; // of data: a multiple of the alignment
    _Alignas(max_align_t) unsigned char data[];
};

static void *libc_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    if (new_size)
        return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

// glibc keeps twice as much as the largest mapped block that was freed (mallopt(3),
// M_MMAP_THRESHOLD), which leaves the settings to the program, unlike mallopt.
void tir_keep_free_memory(size_t bytes)
{
    void *volatile block = malloc(bytes / 2); // volatile: compilers leave out what nobody uses
    free(block);
}

TIR_NORETURN void tir_arena_give_up(struct tir_arena *arena)
{
    arena->out_of_memory(arena->user);
    abort(); // only when the hook breaks its contract and returns
}

void tir_arena_init(struct tir_arena *arena, const tir_allocator *allocator,
                    void (*out_of_memory)(void *user), void *user)
{
    *arena = (struct tir_arena){.out_of_memory = out_of_memory, .user = user};
    if (allocator && allocator->resize)
        arena->allocator = *allocator;
    else
        arena->allocator.resize = libc_resize;
}

static void pop_chunk(struct tir_arena *arena)
{
    struct arena_chunk *chunk = arena->chunk;
    arena->chunk = chunk->older;
    UNPOISON(chunk->data, chunk->size);
    arena->allocator.resize(arena->allocator.user, chunk, sizeof *chunk + chunk->size, 0);
}

void tir_arena_finish(struct tir_arena *arena)
{
    while (arena->chunk)
        pop_chunk(arena);
    arena->left = 0;
}

struct tir_arena_mark tir_arena_mark(const struct tir_arena *arena)
{
    return (struct tir_arena_mark){arena->chunk, arena->left};
}

void tir_arena_release(struct tir_arena *arena, struct tir_arena_mark mark)
{
    assert(arena->chunk != mark.chunk || arena->left <= mark.left); // as below
    while (arena->chunk != mark.chunk) {
        assert(arena->chunk); // else the mark is older than an earlier release
        pop_chunk(arena);
    }
    arena->left = mark.left;
    if (arena->chunk) {
        arena->next = arena->chunk->data + arena->chunk->size - mark.left;
        POISON(arena->next, mark.left);
    }
}

static void push_chunk(struct tir_arena *arena, size_t need)
{
    size_t size = arena->chunk ? TIR_MIN(2 * arena->chunk->size, (size_t)CHUNK_MAX) : CHUNK_MIN;
    size = TIR_MAX(size, need);
    struct arena_chunk *chunk =
        arena->allocator.resize(arena->allocator.user, NULL, 0, sizeof *chunk + size);
    if (!chunk)
        tir_arena_give_up(arena);
    *chunk = (struct arena_chunk){.older = arena->chunk, .size = size};
    POISON(chunk->data, size);
    arena->chunk = chunk;
    arena->next = chunk->data;
    arena->left = size;
}

void *tir_arena_take_slowly(struct tir_arena *arena, size_t size)
{
    if (size > SIZE_MAX / 4)
        tir_arena_give_up(arena);
    size_t need = (size_t)tir_align_up(TIR_MAX(size, (size_t)1) + RED_ZONE, ARENA_ALIGNMENT);
    if (need > arena->left)
        push_chunk(arena, need);
    unsigned char *ptr = arena->next;
    arena->next += need;
    arena->left -= need;
    UNPOISON(ptr, size);
    return ptr;
}

void *tir_arena_copy(struct tir_arena *arena, const void *src, size_t size)
{
    void *copy = tir_arena_take(arena, size);
    return size ? memcpy(copy, src, size) : copy; // src may be NULL when it is empty
}
