// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An allocator that counts what is alive, checks the sizes it is told, and fails on request.
#ifndef TESTS_RUNTIME_ALLOC_H
#define TESTS_RUNTIME_ALLOC_H

#include <stdatomic.h>
#include <stdlib.h>

#include "tir/base.h"

struct counting {
    atomic_size_t live;   // bytes
    atomic_int countdown; // the allocation that brings it to 0 fails; start below 0: none does
};

static inline void *counting_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    struct counting *c = user;
    if (new_size && atomic_fetch_sub(&c->countdown, 1) == 1)
        return NULL;
    atomic_fetch_sub(&c->live, old_size);
    atomic_fetch_add(&c->live, new_size);
    if (new_size)
        return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static inline tir_allocator counting_allocator(struct counting *c)
{
    return (tir_allocator){counting_resize, c};
}

#endif
