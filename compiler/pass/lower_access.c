// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, memory: loads, stores, atomics and copies of tiles as accesses of one thread.
//
// Global memory. The coordinate of register r along dimension t is
//     start[t] + thread part + constant of r,
// so the byte offset is one value for the thread, plus a stride times a constant for each dimension
// but the innermost, whose constant becomes the instruction's immediate. Out-of-range elements are
// switched off by a predicate per distinct constant; dimensions that cannot be out of range have
// none. Under the fact vector16, neighbouring registers along the innermost dimension move
// together, 16 bytes at a time: a vector is then wholly inside or wholly outside.
//
// Shared and local memory are in lower_walk.c.

#include "ir/walk.h"
#include "pass/lower_tile.h"
#include "pass/stage.h"

#define MAX_CONSTANTS 64 // distinct constants of a dimension that predicates are kept for

struct side { // one dimension of the tensor
    int64_t box;
    uint32_t tile_dim;          // the tile's dimension (box != 0); of an index tile, its first
    struct tir_value *index;    // the index operand
    struct tir_value *position; // start + thread part, in the index type; NULL for an index tile
    struct tir_value *stride;   // bytes; NULL: contiguous, elements follow each other
    struct tir_value *extent;   // in the index type
    int64_t stepped_to;         // the constant that `stepped` below has
    bool checked;               // may be out of range
    uint32_t known;             // predicates made so far
    int64_t constants[MAX_CONSTANTS];
    struct tir_value *predicates[MAX_CONSTANTS];
};

struct global {
    struct lower *lo;
    const struct tir_inst *inst;
    struct tir_value *base;
    const struct tir_layout *layout; // of the accessed tile; NULL: a scalar
    enum tir_elem elem;
    uint32_t rank, bytes; // of the tensor; of an element
    struct side sides[TIR_MAX_RANK];
    struct lower_vector vector; // elements that move together
    struct tir_value *at;       // bytes: the thread's part over all dimensions without index tiles
    // Copies in a pipelined loop live among many registers: each address is a step from the one
    // before instead of an offset of its own, which would be kept over the whole loop.
    bool by_steps;
    struct tir_value *stepped; // at, moved on to the constants of the element asked for last
};

static struct tir_value *binary(struct global *g, enum tir_op op, struct tir_value *x,
                                struct tir_value *y)
{
    return tir_binary(&g->lo->b, op, x, y);
}

// x, which may be any i64, as an offset of the index type that stays out of range if x is.
static struct tir_value *narrowed(struct lower *lo, struct tir_value *x)
{
    if (x->type->elem == lo->index->elem || lo->index == lo->i64)
        return tir_lower_cast(lo, &lo->b, x, lo->index);
    int64_t low, high, most = INT64_C(1) << 30;
    tir_range_get(lo->ranges, x, &low, &high);
    if (tir_elems[x->type->elem].bits == 64 && (low < -most || high > most)) {
        struct tir_value *limit = tir_const_int(lo->f, x->type, most);
        struct tir_value *negative = tir_const_int(lo->f, x->type, -most);
        x = tir_binary(&lo->b, TIR_OP_MAX, tir_binary(&lo->b, TIR_OP_MIN, x, limit), negative);
    }
    return tir_lower_cast(lo, &lo->b, x, lo->index);
}

static const struct tir_param *param_of(const struct lower *lo, const struct tir_value *tensor)
{
    for (uint32_t i = 0; i < lo->f->param_count; i++)
        if (lo->f->params[i].value == tensor)
            return &lo->f->params[i];
    tir_unreachable();
}

static struct tir_value *extent_of(struct lower *lo, const struct tir_param *param, uint32_t t)
{
    const struct tir_param_dim *dim = &param->dims[t];
    return dim->dim >= 0 ? lo->f->dims[dim->dim].value : tir_const_index(lo->f, dim->constant);
}

