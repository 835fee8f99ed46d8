// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tensor_memory: which kernels it takes, and where their operands and sums go.
//
// An operand of a product is a tile that tensor copies can bring to shared memory, or one that the
// kernel computes. The latter goes to tensor memory if it is a first factor of blocks of 128 rows
// and there is room, else to shared memory. Sums are of one of three kinds (enum tmem_sums), which
// tell when they are read.

#include "pass/role/tensor_memory.h"

#include "ir/walk.h"
#include "machine/product.h"
#include "pass/async/pixels.h"
#include "pass/async/stride.h"
#include "pass/async/tma.h"
#include "pass/layout/operand.h"
#include "pass/layout/scale.h"

enum {
    TMA_ROW = 16, // bytes
    FEWEST = 64   // elements along a side of one of several copies that bring an operand
};

// Operands.

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
static void turn_factors(struct tmem_plan *p)
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

// Does v follow from what the loop carries as arg? NULL: from anything that it carries, or from a
// product.
static bool follows(const struct tmem_plan *p, const struct tir_value *v,
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
    o->is_converted = !o->is_per_tile && !follows(p, o->tile, NULL);
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
static const char *take_sources(struct tmem_plan *p, const struct tmem_operand *o)
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

static const char *take_factor(struct tmem_plan *p, uint32_t product, uint32_t term, uint32_t which)
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

static struct tmem_group *group_for(struct tmem_plan *p, const struct tmem_operand *o)
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

// Products.

static const char *take_product_shape(const struct tmem_plan *p, const struct tir_inst *dot)
{
    const struct tir_type *t = dot->results[0]->type;
    const struct tir_type *a = dot->operands[TIR_DOT_A]->type;
    const struct tir_type *b = dot->operands[TIR_DOT_B]->type;
    const char *why;
    if (tir_is_scaled_dot(dot))
        return tir_scaled_of(dot, p->cx->target, &why) ? NULL : why;
    const struct tir_product *product =
        tir_product_find(TIR_ENGINE_TCGEN05, a->elem, b->elem, t->elem);
    if (!product || !(p->cx->target->features & product->feature))
        return "it has no such element types";
    if (!tir_tmem_block(t->shape[0]))
        return "the sums do not have rows in blocks of 64";
    if (t->shape[1] % TIR_TCGEN05_COLUMNS || t->shape[1] > TIR_TMEM_COLUMNS)
        return "the sums do not have 16 to 512 columns, in steps of 16";
    return a->shape[1] % product->depth ? "K is no multiple of 32 bytes" : NULL;
}

// When the sums are read: if the loop only carries them, after it.
static void take_kind(struct tmem_plan *p, struct tmem_product *t, const uint32_t *uses)
{
    const struct tir_block *body = p->loop->regions[0];
    const struct tir_inst *yield = tir_yield_of(body);
    const struct tir_value *sums = tmem_dot(t)->results[0], *acc = tmem_acc(t);
    t->kind = TMEM_OF_ROUND;
    for (uint32_t i = 0; i < yield->operand_count; i++) {
        const struct tir_value *arg = body->args[1 + i];
        if (yield->operands[i] != sums || uses[sums->id] != 1 || !follows(p, acc, arg))
            continue;
        t->carried = i;
        t->kind = acc == arg && uses[arg->id] == 1 ? TMEM_OF_LOOP : TMEM_TURNS;
    }
}

// The product whose sums, which nobody else reads, the dot goes on from by the same instruction;
// else a new one. NULL: there are too many.
static struct tmem_product *product_for(struct tmem_plan *p, const struct tir_inst *dot,
                                        const uint32_t *uses)
{
    const struct tir_value *acc = dot->operands[TIR_DOT_ACC];
    for (uint32_t i = 0; i < p->product_count; i++) {
        const struct tmem_product t = p->products[i];
        const struct tir_inst *last = tmem_dot(&t);
        if (last->results[0] != acc || uses[acc->id] != 1 || t.term_count == TMEM_TERMS ||
            last->operands[TIR_DOT_A]->type->elem != dot->operands[TIR_DOT_A]->type->elem ||
            tir_is_scaled_dot(last) != tir_is_scaled_dot(dot))
            continue;
        // Its operands are ready when those of the last dot are.
        memmove(p->products + i, p->products + i + 1,
                (p->product_count - 1 - i) * sizeof(p->products[0]));
        p->products[p->product_count - 1] = t;
        return &p->products[p->product_count - 1];
    }
    if (p->product_count == TMEM_PRODUCTS)
        return NULL;
    p->products[p->product_count] = (struct tmem_product){.term_count = 0};
    return &p->products[p->product_count++];
}

static const char *take_product(struct tmem_plan *p, uint32_t i, const uint32_t *uses)
{
    struct tmem_product *t = &p->products[i];
    const char *why = NULL;
    take_kind(p, t, uses);
    for (uint32_t k = 0; k < t->term_count && !why; k++) {
        why = take_product_shape(p, t->terms[k].dot);
        if (!why && tir_is_scaled_dot(t->terms[k].dot))
            why = tir_tmem_take_scales(p, i, &t->terms[k]);
        for (uint32_t which = TIR_DOT_A; !why && which <= TIR_DOT_B; which++)
            why = take_factor(p, i, k, which);
    }
    return why;
}

static const char *take_products(struct tmem_plan *p)
{
    const uint32_t *uses = tir_count_uses(p->cx->scratch, p->f);
    const char *why = NULL;
    for (struct tir_inst *inst = p->loop->regions[0]->first; inst; inst = inst->next) {
        if (inst->op != TIR_OP_DOT)
            continue;
        struct tmem_product *t = product_for(p, inst, uses);
        if (!t)
            return "its loop has more than 6 products";
        t->terms[t->term_count++].dot = inst;
    }
    for (uint32_t i = 0; i < p->product_count && !why; i++)
        why = take_product(p, i, uses);
    for (uint32_t i = 0; i < p->operand_count && !why; i++)
        why = p->operands[i].is_converted ? take_sources(p, &p->operands[i]) : NULL;
    return why;
}

// Does anything but products take the tile in the loop, as it is or turned?
static bool is_used_beside(struct tmem_plan *p, const struct tir_value *tile)
{
    tir_foreach_inst_within(inst, p->loop)
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            if (inst->operands[i] != tile || tir_tmem_product_of(p, inst))
                continue;
            if (!tir_viewed(inst) || is_used_beside(p, tir_result(inst)))
                return true;
        }
    return false;
}

