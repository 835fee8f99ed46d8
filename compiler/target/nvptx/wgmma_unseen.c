// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums of products in registers that LLVM does not see.
//
// To LLVM each operand of inline PTX is a tie, a copy and an extractvalue, and one that a loop
// carries is a phi too: the accumulators of a product were most of what it compiled. So sums that
// nothing but products and waits touch until a wait has given them are registers of PTX by name:
//
//     .reg .b32 %sum<128>;                                   // when the kernel begins
//     mov.b32 %sum0, 0; ...                                  // what the loop begins with
//     wgmma.mma_async... {%sum0, %sum1, ...}, ...            // no operand of LLVM's
//     wgmma.wait_group.sync.aligned 0;
//     mov.b32 $0, %sum0; ...                                 // what a wait gives, if it is read
//     cvt.rn.bf16x2.f32 %sum128, %sum1, %sum0; ...           // for stores of matrices alone
//     stmatrix... [$0], {%sum128, %sum129, ...};
//
// Values share a register if a product, a wait or a loop makes one of the other. Such a chain
// begins once, each of its values goes on at one place, in the block that it is made in, and is
// read, if at all, behind a wait: so no two of them are needed at the same time. What is packed of
// two has a register of its own: in that of a sum, ptxas 13.0 would move it before it is stored.

#include "ir/walk.h"
#include "target/nvptx/emit.h"

#include <inttypes.h>

struct chains { // of values, by id
    struct emit *e;
    uint32_t *parents;     // another value of the same chain; itself: it stands for the chain
    uint32_t *begins;      // of the value that stands for it: how often it begins
    uint32_t *goes_on;     // of each value
    struct bitset is_read; // each value; by what does not go on with it
    struct bitset is_bad;  // the value that stands for it: LLVM has to see it
    uint32_t *names;       // of the value that stands for it: its register, from 1; 0: none yet
};

static bool is_const(const struct tir_value *v)
{
    return v->kind == TIR_VALUE_CONST;
}

static uint32_t find(struct chains *c, uint32_t v)
{
    while (c->parents[v] != v)
        v = c->parents[v] = c->parents[c->parents[v]];
    return v;
}

// `from` goes on as `to`, which a loop or an operation in `block` takes.
static void go_on(struct chains *c, const struct tir_value *from, const struct tir_value *to,
                  const struct tir_block *block)
{
    if (is_const(from)) {
        bitset_insert(&c->is_bad, to->id);
        return;
    }
    const struct tir_block *made = from->def ? from->def->block : from->block;
    if (c->goes_on[from->id]++ || made != block)
        bitset_insert(&c->is_bad, from->id);
    c->parents[find(c, from->id)] = find(c, to->id);
}

static void read_all(struct chains *c, struct tir_value *const *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (values[i] && !is_const(values[i]))
            bitset_insert(&c->is_read, values[i]->id);
}

static void add_product(struct chains *c, const struct tir_inst *inst)
{
    uint32_t count;
    struct tir_value **registers = tir_list(inst, &count);
    const uint32_t in_a =
        inst->operands[TIR_WGMMA_A] ? 0 : 4 * (uint32_t)tir_attr_int(inst, TIR_ATTR_steps, 1);
    read_all(c, inst->operands, inst->operand_count - count);
    read_all(c, registers, in_a);
    for (uint32_t i = 0; i < inst->result_count; i++) {
        if (count == in_a || is_const(registers[in_a + i]))
            c->begins[inst->results[i]->id]++;
        else
            go_on(c, registers[in_a + i], inst->results[i], inst->block);
    }
}

static void add_loop(struct chains *c, const struct tir_inst *loop)
{
    const struct tir_block *body = loop->regions[0];
    const struct tir_inst *yield = tir_yield_of(body);
    read_all(c, loop->operands, TIR_FOR_INIT);
    for (uint32_t i = 0; i < loop->result_count; i++) {
        const struct tir_value *begin = loop->operands[TIR_FOR_INIT + i], *arg = body->args[i + 1];
        if (is_const(begin))
            c->begins[arg->id]++;
        else
            go_on(c, begin, arg, loop->block);
        go_on(c, yield->operands[i], arg, body);
        c->parents[find(c, loop->results[i]->id)] = find(c, arg->id);
    }
}

