// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rings of buffers from which tensor copies store.
//
//     let out: shared bf16[128, 64] in S = alloc();
//     let out1: shared bf16[128, 64] in S = alloc();
//     store(out[0:+128, 0:+64], y0);
//     store_async(D[m:+128, n:+64], out, engine = tma);
//     store(out1[0:+128, 0:+64], y1);
//     store_async(D[m:+128, n + 64:+64], out1, engine = tma);
// becomes
//     let out: shared bf16[2, 128, 64] in R = ring(stages = 2);
//     put(out) with (slot: i32) { store(view(out[slot, ...]), y0); }
//     get(out) with (slot: i32) { store_async(D[m:+128, n:+64], view(out[slot, ...]), ...); }
//     put(out) with (slot: i32) { store(view(out[slot, ...]), y1); }
//     get(out) with (slot: i32) { store_async(D[m:+128, n + 64:+64], view(out[slot, ...]), ...); }
//
// Buffers of one type share a ring with a slot for each of them. A buffer with any other use is
// left as it is, and so is one whose slots would not all begin at a multiple of 128 bytes.

#include "pass/role/store_ring.h"

#include "ir/walk.h"
#include "machine/target.h"
#include "pass/async/pipeline.h"

struct pair {
    struct tir_inst *store, *send; // the buffer is written whole, then it leaves
};

struct outgoing { // buffers of one type
    const struct tir_type *type;
    tir_inst_list allocs;
    VEC(struct pair) pairs;
};

struct outgoings {
    struct tir_func *f;
    struct tir_arena *scratch;
    VEC(struct outgoing) all;
};

// The store in front of `send` that fills its whole buffer; NULL: none does.
static struct tir_inst *filled_by(const struct tir_inst *send)
{
    const struct tir_value *buffer = send->operands[0];
    struct tir_inst *store = send->prev;
    while (store && (store->op != TIR_OP_STORE || tir_ref_base(store) != buffer))
        store = store->prev;
    if (!store || store->operands[TIR_STORE_MASK])
        return NULL;
    const struct tir_attr *box = tir_attr_find(store, TIR_ATTR_box);
    for (uint32_t d = 0; d < buffer->type->rank; d++)
        if (box->list[d] != buffer->type->shape[d])
            return NULL;
    return store;
}

static struct outgoing *of_type(struct outgoings *o, const struct tir_type *type)
{
    vec_foreach(struct outgoing, out, &o->all)
        if (out->type == type)
            return out;
    struct outgoing out = {.type = type};
    vec_push(o->scratch, &o->all, out);
    return &o->all.at[o->all.len - 1];
}

static void look_at(struct outgoings *o, struct tir_inst *alloc)
{
    struct tir_value *buffer = alloc->results[0];
    VEC(struct pair) pairs = {0};
    uint32_t uses = 0;
    tir_foreach_inst(inst, o->f) {
        for (uint32_t i = 0; i < inst->operand_count; i++)
            uses += inst->operands[i] == buffer;
        if (inst->op != TIR_OP_STORE_ASYNC || inst->operands[TIR_SEND_FROM] != buffer)
            continue;
        struct pair pair = {filled_by(inst), inst};
        if (!pair.store)
            return;
        vec_push(o->scratch, &pairs, pair);
    }
    if (!pairs.len || uses != 2 * pairs.len || tir_type_bytes(buffer->type) % TIR_TMA_TENSOR_BYTES)
        return;
    struct outgoing *out = of_type(o, buffer->type);
    vec_push(o->scratch, &out->allocs, alloc);
    vec_foreach(struct pair, pair, &pairs)
        vec_push(o->scratch, &out->pairs, *pair);
}

// A put or get in front of inst, which moves into it; operand `at` becomes the slot.
static void enclose(struct tir_func *f, enum tir_op op, struct tir_value *slots,
                    const struct tir_type *type, struct tir_inst *inst, uint32_t at)
{
    struct tir_builder b = tir_builder_before(f, inst);
    struct tir_inst *around = tir_build(&b, op, &slots, 1, NULL, 0, 1);
    struct tir_value *slot = tir_add_slot_arg(f, around);
    struct tir_builder in = tir_builder_at_end(f, around->regions[0]);
    in.span = inst->span;
    inst->operands[at] = tir_build_slot(&in, slots, slot, type);
    tir_move_before(inst, tir_build_yield(&in, NULL, 0));
}

static struct tir_inst *build_ring(struct tir_func *f, const struct outgoing *out)
{
    struct tir_builder top = tir_builder_at_end(f, f->body);
    top.before = f->body->first;
    const struct tir_type *type = tir_slots_type(f, out->type, out->allocs.len);
    struct tir_inst *ring = tir_build(&top, TIR_OP_RING, NULL, 0, &type, 1, 0);
    ring->span = out->pairs.at[0].send->span;
    ring->results[0]->name = out->allocs.at[0]->results[0]->name;
    tir_set_int(f, ring, TIR_ATTR_stages, out->allocs.len);
    return ring;
}

void tir_make_store_rings(struct tir_func *f, struct tir_pass_cx *cx, tir_inst_list *rings)
{
    struct outgoings o = {.f = f, .scratch = cx->scratch};
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_ALLOC && inst->results[0]->type->space == TIR_SPACE_SHARED &&
            inst->results[0]->type->rank < TIR_MAX_RANK)
            look_at(&o, inst);
    vec_foreach(struct outgoing, out, &o.all) {
        struct tir_inst *ring = build_ring(f, out);
        vec_foreach(struct pair, pair, &out->pairs) {
            enclose(f, TIR_OP_PUT, ring->results[0], out->type, pair->store,
                    tir_fixed_count(pair->store));
            enclose(f, TIR_OP_GET, ring->results[0], out->type, pair->send, 0);
        }
        vec_foreach(struct tir_inst *, alloc, &out->allocs)
            tir_remove(*alloc);
        vec_push(cx->scratch, rings, ring);
    }
}
