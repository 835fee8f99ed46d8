// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exponentials that stand side by side are one piece of inline PTX:
//
//     let a: f32 = exp2(x);            { a, b } = "ex2.approx.ftz.f32 $0, $2;
//     let b: f32 = exp2(y);     ->                 ex2.approx.ftz.f32 $1, $3;" (x, y)
//
// LLVM's instruction selection tries the patterns of all intrinsics in turn, and that of ex2 is one
// of the last: a softmax spends more on it than on all its other arithmetic. The instructions are
// the same, and ptxas orders them as it likes.

#include <inttypes.h>

#include "target/nvptx/emit.h"

enum { MOST_AT_ONCE = 8 }; // their operands are computed before the first

static bool is_exp2(const struct tir_inst *inst)
{
    return inst && inst->op == TIR_OP_EXP2 && inst->results[0]->type->elem == TIR_F32;
}

static uint32_t run_of(const struct tir_inst *first)
{
    uint32_t count = 0;
    for (const struct tir_inst *inst = first; is_exp2(inst) && count < MOST_AT_ONCE;
         inst = inst->next, count++)
        for (const struct tir_inst *before = first; before != inst; before = before->next)
            if (inst->operands[0] == before->results[0])
                return count;
    return count;
}

bool tir_emit_exp2_run(struct emit *e, const struct tir_inst *inst)
{
    if (e->exponentials) { // that were emitted with one before them
        e->exponentials--;
        return true;
    }
    const uint32_t count = run_of(inst);
    if (count < 2)
        return false;
    struct tir_text text, constraints;
    tir_text_init(&text, e->arena, 0);
    tir_text_init(&constraints, e->arena, 0);
    V args[MOST_AT_ONCE];
    LLVMTypeRef types[MOST_AT_ONCE];
    const struct tir_inst *at = inst;
    for (uint32_t i = 0; i < count; i++, at = at->next) {
        args[i] = tir_emit_value(e, at->operands[0]);
        types[i] = e->ll->f32;
        tir_text_format(&text, "%sex2.approx.ftz.f32 $%" PRIu32 ", $%" PRIu32 ";", i ? " " : "", i,
                        count + i);
        tir_text_add(&constraints, STR("=&f,"));
    }
    for (uint32_t i = 0; i < count; i++)
        tir_text_add(&constraints, i ? STR(",f") : STR("f"));
    V v = tir_llvm_asm(e->ll, LLVMStructTypeInContext(e->ll->context, types, count, false),
                       tir_text_str(&text), tir_text_str(&constraints), 0, args, count);
    at = inst;
    for (uint32_t i = 0; i < count; i++, at = at->next)
        tir_emit_set(e, at->results[0], LLVMBuildExtractValue(e->b, v, i, ""));
    e->exponentials = count - 1;
    return true;
}
