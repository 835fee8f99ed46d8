// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ring, gets: a role waits for a slot, and frees it when all that reads it is done.

#include "pass/sync/ring.h"

#include "ir/walk.h"
#include "pass/sync/slot.h"

// Groups of `done` that the block certainly commits.
static int64_t committed(const struct tir_block *block, enum tir_done done)
{
    int64_t groups = 0;
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        groups += tir_is_group(inst, TIR_OP_COMMIT_GROUP, done);
        if (inst->op == TIR_OP_GET)
            groups += committed(inst->regions[0], done);
    }
    return groups;
}

static bool starts(const struct tir_inst *inst, enum tir_done done)
{
    tir_foreach_inst_within(in, inst)
        if (tir_done_of(in) == done)
            return true;
    return false;
}

// Is all that `done` stands for over in front of b's place?
static bool is_over(const struct tir_builder *b, enum tir_done done)
{
    const struct tir_inst *inst = b->before ? b->before->prev : b->block->last;
    for (; inst && !starts(inst, done); inst = inst->prev)
        if (tir_is_group(inst, TIR_OP_WAIT_GROUP, done) &&
            tir_attr_int(inst, TIR_ATTR_groups, 1) == 0)
            return true;
    return false;
}

// One lane of the warp arrives; with multicast one for each CTA of the cluster.
static void build_free(struct rings *r, struct tir_builder *b, const struct ring *ring,
                       struct tir_value *slot, struct tir_value *unless_negative)
{
    struct tir_value *lane = ring_build_lane(b);
    uint32_t ctas = ring->multicast ? r->ctas : 1;
    struct tir_value *mine = tir_binary(b, ctas > 1 ? TIR_OP_LT : TIR_OP_EQ, lane,
                                        tir_const_i32(r->f, ctas > 1 ? (int32_t)ctas : 0));
    if (unless_negative) {
        struct tir_value *some = tir_binary(b, TIR_OP_GE, unless_negative, tir_const_i32(r->f, 0));
        mine = tir_binary(b, TIR_OP_AND, some, mine);
    }
    struct tir_builder in = tir_build_if(b, mine);
    struct tir_value *operands[] = {tir_slot_mbarrier(&in, ring->empty, slot), NULL,
                                    ctas > 1 ? lane : NULL};
    ring_build(&in, TIR_OP_ARRIVE, operands, 3);
}

static bool is_pending(const struct tir_value *prev)
{
    int64_t number;
    return !tir_is_const_int(prev, &number) || number >= 0;
}

// Frees the slot of the last round after a loop, or before an instruction that needs it freed.
void tir_ring_free_last(struct rings *r, struct tir_builder *b, struct ring_state *s,
                        const struct ring *ring)
{
    struct tir_value **prev = ring_part_of(r, s, ring, RING_PREV);
    if (!is_pending(*prev))
        return;
    if (!is_over(b, ring->lagging))
        tir_build_group(b, TIR_OP_WAIT_GROUP, ring->lagging, 0);
    if (ring->lanes_lag)
        ring_build(b, TIR_OP_WARP_SYNC, NULL, 0);
    build_free(r, b, ring, *prev, *prev);
    *prev = tir_const_i32(r->f, -1);
}

// The innermost loop, in whose next round a get with lag frees its slot; NULL: it does so at once,
// since not only lanes and operations in groups of one kind read the slot.
const struct tir_inst *tir_ring_lag_loop(const struct ring *ring, const struct tir_inst *get)
{
    if (ring->stages < 2 || tir_attr_int(get, TIR_ATTR_lag, 0) == 0 ||
        ring->lagging == TIR_DONE_NOW || tir_ring_readers(ring, get).last != ring->lagging)
        return NULL;
    const struct tir_inst *owner = get->block->owner;
    while (owner && owner->op != TIR_OP_FOR && owner->op != TIR_OP_WHILE &&
           owner->op != TIR_OP_TILES)
        owner = owner->block->owner;
    return owner && owner->op != TIR_OP_TILES ? owner : NULL;
}