static void add(struct chains *c, const struct tir_inst *inst)
{
    const bool is_yield =
        inst->op == TIR_OP_YIELD && inst->block->owner && inst->block->owner->op == TIR_OP_FOR;
    switch (inst->op) {
    case TIR_OP_WGMMA:
        add_product(c, inst);
        return;
    case TIR_OP_FOR:
        add_loop(c, inst);
        return;
    case TIR_OP_AWAIT:
        for (uint32_t i = 0; i < inst->operand_count; i++)
            if (!is_const(inst->operands[i]))
                go_on(c, inst->operands[i], inst->results[i], inst->block);
        return;
    default:
        if (!is_yield) // the loop's
            read_all(c, inst->operands, inst->operand_count);
        return;
    }
}

// Is v made where a chain may go on, and read only where that can be seen?
static bool may_be_named(const struct chains *c, const struct tir_value *v)
{
    const bool is_read = bitset_has(&c->is_read, v->id);
    const struct tir_inst *owner = v->def || !v->block ? NULL : v->block->owner;
    if (!v->def)
        return owner && owner->op == TIR_OP_FOR && v->index > 0 && !is_read;
    return v->def->op == TIR_OP_AWAIT ||
           ((v->def->op == TIR_OP_WGMMA || v->def->op == TIR_OP_FOR) && !is_read);
}

typedef void value_fn(struct chains *c, const struct tir_value *v);

static void for_each_value(struct chains *c, value_fn *visit)
{
    for (uint32_t i = 0; i < c->e->f->body->arg_count; i++)
        visit(c, c->e->f->body->args[i]);
    tir_foreach_inst(inst, c->e->f) {
        for (uint32_t i = 0; i < inst->result_count; i++)
            visit(c, inst->results[i]);
        for (uint32_t r = 0; r < inst->region_count; r++)
            for (uint32_t i = 0; i < inst->regions[r]->arg_count; i++)
                visit(c, inst->regions[r]->args[i]);
    }
}

// Says of its chain what is known of v.
static void judge(struct chains *c, const struct tir_value *v)
{
    const uint32_t chain = find(c, v->id);
    if (bitset_has(&c->is_bad, v->id) || !may_be_named(c, v))
        bitset_insert(&c->is_bad, chain);
    if (chain != v->id)
        c->begins[chain] += c->begins[v->id];
}

// All sums of a product, or none of them. False: nothing has changed.
static bool spread(struct chains *c, const struct tir_inst *product)
{
    uint32_t bad = 0;
    for (uint32_t i = 0; i < product->result_count; i++) {
        const uint32_t chain = find(c, product->results[i]->id);
        bad += bitset_has(&c->is_bad, chain) || c->begins[chain] != 1;
    }
    bool changed = false;
    for (uint32_t i = 0; bad && i < product->result_count; i++)
        changed |= bitset_insert(&c->is_bad, find(c, product->results[i]->id));
    return changed;
}

static void name_sums(struct chains *c, const struct tir_inst *product)
{
    for (uint32_t i = 0; i < product->result_count; i++) {
        const uint32_t chain = find(c, product->results[i]->id);
        if (!bitset_has(&c->is_bad, chain) && !c->names[chain])
            c->names[chain] = ++c->e->sums;
    }
}

static void hand_on(struct chains *c, const struct tir_value *v)
{
    struct emit_slot *slot = &c->e->slots[v->id];
    slot->sum = c->names[find(c, v->id)];
    if (slot->sum)
        slot->v = LLVMGetPoison(tir_emit_type(c->e, v->type));
    slot->is_read = bitset_has(&c->is_read, v->id);
}

// The sum that an operand of a pack is cast from, if nothing else reads it; else NULL.
static const struct tir_value *packed_sum(struct emit *e, const struct tir_value *operand)
{
    const struct tir_inst *cast = operand->def;
    if (!cast || cast->op != TIR_OP_CAST || e->uses[operand->id] != 1)
        return NULL;
    const struct tir_value *sum = cast->operands[0];
    const enum tir_elem elem = operand->type->elem;
    const bool is_packed = tir_emit_is_sum(e, sum) && e->uses[sum->id] == 1 &&
                           sum->type->elem == TIR_F32 && (elem == TIR_BF16 || elem == TIR_F16);
    return is_packed && !tir_emit_pairs_early(e, cast->operands[0]) ? sum : NULL;
}

