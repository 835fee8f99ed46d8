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
// powers of two that help, and those of products by what wgmma takes. What the padding holds is not
// specified; it never leaves the kernel:
// - a store or an atomic has a mask, unless the tensor ends there;
// - a load has one unless its tensor is an input, where the padding takes what lies there;
// - a reduction replaces the padding by what changes no result; one with a function that has no
//   such element gets a second tile, which says what lies inside (partial.c); a scan never sees
//   the padding, since it comes last;
// - operands of a product are 0 beyond the tile's K: by a mask, unless the tensor ends there;
// - a part of a tile goes through shared memory if its elements are no longer where they were.
//
// Operations tie dimensions together (extents.c). Those extents stay as they are where one of the
// operations has no rule: products with scales, everything asynchronous, and parts of tiles that
// would take more shared memory than PART_BYTES.

#include "base/vec.h"
#include "ir/crew.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/product.h"
#include "pass/layout/extents.h"
#include "pass/layout/layout.h"
#include "pass/layout/operand.h"
#include "pass/layout/partial.h"
#include "pass/layout/staging.h"
#include "pass/pass.h"
#include "pass/receipt.h"

#include <math.h>

struct growth { // of the extents of one size, but those that stay
    int64_t size, granule;
};

struct pad {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    int64_t threads; // of the CTA, as the tiles are before
    struct tir_extents extents;
    VEC(struct growth) grown;
    VEC(struct tir_inst *) dots;
    VEC(struct tir_inst *) staged; // extracts that go through shared memory
    const struct tir_type **was;   // by value id: its type before
    struct tir_map zeroed;         // loads whose padding along K is 0
};

static int64_t padded(struct tir_tile_dim *dim)
{
    const struct tir_tile_dim *c = tir_tile_dim_class(dim);
    return (int64_t)tir_align_up((uint64_t)c->size, (uint64_t)c->granule);
}

static const struct tir_type *padded_type(struct pad *p, const struct tir_type *t,
                                          struct tir_tile_dim *dims)
{
    if (!tir_type_is_tile(t))
        return t;
    struct tir_type to = *t;
    for (uint32_t d = 0; d < t->rank; d++)
        to.shape[d] = padded(&dims[d]);
    return tir_type_same_shape(&to, t) ? t : tir_type_get(p->f->module->types, &to);
}

// What may be padded.

// The operation that a reduction, or its function, applies to two elements. COUNT: the function is
// more than one.
static enum tir_op combining_op(const struct tir_inst *reduce)
{
    if (tir_attr_word(reduce, TIR_ATTR_kind, TIR_WORD_NONE) != TIR_WORD_kind_user)
        return tir_op_of_kind(tir_attr_word(reduce, TIR_ATTR_kind, TIR_WORD_NONE));
    const struct tir_block *block = reduce->regions[0];
    const struct tir_inst *op = block->first, *yield = tir_yield_of(block);
    const bool is_one = block->arg_count == 2 && op->next == yield && op->result_count == 1 &&
                        yield->operands[0] == op->results[0] && op->operand_count == 2 &&
                        op->operands[0] != op->operands[1] && op->operands[0]->block == block &&
                        op->operands[1]->block == block;
    return is_one ? op->op : TIR_OP_COUNT;
}

// Is there an element that changes no result of the reduction?
static bool has_neutral(const struct tir_inst *reduce)
{
    switch (combining_op(reduce)) {
    case TIR_OP_ADD:
    case TIR_OP_MUL:
    case TIR_OP_MIN:
    case TIR_OP_MAX:
    case TIR_OP_AND:
    case TIR_OP_OR:
    case TIR_OP_XOR:
        return !tir_elem_is_scale(reduce->operands[0]->type->elem);
    default:
        return false;
    }
}

// Extents that stay because of what an operation with a rule does with them.
static void keep_for(struct pad *p, struct tir_inst *inst)
{
    if (inst->op == TIR_OP_REDUCE && !has_neutral(inst) && !tir_may_be_partial(inst)) {
        int64_t axis = tir_attr_int(inst, TIR_ATTR_axis, 0);
        tir_tile_dim_keep(&tir_extents_at(&p->extents, inst, TIR_REDUCE_X)[axis], inst);
    }
    if (inst->op == TIR_OP_EXTRACT && !tir_may_stage_extract(inst))
        for (uint32_t d = 0; d < inst->results[0]->type->rank; d++)
            if (inst->operands[0]->type->shape[d] != inst->results[0]->type->shape[d]) {
                tir_tile_dim_keep(&tir_extents_at(&p->extents, inst, 0)[d], inst);
                tir_tile_dim_keep(&p->extents.of[inst->results[0]->id][d], inst);
            }
}

