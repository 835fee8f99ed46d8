// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// async_copy, the way back: tiles leave registers through shared memory and the tensor copy engine.
//
//     store(D[m:+128, n:+256], y);
// becomes, where products run on warpgroups,
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
// A chunk is 128 bytes of columns, one atom of the swizzle. Two buffers take turns, so that one is
// written while the other leaves. Edges cost nothing: the engine drops what is outside. The fences
// and waits between are the barrier pass's work.

#include "pass/async_store.h"

#include "ir/walk.h"
#include "pass/receipt.h"
#include "pass/tma.h"
#include "pass/warpgroup.h"

#define CHUNK_BYTES 128
#define BUFFERS     2

struct outgoing {
    struct tir_func *f;
    struct tir_inst *store;
    struct tir_value *value;
    uint32_t rank;   // of the value
    int64_t columns; // of a chunk
    struct tir_value *buffers[BUFFERS];
};

static const char *refuse(const struct tir_func *f, struct tir_pass_cx *cx,
                          const struct tir_ranges *ranges, const struct tir_inst *store)
{
    const struct tir_type *t = store->operands[TIR_STORE_VALUE]->type;
    uint32_t bits = tir_elems[t->elem].bits;
    const char *why = tir_tma_refusal(f, cx->arch, ranges, store);
    if (why)
        return why;
    if (t->rank < 2 || bits < 8)
        return "it has one dimension or elements smaller than a byte";
    int64_t bytes = t->shape[t->rank - 1] * bits / 8;
    if (bytes % 32 || (bytes > CHUNK_BYTES && bytes % CHUNK_BYTES))
        return "its rows are not a multiple of 32 bytes, and of 128 beyond that";
    int64_t shape[TIR_MAX_RANK];
    memcpy(shape, t->shape, sizeof(shape));
    shape[t->rank - 1] = TIR_MIN(shape[t->rank - 1], CHUNK_BYTES * 8 / bits);
    if (!tir_layout_part(f->module->types, t->layout, shape))
        return "its columns are spread over warps";
    return NULL;
}

static const struct tir_type *chunk_type(const struct outgoing *o)
{
    struct tir_type t = *o->value->type;
    t.shape[o->rank - 1] = o->columns;
    t.layout = NULL;
    return tir_type_get(o->f->module->types, &t);
}

static void build_buffers(struct outgoing *o, struct tir_builder *b, uint32_t count)
{
    struct tir_types *types = o->f->module->types;
    struct tir_type t = *chunk_type(o);
    uint32_t bits = tir_elems[t.elem].bits;
    t.space = TIR_SPACE_SHARED;
    t.layout = tir_layout_memory(types, t.rank, t.shape, bits, (uint32_t)(o->columns * bits / 8));
    for (uint32_t i = 0; i < count; i++) {
        o->buffers[i] = tir_build1(b, TIR_OP_ALLOC, tir_type_get(types, &t), NULL, 0);
        o->buffers[i]->name = tir_intern_cstr(o->f->module->names, "out");
    }
}

// The chunk's columns of the value, in the layout in which each thread keeps what it has.
static struct tir_value *build_chunk(const struct outgoing *o, struct tir_builder *b, int64_t start)
{
    const struct tir_type *t = o->value->type;
    if (o->columns == t->shape[o->rank - 1])
        return o->value;
    struct tir_types *types = o->f->module->types;
    const struct tir_type *part = chunk_type(o);
    part = tir_type_with_layout(types, part, tir_layout_part(types, t->layout, part->shape));
    struct tir_value *x = tir_build1(b, TIR_OP_EXTRACT, part, &o->value, 1);
    int64_t starts[TIR_MAX_RANK] = {0};
    starts[o->rank - 1] = start;
    tir_set_list(o->f, x->def, TIR_ATTR_start, starts, o->rank);
    return x;
}

