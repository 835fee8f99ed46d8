// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A typed growable array on an arena. Growing leaves the old storage to the arena.
//
//     VEC(struct tir_inst *) work = {0};
//     vec_push(arena, &work, inst);
//     vec_foreach (struct tir_inst *, it, &work) ...   // it: pointer to the element
#ifndef TIR_BASE_VEC_H
#define TIR_BASE_VEC_H

#include "base/arena.h"

#define VEC(T)             \
    struct {               \
        T *at;             \
        uint32_t len, cap; \
    }

// Storage with room for more elements of `size` bytes, which are not zeroed; updates *cap.
void *tir_vec_grow(struct tir_arena *arena, void *at, uint32_t len, uint32_t *cap, size_t size);

// The storage with room for one more element.
static inline void *tir_vec_room(struct tir_arena *owner, void *at, uint32_t len, uint32_t *cap,
                                 size_t size)
{
    return len < *cap ? at : tir_vec_grow(owner, at, len, cap, size);
}

#define vec_push(arena, v, value)                                                     \
    ((v)->at = tir_vec_room((arena), (v)->at, (v)->len, &(v)->cap, sizeof(*(v)->at)), \
     (v)->at[(v)->len++] = (value))
#define vec_pop(v)            ((v)->at[--(v)->len])
#define vec_last(v)           ((v)->at[(v)->len - 1])
#define vec_foreach(T, it, v) for (T *it = (v)->at; it && it < (v)->at + (v)->len; it++)

#endif
