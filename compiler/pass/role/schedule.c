// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// schedule: orders the operations of loops with products on warpgroups, so that engines overlap.
//
//     let r: T = for t: i64 in range(0, N, 64) carry (o: T = zero) {
//         let s: T = get(a) with (i: i32) { let d: T = dot(q, as, zero, engine = wgmma); yield d; }
//         let p: U = cast(s);
//         let n: T = get(b) with (j: i32) { let d: T = dot(p, bs, o, engine = wgmma); yield d; }
//         yield n;
//     }
// becomes
//     let s: T = get(a) ...; let p: U = cast(s);                  // of the first round
//     let r: T = for t: i64 in range(64, N, 64) carry (o: T = zero, p: U = p) {
//         let s: T = get(a) ...;
//         let n: T = get(b) ... dot(p, bs, o, engine = wgmma) ...; // of the round before
//         let p2: U = cast(s);                                     // while that runs
//         yield n, p2;
//     }
//     let r2: T = get(b) ... dot(p, bs, r, engine = wgmma) ...;    // of the last round
// in a branch that has a round at all, where that takes fewer cycles.
//
// Products run on the tensor cores while their warpgroup goes on. Where one product takes what
// other operations make of another one's result, a round in the order of the source leaves the
// tensor cores idle. So a round may have two stages: operations of the second one run a round
// later, beside the first stage of the next round (modulo scheduling: Rau, "Iterative Modulo
// Scheduling", 1994). Candidates are the sets of products that are late, with all that follows from
// them, and each order of the products; other operations keep their order. What each would take is
// played (schedule_time.c) with the cycles of work.def and cost.def. The fastest that leaves enough
// registers is taken; among equals the one that keeps fewer. The number of candidates is limited,
// not the time, so the result is the same everywhere.
//
// If each product takes an operand in registers that no product leads to, all are late, one product
// too: the operands of the next round are computed while they run.
//
// Only loops are ordered whose body has no effect but the gets of rings that other roles fill:
// the slot of a get is freed when what was started in it is done, wherever that is. Gets of one
// ring keep their order, so slots are taken as they were filled.

#include "pass/role/schedule.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/cost.h"
#include "machine/target.h"
#include "pass/layout/warpgroup.h"
#include "pass/receipt.h"
#include "pass/sync/crew.h"

static bool has_product(const struct tir_inst *inst)
{
    tir_foreach_inst_within(in, inst)
        if (tir_dot_on_warpgroups(in))
            return true;
    return false;
}

// Do several products take operands in registers that are computed from none, in less time than the
// other warpgroup multiplies? Then one computes while the other multiplies (pass turn).
static bool takes_turns(const struct schedule *s)
{
    int64_t tensor = 0, rest = 0;
    vec_foreach(const struct schedule_op, op, &s->ops) {
        tensor += op->tensor;
        rest += op->is_product ? 0 : TIR_MAX(op->issue, op->mufu);
    }
    const struct tir_attr *stated = tir_attr_find(s->loop, TIR_ATTR_turns);
    return s->groups == TIR_BUDGET_TURN_GROUPS && s->product_count > 1 &&
           tir_schedule_computes_operands(s) && rest * 100 <= tensor * TIR_BUDGET_TURN_WORK &&
           !(stated && !stated->number);
}

// All operands, then all products, which are one turn. False: products need each other's results,
// or registers do not suffice.
static bool order_turns(const struct schedule *s, struct schedule_order *order)
{
    uint32_t count = 0;
    for (uint32_t products = 0; products < 2; products++)
        for (uint32_t op = 0; op < s->ops.len; op++)
            if (s->ops.at[op].is_product == products)
                order->at[count++] = op;
    vec_foreach(const struct schedule_edge, e, &s->edges)
        if (!e->distance && s->ops.at[e->first].is_product && !s->ops.at[e->later].is_product)
            return false;
    tir_schedule_time(s, order);
    return tir_schedule_fits(s, order);
}

