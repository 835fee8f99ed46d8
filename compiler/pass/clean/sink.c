// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sink: computes beside sums from tensor memory what is used next, where registers do not last.
//
// An operation on tiles becomes one on each register after the other. So what a tile of sums is
// added to, say, is there as a whole before the first element is stored:
//
//     let s0: i32, s1: i32, ... = tmem_ld(...);    let s0: i32, s1: i32, ... = tmem_ld(...);
//     let x0: f32, x1: f32 = ld(X, at0);           let x0: f32, x1: f32 = ld(X, at0);
//     let x2: f32, x3: f32 = ld(X, at1);           let y0: f32 = add(s0, x0);
//     ...                                     ->   let y1: f32 = add(s1, x1);
//     let y0: f32 = add(s0, x0);                   st(Y, to0, y0, y1);
//     ...                                          let x2: f32, x3: f32 = ld(X, at1);
//     st(Y, to0, y0, y1);                          ...
//
// Instructions with effects keep their order. Each comes after what it needs and nothing else, but
// for what takes no more registers than it frees, which follows at once. Loads are of tensors that
// the kernel does not write, and only move down.
//
// Before that each role gets its own copy of numbers that several roles read (in_roles.c), and what
// waits for a slot to be stored does so packed: two numbers of 16 bits, or four of 8, a register.
// What is added to sums that an if loads is added there (in_branches.c), and tensor memory is moved
// in pieces (pieces.c), both where registers do not last.
//
// After that loads are kept apart, where ptxas would move too many ahead (apart.c). Loops of
// products on warpgroups hold less, where registers do not last (held.c).
//
// Left alone are blocks without such sums, and those whose values are counted to fit: ptxas orders
// them better, with loads ahead of their uses.

#include "base/bitset.h"
#include "base/vec.h"
#include "ir/live.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "pass/clean/apart.h"
#include "pass/clean/held.h"
#include "pass/clean/in_branches.h"
#include "pass/clean/in_roles.h"
#include "pass/clean/pieces.h"
#include "pass/pass.h"

typedef VEC(struct tir_inst *) inst_list;

struct sink {
    struct tir_func *f;
    struct tir_arena *scratch;
    const struct tir_live *live;
    uint32_t overcount;              // percent by which values may be counted too high
    VEC(struct tir_block *) ordered; // which load tensors that the kernel writes
    bool changed;
    // Of the present block.
    struct tir_block *block;
    struct bitset made; // values in it, by id
    struct bitset done; // instructions that are in the new order, by id
    uint32_t *left;     // uses of a value that are not, by id
    inst_list *users;   // in the block itself, of values made in it, by id
    inst_list out, stack, ready;
};

static bool is_load(const struct sink *s, const struct tir_inst *inst)
{
    if (inst->op != TIR_OP_LD)
        return false;
    for (uint32_t i = 0; i < s->f->param_count; i++)
        if (s->f->params[i].value == inst->operands[0])
            return s->f->params[i].direction == TIR_IN;
    return false;
}

static bool is_computed(const struct tir_inst *inst)
{
    return tir_has_trait(inst, TIR_PURE) && !inst->region_count && inst->result_count &&
           inst->op != TIR_OP_MMA;
}

// A condition takes a register, too, where there are many.
static uint32_t registers_of(const struct tir_value *v)
{
    return tir_type_is_scalar(v->type) && v->type->elem == TIR_BOOL ? 1 : tir_live_registers(v);
}

static bool is_made_here(const struct sink *s, const struct tir_value *v)
{
    return v && v->kind != TIR_VALUE_CONST && bitset_has(&s->made, v->id);
}

static bool is_open(const struct sink *s, const struct tir_value *v)
{
    return is_made_here(s, v) && v->kind == TIR_VALUE_RESULT && !bitset_has(&s->done, v->def->id);
}

static void count_block(struct sink *s)
{
    const uint32_t values = s->f->value_count;
    s->made = bitset_new(s->scratch, values);
    s->done = bitset_new(s->scratch, s->f->inst_count);
    s->left = arena_array(s->scratch, uint32_t, values);
    s->users = arena_array(s->scratch, inst_list, values);
    s->out.len = 0;
    for (uint32_t i = 0; i < s->block->arg_count; i++)
        bitset_insert(&s->made, s->block->args[i]->id);
    tir_foreach_inst_safe(inst, s->block) {
        for (uint32_t i = 0; i < inst->result_count; i++)
            bitset_insert(&s->made, inst->results[i]->id);
        tir_foreach_inst_within(in, inst)
            for (uint32_t i = 0; i < in->operand_count; i++) {
                const struct tir_value *v = in->operands[i];
                if (!is_made_here(s, v))
                    continue;
                s->left[v->id]++;
                vec_push(s->scratch, &s->users[v->id], inst);
            }
    }
}

