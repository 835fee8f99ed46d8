// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// defer: what a loop adds up is combined over lanes and warps once, behind the loop.
//
//     let l: f32[64, 1] in W = for t: i64 in range(0, T, 128) carry (l2: f32[64, 1] in W = 0) {
//         ...
//         let s: f32[64, 1] in W = reduce(p, axis = 1, kind = sum);  // f32[64, 128], 4 lanes a row
//         let l3: f32[64, 1] in W = fma(l2, a, s);
//         yield l3;
//     }
// becomes
//     let l: f32[64, 4] in V = for t: i64 in range(0, T, 128) carry (l2: f32[64, 4] in V = 0) {
//         ...
//         let s: f32[64, 4] in V = ...;  // p as f32[64, 16, 4, 2], reduced along axes 1 and 3
//         let l3: f32[64, 4] in V = fma(l2, broadcast(a), s);
//         yield l3;
//     }
//     let l4: f32[64, 1] in W = reduce(l, axis = 1, kind = sum);
//
// A reduction combines registers, then lanes by shuffles, then warps through shared memory with a
// barrier. In a loop only the first part has to be done in each round, if what is carried is used
// for nothing but its next value, which is a sum of reductions and of the old value, that may be
// multiplied by a factor of each row (as a softmax does); or the largest or smallest of them.
// FlashAttention sums its rows so (arXiv:2307.08691, section 3.1).
//
// Floating-point sums are added in another order. Elements narrower than 32 bits, whose reductions
// are rounded once, stay as they are, as do products and reductions with a function.

#include "ir/layout.h"
#include "ir/walk.h"
#include "pass/pass.h"
#include "pass/receipt.h"

enum { MOST_UPDATES = 8 };

struct step { // of the reduction within a thread
    enum tir_op op;
    const struct tir_type *type;
    uint32_t axis; // of a reduction
};

// Reductions of x, one after the other, and then reshapes.
struct leaf {
    struct tir_value *x, *sum;
    uint32_t axes; // a bit for each that is reduced
    VEC(struct step) steps;
    const struct tir_type *part; // what a thread has of it: x with fewer elements along the axes
    const struct tir_type *line; // with one along each
};

struct deferral { // of one value that a loop carries
    struct tir_func *f;
    struct tir_pass_cx *cx;
    const uint32_t *uses; // by value id
    struct tir_inst *loop;
    const struct tir_value *arg;
    enum tir_word kind;
    struct tir_inst *updates[MOST_UPDATES]; // the last one first
    uint32_t update_count;
    VEC(struct leaf) leaves;
};

static bool is_once(const struct deferral *d, const struct tir_value *v)
{
    return v->def && v->def->block == d->loop->regions[0] && d->uses[v->id] == 1;
}

static bool is_reduction(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_REDUCE && !inst->region_count && inst->result_count == 1;
}

static const struct tir_type *reshaped(const struct deferral *d, const struct tir_type *t,
                                       uint32_t rank, const int64_t *shape)
{
    struct tir_types *types = d->f->module->types;
    const struct tir_type *to = tir_type_tile(types, t->elem, rank, shape);
    const struct tir_layout *l = tir_layout_reshape(types, t->layout, rank, shape);
    return l ? tir_type_with_layout(types, to, l) : NULL;
}

static const struct tir_type *reduced(const struct deferral *d, const struct tir_type *t,
                                      uint32_t axis)
{
    struct tir_types *types = d->f->module->types;
    int64_t shape[TIR_MAX_RANK];
    memcpy(shape, t->shape, sizeof(shape));
    shape[axis] = 1;
    return tir_type_with_layout(types, tir_type_tile(types, t->elem, t->rank, shape),
                                tir_layout_slice(types, t->layout, axis));
}

static bool add_step(const struct deferral *d, struct leaf *leaf, enum tir_op op, uint32_t axis,
                     const struct tir_type *type)
{
    if (type)
        vec_push(d->cx->scratch, &leaf->steps, ((struct step){op, type, axis}));
    return type;
}

// The innermost digit of an axis that registers have; UINT32_MAX: none.
static uint32_t last_digit(const struct tir_layout *l, uint32_t axis)
{
    for (uint32_t i = l->first[axis + 1]; i-- > l->first[axis];)
        if (l->iters[i].axis == TIR_AXIS_REG)
            return i;
    return UINT32_MAX;
}

