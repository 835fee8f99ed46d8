// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// layout, rewriting: types with the layouts that were found, and conversions where two meet.

#include "machine/budget.h"
#include "pass/async/pixels.h"
#include "pass/layout/layout.h"
#include "pass/layout/staging.h"

static bool is_cheap(const struct tir_value *v, uint32_t depth)
{
    if (v->kind == TIR_VALUE_CONST || tir_type_is_scalar(v->type))
        return true;
    if (!v->def || depth == 0)
        return false;
    switch (v->def->op) {
    case TIR_OP_IOTA:
    case TIR_OP_PIXEL_INDEX: // a tensor copy counts pixels itself
        return true;
    case TIR_OP_RESHAPE: // other digits than those of its operand may be cut
        if (!tir_type_differs_in_ones(v->type, v->def->operands[0]->type))
            return false;
        return is_cheap(v->def->operands[0], depth - 1);
    case TIR_OP_BROADCAST:
        return is_cheap(v->def->operands[0], depth - 1);
    default:
        if (!tir_is_elementwise(v->def))
            return false;
        for (uint32_t i = 0; i < v->def->operand_count; i++)
            if (!is_cheap(v->def->operands[i], depth - 1))
                return false;
        return true;
    }
}

bool tir_solver_is_cheap(const struct tir_value *v)
{
    return is_cheap(v, 6);
}

// The layout of `of`, the operand or the result of a reshape, with the same elements in the same
// threads as the other one in layout l. NULL: a digit would be cut.
static const struct tir_layout *reshaped(struct solver *s, const struct tir_type *of,
                                         const struct tir_layout *l)
{
    return tir_layout_reshape(s->types, l, of->rank, of->shape);
}

static const struct tir_layout *operand_layout(struct solver *s, const struct tir_inst *inst,
                                               uint32_t i, const struct tir_layout *result);

// A tile of which there are fewer elements: they change threads rather than all that repeat them.
static bool repeats(const struct tir_value *v)
{
    return v->def && v->def->op == TIR_OP_BROADCAST &&
           tir_type_count(v->def->operands[0]->type) < tir_type_count(v->type);
}

// v in layout l, at the builder's position.
static struct tir_value *in_layout(struct solver *s, struct tir_builder *b, struct tir_value *v,
                                   const struct tir_layout *l)
{
    if (!tir_solver_needs_layout(v) || v->type->layout == l)
        return v;
    if (v->def && v->def->op == TIR_OP_CONVERT_LAYOUT) // once is enough
        return in_layout(s, b, v->def->operands[0], l);
    const struct tir_type *type = tir_type_with_layout(s->types, v->type, l);
    if (!tir_solver_is_cheap(v) && !repeats(v)) {
        struct tir_value *operands[] = {v, NULL};
        struct tir_value *y = tir_build1(b, TIR_OP_CONVERT_LAYOUT, type, operands, 2);
        y->name = v->name;
        return y;
    }
    if (v->def->op == TIR_OP_PIXEL_INDEX)
        return tir_pixels_in_layout(b, v, l);
    struct tir_value *operands[4] = {NULL};
    for (uint32_t i = 0; i < v->def->operand_count; i++)
        operands[i] = in_layout(s, b, v->def->operands[i], operand_layout(s, v->def, i, l));
    struct tir_value *y = tir_build1(b, v->def->op, type, operands, v->def->operand_count);
    const struct tir_attr *axis = tir_attr_find(v->def, TIR_ATTR_axis);
    if (axis)
        tir_set_int(s->f, y->def, TIR_ATTR_axis, axis->number);
    y->name = v->name;
    return y;
}

// How many bytes along the contiguous dimension neighbouring lanes touch with one instruction.
static int64_t run_bytes(const struct tir_layout *l, uint32_t dim, uint32_t bits)
{
    int64_t run = 1;
    bool lanes = false;
    for (uint32_t i = l->first[dim + 1]; i-- > l->first[dim];) {
        enum tir_axis axis = l->iters[i].axis;
        if (axis == TIR_AXIS_WARP || (axis == TIR_AXIS_REG && lanes))
            break; // another instruction's registers
        lanes |= axis == TIR_AXIS_LANE;
        run *= l->iters[i].extent;
    }
    return run * bits / 8;
}

