// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tensor_memory: operands that no tensor copy can bring.
//
// Rows that an index tile or a table names, that a mask cuts, that are not aligned, or of which
// every other element counts: warps of a role of their own bring them to the slots of a channel,
// each thread with addresses of its own. cp.async does it where it can, else the elements go
// through registers.
//
//     role gather warps(4)
//         let page: i32 = next;             // looked up a round before
//         wait(empty[i]);
//         copy_async(slots[i], A[page, rows, k:+64], mask = m);
//         commit_group();
//         wait_group(groups = 2);           // the copies of two rounds before are done
//         fence(async_shared);              // tcgen05 reads through the asynchronous proxy
//         if late >= 2 { arrive(full[i - 2]); }
// A slot is handed on some rounds late (a budget), so that the copies of several rounds are in
// flight. What is left is handed on after the loop.
//
// The role computes what it needs, index tiles and masks too, for itself: all of it follows from
// loop variables and tensors that the kernel only reads.

#include "pass/role/tensor_memory.h"

#include "ir/effect.h"
#include "ir/follow.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "pass/async/cp_async.h"
#include "pass/async/lookup.h"
#include "pass/async/pipeline.h"
#include "pass/async/tma.h"
#include "pass/receipt.h"

enum { MANY = 16 }; // accesses of a thread in a round; more are shared out to more threads

// Taking.

static bool is_in_round_or_before(const struct tmem_plan *p, const struct tir_block *block)
{
    bool is = block == p->tiles->regions[0] || block == p->loop->regions[0];
    for (uint32_t i = 0; i < p->holder_count; i++)
        is |= block == tir_tmem_taken(p, i);
    return is;
}

// Can a role compute v for itself, ahead of the products?
static enum tir_answer is_ahead(void *user, struct tir_value *v)
{
    const struct tmem_plan *p = user;
    if (tir_tmem_is_computable(p, v))
        return TIR_YES;
    const struct tir_inst *def = v->def;
    if (v->kind != TIR_VALUE_RESULT || def->op == TIR_OP_DOT || def->region_count ||
        !is_in_round_or_before(p, def->block))
        return TIR_NO;
    const bool is_pure = def->op == TIR_OP_LOAD
                             ? tir_is_only_read(p->f, tir_ref_base(def))
                             : tir_has_trait(def, TIR_PURE) && !tir_has_trait(def, TIR_THREAD);
    return is_pure ? TIR_IF_OPERANDS : TIR_NO;
}

static void need(void *user, struct tir_value *v)
{
    struct tmem_plan *p = user;
    bitset_insert(&p->ahead, v->id);
}

bool tir_tmem_is_ahead(struct tmem_plan *p, struct tir_value *v)
{
    struct tir_follow ahead;
    tir_follow_init(&ahead, p->cx->scratch, is_ahead, p);
    ahead.then = need;
    return tir_follows(&ahead, v);
}

bool tir_tmem_find_ahead(struct tmem_plan *p, const struct tir_inst *load)
{
    bool all = true;
    for (uint32_t i = 0; all && i < load->operand_count; i++)
        all = !load->operands[i] || tir_tmem_is_ahead(p, load->operands[i]);
    return all;
}

const char *tir_tmem_take_gather(struct tmem_plan *p, struct tmem_operand *o)
{
    const struct tir_inst *load = o->tile->def;
    if (tir_ref_base(load)->type->space != TIR_SPACE_GLOBAL ||
        !tir_is_only_read(p->f, tir_ref_base(load)))
        return "an operand is no tensor that the kernel only reads";
    if (!tir_tmem_find_ahead(p, load))
        return "where an operand is depends on what the loop carries";
    const char *no_copy = NULL;
    o->width = tir_tile_copy_width(p->f, p->cx->target, p->ranges, o->tile, &no_copy);
    if (!o->width && !tir_tensor_is_dense(p->f, tir_ref_base(load)))
        return "elements of an operand are not known to be neighbours in memory";
    o->no_copy = no_copy;
    o->no_tma = tir_tma_refusal(p->f, p->cx->target, p->ranges, load);
    if (!o->no_tma)
        o->no_tma = "a tensor copy fetches no such part";
    o->is_gathered = true;
    const int64_t threads = 32 * TMEM_WARPGROUP, bytes = tir_type_bytes(o->tile->type);
    p->gathered += bytes / TIR_MAX(o->width, tir_elems[o->tile->type->elem].bits / 8);
    p->gather_warps = (p->gathered > MANY * threads ? 2 : 1) * TMEM_WARPGROUP;
    return NULL;
}

// The role.

struct gather {
    struct tmem_role role;
    struct tir_value *late; // slots of each group that are filled and not handed on, up to `most`
    int64_t most;
    uint32_t groups;             // that it fills
    bool copies;                 // some by cp.async
    VEC(struct tir_inst *) made; // copies and loads
};

// By how many rounds the slots of a group are handed on late.
static int64_t late_of(const struct gather *g, const struct tmem_group *group)
{
    return g->copies ? TIR_MIN(TIR_BUDGET_LATE_ROUNDS, group->channel.slots - 1) : 0;
}

