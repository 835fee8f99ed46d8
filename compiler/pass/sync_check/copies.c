// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on copies: what engines read and write while threads go on, and whom they tell when
// they have.

#include "pass/sync_check/access.h"

// That what a thread started is done shows how far the thread had come, and others of whom it had
// heard. It tells nothing of their accesses.
static void release_progress(const struct sync_run *r, const struct sync_who *who,
                             struct sync_mbarrier *m)
{
    const struct sync_agent *a = who->agent;
    for (uint32_t i = 0; i < r->agent_count; i++) {
        const uint16_t events = r->agents[i].events;
        uint32_t at = a->threads[who->thread].clock.known[events];
        at = i == a->id ? a->all.known[events] : at;
        m->arriving.known[events] = TIR_MAX(m->arriving.known[events], at);
    }
}

// The bytes of all that acting threads started with inst have come to the mbarrier.
static void bring(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst,
                  struct sync_mbarrier *m, int64_t bytes)
{
    const struct sync_agent *a = who->agent;
    m->bytes -= bytes * who->lanes * a->warps;
    m->copy = inst;
    m->copy_phase = m->completed + 1;
    // A completed copy shows that the thread that started it had done its waits.
    m->arriving.known[a->events] = TIR_MAX(m->arriving.known[a->events], a->all.known[a->events]);
    if (inst->op == TIR_OP_PUSH || inst->op == TIR_OP_TRY_CANCEL ||
        inst->operands[TIR_COPY_TO]->type->space == TIR_SPACE_CLUSTER ||
        inst->operands[TIR_COPY_MBAR]->type->space == TIR_SPACE_CLUSTER)
        release_progress(r, who, m); // the CTA there has no other word of this one
    tir_sync_pass(who->agent);
    tir_sync_complete(r, m, inst);
}

// Asynchronous stores by single threads: no two of them are in order, not even those of one thread.
void tir_sync_push(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    int64_t count;
    const struct tir_value *base = tir_ref_base(inst);
    const struct sync_buffer *of = tir_sync_buffer_of(r, who->agent, inst, base);
    struct sync_mbarrier *m =
        of ? tir_sync_mbarriers(r, who->agent, inst, inst->operands[TIR_PUSH_MBAR], of->cta, &count)
           : NULL;
    if (!m || !tir_sync_is_ready(r, who, m, inst))
        return;
    tir_sync_note_early(r, who, m, inst);
    struct sync_buffer there;
    tir_sync_view(who->agent, inst, of, &there);
    struct sync_record record = tir_sync_grouped(inst, SYNC_WRITE, m->strand, m->completed, false);
    tir_sync_points(r, who, inst, of, &record);
    record.same = 0;
    if (record.points)
        tir_sync_check_apart(r, inst, of, &record);
    if (r->outcome == SYNC_GOING)
        tir_sync_access(r, who, &there, record);
    if (r->outcome == SYNC_GOING)
        bring(r, who, inst, m, tir_elems[base->type->elem].bits / 8);
}

// The CTA whose mbarrier hears of a copy that CTA cta receives (PTX ISA, cp.async.bulk.tensor): of
// its pair the one with the parity of the CTA that is named, or else itself. False: reported.
static bool signalled_cta(struct sync_run *r, const struct sync_agent *a,
                          const struct tir_inst *inst, const struct tir_value *bar, uint32_t cta,
                          uint32_t *out)
{
    *out = cta;
    if (bar->type->space != TIR_SPACE_CLUSTER)
        return true;
    const struct sync_value v = tir_sync_value(r, a, bar);
    if (v.kind != SYNC_BUFFER) {
        tir_sync_end_at(r, inst, "which mbarrier it is depends on data");
        return false;
    }
    *out = (cta & ~1u) | (v.buffer->cta & 1);
    if (!inst->operands[TIR_COPY_CTAS] && *out != v.buffer->cta)
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, inst, NULL, NULL,
                      "CTA %u copies, and the mbarrier is in CTA %u, which is not in its pair", cta,
                      v.buffer->cta);
    return r->outcome == SYNC_GOING;
}

// Does thread i of the agent act?
static bool acts(const struct sync_who *who, uint32_t i)
{
    return !who->mask || who->mask[i / SYNC_LANES] >> i % SYNC_LANES & 1;
}

