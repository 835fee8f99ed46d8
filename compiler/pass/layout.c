// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// layout: chooses where each element of each tile lives.
//
//     let x: f32[64, 128] = load(X[i:+64, 0:+128]);
//     let s: f32[64, 1] = reduce(x, axis = 1, kind = sum);
// becomes
//     let x: f32[64, 128] in S[(16, 4, 32, 4) : (4, 1@warpid, 1@laneid, 1)] = load(X[i:+64,
//     0:+128]); let s: f32[64, 1] in S[(16, 4) : (1, 1@warpid)] + R[(32) : (1@laneid)] = reduce(x,
//     axis = 1, kind = sum);
//
// Layouts spread from anchors, the strictest first: what the program states, accumulators of
// gemm_async and dot (wgmma and mma fragments), scans,
// then loads and stores by falling size (16-byte vectors along the contiguous dimension; warps
// along dimensions that are not reduced, so that a row stays in a warp). Each anchor spreads
// through elementwise operations, shape changes, reductions and loop-carried values to whatever has
// no layout yet. Where two meet, a convert_layout is inserted, or the value is computed again when
// that costs nothing (iota and broadcasts of scalars). A store converts first when one instruction
// of it would touch less than a whole 32-byte sector in a row.
//
// Not done here: choosing between anchors by a global cost; the first claim wins.

#include "ir/range.h"
#include "ir/walk.h"
#include "pass/dot.h"
#include "pass/stage.h"
#include "pass/warpgroup.h"

struct use {
    struct tir_inst *inst;
    struct use *next;
};

struct solver {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_types *types;
    uint32_t warps;
    bool on_warpgroups;           // the products are
    const struct tir_layout **of; // by value id
    struct use **uses;            // by value id
    uint32_t value_count;
    VEC(struct tir_value *) work;
    VEC(struct tir_inst *) reduces;
    VEC(struct tir_inst *) transposes; // permutes of tiles
};

static bool is_elementwise(const struct tir_inst *inst)
{
    switch (tir_ops[inst->op].rule) {
    case TIR_RULE_SAME:
        return inst->op != TIR_OP_SCAN;
    case TIR_RULE_COMPARE:
    case TIR_RULE_SELECT:
        return true;
    default:
        return inst->op == TIR_OP_CAST || inst->op == TIR_OP_BITCAST;
    }
}

static bool needs_layout(const struct tir_value *v)
{
    return v && v->kind != TIR_VALUE_CONST && tir_type_is_tile(v->type);
}

static void assign(struct solver *s, struct tir_value *v, const struct tir_layout *l)
{
    if (!v || !l || !needs_layout(v) || s->of[v->id])
        return;
    s->of[v->id] = l;
    vec_push(s->cx->scratch, &s->work, v);
}

// Spreading.

static void spread_elementwise(struct solver *s, struct tir_inst *inst)
{
    const struct tir_layout *l = s->of[inst->results[0]->id];
    for (uint32_t i = 0; !l && i < inst->operand_count; i++)
        if (needs_layout(inst->operands[i]))
            l = s->of[inst->operands[i]->id];
    assign(s, inst->results[0], l);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        assign(s, inst->operands[i], l);
}

// All values that are one variable of a loop or the result of an if share a layout.
static void spread_group(struct solver *s, struct tir_value **group, uint32_t count)
{
    const struct tir_layout *l = NULL;
    for (uint32_t i = 0; !l && i < count; i++)
        if (needs_layout(group[i]))
            l = s->of[group[i]->id];
    for (uint32_t i = 0; i < count; i++)
        assign(s, group[i], l);
}

static struct tir_value *yielded(const struct tir_block *block, uint32_t i)
{
    struct tir_inst *yield = tir_yield_of(block);
    return yield && i < yield->operand_count ? yield->operands[i] : NULL;
}

// The argument of the block of a for or tiles loop that result i goes round by.
static struct tir_value *carried_arg(const struct tir_inst *inst, uint32_t i)
{
    const struct tir_block *block = inst->regions[0];
    return block->args[block->arg_count - inst->result_count + i];
}

