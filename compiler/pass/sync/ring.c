// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ring: queues of tiles become buffers, mbarriers and waits.
//
//     let a: shared bf16[4, 128, 64] in S = ring(stages = 4);
//     role load ... {
//         for k ... { put(a) with (slot: i32) { copy_async(view(a[slot, ...]), ...); } }
//     }
//     role math ... {
//         for k ... { let d: T = get(a) with (slot: i32) { ...; yield d; } }
//     }
// becomes
//     let a: shared bf16[4, 128, 64] in S = alloc();
//     let full: shared mbarrier[4] = alloc();
//     let empty: shared mbarrier[4] = alloc();
//     (one thread initialises them; a barrier)
//     role load ... {
//         for k ... carry (s: i32 = 0, p: i32 = 1) {
//             wait(empty[s], p);
//             if elect_sync() { arrive(full[s], bytes = 16384); copy_async(..., mbar = full[s]); }
//             yield (s + 1 or 0), (p, or its complement where s wraps);
//         }
//     }
//     role math ... {
//         for k ... carry (s: i32 = 0, p: i32 = 0) {
//             wait(full[s], p);  ...  if laneid() == 0 { arrive(empty[s]); }
//             yield ...
//         }
//     }
//
// Slot and phase are the state of (ring, role, side). They are carried through every loop and
// branch around a put or get, and advance once after each. Nothing is derived from a loop's
// variable, so any trip count is right, 0 included. A producer begins with phase 1, as if every
// slot had been freed once.
//
// Arrivals at `full`: one thread with the bytes, if any put starts tensor or bulk copies; and one
// lane of each warp of the producer after its writes, if any put writes a slot by other means.
// Arrivals at `empty`: one lane of each warp of each role that gets, when nothing reads the slot
// any more. Products on warpgroups are awaited before that: where they are awaited anyway, if that
// is after the get in its block, else at the end of the get; lanes that load from the slot wait for
// each other, and fence their loads if copies fill it. With lag, a slot is freed in the next round
// of the innermost loop (its number is carried as `prev`), when all products but that round's have
// finished, and the last one after the loop. If copies go to several CTAs of the cluster, the
// consumers of every CTA free the slot in all of them, and a producer ends by waiting until all its
// slots are free, so that no CTA arrives at an mbarrier of a CTA that has exited.
//
// Slots that threads fill by cp.async are handed on some rounds late, so that copies of several
// rounds are in flight: in each round, the slot that was filled LATE_ROUNDS (a budget) before,
// when all but the youngest groups of copies are done; and what is left after the innermost loop.
// `late` says how many are left. The loop must do nothing but fill rings with more slots than
// that: else what it waits for may wait for a slot that is late.
//
// Assumptions: puts of one ring are in one role; each put fills its slot with copies directly in
// its block; blocks read slots only of their own get. lag needs two slots: with one, a slot is
// freed in the round itself. Every role with gets of a ring sees each of its tiles. From here on
// every role states its first warp.

#include "pass/sync/ring.h"

#include "ir/carry.h"
#include "ir/walk.h"
#include "pass/receipt.h"
#include "pass/sync/slot.h"

enum part { PUT_SLOT, PUT_PHASE, LATE, GET_SLOT, GET_PHASE, PREV, PARTS };

static const char *const part_names[PARTS] = {"slot", "phase", "late", "slot", "phase", "prev"};

// The state of one role: PARTS values for each ring.
struct state {
    struct tir_value **at;
};

static struct tir_value **part_of(struct rings *r, struct state *s, const struct ring *ring,
                                  enum part part)
{
    return &s->at[(size_t)(ring - r->all.at) * PARTS + part];
}

// Small things to build.

static struct tir_inst *build(struct tir_builder *b, enum tir_op op,
                              struct tir_value *const *operands, uint32_t count)
{
    return tir_build(b, op, operands, count, NULL, 0, 0);
}

static void build_fence(struct tir_builder *b, enum tir_word of)
{
    tir_set_word(b->f, build(b, TIR_OP_FENCE, NULL, 0), TIR_ATTR_of, of);
}

static struct tir_value *build_lane(struct tir_builder *b)
{
    return tir_build1(b, TIR_OP_LANEID, tir_type_scalar(b->f->module->types, TIR_I32), NULL, 0);
}

// The allocs and the initialisation, at the start of the kernel.

