// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tensor_memory: builds roles, their loops, and their ends of channels.
//
// An end is a slot and a parity, which the loops of its role carry; of one slot, only the parity.
// Who fills slots finds them empty at first, and so begins with the parity 1.

#include "pass/role/tensor_memory.h"

struct tir_inst *tir_tmem_plain(struct tir_builder *b, enum tir_op op,
                                struct tir_value *const *operands, uint32_t count)
{
    return tir_build(b, op, operands, count, NULL, 0, 0);
}

void tir_tmem_fence(struct tir_builder *b, enum tir_word of)
{
    tir_set_word(b->f, tir_tmem_plain(b, TIR_OP_FENCE, NULL, 0), TIR_ATTR_of, of);
}

struct tir_value *tir_tmem_slot(struct tir_builder *b, struct tir_value *buffer,
                                struct tir_value *slot)
{
    const struct tir_type *whole = buffer->type;
    struct tir_type t = {.elem = whole->elem, .space = whole->space, .rank = whole->rank - 1};
    struct tir_value *operands[1 + TIR_MAX_RANK] = {buffer, slot};
    int64_t box[TIR_MAX_RANK] = {0};
    for (uint32_t d = 1; d < whole->rank; d++) {
        t.shape[d - 1] = box[d] = whole->shape[d];
        operands[1 + d] = tir_const_index(b->f, 0);
    }
    const struct tir_type *type = tir_type_get(b->f->module->types, &t);
    struct tir_inst *view = tir_build(b, TIR_OP_VIEW, operands, 1 + whole->rank, &type, 1, 0);
    tir_set_list(b->f, view, TIR_ATTR_box, box, whole->rank);
    return tir_result(view);
}

struct tir_builder tir_tmem_begin_if(struct tir_builder *b, struct tir_value *condition)
{
    struct tir_inst *branch = tir_build(b, TIR_OP_IF, &condition, 1, NULL, 0, 2);
    struct tir_builder no = tir_builder_at_end(b->f, branch->regions[1]);
    tir_build_yield(&no, NULL, 0);
    struct tir_builder in = tir_builder_at_end(b->f, branch->regions[0]);
    in.span = b->span;
    return in;
}

void tir_tmem_end_if(struct tir_builder *in)
{
    tir_build_yield(in, NULL, 0);
}

struct tir_builder tir_tmem_begin_elected(struct tir_builder *b)
{
    const struct tir_type *boolean = tir_type_scalar(b->f->module->types, TIR_BOOL);
    return tir_tmem_begin_if(b, tir_build1(b, TIR_OP_ELECT, boolean, NULL, 0));
}

void tir_tmem_meet(const struct tmem_plan *p, struct tir_builder *b)
{
    if (!p->is_pair) {
        tir_tmem_plain(b, TIR_OP_BAR_SYNC, NULL, 0);
        return;
    }
    tir_tmem_plain(b, TIR_OP_CLUSTER_ARRIVE, NULL, 0);
    tir_tmem_plain(b, TIR_OP_CLUSTER_WAIT, NULL, 0);
}

// Ends of channels. The CTA that multiplies fills and frees slots of both of a pair, and is told of
// those of both.

static void wait_for(struct tir_builder *b, struct tir_value *bars, const struct tmem_end *end)
{
    struct tir_value *operands[] = {tir_tmem_slot(b, bars, end->at[0]), NULL, end->at[1]};
    tir_tmem_plain(b, TIR_OP_WAIT, operands, 3);
}

void tir_tmem_wait_full(struct tir_builder *b, const struct tmem_end *end)
{
    wait_for(b, end->channel->full, end);
}

void tir_tmem_wait_empty(struct tir_builder *b, const struct tmem_end *end)
{
    wait_for(b, end->channel->empty, end);
}