// Plans the reduction of the registers along an axis: each digit becomes a dimension of its own.
// Neighbours are combined first: they are made one after the other.
static bool plan_axis(const struct deferral *d, struct leaf *leaf, uint32_t axis)
{
    uint32_t i;
    while ((i = last_digit(leaf->part->layout, axis)) != UINT32_MAX) {
        const struct tir_type *t = leaf->part;
        const int64_t extent = t->layout->iters[i].extent;
        const int64_t inner = tir_layout_weight(t->layout, axis, i);
        const int64_t outer = t->shape[axis] / extent / inner;
        int64_t shape[TIR_MAX_RANK];
        if (t->rank + 2 > TIR_MAX_RANK)
            return false;
        memcpy(shape, t->shape, axis * sizeof(*shape));
        memcpy(shape + axis, (int64_t[]){outer, extent, inner}, 3 * sizeof(*shape));
        memcpy(shape + axis + 3, t->shape + axis + 1, (t->rank - axis - 1) * sizeof(*shape));
        const struct tir_type *split = reshaped(d, t, t->rank + 2, shape);
        if (!add_step(d, leaf, TIR_OP_RESHAPE, 0, split) ||
            !add_step(d, leaf, TIR_OP_REDUCE, axis + 1, reduced(d, split, axis + 1)))
            return false;
        memcpy(shape, t->shape, sizeof(shape));
        shape[axis] = outer * inner;
        leaf->part = reshaped(d, vec_last(&leaf->steps).type, t->rank, shape);
        if (!add_step(d, leaf, TIR_OP_RESHAPE, 0, leaf->part))
            return false;
    }
    return true;
}

// Plans what is left for the rounds, and whether it ends as the value that it replaces.
static bool plan(const struct deferral *d, struct leaf *leaf)
{
    leaf->part = leaf->x->type;
    for (uint32_t axis = 0; axis < leaf->x->type->rank; axis++)
        if (leaf->axes >> axis & 1 && !plan_axis(d, leaf, axis))
            return false;
    leaf->line = leaf->part;
    for (uint32_t axis = leaf->x->type->rank; axis--;)
        if (leaf->axes >> axis & 1)
            leaf->line = reduced(d, leaf->line, axis);
    const struct tir_type *end = leaf->sum->type;
    return leaf->part != leaf->line && leaf->part->layout &&
           (end->rank == 0 || end == leaf->line ||
            end == reshaped(d, leaf->line, end->rank, end->shape));
}

static bool find_leaf(struct deferral *d, struct tir_value *v)
{
    struct leaf leaf = {.sum = v};
    if (!is_once(d, v))
        return false;
    while (is_once(d, v) && v->def->op == TIR_OP_RESHAPE)
        v = v->def->operands[0];
    while (is_once(d, v) && is_reduction(v->def) &&
           tir_attr_word(v->def, TIR_ATTR_kind, TIR_WORD_NONE) == d->kind) {
        leaf.axes |= 1u << tir_attr_int(v->def, TIR_ATTR_axis, 0);
        v = v->def->operands[TIR_REDUCE_X];
    }
    leaf.x = v;
    if (!leaf.axes || !v->type->layout || tir_elems[v->type->elem].bits < 32 || !plan(d, &leaf))
        return false;
    if (d->leaves.len && d->leaves.at[0].part != leaf.part)
        return false;
    vec_push(d->cx->scratch, &d->leaves, leaf);
    return true;
}

// Which operands of an update of this kind may be the old value, and which must be reductions?
struct role {
    uint32_t old, leaf; // a bit for each operand
};

static struct role roles_of(enum tir_op op, enum tir_word kind)
{
    const bool is_sum = kind == TIR_WORD_kind_sum;
    if ((op == TIR_OP_ADD && is_sum) || (op == TIR_OP_MAX && kind == TIR_WORD_kind_max) ||
        (op == TIR_OP_MIN && kind == TIR_WORD_kind_min))
        return (struct role){3, 3};
    if (op == TIR_OP_MUL && is_sum)
        return (struct role){3, 0};
    if (op == TIR_OP_FMA && is_sum)
        return (struct role){3, 4};
    return (struct role){0, 0};
}

