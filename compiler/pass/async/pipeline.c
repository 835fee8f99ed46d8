// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// pipeline: keeps the copies of the next iterations in flight while this one computes.
//
//     let r: T = for k: i64 in range(0, K, 64) carry (acc: T = init) stages(3) {
//         let a: shared bf16[128, 64] in S = alloc();
//         copy_async(a, A[m:+128, k:+64], width = 16);
//         commit_group();
//         wait_group(groups = 0);
//         ... dot(a, ...) ...
//     }
// becomes (with one more carried value, the slot that is read)
//     let ring: shared bf16[3, 128, 64] in R = alloc();
//     copy_async(view(ring[0, ...]), A[m:+128, 0:+64], pred = lt(0, K), width = 16);
//     commit_group();
//     copy_async(view(ring[1, ...]), A[m:+128, 64:+64], pred = lt(64, K), width = 16);
//     commit_group();
//     let r: T, last: i32 = for k: i64 in range(0, K, 64) carry (acc: T = init, slot: i32 = 0) {
//         wait_group(groups = 1);
//         copy_async(view(ring[slot - 1, ...]), A[m:+128, k + 128:+64], ...);
//         commit_group();
//         ... dot(view(ring[slot, ...]), ...) ...
//     }
//     wait_group(groups = 0);
//
// The slot is carried, never derived from the loop variable. The new copies come right after the
// wait: the barrier that makes the awaited slot visible also ensures that all threads have finished
// with the slot being overwritten, so one barrier an iteration is enough. A commit stands in every
// iteration, even if its copies are switched off, so that groups count iterations.
//
// A copy can run ahead if its address depends only on the loop variable and on values from outside
// the loop. The number of stages is the loop's, or as many as fit (at most four) beside what lives
// at the same time (room.c).

#include "pass/async/pipeline.h"

#include "ir/carry.h"
#include "ir/crew.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/target.h"
#include "pass/async/lookup.h"
#include "pass/async/room.h"
#include "pass/receipt.h"

struct copy {
    struct tir_inst *copy;  // in the loop's block
    struct tir_inst *alloc; // likewise
    struct tir_value *ring;
};

struct pipeline {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_inst *loop;
    struct tir_block *body;
    int64_t stages;
    VEC(struct copy) copies;
    struct tir_lookups lookups;
};

static void refuse(struct pipeline *p, const char *why)
{
    tir_receipt_refuse(p->cx, TIR_TOPIC_LOOP, TIR_WISH_PIPELINE, p->loop->span,
                       "loop: not pipelined, because %s", why);
}

struct ahead {
    const struct tir_func *f;
    const struct tir_block *body;
};

static enum tir_answer runs_ahead(void *user, struct tir_value *v)
{
    const struct ahead *ahead = user;
    const struct tir_block *body = ahead->body;
    if (v->kind == TIR_VALUE_CONST)
        return TIR_YES;
    if (v->kind == TIR_VALUE_ARG)
        return v->block != body || v->index == 0 ? TIR_YES : TIR_NO;
    if (!tir_block_contains(body, v->def))
        return TIR_YES;
    bool is_pure = tir_has_trait(v->def, TIR_PURE) && !v->def->region_count;
    if (v->def->op == TIR_OP_LOAD)
        is_pure = tir_is_only_read(ahead->f, tir_ref_base(v->def));
    return v->def->block == body && is_pure ? TIR_IF_OPERANDS : TIR_NO;
}

void tir_runs_ahead_init(struct tir_follow *ahead, struct tir_arena *arena,
                         const struct tir_func *f, struct tir_block *body)
{
    struct ahead *user = arena_new(arena, struct ahead);
    *user = (struct ahead){f, body};
    tir_follow_init(ahead, arena, runs_ahead, user);
}

// The wait of a commit and wait for copies that async_copy has made.
static bool is_wait_for_all(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_WAIT_GROUP && !tir_attr_find(inst, TIR_ATTR_engine) &&
           !tir_attr_int(inst, TIR_ATTR_groups, 0) && inst->prev &&
           inst->prev->op == TIR_OP_COMMIT_GROUP;
}

