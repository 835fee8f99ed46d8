// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operands that are turned on their way through shared memory.

#include "pass/layout/turned.h"

#include "ir/crew.h"
#include "ir/walk.h"
#include "pass/layout/operand.h"
#include "pass/layout/staging.h"
#include "pass/layout/warpgroup.h"

// The layout of what v, in layout l, has the elements of, renamed. NULL: a digit would be cut.
static const struct tir_layout *before_renaming(struct tir_types *types, const struct tir_inst *def,
                                                const struct tir_layout *l)
{
    const struct tir_type *of = def->operands[0]->type;
    int64_t order[TIR_MAX_RANK];
    if (def->op == TIR_OP_RESHAPE)
        return tir_layout_reshape(types, l, of->rank, of->shape);
    for (uint32_t d = 0; d < of->rank; d++)
        order[tir_attr_find(def, TIR_ATTR_permutation)->list[d]] = d;
    return tir_layout_permute(types, l, order);
}

// Does ldmatrix.trans load so: pairs along the rows of memory, eight lanes beside each other?
static bool is_of_pairs(const struct tir_layout *l, uint32_t contiguous)
{
    if (contiguous == l->rank || l->first[contiguous + 1] < l->first[contiguous] + 2)
        return false;
    const struct tir_iter *pair = &l->iters[l->first[contiguous + 1] - 1], *lanes = pair - 1;
    return pair->axis == TIR_AXIS_REG && pair->extent == 2 && pair->stride == 1 &&
           lanes->axis == TIR_AXIS_LANE && lanes->extent == 8 && lanes->stride == 4;
}

struct tir_turned tir_turned_of(struct tir_types *types, const struct tir_value *v, bool transposed,
                                uint32_t warps)
{
    const struct tir_turned none = {0};
    const struct tir_type *t = v->type;
    if (!tir_type_is_tile(t) || t->rank != 2 || tir_elems[t->elem].bits != 8)
        return none;
    const int64_t stored[] = {t->shape[transposed], t->shape[!transposed]};
    const struct tir_layout *l = tir_layout_turned_bytes(types, stored, warps);
    const struct tir_layout *of_v =
        l && transposed ? tir_layout_permute(types, l, (const int64_t[]){1, 0}) : l;
    const struct tir_inst *def = v->def;
    for (l = of_v; l && def && (def->op == TIR_OP_PERMUTE || def->op == TIR_OP_RESHAPE);
         def = def->operands[0]->def)
        l = before_renaming(types, def, l);
    if (!l || !def || def->op != TIR_OP_LOAD || !is_of_pairs(l, tir_contiguous_dim(def, l->rank)))
        return none;
    return (struct tir_turned){of_v, def, l};
}

bool tir_is_turned(struct tir_types *types, struct tir_value *v, bool transposed, uint32_t warps)
{
    if (!tir_type_is_tile(v->type) || tir_elems[v->type->elem].bits != 32)
        return tir_turned_of(types, v, transposed, warps).layout;
    bool turned;
    const struct tir_value *x = tir_unturned(v, &turned);
    return turned != transposed && x->def && x->def->op == TIR_OP_LOAD;
}

// Is nothing else made of what v is renamed of?
static bool is_renamed_alone(const struct tir_func *f, const struct tir_value *v)
{
    for (const struct tir_inst *def = v->def; def->op != TIR_OP_LOAD; def = def->operands[0]->def) {
        uint32_t uses = 0;
        tir_foreach_inst(inst, f)
            for (uint32_t i = 0; i < inst->operand_count; i++)
                uses += inst->operands[i] == def->operands[0];
        if (uses != 1)
            return false;
    }
    return true;
}

static bool has_factor_in_registers(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_DOT && tir_a_in_registers(inst))
            return true;
    return false;
}

enum tir_role_work tir_turning_work(const struct tir_func *f, struct tir_value *v, bool transposed,
                                    uint32_t warps)
{
    struct tir_types *types = f->module->types;
    const int64_t registers = tir_type_bytes(v->type) / 4 / (32 * TIR_WARPGROUP);
    if (registers <= TIR_BUDGET_TURN_REGISTERS && has_factor_in_registers(f) &&
        tir_turned_of(types, v, transposed, TIR_WARPGROUP).load && is_renamed_alone(f, v))
        return TIR_ROLE_TURNS;
    return tir_is_turned(types, v, transposed, warps) ? TIR_ROLE_TURN_MANY : TIR_ROLE_COMPUTES;
}

void tir_turn_with(struct tir_types *types, struct tir_value *v, uint32_t warps)
{
    const struct tir_layout *l = tir_turned_of(types, v, false, warps).layout;
    for (;; v = v->def->operands[0]) {
        v->type = tir_type_with_layout(types, v->type, l);
        if (v->def->op == TIR_OP_LOAD)
            return;
        l = before_renaming(types, v->def, l);
    }
}
