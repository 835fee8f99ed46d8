// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Host memory through the caller's allocator, and checked sizes.
#ifndef TIR_RUNTIME_HOST_H
#define TIR_RUNTIME_HOST_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tir/base.h"

static inline void *tir_host_resize_libc(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    if (new_size)
        return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

// The allocator to use for an optional one.
static inline tir_allocator tir_host_allocator(const tir_allocator *allocator)
{
    if (allocator && allocator->resize)
        return *allocator;
    return (tir_allocator){.resize = tir_host_resize_libc};
}

// Memory of any contents, or NULL. `size` is at least 1.
static inline void *tir_host_alloc_raw(const tir_allocator *allocator, size_t size)
{
    return allocator->resize(allocator->user, NULL, 0, size);
}

// Zeroed memory, or NULL. `size` is at least 1.
static inline void *tir_host_alloc(const tir_allocator *allocator, size_t size)
{
    void *ptr = tir_host_alloc_raw(allocator, size);
    return ptr ? memset(ptr, 0, size) : NULL;
}

static inline void tir_host_free(const tir_allocator *allocator, void *ptr, size_t size)
{
    if (ptr)
        allocator->resize(allocator->user, ptr, size, 0);
}

#endif