// The layout a store or atomic writes its value in.
static const struct tir_layout *store_layout(struct solver *s, const struct tir_inst *inst)
{
    const struct tir_value *v = inst->operands[TIR_STORE_VALUE];
    const struct tir_layout *has = v->type->layout;
    const struct tir_type *t = v->type;
    uint32_t dim = tir_contiguous_dim(inst, t->rank);
    if (tir_ref_base(inst)->type->space == TIR_SPACE_TMEM)
        return tir_solver_tmem_layout(s, inst);
    if (inst->op == TIR_OP_ATOMIC || tir_ref_base(inst)->type->space != TIR_SPACE_GLOBAL ||
        dim == t->rank)
        return has;
    if (s->leaves_by_copies) // tensor copies will fetch it, or a conversion would need too much memory
        return has;
    int64_t whole = t->shape[dim] * tir_elems[t->elem].bits / 8;
    if (run_bytes(has, dim, tir_elems[t->elem].bits) >= TIR_MIN(whole, TIR_BUDGET_RUN_BYTES))
        return has;
    tir_solver_enter_crew(s, inst);
    return tir_solver_blocked_access(s, inst, t);
}

// A layout of the operand of extract, or of its result, in which pieces that make up both lie in
// the same threads. NULL: threads would hold too much.
static const struct tir_layout *in_pieces(struct solver *s, const struct tir_inst *extract,
                                          const struct tir_type *of)
{
    const struct tir_type *whole = extract->operands[0]->type, *part = extract->results[0]->type;
    const struct tir_attr *start = tir_attr_find(extract, TIR_ATTR_start);
    struct tir_type piece = *part;
    for (uint32_t d = 0; d < part->rank; d++) {
        uint64_t g = tir_gcd((uint64_t)whole->shape[d], (uint64_t)part->shape[d]);
        piece.shape[d] = (int64_t)tir_gcd(g, (uint64_t)start->list[d]);
    }
    tir_solver_enter_crew(s, extract);
    // Parts that are pieces lie as their users want them.
    const struct tir_layout *l = part->layout && tir_type_same_shape(&piece, part)
                                     ? part->layout
                                     : tir_solver_blocked(s, &piece, piece.rank - 1, 16);
    int64_t count = tir_type_count(whole), share = count / (32 * s->warps);
    int64_t held = count / tir_type_count(&piece) * tir_layout_size(l, TIR_AXIS_REG);
    int64_t most = TIR_BUDGET_PIECE_ELEMENTS;
    if (tir_may_stage_extract(extract))
        most = TIR_MIN(most, TIR_MAX(TIR_BUDGET_PADDED_ELEMENTS, TIR_BUDGET_PADDED_SHARES * share));
    if (held > most)
        return NULL;
    return tir_layout_repeat(s->types, l, of->shape);
}

// The layout operand i of inst must have, given the layout of the result (or of the stored value).
static const struct tir_layout *operand_layout(struct solver *s, const struct tir_inst *inst,
                                               uint32_t i, const struct tir_layout *result)
{
    struct tir_value *v = inst->operands[i];
    if (tir_is_elementwise(inst))
        return result;
    switch (inst->op) {
    case TIR_OP_BROADCAST:
        return tir_solver_before_broadcast(s, inst, result);
    case TIR_OP_RESHAPE:
        if (!result) // a scalar
            return v->type->layout;
        return reshaped(s, v->type, result) ? reshaped(s, v->type, result) : v->type->layout;
    case TIR_OP_EXTRACT:
        if (!tir_solver_part(s, inst, v->type->layout) && in_pieces(s, inst, v->type))
            return in_pieces(s, inst, v->type);
        return v->type->layout;
    case TIR_OP_PERMUTE:
        return tir_solver_unpermuted(s, inst, result);
    case TIR_OP_SCAN:
        return result;
    case TIR_OP_REDUCE: // as the first tile, which keeps its own
        return inst->operands[TIR_REDUCE_X]->type->layout;
    case TIR_OP_DOT:
        return i == TIR_DOT_A && tir_type_is_tile(v->type) ? tir_solver_products_layout(s, inst, v)
                                                           : result;
    case TIR_OP_LOAD:
    case TIR_OP_STORE:
    case TIR_OP_ATOMIC: {
        uint32_t fixed = tir_fixed_count(inst);
        if (i < fixed)
            return result;
        return tir_layout_of_index(s->types, v->type->rank, v->type->shape, result,
                                   tir_slice_dim(inst, i - fixed - 1));
    }
    case TIR_OP_GEMM_ASYNC:
        return i == TIR_DOT_ACC ? result : tir_solver_products_layout(s, inst, v);
    case TIR_OP_AWAIT:
        return inst->results[i]->type->layout;
    case TIR_OP_FOR:
    case TIR_OP_TILES:
        return tir_solver_carried_arg(inst, i - tir_carried_at(inst))->type->layout;
    case TIR_OP_WHILE:
        return inst->regions[0]->args[i]->type->layout;
    case TIR_OP_YIELD: {
        const struct tir_inst *owner = inst->block->owner;
        if (owner->op == TIR_OP_WHILE)
            return owner->regions[1]->args[i]->type->layout;
        return owner->results[i]->type->layout;
    }
    default:
        return v->type->layout;
    }
}

