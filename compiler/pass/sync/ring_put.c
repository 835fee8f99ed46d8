// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ring, puts: a role waits for a free slot, fills it and hands it on.

#include "pass/sync/ring.h"

#include "ir/walk.h"
#include "pass/sync/slot.h"

// Whether each warp of the putters arrives at `full`. It does for its own writes, and so that no
// warp falls two rounds behind the one that starts the copies: it would see the same parity and go
// on too early. A warp that also gets the slots cannot fall behind.
bool tir_ring_all_hand_on(const struct ring *ring)
{
    return ring->stores || !ring->copies || (ring->putter.warps > 1 && !ring->of_one_role);
}

// How many CTAs a copy goes to, where the mask is a constant, shifted or not; else 0.
static int64_t copies_landing(const struct tir_inst *copy)
{
    const struct tir_value *mask = copy->operands[TIR_COPY_CTAS];
    int64_t bits, count = 0;
    if (!mask)
        return 1;
    if (mask->def && mask->def->op == TIR_OP_SHL)
        mask = mask->def->operands[0]; // as many, elsewhere
    if (!tir_is_const_int(mask, &bits))
        return 0;
    for (uint64_t rest = (uint64_t)bits; rest; rest &= rest - 1)
        count++;
    return count;
}

static int64_t bytes_of(const struct tir_type *t, uint32_t from)
{
    int64_t elements = 1;
    for (uint32_t d = from; d < t->rank; d++)
        elements *= t->shape[d];
    return elements * tir_elems[t->elem].bits / 8;
}

// Bytes that land in each CTA's slot. The CTAs of a cluster run the same program, so for each copy
// from another CTA to this one there is an equal copy in the other direction. If their number is
// not known, together they fill the buffer's slot.
static int64_t landing_bytes(struct rings *r, const struct ring *ring, const struct tir_inst *put)
{
    bool *whole = arena_array(r->cx->scratch, bool, ring->inst->result_count);
    int64_t bytes = 0;
    for (const struct tir_inst *inst = put->regions[0]->first; inst; inst = inst->next)
        if (tir_is_engine_copy(inst) && !copies_landing(inst))
            whole[tir_buffer_root(inst->operands[TIR_COPY_TO])->index] = true;
    for (const struct tir_inst *inst = put->regions[0]->first; inst; inst = inst->next)
        if (tir_is_engine_copy(inst) && !whole[tir_buffer_root(inst->operands[TIR_COPY_TO])->index])
            bytes += copies_landing(inst) * bytes_of(inst->operands[TIR_COPY_TO]->type, 0);
    for (uint32_t i = 0; i < ring->inst->result_count; i++)
        bytes += whole[i] ? bytes_of(ring->inst->results[i]->type, 1) : 0;
    return bytes;
}

static struct tir_inst *last_copy(const struct tir_inst *put)
{
    struct tir_inst *last = NULL;
    for (struct tir_inst *inst = put->regions[0]->first; inst; inst = inst->next)
        if (tir_is_engine_copy(inst))
            last = inst;
    return last;
}

// The rows that it names are loaded by the thread that starts it, if the put loads them for it.
static void move_rows(const struct tir_inst *copy, const struct tir_inst *put,
                      struct tir_inst *before)
{
    struct tir_inst *load = tir_copied_rows(copy)->def;
    if (load->block == put->regions[0])
        tir_move_before(load, before);
}

// One thread announces the bytes and starts the copies, where the last of them stood.
static void start_copies(struct rings *r, struct ring *ring, struct tir_inst *put,
                         struct tir_value *slot)
{
    struct tir_block *block = put->regions[0];
    struct tir_inst *last = last_copy(put);
    int64_t bytes = landing_bytes(r, ring, put);
    struct tir_builder b = tir_builder_before(r->f, last ? last : tir_yield_of(block));
    struct tir_value *full = tir_slot_mbarrier(&b, ring->full, slot), *mine;
    if (ring->putter.warps == 1)
        mine =
            tir_build1(&b, TIR_OP_ELECT, tir_type_scalar(r->f->module->types, TIR_BOOL), NULL, 0);
    else
        mine = tir_build_is_leader(&b, &ring->putter);
    struct tir_builder in = tir_build_if(&b, mine);
    struct tir_inst *arrive =
        ring_build(&in, TIR_OP_ARRIVE, (struct tir_value *[]){full, NULL, NULL}, 3);
    if (bytes)
        tir_set_int(r->f, arrive, TIR_ATTR_bytes, bytes);
    ring->slot_bytes = TIR_MAX(ring->slot_bytes, bytes);
    tir_foreach_inst_safe(inst, block)
        if (tir_is_engine_copy(inst)) {
            inst->operands[TIR_COPY_MBAR] = full;
            if (tir_copied_rows(inst))
                move_rows(inst, put, in.before);
            tir_move_before(inst, in.before);
        }
}

