// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collapse: a loop that does nothing but another loop with a product becomes one with it.
//
//     let r: T = for i: i64 in range(0, 3, 1) carry (a: T = init) {
//         let y: i64 = add(m, i);
//         let s: T = for k: i64 in range(0, K, 64) carry (b: T = a) stages(4) {
//             let d: T = dot(... y, k ..., b);
//             yield d;
//         }
//         yield s;
//     }
// becomes
//     let n: i64 = ceildiv(max(K, 0), 64);
//     let r: T = for j: i64 in range(0, mul(3, n), 1) carry (a: T = init) stages(4) {
//         let i: i64 = div(j, n);
//         let k: i64 = mul(rem(j, n), 64);
//         let y: i64 = add(m, i);
//         let d: T = dot(... y, k ..., a);
//         yield d;
//     }
// so that copies and products of a round start before those of the round before it have ended, also
// where a tap of a convolution, X[y + i, x + j, k:+64], ends and the next one begins.
//
// The bounds of the inner loop are the same in all rounds of the outer one, whose other operations
// are scalar arithmetic. For tensor memory each such nest becomes one loop: a product there is in
// one. Elsewhere only a nest does that multiplies what copies bring, and nothing else. Who copies
// divides; what else a round did would need the numbers, too, such as a mask of attention's
// gradients, and divide in all threads.

#include "ir/walk.h"
#include "machine/target.h"
#include "pass/async/cp_async.h"
#include "pass/layout/warpgroup.h"
#include "pass/pass.h"

static bool is_scalar_arithmetic(const struct tir_inst *inst)
{
    return tir_has_trait(inst, TIR_PURE) && !inst->region_count && inst->result_count == 1 &&
           tir_type_is_scalar(inst->results[0]->type);
}

// Does the loop carry on exactly what the one around it carries?
static bool carries_the_same(const struct tir_inst *outer, const struct tir_inst *inner)
{
    const struct tir_block *body = outer->regions[0];
    const struct tir_inst *yield = tir_yield_of(body);
    if (outer->result_count != inner->result_count)
        return false;
    for (uint32_t i = 0; i < inner->result_count; i++)
        if (inner->operands[TIR_FOR_INIT + i] != body->args[1 + i] ||
            yield->operands[i] != inner->results[i])
            return false;
    return true;
}

static bool is_i64(const struct tir_inst *loop)
{
    return loop->operands[TIR_FOR_BEGIN]->type->elem == TIR_I64;
}

// Are the bounds of the loop the same in all rounds of `around`?
static bool is_bounded_outside(const struct tir_inst *loop, const struct tir_inst *around)
{
    for (uint32_t i = 0; i < TIR_FOR_INIT; i++)
        if (loop->operands[i]->kind != TIR_VALUE_CONST && tir_is_made_in(around, loop->operands[i]))
            return false;
    return true;
}

static bool can_collapse(const struct tir_inst *outer, const struct tir_inst *inner)
{
    if (!is_i64(outer) || !is_i64(inner) || !carries_the_same(outer, inner) ||
        !is_bounded_outside(inner, outer) || tir_attr_int(outer, TIR_ATTR_stages, 0))
        return false;
    for (const struct tir_inst *inst = outer->regions[0]->first; inst; inst = inst->next)
        if (inst != inner && inst->op != TIR_OP_YIELD && !is_scalar_arithmetic(inst))
            return false;
    return true;
}

// Do asynchronous copies bring what the dot multiplies?
static bool is_brought(const struct tir_func *f, const struct tir_pass_cx *cx,
                       const struct tir_ranges *ranges, const struct tir_inst *dot)
{
    const char *why;
    for (uint32_t i = TIR_DOT_A; i <= TIR_DOT_B; i++) {
        const struct tir_inst *load = tir_loaded_by(dot->operands[i]);
        if (!load || !tir_tile_copy_width(f, cx->target, ranges, load->results[0], &why))
            return false;
    }
    return true;
}

// Does a round of the loop multiply what copies bring, and nothing else?
static bool only_multiplies(struct tir_func *f, const struct tir_pass_cx *cx,
                            const struct tir_inst *loop)
{
    const struct tir_ranges *ranges = tir_ranges_new(cx->scratch, f);
    for (const struct tir_inst *inst = loop->regions[0]->first; inst; inst = inst->next) {
        const bool is_part = inst->op == TIR_OP_LOAD || inst->op == TIR_OP_PERMUTE ||
                             inst->op == TIR_OP_PIXEL_INDEX || inst->op == TIR_OP_YIELD ||
                             is_scalar_arithmetic(inst);
        if (!is_part && (inst->op != TIR_OP_DOT || !is_brought(f, cx, ranges, inst)))
            return false;
    }
    return true;
}

