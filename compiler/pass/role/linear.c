// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Integers as linear functions of a loop's variable.
//
// Sums, differences and multiples of the loop's variable, of scalars from outside the loop and of
// index tiles. Nothing may wrap on the way, as a wrapped sum is no linear function: each step is
// computed with intervals and must fit its type. A scalar of which too little is known is assumed
// to be small, and the caller tests that before the loop. What is known is often enough: where
// 32-bit offsets suffice, so do 32 bits for the sum of a dimension's index and a tile's.
//
// Not done here: quotients, minima and bits, tiles of loaded numbers, products of two unknowns.

#include "pass/role/linear.h"

enum { MOST_STEPS = 256 };

int64_t tir_linear_limit(const struct tir_type *t)
{
    return INT64_C(1) << (TIR_MIN(tir_elems[t->elem].bits, 43) - 8);
}

bool tir_linear_is_tested(const struct tir_linears *cx, const struct tir_value *v)
{
    vec_foreach(struct tir_value *, it, &cx->small)
        if (*it == v)
            return true;
    return false;
}

static bool refuse(struct tir_linears *cx, const char *why)
{
    cx->refusal = why;
    return false;
}

static bool fits(struct tir_linears *cx, const struct tir_linear *l, const struct tir_type *t)
{
    uint32_t bits = tir_elems[t->elem].bits;
    bool is_signed = tir_elems[t->elem].kind == TIR_KIND_SIGNED;
    if (bits == 64)
        return true; // it was computed in 64 bits with checks
    int64_t most = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;
    if (l->least < (is_signed ? -most - 1 : 0) || l->most > most)
        return refuse(cx, "it may overflow");
    return true;
}

// Whether an element type has values that all fit in 64 bits with a sign.
static bool is_counted(enum tir_elem elem)
{
    return tir_elem_is_int(elem) && elem != TIR_U64;
}

// The interval of a scalar, which is assumed to be small if that says more.
static void bound(struct tir_linears *cx, struct tir_value *v, int64_t *least, int64_t *most)
{
    const int64_t limit = tir_linear_limit(v->type);
    tir_range_get(cx->ranges, v, least, most);
    const bool is_small = *least >= -limit && *most <= limit;
    const bool is_assumed = cx->spare || tir_elems[v->type->elem].bits == 64;
    if (is_small || (!is_assumed && !tir_linear_is_tested(cx, v)))
        return;
    *least = TIR_MAX(*least, -limit);
    *most = TIR_MIN(*most, limit);
    if (!tir_linear_is_tested(cx, v))
        vec_push(cx->arena, &cx->small, v);
}

static void variable(struct tir_linears *cx, struct tir_linear *out)
{
    int64_t other;
    bound(cx, cx->loop->operands[TIR_FOR_BEGIN], &out->least, &other);
    bound(cx, cx->loop->operands[TIR_FOR_END], &other, &out->most);
    out->most = TIR_MAX(out->most - 1, out->least);
    out->by = 1;
}

static bool constant_interval(struct tir_linear *out, int64_t low, int64_t high)
{
    out->low = out->least = low;
    out->high = out->most = high;
    return true;
}

