// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the parts of the interpreter: the value slots, the mask of running threads, and
// failing.
//
// A value is an array of numbers: the elements of a tile in row-major order, or a scalar once per
// lane. There is one lane at tile level and one per thread of the CTA in an explicit kernel or one
// with roles, so that one loop serves tiles and threads alike. Slots are made when a value is first
// computed and used again whenever it is computed anew.
#ifndef TIR_INTERP_STATE_H
#define TIR_INTERP_STATE_H

#include <setjmp.h>

#include "interp/interp.h"
#include "ir/number.h"

struct buffer { // a tensor, a shared or local buffer, or a part of one
    uint8_t *data;
    enum tir_elem elem;
    uint32_t rank;
    int64_t first;                                     // the element at index 0, 0, ...
    int64_t shape[TIR_MAX_RANK], stride[TIR_MAX_RANK]; // in elements
    int64_t lane_stride; // between the copies of neighbouring lanes (local); else 0
    // Of an alias whose elements are elsewhere than in order: the byte of `data` for each of its
    // bytes. NULL: in order.
    const uint32_t *bytes;
};

struct slot {
    union tir_number *at;   // NULL: not computed yet
    union tir_number *next; // where a carried value's successor is staged
    struct buffer *buffer;  // of a value that is a buffer
    struct queue *queue;    // of a ring, by its first buffer
};

struct interp {
    struct tir_func *f;
    struct slot *slots;       // by value id
    struct tir_arena arena;   // slots and buffers: until the end
    struct tir_arena scratch; // within one instruction
    uint32_t lanes;           // running in lockstep: 1 at tile level
    uint32_t max_lanes;       // room for each scalar
    uint32_t first_lane;      // the thread that lane 0 is: not 0 in roles and scopes
    uint32_t window;          // in a scope: the lane of the role or CTA that lane 0 is; else 0
    uint8_t *active;          // lanes that run now
    uint32_t active_count;
    bool threads; // an explicit kernel: lanes are threads
    int64_t cta[3], grid[3];
    uint8_t *shared;                          // placed buffers, f->shared_bytes
    const struct tir_interp_options *options; // NULL: none
    uint64_t steps, step_limit;
    bool only_conditions;
    jmp_buf *escape;
    tir_error *error;
    tir_status status;
};

// Ends the run with a message that starts with the position of `inst` (NULL: of the kernel).
TIR_NORETURN void tir_interp_fail(struct interp *in, const struct tir_inst *inst, tir_status status,
                                  const char *format, ...) TIR_PRINTF(4, 5);

// Runs the instructions of a block up to its yield, if it has one.
void tir_interp_block(struct interp *in, const struct tir_block *block);
// Runs `inst` and those after it, up to `end` (NULL: to the end of the block).
void tir_interp_until(struct interp *in, const struct tir_inst *inst, const struct tir_inst *end);

// A kernel whose CTAs wait for each other (grid.c): runs all of them.
bool tir_interp_syncs_grid(const struct tir_func *f);
void tir_interp_grid(struct interp *in);

// How many numbers a value has here: the elements of a tile, or one per lane.
static inline uint32_t count_of(const struct interp *in, const struct tir_type *type)
{
    return type->rank ? (uint32_t)tir_type_count(type) : in->lanes;
}

// The numbers of a value that was computed before, or is a constant.
const union tir_number *tir_interp_read(struct interp *in, const struct tir_value *v);
// Room for the numbers of a value that is computed now.
union tir_number *tir_interp_write(struct interp *in, const struct tir_value *v);
// A scalar that must be the same in every running lane.
union tir_number tir_interp_uniform(struct interp *in, const struct tir_inst *inst,
                                    const struct tir_value *v);
const struct buffer *tir_interp_buffer(struct interp *in, const struct tir_inst *inst,
                                       const struct tir_value *v);
// `to` = `from` in the running lanes.
void tir_interp_copy(struct interp *in, const struct tir_inst *inst, const struct tir_value *to,
                     const struct tir_value *from);

