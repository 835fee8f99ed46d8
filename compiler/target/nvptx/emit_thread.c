// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations of one thread among others: ids, barriers, shuffles, votes, inline PTX.

#include "target/nvptx/emit.h"

#include <inttypes.h>
#include <stdio.h>

#define ALL_LANES (-1)

// Ids. CTAs are one-dimensional, so every id follows from %tid.x.

static V special_register(struct emit *e, const char *name)
{
    return tir_llvm_call(e->ll, name, NULL, 0, NULL, 0);
}

static void add_range(struct emit *e, V v, uint64_t high)
{
    unsigned kind = LLVMGetEnumAttributeKindForName("range", 5);
    uint64_t low = 0;
    LLVMAddCallSiteAttribute(
        v, LLVMAttributeReturnIndex,
        LLVMCreateConstantRangeAttribute(e->ll->context, kind, 32, &low, &high));
}

static V thread_id(struct emit *e)
{
    V tid = special_register(e, "llvm.nvvm.read.ptx.sreg.tid.x");
    if (e->f->threads)
        add_range(e, tid, e->f->threads);
    return tid;
}

static V thread_bits(struct emit *e, unsigned shift, unsigned mask)
{
    V v = thread_id(e);
    if (shift)
        v = LLVMBuildLShr(e->b, v, tir_emit_i32(e, shift), "");
    return mask ? LLVMBuildAnd(e->b, v, tir_emit_i32(e, mask), "") : v;
}

static V shuffle_word(struct emit *e, const char *name, V x, V lane, V clamp)
{
    return tir_llvm_call(e->ll, name, NULL, 0, (V[]){tir_emit_i32(e, ALL_LANES), x, lane, clamp},
                         4);
}

// The number of the warp. Where engines are fed it comes out of a shuffle, so that ptxas knows it,
// and the descriptors that follow from it, for the same in all lanes; at the start of the kernel,
// where all of them are there.
static V warp_id(struct emit *e)
{
    if (!e->has_engines)
        return thread_bits(e, 5, 0);
    if (e->warp)
        return e->warp;
    LLVMBasicBlockRef here = tir_emit_at_entry(e);
    V zero = tir_emit_i32(e, 0);
    e->warp = shuffle_word(e, "llvm.nvvm.shfl.sync.idx.i32", thread_bits(e, 5, 0), zero,
                           tir_emit_i32(e, 31));
    if (e->f->threads)
        add_range(e, e->warp, e->f->threads / 32);
    tir_emit_at(e, here);
    return e->warp;
}

// Ids within the grid, and within clusters where there are any: else a CTA is its own cluster.

struct id_row {
    enum tir_op op;
    const char *with_clusters, *without; // registers; NULL: 0
};
static const struct id_row ids[] = {
    {TIR_OP_CTA_ID, "ctaid", "ctaid"},
    {TIR_OP_NUM_CTAS, "nctaid", "nctaid"},
    {TIR_OP_CTA_IN_CLUSTER, "cluster.ctaid", NULL},
    {TIR_OP_CLUSTER_SIZE, "cluster.nctaid", NULL},
    {TIR_OP_CLUSTER_ID, "clusterid", "ctaid"},
    {TIR_OP_NUM_CLUSTERS, "nclusterid", "nctaid"},
};

static V grid_register(struct emit *e, const struct tir_inst *inst)
{
    int64_t axis = tir_attr_int(inst, TIR_ATTR_axis, 0);
    if (axis < 0 || axis > 2) {
        tir_error_at(e->diags, inst->span, TIR_E_CODEGEN, "a grid has no axis %" PRId64, axis);
        e->failed = true;
        return tir_emit_i32(e, 0);
    }
    const struct id_row *row = ids;
    while (row->op != inst->op)
        row++;
    if (row->op == TIR_OP_CLUSTER_SIZE && !e->f->preferred[0])
        return tir_emit_i32(e, TIR_MAX(e->f->cluster[axis], 1));
    const char *id = e->f->cluster[0] ? row->with_clusters : row->without;
    if (!id)
        return tir_emit_i32(e, 0);
    char name[64];
    snprintf(name, sizeof(name), "llvm.nvvm.read.ptx.sreg.%s.%c", id, "xyz"[axis]);
    return special_register(e, name);
}

static V cta_rank(struct emit *e)
{
    return e->f->cluster[0] ? special_register(e, "llvm.nvvm.read.ptx.sreg.cluster.ctarank")
                            : tir_emit_i32(e, 0);
}

