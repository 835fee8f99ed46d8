// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tensor_memory: the role that computes, which is the kernel as it was without loads of operands
// and without products.
//
// Where a product stood, the role waits for its sums and loads them. It hands over the operands
// that it computes, and the sums that it changes between two products. A round is in another order
// than it was: what a product waits for comes first, and sums that stay in tensor memory are loaded
// where they are used, so that few tiles are in registers at a time.

#include "pass/role/tensor_memory.h"

#include "ir/walk.h"
#include "machine/budget.h"
#include "pass/sync/crew.h"

// The reference to a slot that is a tile: its operands and its box. Gives the rank of the buffer.
static uint32_t whole_slot(struct tir_builder *b, struct tir_value *buffer, struct tir_value *slot,
                           const struct tir_type *tile, struct tir_value **ref, int64_t *box)
{
    ref[0] = buffer;
    ref[1] = slot;
    box[0] = 0;
    for (uint32_t d = 0; d < tile->rank; d++) {
        ref[2 + d] = tir_const_index(b->f, 0);
        box[1 + d] = tile->shape[d];
    }
    return 1 + tile->rank;
}

static struct tir_value *load_slot(struct tir_builder *b, struct tir_value *buffer,
                                   struct tir_value *slot, const struct tir_type *type)
{
    enum { FIXED = TIR_LOAD_MASK + 1 };
    struct tir_value *operands[FIXED + 1 + TIR_MAX_RANK] = {NULL};
    int64_t box[TIR_MAX_RANK];
    const uint32_t rank = whole_slot(b, buffer, slot, type, operands + FIXED, box);
    struct tir_inst *load = tir_build(b, TIR_OP_LOAD, operands, FIXED + 1 + rank, &type, 1, 0);
    tir_set_list(b->f, load, TIR_ATTR_box, box, rank);
    return tir_result(load);
}

void tir_tmem_store_slot(struct tir_builder *b, struct tir_value *buffer, struct tir_value *slot,
                         struct tir_value *v)
{
    enum { FIXED = TIR_STORE_MASK + 1 };
    struct tir_value *operands[FIXED + 1 + TIR_MAX_RANK] = {[TIR_STORE_VALUE] = v};
    int64_t box[TIR_MAX_RANK];
    const uint32_t rank = whole_slot(b, buffer, slot, v->type, operands + FIXED, box);
    struct tir_inst *store = tir_tmem_plain(b, TIR_OP_STORE, operands, FIXED + 1 + rank);
    tir_set_list(b->f, store, TIR_ATTR_box, box, rank);
}

static void store_operand(struct tmem_role *r, struct tir_builder *b, const struct tmem_operand *o,
                          struct tir_value *slot)
{
    tir_tmem_store_slot(b, o->buffer, slot, tir_tmem_of(r, o->tile));
    if (!o->in_tmem) {
        tir_tmem_fence(b, TIR_WORD_of_async_shared);
        tir_tmem_plain(b, TIR_OP_WARP_SYNC, NULL, 0); // a lane arrives for its warp
    }
}

// Hands a computed operand to the products that read it, when its slot is empty.
static void give_operand(struct tmem_role *r, struct tir_builder *b, const struct tmem_operand *o)
{
    struct tmem_end *end = tir_tmem_end(r, &o->group->channel);
    if (o->in_tmem)
        tir_tmem_fence(b, TIR_WORD_of_after_thread_sync);
    store_operand(r, b, o, end->at[0]);
    if (o->in_tmem)
        tir_tmem_fence(b, TIR_WORD_of_before_thread_sync);
    tir_tmem_arrive(b, end->channel->full, end);
    tir_tmem_advance(b, end);
}

// Sums in turns: takes them from the product before, or as they began.
static void take_turn(struct tmem_role *r, struct tir_builder *b, const struct tmem_product *t)
{
    struct tmem_end *end = tir_tmem_end(r, &t->sums);
    tir_tmem_wait_empty(b, end);
    tir_tmem_fence(b, TIR_WORD_of_after_thread_sync);
    tir_tmem_advance(b, end);
}

