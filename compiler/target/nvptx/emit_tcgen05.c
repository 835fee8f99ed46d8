// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products in tensor memory, its copies, loads and stores, its allocation.
//
// LLVM has intrinsics for all of them, but a load's gives its registers before its wait, which has
// no operand: nothing keeps uses after it. So a load is one piece of inline PTX with its wait, as
// a product on warpgroups is with its steps (decision 10), and the others are written alike.

#include "machine/product.h"
#include "target/nvptx/emit.h"

#include <inttypes.h>

struct tcgen05_row {
    enum tir_word kind;
    const char *name;
    uint32_t code, sums; // of A and B, and of the sums, in the instruction descriptor
};
static const struct tcgen05_row rows[] = {
    {TIR_WORD_kind_f16, "f16", 0, 1},     {TIR_WORD_kind_bf16, "f16", 1, 1},
    {TIR_WORD_kind_tf32, "tf32", 2, 1},   {TIR_WORD_kind_e4m3, "f8f6f4", 0, 1},
    {TIR_WORD_kind_e5m2, "f8f6f4", 1, 1}, {TIR_WORD_kind_i8, "i8", 1, 2},
    {TIR_WORD_kind_u8, "i8", 0, 2},
};
// With scales, by the number of a row in an instruction.
static const struct scaled_row {
    enum tir_word kind;
    const char *name;
    uint32_t code, scales;
} scaled_rows[] = {
    {TIR_WORD_kind_e4m3, "mxf8f6f4.block_scale.scale_vec::1X", 0, 1},
    {TIR_WORD_kind_e5m2, "mxf8f6f4.block_scale.scale_vec::1X", 1, 1},
    {TIR_WORD_kind_e2m3, "mxf8f6f4.block_scale.scale_vec::1X", 3, 1},
    {TIR_WORD_kind_e3m2, "mxf8f6f4.block_scale.scale_vec::1X", 4, 1},
    {TIR_WORD_kind_e2m1, "mxf8f6f4.block_scale.scale_vec::1X", 5, 1},
    {TIR_WORD_kind_e2m1, "mxf4.block_scale.scale_vec::2X", 1, 2},
    {TIR_WORD_kind_e2m1, "mxf4nvf4.block_scale.scale_vec::4X", 1, 4},
};

static const struct scaled_row *scaled_row_of(const struct tir_inst *inst)
{
    const enum tir_word kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE);
    const int64_t scales = tir_attr_int(inst, TIR_ATTR_scales, 0);
    for (uint32_t i = 0; i < TIR_COUNT_OF(scaled_rows); i++)
        if (scaled_rows[i].kind == kind && scaled_rows[i].scales == scales)
            return &scaled_rows[i];
    return NULL;
}

static const struct tcgen05_row *row_of(const struct tir_inst *inst)
{
    const enum tir_word kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE);
    for (uint32_t i = 0; i < TIR_COUNT_OF(rows); i++)
        if (rows[i].kind == kind)
            return &rows[i];
    return NULL;
}

static bool is_a_in_tmem(const struct tir_inst *inst)
{
    return tir_elems[inst->operands[TIR_TCGEN05_A]->type->elem].bits == 32;
}

static bool has_scales(const struct tir_inst *inst)
{
    return inst->operands[TIR_TCGEN05_SA];
}

// Of a product with scales.
static const char *scales_wrong(const struct tir_inst *inst)
{
    const struct scaled_row *row = scaled_row_of(inst);
    const struct tir_scaled *scaled =
        row ? tir_scaled_of_kind(TIR_ENGINE_TCGEN05, row->kind, row->scales) : NULL;
    if (!scaled || tir_attr_int(inst, TIR_ATTR_depth, 0) != row->scales * tir_scaled_block(scaled))
        return "no instruction has this kind, depth and number of scales";
    if (tir_attr_int(inst, TIR_ATTR_a_scale, 0) % row->scales ||
        tir_attr_int(inst, TIR_ATTR_b_scale, 0) % row->scales)
        return "scales begin at a multiple of their number in an instruction";
    if (tir_attr_int(inst, TIR_ATTR_steps, 0) != 1 || tir_attr_find(inst, TIR_ATTR_rows))
        return "with scales it is one step of 128 rows";
    return NULL;
}

