// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rings of a kernel: the roles that fill and empty them, and how.

#include "ir/walk.h"
#include "machine/budget.h"
#include "pass/sync/ring.h"

struct ring *tir_ring_of(struct rings *r, const struct tir_inst *inst)
{
    vec_foreach(struct ring, ring, &r->all)
        if (ring->inst == inst->operands[0]->def)
            return ring;
    tir_unreachable(); // the verifier knows that it is a ring's
}

const char *tir_ring_name(const struct ring *ring)
{
    return ring->inst->results[0]->name ? ring->inst->results[0]->name : "without a name";
}

static void refuse(struct rings *r, const struct tir_inst *inst, const struct ring *ring,
                   const char *why)
{
    tir_error_at(r->cx->diags, inst->span, TIR_E_VERIFY, "ring %s: %s", tir_ring_name(ring), why);
    r->failed = true;
}

static bool is_part_of(const struct ring *ring, struct tir_value *v)
{
    return v && tir_buffer_root(v)->def == ring->inst;
}

bool tir_is_engine_copy(const struct tir_inst *inst)
{
    return tir_done_of(inst) == TIR_DONE_RING;
}

bool tir_ring_is_touched(const struct ring *ring, const struct tir_inst *inst)
{
    if (tir_viewed(inst) || inst->op == TIR_OP_PUT || inst->op == TIR_OP_GET)
        return false;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (is_part_of(ring, inst->operands[i]))
            return true;
    return false;
}

static void look_at_put(struct rings *r, struct ring *ring, struct tir_inst *put)
{
    struct tir_block *block = put->regions[0];
    struct tir_crew crew = tir_crew_of(r->f, put);
    if (ring->puts.len && crew.role != ring->putter.role)
        refuse(r, put, ring, "only one role may fill it");
    ring->putter = crew;
    vec_push(r->cx->scratch, &ring->puts, put);
    tir_foreach_inst_in(inst, block) {
        if (!tir_ring_is_touched(ring, inst))
            continue;
        if (!tir_is_engine_copy(inst)) {
            ring->stores |= tir_done_of(inst) != TIR_DONE_BYTES;
            continue;
        }
        ring->copies = true;
        ring->multicast |= inst->operands[TIR_COPY_CTAS] != NULL;
        if (inst->block != block)
            refuse(r, inst, ring, "a copy that fills it must stand directly in the block of put");
    }
}

bool tir_has_own_groups(enum tir_done done)
{
    return tir_dones[done].engine != TIR_WORD_NONE && !tir_dones[done].by_one;
}

struct ring_readers tir_ring_readers(const struct ring *ring, const struct tir_inst *get)
{
    struct ring_readers readers = {.all = TIR_DONE_NOW, .last = TIR_DONE_NOW};
    uint32_t kinds = 0;
    tir_foreach_inst_in(inst, get->regions[0])
        if (tir_ring_is_touched(ring, inst))
            readers.by[tir_done_of(inst)] = true;
    for (enum tir_done done = 0; done < TIR_DONE_COUNT; done++) {
        kinds += readers.by[done];
        if (readers.by[done] && tir_has_own_groups(done))
            readers.all = done;
    }
    if (kinds == 1u + readers.by[TIR_DONE_NOW])
        readers.last = readers.all;
    if (kinds > 1)
        readers.all = TIR_DONE_NOW;
    return readers;
}

static void look_at_get(struct rings *r, struct ring *ring, struct tir_inst *get)
{
    struct tir_crew crew = tir_crew_of(r->f, get);
    bool known = false;
    vec_foreach(struct tir_inst *, it, &ring->gets)
        known |= tir_crew_of(r->f, *it).role == crew.role;
    ring->getters += known ? 0 : crew.warps;
    vec_push(r->cx->scratch, &ring->gets, get);
    tir_foreach_inst_in(inst, get->regions[0])
        if (tir_ring_is_touched(ring, inst))
            tir_foreach_effect(e, inst)
                ring->read_async |= e->proxy == TIR_PROXY_ASYNC;
    if (!tir_attr_int(get, TIR_ATTR_lag, 0))
        return;
    const struct ring_readers readers = tir_ring_readers(ring, get);
    ring->lanes_lag |= readers.by[TIR_DONE_NOW];
    if (ring->lagging == TIR_DONE_NOW)
        ring->lagging = readers.last;
}

