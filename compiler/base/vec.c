// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Growing the storage of a VEC.

#include "base/vec.h"

void *tir_vec_grow(struct tir_arena *arena, void *at, uint32_t len, uint32_t *cap, size_t size)
{
    // A vector of 2^32 elements asks for more than there is, which ends at the arena's hook.
    size_t more = *cap > UINT32_MAX / 2 ? SIZE_MAX : TIR_MAX(*cap * 2, 8);
    if (more > SIZE_MAX / size)
        tir_arena_give_up(arena);
    void *grown = tir_arena_take(arena, more * size);
    if (len)
        memcpy(grown, at, len * size);
    *cap = (uint32_t)more;
    return grown;
}