static void spread_regions(struct solver *s, struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++) {
        struct tir_value *result = inst->results[i];
        if (inst->op == TIR_OP_IF) {
            struct tir_value *group[] = {result, yielded(inst->regions[0], i),
                                         yielded(inst->regions[1], i)};
            spread_group(s, group, TIR_COUNT_OF(group));
        } else if (inst->op == TIR_OP_GET) {
            struct tir_value *group[] = {result, yielded(inst->regions[0], i)};
            spread_group(s, group, TIR_COUNT_OF(group));
        } else if (inst->op == TIR_OP_FOR || inst->op == TIR_OP_TILES) {
            struct tir_value *group[] = {result, inst->operands[tir_carried_at(inst) + i],
                                         carried_arg(inst, i), yielded(inst->regions[0], i)};
            spread_group(s, group, TIR_COUNT_OF(group));
        } else if (inst->op == TIR_OP_WHILE) {
            struct tir_value *group[] = {result, inst->operands[i], inst->regions[0]->args[i],
                                         inst->regions[1]->args[i], yielded(inst->regions[1], i)};
            spread_group(s, group, TIR_COUNT_OF(group));
        }
    }
}

// The layout of a broadcast's operand when its result has layout l.
static const struct tir_layout *before_broadcast(struct solver *s, const struct tir_inst *inst,
                                                 const struct tir_layout *l)
{
    assert(inst->operands[0]);
    const struct tir_type *from = inst->operands[0]->type;
    for (uint32_t d = 0; l && d < from->rank; d++)
        if (from->shape[d] != l->shape[d])
            l = tir_layout_slice(s->types, l, d);
    return l;
}

static const struct tir_layout *unpermuted(struct solver *s, const struct tir_inst *inst,
                                           const struct tir_layout *l)
{
    const struct tir_attr *order = tir_attr_find(inst, TIR_ATTR_permutation);
    int64_t inverse[TIR_MAX_RANK];
    for (uint32_t d = 0; d < order->list_count; d++)
        inverse[order->list[d]] = d;
    return tir_layout_permute(s->types, l, inverse);
}

// The layout an index tile needs so that each thread has the indices of its own elements. at: the
// first dimension of the accessed tile that the index tile stands for.
static const struct tir_layout *of_index(struct solver *s, const struct tir_value *index,
                                         const struct tir_layout *access, uint32_t at)
{
    uint32_t rank = index->type->rank;
    for (uint32_t d = 0; d < access->rank; d++)
        if (d < at || d >= at + rank)
            access = tir_layout_slice(s->types, access, d);
    return tir_layout_reshape(s->types, access, rank, index->type->shape);
}

static void spread(struct solver *s, struct tir_inst *inst)
{
    struct tir_value *x = inst->operand_count ? inst->operands[0] : NULL;
    struct tir_value *r = inst->result_count ? inst->results[0] : NULL;
    const struct tir_layout *lx = x && needs_layout(x) ? s->of[x->id] : NULL;
    const struct tir_layout *lr = r && needs_layout(r) ? s->of[r->id] : NULL;

    if (is_elementwise(inst) && needs_layout(r)) {
        spread_elementwise(s, inst);
        return;
    }
    switch (inst->op) {
    case TIR_OP_BROADCAST:
        if (lr && needs_layout(x))
            assign(s, x, before_broadcast(s, inst, lr));
        break;
    case TIR_OP_RESHAPE:
        if (lr && needs_layout(x))
            assign(s, x, tir_layout_reshape(s->types, lr, x->type->rank, x->type->shape));
        if (lx && needs_layout(r))
            assign(s, r, tir_layout_reshape(s->types, lx, r->type->rank, r->type->shape));
        break;
    case TIR_OP_PERMUTE:
        if (lr)
            assign(s, x, unpermuted(s, inst, lr));
        if (lx)
            assign(
                s, r,
                tir_layout_permute(s->types, lx, tir_attr_find(inst, TIR_ATTR_permutation)->list));
        break;
    case TIR_OP_REDUCE:
        if (lx && needs_layout(r))
            assign(s, r,
                   tir_layout_slice(s->types, lx, (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0)));
        break;
    case TIR_OP_SCAN:
    case TIR_OP_CONVERT_LAYOUT:
        if (lr)
            assign(s, x, lr);
        break;
    case TIR_OP_DOT:
    case TIR_OP_GEMM_ASYNC:
        if (lr)
            assign(s, inst->operands[TIR_DOT_ACC], lr);
        break;
    case TIR_OP_AWAIT:
        for (uint32_t i = 0; i < inst->result_count; i++) {
            struct tir_value *group[] = {inst->results[i], inst->operands[i]};
            spread_group(s, group, TIR_COUNT_OF(group));
        }
        break;
    case TIR_OP_ATOMIC:
        assign(s, x, lr);
        assign(s, r, lx);
        break;
    case TIR_OP_FOR:
    case TIR_OP_WHILE:
    case TIR_OP_IF:
    case TIR_OP_TILES:
    case TIR_OP_GET:
        spread_regions(s, inst);
        break;
    case TIR_OP_YIELD:
        if (inst->block->owner)
            spread_regions(s, inst->block->owner);
        break;
    default:
        break;
    }
}

