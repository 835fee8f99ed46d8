// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Types and layouts, once their sizes are compile-time integers.
#include "front/lower/lower.h"

#include "front/parse/foreign.h"

enum { MAX_TILE_ELEMENTS = 1 << 20 };

bool lower_elem(struct lower *l, const struct ast_type *t, enum tir_elem *out)
{
    *out = t->elem;
    if (t->elem != TIR_NONE)
        return true;
    struct symbol *s = scope_find(l, t->name);
    if (!s) {
        lower_error(l, t->span, TIR_E_NAME, "unknown type `%.100s`", t->name);
        struct tir_span word = {t->span.begin, t->span.begin + (uint32_t)strlen(t->name)};
        if (t->space == TIR_SPACE_VALUE)
            tir_foreign_help(&l->cx->diags, word, t->name);
        return false;
    }
    s->used = true;
    *out = s->val.elem;
    if (s->val.kind == VAL_ELEM)
        return true;
    if (s->val.kind != VAL_POISON)
        lower_error(l, t->span, TIR_E_TYPE, "`%s` is %s, not a type", t->name,
                    lower_val_name(l, s->val));
    return false;
}

bool lower_tile_fits(struct lower *l, struct tir_span span, const struct tir_type *t)
{
    int64_t count = 1;
    if (t->rank > TIR_MAX_RANK) {
        lower_error(l, span, TIR_E_RANK, "%u dimensions; the limit is %d", t->rank, TIR_MAX_RANK);
        return false;
    }
    for (uint32_t d = 0; d < t->rank; d++) {
        if (t->shape[d] < 1) {
            lower_error(l, span, TIR_E_SLICE, "a dimension of size %lld; sizes are at least 1",
                        (long long)t->shape[d]);
            return false;
        }
        if (!tir_mul_checked(count, t->shape[d], &count) || count > MAX_TILE_ELEMENTS) {
            lower_error(l, span, TIR_E_TILE_SIZE, "a tile has more than %d elements",
                        MAX_TILE_ELEMENTS);
            return false;
        }
    }
    return true;
}

const struct tir_type *lower_tile_type(struct lower *l, struct tir_span span, enum tir_elem elem,
                                       uint32_t rank, const int64_t *shape)
{
    struct tir_type t = {.elem = elem, .rank = rank};
    for (uint32_t d = 0; d < rank && d < TIR_MAX_RANK; d++)
        t.shape[d] = shape[d];
    return lower_tile_fits(l, span, &t) ? tir_type_get(l->cx->types, &t) : NULL;
}

// Threads of a warpgroup: lanes, or lanes of one warp after the other. 0: neither.
static uint32_t split_threads(uint32_t extent, uint32_t stride, struct tir_iter *to)
{
    const uint64_t span = (uint64_t)extent * stride;
    if (stride % 32 == 0)
        to[0] = (struct tir_iter){extent, stride / 32, TIR_AXIS_WARP};
    else if (span <= 32)
        to[0] = (struct tir_iter){extent, stride, TIR_AXIS_LANE};
    else if (32 % stride || span % 32)
        return 0;
    else
        to[0] = (struct tir_iter){(uint32_t)(span / 32), 1, TIR_AXIS_WARP};
    if (stride % 32 == 0 || span <= 32)
        return 1;
    to[1] = (struct tir_iter){32 / stride, stride, TIR_AXIS_LANE};
    return 2;
}

// The iterators of the machine's axes that one of the language's stands for: their number, at most
// 2, or 0 if there are none.
static uint32_t lower_iter(enum ast_axis axis, uint32_t extent, uint32_t stride,
                           struct tir_iter *to)
{
    switch (axis) {
    case AST_AXIS_NONE:
        *to = (struct tir_iter){extent, stride, TIR_AXIS_REG};
        return 1;
    case AST_AXIS_TMEM_LANE:
        *to = (struct tir_iter){extent, stride << TMEM_LANE_SHIFT, TIR_AXIS_REG};
        return stride < TIR_TMEM_LANES;
    case AST_AXIS_TMEM_COLUMN:
        *to = (struct tir_iter){extent, stride, TIR_AXIS_REG};
        return stride < TIR_TMEM_COLUMNS;
    case AST_AXIS_LANE:
        *to = (struct tir_iter){extent, stride, TIR_AXIS_LANE};
        return 1;
    case AST_AXIS_WARP:
        *to = (struct tir_iter){extent, stride, TIR_AXIS_WARP};
        return 1;
    case AST_AXIS_WARPGROUP:
        *to = (struct tir_iter){extent, 4 * stride, TIR_AXIS_WARP};
        return stride <= UINT32_MAX / 4;
    case AST_AXIS_THREAD_OF_WARPGROUP:
        return (uint64_t)(extent - 1) * stride < 128 ? split_threads(extent, stride, to) : 0;
    }
    tir_unreachable();
}