void tir_tmem_commit(struct tir_builder *b, struct tir_value *bars, const struct tmem_end *end)
{
    const uint32_t ctas = end->channel->ctas;
    struct tir_value *operands[] = {tir_tmem_slot(b, bars, end->at[0]), NULL,
                                    ctas > 1 ? tir_const_i32(b->f, (1 << ctas) - 1) : NULL};
    tir_tmem_plain(b, TIR_OP_COMMIT, operands, 3);
}

void tir_tmem_arrive(struct tir_builder *b, struct tir_value *bars, const struct tmem_end *end)
{
    const struct tir_type *i32 = tir_type_scalar(b->f->module->types, TIR_I32);
    struct tir_value *lane = tir_build1(b, TIR_OP_LANEID, i32, NULL, 0);
    struct tir_value *first = tir_binary(b, TIR_OP_EQ, lane, tir_const_i32(b->f, 0));
    struct tir_builder one = tir_tmem_begin_if(b, first);
    struct tir_value *operands[] = {tir_tmem_slot(&one, bars, end->at[0]), NULL,
                                    end->channel->ctas > 1 ? tir_const_i32(b->f, 0) : NULL};
    tir_tmem_plain(&one, TIR_OP_ARRIVE, operands, 3);
    tir_tmem_end_if(&one);
}

void tir_tmem_advance(struct tir_builder *b, struct tmem_end *end)
{
    const struct tir_type *i32 = tir_type_scalar(b->f->module->types, TIR_I32);
    struct tir_value *zero = tir_const_i32(b->f, 0), *one = tir_const_i32(b->f, 1);
    struct tir_value *flip = one;
    if (end->channel->slots > 1) {
        struct tir_value *last = tir_const_i32(b->f, (int32_t)end->channel->slots - 1);
        struct tir_value *wraps = tir_binary(b, TIR_OP_EQ, end->at[0], last);
        struct tir_value *choice[] = {wraps, zero, tir_binary(b, TIR_OP_ADD, end->at[0], one)};
        end->at[0] = tir_build1(b, TIR_OP_WHERE, i32, choice, 3);
        flip = tir_build1(b, TIR_OP_CAST, i32, &wraps, 1);
    }
    end->at[1] = tir_binary(b, TIR_OP_XOR, end->at[1], flip);
}

// The values of the ends, of those that a loop of rounds carries or of all. Gives their number.
static uint32_t ends_to_values(const struct tmem_role *r, bool all, struct tir_value **to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->end_count; i++) {
        const struct tmem_end *end = &r->ends[i];
        if (!all && end->is_per_tile)
            continue;
        if (end->channel->slots > 1)
            to[count++] = end->at[0];
        to[count++] = end->at[1];
    }
    return count;
}

static void ends_from_values(struct tmem_role *r, bool all, struct tir_value *const *from)
{
    for (uint32_t i = 0; i < r->end_count; i++) {
        struct tmem_end *end = &r->ends[i];
        if (!all && end->is_per_tile)
            continue;
        end->at[0] = end->channel->slots > 1 ? *from++ : tir_const_i32(r->p->f, 0);
        end->at[1] = *from++;
    }
}

static void add_args(struct tmem_role *r, struct tir_block *block, bool all, uint32_t count)
{
    const struct tir_type *i32 = tir_type_scalar(r->p->types, TIR_I32);
    struct tir_value *args[2 * TMEM_ENDS];
    for (uint32_t i = 0; i < count; i++)
        args[i] = tir_block_add_arg(r->p->f, block, i32, NULL);
    ends_from_values(r, all, args);
}

// Roles.

void tir_tmem_init_role(struct tmem_role *r, struct tmem_plan *p)
{
    *r = (struct tmem_role){.p = p};
    tir_map_init(&r->map, p->cx->scratch);
}

void tir_tmem_add_end(struct tmem_role *r, struct tmem_channel *channel, bool is_per_tile,
                      int32_t phase)
{
    r->ends[r->end_count++] =
        (struct tmem_end){.channel = channel,
                          .is_per_tile = is_per_tile,
                          .phase = phase,
                          .at = {tir_const_i32(r->p->f, 0), tir_const_i32(r->p->f, phase)}};
}

