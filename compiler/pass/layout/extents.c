// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Extents of tiles: which dimensions have one size because an operation ties them.
//
//     let x: f32[33, 61] = load(X[m:+33, 0:+61]);         // x: a, b
//     let y: f32[61, 33] = permute(x, ...);               // y: b, a
//     let s: f32[61, 1] = reduce(y, axis = 1, ...);       // s: b
//     let z: f32[33, 33] = load(Z[m:+33, 0:+33]);         // z: c, d
//     copy_async(buffer, Z[at, 0:+33], ...);              // at: e, which keeps its size
//
// Dimensions are joined by union-find. An operation without a rule here needs its tiles as they
// are, and so does a tile whose layout is stated: that keeps their classes, and no others of the
// same size. A dimension of size 1 stays, since broadcasts repeat it.
//
// A constant tile is one value however many operations use it, so each use has dimensions of its
// own.

#include "pass/layout/extents.h"

#include "ir/walk.h"

struct tir_tile_dim *tir_tile_dim_class(struct tir_tile_dim *dim)
{
    while (dim->same) {
        if (dim->same->same)
            dim->same = dim->same->same;
        dim = dim->same;
    }
    return dim;
}

void tir_tile_dim_keep(struct tir_tile_dim *dim, const struct tir_inst *inst)
{
    struct tir_tile_dim *c = tir_tile_dim_class(dim);
    if (!c->keeper)
        c->keeper = inst;
}

struct tir_tile_dim *tir_extents_at(const struct tir_extents *e, const struct tir_inst *inst,
                                    uint32_t i)
{
    const struct tir_value *v = inst->operands[i];
    return v->kind == TIR_VALUE_CONST ? tir_map_get(&e->constants, tir_map_key(&inst->operands[i]))
                                      : e->of[v->id];
}

static struct tir_tile_dim *new_dims(struct tir_extents *e, const struct tir_type *t)
{
    struct tir_tile_dim *dims = arena_array(e->arena, struct tir_tile_dim, t->rank);
    for (uint32_t d = 0; d < t->rank; d++)
        dims[d] = (struct tir_tile_dim){.size = t->shape[d], .granule = 1};
    return dims;
}

static bool is_tile(const struct tir_value *v)
{
    return v && tir_type_is_tile(v->type);
}

static void see(struct tir_extents *e, struct tir_value *v, const struct tir_inst *maker)
{
    if (!is_tile(v))
        return;
    struct tir_tile_dim *dims = e->of[v->id] = new_dims(e, v->type);
    vec_push(e->arena, &e->tiles, ((struct tir_tile_dims){v, dims}));
    for (uint32_t d = 0; v->type->layout && d < v->type->rank; d++)
        tir_tile_dim_keep(&dims[d], maker);
}

static void see_inst(struct tir_extents *e, struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (is_tile(inst->operands[i]) && inst->operands[i]->kind == TIR_VALUE_CONST)
            tir_map_set(&e->constants, tir_map_key(&inst->operands[i]),
                        new_dims(e, inst->operands[i]->type));
    for (uint32_t i = 0; i < inst->result_count; i++)
        see(e, inst->results[i], inst);
    for (uint32_t r = 0; r < inst->region_count; r++)
        for (uint32_t i = 0; i < inst->regions[r]->arg_count; i++)
            see(e, inst->regions[r]->args[i], inst);
}

// Ties.

static void tie(struct tir_tile_dim *a, struct tir_tile_dim *b)
{
    a = tir_tile_dim_class(a);
    b = tir_tile_dim_class(b);
    if (a == b || a->size != b->size || a->size == 1)
        return;
    a->same = b;
    if (!b->keeper)
        b->keeper = a->keeper;
}

static void tie_all(struct tir_tile_dim *a, struct tir_tile_dim *b, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++)
        tie(&a[d], &b[d]);
}

// A value that may be a scalar, absent or a buffer, with a tile of its shape.
static void tie_operand(struct tir_extents *e, const struct tir_inst *inst, uint32_t i,
                        struct tir_tile_dim *dims)
{
    if (i < inst->operand_count && is_tile(inst->operands[i]))
        tie_all(tir_extents_at(e, inst, i), dims, inst->operands[i]->type->rank);
}

static void tie_results(struct tir_extents *e, const struct tir_inst *inst, uint32_t i,
                        struct tir_tile_dim *dims)
{
    if (is_tile(inst->results[i]))
        tie_all(e->of[inst->results[i]->id], dims, inst->results[i]->type->rank);
}

// The dimensions of a group on one side of a reshape that have more than one element: the first,
// and how many elements the others have together.
struct side {
    struct tir_tile_dim *first;
    uint32_t count;
    int64_t rest;
};

