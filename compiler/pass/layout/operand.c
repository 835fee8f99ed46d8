// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From an operand of a product to the tile that is brought for it. Rows stay rows: those of a box
// of more dimensions lie in memory one after the other, as a swizzle and descriptors want them.

#include "pass/layout/operand.h"

#include "pass/async/cp_async.h"

struct tir_value *tir_unturned(struct tir_value *v, bool *turned)
{
    *turned = false;
    while (v->def && v->def->op == TIR_OP_PERMUTE) {
        *turned ^= tir_attr_find(v->def, TIR_ATTR_permutation)->list[0] == 1;
        v = v->def->operands[0];
    }
    return v;
}

struct tir_value *tir_brought(struct tir_value *x)
{
    struct tir_copied copied;
    if (!x->def || x->def->op != TIR_OP_RESHAPE)
        return x;
    struct tir_value *of = x->def->operands[0];
    const struct tir_type *t = of->type, *rows = x->type;
    const bool fits = t->rank && t->rank < TIR_MAX_RANK && // slots have one more
                      t->shape[t->rank - 1] == rows->shape[rows->rank - 1];
    return fits && tir_copied_of(of, &copied) ? of : x;
}

struct tir_inst *tir_reordered_load(const struct tir_value *v)
{
    while (v->def && (v->def->op == TIR_OP_PERMUTE || v->def->op == TIR_OP_RESHAPE))
        v = v->def->operands[0];
    return v->def && v->def->op == TIR_OP_LOAD ? v->def : NULL;
}

struct tir_value *tir_reshaped_buffer(struct tir_builder *b, struct tir_value *buffer,
                                      const struct tir_type *tile)
{
    struct tir_types *types = b->f->module->types;
    struct tir_type t = *buffer->type;
    t.rank = tile->rank;
    memcpy(t.shape, tile->shape, sizeof t.shape);
    if (t.layout)
        t.layout = tir_layout_reshape(types, t.layout, t.rank, t.shape);
    return tir_build1(b, TIR_OP_RESHAPE, tir_type_get(types, &t), &buffer, 1);
}