struct tmem_end *tir_tmem_end(struct tmem_role *r, const struct tmem_channel *channel)
{
    for (uint32_t i = 0; i < r->end_count; i++)
        if (r->ends[i].channel == channel)
            return &r->ends[i];
    return NULL;
}

struct tir_value *tir_tmem_of(const struct tmem_role *r, struct tir_value *v)
{
    struct tir_value *mine = tir_map_get(&r->map, tir_map_key(v));
    return mine ? mine : v;
}

static void set_order(const struct tmem_plan *p, struct tir_inst *tiles)
{
    const struct tir_attr *by = tir_attr_find(p->tiles, TIR_ATTR_by);
    tir_set_list(p->f, tiles, TIR_ATTR_by, by->list, by->list_count);
    const struct tir_attr *order = tir_attr_find(p->tiles, TIR_ATTR_order);
    if (order)
        tir_set_word(p->f, tiles, TIR_ATTR_order, (enum tir_word)order->number);
    const struct tir_attr *group = tir_attr_find(p->tiles, TIR_ATTR_group);
    if (group)
        tir_set_int(p->f, tiles, TIR_ATTR_group, group->number);
    tir_set_int(p->f, tiles, TIR_ATTR_persistent,
                tir_attr_int(p->tiles, TIR_ATTR_persistent, 0) == TIR_DYNAMIC ? TIR_DYNAMIC : 1);
}

struct tir_builder tir_tmem_begin_role(struct tmem_role *r, struct tir_builder *b, const char *name,
                                       uint32_t first, uint32_t warps)
{
    struct tmem_plan *p = r->p;
    const uint32_t extents = p->tiles->operand_count;
    struct tir_value *operands[TIR_MAX_RANK + 2 * TMEM_ENDS];
    const struct tir_type *types[2 * TMEM_ENDS];
    struct tir_inst *role = tir_build(b, TIR_OP_ROLE, NULL, 0, NULL, 0, 1);
    tir_set_text(p->f, role, TIR_ATTR_name, tir_str_of(name));
    tir_set_int(p->f, role, TIR_ATTR_first, first);
    tir_set_int(p->f, role, TIR_ATTR_warps, warps);
    const uint32_t registers = first ? p->registers.load : p->registers.math;
    if (registers)
        tir_set_int(p->f, role, TIR_ATTR_regs, registers);
    r->in = tir_builder_at_end(p->f, role->regions[0]);
    r->in.span = b->span;
    memcpy(operands, p->tiles->operands, extents * sizeof(*operands));
    const uint32_t count = ends_to_values(r, true, operands + extents);
    for (uint32_t i = 0; i < count; i++)
        types[i] = operands[extents + i]->type;
    r->tiles = tir_build(&r->in, TIR_OP_TILES, operands, extents + count, types, count, 1);
    set_order(p, r->tiles);
    struct tir_block *body = r->tiles->regions[0];
    for (uint32_t i = 0; i < extents; i++) {
        const struct tir_value *old = p->tiles->regions[0]->args[i];
        tir_map_set(&r->map, tir_map_key(old), tir_block_add_arg(p->f, body, old->type, old->name));
    }
    add_args(r, body, true, count);
    struct tir_builder in = tir_builder_at_end(p->f, body);
    in.span = p->tiles->span;
    return in;
}

void tir_tmem_end_tiles(struct tmem_role *r, struct tir_builder *in)
{
    struct tir_value *values[2 * TMEM_ENDS];
    tir_build_yield(in, values, ends_to_values(r, true, values));
    ends_from_values(r, true, r->tiles->results);
}

