// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums of rank 3 matrix by matrix. The front end makes products of rank 2 of those of rank 3, which
// take the matrices out of what the loop carries, and joins what they give:
//
//     let r: f32[2, 128, 64] = for ... carry (acc: f32[2, 128, 64] = 0) {
//         let d: f32[128, 64] = dot(a, b, reshape(extract(acc, start = [0, 0, 0])));
//         let e: f32[128, 64] = dot(c, b, reshape(extract(acc, start = [1, 0, 0])));
//         yield where(iota == 1, broadcast(reshape(e)), broadcast(reshape(d)));
//     }
//     store(D[0:+2, m:+128, n:+64], cast(r));
// becomes
//     let r: f32[128, 64], s: f32[128, 64] = for ... carry (x = 0, y = 0) {
//         yield dot(a, b, x), dot(c, b, y);
//     }
//     store(D[0, m:+128, n:+64], cast(r));
//     store(D[1, m:+128, n:+64], cast(s));
//
// So sums stay in tensor memory from round to round, and leave it as those of other products do.
// A reduction over the matrices combines them, and what is repeated for all of them is one matrix.
// What else uses the joined tile gets one that is joined behind the loop.

#include "pass/role/matrices.h"

#include "base/bitset.h"
#include "ir/carry.h"
#include "ir/walk.h"

enum {
    MOST = 16,    // matrices of a product of rank 3
    DEEPEST = 64, // operations between the sums and what is stored
};

struct matrices {
    uint32_t count;
    struct tir_value *of[MOST];
};

static bool has_matrices(const struct tir_type *t)
{
    return tir_type_is_tile(t) && t->rank == 3 && t->shape[0] > 1 && t->shape[0] <= MOST;
}

static const struct tir_type *matrix_type(const struct tir_func *f, const struct tir_type *t)
{
    return tir_type_tile(f->module->types, t->elem, 2, t->shape + 1);
}

static const struct tir_inst *made_by(const struct tir_value *v, enum tir_op op)
{
    return v && v->kind == TIR_VALUE_RESULT && v->def->op == op ? v->def : NULL;
}

// The matrix that repeat(reshape(matrix)) repeats, or NULL.
static struct tir_value *repeated(const struct tir_value *v)
{
    const struct tir_inst *repeat = made_by(v, TIR_OP_BROADCAST);
    const struct tir_inst *shaped = repeat ? made_by(repeat->operands[0], TIR_OP_RESHAPE) : NULL;
    return shaped && shaped->operands[0]->type->rank == 2 && tir_result(shaped)->type->rank == 3
               ? shaped->operands[0]
               : NULL;
}

// The number of the matrix for which the condition holds, or -1: it is another condition.
static int64_t chosen(const struct tir_value *condition)
{
    int64_t number = -1;
    const struct tir_inst *repeat = made_by(condition, TIR_OP_BROADCAST);
    const struct tir_inst *is = repeat ? made_by(repeat->operands[0], TIR_OP_EQ) : NULL;
    const struct tir_inst *index = is ? made_by(is->operands[0], TIR_OP_IOTA) : NULL;
    if (!index || tir_attr_int(index, TIR_ATTR_axis, 0) || tir_result(index)->type->rank != 3 ||
        is->operands[1]->kind != TIR_VALUE_CONST)
        return -1;
    number = is->operands[1]->constant.i;
    return number < tir_result(index)->type->shape[0] ? number : -1;
}

// The matrices that a tile is joined of.
static bool find_joined(const struct tir_value *v, struct matrices *out)
{
    *out = (struct matrices){.count = (uint32_t)v->type->shape[0]};
    for (const struct tir_inst *choice; (choice = made_by(v, TIR_OP_WHERE));
         v = choice->operands[2]) {
        const int64_t number = chosen(choice->operands[0]);
        if (number < 0 || !repeated(choice->operands[1]))
            return false;
        if (!out->of[number])
            out->of[number] = repeated(choice->operands[1]);
    }
    for (uint32_t i = 0; i < out->count; i++)
        if (!out->of[i])
            out->of[i] = repeated(v);
    return repeated(v);
}

// The number of the matrix that the instruction takes out of a tile, or -1.
static int64_t taken_out(const struct tir_inst *inst)
{
    if (inst->op != TIR_OP_EXTRACT || tir_result(inst)->type->rank != 3)
        return -1;
    const struct tir_type *from = inst->operands[0]->type, *to = tir_result(inst)->type;
    const bool is_whole =
        to->shape[0] == 1 && to->shape[1] == from->shape[1] && to->shape[2] == from->shape[2];
    return is_whole ? tir_attr_find(inst, TIR_ATTR_start)->list[0] : -1;
}

