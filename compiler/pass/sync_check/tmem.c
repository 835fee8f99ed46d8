// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on tensor memory: products and copies of one thread, their commits, and the fences
// around barriers.
//
// The products of a thread that a commit closes are a group, and an event of a strand of their own.
// The commit arrives at its mbarrier when they are done, so a thread that has waited knows the
// group: that it no longer reads shared memory, and that its sums are there. Copies from shared to
// tensor memory are in these groups too. Of two products in flight the second comes after the first
// only if both accumulate in the same place and have one shape. A product comes after every copy
// before it, but a copy after nothing (PTX ISA 9.7.16.6, "Pipelined tcgen05 instructions").
//
// Loads and stores of tensor memory wait for themselves here (lower_tile), so they are events of
// their thread. Yet what one thread did there and another one does later need a fence on either
// side of the barrier between them: before_thread_sync after the first, and before what hands it
// on; after_thread_sync before the second. A commit has the first of them in it.
//
// A product of a pair of CTAs touches its buffers in both. A kernel that has pairs ends when all
// threads of the cluster have come (lower_tile): what one of them knows is known where a CTA ends.

#include "machine/product.h"
#include "pass/sync_check/sync_check.h"

static const struct sync_buffer *buffer_of(struct sync_run *r, const struct sync_agent *a,
                                           const struct tir_inst *inst, uint32_t operand)
{
    const struct sync_value of = tir_sync_value(r, a, inst->operands[operand]);
    if (of.kind == SYNC_BUFFER)
        return of.buffer;
    tir_sync_unchecked(r->p, inst, "which buffer it touches depends on data");
    return NULL;
}

void tir_sync_core(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_thread *t = &who->agent->threads[who->thread];
    const bool copies = inst->op == TIR_OP_TMEM_COPY;
    const uint32_t written = copies ? TIR_TMEM_TO : TIR_DOT_ACC;
    const uint32_t accumulate = copies ? UINT32_MAX : TIR_GEMM_ACCUMULATE;
    if (who->lanes * who->agent->warps > 1) {
        tir_sync_fail(r, TIR_E_SYNC_RACE, inst, NULL, NULL,
                      "%u threads each start this %s, and nothing orders them: one thread does "
                      "it, as `if elect_sync()` chooses it",
                      who->lanes * who->agent->warps, copies ? "copy" : "product");
        return;
    }
    const uint16_t strand = tir_sync_use_strand(r, &t->core);
    t->core_open = t->core_last = inst;
    const bool is_pair = tir_tmem_is_pair(inst->operands[written]);
    for (uint32_t i = 0; i < inst->operand_count && r->outcome == SYNC_GOING; i++) {
        const bool accesses = inst->operands[i] && i != accumulate;
        const struct sync_buffer *b = accesses ? buffer_of(r, who->agent, inst, i) : NULL;
        if (!b)
            continue;
        const bool in_tmem = inst->operands[i]->type->space == TIR_SPACE_TMEM;
        const struct sync_record record = {.by = inst,
                                           .access = i == written ? SYNC_WRITE : SYNC_READ,
                                           .strand = strand,
                                           .at = t->core_closed + 1,
                                           .core = true,
                                           .async = !in_tmem};
        struct sync_buffer there = *b;
        tir_sync_access(r, who, &there, record);
        there.cta ^= 1;
        if (is_pair && there.cta >= r->p->ctas)
            tir_sync_fail(r, TIR_E_SYNC_RACE, inst, NULL, NULL,
                          "this product is one of a pair of CTAs, and CTA %u has no other", b->cta);
        else if (is_pair && r->outcome == SYNC_GOING)
            tir_sync_access(r, who, &there, record);
    }
}

// Which CTAs' mbarriers a commit arrives at, as bits. False: unknown, which is reported.
static bool committed_ctas(struct sync_run *r, const struct sync_agent *a,
                           const struct tir_inst *inst, uint32_t *out)
{
    const struct tir_value *mask = inst->operands[TIR_COMMIT_CTAS];
    *out = 1u << a->cta;
    if (!mask)
        return true;
    const struct sync_value v = tir_sync_value(r, a, mask);
    if (v.kind != SYNC_INT) {
        tir_sync_end_at(r, inst, "which CTAs it arrives at depends on data");
        return false;
    }
    *out = (uint32_t)v.number;
    if (!*out || v.number >> r->p->ctas)
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, inst, NULL, NULL,
                      "the mask 0x%llx names CTAs that a cluster of %u does not have",
                      (unsigned long long)v.number, r->p->ctas);
    return r->outcome == SYNC_GOING;
}

