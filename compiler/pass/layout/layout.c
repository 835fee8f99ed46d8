// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// layout: chooses where each element of each tile lives.
//
//     let x: f32[64, 128] = load(X[i:+64, 0:+128]);
//     let s: f32[64, 1] = reduce(x, axis = 1, kind = sum);
// becomes
//     let x: f32[64, 128] in S[(16, 4, 32, 4) : (4, 1@warpid, 1@laneid, 1)] = load(...);
//     let s: f32[64, 1] in S[(16, 4) : (1, 1@warpid)] + R[(32) : (1@laneid)] = reduce(x, ...);
//
// Layouts spread from anchors, the strictest first: layouts that the program states, accumulators
// of gemm_async and dot (wgmma and mma fragments), scans, then loads and stores by falling size
// (16-byte vectors along the contiguous dimension; warps along dimensions that are not reduced, so
// that a row stays in a warp). Each anchor spreads through elementwise operations, shape changes,
// reductions and loop-carried values to all values without a layout. Where two layouts meet, a
// convert_layout is inserted, or the value is computed again if that costs nothing (iota and
// broadcasts of scalars). A store converts first if one instruction of it would touch less than a
// whole 32-byte sector in a row.
//
// Not done here: choosing between anchors by a global cost; the first claim wins.

#include "pass/layout/layout.h"
#include "ir/crew.h"
#include "machine/budget.h"
#include "pass/layout/choice.h"
#include "pass/layout/dot.h"
#include "pass/layout/late.h"
#include "pass/layout/pressure.h"
#include "pass/layout/rounded.h"
#include "pass/layout/staging.h"
#include "pass/layout/stream.h"
#include "pass/layout/warpgroup.h"

// Of 64 bits, each counts as two.
static int64_t count_held(const struct tir_type *t)
{
    return tir_type_count(t) * (tir_elems[t->elem].bits > 32 ? 2 : 1);
}

// Elements of tiles that threads hold while they compute the dot: its sums, and what the loop
// around it carries, which the sums are part of unless they begin from nothing.
static int64_t held_elements(const struct tir_inst *dot)
{
    const struct tir_value *acc = dot->operands[TIR_DOT_ACC];
    int64_t sums = count_held(dot->results[0]->type), carried = 0;
    const struct tir_inst *loop = dot->block->owner;
    for (uint32_t i = 0; loop && loop->op == TIR_OP_FOR && i < loop->result_count; i++)
        if (tir_type_is_tile(loop->results[i]->type))
            carried += count_held(loop->results[i]->type);
    return acc->kind == TIR_VALUE_CONST ? sums + carried : TIR_MAX(sums, carried);
}

// Where no tensor is known to be aligned to 16 bytes, a copy takes many instructions. Scratch
// tensors, which nearly always are, say nothing of the others.
static bool copies_are_narrow(const struct tir_func *f)
{
    for (uint32_t i = 0; i < f->param_count; i++)
        if (f->params[i].aligned >= 16 && !f->params[i].is_scratch)
            return false;
    return !(f->facts & TIR_FACT_VECTOR16);
}

// Does ptxas make the product of conversions and products of f16, for which it needs registers?
static bool is_emulated(const struct tir_inst *dot, const struct tir_target *target)
{
    const struct tir_type *a = dot->operands[TIR_DOT_A]->type;
    return tir_elems[a->elem].bits == 8 && tir_elem_is_float(a->elem) &&
           !(target->features & TIR_HAS_FP8_UNITS);
}

int64_t tir_tile_parts(const struct tir_type *t)
{
    int64_t parts = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        parts *= tir_power_in(t->shape[d]);
    return parts;
}

uint32_t tir_stated_threads(const struct tir_func *f)
{
    uint32_t warps = 0;
    if (f->threads)
        return f->threads;
    tir_foreach_inst(inst, f)
        for (uint32_t r = 0; r < inst->result_count; r++) {
            const struct tir_type *t = inst->results[r]->type;
            if (tir_type_is_tile(t) && t->layout)
                warps = TIR_MAX(warps, tir_layout_size(t->layout, TIR_AXIS_WARP));
        }
    return 32 * TIR_MIN(warps, 32);
}

// Have the threads of so many warps registers for the tiles that live beside each product?
static bool has_registers(const struct tir_func *f, const struct tir_pressure *pressure,
                          uint32_t warps)
{
    const int64_t threads = 32 * (int64_t)warps,
                  each = tir_launch_registers(32 * warps) - TIR_BUDGET_BESIDE_MMA;
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_DOT && tir_pressure_at(pressure, inst) > threads * each)
            return false;
    return true;
}