void tir_tmem_drain(struct tmem_role *r, const struct tmem_channel *channel)
{
    struct tmem_end *end = tir_tmem_end(r, channel);
    for (int64_t i = 1; i < channel->slots; i++)
        tir_tmem_advance(&r->in, end);
    tir_tmem_wait_empty(&r->in, end); // the slot of the last tile, after those before it
}

void tir_tmem_end_role(struct tmem_role *r)
{
    tir_build_yield(&r->in, NULL, 0);
}

// What holds the loop.

static bool is_needed(const struct tmem_role *r, const struct tir_inst *inst)
{
    return r->fills && inst->result_count == 1 && bitset_has(&r->p->ahead, inst->results[0]->id);
}

void tir_tmem_copy(struct tmem_role *r, struct tir_builder *b, const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->first; inst && !tir_is_inside(r->p->loop, inst);
         inst = inst->next)
        if (inst->op != TIR_OP_YIELD &&
            (r->computes || tir_tmem_is_copied(r, inst) || is_needed(r, inst)))
            tir_clone_inst(b, inst, &r->map);
}

// Gives what the kernel as it was gave, in the role that computes, and the ends.
static void give(struct tmem_role *r, struct tir_builder *b, const struct tir_block *block)
{
    const struct tir_inst *yield = tir_yield_of(block);
    const uint32_t count = r->computes ? yield->operand_count : 0;
    struct tir_value **values =
        arena_array(r->p->cx->scratch, struct tir_value *, count + 2 * TMEM_ENDS);
    for (uint32_t i = 0; i < count; i++)
        values[i] = tir_tmem_of(r, yield->operands[i]);
    tir_build_yield(b, values, count + ends_to_values(r, true, values + count));
}

const struct tir_block *tir_tmem_taken(const struct tmem_plan *p, uint32_t at)
{
    const struct tir_inst *in = at + 1 < p->holder_count ? p->holders[at + 1] : p->loop;
    return in->block;
}

// The role's own holder, which gives the ends, and in the role that computes what the old one does.
static struct tir_inst *build_holder(struct tmem_role *r, struct tir_builder *b,
                                     const struct tir_inst *old)
{
    const bool is_loop = old->op == TIR_OP_FOR;
    const uint32_t fixed = tmem_decides(old);
    const uint32_t count = r->computes ? old->result_count : 0, most = count + 2 * TMEM_ENDS;
    struct tir_arena *scratch = r->p->cx->scratch;
    struct tir_value **operands = arena_array(scratch, struct tir_value *, fixed + most);
    const struct tir_type **types = arena_array(scratch, const struct tir_type *, most);
    const uint32_t own = is_loop ? fixed + count : fixed;
    for (uint32_t i = 0; i < own; i++)
        operands[i] = tir_tmem_of(r, old->operands[i]);
    struct tir_value *ends[2 * TMEM_ENDS];
    const uint32_t end_count = ends_to_values(r, true, ends);
    for (uint32_t i = 0; i < end_count; i++) {
        if (is_loop)
            operands[own + i] = ends[i];
        types[count + i] = ends[i]->type;
    }
    for (uint32_t i = 0; i < count; i++)
        types[i] = old->results[i]->type;
    b->span = old->span;
    return tir_build(b, old->op, operands, is_loop ? own + end_count : own, types,
                     count + end_count, old->region_count);
}

// The branch that is not taken leaves the ends as they were.
static void pass_by(struct tmem_role *r, const struct tir_block *old, struct tir_block *other)
{
    struct tir_builder no = tir_builder_at_end(r->p->f, other);
    no.span = old->owner->span;
    if (r->computes)
        tir_tmem_copy(r, &no, old);
    give(r, &no, old);
}

