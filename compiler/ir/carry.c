// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// More operands and results: values that loops carry, branches give and reductions combine.

#include "ir/carry.h"

void tir_operand_add(struct tir_func *f, struct tir_inst *inst, struct tir_value *v)
{
    struct tir_value **operands =
        arena_array(f->module->arena, struct tir_value *, inst->operand_count + 1);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        operands[i] = inst->operands[i];
    operands[inst->operand_count++] = v;
    inst->operands = operands;
}

struct tir_value *tir_result_add(struct tir_func *f, struct tir_inst *inst,
                                 const struct tir_type *type, const char *name)
{
    struct tir_value *result = arena_new(f->module->arena, struct tir_value);
    *result = (struct tir_value){.type = type,
                                 .kind = TIR_VALUE_RESULT,
                                 .id = f->value_count++,
                                 .index = inst->result_count,
                                 .def = inst,
                                 .name = name};
    struct tir_value **results =
        arena_array(f->module->arena, struct tir_value *, inst->result_count + 1);
    for (uint32_t i = 0; i < inst->result_count; i++)
        results[i] = inst->results[i];
    results[inst->result_count++] = result;
    inst->results = results;
    return result;
}

struct tir_value *tir_carry_add(struct tir_func *f, struct tir_inst *loop, struct tir_value *init,
                                const char *name)
{
    struct tir_value *inside = NULL;
    tir_operand_add(f, loop, init);
    tir_result_add(f, loop, init->type, name);
    for (uint32_t r = 0; r < loop->region_count; r++)
        inside = tir_block_add_arg(f, loop->regions[r], init->type, name);
    return inside;
}

void tir_yield_add(struct tir_func *f, struct tir_block *block, struct tir_value *v)
{
    struct tir_inst *yield = tir_yield_of(block);
    if (!yield) {
        struct tir_builder b = tir_builder_at_end(f, block);
        yield = tir_build_yield(&b, NULL, 0);
    }
    tir_operand_add(f, yield, v);
}
