// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tensor_memory: operands of products, and what brings them.
//
// An operand is a tile that tensor copies can bring to shared memory, or one that the kernel
// computes. The latter goes to tensor memory if it is a first factor of blocks of 128 rows and
// there is room, else to shared memory.

#include "pass/role/tensor_memory.h"

#include "ir/walk.h"
#include "pass/async/pixels.h"
#include "pass/async/stride.h"
#include "pass/async/tma.h"
#include "pass/layout/operand.h"
#include "pass/layout/scale.h"

enum {
    TMA_ROW = 16, // bytes
    FEWEST = 64   // elements along a side of one of several copies that bring an operand
};

const char *tir_tmem_take_load(struct tmem_plan *p, const struct tir_inst *load)
{
    const struct tir_value *tensor = tir_ref_base(load);
    const struct tir_attr *box = tir_attr_find(load, TIR_ATTR_box);
    const bool is_pixels = tir_pixels_of(load);
    if (tmem_has_mask_or_pad(load))
        return "an operand has a mask or a pad";
    if (tensor->type->space != TIR_SPACE_GLOBAL || !tir_is_only_read(p->f, tensor))
        return "an operand is no tensor that the kernel only reads";
    if (tensor->type->rank > TIR_TMA_MAX_RANK)
        return "an operand is part of a tensor with more than 5 dimensions";
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d] < 0 ? !is_pixels && !tir_counts_along(load, d)
                             : box->list[d] > TIR_TMA_MAX_BOX &&
                                   tir_tma_divisor(box->list[d], TIR_TMA_MAX_BOX) < FEWEST)
            return "a tensor copy fetches no such part";
    const int64_t last = box->list[box->list_count - 1];
    if (last >= 0 && (last == 0 || last * tir_elems[tensor->type->elem].bits % (8 * TMA_ROW)))
        return "the rows of an operand are no multiple of 16 bytes";
    for (uint32_t d = 0; d < box->list_count; d++)
        if (!tir_tmem_is_computable(p, tir_ref_indices(load)[d]) &&
            !(box->list[d] < 0 && tir_tmem_is_ahead(p, tir_ref_indices(load)[d])))
            return "where an operand begins depends on more than scalars";
    if (tir_tensor_alignment(p->f, tensor) < TMA_ROW)
        return "the rows of an operand are not known to be aligned to 16 bytes";
    return tir_tma_start_refusal(p->ranges, load)
               ? "where an operand begins is not known to be a multiple of 16 bytes"
               : NULL;
}

// Does a descriptor describe the operand in shared memory? k_last: its rows are along K.
static bool has_descriptor(const struct tir_type *t, bool k_last)
{
    const int64_t bits = tir_elems[t->elem].bits, row = t->shape[1] * bits / 8;
    return row % 32 == 0 && (k_last || bits == 16);
}

// Can threads store the operand of this type, whose last dimension is K, for a descriptor? They
// store no parts of bytes, and what tensor copies expand no threads do.
static bool may_turn(const struct tir_value *v, const struct tir_type *t)
{
    const bool is_made = v->kind == TIR_VALUE_RESULT && v->def->op != TIR_OP_EXPAND;
    return is_made && tir_elems[t->elem].bits % 8 == 0 && has_descriptor(t, true);
}

// The transpose of a tile of the round, of which one is made for all products.
static struct tir_value *turned_once(struct tmem_plan *p, struct tir_value *v)
{
    struct tir_builder after = {p->f, v->def->block, v->def->next, v->def->span};
    for (struct tir_inst *inst = after.before; inst; inst = inst->next) {
        if (inst->op != TIR_OP_PERMUTE || inst->operands[0] != v ||
            tir_attr_find(inst, TIR_ATTR_permutation)->list[0] != 1)
            continue;
        if (inst != after.before)
            tir_move_before(inst, after.before);
        return tir_result(inst);
    }
    return tir_transpose(&after, v);
}