static struct tir_inst *build_copy(struct gather *g, struct tir_builder *b,
                                   const struct tmem_operand *o, struct tir_value *slot)
{
    const struct tir_inst *load = o->tile->def;
    const struct tir_attr *box = tir_attr_find(load, TIR_ATTR_box);
    struct tir_value *operands[TIR_COPY_FIXED + 1 + TIR_MAX_RANK] = {
        [TIR_COPY_TO] = tir_tmem_slot(b, o->buffer, slot)};
    if (load->operands[TIR_LOAD_MASK])
        operands[TIR_COPY_MASK] = tir_tmem_of(&g->role, load->operands[TIR_LOAD_MASK]);
    operands[TIR_COPY_FIXED] = tir_ref_base(load);
    for (uint32_t d = 0; d < box->list_count; d++)
        operands[TIR_COPY_FIXED + 1 + d] = tir_tmem_of(&g->role, tir_ref_indices(load)[d]);
    struct tir_inst *copy =
        tir_tmem_plain(b, TIR_OP_COPY_ASYNC, operands, TIR_COPY_FIXED + 1 + box->list_count);
    tir_set_list(b->f, copy, TIR_ATTR_box, box->list, box->list_count);
    tir_copy_attr(b->f, copy, load, TIR_ATTR_cache);
    return copy;
}

static void bring(struct gather *g, struct tir_builder *b, const struct tmem_operand *o,
                  struct tir_value *slot)
{
    struct tir_arena *scratch = g->role.p->cx->scratch;
    b->span = o->tile->def->span;
    if (o->width) {
        vec_push(scratch, &g->made, build_copy(g, b, o, slot));
        return;
    }
    vec_push(scratch, &g->made, tir_clone_inst(b, o->tile->def, &g->role.map));
    tir_tmem_store_slot(b, o->buffer, slot, tir_tmem_of(&g->role, o->tile));
}

// The writes of the warp's lanes are done, for the asynchronous proxy too: one of them is to
// arrive.
static struct tir_value *build_written(struct tir_builder *b)
{
    const struct tir_type *i32 = tir_type_scalar(b->f->module->types, TIR_I32);
    tir_tmem_fence(b, TIR_WORD_of_async_shared);
    tir_tmem_plain(b, TIR_OP_WARP_SYNC, NULL, 0);
    struct tir_value *lane = tir_build1(b, TIR_OP_LANEID, i32, NULL, 0);
    return tir_binary(b, TIR_OP_EQ, lane, tir_const_i32(b->f, 0));
}

// The slot that was filled `rounds` before this one.
static struct tir_value *slot_before(struct tir_builder *b, const struct tmem_end *end,
                                     int64_t rounds)
{
    const int32_t slots = (int32_t)end->channel->slots, back = (int32_t)rounds;
    struct tir_value *slot = end->at[0];
    if (!back || slots == 1)
        return slot;
    struct tir_value *by = tir_const_i32(b->f, back);
    struct tir_value *choice[] = {
        tir_binary(b, TIR_OP_LT, slot, by),
        tir_binary(b, TIR_OP_ADD, slot, tir_const_i32(b->f, slots - back)),
        tir_binary(b, TIR_OP_SUB, slot, by)};
    return tir_build1(b, TIR_OP_WHERE, slot->type, choice, 3);
}

// Hands on the slot that was filled `rounds` before, if `late` are left, to the CTA that
// multiplies.
static void hand_on(struct gather *g, struct tir_builder *b, const struct tmem_end *end,
                    int64_t rounds, struct tir_value *one)
{
    if (rounds) {
        struct tir_value *some =
            tir_binary(b, TIR_OP_GE, g->late, tir_const_i32(b->f, (int32_t)rounds));
        one = tir_binary(b, TIR_OP_AND, some, one);
    }
    struct tir_builder in = tir_tmem_begin_if(b, one);
    struct tir_value *bar = tir_tmem_slot(&in, end->channel->full, slot_before(&in, end, rounds));
    struct tir_value *cta = end->channel->ctas > 1 ? tir_const_i32(in.f, 0) : NULL;
    tir_tmem_plain(&in, TIR_OP_ARRIVE, (struct tir_value *[]){bar, NULL, cta}, 3);
    tir_tmem_end_if(&in);
}

static void fill(struct gather *g, struct tir_builder *b)
{
    struct tmem_plan *p = g->role.p;
    for (uint32_t i = 0; i < p->group_count; i++) {
        const struct tmem_group *group = &p->groups[i];
        if (!group->is_gathered)
            continue;
        struct tmem_end *end = tir_tmem_end(&g->role, &group->channel);
        tir_tmem_wait_empty(b, end);
        for (uint32_t k = 0; k < p->operand_count; k++)
            if (p->operands[k].group == group)
                bring(g, b, &p->operands[k], end->at[0]);
        if (g->copies) {
            tir_build_group(b, TIR_OP_COMMIT_GROUP, TIR_DONE_CP_ASYNC, 0);
            tir_build_group(b, TIR_OP_WAIT_GROUP, TIR_DONE_CP_ASYNC, late_of(g, group) * g->groups);
        }
        hand_on(g, b, end, late_of(g, group), build_written(b));
        tir_tmem_advance(b, end);
    }
}

