// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of rank 3: dot(a, b) of a: [n, m, k] and b: [n, k, p] multiplies n pairs of matrices.
//
// The IR knows products of matrices alone, as the tensor cores do, so there is one for each pair. A
// factor that is loaded is loaded matrix by matrix, so that each can be copied as one of rank 2 is;
// what is computed from loads alone is computed so, too. Anything else is there before the product,
// and threads take each matrix out of what they hold.
// The sums are joined by choices along dimension 0:
//
//     where(index == 1, s1, s0)    of f32[1, m, p], repeated to f32[2, m, p]
//
// The layout pass gives each thread the sums of the same elements of all matrices, one after the
// other, so these choices are no code: which one a register has is known.
#include "front/lower/lower.h"

enum { MAX_DEPTH = 16 }; // operations between a load and the product

struct batch { // of a joined tile
    uint32_t count;
    struct tir_value *sums[LOWER_MAX_BATCH];
    VEC(struct tir_inst *) joins; // in order
};

struct factor { // one matrix of an operand
    struct lower *l;
    int64_t at;
    struct tir_map done;   // of rank 3 -> of rank 2
    struct tir_map leaves; // of rank 3 -> itself if it is computed from loads, else the factor
};

static struct tir_value *matrix_of(struct factor *f, struct tir_value *v, uint32_t depth);

static const struct tir_type *matrix_type(struct lower *l, const struct tir_type *t)
{
    struct tir_type m = {.elem = t->elem, .space = t->space, .rank = 2};
    m.shape[0] = t->shape[1];
    m.shape[1] = t->shape[2];
    return tir_type_get(l->cx->types, &m);
}

// What threads hold of it.
static struct tir_value *extracted(struct factor *f, struct tir_value *v)
{
    const int64_t start[] = {f->at, 0, 0}, size[] = {1, v->type->shape[1], v->type->shape[2]};
    struct tir_value *part = v->type->shape[0] == 1 ? v : build_part(f->l, v, start, size);
    return build_reshape(f->l, part, 2, size + 1);
}

static struct tir_value *viewed(struct factor *f, struct tir_value *buffer)
{
    struct tir_func *func = f->l->f;
    const int64_t *shape = buffer->type->shape;
    const struct tir_type *type = matrix_type(f->l, buffer->type);
    struct tir_value *operands[] = {buffer, tir_const_index(func, f->at), tir_const_index(func, 0),
                                    tir_const_index(func, 0)};
    struct tir_value *view = build_one(f->l, TIR_OP_VIEW, type, operands, 4);
    tir_set_list(func, view->def, TIR_ATTR_box, (const int64_t[]){0, shape[1], shape[2]}, 3);
    return view;
}

// The dimension of the slice that the matrices follow each other along; UINT32_MAX: an index tile
// names them.
static uint32_t batch_dimension(const struct tir_inst *load)
{
    const struct tir_attr *box = tir_attr_find(load, TIR_ATTR_box);
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d])
            return box->list[d] > 0 ? d : UINT32_MAX;
    return UINT32_MAX;
}

// A load of one matrix where all are loaded: nothing has been stored to it since.
static struct tir_value *loaded(struct factor *f, struct tir_inst *load)
{
    struct lower *l = f->l;
    const uint32_t d = batch_dimension(load), first = tir_fixed_count(load);
    if (d == UINT32_MAX)
        return extracted(f, tir_result(load));
    const struct tir_builder outer = l->b;
    l->b = tir_builder_before(l->f, load);
    const struct tir_attr *old = tir_attr_find(load, TIR_ATTR_box);
    int64_t box[TIR_MAX_RANK] = {0};
    memcpy(box, old->list, old->list_count * sizeof(*box));
    box[d] = 0;
    struct tir_value **operands = arena_array(l->arena, struct tir_value *, load->operand_count);
    memcpy(operands, load->operands, load->operand_count * sizeof(struct tir_value *));
    struct tir_value **index = &operands[first + 1 + d], **mask = &operands[TIR_LOAD_MASK];
    *index = tir_binary(&l->b, TIR_OP_ADD, *index, tir_const_int(l->f, (*index)->type, f->at));
    if (*mask && (*mask)->type->rank)
        *mask = extracted(f, *mask);
    struct tir_value *v = build_one(l, TIR_OP_LOAD, matrix_type(l, tir_result(load)->type),
                                    operands, load->operand_count);
    tir_set_list(l->f, v->def, TIR_ATTR_box, box, old->list_count);
    const enum tir_word cache = tir_attr_word(load, TIR_ATTR_cache, TIR_WORD_NONE);
    if (cache != TIR_WORD_NONE)
        tir_set_word(l->f, v->def, TIR_ATTR_cache, cache);
    l->b = outer;
    return v;
}

