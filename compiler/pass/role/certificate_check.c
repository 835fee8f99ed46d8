// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks the certificate of a scheduled loop against the loop.
//
// Nothing of the search is used: what depends on what is found anew in the scheduled program, and
// each claim is checked where it says that it holds:
//   - the operations stand in the loop, slot by slot; with the stages that they are of they depend
//     on each other as in the source, which was read before the search;
//   - each dependence is claimed and no other one is; in all runs it holds, with its slack;
//   - a warpgroup issues in order, products run in the order of their start, and a unit serves one
//     warpgroup at a time;
//   - a round takes as long as the runs do;
//   - tiles fit the registers at the fullest slot, rings the shared memory.
// The cycles of single operations are taken from the certificate: they are a model, not a rule.
// What the rounds before and after the loop compute is left to the tests, which interpret programs
// before and after each pass.

#include "ir/layout.h"
#include "ir/walk.h"
#include "machine/work.h"
#include "pass/role/certificate.h"
#include "pass/sync/shared.h"

struct check {
    const struct tir_certificate *c;
    const struct tir_inst *loop;
    struct tir_arena *scratch;
    const struct tir_needs *source;
    const struct tir_inst **insts; // by slot
    struct tir_needs needs;        // as the program has them; no slack
};

const char *const tir_unit_names[TIR_UNIT_COUNT] = {"none", "tensor", "issue", "mufu"};
const char *const tir_need_names[TIR_NEED_COUNT] = {"turn", "queue", "sum", "value"};

enum tir_unit tir_claim_unit(const struct tir_claim_op *op)
{
    enum tir_unit most = TIR_UNIT_NONE;
    for (enum tir_unit unit = TIR_UNIT_TENSOR; unit < TIR_UNIT_COUNT; unit++)
        if (op->cycles[unit] > op->cycles[most])
            most = unit;
    return most;
}

static bool has_product(const struct tir_inst *inst)
{
    tir_foreach_inst_within(in, inst)
        if (in->op == TIR_OP_DOT &&
            tir_attr_word(in, TIR_ATTR_engine, TIR_WORD_NONE) == TIR_WORD_engine_wgmma)
            return true;
    return false;
}

// Operations.

static const char *check_ops(struct check *k)
{
    uint32_t slot = 0;
    k->insts = arena_array(k->scratch, const struct tir_inst *, k->c->ops.len + 1);
    for (const struct tir_inst *inst = k->loop->regions[0]->first; inst; inst = inst->next) {
        if (inst->op == TIR_OP_YIELD)
            continue;
        if (slot == k->c->ops.len || k->c->ops.at[slot].op != inst->op)
            return "the loop has other operations";
        if (k->c->ops.at[slot].is_product != has_product(inst))
            return "other operations are products";
        if (k->c->ops.at[slot].stage >= k->c->stages)
            return "an operation has no such stage";
        k->insts[slot++] = inst;
    }
    return slot == k->c->ops.len ? NULL : "the loop has other operations";
}

// Dependences of a program.

struct body {
    const struct tir_inst *loop;
    struct tir_arena *arena;
    struct tir_map places;   // value -> 1 + the place of what makes it
    struct tir_needs *needs; // found
};

static void add_need(struct tir_needs *needs, struct tir_arena *arena, struct tir_claim_need need)
{
    vec_foreach(struct tir_claim_need, n, &needs->list)
        if (n->first == need.first && n->later == need.later && n->rounds == need.rounds) {
            n->kind = TIR_MAX(n->kind, need.kind); // ORDER need
            return;
        }
    vec_push(arena, &needs->list, need);
}

static void add_use(struct body *b, uint32_t place, const struct tir_value *v, enum tir_need kind)
{
    const struct tir_block *block = b->loop->regions[0];
    uint32_t rounds = 0;
    // A value may be handed on for several rounds; in a circle it is the same in all of them.
    while (v && v->kind == TIR_VALUE_ARG && v->block == block && v->index &&
           rounds <= block->arg_count) {
        v = tir_yield_of(block)->operands[v->index - 1];
        rounds++;
    }
    const uintptr_t made = v ? (uintptr_t)tir_map_get(&b->places, tir_map_key(v)) : 0;
    const struct tir_claim_need need = {(uint32_t)made - 1, place, rounds, kind, 0};
    if (made && need.first != place)
        add_need(b->needs, b->arena, need);
}

static const struct tir_value *ring_of(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_GET ? inst->operands[0] : NULL;
}