// What is brought to the slots of an operand the role that computes takes from there, too: it loads
// nothing twice, and keeps pace with the products. Copies to a pair complete in its first CTA
// alone.
static void share_operands(struct tmem_plan *p)
{
    for (uint32_t i = 0; i < p->operand_count && !p->is_pair; i++) {
        struct tmem_operand *o = &p->operands[i];
        if (!o->is_computed && !o->is_per_tile && !o->is_scales && !tmem_is_packed(o))
            o->is_fetched |= is_used_beside(p, o->tile);
    }
}

static void take_groups(struct tmem_plan *p)
{
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->operands[i].group = group_for(p, &p->operands[i]);
}

struct tmem_product *tir_tmem_product_of(struct tmem_plan *p, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < p->product_count; i++)
        for (uint32_t k = 0; k < p->products[i].term_count; k++)
            if (p->products[i].terms[k].dot == inst)
                return &p->products[i];
    return NULL;
}

struct tmem_product *tir_tmem_carrier(struct tmem_plan *p, uint32_t i)
{
    for (uint32_t t = 0; t < p->product_count; t++)
        if (p->products[t].kind != TMEM_OF_ROUND && p->products[t].carried == i)
            return &p->products[t];
    return NULL;
}

// The kernel.

// Does anything in inst do more to memory than a store? What the kernel says to its user, or to the
// compiler, does not.
static bool orders(const struct tir_inst *inst)
{
    tir_foreach_inst_within(in, inst) {
        const bool stores = in->op == TIR_OP_STORE || in->op == TIR_OP_ATOMIC;
        const bool tells = in->op == TIR_OP_PRINT || in->op == TIR_OP_ASSERT ||
                           in->op == TIR_OP_TRAP || in->op == TIR_OP_ASSUME;
        if (!stores && !tells && tir_has_trait(in, TIR_WRITES | TIR_ASYNC | TIR_SYNC) &&
            in->op != TIR_OP_ALLOC)
            return true;
    }
    return false;
}

static bool multiplies(const struct tir_inst *inst)
{
    tir_foreach_inst_within(in, inst)
        if (in->op == TIR_OP_DOT)
            return true;
    return false;
}