// The instruction's kind and depth.
static const char *kind_wrong(const struct tir_inst *inst)
{
    const struct tcgen05_row *row = row_of(inst);
    const struct tir_product *product =
        row ? tir_product_of_kind(TIR_ENGINE_TCGEN05, row->kind) : NULL;
    const enum tir_attr_key of_scales[] = {TIR_ATTR_scales, TIR_ATTR_a_scale, TIR_ATTR_b_scale};
    if (!product || tir_attr_int(inst, TIR_ATTR_depth, 0) != product->depth)
        return "no instruction has this kind and depth";
    for (uint32_t i = 0; i < TIR_COUNT_OF(of_scales); i++)
        if (tir_attr_find(inst, of_scales[i]))
            return "it has no scales";
    return NULL;
}

const char *tir_tcgen05_wrong(const struct tir_inst *inst)
{
    const char *wrong = has_scales(inst) ? scales_wrong(inst) : kind_wrong(inst);
    const enum tir_word kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE);
    const int64_t cols = tir_attr_int(inst, TIR_ATTR_cols, 0);
    const int64_t steps = tir_attr_int(inst, TIR_ATTR_steps, 0);
    if (wrong)
        return wrong;
    const enum tir_word b_kind = tir_attr_word(inst, TIR_ATTR_b_kind, TIR_WORD_NONE);
    if (b_kind != TIR_WORD_NONE && tir_attr_int(inst, TIR_ATTR_scales, 0) != 1 &&
        (has_scales(inst) || !tir_kind_takes(kind, b_kind)))
        return "only elements of fp8, bytes, or elements with one scale multiply others";
    if (cols < TIR_TCGEN05_COLUMNS || cols > TIR_TCGEN05_MOST_COLUMNS || cols % TIR_TCGEN05_COLUMNS)
        return "no instruction has as many columns";
    if (steps < 1 || steps > TIR_WGMMA_STEPS)
        return "it takes 1 to 16 steps";
    const int64_t a_step = tir_attr_int(inst, TIR_ATTR_a_step, 0);
    const int64_t b_step = tir_attr_int(inst, TIR_ATTR_b_step, 0);
    if (a_step < 0 || a_step > TIR_DESCRIPTOR_ADDRESS || b_step < 0 ||
        b_step > TIR_DESCRIPTOR_ADDRESS)
        return "a step stays within shared memory";
    const bool a_trans = tir_attr_int(inst, TIR_ATTR_a_trans, 0);
    if ((a_trans || tir_attr_int(inst, TIR_ATTR_b_trans, 0)) &&
        tir_attr_int(inst, TIR_ATTR_depth, 0) != 16)
        return "only elements of 16 bits can be transposed";
    return a_trans && is_a_in_tmem(inst) ? "A in tensor memory cannot be transposed" : NULL;
}

// PTX's cta_group: how many CTAs an instruction is of.
static uint32_t ctas_of(const struct tir_inst *inst)
{
    return (uint32_t)tir_attr_int(inst, TIR_ATTR_cta_group, 1);
}

// The code of B's elements where those of A have `code`.
static uint32_t code_of_b(const struct tir_inst *inst, uint32_t code)
{
    switch (tir_attr_word(inst, TIR_ATTR_b_kind, TIR_WORD_NONE)) {
    case TIR_WORD_b_kind_e4m3:
    case TIR_WORD_b_kind_u8:
        return 0;
    case TIR_WORD_b_kind_e5m2:
    case TIR_WORD_b_kind_i8:
        return 1;
    case TIR_WORD_b_kind_e2m3:
        return 3;
    case TIR_WORD_b_kind_e3m2:
        return 4;
    case TIR_WORD_b_kind_e2m1:
        return 5;
    default:
        return code;
    }
}

// PTX ISA, "Instruction descriptor" of kinds with scales.
static uint32_t scaled_descriptor_of(const struct tir_inst *inst)
{
    const struct scaled_row *row = scaled_row_of(inst);
    const struct tir_scaled *scaled =
        tir_scaled_of_kind(TIR_ENGINE_TCGEN05, row->kind, row->scales);
    const bool is_ue8m0 = scaled->scale == TIR_UE8M0;
    return (uint32_t)tir_attr_int(inst, TIR_ATTR_b_scale, 0) << 4 | row->code << 7 |
           code_of_b(inst, row->code) << 10 |
           (uint32_t)tir_attr_int(inst, TIR_ATTR_cols, 0) / 8 << 17 | (uint32_t)is_ue8m0 << 23 |
           ctas_of(inst) * (TIR_TCGEN05_ROWS / 128) << 27 |
           (uint32_t)tir_attr_int(inst, TIR_ATTR_a_scale, 0) << 29;
}

