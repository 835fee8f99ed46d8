// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on operations: the reads and writes of each, in shared memory and in registers that a
// product still writes.
//
// Groups of cp.async, of products and of bulk stores are strands: an operation belongs to the group
// that the next commit closes, and a wait for all but n groups makes the older ones known. A wait
// for cp.async or stores tells only the waiting thread, about its own.
//
// A product is one operation of four warps: wgmma.mma_async is performed "across a warpgroup", and
// wgmma.commit_group makes a "new wgmma-group per warpgroup" (PTX ISA, asynchronous
// warpgroup-level matrix instructions). So a warp that has waited for a group knows that all four
// warps have reached it, and that the group no longer reads shared memory.

#include "pass/sync_check/sync_check.h"

static uint64_t box_hash(const struct sync_buffer *b)
{
    uint64_t h = b->root;
    for (uint32_t d = 0; d < b->rank; d++)
        h = tir_sync_mix(h, b->dim[d]);
    for (uint32_t d = 0; d < TIR_MAX_RANK; d++)
        h = tir_sync_mix(tir_sync_mix(h, (uint64_t)b->box.begin[d]), (uint64_t)b->box.size[d]);
    return h;
}

// Equal for accesses that give each thread of the CTA's role the same elements; 0: nothing is
// known.
static uint64_t same_elements(const struct sync_run *r, const struct sync_agent *a,
                              const struct tir_inst *inst, const struct tir_type *tile,
                              const struct sync_buffer *b)
{
    uint64_t h = tir_sync_mix(tir_sync_mix(UINT64_C(0x5bd1e995), sync_crew_key(a) + 1), a->cta);
    bool writes = inst->op == TIR_OP_STORE;
    if (!tile->rank && (!writes || tir_is_by_thread(r->p->f, inst)))
        return 0; // one element, by any thread that reaches it
    if (!tile->rank || !tile->layout || tile->layout->replica_count) {
        if (!writes)
            return 0;
        h = tir_sync_mix(h, inst->id + 1); // every copy stores the same
    }
    h = tir_sync_mix(h, (uint64_t)(uintptr_t)tile->layout);
    return tir_sync_mix(h, box_hash(b)) | 1;
}

static const struct sync_buffer *buffer_of(struct sync_run *r, const struct sync_agent *a,
                                           const struct tir_inst *inst, const struct tir_value *v)
{
    struct sync_value of = tir_sync_value(r, a, v);
    if (of.kind == SYNC_BUFFER)
        return of.buffer;
    tir_sync_unchecked(r->p, inst, "which buffer it touches depends on data");
    return NULL;
}

// By all lanes, or by the one that acts; in program order with what that thread does.
static struct sync_record ordinary(const struct sync_who *who, const struct tir_inst *inst,
                                   enum sync_access access)
{
    uint16_t strand = who->agent->threads[who->thread].data;
    return (struct sync_record){.by = inst,
                                .access = (uint8_t)access,
                                .strand = strand,
                                .at = who->agent->all.known[strand]};
}

static void note_crew(const struct sync_agent *a, struct sync_record *record)
{
    if (!a->role_id && !a->within.scope)
        return;
    record->first_warp = (uint8_t)a->within.first;
    record->end_warp = (uint8_t)(a->within.first + a->within.warps);
}

static struct sync_record grouped(const struct tir_inst *inst, enum sync_access access,
                                  uint16_t strand, uint32_t closed, bool async)
{
    return (struct sync_record){
        .by = inst, .access = (uint8_t)access, .strand = strand, .at = closed + 1, .async = async};
}

// By an index tile.
static bool is_indexed(const struct tir_inst *inst)
{
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    bool indexed = false;
    for (uint32_t d = 0; d < box->list_count; d++)
        indexed |= box->list[d] < 0;
    return indexed;
}

