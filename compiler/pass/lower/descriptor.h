// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operands of matrix instructions in shared memory, as descriptors say them: of wgmma and tcgen05.
#ifndef TIR_PASS_LOWER_DESCRIPTOR_H
#define TIR_PASS_LOWER_DESCRIPTOR_H

#include "pass/lower/lower.h"

enum lower_descriptor_kind { LOWER_DESCRIPTOR_WGMMA, LOWER_DESCRIPTOR_TCGEN05 };

struct lower_descriptor {
    enum lower_descriptor_kind kind;
    uint32_t depth, steps, bits; // K of one instruction; instructions along K; of an element
    uint32_t k_dim;              // of the buffer: 1 for A, 0 for B
    // What follows from the buffer.
    struct lower_part part;
    bool trans; // M or N is contiguous
    uint32_t swizzle;
    int64_t leading, stride; // bytes
    struct tir_value *start; // the descriptor of where the part starts
};

// Takes the buffer, `rows` along M or N of which are an instruction's or a warpgroup's. A reason
// against it, or NULL.
const char *tir_lower_descriptor_open(struct lower *lo, struct lower_descriptor *d,
                                      struct tir_value *buffer, int64_t rows);
// Does the descriptor describe `rows` rows from r0 on, for every step along K?
bool tir_lower_descriptor_fits(const struct lower_descriptor *d, int64_t r0, int64_t rows);
// Computes the descriptor of the start. A reason against it, or NULL.
const char *tir_lower_descriptor_build(struct lower *lo, struct lower_descriptor *d);
struct tir_value *tir_lower_descriptor_at(struct lower *lo, const struct lower_descriptor *d,
                                          int64_t r, int64_t k);
// What one step along K adds to the descriptor, from `step` on at row r.
int64_t tir_lower_descriptor_step(const struct lower_descriptor *d, int64_t r, uint32_t step);

#endif