// Does v follow from the old value, by updates alone?
static bool leads_to_old(struct deferral *d, const struct tir_value *v)
{
    if (v == d->arg)
        return d->uses[v->id] == 1;
    if (!is_once(d, v) || d->update_count == MOST_UPDATES)
        return false;
    struct tir_inst *inst = v->def;
    const struct role role = roles_of(inst->op, d->kind);
    const uint32_t count = d->update_count;
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        if (!(role.old >> i & 1))
            continue;
        d->updates[d->update_count++] = inst;
        if (leads_to_old(d, inst->operands[i]))
            return true;
        d->update_count = count;
    }
    return false;
}

// The operand of an update that leads on: the value of the update before it, or the old value.
static const struct tir_value *old_of(const struct deferral *d, uint32_t update)
{
    return update + 1 < d->update_count ? d->updates[update + 1]->results[0] : d->arg;
}

static bool find_leaves(struct deferral *d)
{
    d->leaves.len = 0;
    for (uint32_t u = 0; u < d->update_count; u++) {
        const struct role role = roles_of(d->updates[u]->op, d->kind);
        for (uint32_t i = 0; i < d->updates[u]->operand_count; i++) {
            struct tir_value *v = d->updates[u]->operands[i];
            if (role.leaf >> i & 1 && v != old_of(d, u) && !find_leaf(d, v))
                return false;
        }
    }
    return d->leaves.len;
}

static enum tir_word kind_of_update(enum tir_op op)
{
    return op == TIR_OP_MAX   ? TIR_WORD_kind_max
           : op == TIR_OP_MIN ? TIR_WORD_kind_min
                              : TIR_WORD_kind_sum;
}

static struct tir_value *build_reduction(const struct deferral *d, struct tir_builder *b,
                                         const struct tir_type *t, struct tir_value *x,
                                         uint32_t axis)
{
    struct tir_value *y = tir_build1(b, TIR_OP_REDUCE, t, (struct tir_value *[]){x, NULL}, 2);
    tir_set_int(d->f, y->def, TIR_ATTR_axis, axis);
    tir_set_word(d->f, y->def, TIR_ATTR_kind, d->kind);
    return y;
}

static struct tir_value *build_part(const struct deferral *d, const struct leaf *leaf)
{
    struct tir_builder b = tir_builder_before(d->f, leaf->sum->def);
    struct tir_value *v = leaf->x;
    vec_foreach(const struct step, step, &leaf->steps)
        v = step->op == TIR_OP_REDUCE ? build_reduction(d, &b, step->type, v, step->axis)
            : v->type == step->type   ? v
                                      : tir_build1(&b, TIR_OP_RESHAPE, step->type, &v, 1);
    return v;
}

// A factor of each row, for each thread of the row.
static struct tir_value *spread(const struct deferral *d, struct tir_builder *b,
                                struct tir_value *v)
{
    const struct leaf *leaf = &d->leaves.at[0];
    if (v->kind == TIR_VALUE_CONST)
        return tir_const_as(d->f, leaf->part, v);
    if (v->type->rank && v->type != leaf->line)
        v = tir_build1(b, TIR_OP_RESHAPE, leaf->line, &v, 1);
    return tir_build1(b, TIR_OP_BROADCAST, leaf->part, &v, 1);
}

// What the loop begins with: one thread of a row has it, if sums are carried.
static struct tir_value *build_init(const struct deferral *d, struct tir_value *init)
{
    const struct leaf *leaf = &d->leaves.at[0];
    struct tir_types *types = d->f->module->types;
    struct tir_builder b = tir_builder_before(d->f, d->loop);
    struct tir_value *all = spread(d, &b, init), *zero = tir_const_like(d->f, leaf->part, 0);
    if (d->kind != TIR_WORD_kind_sum || all == zero)
        return all;
    for (uint32_t axis = 0; axis < leaf->part->rank; axis++) {
        if (!(leaf->axes >> axis & 1) || leaf->part->shape[axis] == 1)
            continue;
        struct tir_type t = {.elem = TIR_I32, .rank = leaf->part->rank};
        const struct tir_layout *l = leaf->part->layout;
        for (uint32_t i = 0; i < t.rank; i++) {
            t.shape[i] = i == axis ? leaf->part->shape[i] : 1;
            l = i == axis ? l : tir_layout_slice(types, l, i);
        }
        const struct tir_type *line = tir_type_with_layout(types, tir_type_get(types, &t), l);
        struct tir_value *at = tir_build1(&b, TIR_OP_IOTA, line, NULL, 0);
        tir_set_int(d->f, at->def, TIR_ATTR_axis, axis);
        struct tir_value *is_first = tir_binary(&b, TIR_OP_EQ, at, tir_const_like(d->f, line, 0));
        is_first = tir_build1(&b, TIR_OP_BROADCAST, tir_type_with_elem(types, leaf->part, TIR_BOOL),
                              &is_first, 1);
        all = tir_build1(&b, TIR_OP_WHERE, leaf->part, (struct tir_value *[]){is_first, all, zero},
                         3);
    }
    return all;
}

