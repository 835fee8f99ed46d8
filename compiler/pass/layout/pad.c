// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// pad: tiles get extents that lanes and tensor cores divide.
//
//     let x: f32[33, 61] = load(X[m:+33, n:+61]);
//     let s: f32[33, 1] = reduce(x, axis = 1, kind = sum);
//     store(Y[m:+33, n:+61], x);
// becomes
//     let x: f32[34, 64] = load(X[m:+34, n:+64]);
//     let i: i32[34, 64] = iota(axis = 1);
//     let inside: bool[34, 64] = lt(i, i32[34, 64](61));
//     let y: f32[34, 64] = where(inside, x, f32[34, 64](-0.0));
//     let s: f32[34, 1] = reduce(y, axis = 1, kind = sum);
//     ...
//     store(Y[m:+34, n:+64], x, mask = both);       // row < 33 and column < 61
//
// Threads take equal parts of a tile, and there are powers of two of them: of 33 x 61 elements each
// thread would hold all, and 50 x 50 x 50 is no multiple of an mma. Extents grow by the smallest
// powers of two that help. What the padding holds is not specified; it never leaves the kernel:
// - a store or an atomic has a mask;
// - a load has one unless its tensor is an input, where the padding takes what lies there;
// - a reduction replaces the padding by what changes no result; a scan never sees it, since it
//   comes last;
// - operands of a product are 0 beyond the tile's K: by a mask, unless the tensor ends there.
//
// An extent means the same everywhere in the kernel, so it stays as it is where one operation has
// no rule here: parts of tiles, everything asynchronous, and the axis of a reduction with a
// function.

#include "base/vec.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/product.h"
#include "pass/layout/layout.h"
#include "pass/pass.h"
#include "pass/receipt.h"

#include <math.h>

struct extent {
    int64_t size, granule; // a power of two that the padded size is a multiple of
    bool kept;
};

struct pad {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    int64_t threads; // of the CTA, as the tiles are before
    VEC(struct extent) extents;
    VEC(const struct tir_type *) tiles; // their types, each once
    VEC(struct tir_inst *) dots;
    struct tir_map seen;         // the same types
    const struct tir_type **was; // by value id: its type before
    struct tir_map zeroed;       // loads whose padding along K is 0
};

static struct extent *extent_of(struct pad *p, int64_t size)
{
    vec_foreach(struct extent, it, &p->extents)
        if (it->size == size)
            return it;
    vec_push(p->cx->scratch, &p->extents, ((struct extent){.size = size, .granule = 1}));
    return &p->extents.at[p->extents.len - 1];
}

static int64_t padded(struct pad *p, int64_t size)
{
    return (int64_t)tir_align_up((uint64_t)size, (uint64_t)extent_of(p, size)->granule);
}

static const struct tir_type *padded_type(struct pad *p, const struct tir_type *t)
{
    if (!tir_type_is_tile(t))
        return t;
    struct tir_type to = *t;
    for (uint32_t d = 0; d < t->rank; d++)
        to.shape[d] = padded(p, t->shape[d]);
    return tir_type_same_shape(&to, t) ? t : tir_type_get(p->f->module->types, &to);
}

// What may be padded.

static void keep(struct pad *p, const struct tir_type *t)
{
    for (uint32_t d = 0; tir_type_is_tile(t) && d < t->rank; d++)
        extent_of(p, t->shape[d])->kept = true;
}

// Are the dimensions beside those of size 1 the same?
static bool only_adds_ones(const struct tir_type *a, const struct tir_type *b)
{
    uint32_t i = 0, k = 0;
    while (i < a->rank || k < b->rank) {
        if (i < a->rank && a->shape[i] == 1)
            i++;
        else if (k < b->rank && b->shape[k] == 1)
            k++;
        else if (i == a->rank || k == b->rank || a->shape[i++] != b->shape[k++])
            return false;
    }
    return true;
}

// Is there an element that changes no result of the reduction?
static bool has_neutral(const struct tir_inst *reduce)
{
    return tir_attr_word(reduce, TIR_ATTR_kind, TIR_WORD_NONE) != TIR_WORD_kind_user &&
           !tir_elem_is_scale(reduce->operands[0]->type->elem);
}

