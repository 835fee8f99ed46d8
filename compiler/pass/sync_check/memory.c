// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on memory: the bytes that an access touches, and whether earlier accesses to them are
// ordered before it.
//
// Accesses are boxes in the dimensions of their buffer, so that parts of a swizzled row are told
// apart. Buffers that share bytes are compared by the bytes that their boxes span. A record is
// removed when a later write that is ordered after it covers it, or when the same strand makes the
// same access again.
//
// Two accesses of one agent are compared twice: as those of two lanes of a warp, and of two warps.

#include "pass/sync_check/memory.h"

// Of the pairs of threads that old and now are of: those that are not ordered, by proxy fences too
// if that is asked.
static enum sync_pairs unordered(const struct sync_who *who, const struct sync_record *old,
                                 const struct sync_record *now, bool fences)
{
    const struct sync_thread *t = &who->agent->threads[who->thread];
    bool fence = fences && now->async && !old->async;
    enum sync_memory of = now->of_tensor ? SYNC_OF_TENSORS : SYNC_OF_SHARED;
    uint32_t warp = (fence ? t->clock.fenced[of] : t->clock.known)[old->strand], others = warp;
    if (old->agent == who->agent->id && who->agent->warps > 1)
        others = (fence ? t->peers.fenced[of] : t->peers.known)[old->strand];
    return (warp < old->at ? SYNC_IN_A_WARP : SYNC_NO_PAIRS) |
           (others < old->at ? SYNC_OF_TWO_WARPS : SYNC_NO_PAIRS);
}

void tir_sync_note_unordered(struct sync_run *r, const struct sync_who *who,
                             const struct sync_root *root, const struct sync_record *old,
                             const struct sync_record *now)
{
    if (r->p->first_spot[old->by->id] && r->p->first_spot[now->by->id])
        tir_sync_note_pair(r, root, old, now,
                           tir_sync_in_pipeline(old, now) ? SYNC_NO_PAIRS
                                                          : unordered(who, old, now, true));
}

// Each element by one thread both times, in program order, but for what that thread only started.
static bool same_threads(const struct sync_who *who, const struct sync_record *old,
                         const struct sync_record *now)
{
    if (!old->same || old->same != now->same || old->async || now->async)
        return false;
    return !old->grouped || old->strand != now->strand ||
           who->agent->all.known[old->strand] >= old->at;
}

enum sync_pairs tir_sync_may_conflict(const struct sync_who *who, const struct sync_record *old,
                                      const struct sync_record *now)
{
    if (old->access == SYNC_READ && now->access == SYNC_READ)
        return SYNC_NO_PAIRS;
    if (old->access == SYNC_UPDATE && now->access == SYNC_UPDATE)
        return SYNC_NO_PAIRS;
    if (same_threads(who, old, now) || tir_sync_in_pipeline(old, now))
        return SYNC_NO_PAIRS;
    return unordered(who, old, now, true);
}

const char *tir_sync_name_of(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_COPY_ASYNC || inst->op == TIR_OP_TMEM_COPY ? "the copy"
           : inst->op == TIR_OP_PUSH                                     ? "store"
           : inst->op == TIR_OP_GEMM_TMEM                                ? "gemm_async"
                                                                         : tir_ops[inst->op].name;
}

// The synchronisation that would have ordered an access by `old` before a later one.
static const char *missing_after(const struct tir_inst *old, bool async)
{
    switch (old->op) {
    case TIR_OP_PUSH:
        return "no wait for its mbarrier";
    case TIR_OP_TRY_CANCEL:
        return "no wait for its mbarrier";
    case TIR_OP_COPY_ASYNC:
        return async ? "no wait for its mbarrier" : "no wait_group and barrier";
    case TIR_OP_STORE_ASYNC:
        return "no wait_group(engine = tma) that is handed on";
    case TIR_OP_GEMM_ASYNC:
        return "no await or wait_group that covers it and is handed on";
    case TIR_OP_GEMM_TMEM:
    case TIR_OP_TMEM_COPY:
        return "no commit that is waited for";
    default:
        return "no barrier, and no arrive and wait,";
    }
}

static tir_str part_name(struct sync_run *r, uint32_t root, const struct sync_box *box)
{
    const struct tir_value *alloc = r->p->roots.at[root].alloc;
    const struct tir_type *t = alloc->type;
    const char *name = alloc->name ? alloc->name : "a shared buffer";
    bool slot = t->rank > 1 && box->size[0] == 1 && t->shape[0] > 1;
    if (slot)
        return tir_str_format(r->p->cx->scratch, "slot %lld of %s", (long long)box->begin[0], name);
    return tir_str_of(name);
}

