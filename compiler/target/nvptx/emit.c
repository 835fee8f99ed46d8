// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values, and which file emits an instruction.

#include "target/nvptx/emit.h"

#include <inttypes.h>
#include <stdio.h>

#include "ir/number.h"
#include "ir/range.h"
#include "ir/walk.h"
#include "target/nvptx/nvptx.h"

// No kernel is called this: `$` is no letter of the language.
#define SHARED_NAME "tir$shared"

// Small things.

V tir_emit_i32(const struct emit *e, int64_t value)
{
    return LLVMConstInt(e->ll->i32, (unsigned long long)value, true);
}

V tir_emit_const(V like, double value)
{
    return LLVMConstReal(LLVMTypeOf(like), value);
}

V tir_emit_unary(struct emit *e, const char *intrinsic, V x)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    return tir_llvm_call(e->ll, intrinsic, &type, 1, &x, 1);
}

V tir_emit_binary(struct emit *e, const char *intrinsic, V x, V y)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    return tir_llvm_call(e->ll, intrinsic, &type, 1, (V[]){x, y}, 2);
}

V tir_emit_fma(struct emit *e, V x, V y, V z)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    return tir_llvm_call(e->ll, "llvm.fma", &type, 1, (V[]){x, y, z}, 3);
}

V tir_emit_bits(struct emit *e, V x, LLVMTypeRef type)
{
    return LLVMTypeOf(x) == type ? x : LLVMBuildBitCast(e->b, x, type, "");
}

V tir_emit_select(struct emit *e, V cond, V x, V y)
{
    return LLVMBuildSelect(e->b, cond, x, y, "");
}

V tir_emit_fcmp(struct emit *e, LLVMRealPredicate predicate, V x, V y)
{
    return LLVMBuildFCmp(e->b, predicate, x, y, "");
}

V tir_emit_icmp(struct emit *e, LLVMIntPredicate predicate, V x, V y)
{
    return LLVMBuildICmp(e->b, predicate, x, y, "");
}

LLVMBasicBlockRef tir_emit_block(struct emit *e, const char *name)
{
    return LLVMAppendBasicBlockInContext(e->ll->context, e->function, name);
}

void tir_emit_at(struct emit *e, LLVMBasicBlockRef block)
{
    LLVMPositionBuilderAtEnd(e->b, block);
}

LLVMBasicBlockRef tir_emit_at_entry(struct emit *e)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b), entry = LLVMGetEntryBasicBlock(e->function);
    V first = LLVMGetFirstInstruction(entry);
    if (first)
        LLVMPositionBuilderBefore(e->b, first);
    else
        LLVMPositionBuilderAtEnd(e->b, entry);
    return here;
}

LLVMTypeRef tir_emit_elem_type(const struct emit *e, enum tir_elem elem)
{
    switch (elem) {
    case TIR_BOOL:
        return e->ll->i1;
    case TIR_I8:
    case TIR_U8:
    case TIR_E2M1:
    case TIR_E3M2:
    case TIR_E2M3:
    case TIR_E4M3:
    case TIR_E5M2:
    case TIR_UE8M0:
    case TIR_UE4M3:
        return e->ll->i8;
    case TIR_I16:
    case TIR_U16:
        return e->ll->i16;
    case TIR_I32:
    case TIR_U32:
        return e->ll->i32;
    case TIR_I64:
    case TIR_U64:
    case TIR_MBARRIER:
        return e->ll->i64;
    case TIR_F16:
        return e->ll->f16;
    case TIR_BF16:
        return e->ll->bf16;
    case TIR_TF32:
    case TIR_F32:
        return e->ll->f32;
    case TIR_F64:
        return e->ll->f64;
    case TIR_NONE:
    case TIR_ELEM_COUNT:
        break;
    }
    tir_unreachable();
}

LLVMTypeRef tir_emit_type(const struct emit *e, const struct tir_type *type)
{
    assert(tir_type_is_scalar(type));
    return tir_emit_elem_type(e, type->elem);
}

V tir_emit_unsupported(struct emit *e, const struct tir_type *type, const char *what)
{
    tir_error_at(e->diags, e->span, TIR_E_UNSUPPORTED, "%s is not supported on %s", what,
                 e->ll->target->name);
    e->failed = true;
    return LLVMGetUndef(tir_emit_type(e, type));
}

