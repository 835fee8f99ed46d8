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

// Is v the constant that copies write for what is outside of the tensor: 0, and not -0?
bool tir_is_fill(const struct tir_value *v);
// Is v a tile that is loaded from a tensor? What may keep it from being copied is looked at later.
bool tir_copied_of(const struct tir_value *v, struct tir_copied *copied);

// Bytes that one cp.async may move into a buffer of this type: 4, 8 or 16. 0: none can, and *why
// says so.
uint32_t tir_copy_width(const struct tir_func *f, const struct tir_target *target,
                        const struct tir_ranges *ranges, const struct tir_copied *copied,
                        const struct tir_type *buffer, const char **why);

// The same for a tile, into a buffer of its own, row by row.
uint32_t tir_tile_copy_width(const struct tir_func *f, const struct tir_target *target,
                             const struct tir_ranges *ranges, const struct tir_value *tile,
                             const char **why);

// The copy that takes the place of a tile's load and the store of it. It has no engine and no
// width.
struct tir_inst *tir_copy_build(struct tir_func *f, const struct tir_copied *copied,
                                struct tir_inst *store);
// Makes it one by cp.async.
void tir_copy_set_width(struct tir_func *f, struct tir_inst *copy, uint32_t width);
// How the warps that come to a copy share it, `width` bytes at a time.
const struct tir_layout *tir_copy_layout(struct tir_func *f, const struct tir_inst *copy,
                                         uint32_t width);
// Each thread needs the indices and the mask (an operand) of the elements that it copies, or
// loads, in layout l: where another thread has them, they are converted.
void tir_lay_out_tiles(struct tir_func *f, struct tir_inst *access, uint32_t mask,
                       const struct tir_layout *l);

#endif
