// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// pipeline, tensor copies: buffers that are filled by them become rings.
//
//     for k: i64 in range(0, K, 64) carry (acc: T = init) stages(4) {
//         let a: shared bf16[128, 64] in S = alloc();
//         copy_async(a, A[m:+128, k:+64], engine = tma);
//         let b: shared bf16[256, 64] in S = alloc();
//         copy_async(b, B[n:+256, k:+64], engine = tma);
//         let d: T = dot(a, permute(b), acc, engine = wgmma);
//         yield d;
//     }
// becomes
//     let a: shared bf16[4, 128, 64] in R, b: shared bf16[4, 256, 64] in R = ring(stages = 4);
//     for k: i64 in range(0, K, 64) carry (acc: T = init) {
//         put(a) with (slot: i32) {
//             copy_async(view(a[slot, 0:+128, 0:+64]), A[m:+128, k:+64], engine = tma);
//             copy_async(view(b[slot, 0:+256, 0:+64]), B[n:+256, k:+64], engine = tma);
//         }
//         let d: T = get(a, lag = 1) with (slot: i32) {
//             let d: T = dot(view(a[slot, ...]), permute(view(b[slot, ...])), acc, engine = wgmma);
//             yield d;
//         }
//         yield d;
//     }
//
// A tile that is computed from loads, such as dequantised weights, and stored for a product goes
// the same way: what it follows from is computed in the put, from global memory, or from a buffer
// that cp.async fills first in the loop, some rounds ahead (pipeline.c). If it is a loaded tile
// that tensor copies cannot bring, whose rows an index tile names or a mask cuts, its threads copy
// it by cp.async there.
//
// The program stays sequential: a put and the get of the same round. (Where products are mma.sync
// the put of a later round: pipeline_ahead.c.) What lets copies run ahead is
// specialize_warps, which gives puts and gets to different warps. Copies whose buffers are read in
// the same stretch of code share a ring, whose put stands in front of the stretch. A copy in the
// stretch moves there, with scalars that its address follows from. Where it cannot, because its
// address is computed from what the stretch reads or from memory that is written, it has a ring of
// its own, whose put and get stand in the get of the other:
//     get(a) with (slot: i32) { ...; put(b) with ...; get(b) with ... }
// A ring of a loop gets the stages the loop asks for, or as many as fit; others one. The slot may
// be freed one round later (lag) where a product that goes on accumulating reads it, and beside it
// loads alone: then one product is always in flight.

#include "pass/async/pipeline_ring.h"

#include "base/bitset.h"
#include "ir/effect.h"
#include "ir/follow.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/target.h"
#include "pass/async/cp_async.h"
#include "pass/async/lookup.h"
#include "pass/async/mma_ring.h"
#include "pass/layout/warpgroup.h"
#include "pass/receipt.h"

// The instruction of `block` that inst is, or is inside of; NULL: inst is elsewhere.
static struct tir_inst *ancestor_in(const struct tir_block *block, struct tir_inst *inst)
{
    while (inst && inst->block != block)
        inst = inst->block->owner;
    return inst;
}

static bool only_reads(const struct tir_inst *inst, const struct tir_value *buffer)
{
    tir_foreach_effect(e, inst)
        if (tir_effect_buffer(inst, e) == buffer && e->access != TIR_ACCESS_READ)
            return false;
    return tir_has_effects(inst->op);
}

// Do the uses of a buffer, or of a part of it, only read it, and after `fill`?
static bool is_read_after(const struct tir_func *f, const struct tir_inst *fill,
                          const struct tir_value *buffer)
{
    tir_foreach_inst(inst, f)
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            if (inst->operands[i] != buffer || inst == fill)
                continue;
            const bool is_part = tir_viewed(inst);
            const struct tir_inst *at = ancestor_in(fill->block, inst), *behind = fill->next;
            while (behind && behind != at)
                behind = behind->next;
            if (!at || !behind || (!is_part && !only_reads(inst, buffer)) ||
                (is_part && !is_read_after(f, fill, inst->results[0])))
                return false;
        }
    return true;
}