// Does nothing use the value but what takes its matrices out?
static bool is_only_taken_apart(const struct tir_inst *loop, const struct tir_value *v)
{
    tir_foreach_inst_within(inst, loop)
        for (uint32_t i = 0; i < inst->operand_count; i++)
            if (inst->operands[i] == v && taken_out(inst) < 0)
                return false;
    return true;
}

static struct tir_value *build_joined(struct tir_builder *b, const struct matrices *m,
                                      const struct tir_type *type)
{
    struct tir_types *types = b->f->module->types;
    const int64_t ones[] = {m->count, 1, 1}, one[] = {1, type->shape[1], type->shape[2]};
    const struct tir_type *indices = tir_type_tile(types, TIR_I32, 3, ones);
    struct tir_value *index = tir_build1(b, TIR_OP_IOTA, indices, NULL, 0), *joined = NULL;
    tir_set_int(b->f, index->def, TIR_ATTR_axis, 0);
    for (uint32_t i = 0; i < m->count; i++) {
        struct tir_value *v = m->of[i];
        v = tir_build1(b, TIR_OP_RESHAPE, tir_type_tile(types, type->elem, 3, one), &v, 1);
        v = tir_build1(b, TIR_OP_BROADCAST, type, &v, 1);
        if (!joined) {
            joined = v;
            continue;
        }
        struct tir_value *is = tir_binary(b, TIR_OP_EQ, index, tir_const_int(b->f, indices, i));
        is =
            tir_build1(b, TIR_OP_BROADCAST, tir_type_tile(types, TIR_BOOL, 3, type->shape), &is, 1);
        joined = tir_build1(b, TIR_OP_WHERE, type, (struct tir_value *[]){is, v, joined}, 3);
    }
    return joined;
}

// The dimension of the tensor along which the matrices of a load or store lie; -1: they do not lie
// along one.
static int32_t dimension_of_matrices(const struct tir_inst *access, const struct tir_type *tile)
{
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    uint32_t d = 0;
    while (d < box->list_count && !box->list[d])
        d++;
    return d < box->list_count && box->list[d] == tile->shape[0] && tir_slice_stride(access, d) == 1
               ? (int32_t)d
               : -1;
}

// The load or store again, of one matrix.
static struct tir_inst *build_access(struct tir_builder *b, const struct tir_inst *access,
                                     uint32_t d, uint32_t number)
{
    struct tir_map map;
    int64_t box[TIR_MAX_RANK];
    const uint32_t rank = tir_ref_base(access)->type->rank;
    struct tir_value *at = tir_ref_indices(access)[d];
    if (number)
        at = tir_binary(b, TIR_OP_ADD, at, tir_const_int(b->f, at->type, number));
    tir_map_init(&map, b->f->module->arena);
    struct tir_inst *one = tir_clone_inst(b, access, &map);
    tir_ref_indices(one)[d] = at;
    memcpy(box, tir_attr_find(access, TIR_ATTR_box)->list, rank * sizeof *box);
    box[d] = 0;
    tir_set_list(b->f, one, TIR_ATTR_box, box, rank);
    return one;
}

// Does nothing write memory behind the load, up to that instruction?
static bool is_still(const struct tir_inst *load, const struct tir_inst *until)
{
    for (const struct tir_inst *at = load; at != until;) {
        at = at->next;
        if (!at)
            return false;
        tir_foreach_inst_within(inst, at)
            if (tir_has_trait(inst, TIR_WRITES) || tir_has_trait(inst, TIR_SYNC) ||
                tir_has_trait(inst, TIR_ASYNC))
                return false;
    }
    return true;
}

// A load that may stand behind that instruction.
static bool loads_matrices(const struct tir_func *f, const struct tir_value *v,
                           const struct tir_inst *until)
{
    const struct tir_inst *load = made_by(v, TIR_OP_LOAD);
    return load && tir_ref_base(load)->type->space == TIR_SPACE_GLOBAL &&
           (tir_is_only_read(f, tir_ref_base(load)) || is_still(load, until)) &&
           !tir_takes_tiles(load, TIR_LOAD_MASK) && dimension_of_matrices(load, v->type) >= 0;
}

// Matrices of tiles: of what these are joined of, or of what they are computed from.
struct building {
    struct tir_builder *b;
    const struct tir_inst *behind; // what they are built behind
    struct tir_map made[MOST];     // by the tile, of each number
};

