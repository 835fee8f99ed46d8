// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// When shared buffers live, and where that lets them lie.
//
// A buffer lives from its alloc to its last use. A buffer made outside a loop and used in it lives
// as long as the loop. The small scratch of a reduction lives until the next reduction is done.
// Roles run concurrently: a buffer made outside them and used in one lives as long as all of them,
// and buffers of two roles are always live at the same time. mbarriers live for ever, and so do
// buffers that the program declares and orders itself (by_hand), unless by_hand_end.
//
// Buffers are placed largest first, each at the lowest address that no live buffer occupies.
// Swizzled buffers are aligned to their pattern (1,024 bytes), those of tensor copies to 128,
// mbarriers to 8, others to 16.

#include "pass/sync/life.h"

#include "base/map.h"
#include "ir/effect.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "pass/sync/crew.h"
#include "pass/sync/scratch.h"

// The position up to which `user` keeps a buffer alive that was allocated in block `home`: its own,
// or the end of the outermost loop around it that the alloc is not in, or of the kernel if that is
// a role.
static int64_t use_end(const struct tir_lives *l, const struct tir_block *home,
                       const struct tir_inst *user)
{
    int64_t end = l->order.end[user->id];
    for (const struct tir_block *block = user->block; block != home && block->owner;
         block = block->owner->block)
        end = block->owner->op == TIR_OP_ROLE ? INT64_MAX : l->order.end[block->owner->id];
    return end;
}

// The operation that has the alloc, right in front of it, as its scratch; NULL: none.
static const struct tir_inst *scratch_user(const struct tir_inst *alloc)
{
    const struct tir_inst *user = alloc->next;
    const uint32_t at = user ? tir_scratch_at(user) : UINT32_MAX;
    return at != UINT32_MAX && user->operands[at] == alloc->results[0] ? user : NULL;
}

static struct tir_life life_at(const struct tir_lives *l, const struct tir_inst *inst,
                               const struct tir_type *t)
{
    const struct tir_crew crew = tir_crew_of(l->f, inst);
    struct tir_life in = {.role = crew.role,
                          .begin = l->order.begin[inst->id],
                          .end = l->order.begin[inst->id],
                          .by_hand = tir_attr_int(inst, TIR_ATTR_by_hand, 0),
                          .bytes = tir_buffer_bytes(t),
                          .alignment = t->layout ? tir_layout_alignment(t->layout) : 16};
    if (t->elem == TIR_MBARRIER) {
        in.begin = 0;
        in.end = INT64_MAX;
        in.alignment = 8;
    }
    if (crew.scope && !in.by_hand && t->elem != TIR_MBARRIER) {
        in.scope = crew.scope;
        in.groups = crew.groups;
    }
    return in;
}

// The scratch that inst will have at least.
static void add_scratch(struct tir_lives *l, const struct tir_inst *inst, const uint32_t *uses)
{
    const bool used = inst->result_count && uses[inst->results[0]->id];
    const struct tir_type *least = NULL;
    for (const struct tir_type *t = tir_scratch_type(l->f, inst, used); t;
         t = tir_scratch_half(l->f, inst, t))
        least = t;
    if (!least)
        return;
    struct tir_life in = life_at(l, inst, least);
    in.user = inst;
    in.end = l->order.end[inst->id];
    vec_push(l->arena, &l->buffers, in);
}

static void add_buffers(struct tir_lives *l, const struct tir_inst *inst, struct tir_map *index)
{
    for (uint32_t i = 0; i < inst->result_count; i++) {
        if (inst->results[i]->type->space != TIR_SPACE_SHARED)
            continue;
        struct tir_life in = life_at(l, inst, inst->results[i]->type);
        in.buffer = inst->results[i];
        in.user = scratch_user(inst);
        vec_push(l->arena, &l->buffers, in);
        tir_map_set(index, tir_map_key(in.buffer), (void *)(uintptr_t)l->buffers.len);
    }
}

// Is it a tensor or bulk copy, that one thread starts?
static bool is_engine_copy(const struct tir_inst *inst)
{
    return tir_dones[tir_done_of(inst)].by_one;
}

static void add_use(struct tir_lives *l, const struct tir_inst *inst, struct tir_value *v,
                    const struct tir_map *index)
{
    const struct tir_value *root = tir_buffer_root(v);
    const uintptr_t at = (uintptr_t)tir_map_get(index, tir_map_key(root));
    if (!at)
        return;
    struct tir_life *in = &l->buffers.at[at - 1];
    in->end = TIR_MAX(in->end, use_end(l, root->def->block, inst));
    const struct tir_layout *alias =
        inst->op == TIR_OP_ALIAS ? inst->results[0]->type->layout : NULL;
    if (alias)
        in->alignment = TIR_MAX(in->alignment, tir_layout_alignment(alias));
    if (inst->op == TIR_OP_TMEM_ALLOC) // too small to be worth an order
        in->end = INT64_MAX;
    if (is_engine_copy(inst) && root->type->elem != TIR_MBARRIER)
        in->alignment = TIR_MAX(in->alignment, 128);
}

// Scopes. Each group of warps is somewhere else in the block, so a scope's buffers share bytes with
// no other's, and lie in all groups at the same distance:
//
//     group 0: place 0, place 1, ...   group 1: place 0, place 1, ...
//
// Two buffers that are never alive at once have one place, as large as the larger one.

static uint32_t place_of(const struct tir_life *all, uint32_t i)
{
    uint32_t place = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t j = 0; j < i; j++)
            if (all[j].scope == all[i].scope && all[j].offset == place &&
                all[j].begin <= all[i].end && all[i].begin <= all[j].end) {
                place++;
                moved = true;
            }
    }
    return place;
}

