// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What turns in the variant for rows that begin anywhere: found by askew.c, turned by askew_turn.c.
#ifndef TIR_COMPILE_ASKEW_COLUMNS_H
#define TIR_COMPILE_ASKEW_COLUMNS_H

#include "base/vec.h"
#include "ir/range.h"
#include "pass/layout/extents.h"

enum { TIR_ASKEW_VECTOR = 16 }; // bytes

// Columns of tiles that turn: those of a tile, or of all that a loop walks a row in.
struct askew_columns {
    const struct tir_tile_dim *class;
    int64_t count;                   // of them
    bool walks;                      // a loop walks the rows in tiles of so many
    VEC(struct tir_inst *) accesses; // of tensors along them
    VEC(struct tir_inst *) kept; // of shared memory, which stay: they store and load turned tiles
    VEC(struct tir_inst *) iotas;
};

struct askew_length { // of tensors along columns that turn
    struct tir_value *value;
    int64_t least, most; // for which the variant is
};

struct askew_start { // of slices, as the program has it and as it is turned
    struct tir_value *from, *turned;
};

struct askew {
    struct tir_func *f;
    struct tir_inst *tiles;
    struct tir_extents extents;
    uint32_t grid_dim;                // along which the tile has
    int64_t rows;                     // so many rows, of which
    struct tir_value *start;          // this is the first, as the program has them
    const struct tir_tile_dim *lines; // NULL: there is one
    const struct tir_inst *row;       // an access whose rows say how far the tiles turn
    const struct tir_ranges *ranges;
    const uint32_t *uses;              // of values, by id
    VEC(struct askew_columns) columns; // that turn
    VEC(struct askew_length) lengths;
    VEC(struct askew_start) starts;
};

// Is the dimension that of the columns?
bool tir_askew_turns(const struct askew_columns *c, struct tir_tile_dim *dim);
// The dimensions of the tile that is loaded or stored; NULL: a scalar.
struct tir_tile_dim *tir_askew_accessed(const struct askew *a, const struct tir_inst *access);
// Are the tile's rows those along dimension d?
bool tir_askew_has_rows(const struct askew *a, const struct tir_inst *access, uint32_t d);
// Of the tensor in a vector.
int64_t tir_askew_elements(const struct tir_inst *access);
struct tir_value *tir_askew_extent(const struct askew *a, const struct tir_inst *access,
                                   uint32_t d);
// May be moved in vectors, as they lie in memory.
bool tir_askew_is_moved(const struct askew *a, const struct tir_inst *access);
// May be loaded in vectors that lie anywhere.
bool tir_askew_is_put_together(const struct askew *a, const struct tir_inst *access);

// Makes copies between rows and buffers, which are accessed in narrower slices, several copies.
void tir_askew_split(const struct askew *a);

// Turns all columns. False: no launch could have the lengths that this takes.
bool tir_askew_turn(struct askew *a);

#endif
