// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomics. Relaxed, between fences where they order other accesses; at the scope that is stated, or
// of all threads that can access the memory.
//
// LLVM makes compare-and-swap loops of what a target has no instruction for, but always over words
// of 32 bits, which reach past the end of an allocation when the element is shorter. atom.cas.b16
// (sm_70, PTX 6.3) takes exactly 16 bits, so shorter elements get a loop here:
//
//     seen = [place]
//     do { old = seen; seen = cas(place, old, combine(old, value)); } while (seen != old);
//
// An element of 8 bits is half of what is swapped; the other half is written back as it was.

// A red of several elements is one instruction: of two f16 or bf16 in a word, of two or four words.

#include "target/nvptx/emit.h"

#include <inttypes.h>

struct atomic {
    enum tir_word kind, scope;
    enum tir_elem elem;
    enum tir_space space;
    V pointer, value, expected; // expected NULL: no compare-and-swap
};

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
    {TIR_WORD_kind_cas, {LLVMAtomicRMWBinOpXchg, LLVMAtomicRMWBinOpXchg}, LLVMAtomicRMWBinOpXchg},
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

static const struct {
    enum tir_word word;
    const char *ptx, *llvm;
} scopes[] = {
    {TIR_WORD_scope_cta, "cta", "block"},
    {TIR_WORD_scope_cluster, "cluster", "cluster"},
    {TIR_WORD_scope_gpu, "gpu", "device"},
    {TIR_WORD_scope_system, "sys", ""},
};

// Where the program states none: all threads of a launch that can access memory of this space.
static enum tir_word scope_of(const struct emit *e, const struct tir_inst *atom,
                              enum tir_space space)
{
    enum tir_word all = space == TIR_SPACE_GLOBAL                     ? TIR_WORD_scope_gpu
                        : space == TIR_SPACE_CLUSTER || e->has_remote ? TIR_WORD_scope_cluster
                                                                      : TIR_WORD_scope_cta;
    enum tir_word scope = tir_attr_word(atom, TIR_ATTR_scope, all);
    bool has_clusters = e->ll->target->features & TIR_HAS_CLUSTER;
    return scope == TIR_WORD_scope_cluster && !has_clusters ? TIR_WORD_scope_gpu : scope;
}

static uint32_t scope_row(enum tir_word scope)
{
    uint32_t i = 0;
    while (scopes[i].word != scope) // every word has a row
        i++;
    return i;
}

