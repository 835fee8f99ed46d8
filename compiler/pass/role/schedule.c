// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// schedule: orders the operations of loops with products on warpgroups, so that engines overlap.
//
//     let r: T = for t: i64 in range(0, N, 64) carry (o: T = zero) {
//         let s: T = get(a) with (i: i32) { let d: T = dot(q, as, zero, engine = wgmma); yield d; }
//         let p: U = cast(s);
//         let n: T = get(b) with (j: i32) { let d: T = dot(p, bs, o, engine = wgmma); yield d; }
//         yield n;
//     }
// becomes
//     let s: T = get(a) ...; let p: U = cast(s);                  // of the first round
//     let r: T = for t: i64 in range(64, N, 64) carry (o: T = zero, p: U = p) {
//         let s: T = get(a) ...;
//         let n: T = get(b) ... dot(p, bs, o, engine = wgmma) ...; // of the round before
//         let p2: U = cast(s);                                     // while that runs
//         yield n, p2;
//     }
//     let r2: T = get(b) ... dot(p, bs, r, engine = wgmma) ...;    // of the last round
// in a branch that has a round at all, where that takes fewer cycles.
//
// Products run on the tensor cores while their warpgroup goes on. Where one product takes what
// other operations make of another one's result, a round in the order of the source leaves the
// tensor cores idle. So a round may have two stages: operations of the second one run a round
// later, beside the first stage of the next round (modulo scheduling: Rau, "Iterative Modulo
// Scheduling", 1994). Candidates are the sets of products that are late, with all that follows from
// them, and each order of the products; other operations keep their order. What each would take is
// played (schedule_time.c) with the cycles of work.def and cost.def. The fastest that leaves enough
// registers is taken; among equals the one that keeps fewer. The number of candidates is limited,
// not the time, so the result is the same everywhere.
//
// If each product takes an operand in registers that no product leads to, all are late, one product
// too: the operands of the next round are computed while they run.
//
// Only loops are ordered whose body has no effect but the gets of rings that other roles fill:
// the slot of a get is freed when what was started in it is done, wherever that is. Gets of one
// ring keep their order, so slots are taken as they were filled.

#include "pass/role/schedule.h"
#include "base/bitset.h"
#include "ir/effect.h"
#include "ir/follow.h"
#include "ir/layout.h"
#include "ir/layout_exchange.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/cost.h"
#include "machine/target.h"
#include "machine/work.h"
#include "pass/layout/warpgroup.h"
#include "pass/receipt.h"
#include "pass/sync/crew.h"

// Is v computed from indices and scalars alone? Then it is cheap to compute where it is used.
static enum tir_answer is_index(void *user, struct tir_value *v)
{
    static const bool is_cheap[TIR_OP_COUNT] = {
        [TIR_OP_IOTA] = true,    [TIR_OP_BROADCAST] = true, [TIR_OP_RESHAPE] = true,
        [TIR_OP_PERMUTE] = true, [TIR_OP_CAST] = true,      [TIR_OP_ADD] = true,
        [TIR_OP_SUB] = true,
    };
    (void)user;
    if (!tir_type_is_tile(v->type) || v->kind == TIR_VALUE_CONST)
        return TIR_YES;
    return v->def && tir_elem_is_int(v->type->elem) && is_cheap[v->def->op] ? TIR_IF_OPERANDS
                                                                            : TIR_NO;
}

// Registers of a thread that hold a tile. A broadcast repeats registers of what it is of.
static int64_t words_of(struct tir_follow *indices, struct tir_value *v)
{
    if (!tir_type_is_tile(v->type) || !v->type->layout ||
        (v->def && v->def->op == TIR_OP_BROADCAST) || tir_follows(indices, v))
        return 0;
    const int64_t bits = tir_elems[v->type->elem].bits;
    return ((int64_t)tir_layout_size(v->type->layout, TIR_AXIS_REG) * bits + 31) / 32;
}

// Is inst another name for registers that something behind it uses under the old one?
static bool shares_registers(const struct tir_inst *inst)
{
    if (inst->op != TIR_OP_RESHAPE && inst->op != TIR_OP_PERMUTE)
        return false;
    for (const struct tir_inst *later = inst->next; later; later = later->next)
        if (tir_uses_value(later, inst->operands[0]))
            return true;
    return false;
}