static void see_inst(struct pad *p, struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++)
        p->was[inst->results[i]->id] = inst->results[i]->type;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i])
            p->was[inst->operands[i]->id] = inst->operands[i]->type;
    keep_for(p, inst);
    if (inst->op == TIR_OP_DOT && !tir_is_scaled_dot(inst) &&
        tir_type_is_tile(inst->operands[TIR_DOT_A]->type) &&
        tir_type_is_tile(inst->operands[TIR_DOT_B]->type))
        vec_push(p->cx->scratch, &p->dots, inst);
}

// How far.

// Of those that share the tile.
static int64_t threads_of(const struct pad *p, const struct tir_value *v)
{
    const struct tir_crew crew =
        v->def ? tir_crew_of(p->f, v->def) : tir_crew_of_block(p->f, v->block);
    return crew.role ? 32 * (int64_t)crew.warps : p->threads;
}

// Does each thread hold far more of the tile than its share?
static bool is_ill_divided(struct pad *p, const struct tir_tile_dims *tile)
{
    const struct tir_type *to = padded_type(p, tile->value->type, tile->dims);
    const int64_t threads = threads_of(p, tile->value);
    int64_t count = tir_type_count(to), share = TIR_MAX(1, count / threads);
    int64_t held = count / TIR_MIN(tir_tile_parts(to), threads);
    return held > TIR_MAX(TIR_BUDGET_PADDED_ELEMENTS, TIR_BUDGET_PADDED_SHARES * share);
}

static struct growth *growth_of(struct pad *p, int64_t size)
{
    vec_foreach(struct growth, it, &p->grown)
        if (it->size == size)
            return it;
    vec_push(p->cx->scratch, &p->grown, ((struct growth){size, 1}));
    return &vec_last(&p->grown);
}

// Doubles the granule of the extent that has least of one, for all of its size. False: there is no
// such extent.
static bool pad_further(struct pad *p, const struct tir_tile_dims *tile)
{
    struct tir_tile_dim *least = NULL;
    for (uint32_t d = tile->value->type->rank; d-- > 0;) {
        struct tir_tile_dim *c = tir_tile_dim_class(&tile->dims[d]);
        int64_t has = tir_power_in(padded(c));
        if (c->keeper || has == padded(c)) // a power of two
            continue;
        if (!least || has < tir_power_in(padded(least)))
            least = c;
    }
    if (least)
        least->granule = growth_of(p, least->size)->granule = 2 * tir_power_in(padded(least));
    tir_extents_settle(&p->extents);
    return least;
}

// Extents of one size grow alike, so that tiles which are loaded twice can still be loaded once.
static void grow_alike(struct pad *p, const struct tir_tile_dims *tile)
{
    for (uint32_t d = 0; d < tile->value->type->rank; d++) {
        struct tir_tile_dim *c = tir_tile_dim_class(&tile->dims[d]);
        if (!c->keeper)
            c->granule = TIR_MAX(c->granule, growth_of(p, c->size)->granule);
    }
    tir_extents_settle(&p->extents);
}

// Does the tensor end along dimension `dim` of the tile where the tile did, or before? Then the
// padding lies outside the tensor: there a load is 0 and a store does nothing, without a mask.
static bool ends_with_tensor(const struct pad *p, const struct tir_inst *access, int64_t size,
                             uint32_t dim)
{
    const struct tir_param *param = tir_param_of(p->f, tir_ref_base(access));
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    int64_t start;
    for (uint32_t d = 0; param && box && d < box->list_count; d++)
        if (box->list[d] && !dim--)
            return box->list[d] > 0 && param->dims[d].dim < 0 &&
                   tir_is_const_int(tir_ref_indices(access)[d], &start) &&
                   start + size >= param->dims[d].constant;
    return false;
}

