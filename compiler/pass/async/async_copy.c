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
// cp.async moves 4, 8 or 16 bytes between addresses aligned to that size (PTX ISA, "cp.async"), so
// it needs a load whose only use is the store, which reads zero outside the tensor, and whose
// contiguous dimension is the buffer's. To copy several elements at a time, the tensor must be
// aligned (the fact vector16 or the clause `aligned`) and the start a multiple of the width;
// elements of 4 and 8 bytes can always be copied singly. Anything else stays a load and a store,
// and the receipt says why.
//
// If the products run on warpgroups, tensor copies replace cp.async: one thread starts the copy of
// a whole tile, including edges, which completes at an mbarrier (engine = tma, without a commit and
// a wait; pipeline puts it in a ring).
//
// A copy_async of the program without a width gets one by the same rules. One commit and one wait
// stand before the first reader of the copies so far, or before the next synchronisation of the
// program; pipeline moves them.

#include "pass/async/async_copy.h"

#include "ir/walk.h"
#include "pass/async/async_store.h"
#include "pass/async/pipeline.h"
#include "pass/async/tma.h"
#include "pass/layout/staging.h"
#include "pass/layout/warpgroup.h"
#include "pass/receipt.h"
#include "pass/sync/crew.h"

struct async {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_ranges *ranges;
    uint32_t *uses;
    bool by_tensor; // tensor copies: the kernel's products run on warpgroups
    bool changed;
};

// The most elements, up to `most` (a power of two), that can be copied at a time: the start along
// the contiguous dimension, the row's length and both tiles are multiples of them.
static uint32_t copy_elements(const struct tir_func *f, const struct tir_ranges *ranges,
                              const struct tir_inst *slice, const struct tir_type *buffer,
                              uint32_t most)
{
    uint32_t last = buffer->rank - 1, base_rank = tir_ref_base(slice)->type->rank;
    uint64_t multiple = tir_range_divisor(ranges, tir_ref_indices(slice)[base_rank - 1]);
    const struct tir_param_dim *dim = &tir_param_of(f, tir_ref_base(slice))->dims[base_rank - 1];
    int64_t extent = dim->dim < 0 ? dim->constant : 0; // others follow from the alignment
    const struct tir_layout *l = buffer->layout;       // a view may have none
    const struct tir_iter *iter =
        l && l->first[l->rank] > l->first[last] ? &l->iters[l->first[l->rank] - 1] : NULL;
    uint32_t inner = iter && iter->stride == 1 ? iter->extent : 1;
    while (most > 1 &&
           (extent % most || multiple % most || inner % most || buffer->shape[last] % most))
        most /= 2;
    return most;
}

uint32_t tir_copy_width(const struct tir_func *f, const struct tir_target *target,
                        const struct tir_ranges *ranges, const struct tir_inst *slice,
                        const struct tir_type *buffer, const char **why)
{
    uint32_t size = tir_elems[buffer->elem].bits / 8;
    if (!size) {
        *why = "its elements are smaller than a byte";
        return 0;
    }
    if (!(target->features & TIR_HAS_CP_ASYNC)) {
        *why = "the target has no cp.async";
        return 0;
    }
    uint32_t aligned = tir_tensor_alignment(f, tir_ref_base(slice)), width = size;
    if (tir_contiguous_dim(slice, buffer->rank) == buffer->rank - 1 && aligned > size)
        width = size * copy_elements(f, ranges, slice, buffer, aligned / size);
    *why = aligned < 4 ? "its rows are not known to be aligned to 4 bytes"
                       : "its start or its length along the contiguous dimension is not a multiple "
                         "of 4 bytes";
    return width >= 4 && width <= 16 ? width : 0;
}

static uint32_t width_of(const struct async *as, const struct tir_inst *slice,
                         const struct tir_type *buffer, const char **why)
{
    return tir_copy_width(as->f, as->cx->target, as->ranges, slice, buffer, why);
}

