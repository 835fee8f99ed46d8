// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Choices, a step of the layout pass and of tensor_memory: what a copy cannot bring takes its place
// where the tile is read.
//
//     let a: bf16[64, 64] = load(A[m:+64, k:+64], mask = c);
//     let d: f32[64, 64] = dot(a, ..., acc);
// becomes
//     let a: bf16[64, 64] = load(A[m:+64, k:+64]);
//     let b: bf16[64, 64] = where(c, a, 0);
//     let d: f32[64, 64] = dot(b, ..., acc);
//
// The tile is then copied as it is, and the operand computed. Copies fill what is outside of the
// tensor with zeros; another pad is chosen likewise: load(X[n:+256], pad = -inf) becomes
// where(n + iota < N, load(X[n:+256]), -inf).
//
// It is done for operands of products. A mask that cp.async can carry stays, unless the product
// would then not run on the tensor cores of the target. So do tiles with indices that are tiles.

#include "pass/layout/choice.h"

#include "ir/walk.h"
#include "machine/target.h"
#include "pass/async/cp_async.h"
#include "pass/layout/warpgroup.h"

static struct tir_value *spread(struct tir_builder *b, const struct tir_type *t,
                                struct tir_value *v)
{
    const bool as_it_is = tir_type_is_scalar(t) || !tir_type_is_scalar(v->type);
    return as_it_is ? v : tir_build1(b, TIR_OP_BROADCAST, t, &v, 1);
}

// Is the index inside of the tensor along the dimension?
static struct tir_value *inside(struct tir_func *f, struct tir_builder *b,
                                const struct tir_param_dim *dim, struct tir_value *index,
                                bool may_be_below)
{
    struct tir_value *end =
        dim->dim < 0 ? tir_const_int(f, tir_type_scalar(f->module->types, TIR_I64), dim->constant)
                     : f->dims[dim->dim].value;
    struct tir_value *begin = tir_const_int(f, end->type, 0);
    struct tir_value *below = tir_binary(b, TIR_OP_LT, index, spread(b, index->type, end));
    return may_be_below ? tir_binary(b, TIR_OP_AND, below,
                                     tir_binary(b, TIR_OP_GE, index, spread(b, index->type, begin)))
                        : below;
}

// An index tile, whose dimensions are those of the tile from `axis` on.
static struct tir_value *spread_from(struct tir_func *f, struct tir_builder *b,
                                     const struct tir_type *place, struct tir_value *tile,
                                     uint32_t axis)
{
    struct tir_types *types = f->module->types;
    int64_t shape[TIR_MAX_RANK];
    for (uint32_t i = 0; i < place->rank; i++)
        shape[i] = i >= axis && i < axis + tile->type->rank ? tile->type->shape[i - axis] : 1;
    tile = tir_build1(b, TIR_OP_CAST, tir_type_with_elem(types, tile->type, TIR_I64), &tile, 1);
    tile =
        tir_build1(b, TIR_OP_RESHAPE, tir_type_tile(types, TIR_I64, place->rank, shape), &tile, 1);
    return tir_build1(b, TIR_OP_BROADCAST, place, &tile, 1);
}

// Which elements are inside of the tensor, and so not padded; and what the mask leaves.
static struct tir_value *loaded(struct tir_func *f, const struct tir_ranges *ranges,
                                struct tir_builder *b, const struct tir_inst *load)
{
    const struct tir_value *x = load->results[0];
    struct tir_types *types = f->module->types;
    const struct tir_type *number = tir_type_with_elem(types, x->type, TIR_I32);
    const struct tir_type *place = tir_type_with_elem(types, x->type, TIR_I64);
    const struct tir_type *bits = tir_type_with_elem(types, x->type, TIR_BOOL);
    const struct tir_attr *box = tir_attr_find(load, TIR_ATTR_box);
    const struct tir_param *param = tir_param_of(f, tir_ref_base(load));
    struct tir_value *all = load->operands[TIR_LOAD_MASK];
    uint32_t axis = 0, tiles_at = UINT32_MAX;
    for (uint32_t d = 0; d < box->list_count; d++) {
        struct tir_value *index = tir_ref_indices(load)[d];
        const bool is_signed = tir_elems[index->type->elem].kind == TIR_KIND_SIGNED;
        int64_t low, high;
        tir_range_get(ranges, index, &low, &high);
        if (tir_type_is_tile(index->type)) {
            const uint32_t rank = index->type->rank;
            if (tiles_at == UINT32_MAX) {
                tiles_at = axis;
                axis += rank;
            }
            index = spread_from(f, b, place, index, tiles_at);
        } else {
            index = tir_build1(b, TIR_OP_CAST, tir_type_scalar(types, TIR_I64), &index, 1);
        }
        if (box->list[d] > 0) {
            struct tir_value *at = tir_build1(b, TIR_OP_IOTA, number, NULL, 0);
            tir_set_int(f, at->def, TIR_ATTR_axis, axis++);
            at = tir_build1(b, TIR_OP_CAST, place, &at, 1);
            index = tir_binary(b, TIR_OP_ADD, at, spread(b, place, index));
        }
        struct tir_value *is_in = inside(f, b, &param->dims[d], index, low < 0 || !is_signed);
        is_in = spread(b, bits, is_in);
        all = all ? tir_binary(b, TIR_OP_AND, spread(b, bits, all), is_in) : is_in;
    }
    return all;
}