// Does the program itself copy or wait in the loop? Its waits and those of stages count all groups.
static bool copies_by_itself(const struct pipeline *p)
{
    tir_foreach_inst_in(inst, p->body) {
        if (tir_attr_find(inst, TIR_ATTR_engine))
            continue;
        if ((inst->op == TIR_OP_COPY_ASYNC && tir_buffer_is_by_hand(inst->operands[TIR_COPY_TO])) ||
            (inst->op == TIR_OP_WAIT_GROUP && !is_wait_for_all(inst)) ||
            (inst->op == TIR_OP_COMMIT_GROUP && !(inst->next && is_wait_for_all(inst->next))))
            return true;
    }
    return false;
}

// Do copies go to slots that the loop hands over by mbarriers? Then it has their stages already.
static bool hands_over_slots(const struct pipeline *p)
{
    bool fills = false, tells = false;
    tir_foreach_inst_in(inst, p->body) {
        const struct tir_inst *to =
            inst->op == TIR_OP_COPY_ASYNC ? inst->operands[TIR_COPY_TO]->def : NULL;
        fills |= to && to->op == TIR_OP_VIEW &&
                 !tir_is_made_in(p->loop, tir_buffer_root(tir_ref_base(to)));
        tells |= tir_commits_copies(inst) || inst->op == TIR_OP_ARRIVE;
    }
    return fills && tells;
}

// Does the loop, which asks for stages, have no copies at all?
static bool asks_in_vain(const struct pipeline *p)
{
    for (const struct tir_inst *inst = p->body->first; inst; inst = inst->next)
        if (inst->op == TIR_OP_PUT || inst->op == TIR_OP_GET || inst->op == TIR_OP_COPY_ASYNC)
            return false;
    return tir_attr_int(p->loop, TIR_ATTR_stages, 0) > 1;
}

static bool collect(struct pipeline *p)
{
    struct tir_follow ahead;
    if (hands_over_slots(p))
        return false;
    tir_runs_ahead_init(&ahead, p->cx->scratch, p->f, p->body);
    tir_lookups_init(&p->lookups, p->f, p->cx->scratch, p->loop);
    for (struct tir_inst *inst = p->body->first; inst; inst = inst->next) {
        if (inst->op != TIR_OP_COPY_ASYNC || tir_attr_find(inst, TIR_ATTR_engine))
            continue;
        struct tir_value *to = inst->operands[TIR_COPY_TO];
        if (!to->def || to->def->op != TIR_OP_ALLOC || to->def->block != p->body) {
            refuse(p, "a copy does not go to a buffer of the iteration");
            return false;
        }
        if (tir_is_aliased(p->f, to)) {
            refuse(p, "a buffer has an alias");
            return false;
        }
        for (uint32_t i = 1; i < inst->operand_count; i++)
            if (!tir_follows(&ahead, inst->operands[i])) {
                refuse(p, "an address depends on values carried or computed in the loop");
                return false;
            }
        if (to->type->rank == TIR_MAX_RANK) {
            refuse(p, "a buffer has no dimension left for the stages");
            return false;
        }
        tir_lookups_add_operands(&p->lookups, inst);
        struct copy copy = {inst, to->def, NULL};
        vec_push(p->cx->scratch, &p->copies, copy);
    }
    if (asks_in_vain(p))
        refuse(p, "nothing in it is copied to shared memory asynchronously");
    if (p->copies.len && copies_by_itself(p)) {
        refuse(p, "the program has asynchronous copies of its own in it");
        return false;
    }
    return p->copies.len > 0;
}

static int64_t aligned_elements(const struct tir_type *t, int64_t bytes)
{
    const int64_t unit = bytes * 8 / tir_elems[t->elem].bits;
    return (int64_t)tir_align_up((uint64_t)tir_layout_size(t->layout, TIR_AXIS_REG),
                                 (uint64_t)TIR_MAX(unit, 1));
}

