// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pass tensor_memory: products of a loop accumulate in tensor memory, in a kernel of roles.
//
//     tiles (m, n) in (M by 128, N by 128) {
//         let acc: f32[128, 128] = for k: i64 in range(0, K, 64) carry (s: f32[128, 128] = 0) {
//             let a: bf16[128, 64] = load(A[m:+128, k:+64]);  ...
//             yield dot(a, b, s);
//         }
//         store(D[m:+128, n:+128], cast(acc));
//     }
// becomes what examples/blackwell_ladder/6_specialized.tir has by hand:
//     role compute warps(4)  waits for the sums of a tile, loads them, does what follows the loop
//     role load warps(1)     starts tensor copies of both operands into a ring of slots
//     role multiply warps(1) starts products, whose commits free the slots, and tells of the sums
//
// Each product has a warp of its own, so it runs ahead of the others as far as its slots go. What
// passes from one role to another one does so through slots of a channel, with a barrier that they
// are full and one that they are empty:
//     loaded operands     from `load` to the products that read them
//     computed operands   from `compute` to such products: those of attention's second one
//     converted operands  the same, from tiles that `load` brings to `compute` through slots
//     scales              from `scale`, which stores them in the blocks that tcgen05.cp copies, to
//                         the products with block_scale, which copy them to tensor memory
//     sums of a loop      from a product to `compute`, after the loop; of two tiles
//     sums of a round     the same in each round; of two rounds
//     sums in turns       `compute` changes what the product left, and hands it back: attention's
//                         rescaled output. There is one slot, which holds the initial values first.
//
// What it takes: tensor_memory_take.c. Any other kernel stays as it is, with a line in the receipt
// if it has a product. From here on the kernel orders its own memory (decision 17): sync_check
// proves what this pass writes.

#include "pass/role/tensor_memory.h"

#include "ir/walk.h"
#include "pass/async/pipeline.h"
#include "pass/async/stride.h"
#include "pass/layout/choice.h"
#include "pass/layout/operand.h"
#include "pass/layout/rounded.h"
#include "pass/layout/scale.h"
#include "pass/receipt.h"
#include "pass/role/matrices.h"

#include <stdio.h>

// Before the roles.

struct tir_value *tir_tmem_alloc(struct tmem_plan *p, struct tir_builder *b,
                                 const struct tir_type *type, const char *name)
{
    struct tir_value *v = tir_build1(b, TIR_OP_ALLOC, type, NULL, 0);
    v->name = tir_intern_cstr(p->f->module->names, name);
    if (type->elem != TIR_MBARRIER)
        tir_set_int(p->f, v->def, TIR_ATTR_by_hand, 1);
    return v;
}

static struct tir_type tmem_slots_type(const struct tir_type *tile, int64_t slots)
{
    struct tir_type t = {
        .elem = tile->elem, .space = TIR_SPACE_TMEM, .rank = tile->rank + 1, .shape = {slots}};
    memcpy(t.shape + 1, tile->shape, tile->rank * sizeof(*t.shape));
    return t;
}

static void build_rings(struct tmem_plan *p, struct tir_builder *b)
{
    for (uint32_t i = 0; i < p->operand_count; i++) {
        struct tmem_operand *o = &p->operands[i];
        if (o->is_arranged)
            tir_tmem_build_scale_slots(p, b, o);
        if (o->in_tmem || o->is_arranged)
            continue;
        struct tir_type tile = tmem_slot_type(o);
        const uint32_t bits = tir_elems[tile.elem].bits;
        const int64_t row = tile.shape[tile.rank - 1] * bits / 8;
        // Whatever the tile's rank: descriptors describe rows one after the other.
        const int64_t rows[] = {tir_type_count(&tile) / tile.shape[tile.rank - 1],
                                tile.shape[tile.rank - 1]};
        tile.space = TIR_SPACE_SHARED;
        tile.layout =
            tir_layout_reshape(p->types,
                               tir_layout_memory(p->types, TIR_COUNT_OF(rows), rows, bits,
                                                 o->is_scales ? 0 : tir_layout_swizzle_for(row)),
                               tile.rank, tile.shape);
        const int64_t slots = o->group ? o->group->channel.slots : 1;
        o->buffer = tir_tmem_alloc(p, b, tir_slots_type(p->f, &tile, slots), "slots");
    }
}

