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
    enum tir_elem elem, acc; // of A, and mostly of B; of the sums
    enum tir_word kind;      // of the instruction
    uint32_t depth;          // K of one instruction
    uint32_t feature;        // of targets that have it
};

// Does one instruction multiply these elements? Those of fp8 also the other ones, and bytes with a
// sign those without.
bool tir_elems_multiply(enum tir_elem a, enum tir_elem b);
// NULL: the engine has no such product.
const struct tir_product *tir_product_find(enum tir_engine engine, enum tir_elem a, enum tir_elem b,
                                           enum tir_elem acc);
// The word for B's elements if A's are others, else NONE.
enum tir_word tir_b_kind(enum tir_elem a, enum tir_elem b);
// Has an instruction without scales for A's elements `kind` such ones of B?
bool tir_kind_takes(enum tir_word kind, enum tir_word b_kind);
// The first one of that kind: its depth and feature are those of all. NULL: there is none.
const struct tir_product *tir_product_of_kind(enum tir_engine engine, enum tir_word kind);

// A product with scales for blocks along K.
struct tir_scaled {
    enum tir_engine engine;
    enum tir_elem elem, scale;  // of A and B as memory has them, two e2m1 in a u8; of their scales
    enum tir_word kind, b_kind; // of A's elements and the instruction, and of B's
    uint32_t scales;            // of a row in one instruction
    uint32_t feature;           // of targets that have it
};
enum { TIR_SCALED_BYTES = 32 }; // of a row in one instruction

// Elements of K that share a scale.
static inline int64_t tir_scaled_block(const struct tir_scaled *s)
{
    return TIR_SCALED_BYTES * (s->elem == TIR_U8 ? 2 : 1) / s->scales;
}
// NULL: there is none.
const struct tir_scaled *tir_scaled_find(enum tir_engine engine, enum tir_elem elem,
                                         enum tir_elem scale);
const struct tir_scaled *tir_scaled_of_kind(enum tir_engine engine, enum tir_word kind,
                                            uint32_t scales);

#endif