// Bytes of the first `places` places of a group.
static int64_t bytes_of_places(const struct tir_lives *l, const struct tir_life *all,
                               int64_t places)
{
    int64_t bytes = 0;
    for (int64_t place = 0; place < places; place++) {
        int64_t most = 0;
        vec_foreach(const struct tir_life, in, &l->scoped)
            if (in->scope == all->scope && in->offset == place)
                most = TIR_MAX(most, in->bytes);
        bytes += (int64_t)tir_align_up((uint64_t)most, (uint64_t)all->alignment);
    }
    return bytes;
}

int64_t tir_scoped_offset(const struct tir_lives *l, const struct tir_life *all,
                          const struct tir_life *in)
{
    return all->offset + bytes_of_places(l, all, in->offset);
}

// What the buffers of a scope take, all groups together.
static void size_scope(struct tir_lives *l, struct tir_life *all)
{
    int64_t places = 0;
    for (uint32_t i = 0; i < l->scoped.len; i++) {
        struct tir_life *in = &l->scoped.at[i];
        if (in->scope != all->scope)
            continue;
        in->offset = place_of(l->scoped.at, i);
        all->alignment = TIR_MAX(all->alignment, in->alignment);
        places = TIR_MAX(places, in->offset + 1);
    }
    all->apart = bytes_of_places(l, all, places);
    all->bytes = all->apart * all->groups;
}

static void gather_scopes(struct tir_lives *l)
{
    uint32_t kept = 0;
    vec_foreach(const struct tir_life, in, &l->buffers)
        if (in->scope)
            vec_push(l->arena, &l->scoped, *in);
        else
            l->buffers.at[kept++] = *in;
    l->buffers.len = kept;
    vec_foreach(const struct tir_life, in, &l->scoped) {
        bool is_known = false;
        vec_foreach(const struct tir_life, all, &l->buffers)
            is_known |= all->scope == in->scope;
        struct tir_life all = {.role = in->role,
                               .scope = in->scope,
                               .groups = in->groups,
                               .end = INT64_MAX,
                               .alignment = 128};
        if (!is_known)
            vec_push(l->arena, &l->buffers, all);
    }
}

static bool is_small_scratch(const struct tir_life *in)
{
    return in->user && (in->user->op == TIR_OP_REDUCE || in->user->op == TIR_OP_SCAN) &&
           in->bytes <= TIR_BUDGET_TURN_BYTES;
}

// Lets the scratch of a reduction live until the next one is done, so that they take turns at two
// places: the barrier inside each then also orders the reuse of the other place.
static void take_turns(struct tir_lives *l)
{
    struct tir_life *last = NULL;
    vec_foreach(struct tir_life, in, &l->buffers) {
        if (!is_small_scratch(in))
            continue;
        if (last)
            last->end = TIR_MAX(last->end, in->end);
        last = in;
    }
}

void tir_lives_find(struct tir_lives *l, struct tir_func *f, struct tir_arena *arena,
                    bool with_scratch)
{
    const uint32_t *uses = with_scratch ? tir_count_uses(arena, f) : NULL;
    struct tir_map index; // buffer -> 1 + its place in buffers
    *l = (struct tir_lives){.f = f, .arena = arena, .order = tir_order_of(arena, f)};
    tir_map_init(&index, arena);
    tir_foreach_inst(inst, f) {
        if (inst->op == TIR_OP_ALLOC || inst->op == TIR_OP_RING)
            add_buffers(l, inst, &index);
        for (uint32_t i = 0; i < inst->operand_count; i++)
            if (inst->operands[i] && inst->operands[i]->type->space == TIR_SPACE_SHARED)
                add_use(l, inst, inst->operands[i], &index);
        if (with_scratch)
            add_scratch(l, inst, uses);
    }
    gather_scopes(l);
    take_turns(l);
}

struct tir_life *tir_life_of(const struct tir_lives *l, const struct tir_value *buffer)
{
    vec_foreach(struct tir_life, in, &l->buffers)
        if (in->buffer == buffer)
            return in;
    vec_foreach(struct tir_life, in, &l->scoped)
        if (in->buffer == buffer)
            return in;
    return NULL;
}

bool tir_alive_together(const struct tir_lives *l, const struct tir_life *a,
                        const struct tir_life *b)
{
    bool in_two_roles = a->role && b->role && a->role != b->role;
    bool stays = !l->by_hand_end && (a->by_hand || b->by_hand);
    return in_two_roles || stays || (a->begin <= b->end && b->begin <= a->end);
}

int64_t tir_lives_place(struct tir_lives *l)
{
    uint32_t count = l->buffers.len;
    int64_t bytes = 0;
    vec_foreach(struct tir_life, all, &l->buffers)
        if (all->scope)
            size_scope(l, all);
    struct tir_life **order = arena_array(l->arena, struct tir_life *, count);
    for (uint32_t i = 0; i < count; i++) { // largest first; ties in program order
        uint32_t at = i;
        for (; at > 0 && order[at - 1]->bytes < l->buffers.at[i].bytes; at--)
            order[at] = order[at - 1];
        order[at] = &l->buffers.at[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        struct tir_life *in = order[i];
        in->offset = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (uint32_t j = 0; j < i; j++) {
                const struct tir_life *other = order[j];
                bool overlap = in->offset < other->offset + other->bytes &&
                               other->offset < in->offset + in->bytes;
                if (overlap && tir_alive_together(l, in, other)) {
                    in->offset = (int64_t)tir_align_up((uint64_t)(other->offset + other->bytes),
                                                       (uint64_t)in->alignment);
                    moved = true;
                }
            }
        }
        bytes = TIR_MAX(bytes, in->offset + in->bytes);
    }
    return bytes;
}
