// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// async_copy: lets the hardware copy from global to shared memory, bypassing the registers.
//
//     let a: bf16[128, 64] in L = load(A[m:+128, k:+64]);
//     store(buf[0:+128, 0:+64], a);
//     let d: f32[128, 128] in M = dot(buf, other, acc);
// becomes
//     copy_async(buf, A[m:+128, k:+64], width = 16);
//     commit_group();
//     wait_group(groups = 0);
//     let d: f32[128, 128] in M = dot(buf, other, acc);
//
// cp.async moves 4, 8 or 16 bytes between addresses aligned to that size (cp_async.c), so it needs
// a load whose only use is the store, which reads zero outside the tensor, and whose contiguous
// dimension is the buffer's. To copy several elements at a time, the tensor must be aligned (the
// fact vector16 or the clause `aligned`) and the start a multiple of the width; elements of 4 and
// 8 bytes can always be copied singly. Rows that an index tile names have their own addresses, and
// what a mask leaves out becomes 0: the mask of the load, or the condition of a `where` with 0.
// Anything else stays a load and a store, and the receipt says why.
//
// If the products run on warpgroups, tensor copies replace cp.async: one thread starts the copy of
// a whole tile, including edges, which completes at an mbarrier (engine = tma, without a commit
// and a wait; pipeline puts it in a ring). What an operand is computed from, for a store that a
// ring's put will hold, still comes by cp.async: the warps of the put read it themselves. On a
// target without warpgroups, tensor copies feed loops of products by mma.sync (mma_ring.c).
//
// Index tiles of pixels (pixel_index) become the first pixel and the corners of a tensor copy. What
// is left of them is computed from the numbers of the pixels then (pixels.c).
//
// A copy_async of the program without a width gets one by the same rules. So does a store in a put
// of the program's own that a copy can do alone, to a slot that the put does not read afterwards:
// the ring waits for it. One commit and one wait stand before the first reader of other copies so
// far, or before the next synchronisation of the program; pipeline moves them.

#include "ir/walk.h"
#include "machine/budget.h"
#include "pass/async/async_store.h"
#include "pass/async/cp_async.h"
#include "pass/async/mma_ring.h"
#include "pass/async/pipeline.h"
#include "pass/async/pixels.h"
#include "pass/async/room.h"
#include "pass/async/stride.h"
#include "pass/async/tma.h"
#include "pass/layout/staging.h"
#include "pass/layout/stream.h"
#include "pass/layout/warpgroup.h"
#include "pass/receipt.h"
#include "pass/sync/crew.h"

struct async {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_ranges *ranges;
    uint32_t *uses;
    bool on_warpgroups; // the kernel's products are
    const char *no_tma; // why tensor copies feed no products by mma.sync; NULL: they do
    bool staged;        // a copy of the program goes through registers
    bool changed;
};

static uint32_t width_of(const struct async *as, const struct tir_copied *copied,
                         const struct tir_type *buffer, const char **why)
{
    return tir_copy_width(as->f, as->cx->target, as->ranges, copied, buffer, why);
}

// Does the store put a tile that is loaded in the whole of a shared buffer?
static bool puts_loaded(const struct tir_inst *store, struct tir_copied *copied)
{
    struct tir_value *v = store->operands[TIR_STORE_VALUE];
    if (tir_ref_base(store)->type->space != TIR_SPACE_SHARED || store->operands[TIR_STORE_MASK] ||
        !tir_copied_of(v, copied))
        return false;
    const struct tir_attr *box = tir_attr_find(store, TIR_ATTR_box);
    const struct tir_type *buffer = tir_ref_base(store)->type;
    for (uint32_t d = 0; d < buffer->rank; d++) {
        int64_t start;
        if (box->list[d] != buffer->shape[d] ||
            !tir_is_const_int(tir_ref_indices(store)[d], &start) || start != 0)
            return false;
    }
    return true;
}

// Is a copy all that is done with the tile?
static bool is_used_once(const struct async *as, const struct tir_inst *store,
                         const struct tir_copied *copied)
{
    const struct tir_inst *load = copied->slice, *where = copied->where;
    return as->uses[load->results[0]->id] == 1 && load->block == store->block &&
           (!where || as->uses[where->results[0]->id] == 1);
}

// The tile that a store puts in the whole of a shared buffer, if a copy can bring it: nothing else
// uses it.
static bool is_copied(const struct async *as, const struct tir_inst *store,
                      struct tir_copied *copied)
{
    return puts_loaded(store, copied) && is_used_once(as, store, copied);
}