static bool lower_iters(struct lower *l, const ast_iters *from, struct tir_iter *to,
                        uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < from->len; i++) {
        const struct ast_iter *it = &from->at[i];
        int64_t extent, stride;
        if (!const_int(l, it->extent, "an extent of a layout", &extent) ||
            !const_int(l, it->stride, "a stride of a layout", &stride))
            return false;
        if (extent < 1 || extent > UINT32_MAX || stride < 0 || stride > UINT32_MAX) {
            lower_error(l, tir_span_join(it->extent->span, it->stride->span), TIR_E_TYPE,
                        "an extent must be at least 1 and a stride at least 0");
            return false;
        }
        struct tir_iter parts[2];
        const uint32_t made = lower_iter(it->axis, (uint32_t)extent, (uint32_t)stride, parts);
        if (!made || *count + made > TIR_MAX_ITERS) {
            lower_error(l, tir_span_join(it->extent->span, it->stride->span), TIR_E_TYPE,
                        made ? "a layout of more than %d iterators"
                        : it->axis >= AST_AXIS_TMEM_LANE
                            ? "tensor memory has no such lane or column"
                            : "no threads of one warpgroup: write lanes and warps apart",
                        TIR_MAX_ITERS);
            return false;
        }
        memcpy(to + *count, parts, made * sizeof(*to));
        *count += made;
    }
    return true;
}

// Deals the iterators out to the dimensions: as many to each as multiply to its size.
static bool split_iters(struct tir_layout *out)
{
    uint32_t at = 0;
    for (uint32_t d = 0; d < out->rank; d++) {
        uint64_t product = 1;
        out->first[d] = at;
        while (product < (uint64_t)out->shape[d] && at < out->iter_count)
            product *= out->iters[at++].extent;
        if (product != (uint64_t)out->shape[d])
            return false;
        while (d + 1 == out->rank && at < out->iter_count && out->iters[at].extent == 1)
            at++;
    }
    out->first[out->rank] = at;
    return at == out->iter_count;
}

// The axes of a layout of tensor memory are its lanes and columns, and no other layout has them.
static bool has_right_axes(struct lower *l, const struct ast_layout *from, const struct tir_type *t)
{
    const bool in_tmem = t->space == TIR_SPACE_TMEM;
    bool ok = in_tmem ? !from->replicas.len : !from->offset;
    for (uint32_t i = 0; i < from->iters.len; i++)
        ok &= in_tmem == (from->iters.at[i].axis >= AST_AXIS_TMEM_LANE);
    for (uint32_t i = 0; i < from->replicas.len; i++)
        ok &= from->replicas.at[i].axis < AST_AXIS_TMEM_LANE;
    if (!ok)
        lower_error(l, from->span, TIR_E_TYPE,
                    in_tmem ? "tensor memory has the axes `TLane` and `TCol`, and no replicas"
                            : "`TLane` and `TCol` are the axes of buffers in tensor memory");
    return ok;
}

static const struct tir_layout *lower_iters_layout(struct lower *l, const struct ast_layout *from,
                                                   const struct tir_type *t, int64_t swizzle)
{
    struct tir_layout layout = {.rank = t->rank};
    memcpy(layout.shape, t->shape, sizeof(layout.shape));
    layout.swizzle = (uint32_t)swizzle;
    if (!has_right_axes(l, from, t))
        return NULL;
    if (!lower_iters(l, &from->iters, layout.iters, &layout.iter_count) ||
        !lower_iters(l, &from->replicas, layout.replicas, &layout.replica_count))
        return NULL;
    const struct tir_layout *result =
        split_iters(&layout) ? tir_layout_get(l->cx->types, &layout) : NULL;
    if (!result)
        lower_error(l, from->span, TIR_E_TYPE, "this layout does not cover %s exactly once",
                    lower_type_name(l, t));
    return result;
}

