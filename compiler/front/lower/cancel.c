// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where try_cancel may stand, and who may read what it answers: the response is opaque, so that
// is_canceled and first_ctaid alone have a meaning for it.
#include "base/bitset.h"
#include "front/lower/lower.h"
#include "ir/walk.h"

static bool is_query(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_IS_CANCELED || inst->op == TIR_OP_FIRST_CTAID;
}

static void find_responses(struct lower *l, struct bitset *responses)
{
    tir_foreach_inst(inst, l->f)
        if (inst->op == TIR_OP_TRY_CANCEL || is_query(inst))
            bitset_insert(responses, tir_buffer_root(inst->operands[TIR_CANCEL_RESPONSE])->id);
}

static bool check_use(struct lower *l, const struct tir_inst *inst, const struct bitset *responses)
{
    if (inst->op == TIR_OP_VIEW || inst->op == TIR_OP_TRY_CANCEL || is_query(inst))
        return true;
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        struct tir_value *v = inst->operands[i];
        if (!v || !tir_type_is_buffer(v->type) || !bitset_has(responses, tir_buffer_root(v)->id))
            continue;
        lower_error(l, inst->span, TIR_E_ROLE,
                    "the response of `try_cancel` is opaque: only `is_canceled` and `first_ctaid` "
                    "read it, not `%s`",
                    tir_ops[inst->op].name);
        return false;
    }
    return true;
}

// Of a program between passes, the request of a tiles loop.
static bool takes_tiles(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_TILES && tir_attr_find(inst, TIR_ATTR_next))
            return true;
    return false;
}

static bool check_place(struct lower *l, const struct tir_inst *inst)
{
    if (inst->op != TIR_OP_TRY_CANCEL)
        return true;
    const bool has_place = l->f->grid_count || takes_tiles(l->f);
    if (has_place && !l->f->preferred[0])
        return true;
    lower_error(l, inst->span, TIR_E_GRID,
                has_place ? "`try_cancel` in a kernel with `preferred(...)`: PTX does not say "
                            "clusters of which size it takes the place of"
                          : "`try_cancel` takes the place of CTAs of a kernel with `grid(...)`");
    return false;
}

bool cancel_check(struct lower *l)
{
    struct bitset responses = bitset_new(l->arena, l->f->value_count);
    bool ok = true;
    find_responses(l, &responses);
    tir_foreach_inst(inst, l->f)
        ok &= check_place(l, inst) && check_use(l, inst, &responses);
    return ok;
}
