// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The room for slots: whether all that a kernel will have in shared memory fits, as `memory` places
// it.
//
//     for k ... stages(4) { let a = alloc(); ... }     // a lives as long as the loop, four times
//     let b = alloc(); ...                             // a place that b and a may share
//     let c: T2 = convert_layout(d);                   // will have scratch, as small as it can be
//
// So what the threads do behind a loop, where its buffers live no more, takes no slots from it.
// Where a role fills slots it runs ahead into the next tile. Then the slots live as long as the
// kernel, and so does all that may become a ring later (specialize_warps); the scratch of what the
// role computes is there twice.

#include "pass/async/room.h"

#include "ir/crew.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/target.h"
#include "pass/async/chunk.h"
#include "pass/async/pipeline.h"

static void live_forever(struct tir_life *in)
{
    in->role = NULL;
    in->begin = 0;
    in->end = INT64_MAX;
}

// Does the buffer leave by the copies of a role, or do copies of the role that fills slots come to
// it?
static bool is_for_roles(const struct tir_func *f, const struct tir_life *in, bool sends)
{
    const struct tir_inst *owner = in->buffer->def->block->owner;
    const bool in_loop = owner && owner->op == TIR_OP_FOR;
    tir_foreach_inst(inst, f)
        if ((sends && inst->op == TIR_OP_STORE_ASYNC &&
             tir_buffer_root(inst->operands[TIR_SEND_FROM]) == in->buffer) ||
            (in_loop && inst->op == TIR_OP_COPY_ASYNC &&
             tir_buffer_root(inst->operands[TIR_COPY_TO]) == in->buffer))
            return true;
    return in->buffer->def->op == TIR_OP_RING;
}

static bool has_store_role(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_TILES && tir_attr_int(inst, TIR_ATTR_store_role, 0))
            return true;
    return false;
}

// The roles that there will be.
static void expect_roles(struct tir_room *room, bool computes)
{
    static const struct tir_inst load, math;
    struct tir_lives *l = &room->lives;
    const bool sends = has_store_role(l->f);
    const uint32_t count = l->buffers.len;
    for (uint32_t i = 0; i < count; i++) {
        struct tir_life *in = &l->buffers.at[i];
        in->role = &math;
        if (in->buffer && is_for_roles(l->f, in, sends))
            live_forever(in);
        if (!computes || !in->user || in->user->op == TIR_OP_ATOMIC)
            continue;
        struct tir_life too = *in;
        too.role = &load;
        vec_push(l->arena, &l->buffers, too);
    }
}

// Results that will leave in chunks, through a buffer.
static void expect_chunks(struct tir_room *room, struct tir_pass_cx *cx)
{
    struct tir_lives *l = &room->lives;
    uint32_t *uses = tir_count_uses(l->arena, l->f);
    tir_foreach_inst(inst, l->f) {
        const struct tir_type *t =
            inst->op == TIR_OP_STORE ? tir_chunked_store(l->f, cx, uses, inst) : NULL;
        struct tir_life in = {.begin = l->order.begin[inst->id], .end = l->order.end[inst->id]};
        if (!t)
            continue;
        in.bytes = tir_buffer_bytes(t);
        in.alignment = tir_layout_alignment(t->layout);
        in.role = tir_crew_of(l->f, inst).role;
        vec_push(l->arena, &l->buffers, in);
    }
}

void tir_room_init(struct tir_room *room, struct tir_func *f, struct tir_pass_cx *cx,
                   enum tir_filler filler)
{
    tir_lives_find(&room->lives, f, cx->scratch, true);
    room->limit = cx->target->shared_per_cta;
    room->in_roles = filler != TIR_FILL_IN_LINE;
    expect_chunks(room, cx);
    if (room->in_roles)
        expect_roles(room, filler == TIR_FILL_COMPUTES);
}

void tir_room_repeat(struct tir_room *room, const struct tir_inst *alloc, int64_t slots,
                     const struct tir_inst *loop)
{
    struct tir_lives *l = &room->lives;
    struct tir_life *in = tir_life_of(l, alloc->results[0]);
    in->bytes = slots * tir_slot_bytes(alloc->results[0]->type);
    in->alignment = TIR_MAX(in->alignment, TIR_TMA_TENSOR_BYTES);
    if (room->in_roles) {
        live_forever(in);
        return;
    }
    in->begin = TIR_MIN(in->begin, l->order.begin[loop->id]);
    in->end = TIR_MAX(in->end, l->order.end[loop->id]);
}

void tir_room_add_mbarriers(struct tir_room *room)
{
    const struct tir_life in = {
        .end = INT64_MAX, .bytes = TIR_BUDGET_MBARRIER_BYTES, .alignment = 8};
    vec_push(room->lives.arena, &room->lives.buffers, in);
}

bool tir_room_suffices(struct tir_room *room)
{
    return tir_lives_place(&room->lives) <= room->limit;
}