// The products that a commit closes arrive at an mbarrier.
static void arrive_when_done(struct sync_run *r, const struct sync_who *who,
                             const struct tir_inst *inst, uint32_t cta)
{
    struct sync_agent *a = who->agent;
    struct sync_thread *t = &a->threads[who->thread];
    int64_t count;
    struct sync_mbarrier *m = tir_sync_mbarriers(r, a, inst, inst->operands[TIR_BAR], cta, &count);
    if (!m || !tir_sync_is_ready(r, who, m, inst) ||
        !tir_sync_count(r, who, m, inst, (int64_t)who->lanes * a->warps))
        return;
    m->arriving.known[t->core] = TIR_MAX(m->arriving.known[t->core], t->core_closed);
    // The arrival comes after the products, and these after what the thread had waited for. It
    // tells nothing of the thread's own accesses.
    for (uint32_t i = 0; i < r->strand_count; i++)
        m->arriving.known[i] = TIR_MAX(m->arriving.known[i], t->clock.known[i]);
    if (cta != a->cta)
        tir_sync_note_far(
            r, cta, &(struct sync_record){.by = inst, .strand = t->core, .at = t->core_closed});
    tir_sync_pass(a);
    tir_sync_complete(r, m, inst);
}

void tir_sync_commit(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_thread *t = &who->agent->threads[who->thread];
    uint32_t ctas;
    if (!committed_ctas(r, who->agent, inst, &ctas))
        return;
    t->core_closed++;
    t->core_open = NULL;
    tir_sync_use_strand(r, &t->core);
    for (uint32_t c = 0; c < r->p->ctas && r->outcome == SYNC_GOING; c++)
        if (ctas >> c & 1)
            arrive_when_done(r, who, inst, c);
}

// Fences.

// What the acting lanes did in tensor memory may be handed on from now on: by what passes on this
// event.
static void fence_before(struct sync_run *r, const struct sync_who *who)
{
    struct sync_agent *a = who->agent;
    tir_sync_pass(a);
    for (uint32_t i = 0; i < r->p->roots.len; i++) {
        if (!r->p->roots.at[i].is_tmem)
            continue;
        struct sync_shadow *s = &r->shadows[a->cta * r->p->roots.len + i];
        vec_foreach(struct sync_record, record, &s->records) {
            const bool mine = record->agent == a->id &&
                              (!who->thread || record->strand == a->threads[who->thread].data);
            if (mine && !record->told)
                record->told = a->all.known[a->events];
        }
    }
}

static void fence_after(struct sync_run *r, const struct sync_who *who)
{
    struct sync_agent *a = who->agent;
    for (uint32_t i = 0; i < a->thread_count; i++) {
        struct sync_thread *t = &a->threads[i];
        if (who->thread && i != who->thread)
            continue;
        memcpy(t->after, t->clock.known, r->strand_count * sizeof *t->after);
    }
}

void tir_sync_fence_tmem(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst)
{
    if (tir_attr_word(inst, TIR_ATTR_of, TIR_WORD_NONE) == TIR_WORD_of_before_thread_sync)
        fence_before(r, who);
    else
        fence_after(r, who);
}

// Places.

void tir_sync_columns(const struct sync_root *root, const struct sync_box *box, int64_t *begin,
                      int64_t *end)
{
    const struct tir_type *t = root->alloc->type;
    const uint32_t row = t->rank - 2, column = t->rank - 1;
    const bool is_pair = tir_tmem_is_pair(root->alloc);
    const int64_t first = tir_attr_int(root->alloc->def, TIR_ATTR_column, 0);
    int64_t low = 0, high = 0, buffers = 1;
    for (uint32_t d = 0; d < row; d++) {
        low = low * t->shape[d] + box->begin[d];
        high = high * t->shape[d] + box->begin[d] + box->size[d] - 1;
        buffers *= t->shape[d];
    }
    const int64_t each = tir_tmem_columns(t, is_pair) / buffers;
    low *= each;
    high *= each;
    // Scales and folded rows lie otherwise, and one buffer is all that is known.
    if (tir_tmem_is_scales(t) || tir_tmem_folds(t->shape[row], is_pair)) {
        high += each;
    } else {
        const int64_t bits = tir_elems[t->elem].bits, last = box->begin[column] + box->size[column];
        const int64_t of_row = t->shape[column] * bits / 32;
        low += box->begin[row] / TIR_TMEM_LANES * of_row + box->begin[column] * bits / 32;
        high += (box->begin[row] + box->size[row] - 1) / TIR_TMEM_LANES * of_row +
                tir_ceil_div(last * bits, 32);
    }
    *begin = first + low;
    *end = first + high;
}