bool tir_has_thread_copies(struct tir_block *block)
{
    tir_foreach_inst_in(inst, block)
        if (tir_done_of(inst) == TIR_DONE_CP_ASYNC)
            return true;
    return false;
}

struct tir_inst *tir_ring_loop(const struct tir_inst *put)
{
    struct tir_inst *owner = put->block->owner;
    while (owner && !tir_is_loop(owner))
        owner = owner->block->owner;
    return owner && owner->op != TIR_OP_TILES ? owner : NULL;
}

// By how many rounds a put may hand on its slot late: its loop does nothing but fill rings with
// more slots than that. A slot may be freed a round late too.
static int64_t rounds_late(struct rings *r, const struct ring *ring, const struct tir_inst *put)
{
    const struct tir_inst *loop = tir_ring_loop(put);
    int64_t fewest = ring->stages;
    if (!loop || ring->of_one_role || !tir_has_thread_copies(put->regions[0]))
        return 0;
    tir_foreach_inst_within(inst, loop) {
        const bool fills = inst->block->owner && inst->block->owner->op == TIR_OP_PUT;
        if (inst->op == TIR_OP_PUT)
            fewest = TIR_MIN(fewest, tir_ring_of(r, inst)->stages);
        else if (tir_has_trait(inst, TIR_SYNC) ||
                 (!fills && tir_has_trait(inst, TIR_ASYNC | TIR_WRITES)))
            return 0;
    }
    return TIR_MAX(TIR_MIN(fewest - 2, TIR_BUDGET_LATE_ROUNDS), 0);
}

static void find_late(struct rings *r, struct ring *ring)
{
    ring->late = ring->puts.len ? TIR_BUDGET_LATE_ROUNDS : 0;
    vec_foreach(struct tir_inst *, put, &ring->puts)
        ring->late = TIR_MIN(ring->late, rounds_late(r, ring, *put));
}

static bool is_in_condition(const struct tir_inst *inst)
{
    for (const struct tir_block *block = inst->block; block->owner; block = block->owner->block)
        if (block->owner->op == TIR_OP_WHILE && block == block->owner->regions[0])
            return true;
    return false;
}

void tir_rings_collect(struct rings *r)
{
    tir_foreach_inst(inst, r->f)
        if (inst->op == TIR_OP_RING) {
            struct ring ring = {.inst = inst, .stages = tir_attr_int(inst, TIR_ATTR_stages, 1)};
            vec_push(r->cx->scratch, &r->all, ring);
        }
    tir_foreach_inst(inst, r->f) {
        if (inst->op != TIR_OP_PUT && inst->op != TIR_OP_GET)
            continue;
        struct ring *ring = tir_ring_of(r, inst);
        if (is_in_condition(inst))
            refuse(r, inst, ring, "the condition of a while loop cannot fill or empty it");
        (inst->op == TIR_OP_PUT ? look_at_put : look_at_get)(r, ring, inst);
    }
    vec_foreach(struct ring, ring, &r->all) {
        if (ring->puts.len && !ring->gets.len)
            refuse(r, ring->inst, ring, "it is filled, but nothing gets what is in it");
        vec_foreach(struct tir_inst *, it, &ring->gets)
            ring->of_one_role |= tir_crew_of(r->f, *it).role == ring->putter.role;
        find_late(r, ring);
        if (ring->gets.len && !ring->puts.len)
            refuse(r, ring->inst, ring, "it is emptied, but nothing is put into it");
    }
}