static void build_channel(struct tmem_plan *p, struct tir_builder *b, struct tir_builder *init,
                          struct tmem_channel *c, const char *full, const char *empty)
{
    const struct tir_type t = {
        .elem = TIR_MBARRIER, .space = TIR_SPACE_SHARED, .rank = 1, .shape = {c->slots}};
    const struct tir_type *type = tir_type_get(p->types, &t);
    c->full = tir_tmem_alloc(p, b, type, full);
    c->empty = tir_tmem_alloc(p, b, type, empty);
    const struct {
        struct tir_value *bars;
        int64_t arrivals;
    } rows[] = {{c->full, c->fills}, {c->empty, c->frees}};
    for (uint32_t i = 0; i < TIR_COUNT_OF(rows); i++)
        tir_set_int(p->f,
                    tir_tmem_plain(init, TIR_OP_MBARRIER_INIT,
                                   (struct tir_value *[]){rows[i].bars, NULL}, 2),
                    TIR_ATTR_arrivals, rows[i].arrivals);
}

static void build_channels(struct tmem_plan *p, struct tir_builder *b)
{
    const struct tir_type *i32 = tir_type_scalar(p->types, TIR_I32);
    struct tir_value *tid = tir_build1(b, TIR_OP_TID, i32, NULL, 0);
    struct tir_value *first = tir_binary(b, TIR_OP_EQ, tid, tir_const_i32(p->f, 0));
    struct tir_builder init = tir_tmem_begin_if(b, first);
    struct tir_builder before = tir_builder_before(p->f, tid->def);
    for (uint32_t i = 0; i < p->group_count; i++)
        build_channel(p, &before, &init, &p->groups[i].channel, "full", "empty");
    for (uint32_t i = 0; i < p->product_count; i++) {
        const bool takes_turns = p->products[i].kind == TMEM_TURNS;
        build_channel(p, &before, &init, &p->products[i].sums, takes_turns ? "given" : "done",
                      takes_turns ? "done" : "free");
    }
    tir_tmem_fence(&init, TIR_WORD_of_mbarrier_init);
    tir_tmem_end_if(&init);
}

// The next slots of tensor memory, of tiles of this type.
static struct tir_value *build_tmem(struct tmem_plan *p, struct tir_builder *b,
                                    struct tir_value *base, int64_t *column,
                                    const struct tir_type *tile, int64_t slots, const char *name)
{
    const struct tir_type t = tmem_slots_type(tile, slots);
    struct tir_value *v = tir_build1(b, TIR_OP_TMEM_BUFFER, tir_type_get(p->types, &t), &base, 1);
    v->name = tir_intern_cstr(p->f->module->names, name);
    if (*column)
        tir_set_int(p->f, v->def, TIR_ATTR_column, *column);
    tir_tmem_set_group(p, v->def);
    *column += tir_tmem_columns(&t, p->is_pair);
    return v;
}