// A slot begins where a buffer of its own would that tensor copies fill.
static int64_t slot_elements(const struct tir_type *t)
{
    return aligned_elements(t, TIR_MAX(tir_layout_alignment(t->layout), TIR_TMA_TENSOR_BYTES));
}

int64_t tir_slot_bytes(const struct tir_type *t)
{
    return slot_elements(t) * tir_elems[t->elem].bits / 8;
}

// The most that one operation in the block needs. Tiles that change threads can do so in parts.
static int64_t most_scratch(const struct tir_func *f, const struct tir_block *block)
{
    const uint32_t warps = tir_crew_of_block(f, block).warps;
    int64_t most = 0;
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        int64_t bytes = 0;
        if (inst->op == TIR_OP_REDUCE || inst->op == TIR_OP_SCAN) {
            const struct tir_type *t = inst->operands[TIR_REDUCE_X]->type;
            int64_t lines = tir_type_count(t) / t->shape[tir_attr_int(inst, TIR_ATTR_axis, 0)];
            bytes = lines * warps * 8 * tir_combined_count(inst);
        } else if (inst->op == TIR_OP_CONVERT_LAYOUT) {
            bytes = tir_type_bytes(inst->results[0]->type) / TIR_BUDGET_CONVERT_PARTS;
        }
        for (uint32_t r = 0; r < inst->region_count; r++) {
            const int64_t inside = most_scratch(f, inst->regions[r]); // TIR_MAX asks twice
            bytes = TIR_MAX(bytes, inside);
        }
        most = TIR_MAX(most, bytes);
    }
    return most;
}

int64_t tir_loop_scratch(const struct tir_func *f, const struct tir_block *body)
{
    return 2 * most_scratch(f, body) * tir_crew_of_block(f, body).groups;
}

const struct tir_type *tir_slots_type(struct tir_func *f, const struct tir_type *t, int64_t stages)
{
    const struct tir_layout *l = t->layout;
    struct tir_iter iters[TIR_MAX_ITERS] = {
        {(uint32_t)stages, (uint32_t)slot_elements(t), TIR_AXIS_REG}};
    memcpy(iters + 1, l->iters, l->iter_count * sizeof(*iters));
    struct tir_type slots = *t;
    slots.rank = t->rank + 1;
    slots.shape[0] = stages;
    memcpy(slots.shape + 1, t->shape, t->rank * sizeof(*slots.shape));
    slots.layout = tir_layout_from_iters(f->module->types, slots.rank, slots.shape, iters,
                                         l->iter_count + 1, NULL, 0, l->swizzle);
    return tir_type_get(f->module->types, &slots);
}

struct tir_value *tir_build_slot(struct tir_builder *b, struct tir_value *slots,
                                 struct tir_value *slot, const struct tir_type *t)
{
    struct tir_value *operands[1 + TIR_MAX_RANK] = {slots, slot};
    int64_t box[TIR_MAX_RANK] = {0};
    for (uint32_t d = 0; d < t->rank; d++) {
        operands[2 + d] = tir_const_index(b->f, 0);
        box[1 + d] = t->shape[d];
    }
    const struct tir_type *types[] = {t};
    struct tir_inst *view = tir_build(b, TIR_OP_VIEW, operands, 2 + t->rank, types, 1, 0);
    tir_set_list(b->f, view, TIR_ATTR_box, box, t->rank + 1);
    view->results[0]->name = slots->name;
    return view->results[0];
}

// Rings that are there already go to roles where products run on warpgroups. Puts may compute slots
// from the loop's copies.
static enum tir_filler filler_of(const struct pipeline *p)
{
    bool has_ring = false, has_role = false;
    tir_foreach_inst(inst, p->f) {
        has_ring |= inst->op == TIR_OP_RING;
        has_role |= inst->op == TIR_OP_ROLE;
    }
    return has_ring && !has_role && p->cx->target->features & TIR_HAS_WGMMA ? TIR_FILL_COMPUTES
                                                                            : TIR_FILL_IN_LINE;
}

