// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// fold: computes constants, drops operations without effect, takes branches whose condition is
// known.
//
// One walk in program order, so the operands of an instruction are already simplified; a map holds
// the replacement of each value. simplify.c has the rules about single instructions. The rules
// about blocks are here: branches and loops with known trips, carried values that never change, and
// the truth of a condition inside its branch.
//
//     let a: i32 = add(i32(2), i32(3));
//     let c: bool = lt(a, i32(8));
//     let x: i32 = if c { yield a; } else { yield n; }     ->     store(Y[0], i32(5));
//     store(Y[0], x);
//
// Not done here: reassociating floats, unrolling, integer ranges (see ir/range.h).

#include "ir/walk.h"
#include "pass/clean/simplify.h"
#include "pass/pass.h"

struct fold {
    struct tir_func *f;
    struct tir_map replaced; // value -> value
    bool changed;
};

static void fold_block(struct fold *fold, struct tir_block *block);

static struct tir_value *resolve(const struct fold *fold, struct tir_value *v)
{
    struct tir_value *to;
    while (v && (to = tir_map_get(&fold->replaced, tir_map_key(v))))
        v = to;
    return v;
}

static void replace(struct fold *fold, struct tir_value *from, struct tir_value *to)
{
    tir_map_set(&fold->replaced, tir_map_key(from), to);
    if (!to->name && to->kind == TIR_VALUE_RESULT && from->kind == TIR_VALUE_RESULT)
        to->name = from->name;
    fold->changed = true;
}

static bool const_of(const struct tir_value *v, int64_t *out) // bool too
{
    *out = v->constant.i;
    return v->kind == TIR_VALUE_CONST && !tir_elem_is_float(v->type->elem);
}

// Blocks that run once or never.

// Moves what block does in front of inst and gives inst's results its yielded values. Returns the
// first instruction to go on with.
static struct tir_inst *inline_block(struct fold *fold, struct tir_inst *inst,
                                     struct tir_block *block)
{
    struct tir_inst *first = NULL, *yield = tir_yield_of(block);
    while (block->first != yield) {
        struct tir_inst *moved = block->first;
        tir_move_before(moved, inst);
        first = first ? first : moved;
    }
    for (uint32_t i = 0; i < inst->result_count; i++)
        replace(fold, inst->results[i], yield->operands[i]);
    struct tir_inst *next = first ? first : inst->next;
    tir_remove(inst);
    fold->changed = true;
    return next;
}

static struct tir_inst *drop_loop(struct fold *fold, struct tir_inst *inst)
{
    struct tir_inst *next = inst->next;
    uint32_t fixed = tir_fixed_count(inst);
    for (uint32_t i = 0; i < inst->result_count; i++)
        replace(fold, inst->results[i], inst->operands[fixed + i]);
    tir_remove(inst);
    fold->changed = true;
    return next;
}

enum trips { NO_TRIP, ONE_TRIP, SOME_TRIPS };

static enum trips trips_of(const struct tir_inst *loop)
{
    const struct tir_value *b = loop->operands[TIR_FOR_BEGIN], *e = loop->operands[TIR_FOR_END];
    int64_t begin, end, step, distance;
    if (b == e)
        return NO_TRIP;
    if (!const_of(b, &begin) || !const_of(e, &end))
        return SOME_TRIPS;
    bool is_unsigned = tir_elems[b->type->elem].kind == TIR_KIND_UNSIGNED;
    if (is_unsigned ? (uint64_t)begin >= (uint64_t)end : begin >= end)
        return NO_TRIP;
    bool once = const_of(loop->operands[TIR_FOR_STEP], &step) &&
                tir_sub_checked(end, begin, &distance) && distance > 0 && step >= distance;
    return once ? ONE_TRIP : SOME_TRIPS;
}

static bool has_effect(const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next)
        if (tir_has_effect(inst))
            return true;
    return false;
}

// Carried values.

static uint32_t without(struct tir_value **values, uint32_t count, uint32_t at)
{
    for (uint32_t i = at; i + 1 < count; i++)
        values[i] = values[i + 1];
    return count - 1;
}

