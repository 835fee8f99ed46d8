// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Slices: of buffers, which load and store; and of values, which only add or drop dimensions.
#include "front/lower/lower.h"

static bool check_direction(struct lower *l, const struct ast_expr *e, const struct tir_value *base,
                            enum slice_use use)
{
    const struct tir_param *p = tir_param_of(l->f, base);
    if (!p)
        return true;
    const bool reads = use == SLICE_READ || use == SLICE_PIXEL;
    if (reads && p->direction == TIR_OUT)
        lower_error(l, e->span, TIR_E_DIRECTION, "`%s` is an `out` tensor and cannot be read",
                    p->name);
    else if (!reads && p->direction == TIR_IN)
        lower_error(l, e->span, TIR_E_DIRECTION, "`%s` is an `in` tensor and cannot be stored to",
                    p->name);
    else
        return true;
    lower_note(l, p->span, "declare it `%s: inout ...` to do both", p->name);
    return false;
}

// The size of dimension d when it is known at compile time.
static bool known_size(struct lower *l, const struct tir_value *base, uint32_t d, int64_t *size)
{
    if (base->type->space != TIR_SPACE_GLOBAL) {
        *size = base->type->shape[d];
        return true;
    }
    return tensor_size(l, base, d, size);
}

struct shape { // a shape that grows
    uint32_t rank;
    int64_t size[TIR_MAX_RANK];
    bool too_many;
};

static void grow(struct shape *s, int64_t size)
{
    if (s->rank == TIR_MAX_RANK)
        s->too_many = true;
    else
        s->size[s->rank++] = size;
}

static struct tir_value *lower_begin(struct lower *l, const struct ast_expr *e)
{
    struct val v = lower_expr(l, e);
    if (v.kind == VAL_INT)
        return tir_const_index(l->f, v.i);
    bool is_int = v.kind == VAL_IR && v.ir->type->space == TIR_SPACE_VALUE &&
                  tir_elem_is_int(v.ir->type->elem);
    if (is_int)
        return v.ir;
    if (v.kind != VAL_POISON)
        lower_error(l, e->span, TIR_E_SLICE, "an index must be an integer, not %s",
                    lower_val_name(l, v));
    return NULL;
}

// The stride that a slice states, which is at least 1.
static bool lower_stride(struct lower *l, const struct ast_index *index, struct slice *s,
                         uint32_t d)
{
    if (!index->stride)
        return true;
    int64_t stride;
    if (!const_int(l, index->stride, "the stride of a slice", &stride))
        return false;
    if (stride >= 1 && stride <= INT32_MAX) {
        s->stride[d] = stride;
        return true;
    }
    lower_error(l, index->stride->span, TIR_E_SLICE, "a stride of %lld; strides are 1 to %d",
                (long long)stride, INT32_MAX);
    return false;
}

static bool lower_take(struct lower *l, const struct ast_index *index, struct slice *s, uint32_t d)
{
    s->indices[d] = lower_begin(l, index->first);
    if (!s->indices[d])
        return false;
    if (s->indices[d]->type->rank) {
        lower_error(l, index->first->span, TIR_E_SLICE, "a slice begins at a scalar, not at %s",
                    lower_type_name(l, s->indices[d]->type));
        return false;
    }
    return lower_slice_size(l, index->second, s, d) && lower_stride(l, index, s, d);
}

// Is e a literal or the name of a compile-time value?
static bool is_known(struct lower *l, const struct ast_expr *e)
{
    const struct symbol *s = e->kind == AST_NAME ? scope_find(l, e->name) : NULL;
    return e->kind == AST_INT || (s && s->val.kind == VAL_INT);
}

// m:m + BM is m:+BM.
static void suggest_take(struct lower *l, const struct ast_index *index)
{
    const struct ast_expr *end = index->second;
    const struct tir_source_map *sources = &l->cx->sources;
    tir_str begin = tir_source_text(sources, index->first->span);
    bool adds = end->kind == AST_BINARY && end->op == TIR_TOK_ADD &&
                tir_str_equal(begin, tir_source_text(sources, end->a->span));
    if (adds && begin.len < 80 && !is_known(l, end->b)) {
        lower_note(l, index->span,
                   "`i:+min(n, 64)` takes n elements from i, n known at run time and at most 64");
    } else if (adds && begin.len < 80) {
        tir_str size = tir_source_text(sources, end->b->span);
        tir_fix_at(
            &l->cx->diags, index->span,
            tir_str_format(l->arena, STR_FMT ":+" STR_FMT, STR_ARG(begin), STR_ARG(size)).ptr,
            "a slice of so many elements from there");
    } else {
        lower_note(l, index->span, "`i:+n` takes n elements from i");
    }
}