// What a loop carries has one layout: its results and the arguments of its blocks, each of which
// may have got another one from what is around it.
static void agree(struct solver *s, const struct tir_inst *loop)
{
    bool is_while = loop->op == TIR_OP_WHILE;
    for (uint32_t i = 0; i < loop->result_count; i++) {
        const struct tir_value *arg =
            is_while ? loop->regions[0]->args[i] : tir_solver_carried_arg(loop, i);
        if (!tir_solver_needs_layout(arg))
            continue;
        s->of[loop->results[i]->id] = s->of[arg->id];
        if (is_while)
            s->of[loop->regions[1]->args[i]->id] = s->of[arg->id];
    }
}

static void set_types(struct solver *s)
{
    tir_foreach_inst(inst, s->f)
        if (tir_carries(inst))
            agree(s, inst);
    tir_foreach_inst(inst, s->f) {
        for (uint32_t r = 0; r < inst->result_count; r++)
            if (tir_solver_needs_layout(inst->results[r]))
                inst->results[r]->type = tir_type_with_layout(s->types, inst->results[r]->type,
                                                              s->of[inst->results[r]->id]);
        for (uint32_t k = 0; k < inst->region_count; k++)
            for (uint32_t i = 0; i < inst->regions[k]->arg_count; i++) {
                struct tir_value *arg = inst->regions[k]->args[i];
                if (tir_solver_needs_layout(arg))
                    arg->type = tir_type_with_layout(s->types, arg->type, s->of[arg->id]);
            }
    }
}

static bool is_product_fence(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_FENCE &&
           tir_attr_word(inst, TIR_ATTR_of, TIR_WORD_NONE) == TIR_WORD_of_wgmma;
}

// Where v is converted for inst: in front of it. A conversion writes registers, so for a product
// that a fence stands in front of it comes before that, unless v does not.
static struct tir_inst *conversion_place(struct tir_inst *inst, const struct tir_value *v)
{
    if (inst->op != TIR_OP_GEMM_ASYNC)
        return inst;
    for (struct tir_inst *at = inst->prev; at && at != v->def; at = at->prev)
        if (is_product_fence(at))
            return at;
    return inst;
}

// Where parts are cut from v, one after the other, it is converted for the first of them. NULL: it
// has not been, or not since a loop or branch, over which registers would hold it.
static struct tir_value *converted_before(const struct tir_inst *extract, const struct tir_value *v,
                                          const struct tir_layout *l)
{
    for (const struct tir_inst *at = extract->prev; at && !at->region_count; at = at->prev)
        if (at->op == TIR_OP_CONVERT_LAYOUT && at->operands[0] == v &&
            at->results[0]->type->layout == l)
            return at->results[0];
    return NULL;
}

static void convert_operands(struct solver *s, struct tir_inst *inst)
{
    const struct tir_layout *result = inst->result_count ? inst->results[0]->type->layout : NULL;
    struct tir_value *stored = tir_solver_accessed(inst);
    if (stored && inst->op != TIR_OP_LOAD)
        result = store_layout(s, inst);
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        struct tir_value *v = inst->operands[i];
        if (!v || !tir_solver_needs_layout(v))
            continue;
        struct tir_builder b = tir_builder_before(s->f, conversion_place(inst, v));
        const struct tir_layout *l = operand_layout(s, inst, i, result);
        struct tir_value *before = inst->op == TIR_OP_EXTRACT ? converted_before(inst, v, l) : NULL;
        inst->operands[i] = before ? before : in_layout(s, &b, v, l);
    }
}

