// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Built-ins that rearrange the elements of values: take, flip, concat, interleave, split, reshape.
//
// Elements that change places change threads, so they go through a shared buffer of the compiler's
// own: stored as they are, and loaded through the indices that are wanted. A reshape whose sizes
// are not padded is an operation, of which the layout pass knows whether they have to.
//
//     flip(x, axis = 0)    of x: f32[64, 32]
// is
//     shared s: f32[64, 32];   s[:, :] = x;   s[63 - iota(64), :]
#include "front/lower/builtin.h"

struct tir_value *lower_staging(struct lower *l, const struct tir_type *tile)
{
    struct tir_type t = *tile;
    t.space = TIR_SPACE_SHARED;
    t.layout = NULL;
    struct tir_value *buffer = build_one(l, TIR_OP_ALLOC, tir_type_get(l->cx->types, &t), NULL, 0);
    tir_map_set(&l->staging, tir_map_key(buffer->def), buffer);
    buffer->name = tir_intern_cstr(&l->cx->names, "rearranged");
    return buffer;
}

// All of the buffer.
static struct slice whole_of(struct lower *l, struct tir_value *buffer)
{
    struct slice s = {.span = l->b.span, .base = buffer};
    const struct tir_type *t = buffer->type;
    for (uint32_t d = 0; d < t->rank; d++) {
        s.indices[d] = tir_const_index(l->f, 0);
        s.box[d] = t->shape[d];
    }
    s.type = s.shown = tir_type_tile(l->cx->types, t->elem, t->rank, t->shape);
    return s;
}

// Is the buffer filled wherever the builder's position is reached?
static bool is_filled_here(const struct lower *l, const struct tir_value *buffer)
{
    const struct tir_block *block = l->b.block;
    while (block && block != buffer->def->block)
        block = block->owner ? block->owner->block : NULL;
    return block;
}

struct tir_value *lower_staged(struct lower *l, struct tir_value *tile)
{
    struct tir_value *buffer = tir_map_get(&l->staged, tir_map_key(tile));
    if (buffer && is_filled_here(l, buffer))
        return buffer;
    buffer = lower_staging(l, tile->type);
    if (tile->name)
        buffer->name =
            tir_intern(&l->cx->names, tir_str_format(l->arena, "%s_rearranged", tile->name));
    struct slice s = whole_of(l, buffer);
    build_store(l, &s, tile, NULL);
    tir_map_set(&l->staged, tir_map_key(tile), buffer);
    return buffer;
}

// The tile that is rearranged. NULL: reported.
static struct tir_value *lower_tile(struct lower *l, struct call *c, const struct ast_expr *e)
{
    struct val v = lower_expr(l, e);
    if (!convert_is_value(l, e->span, v))
        return NULL;
    if (v.kind == VAL_IR && v.ir->type->rank)
        return v.ir;
    lower_error(l, e->span, TIR_E_RANK, "`%s` rearranges the elements of a tile, not of %s",
                c->name, lower_val_name(l, v));
    if (v.kind == VAL_INT && e != call_arg(c, 0))
        lower_note(l, e->span, "tiles may follow, so an axis is named: `axis = %lld`",
                   (long long)v.i);
    return NULL;
}

static bool give(struct lower *l, val_list *out, struct tir_value *v)
{
    if (v)
        vec_push(l->arena, out, val_ir(v));
    return v;
}

// The integers of an argument, for one dimension of a tile. NULL: reported.
static struct tir_value *lower_indices(struct lower *l, const struct ast_expr *e)
{
    struct tir_value *v = convert_default(l, e->span, lower_expr(l, e));
    if (!v || tir_elem_is_int(v->type->elem))
        return v;
    lower_error(l, e->span, TIR_E_SLICE, "an index must be an integer, not %s",
                lower_type_name(l, v->type));
    return NULL;
}

// x with index in the place of dimension `axis`. NULL: reported.
static struct tir_value *build_take(struct lower *l, struct tir_span span, struct tir_value *x,
                                    struct tir_value *index, uint32_t axis)
{
    struct slice s = whole_of(l, lower_staged(l, x));
    int64_t shape[2 * TIR_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < x->type->rank; d++) {
        for (uint32_t i = 0; d == axis && i < index->type->rank; i++)
            shape[rank++] = index->type->shape[i];
        if (d != axis)
            shape[rank++] = x->type->shape[d];
    }
    s.indices[axis] = index;
    s.box[axis] = index->type->rank ? -1 : 0;
    if (rank > TIR_MAX_RANK) {
        lower_error(l, span, TIR_E_RANK, "%u dimensions; the limit is %d", rank, TIR_MAX_RANK);
        return NULL;
    }
    s.type = s.shown = lower_tile_type(l, span, x->type->elem, rank, shape);
    return s.type ? build_load(l, &s, NULL, NULL) : NULL;
}