static struct side side_of(const struct tir_type *t, struct tir_tile_dim *dims, uint32_t begin,
                           uint32_t end)
{
    struct side s = {.rest = 1};
    for (uint32_t d = begin; d < end; d++) {
        if (t->shape[d] == 1)
            continue;
        if (s.count++)
            s.rest *= t->shape[d];
        else
            s.first = &dims[d];
    }
    return s;
}

// All but the first dimensions stay, and these grow together.
static void link_sides(struct tir_extents *e, const struct tir_inst *inst, struct side *a,
                       struct side *b)
{
    struct side *inner = a->rest > b->rest ? a : b, *outer = inner == a ? b : a;
    const int64_t times = inner->rest / outer->rest;
    if (inner->rest % outer->rest || !tir_is_pow2((uint64_t)times)) {
        tir_tile_dim_keep(a->first, inst);
        tir_tile_dim_keep(b->first, inst);
        return;
    }
    vec_push(e->arena, &e->links, ((struct tir_tile_link){inner->first, outer->first, times}));
}

// A dimension that is one of both is the same, whatever dimensions of size 1 are beside it. Where
// several have the elements of several, only the first ones may grow: elements stay in order.
static void tie_reshape(struct tir_extents *e, const struct tir_inst *inst)
{
    const struct tir_type *a = inst->operands[0]->type, *b = inst->results[0]->type;
    struct tir_tile_dim *of[] = {tir_extents_at(e, inst, 0), e->of[inst->results[0]->id]};
    for (uint32_t i = 0, j = 0; i < a->rank || j < b->rank;) {
        const uint32_t k = i, m = j;
        tir_shape_group(a, &i, b, &j);
        struct side sides[] = {side_of(a, of[0], k, i), side_of(b, of[1], m, j)};
        if (!sides[0].count || !sides[1].count)
            continue;
        if (sides[0].count == 1 && sides[1].count == 1) {
            tie(sides[0].first, sides[1].first);
            continue;
        }
        for (uint32_t d = k; d < i; d++)
            if (&of[0][d] != sides[0].first)
                tir_tile_dim_keep(&of[0][d], inst);
        for (uint32_t d = m; d < j; d++)
            if (&of[1][d] != sides[1].first)
                tir_tile_dim_keep(&of[1][d], inst);
        link_sides(e, inst, &sides[0], &sides[1]);
    }
}

// Of two that are linked both stay, or none.
static bool settle(struct tir_tile_dim *inner, struct tir_tile_dim *outer, int64_t times)
{
    if (inner->keeper || outer->keeper) {
        const bool changes = !inner->keeper || !outer->keeper;
        inner->keeper = outer->keeper = inner->keeper ? inner->keeper : outer->keeper;
        return changes;
    }
    const int64_t old[] = {inner->granule, outer->granule};
    inner->granule = TIR_MAX(inner->granule, outer->granule / times);
    outer->granule = TIR_MAX(outer->granule, inner->granule > 1 ? inner->granule * times : 1);
    return inner->granule != old[0] || outer->granule != old[1];
}

void tir_extents_settle(struct tir_extents *e)
{
    for (bool again = true; again;) {
        again = false;
        vec_foreach(const struct tir_tile_link, it, &e->links)
            again |=
                settle(tir_tile_dim_class(it->inner), tir_tile_dim_class(it->outer), it->times);
    }
}

static void tie_permute(struct tir_extents *e, const struct tir_inst *inst)
{
    const struct tir_attr *order = tir_attr_find(inst, TIR_ATTR_permutation);
    for (uint32_t d = 0; is_tile(inst->results[0]) && d < order->list_count; d++)
        tie(&e->of[inst->results[0]->id][d], &tir_extents_at(e, inst, 0)[order->list[d]]);
}

static void tie_combined(struct tir_extents *e, const struct tir_inst *inst)
{
    struct tir_tile_dim *x = tir_extents_at(e, inst, TIR_REDUCE_X);
    for (uint32_t i = 0; i < tir_combined_count(inst); i++) {
        tie_operand(e, inst, tir_combined_at(inst, i), x);
        tie_results(e, inst, i, x); // but the axis of a reduction, which has size 1
    }
}

// dims: of the tile that is accessed.
static void tie_access(struct tir_extents *e, const struct tir_inst *inst,
                       struct tir_tile_dim *dims)
{
    const uint32_t fixed = tir_fixed_count(inst), rank = tir_ref_base(inst)->type->rank;
    for (uint32_t i = 0; i < fixed; i++)
        tie_operand(e, inst, i, dims);
    for (uint32_t d = 0; d < rank; d++)
        tie_operand(e, inst, fixed + 1 + d, dims + tir_slice_dim(inst, d));
}

