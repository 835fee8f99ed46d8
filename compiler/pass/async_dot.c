// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// async_dot: products on warpgroups are started, and waited for where their results are needed.
//
//     let r: T = for k: i64 in range(0, K, 64) carry (acc: T = zero) {
//         let d: T = get(a, lag = 1) with (slot: i32) {
//             let d: T = dot(as, bs, acc, engine = wgmma);
//             yield d;
//         }
//         yield d;
//     }
//     let y: U = cast(r);
// becomes
//     let r: T = for k: i64 in range(0, K, 64) carry (acc: T = zero) {
//         let d: T = get(a, lag = 1) with (slot: i32) {
//             fence(of = wgmma);
//             let d: T = gemm_async(as, bs, acc);
//             commit_group(engine = wgmma);
//             yield d;
//         }
//         yield d;
//     }
//     let r2: T = await(r, groups = 0);
//     let y: U = cast(r2);
//
// Each product is a group of its own. A result that is only carried to the next round's product, or
// handed to another product as its sum, stays in flight; any other is awaited in front of its first
// use, as far as younger groups allow without waiting for them too. Nothing here orders memory:
// ring frees slots once their products are done, and barrier waits where other buffers are written
// again.
//
// Operand a in registers is read until the wait, so its registers are held as long as the sum is in
// flight, through all products that go on with it:
//     let d: T = gemm_async(x, bs, zero);
//     let e: T = gemm_async(y, bs, d);     // x and y are held
//     let r: T = await(e, groups = 0);
// Such a sum does not leave its block in flight, where the next round would write the registers
// again, and is awaited on the way where more than HELD of a thread would be held.

#include "ir/walk.h"
#include "pass/crew.h"
#include "pass/pass.h"

#define HELD 64 // registers of a thread

struct async_dot {
    struct tir_func *f;
    struct tir_map held; // sum in flight that a product goes on with -> uint32_t, its registers
};

struct use {
    struct tir_inst *user; // NULL: none
    uint32_t operand, count;
};

// The only use of v, or how many there are.
static struct use use_of(const struct tir_func *f, const struct tir_value *v)
{
    struct use use = {0};
    tir_foreach_inst(inst, f)
        for (uint32_t i = 0; i < inst->operand_count; i++)
            if (inst->operands[i] == v) {
                use.user = inst;
                use.operand = i;
                use.count++;
            }
    return use;
}

// Is everything between inst and block run exactly once each time block is?
static bool runs_with(const struct tir_inst *inst, const struct tir_block *block)
{
    while (inst && inst->block != block) {
        inst = inst->block->owner;
        if (!inst || inst->op != TIR_OP_GET)
            return false;
    }
    return inst;
}

static bool continues_sum(const struct use *use, const struct tir_block *block)
{
    return use->count == 1 && use->user->op == TIR_OP_GEMM_ASYNC && use->operand == TIR_DOT_ACC &&
           runs_with(use->user, block);
}

// Is value i that the for loop carries only the sum of a product in it?
static bool carries_sum(const struct tir_func *f, const struct tir_inst *loop, uint32_t i)
{
    const struct tir_block *body = loop->regions[0];
    struct use use = use_of(f, body->args[1 + i]);
    return continues_sum(&use, body);
}

static void await_at(struct tir_builder *b, struct tir_value *v, int64_t groups)
{
    b->span = v->def->span;
    struct tir_inst *await = tir_build(b, TIR_OP_AWAIT, &v, 1, &v->type, 1, 0);
    tir_set_int(b->f, await, TIR_ATTR_groups, groups);
    await->results[0]->name = v->name;
    tir_replace_uses(b->f, v, await->results[0]);
    await->operands[0] = v;
}

static bool uses_value(const struct tir_inst *inst, const struct tir_value *v)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i] == v)
            return true;
    for (uint32_t r = 0; r < inst->region_count; r++)
        for (const struct tir_inst *in = inst->regions[r]->first; in; in = in->next)
            if (uses_value(in, v))
                return true;
    return false;
}

// The groups that are certainly committed behind that of `product`, in front of `place`.
static int64_t younger_groups(const struct tir_inst *product, const struct tir_inst *place)
{
    int64_t groups = -1; // its own
    for (const struct tir_inst *inst = product; inst != place;
         inst = tir_walk_next(place->block, inst))
        groups += inst->op == TIR_OP_GEMM_ASYNC && runs_with(inst, place->block);
    return groups;
}