// Does it take no more registers than are free after it, and is all there that it needs?
static bool is_for_nothing(const struct sink *s, const struct tir_inst *inst)
{
    uint32_t takes = 0, frees = 0;
    for (uint32_t i = 0; i < inst->result_count; i++)
        takes += registers_of(inst->results[i]);
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[i];
        uint32_t uses = 0, first = i;
        if (is_open(s, v))
            return false;
        for (uint32_t k = 0; k < inst->operand_count; k++) {
            uses += inst->operands[k] == v;
            first = inst->operands[k] == v ? TIR_MIN(first, k) : first;
        }
        if (first == i && is_made_here(s, v) && s->left[v->id] == uses)
            frees += registers_of(v);
    }
    return takes <= frees;
}

static void push_users(struct sink *s, const struct tir_value *v)
{
    vec_foreach(struct tir_inst *, user, &s->users[v->id])
        if (!bitset_has(&s->done, (*user)->id))
            vec_push(s->scratch, &s->ready, *user);
}

static void append(struct sink *s, struct tir_inst *inst)
{
    bitset_insert(&s->done, inst->id);
    vec_push(s->scratch, &s->out, inst);
    tir_foreach_inst_within(in, inst)
        for (uint32_t i = 0; i < in->operand_count; i++) {
            const struct tir_value *v = in->operands[i];
            if (is_made_here(s, v) && --s->left[v->id] == 1)
                push_users(s, v);
        }
    for (uint32_t i = 0; i < inst->result_count; i++)
        push_users(s, inst->results[i]);
}

static void append_with_ready(struct sink *s, struct tir_inst *inst)
{
    s->ready.len = 0;
    append(s, inst);
    for (uint32_t i = 0; i < s->ready.len; i++) { // which grows
        struct tir_inst *next = s->ready.at[i];
        if (!bitset_has(&s->done, next->id) && is_computed(next) && is_for_nothing(s, next))
            append(s, next);
    }
}

// After all that it needs.
static void demand(struct sink *s, struct tir_inst *inst)
{
    vec_push(s->scratch, &s->stack, inst);
    while (s->stack.len) {
        struct tir_inst *top = s->stack.at[s->stack.len - 1];
        const uint32_t before = s->stack.len;
        if (!bitset_has(&s->done, top->id))
            tir_foreach_inst_within(in, top)
                for (uint32_t i = in->operand_count; i-- > 0;)
                    if (is_open(s, in->operands[i]))
                        vec_push(s->scratch, &s->stack, in->operands[i]->def);
        if (s->stack.len > before)
            continue;
        s->stack.len--;
        if (!bitset_has(&s->done, top->id))
            append_with_ready(s, top);
    }
}

static void order(struct sink *s)
{
    struct tir_inst *last = s->block->last;
    count_block(s);
    tir_foreach_inst_safe(inst, s->block)
        if (!is_computed(inst) && !is_load(s, inst))
            demand(s, inst);
    tir_foreach_inst_safe(inst, s->block) // of which nothing is used
        demand(s, inst);
    vec_foreach(struct tir_inst *, inst, &s->out)
        if (*inst != last)
            tir_move_before(*inst, last);
    s->changed = true;
}

// Does the loop around it carry floats, as a loop of products its sums?
static bool is_carried_around(const struct tir_inst *inst)
{
    const struct tir_inst *loop = inst->block->owner;
    while (loop && !tir_carries(loop))
        loop = loop->block->owner;
    for (uint32_t i = 0; loop && i < loop->result_count; i++)
        if (tir_elem_is_float(loop->results[i]->type->elem))
            return true;
    return false;
}

// Does it give sums: a load of them, or a loop of products after which they only leave?
static bool gives_sums(const struct tir_inst *inst)
{
    if (inst->op == TIR_OP_TMEM_LD)
        return true;
    if (tir_carries(inst) && !is_carried_around(inst))
        tir_foreach_inst_within(in, inst)
            if (in->op == TIR_OP_MMA)
                return true;
    return false;
}

