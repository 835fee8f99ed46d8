// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// schedule: spreads asynchronous copies over the matrix products that follow them.
//
//     cp_async(ring, at0, A, from0, p0);  cp_async(ring, at1, A, from1, p1);  commit_group();
//     let d0: ... = mma(...);  let d1: ... = mma(...);  let d2: ... = mma(...);
// becomes
//     let d0: ... = mma(...);
//     cp_async(ring, at0, A, from0, p0);
//     let d1: ... = mma(...);
//     cp_async(ring, at1, A, from1, p1);  commit_group();
//     let d2: ... = mma(...);
//
// After the barrier at the head of a pipelined loop the tensor cores should start at once; a burst
// of copies in front of the first fragment loads delays them, and ptxas keeps the order it is
// given. A copy only moves down, past operations that do not write memory and do not wait: pipeline
// has put the slot it fills out of reach of everything up to the next barrier. A commit follows the
// last copy of its group, so groups stay the same.

#include "ir/walk.h"
#include "pass/pass.h"

struct segment {
    VEC(struct tir_inst *) copies; // one group
    struct tir_inst *commit;
    VEC(struct tir_inst *) products; // behind the commit
};

// May a copy move past it?
static bool lets_copies_pass(const struct tir_inst *inst)
{
    return !inst->region_count && !tir_has_trait(inst, TIR_WRITES | TIR_SYNC | TIR_ASYNC | TIR_END);
}

static void find_segment(struct tir_arena *a, struct tir_inst *first, struct segment *s)
{
    struct tir_inst *inst = first;
    for (; inst && (inst->op == TIR_OP_CP_ASYNC || lets_copies_pass(inst)); inst = inst->next)
        if (inst->op == TIR_OP_CP_ASYNC)
            vec_push(a, &s->copies, inst);
    if (!inst || inst->op != TIR_OP_COMMIT_GROUP)
        return;
    s->commit = inst;
    for (inst = inst->next; inst && lets_copies_pass(inst); inst = inst->next)
        if (inst->op == TIR_OP_MMA)
            vec_push(a, &s->products, inst);
}

static bool spread(struct segment *s)
{
    uint32_t copies = s->copies.len, products = s->products.len;
    if (!s->commit || products < 2 * copies)
        return false;
    for (uint32_t i = 0; i < copies; i++)
        tir_move_before(s->copies.at[i],
                        s->products.at[(uint64_t)(i + 1) * products / (copies + 1)]);
    tir_move_before(s->commit, s->copies.at[copies - 1]->next);
    return true;
}

static bool run_block(struct tir_arena *a, struct tir_block *block)
{
    bool changed = false;
    for (struct tir_inst *inst = block->first; inst; inst = inst->next) {
        for (uint32_t r = 0; r < inst->region_count; r++)
            changed |= run_block(a, inst->regions[r]);
        if (inst->op != TIR_OP_CP_ASYNC)
            continue;
        struct segment s = {.commit = NULL};
        find_segment(a, inst, &s);
        struct tir_inst *after = s.commit ? s.commit->next : s.copies.at[s.copies.len - 1];
        if (spread(&s)) {
            changed = true;
            inst = after; // the first operation behind where the group stood
        } else {
            inst = s.copies.at[s.copies.len - 1];
        }
    }
    return changed;
}

enum tir_change tir_pass_schedule(struct tir_func *f, struct tir_pass_cx *cx)
{
    return run_block(cx->scratch, f->body) ? TIR_CHANGED : TIR_UNCHANGED;
}
