// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The abilities of cp.async, decided once for layout and async_copy.
#ifndef TIR_PASS_ASYNC_CP_ASYNC_H
#define TIR_PASS_ASYNC_CP_ASYNC_H

#include "ir/range.h"
#include "machine/target.h"

// What a copy is to bring: the slice of a load, some elements of which a `where` may replace by 0,
// or of a copy_async.
struct tir_copied {
    struct tir_inst *slice;
    struct tir_inst *where;     // NULL: none
    struct tir_value *masks[2]; // of the slice and of the where; NULL: all elements
};

// Is v a tile that is loaded from a tensor? What may keep it from being copied is looked at later.
bool tir_copied_of(struct tir_value *v, struct tir_copied *copied);

// Bytes that one cp.async may move into a buffer of this type: 4, 8 or 16. 0: none can, and *why
// says so.
uint32_t tir_copy_width(const struct tir_func *f, const struct tir_target *target,
                        const struct tir_ranges *ranges, const struct tir_copied *copied,
                        const struct tir_type *buffer, const char **why);

#endif