static bool lower_range(struct lower *l, const struct ast_index *index, struct slice *s, uint32_t d)
{
    int64_t begin, end;
    uint32_t errors = l->cx->diags.error_count;
    if (!const_int(l, index->first, "the begin of a slice `i:j`", &begin) ||
        !const_int(l, index->second, "the end of a slice `i:j`", &end)) {
        if (l->cx->diags.error_count != errors)
            suggest_take(l, index);
        return false;
    }
    s->indices[d] = tir_const_index(l->f, begin);
    if (tir_sub_checked(end, begin, &s->box[d]) && s->box[d] >= 1) {
        bool ok = lower_stride(l, index, s, d);
        s->box[d] = (s->box[d] - 1) / s->stride[d] + 1;
        return ok;
    }
    lower_error(l, index->span, TIR_E_SLICE, "the slice %lld:%lld is empty", (long long)begin,
                (long long)end);
    return false;
}

static bool lower_all(struct lower *l, struct tir_span span, struct slice *s, uint32_t d)
{
    s->indices[d] = tir_const_index(l->f, 0);
    if (known_size(l, s->base, d, &s->box[d]))
        return true;
    lower_error(l, span, TIR_E_SLICE, "dimension %u has no compile-time size; `i:+n` takes n of it",
                d);
    return false;
}

static bool lower_one(struct lower *l, const struct ast_index *index, struct slice *s, uint32_t d)
{
    s->indices[d] = lower_begin(l, index->first);
    if (!s->indices[d])
        return false;
    s->box[d] = s->indices[d]->type->rank ? -1 : 0;
    return true;
}

// A[-1] as other languages have it: before the first element, where nothing is.
static void warn_negative(struct lower *l, const struct ast_index *index, const struct slice *s,
                          uint32_t d)
{
    const struct ast_expr *e = index->first;
    int64_t begin, size = TIR_MAX(s->box[d], 1);
    bool literal = (index->kind == AST_ONE || index->kind == AST_TAKE) && e->kind == AST_UNARY &&
                   e->a->kind == AST_INT && tir_is_const_int(s->indices[d], &begin);
    if (literal && begin < 0 && s->box[d] >= 0 && -begin >= size)
        tir_error_at(&l->cx->diags, index->span, TIR_W_SLIP,
                     "nothing is before index 0: it reads as 0, and a store there does nothing; "
                     "from the end it is `n - %lld`",
                     (long long)-begin);
}

static bool lower_dimension(struct lower *l, const struct ast_index *index, enum slice_use use,
                            struct slice *s, uint32_t d)
{
    bool ok = false;
    s->stride[d] = 1; // `:` beside slices that have one gets an index tile too
    switch (index->kind) {
    case AST_ONE:
        ok = lower_one(l, index, s, d);
        break;
    case AST_TAKE:
        ok = lower_take(l, index, s, d);
        break;
    case AST_RANGE:
        ok = lower_range(l, index, s, d);
        break;
    case AST_ALL:
        ok = lower_all(l, index->span, s, d);
        break;
    }
    if (!ok)
        return false;
    if (s->box[d] < -1 || (s->box[d] == 0 && index->kind != AST_ONE) ||
        (s->box[d] == -1 && index->kind != AST_ONE)) {
        lower_error(l, index->span, TIR_E_SLICE, "a slice of size %lld; sizes are at least 1",
                    (long long)s->box[d]);
        return false;
    }
    if (use != SLICE_PIXEL)
        warn_negative(l, index, s, d);
    return true;
}

// i[:, None], None, ...: index number `at` of `count` names its own dimension.
static tir_str own_dimension(struct lower *l, const struct ast_expr *e, uint32_t at, uint32_t count)
{
    struct tir_text text;
    tir_text_init(&text, l->arena, 0);
    tir_text_format(&text, STR_FMT "[", STR_ARG(tir_source_text(&l->cx->sources, e->span)));
    for (uint32_t i = 0; i < count; i++)
        tir_text_format(&text, "%s%s", i ? ", " : "", i == at ? ":" : "None");
    tir_text_char(&text, ']');
    return (tir_str){text.ptr, text.len};
}