static void add_uses(struct body *b, uint32_t place, const struct tir_inst *inst)
{
    tir_foreach_inst_within(in, inst)
        for (uint32_t i = 0; i < in->operand_count; i++) {
            const bool is_sum = in->op == TIR_OP_DOT && i == TIR_DOT_ACC && has_product(in);
            add_use(b, place, in->operands[i], is_sum ? TIR_NEED_SUM : TIR_NEED_VALUE);
        }
}

struct tir_needs tir_certificate_needs(const struct tir_inst *loop, struct tir_arena *arena)
{
    struct tir_needs needs = {0};
    struct body b = {.loop = loop, .arena = arena, .needs = &needs};
    const struct tir_inst *first = loop->regions[0]->first;
    uint32_t place = 0;
    tir_map_init(&b.places, arena);
    for (const struct tir_inst *inst = first; inst; inst = inst->next, place++)
        for (uint32_t r = 0; r < inst->result_count; r++)
            tir_map_set(&b.places, tir_map_key(inst->results[r]), (void *)(uintptr_t)(place + 1));
    place = 0;
    for (const struct tir_inst *inst = first; inst; inst = inst->next, place++) {
        uint32_t before = 0;
        if (inst->op == TIR_OP_YIELD)
            continue;
        add_uses(&b, place, inst);
        for (const struct tir_inst *in = first; ring_of(inst) && in != inst;
             in = in->next, before++)
            if (ring_of(in) == ring_of(inst))
                add_need(&needs, arena,
                         (struct tir_claim_need){before, place, 0, TIR_NEED_TURN, 0});
    }
    return needs;
}

// Products run in the order of their start, round after round.
static void add_queue(struct check *k)
{
    uint32_t first = UINT32_MAX, last = UINT32_MAX;
    for (uint32_t slot = 0; slot < k->c->ops.len; slot++) {
        if (!k->c->ops.at[slot].is_product)
            continue;
        if (last != UINT32_MAX)
            add_need(&k->needs, k->scratch,
                     (struct tir_claim_need){last, slot, 0, TIR_NEED_QUEUE, 0});
        first = first == UINT32_MAX ? slot : first;
        last = slot;
    }
    if (first != last)
        add_need(&k->needs, k->scratch, (struct tir_claim_need){last, first, 1, TIR_NEED_QUEUE, 0});
}

static bool has_need(const struct tir_needs *needs, uint32_t first, uint32_t later, int64_t rounds,
                     enum tir_need kind)
{
    vec_foreach(const struct tir_claim_need, n, &needs->list)
        if (n->first == first && n->later == later && n->rounds == rounds && n->kind == kind)
            return true;
    return false;
}

// Do operations depend on each other as they did in the source? Turns are taken in its order.
static bool are_of_source(const struct check *k, const struct tir_needs *scheduled)
{
    if (scheduled->list.len != k->source->list.len)
        return false;
    vec_foreach(const struct tir_claim_need, n, &scheduled->list) {
        const struct tir_claim_op *a = &k->c->ops.at[n->first], *b = &k->c->ops.at[n->later];
        const int64_t distance = (int64_t)n->rounds + a->stage - b->stage;
        if (!has_need(k->source, a->source, b->source, distance, n->kind))
            return false;
    }
    return true;
}

// The least time between the two, over all runs.
static int64_t slack_of(const struct tir_certificate *c, const struct tir_claim_need *need)
{
    int64_t least = INT64_MAX;
    for (uint32_t round = 0; round + need->rounds < TIR_CERTIFICATE_ROUNDS; round++)
        for (uint32_t group = 0; group < c->groups; group++) {
            const struct tir_run *a = tir_certificate_run(c, round, group, need->first),
                                 *b = tir_certificate_run(c, round + need->rounds, group,
                                                          need->later);
            const bool both =
                c->ops.at[need->first].is_product && c->ops.at[need->later].is_product;
            const int64_t slack = need->kind == TIR_NEED_TURN             ? b->begin - a->next
                                  : need->kind == TIR_NEED_VALUE || !both ? b->begin - a->ready
                                                                          : b->start - a->end;
            least = TIR_MIN(least, slack);
        }
    return least;
}

static const char *check_needs(struct check *k)
{
    k->needs = tir_certificate_needs(k->loop, k->scratch);
    if (!are_of_source(k, &k->needs))
        return "operations depend on others than in the source";
    add_queue(k);
    if (k->needs.list.len != k->c->needs.list.len)
        return "the loop has other dependences";
    vec_foreach(const struct tir_claim_need, n, &k->needs.list) {
        if (!has_need(&k->c->needs, n->first, n->later, n->rounds, n->kind))
            return "the loop has other dependences";
        if (n->rounds == 0 && n->first >= n->later)
            return "an operation stands before what it depends on";
    }
    vec_foreach(const struct tir_claim_need, claim, &k->c->needs.list)
        if (claim->slack < 0 || slack_of(k->c, claim) != claim->slack)
            return "a dependence has another slack";
    return NULL;
}

