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

static const char *const part_names[RING_PARTS] = {"slot", "phase", "late",
                                                   "slot", "phase", "prev"};

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

static void build_init(struct rings *r, struct tir_builder *b, const struct ring *ring)
{
    if (!ring->puts.len)
        return;
    b->span = ring->inst->span;
    struct tir_inst *full =
        ring_build(b, TIR_OP_MBARRIER_INIT, (struct tir_value *[]){ring->full, NULL}, 2);
    tir_set_int(r->f, full, TIR_ATTR_arrivals,
                (ring->copies ? 1 : 0) + (tir_ring_all_hand_on(ring) ? ring->putter.warps : 0));
    tir_set_int(r->f, full, TIR_ATTR_awaited, 1); // what a tile leaves in the ring is lost
    struct tir_inst *empty =
        ring_build(b, TIR_OP_MBARRIER_INIT, (struct tir_value *[]){ring->empty, NULL}, 2);
    tir_set_int(r->f, empty, TIR_ATTR_arrivals, ring->getters * (ring->multicast ? r->ctas : 1));
}

// A CTA may use the mbarriers of another one only where copies go to several.
static void build_start(struct rings *r, struct tir_builder *b)
{
    bool multicast = false;
    struct tir_crew all = {.warps = TIR_MAX(r->f->threads / 32, 1)};
    struct tir_builder in = tir_build_if(b, tir_build_is_leader(b, &all));
    vec_foreach(struct ring, ring, &r->all) {
        build_init(r, &in, ring);
        multicast |= ring->multicast;
    }
    ring_build_fence(&in, TIR_WORD_of_mbarrier_init);
    if (multicast) {
        ring_build(b, TIR_OP_CLUSTER_ARRIVE, NULL, 0);
        ring_build(b, TIR_OP_CLUSTER_WAIT, NULL, 0);
    } else {
        ring_build(b, TIR_OP_BAR_SYNC, NULL, 0);
    }
}

// The block of a put or get takes its place.
void tir_ring_open_block(struct rings *r, struct tir_inst *inst)
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

// Carrying the state.

// Which parts of the state what is inside `owner` changes.
static bool *changed_parts(struct rings *r, struct tir_inst *owner)
{
    bool *changed = arena_array(r->cx->scratch, bool, (size_t)r->all.len *RING_PARTS);
    for (uint32_t i = 0; i < owner->region_count; i++)
        tir_foreach_inst_in(inst, owner->regions[i]) {
            if (inst->op != TIR_OP_PUT && inst->op != TIR_OP_GET)
                continue;
            const struct ring *ring = tir_ring_of(r, inst);
            bool *parts = changed + (size_t)(ring - r->all.at) * RING_PARTS;
            bool puts = inst->op == TIR_OP_PUT;
            parts[puts ? RING_PUT_SLOT : RING_GET_SLOT] |= ring->stages > 1;
            parts[puts ? RING_PUT_PHASE : RING_GET_PHASE] = true;
            const struct tir_inst *loop =
                puts ? tir_ring_loop(inst) : tir_ring_lag_loop(ring, inst);
            const bool is_kept = loop && tir_is_inside(owner, loop);
            parts[puts ? RING_LATE : RING_PREV] |= is_kept && (!puts || ring->late);
        }
    return changed;
}

static struct ring_state copy_of(struct rings *r, const struct ring_state *s)
{
    uint32_t count = r->all.len * RING_PARTS;
    struct ring_state copy = {arena_array(r->cx->scratch, struct tir_value *, count)};
    memcpy(copy.at, s->at, count * sizeof(struct tir_value *));
    return copy;
}

static const char *part_name(struct rings *r, uint32_t part)
{
    return tir_intern_cstr(r->f->module->names, part_names[part % RING_PARTS]);
}