static void build_tensor_memory(struct tmem_plan *p, struct tir_builder *b)
{
    const struct tir_type *i32 = tir_type_scalar(p->types, TIR_I32);
    const struct tir_type slot = {
        .elem = TIR_I32, .space = TIR_SPACE_SHARED, .rank = 1, .shape = {1}};
    struct tir_value *at = tir_tmem_alloc(p, b, tir_type_get(p->types, &slot), "tmem_address");
    struct tir_value *warp = tir_build1(b, TIR_OP_WARPID, i32, NULL, 0);
    struct tir_value *first = tir_binary(b, TIR_OP_EQ, warp, tir_const_i32(p->f, 0));
    struct tir_builder in = tir_tmem_begin_if(b, first);
    struct tir_inst *alloc = tir_tmem_plain(&in, TIR_OP_TMEM_ALLOC, &at, 1);
    tir_set_int(p->f, alloc, TIR_ATTR_columns, p->columns);
    tir_tmem_set_group(p, alloc);
    tir_tmem_end_if(&in);
    tir_tmem_meet(p, b); // for the mbarriers too
    struct tir_value *operands[] = {
        [TIR_LOAD_PAD] = NULL, [TIR_LOAD_MASK] = NULL, at, tir_const_index(p->f, 0)};
    struct tir_inst *load = tir_build(b, TIR_OP_LOAD, operands, 4, &i32, 1, 0);
    tir_set_list(p->f, load, TIR_ATTR_box, (int64_t[]){0}, 1);
    int64_t column = tir_tmem_place_sums(p);
    for (uint32_t i = 0; i < p->product_count; i++) {
        struct tmem_product *t = &p->products[i];
        int64_t from = t->column;
        t->buffer =
            build_tmem(p, b, tir_result(load), &from, tmem_sums_type(t), t->sums.slots, "sums");
        if (t->is_upper)
            tir_set_int(p->f, t->buffer->def, TIR_ATTR_upper, 1);
    }
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (p->operands[i].in_tmem)
            p->operands[i].buffer = build_tmem(
                p, b, tir_result(load), &column, p->operands[i].tile->type,
                p->operands[i].group ? p->operands[i].group->channel.slots : 1, "factor");
    tir_tmem_build_scale_columns(p, b, tir_result(load), &column);
}

// The role that loads.

static void copy_operand(struct tmem_role *r, struct tir_builder *b, const struct tmem_operand *o,
                         struct tir_value *bar, struct tir_value *slot)
{
    const struct tir_inst *load = tmem_load(o);
    const struct tir_attr *box = tir_attr_find(load, TIR_ATTR_box);
    struct tir_value *operands[TIR_COPY_FIXED + 1 + TIR_MAX_RANK] = {
        [TIR_COPY_TO] = tir_tmem_slot(b, o->buffer, slot), [TIR_COPY_MBAR] = bar};
    operands[TIR_COPY_FIXED] = tir_ref_base(load);
    const struct tir_type part = tmem_slot_type(o);
    int64_t parts[TIR_MAX_RANK];
    bool has_tiles = false;
    for (uint32_t d = 0; d < box->list_count; d++) {
        struct tir_value *start = tir_tmem_of(r, tir_ref_indices(load)[d]);
        const uint32_t at = tir_slice_dim(load, d);
        has_tiles |= box->list[d] < 0;
        parts[d] = box->list[d];
        if (box->list[d]) {
            if (o->is_halved && at == o->halved)
                start = tir_tmem_half(r->p, b, o, start);
            parts[d] = TIR_MIN(parts[d], part.shape[at]); // an index tile stays one
            if (tmem_is_packed(o) && d + 1 == box->list_count)
                parts[d] = box->list[d];
        }
        operands[TIR_COPY_FIXED + 1 + d] = start;
    }
    struct tir_inst *copy =
        tir_tmem_plain(b, TIR_OP_COPY_ASYNC, operands, TIR_COPY_FIXED + 1 + box->list_count);
    copy->span = load->span;
    tir_set_list(r->p->f, copy, TIR_ATTR_box, parts, box->list_count);
    tir_set_word(r->p->f, copy, TIR_ATTR_engine, TIR_WORD_engine_tma);
    tir_copy_attr(r->p->f, copy, load, TIR_ATTR_cache);
    if (has_tiles)
        tir_state_strides(r->p->f, copy);
}

// Do tensor copies fill the slots?
static bool is_loaded(const struct tmem_group *group)
{
    return !group->is_computed && !group->is_arranged && !group->is_gathered;
}

// Does the role that loads do anything?
static bool loads(const struct tmem_plan *p)
{
    bool any = false;
    for (uint32_t i = 0; i < p->group_count; i++)
        any |= is_loaded(&p->groups[i]);
    return any;
}

// Gives the mbarrier at which the copies to a slot complete. It expects the bytes of all its CTAs.
static struct tir_value *expect(struct tmem_role *r, struct tir_builder *b,
                                const struct tmem_group *group, struct tir_value *slot)
{
    const struct tmem_plan *p = r->p;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (p->operands[i].group == group)
            bytes += tmem_copied_bytes(&p->operands[i]);
    struct tir_value *bar = tir_tmem_slot(b, group->channel.full, slot);
    struct tir_builder in = *b, *at = b;
    if (p->is_pair) {
        in = tir_tmem_begin_if(b, p->is_leader);
        at = &in;
    }
    struct tir_inst *arrive =
        tir_tmem_plain(at, TIR_OP_ARRIVE, (struct tir_value *[]){bar, NULL, NULL}, 3);
    tir_set_int(p->f, arrive, TIR_ATTR_bytes, bytes * group->channel.ctas);
    if (!p->is_pair)
        return bar;
    tir_tmem_end_if(&in);
    return tir_tmem_of_leader(b, bar);
}

