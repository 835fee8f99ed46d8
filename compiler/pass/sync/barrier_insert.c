// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the barrier pass puts between two accesses, and where.

#include "pass/sync/barrier.h"

struct tir_value *tir_barrier_leader(struct barriers *b)
{
    if (!b->leader) { // at the top of the crew's block, for all of it
        struct tir_builder top = tir_builder_before(b->f, b->crew_block->first);
        b->leader = tir_build_is_leader(&top, &b->crew);
        b->leader->name = tir_intern_cstr(b->f->module->names, "leader");
    }
    return b->leader;
}

bool tir_barrier_has_name(struct barriers *b)
{
    if (tir_crew_has_barrier(b->f, &b->crew))
        return true;
    if (!b->failed && b->crew.scope)
        tir_error_at(b->cx->diags, b->crew.scope->span, TIR_E_LIMIT,
                     "kernel %s: each %u warps of this scope need a named barrier; there are %d, "
                     "for the CTA, its roles and the groups of scopes",
                     b->f->name, b->crew.warps, TIR_NAMED_BARRIERS);
    else if (!b->failed)
        tir_error_at(
            b->cx->diags, b->crew.role->span, TIR_E_LIMIT,
            "kernel %s: this role needs a named barrier; there are %d, for the CTA and the "
            "first %d roles",
            b->f->name, TIR_NAMED_BARRIERS, TIR_NAMED_BARRIERS - 1);
    b->failed = true;
    return false;
}

// Where a barrier between the two accesses goes: before inst, or before the outermost loop around
// it that is not around the other.
static struct tir_inst *place_between(const struct range *other, struct tir_inst *inst)
{
    struct tir_inst *place = inst;
    for (struct tir_inst *up = inst->block->owner; up && !tir_barrier_is_made_in(other, up);
         up = up->block->owner)
        if (tir_barrier_is_loop(up))
            place = up;
    return place;
}

static bool needs_done(uint32_t need, enum tir_done done)
{
    return need >> done & NEED_DONE;
}

static bool needs_wait(uint32_t need, enum tir_done done)
{
    return needs_done(need, done) || need >> done & NEED_READ;
}

// Each warpgroup waits for all of its own groups. One thread that counts its role's groups lets the
// last few stay in flight.
static void insert_wait(struct barriers *b, struct tir_builder *build, enum tir_done done,
                        bool of_cta, bool all, int64_t groups)
{
    if (!tir_dones[done].by_one) {
        tir_build_group(build, TIR_OP_WAIT_GROUP, done, 0);
        return;
    }
    struct tir_value *leader = of_cta ? tir_build_is_leader(build, &b->cta) : tir_barrier_leader(b);
    struct tir_builder in = tir_build_if(build, leader);
    struct tir_inst *wait = tir_build_group(&in, TIR_OP_WAIT_GROUP, done, groups);
    if (!all)
        tir_set_int(b->f, wait, TIR_ATTR_read, 1);
}

static const struct {
    enum tir_word of;
    uint32_t need;
} fences[] = {
    {TIR_WORD_of_async_shared, NEED_FENCE_SHARED},
    {TIR_WORD_of_async_global, NEED_FENCE_GLOBAL},
    {TIR_WORD_of_async, NEED_FENCE},
};

uint32_t tir_barrier_fences(const struct tir_inst *fence)
{
    const enum tir_word of = tir_attr_word(fence, TIR_ATTR_of, TIR_WORD_NONE);
    for (uint32_t i = 0; i < TIR_COUNT_OF(fences); i++)
        if (fences[i].of == of)
            return fences[i].need;
    return 0;
}

static void insert_fence(struct barriers *b, struct tir_builder *build, uint32_t need)
{
    uint32_t i = 0;
    while (fences[i].need != need)
        i++;
    struct tir_inst *fence = tir_build(build, TIR_OP_FENCE, NULL, 0, NULL, 0, 0);
    tir_set_word(b->f, fence, TIR_ATTR_of, fences[i].of);
}

static void insert(struct barriers *b, struct tir_inst *place, uint32_t need, int64_t groups)
{
    struct tir_builder build = tir_builder_before(b->f, place);
    const bool of_cta = place == b->first_role;
    b->changed = true;
    for (enum tir_done done = 0; done < TIR_DONE_COUNT; done++)
        if (needs_wait(need, done))
            insert_wait(b, &build, done, of_cta, needs_done(need, done), groups);
    if (need & NEED_FENCE)
        insert_fence(b, &build, need & NEED_FENCE);
    if (of_cta || tir_barrier_has_name(b))
        tir_build_crew_barrier(&build, of_cta ? &b->cta : &b->crew);
}

void tir_barrier_settle(const struct barriers *b, struct state *s, const struct tir_inst *place,
                        uint32_t need, int64_t groups)
{
    for (enum tir_done done = 0; done < TIR_DONE_COUNT; done++)
        if (needs_wait(need, done))
            tir_barrier_finished(b, s, place, done, !needs_done(need, done),
                                 tir_dones[done].by_one ? groups : 0);
    tir_barrier_fenced(b, s, place, need);
    tir_barrier_met(b, s, place);
}

// Puts between r, of an instruction at `before`, and what is pending what they need: of what was
// made before the roles, or of the rest.
static void order_part(struct barriers *b, struct state *s, struct tir_inst *before,
                       const struct range *r, bool before_roles)
{
    if (!tir_meter_take(b->cx->meter, s->pending.len)) {
        b->failed = true;
        return;
    }
    struct tir_inst *place = NULL; // after all that r conflicts with: the innermost
    uint32_t need = 0;
    int64_t groups = INT32_MAX; // that may stay in flight
    vec_foreach(const struct range, p, &s->pending) {
        uint32_t these =
            tir_barrier_is_older_than_role(b, p) == before_roles ? tir_barrier_needs(b, p, r) : 0;
        if (!these)
            continue;
        need |= these;
        if (p->in_flight != TIR_DONE_NOW && tir_dones[p->in_flight].by_one)
            groups = TIR_MIN(groups, TIR_MAX(p->age, 0));
        struct tir_inst *here = before_roles ? b->first_role : place_between(p, before);
        if (!place || tir_is_inside(here, place))
            place = here;
    }
    if (!need)
        return;
    for (struct tir_inst *up = before; up != place && up->block->owner; up = up->block->owner) {
        struct loop *loop = tir_map_get(&b->loops, tir_map_key(up->block->owner));
        if (loop && !before_roles && (!loop->barrier || tir_is_inside(place, loop->barrier)))
            loop->barrier = place;
    }
    groups = place == before ? groups : 0; // they may be younger in front of a loop
    if (!b->dry)
        insert(b, place, need, groups);
    tir_barrier_settle(b, s, place, need, groups);
    b->before_roles |= before_roles ? need : 0;
}

void tir_barrier_order(struct barriers *b, struct state *s, struct tir_inst *inst,
                       const struct range *r)
{
    struct tir_inst *before = b->branch ? b->branch : inst;
    if (before->op == TIR_OP_GEMM_ASYNC && before->prev && before->prev->op == TIR_OP_FENCE)
        before = before->prev; // fence(of = wgmma) stays at its product
    if (b->crew.role)
        order_part(b, s, before, r, true);
    order_part(b, s, before, r, false);
}