static V elect(struct emit *e)
{
    if (!(e->ll->target->features & TIR_HAS_ELECT))
        return tir_emit_icmp(e, LLVMIntEQ, thread_bits(e, 0, 31), tir_emit_i32(e, 0));
    V all = tir_emit_i32(e, ALL_LANES);
    V v = tir_llvm_call(e->ll, "llvm.nvvm.elect.sync", NULL, 0, &all, 1);
    return LLVMBuildExtractValue(e->b, v, 1, "");
}

// Shuffles move 32 bits; other widths are widened or split.

static V shuffle(struct emit *e, const struct tir_inst *inst)
{
    const char *name = "llvm.nvvm.shfl.sync.idx.i32";
    V clamp = tir_emit_i32(e, 31);
    switch (tir_attr_word(inst, TIR_ATTR_mode, TIR_WORD_mode_idx)) {
    case TIR_WORD_mode_up:
        name = "llvm.nvvm.shfl.sync.up.i32";
        clamp = tir_emit_i32(e, 0);
        break;
    case TIR_WORD_mode_down:
        name = "llvm.nvvm.shfl.sync.down.i32";
        break;
    case TIR_WORD_mode_bfly:
        name = "llvm.nvvm.shfl.sync.bfly.i32";
        break;
    default:
        break;
    }
    enum tir_elem lane_elem = inst->operands[1]->type->elem;
    V x = tir_emit_value(e, inst->operands[0]);
    V lane = tir_emit_convert(e, tir_emit_value(e, inst->operands[1]), lane_elem, TIR_I32);
    LLVMTypeRef type = LLVMTypeOf(x), i32 = e->ll->i32;
    unsigned bits = tir_elems[inst->operands[0]->type->elem].bits;
    if (bits == 64) {
        V halves = tir_emit_bits(e, x, LLVMVectorType(i32, 2)),
          out = LLVMGetPoison(LLVMTypeOf(halves));
        for (int i = 0; i < 2; i++) {
            V half = LLVMBuildExtractElement(e->b, halves, tir_emit_i32(e, i), "");
            half = shuffle_word(e, name, half, lane, clamp);
            out = LLVMBuildInsertElement(e->b, out, half, tir_emit_i32(e, i), "");
        }
        return tir_emit_bits(e, out, type);
    }
    if (bits == 32)
        return tir_emit_bits(e, shuffle_word(e, name, tir_emit_bits(e, x, i32), lane, clamp), type);
    LLVMTypeRef small = bits == 16 ? e->ll->i16 : type; // i1 and i8 as they are
    V word = LLVMBuildZExt(e->b, tir_emit_bits(e, x, small), i32, "");
    word = shuffle_word(e, name, word, lane, clamp);
    return tir_emit_bits(e, LLVMBuildTrunc(e->b, word, small, ""), type);
}

static V vote(struct emit *e, const struct tir_inst *inst)
{
    const char *name = "llvm.nvvm.vote.ballot.sync";
    switch (tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_kind_ballot)) {
    case TIR_WORD_kind_any:
        name = "llvm.nvvm.vote.any.sync";
        break;
    case TIR_WORD_kind_all:
        name = "llvm.nvvm.vote.all.sync";
        break;
    default:
        break;
    }
    V args[] = {tir_emit_i32(e, ALL_LANES), tir_emit_value(e, inst->operands[0])};
    return tir_llvm_call(e->ll, name, NULL, 0, args, 2);
}

// Inline PTX. Values travel in registers of at least 16 bits; a bool cannot be a result.

static bool is_ptx_text(tir_str text, uint32_t operands)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\0')
            return false;
        if (text.ptr[i] != '$')
            continue;
        if (++i == text.len)
            return false;
        if (text.ptr[i] == '$')
            continue;
        uint32_t number = 0, digits = 0;
        while (i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9' && digits++ < 4)
            number = number * 10 + (uint32_t)(text.ptr[i++] - '0');
        if (!digits || number >= operands)
            return false;
        i--;
    }
    return true;
}

static LLVMTypeRef register_type(const struct emit *e, const struct tir_type *type, char *letter)
{
    switch (tir_elems[type->elem].bits) {
    case 8:
        *letter = type->elem == TIR_BOOL ? 'b' : 'h';
        return type->elem == TIR_BOOL ? e->ll->i1 : e->ll->i16;
    case 16:
        *letter = 'h';
        return e->ll->i16;
    case 32:
        *letter = tir_elem_is_float(type->elem) ? 'f' : 'r';
        return tir_elem_is_float(type->elem) ? e->ll->f32 : e->ll->i32;
    default:
        *letter = tir_elem_is_float(type->elem) ? 'd' : 'l';
        return tir_elem_is_float(type->elem) ? e->ll->f64 : e->ll->i64;
    }
}

