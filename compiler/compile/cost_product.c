// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The model of time (cost.c): products, and what is computed beside them.

#include "compile/compile.h"
#include "compile/cost_model.h"

int64_t tir_cost_warpgroups(const struct tir_inst *dot)
{
    enum { ROWS = 64 }; // of a wgmma
    return tir_ceil_div(dot->results[0]->type->shape[0], ROWS);
}

// Rows of the sums, as many as the product takes the time of.
static int64_t rows_worth(const struct cost_model *m, const struct tir_type *sums)
{
    const int64_t rows = sums->shape[0], block = tir_tmem_block(rows);
    return tir_cost_has_tensor_memory(m) && block
               ? rows / block * TIR_MAX(block, tir_cost_of(m)->fewest_rows)
               : rows;
}

// Elements that operations behind the product make, up to the next one in its round.
static int64_t work_after(const struct tir_inst *dot)
{
    int64_t work = 0;
    for (const struct tir_inst *inst = dot->next; inst && inst->op != TIR_OP_DOT; inst = inst->next)
        if (tir_is_elementwise(inst) && tir_type_is_tile(inst->results[0]->type))
            work += tir_type_count(inst->results[0]->type);
    return work;
}

// Does another product stand in front of this one in its round?
static bool is_later(const struct tir_inst *dot)
{
    for (const struct tir_inst *inst = dot->prev; inst; inst = inst->prev)
        if (inst->op == TIR_OP_DOT)
            return true;
    return false;
}

static bool is_only(const struct tir_inst *dot)
{
    for (const struct tir_inst *inst = dot->next; inst; inst = inst->next)
        if (inst->op == TIR_OP_DOT)
            return false;
    return !is_later(dot);
}

// The cycles of a round in which its sums are used. A warpgroup waits for those of an only product;
// beside another one it multiplies meanwhile, and what is computed is slower: exponentials.
static int64_t uses_of(const struct cost_model *m, const struct tir_inst *dot)
{
    const struct tir_cost *cost = tir_cost_of(m);
    const int64_t work = work_after(dot), groups = tir_cost_warpgroups(dot);
    if (!is_only(dot))
        return work / (groups * groups) / cost->computed;
    return work ? work / groups / cost->used + cost->using / groups : 0;
}

// Is the operand converted in front of all products of a round? What makes that of a later product
// is hidden behind the first.
static bool is_converted(const struct tir_inst *dot, const struct cost_source *from)
{
    return from->work && !from->is_of_product && !is_later(dot);
}

// The cycles that making an operand takes beside the products.
static int64_t made(const struct cost_model *m, const struct tir_inst *dot,
                    const struct cost_source *from)
{
    const struct tir_cost *cost = tir_cost_of(m);
    if (from->is_of_product)
        return from->work / cost->computed;
    return is_converted(dot, from) ? from->bits / 32 / cost->converted : 0;
}

// The cycles of a round in which one of as many slots as are stated, or fit, is filled again.
static int64_t refilled(const struct cost_model *m, const struct tir_inst *dot, int64_t bytes)
{
    const int64_t stated = tir_attr_int(dot->block->owner, TIR_ATTR_stages, INT64_MAX);
    const int64_t fit = m->request->target.shared_per_cta / TIR_MAX(bytes, 1);
    return tir_cost_of(m)->refill / TIR_MAX(TIR_MIN(stated, fit), 1);
}

// The time in which the operands of all tiles arrive, of one round: at the multiprocessor with the
// most of them, or from the L2 cache.
static void push_copies(struct cost_model *m, const struct tir_inst *tiles,
                        const struct tir_inst *dot, const struct cost_source *a,
                        const struct cost_source *b)
{
    const struct tir_cost *cost = tir_cost_of(m);
    const int64_t share_a = tir_cost_sharing(tiles, a), share_b = tir_cost_sharing(tiles, b);
    tir_cost_push(m, TIR_FORMULA_CONST, 0);
    tir_cost_push_askew(m, a, share_a);
    tir_cost_push_askew(m, b, share_b);
    tir_cost_push(m, TIR_FORMULA_SET, ASKEW);
    const struct {
        int64_t bytes, cell, rate;
    } ways[] = {{a->bytes + b->bytes, TURNS, cost->fetched},
                {a->bytes / share_a + b->bytes / share_b, TILES, cost->cached}};
    for (uint32_t i = 0; i < TIR_COUNT_OF(ways); i++) {
        tir_cost_push(m, TIR_FORMULA_CONST, ways[i].bytes);
        tir_cost_push(m, TIR_FORMULA_GET, ASKEW);
        tir_cost_push(m, TIR_FORMULA_ADD, 0);
        tir_cost_push(m, TIR_FORMULA_GET, ways[i].cell);
        tir_cost_push(m, TIR_FORMULA_MUL, 0);
        tir_cost_push(m, TIR_FORMULA_CONST, ways[i].rate);
        tir_cost_push(m, TIR_FORMULA_DIV, 0);
    }
    tir_cost_push(m, TIR_FORMULA_MAX, 0);
    if (tir_compile_sharers(m->f, tiles) > 1) { // no other CTA waits meanwhile
        tir_cost_push(m, TIR_FORMULA_GET, WAVES);
        tir_cost_push(m, TIR_FORMULA_CONST, refilled(m, dot, a->bytes + b->bytes));
        tir_cost_push(m, TIR_FORMULA_MUL, 0);
        tir_cost_push(m, TIR_FORMULA_MAX, 0);
    }
    tir_cost_push_past(m, tiles, a, share_a);
    tir_cost_push_past(m, tiles, b, share_b);
}