static void propagate(struct solver *s)
{
    while (s->work.len) {
        struct tir_value *v = vec_pop(&s->work);
        if (v->def)
            spread(s, v->def);
        else if (v->block->owner)
            spread(s, v->block->owner);
        for (struct use *u = s->uses[v->id]; u; u = u->next)
            spread(s, u->inst);
    }
}

// Anchors.

// Tiles of a role are spread over its own warps.
static void enter_crew(struct solver *s, const struct tir_inst *inst)
{
    while (inst && inst->op != TIR_OP_ROLE)
        inst = inst->block->owner;
    s->warps = inst ? (uint32_t)tir_attr_int(inst, TIR_ATTR_warps, 1) : s->f->threads / 32;
}

// What the program itself says.
static void anchor_stated(struct solver *s)
{
    tir_foreach_inst(inst, s->f) {
        for (uint32_t r = 0; r < inst->result_count; r++)
            assign(s, inst->results[r], inst->results[r]->type->layout);
        for (uint32_t k = 0; k < inst->region_count; k++)
            for (uint32_t i = 0; i < inst->regions[k]->arg_count; i++)
                assign(s, inst->regions[k]->args[i], inst->regions[k]->args[i]->type->layout);
    }
    propagate(s);
}

// Operand a of a gemm_async in registers.
static const struct tir_layout *products_layout(struct solver *s, const struct tir_inst *product,
                                                const struct tir_value *a)
{
    enter_crew(s, product);
    uint32_t rows = tir_wgmma_row_groups(product->results[0]->type->shape, s->warps);
    return tir_layout_wgmma_a(s->types, a->type->shape, tir_elems[a->type->elem].bits, rows,
                              s->warps);
}

// Sums that gemm_async computes: rows over the warpgroups, as far as there are rows for each.
static bool anchor_products(struct solver *s)
{
    tir_foreach_inst(inst, s->f) {
        if (inst->op != TIR_OP_GEMM_ASYNC)
            continue;
        enter_crew(s, inst);
        const struct tir_type *t = inst->results[0]->type;
        struct tir_value *a = inst->operands[TIR_DOT_A];
        uint32_t rows = tir_wgmma_row_groups(t->shape, s->warps);
        if (!rows) {
            tir_error_at(s->cx->diags, inst->span, TIR_E_UNSUPPORTED,
                         "gemm_async of %s on %u warps: 4 warps do 64 rows and 8 columns or more",
                         tir_type_text(s->cx->scratch, t).ptr, s->warps);
            return false;
        }
        assign(s, inst->results[0],
               tir_layout_wgmma(s->types, t->shape, rows, s->warps / 4 / rows, s->warps));
        propagate(s);
        if (tir_type_is_tile(a->type)) {
            assign(s, a, products_layout(s, inst, a));
            propagate(s);
        }
    }
    return true;
}

