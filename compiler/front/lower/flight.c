// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Accumulators in flight: a result of gemm_async may be passed on, also by loops and branches, but
// before an await only another gemm_async may use it. It stays in its registers, so a loop gives it
// on in its own place: two sums are swapped after an await.
#include "base/bitset.h"
#include "front/lower/lower.h"
#include "ir/walk.h"

struct flight {
    struct bitset values; // by id: may be in flight
    bool changed;
};

static bool flies(const struct flight *fl, const struct tir_value *v)
{
    return v && bitset_has(&fl->values, v->id);
}

static void mark_if(struct flight *fl, const struct tir_value *v, bool condition)
{
    if (condition)
        fl->changed |= bitset_insert(&fl->values, v->id);
}

// The values that enter as initial values or return by the yields.
static void mark_regions(struct flight *fl, const struct tir_inst *inst)
{
    bool carries = tir_ops[inst->op].rule == TIR_RULE_CARRIED;
    for (uint32_t r = 0; r < inst->region_count; r++) {
        const struct tir_block *block = inst->regions[r];
        const struct tir_inst *yield = tir_yield_of(block);
        bool gives = yield && yield->operand_count == inst->result_count;
        for (uint32_t i = 0; i < inst->result_count; i++) {
            const struct tir_value *init =
                carries ? inst->operands[tir_carried_at(inst) + i] : NULL;
            bool f = flies(fl, init) || flies(fl, inst->results[i]) ||
                     (gives && flies(fl, yield->operands[i]));
            mark_if(fl, inst->results[i], f);
            if (carries)
                mark_if(fl, block->args[block->arg_count - inst->result_count + i], f);
        }
    }
}

static bool may_take(const struct tir_inst *inst, uint32_t operand)
{
    return inst->op == TIR_OP_AWAIT || inst->op == TIR_OP_YIELD || inst->region_count > 0 ||
           (inst->op == TIR_OP_GEMM_ASYNC && operand == TIR_DOT_ACC);
}

// The value before the sum v, through what adds to it or waits for it, where a loop carries that.
static const struct tir_value *sum_before(const struct tir_value *v)
{
    while (v->def) {
        const struct tir_inst *def = v->def;
        if (def->op == TIR_OP_GEMM_ASYNC)
            v = def->operands[TIR_DOT_ACC];
        else if (def->op == TIR_OP_AWAIT)
            v = def->operands[v->index];
        else if (tir_ops[def->op].rule == TIR_RULE_CARRIED)
            v = def->operands[tir_carried_at(def) + v->index];
        else
            break;
    }
    return v;
}

static bool check_places(struct lower *l, const struct flight *fl, const struct tir_inst *loop)
{
    const struct tir_block *body = loop->regions[loop->region_count - 1];
    const struct tir_inst *yield = tir_yield_of(body);
    struct tir_value *const *args = body->args + body->arg_count - loop->result_count;
    for (uint32_t i = 0; i < loop->result_count; i++) {
        const struct tir_value *v = yield->operands[i], *before = sum_before(v);
        if (!flies(fl, v) || before == args[i] || before->def || before->block != body)
            continue;
        const char *name = before->name ? before->name : "acc";
        lower_error(l, loop->span, TIR_E_FLIGHT,
                    "the loop gives `%s`, which may still be computed by a `gemm_async`, the place "
                    "of another; `await(%s)` first",
                    name, name);
        return false;
    }
    return true;
}

bool flight_check(struct lower *l)
{
    struct flight fl = {bitset_new(l->arena, l->f->value_count), true};
    while (fl.changed) {
        fl.changed = false;
        tir_foreach_inst(inst, l->f) {
            mark_regions(&fl, inst);
            if (inst->op == TIR_OP_GEMM_ASYNC)
                mark_if(&fl, tir_result(inst), true);
        }
    }
    bool ok = true;
    tir_foreach_inst(inst, l->f) {
        if (tir_is_loop(inst))
            ok &= check_places(l, &fl, inst);
        for (uint32_t i = 0; i < inst->operand_count; i++)
            if (flies(&fl, inst->operands[i]) && !may_take(inst, i)) {
                const char *name = inst->operands[i]->name;
                lower_error(l, inst->span, TIR_E_FLIGHT,
                            "`%s` may still be computed by a `gemm_async`; `await(%s)` first",
                            name ? name : "this", name ? name : "acc");
                ok = false;
            }
    }
    return ok;
}
