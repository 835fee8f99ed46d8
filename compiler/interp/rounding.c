// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How far a right device may be from the interpreter: which outputs come of a rounding that may go
// the other way.
//
// A sum is right in any order of addition, an approximate function within its error. Rounded to a
// coarser type, two such values that are nearly equal may become neighbours of that type, a unit
// in its last place apart:
//     D = dot(tf32(dot(a, b)), tf32(c));      D is f32, its first factor is known to 2^-11
// What is loaded and what comes of it by operations of IEEE 754 is the same everywhere, and so are
// its roundings: dot(tf32(a), tf32(b)) of tensors that are read is held to f32.
//
// A value is NONE while it is exact, the same on every device. Else it has the coarsest type of the
// inexact values that it comes of. Facts only grow coarser, in as many rounds as loops and memory
// need.
#include "interp/interp.h"
#include "ir/effect.h"
#include "ir/walk.h"

#define EXACT TIR_NONE

struct rounding {
    enum tir_elem *of; // by value id; of a buffer, what is in it
    bool changed;
};

static enum tir_elem coarser(enum tir_elem a, enum tir_elem b)
{
    if (a == EXACT || b == EXACT)
        return a == EXACT ? b : a;
    return tir_elems[b].mantissa < tir_elems[a].mantissa ? b : a;
}

// Does inst give something else in another order, or on another device, for the same operands?
static bool is_inexact(const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_REDUCE:
    case TIR_OP_SCAN:
    case TIR_OP_ATOMIC:
        switch (tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE)) {
        case TIR_WORD_kind_sum:
        case TIR_WORD_kind_prod:
        case TIR_WORD_kind_add:
        case TIR_WORD_kind_user:
            return true;
        default:
            return false;
        }
    case TIR_OP_DOT:
    case TIR_OP_GEMM_ASYNC:
    case TIR_OP_DIV: // where it is rounded to 16 bits, to 2^-21
    case TIR_OP_DIV_APPROX:
    case TIR_OP_EXP:
    case TIR_OP_EXP2:
    case TIR_OP_LOG:
    case TIR_OP_LOG2:
    case TIR_OP_SQRT:
    case TIR_OP_RSQRT:
    case TIR_OP_SIN:
    case TIR_OP_COS:
    case TIR_OP_TANH:
    case TIR_OP_TANH_APPROX:
    case TIR_OP_ERF:
    case TIR_OP_POW:
        return true;
    default:
        return false;
    }
}

static void grow(struct rounding *r, const struct tir_value *v, enum tir_elem with)
{
    enum tir_elem now = coarser(r->of[v->id], with);
    r->changed |= now != r->of[v->id];
    r->of[v->id] = now;
}

// An inexact value counts with its own type too.
static void give(struct rounding *r, const struct tir_value *v, enum tir_elem with, bool inexact)
{
    if (tir_elem_is_float(v->type->elem) && (inexact || with != EXACT))
        with = coarser(with, v->type->elem);
    grow(r, v, with);
}

// What a block yields is what its owner gives; a loop's is also what its next round takes.
static void regions(struct rounding *r, const struct tir_inst *inst)
{
    const uint32_t carried = tir_carries(inst) ? inst->result_count : 0;
    for (uint32_t b = 0; b < inst->region_count; b++) {
        const struct tir_block *block = inst->regions[b];
        const struct tir_inst *yield = tir_yield_of(block);
        for (uint32_t i = 0; i < carried; i++) {
            const struct tir_value *arg = block->args[block->arg_count - carried + i];
            grow(r, arg, r->of[inst->operands[tir_carried_at(inst) + i]->id]);
            grow(r, arg, r->of[inst->results[i]->id]);
            grow(r, inst->results[i], r->of[arg->id]);
        }
        const bool tests = inst->op == TIR_OP_WHILE && b == 0; // yields the condition
        const uint32_t count = yield && !tests ? inst->result_count : 0;
        for (uint32_t i = 0; i < count; i++)
            give(r, inst->results[i], r->of[yield->operands[i]->id], false);
    }
}

static void step(struct rounding *r, const struct tir_inst *inst)
{
    enum tir_elem from = EXACT;
    const bool inexact = is_inexact(inst);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i] && !tir_type_is_buffer(inst->operands[i]->type))
            from = coarser(from, r->of[inst->operands[i]->id]);
    tir_foreach_effect(e, inst)
        if (e->access != TIR_ACCESS_WRITE)
            from = coarser(from, r->of[tir_buffer_root(tir_effect_buffer(inst, e))->id]);
    tir_foreach_effect(e, inst)
        if (e->access != TIR_ACCESS_READ)
            give(r, tir_buffer_root(tir_effect_buffer(inst, e)), from, inexact);
    if (inst->region_count && !inexact) {
        regions(r, inst);
        return;
    }
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (!tir_type_is_buffer(inst->results[i]->type))
            give(r, inst->results[i], from, inexact);
}

void tir_interp_rounding(struct tir_arena *arena, struct tir_func *f, enum tir_elem *rounded)
{
    struct rounding r = {.of = arena_array(arena, enum tir_elem, f->value_count), .changed = true};
    while (r.changed) {
        r.changed = false;
        tir_foreach_inst(inst, f)
            step(&r, inst);
    }
    for (uint32_t i = 0; i < f->param_count; i++)
        rounded[i] = r.of[f->params[i].value->id];
}