bool tir_can_be_slots(const struct tir_func *f, const struct tir_inst *fill,
                      const struct tir_value *buffer)
{
    return buffer->def && buffer->def->op == TIR_OP_ALLOC && buffer->def->block == fill->block &&
           buffer->type->space == TIR_SPACE_SHARED && buffer->type->rank < TIR_MAX_RANK &&
           is_read_after(f, fill, buffer);
}

static void number_places(struct rings *r)
{
    uint32_t place = 0;
    r->places = arena_array(r->cx->scratch, uint32_t, r->f->inst_count);
    tir_foreach_inst(inst, r->f)
        r->places[inst->id] = place++;
}

static bool comes_before(const struct rings *r, const struct tir_inst *a, const struct tir_inst *b)
{
    return r->places[a->id] < r->places[b->id]; // in one block
}

// Widens the stretch of c by everything that reads buffer v, or a part of it.
static void find_readers(struct rings *r, struct copy *c, const struct tir_value *v)
{
    tir_foreach_inst(inst, r->f) {
        if (inst == c->copy)
            continue;
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            if (inst->operands[i] != v)
                continue;
            struct tir_inst *at = ancestor_in(c->copy->block, inst);
            if (!at)
                continue;
            if (!c->first || comes_before(r, at, c->first))
                c->first = at;
            if (!c->last || comes_before(r, c->last, at))
                c->last = at;
            if (tir_viewed(inst))
                find_readers(r, c, inst->results[0]);
        }
    }
}

static bool reads_by_wgmma(const struct copy *c)
{
    for (const struct tir_inst *inst = c->first; inst; inst = inst->next) {
        if (tir_dot_on_warpgroups(inst))
            return true;
        if (inst == c->last)
            break;
    }
    return false;
}

struct puts { // of one block: what can be computed in them
    const struct rings *r;
    const struct tir_block *block;
    struct tir_follow producible;
};

// Is inst one of the copies by cp.async that stand first in a loop, or belongs to them?
static bool is_in_front(const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_COPY_ASYNC:
        return tir_done_of(inst) == TIR_DONE_CP_ASYNC;
    case TIR_OP_ALLOC:
    case TIR_OP_COMMIT_GROUP:
    case TIR_OP_WAIT_GROUP:
    case TIR_OP_LOAD:
        return true;
    default:
        return tir_has_trait(inst, TIR_PURE) && !inst->region_count && !tir_viewed(inst);
    }
}

bool tir_is_copied_ahead(const struct tir_func *f, const struct tir_value *buffer,
                         const struct tir_block *block)
{
    const struct tir_inst *copy = NULL;
    if (!buffer->def || buffer->def->op != TIR_OP_ALLOC || buffer->def->block != block)
        return false;
    for (const struct tir_inst *inst = block->first; inst && is_in_front(inst); inst = inst->next) {
        if (inst->op == TIR_OP_COPY_ASYNC && inst->operands[TIR_COPY_TO] == buffer)
            copy = inst;
        if (copy && inst->op == TIR_OP_WAIT_GROUP)
            return tir_attr_int(inst, TIR_ATTR_groups, 1) == 0 && is_read_after(f, copy, buffer);
    }
    return false;
}

// Can v be computed in a put: from loop variables, tensors that nothing writes and what lies
// outside of the block?
static enum tir_answer is_producible(void *user, struct tir_value *v)
{
    const struct puts *puts = user;
    const struct tir_block *block = puts->block;
    bool is_yes;
    if (v->kind == TIR_VALUE_CONST)
        return TIR_YES;
    if (v->kind == TIR_VALUE_ARG) {
        is_yes = v->block != block || !block->owner || block->owner->op == TIR_OP_TILES ||
                 (block->owner->op == TIR_OP_FOR && v->index == 0);
        return is_yes ? TIR_YES : TIR_NO;
    }
    if (v->def->block != block && tir_block_contains(block, v->def))
        return TIR_NO;
    if (v->def->block != block && !tir_type_is_tile(v->type))
        return TIR_YES;
    if (v->def->op == TIR_OP_LOAD && tir_is_copied_ahead(puts->r->f, tir_ref_base(v->def), block))
        return TIR_YES;
    if (v->def->op == TIR_OP_LOAD)
        return tir_is_only_read(puts->r->f, tir_ref_base(v->def)) ? TIR_IF_OPERANDS : TIR_NO;
    bool is_pure = tir_has_trait(v->def, TIR_PURE) && !v->def->region_count;
    return is_pure && v->def->op != TIR_OP_DOT ? TIR_IF_OPERANDS : TIR_NO;
}

