// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies by the async proxy: parts of tensors through their maps, and runs of bytes. Reductions.
//
// A map lists a tensor's dimensions innermost first, so coordinates are given in that order.

#include "target/nvptx/emit.h"

#include <inttypes.h>
#include <stdio.h>

// Arguments of an intrinsic, in order.
struct args {
    V at[16];
    uint32_t len;
};

static void push(struct args *args, V v)
{
    args->at[args->len++] = v;
}

// The map of a copy, as its intrinsics take it, and the coordinates.
static void push_place(struct emit *e, struct args *args, const struct tir_inst *inst)
{
    struct tir_value **indices = tir_ref_indices(inst);
    push(args,
         LLVMGetParam(e->function, e->first_map + tir_tensor_map_index(&e->maps, e->f, inst)));
    for (uint32_t d = tir_ref_base(inst)->type->rank; d-- > 0;)
        push(args, tir_emit_low_word(e, indices[d]));
}

static void push_policy(struct emit *e, struct args *args, V policy)
{
    push(args, policy ? policy : LLVMConstInt(e->ll->i64, 0, false));
}

static void push_flag(struct emit *e, struct args *args, bool flag)
{
    push(args, LLVMConstInt(e->ll->i1, flag, false));
}

// The end of most argument lists: the policy of the caches, and whether there is one.
static void push_cache(struct emit *e, struct args *args, const struct tir_inst *inst)
{
    struct emit_cache cache = tir_emit_cache(e, inst);
    push_policy(e, args, cache.policy);
    push_flag(e, args, cache.policy);
}

// "llvm.nvvm.cp.async.bulk.tensor.<what>.2d"
static void call_tensor(struct emit *e, const struct tir_inst *inst, const char *what,
                        struct args *args)
{
    char name[80];
    snprintf(name, sizeof(name), "llvm.nvvm.cp.async.bulk.tensor.%s.%" PRIu32 "d", what,
             tir_ref_base(inst)->type->rank);
    tir_llvm_call(e->ll, name, NULL, 0, args->at, args->len);
}

// Where a load goes: an address of the cluster's shared memory when several CTAs get it, and where
// there is no other form.
static bool needs_cluster(const struct emit *e, const struct tir_value *ctas)
{
    return ctas || !(e->ll->target->features & TIR_HAS_BULK_TO_CTA);
}

static bool is_remote(const struct tir_value *bar)
{
    return bar->type->space == TIR_SPACE_CLUSTER;
}

// LLVM's intrinsics take the address of any mbarrier as one in the CTA's own shared memory.
static V barrier_of(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_value *buffer = inst->operands[TIR_TMA_BAR];
    V bar = tir_emit_address(e, buffer, inst->operands[TIR_TMA_BAR_AT], 0);
    if (!is_remote(buffer))
        return bar;
    bar = LLVMBuildPtrToInt(e->b, bar, e->ll->i32, "");
    return LLVMBuildIntToPtr(e->b, bar, LLVMPointerTypeInContext(e->ll->context, TIR_AS_SHARED),
                             "");
}

static void push_destination(struct emit *e, struct args *args, const struct tir_inst *inst,
                             bool cluster)
{
    V to = tir_emit_address(e, inst->operands[TIR_TMA_BUFFER], inst->operands[TIR_TMA_AT],
                            tir_attr_int(inst, TIR_ATTR_offset, 0));
    LLVMTypeRef type = LLVMPointerTypeInContext(e->ll->context, TIR_AS_CLUSTER);
    push(args, cluster ? LLVMBuildAddrSpaceCast(e->b, to, type, "") : to);
    push(args, barrier_of(e, inst));
}

// The end of a load's arguments: the receiving CTAs (in the cluster form), and the policy.
static void push_receivers(struct emit *e, struct args *args, const struct tir_inst *inst,
                           const struct tir_value *ctas, bool cluster)
{
    if (!cluster) {
        push_cache(e, args, inst);
        return;
    }
    struct emit_cache cache = tir_emit_cache(e, inst);
    LLVMTypeRef i16 = e->ll->i16;
    push(args,
         ctas ? LLVMBuildTrunc(e->b, tir_emit_low_word(e, ctas), i16, "") : LLVMConstNull(i16));
    push_policy(e, args, cache.policy);
    push_flag(e, args, ctas);
    push_flag(e, args, cache.policy);
}

// What follows the coordinates: the other rows, or how far pixels are from their base pixels,
// innermost dimension first.
static void push_others(struct emit *e, struct args *args, const struct tir_inst *inst)
{
    for (uint32_t i = 1; inst->op == TIR_OP_TMA_GATHER && i < TIR_ROWS_AT_ONCE; i++)
        push(args, tir_emit_low_word(e, inst->operands[TIR_GATHER_ROWS + i - 1]));
    for (uint32_t i = 0; inst->op == TIR_OP_TMA_PIXELS && i + 2 < tir_ref_base(inst)->type->rank;
         i++) {
        const struct tir_value *by = inst->operands[TIR_PIXELS_DZ + TIR_PIXEL_DIMS - 1 - i];
        push(args, by ? LLVMBuildTrunc(e->b, tir_emit_low_word(e, by), e->ll->i16, "")
                      : LLVMConstNull(e->ll->i16));
    }
}