static void thread_loop(struct rings *r, struct tir_inst *loop, struct ring_state *s)
{
    const bool *changed = changed_parts(r, loop);
    uint32_t count = r->all.len * RING_PARTS;
    struct tir_builder before = tir_builder_before(r->f, loop);
    for (uint32_t i = 0; i < count; i++)
        if (changed[i] && i % RING_PARTS == RING_PREV && tir_is_loop(loop))
            tir_ring_free_last(r, &before, s, &r->all.at[i / RING_PARTS]);
    struct ring_state in = copy_of(r, s);
    for (uint32_t i = 0; i < count; i++)
        if (changed[i])
            in.at[i] = tir_carry_add(r->f, loop, s->at[i], part_name(r, i));
    uint32_t result = loop->result_count;
    struct tir_block *body = loop->regions[loop->region_count - 1];
    tir_ring_thread(r, body, &in);
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
        if (changed[i] && i % RING_PARTS == RING_PREV && tir_is_loop(loop))
            tir_ring_free_last(r, &after, s, &r->all.at[i / RING_PARTS]);
        else if (changed[i] && i % RING_PARTS == RING_LATE && tir_is_loop(loop))
            tir_ring_hand_on_rest(r, &after, s, &r->all.at[i / RING_PARTS]);
}

static void thread_if(struct rings *r, struct tir_inst *inst, struct ring_state *s)
{
    const bool *changed = changed_parts(r, inst);
    struct ring_state ends[2] = {copy_of(r, s), copy_of(r, s)};
    for (uint32_t k = 0; k < 2; k++)
        tir_ring_thread(r, inst->regions[k], &ends[k]);
    for (uint32_t i = 0; i < r->all.len * RING_PARTS; i++) {
        if (!changed[i])
            continue;
        s->at[i] = tir_result_add(r->f, inst, s->at[i]->type, part_name(r, i));
        for (uint32_t k = 0; k < 2; k++)
            tir_yield_add(r->f, inst->regions[k], ends[k].at[i]);
    }
}

static struct ring_state first_state(struct rings *r)
{
    struct ring_state s = {
        arena_array(r->cx->scratch, struct tir_value *, (size_t)r->all.len * RING_PARTS)};
    for (uint32_t i = 0; i < r->all.len * RING_PARTS; i++)
        s.at[i] = tir_const_i32(r->f, i % RING_PARTS == RING_PUT_PHASE ? 1
                                      : i % RING_PARTS == RING_PREV    ? -1
                                                                       : 0);
    return s;
}

// Waits until every slot is free again: what others do here is over.
static void drain(struct rings *r, struct tir_block *block, struct ring_state *s,
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
        struct tir_value *slot = *ring_part_of(r, s, ring, RING_PUT_SLOT);
        struct tir_value *phase = *ring_part_of(r, s, ring, RING_PUT_PHASE);
        slot = tir_carry_add(f, loop, slot, part_name(r, RING_PUT_SLOT));
        phase = tir_carry_add(f, loop, phase, part_name(r, RING_PUT_PHASE));
        struct tir_builder in = tir_builder_at_end(f, loop->regions[0]);
        tir_slot_wait(&in, ring->empty, slot, phase);
        tir_slot_step(&in, ring->stages, &slot, &phase);
        tir_yield_add(f, loop->regions[0], slot);
        tir_yield_add(f, loop->regions[0], phase);
    }
}

static void thread_inst(struct rings *r, struct tir_inst *inst, struct ring_state *s)
{
    switch (inst->op) {
    case TIR_OP_PUT:
        tir_ring_lower_put(r, inst, s);
        break;
    case TIR_OP_GET:
        tir_ring_lower_get(r, inst, s);
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
        struct ring_state own = first_state(r);
        tir_ring_thread(r, inst->regions[0], &own);
        drain(r, inst->regions[0], &own, inst);
        break;
    }
    default:
        break;
    }
}

void tir_ring_thread(struct rings *r, struct tir_block *block, struct ring_state *s)
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
    struct ring_state s = first_state(&r);
    tir_ring_thread(&r, f->body, &s);
    drain(&r, f->body, &s, NULL);
    vec_foreach(struct ring, ring, &r.all)
        tir_remove(ring->inst);
    tir_replace_uses_map(f, &r.buffers);
    refuse_lost_copies(&r);
    report(&r);
    return r.failed ? TIR_FAILED : TIR_CHANGED;
}