// A round begins with what the last one has left, and with the ends as that has left them.
static void begin_round(struct tmem_role *r, const struct tir_inst *old, struct tir_inst *loop)
{
    const struct tir_block *from = old->regions[0];
    struct tir_block *body = loop->regions[0];
    for (uint32_t i = 0; i < (r->computes ? from->arg_count : 1); i++) {
        const struct tir_value *arg = from->args[i];
        tir_map_set(&r->map, tir_map_key(arg),
                    tir_block_add_arg(r->p->f, body, arg->type, arg->name));
    }
    add_args(r, body, true, loop->result_count - (r->computes ? old->result_count : 0));
}

static struct tir_builder enter(struct tmem_role *r, struct tir_builder *b, uint32_t at)
{
    const struct tir_inst *old = r->p->holders[at];
    struct tir_inst *holder = build_holder(r, b, old);
    const uint32_t taken = tir_tmem_taken(r->p, at) != old->regions[0];
    if (old->op == TIR_OP_FOR)
        begin_round(r, old, holder);
    else
        pass_by(r, old->regions[1 - taken], holder->regions[1 - taken]);
    r->outer[at] = *b;
    r->held[at] = holder;
    struct tir_builder in = tir_builder_at_end(r->p->f, holder->regions[taken]);
    in.span = old->span;
    return in;
}

void tir_tmem_enter(struct tmem_role *r, struct tir_builder *b)
{
    const struct tmem_plan *p = r->p;
    tir_tmem_copy(r, b, p->tiles->regions[0]);
    for (uint32_t i = 0; i < p->holder_count; i++) {
        *b = enter(r, b, i);
        tir_tmem_copy(r, b, tir_tmem_taken(p, i));
    }
}

// What follows what holds the loop.
static void copy_after(struct tmem_role *r, struct tir_builder *b, const struct tir_inst *holder)
{
    for (const struct tir_inst *inst = holder->next;
         r->computes && inst && inst->op != TIR_OP_YIELD; inst = inst->next)
        tir_clone_inst(b, inst, &r->map);
}

void tir_tmem_leave(struct tmem_role *r, struct tir_builder *b)
{
    const struct tmem_plan *p = r->p;
    copy_after(r, b, p->loop);
    for (uint32_t i = p->holder_count; i-- > 0;) {
        const struct tir_inst *old = p->holders[i];
        const struct tir_inst *holder = r->held[i];
        const uint32_t count = r->computes ? old->result_count : 0;
        give(r, b, tir_tmem_taken(p, i));
        for (uint32_t k = 0; k < count; k++)
            tir_map_set(&r->map, tir_map_key(old->results[k]), holder->results[k]);
        ends_from_values(r, true, holder->results + count);
        *b = r->outer[i];
        copy_after(r, b, old);
    }
}

void tir_tmem_begin_lead(struct tmem_role *r, struct tir_builder *b)
{
    const struct tir_type *types[2 * TMEM_ENDS];
    struct tir_value *ends[2 * TMEM_ENDS];
    const uint32_t count = ends_to_values(r, true, ends);
    if (!r->p->is_pair)
        return;
    for (uint32_t i = 0; i < count; i++)
        types[i] = ends[i]->type;
    r->leads = tir_build(b, TIR_OP_IF, &r->p->is_leader, 1, types, count, 2);
    struct tir_builder no = tir_builder_at_end(b->f, r->leads->regions[1]);
    tir_build_yield(&no, ends, count);
    r->outside = *b;
    *b = tir_builder_at_end(b->f, r->leads->regions[0]);
    b->span = r->outside.span;
}

void tir_tmem_end_lead(struct tmem_role *r, struct tir_builder *b)
{
    struct tir_value *ends[2 * TMEM_ENDS];
    if (!r->leads)
        return;
    tir_build_yield(b, ends, ends_to_values(r, true, ends));
    ends_from_values(r, true, r->leads->results);
    *b = r->outside;
}