static void access_slice(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst, const struct tir_type *tile,
                         enum sync_access access)
{
    struct tir_value *base = tir_ref_base(inst);
    bool tensor = bitset_has(&r->p->tensors, base->id);
    if (!tensor && base->type->space != TIR_SPACE_SHARED &&
        base->type->space != TIR_SPACE_CLUSTER && base->type->space != TIR_SPACE_TMEM)
        return;
    // Where a masked store stores depends on data, as does an index tile; of a tile that begins
    // before the tensor a part is nowhere.
    bool indexed = tensor && is_indexed(inst);
    bool in_part = indexed || (tensor && access != SYNC_READ && inst->operands[TIR_STORE_MASK]);
    for (uint32_t d = 0; tensor && d < base->type->rank; d++) {
        struct sync_value at = tir_sync_value(r, who->agent, tir_ref_indices(inst)[d]);
        in_part |= at.kind == SYNC_INT && at.number < 0;
    }
    if (in_part && !r->p->by_hand)
        return;
    const struct sync_buffer *of = buffer_of(r, who->agent, inst, base);
    if (!of)
        return;
    struct sync_buffer b;
    tir_sync_view(who->agent, inst, of, &b);
    struct sync_record record = ordinary(who, inst, access);
    note_crew(who->agent, &record);
    record.layout = tile->layout;
    memcpy(record.dims, b.dim, sizeof record.dims);
    record.same = indexed ? 0 : same_elements(r, who->agent, inst, tile, &b);
    b.exact &= !in_part;
    if (!tile->rank && !in_part)
        tir_sync_points(r, who, inst, of, &record);
    tir_sync_note_place(r, &b, &record);
    bool each = access == SYNC_WRITE && tir_sync_is_by_threads(r->p, inst) &&
                !inst->operands[TIR_STORE_MASK];
    // Many leave one value in a tensor on purpose, such as a sum that all of them have.
    if (each && tensor)
        each = tir_sync_varies(r->p, inst->operands[TIR_STORE_VALUE]);
    each = each && record.points;
    if (each)
        tir_sync_check_apart(r, inst, of, &record);
    const bool by_groups = tile->rank && who->agent->within.groups > 1; // each has its own tile
    if (each || by_groups || !r->p->roots.at[of->root].only_stored)
        tir_sync_access(r, who, &b, record);
    // All lanes of a warp execute it together (PTX ISA, tcgen05.ld, .sync.aligned).
    if (base->type->space == TIR_SPACE_TMEM && tir_sync_all_come(r, who, inst, SYNC_WARPS))
        tir_sync_warp(r, who->agent);
    if (access == SYNC_WRITE && record.points && r->p->roots.at[b.root].has_cells) {
        struct sync_value value = tir_sync_value(r, who->agent, inst->operands[TIR_STORE_VALUE]);
        tir_sync_keep(r, who, &value, &b, &record);
    }
}

// Scratch is written, all threads meet, it is read.
static bool through_scratch(struct sync_run *r, const struct sync_who *who,
                            const struct tir_inst *inst, const struct tir_value *scratch)
{
    struct sync_agent *a = who->agent;
    const struct sync_buffer *b = scratch ? buffer_of(r, a, inst, scratch) : NULL;
    if (!b)
        return true;
    struct sync_record record = ordinary(who, inst, SYNC_WRITE);
    record.same =
        tir_sync_mix(tir_sync_mix(sync_crew_key(a) + 1, inst->id), UINT64_C(0x27d4eb2f)) | 1;
    if (a->stage == 0) {
        tir_sync_access(r, who, b, record);
        if (r->outcome != SYNC_GOING)
            return true;
    }
    if (!tir_sync_role_barrier(r, who, inst))
        return false;
    if (r->outcome == SYNC_GOING)
        tir_sync_access(r, who, b, ordinary(who, inst, SYNC_READ));
    return true;
}

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
static void push(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    int64_t count;
    const struct tir_value *base = tir_ref_base(inst);
    const struct sync_buffer *of = buffer_of(r, who->agent, inst, base);
    struct sync_mbarrier *m =
        of ? tir_sync_mbarriers(r, who->agent, inst, inst->operands[TIR_PUSH_MBAR], of->cta, &count)
           : NULL;
    if (!m || !tir_sync_is_ready(r, who, m, inst))
        return;
    tir_sync_note_early(r, who, m, inst);
    struct sync_buffer there;
    tir_sync_view(who->agent, inst, of, &there);
    struct sync_record record = grouped(inst, SYNC_WRITE, m->strand, m->completed, false);
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
        tir_sync_unchecked(r->p, inst, "which mbarrier it is depends on data");
        r->outcome = SYNC_GIVEN_UP;
        return false;
    }
    *out = (cta & ~1u) | (v.buffer->cta & 1);
    if (!inst->operands[TIR_COPY_CTAS] && *out != v.buffer->cta)
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, inst, NULL, NULL,
                      "CTA %u copies, and the mbarrier is in CTA %u, which is not in its pair", cta,
                      v.buffer->cta);
    return r->outcome == SYNC_GOING;
}

