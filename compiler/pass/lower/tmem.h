// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, tensor memory: what its products, copies, loads and stores have in common.
#ifndef TIR_PASS_LOWER_TMEM_H
#define TIR_PASS_LOWER_TMEM_H

#include "pass/lower/lower.h"

enum { TMEM_COLUMN_BITS = 32 }; // of one lane

// Reports that there is no tcgen05 for inst. False.
bool tir_lower_tmem_refuse(struct lower *lo, const struct tir_inst *inst, const char *why);
bool tir_lower_has_tcgen05(struct lower *lo, const struct tir_inst *inst); // false: reported
// Of a buffer, or a part of one. NULL: reported.
struct tir_value *tir_lower_tmem_address(struct lower *lo, struct tir_value *buffer);
// The columns of a row of the whole buffer that v is a part of, in each lane.
int64_t tir_lower_tmem_row_columns(const struct lower *lo, const struct tir_value *v);
// Where block i of rows begins, beside the address of the first one.
int64_t tir_lower_tmem_block_at(const struct lower *lo, int64_t rows, int64_t columns, int64_t i);

// What loads of tensor memory have found of a tile whose rows are reduced: by its registers, of the
// first of each instruction the largest, or smallest, of all that the instruction loads; NULL: of
// the others.
struct lower_reduced {
    enum tir_word kind;
    struct tir_value **of;
};

#endif
