// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads, stores and asynchronous copies by threads; atomics but for the operation itself.
//
// An access of several values moves 32-bit words (64-bit for 8-byte elements): LLVM makes one
// vector instruction of it, and never byte arithmetic. Constant offsets are added last, where they
// fold into the instruction. A predicated access of global or shared memory is predicated PTX, so
// that no branch breaks up the straight-line code around it.

#include "target/nvptx/emit.h"

#include <inttypes.h>

// Addresses.

struct address {
    V pointer;      // base + at
    int64_t offset; // constant part
    enum tir_space space;
    bool constant_memory; // constant while the kernel runs
};

static V add_bytes(struct emit *e, V pointer, V bytes)
{
    return LLVMBuildGEP2(e->b, e->ll->i8, pointer, &bytes, 1, "");
}

static V at_offset(struct emit *e, const struct address *a)
{
    if (!a->offset)
        return a->pointer;
    return add_bytes(e, a->pointer, LLVMConstInt(e->ll->i64, (uint64_t)a->offset, true));
}

static bool is_constant(const struct emit *e, const struct tir_value *base)
{
    if (e->waits)
        return false;
    for (uint32_t i = 0; i < e->f->param_count; i++)
        if (e->f->params[i].value == base)
            return e->f->params[i].direction == TIR_IN;
    return false;
}

static struct address address_of(struct emit *e, const struct tir_value *base,
                                 const struct tir_value *at, int64_t offset)
{
    const struct emit_slot *slot = &e->slots[base->id];
    assert(slot->v);
    struct address a = {slot->v, slot->offset + offset, base->type->space, is_constant(e, base)};
    int64_t constant;
    if (!at || tir_is_const_int(at, &constant)) {
        a.offset += at ? constant : 0;
        return a;
    }
    V index = tir_emit_value(e, at);
    if (at->type->elem != TIR_I64 && at->type->elem != TIR_U64)
        index = tir_elems[at->type->elem].kind == TIR_KIND_SIGNED
                    ? LLVMBuildSExt(e->b, index, e->ll->i64, "")
                    : LLVMBuildZExt(e->b, index, e->ll->i64, "");
    a.pointer = add_bytes(e, a.pointer, index);
    return a;
}

V tir_emit_address(struct emit *e, const struct tir_value *base, const struct tir_value *at,
                   int64_t offset)
{
    struct address a = address_of(e, base, at, offset);
    return at_offset(e, &a);
}

// The words an access of `width` bytes moves.
struct words {
    LLVMTypeRef word; // i8, i16, i32 or i64
    uint32_t count;
    LLVMTypeRef type; // the word, or a vector of them
};

static struct words words_of(const struct emit *e, uint32_t width, unsigned elem_bytes)
{
    struct words w = {e->ll->i32, width / 4, NULL};
    if (width <= 2)
        w = (struct words){width == 1 ? e->ll->i8 : e->ll->i16, 1, NULL};
    else if (elem_bytes == 8)
        w = (struct words){e->ll->i64, width / 8, NULL};
    w.type = w.count == 1 ? w.word : LLVMVectorType(w.word, w.count);
    return w;
}

static bool check_width(struct emit *e, uint64_t width, uint64_t count, unsigned elem_bytes)
{
    uint64_t most = e->ll->target->features & TIR_HAS_TCGEN05 ? 32 : 16;
    if (tir_is_pow2(width) && width <= most && count * elem_bytes == width)
        return true;
    tir_error_at(e->diags, e->span, TIR_E_CODEGEN,
                 "an access of %" PRIu64 " bytes for %" PRIu64 " values of %u bytes", width, count,
                 elem_bytes);
    e->failed = true;
    return false;
}

static bool is_wide(const struct address *a) // shared memory has addresses of 32 bits
{
    return a->space != TIR_SPACE_SHARED && a->space != TIR_SPACE_CLUSTER;
}

