// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What loops of products on warpgroups hold in registers for nothing, where these do not last.
//
// A condition that a loop does not change is held through it, and takes a register where there are
// more than a thread has predicates. Masks of columns ask for each column, though a thread has
// those of its warpgroup, and only the last of these can lie outside. In a role it is known which
// warps ask, so tests that they always pass are none:
//
//     if lt(warp, i32(4)) { ... } else {            if lt(warp, i32(4)) { ... } else {
//         let g: i32 = shr(add(warp, -4), 2);
//         let c: i32 = add(mul(g, 128), 8);
//         let p: bool = lt(c, 232);          ->
//         for q { ... st(X, at, s, pred = p); }         for q { ... st(X, at, s, pred = true); }
//     }                                             }
//
// Descriptors that differ by constants are a pair of registers each. Where a loop has many of them
// they are made for each product anew, of the one that they follow from, in its inline PTX:
//
//     let b2: i64 = add(b1, 256);
//     for q { ... wgmma(b2, ...); }          ->     for q { ... wgmma(b1, ..., b_at = 256); }

#include "pass/clean/held.h"

#include "base/bitset.h"
#include "ir/live.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/target.h"
#include "pass/clean/bounds.h"

struct held {
    struct tir_func *f;
    struct tir_arena *scratch;
    const struct tir_live *live;
    struct tir_map answers;
    bool changed;
};

static bool multiplies(const struct tir_inst *loop)
{
    if (tir_carries(loop))
        tir_foreach_inst_within(in, loop)
            if (in->op == TIR_OP_WGMMA)
                return true;
    return false;
}

// Conditions that the loop uses, and does not make.
static uint32_t count_conditions(const struct held *h, const struct tir_inst *loop)
{
    struct bitset seen = bitset_new(h->scratch, h->f->value_count);
    uint32_t count = 0;
    tir_foreach_inst_within(in, loop)
        for (uint32_t i = 0; i < in->operand_count; i++) {
            const struct tir_value *v = in->operands[i];
            if (!v || v->kind == TIR_VALUE_CONST || v->type->elem != TIR_BOOL ||
                tir_is_made_in(loop, v) || bitset_has(&seen, v->id))
                continue;
            bitset_insert(&seen, v->id);
            count++;
        }
    return count;
}

static void answer_tests(struct held *h, const struct tir_inst *loop)
{
    struct tir_ranges *ranges = NULL;
    tir_foreach_inst_within(in, loop)
        for (uint32_t i = 0; i < in->operand_count; i++) {
            const struct tir_value *v = in->operands[i];
            if (!v || v->kind != TIR_VALUE_RESULT || tir_is_made_in(loop, v) ||
                tir_ops[v->def->op].rule != TIR_RULE_COMPARE)
                continue;
            if (!ranges)
                ranges = tir_ranges_in_branches(h->scratch, h->f);
            const int is = tir_bounds_answer(ranges, v->def);
            if (is >= 0)
                tir_map_set(&h->answers, tir_map_key(v), tir_const_bool(h->f, is));
        }
}

static const struct {
    uint32_t operand;
    enum tir_attr_key at;
} factors[] = {{TIR_WGMMA_A, TIR_ATTR_a_at}, {TIR_WGMMA_B, TIR_ATTR_b_at}};

// The sum of an older descriptor and a constant that a factor of wgmma is, made in front of the
// loop; in `at` what wgmma is to add instead. NULL: it is no such sum.
static const struct tir_inst *later_descriptor(const struct tir_inst *loop,
                                               const struct tir_inst *wgmma, uint32_t factor,
                                               int64_t *at)
{
    const struct tir_value *v = wgmma->operands[factors[factor].operand];
    int64_t by;
    if (!v || v->kind != TIR_VALUE_RESULT || v->def->op != TIR_OP_ADD ||
        !tir_is_const_int(v->def->operands[1], &by) || by <= 0 || by > TIR_DESCRIPTOR_ADDRESS ||
        tir_is_made_in(loop, v))
        return NULL;
    *at = tir_attr_int(wgmma, factors[factor].at, 0) + by;
    return *at <= TIR_DESCRIPTOR_ADDRESS ? v->def : NULL;
}

static uint32_t count_descriptors(const struct held *h, const struct tir_inst *loop)
{
    struct bitset seen = bitset_new(h->scratch, h->f->inst_count);
    uint32_t count = 0;
    int64_t at;
    tir_foreach_inst_within(in, loop)
        for (uint32_t i = 0; in->op == TIR_OP_WGMMA && i < TIR_COUNT_OF(factors); i++) {
            const struct tir_inst *sum = later_descriptor(loop, in, i, &at);
            if (!sum || bitset_has(&seen, sum->id))
                continue;
            bitset_insert(&seen, sum->id);
            count++;
        }
    return count;
}

static void make_descriptors(struct held *h, const struct tir_inst *loop)
{
    int64_t at;
    tir_foreach_inst_in(in, loop->regions[0])
        for (uint32_t i = 0; in->op == TIR_OP_WGMMA && i < TIR_COUNT_OF(factors); i++) {
            const struct tir_inst *sum = later_descriptor(loop, in, i, &at);
            if (!sum)
                continue;
            in->operands[factors[i].operand] = sum->operands[0];
            tir_set_int(h->f, in, factors[i].at, at);
            h->changed = true;
        }
}

static void visit(struct held *h, const struct tir_block *block)
{
    for (struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (!multiplies(inst)) {
            for (uint32_t r = 0; r < inst->region_count; r++)
                visit(h, inst->regions[r]);
            continue;
        }
        const uint32_t limit = tir_live_limit(h->f, inst), most = tir_live_most(h->live, inst);
        const uint32_t descriptors = count_descriptors(h, inst);
        const uint32_t conditions = count_conditions(h, inst);
        if (conditions >= TIR_BUDGET_HELD_CONDITIONS && most + conditions > limit)
            answer_tests(h, inst);
        if (descriptors >= TIR_BUDGET_HELD_DESCRIPTORS && most + descriptors > limit)
            make_descriptors(h, inst);
    }
}

bool tir_hold_less(struct tir_func *f, struct tir_arena *scratch)
{
    struct held h = {.f = f, .scratch = scratch, .live = tir_live_new(scratch, f)};
    tir_map_init(&h.answers, scratch);
    visit(&h, f->body);
    tir_replace_uses_map(f, &h.answers);
    return h.changed || h.answers.count;
}
