// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Walks: how a tile goes through a buffer in shared or local memory, and what their files share.
// walk.c opens them, from a slice down to the alloc; walk_linear.c and walk_at.c have the addresses
// of registers, by bits or one by one; walk_part.c has what single threads copy.
#ifndef TIR_PASS_LOWER_WALK_H
#define TIR_PASS_LOWER_WALK_H

#include "pass/lower/lower.h"

struct walk_dim {            // one dimension of the alloc
    int32_t tile_dim;        // dimension of the tile that walks it, or -1
    uint32_t aligned;        // elements that are in or out of range together
    struct tir_value *index; // an index tile, whose first dimension is tile_dim; NULL: none
    struct tir_value *start; // i32; NULL: 0
    uint64_t divisor;        // of start
};

struct slice_dim { // one dimension of the buffer as the program names it
    int32_t tile_dim;
    struct tir_value *index;
    struct lower_bound bound; // in i32; without a position for an index tile
};

struct walk_part { // of a tile, along one of its dimensions
    uint32_t dim;
    int64_t start, size; // 0: the walk is of the whole tile
    int64_t reach;       // from the coordinate of a register in thread 0 to that in any other
};

struct walk_base { // the address of a register, less the offset
    uint32_t reg;
    struct tir_value *at;
    int64_t offset;
};

struct lower_walk {
    struct tir_value *base;          // alloc
    const struct tir_layout *memory; // its layout
    const struct tir_layout *layout; // of the tile; NULL: a scalar
    uint32_t bits;                   // of an element
    uint32_t rank;                   // of the alloc
    struct walk_dim dims[TIR_MAX_RANK];
    struct walk_part part;
    uint32_t slice_rank; // 0: nothing to check
    struct slice_dim slice[TIR_MAX_RANK];
    bool linear;
    struct tir_value *thread; // linear: the thread's part, bytes
    bool moves;               // linear: starts are in it, so it belongs to where the walk is made
    struct tir_value *slot;   // linear: bytes added by indices that choose a slot
    uint64_t thread_bits;     // linear: bits the thread's part may have
    struct tir_value
        *split[64]; // linear: thread ^ (bits of the constant that overlap), by those bits
    uint64_t split_bits[64];
    uint32_t splits;
    VEC(struct walk_base) bases; // general, where addresses are shared
    struct lower_vector vector;
};

// Bytes (walk_address.c): of coordinates in the alloc; coordinates of the tile's element at a
// position, without starts; and the byte of coordinates given as values, where NULL is 0, before
// the swizzle (NULL: 0) and with it.
uint64_t tir_lower_walk_byte(const struct lower_walk *w, const int64_t coord[TIR_MAX_RANK]);
void tir_lower_walk_coord(const struct lower_walk *w, struct tir_layout_at at,
                          int64_t out[TIR_MAX_RANK]);
struct tir_value *tir_lower_unswizzled(struct lower *lo, struct tir_builder *b,
                                       const struct tir_layout *m, uint32_t bits,
                                       struct tir_value *const *coord);
struct tir_value *tir_lower_walk_address(struct lower *lo, struct tir_builder *b,
                                         const struct lower_walk *w,
                                         struct tir_value *const *coord);

// Addresses by bits (walk_linear.c): whether the walk has them, what all registers share, and the
// address of one, to which the offset is added.
bool tir_lower_walk_is_linear(const struct lower_walk *w);
void tir_lower_walk_open_linear(struct lower *lo, struct lower_walk *w);
struct tir_value *tir_lower_walk_linear_at(struct lower *lo, struct lower_walk *w, uint32_t reg,
                                           int64_t *offset);

// A walk that is not opened, and what it is of in the end (walk.c).
struct lower_walk *tir_lower_walk_begin(struct lower *lo, const struct tir_value *buffer,
                                        const struct tir_layout *l);
struct tir_value *tir_lower_walk_to_alloc(struct lower *lo, struct lower_walk *w,
                                          struct tir_value *buffer);

#endif
