// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The certificate of an order: operations by slot, what each needs with its slack, and the rings.

#include "pass/role/schedule.h"
#include "pass/sync/shared.h"

// "s = get(K_tile)"
static tir_str text_of(struct tir_arena *arena, const struct tir_inst *inst)
{
    const char *name = inst->result_count ? inst->results[0]->name : NULL;
    const char *ring = inst->op == TIR_OP_GET ? inst->operands[0]->name : NULL;
    return tir_str_format(arena, "%s%s%s%s%s%s", name ? name : "", name ? " = " : "",
                          tir_ops[inst->op].name, ring ? "(" : "", ring ? ring : "",
                          ring ? ")" : "");
}

static void certify_ops(struct tir_certificate *c, const struct schedule *s,
                        const struct schedule_order *order, struct tir_arena *arena)
{
    for (uint32_t slot = 0; slot < s->ops.len; slot++) {
        const uint32_t source = order->at[slot];
        const struct schedule_op *op = &s->ops.at[source];
        struct tir_claim_op claim = {.op = op->inst->op,
                                     .text = text_of(arena, op->inst),
                                     .span = op->inst->span,
                                     .source = source,
                                     .stage = order->stage[source],
                                     .is_product = op->is_product,
                                     .words = op->words};
        claim.cycles[TIR_UNIT_TENSOR] = op->tensor;
        claim.cycles[TIR_UNIT_ISSUE] = op->is_product ? 0 : op->issue;
        claim.cycles[TIR_UNIT_MUFU] = op->is_product ? 0 : op->mufu;
        vec_push(arena, &c->ops, claim);
    }
}

static void add_need(struct tir_certificate *c, struct tir_arena *arena, struct tir_claim_need need)
{
    vec_foreach(struct tir_claim_need, n, &c->needs.list)
        if (n->first == need.first && n->later == need.later && n->rounds == need.rounds) {
            n->kind = TIR_MAX(n->kind, need.kind); // ORDER need
            return;
        }
    vec_push(arena, &c->needs.list, need);
}

static void certify_queue(struct tir_certificate *c, struct tir_arena *arena)
{
    uint32_t first = UINT32_MAX, last = UINT32_MAX;
    for (uint32_t slot = 0; slot < c->ops.len; slot++) {
        if (!c->ops.at[slot].is_product)
            continue;
        if (first == UINT32_MAX)
            first = slot;
        else
            add_need(c, arena, (struct tir_claim_need){last, slot, 0, TIR_NEED_QUEUE, 0});
        last = slot;
    }
    if (first != last)
        add_need(c, arena, (struct tir_claim_need){last, first, 1, TIR_NEED_QUEUE, 0});
}

static int64_t between(const struct tir_certificate *c, const struct tir_claim_need *need,
                       const struct tir_run *first, const struct tir_run *later)
{
    const bool both = c->ops.at[need->first].is_product && c->ops.at[need->later].is_product;
    if (need->kind == TIR_NEED_TURN)
        return later->begin - first->next;
    return need->kind < TIR_NEED_VALUE && both ? later->start - first->end // ORDER need
                                               : later->begin - first->ready;
}

static void certify_needs(struct tir_certificate *c, const struct schedule *s,
                          const struct schedule_order *order, struct tir_arena *arena)
{
    uint32_t *slot = arena_array(s->scratch, uint32_t, s->ops.len);
    for (uint32_t i = 0; i < s->ops.len; i++)
        slot[order->at[i]] = i;
    vec_foreach(const struct schedule_edge, e, &s->edges) {
        const uint32_t rounds = e->distance + order->stage[e->later] - order->stage[e->first];
        add_need(c, arena,
                 (struct tir_claim_need){slot[e->first], slot[e->later], rounds, e->kind, 0});
    }
    certify_queue(c, arena);
    vec_foreach(struct tir_claim_need, n, &c->needs.list) {
        n->slack = INT64_MAX;
        for (uint32_t group = 0; group < c->groups; group++)
            for (uint32_t round = n->rounds; round < TIR_CERTIFICATE_ROUNDS; round++)
                n->slack = TIR_MIN(
                    n->slack,
                    between(c, n, tir_certificate_run(c, round - n->rounds, group, n->first),
                            tir_certificate_run(c, round, group, n->later)));
    }
}

// Cycles from when a slot is first read until the last that reads it knows that it is done.
static int64_t held(const struct tir_certificate *c, uint32_t slot)
{
    int64_t most = 0;
    for (uint32_t run = slot; run < TIR_CERTIFICATE_ROUNDS * c->groups * c->ops.len;
         run += c->ops.len)
        most = TIR_MAX(most, c->runs[run].ready - c->runs[run].start);
    return most;
}

static struct tir_claim_ring *ring_of(struct tir_certificate *c, struct tir_arena *arena,
                                      const struct tir_value *v)
{
    vec_foreach(struct tir_claim_ring, ring, &c->rings)
        if (ring->ring == v)
            return ring;
    struct tir_claim_ring ring = {.ring = v, .slots = tir_attr_int(v->def, TIR_ATTR_stages, 0)};
    ring.name = tir_str_copy(arena, tir_str_of(v->name ? v->name : "ring"));
    for (uint32_t i = 0; i < v->def->result_count; i++)
        ring.bytes += tir_buffer_bytes(v->def->results[i]->type);
    vec_push(arena, &c->rings, ring);
    return &c->rings.at[c->rings.len - 1];
}

static void certify_rings(struct tir_certificate *c, const struct schedule *s,
                          const struct schedule_order *order, struct tir_arena *arena)
{
    uint32_t *gets = arena_array(s->scratch, uint32_t, s->ops.len + 1); // by ring
    for (uint32_t slot = 0; slot < c->ops.len; slot++) {
        if (c->ops.at[slot].op != TIR_OP_GET)
            continue;
        struct tir_claim_ring *ring =
            ring_of(c, arena, s->ops.at[order->at[slot]].inst->operands[0]);
        ring->held = TIR_MAX(ring->held, held(c, slot));
        gets[ring - c->rings.at]++;
    }
    for (uint32_t i = 0; i < c->rings.len; i++)
        c->rings.at[i].slack = c->rings.at[i].slots * c->cycles / gets[i] - c->rings.at[i].held;
}

struct tir_certificate tir_schedule_certify(const struct schedule *s,
                                            const struct schedule_order *order,
                                            struct tir_arena *arena)
{
    struct tir_certificate c = {.span = s->loop->span,
                                .groups = tir_schedule_groups(s),
                                .stages = order->is_rotated ? 2 : 1,
                                .cycles = order->cycles,
                                .replayed = tir_schedule_replay(s, order),
                                .words = order->words,
                                .registers = s->registers,
                                .fullest = tir_schedule_fullest(s, order)};
    c.runs = tir_schedule_runs(s, order, arena);
    certify_ops(&c, s, order, arena);
    certify_needs(&c, s, order, arena);
    certify_rings(&c, s, order, arena);
    return c;
}
