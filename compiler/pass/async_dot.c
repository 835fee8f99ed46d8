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
// use, as far as younger groups allow without waiting for them too. Operand a in registers is in
// flight like the sum, so it takes part in that wait, and the result does not leave its block
// before. Nothing here orders memory: ring frees slots once their products are done, and barrier
// waits where other buffers are written again.

#include "ir/walk.h"
#include "pass/pass.h"

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

static void await_at(struct tir_builder *b, struct tir_value *v, struct tir_value *a,
                     int64_t groups)
{
    struct tir_value *values[] = {v, a};
    const struct tir_type *types[] = {v->type, a ? a->type : NULL};
    uint32_t count = a ? 2 : 1;
    b->span = v->def->span;
    struct tir_inst *await = tir_build(b, TIR_OP_AWAIT, values, count, types, count, 0);
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
static void await_first_use(struct tir_func *f, struct tir_inst *product, struct tir_value *v,
                            struct tir_value *a)
{
    struct tir_inst *commit = product->next;
    struct tir_inst *place = v->def == product ? commit->next : v->def->next;
    for (struct tir_inst *inst = place; inst; inst = inst->next)
        if (uses_value(inst, v)) {
            place = inst;
            break;
        }
    struct tir_builder b = tir_builder_before(f, place);
    await_at(&b, v, place->prev == commit ? NULL : a, younger_groups(product, place));
}

// Follows the result of a product while it may stay in flight.
static void settle(struct tir_func *f, struct tir_inst *product)
{
    struct tir_value *v = product->results[0], *a = product->operands[TIR_DOT_A];
    bool in_registers = tir_type_is_tile(a->type);
    for (;;) {
        struct use use = use_of(f, v);
        if (in_registers || use.count != 1)
            break;
        if (continues_sum(&use, v->def->block))
            return;
        struct tir_inst *owner = use.user->block->owner;
        if (use.user->op != TIR_OP_YIELD || use.user->block != v->def->block || !owner)
            break;
        if (owner->op == TIR_OP_FOR && carries_sum(f, owner, use.operand)) {
            struct tir_builder b = {f, owner->block, owner->next, owner->span};
            await_at(&b, owner->results[use.operand], NULL, 0);
            return;
        }
        if (owner->op != TIR_OP_GET)
            break;
        v = owner->results[use.operand];
    }
    await_first_use(f, product, v, in_registers ? a : NULL);
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
    VEC(struct tir_inst *) products = {0};
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_DOT &&
            tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_NONE) == TIR_WORD_engine_wgmma &&
            use_of(f, inst->results[0]).count)
            vec_push(cx->scratch, &products, inst);
    vec_foreach(struct tir_inst *, it, &products)
        *it = start(f, *it);
    vec_foreach(struct tir_inst *, it, &products)
        settle(f, *it);
    return products.len ? TIR_CHANGED : TIR_UNCHANGED;
}
