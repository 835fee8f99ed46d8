// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of pipeline that make rings share.
#ifndef TIR_PASS_ASYNC_PIPELINE_RING_H
#define TIR_PASS_ASYNC_PIPELINE_RING_H

#include "pass/async/pipeline.h"

struct copy {
    struct tir_inst *copy, *alloc; // copy: a copy_async, or a store of the whole buffer
    struct tir_inst *first, *last; // of the copy's block: the stretch that reads the buffer
    struct ring *ring;
    struct tir_value *slots; // the ring's buffer
    uint32_t width;          // of a store: bytes that cp.async moves instead; 0: it stays, because
    const char *no_copy;
};

typedef VEC(struct copy *) copy_list;

struct ring {
    struct ring *outer;      // its get is in the get of that one; NULL: of none
    struct tir_block *block; // where its copies are
    struct tir_inst *first, *last;
    copy_list copies;
    int64_t stages, slot_bytes;
    bool lag;
};

struct rings {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    copy_list copies;
    VEC(struct ring *) all; // outer ones in front of those in them
    struct tir_map puts;    // block -> struct puts
    uint32_t *places;       // of instructions in their blocks, by id
    bool feeds_mma;         // the products are mma.sync: puts run ahead in line
};

// Is the buffer filled by cp.async, first in the loop, and only read after that (stream.c)? All
// puts of the loop come after it.
bool tir_is_copied_ahead(const struct tir_func *f, const struct tir_value *buffer,
                         const struct tir_block *block);
// ring_stages.c: the loop that the ring's block is of; NULL: of none.
struct tir_inst *tir_loop_of_ring(const struct ring *ring);
// Gives every ring its stages.
void tir_choose_ring_stages(struct rings *r);
// pipeline_ahead.c: replaces the copies of a loop's rings, whose slots are made, by puts that run
// ahead of their rounds. `slots` are theirs.
void tir_put_ahead(struct rings *r, struct tir_inst *loop);

#endif