// Runs.

static bool is_run_right(const struct tir_claim_op *op, const struct tir_run *run, int64_t from)
{
    int64_t most = 0;
    for (enum tir_unit unit = TIR_UNIT_TENSOR; unit < TIR_UNIT_COUNT; unit++)
        most = TIR_MAX(most, op->cycles[unit]);
    if (run->from != from || run->begin < from || run->end != run->start + most)
        return false;
    if (op->is_product)
        return run->next == run->begin + TIR_DELAY_PRODUCT_START && run->start >= run->next &&
               run->ready == run->end + TIR_DELAY_PRODUCT_END;
    return run->start >= run->begin && run->next == run->end && run->ready == run->end;
}

// The runs of a unit in the order of time, merged from the warpgroups': none begins too early.
static bool is_unit_shared(const struct check *k, enum tir_unit unit)
{
    const struct tir_certificate *c = k->c;
    const uint32_t count = TIR_CERTIFICATE_ROUNDS * c->ops.len;
    uint32_t *at = arena_array(k->scratch, uint32_t, c->groups);
    int64_t busy = INT64_MIN;
    for (;;) {
        const struct tir_run *next = NULL;
        uint32_t group = 0;
        for (uint32_t g = 0; g < c->groups; g++) {
            while (at[g] < count && !c->ops.at[at[g] % c->ops.len].cycles[unit])
                at[g]++;
            if (at[g] == count)
                continue;
            const struct tir_run *run =
                tir_certificate_run(c, at[g] / c->ops.len, g, at[g] % c->ops.len);
            if (!next || run->start < next->start) {
                next = run;
                group = g;
            }
        }
        if (!next)
            return true;
        if (next->start < busy)
            return false;
        busy = next->start + c->ops.at[at[group] % c->ops.len].cycles[unit];
        at[group]++;
    }
}

static const char *check_runs(const struct check *k)
{
    const struct tir_certificate *c = k->c;
    int64_t longest = 0, tensor = 0;
    for (uint32_t group = 0; group < c->groups; group++) {
        const int64_t begun = tir_certificate_run(c, 0, group, 0)->from;
        int64_t from = begun;
        for (uint32_t round = 0; round < TIR_CERTIFICATE_ROUNDS; round++)
            for (uint32_t slot = 0; slot < c->ops.len; slot++) {
                const struct tir_run *run = tir_certificate_run(c, round, group, slot);
                if (!is_run_right(&c->ops.at[slot], run, from))
                    return "a warpgroup does not issue in order";
                from = run->next;
            }
        longest = TIR_MAX(longest, from - begun);
    }
    for (enum tir_unit unit = TIR_UNIT_TENSOR; unit < TIR_UNIT_COUNT; unit++)
        if (!is_unit_shared(k, unit))
            return "two warpgroups have one unit at a time";
    vec_foreach(const struct tir_claim_op, op, &c->ops)
        tensor += op->cycles[TIR_UNIT_TENSOR] * c->groups;
    if (c->cycles != TIR_MAX(longest / TIR_CERTIFICATE_ROUNDS, tensor))
        return "a round takes another time";
    return NULL;
}

// Registers.

static int64_t words_of_type(const struct tir_type *type)
{
    if (!tir_type_is_tile(type) || !type->layout)
        return 0;
    const int64_t bits = tir_elems[type->elem].bits;
    return ((int64_t)tir_layout_size(type->layout, TIR_AXIS_REG) * bits + 31) / 32;
}

// Results take the registers of their types; indices, broadcasts and other shapes may take none.
static bool are_words_right(const struct tir_claim_op *op, const struct tir_inst *inst)
{
    int64_t words = 0;
    bool may_be_less =
        inst->op == TIR_OP_BROADCAST || inst->op == TIR_OP_RESHAPE || inst->op == TIR_OP_PERMUTE;
    for (uint32_t i = 0; i < inst->result_count; i++) {
        words += words_of_type(inst->results[i]->type);
        may_be_less |= tir_elem_is_int(inst->results[i]->type->elem);
    }
    return op->words == words || (may_be_less && op->words == 0);
}