// Coalesced access: vectors and lanes along the contiguous dimension, warps away from reduced ones.
// vectors: bytes that may move at a time.
static const struct tir_layout *blocked(struct solver *s, const struct tir_type *t,
                                        uint32_t contiguous, uint32_t vectors)
{
    uint32_t order[TIR_MAX_RANK], warp_order[TIR_MAX_RANK], n = 0, w = 0;
    if (contiguous < t->rank)
        order[n++] = contiguous;
    for (uint32_t d = t->rank; d-- > 0;)
        if (d != contiguous)
            order[n++] = d;
    bool reduced[TIR_MAX_RANK] = {false};
    vec_foreach(struct tir_inst *, it, &s->reduces)
        if (tir_type_same_shape((*it)->operands[0]->type, t))
            reduced[tir_attr_int(*it, TIR_ATTR_axis, 0)] = true;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < t->rank; i++)
            if (reduced[order[i]] == (pass == 1))
                warp_order[w++] = order[i];
    int64_t share = TIR_MAX(1, tir_type_count(t) / (32 * s->warps)); // elements a thread
    uint32_t vector = TIR_MAX(1, vectors * 8 / tir_elems[t->elem].bits);
    while (vector > share)
        vector /= 2;
    // A tile that is transposed keeps a square of elements in each thread: vectors both ways.
    uint32_t patch = 1;
    vec_foreach(struct tir_inst *, it, &s->transposes)
        if (tir_type_same_shape((*it)->operands[0]->type, t))
            while (patch < vector && patch * vector < share)
                patch *= 2;
    return tir_layout_blocked(s->types, t->rank, t->shape, order, warp_order, TIR_MAX(1, vector),
                              patch, s->warps);
}

static const struct tir_layout *blocked_access(struct solver *s, const struct tir_inst *access,
                                               const struct tir_type *t)
{
    bool shared = tir_ref_base(access)->type->space == TIR_SPACE_SHARED;
    uint32_t vectors = shared ? 16 : tir_tensor_alignment(s->f, tir_ref_base(access));
    return blocked(s, t, tir_contiguous_dim(access, t->rank), vectors);
}

// Warps over the accumulator so that each warp's part is as square as possible: the operands it
// reads from shared memory are then smallest.
static const struct tir_layout *mma_layout(struct solver *s, const struct tir_type *t)
{
    uint32_t best_m = 1, best_n = 1;
    int64_t best_cost = INT64_MAX;
    for (uint32_t wm = 1; wm <= s->warps; wm++)
        for (uint32_t wn = 1; wm * wn <= s->warps; wn++) {
            if (s->warps % (wm * wn) || t->shape[0] % (16 * wm) || t->shape[1] % (8 * wn))
                continue;
            int64_t m = t->shape[0] / wm, n = t->shape[1] / wn;
            int64_t cost = m * n * 4096 + m + n; // first spread the work, then keep parts square
            if (cost < best_cost) {
                best_cost = cost;
                best_m = wm;
                best_n = wn;
            }
        }
    return tir_layout_mma(s->types, t->shape, best_m, best_n, s->warps);
}

// Rows over the warpgroups. An operand A in registers lies in them as a sum of its shape would.
static const struct tir_layout *wgmma_layout(struct solver *s, const struct tir_type *t)
{
    return tir_layout_wgmma(s->types, t->shape, s->warps / 4, 1, s->warps);
}

static void anchor_dots(struct solver *s)
{
    tir_foreach_inst(inst, s->f) {
        if (inst->op != TIR_OP_DOT)
            continue;
        enter_crew(s, inst);
        const struct tir_type *a = inst->operands[TIR_DOT_A]->type;
        const struct tir_type *b = inst->operands[TIR_DOT_B]->type;
        const struct tir_type *t = inst->results[0]->type;
        if (tir_dot_on_warpgroups(inst)) {
            assign(s, inst->results[0], wgmma_layout(s, t));
            propagate(s);
            assign(s, inst->operands[TIR_DOT_A], wgmma_layout(s, a)); // nothing for a buffer
            propagate(s);
            continue;
        }
        struct tir_dot_plan plan = tir_dot_plan(s->cx->arch, a->elem, b->elem, t->elem, t->shape[0],
                                                t->shape[1], a->shape[1]);
        assign(s, inst->results[0], plan.mma ? mma_layout(s, t) : blocked(s, t, 1, 16));
        propagate(s);
    }
}

static void anchor_scans(struct solver *s)
{
    tir_foreach_inst(inst, s->f)
        if (inst->op == TIR_OP_SCAN) {
            uint32_t axis = (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0);
            enter_crew(s, inst);
            assign(s, inst->results[0], blocked(s, inst->results[0]->type, axis, 16));
            propagate(s);
        }
}

// The tile that a memory access moves; NULL for scalars.
static struct tir_value *accessed(const struct tir_inst *inst)
{
    struct tir_value *v = NULL;
    if (inst->op == TIR_OP_LOAD)
        v = inst->results[0];
    else if (inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC)
        v = inst->operands[TIR_STORE_VALUE];
    return v && tir_type_is_tile(v->type) ? v : NULL;
}

