// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on groups, and on registers that a product still writes.
//
// Groups of cp.async, of products and of bulk stores are strands: an operation belongs to the group
// that the next commit closes, and a wait for all but n groups makes the older ones known. A wait
// for cp.async or stores tells only the waiting thread, about its own.
//
// A product is one operation of four warps: wgmma.mma_async is performed "across a warpgroup", and
// wgmma.commit_group makes a "new wgmma-group per warpgroup" (PTX ISA, asynchronous
// warpgroup-level matrix instructions). So a warp that has waited for a group knows that all four
// warps have reached it, and that the group no longer reads shared memory.

#include "pass/sync_check/access.h"

// Registers.

static void not_fenced(struct sync_run *r, const struct tir_inst *inst, const char *what,
                       const struct tir_value *v)
{
    tir_sync_fail(r, TIR_E_SYNC_FENCE, inst, v->def, "here",
                  "gemm_async may not see %s: no fence(of = wgmma) after its registers were "
                  "written",
                  what);
}

static void check_registers(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst)
{
    const struct tir_value *va = inst->operands[TIR_DOT_A], *vacc = inst->operands[TIR_DOT_ACC];
    struct sync_value acc = tir_sync_value(r, a, vacc);
    if (va->type->space == TIR_SPACE_VALUE) {
        struct sync_value av = tir_sync_value(r, a, va);
        if (av.group)
            tir_sync_fail(r, TIR_E_SYNC_REGISTERS, inst, av.by, "this still writes it",
                          "the registers of A are still in flight: no await between them");
        else if (a->fence_time <= av.made)
            not_fenced(r, inst, "A", va);
    }
    if (r->outcome == SYNC_GOING && !acc.group && a->fence_time <= acc.made)
        not_fenced(r, inst, "the accumulators", vacc);
}

// The rows of A, or columns of B, that the sums of the agent's warpgroups are of: along dimension d
// of the sums, which lie side by side.
static void narrow(const struct sync_agent *a, const struct tir_layout *sums, uint32_t d,
                   struct sync_buffer *b)
{
    const uint32_t first = a->first_warp - a->within.first, last = first + a->warps - 1;
    if (a->warps >= a->within.warps || !sums || sums->replica_count || b->reshaped)
        return;
    uint32_t other = 0; // warps that the elements along the other dimension are in, by bits
    int64_t coord[TIR_MAX_RANK] = {0}, begin = -1, end = 0;
    for (int64_t *i = &coord[1 - d]; *i < sums->shape[1 - d]; (*i)++)
        other |= UINT32_C(1) << tir_layout_find(sums, coord).at[TIR_AXIS_WARP];
    coord[1 - d] = 0;
    for (int64_t *i = &coord[d]; *i < sums->shape[d]; (*i)++) {
        const uint64_t warps = (uint64_t)other << tir_layout_find(sums, coord).at[TIR_AXIS_WARP];
        bool own = false;
        for (uint32_t w = first / TIR_WARPGROUP; w <= last / TIR_WARPGROUP; w++)
            own |= warps >> w * TIR_WARPGROUP & ((1u << TIR_WARPGROUP) - 1);
        begin = own && begin < 0 ? *i : begin;
        end = own ? *i + 1 : end;
    }
    if (begin < 0)
        return;
    b->box.begin[b->dim[d]] += begin;
    b->box.size[b->dim[d]] = end - begin;
}

void tir_sync_product_op(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    if (!tir_sync_all_come(r, who, inst, SYNC_SAME))
        return;
    check_registers(r, a, inst);
    uint16_t strand = tir_sync_use_strand(r, &a->wgmma);
    // All lanes come to it with what they have loaded for A.
    if (inst->operands[TIR_DOT_A]->type->space == TIR_SPACE_VALUE)
        tir_sync_warp(r, a);
    for (uint32_t i = TIR_DOT_A; i <= TIR_DOT_B && r->outcome == SYNC_GOING; i++) {
        const struct tir_value *v = inst->operands[i];
        const struct sync_buffer *of =
            v->type->space == TIR_SPACE_VALUE ? NULL : tir_sync_buffer_of(r, a, inst, v);
        if (!of)
            continue;
        struct sync_buffer b = *of;
        narrow(a, inst->results[0]->type->layout, i - TIR_DOT_A, &b);
        tir_sync_access(r, who, &b,
                        tir_sync_grouped(inst, SYNC_READ, strand, a->wgmma_closed, true));
    }
    a->slots[inst->results[0]->id] = (struct sync_value){
        .kind = SYNC_TILE, .made = ++a->now, .group = a->wgmma_closed + 1, .by = inst};
    a->wgmma_open = a->wgmma_last = inst;
}