void tir_sync_report(struct sync_run *r, const struct sync_who *who, uint32_t root,
                     uint32_t old_root, const struct sync_record *old,
                     const struct sync_record *now)
{
    tir_str part = part_name(r, root, &now->box);
    if (old_root != root)
        part = tir_str_format(r->p->cx->scratch, STR_FMT " (at bytes of " STR_FMT ")",
                              STR_ARG(part), STR_ARG(part_name(r, old_root, &old->box)));
    uint32_t line = tir_sync_line(r->p, old->by);
    const char *by = tir_sync_name_of(now->by), *other = tir_sync_name_of(old->by);
    if (!unordered(who, old, now, false)) {
        const bool wrote = old->access != SYNC_READ;
        tir_sync_fail(r, TIR_E_SYNC_FENCE, now->by, old->by,
                      wrote ? "this is the ordinary write" : "this is the ordinary read",
                      "%s reaches " STR_FMT " by the asynchronous proxy, which may %s what "
                      "%s of line %u %s: no fence(of = %s) between them",
                      by, STR_ARG(part), wrote ? "not see" : "overwrite", other, line,
                      wrote ? "wrote" : "still reads",
                      now->of_tensor ? "async_global" : "async_shared");
        return;
    }
    bool writes = now->access != SYNC_READ;
    tir_sync_fail(r, TIR_E_SYNC_RACE, now->by, old->by, "this is the other access",
                  STR_FMT " is %s by %s while %s of line %u may still %s it: %s between them",
                  STR_ARG(part), writes ? "overwritten" : "read", by, other, line,
                  old->access == SYNC_READ ? "read" : "write", missing_after(old->by, old->async));
}

// Accesses of tensor memory that are ordered, and may lack a fence.
static void check_fences(struct sync_run *r, const struct sync_who *who, uint32_t root,
                         const struct sync_record *old, const struct sync_record *now)
{
    const char *lacking = tir_sync_lacks_fence(r, who, old, now);
    tir_str part = part_name(r, root, &now->box);
    if (lacking)
        tir_sync_fail(r, TIR_E_SYNC_FENCE, now->by, old->by, "this is the other access",
                      "%s may not see " STR_FMT " in tensor memory as %s of line %u leaves it: no "
                      "fence(%s",
                      tir_sync_name_of(now->by), STR_ARG(part), tir_sync_name_of(old->by),
                      tir_sync_line(r->p, old->by), lacking);
}

// Does the access write every byte of its buffer?
static bool writes_all(const struct sync_root *root, const struct sync_record *access)
{
    const struct tir_type *t = root->alloc->type;
    int64_t bits = tir_elems[t->elem].bits;
    for (uint32_t d = 0; d < t->rank; d++)
        bits *= access->box.size[d];
    return access->access == SYNC_WRITE && access->exact && !access->points && !root->is_tmem &&
           bits == 8 * (root->end - root->begin);
}

// `now` writes all bytes of the buffer, so it stands for the accesses that it is ordered after:
// what is not ordered after one of these is not ordered after it.
static void remove_older(const struct sync_who *who, struct sync_shadow *s,
                         const struct sync_record *now)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->records.len; i++)
        if (unordered(who, &s->records.at[i], now, true))
            s->records.at[kept++] = s->records.at[i];
    s->records.len = kept;
}