static struct puts *puts_of(struct rings *r, const struct tir_block *block)
{
    struct puts *puts = tir_map_get(&r->puts, tir_map_key(block));
    if (puts)
        return puts;
    puts = arena_new(r->cx->scratch, struct puts);
    *puts = (struct puts){.r = r, .block = block};
    tir_follow_init(&puts->producible, r->cx->scratch, is_producible, puts);
    tir_map_set(&r->puts, tir_map_key(block), puts);
    return puts;
}

// The buffer that inst fills for a ring; NULL: it does not.
static struct tir_value *filled_by(struct rings *r, const struct tir_inst *inst)
{
    if (tir_done_of(inst) == TIR_DONE_RING)
        return inst->operands[TIR_COPY_TO];
    if (inst->op != TIR_OP_STORE || inst->operands[TIR_STORE_MASK] ||
        !tir_follows(&puts_of(r, inst->block)->producible, inst->operands[TIR_STORE_VALUE]))
        return NULL;
    const struct tir_value *to = tir_ref_base(inst);
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    for (uint32_t d = 0; d < to->type->rank; d++)
        if (box->list[d] != to->type->shape[d])
            return NULL;
    return tir_ref_base(inst);
}

// Bytes at a time by which cp.async can bring what a store puts in the buffer. 0: it is computed,
// or threads load it, and *why says why.
static uint32_t width_of(const struct rings *r, const struct tir_ranges *ranges,
                         const struct tir_inst *store, const char **why)
{
    struct tir_copied copied;
    if (!tir_copied_of(store->operands[TIR_STORE_VALUE], &copied) ||
        copied.slice->block != store->block)
        return 0;
    return tir_copy_width(r->f, r->cx->target, ranges, &copied, tir_ref_base(store)->type, why);
}

static void collect(struct rings *r)
{
    const struct tir_ranges *ranges = NULL;
    tir_foreach_inst(inst, r->f) {
        struct tir_value *to = filled_by(r, inst);
        if (!to || !tir_can_be_slots(r->f, inst, to))
            continue;
        struct copy *c = arena_new(r->cx->scratch, struct copy);
        *c = (struct copy){.copy = inst, .alloc = to->def};
        find_readers(r, c, to);
        if (inst->op == TIR_OP_STORE) {
            ranges = ranges ? ranges : tir_ranges_new(r->cx->scratch, r->f);
            c->width = width_of(r, ranges, inst, &c->no_copy);
        }
        if (c->first && (inst->op == TIR_OP_COPY_ASYNC || reads_by_wgmma(c)))
            vec_push(r->cx->scratch, &r->copies, c);
    }
}

// A scalar that may be computed earlier in its block, wherever its operands are known.
static bool may_move_up(const struct rings *r, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (!tir_type_is_scalar(inst->results[i]->type))
            return false;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i] && inst->operands[i]->type->space == TIR_SPACE_SHARED)
            return false;
    if (inst->op != TIR_OP_LOAD)
        return tir_has_trait(inst, TIR_PURE) && !inst->region_count;
    return tir_is_only_read(r->f, tir_ref_base(inst));
}

typedef VEC(struct tir_inst *) inst_list;

// What the operands of the copy follow from between `first` and the copy, last to first. False:
// some of it has to stay.
static bool find_address(struct rings *r, const struct copy *c, const struct tir_inst *first,
                         inst_list *address)
{
    struct bitset needed = bitset_new(r->cx->scratch, r->f->value_count);
    for (struct tir_inst *inst = c->copy;; inst = inst->prev) {
        bool is_needed = inst == c->copy;
        for (uint32_t i = 0; i < inst->result_count; i++)
            is_needed |= bitset_has(&needed, inst->results[i]->id);
        if (is_needed && inst != c->copy && inst != c->alloc) {
            if (!may_move_up(r, inst))
                return false;
            vec_push(r->cx->scratch, address, inst);
        }
        for (uint32_t i = 0; is_needed && i < inst->operand_count; i++)
            if (inst->operands[i])
                bitset_insert(&needed, inst->operands[i]->id);
        if (inst == first)
            return true;
    }
}