// PTX ISA, "Instruction descriptor".
static uint32_t descriptor_of(const struct tir_inst *inst)
{
    const struct tcgen05_row *row = row_of(inst);
    const uint32_t n = (uint32_t)tir_attr_int(inst, TIR_ATTR_cols, 0);
    if (has_scales(inst))
        return scaled_descriptor_of(inst);
    return row->sums << 4 | row->code << 7 | code_of_b(inst, row->code) << 10 |
           (uint32_t)tir_attr_int(inst, TIR_ATTR_a_trans, 0) << 15 |
           (uint32_t)tir_attr_int(inst, TIR_ATTR_b_trans, 0) << 16 | n / 8 << 17 |
           ctas_of(inst) * (uint32_t)tir_attr_int(inst, TIR_ATTR_rows, TIR_TCGEN05_ROWS) / 16 << 24;
}

static V effect(struct emit *e, LLVMTypeRef type, tir_str text, tir_str constraints, V *args,
                uint32_t count, int flags)
{
    return tir_llvm_asm(e->ll, type, text, constraints, TIR_ASM_EFFECT | (uint32_t)flags, args,
                        count);
}

enum { D, A, B, DESCRIPTOR, SA, SB, OPERANDS }; // of the inline PTX; without scales, none is at SA

static void add_step(struct tir_text *text, const struct tir_inst *inst, int64_t step)
{
    const bool in_tmem = is_a_in_tmem(inst);
    const int known = step ? 1 : tir_emit_known(inst->operands[TIR_TCGEN05_ACCUMULATE]);
    const bool scaled = has_scales(inst);
    if (step)
        tir_text_format(text, "add.s%d a, $%d, %" PRId64 "; add.s64 b, $%d, %" PRId64 "; ",
                        in_tmem ? 32 : 64, A, step * tir_attr_int(inst, TIR_ATTR_a_step, 0), B,
                        step * tir_attr_int(inst, TIR_ATTR_b_step, 0));
    tir_text_format(text, "tcgen05.mma.cta_group::%" PRIu32 ".kind::%s [$%d], %s", ctas_of(inst),
                    scaled ? scaled_row_of(inst)->name : row_of(inst)->name, D, in_tmem ? "[" : "");
    tir_text_format(text, step ? "a" : "$%d", A);
    tir_text_format(text, step ? "%s, b" : "%s, $%d", in_tmem ? "]" : "", B);
    tir_text_format(text, ", $%d, ", DESCRIPTOR);
    if (scaled)
        tir_text_format(text, "[$%d], [$%d], ", SA, SB);
    if (known < 0)
        tir_text_format(text, "$%d; ", scaled ? OPERANDS : SA);
    else
        tir_text_format(text, "%s; ", known ? "yes" : "!yes");
}

static void emit_mma(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_value *accumulate = inst->operands[TIR_TCGEN05_ACCUMULATE];
    struct tir_text text;
    tir_text_init(&text, e->arena, 0);
    tir_text_format(&text,
                    "{ .reg .pred yes; .reg .b%d a; .reg .b64 b; setp.eq.u32 yes, $%d, $%d; ",
                    is_a_in_tmem(inst) ? 32 : 64, DESCRIPTOR, DESCRIPTOR);
    for (int64_t step = 0; step < tir_attr_int(inst, TIR_ATTR_steps, 1); step++)
        add_step(&text, inst, step);
    tir_text_add(&text, STR("}"));
    const bool asks = tir_emit_known(accumulate) < 0;
    const bool scaled = has_scales(inst);
    V args[OPERANDS + 1] = {[D] = tir_emit_value(e, inst->operands[TIR_TCGEN05_D]),
                            [A] = tir_emit_value(e, inst->operands[TIR_TCGEN05_A]),
                            [B] = tir_emit_value(e, inst->operands[TIR_TCGEN05_B]),
                            [DESCRIPTOR] = tir_emit_i32(e, descriptor_of(inst))};
    uint32_t count = SA;
    for (uint32_t i = TIR_TCGEN05_SA; scaled && i <= TIR_TCGEN05_SB; i++)
        args[count++] = tir_emit_value(e, inst->operands[i]);
    if (asks)
        args[count++] = tir_emit_value(e, accumulate);
    const char *constraints =
        tir_str_format(e->arena, "r,%s,l,r,%s%s~{memory}", is_a_in_tmem(inst) ? "r" : "l",
                       scaled ? "r,r," : "", asks ? "b," : "")
            .ptr;
    effect(e, e->ll->none, tir_text_str(&text), tir_str_of(constraints), args, count, 0);
}