// Is 0 <= start and start < extent known?
static bool starts_inside(struct lower *lo, const struct tir_inst *inst, struct tir_value *start,
                          struct tir_value *extent)
{
    int64_t s, e, low, high;
    // A copy that only runs where its start is below the extent.
    const struct tir_value *pred =
        inst->op == TIR_OP_COPY_ASYNC ? inst->operands[TIR_COPY_PRED] : NULL;
    if (pred && pred->def && pred->def->op == TIR_OP_LT && pred->def->operands[0] == start &&
        pred->def->operands[1] == extent) {
        tir_range_get(lo->ranges, start, &low, &high);
        return low >= 0;
    }
    if (tir_is_const_int(start, &s) && tir_is_const_int(extent, &e))
        return s >= 0 && s < e;
    if (tir_map_get(&lo->below, tir_map_key(start)) == extent)
        return true;
    struct tir_inst *owner = start->block ? start->block->owner : NULL;
    if (owner && owner->op == TIR_OP_FOR && start->index == 0 &&
        owner->operands[TIR_FOR_END] == extent) {
        tir_range_get(lo->ranges, owner->operands[TIR_FOR_BEGIN], &low, &high);
        return low >= 0;
    }
    return false;
}

// Can start .. start + n leave 0 .. extent?
static bool may_leave(struct lower *lo, const struct tir_inst *inst, struct tir_value *start,
                      struct tir_value *extent, int64_t n)
{
    int64_t s, e;
    if (tir_is_const_int(start, &s) && tir_is_const_int(extent, &e))
        return s < 0 || s > e - n;
    if (!starts_inside(lo, inst, start, extent))
        return true;
    // A multiple of n below a multiple of n has n elements left.
    return n != 1 && (tir_range_divisor(lo->ranges, start) % (uint64_t)n ||
                      tir_range_divisor(lo->ranges, extent) % (uint64_t)n);
}

static void set_side(struct global *g, const struct tir_param *param, uint32_t t,
                     uint32_t *tile_dim)
{
    struct lower *lo = g->lo;
    struct side *s = &g->sides[t];
    s->box = tir_attr_find(g->inst, TIR_ATTR_box)->list[t];
    s->index = tir_ref_indices(g->inst)[t];
    s->tile_dim = *tile_dim;
    *tile_dim += s->box > 0 ? 1 : s->box < 0 ? s->index->type->rank : 0;
    struct tir_value *extent = extent_of(lo, param, t);
    s->extent = tir_lower_cast(lo, &lo->b, extent, lo->index);
    bool contiguous = t + 1 == g->rank && lo->f->facts & TIR_FACT_UNIT_INNER;
    if (!contiguous) {
        struct tir_value *stride = tir_build1(&lo->b, TIR_OP_STRIDE, lo->i64, &g->base, 1);
        tir_set_int(lo->f, stride->def, TIR_ATTR_axis, t);
        stride = tir_lower_cast(lo, &lo->b, stride, lo->index);
        s->stride = tir_lower_mul_const(lo, &lo->b, stride, g->bytes);
    }
    if (s->box < 0) {
        s->checked = true;
        return;
    }
    s->checked = may_leave(lo, g->inst, s->index, extent, TIR_MAX(s->box, 1));
    s->position = narrowed(lo, s->index);
    if (s->box > 0 && g->layout) {
        struct tir_value *thread = tir_lower_coord(lo, g->layout, s->tile_dim);
        s->position =
            tir_lower_add(lo, &lo->b, s->position, tir_lower_cast(lo, &lo->b, thread, lo->index));
    }
}