bool tir_linear_add(const struct tir_linear *a, const struct tir_linear *b, int64_t by,
                    struct tir_linear *out)
{
    struct tir_linear sum = *a;
    int64_t low, high, least, most, more;
    if (!tir_mul_checked(b->low, by, &low) || !tir_mul_checked(b->high, by, &high) ||
        !tir_mul_checked(b->least, by, &least) || !tir_mul_checked(b->most, by, &most) ||
        !tir_add_checked(a->low, TIR_MIN(low, high), &sum.low) ||
        !tir_add_checked(a->high, TIR_MAX(low, high), &sum.high) ||
        !tir_add_checked(a->least, TIR_MIN(least, most), &sum.least) ||
        !tir_add_checked(a->most, TIR_MAX(least, most), &sum.most) ||
        !tir_mul_checked(b->by, by, &more) || !tir_add_checked(a->by, more, &sum.by))
        return false;
    for (uint32_t i = 0; i < b->term_count; i++) {
        uint32_t at = 0;
        while (at < sum.term_count && sum.terms[at].v != b->terms[i].v)
            at++;
        if (at == TIR_LINEAR_TERMS || !tir_mul_checked(b->terms[i].by, by, &more))
            return false;
        if (at == sum.term_count)
            sum.terms[sum.term_count++] = (struct tir_linear_term){b->terms[i].v, 0};
        if (!tir_add_checked(sum.terms[at].by, more, &sum.terms[at].by))
            return false;
        if (sum.terms[at].by == 0)
            sum.terms[at] = sum.terms[--sum.term_count];
    }
    *out = sum;
    return true;
}

// a + sign * b, or a * b where one of them is a number.
static bool arithmetic(struct tir_linears *cx, const struct tir_inst *inst, struct tir_linear *out)
{
    static const struct tir_linear zero = {0};
    struct tir_linear a = zero, b;
    int64_t by = inst->op == TIR_OP_ADD ? 1 : -1;
    struct tir_value *second = inst->operands[inst->operand_count - 1];
    if (inst->op == TIR_OP_MUL) {
        bool left = tir_is_const_int(inst->operands[0], &by);
        if (!left && !tir_is_const_int(inst->operands[1], &by))
            return refuse(cx, "it has a product of two unknowns");
        second = inst->operands[left];
    } else if (inst->op != TIR_OP_NEG && !tir_linear_of(cx, inst->operands[0], &a)) {
        return false;
    }
    if (!tir_linear_of(cx, second, &b))
        return false;
    return tir_linear_add(&a, &b, by, out) || refuse(cx, "it may overflow");
}

// A value that the loop makes.
static bool made_in_loop(struct tir_linears *cx, const struct tir_value *v, struct tir_linear *out)
{
    const struct tir_inst *inst = v->def;
    if (!inst)
        return refuse(cx, "it depends on a value that the loop carries");
    switch (inst->op) {
    case TIR_OP_BROADCAST:
    case TIR_OP_RESHAPE:
    case TIR_OP_PERMUTE:
    case TIR_OP_CONVERT_LAYOUT:
    case TIR_OP_CAST:
        if (!is_counted(inst->operands[0]->type->elem))
            break;
        return tir_linear_of(cx, inst->operands[0], out);
    case TIR_OP_ADD:
    case TIR_OP_SUB:
    case TIR_OP_MUL:
    case TIR_OP_NEG:
        return arithmetic(cx, inst, out);
    case TIR_OP_IOTA:
        return constant_interval(out, 0, v->type->shape[tir_attr_int(inst, TIR_ATTR_axis, 0)] - 1);
    default:
        break;
    }
    return refuse(cx, "it is not linear in the loop's variable");
}

bool tir_linear_of(struct tir_linears *cx, struct tir_value *v, struct tir_linear *out)
{
    *out = (struct tir_linear){0};
    if (cx->steps++ >= MOST_STEPS)
        return refuse(cx, "it is too long");
    if (!is_counted(v->type->elem))
        return refuse(cx, "it is not linear in the loop's variable");
    if (v->kind == TIR_VALUE_CONST)
        return constant_interval(out, v->constant.i, v->constant.i);
    if (v == cx->loop->regions[0]->args[0]) {
        variable(cx, out);
        return true;
    }
    if (tir_is_made_in(cx->loop, v))
        return made_in_loop(cx, v, out) && fits(cx, out, v->type);
    if (!tir_type_is_tile(v->type)) {
        out->terms[out->term_count++] = (struct tir_linear_term){v, 1};
        bound(cx, v, &out->least, &out->most);
        return true;
    }
    // A tile from outside: what made it says more than its interval.
    return made_in_loop(cx, v, out) && fits(cx, out, v->type);
}
