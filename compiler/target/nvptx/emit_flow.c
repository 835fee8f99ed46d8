// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Control flow: structured regions become basic blocks with phis directly, so LLVM gets SSA form
// and needs no mem2reg.
//
// Counted loops are emitted rotated (test at the bottom, a guard in front), the form that LLVM and
// ptxas both expect.

#include "ir/effect.h"
#include "ir/walk.h"
#include "target/nvptx/emit.h"

static V value_as_held(struct emit *e, const struct tir_value *v, const struct tir_value *holder)
{
    return e->slots[holder->id].narrow ? tir_emit_value32(e, v) : tir_emit_value(e, v);
}

static LLVMTypeRef held_type(const struct emit *e, const struct tir_value *v)
{
    return e->slots[v->id].narrow ? e->ll->i32 : tir_emit_type(e, v->type);
}

static void add_incoming(V phi, V value, LLVMBasicBlockRef from)
{
    LLVMAddIncoming(phi, &value, &from, 1);
}

static V new_phi(struct emit *e, const struct tir_value *v)
{
    V phi = LLVMBuildPhi(e->b, held_type(e, v), "");
    e->slots[v->id].v = phi;
    return phi;
}

// The values of a block's yield, as its receivers hold them, at the end of the block.
static V *yielded(struct emit *e, const struct tir_block *block, struct tir_value *const *receivers,
                  uint32_t count)
{
    const struct tir_inst *yield = tir_yield_of(block);
    assert(!count || (yield && yield->operand_count == count));
    V *values = arena_array(e->arena, V, count + 1);
    for (uint32_t i = 0; i < count; i++)
        values[i] = value_as_held(e, yield->operands[i], receivers[i]);
    return values;
}

static bool does_nothing(const struct tir_block *block)
{
    return !block->first || block->first == tir_yield_of(block);
}

static void emit_if(struct emit *e, const struct tir_inst *inst)
{
    const uint32_t count = inst->result_count || !does_nothing(inst->regions[1]) ? 2 : 1;
    LLVMBasicBlockRef arms[2], ends[2];
    arms[0] = tir_emit_block(e, "then");
    arms[1] = count == 2 ? tir_emit_block(e, "else") : NULL;
    LLVMBasicBlockRef join = tir_emit_block(e, "join");
    LLVMBuildCondBr(e->b, tir_emit_value(e, inst->operands[0]), arms[0],
                    count == 2 ? arms[1] : join);
    V *values[2];
    for (uint32_t i = 0; i < count; i++) {
        tir_emit_at(e, arms[i]);
        tir_emit_insts(e, inst->regions[i]);
        values[i] = yielded(e, inst->regions[i], inst->results, inst->result_count);
        ends[i] = LLVMGetInsertBlock(e->b);
        LLVMBuildBr(e->b, join);
    }
    tir_emit_at(e, join);
    for (uint32_t i = 0; i < inst->result_count; i++) {
        V phi = new_phi(e, inst->results[i]);
        add_incoming(phi, values[0][i], ends[0]);
        add_incoming(phi, values[1][i], ends[1]);
    }
}

static void mark_no_unroll(struct emit *e, V branch)
{
    LLVMContextRef c = e->ll->context;
    LLVMMetadataRef name = LLVMMDStringInContext2(c, "llvm.loop.unroll.disable", 24);
    LLVMMetadataRef hint = LLVMMDNodeInContext2(c, &name, 1);
    LLVMMetadataRef self = LLVMTemporaryMDNode(c, NULL, 0);
    LLVMMetadataRef loop = LLVMMDNodeInContext2(c, (LLVMMetadataRef[]){self, hint}, 2);
    LLVMMetadataReplaceAllUsesWith(self, loop);
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(c, "llvm.loop", 9),
                    LLVMMetadataAsValue(c, loop));
}

// Whether a loop's index plus its step stays within the type the index is held in.
static bool loop_is_safe(const struct emit *e, const struct tir_inst *inst)
{
    const struct tir_value *index = inst->regions[0]->args[0];
    int64_t low, high, step_low, step_high, next;
    tir_range_get(e->ranges, index, &low, &high);
    tir_range_get(e->ranges, inst->operands[TIR_FOR_STEP], &step_low, &step_high);
    uint32_t bits = e->slots[index->id].narrow ? 32 : tir_elems[index->type->elem].bits;
    return tir_elems[index->type->elem].kind == TIR_KIND_SIGNED &&
           tir_add_checked(high, step_high, &next) && tir_emit_fits(low, next, bits);
}

