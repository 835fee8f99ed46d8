// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of rank 3: dot(a, b) of a: [n, m, k] and b: [n, k, p] multiplies n pairs of matrices.
//
// The IR knows products of matrices alone, as the tensor cores do, so there is one for each pair. A
// factor that is loaded, or computed from loads alone, is loaded matrix by matrix (loaded_part.c),
// so that each can be copied as one of rank 2 is. Anything else is there before the product, and
// threads take each matrix out of what they hold.
// The sums are joined by choices along dimension 0:
//
//     where(index == 1, s1, s0)    of f32[1, m, p], repeated to f32[2, m, p]
//
// The layout pass gives each thread the sums of the same elements of all matrices, one after the
// other, so these choices are no code: which one a register has is known.
#include "front/lower/lower.h"

struct batch { // of a joined tile
    uint32_t count;
    struct tir_value *sums[LOWER_MAX_BATCH];
    VEC(struct tir_inst *) joins; // in order
};

static const struct tir_type *matrix_type(struct lower *l, const struct tir_type *t)
{
    struct tir_type m = {.elem = t->elem, .space = t->space, .rank = 2};
    m.shape[0] = t->shape[1];
    m.shape[1] = t->shape[2];
    return tir_type_get(l->cx->types, &m);
}

// What threads hold of it.
static struct tir_value *extracted(struct lower *l, struct tir_value *v,
                                   const struct tile_part *part)
{
    if (v->type->shape[0] > 1)
        v = build_part(l, v, part->start, part->size);
    return build_reshape(l, v, 2, part->size + 1);
}

static struct tir_value *viewed(struct lower *l, struct tir_value *buffer, int64_t at)
{
    const int64_t *shape = buffer->type->shape;
    const struct tir_type *type = matrix_type(l, buffer->type);
    struct tir_value *operands[] = {buffer, tir_const_index(l->f, at), tir_const_index(l->f, 0),
                                    tir_const_index(l->f, 0)};
    struct tir_value *view = build_one(l, TIR_OP_VIEW, type, operands, 4);
    tir_set_list(l->f, view->def, TIR_ATTR_box, (const int64_t[]){0, shape[1], shape[2]}, 3);
    return view;
}

static bool turns_matrices(const struct tir_inst *permute)
{
    const struct tir_attr *order = tir_attr_find(permute, TIR_ATTR_permutation);
    return order->list[0] == 0 && order->list[1] == 2;
}

struct tir_value *batch_matrix(struct lower *l, struct tir_value *v, int64_t at)
{
    const struct tir_inst *inst = v->def;
    if (v->type->rank == 2)
        return v;
    if (v->type->shape[0] == 1) // one for all
        at = 0;
    if (inst && inst->op == TIR_OP_PERMUTE && turns_matrices(inst))
        return build_transpose(l, batch_matrix(l, inst->operands[0], at));
    if (tir_type_is_buffer(v->type))
        return viewed(l, v, at);
    const struct tile_part part = {
        .start = {at}, .size = {1, v->type->shape[1], v->type->shape[2]}, .drop = {true}};
    struct tir_value *m = build_loaded_part(l, v, &part);
    return m ? m : extracted(l, v, &part);
}

static struct tir_value *join_one(struct lower *l, struct batch *batch, enum tir_op op,
                                  const struct tir_type *type, struct tir_value *const *operands,
                                  uint32_t count)
{
    struct tir_value *v = build_one(l, op, type, operands, count);
    vec_push(l->arena, &batch->joins, v->def);
    return v;
}

struct tir_value *batch_join(struct lower *l, struct tir_value *const *sums, uint32_t count)
{
    struct batch *batch = arena_new(l->arena, struct batch);
    *batch = (struct batch){.count = count};
    const struct tir_type *t = sums[0]->type;
    const int64_t ones[] = {count, 1, 1}, one[] = {1, t->shape[0], t->shape[1]},
                  all[] = {count, t->shape[0], t->shape[1]};
    struct tir_types *types = l->cx->types;
    const struct tir_type *type = tir_type_tile(types, t->elem, 3, all);
    struct tir_value *joined = NULL, *index = NULL;
    for (uint32_t i = 0; i < count; i++) {
        batch->sums[i] = sums[i];
        const struct tir_type *single = tir_type_tile(types, t->elem, 3, one);
        struct tir_value *part = join_one(l, batch, TIR_OP_RESHAPE, single, &sums[i], 1);
        if (count > 1)
            part = join_one(l, batch, TIR_OP_BROADCAST, type, &part, 1);
        if (!joined) {
            joined = part;
            continue;
        }
        if (!index) {
            index =
                join_one(l, batch, TIR_OP_IOTA, tir_type_tile(types, TIR_I32, 3, ones), NULL, 0);
            tir_set_int(l->f, index->def, TIR_ATTR_axis, 0);
        }
        struct tir_value *of[] = {index, tir_const_int(l->f, index->type, i)};
        struct tir_value *is =
            join_one(l, batch, TIR_OP_EQ, tir_type_tile(types, TIR_BOOL, 3, ones), of, 2);
        is = join_one(l, batch, TIR_OP_BROADCAST, tir_type_tile(types, TIR_BOOL, 3, all), &is, 1);
        struct tir_value *choice[] = {is, part, joined};
        joined = join_one(l, batch, TIR_OP_WHERE, type, choice, 3);
    }
    tir_map_set(&l->batches, tir_map_key(joined), batch);
    return joined;
}

struct tir_value *batch_accumulate(struct lower *l, struct tir_value *product, struct tir_value *x)
{
    struct batch *batch = tir_map_get(&l->batches, tir_map_key(product));
    if (!batch)
        return NULL;
    while (batch->joins.len)
        tir_remove(vec_pop(&batch->joins));
    for (uint32_t i = 0; i < batch->count; i++) {
        struct tir_inst *dot = batch->sums[i]->def;
        struct tir_value *operands[TIR_DOT_OPERANDS] = {[TIR_DOT_A] = dot->operands[TIR_DOT_A],
                                                        [TIR_DOT_B] = dot->operands[TIR_DOT_B],
                                                        [TIR_DOT_ACC] = batch_matrix(l, x, i)};
        tir_remove(dot);
        batch->sums[i] =
            build_one(l, TIR_OP_DOT, operands[TIR_DOT_ACC]->type, operands, TIR_DOT_OPERANDS);
    }
    return batch_join(l, batch->sums, batch->count);
}
