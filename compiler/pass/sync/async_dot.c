// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// async_dot: starts products on warpgroups, and awaits their results where they are used.
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
// Each product is a separate group. A result stays in flight if it is the accumulator of another
// product, or is only carried to the next round's product in the place of what it was added to. Any
// other result is awaited before its first use, if possible without waiting for younger groups.
// What is loaded from shared memory only to be combined with a result is loaded behind the wait for
// it. It would take registers beside the sums in flight:
//     let d: T = gemm_async(as, bs, zero);
//     let x: U = load(row[0:+1, 0:+128]);
//     let y: T = broadcast(x);
//     let e: T = sub(d, y);
// becomes
//     let d: T = gemm_async(as, bs, zero);
//     let d2: T = await(d, groups = 0);
//     let x: U = load(row[0:+1, 0:+128]);
//     let y: T = broadcast(x);
//     let e: T = sub(d2, y);
//
// This pass does not order memory: ring frees slots once their products have finished, and barrier
// waits before other buffers are written again.
//
// Operand a in registers is read until the wait. It is packed before its product, and ptxas
// serialises all products if registers that one reads are written while another is in flight. So
// products in flight are awaited before such a product, unless its operand was known before they
// were started. Its own result is awaited at its first use, or at that of the sum that other
// products make of it, but never a round later:
//     let d: T = gemm_async(x, bs, zero);
//     commit_group(engine = wgmma);
//     let d2: T = await(d, groups = 0);
//     fence(of = wgmma);
//     let e: T = gemm_async(y, bs, d2);

#include "ir/effect.h"
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

static bool a_in_registers(const struct tir_inst *product)
{
    return product->op == TIR_OP_GEMM_ASYNC && tir_type_is_tile(product->operands[TIR_DOT_A]->type);
}

// Is v, of a product, a sum that goes on with value i of what the for loop carries, by products
// that have nothing else in registers? It can stay in the registers of that value.
static bool goes_on_with(const struct tir_value *v, const struct tir_inst *loop, uint32_t i)
{
    const struct tir_inst *def;
    while ((def = v->def)) {
        if (a_in_registers(def))
            return false;
        if (def->op == TIR_OP_GEMM_ASYNC)
            v = def->operands[TIR_DOT_ACC];
        else if (def->op == TIR_OP_GET)
            v = tir_yield_of(def->regions[0])->operands[v->index];
        else
            return false;
    }
    return v == loop->regions[0]->args[1 + i];
}

static void await_at(struct tir_builder *b, struct tir_value *v, int64_t groups)
{
    b->span = v->def->span;
    struct tir_inst *await = tir_build(b, TIR_OP_AWAIT, &v, 1, &v->type, 1, 0);
    tir_set_int(b->f, await, TIR_ATTR_groups, TIR_MIN(groups, tir_dones[TIR_DONE_WGMMA].groups));
    await->results[0]->name = v->name;
    tir_replace_uses(b->f, v, await->results[0]);
    await->operands[0] = v;
}

// The number of groups that are certainly committed after that of `product` and before `place`.
static int64_t younger_groups(const struct tir_inst *product, const struct tir_inst *place)
{
    const enum tir_done done = tir_done_of(product);
    int64_t groups = -1; // its own
    for (const struct tir_inst *inst = product; inst != place;
         inst = tir_walk_next(place->block, inst))
        groups += tir_done_of(inst) == done && runs_with(inst, place->block);
    return groups;
}

// Is v known before `inst` runs, in the same round of each loop around both?
static bool comes_before(const struct tir_value *v, const struct tir_inst *inst)
{
    const struct tir_block *home = v->def ? v->def->block : v->block;
    while (inst && inst->block != home)
        inst = inst->block->owner;
    if (!inst || !v->def)
        return inst;
    while (inst && inst != v->def)
        inst = inst->prev;
    return inst;
}

// Is there a product at inst or in its regions with A in registers that are written after v's
// product has started?
static bool packs_after(const struct tir_inst *inst, const struct tir_inst *product)
{
    tir_foreach_inst_within(in, inst)
        if (a_in_registers(in) && !comes_before(in->operands[TIR_DOT_A], product))
            return true;
    return false;
}

// The first instruction from `inst` on, in its block, that v may not be in flight at, unless it
// goes on with the sum. NULL: there is none.
static struct tir_inst *first_need(struct tir_inst *inst, const struct tir_value *v,
                                   const struct tir_inst *product)
{
    while (inst && !tir_uses_value(inst, v) && !packs_after(inst, product))
        inst = inst->next;
    return inst;
}

// The instruction after v, which is made by the product itself or by a get around it.
static struct tir_inst *next_after(const struct tir_inst *product, const struct tir_value *v)
{
    return v->def == product ? product->next->next : v->def->next; // after the commit
}

static void await_first_need(struct tir_func *f, struct tir_inst *product, struct tir_value *v)
{
    struct tir_inst *place = first_need(next_after(product, v), v, product);
    // The wait writes its results, so it must precede the fence of a product that uses them.
    if (place->op == TIR_OP_GEMM_ASYNC)
        place = place->prev;
    struct tir_builder b = tir_builder_before(f, place);
    await_at(&b, v, younger_groups(product, place));
}