// Compares with the accesses to one buffer that shares bytes with this one. Its elements and its
// dimensions are others: only that of products into the same place says nothing here.
static void compare_alias(struct sync_run *r, const struct sync_who *who, uint32_t other,
                          const struct sync_buffer *b, const struct sync_record *record)
{
    const struct sync_root *of = &r->p->roots.at[b->root], *of_old = &r->p->roots.at[other];
    const bool one_alloc = tir_sync_share_alloc(of, of_old);
    struct sync_shadow *s = &r->shadows[b->cta * r->p->roots.len + other];
    struct sync_record now = *record;
    now.same = 0;
    int64_t begin, end, old_begin, old_end;
    tir_sync_span(of, &now.box, &begin, &end);
    r->p->work += s->records.len / 4;
    tir_sync_compare_rests(r, who, NULL, s, &now);
    if (of->begin <= of_old->begin && of_old->end <= of->end && writes_all(of, &now) &&
        (of->is_tmem || !tir_sync_is_of_warps(r, &now)))
        remove_older(who, s, &now);
    vec_foreach(struct sync_record, it, &s->records) {
        struct sync_record old = *it;
        old.core &= !now.core || old.by->op == TIR_OP_TMEM_COPY;
        enum sync_pairs pairs = tir_sync_may_conflict(who, &old, &now);
        bool all = false;
        if (pairs && of->is_tmem && tir_sync_in_own_lanes(r, &old, &now, &all))
            pairs = all ? SYNC_NO_PAIRS : pairs & SYNC_IN_A_WARP;
        if (all)
            continue;
        if (!pairs && (!of->is_tmem || !tir_sync_lacks_fence(r, who, it, &now)))
            continue;
        tir_sync_span(of_old, &old.box, &old_begin, &old_end);
        if (begin >= old_end || old_begin >= end)
            continue;
        if (one_alloc &&
            !tir_sync_bytes_meet(r, of_old, &old, of, &now, pairs ? pairs : SYNC_ALL_PAIRS))
            continue;
        if (pairs && old.exact && now.exact)
            tir_sync_report(r, who, b->root, one_alloc ? b->root : other, &old, &now);
        else if (pairs)
            tir_sync_unchecked(r->p, now.by, "where it is in shared memory depends on data");
        else
            check_fences(r, who, b->root, it, &now);
        if (pairs || r->outcome != SYNC_GOING)
            return;
    }
}

// Some warps touch a tile, such as the rows of a warpgroup, where others do not.
static bool bytes_apart(struct sync_run *r, const struct sync_root *root,
                        const struct sync_record *old, const struct sync_record *now,
                        enum sync_pairs pairs)
{
    return !root->is_tmem && old->agent != now->agent &&
           (tir_sync_is_of_warps(r, old) || tir_sync_is_of_warps(r, now)) &&
           !tir_sync_bytes_meet(r, root, old, root, now, pairs);
}

// Does each thread touch the elements that it touched then?
static bool same_elements(const struct sync_record *old, const struct sync_record *now)
{
    const bool again = old->by == now->by && tir_sync_same_places(old, now);
    return old->agent == now->agent && (again || (old->same && old->same == now->same));
}

bool tir_sync_is_superseded(const struct sync_run *r, const struct sync_who *who,
                            const struct sync_root *root, const struct sync_record *old,
                            const struct sync_record *now)
{
    if (now->points || !now->exact)
        return old->by == now->by && old->strand == now->strand && old->modulus == now->modulus &&
               tir_sync_same_places(old, now);
    if (!tir_sync_box_covers(&now->box, &old->box, root->alloc->type->rank))
        return false;
    // For other arguments it may not cover it.
    if (old->by != now->by && (tir_sync_moves(r->p, old->by) || tir_sync_moves(r->p, now->by)))
        return false;
    const bool in_shared = !root->is_tensor && !root->is_tmem; // there, parts of warps are apart
    if (in_shared && tir_sync_is_of_warps(r, now) && !same_elements(old, now))
        return false;
    if (now->access == SYNC_WRITE && !unordered(who, old, now, true))
        return true;
    return old->strand == now->strand && old->access == now->access && old->async == now->async &&
           old->same == now->same;
}

void tir_sync_note_far(struct sync_run *r, uint32_t cta, const struct sync_record *now)
{
    vec_foreach(struct sync_far, old, &r->far)
        if (old->cta == cta && old->strand == now->strand) {
            old->by = now->by;
            old->at = now->at;
            return;
        }
    vec_push(r->arena, &r->far, ((struct sync_far){now->by, cta, now->at, now->strand}));
}

// The CTA of the buffer must have started, and may not have ended: that is looked at in the end.
static void access_far(struct sync_run *r, const struct sync_who *who, uint32_t cta,
                       const struct sync_record *now)
{
    bool started = false;
    for (uint32_t i = 0; i < r->agent_count; i++)
        started |= r->agents[i].cta == cta && tir_sync_clock(who)->known[r->agents[i].events];
    if (!started) {
        tir_sync_fail(r, TIR_E_SYNC_RACE, now->by, NULL, NULL,
                      "the CTA whose shared memory this %s may not have started: no barrier of the "
                      "cluster before it",
                      now->access == SYNC_READ ? "reads" : "writes");
        return;
    }
    tir_sync_note_far(r, cta, now);
}