// where(c, the load, otherwise) takes the place of the load.
static void choose(struct tir_func *f, struct tir_builder *b, const struct tir_inst *load,
                   struct tir_value *c, struct tir_value *otherwise)
{
    struct tir_value *x = load->results[0];
    struct tir_value *operands[] = {
        spread(b, tir_type_with_elem(f->module->types, x->type, TIR_BOOL), c), x,
        spread(b, x->type, otherwise)};
    struct tir_value *y = tir_build1(b, TIR_OP_WHERE, x->type, operands, 3);
    tir_replace_uses(f, x, y);
    y->def->operands[1] = x;
}

// The pad, if it is not what copies fill with, and they can do without it.
struct tir_value *tir_removable_pad(const struct tir_inst *load)
{
    struct tir_value *pad = load->operands[TIR_LOAD_PAD];
    if (!pad || tir_is_fill(pad))
        return NULL;
    const struct tir_type *tiles = NULL; // of the indices that are tiles: all alike
    for (uint32_t d = 0; d < tir_ref_base(load)->type->rank; d++) {
        const struct tir_type *t = tir_ref_indices(load)[d]->type;
        bool alike = !tiles || tiles->rank == t->rank;
        for (uint32_t i = 0; alike && tiles && i < t->rank; i++)
            alike = t->shape[i] == tiles->shape[i];
        if (tir_type_is_tile(t) && !alike)
            return NULL;
        if (tir_type_is_tile(t))
            tiles = t;
    }
    return pad;
}

void tir_choose_pad(struct tir_func *f, const struct tir_ranges *ranges, struct tir_inst *load)
{
    struct tir_value *pad = tir_removable_pad(load);
    struct tir_builder b = {f, load->block, load->next, load->span};
    if (!pad)
        return;
    choose(f, &b, load, loaded(f, ranges, &b, load), pad);
    load->operands[TIR_LOAD_PAD] = NULL;
}

// Can copies, which products on the target's tensor cores take, carry the mask?
static bool is_carried(const struct tir_func *f, const struct tir_target *target,
                       const struct tir_ranges *ranges, const struct tir_inst *load)
{
    const uint32_t least = target->features & TIR_HAS_WGMMA ? 16 : 4;
    const char *why;
    return !(target->features & TIR_HAS_TCGEN05) &&
           tir_tile_copy_width(f, target, ranges, load->results[0], &why) >= least;
}

static bool has_index_tile(const struct tir_inst *load)
{
    for (uint32_t d = 0; d < tir_ref_base(load)->type->rank; d++)
        if (tir_type_is_tile(tir_ref_indices(load)[d]->type))
            return true;
    return false;
}

static bool choose_for(struct tir_func *f, struct tir_pass_cx *cx, struct tir_inst *load)
{
    struct tir_ranges *ranges = tir_ranges_new(cx->scratch, f);
    struct tir_value *mask = load->operands[TIR_LOAD_MASK];
    if (has_index_tile(load) || !tir_is_only_read(f, tir_ref_base(load)))
        return false;
    if (tir_removable_pad(load)) {
        tir_choose_pad(f, ranges, load);
    } else if (mask && !is_carried(f, cx->target, ranges, load)) {
        struct tir_builder b = {f, load->block, load->next, load->span};
        choose(f, &b, load, mask, tir_const_like(f, load->results[0]->type, 0));
    } else {
        return false;
    }
    load->operands[TIR_LOAD_MASK] = NULL;
    return true;
}

bool tir_choose_operands(struct tir_func *f, struct tir_pass_cx *cx)
{
    VEC(struct tir_inst *) loads = {0};
    tir_foreach_inst(inst, f)
        for (uint32_t i = TIR_DOT_A; inst->op == TIR_OP_DOT && i <= TIR_DOT_B; i++) {
            struct tir_inst *load = tir_loaded_by(inst->operands[i]);
            if (load && (load->operands[TIR_LOAD_MASK] || load->operands[TIR_LOAD_PAD]))
                vec_push(cx->scratch, &loads, load);
        }
    bool changed = false;
    vec_foreach(struct tir_inst *, it, &loads)
        changed |= choose_for(f, cx, *it);
    return changed;
}
