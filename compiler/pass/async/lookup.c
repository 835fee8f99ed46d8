// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lookups: the table of pages that names the rows of a copy, a list of tokens.
//
//     for j: i64 in range(0, N, 1) {
//         let page: i32 = load(T[j]);
//         copy_async(k, K[page, 0:+64, 0:+64], width = 16);
// A copy cannot start before its address is known, and the thread that starts it would wait for the
// table in each round. So rounds look up what the round after them needs:
//     let first: i32 = load(T[0]);
//     for j: i64 in range(0, N, 1) carry (page: i32 = first) {
//         copy_async(k, K[page, 0:+64, 0:+64], width = 16);
//         let next: i32 = load(T[j + 1]);
//         ...
//         yield next;
// The last round looks up what no round needs; outside of the table that is 0.

#include "pass/async/lookup.h"

#include "ir/carry.h"
#include "ir/walk.h"

static enum tir_answer find(void *user, struct tir_value *v)
{
    struct tir_lookups *l = user;
    if (!v->def || v->def->block != l->loop->regions[0])
        return TIR_YES;
    if (v->def->op != TIR_OP_LOAD)
        return TIR_IF_OPERANDS;
    if (!tir_is_lookup(l, v))
        vec_push(l->arena, &l->found, v);
    return TIR_YES;
}

void tir_lookups_init(struct tir_lookups *l, struct tir_func *f, struct tir_arena *arena,
                      struct tir_inst *loop)
{
    *l = (struct tir_lookups){.f = f, .arena = arena, .loop = loop};
    tir_follow_init(&l->follow, arena, find, l);
}

void tir_lookups_add(struct tir_lookups *l, struct tir_value *v)
{
    tir_follows(&l->follow, v);
}

void tir_lookups_add_operands(struct tir_lookups *l, const struct tir_inst *access)
{
    for (uint32_t i = 0; i < access->operand_count; i++)
        if (access->operands[i] && access->operands[i]->type->space == TIR_SPACE_VALUE)
            tir_lookups_add(l, access->operands[i]);
}

bool tir_is_lookup(const struct tir_lookups *l, const struct tir_value *v)
{
    vec_foreach(struct tir_value *, it, &l->found)
        if (*it == v)
            return true;
    return false;
}

// What the round with this loop variable looks up, at b.
static struct tir_value *look_up(struct tir_lookups *l, struct tir_builder *b, struct tir_value *v,
                                 struct tir_map *round)
{
    struct tir_value *y = tir_clone_value(b, v, l->loop->regions[0], round);
    y->name = v->name;
    return y;
}

static struct tir_map round_of(struct tir_lookups *l, struct tir_value *at)
{
    struct tir_map round;
    tir_map_init(&round, l->arena);
    tir_map_set(&round, tir_map_key(l->loop->regions[0]->args[0]), at);
    return round;
}

void tir_lookups_carry(struct tir_lookups *l, struct tir_value *first, struct tir_map *map)
{
    struct tir_builder before = tir_builder_before(l->f, l->loop);
    struct tir_map round = round_of(l, first);
    vec_foreach(struct tir_value *, it, &l->found)
        tir_map_set(map, tir_map_key(*it),
                    tir_carry_add(l->f, l->loop, look_up(l, &before, *it, &round), (*it)->name));
}

void tir_lookups_yield(struct tir_lookups *l, struct tir_builder *b, struct tir_value *at)
{
    struct tir_map round = round_of(l, at);
    vec_foreach(struct tir_value *, it, &l->found)
        tir_yield_add(l->f, l->loop->regions[0], look_up(l, b, *it, &round));
}

void tir_lookups_run_ahead(struct tir_lookups *l, struct tir_inst *place)
{
    const struct tir_inst *loop = l->loop;
    struct tir_map carried;
    tir_map_init(&carried, l->arena);
    tir_lookups_carry(l, loop->operands[TIR_FOR_BEGIN], &carried);
    struct tir_builder b = tir_builder_before(l->f, place);
    tir_lookups_yield(
        l, &b, tir_binary(&b, TIR_OP_ADD, loop->regions[0]->args[0], loop->operands[TIR_FOR_STEP]));
    vec_foreach(struct tir_value *, it, &l->found)
        tir_replace_uses(l->f, *it, tir_map_get(&carried, tir_map_key(*it)));
}