// The engine writes all of `to` there, and then tells `bar`.
static void start_in_cta(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst, const struct sync_buffer *to,
                         const struct tir_value *bar, uint32_t cta)
{
    uint32_t signalled;
    int64_t count, bits = tir_elems[inst->operands[TIR_COPY_TO]->type->elem].bits;
    if (!signalled_cta(r, who->agent, inst, bar, cta, &signalled))
        return;
    struct sync_mbarrier *m = tir_sync_mbarriers(r, who->agent, inst, bar, signalled, &count);
    if (!m || !tir_sync_is_ready(r, who, m, inst))
        return;
    tir_sync_note_early(r, who, m, inst);
    struct sync_buffer there = *to;
    there.cta = cta;
    tir_sync_access(r, who, &there, grouped(inst, SYNC_WRITE, m->strand, m->completed, true));
    if (r->outcome != SYNC_GOING)
        return;
    for (uint32_t d = 0; d < TIR_MAX_RANK; d++)
        bits *= TIR_MAX(to->box.size[d], 1);
    bring(r, who, inst, m, bits / 8);
}

// To another CTA: what is copied is read until the bytes have arrived at the mbarrier there, which
// this CTA hears of by others.
static void send(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst,
                 const struct sync_buffer *to)
{
    int64_t count;
    const struct sync_buffer *of = buffer_of(r, who->agent, inst, tir_ref_base(inst));
    const struct sync_mbarrier *m =
        tir_sync_mbarriers(r, who->agent, inst, inst->operands[TIR_COPY_MBAR], to->cta, &count);
    if (!of || !m)
        return;
    struct sync_buffer from;
    tir_sync_view(who->agent, inst, of, &from);
    struct sync_record record = grouped(inst, SYNC_READ, m->strand, m->completed, true);
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
    tir_sync_view(who->agent, inst, tir_sync_value(r, who->agent, tensor).buffer, &part);
    part.exact &= !is_indexed(inst);
    uint32_t threads = who->lanes * who->agent->warps;
    if (record.access == SYNC_WRITE && part.exact && threads > 1)
        tir_sync_fail(r, TIR_E_SYNC_RACE, inst, NULL, NULL,
                      "%u threads each start this copy to one part of %s, and nothing orders them",
                      threads, tensor->name);
    tir_sync_access(r, who, &part, record);
}

static void read_tensor(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    int64_t count;
    if (!inst->operands[TIR_COPY_MBAR]) {
        struct sync_record record =
            grouped(inst, SYNC_READ, tir_sync_use_strand(r, &a->copies), a->copies_batch, false);
        record.grouped = true;
        note_crew(a, &record);
        touch_tensor(r, who, inst, record);
        return;
    }
    const struct sync_mbarrier *m =
        tir_sync_mbarriers(r, a, inst, inst->operands[TIR_COPY_MBAR], UINT32_MAX, &count);
    if (m)
        touch_tensor(r, who, inst, grouped(inst, SYNC_READ, m->strand, m->completed, true));
}