static const char *load_name(const struct tir_inst *inst, bool cluster)
{
    switch (inst->op) {
    case TIR_OP_TMA_GATHER:
        return cluster ? "g2s.tile.gather4" : "g2s.cta.tile.gather4";
    case TIR_OP_TMA_PIXELS:
        return cluster ? "g2s.im2col" : "g2s.cta.im2col";
    default:
        return cluster ? "g2s.tile" : "g2s.cta.tile";
    }
}

static void emit_load(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_value *ctas = inst->operands[TIR_TMA_CTAS];
    bool of_pair = is_remote(inst->operands[TIR_TMA_BAR]);
    bool cluster = of_pair || needs_cluster(e, ctas);
    struct args args = {.len = 0};
    push_destination(e, &args, inst, cluster);
    push_place(e, &args, inst);
    push_others(e, &args, inst);
    push_receivers(e, &args, inst, ctas, cluster);
    if (cluster)
        push(&args, tir_emit_i32(e, of_pair ? 2 : 0)); // cta_group
    call_tensor(e, inst, load_name(inst, cluster), &args);
}

static const char *store_name(const struct tir_inst *inst)
{
    switch (tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE)) {
    case TIR_WORD_kind_add:
        return "reduce.add.tile";
    case TIR_WORD_kind_min:
        return "reduce.min.tile";
    case TIR_WORD_kind_max:
        return "reduce.max.tile";
    case TIR_WORD_kind_and:
        return "reduce.and.tile";
    case TIR_WORD_kind_or:
        return "reduce.or.tile";
    case TIR_WORD_kind_xor:
        return "reduce.xor.tile";
    default:
        return "s2g.tile";
    }
}

static void emit_store(struct emit *e, const struct tir_inst *inst)
{
    struct args args = {.len = 0};
    push(&args, tir_emit_address(e, inst->operands[TIR_TMA_BUFFER], inst->operands[TIR_TMA_AT],
                                 tir_attr_int(inst, TIR_ATTR_offset, 0)));
    push_place(e, &args, inst);
    push_cache(e, &args, inst);
    call_tensor(e, inst, store_name(inst), &args);
}

static void emit_prefetch(struct emit *e, const struct tir_inst *inst)
{
    struct args args = {.len = 0};
    push_place(e, &args, inst);
    push_cache(e, &args, inst);
    call_tensor(e, inst, "prefetch.tile", &args);
}

// Runs of bytes.

enum { LOAD_FROM = TIR_TMA_BAR_AT + 1, LOAD_FROM_AT, LOAD_BYTES, LOAD_CTAS };
enum { STORE_TO, STORE_TO_AT, STORE_FROM, STORE_FROM_AT, STORE_BYTES };

static void emit_bulk_load(struct emit *e, const struct tir_inst *inst)
{
    struct tir_value *const *operands = inst->operands;
    bool cluster = needs_cluster(e, operands[LOAD_CTAS]);
    struct args args = {.len = 0};
    push_destination(e, &args, inst, cluster);
    push(&args, tir_emit_address(e, operands[LOAD_FROM], operands[LOAD_FROM_AT], 0));
    push(&args, tir_emit_value(e, operands[LOAD_BYTES]));
    push_receivers(e, &args, inst, operands[LOAD_CTAS], cluster);
    tir_llvm_call(e->ll,
                  cluster ? "llvm.nvvm.cp.async.bulk.global.to.shared.cluster"
                          : "llvm.nvvm.cp.async.bulk.global.to.shared.cta",
                  NULL, 0, args.at, args.len);
}

// How PTX calls the elements that kind combines.
static const char *combined_type(enum tir_word kind, enum tir_elem elem)
{
    bool wide = tir_elems[elem].bits == 64;
    if (kind == TIR_WORD_kind_and || kind == TIR_WORD_kind_or || kind == TIR_WORD_kind_xor)
        return wide ? "b64" : "b32";
    switch (elem) {
    case TIR_F16:
        return kind == TIR_WORD_kind_add ? "noftz.f16" : "f16";
    case TIR_BF16:
        return kind == TIR_WORD_kind_add ? "noftz.bf16" : "bf16";
    case TIR_I32:
        return "s32";
    case TIR_I64:
        return "s64";
    default:
        return tir_elems[elem].name;
    }
}

// LLVM has no intrinsic for it.
static void emit_bulk_reduce(struct emit *e, const struct tir_inst *inst, enum tir_word kind,
                             V *args)
{
    struct tir_text text;
    tir_text_init(&text, e->arena, 0);
    struct emit_cache cache = tir_emit_cache(e, inst);
    tir_text_format(
        &text, "cp.reduce.async.bulk.global.shared::cta.bulk_group%s.%s.%s [$0], [$1], $2%s;",
        cache.policy ? cache.text : "", tir_words[kind].name,
        combined_type(kind, inst->operands[STORE_TO]->type->elem), cache.policy ? ", $3" : "");
    args[3] = cache.policy;
    tir_llvm_asm(e->ll, e->ll->none, tir_text_str(&text),
                 cache.policy ? STR("l,r,r,l,~{memory}") : STR("l,r,r,~{memory}"), TIR_ASM_EFFECT,
                 args, cache.policy ? 4 : 3);
}

