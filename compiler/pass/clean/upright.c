// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// upright: a product whose sums are used turned alone is made so, if tensor memory takes it then.
//
//     let k: f16[64, 96] = load(K[0:+64, n:+96]);
//     let k_2: f16[96, 64] = permute(k);
//     let q: f16[128, 64] = load(Q[m:+128, 0:+64]);
//     let q_2: f16[64, 128] = permute(q);
//     let s: f32[96, 128] = dot(k_2, q_2, zero);
//     let p: f16[96, 128] = cast(s);
//     let p_2: f16[128, 96] = permute(p);
//     let o: f32[128, 32] = dot(p_2, v, sums);
// becomes
//     let k: f16[64, 96] = load(K[0:+64, n:+96]);
//     let q: f16[128, 64] = load(Q[m:+128, 0:+64]);
//     let s: f32[128, 96] = dot(q, k, zero);
//     let p: f16[128, 96] = cast(s);
//     let o: f32[128, 32] = dot(p, v, sums);
//
// Sums in tensor memory have rows in blocks of 64. All products of a kernel go there or none does,
// so one of 96 rows leaves the others to mma.sync. What two products compute alike afterwards they
// do once (cse).
//
// The sums begin with a constant, and single elements alone are made of them on their way to the
// permutes. Each number is the same sum.
//
// Left alone: factors that are computed, since tensor memory takes first ones alone, and targets
// without it, where it made drawn kernels neither better nor worse.

#include "base/bitset.h"
#include "ir/walk.h"
#include "pass/layout/operand.h"
#include "pass/pass.h"
#include "pass/receipt.h"

struct upright {
    struct tir_func *f;
    struct tir_arena *scratch;
    struct bitset of_sums;           // values that follow from the sums, element by element
    VEC(struct tir_inst *) singles;  // that make them, in the order of the program
    VEC(struct tir_inst *) permutes; // that end the way
};

static bool is_single(const struct tir_inst *inst)
{
    const enum tir_rule rule = tir_ops[inst->op].rule;
    return inst->result_count == 1 && tir_has_trait(inst, TIR_PURE) &&
           (rule == TIR_RULE_SAME || inst->op == TIR_OP_CAST || inst->op == TIR_OP_BITCAST);
}

static bool is_of_sums(const struct upright *u, const struct tir_value *v)
{
    return v && v->kind == TIR_VALUE_RESULT && bitset_has(&u->of_sums, v->id);
}

// Takes what uses the sums, or what follows from them. false: it needs them as they are.
static bool take(struct upright *u, struct tir_inst *inst)
{
    bool uses = false, fits = true;
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[i];
        uses |= is_of_sums(u, v);
        fits &= is_of_sums(u, v) || (v && v->kind == TIR_VALUE_CONST);
    }
    if (!uses)
        return true;
    if (inst->op == TIR_OP_PERMUTE) {
        vec_push(u->scratch, &u->permutes, inst);
        return true;
    }
    if (!fits || !is_single(inst))
        return false;
    bitset_insert(&u->of_sums, inst->results[0]->id);
    vec_push(u->scratch, &u->singles, inst);
    return true;
}

static bool is_candidate(const struct tir_inst *dot)
{
    if (dot->op != TIR_OP_DOT || tir_is_scaled_dot(dot) || tir_result(dot)->type->rank != 2)
        return false;
    const int64_t *shape = tir_result(dot)->type->shape;
    return dot->operands[TIR_DOT_ACC]->kind == TIR_VALUE_CONST && !tir_tmem_block(shape[0]) &&
           tir_tmem_block(shape[1]) && tir_reordered_load(dot->operands[TIR_DOT_A]) &&
           tir_reordered_load(dot->operands[TIR_DOT_B]);
}