// Starts the copies of a slot, by one thread that tells its mbarrier of their bytes.
static void load_slot(struct tmem_role *r, struct tir_builder *b, const struct tmem_group *group,
                      const struct tmem_end *end)
{
    struct tmem_plan *p = r->p;
    struct tir_builder one = tir_tmem_begin_elected(b);
    struct tir_value *bar = expect(r, &one, group, end->at[0]);
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (p->operands[i].group == group)
            copy_operand(r, &one, &p->operands[i], bar, end->at[0]);
    tir_tmem_end_if(&one);
}

// The role of a product.

static bool reads(const struct tmem_product *t, const struct tmem_plan *p,
                  const struct tmem_group *group)
{
    return group->products >> (t - p->products) & 1;
}

static void wait_for_operands(struct tmem_role *r, struct tir_builder *b,
                              const struct tmem_product *t, bool is_per_tile)
{
    struct tmem_plan *p = r->p;
    for (uint32_t i = 0; i < p->group_count; i++)
        if (reads(t, p, &p->groups[i]) && p->groups[i].is_per_tile == is_per_tile)
            tir_tmem_wait_full(b, tir_tmem_end(r, &p->groups[i].channel));
}

// Does other threads' use of tensor memory come before each round? If not, the sums are of the
// loop, and one fence before it is for all rounds.
static bool fences_rounds(const struct tmem_plan *p, const struct tmem_product *t)
{
    bool fences = t->kind != TMEM_OF_LOOP;
    for (uint32_t i = 0; i < p->operand_count; i++) {
        const struct tmem_operand *o = &p->operands[i];
        fences |= (o->in_tmem || o->is_scales) && !o->is_per_tile &&
                  (o->products >> (t - p->products) & 1);
    }
    return fences;
}

// One thread's commits when the products of a tile, or of a round, have been started.
static void commit_all(struct tmem_role *r, struct tir_builder *b, const struct tmem_product *t,
                       bool is_per_tile)
{
    struct tmem_plan *p = r->p;
    for (uint32_t i = 0; i < p->group_count; i++)
        if (reads(t, p, &p->groups[i]) && p->groups[i].is_per_tile == is_per_tile)
            tir_tmem_commit(b, p->groups[i].channel.empty, tir_tmem_end(r, &p->groups[i].channel));
    if ((t->kind == TMEM_OF_LOOP) == is_per_tile) // last: it is waited for in any case
        tir_tmem_commit(b, t->kind == TMEM_TURNS ? t->sums.empty : t->sums.full,
                        tir_tmem_end(r, &t->sums));
}

static bool has_tile_ends(const struct tmem_role *r)
{
    for (uint32_t i = 0; i < r->end_count; i++)
        if (r->ends[i].is_per_tile)
            return true;
    return false;
}

static void advance(struct tmem_role *r, struct tir_builder *b, bool is_per_tile)
{
    for (uint32_t i = 0; i < r->end_count; i++)
        if (r->ends[i].is_per_tile == is_per_tile)
            tir_tmem_advance(b, &r->ends[i]);
}

static struct tir_value *factor_of(struct tmem_role *r, struct tir_builder *b,
                                   const struct tmem_factor *factor)
{
    const struct tmem_operand *o = &r->p->operands[factor->operand];
    struct tir_value *slot =
        o->group ? tir_tmem_end(r, &o->group->channel)->at[0] : tir_const_i32(b->f, 0);
    struct tir_value *v = tir_tmem_slot(b, o->buffer, slot);
    v = factor->rows ? tir_reshaped_buffer(b, v, factor->rows) : v;
    return factor->is_turned ? tir_transpose(b, v) : v;
}

