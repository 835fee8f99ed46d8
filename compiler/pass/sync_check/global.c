// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on tensors in global memory: whether two threads touch one element.
//
// Threads mostly come back to their own elements, so that two boxes meet is not enough. Of tiles
// the layouts say which threads have an element.

#include "pass/sync_check/access.h"
#include "pass/sync_check/memory.h"

struct touching { // threads of a CTA: lanes, by warp
    uint32_t lanes[SYNC_CTA_THREADS / SYNC_LANES];
};

// Of copies of an element each one is loaded, and the first one is stored (lower_tile).
static void add_copies(const struct sync_record *record, const struct sync_agent *by,
                       struct tir_layout_at at, uint32_t replica, struct touching *out)
{
    const struct tir_layout *l = record->layout;
    if (replica < l->replica_count) {
        const struct tir_iter *it = &l->replicas[replica];
        uint32_t copies = record->access == SYNC_READ ? it->extent : 1;
        for (uint32_t i = 0; i < copies; i++, at.at[it->axis] += it->stride)
            add_copies(record, by, at, replica + 1, out);
        return;
    }
    uint32_t warp = record->first_warp + at.at[TIR_AXIS_WARP];
    if (warp >= by->first_warp && warp < by->first_warp + by->warps)
        out->lanes[warp] |= UINT32_C(1) << at.at[TIR_AXIS_LANE];
}

// The threads of the agent that touch the element at `coord` of the tensor.
static struct touching touching_at(const struct sync_run *r, const struct sync_record *record,
                                   const int64_t *coord)
{
    struct touching out = {{0}};
    int64_t in_tile[TIR_MAX_RANK];
    for (uint32_t d = 0; d < record->layout->rank; d++)
        in_tile[d] = coord[record->dims[d]] - record->box.begin[record->dims[d]];
    struct tir_layout_at at = tir_layout_find(record->layout, in_tile);
    add_copies(record, &r->agents[record->agent], at, 0, &out);
    return out;
}

// Is there such a pair of two threads, one of each?
static bool has_pair(const struct touching *x, const struct touching *y, enum sync_pairs pairs)
{
    uint32_t of_x = 0, of_y = 0; // warps
    bool in_a_warp = false;
    for (uint32_t w = 0; w < TIR_COUNT_OF(x->lanes); w++) {
        uint32_t a = x->lanes[w], b = y->lanes[w];
        of_x |= (uint32_t)(a != 0) << w;
        of_y |= (uint32_t)(b != 0) << w;
        in_a_warp |= a && b && (a != b || (a & (a - 1)));
    }
    bool of_two = of_x && of_y && (of_x != of_y || (of_x & (of_x - 1)));
    return (in_a_warp && pairs & SYNC_IN_A_WARP) || (of_two && pairs & SYNC_OF_TWO_WARPS);
}

// Does such a pair touch an element of two tiles?
static bool tiles_meet(struct sync_run *r, const struct sync_record *a, const struct sync_record *b,
                       uint32_t rank, enum sync_pairs pairs)
{
    int64_t begin[TIR_MAX_RANK], size[TIR_MAX_RANK], coord[TIR_MAX_RANK], count = 1;
    bool same = a->layout == b->layout && !a->layout->replica_count && !a->first_warp &&
                !b->first_warp && !memcmp(&a->box, &b->box, sizeof a->box) &&
                !memcmp(a->dims, b->dims, a->layout->rank);
    for (uint32_t d = 0; d < rank; d++) {
        int64_t end = TIR_MIN(a->box.begin[d] + a->box.size[d], b->box.begin[d] + b->box.size[d]);
        begin[d] = TIR_MAX(a->box.begin[d], b->box.begin[d]);
        size[d] = end - begin[d];
        count *= size[d];
    }
    for (int64_t i = 0; i < count && !same; i++) {
        int64_t left = i;
        for (uint32_t d = rank; d-- > 0; left /= size[d])
            coord[d] = begin[d] + left % size[d];
        struct touching x = touching_at(r, a, coord), y = touching_at(r, b, coord);
        r->p->work += i % 4 == 0;
        if (has_pair(&x, &y, pairs))
            return true;
    }
    return false;
}