// "ld.global.nc.L1::no_allocate.v4.b32": operation, space, caches, and the shape of the access.
static void access_name(struct tir_text *text, const char *operation, const struct address *a,
                        struct words w, bool read_only, const struct emit_cache *cache)
{
    unsigned bits = LLVMGetIntTypeWidth(w.word);
    const char *space = a->space == TIR_SPACE_SHARED    ? ".shared"
                        : a->space == TIR_SPACE_CLUSTER ? ".shared::cluster"
                                                        : ".global";
    tir_text_format(text, "%s%s%s%s", operation, space, read_only ? ".nc" : "", cache->text);
    if (w.count > 1)
        tir_text_format(text, ".v%" PRIu32, w.count);
    tir_text_format(text, ".b%u", bits);
}

static void list_operands(struct tir_text *text, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        tir_text_format(text, "%s$%" PRIu32, i ? ", " : "", first + i);
}

static const char *constraint_of(const struct emit *e, LLVMTypeRef type)
{
    if (type == e->ll->i64)
        return "l";
    if (type == e->ll->i32)
        return "r";
    return "h";
}

static V pointer_as_int(struct emit *e, const struct address *a)
{
    return LLVMBuildPtrToInt(e->b, a->pointer, is_wide(a) ? e->ll->i64 : e->ll->i32, "");
}

// Keeps an immediate within what every PTX address takes.
static void fold_large_offset(struct emit *e, struct address *a)
{
    if (a->offset == (int32_t)a->offset)
        return;
    a->pointer = at_offset(e, a);
    a->offset = 0;
}

// The policy as the last operand of an instruction; `first` operands of the text come before args.
static void add_policy(struct tir_text *text, struct tir_text *constraints,
                       const struct emit_cache *cache, uint32_t first, V *args, uint32_t *count)
{
    if (!cache->policy)
        return;
    tir_text_format(text, ", $%" PRIu32, first + *count);
    tir_text_add(constraints, STR(",l"));
    args[(*count)++] = cache->policy;
}

// As PTX: under a predicate, or with what LLVM's loads do not say. Where pred (NULL: always) is
// false the result is 0. Bytes are loaded into 16-bit registers, the smallest there are.
static V asm_load(struct emit *e, struct address *a, struct words w, V pred,
                  const struct emit_cache *cache)
{
    fold_large_offset(e, a);
    struct tir_text text, constraints;
    tir_text_init(&text, e->arena, 0);
    tir_text_init(&constraints, e->arena, 0);
    LLVMTypeRef held = w.word == e->ll->i8 ? e->ll->i16 : w.word, outputs[8];
    V args[3];
    uint32_t count = 0, at = w.count; // operands of the text: results, address, predicate, policy
    args[count++] = pointer_as_int(e, a);
    if (pred)
        tir_text_add(&text, STR("{ "));
    for (uint32_t i = 0; i < w.count; i++) {
        if (pred)
            tir_text_format(&text, "mov.b%u $%" PRIu32 ", 0; ", LLVMGetIntTypeWidth(held), i);
        tir_text_format(&constraints, "=%s%s,", pred ? "&" : "", constraint_of(e, held));
        outputs[i] = held;
    }
    tir_text_add(&constraints, is_wide(a) ? STR("l") : STR("r"));
    if (pred) {
        tir_text_format(&text, "@$%" PRIu32 " ", at + count);
        tir_text_add(&constraints, STR(",b"));
        args[count++] = pred;
    }
    access_name(&text, "ld", a, w, a->constant_memory, cache);
    tir_text_add(&text, w.count > 1 ? STR(" {") : STR(" "));
    list_operands(&text, 0, w.count);
    tir_text_format(&text, "%s, [$%" PRIu32 "+%" PRId64 "]", w.count > 1 ? "}" : "", at, a->offset);
    add_policy(&text, &constraints, cache, at, args, &count);
    tir_text_add(&text, pred ? STR("; }") : STR(";"));
    uint32_t flags = 0;
    if (!a->constant_memory) {
        tir_text_add(&constraints, STR(",~{memory}"));
        flags = TIR_ASM_EFFECT;
    }
    LLVMTypeRef type =
        w.count == 1 ? held : LLVMStructTypeInContext(e->ll->context, outputs, w.count, false);
    V result = tir_llvm_asm(e->ll, type, tir_text_str(&text), tir_text_str(&constraints), flags,
                            args, count);
    if (w.count == 1)
        return held == w.word ? result : LLVMBuildTrunc(e->b, result, w.word, "");
    V words[8];
    for (uint32_t i = 0; i < w.count; i++)
        words[i] = LLVMBuildExtractValue(e->b, result, i, "");
    return tir_emit_words(e, words, w.count, w.word);
}