static void refuse(struct async *as, const struct tir_inst *load, const char *why)
{
    const char *name = tir_ref_base(load)->name;
    tir_receipt_refuse(as->cx, TIR_TOPIC_COPY, TIR_WISH_ASYNC, load->span,
                       "copy of %s: through registers, because %s", name ? name : "a tensor", why);
}

// no_tma: why no tensor copy brings it.
static void accept(struct async *as, struct tir_inst *copy, uint32_t width, const char *no_tma)
{
    const char *name = tir_param_of(as->f, tir_ref_base(copy))->name;
    tir_copy_set_width(as->f, copy, width);
    if (as->cx->target->features & TIR_HAS_TMA && !as->on_warpgroups)
        tir_receipt_refuse(as->cx, TIR_TOPIC_COPY, TIR_WISH_TMA, copy->span,
                           "copy of %s: cp.async, %u bytes each; %s", name, width, no_tma);
    else
        tir_receipt_add(as->cx, TIR_TOPIC_COPY, copy->span, "copy of %s: cp.async, %u bytes each",
                        name, width);
}

// Why no tensor copy can fill the buffer with the slice; NULL: one can.
static const char *tensor_copy_refusal(const struct async *as, const struct tir_inst *slice,
                                       const struct tir_value *buffer)
{
    const char *why = tir_tma_refusal(as->f, as->cx->target, as->ranges, slice);
    int64_t strides[TIR_MAX_RANK];
    tir_strides_of(slice, strides);
    return why ? why : tir_tma_memory_refusal(as->f->module->types, buffer, strides);
}

// Why no tensor copies fill the slots of a ring with what the store puts in its buffer; NULL: they
// can.
static const char *slots_refusal(struct async *as, const struct tir_copied *copied,
                                 const struct tir_inst *store)
{
    const char *why = copied->where ? "a mask decides about its elements"
                                    : tensor_copy_refusal(as, copied->slice, tir_ref_base(store));
    if (!why && !tir_can_be_slots(as->f, store, tir_ref_base(store)))
        why = "more than this copy and reads after it use the buffer";
    if (!why && !as->on_warpgroups)
        why = tir_mma_ring_copy_refusal(as->f, as->cx->scratch, copied->slice);
    return why;
}

// A copy by the tensor copy engine; it completes at an mbarrier, which pipeline and ring provide.
static bool make_tensor_copy(struct async *as, struct tir_inst *store, const char **no_tma)
{
    struct tir_copied copied;
    if (!puts_loaded(store, &copied) || (!as->on_warpgroups && !is_used_once(as, store, &copied)))
        return false;
    const struct tir_inst *load = copied.slice;
    const char *name = tir_ref_base(load)->name;
    const char *why = slots_refusal(as, &copied, store);
    if (!why && !is_used_once(as, store, &copied))
        why = "something else takes its elements from registers";
    if (why && !as->on_warpgroups) { // cp.async is next
        *no_tma = tir_str_format(as->cx->scratch, "no tma: %s", why).ptr;
        return false;
    }
    if (why) {
        tir_receipt_refuse(as->cx, TIR_TOPIC_COPY, TIR_WISH_TMA, load->span,
                           "copy of %s: not by tensor copies, because %s", name, why);
        return false;
    }
    struct tir_inst *copy = tir_copy_build(as->f, &copied, store);
    tir_state_strides(as->f, copy);
    as->changed = true;
    tir_set_word(as->f, copy, TIR_ATTR_engine, TIR_WORD_engine_tma);
    tir_receipt_tma(as->f, as->cx, copy->span, copy, copy->operands[TIR_COPY_TO]);
    return true;
}

static bool make_copy(struct async *as, struct tir_inst *store, const char *no_tma)
{
    struct tir_copied copied;
    if (!is_copied(as, store, &copied))
        return false;
    const char *why = NULL;
    const uint32_t width = width_of(as, &copied, tir_ref_base(store)->type, &why);
    if (!width) {
        refuse(as, copied.slice, why);
        return false;
    }
    struct tir_inst *copy = tir_copy_build(as->f, &copied, store);
    as->changed = true;
    accept(as, copy, width, no_tma);
    return true;
}

// A put fills a slot of its ring, which waits for the copies.
static bool is_put(const struct tir_block *block)
{
    return block->owner && block->owner->op == TIR_OP_PUT;
}