static void multiply(struct tmem_role *r, struct tir_builder *b, const struct tmem_product *t)
{
    const struct tmem_plan *p = r->p;
    struct tir_value *accumulate = NULL;
    if (t->kind == TMEM_OF_ROUND)
        accumulate = tir_const_bool(p->f, false);
    else if (t->kind == TMEM_OF_LOOP)
        accumulate = tir_binary(b, TIR_OP_GT, tir_tmem_of(r, p->loop->regions[0]->args[0]),
                                tir_tmem_of(r, p->loop->operands[TIR_FOR_BEGIN]));
    tir_tmem_copy_scales(r, b, t);
    for (uint32_t i = 0; i < t->term_count; i++) {
        const struct tmem_term *term = &t->terms[i];
        struct tir_value *operands[TIR_GEMM_OPERANDS] = {
            [TIR_DOT_A] = factor_of(r, b, &term->factors[TIR_DOT_A]),
            [TIR_DOT_B] = factor_of(r, b, &term->factors[TIR_DOT_B]),
            [TIR_DOT_ACC] = tir_tmem_slot(b, t->buffer, tir_tmem_end(r, &t->sums)->at[0]),
            [TIR_GEMM_ACCUMULATE] = i ? NULL : accumulate};
        for (uint32_t which = 0; which < 2 && tir_is_scaled_dot(term->dot); which++)
            operands[which ? TIR_GEMM_SB : TIR_GEMM_SA] = tir_tmem_scales_of(r, b, t, term, which);
        b->span = term->dot->span;
        tir_tmem_plain(b, TIR_OP_GEMM_TMEM, operands, TIR_GEMM_OPERANDS);
    }
}

// Takes the role's turn of sums for the tile, or for the round.
static void wait_for_sums(struct tmem_role *r, struct tir_builder *b, const struct tmem_product *t)
{
    const struct tmem_end *end = tir_tmem_end(r, &t->sums);
    if (t->kind == TMEM_TURNS)
        tir_tmem_wait_full(b, end);
    else
        tir_tmem_wait_empty(b, end);
}

static void build_product_round(struct tmem_role *r, struct tir_builder *in,
                                const struct tmem_product *t)
{
    struct tir_builder loop = tir_tmem_begin_loop(r, in, NULL, 0);
    loop.span = tmem_dot(t)->span;
    wait_for_operands(r, &loop, t, false);
    if (t->kind != TMEM_OF_LOOP)
        wait_for_sums(r, &loop, t);
    if (fences_rounds(r->p, t))
        tir_tmem_fence(&loop, TIR_WORD_of_after_thread_sync);
    struct tir_builder one = tir_tmem_begin_elected(&loop);
    multiply(r, &one, t);
    commit_all(r, &one, t, false);
    tir_tmem_end_if(&one);
    advance(r, &loop, false);
    tir_tmem_end_loop(r, &loop, NULL, 0);
}

static void build_multiply_role(struct tmem_plan *p, struct tir_builder *b, uint32_t product)
{
    struct tmem_product *t = &p->products[product];
    struct tmem_role r;
    tir_tmem_init_role(&r, p);
    for (uint32_t i = 0; i < p->group_count; i++)
        if (reads(t, p, &p->groups[i]))
            tir_tmem_add_end(&r, &p->groups[i].channel, p->groups[i].is_per_tile, 0);
    tir_tmem_add_end(&r, &t->sums, t->kind == TMEM_OF_LOOP, t->kind != TMEM_TURNS);
    char name[32];
    snprintf(name, sizeof name, product ? "multiply_%u" : "multiply", product + 1);
    struct tir_builder in = tir_tmem_begin_role(&r, b, name, p->compute_warps + 1 + product, 1);
    tir_tmem_enter(&r, &in);
    tir_tmem_begin_lead(&r, &in);
    wait_for_operands(&r, &in, t, true);
    if (t->kind != TMEM_OF_ROUND)
        wait_for_sums(&r, &in, t);
    if (!fences_rounds(p, t))
        tir_tmem_fence(&in, TIR_WORD_of_after_thread_sync);
    if (t->kind == TMEM_TURNS) { // nothing is added to the initial values
        struct tmem_end *end = tir_tmem_end(&r, &t->sums);
        struct tir_builder one = tir_tmem_begin_elected(&in);
        tir_tmem_commit(&one, t->sums.empty, end);
        tir_tmem_end_if(&one);
        tir_tmem_advance(&in, end);
    }
    build_product_round(&r, &in, t);
    if (has_tile_ends(&r)) {
        struct tir_builder last = tir_tmem_begin_elected(&in);
        commit_all(&r, &last, t, true);
        tir_tmem_end_if(&last);
        advance(&r, &in, true);
    }
    tir_tmem_end_lead(&r, &in);
    tir_tmem_leave(&r, &in);
    tir_tmem_end_tiles(&r, &in);
    tir_tmem_end_role(&r);
}