// Values.

static V constant(const struct emit *e, const struct tir_value *v)
{
    LLVMTypeRef type = tir_emit_type(e, v->type);
    if (!tir_elem_is_float(v->type->elem))
        return LLVMConstInt(type, (unsigned long long)v->constant.i, true);
    if (tir_elems[v->type->elem].bits <= 8)
        return LLVMConstInt(
            type, tir_number_encode(v->type->elem, (union tir_number){.f = v->constant.f}), false);
    return LLVMConstReal(type, v->constant.f);
}

bool tir_emit_is_narrow(const struct emit *e, const struct tir_value *v)
{
    if (v->kind == TIR_VALUE_CONST)
        return v->type->elem == TIR_I64 && v->constant.i == (int32_t)v->constant.i;
    return e->slots[v->id].narrow;
}

V tir_emit_value(struct emit *e, const struct tir_value *v)
{
    if (v->kind == TIR_VALUE_CONST)
        return constant(e, v);
    const struct emit_slot *slot = &e->slots[v->id];
    assert(slot->v);
    if (!slot->narrow)
        return slot->v;
    return slot->wide ? slot->wide : LLVMBuildSExt(e->b, slot->v, e->ll->i64, "");
}

V tir_emit_value32(struct emit *e, const struct tir_value *v)
{
    assert(v->type->elem == TIR_I64);
    if (v->kind == TIR_VALUE_CONST)
        return tir_emit_i32(e, v->constant.i);
    const struct emit_slot *slot = &e->slots[v->id];
    assert(slot->v);
    return slot->narrow ? slot->v : LLVMBuildTrunc(e->b, slot->v, e->ll->i32, "");
}

V tir_emit_low_word(struct emit *e, const struct tir_value *v)
{
    if (v->type->elem == TIR_I64)
        return tir_emit_value32(e, v);
    V x = tir_emit_value(e, v);
    return v->type->elem == TIR_U64 ? LLVMBuildTrunc(e->b, x, e->ll->i32, "") : x;
}

void tir_emit_set32(struct emit *e, const struct tir_value *v, V value)
{
    assert(e->slots[v->id].narrow && LLVMTypeOf(value) == e->ll->i32);
    e->slots[v->id].v = value;
}

void tir_emit_set(struct emit *e, const struct tir_value *v, V value)
{
    struct emit_slot *slot = &e->slots[v->id];
    slot->v = slot->narrow ? LLVMBuildTrunc(e->b, value, e->ll->i32, "") : value;
    slot->wide = slot->narrow ? value : NULL;
}

int tir_emit_known(const struct tir_value *condition)
{
    if (!condition)
        return 1;
    return condition->kind == TIR_VALUE_CONST ? condition->constant.i != 0 : -1;
}

bool tir_emit_in_range(const struct emit *e, const struct tir_value *v, int64_t low, int64_t high)
{
    int64_t v_low, v_high;
    tir_range_get(e->ranges, v, &v_low, &v_high);
    return v_low >= low && v_high <= high;
}

bool tir_emit_fits(int64_t low, int64_t high, uint32_t bits)
{
    int64_t most = (int64_t)(UINT64_MAX >> (65 - bits));
    return low >= -most - 1 && high <= most;
}

bool tir_emit_is_exact(const struct emit *e, const struct tir_inst *inst)
{
    enum tir_elem elem = inst->results[0]->type->elem;
    if (tir_elems[elem].kind != TIR_KIND_SIGNED || inst->operand_count != 2)
        return false;
    int64_t a[2], b[2], low = INT64_MAX, high = INT64_MIN;
    tir_range_get(e->ranges, inst->operands[0], &a[0], &a[1]);
    tir_range_get(e->ranges, inst->operands[1], &b[0], &b[1]);
    for (int i = 0; i < 4; i++) { // the extremes are at the corners
        int64_t x = a[i & 1], y = b[i >> 1], result;
        bool ok = inst->op == TIR_OP_ADD   ? tir_add_checked(x, y, &result)
                  : inst->op == TIR_OP_SUB ? tir_sub_checked(x, y, &result)
                  : inst->op == TIR_OP_MUL ? tir_mul_checked(x, y, &result)
                                           : false;
        if (!ok)
            return false;
        low = TIR_MIN(low, result);
        high = TIR_MAX(high, result);
    }
    return tir_emit_fits(low, high, tir_elems[elem].bits);
}