// Do two threads write one part, of which each has its place by its own numbers? What data decides
// is left out. ref: says the part, of a buffer of this rank.
static bool parts_meet(const struct sync_run *r, const struct sync_agent *a,
                       const struct tir_inst *ref, uint32_t rank, uint32_t i, uint32_t j)
{
    const struct tir_attr *box = tir_attr_find(ref, TIR_ATTR_box);
    for (uint32_t d = 0; d < rank; d++) {
        const struct sync_value index = tir_sync_value(r, a, tir_ref_indices(ref)[d]);
        if (index.kind != SYNC_INT && index.kind != SYNC_EACH)
            return false;
        if (index.kind == SYNC_EACH && box->list[d] >= 0 &&
            llabs(index.each[i] - index.each[j]) >= TIR_MAX(box->list[d], 1))
            return false;
    }
    return true;
}

// Threads that start a copy in one statement write parts of their own, or nothing orders them.
// ref: says the part of `of`; is_one: it is the same for all threads.
static bool are_parts_apart(struct sync_run *r, const struct sync_who *who,
                            const struct tir_inst *inst, const struct tir_inst *ref,
                            const struct sync_buffer *of, bool is_one, const char *name)
{
    const struct sync_agent *a = who->agent;
    const uint32_t count = a->warps * SYNC_LANES;
    const bool is_known = who->mask || who->lanes == SYNC_LANES; // which lanes these are
    if (who->lanes * a->warps == 1)
        return true;
    if (is_one) {
        tir_sync_fail(r, TIR_E_SYNC_RACE, inst, NULL, NULL,
                      "%u threads each start this copy to one part of %s, and nothing orders them",
                      who->lanes * a->warps, name);
        return false;
    }
    if (!is_known || !of || !of->exact || of->reshaped)
        return true;
    r->p->work += count * count / 64;
    for (uint32_t j = 1; j < count; j++)
        for (uint32_t i = 0; i < j; i++) {
            if (!acts(who, i) || !acts(who, j) || !parts_meet(r, a, ref, of->rank, i, j))
                continue;
            tir_sync_fail(r, TIR_E_SYNC_RACE, inst, NULL, NULL,
                          "threads %u and %u copy to one part of %s in this statement",
                          a->first_warp * SYNC_LANES + i, a->first_warp * SYNC_LANES + j, name);
            return false;
        }
    return true;
}

// The same of a part of shared memory, which a view says, if it is not a whole buffer.
static bool are_views_apart(struct sync_run *r, const struct sync_who *who,
                            const struct tir_inst *inst, const struct sync_buffer *to)
{
    const struct tir_inst *view = inst->operands[TIR_COPY_TO]->def;
    const char *name = r->p->roots.at[to->root].alloc->name;
    const struct sync_buffer *of = NULL;
    if (!to->exact && view && view->op == TIR_OP_VIEW)
        of = tir_sync_buffer_of(r, who->agent, view, tir_ref_base(view));
    return are_parts_apart(r, who, inst, view, of, to->exact, name ? name : "a shared buffer");
}

// The engine writes all of `to` there, and then tells `bar`.
static void start_in_cta(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst, const struct sync_buffer *to,
                         const struct tir_value *bar, uint32_t cta)
{
    uint32_t signalled;
    const uint32_t packed = tir_copy_packed(inst);
    const struct tir_type *part = inst->operands[TIR_COPY_TO]->type; // wherever it begins
    const int64_t bits = tir_type_count(part) * (packed ? packed : tir_elems[part->elem].bits);
    int64_t count;
    if (!signalled_cta(r, who->agent, inst, bar, cta, &signalled))
        return;
    struct sync_mbarrier *m = tir_sync_mbarriers(r, who->agent, inst, bar, signalled, &count);
    if (!m || !tir_sync_is_ready(r, who, m, inst))
        return;
    tir_sync_note_early(r, who, m, inst);
    if (!are_views_apart(r, who, inst, to))
        return;
    struct sync_buffer there = *to;
    there.cta = cta;
    tir_sync_access(r, who, &there,
                    tir_sync_grouped(inst, SYNC_WRITE, m->strand, m->completed, true));
    if (r->outcome != SYNC_GOING)
        return;
    bring(r, who, inst, m, bits / 8);
}