static void drop_slot(struct fold *fold, struct tir_inst *loop, uint32_t slot)
{
    uint32_t fixed = tir_fixed_count(loop), lead = loop->op == TIR_OP_FOR;
    struct tir_value *init = loop->operands[fixed + slot];
    for (uint32_t r = 0; r < loop->region_count; r++) {
        struct tir_block *block = loop->regions[r];
        struct tir_inst *yield = tir_yield_of(block);
        replace(fold, block->args[lead + slot], init);
        block->arg_count = without(block->args, block->arg_count, lead + slot);
        for (uint32_t i = lead + slot; i < block->arg_count; i++)
            block->args[i]->index = i;
        if (r + 1 == loop->region_count) // the body; before it may come a while's condition
            yield->operand_count = without(yield->operands, yield->operand_count, slot);
    }
    replace(fold, loop->results[slot], init);
    loop->operand_count = without(loop->operands, loop->operand_count, fixed + slot);
    loop->result_count = without(loop->results, loop->result_count, slot);
    for (uint32_t i = slot; i < loop->result_count; i++)
        loop->results[i]->index = i;
}

// Carried values that are yielded as they came, or as they began.
static void drop_unchanging(struct fold *fold, struct tir_inst *loop)
{
    uint32_t fixed = tir_fixed_count(loop), lead = loop->op == TIR_OP_FOR;
    const struct tir_block *body = loop->regions[loop->region_count - 1];
    for (uint32_t slot = loop->result_count; slot-- > 0;) {
        struct tir_value *next = resolve(fold, tir_yield_of(body)->operands[slot]);
        if (next == body->args[lead + slot] || next == loop->operands[fixed + slot])
            drop_slot(fold, loop, slot);
    }
}

// Instructions with blocks. Each returns where to go on.

static struct tir_inst *fold_for(struct fold *fold, struct tir_inst *loop)
{
    enum trips trips = trips_of(loop);
    if (trips == NO_TRIP)
        return drop_loop(fold, loop);
    struct tir_block *body = loop->regions[0];
    if (trips == ONE_TRIP) {
        replace(fold, body->args[0], loop->operands[TIR_FOR_BEGIN]);
        for (uint32_t i = 0; i < loop->result_count; i++)
            replace(fold, body->args[1 + i], loop->operands[TIR_FOR_INIT + i]);
        return inline_block(fold, loop, body);
    }
    drop_unchanging(fold, loop);
    fold_block(fold, body);
    return loop->next;
}

static struct tir_inst *fold_while(struct fold *fold, struct tir_inst *loop)
{
    drop_unchanging(fold, loop);
    fold_block(fold, loop->regions[0]);
    fold_block(fold, loop->regions[1]);
    int64_t on;
    if (const_of(tir_yield_of(loop->regions[0])->operands[0], &on) && !on &&
        !has_effect(loop->regions[0]))
        return drop_loop(fold, loop);
    return loop->next;
}

// In each branch the condition is known.
static void fold_branch(struct fold *fold, struct tir_inst *inst, bool taken)
{
    struct tir_value *c = inst->operands[0];
    tir_map_set(&fold->replaced, tir_map_key(c), tir_const_bool(fold->f, taken));
    fold_block(fold, inst->regions[!taken]);
    tir_map_set(&fold->replaced, tir_map_key(c), NULL);
}

static struct tir_inst *fold_if(struct fold *fold, struct tir_inst *inst)
{
    int64_t taken;
    struct tir_value *c = inst->operands[0];
    if (const_of(c, &taken))
        return inline_block(fold, inst, inst->regions[!taken]);
    fold_branch(fold, inst, true);
    fold_branch(fold, inst, false);
    struct tir_inst *yes = tir_yield_of(inst->regions[0]), *no = tir_yield_of(inst->regions[1]);
    for (uint32_t i = 0; i < inst->result_count; i++) {
        int64_t a, b;
        if (yes->operands[i] == no->operands[i])
            replace(fold, inst->results[i], yes->operands[i]);
        else if (inst->results[i]->type == c->type && const_of(yes->operands[i], &a) && a &&
                 const_of(no->operands[i], &b) && !b)
            replace(fold, inst->results[i], c);
    }
    return inst->next;
}

