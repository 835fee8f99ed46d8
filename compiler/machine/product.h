// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The machine's matrix products, from product.def.
#ifndef TIR_MACHINE_PRODUCT_H
#define TIR_MACHINE_PRODUCT_H

#include "ir/ir.h"
#include "machine/target.h"

enum tir_engine {
#define ENGINE(id, ...) TIR_ENGINE_##id,
#include "machine/product.def"
    TIR_ENGINE_COUNT
};

// The shapes of an engine as constants: TIR_WGMMA_ROWS.
enum {
#define ENGINE(id, warps, rows, fewest, most)                                      \
    TIR_##id##_WARPS = warps, TIR_##id##_ROWS = rows, TIR_##id##_COLUMNS = fewest, \
    TIR_##id##_MOST_COLUMNS = most,
#include "machine/product.def"
};

struct tir_product {
    enum tir_engine engine;
    enum tir_elem elem, acc; // of A and B; of the sums
    enum tir_word kind;      // of the instruction
    uint32_t depth;          // K of one instruction
    uint32_t feature;        // of targets that have it
};

// NULL: the engine has no such product.
const struct tir_product *tir_product_find(enum tir_engine engine, enum tir_elem elem,
                                           enum tir_elem acc);
// The first one of that kind: its depth and feature are those of all. NULL: there is none.
const struct tir_product *tir_product_of_kind(enum tir_engine engine, enum tir_word kind);

#endif