// How often stores of matrices read each value, by id.
static uint32_t *count_stores(struct emit *e)
{
    uint32_t *stores = arena_array(e->arena, uint32_t, e->f->value_count);
    tir_foreach_inst(inst, e->f) {
        uint32_t count;
        struct tir_value **values = inst->op == TIR_OP_STMATRIX ? tir_list(inst, &count) : NULL;
        for (uint32_t i = 0; values && i < count; i++)
            if (!is_const(values[i]))
                stores[values[i]->id]++;
    }
    return stores;
}

// A register packed of two sums has a name of its own if nothing but stores of matrices reads it.
static void find_pack(struct emit *e, const uint32_t *stores, const struct tir_inst *pack)
{
    if (pack->op != TIR_OP_PACK || pack->operand_count != 2)
        return;
    const struct tir_value *low = packed_sum(e, pack->operands[0]),
                           *high = packed_sum(e, pack->operands[1]);
    if (!low || !high || low->def != high->def)
        return;
    e->slots[low->id].pack = e->slots[high->id].pack = pack;
    const uint32_t packed = pack->results[0]->id;
    if (stores[packed] != e->uses[packed])
        return;
    e->slots[packed].sum = ++e->sums;
    e->slots[packed].v = LLVMGetPoison(tir_emit_type(e, pack->results[0]->type));
}

void tir_emit_find_sums(struct emit *e)
{
    const uint32_t count = e->f->value_count;
    struct chains c = {.e = e,
                       .parents = arena_array(e->arena, uint32_t, count),
                       .begins = arena_array(e->arena, uint32_t, count),
                       .goes_on = arena_array(e->arena, uint32_t, count),
                       .names = arena_array(e->arena, uint32_t, count),
                       .is_read = bitset_new(e->arena, count),
                       .is_bad = bitset_new(e->arena, count)};
    for (uint32_t i = 0; i < count; i++)
        c.parents[i] = i;
    tir_foreach_inst(inst, e->f)
        add(&c, inst);
    for_each_value(&c, judge);
    for (bool changed = true; changed;) {
        changed = false;
        tir_foreach_inst(inst, e->f)
            if (inst->op == TIR_OP_WGMMA)
                changed |= spread(&c, inst);
    }
    tir_foreach_inst(inst, e->f)
        if (inst->op == TIR_OP_WGMMA)
            name_sums(&c, inst);
    if (!e->sums)
        return;
    for_each_value(&c, hand_on);
    const uint32_t *stores = count_stores(e);
    tir_foreach_inst(inst, e->f)
        find_pack(e, stores, inst);
}

static void emit_text(struct emit *e, struct tir_text *text)
{
    tir_llvm_asm(e->ll, e->ll->none, tir_text_str(text), STR("~{memory}"), TIR_ASM_EFFECT, NULL, 0);
}

void tir_emit_declare_sums(struct emit *e)
{
    if (!e->sums)
        return;
    struct tir_text text;
    tir_text_init(&text, e->arena, 0);
    tir_text_format(&text, ".reg .b32 %s<%" PRIu32 ">;", TIR_SUM, e->sums);
    emit_text(e, &text);
}

bool tir_emit_is_sum(const struct emit *e, const struct tir_value *v)
{
    return !is_const(v) && e->slots[v->id].sum;
}

void tir_emit_add_sum(const struct emit *e, struct tir_text *text, const struct tir_value *v)
{
    tir_text_add(text, STR(TIR_SUM)); // without a format: a kernel names hundreds
    tir_text_int(text, e->slots[v->id].sum - 1);
}