static V plain_load(struct emit *e, const struct address *a, LLVMTypeRef type, uint32_t width)
{
    V load = LLVMBuildLoad2(e->b, type, at_offset(e, a), "");
    LLVMSetAlignment(load, width);
    if (a->constant_memory) {
        LLVMContextRef c = e->ll->context;
        LLVMSetMetadata(load, LLVMGetMDKindIDInContext(c, "invariant.load", 14),
                        LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, NULL, 0)));
    }
    return load;
}

// Local memory: where the predicate is false the start of the buffer is read instead, so that the
// buffer can still become registers.
static V local_load(struct emit *e, const struct address *a, const struct tir_value *base,
                    LLVMTypeRef type, uint32_t width, V pred)
{
    struct address safe = *a;
    safe.pointer = tir_emit_select(e, pred, at_offset(e, a), e->slots[base->id].v);
    safe.offset = 0;
    return tir_emit_select(e, pred, plain_load(e, &safe, type, width), LLVMConstNull(type));
}

static void emit_ld(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_value *base = inst->operands[0], *pred = inst->operands[2];
    uint32_t width = (uint32_t)tir_attr_int(inst, TIR_ATTR_width, 0), count = inst->result_count;
    LLVMTypeRef elem = tir_emit_type(e, inst->results[0]->type);
    unsigned elem_bytes = tir_emit_bytes(e, elem);
    if (!check_width(e, width, count, elem_bytes))
        return;
    struct address a =
        address_of(e, base, inst->operands[1], tir_attr_int(inst, TIR_ATTR_offset, 0));
    struct words w = words_of(e, width, elem_bytes);
    int known = tir_emit_known(pred);
    struct emit_cache cache = tir_emit_cache(e, inst);
    V v;
    if (known == 0)
        v = LLVMConstNull(w.type);
    else if (known == 1 && !*cache.text)
        v = plain_load(e, &a, w.type, width);
    else if (a.space == TIR_SPACE_LOCAL)
        v = local_load(e, &a, base, w.type, width, tir_emit_value(e, pred));
    else
        v = asm_load(e, &a, w, known == 1 ? NULL : tir_emit_value(e, pred), &cache);
    V parts[32];
    tir_emit_unpack(e, v, elem, count, parts);
    for (uint32_t i = 0; i < count; i++)
        tir_emit_set(e, inst->results[i], parts[i]);
}

static void asm_store(struct emit *e, struct address *a, struct words w, V value, V pred,
                      const struct emit_cache *cache)
{
    fold_large_offset(e, a);
    struct tir_text text, constraints;
    tir_text_init(&text, e->arena, 0);
    tir_text_init(&constraints, e->arena, 0);
    V args[11];
    uint32_t count = 0;
    for (; count < w.count; count++) {
        V word =
            w.count == 1 ? value : LLVMBuildExtractElement(e->b, value, tir_emit_i32(e, count), "");
        args[count] = w.word == e->ll->i8 ? LLVMBuildZExt(e->b, word, e->ll->i16, "") : word;
        tir_text_format(&constraints, "%s,", constraint_of(e, w.word));
    }
    tir_text_add(&constraints, is_wide(a) ? STR("l") : STR("r"));
    args[count++] = pointer_as_int(e, a);
    if (pred) {
        tir_text_format(&text, "@$%" PRIu32 " ", count);
        tir_text_add(&constraints, STR(",b"));
        args[count++] = pred;
    }
    access_name(&text, "st", a, w, false, cache);
    tir_text_format(&text, " [$%" PRIu32 "+%" PRId64 "], %s", w.count, a->offset,
                    w.count > 1 ? "{" : "");
    list_operands(&text, 0, w.count);
    tir_text_add(&text, w.count > 1 ? STR("}") : STR(""));
    add_policy(&text, &constraints, cache, 0, args, &count);
    tir_text_add(&text, STR(";"));
    tir_text_add(&constraints, STR(",~{memory}"));
    tir_llvm_asm(e->ll, e->ll->none, tir_text_str(&text), tir_text_str(&constraints),
                 TIR_ASM_EFFECT, args, count);
}