// Registers that an operation works on, element by element.
static int64_t elements_of(const struct tir_inst *inst)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (tir_type_is_tile(inst->results[i]->type) && inst->results[i]->type->layout)
            most = TIR_MAX(most, tir_layout_size(inst->results[i]->type->layout, TIR_AXIS_REG));
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[i];
        if (v && tir_type_is_tile(v->type) && v->type->layout && v->def &&
            v->def->op != TIR_OP_BROADCAST)
            most = TIR_MAX(most, tir_layout_size(v->type->layout, TIR_AXIS_REG));
    }
    return most;
}

static bool has_product(const struct tir_inst *inst)
{
    tir_foreach_inst_within(in, inst)
        if (tir_dot_on_warpgroups(in))
            return true;
    return false;
}

// Cycles of the tensor cores for one of the warpgroups that share the product.
static int64_t product_cycles(const struct schedule *s, const struct tir_inst *dot)
{
    const struct tir_type *a = dot->operands[TIR_DOT_A]->type, *d = dot->results[0]->type;
    const int64_t products = d->shape[0] * d->shape[1] * a->shape[1];
    return products / tir_products_a_cycle(s->cost, a->elem) / s->groups;
}

// Does inst give the same registers other names? A constant, which has no layout, has none.
static bool only_renames(const struct tir_inst *inst)
{
    if (inst->op != TIR_OP_CONVERT_LAYOUT)
        return false;
    const struct tir_layout *from = inst->operands[0]->type->layout;
    return from && tir_layout_keeps_threads(from, inst->results[0]->type->layout);
}

// How often lanes exchange a register by which a reduction combines what they have.
static int64_t exchanges_of(const struct tir_inst *reduce)
{
    const struct tir_layout *l = reduce->operands[TIR_REDUCE_X]->type->layout;
    const uint32_t axis = (uint32_t)tir_attr_int(reduce, TIR_ATTR_axis, 0);
    int64_t count = 0;
    for (uint32_t i = l->first[axis]; i < l->first[axis + 1]; i++)
        for (uint32_t n = l->iters[i].extent; l->iters[i].axis == TIR_AXIS_LANE && n > 1; n /= 2)
            count++;
    return count;
}

// Cycles of a scheduler with its units. Of n registers that a reduction makes one of, it combines
// n - 1, and then one for each exchange.
static int64_t busy_cycles(const struct tir_inst *inst, int64_t elements)
{
    const struct tir_work *work = tir_work_of(inst->op);
    int64_t most = TIR_MAX(TIR_MAX(work->issue, work->mufu), work->half);
    if (inst->op != TIR_OP_REDUCE || !inst->operands[TIR_REDUCE_X]->type->layout)
        return elements * most;
    const enum tir_word kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE);
    if (kind == TIR_WORD_kind_max || kind == TIR_WORD_kind_min)
        most = tir_work_of(TIR_OP_MAX)->half;
    const struct tir_layout *to = inst->results[0]->type->layout;
    const int64_t made = to ? tir_layout_size(to, TIR_AXIS_REG) : 0;
    return TIR_MAX(elements - made, 0) * most +
           made * exchanges_of(inst) * (most + TIR_DELAY_SHUFFLE);
}

static void add_work(const struct schedule *s, struct schedule_op *op, const struct tir_inst *inst)
{
    if (tir_dot_on_warpgroups(inst)) {
        op->is_product = true;
        op->tensor += product_cycles(s, inst);
    } else if (!only_renames(inst)) {
        const struct tir_work *work = tir_work_of(inst->op);
        const int64_t elements = TIR_MAX(elements_of(inst), 1);
        op->issue += elements * work->issue;
        op->mufu += elements * work->mufu;
        op->busy += busy_cycles(inst, elements);
    }
}

static void add_op(struct schedule *s, struct tir_follow *indices, struct tir_inst *inst)
{
    struct schedule_op op = {.inst = inst};
    tir_foreach_inst_within(in, inst)
        add_work(s, &op, in);
    for (uint32_t i = 0; i < inst->result_count && !shares_registers(inst); i++)
        op.words += words_of(indices, inst->results[i]);
    if (op.is_product && s->product_count < SCHEDULE_PRODUCTS)
        s->products[s->product_count] = s->ops.len;
    s->product_count += op.is_product;
    vec_push(s->scratch, &s->ops, op);
}