// Makes the copy one that can stand in front of `first`; false: it cannot.
static bool bring_before(struct rings *r, const struct copy *c, struct tir_inst *first)
{
    inst_list address = {0};
    if (c->copy->op == TIR_OP_STORE || comes_before(r, c->copy, first))
        return true; // what is stored is computed in the put
    if (!find_address(r, c, first, &address))
        return false;
    struct tir_inst *place = first;
    vec_foreach(struct tir_inst *, it, &address) {
        tir_move_before(*it, place);
        place = *it;
    }
    return true;
}

static struct ring *open_ring(struct rings *r, const struct copy *c, struct ring *outer)
{
    struct ring *ring = arena_new(r->cx->scratch, struct ring);
    *ring =
        (struct ring){.outer = outer, .block = c->copy->block, .first = c->first, .last = c->last};
    vec_push(r->cx->scratch, &r->all, ring);
    if (outer)
        tir_receipt_refuse(r->cx, TIR_TOPIC_RING, TIR_WISH_NONE, c->copy->span,
                           "ring: %s has one of its own, because its address is computed after "
                           "the first use of the other copies",
                           tir_ref_base(c->copy)->name);
    return ring;
}
// Into a list in the order of the copies, or of their first readers.
static void insert(struct rings *r, copy_list *list, struct copy *c, bool by_reader)
{
    vec_push(r->cx->scratch, list, c);
    for (uint32_t i = list->len - 1; i; i--) {
        struct copy *b = list->at[i - 1];
        if (by_reader ? !comes_before(r, c->first, b->first) : !comes_before(r, c->copy, b->copy))
            return;
        list->at[i] = b;
        list->at[i - 1] = c;
    }
}

static void add_copy(struct rings *r, struct ring *ring, struct copy *c)
{
    insert(r, &ring->copies, c, false);
    ring->slot_bytes += tir_slot_bytes(c->alloc->results[0]->type);
    c->ring = ring;
    for (; ring; ring = ring->outer)
        if (comes_before(r, ring->last, c->last))
            ring->last = c->last;
}

// Copies go together whose readers are the same, or overlap. `copies` are those of one block in
// the order of their first readers, so the stretches that are not over at one of these lie in each
// other.
static void group(struct rings *r, const copy_list *copies)
{
    struct ring *inner = NULL;
    vec_foreach(struct copy *, it, copies) {
        while (inner && comes_before(r, inner->last, (*it)->first))
            inner = inner->outer;
        struct ring *found = NULL;
        for (struct ring *ring = inner; ring && bring_before(r, *it, ring->first);
             ring = ring->outer)
            found = ring;
        if (!found)
            found = inner = open_ring(r, *it, inner);
        add_copy(r, found, *it);
    }
}

static void group_all(struct rings *r)
{
    vec_foreach(struct copy *, it, &r->copies) {
        copy_list copies = {0};
        vec_foreach(struct copy *, other, &r->copies)
            if (!(*it)->ring && (*other)->copy->block == (*it)->copy->block)
                insert(r, &copies, *other, true);
        group(r, &copies);
    }
}

static bool is_slot(const struct ring *ring, struct tir_value *buffer)
{
    const struct tir_value *root = tir_buffer_root(buffer);
    vec_foreach(struct copy *, it, &ring->copies)
        if ((*it)->alloc->results[0] == root)
            return true;
    return false;
}