// How many registers move together.
static void set_vector(struct global *g)
{
    g->vector = (struct lower_vector){1, 1};
    struct side *s = g->rank ? &g->sides[g->rank - 1] : NULL;
    if (!s || s->box <= 0 || !g->layout || !(g->lo->f->facts & TIR_FACT_VECTOR16))
        return;
    const struct tir_layout *l = g->layout;
    uint32_t end = l->first[s->tile_dim + 1];
    if (end == l->first[s->tile_dim])
        return;
    const struct tir_iter *inner = &l->iters[end - 1];
    if (inner->axis != TIR_AXIS_REG)
        return;
    uint64_t divisor = tir_range_divisor(g->lo->ranges, s->index);
    // The fact speaks of extents that are known at launch; a constant one is looked at here.
    const struct tir_param_dim *dim = &param_of(g->lo, g->base)->dims[g->rank - 1];
    int64_t extent = dim->dim < 0 ? dim->constant : 0;
    uint32_t vector = 16 / g->bytes;
    while (vector > 1 && (inner->extent % vector || divisor % vector || extent % vector))
        vector /= 2;
    g->vector = (struct lower_vector){vector, inner->stride};
}

static struct global open_global(struct lower *lo, const struct tir_inst *inst,
                                 const struct tir_layout *layout)
{
    struct global g = {.lo = lo, .inst = inst, .base = tir_ref_base(inst), .layout = layout};
    const struct tir_param *param = param_of(lo, g.base);
    g.rank = g.base->type->rank;
    g.elem = g.base->type->elem;
    g.bytes = TIR_MAX(1, tir_elems[g.elem].bits / 8);
    uint32_t tile_dim = 0;
    for (uint32_t t = 0; t < g.rank; t++)
        set_side(&g, param, t, &tile_dim);
    for (uint32_t t = 0; t < g.rank; t++) {
        struct side *s = &g.sides[t];
        if (!s->position)
            continue;
        struct tir_value *part = s->stride ? tir_lower_mul(lo, &lo->b, s->position, s->stride)
                                           : tir_lower_mul_const(lo, &lo->b, s->position, g.bytes);
        g.at = tir_lower_add(lo, &lo->b, g.at, part);
    }
    if (!g.at)
        g.at = tir_const_int(lo->f, lo->index, 0);
    set_vector(&g);
    return g;
}

// 0 <= position + constant < extent, as one unsigned comparison.
static struct tir_value *in_range(struct global *g, struct side *s, struct tir_value *position)
{
    struct lower *lo = g->lo;
    const struct tir_type *u = tir_type_scalar(lo->types, lo->index == lo->i32 ? TIR_U32 : TIR_U64);
    return binary(g, TIR_OP_LT, tir_lower_cast(lo, &lo->b, position, u),
                  tir_lower_cast(lo, &lo->b, s->extent, u));
}

static struct tir_value *side_predicate(struct global *g, struct side *s, int64_t constant)
{
    if (!s->checked)
        return NULL;
    for (uint32_t i = 0; i < s->known; i++)
        if (s->constants[i] == constant)
            return s->predicates[i];
    struct tir_value *c = tir_const_int(g->lo->f, g->lo->index, constant);
    struct tir_value *p = in_range(g, s, tir_lower_add(g->lo, &g->lo->b, s->position, c));
    if (s->known < MAX_CONSTANTS) {
        s->constants[s->known] = constant;
        s->predicates[s->known++] = p;
    }
    return p;
}

// An element (the first of a vector): where it is and whether it exists.
struct element {
    struct tir_value *at;
    int64_t offset;         // bytes, to be added
    struct tir_value *pred; // NULL: always
};

// Moves the access's stepped address along dimension s to `constant`.
static void step_to(struct global *g, struct side *s, int64_t constant)
{
    struct lower *lo = g->lo;
    int64_t step = constant - s->stepped_to;
    if (step)
        g->stepped =
            tir_lower_add(lo, &lo->b, g->stepped, tir_lower_mul_const(lo, &lo->b, s->stride, step));
    s->stepped_to = constant;
}

