// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scales of products in tensor memory, and copies from shared memory.
#ifndef TIR_PASS_LOWER_SCALES_H
#define TIR_PASS_LOWER_SCALES_H

#include "pass/lower/lower.h"

// Where scales are: the column, and which of the four of a word comes first.
struct lower_scales {
    struct tir_value *at;
    uint32_t id;
    int64_t word_columns;          // from one word of a row to the next
    int64_t columns[TIR_MAX_RANK]; // that a step of each dimension before the last two is
};

// Finds a buffer of scales or a part of one. A reason against it, or NULL.
const char *tir_lower_scales_find(struct lower *lo, struct tir_value *v, struct lower_scales *s);
// Copies blocks of 128 rows and 4 scales from a shared buffer; *count: how many. A reason against
// it, or NULL.
const char *tir_lower_scales_copy(struct lower *lo, struct tir_value *to, struct tir_value *from,
                                  uint32_t *count);
// One tcgen05.cp of `rows` rows of row_bits, from a descriptor to an address.
void tir_lower_tmem_cp(struct lower *lo, struct tir_value *to, struct tir_value *from,
                       int64_t row_bits, int64_t rows);

#endif
