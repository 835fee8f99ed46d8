// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// async_store: the buffers that chunks go through, and room for them.

#include "machine/target.h"
#include "pass/async/async_store.h"
#include "pass/async/stores.h"
#include "pass/sync/crew.h"

// Where buffers of an atomic that repeats are made, to keep their bytes: in front of its loops.
static struct tir_inst *outermost_loop(struct tir_inst *inst)
{
    struct tir_inst *found = inst;
    for (struct tir_inst *up = inst->block->owner; up && up->op != TIR_OP_TILES;
         up = up->block->owner)
        found = tir_is_loop(up) ? up : found;
    return found;
}

// Atomics are made first, wherever they stand: a store in front of one needs its buffers earlier.
static void make_before(struct turns *turns, struct tir_inst *store)
{
    struct tir_inst *inst = store;
    while (inst && inst != turns->buffers[0]->def)
        inst = inst->next;
    for (uint32_t i = 0; inst && i < turns->count; i++)
        tir_move_before(turns->buffers[i]->def, store);
}

// The buffers that there are for chunks of this extent; NULL: none.
static struct turns *find_turns(struct stores *s, const struct outgoing *o)
{
    const struct tir_type *type = tir_outgoing_buffer_type(o);
    if (tir_outgoing_repeats(o->store))
        return NULL;
    vec_foreach(struct turns, t, &s->turns)
        if (t->block == o->store->block && t->type == type)
            return t;
    return NULL;
}

// At most: those of runs hold a chunk of each.
static int64_t buffers_of(const struct outgoing *o)
{
    return TIR_MAX(TIR_BUDGET_STORE_BUFFERS / o->runs, 1);
}

// The buffers of chunks of this extent; `count` of them, unless there are such.
static struct turns *turns_of(struct stores *s, const struct outgoing *o, int64_t count)
{
    struct tir_inst *before = tir_outgoing_repeats(o->store) ? outermost_loop(o->store) : o->store;
    struct turns *found = find_turns(s, o);
    struct turns turns = {.block = before->block, .type = tir_outgoing_buffer_type(o)};
    if (found) {
        make_before(found, before);
        return found;
    }
    struct tir_builder b = tir_builder_before(s->f, before);
    turns.count = (uint32_t)TIR_MIN(count, buffers_of(o));
    for (uint32_t i = 0; i < turns.count; i++) {
        turns.buffers[i] = tir_build1(&b, TIR_OP_ALLOC, turns.type, NULL, 0);
        turns.buffers[i]->name = tir_intern_cstr(s->f->module->names, "out");
    }
    vec_push(s->cx->scratch, &s->turns, turns);
    return &s->turns.at[s->turns.len - 1];
}

struct tir_value *tir_turns_next(struct stores *s, const struct outgoing *o, int64_t count)
{
    struct turns *turns = turns_of(s, o, count);
    return turns->buffers[turns->next++ % turns->count];
}

// Bytes of the buffers that the store will go through and that there are not yet.
static int64_t new_bytes(struct stores *s, struct tir_inst *store, bool in_rows)
{
    struct outgoing o;
    tir_outgoing_open(&o, s, store, in_rows);
    const int64_t whole = o.type->shape[o.cut];
    int64_t bytes = 0, last = 0; // last: the extent of the chunk before
    for (int64_t start = 0; start < whole; start += o.extent) {
        if (!in_rows && o.cut + 1 == o.type->rank)
            o.extent = tir_outgoing_columns(store, whole - start);
        o.extent = TIR_MIN(o.extent, whole - start);
        const int64_t turns = in_rows ? 1 : (whole - start) / o.extent;
        if (o.extent != last && !find_turns(s, &o))
            bytes +=
                TIR_MIN(turns, buffers_of(&o)) * tir_buffer_bytes(tir_outgoing_buffer_type(&o));
        last = o.extent;
    }
    return bytes;
}

bool tir_turns_have_room(struct stores *s, struct tir_inst *store, bool in_rows)
{
    struct tir_lives *l = &s->lives;
    if (!l->f)
        return true;
    const struct tir_life in = {.role = tir_crew_of(s->f, store).role,
                                .begin = l->order.begin[store->id],
                                .end = l->order.end[store->id],
                                .bytes = new_bytes(s, store, in_rows),
                                .alignment = TIR_SWIZZLE_BYTES};
    vec_push(l->arena, &l->buffers, in);
    if (tir_lives_place(l) <= s->cx->target->shared_per_cta)
        return true;
    l->buffers.len--;
    return false;
}

int64_t tir_store_buffers_bytes(const struct tir_type *value)
{
    const int64_t columns = value->shape[value->rank - 1];
    const int64_t row = columns * tir_elems[value->elem].bits / 8;
    return tir_type_count(value) / columns *
           TIR_MIN(row, TIR_BUDGET_STORE_BUFFERS * TIR_BUDGET_STORE_BYTES);
}