// Index tiles that do not fit together, with the two ways to say what may be meant.
static bool tiles_differ(struct lower *l, const struct ast_expr *e, const struct slice *s)
{
    const struct ast_expr *tiles[TIR_MAX_RANK];
    uint32_t count = 0, d = 0;
    bool vectors = true; // names of tiles of rank 1
    struct tir_text types, outer;
    tir_text_init(&types, l->arena, 0);
    tir_text_init(&outer, l->arena, 0);
    vec_foreach(const struct ast_index, it, &e->indices) {
        if (it->kind == AST_ONE && it->first->kind == AST_NONE)
            continue;
        if (s->box[d++] >= 0)
            continue;
        tir_text_format(&types, "%s%s", count ? " and " : "",
                        lower_type_name(l, s->indices[d - 1]->type));
        vectors &= s->indices[d - 1]->type->rank == 1 && it->first->kind == AST_NAME;
        tiles[count++] = it->first;
    }
    lower_error(l, e->span, TIR_E_SHAPE_MISMATCH,
                "index tiles are read together, element by element, and %s do not fit", types.ptr);
    for (uint32_t i = 0; vectors && i < count; i++)
        tir_text_format(&outer, "%s" STR_FMT, i ? ", " : "",
                        STR_ARG(own_dimension(l, tiles[i], i, count)));
    lower_note(l, e->span,
               "`X[i, j]` takes tiles of one shape, or of size 1 along a dimension; every pair of "
               "indices is `X[%s]`",
               vectors ? outer.ptr : "i[:, None], j[None, :]");
    return false;
}

// The shapes that the indices name: of the tile, and with the dimensions that None adds.
static bool slice_shapes(struct lower *l, const struct ast_expr *e, const struct slice *s,
                         uint32_t given, struct shape *type, struct shape *shown)
{
    struct tir_type tiles;
    if (given && !tir_index_shape(s->indices, s->box, given, &tiles))
        return tiles_differ(l, e, s);
    uint32_t d = 0;
    bool placed = false;
    vec_foreach(const struct ast_index, it, &e->indices) {
        if (it->kind == AST_ONE && it->first->kind == AST_NONE) {
            grow(shown, 1);
            continue;
        }
        int64_t box = s->box[d++];
        uint32_t count = box > 0 ? 1 : box < 0 && !placed ? tiles.rank : 0;
        placed |= box < 0;
        for (uint32_t i = 0; i < count; i++) {
            grow(type, box > 0 ? box : tiles.shape[i]);
            grow(shown, box > 0 ? box : tiles.shape[i]);
        }
    }
    return true;
}

static bool wrong_rank(struct lower *l, const struct ast_expr *e, const struct tir_value *base,
                       uint32_t given)
{
    lower_error(l, e->span, TIR_E_RANK, "%u indices for %u dimensions", given, base->type->rank);
    struct tir_span declared;
    const char *name = tensor_name(l, base, &declared);
    if (name)
        lower_note(l, declared, "`%s` is declared here", name);
    return false;
}

static uint32_t count_indices(const struct ast_expr *e)
{
    uint32_t given = 0;
    vec_foreach(const struct ast_index, it, &e->indices)
        given += it->kind != AST_ONE || it->first->kind != AST_NONE;
    return given;
}

// A warp has some lanes of each block of rows in tensor memory, so whole columns move.
static bool suits_lanes(struct lower *l, const struct ast_expr *e, const struct slice *s,
                        enum slice_use use)
{
    const uint32_t rank = s->type->rank, from = s->base->type->rank;
    if (s->base->type->space != TIR_SPACE_TMEM)
        return true;
    const int64_t rows = from >= 2 ? s->base->type->shape[from - 2] : 0;
    if (tir_tmem_is_scales(s->base->type)) {
        if (use == SLICE_VIEW && s->box[from - 2] > 0 && s->box[from - 1] > 0 &&
            !lower_is_limited(s))
            return true;
        lower_error(l, e->span, TIR_E_SLICE,
                    use == SLICE_VIEW
                        ? "a part of scales in tensor memory has rows and columns: [r:+m, c:+n]"
                        : "scales in tensor memory are written by `copy_async` from a shared "
                          "buffer, and read by products");
        return false;
    }
    const bool whole =
        rank >= 2 && from >= 2 && s->type->shape[rank - 2] == rows && s->box[from - 2] == rows;
    if (whole && (rank == 2 || use == SLICE_VIEW) && !lower_is_limited(s))
        return true;
    lower_error(l, e->span, TIR_E_SLICE,
                "a part of tensor memory has all %lld rows and some columns: [0:+%lld, c:+n]",
                (long long)rows, (long long)rows);
    return false;
}