// The most registers that are live in the block, but for loops in it. False: it gets no sums, or
// makes them itself.
static bool most_beside_sums(const struct tir_live *live, const struct tir_block *block,
                             uint32_t *most)
{
    bool any = false;
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (inst->op == TIR_OP_MMA)
            return false;
        any |= gives_sums(inst);
        for (uint32_t r = 0; r < inst->region_count && !tir_carries(inst); r++)
            any |= most_beside_sums(live, inst->regions[r], most);
        if (!inst->region_count)
            *most = TIR_MAX(*most, tir_live_most(live, inst));
    }
    return any;
}

// Registers loaded from tensors that the kernel writes: ptxas moves none of these behind a store.
static uint32_t loaded_early(const struct sink *s, const struct tir_block *block)
{
    uint32_t loaded = 0;
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next)
        if (inst->op == TIR_OP_LD && inst->operands[0]->type->space == TIR_SPACE_GLOBAL &&
            !is_load(s, inst))
            loaded += inst->result_count;
    return loaded;
}

// What is inside first: what it needs comes in the order in which it needs it.
static void visit(struct sink *s, struct tir_block *block)
{
    uint32_t most = 0;
    const uint32_t limit = block->first ? tir_live_limit(s->f, block->first) : 0;
    const uint32_t early = loaded_early(s, block);
    tir_foreach_inst_safe(inst, block)
        for (uint32_t r = 0; r < inst->region_count; r++)
            visit(s, inst->regions[r]);
    if (!most_beside_sums(s->live, block, &most) || most <= limit)
        return;
    if (most > limit + limit * s->overcount / 100 || most <= limit + early) {
        s->block = block;
        order(s);
        if (early)
            vec_push(s->scratch, &s->ordered, block);
    }
}

// What the pack waits for alone, if it is in its block: the last one that makes an operand. NULL:
// something else needs an operand, too, or nothing that has an effect stands between.
static struct tir_inst *packed_last(const struct tir_inst *pack, const uint32_t *uses)
{
    struct tir_inst *inst = pack->prev;
    bool is_apart = false;
    for (uint32_t i = 0; i < pack->operand_count; i++)
        if (pack->operands[i]->kind != TIR_VALUE_RESULT || uses[pack->operands[i]->id] != 1)
            return NULL;
    for (; inst; inst = inst->prev) {
        for (uint32_t i = 0; i < pack->operand_count; i++)
            if (pack->operands[i]->def == inst)
                return is_apart ? inst : NULL;
        is_apart |= inst->region_count || !tir_has_trait(inst, TIR_PURE);
    }
    return NULL;
}

// Packs small numbers where they are made, if an effect comes before their use: so they do not take
// a register each until a slot is free, say. True: it has.
static bool pack_early(struct tir_func *f, struct tir_arena *scratch)
{
    const uint32_t *uses = tir_count_uses(scratch, f);
    VEC(struct tir_inst *) packs = {0};
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_PACK && packed_last(inst, uses))
            vec_push(scratch, &packs, inst);
    vec_foreach(struct tir_inst *const, it, &packs)
        tir_move_before(*it, packed_last(*it, uses)->next);
    return packs.len;
}

enum tir_change tir_pass_sink(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct sink s = {.f = f, .scratch = cx->scratch};
    bool any = false, loads = false, products = false;
    tir_foreach_inst(inst, f) {
        any |= gives_sums(inst);
        loads |= inst->op == TIR_OP_TMEM_LD;
        products |= inst->op == TIR_OP_WGMMA;
    }
    s.changed = products && tir_hold_less(f, cx->scratch);
    if (!any)
        return s.changed ? TIR_CHANGED : TIR_UNCHANGED;
    if (loads && tir_compute_in_roles(f, cx->scratch)) {
        s.changed = true;
        tir_pass_dce(f, cx); // what was made for all roles
    }
    if (loads)
        s.changed |= pack_early(f, cx->scratch);
    if (loads) {
        s.changed |= tir_compute_in_branches(f, cx->scratch);
        s.changed |= tir_move_in_pieces(f, cx->scratch);
    }
    s.live = tir_live_new(cx->scratch, f);
    s.overcount = loads ? TIR_BUDGET_SINK_OVERCOUNT : 0;
    visit(&s, f->body);
    s.changed |= tir_keep_apart(f, cx->target, s.ordered.at, s.ordered.len, cx->scratch);
    return s.changed ? TIR_CHANGED : TIR_UNCHANGED;
}