static struct tir_value *load_turn(struct tmem_role *r, struct tir_builder *b,
                                   const struct tmem_product *t)
{
    return load_slot(b, t->buffer, tir_tmem_end(r, &t->sums)->at[0], tmem_sums_type(t));
}

static void store_turn(struct tmem_role *r, struct tir_builder *b, const struct tmem_product *t,
                       struct tir_value *sums)
{
    tir_tmem_store_slot(b, t->buffer, tir_tmem_end(r, &t->sums)->at[0], sums);
}

static void give_turn(struct tmem_role *r, struct tir_builder *b, const struct tmem_product *t)
{
    const struct tmem_end *end = tir_tmem_end(r, &t->sums);
    tir_tmem_arrive(b, end->channel->full, end);
}

// The sums of a loop as they are in tensor memory, or zeros if it has no round.
static struct tir_value *load_of_loop(struct tmem_role *r, struct tir_builder *b,
                                      const struct tmem_product *t, struct tir_value *slot)
{
    const struct tir_inst *loop = r->p->loop;
    const struct tir_type *type = tmem_sums_type(t);
    struct tir_value *some = tir_binary(b, TIR_OP_LT, tir_tmem_of(r, loop->operands[TIR_FOR_BEGIN]),
                                        tir_tmem_of(r, loop->operands[TIR_FOR_END]));
    struct tir_inst *branch = tir_build(b, TIR_OP_IF, &some, 1, &type, 1, 2);
    struct tir_builder yes = tir_builder_at_end(b->f, branch->regions[0]);
    struct tir_builder no = tir_builder_at_end(b->f, branch->regions[1]);
    yes.span = no.span = b->span;
    struct tir_value *sums = load_slot(&yes, t->buffer, slot, type);
    struct tir_value *zero = tir_const_like(b->f, type, 0);
    tir_build_yield(&yes, &sums, 1);
    tir_build_yield(&no, &zero, 1);
    return tir_result(branch);
}

// Takes the sums of a round or of a loop, whose slot is free again, and adds what they began with.
static struct tir_value *take_sums(struct tmem_role *r, struct tir_builder *b,
                                   const struct tmem_product *t)
{
    struct tmem_end *end = tir_tmem_end(r, &t->sums);
    const bool is_of_loop = t->kind == TMEM_OF_LOOP;
    struct tir_value *from =
        is_of_loop ? r->p->loop->operands[TIR_FOR_INIT + t->carried] : tmem_acc(t);
    tir_tmem_wait_full(b, end);
    tir_tmem_fence(b, TIR_WORD_of_after_thread_sync);
    struct tir_value *sums = is_of_loop ? load_of_loop(r, b, t, end->at[0])
                                        : load_slot(b, t->buffer, end->at[0], tmem_sums_type(t));
    tir_tmem_fence(b, TIR_WORD_of_before_thread_sync);
    tir_tmem_arrive(b, end->channel->empty, end);
    tir_tmem_advance(b, end);
    return tmem_is_zero(from) ? sums : tir_binary(b, TIR_OP_ADD, sums, tir_tmem_of(r, from));
}

// A round.

struct round {
    struct tmem_role *r;
    struct tir_builder *b;
    struct bitset wanted, emitted; // instructions of the loop, by id
    struct bitset given, fetched;  // operands
    struct bitset opened;          // groups whose slot has been waited for
    struct bitset read;            // groups that have been read, whose slots are still to be freed
    bool keeps_slots;              // what is read leaves its slot in parts
    struct bitset taken, loaded;   // products, of sums in turns
};

static const struct tir_block *body_of(const struct round *y)
{
    return y->r->p->loop->regions[0];
}

static void take_turn_once(struct round *y, uint32_t product)
{
    if (bitset_insert(&y->taken, product))
        take_turn(y->r, y->b, &y->r->p->products[product]);
}

static void load_turn_once(struct round *y, uint32_t product)
{
    const struct tmem_product *t = &y->r->p->products[product];
    take_turn_once(y, product);
    if (bitset_insert(&y->loaded, product))
        tir_map_set(&y->r->map, tir_map_key(body_of(y)->args[1 + t->carried]),
                    load_turn(y->r, y->b, t));
}