// A tile is spread over the threads, a local buffer is not.
static bool suits_threads(struct lower *l, const struct ast_expr *e, const struct slice *s,
                          enum slice_use use)
{
    if (use == SLICE_VIEW || s->base->type->space != TIR_SPACE_LOCAL || !s->type->rank)
        return true;
    lower_error(l, e->span, TIR_E_TYPE,
                "each thread has a local buffer of its own, so it is read and written one element "
                "at a time, not as %s",
                lower_type_name(l, s->type));
    return false;
}

static bool slice_of(struct lower *l, const struct ast_expr *e, struct tir_value *base,
                     enum slice_use use, struct slice *s)
{
    *s = (struct slice){.span = e->span, .base = base};
    uint32_t rank = base->type->rank, given = count_indices(e), d = 0;
    // Buffers of the CTA may leave out trailing dimensions: their sizes are known.
    if (given > rank || (given < rank && base->type->space == TIR_SPACE_GLOBAL))
        return wrong_rank(l, e, base, given);
    if (use != SLICE_VIEW && !check_direction(l, e, base, use))
        return false;
    if (use != SLICE_VIEW && base->type->elem == TIR_MBARRIER) {
        lower_error(l, e->span, TIR_E_ROLE, LOWER_NO_VALUE);
        return false;
    }
    struct shape type = {0}, shown = {0};
    bool ok = true;
    vec_foreach(const struct ast_index, it, &e->indices) {
        if (it->kind != AST_ONE || it->first->kind != AST_NONE)
            ok &= lower_dimension(l, it, use, s, d++);
    }
    ok = ok && lower_strides(l, e, s, given) && slice_shapes(l, e, s, given, &type, &shown);
    for (; ok && d < rank; d++) {
        ok = lower_all(l, e->span, s, d);
        grow(&type, s->box[d]);
        grow(&shown, s->box[d]);
    }
    if (!ok)
        return false;
    if (type.too_many || shown.too_many) {
        lower_error(l, e->span, TIR_E_RANK, "the slice has more than %d dimensions", TIR_MAX_RANK);
        return false;
    }
    s->type = lower_tile_type(l, e->span, base->type->elem, type.rank, type.size);
    s->shown = lower_tile_type(l, e->span, base->type->elem, shown.rank, shown.size);
    return s->type && s->shown && suits_threads(l, e, s, use) && suits_lanes(l, e, s, use);
}

// A buffer alone stands for all of it.
static bool whole_buffer(struct lower *l, const struct ast_expr *e, struct tir_value *base,
                         enum slice_use use, struct slice *s)
{
    *s = (struct slice){.span = e->span, .base = base};
    if (!check_direction(l, e, base, use))
        return false;
    for (uint32_t d = 0; d < base->type->rank; d++)
        if (!lower_all(l, e->span, s, d))
            return false;
    s->type = s->shown = lower_tile_type(l, e->span, base->type->elem, base->type->rank, s->box);
    return s->type && suits_threads(l, e, s, use);
}

static bool is_buffer(struct val v)
{
    return v.kind == VAL_IR && tir_type_is_buffer(v.ir->type);
}

bool lower_slice(struct lower *l, const struct ast_expr *e, enum slice_use use, struct slice *s)
{
    const struct ast_expr *of = e->kind == AST_INDEX ? e->base : e;
    struct val base = lower_expr(l, of);
    if (is_buffer(base))
        return e->kind == AST_INDEX ? slice_of(l, e, base.ir, use, s)
                                    : whole_buffer(l, e, base.ir, use, s);
    if (base.kind == VAL_POISON)
        return false;
    lower_error(l, of->span, TIR_E_TYPE, "expected a slice of a tensor or buffer, not %s",
                lower_val_name(l, base));
    if (use == SLICE_WRITE && base.kind == VAL_IR && base.ir->type->rank)
        lower_note(l, of->span,
                   "a tile is a value; `x = where(index(x, 0) == i, v, x)` changes some elements");
    return false;
}