static struct tir_value *rounds_of(struct tir_builder *b, const struct tir_inst *loop)
{
    struct tir_value *const *at = loop->operands;
    struct tir_value *span = tir_binary(b, TIR_OP_SUB, at[TIR_FOR_END], at[TIR_FOR_BEGIN]);
    span = tir_binary(b, TIR_OP_MAX, span, tir_const_index(b->f, 0));
    return tir_binary(b, TIR_OP_CEILDIV, span, at[TIR_FOR_STEP]);
}

// The loop's variable in a round of the number.
static struct tir_value *variable_in(struct tir_builder *b, const struct tir_inst *loop,
                                     struct tir_value *round)
{
    return tir_binary(b, TIR_OP_ADD, tir_binary(b, TIR_OP_MUL, round, loop->operands[TIR_FOR_STEP]),
                      loop->operands[TIR_FOR_BEGIN]);
}

// The outermost of the loops around in which the bounds of both are known.
static struct tir_inst *known_before(struct tir_inst *outer, const struct tir_inst *inner)
{
    struct tir_inst *place = outer;
    for (struct tir_inst *up = outer->block->owner;
         up && up->op == TIR_OP_FOR && is_bounded_outside(outer, up) &&
         is_bounded_outside(inner, up);
         up = up->block->owner)
        place = up;
    return place;
}

static void collapse(struct tir_func *f, struct tir_inst *outer, struct tir_inst *inner)
{
    struct tir_block *body = outer->regions[0], *rounds = inner->regions[0];
    struct tir_builder before = tir_builder_before(f, known_before(outer, inner));
    struct tir_value *count = rounds_of(&before, inner);
    struct tir_value *all = tir_binary(&before, TIR_OP_MUL, rounds_of(&before, outer), count);
    struct tir_value *variable = body->args[0];
    struct tir_value *number = tir_block_add_arg(f, body, variable->type, NULL);
    struct tir_builder b = tir_builder_before(f, body->first);
    tir_replace_uses(f, variable,
                     variable_in(&b, outer, tir_binary(&b, TIR_OP_DIV, number, count)));
    tir_replace_uses(f, rounds->args[0],
                     variable_in(&b, inner, tir_binary(&b, TIR_OP_REM, number, count)));
    tir_replace_uses(f, number, variable); // the argument that was there
    body->arg_count--;
    const struct tir_inst *yield = tir_yield_of(rounds);
    for (uint32_t i = 0; i < inner->result_count; i++) {
        tir_replace_uses(f, inner->results[i], yield->operands[i]);
        tir_replace_uses(f, rounds->args[1 + i], body->args[1 + i]);
    }
    while (rounds->first != yield)
        tir_move_before(rounds->first, inner);
    tir_copy_attr(f, outer, inner, TIR_ATTR_stages);
    outer->span = inner->span; // which asks for stages
    outer->operands[TIR_FOR_BEGIN] = tir_const_index(f, 0);
    outer->operands[TIR_FOR_END] = all;
    outer->operands[TIR_FOR_STEP] = tir_const_index(f, 1);
    tir_remove(inner);
}

// A loop with a product that can be one with the loop around it. NULL: there is none.
static struct tir_inst *find(struct tir_func *f, const struct tir_pass_cx *cx)
{
    const bool has_tensor_memory = cx->target->features & TIR_HAS_TCGEN05;
    tir_foreach_inst(inst, f) {
        struct tir_inst *inner = inst->op == TIR_OP_DOT ? inst->block->owner : NULL;
        struct tir_inst *outer = inner && inner->op == TIR_OP_FOR ? inner->block->owner : NULL;
        if (outer && outer->op == TIR_OP_FOR && can_collapse(outer, inner) &&
            (has_tensor_memory || only_multiplies(f, cx, inner)))
            return inner;
    }
    return NULL;
}

enum tir_change tir_pass_collapse(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct tir_inst *inner = find(f, cx);
    if (!inner)
        return TIR_UNCHANGED;
    for (; inner; inner = find(f, cx))
        collapse(f, inner->block->owner, inner);
    return tir_run_pass(f, cx, tir_pass_by_name(STR("fold"))) == TIR_FAILED ? TIR_FAILED
                                                                            : TIR_CHANGED;
}
