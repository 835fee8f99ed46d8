// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Used by every part of the emulator: PTX types, the escape point, the arena, growable arrays.
//
// Loading a module and running a kernel each set one escape point. Every error below it is raised
// to it: a syntax error, a fault of the kernel or a failed allocation. The function that set it
// frees all objects made since. So the code in between has no error paths.
#ifndef EMU_BASE_H
#define EMU_BASE_H

#include <setjmp.h>
#include <stdbool.h>

#include "error.h"

enum emu_type {
#define TYPE(name, bits, kind) EMU_##name,
#include "types.def"
    EMU_TYPE_COUNT
};

enum emu_type_kind {
    EMU_KIND_NONE,
    EMU_KIND_PRED,
    EMU_KIND_BITS,
    EMU_KIND_UINT,
    EMU_KIND_SINT,
    EMU_KIND_FLOAT,
    EMU_KIND_PACKED
};

struct emu_type_info {
    const char *name;
    uint8_t bits;
    uint8_t kind;
};

extern const struct emu_type_info emu_types[EMU_TYPE_COUNT];

// The type spelled `name` (without its dot), or EMU_none.
enum emu_type emu_type_find(tir_str name);

// Bytes of a type in memory; predicates have none.
static inline uint32_t emu_type_size(enum emu_type type)
{
    return emu_types[type].bits / 8u;
}

enum { EMU_WARP = 32 };                 // lanes of a warp
static const uint32_t EMU_FULL = ~0u;   // every lane
static const uint32_t EMU_NO_REF = ~0u; // no operand, or the sink `_`

struct emu_trap {
    jmp_buf env;
    tir_error *error; // filled before the jump; never NULL
};

// Fills the trap's error and jumps to it.
_Noreturn void emu_raise(struct emu_trap *trap, tir_status status, const char *format, ...)
    TIR_PRINTF(3, 4);

// The allocator's resize, or the C library's. NULL when there is no memory.
void *emu_resize(const tir_allocator *allocator, void *ptr, size_t old_size, size_t new_size);

// A bump allocator whose objects live as long as it does. Memory comes zeroed.
struct emu_arena {
    tir_allocator allocator;
    struct emu_trap *trap; // where a failed allocation goes
    struct emu_chunk *head;
};

void *emu_arena_alloc(struct emu_arena *arena, size_t size);
void *emu_arena_array(struct emu_arena *arena, size_t count, size_t size);
void emu_arena_free(struct emu_arena *arena);

// A growable array on an arena. What it grew out of is given back only with the arena, so an array
// costs at most twice its size.
#define EMU_VEC(type)      \
    struct {               \
        type *at;          \
        uint32_t len, cap; \
    }
#define emu_push(arena, v)                                                           \
    ((v)->at = emu_vec_room((arena), (v)->at, (v)->len, &(v)->cap, sizeof *(v)->at), \
     &(v)->at[(v)->len++])
void *emu_vec_room(struct emu_arena *arena, void *at, uint32_t len, uint32_t *cap, size_t size);

static inline bool emu_str_is(tir_str s, const char *text)
{
    size_t i = 0;
    while (i < s.len && text[i] != '\0' && s.ptr[i] == text[i])
        i++;
    return i == s.len && text[i] == '\0';
}

static inline uint64_t emu_align_up(uint64_t x, uint64_t align)
{
    return (x + align - 1) / align * align;
}

#endif
