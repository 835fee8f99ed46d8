// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// async_copy, the way back: tiles leave registers through shared memory and the tensor copy engine.
//
//     store(D[m:+128, n:+256], y);
// becomes, where products run on warpgroups or in tensor memory,
//     let out: shared bf16[128, 64] in S[...] swizzle(128) = alloc();
//     let out1: shared bf16[128, 64] in S[...] swizzle(128) = alloc();
//     let y0: bf16[128, 64] = extract(y, start = [0, 0]);
//     store(out[0:+128, 0:+64], y0);
//     store_async(D[m:+128, n:+64], out, engine = tma);
//     let y1: bf16[128, 64] = extract(y, start = [0, 64]);
//     store(out1[0:+128, 0:+64], y1);
//     store_async(D[m:+128, n + 64:+64], out1, engine = tma);
//     ...
//
// A chunk is 128 bytes of columns, one atom of the swizzle. What is left of a row are chunks of 64,
// 32 and 16 bytes: 240 columns of bf16 leave as 64, 64, 64, 32 and 16. Two buffers of a width take
// turns, so that one is written while the other leaves. Edges cost nothing: the engine drops
// elements outside. The barrier pass adds the fences and waits.
//
// If columns are spread over warps, as those of a turned accumulator are, and threads hold many
// elements, a chunk is some of the rows instead. What follows from sums in tensor memory is
// computed in chunks (columns.c). Of wide sums two warpgroups have half of the columns each. If
// they cannot be loaded in chunks, as when rows are reduced, a buffer holds a chunk of either half:
//     let v: bf16[2, 128, 128] = permute(reshape(y), permutation = [1, 0, 2]);
//     let v0: bf16[2, 128, 64] = extract(v, start = [0, 0, 0]);
//     store(out[0:+2, 0:+128, 0:+64], v0);
//     store_async(D[m:+128, n:+64], view(out[0, 0:+128, 0:+64]), engine = tma);
//     store_async(D[m:+128, n + 128:+64], view(out[1, 0:+128, 0:+64]), engine = tma);
// Slots in tensor memory's kernels are made before. What has no room beside them leaves from
// registers.
//
// An atomic whose old values nobody uses leaves the same way, if the engine can combine with what
// is in memory (PTX ISA, "cp.reduce.async.bulk.tensor"). In a loop it leaves as a whole, so that
// threads wait for each other once a round, if it is small:
//     atomic(D[m:+64, n:+64], y, kind = add);
// becomes
//     store(out[0:+64, 0:+64], y);
//     store_async(D[m:+64, n:+64], out, engine = tma, kind = add);
//
// If D is not aligned, tensor copies cannot store it and its rows leave through registers again.
// The detour is worth it because a thread then holds adjacent elements, unlike in an accumulator.
//     store(out[0:+128, 0:+128], y0);
//     let z0: bf16[128, 128] = load(out[0:+128, 0:+128]);
//     store(D[m:+128, n:+128], z0);
// The pass chunk makes a loop of the last two. Nothing is in flight, so there is one buffer, as
// large as two.

#include "pass/async/async_store.h"

#include "ir/effect.h"
#include "ir/walk.h"
#include "machine/target.h"
#include "pass/async/pipeline.h"
#include "pass/async/stores.h"
#include "pass/async/tma.h"
#include "pass/layout/warpgroup.h"
#include "pass/receipt.h"

static const char no_room[] = "shared memory has no room for it";

// Are the value's rows a slice of the tensor's rows, of which every element is stored, in order?
static bool stores_rows(const struct tir_inst *store)
{
    const struct tir_attr *box = tir_attr_find(store, TIR_ATTR_box);
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d] < 0)
            return false;
    return !store->operands[TIR_STORE_MASK] && !tir_attr_find(store, TIR_ATTR_wraps) &&
           box->list[box->list_count - 1] > 0;
}

static void build_store(const struct outgoing *o, struct tir_builder *b, struct tir_value *x,
                        struct tir_value *buffer)
{
    struct tir_value *operands[3 + TIR_MAX_RANK] = {x, NULL, NULL, NULL};
    uint32_t fixed = tir_ops[TIR_OP_STORE].fixed_count;
    operands[fixed] = buffer;
    for (uint32_t d = 0; d < o->type->rank; d++)
        operands[fixed + 1 + d] = tir_const_index(o->f, 0);
    struct tir_inst *store =
        tir_build(b, TIR_OP_STORE, operands, fixed + 1 + o->type->rank, NULL, 0, 0);
    tir_set_list(o->f, store, TIR_ATTR_box, x->type->shape, o->type->rank);
}