// The operand that other roles bring for this one instead of inst; NULL: none.
static const struct tmem_operand *fetched(const struct tmem_plan *p, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (p->operands[i].is_fetched && p->operands[i].tile->def == inst)
            return &p->operands[i];
    return NULL;
}

// How many operands of a group this role reads and has not read yet.
static uint32_t left_of(const struct round *y, const struct tmem_group *group)
{
    const struct tmem_plan *p = y->r->p;
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->operand_count; i++)
        count += p->operands[i].group == group && p->operands[i].is_fetched &&
                 !bitset_has(&y->fetched, i);
    return count;
}

// Frees the slot of a group that has been read.
static void release(struct round *y, const struct tmem_group *group)
{
    struct tmem_end *end = tir_tmem_end(y->r, &group->channel);
    if (!group->is_gathered) // a tensor copy may overtake what still waits to be read
        tir_tmem_fence(y->b, TIR_WORD_of_async_shared);
    tir_tmem_plain(y->b, TIR_OP_WARP_SYNC, NULL, 0); // a lane arrives for its warp
    tir_tmem_arrive(y->b, end->channel->empty, end);
    tir_tmem_advance(y->b, end);
}

static void release_read(struct round *y)
{
    const struct tmem_plan *p = y->r->p;
    for (uint32_t i = 0; i < p->group_count; i++)
        if (bitset_has(&y->read, i))
            release(y, &p->groups[i]);
    y->read = bitset_new(p->cx->scratch, TMEM_OPERANDS);
}

// Loads what has been brought for an operand. The first one of a group waits for the slot, the last
// one frees it.
static void fetch(struct round *y, const struct tmem_operand *o)
{
    struct tir_builder *b = y->b;
    struct tmem_end *end = tir_tmem_end(y->r, &o->group->channel);
    const struct tir_type *type =
        o->is_turned ? tir_type_transpose(b->f->module->types, o->tile->type) : o->tile->type;
    if (bitset_insert(&y->opened, (uint32_t)(o->group - y->r->p->groups)))
        tir_tmem_wait_full(b, end);
    bitset_insert(&y->fetched, (uint32_t)(o - y->r->p->operands));
    struct tir_value *v = load_slot(b, o->buffer, end->at[0], type);
    tir_map_set(&y->r->map, tir_map_key(o->tile), o->is_turned ? tir_transpose(b, v) : v);
    if (left_of(y, o->group))
        return;
    if (y->keeps_slots)
        bitset_insert(&y->read, (uint32_t)(o->group - y->r->p->groups));
    else
        release(y, o->group);
}

static void emit(struct round *y, const struct tir_inst *inst)
{
    struct tmem_plan *p = y->r->p;
    const struct tmem_product *product = tir_tmem_product_of(p, inst);
    const struct tmem_operand *o = fetched(p, inst);
    y->b->span = inst->span;
    for (uint32_t i = 0; i < p->product_count; i++)
        if (p->products[i].kind == TMEM_TURNS &&
            tir_uses_value(inst, body_of(y)->args[1 + p->products[i].carried]))
            load_turn_once(y, i);
    if (o)
        fetch(y, o);
    else if (!product)
        tir_clone_inst(y->b, inst, &y->r->map);
    else if (inst == tmem_dot(product) && product->kind == TMEM_OF_ROUND)
        tir_map_set(&y->r->map, tir_map_key(inst->results[0]), take_sums(y->r, y->b, product));
}

static void want(struct round *y, const struct tir_value *v)
{
    if (v && v->kind == TIR_VALUE_RESULT && v->def->block == body_of(y))
        bitset_insert(&y->wanted, v->def->id);
}

