// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// prefetch: loads beside products run a round ahead.
//
//     for k: i64 in range(0, K, 128) carry (acc: T = zero) {
//         let part: T = get(a, lag = 1) with (slot: i32) { ... dot(...) ... }
//         let j: i64 = div(k, 128);
//         let s: f32[32] = load(Scale[m:+32, j]);
//         ... part, acc, s ...
//     }
// becomes
//     let first: f32[32] = load(Scale[m:+32, div(0, 128)]);
//     for k: i64 in range(0, K, 128) carry (acc: T = zero, s: f32[32] = first) {
//         let part: T = get(a, lag = 1) with (slot: i32) { ... dot(...) ... }
//         let next: f32[32] = load(Scale[m:+32, div(k + 128, 128)]);
//         ... part, acc, s ...
//         yield ..., next;
//     }
//
// What products take comes by asynchronous copies, many rounds ahead. What is computed of their
// results, such as scales of blocks, comes by plain loads, for which each round waited: 128 threads
// that multiply rows of 32 waited longer than the product took. The loads start behind the round's
// last product, which does not wait for them. A load is carried if its address follows from the
// loop's variable, its tensor is only read, and it takes few registers (AHEAD_REGISTERS for all
// loads of a loop; the first come first). The last round loads what no round needs; outside of the
// tensor that is 0.

#include "ir/crew.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "pass/async/lookup.h"
#include "pass/async/pipeline.h"
#include "pass/receipt.h"

// Registers of a thread: elements of few bits have one each while a loop carries them.
static int64_t registers_of(const struct tir_type *t)
{
    const int64_t words = tir_ceil_div(tir_elems[t->elem].bits, 32);
    return t->layout ? tir_layout_size(t->layout, TIR_AXIS_REG) * words : words;
}

static bool multiplies(const struct tir_inst *inst)
{
    if (tir_is_loop(inst))
        return false; // in its own rounds
    tir_foreach_inst_within(in, inst)
        if (in->op == TIR_OP_DOT)
            return true;
    return false;
}

// The last product of the loop's own rounds, or what it is in. NULL: there is none.
static struct tir_inst *last_product(const struct tir_inst *loop)
{
    struct tir_inst *inst = loop->regions[0]->last;
    while (inst && !multiplies(inst))
        inst = inst->prev;
    return inst;
}

static void refuse(struct tir_pass_cx *cx, const struct tir_inst *load, const char *why)
{
    const struct tir_value *from = tir_ref_base(load);
    if (from->type->space == TIR_SPACE_GLOBAL && tir_type_is_tile(load->results[0]->type))
        tir_receipt_refuse(cx, TIR_TOPIC_LOOP, TIR_WISH_NONE, load->span,
                           "load of %s: in the round that uses it, because %s",
                           from->name ? from->name : "a tensor", why);
}

static void find(struct tir_lookups *l, struct tir_pass_cx *cx)
{
    struct tir_block *body = l->loop->regions[0];
    struct tir_follow ahead;
    int64_t registers = 0;
    tir_runs_ahead_init(&ahead, l->arena, l->f, body);
    for (struct tir_inst *inst = body->first; inst; inst = inst->next) {
        if (inst->op != TIR_OP_LOAD)
            continue;
        if (!tir_follows(&ahead, inst->results[0])) {
            refuse(cx, inst,
                   "its address or mask depends on values carried or computed in the loop");
            continue;
        }
        registers += registers_of(inst->results[0]->type);
        if (registers <= TIR_BUDGET_AHEAD_REGISTERS)
            vec_push(l->arena, &l->found, inst->results[0]);
        else
            refuse(cx, inst, "a thread has few registers for what is loaded ahead");
    }
}

// Loops of roles that compute while another role multiplies.
static void report_role(struct tir_pass_cx *cx, const struct tir_block *block)
{
    for (struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (inst->op == TIR_OP_LOAD)
            refuse(cx, inst, "no product of this role runs meanwhile");
        for (uint32_t r = 0; r < inst->region_count && !tir_is_loop(inst); r++)
            report_role(cx, inst->regions[r]);
    }
}

static bool visit(struct tir_func *f, struct tir_pass_cx *cx, struct tir_inst *loop)
{
    struct tir_lookups loads;
    tir_lookups_init(&loads, f, cx->scratch, loop);
    find(&loads, cx);
    if (!loads.found.len)
        return false;
    tir_lookups_run_ahead(&loads, last_product(loop)->next);
    vec_foreach(struct tir_value *, it, &loads.found)
        tir_receipt_add(cx, TIR_TOPIC_LOOP, (*it)->def->span, "load: a round ahead of its use");
    return true;
}

enum tir_change tir_pass_prefetch(struct tir_func *f, struct tir_pass_cx *cx)
{
    VEC(struct tir_inst *) loops = {0};
    enum tir_change change = TIR_UNCHANGED;
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_FOR && last_product(inst))
            vec_push(cx->scratch, &loops, inst);
        else if (inst->op == TIR_OP_FOR && tir_crew_of(f, inst).role)
            report_role(cx, inst->regions[0]);
    vec_foreach(struct tir_inst *, it, &loops)
        change = visit(f, cx, *it) ? TIR_CHANGED : change;
    if (change == TIR_CHANGED)
        tir_pass_dce(f, cx); // the loads, and what their addresses were computed from
    return change;
}