static void choose_width(struct emit *e, const struct tir_value *v)
{
    e->slots[v->id].narrow = v->type->elem == TIR_I64 && tir_type_is_scalar(v->type) &&
                             tir_emit_in_range(e, v, INT32_MIN, INT32_MAX);
}

static void join_widths(struct emit *e, const struct tir_inst *inst)
{
    uint32_t skip = inst->op == TIR_OP_FOR ? 1 : 0; // the index
    if (inst->op != TIR_OP_FOR && inst->op != TIR_OP_WHILE)
        return;
    for (uint32_t i = TIR_FOR_BEGIN; skip && i <= TIR_FOR_STEP; i++)
        if (!tir_emit_is_narrow(e, inst->operands[i]))
            e->slots[inst->regions[0]->args[0]->id].narrow = false;
    for (uint32_t i = 0; i < inst->result_count; i++) {
        bool narrow = e->slots[inst->results[i]->id].narrow;
        for (uint32_t r = 0; r < inst->region_count; r++)
            narrow = narrow && e->slots[inst->regions[r]->args[i + skip]->id].narrow;
        e->slots[inst->results[i]->id].narrow = narrow;
        for (uint32_t r = 0; r < inst->region_count; r++)
            e->slots[inst->regions[r]->args[i + skip]->id].narrow = narrow;
    }
}

// Which values are held in 32 bits. A loop's carried values and results share their registers, so
// they are narrow only together; its index is narrow only if the bounds and the step are.
void tir_emit_choose_widths(struct emit *e)
{
    struct tir_func *f = e->f;
    for (uint32_t i = 0; i < f->body->arg_count; i++)
        choose_width(e, f->body->args[i]);
    tir_foreach_inst(inst, f) {
        for (uint32_t i = 0; i < inst->result_count; i++)
            choose_width(e, inst->results[i]);
        for (uint32_t r = 0; r < inst->region_count; r++)
            for (uint32_t i = 0; i < inst->regions[r]->arg_count; i++)
                choose_width(e, inst->regions[r]->args[i]);
    }
    tir_foreach_inst(inst, f)
        join_widths(e, inst);
}

// All unsized arrays of shared memory begin at the same address.
V tir_emit_shared_base(struct emit *e)
{
    if (!e->shared) {
        char name[sizeof(SHARED_NAME) + 16] = SHARED_NAME;
        if (e->role_count)
            snprintf(name, sizeof(name), SHARED_NAME "$%" PRIu32, e->role_count);
        e->shared = LLVMGetNamedGlobal(e->ll->module, name);
        if (!e->shared) {
            e->shared = LLVMAddGlobalInAddressSpace(e->ll->module, LLVMArrayType2(e->ll->i8, 0),
                                                    name, TIR_AS_SHARED);
            LLVMSetLinkage(e->shared, LLVMExternalLinkage);
            LLVMSetAlignment(e->shared, TIR_SWIZZLE_BYTES);
        }
    }
    return e->shared;
}

// ptxas has an address by a name in one register of 64 bits, and spills it in all roles where one
// of them has few.
void tir_emit_name_shared(struct emit *e)
{
    const V before = e->shared;
    if (!e->has_tmem || !before)
        return;
    e->shared = NULL;
    e->role_count++;
    for (uint32_t i = 0; i <= e->f->value_count; i++)
        if (e->slots[i].v == before)
            e->slots[i].v = tir_emit_shared_base(e);
}

void tir_emit_set_location(struct emit *e, struct tir_span span)
{
    if (!e->scope || !span.begin)
        return;
    struct tir_position at = tir_source_locate(e->diags->sources, span.begin);
    if (at.file)
        LLVMSetCurrentDebugLocation2(e->b, LLVMDIBuilderCreateDebugLocation(
                                               e->ll->context, at.line, at.column, e->scope, NULL));
}