static bool turns_matrices(const struct tir_inst *permute)
{
    const struct tir_attr *order = tir_attr_find(permute, TIR_ATTR_permutation);
    return order->list[0] == 0 && order->list[1] == 2;
}

// The same operation on the matrices of its operands.
static struct tir_value *computed(struct factor *f, const struct tir_inst *inst, uint32_t depth)
{
    struct tir_value *operands[TIR_MAX_RANK];
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        struct tir_value *v = inst->operands[i];
        operands[i] = v->type->rank == 3 ? matrix_of(f, v, depth + 1) : v;
    }
    return build_one(f->l, inst->op, matrix_type(f->l, inst->results[0]->type), operands,
                     inst->operand_count);
}

static bool is_repeat(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_BROADCAST && inst->operands[0]->type->rank == 3;
}

static bool is_computed(const struct tir_inst *inst)
{
    return is_repeat(inst) || (tir_is_elementwise(inst) && inst->operand_count <= TIR_MAX_RANK);
}

// Computed from loads alone?
static bool is_loaded(struct factor *f, struct tir_value *v, uint32_t depth)
{
    if (v->type->rank < 3 || v->kind == TIR_VALUE_CONST)
        return true;
    const void *known = tir_map_get(&f->leaves, tir_map_key(v));
    if (known)
        return known == v;
    const struct tir_inst *inst = v->def;
    bool is = inst && depth < MAX_DEPTH &&
              (inst->op == TIR_OP_LOAD || is_computed(inst) || inst->op == TIR_OP_PERMUTE);
    for (uint32_t i = 0; is && inst->op != TIR_OP_LOAD && i < inst->operand_count; i++)
        is = is_loaded(f, inst->operands[i], depth + 1);
    tir_map_set(&f->leaves, tir_map_key(v), is ? (void *)v : (void *)f);
    return is;
}

static struct tir_value *matrix_from(struct factor *f, struct tir_value *v, uint32_t depth)
{
    struct tir_inst *inst = v->def;
    const bool is_buffer = tir_type_is_buffer(v->type);
    if (inst && inst->op == TIR_OP_PERMUTE && turns_matrices(inst))
        return build_transpose(f->l, matrix_of(f, inst->operands[0], depth + 1));
    if (is_buffer)
        return viewed(f, v);
    if (!inst || v->type->layout || !is_loaded(f, v, depth))
        return extracted(f, v);
    if (is_computed(inst))
        return computed(f, inst, depth);
    return inst->op == TIR_OP_LOAD ? loaded(f, inst) : extracted(f, v);
}

static struct tir_value *matrix_of(struct factor *f, struct tir_value *v, uint32_t depth)
{
    struct tir_value *m = tir_map_get(&f->done, tir_map_key(v));
    if (m)
        return m;
    const int64_t at = f->at;
    if (v->type->shape[0] == 1) // one for all
        f->at = 0;
    m = matrix_from(f, v, depth);
    f->at = at;
    tir_map_set(&f->done, tir_map_key(v), m);
    return m;
}

struct tir_value *batch_matrix(struct lower *l, struct tir_value *v, int64_t at)
{
    if (v->type->rank == 2)
        return v;
    struct factor f = {.l = l, .at = at};
    tir_map_init(&f.done, l->arena);
    tir_map_init(&f.leaves, l->arena);
    return matrix_of(&f, v, 0);
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