// May inst change places with others?
static bool is_free(const struct tir_func *f, const struct tir_inst *inst)
{
    if (inst->op == TIR_OP_GET || inst->op == TIR_OP_YIELD)
        return true;
    if (inst->op == TIR_OP_LOAD)
        return tir_ref_base(inst)->type->space == TIR_SPACE_SHARED ||
               tir_is_only_read(f, tir_ref_base(inst));
    return tir_has_trait(inst, TIR_PURE) && !tir_has_trait(inst, TIR_THREAD);
}

// Does something in the loop take a value that rounds hand on (t = s; s = ...)? An edge has a
// distance of one round at most.
static bool takes_older(const struct schedule *s)
{
    const struct tir_block *body = s->loop->regions[0];
    const struct tir_inst *yield = tir_yield_of(body);
    for (uint32_t i = 0; i < yield->operand_count; i++) {
        const struct tir_value *from = yield->operands[i], *v = body->args[1 + i];
        if (from->kind != TIR_VALUE_ARG || from->block != body || from == v)
            continue;
        for (const struct tir_inst *inst = body->first; inst != yield; inst = inst->next)
            if (tir_uses_value(inst, v))
                return true;
    }
    return false;
}

// What keeps the loop in the order of its source; NULL: nothing does.
static const char *refusal(const struct schedule *s)
{
    const struct tir_type *index = s->loop->regions[0]->args[0]->type;
    if (index->elem != TIR_I64)
        return "its counter has fewer than 64 bits";
    tir_foreach_inst_in(inst, s->loop->regions[0])
        if (!is_free(s->f, inst))
            return "its body has other effects than products";
    if (takes_older(s))
        return "an operation takes what was made more than a round before it";
    return s->product_count > SCHEDULE_PRODUCTS ? "it has too many products" : NULL;
}

// Dependences.

static void add_edge(struct schedule *s, uint32_t first, uint32_t later, uint32_t distance,
                     enum tir_need kind)
{
    const struct schedule_edge edge = {first, later, distance, kind};
    vec_foreach(struct schedule_edge, e, &s->edges)
        if (e->first == first && e->later == later && e->distance == distance) {
            e->kind = TIR_MAX(e->kind, kind); // ORDER need
            return;
        }
    vec_push(s->scratch, &s->edges, edge);
}

struct makers { // value -> 1 + the op that makes it
    struct tir_map of;
};

static void add_use(struct schedule *s, const struct makers *makers, uint32_t op,
                    const struct tir_inst *user, uint32_t operand)
{
    const struct tir_value *v = user->operands[operand];
    const bool is_sum = tir_dot_on_warpgroups(user) && operand == TIR_DOT_ACC;
    const enum tir_need kind = is_sum ? TIR_NEED_SUM : TIR_NEED_VALUE;
    const struct tir_block *body = s->loop->regions[0];
    uint32_t distance = 0;
    if (v && v->kind == TIR_VALUE_ARG && v->block == body && v->index) {
        v = tir_yield_of(body)->operands[v->index - 1];
        distance = 1;
    }
    const uintptr_t made = v ? (uintptr_t)tir_map_get(&makers->of, tir_map_key(v)) : 0;
    if (made && made - 1 == op)
        s->ops.at[op].is_kept |= distance > 0;
    else if (made)
        add_edge(s, (uint32_t)made - 1, op, distance, kind);
}

static const struct tir_value *ring_of(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_GET ? inst->operands[0] : NULL;
}

static void add_edges(struct schedule *s)
{
    struct makers makers;
    tir_map_init(&makers.of, s->scratch);
    for (uint32_t i = 0; i < s->ops.len; i++)
        for (uint32_t r = 0; r < s->ops.at[i].inst->result_count; r++)
            tir_map_set(&makers.of, tir_map_key(s->ops.at[i].inst->results[r]),
                        (void *)(uintptr_t)(i + 1));
    for (uint32_t i = 0; i < s->ops.len; i++) {
        const struct tir_inst *inst = s->ops.at[i].inst;
        tir_foreach_inst_within(in, inst)
            for (uint32_t k = 0; k < in->operand_count; k++)
                add_use(s, &makers, i, in, k);
        for (uint32_t k = 0; ring_of(inst) && k < i; k++)
            if (ring_of(s->ops.at[k].inst) == ring_of(inst))
                add_edge(s, k, i, 0, TIR_NEED_TURN);
    }
}