struct tir_builder tir_tmem_begin_loop(struct tmem_role *r, struct tir_builder *b,
                                       struct tir_value *const *more, uint32_t count)
{
    struct tmem_plan *p = r->p;
    const struct tir_value *old = p->loop->regions[0]->args[0];
    const uint32_t most = count + 2 * TMEM_ENDS;
    struct tir_value **operands =
        arena_array(p->cx->scratch, struct tir_value *, TIR_FOR_INIT + most);
    const struct tir_type **types = arena_array(p->cx->scratch, const struct tir_type *, most);
    for (uint32_t i = 0; i < TIR_FOR_INIT; i++)
        operands[i] = tir_tmem_of(r, p->loop->operands[i]);
    for (uint32_t i = 0; i < count; i++)
        operands[TIR_FOR_INIT + i] = more[i];
    const uint32_t values = ends_to_values(r, false, operands + TIR_FOR_INIT + count);
    for (uint32_t i = 0; i < count + values; i++)
        types[i] = operands[TIR_FOR_INIT + i]->type;
    b->span = p->loop->span;
    r->loop =
        tir_build(b, TIR_OP_FOR, operands, TIR_FOR_INIT + count + values, types, count + values, 1);
    struct tir_block *body = r->loop->regions[0];
    tir_map_set(&r->map, tir_map_key(old), tir_block_add_arg(p->f, body, old->type, old->name));
    for (uint32_t i = 0; i < count; i++)
        tir_block_add_arg(p->f, body, types[i], more[i]->name);
    add_args(r, body, false, values);
    struct tir_builder in = tir_builder_at_end(p->f, body);
    in.span = p->loop->span;
    return in;
}

void tir_tmem_end_loop(struct tmem_role *r, struct tir_builder *in, struct tir_value *const *more,
                       uint32_t count)
{
    struct tir_value **values =
        arena_array(r->p->cx->scratch, struct tir_value *, count + 2 * TMEM_ENDS);
    for (uint32_t i = 0; i < count; i++)
        values[i] = more[i];
    tir_build_yield(in, values, count + ends_to_values(r, false, values + count));
    ends_from_values(r, false, r->loop->results + count);
}

// Roles that fill slots.

// The next slots of the groups that are filled for each tile, or for each round.
static void fill_next(struct tmem_role *r, struct tir_builder *b,
                      const struct tmem_producer *producer, bool is_per_tile)
{
    for (uint32_t i = 0; i < r->p->group_count; i++) {
        const struct tmem_group *group = &r->p->groups[i];
        if (!producer->fills(group) || group->is_per_tile != is_per_tile)
            continue;
        struct tmem_end *end = tir_tmem_end(r, &group->channel);
        tir_tmem_wait_empty(b, end);
        producer->fill(r, b, group, end);
        tir_tmem_advance(b, end);
    }
}

void tir_tmem_build_producer(struct tmem_plan *p, struct tir_builder *b,
                             const struct tmem_producer *producer)
{
    struct tmem_role r;
    tir_tmem_init_role(&r, p);
    r.fills = true;
    for (uint32_t i = 0; i < p->group_count; i++)
        if (producer->fills(&p->groups[i]))
            tir_tmem_add_end(&r, &p->groups[i].channel, p->groups[i].is_per_tile, 1);
    struct tir_builder in =
        tir_tmem_begin_role(&r, b, producer->name, producer->first, producer->warps);
    tir_tmem_enter(&r, &in);
    fill_next(&r, &in, producer, true);
    struct tir_builder loop = tir_tmem_begin_loop(&r, &in, NULL, 0);
    tir_tmem_copy(&r, &loop, p->loop->regions[0]);
    fill_next(&r, &loop, producer, false);
    tir_tmem_end_loop(&r, &loop, NULL, 0);
    tir_tmem_leave(&r, &in);
    tir_tmem_end_tiles(&r, &in);
    for (uint32_t i = 0; i < p->group_count; i++)
        if (producer->fills(&p->groups[i]) && p->groups[i].is_per_tile)
            tir_tmem_drain(&r, &p->groups[i].channel);
    tir_tmem_end_role(&r);
}