static bool has_rule(const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_BROADCAST:
    case TIR_OP_PERMUTE:
    case TIR_OP_IOTA:
    case TIR_OP_REDUCE:
    case TIR_OP_SCAN:
    case TIR_OP_LOAD:
    case TIR_OP_STORE:
    case TIR_OP_ATOMIC:
    case TIR_OP_FOR:
    case TIR_OP_IF:
    case TIR_OP_WHILE:
    case TIR_OP_TILES:
    case TIR_OP_GET:
    case TIR_OP_YIELD:
        return true;
    case TIR_OP_RESHAPE:
        return only_adds_ones(inst->operands[0]->type, inst->results[0]->type);
    case TIR_OP_DOT:
        return !tir_is_scaled_dot(inst) && tir_type_is_tile(inst->operands[TIR_DOT_A]->type) &&
               tir_type_is_tile(inst->operands[TIR_DOT_B]->type);
    default:
        return tir_is_elementwise(inst);
    }
}

static void see(struct pad *p, const struct tir_value *v, bool ruled)
{
    if (!v)
        return;
    p->was[v->id] = v->type;
    if (!tir_type_is_tile(v->type))
        return;
    if (!ruled || v->type->layout)
        keep(p, v->type);
    if (tir_map_get(&p->seen, tir_map_key(v->type)))
        return;
    tir_map_set(&p->seen, tir_map_key(v->type), p);
    vec_push(p->cx->scratch, &p->tiles, v->type);
}

static void see_inst(struct pad *p, struct tir_inst *inst)
{
    bool ruled = has_rule(inst);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        see(p, inst->operands[i], ruled);
    for (uint32_t i = 0; i < inst->result_count; i++)
        see(p, inst->results[i], ruled);
    for (uint32_t r = 0; r < inst->region_count; r++)
        for (uint32_t i = 0; i < inst->regions[r]->arg_count; i++)
            see(p, inst->regions[r]->args[i], true);
    if (inst->op == TIR_OP_REDUCE && !has_neutral(inst))
        extent_of(p,
                  inst->operands[TIR_REDUCE_X]->type->shape[tir_attr_int(inst, TIR_ATTR_axis, 0)])
            ->kept = true;
    if (inst->op == TIR_OP_DOT && ruled)
        vec_push(p->cx->scratch, &p->dots, inst);
}

// How far.

// Does each thread hold far more of the tile than its share?
static bool is_ill_divided(struct pad *p, const struct tir_type *t)
{
    const struct tir_type *to = padded_type(p, t);
    int64_t count = tir_type_count(to), share = TIR_MAX(1, count / p->threads);
    int64_t held = count / TIR_MIN(tir_tile_parts(to), p->threads);
    return held > TIR_MAX(TIR_BUDGET_PADDED_ELEMENTS, 4 * share);
}

// Doubles the granule of the extent that has least of one. False: there is no such extent.
static bool pad_further(struct pad *p, const struct tir_type *t)
{
    struct extent *least = NULL;
    for (uint32_t d = t->rank; d-- > 0;) {
        struct extent *e = extent_of(p, t->shape[d]);
        int64_t has = tir_power_in(padded(p, e->size));
        if (e->kept || has == padded(p, e->size)) // a power of two
            continue;
        if (!least || has < tir_power_in(padded(p, least->size)))
            least = e;
    }
    if (least)
        least->granule = 2 * tir_power_in(padded(p, least->size));
    return least;
}