// The slot where a product that starts at `slot` is awaited: the next one that uses its result; if
// there is none after it, `slot`.
static uint32_t awaited_at(const struct check *k, uint32_t slot)
{
    uint32_t awaited = UINT32_MAX;
    vec_foreach(const struct tir_claim_need, n, &k->needs.list)
        if (n->first == slot && n->kind >= TIR_NEED_SUM && n->later > slot) // ORDER need
            awaited = TIR_MIN(awaited, n->later);
    return awaited == UINT32_MAX ? slot : awaited;
}

static void add_live(const struct check *k, uint32_t slot, int64_t *live)
{
    uint32_t last = slot, next = 0; // of this round and of the one that follows
    bool wraps = false;
    vec_foreach(const struct tir_claim_need, n, &k->needs.list) {
        if (n->first != slot || n->kind < TIR_NEED_SUM) // ORDER need
            continue;
        const bool is_read = k->c->ops.at[n->later].is_product && n->kind == TIR_NEED_VALUE;
        const uint32_t until = is_read ? awaited_at(k, n->later) : n->later;
        wraps |= n->rounds > 0;
        if (n->rounds)
            next = TIR_MAX(next, until);
        else
            last = TIR_MAX(last, until);
    }
    for (uint32_t at = 0; at < k->c->ops.len; at++) {
        const bool in_this = at == slot || (at > slot && (wraps || at < last));
        if (in_this || (wraps && at < next))
            live[at] += k->c->ops.at[slot].words;
    }
}

static const char *check_registers(const struct check *k)
{
    int64_t *live = arena_array(k->scratch, int64_t, k->c->ops.len + 1);
    uint32_t fullest = 0;
    for (uint32_t slot = 0; slot < k->c->ops.len; slot++) {
        if (!are_words_right(&k->c->ops.at[slot], k->insts[slot]))
            return "a result takes another number of registers";
        add_live(k, slot, live);
    }
    for (uint32_t slot = 0; slot < k->c->ops.len; slot++)
        if (live[slot] > live[fullest])
            fullest = slot;
    if (live[fullest] != k->c->words || fullest != k->c->fullest)
        return "tiles take another number of registers";
    // The order of the source is kept whatever it takes.
    const bool is_kept = k->c->stages == 1 && k->c->cycles == k->c->source_cycles;
    return !is_kept && k->c->words > k->c->registers ? "tiles do not fit the registers" : NULL;
}

// Shared memory.

static int64_t longest_read(const struct check *k, const struct tir_value *ring, int64_t *gets)
{
    int64_t longest = 0;
    *gets = 0;
    for (uint32_t slot = 0; slot < k->c->ops.len; slot++) {
        if (ring_of(k->insts[slot]) != ring)
            continue;
        ++*gets;
        for (uint32_t round = 0; round < TIR_CERTIFICATE_ROUNDS; round++)
            for (uint32_t group = 0; group < k->c->groups; group++) {
                const struct tir_run *run = tir_certificate_run(k->c, round, group, slot);
                longest = TIR_MAX(longest, run->ready - run->start);
            }
    }
    return longest;
}

static const char *check_rings(const struct check *k)
{
    int64_t bytes = 0, gets, rings = 0;
    vec_foreach(const struct tir_claim_ring, claim, &k->c->rings) {
        const int64_t held = longest_read(k, claim->ring, &gets);
        const struct tir_inst *def = claim->ring->def;
        int64_t all = 0;
        rings += gets;
        if (!gets || !def || def->op != TIR_OP_RING)
            return "the loop has other rings";
        for (uint32_t i = 0; i < def->result_count; i++)
            all += tir_buffer_bytes(def->results[i]->type);
        if (claim->bytes != all || claim->slots != tir_attr_int(def, TIR_ATTR_stages, 0))
            return "a ring takes other shared memory";
        if (claim->held != held || claim->slack != claim->slots * k->c->cycles / gets - held)
            return "a ring's slots are read for another time";
        bytes += all;
    }
    for (uint32_t slot = 0; slot < k->c->ops.len; slot++)
        rings -= ring_of(k->insts[slot]) != NULL;
    if (rings)
        return "the loop has other rings";
    return bytes > k->c->shared ? "rings do not fit the shared memory" : NULL;
}

const char *tir_certificate_check(const struct tir_certificate *c, const struct tir_needs *source,
                                  const struct tir_inst *loop, struct tir_arena *scratch)
{
    struct check k = {.c = c, .source = source, .loop = loop, .scratch = scratch};
    const char *wrong = check_ops(&k);
    wrong = wrong ? wrong : check_needs(&k);
    wrong = wrong ? wrong : check_runs(&k);
    wrong = wrong ? wrong : check_registers(&k);
    return wrong ? wrong : check_rings(&k);
}
