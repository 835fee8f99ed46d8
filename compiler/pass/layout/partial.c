// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions with a function, of the first elements along their axis alone.
//
//     let r: f32[1] = reduce(x, axis = 0, kind = user) with (a: f32, b: f32) {
//         let c: f32 = f(a, b);
//         yield c;
//     }
// becomes
//     let r: f32[1], _: bool[1] = reduce(x, inside, axis = 0, kind = user)
//             with (a: f32, has: bool, b: f32, more: bool) {
//         let c: f32 = f(a, b);
//         let d: f32 = where(more, c, a);
//         yield d, has;
//     }
//
// A reduction keeps the order of its axis and begins inside, so what comes first has an element
// inside whenever what comes after it has one.

#include "pass/layout/partial.h"

#include "ir/carry.h"

bool tir_may_be_partial(const struct tir_inst *reduce)
{
    return reduce->region_count && tir_combined_count(reduce) < TIR_MAX_COMBINED;
}

// Moves the last argument of the block to position `at`.
static void move_last_arg(struct tir_block *block, uint32_t at)
{
    struct tir_value *last = block->args[block->arg_count - 1];
    for (uint32_t i = block->arg_count - 1; i > at; i--) {
        block->args[i] = block->args[i - 1];
        block->args[i]->index = i;
    }
    block->args[at] = last;
    last->index = at;
}

void tir_make_partial(struct tir_func *f, struct tir_inst *reduce, struct tir_value *inside)
{
    struct tir_block *block = reduce->regions[0];
    struct tir_inst *yield = tir_yield_of(block);
    const struct tir_type *boolean = tir_type_scalar(f->module->types, TIR_BOOL);
    const uint32_t count = tir_combined_count(reduce);
    struct tir_value *has = tir_block_add_arg(f, block, boolean, NULL);
    move_last_arg(block, count);
    struct tir_value *more = tir_block_add_arg(f, block, boolean, NULL);
    struct tir_builder b = tir_builder_before(f, yield);
    for (uint32_t i = 0; i < count; i++) {
        struct tir_value *operands[] = {more, yield->operands[i], block->args[i]};
        yield->operands[i] = tir_build1(&b, TIR_OP_WHERE, operands[1]->type, operands, 3);
    }
    tir_yield_add(f, block, has);
    tir_operand_add(f, reduce, inside);
    tir_result_add(f, reduce,
                   tir_type_with_elem(f->module->types, reduce->results[0]->type, TIR_BOOL), NULL);
}