static struct element element_at(struct global *g, uint32_t reg)
{
    struct lower *lo = g->lo;
    struct element e = {.at = g->at};
    int64_t coord[TIR_MAX_RANK] = {0};
    if (g->layout)
        tir_layout_coord(g->layout, (struct tir_layout_at){{reg, 0, 0}}, coord);
    for (uint32_t t = 0; t < g->rank; t++) {
        struct side *s = &g->sides[t];
        if (s->box < 0) { // gathered: this element's own index
            const struct tir_layout *own = s->index->type->layout;
            uint32_t r = 0;
            if (own) {
                int64_t c[TIR_MAX_RANK] = {0};
                memcpy(c, coord + s->tile_dim, own->rank * sizeof(*c));
                r = tir_layout_find(own, c).at[TIR_AXIS_REG];
            }
            struct tir_value *i = narrowed(lo, tir_lower_register(lo, s->index, r));
            e.pred = tir_lower_and(lo, e.pred, in_range(g, s, i));
            e.at = tir_lower_add(lo, &lo->b, e.at,
                                 s->stride ? tir_lower_mul(lo, &lo->b, i, s->stride)
                                           : tir_lower_mul_const(lo, &lo->b, i, g->bytes));
            continue;
        }
        int64_t c = s->box > 0 ? coord[s->tile_dim] : 0;
        if (!s->stride)
            e.offset += c * g->bytes;
        else if (g->by_steps)
            step_to(g, s, c);
        else if (c)
            e.at = tir_lower_add(lo, &lo->b, e.at, tir_lower_mul_const(lo, &lo->b, s->stride, c));
        e.pred = tir_lower_and(lo, e.pred, side_predicate(g, s, c));
    }
    if (g->by_steps)
        e.at = g->stepped;
    return e;
}

// A scalar access in tile code is done by one thread; a tile's by the owner of each element.
static struct tir_value *writer(struct lower *lo, const struct tir_layout *l)
{
    if (l)
        return tir_lower_is_owner(lo, l);
    if (lo->by_thread)
        return NULL;
    return tir_binary(&lo->b, TIR_OP_EQ, tir_lower_tid(lo), tir_lower_i32(lo, 0));
}

void tir_lower_ld_vector(struct lower *lo, struct tir_value *base, struct tir_value *at,
                         int64_t offset, struct tir_value *pred, enum tir_elem elem, uint32_t count,
                         struct tir_value **out)
{
    bool is_bool = elem == TIR_BOOL; // a byte in memory
    const struct tir_type *types[16];
    for (uint32_t i = 0; i < count; i++)
        types[i] = tir_type_scalar(lo->types, is_bool ? TIR_U8 : elem);
    struct tir_value *operands[] = {base, at, pred};
    struct tir_inst *ld = tir_build(&lo->b, TIR_OP_LD, operands, 3, types, count, 0);
    tir_set_int(lo->f, ld, TIR_ATTR_width, count * TIR_MAX(1, tir_elems[elem].bits / 8));
    if (offset)
        tir_set_int(lo->f, ld, TIR_ATTR_offset, offset);
    for (uint32_t i = 0; i < count; i++)
        out[i] = is_bool ? tir_binary(&lo->b, TIR_OP_NE, ld->results[i],
                                      tir_const_int(lo->f, types[i], 0))
                         : ld->results[i];
}

void tir_lower_st_vector(struct lower *lo, struct tir_value *base, struct tir_value *at,
                         int64_t offset, struct tir_value *pred, uint32_t count,
                         struct tir_value *const *values)
{
    struct tir_value *operands[3 + 16] = {base, at, pred};
    for (uint32_t i = 0; i < count; i++)
        operands[3 + i] =
            values[i]->type == lo->boolean
                ? tir_lower_cast(lo, &lo->b, values[i], tir_type_scalar(lo->types, TIR_U8))
                : values[i];
    struct tir_inst *st = tir_build(&lo->b, TIR_OP_ST, operands, 3 + count, NULL, 0, 0);
    tir_set_int(lo->f, st, TIR_ATTR_width,
                count * TIR_MAX(1, tir_elems[values[0]->type->elem].bits / 8));
    if (offset)
        tir_set_int(lo->f, st, TIR_ATTR_offset, offset);
}