// Dimension *dim of a tile that is reordered or in another shape, in the tile that it is made of.
// False: it is no dimension there.
static bool dimension_before(const struct pad *p, const struct tir_inst *inst, uint32_t *dim)
{
    if (inst->op == TIR_OP_PERMUTE) {
        *dim = (uint32_t)tir_attr_find(inst, TIR_ATTR_permutation)->list[*dim];
        return true;
    }
    if (inst->op != TIR_OP_RESHAPE || !tir_type_is_tile(inst->operands[0]->type))
        return false;
    const struct tir_type *from = p->was[inst->operands[0]->id], *to = p->was[inst->results[0]->id];
    for (uint32_t i = 0, j = 0; i < from->rank || j < to->rank;) {
        const uint32_t begin = i, first = j;
        tir_shape_group(from, &i, to, &j);
        if (*dim < first || *dim >= j)
            continue;
        int64_t count = 1;
        for (uint32_t d = begin; d < i; d++)
            count *= from->shape[d];
        for (uint32_t d = begin; d < i; d++)
            if (from->shape[d] == count && to->shape[*dim] == count) { // all others have size 1
                *dim = d;
                return true;
            }
        return false;
    }
    return false;
}

// Warpgroups that share the columns of a product with so many rows: two multiply where another
// product has rows for both.
static int64_t column_groups(const struct pad *p, int64_t rows)
{
    bool for_two = false;
    vec_foreach(struct tir_inst *, it, &p->dots)
        for_two |= (*it)->results[0]->type->shape[0] % (2 * TIR_WGMMA_ROWS) == 0;
    return for_two && rows == TIR_WGMMA_ROWS ? 2 : 1;
}

// Of a dimension that is contiguous in operand x, for wgmma: it takes swizzled lines of 32 bytes or
// more. Longer ones are copied and read faster: lines of 64 where the tensor ends with the tile, so
// that no more is loaded, and a quarter more is multiplied at most (docs/decisions/087).
static int64_t line_granule(const struct pad *p, struct tir_value *x, uint32_t dim, int64_t groups)
{
    const int64_t size = x->type->shape[dim], least = groups * 256 / tir_elems[x->type->elem].bits;
    const int64_t longer = (int64_t)tir_align_up((uint64_t)size, (uint64_t)(2 * least));
    while (x->def && dimension_before(p, x->def, &dim))
        x = x->def->operands[0];
    const bool ends = x->def && x->def->op == TIR_OP_LOAD && ends_with_tensor(p, x->def, size, dim);
    return ends && 4 * longer <= 5 * size ? 2 * least : least;
}

enum { ROWS, COLUMNS, DEPTH, PRODUCT_DIMS }; // of a product

// Gives the dimensions of a product multiples of these. False: that costs too much.
static bool pad_to(struct pad *p, struct tir_tile_dim *const dims[PRODUCT_DIMS],
                   const int64_t granules[PRODUCT_DIMS])
{
    int64_t grows_to = 1, count = 1;
    for (uint32_t i = 0; i < PRODUCT_DIMS; i++) {
        const bool stays = dims[i]->keeper || dims[i]->size == 1;
        if (stays && dims[i]->size % granules[i])
            return false;
        grows_to *= (int64_t)tir_align_up((uint64_t)padded(dims[i]), (uint64_t)granules[i]);
        count *= dims[i]->size;
    }
    if (grows_to > TIR_BUDGET_PADDED_WORK * count)
        return false;
    for (uint32_t i = 0; i < PRODUCT_DIMS; i++)
        if (padded(dims[i]) % granules[i])
            dims[i]->granule = TIR_MAX(dims[i]->granule, granules[i]);
    tir_extents_settle(&p->extents);
    return true;
}

