// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The stages of rings that tensor copies fill: as many as their loops ask for, or as there is room
// for beside all that the kernel has at that time.

#include "ir/effect.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/target.h"
#include "pass/async/pipeline_ring.h"
#include "pass/async/room.h"
#include "pass/receipt.h"

struct tir_inst *tir_loop_of_ring(const struct ring *ring)
{
    struct tir_inst *owner = ring->block->owner;
    return owner && tir_is_loop(owner) ? owner : NULL;
}

static bool is_copied_to(const struct tir_func *f, const struct tir_value *buffer)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_COPY_ASYNC && inst->operands[TIR_COPY_TO] == buffer)
            return tir_done_of(inst) == TIR_DONE_CP_ASYNC;
    return false;
}

// Is it filled by cp.async in a loop, ahead of puts or beside them?
static bool is_ahead(const struct rings *r, const struct tir_inst *alloc)
{
    const struct tir_inst *owner = alloc->block->owner;
    if (alloc->op != TIR_OP_ALLOC || !owner || owner->op != TIR_OP_FOR)
        return false;
    return r->feeds_mma ? is_copied_to(r->f, alloc->results[0])
                        : tir_is_copied_ahead(r->f, alloc->results[0], alloc->block);
}

// Of `most`, as the loop asks. otherwise: for one that does not.
static int64_t stages_of(const struct tir_inst *loop, int64_t most, int64_t otherwise)
{
    const int64_t asked = loop->op == TIR_OP_FOR ? tir_attr_int(loop, TIR_ATTR_stages, 0) : 0;
    return TIR_MIN(asked ? asked : otherwise, most);
}

// Have all rings room for so many stages, and what cp.async copies too?
static bool has_room(const struct rings *r, struct tir_room *room, int64_t stages)
{
    vec_foreach(struct ring *const, it, &r->all)
        vec_foreach(struct copy *const, c, &(*it)->copies) {
            struct tir_inst *loop = tir_loop_of_ring(*it);
            tir_room_repeat(room, (*c)->alloc,
                            loop ? stages_of(loop, stages, TIR_BUDGET_RING_STAGES) : 1, loop);
        }
    tir_foreach_inst(inst, r->f)
        if (is_ahead(r, inst))
            tir_room_repeat(room, inst,
                            stages_of(inst->block->owner, stages, TIR_BUDGET_COPY_STAGES),
                            inst->block->owner);
    return tir_room_suffices(room);
}

// The most stages of a ring that there is room for.
static int64_t stages_that_fit(const struct rings *r)
{
    int64_t stages = 1;
    enum tir_filler filler = r->feeds_mma ? TIR_FILL_IN_LINE : TIR_FILL_COPIES;
    vec_foreach(struct copy *const, it, &r->copies)
        if ((*it)->copy->op == TIR_OP_STORE) // by warps of products only
            filler = TIR_FILL_COMPUTES;
    vec_foreach(struct ring *const, it, &r->all)
        if (tir_loop_of_ring(*it) && (*it)->slot_bytes) {
            const int64_t most = r->cx->target->shared_per_cta / (*it)->slot_bytes;
            stages =
                TIR_MAX(stages, stages_of(tir_loop_of_ring(*it), most, TIR_BUDGET_RING_STAGES));
        }
    struct tir_room room;
    tir_room_init(&room, r->f, r->cx, filler);
    tir_room_add_mbarriers(&room);
    while (stages > 1 && !has_room(r, &room, stages))
        stages--;
    return stages;
}

void tir_choose_ring_stages(struct rings *r)
{
    int64_t fit = stages_that_fit(r);
    if (r->cx->attempt)
        fit = TIR_MIN(fit, r->cx->attempt->stages);
    vec_foreach(struct ring *, it, &r->all) {
        struct ring *ring = *it;
        struct tir_inst *loop = tir_loop_of_ring(ring);
        ring->stages = 1;
        if (!loop)
            continue;
        const int64_t asked = stages_of(loop, INT64_MAX, 0);
        ring->stages = stages_of(loop, fit, TIR_BUDGET_RING_STAGES);
        if (asked > fit)
            tir_receipt_refuse(r->cx, TIR_TOPIC_RING, TIR_WISH_NONE, loop->span,
                               "ring: %lld stages of %lld bytes, not %lld: shared memory is full",
                               (long long)ring->stages, (long long)ring->slot_bytes,
                               (long long)asked);
        else
            tir_receipt_add(r->cx, TIR_TOPIC_RING, loop->span, "ring: %lld stages of %lld bytes",
                            (long long)ring->stages, (long long)ring->slot_bytes);
    }
}