// The mbarrier at that place in CTA cta.
static V remote_barrier(struct emit *e, const struct tir_inst *inst, const struct tir_value *cta)
{
    V bar = tir_emit_address(e, inst->operands[TIR_TMA_BAR], inst->operands[TIR_TMA_BAR_AT], 0);
    bar = tir_llvm_call(e->ll, "llvm.nvvm.mapa.shared.cluster", NULL, 0,
                        (V[]){bar, tir_emit_value(e, cta)}, 2);
    return LLVMBuildPtrToInt(e->b, bar, e->ll->i32, "");
}

static void emit_st_async(struct emit *e, const struct tir_inst *inst)
{
    enum { VALUE = TIR_TMA_BAR_AT + 1, CTA, PRED };
    const struct tir_value *pred = inst->operands[PRED];
    int known = tir_emit_known(pred);
    if (known == 0)
        return;
    V to = tir_emit_address(e, inst->operands[TIR_TMA_BUFFER], inst->operands[TIR_TMA_AT],
                            tir_attr_int(inst, TIR_ATTR_offset, 0));
    V value = tir_emit_value(e, inst->operands[VALUE]);
    bool wide = tir_elems[inst->operands[VALUE]->type->elem].bits == 64;
    V args[] = {LLVMBuildPtrToInt(e->b, to, e->ll->i32, ""),
                tir_emit_bits(e, value, wide ? e->ll->i64 : e->ll->i32),
                remote_barrier(e, inst, inst->operands[CTA]),
                known < 0 ? tir_emit_value(e, pred) : NULL};
    tir_str text = tir_str_format(
        e->arena, "%sst.async.shared::cluster.mbarrier::complete_tx::bytes.b%d [$0], $1, [$2];",
        known < 0 ? "@$3 " : "", wide ? 64 : 32);
    tir_str constraints =
        tir_str_format(e->arena, "r,%s,r,%s~{memory}", wide ? "l" : "r", known < 0 ? "b," : "");
    tir_llvm_asm(e->ll, e->ll->none, text, constraints, TIR_ASM_EFFECT, args, known < 0 ? 4 : 3);
}

// LLVM's intrinsic takes an mbarrier of the CTA itself alone.
static void emit_bulk_send(struct emit *e, const struct tir_inst *inst)
{
    enum { FROM = TIR_TMA_BAR_AT + 1, FROM_AT, BYTES, CTA };
    V to = tir_emit_address(e, inst->operands[TIR_TMA_BUFFER], inst->operands[TIR_TMA_AT], 0);
    V from = tir_emit_address(e, inst->operands[FROM], inst->operands[FROM_AT], 0);
    V args[] = {
        LLVMBuildPtrToInt(e->b, to, e->ll->i32, ""), remote_barrier(e, inst, inst->operands[CTA]),
        LLVMBuildPtrToInt(e->b, from, e->ll->i32, ""), tir_emit_value(e, inst->operands[BYTES])};
    tir_llvm_asm(e->ll, e->ll->none,
                 STR("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                     "[$0], [$2], $3, [$1];"),
                 STR("r,r,r,r,~{memory}"), TIR_ASM_EFFECT, args, 4);
}

static void emit_bulk_store(struct emit *e, const struct tir_inst *inst)
{
    struct tir_value *const *operands = inst->operands;
    enum tir_word kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE);
    struct args args = {.len = 0};
    push(&args, tir_emit_address(e, operands[STORE_TO], operands[STORE_TO_AT], 0));
    push(&args, tir_emit_address(e, operands[STORE_FROM], operands[STORE_FROM_AT],
                                 tir_attr_int(inst, TIR_ATTR_offset, 0)));
    push(&args, tir_emit_value(e, operands[STORE_BYTES]));
    if (kind) {
        emit_bulk_reduce(e, inst, kind, args.at);
        return;
    }
    push_cache(e, &args, inst);
    tir_llvm_call(e->ll, "llvm.nvvm.cp.async.bulk.shared.cta.to.global", NULL, 0, args.at,
                  args.len);
}

void tir_emit_tensor(struct emit *e, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_TMA_LOAD:
    case TIR_OP_TMA_GATHER:
    case TIR_OP_TMA_PIXELS:
        emit_load(e, inst);
        return;
    case TIR_OP_TMA_STORE:
        emit_store(e, inst);
        return;
    case TIR_OP_TMA_PREFETCH:
        emit_prefetch(e, inst);
        return;
    case TIR_OP_BULK_LOAD:
        emit_bulk_load(e, inst);
        return;
    case TIR_OP_BULK_SEND:
        emit_bulk_send(e, inst);
        return;
    case TIR_OP_ST_ASYNC:
        emit_st_async(e, inst);
        return;
    case TIR_OP_BULK_STORE:
        emit_bulk_store(e, inst);
        return;
    default:
        tir_unreachable();
    }
}
