// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter on roles, scopes and rings.
//
// A role's results depend only on the contents of rings and not on timing, so roles run one after
// the other, each after those that fill the rings it empties, and a ring is a queue without bound:
// every put makes a slot of its own, which the matching get sees.

#include "interp/state.h"
#include "ir/crew.h"
#include "ir/walk.h"

struct packet { // what one put filled
    struct packet *next;
    uint8_t **data; // of each buffer
};

struct queue {
    struct packet *first, **end;
    int64_t puts, gets;
};

static const struct tir_inst *role_around(const struct tir_inst *inst)
{
    while (inst && inst->op != TIR_OP_ROLE)
        inst = inst->block->owner;
    return inst;
}

// The order of roles.

static const struct tir_inst *filler_of(const struct tir_func *f, const struct tir_value *ring)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_PUT && inst->operands[0] == ring)
            return role_around(inst);
    return NULL;
}

// Whether everything that the role gets was put before.
static bool is_ready(const struct interp *in, const struct tir_inst *role, const uint8_t *done)
{
    tir_foreach_inst(inst, in->f) {
        if (inst->op != TIR_OP_GET || role_around(inst) != role)
            continue;
        const struct tir_inst *filler = filler_of(in->f, inst->operands[0]);
        if (filler && !done[filler->id])
            return false;
    }
    return true;
}

// In a role its threads are the lanes from 0 on.

struct outside { // a value of threads from before the roles
    struct slot *slot;
    union tir_number *saved; // of all threads; NULL: a buffer of each
};

static uint32_t find_outside(struct interp *in, const struct tir_inst *first_role,
                             struct outside *out)
{
    uint32_t n = 0;
    for (const struct tir_inst *inst = in->f->body->first; inst != first_role; inst = inst->next)
        for (uint32_t i = 0; i < inst->result_count; i++) {
            struct slot *slot = &in->slots[inst->results[i]->id];
            bool each = slot->buffer ? slot->buffer->lane_stride != 0
                                     : slot->at && !inst->results[i]->type->rank;
            if (each && out)
                out[n].slot = slot;
            n += each;
        }
    return n;
}

static void enter_lanes(struct interp *in, struct outside *outside, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct slot *slot = outside[i].slot;
        if (slot->buffer) {
            slot->buffer->first += slot->buffer->lane_stride * in->first_lane;
            continue;
        }
        size_t all = in->max_lanes * sizeof *slot->at;
        outside[i].saved = tir_arena_copy(&in->scratch, slot->at, all);
        memcpy(slot->at, outside[i].saved + in->first_lane, in->lanes * sizeof *slot->at);
    }
}

static void leave_lanes(struct interp *in, const struct outside *outside, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct slot *slot = outside[i].slot;
        if (slot->buffer)
            slot->buffer->first -= slot->buffer->lane_stride * in->first_lane;
        else
            memcpy(slot->at, outside[i].saved, in->max_lanes * sizeof *slot->at);
    }
}

static void set_lanes(struct interp *in, uint32_t first, uint32_t count)
{
    in->first_lane = first;
    in->lanes = in->active_count = count;
    memset(in->active, 1, count);
}

static void run_role(struct interp *in, const struct tir_inst *first_role,
                     const struct tir_inst *role)
{
    const struct tir_crew crew = tir_crew_of(in->f, role);
    if (32 * (crew.first + crew.warps) > in->max_lanes)
        tir_interp_fail(in, role, TIR_ERR_INVALID, "the CTA has %u threads", in->max_lanes);
    uint32_t count = find_outside(in, first_role, NULL);
    struct outside *outside = arena_array(&in->scratch, struct outside, count);
    find_outside(in, first_role, outside);
    set_lanes(in, 32 * crew.first, 32 * crew.warps);
    enter_lanes(in, outside, count);
    tir_interp_block(in, role->regions[0]);
    leave_lanes(in, outside, count);
    set_lanes(in, 0, in->max_lanes);
}

// The first role runs all of them.
void tir_interp_role(struct interp *in, const struct tir_inst *inst)
{
    if (inst->prev && inst->prev->op == TIR_OP_ROLE)
        return;
    uint8_t *done = arena_array(&in->scratch, uint8_t, in->f->inst_count);
    for (bool left = true, moved = true; left;) {
        if (!moved)
            tir_interp_fail(in, inst, TIR_ERR_UNSUPPORTED,
                            "roles that wait for each other in turn cannot be interpreted");
        left = moved = false;
        for (const struct tir_inst *role = inst; role; role = role->next) {
            if (role->op != TIR_OP_ROLE || done[role->id])
                continue;
            left = true;
            if (!is_ready(in, role, done))
                continue;
            run_role(in, inst, role);
            done[role->id] = moved = true;
        }
    }
}