static void build_end(const struct deferral *d, struct tir_value *result,
                      const struct tir_type *end)
{
    const struct leaf *leaf = &d->leaves.at[0];
    struct tir_builder b = {d->f, d->loop->block, d->loop->next, d->loop->span};
    struct tir_value *v = result, *first = NULL;
    for (uint32_t axis = leaf->part->rank; axis--;) // as the source sums all axes
        if (leaf->axes >> axis & 1) {
            v = build_reduction(d, &b, reduced(d, v->type, axis), v, axis);
            first = first ? first : v;
        }
    if (v->type != end)
        v = tir_build1(&b, TIR_OP_RESHAPE, end, &v, 1);
    v->name = result->name;
    tir_replace_uses(d->f, result, v);
    first->def->operands[TIR_REDUCE_X] = result;
}

static void build(struct deferral *d, uint32_t carried)
{
    const struct tir_type *part = d->leaves.at[0].part;
    struct tir_value *result = d->loop->results[carried],
                     *arg = d->loop->regions[0]->args[1 + carried],
                     **init = &d->loop->operands[TIR_FOR_INIT + carried];
    const struct tir_type *end = result->type;
    uint32_t next = 0;
    *init = build_init(d, *init);
    for (uint32_t u = 0; u < d->update_count; u++) {
        struct tir_inst *inst = d->updates[u];
        const struct role role = roles_of(inst->op, d->kind);
        struct tir_builder b = tir_builder_before(d->f, inst);
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            if (inst->operands[i] == old_of(d, u))
                continue;
            inst->operands[i] = role.leaf >> i & 1 ? build_part(d, &d->leaves.at[next++])
                                                   : spread(d, &b, inst->operands[i]);
        }
    }
    for (uint32_t u = 0; u < d->update_count; u++)
        d->updates[u]->results[0]->type = part;
    arg->type = result->type = part;
    build_end(d, result, end);
    tir_receipt_add(d->cx, TIR_TOPIC_LOOP, d->loop->span,
                    "loop: %s is combined over lanes and warps behind it",
                    result->name ? result->name : "a sum");
}

static bool visit(struct deferral *d, uint32_t carried)
{
    const struct tir_value *last = tir_yield_of(d->loop->regions[0])->operands[carried];
    d->arg = d->loop->regions[0]->args[1 + carried];
    d->update_count = 0;
    if (!last->def || !d->uses[d->loop->results[carried]->id])
        return false;
    d->kind = kind_of_update(last->def->op);
    if (!leads_to_old(d, last) || !find_leaves(d))
        return false;
    build(d, carried);
    return true;
}

enum tir_change tir_pass_defer(struct tir_func *f, struct tir_pass_cx *cx)
{
    VEC(struct tir_inst *) loops = {0};
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_FOR)
            vec_push(cx->scratch, &loops, inst);
    struct deferral d = {.f = f, .cx = cx, .uses = tir_count_uses(cx->scratch, f)};
    enum tir_change change = TIR_UNCHANGED;
    for (uint32_t i = loops.len; i--;) // inner ones first
        for (uint32_t c = 0; c < loops.at[i]->result_count; c++) {
            d.loop = loops.at[i];
            if (!visit(&d, c))
                continue;
            change = TIR_CHANGED;
            tir_pass_dce(f, cx); // what is left of the reduction is no use of its operand
            d.uses = tir_count_uses(cx->scratch, f);
        }
    return change;
}