// Lanes.

// The quarters of the lanes that an agent's warps reach, as bits.
static uint32_t quarters_of(const struct sync_agent *a)
{
    uint32_t quarters = 0;
    for (uint32_t w = 0; w < TIR_MIN(a->warps, 4); w++)
        quarters |= 1u << (a->first_warp + w) % 4;
    return quarters;
}

static bool is_by_warps(const struct sync_record *record)
{
    return (record->by->op == TIR_OP_LOAD || record->by->op == TIR_OP_STORE) &&
           tir_ref_base(record->by)->type->space == TIR_SPACE_TMEM;
}

bool tir_sync_in_own_lanes(const struct sync_run *r, const struct sync_record *old,
                           const struct sync_record *now, bool *all)
{
    if (!is_by_warps(old) || !is_by_warps(now))
        return false;
    const struct sync_agent *a = &r->agents[old->agent], *b = &r->agents[now->agent];
    *all = !(quarters_of(a) & quarters_of(b));
    return *all || (a == b && a->warps <= 4);
}

// Order.

// K of one instruction of a product, which has 32 bytes of a row: a part of its shape.
static uint32_t depth_of(const struct tir_inst *gemm)
{
    const enum tir_elem elem = gemm->operands[TIR_DOT_A]->type->elem;
    const bool is_packed = elem == TIR_U8 && gemm->operands[TIR_GEMM_SA];
    return TIR_SCALED_BYTES * 8 / tir_elems[elem].bits * (is_packed ? 2 : 1);
}

bool tir_sync_in_pipeline(const struct sync_record *old, const struct sync_record *now)
{
    if (!old->core || !now->core || old->strand != now->strand || now->by->op != TIR_OP_GEMM_TMEM)
        return false;
    return old->by->op == TIR_OP_TMEM_COPY ||
           (old->access == SYNC_WRITE && now->access == SYNC_WRITE &&
            depth_of(old->by) == depth_of(now->by) &&
            !memcmp(&old->box, &now->box, sizeof old->box));
}

const char *tir_sync_lacks_fence(const struct sync_run *r, const struct sync_who *who,
                                 const struct sync_record *old, const struct sync_record *now)
{
    const struct sync_thread *t = &who->agent->threads[who->thread];
    if ((old->access == SYNC_READ && now->access == SYNC_READ) ||
        (!old->core && old->agent == who->agent->id) || tir_sync_in_pipeline(old, now))
        return NULL;
    const uint16_t events = r->agents[old->agent].events;
    if (!old->core && (!old->told || t->clock.known[events] < old->told))
        return "before_thread_sync) after it, before what hands it on";
    return t->after[old->strand] < old->at ? "after_thread_sync) between the wait and this" : NULL;
}

void tir_sync_check_core(struct sync_run *r, uint32_t cta, const struct sync_clock *end)
{
    for (uint32_t i = 0; i < r->agent_count; i++) {
        const struct sync_agent *a = &r->agents[i];
        for (uint32_t k = 0; a->cta == cta && k < a->thread_count; k++) {
            const struct sync_thread *t = &a->threads[k];
            if (!t->core_last || (!t->core_open && end->known[t->core] >= t->core_closed))
                continue;
            tir_sync_fail(r, TIR_E_SYNC_RACE, t->core_last, NULL, NULL,
                          "the kernel may end while this %s is in flight: no %s",
                          t->core_last->op == TIR_OP_TMEM_COPY ? "copy" : "product",
                          t->core_open ? "commit after it" : "wait for the mbarrier of its commit");
            return;
        }
    }
}