static void load_global(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *result = inst->results[0];
    const struct tir_layout *l = tir_type_is_tile(result->type) ? result->type->layout : NULL;
    struct global g = open_global(lo, inst, l);
    uint32_t count = tir_lower_register_count(result->type);
    struct tir_value **out = tir_lower_new_registers(lo, count);
    struct tir_value *pad = inst->operands[TIR_LOAD_PAD], *mask = inst->operands[TIR_LOAD_MASK];
    struct lower_vector v = mask ? (struct lower_vector){1, 1} : g.vector;
    for (uint32_t r = 0; r < count; r++) {
        if (!tir_lower_leads(v, r))
            continue;
        struct element e = element_at(&g, r);
        struct tir_value *values[16];
        if (mask)
            e.pred = tir_lower_and(lo, e.pred, tir_lower_register(lo, mask, r));
        tir_lower_ld_vector(lo, g.base, e.at, e.offset, e.pred, g.elem, v.count, values);
        for (uint32_t i = 0; i < v.count; i++) {
            uint32_t at = r + i * v.stride;
            out[at] = values[i];
            if (!pad || !e.pred)
                continue;
            struct tir_value *choice[] = {e.pred, out[at], tir_lower_register(lo, pad, at)};
            out[at] = tir_build1(&lo->b, TIR_OP_WHERE, out[at]->type, choice, 3);
        }
    }
    if (l)
        tir_lower_set_registers(lo, result, out);
    else
        tir_replace_uses(lo->f, result, out[0]);
}

// The layout that the other operands of a store or atomic were given: its old values, its mask, or
// the index tile that alone makes up the slice. NULL: nothing has one.
static const struct tir_layout *follows_layout(const struct tir_inst *inst)
{
    const struct tir_value *mask = inst->operands[TIR_STORE_MASK];
    if (inst->op == TIR_OP_ATOMIC)
        return inst->results[0]->type->layout;
    if (mask && mask->type->layout)
        return mask->type->layout;
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    for (uint32_t d = 0; d < box->list_count; d++) {
        const struct tir_type *index = tir_ref_indices(inst)[d]->type;
        if (box->list[d] < 0 && index->rank == inst->operands[TIR_STORE_VALUE]->type->rank)
            return index->layout;
    }
    return NULL;
}

// The layout in which a value is stored: its own; a constant needs one made for the purpose.
static const struct tir_layout *stored_layout(struct lower *lo, const struct tir_inst *inst)
{
    const struct tir_value *v = inst->operands[TIR_STORE_VALUE];
    const struct tir_type *t = v->type;
    if (!tir_type_is_tile(t))
        return NULL;
    if (t->layout)
        return t->layout;
    if (follows_layout(inst))
        return follows_layout(inst);
    uint32_t order[TIR_MAX_RANK], n = 0, contiguous = tir_contiguous_dim(inst, t->rank);
    if (contiguous < t->rank)
        order[n++] = contiguous;
    for (uint32_t d = t->rank; d-- > 0;)
        if (d != contiguous)
            order[n++] = d;
    return tir_layout_blocked(lo->types, t->rank, t->shape, order, order,
                              TIR_MAX(1, 128 / tir_elems[t->elem].bits), 1, lo->f->threads / 32);
}

static void store_global(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *v = inst->operands[TIR_STORE_VALUE], *mask = inst->operands[TIR_STORE_MASK];
    const struct tir_layout *l = stored_layout(lo, inst);
    struct tir_value *owner = writer(lo, l);
    struct global g = open_global(lo, inst, l);
    uint32_t count = l ? tir_layout_size(l, TIR_AXIS_REG) : 1;
    struct lower_vector vector = mask ? (struct lower_vector){1, 1} : g.vector;
    for (uint32_t r = 0; r < count; r++) {
        if (!tir_lower_leads(vector, r))
            continue;
        struct element e = element_at(&g, r);
        struct tir_value *values[16];
        for (uint32_t i = 0; i < vector.count; i++)
            values[i] = tir_lower_register(lo, v, r + i * vector.stride);
        e.pred = tir_lower_and(lo, owner, e.pred);
        if (mask)
            e.pred = tir_lower_and(lo, e.pred, tir_lower_register(lo, mask, r));
        tir_lower_st_vector(lo, g.base, e.at, e.offset, e.pred, vector.count, values);
    }
}

