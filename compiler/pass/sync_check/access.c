// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on operations: the reads and writes of each, in shared memory, in tensors and in
// scratch.

#include "pass/sync_check/access.h"

uint64_t tir_sync_box_hash(const struct sync_buffer *b)
{
    uint64_t h = b->root;
    for (uint32_t d = 0; d < b->rank; d++)
        h = tir_sync_mix(h, b->dim[d]);
    for (uint32_t d = 0; d < TIR_MAX_RANK; d++)
        h = tir_sync_mix(tir_sync_mix(h, (uint64_t)b->box.begin[d]), (uint64_t)b->box.size[d]);
    return h;
}

bool tir_sync_is_indexed(const struct tir_inst *inst)
{
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    bool indexed = false;
    for (uint32_t d = 0; d < box->list_count; d++)
        indexed |= box->list[d] < 0;
    return indexed;
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
    // Of copies each one is loaded, and the first one is stored (lower_tile).
    if (!writes && tile->rank && tile->layout && tile->layout->replica_count)
        return 0;
    // The threads of one statement store where its index tile says.
    if (!tile->rank || !tile->layout || tir_sync_is_indexed(inst)) {
        if (!writes)
            return 0;
        h = tir_sync_mix(h, inst->id + 1);
    }
    // Warps access tensor memory as a whole, and each has the same lanes in every layout.
    if (tir_ref_base(inst)->type->space != TIR_SPACE_TMEM)
        h = tir_sync_mix(h, (uint64_t)(uintptr_t)tile->layout);
    return tir_sync_mix(h, tir_sync_box_hash(b)) | 1;
}

const struct sync_buffer *tir_sync_buffer_of(struct sync_run *r, const struct sync_agent *a,
                                             const struct tir_inst *inst, const struct tir_value *v)
{
    struct sync_value of = tir_sync_value(r, a, v);
    if (of.kind == SYNC_BUFFER)
        return of.buffer;
    tir_sync_unchecked(r->p, inst, "which buffer it touches depends on data");
    return NULL;
}

struct sync_record tir_sync_ordinary(const struct sync_who *who, const struct tir_inst *inst,
                                     enum sync_access access)
{
    uint16_t strand = who->agent->threads[who->thread].data;
    return (struct sync_record){.by = inst,
                                .access = (uint8_t)access,
                                .strand = strand,
                                .at = who->agent->all.known[strand]};
}

void tir_sync_note_crew(const struct sync_agent *a, struct sync_record *record)
{
    if (!a->role_id && !a->within.scope)
        return;
    record->first_warp = (uint8_t)a->within.first;
    record->end_warp = (uint8_t)(a->within.first + a->within.warps);
}

struct sync_record tir_sync_grouped(const struct tir_inst *inst, enum sync_access access,
                                    uint16_t strand, uint32_t closed, bool async)
{
    return (struct sync_record){
        .by = inst, .access = (uint8_t)access, .strand = strand, .at = closed + 1, .async = async};
}

// Do several threads store different values where their data says?
static bool is_scattered(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *store)
{
    uint32_t threads = 0;
    for (uint32_t i = 0; i < who->agent->warps * SYNC_LANES; i++)
        threads += !who->mask || who->mask[i / SYNC_LANES] >> i % SYNC_LANES & 1;
    if (threads < 2 || !tir_sync_varies_in_warp(r->p, store->operands[TIR_STORE_VALUE]))
        return false;
    for (uint32_t d = 0; d < tir_ref_base(store)->type->rank; d++) {
        const enum sync_kind kind = tir_sync_value(r, who->agent, tir_ref_indices(store)[d]).kind;
        if (kind != SYNC_INT && kind != SYNC_EACH)
            return true;
    }
    return false;
}

// All threads store one value by this statement, wherever that is: equal for agents that have it.
static uint64_t same_value(const struct sync_run *r, const struct sync_agent *a,
                           const struct tir_inst *store)
{
    const struct sync_keys *keys = tir_sync_keys(r->p, store->operands[TIR_STORE_VALUE]);
    if (!keys || keys->by_round)
        return 0;
    for (uint32_t i = 1; i < a->warps; i++)
        if (keys->warps[a->first_warp + i] != keys->warps[a->first_warp])
            return 0;
    return tir_sync_mix(store->id * SYNC_CTAS + a->cta, keys->warps[a->first_warp]) | 1;
}