// Does a product that the next round goes on with read the ring's slots, and beside it loads alone?
static bool may_lag(const struct ring *ring)
{
    const struct tir_inst *yield = tir_yield_of(ring->block);
    bool accumulates = false;
    for (const struct tir_inst *inst = ring->first;; inst = inst->next) {
        if (inst->op == TIR_OP_DOT) {
            const struct tir_value *acc = inst->operands[TIR_DOT_ACC], *d = inst->results[0];
            if (accumulates || !tir_dot_on_warpgroups(inst) ||
                !is_slot(ring, inst->operands[TIR_DOT_A]) ||
                !is_slot(ring, inst->operands[TIR_DOT_B]) || acc->kind != TIR_VALUE_ARG ||
                acc->block != ring->block || !acc->index || !yield ||
                yield->operands[acc->index - 1] != d)
                return false;
            accumulates = true;
        } else if (!tir_viewed(inst) &&
                   (inst->op != TIR_OP_LOAD || !is_slot(ring, tir_ref_base(inst)))) {
            return false;
        }
        if (inst == ring->last)
            return accumulates;
    }
}

static uint32_t uses_in(const struct tir_block *block, const struct tir_value *v)
{
    uint32_t uses = 0;
    tir_foreach_inst_in(inst, block)
        for (uint32_t i = 0; i < inst->operand_count; i++)
            uses += inst->operands[i] == v;
    return uses;
}

// The sum that is in flight must not be looked at in the loop.
static bool sum_is_private(const struct ring *ring)
{
    for (const struct tir_inst *inst = ring->first;; inst = inst->next) {
        if (inst->op == TIR_OP_DOT)
            return uses_in(ring->block, inst->results[0]) == 1 &&
                   uses_in(ring->block, inst->operands[TIR_DOT_ACC]) == 1;
        if (inst == ring->last)
            return false;
    }
}

static void choose_stages(struct rings *r)
{
    tir_choose_ring_stages(r);
    vec_foreach(struct ring *, it, &r->all)
        (*it)->lag = (*it)->stages >= 2 && may_lag(*it) && sum_is_private(*it);
}

static void build_ring(struct rings *r, struct ring *ring, struct tir_builder *b)
{
    struct tir_func *f = r->f;
    uint32_t count = (uint32_t)ring->copies.len;
    const struct tir_type **types = arena_array(r->cx->scratch, const struct tir_type *, count);
    for (uint32_t i = 0; i < count; i++)
        types[i] = tir_slots_type(f, ring->copies.at[i]->alloc->results[0]->type, ring->stages);
    struct tir_inst *inst = tir_build(b, TIR_OP_RING, NULL, 0, types, count, 0);
    inst->span = ring->copies.at[0]->copy->span;
    tir_set_int(f, inst, TIR_ATTR_stages, ring->stages);
    for (uint32_t i = 0; i < count; i++) {
        inst->results[i]->name = ring->copies.at[i]->alloc->results[0]->name;
        ring->copies.at[i]->slots = inst->results[i];
    }
}

struct tir_value *tir_add_slot_arg(struct tir_func *f, struct tir_inst *owner)
{
    return tir_block_add_arg(f, owner->regions[0], tir_type_scalar(f->module->types, TIR_I32),
                             tir_intern_cstr(f->module->names, "slot"));
}

// Moves a copy, or a store with what it follows from, to the put's block.
static void fill_slot(struct tir_builder *in, struct copy *c, struct tir_value *slot,
                      const struct tir_block *from, struct tir_map *map)
{
    bool is_store = c->copy->op == TIR_OP_STORE;
    in->span = c->copy->span;
    if (is_store) {
        struct tir_value **value = &c->copy->operands[TIR_STORE_VALUE];
        *value = tir_clone_value(in, *value, from, map);
    }
    c->copy->operands[is_store ? tir_fixed_count(c->copy) : TIR_COPY_TO] =
        tir_build_slot(in, c->slots, slot, c->alloc->results[0]->type);
    tir_move_before(c->copy, in->before);
}

// In a put, where nothing else uses what was loaded for it: its threads need not wait for the
// tile.
static void copy_tile(struct rings *r, struct copy *c)
{
    struct tir_copied copied;
    const struct tir_block *put = c->copy->block;
    struct tir_value *v = c->copy->operands[TIR_STORE_VALUE];
    if (c->no_copy && !c->width && tir_copied_of(v, &copied))
        tir_receipt_refuse(r->cx, TIR_TOPIC_COPY, TIR_WISH_ASYNC, copied.slice->span,
                           "copy of %s: through registers, because %s",
                           tir_ref_base(copied.slice)->name, c->no_copy);
    if (!c->width || !tir_copied_of(v, &copied) || copied.slice->block != put ||
        uses_in(put, v) != 1 || uses_in(put, copied.slice->results[0]) != 1)
        return;
    c->copy = tir_copy_build(r->f, &copied, c->copy);
    tir_copy_set_width(r->f, c->copy, c->width);
    tir_receipt_add(r->cx, TIR_TOPIC_COPY, c->copy->span, "copy of %s: cp.async, %u bytes each",
                    tir_ref_base(c->copy)->name, c->width);
}