static struct building begin(struct tir_builder *b, const struct tir_inst *behind)
{
    struct building s = {.b = b, .behind = behind};
    for (uint32_t i = 0; i < MOST; i++)
        tir_map_init(&s.made[i], b->f->module->arena);
    return s;
}

static struct tir_value *extracted(struct building *s, struct tir_value *v, uint32_t number)
{
    const struct tir_type *t = v->type;
    const int64_t start[] = {number, 0, 0}, one[] = {1, t->shape[1], t->shape[2]};
    const struct tir_type *type = tir_type_tile(s->b->f->module->types, t->elem, 3, one);
    v = tir_build1(s->b, TIR_OP_EXTRACT, type, &v, 1);
    tir_set_list(s->b->f, v->def, TIR_ATTR_start, start, 3);
    return v;
}

// What combines matrices of f32 or of integers as the reduction of them does, or COUNT.
static enum tir_op combines_matrices(const struct tir_inst *inst)
{
    if (inst->op != TIR_OP_REDUCE || inst->result_count != 1 || inst->region_count ||
        tir_attr_int(inst, TIR_ATTR_axis, 0))
        return TIR_OP_COUNT;
    const enum tir_elem elem = inst->results[0]->type->elem;
    const bool is_exact = elem == TIR_F32 || !tir_elem_is_float(elem);
    return is_exact && has_matrices(inst->operands[TIR_REDUCE_X]->type)
               ? tir_op_of_kind(tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE))
               : TIR_OP_COUNT;
}

static struct tir_value *matrix(struct building *s, struct tir_value *v, uint32_t number,
                                uint32_t depth);

static struct tir_value *combined(struct building *s, const struct tir_inst *reduce, uint32_t depth)
{
    struct tir_value *x = reduce->operands[TIR_REDUCE_X];
    struct tir_value *all = matrix(s, x, 0, depth + 1);
    for (uint32_t i = 1; i < x->type->shape[0]; i++)
        all = tir_binary(s->b, combines_matrices(reduce), all, matrix(s, x, i, depth + 1));
    return all;
}

static struct tir_value *matrix(struct building *s, struct tir_value *v, uint32_t number,
                                uint32_t depth)
{
    const struct tir_type *t = v->type;
    struct tir_value *operands[3], *made;
    struct matrices m;
    if (!tir_type_is_tile(t))
        return v;
    number = t->shape[0] > 1 ? number : 0; // what is repeated has one
    made = tir_map_get(&s->made[number], tir_map_key(v));
    if (made)
        return made;
    const struct tir_type *type = matrix_type(s->b->f, t);
    const struct tir_inst *by = v->kind == TIR_VALUE_RESULT ? v->def : NULL;
    if (v->kind == TIR_VALUE_CONST)
        return tir_const_as(s->b->f, type, v);
    if (has_matrices(t) && find_joined(v, &m))
        return m.of[number];
    const bool repeats = made_by(v, TIR_OP_BROADCAST);
    if (depth < DEEPEST && by && (repeats || tir_is_elementwise(by))) {
        for (uint32_t i = 0; i < by->operand_count; i++)
            operands[i] = matrix(s, by->operands[i], number, depth + 1);
        made = tir_build1(s->b, by->op, type, operands, by->operand_count);
    } else if (depth < DEEPEST && by && combines_matrices(by) != TIR_OP_COUNT) {
        made = combined(s, by, depth);
    } else if (loads_matrices(s->b->f, v, s->behind)) {
        const uint32_t d = (uint32_t)dimension_of_matrices(by, t);
        made = tir_result(build_access(s->b, by, d, number));
        made->type = type;
    } else {
        struct tir_value *part = t->shape[0] > 1 ? extracted(s, v, number) : v;
        made = tir_build1(s->b, TIR_OP_RESHAPE, type, &part, 1);
    }
    tir_map_set(&s->made[number], tir_map_key(v), made);
    return made;
}