// Into a slot of a ring: by a tensor copy, where one can, whatever fills the rest of the slot.
static bool fills_slot(struct async *as, struct tir_inst *copy)
{
    if (!is_put(copy->block))
        return false;
    const char *why = tensor_copy_refusal(as, copy, copy->operands[TIR_COPY_TO]);
    const char *name = tir_ref_base(copy)->name;
    if (why) {
        tir_receipt_refuse(as->cx, TIR_TOPIC_COPY, TIR_WISH_TMA, copy->span,
                           "copy of %s: not by tensor copies, because %s", name, why);
        return false;
    }
    if (tir_pixels_of(copy))
        tir_state_pixels(as->f, copy);
    tir_set_word(as->f, copy, TIR_ATTR_engine, TIR_WORD_engine_tma);
    tir_receipt_tma(as->f, as->cx, copy->span, copy, copy->operands[TIR_COPY_TO]);
    as->changed = true;
    return true;
}

// A copy_async of the program: the widest that is known to be aligned, else through registers.
static void settle_copy(struct async *as, struct tir_inst *copy)
{
    if (fills_slot(as, copy))
        return;
    const struct tir_copied copied = {.slice = copy, .masks = {copy->operands[TIR_COPY_MASK]}};
    const char *why = NULL;
    uint32_t width = width_of(as, &copied, copy->operands[TIR_COPY_TO]->type, &why);
    as->changed = true;
    if (width) {
        why = tensor_copy_refusal(as, copy, copy->operands[TIR_COPY_TO]);
        accept(as, copy, width,
               why          ? tir_str_format(as->cx->scratch, "no tma: %s", why).ptr
               : as->no_tma ? as->no_tma
                            : "no tma: the program copies by itself");
        return;
    }
    refuse(as, copy, why);
    as->staged = true;
    const struct tir_layout *l =
        tir_copy_layout(as->f, copy, tir_tensor_alignment(as->f, tir_ref_base(copy)));
    tir_lay_out_tiles(as->f, tir_stage_copy(as->f, copy, l), TIR_LOAD_MASK, l);
}

// Does inst, or anything inside it, read memory of one of the buffers, as which part or type ever?
static bool reads_any(const struct tir_inst *inst, const struct tir_map *buffers)
{
    const bool names = tir_viewed(inst) || inst->op == TIR_OP_ALIAS;
    for (uint32_t i = 0; !names && i < inst->operand_count; i++)
        if (inst->operands[i] &&
            tir_map_get(buffers, tir_map_key(tir_buffer_root(inst->operands[i]))))
            return true;
    for (uint32_t r = 0; r < inst->region_count; r++)
        for (const struct tir_inst *in = inst->regions[r]->first; in; in = in->next)
            if (reads_any(in, buffers))
                return true;
    return false;
}

// Is the store to a slot of its put's ring, which nothing reads before the get does?
static bool is_for_get(const struct async *as, const struct tir_inst *store)
{
    struct tir_value *ring = tir_buffer_root(tir_ref_base(store));
    if (!is_put(store->block) || !ring->def || ring->def->op != TIR_OP_RING)
        return false;
    struct tir_map slots;
    tir_map_init(&slots, as->cx->scratch);
    tir_map_set(&slots, tir_map_key(ring), ring);
    for (const struct tir_inst *later = store->next; later; later = later->next)
        if (reads_any(later, &slots))
            return false;
    return true;
}

// The copy that such a store is, if there is one: as one of the program.
static void put_copy(struct async *as, struct tir_inst *store)
{
    const struct tir_value *slot = tir_ref_base(store);
    struct tir_copied copied;
    const char *why = NULL;
    if (!is_copied(as, store, &copied))
        return;
    const bool by_tensor_copy = !copied.where && !tensor_copy_refusal(as, copied.slice, slot);
    if (by_tensor_copy || width_of(as, &copied, slot->type, &why))
        settle_copy(as, tir_copy_build(as->f, &copied, store));
    else
        refuse(as, copied.slice, why);
}

// What the program itself puts between a write of shared memory and other threads or engines, here
// or in a branch, a loop or a role: the copies made of its stores are done before it, too.
static bool orders_stores(const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_FENCE:
    case TIR_OP_BAR_SYNC:
    case TIR_OP_BAR_ARRIVE:
    case TIR_OP_WARP_SYNC:
    case TIR_OP_CLUSTER_ARRIVE:
    case TIR_OP_GRID_SYNC:
    case TIR_OP_ARRIVE:
    case TIR_OP_PTX: // it may
        return true;
    default:
        break;
    }
    for (uint32_t r = 0; r < inst->region_count; r++)
        for (const struct tir_inst *in = inst->regions[r]->first; in; in = in->next)
            if (orders_stores(in))
                return true;
    return false;
}

static void wait_before(struct async *as, struct tir_inst *inst)
{
    struct tir_builder b = tir_builder_before(as->f, inst);
    tir_build(&b, TIR_OP_COMMIT_GROUP, NULL, 0, NULL, 0, 0);
    struct tir_inst *wait = tir_build(&b, TIR_OP_WAIT_GROUP, NULL, 0, NULL, 0, 0);
    tir_set_int(as->f, wait, TIR_ATTR_groups, 0);
}

