// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A part of a tile that is computed from loads alone, loaded and computed by itself: what is copied
// is the part then, and threads take nothing out of what they hold.
//
//     let x = reshape(X[m:+256, :], 4, 64, 64);     // part 2 of dimension 0, which is dropped:
//     let y = X[m + 128:+64, :];
//
// Element by element, through repeated and reordered dimensions, and through other shapes where the
// part's elements follow each other. Index tiles are parts of index tiles.
#include "front/lower/lower.h"
#include "ir/follow.h"

enum { MAX_DEPTH = 16 }; // operations between a load and the part

struct made {
    struct tile_part part;
    struct tir_value *value;
};

struct maker {
    struct lower *l;
    bool builds;         // else it only looks whether there is such a part
    struct tir_map done; // value -> struct made of the part asked for last
};

static struct tir_value *make(struct maker *m, struct tir_value *v, const struct tile_part *p,
                              uint32_t depth);

static bool is_whole(const struct tir_type *t, const struct tile_part *p)
{
    for (uint32_t d = 0; d < t->rank; d++)
        if (p->drop[d] || p->size[d] != t->shape[d])
            return false;
    return true;
}

static const struct tir_type *part_type(struct lower *l, const struct tir_type *t,
                                        const struct tile_part *p)
{
    int64_t shape[TIR_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < t->rank; d++)
        if (!p->drop[d])
            shape[rank++] = p->size[d];
    return tir_type_tile(l->cx->types, t->elem, rank, shape);
}

// The same part of a tile that has size 1 where the other one may be larger.
static struct tile_part repeated_part(const struct tir_type *t, const struct tile_part *p)
{
    struct tile_part part = *p;
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->shape[d] == 1) {
            part.start[d] = 0;
            part.size[d] = 1;
        }
    return part;
}

// What threads hold of it.
static struct tir_value *extracted(struct lower *l, struct tir_value *v, const struct tile_part *p)
{
    const struct tir_type *t = part_type(l, v->type, p);
    struct tir_value *part = v->kind == TIR_VALUE_CONST || !is_whole(v->type, p)
                                 ? build_part(l, v, p->start, p->size)
                                 : v;
    return build_reshape(l, part, t->rank, t->shape);
}

static struct tir_value *shifted(struct lower *l, struct tir_value *index, int64_t by)
{
    return by ? tir_binary(&l->b, TIR_OP_ADD, index, tir_const_int(l->f, index->type, by)) : index;
}

// The part of what a load loads. At the load's place nothing has been stored to it since.
static struct tir_value *make_load(struct maker *m, struct tir_inst *load,
                                   const struct tile_part *p, uint32_t depth)
{
    struct lower *l = m->l;
    const struct tir_attr *old = tir_attr_find(load, TIR_ATTR_box);
    const uint32_t first = tir_fixed_count(load) + 1;
    struct tir_value **operands = arena_array(l->arena, struct tir_value *, load->operand_count);
    memcpy(operands, load->operands, load->operand_count * sizeof(struct tir_value *));
    int64_t box[TIR_MAX_RANK] = {0};
    struct tile_part tiles = {0}; // of index tiles
    uint32_t dim = 0;
    bool placed = false;
    for (uint32_t d = 0; d < old->list_count; d++) {
        struct tir_value **index = &operands[first + d];
        box[d] = old->list[d];
        if (box[d] > 0) {
            box[d] = p->drop[dim] ? 0 : p->size[dim];
            *index = m->builds ? shifted(l, *index, p->start[dim]) : *index;
            dim++;
        } else if (box[d] < 0) {
            for (uint32_t i = 0; !placed && i < (*index)->type->rank; i++, dim++) {
                tiles.start[i] = p->start[dim];
                tiles.size[i] = p->size[dim];
                tiles.drop[i] = p->drop[dim];
            }
            placed = true;
            const struct tile_part part = repeated_part((*index)->type, &tiles);
            struct tir_value *tile = make(m, *index, &part, depth + 1);
            if (!tile && !part_type(l, (*index)->type, &part)->rank)
                return NULL;
            if (m->builds)
                *index = tile ? tile : extracted(l, *index, &part);
            if (!part_type(l, (load->operands[first + d])->type, &part)->rank)
                box[d] = 0;
        }
    }
    struct tir_value **mask = &operands[TIR_LOAD_MASK];
    if (!m->builds)
        return tir_result(load);
    if (*mask && (*mask)->type->rank) {
        struct tir_value *part = make(m, *mask, p, depth + 1);
        *mask = part ? part : extracted(l, *mask, p);
    }
    struct tir_value *v = build_one(l, TIR_OP_LOAD, part_type(l, tir_result(load)->type, p),
                                    operands, load->operand_count);
    tir_set_list(l->f, v->def, TIR_ATTR_box, box, old->list_count);
    const enum tir_word cache = tir_attr_word(load, TIR_ATTR_cache, TIR_WORD_NONE);
    if (cache != TIR_WORD_NONE)
        tir_set_word(l->f, v->def, TIR_ATTR_cache, cache);
    return v;
}