static void anchor_accesses(struct solver *s)
{
    for (;;) {
        struct tir_inst *best = NULL;
        tir_foreach_inst(inst, s->f) {
            struct tir_value *v = accessed(inst);
            if (v && needs_layout(v) && !s->of[v->id] &&
                (!best || tir_type_count(v->type) > tir_type_count(accessed(best)->type)))
                best = inst;
        }
        if (!best)
            return;
        struct tir_value *v = accessed(best);
        enter_crew(s, best);
        assign(s, v, blocked_access(s, best, v->type));
        propagate(s);
    }
}

static void anchor_rest(struct solver *s)
{
    tir_foreach_inst(inst, s->f) {
        enter_crew(s, inst);
        for (uint32_t r = 0; r < inst->result_count; r++)
            if (needs_layout(inst->results[r]) && !s->of[inst->results[r]->id]) {
                const struct tir_type *t = inst->results[r]->type;
                assign(s, inst->results[r], blocked(s, t, t->rank - 1, 16));
                propagate(s);
            }
        for (uint32_t k = 0; k < inst->region_count; k++)
            for (uint32_t i = 0; i < inst->regions[k]->arg_count; i++) {
                struct tir_value *arg = inst->regions[k]->args[i];
                if (needs_layout(arg) && !s->of[arg->id]) {
                    assign(s, arg, blocked(s, arg->type, arg->type->rank - 1, 16));
                    propagate(s);
                }
            }
    }
}

// Rewriting.

// A value that costs nothing to compute again in another layout.
static bool is_cheap(const struct tir_value *v, uint32_t depth)
{
    if (v->kind == TIR_VALUE_CONST || tir_type_is_scalar(v->type))
        return true;
    if (!v->def || depth == 0)
        return false;
    switch (v->def->op) {
    case TIR_OP_IOTA:
        return true;
    case TIR_OP_BROADCAST:
    case TIR_OP_RESHAPE:
        return is_cheap(v->def->operands[0], depth - 1);
    default:
        if (!is_elementwise(v->def))
            return false;
        for (uint32_t i = 0; i < v->def->operand_count; i++)
            if (!is_cheap(v->def->operands[i], depth - 1))
                return false;
        return true;
    }
}

static const struct tir_layout *operand_layout(struct solver *s, const struct tir_inst *inst,
                                               uint32_t i, const struct tir_layout *result);

// v in layout l, at the builder's position.
static struct tir_value *in_layout(struct solver *s, struct tir_builder *b, struct tir_value *v,
                                   const struct tir_layout *l)
{
    if (!needs_layout(v) || v->type->layout == l)
        return v;
    const struct tir_type *type = tir_type_with_layout(s->types, v->type, l);
    if (!is_cheap(v, 6)) {
        struct tir_value *operands[] = {v, NULL};
        struct tir_value *y = tir_build1(b, TIR_OP_CONVERT_LAYOUT, type, operands, 2);
        y->name = v->name;
        return y;
    }
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
    if (inst->op == TIR_OP_ATOMIC || tir_ref_base(inst)->type->space != TIR_SPACE_GLOBAL ||
        dim == t->rank)
        return has;
    if (s->on_warpgroups) // tensor copies will fetch it, or a conversion would need too much memory
        return has;
    int64_t whole = t->shape[dim] * tir_elems[t->elem].bits / 8;
    if (run_bytes(has, dim, tir_elems[t->elem].bits) >= TIR_MIN(whole, 32))
        return has;
    enter_crew(s, inst);
    return blocked_access(s, inst, t);
}