// Is v a tile of conditions on indices? It holds in all rounds but the last ones, or the first.
static enum tir_answer is_mask(void *user, struct tir_value *v)
{
    static const bool is_logic[TIR_OP_COUNT] = {
        [TIR_OP_LT] = true,        [TIR_OP_LE] = true,      [TIR_OP_GT] = true,
        [TIR_OP_GE] = true,        [TIR_OP_AND] = true,     [TIR_OP_OR] = true,
        [TIR_OP_NOT] = true,       [TIR_OP_RESHAPE] = true, [TIR_OP_PERMUTE] = true,
        [TIR_OP_BROADCAST] = true,
    };
    if (v->type->elem != TIR_BOOL)
        return is_index(user, v);
    return v->def && is_logic[v->def->op] ? TIR_IF_OPERANDS : TIR_NO;
}

// Choices by masks, and what only they use. The pass split leaves most rounds without them.
static void mark_seldom(struct schedule *s)
{
    struct tir_follow masks;
    tir_follow_init(&masks, s->scratch, is_mask, NULL);
    for (uint32_t op = (uint32_t)s->ops.len; op-- > 0;) {
        const struct tir_inst *inst = s->ops.at[op].inst;
        bool is_seldom = inst->op == TIR_OP_WHERE && tir_type_is_tile(inst->operands[0]->type) &&
                         tir_follows(&masks, inst->operands[0]);
        uint32_t uses = 0, seldom = 0;
        vec_foreach(const struct schedule_edge, e, &s->edges)
            if (e->first == op) {
                uses++;
                seldom += !e->distance && s->ops.at[e->later].is_seldom;
            }
        // What it chooses from is computed in all rounds.
        s->ops.at[op].is_seldom = is_seldom || (uses && uses == seldom && inst->result_count &&
                                                tir_follows(&masks, inst->results[0]));
    }
}

// Orders.

static bool names_buffer(const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (tir_type_is_buffer(inst->results[i]->type))
            return true;
    return false;
}

// No loop carries a buffer, so what names one runs with what uses it. False: some of that is late.
static bool keep_buffers(const struct schedule *s, struct schedule_order *order)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t op = 0; op < s->ops.len; op++) {
            uint32_t uses = 0, late = 0;
            vec_foreach(const struct schedule_edge, e, &s->edges)
                if (e->first == op && !e->distance) {
                    uses++;
                    late += order->stage[e->later];
                }
            if (order->stage[op] || !late || !names_buffer(s->ops.at[op].inst))
                continue;
            if (late < uses)
                return false;
            order->stage[op] = 1;
            changed = true;
        }
    }
    return true;
}

// What follows from a late operation is late. False: that cannot be.
static bool set_stages(const struct schedule *s, struct schedule_order *order, uint32_t late)
{
    memset(order->stage, 0, s->ops.len);
    for (uint32_t i = 0; i < s->product_count; i++)
        order->stage[s->products[i]] = late >> i & 1;
    for (bool grown = true; grown;) {
        grown = false;
        vec_foreach(const struct schedule_edge, e, &s->edges)
            if (!e->distance && order->stage[e->first] && !order->stage[e->later]) {
                order->stage[e->later] = 1;
                grown = true;
            }
    }
    if (!keep_buffers(s, order))
        return false;
    for (uint32_t i = 0; i < s->product_count; i++)
        if (order->stage[s->products[i]] != (late >> i & 1))
            return false; // another set of late products
    // Slots of a ring are taken in one order.
    vec_foreach(const struct schedule_edge, e, &s->edges)
        if (ring_of(s->ops.at[e->first].inst) && !e->distance &&
            ring_of(s->ops.at[e->first].inst) == ring_of(s->ops.at[e->later].inst) &&
            order->stage[e->first] != order->stage[e->later])
            return false;
    order->is_rotated = late;
    return true;
}

// Rounds from when `first` runs to when `later` does; 0: the same, so it must come first.
static int32_t rounds_between(const struct schedule_order *order, const struct schedule_edge *e)
{
    return (int32_t)e->distance + order->stage[e->later] - order->stage[e->first];
}