bool lower_is_buffer_expr(struct lower *l, const struct ast_expr *e)
{
    if (e->kind == AST_INDEX)
        e = e->base;
    if (e->kind != AST_NAME)
        return false;
    const struct symbol *s = scope_find(l, e->name);
    return s && is_buffer(s->val);
}

// Instructions on slices.

static struct tir_inst *build_slice(struct lower *l, enum tir_op op, const struct slice *s,
                                    struct tir_value *const *fixed, uint32_t fixed_count,
                                    const struct tir_type *type)
{
    struct tir_value *operands[TIR_ATOMIC_EXPECTED + 1 + 1 + TIR_MAX_RANK]; // of all, at most
    uint32_t n = 0, rank = s->base->type->rank;
    assert(fixed_count + 1 + rank <= TIR_COUNT_OF(operands));
    for (uint32_t i = 0; i < fixed_count; i++)
        operands[n++] = fixed[i];
    operands[n++] = s->base;
    for (uint32_t d = 0; d < rank; d++)
        operands[n++] = s->indices[d];
    struct tir_inst *inst = tir_build(&l->b, op, operands, n, &type, type ? 1 : 0, 0);
    tir_set_list(l->f, inst, TIR_ATTR_box, s->box, rank);
    return inst;
}

struct tir_value *build_load(struct lower *l, const struct slice *s, struct tir_value *pad,
                             struct tir_value *mask)
{
    struct tir_value *fixed[] = {[TIR_LOAD_PAD] = pad, [TIR_LOAD_MASK] = lower_limits(l, s, mask)};
    struct tir_value *v = tir_result(build_slice(l, TIR_OP_LOAD, s, fixed, 2, s->type));
    return build_reshape(l, v, s->shown->rank, s->shown->shape);
}

void build_store(struct lower *l, const struct slice *s, struct tir_value *value,
                 struct tir_value *mask)
{
    value = build_reshape(l, value, s->type->rank, s->type->shape);
    struct tir_value *fixed[] = {
        [TIR_STORE_VALUE] = value, [TIR_STORE_MASK] = lower_limits(l, s, mask)};
    build_slice(l, TIR_OP_STORE, s, fixed, 2, NULL);
}

struct tir_inst *build_atomic(struct lower *l, const struct slice *s, struct tir_value *value,
                              struct tir_value *mask, enum tir_word kind)
{
    struct tir_value *fixed[] = {[TIR_STORE_VALUE] = value,
                                 [TIR_STORE_MASK] = lower_limits(l, s, mask),
                                 [TIR_ATOMIC_EXPECTED] = NULL};
    const struct tir_type *type = tir_type_with_layout(l->cx->types, s->type, value->type->layout);
    struct tir_inst *inst = build_slice(l, TIR_OP_ATOMIC, s, fixed, TIR_COUNT_OF(fixed), type);
    tir_set_word(l->f, inst, TIR_ATTR_kind, kind);
    return inst;
}

struct tir_value *lower_view(struct lower *l, const struct ast_expr *e)
{
    struct slice s;
    if (e->kind != AST_INDEX) {
        struct val v = lower_expr(l, e);
        return v.kind == VAL_IR ? v.ir : NULL;
    }
    if (!lower_slice(l, e, SLICE_VIEW, &s))
        return NULL;
    struct tir_type t = *s.type;
    t.space = s.base->type->space;
    if (t.space == TIR_SPACE_GLOBAL || s.type != s.shown || lower_is_limited(&s)) {
        lower_error(l, e->span, TIR_E_TYPE,
                    "expected a part of a shared or local buffer, or of one in tensor memory");
        return NULL;
    }
    for (uint32_t d = 0; d < s.base->type->rank; d++)
        if (s.box[d] < 0) {
            lower_error(l, e->span, TIR_E_SLICE, "a part of a buffer has no index tiles");
            return NULL;
        }
    const struct tir_type *type = tir_type_get(l->cx->types, &t);
    return tir_result(build_slice(l, TIR_OP_VIEW, &s, NULL, 0, type));
}

struct val lower_part(struct lower *l, const struct ast_expr *e)
{
    bool transposed = e->kind == AST_FIELD && strcmp(e->field, "T") == 0;
    const struct ast_expr *of = transposed ? e->base : e;
    if (of->kind != AST_INDEX || !lower_is_buffer_expr(l, of))
        return lower_expr(l, e);
    struct tir_value *view = lower_view(l, of);
    if (!view || !transposed)
        return val_ir(view);
    if (view->type->rank >= 2)
        return val_ir(build_transpose(l, view));
    lower_error(l, e->span, TIR_E_RANK, "`.T` swaps the last two dimensions; %s has fewer",
                lower_type_name(l, view->type));
    return val_poison();
}