// args[i] = what the block yields, all at once: a yield may name the arguments themselves.
void tir_interp_carry(struct interp *in, const struct tir_inst *inst, struct tir_value **args,
                      const struct tir_block *body);
// x + step, if the type can hold it.
bool tir_interp_step(enum tir_elem elem, int64_t *x, int64_t step);

// Each kind of instruction (the files shape.c, memory.c, thread.c, control.c, role.c).
#define INTERP_OPS(X)                 \
    X(CAST, cast)                     \
    X(BITCAST, bitcast)               \
    X(EXPAND, expand)                 \
    X(BROADCAST, broadcast)           \
    X(RESHAPE, reshape)               \
    X(PERMUTE, permute)               \
    X(EXTRACT, extract)               \
    X(IOTA, iota)                     \
    X(PIXEL_INDEX, pixel_index)       \
    X(CONVERT_LAYOUT, convert_layout) \
    X(REDUCE, reduce)                 \
    X(SCAN, scan)                     \
    X(DOT, dot)                       \
    X(LOAD, load)                     \
    X(STORE, store)                   \
    X(ATOMIC, atomic)                 \
    X(ALLOC, alloc)                   \
    X(ALIAS, alias)                   \
    X(VIEW, view)                     \
    X(COPY_ASYNC, copy_async)         \
    X(COMMIT_GROUP, nothing)          \
    X(WAIT_GROUP, nothing)            \
    X(STRIDE, stride)                 \
    X(ALIGNMENT, alignment)           \
    X(ASKEW, askew)                   \
    X(TILES, tiles)                   \
    X(FOR, for)                       \
    X(IF, if)                         \
    X(WHILE, while)                   \
    X(YIELD, nothing)                 \
    X(ASSUME, assume)                 \
    X(PRINT, print)                   \
    X(ASSERT, assert)                 \
    X(TRAP, trap)                     \
    X(ASSUME_SYNC, assume_sync)       \
    X(TID, thread_id)                 \
    X(LANEID, thread_id)              \
    X(WARPID, thread_id)              \
    X(WGID, thread_id)                \
    X(TID_IN_WG, thread_id)           \
    X(CTA_ID, cta)                    \
    X(NUM_CTAS, cta)                  \
    X(NUM_THREADS, num_threads)       \
    X(BAR_SYNC, bar_sync)             \
    X(WARP_SYNC, warp_sync)           \
    X(SHUFFLE, shuffle)               \
    X(VOTE, vote)                     \
    X(ELECT, elect)                   \
    X(ROLE, role)                     \
    X(SCOPE, scope)                   \
    X(RING, ring)                     \
    X(PUT, put)                       \
    X(GET, get)                       \
    X(GEMM_ASYNC, dot)                \
    X(AWAIT, await)                   \
    X(STORE_ASYNC, store_async)       \
    X(PREFETCH, nothing)              \
    X(FENCE, nothing)                 \
    X(SETMAXNREG, nothing)            \
    X(GRIDDEPCONTROL, nothing)

#define X(op, name) void tir_interp_##name(struct interp *in, const struct tir_inst *inst);
INTERP_OPS(X)
#undef X

// Loads all of a buffer into `to`, row-major.
// The element whose lowest bit is that bit of the first of two bytes.
union tir_number tir_interp_packed(enum tir_elem elem, uint32_t bit, const union tir_number *bytes);
void tir_interp_load_all(struct interp *in, const struct buffer *b, union tir_number *to);
// An operation used `v` (NULL: none), a buffer, as scratch: its contents are undefined now.
void tir_interp_scribble(struct interp *in, const struct tir_inst *inst, const struct tir_value *v);
// permute of a buffer.
void tir_interp_transpose(struct interp *in, const struct tir_inst *inst);
void tir_interp_reshape_buffer(struct interp *in, const struct tir_inst *inst);

#endif