static struct tir_value *make_iota(struct maker *m, const struct tir_inst *iota,
                                   const struct tile_part *p)
{
    struct lower *l = m->l;
    const struct tir_type *t = iota->results[0]->type, *type = part_type(l, t, p);
    const uint32_t axis = (uint32_t)tir_attr_int(iota, TIR_ATTR_axis, 0);
    struct tir_value *start =
        tir_const_int(l->f, tir_type_scalar(l->cx->types, t->elem), p->start[axis]);
    if (p->drop[axis])
        return build_splat(l, start, type);
    uint32_t at = 0;
    for (uint32_t d = 0; d < axis; d++)
        at += !p->drop[d];
    struct tir_value *v = build_iota(l, type, at);
    return p->start[axis] ? tir_binary(&l->b, TIR_OP_ADD, v, build_splat(l, start, type)) : v;
}

// The same operation on the parts of its operands.
static struct tir_value *make_computed(struct maker *m, const struct tir_inst *inst,
                                       const struct tile_part *p, uint32_t depth)
{
    struct tir_value *operands[TIR_MAX_RANK];
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        struct tir_value *v = inst->operands[i];
        const struct tile_part part = repeated_part(v->type, p);
        operands[i] = v->type->rank ? make(m, v, &part, depth + 1) : v;
        if (!operands[i])
            return NULL;
    }
    if (!m->builds)
        return inst->results[0];
    const struct tir_type *type = part_type(m->l, inst->results[0]->type, p);
    if (inst->op == TIR_OP_BROADCAST && tir_type_same_shape(operands[0]->type, type))
        return operands[0];
    return build_one(m->l, inst->op, type, operands, inst->operand_count);
}

static struct tir_value *make_permute(struct maker *m, const struct tir_inst *permute,
                                      const struct tile_part *p, uint32_t depth)
{
    const int64_t *from = tir_attr_find(permute, TIR_ATTR_permutation)->list;
    const uint32_t rank = permute->results[0]->type->rank;
    struct tile_part part = {0};
    for (uint32_t d = 0; d < rank; d++) {
        part.start[from[d]] = p->start[d];
        part.size[from[d]] = p->size[d];
        part.drop[from[d]] = p->drop[d];
    }
    struct tir_value *x = make(m, permute->operands[0], &part, depth + 1);
    if (!x || !m->builds)
        return x;
    int64_t order[TIR_MAX_RANK];
    uint32_t kept = 0;
    bool moves = false;
    for (uint32_t d = 0; d < rank; d++) {
        if (p->drop[d])
            continue;
        order[kept] = 0;
        for (int64_t e = 0; e < from[d]; e++)
            order[kept] += !part.drop[e];
        moves |= order[kept] != kept;
        kept++;
    }
    if (!moves)
        return x;
    const struct tir_type *type = part_type(m->l, permute->results[0]->type, p);
    struct tir_value *v = build_one(m->l, TIR_OP_PERMUTE, type, &x, 1);
    tir_set_list(m->l->f, v->def, TIR_ATTR_permutation, order, kept);
    return v;
}

// Elements `first` to `first + count` of a tile of type t, row by row, as a part of it: of one
// dimension, in one element of those before it. A scalar has none.
static bool part_in_order(const struct tir_type *t, int64_t first, int64_t count,
                          struct tile_part *p)
{
    *p = (struct tile_part){0};
    int64_t inner = 1;
    uint32_t d = t->rank;
    if (!d)
        return false;
    while (d-- > 0) {
        p->size[d] = t->shape[d];
        if (count <= inner * t->shape[d])
            break;
        inner *= t->shape[d];
    }
    if (count % inner || first % inner || first / inner % t->shape[d] + count / inner > t->shape[d])
        return false;
    p->size[d] = count / inner;
    p->start[d] = first / inner % t->shape[d];
    inner *= t->shape[d];
    while (d-- > 0) {
        p->start[d] = first / inner % t->shape[d];
        p->size[d] = 1;
        p->drop[d] = true;
        inner *= t->shape[d];
    }
    return true;
}