// A product whose types have an mma gets its shape, where that costs little.
static void pad_product(struct pad *p, const struct tir_inst *dot)
{
    const struct tir_type *a = dot->operands[TIR_DOT_A]->type, *b = dot->operands[TIR_DOT_B]->type;
    enum tir_elem sum = dot->results[0]->type->elem;
    const struct tir_product *product =
        tir_product_find(TIR_ENGINE_MMA, a->elem, sum == TIR_F16 ? TIR_F32 : sum);
    if (!product || a->elem != b->elem || !(p->cx->target->features & product->feature))
        return;
    const int64_t sizes[] = {a->shape[0], b->shape[1], a->shape[1]};
    const int64_t granules[] = {TIR_MMA_ROWS, TIR_MMA_COLUMNS, product->depth};
    int64_t grows_to = 1, count = 1;
    for (uint32_t i = 0; i < TIR_COUNT_OF(sizes); i++) {
        if (extent_of(p, sizes[i])->kept && sizes[i] % granules[i])
            return;
        grows_to *= (int64_t)tir_align_up((uint64_t)padded(p, sizes[i]), (uint64_t)granules[i]);
        count *= sizes[i];
    }
    if (grows_to > TIR_BUDGET_PADDED_WORK * count)
        return;
    for (uint32_t i = 0; i < TIR_COUNT_OF(sizes); i++) {
        struct extent *e = extent_of(p, sizes[i]);
        if (padded(p, sizes[i]) % granules[i])
            e->granule = TIR_MAX(e->granule, granules[i]);
    }
}

static bool choose(struct pad *p)
{
    vec_foreach(struct tir_inst *, it, &p->dots)
        pad_product(p, *it);
    vec_foreach(const struct tir_type *, it, &p->tiles)
        while (is_ill_divided(p, *it) && pad_further(p, *it))
            continue;
    vec_foreach(const struct extent, it, &p->extents)
        if (it->size % it->granule)
            return true;
    return false;
}

// Rewriting.

// Which elements of a tile of type `was` lie inside it, as a tile of the padded type; dims: the
// dimensions to look at, a bit each. NULL: all do.
static struct tir_value *inside(struct pad *p, struct tir_builder *b, const struct tir_type *was,
                                uint32_t dims)
{
    struct tir_types *types = p->f->module->types;
    const struct tir_type *index = tir_type_with_elem(types, padded_type(p, was), TIR_I32);
    struct tir_value *all = NULL;
    for (uint32_t d = 0; d < was->rank; d++) {
        if (!(dims >> d & 1) || index->shape[d] == was->shape[d])
            continue;
        struct tir_value *at = tir_build1(b, TIR_OP_IOTA, index, NULL, 0);
        tir_set_int(p->f, at->def, TIR_ATTR_axis, d);
        struct tir_value *below =
            tir_binary(b, TIR_OP_LT, at, tir_const_int(p->f, index, was->shape[d]));
        all = all ? tir_binary(b, TIR_OP_AND, all, below) : below;
    }
    return all;
}

#define ALL_DIMS UINT32_MAX

static void mask_out(struct pad *p, struct tir_inst *access, uint32_t operand,
                     const struct tir_type *was, uint32_t dims)
{
    struct tir_builder b = tir_builder_before(p->f, access);
    struct tir_value **mask = &access->operands[operand], *own = inside(p, &b, was, dims);
    if (!own)
        return;
    if (*mask && tir_type_is_scalar((*mask)->type))
        *mask = tir_build1(&b, TIR_OP_BROADCAST, own->type, mask, 1);
    *mask = *mask ? tir_binary(&b, TIR_OP_AND, *mask, own) : own;
}

static void pad_box(struct pad *p, struct tir_inst *access)
{
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    int64_t to[TIR_MAX_RANK];
    for (uint32_t d = 0; box && d < box->list_count; d++)
        to[d] = box->list[d] > 0 ? padded(p, box->list[d]) : box->list[d];
    if (box)
        tir_set_list(p->f, access, TIR_ATTR_box, to, box->list_count);
}

// May the load take what lies beside the tile? Not of what the kernel writes, nor of scratch, where
// nobody may have written.
static bool may_read_beside(const struct pad *p, const struct tir_inst *load)
{
    const struct tir_value *from = tir_ref_base(load);
    return tir_is_only_read(p->f, from) && !tir_param_of(p->f, from)->is_scratch;
}