static void build_store(const struct outgoing *o, struct tir_builder *b, struct tir_value *x,
                        struct tir_value *buffer)
{
    struct tir_value *operands[3 + TIR_MAX_RANK] = {x, NULL, NULL, NULL};
    uint32_t fixed = tir_ops[TIR_OP_STORE].fixed_count;
    operands[fixed] = buffer;
    for (uint32_t d = 0; d < o->rank; d++)
        operands[fixed + 1 + d] = tir_const_index(o->f, 0);
    struct tir_inst *store = tir_build(b, TIR_OP_STORE, operands, fixed + 1 + o->rank, NULL, 0, 0);
    tir_set_list(o->f, store, TIR_ATTR_box, buffer->type->shape, o->rank);
}

static void build_store_async(const struct outgoing *o, struct tir_builder *b, int64_t start,
                              struct tir_value *buffer)
{
    uint32_t rank = tir_ref_base(o->store)->type->rank;
    struct tir_value *operands[2 + TIR_MAX_RANK] = {buffer, tir_ref_base(o->store)};
    memcpy(operands + 2, tir_ref_indices(o->store), rank * sizeof(*operands));
    if (start)
        operands[1 + rank] = tir_binary(b, TIR_OP_ADD, operands[1 + rank],
                                        tir_const_int(o->f, operands[1 + rank]->type, start));
    const struct tir_attr *box = tir_attr_find(o->store, TIR_ATTR_box);
    int64_t boxes[TIR_MAX_RANK];
    memcpy(boxes, box->list, rank * sizeof(*boxes));
    boxes[rank - 1] = o->columns;
    struct tir_inst *copy = tir_build(b, TIR_OP_STORE_ASYNC, operands, 2 + rank, NULL, 0, 0);
    tir_set_list(o->f, copy, TIR_ATTR_box, boxes, rank);
    tir_set_word(o->f, copy, TIR_ATTR_engine, TIR_WORD_engine_tma);
}

static void send(struct tir_func *f, struct tir_pass_cx *cx, struct tir_inst *store)
{
    struct outgoing o = {.f = f, .store = store, .value = store->operands[TIR_STORE_VALUE]};
    const struct tir_type *t = o.value->type;
    o.rank = t->rank;
    o.columns = TIR_MIN(t->shape[o.rank - 1], CHUNK_BYTES * 8 / tir_elems[t->elem].bits);
    int64_t chunks = t->shape[o.rank - 1] / o.columns;
    struct tir_builder b = tir_builder_before(f, store);
    build_buffers(&o, &b, (uint32_t)TIR_MIN(chunks, BUFFERS));
    for (int64_t i = 0; i < chunks; i++) {
        struct tir_value *buffer = o.buffers[i % BUFFERS];
        build_store(&o, &b, build_chunk(&o, &b, i * o.columns), buffer);
        build_store_async(&o, &b, i * o.columns, buffer);
    }
    tir_receipt_add(cx, TIR_TOPIC_COPY, store->span, "store of %s: tma, in %lld chunks",
                    tir_ref_base(store)->name, (long long)chunks);
    tir_remove(store);
}

bool tir_make_async_stores(struct tir_func *f, struct tir_pass_cx *cx)
{
    if (!tir_has_warpgroup_dot(f))
        return false;
    struct tir_ranges *ranges = tir_ranges_new(cx->scratch, f);
    VEC(struct tir_inst *) stores = {0};
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_STORE && tir_type_is_tile(inst->operands[TIR_STORE_VALUE]->type) &&
            tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL)
            vec_push(cx->scratch, &stores, inst);
    bool changed = false;
    vec_foreach(struct tir_inst *, it, &stores) {
        const char *why = refuse(f, cx, ranges, *it);
        if (why) {
            tir_receipt_refuse(cx, TIR_TOPIC_COPY, TIR_WISH_TMA, (*it)->span,
                               "store of %s: from registers, because %s", tir_ref_base(*it)->name,
                               why);
            continue;
        }
        send(f, cx, *it);
        changed = true;
    }
    return changed;
}