// A ring in a tiles loop or another one has its slots while it is used: the same bytes may serve
// something else before and after. Its mbarriers go on from where they are.
static void build_buffers(struct rings *r, struct tir_builder *b, struct ring *ring)
{
    b->span = ring->inst->span;
    struct tir_builder at = *b;
    if (ring->inst->block != r->f->body)
        at = tir_builder_before(r->f, ring->inst);
    for (uint32_t i = 0; i < ring->inst->result_count; i++) {
        struct tir_value *old = ring->inst->results[i];
        struct tir_value *v = tir_build1(&at, TIR_OP_ALLOC, old->type, NULL, 0);
        v->name = old->name;
        tir_map_set(&r->buffers, tir_map_key(old), v);
    }
    if (ring->puts.len) {
        ring->full = tir_slot_mbarriers(b, ring->stages, "full");
        ring->empty = tir_slot_mbarriers(b, ring->stages, "empty");
    }
}

// Whether each warp of the putters arrives at `full`. It does for its own writes, and so that no
// warp falls two rounds behind the one that starts the copies: it would see the same parity and go
// on too early. A warp that also gets the slots cannot fall behind.
static bool all_hand_on(const struct ring *ring)
{
    return ring->stores || !ring->copies || (ring->putter.warps > 1 && !ring->of_one_role);
}

static void build_init(struct rings *r, struct tir_builder *b, const struct ring *ring)
{
    if (!ring->puts.len)
        return;
    b->span = ring->inst->span;
    struct tir_inst *full =
        build(b, TIR_OP_MBARRIER_INIT, (struct tir_value *[]){ring->full, NULL}, 2);
    tir_set_int(r->f, full, TIR_ATTR_arrivals,
                (ring->copies ? 1 : 0) + (all_hand_on(ring) ? ring->putter.warps : 0));
    tir_set_int(r->f, full, TIR_ATTR_awaited, 1); // what a tile leaves in the ring is lost
    struct tir_inst *empty =
        build(b, TIR_OP_MBARRIER_INIT, (struct tir_value *[]){ring->empty, NULL}, 2);
    tir_set_int(r->f, empty, TIR_ATTR_arrivals, ring->getters * (ring->multicast ? r->ctas : 1));
}

static void build_start(struct rings *r, struct tir_builder *b)
{
    struct tir_crew all = {.warps = TIR_MAX(r->f->threads / 32, 1)};
    struct tir_builder in = tir_build_if(b, tir_build_is_leader(b, &all));
    vec_foreach(struct ring, ring, &r->all)
        build_init(r, &in, ring);
    build_fence(&in, TIR_WORD_of_mbarrier_init);
    if (r->ctas > 1) {
        build(b, TIR_OP_CLUSTER_ARRIVE, NULL, 0);
        build(b, TIR_OP_CLUSTER_WAIT, NULL, 0);
    } else {
        build(b, TIR_OP_BAR_SYNC, NULL, 0);
    }
}

// Freeing a slot.

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
    struct tir_value *lane = build_lane(b);
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
    build(&in, TIR_OP_ARRIVE, operands, 3);
}

static bool is_pending(const struct tir_value *prev)
{
    int64_t number;
    return !tir_is_const_int(prev, &number) || number >= 0;
}

// Frees the slot of the last round after a loop, or before an instruction that needs it freed.
static void free_last(struct rings *r, struct tir_builder *b, struct state *s,
                      const struct ring *ring)
{
    struct tir_value **prev = part_of(r, s, ring, PREV);
    if (!is_pending(*prev))
        return;
    if (!is_over(b, ring->lagging))
        tir_build_group(b, TIR_OP_WAIT_GROUP, ring->lagging, 0);
    if (ring->lanes_lag)
        build(b, TIR_OP_WARP_SYNC, NULL, 0);
    build_free(r, b, ring, *prev, *prev);
    *prev = tir_const_i32(r->f, -1);
}

// The innermost loop, in whose next round a get with lag frees its slot; NULL: it does so at once,
// since not only lanes and operations in groups of one kind read the slot.
static const struct tir_inst *lag_loop(const struct ring *ring, const struct tir_inst *get)
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
static void build_release(struct rings *r, struct tir_builder *b, struct state *s,
                          const struct ring *ring, struct tir_inst *get,
                          struct ring_readers readers, int64_t groups)
{
    struct tir_value *slot = *part_of(r, s, ring, GET_SLOT), **prev = part_of(r, s, ring, PREV);
    const bool lags = lag_loop(ring, get);
    for (enum tir_done done = 0; done < TIR_DONE_COUNT; done++)
        if (readers.by[done] && tir_has_own_groups(done) && (lags || !is_over(b, done)))
            tir_build_group(b, TIR_OP_WAIT_GROUP, done, lags ? groups : 0);
    if (lags) {
        if (ring->lanes_lag)
            build(b, TIR_OP_WARP_SYNC, NULL, 0);
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
        build(b, TIR_OP_WARP_SYNC, NULL, 0);
    build_free(r, b, ring, slot, NULL);
}

// Puts.

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
        build(&in, TIR_OP_ARRIVE, (struct tir_value *[]){full, NULL, NULL}, 3);
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
        build_fence(b, TIR_WORD_of_async_shared);
    build(b, TIR_OP_WARP_SYNC, NULL, 0);
    return tir_binary(b, TIR_OP_EQ, build_lane(b), tir_const_i32(r->f, 0));
}