// The dimension of the tensor that chunks divide.
static uint32_t cut_of_tensor(const struct outgoing *o)
{
    const struct tir_attr *box = tir_attr_find(o->store, TIR_ATTR_box);
    const uint32_t cut = o->cut - (o->runs > 1);
    uint32_t d = box->list_count - 1;
    while (d && (box->list[d] <= 0 || tir_slice_dim(o->store, d) != cut))
        d--;
    return d;
}

// A chunk's part of the tensor: its base and indices.
static void set_part(const struct outgoing *o, struct tir_builder *b, int64_t start,
                     struct tir_value **ref)
{
    const uint32_t rank = tir_ref_base(o->store)->type->rank, at = 1 + cut_of_tensor(o);
    memcpy(ref, o->store->operands + tir_fixed_count(o->store), (1 + rank) * sizeof(*ref));
    if (start)
        ref[at] = tir_binary(b, TIR_OP_ADD, ref[at], tir_const_int(o->f, ref[at]->type, start));
}

static void set_box(const struct outgoing *o, struct tir_inst *inst)
{
    const struct tir_attr *box = tir_attr_find(o->store, TIR_ATTR_box);
    int64_t boxes[TIR_MAX_RANK];
    memcpy(boxes, box->list, box->list_count * sizeof(*boxes));
    boxes[cut_of_tensor(o)] = o->extent;
    tir_set_list(o->f, inst, TIR_ATTR_box, boxes, box->list_count);
}

static void build_store_async(const struct outgoing *o, struct tir_builder *b, int64_t start,
                              struct tir_value *buffer)
{
    struct tir_value *operands[2 + TIR_MAX_RANK] = {buffer};
    set_part(o, b, start, operands + 1);
    uint32_t count = 2 + operands[1]->type->rank;
    struct tir_inst *copy = tir_build(b, TIR_OP_STORE_ASYNC, operands, count, NULL, 0, 0);
    set_box(o, copy);
    tir_set_word(o->f, copy, TIR_ATTR_engine, TIR_WORD_engine_tma);
    tir_copy_attr(o->f, copy, o->store, TIR_ATTR_cache);
    tir_copy_attr(o->f, copy, o->store, TIR_ATTR_kind);
}

// The buffer's rows to the tensor, an element a lane.
static void build_rows(const struct outgoing *o, struct tir_builder *b, int64_t start,
                       struct tir_value *buffer)
{
    struct tir_types *types = o->f->module->types;
    struct tir_type t = *tir_outgoing_chunk_type(o);
    uint32_t order[TIR_MAX_RANK];
    for (uint32_t d = 0; d < o->type->rank; d++)
        order[d] = o->type->rank - 1 - d;
    t.layout = tir_layout_blocked(types, t.rank, t.shape, order, order, 1, 1, o->warps);
    struct tir_value *from[3 + TIR_MAX_RANK] = {NULL, NULL, buffer}, *to[3 + TIR_MAX_RANK] = {NULL};
    set_part(o, b, start, to + 2);
    for (uint32_t d = 0; d < o->type->rank; d++)
        from[3 + d] = tir_const_index(o->f, 0);
    to[0] = tir_build1(b, TIR_OP_LOAD, tir_type_get(types, &t), from, 3 + o->type->rank);
    tir_set_list(o->f, to[0]->def, TIR_ATTR_box, t.shape, o->type->rank);
    struct tir_inst *store = tir_build(b, TIR_OP_STORE, to, 3 + to[2]->type->rank, NULL, 0, 0);
    set_box(o, store);
    tir_copy_attr(o->f, store, o->store, TIR_ATTR_cache);
}

// "store of D", "atomic add to D"
static const char *text_of(struct tir_arena *arena, const struct tir_inst *store)
{
    const char *name = tir_ref_base(store)->name;
    if (store->op == TIR_OP_STORE)
        return tir_str_format(arena, "store of %s", name).ptr;
    return tir_str_format(arena, "atomic %s to %s",
                          tir_words[tir_attr_word(store, TIR_ATTR_kind, TIR_WORD_NONE)].name, name)
        .ptr;
}