// Opens a block that runs only where pred holds; close_guard ends it. False: it never runs.
struct guard {
    LLVMBasicBlockRef from, join;
};
static bool open_guard(struct emit *e, const struct tir_value *pred, struct guard *guard)
{
    int known = tir_emit_known(pred);
    guard->join = NULL;
    if (known >= 0)
        return known;
    LLVMBasicBlockRef inside = tir_emit_block(e, "guarded");
    guard->from = LLVMGetInsertBlock(e->b);
    guard->join = tir_emit_block(e, "join");
    LLVMBuildCondBr(e->b, tir_emit_value(e, pred), inside, guard->join);
    tir_emit_at(e, inside);
    return true;
}

// value where the guard held, 0 elsewhere (NULL: no value).
static V close_guard(struct emit *e, const struct guard *guard, V value)
{
    if (!guard->join)
        return value;
    LLVMBasicBlockRef inside = LLVMGetInsertBlock(e->b);
    LLVMBuildBr(e->b, guard->join);
    tir_emit_at(e, guard->join);
    if (!value)
        return NULL;
    V phi = LLVMBuildPhi(e->b, LLVMTypeOf(value), "");
    V values[] = {value, LLVMConstNull(LLVMTypeOf(value))};
    LLVMAddIncoming(phi, values, (LLVMBasicBlockRef[]){inside, guard->from}, 2);
    return phi;
}

static void emit_st(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_value *base = inst->operands[0], *pred = inst->operands[2];
    uint32_t width = (uint32_t)tir_attr_int(inst, TIR_ATTR_width, 0), count;
    struct tir_value **values = tir_list(inst, &count);
    unsigned elem_bytes = count ? tir_emit_bytes(e, tir_emit_type(e, values[0]->type)) : 0;
    if (!check_width(e, width, count, elem_bytes))
        return;
    int known = tir_emit_known(pred);
    if (known == 0)
        return;
    V parts[32];
    for (uint32_t i = 0; i < count; i++)
        parts[i] = tir_emit_value(e, values[i]);
    struct words w = words_of(e, width, elem_bytes);
    V value = tir_emit_pack(e, parts, count, w.type);
    struct address a =
        address_of(e, base, inst->operands[1], tir_attr_int(inst, TIR_ATTR_offset, 0));
    struct emit_cache cache = tir_emit_cache(e, inst);
    if (*cache.text || (known < 0 && a.space != TIR_SPACE_LOCAL)) {
        asm_store(e, &a, w, value, known == 1 ? NULL : tir_emit_value(e, pred), &cache);
        return;
    }
    struct guard guard;
    open_guard(e, pred, &guard);
    LLVMSetAlignment(LLVMBuildStore(e->b, value, at_offset(e, &a)), width);
    close_guard(e, &guard, NULL);
}

static void emit_atom(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_value *base = inst->operands[0], *value = inst->operands[2];
    enum tir_word kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE);
    struct address a =
        address_of(e, base, inst->operands[1], tir_attr_int(inst, TIR_ATTR_offset, 0));
    V old = LLVMConstNull(tir_emit_type(e, value->type));
    struct guard guard;
    if (open_guard(e, inst->operands[3], &guard)) {
        old = tir_emit_atomic(e, inst, at_offset(e, &a), a.space);
        if (!old) {
            tir_str what = tir_str_format(e->arena, "atomic %s on %s", tir_words[kind].name,
                                          tir_elems[value->type->elem].name);
            old = tir_emit_unsupported(e, value->type, what.ptr);
        }
        old = close_guard(e, &guard, old);
    }
    tir_emit_set(e, inst->results[0], old);
}

