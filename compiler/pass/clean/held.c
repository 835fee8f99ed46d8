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

#include "pass/clean/held.h"

#include "base/bitset.h"
#include "ir/live.h"
#include "ir/walk.h"
#include "pass/clean/bounds.h"

struct held {
    struct tir_func *f;
    struct tir_arena *scratch;
    const struct tir_live *live;
    struct tir_map answers;
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

static void visit(struct held *h, const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (!multiplies(inst)) {
            for (uint32_t r = 0; r < inst->region_count; r++)
                visit(h, inst->regions[r]);
            continue;
        }
        if (tir_live_most(h->live, inst) + count_conditions(h, inst) > tir_live_limit(h->f, inst))
            answer_tests(h, inst);
    }
}

bool tir_hold_less(struct tir_func *f, struct tir_arena *scratch)
{
    struct held h = {.f = f, .scratch = scratch, .live = tir_live_new(scratch, f)};
    tir_map_init(&h.answers, scratch);
    visit(&h, f->body);
    tir_replace_uses_map(f, &h.answers);
    return h.answers.count;
}
