// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// quotient: quotients that are rounded to 16 bits need not be exact to 24.
//
//     let l2: f32[128, 64] = broadcast(l);            // of f32[128, 1]
//     let q: f32[128, 64] = div(o, l2);
//     let r: bf16[128, 64] = cast(q);
//     let s: f32[128, 64] = div(x, y);
//     let t: bf16[128, 64] = cast(mul(s, u));
// becomes
//     let by: f32[128, 1] = where(lt(abs(l), 2^-64), 2^64, 1);
//     let one: f32[128, 1] = div(1, mul(l, by));
//     let q: f32[128, 64] = mul(mul(o, broadcast(by)), broadcast(one));
//     let r: bf16[128, 64] = cast(q);
//     let s: f32[128, 64] = div_approx(x, y);
//     let t: bf16[128, 64] = cast(mul(s, u));
//
// An exact division takes sixteen issue slots and a branch for unusual operands, and the branches
// of a thread's elements run one after the other: 64 of them took 2 us of 13 of attention's tiles.
// A quotient of f32 counts here if all that comes of it is rounded to f16 or bf16, through
// operations that keep its relative error: products, signs, choices, changes of shape. Sums are not
// among them. What is made instead has a relative error of 2^-21 at most: 2 ulp by div.full, and
// where the reciprocal is denormal its rounding, 2^-22, and those of the products.
//
// A divisor that is repeated has one exact reciprocal for all. Its range is that of f32: a divisor
// below 2^-64, whose reciprocal may be too large, is scaled first; so is what it divides, before it
// is rounded.
//
// Not done here: reciprocals of divisors that are repeated fewer than 16 times; types but f32.

#include "base/bitset.h"
#include "ir/walk.h"
#include "pass/receipt.h"

enum { FEWEST_REPEATS = 16 };

struct quotient {
    struct tir_func *f;
    struct bitset exact;            // values that something needs to 24 bits, by id
    VEC(struct tir_inst *) rounded; // divisions of which nothing does
    struct tir_arena *scratch;
};

// Operations that keep the relative error of an operand; of a where, of its sides.
static bool keeps_error(const struct tir_inst *inst, uint32_t operand)
{
    static const bool keeps[TIR_OP_COUNT] = {
        [TIR_OP_MUL] = true,        [TIR_OP_DIV] = true,
        [TIR_OP_DIV_APPROX] = true, [TIR_OP_NEG] = true,
        [TIR_OP_ABS] = true,        [TIR_OP_MIN] = true,
        [TIR_OP_MAX] = true,        [TIR_OP_WHERE] = true,
        [TIR_OP_RESCALE] = true,    [TIR_OP_BROADCAST] = true,
        [TIR_OP_RESHAPE] = true,    [TIR_OP_PERMUTE] = true,
        [TIR_OP_EXTRACT] = true,    [TIR_OP_CONVERT_LAYOUT] = true,
    };
    return keeps[inst->op] && (inst->op != TIR_OP_WHERE || operand);
}

static bool rounds_to_16_bits(const struct tir_inst *inst)
{
    const enum tir_elem to = inst->result_count ? inst->results[0]->type->elem : TIR_F32;
    return inst->op == TIR_OP_CAST && (to == TIR_F16 || to == TIR_BF16);
}

static bool is_exact(const struct quotient *q, const struct tir_value *v)
{
    return bitset_has(&q->exact, v->id);
}

// Backwards, so that all uses of a value are seen before what makes it.
static void look_at(struct quotient *q, struct tir_block *block)
{
    for (struct tir_inst *inst = block->last; inst; inst = inst->prev) {
        for (uint32_t r = inst->region_count; r--;)
            look_at(q, inst->regions[r]);
        if (inst->op == TIR_OP_DIV && inst->results[0]->type->elem == TIR_F32 &&
            !is_exact(q, inst->results[0]))
            vec_push(q->scratch, &q->rounded, inst);
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            const bool may_differ =
                rounds_to_16_bits(inst) || (keeps_error(inst, i) && !is_exact(q, inst->results[0]));
            const struct tir_value *v = inst->operands[i];
            if (v && v->kind != TIR_VALUE_CONST && !may_differ)
                bitset_insert(&q->exact, v->id);
        }
    }
}

// What the divisor repeats, if it does so often enough, or NULL.
static struct tir_value *repeated(const struct tir_value *divisor)
{
    if (!divisor->def || divisor->def->op != TIR_OP_BROADCAST)
        return NULL;
    struct tir_value *of = divisor->def->operands[0];
    return tir_type_count(divisor->type) / tir_type_count(of->type) >= FEWEST_REPEATS ? of : NULL;
}

static void use_reciprocal(struct quotient *q, struct tir_inst *div, struct tir_value *of)
{
    struct tir_builder b = tir_builder_before(q->f, div->operands[1]->def);
    const struct tir_type *row = of->type, *tile = div->results[0]->type;
    struct tir_value *size = tir_build1(&b, TIR_OP_ABS, row, &of, 1);
    struct tir_value *choice[] = {
        tir_binary(&b, TIR_OP_LT, size, tir_const_float(q->f, row, 0x1p-64)),
        tir_const_float(q->f, row, 0x1p64), tir_const_float(q->f, row, 1)};
    struct tir_value *by = tir_build1(&b, TIR_OP_WHERE, row, choice, 3);
    struct tir_value *one = tir_binary(&b, TIR_OP_DIV, tir_const_float(q->f, row, 1),
                                       tir_binary(&b, TIR_OP_MUL, of, by));
    struct tir_value *x = div->operands[0];
    b = tir_builder_before(q->f, div);
    b.span = div->span;
    x = tir_binary(&b, TIR_OP_MUL, x, tir_build1(&b, TIR_OP_BROADCAST, tile, &by, 1)); // exact
    x = tir_binary(&b, TIR_OP_MUL, x, tir_build1(&b, TIR_OP_BROADCAST, tile, &one, 1));
    tir_replace_uses(q->f, div->results[0], x);
    tir_remove(div);
}

enum tir_change tir_pass_quotient(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct quotient q = {.f = f, .scratch = cx->scratch};
    q.exact = bitset_new(cx->scratch, f->value_count);
    look_at(&q, f->body);
    for (uint32_t i = q.rounded.len; i--;) { // in the order of the program
        struct tir_inst *div = q.rounded.at[i];
        struct tir_value *of = repeated(div->operands[1]);
        tir_receipt_add(cx, TIR_TOPIC_QUOTIENT, div->span,
                        "quotient: within 2^-21, since it is rounded to 16 bits%s",
                        of ? "; by a reciprocal" : "");
        if (of)
            use_reciprocal(&q, div, of);
        else
            div->op = TIR_OP_DIV_APPROX;
    }
    return q.rounded.len ? TIR_CHANGED : TIR_UNCHANGED;
}
