// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products by mma.sync, plain and with scales.

#include "machine/product.h"
#include "target/nvptx/emit.h"

#include <inttypes.h>

struct mma_row {
    enum tir_word kind;
    uint32_t depth;
    enum tir_elem sum; // the element type of c and d (F16: two to a register)
    uint32_t a, b, c;  // registers
    bool halves;       // a and b are pairs of f16; else words, or f64 where the sums are
    const char *name;  // LLVM's intrinsic
};
// clang-format off
static const struct mma_row mma_rows[] = {
    {TIR_WORD_kind_f16,  16, TIR_F32, 4, 2, 4, true,  "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"},
    {TIR_WORD_kind_f16,  8,  TIR_F32, 2, 1, 4, true,  "llvm.nvvm.mma.m16n8k8.row.col.f32.f32"},
    {TIR_WORD_kind_f16,  16, TIR_F16, 4, 2, 2, true,  "llvm.nvvm.mma.m16n8k16.row.col.f16.f16"},
    {TIR_WORD_kind_f16,  8,  TIR_F16, 2, 1, 2, true,  "llvm.nvvm.mma.m16n8k8.row.col.f16.f16"},
    {TIR_WORD_kind_bf16, 16, TIR_F32, 4, 2, 4, false, "llvm.nvvm.mma.m16n8k16.row.col.bf16"},
    {TIR_WORD_kind_bf16, 8,  TIR_F32, 2, 1, 4, false, "llvm.nvvm.mma.m16n8k8.row.col.bf16"},
    {TIR_WORD_kind_tf32, 8,  TIR_F32, 4, 2, 4, false, "llvm.nvvm.mma.m16n8k8.row.col.tf32"},
    {TIR_WORD_kind_tf32, 4,  TIR_F32, 2, 1, 4, false, "llvm.nvvm.mma.m16n8k4.row.col.tf32"},
    {TIR_WORD_kind_f64,  16, TIR_F64, 8, 4, 4, false, "llvm.nvvm.mma.m16n8k16.row.col.f64"},
    {TIR_WORD_kind_f64,  8,  TIR_F64, 4, 2, 4, false, "llvm.nvvm.mma.m16n8k8.row.col.f64"},
    {TIR_WORD_kind_f64,  4,  TIR_F64, 2, 1, 4, false, "llvm.nvvm.mma.m16n8k4.row.col.f64"},
    {TIR_WORD_kind_i8,   32, TIR_I32, 4, 2, 4, false, "llvm.nvvm.mma.m16n8k32.row.col.s8"},
    {TIR_WORD_kind_i8,   16, TIR_I32, 2, 1, 4, false, "llvm.nvvm.mma.m16n8k16.row.col.s8"},
    {TIR_WORD_kind_u8,   32, TIR_I32, 4, 2, 4, false, "llvm.nvvm.mma.m16n8k32.row.col.u8"},
    {TIR_WORD_kind_u8,   16, TIR_I32, 2, 1, 4, false, "llvm.nvvm.mma.m16n8k16.row.col.u8"},
    {TIR_WORD_kind_e4m3, 32, TIR_F32, 4, 2, 4, false, "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3"},
    {TIR_WORD_kind_e5m2, 32, TIR_F32, 4, 2, 4, false, "llvm.nvvm.mma.m16n8k32.row.col.f32.e5m2"},
};
// clang-format on

static const struct mma_row *find_mma(const struct tir_inst *inst)
{
    enum tir_word kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE);
    int64_t depth = tir_attr_int(inst, TIR_ATTR_depth, 0);
    if (tir_attr_int(inst, TIR_ATTR_cols, 8) != 8)
        return NULL;
    for (uint32_t i = 0; i < TIR_COUNT_OF(mma_rows); i++) {
        const struct mma_row *row = &mma_rows[i];
        if (row->kind == kind && row->depth == depth && inst->result_count == row->c &&
            inst->operand_count == TIR_MMA_REGISTERS + row->a + row->b + row->c)
            return row;
    }
    return NULL;
}

