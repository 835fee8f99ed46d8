// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tensor_memory: two CTAs of a cluster multiply together (cta_group::2).
//
//     tiles (m, n) in (M by 128, N by 256) cluster(2, 1) { ... dot(a, b, s) ... }
// has a pair where both tiles multiply by the same second factor, which tensor copies bring: one
// instruction then has the rows of both tiles. Each CTA has its rows of A and of the sums, and
// copies half of the columns of B, as in examples/blackwell_ladder/8_pair.tir:
//     the tiles are widened as the pass `cluster` does it, so each role walks the tiles of a pair
//     load      of both CTAs completes at the `full` of the first, which expects the bytes of both
//     multiply  works in the first CTA alone; its commits arrive in both
//     compute   of both CTAs arrives at the `free` of the first
//     gather    of both CTAs arrives at the `full` of the first, each with its rows of A
//     scale     of both CTAs arrives at the `full` of the first; each arranges the scales of its
//               rows of A and of all columns of B, and one copy is of those of both
// Any other cluster is not made: without a pair, CTAs share no copies here.

#include "machine/product.h"
#include "pass/role/cluster.h"
#include "pass/role/tensor_memory.h"
#include "pass/role/tile_flow.h"

enum { PAIR = 2, COLUMNS_OF_PAIR = 32 }; // in steps of

// The dimension along which the tiles of a cluster of two lie, as a bit; 0: it is another cluster.
static uint32_t dimension_of_pair(const struct tir_attr *clause)
{
    uint32_t bits = 0;
    int64_t ctas = 1;
    for (uint32_t d = 0; d < clause->list_count; d++) {
        ctas *= clause->list[d];
        bits |= clause->list[d] > 1 ? 1u << d : 0;
    }
    return ctas == PAIR ? bits : 0;
}

static const char *refuse_shape(const struct tir_inst *dot)
{
    const struct tir_type *sums = dot->results[0]->type;
    if (sums->shape[1] > TIR_TCGEN05_MOST_COLUMNS)
        return "its sums have more than 256 columns";
    return sums->shape[1] % COLUMNS_OF_PAIR ? "its sums do not have a multiple of 32 columns"
                                            : NULL;
}

bool tir_tmem_suits_pair(const struct tir_inst *tiles, const struct tir_inst *dot)
{
    const struct tir_attr *clause = tir_attr_find(tiles, TIR_ATTR_cluster);
    return clause && dimension_of_pair(clause) && !refuse_shape(dot);
}

static const char *refuse_product(const struct tmem_product *t, const uint32_t *flow,
                                  uint32_t split)
{
    const char *why = refuse_shape(tmem_dot(t));
    if (why)
        return why;
    return tir_flow_of_control(flow, tmem_dot(t)) & split
               ? "its tiles are multiplied differently often"
               : NULL;
}

// Halves the operand if it is a second factor.
static const char *take_operand(struct tmem_plan *p, uint32_t i, const uint32_t *flow,
                                uint32_t split)
{
    struct tmem_operand *o = &p->operands[i];
    uint32_t ways = 0; // bits: as a first factor, as a second one along dimension 0, 1
    if (o->is_fetched)
        return "an operand is computed from what tensor copies bring";
    for (uint32_t k = 0; k < p->product_count; k++)
        for (uint32_t f = 0; f < 2 * p->products[k].term_count; f++) {
            const struct tmem_term *term = &p->products[k].terms[f / 2];
            const struct tmem_factor *factor = &term->factors[f % 2];
            const bool is_of = o->is_scales
                                   ? tir_is_scaled_dot(term->dot) && term->scales[f % 2] == i
                                   : factor->operand == i;
            if (is_of && !o->is_scales && factor->rows && f % 2 == TIR_DOT_B)
                return "the second factor is reshaped";
            if (is_of)
                ways |= f % 2 == TIR_DOT_A ? 1 : factor->is_turned ? 2 : 4;
        }
    if (o->is_gathered && ways > 1)
        return "no tensor copy brings its second factor";
    if (ways & (ways - 1))
        return "a tile is an operand in two ways";
    if (o->is_computed)
        return ways > 1 ? "its second factor is computed" : NULL;
    const struct tir_inst *load = tmem_load(o);
    for (uint32_t d = 0; ways > 1 && d < tir_attr_find(load, TIR_ATTR_box)->list_count; d++)
        if (tir_type_is_tile(tir_ref_indices(load)[d]->type))
            return "the second factor has a stride";
        else if (tir_flow_of(flow, tir_ref_indices(load)[d]) & split)
            return "its tiles do not have the second factor in common";
    o->is_halved = ways > 1 && !o->is_scales; // both CTAs have the scales of all columns of B
    o->halved = ways == 4;
    return NULL;
}

static const char *take(struct tmem_plan *p, const struct tir_attr *clause)
{
    const uint32_t split = dimension_of_pair(clause);
    const uint32_t *flow = tir_tile_flow(p->cx->scratch, p->f);
    const char *why = split ? NULL : "a cluster is not of two tiles";
    if (p->cx->attempt && p->cx->attempt->no_pairs)
        why = "the kernel failed with it";
    for (uint32_t i = 0; !why && i < p->product_count; i++)
        why = refuse_product(&p->products[i], flow, split);
    for (uint32_t i = 0; !why && i < p->operand_count; i++)
        why = take_operand(p, i, flow, split);
    return why ? why : tir_cluster_refusal(p->f, p->cx);
}

void tir_tmem_take_pair(struct tmem_plan *p)
{
    const struct tir_attr *clause = tir_attr_find(p->tiles, TIR_ATTR_cluster);
    if (!clause)
        return;
    p->no_pair = take(p, clause);
    p->is_pair = !p->no_pair;
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->operands[i].is_halved &= p->is_pair;
}

void tir_tmem_widen_pair(struct tmem_plan *p, struct tir_builder *b)
{
    const struct tir_type *i32 = tir_type_scalar(p->types, TIR_I32);
    tir_cluster_widen(p->f, p->cx);
    tir_tmem_find_computable(p); // where tiles begin are other values now
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (!p->operands[i].is_computed)
            tir_tmem_find_ahead(p, tmem_load(&p->operands[i]));
    p->rank = tir_build1(b, TIR_OP_CTA_RANK, i32, NULL, 0);
    p->is_leader = tir_binary(b, TIR_OP_EQ, p->rank, tir_const_i32(p->f, 0));
}

void tir_tmem_set_group(const struct tmem_plan *p, struct tir_inst *inst)
{
    if (p->is_pair)
        tir_set_int(p->f, inst, TIR_ATTR_cta_group, PAIR);
}

struct tir_value *tir_tmem_half(const struct tmem_plan *p, struct tir_builder *b,
                                const struct tmem_operand *o, struct tir_value *start)
{
    const int64_t half = tmem_slot_type(o).shape[o->halved];
    struct tir_value *first = tir_build1(b, TIR_OP_CAST, start->type, &p->rank, 1);
    first = tir_binary(b, TIR_OP_MUL, first, tir_const_int(p->f, start->type, half));
    return tir_binary(b, TIR_OP_ADD, start, first);
}

struct tir_value *tir_tmem_of_leader(struct tir_builder *b, struct tir_value *bar)
{
    struct tir_type type = *bar->type;
    type.space = TIR_SPACE_CLUSTER;
    return tir_build1(b, TIR_OP_REMOTE, tir_type_get(b->f->module->types, &type),
                      (struct tir_value *[]){bar, tir_const_i32(b->f, 0)}, 2);
}