void tir_sync_use_tiles(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[i];
        if (!v || !tir_type_is_tile(v->type) || v->kind == TIR_VALUE_CONST)
            continue;
        const struct sync_value *x = &a->slots[v->id];
        if (!x->group)
            continue;
        tir_sync_fail(r, TIR_E_SYNC_REGISTERS, inst, x->by, "this product writes them",
                      "%s uses registers that gemm_async of line %u still writes: no await between "
                      "them",
                      tir_ops[inst->op].name, tir_sync_line(r->p, x->by));
        return;
    }
}

// Groups.

static uint32_t all_but(uint32_t closed, int64_t groups)
{
    return groups < (int64_t)closed ? closed - (uint32_t)groups : 0;
}

// The warpgroup that all warps of an agent are in; negative: they are in several.
static int64_t warpgroup_of(const struct sync_agent *a)
{
    uint32_t first = a->first_warp / TIR_WARPGROUP;
    uint32_t last = (a->first_warp + a->warps - 1) / TIR_WARPGROUP;
    return first == last ? (int64_t)a->cta * SYNC_CTA_THREADS + first : -1;
}

// False: other warps of the warpgroup have not come to the group yet.
static bool wait_products(struct sync_run *r, struct sync_agent *a, int64_t groups)
{
    uint32_t done = TIR_MAX(a->wgmma_done, all_but(a->wgmma_closed, groups));
    int64_t warpgroup = warpgroup_of(a);
    for (uint32_t i = 0; i < r->agent_count; i++)
        if (warpgroup >= 0 && warpgroup_of(&r->agents[i]) == warpgroup &&
            r->agents[i].wgmma_closed < done)
            return false;
    a->wgmma_done = done;
    tir_sync_learn(a, a->wgmma, done);
    for (uint32_t i = 0; i < r->agent_count && warpgroup >= 0 && done; i++) {
        const struct sync_agent *other = &r->agents[i];
        if (warpgroup_of(other) != warpgroup)
            continue;
        tir_sync_learn(a, other->wgmma, done);
        if (other == a)
            tir_sync_learn_of_peers(a, a->wgmma, done);
        else if (other->wgmma_closed - done < SYNC_GROUPS)
            tir_sync_learn(a, other->events, other->wgmma_events[done % SYNC_GROUPS]);
    }
    return true;
}

static void commit_products(struct sync_run *r, struct sync_agent *a)
{
    a->wgmma_closed++;
    a->wgmma_open = NULL;
    a->wgmma_events[a->wgmma_closed % SYNC_GROUPS] = a->all.known[a->events];
    tir_sync_pass(a);
    r->phases++;
}

// Of copies each thread closes and knows its own alone; the lanes of a warp together know of a
// group what the last of them does.
static void commit_or_wait_copies(const struct sync_who *who, bool commit, int64_t groups)
{
    struct sync_agent *a = who->agent;
    uint32_t closed = UINT32_MAX, done = UINT32_MAX;
    for (uint32_t i = 0; i < a->warps * SYNC_LANES; i++) {
        struct sync_own *own = &a->own[i];
        bool acts = !who->mask || who->mask[i / SYNC_LANES] >> i % SYNC_LANES & 1;
        own->closed += acts && commit;
        if (acts && !commit)
            own->done = TIR_MAX(own->done, all_but(own->closed, groups));
        closed = TIR_MIN(closed, own->closed);
        done = TIR_MIN(done, own->done);
    }
    for (; a->copies_closed < closed; a->copies_closed++)
        a->copies_ends[(a->copies_closed + 1) % SYNC_COPIES] = ++a->copies_batch;
    if (a->copies_told) // groups have been cut
        done = closed - done < SYNC_COPIES ? a->copies_ends[done % SYNC_COPIES] : 0;
    if (a->copies)
        a->all.known[a->copies] = TIR_MAX(a->all.known[a->copies], done);
}