static struct tir_inst *copyable_load(struct async *as, const struct tir_inst *store)
{
    struct tir_value *v = store->operands[TIR_STORE_VALUE];
    if (tir_ref_base(store)->type->space != TIR_SPACE_SHARED || store->operands[TIR_STORE_MASK])
        return NULL;
    struct tir_inst *load = v->def;
    if (!load || load->op != TIR_OP_LOAD || !tir_type_is_tile(v->type) || as->uses[v->id] != 1 ||
        load->block != store->block)
        return NULL;
    if (tir_ref_base(load)->type->space != TIR_SPACE_GLOBAL)
        return NULL;
    // The store must fill the whole buffer from its origin.
    const struct tir_attr *box = tir_attr_find(store, TIR_ATTR_box);
    const struct tir_type *buffer = tir_ref_base(store)->type;
    for (uint32_t d = 0; d < buffer->rank; d++) {
        int64_t start;
        if (box->list[d] != buffer->shape[d] ||
            !tir_is_const_int(tir_ref_indices(store)[d], &start) || start != 0)
            return NULL;
    }
    return load;
}

static void refuse(struct async *as, const struct tir_inst *load, const char *why)
{
    const char *name = tir_ref_base(load)->name;
    tir_receipt_refuse(as->cx, TIR_TOPIC_COPY, TIR_WISH_ASYNC, load->span,
                       "copy of %s: through registers, because %s", name ? name : "a tensor", why);
}

static void accept(struct async *as, struct tir_inst *copy, uint32_t width)
{
    const char *name = tir_param_of(as->f, tir_ref_base(copy))->name;
    tir_set_int(as->f, copy, TIR_ATTR_width, width);
    if (as->cx->target->features & TIR_HAS_TMA)
        tir_receipt_refuse(as->cx, TIR_TOPIC_COPY, TIR_WISH_TMA, copy->span,
                           "copy of %s: cp.async, %u bytes each; tma feeds warpgroups alone", name,
                           width);
    else
        tir_receipt_add(as->cx, TIR_TOPIC_COPY, copy->span, "copy of %s: cp.async, %u bytes each",
                        name, width);
}

static bool is_gathered(const struct tir_inst *load)
{
    const struct tir_attr *box = tir_attr_find(load, TIR_ATTR_box);
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d] < 0)
            return true;
    return false;
}

// The copy that takes the place of a load and the store of its tile.
static struct tir_inst *replace_by_copy(struct async *as, struct tir_inst *load,
                                        struct tir_inst *store)
{
    struct tir_builder b = tir_builder_before(as->f, store);
    uint32_t rank = tir_ref_base(load)->type->rank;
    struct tir_value *operands[TIR_COPY_FIXED + 1 + TIR_MAX_RANK] = {tir_ref_base(store)};
    operands[TIR_COPY_FIXED] = tir_ref_base(load);
    memcpy(operands + TIR_COPY_FIXED + 1, tir_ref_indices(load), rank * sizeof(*operands));
    struct tir_inst *copy =
        tir_build(&b, TIR_OP_COPY_ASYNC, operands, TIR_COPY_FIXED + 1 + rank, NULL, 0, 0);
    const struct tir_attr *box = tir_attr_find(load, TIR_ATTR_box);
    tir_set_list(as->f, copy, TIR_ATTR_box, box->list, box->list_count);
    copy->span = load->span;
    tir_remove(store);
    tir_remove(load);
    as->changed = true;
    return copy;
}

// Why no tensor copy can fill the buffer with the slice; NULL: one can.
static const char *tensor_copy_refusal(const struct async *as, const struct tir_inst *slice,
                                       const struct tir_value *buffer)
{
    const char *why = tir_tma_refusal(as->f, as->cx->target, as->ranges, slice);
    return why ? why : tir_tma_memory_refusal(as->f->module->types, buffer);
}

// A copy by the tensor copy engine; it completes at an mbarrier, which pipeline and ring provide.
static bool make_tensor_copy(struct async *as, struct tir_inst *store)
{
    struct tir_inst *load = as->by_tensor ? copyable_load(as, store) : NULL;
    if (!load)
        return false;
    const char *name = tir_ref_base(load)->name;
    const char *why = tensor_copy_refusal(as, load, tir_ref_base(store));
    if (!why && !tir_can_be_slots(as->f, store, tir_ref_base(store)))
        why = "more than this copy and reads after it use the buffer";
    if (why) {
        tir_receipt_refuse(as->cx, TIR_TOPIC_COPY, TIR_WISH_TMA, load->span,
                           "copy of %s: not by tensor copies, because %s", name, why);
        return false;
    }
    struct tir_inst *copy = replace_by_copy(as, load, store);
    tir_set_word(as->f, copy, TIR_ATTR_engine, TIR_WORD_engine_tma);
    tir_receipt_add(as->cx, TIR_TOPIC_COPY, copy->span, "copy of %s: tma", name);
    return true;
}