// Where wgmma leaves its sums, over all threads that are here.
static const struct tir_layout *lower_fragment(struct lower *l, const struct ast_layout *from,
                                               const struct tir_type *t)
{
    uint32_t warps = lower_threads(l) / 32;
    uint32_t rows = t->rank == 2 && t->space == TIR_SPACE_VALUE && warps
                        ? tir_wgmma_row_groups(t->shape, warps)
                        : 0;
    if (rows)
        return tir_layout_wgmma(l->cx->types, t->shape, rows, warps / 4 / rows, warps);
    lower_error(l, from->span, TIR_E_TYPE,
                warps
                    ? "%s is no fragment of wgmma on %u warps: 4 warps have 64 rows and 8 columns "
                      "or more"
                    : "%s has a fragment only where `threads(...)` or a role says how many "
                      "threads there are",
                lower_type_name(l, t), warps);
    return NULL;
}

static const struct tir_layout *lower_layout(struct lower *l, const struct ast_layout *from,
                                             const struct tir_type *t)
{
    int64_t swizzle = 0;
    if (from->swizzle && !const_int(l, from->swizzle, "the swizzle", &swizzle))
        return NULL;
    if (from->swizzle && swizzle != 32 && swizzle != 64 && swizzle != 128) {
        lower_error(l, from->swizzle->span, TIR_E_TYPE,
                    "swizzles have 32, 64 or 128 bytes, not %lld", (long long)swizzle);
        return NULL;
    }
    if (from->kind == AST_LAYOUT_ITERS)
        return lower_iters_layout(l, from, t, swizzle);
    if (from->kind == AST_LAYOUT_FRAGMENT)
        return lower_fragment(l, from, t);
    if (from->kind == AST_LAYOUT_VALUE)
        return lower_layout_of_value(l, from, t);
    const struct tir_layout *layout = tir_layout_memory(l->cx->types, t->rank, t->shape,
                                                        tir_elems[t->elem].bits, (uint32_t)swizzle);
    if (!layout)
        lower_error(l, from->span, TIR_E_TYPE, "%s cannot have this layout", lower_type_name(l, t));
    return layout;
}

const struct tir_type *lower_type_and_layout(struct lower *l, const struct ast_type *from)
{
    struct tir_type t = {.space = from->space, .rank = from->dims.len};
    if (from->fn) {
        lower_error(l, from->span, TIR_E_TYPE,
                    "a function is no value; its type stands at a parameter of another function");
        return NULL;
    }
    bool ok = lower_elem(l, from, &t.elem);
    if (ok && t.elem == TIR_MBARRIER && t.space != TIR_SPACE_SHARED &&
        t.space != TIR_SPACE_CLUSTER) {
        lower_error(l, from->span, TIR_E_ROLE, "an mbarrier lives in shared memory");
        return NULL;
    }
    for (uint32_t d = 0; d < from->dims.len; d++) {
        int64_t size = 1;
        ok &= const_int(l, from->dims.at[d], "the size of a tile", &size);
        if (d < TIR_MAX_RANK)
            t.shape[d] = size;
    }
    if (!ok || !lower_tile_fits(l, from->span, &t))
        return NULL;
    const struct tir_type *type = tir_type_get(l->cx->types, &t);
    if (!from->layout)
        return type;
    if (t.rank == 0) {
        lower_error(l, from->layout->span, TIR_E_TYPE, "a scalar has no layout");
        return NULL;
    }
    const struct tir_layout *layout = lower_layout(l, from->layout, type);
    return layout ? tir_type_with_layout(l->cx->types, type, layout) : NULL;
}

// Is the layout one of threads, if t is a tile, and one of memory, if it is a buffer?
static bool is_placed(struct lower *l, struct tir_span span, const struct tir_type *t)
{
    const uint32_t threads = lower_threads(l);
    if (t->space == TIR_SPACE_TMEM)
        return true; // tmem.c compares it
    if (tir_type_is_buffer(t)) {
        if (tir_layout_is_memory(t->layout))
            return true;
        lower_error(l, span, TIR_E_TYPE,
                    "%s lies in memory, where a layout has no lanes, warps or replicas",
                    lower_type_name(l, t));
    } else if (t->layout->swizzle) {
        lower_error(l, span, TIR_E_TYPE, "%s lies in registers, where no layout has a swizzle",
                    lower_type_name(l, t));
    } else {
        if (!threads || tir_layout_is_spread(t->layout, threads / 32))
            return true;
        lower_error(l, span, TIR_E_TYPE, TIR_NOT_SPREAD, lower_type_name(l, t), threads);
    }
    return false;
}

const struct tir_type *lower_type(struct lower *l, const struct ast_type *from)
{
    const struct tir_type *t = lower_type_and_layout(l, from);
    return t && (!t->layout || is_placed(l, from->layout->span, t)) ? t : NULL;
}