// The intrinsic's name says B's elements of fp8, and those of bytes if they are others.
static const char *name_of(struct emit *e, const struct tir_inst *inst, const struct mma_row *row)
{
    const enum tir_word b = tir_attr_word(inst, TIR_ATTR_b_kind, TIR_WORD_NONE);
    if (row->kind == TIR_WORD_kind_e4m3 || row->kind == TIR_WORD_kind_e5m2)
        return tir_str_format(e->arena, "%s.%s.f32", row->name, tir_words[b ? b : row->kind].name)
            .ptr;
    return b ? tir_str_format(e->arena, "%s.%s", row->name, b == TIR_WORD_b_kind_i8 ? "s8" : "u8")
                   .ptr
             : row->name;
}

static void refuse(struct emit *e, const struct tir_inst *inst)
{
    uint32_t count;
    tir_list(inst, &count);
    tir_error_at(e->diags, inst->span, TIR_E_UNSUPPORTED,
                 "no matrix instruction for %s with depth %" PRId64 ", %" PRIu32
                 " registers in and %" PRIu32 " out%s on %s",
                 tir_words[tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE)].name,
                 tir_attr_int(inst, TIR_ATTR_depth, 0), count, inst->result_count,
                 inst->operands[TIR_MMA_SA] ? ", and these scales," : "", e->ll->target->name);
    e->failed = true;
}

static void set_results(struct emit *e, const struct tir_inst *inst, V result)
{
    LLVMAddCallSiteAttribute(result, LLVMAttributeFunctionIndex, e->ll->convergent);
    for (uint32_t i = 0; i < inst->result_count; i++) {
        LLVMTypeRef type = tir_emit_type(e, inst->results[i]->type);
        tir_emit_set(e, inst->results[i],
                     tir_emit_bits(e, LLVMBuildExtractValue(e->b, result, i, ""), type));
    }
}

// Of f64 with 16 rows, where instructions have 8: two for each 4 of K, with every other register of
// A and half of the sums.
static void emit_in_halves(struct emit *e, const struct tir_inst *inst, const struct mma_row *row,
                           V *args)
{
    V *sums = args + row->a + row->b;
    for (uint32_t k = 0; k < row->b; k++)
        for (uint32_t half = 0; half < 2; half++) {
            V part[] = {args[2 * k + half], args[row->a + k], sums[2 * half], sums[2 * half + 1]};
            V result = tir_llvm_call(e->ll, "llvm.nvvm.mma.m8n8k4.row.col.f64", NULL, 0, part,
                                     TIR_COUNT_OF(part));
            LLVMAddCallSiteAttribute(result, LLVMAttributeFunctionIndex, e->ll->convergent);
            for (uint32_t i = 0; i < 2; i++)
                sums[2 * half + i] = LLVMBuildExtractValue(e->b, result, i, "");
        }
    for (uint32_t i = 0; i < inst->result_count; i++)
        tir_emit_set(e, inst->results[i], sums[i]);
}

static void emit_plain(struct emit *e, const struct tir_inst *inst)
{
    const struct mma_row *row = find_mma(inst);
    const struct tir_product *product = row ? tir_product_of_kind(TIR_ENGINE_MMA, row->kind) : NULL;
    if (!product || !(e->ll->target->features & product->feature) ||
        !tir_kind_takes(row->kind, tir_attr_word(inst, TIR_ATTR_b_kind, TIR_WORD_NONE))) {
        refuse(e, inst);
        return;
    }
    LLVMTypeRef pair = LLVMVectorType(e->ll->f16, 2);
    LLVMTypeRef ab = row->halves           ? pair
                     : row->sum == TIR_F64 ? tir_emit_elem_type(e, TIR_F64)
                                           : e->ll->i32;
    LLVMTypeRef c = row->sum == TIR_F16 ? pair : tir_emit_elem_type(e, row->sum);
    uint32_t count;
    struct tir_value *const *registers = tir_list(inst, &count);
    V args[8 + 4 + 4];
    for (uint32_t i = 0; i < count; i++)
        args[i] = tir_emit_bits(e, tir_emit_value(e, registers[i]), i < row->a + row->b ? ab : c);
    if (row->sum == TIR_F64 && !(e->ll->target->features & TIR_HAS_MMA_F64)) {
        emit_in_halves(e, inst, row, args);
        return;
    }
    set_results(e, inst, tir_llvm_call(e->ll, name_of(e, inst, row), NULL, 0, args, count));
}