static V stride_of(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_value *tensor = inst->operands[0];
    uint32_t axis = (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0);
    for (uint32_t i = 0; i < e->f->param_count; i++)
        if (e->f->params[i].value == tensor && axis < tensor->type->rank)
            return e->strides[i * TIR_MAX_RANK + axis];
    tir_error_at(e->diags, inst->span, TIR_E_CODEGEN, "stride of something that is no parameter");
    e->failed = true;
    return LLVMGetUndef(e->ll->i64);
}

// The lowest bit that is set in the address, a stride or the innermost extent.
static V alignment_of(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_param *param = tir_param_of(e->f, inst->operands[0]);
    const struct tir_type *t = param->value->type;
    uint32_t index = (uint32_t)(param - e->f->params), inner = t->rank - 1;
    V bytes = LLVMConstInt(e->ll->i64, TIR_MAX(1, tir_elems[t->elem].bits / 8), false);
    V all = LLVMBuildPtrToInt(e->b, tir_emit_value(e, param->value), e->ll->i64, "");
    all = LLVMBuildOr(e->b, all, LLVMConstInt(e->ll->i64, 16, false), "");
    for (uint32_t d = 0; d < inner; d++)
        all = LLVMBuildOr(e->b, all,
                          LLVMBuildMul(e->b, e->strides[index * TIR_MAX_RANK + d], bytes, ""), "");
    int32_t dim = param->dims[inner].dim;
    if (dim >= 0) {
        V extent = tir_emit_value(e, e->f->dims[dim].value);
        all = LLVMBuildOr(e->b, all, LLVMBuildMul(e->b, extent, bytes, ""), "");
    }
    V lowest = LLVMBuildAnd(e->b, all, LLVMBuildNeg(e->b, all, ""), "");
    V dense = tir_emit_icmp(e, LLVMIntEQ, e->strides[index * TIR_MAX_RANK + inner],
                            LLVMConstInt(e->ll->i64, 1, false));
    return tir_emit_select(e, dense, LLVMBuildTrunc(e->b, lowest, e->ll->i32, ""),
                           tir_emit_i32(e, 0));
}

// A yield is read by its block's owner, and passes have used what is assumed.
static void emit_nothing(struct emit *e, const struct tir_inst *inst)
{
    (void)e;
    (void)inst;
}

static void emit_stride(struct emit *e, const struct tir_inst *inst)
{
    tir_emit_set(e, inst->results[0], stride_of(e, inst));
}

static void emit_alignment(struct emit *e, const struct tir_inst *inst)
{
    tir_emit_set(e, inst->results[0], alignment_of(e, inst));
}

static void emit_askew(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_value *tensor = inst->operands[0];
    V at = LLVMBuildPtrToInt(e->b, tir_emit_value(e, tensor), e->ll->i64, "");
    at = LLVMBuildAnd(e->b, LLVMBuildTrunc(e->b, at, e->ll->i32, ""), tir_emit_i32(e, 15), "");
    const uint32_t bytes = TIR_MAX(1, tir_elems[tensor->type->elem].bits / 8);
    tir_emit_set(e, inst->results[0], LLVMBuildUDiv(e->b, at, tir_emit_i32(e, bytes), ""));
}