// Does such a pair touch an element, one as a thread and the other one as a part of a tile?
static bool point_and_tile_meet(struct sync_run *r, const struct sync_root *root,
                                const struct sync_record *points, const struct sync_record *tile,
                                enum sync_pairs pairs)
{
    int64_t coord[TIR_MAX_RANK];
    for (uint32_t i = 0; i < points->point_count; i++) {
        int64_t element = points->points[i] / SYNC_POINT;
        uint32_t thread = (uint32_t)(points->points[i] % SYNC_CTA_THREADS);
        bool inside = true;
        for (uint32_t d = root->alloc->type->rank; d-- > 0; element /= root->shape[d]) {
            coord[d] = element % root->shape[d];
            inside &=
                coord[d] >= tile->box.begin[d] && coord[d] < tile->box.begin[d] + tile->box.size[d];
        }
        if (!inside)
            continue;
        struct touching x = {{0}}, y = touching_at(r, tile, coord);
        x.lanes[thread / SYNC_LANES] = UINT32_C(1) << thread % SYNC_LANES;
        if (has_pair(&x, &y, pairs))
            return true;
    }
    return false;
}

// Which lane it is that elect_sync picks is not known.
static bool is_elected(const struct sync_record *record)
{
    return record->points && record->point_count && record->points[0] % SYNC_POINT >= SYNC_CLUSTER;
}

static bool by_other_warps(const struct sync_record *a, const struct sync_record *b)
{
    return a->end_warp && b->end_warp &&
           (a->end_warp <= b->first_warp || b->end_warp <= a->first_warp);
}

static bool by_other_ctas(const struct sync_run *r, const struct sync_record *a,
                          const struct sync_record *b)
{
    return r->agents[a->agent].cta != r->agents[b->agent].cta;
}

enum meeting { APART, MAY_MEET, MEET };

// Whether two threads touch the same element: in global memory, where threads mostly come back to
// their own, that two boxes meet is not enough.
static enum meeting meeting_of(struct sync_run *r, const struct sync_root *root,
                               const struct sync_record *old, const struct sync_record *now,
                               enum sync_pairs pairs)
{
    uint32_t rank = root->alloc->type->rank;
    bool by_data = old->modulus || now->modulus, both = old->points && now->points;
    if (by_data && by_other_ctas(r, old, now))
        return APART; // the program is left to tell them apart
    if (both && by_data && (old->modulus != now->modulus || old->base != now->base || !now->base))
        return APART; // tir_sync_may_meet says more
    if (both)
        return tir_sync_points_meet(r, root, old, now, pairs) ? MEET : APART;
    if (by_data || !old->exact || !now->exact)
        return MAY_MEET;
    if ((old->points || now->points) && !tir_sync_points_meet(r, root, old, now, pairs))
        return APART;
    if (old->async || now->async || by_other_warps(old, now) || by_other_ctas(r, old, now))
        return MEET;
    if ((!old->points && !old->layout) || (!now->points && !now->layout) || is_elected(old) ||
        is_elected(now))
        return MAY_MEET;
    bool meet = old->points   ? point_and_tile_meet(r, root, old, now, pairs)
                : now->points ? point_and_tile_meet(r, root, now, old, pairs)
                              : tiles_meet(r, old, now, rank, pairs);
    return meet ? MEET : APART;
}

// Do a mask or an index tile say which elements it stores?
static bool is_in_part(const struct tir_inst *inst)
{
    return tir_sync_is_indexed(inst) ||
           (inst->op == TIR_OP_STORE && inst->operands[TIR_STORE_MASK]);
}

// It is said if that cannot be told. Of one statement in several rounds it may be meant, and so may
// be what data gives a place.
static void note_may_meet(struct sync_run *r, const struct sync_record *old,
                          const struct sync_record *now)
{
    const bool reads = old->access == SYNC_READ || now->access == SYNC_READ;
    const bool indexed = tir_sync_is_indexed(old->by) || tir_sync_is_indexed(now->by);
    const bool in_part = is_in_part(old->by) || is_in_part(now->by);
    const bool any_order =
        old->by == now->by || (r->p->f->grid_count ? !in_part : r->p->by_hand || !indexed);
    if (!reads && !by_other_ctas(r, old, now) && any_order)
        return;
    tir_sync_unchecked(r->p, now->by,
                       tir_str_format(r->p->cx->scratch,
                                      "nothing orders it after %s of line %u, and whether two "
                                      "threads touch one element is not known",
                                      tir_sync_name_of(old->by), tir_sync_line(r->p, old->by))
                           .ptr);
}

