// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads that ptxas moves no further ahead, where registers might not last.
//
// It moves loads ahead until every register is taken, and then spills a few others. It moves no
// instruction over a pmevent, which counts no event here. So one stands between the steps of a
// product by mma.sync, behind sums where as much is loaded as may be ahead, and in front of what is
// stored in tensor memory where the addresses of what is loaded for it take as much:
//
//     let a0: i32, ... = ldmatrix(A, at);           let a0: i32, ... = ldmatrix(A, at);
//     let s0: f32, ... = mma(a0, ..., d0, ...);     let s0: f32, ... = mma(a0, ..., d0, ...);
//     ...                                      ->   ...
//     let a4: i32, ... = ldmatrix(A, next);         ptx(text = "pmevent.mask 0;");
//     let t0: f32, ... = mma(a4, ..., s0, ...);     let a4: i32, ... = ldmatrix(A, next);
//                                                   ...
//
// Between steps a warp waits until its products have started, and then for its loads, while another
// warp of the scheduler multiplies. Left alone are products of CTAs, or of their roles, that leave
// a scheduler one warp, those of few steps, sums from tensor memory that are added to what the
// kernel does not write, and what is counted to leave registers enough. So are targets before
// Blackwell, whose kernels stay as they were timed.

#include "pass/clean/apart.h"

#include "base/vec.h"
#include "ir/crew.h"
#include "ir/live.h"
#include "ir/walk.h"
#include "machine/budget.h"

enum { SCHEDULERS = 4 }; // of a multiprocessor
static const char event[] = "pmevent.mask 0;";

struct apart {
    struct tir_func *f;
    const struct tir_target *target;
    struct tir_arena *scratch;
    const struct tir_live *live;
    struct tir_block *const *ordered;
    uint32_t ordered_count;
    bool changed;
};

struct warps {
    int64_t first, end;
};

// Those for which the condition holds, or does not, if it compares a warp's or thread's number with
// a constant, as those of roles do.
static void narrow(struct warps *warps, const struct tir_value *condition, bool holds)
{
    const struct tir_inst *cmp = condition->def;
    if (!cmp || cmp->operand_count != 2 || cmp->operands[1]->kind != TIR_VALUE_CONST)
        return;
    const struct tir_inst *number = cmp->operands[0]->def;
    const bool is_warp = number && number->op == TIR_OP_WARPID;
    if (!is_warp && (!number || number->op != TIR_OP_TID))
        return;
    const int64_t at = cmp->operands[1]->constant.i, of_warp = is_warp ? 1 : 32;
    if (cmp->op == TIR_OP_EQ && is_warp && holds)
        *warps = (struct warps){at, at + 1};
    else if (cmp->op == (holds ? TIR_OP_LT : TIR_OP_GE))
        warps->end = TIR_MIN(warps->end, tir_ceil_div(at, of_warp));
    else if (cmp->op == (holds ? TIR_OP_GE : TIR_OP_LT))
        warps->first = TIR_MAX(warps->first, at / of_warp);
}

// Of those that run the block, if every thread takes all the registers that it can have.
static bool has_two_warps(const struct apart *a, const struct tir_block *block)
{
    const uint32_t threads = a->f->threads;
    const uint32_t ctas = TIR_MIN(tir_target_ctas_of(a->target, a->f),
                                  TIR_REGISTERS / (threads * tir_launch_registers(threads)));
    struct warps warps = {.end = threads / 32};
    for (const struct tir_inst *owner; (owner = block->owner); block = owner->block)
        if (owner->op == TIR_OP_IF)
            narrow(&warps, owner->operands[0], block == owner->regions[0]);
    return ctas * TIR_MAX(warps.end - warps.first, 0) >= 2 * SCHEDULERS;
}

static bool is_ordered(const struct apart *a, const struct tir_block *block)
{
    for (uint32_t i = 0; i < a->ordered_count; i++)
        if (a->ordered[i] == block)
            return true;
    return false;
}

// Is there one in inst?
static bool has(const struct tir_inst *inst, enum tir_op op)
{
    tir_foreach_inst_within(in, inst)
        if (in->op == op)
            return true;
    return false;
}

static bool is_event(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_PTX && tir_str_is(tir_attr_find(inst, TIR_ATTR_text)->text, event);
}

// Unless one does: the program may be one that this pass has left.
static void stand_before(struct apart *a, struct tir_inst *inst)
{
    if (inst->prev && is_event(inst->prev))
        return;
    struct tir_builder b = tir_builder_before(a->f, inst);
    struct tir_inst *ptx = tir_build(&b, TIR_OP_PTX, NULL, 0, NULL, 0, 0);
    tir_set_text(a->f, ptx, TIR_ATTR_text, tir_str_of(event));
    a->changed = true;
}

static bool loads_from(const struct tir_inst *inst, enum tir_space space)
{
    return inst->op == TIR_OP_LD && inst->operands[0]->type->space == space;
}

