// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// clusterlaunchcontrol: requests to take the place of a cluster that has not started, and what
// their responses say (PTX ISA, clusterlaunchcontrol.try_cancel and query_cancel).

#include "target/nvptx/emit.h"

static void emit_request(struct emit *e, const struct tir_inst *inst)
{
    V args[] = {
        tir_emit_address(e, inst->operands[TIR_CANCEL_TO], inst->operands[TIR_CANCEL_TO_AT], 0),
        tir_emit_address(e, inst->operands[TIR_CANCEL_BAR], inst->operands[TIR_CANCEL_BAR_AT], 0)};
    tir_llvm_call(e->ll,
                  tir_attr_int(inst, TIR_ATTR_multicast, 0)
                      ? "llvm.nvvm.clusterlaunchcontrol.try_cancel.async.multicast.shared"
                      : "llvm.nvvm.clusterlaunchcontrol.try_cancel.async.shared",
                  NULL, 0, args, 2);
}

// The two halves of the response.
static void load_response(struct emit *e, const struct tir_inst *inst, V halves[2])
{
    V from =
        tir_emit_address(e, inst->operands[TIR_CANCEL_RESPONSE], inst->operands[TIR_CANCEL_AT], 0);
    V pair = LLVMBuildLoad2(e->b, LLVMVectorType(e->ll->i64, 2), from, "");
    LLVMSetAlignment(pair, 16);
    for (uint32_t i = 0; i < 2; i++)
        halves[i] = LLVMBuildExtractElement(e->b, pair, LLVMConstInt(e->ll->i32, i, false), "");
}

static void emit_is_canceled(struct emit *e, const struct tir_inst *inst)
{
    V halves[2];
    load_response(e, inst, halves);
    V yes =
        tir_llvm_asm(e->ll, e->ll->i32,
                     STR("{\n\t"
                         ".reg .pred p;\n\t"
                         ".reg .b128 response;\n\t"
                         "mov.b128 response, {$1, $2};\n\t"
                         "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, response;\n\t"
                         "selp.u32 $0, 1, 0, p;\n\t"
                         "}"),
                     STR("=r,l,l"), 0, halves, 2);
    tir_emit_set(e, inst->results[0], LLVMBuildICmp(e->b, LLVMIntNE, yes, tir_emit_i32(e, 0), ""));
}

// What get_first_ctaid gives of a request that failed is undefined, so it is predicated.
static void emit_first_ctaid(struct emit *e, const struct tir_inst *inst)
{
    V halves[2];
    load_response(e, inst, halves);
    tir_str text = tir_str_format(
        e->arena,
        "{\n\t"
        ".reg .pred p;\n\t"
        ".reg .b128 response;\n\t"
        "mov.b128 response, {$1, $2};\n\t"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, response;\n\t"
        "mov.b32 $0, -1;\n\t"
        "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::%c.b32.b128 $0, response;\n\t"
        "}",
        "xyz"[tir_attr_int(inst, TIR_ATTR_axis, 0)]);
    tir_emit_set(e, inst->results[0],
                 tir_llvm_asm(e->ll, e->ll->i32, text, STR("=&r,l,l"), 0, halves, 2));
}

void tir_emit_cancel(struct emit *e, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_TRY_CANCEL:
        emit_request(e, inst);
        return;
    case TIR_OP_IS_CANCELED:
        emit_is_canceled(e, inst);
        return;
    case TIR_OP_FIRST_CTAID:
        emit_first_ctaid(e, inst);
        return;
    default:
        tir_unreachable();
    }
}