static void pad_access(struct pad *p, struct tir_inst *access, const struct tir_type *was)
{
    pad_box(p, access);
    if (access->op != TIR_OP_LOAD)
        mask_out(p, access, TIR_STORE_MASK, was, ALL_DIMS);
    else if (!may_read_beside(p, access))
        mask_out(p, access, TIR_LOAD_MASK, was, ALL_DIMS);
}

// The value that a where takes from outside the tile.
static struct tir_value *neutral(struct pad *p, const struct tir_inst *reduce,
                                 const struct tir_type *t)
{
    bool is_float = tir_elem_is_float(t->elem), sign = tir_elems[t->elem].kind == TIR_KIND_SIGNED;
    uint32_t bits = t->elem == TIR_BOOL ? 1 : tir_elems[t->elem].bits;
    int64_t ones = bits == 64 ? -1 : (INT64_C(1) << bits) - 1;
    int64_t most = sign ? (int64_t)((uint64_t)INT64_MAX >> (64 - bits)) : ones;
    switch (tir_attr_word(reduce, TIR_ATTR_kind, TIR_WORD_NONE)) {
    case TIR_WORD_kind_prod:
        return tir_const_like(p->f, t, 1);
    case TIR_WORD_kind_min:
        return is_float ? tir_const_float(p->f, t, INFINITY) : tir_const_int(p->f, t, most);
    case TIR_WORD_kind_max:
        return is_float ? tir_const_float(p->f, t, -INFINITY)
                        : tir_const_int(p->f, t, sign ? -most - 1 : 0);
    case TIR_WORD_kind_and:
    case TIR_WORD_kind_all:
        return tir_const_int(p->f, t, sign ? -1 : ones);
    default: // 0 + -0.0 is 0, and -0.0 + -0.0 is -0.0
        return tir_const_like(p->f, t, -0.0);
    }
}

static struct tir_value *choose_inside(struct tir_builder *b, struct tir_value *mask,
                                       struct tir_value *x, struct tir_value *other)
{
    struct tir_value *operands[] = {mask, x, other};
    return mask ? tir_build1(b, TIR_OP_WHERE, other->type, operands, 3) : x;
}

static void pad_reduce(struct pad *p, struct tir_inst *reduce, const struct tir_type *was)
{
    struct tir_builder b = tir_builder_before(p->f, reduce);
    uint32_t axis = (uint32_t)tir_attr_int(reduce, TIR_ATTR_axis, 0);
    struct tir_value **x = &reduce->operands[TIR_REDUCE_X];
    struct tir_value *mask = inside(p, &b, was, 1U << axis);
    *x = choose_inside(&b, mask, *x, neutral(p, reduce, padded_type(p, was)));
}

// Whether the load is 0 where its mask is false.
static bool pads_with_zero(const struct tir_inst *load)
{
    const struct tir_value *pad = load->operands[TIR_LOAD_PAD];
    return !pad || (pad->kind == TIR_VALUE_CONST &&
                    (tir_elem_is_float(pad->type->elem) ? pad->constant.f == 0 : !pad->constant.i));
}

// Does the tensor end along dimension `dim` of the tile where the tile did, or before? Then the
// padding lies outside the tensor, and the load is 0 there without a mask.
static bool ends_with_tensor(const struct pad *p, const struct tir_inst *load, int64_t size,
                             uint32_t dim)
{
    const struct tir_param *param = tir_param_of(p->f, tir_ref_base(load));
    const struct tir_attr *box = tir_attr_find(load, TIR_ATTR_box);
    int64_t start;
    for (uint32_t d = 0; param && box && d < box->list_count; d++)
        if (box->list[d] && !dim--)
            return box->list[d] > 0 && param->dims[d].dim < 0 &&
                   tir_is_const_int(tir_ref_indices(load)[d], &start) &&
                   start + size >= param->dims[d].constant;
    return false;
}