// To another CTA: what is copied is read until the bytes have arrived at the mbarrier there, which
// this CTA hears of by others.
static void send(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst,
                 const struct sync_buffer *to)
{
    int64_t count;
    const struct sync_buffer *of = tir_sync_buffer_of(r, who->agent, inst, tir_ref_base(inst));
    const struct sync_mbarrier *m =
        tir_sync_mbarriers(r, who->agent, inst, inst->operands[TIR_COPY_MBAR], to->cta, &count);
    if (!of || !m)
        return;
    struct sync_buffer from;
    tir_sync_view(who->agent, inst, of, &from);
    struct sync_record record = tir_sync_grouped(inst, SYNC_READ, m->strand, m->completed, true);
    tir_sync_access(r, who, &from, record);
    if (r->outcome != SYNC_GOING)
        return;
    tir_sync_note_far(r, who->agent->cta, &record);
    start_in_cta(r, who, inst, to, inst->operands[TIR_COPY_MBAR], to->cta);
}

// What a copy engine reads or writes of a tensor that is looked at.
static void touch_tensor(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst, struct sync_record record)
{
    const struct tir_value *tensor = tir_ref_base(inst);
    if (!bitset_has(&r->p->tensors, tensor->id))
        return;
    struct sync_buffer part;
    const struct sync_buffer *all = tir_sync_value(r, who->agent, tensor).buffer;
    tir_sync_view(who->agent, inst, all, &part);
    tir_sync_note_reach(r, who, inst);
    const bool is_of_pixels = inst->op == TIR_OP_COPY_ASYNC && tir_copies_pixels(inst);
    if (is_of_pixels) // from there on
        part = *all;
    part.exact &= !tir_sync_is_indexed(inst) && !is_of_pixels;
    if (record.access == SYNC_WRITE)
        are_parts_apart(r, who, inst, inst, all, part.exact, tensor->name);
    tir_sync_access(r, who, &part, record);
}

static void read_tensor(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    int64_t count;
    if (!inst->operands[TIR_COPY_MBAR]) {
        struct sync_record record = tir_sync_grouped(
            inst, SYNC_READ, tir_sync_use_strand(r, &a->copies), a->copies_batch, false);
        record.grouped = true;
        tir_sync_note_crew(a, &record);
        touch_tensor(r, who, inst, record);
        return;
    }
    const struct sync_mbarrier *m =
        tir_sync_mbarriers(r, a, inst, inst->operands[TIR_COPY_MBAR], UINT32_MAX, &count);
    if (m)
        touch_tensor(r, who, inst,
                     tir_sync_grouped(inst, SYNC_READ, m->strand, m->completed, true));
}

void tir_sync_copy(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    const struct sync_buffer *to = tir_sync_buffer_of(r, a, inst, inst->operands[TIR_COPY_TO]);
    if (to && tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL)
        read_tensor(r, who, inst);
    if (!to || r->outcome != SYNC_GOING)
        return;
    if (!inst->operands[TIR_COPY_MBAR]) {
        struct sync_record record = tir_sync_grouped(
            inst, SYNC_WRITE, tir_sync_use_strand(r, &a->copies), a->copies_batch, false);
        record.same =
            tir_sync_mix(tir_sync_mix(inst->id, sync_crew_key(a)), tir_sync_box_hash(to)) | 1;
        record.grouped = true;
        a->copies_group = a->copies_batch + 1;
        a->copies_last = inst;
        tir_sync_access(r, who, to, record);
        return;
    }
    if (inst->operands[TIR_COPY_TO]->type->space == TIR_SPACE_CLUSTER) {
        send(r, who, inst, to);
        return;
    }
    if (!inst->operands[TIR_COPY_CTAS]) {
        start_in_cta(r, who, inst, to, inst->operands[TIR_COPY_MBAR], to->cta);
        return;
    }
    struct sync_value mask = tir_sync_value(r, a, inst->operands[TIR_COPY_CTAS]);
    if (mask.kind != SYNC_INT) {
        tir_sync_end_at(r, inst, "which CTAs get it depends on data");
        return;
    }
    for (uint32_t c = 0; c < r->p->ctas && r->outcome == SYNC_GOING; c++)
        if (mask.number >> c & 1)
            start_in_cta(r, who, inst, to, inst->operands[TIR_COPY_MBAR], c);
}