static bool await(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst)
{
    if (!wait_products(r, a, tir_attr_int(inst, TIR_ATTR_groups, 0)))
        return false;
    a->await_time = ++a->now;
    for (uint32_t i = 0; i < inst->result_count; i++) {
        struct sync_value v = tir_sync_value(r, a, inst->operands[i]);
        if (v.group > a->wgmma_done) {
            tir_sync_fail(r, TIR_E_SYNC_REGISTERS, inst, v.by, "this product writes them",
                          v.group > a->wgmma_closed
                              ? "the product of line %u is not in a group yet: no "
                                "commit_group(engine = wgmma) between them"
                              : "the product of line %u is in a group that this does not wait for",
                          tir_sync_line(r->p, v.by));
            return true;
        }
        a->slots[inst->results[i]->id] = (struct sync_value){.kind = SYNC_TILE, .made = a->now};
    }
    return true;
}

static void learn_of_bulk(struct sync_agent *a, struct sync_thread *t, uint16_t strand, uint32_t at)
{
    if (!strand)
        return;
    t->clock.known[strand] = TIR_MAX(t->clock.known[strand], at);
    a->all.known[strand] = TIR_MAX(a->all.known[strand], at);
}

// A wait for reads does not say that what they write is there.
static void commit_or_wait_bulk(const struct sync_who *who, bool commit, int64_t groups, bool read)
{
    struct sync_agent *a = who->agent;
    for (uint32_t i = 0; i < a->thread_count; i++) {
        struct sync_thread *t = &a->threads[i];
        if (who->thread && i != who->thread)
            continue;
        if (commit) {
            t->bulk_closed++;
            t->bulk_open = NULL;
            continue;
        }
        uint32_t done = all_but(t->bulk_closed, groups);
        t->bulk_done = TIR_MAX(t->bulk_done, done);
        learn_of_bulk(a, t, t->bulk, done);
        if (!read)
            learn_of_bulk(a, t, t->wrote, done);
    }
}

bool tir_sync_group_op(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    bool commit = inst->op == TIR_OP_COMMIT_GROUP;
    int64_t groups = tir_attr_int(inst, TIR_ATTR_groups, 0);
    if (inst->op == TIR_OP_AWAIT)
        return await(r, a, inst);
    switch (tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_engine_cp_async)) {
    case TIR_WORD_engine_wgmma:
        if (!commit)
            return wait_products(r, a, groups);
        commit_products(r, a);
        break;
    case TIR_WORD_engine_tma:
    case TIR_WORD_engine_bulk:
        commit_or_wait_bulk(who, commit, groups, tir_attr_int(inst, TIR_ATTR_read, 0));
        break;
    default:
        commit_or_wait_copies(who, commit, groups);
        break;
    }
    return true;
}

void tir_sync_leave(struct sync_run *r, struct sync_agent *a)
{
    for (uint32_t i = 0; i < a->thread_count; i++) {
        const struct sync_thread *t = &a->threads[i];
        if (!t->bulk_open && t->bulk_done >= t->bulk_closed)
            continue;
        if (!t->bulk_last)
            continue; // empty groups
        tir_sync_fail(r, TIR_E_SYNC_RACE, t->bulk_last, NULL, NULL,
                      t->bulk_open ? "the kernel may end while this still reads shared memory: no "
                                     "commit_group(engine = tma) after it"
                                   : "the kernel may end while this still reads shared memory: no "
                                     "wait_group(groups = 0, engine = tma) by its thread after it");
        return;
    }
    if (a->copies_last && a->all.known[a->copies] < a->copies_group && !a->copies_told)
        tir_sync_fail(r, TIR_E_SYNC_RACE, a->copies_last, NULL, NULL,
                      "the kernel may end while this copy is in flight: no wait_group after it");
    if (a->wgmma_last && (a->wgmma_open || a->wgmma_done < a->wgmma_closed))
        tir_sync_fail(r, TIR_E_SYNC_REGISTERS, a->wgmma_last, NULL, NULL,
                      "the kernel may end while this product is in flight: no await of it");
}