// Operand i of a dot is 0 beyond its K, dimension k: the load that it comes from sees to it, or a
// where.
static void zero_beyond(struct pad *p, struct tir_inst *dot, uint32_t i, const struct tir_type *was,
                        uint32_t k)
{
    struct tir_value *x = dot->operands[i];
    if (!tir_type_is_tile(was) || padded(p, was->shape[k]) == was->shape[k])
        return;
    uint32_t dim = k;
    while (x->def && x->def->op == TIR_OP_PERMUTE) {
        dim = (uint32_t)tir_attr_find(x->def, TIR_ATTR_permutation)->list[dim];
        x = x->def->operands[0];
    }
    struct tir_inst *load = x->def;
    if (!load || load->op != TIR_OP_LOAD || !pads_with_zero(load)) {
        struct tir_builder b = tir_builder_before(p->f, dot);
        struct tir_value *zero = tir_const_like(p->f, padded_type(p, was), 0);
        dot->operands[i] = choose_inside(&b, inside(p, &b, was, 1U << k), dot->operands[i], zero);
    } else if (may_read_beside(p, load) &&
               !ends_with_tensor(p, load, p->was[x->id]->shape[dim], dim) &&
               !tir_map_get(&p->zeroed, tir_map_key(load) + dim)) {
        tir_map_set(&p->zeroed, tir_map_key(load) + dim, load);
        mask_out(p, load, TIR_LOAD_MASK, p->was[x->id], 1U << dim);
    }
}

// A tile of one number, where an operation wants its padded type.
static struct tir_value *padded_constant(struct pad *p, struct tir_value *v)
{
    const struct tir_type *to = padded_type(p, v->type);
    return to == v->type ? v : tir_const_as(p->f, to, v);
}

static void pad_inst(struct pad *p, struct tir_inst *inst)
{
    const struct tir_type *was[2] = {NULL};
    for (uint32_t i = 0; i < inst->operand_count && i < TIR_COUNT_OF(was); i++)
        was[i] = inst->operands[i] ? p->was[inst->operands[i]->id] : NULL;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i] && inst->operands[i]->kind == TIR_VALUE_CONST)
            inst->operands[i] = padded_constant(p, inst->operands[i]);
    switch (inst->op) {
    case TIR_OP_LOAD:
        pad_access(p, inst, p->was[inst->results[0]->id]);
        break;
    case TIR_OP_STORE:
    case TIR_OP_ATOMIC:
        pad_access(p, inst, was[0]);
        break;
    case TIR_OP_REDUCE:
        if (has_neutral(inst))
            pad_reduce(p, inst, was[0]);
        break;
    case TIR_OP_DOT:
        zero_beyond(p, inst, TIR_DOT_A, was[TIR_DOT_A], 1);
        zero_beyond(p, inst, TIR_DOT_B, was[TIR_DOT_B], 0);
        break;
    default:
        break;
    }
}

static void pad_values(struct pad *p)
{
    tir_foreach_inst(inst, p->f) {
        for (uint32_t i = 0; i < inst->result_count; i++)
            inst->results[i]->type = padded_type(p, inst->results[i]->type);
        for (uint32_t r = 0; r < inst->region_count; r++)
            for (uint32_t i = 0; i < inst->regions[r]->arg_count; i++) {
                struct tir_value *arg = inst->regions[r]->args[i];
                arg->type = padded_type(p, arg->type);
            }
    }
}

static void report(struct pad *p)
{
    vec_foreach(const struct extent, it, &p->extents)
        if (it->size % it->granule)
            tir_receipt_add(p->cx, TIR_TOPIC_LAUNCH, p->f->span,
                            "tiles: extent %lld padded to %lld, which threads divide",
                            (long long)it->size, (long long)padded(p, it->size));
}

enum tir_change tir_pass_pad(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct pad p = {.f = f, .cx = cx, .threads = tir_choose_threads(f)};
    p.was = arena_array(cx->scratch, const struct tir_type *, f->value_count);
    tir_map_init(&p.seen, cx->scratch);
    tir_map_init(&p.zeroed, cx->scratch);
    tir_foreach_inst(inst, f)
        see_inst(&p, inst);
    if (!choose(&p))
        return TIR_UNCHANGED;
    pad_values(&p);
    tir_foreach_inst(inst, f)
        pad_inst(&p, inst);
    report(&p);
    return TIR_CHANGED;
}
