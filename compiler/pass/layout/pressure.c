// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The registers that tiles take.
//
// A tile is live at a product if it is made before it and used after it, or if it is made before a
// loop around the product and used anywhere in that loop. Instructions are numbered in the order of
// the text; a loop's results are made at its end, its arguments at its beginning.
//
// Three kinds of tiles hold no registers: constants, operands that a product reads from shared
// memory, and broadcasts, whose elements are those of their operand.

#include "pass/layout/pressure.h"

#include "ir/walk.h"
#include "pass/layout/warpgroup.h"

typedef VEC(const struct tir_inst *) use_list;

struct tir_pressure {
    struct tir_arena *arena;
    const struct tir_func *f;
    struct tir_order order;
    uint32_t *made; // of values, by id
    use_list *uses; // of values, by id: what needs them in registers
    VEC(const struct tir_value *) tiles;
};

static void note_tile(struct tir_pressure *p, const struct tir_value *v, uint32_t made)
{
    p->made[v->id] = made;
    if (tir_type_is_tile(v->type))
        vec_push(p->arena, &p->tiles, v);
}

static void find_tiles(struct tir_pressure *p, const struct tir_block *block)
{
    for (uint32_t i = 0; i < block->arg_count; i++)
        note_tile(p, block->args[i], block->owner ? p->order.begin[block->owner->id] : 0);
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        for (uint32_t r = 0; r < inst->region_count; r++)
            find_tiles(p, inst->regions[r]);
        for (uint32_t i = 0; i < inst->result_count; i++)
            note_tile(p, inst->results[i], p->order.end[inst->id]);
    }
}

static bool is_spread(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_BROADCAST || inst->op == TIR_OP_RESHAPE;
}

static bool reads_registers(const struct tir_pressure *p, const struct tir_inst *inst, uint32_t i)
{
    if (inst->op == TIR_OP_DOT)
        return i == TIR_DOT_ACC || (i == TIR_DOT_A && tir_a_in_registers(inst));
    return inst->op != TIR_OP_PERMUTE || p->uses[inst->results[0]->id].len;
}

static void note_uses(struct tir_pressure *p, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[i];
        if (!v || v->kind == TIR_VALUE_CONST || !tir_type_is_tile(v->type))
            continue;
        if (is_spread(inst))
            vec_foreach(const struct tir_inst *, use, &p->uses[inst->results[0]->id])
                vec_push(p->arena, &p->uses[v->id], *use);
        else if (reads_registers(p, inst, i))
            vec_push(p->arena, &p->uses[v->id], inst);
    }
}

// Backwards, so that what follows from a value is known before it.
static void find_uses(struct tir_pressure *p, const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->last; inst; inst = inst->prev) {
        for (uint32_t r = inst->region_count; r-- > 0;)
            find_uses(p, inst->regions[r]);
        note_uses(p, inst);
    }
}

struct tir_pressure *tir_pressure_new(struct tir_arena *arena, const struct tir_func *f)
{
    struct tir_pressure *p = arena_new(arena, struct tir_pressure);
    *p = (struct tir_pressure){.arena = arena,
                               .f = f,
                               .order = tir_order_of(arena, f),
                               .made = arena_array(arena, uint32_t, f->value_count),
                               .uses = arena_array(arena, use_list, f->value_count)};
    find_tiles(p, f->body);
    find_uses(p, f->body);
    return p;
}

static int64_t words_of(const struct tir_value *v)
{
    if (v->def && is_spread(v->def))
        return 0;
    return (tir_type_count(v->type) * tir_elems[v->type->elem].bits + 31) / 32;
}

static const struct tir_block *block_in(const struct tir_inst *inst, const struct tir_inst *outer)
{
    while (inst->block->owner != outer)
        inst = inst->block->owner;
    return inst->block;
}

static bool contains(const struct tir_pressure *p, const struct tir_inst *outer,
                     const struct tir_inst *inst)
{
    return p->order.begin[outer->id] < p->order.begin[inst->id] &&
           p->order.begin[inst->id] <= p->order.end[outer->id];
}

// Does v, made before inst, have to be kept for `use` while inst runs?
static bool keeps(const struct tir_pressure *p, const struct tir_inst *inst,
                  const struct tir_value *v, const struct tir_inst *use)
{
    bool behind = p->order.begin[use->id] > p->order.begin[inst->id];
    for (const struct tir_inst *up = inst->block->owner; up; up = up->block->owner) {
        if (!contains(p, up, use))
            continue;
        if (tir_is_loop(up) && p->order.begin[up->id] > p->made[v->id])
            return true;
        if (up->op == TIR_OP_IF && block_in(inst, up) != block_in(use, up))
            behind = false;
    }
    return behind;
}

int64_t tir_pressure_at(const struct tir_pressure *p, const struct tir_inst *dot)
{
    const struct tir_value *a = dot->operands[TIR_DOT_A];
    int64_t words = words_of(dot->results[0]);
    vec_foreach(const struct tir_value *const, it, &p->tiles) {
        const struct tir_value *v = *it;
        if (v == a || p->made[v->id] >= p->order.begin[dot->id])
            continue;
        bool kept = false;
        vec_foreach(const struct tir_inst *const, use, &p->uses[v->id])
            kept |= keeps(p, dot, v, *use);
        words += kept ? words_of(v) : 0;
    }
    return words;
}

int64_t tir_pressure_of_a(const struct tir_inst *dot)
{
    return tir_a_in_registers(dot) ? words_of(dot->operands[TIR_DOT_A]) : 0;
}

bool tir_pressure_needs(const struct tir_pressure *p, const struct tir_value *v)
{
    return p->uses[v->id].len > 0;
}