// i + step < end without overflow: end - i > step, unsigned, as i < end. Where i + step cannot pass
// the type's maximum the plain form is kept, which the loop passes understand.
static V loop_goes_on(struct emit *e, const struct tir_inst *inst, V index, V step, V end, V *next)
{
    bool is_signed = tir_elems[inst->operands[TIR_FOR_END]->type->elem].kind == TIR_KIND_SIGNED;
    if (loop_is_safe(e, inst)) {
        *next = LLVMBuildNSWAdd(e->b, index, step, "");
        return tir_emit_icmp(e, is_signed ? LLVMIntSLT : LLVMIntULT, *next, end);
    }
    *next = LLVMBuildAdd(e->b, index, step, "");
    return tir_emit_icmp(e, LLVMIntUGT, LLVMBuildSub(e->b, end, index, ""), step);
}

static bool is_wait_for_products(const struct tir_inst *inst)
{
    return tir_is_group(inst, TIR_OP_WAIT_GROUP, TIR_DONE_WGMMA);
}

static bool is_about_products(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_WGMMA || is_wait_for_products(inst) ||
           tir_is_group(inst, TIR_OP_COMMIT_GROUP, TIR_DONE_WGMMA);
}

bool tir_emit_handles_products(const struct tir_inst *inst)
{
    tir_foreach_inst_within(inner, inst)
        if (is_about_products(inner))
            return true;
    return false;
}

// The wait after a loop that leaves products in flight. It is emitted on both ways out of the loop,
// also on the one that skips it: ptxas serialises products whose accumulators may also come from
// elsewhere at the wait. NULL: there is no wait, or the loop does not make all of its operands.
static const struct tir_inst *wait_after(const struct emit *e, const struct tir_inst *loop)
{
    if (!tir_emit_handles_products(loop))
        return NULL;
    const struct tir_inst *wait = loop->next;
    while (wait && !tir_emit_handles_products(wait))
        wait = wait->next;
    if (!wait || !is_wait_for_products(wait))
        return NULL;
    for (uint32_t i = 0; i < wait->operand_count; i++) {
        const struct tir_value *v = wait->operands[i];
        if (v->def != loop && v->kind != TIR_VALUE_CONST && !e->slots[v->id].v)
            return NULL; // made between the two
    }
    return wait;
}

// One way out: `given` is what the loop's results are there. Gives what the wait's are.
static V *wait_on_way(struct emit *e, const struct tir_inst *loop, const struct tir_inst *wait,
                      V *given, LLVMBasicBlockRef done)
{
    V *values = arena_array(e->arena, V, wait->operand_count + 1);
    for (uint32_t i = 0; i < wait->operand_count; i++) {
        const struct tir_value *operand = wait->operands[i];
        values[i] = operand->def == loop ? given[operand->index] : tir_emit_value(e, operand);
    }
    tir_emit_await(e, wait, values);
    LLVMBuildBr(e->b, done);
    return values;
}

struct loop { // one `for` while it is emitted
    const struct tir_inst *inst;
    V *init, *next;                      // what it begins with, what an iteration hands on
    LLVMBasicBlockRef from, top, bottom; // in front of it, its first and last block
    LLVMBasicBlockRef done;              // after it
    LLVMBasicBlockRef skipped, left;     // on the ways to done; done itself without a wait
};

// The end of the loop: phis of its results, and of values that are awaited at once.
static void end_loop(struct emit *e, const struct loop *l, const struct tir_inst *wait)
{
    V *awaited[2] = {NULL, NULL};
    LLVMBasicBlockRef from = l->from, bottom = l->bottom;
    if (wait) {
        tir_emit_at(e, from = l->skipped);
        awaited[0] = wait_on_way(e, l->inst, wait, l->init, l->done);
        tir_emit_at(e, bottom = l->left);
        awaited[1] = wait_on_way(e, l->inst, wait, l->next, l->done);
        e->awaited = wait;
    }
    tir_emit_at(e, l->done);
    for (uint32_t i = 0; i < l->inst->result_count; i++) {
        if (tir_emit_is_sum(e, l->inst->results[i]))
            continue;
        // A result is held like its carried value: join_widths.
        V phi = new_phi(e, l->inst->results[i]);
        add_incoming(phi, l->init[i], from);
        add_incoming(phi, l->next[i], bottom);
    }
    for (uint32_t i = 0; wait && i < wait->result_count; i++) {
        if (tir_emit_is_sum(e, wait->results[i]))
            continue;
        V phi = new_phi(e, wait->results[i]);
        add_incoming(phi, awaited[0][i], from);
        add_incoming(phi, awaited[1][i], bottom);
    }
    if (wait)
        tir_emit_read_sums(e, wait);
}