static void send(struct stores *s, struct tir_inst *store)
{
    struct outgoing o;
    tir_outgoing_open(&o, s, store, false);
    const int64_t whole = o.type->shape[o.cut];
    uint32_t chunks = 0;
    struct tir_builder b = tir_builder_before(s->f, store);
    struct tir_value *value = tir_outgoing_value(&o, &b);
    for (int64_t start = 0; start < whole; start += o.extent, chunks += (uint32_t)o.runs) {
        if (o.cut + 1 == o.type->rank)
            o.extent = tir_outgoing_columns(store, whole - start);
        struct tir_value *buffer = tir_turns_next(s, &o, (whole - start) / o.extent);
        build_store(&o, &b, tir_outgoing_chunk(&o, s, &b, value, start, buffer), buffer);
        for (int64_t run = 0; run < o.runs; run++)
            build_store_async(&o, &b, run * whole + start, tir_outgoing_run(&o, &b, buffer, run));
    }
    tir_receipt_add(s->cx, TIR_TOPIC_COPY, store->span, "%s: tma, in %u chunk%s%s",
                    text_of(s->cx->scratch, store), chunks, chunks == 1 ? "" : "s",
                    o.cut + 1 < o.type->rank ? " of rows" : "");
    tir_remove(store);
}

static void send_rows(struct stores *s, struct tir_inst *store)
{
    struct outgoing o;
    tir_outgoing_open(&o, s, store, true);
    const int64_t whole = o.type->shape[o.cut];
    struct tir_builder b = tir_builder_before(s->f, store);
    struct tir_value *buffer = tir_turns_next(s, &o, 1);
    for (int64_t start = 0; start < whole; start += o.extent) {
        o.extent = TIR_MIN(o.extent, whole - start);
        build_store(&o, &b, tir_outgoing_chunk(&o, s, &b, NULL, start, buffer), buffer);
        build_rows(&o, &b, start, buffer);
    }
    tir_remove(store);
}

// Why tensor copies cannot take the chunks out of their buffers; NULL: they can.
static const char *refuse_buffers(const struct stores *s, struct tir_inst *store)
{
    struct outgoing o;
    tir_outgoing_open(&o, s, store, false);
    const struct tir_type *t = tir_outgoing_buffer_type(&o);
    int64_t box[TIR_MAX_RANK];
    memcpy(box, t->shape, sizeof(box));
    box[0] = o.runs > 1 ? 0 : box[0]; // a run at a time
    const char *no_boxes = tir_tma_boxes_refusal(t->layout, box, NULL, t->elem);
    return no_boxes ? no_boxes : tir_tma_maps_refusal(s->f, store, tir_outgoing_widths(&o));
}

// Why tensor copies cannot take part of what an atomic does; NULL: they can.
static const char *refuse_atomic(const struct tir_func *f, const uint32_t *uses,
                                 const struct tir_inst *atomic)
{
    const struct tir_value *tensor = tir_ref_base(atomic);
    const enum tir_word kind = tir_attr_word(atomic, TIR_ATTR_kind, TIR_WORD_NONE);
    if (uses[atomic->results[0]->id])
        return "the old values are used";
    if (!tir_engine_combines(kind, tensor->type->elem))
        return "the engine does not combine its elements so";
    if (tir_acquires(atomic) || tir_releases(atomic) ||
        tir_attr_word(atomic, TIR_ATTR_scope, TIR_WORD_scope_gpu) == TIR_WORD_scope_system)
        return "copies order nothing, and only for the threads of the GPU";
    // The two proxies would need fences between them.
    tir_foreach_inst(inst, f)
        if (tir_ops[inst->op].has_ref && tir_ref_base(inst) == tensor &&
            (inst->op != TIR_OP_ATOMIC || uses[inst->results[0]->id]))
            return "the kernel has other accesses to the tensor";
    return NULL;
}

// Tensor copies take atomics if they take all of a tensor.
static const char *refuse_atomics(const struct stores *s, const uint32_t *uses,
                                  const struct tir_value *tensor)
{
    tir_foreach_inst(inst, s->f) {
        if (inst->op != TIR_OP_ATOMIC || tir_ref_base(inst) != tensor)
            continue;
        const char *why = refuse_atomic(s->f, uses, inst);
        if (!why && !tir_type_is_tile(inst->operands[TIR_STORE_VALUE]->type))
            why = "the kernel has other accesses to the tensor";
        why = why ? why : tir_outgoing_refusal(s, inst);
        why = why ? why : tir_tma_refusal(s->f, s->cx->target, s->ranges, inst);
        why = why ? why : refuse_buffers(s, inst);
        if (why)
            return why;
    }
    return NULL;
}