// take(x, index, axis)
bool builtin_take(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    uint32_t axis;
    struct tir_value *x = lower_tile(l, c, call_arg(c, 0));
    struct tir_value *index = x ? lower_indices(l, call_arg(c, 1)) : NULL;
    return index && builtin_axis_of(l, c, 2, x->type, &axis) &&
           give(l, out, build_take(l, c->e->span, x, index, axis));
}

static struct tir_value *build_index(struct lower *l, const struct tir_type *like, uint32_t axis)
{
    int64_t shape[TIR_MAX_RANK];
    for (uint32_t d = 0; d < like->rank; d++)
        shape[d] = d == axis ? like->shape[d] : 1;
    const struct tir_type *type = tir_type_tile(l->cx->types, TIR_I32, like->rank, shape);
    return build_iota(l, type, axis);
}

// take_along(x, index, axis): each element has an index of its own.
bool builtin_take_along(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    uint32_t axis;
    struct tir_value *x = lower_tile(l, c, call_arg(c, 0));
    struct tir_value *index = x ? lower_indices(l, call_arg(c, 1)) : NULL;
    if (!index || !builtin_axis_of(l, c, 2, x->type, &axis))
        return false;
    const struct tir_type *t = x->type;
    bool fits = index->type->rank == t->rank;
    int64_t shape[TIR_MAX_RANK];
    for (uint32_t d = 0; fits && d < t->rank; d++) {
        fits = d == axis || index->type->shape[d] == t->shape[d] || index->type->shape[d] == 1;
        shape[d] = d == axis ? index->type->shape[d] : t->shape[d];
    }
    if (!fits) {
        lower_error(l, c->e->span, TIR_E_SHAPE_MISMATCH,
                    "`take_along` needs an index for each element but along axis %u; %s does not "
                    "fit %s",
                    axis, lower_type_name(l, index->type), lower_type_name(l, t));
        return false;
    }
    struct slice s = whole_of(l, lower_staged(l, x));
    for (uint32_t d = 0; d < t->rank; d++) {
        s.indices[d] = d == axis ? index : build_index(l, t, d);
        s.box[d] = -1;
    }
    s.type = s.shown = lower_tile_type(l, c->e->span, t->elem, t->rank, shape);
    return s.type && give(l, out, build_load(l, &s, NULL, NULL));
}

// flip(x, axis)
bool builtin_flip(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    uint32_t axis;
    struct tir_value *x = lower_tile(l, c, call_arg(c, 0));
    if (!x || !builtin_axis_of(l, c, 1, x->type, &axis))
        return false;
    int64_t size = x->type->shape[axis];
    const struct tir_type *type = tir_type_tile(l->cx->types, TIR_I32, 1, &size);
    struct tir_value *down =
        tir_binary(&l->b, TIR_OP_SUB, tir_const_int(l->f, type, size - 1), build_iota(l, type, 0));
    return give(l, out, build_take(l, c->e->span, x, down, axis));
}

// concat(x, y, ..., axis) and interleave(x, y, ..., axis)

// The operands in one element type, of one shape but for the axis.
static bool lower_parts(struct lower *l, struct call *c, struct val *parts)
{
    struct unify u = {tir_str_format(l->arena, "`%s`", c->name).ptr, c->e->span, TIR_CLASS_ANY,
                      TIR_NONE, NULL};
    for (uint32_t i = 0; i < c->positional; i++)
        if ((parts[i] = val_ir(lower_tile(l, c, call_arg(c, i)))).kind != VAL_IR)
            return false;
    return convert_unify_elems(l, &u, parts, c->positional);
}

static bool parts_fit(struct lower *l, struct call *c, const struct val *parts, uint32_t axis,
                      bool interleaves)
{
    const struct tir_type *t = parts[0].ir->type;
    for (uint32_t i = 1; i < c->positional; i++) {
        const struct tir_type *other = parts[i].ir->type;
        bool fits = other->rank == t->rank;
        for (uint32_t d = 0; fits && d < t->rank; d++)
            fits = other->shape[d] == t->shape[d] || (d == axis && !interleaves);
        if (fits)
            continue;
        lower_error(l, c->e->span, TIR_E_SHAPE_MISMATCH, "`%s` along axis %u of %s and %s", c->name,
                    axis, lower_type_name(l, t), lower_type_name(l, other));
        return false;
    }
    return true;
}

