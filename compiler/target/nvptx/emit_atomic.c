// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomics. Relaxed, at the scope of all threads that can access the memory.
//
// LLVM makes compare-and-swap loops of what a target has no instruction for, but always over words
// of 32 bits, which reach past the end of an allocation when the element is shorter. atom.cas.b16
// (sm_70, PTX 6.3) takes exactly 16 bits, so shorter elements get a loop here:
//
//     seen = [place]
//     do { old = seen; seen = cas(place, old, combine(old, value)); } while (seen != old);
//
// An element of 8 bits is half of what is swapped; the other half is written back as it was.

#include "target/nvptx/emit.h"

struct atomic_row {
    enum tir_word kind;
    LLVMAtomicRMWBinOp ints[2], floats; // unsigned, signed
};
static const struct atomic_row atomics[] = {
    {TIR_WORD_kind_add, {LLVMAtomicRMWBinOpAdd, LLVMAtomicRMWBinOpAdd}, LLVMAtomicRMWBinOpFAdd},
    {TIR_WORD_kind_min,
     {LLVMAtomicRMWBinOpUMin, LLVMAtomicRMWBinOpMin},
     LLVMAtomicRMWBinOpFMinimum},
    {TIR_WORD_kind_max,
     {LLVMAtomicRMWBinOpUMax, LLVMAtomicRMWBinOpMax},
     LLVMAtomicRMWBinOpFMaximum},
    {TIR_WORD_kind_and, {LLVMAtomicRMWBinOpAnd, LLVMAtomicRMWBinOpAnd}, LLVMAtomicRMWBinOpXchg},
    {TIR_WORD_kind_or, {LLVMAtomicRMWBinOpOr, LLVMAtomicRMWBinOpOr}, LLVMAtomicRMWBinOpXchg},
    {TIR_WORD_kind_xor, {LLVMAtomicRMWBinOpXor, LLVMAtomicRMWBinOpXor}, LLVMAtomicRMWBinOpXchg},
    {TIR_WORD_kind_exchange,
     {LLVMAtomicRMWBinOpXchg, LLVMAtomicRMWBinOpXchg},
     LLVMAtomicRMWBinOpXchg},
};

static V combine(struct emit *e, LLVMAtomicRMWBinOp op, V old, V value)
{
    switch (op) {
    case LLVMAtomicRMWBinOpAdd:
        return LLVMBuildAdd(e->b, old, value, "");
    case LLVMAtomicRMWBinOpFAdd:
        return LLVMBuildFAdd(e->b, old, value, "");
    case LLVMAtomicRMWBinOpAnd:
        return LLVMBuildAnd(e->b, old, value, "");
    case LLVMAtomicRMWBinOpOr:
        return LLVMBuildOr(e->b, old, value, "");
    case LLVMAtomicRMWBinOpXor:
        return LLVMBuildXor(e->b, old, value, "");
    case LLVMAtomicRMWBinOpMin:
        return tir_emit_binary(e, "llvm.smin", old, value);
    case LLVMAtomicRMWBinOpMax:
        return tir_emit_binary(e, "llvm.smax", old, value);
    case LLVMAtomicRMWBinOpUMin:
        return tir_emit_binary(e, "llvm.umin", old, value);
    case LLVMAtomicRMWBinOpUMax:
        return tir_emit_binary(e, "llvm.umax", old, value);
    case LLVMAtomicRMWBinOpFMinimum:
        return tir_emit_binary(e, "llvm.minimum", old, value);
    case LLVMAtomicRMWBinOpFMaximum:
        return tir_emit_binary(e, "llvm.maximum", old, value);
    default: // exchange
        return value;
    }
}

// The 16 bits that hold an element.
struct cell {
    V address; // an integer, as PTX takes it
    V pointer;
    enum tir_space space;
    V shift; // of an element of 8 bits; NULL: the element is all of it
    LLVMTypeRef type;
};

static struct cell cell_of(struct emit *e, enum tir_elem elem, V pointer, enum tir_space space)
{
    LLVMTypeRef address = space == TIR_SPACE_GLOBAL ? e->ll->i64 : e->ll->i32;
    struct cell c = {.pointer = pointer, .space = space, .type = tir_emit_elem_type(e, elem)};
    if (tir_elems[elem].bits == 8) {
        V one = LLVMConstInt(address, 1, false);
        V odd = LLVMBuildAnd(e->b, LLVMBuildPtrToInt(e->b, pointer, address, ""), one, "");
        V back = LLVMBuildNeg(e->b, odd, "");
        c.pointer = LLVMBuildGEP2(e->b, e->ll->i8, pointer, &back, 1, "");
        c.shift = LLVMBuildShl(e->b, LLVMBuildTrunc(e->b, odd, e->ll->i16, ""),
                               LLVMConstInt(e->ll->i16, 3, false), "");
    }
    c.address = LLVMBuildPtrToInt(e->b, c.pointer, address, "");
    return c;
}