static void tie_dot(struct tir_extents *e, const struct tir_inst *dot)
{
    struct tir_tile_dim *a = tir_extents_at(e, dot, TIR_DOT_A),
                        *b = tir_extents_at(e, dot, TIR_DOT_B);
    struct tir_tile_dim *sums = e->of[dot->results[0]->id];
    tie_operand(e, dot, TIR_DOT_ACC, sums);
    tie(&a[0], &sums[0]);
    tie(&a[1], &b[0]);
    tie(&b[1], &sums[1]);
}

// A part whose dimension is all of the whole's.
static void tie_extract(struct tir_extents *e, const struct tir_inst *inst)
{
    struct tir_tile_dim *whole = tir_extents_at(e, inst, 0), *part = e->of[inst->results[0]->id];
    tie_all(whole, part, inst->results[0]->type->rank);
}

// Result i of an operation with regions: it, what yields give it, and what a loop carries for it.
static void tie_regions(struct tir_extents *e, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++) {
        if (!is_tile(inst->results[i]))
            continue;
        struct tir_tile_dim *dims = e->of[inst->results[i]->id];
        if (tir_carries(inst))
            tie_operand(e, inst, tir_carried_at(inst) + i, dims);
        for (uint32_t r = 0; r < inst->region_count; r++) {
            const struct tir_block *block = inst->regions[r];
            const struct tir_inst *yield = tir_yield_of(block);
            const bool asks = inst->op == TIR_OP_WHILE && r == 0; // for its condition
            if (yield && !asks)
                tie_operand(e, yield, i, dims);
            if (tir_carries(inst))
                tie_all(e->of[block->args[block->arg_count - inst->result_count + i]->id], dims,
                        inst->results[i]->type->rank);
        }
    }
}

static void keep_all(struct tir_extents *e, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        for (uint32_t d = 0; is_tile(inst->operands[i]) && d < inst->operands[i]->type->rank; d++)
            tir_tile_dim_keep(&tir_extents_at(e, inst, i)[d], inst);
    for (uint32_t i = 0; i < inst->result_count; i++)
        for (uint32_t d = 0; is_tile(inst->results[i]) && d < inst->results[i]->type->rank; d++)
            tir_tile_dim_keep(&e->of[inst->results[i]->id][d], inst);
}

static bool multiplies_tiles(const struct tir_inst *dot)
{
    return !tir_is_scaled_dot(dot) && is_tile(dot->operands[TIR_DOT_A]) &&
           is_tile(dot->operands[TIR_DOT_B]);
}

static void tie_inst(struct tir_extents *e, const struct tir_inst *inst)
{
    const struct tir_value *result = inst->result_count ? inst->results[0] : NULL;
    switch (inst->op) {
    case TIR_OP_IOTA:
    case TIR_OP_PIXEL_INDEX:
    case TIR_OP_YIELD: // with the operation that it ends a region of
        break;
    case TIR_OP_BROADCAST:
        tie_operand(e, inst, 0, e->of[result->id]);
        break;
    case TIR_OP_RESHAPE:
        if (is_tile(inst->operands[0]) && is_tile(result))
            tie_reshape(e, inst);
        break;
    case TIR_OP_PERMUTE:
        tie_permute(e, inst);
        break;
    case TIR_OP_REDUCE:
    case TIR_OP_SCAN:
        tie_combined(e, inst);
        break;
    case TIR_OP_EXTRACT:
        tie_extract(e, inst);
        break;
    case TIR_OP_LOAD:
        if (is_tile(result))
            tie_access(e, inst, e->of[result->id]);
        break;
    case TIR_OP_STORE:
    case TIR_OP_ATOMIC:
        if (is_tile(inst->operands[TIR_STORE_VALUE]))
            tie_access(e, inst, tir_extents_at(e, inst, TIR_STORE_VALUE));
        if (is_tile(result))
            tie_results(e, inst, 0, tir_extents_at(e, inst, TIR_STORE_VALUE));
        break;
    case TIR_OP_DOT:
        if (multiplies_tiles(inst))
            tie_dot(e, inst);
        else
            keep_all(e, inst);
        break;
    case TIR_OP_FOR:
    case TIR_OP_IF:
    case TIR_OP_WHILE:
    case TIR_OP_TILES:
    case TIR_OP_GET:
        tie_regions(e, inst);
        break;
    default:
        if (!tir_is_elementwise(inst))
            keep_all(e, inst);
        else if (is_tile(result))
            for (uint32_t i = 0; i < inst->operand_count; i++)
                tie_operand(e, inst, i, e->of[result->id]);
        break;
    }
}

void tir_extents_find(struct tir_extents *e, struct tir_func *f, struct tir_arena *arena)
{
    *e = (struct tir_extents){.arena = arena};
    e->of = arena_array(arena, struct tir_tile_dim *, f->value_count);
    tir_map_init(&e->constants, arena);
    tir_foreach_inst(inst, f)
        see_inst(e, inst);
    tir_foreach_inst(inst, f)
        tie_inst(e, inst);
}