static void emit_cp(struct emit *e, const struct tir_inst *inst)
{
    const bool each_warp = tir_attr_find(inst, TIR_ATTR_rows);
    const char *text =
        tir_str_format(e->arena, "tcgen05.cp.cta_group::%" PRIu32 ".%s%" PRId64 "b%s [$0], $1;",
                       ctas_of(inst), each_warp ? "32x" : "128x",
                       tir_attr_int(inst, TIR_ATTR_row_bits, 0), each_warp ? ".warpx4" : "")
            .ptr;
    V args[] = {tir_emit_value(e, inst->operands[TIR_TCGEN05_CP_TO]),
                tir_emit_value(e, inst->operands[TIR_TCGEN05_CP_FROM])};
    effect(e, e->ll->none, tir_str_of(text), STR("r,l,~{memory}"), args, 2, 0);
}

static void list_registers(struct tir_text *text, uint32_t first, uint32_t count)
{
    tir_text_add(text, STR("{"));
    for (uint32_t i = 0; i < count; i++)
        tir_text_format(text, "%s$%" PRIu32, i ? "," : "", first + i);
    tir_text_add(text, STR("}"));
}

// The shape of a load or store, with as many 32-bit registers.
static void add_shape(struct tir_text *text, const struct tir_inst *inst, uint32_t registers)
{
    const uint32_t row_bits = (uint32_t)tir_attr_int(inst, TIR_ATTR_row_bits, 0);
    if (row_bits > 32) // whose x1 has a register for 64 bits of each of the 16 lanes
        tir_text_format(text, "16x%" PRIu32 "b.x%" PRIu32 ".b32 ", row_bits,
                        registers / (row_bits / 64));
    else
        tir_text_format(text, "%s.x%" PRIu32 ".b32 ", row_bits ? "16x32bx2" : "32x32b", registers);
}

// Behind the address.
static void add_split(struct tir_text *text, const struct tir_inst *inst)
{
    if (tir_attr_find(inst, TIR_ATTR_split))
        tir_text_format(text, ", %" PRId64, tir_attr_int(inst, TIR_ATTR_split, 0));
}

// .ld.red, whose last register is the largest or smallest of the others.
static void add_reduction(struct tir_text *text, const struct tir_inst *inst, uint32_t words)
{
    const enum tir_elem elem = inst->results[words]->type->elem;
    const bool is_max = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE) == TIR_WORD_kind_max;
    const bool split = tir_attr_find(inst, TIR_ATTR_split);
    tir_text_format(text, "tcgen05.ld.red.sync.aligned.%s.x%" PRIu32 ".%s%s.%s ",
                    split ? "16x32bx2" : "32x32b", words, is_max ? "max" : "min",
                    elem != TIR_F32                        ? ""
                    : tir_attr_find(inst, TIR_ATTR_of_abs) ? ".abs.NaN"
                                                           : ".NaN",
                    elem == TIR_F32   ? "f32"
                    : elem == TIR_I32 ? "s32"
                                      : "u32");
}

static void emit_load(struct emit *e, const struct tir_inst *inst)
{
    const uint32_t count = inst->result_count, reduces = tir_attr_find(inst, TIR_ATTR_kind) != NULL;
    struct tir_text text, constraints;
    tir_text_init(&text, e->arena, 0);
    tir_text_init(&constraints, e->arena, 0);
    if (reduces) {
        add_reduction(&text, inst, count - 1);
        list_registers(&text, 0, count - 1);
        tir_text_format(&text, ", $%" PRIu32, count - 1);
    } else {
        tir_text_add(&text, STR("tcgen05.ld.sync.aligned."));
        add_shape(&text, inst, count);
        list_registers(&text, 0, count);
    }
    tir_text_format(&text, ", [$%" PRIu32 "]", count);
    add_split(&text, inst);
    tir_text_add(&text, STR("; tcgen05.wait::ld.sync.aligned;"));
    LLVMTypeRef *types = arena_array(e->arena, LLVMTypeRef, count);
    for (uint32_t i = 0; i < count; i++) {
        const bool is_float = inst->results[i]->type->elem == TIR_F32;
        types[i] = is_float ? LLVMFloatTypeInContext(e->ll->context) : e->ll->i32;
        tir_text_add(&constraints, is_float ? STR("=f,") : STR("=r,"));
    }
    tir_text_add(&constraints, STR("r,~{memory}"));
    LLVMTypeRef type =
        count == 1 ? e->ll->i32 : LLVMStructTypeInContext(e->ll->context, types, count, false);
    V at = tir_emit_value(e, inst->operands[0]);
    V v = effect(e, type, tir_text_str(&text), tir_text_str(&constraints), &at, 1,
                 TIR_ASM_CONVERGENT);
    for (uint32_t i = 0; i < count; i++)
        tir_emit_set(e, inst->results[i], count == 1 ? v : LLVMBuildExtractValue(e->b, v, i, ""));
}