// So many of the `most` stages as shared memory has room for.
static int64_t stages_that_fit(const struct pipeline *p, int64_t most)
{
    struct tir_room room;
    tir_room_init(&room, p->f, p->cx, filler_of(p));
    for (int64_t stages = most; stages > 1; stages--) {
        vec_foreach(const struct copy, c, &p->copies)
            tir_room_repeat(&room, c->alloc, stages, p->loop);
        if (tir_room_suffices(&room))
            return stages;
    }
    return 1;
}

// Stages that the program asked for or the default, as far as shared memory goes.
static bool choose_stages(struct pipeline *p)
{
    int64_t asked = tir_attr_int(p->loop, TIR_ATTR_stages, 0), one = 0;
    vec_foreach(struct copy, c, &p->copies)
        one += tir_slot_bytes(c->alloc->results[0]->type) * tir_crew_of(p->f, c->alloc).groups;
    int64_t most = TIR_MIN(asked ? asked : TIR_BUDGET_COPY_STAGES,
                           p->cx->target->shared_per_cta / TIR_MAX(one, 1));
    if (p->cx->attempt)
        most = TIR_MIN(most, p->cx->attempt->stages);
    p->stages = stages_that_fit(p, most);
    if (p->stages < 2) {
        refuse(p, asked == 1 ? "it asks for one stage"
                             : "shared memory has no room for a second stage");
        return false;
    }
    tir_receipt_add(p->cx, TIR_TOPIC_LOOP, p->loop->span, "loop: %lld stages of %lld bytes%s%s",
                    (long long)p->stages, (long long)one,
                    asked > p->stages ? ", fewer than asked: shared memory is full" : "",
                    p->lookups.found.len ? ", addresses looked up an iteration before" : "");
    return true;
}

static struct tir_value *build_ring(struct pipeline *p, struct tir_builder *b,
                                    const struct tir_inst *alloc)
{
    const struct tir_value *buffer = alloc->results[0];
    const struct tir_type *type = tir_slots_type(p->f, buffer->type, p->stages);
    struct tir_value *v = tir_build1(b, TIR_OP_ALLOC, type, NULL, 0);
    v->name = buffer->name;
    v->def->span = alloc->span;
    return v;
}

// Issues the copies of the iteration whose loop variable is `at`, into `slot`, as one group. map:
// what is known of that iteration, and is not computed again.
static void issue(struct pipeline *p, struct tir_builder *b, struct tir_value *at,
                  struct tir_value *slot, struct tir_map *map)
{
    tir_map_set(map, tir_map_key(p->body->args[0]), at);
    struct tir_value *pred = tir_binary(b, TIR_OP_LT, at, p->loop->operands[TIR_FOR_END]);
    vec_foreach(struct copy, c, &p->copies) {
        struct tir_inst *old = c->copy;
        struct tir_value **operands =
            arena_array(p->cx->scratch, struct tir_value *, old->operand_count);
        for (uint32_t i = 1; i < old->operand_count; i++)
            operands[i] = tir_clone_value(b, old->operands[i], p->body, map);
        operands[TIR_COPY_TO] = tir_build_slot(b, c->ring, slot, c->alloc->results[0]->type);
        operands[TIR_COPY_PRED] = operands[TIR_COPY_PRED]
                                      ? tir_binary(b, TIR_OP_AND, operands[TIR_COPY_PRED], pred)
                                      : pred;
        struct tir_inst *copy =
            tir_build(b, TIR_OP_COPY_ASYNC, operands, old->operand_count, NULL, 0, 0);
        copy->span = old->span;
        copy->attrs = old->attrs;
        copy->attr_count = old->attr_count;
    }
    tir_build(b, TIR_OP_COMMIT_GROUP, NULL, 0, NULL, 0, 0);
}

