// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// pipeline, tensor copies for mma.sync: puts that run ahead of their rounds, in line.
//
//     for k: i64 in range(0, K, 64) carry (acc: T = init) stages(3) {
//         let a: shared bf16[128, 64] in S = alloc();
//         copy_async(a, A[m:+128, k:+64], engine = tma);
//         let d: T = dot(a, ..., acc);
//         yield d;
//     }
// becomes
//     let a: shared bf16[3, 128, 64] in R = ring(stages = 3);
//     if 0 < K { put(a) with (slot: i32) { copy_async(view(a[slot, ...]), A[m:+128, 0:+64]); } }
//     if 64 < K { put(a) with (slot: i32) { copy_async(..., A[m:+128, 64:+64]); } }
//     for k: i64 in range(0, K, 64) carry (acc: T = init) {
//         if k + 128 < K { put(a) with (slot: i32) { copy_async(..., A[m:+128, k + 128:+64]); } }
//         let d: T = get(a) with (slot: i32) { ... dot(view(a[slot, ...]), ..., acc) ... }
//         yield d;
//     }
//
// mma.sync needs the registers of all threads, and only some targets move registers between roles.
// So no role copies: one thread of those that multiply starts the copies. A put comes first in its
// round, and waits until all warps have left the get of the round before, whose slot it fills. As
// many puts as gets run, whatever the trip count is. What addresses are looked up by is carried, as
// for cp.async (pipeline.c).

#include "ir/walk.h"
#include "pass/async/lookup.h"
#include "pass/async/pipeline_ring.h"
#include "pass/sync/crew.h"

// The operands of a copy in the round that map describes, but for its slot.
static struct tir_value **clone_operands(struct rings *r, struct tir_builder *b,
                                         const struct tir_inst *copy, const struct tir_block *body,
                                         struct tir_map *map)
{
    struct tir_value **operands =
        arena_array(r->cx->scratch, struct tir_value *, copy->operand_count);
    for (uint32_t i = 0; i < copy->operand_count; i++)
        if (i != TIR_COPY_TO)
            operands[i] = tir_clone_value(b, copy->operands[i], body, map);
    return operands;
}

static void build_put(struct rings *r, struct tir_builder *b, const struct ring *ring,
                      struct tir_map *map)
{
    VEC(struct tir_value **) operands = {0}; // of the copies, computed in front of the put
    vec_foreach(struct copy *, it, &ring->copies)
        vec_push(r->cx->scratch, &operands, clone_operands(r, b, (*it)->copy, ring->block, map));
    struct tir_inst *put = tir_build(b, TIR_OP_PUT, &ring->copies.at[0]->slots, 1, NULL, 0, 1);
    struct tir_value *slot = tir_add_slot_arg(r->f, put);
    struct tir_builder in = tir_builder_at_end(r->f, put->regions[0]);
    for (uint32_t i = 0; i < ring->copies.len; i++) {
        const struct copy *c = ring->copies.at[i];
        in.span = put->span = c->copy->span;
        operands.at[i][TIR_COPY_TO] =
            tir_build_slot(&in, c->slots, slot, c->alloc->results[0]->type);
        struct tir_inst *copy =
            tir_build(&in, TIR_OP_COPY_ASYNC, operands.at[i], c->copy->operand_count, NULL, 0, 0);
        copy->attrs = c->copy->attrs;
        copy->attr_count = c->copy->attr_count;
    }
    tir_build_yield(&in, NULL, 0);
}

// Of the round whose loop variable is `at`: a put for each ring of the loop, if there is the round.
static void build_puts(struct rings *r, struct tir_builder *b, struct tir_inst *loop,
                       struct tir_value *at, struct tir_map *map)
{
    tir_map_set(map, tir_map_key(loop->regions[0]->args[0]), at);
    struct tir_builder in =
        tir_build_if(b, tir_binary(b, TIR_OP_LT, at, loop->operands[TIR_FOR_END]));
    vec_foreach(struct ring *, it, &r->all)
        if ((*it)->block == loop->regions[0])
            build_put(r, &in, *it, map);
}

void tir_put_ahead(struct rings *r, struct tir_inst *loop)
{
    struct tir_func *f = r->f;
    struct tir_block *body = loop->regions[0];
    struct tir_lookups lookups;
    int64_t stages = 0;
    tir_lookups_init(&lookups, f, r->cx->scratch, loop);
    vec_foreach(struct ring *, it, &r->all) {
        if ((*it)->block != body)
            continue;
        stages = (*it)->stages; // of every ring of the loop
        vec_foreach(struct copy *, c, &(*it)->copies)
            tir_lookups_add_operands(&lookups, (*c)->copy);
    }
    if (!stages)
        return;
    struct tir_builder before = tir_builder_before(f, loop);
    struct tir_value *at = loop->operands[TIR_FOR_BEGIN], *step = loop->operands[TIR_FOR_STEP];
    struct tir_map map;
    for (int64_t i = 0; i + 1 < stages; i++) {
        tir_map_init(&map, r->cx->scratch);
        build_puts(r, &before, loop, at, &map);
        at = tir_binary(&before, TIR_OP_ADD, at, step);
    }
    struct tir_value *distance =
        tir_binary(&before, TIR_OP_MUL, step, tir_const_int(f, step->type, stages - 1));
    tir_map_init(&map, r->cx->scratch);
    struct tir_builder b = tir_builder_before(f, body->first);
    tir_lookups_carry(&lookups, at, &map);
    struct tir_value *then = tir_binary(&b, TIR_OP_ADD, body->args[0], distance);
    build_puts(r, &b, loop, then, &map);
    if (lookups.found.len)
        tir_lookups_yield(&lookups, &b, tir_binary(&b, TIR_OP_ADD, then, step));
    vec_foreach(struct ring *, it, &r->all)
        vec_foreach(struct copy *, c, &(*it)->copies)
            if ((*it)->block == body)
                tir_remove((*c)->copy);
}