// A product whose types have an mma gets the shape of one: of a wgmma, or else of an mma.sync.
static void pad_product(struct pad *p, const struct tir_inst *dot)
{
    const struct tir_type *a = dot->operands[TIR_DOT_A]->type, *b = dot->operands[TIR_DOT_B]->type;
    enum tir_elem sum = dot->results[0]->type->elem;
    const struct tir_product *product =
        tir_product_find(TIR_ENGINE_MMA, a->elem, b->elem, sum == TIR_F16 ? TIR_F32 : sum);
    if (!product || !(p->cx->target->features & product->feature))
        return;
    struct tir_tile_dim *rows = p->extents.of[dot->results[0]->id], *columns = &rows[1];
    struct tir_tile_dim *k = &tir_extents_at(&p->extents, dot, TIR_DOT_A)[1];
    struct tir_tile_dim *const dims[] = {tir_tile_dim_class(rows), tir_tile_dim_class(columns),
                                         tir_tile_dim_class(k)};
    const int64_t m = (int64_t)tir_align_up((uint64_t)padded(rows), TIR_MMA_ROWS);
    int64_t granules[] = {TIR_MMA_ROWS, TIR_MMA_COLUMNS, product->depth};
    if (p->cx->target->features & TIR_HAS_WGMMA && !p->f->grid_count && m % TIR_WGMMA_ROWS == 0 &&
        tir_product_find(TIR_ENGINE_WGMMA, a->elem, b->elem, sum)) {
        bool turned;
        tir_unturned(dot->operands[TIR_DOT_B], &turned);
        int64_t lines[] = {granules[ROWS], granules[COLUMNS], granules[DEPTH]};
        lines[turned ? DEPTH : COLUMNS] = line_granule(p, dot->operands[TIR_DOT_B], turned ? 0 : 1,
                                                       turned ? 1 : column_groups(p, m));
        if (pad_to(p, dims, lines))
            return;
    }
    pad_to(p, dims, granules);
}

static bool choose(struct pad *p)
{
    bool pads = false;
    tir_extents_settle(&p->extents);
    vec_foreach(const struct tir_tile_dims, it, &p->extents.tiles) {
        grow_alike(p, it);
        while (is_ill_divided(p, it) && pad_further(p, it))
            continue;
    }
    vec_foreach(const struct tir_tile_dims, it, &p->extents.tiles)
        grow_alike(p, it);
    vec_foreach(struct tir_inst *, it, &p->dots)
        pad_product(p, *it);
    vec_foreach(const struct tir_tile_dims, it, &p->extents.tiles)
        for (uint32_t d = 0; d < it->value->type->rank; d++)
            pads |= padded(&it->dims[d]) != it->dims[d].size;
    return pads;
}

// Rewriting.

// Which elements of the padded tile lie inside it as it was; dims: its extents; which: the
// dimensions to look at, a bit each. NULL: all do.
static struct tir_value *inside(struct pad *p, struct tir_builder *b, const struct tir_type *was,
                                struct tir_tile_dim *dims, uint32_t which)
{
    const struct tir_type *index =
        tir_type_with_elem(p->f->module->types, padded_type(p, was, dims), TIR_I32);
    struct tir_value *all = NULL;
    for (uint32_t d = 0; d < was->rank; d++) {
        if (!(which >> d & 1) || index->shape[d] == was->shape[d])
            continue;
        struct tir_value *at = tir_build1(b, TIR_OP_IOTA, index, NULL, 0);
        tir_set_int(p->f, at->def, TIR_ATTR_axis, d);
        struct tir_value *below =
            tir_binary(b, TIR_OP_LT, at, tir_const_int(p->f, index, was->shape[d]));
        all = all ? tir_binary(b, TIR_OP_AND, all, below) : below;
    }
    return all;
}

static void mask_out(struct pad *p, struct tir_inst *access, uint32_t operand,
                     const struct tir_type *was, struct tir_tile_dim *dims, uint32_t which)
{
    struct tir_builder b = tir_builder_before(p->f, access);
    struct tir_value **mask = &access->operands[operand], *own = inside(p, &b, was, dims, which);
    if (!own)
        return;
    if (*mask && tir_type_is_scalar((*mask)->type))
        *mask = tir_build1(&b, TIR_OP_BROADCAST, own->type, mask, 1);
    *mask = *mask ? tir_binary(&b, TIR_OP_AND, *mask, own) : own;
}