static uint32_t bits_of(const struct tir_value *v)
{
    if (v->type->elem != TIR_F32)
        return (uint32_t)v->constant.i;
    const float f = (float)v->constant.f;
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

void tir_emit_add_begins(const struct emit *e, struct tir_text *text, struct tir_value *const *sums,
                         struct tir_value *const *begins, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!tir_emit_is_sum(e, sums[i]) || !is_const(begins[i]))
            continue;
        tir_text_add(text, STR("mov.b32 "));
        tir_emit_add_sum(e, text, sums[i]);
        tir_text_add(text, STR(", "));
        tir_text_int(text, bits_of(begins[i]));
        tir_text_add(text, STR("; "));
    }
}

void tir_emit_begin_sums(struct emit *e, const struct tir_inst *loop)
{
    struct tir_text text;
    tir_text_init(&text, e->arena, 0);
    tir_emit_add_begins(e, &text, loop->results, loop->operands + TIR_FOR_INIT, loop->result_count);
    if (tir_text_str(&text).len)
        emit_text(e, &text);
}

// What a wait gives: sums that are read, and registers packed of two.
struct given {
    const struct tir_value *v;
    const struct tir_value *low, *high; // NULL: v is a sum
};

static uint32_t list_given(const struct emit *e, const struct tir_inst *wait, struct given *given)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < wait->result_count; i++) {
        const struct tir_value *v = wait->results[i];
        const struct emit_slot *slot = &e->slots[v->id];
        if (!slot->sum || !slot->is_read)
            continue;
        if (!slot->pack)
            given[count++] = (struct given){.v = v};
        else if (slot->pack->operands[0]->def->operands[0] == v)
            given[count++] = (struct given){
                .v = slot->pack->results[0],
                .low = v,
                .high = slot->pack->operands[1]->def->operands[0],
            };
    }
    return count;
}

// operand: of the piece of PTX, where LLVM sees what is given.
static void add_given(const struct emit *e, struct tir_text *text, const struct given *given,
                      uint32_t operand)
{
    if (!given->low) {
        tir_text_format(text, "mov.b32 $%" PRIu32 ", ", operand);
        tir_emit_add_sum(e, text, given->v);
    } else {
        const bool is_f16 = given->v->def->operands[0]->type->elem == TIR_F16;
        tir_text_add(text, is_f16 ? STR("cvt.rn.f16x2.f32 ") : STR("cvt.rn.bf16x2.f32 "));
        if (tir_emit_is_sum(e, given->v))
            tir_emit_add_sum(e, text, given->v);
        else
            tir_text_format(text, "$%" PRIu32, operand);
        tir_text_add(text, STR(", "));
        tir_emit_add_sum(e, text, given->high);
        tir_text_add(text, STR(", "));
        tir_emit_add_sum(e, text, given->low);
    }
    tir_text_add(text, STR("; "));
}

void tir_emit_read_sums(struct emit *e, const struct tir_inst *wait)
{
    struct given *given = arena_array(e->arena, struct given, wait->result_count + 1);
    const uint32_t count = list_given(e, wait, given);
    if (!count)
        return;
    struct tir_text text, constraints;
    tir_text_init(&text, e->arena, 0);
    tir_text_init(&constraints, e->arena, 0);
    LLVMTypeRef *types = arena_array(e->arena, LLVMTypeRef, count);
    const struct tir_value **seen = arena_array(e->arena, const struct tir_value *, count);
    uint32_t outputs = 0;
    for (uint32_t i = 0; i < count; i++) {
        add_given(e, &text, &given[i], outputs);
        if (given[i].low && tir_emit_is_sum(e, given[i].v))
            continue;
        types[outputs] = tir_emit_type(e, given[i].v->type);
        tir_text_add(&constraints, types[outputs] == e->ll->f32 ? STR("=f,") : STR("=r,"));
        seen[outputs++] = given[i].v;
    }
    tir_text_add(&constraints, STR("~{memory}"));
    LLVMTypeRef type = !outputs ? e->ll->none
                       : outputs == 1
                           ? types[0]
                           : LLVMStructTypeInContext(e->ll->context, types, outputs, false);
    V all = tir_llvm_asm(e->ll, type, tir_text_str(&text), tir_text_str(&constraints),
                         TIR_ASM_EFFECT, NULL, 0);
    for (uint32_t i = 0; i < outputs; i++)
        tir_emit_set(e, seen[i], outputs == 1 ? all : LLVMBuildExtractValue(e->b, all, i, ""));
}