static V to_register(struct emit *e, const struct tir_value *v, char *letter)
{
    if (tir_type_is_buffer(v->type)) { // its address
        const struct emit_slot *slot = &e->slots[v->id];
        bool shared = v->type->space == TIR_SPACE_SHARED;
        LLVMTypeRef type = shared ? e->ll->i32 : e->ll->i64;
        *letter = shared ? 'r' : 'l';
        V address = LLVMBuildPtrToInt(e->b, slot->v, type, "");
        return LLVMBuildAdd(e->b, address, LLVMConstInt(type, (uint64_t)slot->offset, true), "");
    }
    LLVMTypeRef type = register_type(e, v->type, letter);
    V x = tir_emit_value(e, v);
    return LLVMTypeOf(x) == e->ll->i8 ? LLVMBuildZExt(e->b, x, type, "")
                                      : tir_emit_bits(e, x, type);
}

static void set_from_register(struct emit *e, const struct tir_value *v, V x)
{
    LLVMTypeRef type = tir_emit_type(e, v->type);
    tir_emit_set(e, v,
                 type == e->ll->i8 ? LLVMBuildTrunc(e->b, x, type, "") : tir_emit_bits(e, x, type));
}

static void emit_ptx(struct emit *e, const struct tir_inst *inst)
{
    uint32_t results = inst->result_count, inputs = inst->operand_count;
    const struct tir_attr *text = tir_attr_find(inst, TIR_ATTR_text);
    LLVMTypeRef types[16];
    V args[64];
    struct tir_text constraints;
    tir_text_init(&constraints, e->arena, 0);
    bool ok = text && results <= TIR_COUNT_OF(types) && inputs <= TIR_COUNT_OF(args) &&
              is_ptx_text(text->text, results + inputs);
    for (uint32_t i = 0; i < results && ok; i++) {
        char letter;
        types[i] = register_type(e, inst->results[i]->type, &letter);
        ok = letter != 'b';
        tir_text_format(&constraints, "=%c,", letter);
    }
    for (uint32_t i = 0; i < inputs && ok; i++) {
        char letter;
        args[i] = to_register(e, inst->operands[i], &letter);
        tir_text_format(&constraints, "%c,", letter);
    }
    if (!ok) {
        tir_error_at(e->diags, inst->span, TIR_E_UNSUPPORTED,
                     "ptx needs text whose $N are its %" PRIu32
                     " operands, at most 16 results that "
                     "are no bools, and at most 64 inputs",
                     results + inputs);
        e->failed = true;
        return;
    }
    tir_text_add(&constraints, STR("~{memory}"));
    LLVMTypeRef type = results == 0 ? e->ll->none
                       : results == 1
                           ? types[0]
                           : LLVMStructTypeInContext(e->ll->context, types, results, false);
    V v = tir_llvm_asm(e->ll, type, text->text, tir_text_str(&constraints),
                       TIR_ASM_EFFECT | TIR_ASM_CONVERGENT, args, inputs);
    for (uint32_t i = 0; i < results; i++)
        set_from_register(e, inst->results[i],
                          results == 1 ? v : LLVMBuildExtractValue(e->b, v, i, ""));
}

// The value of an operation with one result.
static V thread_value(struct emit *e, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_TID:
        return thread_id(e);
    case TIR_OP_LANEID:
        return thread_bits(e, 0, 31);
    case TIR_OP_WARPID:
        return warp_id(e);
    case TIR_OP_WGID:
        return LLVMBuildLShr(e->b, warp_id(e), tir_emit_i32(e, 2), "");
    case TIR_OP_TID_IN_WG:
        return thread_bits(e, 0, 127);
    case TIR_OP_CTA_ID:
    case TIR_OP_NUM_CTAS:
    case TIR_OP_CTA_IN_CLUSTER:
    case TIR_OP_CLUSTER_SIZE:
    case TIR_OP_CLUSTER_ID:
    case TIR_OP_NUM_CLUSTERS:
        return grid_register(e, inst);
    case TIR_OP_CTA_RANK:
        return cta_rank(e);
    case TIR_OP_ELECT:
        return elect(e);
    case TIR_OP_NUM_THREADS:
        return e->f->threads ? tir_emit_i32(e, e->f->threads)
                             : special_register(e, "llvm.nvvm.read.ptx.sreg.ntid.x");
    case TIR_OP_SHUFFLE:
        return shuffle(e, inst);
    case TIR_OP_VOTE:
        return vote(e, inst);
    default:
        tir_unreachable();
    }
}

void tir_emit_thread(struct emit *e, const struct tir_inst *inst)
{
    if (inst->op == TIR_OP_PTX)
        emit_ptx(e, inst);
    else
        tir_emit_set(e, inst->results[0], thread_value(e, inst));
}