static void rewrite(struct pipeline *p)
{
    struct tir_func *f = p->f;
    struct tir_inst *loop = p->loop;
    struct tir_builder before = tir_builder_before(f, loop);
    vec_foreach(struct copy, c, &p->copies)
        c->ring = build_ring(p, &before, c->alloc);

    struct tir_value *at = loop->operands[TIR_FOR_BEGIN], *step = loop->operands[TIR_FOR_STEP];
    struct tir_map map;
    for (int64_t i = 0; i + 1 < p->stages; i++) {
        tir_map_init(&map, p->cx->scratch);
        issue(p, &before, at, tir_const_i32(f, (int32_t)i), &map);
        at = tir_binary(&before, TIR_OP_ADD, at, step);
    }
    struct tir_value *distance = tir_const_int(f, step->type, p->stages - 1);
    distance = tir_binary(&before, TIR_OP_MUL, step, distance);

    struct tir_inst *first = p->body->first;
    struct tir_builder b = tir_builder_before(f, first);
    tir_map_init(&map, p->cx->scratch);
    tir_lookups_carry(&p->lookups, at, &map);
    struct tir_value *slot = tir_carry_add(f, loop, tir_const_i32(f, 0), NULL);
    slot->name = tir_intern_cstr(f->module->names, "slot");
    struct tir_inst *wait = tir_build(&b, TIR_OP_WAIT_GROUP, NULL, 0, NULL, 0, 0);
    tir_set_int(f, wait, TIR_ATTR_groups, p->stages - 2);
    struct tir_value *last = tir_const_i32(f, (int32_t)p->stages - 1);
    struct tir_value *one = tir_const_i32(f, 1), *zero = tir_const_i32(f, 0);
    struct tir_value *wrap = tir_binary(&b, TIR_OP_EQ, slot, zero);
    struct tir_value *choice[] = {wrap, last, tir_binary(&b, TIR_OP_SUB, slot, one)};
    struct tir_value *write = tir_build1(&b, TIR_OP_WHERE, slot->type, choice, 3);
    struct tir_value *then = tir_binary(&b, TIR_OP_ADD, p->body->args[0], distance);
    issue(p, &b, then, write, &map);
    if (p->lookups.found.len)
        tir_lookups_yield(&p->lookups, &b, tir_binary(&b, TIR_OP_ADD, then, step));
    vec_foreach(struct copy, c, &p->copies)
        tir_replace_uses(f, c->alloc->results[0],
                         tir_build_slot(&b, c->ring, slot, c->alloc->results[0]->type));

    struct tir_value *full = tir_binary(&b, TIR_OP_EQ, slot, last);
    struct tir_value *next[] = {full, zero, tir_binary(&b, TIR_OP_ADD, slot, one)};
    tir_yield_add(f, p->body, tir_build1(&b, TIR_OP_WHERE, slot->type, next, 3));

    vec_foreach(struct copy, c, &p->copies) {
        tir_remove(c->copy);
        tir_remove(c->alloc);
    }
    tir_foreach_inst_safe(inst, p->body) // what was here before: the unpipelined wait
        if (inst != wait && is_wait_for_all(inst)) {
            tir_remove(inst->prev);
            tir_remove(inst);
        }
    struct tir_builder after = {f, loop->block, loop->next, loop->span};
    struct tir_inst *drain = tir_build(&after, TIR_OP_WAIT_GROUP, NULL, 0, NULL, 0, 0);
    tir_set_int(f, drain, TIR_ATTR_groups, 0);
}

enum tir_change tir_pass_pipeline(struct tir_func *f, struct tir_pass_cx *cx)
{
    VEC(struct tir_inst *) loops = {0};
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_FOR)
            vec_push(cx->scratch, &loops, inst);
    bool changed = tir_pipeline_rings(f, cx);
    vec_foreach(struct tir_inst *, it, &loops) {
        struct pipeline p = {.f = f, .cx = cx, .loop = *it, .body = (*it)->regions[0]};
        if (collect(&p) && choose_stages(&p)) {
            rewrite(&p);
            if (p.lookups.found.len)
                tir_pass_dce(f, cx); // what was looked up for this iteration's own copies
            changed = true;
        }
    }
    return changed ? TIR_CHANGED : TIR_UNCHANGED;
}