// Emits what v follows from, in its order.
static void emit_for(struct round *y, const struct tir_value *v)
{
    want(y, v);
    for (const struct tir_inst *inst = body_of(y)->last; inst; inst = inst->prev) {
        const struct tir_value *filled = tmem_filled(inst);
        if (filled && filled->def->block == body_of(y) && bitset_has(&y->wanted, filled->def->id))
            bitset_insert(&y->wanted, inst->id);
        if (!bitset_has(&y->wanted, inst->id) || bitset_has(&y->emitted, inst->id))
            continue;
        const bool is_product = inst->op == TIR_OP_DOT; // whose operands have been given
        if (is_product)
            want(y, inst->operands[TIR_DOT_ACC]);
        tir_foreach_inst_within(in, inst)
            for (uint32_t i = 0; !is_product && i < in->operand_count; i++)
                want(y, in->operands[i]);
    }
    for (const struct tir_inst *inst = body_of(y)->first; inst; inst = inst->next)
        if (bitset_has(&y->wanted, inst->id) && bitset_insert(&y->emitted, inst->id))
            emit(y, inst);
}

// Can inst be emitted when the products from `next` on have not started?
static bool is_ready(const struct round *y, const struct tir_inst *inst, uint32_t next,
                     const struct bitset *late)
{
    const struct tmem_plan *p = y->r->p;
    for (uint32_t i = next; i < p->product_count; i++)
        if (tmem_dot(&p->products[i]) == inst)
            return false;
    tir_foreach_inst_within(in, inst)
        for (uint32_t i = 0; i < in->operand_count; i++)
            if (in->operands[i] && bitset_has(late, in->operands[i]->id))
                return false;
    return true;
}

// Emits what does not wait for sums in turns, nor for the products from `next` on: tiles that it
// uses then need no registers beside those sums.
static void emit_ready(struct round *y, uint32_t next)
{
    const struct tmem_plan *p = y->r->p;
    struct bitset late = bitset_new(p->cx->scratch, p->f->value_count); // values
    bool has_late_effect = false;                                       // effects keep their order
    for (uint32_t i = 0; i < p->product_count; i++)
        if (p->products[i].kind == TMEM_TURNS && !bitset_has(&y->loaded, i))
            bitset_insert(&late, body_of(y)->args[1 + p->products[i].carried]->id);
    for (const struct tir_inst *inst = body_of(y)->first; inst->op != TIR_OP_YIELD;
         inst = inst->next) {
        if (bitset_has(&y->emitted, inst->id))
            continue;
        if (is_ready(y, inst, next, &late) && !(has_late_effect && tir_has_effect(inst))) {
            bitset_insert(&y->emitted, inst->id);
            emit(y, inst);
            continue;
        }
        has_late_effect |= tir_has_effect(inst);
        for (uint32_t i = 0; i < inst->result_count; i++)
            bitset_insert(&late, inst->results[i]->id);
    }
}

// Would a thread have no registers for all elements of a converted operand? It converts a few rows
// at a time then (pass chunk), from a slot that is full to one that is empty.
static bool goes_in_parts(const struct tmem_plan *p, const struct tmem_operand *o)
{
    const int64_t elements = tir_type_count(o->tile->type) / (32 * p->compute_warps);
    const int64_t registers =
        p->registers.math ? p->registers.math : tir_launch_registers(32 * p->warps);
    return o->is_converted && o->group && !o->in_tmem &&
           elements > registers - TIR_BUDGET_BESIDE_CONVERTED;
}

// Computes an operand, and hands it to products.
static void make_operand(struct round *y, const struct tmem_operand *o)
{
    struct tmem_end *end = tir_tmem_end(y->r, &o->group->channel);
    y->keeps_slots = goes_in_parts(y->r->p, o);
    if (y->keeps_slots)
        tir_tmem_wait_empty(y->b, end);
    emit_for(y, o->tile);
    if (!y->keeps_slots)
        tir_tmem_wait_empty(y->b, end);
    give_operand(y->r, y->b, o);
    release_read(y);
    y->keeps_slots = false;
}

