// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operands that are turned on their way through shared memory.

#include "pass/layout/turned.h"

#include "pass/layout/operand.h"
#include "pass/layout/staging.h"

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

const struct tir_layout *tir_turned_layout(struct tir_types *types, const struct tir_value *v,
                                           bool transposed, uint32_t warps)
{
    const struct tir_type *t = v->type;
    if (!tir_type_is_tile(t) || t->rank != 2 || tir_elems[t->elem].bits != 8)
        return NULL;
    const int64_t stored[] = {t->shape[transposed], t->shape[!transposed]};
    const struct tir_layout *l = tir_layout_turned_bytes(types, stored, warps);
    const struct tir_layout *of_v =
        l && transposed ? tir_layout_permute(types, l, (const int64_t[]){1, 0}) : l;
    const struct tir_inst *def = v->def;
    for (l = of_v; l && def && (def->op == TIR_OP_PERMUTE || def->op == TIR_OP_RESHAPE);
         def = def->operands[0]->def)
        l = before_renaming(types, def, l);
    if (!l || !def || def->op != TIR_OP_LOAD)
        return NULL;
    return is_of_pairs(l, tir_contiguous_dim(def, l->rank)) ? of_v : NULL;
}

bool tir_is_turned(struct tir_types *types, struct tir_value *v, bool transposed, uint32_t warps)
{
    if (!tir_type_is_tile(v->type) || tir_elems[v->type->elem].bits != 32)
        return tir_turned_layout(types, v, transposed, warps);
    bool turned;
    const struct tir_value *x = tir_unturned(v, &turned);
    return turned != transposed && x->def && x->def->op == TIR_OP_LOAD;
}