static void buffer_dims(const struct tir_inst *inst, uint32_t *dims)
{
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    uint32_t n = 0;
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d] > 0)
            dims[n++] = d;
}

static struct lower_walk *walk_of(struct lower *lo, struct tir_inst *inst,
                                  const struct tir_layout *l)
{
    uint32_t dims[TIR_MAX_RANK] = {0};
    buffer_dims(inst, dims);
    return tir_lower_walk_new(lo, tir_ref_base(inst), l, tir_ref_indices(inst), dims);
}

static bool has_index_tile(const struct tir_inst *inst)
{
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d] < 0)
            return true;
    return false;
}

static void load_buffer(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *result = inst->results[0];
    const struct tir_layout *l = tir_type_is_tile(result->type) ? result->type->layout : NULL;
    struct lower_walk *w = walk_of(lo, inst, l);
    uint32_t count = tir_lower_register_count(result->type);
    struct tir_value **out = tir_lower_new_registers(lo, count);
    tir_lower_read(lo, w, result->type->elem, count, out);
    if (l)
        tir_lower_set_registers(lo, result, out);
    else
        tir_replace_uses(lo->f, result, out[0]);
}

static void store_buffer(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *v = inst->operands[TIR_STORE_VALUE], *mask = inst->operands[TIR_STORE_MASK];
    const struct tir_layout *l = stored_layout(lo, inst);
    struct lower_walk *w = walk_of(lo, inst, l);
    uint32_t count = l ? tir_layout_size(l, TIR_AXIS_REG) : 1;
    struct tir_value *owner =
        tir_ref_base(inst)->type->space == TIR_SPACE_LOCAL ? NULL : writer(lo, l);
    tir_lower_write(lo, w, v, count, mask, owner);
}

void tir_lower_load(struct lower *lo, struct tir_inst *inst)
{
    if (tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL)
        load_global(lo, inst);
    else if (has_index_tile(inst) || inst->operands[TIR_LOAD_MASK])
        tir_lower_unsupported(lo, inst, "a gather or a mask on a shared buffer");
    else
        load_buffer(lo, inst);
}

void tir_lower_store(struct lower *lo, struct tir_inst *inst)
{
    if (tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL)
        store_global(lo, inst);
    else if (has_index_tile(inst))
        tir_lower_unsupported(lo, inst, "a scatter to a shared buffer");
    else
        store_buffer(lo, inst);
}

static struct tir_value *build_atom(struct lower *lo, const struct tir_inst *inst,
                                    struct tir_value *base, struct tir_value *at, int64_t offset,
                                    struct tir_value *value, struct tir_value *pred)
{
    struct tir_value *operands[] = {base, at, value, pred};
    struct tir_value *old = tir_build1(&lo->b, TIR_OP_ATOM, value->type, operands, 4);
    tir_set_word(lo->f, old->def, TIR_ATTR_kind,
                 tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_kind_add));
    if (offset)
        tir_set_int(lo->f, old->def, TIR_ATTR_offset, offset);
    return old;
}