static void run_block(struct async *as, struct tir_block *block)
{
    struct tir_map in_flight;
    tir_map_init(&in_flight, as->cx->scratch);
    tir_foreach_inst_safe(inst, block) {
        if (inst->op == TIR_OP_COPY_ASYNC && !tir_attr_find(inst, TIR_ATTR_width) &&
            !tir_attr_find(inst, TIR_ATTR_engine)) {
            settle_copy(as, inst);
            continue;
        }
        if (inst->op == TIR_OP_STORE) {
            struct tir_value *buffer = tir_ref_base(inst);
            const char *no_tma = as->no_tma;
            if (is_for_get(as, inst)) {
                put_copy(as, inst);
                continue;
            }
            const bool is_for_roles =
                as->on_warpgroups && !tir_is_for_puts(as->f, as->cx->scratch, buffer);
            if ((is_for_roles || !no_tma) && make_tensor_copy(as, inst, &no_tma))
                continue;
            if (!is_for_roles && make_copy(as, inst, no_tma)) {
                buffer = tir_buffer_root(buffer);
                tir_map_set(&in_flight, tir_map_key(buffer), buffer);
                continue;
            }
        }
        if (in_flight.count &&
            (orders_stores(inst) || reads_any(inst, &in_flight) || inst->op == TIR_OP_YIELD)) {
            wait_before(as, inst);
            tir_map_init(&in_flight, as->cx->scratch);
        }
        for (uint32_t r = 0; r < inst->region_count; r++)
            run_block(as, inst->regions[r]);
    }
    if (in_flight.count) {
        struct tir_builder b = tir_builder_at_end(as->f, block);
        tir_build(&b, TIR_OP_COMMIT_GROUP, NULL, 0, NULL, 0, 0);
        struct tir_inst *wait = tir_build(&b, TIR_OP_WAIT_GROUP, NULL, 0, NULL, 0, 0);
        tir_set_int(as->f, wait, TIR_ATTR_groups, 0);
    }
}

// Threads that store what others were to copy arrive themselves, after their copies.
static void settle_commits(struct async *as)
{
    tir_foreach_inst(inst, as->f) {
        if (!tir_commits_copies(inst))
            continue;
        wait_before(as, inst);
        struct tir_builder b = tir_builder_before(as->f, inst);
        struct tir_value *operands[] = {inst->operands[TIR_BAR], inst->operands[TIR_BAR_AT], NULL};
        struct tir_inst *arrive = tir_build(&b, TIR_OP_ARRIVE, operands, 3, NULL, 0, 0);
        tir_copy_attr(as->f, arrive, inst, TIR_ATTR_offset);
        tir_receipt_refuse(as->cx, TIR_TOPIC_SYNC, TIR_WISH_NONE, inst->span,
                           "commit: the threads wait for their copies, because some go through "
                           "registers");
        tir_remove(inst);
        inst = arrive; // the walk goes on from there
    }
}

// Why tensor copies do not feed products by mma.sync. NULL: they do.
static const char *mma_refusal(struct async *as)
{
    const char *why = tir_mma_ring_refusal(as->f, as->cx);
    bool repeats = false;
    if (why)
        return why;
    struct tir_room room;
    tir_room_init(&room, as->f, as->cx, TIR_FILL_IN_LINE);
    tir_room_add_mbarriers(&room);
    tir_foreach_inst(inst, as->f) {
        struct tir_copied copied;
        if (inst->op != TIR_OP_STORE || !is_copied(as, inst, &copied) ||
            slots_refusal(as, &copied, inst))
            continue;
        tir_room_repeat(&room, tir_ref_base(inst)->def, 2, copied.slice->block->owner);
        repeats = true;
    }
    return repeats && !tir_room_suffices(&room) ? "no tma: shared memory has no room for two slots"
                                                : NULL;
}

enum tir_change tir_pass_async_copy(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct async as = {.f = f,
                       .cx = cx,
                       .ranges = tir_ranges_new(cx->scratch, f),
                       .uses = tir_count_uses(cx->scratch, f),
                       .on_warpgroups = tir_has_warpgroup_dot(f)};
    as.no_tma = as.on_warpgroups ? "the products run on warpgroups" : mma_refusal(&as);
    run_block(&as, f->body);
    if (as.staged)
        settle_commits(&as);
    as.changed |= tir_expand_pixels(f, cx->scratch);
    as.changed |= tir_make_async_stores(f, cx);
    return as.changed ? TIR_CHANGED : TIR_UNCHANGED;
}