// All copies of the ring, where the last of them stood, or in front of their first reader. The
// originals of what is computed again in the put are dead code now.
static void build_put(struct rings *r, struct ring *ring)
{
    struct tir_func *f = r->f;
    struct tir_inst *last = vec_last(&ring->copies)->copy;
    struct tir_builder b = tir_builder_before(f, ring->first);
    if (comes_before(r, last, ring->first))
        b = (struct tir_builder){f, last->block, last->next, last->span};
    struct tir_map map; // what is computed in the put
    tir_map_init(&map, r->cx->scratch);
    for (const struct tir_inst *inst = ring->block->first; inst; inst = inst->next)
        if (inst->op == TIR_OP_ALLOC) // it is filled first in the loop
            tir_map_set(&map, tir_map_key(inst->results[0]), inst->results[0]);
    struct tir_inst *put = tir_build(&b, TIR_OP_PUT, &ring->copies.at[0]->slots, 1, NULL, 0, 1);
    struct tir_value *slot = tir_add_slot_arg(f, put);
    struct tir_builder in = tir_builder_at_end(f, put->regions[0]);
    struct tir_inst *yield = tir_build_yield(&in, NULL, 0);
    in.before = yield;
    for (int stores = 0; stores < 2; stores++) // copies go on while tiles are computed
        vec_foreach(struct copy *, it, &ring->copies)
            if (((*it)->copy->op == TIR_OP_STORE) == stores)
                fill_slot(&in, *it, slot, ring->block, &map);
    vec_foreach(struct copy *, it, &ring->copies)
        if ((*it)->copy->op == TIR_OP_STORE)
            copy_tile(r, *it);
}

// The values made in the stretch, which has left the kernel, that what is left uses.
static uint32_t find_outgoing(struct rings *r, const struct tir_block *stretch,
                              struct tir_value ***out)
{
    VEC(struct tir_value *) found = {0};
    for (struct tir_inst *inst = stretch->first; inst; inst = inst->next)
        for (uint32_t i = 0; i < inst->result_count; i++)
            if (uses_in(r->f->body, inst->results[i]))
                vec_push(r->cx->scratch, &found, inst->results[i]);
    *out = found.at;
    return (uint32_t)found.len;
}

// A tile that changes its layout for a product of the stretch, but was made before it: it need not
// wait for the slot, nor the products in flight for it.
static bool is_ready(const struct tir_inst *inst, const struct tir_block *stretch)
{
    return inst->op == TIR_OP_CONVERT_LAYOUT && inst->operands[0]->def &&
           inst->operands[0]->def->block != stretch;
}

// Moves the stretch that reads the slots into a get.
static void build_get(struct rings *r, struct ring *ring)
{
    struct tir_func *f = r->f;
    struct tir_builder b = tir_builder_before(f, ring->first); // its block: the outer ring's get
    struct tir_block *body = tir_block_new(f, NULL);
    struct tir_builder in = tir_builder_at_end(f, body);
    struct tir_inst *anchor = tir_build_yield(&in, NULL, 0), *end = ring->last->next, *next;
    for (struct tir_inst *inst = ring->first; inst != end; inst = next) {
        next = inst->next;
        if (!is_ready(inst, body))
            tir_move_before(inst, anchor);
    }
    tir_remove(anchor);
    struct tir_value **outgoing;
    b.before = end;
    uint32_t count = find_outgoing(r, body, &outgoing);
    const struct tir_type **types = arena_array(r->cx->scratch, const struct tir_type *, count);
    for (uint32_t i = 0; i < count; i++)
        types[i] = outgoing[i]->type;
    struct tir_inst *get =
        tir_build(&b, TIR_OP_GET, &ring->copies.at[0]->slots, 1, types, count, 1);
    struct tir_value *slot = tir_add_slot_arg(f, get);
    in = tir_builder_at_end(f, get->regions[0]);
    struct tir_inst *yield = tir_build_yield(&in, NULL, 0);
    for (uint32_t i = 0; i < count; i++) { // before the stretch is back in the kernel's body
        get->results[i]->name = outgoing[i]->name;
        tir_replace_uses(f, outgoing[i], get->results[i]);
    }
    while (body->first)
        tir_move_before(body->first, yield);
    tir_remove(yield);
    tir_build_yield(&in, outgoing, count);
    in.before = get->regions[0]->first;
    vec_foreach(struct copy *, it, &ring->copies) {
        struct tir_value *old = (*it)->alloc->results[0];
        tir_replace_uses(f, old, tir_build_slot(&in, (*it)->slots, slot, old->type));
    }
    if (ring->lag)
        tir_set_int(f, get, TIR_ATTR_lag, 1);
}