static void tell(struct tmem_plan *p)
{
    int64_t stages = 0, bytes = 0;
    tir_foreach_inst_within(inst, p->tiles) {
        if (inst->op == TIR_OP_DOT && !tir_tmem_product_of(p, inst))
            tir_receipt_refuse(p->cx, TIR_TOPIC_DOT, TIR_WISH_NONE, inst->span,
                               "dot: no tcgen05: it is not in the loop whose products are");
    }
    for (uint32_t i = 0; i < p->operand_count; i++) {
        const struct tmem_operand *o = &p->operands[i];
        if (o->group && is_loaded(o->group))
            tir_receipt_tma(p->f, p->cx, o->tile->def->span, tmem_load(o), o->tile);
        if (o->is_computed && o->tile->kind == TIR_VALUE_RESULT &&
            o->tile->def->op == TIR_OP_PERMUTE)
            tir_receipt_add(p->cx, TIR_TOPIC_DOT, o->tile->def->span,
                            "dot: the role that computes turns an operand, which no descriptor "
                            "describes with rows along M or N");
        if (o->is_fetched && o->products)
            tir_receipt_add(p->cx, TIR_TOPIC_COPY, o->tile->def->span,
                            "copy of %s: the role that computes reads its slots, too",
                            tir_ref_base(tmem_load(o))->name);
        if (o->is_computed || o->is_per_tile || o->is_arranged)
            continue;
        const struct tir_type slot = tmem_slot_type(o);
        stages = TIR_MAX(stages, o->group->channel.slots);
        bytes += tir_type_bytes(&slot);
    }
    if (stages)
        tir_receipt_add(p->cx, TIR_TOPIC_LOOP, p->loop->span, "loop: %lld stages of %lld bytes",
                        (long long)stages, (long long)bytes);
    tir_receipt_add(p->cx, TIR_TOPIC_ROLE, p->tiles->span,
                    "roles: %u warps compute, %s%s%s%u multipl%s; %lld columns of tensor memory",
                    p->compute_warps, loads(p) ? "1 loads, " : "",
                    p->gather_warps > TMEM_WARPGROUP ? "8 gather, "
                    : p->gather_warps                ? "4 gather, "
                                                     : "",
                    p->scale_warps == 1 ? "1 arranges scales, "
                    : p->scale_warps    ? "2 arrange scales, "
                                        : "",
                    p->product_count, p->product_count > 1 ? "y" : "ies", (long long)p->columns);
    if (tir_attr_int(p->tiles, TIR_ATTR_store_role, 0))
        tir_receipt_refuse(p->cx, TIR_TOPIC_ROLE, TIR_WISH_NONE, p->tiles->span,
                           "role store: none, because the role that computes sends what it has "
                           "loaded from tensor memory");
    if (p->is_pair)
        tir_receipt_add(p->cx, TIR_TOPIC_LAUNCH, p->tiles->span,
                        "tiles: pairs of CTAs multiply together; each copies half of the second "
                        "factor");
    else if (p->no_pair)
        tir_receipt_refuse(p->cx, TIR_TOPIC_LAUNCH, TIR_WISH_CLUSTER, p->tiles->span,
                           "tiles: no pair of CTAs in tensor memory, because %s", p->no_pair);
}