// Where operand i goes: after all before it, or every count-th place.
static void place_part(struct lower *l, struct slice *s, const struct tir_value *part,
                       uint32_t axis, int64_t at, int64_t step)
{
    int64_t size = part->type->shape[axis];
    if (step == 1) {
        s->indices[axis] = tir_const_index(l->f, at);
        s->box[axis] = size;
    } else {
        const struct tir_type *type = tir_type_tile(l->cx->types, TIR_I32, 1, &size);
        struct tir_value *scaled =
            tir_binary(&l->b, TIR_OP_MUL, build_iota(l, type, 0), tir_const_int(l->f, type, step));
        s->indices[axis] = tir_binary(&l->b, TIR_OP_ADD, scaled, tir_const_int(l->f, type, at));
        s->box[axis] = -1;
    }
    s->type = s->shown = tir_type_with_layout(l->cx->types, part->type, NULL);
}

// Parts in turns are those of a new dimension after the axis, counted in one with it: threads that
// have the element of one part have those of the others.
//
//     interleave(x, y, axis = 1)    of x, y: f32[64, 32]
// is
//     reshape(where(index == 0, x[:, :, None], y[:, :, None]), 64, 64)    of f32[64, 32, 2]
static struct tir_value *in_turns(struct lower *l, const struct val *parts, uint32_t count,
                                  uint32_t axis, const struct tir_type *whole)
{
    const struct tir_type *t = parts[0].ir->type;
    struct tir_value *all = NULL;
    int64_t one[TIR_MAX_RANK], each[TIR_MAX_RANK];
    if (t->rank == TIR_MAX_RANK || !tir_is_pow2(count) || !tir_is_pow2((uint64_t)t->shape[axis]))
        return NULL;
    for (uint32_t d = 0; d <= t->rank; d++) {
        one[d] = d == axis + 1 ? 1 : t->shape[d - (d > axis)];
        each[d] = d == axis + 1 ? count : one[d];
    }
    const struct tir_type *type = tir_type_tile(l->cx->types, t->elem, t->rank + 1, each);
    const struct tir_type *index = tir_type_with_elem(l->cx->types, type, TIR_I32);
    for (uint32_t i = count; i-- > 0;) {
        struct tir_value *v = parts[i].ir;
        if (v->kind == TIR_VALUE_CONST)
            v = build_reshape(l, v, type->rank, each);
        else
            v = build_splat(l, build_reshape(l, v, type->rank, one), type);
        struct tir_value *at = all ? build_iota(l, index, axis + 1) : NULL;
        struct tir_value *operands[] = {
            at ? tir_binary(&l->b, TIR_OP_EQ, at, tir_const_int(l->f, index, i)) : NULL, v, all};
        all = all ? build_one(l, TIR_OP_WHERE, type, operands, 3) : v;
    }
    return build_reshape(l, all, whole->rank, whole->shape);
}

bool builtin_concat(struct lower *l, struct call *c, int which, val_list *out)
{
    struct val parts[8];
    uint32_t axis, count = c->positional;
    if (!lower_parts(l, c, parts))
        return false;
    struct tir_type whole = *parts[0].ir->type;
    if (!builtin_axis_of(l, c, count, &whole, &axis))
        return false;
    if (!parts_fit(l, c, parts, axis, which))
        return false;
    whole.shape[axis] = 0;
    for (uint32_t i = 0; i < count; i++)
        whole.shape[axis] += parts[i].ir->type->shape[axis];
    whole.layout = NULL;
    if (!lower_tile_fits(l, c->e->span, &whole))
        return false;
    const bool singles = whole.shape[axis] == count; // then one after the other is in turns
    struct tir_value *turns = which || singles ? in_turns(l, parts, count, axis, &whole) : NULL;
    if (turns)
        return give(l, out, turns);
    struct slice all = whole_of(l, lower_staging(l, &whole));
    int64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct slice s = all;
        place_part(l, &s, parts[i].ir, axis, which ? i : at, which ? count : 1);
        build_store(l, &s, parts[i].ir, NULL);
        at += parts[i].ir->type->shape[axis];
    }
    return give(l, out, build_load(l, &all, NULL, NULL));
}