// Follows the result of a product while it may stay in flight.
static void settle(struct tir_func *f, struct tir_inst *product)
{
    struct tir_value *v = product->results[0];
    for (;;) {
        struct use use = use_of(f, v);
        struct tir_inst *need = first_need(next_after(product, v), v, product);
        if (use.count != 1 || packs_after(need, product) || !tir_uses_value(need, v))
            break;
        if (continues_sum(&use, v->def->block))
            return;
        struct tir_inst *owner = use.user->block->owner;
        if (use.user->op != TIR_OP_YIELD || use.user->block != v->def->block || !owner)
            break;
        if (owner->op == TIR_OP_FOR && !packs_after(owner, product) &&
            carries_sum(f, owner, use.operand) && goes_on_with(v, owner, use.operand)) {
            struct tir_builder b = {f, owner->block, owner->next, owner->span};
            await_at(&b, owner->results[use.operand], 0);
            return;
        }
        // What nobody uses outside is awaited here.
        if (owner->op != TIR_OP_GET || !use_of(f, owner->results[use.operand]).count)
            break;
        v = owner->results[use.operand];
    }
    await_first_need(f, product, v);
}

// Is it free beside an instruction that takes its result?
static bool is_folded(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_BROADCAST || inst->op == TIR_OP_RESHAPE || inst->op == TIR_OP_NEG;
}

static bool loads_shared(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_LOAD && tir_type_is_tile(inst->results[0]->type) &&
           tir_ref_base(inst)->type->space == TIR_SPACE_SHARED;
}

// Does what uses inst, which is in front of the wait, take the wait's result too? Or is it folded
// and serves nothing else itself?
static bool serves(const struct tir_inst *inst, const struct tir_inst *await)
{
    bool is_behind = false, is_used = false;
    for (const struct tir_inst *user = inst->next; user; user = user->next) {
        is_behind |= user == await;
        if (!tir_uses_value(user, inst->results[0]))
            continue;
        if (is_behind ? !tir_uses_value(user, await->results[0])
                      : !is_folded(user) || !serves(user, await))
            return false;
        is_used = true;
    }
    return is_used;
}

// Moves the load behind the wait, and what is folded of it.
static void move_behind(struct tir_inst *load, struct tir_inst *await, struct tir_inst *behind)
{
    struct tir_inst *inst = load->next, *last = load;
    tir_move_before(load, behind);
    for (struct tir_inst *next; inst != await; inst = next) {
        next = inst->next;
        bool follows = false;
        for (const struct tir_inst *moved = load; moved != last->next && !follows;
             moved = moved->next)
            follows = tir_uses_value(inst, moved->results[0]);
        if (follows) {
            tir_move_before(inst, behind);
            last = inst;
        }
    }
}

// Moves such loads behind the wait. Only products may start in between.
static void load_behind(struct tir_inst *await)
{
    struct tir_inst *behind = await->next;
    for (struct tir_inst *inst = await->prev, *before; inst; inst = before) {
        before = inst->prev;
        if (loads_shared(inst) && serves(inst, await)) {
            move_behind(inst, await, behind);
            behind = inst;
        } else if (tir_has_effect(inst) && inst->op != TIR_OP_FENCE &&
                   inst->op != TIR_OP_COMMIT_GROUP && inst->op != TIR_OP_GEMM_ASYNC) {
            return;
        }
    }
}

static struct tir_inst *start(struct tir_func *f, struct tir_inst *dot)
{
    struct tir_value *result = dot->results[0];
    struct tir_builder b = tir_builder_before(f, dot);
    struct tir_inst *fence = tir_build(&b, TIR_OP_FENCE, NULL, 0, NULL, 0, 0);
    tir_set_word(f, fence, TIR_ATTR_of, TIR_WORD_of_wgmma);
    struct tir_inst *product = tir_build(&b, TIR_OP_GEMM_ASYNC, dot->operands,
                                         TIR_GEMM_ASYNC_OPERANDS, &result->type, 1, 0);
    product->results[0]->name = result->name;
    tir_build_group(&b, TIR_OP_COMMIT_GROUP, tir_done_of(product), 0);
    tir_replace_uses(f, result, product->results[0]);
    tir_remove(dot);
    return product;
}

enum tir_change tir_pass_async_dot(struct tir_func *f, struct tir_pass_cx *cx)
{
    VEC(struct tir_inst *) dots = {0}, products = {0};
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_DOT &&
            tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_NONE) == TIR_WORD_engine_wgmma)
            vec_push(cx->scratch, &dots, inst);
    for (uint32_t i = dots.len; i--;)
        if (use_of(f, dots.at[i]->results[0]).count)
            vec_push(cx->scratch, &products, start(f, dots.at[i]));
        else
            tir_remove(dots.at[i]);       // of a rotated loop, where the last round alone counts
    for (uint32_t i = products.len; i--;) // in the order of the program
        settle(f, products.at[i]);
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_AWAIT)
            load_behind(inst);
    return dots.len ? TIR_CHANGED : TIR_UNCHANGED;
}