// The launch takes another variant where the tensor maps of packed elements cannot be.
static void align_packed(struct tmem_plan *p)
{
    for (uint32_t i = 0; i < p->operand_count; i++) {
        const struct tmem_operand *o = &p->operands[i];
        for (uint32_t k = 0; tmem_is_packed(o) && k < p->f->param_count; k++) {
            struct tir_param *param = &p->f->params[k];
            if (param->value != tir_ref_base(tmem_load(o)))
                continue;
            param->aligned = TIR_TMA_PACKED_ALIGN;
            tir_receipt_add(p->cx, TIR_TOPIC_COPY, o->tile->def->span,
                            "copy of %s: packed elements of %u bits, of which 16 get 16 bytes of "
                            "shared memory; it is aligned to %d bytes",
                            param->name, tir_elem_width(o->tile->type->elem), TIR_TMA_PACKED_ALIGN);
        }
    }
}

static void rewrite(struct tmem_plan *p)
{
    struct tir_builder b = tir_builder_before(p->f, p->tiles);
    p->f->threads = 32 * p->warps;
    align_packed(p);
    if (p->is_pair)
        tir_tmem_widen_pair(p, &b);
    tir_tmem_find_wanted(p);
    build_rings(p, &b);
    build_channels(p, &b);
    build_tensor_memory(p, &b);
    tir_tmem_build_compute(p, &b);
    const struct tmem_producer load = {"load", p->compute_warps, 1, is_loaded, load_slot};
    if (loads(p))
        tir_tmem_build_producer(p, &b, &load);
    for (uint32_t i = 0; i < p->product_count; i++)
        build_multiply_role(p, &b, i);
    if (p->scale_warps)
        tir_tmem_build_scale_role(p, &b);
    if (p->gather_warps)
        tir_tmem_build_gather_role(p, &b);
    tell(p);
    tir_remove(p->tiles);
}

static const char *take(struct tmem_plan *p, struct tir_func *f, struct tir_pass_cx *cx)
{
    *p = (struct tmem_plan){.f = f, .cx = cx, .types = f->module->types};
    const char *why = tir_tmem_take(p);
    if (why)
        tir_run_pass(f, cx, tir_pass_by_name(STR("fold"))); // a loop with one round
    if (why && p->has_turned)
        tir_run_pass(f, cx, tir_pass_by_name(STR("clean")));
    return why;
}

// What the pass does not take with scales it may take without them. False: there are none.
static bool multiply_scales(struct tir_func *f, struct tir_pass_cx *cx, const char *why)
{
    bool any = false;
    tir_foreach_inst(inst, f) {
        if (!tir_is_scaled_dot(inst))
            continue;
        tir_receipt_refuse(cx, TIR_TOPIC_DOT, TIR_WISH_NONE, inst->span, TIR_SCALED_REFUSAL, why);
        any = true;
    }
    tir_multiply_scales(f);
    if (any)
        tir_run_pass(f, cx, tir_pass_by_name(STR("clean")));
    return any;
}

enum tir_change tir_pass_tensor_memory(struct tir_func *f, struct tir_pass_cx *cx)
{
    const struct tir_inst *dot = NULL;
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_DOT && !dot)
            dot = inst;
    if (!dot || !(cx->target->features & TIR_HAS_TCGEN05))
        return TIR_UNCHANGED;
    const bool apart = tir_take_matrices_apart(f, cx);
    if (apart && tir_run_pass(f, cx, tir_pass_by_name(STR("clean"))) == TIR_FAILED)
        return TIR_FAILED;
    const bool prepared = tir_choose_operands(f, cx) || apart;
    struct tmem_plan p;
    tir_round_operands(f, cx);
    const char *why = take(&p, f, cx);
    if (why && multiply_scales(f, cx, why))
        why = take(&p, f, cx);
    if (why) {
        tir_unround_operands(f);
        tir_foreach_inst(inst, f)
            if (inst->op == TIR_OP_DOT)
                tir_receipt_refuse(cx, TIR_TOPIC_DOT, TIR_WISH_NONE, inst->span,
                                   "dot: no tcgen05: %s", why);
        return prepared ? TIR_CHANGED : TIR_UNCHANGED;
    }
    rewrite(&p);
    tir_run_pass(f, cx, tir_pass_by_name(STR("dce"))); // loads that copies stand for
    return TIR_CHANGED;
}