// After the loop, what is left.
static void hand_on_rest(struct gather *g, struct tir_builder *b)
{
    struct tmem_plan *p = g->role.p;
    if (!g->most)
        return;
    tir_build_group(b, TIR_OP_WAIT_GROUP, TIR_DONE_CP_ASYNC, 0);
    struct tir_value *one = build_written(b);
    for (int64_t rounds = g->most; rounds; rounds--)
        for (uint32_t i = 0; i < p->group_count; i++)
            if (p->groups[i].is_gathered && rounds <= late_of(g, &p->groups[i]))
                hand_on(g, b, tir_tmem_end(&g->role, &p->groups[i].channel), rounds, one);
}

// What addresses follow from is looked up a round before.
static void look_up_ahead(struct gather *g)
{
    struct tmem_plan *p = g->role.p;
    struct tir_inst *loop = g->role.loop;
    struct tir_block *body = loop->regions[0];
    struct tir_lookups lookups;
    struct tir_follow ahead;
    tir_lookups_init(&lookups, p->f, p->cx->scratch, loop);
    tir_runs_ahead_init(&ahead, p->cx->scratch, p->f, body);
    vec_foreach(struct tir_inst *, it, &g->made)
        tir_lookups_add_operands(&lookups, *it);
    bool known = lookups.found.len > 0;
    vec_foreach(struct tir_value *, it, &lookups.found)
        known &= tir_follows(&ahead, *it);
    if (!known)
        return;
    tir_lookups_run_ahead(&lookups, body->first);
    tir_receipt_add(p->cx, TIR_TOPIC_RING, loop->span,
                    "ring: addresses looked up an iteration before");
}

static void tell(const struct tmem_plan *p)
{
    for (uint32_t i = 0; i < p->operand_count; i++) {
        const struct tmem_operand *o = &p->operands[i];
        if (!o->is_gathered)
            continue;
        const struct tir_inst *load = o->tile->def;
        const char *name = tir_ref_base(load)->name;
        if (o->width)
            tir_receipt_refuse(p->cx, TIR_TOPIC_COPY, TIR_WISH_TMA, load->span,
                               "copy of %s: cp.async, %u bytes each; no tma: %s", name, o->width,
                               o->no_tma);
        else
            tir_receipt_refuse(p->cx, TIR_TOPIC_COPY, TIR_WISH_ASYNC, load->span,
                               "copy of %s: through registers, because %s", name, o->no_copy);
    }
}

static void build_rounds(struct gather *g, struct tir_builder *in)
{
    struct tmem_plan *p = g->role.p;
    struct tir_value *none = tir_const_i32(p->f, 0);
    struct tir_builder loop = tir_tmem_begin_loop(&g->role, in, &none, g->most > 0);
    g->late = g->most ? g->role.loop->regions[0]->args[1] : none;
    tir_tmem_copy(&g->role, &loop, p->loop->regions[0]);
    fill(g, &loop);
    struct tir_value *next = g->late;
    if (g->most)
        next = tir_binary(&loop, TIR_OP_MIN,
                          tir_binary(&loop, TIR_OP_ADD, g->late, tir_const_i32(p->f, 1)),
                          tir_const_i32(p->f, (int32_t)g->most));
    tir_tmem_end_loop(&g->role, &loop, &next, g->most > 0);
    g->late = g->most ? g->role.loop->results[0] : none;
    hand_on_rest(g, in);
}

void tir_tmem_build_gather_role(struct tmem_plan *p, struct tir_builder *b)
{
    struct gather g = {.groups = 0};
    tir_tmem_init_role(&g.role, p);
    g.role.fills = true;
    for (uint32_t i = 0; i < p->operand_count; i++)
        g.copies |= p->operands[i].is_gathered && p->operands[i].width;
    for (uint32_t i = 0; i < p->group_count; i++) {
        if (!p->groups[i].is_gathered)
            continue;
        g.groups++;
        g.most = TIR_MAX(g.most, late_of(&g, &p->groups[i]));
        tir_tmem_add_end(&g.role, &p->groups[i].channel, false, 1);
    }
    struct tir_builder in =
        tir_tmem_begin_role(&g.role, b, "gather", p->warps - p->gather_warps, p->gather_warps);
    tir_tmem_enter(&g.role, &in);
    build_rounds(&g, &in);
    tir_tmem_leave(&g.role, &in);
    tir_tmem_end_tiles(&g.role, &in);
    for (uint32_t i = 0; i < p->group_count; i++) // freed after the sums are handed on
        if (p->groups[i].is_gathered && p->groups[i].is_per_tile)
            tir_tmem_drain(&g.role, &p->groups[i].channel);
    tir_tmem_end_role(&g.role);
    look_up_ahead(&g);
    tell(p);
}