static bool is_used_turned(struct upright *u, const struct tir_inst *dot)
{
    u->of_sums = bitset_new(u->scratch, u->f->value_count);
    u->singles.len = u->permutes.len = 0;
    bitset_insert(&u->of_sums, tir_result(dot)->id);
    tir_foreach_inst(inst, u->f)
        if (!take(u, inst))
            return false;
    for (uint32_t i = 0; i < u->permutes.len; i++)
        if (tir_attr_find(u->permutes.at[i], TIR_ATTR_permutation)->list[0] == 0)
            return false;
    return u->permutes.len;
}

// The constant, or what has come to be in the place of v, in its type turned.
static struct tir_value *turned(struct upright *u, struct tir_value *const *by, struct tir_value *v)
{
    if (v->kind != TIR_VALUE_CONST)
        return by[v->id];
    return tir_const_as(u->f, tir_type_transpose(u->f->module->types, v->type), v);
}

// What the factor is a transpose of, else its transpose.
static struct tir_value *turned_factor(struct tir_builder *b, struct tir_value *v)
{
    const struct tir_inst *def = v->def;
    const bool is_turned =
        def->op == TIR_OP_PERMUTE && tir_attr_find(def, TIR_ATTR_permutation)->list[0] == 1;
    return is_turned ? def->operands[0] : tir_transpose(b, v);
}

static void turn(struct upright *u, struct tir_inst *dot)
{
    struct tir_value **by = arena_array(u->scratch, struct tir_value *, u->f->value_count);
    struct tir_builder b = tir_builder_before(u->f, dot);
    struct tir_types *types = u->f->module->types;
    struct tir_value *factors[TIR_DOT_OPERANDS] = {
        [TIR_DOT_A] = turned_factor(&b, dot->operands[TIR_DOT_B]),
        [TIR_DOT_B] = turned_factor(&b, dot->operands[TIR_DOT_A]),
        [TIR_DOT_ACC] = turned(u, by, dot->operands[TIR_DOT_ACC])};
    by[tir_result(dot)->id] =
        tir_build1(&b, TIR_OP_DOT, factors[TIR_DOT_ACC]->type, factors, TIR_COUNT_OF(factors));
    by[tir_result(dot)->id]->name = tir_result(dot)->name;
    for (uint32_t i = 0; i < u->singles.len; i++) {
        struct tir_inst *inst = u->singles.at[i];
        struct tir_value *v = tir_result(inst);
        b = tir_builder_before(u->f, inst);
        struct tir_value **operands =
            arena_array(u->scratch, struct tir_value *, inst->operand_count);
        for (uint32_t k = 0; k < inst->operand_count; k++)
            operands[k] = turned(u, by, inst->operands[k]);
        by[v->id] = tir_build1(&b, inst->op, tir_type_transpose(types, v->type), operands,
                               inst->operand_count);
        by[v->id]->name = v->name;
    }
    for (uint32_t i = 0; i < u->permutes.len; i++) {
        struct tir_inst *permute = u->permutes.at[i];
        tir_replace_uses(u->f, tir_result(permute), by[permute->operands[0]->id]);
        tir_remove(permute);
    }
    for (uint32_t i = u->singles.len; i--;)
        tir_remove(u->singles.at[i]);
    tir_remove(dot);
}

enum tir_change tir_pass_upright(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct upright u = {.f = f, .scratch = cx->scratch};
    VEC(struct tir_inst *) dots = {0};
    bool changed = false;
    tir_foreach_inst(inst, f)
        if (is_candidate(inst))
            vec_push(cx->scratch, &dots, inst);
    if (!dots.len || !(cx->target->features & TIR_HAS_TCGEN05))
        return TIR_UNCHANGED;
    vec_foreach(struct tir_inst *const, it, &dots) {
        if (!is_used_turned(&u, *it))
            continue;
        tir_receipt_add(cx, TIR_TOPIC_DOT, (*it)->span,
                        "dot: turned, as all that uses its sums takes them");
        turn(&u, *it);
        changed = true;
    }
    return changed ? TIR_CHANGED : TIR_UNCHANGED;
}
