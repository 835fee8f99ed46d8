// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// layout, spreading: from a value that has a layout to those that follow from it.

#include "pass/layout/layout.h"

bool tir_solver_needs_layout(const struct tir_value *v)
{
    return v && v->kind != TIR_VALUE_CONST && tir_type_is_tile(v->type);
}

void tir_solver_assign(struct solver *s, struct tir_value *v, const struct tir_layout *l)
{
    if (!v || !l || !tir_solver_needs_layout(v) || s->of[v->id])
        return;
    s->of[v->id] = l;
    vec_push(s->cx->scratch, &s->work, v);
}

// Does v's layout reach what is computed from it? Not from one product to another by a mask or a
// number of elements, of which each can have its own.
static bool leads_on(const struct solver *s, const struct tir_value *v)
{
    return !s->of_products || !tir_solver_is_cheap(v);
}

static void spread_elementwise(struct solver *s, struct tir_inst *inst)
{
    const struct tir_layout *l = s->of[inst->results[0]->id];
    for (uint32_t i = 0; !l && i < inst->operand_count; i++)
        if (tir_solver_needs_layout(inst->operands[i]) && leads_on(s, inst->operands[i]))
            l = s->of[inst->operands[i]->id];
    tir_solver_assign(s, inst->results[0], l);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        tir_solver_assign(s, inst->operands[i], l);
}

// All values that are one variable of a loop or the result of an if share a layout.
static void spread_group(struct solver *s, struct tir_value **group, uint32_t count)
{
    const struct tir_layout *l = NULL;
    for (uint32_t i = 0; !l && i < count; i++)
        if (tir_solver_needs_layout(group[i]))
            l = s->of[group[i]->id];
    for (uint32_t i = 0; i < count; i++)
        tir_solver_assign(s, group[i], l);
}

static struct tir_value *yielded(const struct tir_block *block, uint32_t i)
{
    struct tir_inst *yield = tir_yield_of(block);
    return yield && i < yield->operand_count ? yield->operands[i] : NULL;
}

// The argument of the block of a for or tiles loop that result i goes round by.
struct tir_value *tir_solver_carried_arg(const struct tir_inst *inst, uint32_t i)
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
                                         tir_solver_carried_arg(inst, i),
                                         yielded(inst->regions[0], i)};
            spread_group(s, group, TIR_COUNT_OF(group));
        } else if (inst->op == TIR_OP_WHILE) {
            struct tir_value *group[] = {result, inst->operands[i], inst->regions[0]->args[i],
                                         inst->regions[1]->args[i], yielded(inst->regions[1], i)};
            spread_group(s, group, TIR_COUNT_OF(group));
        }
    }
}

// The layout of a broadcast's operand when its result has layout l.
const struct tir_layout *tir_solver_before_broadcast(struct solver *s, const struct tir_inst *inst,
                                                     const struct tir_layout *l)
{
    assert(inst->operands[0]);
    const struct tir_type *from = inst->operands[0]->type;
    for (uint32_t d = 0; l && d < from->rank; d++)
        if (from->shape[d] != l->shape[d])
            l = tir_layout_slice(s->types, l, d);
    return l;
}

const struct tir_layout *tir_solver_unpermuted(struct solver *s, const struct tir_inst *inst,
                                               const struct tir_layout *l)
{
    const struct tir_attr *order = tir_attr_find(inst, TIR_ATTR_permutation);
    int64_t inverse[TIR_MAX_RANK];
    for (uint32_t d = 0; d < order->list_count; d++)
        inverse[order->list[d]] = d;
    return tir_layout_permute(s->types, l, inverse);
}

const struct tir_layout *tir_solver_part(struct solver *s, const struct tir_inst *extract,
                                         const struct tir_layout *l)
{
    const struct tir_attr *start = tir_attr_find(extract, TIR_ATTR_start);
    const int64_t *shape = extract->results[0]->type->shape;
    for (uint32_t d = 0; d < l->rank; d++)
        if (start->list[d] % shape[d])
            return NULL;
    return tir_layout_part(s->types, l, shape);
}

// What is combined together has one layout. Results of a scan have it too, and their layout is that
// of the tiles; of a reduction it goes one way.
static void spread_combined(struct solver *s, struct tir_inst *inst)
{
    struct tir_value *group[TIR_MAX_COMBINED];
    uint32_t count = tir_combined_count(inst);
    for (uint32_t i = 0; i < count; i++)
        group[i] = inst->operands[tir_combined_at(inst, i)];
    for (uint32_t i = 0; inst->op == TIR_OP_SCAN && i < count; i++)
        if (s->of[inst->results[i]->id])
            for (uint32_t j = 0; j < count; j++)
                tir_solver_assign(s, group[j], s->of[inst->results[i]->id]);
    if (count > 1)
        spread_group(s, group, count);
    if (!tir_solver_needs_layout(group[0]) || !s->of[group[0]->id])
        return;
    uint32_t axis = (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0);
    const struct tir_layout *l = s->of[group[0]->id];
    for (uint32_t i = 0; i < count; i++)
        if (inst->op == TIR_OP_REDUCE)
            tir_solver_assign(s, inst->results[i], tir_layout_slice(s->types, l, axis));
        else if (count > 1)
            tir_solver_assign(s, inst->results[i], l);
}