uint32_t tir_choose_threads(const struct tir_func *f, const struct tir_pass_cx *cx)
{
    const uint32_t stated = tir_stated_threads(f);
    if (stated)
        return stated;
    bool is_narrow = copies_are_narrow(f);
    int64_t largest = 1, held = 0, share = TIR_BUDGET_THREAD_ELEMENTS;
    tir_foreach_inst(inst, f) {
        if (inst->op == TIR_OP_PERMUTE && tir_type_is_tile(inst->results[0]->type))
            share = TIR_BUDGET_PATCH_ELEMENTS;
        for (uint32_t r = 0; r < inst->result_count; r++) {
            const struct tir_type *t = inst->results[r]->type;
            largest = tir_type_is_tile(t) ? TIR_MAX(largest, tir_type_count(t)) : largest;
        }
        if (inst->op != TIR_OP_DOT)
            continue;
        held = TIR_MAX(held, held_elements(inst));
        is_narrow |= is_emulated(inst, cx->target);
    }
    int64_t sums = is_narrow ? TIR_BUDGET_NARROW_WARP_SUMS : TIR_BUDGET_WARP_SUMS;
    int64_t want = held ? held / sums : largest / (32 * share);
    uint32_t most = held                              ? TIR_BUDGET_PRODUCT_WARPS
                    : largest > TIR_BUDGET_LARGE_TILE ? TIR_BUDGET_LARGE_TILE_WARPS
                                                      : TIR_BUDGET_MOST_WARPS;
    uint32_t warps = TIR_BUDGET_LEAST_WARPS;
    while (warps < want && warps < most)
        warps *= 2;
    const struct tir_pressure *pressure =
        held && warps < most ? tir_pressure_new(cx->scratch, f) : NULL;
    while (pressure && warps < most && !has_registers(f, pressure, warps))
        warps *= 2;
    if (held && warps < most && cx->attempt && cx->attempt->more_warps)
        warps *= 2;
    return 32 * warps;
}

// Do the layouts that the program states fit the number of threads, which it does not state?
static bool check_stated(const struct tir_func *f, struct tir_pass_cx *cx)
{
    tir_foreach_inst(inst, f)
        for (uint32_t r = 0; r < inst->result_count; r++) {
            const struct tir_type *t = inst->results[r]->type;
            if (!tir_type_is_tile(t) || !t->layout ||
                tir_layout_is_spread(t->layout, f->threads / 32))
                continue;
            tir_error_at(cx->diags, inst->span, TIR_E_THREADS, TIR_NOT_SPREAD,
                         tir_type_text(cx->scratch, t).ptr, f->threads);
            return false;
        }
    return true;
}

static void spread_constant(struct tir_func *f, struct tir_inst *inst, uint32_t at)
{
    struct tir_value *x = inst->operands[at];
    if (x->kind != TIR_VALUE_CONST || !tir_type_is_tile(x->type))
        return;
    struct tir_value *one = tir_const_element(f, x);
    struct tir_builder b = tir_builder_before(f, inst);
    inst->operands[at] = tir_build1(&b, TIR_OP_BROADCAST, x->type, &one, 1);
}

// A constant has no layout, which reductions, scans and stores need: a broadcast takes its place.
static void spread_constants(struct tir_func *f)
{
    tir_foreach_inst(inst, f) {
        bool combines = inst->op == TIR_OP_REDUCE || inst->op == TIR_OP_SCAN;
        bool takes = combines || inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC;
        uint32_t count = combines ? tir_combined_count(inst) : takes;
        for (uint32_t i = 0; i < count; i++)
            spread_constant(f, inst, combines ? tir_combined_at(inst, i) : 0);
    }
}

enum tir_change tir_pass_layout(struct tir_func *f, struct tir_pass_cx *cx)
{
    const bool is_stated = f->threads;
    tir_choose_operands(f, cx);
    if (cx->target->features & TIR_HAS_WGMMA)
        tir_round_operands(f, cx);
    tir_plan_warpgroups(f, cx);
    tir_unround_operands(f);
    tir_widen_dots(f);
    if (cx->attempt && cx->attempt->late)
        tir_make_late(f, cx->scratch, cx->attempt->late);
    f->threads = tir_choose_threads(f, cx);
    if (!is_stated && !check_stated(f, cx))
        return TIR_FAILED;
    struct solver s = {.f = f,
                       .cx = cx,
                       .types = f->module->types,
                       .warps = f->threads / 32,
                       .on_warpgroups = tir_has_warpgroup_dot(f)};
    tir_solver_give_buffers_layouts(&s);
    tir_stream_loads(f, cx);
    tir_stage_dots(f, cx);
    spread_constants(f);

    s.value_count = f->value_count;
    s.of = arena_array(cx->scratch, const struct tir_layout *, s.value_count);
    s.uses = arena_array(cx->scratch, struct use *, s.value_count);
    tir_foreach_inst(inst, f) {
        s.on_warpgroups |= inst->op == TIR_OP_GEMM_ASYNC;
        if (inst->op == TIR_OP_REDUCE)
            vec_push(cx->scratch, &s.reduces, inst);
        if (inst->op == TIR_OP_PERMUTE && tir_type_is_tile(inst->results[0]->type))
            vec_push(cx->scratch, &s.transposes, inst);
        if (inst->op == TIR_OP_BROADCAST && tir_type_is_tile(inst->results[0]->type))
            vec_push(cx->scratch, &s.broadcasts, inst);
        if (inst->op == TIR_OP_LOAD && tir_type_is_tile(inst->results[0]->type))
            vec_push(cx->scratch, &s.loads, inst);
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            struct tir_value *v = inst->operands[i];
            if (!v)
                continue;
            struct use *u = arena_new(cx->scratch, struct use);
            *u = (struct use){inst, s.uses[v->id]};
            s.uses[v->id] = u;
        }
    }
    s.leaves_by_copies = s.on_warpgroups || (!f->grid_count && tir_has_tensor_memory(f));
    if (!tir_solver_anchor(&s))
        return TIR_FAILED;
    tir_solver_settle(&s);
    tir_pass_dce(f, cx); // what was laid out anew for all that use it
    return TIR_CHANGED;
}