// A buffer of one ring may be made in the stretch that reads another; it must not go into that
// get.
static void lift_buffers(struct rings *r)
{
    vec_foreach(struct copy *, it, &r->copies) {
        struct tir_inst *alloc = (*it)->alloc;
        if (alloc != alloc->block->first)
            tir_move_before(alloc, alloc->block->first);
    }
}

// What addresses of the loop's copies follow from is looked up a round before, so that a put does
// not wait for it.
static void look_up_ahead(struct rings *r, struct tir_inst *loop)
{
    struct tir_block *body = loop->regions[0];
    struct tir_lookups lookups;
    struct tir_follow ahead;
    tir_lookups_init(&lookups, r->f, r->cx->scratch, loop);
    tir_runs_ahead_init(&ahead, r->cx->scratch, r->f, body);
    vec_foreach(struct copy *, it, &r->copies) {
        struct tir_copied copied = {.slice = (*it)->copy};
        if ((*it)->copy->block != body ||
            (copied.slice->op == TIR_OP_STORE &&
             !tir_copied_of(copied.slice->operands[TIR_STORE_VALUE], &copied)))
            continue;
        tir_lookups_add_operands(&lookups, copied.slice);
    }
    bool known = true;
    vec_foreach(struct tir_value *, it, &lookups.found)
        known &= tir_follows(&ahead, *it);
    if (!lookups.found.len || !known)
        return;
    tir_lookups_run_ahead(&lookups, body->first);
    tir_receipt_add(r->cx, TIR_TOPIC_RING, loop->span,
                    "ring: addresses looked up an iteration before");
}

bool tir_pipeline_rings(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct rings r = {.f = f,
                      .cx = cx,
                      .feeds_mma =
                          !(cx->target->features & TIR_HAS_WGMMA) && !tir_mma_ring_refusal(f, cx)};
    tir_map_init(&r.puts, cx->scratch);
    number_places(&r);
    collect(&r);
    if (!r.copies.len)
        return false;
    group_all(&r);
    VEC(struct tir_inst *) loops = {0};
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_FOR)
            vec_push(cx->scratch, &loops, inst);
    vec_foreach(struct tir_inst *, it, &loops)
        if (!r.feeds_mma)
            look_up_ahead(&r, *it);
    choose_stages(&r);
    lift_buffers(&r);
    struct tir_builder top = tir_builder_at_end(f, f->body);
    top.before = f->body->first;
    vec_foreach(struct ring *, it, &r.all) {
        if (r.feeds_mma) { // what a loop leaves in its slots is used up there
            struct tir_builder before = tir_builder_before(f, tir_loop_of_ring(*it));
            build_ring(&r, *it, &before);
            continue;
        }
        build_ring(&r, *it, &top);
        build_put(&r, *it);
    }
    vec_foreach(struct tir_inst *, it, &loops)
        if (r.feeds_mma)
            tir_put_ahead(&r, *it);
    vec_foreach(struct ring *, it, &r.all)
        build_get(&r, *it);
    vec_foreach(struct copy *, it, &r.copies)
        tir_remove((*it)->alloc);
    tir_pass_dce(f, cx);
    return true;
}