// The layout operand i of inst must have, given the layout of the result (or of the stored value).
static const struct tir_layout *operand_layout(struct solver *s, const struct tir_inst *inst,
                                               uint32_t i, const struct tir_layout *result)
{
    struct tir_value *v = inst->operands[i];
    if (is_elementwise(inst))
        return result;
    switch (inst->op) {
    case TIR_OP_BROADCAST:
        return before_broadcast(s, inst, result);
    case TIR_OP_RESHAPE:
        if (!result) // a scalar
            return v->type->layout;
        return tir_layout_reshape(s->types, result, v->type->rank, v->type->shape);
    case TIR_OP_PERMUTE:
        return unpermuted(s, inst, result);
    case TIR_OP_SCAN:
        return result;
    case TIR_OP_DOT:
        return i == TIR_DOT_A && tir_type_is_tile(v->type) ? wgmma_layout(s, v->type) : result;
    case TIR_OP_LOAD:
    case TIR_OP_STORE:
    case TIR_OP_ATOMIC: {
        uint32_t fixed = tir_fixed_count(inst);
        if (i < fixed)
            return result;
        const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
        uint32_t at = 0; // dimension of the accessed tile that index i - fixed - 1 begins at
        for (uint32_t d = 0; d < i - fixed - 1; d++)
            at += box->list[d] > 0   ? 1
                  : box->list[d] < 0 ? inst->operands[fixed + 1 + d]->type->rank
                                     : 0;
        return of_index(s, v, result, at);
    }
    case TIR_OP_GEMM_ASYNC:
        return i == TIR_DOT_ACC ? result : products_layout(s, inst, v);
    case TIR_OP_AWAIT:
        return inst->results[i]->type->layout;
    case TIR_OP_FOR:
    case TIR_OP_TILES:
        return carried_arg(inst, i - tir_carried_at(inst))->type->layout;
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

static void set_types(struct solver *s)
{
    tir_foreach_inst(inst, s->f) {
        for (uint32_t r = 0; r < inst->result_count; r++)
            if (needs_layout(inst->results[r]))
                inst->results[r]->type = tir_type_with_layout(s->types, inst->results[r]->type,
                                                              s->of[inst->results[r]->id]);
        for (uint32_t k = 0; k < inst->region_count; k++)
            for (uint32_t i = 0; i < inst->regions[k]->arg_count; i++) {
                struct tir_value *arg = inst->regions[k]->args[i];
                if (needs_layout(arg))
                    arg->type = tir_type_with_layout(s->types, arg->type, s->of[arg->id]);
            }
    }
}

static void convert_operands(struct solver *s, struct tir_inst *inst)
{
    struct tir_builder b = tir_builder_before(s->f, inst);
    const struct tir_layout *result = inst->result_count ? inst->results[0]->type->layout : NULL;
    struct tir_value *stored = accessed(inst);
    if (stored && inst->op != TIR_OP_LOAD)
        result = store_layout(s, inst);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i] && needs_layout(inst->operands[i]))
            inst->operands[i] =
                in_layout(s, &b, inst->operands[i], operand_layout(s, inst, i, result));
}

// The result of a reduction or an atomic has the layout that its operand gives it; if users settled
// on another, convert.
static void settle_result(struct solver *s, struct tir_inst *inst)
{
    struct tir_value *r = inst->results[0], *x = inst->operands[0];
    if (!needs_layout(r) || !needs_layout(x))
        return;
    const struct tir_layout *own = x->type->layout;
    if (inst->op == TIR_OP_REDUCE)
        own = tir_layout_slice(s->types, own, (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0));
    if (own == r->type->layout)
        return;
    struct tir_builder b = {s->f, inst->block, inst->next, inst->span};
    struct tir_value *operands[] = {r, NULL};
    struct tir_value *y = tir_build1(&b, TIR_OP_CONVERT_LAYOUT, r->type, operands, 2);
    tir_replace_uses(s->f, r, y);
    y->def->operands[0] = r;
    r->type = tir_type_with_layout(s->types, r->type, own);
}

static void rewrite(struct solver *s)
{
    set_types(s);
    VEC(struct tir_inst *) all = {0};
    tir_foreach_inst(inst, s->f)
        vec_push(s->cx->scratch, &all, inst);
    vec_foreach(struct tir_inst *, it, &all)
        if ((*it)->op == TIR_OP_REDUCE || (*it)->op == TIR_OP_ATOMIC)
            settle_result(s, *it);
    vec_foreach(struct tir_inst *, it, &all)
        convert_operands(s, *it);
}

// Elements of tiles that threads hold while they compute the dot: its sums, and what the loop
// around it carries, which the sums are part of unless they begin from nothing.
static int64_t held_elements(const struct tir_inst *dot)
{
    const struct tir_value *acc = dot->operands[TIR_DOT_ACC];
    int64_t sums = tir_type_count(dot->results[0]->type), carried = 0;
    const struct tir_inst *loop = dot->block->owner;
    for (uint32_t i = 0; loop && loop->op == TIR_OP_FOR && i < loop->result_count; i++)
        if (tir_type_is_tile(loop->results[i]->type))
            carried += tir_type_count(loop->results[i]->type);
    return acc->kind == TIR_VALUE_CONST ? sums + carried : TIR_MAX(sums, carried);
}

