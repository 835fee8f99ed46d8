// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tensor_memory: which kernels it takes, and which of their products share operands. Sums are of
// one of three kinds (enum tmem_sums), which tell when they are read.

#include "pass/role/tensor_memory.h"

#include "ir/walk.h"
#include "pass/layout/scale.h"

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
        if (yield->operands[i] != sums || uses[sums->id] != 1 || !tir_tmem_follows(p, acc, arg))
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
            why = tir_tmem_take_factor(p, i, k, which);
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
        why = p->operands[i].is_converted ? tir_tmem_take_sources(p, &p->operands[i]) : NULL;
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
        p->operands[i].group = tir_tmem_group_for(p, &p->operands[i]);
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

const char *tir_tmem_take(struct tmem_plan *p)
{
    const char *why = take_tiles(p);
    if (!why && p->cx->attempt && p->cx->attempt->only_mma_sync)
        return "the kernel failed with it";
    why = why ? why : tir_tmem_take_loop(p);
    if (why)
        return why;
    tir_tmem_turn_factors(p);
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
