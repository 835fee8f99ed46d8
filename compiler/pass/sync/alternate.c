// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// alternate: what a round computes for its products has two buffers, which take turns.
//
//     for n: i64 in range(0, N, 64) carry (acc: T = zero) {
//         ...
//         let p: shared bf16[64, 64] in S = alloc();
//         store(p[0:+64, 0:+64], x);
//         let d: T = gemm_async(p, b, acc);
//         ...
//         yield d2;
//     }
// becomes
//     for n: i64 in range(0, N, 64) carry (acc: T = zero, turn: i32 = 0) {
//         ...
//         let p: shared bf16[2, 64, 64] in S2 = alloc();
//         let p2: shared bf16[64, 64] in S = view(p[turn, 0:+64, 0:+64]);
//         store(p2[0:+64, 0:+64], x);
//         let d: T = gemm_async(p2, b, acc);
//         ...
//         yield d2, where(eq(turn, 1), 0, add(turn, 1));
//     }
//
// Warps must not write such a buffer while products of others read what it had in the round before:
// that takes a barrier, and a second one orders the writes before this round's products. With two
// buffers the second barrier of each round does both. When a warp writes a round's buffer, all have
// come to the barrier of the round before, and are done with the round before that. So warps wait
// for each other once a round.
//
// The slot of a ring of two takes its turns already; else loops carry a number, the ones around
// the loop too. There must be room in shared memory. The barrier pass sees by itself that rounds
// differ (barrier_slots.c).

#include "ir/carry.h"
#include "ir/effect.h"
#include "ir/walk.h"
#include "machine/target.h"
#include "pass/async/pipeline.h"
#include "pass/pass.h"
#include "pass/receipt.h"
#include "pass/sync/life.h"
#include "pass/sync/shared.h"
#include "pass/sync/slot.h"

enum { TURNS = 2 };

// Do products of warpgroups read the buffer?
static bool is_multiplied(const struct tir_inst *loop, const struct tir_value *buffer)
{
    tir_foreach_inst_in(inst, loop->regions[0]) {
        if (tir_done_of(inst) != TIR_DONE_WGMMA)
            continue;
        tir_foreach_effect(e, inst)
            if (tir_buffer_root(tir_effect_buffer(inst, e)) == buffer)
                return true;
    }
    return false;
}

static bool is_scratch(struct tir_inst *inst)
{
    const struct tir_inst *loop = inst->block->owner;
    if (inst->op != TIR_OP_ALLOC || !loop || loop->op != TIR_OP_FOR)
        return false;
    struct tir_value *buffer = inst->results[0];
    return buffer->type->space == TIR_SPACE_SHARED && buffer->type->elem != TIR_MBARRIER &&
           !tir_buffer_is_by_hand(buffer) && is_multiplied(loop, buffer);
}

// Is there room for two, as long as the buffer lives?
static bool has_room(struct tir_lives *lives, const struct tir_inst *alloc,
                     const struct tir_pass_cx *cx)
{
    struct tir_life *life = tir_life_of(lives, alloc->results[0]);
    life->bytes *= TURNS;
    if (tir_lives_place(lives) <= cx->target->shared_per_cta)
        return true;
    life->bytes /= TURNS;
    return false;
}

// The slot of a ring of two, in the loop; NULL: there is none.
static struct tir_value *slot_of(const struct tir_inst *loop)
{
    const struct tir_block *body = loop->regions[0];
    for (uint32_t i = 0; i < loop->result_count; i++) {
        struct tir_value *slot = body->args[body->arg_count - loop->result_count + i];
        if (tir_slot_is_next(tir_yield_of(body)->operands[i], slot, TURNS))
            return slot;
    }
    return NULL;
}

// What the loop carries, and each loop around it; its body has yet to yield it.
static struct tir_value *carry(struct tir_func *f, struct tir_inst *loop)
{
    struct tir_inst *outer = loop->block->owner;
    const bool has_outer = outer && (outer->op == TIR_OP_FOR || outer->op == TIR_OP_TILES);
    struct tir_value *init = has_outer ? carry(f, outer) : tir_const_i32(f, 0);
    struct tir_value *turn = tir_carry_add(f, loop, init, "turn");
    if (has_outer)
        tir_yield_add(f, outer->regions[0], loop->results[loop->result_count - 1]);
    return turn;
}

static struct tir_value *turn_of(struct tir_func *f, struct tir_inst *loop)
{
    struct tir_value *slot = slot_of(loop);
    if (slot)
        return slot;
    struct tir_value *turn = carry(f, loop);
    struct tir_builder b = {f, loop->regions[0], tir_yield_of(loop->regions[0]), loop->span};
    tir_yield_add(f, loop->regions[0], tir_slot_next(&b, turn, TURNS));
    return turn;
}

static void double_buffer(struct tir_func *f, struct tir_inst *alloc)
{
    struct tir_value *turn = turn_of(f, alloc->block->owner), *old = alloc->results[0];
    struct tir_builder b = tir_builder_before(f, alloc);
    struct tir_value *both =
        tir_build1(&b, TIR_OP_ALLOC, tir_slots_type(f, old->type, TURNS), NULL, 0);
    both->name = old->name;
    tir_replace_uses(f, old, tir_build_slot(&b, both, turn, old->type));
    tir_remove(alloc);
}

enum tir_change tir_pass_alternate(struct tir_func *f, struct tir_pass_cx *cx)
{
    VEC(struct tir_inst *) found = {0};
    tir_foreach_inst(inst, f)
        if (is_scratch(inst))
            vec_push(cx->scratch, &found, inst);
    if (!found.len)
        return TIR_UNCHANGED;
    struct tir_lives lives;
    tir_lives_find(&lives, f, cx->scratch, true);
    bool changed = false;
    for (uint32_t i = 0; i < found.len; i++) {
        struct tir_inst *alloc = found.at[i];
        if (!has_room(&lives, alloc, cx)) {
            tir_receipt_refuse(cx, TIR_TOPIC_MEMORY, TIR_WISH_NONE, alloc->span,
                               "a buffer of each round: the same, because shared memory has no "
                               "room for two");
            continue;
        }
        tir_receipt_add(
            cx, TIR_TOPIC_MEMORY, alloc->span,
            "a buffer of each round: two take turns, and one barrier a round is enough");
        double_buffer(f, alloc);
        changed = true;
    }
    return changed ? TIR_CHANGED : TIR_UNCHANGED;
}