static void build_full(struct tir_builder *b, const struct ring *ring, struct tir_value *slot,
                       struct tir_value *condition)
{
    struct tir_builder in = tir_build_if(b, condition);
    build(&in, TIR_OP_ARRIVE,
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
static void hand_on_rest(struct rings *r, struct tir_builder *b, struct state *s,
                         const struct ring *ring)
{
    struct tir_value **late = part_of(r, s, ring, LATE);
    tir_build_group(b, TIR_OP_WAIT_GROUP, TIR_DONE_CP_ASYNC, 0);
    struct tir_value *one = build_written(r, b, ring);
    for (int64_t rounds = ring->late; rounds; rounds--)
        build_late(b, ring, *part_of(r, s, ring, PUT_SLOT), *late, rounds, one);
    *late = tir_const_i32(r->f, 0);
}

// The block of a put or get takes its place.
static void open_block(struct rings *r, struct tir_inst *inst)
{
    struct tir_block *block = inst->regions[0];
    struct tir_inst *yield = tir_yield_of(block);
    for (uint32_t i = 0; i < inst->result_count; i++)
        tir_replace_uses(r->f, inst->results[i], yield->operands[i]);
    tir_remove(yield);
    while (block->first)
        tir_move_before(block->first, inst);
    tir_remove(inst);
}

static void thread(struct rings *r, struct tir_block *block, struct state *s);

static void lower_put(struct rings *r, struct tir_inst *put, struct state *s)
{
    struct ring *ring = tir_ring_of(r, put);
    struct tir_value **slot = part_of(r, s, ring, PUT_SLOT),
                     **phase = part_of(r, s, ring, PUT_PHASE);
    struct tir_builder b = tir_builder_before(r->f, put);
    tir_slot_wait(&b, ring->empty, *slot, *phase);
    tir_replace_uses(r->f, put->regions[0]->args[0], *slot);
    thread(r, put->regions[0], s);
    if (ring->copies)
        start_copies(r, ring, put, *slot);
    b = tir_builder_before(r->f, tir_yield_of(put->regions[0]));
    if (ring->late)
        hand_on_late(r, &b, ring, *slot, part_of(r, s, ring, LATE));
    else if (all_hand_on(ring))
        hand_on(r, &b, ring, put->regions[0], *slot);
    tir_slot_step(&b, ring->stages, slot, phase);
    open_block(r, put);
}

static void lower_get(struct rings *r, struct tir_inst *get, struct state *s)
{
    struct ring *ring = tir_ring_of(r, get);
    struct tir_value **slot = part_of(r, s, ring, GET_SLOT),
                     **phase = part_of(r, s, ring, GET_PHASE);
    struct ring_readers readers = tir_ring_readers(ring, get);
    int64_t groups = committed(get->regions[0], readers.last);
    struct tir_builder b = tir_builder_before(r->f, get);
    if (!lag_loop(ring, get))
        free_last(r, &b, s, ring);
    tir_slot_wait(&b, ring->full, *slot, *phase);
    tir_replace_uses(r->f, get->regions[0]->args[0], *slot);
    thread(r, get->regions[0], s);
    b = tir_builder_before(r->f, tir_yield_of(get->regions[0]));
    // A lane's loads may still be on their way to shared memory when its warp frees the slot, and
    // the copy that fills it again would overtake them.
    if (readers.by[TIR_DONE_NOW] && ring->copies)
        build_fence(&b, TIR_WORD_of_async_shared);
    struct tir_inst *wait = readers.last != TIR_DONE_NOW && !lag_loop(ring, get)
                                ? wait_after(ring, get, readers.last)
                                : NULL;
    if (wait) {
        struct tir_builder after = tir_builder_before(r->f, wait->next);
        if (readers.by[TIR_DONE_NOW]) // what other lanes have loaded
            build(&after, TIR_OP_WARP_SYNC, NULL, 0);
        build_free(r, &after, ring, *slot, NULL);
    } else {
        build_release(r, &b, s, ring, get, readers, groups);
    }
    tir_slot_step(&b, ring->stages, slot, phase);
    open_block(r, get);
}

// Carrying the state.

// Which parts of the state what is inside `owner` changes.
static bool *changed_parts(struct rings *r, struct tir_inst *owner)
{
    bool *changed = arena_array(r->cx->scratch, bool, (size_t)r->all.len *PARTS);
    for (uint32_t i = 0; i < owner->region_count; i++)
        tir_foreach_inst_in(inst, owner->regions[i]) {
            if (inst->op != TIR_OP_PUT && inst->op != TIR_OP_GET)
                continue;
            const struct ring *ring = tir_ring_of(r, inst);
            bool *parts = changed + (size_t)(ring - r->all.at) * PARTS;
            bool puts = inst->op == TIR_OP_PUT;
            parts[puts ? PUT_SLOT : GET_SLOT] |= ring->stages > 1;
            parts[puts ? PUT_PHASE : GET_PHASE] = true;
            const struct tir_inst *loop = puts ? tir_ring_loop(inst) : lag_loop(ring, inst);
            const bool is_kept = loop && tir_is_inside(owner, loop);
            parts[puts ? LATE : PREV] |= is_kept && (!puts || ring->late);
        }
    return changed;
}

static struct state copy_of(struct rings *r, const struct state *s)
{
    uint32_t count = r->all.len * PARTS;
    struct state copy = {arena_array(r->cx->scratch, struct tir_value *, count)};
    memcpy(copy.at, s->at, count * sizeof(struct tir_value *));
    return copy;
}

static const char *part_name(struct rings *r, uint32_t part)
{
    return tir_intern_cstr(r->f->module->names, part_names[part % PARTS]);
}

static void thread_loop(struct rings *r, struct tir_inst *loop, struct state *s)
{
    const bool *changed = changed_parts(r, loop);
    uint32_t count = r->all.len * PARTS;
    struct tir_builder before = tir_builder_before(r->f, loop);
    for (uint32_t i = 0; i < count; i++)
        if (changed[i] && i % PARTS == PREV && tir_is_loop(loop))
            free_last(r, &before, s, &r->all.at[i / PARTS]);
    struct state in = copy_of(r, s);
    for (uint32_t i = 0; i < count; i++)
        if (changed[i])
            in.at[i] = tir_carry_add(r->f, loop, s->at[i], part_name(r, i));
    uint32_t result = loop->result_count;
    struct tir_block *body = loop->regions[loop->region_count - 1];
    thread(r, body, &in);
    for (uint32_t i = 0; i < count; i++)
        result -= changed[i];
    for (uint32_t i = 0; i < count; i++)
        if (changed[i]) {
            tir_yield_add(r->f, body, in.at[i]);
            s->at[i] = loop->results[result++];
        }
    struct tir_inst *behind = loop->next;
    while (behind && behind->op == TIR_OP_AWAIT)
        behind = behind->next;
    struct tir_builder after = {r->f, loop->block, behind, loop->span};
    for (uint32_t i = 0; i < count; i++)
        if (changed[i] && i % PARTS == PREV && tir_is_loop(loop))
            free_last(r, &after, s, &r->all.at[i / PARTS]);
        else if (changed[i] && i % PARTS == LATE && tir_is_loop(loop))
            hand_on_rest(r, &after, s, &r->all.at[i / PARTS]);
}

static void thread_if(struct rings *r, struct tir_inst *inst, struct state *s)
{
    const bool *changed = changed_parts(r, inst);
    struct state ends[2] = {copy_of(r, s), copy_of(r, s)};
    for (uint32_t k = 0; k < 2; k++)
        thread(r, inst->regions[k], &ends[k]);
    for (uint32_t i = 0; i < r->all.len * PARTS; i++) {
        if (!changed[i])
            continue;
        s->at[i] = tir_result_add(r->f, inst, s->at[i]->type, part_name(r, i));
        for (uint32_t k = 0; k < 2; k++)
            tir_yield_add(r->f, inst->regions[k], ends[k].at[i]);
    }
}

static struct state first_state(struct rings *r)
{
    struct state s = {arena_array(r->cx->scratch, struct tir_value *, (size_t)r->all.len * PARTS)};
    for (uint32_t i = 0; i < r->all.len * PARTS; i++)
        s.at[i] = tir_const_i32(r->f, i % PARTS == PUT_PHASE ? 1 : i % PARTS == PREV ? -1 : 0);
    return s;
}

// Waits until every slot is free again: what others do here is over.
static void drain(struct rings *r, struct tir_block *block, struct state *s,
                  const struct tir_inst *role)
{
    struct tir_func *f = r->f;
    struct tir_inst *yield = tir_yield_of(block);
    struct tir_builder b = {f, block, yield, f->span};
    vec_foreach(struct ring, ring, &r->all) {
        if (!ring->multicast || ring->putter.role != role)
            continue;
        struct tir_value *bounds[] = {tir_const_i32(f, 0), tir_const_i32(f, (int32_t)ring->stages),
                                      tir_const_i32(f, 1)};
        struct tir_inst *loop = tir_build(&b, TIR_OP_FOR, bounds, 3, NULL, 0, 1);
        tir_block_add_arg(f, loop->regions[0], bounds[0]->type, NULL);
        struct tir_value *slot = *part_of(r, s, ring, PUT_SLOT);
        struct tir_value *phase = *part_of(r, s, ring, PUT_PHASE);
        slot = tir_carry_add(f, loop, slot, part_name(r, PUT_SLOT));
        phase = tir_carry_add(f, loop, phase, part_name(r, PUT_PHASE));
        struct tir_builder in = tir_builder_at_end(f, loop->regions[0]);
        tir_slot_wait(&in, ring->empty, slot, phase);
        tir_slot_step(&in, ring->stages, &slot, &phase);
        tir_yield_add(f, loop->regions[0], slot);
        tir_yield_add(f, loop->regions[0], phase);
    }
}

static void thread_inst(struct rings *r, struct tir_inst *inst, struct state *s)
{
    switch (inst->op) {
    case TIR_OP_PUT:
        lower_put(r, inst, s);
        break;
    case TIR_OP_GET:
        lower_get(r, inst, s);
        break;
    case TIR_OP_FOR:
    case TIR_OP_WHILE:
    case TIR_OP_TILES:
        thread_loop(r, inst, s);
        break;
    case TIR_OP_IF:
        thread_if(r, inst, s);
        break;
    case TIR_OP_ROLE: {
        struct state own = first_state(r);
        thread(r, inst->regions[0], &own);
        drain(r, inst->regions[0], &own, inst);
        break;
    }
    default:
        break;
    }
}

static void thread(struct rings *r, struct tir_block *block, struct state *s)
{
    tir_foreach_inst_safe(inst, block)
        thread_inst(r, inst, s);
}

// The engine of a copy without an mbarrier reports to the ring that its put fills.
static void refuse_lost_copies(struct rings *r)
{
    tir_foreach_inst(inst, r->f)
        if (tir_is_engine_copy(inst)) {
            tir_error_at(r->cx->diags, inst->span, TIR_E_VERIFY,
                         "nothing says when this copy is done: outside of put, a copy by engine %s "
                         "takes an mbarrier, mbar = ...",
                         tir_words[tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_NONE)].name);
            r->failed = true;
        }
}

static void report(struct rings *r)
{
    vec_foreach(struct ring, ring, &r->all)
        if (ring->puts.len)
            tir_receipt_add(r->cx, TIR_TOPIC_SYNC, ring->inst->span,
                            "ring %s: %lld mbarriers full and empty, %lld bytes by copies a slot%s",
                            tir_ring_name(ring), (long long)ring->stages,
                            (long long)ring->slot_bytes,
                            ring->multicast ? ", for several CTAs" : "");
}

// Roles that follow each other say where they begin.
static bool settle_roles(struct tir_func *f)
{
    bool changed = false;
    for (struct tir_inst *inst = f->body->first; inst; inst = inst->next)
        if (inst->op == TIR_OP_ROLE && !tir_attr_find(inst, TIR_ATTR_first)) {
            tir_set_int(f, inst, TIR_ATTR_first, tir_crew_of(f, inst).first);
            changed = true;
        }
    return changed;
}

enum tir_change tir_pass_ring(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct rings r = {.f = f, .cx = cx};
    bool settled = settle_roles(f);
    r.ctas = tir_func_ctas(f);
    tir_rings_collect(&r);
    if (!r.failed && !r.all.len)
        refuse_lost_copies(&r);
    if (r.failed)
        return TIR_FAILED;
    if (!r.all.len)
        return settled ? TIR_CHANGED : TIR_UNCHANGED;
    tir_map_init(&r.buffers, cx->scratch);
    struct tir_builder top = tir_builder_before(f, f->body->first);
    vec_foreach(struct ring, ring, &r.all)
        build_buffers(&r, &top, ring);
    build_start(&r, &top);
    struct state s = first_state(&r);
    thread(&r, f->body, &s);
    drain(&r, f->body, &s, NULL);
    vec_foreach(struct ring, ring, &r.all)
        tir_remove(ring->inst);
    tir_replace_uses_map(f, &r.buffers);
    refuse_lost_copies(&r);
    report(&r);
    return r.failed ? TIR_FAILED : TIR_CHANGED;
}
