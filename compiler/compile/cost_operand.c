// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The model of time (cost.c): what brings the operands of products.

#include "compile/cost_model.h"

// Does v follow from where its elements stand?
static enum tir_answer is_place(void *user, struct tir_value *v)
{
    (void)user;
    if (!v->def || v->def->op == TIR_OP_IOTA)
        return TIR_YES;
    return tir_is_elementwise(v->def) || v->def->op == TIR_OP_BROADCAST ? TIR_IF_OPERANDS : TIR_NO;
}

// A choice by place, such as an interleave, is mostly one among registers.
static bool is_work(struct cost_source *source, struct tir_value *v)
{
    struct tir_follow places;
    tir_follow_init(&places, source->arena, is_place, NULL);
    return tir_is_elementwise(v->def) && !tir_follows(&places, v) &&
           (v->def->op != TIR_OP_WHERE || !tir_follows(&places, v->def->operands[0]));
}

static enum tir_answer add_source(void *user, struct tir_value *v)
{
    struct cost_source *source = user;
    if (!v->def || !tir_type_is_tile(v->type))
        return TIR_YES;
    if (v->def->op == TIR_OP_LOAD) {
        bool is_first = !source->load ||
                        tir_type_bytes(source->load->results[0]->type) < tir_type_bytes(v->type);
        source->load = is_first ? v->def : source->load;
        source->bytes += tir_type_bytes(v->type);
    }
    source->is_of_product |= v->def->op == TIR_OP_DOT;
    if (is_work(source, v)) {
        source->work += tir_type_count(v->type);
        source->bits += tir_type_count(v->type) * tir_elems[v->type->elem].bits;
    }
    bool passes_on = tir_is_elementwise(v->def) || v->def->op == TIR_OP_PERMUTE ||
                     v->def->op == TIR_OP_BROADCAST || v->def->op == TIR_OP_RESHAPE;
    return passes_on ? TIR_IF_OPERANDS : TIR_YES;
}

struct cost_source tir_cost_source_of(const struct cost_model *m, struct tir_value *operand)
{
    struct cost_source source = {.arena = &m->cx->arena};
    struct tir_follow follow;
    tir_follow_init(&follow, &m->cx->arena, add_source, &source);
    tir_follows(&follow, operand);
    source.bytes = source.bytes ? source.bytes : tir_type_bytes(operand->type);
    return source;
}

// The tensor that an operand is loaded from, or NULL.
static const struct tir_value *tensor_of(const struct cost_source *from)
{
    const struct tir_value *base = from->load ? tir_ref_base(from->load) : NULL;
    return base && base->type->space == TIR_SPACE_GLOBAL && base->type->rank ? base : NULL;
}

// The kernel's tensor that it is; NULL: it is scratch memory.
static const struct tir_param *param_of(const struct cost_model *m, const struct tir_value *tensor)
{
    for (uint32_t i = 0; i < m->f->param_count; i++)
        if (m->f->params[i].value == tensor && !m->f->params[i].is_scratch)
            return &m->f->params[i];
    return NULL;
}

// Adds `more` where the rows of the tensor are no multiples of that many bytes.
static void push_off(struct cost_model *m, const struct tir_param *p, int64_t bytes, int64_t more)
{
    const struct tir_type *t = p->value->type;
    const struct tir_param_dim *row = &p->dims[t->rank - 1];
    tir_cost_push(m, row->dim < 0 ? TIR_FORMULA_CONST : TIR_FORMULA_DIM,
                  row->dim < 0 ? row->constant : row->dim);
    tir_cost_push(m, TIR_FORMULA_CONST,
                  TIR_MAX(1, bytes * 8 / TIR_MAX(8, tir_elems[t->elem].bits)));
    tir_cost_push(m, TIR_FORMULA_MOD, 0);
    tir_cost_push(m, TIR_FORMULA_CONST, 0);
    tir_cost_push(m, TIR_FORMULA_NE, 0);
    tir_cost_push(m, TIR_FORMULA_CONST, more);
    tir_cost_push(m, TIR_FORMULA_MUL, 0);
    tir_cost_push(m, TIR_FORMULA_ADD, 0);
}