// Is inst, or anything in it, an atomic that orders memory?
static bool orders_memory(const struct tir_inst *inst)
{
    tir_foreach_inst_within(in, inst)
        if (in->op == TIR_OP_ATOMIC && (tir_acquires(in) || tir_releases(in)))
            return true;
    return false;
}

// What is beside the products stays in the role that computes, in its order: loads of what the
// kernel stores, too. It may not order memory before the products, whose operands come ahead.
static const char *take_rest(const struct tmem_plan *p)
{
    const char *early = "an atomic orders memory before a product";
    if (orders_memory(p->loop))
        return early;
    bool is_repeated = false; // then what is behind the loop is before its next products
    for (uint32_t i = 0; i <= p->holder_count; i++) {
        const struct tir_inst *up = i < p->holder_count ? p->holders[i] : p->loop;
        for (const struct tir_inst *inst = up->block->first; inst && (is_repeated || inst != up);
             inst = inst->next)
            if (inst == up)
                continue;
            else if (orders_memory(inst))
                return early;
            else if (orders(inst))
                return "something beside stores has an effect before the product";
        is_repeated |= up->op == TIR_OP_FOR;
    }
    for (uint32_t i = 0; i < p->holder_count; i++)
        for (uint32_t k = 0; k < tmem_decides(p->holders[i]); k++)
            if (!tir_tmem_is_computable(p, p->holders[i]->operands[k]))
                return "it is in a branch or a loop that depends on more than scalars";
    tir_foreach_inst_in(inst, p->tiles->regions[0])
        if (!tir_is_inside(p->loop, inst) && tir_is_loop(inst) && multiplies(inst))
            return "there are products in another loop, too";
    for (uint32_t i = 0; i < TIR_FOR_INIT; i++)
        if (!tir_tmem_is_computable(p, p->loop->operands[i]))
            return "the bounds of its loop depend on more than scalars";
    return NULL;
}

// The tiles loop, which nothing but scalars stands beside.
static const char *take_tiles(struct tmem_plan *p)
{
    for (struct tir_inst *inst = p->f->body->first; inst; inst = inst->next) {
        if (inst->op == TIR_OP_ROLE)
            return "the kernel has roles of its own, which multiply from rings";
        if (inst->op == TIR_OP_TILES && p->tiles)
            return "its kernel has more than one tiles loop";
        if (inst->op == TIR_OP_TILES)
            p->tiles = inst;
    }
    if (p->f->threads || p->f->grid_count || p->f->cluster[0])
        return "the kernel states its threads or its grid";
    if (!p->tiles)
        return "its kernel has no tiles loop";
    for (const struct tir_inst *inst = p->f->body->first; inst; inst = inst->next)
        if (inst != p->tiles && !tir_tmem_is_scalar(p, inst) && inst->op != TIR_OP_ASSUME)
            return "tiles or buffers of its kernel stand outside of the tiles loop";
    return p->tiles->result_count ? "its tiles loop carries values from tile to tile" : NULL;
}

static bool has_dot(const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next)
        if (inst->op == TIR_OP_DOT)
            return true;
    return false;
}

static bool holds(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_IF || inst->op == TIR_OP_FOR;
}

// The block whose products come first: that of a loop, or with has_one_round any. Branches and
// other loops are looked into last. NULL: there is none.
static struct tir_block *block_of_product(struct tir_block *block, bool has_one_round)
{
    if (has_one_round && has_dot(block))
        return block;
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next)
        if (!has_one_round && inst->op == TIR_OP_FOR && has_dot(inst->regions[0]))
            return inst->regions[0];
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next)
        for (uint32_t i = 0; holds(inst) && i < inst->region_count; i++) {
            struct tir_block *in = block_of_product(inst->regions[i], has_one_round);
            if (in)
                return in;
        }
    return NULL;
}

// Products without a loop are those of a loop with one round, which fold takes away again.

// Is v used after the loop?
static bool is_used_after(const struct tir_inst *loop, const struct tir_value *v)
{
    for (const struct tir_inst *inst = loop->next; inst; inst = inst->next)
        if (tir_uses_value(inst, v))
            return true;
    return false;
}

static void replace_after(const struct tir_inst *loop, const struct tir_value *from,
                          struct tir_value *to)
{
    tir_foreach_inst_in(inst, loop->block)
        for (uint32_t i = 0; !tir_is_inside(inst, loop) && i < inst->operand_count; i++)
            if (inst->operands[i] == from)
                inst->operands[i] = to;
}