static void access_slice(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst, const struct tir_type *tile,
                         enum sync_access access)
{
    struct tir_value *base = tir_ref_base(inst);
    bool tensor = bitset_has(&r->p->tensors, base->id);
    // What tile code does to one element, the first thread of its crew does (lower_tile).
    const bool by_one = !tile->rank && access != SYNC_READ && !tir_is_by_thread(r->p->f, inst);
    if (by_one && who->agent->first_warp != who->agent->within.first)
        return;
    if (!tensor && base->type->space != TIR_SPACE_SHARED &&
        base->type->space != TIR_SPACE_CLUSTER && base->type->space != TIR_SPACE_TMEM)
        return;
    // Where a masked store stores depends on data, as does an index tile; of a tile that begins
    // before the tensor a part is nowhere.
    const bool indexed = tir_sync_is_indexed(inst);
    bool in_part = tensor && (indexed || (access != SYNC_READ && inst->operands[TIR_STORE_MASK]));
    for (uint32_t d = 0; tensor && d < base->type->rank; d++) {
        struct sync_value at = tir_sync_value(r, who->agent, tir_ref_indices(inst)[d]);
        in_part |= at.kind == SYNC_INT && at.number < 0;
    }
    const struct sync_buffer *of = tir_sync_buffer_of(r, who->agent, inst, base);
    if (!of)
        return;
    struct sync_buffer b;
    tir_sync_view(who->agent, inst, of, &b);
    if (tensor)
        tir_sync_note_reach(r, who, inst);
    const bool anywhere = tir_sync_reads_anywhere(r->p, inst);
    if (anywhere) {
        b.box = of->box;
        b.exact = true;
    }
    struct sync_record record = tir_sync_ordinary(who, inst, access);
    tir_sync_note_crew(who->agent, &record);
    // What an index tile names is not where the layout says.
    record.layout = b.reshaped || (indexed && !tensor) ? NULL : tile->layout;
    memcpy(record.dims, b.dim, sizeof record.dims);
    record.same =
        (tensor && indexed) || anywhere ? 0 : same_elements(r, who->agent, inst, tile, &b);
    b.exact &= !in_part;
    if (!tile->rank && !in_part && !anywhere)
        tir_sync_points(r, who, inst, of, &record);
    if (tensor && access == SYNC_WRITE && !tile->rank && !record.points && !in_part &&
        tir_is_by_thread(r->p->f, inst))
        record.same = same_value(r, who->agent, inst);
    tir_sync_note_place(r, &b, &record);
    const bool by_threads = access == SYNC_WRITE && tir_sync_is_by_threads(r->p, inst) &&
                            !inst->operands[TIR_STORE_MASK];
    bool each = by_threads;
    // Many leave one value in a tensor on purpose, such as a sum that all of them have.
    if (each && tensor)
        each = tir_sync_varies(r->p, inst->operands[TIR_STORE_VALUE]) ||
               tir_sync_warps_differ(r->p, inst->operands[TIR_STORE_VALUE]);
    if (each && !tensor && !record.points && is_scattered(r, who, inst))
        tir_sync_unchecked(r->p, inst, "where it is in shared memory depends on data");
    each = each && record.points;
    if (each)
        tir_sync_check_apart(r, inst, of, &record);
    const bool by_groups = tile->rank && who->agent->within.groups > 1; // each has its own tile
    if (each || (by_threads && record.keys) || by_groups || !r->p->roots.at[of->root].only_stored)
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
    const struct sync_buffer *b = scratch ? tir_sync_buffer_of(r, a, inst, scratch) : NULL;
    if (!b)
        return true;
    struct sync_record record = tir_sync_ordinary(who, inst, SYNC_WRITE);
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
        tir_sync_access(r, who, b, tir_sync_ordinary(who, inst, SYNC_READ));
    return true;
}

// A warp that allocates tensor memory stores the address, once.
static void store_address(struct sync_run *r, const struct sync_who *who,
                          const struct tir_inst *inst)
{
    const struct sync_buffer *b = tir_sync_buffer_of(r, who->agent, inst, inst->operands[0]);
    struct sync_record record = tir_sync_ordinary(who, inst, SYNC_WRITE);
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
            const struct sync_buffer *b = !v || v->type->space == TIR_SPACE_VALUE
                                              ? NULL
                                              : tir_sync_buffer_of(r, who->agent, inst, v);
            if (b)
                tir_sync_access(r, who, b, tir_sync_ordinary(who, inst, SYNC_READ));
        }
        return true;
    case TIR_OP_COPY_ASYNC:
        tir_sync_copy(r, who, inst);
        return true;
    case TIR_OP_PUSH:
        tir_sync_push(r, who, inst);
        return true;
    case TIR_OP_TRY_CANCEL:
        tir_sync_request(r, who, inst);
        return true;
    case TIR_OP_IS_CANCELED:
    case TIR_OP_FIRST_CTAID:
        tir_sync_query_op(r, who, inst);
        return true;
    case TIR_OP_STORE_ASYNC:
        tir_sync_store_bulk(r, who, inst);
        return true;
    case TIR_OP_GEMM_ASYNC:
        tir_sync_product_op(r, who, inst);
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
