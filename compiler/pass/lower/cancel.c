// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, clusterlaunchcontrol: the view of a response becomes its buffer and a byte, and so
// does that of an mbarrier.
//
//     let r: shared u32[4] = view(responses[s, 0:+4]);   try_cancel(r, view(full[s]));
// becomes
//     try_cancel(responses, full, to_at = mul(s, 16), bar_at = mul(s, 8));
//
// The instruction writes 16 bytes at a multiple of 16, so the words of a response lie together.

#include "ir/walk.h"
#include "pass/lower/lower.h"

enum { RESPONSE = 16, WORD = 4 }; // bytes

static bool lies_together(const struct lower_part *part)
{
    int64_t coord[TIR_MAX_RANK] = {0}, first = tir_lower_part_byte(part, coord);
    for (int64_t i = 0; i < RESPONSE / WORD; i++) {
        coord[0] = i;
        if (tir_lower_part_byte(part, coord) != first + i * WORD)
            return false;
    }
    return first % RESPONSE == 0 && tir_lower_part_adds(part) &&
           tir_lower_part_divisor(part) % RESPONSE == 0;
}

// The byte in its alloc where a part begins, and `more`.
static struct tir_value *byte_of(struct lower *lo, const struct lower_part *part,
                                 struct tir_value *more)
{
    static const int64_t origin[TIR_MAX_RANK];
    struct tir_value *at = tir_lower_add(lo, &lo->b, tir_lower_part_start(lo, part), more);
    at = tir_lower_add(lo, &lo->b, at, tir_lower_i32(lo, tir_lower_part_byte(part, origin)));
    return at ? at : tir_lower_i32(lo, 0);
}

void tir_lower_cancel(struct lower *lo, struct tir_inst *inst)
{
    struct lower_part to = tir_lower_part_of(lo, inst->operands[TIR_CANCEL_RESPONSE]);
    if (inst->operands[TIR_CANCEL_RESPONSE]->type->rank == 1 && !lies_together(&to)) {
        tir_error_at(lo->cx->diags, inst->span, TIR_E_UNSUPPORTED,
                     "the 16 bytes of this response do not lie together at a multiple of 16");
        lo->failed = true;
        return;
    }
    struct tir_value *operands[] = {to.base, byte_of(lo, &to, inst->operands[TIR_CANCEL_AT]), NULL,
                                    NULL};
    if (inst->op == TIR_OP_TRY_CANCEL) {
        struct lower_part bar = tir_lower_part_of(lo, inst->operands[TIR_CANCEL_BAR]);
        operands[TIR_CANCEL_BAR] = bar.base;
        operands[TIR_CANCEL_BAR_AT] = byte_of(lo, &bar, inst->operands[TIR_CANCEL_BAR_AT]);
    }
    const struct tir_type *types[] = {inst->result_count ? inst->results[0]->type : NULL};
    struct tir_inst *one =
        tir_build(&lo->b, inst->op, operands, tir_fixed_count(inst), types, inst->result_count, 0);
    if (inst->result_count)
        tir_replace_uses(lo->f, inst->results[0], one->results[0]);
    for (uint32_t i = 0; i < inst->attr_count; i++)
        tir_set_int(lo->f, one, inst->attrs[i].key, inst->attrs[i].number);
}