// The layout that inst gives its result, when it is not free to choose. NULL: it is.
static const struct tir_layout *given_layout(struct solver *s, const struct tir_inst *inst)
{
    const struct tir_value *r = inst->results[0],
                           *x = inst->operand_count ? inst->operands[0] : NULL;
    const struct tir_layout *own = tir_solver_needs_layout(x) ? x->type->layout : NULL;
    switch (inst->op) {
    case TIR_OP_DOT:
        return tir_solver_dot_layout(s, inst, r->type->layout);
    case TIR_OP_ATOMIC:
        return own;
    case TIR_OP_LOAD:
        return tir_solver_tmem_layout(s, inst);
    case TIR_OP_REDUCE:
        return own ? tir_layout_slice(s->types, own, (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0))
                   : NULL;
    case TIR_OP_RESHAPE: // its users', unless that cuts a digit
        if (!own || !r->type->layout || reshaped(s, x->type, r->type->layout))
            return NULL;
        return reshaped(s, r->type, own);
    case TIR_OP_SCAN: // as the first result
        return r->type->layout;
    case TIR_OP_EXTRACT:
        if (own && tir_solver_part(s, inst, own))
            return tir_solver_part(s, inst, own);
        return own ? in_pieces(s, inst, r->type) : NULL;
    default:
        return NULL;
    }
}

// If users settled on another layout than the one inst gives its result, convert.
static void settle_result(struct solver *s, struct tir_inst *inst, struct tir_value *r,
                          const struct tir_layout *own)
{
    if (!own || !tir_solver_needs_layout(r) || own == r->type->layout)
        return;
    struct tir_builder b = {s->f, inst->block, inst->next, inst->span};
    struct tir_value *operands[] = {r, NULL};
    struct tir_value *y = tir_build1(&b, TIR_OP_CONVERT_LAYOUT, r->type, operands, 2);
    tir_replace_uses(s->f, r, y);
    y->def->operands[0] = r;
    r->type = tir_type_with_layout(s->types, r->type, own);
}

static void settle_results(struct solver *s, struct tir_inst *inst)
{
    bool combines = inst->op == TIR_OP_REDUCE || inst->op == TIR_OP_SCAN;
    if (inst->result_count != 1 && !combines)
        return;
    const struct tir_layout *own = given_layout(s, inst);
    for (uint32_t i = 0; i < inst->result_count; i++)
        settle_result(s, inst, inst->results[i], own);
}

// Does no layout do for what the operation makes of its operand?
static bool goes_through_memory(struct solver *s, const struct tir_inst *inst)
{
    const struct tir_value *x = inst->operand_count ? inst->operands[0] : NULL;
    if (!tir_solver_needs_layout(x))
        return false;
    const struct tir_type *r = inst->result_count ? inst->results[0]->type : NULL;
    if (inst->op == TIR_OP_EXTRACT)
        return !given_layout(s, inst);
    return inst->op == TIR_OP_RESHAPE && r->layout && !reshaped(s, x->type, r->layout) &&
           !reshaped(s, r, x->type->layout);
}

// Parts that no layout gives every thread something of, and shapes that cut digits of layouts.
static void stage_others(struct solver *s)
{
    for (struct tir_inst *inst = tir_walk_next(s->f->body, NULL), *next; inst; inst = next) {
        next = tir_walk_next(s->f->body, inst);
        if (!goes_through_memory(s, inst))
            continue;
        if (inst->op == TIR_OP_EXTRACT)
            tir_stage_extract(s->f, inst);
        else
            tir_stage_reshape(s->f, inst);
    }
}

void tir_solver_settle(struct solver *s)
{
    set_types(s);
    stage_others(s);
    VEC(struct tir_inst *) all = {0};
    tir_foreach_inst(inst, s->f)
        vec_push(s->cx->scratch, &all, inst);
    vec_foreach(struct tir_inst *, it, &all)
        settle_results(s, *it);
    vec_foreach(struct tir_inst *, it, &all)
        convert_operands(s, *it);
}