// Threads of the CTA, when the program does not say.
static uint32_t choose_threads(const struct tir_func *f)
{
    int64_t largest = 1, held = 0, share = 16;
    tir_foreach_inst(inst, f) {
        if (inst->op == TIR_OP_PERMUTE && tir_type_is_tile(inst->results[0]->type))
            share = 64; // room for a square patch
        for (uint32_t r = 0; r < inst->result_count; r++)
            if (tir_type_is_tile(inst->results[r]->type))
                largest = TIR_MAX(largest, tir_type_count(inst->results[r]->type));
        if (inst->op == TIR_OP_DOT)
            held = TIR_MAX(held, held_elements(inst));
    }
    // A dot: 64 x 64 accumulators a warp. Otherwise `share` elements a thread.
    int64_t want = held ? held / 4096 : largest / (32 * share);
    uint32_t most = held ? 8 : largest > 16384 ? 32 : 16, warps = 4;
    while (warps < want && warps < most)
        warps *= 2;
    return 32 * warps;
}

// The iterators of dimension d that a view keeps, innermost first; `box` elements of it, from a
// start that `divisor` divides (0: from 0). UINT32_MAX: the view has no layout of its own, because
// a digit of the start carries over to the next, breaks the pattern of the swizzle, or is not
// aligned to 16 bytes, on which who reads a layout relies.
static uint32_t viewed_iters(const struct tir_layout *l, uint32_t d, int64_t box, uint64_t divisor,
                             uint32_t bytes, struct tir_iter *kept)
{
    uint32_t count = 0;
    for (uint32_t i = l->first[d + 1]; i-- > l->first[d];) {
        struct tir_iter it = l->iters[i];
        uint64_t weight = (uint64_t)tir_layout_weight(l, d, i);
        int64_t take = TIR_MIN(box, (int64_t)it.extent);
        assert(take > 0);
        if (divisor % (weight * it.extent)) { // the start's digit is a multiple of step
            uint64_t step = divisor % weight ? 1 : tir_gcd(divisor / weight, it.extent);
            if ((uint64_t)take > TIR_MAX(step, 1) && i > l->first[d])
                return UINT32_MAX;
            if (step * it.stride * bytes % (l->swizzle ? 1024 : 16))
                return UINT32_MAX;
        }
        if (box % take)
            return UINT32_MAX;
        box /= take;
        it.extent = (uint32_t)take;
        kept[count++] = it;
    }
    return box == 1 ? count : UINT32_MAX;
}

// A view's layout follows from its buffer's; NULL: it has none.
static const struct tir_layout *view_layout(struct solver *s, const struct tir_inst *view,
                                            const struct tir_ranges *ranges)
{
    const struct tir_type *base = tir_ref_base(view)->type;
    const struct tir_layout *l = base->layout;
    const struct tir_attr *box = tir_attr_find(view, TIR_ATTR_box);
    if (!l)
        return NULL;
    struct tir_layout out = {.swizzle = l->swizzle};
    for (uint32_t d = 0; d < l->rank; d++) {
        struct tir_iter kept[TIR_MAX_ITERS];
        uint64_t divisor = tir_range_divisor(ranges, tir_ref_indices(view)[d]);
        uint32_t count = viewed_iters(l, d, TIR_MAX(box->list[d], 1), divisor,
                                      TIR_MAX(1, tir_elems[base->elem].bits / 8), kept);
        if (count == UINT32_MAX)
            return NULL;
        if (!box->list[d])
            continue;
        out.shape[out.rank++] = box->list[d];
        while (count)
            out.iters[out.iter_count++] = kept[--count];
        out.first[out.rank] = out.iter_count;
    }
    return tir_layout_get(s->types, &out);
}