// Requests for the work of another CTA. PTX leaves undefined what a request does after the CTA has
// seen one fail. Nothing but the order between the two may keep it from coming later.
static bool may_request(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    const struct sync_agent *a = who->agent;
    if (who->lanes * a->warps > 1)
        tir_sync_fail(r, TIR_E_SYNC_RACE, inst, NULL, NULL,
                      "%u threads request here: each gets the work of another CTA, and one place "
                      "has all the answers",
                      who->lanes * a->warps);
    else if (r->refused[a->cta])
        tir_sync_fail(r, TIR_E_SYNC_CANCEL, inst, r->refused[a->cta], "this sees that one failed",
                      "the CTA requests again after it has seen a request fail");
    return r->outcome == SYNC_GOING;
}

void tir_sync_request(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    const struct sync_buffer *to = tir_sync_buffer_of(r, a, inst, inst->operands[TIR_CANCEL_TO]);
    const bool multicast = tir_attr_int(inst, TIR_ATTR_multicast, 0);
    if (!to || !may_request(r, who, inst))
        return;
    // Loops that ask again and again have to end: a replay has only so many rounds for them.
    const bool is_last = a->visits[inst->id] >= TIR_MAX(6 * r->most, r->setting->waves);
    const uint64_t number =
        is_last ? 0 : tir_sync_mix(tir_sync_mix(inst->id, a->id), ++r->writes) | 2;
    a->request = inst;
    a->request_at = a->all.known[a->events];
    for (uint32_t c = 0; c < r->p->ctas && r->outcome == SYNC_GOING; c++) {
        if (!multicast && c != a->cta)
            continue;
        start_in_cta(r, who, inst, to, inst->operands[TIR_CANCEL_BAR], c);
        struct sync_buffer there = *to;
        there.cta = c;
        if (r->outcome == SYNC_GOING)
            tir_sync_respond(r, &there, number);
    }
}

void tir_sync_query_op(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    const struct sync_buffer *b =
        tir_sync_buffer_of(r, a, inst, inst->operands[TIR_CANCEL_RESPONSE]);
    if (!b)
        return;
    tir_sync_access(r, who, b, tir_sync_ordinary(who, inst, SYNC_READ));
    if (r->outcome != SYNC_GOING || tir_sync_is_canceled(r, a, inst))
        return;
    r->refused[a->cta] = inst;
    for (uint32_t i = 0; i < r->agent_count && r->outcome == SYNC_GOING; i++) {
        const struct sync_agent *other = &r->agents[i];
        if (other != a && other->cta == a->cta && other->request &&
            tir_sync_clock(who)->known[other->events] < other->request_at)
            tir_sync_fail(r, TIR_E_SYNC_CANCEL, other->request, inst, "this sees that one failed",
                          "the CTA may request again after it has seen a request fail: nothing "
                          "orders this before");
    }
}

void tir_sync_store_bulk(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst)
{
    struct sync_thread *t = &who->agent->threads[who->thread];
    const struct tir_value *from = inst->operands[0];
    if (from->type->space != TIR_SPACE_SHARED)
        return;
    const struct sync_buffer *b = tir_sync_buffer_of(r, who->agent, inst, from);
    uint16_t strand = tir_sync_use_strand(r, &t->bulk);
    if (b)
        tir_sync_access(r, who, b, tir_sync_grouped(inst, SYNC_READ, strand, t->bulk_closed, true));
    t->bulk_open = t->bulk_last = inst;
    if (r->outcome != SYNC_GOING)
        return;
    enum sync_access access = tir_attr_find(inst, TIR_ATTR_kind) ? SYNC_UPDATE : SYNC_WRITE;
    strand = tir_sync_use_strand(r, &t->wrote);
    touch_tensor(r, who, inst, tir_sync_grouped(inst, access, strand, t->bulk_closed, true));
}

// The copies of the acting threads arrive at an mbarrier when they are done. Who waits for it knows
// of all copies so far if all threads of the agent commit theirs.
void tir_sync_commit_copies(struct sync_run *r, const struct sync_who *who,
                            const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    int64_t count;
    struct sync_mbarrier *m =
        tir_sync_mbarriers(r, a, inst, inst->operands[TIR_BAR], UINT32_MAX, &count);
    if (!m || !tir_sync_is_ready(r, who, m, inst) ||
        !tir_sync_count(r, who, m, inst, (int64_t)who->lanes * a->warps))
        return;
    const uint16_t strand = tir_sync_use_strand(r, &a->copies);
    if (who->lanes == SYNC_LANES && !who->mask) {
        m->arriving.known[strand] = ++a->copies_batch;
        a->copies_told = inst;
    }
    release_progress(r, who, m);
    tir_sync_pass(a);
    tir_sync_complete(r, m, inst);
}