static V element_in(struct emit *e, const struct cell *c, V bits)
{
    if (!c->shift)
        return tir_emit_bits(e, bits, c->type);
    return LLVMBuildTrunc(e->b, LLVMBuildLShr(e->b, bits, c->shift, ""), e->ll->i8, "");
}

static V with_element(struct emit *e, const struct cell *c, V bits, V element)
{
    if (!c->shift)
        return tir_emit_bits(e, element, e->ll->i16);
    V mask = LLVMBuildShl(e->b, LLVMConstInt(e->ll->i16, 0xff, false), c->shift, "");
    V kept = LLVMBuildAnd(e->b, bits, LLVMBuildNot(e->b, mask, ""), "");
    V moved = LLVMBuildShl(e->b, LLVMBuildZExt(e->b, element, e->ll->i16, ""), c->shift, "");
    return LLVMBuildOr(e->b, kept, moved, "");
}

static V swap(struct emit *e, const struct cell *c, V expected, V wanted)
{
    V args[] = {c->address, expected, wanted};
    struct tir_text text;
    tir_text_init(&text, e->arena, 0);
    bool global = c->space == TIR_SPACE_GLOBAL;
    tir_text_format(&text, "atom.relaxed.%s.cas.b16 $0, [$1], $2, $3;",
                    global                          ? "gpu.global"
                    : c->space == TIR_SPACE_CLUSTER ? "cluster.shared::cluster"
                    : e->has_remote                 ? "cluster.shared"
                                                    : "cta.shared");
    return tir_llvm_asm(e->ll, e->ll->i16, tir_text_str(&text),
                        global ? STR("=h,l,h,h,~{memory}") : STR("=h,r,h,h,~{memory}"),
                        TIR_ASM_EFFECT, args, 3);
}

static V short_loop(struct emit *e, LLVMAtomicRMWBinOp op, enum tir_elem elem, V pointer,
                    enum tir_space space, V value)
{
    struct cell c = cell_of(e, elem, pointer, space);
    V first = LLVMBuildLoad2(e->b, e->ll->i16, c.pointer, "");
    LLVMSetAlignment(first, 2);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(e->b);
    LLVMBasicBlockRef loop = tir_emit_block(e, "atomic"), done = tir_emit_block(e, "done");
    LLVMBuildBr(e->b, loop);
    tir_emit_at(e, loop);
    V expected = LLVMBuildPhi(e->b, e->ll->i16, "");
    V old = element_in(e, &c, expected);
    V wanted = with_element(e, &c, expected, combine(e, op, old, value));
    V seen = swap(e, &c, expected, wanted);
    LLVMAddIncoming(expected, (V[]){first, seen}, (LLVMBasicBlockRef[]){from, loop}, 2);
    LLVMBuildCondBr(e->b, tir_emit_icmp(e, LLVMIntEQ, seen, expected), done, loop);
    tir_emit_at(e, done);
    return old;
}

static bool has_instruction(const struct emit *e, LLVMAtomicRMWBinOp op, enum tir_elem elem)
{
    if (tir_elems[elem].bits >= 32)
        return true; // or LLVM's loop, over the element's own bits
    return op == LLVMAtomicRMWBinOpFAdd &&
           (elem == TIR_F16 || e->ll->target->features & TIR_HAS_BF16_ATOM);
}

V tir_emit_atomic(struct emit *e, enum tir_word kind, enum tir_elem elem, V pointer,
                  enum tir_space space, V value)
{
    const struct atomic_row *row = NULL;
    for (uint32_t i = 0; i < TIR_COUNT_OF(atomics); i++)
        if (atomics[i].kind == kind)
            row = &atomics[i];
    if (!row || (tir_elem_is_float(elem) && tir_elems[elem].bits < 16))
        return NULL;
    LLVMAtomicRMWBinOp op =
        tir_elem_is_float(elem) ? row->floats : row->ints[tir_elems[elem].kind == TIR_KIND_SIGNED];
    if (!has_instruction(e, op, elem))
        return short_loop(e, op, elem, pointer, space, value);
    const char *scope = space == TIR_SPACE_GLOBAL ? "device" : e->has_remote ? "cluster" : "block";
    unsigned scope_id = LLVMGetSyncScopeID(e->ll->context, scope, strlen(scope));
    return LLVMBuildAtomicRMWSyncScope(e->b, op, pointer, value, LLVMAtomicOrderingMonotonic,
                                       scope_id);
}
