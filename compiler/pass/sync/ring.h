// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts of the ring pass.
#ifndef TIR_PASS_SYNC_RING_H
#define TIR_PASS_SYNC_RING_H

#include "ir/effect.h"
#include "pass/pass.h"
#include "pass/sync/crew.h"

struct ring {
    struct tir_inst *inst;
    int64_t stages, slot_bytes;
    struct tir_value *full, *empty;
    struct tir_crew putter;
    VEC(struct tir_inst *) puts;
    VEC(struct tir_inst *) gets;
    bool copies, stores;   // how slots are filled
    bool read_async;       // by products on warpgroups or tensor copies
    bool multicast;        // copies go to several CTAs
    bool of_one_role;      // the same role fills and empties it
    int64_t late;          // rounds after which a slot that cp.async fills is handed on
    uint32_t getters;      // warps that free each slot
    enum tir_done lagging; // says when what reads a slot is done that a later round frees
    bool lanes_lag;        // lanes load from such a slot, too
};

struct rings {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    VEC(struct ring) all;
    struct tir_map buffers; // a ring's result -> its alloc
    uint32_t ctas;          // of a cluster
    bool failed;
};

// Finds the rings of r->f and the roles that fill and empty them. Refuses (r->failed) rings that
// cannot be queues.
void tir_rings_collect(struct rings *r);
// The ring of a put or get.
struct ring *tir_ring_of(struct rings *r, const struct tir_inst *inst);
const char *tir_ring_name(const struct ring *ring);
// Does the instruction access a slot of the ring?
bool tir_ring_is_touched(const struct ring *ring, const struct tir_inst *inst);
// What says that the readers of a slot that a get took are done.
struct ring_readers {
    bool by[TIR_DONE_COUNT];
    enum tir_done all;  // of all of them, with groups of each warpgroup; NOW: they differ, or none
    enum tir_done last; // the same of all that are not done where they stand
};
struct ring_readers tir_ring_readers(const struct ring *ring, const struct tir_inst *get);
// Does each warp or warpgroup commit and wait for its own groups?
bool tir_has_own_groups(enum tir_done done);
// Do threads copy by cp.async in the block of a put?
bool tir_has_thread_copies(struct tir_block *block);
// The innermost loop around a put, in whose next rounds its slot may be handed on; NULL: none.
struct tir_inst *tir_ring_loop(const struct tir_inst *put);
// Is it a copy by an engine, without an mbarrier yet?
bool tir_is_engine_copy(const struct tir_inst *inst);

// What is carried of each ring.
enum ring_part {
    RING_PUT_SLOT,
    RING_PUT_PHASE,
    RING_LATE,
    RING_GET_SLOT,
    RING_GET_PHASE,
    RING_PREV,
    RING_PARTS
};

// The state of one role: RING_PARTS values for each ring.
struct ring_state {
    struct tir_value **at;
};

static inline struct tir_value **ring_part_of(struct rings *r, struct ring_state *s,
                                              const struct ring *ring, enum ring_part part)
{
    return &s->at[(size_t)(ring - r->all.at) * RING_PARTS + part];
}

static inline struct tir_inst *ring_build(struct tir_builder *b, enum tir_op op,
                                          struct tir_value *const *operands, uint32_t count)
{
    return tir_build(b, op, operands, count, NULL, 0, 0);
}

static inline void ring_build_fence(struct tir_builder *b, enum tir_word of)
{
    tir_set_word(b->f, ring_build(b, TIR_OP_FENCE, NULL, 0), TIR_ATTR_of, of);
}

static inline struct tir_value *ring_build_lane(struct tir_builder *b)
{
    return tir_build1(b, TIR_OP_LANEID, tir_type_scalar(b->f->module->types, TIR_I32), NULL, 0);
}

// ring.c: puts and gets in the block, in its loops, branches and roles.
void tir_ring_thread(struct rings *r, struct tir_block *block, struct ring_state *s);
// The block of a put or get takes its place.
void tir_ring_open_block(struct rings *r, struct tir_inst *inst);

// ring_put.c
void tir_ring_lower_put(struct rings *r, struct tir_inst *put, struct ring_state *s);
// Does each warp of the putters arrive at `full`?
bool tir_ring_all_hand_on(const struct ring *ring);
// After the loop: all that is left. The slot is the next one.
void tir_ring_hand_on_rest(struct rings *r, struct tir_builder *b, struct ring_state *s,
                           const struct ring *ring);

// ring_get.c
void tir_ring_lower_get(struct rings *r, struct tir_inst *get, struct ring_state *s);
// Frees the slot of the last round after a loop, or before an instruction that needs it freed.
void tir_ring_free_last(struct rings *r, struct tir_builder *b, struct ring_state *s,
                        const struct ring *ring);
// The innermost loop, in whose next round a get with lag frees its slot; NULL: it does so at once,
// since not only lanes and operations in groups of one kind read the slot.
const struct tir_inst *tir_ring_lag_loop(const struct ring *ring, const struct tir_inst *get);

#endif