// A program that orders its accesses itself may look at what other threads add to.
static bool looks_ahead(const struct sync_run *r, const struct sync_record *old,
                        const struct sync_record *now)
{
    return r->p->by_hand && old->access == SYNC_READ && now->access == SYNC_UPDATE;
}

static void note_looks_ahead(struct sync_run *r, const struct sync_record *old,
                             const struct sync_record *now)
{
    tir_sync_unchecked(r->p, now->by,
                       tir_str_format(r->p->cx->scratch,
                                      "nothing orders it after load of line %u, which another "
                                      "thread may make before it or after it",
                                      tir_sync_line(r->p, old->by))
                           .ptr);
}

// Two CTAs may store one value to one place.
static bool may_be_meant(const struct sync_run *r, const struct sync_record *old,
                         const struct sync_record *now)
{
    return by_other_ctas(r, old, now) && old->access == SYNC_WRITE && now->access == SYNC_WRITE;
}

static void note_two_ctas(struct sync_run *r, const struct sync_record *old,
                          const struct sync_record *now)
{
    if (old->by == now->by && bitset_has(&r->p->stored_by_all, now->by->id)) // it is said
        return;
    tir_sync_unchecked(r->p, now->by,
                       tir_str_format(r->p->cx->scratch,
                                      "the order of CTAs: another one of the cluster stores to the "
                                      "same place by %s of line %u",
                                      tir_sync_name_of(old->by), tir_sync_line(r->p, old->by))
                           .ptr);
}

// The accesses of all CTAs that are compared.
static struct sync_shadow *shadow_of(const struct sync_run *r, const struct sync_buffer *b)
{
    return &r->shadows[(r->p->has_peers ? 0 : b->cta) * r->p->roots.len + b->root];
}

void tir_sync_access_tensor(struct sync_run *r, const struct sync_who *who,
                            const struct sync_buffer *b, const struct sync_record *now)
{
    const struct sync_root *root = &r->p->roots.at[b->root];
    struct sync_shadow *s = shadow_of(r, b);
    uint32_t kept = 0;
    if (!now->points && tir_sync_is_empty_box(&now->box, root->alloc->type->rank) &&
        !tir_sync_moves(r->p, now->by))
        return;
    tir_sync_compare_rests(r, who, root, s, now);
    for (uint32_t i = 0; i < s->records.len; i++) {
        struct sync_record *old = &s->records.at[i];
        const bool is_peer = by_other_ctas(r, old, now);
        if (!is_peer)
            tir_sync_note_unordered(r, who, root, old, now);
        if (!tir_sync_boxes_meet(&old->box, &now->box, root->alloc->type->rank)) {
            if (kept++ != i)
                s->records.at[kept - 1] = *old;
            continue;
        }
        enum sync_pairs pairs = tir_sync_may_conflict(who, old, now);
        enum meeting meeting = pairs ? meeting_of(r, root, old, now, pairs) : APART;
        if (meeting == MEET && looks_ahead(r, old, now)) {
            note_looks_ahead(r, old, now);
        } else if (meeting == MEET && may_be_meant(r, old, now)) {
            note_two_ctas(r, old, now);
        } else if (meeting == MEET) {
            tir_sync_report(r, who, b->root, b->root, old, now);
            return;
        }
        if (meeting == MAY_MEET)
            note_may_meet(r, old, now);
        if (pairs && !is_peer && (old->base != now->base || !now->base) &&
            tir_sync_may_meet(r, root, old, now, pairs))
            tir_sync_unchecked(r->p, now->by, SYNC_BY_DATA);
        if (tir_sync_is_superseded(r, who, root, old, now))
            continue;
        s->records.at[kept++] = *old;
    }
    s->records.len = kept;
    tir_sync_remember(r, root, s, now);
}