// Gives what the round made to what follows it. Sums that begin with 0 go on from the loop's.
static void carry_out(struct tir_func *f, struct tir_inst *loop, struct tir_value *const *values,
                      uint32_t count)
{
    struct tir_block *body = loop->regions[0];
    for (uint32_t i = 0; i < count; i++) {
        struct tir_value *arg = tir_block_add_arg(f, body, values[i]->type, NULL);
        struct tir_inst *def = values[i]->def;
        if (def->op == TIR_OP_DOT && tmem_is_zero(def->operands[TIR_DOT_ACC]))
            def->operands[TIR_DOT_ACC] = arg;
        replace_after(loop, values[i], loop->results[i]);
    }
    struct tir_builder b = tir_builder_at_end(f, body);
    tir_build_yield(&b, values, count);
}

static struct tir_inst *make_round(struct tmem_plan *p, struct tir_block *block)
{
    struct tir_inst *first = NULL, *last = NULL;
    for (struct tir_inst *inst = block->first; inst; inst = inst->next)
        if (inst->op == TIR_OP_DOT) {
            first = first ? first : inst;
            last = inst;
        }
    uint32_t most = 0, count = 0;
    for (const struct tir_inst *inst = first; inst != last->next; inst = inst->next)
        most += inst->result_count;
    struct tir_value **values = arena_array(p->cx->scratch, struct tir_value *, most);
    struct tir_value **operands =
        arena_array(p->cx->scratch, struct tir_value *, TIR_FOR_INIT + most);
    const struct tir_type **types = arena_array(p->cx->scratch, const struct tir_type *, most);
    for (const struct tir_inst *inst = first; inst != last->next; inst = inst->next)
        for (uint32_t i = 0; i < inst->result_count; i++)
            if (is_used_after(last, inst->results[i]))
                values[count++] = inst->results[i];
    operands[TIR_FOR_BEGIN] = tir_const_index(p->f, 0);
    operands[TIR_FOR_END] = operands[TIR_FOR_STEP] = tir_const_index(p->f, 1);
    for (uint32_t i = 0; i < count; i++) {
        types[i] = values[i]->type;
        operands[TIR_FOR_INIT + i] = tir_const_like(p->f, types[i], 0);
    }
    struct tir_builder b = tir_builder_before(p->f, first);
    struct tir_inst *loop =
        tir_build(&b, TIR_OP_FOR, operands, TIR_FOR_INIT + count, types, count, 1);
    struct tir_block *body = loop->regions[0];
    tir_block_add_arg(p->f, body, operands[TIR_FOR_BEGIN]->type, NULL);
    struct tir_builder in = tir_builder_at_end(p->f, body);
    struct tir_inst *end = tir_build_yield(&in, NULL, 0);
    while (loop->next != last)
        tir_move_before(loop->next, end);
    tir_move_before(last, end);
    tir_remove(end);
    carry_out(p->f, loop, values, count);
    return loop;
}

// Finds the loop and what is around it.
static const char *take_loop(struct tmem_plan *p)
{
    struct tir_block *const tile = p->tiles->regions[0];
    struct tir_block *block = block_of_product(tile, false);
    p->has_one_round = !block;
    if (p->has_one_round)
        block = block_of_product(tile, true);
    if (!block)
        return "it is in a loop that goes on while a condition holds";
    p->loop = p->has_one_round ? make_round(p, block) : block->owner;
    for (struct tir_inst *up = p->loop->block->owner; up != p->tiles; up = up->block->owner)
        if (p->holder_count++ == TMEM_HOLDERS)
            return "it is in more than 4 branches and loops";
    uint32_t at = p->holder_count;
    for (struct tir_inst *up = p->loop->block->owner; up != p->tiles; up = up->block->owner)
        p->holders[--at] = up;
    return NULL;
}

const char *tir_tmem_take(struct tmem_plan *p)
{
    const char *why = take_tiles(p);
    if (!why && p->cx->attempt && p->cx->attempt->only_mma_sync)
        return "the kernel failed with it";
    why = why ? why : take_loop(p);
    if (why)
        return why;
    turn_factors(p);
    tir_tmem_find_computable(p);
    p->ranges = tir_ranges_new(p->cx->scratch, p->f);
    why = take_rest(p);
    why = why ? why : take_products(p);
    if (why)
        return why;
    tir_tmem_take_pair(p);
    share_operands(p);
    take_groups(p);
    return tir_tmem_take_room(p);
}