static bool is_ready(const struct schedule *s, const struct schedule_order *order,
                     const bool *placed, uint32_t op)
{
    if (placed[op])
        return false;
    vec_foreach(const struct schedule_edge, e, &s->edges)
        if (e->later == op && rounds_between(order, e) == 0 && !placed[e->first])
            return false;
    return true;
}

// Products as early as they can be, in the given order; others in the order of the source. False:
// they cannot be ordered so.
static bool place(const struct schedule *s, struct schedule_order *order, const uint32_t *products)
{
    bool *placed = arena_array(s->scratch, bool, s->ops.len);
    uint32_t next = 0;
    for (uint32_t count = 0; count < s->ops.len; count++) {
        uint32_t op = 0;
        if (next < s->product_count && is_ready(s, order, placed, products[next]))
            op = products[next++];
        else
            while (op < s->ops.len && (s->ops.at[op].is_product || !is_ready(s, order, placed, op)))
                op++;
        if (op == s->ops.len)
            return false;
        placed[op] = true;
        order->at[count] = op;
    }
    return true;
}

static struct schedule_order new_order(const struct schedule *s)
{
    return (struct schedule_order){.at = arena_array(s->scratch, uint32_t, s->ops.len),
                                   .stage = arena_array(s->scratch, uint8_t, s->ops.len)};
}

static struct schedule_order of_source(const struct schedule *s)
{
    struct schedule_order order = new_order(s);
    for (uint32_t i = 0; i < s->ops.len; i++)
        order.at[i] = i;
    tir_schedule_time(s, &order);
    return order;
}

static bool is_better(const struct schedule_order *a, const struct schedule_order *b)
{
    return a->cycles < b->cycles || (a->cycles == b->cycles && a->words < b->words);
}

static bool fits(const struct schedule *s, const struct schedule_order *order)
{
    return order->words <= s->registers && order->held + order->beside <= s->all_registers;
}

struct search {
    const struct schedule *s;
    struct schedule_order best;
    uint32_t products[SCHEDULE_PRODUCTS]; // in the order that is tried
    uint32_t tried;
};

static void try_order(struct search *search, uint32_t late)
{
    const struct schedule *s = search->s;
    struct tir_arena_mark mark = tir_arena_mark(s->scratch);
    struct schedule_order order = new_order(s);
    search->tried++;
    if (set_stages(s, &order, late) && place(s, &order, search->products)) {
        tir_schedule_time(s, &order);
        if (fits(s, &order) && is_better(&order, &search->best)) {
            memcpy(search->best.at, order.at, s->ops.len * sizeof(*order.at));
            memcpy(search->best.stage, order.stage, s->ops.len);
            search->best.cycles = order.cycles;
            search->best.words = order.words;
            search->best.is_rotated = order.is_rotated;
        }
    }
    tir_arena_release(s->scratch, mark);
}

static void swap(uint32_t *a, uint32_t *b)
{
    const uint32_t kept = *a;
    *a = *b;
    *b = kept;
}

// Every order of the products from `at` on.
static void try_orders(struct search *search, uint32_t late, uint32_t at)
{
    const uint32_t count = search->s->product_count;
    if (at == count && search->tried < TIR_BUDGET_ORDERS)
        try_order(search, late);
    for (uint32_t i = at; i < count && search->tried < TIR_BUDGET_ORDERS; i++) {
        swap(&search->products[at], &search->products[i]);
        try_orders(search, late, at + 1);
        swap(&search->products[at], &search->products[i]);
    }
}

static bool has_dot(const struct tir_inst *inst)
{
    tir_foreach_inst_within(in, inst)
        if (in->op == TIR_OP_DOT)
            return true;
    return false;
}

// Does the operation follow, in its round, from the result of a product, but for its sum?
static bool follows_from_product(const struct schedule *s, uint32_t op)
{
    struct bitset needed = bitset_new(s->scratch, s->ops.len);
    bitset_insert(&needed, op);
    for (uint32_t i = op + 1; i-- > 0;)
        vec_foreach(const struct schedule_edge, e, &s->edges)
            if (e->later == i && bitset_has(&needed, i) && !e->distance &&
                e->kind == TIR_NEED_VALUE) {
                if (has_dot(s->ops.at[e->first].inst))
                    return true;
                bitset_insert(&needed, e->first);
            }
    return false;
}

