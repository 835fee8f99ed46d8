// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass schedule: the orders of a loop's operations that are tried, and which of them is taken.

#include "machine/budget.h"
#include "pass/receipt.h"
#include "pass/role/schedule.h"

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
        if (tir_schedule_ring(s->ops.at[e->first].inst) && !e->distance &&
            tir_schedule_ring(s->ops.at[e->first].inst) ==
                tir_schedule_ring(s->ops.at[e->later].inst) &&
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

struct schedule_order tir_schedule_new_order(const struct schedule *s)
{
    return (struct schedule_order){.at = arena_array(s->scratch, uint32_t, s->ops.len),
                                   .stage = arena_array(s->scratch, uint8_t, s->ops.len)};
}

struct schedule_order tir_schedule_of_source(const struct schedule *s)
{
    struct schedule_order order = tir_schedule_new_order(s);
    for (uint32_t i = 0; i < s->ops.len; i++)
        order.at[i] = i;
    tir_schedule_time(s, &order);
    return order;
}

static bool is_better(const struct schedule_order *a, const struct schedule_order *b)
{
    return a->cycles < b->cycles || (a->cycles == b->cycles && a->words < b->words);
}

bool tir_schedule_fits(const struct schedule *s, const struct schedule_order *order)
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
    struct schedule_order order = tir_schedule_new_order(s);
    search->tried++;
    if (set_stages(s, &order, late) && place(s, &order, search->products)) {
        tir_schedule_time(s, &order);
        if (tir_schedule_fits(s, &order) && is_better(&order, &search->best)) {
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

// The sets of late products. Operands that are computed from no product are ready a round before
// all of them, if that takes no longer: waiting for their loads is not played.
static void try_late(struct search *search, int64_t source)
{
    const uint32_t all = (1u << search->s->product_count) - 1;
    if (tir_schedule_computes_operands(search->s)) {
        search->best.cycles = source;
        try_orders(search, all, 0);
        return;
    }
    search->best.cycles = source * (100 - TIR_BUDGET_ORDER_GAIN) / 100;
    for (uint32_t late = 0; late < all; late++)
        try_orders(search, late, 0);
}

// The best order, or that of the source; why the search stopped there.
struct schedule_order tir_schedule_search(struct schedule *s, struct tir_pass_cx *cx,
                                          const struct schedule_order *source, const char **why)
{
    struct search search = {.s = s, .best = tir_schedule_new_order(s)};
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
