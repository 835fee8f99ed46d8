// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A loop in the order of its schedule.
//
// Rounds of a rotated loop overlap: its operations of stage 1 run a round later. So stage 0 of the
// first round stands in front of the loop and stage 1 of the last one after it, and the loop runs
// once less. It carries three kinds of values more or less than before:
//   - what it carried and stage 0 makes, as before, for stage 0;
//   - what it carried and stage 1 makes: stage 0 takes it where it was just made, stage 1 from the
//     round before;
//   - what stage 0 gives to stage 1, made or carried: from the round before.

#include "ir/walk.h"
#include "pass/role/schedule.h"

enum kind { FOR_STAGE_0, FOR_STAGE_1, CROSSING };

struct slot { // a value that the new loop carries
    enum kind kind;
    uint32_t carried;    // which the old loop carried; not of CROSSING
    struct tir_value *v; // as the old body knows it
    struct tir_value *init;
    struct tir_value *arg; // in the new body
};

struct build {
    const struct schedule *s;
    const struct schedule_order *order;
    struct tir_func *f;
    struct tir_block *body; // of the old loop
    struct tir_inst *loop;  // the new one
    VEC(struct slot) slots;
};

static struct tir_value *mapped(const struct tir_map *map, struct tir_value *v)
{
    struct tir_value *to = tir_map_get(map, tir_map_key(v));
    return to ? to : v;
}

static void bind(struct tir_map *map, const struct tir_value *from, struct tir_value *to)
{
    tir_map_set(map, tir_map_key(from), to);
}

// The op that makes v; UINT32_MAX: none does, in the body.
static uint32_t maker(const struct build *b, const struct tir_value *v)
{
    for (uint32_t i = 0; v->def && i < b->s->ops.len; i++)
        if (b->s->ops.at[i].inst == v->def)
            return i;
    return UINT32_MAX;
}

static bool is_made_later(const struct build *b, const struct tir_value *v)
{
    const uint32_t op = maker(b, v);
    return op != UINT32_MAX && b->order->stage[op];
}

static struct tir_value *yielded(const struct build *b, uint32_t i)
{
    return tir_yield_of(b->body)->operands[i];
}

static bool is_used_in(const struct build *b, uint32_t stage, const struct tir_value *v)
{
    for (uint32_t i = 0; i < b->s->ops.len; i++)
        if (b->order->stage[i] == stage && tir_uses_value(b->s->ops.at[i].inst, v))
            return true;
    return false;
}

static bool is_used_later(const struct build *b, const struct tir_value *v)
{
    return is_used_in(b, 1, v);
}

static void add_slot(struct build *b, enum kind kind, uint32_t carried, struct tir_value *v)
{
    struct slot slot = {.kind = kind, .carried = carried, .v = v};
    vec_push(b->s->scratch, &b->slots, slot);
}

static void find_slots(struct build *b)
{
    const struct tir_inst *loop = b->s->loop;
    for (uint32_t i = 0; i < loop->result_count; i++) {
        struct tir_value *arg = b->body->args[1 + i];
        if (!is_made_later(b, yielded(b, i)))
            add_slot(b, FOR_STAGE_0, i, arg);
        else if (is_used_later(b, arg))
            add_slot(b, FOR_STAGE_1, i, arg);
        if (!is_made_later(b, yielded(b, i)) && is_used_later(b, arg))
            add_slot(b, CROSSING, i, arg);
    }
    if (is_used_later(b, b->body->args[0]))
        add_slot(b, CROSSING, 0, b->body->args[0]);
    for (uint32_t i = 0; i < b->s->ops.len; i++)
        for (uint32_t r = 0; r < b->s->ops.at[i].inst->result_count; r++) {
            struct tir_value *v = b->s->ops.at[i].inst->results[r];
            if (!b->order->stage[i] && is_used_later(b, v))
                add_slot(b, CROSSING, 0, v);
        }
}

// Copies the operations of one stage, in order.
static void copy_stage(const struct build *b, struct tir_builder *at, uint32_t stage,
                       struct tir_map *map)
{
    for (uint32_t i = 0; i < b->s->ops.len; i++)
        if (b->order->stage[b->order->at[i]] == stage)
            tir_clone_inst(at, b->s->ops.at[b->order->at[i]].inst, map);
}

static void enter(const struct build *b, struct tir_map *map, struct tir_value *index)
{
    tir_map_init(map, b->s->scratch);
    bind(map, b->body->args[0], index);
}