// Does the operation multiply a tile in registers that another one has computed?
static bool takes_registers(const struct schedule *s, const struct tir_inst *inst)
{
    tir_foreach_inst_within(in, inst) {
        if (!tir_dot_on_warpgroups(in) || !tir_a_in_registers(in))
            continue;
        const struct tir_inst *def = in->operands[TIR_DOT_A]->def;
        if (def && def->block == s->loop->regions[0])
            return true;
    }
    return false;
}

// Does each product take a tile in registers that is computed from no product?
static bool computes_operands(const struct schedule *s)
{
    for (uint32_t i = 0; i < s->product_count; i++)
        if (!takes_registers(s, s->ops.at[s->products[i]].inst) ||
            follows_from_product(s, s->products[i]))
            return false;
    return true;
}

// The sets of late products. Operands that are computed from no product are ready a round before
// all of them, if that takes no longer: waiting for their loads is not played.
static void try_late(struct search *search, int64_t source)
{
    const uint32_t all = (1u << search->s->product_count) - 1;
    if (computes_operands(search->s)) {
        search->best.cycles = source;
        try_orders(search, all, 0);
        return;
    }
    search->best.cycles = source * (100 - TIR_BUDGET_ORDER_GAIN) / 100;
    for (uint32_t late = 0; late < all; late++)
        try_orders(search, late, 0);
}

// The best order, or that of the source; why the search stopped there.
static struct schedule_order search_orders(struct schedule *s, struct tir_pass_cx *cx,
                                           const struct schedule_order *source, const char **why)
{
    struct search search = {.s = s, .best = new_order(s)};
    memcpy(search.products, s->products, sizeof(s->products));
    search.best.words = INT64_MAX;
    try_late(&search, source->cycles);
    const bool is_found = search.best.words != INT64_MAX;
    const char *limit = search.tried < TIR_BUDGET_ORDERS ? "all" : "the most that are allowed";
    *why = tir_str_format(s->scratch, "%u orders were tried, %s; %s", search.tried, limit,
                          is_found ? "this one takes the fewest cycles of those that fit"
                                   : "none that fits saves enough")
               .ptr;
    if (!is_found) {
        tir_receipt_add(cx, TIR_TOPIC_LOOP, s->loop->span,
                        "loop: in the order of the source, %lld cycles a round predicted; of %u "
                        "other order%s tried, none takes at most %lld with tiles in at most %lld "
                        "registers",
                        (long long)source->cycles, search.tried, search.tried == 1 ? "" : "s",
                        (long long)search.best.cycles, (long long)s->registers);
        return *source;
    }
    tir_receipt_add(cx, TIR_TOPIC_LOOP, s->loop->span,
                    "loop: scheduled%s, %lld cycles a round predicted, %lld in the order of the "
                    "source; tiles take %lld registers",
                    search.best.is_rotated ? " in 2 stages" : "", (long long)search.best.cycles,
                    (long long)source->cycles, (long long)search.best.words);
    return search.best;
}

// Do several products take operands in registers that are computed from none, in less time than the
// other warpgroup multiplies? Then one computes while the other multiplies (pass turn).
static bool takes_turns(const struct schedule *s)
{
    int64_t tensor = 0, rest = 0;
    vec_foreach(const struct schedule_op, op, &s->ops) {
        tensor += op->tensor;
        rest += op->is_product ? 0 : TIR_MAX(op->issue, op->mufu);
    }
    const struct tir_attr *stated = tir_attr_find(s->loop, TIR_ATTR_turns);
    return s->groups == TIR_BUDGET_TURN_GROUPS && s->product_count > 1 && computes_operands(s) &&
           rest * 100 <= tensor * TIR_BUDGET_TURN_WORK && !(stated && !stated->number);
}

// All operands, then all products, which are one turn. False: products need each other's results,
// or registers do not suffice.
static bool order_turns(const struct schedule *s, struct schedule_order *order)
{
    uint32_t count = 0;
    for (uint32_t products = 0; products < 2; products++)
        for (uint32_t op = 0; op < s->ops.len; op++)
            if (s->ops.at[op].is_product == products)
                order->at[count++] = op;
    vec_foreach(const struct schedule_edge, e, &s->edges)
        if (!e->distance && s->ops.at[e->first].is_product && !s->ops.at[e->later].is_product)
            return false;
    tir_schedule_time(s, order);
    return fits(s, order);
}

