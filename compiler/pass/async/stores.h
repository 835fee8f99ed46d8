// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the parts of async_store know of the stores that leave through shared memory.
#ifndef TIR_PASS_ASYNC_STORES_H
#define TIR_PASS_ASYNC_STORES_H

#include "ir/range.h"
#include "machine/budget.h"
#include "pass/async/columns.h"
#include "pass/sync/life.h"

struct turns { // buffers of one type that the chunks of a block's stores go through
    const struct tir_block *block;
    const struct tir_type *type;
    struct tir_value *buffers[TIR_BUDGET_STORE_BUFFERS];
    uint32_t count, next;
};

struct stores {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_ranges *ranges;
    VEC(struct tir_inst *) stores, atomics; // of tiles, to tensors
    VEC(struct turns) turns;
    struct tir_lives lives; // of shared memory, if slots are made already; else without `f`
};

struct outgoing {
    struct tir_func *f;
    struct tir_inst *store;      // or an atomic
    const struct tir_type *type; // of the value; of runs of its columns, a dimension in front
    int64_t runs;                // of columns, each in warps of its own, or 1
    uint32_t warps;              // that the value is spread over
    uint32_t cut;                // the dimension that chunks divide: the columns, or the rows
    int64_t extent;              // of a chunk along it
    bool is_computed;            // a chunk at a time, of columns
    struct tir_columns columns;  // those of the widest chunk
};

// Chunks (store_chunks.c).

// Is inst an atomic of each round of a loop of products, small enough for a buffer of its own?
bool tir_outgoing_repeats(const struct tir_inst *inst);
// Columns of the next chunk of the store, with `left` of a row: as many as a power of two of bytes
// holds, or all.
int64_t tir_outgoing_columns(const struct tir_inst *store, int64_t left);
// Columns of a chunk if they leave through registers: equal parts of a row of 128 to 256 bytes,
// whole atoms of the swizzle where the row is, or else 256 bytes and a rest. 0: threads have no
// such parts. One buffer is as large as two of tensor copies; as one, if columns are spread over
// warps and others are loaded and added.
int64_t tir_outgoing_row_columns(const struct stores *s, struct tir_inst *store);
// Do chunks of rows serve?
bool tir_outgoing_cuts_rows(const struct stores *s, struct tir_inst *store);
// Why the value of the store cannot leave in chunks.
const char *tir_outgoing_refusal(const struct stores *s, struct tir_inst *store);
// How it leaves; in_rows: through registers again, in rows.
void tir_outgoing_open(struct outgoing *o, const struct stores *s, struct tir_inst *store,
                       bool in_rows);
const struct tir_type *tir_outgoing_chunk_type(const struct outgoing *o);
const struct tir_type *tir_outgoing_buffer_type(const struct outgoing *o);
// Widths of chunks. Those of one width have one tensor map.
uint32_t tir_outgoing_widths(const struct outgoing *o);
// The value, with its runs in front; its chunk that begins at `start`, on its way to the buffer;
// the part of a buffer that holds the chunk of one run.
struct tir_value *tir_outgoing_value(const struct outgoing *o, struct tir_builder *b);
struct tir_value *tir_outgoing_chunk(struct outgoing *o, struct stores *s, struct tir_builder *b,
                                     struct tir_value *whole, int64_t start,
                                     struct tir_value *buffer);
struct tir_value *tir_outgoing_run(const struct outgoing *o, struct tir_builder *b,
                                   struct tir_value *buffer, int64_t run);

// Buffers (store_buffers.c).

// The next one for a chunk of this extent. There are `count` for such chunks at most.
struct tir_value *tir_turns_next(struct stores *s, const struct outgoing *o, int64_t count);
// Is there room for the store's? Slots that are made later leave some, others may not.
bool tir_turns_have_room(struct stores *s, struct tir_inst *store, bool in_rows);

#endif