// Asynchronous copies and matrices.

static void emit_cp_async(struct emit *e, const struct tir_inst *inst)
{
    static const char *const names[3][2] = {
        {"llvm.nvvm.cp.async.ca.shared.global.4", "llvm.nvvm.cp.async.ca.shared.global.4.s"},
        {"llvm.nvvm.cp.async.ca.shared.global.8", "llvm.nvvm.cp.async.ca.shared.global.8.s"},
        {"llvm.nvvm.cp.async.cg.shared.global.16", "llvm.nvvm.cp.async.cg.shared.global.16.s"}};
    int64_t width = tir_attr_int(inst, TIR_ATTR_width, 0);
    if (width != 4 && width != 8 && width != 16) {
        tir_error_at(e->diags, inst->span, TIR_E_CODEGEN, "cp_async of %" PRId64 " bytes", width);
        e->failed = true;
        return;
    }
    struct address to =
        address_of(e, inst->operands[0], inst->operands[1], tir_attr_int(inst, TIR_ATTR_offset, 0));
    struct address from = address_of(e, inst->operands[2], inst->operands[3], 0);
    const struct tir_value *pred = inst->operands[4];
    V args[3] = {at_offset(e, &to), at_offset(e, &from), NULL};
    bool tested = tir_emit_known(pred) != 1;
    if (tested) // fewer source bytes than the width: the rest is zeros
        args[2] =
            tir_emit_select(e, tir_emit_value(e, pred), tir_emit_i32(e, width), tir_emit_i32(e, 0));
    // No policy: for sm_90 ptxas 13.0 takes it from an odd uniform register, which is an illegal
    // instruction on an H200.
    tir_llvm_call(e->ll, names[width / 8][tested], NULL, 0, args, tested ? 3 : 2);
}

static void emit_ldmatrix(struct emit *e, const struct tir_inst *inst)
{
    static const char *const names[3][2] = {{"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.b16",
                                             "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.trans.b16"},
                                            {"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.b16",
                                             "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.trans.b16"},
                                            {"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16",
                                             "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16"}};
    uint32_t count = inst->result_count;
    if (count != 1 && count != 2 && count != 4) {
        tir_error_at(e->diags, inst->span, TIR_E_CODEGEN, "ldmatrix of %" PRIu32 " matrices",
                     count);
        e->failed = true;
        return;
    }
    struct address a =
        address_of(e, inst->operands[0], inst->operands[1], tir_attr_int(inst, TIR_ATTR_offset, 0));
    V pointer = at_offset(e, &a);
    LLVMTypeRef type = LLVMTypeOf(pointer);
    V result = tir_llvm_call(e->ll, names[count / 2][tir_attr_int(inst, TIR_ATTR_trans, 0) != 0],
                             &type, 1, &pointer, 1);
    LLVMAddCallSiteAttribute(result, LLVMAttributeFunctionIndex, e->ll->convergent);
    for (uint32_t i = 0; i < count; i++)
        tir_emit_set(e, inst->results[i],
                     count == 1 ? result : LLVMBuildExtractValue(e->b, result, i, ""));
}

// Does wgmma_unseen.c name a register that inst, a stmatrix, stores?
static bool stores_sums(const struct emit *e, const struct tir_inst *inst)
{
    uint32_t count;
    struct tir_value **values = tir_list(inst, &count);
    for (uint32_t i = 0; i < count; i++)
        if (tir_emit_is_sum(e, values[i]))
            return true;
    return false;
}

enum { MATRIX_INPUTS = 5 }; // of one stmatrix: an address and what LLVM sees of the registers

static uint32_t add_matrix_input(struct tir_text *text, struct tir_text *constraints,
                                 uint32_t input, char constraint)
{
    tir_text_format(text, "$%" PRIu32, input);
    tir_text_format(constraints, "%c,", constraint);
    return 1;
}