struct tir_value *lower_mask(struct lower *l, const struct ast_expr *e, const struct slice *s)
{
    struct val v = lower_expr(l, e);
    struct tir_value *mask = convert_elem(l, e->span, v, TIR_BOOL);
    if (!mask || mask->type->rank == 0)
        return mask;
    mask = convert_shape(l, e->span, mask, s->shown);
    return mask ? build_reshape(l, mask, s->type->rank, s->type->shape) : NULL;
}

// Indexing a value.

// The part begins and ends inside, at compile-time indices; *whole: it is all of the value. False:
// something is known at run time alone.
static bool is_constant_part(const struct slice *s, bool *whole)
{
    *whole = true;
    for (uint32_t d = 0; d < s->base->type->rank; d++) {
        int64_t begin;
        if (s->box[d] < 0 || s->limit[d] || !tir_is_const_int(s->indices[d], &begin))
            return false;
        *whole &= begin == 0 && TIR_MAX(s->box[d], 1) == s->base->type->shape[d];
    }
    return true;
}

static bool lies_inside(struct lower *l, const struct slice *s)
{
    for (uint32_t d = 0; d < s->base->type->rank; d++) {
        int64_t begin = 0, size = s->base->type->shape[d], count = TIR_MAX(s->box[d], 1);
        if (s->box[d] < 0 || s->limit[d] || !tir_is_const_int(s->indices[d], &begin) ||
            (begin >= 0 && begin < size && count <= size - begin))
            continue;
        lower_error(l, s->span, TIR_E_SLICE,
                    "elements %lld to %lld of dimension %u, which has size %lld", (long long)begin,
                    (long long)begin + count - 1, d, (long long)size);
        return false;
    }
    return true;
}

struct tir_value *build_part(struct lower *l, struct tir_value *v, const int64_t *start,
                             const int64_t *size)
{
    uint32_t rank = v->type->rank;
    const struct tir_type *type = tir_type_tile(l->cx->types, v->type->elem, rank, size);
    if (v->kind == TIR_VALUE_CONST)
        return build_splat(l, tir_const_element(l->f, v), type);
    struct tir_value *part = build_one(l, TIR_OP_EXTRACT, type, &v, 1);
    tir_set_list(l->f, part->def, TIR_ATTR_start, start, rank);
    return part;
}

static struct tir_value *build_extract(struct lower *l, const struct slice *s)
{
    int64_t start[TIR_MAX_RANK], size[TIR_MAX_RANK];
    uint32_t rank = s->base->type->rank;
    for (uint32_t d = 0; d < rank; d++) {
        tir_is_const_int(s->indices[d], &start[d]);
        size[d] = TIR_MAX(s->box[d], 1);
    }
    return build_part(l, s->base, start, size);
}

// A part of a value: what threads hold where it is known at compile time; else it goes through a
// shared buffer, where other threads find it.
static struct val index_value(struct lower *l, const struct ast_expr *e, struct tir_value *v)
{
    struct slice s;
    bool whole;
    uint32_t given = count_indices(e);
    if (given != v->type->rank) {
        wrong_rank(l, e, v, given);
        return val_poison();
    }
    if (!slice_of(l, e, v, SLICE_READ, &s) || !lies_inside(l, &s))
        return val_poison();
    if (is_constant_part(&s, &whole))
        return val_ir(
            build_reshape(l, whole ? v : build_extract(l, &s), s.shown->rank, s.shown->shape));
    s.base = lower_staged(l, v);
    return val_ir(build_load(l, &s, NULL, NULL));
}

struct val lower_index(struct lower *l, const struct ast_expr *e)
{
    struct val base = lower_expr(l, e->base);
    struct slice s;
    if (is_buffer(base))
        return slice_of(l, e, base.ir, SLICE_READ, &s) ? val_ir(build_load(l, &s, NULL, NULL))
                                                       : val_poison();
    if (base.kind == VAL_IR)
        return index_value(l, e, base.ir);
    if (base.kind != VAL_POISON)
        lower_error(l, e->base->span, TIR_E_TYPE, "%s cannot be indexed", lower_val_name(l, base));
    return val_poison();
}
