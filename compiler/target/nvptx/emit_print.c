// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel says, by functions that CUDA provides to device code:
//
//     int vprintf(const char *format, const void *values);          each value 8 bytes here
//     void __assertfail(const char *text, const char *file, unsigned line, const char *function,
//                       size_t char_size);                          ends the launch
//
// Texts are constants of the module, called after their kernel: the modules of variants are joined.

#include "target/nvptx/emit.h"

static V text_of(struct emit *e, tir_str text)
{
    LLVMTypeRef generic = LLVMPointerTypeInContext(e->ll->context, TIR_AS_GENERIC);
    tir_str name = tir_str_format(e->arena, "%s__text%u", e->f->name, e->text_count++);
    V bytes = LLVMConstStringInContext2(e->ll->context, text.ptr, text.len, false);
    V global =
        LLVMAddGlobalInAddressSpace(e->ll->module, LLVMTypeOf(bytes), name.ptr, TIR_AS_GLOBAL);
    LLVMSetInitializer(global, bytes);
    LLVMSetGlobalConstant(global, true);
    LLVMSetLinkage(global, LLVMInternalLinkage);
    return LLVMConstAddrSpaceCast(global, generic);
}

static void call(struct emit *e, const char *name, LLVMTypeRef result, V *args, uint32_t count)
{
    LLVMTypeRef types[5];
    for (uint32_t i = 0; i < count; i++)
        types[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, count, false);
    V f = LLVMGetNamedFunction(e->ll->module, name);
    if (!f)
        f = LLVMAddFunction(e->ll->module, name, type);
    LLVMBuildCall2(e->b, type, f, args, count, "");
}

// The format of a value, and what is passed of it: a double or an integer of 64 bits.
static const char *widen(struct emit *e, const struct tir_value *v, V *out)
{
    enum tir_elem elem = v->type->elem;
    *out = tir_emit_value(e, v);
    if (tir_elem_is_float(elem)) {
        *out = elem == TIR_F64 ? *out : tir_emit_convert(e, *out, elem, TIR_F64);
        return "%g";
    }
    bool is_signed = tir_elems[elem].kind == TIR_KIND_SIGNED;
    if (tir_elems[elem].bits < 64 || elem == TIR_BOOL)
        *out = is_signed ? LLVMBuildSExt(e->b, *out, e->ll->i64, "")
                         : LLVMBuildZExt(e->b, *out, e->ll->i64, "");
    return is_signed ? "%lld" : "%llu";
}

// Memory of the thread for the values; made at the start of the entry block, for all iterations.
static V room_for(struct emit *e, uint32_t values)
{
    LLVMBasicBlockRef here = tir_emit_at_entry(e);
    V room = LLVMBuildAlloca(e->b, LLVMArrayType2(e->ll->i64, values), "");
    tir_emit_at(e, here);
    return room;
}

static void emit_line(struct emit *e, const struct tir_inst *inst)
{
    const tir_str text = tir_attr_find(inst, TIR_ATTR_text)->text;
    struct tir_text format;
    uint32_t next = 0;
    V room = inst->operand_count ? room_for(e, inst->operand_count)
                                 : LLVMConstNull(LLVMPointerTypeInContext(e->ll->context, 0));
    tir_text_init(&format, e->arena, 0);
    for (size_t i = 0; i < text.len; i++) {
        bool is_place = text.ptr[i] == '{' && i + 1 < text.len && text.ptr[i + 1] == '}';
        if (is_place && next < inst->operand_count) {
            V value, offset = tir_emit_i32(e, next);
            tir_text_format(&format, "%s", widen(e, inst->operands[next++], &value));
            V at = LLVMBuildGEP2(e->b, LLVMTypeOf(value), room, &offset, 1, "");
            LLVMBuildStore(e->b, value, at);
            i++;
        } else {
            tir_text_format(&format, "%s", text.ptr[i] == '%' ? "%" : "");
            tir_text_char(&format, text.ptr[i]);
        }
    }
    tir_text_char(&format, '\n');
    V args[] = {text_of(e, tir_text_str(&format)), room};
    call(e, "vprintf", e->ll->i32, args, 2);
}

// Where cond is false.
static LLVMBasicBlockRef open_failure(struct emit *e, const struct tir_value *cond)
{
    LLVMBasicBlockRef fails = tir_emit_block(e, "fails"), holds = tir_emit_block(e, "holds");
    LLVMBuildCondBr(e->b, tir_emit_value(e, cond), holds, fails);
    tir_emit_at(e, fails);
    return holds;
}

static void emit_assert(struct emit *e, const struct tir_inst *inst)
{
    struct tir_position at = tir_source_locate(e->diags->sources, inst->span.begin);
    LLVMBasicBlockRef holds = open_failure(e, inst->operands[0]);
    V args[] = {text_of(e, tir_attr_find(inst, TIR_ATTR_text)->text),
                text_of(e, at.file ? at.file->name : STR("")), tir_emit_i32(e, at.line),
                text_of(e, tir_str_of(e->f->name)), LLVMConstInt(e->ll->i64, 1, false)};
    call(e, "__assertfail", e->ll->none, args, TIR_COUNT_OF(args));
    LLVMBuildUnreachable(e->b);
    tir_emit_at(e, holds);
}

void tir_emit_print(struct emit *e, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_PRINT:
        emit_line(e, inst);
        return;
    case TIR_OP_ASSERT:
        emit_assert(e, inst);
        return;
    case TIR_OP_TRAP:
        tir_llvm_call(e->ll, "llvm.trap", NULL, 0, NULL, 0);
        return;
    default:
        tir_unreachable();
    }
}