// Second factors with rows along N that no descriptor describes are turned twice: once when they
// are computed, and once as what lies in shared memory then. First ones are permuted already.
void tir_tmem_turn_factors(struct tmem_plan *p)
{
    tir_foreach_inst(dot, p->f) {
        struct tir_value *v = dot->op == TIR_OP_DOT ? dot->operands[TIR_DOT_B] : NULL;
        if (!v || dot->block != p->loop->regions[0] || v->kind != TIR_VALUE_RESULT ||
            v->def->op == TIR_OP_PERMUTE || v->def->op == TIR_OP_EXPAND ||
            has_descriptor(v->type, false) || !tir_is_made_in(p->tiles, v))
            continue;
        const struct tir_type *turned = tir_type_transpose(p->types, v->type);
        if (!may_turn(v, turned))
            continue;
        struct tir_value *rows = turned_once(p, v);
        struct tir_builder before = tir_builder_before(p->f, dot);
        dot->operands[TIR_DOT_B] = tir_transpose(&before, rows);
        p->has_turned = true;
    }
}

bool tir_tmem_follows(const struct tmem_plan *p, const struct tir_value *v,
                      const struct tir_value *arg)
{
    const struct tir_block *body = p->loop->regions[0];
    struct bitset set = bitset_new(p->cx->scratch, p->f->value_count);
    for (uint32_t a = 1; a < body->arg_count; a++)
        if (!arg || arg == body->args[a])
            bitset_insert(&set, body->args[a]->id);
    for (const struct tir_inst *inst = body->first; inst; inst = inst->next) {
        bool is = !arg && inst->op == TIR_OP_DOT;
        tir_foreach_inst_within(in, inst)
            for (uint32_t i = 0; !is && i < in->operand_count; i++)
                is = in->operands[i] && bitset_has(&set, in->operands[i]->id);
        for (uint32_t i = 0; is && i < inst->result_count; i++)
            bitset_insert(&set, inst->results[i]->id);
        if (is && tmem_filled(inst))
            bitset_insert(&set, tmem_filled(inst)->id);
    }
    return bitset_has(&set, v->id);
}

bool tir_tmem_is_invariant(const struct tmem_plan *p, const struct tir_inst *load)
{
    const struct tir_attr *box = tir_attr_find(load, TIR_ATTR_box);
    for (uint32_t d = 0; d < box->list_count; d++) {
        const struct tir_value *at = tir_ref_indices(load)[d];
        if (at->kind != TIR_VALUE_CONST && tir_is_made_in(p->loop, at))
            return false;
    }
    return true;
}

// Does the tile come from a buffer that each round fills before it reads it, as one that is
// rearranged?
static bool is_rearranged(const struct tmem_plan *p, const struct tir_inst *load)
{
    const struct tir_value *buffer = tir_buffer_root(tir_ref_base(load));
    bool is_read = false;
    if (buffer->type->space != TIR_SPACE_SHARED || buffer->kind != TIR_VALUE_RESULT ||
        buffer->def->op != TIR_OP_ALLOC || buffer->def->block != p->loop->regions[0])
        return false;
    for (const struct tir_inst *inst = buffer->def; inst; inst = inst->next) {
        if (tmem_filled(inst) == buffer && is_read)
            return false;
        is_read |= inst->op == TIR_OP_LOAD && tir_buffer_root(tir_ref_base(inst)) == buffer;
    }
    return true;
}

