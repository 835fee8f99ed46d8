// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations that take many instructions, as functions of the module instead of in place.
//
//     a kernel with 400 sines                  .func k$sin$f32$f32 { 50 instructions }
//         50 instructions, 400 times     ->    call k$sin$f32$f32, 400 times
//
// In place they are fastest, so a kernel stays as it is until their instructions exceed a budget.
// Then each kind of operation that is long and frequent becomes a function. The expansions are
// measured, not listed: the function of a kind is emitted first, and dropped again where operations
// of its kind stay in place.

#include "ir/walk.h"
#include "machine/budget.h"
#include "target/nvptx/emit.h"

struct expansion { // of the operations of one kind
    struct tir_elementwise kind;
    uint32_t operands, uses, length; // length: instructions
    struct tir_span span;            // of one of them
    LLVMTypeRef type;                // of the function
    V function;                      // NULL: in place
};

static uint64_t key_of(const struct tir_elementwise *kind)
{
    return (uint64_t)kind->op << 32 | (uint64_t)kind->from << 16 | (uint64_t)kind->to;
}

static struct expansion *expansion_at(const struct emit *e, uint32_t i)
{
    return e->expansions.entries[i].value;
}

static void count_uses(struct emit *e)
{
    tir_map_init(&e->expansions, e->arena);
    tir_foreach_inst(inst, e->f) {
        struct tir_elementwise kind;
        if (!tir_emit_is_elementwise(e, inst, &kind))
            continue;
        struct expansion *x = tir_map_get(&e->expansions, key_of(&kind));
        if (!x) {
            x = arena_new(e->arena, struct expansion);
            *x = (struct expansion){
                .kind = kind, .operands = inst->operand_count, .span = inst->span};
            tir_map_set(&e->expansions, key_of(&kind), x);
        }
        x->uses++;
    }
}

static uint32_t count_instructions(V function)
{
    uint32_t count = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
        for (V v = LLVMGetFirstInstruction(b); v; v = LLVMGetNextInstruction(v))
            count++;
    return count;
}

static void drop_function(struct expansion *x)
{
    LLVMDeleteFunction(x->function);
    x->function = NULL;
}

// The function of a kind, unless a call of it would not be shorter.
static void emit_expansion(struct emit *e, struct expansion *x)
{
    LLVMTypeRef in[TIR_ELEMENTWISE_OPERANDS];
    for (uint32_t i = 0; i < x->operands; i++)
        in[i] = tir_emit_elem_type(e, x->kind.from);
    x->type = LLVMFunctionType(tir_emit_elem_type(e, x->kind.to), in, x->operands, false);
    const char *name = tir_str_format(e->arena, "%s$%s$%s$%s", e->f->name, tir_ops[x->kind.op].name,
                                      tir_elems[x->kind.from].name, tir_elems[x->kind.to].name)
                           .ptr;
    x->function = e->function = LLVMAddFunction(e->ll->module, name, x->type);
    LLVMSetLinkage(x->function, LLVMInternalLinkage);
    LLVMAddAttributeAtIndex(x->function, LLVMAttributeFunctionIndex, e->ll->noinline);
    LLVMAddAttributeAtIndex(x->function, LLVMAttributeFunctionIndex, e->ll->nounwind);
    LLVMAddAttributeAtIndex(x->function, LLVMAttributeFunctionIndex, e->ll->willreturn);
    LLVMAddAttributeAtIndex(x->function, LLVMAttributeFunctionIndex, e->ll->no_memory);
    tir_emit_at(e, tir_emit_block(e, "entry"));
    V params[TIR_ELEMENTWISE_OPERANDS] = {0};
    LLVMGetParams(x->function, params);
    e->span = x->span;
    V v = tir_emit_elementwise(e, &x->kind, params);
    if (v)
        LLVMBuildRet(e->b, v);
    x->length = count_instructions(x->function);
    if (!v || x->length <= TIR_BUDGET_CALL_INSTRUCTIONS)
        drop_function(x);
}

void tir_emit_expansions(struct emit *e)
{
    count_uses(e);
    LLVMSetCurrentDebugLocation2(e->b, NULL);
    uint64_t total = 0;
    for (uint32_t i = 0; i < e->expansions.count; i++) {
        struct expansion *x = expansion_at(e, i);
        if (x->uses < TIR_BUDGET_CALL_USES)
            continue;
        emit_expansion(e, x);
        if (x->function)
            total += (uint64_t)x->length * x->uses;
    }
    for (uint32_t i = 0; total <= TIR_BUDGET_INLINE_INSTRUCTIONS && i < e->expansions.count; i++)
        if (expansion_at(e, i)->function)
            drop_function(expansion_at(e, i));
}

V tir_emit_call(struct emit *e, const struct tir_elementwise *kind, V *in)
{
    const struct expansion *x = tir_map_get(&e->expansions, key_of(kind));
    return x->function ? LLVMBuildCall2(e->b, x->type, x->function, in, x->operands, "") : NULL;
}