static void give_buffers_layouts(struct solver *s)
{
    const struct tir_ranges *ranges = tir_ranges_new(s->cx->scratch, s->f);
    tir_foreach_inst(inst, s->f)
        for (uint32_t r = 0; r < inst->result_count; r++) {
            const struct tir_type *t = inst->results[r]->type;
            if (t->elem == TIR_MBARRIER)
                continue;
            if ((inst->op == TIR_OP_ALLOC || inst->op == TIR_OP_RING) && !t->layout)
                inst->results[r]->type = tir_type_with_layout(
                    s->types, t,
                    tir_layout_memory(s->types, t->rank, t->shape, tir_elems[t->elem].bits, 0));
            if (inst->op == TIR_OP_VIEW && !t->layout)
                inst->results[r]->type =
                    tir_type_with_layout(s->types, t, view_layout(s, inst, ranges));
            if (inst->op == TIR_OP_REMOTE)
                inst->results[r]->type =
                    tir_type_with_layout(s->types, t, inst->operands[0]->type->layout);
            if (inst->op == TIR_OP_PERMUTE && tir_type_is_buffer(t) &&
                inst->operands[0]->type->layout)
                inst->results[r]->type = tir_type_with_layout(
                    s->types, t,
                    tir_layout_permute(s->types, inst->operands[0]->type->layout,
                                       tir_attr_find(inst, TIR_ATTR_permutation)->list));
        }
}

// A constant has no layout, which reductions, scans and stores need: a broadcast takes its place.
static void spread_constants(struct tir_func *f)
{
    tir_foreach_inst(inst, f) {
        bool takes = inst->op == TIR_OP_REDUCE || inst->op == TIR_OP_SCAN ||
                     inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC;
        struct tir_value *x = takes ? inst->operands[0] : NULL;
        if (!x || x->kind != TIR_VALUE_CONST || !tir_type_is_tile(x->type))
            continue;
        struct tir_value *one = tir_const_element(f, x);
        struct tir_builder b = tir_builder_before(f, inst);
        inst->operands[0] = tir_build1(&b, TIR_OP_BROADCAST, x->type, &one, 1);
    }
}

// copy_async through an index tile: no engine of the copies follows one.
static void load_gathered_copies(struct tir_func *f)
{
    for (struct tir_inst *inst = tir_walk_next(f->body, NULL), *next; inst; inst = next) {
        next = tir_walk_next(f->body, inst);
        const struct tir_attr *box =
            inst->op == TIR_OP_COPY_ASYNC ? tir_attr_find(inst, TIR_ATTR_box) : NULL;
        bool gathered = false;
        for (uint32_t d = 0; box && d < box->list_count; d++)
            gathered |= box->list[d] < 0;
        if (gathered)
            tir_stage_copy(f, inst, NULL);
    }
}

enum tir_change tir_pass_layout(struct tir_func *f, struct tir_pass_cx *cx)
{
    tir_plan_warpgroups(f, cx);
    if (!f->threads)
        f->threads = choose_threads(f);
    struct solver s = {.f = f,
                       .cx = cx,
                       .types = f->module->types,
                       .warps = f->threads / 32,
                       .on_warpgroups = tir_has_warpgroup_dot(f)};
    give_buffers_layouts(&s);
    tir_stage_dots(f, cx);
    tir_pass_dce(f, cx); // transposes of tiles that buffers now stand for
    spread_constants(f);
    load_gathered_copies(f);

    s.value_count = f->value_count;
    s.of = arena_array(cx->scratch, const struct tir_layout *, s.value_count);
    s.uses = arena_array(cx->scratch, struct use *, s.value_count);
    tir_foreach_inst(inst, f) {
        s.on_warpgroups |= inst->op == TIR_OP_GEMM_ASYNC;
        if (inst->op == TIR_OP_REDUCE)
            vec_push(cx->scratch, &s.reduces, inst);
        if (inst->op == TIR_OP_PERMUTE && tir_type_is_tile(inst->results[0]->type))
            vec_push(cx->scratch, &s.transposes, inst);
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            struct tir_value *v = inst->operands[i];
            if (!v)
                continue;
            struct use *u = arena_new(cx->scratch, struct use);
            *u = (struct use){inst, s.uses[v->id]};
            s.uses[v->id] = u;
        }
    }
    anchor_stated(&s);
    if (!anchor_products(&s))
        return TIR_FAILED;
    anchor_dots(&s);
    anchor_scans(&s);
    anchor_accesses(&s);
    anchor_rest(&s);
    rewrite(&s);
    return TIR_CHANGED;
}
