// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Computing some columns of a tile by themselves; a part of async_copy.
#ifndef TIR_PASS_ASYNC_COLUMNS_H
#define TIR_PASS_ASYNC_COLUMNS_H

#include "base/bitset.h"
#include "ir/walk.h"
#include "pass/pass.h"

struct tir_columns {
    struct tir_func *f;
    struct tir_arena *scratch;
    int64_t whole;                 // columns of the stored tile
    bool is_spread;                // over warps: then all is computed so, from loads on
    bool has_loads;                // of tensors
    struct bitset inside;          // values with no use except for the stored tile, by id
    struct tir_value *stored;      // the tile
    const struct tir_block *block; // of the store
    struct tir_value *buffer; // shared, of the widest chunk: for tensors whose rows are not aligned
    uint32_t warps;           // that tiles are spread over there
    int64_t start, count;     // the columns of the chunk that is being built
    struct tir_map built;     // value -> its columns in this chunk
};

// Finds the values that can be computed in chunks of `count` columns for `store`. False: threads do
// not have such chunks of the stored tile.
bool tir_columns_init(struct tir_columns *c, struct tir_func *f, struct tir_arena *scratch,
                      struct tir_inst *store, int64_t count);
bool tir_columns_has(const struct tir_columns *c, const struct tir_value *v); // are they these?
// The columns of the stored tile from `start` on, built at b, on their way to `buffer`.
struct tir_value *tir_columns_build(struct tir_columns *c, struct tir_builder *b,
                                    struct tir_value *buffer, int64_t start);

#endif