// A wait after the get, in its block, that all readers of its slot are done at; NULL: there is
// none. A slot is not kept while this role waits for another, unless the ring has a second one:
// what fills both may wait for the first.
static struct tir_inst *wait_after(const struct ring *ring, const struct tir_inst *get,
                                   enum tir_done done)
{
    int64_t younger = 0; // groups that were certainly committed since
    for (struct tir_inst *inst = get->next; inst; inst = inst->next) {
        const bool is_get = inst->op == TIR_OP_GET || inst->op == TIR_OP_PUT;
        if (tir_is_group(inst, TIR_OP_WAIT_GROUP, done) &&
            tir_attr_int(inst, TIR_ATTR_groups, 0) <= younger)
            return inst;
        if ((is_get && ring->stages < 2) || (!is_get && inst->region_count && starts(inst, done)))
            return NULL;
        younger += tir_is_group(inst, TIR_OP_COMMIT_GROUP, done);
        younger += is_get ? committed(inst->regions[0], done) : 0;
    }
    return NULL;
}

// In front of the yield of the block of a get.
static void build_release(struct rings *r, struct tir_builder *b, struct ring_state *s,
                          const struct ring *ring, struct tir_inst *get,
                          struct ring_readers readers, int64_t groups)
{
    struct tir_value *slot = *ring_part_of(r, s, ring, RING_GET_SLOT),
                     **prev = ring_part_of(r, s, ring, RING_PREV);
    const bool lags = tir_ring_lag_loop(ring, get);
    for (enum tir_done done = 0; done < TIR_DONE_COUNT; done++)
        if (readers.by[done] && tir_has_own_groups(done) && (lags || !is_over(b, done)))
            tir_build_group(b, TIR_OP_WAIT_GROUP, done, lags ? groups : 0);
    if (lags) {
        if (ring->lanes_lag)
            ring_build(b, TIR_OP_WARP_SYNC, NULL, 0);
        build_free(r, b, ring, *prev, *prev);
        *prev = slot;
        return;
    }
    for (enum tir_done done = 0; done < TIR_DONE_COUNT; done++)
        if (readers.by[done] && tir_dones[done].reads) {
            struct tir_crew crew = tir_crew_of(r->f, get);
            struct tir_builder in = tir_build_if(b, tir_build_is_leader(b, &crew));
            struct tir_inst *wait = tir_build_group(&in, TIR_OP_WAIT_GROUP, done, 0);
            tir_set_int(r->f, wait, TIR_ATTR_read, 1);
        }
    if (readers.all == TIR_DONE_NOW) // every lane has passed its wait
        ring_build(b, TIR_OP_WARP_SYNC, NULL, 0);
    build_free(r, b, ring, slot, NULL);
}

void tir_ring_lower_get(struct rings *r, struct tir_inst *get, struct ring_state *s)
{
    struct ring *ring = tir_ring_of(r, get);
    struct tir_value **slot = ring_part_of(r, s, ring, RING_GET_SLOT),
                     **phase = ring_part_of(r, s, ring, RING_GET_PHASE);
    struct ring_readers readers = tir_ring_readers(ring, get);
    int64_t groups = committed(get->regions[0], readers.last);
    struct tir_builder b = tir_builder_before(r->f, get);
    if (!tir_ring_lag_loop(ring, get))
        tir_ring_free_last(r, &b, s, ring);
    tir_slot_wait(&b, ring->full, *slot, *phase);
    tir_replace_uses(r->f, get->regions[0]->args[0], *slot);
    tir_ring_thread(r, get->regions[0], s);
    b = tir_builder_before(r->f, tir_yield_of(get->regions[0]));
    // A lane's loads may still be on their way to shared memory when its warp frees the slot, and
    // the copy that fills it again would overtake them.
    if (readers.by[TIR_DONE_NOW] && ring->copies)
        ring_build_fence(&b, TIR_WORD_of_async_shared);
    struct tir_inst *wait = readers.last != TIR_DONE_NOW && !tir_ring_lag_loop(ring, get)
                                ? wait_after(ring, get, readers.last)
                                : NULL;
    if (wait) {
        struct tir_builder after = tir_builder_before(r->f, wait->next);
        if (readers.by[TIR_DONE_NOW]) // what other lanes have loaded
            ring_build(&after, TIR_OP_WARP_SYNC, NULL, 0);
        build_free(r, &after, ring, *slot, NULL);
    } else {
        build_release(r, &b, s, ring, get, readers, groups);
    }
    tir_slot_step(&b, ring->stages, slot, phase);
    tir_ring_open_block(r, get);
}