static void emit_store(struct emit *e, const struct tir_inst *inst)
{
    const uint32_t count = inst->operand_count - 1;
    struct tir_text text, constraints;
    tir_text_init(&text, e->arena, 0);
    tir_text_init(&constraints, e->arena, 0);
    tir_text_add(&text, STR("tcgen05.st.sync.aligned."));
    add_shape(&text, inst, count);
    tir_text_add(&text, STR("[$0]"));
    add_split(&text, inst);
    tir_text_add(&text, STR(", "));
    list_registers(&text, 1, count);
    tir_text_add(&text, STR("; tcgen05.wait::st.sync.aligned;"));
    V *args = arena_array(e->arena, V, inst->operand_count);
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        args[i] = tir_emit_value(e, inst->operands[i]);
        tir_text_add(&constraints, STR("r,"));
    }
    tir_text_add(&constraints, STR("~{memory}"));
    effect(e, e->ll->none, tir_text_str(&text), tir_text_str(&constraints), args,
           inst->operand_count, TIR_ASM_CONVERGENT);
}

static V shared_address(struct emit *e, const struct tir_value *buffer, const struct tir_value *at,
                        int64_t offset)
{
    return LLVMBuildPtrToInt(e->b, tir_emit_address(e, buffer, at, offset), e->ll->i32, "");
}

// A kernel allocates once, so it gives up the right to allocate at once.
static void emit_alloc(struct emit *e, const struct tir_inst *inst)
{
    const char *text =
        tir_str_format(e->arena,
                       "tcgen05.alloc.cta_group::%" PRIu32
                       ".sync.aligned.shared::cta.b32 [$0], %" PRId64 "; "
                       "tcgen05.relinquish_alloc_permit.cta_group::%" PRIu32 ".sync.aligned;",
                       ctas_of(inst), tir_attr_int(inst, TIR_ATTR_columns, 0), ctas_of(inst))
            .ptr;
    V slot = shared_address(e, inst->operands[0], NULL, 0);
    effect(e, e->ll->none, tir_str_of(text), STR("r,~{memory}"), &slot, 1, TIR_ASM_CONVERGENT);
}

static void emit_free(struct emit *e, const struct tir_inst *inst)
{
    const char *text =
        tir_str_format(e->arena,
                       "tcgen05.dealloc.cta_group::%" PRIu32 ".sync.aligned.b32 $0, %" PRId64 ";",
                       ctas_of(inst), tir_attr_int(inst, TIR_ATTR_columns, 0))
            .ptr;
    V base = tir_emit_value(e, inst->operands[0]);
    effect(e, e->ll->none, tir_str_of(text), STR("r,~{memory}"), &base, 1, TIR_ASM_CONVERGENT);
}

static void emit_commit(struct emit *e, const struct tir_inst *inst)
{
    V bar = shared_address(e, inst->operands[TIR_BAR], inst->operands[TIR_BAR_AT],
                           tir_attr_int(inst, TIR_ATTR_offset, 0));
    const struct tir_value *ctas = inst->operands[TIR_COMMIT_CTAS];
    V args[] = {bar,
                ctas ? LLVMBuildTrunc(e->b, tir_emit_low_word(e, ctas), e->ll->i16, "") : NULL};
    tir_str text = tir_str_format(
        e->arena,
        "tcgen05.commit.cta_group::%" PRIu32 ".mbarrier::arrive::one.shared::cluster%s.b64 [$0]%s;",
        ctas_of(inst), ctas ? ".multicast::cluster" : "", ctas ? ", $1" : "");
    effect(e, e->ll->none, text, ctas ? STR("r,h,~{memory}") : STR("r,~{memory}"), args,
           ctas ? 2 : 1, 0);
}

void tir_emit_tcgen05(struct emit *e, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_TCGEN05_MMA:
        emit_mma(e, inst);
        return;
    case TIR_OP_TCGEN05_CP:
        emit_cp(e, inst);
        return;
    case TIR_OP_TMEM_LD:
        emit_load(e, inst);
        return;
    case TIR_OP_TMEM_ST:
        emit_store(e, inst);
        return;
    case TIR_OP_TMEM_ALLOC:
        emit_alloc(e, inst);
        return;
    case TIR_OP_TMEM_FREE:
        emit_free(e, inst);
        return;
    case TIR_OP_COMMIT:
        emit_commit(e, inst);
        return;
    default:
        tir_unreachable();
    }
}