// Makes what a product waits for: what follows from loads alone, or the rest.
static void make_operands(struct round *y, uint32_t product, bool is_converted)
{
    struct tmem_plan *p = y->r->p;
    const struct tmem_product *t = &p->products[product];
    for (uint32_t i = 0; i < 2 * t->term_count; i++) {
        const uint32_t operand = t->terms[i / 2].factors[i % 2].operand;
        const struct tmem_operand *o = &p->operands[operand];
        if (!o->is_computed || o->is_per_tile || o->is_converted != is_converted ||
            !bitset_insert(&y->given, operand))
            continue;
        if (o->group) {
            make_operand(y, o);
            continue;
        }
        emit_for(y, o->tile);
        take_turn_once(y, product);
        store_operand(y->r, y->b, o, tir_const_i32(p->f, 0));
    }
}

// Converted operands come first: no sums, which the others follow from, are in registers then.
static void emit_for_product(struct round *y, uint32_t product)
{
    struct tmem_plan *p = y->r->p;
    const struct tmem_product *t = &p->products[product];
    make_operands(y, product, true);
    make_operands(y, product, false);
    if (t->kind != TMEM_TURNS)
        return;
    struct tir_value *acc = tmem_acc(t);
    emit_ready(y, product);
    emit_for(y, acc);
    load_turn_once(y, product);
    store_turn(y->r, y->b, t, tir_tmem_of(y->r, acc));
    tir_tmem_fence(y->b, TIR_WORD_of_before_thread_sync);
    give_turn(y->r, y->b, t);
}

static void build_round(struct tmem_role *r, struct tir_builder *b)
{
    struct tmem_plan *p = r->p;
    struct tir_arena *scratch = p->cx->scratch;
    struct round y = {.r = r,
                      .b = b,
                      .wanted = bitset_new(scratch, p->f->inst_count),
                      .emitted = bitset_new(scratch, p->f->inst_count),
                      .given = bitset_new(scratch, TMEM_OPERANDS),
                      .fetched = bitset_new(scratch, TMEM_OPERANDS),
                      .opened = bitset_new(scratch, TMEM_OPERANDS),
                      .read = bitset_new(scratch, TMEM_OPERANDS),
                      .taken = bitset_new(scratch, TMEM_PRODUCTS),
                      .loaded = bitset_new(scratch, TMEM_PRODUCTS)};
    for (uint32_t i = 0; i < p->product_count; i++)
        emit_for_product(&y, i);
    for (const struct tir_inst *inst = body_of(&y)->first; inst; inst = inst->next)
        if (inst->op != TIR_OP_YIELD && bitset_insert(&y.emitted, inst->id))
            emit(&y, inst);
}

// Is there more in the loop than products of loaded operands?
static bool has_rounds(struct tmem_plan *p)
{
    for (uint32_t i = 0; i < p->group_count; i++)
        if (p->groups[i].is_fetched || (p->groups[i].is_computed && !p->groups[i].is_per_tile))
            return true;
    for (uint32_t i = 0; i < p->product_count; i++)
        if (p->products[i].kind != TMEM_OF_LOOP)
            return true;
    for (uint32_t i = 0; i < p->loop->result_count; i++)
        if (!tir_tmem_carrier(p, i))
            return true;
    return tir_has_effect(p->loop);
}

static void build_rounds(struct tmem_role *r, struct tir_builder *b)
{
    struct tmem_plan *p = r->p;
    struct tir_inst *old = p->loop;
    struct tir_value **more = arena_array(p->cx->scratch, struct tir_value *, old->result_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < old->result_count; i++)
        if (!tir_tmem_carrier(p, i))
            more[count++] = tir_tmem_of(r, old->operands[TIR_FOR_INIT + i]);
    struct tir_builder in = tir_tmem_begin_loop(r, b, more, count);
    struct tir_inst *loop = r->loop;
    for (uint32_t i = 0, to = 1; i < old->result_count; i++)
        if (!tir_tmem_carrier(p, i))
            tir_map_set(&r->map, tir_map_key(old->regions[0]->args[1 + i]),
                        loop->regions[0]->args[to++]);
    build_round(r, &in);
    const struct tir_inst *yield = tir_yield_of(old->regions[0]);
    for (uint32_t i = 0, to = 0; i < old->result_count; i++)
        if (!tir_tmem_carrier(p, i)) {
            tir_map_set(&r->map, tir_map_key(old->results[i]), loop->results[to]);
            more[to++] = tir_tmem_of(r, yield->operands[i]);
        }
    tir_tmem_end_loop(r, &in, more, count);
}