// Packed elements come 128 of a row at a time, from rows that consist of so many.
static const char *take_packed(const struct tmem_plan *p, const struct tmem_operand *o,
                               const struct tir_inst *load)
{
    const struct tir_value *tensor = tir_ref_base(load);
    const struct tir_param *param = tir_param_of(p->f, tensor);
    const uint32_t last = tensor->type->rank - 1;
    const int64_t bytes = TIR_TMA_PACKED * tir_elem_width(o->tile->type->elem) / 8;
    const struct tir_param_dim *dim = &param->dims[last];
    const uint64_t extent = dim->dim < 0 ? (uint64_t)dim->constant
                                         : tir_range_divisor(p->ranges, p->f->dims[dim->dim].value);
    if (tir_pixels_of(load))
        return "a tensor copy of pixels brings no packed elements";
    if (o->tile->type->shape[1] % TIR_TMA_PACKED)
        return "a tensor copy brings packed elements 128 of a row at a time";
    if (extent % (uint64_t)bytes)
        return "rows of packed elements are not known to consist of blocks of 128";
    return tir_range_divisor(p->ranges, tir_ref_indices(load)[last]) % (uint64_t)bytes
               ? "where packed elements begin is not known to be a multiple of 128 of them"
               : NULL;
}

static const char *take_tile(struct tmem_plan *p, struct tmem_operand *o)
{
    const struct tir_inst *def = tmem_load(o);
    if (o->tile->kind == TIR_VALUE_CONST || !tir_is_made_in(p->tiles, o->tile))
        return "an operand is a constant";
    o->is_per_tile = !tir_is_made_in(p->loop, o->tile);
    if (tmem_is_packed(o) && def->op != TIR_OP_LOAD)
        return "packed elements are computed, not loaded";
    if (def && def->op == TIR_OP_LOAD && (tmem_is_packed(o) || !is_rearranged(p, def))) {
        const char *why = tir_tmem_take_load(p, def);
        if (tmem_is_packed(o)) {
            o->is_per_tile |= !why && tir_tmem_is_invariant(p, def);
            return why ? why : take_packed(p, o, def);
        }
        o->is_computed = why && o->is_per_tile && !p->has_one_round;
        o->is_per_tile |= !why && tir_tmem_is_invariant(p, def);
        return !why || o->is_computed ? NULL : tir_tmem_take_gather(p, o);
    }
    o->is_computed = true;
    o->is_converted = !o->is_per_tile && !tir_tmem_follows(p, o->tile, NULL);
    return NULL;
}

struct tmem_operand *tir_tmem_operand_for(struct tmem_plan *p, struct tir_value *tile)
{
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (p->operands[i].tile == tile)
            return &p->operands[i];
    if (p->operand_count == TMEM_OPERANDS)
        return NULL;
    p->operands[p->operand_count] = (struct tmem_operand){
        .tile = tile, .in_tmem = tir_tmem_block(tile->type->shape[0]) == TIR_TMEM_LANES};
    return &p->operands[p->operand_count++];
}

// Copies bring what the operand is computed from, so that it is there in time. Scales of a product
// another role brings already. A vector is loaded where it is used.
static const char *take_fetched(struct tmem_plan *p, struct tir_value *tile)
{
    const struct tir_type *t = tile->type;
    bool is_vector = t->rank == TIR_MAX_RANK;
    for (uint32_t d = 0; d < t->rank; d++)
        is_vector |= tir_type_count(t) == t->shape[d];
    if (is_vector)
        return NULL;
    struct tmem_operand *o = tir_tmem_operand_for(p, tile);
    if (!o)
        return "its operands are computed from too many tiles";
    const bool has_rows = t->shape[t->rank - 1] * tir_elems[t->elem].bits / 8 % TMA_ROW == 0;
    const char *why = NULL;
    if (!o->is_arranged && !o->is_gathered && (!has_rows || tir_tmem_take_load(p, tile->def)))
        why = tir_tmem_take_gather(p, o);
    if (why)
        return why;
    o->is_fetched = true;
    o->in_tmem = o->is_per_tile = false;
    return NULL;
}