// Adds a stmatrix to a piece of PTX that has `input` inputs so far. Returns how many it adds.
static uint32_t add_matrix(struct emit *e, struct tir_text *text, struct tir_text *constraints,
                           const struct tir_inst *inst, uint32_t input, V *args)
{
    uint32_t count, inputs = 0;
    struct tir_value **values = tir_list(inst, &count);
    struct address a =
        address_of(e, inst->operands[0], inst->operands[1], tir_attr_int(inst, TIR_ATTR_offset, 0));
    fold_large_offset(e, &a);
    args[inputs] = a.pointer;
    tir_text_format(text, "stmatrix.sync.aligned.m8n8.x%" PRIu32 "%s.shared.b16 [", count,
                    tir_attr_int(inst, TIR_ATTR_trans, 0) ? ".trans" : "");
    inputs += add_matrix_input(text, constraints, input, 'l');
    tir_text_format(text, "+%" PRId64 "], {", a.offset);
    for (uint32_t i = 0; i < count; i++) {
        tir_text_add(text, i ? STR(",") : STR(""));
        if (tir_emit_is_sum(e, values[i])) {
            tir_emit_add_sum(e, text, values[i]);
            continue;
        }
        args[inputs] = tir_emit_value(e, values[i]);
        inputs += add_matrix_input(text, constraints, input + inputs, 'r');
    }
    tir_text_add(text, STR("}; "));
    return inputs;
}

// Stores of sums with nothing but pure operations between them are one piece of PTX, where the last
// of them is.
static void emit_stmatrix_of_sums(struct emit *e, const struct tir_inst *inst)
{
    vec_push(e->arena, &e->matrices, inst);
    const struct tir_inst *next = inst->next;
    while (next && tir_has_trait(next, TIR_PURE))
        next = next->next;
    if (next && next->op == TIR_OP_STMATRIX && stores_sums(e, next) &&
        (e->matrices.len + 1) * MATRIX_INPUTS <= TIR_ASM_INPUTS)
        return; // emitted with that one
    struct tir_text text, constraints;
    tir_text_init(&text, e->arena, 0);
    tir_text_init(&constraints, e->arena, 0);
    V args[TIR_ASM_INPUTS];
    uint32_t inputs = 0;
    vec_foreach(const struct tir_inst *, it, &e->matrices)
        inputs += add_matrix(e, &text, &constraints, *it, inputs, args + inputs);
    tir_text_add(&constraints, STR("~{memory}"));
    tir_llvm_asm(e->ll, e->ll->none, tir_text_str(&text), tir_text_str(&constraints),
                 TIR_ASM_EFFECT | TIR_ASM_CONVERGENT, args, inputs);
    e->matrices.len = 0;
}

static void emit_stmatrix(struct emit *e, const struct tir_inst *inst)
{
    static const char *const names[3][2] = {{"llvm.nvvm.stmatrix.sync.aligned.m8n8.x1.b16",
                                             "llvm.nvvm.stmatrix.sync.aligned.m8n8.x1.trans.b16"},
                                            {"llvm.nvvm.stmatrix.sync.aligned.m8n8.x2.b16",
                                             "llvm.nvvm.stmatrix.sync.aligned.m8n8.x2.trans.b16"},
                                            {"llvm.nvvm.stmatrix.sync.aligned.m8n8.x4.b16",
                                             "llvm.nvvm.stmatrix.sync.aligned.m8n8.x4.trans.b16"}};
    uint32_t count;
    struct tir_value **values = tir_list(inst, &count);
    if (stores_sums(e, inst)) {
        emit_stmatrix_of_sums(e, inst);
        return;
    }
    V args[MATRIX_INPUTS] = {tir_emit_address(e, inst->operands[0], inst->operands[1],
                                              tir_attr_int(inst, TIR_ATTR_offset, 0))};
    for (uint32_t i = 0; i < count; i++)
        args[1 + i] = tir_emit_value(e, values[i]);
    LLVMTypeRef type = LLVMTypeOf(args[0]);
    V v = tir_llvm_call(e->ll, names[count / 2][tir_attr_int(inst, TIR_ATTR_trans, 0) != 0], &type,
                        1, args, 1 + count);
    LLVMAddCallSiteAttribute(v, LLVMAttributeFunctionIndex, e->ll->convergent);
}