// With scales: PTX's kind, by their number in an instruction.
static const char *const scaled_kinds[] = {
    [1] = "mxf8f6f4.scale.1x", [2] = "mxf4.scale.2x", [4] = "mxf4nvf4.scale.4x"};

static bool is_within(const struct tir_inst *inst, enum tir_attr_key key, uint32_t step,
                      uint32_t count)
{
    const int64_t value = tir_attr_int(inst, key, 0);
    return value >= 0 && value < count && value % step == 0;
}

// The scaled product of A. NULL: no instruction has all that.
static const struct tir_scaled *find_scaled(const struct emit *e, const struct tir_inst *inst)
{
    enum { REGISTERS = 4 + 2 + 4 };
    const int64_t scales = tir_attr_int(inst, TIR_ATTR_scales, 0);
    const struct tir_scaled *a =
        scales < 1 || scales > 4
            ? NULL
            : tir_scaled_of_kind(TIR_ENGINE_MMA, tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE),
                                 (uint32_t)scales);
    const bool fits =
        a && e->ll->target->features & a->feature && tir_attr_int(inst, TIR_ATTR_cols, 0) == 8 &&
        inst->result_count == 4 && inst->operand_count == TIR_MMA_REGISTERS + REGISTERS &&
        tir_attr_int(inst, TIR_ATTR_depth, 0) == a->scales * tir_scaled_block(a) &&
        (a->scales == 1 || !tir_attr_find(inst, TIR_ATTR_b_kind)) &&
        is_within(inst, TIR_ATTR_a_scale, a->scales, 4) &&
        is_within(inst, TIR_ATTR_b_scale, a->scales, 4) &&
        is_within(inst, TIR_ATTR_a_thread, 1, 2) && is_within(inst, TIR_ATTR_b_thread, 1, 4);
    return fits ? a : NULL;
}

static void push_scales(struct emit *e, const struct tir_inst *inst, uint32_t operand,
                        enum tir_attr_key byte, enum tir_attr_key thread, V *args)
{
    args[0] = tir_emit_value(e, inst->operands[operand]);
    args[1] = LLVMConstInt(e->ll->i16, (uint64_t)tir_attr_int(inst, byte, 0), false);
    args[2] = LLVMConstInt(e->ll->i16, (uint64_t)tir_attr_int(inst, thread, 0), false);
}

static void emit_scaled(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_scaled *scaled = find_scaled(e, inst);
    if (!scaled) {
        refuse(e, inst);
        return;
    }
    uint32_t count;
    struct tir_value *const *registers = tir_list(inst, &count);
    V args[10 + 6];
    for (uint32_t i = 0; i < count; i++)
        args[i] =
            tir_emit_bits(e, tir_emit_value(e, registers[i]), i < 6 ? e->ll->i32 : e->ll->f32);
    push_scales(e, inst, TIR_MMA_SA, TIR_ATTR_a_scale, TIR_ATTR_a_thread, args + count);
    push_scales(e, inst, TIR_MMA_SB, TIR_ATTR_b_scale, TIR_ATTR_b_thread, args + count + 3);
    const char *a = tir_words[scaled->kind].name;
    const enum tir_word b_kind = tir_attr_word(inst, TIR_ATTR_b_kind, TIR_WORD_NONE);
    const tir_str name =
        tir_str_format(e->arena,
                       "llvm.nvvm.mma.block.scale.m16n8k%" PRId64 ".row.col.%s.f32.%s.%s"
                       ".f32.%s",
                       tir_attr_int(inst, TIR_ATTR_depth, 0), scaled_kinds[scaled->scales], a,
                       b_kind ? tir_words[b_kind].name : a, tir_elems[scaled->scale].name);
    set_results(e, inst, tir_llvm_call(e->ll, name.ptr, NULL, 0, args, count + 6));
}

void tir_emit_mma(struct emit *e, const struct tir_inst *inst)
{
    if (inst->operands[TIR_MMA_SA])
        emit_scaled(e, inst);
    else
        emit_plain(e, inst);
}