static tir_emit_fn *const emitters[TIR_OP_COUNT] = {
    [TIR_OP_YIELD] = emit_nothing,
    [TIR_OP_ASSUME] = emit_nothing,
    [TIR_OP_STRIDE] = emit_stride,
    [TIR_OP_ALIGNMENT] = emit_alignment,
    [TIR_OP_ASKEW] = emit_askew,
    // emit_arith.c
    [TIR_OP_ADD] = tir_emit_arith,
    [TIR_OP_SUB] = tir_emit_arith,
    [TIR_OP_MUL] = tir_emit_arith,
    [TIR_OP_DIV] = tir_emit_arith,
    [TIR_OP_DIV_APPROX] = tir_emit_arith,
    [TIR_OP_REM] = tir_emit_arith,
    [TIR_OP_CEILDIV] = tir_emit_arith,
    [TIR_OP_NEG] = tir_emit_arith,
    [TIR_OP_ABS] = tir_emit_arith,
    [TIR_OP_MIN] = tir_emit_arith,
    [TIR_OP_MAX] = tir_emit_arith,
    [TIR_OP_AND] = tir_emit_arith,
    [TIR_OP_OR] = tir_emit_arith,
    [TIR_OP_XOR] = tir_emit_arith,
    [TIR_OP_NOT] = tir_emit_arith,
    [TIR_OP_POPCOUNT] = tir_emit_arith,
    [TIR_OP_LEADING_ZEROS] = tir_emit_arith,
    [TIR_OP_SHL] = tir_emit_arith,
    [TIR_OP_SHR] = tir_emit_arith,
    [TIR_OP_FMA] = tir_emit_arith,
    [TIR_OP_FLOOR] = tir_emit_arith,
    [TIR_OP_CEIL] = tir_emit_arith,
    [TIR_OP_ROUND] = tir_emit_arith,
    [TIR_OP_TRUNC] = tir_emit_arith,
    [TIR_OP_EXP] = tir_emit_arith,
    [TIR_OP_EXP2] = tir_emit_arith,
    [TIR_OP_LOG] = tir_emit_arith,
    [TIR_OP_LOG2] = tir_emit_arith,
    [TIR_OP_SQRT] = tir_emit_arith,
    [TIR_OP_RSQRT] = tir_emit_arith,
    [TIR_OP_SIN] = tir_emit_arith,
    [TIR_OP_COS] = tir_emit_arith,
    [TIR_OP_TANH] = tir_emit_arith,
    [TIR_OP_TANH_APPROX] = tir_emit_arith,
    [TIR_OP_ERF] = tir_emit_arith,
    [TIR_OP_POW] = tir_emit_arith,
    [TIR_OP_EQ] = tir_emit_arith,
    [TIR_OP_NE] = tir_emit_arith,
    [TIR_OP_LT] = tir_emit_arith,
    [TIR_OP_LE] = tir_emit_arith,
    [TIR_OP_GT] = tir_emit_arith,
    [TIR_OP_GE] = tir_emit_arith,
    [TIR_OP_WHERE] = tir_emit_arith,
    [TIR_OP_CAST] = tir_emit_arith,
    [TIR_OP_BITCAST] = tir_emit_arith,
    // emit_flow.c
    [TIR_OP_FOR] = tir_emit_flow,
    [TIR_OP_IF] = tir_emit_flow,
    [TIR_OP_WHILE] = tir_emit_flow,
    // emit_memory.c
    [TIR_OP_LD] = tir_emit_memory,
    [TIR_OP_ST] = tir_emit_memory,
    [TIR_OP_ATOM] = tir_emit_memory,
    [TIR_OP_CP_ASYNC] = tir_emit_memory,
    [TIR_OP_LDMATRIX] = tir_emit_memory,
    [TIR_OP_STMATRIX] = tir_emit_memory,
    [TIR_OP_ADDRESS] = tir_emit_memory,
    [TIR_OP_REMOTE] = tir_emit_memory,
    [TIR_OP_ALLOC] = tir_emit_memory,
    [TIR_OP_ALIAS] = tir_emit_memory,
    [TIR_OP_PACK] = tir_emit_pack_op,
    [TIR_OP_UNPACK] = tir_emit_unpack_op,
    // emit_atomic.c
    [TIR_OP_RED] = tir_emit_red,
    // emit_print.c
    [TIR_OP_PRINT] = tir_emit_print,
    [TIR_OP_ASSERT] = tir_emit_print,
    [TIR_OP_TRAP] = tir_emit_print,
    // emit_sync.c
    [TIR_OP_MBARRIER_INIT] = tir_emit_sync,
    [TIR_OP_ARRIVE] = tir_emit_sync,
    [TIR_OP_WAIT] = tir_emit_sync,
    [TIR_OP_TEST_WAIT] = tir_emit_sync,
    [TIR_OP_COMMIT] = tir_emit_sync,
    [TIR_OP_TRY_CANCEL] = tir_emit_cancel,
    [TIR_OP_IS_CANCELED] = tir_emit_cancel,
    [TIR_OP_FIRST_CTAID] = tir_emit_cancel,
    [TIR_OP_COMMIT_GROUP] = tir_emit_sync,
    [TIR_OP_WAIT_GROUP] = tir_emit_sync,
    [TIR_OP_FENCE] = tir_emit_sync,
    [TIR_OP_BAR_SYNC] = tir_emit_sync,
    [TIR_OP_BAR_ARRIVE] = tir_emit_sync,
    [TIR_OP_WARP_SYNC] = tir_emit_sync,
    [TIR_OP_CLUSTER_ARRIVE] = tir_emit_sync,
    [TIR_OP_CLUSTER_WAIT] = tir_emit_sync,
    [TIR_OP_GRID_SYNC] = tir_emit_sync,
    [TIR_OP_ASSUME_SYNC] = tir_emit_sync,
    [TIR_OP_SETMAXNREG] = tir_emit_sync,
    [TIR_OP_GRIDDEPCONTROL] = tir_emit_sync,
    // emit_tensor.c
    [TIR_OP_TMA_LOAD] = tir_emit_tensor,
    [TIR_OP_TMA_GATHER] = tir_emit_tensor,
    [TIR_OP_TMA_PIXELS] = tir_emit_tensor,
    [TIR_OP_TMA_STORE] = tir_emit_tensor,
    [TIR_OP_TMA_PREFETCH] = tir_emit_tensor,
    [TIR_OP_BULK_LOAD] = tir_emit_tensor,
    [TIR_OP_BULK_SEND] = tir_emit_tensor,
    [TIR_OP_ST_ASYNC] = tir_emit_tensor,
    [TIR_OP_BULK_STORE] = tir_emit_tensor,
    // emit_wgmma.c
    [TIR_OP_WGMMA] = tir_emit_wgmma,
    [TIR_OP_AWAIT] = tir_emit_wgmma,
    [TIR_OP_WGMMA_FENCE] = tir_emit_wgmma,
    // emit_tcgen05.c
    [TIR_OP_TCGEN05_MMA] = tir_emit_tcgen05,
    [TIR_OP_TCGEN05_CP] = tir_emit_tcgen05,
    [TIR_OP_TMEM_LD] = tir_emit_tcgen05,
    [TIR_OP_TMEM_ST] = tir_emit_tcgen05,
    [TIR_OP_TMEM_ALLOC] = tir_emit_tcgen05,
    [TIR_OP_TMEM_FREE] = tir_emit_tcgen05,
    // emit_thread.c
    [TIR_OP_MMA] = tir_emit_mma,
    [TIR_OP_PTX] = tir_emit_thread,
    [TIR_OP_TID] = tir_emit_thread,
    [TIR_OP_LANEID] = tir_emit_thread,
    [TIR_OP_WARPID] = tir_emit_thread,
    [TIR_OP_WGID] = tir_emit_thread,
    [TIR_OP_TID_IN_WG] = tir_emit_thread,
    [TIR_OP_CTA_ID] = tir_emit_thread,
    [TIR_OP_NUM_CTAS] = tir_emit_thread,
    [TIR_OP_CTA_IN_CLUSTER] = tir_emit_thread,
    [TIR_OP_CLUSTER_ID] = tir_emit_thread,
    [TIR_OP_NUM_CLUSTERS] = tir_emit_thread,
    [TIR_OP_CTA_RANK] = tir_emit_thread,
    [TIR_OP_CLUSTER_SIZE] = tir_emit_thread,
    [TIR_OP_ELECT] = tir_emit_thread,
    [TIR_OP_NUM_THREADS] = tir_emit_thread,
    [TIR_OP_SHUFFLE] = tir_emit_thread,
    [TIR_OP_VOTE] = tir_emit_thread,
};

tir_emit_fn *tir_emitter_of(enum tir_op op)
{
    return emitters[op];
}

static void emit_inst(struct emit *e, const struct tir_inst *inst)
{
    e->span = inst->span;
    tir_emit_set_location(e, inst->span);
    if (inst == e->awaited)
        return;
    if (emitters[inst->op]) {
        emitters[inst->op](e, inst);
        return;
    }
    tir_error_at(e->diags, inst->span, TIR_E_CODEGEN, "%s is not a machine operation",
                 tir_ops[inst->op].name);
    e->failed = true;
}

void tir_emit_insts(struct emit *e, const struct tir_block *block)
{
    // After an error values may be missing, so nothing more is emitted.
    for (const struct tir_inst *inst = block->first; inst && !e->failed; inst = inst->next)
        emit_inst(e, inst);
}