// Of a load in layout l.
static void spread_to_operand(struct solver *s, const struct tir_inst *load, uint32_t i,
                              const struct tir_layout *l)
{
    struct tir_value *v = load->operands[i];
    const uint32_t fixed = tir_fixed_count(load);
    if (!v || !tir_solver_needs_layout(v))
        return;
    if (i > fixed)
        l = tir_layout_of_index(s->types, v->type->rank, v->type->shape, l,
                                tir_slice_dim(load, i - fixed - 1));
    tir_solver_assign(s, v, l);
}

// Sums of a product that others are joined with along dimension 0: a thread has the same elements
// of all of them, so joining them moves nothing.
static bool is_joined(const struct tir_inst *broadcast)
{
    const struct tir_inst *reshape = broadcast->operands[0]->def;
    const struct tir_type *from = broadcast->operands[0]->type, *to = broadcast->results[0]->type;
    return reshape && reshape->op == TIR_OP_RESHAPE && reshape->operands[0]->def &&
           reshape->operands[0]->def->op == TIR_OP_DOT && from->rank == 3 && from->shape[0] == 1 &&
           from->shape[1] == to->shape[1] && from->shape[2] == to->shape[2];
}

static void spread(struct solver *s, struct tir_inst *inst)
{
    struct tir_value *x = inst->operand_count ? inst->operands[0] : NULL;
    struct tir_value *r = inst->result_count ? inst->results[0] : NULL;
    const struct tir_layout *lx = x && tir_solver_needs_layout(x) ? s->of[x->id] : NULL;
    const struct tir_layout *lr = r && tir_solver_needs_layout(r) ? s->of[r->id] : NULL;

    if (tir_is_elementwise(inst) && tir_solver_needs_layout(r)) {
        spread_elementwise(s, inst);
        return;
    }
    switch (inst->op) {
    case TIR_OP_BROADCAST:
        if (lr && tir_solver_needs_layout(x))
            tir_solver_assign(s, x, tir_solver_before_broadcast(s, inst, lr));
        else if (lx && is_joined(inst))
            tir_solver_assign(s, r, tir_layout_repeat(s->types, lx, r->type->shape));
        break;
    case TIR_OP_RESHAPE:
        if (lr && tir_solver_needs_layout(x))
            tir_solver_assign(s, x,
                              tir_layout_reshape(s->types, lr, x->type->rank, x->type->shape));
        if (lx && tir_solver_needs_layout(r))
            tir_solver_assign(s, r,
                              tir_layout_reshape(s->types, lx, r->type->rank, r->type->shape));
        break;
    case TIR_OP_PERMUTE:
        if (lr)
            tir_solver_assign(s, x, tir_solver_unpermuted(s, inst, lr));
        if (lx)
            tir_solver_assign(
                s, r,
                tir_layout_permute(s->types, lx, tir_attr_find(inst, TIR_ATTR_permutation)->list));
        break;
    case TIR_OP_REDUCE:
    case TIR_OP_SCAN:
        spread_combined(s, inst);
        break;
    case TIR_OP_EXTRACT:
        if (lx)
            tir_solver_assign(s, r, tir_solver_part(s, inst, lx));
        break;
    case TIR_OP_CONVERT_LAYOUT:
        if (lr)
            tir_solver_assign(s, x, lr);
        break;
    case TIR_OP_DOT:
    case TIR_OP_GEMM_ASYNC:
        if (lr)
            tir_solver_assign(s, inst->operands[TIR_DOT_ACC], lr);
        break;
    case TIR_OP_AWAIT:
        for (uint32_t i = 0; i < inst->result_count; i++) {
            struct tir_value *group[] = {inst->results[i], inst->operands[i]};
            spread_group(s, group, TIR_COUNT_OF(group));
        }
        break;
    case TIR_OP_LOAD: // each thread loads or computes the indices and the mask of its own elements
        for (uint32_t i = 0; lr && i < inst->operand_count; i++)
            spread_to_operand(s, inst, i, lr);
        break;
    case TIR_OP_ATOMIC:
        tir_solver_assign(s, x, lr);
        tir_solver_assign(s, r, lx);
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

void tir_solver_propagate(struct solver *s)
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
