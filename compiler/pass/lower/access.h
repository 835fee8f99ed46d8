// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Accesses of one thread, and what their files share: global.c says where elements of tensors are,
// access.c loads and stores, atomic.c and copy.c do what their names say. Shared and local memory
// are in walk.h.
#ifndef TIR_PASS_LOWER_ACCESS_H
#define TIR_PASS_LOWER_ACCESS_H

#include "pass/lower/lower.h"

struct lower_side { // one dimension of the tensor
    int64_t box;
    uint32_t tile_dim;        // the tile's dimension (box != 0); of an index tile, its first
    struct tir_value *index;  // the index operand
    struct tir_value *stride; // bytes; NULL: contiguous, elements follow each other
    struct tir_value *whole;  // where the attribute wraps counts from; NULL: there is none
    int64_t stepped_to;       // the constant that `stepped` below has
    struct lower_bound bound; // in the index type; without a position for an index tile
};

struct lower_global {
    struct lower *lo;
    const struct tir_inst *inst;
    struct tir_value *base;
    const struct tir_layout *layout; // of the accessed tile; NULL: a scalar
    enum tir_elem elem;
    uint32_t rank, bytes; // of the tensor; of an element
    struct lower_side sides[TIR_MAX_RANK];
    struct lower_vector vector; // elements that move together
    bool is_askew;              // vectors of a row lie anywhere
    struct tir_value *past;     // elements from multiples of memory to them; NULL: other accesses
    const char *limit;          // why not more
    struct tir_value *at;       // bytes: the thread's part over all dimensions without index tiles
    // Copies in a pipelined loop live among many registers: each address is a step from the one
    // before instead of an offset of its own, which would be kept over the whole loop.
    bool by_steps;
    struct tir_value *stepped; // at, moved on to the constants of the element asked for last
};

// A load, store or atomic: where its elements are, wherever the buffer is.
struct lower_access {
    const struct tir_layout *layout; // of the tile; NULL: a scalar
    uint32_t count;                  // registers of one thread
    struct lower_vector vector;      // that move together
    struct tir_value *mask;
    struct lower_walk *walk; // NULL: global memory
    struct lower_global global;
};

// A slice of a tensor. layout: of the accessed tile; NULL: a scalar.
struct lower_global tir_lower_open_global(struct lower *lo, const struct tir_inst *inst,
                                          const struct tir_layout *layout);
struct lower_place tir_lower_element_at(struct lower_global *g, uint32_t reg);
void tir_lower_set_cache(struct lower *lo, struct tir_inst *access, const struct lower_place *p);

// tile: the type of what is loaded, stored or combined.
void tir_lower_open_access(struct lower *lo, const struct tir_inst *inst,
                           const struct tir_type *tile, struct tir_value *mask,
                           struct lower_access *a);
struct lower_place tir_lower_place_of(struct lower *lo, struct lower_access *a, uint32_t reg);
// The condition under which a thread stores; NULL: each does.
struct tir_value *tir_lower_writer(struct lower *lo, const struct tir_inst *inst,
                                   const struct tir_layout *l);
// Notes in the receipt how wide a tile's accesses of global memory are, and why no wider.
void tir_lower_tell_width(struct lower *lo, const struct tir_inst *inst,
                          const struct lower_access *a);

#endif