static void emit_for(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_block *body = inst->regions[0];
    const struct tir_value *index = body->args[0];
    const struct tir_inst *wait = wait_after(e, inst);
    struct tir_value **carried = body->args + 1;
    uint32_t count = inst->result_count;
    bool is_signed = tir_elems[index->type->elem].kind == TIR_KIND_SIGNED;
    V begin = value_as_held(e, inst->operands[TIR_FOR_BEGIN], index);
    V end = value_as_held(e, inst->operands[TIR_FOR_END], index);
    V step = value_as_held(e, inst->operands[TIR_FOR_STEP], index);
    struct loop l = {.inst = inst, .init = arena_array(e->arena, V, count + 1)};
    for (uint32_t i = 0; i < count; i++)
        l.init[i] = value_as_held(e, inst->operands[TIR_FOR_INIT + i], carried[i]);

    tir_emit_begin_sums(e, inst);
    l.from = LLVMGetInsertBlock(e->b);
    l.top = tir_emit_block(e, "loop");
    l.done = l.skipped = l.left = tir_emit_block(e, "done");
    if (wait) {
        l.skipped = tir_emit_block(e, "skipped");
        l.left = tir_emit_block(e, "left");
    }
    LLVMBuildCondBr(e->b, tir_emit_icmp(e, is_signed ? LLVMIntSLT : LLVMIntULT, begin, end), l.top,
                    l.skipped);
    tir_emit_at(e, l.top);
    V index_phi = new_phi(e, index);
    add_incoming(index_phi, begin, l.from);
    V *phis = arena_array(e->arena, V, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        if (tir_emit_is_sum(e, carried[i]))
            continue;
        phis[i] = new_phi(e, carried[i]);
        add_incoming(phis[i], l.init[i], l.from);
    }
    tir_emit_insts(e, body);
    l.next = yielded(e, body, carried, count);
    V next_index;
    V go_on = loop_goes_on(e, inst, index_phi, step, end, &next_index);
    l.bottom = LLVMGetInsertBlock(e->b);
    V branch = LLVMBuildCondBr(e->b, go_on, l.top, l.left);
    if (tir_attr_int(inst, TIR_ATTR_unroll, 0) == 1)
        mark_no_unroll(e, branch);
    add_incoming(index_phi, next_index, l.bottom);
    for (uint32_t i = 0; i < count; i++)
        if (phis[i])
            add_incoming(phis[i], l.next[i], l.bottom);
    end_loop(e, &l, wait);
}

static void emit_while(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_block *test = inst->regions[0], *body = inst->regions[1];
    uint32_t count = inst->result_count;
    LLVMBasicBlockRef from = LLVMGetInsertBlock(e->b), top = tir_emit_block(e, "while");
    LLVMBasicBlockRef inside = tir_emit_block(e, "body"), done = tir_emit_block(e, "done");
    V *init = arena_array(e->arena, V, count + 1), *phis = arena_array(e->arena, V, count + 1);
    for (uint32_t i = 0; i < count; i++)
        init[i] = value_as_held(e, inst->operands[i], test->args[i]);
    LLVMBuildBr(e->b, top);
    tir_emit_at(e, top);
    for (uint32_t i = 0; i < count; i++) {
        phis[i] = new_phi(e, test->args[i]);
        add_incoming(phis[i], init[i], from);
        e->slots[body->args[i]->id].v = phis[i];
        e->slots[inst->results[i]->id].v = phis[i];
    }
    tir_emit_insts(e, test);
    LLVMBuildCondBr(e->b, tir_emit_value(e, tir_yield_of(test)->operands[0]), inside, done);
    tir_emit_at(e, inside);
    tir_emit_insts(e, body);
    V *next = yielded(e, body, test->args, count);
    for (uint32_t i = 0; i < count; i++)
        add_incoming(phis[i], next[i], LLVMGetInsertBlock(e->b));
    LLVMBuildBr(e->b, top);
    tir_emit_at(e, done);
}

void tir_emit_flow(struct emit *e, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_FOR:
        emit_for(e, inst);
        return;
    case TIR_OP_IF:
        emit_if(e, inst);
        return;
    case TIR_OP_WHILE:
        emit_while(e, inst);
        return;
    default:
        tir_unreachable();
    }
}