static unsigned scope_id(const struct emit *e, enum tir_word scope)
{
    const char *name = scopes[scope_row(scope)].llvm;
    return LLVMGetSyncScopeID(e->ll->context, name, strlen(name));
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

static V swap(struct emit *e, const struct cell *c, enum tir_word scope, V expected, V wanted)
{
    V args[] = {c->address, expected, wanted};
    struct tir_text text;
    tir_text_init(&text, e->arena, 0);
    bool global = c->space == TIR_SPACE_GLOBAL;
    tir_text_format(&text, "atom.relaxed.%s.%s.cas.b16 $0, [$1], $2, $3;",
                    scopes[scope_row(scope)].ptx,
                    global                          ? "global"
                    : c->space == TIR_SPACE_CLUSTER ? "shared::cluster"
                                                    : "shared");
    return tir_llvm_asm(e->ll, e->ll->i16, tir_text_str(&text),
                        global ? STR("=h,l,h,h,~{memory}") : STR("=h,r,h,h,~{memory}"),
                        TIR_ASM_EFFECT, args, 3);
}

static V short_loop(struct emit *e, LLVMAtomicRMWBinOp op, const struct atomic *a)
{
    struct cell c = cell_of(e, a->elem, a->pointer, a->space);
    V first = LLVMBuildLoad2(e->b, e->ll->i16, c.pointer, "");
    LLVMSetAlignment(first, 2);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(e->b);
    LLVMBasicBlockRef loop = tir_emit_block(e, "atomic"), done = tir_emit_block(e, "done");
    LLVMBuildBr(e->b, loop);
    tir_emit_at(e, loop);
    V expected = LLVMBuildPhi(e->b, e->ll->i16, "");
    V old = element_in(e, &c, expected);
    V next = combine(e, op, old, a->value);
    if (a->expected) // what is not expected stays
        next = tir_emit_select(e, tir_emit_icmp(e, LLVMIntEQ, old, a->expected), next, old);
    V seen = swap(e, &c, a->scope, expected, with_element(e, &c, expected, next));
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

// What an atomic does, between its fences. NULL: there is no such atomic.
static V relaxed(struct emit *e, const struct atomic *a)
{
    const struct atomic_row *row = NULL;
    for (uint32_t i = 0; i < TIR_COUNT_OF(atomics); i++)
        if (atomics[i].kind == a->kind)
            row = &atomics[i];
    if (!row || (tir_elem_is_float(a->elem) && tir_elems[a->elem].bits < 16))
        return NULL;
    LLVMAtomicRMWBinOp op = tir_elem_is_float(a->elem)
                                ? row->floats
                                : row->ints[tir_elems[a->elem].kind == TIR_KIND_SIGNED];
    if (!has_instruction(e, op, a->elem))
        return short_loop(e, op, a);
    unsigned scope = scope_id(e, a->scope);
    if (!a->expected)
        return LLVMBuildAtomicRMWSyncScope(e->b, op, a->pointer, a->value,
                                           LLVMAtomicOrderingMonotonic, scope);
    V pair = LLVMBuildAtomicCmpXchgSyncScope(e->b, a->pointer, a->expected, a->value,
                                             LLVMAtomicOrderingMonotonic,
                                             LLVMAtomicOrderingMonotonic, scope);
    return LLVMBuildExtractValue(e->b, pair, 0, "");
}

// Fences on both sides of what `relaxed` gives, as the instruction orders other accesses.
static void order_before(struct emit *e, const struct tir_inst *inst, enum tir_word scope)
{
    if (tir_releases(inst))
        LLVMBuildFenceSyncScope(e->b, LLVMAtomicOrderingAcquireRelease, scope_id(e, scope), "");
}

static void order_after(struct emit *e, const struct tir_inst *inst, enum tir_word scope)
{
    if (tir_acquires(inst))
        LLVMBuildFenceSyncScope(e->b, LLVMAtomicOrderingAcquireRelease, scope_id(e, scope), "");
}

V tir_emit_atomic(struct emit *e, const struct tir_inst *inst, V pointer, enum tir_space space)
{
    const struct tir_value *expected = inst->operands[4];
    const struct atomic a = {.kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE),
                             .elem = inst->operands[2]->type->elem,
                             .pointer = pointer,
                             .space = space,
                             .scope = scope_of(e, inst, space),
                             .value = tir_emit_value(e, inst->operands[2]),
                             .expected = expected ? tir_emit_value(e, expected) : NULL};
    order_before(e, inst, a.scope);
    V old = relaxed(e, &a);
    order_after(e, inst, a.scope);
    return old;
}

// "add.noftz.v2.bf16x2": floats of 16 bits move two to a word.
static void red_name(struct tir_text *text, enum tir_elem elem, uint32_t words)
{
    bool is_half = tir_elems[elem].bits == 16;
    tir_text_format(text, "add%s", is_half ? ".noftz" : "");
    if (words > 1)
        tir_text_format(text, ".v%" PRIu32, words);
    tir_text_format(text, ".%s%s", tir_elems[elem].name, is_half ? "x2" : "");
}

// The predicate is the instruction's own, as that of a store.
void tir_emit_red(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_value *base = inst->operands[0], *pred = inst->operands[2];
    int known = tir_emit_known(pred);
    if (known == 0)
        return;
    uint32_t count, bytes = (uint32_t)tir_attr_int(inst, TIR_ATTR_width, 0), words = bytes / 4;
    struct tir_value **values = tir_list(inst, &count);
    enum tir_elem elem = values[0]->type->elem;
    V parts[8], args[6];
    for (uint32_t i = 0; i < count; i++)
        parts[i] = tir_emit_value(e, values[i]);
    LLVMTypeRef word = elem == TIR_F32 ? e->ll->f32 : e->ll->i32;
    for (uint32_t i = 0; i < words; i++)
        args[i] = tir_emit_pack(e, parts + i * (count / words), count / words, word);
    int64_t offset = tir_attr_int(inst, TIR_ATTR_offset, 0);
    bool fits = offset == (int32_t)offset;
    V pointer = tir_emit_address(e, base, inst->operands[1], fits ? 0 : offset);
    args[words] = LLVMBuildPtrToInt(e->b, pointer, e->ll->i64, "");
    args[words + 1] = known < 0 ? tir_emit_value(e, pred) : NULL;

    enum tir_word scope = scope_of(e, inst, base->type->space);
    struct tir_text text, constraints;
    tir_text_init(&text, e->arena, 0);
    tir_text_init(&constraints, e->arena, 0);
    if (known < 0)
        tir_text_format(&text, "@$%" PRIu32 " ", words + 1);
    tir_text_format(&text, "red.relaxed.%s.global.", scopes[scope_row(scope)].ptx);
    red_name(&text, elem, words);
    tir_text_format(&text, " [$%" PRIu32 "+%" PRId64 "], %s", words, fits ? offset : 0,
                    words > 1 ? "{" : "");
    for (uint32_t i = 0; i < words; i++) {
        tir_text_format(&text, "%s$%" PRIu32, i ? ", " : "", i);
        tir_text_add(&constraints, elem == TIR_F32 ? STR("f,") : STR("r,"));
    }
    tir_text_add(&text, words > 1 ? STR("};") : STR(";"));
    tir_text_add(&constraints, known < 0 ? STR("l,b,~{memory}") : STR("l,~{memory}"));
    order_before(e, inst, scope);
    tir_llvm_asm(e->ll, e->ll->none, tir_text_str(&text), tir_text_str(&constraints),
                 TIR_ASM_EFFECT, args, words + (known < 0 ? 2 : 1));
    order_after(e, inst, scope);
}