static bool make_copy(struct async *as, struct tir_inst *store)
{
    struct tir_inst *load = copyable_load(as, store);
    if (!load)
        return false;
    const char *why = NULL;
    uint32_t width = 0;
    if (!tir_is_only_read(as->f, tir_ref_base(load)))
        why = "the tensor is written too";
    else if (!tir_reads_zero_outside(load))
        why = "it has a mask or a pad other than 0";
    else if (is_gathered(load))
        why = "an index tile names its elements";
    else
        width = width_of(as, load, tir_ref_base(store)->type, &why);
    if (!width) {
        refuse(as, load, why);
        return false;
    }
    accept(as, replace_by_copy(as, load, store), width);
    return true;
}

// Into a slot of a ring: by a tensor copy, where one can, whatever fills the rest of the slot.
static bool fills_slot(struct async *as, struct tir_inst *copy)
{
    const struct tir_inst *put = copy->block->owner;
    if (!put || put->op != TIR_OP_PUT)
        return false;
    const char *why = tensor_copy_refusal(as, copy, copy->operands[TIR_COPY_TO]);
    const char *name = tir_ref_base(copy)->name;
    if (why) {
        tir_receipt_refuse(as->cx, TIR_TOPIC_COPY, TIR_WISH_TMA, copy->span,
                           "copy of %s: not by tensor copies, because %s", name, why);
        return false;
    }
    tir_set_word(as->f, copy, TIR_ATTR_engine, TIR_WORD_engine_tma);
    tir_receipt_add(as->cx, TIR_TOPIC_COPY, copy->span, "copy of %s: tma", name);
    as->changed = true;
    return true;
}

// A copy_async of the program: the widest that is known to be aligned, else through registers.
static void settle_copy(struct async *as, struct tir_inst *copy)
{
    if (fills_slot(as, copy))
        return;
    const struct tir_type *buffer = copy->operands[TIR_COPY_TO]->type;
    const char *why = NULL;
    uint32_t width = width_of(as, copy, buffer, &why);
    as->changed = true;
    if (width) {
        accept(as, copy, width);
        return;
    }
    refuse(as, copy, why);
    uint32_t order[TIR_MAX_RANK];
    for (uint32_t d = 0; d < buffer->rank; d++)
        order[d] = buffer->rank - 1 - d;
    uint32_t bits = tir_elems[buffer->elem].bits;
    uint32_t vector = tir_tensor_alignment(as->f, tir_ref_base(copy)) * 8 / bits;
    tir_stage_copy(as->f, copy,
                   tir_layout_blocked(as->f->module->types, buffer->rank, buffer->shape, order,
                                      order, TIR_MAX(1, vector), 1,
                                      tir_crew_of(as->f, copy).warps));
}

// Does inst, or anything inside it, read memory of one of the buffers (through views too)?
static bool reads_any(const struct tir_inst *inst, struct tir_map *buffers)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i] && tir_map_get(buffers, tir_map_key(inst->operands[i]))) {
            if (!tir_viewed(inst))
                return true;
            tir_map_set(buffers, tir_map_key(inst->results[0]), inst->results[0]);
        }
    for (uint32_t r = 0; r < inst->region_count; r++)
        for (const struct tir_inst *in = inst->regions[r]->first; in; in = in->next)
            if (reads_any(in, buffers))
                return true;
    return false;
}

// What the program itself puts between a write of shared memory and other threads or engines: the
// copies made of its stores are done before it, too.
static bool orders_stores(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_FENCE || inst->op == TIR_OP_BAR_SYNC || inst->op == TIR_OP_ARRIVE;
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
            if (make_tensor_copy(as, inst))
                continue;
            if (!as->by_tensor && make_copy(as, inst)) {
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

enum tir_change tir_pass_async_copy(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct async as = {.f = f,
                       .cx = cx,
                       .ranges = tir_ranges_new(cx->scratch, f),
                       .uses = tir_count_uses(cx->scratch, f),
                       .by_tensor = tir_has_warpgroup_dot(f)};
    run_block(&as, f->body);
    as.changed |= tir_make_async_stores(f, cx);
    return as.changed ? TIR_CHANGED : TIR_UNCHANGED;
}