// let a, b = split(x, axis, parts = 2)
bool builtin_split(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    struct tir_value *x = lower_tile(l, c, call_arg(c, 0));
    const struct ast_expr *e = builtin_named(c, NAMED_parts);
    uint32_t axis;
    int64_t parts = 2;
    if (!x || !builtin_axis_of(l, c, 1, x->type, &axis) ||
        (e && !const_int(l, e, "the number of parts", &parts)))
        return false;
    int64_t size = x->type->shape[axis];
    if (parts < 1 || size % parts) {
        lower_error(l, c->e->span, TIR_E_ARGUMENTS,
                    "`split` divides an axis into equal parts; %lld of size %lld are none",
                    (long long)parts, (long long)size);
        return false;
    }
    struct tir_type t = *x->type;
    t.shape[axis] = size / parts;
    for (int64_t i = 0; i < parts; i++) {
        int64_t start[TIR_MAX_RANK] = {0};
        start[axis] = i * t.shape[axis];
        vec_push(l->arena, out, val_ir(build_part(l, x, start, t.shape)));
    }
    return true;
}

// reshape(x, m, n, ...): the same elements, row by row, in another shape.

// The index of each element of `to` along dimension d of `from`.
static struct tir_value *index_along(struct lower *l, struct tir_value *flat,
                                     const struct tir_type *from, uint32_t d)
{
    int64_t inner = 1;
    for (uint32_t i = d + 1; i < from->rank; i++)
        inner *= from->shape[i];
    struct tir_value *at = flat;
    if (inner > 1)
        at = tir_binary(&l->b, TIR_OP_DIV, at, tir_const_int(l->f, flat->type, inner));
    return d ? tir_binary(&l->b, TIR_OP_REM, at, tir_const_int(l->f, flat->type, from->shape[d]))
             : at;
}

// The number of each element of a tile of this shape, row by row.
static struct tir_value *number_elements(struct lower *l, const struct tir_type *like)
{
    const struct tir_type *type = tir_type_tile(l->cx->types, TIR_I32, like->rank, like->shape);
    struct tir_value *flat = NULL;
    int64_t stride = 1;
    for (uint32_t d = like->rank; d-- > 0; stride *= like->shape[d]) {
        struct tir_value *at = tir_binary(&l->b, TIR_OP_MUL, build_iota(l, type, d),
                                          tir_const_int(l->f, type, stride));
        flat = flat ? tir_binary(&l->b, TIR_OP_ADD, flat, at) : at;
    }
    return flat;
}

// Does each group of dimensions that has as many elements in both begin with the only one that may
// be no power of two? Then they are padded alike, and digits of layouts are those of both.
static bool shares_digits(const struct tir_type *a, const struct tir_type *b)
{
    for (uint32_t i = 0, j = 0; i < a->rank || j < b->rank;) {
        uint32_t first[] = {i, j};
        tir_shape_group(a, &i, b, &j);
        if (i - first[0] == 1 && j - first[1] == 1)
            continue;
        for (uint32_t d = first[0] + 1; d < i; d++)
            if (!tir_is_pow2((uint64_t)a->shape[d]))
                return false;
        for (uint32_t d = first[1] + 1; d < j; d++)
            if (!tir_is_pow2((uint64_t)b->shape[d]))
                return false;
    }
    return true;
}

bool builtin_reshape(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    int64_t shape[TIR_MAX_RANK];
    uint32_t rank = c->positional - 1;
    struct tir_value *x = lower_tile(l, c, call_arg(c, 0));
    for (uint32_t d = 0; x && d < rank; d++)
        if (!const_int(l, call_arg(c, 1 + d), "the size of a tile", &shape[d]))
            return false;
    const struct tir_type *type =
        x ? lower_tile_type(l, c->e->span, x->type->elem, rank, shape) : NULL;
    if (!type)
        return false;
    if (tir_type_count(type) != tir_type_count(x->type)) {
        lower_error(l, c->e->span, TIR_E_SHAPE_MISMATCH,
                    "`reshape` keeps the number of elements; %s has %lld, %s %lld",
                    lower_type_name(l, x->type), (long long)tir_type_count(x->type),
                    lower_type_name(l, type), (long long)tir_type_count(type));
        return false;
    }
    if (x->kind == TIR_VALUE_CONST || tir_type_differs_in_ones(x->type, type) ||
        shares_digits(x->type, type))
        return give(l, out, build_reshape(l, x, rank, shape));
    struct slice s = whole_of(l, lower_staged(l, x));
    struct tir_value *flat = number_elements(l, type);
    for (uint32_t d = 0; d < x->type->rank; d++) {
        s.indices[d] = index_along(l, flat, x->type, d);
        s.box[d] = -1;
    }
    s.type = s.shown = type;
    return give(l, out, build_load(l, &s, NULL, NULL));
}