// Scopes: one group of warps after the other.

void tir_interp_scope(struct interp *in, const struct tir_inst *inst)
{
    const uint32_t lanes = in->lanes, window = in->window, first_lane = in->first_lane;
    const uint32_t count = in->active_count;
    const uint32_t group = 32 * (uint32_t)tir_attr_int(inst, TIR_ATTR_warps, 1);
    uint8_t *active = in->active;
    for (uint32_t first = 0; first + group <= lanes; first += group) {
        in->active = active + first;
        in->active_count = 0;
        for (uint32_t i = 0; i < group; i++)
            in->active_count += in->active[i];
        if (!in->active_count)
            continue;
        if (in->active_count < group)
            tir_interp_fail(in, inst, TIR_ERR_INVALID, "only %u of %u threads come to this scope",
                            in->active_count, group);
        in->lanes = group;
        in->window = window + first;
        in->first_lane = first_lane + first;
        tir_interp_block(in, inst->regions[0]);
    }
    in->active = active;
    in->active_count = count;
    in->lanes = lanes;
    in->window = window;
    in->first_lane = first_lane;
}

// Rings.

void tir_interp_ring(struct interp *in, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++) {
        const struct tir_type *type = inst->results[i]->type;
        struct buffer *b = arena_new(&in->arena, struct buffer);
        *b = (struct buffer){.elem = type->elem, .rank = type->rank};
        int64_t size = 1;
        for (uint32_t d = type->rank; d-- > 0; size *= b->shape[d]) {
            b->shape[d] = type->shape[d];
            b->stride[d] = size;
        }
        in->slots[inst->results[i]->id].buffer = b;
    }
    struct queue *queue = arena_new(&in->arena, struct queue);
    queue->end = &queue->first;
    in->slots[inst->results[0]->id].queue = queue;
}

// Runs the block of a put or get where the ring's buffers are those of the packet.
static void run_slot(struct interp *in, const struct tir_inst *inst, const struct packet *packet,
                     int64_t number)
{
    const struct tir_inst *ring = inst->operands[0]->def;
    int64_t slot = number % tir_attr_int(ring, TIR_ATTR_stages, 1);
    for (uint32_t i = 0; i < ring->result_count; i++) {
        struct buffer *b = in->slots[ring->results[i]->id].buffer;
        b->data = packet->data[i];
        b->first = -slot * b->stride[0];
    }
    union tir_number *at = tir_interp_write(in, inst->regions[0]->args[0]);
    for (uint32_t i = 0; i < in->lanes; i++)
        at[i].i = slot;
    tir_interp_block(in, inst->regions[0]);
    const struct tir_inst *yield = tir_yield_of(inst->regions[0]);
    for (uint32_t i = 0; i < inst->result_count; i++)
        tir_interp_copy(in, inst, inst->results[i], yield->operands[i]);
}

static struct queue *queue_of(struct interp *in, const struct tir_inst *inst)
{
    if (in->active_count < in->lanes)
        tir_interp_fail(in, inst, TIR_ERR_INVALID, "only %u of %u threads arrive at this '%s'",
                        in->active_count, in->lanes, tir_ops[inst->op].name);
    struct queue *queue = in->slots[inst->operands[0]->id].queue;
    if (!queue)
        tir_interp_fail(in, inst, TIR_ERR_INVALID, "a ring is used before it exists");
    return queue;
}

void tir_interp_put(struct interp *in, const struct tir_inst *inst)
{
    struct queue *queue = queue_of(in, inst);
    const struct tir_inst *ring = inst->operands[0]->def;
    struct packet *packet = arena_new(&in->arena, struct packet);
    packet->data = arena_array(&in->arena, uint8_t *, ring->result_count);
    for (uint32_t i = 0; i < ring->result_count; i++) {
        const struct tir_type *type = ring->results[i]->type;
        size_t bytes = (size_t)(tir_type_bytes(type) / type->shape[0]) + 1;
        packet->data[i] = tir_arena_alloc(&in->arena, bytes);
        memset(packet->data[i], 0xff, bytes);
    }
    run_slot(in, inst, packet, queue->puts++);
    *queue->end = packet;
    queue->end = &packet->next;
}

void tir_interp_get(struct interp *in, const struct tir_inst *inst)
{
    struct queue *queue = queue_of(in, inst);
    struct packet *packet = queue->first;
    if (!packet)
        tir_interp_fail(in, inst, TIR_ERR_INVALID, "this get waits for a put that never comes");
    queue->first = packet->next;
    if (!queue->first)
        queue->end = &queue->first;
    run_slot(in, inst, packet, queue->gets++);
}

// Nothing is ever in flight here.
void tir_interp_await(struct interp *in, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++)
        tir_interp_copy(in, inst, inst->results[i], inst->operands[i]);
}