// Finds what a converted operand is computed from.
const char *tir_tmem_take_sources(struct tmem_plan *p, const struct tmem_operand *o)
{
    const struct tir_block *body = p->loop->regions[0];
    struct bitset wanted = bitset_new(p->cx->scratch, p->f->value_count);
    bitset_insert(&wanted, o->tile->id);
    for (struct tir_inst *inst = body->last; inst; inst = inst->prev) {
        bool is_wanted = false;
        for (uint32_t i = 0; i < inst->result_count; i++)
            is_wanted |= bitset_has(&wanted, inst->results[i]->id);
        if (tmem_filled(inst))
            is_wanted |= bitset_has(&wanted, tmem_filled(inst)->id);
        if (!is_wanted)
            continue;
        tir_foreach_inst_within(in, inst)
            for (uint32_t i = 0; i < in->operand_count; i++)
                if (in->operands[i])
                    bitset_insert(&wanted, in->operands[i]->id);
        if (inst->op != TIR_OP_LOAD || tir_type_is_scalar(inst->results[0]->type))
            continue;
        if (tir_ref_base(inst)->type->space == TIR_SPACE_SHARED) {
            if (!is_rearranged(p, inst))
                return "an operand is computed from a buffer that is filled again";
            continue;
        }
        const char *why = take_fetched(p, inst->results[0]);
        if (why)
            return why;
    }
    return NULL;
}

const char *tir_tmem_take_factor(struct tmem_plan *p, uint32_t product, uint32_t term,
                                 uint32_t which)
{
    struct tmem_term *of = &p->products[product].terms[term];
    struct tir_value *v = of->dot->operands[which];
    struct tmem_factor *factor = &of->factors[which];
    const struct tir_inst *turn = v->kind == TIR_VALUE_RESULT ? v->def : NULL;
    // Rows that are turned for want of a descriptor are an operand that is computed.
    if (turn && turn->op == TIR_OP_PERMUTE &&
        (has_descriptor(turn->operands[0]->type, which == TIR_DOT_B) || !may_turn(v, v->type))) {
        factor->is_turned = true;
        v = turn->operands[0];
    }
    const struct tir_type *rows = v->type;
    if (tir_brought(v) != v)
        factor->rows = rows;
    v = tir_brought(v);
    struct tmem_operand *o = tir_tmem_operand_for(p, v);
    if (!o)
        return "it has too many operands";
    if (o->is_scales)
        return "its scales are operands in another way, too";
    factor->operand = (uint32_t)(o - p->operands);
    const char *why = o->products ? NULL : take_tile(p, o);
    if (why)
        return why;
    const bool k_last = factor->is_turned == (which == TIR_DOT_B);
    const bool is_described = has_descriptor(rows, k_last);
    o->in_tmem &= o->is_computed && which == TIR_DOT_A && !factor->is_turned && !factor->rows;
    o->products |= 1u << product;
    return is_described ? NULL : "an operand has no descriptor";
}

struct tmem_group *tir_tmem_group_for(struct tmem_plan *p, const struct tmem_operand *o)
{
    for (uint32_t i = 0; i < p->product_count && o->is_computed && !o->is_per_tile; i++)
        if (o->products == 1u << i && p->products[i].kind == TMEM_TURNS)
            return NULL;
    for (uint32_t i = 0; i < p->group_count && !o->is_computed && o->products; i++) {
        struct tmem_group *g = &p->groups[i];
        if (!g->is_computed && g->products == o->products && g->is_per_tile == o->is_per_tile &&
            g->is_arranged == o->is_arranged && g->is_gathered == o->is_gathered) {
            g->is_fetched |= o->is_fetched;
            g->has_scales |= o->is_scales;
            return g;
        }
    }
    p->groups[p->group_count] = (struct tmem_group){.products = o->products,
                                                    .is_fetched = o->is_fetched,
                                                    .is_converted = o->is_converted,
                                                    .is_per_tile = o->is_per_tile,
                                                    .is_computed = o->is_computed,
                                                    .is_arranged = o->is_arranged,
                                                    .is_gathered = o->is_gathered,
                                                    .has_scales = o->is_scales};
    return &p->groups[p->group_count++];
}
