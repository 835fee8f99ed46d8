// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass schedule: a loop's operations, with the cycles and registers that they take, and what
// must come after what.

#include "base/bitset.h"
#include "ir/follow.h"
#include "ir/layout.h"
#include "ir/layout_exchange.h"
#include "ir/walk.h"
#include "machine/cost.h"
#include "machine/work.h"
#include "pass/layout/warpgroup.h"
#include "pass/role/schedule.h"

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
const char *tir_schedule_refusal(const struct schedule *s)
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

const struct tir_value *tir_schedule_ring(const struct tir_inst *inst)
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
        for (uint32_t k = 0; tir_schedule_ring(inst) && k < i; k++)
            if (tir_schedule_ring(s->ops.at[k].inst) == tir_schedule_ring(inst))
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
bool tir_schedule_computes_operands(const struct schedule *s)
{
    for (uint32_t i = 0; i < s->product_count; i++)
        if (!takes_registers(s, s->ops.at[s->products[i]].inst) ||
            follows_from_product(s, s->products[i]))
            return false;
    return true;
}

bool tir_schedule_model(struct schedule *s)
{
    struct tir_follow indices;
    tir_follow_init(&indices, s->scratch, is_index, NULL);
    for (struct tir_inst *inst = s->loop->regions[0]->first; inst; inst = inst->next)
        if (inst->op != TIR_OP_YIELD)
            add_op(s, &indices, inst);
    if (!s->product_count)
        return false;
    add_edges(s);
    mark_seldom(s);
    return true;
}