// The loop carries them in place of value number `at`, which nothing is left of.
static void carry(struct tir_func *f, struct tir_inst *loop, uint32_t at, const struct matrices *m)
{
    struct tir_block *body = loop->regions[0];
    struct tir_value *tile = body->args[1 + at], *init = loop->operands[TIR_FOR_INIT + at];
    const struct tir_inst *behind = loop->prev;
    struct tir_builder before = tir_builder_before(f, loop);
    struct building s = begin(&before, behind);
    struct tir_value *inside[MOST];
    struct matrices after = {.count = m->count};
    for (uint32_t i = 0; i < m->count; i++) {
        inside[i] = tir_carry_add(f, loop, matrix(&s, init, i, 0), tile->name);
        after.of[i] = loop->results[loop->result_count - 1];
        tir_yield_add(f, body, m->of[i]);
    }
    tir_foreach_inst_in(inst, body) {
        if (taken_out(inst) < 0 || inst->operands[0] != tile)
            continue;
        struct tir_builder b = tir_builder_before(f, inst);
        struct tir_value *part = inside[taken_out(inst)];
        tir_replace_uses(f, tir_result(inst),
                         tir_build1(&b, TIR_OP_RESHAPE, tir_result(inst)->type, &part, 1));
    }
    tir_yield_of(body)->operands[at] = tile;
    struct tir_builder after_loop = {f, loop->block, loop->next, loop->span};
    tir_replace_uses(f, loop->results[at],
                     build_joined(&after_loop, &after, loop->results[at]->type));
}

static bool carry_matrices(struct tir_func *f, struct tir_inst *loop)
{
    bool any = false;
    const uint32_t count = loop->result_count;
    for (uint32_t i = 0; i < count; i++) {
        const struct tir_value *tile = loop->regions[0]->args[1 + i];
        struct tir_value *next = tir_yield_of(loop->regions[0])->operands[i];
        struct matrices m;
        if (!has_matrices(tile->type) || !find_joined(next, &m) || !is_only_taken_apart(loop, tile))
            continue;
        carry(f, loop, i, &m);
        any = true;
    }
    return any;
}

// Is the tile computed, element by element, from one that is joined? `seen` are tiles that are not.
static bool is_of_joined(struct bitset *seen, const struct tir_value *v, uint32_t depth)
{
    struct matrices m;
    if (v->kind != TIR_VALUE_RESULT || !has_matrices(v->type) || bitset_has(seen, v->id))
        return false;
    if (find_joined(v, &m))
        return true;
    for (uint32_t i = 0; depth < DEEPEST && tir_is_elementwise(v->def) && i < v->def->operand_count;
         i++)
        if (is_of_joined(seen, v->def->operands[i], depth + 1))
            return true;
    bitset_insert(seen, v->id);
    return false;
}

static void store_matrices(struct tir_func *f, struct tir_inst *store)
{
    struct tir_value *v = store->operands[TIR_STORE_VALUE];
    const uint32_t d = (uint32_t)dimension_of_matrices(store, v->type);
    const struct tir_inst *behind = store->prev; // and behind stores of other matrices
    struct tir_builder b = tir_builder_before(f, store);
    struct building s = begin(&b, behind);
    for (uint32_t i = 0; i < v->type->shape[0]; i++) {
        struct tir_value *stored = matrix(&s, v, i, 0);
        struct tir_inst *one = build_access(&b, store, d, i);
        one->operands[TIR_STORE_VALUE] = stored;
        if (one->result_count)
            tir_result(one)->type = stored->type;
    }
    tir_remove(store);
}

// A store, or an atomic that says nothing of other accesses and whose old values nobody uses.
static bool only_stores(const struct tir_func *f, const struct tir_pass_cx *cx,
                        const struct tir_inst *inst)
{
    if (inst->op != TIR_OP_ATOMIC)
        return inst->op == TIR_OP_STORE;
    return !inst->operands[TIR_ATOMIC_EXPECTED] && !tir_attr_find(inst, TIR_ATTR_ordering) &&
           !tir_count_uses(cx->scratch, f)[tir_result(inst)->id];
}

static bool is_stored_apart(const struct tir_func *f, const struct tir_pass_cx *cx,
                            const struct tir_inst *inst)
{
    struct bitset seen = bitset_new(cx->scratch, f->value_count);
    return only_stores(f, cx, inst) && !tir_takes_tiles(inst, TIR_STORE_MASK) &&
           is_of_joined(&seen, inst->operands[TIR_STORE_VALUE], 0) &&
           dimension_of_matrices(inst, inst->operands[TIR_STORE_VALUE]->type) >= 0;
}

bool tir_take_matrices_apart(struct tir_func *f, const struct tir_pass_cx *cx)
{
    bool any = false;
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_FOR)
            any |= carry_matrices(f, inst);
    for (struct tir_inst *inst = tir_walk_next(f->body, NULL), *next; any && inst; inst = next) {
        next = tir_walk_next(f->body, inst);
        if (is_stored_apart(f, cx, inst))
            store_matrices(f, inst);
    }
    return any;
}