void tir_lower_atomic(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *v = inst->operands[TIR_STORE_VALUE], *mask = inst->operands[TIR_STORE_MASK];
    struct tir_value *result = inst->results[0];
    const struct tir_layout *l = stored_layout(lo, inst);
    struct tir_value *owner = writer(lo, l);
    bool global = tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL;
    bool used = result->id < lo->value_count && lo->uses[result->id];
    if (used && owner) {
        tir_lower_unsupported(lo, inst, "the old value of an atomic that not every thread does");
        return;
    }
    if (!global && has_index_tile(inst)) {
        tir_lower_unsupported(lo, inst, "an atomic through an index tile on a shared buffer");
        return;
    }
    uint32_t count = l ? tir_layout_size(l, TIR_AXIS_REG) : 1;
    struct tir_value **out = tir_lower_new_registers(lo, count);
    struct global g;
    struct lower_walk *w = NULL;
    if (global)
        g = open_global(lo, inst, l);
    else
        w = walk_of(lo, inst, l);
    for (uint32_t r = 0; r < count; r++) {
        struct tir_value *pred = owner;
        if (mask)
            pred = tir_lower_and(lo, pred, tir_lower_register(lo, mask, r));
        struct tir_value *value = tir_lower_register(lo, v, r);
        if (global) {
            struct element e = element_at(&g, r);
            out[r] = build_atom(lo, inst, g.base, e.at, e.offset, value,
                                tir_lower_and(lo, pred, e.pred));
        } else {
            struct lower_place p = tir_lower_walk_at(lo, w, r);
            out[r] = build_atom(lo, inst, p.base, p.at, p.offset, value, pred);
        }
    }
    if (tir_type_is_tile(result->type))
        tir_lower_set_registers(lo, result, out);
    else
        tir_replace_uses(lo->f, result, out[0]);
}

void tir_lower_copy_async(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *to = inst->operands[TIR_COPY_TO];
    const struct tir_type *t = to->type;
    uint32_t bytes = tir_elems[t->elem].bits / 8;
    uint32_t width = (uint32_t)tir_attr_int(inst, TIR_ATTR_width, 16);
    uint32_t order[TIR_MAX_RANK], dims[TIR_MAX_RANK];
    for (uint32_t d = 0; d < t->rank; d++) {
        order[d] = t->rank - 1 - d;
        dims[d] = d;
    }
    const struct tir_layout *l = tir_layout_blocked(lo->types, t->rank, t->shape, order, order,
                                                    width / bytes, 1, lo->f->threads / 32);
    struct global g = open_global(lo, inst, l);
    g.by_steps = true; // async_copy makes no copies through index tiles
    g.stepped = g.at;
    struct lower_walk *w = tir_lower_walk_new(lo, to, l, NULL, dims);
    uint32_t count = tir_layout_size(l, TIR_AXIS_REG), step = width / bytes;
    if (g.vector.count % step || tir_lower_walk_vector(w).count % step) {
        tir_lower_unsupported(lo, inst, "an asynchronous copy of this width");
        return;
    }
    // Threads that would repeat what another one copies stay out; a false predicate would write
    // zeros.
    struct tir_value *owner = tir_lower_is_owner(lo, l);
    struct tir_builder outside = lo->b;
    struct tir_inst *branch = NULL;
    if (owner) {
        branch = tir_build(&lo->b, TIR_OP_IF, &owner, 1, NULL, 0, 2);
        lo->b = tir_builder_at_end(lo->f, branch->regions[0]);
    }
    for (uint32_t r = 0; r < count; r += step) {
        struct element e = element_at(&g, r);
        struct lower_place p = tir_lower_walk_at(lo, w, r);
        struct tir_value *at = e.at;
        if (e.offset)
            at = tir_lower_add(lo, &lo->b, at, tir_const_int(lo->f, at->type, e.offset));
        struct tir_value *pred = tir_lower_and(lo, e.pred, inst->operands[TIR_COPY_PRED]);
        struct tir_value *operands[] = {p.base, p.at, g.base, at, pred};
        struct tir_inst *copy = tir_build(&lo->b, TIR_OP_CP_ASYNC, operands, 5, NULL, 0, 0);
        tir_set_int(lo->f, copy, TIR_ATTR_width, width);
        if (p.offset)
            tir_set_int(lo->f, copy, TIR_ATTR_offset, p.offset);
    }
    for (uint32_t i = 0; branch && i < branch->region_count; i++) {
        struct tir_builder end = tir_builder_at_end(lo->f, branch->regions[i]);
        tir_build(&end, TIR_OP_YIELD, NULL, 0, NULL, 0, 0);
    }
    lo->b = outside;
}