// Something is stored to bytes of another buffer: what was known of the elements there is over. Of
// the others it is not, which threads may still load: nothing need be between that and this.
static void forget_met(struct sync_run *r, uint32_t other, const struct sync_buffer *b,
                       const struct sync_record *now)
{
    const struct sync_root *root = &r->p->roots.at[other], *of = &r->p->roots.at[b->root];
    const struct tir_type *t = root->alloc->type;
    const struct tir_arena_mark mark = tir_arena_mark(r->arena);
    struct sync_buffer all = {.root = other, .cta = b->cta};
    struct sync_record met = {0};
    int64_t begin, end;
    memcpy(all.box.size, t->shape, t->rank * sizeof *t->shape);
    tir_sync_span(of, &now->box, &begin, &end);
    if (begin > root->begin || end < root->end || tir_sync_share_alloc(of, root))
        tir_sync_elements_met(r, root, of, now, begin, end, &met);
    tir_sync_forget(r, &all, &met);
    tir_arena_release(r->arena, mark);
}

void tir_sync_note_place(struct sync_run *r, const struct sync_buffer *b,
                         const struct sync_record *record)
{
    const struct tir_type *t = r->p->roots.at[b->root].alloc->type;
    if (record->points ? record->point_count > 0 : !tir_sync_is_empty_box(&b->box, t->rank))
        bitset_insert(r->came, 2 * record->by->id);
}

void tir_sync_access(struct sync_run *r, const struct sync_who *who, const struct sync_buffer *b,
                     struct sync_record now)
{
    const struct sync_root *root = &r->p->roots.at[b->root];
    const struct tir_type *t = root->alloc->type;
    struct sync_shadow *s = &r->shadows[b->cta * r->p->roots.len + b->root];
    now.agent = (uint16_t)who->agent->id;
    now.box = b->box;
    now.exact = now.points || b->exact;
    now.of_tensor = root->is_tensor;
    tir_sync_note_place(r, b, &now);
    if (root->is_tensor) {
        tir_sync_access_tensor(r, who, b, &now);
        return;
    }
    // What is outside for these arguments may be inside for others.
    const bool is_outside = tir_sync_is_empty_box(&now.box, t->rank);
    if (is_outside && !tir_sync_moves(r->p, now.by))
        return;
    if (!now.round && r->p->first_spot[now.by->id])
        now.round = tir_sync_round(r, who->agent, now.by);
    if (b->cta != who->agent->cta && !now.async)
        access_far(r, who, b->cta, &now);
    if (now.access != SYNC_READ && root->has_cells)
        tir_sync_forget(r, b, &now);
    r->p->work += s->records.len / 4 + 1;
    tir_sync_compare_rests(r, who, root, s, &now);
    for (uint32_t i = 0; i < s->records.len;) {
        struct sync_record *old = &s->records.at[i];
        tir_sync_note_unordered(r, who, root, old, &now);
        if (!tir_sync_boxes_meet(&old->box, &now.box, t->rank)) {
            i++;
            continue;
        }
        enum sync_pairs pairs = tir_sync_may_conflict(who, old, &now);
        bool conflict = pairs && ((!old->points && !now.points) ||
                                  tir_sync_points_meet(r, root, old, &now, pairs));
        conflict = conflict && !bytes_apart(r, root, old, &now, pairs);
        if (conflict && old->exact && now.exact)
            tir_sync_report(r, who, b->root, b->root, old, &now);
        else if (conflict)
            tir_sync_unchecked(r->p, now.by, "where it is in shared memory depends on data");
        else if (root->is_tmem && !same_threads(who, old, &now))
            check_fences(r, who, b->root, old, &now);
        if (r->outcome != SYNC_GOING)
            return;
        if (tir_sync_is_superseded(r, who, root, old, &now))
            *old = s->records.at[--s->records.len];
        else
            i++;
    }
    struct bitset *occupied = &r->occupied[b->cta];
    for (uint32_t o = 0; r->outcome == SYNC_GOING && !is_outside; o++) {
        o = bitset_next(occupied, o);
        if (o == occupied->bits)
            break;
        const struct sync_root *other = &r->p->roots.at[o];
        if (!other->has_cells && !r->shadows[b->cta * r->p->roots.len + o].records.len)
            bitset_remove(occupied, o);
        if (o == b->root || other->begin >= root->end || root->begin >= other->end)
            continue;
        if (now.access != SYNC_READ && other->has_cells)
            forget_met(r, o, b, &now);
        compare_alias(r, who, o, b, &now);
    }
    bitset_insert(occupied, b->root);
    tir_sync_remember(r, root, s, &now);
}