static void copy(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    const struct sync_buffer *to = buffer_of(r, a, inst, inst->operands[TIR_COPY_TO]);
    if (to && tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL)
        read_tensor(r, who, inst);
    if (!to || r->outcome != SYNC_GOING)
        return;
    if (!inst->operands[TIR_COPY_MBAR]) {
        struct sync_record record =
            grouped(inst, SYNC_WRITE, tir_sync_use_strand(r, &a->copies), a->copies_batch, false);
        record.same = tir_sync_mix(tir_sync_mix(inst->id, sync_crew_key(a)), box_hash(to)) | 1;
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
        tir_sync_unchecked(r->p, inst, "which CTAs get it depends on data");
        r->outcome = SYNC_GIVEN_UP;
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

static void request(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    const struct sync_buffer *to = buffer_of(r, a, inst, inst->operands[TIR_CANCEL_TO]);
    const bool multicast = tir_attr_int(inst, TIR_ATTR_multicast, 0);
    if (!to || !may_request(r, who, inst))
        return;
    // Loops that ask again and again have to end: a replay has only so many rounds for them.
    const bool is_last = a->visits[inst->id] >= 6 * r->most;
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

static void query(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    const struct sync_buffer *b = buffer_of(r, a, inst, inst->operands[TIR_CANCEL_RESPONSE]);
    if (!b)
        return;
    tir_sync_access(r, who, b, ordinary(who, inst, SYNC_READ));
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

static void store_bulk(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    struct sync_thread *t = &who->agent->threads[who->thread];
    const struct tir_value *from = inst->operands[0];
    if (from->type->space != TIR_SPACE_SHARED)
        return;
    const struct sync_buffer *b = buffer_of(r, who->agent, inst, from);
    uint16_t strand = tir_sync_use_strand(r, &t->bulk);
    if (b)
        tir_sync_access(r, who, b, grouped(inst, SYNC_READ, strand, t->bulk_closed, true));
    t->bulk_open = t->bulk_last = inst;
    if (r->outcome != SYNC_GOING)
        return;
    enum sync_access access = tir_attr_find(inst, TIR_ATTR_kind) ? SYNC_UPDATE : SYNC_WRITE;
    strand = tir_sync_use_strand(r, &t->wrote);
    touch_tensor(r, who, inst, grouped(inst, access, strand, t->bulk_closed, true));
}

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

static void product(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
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
        const struct sync_buffer *b =
            v->type->space == TIR_SPACE_VALUE ? NULL : buffer_of(r, a, inst, v);
        if (b)
            tir_sync_access(r, who, b, grouped(inst, SYNC_READ, strand, a->wgmma_closed, true));
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

// A warp that allocates tensor memory stores the address, once.
static void store_address(struct sync_run *r, const struct sync_who *who,
                          const struct tir_inst *inst)
{
    const struct sync_buffer *b = buffer_of(r, who->agent, inst, inst->operands[0]);
    struct sync_record record = ordinary(who, inst, SYNC_WRITE);
    record.same = tir_sync_mix(inst->id, who->agent->id) | 1;
    if (tir_sync_all_come(r, who, inst, SYNC_SAME) && b)
        tir_sync_access(r, who, b, record);
}

bool tir_sync_access_op(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_LOAD:
        access_slice(r, who, inst, inst->results[0]->type, SYNC_READ);
        return true;
    case TIR_OP_STORE:
        access_slice(r, who, inst, inst->operands[TIR_STORE_VALUE]->type, SYNC_WRITE);
        return true;
    case TIR_OP_ATOMIC:
        if (who->agent->stage == 0)
            access_slice(r, who, inst, inst->operands[TIR_STORE_VALUE]->type, SYNC_UPDATE);
        return r->outcome != SYNC_GOING ||
               through_scratch(r, who, inst, inst->operands[TIR_ATOMIC_SCRATCH]);
    case TIR_OP_REDUCE:
    case TIR_OP_SCAN:
    case TIR_OP_CONVERT_LAYOUT:
        return through_scratch(r, who, inst, inst->operands[TIR_REDUCE_SCRATCH]);
    case TIR_OP_DOT:
        for (uint32_t i = 0; i < inst->operand_count && r->outcome == SYNC_GOING; i++) {
            const struct tir_value *v = inst->operands[i];
            const struct sync_buffer *b =
                !v || v->type->space == TIR_SPACE_VALUE ? NULL : buffer_of(r, who->agent, inst, v);
            if (b)
                tir_sync_access(r, who, b, ordinary(who, inst, SYNC_READ));
        }
        return true;
    case TIR_OP_COPY_ASYNC:
        copy(r, who, inst);
        return true;
    case TIR_OP_PUSH:
        push(r, who, inst);
        return true;
    case TIR_OP_TRY_CANCEL:
        request(r, who, inst);
        return true;
    case TIR_OP_IS_CANCELED:
    case TIR_OP_FIRST_CTAID:
        query(r, who, inst);
        return true;
    case TIR_OP_STORE_ASYNC:
        store_bulk(r, who, inst);
        return true;
    case TIR_OP_GEMM_ASYNC:
        product(r, who, inst);
        return true;
    case TIR_OP_GEMM_TMEM:
    case TIR_OP_TMEM_COPY:
        tir_sync_core(r, who, inst);
        return true;
    case TIR_OP_TMEM_ALLOC:
        store_address(r, who, inst);
        return true;
    default:
        return true;
    }
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