// Buffers.

// In 32 bits throughout: descriptors are made of it.
static void emit_address(struct emit *e, const struct tir_inst *inst)
{
    const struct emit_slot *slot = &e->slots[inst->operands[0]->id];
    const struct tir_value *at = inst->operands[1];
    V v = LLVMBuildPtrToInt(e->b, slot->v, e->ll->i32, "");
    if (at)
        v = LLVMBuildAdd(e->b, v, tir_emit_low_word(e, at), "");
    V offset = tir_emit_i32(e, slot->offset + tir_attr_int(inst, TIR_ATTR_offset, 0));
    tir_emit_set(e, inst->results[0], LLVMBuildAdd(e->b, v, offset, ""));
}

static void emit_remote(struct emit *e, const struct tir_inst *inst)
{
    const struct emit_slot *here = &e->slots[inst->operands[0]->id];
    struct emit_slot *there = &e->slots[inst->results[0]->id];
    V args[] = {here->v, tir_emit_value(e, inst->operands[1])};
    there->v = tir_llvm_call(e->ll, "llvm.nvvm.mapa.shared.cluster", NULL, 0, args, 2);
    there->offset = here->offset;
}

static void emit_alloc(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_type *type = inst->results[0]->type;
    struct emit_slot *slot = &e->slots[inst->results[0]->id];
    if (type->space == TIR_SPACE_SHARED) {
        const struct tir_attr *offset = tir_attr_find(inst, TIR_ATTR_offset);
        if (!offset) {
            tir_error_at(e->diags, inst->span, TIR_E_CODEGEN, "a shared buffer without a place");
            e->failed = true;
            return;
        }
        slot->v = tir_emit_shared_base(e);
        slot->offset = offset->number;
        if (inst->operand_count) // a group of warps has its own
            slot->v = add_bytes(e, slot->v, tir_emit_value(e, inst->operands[0]));
        return;
    }
    // At the start of the entry block, so that LLVM can turn it into registers.
    LLVMBasicBlockRef here = tir_emit_at_entry(e);
    slot->v = LLVMBuildAlloca(e->b, LLVMArrayType2(e->ll->i8, (uint64_t)tir_type_bytes(type)), "");
    LLVMSetAlignment(slot->v, 16);
    e->ll->has_buffers = true;
    tir_emit_at(e, here);
}

// The address of what it is an alias of, and the bytes up to where it begins.
static void emit_alias(struct emit *e, const struct tir_inst *inst)
{
    struct emit_slot *slot = &e->slots[inst->results[0]->id];
    *slot = e->slots[inst->operands[0]->id];
    slot->offset += tir_attr_int(inst, TIR_ATTR_offset, 0);
}

void tir_emit_memory(struct emit *e, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_LD:
        emit_ld(e, inst);
        return;
    case TIR_OP_ST:
        emit_st(e, inst);
        return;
    case TIR_OP_ATOM:
        emit_atom(e, inst);
        return;
    case TIR_OP_CP_ASYNC:
        emit_cp_async(e, inst);
        return;
    case TIR_OP_LDMATRIX:
        emit_ldmatrix(e, inst);
        return;
    case TIR_OP_STMATRIX:
        emit_stmatrix(e, inst);
        return;
    case TIR_OP_ADDRESS:
        emit_address(e, inst);
        return;
    case TIR_OP_REMOTE:
        emit_remote(e, inst);
        return;
    case TIR_OP_ALLOC:
        emit_alloc(e, inst);
        return;
    case TIR_OP_ALIAS:
        emit_alias(e, inst);
        return;
    default:
        tir_unreachable();
    }
}