// What the loop begins with, with the layout that it has in the body.
static struct tir_value *laid_out(const struct build *b, struct tir_builder *at, uint32_t i)
{
    struct tir_value *init = b->s->loop->operands[TIR_FOR_INIT + i];
    const struct tir_type *type = b->body->args[1 + i]->type;
    if (init->kind != TIR_VALUE_CONST || !tir_type_is_tile(type) ||
        !is_used_in(b, 0, b->body->args[1 + i]))
        return init;
    struct tir_value *scalar =
        tir_const_as(b->f, tir_type_scalar(b->f->module->types, type->elem), init);
    return tir_build1(at, TIR_OP_BROADCAST, type, &scalar, 1);
}

// A product takes a constant sum as it is: it need not be in registers.
static void take_constants(const struct build *b, const struct tir_builder *at,
                           const struct tir_map *map)
{
    tir_foreach_inst_in(inst, at->block) {
        if (inst->op != TIR_OP_DOT)
            continue;
        for (uint32_t i = 0; i < b->s->loop->result_count; i++)
            if (inst->operands[TIR_DOT_ACC] == mapped(map, b->body->args[1 + i]))
                inst->operands[TIR_DOT_ACC] = b->s->loop->operands[TIR_FOR_INIT + i];
    }
}

// Stage 0 of the first round; what the loop begins with.
static void build_first(struct build *b, struct tir_builder *at)
{
    const struct tir_inst *loop = b->s->loop;
    struct tir_map map;
    enter(b, &map, loop->operands[TIR_FOR_BEGIN]);
    for (uint32_t i = 0; i < loop->result_count; i++)
        bind(&map, b->body->args[1 + i], laid_out(b, at, i));
    copy_stage(b, at, 0, &map);
    take_constants(b, at, &map);
    vec_foreach(struct slot, slot, &b->slots)
        slot->init = slot->kind == FOR_STAGE_0   ? mapped(&map, yielded(b, slot->carried))
                     : slot->kind == FOR_STAGE_1 ? loop->operands[TIR_FOR_INIT + slot->carried]
                                                 : mapped(&map, slot->v);
}

static struct tir_value *second_round(const struct build *b, struct tir_builder *at)
{
    struct tir_value *begin = b->s->loop->operands[TIR_FOR_BEGIN],
                     *step = b->s->loop->operands[TIR_FOR_STEP];
    int64_t x, y, sum;
    if (tir_is_const_int(begin, &x) && tir_is_const_int(step, &y) && tir_add_checked(x, y, &sum))
        return tir_const_int(b->f, begin->type, sum);
    return tir_binary(at, TIR_OP_ADD, begin, step);
}

static void open_loop(struct build *b, struct tir_builder *at)
{
    const struct tir_inst *old = b->s->loop;
    const uint32_t count = b->slots.len;
    struct tir_value **operands =
        arena_array(b->s->scratch, struct tir_value *, TIR_FOR_INIT + count);
    const struct tir_type **types = arena_array(b->s->scratch, const struct tir_type *, count + 1);
    memcpy(operands, old->operands, TIR_FOR_INIT * sizeof(struct tir_value *));
    operands[TIR_FOR_BEGIN] = second_round(b, at);
    for (uint32_t i = 0; i < count; i++) {
        operands[TIR_FOR_INIT + i] = b->slots.at[i].init;
        types[i] = b->slots.at[i].v->type;
    }
    b->loop = tir_build(at, TIR_OP_FOR, operands, TIR_FOR_INIT + count, types, count, 1);
    b->loop->attr_count = old->attr_count;
    b->loop->attrs = old->attrs;
    struct tir_block *body = b->loop->regions[0];
    tir_block_add_arg(b->f, body, b->body->args[0]->type, b->body->args[0]->name);
    for (uint32_t i = 0; i < count; i++) {
        b->slots.at[i].arg = tir_block_add_arg(b->f, body, types[i], b->slots.at[i].v->name);
        b->loop->results[i]->name = b->slots.at[i].v->name;
    }
}

// What stage 1 has just made of what the loop carries, stage 0 takes from there.
static void hand_on(const struct build *b, const struct tir_inst *inst, struct tir_map maps[2])
{
    for (uint32_t i = 0; i < b->s->loop->result_count; i++)
        if (yielded(b, i)->def == inst)
            bind(&maps[0], b->body->args[1 + i], mapped(&maps[1], yielded(b, i)));
}

