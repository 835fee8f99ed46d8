// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums that an if gives are added in its branch to what there was before it.
//
// A loop may have no round, so its sums are loaded in an if. What they are added to, as the sums of
// another output or what the accumulator began with, takes registers beside them if that is done
// behind the if; in the branch, a sum has the register of what it is added to as soon as it is
// loaded, in pieces:
//
//     let o: f32 = if any {              let o: f32 = if any {
//         ...                                ...
//     } else {                           } else {
//         yield 0;                           yield 0;
//     }                                  }
//     let u: f32 = if any {              let y: f32 = if any {
//         let s: i32 = tmem_ld(at);          let s: i32 = tmem_ld(at);
//         let t: f32 = bitcast(s);   ->      let t: f32 = bitcast(s);
//         yield t;                           let a: f32 = add(o, t);
//     } else {                               yield a;
//         yield 0;                       } else {
//     }                                      yield o;
//     let y: f32 = add(o, u);            }
//
// In the other branch it is o and not 0: zeros would take registers beside o, since LLVM makes them
// in front of the branch. What is not 0 there itself may be -0, of which the sum is 0. A comparison
// gives that: of two additions LLVM would make one behind the branches. Left alone are ifs beside
// which registers last.

#include "pass/clean/in_branches.h"

#include "base/vec.h"
#include "ir/live.h"
#include "ir/walk.h"
#include "pass/clean/pieces.h"

#include <math.h>

struct in_branches {
    struct tir_func *f;
    const uint32_t *uses;
    struct tir_inst **user; // the last one of a value, by id
    struct tir_order order;
    struct tir_map moved; // results that are others now
};

static bool loads_sums(const struct tir_inst *branch)
{
    tir_foreach_inst_within(in, branch)
        if (in->op == TIR_OP_TMEM_LD)
            return true;
    return false;
}

// Does the other branch of the if that gives v give 0, and does one instruction use v alone?
static bool is_0_without(const struct in_branches *in, const struct tir_value *v)
{
    if (!v->def || v->def->op != TIR_OP_IF || in->uses[v->id] != 1)
        return false;
    const struct tir_value *other = tir_yield_of(v->def->regions[1])->operands[v->index];
    return other->kind == TIR_VALUE_CONST && tir_elem_is_float(v->type->elem) &&
           other->constant.f == 0 && !signbit(other->constant.f);
}

// The addition behind the branch of its result v to what there was before it. NULL: there is none.
static struct tir_inst *addition_of(const struct in_branches *in, const struct tir_inst *branch,
                                    const struct tir_value *v)
{
    struct tir_inst *add = in->user[v->id];
    if (!add || add->op != TIR_OP_ADD || add->block != branch->block || !is_0_without(in, v))
        return NULL;
    const struct tir_value *other = add->operands[add->operands[0] == v];
    return other->kind != TIR_VALUE_RESULT ||
                   in->order.begin[other->def->id] < in->order.begin[branch->id]
               ? add
               : NULL;
}

// Is `other` 0 wherever the branch gives 0?
static bool is_0_beside(const struct in_branches *in, const struct tir_inst *branch,
                        const struct tir_value *other)
{
    return is_0_without(in, other) && other->def->operands[0] == branch->operands[0];
}

// The sum of `other` and the 0 that v is in the other branch.
static struct tir_value *without(struct in_branches *in, const struct tir_inst *branch,
                                 const struct tir_value *v, struct tir_value *other)
{
    struct tir_inst *yield = tir_yield_of(branch->regions[1]);
    struct tir_value *zero = yield->operands[v->index];
    if (is_0_beside(in, branch, other))
        return other;
    struct tir_builder b = tir_builder_before(in->f, yield);
    struct tir_value *operands[] = {tir_binary(&b, TIR_OP_EQ, other, zero), zero, other};
    return tir_build1(&b, TIR_OP_WHERE, other->type, operands, 3);
}

static void move_in(struct in_branches *in, struct tir_inst *branch, struct tir_value *v,
                    struct tir_inst *add)
{
    struct tir_inst *yield = tir_yield_of(branch->regions[0]);
    struct tir_value **given = &yield->operands[v->index];
    struct tir_value *operands[] = {add->operands[0], add->operands[1]};
    const uint32_t at = operands[0] != v;
    const bool is_made_here = (*given)->def && (*given)->def->block == yield->block;
    struct tir_builder b = tir_builder_before(in->f, is_made_here ? (*given)->def->next : yield);
    tir_yield_of(branch->regions[1])->operands[v->index] = without(in, branch, v, operands[!at]);
    operands[at] = *given;
    *given = tir_build1(&b, TIR_OP_ADD, v->type, operands, 2);
    tir_map_set(&in->moved, tir_map_key(add->results[0]), v);
    tir_remove(add);
}

bool tir_compute_in_branches(struct tir_func *f, struct tir_arena *scratch)
{
    const struct tir_live *live = tir_live_new(scratch, f);
    struct in_branches in = {.f = f,
                             .uses = tir_count_uses(scratch, f),
                             .user = arena_array(scratch, struct tir_inst *, f->value_count),
                             .order = tir_order_of(scratch, f)};
    tir_map_init(&in.moved, scratch);
    VEC(struct tir_inst *) branches = {0};
    tir_foreach_inst(inst, f) {
        for (uint32_t i = 0; i < inst->operand_count; i++)
            if (inst->operands[i])
                in.user[inst->operands[i]->id] = inst;
        if (inst->op == TIR_OP_IF && inst->result_count && loads_sums(inst) &&
            tir_live_most(live, inst) > tir_live_limit(f, inst))
            vec_push(scratch, &branches, inst);
    }
    bool changed = false;
    vec_foreach(struct tir_inst *const, it, &branches) {
        bool moves = false;
        for (uint32_t i = 0; i < (*it)->result_count; i++) {
            struct tir_inst *add = addition_of(&in, *it, (*it)->results[i]);
            if (add)
                move_in(&in, *it, (*it)->results[i], add);
            moves |= add != NULL;
        }
        if (moves)
            tir_foreach_inst_safe(inst, (*it)->regions[0])
                tir_cut_in_pieces(f, inst, &in.moved);
        changed |= moves;
    }
    if (changed)
        tir_replace_uses_map(f, &in.moved);
    return changed;
}
