// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Extents of tiles, by classes of dimensions: those that operations tie together.
#ifndef TIR_PASS_LAYOUT_EXTENTS_H
#define TIR_PASS_LAYOUT_EXTENTS_H

#include "base/vec.h"
#include "ir/ir.h"

struct tir_tile_dim {
    struct tir_tile_dim *same; // another dimension of its class; NULL: this one stands for it
    int64_t size, granule;     // of the class: a power of two that the new size is a multiple of
    const struct tir_inst
        *keeper; // of the class: an operation that needs the size; NULL: none does
};

struct tir_tile_dims {
    struct tir_value *value;
    struct tir_tile_dim *dims;
};

// Where a reshape has the elements of several dimensions in others, the first of them grow
// together: outer has `times` the elements of inner.
struct tir_tile_link {
    struct tir_tile_dim *inner, *outer;
    int64_t times; // a power of two
};

struct tir_extents {
    struct tir_arena *arena;
    VEC(struct tir_tile_link) links;
    struct tir_tile_dim **of;        // by value id: the dimensions of a tile
    struct tir_map constants;        // by place of an operand: those of the constant there
    VEC(struct tir_tile_dims) tiles; // but constants, in program order
};

// Finds the classes, which do not change the function.
void tir_extents_find(struct tir_extents *e, struct tir_func *f, struct tir_arena *arena);
// The dimensions of operand i of inst, as it was when the classes were found.
struct tir_tile_dim *tir_extents_at(const struct tir_extents *e, const struct tir_inst *inst,
                                    uint32_t i);
// What stands for the class.
struct tir_tile_dim *tir_tile_dim_class(struct tir_tile_dim *dim);
// Lets linked dimensions grow with those that have grown, and stay with those that stay.
void tir_extents_settle(struct tir_extents *e);
// inst needs the size of the dimension.
void tir_tile_dim_keep(struct tir_tile_dim *dim, const struct tir_inst *inst);

#endif