// How long the rows of scratch tensors are is taken not to be known.
void tir_cost_push_askew(struct cost_model *m, const struct cost_source *from, int64_t together)
{
    const struct tir_cost *cost = tir_cost_of(m);
    const struct tir_value *tensor = tensor_of(from);
    const int64_t lines = from->bytes / together * cost->off_lines / 100;
    if (!tensor)
        return;
    const struct tir_param *p = param_of(m, tensor);
    if (!p) {
        tir_cost_push(m, TIR_FORMULA_CONST, lines);
        tir_cost_push(m, TIR_FORMULA_ADD, 0);
        return;
    }
    push_off(m, p, 128, lines);
    push_off(m, p, 32, from->bytes / together * cost->off_sectors / 100);
}

void tir_cost_push_by_threads(struct cost_model *m, const struct cost_source *from)
{
    const struct tir_cost *cost = tir_cost_of(m);
    const struct tir_value *tensor = tensor_of(from);
    const struct tir_param *p = tensor ? param_of(m, tensor) : NULL;
    if (!p)
        return;
    push_off(m, p, 16, from->bytes / cost->words);
    push_off(m, p, 4, from->bytes / cost->elements);
}

// The dimension of the loop that the slice of the load begins at along its dimension `at`, or -1.
static int32_t tile_dimension(const struct tir_inst *tiles, const struct tir_inst *load,
                              uint32_t at)
{
    for (uint32_t d = 0; d < tir_attr_find(tiles, TIR_ATTR_by)->list_count; d++)
        if (tir_ref_indices(load)[at] == tiles->regions[0]->args[d])
            return (int32_t)d;
    return -1;
}

int64_t tir_cost_sharing(const struct tir_inst *tiles, const struct cost_source *from)
{
    const struct tir_attr *cluster = tir_attr_find(tiles, TIR_ATTR_cluster);
    if (!cluster || !from->load)
        return 1;
    bool begins[TIR_MAX_RANK] = {false};
    for (uint32_t at = 0; at < tir_ref_base(from->load)->type->rank; at++) {
        const int32_t d = tile_dimension(tiles, from->load, at);
        if (tir_ref_indices(from->load)[at]->def)
            return 1; // computed from anything
        if (d >= 0)
            begins[d] = true;
    }
    int64_t together = 1;
    for (uint32_t d = 0; d < cluster->list_count; d++)
        together *= begins[d] ? 1 : cluster->list[d];
    return together;
}

void tir_cost_push_past(struct cost_model *m, const struct tir_inst *tiles,
                        const struct cost_source *from, int64_t together)
{
    const struct tir_attr *box = from->load ? tir_attr_find(from->load, TIR_ATTR_box) : NULL;
    const struct tir_attr *by = tir_attr_find(tiles, TIR_ATTR_by);
    for (uint32_t at = 0; box && at < box->list_count; at++) {
        const int32_t d = tile_dimension(tiles, from->load, at);
        if (d < 0 || box->list[at] <= 1 || !tir_cost_push_tiles_along(m, tiles, (uint32_t)d))
            continue;
        tir_cost_push(m, TIR_FORMULA_CONST, by->list[d]);
        tir_cost_push(m, TIR_FORMULA_MUL, 0);
        tir_cost_push_value(m, tiles->operands[d]);
        tir_cost_push(m, TIR_FORMULA_SUB, 0);
        tir_cost_push(m, TIR_FORMULA_GET, TILES); // as many for each of those along d
        tir_cost_push(m, TIR_FORMULA_MUL, 0);
        tir_cost_push_tiles_along(m, tiles, (uint32_t)d);
        tir_cost_push(m, TIR_FORMULA_CONST, 1); // no tiles at all
        tir_cost_push(m, TIR_FORMULA_MAX, 0);
        tir_cost_push(m, TIR_FORMULA_DIV, 0);
        tir_cost_push(m, TIR_FORMULA_CONST,
                      tir_type_bytes(from->load->results[0]->type) / box->list[at]);
        tir_cost_push(m, TIR_FORMULA_MUL, 0);
        tir_cost_push(m, TIR_FORMULA_CONST, together * tir_cost_of(m)->past);
        tir_cost_push(m, TIR_FORMULA_DIV, 0);
        tir_cost_push(m, TIR_FORMULA_ADD, 0);
    }
}