// The warps' own writes are done, and its lanes have seen that: one of them is to arrive.
static struct tir_value *build_written(struct rings *r, struct tir_builder *b,
                                       const struct ring *ring)
{
    if (ring->read_async && (ring->stores || !ring->copies))
        ring_build_fence(b, TIR_WORD_of_async_shared);
    ring_build(b, TIR_OP_WARP_SYNC, NULL, 0);
    return tir_binary(b, TIR_OP_EQ, ring_build_lane(b), tir_const_i32(r->f, 0));
}

static void build_full(struct tir_builder *b, const struct ring *ring, struct tir_value *slot,
                       struct tir_value *condition)
{
    struct tir_builder in = tir_build_if(b, condition);
    ring_build(&in, TIR_OP_ARRIVE,
               (struct tir_value *[]){tir_slot_mbarrier(&in, ring->full, slot), NULL, NULL}, 3);
}

static void hand_on(struct rings *r, struct tir_builder *b, const struct ring *ring,
                    struct tir_block *block, struct tir_value *slot)
{
    if (tir_has_thread_copies(block)) {
        tir_build_group(b, TIR_OP_COMMIT_GROUP, TIR_DONE_CP_ASYNC, 0);
        tir_build_group(b, TIR_OP_WAIT_GROUP, TIR_DONE_CP_ASYNC, 0);
    }
    build_full(b, ring, slot, build_written(r, b, ring));
}

// Handing on late.

// The slot that was filled `rounds` before.
static struct tir_value *slot_before(struct tir_builder *b, const struct ring *ring,
                                     struct tir_value *slot, int64_t rounds)
{
    struct tir_value *back = tir_const_i32(b->f, (int32_t)rounds);
    struct tir_value *round = tir_const_i32(b->f, (int32_t)(ring->stages - rounds));
    struct tir_value *choice[] = {tir_binary(b, TIR_OP_LT, slot, back),
                                  tir_binary(b, TIR_OP_ADD, slot, round),
                                  tir_binary(b, TIR_OP_SUB, slot, back)};
    return tir_build1(b, TIR_OP_WHERE, slot->type, choice, 3);
}

// Of the slots that are late, the one that was filled `rounds` before, if there is one.
static void build_late(struct tir_builder *b, const struct ring *ring, struct tir_value *slot,
                       struct tir_value *late, int64_t rounds, struct tir_value *one)
{
    struct tir_value *some = tir_binary(b, TIR_OP_GE, late, tir_const_i32(b->f, (int32_t)rounds));
    build_full(b, ring, slot_before(b, ring, slot, rounds), tir_binary(b, TIR_OP_AND, some, one));
}

static void hand_on_late(struct rings *r, struct tir_builder *b, const struct ring *ring,
                         struct tir_value *slot, struct tir_value **late)
{
    tir_build_group(b, TIR_OP_COMMIT_GROUP, TIR_DONE_CP_ASYNC, 0);
    tir_build_group(b, TIR_OP_WAIT_GROUP, TIR_DONE_CP_ASYNC, ring->late);
    build_late(b, ring, slot, *late, ring->late, build_written(r, b, ring));
    struct tir_value *next = tir_binary(b, TIR_OP_ADD, *late, tir_const_i32(b->f, 1));
    *late = tir_binary(b, TIR_OP_MIN, next, tir_const_i32(b->f, (int32_t)ring->late));
}

// After the loop: all that is left. The slot is the next one.
void tir_ring_hand_on_rest(struct rings *r, struct tir_builder *b, struct ring_state *s,
                           const struct ring *ring)
{
    struct tir_value **late = ring_part_of(r, s, ring, RING_LATE);
    tir_build_group(b, TIR_OP_WAIT_GROUP, TIR_DONE_CP_ASYNC, 0);
    struct tir_value *one = build_written(r, b, ring);
    for (int64_t rounds = ring->late; rounds; rounds--)
        build_late(b, ring, *ring_part_of(r, s, ring, RING_PUT_SLOT), *late, rounds, one);
    *late = tir_const_i32(r->f, 0);
}

void tir_ring_lower_put(struct rings *r, struct tir_inst *put, struct ring_state *s)
{
    struct ring *ring = tir_ring_of(r, put);
    struct tir_value **slot = ring_part_of(r, s, ring, RING_PUT_SLOT),
                     **phase = ring_part_of(r, s, ring, RING_PUT_PHASE);
    struct tir_builder b = tir_builder_before(r->f, put);
    tir_slot_wait(&b, ring->empty, *slot, *phase);
    tir_replace_uses(r->f, put->regions[0]->args[0], *slot);
    tir_ring_thread(r, put->regions[0], s);
    if (ring->copies)
        start_copies(r, ring, put, *slot);
    b = tir_builder_before(r->f, tir_yield_of(put->regions[0]));
    if (ring->late)
        hand_on_late(r, &b, ring, *slot, ring_part_of(r, s, ring, RING_LATE));
    else if (tir_ring_all_hand_on(ring))
        hand_on(r, &b, ring, put->regions[0], *slot);
    tir_slot_step(&b, ring->stages, slot, phase);
    tir_ring_open_block(r, put);
}