// In front of the first use of v, which was made in the block of that use or in a get in it.
static void await_first_use(struct tir_func *f, struct tir_inst *product, struct tir_value *v)
{
    struct tir_inst *commit = product->next;
    struct tir_inst *place = v->def == product ? commit->next : v->def->next;
    for (struct tir_inst *inst = place; inst; inst = inst->next)
        if (uses_value(inst, v)) {
            place = inst;
            break;
        }
    // What the wait gives is written there: the fence of a product that uses it comes behind.
    if (place->op == TIR_OP_GEMM_ASYNC)
        place = place->prev;
    struct tir_builder b = tir_builder_before(f, place);
    await_at(&b, v, younger_groups(product, place));
}

// Registers of a thread that operand a of a product takes.
static uint32_t registers_of_a(const struct tir_func *f, const struct tir_inst *product)
{
    const struct tir_type *t = product->operands[TIR_DOT_A]->type;
    if (!tir_type_is_tile(t))
        return 0;
    int64_t threads = 32 * (int64_t)tir_crew_of(f, product).warps;
    return (uint32_t)((tir_type_count(t) * tir_elems[t->elem].bits / 32 + threads - 1) / threads);
}

// The same of all products in flight whose sum is v.
static uint32_t held_by(const struct async_dot *ad, const struct tir_value *v)
{
    const uint32_t *held = tir_map_get(&ad->held, tir_map_key(v));
    return held ? *held : 0;
}

// Follows the result of a product that holds registers: at most to the next product. It does not
// leave a get, which waits for its products in any case.
static void settle_held(struct async_dot *ad, struct tir_inst *product, uint32_t held)
{
    struct tir_value *sum = product->results[0];
    struct use use = use_of(ad->f, sum);
    if (!continues_sum(&use, product->block) || held + registers_of_a(ad->f, use.user) > HELD) {
        await_first_use(ad->f, product, sum);
        return;
    }
    uint32_t *noted = arena_new(ad->held.arena, uint32_t);
    *noted = held;
    tir_map_set(&ad->held, tir_map_key(sum), noted);
}

// Follows the result of a product while it may stay in flight.
static void settle(struct async_dot *ad, struct tir_inst *product)
{
    struct tir_func *f = ad->f;
    struct tir_value *v = product->results[0];
    uint32_t held = registers_of_a(f, product) + held_by(ad, product->operands[TIR_DOT_ACC]);
    if (held) {
        settle_held(ad, product, held);
        return;
    }
    for (;;) {
        struct use use = use_of(f, v);
        if (use.count != 1)
            break;
        if (continues_sum(&use, v->def->block))
            return;
        struct tir_inst *owner = use.user->block->owner;
        if (use.user->op != TIR_OP_YIELD || use.user->block != v->def->block || !owner)
            break;
        if (owner->op == TIR_OP_FOR && carries_sum(f, owner, use.operand)) {
            struct tir_builder b = {f, owner->block, owner->next, owner->span};
            await_at(&b, owner->results[use.operand], 0);
            return;
        }
        if (owner->op != TIR_OP_GET)
            break;
        v = owner->results[use.operand];
    }
    await_first_use(f, product, v);
}

static struct tir_inst *start(struct tir_func *f, struct tir_inst *dot)
{
    struct tir_value *result = dot->results[0];
    struct tir_builder b = tir_builder_before(f, dot);
    struct tir_inst *fence = tir_build(&b, TIR_OP_FENCE, NULL, 0, NULL, 0, 0);
    tir_set_word(f, fence, TIR_ATTR_of, TIR_WORD_of_wgmma);
    struct tir_inst *product =
        tir_build(&b, TIR_OP_GEMM_ASYNC, dot->operands, dot->operand_count, &result->type, 1, 0);
    product->results[0]->name = result->name;
    struct tir_inst *commit = tir_build(&b, TIR_OP_COMMIT_GROUP, NULL, 0, NULL, 0, 0);
    tir_set_word(f, commit, TIR_ATTR_engine, TIR_WORD_engine_wgmma);
    tir_replace_uses(f, result, product->results[0]);
    tir_remove(dot);
    return product;
}

enum tir_change tir_pass_async_dot(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct async_dot ad = {.f = f};
    VEC(struct tir_inst *) products = {0};
    tir_map_init(&ad.held, cx->scratch);
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_DOT &&
            tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_NONE) == TIR_WORD_engine_wgmma &&
            use_of(f, inst->results[0]).count)
            vec_push(cx->scratch, &products, inst);
    vec_foreach(struct tir_inst *, it, &products)
        *it = start(f, *it);
    vec_foreach(struct tir_inst *, it, &products)
        settle(&ad, *it);
    return products.len ? TIR_CHANGED : TIR_UNCHANGED;
}