static struct tir_value *make_reshape(struct maker *m, const struct tir_inst *reshape,
                                      const struct tile_part *p, uint32_t depth)
{
    const struct tir_type *t = reshape->results[0]->type, *type = part_type(m->l, t, p);
    int64_t first = 0, count = 1;
    bool single = true; // so far: one element of each dimension
    for (uint32_t d = 0; d < t->rank; d++) {
        if (!single && p->size[d] != t->shape[d])
            return NULL;
        single &= p->size[d] == 1;
        first = first * t->shape[d] + p->start[d];
        count *= p->size[d];
    }
    struct tile_part part;
    if (!type->rank || !part_in_order(reshape->operands[0]->type, first, count, &part))
        return NULL;
    struct tir_value *x = make(m, reshape->operands[0], &part, depth + 1);
    return x && m->builds ? build_reshape(m->l, x, type->rank, type->shape) : x;
}

static struct tir_value *make_extract(struct maker *m, const struct tir_inst *extract,
                                      const struct tile_part *p, uint32_t depth)
{
    const struct tir_attr *start = tir_attr_find(extract, TIR_ATTR_start);
    struct tile_part part = *p;
    for (uint32_t d = 0; d < start->list_count; d++)
        part.start[d] += start->list[d];
    return make(m, extract->operands[0], &part, depth + 1);
}

static struct tir_value *make_from(struct maker *m, struct tir_inst *inst,
                                   const struct tile_part *p, uint32_t depth)
{
    switch (inst->op) {
    case TIR_OP_LOAD:
        return make_load(m, inst, p, depth);
    case TIR_OP_IOTA:
        return m->builds ? make_iota(m, inst, p) : inst->results[0];
    case TIR_OP_PERMUTE:
        return make_permute(m, inst, p, depth);
    case TIR_OP_RESHAPE:
        return make_reshape(m, inst, p, depth);
    case TIR_OP_EXTRACT:
        return make_extract(m, inst, p, depth);
    default:
        return (tir_is_elementwise(inst) || inst->op == TIR_OP_BROADCAST) &&
                       inst->operand_count <= TIR_MAX_RANK
                   ? make_computed(m, inst, p, depth)
                   : NULL;
    }
}

// Each part is computed where the whole is, so that it is there for every other user of the whole:
// the mask of a load, which comes first, may be a part that the product's factor has, too.
static struct tir_value *make(struct maker *m, struct tir_value *v, const struct tile_part *p,
                              uint32_t depth)
{
    if (v->kind == TIR_VALUE_CONST)
        return m->builds ? extracted(m->l, v, p) : v;
    if (!v->def || depth == MAX_DEPTH || v->type->layout)
        return NULL;
    struct made *made = tir_map_get(&m->done, tir_map_key(v));
    if (made && !memcmp(&made->part, p, sizeof *p))
        return made->value;
    made = arena_new(m->l->arena, struct made);
    made->part = *p;
    const struct tir_builder outer = m->l->b;
    m->l->b = tir_builder_before(m->l->f, v->def);
    made->value = make_from(m, v->def, p, depth);
    m->l->b = outer;
    tir_map_set(&m->done, tir_map_key(v), made);
    return made->value;
}

struct tir_value *build_loaded_part(struct lower *l, struct tir_value *v, const struct tile_part *p)
{
    for (int builds = 0; builds < 2; builds++) {
        struct maker m = {.l = l, .builds = builds};
        tir_map_init(&m.done, l->arena);
        struct tir_value *part = make(&m, v, p, 0);
        if (!part || builds)
            return part;
    }
    return NULL;
}

// NO: v is a part of a tile.
static enum tir_answer ask_whole(void *user, struct tir_value *v)
{
    (void)user;
    const struct tir_inst *inst = v->def;
    if (inst && inst->op == TIR_OP_EXTRACT)
        return TIR_NO;
    const bool goes_on = inst && (tir_is_elementwise(inst) || inst->op == TIR_OP_PERMUTE);
    return goes_on ? TIR_IF_OPERANDS : TIR_YES;
}

struct tir_value *build_loaded_factor(struct lower *l, struct tir_value *v)
{
    struct tile_part whole = {0};
    struct tir_follow wholes;
    tir_follow_init(&wholes, l->arena, ask_whole, NULL);
    if (l->is_ir || !tir_type_is_tile(v->type) || tir_follows(&wholes, v))
        return v;
    memcpy(whole.size, v->type->shape, sizeof whole.size);
    struct tir_value *loaded = build_loaded_part(l, v, &whole);
    return loaded ? loaded : v;
}