// Instructions without a result that may turn out to do nothing.
static bool does_nothing(const struct tir_inst *inst)
{
    int64_t c;
    switch (inst->op) {
    case TIR_OP_ASSUME:
        return const_of(inst->operands[0], &c) && c;
    case TIR_OP_STORE:
        return inst->operands[TIR_STORE_MASK] && const_of(inst->operands[TIR_STORE_MASK], &c) && !c;
    case TIR_OP_ST: // base, at, pred
        return inst->operands[2] && const_of(inst->operands[2], &c) && !c;
    default:
        return false;
    }
}

// Words that are loaded where the predicate is false are zero; false: inst is no such load.
static bool drop_load(struct fold *fold, const struct tir_inst *inst)
{
    int64_t c;
    if (inst->op != TIR_OP_LD || !inst->operands[2] || !const_of(inst->operands[2], &c) || c)
        return false;
    for (uint32_t i = 0; i < inst->result_count; i++)
        replace(fold, inst->results[i], tir_const_like(fold->f, inst->results[i]->type, 0));
    return true;
}

// Does operand i of inst say something of each element, whatever its layout?
static bool is_by_element(const struct tir_inst *inst, uint32_t i)
{
    bool stores = inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC;
    return tir_is_elementwise(inst) || (stores && i == TIR_STORE_MASK) ||
           (inst->op == TIR_OP_ATOMIC && i == TIR_ATOMIC_EXPECTED) ||
           (inst->op == TIR_OP_LOAD && i == TIR_LOAD_MASK);
}

// The replacement of an operand. A stored tile that turns out constant keeps its layout, which
// broadcast gives it; elsewhere that is the constant.
static struct tir_value *operand(struct fold *fold, struct tir_inst *inst, uint32_t i)
{
    struct tir_value *old = inst->operands[i], *v = resolve(fold, old);
    bool stored = i == TIR_STORE_VALUE && (inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC);
    bool repeats = v && v->def && v->def->op == TIR_OP_BROADCAST &&
                   v->def->operands[0]->kind == TIR_VALUE_CONST;
    if (repeats && is_by_element(inst, i)) {
        fold->changed = true;
        return tir_const_as(fold->f, v->type, v->def->operands[0]);
    }
    if (!stored || v->kind != TIR_VALUE_CONST || !old->type->layout)
        return v;
    struct tir_value *one = tir_const_element(fold->f, v);
    struct tir_builder b = tir_builder_before(fold->f, inst);
    return tir_build1(&b, TIR_OP_BROADCAST, old->type, &one, 1);
}

static struct tir_inst *fold_inst(struct fold *fold, struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        inst->operands[i] = operand(fold, inst, i);
    switch (inst->op) {
    case TIR_OP_FOR:
        return fold_for(fold, inst);
    case TIR_OP_WHILE:
        return fold_while(fold, inst);
    case TIR_OP_IF:
        return fold_if(fold, inst);
    default:
        break;
    }
    struct tir_inst *next = inst->next;
    for (uint32_t r = 0; r < inst->region_count; r++)
        fold_block(fold, inst->regions[r]);
    struct tir_builder b = tir_builder_before(fold->f, inst);
    struct tir_value *r = tir_simplify(&b, inst, &fold->changed);
    if (r)
        replace(fold, inst->results[0], r);
    if (r || does_nothing(inst) || drop_load(fold, inst)) {
        tir_remove(inst);
        fold->changed = true;
    }
    return next;
}

static void fold_block(struct fold *fold, struct tir_block *block)
{
    struct tir_inst *inst = block->first;
    while (inst)
        inst = fold_inst(fold, inst);
}

enum tir_change tir_pass_fold(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct fold fold = {.f = f};
    tir_map_init(&fold.replaced, cx->scratch);
    fold_block(&fold, f->body);
    fold_block(&fold, f->host);
    return fold.changed ? TIR_CHANGED : TIR_UNCHANGED;
}