static void pad_box(struct pad *p, struct tir_inst *access, struct tir_tile_dim *dims)
{
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    int64_t to[TIR_MAX_RANK];
    for (uint32_t d = 0; box && d < box->list_count; d++)
        to[d] = box->list[d] > 0 ? padded(&dims[tir_slice_dim(access, d)]) : box->list[d];
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

static void pad_access(struct pad *p, struct tir_inst *access, const struct tir_type *was,
                       struct tir_tile_dim *dims)
{
    if (!tir_type_is_tile(was))
        return;
    pad_box(p, access, dims);
    uint32_t which = 0;
    for (uint32_t d = 0; d < was->rank; d++)
        which |= (uint32_t)!ends_with_tensor(p, access, was->shape[d], d) << d;
    if (access->op != TIR_OP_LOAD)
        mask_out(p, access, TIR_STORE_MASK, was, dims, which);
    else if (!may_read_beside(p, access))
        mask_out(p, access, TIR_LOAD_MASK, was, dims, which);
}

// The value that a where takes from outside the tile.
static struct tir_value *neutral(struct pad *p, const struct tir_inst *reduce,
                                 const struct tir_type *t)
{
    bool is_float = tir_elem_is_float(t->elem), sign = tir_elems[t->elem].kind == TIR_KIND_SIGNED;
    uint32_t bits = t->elem == TIR_BOOL ? 1 : tir_elems[t->elem].bits;
    int64_t ones = bits == 64 ? -1 : (INT64_C(1) << bits) - 1;
    int64_t most = sign ? (int64_t)((uint64_t)INT64_MAX >> (64 - bits)) : ones;
    switch (combining_op(reduce)) {
    case TIR_OP_MUL:
        return tir_const_like(p->f, t, 1);
    case TIR_OP_MIN:
        return is_float ? tir_const_float(p->f, t, INFINITY) : tir_const_int(p->f, t, most);
    case TIR_OP_MAX:
        return is_float ? tir_const_float(p->f, t, -INFINITY)
                        : tir_const_int(p->f, t, sign ? -most - 1 : 0);
    case TIR_OP_AND:
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

static void pad_reduce(struct pad *p, struct tir_inst *reduce, const struct tir_type *was,
                       struct tir_tile_dim *dims)
{
    struct tir_builder b = tir_builder_before(p->f, reduce);
    uint32_t axis = (uint32_t)tir_attr_int(reduce, TIR_ATTR_axis, 0);
    struct tir_value **x = &reduce->operands[TIR_REDUCE_X];
    struct tir_value *mask = inside(p, &b, was, dims, 1U << axis);
    if (!mask)
        return;
    if (has_neutral(reduce))
        *x = choose_inside(&b, mask, *x, neutral(p, reduce, padded_type(p, was, dims)));
    else
        tir_make_partial(p->f, reduce, mask);
}

// A part that begins at no multiple of its padded extents, or of a tile that they do not divide,
// has its elements in other threads than they were.
static void pad_extract(struct pad *p, struct tir_inst *extract, struct tir_tile_dim *whole)
{
    const int64_t *start = tir_attr_find(extract, TIR_ATTR_start)->list;
    struct tir_tile_dim *part = p->extents.of[extract->results[0]->id];
    for (uint32_t d = 0; d < extract->results[0]->type->rank; d++)
        if (padded(&part[d]) != part[d].size &&
            (start[d] % padded(&part[d]) || padded(&whole[d]) % padded(&part[d]))) {
            vec_push(p->cx->scratch, &p->staged, extract);
            return;
        }
}

// Whether the load is 0 where its mask is false.
static bool pads_with_zero(const struct tir_inst *load)
{
    const struct tir_value *pad = load->operands[TIR_LOAD_PAD];
    return !pad || (pad->kind == TIR_VALUE_CONST &&
                    (tir_elem_is_float(pad->type->elem) ? pad->constant.f == 0 : !pad->constant.i));
}

// Operand i of a dot is 0 beyond its K, dimension k: the load that it comes from sees to it, or a
// where.
static void zero_beyond(struct pad *p, struct tir_inst *dot, uint32_t i, const struct tir_type *was,
                        uint32_t k)
{
    struct tir_value *x = dot->operands[i];
    struct tir_tile_dim *dims = tir_type_is_tile(was) ? tir_extents_at(&p->extents, dot, i) : NULL;
    if (!dims || padded(&dims[k]) == was->shape[k])
        return;
    uint32_t dim = k;
    while (x->def && dimension_before(p, x->def, &dim))
        x = x->def->operands[0];
    struct tir_inst *load = x->def;
    if (!load || load->op != TIR_OP_LOAD || !pads_with_zero(load)) {
        struct tir_builder b = tir_builder_before(p->f, dot);
        struct tir_value *zero = tir_const_like(p->f, padded_type(p, was, dims), 0);
        struct tir_value *mask = inside(p, &b, was, dims, 1U << k);
        dot->operands[i] = choose_inside(&b, mask, dot->operands[i], zero);
    } else if (may_read_beside(p, load) &&
               !ends_with_tensor(p, load, p->was[x->id]->shape[dim], dim) &&
               !tir_map_get(&p->zeroed, tir_map_key(load) + dim)) {
        tir_map_set(&p->zeroed, tir_map_key(load) + dim, load);
        mask_out(p, load, TIR_LOAD_MASK, p->was[x->id], p->extents.of[x->id], 1U << dim);
    }
}

// Tiles of one number, where an operation wants their padded types.
static void pad_constants(struct pad *p, struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        struct tir_value *v = inst->operands[i];
        if (!v || v->kind != TIR_VALUE_CONST || !tir_type_is_tile(v->type))
            continue;
        const struct tir_type *to = padded_type(p, v->type, tir_extents_at(&p->extents, inst, i));
        if (to != v->type)
            inst->operands[i] = tir_const_as(p->f, to, v);
    }
}

static void pad_inst(struct pad *p, struct tir_inst *inst)
{
    const struct tir_type *was[2] = {NULL}; // the first operands
    for (uint32_t i = 0; i < inst->operand_count && i < TIR_COUNT_OF(was); i++)
        was[i] = inst->operands[i] ? p->was[inst->operands[i]->id] : NULL;
    struct tir_tile_dim *x =
        was[0] && tir_type_is_tile(was[0]) ? tir_extents_at(&p->extents, inst, 0) : NULL;
    const struct tir_value *r = inst->result_count ? inst->results[0] : NULL;
    pad_constants(p, inst);
    switch (inst->op) {
    case TIR_OP_LOAD:
        pad_access(p, inst, p->was[r->id], p->extents.of[r->id]);
        break;
    case TIR_OP_STORE:
    case TIR_OP_ATOMIC:
        pad_access(p, inst, was[0], x);
        break;
    case TIR_OP_REDUCE:
        pad_reduce(p, inst, was[0], x);
        break;
    case TIR_OP_EXTRACT:
        pad_extract(p, inst, x);
        break;
    case TIR_OP_DOT:
        zero_beyond(p, inst, TIR_DOT_A, was[TIR_DOT_A], 1);
        zero_beyond(p, inst, TIR_DOT_B, was[TIR_DOT_B], 0);
        break;
    default:
        break;
    }
}

static void report(struct pad *p)
{
    vec_foreach(const struct tir_tile_dims, it, &p->extents.tiles)
        for (uint32_t d = 0; d < it->value->type->rank; d++)
            if (padded(&it->dims[d]) != it->dims[d].size)
                tir_receipt_add(p->cx, TIR_TOPIC_LAUNCH, p->f->span,
                                "tiles: extent %lld padded to %lld, which threads divide",
                                (long long)it->dims[d].size, (long long)padded(&it->dims[d]));
}

// Tiles that threads still do not divide.
static void report_kept(struct pad *p)
{
    vec_foreach(const struct tir_tile_dims, it, &p->extents.tiles)
        for (uint32_t d = 0; is_ill_divided(p, it) && d < it->value->type->rank; d++) {
            const struct tir_tile_dim *c = tir_tile_dim_class(&it->dims[d]);
            if (c->keeper && !tir_is_pow2((uint64_t)c->size))
                tir_receipt_add(p->cx, TIR_TOPIC_LAUNCH, c->keeper->span,
                                "tiles: extent %lld stays, which threads do not divide: %s takes "
                                "no padding",
                                (long long)c->size, tir_ops[c->keeper->op].name);
        }
}

enum tir_change tir_pass_pad(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct pad p = {.f = f, .cx = cx, .threads = tir_choose_threads(f, cx)};
    p.was = arena_array(cx->scratch, const struct tir_type *, f->value_count);
    tir_map_init(&p.zeroed, cx->scratch);
    tir_extents_find(&p.extents, f, cx->scratch);
    tir_foreach_inst(inst, f)
        see_inst(&p, inst);
    const bool pads = choose(&p);
    report_kept(&p);
    if (!pads)
        return TIR_UNCHANGED;
    report(&p);
    vec_foreach(const struct tir_tile_dims, it, &p.extents.tiles)
        it->value->type = padded_type(&p, it->value->type, it->dims);
    tir_foreach_inst(inst, f)
        pad_inst(&p, inst);
    vec_foreach(struct tir_inst *, it, &p.staged)
        tir_stage_extract(f, *it);
    return TIR_CHANGED;
}