void tir_cost_push_product(struct cost_model *m, const struct tir_inst *tiles,
                           const struct tir_inst *dot)
{
    const struct tir_cost *cost = tir_cost_of(m);
    const struct tir_type *a = dot->operands[TIR_DOT_A]->type, *t = dot->results[0]->type;
    const bool on_threads = !(m->request->target.features & TIR_HAS_WGMMA) &&
                            !(tir_cost_has_tensor_memory(m) && tir_tmem_block(t->shape[0]));
    int64_t rows = t->shape[0], columns = t->shape[1], depth = a->shape[1];
    int64_t worth = TIR_MAX(columns, cost->fewest_columns);
    int64_t multiply = rows_worth(m, t) * worth * depth / tir_products_a_cycle(cost, a->elem);
    const struct cost_source a_from = tir_cost_source_of(m, dot->operands[TIR_DOT_A]),
                             b_from = tir_cost_source_of(m, dot->operands[TIR_DOT_B]);
    const bool waits =
        dot->block->owner->op == TIR_OP_FOR && (m->request->target.features & TIR_HAS_WGMMA);
    const int64_t compute =
        made(m, dot, &a_from) + made(m, dot, &b_from) + (waits ? uses_of(m, dot) : 0);
    const bool converts = waits && (is_converted(dot, &a_from) || is_converted(dot, &b_from));
    const int64_t others =
        tir_cost_warpgroups(dot) * tir_cost_ctas_together(m, tiles); // and itself
    const int64_t waited = converts ? cost->converting / others : 0;
    if (on_threads && rows * columns > cost->most_sums)
        multiply = multiply * cost->too_many_sums / 100;
    if (m->request->target.features & TIR_HAS_WGMMA) {
        push_copies(m, tiles, dot, &a_from, &b_from);
    } else {
        const int64_t parts =
            tir_cost_has_tensor_memory(m) && tir_cost_cluster_of(m, tiles) ? 2 : 1; // of B
        tir_cost_push(m, TIR_FORMULA_CONST, (a_from.bytes + b_from.bytes / parts) / cost->fetched);
        tir_cost_push(m, TIR_FORMULA_GET, TURNS);
        tir_cost_push(m, TIR_FORMULA_MUL, 0);
    }
    if (m->f->own_count) { // there are variants for such rows; those of the first one have factors
        tir_cost_push(m, TIR_FORMULA_CONST, 0);
        tir_cost_push_by_threads(m, &a_from);
        tir_cost_push_by_threads(m, &b_from);
        tir_cost_push(m, TIR_FORMULA_GET, WAVES);
        tir_cost_push(m, TIR_FORMULA_MUL, 0);
        tir_cost_push(m, TIR_FORMULA_MAX, 0);
    }
    tir_cost_push(m, TIR_FORMULA_GET, TURNS);
    tir_cost_push(m, TIR_FORMULA_CONST, multiply + compute);
    tir_cost_push(m, TIR_FORMULA_MUL, 0);
    tir_cost_push(m, TIR_FORMULA_MAX, 0);
    tir_cost_push(m, TIR_FORMULA_GET, WAVES);
    tir_cost_push(m, TIR_FORMULA_CONST, is_later(dot) ? 0 : cost->round + waited);
    tir_cost_push(m, TIR_FORMULA_MUL, 0);
    tir_cost_push(m, TIR_FORMULA_ADD, 0);
    tir_cost_push_rounds(m, dot);
    tir_cost_push(m, TIR_FORMULA_ADD, 0);
}