// A tile.

// The sums that stayed in tensor memory come first: what follows the loop then loads its own tiles
// beside them, as it needs them.
static void take_results(struct tmem_role *r, struct tir_builder *b)
{
    struct tmem_plan *p = r->p;
    for (uint32_t i = 0; i < p->product_count; i++) {
        const struct tmem_product *t = &p->products[i];
        if (t->kind == TMEM_OF_ROUND)
            continue;
        if (t->kind == TMEM_TURNS)
            take_turn(r, b, t);
        tir_map_set(&r->map, tir_map_key(p->loop->results[t->carried]),
                    t->kind == TMEM_TURNS ? load_turn(r, b, t) : take_sums(r, b, t));
    }
}

static void add_ends(struct tmem_role *r)
{
    struct tmem_plan *p = r->p;
    for (uint32_t i = 0; i < p->group_count; i++)
        if (p->groups[i].is_computed || p->groups[i].is_fetched)
            tir_tmem_add_end(r, &p->groups[i].channel, p->groups[i].is_per_tile,
                             p->groups[i].is_computed);
    for (uint32_t i = 0; i < p->product_count; i++)
        tir_tmem_add_end(r, &p->products[i].sums, p->products[i].kind == TMEM_OF_LOOP, 0);
}

// Warpgroups share the columns of a block, and not alike in the loop and behind it, where they
// store sums in chunks (pass chunk).
static bool shares_columns(const struct tmem_plan *p)
{
    return p->compute_warps > TMEM_WARPGROUP;
}

// The sums of the tile before have been read by all warps.
static void begin_turns(const struct tmem_role *r, struct tir_builder *b)
{
    if (!shares_columns(r->p))
        return;
    const struct tir_crew crew = tir_crew_of(b->f, r->in.block->owner);
    tir_tmem_fence(b, TIR_WORD_of_before_thread_sync);
    tir_build_crew_barrier(b, &crew);
    tir_tmem_fence(b, TIR_WORD_of_after_thread_sync);
}

static void build_before(struct tmem_role *r, struct tir_builder *b)
{
    struct tmem_plan *p = r->p;
    tir_tmem_enter(r, b);
    b->span = p->loop->span;
    for (uint32_t i = 0; i < p->operand_count; i++) {
        const struct tmem_operand *o = &p->operands[i];
        if (!o->is_computed || !o->is_per_tile)
            continue;
        tir_tmem_wait_empty(b, tir_tmem_end(r, &o->group->channel));
        give_operand(r, b, o);
    }
    for (uint32_t i = 0; i < p->product_count; i++) {
        const struct tmem_product *t = &p->products[i];
        if (t->kind != TMEM_TURNS)
            continue;
        // No product reads the initial values: the role changes them before.
        begin_turns(r, b);
        store_turn(r, b, t, tir_tmem_of(r, p->loop->operands[TIR_FOR_INIT + t->carried]));
        if (shares_columns(p))
            tir_tmem_fence(b, TIR_WORD_of_before_thread_sync);
        give_turn(r, b, t);
    }
}

void tir_tmem_build_compute(struct tmem_plan *p, struct tir_builder *b)
{
    struct tmem_role r;
    tir_tmem_init_role(&r, p);
    r.computes = true;
    add_ends(&r);
    struct tir_builder in = tir_tmem_begin_role(&r, b, "compute", 0, p->compute_warps);
    build_before(&r, &in);
    if (has_rounds(p))
        build_rounds(&r, &in);
    in.span = p->loop->span;
    take_results(&r, &in);
    tir_tmem_leave(&r, &in);
    tir_tmem_end_tiles(&r, &in);
    for (uint32_t i = 0; i < p->group_count; i++)
        if (p->groups[i].is_computed && p->groups[i].is_per_tile)
            tir_tmem_drain(&r, &p->groups[i].channel);
    tir_tmem_end_role(&r);
}