// Does the next product add to the sums of one before?
static bool goes_on(const struct tir_inst *load)
{
    const struct tir_inst *next = load;
    while (next && next->op != TIR_OP_MMA)
        next = next->next;
    for (uint32_t i = 0; next && i < next->operand_count; i++)
        if (next->operands[i] && next->operands[i]->kind == TIR_VALUE_RESULT &&
            next->operands[i]->def->op == TIR_OP_MMA)
            return true;
    return false;
}

struct product {
    VEC(struct tir_inst *) steps; // the first load of each but the first
    uint32_t mma;                 // instructions
};

// Its sums take an eighth of a thread's registers at least: with fewer it is no reason to be full.
static void end_product(struct apart *a, struct product *p, uint32_t limit)
{
    const uint32_t steps = p->steps.len + 1, sums = 4 * p->mma / steps;
    for (uint32_t i = 0; i < p->steps.len && steps >= TIR_BUDGET_APART_STEPS && sums >= limit / 8;
         i++)
        stand_before(a, p->steps.at[i]);
    p->steps.len = p->mma = 0;
}

static void keep_steps(struct apart *a, struct tir_block *block)
{
    const uint32_t limit = tir_live_limit(a->f, block->first);
    struct product product = {0};
    bool after_product = false;
    if (tir_live_most_in(a->live, block) * 100 <= limit * TIR_BUDGET_APART_FROM)
        return;
    tir_foreach_inst_safe(inst, block) {
        after_product |= inst->op == TIR_OP_MMA;
        product.mma += inst->op == TIR_OP_MMA;
        if (!after_product || (inst->op != TIR_OP_LDMATRIX && !loads_from(inst, TIR_SPACE_SHARED)))
            continue;
        after_product = false;
        if (goes_on(inst))
            vec_push(a->scratch, &product.steps, inst);
        else
            end_product(a, &product, limit);
    }
    end_product(a, &product, limit);
}

// Also of its condition, if it has one; 0: it loads from no tensor.
static uint32_t registers_of(const struct tir_inst *load)
{
    return loads_from(load, TIR_SPACE_GLOBAL)
               ? load->result_count + (load->operands[TIR_AT(LD, pred)] != NULL)
               : 0;
}

// Of an address that is no offset from another one's. They are all made before the first load.
static uint32_t addresses_of(const struct tir_inst *load)
{
    return loads_from(load, TIR_SPACE_GLOBAL) && !tir_attr_int(load, TIR_ATTR_offset, 0) ? 2 : 0;
}

// No more loads than take half of the registers that the others leave; takes: of one.
static void keep_loads(struct apart *a, struct tir_inst *first,
                       uint32_t (*takes)(const struct tir_inst *load))
{
    const uint32_t limit = tir_live_limit(a->f, first),
                   most = tir_live_most_in(a->live, first->block);
    uint32_t all = 0, loaded = 0;
    for (const struct tir_inst *inst = first; inst; inst = inst->next)
        all += takes(inst);
    if (most >= limit || most + all <= limit)
        return;
    for (struct tir_inst *inst = first; inst; inst = inst->next) {
        const uint32_t more = takes(inst);
        loaded += more;
        if (!more || loaded <= (limit - most) / 2)
            continue;
        stand_before(a, inst);
        loaded = more;
    }
}

static void visit(struct apart *a, struct tir_block *block)
{
    struct tir_inst *sums = NULL;              // the last one that gives some
    bool has_products = false, stores = false; // in tensor memory
    const bool may_load = is_ordered(a, block);
    tir_foreach_inst_safe(inst, block) {
        has_products |= inst->op == TIR_OP_MMA;
        stores |= inst->op == TIR_OP_TMEM_ST;
        if ((inst->region_count && has(inst, TIR_OP_MMA)) ||
            (may_load && has(inst, TIR_OP_TMEM_LD)))
            sums = inst;
        for (uint32_t r = 0; r < inst->region_count; r++)
            visit(a, inst->regions[r]);
    }
    if (has_products && has_two_warps(a, block))
        keep_steps(a, block);
    if (!has_products && sums && sums->next)
        keep_loads(a, sums->next, registers_of);
    if (!has_products && stores)
        keep_loads(a, block->first, addresses_of);
}

bool tir_keep_apart(struct tir_func *f, const struct tir_target *target,
                    struct tir_block *const *ordered, uint32_t ordered_count,
                    struct tir_arena *scratch)
{
    struct apart a = {.f = f,
                      .target = target,
                      .scratch = scratch,
                      .ordered = ordered,
                      .ordered_count = ordered_count};
    bool any = ordered_count;
    tir_foreach_inst(inst, f)
        any |= inst->op == TIR_OP_MMA || inst->op == TIR_OP_TMEM_ST;
    if (!any || !f->threads || !(target->features & TIR_HAS_ADD_64))
        return false;
    a.live = tir_live_new(scratch, f);
    visit(&a, f->body);
    return a.changed;
}