// Certifies the order, makes the loop run in it and checks the one against the other.
static enum tir_change build(struct schedule *s, struct tir_pass_cx *cx,
                             const struct schedule_order *order,
                             const struct schedule_order *source, const char *why)
{
    struct tir_certificate claim =
        tir_schedule_certify(s, order, cx->receipt ? cx->receipt->arena : cx->scratch);
    const struct tir_needs needs = tir_certificate_needs(s->loop, cx->scratch);
    struct tir_inst *loop = s->loop;
    claim.source_cycles = source->cycles;
    claim.shared = cx->target->shared_per_cta;
    if (order->at != source->at)
        loop = tir_schedule_build(s, order);
    const char *wrong = tir_certificate_check(&claim, &needs, loop, cx->scratch);
    if (wrong) {
        tir_error_at(cx->diags, claim.span, TIR_E_VERIFY,
                     "the certificate of this loop's schedule is wrong: %s", wrong);
        return TIR_FAILED;
    }
    tir_receipt_certify(cx, &claim, why);
    return order->at == source->at ? TIR_UNCHANGED : TIR_CHANGED;
}

static enum tir_change visit(struct tir_func *f, struct tir_pass_cx *cx, struct tir_inst *loop)
{
    struct schedule s = {
        .f = f, .scratch = cx->scratch, .cost = &tir_costs[cx->target->card], .loop = loop};
    const struct tir_crew crew = tir_crew_of(f, loop);
    s.groups = crew.warps / TIR_WARPGROUP;
    s.registers = crew.role ? tir_attr_int(crew.role, TIR_ATTR_regs, 0) : 0;
    if (!s.registers)
        s.registers = tir_launch_registers(f->threads);
    s.all_registers = s.registers;
    s.registers -= TIR_BUDGET_FREE_REGISTERS;
    if (!s.groups || !tir_schedule_model(&s))
        return TIR_UNCHANGED;
    const bool is_choice = s.product_count > 1 || tir_schedule_computes_operands(&s);
    const char *why = tir_schedule_refusal(&s);
    if (why && is_choice)
        tir_receipt_add(cx, TIR_TOPIC_LOOP, loop->span,
                        "loop: in the order of the source, because %s", why);
    if (why) {
        tir_receipt_certify(cx, &(struct tir_certificate){.span = loop->span}, why);
        return TIR_UNCHANGED;
    }
    why = "all products are in one operation, which leaves nothing to choose";
    const struct schedule_order source = tir_schedule_of_source(&s);
    struct schedule_order order = tir_schedule_new_order(&s);
    if (takes_turns(&s) && order_turns(&s, &order)) {
        why = "each warpgroup computes all operands, then starts all products in its turn";
        tir_set_int(f, loop, TIR_ATTR_turns, 1);
        tir_receipt_add(
            cx, TIR_TOPIC_LOOP, loop->span,
            "loop: scheduled for turns, %lld cycles a round predicted, %lld in the order "
            "of the source; tiles take %lld registers",
            (long long)order.cycles, (long long)source.cycles, (long long)order.words);
    } else {
        order = is_choice ? tir_schedule_search(&s, cx, &source, &why) : source;
    }
    return build(&s, cx, &order, &source, why);
}

enum tir_change tir_pass_schedule(struct tir_func *f, struct tir_pass_cx *cx)
{
    VEC(struct tir_inst *) loops = {0};
    enum tir_change change = TIR_UNCHANGED;
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_FOR && has_product(inst))
            vec_push(cx->scratch, &loops, inst);
    vec_foreach(struct tir_inst *, it, &loops) {
        const enum tir_change of_loop = visit(f, cx, *it);
        if (of_loop == TIR_FAILED)
            return TIR_FAILED;
        change = of_loop == TIR_CHANGED ? TIR_CHANGED : change;
    }
    return change;
}