// Sums of other products, and what a thread loads for each column, are all there in front of the
// first chunk, whose barrier nothing passes, unless they are computed in chunks.
static bool holds_more(const struct stores *s, struct tir_inst *store, bool in_rows)
{
    struct outgoing o;
    tir_outgoing_open(&o, s, store, in_rows);
    const bool in_chunks = o.is_computed && o.extent < o.type->shape[o.cut];
    const uint32_t many = tir_layout_size(o.type->layout, TIR_AXIS_REG) / 2; // of a thread
    for (const struct tir_inst *inst = store->prev; inst; inst = inst->prev) {
        const struct tir_type *of = inst->result_count ? inst->results[0]->type : NULL;
        if (inst->op == TIR_OP_LOAD && tir_type_is_tile(of) &&
            tir_layout_size(of->layout, TIR_AXIS_REG) >= many &&
            !(o.is_computed && tir_columns_has(&o.columns, inst->results[0])) &&
            tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL)
            return true;
        if (inst->op == TIR_OP_DOT && !in_chunks)
            return true;
        for (uint32_t i = 0; i < inst->region_count; i++)
            tir_foreach_inst_in(inner, inst->regions[i])
                if (!in_chunks && inner->op == TIR_OP_DOT &&
                    tir_type_is_tile(inner->results[0]->type))
                    return true;
    }
    return false;
}

static bool make_store(struct stores *s, struct tir_inst *store)
{
    struct tir_func *f = s->f;
    const char *no_chunks = tir_outgoing_refusal(s, store);
    const char *no_copy = tir_tma_refusal(f, s->cx->target, s->ranges, store);
    if (!no_chunks && !no_copy)
        no_copy = refuse_buffers(s, store);
    const char *why = no_chunks ? no_chunks : no_copy;
    const bool by_rows = !no_chunks && tir_outgoing_cuts_rows(s, store);
    const bool has_rows =
        !no_chunks && !by_rows && stores_rows(store) && tir_outgoing_row_columns(s, store);
    bool staged = !no_chunks && (!no_copy || has_rows);
    if (staged && s->lives.f && holds_more(s, store, no_copy))
        why = "threads hold more than the sums";
    else if (staged && !tir_turns_have_room(s, store, no_copy))
        why = no_room;
    staged = staged && (why == no_chunks || why == no_copy);
    if (why)
        tir_receipt_refuse(s->cx, TIR_TOPIC_COPY, s->lives.f ? TIR_WISH_NONE : TIR_WISH_TMA,
                           store->span, "store of %s: %s, because %s", tir_ref_base(store)->name,
                           staged ? "in rows from shared memory" : "from registers", why);
    if (!staged)
        return false;
    if (no_copy)
        send_rows(s, store);
    else
        send(s, store);
    return true;
}

static bool make_atomics(struct stores *s)
{
    const uint32_t *uses = tir_count_uses(s->cx->scratch, s->f);
    const char **why = arena_array(s->cx->scratch, const char *, s->atomics.len);
    bool changed = false;
    for (uint32_t i = 0; i < s->atomics.len; i++) {
        why[i] = refuse_atomics(s, uses, tir_ref_base(s->atomics.at[i]));
        why[i] = why[i] || tir_turns_have_room(s, s->atomics.at[i], false) ? why[i] : no_room;
    }
    for (uint32_t i = 0; i < s->atomics.len; i++) {
        struct tir_inst *atomic = s->atomics.at[i];
        changed |= !why[i];
        if (!why[i])
            send(s, atomic);
        else
            tir_receipt_refuse(s->cx, TIR_TOPIC_COPY, TIR_WISH_NONE, atomic->span,
                               "%s: from registers, because %s", text_of(s->cx->scratch, atomic),
                               why[i]);
    }
    return changed;
}

bool tir_make_async_stores(struct tir_func *f, struct tir_pass_cx *cx)
{
    if (!tir_has_warpgroup_dot(f) && (f->grid_count || !tir_has_tensor_memory(f)))
        return false;
    struct stores s = {.f = f, .cx = cx, .ranges = tir_ranges_new(cx->scratch, f)};
    if (!tir_has_warpgroup_dot(f))
        tir_lives_find(&s.lives, f, cx->scratch, true);
    tir_foreach_inst(inst, f) {
        if ((inst->op != TIR_OP_ATOMIC && inst->op != TIR_OP_STORE) ||
            !tir_type_is_tile(inst->operands[TIR_STORE_VALUE]->type) ||
            tir_ref_base(inst)->type->space != TIR_SPACE_GLOBAL)
            continue;
        if (inst->op == TIR_OP_ATOMIC)
            vec_push(cx->scratch, &s.atomics, inst);
        else
            vec_push(cx->scratch, &s.stores, inst);
    }
    bool changed = make_atomics(&s);
    vec_foreach(struct tir_inst *, it, &s.stores)
        changed |= make_store(&s, *it);
    if (changed)
        tir_pass_dce(f, cx); // what is now computed in chunks
    return changed;
}