// Certifies the order, makes the loop run in it and checks the one against the other.
static enum tir_change build(struct schedule *s, struct tir_pass_cx *cx,
                             const struct schedule_order *order,
                             const struct schedule_order *source, const char *why)
{
    struct tir_certificate claim =
        tir_schedule_certify(s, order, cx->receipt ? cx->receipt->arena : cx->scratch);
    const struct tir_needs needs = tir_certificate_needs(s->loop, cx->scratch);
    struct tir_inst *loop = s->loop;
    claim.source_cycles = source->cycles;
    claim.shared = cx->target->shared_per_cta;
    if (order->at != source->at)
        loop = tir_schedule_build(s, order);
    const char *wrong = tir_certificate_check(&claim, &needs, loop, cx->scratch);
    if (wrong) {
        tir_error_at(cx->diags, claim.span, TIR_E_VERIFY,
                     "the certificate of this loop's schedule is wrong: %s", wrong);
        return TIR_FAILED;
    }
    tir_receipt_certify(cx, &claim, why);
    return order->at == source->at ? TIR_UNCHANGED : TIR_CHANGED;
}

static enum tir_change visit(struct tir_func *f, struct tir_pass_cx *cx, struct tir_inst *loop)
{
    struct schedule s = {
        .f = f, .scratch = cx->scratch, .cost = &tir_costs[cx->target->card], .loop = loop};
    struct tir_follow indices;
    tir_follow_init(&indices, cx->scratch, is_index, NULL);
    const struct tir_crew crew = tir_crew_of(f, loop);
    s.groups = crew.warps / TIR_WARPGROUP;
    s.registers = crew.role ? tir_attr_int(crew.role, TIR_ATTR_regs, 0) : 0;
    if (!s.registers)
        s.registers = tir_launch_registers(f->threads);
    s.all_registers = s.registers;
    s.registers -= TIR_BUDGET_FREE_REGISTERS;
    for (struct tir_inst *inst = loop->regions[0]->first; inst; inst = inst->next)
        if (inst->op != TIR_OP_YIELD)
            add_op(&s, &indices, inst);
    if (!s.product_count || !s.groups)
        return TIR_UNCHANGED;
    add_edges(&s);
    mark_seldom(&s);
    const bool is_choice = s.product_count > 1 || computes_operands(&s);
    const char *why = refusal(&s);
    if (why && is_choice)
        tir_receipt_add(cx, TIR_TOPIC_LOOP, loop->span,
                        "loop: in the order of the source, because %s", why);
    if (why) {
        tir_receipt_certify(cx, &(struct tir_certificate){.span = loop->span}, why);
        return TIR_UNCHANGED;
    }
    why = "all products are in one operation, which leaves nothing to choose";
    const struct schedule_order source = of_source(&s);
    struct schedule_order order = new_order(&s);
    if (takes_turns(&s) && order_turns(&s, &order)) {
        why = "each warpgroup computes all operands, then starts all products in its turn";
        tir_set_int(f, loop, TIR_ATTR_turns, 1);
        tir_receipt_add(
            cx, TIR_TOPIC_LOOP, loop->span,
            "loop: scheduled for turns, %lld cycles a round predicted, %lld in the order "
            "of the source; tiles take %lld registers",
            (long long)order.cycles, (long long)source.cycles, (long long)order.words);
    } else {
        order = is_choice ? search_orders(&s, cx, &source, &why) : source;
    }
    return build(&s, cx, &order, &source, why);
}

enum tir_change tir_pass_schedule(struct tir_func *f, struct tir_pass_cx *cx)
{
    VEC(struct tir_inst *) loops = {0};
    enum tir_change change = TIR_UNCHANGED;
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_FOR && has_product(inst))
            vec_push(cx->scratch, &loops, inst);
    vec_foreach(struct tir_inst *, it, &loops) {
        const enum tir_change of_loop = visit(f, cx, *it);
        if (of_loop == TIR_FAILED)
            return TIR_FAILED;
        change = of_loop == TIR_CHANGED ? TIR_CHANGED : change;
    }
    return change;
}
