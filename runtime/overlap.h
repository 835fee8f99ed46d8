// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether elements of tensors share memory.
#ifndef TIR_RUNTIME_OVERLAP_H
#define TIR_RUNTIME_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

#include "tir/artifact.h"

// A tensor with elements, which spans fewer than 2^63 bits.
struct footprint {
    uint64_t data; // bytes: the address of element 0
    uint32_t bits; // of an element
    uint32_t rank;
    int64_t shape[TIR_MAX_RANK];
    int64_t strides[TIR_MAX_RANK]; // in elements
};

// The bytes from the first to the end of the last. Tensors whose bytes do not overlap do not
// overlap.
struct reach {
    uint64_t low, end;
};
struct reach tir_reach(uint64_t data, uint32_t bits, uint32_t rank, const int64_t *shape,
                       const int64_t *strides);

// True where an element of `a` and one of `b` have a bit in common. Exact, but for strides so
// strange that looking takes too long: those overlap when their bytes do.
bool tir_footprints_overlap(const struct footprint *a, const struct footprint *b);

// True where two elements of one tensor have a bit in common; with the same exception.
bool tir_footprint_overlaps_itself(const struct footprint *f);

#endif