static void build_body(struct build *b)
{
    struct tir_builder in = tir_builder_at_end(b->f, b->loop->regions[0]);
    struct tir_map maps[2];
    in.span = b->s->loop->span;
    enter(b, &maps[0], b->loop->regions[0]->args[0]);
    enter(b, &maps[1], b->loop->regions[0]->args[0]); // a slot says which round's it is
    vec_foreach(const struct slot, slot, &b->slots)
        bind(&maps[slot->kind != FOR_STAGE_0], slot->v, slot->arg);
    for (uint32_t i = 0; i < b->s->ops.len; i++) {
        const uint32_t op = b->order->at[i], stage = b->order->stage[op];
        tir_clone_inst(&in, b->s->ops.at[op].inst, &maps[stage]);
        if (stage)
            hand_on(b, b->s->ops.at[op].inst, maps);
    }
    struct tir_value **values = arena_array(b->s->scratch, struct tir_value *, b->slots.len);
    for (uint32_t i = 0; i < b->slots.len; i++) {
        const struct slot *slot = &b->slots.at[i];
        values[i] = slot->kind == CROSSING
                        ? mapped(&maps[0], slot->v)
                        : mapped(&maps[slot->kind == FOR_STAGE_1], yielded(b, slot->carried));
    }
    tir_build_yield(&in, values, b->slots.len);
}

// Stage 1 of the last round; gives what the old loop gave.
static void build_last(const struct build *b, struct tir_builder *at, struct tir_value **results)
{
    struct tir_map map;
    tir_map_init(&map, b->s->scratch);
    for (uint32_t i = 0; i < b->slots.len; i++)
        if (b->slots.at[i].kind != FOR_STAGE_0)
            bind(&map, b->slots.at[i].v, b->loop->results[i]);
    copy_stage(b, at, 1, &map);
    for (uint32_t i = 0; i < b->s->loop->result_count; i++)
        results[i] = mapped(&map, yielded(b, i));
    for (uint32_t i = 0; i < b->slots.len; i++)
        if (b->slots.at[i].kind == FOR_STAGE_0)
            results[b->slots.at[i].carried] = b->loop->results[i];
}

// Nothing of the loop may run if it has no round.
static struct tir_inst *build_branch(const struct build *b, struct tir_builder *at)
{
    const struct tir_inst *loop = b->s->loop;
    struct tir_value *some =
        tir_binary(at, TIR_OP_LT, loop->operands[TIR_FOR_BEGIN], loop->operands[TIR_FOR_END]);
    const struct tir_type **types =
        arena_array(b->s->scratch, const struct tir_type *, loop->result_count + 1);
    for (uint32_t i = 0; i < loop->result_count; i++)
        types[i] = loop->results[i]->type;
    struct tir_inst *branch = tir_build(at, TIR_OP_IF, &some, 1, types, loop->result_count, 2);
    struct tir_builder none = tir_builder_at_end(b->f, branch->regions[1]);
    tir_build_yield(&none, loop->operands + TIR_FOR_INIT, loop->result_count);
    for (uint32_t i = 0; i < loop->result_count; i++)
        branch->results[i]->name = loop->results[i]->name;
    return branch;
}

static void rotate(struct build *b)
{
    struct tir_inst *old = b->s->loop;
    struct tir_builder at = tir_builder_before(b->f, old);
    struct tir_inst *branch = build_branch(b, &at);
    struct tir_builder in = tir_builder_at_end(b->f, branch->regions[0]);
    struct tir_value **results =
        arena_array(b->s->scratch, struct tir_value *, old->result_count + 1);
    in.span = old->span;
    find_slots(b);
    build_first(b, &in);
    open_loop(b, &in);
    build_body(b);
    build_last(b, &in, results);
    tir_build_yield(&in, results, old->result_count);
    for (uint32_t i = 0; i < old->result_count; i++)
        tir_replace_uses(b->f, old->results[i], branch->results[i]);
    tir_remove(old);
}

struct tir_inst *tir_schedule_build(const struct schedule *s, const struct schedule_order *order)
{
    struct build b = {.s = s, .order = order, .f = s->f, .body = s->loop->regions[0]};
    if (order->is_rotated) {
        rotate(&b);
        return b.loop;
    }
    struct tir_inst *yield = tir_yield_of(b.body);
    for (uint32_t i = 0; i < s->ops.len; i++)
        tir_move_before(s->ops.at[order->at[i]].inst, yield);
    return s->loop;
}
